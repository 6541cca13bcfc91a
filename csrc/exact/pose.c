/* exact/pose.c - poses a problem to the eliminator: a model, or a subset of its variables with the rest held. */
#include <string.h>
#include "exact/eliminator.h"

/* A factor with one free variable (its k-th) is a unary term. */
static void add_to_unary(fgi_eliminator *e, const fgi_view *v, int32_t k, double *u) {
    const int32_t card = e->m->s->cards[v->vars[k]];
    if (v->arity == 2) {
        const int32_t other = e->labels[v->vars[1 - k]];
        if (v->kind != FGI_DENSE) {
            for (int32_t a = 0; a < card; a++)
                u[a] += raise_score(e, k == 0 ? fgi_view_at2(v, a, other) : fgi_view_at2(v, other, a));
            return;
        }
        /* First variable fixed picks a row of the factor's view, the second a column. */
        const int64_t rows = v->transposed ? 1 : v->cols, cols = v->transposed ? v->rows : 1;
        const double *at = v->values + other * (k == 0 ? cols : rows);
        const int64_t stride = k == 0 ? rows : cols;
        if (card == 2) {
            u[0] += raise_score(e, v->weight * at[0]);
            u[1] += raise_score(e, v->weight * at[stride]);
            return;
        }
        for (int32_t a = 0; a < card; a++) u[a] += raise_score(e, v->weight * at[a * stride]);
        return;
    }
    int64_t base = 0, stride = 1, mine = 1;
    for (int32_t l = v->arity; l-- > 0; stride *= e->m->s->cards[v->vars[l]]) {
        if (l == k) mine = stride;
        else base += stride * e->labels[v->vars[l]];
    }
    for (int32_t a = 0; a < card; a++) u[a] += raise_score(e, v->weight * v->values[base + a * mine]);
}

/* Files the factor: its free variables become a scope, or a unary term when there is only one. */
static fgi_rc pose_factor(fgi_eliminator *e, int32_t f, int32_t var) {
    const fgi_structure *s = e->m->s;
    const int32_t arity = fgi_factor_arity(s, f), *vars = fgi_factor_vars(s, f), mine = e->local[var];
    int32_t free_vars = 0, slot = 0;
    for (int32_t k = 0; k < arity; k++) {
        int32_t other = e->local[vars[k]];
        if (other >= 0 && other < mine) return FGI_OK; /* filed with that variable */
        free_vars += other >= 0;
        if (vars[k] == var) slot = k;
    }
    if (free_vars == 1) {
        fgi_view v = fgi_factor_view(e->m, f);
        add_to_unary(e, &v, slot, e->unary + e->unary_at[mine]);
        return FGI_OK;
    }
    const int64_t at = e->n_factors ? e->scope_begin[e->n_factors] : 0;
    if (!fgi_grow(&e->factor, &e->factor_capacity, e->n_factors + 1, sizeof(int32_t)) ||
        !fgi_grow(&e->scope_begin, &e->begin_capacity, e->n_factors + 2, sizeof(int64_t)) ||
        !fgi_grow(&e->scope, &e->scope_capacity, at + free_vars, sizeof(int32_t)))
        return FGI_NO_MEMORY;
    e->scope_begin[0] = 0;
    int64_t end = at;
    for (int32_t k = 0; k < arity; k++)
        if (e->local[vars[k]] >= 0) e->scope[end++] = e->local[vars[k]];
    e->factor[e->n_factors] = f;
    e->scope_begin[++e->n_factors] = end;
    return FGI_OK;
}

static fgi_rc pose_all(fgi_eliminator *e, const int32_t *subset) {
    const fgi_structure *s = e->m->s;
    int64_t total = 0;
    for (int32_t i = 0; i < e->n; i++) {
        int32_t var = subset ? subset[i] : i;
        if (var < 0 || var >= s->n_vars || e->local[var] >= 0) { /* unknown, or listed twice */
            e->n = i;
            return FGI_BAD_ARGUMENT;
        }
        e->var[i] = var;
        e->card[i] = s->cards[var];
        e->unary_at[i] = total;
        total += s->cards[var];
        e->local[var] = i;
    }
    if (!fgi_grow(&e->unary, &e->unary_capacity, total, sizeof(double))) return FGI_NO_MEMORY;
    for (int32_t i = 0; i < e->n; i++) {
        const double *u = fgi_unary(e->m, e->var[i]);
        for (int32_t a = 0; a < e->card[i]; a++) e->unary[e->unary_at[i] + a] = raise_score(e, u[a]);
    }
    for (int32_t i = 0; i < e->n; i++)
        for (int64_t k = s->adj_begin[e->var[i]]; k < s->adj_begin[e->var[i] + 1]; k++) {
            fgi_rc rc = pose_factor(e, s->adj[k], e->var[i]);
            if (rc) return rc;
        }
    return FGI_OK;
}

fgi_rc fgi_eliminator_pose(
    fgi_eliminator *e, const int32_t *labels, const int32_t *subset, int64_t n, double forbidden) {
    fgi_eliminator_drop_messages(e);
    for (int32_t i = 0; i < e->n; i++) e->local[e->var[i]] = -1;
    e->labels = labels;
    e->forbidden = forbidden;
    e->n = 0;
    e->n_factors = 0;
    e->bags = NULL;
    e->p = e->open = 0;
    e->work_done = 0;
    e->arena_used = 0;
    memset(&e->value, 0, sizeof e->value);
    if (!subset) n = e->m->s->n_vars;
    if (!fgi_grow(&e->var, &e->var_capacity, n, sizeof(int32_t)) ||
        !fgi_grow(&e->card, &e->card_capacity, n, sizeof(int32_t)) ||
        !fgi_grow(&e->unary_at, &e->unary_at_capacity, n, sizeof(int64_t)) ||
        !fgi_grow(&e->scratch, &e->scratch_capacity, n, sizeof(int32_t)))
        return FGI_NO_MEMORY;
    e->n = (int32_t)n;
    return pose_all(e, subset);
}
