/* oracle/marginals.h - the oracle's second question: what every label of one variable of a factor has at best,
 *
 *     out[a] = max over the states y with y_k = a of  theta(y) - sum over q != k of delta_q(y_q)
 *
 * (max-marginals, a max-plus product with the table). The first question's answer is its maximum less delta_k. Messages
 * are on all labels here: that is what sweeps have, and a scan. Sums are added up in the order of the product, which
 * need not be that of fgi_oracle_answer. From outside: fgi_oracle_ask_marginals.
 *
 * The scratch must have room for the factor: made for as many labels and variables, and, for more than two variables,
 * fgi_oracle_reserve_sums. */
#ifndef FGI_MARGINALS_H
#define FGI_MARGINALS_H
#include "oracle/oracle.h"

/* Max-marginals of a pairwise factor, from the messages of its other variable. Returns the entries read. */
int64_t fgi_pair_marginals(
    const fgi_view *v, int32_t variable, const double *delta, fgi_oracle_scratch *w, double *out);
/* Max-marginals of any factor; delta[q] has a number for every label of variable q, cards[q] of them. That of
 * `variable` is not looked at. */
int64_t fgi_factor_marginals(const fgi_view *v, const int32_t *cards, int32_t variable, const double *const *delta,
    fgi_oracle_scratch *w, double *out);
/* Room for n numbers, as fgi_marginal_scratch says (model/marginal.h); 0 when memory is short. */
int fgi_oracle_reserve_sums(fgi_oracle_scratch *w, int64_t n);

/* Bounds on the max-marginals of all labels, and exact ones for labels that matter, of a sliced table (oracle/sliced.h)
 * with a positive weight. Messages and peaks must not change meanwhile, nor the scratch be used for anything else. */
typedef struct fgi_loose_marginals {
    const fgi_view *view;
    const fgi_sliced *slices;
    int32_t variable;
    const double *delta; /* the messages of the other variable */
    double *peaks;       /* what bounds leave for single numbers: fgi_sliced_cells of these messages */
    fgi_oracle_scratch *scratch;
    int64_t touched; /* entries read so far */
    int is_negated;  /* the scratch has the messages with the other sign */
} fgi_loose_marginals;

/* Upper bounds, from the `rows` smallest messages: what fgi_pair_marginals would give where fgi_loose_is_open says no.
 * Returns the cap that it wants, -INFINITY: all are exact. */
double fgi_loose_bounds(fgi_loose_marginals *m, int32_t rows, double *out);
int fgi_loose_is_open(const fgi_loose_marginals *m, double cap, int32_t label, double bound);
double fgi_loose_exact(fgi_loose_marginals *m, int32_t label);

#endif
