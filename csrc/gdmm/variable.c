/* gdmm/variable.c - the variable pass of Algorithm 8 and the multiplier step after it, in one visit per variable:
 *
 *     x_i  = P_simplex( [ theta_i / rho + sum_f (m_if + mu_if / rho) ] / |d(i)| )       (3.27, mu divided by |d(i)|)
 *     mu_if += rho (m_if - x_i)                                                          (3.32, eta = rho unless set)
 *
 * with the over-relaxed m_if = relaxation * M_if y_f + (1 - relaxation) * x_i(old). The projection is over the labels
 * that have a message, and the best label by score alone that has none (3.30). */
#include <string.h>
#include "gdmm/gdmm.h"

static int compare_labels(const void *a, const void *b) { return *(const int32_t *)a - *(const int32_t *)b; }

/* Sum over the slots of i of relaxed m + mu/rho, in w->sum by label; the labels are listed ascending in w->touched, old
 * x in w->value. Labels that are forbidden are left out. Returns their number. */
static int32_t gather(const gdmm *g, gdmm_worker *w, int64_t i) {
    const fgi_structure *s = g->model->s;
    const double *theta = g->theta + s->unary_begin[i], inverse = 1 / g->rho, relax = g->relaxation;
    int32_t n = 0;
    int ascending = 1;
    for (int64_t k = s->adj_begin[i]; k < s->adj_begin[i + 1]; k++) {
        const gdmm_slot *slot = &g->slots[g->adj_slot[k]];
        for (int32_t e = 0; e < slot->n; e++) {
            int32_t a = slot->labels[e];
            fgi_assert(a >= 0 && a < s->cards[i]);
            if (!w->mark[a]) {
                if (theta[a] == -INFINITY) continue;
                w->mark[a] = 1;
                w->sum[a] = 0;
                w->value[a] = 0;
                if (n > 0 && w->touched[n - 1] > a) ascending = 0;
                w->touched[n++] = a;
            }
            w->sum[a] += relax * slot->m[e] + (1 - relax) * slot->x[e] + slot->mu[e] * inverse;
            if (slot->x[e] > 0) w->value[a] = slot->x[e];
        }
    }
    fgi_assert(n <= s->cards[i]);
    if (!ascending) qsort(w->touched, (size_t)n, sizeof *w->touched, compare_labels);
    return n;
}

/* The best label by score that has no message joins; -1 if there is none. */
static int32_t best_untouched(const gdmm *g, const gdmm_worker *w, int64_t i) {
    const fgi_structure *s = g->model->s;
    const double *theta = g->theta + s->unary_begin[i];
    const int32_t *sorted = g->sorted + s->unary_begin[i];
    for (int32_t k = 0; k < s->cards[i] && theta[sorted[k]] > -INFINITY; k++)
        if (!w->mark[sorted[k]]) return sorted[k];
    return -1;
}

static void insert_label(gdmm_worker *w, int32_t n, int32_t label) {
    fgi_assert(!w->mark[label]);
    while (n > 0 && w->touched[n - 1] > label) {
        w->touched[n] = w->touched[n - 1];
        n--;
    }
    w->touched[n] = label;
    w->mark[label] = 1;
    w->sum[label] = w->value[label] = 0;
}

/* Multiplier step on one slot; w->value holds the new x by label. Adds |m - x|^2 to *primal. */
static int update_slot(
    const gdmm *g, const gdmm_worker *w, gdmm_slot *slot, int32_t n, int32_t support, double *primal) {
    const double step = g->eta * g->rho, relax = g->relaxation;
    if (slot->capacity > 0 || slot->n == 0) { /* sparse: the support of x must be listed */
        int32_t found = 0;
        for (int32_t e = 0; e < slot->n; e++) found += w->mark[slot->labels[e]] && w->value[slot->labels[e]] > 0;
        for (int32_t k = 0; found < support && k < n; k++)
            if (w->value[w->touched[k]] > 0) {
                int32_t before = slot->n;
                if (gdmm_slot_at(slot, w->touched[k]) < 0) return 0;
                found += slot->n > before;
            }
    }
    int32_t kept = 0;
    double sum = 0;
    for (int32_t e = 0; e < slot->n; e++) {
        int32_t a = slot->labels[e];
        double x = w->mark[a] ? w->value[a] : 0, m = slot->m[e], mu = slot->mu[e];
        sum += (m - x) * (m - x);
        if (w->mark[a]) mu += step * (relax * m + (1 - relax) * slot->x[e] - x);
        if (slot->capacity > 0) {
            if (mu == 0 && m == 0 && x == 0) continue;
            slot->labels[kept] = a;
        }
        slot->mu[kept] = mu;
        slot->m[kept] = m;
        slot->x[kept++] = x;
    }
    fgi_assert(kept <= slot->n && (slot->capacity > 0 || kept == slot->n));
    slot->n = kept;
    *primal += sum;
    return 1;
}

static fgi_rc update_variable(gdmm *g, gdmm_worker *w, int64_t i, double *primal, double *dual) {
    const fgi_structure *s = g->model->s;
    const double *theta = g->theta + s->unary_begin[i];
    const int64_t degree = gdmm_degree(g, i);
    if (degree == 0) return FGI_OK; /* rounded to argmax theta_i by the set-up */
    int32_t n = gather(g, w, i);
    const gdmm_slot *one = &g->slots[g->adj_slot[s->adj_begin[i]]];
    if (g->sorted && (one->capacity > 0 || one->n == 0)) {
        int32_t extra = best_untouched(g, w, i);
        if (extra >= 0) insert_label(w, n++, extra);
    }
    int32_t best = 0, support = 0;
    for (int32_t k = 0; k < n; k++) {
        int32_t a = w->touched[k];
        w->candidate[k] = (theta[a] / g->rho + w->sum[a]) / (double)degree;
        if (w->candidate[k] > w->candidate[best]) best = k;
    }
    fgi_assert(n > 0);
    g->rounded[i] = w->touched[best];
    fgi_simplex_project(w->candidate, n);
    double moved = 0;
    for (int32_t k = 0; k < n; k++) {
        double *x = &w->value[w->touched[k]], d = w->candidate[k] - *x;
        moved += d * d;
        fgi_assert(w->candidate[k] >= 0 && w->candidate[k] <= 1 + 1e-9);
        *x = w->candidate[k];
        support += *x > 0;
    }
    *dual += (double)degree * moved;
    fgi_rc rc = FGI_OK;
    for (int64_t k = s->adj_begin[i]; k < s->adj_begin[i + 1] && !rc; k++)
        if (!update_slot(g, w, &g->slots[g->adj_slot[k]], n, support, primal)) rc = FGI_NO_MEMORY;
    for (int32_t k = 0; k < n; k++) w->mark[w->touched[k]] = 0;
    return rc;
}

void gdmm_variable_pass(void *context, int64_t begin, int64_t end, int worker) {
    gdmm *g = context;
    gdmm_worker *w = &g->workers[worker];
    double primal = 0, dual = 0;
    fgi_assert(begin % GDMM_BLOCK == 0 && end <= g->model->s->n_vars && worker < g->n_workers);
    for (int64_t i = begin; i < end; i++) {
        fgi_rc rc = update_variable(g, w, i, &primal, &dual);
        if (rc) w->rc = rc;
    }
    fgi_assert(primal >= 0 && dual >= 0);
    g->partial[2 * (begin / GDMM_BLOCK)] = primal;
    g->partial[2 * (begin / GDMM_BLOCK) + 1] = dual;
}
