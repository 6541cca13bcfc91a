/* learn/gdmm/gdmm.h - inside of gdmm for learning: supports of tokens, active states of edges, messages between them.
 *
 * Notation of Yen et al. 2016 with the signs of docs/mathematics.md, section 5. alpha is at most C at the truth, <= 0
 * elsewhere, and sums to 0 in every block; an edge keeps beta = -alpha >= 0 of its wrong states. A token keeps rows of
 * numbers, one for every label that has ever mattered, all of them zero for the other labels:
 *
 *     row 0         alpha_j
 *     row 1 + 2k    M_jf alpha_f of its k-th edge f
 *     row 2 + 2k    lambda_jf of its k-th edge f, scaled by 1/rho
 *
 * so that the message is m_jf = row(1 + 2k) - row(0) + row(2 + 2k).
 *
 * Invariants (fgi_learn_gdmm_check looks at them):
 *   1  The labels of a support ascend, the true one is among them, all rows are numbers.
 *   2  An edge joins two tokens of its example, and is its ku-th of u, its kv-th of v; its states are distinct pairs of
 *      labels in the supports of its tokens, never the true pair; beta is a number, not below 0.
 *   3  alpha is at most C at the truth and not above 0 elsewhere, to rounding, while C is what it was. */
#ifndef FGI_LEARN_GDMM_H
#define FGI_LEARN_GDMM_H
#include "learn/learn.h"
#include "base/assert.h"
#include "oracle/oracle.h"

typedef struct fgi_support {
    int32_t n, capacity, degree;
    int32_t *label; /* ascending; the true label is always there */
    double *value;  /* 1 + 2 * degree rows of `capacity` */
} fgi_support;

typedef struct fgi_edge_block {
    int32_t u, v;   /* token positions in the example */
    int32_t ku, kv; /* which edge it is of u, of v */
    int32_t n, capacity;
    int32_t *state; /* pairs of labels, never the true pair */
    double *beta;
} fgi_edge_block;

/* Algorithm 2 only: the vertices alpha of a block of examples is made of (learn/gdmm/away.c). */
typedef struct fgi_away {
    int32_t n, capacity;
    int32_t **vertex; /* a label per token, two per edge */
    double *weight;   /* c_v, sum 1 */
} fgi_away;

enum { FGI_AWAY_IDLE, FGI_AWAY_SLOPES, FGI_AWAY_GATHER, FGI_AWAY_MEASURE, FGI_AWAY_COMMIT, FGI_AWAY_MULTIPLIERS };

/* And the step of it that is under way: it may be left and taken up again after any factor. */
typedef struct fgi_away_step {
    int32_t phase;
    int64_t block, at;               /* the factor that comes next: first all tokens of the block, then its edges */
    int32_t chosen;                  /* the vertex in use to move away from, or (n) the greedy one to move to */
    double sign;                     /* direction d = sign * (vertex - alpha) */
    double descent, most, sum, size; /* -<grad, d>, longest step, curvature so far, step */
    int32_t *greedy;
    double *slope;   /* slopes of the vertices in use, then that of the greedy one */
    double *dense;   /* Phi^T d while it is needed, else zero */
    int32_t example; /* example of the last factor: a hint */
} fgi_away_step;

typedef struct fgi_unigram_index fgi_unigram_index; /* learn/gdmm/unigram_index.c */

/* What a thread needs to ask. */
typedef struct fgi_learn_gdmm_worker {
    fgi_oracle_scratch *oracle;
    int32_t *label; /* K: messages of one token */
    double *value;
    int starved; /* an oracle found no room: what the block has done since is not to be trusted */
} fgi_learn_gdmm_worker;

struct fgi_learn_gdmm {
    fgi_learner *L;
    fgi_learn_gdmm_settings s;
    fgi_arena arena; /* what has its size from the beginning */
    double C;        /* C of the blocks: s.C, or that of the proximal subproblems, which began with easy_C */
    double easy_C;
    double rho;
    fgi_support *tokens;
    fgi_edge_block *edges;
    int64_t n_tokens, n_edges;
    fgi_away *away; /* one per block of s.away examples; NULL for Algorithm 4 */
    fgi_away_step step;
    int64_t n_away;
    double *row_norm;       /* |x_j|^2 of every token */
    double *loss;           /* per example: factorwise hinge losses at its last visit */
    fgi_updatable **tables; /* one per pairwise feature; NULL with candidates and brute force */
    int64_t n_tables;
    fgi_products *unigrams;         /* the learner's weights as a source */
    fgi_unigram_index *index;       /* or NULL: unigram oracles scan */
    fgi_learn_gdmm_worker *workers; /* one per thread of the learner */
    int n_workers;
    double *guest; /* other weights that are being measured, and their tables */
    fgi_updatable **guest_tables;
    fgi_rng rng;
    int64_t unary_calls, pair_calls, unary_touched, pair_touched, unary_products, bytes;
    fgi_residuals residuals;
    double squared_norm;
    /* scratch */
    double *scores;      /* K */
    int32_t *proposal;   /* batches and searches: a label for every token */
    double *mass, *gain; /* one block */
    int32_t mass_capacity;
    int32_t *message_label[2];
    double *message_value[2];
    double *table;          /* scores of an edge with several features, K x K, or between candidates */
    int64_t table_capacity; /* candidates: grows as wanted */
};

