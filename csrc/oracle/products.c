/* oracle/products.c - labels scored by inner products, start(y) + <w_y, x>: the unigram oracle of learning, the most
 * violating label of extreme classification, prediction with many labels.
 *
 * Scores are added up feature by feature in the order in which x lists them, whatever the storage, so that all layouts
 * give the same bits. Dense weights are borrowed; sparse ones are rows of (label, value) by feature, its own or
 * borrowed, and a question then costs the lengths of the rows of x's features: labels that no row mentions all score
 * `start`, and the first of them stands for all. A search index (oracle/source.h) proposes labels; their scores are
 * still computed here. */
#include "oracle/internal.h"
#include "base/array.h"
#include "base/assert.h"
#include "base/kernels.h"
#include "base/util.h"

typedef struct weight_row { /* one feature: labels ascending */
    int32_t n, capacity;
    int32_t *labels;
    double *values;
} weight_row;

typedef enum storage { BY_LABEL, BY_FEATURE, SPARSE, BORROWED_ROWS } storage;

struct fgi_products {
    fgi_source base;
    storage storage;
    int32_t n_labels;
    int64_t n_features;
    double scale;
    const double *dense; /* borrowed */
    weight_row *rows;    /* sparse */
    fgi_weight_rows borrowed;
    int64_t nonzeros, bytes;
    fgi_search_index *index;
};

static const fgi_source_ops products_ops;

/* ---- life -------------------------------------------------------------------------------------------------------- */

static fgi_rc create(
    int32_t n_labels, int64_t n_features, const double *dense, storage store, fgi_products **out, fgi_error *err) {
    if (n_labels < 1 || n_features < 0 || n_features > INT32_MAX)
        return fgi_fail(
            err, FGI_BAD_ARGUMENT, -1, "weights of %d labels and %lld features", n_labels, (long long)n_features);
    fgi_products *p = fgi_calloc(1, sizeof *p);
    if (p && store == SPARSE && !(p->rows = fgi_calloc(n_features, sizeof *p->rows))) {
        free(p);
        p = NULL;
    }
    if (!p) return fgi_no_memory(err);
    p->base.ops = &products_ops;
    p->storage = store;
    p->n_labels = n_labels;
    p->n_features = n_features;
    p->scale = 1.0;
    p->dense = dense;
    p->bytes = (int64_t)sizeof *p + (store == SPARSE ? n_features * (int64_t)sizeof *p->rows : 0);
    *out = p;
    return FGI_OK;
}

fgi_rc fgi_products_create_dense(
    int32_t n_labels, int64_t n_features, const double *weights, int32_t layout, fgi_products **out, fgi_error *err) {
    if (layout != FGI_ROWS_BY_LABEL && layout != FGI_ROWS_BY_FEATURE)
        return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "there is no layout %d", layout);
    return create(n_labels, n_features, weights, layout == FGI_ROWS_BY_LABEL ? BY_LABEL : BY_FEATURE, out, err);
}

fgi_rc fgi_products_create_sparse(int32_t n_labels, int64_t n_features, fgi_products **out, fgi_error *err) {
    return create(n_labels, n_features, NULL, SPARSE, out, err);
}

void fgi_products_attach(fgi_products *p, fgi_search_index *index) {
    if (p->index) p->index->ops->free(p->index);
    p->index = index;
}

void fgi_products_sizes(const fgi_products *p, int32_t *labels, int64_t *features, double *scale) {
    *labels = p->n_labels;
    *features = p->n_features;
    *scale = p->scale;
}

void fgi_products_borrow(fgi_products *p, const double *weights) {
    if (p->storage == BORROWED_ROWS) p->storage = BY_FEATURE;
    p->dense = weights;
}

void fgi_products_borrow_rows(fgi_products *p, const fgi_weight_rows *rows) {
    p->storage = BORROWED_ROWS;
    p->borrowed = *rows;
}

