/* learn/gdmm/unigram_index.c - unigram oracles by a search index over the labels' weights, for many labels with dense
 * features.
 *
 * The index keeps the weights in single precision, a row a label, and follows the labels that a visit has changed
 * before the next search: O(features) each. It chooses labels only: their gradients are computed from the weights
 * themselves, and certificates (learn/gdmm/bound.c) scan all labels. */
#include <string.h>
#include "fginfer_search.h"
#include "learn/gdmm/gdmm.h"

enum { CHUNK = 256 }; /* rows gathered at a time */

struct fgi_unigram_index {
    fgi_search *search; /* made at the first question: weights may have been put in place until then */
    int32_t *changed;   /* labels whose rows are old */
    uint8_t *is_changed;
    int32_t n_changed;
    int ripe;    /* most rows had weights when the clusters were made: clusters of zeros tell nothing */
    float *rows; /* CHUNK of them */
    /* questions, room for as many as have been asked at once */
    int64_t room, message_room;
    float *x;
    int64_t *message_begin, *excluded_begin, *token;
    int32_t *message_label, *excluded, *found;
    double *message_value, *value;
};

void fgi_unigram_index_free(fgi_unigram_index *o) {
    if (!o) return;
    fgi_search_free(o->search);
    void *all[] = {o->changed, o->is_changed, o->rows, o->x, o->message_begin, o->excluded_begin, o->token,
        o->message_label, o->excluded, o->found, o->message_value, o->value};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) free(all[k]);
    free(o);
}

fgi_rc fgi_unigram_index_create(const fgi_learn_gdmm *g, fgi_unigram_index **out) {
    const fgi_learn_data *d = &g->L->data;
    fgi_unigram_index *o = *out = fgi_calloc(1, sizeof *o);
    if (!o) return FGI_NO_MEMORY;
    o->changed = fgi_alloc(d->n_labels, sizeof *o->changed);
    o->is_changed = fgi_calloc(d->n_labels, sizeof *o->is_changed);
    o->rows = fgi_alloc(CHUNK * d->n_features, sizeof *o->rows);
    return o->changed && o->is_changed && o->rows ? FGI_OK : FGI_NO_MEMORY; /* the gdmm frees it */
}

void fgi_unigram_index_mark(fgi_unigram_index *o, int32_t label) {
    if (o->is_changed[label]) return;
    o->is_changed[label] = 1;
    o->changed[o->n_changed++] = label;
}

void fgi_unigram_index_forget(fgi_unigram_index *o) {
    fgi_search_free(o->search);
    o->search = NULL;
}

/* ---- following the weights --------------------------------------------------------------------------------------- */

static void gather(const fgi_learn_gdmm *g, const int32_t *labels, int64_t n, float *rows) {
    const int64_t width = g->L->data.n_features, k = g->L->data.n_labels;
    for (int64_t f = 0; f < width; f++)
        for (int64_t i = 0; i < n; i++) rows[i * width + f] = (float)g->L->w[f * k + labels[i]];
}

static fgi_rc make(const fgi_learn_gdmm *g, fgi_unigram_index *o, fgi_error *err) {
    const int64_t width = g->L->data.n_features, k = g->L->data.n_labels;
    int64_t size;
    float *rows = fgi_mul(k, width, &size) ? fgi_alloc(size, sizeof *rows) : NULL;
    if (!rows) return fgi_no_memory(err);
    fgi_search_settings settings;
    fgi_search_defaults(&settings);
    settings.threads = g->L->threads;
    settings.seed = g->s.seed;
    int64_t filled = 0;
    for (int32_t y = 0; y < k; y++) {
        int64_t f = 0;
        gather(g, &y, 1, rows + y * width);
        while (f < width && rows[y * width + f] == 0.0f) f++;
        filled += f < width;
    }
    o->ripe = 2 * filled > k;
    fgi_rc rc = fgi_search_create(k, (int32_t)width, width, rows, &settings, &o->search, err);
    free(rows);
    memset(o->is_changed, 0, (size_t)k);
    o->n_changed = 0;
    return rc;
}

static fgi_rc follow(const fgi_learn_gdmm *g, fgi_unigram_index *o, fgi_error *err) {
    if (!o->search) return make(g, o, err);
    const int64_t width = g->L->data.n_features;
    fgi_rc rc = FGI_OK;
    for (int32_t at = 0; !rc && at < o->n_changed; at += CHUNK) {
        const int64_t n = o->n_changed - at < CHUNK ? o->n_changed - at : CHUNK;
        gather(g, o->changed + at, n, o->rows);
        rc = fgi_search_set_rows(o->search, n, o->changed + at, width, o->rows, err);
    }
    for (int32_t at = 0; at < o->n_changed; at++) o->is_changed[o->changed[at]] = 0;
    o->n_changed = 0;
    return rc;
}

