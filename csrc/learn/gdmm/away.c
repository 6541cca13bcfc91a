/* learn/gdmm/away.c - Frank-Wolfe with away steps: step 1 of gdmm by Algorithm 2 of Yen et al. 2016.
 *
 * All factors of a block of examples move together. alpha = sum_v c_v v, a vertex v taking one state y_f per factor:
 * v_f = C (e_truth - e_{y_f}). With slope(v) = sum_f grad_f(y_f) - grad_f(truth), <grad, v> = -C slope(v): the greedy
 * vertex (15) has the largest slope (a factor whose truth is best stays at the truth: the vertex 0 of its shifted
 * simplex), the away vertex (16) the least among those in use. The step (17) is exact: -<grad, d> / (|Phi^T d|^2 + rho
 * sum |M_jf d_f - d_j|^2). An away step ends at c / (1 - c), where v- has left alpha (the paper's bound c would leave
 * c^2 of it).
 *
 * A block may be large, so a step goes from factor to factor in phases and can stop after each one. What was moved by
 * then is in order: up to MEASURE nothing moves, COMMIT moves alpha_f together with its share of w = Phi^T alpha, and
 * the c_v follow when it is through. */
#include <string.h>
#include "learn/gdmm/gdmm.h"

typedef struct span { /* examples, tokens and edges of a block */
    int32_t first, end;
    int64_t token, token_end, edge, edge_end;
} span;

static span span_of(const fgi_learn_gdmm *g, int64_t block) {
    const fgi_learn_data *d = &g->L->data;
    int64_t first = block * g->s.away, end = first + g->s.away;
    if (end > d->n_examples) end = d->n_examples;
    return (span){(int32_t)first, (int32_t)end, d->token_begin[first], d->token_begin[end],
        fgi_learn_gdmm_edge_begin(g, (int32_t)first), fgi_learn_gdmm_edge_begin(g, (int32_t)end)};
}

int64_t fgi_away_width(const fgi_learn_gdmm *g, int64_t block) {
    span r = span_of(g, block);
    return r.token_end - r.token + 2 * (r.edge_end - r.edge);
}

int64_t fgi_away_factors(const fgi_learn_gdmm *g, int64_t block) {
    span r = span_of(g, block);
    return r.token_end - r.token + r.edge_end - r.edge;
}

/* ---- vertices ---------------------------------------------------------------------------------------------------- */

/* A further vertex of weight 0, which takes `labels` over. */
int fgi_away_add(fgi_learn_gdmm *g, int64_t block, int32_t *labels) {
    fgi_away *a = &g->away[block];
    if (a->n == a->capacity) {
        const int32_t capacity = 2 * a->n + 1;
        if (!fgi_resize(&a->vertex, capacity, sizeof *a->vertex) ||
            !fgi_resize(&a->weight, capacity, sizeof *a->weight))
            return 0;
        g->bytes += (capacity - a->capacity) * (int64_t)(sizeof *a->vertex + sizeof *a->weight);
        a->capacity = capacity;
    }
    g->bytes += fgi_away_width(g, block) * (int64_t)sizeof *labels;
    a->vertex[a->n] = labels;
    a->weight[a->n++] = 0.0;
    return 1;
}

static void drop(fgi_learn_gdmm *g, int64_t block, int32_t v) {
    fgi_away *a = &g->away[block];
    g->bytes -= fgi_away_width(g, block) * (int64_t)sizeof **a->vertex;
    free(a->vertex[v]);
    a->n--;
    a->vertex[v] = a->vertex[a->n];
    a->weight[v] = a->weight[a->n];
}

void fgi_away_clear(fgi_learn_gdmm *g, int64_t block) {
    while (g->away[block].n) drop(g, block, g->away[block].n - 1);
}

/* alpha = 0 is the vertex of all truths. */
fgi_rc fgi_away_start(fgi_learn_gdmm *g) {
    const int32_t *truth = g->L->data.truth;
    g->n_away = (g->L->data.n_examples + (int64_t)g->s.away - 1) / g->s.away;
    if (!(g->away = fgi_calloc(g->n_away, sizeof *g->away))) return FGI_NO_MEMORY;
    if (!(g->step.dense = fgi_calloc(g->L->dimension, sizeof(double)))) return FGI_NO_MEMORY;
    g->bytes += g->L->dimension * (int64_t)sizeof(double);
    for (int64_t block = 0; block < g->n_away; block++) {
        span r = span_of(g, block);
        int32_t *v = fgi_alloc(fgi_away_width(g, block), sizeof *v), *y = v;
        if (!v || !fgi_away_add(g, block, v)) {
            free(v);
            return FGI_NO_MEMORY;
        }
        for (int64_t t = r.token; t < r.token_end; t++) *y++ = truth[t];
        for (int32_t i = r.first; i < r.end && g->n_edges; i++)
            for (int64_t e = fgi_learn_gdmm_edge_begin(g, i); e < fgi_learn_gdmm_edge_begin(g, i + 1); e++) {
                *y++ = truth[g->L->data.token_begin[i] + g->edges[e].u];
                *y++ = truth[g->L->data.token_begin[i] + g->edges[e].v];
            }
        g->away[block].weight[0] = 1.0;
    }
    return FGI_OK;
}

