/* learn/gdmm/check.c - the invariants of supports and edges, looked at in checked builds: see learn/gdmm/gdmm.h. */
#include "learn/gdmm/gdmm.h"

#ifdef FGI_CHECKED

static const double ROUNDING = 1e-6; /* rounding, as a share of C */

static void check_support(const fgi_learn_gdmm *g, int64_t token) {
    const fgi_support *t = &g->tokens[token];
    const int32_t truth = g->L->data.truth[token];
    int has_truth = 0;
    fgi_assert(t->n >= 1 && t->n <= t->capacity && t->degree >= 0);
    for (int32_t at = 0; at < t->n; at++) {
        const double alpha = t->value[at];
        fgi_assert(t->label[at] >= 0 && t->label[at] < g->L->data.n_labels);
        fgi_assert(at == 0 || t->label[at - 1] < t->label[at]);
        has_truth |= t->label[at] == truth;
        if (!g->L->proximal.center) /* whose points change C */
            fgi_assert(t->label[at] == truth ? alpha <= (1 + ROUNDING) * g->C : alpha <= ROUNDING * g->C);
        for (int32_t r = 0; r <= 2 * t->degree; r++) fgi_assert(isfinite(fgi_support_row(t, r)[at]));
    }
    fgi_assert(has_truth);
}

static void check_edge(const fgi_learn_gdmm *g, int64_t first_token, const fgi_edge_block *e) {
    const fgi_support *u = &g->tokens[first_token + e->u], *v = &g->tokens[first_token + e->v];
    fgi_assert(e->n >= 0 && e->n <= e->capacity && e->u != e->v);
    fgi_assert(e->ku >= 0 && e->ku < u->degree && e->kv >= 0 && e->kv < v->degree);
    for (int32_t s = 0; s < e->n; s++) {
        const int32_t a = e->state[2 * s], b = e->state[2 * s + 1];
        fgi_assert(fgi_support_find(u, a) >= 0 && fgi_support_find(v, b) >= 0);
        fgi_assert(a != g->L->data.truth[first_token + e->u] || b != g->L->data.truth[first_token + e->v]);
        fgi_assert(e->beta[s] >= 0 && e->beta[s] < INFINITY);
        for (int32_t r = 0; r < s; r++) fgi_assert(e->state[2 * r] != a || e->state[2 * r + 1] != b);
    }
}

void fgi_learn_gdmm_check(const fgi_learn_gdmm *g) {
    const fgi_learn_data *d = &g->L->data;
    fgi_assert(g->C > 0 && g->rho > 0);
    for (int64_t t = 0; t < g->n_tokens; t++) check_support(g, t);
    for (int64_t i = 0; i < d->n_examples && g->n_edges; i++)
        for (int64_t e = fgi_learn_gdmm_edge_begin(g, i); e < fgi_learn_gdmm_edge_begin(g, i + 1); e++)
            check_edge(g, d->token_begin[i], &g->edges[e]);
}

#endif
