/* model/reweight.h - sequential reweighted message passing (Kolmogorov 2015) at one variable: what the sweeps of
 * dual/srmp.c, gdmm/sweep.c and exact/node.c share. (On pairwise models it is TRW-S, for which dual/trws.c has a
 * program of its own: one message an edge instead of two, single precision, threads.)
 *
 * The state is the multipliers mu_fi (docs/mathematics.md, section 2). Variables are visited in their order, forwards
 * or backwards. At variable i
 *
 *     collect:  mu_fi(a) = max over y with y_i = a of theta_f(y) - sum of the other mu_fj(y_j)      (model/marginal.h)
 *               for each factor that has a variable visited earlier in this sweep: in the others nothing has changed
 *               since the sweep before collected here;
 *     sum:      hat_i = theta_i + sum_f mu_fi;
 *     share:    mu_fi -= (hat_i - max hat_i) / max(#factors with a variable still to come, #the other factors)
 *               for each factor that has a variable still to come.
 *
 * How messages are collected, what becomes of labels that cannot be used, and what is done with max hat_i, of which the
 * bound is made, is each caller's own. */
#ifndef FGI_REWEIGHT_H
#define FGI_REWEIGHT_H
#include "base/kernels.h"

/* One variable of one factor. */
typedef struct fgi_link {
    int64_t mu; /* offset of the message */
    int32_t factor;
    int16_t position;               /* position of the variable in the factor */
    uint8_t has_earlier, has_later; /* whether the factor has variables before and after this one */
} fgi_link;

/* The link of vars[position] with a factor on `vars` whose messages begin at `begin`, one variable after the other. */
fgi_link fgi_link_make(
    int32_t factor, const int32_t *vars, int32_t arity, int32_t position, const int32_t *cards, int64_t begin);

/* Has the factor a variable still to come in a sweep of this direction? And one that has been visited? */
static inline int fgi_link_goes_on(const fgi_link *l, int forward) { return forward ? l->has_later : l->has_earlier; }
static inline int fgi_link_has_changed(const fgi_link *l, int forward) { return fgi_link_goes_on(l, !forward); }

/* The part of the surplus that each factor with a variable still to come gets; 0: there is none. */
static inline double fgi_reweight_part(const fgi_link *links, int64_t n_links, int forward) {
    int64_t onwards = 0;
    for (int64_t e = 0; e < n_links; e++) onwards += fgi_link_goes_on(&links[e], forward);
    return onwards ? 1.0 / (double)(2 * onwards > n_links ? onwards : n_links - onwards) : 0;
}

/* hat = theta + the messages of the links, n labels; returns the maximum. */
double fgi_reweight_sum(const fgi_kernels *k, const double *theta, int32_t n, const double *mu, const fgi_link *links,
    int64_t n_links, double *restrict hat);
/* Hands out `surplus`: hat minus its maximum, 0 at labels whose messages are to stay as they are. */
void fgi_reweight_share(const fgi_kernels *k, const double *surplus, int32_t n, double *restrict mu,
    const fgi_link *links, int64_t n_links, int forward);

#endif
