/* model/condition.c - the model that is left when some variables are fixed.
 *
 * Free variables keep their order. A factor with no free variable becomes part of the constant, one with a single free
 * variable part of its unary scores, and one that loses some of three or more variables reads a slice of its table.
 * Slices are made once per (table, fixed positions, fixed labels), so what was shared stays shared. */
#include <string.h>
#include "model/model.h"
#include "base/util.h"

typedef struct reduction {
    const fgi_model *m;
    int32_t *fixed; /* label of a fixed variable, -1 for a free one */
    int32_t *index; /* new number of a free variable */
    int64_t n_free;
    int64_t n_factors, n_slots, n_tables, n_values, n_dims;
    int32_t *whole;    /* old table -> new table that is the same, or -1 */
    int64_t *hash;     /* open addressing over slices: new table + 1, or 0 */
    int64_t hash_size; /* a power of two */
    int64_t *origin;   /* new table -> a factor (old number) that reads it */
    uint8_t *sliced;   /* new table -> whether it is a slice */
    /* the new model, as a spec */
    int32_t *cards, *kind, *arity, *dims, *factor_table, *vars;
    double *unary, *params, *values, *weight;
    uint8_t *transposed;
    int64_t *var_begin;
    fgi_sum constant;
} reduction;

static void reduction_free(reduction *r) {
    void *all[] = {r->fixed, r->index, r->whole, r->hash, r->origin, r->sliced, r->cards, r->kind, r->arity, r->dims,
        r->factor_table, r->vars, r->unary, r->params, r->values, r->weight, r->transposed, r->var_begin};
    for (size_t k = 0; k < sizeof all / sizeof all[0]; k++) free(all[k]);
}

static fgi_rc fix_variables(reduction *r, int64_t n, const int32_t *vars, const int32_t *labels, fgi_error *err) {
    const fgi_structure *s = r->m->s;
    for (int64_t i = 0; i < s->n_vars; i++) r->fixed[i] = -1;
    for (int64_t k = 0; k < n; k++) {
        int32_t i = vars[k];
        if (i < 0 || i >= s->n_vars)
            return fgi_fail(
                err, FGI_BAD_ARGUMENT, k, "evidence for variable %d; there are %lld", i, (long long)s->n_vars);
        if (labels[k] < 0 || labels[k] >= s->cards[i])
            return fgi_fail(err, FGI_BAD_ARGUMENT, k, "evidence gives variable %d label %d, out of range 0..%d", i,
                labels[k], s->cards[i] - 1);
        if (r->fixed[i] >= 0 && r->fixed[i] != labels[k])
            return fgi_fail(err, FGI_BAD_ARGUMENT, k, "evidence gives variable %d both label %d and label %d", i,
                r->fixed[i], labels[k]);
        r->fixed[i] = labels[k];
    }
    for (int64_t i = 0; i < s->n_vars; i++)
        if (r->fixed[i] < 0) r->index[i] = (int32_t)r->n_free++;
    return FGI_OK;
}

static int32_t n_free_of(const reduction *r, int64_t f) {
    const int32_t *vars = fgi_factor_vars(r->m->s, f);
    int32_t n = 0;
    for (int32_t k = 0; k < fgi_factor_arity(r->m->s, f); k++) n += r->fixed[vars[k]] < 0;
    return n;
}

/* ---- which tables the new model has ------------------------------------------------------------------------- */

static uint64_t slice_hash(const reduction *r, int64_t f) {
    const fgi_structure *s = r->m->s;
    const int32_t *vars = fgi_factor_vars(s, f);
    fgi_rng mix = {(uint64_t)s->factor_table[f]};
    for (int32_t k = 0; k < fgi_factor_arity(s, f); k++)
        mix.state = fgi_rng_next(&mix) ^ (uint64_t)(r->fixed[vars[k]] + 1);
    return fgi_rng_next(&mix);
}

