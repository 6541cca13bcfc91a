/* again/factors.c - factors that come and go under a keeper, see again/keeper.h. */
#include <string.h>
#include "again/keeper.h"
#include "base/util.h"
#include "model/draft.h"

enum { MOST_STATES = 1 << 22 };       /* states of a factor that is added: 32 MB */
static const double MOST_GROWTH = 16; /* see again/keeper.c */

static fgi_rc check_factor(const fgi_keeper *s, const fgi_keeper_factor *f, int64_t *states, fgi_error *err) {
    if (f->arity < 2 || f->arity > FGI_KEEPER_ARITY || (f->kind != FGI_DENSE && f->arity != 2))
        return fgi_fail(err, FGI_UNSUPPORTED, -1, "a factor over %d variables cannot be added here", f->arity);
    *states = 1;
    for (int32_t q = 0; q < f->arity; q++) {
        const int32_t i = f->vars[q];
        if (i < 0 || i >= s->n_vars) return fgi_fail(err, FGI_BAD_ARGUMENT, i, "there is no variable %d", i);
        for (int32_t l = 0; l < q; l++)
            if (f->vars[l] == i) return fgi_fail(err, FGI_BAD_ARGUMENT, i, "the factor names variable %d twice", i);
        if (!fgi_mul(*states, s->m->s->cards[i], states) || *states > MOST_STATES)
            return fgi_fail(err, FGI_UNSUPPORTED, -1, "the factor has too many states to be added here");
    }
    if (!(f->weight > 0 && f->weight < INFINITY) || (f->kind == FGI_DENSE && !f->values))
        return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "the factor has no scores, or a weight that is not above 0");
    return FGI_OK;
}

/* The largest finite magnitude, and what the factor says about the unit; -1: scores that are NaN or +inf. */
static double measure(const fgi_keeper *s, const fgi_view *v, int64_t states, double *unit) {
    double best = -INFINITY, second = -INFINITY, largest = 0;
    const int64_t n = v->kind == FGI_DENSE ? states : (v->rows > v->cols ? v->rows : v->cols);
    (void)s;
    for (int64_t k = 0; k < n; k++) {
        const double x =
            v->weight * (v->kind == FGI_DENSE ? v->values[k] : fgi_implicit_at(v->kind, v->p0, v->p1, (int32_t)k, 0));
        if (!(x < INFINITY)) return -1;
        if (x == -INFINITY) continue;
        largest = fgi_larger(largest, fabs(x));
        if (x > best) second = best, best = x;
        else if (x < best) second = fgi_larger(second, x);
    }
    *unit = second > -INFINITY ? best - second : INFINITY;
    return largest;
}

/* Room for one factor more; 0: no memory. */
static int make_room(fgi_keeper *s, const fgi_keeper_factor *f, int64_t messages, int64_t states) {
    const int64_t n = s->n_factors + 1;
    if (!s->first_slot) {
        s->first_slot = fgi_alloc(s->n_vars, sizeof *s->first_slot);
        if (!s->first_slot) return 0;
        memset(s->first_slot, -1, (size_t)s->n_vars * sizeof *s->first_slot);
    }
    if (n > s->factor_room) {
        const int64_t room = n + n / 2;
        if (!fgi_resize(&s->gone, room, 1) || !fgi_resize(&s->full_at, room, 1) ||
            !fgi_resize(&s->mu_begin, room, sizeof *s->mu_begin))
            return 0;
        s->factor_room = room;
    }
    int64_t degree = 0;
    for (int32_t q = 0; q < f->arity; q++) {
        fgi_keeper_walk w = fgi_keeper_walk_begin(s, f->vars[q]);
        int64_t d = 1;
        while (fgi_keeper_walk_next(s, f->vars[q], &w) >= 0) d++;
        if (d > degree) degree = d;
    }
    return fgi_grow(&s->added, &s->added_room, n - s->n_base, sizeof *s->added) &&
        fgi_grow(&s->mu, &s->mu_room, s->n_mu + messages, sizeof *s->mu) &&
        fgi_array_reserve(&s->slots, 2 * f->arity, sizeof(int32_t)) && fgi_keeper_reserve(s, degree, states) &&
        fgi_terms_extend(&s->factors, n);
}

