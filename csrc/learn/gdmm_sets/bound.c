/* learn/gdmm_sets/bound.c - certificates of gdmm for label sets: an upper bound on the relaxed losses, and a consistent
 * dual point.
 *
 * Any multipliers bound the relaxed loss. A pair with v > 0 lets its labels share v, since v min(x_l, x_m) <= a x_l +
 * (v - a) x_m; one with v < 0 gives v max(0, x_l + x_m - 1) <= -q (x_l + x_m - 1). Those of the iterate are right when
 * it has converged; before, shares improved pair by pair are mostly better. The smaller bound is taken, example by
 * example. */
#include <string.h>
#include "learn/gdmm_sets/gdmm_sets.h"

enum { SWEEPS = 30 };

typedef struct pair_share {
    int32_t l, m;
    double v, share; /* v > 0: a, what l pays of v; v < 0: q */
} pair_share;

typedef struct shares {
    pair_share *pairs; /* all pairs with weight */
    int64_t n;
} shares;

static double positive(double x) { return x > 0 ? x : 0; }
static double inside(double x, double hi) { return x < 0 ? 0 : x > hi ? hi : x; }

/* With the multipliers of the listed pairs; of the others with v > 0, a label that is off pays for all of it (the one
 * with more to spare, when both are off). u: scores of switching labels on, charges included. */
static double bound_by_multipliers(fgi_gdmm_sets *g, const set_example *x, const shares *all, double *u) {
    double total = 0;
    for (int32_t k = 0; k < x->n_pairs; k++) {
        const set_pair *p = &x->pairs[k];
        double pl = g->rho * p->Pl, pm = g->rho * p->Pm, q = g->rho * p->Q, *v = fgi_sets_weight(g, p->l, p->m);
        u[p->l] += pl - q;
        u[p->m] += pm - q;
        total += q + positive(*v - pl - pm + q);
        g->row_best[k] = *v;
        *v = 0; /* done: not to be charged again below */
    }
    for (int64_t k = 0; k < all->n; k++) {
        const pair_share *p = &all->pairs[k];
        double v = *fgi_sets_weight(g, p->l, p->m);
        if (v > 0) u[u[p->l] < u[p->m] ? p->l : p->m] += v;
    }
    for (int32_t k = 0; k < x->n_pairs; k++) *fgi_sets_weight(g, x->pairs[k].l, x->pairs[k].m) = g->row_best[k];
    for (int32_t l = 0; l < g->L->data.n_labels; l++) total += positive(u[l]);
    return total;
}

/* The best share of one pair, the others fixed: the middle of those that are equally good. */
static void improve(pair_share *p, double *u) {
    const double size = fabs(p->v);
    double one, other;
    if (p->v > 0) {
        u[p->l] -= p->share, u[p->m] -= size - p->share;
        one = positive(-u[p->l]), other = size - positive(-u[p->m]);
    } else {
        u[p->l] += p->share, u[p->m] += p->share;
        one = positive(u[p->l]), other = positive(u[p->m]);
    }
    p->share = 0.5 * (inside(one, size) + inside(other, size));
    if (p->v > 0) u[p->l] += p->share, u[p->m] += size - p->share;
    else u[p->l] -= p->share, u[p->m] -= p->share;
}

static double bound_by_shares(fgi_gdmm_sets *g, const shares *all, double *u) {
    const int32_t labels = g->L->data.n_labels;
    double best = INFINITY;
    for (int64_t k = 0; k < all->n; k++) { /* start: who is off pays, by what they have to spare */
        pair_share *p = &all->pairs[k];
        double a = positive(-g->scores[p->l]), b = positive(-g->scores[p->m]);
        p->share = p->v < 0 ? 0 : a + b > 0 ? p->v * (a / (a + b)) : 0.5 * p->v;
        if (p->v > 0) u[p->l] += p->share, u[p->m] += p->v - p->share;
    }
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
        double total = 0, before = best;
        for (int64_t k = 0; k < all->n; k++) improve(&all->pairs[k], u);
        for (int64_t k = 0; k < all->n; k++)
            if (all->pairs[k].v < 0) total += all->pairs[k].share;
        for (int32_t l = 0; l < labels; l++) total += positive(u[l]);
        if (total < best) best = total;
        if (best >= before - 1e-4 * fabs(before)) break;
    }
    return best;
}

/* Upper bound on the relaxed loss of the example that is open. */
static double bound_loss(fgi_gdmm_sets *g, int32_t i, const shares *all) {
    const fgi_learn_data *d = &g->L->data;
    double *u = g->message[0], truth = 0;
    memcpy(u, g->scores, (size_t)d->n_labels * sizeof *u);
    double total = bound_by_multipliers(g, &g->examples[i], all, u);
    if (all->n) {
        memcpy(u, g->scores, (size_t)d->n_labels * sizeof *u);
        total = fmin(total, bound_by_shares(g, all, u));
    }
    for (int64_t a = d->truth_begin[i]; a < d->truth_begin[i + 1]; a++) {
        truth += g->scores[d->truth[a]] + fgi_learn_missed(d, i, d->truth[a]);
        for (int64_t b = a + 1; d->edges != FGI_EDGES_NONE && b < d->truth_begin[i + 1]; b++)
            truth += *fgi_sets_weight(g, d->truth[a], d->truth[b]);
    }
    return total + fgi_learn_missed_all(d, i) - truth;
}

