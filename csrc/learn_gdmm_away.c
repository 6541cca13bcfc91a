/* learn_gdmm_away.c - Frank-Wolfe with away steps: step 1 of gdmm by Algorithm 2 of gdmm-learning.txt.
 *
 * All factors of a block of examples move together. alpha = sum_v c_v v, a vertex v taking one state y_f per factor:
 * v_f = C (e_truth - e_{y_f}). With slope(v) = sum_f grad_f(y_f) - grad_f(truth), <grad, v> = -C slope(v): the greedy vertex
 * (15) has the largest slope (a factor whose truth is best stays at the truth: the vertex 0 of its shifted simplex), the away
 * vertex (16) the least among those in use. The step (17) is exact: -<grad, d> / (|Phi^T d|^2 + rho sum |M_jf d_f - d_j|^2).
 * An away step ends at c / (1 - c), where v- has left alpha (the paper's bound c would leave c^2 of it). */
#include <string.h>
#include "learn_gdmm.h"

typedef struct span { /* examples, tokens and edges of a block */
    int32_t first, end;
    int64_t token, token_end, edge, edge_end;
} span;

/* d = sign * (vertex - alpha); the vertex has a label per token, then two per edge. */
typedef struct direction {
    const int32_t *vertex;
    double sign;
} direction;

static span span_of(const fgi_gdmm *g, int64_t block) {
    const fgi_learn_data *d = &g->L->data;
    int64_t first = block * g->s.away, end = first + g->s.away;
    if (end > d->n_examples) end = d->n_examples;
    return (span){ (int32_t)first, (int32_t)end, d->token_begin[first], d->token_begin[end],
                   fgi_gdmm_edge_begin(g, (int32_t)first), fgi_gdmm_edge_begin(g, (int32_t)end) };
}

int64_t fgi_away_width(const fgi_gdmm *g, int64_t block) {
    span r = span_of(g, block);
    return r.token_end - r.token + 2 * (r.edge_end - r.edge);
}

int fgi_away_reserve(fgi_gdmm *g, int64_t block, int32_t n) {
    fgi_away *a = &g->away[block];
    if (n <= a->capacity) return 1;
    const int64_t width = fgi_away_width(g, block);
    int32_t capacity = 2 * n;
    int32_t *vertex = fgi_alloc(capacity * width, sizeof *vertex);
    double *weight = fgi_alloc(capacity, sizeof *weight), *slope = fgi_alloc(capacity, sizeof *slope);
    if (!vertex || !weight || !slope) {
        free(vertex), free(weight), free(slope);
        return 0;
    }
    if (a->n) {
        memcpy(vertex, a->vertex, (size_t)(a->n * width) * sizeof *vertex);
        memcpy(weight, a->weight, (size_t)a->n * sizeof *weight);
    }
    free(a->vertex), free(a->weight), free(a->slope);
    g->bytes += (capacity - a->capacity) * (width * (int64_t)sizeof *vertex + 2 * (int64_t)sizeof *weight);
    *a = (fgi_away){ a->n, capacity, vertex, weight, slope };
    return 1;
}

/* alpha = 0 is the vertex of all truths. */
fgi_rc fgi_away_start(fgi_gdmm *g) {
    const int32_t *truth = g->L->data.truth;
    g->n_away = (g->L->data.n_examples + (int64_t)g->s.away - 1) / g->s.away;
    if (!(g->away = fgi_calloc(g->n_away, sizeof *g->away))) return FGI_NO_MEMORY;
    for (int64_t block = 0; block < g->n_away; block++) {
        span r = span_of(g, block);
        if (!fgi_away_reserve(g, block, 1)) return FGI_NO_MEMORY;
        int32_t *v = g->away[block].vertex;
        for (int64_t t = r.token; t < r.token_end; t++) *v++ = truth[t];
        for (int32_t i = r.first; i < r.end && g->n_edges; i++)
            for (int64_t e = fgi_gdmm_edge_begin(g, i); e < fgi_gdmm_edge_begin(g, i + 1); e++) {
                *v++ = truth[g->L->data.token_begin[i] + g->edges[e].u];
                *v++ = truth[g->L->data.token_begin[i] + g->edges[e].v];
            }
        g->away[block].weight[0] = 1.0;
        g->away[block].n = 1;
    }
    return FGI_OK;
}

/* The learner may be gone by now. */
void fgi_away_free(fgi_gdmm *g) {
    for (int64_t k = 0; g->away && k < g->n_away; k++) free(g->away[k].vertex), free(g->away[k].weight), free(g->away[k].slope);
    free(g->away);
}

