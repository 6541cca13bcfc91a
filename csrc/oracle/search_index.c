/* oracle/search_index.c - a search index's life: creation, updates, counters. */
#include "oracle/search_index.h"
#include <string.h>
#include "base/util.h"

/* How far a row may move, relative to its length, before it looks for another cluster: by a quarter it can turn by 14
 * degrees. */
static const double FAR = 0.25;

void fgi_search_defaults(fgi_search_settings *s) {
    *s = (fgi_search_settings){.clusters = 0, .rounds = 6, .parts = 1, .threads = 1, .seed = 0};
}

/* ---- scratch ---------------------------------------------------------------------------------------------------- */

static void scratch_clear(fgi_search_scratch *w) {
    free(w->x);
    free(w->scores[0]);
    free(w->centre[0]);
    free(w->bound);
    free(w->key);
    free(w->heap);
    free(w->visited);
    free(w->sieve);
    free(w->whole);
    free(w->chosen);
    free(w->guesses);
    free(w->keys);
    free(w->parts);
    for (int q = 0; q < FGI_SEARCH_GROUP; q++) fgi_top_free(&w->top[q]);
    memset(w, 0, sizeof *w);
}

int fgi_search_scratch_fit(fgi_search *s) {
    const int64_t width = s->largest_cell;
    for (int32_t t = 0; t < s->threads; t++) {
        fgi_search_scratch *w = &s->scratch[t];
        free(w->scores[0]);
        w->scores[0] = fgi_alloc(4 * width, sizeof *w->scores[0]);
        if (!w->scores[0]) return 0;
        for (int q = 1; q < 4; q++) w->scores[q] = w->scores[0] + q * width;
        if (!w->x) {
            w->centre[0] = fgi_alloc(4 * (int64_t)s->clusters, sizeof *w->centre[0]);
            w->x = fgi_calloc(FGI_SEARCH_GROUP * s->stride, sizeof *w->x);
            w->bound = fgi_alloc(s->clusters, sizeof *w->bound);
            w->key = fgi_alloc(s->clusters, sizeof *w->key);
            w->heap = fgi_alloc(s->clusters, sizeof *w->heap);
            w->visited = fgi_alloc(s->clusters, 1);
            w->sieve = fgi_alloc(FGI_SEARCH_GROUP * FGI_SEARCH_SIEVE, sizeof *w->sieve);
        }
        for (int q = 1; q < 4; q++) w->centre[q] = w->centre[0] + (int64_t)q * s->clusters;
        if (!w->x || !w->centre[0] || !w->bound || !w->key || !w->heap || !w->visited || !w->sieve) return 0;
    }
    return 1;
}

static void scratch_free(fgi_search *s) {
    for (int32_t t = 0; s->scratch && t < s->threads; t++) scratch_clear(&s->scratch[t]);
    free(s->scratch);
    s->scratch = NULL;
}

/* ---- creation --------------------------------------------------------------------------------------------------- */

void fgi_search_free(fgi_search *s) {
    if (!s) return;
    fgi_cells_free(s);
    scratch_free(s);
    fgi_pool_free(s->pool);
    free(s->directions);
    free(s->home);
    free(s->slot);
    free(s->drift);
    free(s->placed);
    free(s->views.along_min);
    fgi_codes_free(s->codes);
    fgi_bytes_free(s->bytes);
    free(s);
}

static fgi_rc check_row(const float *row, int32_t d, int64_t index, fgi_error *err) {
    for (int32_t i = 0; i < d; i++)
        if (!isfinite(row[i]))
            return fgi_fail(
                err, FGI_BAD_MODEL, index, "entry %d of row %lld is not a finite number", (int)i, (long long)index);
    return FGI_OK;
}

