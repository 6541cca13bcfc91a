/* gdmm/factor.c - the factor pass of Algorithm 8: for every factor, given x and mu,
 *
 *     y_f = argmax over the active states of  theta_f.y - sum_i [ mu_if.M_if y + rho/2 |M_if y - x_i|^2 ]    (3.28)
 *
 * after the oracle has added the state with the steepest ascent (3.31): argmax theta_f - sum_i delta_if,
 * delta_if = mu_if + rho (M_if y_f - x_i). The active sets are tiny, so (3.28) is solved to the end on them instead of
 * by one projected step (3.29). Binary pairwise factors have a closed form and need neither oracle nor active set. */
#include <string.h>
#include "gdmm/gdmm.h"

static const int32_t MAX_STEPS = 100; /* steps of an ascent; one that is cut short goes on in the next pass */

static double clip(double p) { return p < 0 ? 0 : p > 1 ? 1 : p; }

/* min over p, q in [0,1] of (p-p0)^2 + (q-q0)^2 - tau min(p,q), tau >= 0 */
static void attract(double p0, double q0, double tau, double *p, double *q) {
    double h = 0.5 * tau;
    if (p0 > q0 + h) {
        *p = clip(p0);
        *q = clip(q0 + h);
    } else if (q0 > p0 + h) {
        *p = clip(p0 + h);
        *q = clip(q0);
    } else {
        *p = *q = clip(0.5 * (p0 + q0 + h));
    }
}

/* y(1,1) is min(p,q) when tau >= 0, else max(0, p+q-1) = p - min(p, 1-q). */
void gdmm_binary_step(double p0, double q0, double tau, double *p, double *q) {
    if (tau >= 0) {
        attract(p0, q0, tau, p, q);
    } else {
        attract(p0 + 0.5 * tau, 1 - q0, -tau, p, q);
        *q = 1 - *q;
    }
}

/* With m = (1-p, p) and n = (1-q, q), |m - x|^2 is 2 (p - (1 - x_0 + x_1) / 2)^2 plus a constant. */
static void update_pair(gdmm *g, int64_t f) {
    fgi_assert(g->pairs && g->is_pair[f] && g->rho > 0);
    const gdmm_pair *t = &g->pairs[f];
    gdmm_slot *slot = &g->slots[fgi_factor_begin(g->model->s, f)], *r = slot + 1;
    const double half = 0.5 / g->rho;
    double p, q, p0 = 0.5 * (1 - slot->x[0] + slot->x[1]) + half * (t->u0 - (slot->mu[1] - slot->mu[0]));
    double q0 = 0.5 * (1 - r->x[0] + r->x[1]) + half * (t->u1 - (r->mu[1] - r->mu[0]));
    gdmm_binary_step(p0, q0, 2 * half * t->t, &p, &q);
    fgi_assert(p >= 0 && p <= 1 && q >= 0 && q <= 1);
    slot->m[0] = 1 - p;
    slot->m[1] = p;
    r->m[0] = 1 - q;
    r->m[1] = q;
}

/* delta_if for all variables of the factor, in the worker's messages. */
static void collect_messages(const gdmm *g, gdmm_worker *w, int64_t first, int32_t arity) {
    double *delta = w->delta;
    fgi_assert(first >= 0 && first + arity <= g->n_slots);
    for (int32_t k = 0; k < arity; k++) {
        const gdmm_slot *slot = &g->slots[first + k];
        for (int32_t e = 0; e < slot->n; e++) delta[e] = slot->mu[e] + g->rho * (slot->m[e] - slot->x[e]);
        w->messages[k] = (fgi_message){slot->n, slot->labels, delta};
        delta += slot->n;
    }
}