/* The learner may be gone by now. */
void fgi_away_free(fgi_learn_gdmm *g) {
    for (int64_t k = 0; g->away && k < g->n_away; k++) {
        for (int32_t v = 0; v < g->away[k].n; v++) free(g->away[k].vertex[v]);
        free(g->away[k].vertex), free(g->away[k].weight);
    }
    free(g->away), free(g->step.greedy), free(g->step.slope), free(g->step.dense);
}

/* (14): c_v of all vertices, the chosen one being moved to or away from. Those that vanish go. */
static fgi_rc move_weights(fgi_learn_gdmm *g, fgi_away_step *s) {
    fgi_away *a = &g->away[s->block];
    const size_t size = (size_t)fgi_away_width(g, s->block) * sizeof **a->vertex;
    const int dropped =
        s->sign < 0 && s->size == s->most; /* exactly: the others keep their shares and are scaled to sum 1 */
    int32_t at = s->chosen;
    double total = 0;
    if (at == a->n) { /* a greedy vertex may be in use already */
        for (at = 0; at < a->n && memcmp(a->vertex[at], s->greedy, size) != 0;) at++;
        if (at == a->n) {
            if (!fgi_away_add(g, s->block, s->greedy)) return FGI_NO_MEMORY;
            s->greedy = NULL;
        }
    }
    for (int32_t v = 0; v < a->n; v++) {
        if (dropped) a->weight[v] = v == at ? 0.0 : a->weight[v];
        else a->weight[v] = a->weight[v] * (1 - s->sign * s->size) + (v == at ? s->sign * s->size : 0.0);
    }
    for (int32_t v = a->n - 1; v >= 0; v--)
        if (a->weight[v] <= 1e-12) drop(g, s->block, v);
    for (int32_t v = 0; v < a->n; v++) total += a->weight[v];
    for (int32_t v = 0; v < a->n; v++) a->weight[v] /= total; /* rounding only */
    return FGI_OK;
}

/* ---- a factor in each phase --------------------------------------------------------------------------------- */

typedef struct factor {
    int32_t example;
    int64_t token, edge; /* its number; the other is -1 */
    int64_t place;       /* place of the token's label, or of the edge's two, in a vertex */
    int64_t first;       /* token of the example */
} factor;

static int64_t factor_begin(const fgi_learn_gdmm *g, int32_t i, int edges) {
    return edges ? fgi_learn_gdmm_edge_begin(g, i) : g->L->data.token_begin[i];
}

static factor factor_at(const fgi_learn_gdmm *g, fgi_away_step *s, const span *r) {
    const int64_t tokens = r->token_end - r->token, rest = s->at - tokens;
    const int edges = rest >= 0;
    const int64_t number = edges ? r->edge + rest : r->token + s->at;
    int32_t i = s->example; /* mostly still right */
    if (i < r->first || i >= r->end || factor_begin(g, i, edges) > number) i = r->first;
    while (factor_begin(g, i + 1, edges) <= number) i++;
    s->example = i;
    return (factor){
        i, edges ? -1 : number, edges ? number : -1, edges ? tokens + 2 * rest : s->at, g->L->data.token_begin[i]};
}

