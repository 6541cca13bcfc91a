/* model/draft.h - a model put together piece by piece, mostly from parts of another model.
 *
 *     fgi_draft d;
 *     fgi_draft_begin(&d, m);
 *     for (...) fgi_draft_variable(&d, card, unary);
 *     for (...) fgi_draft_copy_factor(&d, f, local);
 *     rc = fgi_draft_finish(&d, constant, &model, err);
 *     fgi_draft_free(&d);
 *
 * Tables that factors of m share stay shared, and are numbered by first use. A failure is remembered until the end. A
 * finished draft is empty, and may serve for another model of parts of m: that costs what it uses, not all of m.
 *
 * Invariants, while nothing has failed (fgi_draft_finish looks at them):
 *   1  unary_begin has the sums of `cards`, var_begin the sums of the arities; both begin at 0.
 *   2  A table that is shared has its number in new_table, and `origin` says where it comes from; no other has.
 *   3  Factors name tables and variables that have been added, by the end, and no variable twice. */
#ifndef FGI_DRAFT_H
#define FGI_DRAFT_H
#include "model/model.h"

typedef struct fgi_draft {
    const fgi_model *from;
    int32_t *new_table; /* per table of `from`: its number here; -1: not used yet */
    int64_t n_vars, var_capacity, unary_capacity;
    int32_t *cards;
    int64_t *unary_begin; /* n_vars + 1 */
    double *unary;
    int64_t n_tables, table_capacity, n_dims, dims_capacity, n_values, values_capacity;
    int32_t *kind, *arity, *dims;
    int32_t *origin; /* per table: which of `from`; -1: none */
    double *params, *values;
    int64_t n_factors, factor_capacity, n_slots, slot_capacity;
    int32_t *factor_table, *vars;
    double *weight;
    uint8_t *transposed;
    int64_t *var_begin;                                     /* n_factors + 1 */
    int weighted, any_transposed, any_higher, any_implicit; /* whether the model needs to be told */
    const fgi_folding *folded;                              /* whose leftovers the model gets; NULL: none */
    int failed;
} fgi_draft;

void fgi_draft_begin(fgi_draft *d, const fgi_model *from);
void fgi_draft_free(fgi_draft *d);

/* All return the number of what was added, and -1 once memory is short. */
int32_t fgi_draft_variable(fgi_draft *d, int32_t card, const double *unary);
int32_t fgi_draft_shared(fgi_draft *d, int32_t table); /* a table of `from`; copied when it is first used */
/* A dense table, and where its entries go: valid until the next table. */
int32_t fgi_draft_dense(fgi_draft *d, int32_t arity, const int32_t *dims, double **values);
int32_t fgi_draft_implicit(fgi_draft *d, int32_t kind, double p0, double p1);
/* A factor over the variables vars, or local[v] for each v of them. */
int32_t fgi_draft_factor(fgi_draft *d, int32_t table, double weight, int transposed, int32_t arity, const int32_t *vars,
    const int32_t *local);
/* Factor f of `from`, with its table, weight and orientation. */
int32_t fgi_draft_copy_factor(fgi_draft *d, int64_t f, const int32_t *local);

static inline double *fgi_draft_unary(fgi_draft *d, int32_t var) { return d->unary + d->unary_begin[var]; }

/* The model; the draft is empty in any case. */
fgi_rc fgi_draft_finish(fgi_draft *d, double constant, fgi_model **out, fgi_error *err);

#endif
