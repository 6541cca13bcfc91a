/* learn/data.c - a learner's life: checking the data, forests of edge lists, memory, state. */
#include <string.h>
#include "learn/learn.h"

static fgi_rc check_csr(const int64_t *begin, int64_t rows, const int32_t *index, int64_t limit, const double *value,
    const char *what, fgi_error *err) {
    if (begin[0] != 0) return fgi_fail(err, FGI_BAD_MODEL, 0, "%s: the first row must begin at 0", what);
    for (int64_t r = 0; r < rows; r++) {
        if (begin[r + 1] < begin[r])
            return fgi_fail(err, FGI_BAD_MODEL, r, "%s: row %lld ends before it begins", what, (long long)r);
        for (int64_t k = begin[r]; k < begin[r + 1]; k++) {
            if (index[k] < 0 || index[k] >= limit)
                return fgi_fail(err, FGI_BAD_MODEL, r, "%s: row %lld has index %d, allowed are 0 to %lld", what,
                    (long long)r, (int)index[k], (long long)limit - 1);
            if (value && !isfinite(value[k]))
                return fgi_fail(
                    err, FGI_BAD_MODEL, r, "%s: row %lld has a value that is not finite", what, (long long)r);
        }
    }
    return FGI_OK;
}

static fgi_rc check_labels(const fgi_learn_data *d, int64_t tokens, fgi_error *err) {
    for (int64_t t = 0; t < tokens; t++) {
        if (d->truth[t] < 0 || d->truth[t] >= d->n_labels)
            return fgi_fail(err, FGI_BAD_MODEL, t, "token %lld has label %d, allowed are 0 to %d", (long long)t,
                (int)d->truth[t], (int)d->n_labels - 1);
        if (!d->choice_begin) continue;
        int64_t b = d->choice_begin[t], e = d->choice_begin[t + 1];
        if (e <= b) return fgi_fail(err, FGI_BAD_MODEL, t, "token %lld has no candidate label", (long long)t);
        for (int64_t k = b; k < e; k++)
            if (d->choice[k] < 0 || d->choice[k] >= d->n_labels || (k > b && d->choice[k] <= d->choice[k - 1]))
                return fgi_fail(
                    err, FGI_BAD_MODEL, t, "the candidates of token %lld are not ascending labels", (long long)t);
        if (fgi_place_of(d->choice + b, e - b, d->truth[t]) < 0)
            return fgi_fail(
                err, FGI_BAD_MODEL, t, "the true label of token %lld is not among its candidates", (long long)t);
    }
    return FGI_OK;
}

static fgi_rc check_choices(const fgi_learn_data *d, int64_t tokens, fgi_error *err) {
    for (int64_t t = 0; t < tokens; t++) {
        int64_t n = d->choice_begin[t + 1] - d->choice_begin[t];
        if (n <= 0) return fgi_fail(err, FGI_BAD_MODEL, t, "token %lld has no alternative", (long long)t);
        if (d->truth[t] < 0 || d->truth[t] >= n)
            return fgi_fail(err, FGI_BAD_MODEL, t, "token %lld has %lld alternatives, its truth is %d", (long long)t,
                (long long)n, (int)d->truth[t]);
    }
    if (d->projective)
        for (int64_t i = 0; i < d->n_examples; i++)
            for (int64_t t = d->token_begin[i], n = d->token_begin[i + 1] - t; t < d->token_begin[i + 1]; t++)
                if (d->choice_begin[t + 1] - d->choice_begin[t] != n + 1)
                    return fgi_fail(err, FGI_BAD_MODEL, t,
                        "a sentence of %lld tokens needs %lld possible heads a token", (long long)n, (long long)n + 1);
    return FGI_OK;
}

static fgi_rc check_sets(const fgi_learn_data *d, fgi_error *err) {
    for (int64_t i = 0; i < d->n_examples; i++)
        for (int64_t k = d->truth_begin[i]; k < d->truth_begin[i + 1]; k++)
            if (d->truth[k] < 0 || d->truth[k] >= d->n_labels ||
                (k > d->truth_begin[i] && d->truth[k] <= d->truth[k - 1]))
                return fgi_fail(err, FGI_BAD_MODEL, i, "the labels of example %lld are not ascending numbers below %d",
                    (long long)i, (int)d->n_labels);
    return FGI_OK;
}