/* All pairs with weight, and room for the weights of the listed pairs of one example. */
static int find_shares(fgi_gdmm_sets *g, shares *all) {
    const fgi_learn_data *d = &g->L->data;
    int64_t most = 1;
    *all = (shares){NULL, 0};
    if (d->edges == FGI_EDGES_NONE) return 1;
    for (int32_t l = 0; l < d->n_labels; l++)
        for (int32_t m = l + 1; m < d->n_labels; m++) all->n += *fgi_sets_weight(g, l, m) != 0;
    for (int32_t i = 0; i < d->n_examples; i++)
        if (g->examples[i].n_pairs > most) most = g->examples[i].n_pairs;
    double *room = realloc(g->row_best, (size_t)most * sizeof *room);
    if (room) g->row_best = room;
    if (!room || !(all->pairs = fgi_alloc(all->n, sizeof *all->pairs))) return 0;
    int64_t n = 0;
    for (int32_t l = 0; l < d->n_labels; l++)
        for (int32_t m = l + 1; m < d->n_labels; m++)
            if (*fgi_sets_weight(g, l, m) != 0) all->pairs[n++] = (pair_share){l, m, *fgi_sets_weight(g, l, m), 0};
    return 1;
}

/* The consistent point: Y put into its interval. Adds C t t - Y to the pairwise weights under construction in L->dense.
 */
static void consistent_pairs(fgi_gdmm_sets *g, int32_t i, double *worst) {
    const fgi_learn_data *d = &g->L->data;
    const set_example *x = &g->examples[i];
    const double C = g->s.C;
    for (int32_t a = 0; a < x->n; a++)
        for (int32_t b = a + 1; b < x->n; b++) {
            double lo = fmax(0, x->X[a] + x->X[b] - C), hi = fmin(x->X[a], x->X[b]), Y = 0;
            for (int32_t k = 0; k < x->n_pairs; k++)
                if (x->pairs[k].l == x->label[a] && x->pairs[k].m == x->label[b]) Y = x->pairs[k].Y;
            *worst = fmax(*worst, fmax(lo - Y, Y - hi));
            Y = Y < lo ? lo : Y > hi ? hi : Y;
            g->L->dense[g->L->unary + (int64_t)x->label[a] * d->n_labels + x->label[b]] +=
                (g->truth[x->label[a]] && g->truth[x->label[b]] ? C : 0) - Y;
        }
}

fgi_rc fgi_gdmm_sets_measure(fgi_gdmm_sets *g, double *relaxed, double *dual, double *infeasibility, fgi_error *err) {
    fgi_learner *L = g->L;
    const fgi_learn_data *d = &L->data;
    const int64_t calls = g->unary_calls, touched = g->unary_touched, products = g->unary_products;
    shares all;
    if (!find_shares(g, &all)) return fgi_fail(err, FGI_NO_MEMORY, -1, "out of memory");
    fgi_sum loss = {0}, gain = {0}, norm = {0}, own = {0};
    double worst = 0;
    fgi_rc rc = FGI_OK;
    for (int32_t i = 0; rc == FGI_OK && i < d->n_examples; i++) {
        const set_example *x = &g->examples[i];
        rc = fgi_sets_open(g, i, 0, 1);
        fgi_sum_add(&loss, bound_loss(g, i, &all));
        for (int32_t k = 0; k < x->n; k++) {
            const int32_t l = x->label[k];
            fgi_sum_add(&gain,
                g->truth[l] ? fgi_learn_missed(d, i, l) * (g->s.C - x->X[k]) : fgi_learn_spurious(d, i, l) * x->X[k]);
        }
        if (d->edges != FGI_EDGES_NONE) consistent_pairs(g, i, &worst);
        fgi_sets_close(g, i);
    }
    for (int64_t k = 0; k < L->dimension; k++) {
        double w = L->w[k], v = k < L->unary ? w : L->dense[k];
        fgi_sum_add(&norm, w * w);
        fgi_sum_add(&own, v * v);
        if (k >= L->unary) L->dense[k] = 0;
    }
    free(all.pairs);
    *relaxed = 0.5 * fgi_sum_value(&norm) + g->s.C * fgi_sum_value(&loss);
    *dual = fgi_learn_dual_toward(fgi_sum_value(&gain), fgi_sum_value(&own));
    *infeasibility = worst / g->s.C;
    g->unary_calls = calls, g->unary_touched = touched, g->unary_products = products;
    return rc == FGI_OK ? rc : fgi_fail(err, rc, -1, "out of memory");
}

fgi_rc fgi_gdmm_sets_relaxed_at(fgi_gdmm_sets *g, double *w, double *relaxed, fgi_error *err) {
    fgi_learner *L = g->L;
    const int64_t calls = g->unary_calls, touched = g->unary_touched, products = g->unary_products;
    double *own = L->w;
    fgi_sum loss = {0}, norm = {0};
    shares all;
    L->w = w;
    int found = find_shares(g, &all);
    for (int32_t i = 0; found && i < L->data.n_examples; i++) {
        found = fgi_sets_open(g, i, 0, 1) == FGI_OK;
        fgi_sum_add(&loss, bound_loss(g, i, &all));
        fgi_sets_close(g, i);
    }
    for (int64_t k = 0; k < L->dimension; k++) fgi_sum_add(&norm, w[k] * w[k]);
    free(all.pairs);
    L->w = own;
    g->unary_calls = calls, g->unary_touched = touched, g->unary_products = products;
    *relaxed = 0.5 * fgi_sum_value(&norm) + g->s.C * fgi_sum_value(&loss);
    return found ? FGI_OK : fgi_fail(err, FGI_NO_MEMORY, -1, "out of memory");
}
