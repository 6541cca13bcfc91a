/* gdmm/check.c - the invariants of slots and active states, looked at in checked builds: see gdmm/gdmm.h. */
#include "gdmm/gdmm.h"
#include <string.h>

#ifdef FGI_CHECKED

static const double ROUNDING = 1e-9; /* rounding of a share, which is from 0 to 1 */

static void check_slot(const gdmm_slot *s, int32_t card) {
    fgi_assert(s->n >= 0 && s->n <= card && (s->capacity == 0 || s->n <= s->capacity));
    fgi_assert(s->capacity > 0 || s->n == 0 || s->n == card);
    for (int32_t e = 0; e < s->n; e++) {
        fgi_assert(s->labels[e] >= 0 && s->labels[e] < card);
        fgi_assert(e == 0 || s->labels[e - 1] < s->labels[e]);
        fgi_assert(s->m[e] >= 0 && s->m[e] <= 1 + ROUNDING);
        fgi_assert(s->x[e] >= 0 && s->x[e] <= 1 + ROUNDING);
        fgi_assert(s->mu[e] == s->mu[e]);
    }
}

void gdmm_active_check(const gdmm *g, int64_t f) {
    const gdmm_active *a = &g->active[f];
    const fgi_view v = fgi_factor_view(g->model, f);
    double sum = 0;
    fgi_assert(a->n >= 0 && a->n <= a->capacity);
    for (int32_t s = 0; s < a->n; s++) {
        const int32_t *labels = a->labels + (int64_t)s * v.arity;
        for (int32_t k = 0; k < v.arity; k++) fgi_assert(labels[k] >= 0 && labels[k] < g->model->s->cards[v.vars[k]]);
        for (int32_t t = 0; t < s; t++)
            fgi_assert(memcmp(labels, a->labels + (int64_t)t * v.arity, (size_t)v.arity * sizeof *labels) != 0);
        fgi_assert(a->theta[s] > -INFINITY && a->theta[s] < INFINITY);
        fgi_assert(a->y[s] >= 0 && a->y[s] <= 1 + ROUNDING);
        sum += a->y[s];
    }
    fgi_assert(a->n == 0 || fabs(sum - 1) <= ROUNDING);
}

void gdmm_check(const gdmm *g) {
    const fgi_structure *st = g->model->s;
    fgi_assert(g->rho > 0 && g->n_slots == fgi_factor_begin(st, st->n_factors));
    for (int64_t s = 0; s < g->n_slots; s++) check_slot(&g->slots[s], st->cards[st->vars[s]]);
    for (int64_t f = 0; f < st->n_factors; f++) {
        fgi_assert(!g->is_pair[f] || (g->pairs && g->active[f].n == 0));
        gdmm_active_check(g, f);
    }
    for (int64_t i = 0; i < st->n_vars; i++) {
        fgi_assert(g->rounded[i] >= 0 && g->rounded[i] < st->cards[i]);
        for (int64_t k = st->adj_begin[i]; k < st->adj_begin[i + 1]; k++) fgi_assert(st->vars[g->adj_slot[k]] == i);
    }
}

#endif