static fgi_rc check_edges(const fgi_learn_data *d, fgi_error *err) {
    if (d->edges == FGI_EDGES_NONE || d->kind != FGI_LEARN_LABELS) return FGI_OK;
    if (d->n_edge_features < 1) return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "edges need at least one pairwise feature");
    if (d->edges == FGI_EDGES_LIST)
        for (int64_t i = 0; i < d->n_examples; i++)
            for (int64_t e = d->edge_begin[i], n = d->token_begin[i + 1] - d->token_begin[i]; e < d->edge_begin[i + 1];
                 e++)
                if (d->edge_u[e] < 0 || d->edge_u[e] >= n || d->edge_v[e] < 0 || d->edge_v[e] >= n ||
                    d->edge_u[e] == d->edge_v[e])
                    return fgi_fail(err, FGI_BAD_MODEL, i,
                        "example %lld has an edge (%d, %d), its tokens are 0 to %lld", (long long)i, (int)d->edge_u[e],
                        (int)d->edge_v[e], (long long)n - 1);
    if (!d->edge_row) return FGI_OK;
    return check_csr(d->edge_row, fgi_learn_edge_begin(d, d->n_examples), d->edge_feature, d->n_edge_features,
        d->edge_value, "edge features", err);
}

fgi_rc fgi_learn_check_data(const fgi_learn_data *d, fgi_error *err) {
    if (d->kind < FGI_LEARN_LABELS || d->kind > FGI_LEARN_SETS)
        return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "unknown kind of problem");
    if (d->n_examples < 1 || d->n_examples > INT32_MAX)
        return fgi_fail(err, FGI_BAD_MODEL, -1, "there must be at least one example");
    if (d->sparse && d->kind != FGI_LEARN_LABELS)
        return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "only weights of tokens with labels are kept by rows");
    if (d->n_features < 0) return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "negative number of features");
    if (d->kind != FGI_LEARN_CHOICES && d->n_labels < 1)
        return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "there must be at least one label");
    for (int64_t i = 0; i < d->n_examples; i++)
        if (d->token_begin[i + 1] <= d->token_begin[i])
            return fgi_fail(err, FGI_BAD_MODEL, i, "example %lld is empty", (long long)i);
    int64_t tokens = d->token_begin[d->n_examples];
    int64_t rows = d->kind == FGI_LEARN_CHOICES ? d->choice_begin[tokens] : tokens;
    fgi_rc rc = check_csr(d->row_begin, rows, d->feature, d->n_features, d->value, "features", err);
    if (!rc && d->kind == FGI_LEARN_LABELS) rc = check_labels(d, tokens, err);
    if (!rc && d->kind == FGI_LEARN_CHOICES) rc = check_choices(d, tokens, err);
    if (!rc && d->kind == FGI_LEARN_SETS) rc = check_sets(d, err);
    if (!rc) rc = check_edges(d, err);
    return rc;
}

/* Elimination order of one example's edge list by repeated removal of leaves; returns 0 if the graph has a cycle.
 * degree, head and link are scratch: head[t] and then link[..] list the ends of edges at token t, where 2 e and 2 e + 1
 * are the first and the second end of edge e, and -1 is the end of the list. */
static int order_forest(const fgi_learn_data *d, int64_t i, fgi_forest_node *out, int32_t *degree, int32_t *head,
    int32_t *link, uint8_t *used) {
    int64_t n = d->token_begin[i + 1] - d->token_begin[i], b = d->edge_begin[i], m = d->edge_begin[i + 1] - b;
    if (m >= n) return 0;
    for (int64_t t = 0; t < n; t++) {
        degree[t] = 0;
        head[t] = -1;
    }
    for (int64_t e = 0; e < m; e++) {
        int32_t u = d->edge_u[b + e], v = d->edge_v[b + e];
        used[e] = 0;
        degree[u]++, degree[v]++;
        link[2 * e] = head[u], head[u] = (int32_t)(2 * e);
        link[2 * e + 1] = head[v], head[v] = (int32_t)(2 * e + 1);
    }
    int64_t done = 0; /* out[0 .. done) is final; out[done .. filled) is the queue of leaves */
    int64_t filled = 0;
    for (int32_t t = 0; t < n; t++)
        if (degree[t] <= 1) out[filled++].token = t;
    for (; done < filled; done++) {
        int32_t t = out[done].token, side = head[t];
        while (side >= 0 && used[side / 2]) side = link[side];
        out[done] = (fgi_forest_node){t, -1, -1, 0};
        if (side < 0) continue;
        int32_t e = side / 2, p = side % 2 ? d->edge_u[b + e] : d->edge_v[b + e];
        used[e] = 1;
        out[done] = (fgi_forest_node){t, p, e, side % 2};
        degree[t]--;
        if (--degree[p] == 1) out[filled++].token = p;
        /* a pair of tokens joined by one edge: both are queued, the second finds its edge used and becomes the root */
    }
    return done == n;
}