static fgi_rc check_sizes(int64_t n, int32_t d, int64_t stride, const fgi_search_settings *set, fgi_error *err) {
    if (n < 1 || n > INT32_MAX) return fgi_fail(err, FGI_BAD_MODEL, -1, "an index needs 1 to 2^31 - 1 rows");
    if (d < 1 || stride < d) return fgi_fail(err, FGI_BAD_MODEL, -1, "rows need at least one column");
    if (set->clusters < 0 || set->clusters > n)
        return fgi_fail(
            err, FGI_BAD_ARGUMENT, -1, "clusters must be 0 (a default) to the number of rows, %lld", (long long)n);
    if (set->parts < 1 || set->parts > d || set->parts > FGI_CODE_PARTS)
        return fgi_fail(err, FGI_BAD_ARGUMENT, -1,
            "parts must lie in 1 .. %d, and be at most the number of columns, %d", FGI_CODE_PARTS, (int)d);
    if (set->rounds < 0) return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "rounds must not be negative");
    if (set->threads < 1) return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "threads must be at least 1");
    return FGI_OK;
}

/* Exact search wants small clusters, approximate search and building want few (decision 0016). */
static int32_t default_clusters(int64_t rows) {
    const int64_t c = (int64_t)(6.0 * sqrt((double)rows)), most = rows / 40;
    return (int32_t)(c < most ? c : most > 1 ? most : 1);
}

fgi_rc fgi_search_create(int64_t n, int32_t d, int64_t stride, const float *rows, const fgi_search_settings *settings,
    fgi_search **out, fgi_error *err) {
    fgi_search_settings set;
    fgi_search_defaults(&set);
    if (settings) set = *settings;
    fgi_rc rc = check_sizes(n, d, stride, &set, err);
    for (int64_t k = 0; !rc && k < n; k++) rc = check_row(rows + k * stride, d, k, err);
    if (rc) return rc;
    fgi_search *s = fgi_calloc(1, sizeof *s);
    if (!s) return fgi_no_memory(err);
    s->rows = n;
    s->d = d;
    s->stride = (d + 7) / 8 * 8; /* whole registers */
    s->settings = set;
    s->clusters = set.clusters ? set.clusters : default_clusters(n);
    s->threads = set.threads;
    s->kernels = fgi_kernels_get();
    s->pool = fgi_pool_create(set.threads);
    if (!s->pool) s->threads = 1;
    s->rounding = (d / 8.0 + 16) * 0x1p-23;
    s->directions = fgi_calloc(s->clusters * s->stride, sizeof *s->directions);
    s->cells = fgi_calloc(s->clusters, sizeof *s->cells);
    s->home = fgi_alloc(n, sizeof *s->home);
    s->slot = fgi_alloc(n, sizeof *s->slot);
    s->drift = fgi_alloc(n, sizeof *s->drift);
    s->placed = fgi_calloc(s->stride, sizeof *s->placed);
    s->scratch = fgi_calloc(s->threads, sizeof *s->scratch);
    s->views.along_min = fgi_calloc(5 * (int64_t)s->clusters, sizeof(float));
    if (s->views.along_min) {
        s->views.along_max = s->views.along_min + s->clusters;
        s->views.away_max = s->views.along_max + s->clusters;
        s->views.along = s->views.away_max + s->clusters;
        s->views.promise = s->views.along + s->clusters;
    }
    int64_t size = 0;
    float *all = fgi_mul(n, s->stride, &size) ? fgi_calloc(size, sizeof *all) : NULL;
    if (!s->directions || !s->cells || !s->home || !s->slot || !s->drift || !s->placed || !s->scratch ||
        !s->views.along_min || !all) {
        rc = fgi_fail(err, FGI_NO_MEMORY, -1, "out of memory for %lld rows of %d", (long long)n, (int)d);
    } else {
        for (int64_t k = 0; k < n; k++) memcpy(all + k * s->stride, rows + k * stride, (size_t)d * sizeof *all);
        rc = fgi_search_cluster(s, all, err);
    }
    free(all);
    if (rc) fgi_search_free(s);
    else *out = s;
    return rc;
}

