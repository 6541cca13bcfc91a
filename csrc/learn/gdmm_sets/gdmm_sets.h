/* learn/gdmm_sets/gdmm_sets.h - inside of gdmm for label sets: its state, and what its files share.
 * learn/gdmm_sets/gdmm_sets.c has the method. */
#ifndef FGI_LEARN_GDMM_SETS_H
#define FGI_LEARN_GDMM_SETS_H
#include "learn/learn.h"
#include "oracle/oracle.h"

typedef struct set_pair {
    int32_t l, m; /* labels, l < m */
    double Y, Pl, Pm, Q;
} set_pair;

typedef struct set_example {
    int32_t n, capacity; /* labels */
    int32_t n_pairs, pair_capacity;
    int32_t *label; /* ascending; the true ones are always there */
    double *X;
    set_pair *pairs;
} set_example;

typedef struct pair_share {
    int32_t l, m;
    double v, share; /* v > 0: a, what l pays of v; v < 0: q */
} pair_share;

/* The pairs with weight, by label, for as long as losses are measured at `of`. */
typedef struct sets_view {
    const double *of;
    int64_t *begin; /* L + 1 */
    int32_t *other;
    double *value;
    double *positive;   /* L: sum of a label's positive pairs */
    pair_share *shares; /* room for all pairs: those among the labels of one example that matter */
    double *kept;       /* weights of its listed pairs */
} sets_view;

struct fgi_learn_gdmm_sets {
    fgi_learner *L;
    fgi_learn_gdmm_settings s;
    fgi_arena arena; /* what has its size from the beginning */
    double C;        /* C of the blocks: s.C, or that of the proximal subproblems */
    double rho;
    int32_t greedy;
    set_example *examples;
    int64_t n_examples;
    double *norm;         /* |x_i|^2 */
    double *loss;         /* relaxed loss at the last visit: an estimate */
    fgi_updatable *table; /* NULL: the joint oracle goes by bounds, or scans */
    double *top;          /* L: no pair of the label has more weight, and 0; grows within a pass */
    int bounded;          /* top is that of the weights */
    fgi_oracle_scratch *oracle;
    double *scores, *X;                 /* L: of the example at hand; X is zero elsewhere */
    uint8_t *listed, *truth;            /* L: of the example at hand */
    uint8_t *partner;                   /* L: labels already paired with the one at hand; zero between calls */
    int32_t *place;                     /* L: where a listed label of the example at hand is in its list */
    int32_t *incident_begin, *incident; /* L + 1, ...: its pairs, by label */
    int64_t incident_capacity;
    int32_t *message_label[2];
    double *message[2];
    sets_view view;
    fgi_residuals residuals;
    uint8_t *alive;         /* L: labels of the open example that may be on */
    fgi_products *unigrams; /* the learner's weights as a source */
    double *spurious;       /* L: cost of a label that is not true; NULL: 1 */
    int64_t *without;       /* L: labels that are listed */
    fgi_argmax *found;      /* `greedy` best labels that are not */
    int64_t unary_calls, pair_calls, unary_touched, pair_touched, unary_products, bytes;
};

static inline double *fgi_sets_weight(const fgi_learn_gdmm_sets *g, int32_t l, int32_t m) {
    return g->L->w + g->L->unary + (int64_t)l * g->L->data.n_labels + m;
}

/* Scores, truth, masses of example i in g->scores, truth, X, listed, and the best labels that are not listed in
 * g->found; and back to nothing. Of several parts of the labels, only one and the listed labels are scored. */
fgi_rc fgi_sets_open(fgi_learn_gdmm_sets *g, int32_t i, int32_t part, int32_t parts);
void fgi_sets_close(fgi_learn_gdmm_sets *g, int32_t i);
/* The lists of an example; 0: out of memory. */
int fgi_sets_insert(fgi_learn_gdmm_sets *g, set_example *x, int32_t label, double X);
int fgi_sets_add_pair(fgi_learn_gdmm_sets *g, set_example *x, int32_t l, int32_t m, double Y);
fgi_rc fgi_sets_fill_table(fgi_learn_gdmm_sets *g); /* the sorted table as the weights say */

/* Labels that are neither in the part nor listed, and rows that are left out: out of reach. */
#define FGI_NEVER 1e150

/* learn/gdmm_sets/joint.c */
fgi_rc fgi_sets_best_pair(fgi_learn_gdmm_sets *g, fgi_argmax *out);
void fgi_sets_bound_labels(fgi_learn_gdmm_sets *g); /* top[l], from the weights */

/* learn/gdmm_sets/bound.c */
void fgi_sets_drop_view(fgi_learn_gdmm_sets *g);

#endif