void fgi_products_free(fgi_products *p) {
    if (!p) return;
    fgi_products_attach(p, NULL);
    for (int64_t f = 0; p->rows && f < p->n_features; f++) free(p->rows[f].labels), free(p->rows[f].values);
    free(p->rows);
    free(p);
}

const fgi_source *fgi_products_source(const fgi_products *p) { return &p->base; }
int64_t fgi_products_nonzeros(const fgi_products *p) { return p->nonzeros; }
int64_t fgi_products_memory(const fgi_products *p) { return p->bytes; }

/* ---- sparse weights ---------------------------------------------------------------------------------------------- */

/* The weights of a feature, where they are stored as rows. */
typedef struct row_view {
    int64_t n;
    const int32_t *labels;
    const double *values;
} row_view;

static int has_rows(const fgi_products *p) { return p->storage == SPARSE || p->storage == BORROWED_ROWS; }

static row_view row_of(const fgi_products *p, int32_t feature) {
    fgi_assert(feature >= 0 && feature < p->n_features);
    if (p->storage == SPARSE) return (row_view){p->rows[feature].n, p->rows[feature].labels, p->rows[feature].values};
    const int64_t begin = p->borrowed.begin[feature];
    return (row_view){p->borrowed.end[feature] - begin, p->borrowed.label + begin, p->borrowed.value + begin};
}

int32_t fgi_products_row(const fgi_products *p, int32_t feature, const int32_t **labels, const double **values) {
    if (p->storage != SPARSE) return 0;
    *labels = p->rows[feature].labels;
    *values = p->rows[feature].values;
    return p->rows[feature].n;
}

double fgi_products_get(const fgi_products *p, int32_t label, int32_t feature) {
    if (p->storage == BY_LABEL) return p->scale * p->dense[label * p->n_features + feature];
    if (p->storage == BY_FEATURE) return p->scale * p->dense[(int64_t)feature * p->n_labels + label];
    const row_view r = row_of(p, feature);
    const int64_t at = fgi_lower_bound(r.labels, 0, r.n, label);
    return at < r.n && r.labels[at] == label ? p->scale * r.values[at] : 0.0;
}

static int grow_row(fgi_products *p, weight_row *r) {
    if (r->n < r->capacity) return 1;
    const int32_t capacity = r->capacity < 4 ? 4 : r->capacity + r->capacity / 2;
    if (!fgi_resize(&r->labels, capacity, sizeof *r->labels) || !fgi_resize(&r->values, capacity, sizeof *r->values))
        return 0;
    p->bytes += (capacity - r->capacity) * (int64_t)(sizeof *r->labels + sizeof *r->values);
    r->capacity = capacity;
    return 1;
}

/* The stored weight becomes `value`, or grows by it. */
static fgi_rc put(fgi_products *p, int32_t label, int32_t feature, double value, int add, fgi_error *err) {
    weight_row *r = &p->rows[feature];
    const int64_t at = fgi_lower_bound(r->labels, 0, r->n, label);
    const int there = at < r->n && r->labels[at] == label;
    if (there && add) value += r->values[at];
    if (!isfinite(value))
        return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "the sum at label %d and feature %d is not finite", label, feature);
    if (there && value != 0.0) {
        r->values[at] = value;
    } else if (there) {
        memmove(r->labels + at, r->labels + at + 1, (size_t)(r->n - at - 1) * sizeof *r->labels);
        memmove(r->values + at, r->values + at + 1, (size_t)(r->n - at - 1) * sizeof *r->values);
        r->n--;
        p->nonzeros--;
    } else if (value != 0.0) {
        if (!grow_row(p, r)) return fgi_no_memory(err);
        memmove(r->labels + at + 1, r->labels + at, (size_t)(r->n - at) * sizeof *r->labels);
        memmove(r->values + at + 1, r->values + at, (size_t)(r->n - at) * sizeof *r->values);
        r->labels[at] = label;
        r->values[at] = value;
        r->n++;
        p->nonzeros++;
    }
    return FGI_OK;
}

