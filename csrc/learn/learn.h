/* learn/learn.h - inside of the learning core: one learner, its scratch memory, working sets and joint features. */
#ifndef FGI_LEARN_H
#define FGI_LEARN_H
#include "base/arena.h"
#include "base/array.h"
#include "base/assert.h"
#include "base/meter.h"
#include "base/pool.h"
#include "base/util.h"
#include "fginfer_learn.h"
#include "learn/rows.h"
#include "oracle/forest.h"

enum { FGI_LEARN_LOOK = 16 }; /* examples between two looks at the clock, where one takes microseconds */

/* An answer kept for one example: a corner of its dual simplex. */
typedef struct fgi_answer {
    double alpha; /* bcfw: share of the simplex (the truth has the rest); dcd: the dual variable itself */
    double loss;
    int32_t length;
    int32_t labels[];
} fgi_answer;

/* Invariants (check in learn/working.c): answers are distinct, and not more than there is room for; alpha is a number,
 * not below 0. */
typedef struct fgi_working_set {
    fgi_answer **answers;
    int32_t count, capacity;
} fgi_working_set;

/* Per-thread memory of the decoders. */
typedef struct fgi_learn_scratch {
    double *scores; /* max tokens x K, or the alternatives of the longest example */
    double *best;   /* K: maxima of one message */
    int32_t *rows;  /* K: rows of the table that a message may need */
    double *table;  /* K x K: table of an edge with features, or the gathered table of two candidate lists */
    uint8_t *on;    /* 2 x K: sets with interactions */
    double *span;   /* projective trees: the chart */
    int32_t *span_back;
    struct fgi_products *products;     /* scores the labels: weights are borrowed for each decoding */
    struct fgi_oracle_scratch *oracle; /* tokens without edges and lists are one question each; NULL: others */
    int64_t touched;
} fgi_learn_scratch;

/* Proximal points (learn/proximal.c): `center` is where w is without the duals; NULL: at 0, as C is small. */
typedef struct fgi_proximal {
    double share; /* C of the blocks / C of the problem */
    double *center;
    double distance; /* distance of w from the last point, after the last pass */
    int32_t passes;  /* passes since the last point */
} fgi_proximal;

struct fgi_learner {
    fgi_learn_data data;
    fgi_arena arena;              /* what has its size from the beginning */
    int64_t dimension, unary;     /* weights in all; weights before the pairwise tables */
    int64_t max_tokens, max_rows; /* the largest number in one example */
    int decodes;
    double *w, *sum;   /* sparse: without the unary part, which is in rows */
    fgi_rows *rows;    /* NULL: w and sum are whole */
    double *row_bound; /* K: no entry of a row of the transition table is larger; NULL: tables too small to bother */
    int bounded;       /* row_bound holds for the weights that are being decoded */
    int tracked;       /* row_bound holds for w, and is kept so by fgi_learn_apply */
    fgi_learn_state state;
    fgi_proximal proximal;
    double average; /* gdmm: what `sum` gets of every change of a weight; 0: no averages */
    fgi_working_set *sets;
    double *gaps, *dual_loss; /* per example: last block gap; C * sum alpha * loss */
    /* forests of explicit edge lists, concatenated over examples (node t of example i at token_begin[i] + t) */
    fgi_forest_node *forest;
    /* a sparse vector under construction: dense values, the indices that were written, then the compact result */
    double *dense;
    int64_t *index;
    double *compact;
    int64_t n_index, capacity;
    /* A sparse learner has no dense values but a hash table of places in the vector, counted from 1; where in
     * the table each of them is; and (fgi_learn_psi_own) where its weight is in rows */
    int32_t *slot, *slot_of;
    int64_t slots;
    int64_t *place;
    double *label_sum; /* K: coefficients of one token */
    int32_t *label_list;
    int threads;
    fgi_pool *pool;
    fgi_learn_scratch *scratch; /* one per thread */
    /* answers of one batch */
    int32_t *batch_labels;
    int64_t *batch_end;
    int64_t batch_room, batch_count;
};

static inline int64_t fgi_learn_tokens(const fgi_learner *L, int32_t i) {
    fgi_assert(i >= 0 && i < L->data.n_examples);
    return L->data.token_begin[i + 1] - L->data.token_begin[i];
}

/* Edges of tokens, one list over all examples. Those of example i begin at edge_begin(i) and end at edge_begin(i + 1);
 * sets have pairs of labels, but no such edges. */
