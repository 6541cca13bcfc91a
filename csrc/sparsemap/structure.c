/* sparsemap/structure.c - structures and sparse points: see sparsemap/sparsemap.h and fginfer_sparsemap.h. */
#include "sparsemap/sparsemap.h"
#include <stdlib.h>
#include <string.h>
#include "base/array.h"
#include "base/util.h"

static fgi_rc take_arrays(fgi_sparse *s, int64_t n_scopes, fgi_error *err) {
    fgi_arena *arena = &s->arena;
    s->cards = fgi_take(arena, s->n_vars, int32_t);
    s->unary_begin = fgi_take(arena, s->n_vars + 1, int64_t);
    s->degree = fgi_take_zero(arena, s->n_vars, int32_t);
    s->var_begin = fgi_take(arena, s->n_factors + 1, int64_t);
    s->state_begin = fgi_take(arena, s->n_factors + 1, int64_t);
    s->slot_begin = fgi_take(arena, s->n_factors + 1, int64_t);
    s->links = fgi_take(arena, s->n_vars, int32_t);
    s->lone = fgi_take(arena, s->n_factors, uint8_t);
    s->vars = fgi_take(arena, n_scopes, int32_t);
    s->var_cards = fgi_take(arena, n_scopes, int32_t);
    return arena->failed ? fgi_no_memory(err) : FGI_OK;
}

static fgi_rc set_variables(fgi_sparse *s, const int32_t *cards, fgi_error *err) {
    s->unary_begin[0] = 0;
    for (int64_t i = 0; i < s->n_vars; i++) {
        if (cards[i] < 1) return fgi_fail(err, FGI_BAD_MODEL, i, "variable %lld has no labels", (long long)i);
        s->cards[i] = cards[i];
        s->unary_begin[i + 1] = s->unary_begin[i] + cards[i];
        if (cards[i] > s->max_card) s->max_card = cards[i];
    }
    s->n_labels = s->unary_begin[s->n_vars];
    return FGI_OK;
}

static fgi_rc set_factor(fgi_sparse *s, int64_t f, fgi_error *err) {
    const int64_t begin = s->var_begin[f], end = s->var_begin[f + 1];
    int64_t states = 1, slots = 0;
    if (end <= begin) return fgi_fail(err, FGI_BAD_MODEL, f, "factor %lld has no variables", (long long)f);
    for (int64_t k = begin; k < end; k++) {
        const int32_t i = s->vars[k];
        if (i < 0 || i >= s->n_vars)
            return fgi_fail(err, FGI_BAD_MODEL, f, "factor %lld refers to variable %d", (long long)f, i);
        for (int64_t other = begin; other < k; other++)
            if (s->vars[other] == i)
                return fgi_fail(err, FGI_BAD_MODEL, f, "factor %lld has variable %d twice", (long long)f, i);
        s->var_cards[k] = s->cards[i];
        s->degree[i]++;
        slots += s->cards[i];
        if (!fgi_mul(states, s->cards[i], &states)) states = INT64_MAX / 2;
    }
    if (states > INT64_MAX / 64 - s->state_begin[f])
        return fgi_fail(err, FGI_BAD_MODEL, f, "too many states of factors");
    s->state_begin[f + 1] = s->state_begin[f] + states;
    s->slot_begin[f + 1] = s->slot_begin[f] + slots;
    if (end - begin > s->max_arity) s->max_arity = (int32_t)(end - begin);
    if (slots > s->max_dim) s->max_dim = slots;
    return FGI_OK;
}

static void find_lone(fgi_sparse *s) {
    memcpy(s->links, s->degree, (size_t)s->n_vars * sizeof *s->links);
    for (int64_t f = 0; f < s->n_factors; f++) {
        s->lone[f] = 1;
        for (int64_t k = s->var_begin[f]; k < s->var_begin[f + 1]; k++) s->lone[f] &= s->degree[s->vars[k]] == 1;
        for (int64_t k = s->var_begin[f]; s->lone[f] && k < s->var_begin[f + 1]; k++) s->links[s->vars[k]] = 0;
    }
}

