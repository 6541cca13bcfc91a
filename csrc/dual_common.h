/* dual_common.h - what the message-passing solvers share: products of a pairwise factor with a message, and safe bounds. */
#ifndef FGI_DUAL_COMMON_H
#define FGI_DUAL_COMMON_H
#include "kernels.h"
#include "model.h"

/* out[y] = max over x of  theta_f(x, y) + h[x], from one variable of a pairwise factor to the other. `from` is 0 or 1, the position of
 * x in the factor. Dense tables through the kernels, implicit ones in linear time. scratch: 2 * (labels of x) + 1 doubles. */
void fgi_view_maxplus(const fgi_kernels *k, const fgi_view *v, int from, const double *h, double *out, double *scratch);

/* Sum of the largest magnitudes of all potentials: what rounding errors of a bound are relative to. */
double fgi_dual_magnitude(const fgi_model *m);

/* A computed dual value, rounded up so that it is an upper bound whatever the rounding in its terms did. `magnitude` is the
 * sum of the absolute values that went into it. -INFINITY stays what it is. */
static inline double fgi_safe_bound(double value, double magnitude) { return value + 4e-15 * magnitude; }

/* The finite multipliers a caller may hand in: NaN or an infinity is refused. */
fgi_rc fgi_check_multipliers(const double *mu, int64_t n, fgi_error *err);

/* Entries of the dense messages of all factors (see fgi_solver_messages). */
int64_t fgi_dual_message_size(const fgi_model *m);

#endif