static int reserve(gdmm_active *a, int32_t arity) {
    if (a->n < a->capacity) return 1;
    int32_t capacity = a->capacity ? 2 * a->capacity : 2;
    double *block = fgi_alloc(capacity, 2 * sizeof(double) + (size_t)arity * sizeof(int32_t));
    if (!block) return 0;
    int32_t *labels = (int32_t *)(block + 2 * (int64_t)capacity);
    if (a->n) {
        memcpy(block, a->theta, (size_t)a->n * sizeof(double));
        memcpy(block + capacity, a->y, (size_t)a->n * sizeof(double));
        memcpy(labels, a->labels, (size_t)a->n * (size_t)arity * sizeof(int32_t));
    }
    free(a->theta);
    *a = (gdmm_active){a->n, capacity, labels, block, block + capacity};
    return 1;
}

static double message_at(const fgi_message *m, const gdmm_slot *slot, int32_t label) {
    int32_t at = gdmm_slot_find(slot, label);
    fgi_assert(m->n == slot->n && at < slot->n);
    return at < 0 ? 0 : m->values[at];
}

static void unpack_state(const fgi_structure *s, const fgi_view *v, int64_t state, int32_t *labels) {
    for (int32_t k = v->arity - 1; k >= 0; k--) {
        labels[k] = (int32_t)(state % s->cards[v->vars[k]]);
        state /= s->cards[v->vars[k]];
    }
    fgi_assert(state == 0);
}

static double state_score(const fgi_view *v, int64_t state, const int32_t *labels) {
    return v->arity == 2 ? fgi_view_at2(v, labels[0], labels[1]) : v->weight * v->values[state];
}

/* Gains theta - sum delta of the active states, and the oracle's state added if it promises more than they do. */
static int refresh_active(gdmm *g, gdmm_worker *w, const fgi_view *v, int64_t first, gdmm_active *a, fgi_argmax found) {
    const int32_t arity = v->arity;
    if (!fgi_grow(&w->gain, &w->gain_capacity, (int64_t)a->n + 1, sizeof *w->gain)) return 0;
    double top = -INFINITY;
    for (int32_t s = 0; s < a->n; s++) {
        w->gain[s] = a->theta[s];
        const int32_t *label = a->labels + (int64_t)s * arity;
        for (int32_t k = 0; k < arity; k++) w->gain[s] -= message_at(&w->messages[k], &g->slots[first + k], label[k]);
        if (w->gain[s] > top) top = w->gain[s];
    }
    if (a->n > 0 && !(found.value > top)) return 1;
    if (!reserve(a, arity)) return 0;
    int32_t *labels = a->labels + (int64_t)a->n * arity;
    unpack_state(g->model->s, v, found.state, labels);
    for (int32_t s = 0; s < a->n; s++) /* equal up to rounding: already there */
        if (memcmp(labels, a->labels + (int64_t)s * arity, (size_t)arity * sizeof *labels) == 0) return 1;
    a->theta[a->n] = state_score(v, found.state, labels);
    a->y[a->n] = a->n == 0 ? 1 : 0;
    fgi_assert(a->n < a->capacity && a->theta[a->n] > -INFINITY);
    w->gain[a->n++] = found.value;
    return 1;
}

/* How many active states have their most frequent label of the variable in common. */
static int32_t most_shared(const gdmm_active *a, int32_t arity, int32_t k) {
    int32_t most = 0;
    for (int32_t s = 0; s < a->n; s++) {
        int32_t count = 0;
        for (int32_t r = 0; r < a->n; r++)
            count += a->labels[(int64_t)r * arity + k] == a->labels[(int64_t)s * arity + k];
        if (count > most) most = count;
    }
    return most;
}

/* (3.29): y <- P(y + gain / Q). Q is rho times the most active states that share a label, summed over the variables,
 * which bounds the Hessian on the active set. */
static void step_once(const gdmm *g, const gdmm_worker *w, gdmm_active *a, int32_t arity) {
    double shared = 0;
    for (int32_t k = 0; k < arity; k++) shared += most_shared(a, arity, k);
    for (int32_t s = 0; s < a->n; s++) a->y[s] += w->gain[s] / (g->rho * shared);
    fgi_simplex_project(a->y, a->n);
}

