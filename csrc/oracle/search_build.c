/* oracle/search_build.c - clusters of a search index: spherical k-means on a sample, then every row to the direction
 * with which its inner product is largest (Auvolat, Chandar, Vincent, Larochelle, Bengio, "Clustering is efficient for
 * approximate maximum inner product search", 2015). */
#include <string.h>
#include "base/util.h"
#include "oracle/search_index.h"

enum {
    SAMPLE = 40, /* rows per cluster that k-means looks at: a choice, not tuned */
    GRAIN = 64   /* rows a thread takes at a time */
};

static double length_of(const float *x, int64_t d) {
    double sum = 0;
    for (int64_t i = 0; i < d; i++) sum += (double)x[i] * x[i];
    return sqrt(sum);
}

/* ---- cells ------------------------------------------------------------------------------------------------------ */

static int cell_grow(fgi_cell *c, int64_t stride) {
    const int64_t capacity = c->capacity ? c->capacity + c->capacity / 2 + 1 : 4;
    float *rows = fgi_alloc(capacity * stride, sizeof *rows), *along = fgi_alloc(capacity, sizeof *along);
    float *away = fgi_alloc(capacity, sizeof *away);
    int32_t *labels = fgi_alloc(capacity, sizeof *labels);
    if (!rows || !along || !away || !labels || capacity > INT32_MAX) {
        free(rows);
        free(along);
        free(away);
        free(labels);
        return 0;
    }
    if (c->n > 0) {
        memcpy(rows, c->rows, (size_t)c->n * (size_t)stride * sizeof *rows);
        memcpy(along, c->along, (size_t)c->n * sizeof *along);
        memcpy(away, c->away, (size_t)c->n * sizeof *away);
        memcpy(labels, c->labels, (size_t)c->n * sizeof *labels);
    }
    free(c->rows);
    free(c->along);
    free(c->away);
    free(c->labels);
    c->rows = rows;
    c->along = along;
    c->away = away;
    c->labels = labels;
    c->capacity = (int32_t)capacity;
    return 1;
}

static void cell_include(fgi_cell *c, float along, float away) {
    if (c->n == 1 || along < c->along_min) c->along_min = along;
    if (c->n == 1 || along > c->along_max) c->along_max = along;
    if (c->n == 1 || away > c->away_max) c->away_max = away;
    c->along_sum += along;
    c->away_sum += away;
}

/* Bounds from scratch. */
static void cell_measure(fgi_cell *c) {
    const int32_t n = c->n;
    c->removed = 0;
    c->along_sum = c->away_sum = 0;
    c->along_min = c->along_max = c->away_max = 0;
    for (c->n = 1; c->n <= n; c->n++) cell_include(c, c->along[c->n - 1], c->away[c->n - 1]);
    c->n = n;
}

/* The largest of n cosines in d dimensions lies about sqrt(2 log n / d) out: what the best row of a cluster may be
 * expected to gain from the query's part away from the direction. */
void fgi_cell_publish(fgi_search *index, int32_t cell) {
    const fgi_cell *c = &index->cells[cell];
    const fgi_cell_views *v = &index->views;
    v->along_min[cell] = c->along_min;
    v->along_max[cell] = c->along_max;
    v->away_max[cell] = c->n ? c->away_max : -INFINITY;
    v->along[cell] = c->n ? (float)(c->along_sum / c->n) : 0;
    v->promise[cell] = c->n ? (float)(c->away_sum / c->n * sqrt(2 * log(1.0 + c->n) / index->d)) : -INFINITY;
}

int fgi_cell_push(fgi_search *index, int32_t cell, int32_t label, const float *row) {
    fgi_cell *c = &index->cells[cell];
    const float *direction = index->directions + cell * index->stride;
    if (c->n == c->capacity && !cell_grow(c, index->stride)) return 0;
    double along = 0, rest = 0;
    for (int32_t i = 0; i < index->d; i++) along += (double)row[i] * direction[i];
    for (int32_t i = 0; i < index->d; i++) {
        double r = row[i] - along * direction[i];
        rest += r * r;
    }
    const int32_t at = c->n++;
    memcpy(c->rows + at * index->stride, row, (size_t)index->stride * sizeof *row);
    c->labels[at] = label;
    c->along[at] = (float)along;
    c->away[at] = (float)sqrt(rest);
    cell_include(c, c->along[at], c->away[at]);
    index->home[label] = cell;
    index->slot[label] = at;
    index->drift[label] = 0;
    const double longest = length_of(row, index->d);
    if (longest > index->longest) index->longest = longest;
    if (c->capacity > index->largest_cell) index->largest_cell = c->capacity;
    if (!index->filling) fgi_cell_publish(index, cell);
    return 1;
}

void fgi_cell_remove(fgi_search *index, int32_t cell, int32_t at) {
    fgi_cell *c = &index->cells[cell];
    const int32_t last = --c->n;
    c->along_sum -= c->along[at];
    c->away_sum -= c->away[at];
    if (at != last) {
        memcpy(c->rows + at * index->stride, c->rows + last * index->stride, (size_t)index->stride * sizeof *c->rows);
        c->labels[at] = c->labels[last];
        c->along[at] = c->along[last];
        c->away[at] = c->away[last];
        index->slot[c->labels[at]] = at;
    }
    if (++c->removed > c->n / 2 + 4) cell_measure(c);
    fgi_cell_publish(index, cell);
}

void fgi_cells_free(fgi_search *index) {
    for (int32_t c = 0; index->cells && c < index->clusters; c++) {
        free(index->cells[c].rows);
        free(index->cells[c].labels);
        free(index->cells[c].along);
        free(index->cells[c].away);
    }
    free(index->cells);
    index->cells = NULL;
}