fgi_rc fgi_sparse_create(int64_t n_vars, const int32_t *cards, int64_t n_factors, const int64_t *var_begin,
    const int32_t *vars, fgi_sparse **out, fgi_error *err) {
    *out = NULL;
    fgi_sparse *s = fgi_calloc(1, sizeof *s);
    if (!s) return fgi_no_memory(err);
    s->n_vars = n_vars;
    s->n_factors = n_factors;
    s->max_arity = s->max_card = 1;
    s->max_dim = 1;
    fgi_rc rc = take_arrays(s, var_begin[n_factors], err);
    if (!rc) rc = set_variables(s, cards, err);
    if (!rc) {
        memcpy(s->var_begin, var_begin, (size_t)(n_factors + 1) * sizeof *var_begin);
        if (var_begin[n_factors]) memcpy(s->vars, vars, (size_t)var_begin[n_factors] * sizeof *vars);
        s->state_begin[0] = s->slot_begin[0] = 0;
    }
    for (int64_t f = 0; !rc && f < n_factors; f++) rc = set_factor(s, f, err);
    if (rc) {
        fgi_sparse_free(s);
        return rc;
    }
    s->n_states = s->state_begin[n_factors];
    s->n_slots = s->slot_begin[n_factors];
    find_lone(s);
    *out = s;
    return FGI_OK;
}

void fgi_sparse_free(fgi_sparse *s) {
    if (!s) return;
    fgi_arena_free(&s->arena);
    free(s);
}

int64_t fgi_sparse_labels(const fgi_sparse *s) { return s->n_labels; }
int64_t fgi_sparse_states(const fgi_sparse *s) { return s->n_states; }
int64_t fgi_sparse_multipliers(const fgi_sparse *s) { return s->n_slots; }

/* ---- points -------------------------------------------------------------------------------------------------- */

fgi_rc sm_point_append(sm_point *p, int32_t arity, const int32_t *labels, double y) {
    if (p->n == p->capacity) {
        const int32_t capacity = p->capacity ? 2 * p->capacity : 4;
        if (!fgi_resize(&p->labels, (int64_t)capacity * arity, sizeof *p->labels) ||
            !fgi_resize(&p->y, capacity, sizeof *p->y))
            return FGI_NO_MEMORY;
        p->capacity = capacity;
    }
    memcpy(p->labels + (int64_t)p->n * arity, labels, (size_t)arity * sizeof *labels);
    p->y[p->n++] = y;
    return FGI_OK;
}

static fgi_rc read_point(const sm_factor *f, const double *states, int64_t n_states, int32_t *labels, sm_point *p) {
    for (int64_t at = 0; at < n_states; at++) {
        if (!(states[at] > 0)) continue;
        int64_t rest = at;
        for (int32_t q = f->arity; q-- > 0; rest /= f->cards[q]) labels[q] = (int32_t)(rest % f->cards[q]);
        fgi_rc rc = sm_point_append(p, f->arity, labels, states[at]);
        if (rc) return rc;
    }
    return FGI_OK;
}

fgi_rc sm_points_read(const fgi_sparse *s, const double *states, sm_point **out) {
    *out = fgi_calloc(s->n_factors + 1, sizeof **out);
    int32_t *labels = fgi_alloc(s->max_arity, sizeof *labels);
    fgi_rc rc = *out && labels ? FGI_OK : FGI_NO_MEMORY;
    for (int64_t f = 0; !rc && f < s->n_factors; f++) {
        const sm_factor factor = sm_factor_at(s, f, NULL);
        rc = read_point(
            &factor, states + s->state_begin[f], s->state_begin[f + 1] - s->state_begin[f], labels, &(*out)[f]);
    }
    free(labels);
    return rc;
}

void sm_points_write(const fgi_sparse *s, const sm_point *points, double *states) {
    memset(states, 0, (size_t)s->n_states * sizeof *states);
    for (int64_t f = 0; f < s->n_factors; f++) {
        const sm_factor factor = sm_factor_at(s, f, NULL);
        for (int32_t k = 0; k < points[f].n; k++)
            states[s->state_begin[f] + sm_state_index(&factor, points[f].labels + (int64_t)k * factor.arity)] =
                points[f].y[k];
    }
}

void sm_points_free(const fgi_sparse *s, sm_point *points) {
    for (int64_t f = 0; points && f < s->n_factors; f++) {
        free(points[f].labels);
        free(points[f].y);
    }
    free(points);
}
