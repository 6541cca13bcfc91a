/* learn/gdmm_sets/bound.c - certificates of gdmm for label sets: upper bounds on the relaxed losses, and a consistent
 * dual point.
 *
 * Any multipliers bound the relaxed loss. A pair with v > 0 lets its labels share v, since v min(x_l, x_m) <= a x_l +
 * (v - a) x_m; one with v < 0 gives v max(0, x_l + x_m - 1) <= -q (x_l + x_m - 1). Those of the iterate are right when
 * it has converged; before, shares improved pair by pair are mostly better. The smaller bound is taken, example by
 * example.
 *
 * A label whose score and all positive pairs together are not above 0 is off in every best set: it pays for its pairs,
 * and they are out. What is left is mostly a handful of labels, so that an example costs its labels, not all pairs. */
#include <string.h>
#include "learn/gdmm_sets/gdmm_sets.h"

enum {
    SWEEPS = 30, /* over the labels that are left, at most: any number gives a bound (decision 0016) */
    ROUNDS = 4   /* rounds of ruling labels out: each needs those before, and rules out fewer (decision 0016) */
};

static double positive(double x) { return x > 0 ? x : 0; }
static double inside(double x, double hi) { return x < 0 ? 0 : x > hi ? hi : x; }

/* ---- the pairs with weight --------------------------------------------------------------------------------------- */

void fgi_sets_drop_view(fgi_learn_gdmm_sets *g) {
    sets_view *v = &g->view;
    free(v->begin), free(v->other), free(v->value), free(v->positive), free(v->shares), free(v->kept);
    *v = (sets_view){0};
}

static int make_view(fgi_learn_gdmm_sets *g, double *w) {
    const int32_t n = g->L->data.n_labels;
    const int paired = g->L->data.edges != FGI_EDGES_NONE;
    const double *table = w + g->L->unary;
    sets_view *v = &g->view;
    int64_t most = 1, total = 0;
    fgi_sets_drop_view(g);
    v->begin = fgi_calloc(n + 2, sizeof *v->begin);
    v->positive = fgi_calloc(n, sizeof *v->positive);
    if (!v->begin || !v->positive) return 0;
    for (int32_t l = 0; paired && l < n; l++)
        for (int32_t m = l + 1; m < n; m++)
            if (table[(int64_t)l * n + m] != 0) v->begin[l + 2]++, v->begin[m + 2]++, total++;
    for (int32_t l = 0; l < n; l++) v->begin[l + 2] += v->begin[l + 1];
    for (int64_t i = 0; i < g->n_examples; i++)
        if (g->examples[i].n_pairs > most) most = g->examples[i].n_pairs;
    v->other = fgi_alloc(2 * total, sizeof *v->other);
    v->value = fgi_alloc(2 * total, sizeof *v->value);
    v->shares = fgi_alloc(total, sizeof *v->shares);
    v->kept = fgi_alloc(most, sizeof *v->kept);
    if (!v->other || !v->value || !v->shares || !v->kept) return 0;
    for (int32_t l = 0; paired && l < n; l++)
        for (int32_t m = l + 1; m < n; m++) {
            const double x = table[(int64_t)l * n + m];
            if (x == 0) continue;
            const int64_t a = v->begin[l + 1]++, b = v->begin[m + 1]++;
            v->other[a] = m, v->other[b] = l;
            v->value[a] = v->value[b] = x;
            v->positive[l] += positive(x), v->positive[m] += positive(x);
        }
    v->of = w;
    return 1;
}

/* Labels that may be on in a best set of the open example, marked in g->alive and listed; the pairs among them. */
static int32_t survivors(fgi_learn_gdmm_sets *g, int64_t *n_shares) {
    sets_view *v = &g->view;
    int32_t n = 0, *list = g->message_label[0];
    for (int32_t l = 0; l < g->L->data.n_labels; l++) {
        g->alive[l] = g->scores[l] + v->positive[l] > 0;
        if (g->alive[l]) list[n++] = l;
    }
    for (int round = 0, changed = 1; changed && round < ROUNDS; round++) {
        int32_t kept = 0;
        changed = 0;
        for (int32_t k = 0; k < n; k++) {
            const int32_t l = list[k];
            double most = g->scores[l];
            for (int64_t a = v->begin[l]; most <= 0 && a < v->begin[l + 1]; a++)
                if (g->alive[v->other[a]]) most += positive(v->value[a]);
            if (most > 0) list[kept++] = l;
            else g->alive[l] = 0, changed = 1;
        }
        n = kept;
    }
    *n_shares = 0;
    for (int32_t k = 0; k < n; k++)
        for (int64_t a = v->begin[list[k]]; a < v->begin[list[k] + 1]; a++)
            if (v->other[a] > list[k] && g->alive[v->other[a]])
                v->shares[(*n_shares)++] = (pair_share){list[k], v->other[a], v->value[a], 0};
    return n;
}

