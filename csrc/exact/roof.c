/* exact/roof.c - binary pairwise models as cuts: exact where all factors agree after flipping labels, roof duality
 * otherwise. Energies (minus the scores) are minimised here, as everywhere in the literature on cuts.
 *
 * A pairwise energy is A + (C-A) a + (D-C) b + (B+C-A-D) (1-a) b with A = E(0,0), B = E(0,1), C = E(1,0), D = E(1,1).
 * The last coefficient is an edge of a cut if it is not negative (submodular); flipping one of the variables changes
 * its sign. If some set of flips makes all of them non-negative, the minimum cut is the optimum. If not, every variable
 * gets a second node for its complement and every term is represented twice (Hammer, Hansen, Simeone 1984; Boros,
 * Hammer 2002): nodes that the source still reaches have the same label in some optimal labeling, and half the flow is
 * a lower bound on the energy. */
#include <string.h>
#include "fginfer_exact.h"
#include "base/maxflow.h"
#include "base/util.h"
#include "exact/presolve.h"

/* Scores; every entry finite. */
typedef struct roof_edge {
    int32_t i, j;
    double score[2][2];
} roof_edge;

typedef struct roof_result {
    double bound;     /* upper bound on the best score; the best score itself where exact */
    int32_t exact;    /* the model is submodular up to flips: all variables are labelled, optimally */
    int32_t finished; /* 0: the limits came first; labels are all -1, the bound is valid */
    int64_t labelled;
    double error; /* no labeling that agrees with the labels was better by more than this: rounding */
    double steps;
} roof_result;

/* Union-find with parities: flip[i] says whether i differs from its root. */
static int32_t root_of(int32_t *parent, uint8_t *flip, int32_t i) {
    int32_t r = i;
    uint8_t odd = 0;
    while (parent[r] != r) {
        odd ^= flip[r];
        r = parent[r];
    }
    while (parent[i] != r && i != r) { /* point the whole path at the root */
        int32_t up = parent[i];
        uint8_t mine = flip[i];
        parent[i] = r;
        flip[i] = odd;
        odd ^= mine;
        i = up;
    }
    return r;
}

static double coefficient(const roof_edge *e) { /* B + C - A - D in energies; 0 within rounding */
    const double t = (e->score[0][0] + e->score[1][1]) - (e->score[0][1] + e->score[1][0]);
    const double size = fabs(e->score[0][0]) + fabs(e->score[1][1]) + fabs(e->score[0][1]) + fabs(e->score[1][0]);
    return fabs(t) <= 1e-15 * size ? 0 : t;
}

/* Flips that make every coefficient non-negative; returns 0 where there are none. */
static int find_flips(int32_t n, int64_t n_edges, const roof_edge *edges, int32_t *parent, uint8_t *flip) {
    for (int32_t i = 0; i < n; i++) {
        parent[i] = i;
        flip[i] = 0;
    }
    for (int64_t k = 0; k < n_edges; k++) {
        const double t = coefficient(&edges[k]);
        if (t == 0) continue;
        const int32_t a = root_of(parent, flip, edges[k].i), b = root_of(parent, flip, edges[k].j);
        const uint8_t differ =
            (edges[k].i == a ? 0 : flip[edges[k].i]) ^ (edges[k].j == b ? 0 : flip[edges[k].j]) ^ (t < 0);
        if (a != b) {
            parent[b] = a;
            flip[b] = differ;
        } else if (differ) {
            return 0;
        }
    }
    for (int32_t i = 0; i < n; i++)
        if (root_of(parent, flip, i) == i) flip[i] = 0;
    return 1;
}

typedef struct cut {
    fgi_maxflow *flow;
    double scale;    /* integer units per unit of energy */
    double constant; /* energy that no label changes, in `copies` copies */
    double rounded;  /* what capacities have lost or gained by becoming whole, in units */
    int copies;      /* 2: with complements */
    int32_t n;
} cut;

static int64_t whole(cut *g, double c) {
    const double units = c * g->scale, nearest = rint(units);
    g->rounded += fabs(units - nearest);
    return (int64_t)nearest;
}

