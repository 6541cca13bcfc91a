/* learn/crf/crf.h - inside of conditional random fields: data by feature, blocks of examples, memory of the sums. */
#ifndef FGI_CRF_H
#define FGI_CRF_H
#include <stdatomic.h>
#include "fginfer_learn_crf.h"
#include "base/assert.h"
#include "base/pool.h"
#include "base/sums.h"
#include "base/util.h"
#include "learn/learn.h"
#include "oracle/forest_sum.h"

/* How the table of an edge is found. */
typedef enum crf_tables { CRF_NO_EDGES, CRF_ONE_TABLE, CRF_TYPED_TABLES, CRF_MADE_TABLES } crf_tables;

/* Per-thread memory. */
typedef struct crf_worker {
    struct fgi_crf *crf;
    const double *w;
    int64_t example;          /* being summed */
    fgi_sum_table made;       /* CRF_MADE_TABLES: of the edge asked for last */
    double *table_scores;     /* K x K, the scores of `made` */
    double *row, *bound;      /* columns doubles; the second with pruning only */
    double *cells, *messages; /* cells and messages of one block, where nothing is kept */
    int32_t *labels;          /* beside cells, with pruning */
    int32_t *active;          /* features of a token in use, and their values; the longest row */
    double *active_value;
    double *pairs; /* marginals of the edges of all examples, K x K each, are wanted there; NULL: not */
    int64_t touched;
} crf_worker;

/* The columns of w in use, feature by feature: those of features[k] are columns[begin[k] .. begin[k+1]).
 *
 * Invariants (check_pattern in learn/crf/layout.c): features ascend, `at` is their inverse; columns of a feature ascend
 * and are below the columns of the data; `before` has the sums of the features' entries. */
typedef struct crf_pattern {
    int64_t n_features, room_features, room_columns;
    int32_t *features;
    int64_t *begin;
    int32_t *columns;
    int64_t first_pair; /* position in the set of the first pairwise coordinate */
    int32_t *at;        /* n_features of the data: position in features, or -1 */
    int64_t *before;    /* entries of the data in the columns of the features before; the last: in all */
} crf_pattern;

/* What is left out of the sums; learn/crf/prune.c. */
typedef struct crf_prune {
    double mass;                /* that an example may lose; 0: nothing is left out */
    double *most[2], *least[2]; /* what a table can add to a label, as the first and as the second of an edge */
    int32_t *degree[2];         /* edges of a token that it is the first, the second of */
    int32_t *kept;              /* how many labels of a token are summed over; they come first in its cells */
    int32_t *labels;            /* the labels that are summed over, beside span_cells */
    double *lost;               /* bound on the mass that each example has lost */
} crf_prune;

/* Sums over the nodes that a token touches; learn/crf/touched.c. */
typedef struct crf_touch crf_touch;
typedef struct crf_touching crf_touching;
typedef struct crf_touched {
    int possible;    /* many labels, no edges, no lists */
    int now;         /* the last value was computed so */
    uint8_t *common; /* features that all tokens have, with the same value */
    double *value;   /* the weights of the support, one after the other */
    int64_t values;  /* room for them */
    double *score;   /* scores of nodes by those weights: sums over a node's path; columns, and the root of all */
    double *mass;    /* mass of the leaves below a node: sums of exp(score - top) */
    double top;      /* the largest score of a leaf */
    double *ratio;   /* a token's weight / Z */
    int64_t *begin;  /* where a token begins in the list of its unit */
    int32_t *count;
    crf_touch **list; /* one list per unit */
    int64_t *room;
    uint8_t *failed; /* a unit found no memory */
    int listed;      /* the lists are those of the last value; else its residuals are there: touched_set.c */
    int32_t *rank;   /* which entry of its feature an entry of the data is */
    int64_t *slot;   /* where a feature of the support has its residuals */
    double *residual;
    int64_t slots, residuals; /* room for them */
    int any_common;           /* in the support */
    crf_touch *sums;          /* sums of a unit's tokens, by nodes */
    double *unit_ratio;
    crf_touching *work; /* one per thread */
} crf_touched;

