/* io/names.h - names that a file gives to things: of every owner (the variables, the labels of a variable) its own. */
#ifndef FGI_NAMES_H
#define FGI_NAMES_H
#include "base/array.h"

typedef struct fgi_names {
    fgi_array text, entries; /* the bytes of all names; what each stands for */
    int32_t *slots;          /* open addressing: entries by hash, -1 free */
    int64_t n_slots;
} fgi_names;

int32_t fgi_names_find(const fgi_names *names, int32_t owner, const char *name, int64_t n); /* its value; -1: none */
/* A new name, for a value >= 0. Returns 0 when memory is short. */
int fgi_names_add(fgi_names *names, int32_t owner, const char *name, int64_t n, int32_t value);
/* All names in the order in which they came: where each begins in `text` (and the last ends), its owner and value.
 * Returns how many there are; the arrays may be NULL. */
int64_t fgi_names_list(const fgi_names *names, int64_t *begin, int32_t *owner, int32_t *value);
int64_t fgi_names_held(const fgi_names *names); /* bytes */
void fgi_names_clear(fgi_names *names);

#endif