fgi_rc fgi_learn_build_forests(const fgi_learn_data *d, fgi_forest_node **out, int *are_forests) {
    int64_t tokens = d->token_begin[d->n_examples], most_edges = 1, most_tokens = 1;
    for (int64_t i = 0; i < d->n_examples; i++) {
        int64_t m = d->edge_begin[i + 1] - d->edge_begin[i], n = d->token_begin[i + 1] - d->token_begin[i];
        if (m > most_edges) most_edges = m;
        if (n > most_tokens) most_tokens = n;
    }
    fgi_arena arena = {0};
    int32_t *degree = fgi_take(&arena, most_tokens, int32_t), *head = fgi_take(&arena, most_tokens, int32_t);
    int32_t *link = fgi_take(&arena, 2 * most_edges, int32_t);
    uint8_t *used = fgi_take(&arena, most_edges, uint8_t);
    *out = fgi_calloc(tokens, sizeof **out);
    const fgi_rc rc = *out && !arena.failed ? FGI_OK : FGI_NO_MEMORY;
    for (int64_t i = 0; !rc && i < d->n_examples && *are_forests; i++)
        *are_forests = order_forest(d, i, *out + d->token_begin[i], degree, head, link, used);
    fgi_arena_free(&arena);
    return rc;
}

static int measure(fgi_learner *L) {
    const fgi_learn_data *d = &L->data;
    int64_t k = d->n_labels, pair;
    for (int64_t i = 0; i < d->n_examples; i++) {
        int64_t b = d->token_begin[i], e = d->token_begin[i + 1];
        int64_t rows = d->kind == FGI_LEARN_CHOICES ? d->choice_begin[e] - d->choice_begin[b] : e - b;
        if (e - b > L->max_tokens) L->max_tokens = e - b;
        if (rows > L->max_rows) L->max_rows = rows;
    }
    if (d->kind == FGI_LEARN_CHOICES) {
        L->unary = L->dimension = d->n_features;
        return 1;
    }
    if (!fgi_mul(d->n_features, k, &L->unary) || !fgi_mul(k, k, &pair)) return 0;
    int64_t tables = d->edges == FGI_EDGES_NONE ? 0 : d->kind == FGI_LEARN_SETS ? 1 : d->n_edge_features;
    if (!fgi_mul(pair, tables, &pair) || pair > INT64_MAX - L->unary) return 0;
    L->dimension = L->unary + pair;
    return 1;
}

static fgi_rc make_room(fgi_learner *L) {
    const fgi_learn_data *d = &L->data;
    const int64_t n = d->n_examples, k = d->n_labels ? d->n_labels : 1;
    const int64_t size = d->sparse ? L->dimension - L->unary : L->dimension;
    L->w = fgi_take_zero(&L->arena, size, double);
    L->sum = fgi_take_zero(&L->arena, size, double);
    L->dense = fgi_take_zero(&L->arena, d->sparse ? 1 : size, double); /* sparse: a hash table instead */
    L->sets = fgi_take_zero(&L->arena, n, fgi_working_set);
    L->gaps = fgi_take(&L->arena, n, double);
    L->dual_loss = fgi_take_zero(&L->arena, n, double);
    L->label_sum = fgi_take_zero(&L->arena, k, double);
    L->label_list = fgi_take(&L->arena, 2 * k + 4, int32_t);
    L->scratch = fgi_take_zero(&L->arena, L->threads, fgi_learn_scratch);
    if (fgi_learn_prunes(d)) L->row_bound = fgi_take_zero(&L->arena, d->n_labels, double);
    if (d->sparse) L->rows = fgi_rows_create(d->n_features, d->n_labels);
    if (L->arena.failed || (d->sparse && !L->rows)) return FGI_NO_MEMORY;
    for (int64_t i = 0; i < n; i++) L->gaps[i] = INFINITY;
    return FGI_OK;
}

