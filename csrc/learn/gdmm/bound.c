/* learn/gdmm/bound.c - certificates of gdmm: an upper bound on the primal value and a feasible dual point, both
 * factorwise.
 *
 * For any messages m, max over the local polytope of the loss-augmented scores is at most the sum over blocks of
 * max_y grad(y) - grad(truth), since messages cancel at the truth: that bounds the LP-relaxed loss from above.
 * For the dual, unigram shares p_j are kept and every edge gets a coupling of p_u and p_v near its own q_f: any
 * coupling is consistent, so -G there is a true lower bound whatever the iterate's infeasibility. */
#include "learn/gdmm/gdmm.h"

/* ---- losses ------------------------------------------------------------------------------------------------------ */

/* The bound that the messages of the iterate give. */
static fgi_rc relaxed_loss(fgi_learn_gdmm *g, int32_t i, double *loss) {
    const fgi_learn_data *d = &g->L->data;
    const int64_t first = d->token_begin[i], end = d->token_begin[i + 1];
    for (int64_t t = first; t < end; t++) {
        double value = -INFINITY;
        int32_t parts = g->s.partitions;
        g->s.partitions = 1;
        fgi_learn_gdmm_unary_argmax(g, t, &value);
        g->s.partitions = parts;
        double excess = value - g->scores[d->truth[t]];
        if (excess > 0) *loss += excess;
    }
    for (int64_t e = fgi_learn_gdmm_edge_begin(g, i); g->n_edges && e < fgi_learn_gdmm_edge_begin(g, i + 1); e++) {
        const fgi_edge_block *b = &g->edges[e];
        const fgi_support *u = &g->tokens[first + b->u], *v = &g->tokens[first + b->v];
        const int32_t zu = d->truth[first + b->u], zv = d->truth[first + b->v];
        fgi_argmax found;
        fgi_rc rc = fgi_learn_gdmm_pair_argmax(g, i, e, &found);
        if (rc) return rc;
        double truth = fgi_learn_gdmm_pair_weight(g, e, zu, zv) +
            g->rho *
                (fgi_support_message(u, b->ku, fgi_support_find(u, zu)) +
                    fgi_support_message(v, b->kv, fgi_support_find(v, zv)));
        if (found.state >= 0 && found.value > truth) *loss += found.value - truth;
    }
    return FGI_OK;
}

/* ---- the dual point ---------------------------------------------------------------------------------------------- */