/* SLOPES: the greedy state, and what the factor adds to all slopes. */
static fgi_rc add_slopes(fgi_learn_gdmm *g, fgi_away_step *s, const factor *f) {
    const fgi_learn_data *d = &g->L->data;
    const fgi_away *a = &g->away[s->block];
    int32_t *greedy = s->greedy + f->place;
    if (f->token >= 0) {
        double value;
        const int32_t z = d->truth[f->token],
                      best = fgi_learn_gdmm_unary_argmax(g, f->token, &value); /* leaves gradients of all in use */
        const double truth = g->scores[z];
        *greedy = best >= 0 && value > truth ? best : z;
        for (int32_t v = 0; v < a->n; v++) s->slope[v] += g->scores[a->vertex[v][f->place]] - truth;
        if (*greedy != z) s->slope[a->n] += value - truth, g->loss[f->example] += value - truth;
        return FGI_OK;
    }
    const fgi_edge_block *e = &g->edges[f->edge];
    const int32_t k = d->n_labels, zu = d->truth[f->first + e->u], zv = d->truth[f->first + e->v];
    fgi_argmax found;
    fgi_rc rc = fgi_learn_gdmm_pair_argmax(g, f->example, f->edge, &found);
    if (rc) return rc;
    const double truth = fgi_learn_gdmm_pair_gradient(g, f->example, f->edge, zu, zv);
    const int wrong = found.state >= 0 && found.value > truth;
    greedy[0] = wrong ? (int32_t)(found.state / k) : zu;
    greedy[1] = wrong ? (int32_t)(found.state % k) : zv;
    for (int32_t v = 0; v < a->n; v++) {
        const int32_t *y = a->vertex[v] + f->place;
        if (y[0] != zu || y[1] != zv)
            s->slope[v] += fgi_learn_gdmm_pair_gradient(g, f->example, f->edge, y[0], y[1]) - truth;
    }
    if (wrong) s->slope[a->n] += found.value - truth, g->loss[f->example] += found.value - truth;
    return FGI_OK;
}

/* GATHER, first: labels and states of the direction are put where alpha has none, so that one index serves both. */
static fgi_rc make_room(fgi_learn_gdmm *g, const factor *f, const int32_t *y) {
    const int32_t *truth = g->L->data.truth + f->first;
    if (f->token >= 0) return fgi_support_insert(g, &g->tokens[f->token], *y) < 0 ? FGI_NO_MEMORY : FGI_OK;
    fgi_edge_block *e = &g->edges[f->edge];
    int known = y[0] == truth[e->u] && y[1] == truth[e->v];
    for (int32_t s = 0; s < e->n && !known; s++) known = e->state[2 * s] == y[0] && e->state[2 * s + 1] == y[1];
    if (known) return FGI_OK;
    if (fgi_support_insert(g, &g->tokens[f->first + e->u], y[0]) < 0 ||
        fgi_support_insert(g, &g->tokens[f->first + e->v], y[1]) < 0)
        return FGI_NO_MEMORY;
    if (!fgi_edge_reserve(g, e, e->n + 1)) return FGI_NO_MEMORY;
    e->state[2 * e->n] = y[0], e->state[2 * e->n + 1] = y[1];
    e->beta[e->n++] = 0.0;
    return FGI_OK;
}

/* An entry x of Phi_f^T d_f. The sum over all factors is in s->dense from GATHER to COMMIT:
 * |Phi^T d|^2 = sum_f <d_f, Phi_f (Phi^T d)>. */
static fgi_rc entry(fgi_learn_gdmm *g, fgi_away_step *s, int64_t at, double x) {
    if (s->phase == FGI_AWAY_GATHER) s->dense[at] += x;
    else if (s->phase == FGI_AWAY_MEASURE) s->sum += x * s->dense[at];
    else {
        s->dense[at] = 0.0;
        return fgi_learn_gdmm_add_weight(g, at, s->size * x);
    }
    return FGI_OK;
}

static fgi_rc pair_entries(fgi_learn_gdmm *g, fgi_away_step *s, int64_t edge, int32_t a, int32_t b, double x) {
    const fgi_learn_data *d = &g->L->data;
    const int64_t n = d->n_labels, at = g->L->unary + a * n + b;
    fgi_rc rc = FGI_OK;
    if (!d->edge_row) return entry(g, s, at, x);
    for (int64_t j = d->edge_row[edge]; !rc && j < d->edge_row[edge + 1]; j++)
        rc = entry(g, s, at + d->edge_feature[j] * n * n, d->edge_value ? x * d->edge_value[j] : x);
    return rc;
}

/* An entry of the direction d = sign * (vertex - now), in the coordinate of a label. */
static double along(
    const fgi_learn_gdmm *g, const fgi_away_step *s, int32_t truth, int32_t state, int32_t label, double now) {
    return s->sign * (g->C * ((label == truth) - (label == state)) - now);
}

