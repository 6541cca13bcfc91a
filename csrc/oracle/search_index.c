/* oracle/search_index.c - a search index's life: creation, updates, counters. */
#include "oracle/search_index.h"
#include <string.h>
#include "base/util.h"

/* How far a row may move, relative to its length, before it looks for another cluster: by a quarter it can turn by 14
 * degrees. */
static const double FAR = 0.25;

void fgi_search_defaults(fgi_search_settings *settings) {
    *settings = (fgi_search_settings){.clusters = 0, .rounds = 6, .parts = 1, .threads = 1, .seed = 0};
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

int fgi_search_scratch_fit(fgi_search *index) {
    const int64_t width = index->largest_cell;
    for (int32_t t = 0; t < index->threads; t++) {
        fgi_search_scratch *w = &index->scratch[t];
        free(w->scores[0]);
        w->scores[0] = fgi_alloc(4 * width, sizeof *w->scores[0]);
        if (!w->scores[0]) return 0;
        for (int q = 1; q < 4; q++) w->scores[q] = w->scores[0] + q * width;
        if (!w->x) {
            w->centre[0] = fgi_alloc(4 * (int64_t)index->clusters, sizeof *w->centre[0]);
            w->x = fgi_calloc(FGI_SEARCH_GROUP * index->stride, sizeof *w->x);
            w->bound = fgi_alloc(index->clusters, sizeof *w->bound);
            w->key = fgi_alloc(index->clusters, sizeof *w->key);
            w->heap = fgi_alloc(index->clusters, sizeof *w->heap);
            w->visited = fgi_alloc(index->clusters, 1);
            w->sieve = fgi_alloc(FGI_SEARCH_GROUP * FGI_SEARCH_SIEVE, sizeof *w->sieve);
        }
        for (int q = 1; q < 4; q++) w->centre[q] = w->centre[0] + (int64_t)q * index->clusters;
        if (!w->x || !w->centre[0] || !w->bound || !w->key || !w->heap || !w->visited || !w->sieve) return 0;
    }
    return 1;
}

static void scratch_free(fgi_search *index) {
    for (int32_t t = 0; index->scratch && t < index->threads; t++) scratch_clear(&index->scratch[t]);
    free(index->scratch);
    index->scratch = NULL;
}

/* ---- creation --------------------------------------------------------------------------------------------------- */

void fgi_search_free(fgi_search *index) {
    if (!index) return;
    fgi_cells_free(index);
    scratch_free(index);
    fgi_pool_free(index->pool);
    free(index->directions);
    free(index->home);
    free(index->slot);
    free(index->drift);
    free(index->placed);
    free(index->views.along_min);
    fgi_codes_free(index->codes);
    fgi_bytes_free(index->bytes);
    free(index);
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
    fgi_search *index = fgi_calloc(1, sizeof *index);
    if (!index) return fgi_no_memory(err);
    index->rows = n;
    index->d = d;
    index->stride = (d + 7) / 8 * 8; /* whole registers */
    index->settings = set;
    index->clusters = set.clusters ? set.clusters : default_clusters(n);
    index->threads = set.threads;
    index->kernels = fgi_kernels_get();
    index->pool = fgi_pool_create(set.threads);
    if (!index->pool) index->threads = 1;
    index->rounding = (d / 8.0 + 16) * 0x1p-23;
    index->directions = fgi_calloc(index->clusters * index->stride, sizeof *index->directions);
    index->cells = fgi_calloc(index->clusters, sizeof *index->cells);
    index->home = fgi_alloc(n, sizeof *index->home);
    index->slot = fgi_alloc(n, sizeof *index->slot);
    index->drift = fgi_alloc(n, sizeof *index->drift);
    index->placed = fgi_calloc(index->stride, sizeof *index->placed);
    index->scratch = fgi_calloc(index->threads, sizeof *index->scratch);
    index->views.along_min = fgi_calloc(5 * (int64_t)index->clusters, sizeof(float));
    if (index->views.along_min) {
        index->views.along_max = index->views.along_min + index->clusters;
        index->views.away_max = index->views.along_max + index->clusters;
        index->views.along = index->views.away_max + index->clusters;
        index->views.promise = index->views.along + index->clusters;
    }
    int64_t size = 0;
    float *all = fgi_mul(n, index->stride, &size) ? fgi_calloc(size, sizeof *all) : NULL;
    if (!index->directions || !index->cells || !index->home || !index->slot || !index->drift || !index->placed ||
        !index->scratch || !index->views.along_min || !all) {
        rc = fgi_fail(err, FGI_NO_MEMORY, -1, "out of memory for %lld rows of %d", (long long)n, (int)d);
    } else {
        for (int64_t k = 0; k < n; k++) memcpy(all + k * index->stride, rows + k * stride, (size_t)d * sizeof *all);
        rc = fgi_search_cluster(index, all, err);
    }
    free(all);
    if (rc) fgi_search_free(index);
    else *out = index;
    return rc;
}

/* A build that ran out of memory: the old clusters are taken back. */
static void restore(fgi_search *index, fgi_cell *cells, const float *directions) {
    fgi_cells_free(index);
    index->cells = cells;
    memcpy(index->directions, directions, (size_t)index->clusters * (size_t)index->stride * sizeof *directions);
    for (int32_t c = 0; c < index->clusters; c++) {
        for (int32_t k = 0; k < cells[c].n; k++) {
            index->home[cells[c].labels[k]] = c;
            index->slot[cells[c].labels[k]] = k;
        }
        fgi_cell_publish(index, c);
    }
}

fgi_rc fgi_search_rebuild(fgi_search *index, fgi_error *err) {
    float *all = fgi_alloc(index->rows * index->stride, sizeof *all);
    float *directions = fgi_copy(index->directions, index->clusters * index->stride, sizeof *directions);
    fgi_cell *cells = fgi_calloc(index->clusters, sizeof *cells), *old = index->cells;
    if (!all || !cells || !directions) {
        free(all);
        free(cells);
        free(directions);
        return fgi_fail(err, FGI_NO_MEMORY, -1, "out of memory for %lld rows", (long long)index->rows);
    }
    for (int64_t k = 0; k < index->rows; k++)
        memcpy(all + k * index->stride, fgi_search_at(index, (int32_t)k), (size_t)index->stride * sizeof *all);
    index->cells = cells;
    fgi_rc rc = fgi_search_cluster(index, all, err);
    cells = index->cells;
    index->cells = old;
    if (rc) {
        index->cells = cells;
        restore(index, old, directions);
    } else {
        fgi_cells_free(index);
        index->cells = cells;
        fgi_codes_free(index->codes); /* their mean is an old one, too */
        index->codes = NULL;
        fgi_bytes_free(index->bytes);
        index->bytes = NULL;
    }
    free(directions);
    free(all);
    return rc;
}

/* ---- updates ---------------------------------------------------------------------------------------------------- */

static int32_t best_cluster(fgi_search *index, const float *row) {
    float *scores = index->scratch[0].centre[0];
    index->kernels->dots(index->directions, index->clusters, index->stride, index->d, row, scores);
    index->touched += index->clusters;
    int32_t best = 0;
    for (int32_t c = 1; c < index->clusters; c++)
        if (scores[c] > scores[best]) best = c;
    return best;
}

/* index->placed holds the new row. */
static int place(fgi_search *index, int32_t label) {
    const float *old = fgi_search_at(index, label);
    const int32_t from = index->home[label];
    double moved = 0, length = 0;
    for (int32_t i = 0; i < index->d; i++) {
        const double step = (double)index->placed[i] - old[i];
        moved += step * step;
        length += (double)index->placed[i] * index->placed[i];
    }
    const double drift = index->drift[label] + sqrt(moved);
    const int far = drift > FAR * sqrt(length);
    const int32_t to = far ? best_cluster(index, index->placed) : from;
    index->rows_set++;
    index->rows_moved += to != from;
    index->far += far;
    /* Appended before it is removed: when memory is short, nothing has changed. */
    const int32_t at = index->slot[label];
    if (!fgi_cell_push(index, to, label, index->placed)) return 0;
    fgi_cell_remove(index, from, at);
    if (!far) index->drift[label] = (float)drift;
    if (index->codes) fgi_codes_update(index->codes, label, index->placed);
    if (index->bytes) fgi_bytes_set(index->bytes, label, index->placed);
    return 1;
}

double *fgi_search_mean(const fgi_search *index) {
    double *mean = fgi_calloc(index->d, sizeof *mean);
    for (int64_t k = 0; mean && k < index->rows; k++) {
        const float *row = fgi_search_at(index, (int32_t)k);
        for (int32_t i = 0; i < index->d; i++) mean[i] += row[i];
    }
    for (int32_t i = 0; mean && i < index->d; i++) mean[i] /= (double)index->rows;
    return mean;
}

static fgi_rc check_label(const fgi_search *index, int32_t label, fgi_error *err) {
    if (label >= 0 && label < index->rows) return FGI_OK;
    return fgi_fail(
        err, FGI_BAD_MODEL, label, "there is no row %d; there are %lld", (int)label, (long long)index->rows);
}

/* When as many rows have looked for a cluster as there are, the clusters are made anew: about the work that these
 * looks have taken. */
static fgi_rc after_updates(fgi_search *index, int done, fgi_error *err) {
    if (done && index->far > index->rows) return fgi_search_rebuild(index, err);
    if (done && fgi_search_scratch_fit(index)) return FGI_OK;
    return fgi_no_memory(err);
}

/* Row i of the list is at rows + (listed ? i : label) * stride. */
static fgi_rc set_rows(fgi_search *index, int64_t n, const int32_t *labels, int64_t stride, const float *rows,
    int listed, fgi_error *err) {
    fgi_rc rc = FGI_OK;
    if (stride < index->d) return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "rows must have %d columns", (int)index->d);
    for (int64_t i = 0; !rc && i < n; i++) {
        rc = check_label(index, labels[i], err);
        if (!rc) rc = check_row(rows + (listed ? i : labels[i]) * stride, index->d, labels[i], err);
    }
    if (rc) return rc;
    const int32_t largest = index->largest_cell;
    int ok = 1;
    for (int64_t i = 0; ok && i < n; i++) {
        memcpy(index->placed, rows + (listed ? i : labels[i]) * stride, (size_t)index->d * sizeof *index->placed);
        ok = place(index, labels[i]);
    }
    return ok && index->largest_cell == largest && index->far <= index->rows ? FGI_OK : after_updates(index, ok, err);
}