static int same_slice(const reduction *r, int64_t f, int64_t g) {
    const fgi_structure *s = r->m->s;
    if (s->factor_table[f] != s->factor_table[g]) return 0;
    const int32_t *a = fgi_factor_vars(s, f), *b = fgi_factor_vars(s, g);
    for (int32_t k = 0; k < fgi_factor_arity(s, f); k++)
        if (r->fixed[a[k]] != r->fixed[b[k]]) return 0;
    return 1;
}

static int32_t new_table(reduction *r, int64_t f, int sliced) {
    r->origin[r->n_tables] = f;
    r->sliced[r->n_tables] = (uint8_t)sliced;
    return (int32_t)r->n_tables++;
}

/* The new number of the table that factor f will read. */
static int32_t table_of(reduction *r, int64_t f, int32_t n_free) {
    const fgi_structure *s = r->m->s;
    if (n_free == fgi_factor_arity(s, f)) {
        int32_t *same = &r->whole[s->factor_table[f]];
        if (*same < 0) *same = new_table(r, f, 0);
        return *same;
    }
    uint64_t at = slice_hash(r, f) & (uint64_t)(r->hash_size - 1);
    while (r->hash[at] != 0) {
        int64_t t = r->hash[at] - 1;
        if (same_slice(r, f, r->origin[t])) return (int32_t)t;
        at = (at + 1) & (uint64_t)(r->hash_size - 1);
    }
    int32_t t = new_table(r, f, 1);
    r->hash[at] = t + 1;
    return t;
}

/* ---- numbers ------------------------------------------------------------------------------------------------ */

/* The entries of factor f's table that agree with the fixed labels, last free variable fastest. `at` is scratch for the
 * labels of all its variables, counted up like an odometer whose fixed wheels do not turn. */
static void copy_slice(const reduction *r, int64_t f, double *out, int32_t *at) {
    fgi_view v = fgi_factor_view(r->m, f);
    const int32_t *cards = r->m->s->cards;
    for (int32_t k = 0; k < v.arity; k++) at[k] = r->fixed[v.vars[k]] >= 0 ? r->fixed[v.vars[k]] : 0;
    for (;;) {
        int64_t flat = 0;
        for (int32_t k = 0; k < v.arity; k++) flat = flat * cards[v.vars[k]] + at[k];
        *out++ = v.values[flat];
        int32_t k = v.arity - 1;
        for (; k >= 0; k--) {
            if (r->fixed[v.vars[k]] >= 0) continue;
            if (++at[k] < cards[v.vars[k]]) break;
            at[k] = 0;
        }
        if (k < 0) return;
    }
}

/* Folds a factor with one free variable into the unary scores, or one with none into the constant. `labels` has the
 * fixed variables at their labels. */
static void fold(reduction *r, int64_t f, int32_t *labels, const int64_t *unary_begin) {
    fgi_view v = fgi_factor_view(r->m, f);
    int32_t var = -1;
    for (int32_t k = 0; k < v.arity; k++)
        if (r->fixed[v.vars[k]] < 0) var = v.vars[k];
    if (var < 0) {
        fgi_sum_add(&r->constant, fgi_view_score(r->m, &v, labels));
        return;
    }
    double *unary = r->unary + unary_begin[r->index[var]];
    for (int32_t a = 0; a < r->m->s->cards[var]; a++) {
        labels[var] = a;
        unary[a] += fgi_view_score(r->m, &v, labels); /* -inf sticks; +inf does not occur */
    }
}

/* ---- passes ------------------------------------------------------------------------------------------------- */

