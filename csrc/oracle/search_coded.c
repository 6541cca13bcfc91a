/* oracle/search_coded.c - approximate queries of a search index by one-bit codes: all rows are ranked by these, the
 * candidates by a byte a column, and of the best of them the inner products are computed. */
#include "base/cutoff.h"
#include "base/util.h"
#include "oracle/search_query.h"

int32_t fgi_search_candidates(const fgi_search_batch *b, int64_t i) {
    const fgi_search_query *q = b->q;
    int64_t n = q->candidates > q->want ? q->candidates : q->want;
    if (q->message_begin) n += q->message_begin[i + 1] - q->message_begin[i];
    if (q->excluded_begin) n += q->excluded_begin[i + 1] - q->excluded_begin[i];
    return (int32_t)(n < b->s->rows ? n : b->s->rows);
}

/* How many of the candidates of a query are computed. Bytes are wrong by less than a hundredth of a length, which
 * leaves out few of the best: a quarter more are enough. */
static int64_t finalists(const fgi_one_query *o, int64_t candidates) {
    const int64_t most = o->want + o->want / 4 + 4 + o->message->n + o->n_excluded;
    return most < candidates ? most : candidates;
}

/* The inner products of rows that lie anywhere: the memory is asked for them beforehand. */
static void compute(const fgi_search *index, const fgi_one_query *o, const int32_t *labels, int64_t n,
    fgi_search_scratch *w, fgi_top *top) {
    enum {
        AHEAD = 8, /* rows */
        LINE = 16  /* floats of a cache line */
    };
    for (int64_t k = 0; k < n + AHEAD; k++) {
        if (k < n) {
            const float *row = fgi_search_at(index, labels[k]);
            for (int64_t at = 0; at < index->d; at += LINE) __builtin_prefetch(row + at);
        }
        if (k < AHEAD) continue;
        float score;
        index->kernels->dots(fgi_search_at(index, labels[k - AHEAD]), 1, index->stride, index->d, o->x, &score);
        fgi_search_offer(o, top, score, labels[k - AHEAD]);
    }
    w->touched += n;
}

/* w->guesses: what bytes make of the n candidates in w->chosen, in some unit. */
static void guess(const fgi_search *index, const fgi_one_query *o, int64_t n, fgi_search_scratch *w) {
    const fgi_bytes *b = index->bytes;
    const fgi_byte_scan scan = {.codes = b->codes, .stride = b->stride, .width = b->stride, .factor = b->factor};
    const fgi_byte_x x = fgi_bytes_query(b, o->x, w->whole);
    const fgi_byte_query q = {.x = w->whole, .offset = x.offset};
    index->kernels->guess_bytes(&scan, &q, n, w->chosen, w->guesses);
}

/* w->chosen: n candidates, of which the best by bytes are left; how many. */
static int64_t choose(const fgi_search *index, const fgi_one_query *o, int64_t n, fgi_search_scratch *w) {
    const int64_t most = finalists(o, n);
    if (most == n) return n;
    guess(index, o, n, w);
    for (int64_t k = 0; k < n; k++) w->keys[k] = fgi_cutoff_key(w->guesses[k]);
    fgi_cutoff cutoff = fgi_cutoff_of(w->keys, n, most);
    int64_t kept = 0;
    for (int64_t k = 0; k < n; k++) {
        w->chosen[kept] = w->chosen[k];
        kept += fgi_cutoff_takes(&cutoff, w->guesses[k]);
    }
    return kept;
}

void fgi_search_scan_group(const fgi_search_batch *b, int64_t i, int64_t end, int worker, fgi_code_group *g) {
    const float *x[FGI_CODE_QUERIES];
    int32_t want[FGI_CODE_QUERIES];
    g->n = end - i < FGI_CODE_QUERIES ? (int)(end - i) : FGI_CODE_QUERIES;
    for (int j = 0; j < g->n; j++) {
        g->query[j] = fgi_search_load(b, i + j, &b->s->scratch[worker], j, &g->message[j]);
        x[j] = g->query[j].x;
        want[j] = fgi_search_candidates(b, i + j);
    }
    fgi_codes_scan(b->s->codes, g->n, x, want, g->found, worker);
}

void fgi_search_coded(void *batch, int64_t begin, int64_t end, int worker) {
    const fgi_search_batch *b = batch;
    const fgi_search *index = b->s;
    fgi_search_scratch *w = &index->scratch[worker];
    fgi_top *top = w->top;
    fgi_code_group g;
    for (int64_t i = begin; i < end; i += FGI_CODE_QUERIES) {
        fgi_search_scan_group(b, i, end, worker, &g);
        for (int j = 0; j < g.n; j++) {
            const fgi_one_query *o = &g.query[j];
            const fgi_code_list *found = &g.found[j];
            const int all = found->n == index->rows;
            for (int64_t k = 0; k < found->n; k++) w->chosen[k] = found->hits[k].row;
            const int64_t chosen = all ? found->n : choose(index, o, found->n, w);
            fgi_top_clear(top, b->q->want, -INFINITY);
            fgi_search_offer_messages(index, o, w, top);
            compute(index, o, w->chosen, chosen, w, top);
            fgi_search_answer(b, i + j, top, all);
        }
    }
}

typedef struct encoding {
    fgi_search *s;
    fgi_codes *codes;
} encoding;

/* Blocks of rows. */
static void encode(void *context, int64_t begin, int64_t end, int worker) {
    const encoding *e = context;
    for (int64_t k = begin * FGI_CODE_BLOCK; k < end * FGI_CODE_BLOCK && k < e->s->rows; k++)
        fgi_codes_set(e->codes, (int32_t)k, fgi_search_at(e->s, (int32_t)k), worker);
}

int fgi_search_make_codes(fgi_search *index) {
    if (index->codes) return 1;
    encoding e = {index,
        fgi_codes_create(index->rows, index->d, index->settings.parts, index->threads, index->settings.seed,
            fgi_search_mean(index))};
    if (!e.codes) return 0;
    fgi_pool_run(index->pool, (index->rows + FGI_CODE_BLOCK - 1) / FGI_CODE_BLOCK, 16, encode, &e);
    fgi_codes_rescale(e.codes);
    index->codes = e.codes;
    return 1;
}
