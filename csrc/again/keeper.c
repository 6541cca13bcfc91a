/* again/keeper.c - how a keeper is made and changed, see again/keeper.h. */
#include "again/keeper.h"
#include <string.h>
#include "base/util.h"
#include "model/marginal.h"

enum { MOST_DEGREE = 1 << 12 };           /* factors of a variable: messages must stay far from the wall */
static const double WALL = 0x1p24;        /* times the largest score */
static const double MOST_GROWTH = 16;     /* times the largest score at first: for larger ones the wall is too low */
static const double MOST_SCORE = 0x1p100; /* the unit that solvers would choose is this one */

/* ---- made ---------------------------------------------------------------------------------------------------- */

static double largest_score(const fgi_model *m) {
    const fgi_structure *st = m->s;
    double largest = fgi_extremes_of(m->u->values, st->unary_begin[st->n_vars]).largest;
    for (int64_t f = 0; f < st->n_factors; f++) {
        const fgi_table_facts *facts = &m->t->facts[st->factor_table[f]];
        if (facts->max > -INFINITY)
            largest =
                fgi_larger(largest, fgi_factor_weight(st, f) * fgi_larger(fabs(facts->max), fabs(facts->min_finite)));
    }
    return largest;
}

static int64_t most_states(const fgi_model *m) {
    int64_t most = 0;
    for (int64_t f = 0; m->s->max_arity > 2 && f < m->s->n_factors; f++) {
        const fgi_view v = fgi_factor_view(m, f);
        if (v.arity == 2) continue;
        const int64_t states = fgi_view_states(m, &v);
        if (states > most) most = states;
    }
    return most;
}

static int take_memory(fgi_keeper *s) {
    const fgi_structure *st = s->m->s;
    const int64_t n = st->n_vars, most = st->max_card;
    s->labels = fgi_take(&s->arena, n, int32_t);
    s->trial = fgi_take(&s->arena, n, int32_t);
    s->is_dirty = fgi_take_zero(&s->arena, n, uint8_t);
    s->is_active = fgi_take_zero(&s->arena, n, uint8_t);
    s->hat = fgi_take(&s->arena, most, double);
    s->given = fgi_take(&s->arena, most, double);
    s->weight_of = fgi_take(&s->arena, most, double);
    s->out = fgi_take(&s->arena, most, double);
    s->h = fgi_take(&s->arena, FGI_KEEPER_ARITY * most, double);
    if (s->arena.failed) return 0;
    return fgi_array_reserve(&s->dirty, n + 1, sizeof(int32_t)) &&
        fgi_array_reserve(&s->active, n + 1, sizeof(int32_t)) && fgi_array_reserve(&s->moved, n + 1, sizeof(int32_t)) &&
        fgi_array_reserve(&s->waiting, n + 1, sizeof(int32_t)) &&
        fgi_array_reserve(&s->joined, n + 1, sizeof(int32_t)) && fgi_resize(&s->gone, st->n_factors, 1) &&
        fgi_resize(&s->full_at, st->n_factors, 1) && fgi_resize(&s->mu_begin, st->n_factors, sizeof *s->mu_begin) &&
        fgi_resize(&s->mu, s->n_mu, sizeof *s->mu) && fgi_terms_extend(&s->vars, n) &&
        fgi_terms_extend(&s->factors, st->n_factors) && fgi_keeper_reserve(s, st->max_degree + 1, most_states(s->m));
}

static void refresh_all(fgi_keeper *s) {
    for (int64_t i = 0; i < s->n_vars; i++) {
        fgi_keeper_refresh_variable(s, (int32_t)i);
        s->vars.at[i].unit = fgi_model_term_unit(s->m, i);
        fgi_keeper_changed_at(s, (int32_t)i);
    }
    for (int64_t f = 0; f < s->n_base; f++) {
        fgi_keeper_refresh_factor(s, f);
        s->factors.at[f].unit = fgi_model_term_unit(s->m, s->n_vars + f);
    }
}

static fgi_rc check_model(const fgi_model *m, fgi_error *err) {
    const fgi_structure *st = m->s;
    if (m->x) return fgi_fail(err, FGI_UNSUPPORTED, -1, "unary scores that were rounded cannot be kept up to date");
    if (st->max_degree > MOST_DEGREE || st->max_arity > FGI_KEEPER_ARITY || !(st->constant > -INFINITY))
        return fgi_fail(
            err, FGI_UNSUPPORTED, -1, "a variable in too many factors, or a factor over too many variables");
    return FGI_OK;
}