/* Counts what stays, so that every array can be allocated at its size. */
static int plan(reduction *r) {
    const fgi_structure *s = r->m->s;
    for (int64_t f = 0; f < s->n_factors; f++) {
        int32_t n = n_free_of(r, f);
        if (n < 2) continue;
        r->n_factors++;
        r->n_slots += n;
    }
    r->hash_size = 16;
    while (r->hash_size < 2 * r->n_factors) r->hash_size *= 2;
    r->whole = fgi_alloc(s->n_tables, sizeof(int32_t));
    r->hash = fgi_calloc(r->hash_size, sizeof(int64_t));
    r->origin = fgi_alloc(r->n_factors, sizeof(int64_t)); /* no more tables than factors */
    r->sliced = fgi_alloc(r->n_factors, 1);
    r->factor_table = fgi_alloc(r->n_factors, sizeof(int32_t));
    r->vars = fgi_alloc(r->n_slots, sizeof(int32_t));
    r->var_begin = fgi_alloc(r->n_factors + 1, sizeof(int64_t));
    r->weight = s->factor_weight ? fgi_alloc(r->n_factors, sizeof(double)) : NULL;
    r->transposed = s->factor_transposed ? fgi_alloc(r->n_factors, 1) : NULL;
    return r->whole && r->hash && r->origin && r->sliced && r->factor_table && r->vars && r->var_begin &&
        (r->weight || !s->factor_weight) && (r->transposed || !s->factor_transposed);
}

static void place_factors(reduction *r) {
    const fgi_structure *s = r->m->s;
    int64_t at = 0, slot = 0;
    for (int64_t t = 0; t < s->n_tables; t++) r->whole[t] = -1;
    for (int64_t f = 0; f < s->n_factors; f++) {
        int32_t n = n_free_of(r, f);
        if (n < 2) continue;
        const int32_t *vars = fgi_factor_vars(s, f);
        r->factor_table[at] = table_of(r, f, n);
        if (r->weight) r->weight[at] = s->factor_weight[f];
        if (r->transposed) r->transposed[at] = s->factor_transposed[f];
        r->var_begin[at++] = slot;
        for (int32_t k = 0; k < fgi_factor_arity(s, f); k++)
            if (r->fixed[vars[k]] < 0) r->vars[slot++] = r->index[vars[k]];
    }
    r->var_begin[at] = slot;
}

static int64_t table_size(const fgi_structure *s, int64_t t) { return s->values_begin[t + 1] - s->values_begin[t]; }

static int place_tables(reduction *r) {
    const fgi_structure *s = r->m->s;
    r->kind = fgi_alloc(r->n_tables, sizeof(int32_t));
    r->arity = fgi_alloc(r->n_tables, sizeof(int32_t));
    r->params = s->params ? fgi_calloc(2 * r->n_tables, sizeof(double)) : NULL;
    if (!r->kind || !r->arity || (s->params && !r->params)) return 0;
    for (int64_t t = 0; t < r->n_tables; t++) {
        int64_t f = r->origin[t], old = s->factor_table[f], size = table_size(s, old);
        r->kind[t] = s->table_kind[old];
        r->arity[t] = r->sliced[t] ? n_free_of(r, f) : s->table_arity[old];
        if (r->params) memcpy(r->params + 2 * t, s->params + 2 * old, 2 * sizeof(double));
        if (r->sliced[t]) {
            const int32_t *vars = fgi_factor_vars(s, f);
            for (int32_t k = 0; k < s->table_arity[old]; k++)
                if (r->fixed[vars[k]] >= 0) size /= s->cards[vars[k]];
        }
        if (size > INT64_MAX - r->n_values) return 0;
        r->n_values += size;
        if (r->kind[t] == FGI_DENSE) r->n_dims += r->arity[t];
    }
    r->dims = fgi_alloc(r->n_dims, sizeof(int32_t));
    r->values = fgi_alloc(r->n_values, sizeof(double));
    int32_t *odometer = fgi_alloc(s->max_arity, sizeof(int32_t));
    int ok = r->dims && r->values && odometer;
    int64_t dims_at = 0, values_at = 0;
    for (int64_t t = 0; ok && t < r->n_tables; t++) {
        int64_t f = r->origin[t], old = s->factor_table[f], n = table_size(s, old);
        if (r->kind[t] != FGI_DENSE) continue;
        if (!r->sliced[t]) {
            memcpy(r->dims + dims_at, s->dims + s->dims_begin[old], (size_t)r->arity[t] * sizeof(int32_t));
            memcpy(r->values + values_at, r->m->t->values + s->values_begin[old], (size_t)n * sizeof(double));
            dims_at += r->arity[t];
            values_at += n;
            continue;
        }
        const int32_t *vars = fgi_factor_vars(s, f);
        copy_slice(r, f, r->values + values_at, odometer);
        n = 1;
        for (int32_t k = 0; k < s->table_arity[old]; k++)
            if (r->fixed[vars[k]] < 0) n *= r->dims[dims_at++] = s->cards[vars[k]];
        values_at += n;
    }
    free(odometer);
    return ok;
}

