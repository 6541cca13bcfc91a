/* learn/gdmm/bound.c - certificates of gdmm: an upper bound on the primal value and a feasible dual point, both
 * factorwise.
 *
 * For any messages m, max over the local polytope of the loss-augmented scores is at most the sum over blocks of
 * max_y grad(y) - grad(truth), since messages cancel at the truth: that bounds the LP-relaxed loss from above.
 * For the dual, unigram shares p_j are kept and every edge gets a coupling of p_u and p_v near its own q_f: any
 * coupling is consistent, so -G there is a true lower bound whatever the iterate's infeasibility. */
#include "learn/gdmm/gdmm.h"

static fgi_rc relaxed_loss(fgi_gdmm *g, int32_t i, double *loss) {
    const fgi_learn_data *d = &g->L->data;
    const int64_t first = d->token_begin[i], end = d->token_begin[i + 1];
    for (int64_t t = first; t < end; t++) {
        double value = -INFINITY;
        int32_t parts = g->s.partitions;
        g->s.partitions = 1;
        fgi_gdmm_unary_argmax(g, t, &value);
        g->s.partitions = parts;
        double excess = value - g->scores[d->truth[t]];
        if (excess > 0) *loss += excess;
    }
    for (int64_t e = fgi_gdmm_edge_begin(g, i); g->n_edges && e < fgi_gdmm_edge_begin(g, i + 1); e++) {
        const fgi_edge_block *b = &g->edges[e];
        const fgi_support *u = &g->tokens[first + b->u], *v = &g->tokens[first + b->v];
        const int32_t zu = d->truth[first + b->u], zv = d->truth[first + b->v];
        fgi_argmax found;
        fgi_rc rc = fgi_gdmm_pair_argmax(g, i, e, &found);
        if (rc != FGI_OK) return rc;
        double truth = fgi_gdmm_pair_weight(g, e, zu, zv) +
            g->rho *
                (fgi_support_message(u, b->ku, fgi_support_find(u, zu)) +
                    fgi_support_message(v, b->kv, fgi_support_find(v, zv)));
        if (found.state >= 0 && found.value > truth) *loss += found.value - truth;
    }
    return FGI_OK;
}

/* ---- the dual point ---------------------------------------------------------------------------------------------- */

/* Adds `mass` (times C) of the state (a, b) of an edge to the pairwise weights under construction in L->dense. */
static void put(fgi_gdmm *g, int64_t edge, int32_t zu, int32_t zv, int32_t a, int32_t b, double mass) {
    const fgi_learn_data *d = &g->L->data;
    const int64_t k = d->n_labels, right = (int64_t)zu * k + zv, wrong = (int64_t)a * k + b;
    if (wrong == right || mass <= 0) return;
    double *w = g->L->dense + g->L->unary;
    if (!d->edge_row) {
        w[wrong] -= mass;
        w[right] += mass;
        return;
    }
    for (int64_t j = d->edge_row[edge]; j < d->edge_row[edge + 1]; j++) {
        double x = d->edge_value ? mass * d->edge_value[j] : mass, *table = w + d->edge_feature[j] * k * k;
        table[wrong] -= x;
        table[right] += x;
    }
}

/* A coupling of the shares of u and v: the edge's own states, cut down to what both sides have, then the rest paired
 * off in order of the labels. left[side] holds the shares (times C) that are still to be placed. */
static fgi_rc couple(fgi_gdmm *g, int32_t i, int64_t edge) {
    const fgi_learn_data *d = &g->L->data;
    const fgi_edge_block *e = &g->edges[edge];
    const int64_t first = d->token_begin[i];
    const fgi_support *side[2] = {&g->tokens[first + e->u], &g->tokens[first + e->v]};
    const int32_t z[2] = {d->truth[first + e->u], d->truth[first + e->v]};
    if (!fgi_gdmm_reserve(g, side[0]->n > side[1]->n ? side[0]->n : side[1]->n)) return FGI_NO_MEMORY;
    double *left[2] = {g->mass, g->gain}, own = g->s.C;
    for (int s = 0; s < 2; s++)
        for (int32_t at = 0; at < side[s]->n; at++)
            left[s][at] = (side[s]->label[at] == z[s] ? g->s.C : 0.0) - side[s]->value[at];
    for (int32_t s = 0; s <= e->n; s++) {
        int32_t a = s < e->n ? e->state[2 * s] : z[0], b = s < e->n ? e->state[2 * s + 1] : z[1];
        int32_t p = fgi_support_find(side[0], a), q = fgi_support_find(side[1], b);
        double mass = s < e->n ? e->beta[s] : own;
        own -= mass;
        if (p < 0 || q < 0) continue;
        if (mass > left[0][p]) mass = left[0][p];
        if (mass > left[1][q]) mass = left[1][q];
        if (mass <= 0) continue;
        left[0][p] -= mass;
        left[1][q] -= mass;
        put(g, edge, z[0], z[1], a, b, mass);
    }
    for (int32_t p = 0, q = 0; p < side[0]->n && q < side[1]->n;) {
        double mass = left[0][p] < left[1][q] ? left[0][p] : left[1][q];
        put(g, edge, z[0], z[1], side[0]->label[p], side[1]->label[q], mass);
        left[0][p] -= mass;
        left[1][q] -= mass;
        if (left[0][p] <= 0) p++;
        else q++;
    }
    return FGI_OK;
}

/* Sum of squares of the pairwise weights in L->dense, which go back to zero; the unary weights are those of the
 * iterate. */
