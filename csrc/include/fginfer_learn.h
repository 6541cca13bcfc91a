/*
 * fginfer_learn.h - structured learning: joint features, loss-augmented decoding and the inner loops of the solvers.
 *
 * One scale for every solver (docs/mathematics.md, section 5):
 *
 *     P(w) = 1/2 |w|^2 + C sum_i H_i(w),    H_i(w) = max_y [ loss_i(y) - <w, psi_i(y)> ],
 *     psi_i(y) = phi_i(truth) - phi_i(y)
 *
 * An *answer* y is a short list of integers: labels of the tokens (FGI_LEARN_LABELS), chosen alternatives
 * (FGI_LEARN_CHOICES) or the set of labels that are on, ascending (FGI_LEARN_SETS).
 *
 * Weights are one vector, dense or (fgi_learn_vector) with its unary part by rows of features:
 *   LABELS   w[f * K + y]  for feature f and label y, then, per pairwise feature g, a K x K table at
 *                          d*K + g*K*K + a*K + b
 *   CHOICES  w[f]
 *   SETS     w[f * K + l]  for feature f and label l, then (if pairwise) a K x K table, of which entries l < m are used
 *
 * The data are *borrowed*: the caller keeps every array alive and unchanged while the learner lives.
 */
#ifndef FGINFER_LEARN_H
#define FGINFER_LEARN_H
#include "fginfer.h"

typedef enum fgi_learn_kind {
    FGI_LEARN_LABELS = 0,  /* tokens with labels 0..K-1 and edges between tokens; multiclass is one token an example */
    FGI_LEARN_CHOICES = 1, /* each token picks one of its own alternatives, each with its own features */
    FGI_LEARN_SETS = 2     /* multilabel: any subset of the labels 0..K-1 */
} fgi_learn_kind;

typedef enum fgi_learn_edges {
    FGI_EDGES_NONE = 0,
    FGI_EDGES_CHAIN = 1, /* token t to t+1; for SETS: every pair of labels */
    FGI_EDGES_LIST = 2   /* LABELS: edge_begin, edge_u, edge_v */
} fgi_learn_edges;

typedef struct fgi_learn_data {
    int32_t kind;  /* fgi_learn_kind */
    int32_t edges; /* fgi_learn_edges */
    int64_t n_examples;
    const int64_t *token_begin; /* n_examples + 1; SETS: one token an example */
    int64_t n_features;
    int32_t n_labels;         /* CHOICES: 0 */
    int32_t projective;       /* CHOICES: 1 decodes projective trees: token t's choice c is its head, 0 the root */
    const int64_t *row_begin; /* CSR rows of features: one a token, or (CHOICES) one an alternative */
    const int32_t *feature;
    const double *value;         /* NULL: all 1 */
    const int32_t *truth;        /* one a token; SETS: truth_begin .. */
    const int64_t *truth_begin;  /* SETS: n_examples + 1 */
    const int64_t *choice_begin; /* LABELS: candidate labels of token t in `choice`, ascending (NULL: all labels);
                          CHOICES: the alternatives of token t are rows choice_begin[t] .. choice_begin[t+1] */
    const int32_t *choice;
    const int64_t *edge_begin; /* FGI_EDGES_LIST: n_examples + 1 */
    const int32_t *edge_u;     /* token positions inside the example */
    const int32_t *edge_v;
    int64_t n_edge_features; /* >= 1 with edges; 1 and edge_row NULL: one indicator table */
    const int64_t *edge_row; /* CSR over edges (chains: over consecutive tokens, in order); NULL: the one indicator */
    const int32_t *edge_feature;
    const double *edge_value;   /* NULL: all 1 */
    const double *token_weight; /* loss weight of a token; NULL: 1 */
    const double *cost; /* LABELS: K x K, cost[truth][answer], zero diagonal; SETS: K x 2, of missing a label and of
                           one too many; NULL: 0/1 */
    int32_t sparse;     /* LABELS: the learner keeps its unary weights by rows, made when first touched, instead of
                           dense: for passes and decoding of what is here, not for gdmm */
} fgi_learn_data;

/* Weights to decode with. Of a dense vector the rest is not looked at. */
typedef struct fgi_learn_vector {
    const double *dense;        /* all weights; NULL: as follows */
    const int64_t *begin, *end; /* n_features: row f is begin[f] .. end[f] of label and value */
    const int32_t *label;       /* ascending in a row; a row with all labels is read as a dense one */
    const double *value;
    const double *pairs; /* the weights after the unary ones */
} fgi_learn_vector;