static fgi_rc walk_token(fgi_learn_gdmm *g, fgi_away_step *s, int64_t token, int32_t y) {
    const fgi_learn_data *d = &g->L->data;
    const fgi_support *t = &g->tokens[token];
    fgi_rc rc = FGI_OK;
    for (int32_t at = 0; at < t->n; at++) {
        const double x = along(g, s, d->truth[token], y, t->label[at], t->value[at]);
        for (int64_t j = d->row_begin[token]; x != 0.0 && !rc && j < d->row_begin[token + 1]; j++)
            rc = entry(g, s, (int64_t)d->feature[j] * d->n_labels + t->label[at], d->value ? x * d->value[j] : x);
        if (s->phase == FGI_AWAY_COMMIT) t->value[at] += s->size * x;
    }
    return rc;
}

static double beta_along(
    const fgi_learn_gdmm *g, const fgi_away_step *s, const fgi_edge_block *e, int32_t at, const int32_t *y) {
    const int here = e->state[2 * at] == y[0] && e->state[2 * at + 1] == y[1];
    return s->sign * ((here ? g->C : 0.0) - e->beta[at]);
}

static fgi_rc walk_edge(fgi_learn_gdmm *g, fgi_away_step *s, const factor *f, const int32_t *y) {
    const int32_t *truth = g->L->data.truth + f->first;
    fgi_edge_block *e = &g->edges[f->edge];
    fgi_rc rc = FGI_OK;
    double total = 0;
    for (int32_t at = 0; at < e->n && !rc; at++) {
        const double x = beta_along(g, s, e, at, y);
        total += x;
        if (x != 0.0) rc = pair_entries(g, s, f->edge, e->state[2 * at], e->state[2 * at + 1], -x);
    }
    if (total != 0.0 && !rc) rc = pair_entries(g, s, f->edge, truth[e->u], truth[e->v], total);
    return rc;
}

/* MEASURE: adds rho |M_jf d_f - d_j|^2 of both tokens of an edge; COMMIT: M_jf alpha_f moves. */
static void walk_marginals(
    fgi_learn_gdmm *g, fgi_away_step *s, const factor *f, const int32_t *y, const int32_t *vertex, const span *r) {
    const fgi_edge_block *e = &g->edges[f->edge];
    for (int side = 0; side < 2; side++) {
        const int64_t token = f->first + (side ? e->v : e->u);
        const int32_t z = g->L->data.truth[token];
        const fgi_support *t = &g->tokens[token];
        double *row = fgi_support_row(t, 1 + 2 * (side ? e->kv : e->ku));
        for (int32_t p = 0; p < t->n; p++) {
            const double x = along(g, s, z, y[side], t->label[p], row[p]);
            if (s->phase == FGI_AWAY_COMMIT) row[p] += s->size * x;
            else {
                const double off = x - along(g, s, z, vertex[token - r->token], t->label[p], t->value[p]);
                s->sum += g->rho * off * off;
            }
        }
    }
}

static void move_betas(fgi_learn_gdmm *g, fgi_away_step *s, fgi_edge_block *e, const int32_t *y) {
    int32_t n = 0;
    for (int32_t at = 0; at < e->n; at++) {
        const double beta = e->beta[at] + s->size * beta_along(g, s, e, at, y);
        if (beta <= 1e-14 * g->C) continue;
        e->state[2 * n] = e->state[2 * at], e->state[2 * n + 1] = e->state[2 * at + 1];
        e->beta[n++] = beta;
    }
    e->n = n;
}

static fgi_rc visit_factor(fgi_learn_gdmm *g, fgi_away_step *s, const span *r) {
    const factor f = factor_at(g, s, r);
    const fgi_away *a = &g->away[s->block];
    if (s->phase == FGI_AWAY_SLOPES) return add_slopes(g, s, &f);
    if (s->phase == FGI_AWAY_MULTIPLIERS) {
        fgi_learn_gdmm_step_multipliers(g, f.token);
        return FGI_OK;
    }
    const int32_t *vertex = s->chosen < a->n ? a->vertex[s->chosen] : s->greedy, *y = vertex + f.place;
    fgi_rc rc = s->phase == FGI_AWAY_GATHER ? make_room(g, &f, y) : FGI_OK;
    if (rc) return rc;
    if (f.token >= 0) return walk_token(g, s, f.token, *y);
    if ((rc = walk_edge(g, s, &f, y)) || s->phase == FGI_AWAY_GATHER) return rc;
    walk_marginals(g, s, &f, y, vertex, r);
    if (s->phase == FGI_AWAY_COMMIT) move_betas(g, s, &g->edges[f.edge], y);
    return FGI_OK;
}

/* ---- a step ------------------------------------------------------------------------------------------------------ */