fgi_rc fgi_keeper_create(
    const fgi_model *m, const double *mu, const int32_t *labels, fgi_keeper **out, fgi_error *err) {
    fgi_rc rc = check_model(m, err);
    if (!rc) rc = fgi_model_check_labels(m, labels, err);
    if (!rc && mu) rc = fgi_check_multipliers(mu, fgi_dual_message_size(m), err);
    if (rc) return rc;
    fgi_keeper *s = fgi_calloc(1, sizeof *s);
    if (!s) return fgi_no_memory(err);
    s->k = fgi_kernels_get();
    s->m = fgi_model_snapshot(m);
    s->n_vars = m->s->n_vars;
    s->n_base = s->n_factors = m->s->n_factors;
    s->factor_room = s->n_factors;
    s->constant = m->s->constant;
    s->n_mu = s->mu_room = fgi_dual_message_size(m);
    s->largest = largest_score(m);
    if (s->largest == 0) s->largest = 1;
    s->wall = ldexp(WALL, ilogb(s->largest) + 1);
    if (!s->m || !take_memory(s)) {
        fgi_keeper_free(s);
        return fgi_no_memory(err);
    }
    if (s->largest > MOST_SCORE || s->largest < 1 / MOST_SCORE) {
        fgi_keeper_free(s);
        return fgi_fail(err, FGI_UNSUPPORTED, -1, "scores are too far from 1");
    }
    memcpy(s->labels, labels, (size_t)s->n_vars * sizeof *labels);
    memcpy(s->trial, labels, (size_t)s->n_vars * sizeof *labels);
    memset(s->gone, 0, (size_t)s->n_factors);
    fgi_dual_message_begin(m, s->mu_begin);
    if (mu) memcpy(s->mu, mu, (size_t)s->n_mu * sizeof *mu);
    else memset(s->mu, 0, (size_t)s->n_mu * sizeof *mu);
    refresh_all(s);
    *out = s;
    return FGI_OK;
}

void fgi_keeper_free(fgi_keeper *s) {
    if (!s) return;
    for (int64_t k = 0; k < s->n_factors - s->n_base; k++) {
        free((void *)s->added[k].vars);
        free((void *)s->added[k].values);
    }
    free(s->added);
    free(s->gone);
    free(s->full_at);
    free(s->mu_begin);
    free(s->mu);
    free(s->first_slot);
    free(s->links);
    free(s->scratch);
    fgi_array_free(&s->slots);
    fgi_array_free(&s->dirty);
    fgi_array_free(&s->active);
    fgi_array_free(&s->waiting);
    fgi_array_free(&s->moved);
    fgi_array_free(&s->joined);
    fgi_terms_free(&s->vars);
    fgi_terms_free(&s->factors);
    fgi_model_free(s->m);
    fgi_arena_free(&s->arena);
    free(s);
}

int64_t fgi_keeper_memory(const fgi_keeper *s) {
    return s->arena.bytes + 8 * s->mu_room + 10 * s->factor_room + fgi_terms_memory(&s->vars) +
        fgi_terms_memory(&s->factors) + 20 * s->n_vars;
}

void fgi_keeper_labels(const fgi_keeper *s, int32_t *labels) {
    memcpy(labels, s->labels, (size_t)s->n_vars * sizeof *labels);
}

int64_t fgi_keeper_message_size(const fgi_keeper *s) { return fgi_dual_message_size(s->m); }

void fgi_keeper_messages(const fgi_keeper *s, double *mu) {
    memcpy(mu, s->mu, (size_t)fgi_keeper_message_size(s) * sizeof *mu);
}

/* ---- changed numbers ----------------------------------------------------------------------------------------- */

static fgi_rc check_growth(const fgi_keeper *s, double largest, fgi_error *err) {
    if (largest <= MOST_GROWTH * s->largest) return FGI_OK;
    return fgi_fail(err, FGI_UNSUPPORTED, -1, "a score of %g is much larger than those before", largest);
}

static void unary_changed(fgi_keeper *s, int32_t i) {
    fgi_keeper_refresh_variable(s, i);
    s->vars.at[i].unit = fgi_model_term_unit(s->m, i);
    fgi_keeper_changed_at(s, i);
}

