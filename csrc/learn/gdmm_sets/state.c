/* learn/gdmm_sets/state.c - memory of gdmm for label sets: the lists of the examples, life, checkpoints. */
#include <string.h>
#include "learn/gdmm_sets/gdmm_sets.h"

/* ---- lists --------------------------------------------------------------------------------------------- */

int fgi_sets_insert(fgi_learn_gdmm_sets *g, set_example *x, int32_t label, double X) {
    const int32_t at = (int32_t)fgi_lower_bound(x->label, 0, x->n, label);
    if (at < x->n && x->label[at] == label) return 1;
    if (x->n == x->capacity) {
        int32_t capacity = x->capacity ? 2 * x->capacity : 8;
        if (!fgi_resize(&x->label, capacity, sizeof *x->label) || !fgi_resize(&x->X, capacity, sizeof *x->X)) return 0;
        g->bytes += (int64_t)(capacity - x->capacity) * (int64_t)(sizeof *x->label + sizeof *x->X);
        x->capacity = capacity;
    }
    memmove(x->label + at + 1, x->label + at, (size_t)(x->n - at) * sizeof *x->label);
    memmove(x->X + at + 1, x->X + at, (size_t)(x->n - at) * sizeof *x->X);
    x->label[at] = label;
    x->X[at] = X;
    x->n++;
    return 1;
}

int fgi_sets_add_pair(fgi_learn_gdmm_sets *g, set_example *x, int32_t l, int32_t m, double Y) {
    if (x->n_pairs == x->pair_capacity) {
        int32_t capacity = x->pair_capacity ? 2 * x->pair_capacity : 4;
        if (!fgi_resize(&x->pairs, capacity, sizeof *x->pairs)) return 0;
        g->bytes += (int64_t)(capacity - x->pair_capacity) * (int64_t)sizeof *x->pairs;
        x->pair_capacity = capacity;
    }
    x->pairs[x->n_pairs++] = (set_pair){l, m, Y, 0, 0, 0};
    return 1;
}

/* ---- life --------------------------------------------------------------------------------------------- */

static int take_room(fgi_learn_gdmm_sets *g) {
    const int64_t n = g->L->data.n_labels, n_examples = g->n_examples;
    fgi_arena *a = &g->arena;
    g->examples = fgi_take_zero(a, n_examples, set_example);
    g->norm = fgi_take(a, n_examples, double);
    g->loss = fgi_take_zero(a, n_examples, double);
    g->scores = fgi_take(a, n, double);
    g->X = fgi_take_zero(a, n, double);
    g->top = fgi_take_zero(a, n, double);
    uint8_t **marks[] = {&g->listed, &g->truth, &g->partner, &g->alive};
    for (size_t k = 0; k < sizeof marks / sizeof *marks; k++) *marks[k] = fgi_take_zero(a, n, uint8_t);
    for (int side = 0; side < 2; side++) {
        g->message_label[side] = fgi_take(a, n, int32_t);
        g->message[side] = fgi_take(a, n, double);
    }
    g->without = fgi_take(a, n, int64_t);
    g->found = fgi_take(a, g->greedy, fgi_argmax);
    g->place = fgi_take(a, n, int32_t);
    g->incident_begin = fgi_take(a, n + 1, int32_t);
    if (g->L->data.cost) g->spurious = fgi_take(a, n, double);
    return !a->failed;
}

/* The truth with all its pairs: there w = 0. */
static int start_at_truth(fgi_learn_gdmm_sets *g, int32_t i) {
    const fgi_learn_data *d = &g->L->data;
    set_example *x = &g->examples[i];
    for (int64_t a = d->truth_begin[i]; a < d->truth_begin[i + 1]; a++) {
        if (!fgi_sets_insert(g, x, d->truth[a], g->C)) return 0;
        for (int64_t b = a + 1; d->edges != FGI_EDGES_NONE && b < d->truth_begin[i + 1]; b++)
            if (!fgi_sets_add_pair(g, x, d->truth[a], d->truth[b], g->C)) return 0;
    }
    return 1;
}

