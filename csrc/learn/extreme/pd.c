/* learn/extreme/pd.c - pd-sparse: fully corrective block-coordinate Frank-Wolfe (Yen et al., "PD-Sparse", 2016,
 * Algorithm 1).
 *
 *     G(alpha) = 1/2 sum_k |w_k|^2 + sum_i sum over k not in P_i of alpha_ik,   w_k = S_lambda(X^T alpha_k)
 *
 * is minimised over alpha^i >= 0 on P_i, <= 0 off it, both sums equal and at most C; -G bounds the primal from below.
 * The gradient of block i is <w_k, x_i>, plus 1 off P_i. A visit finds the most violating label off P_i, takes it into
 * the row's active set and projects alpha - gradient / |x_i|^2, which is the exact minimum of the quadratic bound.
 */
#include <string.h>
#include "learn/extreme/pd.h"
#include "base/meter.h"
#include "base/simplex.h"
#include "fginfer_search.h"

enum { LOOK = 16 }; /* rows between two looks at the clock */
/* Least curvature of a step, as a part of 1 / C: a row without features has none, and one step takes it to the end. */
static const double LEAST_CURVATURE = 1e-6;

/* ---- life ------------------------------------------------------------------------------------------------------ */

static fgi_rc check(const fgi_extreme_data *d, const fgi_pd_settings *settings, int32_t threads, fgi_error *err) {
    if (!(settings->C > 0.0 && settings->C < INFINITY))
        return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "C must be positive and finite");
    if (!(settings->lambda >= 0.0 && settings->lambda < INFINITY))
        return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "lambda must be finite and not negative");
    if (settings->parts < 1 || settings->parts > d->n_labels)
        return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "parts must be between 1 and the number of labels, %lld",
            (long long)d->n_labels);
    if (settings->search != FGI_PD_BY_ROWS && settings->search != FGI_PD_BY_INDEX)
        return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "unknown search %d", (int)settings->search);
    if (settings->search == FGI_PD_BY_INDEX && settings->parts > 1)
        return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "an index searches all labels: parts must be 1");
    if (threads < 1) return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "threads must be 1 or more");
    if (d->n_labels < 1 || d->n_labels > INT32_MAX || d->n_rows > INT32_MAX)
        return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "there must be labels, and not more than 2^31 of them or of rows");
    for (int64_t i = 0; i < d->n_rows; i++)
        if (d->label_begin[i] == d->label_begin[i + 1])
            return fgi_fail(err, FGI_BAD_MODEL, i, "row %lld has no label: its loss compares labels it has with others",
                (long long)i);
    return FGI_OK;
}

static int make_askers(fgi_pd *p, int64_t most_features, int64_t most_labels) {
    for (int32_t t = 0; t < p->threads; t++) {
        pd_asker *a = &p->askers[t];
        a->scratch = fgi_oracle_scratch_create((int32_t)p->data.n_labels, 1);
        a->x = fgi_alloc(most_features, sizeof(double));
        a->excluded = fgi_alloc(most_labels, sizeof(int64_t));
        if (!a->scratch || !a->x || !a->excluded) return 0;
    }
    return 1;
}

static fgi_rc make_blocks(fgi_pd *p, int64_t *most_features, int64_t *most_labels) {
    const fgi_extreme_data *d = &p->data;
    for (int64_t i = 0; i < d->n_rows; i++) {
        const int64_t begin = d->row_begin[i], end = d->row_begin[i + 1];
        const int32_t own = pd_own(p, i);
        for (int64_t k = begin; k < end; k++) p->squares[i] += (double)d->row_value[k] * (double)d->row_value[k];
        if (end - begin > *most_features) *most_features = end - begin;
        if (own > *most_labels) *most_labels = own;
        if (!pd_block_reserve(&p->blocks[i], own)) return FGI_NO_MEMORY;
        p->blocks[i].n = own;
        memcpy(p->blocks[i].label, d->label + d->label_begin[i], (size_t)own * sizeof(int32_t));
        memset(p->blocks[i].alpha, 0, (size_t)own * sizeof(double));
    }
    return FGI_OK;
}

