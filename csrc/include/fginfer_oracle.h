/*
 * fginfer_oracle.h - factorwise maximisation: the one question that inference and learning ask of a table.
 *
 *     argmax over the states y of   theta(y) - sum_k delta_k(y_k)
 *
 * theta comes from a *source*; the messages delta_k, one per variable, are sparse and signed. One query, one call that
 * answers it (fgi_oracle_ask), the same promises for every source:
 *   - exact, unless a search index that is not exact was asked for (fgi_oracle_query.approximate);
 *   - a state of score -INFINITY and an excluded state are never returned;
 *   - ties go to the lowest flat index in the order of the variables, last fastest;
 *   - the value is ((theta - delta_1) - delta_2) - ..., bit for bit what a dense scan computes;
 *   - sources are live: an answer is about the numbers of the moment.
 *
 * Sources (each has a function that gives its fgi_source):
 *   model        the factors of a model: dense tables of any arity in sorted order, Potts, truncated differences
 *   updatable    a pairwise table that changes at points and in scale
 *   ranking      a vector that changes: one unary factor, or one value for each of many binary factors
 *   products     labels scored by inner products <w_k, x>: dense or sparse weights
 *   rule         a constraint, whose scores an algorithm knows: fginfer_rules.h
 */
#ifndef FGINFER_ORACLE_H
#define FGINFER_ORACLE_H
#include "fginfer.h"

/* ---- questions and answers ------------------------------------------------------------------------------------ */

/* A sparse message: n labels, strictly ascending, with finite values; a label that is not listed has message 0. */
typedef struct fgi_message {
    int32_t n;
    const int32_t *labels;
    const double *values;
} fgi_message;

typedef struct fgi_argmax {
    int64_t state; /* flat index; -1: every (further) state is forbidden or excluded; INT64_MAX: it has no number */
    double value;  /* -INFINITY when state is -1 */
} fgi_argmax;

/* What an inner-product source is asked about, besides: score(y) = start(y) + <w_y, x>, added up in the order of the
 * features as listed. start(y) is constant, or start_weight * start[y] where `start` is given. */
typedef struct fgi_features {
    int64_t n;
    const int32_t *index; /* features of x; NULL: 0 .. n-1 */
    const double *values; /* NULL: all 1 */
    double constant;
    const double *start; /* one per label; NULL: `constant` for all */
    double start_weight; /* 0 counts as 1 */
    /* Only the labels of one part: n_labels*part/parts up to n_labels*(part+1)/parts; parts 0 or 1: all. */
    int32_t part, parts;
    const int32_t *labels; /* only the labels listed, ascending; NULL: all */
    int32_t n_labels;
    double *scores; /* out, by label: start + <w, x> - message of those looked at; NULL: not wanted */
} fgi_features;

typedef enum fgi_access_path {
    FGI_BY_SIZE = 0, /* scan or sorted search, whichever was measured to be faster at this size */
    FGI_BY_SCAN = 1,
    FGI_BY_SEARCH = 2 /* sorted search (or a search index), where the source has one */
} fgi_access_path;

typedef struct fgi_source fgi_source;

typedef struct fgi_oracle_query {
    const fgi_source *source;
    int64_t factor;              /* which one, for sources with several (a model); else 0 */
    const fgi_message *messages; /* one per variable; NULL: all zero */
    const int64_t *excluded;     /* states that may not be returned, ascending */
    int64_t n_excluded;
    int64_t hint;          /* a state expected to be good (it saves work, nothing else), or -1 */
    int64_t n_best;        /* how many best states, best first; 0 counts as 1 */
    int32_t path;          /* fgi_access_path */
    int32_t approximate;   /* a search index may answer without proof */
    const fgi_features *x; /* inner products only */
    int32_t *labels; /* rules only: out, the labels of the states, one state's after the other's (-1: there is none) */
} fgi_oracle_query;

/* Threads that answer, with their working memory and counters. */
typedef struct fgi_oracle fgi_oracle;
fgi_rc fgi_oracle_create(int32_t threads, fgi_oracle **out, fgi_error *err);
void fgi_oracle_free(fgi_oracle *o);
/* Answers n queries, in parallel; n_best answers each, one query's after the other's. Nothing may change a source
 * meanwhile. The index of an error is that of the query. */
fgi_rc fgi_oracle_ask(fgi_oracle *o, const fgi_oracle_query *queries, int64_t n, fgi_argmax *answers, fgi_error *err);

/* Max-marginals, the other question about a factor: what every label of variables[k] of query k has at best,
 *
 *     out[a] = max over the states y with y_k = a of   theta(y) - sum over q != k of delta_q(y_q),
 *
 * -INFINITY where all of these are forbidden; one query's labels after the other's. The message of that variable,
 * excluded states, hints and n_best are not looked at. Sums are added up in an order of their own: equal to values of
 * fgi_oracle_ask up to rounding. For factors of models and updatable tables; FGI_UNSUPPORTED for sources of one
 * variable, whose scores are theirs already. */
fgi_rc fgi_oracle_ask_marginals(
    fgi_oracle *o, const fgi_oracle_query *queries, const int32_t *variables, int64_t n, double *out, fgi_error *err);

typedef struct fgi_oracle_work {
    int64_t calls;    /* questions answered */
    int64_t scans;    /* calls that looked at every state */
    int64_t touched;  /* entries read: walks, bounds, sorts, scans */
    int64_t products; /* multiplications of inner products */
    int64_t unproven; /* answers of a search index that proves nothing */
} fgi_oracle_work;
/* Done since the oracle was made. */
void fgi_oracle_get_work(const fgi_oracle *o, fgi_oracle_work *work);