fgi_rc fgi_learn_create(const fgi_learn_data *data, int32_t threads, fgi_learner **out, fgi_error *err) {
    *out = NULL;
    if (threads < 1) return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "threads must be at least 1");
    fgi_rc rc = fgi_learn_check_data(data, err);
    if (rc) return rc;
    fgi_learner *L = fgi_calloc(1, sizeof *L);
    if (!L) return fgi_no_memory(err);
    L->data = *data;
    L->threads = threads;
    L->decodes = !(data->kind == FGI_LEARN_SETS && data->edges != FGI_EDGES_NONE);
    rc = measure(L) ? make_room(L) : FGI_NO_MEMORY;
    if (!rc && data->kind == FGI_LEARN_LABELS && data->edges == FGI_EDGES_LIST)
        rc = fgi_learn_build_forests(data, &L->forest, &L->decodes);
    for (int k = 0; !rc && k < threads; k++) rc = fgi_learn_scratch_init(L, &L->scratch[k]);
    if (!rc && threads > 1 && !(L->pool = fgi_pool_create(threads))) rc = FGI_NO_MEMORY;
    if (rc) {
        fgi_learn_free(L);
        return fgi_no_memory(err);
    }
    L->state.gap_estimate = INFINITY;
    *out = L;
    return FGI_OK;
}

void fgi_learn_free(fgi_learner *L) {
    if (!L) return;
    fgi_pool_free(L->pool);
    for (int k = 0; L->scratch && k < L->threads; k++) fgi_learn_scratch_clear(&L->scratch[k]);
    for (int64_t i = 0; L->sets && i < L->data.n_examples; i++) {
        for (int32_t k = 0; k < L->sets[i].count; k++) free(L->sets[i].answers[k]);
        free(L->sets[i].answers);
    }
    fgi_rows_free(L->rows);
    void *grown[] = {L->forest, L->proximal.center, L->slot, L->slot_of, L->place, L->index, L->compact,
        L->batch_labels, L->batch_end};
    for (size_t k = 0; k < sizeof grown / sizeof *grown; k++) free(grown[k]);
    fgi_arena_free(&L->arena);
    free(L);
}

int64_t fgi_learn_dimension(const fgi_learner *L) { return L->dimension; }
int fgi_learn_decodes(const fgi_learner *L) { return L->decodes; }
double *fgi_learn_weights(fgi_learner *L) { return L->w; }
double *fgi_learn_averages(fgi_learner *L) { return L->sum; }
const double *fgi_learn_gaps(const fgi_learner *L) { return L->gaps; }

void fgi_learn_get_state(const fgi_learner *L, fgi_learn_state *state) {
    *state = L->state;
    for (int k = 0; k < L->threads; k++) state->entries_touched += L->scratch[k].touched;
    state->working_set = 0;
    for (int64_t i = 0; i < L->data.n_examples; i++) state->working_set += L->sets[i].count;
}

void fgi_learn_set_state(fgi_learner *L, const fgi_learn_state *state) {
    L->state = *state;
    L->tracked = 0;
    for (int k = 0; k < L->threads; k++) L->scratch[k].touched = 0;
}

int64_t fgi_learn_count(fgi_learner *L, int64_t calls) { return L->state.oracle_calls += calls; }

void fgi_learn_refresh(fgi_learner *L, double C) {
    fgi_sum norm = {0}, loss = {0}, square = {0}, gap = {0};
    L->tracked = 0; /* bounds only grow while they are tracked: take them anew */
    for (int64_t f = 0; L->rows && f < L->rows->n; f++)
        for (int64_t k = L->rows->begin[f]; k < L->rows->end[f]; k++)
            if (L->rows->w[k] != 0) fgi_sum_add(&norm, L->rows->w[k] * L->rows->w[k]);
    for (int64_t k = 0, n = L->rows ? L->dimension - L->unary : L->dimension; k < n; k++)
        if (L->w[k] != 0) fgi_sum_add(&norm, L->w[k] * L->w[k]);
    for (int64_t i = 0; i < L->data.n_examples; i++) {
        double part = 0, total = 0;
        for (int32_t k = 0; k < L->sets[i].count; k++) {
            part += L->sets[i].answers[k]->alpha * L->sets[i].answers[k]->loss;
            total += L->sets[i].answers[k]->alpha;
        }
        L->dual_loss[i] = C * part;
        fgi_sum_add(&loss, C * part);
        fgi_sum_add(&square, total * total);
        if (L->gaps[i] == INFINITY) gap.forbidden = 1;
        else fgi_sum_add(&gap, L->gaps[i]);
    }
    L->state.squared_norm = fgi_sum_value(&norm);
    L->state.dual_loss = fgi_sum_value(&loss);
    L->state.dual_square = fgi_sum_value(&square);
    L->state.gap_estimate = gap.forbidden ? INFINITY : fgi_sum_value(&gap);
}
