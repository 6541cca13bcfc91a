/* again/terms.h - the terms of a score and of a bound, and their sums.
 *
 * Terms are kept in blocks, and blocks in groups, each with its sums. A change makes the sums of its block and of its
 * group anew, term by term, so that sums never drift; the whole is a pass over the groups. */
#ifndef FGI_TERMS_H
#define FGI_TERMS_H
#include <stdint.h>
#include "base/array.h"
#include "base/util.h"

enum {
    FGI_TERM_BLOCK = 16, /* terms that are summed together: a change sums one block again */
    FGI_TERM_GROUP = 16  /* blocks that are summed together */
};

/* What of a block has changed. */
enum {
    FGI_TERM_TOP = 1,  /* a top */
    FGI_TERM_VALUE = 2 /* a value, or a unit */
};

typedef struct fgi_term {
    double top;   /* the term's part of the bound, rounded up */
    double value; /* at the labels */
    double unit;  /* see fgi_model_unit; INFINITY: none */
} fgi_term;

typedef struct fgi_term_sums {
    fgi_sum top, value;
    double magnitude; /* sum of the magnitudes of the tops */
    double lost;      /* what the corrections of `value` may have lost, see model/score.c */
    double unit;
} fgi_term_sums;

/* Sums of blocks, or of groups. */
typedef struct fgi_term_level {
    fgi_term_sums *sums;
    uint8_t *stale; /* what has changed */
    int64_t room;
    fgi_array changed; /* int64: those that are stale; it has room for all */
} fgi_term_level;

typedef struct fgi_terms {
    fgi_term *at;
    int64_t n, room;
    fgi_term_level blocks, groups;
} fgi_terms; /* begins as {0} */

/* Room for n terms in all; those that are new are 0. 0: no memory, nothing has changed. */
int fgi_terms_extend(fgi_terms *t, int64_t n);
void fgi_terms_free(fgi_terms *t);
int64_t fgi_terms_memory(const fgi_terms *t); /* bytes */

static inline void fgi_term_level_touch(fgi_term_level *of, int64_t k, int what) {
    if (!of->stale[k]) ((int64_t *)of->changed.at)[of->changed.n++] = k;
    of->stale[k] |= (uint8_t)what;
}

/* A term was written to. */
static inline void fgi_terms_touch(fgi_terms *t, int64_t k, int what) {
    fgi_term_level_touch(&t->blocks, k / FGI_TERM_BLOCK, what);
}

void fgi_term_sums_begin(fgi_term_sums *s, double constant);
/* Adds the sums of all terms. */
void fgi_terms_add_up(fgi_terms *t, fgi_term_sums *to);

#endif