/* ---- the factors of a model -------------------------------------------------------------------------------------- */

/* Live: answers follow fgi_model_set_table. The model must outlive the source. */
fgi_rc fgi_model_source_create(const fgi_model *m, fgi_source **out, fgi_error *err);
void fgi_model_source_free(fgi_source *source);

/* ---- a pairwise table that changes ----------------------------------------------------------------------------- */

/*
 * It starts at `values` (NULL: zeros). path: FGI_BY_SEARCH keeps sorted access (its non-zero entries only, point
 * updates in O(log K)), FGI_BY_SCAN an array that is scanned, FGI_BY_SIZE what was measured to be faster at this size.
 * Any number of threads may ask while nobody updates. In the factor step of gdmm learning, grad(y) is
 * v(y) + rho sum_j m_jf(y_j): pass messages of value -rho * m and exclude the true state. A loss that is constant but
 * for the true label is a message at the true label (plus the constant).
 */
typedef struct fgi_updatable fgi_updatable;
fgi_rc fgi_updatable_create(
    int32_t rows, int32_t cols, int32_t path, const double *values, fgi_updatable **out, fgi_error *err);
void fgi_updatable_free(fgi_updatable *u);
const fgi_source *fgi_updatable_source(const fgi_updatable *u);
/* Entry (rows[k], cols[k]) becomes values[k], or grows by it; in order of k. */
fgi_rc fgi_updatable_set(
    fgi_updatable *u, int64_t n, const int32_t *rows, const int32_t *cols, const double *values, fgi_error *err);
fgi_rc fgi_updatable_add(
    fgi_updatable *u, int64_t n, const int32_t *rows, const int32_t *cols, const double *values, fgi_error *err);
/* All entries times `factor` >= 0, without touching them: weight decay. An entry is then scale * stored, so a value
 * that is set later reads back within a rounding error or two. */
fgi_rc fgi_updatable_scale(fgi_updatable *u, double factor, fgi_error *err);
double fgi_updatable_get(const fgi_updatable *u, int32_t row, int32_t col); /* in range, or else */
/* The first `capacity` non-zero entries, in no particular order; returns how many there are. */
int64_t fgi_updatable_entries(const fgi_updatable *u, int64_t capacity, int32_t *rows, int32_t *cols, double *values);
int64_t fgi_updatable_memory(const fgi_updatable *u);

/* ---- a vector in descending order that changes ------------------------------------------------------------------- */

/*
 * The oracle of a unary factor, and the joint oracle over many binary factors with values t_f. Made in one linear pass
 * over n values; only those above `floor` are kept in order (-INFINITY: all finite ones). Looking at the top is O(1),
 * everything else O(log n). A question is about the items in order, one variable with n labels.
 */
typedef struct fgi_ranking fgi_ranking;
fgi_rc fgi_ranking_create(int64_t n, const double *values, double floor, fgi_ranking **out, fgi_error *err);
void fgi_ranking_free(fgi_ranking *r);
const fgi_source *fgi_ranking_source(const fgi_ranking *r);
int32_t fgi_ranking_top(const fgi_ranking *r, double *value); /* the item with the largest value; -1: there is none */
int fgi_ranking_take(fgi_ranking *r, int32_t item);           /* takes it off (it is active now); 0: it was not there */
fgi_rc fgi_ranking_set(fgi_ranking *r, int32_t item, double value, fgi_error *err); /* also puts it back */
double fgi_ranking_get(const fgi_ranking *r, int32_t item);                         /* in range, or else */

/* ---- labels scored by inner products ----------------------------------------------------------------------------- */

typedef enum fgi_products_layout {
    FGI_ROWS_BY_LABEL = 0,  /* weights[label * n_features + feature] */
    FGI_ROWS_BY_FEATURE = 1 /* weights[feature * n_labels + label]: a sparse x reads whole rows */
} fgi_products_layout;

typedef struct fgi_products fgi_products;
/* Dense weights are *borrowed*: the caller keeps them alive, and may change them between questions. */
fgi_rc fgi_products_create_dense(
    int32_t n_labels, int64_t n_features, const double *weights, int32_t layout, fgi_products **out, fgi_error *err);
/* Sparse weights, stored by feature as rows of (label, value), labels ascending; all zero at first. A question costs
 * the lengths of the rows of x's features. */
fgi_rc fgi_products_create_sparse(int32_t n_labels, int64_t n_features, fgi_products **out, fgi_error *err);
void fgi_products_free(fgi_products *p);
const fgi_source *fgi_products_source(const fgi_products *p);
/* Sparse weights only: weight (labels[k], features[k]) becomes values[k], or grows by it; zeros leave the rows. */
fgi_rc fgi_products_set(
    fgi_products *p, int64_t n, const int32_t *labels, const int32_t *features, const double *values, fgi_error *err);
fgi_rc fgi_products_add(
    fgi_products *p, int64_t n, const int32_t *labels, const int32_t *features, const double *values, fgi_error *err);
/* All scores <w, x> times `factor` >= 0, without touching a weight (dense weights stay as the caller has them). */
fgi_rc fgi_products_scale(fgi_products *p, double factor, fgi_error *err);
double fgi_products_get(const fgi_products *p, int32_t label, int32_t feature); /* scale included; in range, or else */
/* Row of a feature, scale left out: its length; labels and values are borrowed until the next change. */
int32_t fgi_products_row(const fgi_products *p, int32_t feature, const int32_t **labels, const double **values);
int64_t fgi_products_nonzeros(const fgi_products *p);
int64_t fgi_products_memory(const fgi_products *p);

#endif