/* Between these, products of the scale and a weight that is stored do not leave the normal numbers. */
static const double LEAST_SCALE = 0x1p-200;
static int is_safe(double scale) { return scale >= LEAST_SCALE && scale <= 1 / LEAST_SCALE; }

/* Stores sparse weights as they are: the scale is 1 again. A search index, whose rows are in the old unit, goes. */
static void restore_scale(fgi_products *p) {
    fgi_products_attach(p, NULL);
    for (int64_t f = 0; f < p->n_features; f++) {
        weight_row *r = &p->rows[f];
        int32_t n = 0;
        for (int32_t k = 0; k < r->n; k++) {
            const double value = p->scale * r->values[k];
            if (value == 0.0) continue;
            r->labels[n] = r->labels[k];
            r->values[n++] = value;
        }
        p->nonzeros -= r->n - n;
        r->n = n;
    }
    p->scale = 1.0;
}

/* A weight as it is stored. */
static double in_scale(fgi_products *p, double value) {
    if (p->scale == 1.0 || value == 0.0 || isnormal(value / p->scale)) return value / p->scale;
    restore_scale(p);
    return value;
}

static fgi_rc update(fgi_products *p, int64_t n, const int32_t *labels, const int32_t *features, const double *values,
    int add, fgi_error *err) {
    if (p->storage != SPARSE)
        return fgi_fail(err, FGI_UNSUPPORTED, -1, "dense weights are the caller's: change them in place");
    for (int64_t k = 0; k < n; k++) {
        if (labels[k] < 0 || labels[k] >= p->n_labels || features[k] < 0 || features[k] >= p->n_features)
            return fgi_fail(
                err, FGI_BAD_ARGUMENT, k, "there is no weight of label %d and feature %d", labels[k], features[k]);
        if (!isfinite(values[k])) return fgi_fail(err, FGI_BAD_ARGUMENT, k, "value %lld is not finite", (long long)k);
    }
    for (int64_t k = 0; k < n; k++) {
        const fgi_rc rc = put(p, labels[k], features[k], in_scale(p, values[k]), add, err);
        if (rc) return rc;
    }
    if (p->index && p->index->ops->follow) return p->index->ops->follow(p->index, p, n, labels, features, err);
    return FGI_OK;
}

fgi_rc fgi_products_set(
    fgi_products *p, int64_t n, const int32_t *labels, const int32_t *features, const double *values, fgi_error *err) {
    return update(p, n, labels, features, values, 0, err);
}

fgi_rc fgi_products_add(
    fgi_products *p, int64_t n, const int32_t *labels, const int32_t *features, const double *values, fgi_error *err) {
    return update(p, n, labels, features, values, 1, err);
}

static double largest_weight(const fgi_products *p) {
    double largest = 0;
    for (int64_t f = 0; f < p->n_features; f++)
        for (int32_t k = 0; k < p->rows[f].n; k++) largest = fgi_larger(largest, fabs(p->rows[f].values[k]));
    return p->scale * largest;
}

fgi_rc fgi_products_scale(fgi_products *p, double factor, fgi_error *err) {
    if (!(factor >= 0) || factor == INFINITY)
        return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "weights are scaled by a finite number that is not negative");
    if (p->storage == SPARSE && factor > 1 && largest_weight(p) * factor == INFINITY)
        return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "scaled by %g, the largest weight is not a number", factor);
    if (p->storage == SPARSE && !is_safe(p->scale * factor)) restore_scale(p);
    p->scale *= factor;
    if (p->storage == SPARSE && !is_safe(p->scale)) restore_scale(p);
    return FGI_OK;
}

/* ---- scores ------------------------------------------------------------------------------------------------------ */

