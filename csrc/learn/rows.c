/* learn/rows.c - sparse rows of weights: places come from one block of memory, freed ones are used again by size. */
#include <string.h>
#include "learn/learn.h"
#include "base/array.h"

enum { WHOLE = FGI_ROW_SIZES - 1 }; /* the size of a row with every label */

/* Rows with more than a quarter of the labels are whole: a vector instruction adds four neighbours at once. */
static inline int fills(const fgi_rows *r, int64_t count) { return 4 * count > r->labels; }

static inline int64_t room(const fgi_rows *r, int size) { return size == WHOLE ? r->labels : (int64_t)1 << size; }

static inline int is_whole(const fgi_rows *r, int64_t row) { return r->end[row] - r->begin[row] == r->labels; }

fgi_rows *fgi_rows_create(int64_t n, int32_t labels) {
    fgi_rows *r = fgi_calloc(1, sizeof *r);
    if (!r) return NULL;
    r->n = n;
    r->labels = labels;
    r->begin = fgi_calloc(n, sizeof *r->begin);
    r->end = fgi_calloc(n, sizeof *r->end);
    r->size = fgi_calloc(n, sizeof *r->size);
    for (int k = 0; k < FGI_ROW_SIZES; k++) r->vacant[k] = -1;
    if (r->begin && r->end && r->size) return r;
    fgi_rows_free(r);
    return NULL;
}

void fgi_rows_free(fgi_rows *r) {
    if (!r) return;
    free(r->begin), free(r->end), free(r->size), free(r->label), free(r->w), free(r->sum);
    free(r);
}

static int reserve(fgi_rows *r, int64_t more) {
    if (r->used + more <= r->capacity) return 1;
    const int64_t capacity = r->used + more + r->capacity / 2 + 1024;
    if (!fgi_resize(&r->label, capacity, sizeof *r->label) || !fgi_resize(&r->w, capacity, sizeof *r->w) ||
        !fgi_resize(&r->sum, capacity, sizeof *r->sum))
        return 0;
    r->capacity = capacity;
    return 1;
}

static int64_t take(fgi_rows *r, int size) {
    int64_t at = r->vacant[size];
    if (at >= 0) {
        r->vacant[size] = (int64_t)r->w[at];
        return at;
    }
    if (!reserve(r, room(r, size))) return -1;
    at = r->used;
    r->used += room(r, size);
    return at;
}

static void give_back(fgi_rows *r, int64_t at, int size) {
    r->w[at] = (double)r->vacant[size];
    r->vacant[size] = at;
}

/* Position of the first label that is not smaller. */
static int64_t position(const fgi_rows *r, int64_t row, int32_t label) {
    return fgi_lower_bound(r->label, r->begin[row], r->end[row], label);
}

int64_t fgi_rows_find(const fgi_rows *r, int64_t row, int32_t label) {
    if (is_whole(r, row)) return r->begin[row] + label;
    const int64_t at = position(r, row, label);
    return at < r->end[row] && r->label[at] == label ? at : -1;
}

static int make_whole(fgi_rows *r, int64_t row) {
    const int64_t to = take(r, WHOLE);
    if (to < 0) return 0;
    for (int32_t y = 0; y < r->labels; y++) r->label[to + y] = y, r->w[to + y] = r->sum[to + y] = 0.0;
    for (int64_t k = r->begin[row]; k < r->end[row]; k++) {
        r->w[to + r->label[k]] = r->w[k];
        r->sum[to + r->label[k]] = r->sum[k];
    }
    if (r->end[row] > r->begin[row]) give_back(r, r->begin[row], r->size[row]);
    r->begin[row] = to;
    r->end[row] = to + r->labels;
    r->size[row] = WHOLE;
    return 1;
}

static void copy(fgi_rows *r, int64_t to, int64_t from, int64_t n) {
    memmove(r->label + to, r->label + from, (size_t)n * sizeof *r->label);
    memmove(r->w + to, r->w + from, (size_t)n * sizeof *r->w);
    memmove(r->sum + to, r->sum + from, (size_t)n * sizeof *r->sum);
}

/* Room for one entry more. */
static int grow(fgi_rows *r, int64_t row) {
    const int64_t n = r->end[row] - r->begin[row];
    if (n && n < room(r, r->size[row])) return 1;
    const int size = n ? r->size[row] + 1 : 0;
    const int64_t to = take(r, size);
    if (to < 0) return 0;
    if (n) {
        copy(r, to, r->begin[row], n);
        give_back(r, r->begin[row], r->size[row]);
    }
    r->begin[row] = to;
    r->end[row] = to + n;
    r->size[row] = (int8_t)size;
    return 1;
}

int64_t fgi_rows_place(fgi_rows *r, int64_t row, int32_t label) {
    int64_t at = fgi_rows_find(r, row, label);
    if (at >= 0) return at;
    if (fills(r, r->end[row] - r->begin[row] + 1)) return make_whole(r, row) ? r->begin[row] + label : -1;
    if (!grow(r, row)) return -1;
    at = position(r, row, label);
    copy(r, at + 1, at, r->end[row] - at);
    r->end[row]++;
    r->label[at] = label;
    r->w[at] = r->sum[at] = 0.0;
    return at;
}

void fgi_rows_clear_sums(fgi_rows *r) {
    for (int64_t f = 0; f < r->n; f++)
        for (int64_t k = r->begin[f]; k < r->end[f]; k++) r->sum[k] = 0.0;
}

static int64_t count_entries(const fgi_rows *r) {
    int64_t count = 0;
    for (int64_t f = 0; f < r->n; f++) count += r->end[f] - r->begin[f];
    return count;
}

/* ---- a learner's rows ----------------------------------------------------------------------------------------- */

int64_t fgi_learn_rows_size(const fgi_learner *L) { return L->rows ? count_entries(L->rows) : 0; }

void fgi_learn_rows_export(const fgi_learner *L, int64_t *begin, int32_t *label, double *weight, double *average) {
    const fgi_rows *r = L->rows;
    int64_t at = 0;
    for (int64_t f = 0; r && f < r->n; f++) {
        const int64_t n = r->end[f] - r->begin[f];
        begin[f] = at;
        if (n) {
            memcpy(label + at, r->label + r->begin[f], (size_t)n * sizeof *label);
            memcpy(weight + at, r->w + r->begin[f], (size_t)n * sizeof *weight);
            memcpy(average + at, r->sum + r->begin[f], (size_t)n * sizeof *average);
        }
        at += n;
    }
    if (r) begin[r->n] = at;
}

fgi_rc fgi_learn_rows_import(fgi_learner *L, const int64_t *begin, const int32_t *label, const double *weight,
    const double *average, fgi_error *err) {
    fgi_rows *r = L->rows;
    if (!r) return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "this learner has no rows");
    for (int64_t f = 0; f < r->n; f++)
        for (int64_t k = begin[f]; k < begin[f + 1]; k++)
            if (label[k] < 0 || label[k] >= r->labels || (k > begin[f] && label[k] <= label[k - 1]))
                return fgi_fail(err, FGI_BAD_ARGUMENT, f, "the labels of a row are not ascending");
    for (int64_t f = 0; f < r->n; f++)
        for (int64_t k = begin[f]; k < begin[f + 1]; k++) {
            const int64_t at = fgi_rows_place(r, f, label[k]);
            if (at < 0) return fgi_no_memory(err);
            r->w[at] = weight[k];
            r->sum[at] = average[k];
        }
    L->tracked = 0;
    return FGI_OK;
}