/* A build that ran out of memory: the old clusters are taken back. */
static void restore(fgi_search *s, fgi_cell *cells, const float *directions) {
    fgi_cells_free(s);
    s->cells = cells;
    memcpy(s->directions, directions, (size_t)s->clusters * (size_t)s->stride * sizeof *directions);
    for (int32_t c = 0; c < s->clusters; c++) {
        for (int32_t k = 0; k < cells[c].n; k++) {
            s->home[cells[c].labels[k]] = c;
            s->slot[cells[c].labels[k]] = k;
        }
        fgi_cell_publish(s, c);
    }
}

fgi_rc fgi_search_rebuild(fgi_search *s, fgi_error *err) {
    float *all = fgi_alloc(s->rows * s->stride, sizeof *all);
    float *directions = fgi_copy(s->directions, s->clusters * s->stride, sizeof *directions);
    fgi_cell *cells = fgi_calloc(s->clusters, sizeof *cells), *old = s->cells;
    if (!all || !cells || !directions) {
        free(all);
        free(cells);
        free(directions);
        return fgi_fail(err, FGI_NO_MEMORY, -1, "out of memory for %lld rows", (long long)s->rows);
    }
    for (int64_t k = 0; k < s->rows; k++)
        memcpy(all + k * s->stride, fgi_search_at(s, (int32_t)k), (size_t)s->stride * sizeof *all);
    s->cells = cells;
    fgi_rc rc = fgi_search_cluster(s, all, err);
    cells = s->cells;
    s->cells = old;
    if (rc) {
        s->cells = cells;
        restore(s, old, directions);
    } else {
        fgi_cells_free(s);
        s->cells = cells;
        fgi_codes_free(s->codes); /* their mean is an old one, too */
        s->codes = NULL;
        fgi_bytes_free(s->bytes);
        s->bytes = NULL;
    }
    free(directions);
    free(all);
    return rc;
}

/* ---- updates ---------------------------------------------------------------------------------------------------- */

static int32_t best_cluster(fgi_search *s, const float *row) {
    float *scores = s->scratch[0].centre[0];
    s->kernels->dots(s->directions, s->clusters, s->stride, s->d, row, scores);
    s->touched += s->clusters;
    int32_t best = 0;
    for (int32_t c = 1; c < s->clusters; c++)
        if (scores[c] > scores[best]) best = c;
    return best;
}

/* s->placed holds the new row. */
static int place(fgi_search *s, int32_t label) {
    const float *old = fgi_search_at(s, label);
    const int32_t from = s->home[label];
    double moved = 0, length = 0;
    for (int32_t i = 0; i < s->d; i++) {
        const double step = (double)s->placed[i] - old[i];
        moved += step * step;
        length += (double)s->placed[i] * s->placed[i];
    }
    const double drift = s->drift[label] + sqrt(moved);
    const int far = drift > FAR * sqrt(length);
    const int32_t to = far ? best_cluster(s, s->placed) : from;
    s->rows_set++;
    s->rows_moved += to != from;
    s->far += far;
    /* Appended before it is removed: when memory is short, nothing has changed. */
    const int32_t at = s->slot[label];
    if (!fgi_cell_push(s, to, label, s->placed)) return 0;
    fgi_cell_remove(s, from, at);
    if (!far) s->drift[label] = (float)drift;
    if (s->codes) fgi_codes_update(s->codes, label, s->placed);
    if (s->bytes) fgi_bytes_set(s->bytes, label, s->placed);
    return 1;
}

double *fgi_search_mean(const fgi_search *s) {
    double *mean = fgi_calloc(s->d, sizeof *mean);
    for (int64_t k = 0; mean && k < s->rows; k++) {
        const float *row = fgi_search_at(s, (int32_t)k);
        for (int32_t i = 0; i < s->d; i++) mean[i] += row[i];
    }
    for (int32_t i = 0; mean && i < s->d; i++) mean[i] /= (double)s->rows;
    return mean;
}

static fgi_rc check_label(const fgi_search *s, int32_t label, fgi_error *err) {
    if (label >= 0 && label < s->rows) return FGI_OK;
    return fgi_fail(err, FGI_BAD_MODEL, label, "there is no row %d; there are %lld", (int)label, (long long)s->rows);
}

