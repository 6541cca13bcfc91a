/* learn/crf/gradient.c - derivatives by the weights of features: sums over the tokens that have one, of what their
 * cells hold (marginal minus truth).
 *
 * Each feature is added up by one thread, in the order of its tokens. Where labels are few, the features of a part go
 * through the tokens together, window by window, so that the cells of a window are read from the cache by all of
 * them. */
#include <string.h>
#include "learn/crf/crf.h"

#define WINDOW_CELLS 32768 /* doubles: 256 KB, within the second-level cache */
#define FEW 64             /* entries of a feature that are not worth a look in every window */

static inline double spread(double r, double weight) { /* weight * P (1 - P) of a residual; P may be rounded up */
    return weight > 0 ? fabs(r) * fgi_larger(0.0, 1 - fabs(r) / weight) : 0.0;
}

/* What a token's cells add to the sums over its features: x * cell, or x^2 P (1 - P). */
static void add_token(const crf_job *j, int64_t t, double x, const int32_t *columns, int64_t n, double *out) {
    const fgi_crf *c = j->c;
    const int64_t width = c->columns;
    const double *own = c->span_cells + crf_cell(c, t) - crf_cell(c, j->from);
    const double weight = c->token_weight ? c->token_weight[t] : 1.0;
    const int32_t *list = c->cell ? c->data.choice + c->cell[t] : NULL;
    const int64_t cells = list ? c->cell[t + 1] - c->cell[t] : width;
    if (columns && !j->square)
        for (int64_t k = 0; k < n; k++) out[k] += x * own[columns[k]];
    else if (columns)
        for (int64_t k = 0; k < n; k++) out[k] += x * x * spread(own[columns[k]], weight);
    else if (j->square)
        for (int64_t a = 0; a < cells; a++) out[list ? list[a] : a] += x * x * spread(own[a], weight);
    else if (list)
        for (int64_t a = 0; a < cells; a++) out[list[a]] += x * own[a];
    else c->kernels->axpy(width, x, own, out);
}

/* A few columns of one feature, over its entries i .. end. */
static void add_columns(const crf_job *j, int64_t i, int64_t end, const int32_t *columns, int64_t n, double *out) {
    const fgi_crf *c = j->c;
    const int64_t width = c->columns;
    const double *cells = c->span_cells - j->from * width, *value = c->column_value;
    const int32_t *token = c->column_token;
    for (int64_t k = 0; k < n; k++) {
        const double *column = cells + columns[k];
        double sum = 0;
        if (value)
            for (int64_t e = i; e < end; e++) sum += value[e] * column[token[e] * width];
        else
            for (int64_t e = i; e < end; e++) sum += column[token[e] * width];
        out[k] += sum;
    }
}

/* out[k] += sum over a feature's entries i .. end, for its columns (NULL: all). */
static void add_entries(
    const crf_job *j, int64_t i, int64_t end, const int32_t *columns, int64_t n, double *out, double *row) {
    const fgi_crf *c = j->c;
    const int64_t width = c->columns;
    const int narrow = width <= CRF_NARROW && !c->cell && !j->square;
    if (columns && !c->cell && !j->square && (narrow ? 8 : 3) * n <= width) {
        add_columns(j, i, end, columns, n, out);
        return;
    }
    const int picked = columns && (narrow || 3 * n > width || c->cell); /* all columns, then those that are wanted */
    double *into = picked ? row : out;
    if (picked) memset(row, 0, (size_t)width * sizeof(double));
    if (narrow)
        c->kernels->gather(c->span_cells - j->from * width, width, c->column_token + i,
            c->column_value ? c->column_value + i : NULL, end - i, into);
    else
        for (; i < end; i++)
            add_token(
                j, c->column_token[i], c->column_value ? c->column_value[i] : 1.0, picked ? NULL : columns, n, into);
    for (int64_t k = 0; picked && k < n; k++) out[k] += row[columns[k]];
}

/* One window of tokens, up to `to`, for the features first .. last of the set; in the last window what is left. */
static void add_window(const crf_job *j, int64_t first, int64_t last, int64_t to, int one, double *row) {
    const fgi_crf *c = j->c;
    const crf_pattern *p = &c->wanted;
    enum { LOOK = 64 }; /* features between two looks at the clock */
    for (int64_t k = first; k < last; k++) {
        const int64_t f = j->set ? p->features[k] : k, end = c->column_begin[f + 1], i = c->cursor[k];
        if (k % LOOK == 0 && crf_is_late(j->c)) return;
        if (c->bits.wanted && c->bits.slot[f] >= 0) continue;
        if (i == end || c->column_token[i] >= to) continue;
        if (!one && to < j->to && end - c->column_begin[f] <= FEW) continue;
        int64_t stop = end;
        if (to < j->to || j->to < c->tokens) {
            stop = i;
            if (end - i > FEW) stop = crf_first_entry(c, i, end, to);
            else
                while (stop < end && c->column_token[stop] < to) stop++;
        }
        c->cursor[k] = stop;
        if (j->set)
            add_entries(
                j, i, stop, p->columns + p->begin[k], p->begin[k + 1] - p->begin[k], j->gradient + p->begin[k], row);
        else add_entries(j, i, stop, NULL, c->columns, j->gradient + k * c->columns, row);
    }
}

int64_t crf_part_begin(const crf_job *j, int64_t part) {
    const int64_t *before = j->set ? j->c->wanted.before : j->c->column_begin;
    int64_t lo = 0, hi = j->set ? j->c->wanted.n_features : j->c->data.n_features;
    const int64_t goal = hi ? part * (before[hi] / j->parts) : 0;
    if (part == j->parts) return hi;
    while (lo < hi) {
        const int64_t mid = (lo + hi) / 2;
        if (before[mid] < goal) lo = mid + 1;
        else hi = mid;
    }
    return part ? lo : 0;
}

static void add_parts(void *context, int64_t begin, int64_t end, int worker) {
    const crf_job *j = context;
    fgi_crf *c = j->c;
    double *row = c->workers[worker].row;
    const int one = c->columns > CRF_NARROW || c->cell || j->square; /* one window */
    const int64_t window = one ? c->tokens : WINDOW_CELLS / c->columns;
    for (int64_t part = begin; part < end; part++) {
        const int64_t first = crf_part_begin(j, part), last = crf_part_begin(j, part + 1);
        for (int64_t k = first; k < last; k++) {
            const int64_t f = j->set ? c->wanted.features[k] : k;
            c->cursor[k] = c->column_begin[f];
            if (j->from > 0) c->cursor[k] = crf_first_entry(c, c->cursor[k], c->column_begin[f + 1], j->from);
        }
        for (int64_t t = j->from; t < j->to; t += window)
            add_window(j, first, last, j->to - t > window ? t + window : j->to, one, row);
    }
}

int crf_add_features(crf_job *j) {
    if (!crf_bits_prepare(j)) return 0;
    j->parts = 8 * j->c->threads; /* a few a thread: no part waits long for the others */
    if (j->c->threads == 1) j->parts = 1;
    fgi_pool_run(j->c->pool, j->parts, 1, add_parts, j);
    if (j->c->bits.wanted) crf_bits_add(j);
    return 1;
}
