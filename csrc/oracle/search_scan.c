/* oracle/search_scan.c - queries over all rows of a search index, many sharing the reading: in bytes with bounds where
 * these leave few rows to compute, else in single precision. */
#include <string.h>
#include "base/util.h"
#include "oracle/search_query.h"

enum {
    FEW = 64,      /* at least so many rows a wanted one: else most rows of a list may matter, and bounds do not help */
    HOPELESS = 16, /* rows seen for each that had to be computed, below which a query gives up on bounds */
    WIDEST = 1 << 16 /* columns whose sums fit into 32 bits */
};

/* ---- in bytes --------------------------------------------------------------------------------------------------- */

int fgi_search_make_bytes(fgi_search *index) {
    if (index->bytes) return 1;
    fgi_bytes *b = fgi_bytes_create(index->rows, index->d, fgi_search_mean(index));
    if (!b) return 0;
    for (int32_t t = 0; t < index->threads; t++) {
        fgi_search_scratch *w = &index->scratch[t];
        if (!w->whole) w->whole = fgi_alloc(FGI_SEARCH_GROUP * b->stride, 1);
        if (!w->whole) {
            fgi_bytes_free(b);
            return 0;
        }
    }
    for (int64_t k = 0; k < index->rows; k++) fgi_bytes_set(b, (int32_t)k, fgi_search_at(index, (int32_t)k));
    index->bytes = b;
    return 1;
}

int fgi_search_wants_bytes(const fgi_search *index, int32_t want) {
    return index->rows / FEW >= want && index->d <= WIDEST;
}

typedef struct byte_group {
    fgi_byte_scan scan;
    fgi_byte_x x[FGI_SEARCH_GROUP];
    double slack[FGI_SEARCH_GROUP];
    int64_t computed[FGI_SEARCH_GROUP];
    int place[FGI_SEARCH_GROUP]; /* which of the scan's queries each one is */
} byte_group;

static void set_floor(byte_group *g, int k, const fgi_top *top) {
    fgi_bytes_floor(&g->x[k], top[g->place[k]].floor, g->slack[k], &g->scan.q[k]);
}

/* Query k of the scan has given up. */
static void drop(byte_group *g, int k) {
    const int last = --g->scan.queries;
    g->scan.q[k] = g->scan.q[last];
    g->x[k] = g->x[last];
    g->slack[k] = g->slack[last];
    g->computed[k] = g->computed[last];
    g->place[k] = g->place[last];
}

/* The rows of a block that may matter to query k of the scan. */
static void compute(
    const fgi_search *index, byte_group *g, int k, int64_t block, const fgi_one_query *o, fgi_top *top) {
    for (uint32_t left = g->scan.q[k].reached; left; left &= left - 1) {
        const int64_t label = block * FGI_BYTE_BLOCK + __builtin_ctz(left);
        if (label >= index->rows) break;
        float score;
        index->kernels->dots(fgi_search_at(index, (int32_t)label), 1, index->stride, index->d, o->x, &score);
        fgi_search_offer(o, top, score, (int32_t)label);
        g->computed[k]++;
    }
}

/* Bit k of the result: query k of the group has given up, its list is of no use. */
static uint32_t scan_bytes(const fgi_search *index, const fgi_one_query *o, int n, fgi_search_scratch *w) {
    const fgi_bytes *b = index->bytes;
    const int64_t blocks = (index->rows + FGI_BYTE_BLOCK - 1) / FGI_BYTE_BLOCK;
    uint32_t given_up = 0;
    byte_group g = {.scan = {b->codes, b->stride, b->stride, b->factor, b->errors, b->lengths, 0, {{0}}}};
    for (int at = 0; at < n; at++) {
        if (!o[at].bounded) {
            given_up |= 1u << at;
            continue;
        }
        const int k = g.scan.queries++;
        g.x[k] = fgi_bytes_query(b, o[at].x, w->whole + k * b->stride);
        g.scan.q[k].x = w->whole + k * b->stride;
        g.scan.q[k].offset = g.x[k].offset;
        g.slack[k] = (2 * index->rounding + 4e-6) * index->longest * o[at].length;
        g.place[k] = at;
        set_floor(&g, k, w->top);
    }
    for (int64_t block = 0; g.scan.queries > 0; block++) {
        block = index->kernels->next_bytes(&g.scan, block, blocks);
        if (block == blocks) break;
        for (int k = g.scan.queries - 1; k >= 0; k--) {
            if (!g.scan.q[k].reached) continue;
            const int at = g.place[k];
            compute(index, &g, k, block, &o[at], &w->top[at]);
            set_floor(&g, k, w->top);
            if (g.computed[k] < 8 * (int64_t)o[at].want + 1024 + block * FGI_BYTE_BLOCK / HOPELESS) continue;
            w->touched += g.computed[k];
            given_up |= 1u << at;
            drop(&g, k);
        }
    }
    for (int k = 0; k < g.scan.queries; k++) w->touched += g.computed[k];
    return given_up;
}