fgi_rc fgi_pd_create(
    const fgi_extreme_data *data, const fgi_pd_settings *settings, int32_t threads, fgi_pd **out, fgi_error *err) {
    int64_t most_features = 0, most_labels = 0;
    fgi_rc rc = check(data, settings, threads, err);
    if (rc) return rc;
    fgi_pd *p = fgi_calloc(1, sizeof *p);
    if (!p) return fgi_no_memory(err);
    p->data = *data;
    p->settings = *settings;
    p->rng.state = settings->seed;
    p->threads = threads;
    p->squares = fgi_calloc(data->n_rows, sizeof(double));
    p->gaps = fgi_calloc(data->n_rows, sizeof(double));
    p->blocks = fgi_calloc(data->n_rows, sizeof *p->blocks);
    p->v = fgi_calloc(data->n_features, sizeof *p->v);
    p->askers = fgi_calloc(threads, sizeof *p->askers);
    rc = p->squares && p->gaps && p->blocks && p->v && p->askers ? FGI_OK : FGI_NO_MEMORY;
    if (!rc) rc = make_blocks(p, &most_features, &most_labels);
    if (!rc && !make_askers(p, most_features, most_labels)) rc = FGI_NO_MEMORY;
    if (!rc && threads > 1 && !(p->pool = fgi_pool_create(threads))) rc = FGI_NO_MEMORY;
    if (!rc) rc = fgi_products_create_sparse((int32_t)data->n_labels, data->n_features, &p->w, err);
    if (!rc && settings->search == FGI_PD_BY_INDEX) {
        fgi_search_settings index;
        fgi_search_defaults(&index);
        index.seed = settings->seed;
        rc = fgi_products_index(p->w, &index, 0, err);
    }
    if (rc) {
        fgi_pd_free(p);
        return rc == FGI_NO_MEMORY ? fgi_fail(err, rc, -1, "out of memory") : rc;
    }
    for (int64_t i = 0; i < data->n_rows; i++) p->gaps[i] = settings->C; /* w = 0: every row loses 1 */
    *out = p;
    return FGI_OK;
}

void fgi_pd_free(fgi_pd *p) {
    if (!p) return;
    fgi_pool_free(p->pool);
    for (int32_t t = 0; p->askers && t < p->threads; t++) {
        if (p->askers[t].scratch) fgi_oracle_scratch_free(p->askers[t].scratch);
        free(p->askers[t].x);
        free(p->askers[t].excluded);
    }
    for (int64_t i = 0; p->blocks && i < p->data.n_rows; i++) {
        free(p->blocks[i].label);
        free(p->blocks[i].alpha);
    }
    for (int64_t j = 0; p->v && j < p->data.n_features; j++) hash_row_free(&p->v[j]);
    if (p->w) fgi_products_free(p->w);
    void *all[] = {p->askers, p->blocks, p->v, p->squares, p->gaps, p->gradient, p->up, p->down, p->work,
        p->change_label, p->change_feature, p->change_value};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) free(all[k]);
    free(p);
}

int pd_block_reserve(pd_block *b, int32_t n) {
    if (n <= b->room) return 1;
    const int32_t room = b->room ? n + 4 : n; /* most rows never have more than a few others */
    if (!fgi_resize(&b->label, room, sizeof *b->label) || !fgi_resize(&b->alpha, room, sizeof *b->alpha)) return 0;
    b->room = room;
    return 1;
}

int pd_reserve_move(fgi_pd *p, int64_t row) {
    const int64_t n = p->blocks[row].n, changes = n * (p->data.row_begin[row + 1] - p->data.row_begin[row]);
    if (n > p->room) {
        const int64_t room = 2 * n;
        if (!fgi_resize(&p->gradient, room, sizeof(double)) || !fgi_resize(&p->up, room, sizeof(double)) ||
            !fgi_resize(&p->down, room, sizeof(double)) || !fgi_resize(&p->work, room, sizeof(double)))
            return 0;
        p->room = room;
    }
    if (changes > p->change_room) {
        const int64_t room = 2 * changes;
        if (!fgi_resize(&p->change_label, room, sizeof(int32_t)) ||
            !fgi_resize(&p->change_feature, room, sizeof(int32_t)) ||
            !fgi_resize(&p->change_value, room, sizeof(double)))
            return 0;
        p->change_room = room;
    }
    return 1;
}

