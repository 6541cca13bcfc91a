/* learn/losses/losses.c - losses of a batch: its memory, its searches, its samples on threads, their gradients. */
#include "learn/losses/losses.h"
#include <string.h>

void fgi_loss_defaults(fgi_loss_settings *settings) {
    *settings = (fgi_loss_settings){.loss = FGI_LOSS_ENTROPY,
        .method = FGI_LOSS_EXACT,
        .mu = 1,
        .want = 100,
        .rest = FGI_REST_OMIT,
        .blocks = 4,
        .rounds = 1,
        .joined = 1,
        .threads = 1};
}

void fgi_loss_blocks(int32_t d, int32_t blocks, int32_t *begin) {
    for (int32_t j = 0; j <= blocks; j++) begin[j] = (int32_t)((int64_t)d * j / blocks);
}

/* ---- creation --------------------------------------------------------------------------------------------------- */

static void scratch_free(fgi_loss_scratch *w) {
    fgi_scored_free(&w->scored);
    fgi_scored_free(&w->block);
    free(w->sum);
    free(w->state);
    free(w->found);
    free(w->part);
    free(w->mix);
    free(w->keys);
    free(w->labels);
    free(w->values);
}

void fgi_losses_free(fgi_losses *l) {
    if (!l) return;
    for (int32_t t = 0; l->scratch && t < l->threads; t++) scratch_free(&l->scratch[t]);
    fgi_pool_free(l->pool);
    free(l->scratch);
    free(l->begin);
    free(l->labels);
    free(l->values);
    free(l->owner);
    free(l->at);
    free(l->size);
    free(l->rest);
    free(l->found_labels);
    free(l->found_values);
    free(l->found_parts);
    free(l->proven);
    free(l->sample);
    free(l->sample_rows);
    free(l->mark);
    free(l);
}

static fgi_rc check_settings(const fgi_loss_settings *settings, fgi_error *err) {
    const char *wrong = settings->loss < 0 || settings->loss > FGI_LOSS_TRIPLET ? "there is no such loss"
        : settings->method < 0 || settings->method > FGI_LOSS_DECOMPOSED        ? "there is no such method"
        : !(settings->mu > 0) || !isfinite(settings->mu)                        ? "mu must be positive"
        : settings->want < 1                                                    ? "want must be at least 1"
        : settings->probes < 0                                                  ? "probes must not be negative"
        : settings->candidates < 0                                              ? "candidates must not be negative"
        : settings->rest < 0 || settings->rest > FGI_REST_MOMENTS               ? "there is no such rest"
        : settings->blocks < 1                                                  ? "blocks must be at least 1"
        : settings->rounds < 1                                                  ? "rounds must be at least 1"
        : settings->keep < 0                                                    ? "keep must not be negative"
        : settings->together && !settings->joined ? "blocks that are searched together are joined"
        : !(settings->threshold >= 0)             ? "threshold must not be negative"
        : settings->threads < 1                   ? "threads must be at least 1"
                                                  : NULL;
    return wrong ? fgi_fail(err, FGI_BAD_ARGUMENT, -1, "%s", wrong) : FGI_OK;
}

fgi_rc fgi_losses_create(const fgi_loss_settings *settings, fgi_losses **out, fgi_error *err) {
    fgi_rc rc = check_settings(settings, err);
    if (rc) return rc;
    fgi_losses *l = fgi_calloc(1, sizeof *l);
    if (!l) return fgi_no_memory(err);
    l->s = *settings;
    l->kernels = fgi_kernels_get();
    l->pool = fgi_pool_create(settings->threads);
    l->threads = l->pool ? settings->threads : 1;
    l->rng.state = settings->seed;
    l->scratch = fgi_calloc(l->threads, sizeof *l->scratch);
    if (!l->scratch) {
        fgi_losses_free(l);
        return fgi_no_memory(err);
    }
    *out = l;
    return FGI_OK;
}

/* ---- memory ----------------------------------------------------------------------------------------------------- */

