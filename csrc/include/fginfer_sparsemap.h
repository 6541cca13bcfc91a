/*
 * fginfer_sparsemap.h - LP-SparseMAP: the quadratic program over the local polytope, and the derivative of its answer.
 *
 *     max  unary.mu + sum_f table_f.p_f - 1/2 |mu|^2      mu_i, p_f in simplices, p_f summing down to mu_i
 *
 * A structure (label counts and scopes) serves any number of threads and of problems. Problems are plain arrays: one
 * number for each label (variable by variable), one for each state of each factor (the last variable fastest), and one
 * for each label of each variable of each factor (multipliers). Nothing is kept between calls: what one call has found
 * is what the next may begin with.
 */
#ifndef FGINFER_SPARSEMAP_H
#define FGINFER_SPARSEMAP_H
#include "fginfer.h"

typedef struct fgi_sparse fgi_sparse;

/* Factor f touches the variables vars[var_begin[f] .. var_begin[f+1]), one or more and all different. */
fgi_rc fgi_sparse_create(int64_t n_vars, const int32_t *cards, int64_t n_factors, const int64_t *var_begin,
    const int32_t *vars, fgi_sparse **out, fgi_error *err);
void fgi_sparse_free(fgi_sparse *sparse);
int64_t fgi_sparse_labels(const fgi_sparse *sparse);
int64_t fgi_sparse_states(const fgi_sparse *sparse);
int64_t fgi_sparse_multipliers(const fgi_sparse *sparse);

typedef struct fgi_sparse_info {
    double rho;         /* penalty of the ADMM; <= 0 at the beginning: chosen */
    int64_t iterations; /* iterations of this call */
    int32_t converged;  /* both residuals are below the tolerance */
    int32_t polished;   /* the linear system on the supports was solved, so that the answer is exact up to rounding */
    double primal;      /* largest |M p - mu| */
    double dual;        /* rho times the largest change of mu */
    double value;       /* the objective's value */
} fgi_sparse_info;

/* At most `most` iterations from the states and multipliers given (states all zero: from scratch), until both residuals
 * are at most `tolerance`. Scores may be -INFINITY, which forbids. FGI_BAD_MODEL: a factor has no allowed state. */
fgi_rc fgi_sparse_solve(const fgi_sparse *sparse, const double *unary, const double *table, double tolerance,
    int64_t most, double *marginals, double *states, double *multipliers, fgi_sparse_info *info, fgi_error *err);

/* The derivative of gradient.mu with respect to unaries and tables, at the answer given (of which the supports count).
 * On them mu is linear in the scores: d mu is the projection of d unary onto the directions in which mu can move. */
fgi_rc fgi_sparse_adjoint(const fgi_sparse *sparse, const double *marginals, const double *states,
    const double *gradient, double *d_unary, double *d_table, fgi_error *err);

#endif
