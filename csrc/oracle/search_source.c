/* oracle/search_source.c - a search index under an inner-product source (see oracle/source.h): it proposes labels, and
 * a bound on all others; the source scores them in double precision. */
#include "base/threads.h"
#include "base/util.h"
#include "fginfer_search.h"
#include "oracle/search_index.h"
#include "oracle/source.h"

enum { MORE = 8 }; /* labels asked for besides those wanted: messages and ties may need them */

typedef struct search_source {
    fgi_search_index base;
    fgi_search *search;
    int32_t probes;
    fgi_mutex lock; /* the index has one working memory; oracles may ask from several threads */
    float *changed; /* entries that follow the source */
    int64_t changed_room;
} search_source;

static int ascending(const void *a, const void *b) {
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* *read: inner products it took. */
static fgi_rc run(
    search_source *o, const float *x, int32_t want, int32_t *labels, double *values, uint8_t *proven, int64_t *read) {
    const fgi_search_query q = {.n = 1, .stride = o->search->d, .x = x, .want = want, .probes = o->probes};
    fgi_mutex_lock(&o->lock);
    const int64_t before = o->search->touched;
    fgi_rc rc = fgi_search_run(o->search, &q, labels, values, proven, NULL);
    *read = o->search->touched - before;
    fgi_mutex_unlock(&o->lock);
    return rc;
}

static fgi_rc find(const fgi_search_index *index, const fgi_features *x, int64_t n_best, int32_t *labels,
    int32_t capacity, int32_t *n, double *rest, fgi_oracle_work *work) {
    search_source *o = (search_source *)index;
    const fgi_search *s = o->search;
    const int64_t most = s->rows < capacity ? s->rows : capacity;
    const int32_t want = (int32_t)(n_best + MORE < most ? n_best + MORE : most);
    float *dense = fgi_calloc(s->d, sizeof *dense);
    double *values = fgi_alloc(want, sizeof *values), square = 0;
    uint8_t proven = 0;
    int64_t read = 0;
    fgi_rc rc = dense && values ? FGI_OK : FGI_NO_MEMORY;
    for (int64_t j = 0; !rc && j < x->n; j++)
        dense[x->index ? x->index[j] : j] += (float)(x->values ? x->values[j] : 1);
    for (int32_t k = 0; !rc && k < s->d; k++) {
        if (!isfinite(dense[k])) rc = FGI_UNSUPPORTED;
        square += (double)dense[k] * dense[k];
    }
    if (!rc) rc = run(o, dense, want, labels, values, &proven, &read);
    if (!rc) {
        for (*n = want; *n > 0 && labels[*n - 1] < 0;) --*n; /* a sum that overflows both ways ranks nowhere */
        *rest = INFINITY;
        /* rows and queries were rounded to single precision, and so were the products */
        if (*n == s->rows) *rest = -INFINITY;
        else if (proven && fgi_search_bounded(s, sqrt(square)))
            *rest = values[want - 1] + (2 * s->rounding + 0x1p-21) * s->longest * sqrt(square);
        qsort(labels, (size_t)*n, sizeof *labels, ascending);
        work->products += read * s->d;
        work->touched += read;
    }
    free(dense);
    free(values);
    return rc;
}

/* Entries of one label that follow each other are one move of its row. */
static fgi_rc follow(fgi_search_index *index, const fgi_products *p, int64_t n, const int32_t *labels,
    const int32_t *features, fgi_error *err) {
    search_source *o = (search_source *)index;
    int32_t n_labels;
    int64_t n_features;
    double scale;
    fgi_products_sizes(p, &n_labels, &n_features, &scale);
    if (n > o->changed_room) {
        free(o->changed);
        o->changed = fgi_alloc(n, sizeof *o->changed);
        o->changed_room = o->changed ? n : 0;
        if (!o->changed) return fgi_no_memory(err);
    }
    for (int64_t k = 0; k < n; k++)
        o->changed[k] = scale > 0 ? (float)(fgi_products_get(p, labels[k], features[k]) / scale) : 0;
    return fgi_search_set_entries(o->search, n, labels, features, o->changed, err);
}

static void release(fgi_search_index *index) {
    search_source *o = (search_source *)index;
    fgi_mutex_destroy(&o->lock);
    fgi_search_free(o->search);
    free(o->changed);
    free(o);
}

static const fgi_search_ops search_ops = {find, follow, release};

fgi_rc fgi_products_index(fgi_products *p, const fgi_search_settings *settings, int32_t probes, fgi_error *err) {
    int32_t labels;
    int64_t features, size;
    double scale; /* the source applies it */
    fgi_products_sizes(p, &labels, &features, &scale);
    if (features < 1) return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "an index needs at least one feature");
    if (probes < 0) return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "probes must not be negative");
    float *rows = fgi_mul(labels, features, &size) ? fgi_alloc(size, sizeof *rows) : NULL;
    search_source *o = fgi_calloc(1, sizeof *o);
    if (!rows || !o) {
        free(rows);
        free(o);
        return fgi_fail(err, FGI_NO_MEMORY, -1, "out of memory for %d dense rows", (int)labels);
    }
    for (int32_t k = 0; k < labels; k++)
        for (int64_t f = 0; f < features; f++)
            rows[k * features + f] = scale > 0 ? (float)(fgi_products_get(p, k, (int32_t)f) / scale) : 0;
    fgi_rc rc = fgi_search_create(labels, (int32_t)features, features, rows, settings, &o->search, err);
    free(rows);
    if (rc) {
        free(o);
        return rc;
    }
    fgi_mutex_init(&o->lock);
    o->base.ops = &search_ops;
    o->probes = probes;
    fgi_products_attach(p, &o->base);
    return FGI_OK;
}
