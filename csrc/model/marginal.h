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

/* Sum of the largest magnitudes of all potentials: what rounding errors of a bound are relative to. */
double fgi_dual_magnitude(const fgi_model *m);

/* Mean over the factors of the range of their finite scores, 1 if that is 0: a scale for step sizes and penalties. */
double fgi_mean_range(const fgi_model *m);

/* A computed dual value, rounded up so that it is an upper bound whatever the rounding in its terms did. `magnitude` is
 * the sum of the absolute values that went into it. -INFINITY stays what it is. */
static inline double fgi_safe_bound(double value, double magnitude) { return value + 4e-15 * magnitude; }

/* The finite multipliers a caller may hand in: NaN or an infinity is refused. */
fgi_rc fgi_check_multipliers(const double *mu, int64_t n, fgi_error *err);

/* Entries of the dense messages of all factors (see fgi_solver_messages). */
int64_t fgi_dual_message_size(const fgi_model *m);

#endif