/* When as many rows have looked for a cluster as there are, the clusters are made anew: about the work that these
 * looks have taken. */
static fgi_rc after_updates(fgi_search *s, int done, fgi_error *err) {
    if (done && s->far > s->rows) return fgi_search_rebuild(s, err);
    if (done && fgi_search_scratch_fit(s)) return FGI_OK;
    return fgi_no_memory(err);
}

/* Row i of the list is at rows + (listed ? i : label) * stride. */
static fgi_rc set_rows(
    fgi_search *s, int64_t n, const int32_t *labels, int64_t stride, const float *rows, int listed, fgi_error *err) {
    fgi_rc rc = FGI_OK;
    if (stride < s->d) return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "rows must have %d columns", (int)s->d);
    for (int64_t i = 0; !rc && i < n; i++) {
        rc = check_label(s, labels[i], err);
        if (!rc) rc = check_row(rows + (listed ? i : labels[i]) * stride, s->d, labels[i], err);
    }
    if (rc) return rc;
    const int32_t largest = s->largest_cell;
    int ok = 1;
    for (int64_t i = 0; ok && i < n; i++) {
        memcpy(s->placed, rows + (listed ? i : labels[i]) * stride, (size_t)s->d * sizeof *s->placed);
        ok = place(s, labels[i]);
    }
    return ok && s->largest_cell == largest && s->far <= s->rows ? FGI_OK : after_updates(s, ok, err);
}

fgi_rc fgi_search_set_rows(
    fgi_search *s, int64_t n, const int32_t *labels, int64_t stride, const float *rows, fgi_error *err) {
    return set_rows(s, n, labels, stride, rows, 1, err);
}

fgi_rc fgi_search_refresh(
    fgi_search *s, int64_t n, const int32_t *labels, int64_t stride, const float *all, fgi_error *err) {
    return set_rows(s, n, labels, stride, all, 0, err);
}

fgi_rc fgi_search_set_entries(
    fgi_search *s, int64_t n, const int32_t *labels, const int32_t *columns, const float *values, fgi_error *err) {
    for (int64_t i = 0; i < n; i++) {
        fgi_rc rc = check_label(s, labels[i], err);
        if (rc) return rc;
        if (columns[i] < 0 || columns[i] >= s->d)
            return fgi_fail(err, FGI_BAD_MODEL, i, "there is no column %d; there are %d", (int)columns[i], (int)s->d);
        if (!isfinite(values[i])) return fgi_fail(err, FGI_BAD_MODEL, i, "value %lld is not finite", (long long)i);
    }
    int ok = 1;
    for (int64_t i = 0; ok && i < n;) { /* entries of one row that follow each other are one move */
        const int32_t label = labels[i];
        memcpy(s->placed, fgi_search_at(s, label), (size_t)s->stride * sizeof *s->placed);
        for (; i < n && labels[i] == label; i++) s->placed[columns[i]] = values[i];
        ok = place(s, label);
    }
    return after_updates(s, ok, err);
}

void fgi_search_row(const fgi_search *s, int32_t label, float *row) {
    memcpy(row, fgi_search_at(s, label), (size_t)s->d * sizeof *row);
}

void fgi_search_info_get(const fgi_search *s, fgi_search_info *info) {
    *info = (fgi_search_info){.rows = s->rows,
        .d = s->d,
        .clusters = s->clusters,
        .queries = s->queries,
        .rows_touched = s->touched,
        .scanned = s->scanned,
        .rows_set = s->rows_set,
        .rows_moved = s->rows_moved};
    int64_t floats = s->clusters * s->stride + 3 * s->rows;
    for (int32_t c = 0; c < s->clusters; c++) floats += s->cells[c].capacity * (s->stride + 3);
    info->memory = 4 * floats + s->clusters * (int64_t)sizeof(fgi_cell) + (s->codes ? fgi_codes_memory(s->codes) : 0) +
        (s->bytes ? fgi_bytes_memory(s->bytes) : 0);
}