static const fgi_products *products_of(const fgi_oracle_query *q) { return (const fgi_products *)q->source; }
static int32_t feature_at(const fgi_features *x, int64_t j) { return x->index ? x->index[j] : (int32_t)j; }
static double start_of(const fgi_features *x, int32_t y) {
    if (!x->start) return x->constant;
    return x->start_weight == 0.0 ? x->start[y] : x->start_weight * x->start[y];
}

/* The coefficient of feature j; exactly x's value while nothing was scaled. */
static double value_at(const fgi_products *p, const fgi_features *x, int64_t j) {
    const double value = x->values ? x->values[j] : 1.0;
    return p->scale == 1.0 ? value : p->scale * value;
}

typedef struct label_range {
    int32_t begin, end;
} label_range;

static label_range range_of(const fgi_products *p, const fgi_features *x) {
    if (x->parts < 2) return (label_range){0, p->n_labels};
    return (label_range){(int32_t)((int64_t)p->n_labels * x->part / x->parts),
        (int32_t)((int64_t)p->n_labels * (x->part + 1) / x->parts)};
}

static void score_range(const fgi_products *p, const fgi_features *x, label_range r, double *s) {
    for (int32_t y = r.begin; y < r.end; y++) s[y] = start_of(x, y);
    for (int64_t j = 0; p->storage == BY_FEATURE && j < x->n; j++)
        fgi_kernels_get()->axpy(s + r.begin, value_at(p, x, j),
            p->dense + (int64_t)feature_at(x, j) * p->n_labels + r.begin, r.end - r.begin);
    for (int64_t j = 0; has_rows(p) && j < x->n; j++) {
        const row_view row = row_of(p, feature_at(x, j));
        const double v = value_at(p, x, j);
        if (row.n == p->n_labels) { /* all of them, in order: as a dense one */
            fgi_kernels_get()->axpy(s + r.begin, v, row.values + r.begin, r.end - r.begin);
            continue;
        }
        for (int64_t k = r.begin ? fgi_lower_bound(row.labels, 0, row.n, r.begin) : 0;
             k < row.n && row.labels[k] < r.end; k++)
            s[row.labels[k]] += v * row.values[k];
    }
    if (p->storage != BY_LABEL) return;
    int32_t y = r.begin;
    for (; y + 4 <= r.end; y += 4) { /* four sums at a time, each in the order of the features */
        const double *w0 = p->dense + y * p->n_features, *w1 = w0 + p->n_features, *w2 = w1 + p->n_features,
                     *w3 = w2 + p->n_features;
        double s0 = s[y], s1 = s[y + 1], s2 = s[y + 2], s3 = s[y + 3];
        for (int64_t j = 0; j < x->n; j++) {
            const int32_t f = feature_at(x, j);
            const double v = value_at(p, x, j);
            s0 += v * w0[f], s1 += v * w1[f], s2 += v * w2[f], s3 += v * w3[f];
        }
        s[y] = s0, s[y + 1] = s1, s[y + 2] = s2, s[y + 3] = s3;
    }
    for (; y < r.end; y++) {
        const double *w = p->dense + y * p->n_features;
        double sum = s[y];
        for (int64_t j = 0; j < x->n; j++) sum += value_at(p, x, j) * w[feature_at(x, j)];
        s[y] = sum;
    }
}

/* s[c] for the c-th of the labels listed. */
static void score_list(const fgi_products *p, const fgi_features *x, double *s) {
    const int32_t n = x->n_labels, *list = x->labels;
    for (int32_t c = 0; c < n; c++) s[c] = start_of(x, list[c]);
    for (int64_t j = 0; p->storage != BY_LABEL && j < x->n; j++) {
        const int32_t f = feature_at(x, j);
        const row_view row =
            has_rows(p) ? row_of(p, f) : (row_view){p->n_labels, NULL, p->dense + (int64_t)f * p->n_labels};
        const double v = value_at(p, x, j);
        if (row.n == p->n_labels) {
            for (int32_t c = 0; c < n; c++) s[c] += v * row.values[list[c]];
            continue;
        }
        int32_t c = 0; /* both ascend */
        for (int64_t k = n ? fgi_lower_bound(row.labels, 0, row.n, list[0]) : row.n; k < row.n && c < n; k++) {
            while (c < n && list[c] < row.labels[k]) c++;
            if (c < n && list[c] == row.labels[k]) s[c] += v * row.values[k];
        }
    }
    for (int32_t c = 0; p->storage == BY_LABEL && c < n; c++) {
        const double *w = p->dense + list[c] * p->n_features;
        for (int64_t j = 0; j < x->n; j++) s[c] += value_at(p, x, j) * w[feature_at(x, j)];
    }
}

