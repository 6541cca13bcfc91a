/* oracle/search_query.h - what the ways to answer a batch of queries share: search_query.c, search_scan.c,
 * search_coded.c. */
#ifndef FGI_SEARCH_QUERY_H
#define FGI_SEARCH_QUERY_H
#include "oracle/search_index.h"

typedef struct fgi_one_query {
    const float *x; /* padded */
    double length;  /* |x| */
    int bounded;    /* bounds hold */
    const fgi_message *message;
    int32_t n_excluded;
    const int32_t *excluded;
    int32_t want;
    uint64_t *sieve; /* bits of labels with a message or an exclusion, by their lowest digits; few others hit them */
} fgi_one_query;

typedef struct fgi_search_batch {
    fgi_search *s;
    const fgi_search_query *q;
    int32_t *labels;
    double *values;
    uint8_t *proven;
    uint8_t *late; /* per query: left to the second pass */
    double *floor; /* what the first pass of it has found */
    int32_t *list; /* the queries of the second pass */
    int64_t n_late;
    int skip;      /* first passes only for a few */
    int no_bounds; /* none */
    int in_bytes;  /* the second pass may use these */
} fgi_search_batch;

/* Query i at place `place` of a thread's working memory. */
fgi_one_query fgi_search_load(
    const fgi_search_batch *b, int64_t i, fgi_search_scratch *w, int place, fgi_message *message);
/* Labels with a message or an exclusion are not taken on the way: the former are offered before the others. */
void fgi_search_insert(const fgi_one_query *o, fgi_top *top, double value, int32_t label);
void fgi_search_offer_messages(const fgi_search *index, const fgi_one_query *o, fgi_search_scratch *w, fgi_top *top);
void fgi_search_answer(const fgi_search_batch *b, int64_t i, fgi_top *top, int proven);

static inline void fgi_search_offer(const fgi_one_query *o, fgi_top *top, double value, int32_t label) {
    if (value >= top->floor) fgi_search_insert(o, top, value, label);
}

/* The second pass over groups of b->list; how it goes over the rows does not matter for the answers. */
void fgi_search_scan(void *batch, int64_t begin, int64_t end, int worker);
/* Approximate search by codes: queries. */
void fgi_search_coded(void *batch, int64_t begin, int64_t end, int worker);
/* Queries that go over the codes together: n of them from i on, and the rows that their codes find. */
typedef struct fgi_code_group {
    int n;
    fgi_one_query query[FGI_CODE_QUERIES];
    fgi_message message[FGI_CODE_QUERIES];
    fgi_code_list found[FGI_CODE_QUERIES];
} fgi_code_group;
void fgi_search_scan_group(const fgi_search_batch *b, int64_t i, int64_t end, int worker, fgi_code_group *g);
/* Whether labels with a message or an exclusion include this one. */
int fgi_search_excludes(const fgi_one_query *o, int32_t label);
/* Errors of a question. */
fgi_rc fgi_search_check(const fgi_search *index, const fgi_search_query *q, fgi_error *err);
/* Codes, bytes, and working memory for a batch that wants `most` labels at most; 0 when out of memory. */
int fgi_search_reserve_codes(const fgi_search_batch *b, int32_t most);
/* Rows of query i whose inner products are computed: labels with messages or exclusions do not count. */
int32_t fgi_search_candidates(const fgi_search_batch *b, int64_t i);
/* Whether a scan for so many rows would gain by bytes. */
int fgi_search_wants_bytes(const fgi_search *index, int32_t want);
/* What these need besides the rows, made when first asked for; 0 when out of memory. */
int fgi_search_make_bytes(fgi_search *index);
int fgi_search_make_codes(fgi_search *index);

#endif