static int fold_the_rest(reduction *r) {
    const fgi_structure *s = r->m->s;
    int64_t *begin = fgi_alloc(r->n_free + 1, sizeof(int64_t)), n_unary = 0;
    int32_t *labels = fgi_calloc(s->n_vars, sizeof(int32_t));
    r->cards = fgi_alloc(r->n_free, sizeof(int32_t));
    for (int64_t i = 0; i < s->n_vars; i++)
        if (r->fixed[i] < 0) n_unary += s->cards[i];
    r->unary = fgi_alloc(n_unary, sizeof(double));
    int ok = begin && labels && r->cards && r->unary;
    n_unary = 0;
    if (ok) fgi_sum_add(&r->constant, s->constant);
    for (int64_t i = 0; ok && i < s->n_vars; i++) {
        if (r->fixed[i] >= 0) {
            labels[i] = r->fixed[i];
            fgi_sum_add(&r->constant, fgi_unary(r->m, i)[labels[i]]);
            continue;
        }
        r->cards[r->index[i]] = s->cards[i];
        begin[r->index[i]] = n_unary;
        memcpy(r->unary + n_unary, fgi_unary(r->m, i), (size_t)s->cards[i] * sizeof(double));
        n_unary += s->cards[i];
    }
    for (int64_t f = 0; ok && f < s->n_factors; f++)
        if (n_free_of(r, f) < 2) fold(r, f, labels, begin);
    free(begin);
    free(labels);
    return ok;
}

fgi_rc fgi_model_condition(
    const fgi_model *m, int64_t n, const int32_t *vars, const int32_t *labels, fgi_model **out, fgi_error *err) {
    reduction r = {.m = m};
    r.fixed = fgi_alloc(m->s->n_vars, sizeof(int32_t));
    r.index = fgi_calloc(m->s->n_vars, sizeof(int32_t));
    fgi_rc rc = FGI_OK;
    int ok = r.fixed && r.index;
    if (ok) rc = fix_variables(&r, n, vars, labels, err);
    if (ok && !rc) ok = plan(&r);
    if (ok && !rc) {
        place_factors(&r);
        ok = place_tables(&r) && fold_the_rest(&r);
    }
    if (!ok) rc = fgi_fail(err, FGI_NO_MEMORY, -1, "out of memory");
    if (!rc) {
        fgi_model_spec spec = {
            .n_vars = r.n_free,
            .cards = r.cards,
            .unary = r.unary,
            .constant = fgi_sum_value(&r.constant),
            .n_tables = r.n_tables,
            .table_kind = r.kind,
            .table_arity = r.arity,
            .dims = r.dims,
            .params = r.params,
            .values = r.values,
            .n_values = r.n_values,
            .n_factors = r.n_factors,
            .factor_table = r.factor_table,
            .factor_weight = r.weight,
            .factor_transposed = r.transposed,
            .var_begin = r.var_begin,
            .vars = r.vars,
        };
        rc = fgi_model_create(&spec, out, err);
    }
    reduction_free(&r);
    return rc;
}