typedef struct fgi_learner fgi_learner;

/* Checks the data (ranges, order, finiteness) and makes a learner with w = 0. */
fgi_rc fgi_learn_create(const fgi_learn_data *data, int32_t threads, fgi_learner **out, fgi_error *err);
void fgi_learn_free(fgi_learner *L);
int64_t fgi_learn_dimension(const fgi_learner *L);
/* 1 when the core finds best answers; 0: sets with interactions (local search) and graphs with cycles (not decoded
 * here). */
int fgi_learn_decodes(const fgi_learner *L);
/* The learner's own vectors of `dimension` doubles: the iterate, and the sum from which averages are made. Who writes
 * to them calls fgi_learn_set_state or fgi_learn_refresh before the next pass. Of a sparse learner: the weights after
 * the unary ones, of which there are dimension - n_features * K. */
double *fgi_learn_weights(fgi_learner *L);
double *fgi_learn_averages(fgi_learner *L);
/* Sparse learners: how many unary weights there are, and copies of them (begin: n_features + 1). */
int64_t fgi_learn_rows_size(const fgi_learner *L);
void fgi_learn_rows_export(const fgi_learner *L, int64_t *begin, int32_t *label, double *weight, double *average);
/* The reverse, on a fresh learner; labels ascend in every row. */
fgi_rc fgi_learn_rows_import(fgi_learner *L, const int64_t *begin, const int32_t *label, const double *weight,
    const double *average, fgi_error *err);

typedef struct fgi_learn_state {
    int64_t steps; /* block updates done: the k of weighted averages */
    int64_t oracle_calls;
    int64_t entries_touched; /* unary and pairwise table entries read by oracles */
    double squared_norm;     /* |w|^2, recomputed by fgi_learn_refresh */
    double dual_loss;        /* sum over blocks of alpha * loss (times C): dual = dual_loss - |w|^2 / 2 */
    double gap_estimate;     /* bcfw: sum of the last seen block gaps */
    double dual_square;      /* dcd: sum over blocks of (sum of alpha)^2 */
    int64_t working_set;     /* answers kept */
} fgi_learn_state;

/* What is counted, and, from a checkpoint, how it goes on. */
void fgi_learn_get_state(const fgi_learner *L, fgi_learn_state *state);
void fgi_learn_set_state(fgi_learner *L, const fgi_learn_state *state);
/* Counts further calls, of oracles outside the core; how many there have been in all. */
int64_t fgi_learn_count(fgi_learner *L, int64_t calls);
/* Recomputes |w|^2 and the dual sums from what they stand for: rounding does not build up over passes. */
void fgi_learn_refresh(fgi_learner *L, double C);

/* Answers: for each of m examples, in parallel, argmax of <w, phi> + loss_factor * loss. Written one after the other
 * into `answers` (room for answer_size integers), ends in answer_end[m], score of the answer including the loss in
 * value[m] (NULL: not wanted). */
fgi_rc fgi_learn_decode(fgi_learner *L, const fgi_learn_vector *w, double loss_factor, const int32_t *examples,
    int64_t m, int32_t *answers, int64_t *answer_end, double *value, fgi_error *err);
int64_t fgi_learn_answer_size(const fgi_learner *L, const int32_t *examples, int64_t m);
/* <w, phi_i(answer)>, loss_i(answer). */
fgi_rc fgi_learn_score(fgi_learner *L, const fgi_learn_vector *w, int32_t example, const int32_t *answer,
    int32_t length, double *score, double *loss, fgi_error *err);
/* loss_i - <w, psi_i> of m answers as written by fgi_learn_decode: at the argmax, the structured hinge losses H_i(w).
 */
fgi_rc fgi_learn_hinges(fgi_learner *L, const fgi_learn_vector *w, const int32_t *examples, int64_t m,
    const int32_t *answers, const int64_t *answer_end, double *hinge, fgi_error *err);
/* plane += weight * psi_i(answer) for m examples with answers as written by fgi_learn_decode; *loss += weight * losses.
 */
fgi_rc fgi_learn_add_psi(fgi_learner *L, const int32_t *examples, int64_t m, const int32_t *answers,
    const int64_t *answer_end, double weight, double *plane, double *loss, fgi_error *err);
