/* model/marginal.h - the algebra of tables under messages: products of a factor with messages, max-marginals, and the
 * magnitudes that rounding errors and step sizes are relative to. */
#ifndef FGI_MARGINAL_H
#define FGI_MARGINAL_H
#include "base/kernels.h"
#include "model/model.h"

/* out[y] = max over x of  theta_f(x, y) + h[x], from one variable of a pairwise factor to the other. `from` is 0 or 1,
 * the position of x in the factor. Dense tables through the kernels, implicit ones in linear time. scratch: 2 * (labels
 * of x) + 1 doubles. */
void fgi_view_maxplus(const fgi_kernels *k, const fgi_view *v, int from, const double *h, double *out, double *scratch);

/* Max-marginals of a factor of any arity, given additive scores g[q] for its variables (those of position p are
 * ignored, g[p] may be NULL): out[x] = max over states y with y_p = x of  theta_f(y) + sum over q != p of g[q][y_q].
 * scratch: fgi_marginal_scratch(m) doubles, enough for every factor of the model (-1: does not fit in memory). */
void fgi_max_marginal(const fgi_kernels *k, const fgi_model *m, const fgi_view *v, int p, const double *const *g,
    double *out, double *scratch);
int64_t fgi_marginal_scratch(const fgi_model *m);

/* The same of a dense table by itself: last variable fastest, its variables' numbers of labels are cards[vars[q]].
 * scratch: twice the states of the table and two more; none is used for two variables. */
void fgi_table_marginal(const fgi_kernels *k, const double *values, double weight, int arity, const int32_t *vars,
    const int32_t *cards, int p, const double *const *g, double *out, double *scratch);

/* The largest score of term k: the unaries of variables, then the factors. */
double fgi_best_of_term(const fgi_model *m, int64_t k);

/* Sum over all potentials of the magnitude of the best of each: what the rounding of a bound is relative to. Entries
 * far below the best do not count, however large they are: a labeling that uses one is as far below the bound as that,
 * unless multipliers as large make up for it, and those show in the terms of the bound. */
double fgi_dual_magnitude(const fgi_model *m, struct fgi_pool *pool);

/* Mean over the factors of the range of their finite scores: a scale for step sizes and penalties. Where that is 0, the
 * magnitude of the model, or of its first unary score that is not 0; 1 if there is none. */
double fgi_mean_range(const fgi_model *m);

/* A computed dual value, rounded up so that it is an upper bound whatever the rounding in its terms did. `magnitude` is
 * the sum of the absolute values that went into it; each is the result of at most degree + arity + a few additions, of
 * a relative error of 2^-53 each. -INFINITY stays what it is. */
double fgi_safe_bound(const fgi_model *m, double value, double magnitude);

/* The finite multipliers a caller may hand in: NaN or an infinity is refused. */
fgi_rc fgi_check_multipliers(const double *mu, int64_t n, fgi_error *err);

/* Entries of the dense messages of all factors (see fgi_solver_messages), and where those of each factor begin. */
int64_t fgi_dual_message_size(const fgi_model *m);
void fgi_dual_message_begin(const fgi_model *m, int64_t *begin);

#endif
