/* exact/places.c - see exact/places.h. Two labels are one place if a factor forbids them together; presolve may have
 * numbered the labels of each variable in its own way, so places are the components of that relation. */
#include "exact/places.h"
#include "base/util.h"

static int32_t root_of(int32_t *parent, int32_t k) {
    while (parent[k] != k) k = parent[k] = parent[parent[k]];
    return k;
}

static int is_live(const fgi_model *m, int32_t i, int32_t a) { return fgi_unary(m, i)[a] > -INFINITY; }

/* Joins what a factor forbids. 0: it forbids a label two of another variable, which is no rule of places. */
static int join_forbidden(const fgi_model *m, const fgi_view *v, int32_t *parent) {
    const int64_t *begin = m->s->unary_begin;
    const int32_t x = v->vars[0], y = v->vars[1];
    for (int32_t a = 0; a < v->rows; a++) {
        int32_t partners = 0;
        for (int32_t b = 0; b < v->cols && is_live(m, x, a); b++) {
            if (!is_live(m, y, b) || fgi_view_at2(v, a, b) > -INFINITY) continue;
            if (partners++) return 0;
            parent[root_of(parent, (int32_t)begin[y] + b)] = root_of(parent, (int32_t)begin[x] + a);
        }
    }
    return 1;
}

/* Per two variables, how many places a factor of theirs forbids; an entry of two factors counts once. */
static void count_forbidden(const fgi_model *m, const int32_t *place, int32_t *forbidden) {
    const int64_t *begin = m->s->unary_begin, n = m->s->n_vars;
    for (int64_t f = 0; f < m->s->n_factors; f++) {
        const fgi_view v = fgi_factor_view(m, f);
        const int32_t x = v.vars[0], y = v.vars[1];
        int32_t count = 0;
        for (int32_t a = 0; a < v.rows; a++)
            for (int32_t b = 0; b < v.cols; b++)
                count += is_live(m, x, a) && is_live(m, y, b) && place[begin[x] + a] == place[begin[y] + b] &&
                    fgi_view_at2(&v, a, b) == -INFINITY;
        int32_t *most = &forbidden[x < y ? x * n + y : y * n + x];
        if (count > *most) *most = count;
    }
}

/* Do all two variables exclude each other in every place that both have, each of which is one label of each? */
static int all_differ(const fgi_model *m, const int32_t *place, int32_t n_places, int32_t *forbidden, uint8_t *has) {
    const int64_t *begin = m->s->unary_begin, n = m->s->n_vars;
    for (int64_t i = 0; i < n; i++)
        for (int32_t a = 0; a < m->s->cards[i]; a++) {
            if (!is_live(m, (int32_t)i, a)) continue;
            if (has[i * n_places + place[begin[i] + a]]++) return 0;
        }
    count_forbidden(m, place, forbidden);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = i + 1; j < n; j++) {
            int32_t shared = 0;
            for (int32_t p = 0; p < n_places; p++) shared += has[i * n_places + p] && has[j * n_places + p];
            if (shared > forbidden[i * n + j]) return 0;
        }
    return 1;
}

fgi_rc fgi_places_find(const fgi_model *m, fgi_arena *arena, int32_t **place, int32_t *n_places, fgi_error *err) {
    const int64_t n = m->s->n_vars, n_labels = m->s->unary_begin[n];
    static const char *const other = "the model is no assignment: not all variables must differ, two by two";
    if (m->s->max_arity > 2) return fgi_fail(err, FGI_UNSUPPORTED, -1, "%s", other);
    int32_t *parent = fgi_take(arena, n_labels, int32_t), *number = fgi_take(arena, n_labels, int32_t);
    int32_t *forbidden = fgi_take_zero(arena, n * n, int32_t);
    if (arena->failed) return fgi_no_memory(err);
    for (int32_t k = 0; k < n_labels; k++) parent[k] = k, number[k] = -1;
    for (int64_t f = 0; f < m->s->n_factors; f++) {
        const fgi_view v = fgi_factor_view(m, f);
        if (v.arity != 2 || !join_forbidden(m, &v, parent)) return fgi_fail(err, FGI_UNSUPPORTED, -1, "%s", other);
    }
    *n_places = 0;
    for (int64_t i = 0; i < n; i++)
        for (int32_t a = 0; a < m->s->cards[i]; a++) {
            int32_t *of = &number[root_of(parent, (int32_t)m->s->unary_begin[i] + a)];
            if (*of < 0 && is_live(m, (int32_t)i, a)) *of = (*n_places)++;
        }
    *place = fgi_take(arena, n_labels, int32_t);
    uint8_t *has = fgi_take_zero(arena, n * *n_places, uint8_t);
    if (arena->failed) return fgi_no_memory(err);
    for (int32_t k = 0; k < n_labels; k++) (*place)[k] = number[root_of(parent, k)];
    if (!all_differ(m, *place, *n_places, forbidden, has)) return fgi_fail(err, FGI_UNSUPPORTED, -1, "%s", other);
    return FGI_OK;
}