/* Token scores of one example under w, (tokens) x K, or one per alternative; for decoding outside the core. */
fgi_rc fgi_learn_token_scores(
    fgi_learner *L, const fgi_learn_vector *w, int32_t example, double loss_factor, double *scores, fgi_error *err);

typedef enum fgi_learn_method {
    FGI_LEARN_BCFW = 0,
    FGI_LEARN_DCD = 1,
    FGI_LEARN_PERCEPTRON = 2,
    FGI_LEARN_MIRA = 3,
    FGI_LEARN_SSG = 4
} fgi_learn_method;

/* Averages of the iterates for which `sum` is kept; csrc/learn/means.c has the formulas. */
typedef enum fgi_learn_mean {
    FGI_MEAN_NONE = 0,
    FGI_MEAN_USUAL = 1,   /* bcfw, ssg: weighted by the number of the step; perceptron, mira: uniform */
    FGI_MEAN_UNIFORM = 2, /* the uniform mean of all iterates */
    FGI_MEAN_SUFFIX = 3   /* the mean of the iterates since the last step that was a power of two */
} fgi_learn_mean;

typedef struct fgi_learn_settings {
    int32_t method;      /* fgi_learn_method */
    int32_t averaging;   /* fgi_learn_mean */
    int32_t predefined;  /* bcfw: steps 2n / (k + 2n) instead of line searches */
    int32_t max_answers; /* bcfw: largest working set of one example */
    int32_t batch;       /* answers found at the same w before their updates; >= 1 */
    int32_t brute_force; /* messages read the whole transition table instead of the rows that can matter */
    double C;
    double threshold; /* dcd: an answer joins the working set when it is violated by more than this */
} fgi_learn_settings;

/* Visits examples[*next .. m) in order: decode, then update; stops after the first batch past `deadline` (fgi_clock).
 */
fgi_rc fgi_learn_pass(fgi_learner *L, const fgi_learn_settings *settings, const int32_t *examples, int64_t m,
    int64_t *next, double deadline, fgi_error *err);
/* The same without decoding: re-optimises over the answers kept (bcfw, dcd). */
fgi_rc fgi_learn_cached_pass(fgi_learner *L, const fgi_learn_settings *settings, const int32_t *examples, int64_t m,
    int64_t *next, double deadline, fgi_error *err);
/* One update with an answer found elsewhere (fgi_learn_count). */
fgi_rc fgi_learn_offer(fgi_learner *L, const fgi_learn_settings *settings, int32_t example, const int32_t *answer,
    int32_t length, fgi_error *err);
/* Working sets, for checkpoints: per kept answer its example, length, alpha and loss; labels concatenated; per
 * example its last gap and its part of the dual loss. */
void fgi_learn_export_size(const fgi_learner *L, int64_t *n_answers, int64_t *n_labels);
void fgi_learn_export(const fgi_learner *L, int32_t *example, int32_t *length, double *alpha, double *loss,
    int32_t *labels, double *gaps, double *block_loss);
fgi_rc fgi_learn_import(fgi_learner *L, int64_t n_answers, const int32_t *example, const int32_t *length,
    const double *alpha, const double *loss, const int32_t *labels, const double *gaps, const double *block_loss,
    fgi_error *err);
/* Last seen block gaps, n_examples of them (bcfw); for sampling by gap. */
const double *fgi_learn_gaps(const fgi_learner *L);

/* ---- gdmm ----------------------------------------------------------------------------------------------------
 * Dual-decomposed training with factorwise oracles (Yen et al. 2016, Algorithm 1 with Algorithm 4): unigram and
 * pairwise blocks of LABELS problems, any graph. No structured oracle is called; on graphs with cycles the loss is its
 * LP relaxation. */

typedef struct fgi_learn_gdmm_settings {
    double C;
    double block_C;     /* C of the proximal subproblems; 0: chosen by the features, >= C: none */
    double rho;         /* penalty, on the scale of C; 0 chooses 1 / C */
    int32_t fixed_rho;  /* keep rho; 0: it is balanced */
    double eta;         /* multiplier step in units of the classical one; 0 never steps: soft constraints (soft-bcfw) */
    int32_t partitions; /* unigram oracles look at one of so many parts of the labels, drawn at random; 1: all */
    int32_t brute_force; /* pairwise oracles scan the table instead of walking sorted lists */
    int32_t sorted; /* label sets: the joint oracle walks a sorted table instead of going by bounds of the labels */
    uint64_t seed;
    int32_t
        batch; /* unigram oracles of so many examples run at the same weights, shared by the threads; 0 and 1: none */
    int32_t averaging; /* keep the sum for weighted averages over the visits (not with away) */
    int32_t search;    /* tokens: unigram oracles ask a search index over all features (fginfer_search.h) */
    int32_t probes;    /* clusters that it visits once most labels have weights; 0: it is exact (in single precision) */
    int32_t away;      /* > 0: away-step Frank-Wolfe (Algorithm 2) over blocks of so many examples; 0: Algorithm 4 */
} fgi_learn_gdmm_settings;

