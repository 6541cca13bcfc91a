/* dual/spins.c - a binary pairwise model as a graph of spins: see dual/cycles.h.
 *
 * With s = -1, 1 for labels 0, 1, a table is c + h_i s_i + h_j s_j + J s_i s_j, with J = (t00 + t11 - t01 - t10) / 4
 * and so on. |J| s_i s_j is |J| where the edge is satisfied, and 2 |J| less where it is violated. */
#include "base/util.h"
#include "dual/cycles.h"
#include "model/marginal.h"

/* What becomes edges: parallel ones are added up. */
typedef struct coupling {
    int32_t i, j; /* i < j */
    int32_t from; /* the edge it comes from, -1: none */
    double strength;
} coupling;

void fgi_spins_free(fgi_spins *g) {
    if (!g) return;
    fgi_arena_free(&g->arena);
    free(g);
}

static fgi_spins *blank(int32_t n, int32_t n_vars, int64_t most_edges) {
    fgi_spins *g = fgi_calloc(1, sizeof *g);
    if (!g) return NULL;
    g->n = n;
    g->n_vars = n_vars;
    g->ends = fgi_take(&g->arena, 2 * most_edges, int32_t);
    g->weight = fgi_take(&g->arena, most_edges, double);
    g->odd = fgi_take(&g->arena, most_edges, uint8_t);
    g->begin = fgi_take_zero(&g->arena, (int64_t)n + 1, int64_t);
    g->adj = fgi_take(&g->arena, 2 * most_edges, int32_t);
    g->node = fgi_take(&g->arena, n_vars, int32_t);
    g->flipped = fgi_take_zero(&g->arena, n_vars, uint8_t);
    if (!g->arena.failed) return g;
    fgi_spins_free(g);
    return NULL;
}

/* Parallel couplings, edge by edge. strengths of an edge are added in the order in which they come. map: where what
 * they came from has gone; top: what all satisfied edges score, is added to. 0: out of memory. */
static int add_edges(fgi_spins *g, const coupling *c, int64_t n, fgi_sum *top, int32_t *map) {
    fgi_arena arena = {0};
    int64_t *begin = fgi_take_zero(&arena, (int64_t)g->n + 2, int64_t);
    int32_t *sorted = fgi_take(&arena, n, int32_t), *slot = fgi_take(&arena, g->n, int32_t);
    fgi_sum *sum = fgi_take(&arena, n, fgi_sum);
    int32_t *edge_of = fgi_take(&arena, n, int32_t), *number = fgi_take(&arena, n, int32_t);
    double *magnitude = fgi_take(&arena, n, double);
    if (arena.failed) {
        fgi_arena_free(&arena);
        return 0;
    }
    for (int64_t k = 0; k < n; k++) begin[c[k].i + 2]++;
    for (int32_t i = 0; i < g->n; i++) begin[i + 1] += begin[i];
    for (int64_t k = 0; k < n; k++) sorted[begin[c[k].i + 1]++] = (int32_t)k;
    for (int32_t i = 0; i < g->n; i++) slot[i] = -1;
    int32_t raw = 0;
    for (int32_t i = 0; i < g->n; i++) {
        const int32_t first = raw;
        for (int64_t at = begin[i]; at < begin[i + 1]; at++) {
            const coupling *x = c + sorted[at];
            if (slot[x->j] < first) {
                slot[x->j] = raw;
                g->ends[2 * raw] = i;
                g->ends[2 * raw + 1] = x->j;
                sum[raw] = (fgi_sum){0};
                magnitude[raw++] = 0;
            }
            edge_of[sorted[at]] = slot[x->j];
            fgi_sum_add(&sum[slot[x->j]], x->strength);
            magnitude[slot[x->j]] += fabs(x->strength);
        }
    }
    int32_t m = 0;
    double all = fabs(top->sum);
    for (int32_t e = 0; e < raw; e++) {
        const double strength = fgi_sum_value(&sum[e]);
        all += magnitude[e];
        number[e] = -1;
        if (strength == 0) continue;
        g->ends[2 * m] = g->ends[2 * e];
        g->ends[2 * m + 1] = g->ends[2 * e + 1];
        g->weight[m] = 2 * fabs(strength);
        g->odd[m] = strength < 0;
        fgi_sum_add(top, fabs(strength));
        number[e] = m++;
    }
    g->m = m;
    g->error += 0x1p-51 * all + fgi_sum_error(n + 1, all);
    for (int64_t k = 0; k < n && map; k++) {
        const int32_t e = number[edge_of[k]];
        if (c[k].from >= 0) map[c[k].from] = e < 0 || g->odd[e] != (c[k].strength < 0) ? FGI_SPINS_LOST : e;
    }
    for (int32_t k = 0; k < 2 * m; k++) g->begin[g->ends[k] + 1]++;
    for (int32_t i = 0; i < g->n; i++) g->begin[i + 1] += g->begin[i];
    for (int32_t k = 0; k < 2 * m; k++) g->adj[g->begin[g->ends[k]]++] = k / 2;
    for (int32_t i = g->n; i > 0; i--) g->begin[i] = g->begin[i - 1];
    g->begin[0] = 0;
    fgi_arena_free(&arena);
    return 1;
}

