/* learn/gdmm/support.c - memory of gdmm for learning: supports, active states, life, checkpoints. */
#include <string.h>
#include "learn/gdmm/gdmm.h"

int32_t fgi_support_find(const fgi_support *t, int32_t label) {
    int32_t lo = 0, hi = t->n;
    while (lo < hi) {
        int32_t mid = (lo + hi) / 2;
        if (t->label[mid] < label) lo = mid + 1;
        else hi = mid;
    }
    return lo < t->n && t->label[lo] == label ? lo : -1;
}

static int reserve_support(fgi_learn_gdmm *g, fgi_support *t, int32_t n) {
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
    int32_t at = 0, rows = 1 + 2 * t->degree;
    while (at < t->n && t->label[at] < label) at++;
    if (at < t->n && t->label[at] == label) return at;
    if (!reserve_support(g, t, t->n + 1)) return -1;
    size_t tail = (size_t)(t->n - at);
    memmove(t->label + at + 1, t->label + at, tail * sizeof *t->label);
    t->label[at] = label;
    for (int32_t r = 0; r < rows; r++) {
        double *row = fgi_support_row(t, r);
        memmove(row + at + 1, row + at, tail * sizeof *row);
        row[at] = 0.0;
    }
    t->n++;
    return at;
}

int fgi_edge_reserve(fgi_learn_gdmm *g, fgi_edge_block *e, int32_t n) {
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

int64_t fgi_learn_gdmm_edge_begin(const fgi_learn_gdmm *g, int32_t i) {
    const fgi_learn_data *d = &g->L->data;
    return d->edges == FGI_EDGES_NONE ? 0 : d->edges == FGI_EDGES_CHAIN ? d->token_begin[i] - i : d->edge_begin[i];
}

/* ---- life ----------------------------------------------------------------------------------------------------- */

static void place_edges(fgi_learn_gdmm *g) {
    const fgi_learn_data *d = &g->L->data;
    for (int32_t i = 0; i < d->n_examples && g->n_edges; i++) {
        fgi_support *tokens = g->tokens + d->token_begin[i];
        for (int64_t e = fgi_learn_gdmm_edge_begin(g, i), first = e; e < fgi_learn_gdmm_edge_begin(g, i + 1); e++) {
            fgi_edge_block *b = &g->edges[e];
            b->u = d->edges == FGI_EDGES_CHAIN ? (int32_t)(e - first) : d->edge_u[e];
            b->v = d->edges == FGI_EDGES_CHAIN ? b->u + 1 : d->edge_v[e];
            b->ku = tokens[b->u].degree++;
            b->kv = tokens[b->v].degree++;
        }
    }
}

static fgi_rc fill(fgi_learn_gdmm *g) {
    const fgi_learn_data *d = &g->L->data;
    int64_t k = d->n_labels, n_tables = g->n_tables = g->n_edges ? d->n_edge_features : 0;
    g->tokens = fgi_calloc(g->n_tokens, sizeof *g->tokens);
    g->edges = fgi_calloc(g->n_edges, sizeof *g->edges);
    g->row_norm = fgi_calloc(g->n_tokens, sizeof(double));
    g->loss = fgi_calloc(d->n_examples, sizeof(double));
    g->tables = fgi_calloc(n_tables, sizeof *g->tables);
    g->scores = fgi_alloc(k, sizeof(double));
    g->workers = fgi_calloc(g->n_workers, sizeof *g->workers);
    for (int t = 0; g->workers && t < g->n_workers; t++) {
        g->workers[t] = (fgi_learn_gdmm_worker){fgi_oracle_scratch_create(t == 0 ? (int32_t)k : 1, 2),
            fgi_alloc(k, sizeof(int32_t)), fgi_alloc(k, sizeof(double))};
        if (!g->workers[t].oracle || !g->workers[t].label || !g->workers[t].value) return FGI_NO_MEMORY;
    }
    for (int side = 0; side < 2; side++) {
        g->message_label[side] = fgi_alloc(k, sizeof(int32_t));
        g->message_value[side] = fgi_alloc(k, sizeof(double));
        if (!g->message_label[side] || !g->message_value[side]) return FGI_NO_MEMORY;
    }
    if ((g->s.batch > 1 || g->s.search) && !g->s.away && !(g->proposal = fgi_alloc(g->n_tokens, sizeof *g->proposal)))
        return FGI_NO_MEMORY;
    if (g->s.search && fgi_unigram_index_create(g, &g->index)) return FGI_NO_MEMORY;
    if (!g->tokens || !g->edges || !g->row_norm || !g->loss || !g->tables || !g->scores || !g->workers)
        return FGI_NO_MEMORY;
    if (fgi_products_create_dense((int32_t)k, d->n_features, g->L->w, FGI_ROWS_BY_FEATURE, &g->unigrams, NULL) !=
        FGI_OK)
        return FGI_NO_MEMORY;
    if (d->edge_row && !d->choice_begin && !(g->table = fgi_alloc(k * k, sizeof(double)))) return FGI_NO_MEMORY;
    for (int64_t t = 0; !g->s.brute_force && !d->choice_begin && t < n_tables; t++) {
        fgi_rc rc = fgi_updatable_create((int32_t)k, (int32_t)k, FGI_BY_SIZE, NULL, &g->tables[t], NULL);
        if (rc) return rc;
    }
    place_edges(g);
    for (int64_t t = 0; t < g->n_tokens; t++) {
        for (int64_t j = d->row_begin[t]; j < d->row_begin[t + 1]; j++)
            g->row_norm[t] += d->value ? d->value[j] * d->value[j] : 1.0;
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
    g->rho = (s->rho > 0 ? s->rho * s->C : 1.0) / g->C; /* of C rho: the shares of the blocks are its scale */
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
    for (int side = 0; side < 2; side++) free(g->message_label[side]), free(g->message_value[side]);
    fgi_learn_gdmm_drop_guest(g);
    fgi_away_free(g);
    for (int t = 0; g->workers && t < g->n_workers; t++) {
        fgi_oracle_scratch_free(g->workers[t].oracle);
        free(g->workers[t].label), free(g->workers[t].value);
    }
    free(g->workers);
    fgi_products_free(g->unigrams);
    fgi_unigram_index_free(g->index);
    free(g->tokens), free(g->edges), free(g->row_norm), free(g->loss), free(g->tables), free(g->scores);
    free(g->proposal), free(g->mass), free(g->gain), free(g->table);
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

/* ---- checkpoints ------------------------------------------------------------------------------------------------ */

void fgi_learn_gdmm_export_size(const fgi_learn_gdmm *g, int64_t *sizes) {
    sizes[0] = sizes[1] = sizes[2] = 0;
    for (int64_t t = 0; t < g->n_tokens; t++) {
        sizes[0] += g->tokens[t].n;
        sizes[1] += (int64_t)g->tokens[t].n * (1 + 2 * g->tokens[t].degree);
    }
    for (int64_t e = 0; e < g->n_edges; e++) sizes[2] += g->edges[e].n;
    sizes[3] = g->L->data.n_examples;
}

void fgi_learn_gdmm_export(const fgi_learn_gdmm *g, int32_t *support_size, int32_t *labels, double *values,
    int32_t *state_size, int32_t *states, double *betas, double *losses, uint64_t *rng) {
    for (int64_t j = 0; j < g->n_tokens; j++) {
        const fgi_support *t = &g->tokens[j];
        *support_size++ = t->n;
        memcpy(labels, t->label, (size_t)t->n * sizeof *labels);
        labels += t->n;
        for (int32_t r = 0; r < 1 + 2 * t->degree; r++, values += t->n)
            memcpy(values, fgi_support_row(t, r), (size_t)t->n * sizeof *values);
    }
    for (int64_t k = 0; k < g->n_edges; k++) {
        const fgi_edge_block *e = &g->edges[k];
        *state_size++ = e->n;
        if (e->n)
            memcpy(states, e->state, (size_t)e->n * 2 * sizeof *states),
                memcpy(betas, e->beta, (size_t)e->n * sizeof *betas);
        states += 2 * e->n;
        betas += e->n;
    }
    memcpy(losses, g->loss, (size_t)g->L->data.n_examples * sizeof *losses);
    *rng = g->rng.state;
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
                fgi_rc rc = fgi_updatable_set(g->tables[f], 1, &a, &b, &x, NULL);
                if (rc) return rc;
            }
    }
    return FGI_OK;
}

fgi_rc fgi_learn_gdmm_import(fgi_learn_gdmm *g, const int32_t *support_size, const int32_t *labels,
    const double *values, const int32_t *state_size, const int32_t *states, const double *betas, const double *losses,
    uint64_t rng, const int64_t *work, fgi_error *err) {
    const int32_t k = g->L->data.n_labels;
    for (int64_t j = 0; j < g->n_tokens; j++) {
        fgi_support *t = &g->tokens[j];
        for (int32_t at = 0; at < support_size[j]; at++)
            if (labels[at] < 0 || labels[at] >= k || (at && labels[at] <= labels[at - 1]))
                return fgi_fail(err, FGI_BAD_ARGUMENT, j, "the checkpoint does not fit the data");
        if (support_size[j] < 1 || !reserve_support(g, t, support_size[j])) return fgi_no_memory(err);
        t->n = support_size[j];
        memcpy(t->label, labels, (size_t)t->n * sizeof *labels);
        labels += t->n;
        for (int32_t r = 0; r < 1 + 2 * t->degree; r++, values += t->n)
            memcpy(fgi_support_row(t, r), values, (size_t)t->n * sizeof *values);
        if (fgi_support_find(t, g->L->data.truth[j]) < 0)
            return fgi_fail(err, FGI_BAD_ARGUMENT, j, "the checkpoint does not fit the data");
    }
    for (int64_t j = 0; j < g->n_edges; j++) {
        fgi_edge_block *e = &g->edges[j];
        if (!fgi_edge_reserve(g, e, state_size[j])) return fgi_no_memory(err);
        e->n = state_size[j];
        for (int32_t s = 0; s < 2 * e->n; s++)
            if (states[s] < 0 || states[s] >= k)
                return fgi_fail(err, FGI_BAD_ARGUMENT, j, "the checkpoint does not fit the data");
        if (e->n)
            memcpy(e->state, states, (size_t)e->n * 2 * sizeof *states),
                memcpy(e->beta, betas, (size_t)e->n * sizeof *betas);
        states += 2 * e->n;
        betas += e->n;
    }
    memcpy(g->loss, losses, (size_t)g->L->data.n_examples * sizeof *losses);
    g->rng.state = rng;
    if (g->index) fgi_unigram_index_forget(g->index);
    g->unary_calls = work[0], g->pair_calls = work[1], g->unary_touched = work[2], g->pair_touched = work[3];
    g->unary_products = work[4];
    return fgi_learn_gdmm_fill_tables(g) ? fgi_no_memory(err) : FGI_OK;
}

/* Vertices of Algorithm 2: how many each block has, then their weights, then their labels. */
int64_t fgi_learn_gdmm_away_size(const fgi_learn_gdmm *g, int64_t block, int64_t *width) {
    *width = fgi_away_width(g, block);
    return g->away[block].n;
}

void fgi_learn_gdmm_export_away(const fgi_learn_gdmm *g, double *weights, int32_t *vertices) {
    for (int64_t block = 0; block < g->n_away; block++) {
        const fgi_away *a = &g->away[block];
        const int64_t width = fgi_away_width(g, block);
        memcpy(weights, a->weight, (size_t)a->n * sizeof *weights);
        weights += a->n;
        for (int32_t v = 0; v < a->n; v++, vertices += width)
            memcpy(vertices, a->vertex[v], (size_t)width * sizeof *vertices);
    }
}

static fgi_rc copy_vertex(
    const fgi_learn_gdmm *g, int64_t block, const int32_t *labels, int32_t **copy, fgi_error *err) {
    const int64_t width = fgi_away_width(g, block);
    for (int64_t at = 0; at < width; at++)
        if (labels[at] < 0 || labels[at] >= g->L->data.n_labels)
            return fgi_fail(err, FGI_BAD_ARGUMENT, block, "the checkpoint does not fit the data");
    if (!(*copy = fgi_alloc(width, sizeof **copy))) return fgi_no_memory(err);
    memcpy(*copy, labels, (size_t)width * sizeof **copy);
    return FGI_OK;
}

fgi_rc fgi_learn_gdmm_import_away(
    fgi_learn_gdmm *g, const int32_t *counts, const double *weights, const int32_t *vertices, fgi_error *err) {
    for (int64_t block = 0; block < g->n_away; block++) {
        if (counts[block] < 1) return fgi_fail(err, FGI_BAD_ARGUMENT, block, "the checkpoint does not fit the data");
        fgi_away_clear(g, block);
        for (int32_t v = 0; v < counts[block]; v++, vertices += fgi_away_width(g, block)) {
            int32_t *labels;
            fgi_rc rc = copy_vertex(g, block, vertices, &labels, err);
            if (rc) return rc;
            if (!fgi_away_add(g, block, labels)) {
                free(labels);
                return fgi_no_memory(err);
            }
        }
        memcpy(g->away[block].weight, weights, (size_t)counts[block] * sizeof *weights);
        weights += counts[block];
    }
    return FGI_OK;
}

int64_t fgi_learn_gdmm_step_size(const fgi_learn_gdmm *g, int64_t *width) {
    const int idle = g->step.phase == FGI_AWAY_IDLE;
    *width = idle ? 0 : fgi_away_width(g, g->step.block);
    return idle ? 0 : g->away[g->step.block].n + 1;
}

void fgi_learn_gdmm_export_step(
    const fgi_learn_gdmm *g, int64_t *place, double *values, double *slopes, int32_t *greedy) {
    const fgi_away_step *s = &g->step;
    int64_t width;
    const int64_t n = fgi_learn_gdmm_step_size(g, &width);
    const double kept[5] = {s->sign, s->descent, s->most, s->sum, s->size};
    place[0] = s->phase, place[1] = s->block, place[2] = s->at, place[3] = s->chosen;
    for (int k = 0; k < 5; k++) values[k] = n ? kept[k] : 0.0;
    for (int64_t v = 0; v < n; v++) slopes[v] = s->phase == FGI_AWAY_SLOPES ? s->slope[v] : 0.0;
    for (int64_t at = 0; at < width; at++)
        greedy[at] = s->greedy ? s->greedy[at] : 0; /* after COMMIT it may have been taken over */
}

fgi_rc fgi_learn_gdmm_import_step(fgi_learn_gdmm *g, const int64_t *place, const double *values, const double *slopes,
    const int32_t *greedy, fgi_error *err) {
    fgi_away_step *s = &g->step;
    if (place[0] == FGI_AWAY_IDLE) return FGI_OK;
    if (place[0] < 0 || place[0] > FGI_AWAY_MULTIPLIERS || place[1] < 0 || place[1] >= g->n_away || place[2] < 0 ||
        place[2] > fgi_away_factors(g, place[1]) || place[3] < 0 || place[3] > g->away[place[1]].n)
        return fgi_fail(err, FGI_BAD_ARGUMENT, place[1], "the checkpoint does not fit the data");
    const int64_t n = g->away[place[1]].n + 1;
    int32_t *labels;
    fgi_rc rc = copy_vertex(g, place[1], greedy, &labels, err);
    if (rc) return rc;
    free(s->greedy);
    s->greedy = labels;
    if (!fgi_resize(&s->slope, n, sizeof *s->slope)) return fgi_no_memory(err);
    memcpy(s->slope, slopes, (size_t)n * sizeof *slopes);
    s->phase = (int32_t)place[0], s->block = place[1], s->at = place[2], s->chosen = (int32_t)place[3];
    s->sign = values[0], s->descent = values[1], s->most = values[2], s->sum = values[3], s->size = values[4];
    rc = fgi_away_gather(g);
    return rc ? fgi_fail(err, rc, -1, "out of memory") : FGI_OK;
}