typedef struct fgi_learn_gdmm_info {
    int64_t unary_calls, pair_calls;     /* oracle calls */
    int64_t unary_touched, pair_touched; /* label scores and table entries read by them */
    double active_labels, active_states; /* mean size of the active sets, tokens and edges */
    double loss_estimate;                /* sum of the factorwise hinge losses seen in the last visits */
    double squared_norm;
    double rho;
    int64_t memory;         /* bytes held by messages, active sets and sorted lists */
    int64_t unary_products; /* multiplications of the unigrams' inner products: labels times features */
} fgi_learn_gdmm_info;

typedef struct fgi_learn_gdmm fgi_learn_gdmm;

/* The learner keeps the weights; it must outlive the gdmm (fgi_learn_gdmm_free alone may come later). */
fgi_rc fgi_learn_gdmm_create(
    fgi_learner *L, const fgi_learn_gdmm_settings *settings, fgi_learn_gdmm **out, fgi_error *err);
void fgi_learn_gdmm_free(fgi_learn_gdmm *g);
/* Visits examples[*next .. m): every block of an example once, then its multipliers. With away > 0 these are blocks of
 * examples: b has the examples b * away and on. The deadline then also cuts a block short; the next pass must go on
 * with it. */
fgi_rc fgi_learn_gdmm_pass(
    fgi_learn_gdmm *g, const int32_t *examples, int64_t m, int64_t *next, double deadline, fgi_error *err);
/* After every pass; a proximal point may move, and the weights with it. */
fgi_rc fgi_learn_gdmm_end_pass(fgi_learn_gdmm *g, fgi_error *err);
/*
 * Upper bounds on the LP-relaxed losses (so on the exact ones) of examples[*next .. m) at w (NULL: at the iterate),
 * from factorwise oracles and the iterate's multipliers; where there are cycles these are improved for the occasion.
 * Stops at the deadline after at least one; w is borrowed until *next = m or the next pass. 1/2 |w|^2 + C * their sum
 * bounds the objective.
 */
fgi_rc fgi_learn_gdmm_losses(fgi_learn_gdmm *g, double *w, const int32_t *examples, int64_t m, int64_t *next,
    double deadline, double *loss, fgi_error *err);
/*
 * dual: value of a consistent point made from the iterate (or on the way to it from the truth): a lower bound on the
 * relaxed optimum. infeasibility: largest |M alpha_f - alpha_j| / C of the iterate. *done = 0: the deadline came first.
 */
fgi_rc fgi_learn_gdmm_dual(
    fgi_learn_gdmm *g, double deadline, double *dual, double *infeasibility, int32_t *done, fgi_error *err);
void fgi_learn_gdmm_get_info(const fgi_learn_gdmm *g, fgi_learn_gdmm_info *info);
/* rho, the residuals that balance it, and the C of the blocks (0: as it began), for checkpoints. */
enum { FGI_PENALTY_SIZE = 7 };
void fgi_learn_gdmm_get_penalty(const fgi_learn_gdmm *g, double *state);
void fgi_learn_gdmm_set_penalty(fgi_learn_gdmm *g, const double *state);
/* The proximal point of a learner under gdmm, of `dimension` doubles (NULL: none), and how far w is from it. */
double *fgi_learn_center(fgi_learner *L);
void fgi_learn_center_state(const fgi_learner *L, double *distance, int32_t *passes);
void fgi_learn_set_center_state(fgi_learner *L, double distance, int32_t passes);
/* State for checkpoints: sizes[4] = labels of supports, values, states, losses; then the arrays of those sizes. */
void fgi_learn_gdmm_export_size(const fgi_learn_gdmm *g, int64_t *sizes);
void fgi_learn_gdmm_export(const fgi_learn_gdmm *g, int32_t *support_size, int32_t *labels, double *values,
    int32_t *state_size, int32_t *states, double *betas, double *losses, uint64_t *rng);
