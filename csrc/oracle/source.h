/* oracle/source.h - what an oracle is asked about: a source, and the few functions that make one.
 *
 * To add a source: a struct that begins with an fgi_source, an fgi_source_ops, and a function that gives the
 * fgi_source; oracle/ranking.c is the shortest example. tests/oracles compares every source with a scan. */
#ifndef FGI_SOURCE_H
#define FGI_SOURCE_H
#include "fginfer_oracle.h"

typedef struct fgi_oracle_scratch fgi_oracle_scratch;

/* The best states seen so far: `items` is in order, `n` of at most `capacity`. */
typedef struct fgi_best {
    fgi_argmax *items;
    int64_t n, capacity;
} fgi_best;

typedef struct fgi_source_ops {
    /* Variables of the factor asked about, and their label counts; 0 variables: there is no such factor. */
    int32_t (*arity)(const fgi_oracle_query *q);
    int32_t (*card)(const fgi_oracle_query *q, int32_t k);
    fgi_rc (*check)(const fgi_oracle_query *q, fgi_error *err); /* what is special to the source; NULL: nothing */
    /* The next best state, or several, appended to *best, without looking at all of them; banned ones (fgi_is_banned)
     * left out; none: there is none left. FGI_UNSUPPORTED: not in this case, or not before fgi_oracle_is_spent; then
     * the rest is scanned. NULL: never. */
    fgi_rc (*search)(const fgi_oracle_query *q, fgi_oracle_scratch *w, fgi_best *best);
    /* The n best by looking at every state; banned ones left out. */
    fgi_rc (*scan)(const fgi_oracle_query *q, fgi_oracle_scratch *w, fgi_best *best);
    int (*prefers_scan)(const fgi_oracle_query *q); /* FGI_BY_SIZE: which is faster; the rule was measured */
    /* FGI_BY_SIZE: entries that a search may touch before it gives up, so that it and the scan that follows take at
     * most 1.3 times as long as the scan alone; 0: too few for its messages. NULL: a search never takes that long. */
    int64_t (*patience)(const fgi_oracle_query *q);
    /* Max-marginals of one variable, as fgi_oracle_ask_marginals says; NULL: the source has but one. */
    fgi_rc (*marginals)(const fgi_oracle_query *q, int32_t variable, fgi_oracle_scratch *w, double *out);
} fgi_source_ops;

struct fgi_source {
    const fgi_source_ops *ops;
};

/* ---- a search index under an inner-product source ---------------------------------------------------------------- */

/* Something that finds labels with large <w_k, x> without looking at all of them; it begins with this. */
typedef struct fgi_search_index {
    const struct fgi_search_ops *ops;
} fgi_search_index;

typedef struct fgi_search_ops {
    /* Labels worth scoring when the n best are wanted, distinct and ascending, at most `capacity`; *n says how many.
     * *rest: no other label has a larger <w_k, x>; INFINITY where the index proves nothing. Products and entries read
     * are added to *work. The source computes the scores themselves. */
    fgi_rc (*find)(const fgi_search_index *index, const fgi_features *x, int64_t n_best, int32_t *labels,
        int32_t capacity, int32_t *n, double *rest, fgi_oracle_work *work);
    /* Weights (labels[k], features[k]) of the source have changed; NULL: the index does not follow. */
    fgi_rc (*follow)(fgi_search_index *index, const fgi_products *p, int64_t n, const int32_t *labels,
        const int32_t *features, fgi_error *err);
    void (*free)(fgi_search_index *index);
} fgi_search_ops;

/* The source takes the index over and frees it; NULL takes it away. It is asked by FGI_BY_SEARCH and, with
 * fgi_oracle_query.approximate, by FGI_BY_SIZE; without `approximate` an answer that `rest` does not prove is found by
 * a scan. It is told of changes of sparse weights (`follow`); whoever changes dense ones rebuilds it or takes it away.
 */
void fgi_products_attach(fgi_products *p, fgi_search_index *index);
void fgi_products_sizes(const fgi_products *p, int32_t *labels, int64_t *features, double *scale);

#endif