/* Energy c for node = 1 (in the sink's part). */
static void add_node(cut *g, int32_t node, double c) {
    if (c < 0) g->constant += c;
    /* Paid when cut from the source; -c when cut from the sink. */
    fgi_maxflow_add_terminal(g->flow, node, whole(g, c));
}

/* c for variable i = 1, in every copy. The complement of i is node n + i. */
static void add_variable(cut *g, int32_t i, double c) {
    add_node(g, i, c);
    if (g->copies == 1) return;
    g->constant += c; /* c x = c - c (1 - x) */
    add_node(g, g->n + i, -c);
}

/* Energies E[a][b] of variables i and j, a submodular pair in the nodes u and v: u stands for a, v for b. */
static void add_pair(cut *g, const double e[2][2], int32_t i, int32_t j, int flip_i, int flip_j) {
    const double a = e[flip_i][flip_j], b = e[flip_i][!flip_j], c = e[!flip_i][flip_j], d = e[!flip_i][!flip_j];
    const double weight = (b + c) - (a + d);
    const int64_t capacity = weight > 0 ? whole(g, weight) : 0;
    const int32_t u = flip_i && g->copies == 2 ? g->n + i : i, v = flip_j && g->copies == 2 ? g->n + j : j;
    g->constant += a;
    add_node(g, u, c - a);
    add_node(g, v, d - c);
    fgi_maxflow_add_edge(g->flow, u, v, capacity, 0);
    if (g->copies == 1) return;
    const int32_t not_u = u < g->n ? u + g->n : u - g->n, not_v = v < g->n ? v + g->n : v - g->n;
    g->constant += a + (c - a) + (d - c); /* the same with complements: (1 - a') and (1 - b') for a and b */
    add_node(g, not_u, a - c);
    add_node(g, not_v, c - d);
    fgi_maxflow_add_edge(g->flow, not_v, not_u, capacity, 0);
}

static void build(cut *g, const double *unary, int64_t n_edges, const roof_edge *edges, const uint8_t *flip) {
    for (int32_t i = 0; i < g->n; i++) {
        const double c = unary[2 * i] - unary[2 * i + 1]; /* energy of label 1 over label 0 */
        g->constant -= g->copies * unary[2 * i];
        if (g->copies == 1 && flip[i]) {
            g->constant += c;
            add_node(g, i, -c);
        } else {
            add_variable(g, i, c);
        }
    }
    for (int64_t k = 0; k < n_edges; k++) {
        const roof_edge *x = &edges[k];
        const double e[2][2] = {{-x->score[0][0], -x->score[0][1]}, {-x->score[1][0], -x->score[1][1]}};
        if (g->copies == 1) add_pair(g, e, x->i, x->j, flip[x->i], flip[x->j]);
        else add_pair(g, e, x->i, x->j, 0, coefficient(x) < 0);
    }
}

/* At most `steps` arc visits; where the model is not submodular, at most `patience` per variable and edge.
 * unary: two scores per variable. labels: 0, 1 or -1 for each variable; all labelled ones agree with one optimal
 * labeling. */