static inline double *fgi_support_row(const fgi_support *t, int32_t r) {
    fgi_assert(r >= 0 && r <= 2 * t->degree);
    return t->value + (int64_t)r * t->capacity;
}
static inline double fgi_support_message(const fgi_support *t, int32_t k, int32_t at) {
    fgi_assert(k >= 0 && k < t->degree && at >= 0 && at < t->n);
    return t->value[(int64_t)(1 + 2 * k) * t->capacity + at] - t->value[at] +
        t->value[(int64_t)(2 + 2 * k) * t->capacity + at];
}

static inline int64_t fgi_learn_gdmm_edge_begin(const fgi_learn_gdmm *g, int64_t i) {
    return fgi_learn_edge_begin(&g->L->data, i);
}

/* learn/gdmm/support.c */
int32_t fgi_support_find(const fgi_support *t, int32_t label);                /* position, or -1 */
int32_t fgi_support_insert(fgi_learn_gdmm *g, fgi_support *t, int32_t label); /* position, or -1 out of memory */
int fgi_support_reserve(fgi_learn_gdmm *g, fgi_support *t, int32_t n);
int fgi_edge_reserve(fgi_learn_gdmm *g, fgi_edge_block *e, int32_t n);
int fgi_learn_gdmm_reserve(fgi_learn_gdmm *g, int32_t n); /* room in mass and gain */
fgi_rc fgi_learn_gdmm_fill_tables(fgi_learn_gdmm *g);     /* sorted tables as the weights of the learner say */
fgi_rc fgi_learn_gdmm_set_entry(fgi_updatable *table, int32_t a, int32_t b, double x); /* UNSUPPORTED: x is no number */
fgi_rc fgi_learn_gdmm_told(
    fgi_rc rc, fgi_error *err); /* what a call that sets entries has answered, with its message */

/* learn/gdmm/check.c */
#ifdef FGI_CHECKED
void fgi_learn_gdmm_check(const fgi_learn_gdmm *g);
#endif

/* learn/gdmm/gdmm.c */
void fgi_learn_gdmm_step_multipliers(fgi_learn_gdmm *g, int64_t token);

/* learn/gdmm/bound.c, learn/gdmm/polish.c */
void fgi_learn_gdmm_drop_guest(fgi_learn_gdmm *g);
/* Lowers *loss, an upper bound on the relaxed loss of example i, by improving a copy of its messages. */
fgi_rc fgi_learn_gdmm_polish(fgi_learn_gdmm *g, int32_t i, double *loss);

/* learn/gdmm/away.c */
int64_t fgi_away_width(const fgi_learn_gdmm *g, int64_t block);   /* labels of a vertex */
int64_t fgi_away_factors(const fgi_learn_gdmm *g, int64_t block); /* tokens and edges */
int fgi_away_add(fgi_learn_gdmm *g, int64_t block, int32_t *labels);
void fgi_away_clear(fgi_learn_gdmm *g, int64_t block);
fgi_rc fgi_away_start(fgi_learn_gdmm *g);
void fgi_away_free(fgi_learn_gdmm *g);
fgi_rc fgi_away_visit(fgi_learn_gdmm *g, int64_t block, double deadline); /* done when g->step is idle again */
fgi_rc fgi_away_gather(fgi_learn_gdmm *g);

/* learn/gdmm/oracle.c: the FMOs. */
/* Best wrong label looked at, or -1; leaves its gradient, and those of the support's labels, in g->scores. */
int32_t fgi_learn_gdmm_unary_argmax(fgi_learn_gdmm *g, int64_t token, double *value);
/* The same in two parts: labels are chosen at the weights of now, by all threads, for all tokens of some examples; the
 * gradients are those at the time of the visit. */
void fgi_learn_gdmm_propose(fgi_learn_gdmm *g, const int32_t *examples, int64_t n);
int32_t fgi_learn_gdmm_unary_proposed(fgi_learn_gdmm *g, int64_t token, double *value);
/* learn/gdmm/unigram_index.c: the choice of fgi_learn_gdmm_propose by search, for one token or those of some
 * examples. */
fgi_rc fgi_unigram_index_create(const fgi_learn_gdmm *g, fgi_unigram_index **out);
void fgi_unigram_index_free(fgi_unigram_index *o);
void fgi_unigram_index_mark(fgi_unigram_index *o, int32_t label); /* the weights of a label have changed */
void fgi_unigram_index_forget(fgi_unigram_index *o);              /* those of most labels have */
fgi_rc fgi_unigram_index_token(fgi_learn_gdmm *g, int64_t token, fgi_error *err);
fgi_rc fgi_unigram_index_examples(fgi_learn_gdmm *g, const int32_t *examples, int64_t n, fgi_error *err);
fgi_rc fgi_learn_gdmm_pair_argmax(fgi_learn_gdmm *g, int32_t i, int64_t edge, fgi_argmax *out);
double fgi_learn_gdmm_pair_weight(const fgi_learn_gdmm *g, int64_t edge, int32_t a, int32_t b); /* theta_f(a, b) */
double fgi_learn_gdmm_pair_gradient(const fgi_learn_gdmm *g, int32_t i, int64_t edge, int32_t a, int32_t b);
double fgi_learn_gdmm_edge_norm(const fgi_learn_gdmm *g, int64_t edge); /* |phi_f|^2 */
fgi_rc fgi_learn_gdmm_add_weight(
    fgi_learn_gdmm *g, int64_t at, double x); /* w[at] += x; at counts unary, then pairwise weights */
fgi_rc fgi_learn_gdmm_add_pair(
    fgi_learn_gdmm *g, int64_t edge, int32_t a, int32_t b, double x); /* w += x * phi_f(a, b) */

#endif
