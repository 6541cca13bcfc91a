/* learn/gdmm/support.c - memory of gdmm for learning: supports, active states, life. */
#include <string.h>
#include "learn/gdmm/gdmm.h"

int32_t fgi_support_find(const fgi_support *t, int32_t label) { return (int32_t)fgi_place_of(t->label, t->n, label); }

int fgi_support_reserve(fgi_learn_gdmm *g, fgi_support *t, int32_t n) {
    fgi_assert(n >= 0 && t->n <= t->capacity);
    if (n <= t->capacity) return 1;
    int32_t capacity = t->capacity < 2 ? 4 : 2 * t->capacity, rows = 1 + 2 * t->degree;
    if (capacity < n) capacity = n;
    int32_t *label = fgi_alloc(capacity, sizeof *label);
    double *value = fgi_calloc((int64_t)capacity * rows, sizeof *value);
    if (!label || !value) {
        free(label), free(value);
        return 0;
    }
    for (int32_t r = 0; r < rows && t->n; r++)
        memcpy(value + (int64_t)r * capacity, fgi_support_row(t, r), (size_t)t->n * sizeof *value);
    if (t->n) memcpy(label, t->label, (size_t)t->n * sizeof *label);
    g->bytes += (int64_t)(capacity - t->capacity) * (int64_t)(sizeof *label + (size_t)rows * sizeof *value);
    free(t->label), free(t->value);
    t->label = label;
    t->value = value;
    t->capacity = capacity;
    return 1;
}

int32_t fgi_support_insert(fgi_learn_gdmm *g, fgi_support *t, int32_t label) {
    fgi_assert(label >= 0 && label < g->L->data.n_labels);
    const int32_t at = (int32_t)fgi_lower_bound(t->label, 0, t->n, label), rows = 1 + 2 * t->degree;
    if (at < t->n && t->label[at] == label) return at;
    if (!fgi_support_reserve(g, t, t->n + 1)) return -1;
    size_t tail = (size_t)(t->n - at);
    memmove(t->label + at + 1, t->label + at, tail * sizeof *t->label);
    t->label[at] = label;
    for (int32_t r = 0; r < rows; r++) {
        double *row = fgi_support_row(t, r);
        memmove(row + at + 1, row + at, tail * sizeof *row);
        row[at] = 0.0;
    }
    t->n++;
    fgi_assert(at == 0 || t->label[at - 1] < label);
    fgi_assert(at + 1 == t->n || t->label[at + 1] > label);
    return at;
}

int fgi_edge_reserve(fgi_learn_gdmm *g, fgi_edge_block *e, int32_t n) {
    fgi_assert(n >= 0 && e->n <= e->capacity);
    if (n <= e->capacity) return 1;
    int32_t capacity = e->capacity < 2 ? 2 : 2 * e->capacity;
    if (capacity < n) capacity = n;
    if (!fgi_resize(&e->state, 2 * (int64_t)capacity, sizeof *e->state) ||
        !fgi_resize(&e->beta, capacity, sizeof *e->beta))
        return 0;
    g->bytes += (int64_t)(capacity - e->capacity) * (int64_t)(2 * sizeof *e->state + sizeof *e->beta);
    e->capacity = capacity;
    return 1;
}

int fgi_learn_gdmm_reserve(fgi_learn_gdmm *g, int32_t n) {
    if (n <= g->mass_capacity) return 1;
    int32_t capacity = 2 * n + 16;
    if (!fgi_resize(&g->mass, capacity, sizeof *g->mass) || !fgi_resize(&g->gain, capacity, sizeof *g->gain)) return 0;
    g->mass_capacity = capacity;
    return 1;
}

/* ---- life ----------------------------------------------------------------------------------------------------- */

static void place_edges(fgi_learn_gdmm *g) {
    const fgi_learn_data *d = &g->L->data;
    int64_t first, u, v;
    for (int32_t i = 0; i < d->n_examples && g->n_edges; i++) {
        fgi_support *tokens = g->tokens + d->token_begin[i];
        for (int64_t e = 0, edges = fgi_learn_count_edges(d, i, &first); e < edges; e++) {
            fgi_edge_block *b = &g->edges[first + e];
            fgi_learn_ends(d, first, e, &u, &v);
            b->u = (int32_t)u;
            b->v = (int32_t)v;
            b->ku = tokens[u].degree++;
            b->kv = tokens[v].degree++;
        }
    }
}