/* Features as words of bits; learn/crf/bits.c. */
enum {
    CRF_NO_SLOT = -1, /* no words yet */
    CRF_LISTED = -2   /* there will never be words */
};
typedef struct crf_bit_list {
    int64_t *begin; /* where a label begins */
    int32_t *at;    /* slot of the feature */
    int64_t *place; /* place of the coordinate in its pattern */
    int64_t room;
} crf_bit_list;
typedef struct crf_bits {
    int possible;
    int now, wanted; /* scores are made so at this w; derivatives of this set */
    const struct fgi_mask_kernels *kernels;
    int32_t *slot;  /* where a feature has its words */
    int64_t *first; /* per block of tokens: where its words begin, each of 64 tokens */
    uint64_t *words;
    int64_t stride, used;  /* slots */
    crf_bit_list lists[2]; /* coordinates of the support, and of what is wanted */
    double *weight;        /* beside the first */
    double *lanes;         /* beside the second: sums, FGI_MASK_LANES each */
    int64_t weights, n_lanes;
} crf_bits;

/* Edges with the same two candidate lists are of one kind; learn/crf/kinds.c. */
typedef enum crf_kind_sums { CRF_BY_PAIRS, CRF_OF_ENTRIES, CRF_OF_ALL } crf_kind_sums;
typedef struct crf_kind_list { /* some entries of the table, kind by kind; sharing `room` */
    int64_t *begin;
    int32_t *row, *column; /* places in the lists of the first and of the second end */
    int64_t *weight;       /* the coordinate of w */
    int64_t *place;        /* its place in the set */
    double *excess;
    int64_t room;
} crf_kind_list;
typedef struct crf_kinds {
    int possible;         /* lists recur */
    int now;              /* sums are made by entries at this w */
    crf_kind_sums adding; /* what the last gradient has summed over pairs */
    int64_t n_lists, n_kinds;
    int32_t *list;                  /* which list a token has */
    int32_t *holder;                /* a token that has this list */
    int64_t *label_begin;           /* per label: where its lists begin */
    int32_t *label_list, *label_at; /* per label: its lists, and its place in each */
    int64_t *first;                 /* per list: where the kinds begin that it is the first of */
    int32_t *second, *start;        /* the second list and the first list of a kind */
    int64_t *edges;                 /* how many edges a kind has */
    int64_t *cell;                  /* per kind: where its sums are, when they are of all its pairs */
    int32_t *of_edge;
    int64_t pairs; /* pairs of labels, on all edges */
    double zero;   /* exp(0 - top) */
    crf_kind_list support, wanted;
    double *scaled, *direct; /* units x size: sums of own x q, and of probabilities */
    int64_t size, room;
} crf_kinds;

