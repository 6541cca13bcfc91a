/* learn/crf/scores.c - unary scores of tokens from the weights that are not zero: by words of bits (learn/crf/bits.c),
 * row by row, or feature by feature when few features are in use. All add in the order of the features, those that have
 * words first.
 *
 * Where labels are few, the rows of w that are in use are packed first: w is as large as all features, and a row of it
 * is in no cache, while those in use are few, and most of what tokens have are the same few hundred of them. */
#include <string.h>
#include "learn/crf/crf.h"

/* cells[column] += x * w[column] for the columns of one feature that are in use. */
static inline void add_feature(
    const fgi_crf *c, const crf_pattern *p, int64_t k, const double *w, double x, double *cells) {
    const int64_t b = p->begin[k], e = p->begin[k + 1];
    const double *row = w + p->features[k] * c->columns;
    if (2 * (e - b) > c->columns) {
        c->kernels->axpy(c->columns, x, row, cells);
        return;
    }
    for (int64_t i = b; i < e; i++) cells[p->columns[i]] += x * row[p->columns[i]];
}

int crf_load_weights(fgi_crf *c, const double *w) {
    const crf_pattern *p = &c->support;
    const int64_t width = c->columns, entries = p->n_features ? p->before[p->n_features] : 0;
    /* finding a feature's place in a block costs about as much as eight of its entries */
    c->by_features = !c->cell && 2 * entries + 8 * p->n_features * c->n_blocks < c->data.row_begin[c->tokens];
    if (c->cell || width > CRF_NARROW) return 1;
    if (p->n_features * width > c->room_packed) {
        free(c->packed);
        c->room_packed = p->n_features * width;
        if (!(c->packed = fgi_alloc(c->room_packed, sizeof(double)))) {
            c->room_packed = 0;
            return 0;
        }
    }
    if (!crf_bits_load(c, w)) return 0;
    if (c->by_features || c->bits.now) return 1;
    for (int64_t k = 0; k < p->n_features; k++)
        memcpy(c->packed + k * width, w + p->features[k] * width, (size_t)width * sizeof(double));
    return 1;
}

static void by_packed_rows(crf_worker *k, int64_t first, int64_t last, double *cells) {
    const fgi_crf *c = k->crf;
    const fgi_learn_data *d = &c->data;
    const int32_t *at = c->support.at;
    for (int64_t t = first; t < last; t++, cells += c->columns) {
        int64_t n = 0;
        for (int64_t j = d->row_begin[t]; j < d->row_begin[t + 1]; j++) { /* no branch: half of them would be missed */
            k->active[n] = at[d->feature[j]];
            if (d->value) k->active_value[n] = d->value[j];
            n += k->active[n] >= 0;
        }
        c->kernels->gather(c->packed, c->columns, k->active, d->value ? k->active_value : NULL, n, cells);
    }
}

static void by_rows(const fgi_crf *c, const double *w, int64_t first, int64_t last, double *cells) {
    const fgi_learn_data *d = &c->data;
    const crf_pattern *p = &c->support;
    const int64_t base = crf_cell(c, first);
    for (int64_t t = first; t < last; t++) {
        double *own = cells + crf_cell(c, t) - base;
        for (int64_t j = d->row_begin[t]; j < d->row_begin[t + 1]; j++) {
            const int32_t k = p->at[d->feature[j]];
            if (k < 0) continue;
            const double x = d->value ? d->value[j] : 1.0;
            if (!c->cell) {
                add_feature(c, p, k, w, x, own);
                continue;
            }
            const double *row = w + d->feature[j] * c->columns;
            const int32_t *list = d->choice + c->cell[t];
            for (int64_t a = 0; a < c->cell[t + 1] - c->cell[t]; a++) own[a] += x * row[list[a]];
        }
    }
}

static void by_features(const fgi_crf *c, const double *w, int64_t first, int64_t last, double *cells) {
    const crf_pattern *p = &c->support;
    const int64_t width = c->columns;
    const int32_t *token = c->column_token;
    cells -= first * width;
    for (int64_t k = 0; k < p->n_features; k++) {
        const int64_t end = c->column_begin[p->features[k] + 1], b = p->begin[k], n = p->begin[k + 1] - b;
        if (c->bits.now && c->bits.slot[p->features[k]] >= 0) continue;
        int64_t i = crf_first_entry(c, c->column_begin[p->features[k]], end, first);
        const double *row = w + p->features[k] * width;
        if (2 * n > width || c->column_value) {
            for (; i < end && token[i] < last; i++)
                add_feature(c, p, k, w, c->column_value ? c->column_value[i] : 1.0, cells + token[i] * width);
            continue;
        }
        for (; i < end && token[i] < last; i++) {
            double *own = cells + token[i] * width;
            for (int64_t a = b; a < b + n; a++) own[p->columns[a]] += row[p->columns[a]];
        }
    }
}

void crf_fill_scores(crf_worker *k, const double *w, int64_t block, double *cells) {
    const fgi_crf *c = k->crf;
    const int64_t from = c->data.token_begin[c->block[block]], to = c->data.token_begin[c->block[block + 1]];
    if (c->bits.now) crf_bits_scores(c, block, cells);
    else memset(cells, 0, (size_t)(crf_cell(c, to) - crf_cell(c, from)) * sizeof(double));
    if (c->bits.now || c->by_features) by_features(c, w, from, to, cells);
    else if (!c->cell && c->columns <= CRF_NARROW) by_packed_rows(k, from, to, cells);
    else by_rows(c, w, from, to, cells);
}

double crf_pair_score(const fgi_crf *c, const double *w, int64_t edge, int64_t a, int64_t b) {
    const fgi_learn_data *d = &c->data;
    const int64_t k = d->n_labels;
    const double *table = w + c->unary + a * k + b;
    if (!d->edge_row) return *table;
    double sum = 0;
    for (int64_t j = d->edge_row[edge]; j < d->edge_row[edge + 1]; j++)
        sum += (d->edge_value ? d->edge_value[j] : 1.0) * table[d->edge_feature[j] * k * k];
    return sum;
}