/* ---- k-means ---------------------------------------------------------------------------------------------------- */

typedef struct assignment {
    const fgi_search *s;
    const float *all;
    const int32_t *which; /* rows to assign; NULL: all */
    float *scores;        /* per thread 4 x clusters */
    int32_t *cluster;
} assignment;

static void assign(void *context, int64_t begin, int64_t end, int worker) {
    const assignment *a = context;
    const fgi_search *index = a->s;
    float *out[4];
    const float *x[4];
    for (int q = 0; q < 4; q++) out[q] = a->scores + ((int64_t)worker * 4 + q) * index->clusters;
    for (int64_t k = begin; k < end; k += 4) {
        for (int q = 0; q < 4; q++) {
            int64_t at = k + q < end ? k + q : end - 1; /* the last one more often: same answer */
            x[q] = a->all + (a->which ? a->which[at] : at) * index->stride;
        }
        index->kernels->dots4(index->directions, index->clusters, index->stride, index->d, x, out);
        for (int q = 0; q < 4 && k + q < end; q++) {
            int32_t best = 0;
            for (int32_t c = 1; c < index->clusters; c++)
                if (out[q][c] > out[q][best]) best = c;
            a->cluster[k + q] = best;
        }
    }
}

/* Directions as normalised sums of the normalised rows of the sample; one without rows starts again from a row. */
static void average(fgi_search *index, const float *all, const int32_t *sample, const int32_t *cluster, int64_t n,
    fgi_rng *rng, double *sum) {
    memset(sum, 0, (size_t)index->clusters * (size_t)index->d * sizeof *sum);
    for (int64_t k = 0; k < n; k++) {
        const float *row = all + sample[k] * index->stride;
        const double length = length_of(row, index->d);
        double *to = sum + (int64_t)cluster[k] * index->d;
        for (int32_t i = 0; length > 0 && i < index->d; i++) to[i] += row[i] / length;
    }
    for (int32_t c = 0; c < index->clusters; c++) {
        double *to = sum + (int64_t)c * index->d, length = 0;
        for (int32_t i = 0; i < index->d; i++) length += to[i] * to[i];
        for (int tries = 0; !(length > 1e-12) && tries < 8; tries++) {
            const float *row = all + sample[fgi_rng_below(rng, n)] * index->stride;
            length = 0;
            for (int32_t i = 0; i < index->d; i++) {
                to[i] = row[i];
                length += to[i] * to[i];
            }
        }
        if (!(length > 0)) to[c % index->d] = length = 1;
        length = sqrt(length);
        for (int32_t i = 0; i < index->d; i++) index->directions[c * index->stride + i] = (float)(to[i] / length);
    }
}

static int64_t draw_sample(const fgi_search *index, fgi_rng *rng, int32_t *sample) {
    const int64_t n = index->rows < (int64_t)SAMPLE * index->clusters ? index->rows : (int64_t)SAMPLE * index->clusters;
    for (int64_t k = 0; k < n; k++) { /* one from each of n equal pieces: distinct, and spread out */
        const int64_t from = index->rows * k / n, to = index->rows * (k + 1) / n;
        sample[k] = (int32_t)(from + fgi_rng_below(rng, to - from));
    }
    for (int64_t k = n - 1; k > 0; k--) {
        const int64_t j = fgi_rng_below(rng, k + 1);
        const int32_t t = sample[k];
        sample[k] = sample[j];
        sample[j] = t;
    }
    return n;
}

static int fill(fgi_search *index, const float *all, const int32_t *cluster) {
    index->filling = 1;
    for (int64_t k = 0; k < index->rows; k++)
        if (!fgi_cell_push(index, cluster[k], (int32_t)k, all + k * index->stride)) return 0;
    index->filling = 0;
    for (int32_t c = 0; c < index->clusters; c++) fgi_cell_publish(index, c);
    return fgi_search_scratch_fit(index);
}

fgi_rc fgi_search_cluster(fgi_search *index, const float *all, fgi_error *err) {
    fgi_rng rng = {index->settings.seed};
    assignment a = {.s = index, .all = all};
    int32_t *sample = fgi_alloc(index->rows, sizeof *sample);
    double *sum = fgi_alloc((int64_t)index->clusters * index->d, sizeof *sum);
    a.scores = fgi_alloc((int64_t)index->threads * 4 * index->clusters, sizeof *a.scores);
    a.cluster = fgi_calloc(index->rows, sizeof *a.cluster);
    int ok = sample && sum && a.scores && a.cluster;
    if (ok) {
        const int64_t n = draw_sample(index, &rng, sample);
        for (int64_t k = 0; k < n; k++)
            a.cluster[k] = (int32_t)(k % index->clusters); /* the first ones are the seeds */
        average(index, all, sample, a.cluster, n < index->clusters ? n : index->clusters, &rng, sum);
        a.which = sample;
        for (int32_t round = 0; round < index->settings.rounds; round++) {
            fgi_pool_run(index->pool, n, GRAIN, assign, &a);
            average(index, all, sample, a.cluster, n, &rng, sum);
        }
        a.which = NULL;
        fgi_pool_run(index->pool, index->rows, GRAIN, assign, &a);
        index->longest = 0;
        index->largest_cell = 0;
        index->far = 0;
        ok = fill(index, all, a.cluster);
    }
    free(sample);
    free(sum);
    free(a.scores);
    free(a.cluster);
    return ok ? FGI_OK : fgi_fail(err, FGI_NO_MEMORY, -1, "out of memory for %lld rows", (long long)index->rows);
}