static fgi_rc fill(fgi_learn_gdmm_sets *g) {
    const fgi_learn_data *d = &g->L->data;
    const int32_t n = d->n_labels;
    g->n_examples = d->n_examples;
    if (!take_room(g) || !(g->oracle = fgi_oracle_scratch_create(n, 2))) return FGI_NO_MEMORY;
    for (int64_t l = 0; d->cost && l < n; l++) g->spurious[l] = d->cost[2 * l + 1];
    if (fgi_products_create_dense(n, d->n_features, g->L->w, FGI_ROWS_BY_FEATURE, &g->unigrams, NULL))
        return FGI_NO_MEMORY;
    if (d->edges != FGI_EDGES_NONE && !g->s.brute_force && g->s.sorted) { /* at any size */
        fgi_rc rc = fgi_updatable_create(n, n, FGI_BY_SEARCH, NULL, &g->table, NULL);
        if (rc) return rc;
    }
    for (int32_t i = 0; i < d->n_examples; i++) {
        g->norm[i] = fgi_learn_square(d->value, d->row_begin[i], d->row_begin[i + 1]);
        if (!start_at_truth(g, i)) return FGI_NO_MEMORY;
    }
    return FGI_OK;
}

fgi_rc fgi_learn_gdmm_sets_create(fgi_learner *L, const fgi_learn_gdmm_settings *settings, int32_t greedy,
    fgi_learn_gdmm_sets **out, fgi_error *err) {
    *out = NULL;
    if (L->data.kind != FGI_LEARN_SETS)
        return fgi_fail(err, FGI_UNSUPPORTED, -1, "this variant of gdmm takes label sets");
    if (!(settings->C > 0) || !(settings->block_C >= 0) || !(settings->rho >= 0) || !(settings->eta >= 0) ||
        greedy < 1 || settings->partitions < 1 || !isfinite(settings->C) || !isfinite(settings->rho) ||
        !isfinite(settings->eta))
        return fgi_fail(err, FGI_BAD_ARGUMENT, -1,
            "C must be positive, rho and eta not negative, greedy and partitions at least 1");
    fgi_learn_gdmm_sets *g = fgi_calloc(1, sizeof *g);
    if (!g) return fgi_no_memory(err);
    g->L = L;
    g->s = *settings;
    g->greedy = greedy;
    fgi_rc rc = fgi_proximal_start(L, settings->C, settings->eta > 0 ? settings->block_C : settings->C, &g->C);
    /* s.rho scales C rho, because shares of the blocks are in units of C. */
    g->rho = (settings->rho > 0 ? settings->rho * settings->C : 1.0) / g->C;
    if (!rc) rc = fill(g);
    if (rc) {
        fgi_learn_gdmm_sets_free(g);
        return fgi_fail(err, rc, -1, "out of memory");
    }
    *out = g;
    return FGI_OK;
}

void fgi_learn_gdmm_sets_free(fgi_learn_gdmm_sets *g) {
    if (!g) return;
    for (int64_t i = 0; g->examples && i < g->n_examples; i++)
        free(g->examples[i].label), free(g->examples[i].X), free(g->examples[i].pairs);
    fgi_sets_drop_view(g);
    fgi_updatable_free(g->table);
    fgi_oracle_scratch_free(g->oracle);
    fgi_products_free(g->unigrams);
    free(g->incident);
    fgi_arena_free(&g->arena);
    free(g);
}

void fgi_learn_gdmm_sets_get_info(const fgi_learn_gdmm_sets *g, fgi_learn_gdmm_info *info) {
    *info = (fgi_learn_gdmm_info){g->unary_calls, g->pair_calls, g->unary_touched, g->pair_touched, 0, 0, 0, 0, g->rho,
        g->bytes, g->unary_products};
    fgi_sum norm = {0};
    for (int64_t k = 0; k < g->L->dimension; k++) fgi_sum_add(&norm, g->L->w[k] * g->L->w[k]);
    info->squared_norm = fgi_sum_value(&norm);
    for (int32_t i = 0; i < g->L->data.n_examples; i++) {
        info->active_labels += g->examples[i].n;
        info->active_states += g->examples[i].n_pairs;
        info->loss_estimate += g->loss[i];
    }
    info->active_labels /= (double)g->L->data.n_examples;
    info->active_states /= (double)g->L->data.n_examples;
    if (g->table) info->memory += fgi_updatable_memory(g->table);
}