fgi_rc fgi_search_set_rows(
    fgi_search *index, int64_t n, const int32_t *labels, int64_t stride, const float *rows, fgi_error *err) {
    return set_rows(index, n, labels, stride, rows, 1, err);
}

fgi_rc fgi_search_refresh(
    fgi_search *index, int64_t n, const int32_t *labels, int64_t stride, const float *all, fgi_error *err) {
    return set_rows(index, n, labels, stride, all, 0, err);
}

fgi_rc fgi_search_set_entries(
    fgi_search *index, int64_t n, const int32_t *labels, const int32_t *columns, const float *values, fgi_error *err) {
    for (int64_t i = 0; i < n; i++) {
        fgi_rc rc = check_label(index, labels[i], err);
        if (rc) return rc;
        if (columns[i] < 0 || columns[i] >= index->d)
            return fgi_fail(
                err, FGI_BAD_MODEL, i, "there is no column %d; there are %d", (int)columns[i], (int)index->d);
        if (!isfinite(values[i])) return fgi_fail(err, FGI_BAD_MODEL, i, "value %lld is not finite", (long long)i);
    }
    int ok = 1;
    for (int64_t i = 0; ok && i < n;) { /* entries of one row that follow each other are one move */
        const int32_t label = labels[i];
        memcpy(index->placed, fgi_search_at(index, label), (size_t)index->stride * sizeof *index->placed);
        for (; i < n && labels[i] == label; i++) index->placed[columns[i]] = values[i];
        ok = place(index, label);
    }
    return after_updates(index, ok, err);
}

void fgi_search_row(const fgi_search *index, int32_t label, float *row) {
    memcpy(row, fgi_search_at(index, label), (size_t)index->d * sizeof *row);
}

void fgi_search_info_get(const fgi_search *index, fgi_search_info *info) {
    *info = (fgi_search_info){.rows = index->rows,
        .d = index->d,
        .clusters = index->clusters,
        .queries = index->queries,
        .rows_touched = index->touched,
        .scanned = index->scanned,
        .rows_set = index->rows_set,
        .rows_moved = index->rows_moved};
    int64_t floats = index->clusters * index->stride + 3 * index->rows;
    for (int32_t c = 0; c < index->clusters; c++) floats += index->cells[c].capacity * (index->stride + 3);
    info->memory = 4 * floats + index->clusters * (int64_t)sizeof(fgi_cell) +
        (index->codes ? fgi_codes_memory(index->codes) : 0) + (index->bytes ? fgi_bytes_memory(index->bytes) : 0);
}