struct fgi_crf {
    fgi_learn_data data;
    int64_t columns, n_inner; /* weights of a feature: inner nodes and labels */
    int64_t dimension, unary; /* weights in all; before the pairwise tables */
    int64_t tokens, cells;    /* in all; cells of marginals */
    int64_t max_tokens;
    int pseudo;
    int32_t *parent;
    double *weight;
    const int64_t *cell;     /* candidates: where a token's cells begin (= choice_begin); NULL: t * columns */
    int32_t *truth_at;       /* candidates: place of the truth among them */
    fgi_forest_node *forest; /* NULL: chains */
    int64_t *message;        /* forests with candidates: where a token's message begins */
    int64_t messages, children;
    crf_tables tables;
    fgi_sum_table *table; /* one, or one a pairwise feature */
    /* data by feature */
    int64_t *column_begin;
    int32_t *column_token;
    double *column_value; /* NULL: all 1 */
    /* blocks of examples that a thread sums at once; units of blocks share an array of pairwise sums; spans of blocks
     * are kept in memory at once */
    int64_t n_blocks, n_units, n_spans;
    int64_t *block, *unit, *span;
    double *span_cells, *span_messages;
    int64_t span_room, span_message_room, block_room, block_message_room;
    int went_down; /* the kept cells are residuals already */
    uint8_t *logs; /* per example: its sums are in log space */
    double *block_loss;
    /* Per unit: sums of own x q, and of probabilities; of all tables, or, if packed_pairs, of few_pairs one by one. */
    double *pair_scaled, *pair_direct;
    int64_t pair_stride, pair_room;
    const int64_t *few_pairs; /* gradients: the weights of pairs asked for, where they are few; NULL: all */
    int64_t n_few;
    int packed_pairs;
    int all_pairs;        /* the sums over pairs are those of all of them */
    double *pair_truth;   /* how often each pair is true, weighted */
    double *token_weight; /* that of its example; NULL: 1 */
    crf_pattern support, wanted;
    double *packed; /* rows of w of the features in use, one after the other; where labels are few */
    int64_t room_packed;
    int by_features;     /* how scores are computed at this w */
    int64_t longest_row; /* entries of a token */
    int64_t *cursor;     /* a feature's place in its entries, on the way through the tokens */
    crf_prune prune;
    crf_touched touched;
    crf_bits bits;
    crf_kinds kinds;
    int64_t memory; /* for what waits between a value and its gradient */
    const fgi_sum_kernels *kernels;
    fgi_pool *pool;
    int threads;
    crf_worker *workers;
    double deadline; /* on the clock of fgi_clock */
    atomic_int late; /* it has come in the middle of a call */
    fgi_crf_info info;
};

/* Looked at before each block of examples: what is done after that means nothing. */
static inline int crf_is_late(fgi_crf *c) {
    if (!atomic_load_explicit(&c->late, memory_order_relaxed) && fgi_clock() >= c->deadline)
        atomic_store_explicit(&c->late, 1, memory_order_relaxed);
    return atomic_load_explicit(&c->late, memory_order_relaxed);
}

static inline int64_t crf_cell(const fgi_crf *c, int64_t token) {
    fgi_assert(token >= 0 && token <= c->tokens);
    return c->cell ? c->cell[token] : token * c->columns;
}
static inline int64_t crf_message(const fgi_crf *c, int64_t token) {
    fgi_assert(token >= 0 && token <= c->tokens);
    /* The messages of an example begin at its first token. */
    return c->message ? c->message[token] : crf_cell(c, token);
}
static inline int64_t crf_pair_size(const fgi_crf *c) { return c->dimension - c->unary; }
static inline int64_t crf_truth_cell(const fgi_crf *c, int64_t token) { /* inside the token's cells */
    fgi_assert(token >= 0 && token < c->tokens);
    return c->truth_at ? c->truth_at[token] : c->n_inner + c->data.truth[token];
}

/* learn/crf/layout.c */
int crf_pattern_set(const fgi_crf *c, crf_pattern *p, const double *w, const int64_t *set, int64_t n);

/* What the threads share during one call. */
typedef struct crf_job {
    fgi_crf *c;
    const double *w;
    int64_t span;
    double *log_z, *truth_score, *pairs;
    const int64_t *set; /* gradient; NULL: all */
    double *gradient;
    int square;       /* curvatures instead */
    int64_t from, to; /* tokens of the span */
    int64_t parts;    /* into how many parts the features are cut */
} crf_job;

/* learn/crf/gradient.c: adds what the tokens of the span give to the derivatives by feature weights; 0: no memory. */
int crf_add_features(crf_job *j);

/* The first feature of a part of them, with as many entries in each. */
int64_t crf_part_begin(const crf_job *j, int64_t part);

/* learn/crf/touched.c: instead of the sums over all cells, where few nodes are touched. load: whether they are, at w;
 * value: 0 when there is no memory; by_set: the next gradient is on the support, as a rule. gradient: by the
 * features' weights, at that value; 0 when there is no memory. */
int crf_touched_create(fgi_crf *c);
void crf_touched_free(fgi_crf *c);
int crf_touched_load(fgi_crf *c, const double *w);
int crf_touched_value(fgi_crf *c, const double *w, int by_set, double *loss);
int crf_touched_gradient(crf_job *j);

