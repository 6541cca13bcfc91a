/*
 * fginfer_learn_crf.h - conditional random fields: the negative log-likelihood and its gradient on any set of
 * coordinates.
 *
 *     loss(w) = - sum_i weight_i log P_w(y_i | x_i),   P_w(y | x) = exp <w, phi(x, y)> / Z(x)
 *
 * Data and weights are those of fginfer_learn.h (FGI_LEARN_LABELS). Chains and forests are summed exactly. Graphs with
 * cycles take the pseudo-likelihood, the product of P(y_t | neighbours of t as in the truth, x), if the settings say
 * so. A taxonomy gives every inner node a weight vector of its own, beside those of the labels: a label's score is
 * the sum over its path. Inner nodes come first, node n_inner + y is label y, and w[f * (n_inner + K) + node].
 *
 * The data are borrowed, as in fginfer_learn.h. The layout of marginals ("cells"): K of every token, or one of every
 * candidate.
 */
#ifndef FGINFER_LEARN_CRF_H
#define FGINFER_LEARN_CRF_H
#include "fginfer_learn.h"

typedef struct fgi_crf_settings {
    int32_t threads; /* >= 1; results do not depend on it */
    int32_t pseudo;  /* 1: pseudo-likelihood, whatever the graph */
    int64_t memory;  /* bytes for marginals between a value and its gradient; beyond that they are computed again */
    int32_t n_inner; /* inner nodes of the taxonomy; 0: none */
    const int32_t *parent; /* n_inner + K: an inner node before the node itself, or -1; copied */
    const double *weight;  /* n_examples, finite and not negative; NULL: 1; copied */
    /* Mass of the answers that the sums of an example may leave out, below 1; 0: none. Labels that a certified bound
     * allows to drop are dropped, token by token, at every value anew; true labels stay. Not with candidate lists,
     * taxonomies, pseudo-likelihood, or several tables. */
    double prune;
} fgi_crf_settings;

typedef struct fgi_crf_info {
    int64_t passes;      /* examples summed over, in all, divided by their number */
    int64_t touched;     /* unary and pairwise entries read by sums */
    int64_t derivatives; /* partial derivatives computed */
    int64_t memory;      /* bytes held */
    int32_t kept;        /* 1: a gradient uses what its value left */
    /* What follows is about the last pass, with settings.prune. */
    int64_t summed; /* cells that were not left out */
    double lost;    /* the largest certified bound on the mass that an example lost */
    double slack;   /* the loss without pruning is at most this much larger */
} fgi_crf_info;

typedef struct fgi_crf fgi_crf;

/* FGI_UNSUPPORTED: a graph has a cycle and pseudo is 0. */
fgi_rc fgi_crf_create(const fgi_learn_data *data, const fgi_crf_settings *settings, fgi_crf **out, fgi_error *err);
void fgi_crf_free(fgi_crf *c);
int64_t fgi_crf_dimension(const fgi_crf *c);
int64_t fgi_crf_cells(const fgi_crf *c);
void fgi_crf_get_info(const fgi_crf *c, fgi_crf_info *info);
/* From here on, values, gradients and curvatures look at the clock before each block of examples, and are left at the
 * deadline (fgi_clock; INFINITY at first): they return FGI_OK, fgi_crf_is_late says so until the next deadline is set,
 * and what they have written means nothing. The value has to be asked for again. */
void fgi_crf_set_deadline(fgi_crf *c, double deadline);
int fgi_crf_is_late(const fgi_crf *c);
/* The loss at w, which is zero outside support[0 .. n) (ascending; NULL: anywhere). */
fgi_rc fgi_crf_value(fgi_crf *c, const double *w, const int64_t *support, int64_t n, double *loss, fgi_error *err);
/* gradient[k] = d loss / d w[set[k]] (NULL: all coordinates) at the w of the last value, which must not have changed.
 * */
fgi_rc fgi_crf_gradient(fgi_crf *c, const double *w, const int64_t *set, int64_t n, double *gradient, fgi_error *err);
/* The same with an estimate of the second derivatives: sums of x^2 P (1 - P), without what tokens do to each other; and
 * since rare events have P (1 - P) close to P, what the gradient is to change by (curvature[k] on entry, 0: nothing)
 * changes this as much, times x. */
fgi_rc fgi_crf_curvature(fgi_crf *c, const double *w, const int64_t *set, int64_t n, double *curvature, fgi_error *err);
/* log Z of every example, the score of its truth, the marginal probability of every cell, and of every pair of labels
 * on every edge (edges x K x K, zeros on entry; each may be NULL). The
 * truth's score is what `truth` of the data says. Undoes the last value. */
fgi_rc fgi_crf_marginals(
    fgi_crf *c, const double *w, double *log_z, double *truth_score, double *marginals, double *pairs, fgi_error *err);

/* The n best labelings of one chain, best first; ties go to the lowest labels, from the last token on. scores:
 * tokens x k, -INFINITY forbids; the pair (t, t + 1) scores by the k x k table number which[t] (tables NULL: 0).
 * labels: n x tokens, values: n; *found: how many there are. Takes 4 n k tokens bytes. */
fgi_rc fgi_crf_nbest(int64_t tokens, int64_t k, const double *scores, const double *tables, const int64_t *which,
    int64_t n, int32_t *labels, double *values, int64_t *found, fgi_error *err);

/* Stochastic gradient steps with the cumulative l1 penalty over examples[*next .. m), until past `deadline`
 * (fgi_clock): a baseline. penalty: what each weight has received, zeros at first; *due: what is due in all, 0 at
 * first. rate is that of this call. */
fgi_rc fgi_crf_sgd(fgi_crf *c, double *w, double *penalty, double *due, const int32_t *examples, int64_t m,
    int64_t *next, double rate, double l1, double deadline, fgi_error *err);

#endif