/* ---- greedy and away vertices ------------------------------------------------------------------------------------ */

/* Writes the greedy vertex behind those in use, its slope and theirs. */
static fgi_rc find_slopes(fgi_gdmm *g, const span *r, fgi_away *a) {
    const fgi_learn_data *d = &g->L->data;
    const int64_t width = r->token_end - r->token + 2 * (r->edge_end - r->edge);
    const int32_t k = d->n_labels;
    int32_t *greedy = a->vertex + a->n * width;
    int64_t place = 0;
    for (int32_t v = 0; v <= a->n; v++) a->slope[v] = 0;
    for (int32_t i = r->first; i < r->end; i++) g->loss[i] = 0;
    for (int32_t i = r->first; i < r->end; i++)
        for (int64_t t = d->token_begin[i]; t < d->token_begin[i + 1]; t++, place++) {
            double value, truth;
            int32_t best = fgi_gdmm_unary_argmax(g, t, &value); /* leaves the gradients of all labels in use */
            truth = g->scores[d->truth[t]];
            greedy[place] = best >= 0 && value > truth ? best : d->truth[t];
            for (int32_t v = 0; v <= a->n; v++) a->slope[v] += g->scores[a->vertex[v * width + place]] - truth;
            if (value > truth) g->loss[i] += value - truth;
        }
    for (int32_t i = r->first; i < r->end && g->n_edges; i++)
        for (int64_t e = fgi_gdmm_edge_begin(g, i); e < fgi_gdmm_edge_begin(g, i + 1); e++, place += 2) {
            const int32_t zu = d->truth[d->token_begin[i] + g->edges[e].u], zv = d->truth[d->token_begin[i] + g->edges[e].v];
            fgi_argmax found;
            fgi_rc rc = fgi_gdmm_pair_argmax(g, i, e, &found);
            if (rc != FGI_OK) return rc;
            const double truth = fgi_gdmm_pair_gradient(g, i, e, zu, zv);
            const int wrong = found.state >= 0 && found.value > truth;
            greedy[place] = wrong ? (int32_t)(found.state / k) : zu;
            greedy[place + 1] = wrong ? (int32_t)(found.state % k) : zv;
            for (int32_t v = 0; v < a->n; v++) {
                const int32_t *y = a->vertex + v * width + place;
                if (y[0] != zu || y[1] != zv) a->slope[v] += fgi_gdmm_pair_gradient(g, i, e, y[0], y[1]) - truth;
            }
            if (wrong) a->slope[a->n] += found.value - truth, g->loss[i] += found.value - truth;
        }
    return FGI_OK;
}

/* ---- the direction ----------------------------------------------------------------------------------------------- */

static double along(const fgi_gdmm *g, double sign, int32_t truth, int32_t state, int32_t label, double now) {
    return sign * (g->s.C * ((label == truth) - (label == state)) - now);
}

/* The direction's labels and states are put where alpha has none, so that one index serves both. */
static fgi_rc make_room(fgi_gdmm *g, const span *r, const int32_t *y) {
    const fgi_learn_data *d = &g->L->data;
    for (int64_t t = r->token; t < r->token_end; t++)
        if (fgi_support_insert(g, &g->tokens[t], *y++) < 0) return FGI_NO_MEMORY;
    for (int32_t i = r->first; i < r->end && g->n_edges; i++)
        for (int64_t at = fgi_gdmm_edge_begin(g, i); at < fgi_gdmm_edge_begin(g, i + 1); at++, y += 2) {
            fgi_edge_block *e = &g->edges[at];
            fgi_support *u = &g->tokens[d->token_begin[i] + e->u], *v = &g->tokens[d->token_begin[i] + e->v];
            int known = y[0] == d->truth[d->token_begin[i] + e->u] && y[1] == d->truth[d->token_begin[i] + e->v];
            for (int32_t s = 0; s < e->n && !known; s++) known = e->state[2 * s] == y[0] && e->state[2 * s + 1] == y[1];
            if (known) continue;
            if (fgi_support_insert(g, u, y[0]) < 0 || fgi_support_insert(g, v, y[1]) < 0) return FGI_NO_MEMORY;
            if (!fgi_edge_reserve(g, e, e->n + 1)) return FGI_NO_MEMORY;
            e->state[2 * e->n] = y[0], e->state[2 * e->n + 1] = y[1];
            e->beta[e->n++] = 0.0;
        }
    return FGI_OK;
}

enum { GATHER, MEASURE, APPLY };