static fgi_rc check_unary(const fgi_keeper *s, int32_t i, const double *scores, fgi_error *err) {
    if (i < 0 || i >= s->n_vars) return fgi_fail(err, FGI_BAD_ARGUMENT, i, "there is no variable %d", i);
    const fgi_extremes e = fgi_extremes_of(scores, s->m->s->cards[i]);
    if (!e.in_order) return fgi_fail(err, FGI_BAD_MODEL, i, "variable %d has a score that is NaN or +inf", i);
    return check_growth(s, e.largest, err);
}

fgi_rc fgi_keeper_set_unary(fgi_keeper *s, int64_t n, const int32_t *vars, const double *scores, fgi_error *err) {
    const double *at = scores;
    for (int64_t k = 0; k < n; at += s->m->s->cards[vars[k++]]) {
        const fgi_rc rc = check_unary(s, vars[k], at, err);
        if (rc) return rc;
    }
    for (int64_t k = 0; k < n; scores += s->m->s->cards[vars[k++]]) {
        fgi_keeper_fetch(s, vars, n, k);
        const fgi_rc rc = fgi_model_set_unary(s->m, vars[k], scores, err); /* the first one alone needs memory */
        if (rc) return rc;
        unary_changed(s, vars[k]);
    }
    return FGI_OK;
}

fgi_rc fgi_keeper_take_unary(fgi_keeper *s, const fgi_model *from, int64_t n, const int32_t *vars, fgi_error *err) {
    if (from->s->n_vars != s->n_vars || from->s->unary_begin[s->n_vars] != s->m->s->unary_begin[s->n_vars])
        return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "the model has other variables");
    for (int64_t k = 0; k < (vars ? n : s->n_vars); k++) {
        const int32_t i = vars ? vars[k] : (int32_t)k;
        const fgi_rc rc = i < 0 || i >= s->n_vars ? FGI_BAD_ARGUMENT : check_unary(s, i, fgi_unary(from, i), err);
        if (rc) return rc;
    }
    fgi_rc rc = vars ? FGI_OK : fgi_model_set_all_unary(s->m, from->u->values, err);
    for (int64_t i = 0; !rc && !vars && i < s->n_vars; i++) unary_changed(s, (int32_t)i);
    for (int64_t k = 0; !rc && vars && k < n; k++) {
        fgi_keeper_fetch(s, vars, n, k);
        rc = fgi_model_set_unary(s->m, vars[k], fgi_unary(from, vars[k]), err);
        if (!rc) unary_changed(s, vars[k]);
    }
    return rc;
}

static void factor_changed(fgi_keeper *s, int64_t f) {
    const fgi_view v = fgi_keeper_view(s, f);
    fgi_keeper_refresh_factor(s, f);
    for (int32_t q = 0; q < v.arity; q++) fgi_keeper_changed_at(s, v.vars[q]);
}

fgi_rc fgi_keeper_take_tables(fgi_keeper *s, const fgi_model *from, int64_t n, const int32_t *tables, fgi_error *err) {
    const fgi_structure *st = s->m->s;
    if (from->s != st) return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "the model has another structure");
    for (int64_t k = 0; k < n; k++) {
        const fgi_table_facts *facts = &from->t->facts[tables[k]];
        const double largest =
            facts->max > -INFINITY ? st->max_weight * fgi_larger(fabs(facts->max), fabs(facts->min_finite)) : 0;
        const fgi_rc rc = check_growth(s, largest, err);
        if (rc) return rc;
    }
    uint8_t *is_new = fgi_calloc(st->n_tables, 1);
    if (!is_new) return fgi_no_memory(err);
    fgi_rc rc = FGI_OK;
    for (int64_t k = 0; !rc && k < n; k++) {
        rc = fgi_model_set_table(s->m, tables[k], from->t->values + st->values_begin[tables[k]], err);
        is_new[tables[k]] = !rc;
    }
    for (int64_t f = 0; f < s->n_base; f++) {
        if (!is_new[st->factor_table[f]] || s->gone[f]) continue;
        s->factors.at[f].unit = fgi_model_term_unit(s->m, s->n_vars + f);
        factor_changed(s, f);
    }
    free(is_new);
    return rc;
}

fgi_rc fgi_keeper_set_constant(fgi_keeper *s, double constant, fgi_error *err) {
    if (!isfinite(constant) || fabs(constant) > MOST_SCORE)
        return fgi_fail(err, FGI_UNSUPPORTED, -1, "a constant of %g cannot be kept up to date", constant);
    s->constant = constant;
    return FGI_OK;
}