fgi_rc fgi_learn_gdmm_import(fgi_learn_gdmm *g, const int32_t *support_size, const int32_t *labels,
    const double *values, const int32_t *state_size, const int32_t *states, const double *betas, const double *losses,
    uint64_t rng, const int64_t *work, fgi_error *err); /* work: calls, entries and products, as in the info */
/* Algorithm 2 has more state, the vertices of each block: their number (and labels of each), weights and labels. */
int64_t fgi_learn_gdmm_away_size(const fgi_learn_gdmm *g, int64_t block, int64_t *width);
void fgi_learn_gdmm_export_away(const fgi_learn_gdmm *g, double *weights, int32_t *vertices);
fgi_rc fgi_learn_gdmm_import_away(
    fgi_learn_gdmm *g, const int32_t *counts, const double *weights, const int32_t *vertices, fgi_error *err);
/* Algorithm 2 also has the step that a deadline cut short, if any: 4 whole numbers, 5 reals, and the arrays of the
 * sizes returned. It is imported last. */
int64_t fgi_learn_gdmm_step_size(
    const fgi_learn_gdmm *g, int64_t *width); /* slopes; width: labels of the greedy vertex */
void fgi_learn_gdmm_export_step(
    const fgi_learn_gdmm *g, int64_t *place, double *values, double *slopes, int32_t *greedy);
fgi_rc fgi_learn_gdmm_import_step(fgi_learn_gdmm *g, const int64_t *place, const double *values, const double *slopes,
    const int32_t *greedy, fgi_error *err);

/* The same for label sets with pairwise interactions (Algorithm 1 with Algorithm 3). greedy: how many labels a visit
 * may add. */
typedef struct fgi_learn_gdmm_sets fgi_learn_gdmm_sets;
fgi_rc fgi_learn_gdmm_sets_create(
    fgi_learner *L, const fgi_learn_gdmm_settings *settings, int32_t greedy, fgi_learn_gdmm_sets **out, fgi_error *err);
void fgi_learn_gdmm_sets_free(fgi_learn_gdmm_sets *g);
fgi_rc fgi_learn_gdmm_sets_pass(
    fgi_learn_gdmm_sets *g, const int32_t *examples, int64_t m, int64_t *next, double deadline, fgi_error *err);
fgi_rc fgi_learn_gdmm_sets_end_pass(fgi_learn_gdmm_sets *g, fgi_error *err);
fgi_rc fgi_learn_gdmm_sets_losses(fgi_learn_gdmm_sets *g, double *w, const int32_t *examples, int64_t m, int64_t *next,
    double deadline, double *loss, fgi_error *err);
fgi_rc fgi_learn_gdmm_sets_dual(
    fgi_learn_gdmm_sets *g, double deadline, double *dual, double *infeasibility, int32_t *done, fgi_error *err);
void fgi_learn_gdmm_sets_get_penalty(const fgi_learn_gdmm_sets *g, double *state);
void fgi_learn_gdmm_sets_set_penalty(fgi_learn_gdmm_sets *g, const double *state);
void fgi_learn_gdmm_sets_get_info(
    const fgi_learn_gdmm_sets *g, fgi_learn_gdmm_info *info); /* active_labels, active_states: per example */
/* sizes: labels and pairs of each example; pairs have two labels and four values (Y and three multipliers). */
/* Bounds by which the joint oracle leaves labels out, one a label: a resumed run looks where the broken one would. */
void fgi_learn_gdmm_sets_get_bounds(const fgi_learn_gdmm_sets *g, double *bounds);
void fgi_learn_gdmm_sets_set_bounds(fgi_learn_gdmm_sets *g, const double *bounds);
void fgi_learn_gdmm_sets_export_size(const fgi_learn_gdmm_sets *g, int64_t *n_labels, int64_t *n_pairs);
void fgi_learn_gdmm_sets_export(const fgi_learn_gdmm_sets *g, int32_t *sizes, int32_t *labels, double *X,
    int32_t *pair_labels, double *pair_values, double *losses);
fgi_rc fgi_learn_gdmm_sets_import(fgi_learn_gdmm_sets *g, const int32_t *sizes, const int32_t *labels, const double *X,
    const int32_t *pair_labels, const double *pair_values, const double *losses, const int64_t *work, fgi_error *err);

#endif