/* Walks Phi^T d entry by entry. L->dense, zero before and after, holds it: |Phi^T d|^2 = sum_f <d_f, Phi_f (Phi^T d)>. */
typedef struct walk {
    int task;
    double step, sum;
} walk;

static fgi_rc entry(fgi_gdmm *g, walk *k, int64_t at, double x) {
    double *dense = g->L->dense + at;
    if (k->task == GATHER) *dense += x;
    else if (k->task == MEASURE) k->sum += x * *dense;
    else if (*dense != 0.0) { /* the first to come applies the whole change */
        const double change = k->step * *dense;
        *dense = 0.0;
        return fgi_gdmm_add_weight(g, at, change);
    }
    return FGI_OK;
}

static fgi_rc pair_entries(fgi_gdmm *g, walk *k, int64_t edge, int32_t a, int32_t b, double x) {
    const fgi_learn_data *d = &g->L->data;
    const int64_t n = d->n_labels, at = g->L->unary + a * n + b;
    fgi_rc rc = FGI_OK;
    if (!d->edge_row) return entry(g, k, at, x);
    for (int64_t j = d->edge_row[edge]; rc == FGI_OK && j < d->edge_row[edge + 1]; j++)
        rc = entry(g, k, at + d->edge_feature[j] * n * n, d->edge_value ? x * d->edge_value[j] : x);
    return rc;
}

static fgi_rc each_entry(fgi_gdmm *g, const span *r, direction way, walk *k) {
    const fgi_learn_data *d = &g->L->data;
    const int32_t *y = way.vertex;
    fgi_rc rc = FGI_OK;
    for (int64_t t = r->token; t < r->token_end; t++, y++)
        for (int32_t at = 0; at < g->tokens[t].n; at++) {
            const int32_t label = g->tokens[t].label[at];
            const double x = along(g, way.sign, d->truth[t], *y, label, g->tokens[t].value[at]);
            for (int64_t j = d->row_begin[t]; x != 0.0 && rc == FGI_OK && j < d->row_begin[t + 1]; j++)
                rc = entry(g, k, (int64_t)d->feature[j] * d->n_labels + label, d->value ? x * d->value[j] : x);
        }
    for (int32_t i = r->first; i < r->end && g->n_edges; i++)
        for (int64_t at = fgi_gdmm_edge_begin(g, i); at < fgi_gdmm_edge_begin(g, i + 1); at++, y += 2) {
            const fgi_edge_block *e = &g->edges[at];
            double total = 0;
            for (int32_t s = 0; s < e->n && rc == FGI_OK; s++) {
                const int here = e->state[2 * s] == y[0] && e->state[2 * s + 1] == y[1];
                const double x = way.sign * ((here ? g->s.C : 0.0) - e->beta[s]);
                total += x;
                if (x != 0.0) rc = pair_entries(g, k, at, e->state[2 * s], e->state[2 * s + 1], -x);
            }
            if (total != 0.0 && rc == FGI_OK)
                rc = pair_entries(g, k, at, d->truth[d->token_begin[i] + e->u], d->truth[d->token_begin[i] + e->v], total);
        }
    return rc;
}

/* sum |M_jf d_f - d_j|^2 when step is 0; else the marginals M_jf alpha_f move. */
static double each_marginal(fgi_gdmm *g, const span *r, direction way, double step) {
    const fgi_learn_data *d = &g->L->data;
    const int32_t *y = way.vertex + (r->token_end - r->token);
    double sum = 0;
    for (int32_t i = r->first; i < r->end && g->n_edges; i++)
        for (int64_t at = fgi_gdmm_edge_begin(g, i); at < fgi_gdmm_edge_begin(g, i + 1); at++)
            for (int side = 0; side < 2; side++, y++) {
                const fgi_edge_block *e = &g->edges[at];
                const int64_t t = d->token_begin[i] + (side ? e->v : e->u);
                const fgi_support *s = &g->tokens[t];
                double *row = fgi_support_row(s, 1 + 2 * (side ? e->kv : e->ku));
                for (int32_t p = 0; p < s->n; p++) {
                    double x = along(g, way.sign, d->truth[t], *y, s->label[p], row[p]);
                    if (step != 0.0) row[p] += step * x;
                    else x -= along(g, way.sign, d->truth[t], way.vertex[t - r->token], s->label[p], s->value[p]), sum += x * x;
                }
            }
    return sum;
}