static fgi_rc roof_solve(int32_t n, const double *unary, int64_t n_edges, const roof_edge *edges, double steps,
    double patience, double deadline, int32_t *labels, roof_result *result) {
    int32_t *parent = fgi_alloc(n, sizeof(int32_t));
    uint8_t *flip = fgi_alloc(n, 1);
    cut g = {.n = n};
    fgi_rc rc = FGI_NO_MEMORY;
    *result = (roof_result){.bound = INFINITY};
    if (!parent || !flip) goto end;
    result->exact = find_flips(n, n_edges, edges, parent, flip);
    g.copies = result->exact ? 1 : 2;
    g.flow = fgi_maxflow_create(g.copies * n, g.copies * n_edges);
    if (!g.flow) goto end;
    rc = FGI_OK;
    double total = 1e-300; /* what all capacities sum to, at most */
    for (int32_t i = 0; i < n; i++) total += fabs(unary[2 * i] - unary[2 * i + 1]);
    for (int64_t k = 0; k < n_edges; k++) {
        double low = INFINITY, high = -INFINITY;
        for (int c = 0; c < 4; c++) {
            low = fmin(low, edges[k].score[c / 2][c % 2]);
            high = fmax(high, edges[k].score[c / 2][c % 2]);
        }
        total += 4 * (high - low);
    }
    g.scale = ldexp(1, 58 - ilogb(total) - 1); /* a power of two: whole scores stay whole */
    build(&g, unary, n_edges, edges, flip);
    /* Where roof duality decides much the flow is found soon; on frustrated models it takes long and decides nothing.
     */
    if (!result->exact) steps = fmin(steps, patience * (double)(n + n_edges));
    result->finished = fgi_maxflow_run(g.flow, steps, deadline);
    result->steps = fgi_maxflow_steps(g.flow);
    /* Capacities by becoming whole (an edge's second copy as its first), and what differences of scores have lost. */
    const double rounding = 2 * g.rounded / g.scale + 1e-15 * (total + fabs(g.constant));
    result->error = 2 * rounding;
    result->bound = -(g.constant + (double)fgi_maxflow_value(g.flow) / g.scale - rounding) / g.copies;
    for (int32_t i = 0; i < n; i++) {
        labels[i] = -1;
        if (!result->finished) continue;
        const int side = fgi_maxflow_side(g.flow, i);
        if (g.copies == 1) labels[i] = (side > 0 ? 0 : 1) ^ flip[i]; /* any minimum cut will do */
        else if (side > 0) labels[i] = 0;
        else if (fgi_maxflow_side(g.flow, n + i) > 0) labels[i] = 1;
        result->labelled += labels[i] >= 0;
    }
end:
    fgi_maxflow_free(g.flow);
    free(parent);
    free(flip);
    return rc;
}

fgi_rc fgi_roof(const fgi_model *m, double steps, int32_t *labels, double *bound, int32_t *exact, fgi_error *err) {
    const fgi_structure *s = m->s;
    for (int64_t i = 0; i < s->n_vars; i++)
        if (s->cards[i] != 2)
            return fgi_fail(
                err, FGI_UNSUPPORTED, i, "variable %lld has %d labels; cuts need two", (long long)i, s->cards[i]);
    for (int64_t k = 0; k < 2 * s->n_vars; k++)
        if (m->u->values[k] == -INFINITY)
            return fgi_fail(err, FGI_UNSUPPORTED, k / 2, "variable %lld has a forbidden label", (long long)(k / 2));
    roof_edge *edges = fgi_alloc(s->n_factors, sizeof *edges);
    if (!edges) return fgi_no_memory(err);
    fgi_rc rc = FGI_OK;
    for (int64_t f = 0; f < s->n_factors && !rc; f++) {
        const fgi_view v = fgi_factor_view(m, f);
        if (v.arity != 2) rc = fgi_fail(err, FGI_UNSUPPORTED, f, "factor %lld is not pairwise", (long long)f);
        for (int c = 0; c < 4 && !rc; c++) {
            edges[f].score[c / 2][c % 2] = fgi_view_at2(&v, c / 2, c % 2);
            if (edges[f].score[c / 2][c % 2] == -INFINITY)
                rc = fgi_fail(err, FGI_UNSUPPORTED, f, "factor %lld has forbidden states", (long long)f);
        }
        edges[f].i = v.vars[0];
        edges[f].j = v.vars[1];
    }
    roof_result result;
    if (!rc &&
        (rc = roof_solve((int32_t)s->n_vars, m->u->values, s->n_factors, edges, steps > 0 ? steps : INFINITY, INFINITY,
             INFINITY, labels, &result)))
        fgi_fail(err, rc, -1, "out of memory");
    free(edges);
    if (rc) return rc;
    *bound = result.bound + s->constant;
    *exact = result.exact && result.finished;
    return FGI_OK;
}

/* ---- as a reduction ----------------------------------------------------------------------------------------- */

