/* gdmm/sweep.c - dual coordinate ascent on a copy of the multipliers, for models whose tables can be read whole.
 *
 * Sequential reweighted message passing (Kolmogorov 2015) in terms of mu: at variable i every factor first hands over
 * all it knows,
 *
 *     n_f(a) = max over y with y_i = a of theta_f(y) - sum_{j != i} mu_jf(y_j),      hat_i = theta_i + sum_f n_f,
 *
 * then those factors that reach a variable still to come get an equal share back: mu_if = n_f - share (hat_i - max
 * hat_i), the others mu_if = n_f. At the end of a sweep the last visit has left the maximum of every factor at 0, so
 * that D(mu) is the sum of the max hat_i: the bound costs nothing. On pairwise models this is TRW-S. It never makes D
 * worse, stalls at weak fixed points where the method of multipliers moves on, and gives a good start and a good
 * certificate early. */
#include <string.h>
#include "model/marginal.h"
#include "gdmm/sweep.h"

enum { EARLIER = 1, LATER = 2 };

static uint8_t reach_of(const fgi_structure *st, int64_t f, int32_t i) {
    const int32_t *vars = fgi_factor_vars(st, f);
    uint8_t reach = 0;
    for (int32_t k = 0; k < fgi_factor_arity(st, f); k++) reach |= vars[k] > i ? LATER : vars[k] < i ? EARLIER : 0;
    return reach;
}

void gdmm_sweep_free(gdmm_sweep *s) {
    if (!s) return;
    free(s->offset);
    free(s->mu);
    free(s->last);
    free(s->reach);
    free(s->onwards[0]);
    free(s->onwards[1]);
    free(s->hat);
    free(s->given);
    free(s->h);
    free(s->cap);
    free(s->pick);
    free(s->rows);
    free(s->labels);
    free(s);
}

gdmm_sweep *gdmm_sweep_create(const gdmm *g) {
    const fgi_structure *st = g->model->s;
    gdmm_sweep *s = fgi_calloc(1, sizeof *s);
    if (!s) return NULL;
    const int64_t size = fgi_dual_message_size(g->model);
    s->offset = fgi_alloc(g->n_slots, sizeof *s->offset);
    s->mu = fgi_alloc(2 * size, sizeof(double));
    s->last = fgi_alloc(st->n_factors, sizeof *s->last);
    s->reach = fgi_alloc(g->n_slots, 1);
    s->onwards[0] = fgi_calloc(st->n_vars, sizeof(int32_t));
    s->onwards[1] = fgi_calloc(st->n_vars, sizeof(int32_t));
    s->hat = fgi_alloc(st->max_card, sizeof(double));
    s->given = fgi_alloc(st->max_card, sizeof(double));
    s->h = fgi_alloc(st->max_card, sizeof(double));
    s->cap = fgi_alloc(g->n_slots, sizeof(double));
    s->pick = fgi_alloc((int64_t)st->max_card + 1, sizeof(int32_t));
    s->rows = fgi_alloc(g->n_slots, sizeof(int32_t));
    for (int64_t k = 0; s->rows && k < g->n_slots; k++) s->rows[k] = GDMM_FIRST_ROWS;
    s->labels = fgi_calloc(st->n_vars, sizeof *s->labels);
    if (!s->offset || !s->mu || !s->last || !s->reach || !s->onwards[0] || !s->onwards[1] || !s->hat || !s->given ||
        !s->h || !s->cap || !s->pick || !s->rows || !s->labels) {
        gdmm_sweep_free(s);
        return NULL;
    }
    int64_t at = 0;
    for (int64_t k = 0; k < g->n_slots; k++) {
        s->offset[k] = at;
        at += 2 * (int64_t)st->cards[st->vars[k]];
    }
    for (int64_t i = 0; i < st->n_vars; i++)
        for (int64_t k = st->adj_begin[i]; k < st->adj_begin[i + 1]; k++) {
            uint8_t reach = s->reach[g->adj_slot[k]] = reach_of(st, st->adj[k], (int32_t)i);
            s->onwards[0][i] += (reach & EARLIER) != 0;
            s->onwards[1][i] += (reach & LATER) != 0;
        }
    s->model_magnitude = fgi_dual_magnitude(g->model);
    return s;
}