void fgi_products_scores(const fgi_products *p, const fgi_features *x, double *out) {
    if (x->labels) score_list(p, x, out);
    else score_range(p, x, (label_range){0, p->n_labels}, out);
}

static double score_one(const fgi_products *p, const fgi_features *x, int32_t y) {
    double s = start_of(x, y);
    for (int64_t j = 0; j < x->n; j++) {
        const int32_t f = feature_at(x, j);
        if (p->storage == BY_LABEL) s += value_at(p, x, j) * p->dense[y * p->n_features + f];
        else if (p->storage == BY_FEATURE) s += value_at(p, x, j) * p->dense[(int64_t)f * p->n_labels + y];
        else {
            const row_view r = row_of(p, f);
            const int64_t at = fgi_lower_bound(r.labels, 0, r.n, y);
            if (at < r.n && r.labels[at] == y) s += value_at(p, x, j) * r.values[at];
        }
    }
    return s;
}

double fgi_products_score(const fgi_source *source, const fgi_features *x, int32_t label) {
    return score_one((const fgi_products *)source, x, label);
}

static int reserve_labels(fgi_oracle_scratch *w, int64_t n) {
    if (n > w->scores_capacity) {
        free(w->scores);
        w->scores = fgi_alloc(n, sizeof(double));
        w->scores_capacity = w->scores ? n : 0;
        if (!w->scores) return 0;
    }
    return 1;
}

static int reserve_seen(fgi_oracle_scratch *w, int64_t n) {
    if (n <= w->seen_capacity) return 1;
    free(w->seen), free(w->found);
    w->seen = fgi_calloc(n, 1);
    w->found = fgi_alloc(n, sizeof(int32_t));
    w->seen_capacity = w->seen && w->found ? n : 0;
    return w->seen_capacity > 0;
}

/* ---- answers ----------------------------------------------------------------------------------------------------- */

static void offer(const fgi_oracle_scratch *w, fgi_best *best, int32_t y, double score) {
    if (!fgi_is_banned(w, y)) fgi_best_offer(best, y, score);
}

/* Listed labels only. */
static fgi_rc scan_list(const fgi_oracle_query *q, fgi_oracle_scratch *w, fgi_best *best) {
    const fgi_features *x = q->x;
    if (!reserve_labels(w, x->n_labels)) return FGI_NO_MEMORY;
    score_list(products_of(q), x, w->scores);
    for (int32_t c = 0; c < x->n_labels; c++) {
        const int32_t y = x->labels[c];
        const double s = w->scores[c] - (q->messages ? fgi_message_at(q->messages, y) : 0);
        if (x->scores) x->scores[y] = s;
        offer(w, best, y, s);
    }
    w->work.products += x->n_labels * x->n;
    w->touched += x->n_labels;
    return FGI_OK;
}