static void move_alpha(fgi_gdmm *g, const span *r, direction way, double step) {
    const int32_t *y = way.vertex;
    each_marginal(g, r, way, step);
    for (int64_t t = r->token; t < r->token_end; t++, y++)
        for (int32_t at = 0; at < g->tokens[t].n; at++) {
            double *value = &g->tokens[t].value[at];
            *value += step * along(g, way.sign, g->L->data.truth[t], *y, g->tokens[t].label[at], *value);
        }
    for (int64_t at = r->edge; at < r->edge_end; at++, y += 2) {
        fgi_edge_block *e = &g->edges[at];
        int32_t n = 0;
        for (int32_t s = 0; s < e->n; s++) {
            const int32_t a = e->state[2 * s], b = e->state[2 * s + 1];
            const double beta = e->beta[s] + step * way.sign * ((a == y[0] && b == y[1] ? g->s.C : 0.0) - e->beta[s]);
            if (beta <= 1e-14 * g->s.C) continue;
            e->state[2 * n] = a, e->state[2 * n + 1] = b;
            e->beta[n++] = beta;
        }
        e->n = n;
    }
}

/* ---- a step ------------------------------------------------------------------------------------------------------ */

/* (14): c_v of all vertices, `at` being the one moved to or away from. Those that vanish go. */
static void move_weights(fgi_away *a, int64_t width, int32_t at, double sign, double step) {
    const double shrink = 1 - sign * step;
    int32_t n = 0;
    double total = 0;
    if (sign > 0) { /* a greedy vertex may be in use already */
        int32_t same = 0;
        while (memcmp(a->vertex + same * width, a->vertex + at * width, (size_t)width * sizeof *a->vertex) != 0) same++;
        if (same == at) a->weight[a->n++] = 0.0;
        at = same;
    }
    for (int32_t v = 0; v < a->n; v++) {
        const double c = a->weight[v] * shrink + (v == at ? sign * step : 0.0);
        if (c <= 1e-12) continue;
        memmove(a->vertex + n * width, a->vertex + v * width, (size_t)width * sizeof *a->vertex);
        total += a->weight[n++] = c;
    }
    a->n = n;
    for (int32_t v = 0; v < n; v++) a->weight[v] /= total; /* rounding only */
}

/* One iteration of Algorithm 2; *dropped: the away vertex left, so another one is due. */
static fgi_rc step(fgi_gdmm *g, int64_t block, int *dropped) {
    const span r = span_of(g, block);
    const int64_t width = fgi_away_width(g, block);
    fgi_away *a = &g->away[block];
    *dropped = 0;
    if (!fgi_away_reserve(g, block, a->n + 1)) return FGI_NO_MEMORY;
    fgi_rc rc = find_slopes(g, &r, a);
    if (rc != FGI_OK) return rc;
    double mean = 0;
    int32_t least = 0;
    for (int32_t v = 0; v < a->n; v++) {
        mean += a->weight[v] * a->slope[v];
        if (a->slope[v] < a->slope[least]) least = v;
    }
    const int greedy = a->slope[a->n] - mean >= mean - a->slope[least];
    const int32_t at = greedy ? a->n : least;
    const double descent = g->s.C * (greedy ? a->slope[at] - mean : mean - a->slope[at]); /* -<grad, d> */
    if (!(descent > 1e-15 * g->s.C)) return FGI_OK;
    const double c = greedy ? 0.0 : a->weight[at], most = greedy ? 1.0 : c / (1 - c);
    const direction way = { a->vertex + at * width, greedy ? 1.0 : -1.0 };
    if ((rc = make_room(g, &r, way.vertex)) != FGI_OK) return rc;
    walk k = { GATHER, 0, 0 };
    each_entry(g, &r, way, &k);
    k.task = MEASURE;
    each_entry(g, &r, way, &k);
    const double curvature = k.sum + g->rho * each_marginal(g, &r, way, 0.0);
    k.step = descent < most * curvature ? descent / curvature : most;
    k.task = APPLY;
    if ((rc = each_entry(g, &r, way, &k)) != FGI_OK) return rc;
    move_alpha(g, &r, way, k.step);
    *dropped = !greedy && k.step == most;
    if (*dropped) a->weight[at] = 0.0, k.step = 0.0; /* exactly: the others keep their shares and are scaled to sum 1 */
    move_weights(a, width, at, way.sign, k.step);
    return FGI_OK;
}

fgi_rc fgi_away_visit(fgi_gdmm *g, int64_t block) {
    const span r = span_of(g, block);
    int dropped = 1;
    while (dropped) {
        fgi_rc rc = step(g, block, &dropped);
        if (rc != FGI_OK) return rc;
    }
    for (int64_t t = r.token; t < r.token_end; t++) fgi_gdmm_step_multipliers(g, t);
    return FGI_OK;
}