/* ---- in single precision ---------------------------------------------------------------------------------------- */

/* The scores of one cluster's rows, for queries which[from] .. which[from + 3] of n. */
static void scan_cell(const fgi_search *index, const fgi_cell *cell, const fgi_one_query *o, const int *which, int from,
    int n, fgi_search_scratch *w) {
    const float *x[4];
    const int some = n - from < 4 ? n - from : 4;
    for (int j = 0; j < 4; j++) x[j] = o[which[from + (j < some ? j : 0)]].x;
    if (some > 1) index->kernels->dots4(cell->rows, cell->n, index->stride, index->d, x, w->scores);
    else index->kernels->dots(cell->rows, cell->n, index->stride, index->d, x[0], w->scores[0]);
    for (int j = 0; j < some; j++) {
        const fgi_one_query *one = &o[which[from + j]];
        fgi_top *top = &w->top[which[from + j]];
        for (int32_t k = 0; k < cell->n; k++)
            if (w->scores[j][k] >= top->floor) fgi_search_insert(one, top, w->scores[j][k], cell->labels[k]);
    }
}

static void scan_cells(
    const fgi_search *index, const fgi_one_query *o, const int *which, int n, fgi_search_scratch *w) {
    for (int32_t c = 0; c < index->clusters; c++)
        for (int from = 0; from < n; from += 4) scan_cell(index, &index->cells[c], o, which, from, n, w);
    w->touched += n * index->rows;
}

/* ---- groups ----------------------------------------------------------------------------------------------------- */

static void start(const fgi_search_batch *b, const fgi_one_query *o, double floor, int j, fgi_search_scratch *w) {
    fgi_top_clear(&w->top[j], b->q->want, floor);
    fgi_search_offer_messages(b->s, o, w, &w->top[j]);
}

void fgi_search_scan(void *batch, int64_t begin, int64_t end, int worker) {
    const fgi_search_batch *b = batch;
    const fgi_search *index = b->s;
    fgi_search_scratch *w = &index->scratch[worker];
    for (int64_t group = begin; group < end; group++) {
        const int32_t *list = b->list + group * FGI_SEARCH_GROUP;
        const int64_t left = b->n_late - group * FGI_SEARCH_GROUP;
        const int n = left < FGI_SEARCH_GROUP ? (int)left : FGI_SEARCH_GROUP;
        fgi_one_query o[FGI_SEARCH_GROUP];
        fgi_message message[FGI_SEARCH_GROUP];
        uint32_t dense = (1u << n) - 1;
        int which[FGI_SEARCH_GROUP], n_dense = 0;
        for (int j = 0; j < n; j++) {
            o[j] = fgi_search_load(b, list[j], w, j, &message[j]);
            start(b, &o[j], b->floor[list[j]], j, w);
        }
        if (b->in_bytes) {
            dense = scan_bytes(index, o, n, w);
            for (int j = 0; j < n; j++)
                if (dense >> j & 1) start(b, &o[j], w->top[j].floor, j, w);
        }
        for (int j = 0; j < n; j++)
            if (dense >> j & 1) which[n_dense++] = j;
        if (n_dense > 0) scan_cells(index, o, which, n_dense, w);
        for (int j = 0; j < n; j++) fgi_search_answer(b, list[j], &w->top[j], 1);
    }
}