static double squared_norm(fgi_gdmm *g) {
    fgi_sum sum = {0};
    for (int64_t k = 0; k < g->L->unary; k++)
        if (g->L->w[k] != 0.0) fgi_sum_add(&sum, g->L->w[k] * g->L->w[k]);
    for (int64_t k = g->L->unary; k < g->L->dimension; k++)
        if (g->L->dense[k] != 0.0) {
            fgi_sum_add(&sum, g->L->dense[k] * g->L->dense[k]);
            g->L->dense[k] = 0.0;
        }
    return fgi_sum_value(&sum);
}

static double unary_loss(const fgi_gdmm *g, int64_t token) {
    const fgi_learn_data *d = &g->L->data;
    const fgi_support *t = &g->tokens[token];
    const int32_t z = d->truth[token];
    double sum = 0;
    for (int32_t at = 0; at < t->n; at++)
        if (t->label[at] != z) sum -= t->value[at] * (d->cost ? d->cost[(int64_t)z * d->n_labels + t->label[at]] : 1.0);
    return d->token_weight ? sum * d->token_weight[token] : sum;
}

fgi_rc fgi_gdmm_measure(fgi_gdmm *g, double *relaxed, double *dual, double *infeasibility, fgi_error *err) {
    const fgi_learn_data *d = &g->L->data;
    const int64_t calls[5] = {g->unary_calls, g->pair_calls, g->unary_touched, g->pair_touched, g->unary_products};
    fgi_sum loss = {0}, norm = {0}, gain = {0};
    double worst = 0;
    fgi_rc rc = FGI_OK;
    for (int32_t i = 0; rc == FGI_OK && i < d->n_examples; i++) {
        double part = 0;
        rc = relaxed_loss(g, i, &part);
        fgi_sum_add(&loss, part);
        for (int64_t e = fgi_gdmm_edge_begin(g, i); rc == FGI_OK && g->n_edges && e < fgi_gdmm_edge_begin(g, i + 1);
             e++)
            rc = couple(g, i, e);
    }
    for (int64_t t = 0; t < g->n_tokens; t++) {
        fgi_sum_add(&gain, unary_loss(g, t));
        for (int32_t k = 0; k < g->tokens[t].degree; k++)
            for (int32_t at = 0; at < g->tokens[t].n; at++)
                worst = fmax(worst, fabs(fgi_support_row(&g->tokens[t], 1 + 2 * k)[at] - g->tokens[t].value[at]));
    }
    for (int64_t k = 0; k < g->L->dimension; k++)
        if (g->L->w[k] != 0.0) fgi_sum_add(&norm, g->L->w[k] * g->L->w[k]);
    g->squared_norm = fgi_sum_value(&norm); /* rounding of the running value ends here */
    *dual = fgi_learn_dual_toward(fgi_sum_value(&gain), squared_norm(g));
    *relaxed = 0.5 * g->squared_norm + g->s.C * fgi_sum_value(&loss);
    *infeasibility = worst / g->s.C;
    g->unary_calls = calls[0], g->pair_calls = calls[1], g->unary_touched = calls[2], g->pair_touched = calls[3];
    g->unary_products = calls[4];
    return rc == FGI_OK ? rc : fgi_fail(err, rc, -1, "out of memory");
}

static fgi_rc relaxed_at(fgi_gdmm *g, double *relaxed) {
    fgi_sum loss = {0}, norm = {0};
    fgi_rc rc = FGI_OK;
    for (int32_t i = 0; rc == FGI_OK && i < g->L->data.n_examples; i++) {
        double part = 0;
        rc = relaxed_loss(g, i, &part);
        fgi_sum_add(&loss, part);
    }
    for (int64_t k = 0; k < g->L->dimension; k++) fgi_sum_add(&norm, g->L->w[k] * g->L->w[k]);
    *relaxed = 0.5 * fgi_sum_value(&norm) + g->s.C * fgi_sum_value(&loss);
    return rc;
}

/* The oracles read the weights of the learner and the sorted tables: both are exchanged for a while. */
fgi_rc fgi_gdmm_relaxed_at(fgi_gdmm *g, double *w, double *relaxed, fgi_error *err) {
    fgi_learner *L = g->L;
    double *own = L->w;
    fgi_updatable **tables = g->tables;
    const int64_t calls[5] = {g->unary_calls, g->pair_calls, g->unary_touched, g->pair_touched, g->unary_products};
    fgi_rc rc = FGI_OK;
    L->w = w;
    g->tables = fgi_calloc(g->n_tables, sizeof *g->tables);
    if (!g->tables) rc = FGI_NO_MEMORY;
    for (int64_t f = 0; rc == FGI_OK && f < g->n_tables; f++)
        if (tables[f]) rc = fgi_updatable_create(L->data.n_labels, L->data.n_labels, NULL, &g->tables[f], NULL);
    if (rc == FGI_OK) rc = fgi_gdmm_fill_tables(g);
    if (rc == FGI_OK) rc = relaxed_at(g, relaxed);
    for (int64_t f = 0; g->tables && f < g->n_tables; f++) fgi_updatable_free(g->tables[f]);
    free(g->tables);
    g->tables = tables;
    L->w = own;
    g->unary_calls = calls[0], g->pair_calls = calls[1], g->unary_touched = calls[2], g->pair_touched = calls[3];
    g->unary_products = calls[4];
    return rc == FGI_OK ? rc : fgi_fail(err, rc, -1, "out of memory");
}
