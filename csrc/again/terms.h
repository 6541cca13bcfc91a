/* again/terms.h - the terms of a score and of a bound, and their sums.
 *
 * Terms are kept in blocks, each with its sums. A change makes the sums of its block anew, term by term, so that sums
 * never drift; the whole is a pass over the blocks. */
#ifndef FGI_TERMS_H
#define FGI_TERMS_H
#include <stdint.h>
#include "base/array.h"
#include "base/util.h"

enum { FGI_TERM_BLOCK = 64 }; /* terms that are summed together: a change sums one block again */

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

typedef struct fgi_terms {
    fgi_term *at;
    int64_t n, room;
    fgi_term_sums *blocks;
    uint8_t *stale; /* per block */
    int64_t n_blocks_room;
    fgi_array changed; /* int64: stale blocks */
} fgi_terms;           /* begins as {0} */

/* Room for n terms in all; those that are new are 0. 0: no memory, nothing has changed. */
int fgi_terms_extend(fgi_terms *t, int64_t n);
void fgi_terms_free(fgi_terms *t);

/* A term was written to. `changed` has room for every block. */
static inline void fgi_terms_touch(fgi_terms *t, int64_t k) {
    const int64_t block = k / FGI_TERM_BLOCK;
    if (t->stale[block]) return;
    t->stale[block] = 1;
    ((int64_t *)t->changed.at)[t->changed.n++] = block;
}

void fgi_term_sums_begin(fgi_term_sums *s, double constant);
/* Adds the sums of all terms. */
void fgi_terms_add_up(fgi_terms *t, fgi_term_sums *to);

#endif