/* ---- the search ------------------------------------------------------------------------------------------------ */

fgi_rc pd_ask(
    const fgi_pd *p, pd_asker *a, int64_t row, int32_t part, int32_t parts, fgi_access_path path, fgi_argmax *out) {
    const fgi_extreme_data *d = &p->data;
    const int64_t begin = d->row_begin[row], n = d->row_begin[row + 1] - begin;
    for (int64_t k = 0; k < n; k++) a->x[k] = (double)d->row_value[begin + k];
    for (int32_t k = 0; k < pd_own(p, row); k++) a->excluded[k] = d->label[d->label_begin[row] + k];
    const fgi_features x = {.n = n, .index = d->row_feature + begin, .values = a->x, .part = part, .parts = parts};
    const fgi_oracle_query q = {.source = fgi_products_source(p->w),
        .excluded = a->excluded,
        .n_excluded = pd_own(p, row),
        .hint = -1,
        .path = path,
        .x = &x};
    return fgi_oracle_answer(&q, a->scratch, out);
}

double pd_score(const fgi_pd *p, int64_t row, int32_t label) {
    const fgi_extreme_data *d = &p->data;
    double sum = 0.0;
    for (int64_t k = d->row_begin[row]; k < d->row_begin[row + 1]; k++)
        sum += (double)d->row_value[k] * fgi_soft(hash_row_get(&p->v[d->row_feature[k]], label), p->settings.lambda);
    return sum;
}

/* ---- a visit --------------------------------------------------------------------------------------------------- */

/* alpha of row's label k has grown by `change`: v and, where it shows, w follow. */
static int add_to_v(fgi_pd *p, int64_t row, int32_t label, double change, int64_t *n_changes) {
    const fgi_extreme_data *d = &p->data;
    const double lambda = p->settings.lambda;
    for (int64_t k = d->row_begin[row]; k < d->row_begin[row + 1]; k++) {
        hash_row *line = &p->v[d->row_feature[k]];
        double *v = p->refitting ? hash_row_find(line, label) : hash_row_at(line, label);
        if (!v && p->refitting) continue;
        if (!v) return 0;
        const double old = fgi_soft(*v, lambda);
        *v += change * (double)d->row_value[k];
        const double new = fgi_soft(*v, lambda);
        if (old == new) continue;
        p->change_label[*n_changes] = label;
        p->change_feature[*n_changes] = d->row_feature[k];
        p->change_value[(*n_changes)++] = new;
    }
    return 1;
}

/* The row's dual variables become what `up` and `down` hold; others that end at zero leave the active set. */
fgi_rc pd_move(fgi_pd *p, int64_t row, fgi_error *err) {
    pd_block *b = &p->blocks[row];
    const int32_t own = pd_own(p, row);
    int64_t n_changes = 0;
    int32_t kept = own;
    for (int32_t k = 0; k < b->n; k++) {
        const double new = k < own ? p->up[k] : -p->down[k - own], change = new - b->alpha[k];
        if (change != 0.0 && !add_to_v(p, row, b->label[k], change, &n_changes)) return fgi_no_memory(err);
        if (k < own) {
            b->alpha[k] = new;
        } else if (new != 0.0) {
            b->label[kept] = b->label[k];
            b->alpha[kept++] = new;
        }
    }
    b->n = kept;
    return fgi_products_set(p->w, n_changes, p->change_label, p->change_feature, p->change_value, err);
}

