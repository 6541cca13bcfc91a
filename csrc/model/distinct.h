/* model/distinct.h - a collection of tables in which equal ones are stored once. */
#ifndef FGI_DISTINCT_H
#define FGI_DISTINCT_H
#include "base/array.h"

typedef struct fgi_distinct {
    fgi_array arity, dims, values;            /* int32, int32, double: the tables, as in fgi_model_spec */
    fgi_array values_begin, dims_begin, hash; /* int64, int64, uint64 per table */
    fgi_array turned, sizes;                  /* double: a table transposed; int32: its label counts */
    int32_t *slots;                           /* open addressing: tables by hash, -1 free */
    int64_t n_slots;
} fgi_distinct;

/*
 * The last n of `values`, a table of `arity` >= 1 dimensions, become a new table, or are dropped in favour of an equal
 * one (equal bits, equal dimensions). Returns its number; -1: out of memory. With `turned` (NULL: not wanted) a
 * pairwise table may also be dropped in favour of one that equals it transposed: *turned is then 1.
 */
int32_t fgi_distinct_store(fgi_distinct *d, const int32_t *sizes, int64_t arity, int64_t n, int *turned);
/* The same for a table over variables with cards[vars[k]] labels. */
int32_t fgi_distinct_store_of(
    fgi_distinct *d, const int32_t *cards, const int32_t *vars, int64_t arity, int64_t n, int *turned);

/* Gives back the memory that only storing needs, and what growing reserved in vain. */
void fgi_distinct_shrink(fgi_distinct *d);
void fgi_distinct_clear(fgi_distinct *d);

#endif