static fgi_rc begin_step(fgi_learn_gdmm *g, fgi_away_step *s, int64_t block) {
    const span r = span_of(g, block);
    const int32_t n = g->away[block].n + 1;
    free(s->greedy);
    s->greedy = fgi_calloc(fgi_away_width(g, block), sizeof *s->greedy);
    if (!s->greedy || !fgi_resize(&s->slope, n, sizeof *s->slope)) return FGI_NO_MEMORY;
    for (int32_t v = 0; v < n; v++) s->slope[v] = 0.0;
    for (int32_t i = r.first; i < r.end; i++) g->loss[i] = 0.0;
    s->phase = FGI_AWAY_SLOPES, s->block = block, s->at = 0, s->chosen = 0;
    s->sign = s->descent = s->most = s->sum = s->size = 0.0;
    return FGI_OK;
}

/* Towards the greedy vertex or away from the worst, whichever falls more steeply; 0: neither does. */
static int choose(fgi_learn_gdmm *g, fgi_away_step *s) {
    const fgi_away *a = &g->away[s->block];
    double mean = 0;
    int32_t least = 0;
    for (int32_t v = 0; v < a->n; v++) {
        mean += a->weight[v] * s->slope[v];
        if (s->slope[v] < s->slope[least]) least = v;
    }
    const int greedy = s->slope[a->n] - mean >= mean - s->slope[least];
    const double c = a->weight[least];
    s->chosen = greedy ? a->n : least;
    s->sign = greedy ? 1.0 : -1.0;
    s->most = greedy ? 1.0 : c / (1 - c);
    s->descent = s->sign * g->C * (s->slope[s->chosen] - mean); /* -<grad, d> */
    return s->descent > 1e-15 * g->C;
}

/* All factors are through: on to the next phase. */
static fgi_rc next_phase(fgi_learn_gdmm *g, fgi_away_step *s) {
    s->at = 0;
    switch (s->phase) {
    case FGI_AWAY_SLOPES: s->phase = choose(g, s) ? FGI_AWAY_GATHER : FGI_AWAY_MULTIPLIERS; break;
    case FGI_AWAY_GATHER: s->phase = FGI_AWAY_MEASURE, s->sum = 0.0; break;
    case FGI_AWAY_MEASURE:
        s->size = s->descent < s->most * s->sum ? s->descent / s->sum : s->most;
        s->phase = FGI_AWAY_COMMIT;
        break;
    case FGI_AWAY_COMMIT: {
        const int dropped = s->sign < 0 && s->size == s->most; /* then another step is due */
        fgi_rc rc = move_weights(g, s);
        if (rc) return rc;
        if (dropped) return begin_step(g, s, s->block);
        s->phase = FGI_AWAY_MULTIPLIERS;
        break;
    }
    default: s->phase = FGI_AWAY_IDLE, s->block = 0;
    }
    if (s->phase == FGI_AWAY_MULTIPLIERS) s->chosen = 0; /* it may be gone */
    return FGI_OK;
}

fgi_rc fgi_away_visit(fgi_learn_gdmm *g, int64_t block, double deadline) {
    fgi_away_step *s = &g->step;
    const span r = span_of(g, block);
    fgi_rc rc = s->phase == FGI_AWAY_IDLE ? begin_step(g, s, block) : s->block == block ? FGI_OK : FGI_BAD_ARGUMENT;
    while (!rc && s->phase != FGI_AWAY_IDLE) {
        const int64_t n = s->phase == FGI_AWAY_MULTIPLIERS ? r.token_end - r.token : fgi_away_factors(g, block);
        while (!rc && s->at < n) {
            rc = visit_factor(g, s, &r);
            s->at++;
            if (!rc && fgi_clock() >= deadline) return FGI_OK;
        }
        if (!rc) rc = next_phase(g, s);
    }
    return rc;
}

/* After a checkpoint was read: Phi^T d as far as it was. */
fgi_rc fgi_away_gather(fgi_learn_gdmm *g) {
    fgi_away_step *s = &g->step;
    if (s->phase != FGI_AWAY_GATHER && s->phase != FGI_AWAY_MEASURE) return FGI_OK;
    const span r = span_of(g, s->block);
    const fgi_away_step kept = *s;
    const int64_t n = s->phase == FGI_AWAY_GATHER ? s->at : fgi_away_factors(g, s->block);
    fgi_rc rc = FGI_OK;
    s->phase = FGI_AWAY_GATHER;
    for (s->at = 0; !rc && s->at < n; s->at++) rc = visit_factor(g, s, &r);
    s->phase = kept.phase, s->at = kept.at;
    return rc;
}
