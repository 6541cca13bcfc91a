/* sparsemap/structure.c - structures and sparse points: see sparsemap/sparsemap.h and fginfer_sparsemap.h. */
#include "sparsemap/sparsemap.h"
#include <stdlib.h>
#include <string.h>
#include "base/array.h"
#include "base/assert.h"
#include "base/util.h"

static fgi_rc take_arrays(fgi_sparse *sparse, int64_t n_scopes, fgi_error *err) {
    fgi_arena *arena = &sparse->arena;
    sparse->cards = fgi_take(arena, sparse->n_vars, int32_t);
    sparse->unary_begin = fgi_take(arena, sparse->n_vars + 1, int64_t);
    sparse->degree = fgi_take_zero(arena, sparse->n_vars, int32_t);
    sparse->var_begin = fgi_take(arena, sparse->n_factors + 1, int64_t);
    sparse->state_begin = fgi_take(arena, sparse->n_factors + 1, int64_t);
    sparse->slot_begin = fgi_take(arena, sparse->n_factors + 1, int64_t);
    sparse->links = fgi_take(arena, sparse->n_vars, int32_t);
    sparse->lone = fgi_take(arena, sparse->n_factors, uint8_t);
    sparse->vars = fgi_take(arena, n_scopes, int32_t);
    sparse->var_cards = fgi_take(arena, n_scopes, int32_t);
    return arena->failed ? fgi_no_memory(err) : FGI_OK;
}

static fgi_rc set_variables(fgi_sparse *sparse, const int32_t *cards, fgi_error *err) {
    sparse->unary_begin[0] = 0;
    for (int64_t i = 0; i < sparse->n_vars; i++) {
        if (cards[i] < 1) return fgi_fail(err, FGI_BAD_MODEL, i, "variable %lld has no labels", (long long)i);
        sparse->cards[i] = cards[i];
        sparse->unary_begin[i + 1] = sparse->unary_begin[i] + cards[i];
        if (cards[i] > sparse->max_card) sparse->max_card = cards[i];
    }
    sparse->n_labels = sparse->unary_begin[sparse->n_vars];
    return FGI_OK;
}

static fgi_rc set_factor(fgi_sparse *sparse, int64_t f, fgi_error *err) {
    const int64_t begin = sparse->var_begin[f], end = sparse->var_begin[f + 1];
    int64_t states = 1, slots = 0;
    if (end <= begin) return fgi_fail(err, FGI_BAD_MODEL, f, "factor %lld has no variables", (long long)f);
    for (int64_t k = begin; k < end; k++) {
        const int32_t i = sparse->vars[k];
        if (i < 0 || i >= sparse->n_vars)
            return fgi_fail(err, FGI_BAD_MODEL, f, "factor %lld refers to variable %d", (long long)f, i);
        for (int64_t other = begin; other < k; other++)
            if (sparse->vars[other] == i)
                return fgi_fail(err, FGI_BAD_MODEL, f, "factor %lld has variable %d twice", (long long)f, i);
        sparse->var_cards[k] = sparse->cards[i];
        sparse->degree[i]++;
        slots += sparse->cards[i];
        if (!fgi_mul(states, sparse->cards[i], &states)) states = INT64_MAX / 2;
    }
    if (states > INT64_MAX / 64 - sparse->state_begin[f])
        return fgi_fail(err, FGI_BAD_MODEL, f, "too many states of factors");
    sparse->state_begin[f + 1] = sparse->state_begin[f] + states;
    sparse->slot_begin[f + 1] = sparse->slot_begin[f] + slots;
    if (end - begin > sparse->max_arity) sparse->max_arity = (int32_t)(end - begin);
    if (slots > sparse->max_dim) sparse->max_dim = slots;
    return FGI_OK;
}