/* Adds `mass` (times C) of the state (a, b) of an edge to the pairwise weights under construction in L->dense. */
static void put(fgi_learn_gdmm *g, int64_t edge, int32_t zu, int32_t zv, int32_t a, int32_t b, double mass) {
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
static fgi_rc couple(fgi_learn_gdmm *g, int32_t i, int64_t edge) {
    const fgi_learn_data *d = &g->L->data;
    const fgi_edge_block *e = &g->edges[edge];
    const int64_t first = d->token_begin[i];
    const fgi_support *side[2] = {&g->tokens[first + e->u], &g->tokens[first + e->v]};
    const int32_t z[2] = {d->truth[first + e->u], d->truth[first + e->v]};
    if (!fgi_learn_gdmm_reserve(g, side[0]->n > side[1]->n ? side[0]->n : side[1]->n)) return FGI_NO_MEMORY;
    double *left[2] = {g->mass, g->gain}, own = g->C;
    for (int s = 0; s < 2; s++)
        for (int32_t at = 0; at < side[s]->n; at++)
            left[s][at] = (side[s]->label[at] == z[s] ? g->C : 0.0) - side[s]->value[at];
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

/* |w(alpha)|^2 of the dual point on the scale of the blocks: its unary weights are those of the iterate, the pairwise
 * ones are in L->dense, which goes back to zero. */
static double squared_norm(fgi_learn_gdmm *g) {
    const double *center = g->L->proximal.center;
    fgi_sum sum = {0};
    for (int64_t k = 0; k < g->L->unary; k++) {
        const double x = center ? g->L->w[k] - center[k] : g->L->w[k];
        if (x != 0.0) fgi_sum_add(&sum, x * x);
    }
    for (int64_t k = g->L->unary; k < g->L->dimension; k++)
        if (g->L->dense[k] != 0.0) {
            fgi_sum_add(&sum, g->L->dense[k] * g->L->dense[k]);
            g->L->dense[k] = 0.0;
        }
    return fgi_sum_value(&sum);
}

static double unary_loss(const fgi_learn_gdmm *g, int64_t token) {
    const fgi_learn_data *d = &g->L->data;
    const fgi_support *t = &g->tokens[token];
    const int32_t z = d->truth[token];
    double sum = 0;
    for (int32_t at = 0; at < t->n; at++)
        if (t->label[at] != z) sum -= t->value[at] * (d->cost ? d->cost[(int64_t)z * d->n_labels + t->label[at]] : 1.0);
    return d->token_weight ? sum * d->token_weight[token] : sum;
}

fgi_rc fgi_learn_gdmm_dual(
    fgi_learn_gdmm *g, double deadline, double *dual, double *infeasibility, int32_t *done, fgi_error *err) {
    const fgi_learn_data *d = &g->L->data;
    const double scale = g->s.C / g->C;
    fgi_sum gain = {0};
    double worst = 0;
    fgi_rc rc = FGI_OK;
    fgi_meter meter = {FGI_LEARN_LOOK, 0, deadline};
    *done = 1;
    for (int32_t i = 0; !rc && *done && i < d->n_examples; i++) {
        for (int64_t e = fgi_learn_gdmm_edge_begin(g, i); !rc && g->n_edges && e < fgi_learn_gdmm_edge_begin(g, i + 1);
             e++)
            rc = couple(g, i, e);
        for (int64_t t = d->token_begin[i]; t < d->token_begin[i + 1]; t++) {
            fgi_sum_add(&gain, unary_loss(g, t));
            for (int32_t k = 0; k < g->tokens[t].degree; k++)
                for (int32_t at = 0; at < g->tokens[t].n; at++)
                    worst = fmax(worst, fabs(fgi_support_row(&g->tokens[t], 1 + 2 * k)[at] - g->tokens[t].value[at]));
        }
        *done = !fgi_meter_spend(&meter, 1);
    }
    const double square = squared_norm(g); /* in any case: it clears L->dense */
    *dual = fgi_learn_dual_toward(scale * fgi_sum_value(&gain), scale * scale * square);
    *infeasibility = worst / g->C;
    return rc ? fgi_fail(err, rc, -1, "out of memory") : FGI_OK;
}

/* ---- losses at other weights ------------------------------------------------------------------------------------- */

void fgi_learn_gdmm_drop_guest(fgi_learn_gdmm *g) {
    for (int64_t f = 0; g->guest_tables && f < g->n_tables; f++) fgi_updatable_free(g->guest_tables[f]);
    free(g->guest_tables);
    g->guest_tables = NULL;
    g->guest = NULL;
}

/* Exchanges the weights of the learner and the sorted tables, both of which the oracles read. */
static void exchange(fgi_learn_gdmm *g) {
    double *w = g->L->w;
    fgi_updatable **tables = g->tables;
    g->L->w = g->guest, g->guest = w;
    g->tables = g->guest_tables, g->guest_tables = tables;
}

static fgi_rc invite(fgi_learn_gdmm *g, double *w) {
    fgi_rc rc = FGI_OK;
    fgi_learn_gdmm_drop_guest(g);
    if (!(g->guest_tables = fgi_calloc(g->n_tables, sizeof *g->guest_tables))) return FGI_NO_MEMORY;
    g->guest = w;
    for (int64_t f = 0; !rc && f < g->n_tables; f++)
        if (g->tables[f])
            rc = fgi_updatable_create(
                g->L->data.n_labels, g->L->data.n_labels, FGI_BY_SIZE, NULL, &g->guest_tables[f], NULL);
    if (rc) return rc;
    exchange(g);
    rc = fgi_learn_gdmm_fill_tables(g);
    exchange(g);
    return rc;
}

fgi_rc fgi_learn_gdmm_losses(fgi_learn_gdmm *g, double *w, const int32_t *examples, int64_t m, int64_t *next,
    double deadline, double *loss, fgi_error *err) {
    const int64_t calls[5] = {g->unary_calls, g->pair_calls, g->unary_touched, g->pair_touched, g->unary_products};
    fgi_rc rc = w && (*next == 0 || g->guest != w) ? invite(g, w) : FGI_OK;
    const int exchanged = !rc && w;
    int stranger = 0;
    if (exchanged) exchange(g);
    while (!rc && *next < m) {
        const int32_t i = examples[*next];
        stranger = i < 0 || i >= g->L->data.n_examples;
        if (stranger) rc = FGI_BAD_ARGUMENT;
        else {
            double part = 0;
            rc = relaxed_loss(g, i, &part);
            if (!rc) rc = fgi_learn_gdmm_polish(g, i, &part);
            loss[*next] = part;
            ++*next;
        }
        if (fgi_clock() >= deadline) break;
    }
    if (exchanged) exchange(g);
    if (rc || *next >= m) fgi_learn_gdmm_drop_guest(g);
    g->unary_calls = calls[0], g->pair_calls = calls[1], g->unary_touched = calls[2], g->pair_touched = calls[3];
    g->unary_products = calls[4];
    if (stranger) return fgi_fail(err, rc, *next, "there is no example %d", (int)examples[*next]);
    return fgi_learn_gdmm_told(rc, err);
}