/* learn/crf/bits.c: load: makes scores at w ready, 0: no memory; scores: of a block's tokens, by the features that have
 * words. prepare: for a set of derivatives, 0: no memory; add: those by features that have words. */
int crf_bits_create(fgi_crf *c);
void crf_bits_free(fgi_crf *c);
int crf_bits_load(fgi_crf *c, const double *w);
void crf_bits_scores(const fgi_crf *c, int64_t block, double *cells);
int crf_bits_prepare(crf_job *j);
void crf_bits_add(crf_job *j);

/* learn/crf/kinds.c: load: what is not zero in the table of w becomes entries of kinds, if that is the cheaper way
 * (kinds.now); entries: those of an edge; begin_sums: how the pairs set[first .. n) will be summed; add: an
 * edge; derivatives: into out[first .. n). 0: no memory. */
int crf_kinds_create(fgi_crf *c);
void crf_kinds_free(fgi_crf *c);
int crf_kinds_load(fgi_crf *c, const double *w, const int64_t *support, int64_t n);
fgi_sum_entries crf_kinds_entries(const fgi_crf *c, int64_t edge);
int crf_kinds_begin_sums(fgi_crf *c, const int64_t *set, int64_t first, int64_t n);
void crf_kinds_add(
    const fgi_crf *c, const fgi_sum_edge *e, int64_t edge, double weight, double *scaled, double *direct);
void crf_kinds_derivatives(const crf_job *j, int64_t first, int64_t n);

#define CRF_MAX_UNITS 64        /* units of blocks, at most */
#define CRF_PAIR_ROOM (1 << 22) /* doubles for sums over pairs, which all units share: 32 MB */
void crf_cut_units(fgi_crf *c, int64_t size);

/* Labels so few that a row of them is added as fast as a part of it. */
#define CRF_NARROW 64

/* learn/crf/scores.c: makes w and its pattern ready; 0: no memory. */
int crf_load_weights(fgi_crf *c, const double *w);
/* Unary scores of the tokens of a block into cells (those of the first token on). */
void crf_fill_scores(crf_worker *k, const double *w, int64_t block, double *cells);
/* The score of a pair of labels on an edge. */
double crf_pair_score(const fgi_crf *c, const double *w, int64_t edge, int64_t a, int64_t b);

/* The first of a feature's entries from .. to that is of this token or a later one. */
static inline int64_t crf_first_entry(const fgi_crf *c, int64_t from, int64_t to, int64_t token) {
    fgi_assert(from <= to);
    return fgi_lower_bound(c->column_token, from, to, token);
}

/* learn/crf/sums.c: one example's sums. cells and messages are its own. */
void crf_load_tables(fgi_crf *c, const double *w);
/* table[pair] += x for the true pairs of example i; all of them, weighted, into pair_truth. */
void crf_example_truth(const fgi_crf *c, int64_t i, double x, double *table);
void crf_count_truth(fgi_crf *c);
/* labels: room beside cells for those that are summed over; NULL: all. */
double crf_example_up(crf_worker *k, int64_t i, double *cells, int32_t *labels, double *messages, double *truth);
void crf_example_down(crf_worker *k, int64_t i, double *cells, const int32_t *labels, double *messages,
    double *pair_scaled, double *pair_direct);

/* learn/crf/crf.c: room for the sums of so many pairs in each unit, all zero; 0: no memory. Sums of all pairs are
 * large, and may never be wanted. */
int crf_clear_pairs(fgi_crf *c, int64_t stride);

/* learn/crf/prune.c */
int crf_prune_create(fgi_crf *c, double mass);
void crf_prune_free(fgi_crf *c);
void crf_prune_load(fgi_crf *c, const double *w);
/* The cells of each token become those that are kept, with their labels; and back, with zeros for the others. */
void crf_prune_example(crf_worker *k, int64_t i, double *cells, int32_t *labels);
void crf_prune_spread(const fgi_crf *c, int64_t i, double *cells, const int32_t *labels);
void crf_prune_info(const fgi_crf *c, fgi_crf_info *info);

#endif