/* ---- from a model --------------------------------------------------------------------------------------------- */

/* What the terms of a model add up to. */
typedef struct terms {
    const fgi_model *m;
    fgi_sum constant;
    fgi_sum *field; /* one per variable */
    coupling *couplings;
    int64_t n_couplings;
    double magnitude;
    int whole; /* every term is seen */
} terms;

/* Term k (fgi_best_of_term) is not seen, and counts as the most it can be. */
static void add_most(terms *t, int64_t k) {
    const double most = fgi_best_of_term(t->m, k);
    t->whole = 0;
    t->magnitude += most == -INFINITY ? 0 : fabs(most);
    fgi_sum_add(&t->constant, most);
}

static void add_field(terms *t, int32_t i, double u0, double u1) {
    fgi_assert(u0 < INFINITY && u1 < INFINITY);
    t->magnitude += fabs(u0) + fabs(u1);
    fgi_sum_add(&t->constant, 0.5 * u0);
    fgi_sum_add(&t->constant, 0.5 * u1);
    fgi_sum_add(&t->field[i], 0.5 * u1);
    fgi_sum_add(&t->field[i], -0.5 * u0);
}

/* Tables of two by two labels that are all finite: the spins; of one label and two: fields. */
static void add_factor(terms *t, int64_t f) {
    fgi_assert(f >= 0);
    const int32_t *cards = t->m->s->cards;
    const fgi_view v = fgi_factor_view(t->m, f);
    int seen = v.arity == 2 && cards[v.vars[0]] <= 2 && cards[v.vars[1]] <= 2;
    const int32_t i = v.vars[0], j = seen ? v.vars[1] : i, ci = cards[i], cj = cards[j];
    double x[4];
    for (int k = 0; k < 4 && seen; k++) {
        x[k] = fgi_view_at2(&v, ci == 2 ? k / 2 : 0, cj == 2 ? k % 2 : 0);
        seen = isfinite(x[k]) != 0;
    }
    if (!seen) {
        add_most(t, t->m->s->n_vars + f);
        return;
    }
    if (ci == 1 || cj == 1) {
        add_field(t, ci == 1 ? j : i, x[0], x[3]);
        return;
    }
    for (int k = 0; k < 4; k++) {
        t->magnitude += fabs(x[k]);
        x[k] *= 0.25;
        fgi_sum_add(&t->constant, x[k]);
        fgi_sum_add(&t->field[i], k >= 2 ? x[k] : -x[k]);
        fgi_sum_add(&t->field[j], k % 2 ? x[k] : -x[k]);
    }
    t->couplings[t->n_couplings++] = (coupling){i < j ? i : j, i < j ? j : i, -1, (x[0] - x[1]) + (x[3] - x[2])};
}

static void add_terms(terms *t) {
    const fgi_structure *s = t->m->s;
    t->whole = 1;
    t->magnitude = isfinite(s->constant) ? fabs(s->constant) : 0;
    fgi_sum_add(&t->constant, s->constant);
    for (int32_t i = 0; i < s->n_vars; i++) {
        const double *u = fgi_unary(t->m, i), u0 = u[0], u1 = u[s->cards[i] - 1];
        if (s->cards[i] <= 2 && isfinite(u0) && isfinite(u1)) add_field(t, i, u0, u1);
        else add_most(t, i);
    }
    for (int64_t f = 0; f < s->n_factors; f++) add_factor(t, f);
    for (int32_t i = 0; i < s->n_vars; i++) {
        const double field = fgi_sum_value(&t->field[i]);
        if (field != 0) t->couplings[t->n_couplings++] = (coupling){i, (int32_t)s->n_vars, -1, field};
    }
}