/* ---- questions --------------------------------------------------------------------------------------------------- */

static int reserve(fgi_unigram_index *o, int64_t n, int64_t messages, int64_t width) {
    if (messages > o->message_room) {
        if (!fgi_resize(&o->message_label, 2 * messages, sizeof *o->message_label) ||
            !fgi_resize(&o->message_value, 2 * messages, sizeof *o->message_value))
            return 0;
        o->message_room = 2 * messages;
    }
    if (n <= o->room) return 1;
    if (!fgi_resize(&o->x, n * width, sizeof *o->x) ||
        !fgi_resize(&o->message_begin, n + 1, sizeof *o->message_begin) ||
        !fgi_resize(&o->excluded_begin, n + 1, sizeof *o->excluded_begin) ||
        !fgi_resize(&o->token, n, sizeof *o->token) || !fgi_resize(&o->excluded, n, sizeof *o->excluded) ||
        !fgi_resize(&o->found, n, sizeof *o->found) || !fgi_resize(&o->value, n, sizeof *o->value))
        return 0;
    o->room = n;
    return 1;
}

/* Token t's features, its messages and its truth, as question i. */
static void put(const fgi_learn_gdmm *g, fgi_unigram_index *o, int64_t i, int64_t t) {
    const fgi_learn_data *d = &g->L->data;
    const fgi_support *support = &g->tokens[t];
    float *x = o->x + i * d->n_features;
    int64_t end = i ? o->message_begin[i] : 0;
    memset(x, 0, (size_t)d->n_features * sizeof *x);
    for (int64_t j = d->row_begin[t]; j < d->row_begin[t + 1]; j++)
        x[d->feature[j]] += (float)(d->value ? d->value[j] : 1.0);
    for (int32_t at = 0; at < support->n; at++) {
        if (support->label[at] == d->truth[t]) continue;
        double sum = 0;
        for (int32_t e = 0; e < support->degree; e++) sum += fgi_support_message(support, e, at);
        if (sum == 0.0) continue;
        o->message_label[end] = support->label[at];
        o->message_value[end++] = g->rho * sum;
    }
    if (i == 0) o->message_begin[0] = 0;
    o->message_begin[i + 1] = end;
    o->token[i] = t;
    o->excluded_begin[i] = i;
    o->excluded_begin[i + 1] = i + 1;
    o->excluded[i] = d->truth[t];
}

/* Answers questions 0 .. n-1 into g->proposal. */
static fgi_rc ask(fgi_learn_gdmm *g, int64_t n, fgi_error *err) {
    fgi_unigram_index *o = g->index;
    fgi_rc rc = follow(g, o, err);
    if (rc) return rc;
    const int64_t width = g->L->data.n_features;
    const fgi_search_query q = {.n = n,
        .stride = width,
        .x = o->x,
        .want = 1,
        .probes = o->ripe ? g->s.probes : 0,
        .message_begin = o->message_begin,
        .message_labels = o->message_label,
        .message_values = o->message_value,
        .excluded_begin = o->excluded_begin,
        .excluded_labels = o->excluded};
    fgi_search_info before, after;
    fgi_search_info_get(o->search, &before);
    rc = fgi_search_run(o->search, &q, o->found, o->value, NULL, err);
    fgi_search_info_get(o->search, &after);
    for (int64_t i = 0; !rc && i < n; i++) g->proposal[o->token[i]] = o->found[i];
    g->unary_calls += n;
    g->unary_touched += after.rows_touched - before.rows_touched;
    g->unary_products += (after.rows_touched - before.rows_touched) * width;
    return rc;
}

fgi_rc fgi_unigram_index_token(fgi_learn_gdmm *g, int64_t token, fgi_error *err) {
    if (!reserve(g->index, 1, g->tokens[token].n, g->L->data.n_features)) return fgi_no_memory(err);
    put(g, g->index, 0, token);
    return ask(g, 1, err);
}

fgi_rc fgi_unigram_index_examples(fgi_learn_gdmm *g, const int32_t *examples, int64_t n, fgi_error *err) {
    const int64_t *first = g->L->data.token_begin;
    int64_t tokens = 0, messages = 0, at = 0;
    for (int64_t k = 0; k < n; k++)
        for (int64_t t = first[examples[k]]; t < first[examples[k] + 1]; t++) tokens++, messages += g->tokens[t].n;
    if (!tokens) return FGI_OK;
    if (!reserve(g->index, tokens, messages, g->L->data.n_features)) return fgi_no_memory(err);
    for (int64_t k = 0; k < n; k++)
        for (int64_t t = first[examples[k]]; t < first[examples[k] + 1]; t++) put(g, g->index, at++, t);
    return ask(g, tokens, err);
}
