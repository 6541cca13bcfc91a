/*
 * model/leftovers.h - what a double cannot hold of unary scores that were added up.
 *
 * The unaries of a model are sums, rounded once, of the factors over one variable. What rounding takes is kept beside
 * them as further factors over one variable: scores of labelings count them, so that they are those of the factors as
 * they were given. Methods do not see them: see fgi_model_plain.
 */
#ifndef FGI_LEFTOVERS_H
#define FGI_LEFTOVERS_H
#include <stdatomic.h>
#include "base/array.h"
#include "base/partials.h"
#include "fginfer.h"

/* Immutable, shared by snapshots. */
typedef struct fgi_leftovers {
    atomic_int refs;
    int64_t n;
    int32_t *var;   /* ascending; -1: the constant's */
    int64_t *begin; /* n + 1 offsets into the values */
    double *values; /* one for each label, one for the constant */
} fgi_leftovers;

/* Those of a spec whose variables have been checked; *out is NULL where there are none. */
fgi_rc fgi_leftovers_create(const fgi_model_spec *spec, fgi_leftovers **out, fgi_error *err);
/* The leftovers without those of one variable, or with var -1 those of the constant alone. Where that changes nothing
 * *out is x itself. */
fgi_rc fgi_leftovers_without(fgi_leftovers *x, int32_t var, fgi_leftovers **out, fgi_error *err);
fgi_leftovers *fgi_leftovers_retain(fgi_leftovers *x); /* NULL is fine, here and below */
void fgi_leftovers_release(fgi_leftovers *x);
int64_t fgi_leftovers_memory(const fgi_leftovers *x); /* bytes */

/* The k-th, at the labels of a full labeling. */
static inline double fgi_leftover_at(const fgi_leftovers *x, int64_t k, const int32_t *labels) {
    return x->values[x->begin[k] + (x->var[k] < 0 ? 0 : labels[x->var[k]])];
}

/* ---- where factors over one variable or none add up ----------------------------------------------------------- */

typedef struct fgi_folding {
    fgi_array terms;  /* terms of variables that have unary scores already */
    fgi_array scores; /* double: those of the terms */
    fgi_partials constant;
    int constants, forbidden; /* how many there were, 2 for more; was one -INFINITY? */
    double first;
    fgi_array left_var, left; /* int32, double: what rounding took */
} fgi_folding;                /* begins as {0} */

/* Scores to be added to those a variable has; 0: no memory. */
int fgi_folding_add(fgi_folding *f, int32_t var, int64_t card, const double *scores);
void fgi_folding_add_constant(fgi_folding *f, double score);
/* Adds everything to unary (concatenated), rounded once, and finds what is left over. FGI_BAD_MODEL: too large. */
fgi_rc fgi_folding_finish(
    fgi_folding *f, const int32_t *cards, const int64_t *unary_begin, double *unary, double *constant, fgi_error *err);
void fgi_folding_put(const fgi_folding *f, fgi_model_spec *spec); /* its leftovers, borrowed */
int64_t fgi_folding_held(const fgi_folding *f);                   /* bytes */
void fgi_folding_free(fgi_folding *f);

#endif