static void find_lone(fgi_sparse *sparse) {
    memcpy(sparse->links, sparse->degree, (size_t)sparse->n_vars * sizeof *sparse->links);
    for (int64_t f = 0; f < sparse->n_factors; f++) {
        sparse->lone[f] = 1;
        for (int64_t k = sparse->var_begin[f]; k < sparse->var_begin[f + 1]; k++)
            sparse->lone[f] &= sparse->degree[sparse->vars[k]] == 1;
        for (int64_t k = sparse->var_begin[f]; sparse->lone[f] && k < sparse->var_begin[f + 1]; k++)
            sparse->links[sparse->vars[k]] = 0;
    }
}

fgi_rc fgi_sparse_create(int64_t n_vars, const int32_t *cards, int64_t n_factors, const int64_t *var_begin,
    const int32_t *vars, fgi_sparse **out, fgi_error *err) {
    *out = NULL;
    fgi_sparse *sparse = fgi_calloc(1, sizeof *sparse);
    if (!sparse) return fgi_no_memory(err);
    sparse->n_vars = n_vars;
    sparse->n_factors = n_factors;
    sparse->max_arity = sparse->max_card = 1;
    sparse->max_dim = 1;
    fgi_rc rc = take_arrays(sparse, var_begin[n_factors], err);
    if (!rc) rc = set_variables(sparse, cards, err);
    if (!rc) {
        memcpy(sparse->var_begin, var_begin, (size_t)(n_factors + 1) * sizeof *var_begin);
        if (var_begin[n_factors]) memcpy(sparse->vars, vars, (size_t)var_begin[n_factors] * sizeof *vars);
        sparse->state_begin[0] = sparse->slot_begin[0] = 0;
    }
    for (int64_t f = 0; !rc && f < n_factors; f++) rc = set_factor(sparse, f, err);
    if (rc) {
        fgi_sparse_free(sparse);
        return rc;
    }
    sparse->n_states = sparse->state_begin[n_factors];
    sparse->n_slots = sparse->slot_begin[n_factors];
    find_lone(sparse);
    *out = sparse;
    return FGI_OK;
}

void fgi_sparse_free(fgi_sparse *sparse) {
    if (!sparse) return;
    fgi_arena_free(&sparse->arena);
    free(sparse);
}

int64_t fgi_sparse_labels(const fgi_sparse *sparse) { return sparse->n_labels; }
int64_t fgi_sparse_states(const fgi_sparse *sparse) { return sparse->n_states; }
int64_t fgi_sparse_multipliers(const fgi_sparse *sparse) { return sparse->n_slots; }

/* ---- points -------------------------------------------------------------------------------------------------- */

fgi_rc sm_point_append(sm_point *p, int32_t arity, const int32_t *labels, double y) {
    fgi_assert(arity >= 1 && p->n >= 0 && p->n <= p->capacity);
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

fgi_rc sm_points_read(const fgi_sparse *sparse, const double *states, sm_point **out) {
    *out = fgi_calloc(sparse->n_factors + 1, sizeof **out);
    int32_t *labels = fgi_alloc(sparse->max_arity, sizeof *labels);
    fgi_rc rc = *out && labels ? FGI_OK : FGI_NO_MEMORY;
    for (int64_t f = 0; !rc && f < sparse->n_factors; f++) {
        const sm_factor factor = sm_factor_at(sparse, f, NULL);
        rc = read_point(&factor, states + sparse->state_begin[f], sparse->state_begin[f + 1] - sparse->state_begin[f],
            labels, &(*out)[f]);
    }
    free(labels);
    return rc;
}

void sm_points_write(const fgi_sparse *sparse, const sm_point *points, double *states) {
    memset(states, 0, (size_t)sparse->n_states * sizeof *states);
    for (int64_t f = 0; f < sparse->n_factors; f++) {
        const sm_factor factor = sm_factor_at(sparse, f, NULL);
        for (int32_t k = 0; k < points[f].n; k++)
            states[sparse->state_begin[f] + sm_state_index(&factor, points[f].labels + (int64_t)k * factor.arity)] =
                points[f].y[k];
    }
}

void sm_points_free(const fgi_sparse *sparse, sm_point *points) {
    for (int64_t f = 0; points && f < sparse->n_factors; f++) {
        free(points[f].labels);
        free(points[f].y);
    }
    free(points);
}
