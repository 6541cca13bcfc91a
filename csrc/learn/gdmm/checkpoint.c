/* learn/gdmm/checkpoint.c - the state of gdmm for learning as arrays, and back. What is read is checked: files may be
 * damaged, or of other data. */
#include <string.h>
#include "learn/gdmm/gdmm.h"

static fgi_rc misfit(fgi_error *err, int64_t index) {
    return fgi_fail(err, FGI_BAD_ARGUMENT, index, "the checkpoint does not fit the data");
}

/* ---- supports and states ---------------------------------------------------------------------------------------- */

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

fgi_rc fgi_learn_gdmm_import(fgi_learn_gdmm *g, const int32_t *support_size, const int32_t *labels,
    const double *values, const int32_t *state_size, const int32_t *states, const double *betas, const double *losses,
    uint64_t rng, const int64_t *work, fgi_error *err) {
    const int32_t k = g->L->data.n_labels;
    for (int64_t j = 0; j < g->n_tokens; j++) {
        fgi_support *t = &g->tokens[j];
        for (int32_t at = 0; at < support_size[j]; at++)
            if (labels[at] < 0 || labels[at] >= k || (at && labels[at] <= labels[at - 1])) return misfit(err, j);
        if (support_size[j] < 1 || !fgi_support_reserve(g, t, support_size[j])) return fgi_no_memory(err);
        t->n = support_size[j];
        memcpy(t->label, labels, (size_t)t->n * sizeof *labels);
        labels += t->n;
        for (int32_t r = 0; r < 1 + 2 * t->degree; r++, values += t->n)
            memcpy(fgi_support_row(t, r), values, (size_t)t->n * sizeof *values);
        if (fgi_support_find(t, g->L->data.truth[j]) < 0) return misfit(err, j);
    }
    for (int64_t j = 0; j < g->n_edges; j++) {
        fgi_edge_block *e = &g->edges[j];
        if (!fgi_edge_reserve(g, e, state_size[j])) return fgi_no_memory(err);
        e->n = state_size[j];
        for (int32_t s = 0; s < 2 * e->n; s++)
            if (states[s] < 0 || states[s] >= k) return misfit(err, j);
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
    return fgi_learn_gdmm_told(fgi_learn_gdmm_fill_tables(g), err);
}

/* ---- vertices of Algorithm 2: how many each block has, then their weights, then their labels --------------- */

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
        if (labels[at] < 0 || labels[at] >= g->L->data.n_labels) return misfit(err, block);
    if (!(*copy = fgi_alloc(width, sizeof **copy))) return fgi_no_memory(err);
    memcpy(*copy, labels, (size_t)width * sizeof **copy);
    return FGI_OK;
}

fgi_rc fgi_learn_gdmm_import_away(
    fgi_learn_gdmm *g, const int32_t *counts, const double *weights, const int32_t *vertices, fgi_error *err) {
    for (int64_t block = 0; block < g->n_away; block++) {
        if (counts[block] < 1) return misfit(err, block);
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

/* ---- the step of it that is under way ---------------------------------------------------------------------------- */

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
        return misfit(err, place[1]);
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