int64_t gdmm_sweep_memory(const gdmm *g) {
    return 16 * fgi_dual_message_size(g->model) + 8 * g->n_slots + 4 * g->model->s->n_factors +
        12 * g->model->s->n_vars;
}

static void begin_sweep(const gdmm *g, gdmm_sweep *s, int forward) {
    const int64_t t = gdmm_steps(g);
    s->forward = forward;
    s->decode = forward && (t < 8 || t % 4 == 0);
    s->node = 0;
    s->edge = 0;
    s->sum = (fgi_sum){0};
    fgi_sum_add(&s->sum, g->model->s->constant);
    s->magnitude = fabs(g->model->s->constant);
}

/* Takes over the multipliers of the slots; the next sweep is a forward one. */
void gdmm_sweep_load(const gdmm *g, gdmm_sweep *s) {
    s->loaded = 0;
    for (int64_t k = 0; k < g->n_slots; k++) {
        const double *mu = g->slots[k].mu;
        double largest = 0;
        memcpy(s->mu + s->offset[k], mu, (size_t)g->slots[k].n * sizeof(double));
        for (int32_t a = 0; a < g->slots[k].n; a++)
            if (!GDMM_IS_FORBIDDEN(mu[a])) largest = fgi_larger(largest, fabs(mu[a]));
        s->loaded += largest;
    }
    for (int64_t f = 0; f < g->model->s->n_factors; f++) s->last[f] = -1;
    begin_sweep(g, s, 1);
}

void gdmm_sweep_store(gdmm *g, const gdmm_sweep *s) {
    for (int64_t k = 0; k < g->n_slots; k++)
        memcpy(g->slots[k].mu, s->mu + s->offset[k], (size_t)g->slots[k].n * sizeof(double));
}

const double *gdmm_sweep_messages(const gdmm_sweep *s, int64_t slot) { return s->mu + s->offset[slot]; }

int gdmm_sweep_forward(const gdmm_sweep *s) { return s->forward; }

const int32_t *gdmm_sweep_labels(const gdmm_sweep *s) { return s->labels; }

/* ---- max-marginals of a factor ------------------------------------------------------------------------------ */

/* Binary factors: a call costs more than the work. */
static void binary_marginal(const gdmm_sweep *s, const gdmm_pair *t, int64_t first, int32_t position, double *out) {
    const double *mu = s->mu + s->offset[first + 1 - position];
    const double a = t->at[0][0] - mu[0], b = (position ? t->at[1][0] : t->at[0][1]) - mu[1];
    const double c = (position ? t->at[0][1] : t->at[1][0]) - mu[0], d = t->at[1][1] - mu[1];
    out[0] = a > b ? a : b;
    out[1] = c > d ? c : d;
}

static int64_t pair_marginal(
    gdmm *g, const gdmm_sweep *s, const fgi_view *v, int64_t first, int32_t position, double *out) {
    const int from = 1 - position;
    const double *mu = s->mu + s->offset[first + from];
    const int32_t n = from ? v->cols : v->rows;
    if (g->tables[v->table].sliced && v->weight > 0) return gdmm_loose_marginal(g, s, v, first, position, out);
    for (int32_t a = 0; a < n; a++) s->h[a] = -mu[a];
    return gdmm_maxplus(g, &g->workers[0], v, from, s->h, out);
}

static void general_marginal(
    const gdmm *g, const gdmm_sweep *s, const fgi_view *v, int64_t first, int32_t position, double *out) {
    const fgi_structure *st = g->model->s;
    const int32_t inner = st->cards[v->vars[v->arity - 1]], outer = v->arity - 1;
    const double *tail = s->mu + s->offset[first + outer], w = v->weight;
    int32_t *label = g->workers[0].state;
    memset(label, 0, (size_t)outer * sizeof *label);
    for (int32_t a = 0; a < st->cards[v->vars[position]]; a++) out[a] = -INFINITY;
    const double *end = v->values + fgi_view_states(g->model, v);
    for (const double *row = v->values; row < end; row += inner) {
        double h = 0;
        for (int32_t k = 0; k < outer; k++)
            if (k != position) h -= s->mu[s->offset[first + k] + label[k]];
        if (position == outer) {
            for (int32_t b = 0; b < inner; b++) {
                double value = w * row[b] + h;
                if (value > out[b]) out[b] = value;
            }
        } else {
            double best = -INFINITY;
            for (int32_t b = 0; b < inner; b++) {
                double value = w * row[b] - tail[b];
                if (value > best) best = value;
            }
            if (best + h > out[label[position]]) out[label[position]] = best + h;
        }
        for (int32_t k = outer - 1; k >= 0 && ++label[k] == st->cards[v->vars[k]]; k--) label[k] = 0;
    }
}