static inline int64_t fgi_learn_edge_begin(const fgi_learn_data *d, int64_t i) {
    fgi_assert(i >= 0 && i <= d->n_examples);
    if (d->edges == FGI_EDGES_NONE || d->kind != FGI_LEARN_LABELS) return 0;
    return d->edges == FGI_EDGES_CHAIN ? d->token_begin[i] - i : d->edge_begin[i];
}
/* How many the example has, and the first of them. */
static inline int64_t fgi_learn_count_edges(const fgi_learn_data *d, int64_t i, int64_t *first) {
    *first = fgi_learn_edge_begin(d, i);
    return fgi_learn_edge_begin(d, i + 1) - *first;
}
/* The tokens, counted within the example, that its e-th edge joins. */
static inline void fgi_learn_ends(const fgi_learn_data *d, int64_t first, int64_t e, int64_t *u, int64_t *v) {
    fgi_assert(e >= 0);
    *u = d->edges == FGI_EDGES_CHAIN ? e : d->edge_u[first + e];
    *v = d->edges == FGI_EDGES_CHAIN ? e + 1 : d->edge_v[first + e];
}

/* |x|^2 of entries begin .. end of sparse rows; value NULL: all are 1. */
static inline double fgi_learn_square(const double *value, int64_t begin, int64_t end) {
    double sum = 0;
    for (int64_t j = begin; j < end; j++) sum += value ? value[j] * value[j] : 1.0;
    return sum;
}

/* Loss of label l of the set of example i: of leaving it out though true, and of having it though false. */
static inline double fgi_learn_missed(const fgi_learn_data *d, int32_t i, int32_t l) {
    return (d->token_weight ? d->token_weight[i] : 1.0) * (d->cost ? d->cost[2 * (int64_t)l] : 1.0);
}
static inline double fgi_learn_spurious(const fgi_learn_data *d, int32_t i, int32_t l) {
    return (d->token_weight ? d->token_weight[i] : 1.0) * (d->cost ? d->cost[2 * (int64_t)l + 1] : 1.0);
}
/* What the empty set misses. */
static inline double fgi_learn_missed_all(const fgi_learn_data *d, int32_t i) {
    double sum = 0;
    for (int64_t a = d->truth_begin[i]; a < d->truth_begin[i + 1]; a++) sum += fgi_learn_missed(d, i, d->truth[a]);
    return sum;
}

/* The best dual value on the way from the truth, where it is 0, to a point with this sum of losses and |w|^2. */
static inline double fgi_learn_dual_toward(double loss, double square) {
    const double step = loss < square ? loss / square : 1.0;
    return loss > 0 ? step * (loss - 0.5 * step * square) : 0.0;
}

/* gdmm: a visit of an example begins, k-th of all; with averages every change until the next counts (k (k - 1) / 2)^2
 * against the mean weighted by k^3 (learn/means.c), sum_k k^3 w_k / (k (k + 1) / 2)^2 (weights k remember the first
 * passes, in which a large C overshoots, for too long). */
static inline void fgi_learn_begin_visit(fgi_learner *L, int averaging) {
    const double k = (double)++L->state.steps;
    L->average = averaging ? 0.25 * k * k * (k - 1) * (k - 1) : 0.0;
}
static inline void fgi_learn_shift(fgi_learner *L, int64_t at, double x) {
    L->w[at] += x;
    if (L->average != 0.0) L->sum[at] += L->average * x;
}

/* learn/data.c: ranges, order and finiteness of everything that was passed; the elimination orders of all edge lists,
 * *are_forests becomes 0 if one has a cycle. */
fgi_rc fgi_learn_check_data(const fgi_learn_data *d, fgi_error *err);
fgi_rc fgi_learn_build_forests(const fgi_learn_data *d, fgi_forest_node **out, int *are_forests);

/* learn/proximal.c */
/* *block_C: the C with which the blocks are to work (wanted, or 0: chosen by the features; C: no detour). */
fgi_rc fgi_proximal_start(fgi_learner *L, double C, double wanted, double *block_C);
int fgi_proximal_end_pass(fgi_learner *L, double relaxation); /* whether w was moved */
/* From here on the blocks have another share of C: the point stays, the duals were multiplied. */
void fgi_proximal_rescale(fgi_learner *L, double share);

/* Residuals of a splitting, summed over the visits of a few passes. */
typedef struct fgi_residuals {
    double apart, marginals; /* squares of M alpha_f - alpha_j, and of the alpha_j they are measured against */
    double moved, messages;  /* squares of the changes of alpha_j, and of lambda: both are times rho */
    double passes;
} fgi_residuals;

/* learn/balance.c: after a pass, the factor by which rho should change. */
double fgi_residuals_balance(fgi_residuals *r);
/* The state of a penalty for checkpoints, FGI_PENALTY_SIZE numbers; C is that of the blocks. */
void fgi_penalty_export(double rho, const fgi_residuals *r, double C, double *state);
void fgi_penalty_import(const double *state, double *rho, fgi_residuals *r, double *C);

/* learn/psi.c: joint features. A weighted sum of psi_i over answers becomes the sparse vector L->index, L->compact,
 * n_index. */
