/* gdmm/certificate.c - the certificate of Algorithm 8, valid for every mu:
 *
 *     D(mu) = sum_i max_a [ theta_i(a) + sum_f mu_if(a) ] + sum_f max_y [ theta_f(y) - sum_i mu_if(y_i) ]  >=  optimum
 *
 * The second sum is one pass of the same oracle as the factor step, with mu in place of delta. */
#include <string.h>
#include "gdmm/gdmm.h"

/* The relative error of a sum of n terms, in the sum of their magnitudes. */
static double rounding(int64_t n) { return 0x1p-53 * (double)(n + 2); }

/* The maximum of the scores as they are: the closed form is rounded. */
static double pair_maximum(const gdmm *g, int64_t f) {
    const gdmm_pair *t = &g->pairs[f];
    const gdmm_slot *slot = &g->slots[fgi_factor_begin(g->model->s, f)], *r = slot + 1;
    double best = -INFINITY;
    for (int32_t a = 0; a < 2; a++)
        for (int32_t b = 0; b < 2; b++) {
            if (GDMM_IS_FORBIDDEN(slot->mu[a]) || GDMM_IS_FORBIDDEN(r->mu[b])) continue;
            const double theta = t->at[a][b], value = theta - slot->mu[a] - r->mu[b];
            best = fgi_larger(best, value + rounding(3) * (fabs(theta) + fabs(slot->mu[a]) + fabs(r->mu[b])));
        }
    return best;
}

/* The largest multiplier of a slot. */
static double largest_multiplier(const gdmm_slot *slot) {
    double largest = 0;
    for (int32_t e = 0; e < slot->n; e++)
        if (!GDMM_IS_FORBIDDEN(slot->mu[e])) largest = fgi_larger(largest, fabs(slot->mu[e]));
    return largest;
}

static double factor_maximum(const gdmm *g, gdmm_worker *w, int64_t f) {
    const fgi_structure *s = g->model->s;
    if (g->is_pair[f]) return pair_maximum(g, f);
    const fgi_view v = fgi_factor_view(g->model, f);
    for (int32_t k = 0; k < v.arity; k++) {
        const gdmm_slot *slot = &g->slots[fgi_factor_begin(s, f) + k];
        w->messages[k] = (fgi_message){slot->n, slot->labels, slot->mu};
    }
    fgi_argmax found;
    const fgi_rc rc = gdmm_ask(g, w, &v, &g->active[f], &found);
    if (rc) {
        w->rc = rc;
        return INFINITY;
    }
    if (found.state < 0 || found.value < -0.5 * GDMM_FORBIDDEN) return -INFINITY;
    /* A state whose value is v has a score of at most |v| and its multipliers: its error is no more than this one. */
    double magnitude = fabs(found.value);
    for (int32_t k = 0; k < v.arity; k++) magnitude += 2 * largest_multiplier(&g->slots[fgi_factor_begin(s, f) + k]);
    return found.value + rounding(v.arity + 1) * magnitude;
}

/* Every label with the error of its own sum; the label it is attained at is where a warm start begins. */
static double variable_maximum(gdmm *g, gdmm_worker *w, int64_t i) {
    const fgi_structure *s = g->model->s;
    const double *theta = g->theta + s->unary_begin[i];
    int32_t n = 0, label = g->rounded[i];
    double best = -INFINITY;
    const double error = rounding(s->adj_begin[i + 1] - s->adj_begin[i] + 1);
    for (int64_t k = s->adj_begin[i]; k < s->adj_begin[i + 1]; k++) {
        const gdmm_slot *slot = &g->slots[g->adj_slot[k]];
        for (int32_t e = 0; e < slot->n; e++) {
            int32_t a = slot->labels[e];
            if (!w->mark[a]) {
                if (theta[a] == -INFINITY) continue;
                w->mark[a] = 1;
                w->sum[a] = theta[a];
                w->size[a] = fabs(theta[a]);
                w->touched[n++] = a;
            }
            w->sum[a] += slot->mu[e];
            w->size[a] += fabs(slot->mu[e]);
        }
    }
    for (int32_t k = 0; k < n; k++) {
        const double most = w->sum[w->touched[k]] + error * w->size[w->touched[k]];
        if (most > best) {
            best = most;
            label = w->touched[k];
        }
    }
    if (g->sorted && s->cards[i] > n) { /* looks for the best label without a message, too */
        const int32_t *sorted = g->sorted + s->unary_begin[i];
        int32_t k = 0;
        while (k < s->cards[i] && w->mark[sorted[k]]) k++;
        if (k < s->cards[i] && theta[sorted[k]] > best) {
            best = theta[sorted[k]];
            label = sorted[k];
        }
    } else if (n == 0) {
        best = theta[g->rounded[i]];
    }
    for (int32_t k = 0; k < n; k++) w->mark[w->touched[k]] = 0;
    if (gdmm_steps(g) == 0) g->rounded[i] = label;
    return best;
}

static int64_t factor_blocks(const gdmm *g) { return (g->model->s->n_factors + GDMM_BLOCK - 1) / GDMM_BLOCK; }

int64_t gdmm_bound_size(const gdmm *g) {
    return factor_blocks(g) + (g->model->s->n_vars + GDMM_BLOCK - 1) / GDMM_BLOCK;
}

/* One index is one block of factors or of variables, with a sum of its own. */
void gdmm_bound_pass(void *context, int64_t begin, int64_t end, int worker) {
    gdmm *g = context;
    gdmm_worker *w = &g->workers[worker];
    const int64_t split = factor_blocks(g);
    for (int64_t b = begin; b < end; b++) {
        fgi_sum sum = {0};
        int64_t first = (b < split ? b : b - split) * GDMM_BLOCK,
                n = b < split ? g->model->s->n_factors : g->model->s->n_vars;
        for (int64_t k = first; k < first + GDMM_BLOCK && k < n; k++)
            fgi_sum_add(&sum, b < split ? factor_maximum(g, w, k) : variable_maximum(g, w, k));
        g->partial_sum[b] = sum;
    }
}

double gdmm_bound_value(const gdmm *g) {
    fgi_sum sum = {0};
    double magnitude = fabs(g->model->s->constant);
    fgi_sum_add(&sum, g->model->s->constant);
    for (int64_t b = 0; b < gdmm_bound_size(g); b++) {
        double value = fgi_sum_value(&g->partial_sum[b]);
        if (value > -INFINITY) magnitude += fabs(value);
        fgi_sum_add(&sum, value);
    }
    double value = fgi_sum_value(&sum);
    return value == -INFINITY ? value : value + rounding(2) * magnitude; /* the terms have been rounded up already */
}
