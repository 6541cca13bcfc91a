/* oracle/forest_sum.h - sum-product on a forest of tokens: log Z, marginals of tokens and of edges.
 *
 * Upward, from the leaves: own_t = exp(score_t) times the messages from t's children, and the message to its parent is
 * m[b] = sum_a own_t[a] exp T(a, b). Downward: belief_t[a] = own_t[a] * sum_b exp T(a, b) q[b], q = belief_parent / m,
 * and P(a, b) = own_t[a] exp T(a, b) q[b]. Everything is kept at a sum of 1 by scaling, which is exact as long as no
 * value leaves the range of doubles: with scores that differ by less than SAFE in a token and a table it cannot. Other
 * forests (large scores, forbidden states) are summed in log space, about ten times slower. */
#ifndef FGI_FOREST_SUM_H
#define FGI_FOREST_SUM_H
#include "base/sums.h"
#include "base/util.h"
#include "oracle/forest.h"

/* A square table of pairwise scores, made ready for many sums: one exp an entry, not one a token. */
typedef struct fgi_sum_table {
    int64_t n;
    const double *score;      /* borrowed */
    double *exp, *transposed; /* exp(score - top) and its transpose */
    double top, range;        /* largest entry; how far below it the others reach, INFINITY with forbidden states */
    /* where few scores are not zero, those of row a are at begin[a] .. begin[a + 1]: their column, and exp(score - top)
     * less that of a zero */
    int few;
    int64_t *begin;
    int32_t *column;
    double *excess;
} fgi_sum_table;
int fgi_sum_table_create(fgi_sum_table *t, int64_t n);
void fgi_sum_table_free(fgi_sum_table *t);
void fgi_sum_table_load(fgi_sum_table *t, const double *score, const fgi_sum_kernels *k);

/* The few scores that are not zero on one edge with label lists: their places in the list of the table's rows and in
 * that of its columns, with exp(score - top) less `zero`, that of a zero. */
typedef struct fgi_sum_entries {
    int64_t n;
    const int32_t *row, *column;
    const double *excess;
    double zero;
} fgi_sum_entries;

typedef struct fgi_sum_forest {
    int64_t tokens;
    int64_t n_labels;
    const int64_t *cell;         /* the scores of token t are at cell[t] - cell[0] and on; NULL: at t * n_labels */
    const int32_t *label;        /* which label a cell is, from that of cell[0] on; NULL: all labels, in order */
    const int32_t *kept;         /* without `cell`: only the first kept[t] cells of token t count; NULL: all */
    const fgi_forest_node *node; /* NULL: a chain, eliminated from its first token */
    const int64_t *message;      /* where the message of token t begins; NULL: chains have it at the parent's cells,
                                    forests at t * n_labels */
    int64_t children;            /* most children of a token; chains have 1 */
    /* the table of an edge of this forest; NULL: tokens without edges. What it gives is good until the next call. */
    const fgi_sum_table *(*table)(void *context, int64_t edge);
    void *context;
    int one_table; /* all edges have the same */
    const fgi_sum_kernels *kernels;
    /* what is not zero on an edge; its table then needs no more than score, top and range. NULL: not known */
    fgi_sum_entries (*entries)(void *context, int64_t edge);
} fgi_sum_forest;

/* One edge on the way down, for sums over pairs: label lists (NULL: all) and own, q as above; logs if `logs`. The table
 * is read as T(a, b) = table[a * row + b * column]. */
typedef struct fgi_sum_edge {
    int64_t edge;
    const fgi_sum_table *table;
    int64_t n_from, n_to;
    const int32_t *from, *to;
    const double *own, *q;
    int transposed, logs;
    int few; /* `entries` are to be used */
    fgi_sum_entries entries;
} fgi_sum_edge;
typedef void (*fgi_sum_visit)(void *context, const fgi_sum_edge *edge);

/* cells: scores on entry, own values on return. messages: as many cells as `message` says.
 * Returns log Z (-INFINITY: nothing is allowed); *logs says in which space the cells are. */
double fgi_forest_sum_up(const fgi_sum_forest *f, double *cells, double *messages, int *logs);
/* After up (not if it gave -INFINITY): cells become marginal probabilities. scratch: n_labels doubles. visit (may be
 * NULL) sees every edge. */
void fgi_forest_sum_down(const fgi_sum_forest *f, double *cells, double *messages, double *scratch, int logs,
    fgi_sum_visit visit, void *context);

#endif