typedef struct fgi_learn_term {
    const int32_t *labels;
    int32_t length;
    double weight;
} fgi_learn_term;
fgi_rc fgi_learn_psi(fgi_learner *L, int32_t i, const fgi_learn_term *terms, int32_t n_terms);
/* The same for the products and steps that follow, in the learner's own weights. */
fgi_rc fgi_learn_psi_own(fgi_learner *L, int32_t i, const fgi_learn_term *terms, int32_t n_terms);
double fgi_learn_loss(const fgi_learner *L, int32_t i, const int32_t *labels, int32_t length);
int fgi_learn_is_truth(const fgi_learner *L, int32_t i, const int32_t *labels, int32_t length);
fgi_rc fgi_learn_check_answer(const fgi_learner *L, int32_t i, const int32_t *labels, int32_t length, fgi_error *err);
/* <w, sparse> and |sparse|^2 of the vector just made; w += step * sparse (and sum += step * factor * sparse if factor
 * != 0). */
void fgi_learn_products(const fgi_learner *L, double *dot, double *norm);
void fgi_learn_apply(fgi_learner *L, double step, double factor);

/* learn/decode.c, learn/viterbi.c, learn/sets.c, learn/parse.c: oracles. */
/* Whether messages may skip rows of the transition table: one table for all edges, all labels allowed, and large enough
 * that looking for the rows costs little beside reading them. */
static inline int fgi_learn_prunes(const fgi_learn_data *d) {
    return d->kind == FGI_LEARN_LABELS && d->edges != FGI_EDGES_NONE && !d->edge_row && !d->choice_begin &&
        d->n_labels >= 96;
}
/* A dense vector, and the learner's own, which is good until the next update. */
static inline fgi_learn_vector fgi_learn_whole(const fgi_learner *L, const double *w) {
    return (fgi_learn_vector){w, NULL, NULL, NULL, NULL, w + L->unary};
}
static inline fgi_learn_vector fgi_learn_own(const fgi_learner *L) {
    if (!L->rows) return fgi_learn_whole(L, L->w);
    return (fgi_learn_vector){NULL, L->rows->begin, L->rows->end, L->rows->label, L->rows->w, L->w};
}
/* <w, the sparse vector just made>. */
double fgi_learn_dot(const fgi_learner *L, const fgi_learn_vector *w);
/* Bounds of the rows of a transition table, for the decodes that follow. */
void fgi_learn_bound_rows(fgi_learner *L, const double *pairs);
const double *fgi_learn_edge_table(const fgi_learner *L, const double *pairs, int64_t edge, fgi_learn_scratch *scratch);
fgi_rc fgi_learn_decode_batch(fgi_learner *L, const fgi_learn_vector *w, double loss_factor, const int32_t *examples,
    int64_t m, int32_t *answers, int64_t *answer_end, double *value, fgi_error *err);
double fgi_learn_decode_forest(
    const fgi_learner *L, const double *pairs, int32_t i, fgi_learn_scratch *scratch, int32_t *answer);
void fgi_learn_fill_scores(
    const fgi_learner *L, const fgi_learn_vector *w, double loss_factor, int32_t i, fgi_learn_scratch *scratch);
double fgi_learn_parse(const fgi_learner *L, int32_t i, fgi_learn_scratch *scratch, int32_t *heads);
double fgi_learn_decode_set(
    const fgi_learner *L, const double *pairs, fgi_learn_scratch *scratch, int32_t *answer, int32_t *length);
fgi_rc fgi_learn_scratch_init(fgi_learner *L, fgi_learn_scratch *scratch);
void fgi_learn_scratch_clear(fgi_learn_scratch *scratch);
/* Labels allowed at global token t: count, and the list (NULL: 0 .. count-1). */
static inline int32_t fgi_learn_allowed(const fgi_learner *L, int64_t t, const int32_t **list) {
    const fgi_learn_data *d = &L->data;
    if (!d->choice_begin) {
        *list = NULL;
        return d->n_labels;
    }
    *list = d->choice + d->choice_begin[t];
    return (int32_t)(d->choice_begin[t + 1] - d->choice_begin[t]);
}

/* learn/working.c */
fgi_answer *fgi_learn_find_answer(fgi_learner *L, int32_t i, const int32_t *labels, int32_t length);
fgi_answer *fgi_learn_add_answer(fgi_learner *L, int32_t i, const int32_t *labels, int32_t length, double loss);
void fgi_learn_drop_answer(fgi_learner *L, int32_t i, int32_t position);

/* learn/means.c: a step begins, counted in state.steps; what `sum` gets of a change of the weights. */
void fgi_learn_begin_step(fgi_learner *L, const fgi_learn_settings *settings);
double fgi_learn_mean_factor(const fgi_learner *L, const fgi_learn_settings *settings);

/* The block updates, one file a family. `labels` may be NULL: use the answers kept only. */
fgi_rc fgi_learn_update_bcfw(
    fgi_learner *L, const fgi_learn_settings *settings, int32_t i, const int32_t *labels, int32_t length);
fgi_rc fgi_learn_update_dcd(
    fgi_learner *L, const fgi_learn_settings *settings, int32_t i, const int32_t *labels, int32_t length);
fgi_rc fgi_learn_update_online(
    fgi_learner *L, const fgi_learn_settings *settings, int32_t i, const int32_t *labels, int32_t length);

#endif