fgi_rc fgi_sets_fill_table(fgi_learn_gdmm_sets *g) {
    const int32_t n = g->L->data.n_labels;
    for (int32_t l = 0; g->table && l < n; l++)
        for (int32_t m = l + 1; m < n; m++) {
            const double *v = fgi_sets_weight(g, l, m);
            if (*v == fgi_updatable_get(g->table, l, m)) continue;
            fgi_rc rc = fgi_updatable_set(g->table, 1, &l, &m, v, NULL);
            if (rc) return rc;
        }
    return FGI_OK;
}

/* ---- checkpoints --------------------------------------------------------------------------------------------- */

void fgi_learn_gdmm_sets_export_size(const fgi_learn_gdmm_sets *g, int64_t *n_labels, int64_t *n_pairs) {
    *n_labels = *n_pairs = 0;
    for (int32_t i = 0; i < g->L->data.n_examples; i++)
        *n_labels += g->examples[i].n, *n_pairs += g->examples[i].n_pairs;
}

void fgi_learn_gdmm_sets_export(const fgi_learn_gdmm_sets *g, int32_t *sizes, int32_t *labels, double *X,
    int32_t *pair_labels, double *pair_values, double *losses) {
    for (int32_t i = 0; i < g->L->data.n_examples; i++) {
        const set_example *x = &g->examples[i];
        *sizes++ = x->n;
        *sizes++ = x->n_pairs;
        for (int32_t k = 0; k < x->n; k++) *labels++ = x->label[k], *X++ = x->X[k];
        for (int32_t k = 0; k < x->n_pairs; k++) {
            const set_pair *p = &x->pairs[k];
            *pair_labels++ = p->l, *pair_labels++ = p->m;
            *pair_values++ = p->Y, *pair_values++ = p->Pl, *pair_values++ = p->Pm, *pair_values++ = p->Q;
        }
    }
    memcpy(losses, g->loss, (size_t)g->L->data.n_examples * sizeof *losses);
}

fgi_rc fgi_learn_gdmm_sets_import(fgi_learn_gdmm_sets *g, const int32_t *sizes, const int32_t *labels, const double *X,
    const int32_t *pair_labels, const double *pair_values, const double *losses, const int64_t *work, fgi_error *err) {
    const int32_t n = g->L->data.n_labels;
    for (int32_t i = 0; i < g->L->data.n_examples; i++, sizes += 2) {
        set_example *x = &g->examples[i];
        x->n = x->n_pairs = 0;
        for (int32_t k = 0; k < sizes[0]; k++, labels++, X++)
            if (*labels < 0 || *labels >= n)
                return fgi_fail(err, FGI_BAD_ARGUMENT, i, "the checkpoint does not fit the data");
            else if (!fgi_sets_insert(g, x, *labels, *X)) return fgi_no_memory(err);
        for (int32_t k = 0; k < sizes[1]; k++, pair_labels += 2, pair_values += 4) {
            if (pair_labels[0] < 0 || pair_labels[0] >= pair_labels[1] || pair_labels[1] >= n)
                return fgi_fail(err, FGI_BAD_ARGUMENT, i, "the checkpoint does not fit the data");
            if (!fgi_sets_add_pair(g, x, pair_labels[0], pair_labels[1], pair_values[0])) return fgi_no_memory(err);
            set_pair *p = &x->pairs[x->n_pairs - 1];
            p->Pl = pair_values[1], p->Pm = pair_values[2], p->Q = pair_values[3];
        }
    }
    g->bounded = 0;
    memcpy(g->loss, losses, (size_t)g->L->data.n_examples * sizeof *losses);
    g->unary_calls = work[0], g->pair_calls = work[1], g->unary_touched = work[2], g->pair_touched = work[3];
    g->unary_products = work[4];
    return fgi_sets_fill_table(g) ? fgi_no_memory(err) : FGI_OK;
}