fgi_rc fgi_keeper_add_factor(fgi_keeper *s, const fgi_keeper_factor *f, int64_t *number, fgi_error *err) {
    int64_t states = 0, messages = 0;
    fgi_rc rc = check_factor(s, f, &states, err);
    if (rc) return rc;
    const int32_t *cards = s->m->s->cards;
    fgi_view v = {.kind = f->kind,
        .arity = f->arity,
        .table = -1,
        .transposed = f->transposed,
        .weight = f->weight,
        .p0 = f->p0,
        .p1 = f->p1,
        .rows = cards[f->vars[0]],
        .cols = cards[f->vars[1]]};
    double unit = INFINITY;
    v.values = f->values;
    const double largest = measure(s, &v, states, &unit);
    if (largest < 0) return fgi_fail(err, FGI_BAD_MODEL, -1, "the factor has a score that is NaN or +inf");
    if (largest > MOST_GROWTH * s->largest)
        return fgi_fail(err, FGI_UNSUPPORTED, -1, "a score of %g is much larger than those before", largest);
    for (int32_t q = 0; q < f->arity; q++) messages += cards[f->vars[q]];
    int32_t *vars = fgi_copy(f->vars, f->arity, sizeof *vars);
    double *values = f->kind == FGI_DENSE ? fgi_copy(f->values, states, sizeof *values) : NULL;
    if (!vars || (f->kind == FGI_DENSE && !values) || !make_room(s, f, messages, states)) {
        free(vars);
        free(values);
        if (s->factors.n > s->n_factors) s->factors.n = s->n_factors;
        return fgi_no_memory(err);
    }
    v.vars = vars;
    v.values = values;
    const int64_t at = s->n_factors++;
    s->added[at - s->n_base] = v;
    s->gone[at] = 0;
    s->mu_begin[at] = s->n_mu;
    memset(s->mu + s->n_mu, 0, (size_t)messages * sizeof *s->mu);
    s->n_mu += messages;
    for (int32_t q = 0; q < f->arity; q++) {
        const int32_t slot = (int32_t)(s->slots.n / 2);
        fgi_array_push_i32(&s->slots, (int32_t)at);
        fgi_array_push_i32(&s->slots, s->first_slot[vars[q]]);
        s->first_slot[vars[q]] = slot;
        fgi_keeper_changed_at(s, vars[q]);
    }
    s->factors.at[at].unit = unit;
    fgi_keeper_refresh_factor(s, at);
    *number = at;
    return FGI_OK;
}

/* Its messages go with it: what they have moved to its variables is theirs no longer. */
fgi_rc fgi_keeper_remove_factor(fgi_keeper *s, int64_t f, fgi_error *err) {
    if (f < 0 || f >= s->n_factors || s->gone[f])
        return fgi_fail(err, FGI_BAD_ARGUMENT, f, "there is no factor %lld", (long long)f);
    const fgi_view v = fgi_keeper_view(s, f);
    s->gone[f] = 1;
    s->factors.at[f] = (fgi_term){.unit = INFINITY};
    fgi_terms_touch(&s->factors, f, FGI_TERM_TOP | FGI_TERM_VALUE);
    for (int32_t q = 0; q < v.arity; q++) {
        fgi_keeper_refresh_variable(s, v.vars[q]);
        fgi_keeper_changed_at(s, v.vars[q]);
    }
    return FGI_OK;
}

static int32_t draft_table(fgi_draft *d, const fgi_keeper *s, const fgi_view *v) {
    int32_t dims[FGI_KEEPER_ARITY];
    double *values;
    int64_t states = 1;
    if (v->kind != FGI_DENSE) return fgi_draft_implicit(d, v->kind, v->p0, v->p1);
    for (int32_t q = 0; q < v->arity; q++) {
        dims[q] = s->m->s->cards[v->vars[v->transposed ? v->arity - 1 - q : q]];
        states *= dims[q];
    }
    const int32_t table = fgi_draft_dense(d, v->arity, dims, &values);
    if (table >= 0) memcpy(values, v->values, (size_t)states * sizeof *values);
    return table;
}

fgi_rc fgi_keeper_model(const fgi_keeper *s, fgi_model **out, fgi_error *err) {
    int same = s->n_factors == s->n_base && s->constant == s->m->s->constant;
    for (int64_t f = 0; same && f < s->n_base; f++) same = !s->gone[f];
    if (same) {
        *out = fgi_model_snapshot(s->m);
        return *out ? FGI_OK : fgi_no_memory(err);
    }
    fgi_draft d;
    fgi_draft_begin(&d, s->m);
    for (int64_t i = 0; i < s->n_vars; i++) fgi_draft_variable(&d, s->m->s->cards[i], fgi_unary(s->m, i));
    for (int64_t f = 0; f < s->n_base; f++)
        if (!s->gone[f]) fgi_draft_copy_factor(&d, f, NULL);
    for (int64_t f = s->n_base; f < s->n_factors; f++) {
        const fgi_view *v = &s->added[f - s->n_base];
        if (!s->gone[f]) fgi_draft_factor(&d, draft_table(&d, s, v), v->weight, v->transposed, v->arity, v->vars, NULL);
    }
    const fgi_rc rc = fgi_draft_finish(&d, s->constant, out, err);
    fgi_draft_free(&d);
    return rc;
}