/* m = M y in all slots; states that ended at zero leave. */
static int scatter(gdmm *g, gdmm_active *a, int64_t first, int32_t arity) {
    int32_t kept = 0;
    for (int32_t s = 0; s < a->n; s++) {
        if (!(a->y[s] > 0)) continue;
        a->theta[kept] = a->theta[s];
        a->y[kept] = a->y[s];
        memmove(a->labels + (int64_t)kept * arity, a->labels + (int64_t)s * arity, (size_t)arity * sizeof(int32_t));
        kept++;
    }
    a->n = kept;
    for (int32_t k = 0; k < arity; k++) {
        gdmm_slot *slot = &g->slots[first + k];
        if (slot->n) memset(slot->m, 0, (size_t)slot->n * sizeof(double));
        for (int32_t s = 0; s < a->n; s++) {
            int32_t at = gdmm_slot_at(slot, a->labels[(int64_t)s * arity + k]);
            if (at < 0) return 0;
            slot->m[at] += a->y[s];
        }
    }
    return 1;
}

/* The active state with the largest share, as a flat index: a hint that sharpens the oracle's first bounds. -1: none.
 */
static int64_t strongest(const gdmm *g, const fgi_view *v, const gdmm_active *a) {
    if (a->n == 0) return -1;
    int32_t best = 0;
    int64_t state = 0;
    for (int32_t s = 1; s < a->n; s++)
        if (a->y[s] > a->y[best]) best = s;
    for (int32_t k = 0; k < v->arity; k++)
        state = state * g->model->s->cards[v->vars[k]] + a->labels[(int64_t)best * v->arity + k];
    return state;
}

fgi_rc gdmm_ask(const gdmm *g, gdmm_worker *w, const fgi_view *v, const gdmm_active *a, fgi_argmax *out) {
    const fgi_table_source table = gdmm_source(g, v, w->cards);
    const fgi_oracle_query query = {
        .source = &table.base, .messages = w->messages, .hint = g->dense ? -1 : strongest(g, v, a)};
    return fgi_oracle_answer(&query, w->oracle, out);
}

static fgi_rc update_factor(gdmm *g, gdmm_worker *w, int64_t f) {
    const fgi_structure *s = g->model->s;
    const fgi_view v = fgi_factor_view(g->model, f);
    const int64_t first = fgi_factor_begin(s, f);
    gdmm_active *a = &g->active[f];
    collect_messages(g, w, first, v.arity);
    fgi_argmax found;
    fgi_rc rc = gdmm_ask(g, w, &v, a, &found);
    if (rc) return rc;
    if (found.state < 0 || found.value < -0.5 * GDMM_FORBIDDEN) {
        w->infeasible = 1;
        return FGI_OK;
    }
    if (!refresh_active(g, w, &v, first, a, found)) return FGI_NO_MEMORY;
    if (g->published) step_once(g, w, a, v.arity);
    else if (a->n > 1) fgi_simplex_ascend(a->n, v.arity, a->labels, g->rho, w->gain, a->y, MAX_STEPS);
    if (!scatter(g, a, first, v.arity)) return FGI_NO_MEMORY;
    fgi_audit_rarely(gdmm_active_check(g, f));
    return FGI_OK;
}

void gdmm_factor_pass(void *context, int64_t begin, int64_t end, int worker) {
    gdmm *g = context;
    gdmm_worker *w = &g->workers[worker];
    fgi_assert(begin >= 0 && end <= g->model->s->n_factors && worker < g->n_workers);
    for (int64_t f = begin; f < end; f++) {
        if (g->is_pair[f]) {
            update_pair(g, f);
            w->closed_forms++;
        } else {
            fgi_rc rc = update_factor(g, w, f);
            if (rc) w->rc = rc;
        }
    }
}