/* *array gets room for n items; what it held is lost. 0: out of memory. */
static int renew(void *array, int64_t n, size_t size) {
    void **a = array;
    free(*a);
    *a = fgi_alloc(n, size);
    return *a != NULL;
}

static int reserve(fgi_losses *l, const fgi_loss_batch *b, int64_t searches) {
    int ok = 1;
    if (b->n >= l->n_capacity) {
        l->n_capacity = 0;
        ok = renew(&l->begin, b->n + 1, sizeof *l->begin) && renew(&l->owner, b->n, sizeof *l->owner) &&
            renew(&l->at, b->n, sizeof *l->at) && renew(&l->size, b->n, sizeof *l->size) &&
            renew(&l->rest, b->n, sizeof *l->rest);
        if (ok) l->n_capacity = b->n + 1;
    }
    if (ok && b->n * searches * l->s.want > l->found_capacity) {
        const int64_t n = b->n * searches * l->s.want;
        l->found_capacity = 0;
        ok = renew(&l->found_labels, n, sizeof *l->found_labels) &&
            (l->s.together ? renew(&l->found_parts, n * l->s.blocks, sizeof *l->found_parts)
                           : renew(&l->found_values, n, sizeof *l->found_values)) &&
            renew(&l->proven, n, 1);
        if (ok) l->found_capacity = n;
    }
    if (ok && b->labels > l->label_capacity) {
        l->label_capacity = 0;
        free(l->mark);
        l->mark = fgi_calloc(b->labels, sizeof *l->mark);
        l->epoch = 0;
        ok = l->mark != NULL;
        for (int32_t t = 0; ok && l->s.method == FGI_LOSS_DECOMPOSED && t < l->threads; t++) {
            fgi_loss_scratch *w = &l->scratch[t];
            free(w->sum);
            free(w->state);
            w->sum = fgi_calloc(b->labels, sizeof *w->sum);
            w->state = fgi_calloc(b->labels, 1);
            ok = w->sum && w->state;
        }
        if (ok) l->label_capacity = b->labels;
    }
    return ok;
}

/* ---- a batch ---------------------------------------------------------------------------------------------------- */

typedef struct run {
    fgi_losses *l;
    const fgi_loss_batch *b;
    double *values;
    int32_t *claims;
} run;

/* The non-zero gradients into the thread's list. */
static void keep_gradient(fgi_losses *l, int64_t i, int worker) {
    fgi_loss_scratch *w = &l->scratch[worker];
    const fgi_scored *scored = &w->scored;
    if (w->n + scored->n > w->capacity) {
        const int64_t capacity = 2 * (w->n + scored->n) + 64;
        if (!fgi_resize(&w->labels, capacity, sizeof *w->labels) ||
            !fgi_resize(&w->values, capacity, sizeof *w->values)) {
            w->failed = 1;
            l->size[i] = 0;
            return;
        }
        w->capacity = capacity;
    }
    l->owner[i] = worker;
    l->at[i] = w->n;
    for (int64_t k = 0; k < scored->n; k++) {
        if (scored->g[k] == 0) continue;
        w->labels[w->n] = scored->labels[k];
        w->values[w->n++] = (float)scored->g[k];
    }
    l->size[i] = w->n - l->at[i];
}

static void work(void *context, int64_t begin, int64_t end, int worker) {
    const run *r = context;
    fgi_losses *l = r->l;
    fgi_loss_scratch *w = &l->scratch[worker];
    for (int64_t i = begin; i < end; i++) {
        fgi_loss_answer a;
        fgi_loss_positives(l, r->b, i, w);
        if (l->s.method == FGI_LOSS_EXACT) a = fgi_loss_exact(l, r->b, i, w);
        else if (l->s.method == FGI_LOSS_SAMPLED) a = fgi_loss_sampled(l, r->b, i, w);
        else if (l->s.method == FGI_LOSS_SEARCH) a = fgi_loss_searched(l, r->b, i, w);
        else a = fgi_loss_decomposed(l, r->b, i, w);
        for (int64_t k = 0; k < w->scored.n; k++) w->overflow |= !isfinite(w->scored.z[k]);
        r->values[i] = a.value;
        r->claims[i] = a.claim;
        l->rest[i] = w->scored.rest_g;
        keep_gradient(l, i, worker);
    }
}

