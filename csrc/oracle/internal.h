/* oracle/internal.h - what the oracle*.c files share and nobody else sees. */
#ifndef FGI_ORACLE_INTERNAL_H
#define FGI_ORACLE_INTERNAL_H
#include <string.h>
#include "base/array.h"
#include "oracle/marginals.h"
#include "oracle/oracle.h"

struct fgi_oracle_scratch {
    int32_t max_card, max_arity;
    double *dense;           /* max_arity blocks of max_card: messages spread out; all zero between calls */
    const double **by_label; /* max_arity: the messages, one for each label, while they are spread */
    uint32_t *mark;          /* max_arity blocks of max_card: equal to epoch where the label has a message */
    double *marked;          /* the message, where the mark says that there is one */
    uint32_t epoch;
    double *bound;           /* max_arity blocks of max_card: bounds of the messages' slices; messages negated */
    double *implicit;        /* 2 * max_card + 1: for products with implicit tables */
    const double **plus;     /* max_arity: negated messages */
    int32_t *position;       /* max_arity: 0, 1, ... */
    fgi_ranked *kept[2];     /* max_card: messages that survive a bound */
    int32_t *labels;         /* 2 blocks of max_card */
    fgi_ranked *frontier[3]; /* see fgi_frontier_push */
    int64_t frontier_capacity[3];
    int64_t *banned; /* states not to be returned, ascending: those excluded, and answers given already */
    int64_t n_banned, banned_capacity;
    int32_t *cards; /* label counts of the factor at hand */
    int64_t cards_capacity;
    double *sums; /* for max-marginals of more than two variables */
    int64_t sums_capacity;
    double *scores; /* scores of all labels of an inner-product source */
    int64_t scores_capacity;
    int32_t *found; /* labels an inner-product source has looked at, or a search index proposes */
    int64_t found_capacity;
    uint8_t *seen; /* those labels; all zero between calls */
    int64_t seen_capacity;
    int64_t touched; /* work.touched, at hand for the inner loops */
    int64_t limit;   /* a search gives up once `touched` is above this */
    fgi_oracle_work work;
};

/* Has a search touched so much that a scan would be done sooner? It then returns FGI_UNSUPPORTED. */
static inline int fgi_oracle_is_spent(const fgi_oracle_scratch *w) { return w->touched > w->limit; }

/* Is this state not to be returned? */
static inline int fgi_is_banned(const fgi_oracle_scratch *w, int64_t state) {
    if (w->n_banned < 2) return w->n_banned && w->banned[0] == state;
    int64_t low = 0, high = w->n_banned;
    while (low < high) {
        int64_t mid = low + (high - low) / 2;
        if (w->banned[mid] < state) low = mid + 1;
        else high = mid;
    }
    return low < w->n_banned && w->banned[low] == state;
}

/* Where oracle/marginals.c puts the messages of variable k with the other sign. */
static inline double *fgi_oracle_negated(const fgi_oracle_scratch *w, int32_t k) {
    return w->bound + (int64_t)k * w->max_card;
}

/* Room for so many labels and variables; 0: out of memory. */
int fgi_oracle_reserve(fgi_oracle_scratch *w, int32_t max_card, int32_t max_arity);

int fgi_oracle_reserve_cards(fgi_oracle_scratch *w, int32_t arity);

/* Offers a state to the n best; -INFINITY is not offered. Among equal values the lower state comes first. */
void fgi_best_insert(fgi_best *best, int64_t state, double value);
static inline void fgi_best_offer(fgi_best *best, int64_t state, double value) {
    if (best->n == best->capacity && !(value > best->items[best->n - 1].value) &&
        (value < best->items[best->n - 1].value || state > best->items[best->n - 1].state))
        return;
    if (value > -INFINITY) fgi_best_insert(best, state, value);
}

/* The message at a label; 0 if it is not listed. */
double fgi_message_at(const fgi_message *m, int32_t label);

