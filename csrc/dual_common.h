/* dual_common.h - what the message-passing solvers share: products of a pairwise factor with a message, and safe bounds. */
#ifndef FGI_DUAL_COMMON_H
#define FGI_DUAL_COMMON_H
#include "kernels.h"
#include "model.h"
#include "solver.h"

/* out[y] = max over x of  theta_f(x, y) + h[x], from one variable of a pairwise factor to the other. `from` is 0 or 1, the position of
 * x in the factor. Dense tables through the kernels, implicit ones in linear time. scratch: 2 * (labels of x) + 1 doubles. */
void fgi_view_maxplus(const fgi_kernels *k, const fgi_view *v, int from, const double *h, double *out, double *scratch);

/* Max-marginals of a factor of any arity, given additive scores g[q] for its variables (those of position p are ignored, g[p] may be NULL):
 *     out[x] = max over states y with y_p = x of  theta_f(y) + sum over q != p of g[q][y_q].
 * scratch: fgi_marginal_scratch(m) doubles, enough for every factor of the model (-1: does not fit in memory). */
void fgi_max_marginal(const fgi_kernels *k, const fgi_model *m, const fgi_view *v, int p, const double *const *g, double *out, double *scratch);
int64_t fgi_marginal_scratch(const fgi_model *m);

/* Sum of the largest magnitudes of all potentials: what rounding errors of a bound are relative to. */
double fgi_dual_magnitude(const fgi_model *m);

/* Mean over the factors of the range of their finite scores, 1 if that is 0: a scale for step sizes and penalties. */
double fgi_mean_range(const fgi_model *m);

/* A computed dual value, rounded up so that it is an upper bound whatever the rounding in its terms did. `magnitude` is the
 * sum of the absolute values that went into it. -INFINITY stays what it is. */
static inline double fgi_safe_bound(double value, double magnitude) { return value + 4e-15 * magnitude; }

/* What a sweep adds up, and what is remembered between sweeps. */
typedef struct fgi_progress {
    fgi_sum bound;            /* of the sweep under way: maxima taken out of nodes and factors */
    double magnitude;         /* their absolute values, and those of the potentials */
    double model_magnitude;
    fgi_sum decoded;          /* score of the labeling under way */
    double last_decoded;
    double stall_bound;       /* bound at the start of the window in which progress is judged */
    int64_t stall_begin;
} fgi_progress;

void fgi_progress_init(fgi_progress *p);
/* Starts a sweep. */
void fgi_progress_begin(fgi_progress *p, double constant);
static inline void fgi_progress_take(fgi_progress *p, double top) {
    fgi_sum_add(&p->bound, top);
    p->magnitude += fabs(top);
}
/* Hands a decoded labeling to fgi_solver_consider, unless the sum made on the way shows that it is no better than the best or the same
 * as the last one. */
void fgi_progress_consider(fgi_solver *solver, fgi_progress *p, const int32_t *labels);
/* The bound of the sweep just finished goes to the solver, and so does the news that there is none to gain any more: less than
 * 1e-11 per iteration, relative to max(1, |bound|), over 20 iterations. */
void fgi_progress_report(fgi_solver *solver, fgi_progress *p);

/* After a warm start: judge progress anew, and go on if the method had stopped. */
void fgi_progress_restart(fgi_solver *solver, fgi_progress *p);

/* The finite multipliers a caller may hand in: NaN or an infinity is refused. */
fgi_rc fgi_check_multipliers(const double *mu, int64_t n, fgi_error *err);

/* Entries of the dense messages of all factors (see fgi_solver_messages). */
int64_t fgi_dual_message_size(const fgi_model *m);

#endif