/* The projected step on the active labels. */
static fgi_rc step(fgi_pd *p, int64_t row, fgi_error *err) {
    pd_block *b = &p->blocks[row];
    const int32_t own = pd_own(p, row), others = b->n - own;
    if (!pd_reserve_move(p, row)) return fgi_no_memory(err);
    double lowest = INFINITY, highest = -INFINITY, inner = 0.0;
    for (int32_t k = 0; k < b->n; k++) {
        p->gradient[k] = pd_score(p, row, b->label[k]) + (k >= own);
        inner += p->gradient[k] * b->alpha[k];
        if (k < own) lowest = fgi_smaller(lowest, p->gradient[k]);
        else highest = fgi_larger(highest, p->gradient[k]);
    }
    p->gaps[row] = inner + p->settings.C * fgi_larger(0.0, others ? highest - lowest : 0.0);
    if (others == 0) return FGI_OK;
    const double curvature = fgi_larger(p->squares[row], LEAST_CURVATURE / p->settings.C);
    for (int32_t k = 0; k < own; k++) p->up[k] = b->alpha[k] - p->gradient[k] / curvature;
    for (int32_t k = 0; k < others; k++) p->down[k] = p->gradient[own + k] / curvature - b->alpha[own + k];
    fgi_bisimplex_project(p->up, own, p->down, others, p->settings.C, p->work);
    return pd_move(p, row, err);
}

static fgi_rc visit(fgi_pd *p, int64_t row, fgi_error *err) {
    pd_block *b = &p->blocks[row];
    fgi_argmax found = {-1, -INFINITY};
    const int32_t parts = p->settings.parts, part = parts > 1 ? (int32_t)fgi_rng_below(&p->rng, parts) : 0;
    const fgi_access_path path = p->settings.search == FGI_PD_BY_INDEX ? FGI_BY_SEARCH : FGI_BY_SCAN;
    const fgi_rc rc = pd_ask(p, &p->askers[0], row, part, parts, path, &found);
    if (rc) return fgi_fail(err, rc, -1, "out of memory");
    p->searches++;
    if (found.state >= 0) {
        int32_t k = pd_own(p, row);
        while (k < b->n && b->label[k] != found.state) k++;
        if (k == b->n) {
            if (!pd_block_reserve(b, b->n + 1)) return fgi_no_memory(err);
            b->label[b->n] = (int32_t)found.state;
            b->alpha[b->n++] = 0.0;
        }
    }
    return step(p, row, err);
}

fgi_rc fgi_pd_pass(fgi_pd *p, const int32_t *rows, int64_t m, int64_t *next, double deadline, fgi_error *err) {
    for (int64_t k = *next; k < m; k++)
        if (rows[k] < 0 || rows[k] >= p->data.n_rows)
            return fgi_fail(err, FGI_BAD_ARGUMENT, k, "there is no row %d", (int)rows[k]);
    fgi_meter meter = {LOOK, 0, deadline};
    while (*next < m) {
        const fgi_rc rc = visit(p, rows[*next], err);
        if (rc) return rc;
        ++*next;
        if (fgi_meter_spend(&meter, 1)) break;
    }
    return FGI_OK;
}

/* Keeps the combined values of one feature that are weights, and makes them the weights. */
static fgi_rc keep_weights(fgi_pd *p, int32_t feature, fgi_error *err) {
    hash_row kept = {0};
    const hash_row *all = &p->v[feature];
    for (int64_t e = 0; all->entries && e < (int64_t)1 << all->bits; e++) {
        const hash_entry *entry = &all->entries[e];
        if (entry->label < 0 || fabs(entry->value) <= p->settings.lambda) continue;
        double *v = hash_row_at(&kept, entry->label);
        if (v) *v = entry->value;
        const fgi_rc rc =
            v ? fgi_products_set(p->w, 1, &entry->label, &feature, &entry->value, err) : fgi_no_memory(err);
        if (rc) {
            hash_row_free(&kept);
            return rc;
        }
    }
    hash_row_free(&p->v[feature]);
    p->v[feature] = kept;
    return FGI_OK;
}

fgi_rc fgi_pd_refit(fgi_pd *p, fgi_error *err) {
    for (int64_t j = 0; j < p->data.n_features; j++) {
        const fgi_rc rc = keep_weights(p, (int32_t)j, err);
        if (rc) return rc;
    }
    p->settings.lambda = 0.0;
    p->refitting = 1;
    return FGI_OK;
}

fgi_rc fgi_pd_project(double *p, int32_t n, double *q, int32_t m, double size, fgi_error *err) {
    double *work = fgi_alloc((int64_t)n + m, sizeof *work);
    if (!work) return fgi_no_memory(err);
    fgi_bisimplex_project(p, n, q, m, size, work);
    free(work);
    return FGI_OK;
}