/* Forgets all marks. */
static inline void fgi_oracle_epoch(fgi_oracle_scratch *w) {
    if (++w->epoch == 0) {
        memset(w->mark, 0, (size_t)w->max_arity * (size_t)w->max_card * sizeof *w->mark);
        w->epoch = 1;
    }
}

/* The messages by label, in w->by_label: those that list all labels where they are, others in w->dense, which gather
 * clears again. */
void fgi_oracle_spread(const fgi_oracle_query *q, int32_t arity, const int32_t *cards, fgi_oracle_scratch *w);
void fgi_oracle_gather(const fgi_oracle_query *q, int32_t arity, fgi_oracle_scratch *w);

/* A lazy walk in descending order over heaps and tournament trees: nodes whose parents have been visited wait here.
 * Which: 0 and 1 for rows and columns by maximum, 2 for entries. push returns 0 when out of memory. */
int fgi_frontier_push(fgi_oracle_scratch *w, int which, int32_t *n, fgi_ranked item);
fgi_ranked fgi_frontier_pop(fgi_oracle_scratch *w, int which, int32_t *n);

/* Is this state better than the best so far: larger value, then lower flat index. */
static inline void fgi_argmax_offer(fgi_argmax *best, int64_t state, double value) {
    if (value > best->value || (value == best->value && state < best->state)) *best = (fgi_argmax){state, value};
}

/* ---- sorted access to a pairwise table, static or updatable, as a factor sees it: side 0 rows, side 1 columns  */

typedef struct fgi_walk { /* one row or column, descending */
    struct fgi_access *access;
    int32_t side, slice;
    const fgi_list *list; /* static: the list, the next position in it, where the slice lies in the table */
    int32_t at;
    int64_t base, step;
    int32_t zero; /* updatable: the next column that may be an implicit zero */
} fgi_walk;

typedef struct fgi_access {
    int32_t n[2];
    const double *max[2]; /* per row and column, unweighted */
    double (*entry)(const struct fgi_access *x, int32_t a, int32_t b);
    /* Rows (columns) by descending maximum. next returns 0 at the end, -1 out of memory; skip goes past all with the
     * same maximum as the last one. */
    int (*rank_open)(struct fgi_access *x, int side);
    int (*rank_next)(struct fgi_access *x, int side, int32_t *slice);
    void (*rank_skip)(struct fgi_access *x, int side);
    /* The entries of one of them. `below`: an upper bound on the entries to come that are smaller than the last one. */
    int (*walk_open)(struct fgi_access *x, fgi_walk *walk, int side, int32_t slice);
    int (*walk_next)(fgi_walk *walk, int32_t *other, double *theta);
    double (*walk_below)(fgi_walk *walk, double theta);
    fgi_oracle_scratch *scratch;
    int32_t rank_at[2];
    double last_max;   /* updatable: of the slice that rank_next gave last */
    const void *table; /* static: the view; updatable: the table */
    fgi_sorted *order;
} fgi_access;

/* ---- pairwise tables by rows, see oracle/scan.c; the messages are in w->by_label (fgi_oracle_spread) ------------- */

/* All rows. */
void fgi_scan_pair(const fgi_table_source *t, fgi_oracle_scratch *w, fgi_best *best);
/* The rows that a sliced table does not rule out; FGI_UNSUPPORTED: too many, a scan costs less. */
fgi_rc fgi_scan_slices(const fgi_table_source *t, fgi_oracle_scratch *w, fgi_best *best);

/* The four regions, see oracle/pairwise.c. */
fgi_rc fgi_regions_argmax(fgi_access *x, double weight, const fgi_oracle_query *q, fgi_argmax *out);
fgi_rc fgi_pairwise_argmax(
    const fgi_table_source *t, const fgi_oracle_query *q, fgi_oracle_scratch *w, fgi_argmax *out);
fgi_rc fgi_general_argmax(const fgi_table_source *t, const fgi_oracle_query *q, fgi_oracle_scratch *w, fgi_argmax *out);
fgi_rc fgi_implicit_argmax(
    const fgi_table_source *t, const fgi_oracle_query *q, fgi_oracle_scratch *w, fgi_argmax *out);

#endif