static int collect(fgi_losses *l, int64_t n) {
    l->n = n;
    l->begin[0] = 0;
    for (int64_t i = 0; i < n; i++) l->begin[i + 1] = l->begin[i] + l->size[i];
    if (l->begin[n] > l->entries_capacity) {
        l->entries_capacity = 0;
        if (!renew(&l->labels, 2 * l->begin[n], sizeof *l->labels) ||
            !renew(&l->values, 2 * l->begin[n], sizeof *l->values))
            return 0;
        l->entries_capacity = 2 * l->begin[n];
    }
    for (int64_t i = 0; i < n; i++) {
        const fgi_loss_scratch *w = &l->scratch[l->owner[i]];
        if (l->size[i] == 0) continue;
        memcpy(l->labels + l->begin[i], w->labels + l->at[i], (size_t)l->size[i] * sizeof *l->labels);
        memcpy(l->values + l->begin[i], w->values + l->at[i], (size_t)l->size[i] * sizeof *l->values);
    }
    return 1;
}

/* A sample without replacement, by Floyd's method, marked in l->mark; shared by the batch, so that its rows are read
 * once. */
static int draw(fgi_losses *l, const fgi_loss_batch *b) {
    const int64_t m = l->s.want;
    if (m > l->sample_capacity) {
        l->sample_capacity = 0;
        if (!renew(&l->sample, m, sizeof *l->sample)) return 0;
        l->sample_capacity = m;
    }
    if (m * b->d > l->sample_floats) {
        l->sample_floats = 0;
        if (!renew(&l->sample_rows, m * b->d, sizeof *l->sample_rows)) return 0;
        l->sample_floats = m * b->d;
    }
    fgi_loss_unmark(l);
    for (int64_t k = 0, top = b->labels - m; k < m; k++, top++) {
        int64_t label = fgi_rng_below(&l->rng, top + 1);
        if (l->mark[label] == l->epoch) label = top;
        l->mark[label] = l->epoch;
        l->sample[k] = (int32_t)label;
        memcpy(l->sample_rows + k * b->d, b->rows + label * b->d, (size_t)b->d * sizeof *b->rows);
    }
    return 1;
}

/* All blocks in one pass. */
static fgi_rc search_together(fgi_losses *l, const fgi_loss_batch *b, fgi_error *err) {
    const fgi_search_query q = {.n = b->n,
        .stride = b->d,
        .x = b->x,
        .want = l->s.want,
        .candidates = l->s.candidates,
        .excluded_begin = b->positive_begin,
        .excluded_labels = b->positives};
    return fgi_search_parts(b->indexes[0], &q, l->found_labels, l->found_parts, err);
}

static fgi_rc search(fgi_losses *l, const fgi_loss_batch *b, fgi_error *err) {
    int32_t begin[2] = {0, b->d}, *cuts = begin;
    const int decomposed = l->s.method == FGI_LOSS_DECOMPOSED, blocks = decomposed ? l->s.blocks : 1;
    if (decomposed) {
        cuts = fgi_alloc(blocks + 1, sizeof *cuts);
        if (!cuts) return fgi_no_memory(err);
        fgi_loss_blocks(b->d, blocks, cuts);
    }
    fgi_rc rc = FGI_OK;
    for (int j = 0; !rc && j < blocks; j++) {
        const fgi_search_query q = {.n = b->n,
            .stride = b->d,
            .x = b->x + cuts[j],
            .want = l->s.want,
            .probes = l->s.probes,
            .candidates = l->s.candidates,
            .unordered = 1,
            .excluded_begin = b->positive_begin,
            .excluded_labels = b->positives};
        const int64_t at = (int64_t)j * b->n;
        rc = fgi_search_run(
            b->indexes[j], &q, l->found_labels + at * q.want, l->found_values + at * q.want, l->proven + at, err);
    }
    if (decomposed) free(cuts);
    return rc;
}