/* ---- losses ------------------------------------------------------------------------------------------------------ */

/* A bound on the score of the best set. Listed pairs are shared out by their multipliers; the weight v > 0 of any other
 * pair is added to u of one of its labels, the one further below zero. u holds the scores of switching labels on. */
static double bound_by_multipliers(
    fgi_learn_gdmm_sets *g, const set_example *x, int32_t n, int64_t n_shares, double *u) {
    double total = 0;
    for (int32_t k = 0; k < x->n_pairs; k++) {
        const set_pair *p = &x->pairs[k];
        if (!g->alive[p->l] || !g->alive[p->m]) continue;
        double pl = g->rho * p->Pl, pm = g->rho * p->Pm, q = g->rho * p->Q, *v = fgi_sets_weight(g, p->l, p->m);
        u[p->l] += pl - q;
        u[p->m] += pm - q;
        total += q + positive(*v - pl - pm + q);
        g->view.kept[k] = *v;
        *v = 0; /* done: not to be charged again below */
    }
    for (int64_t k = 0; k < n_shares; k++) {
        const pair_share *p = &g->view.shares[k];
        double v = *fgi_sets_weight(g, p->l, p->m);
        if (v > 0) u[u[p->l] < u[p->m] ? p->l : p->m] += v;
    }
    for (int32_t k = 0; k < x->n_pairs; k++)
        if (g->alive[x->pairs[k].l] && g->alive[x->pairs[k].m])
            *fgi_sets_weight(g, x->pairs[k].l, x->pairs[k].m) = g->view.kept[k];
    for (int32_t k = 0; k < n; k++) total += positive(u[g->message_label[0][k]]);
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

static double bound_by_shares(fgi_learn_gdmm_sets *g, int32_t n, int64_t n_shares, double *u) {
    pair_share *shares = g->view.shares;
    double best = INFINITY;
    for (int64_t k = 0; k < n_shares; k++) { /* start: who is off pays, by what they have to spare */
        pair_share *p = &shares[k];
        double a = positive(-g->scores[p->l]), b = positive(-g->scores[p->m]);
        p->share = p->v < 0 ? 0 : a + b > 0 ? p->v * (a / (a + b)) : 0.5 * p->v;
        if (p->v > 0) u[p->l] += p->share, u[p->m] += p->v - p->share;
    }
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
        double total = 0, before = best;
        for (int64_t k = 0; k < n_shares; k++) improve(&shares[k], u);
        for (int64_t k = 0; k < n_shares; k++)
            if (shares[k].v < 0) total += shares[k].share;
        for (int32_t k = 0; k < n; k++) total += positive(u[g->message_label[0][k]]);
        if (total < best) best = total;
        if (best >= before - 1e-4 * fabs(before)) break;
    }
    return best;
}

/* Upper bound on the relaxed loss of the example that is open. */
static double bound_loss(fgi_learn_gdmm_sets *g, int32_t i) {
    const fgi_learn_data *d = &g->L->data;
    int64_t n_shares;
    const int32_t n = survivors(g, &n_shares);
    double *u = g->message[0], truth = 0;
    for (int32_t k = 0; k < n; k++) u[g->message_label[0][k]] = g->scores[g->message_label[0][k]];
    double total = bound_by_multipliers(g, &g->examples[i], n, n_shares, u);
    if (n_shares) {
        for (int32_t k = 0; k < n; k++) u[g->message_label[0][k]] = g->scores[g->message_label[0][k]];
        total = fmin(total, bound_by_shares(g, n, n_shares, u));
    }
    for (int64_t a = d->truth_begin[i]; a < d->truth_begin[i + 1]; a++) {
        truth += g->scores[d->truth[a]] + fgi_learn_missed(d, i, d->truth[a]);
        for (int64_t b = a + 1; d->edges != FGI_EDGES_NONE && b < d->truth_begin[i + 1]; b++)
            truth += *fgi_sets_weight(g, d->truth[a], d->truth[b]);
    }
    return positive(total + fgi_learn_missed_all(d, i) - truth);
}

fgi_rc fgi_learn_gdmm_sets_losses(fgi_learn_gdmm_sets *g, double *w, const int32_t *examples, int64_t m, int64_t *next,
    double deadline, double *loss, fgi_error *err) {
    fgi_learner *L = g->L;
    const int64_t calls = g->unary_calls, touched = g->unary_touched, products = g->unary_products;
    double *own = L->w;
    if (!w) w = own;
    if ((*next == 0 || g->view.of != w) && !make_view(g, w)) return fgi_no_memory(err);
    for (int64_t k = *next; k < m; k++)
        if (examples[k] < 0 || examples[k] >= L->data.n_examples)
            return fgi_fail(err, FGI_BAD_ARGUMENT, k, "there is no example %d", (int)examples[k]);
    fgi_rc rc = FGI_OK;
    L->w = w;
    while (!rc && *next < m) {
        rc = fgi_sets_open(g, examples[*next], 0, 1);
        loss[*next] = bound_loss(g, examples[*next]);
        fgi_sets_close(g, examples[*next]);
        ++*next;
        if (fgi_clock() >= deadline) break;
    }
    L->w = own;
    if (*next >= m) fgi_sets_drop_view(g);
    g->unary_calls = calls, g->unary_touched = touched, g->unary_products = products;
    return rc ? fgi_fail(err, rc, -1, "out of memory") : FGI_OK;
}