/* n_f at position k, unless what is stored is still right. Returns the entries read. */
static int64_t refresh_marginal(gdmm *g, gdmm_sweep *s, int64_t f, int32_t position) {
    const int64_t first = fgi_factor_begin(g->model->s, f);
    if (s->last[f] == position) return 0;
    s->last[f] = position;
    s->cap[first + position] = -INFINITY;
    double *out = s->mu + s->offset[first + position] + g->model->s->cards[g->model->s->vars[first + position]];
    if (g->is_pair[f]) {
        binary_marginal(s, &g->pairs[f], first, position, out);
        g->sweep_entries += 4;
        return 4;
    }
    const fgi_view v = fgi_factor_view(g->model, f);
    int64_t entries = fgi_view_states(g->model, &v);
    if (v.arity == 2) entries = pair_marginal(g, s, &v, first, position, out);
    else general_marginal(g, s, &v, first, position, out);
    g->sweep_entries += entries;
    return entries;
}

/* ---- the visit of a variable -------------------------------------------------------------------------------- */

static void forbid(gdmm *g, int32_t i, int32_t a) {
    const fgi_structure *st = g->model->s;
    g->theta[st->unary_begin[i] + a] = -INFINITY;
    for (int64_t k = st->adj_begin[i]; k < st->adj_begin[i + 1]; k++) g->slots[g->adj_slot[k]].mu[a] = GDMM_FORBIDDEN;
}

/* given[a] += theta_f at a, where the variable at position `at` has this label and a is the label of the other. */
static void add_slice(const gdmm *g, const fgi_view *v, int at, int32_t label, int32_t card, double *restrict given) {
    const gdmm_table *table = &g->tables[v->table];
    const int side = at ^ v->transposed; /* of the table as it is stored */
    if (v->kind != FGI_DENSE) {
        for (int32_t a = 0; a < card; a++) given[a] += at ? fgi_view_at2(v, a, label) : fgi_view_at2(v, label, a);
        return;
    }
    const double *slice = table->slices ? fgi_sliced_slice(table->slices, side, label)
                                        : v->values + (side ? label : (int64_t)label * card);
    const int64_t stride = side && !table->slices ? (v->transposed ? v->rows : v->cols) : 1;
    if (stride == 1)
        for (int32_t a = 0; a < card; a++) given[a] += v->weight * slice[a];
    else
        for (int32_t a = 0; a < card; a++) given[a] += v->weight * slice[a * stride];
}

/* Scores of the labels of i in factor f given the labels of all its other variables. */
static void add_conditional(const gdmm *g, const gdmm_sweep *s, int64_t f, int32_t i, double *given) {
    const fgi_structure *st = g->model->s;
    const fgi_view v = fgi_factor_view(g->model, f);
    const int32_t card = st->cards[i];
    if (v.arity == 2) {
        add_slice(g, &v, v.vars[0] == i, s->labels[v.vars[v.vars[0] == i]], card, given);
        return;
    }
    int64_t at = 0, stride = 0;
    for (int32_t k = 0; k < v.arity; k++) {
        int64_t size = st->cards[v.vars[k]];
        at = at * size + (v.vars[k] == i ? 0 : s->labels[v.vars[k]]);
        stride = v.vars[k] == i ? 1 : stride * size;
    }
    for (int32_t a = 0; a < card; a++) given[a] += v.weight * v.values[at + a * stride];
}