/* Whether everything left is binary and pairwise, and how much that is. */
static int count_binary(const ps_work *w, int32_t *n, int64_t *n_edges) {
    *n = 0;
    *n_edges = 0;
    for (int32_t i = 0; i < w->n_vars; i++) {
        if (w->vars[i].gone) continue;
        if (w->vars[i].card != 2 || w->vars[i].live != 2) return 0;
        ++*n;
    }
    for (int64_t f = 0; f < w->n_factors; f++) {
        if (!w->factors[f].arity) continue;
        if (w->factors[f].arity != 2) return 0;
        ++*n_edges;
    }
    return *n > 0;
}

/* The scores of what is left, variables numbered anew. 0: a factor forbids everything; propagation will find out. */
static int gather(ps_work *w, int32_t *local, double *unary, roof_edge *edges) {
    double range = 0;
    int32_t n = 0;
    int64_t n_edges = 0;
    for (int32_t i = 0; i < w->n_vars; i++)
        if (!w->vars[i].gone) {
            unary[2 * n] = w->vars[i].unary[0];
            unary[2 * n + 1] = w->vars[i].unary[1];
            range += fabs(unary[2 * n] - unary[2 * n + 1]);
            local[i] = n++;
        }
    for (int64_t f = 0; f < w->n_factors; f++) {
        const ps_factor *x = &w->factors[f];
        if (!x->arity) continue;
        roof_edge *e = &edges[n_edges++];
        double low = INFINITY, high = -INFINITY;
        *e = (roof_edge){.i = local[x->vars[0]], .j = local[x->vars[1]]};
        for (int c = 0; c < 4; c++) {
            const double s = e->score[c / 2][c % 2] = ps_at2(w, x, c / 2, c % 2);
            if (s > high) high = s;
            if (s > -INFINITY && s < low) low = s;
        }
        if (high == -INFINITY) return 0;
        range += high - low;
    }
    if (range == 0) range = 1; /* all the same: any cost will do */
    /* A forbidden pair costs more than everything else can bring: the optimum, if it is feasible, stays the same. */
    for (int64_t k = 0; k < n_edges; k++) {
        double high = -INFINITY;
        for (int c = 0; c < 4; c++) high = fmax(high, edges[k].score[c / 2][c % 2]);
        for (int c = 0; c < 4; c++)
            if (edges[k].score[c / 2][c % 2] == -INFINITY) edges[k].score[c / 2][c % 2] = high - 2 * range;
    }
    return 1;
}

int64_t ps_roof(ps_work *w) {
    int32_t n;
    int64_t n_edges, fixed = 0;
    if (!count_binary(w, &n, &n_edges) || 16.0 * (double)(n + n_edges) > w->options.work - w->work) return 0;
    int32_t *local = fgi_alloc(w->n_vars, sizeof(int32_t)), *labels = fgi_alloc(n, sizeof(int32_t));
    double *unary = fgi_alloc(2 * (int64_t)n, sizeof(double));
    roof_edge *edges = fgi_alloc(n_edges, sizeof *edges);
    if (!local || !labels || !unary || !edges) {
        w->failure = FGI_NO_MEMORY;
        goto end;
    }
    if (!gather(w, local, unary, edges)) goto end;
    roof_result result;
    w->failure =
        roof_solve(n, unary, n_edges, edges, w->options.work - w->work, 60, w->meter.deadline, labels, &result);
    if (w->failure) goto end;
    ps_spend(w, result.steps + 16.0 * (double)(n + n_edges));
    if (!(result.error <= 1e-9 * w->magnitude)) goto end; /* scores too far apart for whole capacities */
    w->error += result.error;
    w->info.roof_bound = fmin(w->info.roof_bound, result.bound + fgi_sum_value(&w->constant));
    for (int32_t i = 0; i < w->n_vars; i++) {
        if (w->vars[i].gone || labels[local[i]] < 0) continue;
        ps_remove_label(w, i, 1 - labels[local[i]]);
        ps_wake_var(w, i);
        fixed++;
    }
    w->info.labels_persistent += fixed;
end:
    free(local);
    free(labels);
    free(unary);
    free(edges);
    return fixed;
}