static fgi_rc check_batch(const fgi_losses *l, const fgi_loss_batch *b, fgi_error *err) {
    if (l->s.method == FGI_LOSS_DECOMPOSED && l->s.blocks > b->d)
        return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "%d blocks of %d columns", (int)l->s.blocks, (int)b->d);
    if (l->s.method != FGI_LOSS_EXACT && l->s.want > b->labels)
        return fgi_fail(
            err, FGI_BAD_ARGUMENT, -1, "%d labels are wanted of %lld", (int)l->s.want, (long long)b->labels);
    if (l->s.together && fgi_search_parts_of(b->indexes[0]) != l->s.blocks)
        return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "the index has %d parts for %d blocks",
            (int)fgi_search_parts_of(b->indexes[0]), (int)l->s.blocks);
    if (l->s.rest == FGI_REST_MOMENTS && (!b->total || !b->square))
        return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "the moments of the rows are missing");
    for (int64_t i = 0; i < b->n; i++) {
        const int64_t begin = b->positive_begin[i], end = b->positive_begin[i + 1];
        if (end <= begin || end - begin > b->labels - (l->s.loss != FGI_LOSS_ENTROPY))
            return fgi_fail(err, FGI_BAD_MODEL, i, "sample %lld needs a positive and a negative label", (long long)i);
        for (int64_t k = begin; k < end; k++)
            if (b->positives[k] < 0 || b->positives[k] >= b->labels ||
                (k > begin && b->positives[k] <= b->positives[k - 1]))
                return fgi_fail(err, FGI_BAD_MODEL, i, "the labels of sample %lld must be ascending and below %lld",
                    (long long)i, (long long)b->labels);
    }
    return FGI_OK;
}

fgi_rc fgi_losses_run(fgi_losses *l, const fgi_loss_batch *b, double *values, int32_t *claims, fgi_error *err) {
    fgi_rc rc = check_batch(l, b, err);
    if (rc) return rc;
    const int searches = l->s.method == FGI_LOSS_SEARCH ? 1 : l->s.method == FGI_LOSS_DECOMPOSED ? l->s.blocks : 0;
    run r = {l, b, values, claims};
    if (!reserve(l, b, searches) || (l->s.method == FGI_LOSS_SAMPLED && !draw(l, b))) return fgi_no_memory(err);
    if (searches) rc = l->s.together ? search_together(l, b, err) : search(l, b, err);
    if (rc) return rc;
    for (int32_t t = 0; t < l->threads; t++) {
        l->scratch[t].n = l->scratch[t].touched = 0;
        l->scratch[t].failed = l->scratch[t].overflow = 0;
    }
    fgi_pool_run(l->pool, b->n, 1, work, &r);
    int ok = 1, overflow = 0;
    for (int32_t t = 0; t < l->threads; t++) {
        ok = ok && !l->scratch[t].failed;
        overflow |= l->scratch[t].overflow;
        l->touched += l->scratch[t].touched;
    }
    if (!ok || !collect(l, b->n)) return fgi_no_memory(err);
    if (overflow) return fgi_fail(err, FGI_BAD_MODEL, -1, "rows or x are too large: a score is no finite number");
    return FGI_OK;
}

int64_t fgi_losses_gradient(const fgi_losses *l, const int64_t **begin, const int32_t **labels, const float **values) {
    *begin = l->begin;
    *labels = l->labels;
    *values = l->values;
    return l->n ? l->begin[l->n] : 0;
}

const double *fgi_losses_rest(const fgi_losses *l) { return l->rest; }

int64_t fgi_losses_touched(const fgi_losses *l) { return l->touched; }