/* ---- the dual point ---------------------------------------------------------------------------------------------- */

/* The pairs of an example by their first label: head[label] and link[pair], -1 at the end. */
static void link_pairs(const set_example *x, int32_t *head, int32_t *link) {
    for (int32_t k = 0; k < x->n; k++) head[x->label[k]] = -1;
    for (int32_t k = 0; k < x->n_pairs; k++) link[k] = head[x->pairs[k].l], head[x->pairs[k].l] = k;
}

/* The consistent point: Y put into its interval. Adds C t t - Y to the pairwise weights under construction in L->dense.
 */
static void consistent_pairs(fgi_learn_gdmm_sets *g, int32_t i, int32_t *link, double *worst) {
    const fgi_learn_data *d = &g->L->data;
    const set_example *x = &g->examples[i];
    const double C = g->C;
    double *Y_of = g->message[0];
    link_pairs(x, g->message_label[0], link);
    for (int32_t a = 0; a < x->n; a++) {
        for (int32_t b = a + 1; b < x->n; b++) Y_of[x->label[b]] = 0;
        for (int32_t k = g->message_label[0][x->label[a]]; k >= 0; k = link[k]) Y_of[x->pairs[k].m] = x->pairs[k].Y;
        for (int32_t b = a + 1; b < x->n; b++) {
            double lo = fmax(0, x->X[a] + x->X[b] - C), hi = fmin(x->X[a], x->X[b]), Y = Y_of[x->label[b]];
            *worst = fmax(*worst, fmax(lo - Y, Y - hi));
            Y = Y < lo ? lo : Y > hi ? hi : Y;
            g->L->dense[g->L->unary + (int64_t)x->label[a] * d->n_labels + x->label[b]] +=
                (g->truth[x->label[a]] && g->truth[x->label[b]] ? C : 0) - Y;
        }
    }
}

/* |w(alpha)|^2 on the scale of the blocks: the unary weights are those of the iterate, the others in L->dense, which
 * goes back to zero. */
static double squared_norm(fgi_learn_gdmm_sets *g) {
    const fgi_learner *L = g->L;
    fgi_sum sum = {0};
    for (int64_t k = 0; k < L->dimension; k++) {
        const double x = k >= L->unary ? L->dense[k] : L->proximal.center ? L->w[k] - L->proximal.center[k] : L->w[k];
        if (x != 0.0) fgi_sum_add(&sum, x * x);
        if (k >= L->unary) L->dense[k] = 0.0;
    }
    return fgi_sum_value(&sum);
}

fgi_rc fgi_learn_gdmm_sets_dual(
    fgi_learn_gdmm_sets *g, double deadline, double *dual, double *infeasibility, int32_t *done, fgi_error *err) {
    const fgi_learn_data *d = &g->L->data;
    const double scale = g->s.C / g->C;
    int64_t most = 1;
    for (int64_t i = 0; i < g->n_examples; i++)
        if (g->examples[i].n_pairs > most) most = g->examples[i].n_pairs;
    int32_t *link = fgi_alloc(most, sizeof *link);
    if (!link) return fgi_no_memory(err);
    fgi_sum gain = {0};
    double worst = 0;
    fgi_meter meter = {FGI_LEARN_LOOK, 0, deadline};
    *done = 1;
    for (int32_t i = 0; *done && i < d->n_examples; i++) {
        const set_example *x = &g->examples[i];
        for (int64_t a = d->truth_begin[i]; a < d->truth_begin[i + 1]; a++) g->truth[d->truth[a]] = 1;
        for (int32_t k = 0; k < x->n; k++) {
            const int32_t l = x->label[k];
            fgi_sum_add(&gain,
                g->truth[l] ? fgi_learn_missed(d, i, l) * (g->C - x->X[k]) : fgi_learn_spurious(d, i, l) * x->X[k]);
        }
        if (d->edges != FGI_EDGES_NONE) consistent_pairs(g, i, link, &worst);
        for (int64_t a = d->truth_begin[i]; a < d->truth_begin[i + 1]; a++) g->truth[d->truth[a]] = 0;
        *done = !fgi_meter_spend(&meter, 1);
    }
    free(link);
    *dual = fgi_learn_dual_toward(scale * fgi_sum_value(&gain), scale * scale * squared_norm(g));
    *infeasibility = worst / g->C;
    return FGI_OK;
}