static int take_room(fgi_learn_gdmm *g) {
    const int64_t k = g->L->data.n_labels;
    g->tokens = fgi_take_zero(&g->arena, g->n_tokens, fgi_support);
    g->edges = fgi_take_zero(&g->arena, g->n_edges, fgi_edge_block);
    g->row_norm = fgi_take(&g->arena, g->n_tokens, double);
    g->loss = fgi_take_zero(&g->arena, g->L->data.n_examples, double);
    g->tables = fgi_take_zero(&g->arena, g->n_tables, fgi_updatable *);
    g->scores = fgi_take(&g->arena, k, double);
    for (int side = 0; side < 2; side++) {
        g->message_label[side] = fgi_take(&g->arena, k, int32_t);
        g->message_value[side] = fgi_take(&g->arena, k, double);
    }
    if ((g->s.batch > 1 || g->s.search) && !g->s.away) g->proposal = fgi_take(&g->arena, g->n_tokens, int32_t);
    g->workers = fgi_take_zero(&g->arena, g->n_workers, fgi_learn_gdmm_worker);
    for (int t = 0; g->workers && t < g->n_workers; t++) {
        g->workers[t].label = fgi_take(&g->arena, k, int32_t);
        g->workers[t].value = fgi_take(&g->arena, k, double);
    }
    return !g->arena.failed;
}

/* The sources that are asked, and what asking takes. */
static fgi_rc make_sources(fgi_learn_gdmm *g) {
    const fgi_learn_data *d = &g->L->data;
    const int32_t k = d->n_labels;
    for (int t = 0; t < g->n_workers; t++)
        if (!(g->workers[t].oracle = fgi_oracle_scratch_create(t == 0 ? k : 1, 2))) return FGI_NO_MEMORY;
    if (g->s.search && fgi_unigram_index_create(g, &g->index)) return FGI_NO_MEMORY;
    if (fgi_products_create_dense(k, d->n_features, g->L->w, FGI_ROWS_BY_FEATURE, &g->unigrams, NULL))
        return FGI_NO_MEMORY;
    if (d->choice_begin) return FGI_OK;
    if (d->edge_row && !(g->table = fgi_alloc((int64_t)k * k, sizeof(double)))) return FGI_NO_MEMORY;
    fgi_rc rc = FGI_OK;
    for (int64_t t = 0; !rc && !g->s.brute_force && t < g->n_tables; t++)
        rc = fgi_updatable_create(k, k, FGI_BY_SIZE, NULL, &g->tables[t], NULL);
    return rc;
}

static fgi_rc fill(fgi_learn_gdmm *g) {
    const fgi_learn_data *d = &g->L->data;
    g->n_tables = g->n_edges ? d->n_edge_features : 0;
    if (!take_room(g)) return FGI_NO_MEMORY;
    const fgi_rc rc = make_sources(g);
    if (rc) return rc;
    place_edges(g);
    for (int64_t t = 0; t < g->n_tokens; t++) {
        g->row_norm[t] = fgi_learn_square(d->value, d->row_begin[t], d->row_begin[t + 1]);
        if (fgi_support_insert(g, &g->tokens[t], d->truth[t]) < 0) return FGI_NO_MEMORY;
    }
    return g->s.away ? fgi_away_start(g) : FGI_OK;
}

fgi_rc fgi_learn_gdmm_create(fgi_learner *L, const fgi_learn_gdmm_settings *s, fgi_learn_gdmm **out, fgi_error *err) {
    *out = NULL;
    if (L->data.kind != FGI_LEARN_LABELS) return fgi_fail(err, FGI_UNSUPPORTED, -1, "gdmm takes tokens with labels");
    if (!(s->C > 0) || !(s->block_C >= 0) || !(s->rho >= 0) || !(s->eta >= 0) || s->partitions < 1 || s->away < 0 ||
        !isfinite(s->C) || !isfinite(s->rho) || !isfinite(s->eta))
        return fgi_fail(
            err, FGI_BAD_ARGUMENT, -1, "C must be positive, rho, eta and away not negative, partitions at least 1");
    if (s->search && (s->partitions > 1 || s->away || L->data.choice_begin || L->data.cost || L->data.n_features < 1))
        return fgi_fail(err, FGI_BAD_ARGUMENT, -1,
            "a search index goes with all labels and features: no partitions, candidates, costs or away steps");
    if (s->probes < 0) return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "probes must not be negative");
    fgi_learn_gdmm *g = fgi_calloc(1, sizeof *g);
    if (!g) return fgi_no_memory(err);
    g->L = L;
    g->s = *s;
    g->rng.state = s->seed;
    g->n_workers = L->threads;
    g->n_tokens = L->data.token_begin[L->data.n_examples];
    g->n_edges = fgi_learn_gdmm_edge_begin(g, (int32_t)L->data.n_examples);
    fgi_rc rc = fgi_proximal_start(L, s->C, s->eta > 0 ? s->block_C : s->C, &g->C);
    g->easy_C = g->C;
    /* s.rho scales C rho, because shares of the blocks are in units of C. */
    g->rho = (s->rho > 0 ? s->rho * s->C : 1.0) / g->C;
    if (!rc) rc = fill(g);
    if (rc) {
        fgi_learn_gdmm_free(g);
        return fgi_fail(err, rc, -1, "out of memory");
    }
    *out = g;
    return FGI_OK;
}