/* Every label of the range has a score of its own. */
static fgi_rc scan_range(const fgi_oracle_query *q, fgi_oracle_scratch *w, label_range r, fgi_best *best) {
    const fgi_products *p = products_of(q);
    const fgi_features *x = q->x;
    if (!x->scores && !reserve_labels(w, p->n_labels)) return FGI_NO_MEMORY;
    double *s = x->scores ? x->scores : w->scores;
    score_range(p, x, r, s);
    for (int32_t k = 0; q->messages && k < q->messages->n; k++)
        if (q->messages->labels[k] >= r.begin && q->messages->labels[k] < r.end)
            s[q->messages->labels[k]] -= q->messages->values[k];
    double least = -INFINITY;
    for (int32_t y = r.begin; y < r.end; y++)
        if (s[y] > least && !fgi_is_banned(w, y)) { /* ascending: an equal score displaces nothing */
            fgi_best_insert(best, y, s[y]);
            if (best->n == best->capacity) least = best->items[best->n - 1].value;
        }
    w->touched += r.end - r.begin;
    if (!has_rows(p)) w->work.products += (int64_t)(r.end - r.begin) * x->n;
    for (int64_t j = 0; has_rows(p) && j < x->n; j++) w->work.products += row_of(p, feature_at(x, j)).n;
    return FGI_OK;
}

static void see(fgi_oracle_scratch *w, int32_t y, double start, int32_t *n) {
    if (w->seen[y]) return;
    w->seen[y] = 1;
    w->scores[y] = start;
    w->found[(*n)++] = y;
}

/* Sparse weights and one start for all: only labels that a row or the message mentions are looked at. */
static fgi_rc scan_mentioned(const fgi_oracle_query *q, fgi_oracle_scratch *w, label_range r, fgi_best *best) {
    const fgi_products *p = products_of(q);
    const fgi_features *x = q->x;
    int32_t n = 0;
    if (!reserve_labels(w, p->n_labels) || !reserve_seen(w, p->n_labels)) return FGI_NO_MEMORY;
    for (int64_t j = 0; j < x->n; j++) {
        const row_view row = row_of(p, feature_at(x, j));
        const double v = value_at(p, x, j);
        int64_t k = r.begin ? fgi_lower_bound(row.labels, 0, row.n, r.begin) : 0, first = k;
        for (; k < row.n && row.labels[k] < r.end; k++) {
            see(w, row.labels[k], x->constant, &n);
            w->scores[row.labels[k]] += v * row.values[k];
        }
        w->work.products += k - first;
    }
    for (int32_t k = 0; q->messages && k < q->messages->n; k++) {
        const int32_t y = q->messages->labels[k];
        if (y < r.begin || y >= r.end) continue;
        see(w, y, x->constant, &n);
        w->scores[y] -= q->messages->values[k];
    }
    for (int32_t k = 0; k < n; k++) offer(w, best, w->found[k], w->scores[w->found[k]]);
    int64_t others = 0; /* the first few that nothing mentions stand for all of them */
    for (int32_t y = r.begin; y < r.end && others < best->capacity; y++) {
        if (best->n == best->capacity && x->constant < best->items[best->n - 1].value) break;
        w->touched++;
        if (w->seen[y] || fgi_is_banned(w, y)) continue;
        fgi_best_offer(best, y, x->constant);
        others++;
    }
    w->touched += n;
    for (int32_t k = 0; k < n; k++) w->seen[w->found[k]] = 0;
    return FGI_OK;
}

static fgi_rc products_scan(const fgi_oracle_query *q, fgi_oracle_scratch *w, fgi_best *best) {
    const fgi_products *p = products_of(q);
    if (q->x->labels) return scan_list(q, w, best);
    const label_range r = range_of(p, q->x);
    if (has_rows(p) && !q->x->start && !q->x->scores) return scan_mentioned(q, w, r, best);
    return scan_range(q, w, r, best);
}

