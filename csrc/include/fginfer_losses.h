/*
 * fginfer_losses.h - losses over many labels scored by inner products, z_k = <row_k, x>, and their sparse gradients.
 *
 * For a sample x with positive labels P (weights q, 1 by default) and negative ones N:
 *
 *     FGI_LOSS_ENTROPY   sum over k in P of q_k (log sum_j exp z_j - z_k)
 *     FGI_LOSS_MARGIN    max over alpha of <z + 1_N, alpha> - mu/2 |alpha|^2, alpha >= 0 on N, <= 0 on P, the two sums
 *                        cancel and are at most 1: [max over j in N, k in P of z_j - z_k + 1]_+ smoothed
 *     FGI_LOSS_TRIPLET   sum over k in P, j in N of q_k [z_j - z_k + 1]_+
 *
 * computed from all scores (exact), from the positives and a uniform sample of the others, from the labels that a
 * search finds (Yen, "Sublinear methods for large-scale learning and inference", 2018, Algorithm 10), or from searches
 * in blocks of the coordinates that are joined by messages (Algorithm 11).
 */
#ifndef FGINFER_LOSSES_H
#define FGINFER_LOSSES_H
#include "fginfer_search.h"

typedef enum fgi_loss_kind { FGI_LOSS_ENTROPY = 0, FGI_LOSS_MARGIN = 1, FGI_LOSS_TRIPLET = 2 } fgi_loss_kind;
typedef enum fgi_loss_method {
    FGI_LOSS_EXACT = 0,
    FGI_LOSS_SAMPLED = 1,
    FGI_LOSS_SEARCH = 2,
    FGI_LOSS_DECOMPOSED = 3
} fgi_loss_method;
/* What the scores of labels are taken for that were not looked at. */
typedef enum fgi_loss_rest {
    FGI_REST_OMIT = 0, /* as if there were no such labels: a lower bound */
    FGI_REST_ZERO = 1, /* 0, as in the paper: no bound */
    FGI_REST_LAST = 2, /* the lowest score found: an upper bound if the search was exact */
    /* mean + variance / 2 of their scores, so that their exponentials have the right sum if the scores are normally
     * distributed; from `total` and `square`, in O(d^2): no bound */
    FGI_REST_MOMENTS = 3
} fgi_loss_rest;
/* What a value is, compared with the loss at all scores. */
typedef enum fgi_loss_claim {
    FGI_VALUE_EXACT = 0,
    FGI_VALUE_UPPER = 1,
    FGI_VALUE_LOWER = 2,
    FGI_VALUE_NEITHER = 3
} fgi_loss_claim;

typedef struct fgi_loss_settings {
    int32_t loss, method;
    double mu;          /* smoothing of the margin loss, > 0 */
    int32_t want;       /* labels that every search is asked for, or in the sample */
    int32_t probes;     /* clusters a search visits; 0: exact searches */
    int32_t candidates; /* > 0: searches by codes in their place, see fgi_search_query */
    int32_t rest;
    /* Algorithm 11 */
    int32_t blocks;   /* blocks that the coordinates are cut into, as equal as possible */
    int32_t rounds;   /* rounds of messages */
    int32_t keep;     /* besides those with large gradients, so many labels with the largest sums of the scores found */
    double threshold; /* gradients of a block above this are large */
    int32_t joined; /* 1: the loss at the exact scores of the labels with messages; 0: the mean of the blocks' losses */
    /* 1, with joined: one index over all columns whose parts are the blocks, searched by codes in one pass
     * (fgi_search_parts). Every block then knows its scores of all labels that some block has found. */
    int32_t together;
    int32_t threads;
    uint64_t seed;
} fgi_loss_settings;
void fgi_loss_defaults(fgi_loss_settings *settings); /* the exact cross-entropy */

/* One vector of n scores: value, and gradient (n; NULL: not wanted). positives: ascending; weights: NULL is 1. */
fgi_rc fgi_loss_of_scores(const fgi_loss_settings *settings, int64_t n, const double *scores, int64_t n_positives,
    const int32_t *positives, const double *weights, double *value, double *gradient, fgi_error *err);

typedef struct fgi_loss_batch {
    int64_t n, labels;
    int32_t d;
    const float *rows; /* labels x d */
    const float *x;    /* n x d */
    const int64_t *positive_begin;
    const int32_t *positives; /* ascending for each sample, one at least; and a label that is none, but for entropy */
    const double *weights;    /* weights of the positives; NULL: 1 */
    const float *total;       /* FGI_REST_MOMENTS: the sum of the rows (d), and of row row' (d x d) */
    const float *square;
    const float *scores; /* exact: n x labels; else NULL */
    /* search: one over the rows; decomposed: one for each block of columns, or, together, one; else NULL */
    fgi_search *const *indexes;
} fgi_loss_batch;

/* Columns of a block: begin[0] = 0 .. begin[blocks] = d. */
void fgi_loss_blocks(int32_t d, int32_t blocks, int32_t *begin);

typedef struct fgi_losses fgi_losses;
/* Copies the settings; rows, samples and indexes stay the caller's, and come with every batch. */
fgi_rc fgi_losses_create(const fgi_loss_settings *settings, fgi_losses **out, fgi_error *err);
void fgi_losses_free(fgi_losses *l);
/* Values and claims of a batch, n each. The sparse gradients with respect to the scores stay in `l`. */
fgi_rc fgi_losses_run(fgi_losses *l, const fgi_loss_batch *b, double *values, int32_t *claims, fgi_error *err);
/* The gradients of the last batch: n + 1 offsets, labels (the positives first) and values, without zeros. */
int64_t fgi_losses_gradient(const fgi_losses *l, const int64_t **begin, const int32_t **labels, const float **values);
/* And the gradient of every label that was not looked at, for each sample: 0 with FGI_REST_OMIT. */
const double *fgi_losses_rest(const fgi_losses *l);
int64_t fgi_losses_touched(const fgi_losses *l); /* scores computed since creation, besides those of the indexes */
/* One step of gradient descent with the gradients listed for the last batch: x_gradient (n x d; NULL: not wanted) gets
 * their products with the rows as they were, then rows -= step * gradient' x. changed gets the rows' labels, ascending
 * (as many as there are gradient entries at most); returns how many. */
int64_t fgi_losses_step(
    fgi_losses *l, const fgi_loss_batch *b, float *rows, double step, float *x_gradient, int32_t *changed);

#endif