fgi_spins *fgi_spins_create(const fgi_model *m) {
    fgi_arena arena = {0};
    const int64_t n = m->s->n_vars, most = m->s->n_factors + n;
    terms t = {.m = m, .field = fgi_take_zero(&arena, n, fgi_sum), .couplings = fgi_take(&arena, most, coupling)};
    fgi_spins *g = arena.failed ? NULL : blank((int32_t)n + 1, (int32_t)n, most);
    if (g) {
        add_terms(&t);
        g->whole = t.whole;
        g->ground = (int32_t)n;
        for (int32_t i = 0; i < n; i++) g->node[i] = i;
        /* Each term has been rounded a few times, and sums once each. */
        g->error = 0x1p-49 * t.magnitude + fgi_sum_error(m->s->n_factors + n + 1, t.magnitude);
        const int ok = add_edges(g, t.couplings, t.n_couplings, &t.constant, NULL);
        g->top = fgi_sum_value(&t.constant);
        g->error += 0x1p-52 * fabs(g->top);
        if (!ok) {
            fgi_spins_free(g);
            g = NULL;
        }
    }
    fgi_arena_free(&arena);
    return g;
}

/* ---- what is known of each other ------------------------------------------------------------------------------ */

fgi_spins *fgi_spins_contract(
    const fgi_spins *g, const int32_t *cluster, const uint8_t *flipped, int32_t n_clusters, int32_t *map) {
    fgi_spins *to = blank(n_clusters, g->n_vars, g->m);
    coupling *c = fgi_alloc(g->m, sizeof *c);
    if (!to || !c) {
        free(c);
        fgi_spins_free(to);
        return NULL;
    }
    fgi_sum top = {0};
    fgi_sum_add(&top, g->top);
    int64_t n = 0;
    for (int32_t e = 0; e < g->m; e++) {
        const int32_t i = g->ends[2 * e], j = g->ends[2 * e + 1], a = cluster[i], b = cluster[j];
        const int odd = g->odd[e] ^ flipped[i] ^ flipped[j];
        map[e] = odd ? FGI_SPINS_LOST : FGI_SPINS_MET;
        if (a == b && odd) fgi_sum_add(&top, -g->weight[e]);
        if (a == b) continue;
        fgi_sum_add(&top, -0.5 * g->weight[e]); /* it comes back with the new edge */
        c[n++] = (coupling){a < b ? a : b, a < b ? b : a, e, odd ? -0.5 * g->weight[e] : 0.5 * g->weight[e]};
    }
    to->ground = cluster[g->ground];
    to->error = g->error;
    to->whole = g->whole;
    const int ok = add_edges(to, c, n, &top, map);
    free(c);
    if (!ok) {
        fgi_spins_free(to);
        return NULL;
    }
    to->top = fgi_sum_value(&top);
    to->error += 0x1p-52 * fabs(to->top) + fgi_sum_error(2 * (int64_t)g->m + 1, fabs(g->top) + fabs(to->top));
    for (int32_t i = 0; i < g->n_vars; i++) {
        to->node[i] = cluster[g->node[i]];
        to->flipped[i] = g->flipped[i] ^ flipped[g->node[i]];
    }
    /* The ground is 1, also where its cluster is turned round. */
    if (flipped[g->ground])
        for (int32_t i = 0; i < g->n_vars; i++) to->flipped[i] ^= 1;
    return to;
}

void fgi_spins_labels(const fgi_spins *g, const uint8_t *side, int32_t *labels) {
    for (int32_t i = 0; i < g->n_vars; i++) labels[i] = 1 ^ side[g->node[i]] ^ side[g->ground] ^ g->flipped[i];
}

void fgi_bonds_clear(fgi_bonds *b, int32_t n) {
    for (int32_t i = 0; i < n; i++) b->parent[i] = i, b->differs[i] = 0;
}

int32_t fgi_bonds_root(fgi_bonds *b, int32_t node, uint8_t *differs) {
    uint8_t way = 0;
    while (b->parent[node] != node) { /* halving paths */
        const int32_t parent = b->parent[node];
        b->differs[node] ^= b->differs[parent];
        b->parent[node] = b->parent[parent];
        way ^= b->differs[node];
        node = b->parent[node];
    }
    *differs = way;
    return node;
}

int fgi_bonds_join(fgi_bonds *b, int32_t i, int32_t j, int differ) {
    fgi_assert(i >= 0 && j >= 0);
    uint8_t p, q;
    const int32_t a = fgi_bonds_root(b, i, &p), c = fgi_bonds_root(b, j, &q);
    if (a == c) return (p ^ q) == differ ? 0 : -1;
    b->parent[a] = c;
    b->differs[a] = (uint8_t)(p ^ q ^ differ);
    return 1;
}