static void decode_label(gdmm_sweep *s, const gdmm *g, int32_t i) {
    const fgi_structure *st = g->model->s;
    const int32_t card = st->cards[i];
    const double *theta = g->theta + st->unary_begin[i];
    memcpy(s->given, theta, (size_t)card * sizeof(double));
    for (int64_t k = st->adj_begin[i]; k < st->adj_begin[i + 1]; k++) {
        if (!(s->reach[g->adj_slot[k]] & LATER)) {
            add_conditional(g, s, st->adj[k], i, s->given);
            continue;
        }
        g->kernels->add(s->given, s->mu + s->offset[g->adj_slot[k]] + card, card);
    }
    int32_t best = -1;
    for (int32_t a = 0; a < card; a++)
        if (theta[a] > -INFINITY && (best < 0 || s->given[a] > s->given[best])) best = a;
    s->labels[i] = best;
}

static void hand_over(
    double *restrict mu, const double *restrict n, double part, const double *restrict hat, double top, int32_t card) {
    for (int32_t a = 0; a < card; a++) mu[a] = n[a] - part * (hat[a] - top);
}

/* All n_f of the variable are up to date: hat, bound, label, shares. Returns 0 if no label is left. */
static int visit(gdmm *g, gdmm_sweep *s, int32_t i) {
    const fgi_structure *st = g->model->s;
    const int32_t card = st->cards[i];
    double *theta = g->theta + st->unary_begin[i], top = -INFINITY;
    memcpy(s->hat, theta, (size_t)card * sizeof(double));
    for (int64_t k = st->adj_begin[i]; k < st->adj_begin[i + 1]; k++)
        g->kernels->add(s->hat, s->mu + s->offset[g->adj_slot[k]] + card, card);
    gdmm_settle(g, s, i);
    int some_forbidden = 0;
    for (int32_t a = 0; a < card; a++) {
        if (s->hat[a] > top) top = s->hat[a];
        if (s->hat[a] >= -0.5 * GDMM_FORBIDDEN) continue;
        some_forbidden = 1;
        if (theta[a] > -INFINITY) forbid(g, i, a);
    }
    if (!(top > -0.5 * GDMM_FORBIDDEN)) return 0;
    fgi_sum_add(&s->sum, top);
    s->magnitude += fabs(top);
    if (s->decode) decode_label(s, g, i);
    const int64_t onwards = s->onwards[s->forward][i], ending = gdmm_degree(g, i) - onwards;
    const double share = 1.0 / (double)(onwards > ending ? onwards : ending);
    const uint8_t ahead = s->forward ? LATER : EARLIER;
    for (int64_t k = st->adj_begin[i]; k < st->adj_begin[i + 1]; k++) {
        double *mu = s->mu + s->offset[g->adj_slot[k]];
        hand_over(mu, mu + card, s->reach[g->adj_slot[k]] & ahead ? share : 0, s->hat, top, card);
        for (int32_t a = 0; some_forbidden && a < card; a++)
            if (theta[a] == -INFINITY) mu[a] = GDMM_FORBIDDEN;
    }
    return 1;
}

/* A bounded piece of the sweep. 1: it is complete, *bound is D(mu), the other direction comes next; 0: more to do; -1:
 * infeasible. */
int gdmm_sweep_step(gdmm *g, gdmm_sweep *s, double *bound) {
    const fgi_structure *st = g->model->s;
    for (int64_t work = 0; s->node < st->n_vars; s->node++, s->edge = 0) {
        const int32_t i = (int32_t)(s->forward ? s->node : st->n_vars - 1 - s->node);
        const int64_t degree = gdmm_degree(g, i);
        for (; s->edge < degree; s->edge++) {
            if (work > 200000) return 0;
            const int64_t slot = g->adj_slot[st->adj_begin[i] + s->edge], f = st->adj[st->adj_begin[i] + s->edge];
            work += 16 + 4 * st->cards[i] + refresh_marginal(g, s, f, (int32_t)(slot - fgi_factor_begin(st, f)));
        }
        if (!visit(g, s, i)) return -1;
    }
    *bound = fgi_safe_bound(g->model, fgi_sum_value(&s->sum), s->magnitude + s->model_magnitude + s->loaded);
    begin_sweep(g, s, !s->forward);
    return 1;
}