void fgi_learn_gdmm_free(fgi_learn_gdmm *g) {
    if (!g) return;
    for (int64_t t = 0; g->tokens && t < g->n_tokens; t++) free(g->tokens[t].label), free(g->tokens[t].value);
    for (int64_t e = 0; g->edges && e < g->n_edges; e++) free(g->edges[e].state), free(g->edges[e].beta);
    for (int64_t k = 0; g->tables && k < g->n_tables; k++) fgi_updatable_free(g->tables[k]);
    fgi_learn_gdmm_drop_guest(g);
    fgi_away_free(g);
    for (int t = 0; g->workers && t < g->n_workers; t++) fgi_oracle_scratch_free(g->workers[t].oracle);
    fgi_products_free(g->unigrams);
    fgi_unigram_index_free(g->index);
    free(g->mass);
    free(g->gain);
    free(g->table);
    fgi_arena_free(&g->arena);
    free(g);
}

void fgi_learn_gdmm_get_info(const fgi_learn_gdmm *g, fgi_learn_gdmm_info *info) {
    *info = (fgi_learn_gdmm_info){g->unary_calls, g->pair_calls, g->unary_touched, g->pair_touched, 0, 0, 0, 0, g->rho,
        g->bytes, g->unary_products};
    fgi_sum norm = {0}; /* made anew, so that a resumed run has the same bits */
    for (int64_t k = 0; k < g->L->dimension; k++)
        if (g->L->w[k] != 0.0) fgi_sum_add(&norm, g->L->w[k] * g->L->w[k]);
    info->squared_norm = fgi_sum_value(&norm);
    for (int64_t t = 0; t < g->n_tokens; t++) info->active_labels += g->tokens[t].n;
    for (int64_t e = 0; e < g->n_edges; e++) info->active_states += g->edges[e].n;
    for (int64_t i = 0; i < g->L->data.n_examples; i++) info->loss_estimate += g->loss[i];
    if (g->n_tokens) info->active_labels /= (double)g->n_tokens;
    if (g->n_edges) info->active_states /= (double)g->n_edges;
    for (int64_t k = 0; k < g->n_tables; k++)
        if (g->tables[k]) info->memory += fgi_updatable_memory(g->tables[k]);
    info->memory += g->n_tokens * (int64_t)sizeof(fgi_support) + g->n_edges * (int64_t)sizeof(fgi_edge_block);
}

fgi_rc fgi_learn_gdmm_set_entry(fgi_updatable *table, int32_t a, int32_t b, double x) {
    const fgi_rc rc = fgi_updatable_set(table, 1, &a, &b, &x, NULL);
    return rc == FGI_BAD_ARGUMENT ? FGI_UNSUPPORTED : rc; /* the place is right, so the number is none */
}

fgi_rc fgi_learn_gdmm_told(fgi_rc rc, fgi_error *err) {
    if (rc == FGI_OK || rc == FGI_NO_MEMORY) return rc ? fgi_no_memory(err) : rc;
    return fgi_fail(err, FGI_UNSUPPORTED, -1,
        "the weights are no longer finite numbers: the features, the loss or C are too large");
}

fgi_rc fgi_learn_gdmm_fill_tables(fgi_learn_gdmm *g) {
    const int32_t k = g->L->data.n_labels;
    for (int64_t f = 0; f < g->n_tables; f++) {
        if (!g->tables[f]) continue;
        const double *w = g->L->w + g->L->unary + f * k * k;
        for (int32_t a = 0; a < k; a++)
            for (int32_t b = 0; b < k; b++) {
                double x = w[(int64_t)a * k + b];
                if (x == fgi_updatable_get(g->tables[f], a, b)) continue;
                fgi_rc rc = fgi_learn_gdmm_set_entry(g->tables[f], a, b, x);
                if (rc) return rc;
            }
    }
    return FGI_OK;
}