/* What the index proposes and what has a message is scored; then nothing else is better than start + rest. */
static fgi_rc products_search(const fgi_oracle_query *q, fgi_oracle_scratch *w, fgi_best *best) {
    const fgi_products *p = products_of(q);
    const fgi_features *x = q->x;
    const int64_t wanted = best->capacity + w->n_banned + (q->messages ? q->messages->n : 0);
    double rest = INFINITY;
    int32_t n = 0;
    if (!p->index || x->labels || x->parts > 1 || x->start) return FGI_UNSUPPORTED;
    if (!reserve_seen(w, p->n_labels)) return FGI_NO_MEMORY;
    fgi_rc rc = p->index->ops->find(p->index, x, wanted, w->found, p->n_labels, &n, &rest, &w->work);
    if (rc) return rc;
    for (int32_t k = 0; k < n; k++) {
        double s = score_one(p, x, w->found[k]);
        if (q->messages) s -= fgi_message_at(q->messages, w->found[k]);
        w->seen[w->found[k]] = 1;
        if (x->scores) x->scores[w->found[k]] = s;
        offer(w, best, w->found[k], s);
    }
    int32_t more = 0;
    for (int32_t k = 0; q->messages && k < q->messages->n; k++) {
        const int32_t y = q->messages->labels[k];
        if (w->seen[y]) continue;
        offer(w, best, y, score_one(p, x, y) - q->messages->values[k]);
        more++;
    }
    for (int32_t k = 0; k < n; k++) w->seen[w->found[k]] = 0;
    w->work.products += (n + more) * x->n;
    w->touched += n + more;
    if (n + more == p->n_labels) return FGI_OK;
    const double bound = x->constant + p->scale * rest;
    if (best->n == best->capacity && best->items[best->n - 1].value > bound) return FGI_OK;
    if (q->approximate && best->n > 0) {
        w->work.unproven++;
        return FGI_OK;
    }
    best->n = 0; /* not proven: all of it by the scan */
    return FGI_UNSUPPORTED;
}

static int32_t products_arity(const fgi_oracle_query *q) { return q->factor == 0; }
static int32_t products_card(const fgi_oracle_query *q, int32_t k) { return k == 0 ? products_of(q)->n_labels : 0; }
static int products_prefers_scan(const fgi_oracle_query *q) { return !products_of(q)->index || !q->approximate; }

/* An index is asked for as many labels as have messages, and finds many of them more slowly than a scan does. */
static int64_t products_patience(const fgi_oracle_query *q) {
    enum { LABELS_PER_WANTED = 8 }; /* fewer labels for each that is wanted are scanned */
    const int64_t messages = q->messages ? q->messages->n : 0;
    return LABELS_PER_WANTED * (messages + q->n_excluded + q->n_best) > products_of(q)->n_labels ? 0 : INT32_MAX;
}

static fgi_rc products_check(const fgi_oracle_query *q, fgi_error *err) {
    const fgi_products *p = products_of(q);
    const fgi_features *x = q->x;
    if (!x) return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "inner products need features");
    if (x->n < 0 || (!x->index && x->n > p->n_features))
        return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "%lld features, but the weights have %lld", (long long)x->n,
            (long long)p->n_features);
    for (int64_t j = 0; j < x->n; j++) {
        if (x->index && (x->index[j] < 0 || x->index[j] >= p->n_features))
            return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "there is no feature %d", x->index[j]);
        if (x->values && !isfinite(x->values[j]))
            return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "feature values must be finite");
    }
    if (x->parts < 0 || x->parts > p->n_labels || x->part < 0 || (x->part > 0 && x->part >= x->parts))
        return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "part %d of %d parts", x->part, x->parts);
    for (int32_t c = 0; x->labels && c < x->n_labels; c++)
        if (x->labels[c] < 0 || x->labels[c] >= p->n_labels || (c > 0 && x->labels[c] <= x->labels[c - 1]))
            return fgi_fail(
                err, FGI_BAD_ARGUMENT, -1, "labels to look at must be ascending and in 0..%d", p->n_labels - 1);
    for (int32_t y = 0; x->start && y < p->n_labels; y++)
        if (!(start_of(x, y) < INFINITY)) return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "start %d is NaN or +inf", y);
    return FGI_OK;
}

static const fgi_source_ops products_ops = {.arity = products_arity,
    .card = products_card,
    .check = products_check,
    .search = products_search,
    .scan = products_scan,
    .prefers_scan = products_prefers_scan,
    .patience = products_patience};
