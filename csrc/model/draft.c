/* model/draft.c - see model/draft.h. */
#include "model/draft.h"
#include <string.h>
#include "base/array.h"
#include "base/util.h"
#include "base/assert.h"

enum { ROOM = 16 }; /* first capacities; each grows by half */

void fgi_draft_begin(fgi_draft *d, const fgi_model *from) {
    *d = (fgi_draft){.from = from};
    d->new_table = fgi_alloc(from->s->n_tables, sizeof(int32_t));
    d->failed = !d->new_table;
    for (int64_t t = 0; !d->failed && t < from->s->n_tables; t++) d->new_table[t] = -1;
}

void fgi_draft_free(fgi_draft *d) {
    void *owned[] = {d->new_table, d->cards, d->unary_begin, d->unary, d->kind, d->arity, d->dims, d->origin, d->params,
        d->values, d->factor_table, d->vars, d->weight, d->transposed, d->var_begin};
    for (size_t k = 0; k < sizeof owned / sizeof owned[0]; k++) free(owned[k]);
    *d = (fgi_draft){0};
}

/* The next capacity of arrays that share one; the same if there is room for one more. */
static int64_t next_capacity(int64_t n, int64_t capacity) {
    return n < capacity ? capacity : capacity + capacity / 2 + ROOM;
}

/* Once something is missing nothing is added any more. */
static int32_t fail(fgi_draft *d) {
    d->failed = 1;
    return -1;
}

int32_t fgi_draft_variable(fgi_draft *d, int32_t card, const double *unary) {
    fgi_assert(card >= 1 && d->n_vars >= 0 && d->n_vars <= d->var_capacity);
    const int64_t room = next_capacity(d->n_vars, d->var_capacity);
    if (d->failed || d->n_vars == INT32_MAX) return fail(d);
    if (room > d->var_capacity) {
        if (!fgi_resize(&d->cards, room, sizeof *d->cards) ||
            !fgi_resize(&d->unary_begin, room + 1, sizeof *d->unary_begin))
            return fail(d);
        d->var_capacity = room;
    }
    if (d->n_vars == 0) d->unary_begin[0] = 0;
    const int64_t at = d->unary_begin[d->n_vars];
    if (!fgi_grow(&d->unary, &d->unary_capacity, at + card, sizeof *d->unary)) return fail(d);
    memcpy(d->unary + at, unary, (size_t)card * sizeof *unary);
    d->cards[d->n_vars] = card;
    d->unary_begin[d->n_vars + 1] = at + card;
    return (int32_t)d->n_vars++;
}

static int32_t add_table(fgi_draft *d, int32_t kind, int32_t arity, double p0, double p1) {
    fgi_assert(kind >= FGI_DENSE && kind <= FGI_SQDIFF && arity >= 1 && d->n_tables <= d->table_capacity);
    const int64_t room = next_capacity(d->n_tables, d->table_capacity);
    if (d->failed || d->n_tables == INT32_MAX) return fail(d);
    if (room > d->table_capacity) {
        if (!fgi_resize(&d->kind, room, sizeof *d->kind) || !fgi_resize(&d->arity, room, sizeof *d->arity) ||
            !fgi_resize(&d->params, 2 * room, sizeof *d->params) || !fgi_resize(&d->origin, room, sizeof *d->origin))
            return fail(d);
        d->table_capacity = room;
    }
    d->kind[d->n_tables] = kind;
    d->origin[d->n_tables] = -1;
    d->any_implicit |= kind != FGI_DENSE;
    d->arity[d->n_tables] = arity;
    d->params[2 * d->n_tables] = p0;
    d->params[2 * d->n_tables + 1] = p1;
    return (int32_t)d->n_tables++;
}

static int reserve_values(fgi_draft *d, int64_t n) {
    const int64_t before = d->values_capacity;
    if (!fgi_grow(&d->values, &d->values_capacity, n, sizeof *d->values)) return 0;
    if (d->values_capacity > before) fgi_prefer_large_pages(d->values, d->values_capacity * (int64_t)sizeof *d->values);
    return 1;
}

int32_t fgi_draft_dense(fgi_draft *d, int32_t arity, const int32_t *dims, double **values) {
    int64_t size = 1;
    for (int32_t k = 0; k < arity; k++)
        if (!fgi_mul(size, dims[k], &size)) return fail(d);
    if (d->failed || size > INT64_MAX - d->n_values ||
        !fgi_grow(&d->dims, &d->dims_capacity, d->n_dims + arity, sizeof *d->dims) ||
        !reserve_values(d, d->n_values + size))
        return fail(d);
    const int32_t table = add_table(d, FGI_DENSE, arity, 0, 0);
    if (table < 0) return -1;
    memcpy(d->dims + d->n_dims, dims, (size_t)arity * sizeof *dims);
    *values = d->values + d->n_values;
    d->n_dims += arity;
    d->n_values += size;
    return table;
}

int32_t fgi_draft_implicit(fgi_draft *d, int32_t kind, double p0, double p1) {
    return d->failed ? -1 : add_table(d, kind, 2, p0, p1);
}

int32_t fgi_draft_shared(fgi_draft *d, int32_t table) {
    fgi_assert(table >= 0 && table < d->from->s->n_tables);
    if (d->failed) return -1;
    fgi_assert(d->new_table[table] < 0 || d->origin[d->new_table[table]] == table);
    if (d->new_table[table] >= 0) return d->new_table[table];
    const fgi_structure *s = d->from->s;
    int32_t added;
    if (s->table_kind[table] != FGI_DENSE) {
        added = add_table(d, s->table_kind[table], 2, s->params[2 * table], s->params[2 * table + 1]);
    } else {
        const int64_t begin = s->values_begin[table], size = s->values_begin[table + 1] - begin;
        double *values;
        added = fgi_draft_dense(d, s->table_arity[table], s->dims + s->dims_begin[table], &values);
        if (added >= 0) memcpy(values, d->from->t->values + begin, (size_t)size * sizeof *values);
    }
    if (added >= 0) d->origin[added] = table;
    return d->new_table[table] = added;
}

int32_t fgi_draft_factor(fgi_draft *d, int32_t table, double weight, int transposed, int32_t arity, const int32_t *vars,
    const int32_t *local) {
    const int64_t room = next_capacity(d->n_factors, d->factor_capacity);
    fgi_assert(d->failed || (table >= 0 && table < d->n_tables));
    fgi_assert(d->failed || (weight > 0 && weight < INFINITY && arity >= 1));
    if (d->failed || d->n_factors == INT32_MAX) return fail(d);
    if (room > d->factor_capacity) {
        if (!fgi_resize(&d->factor_table, room, sizeof *d->factor_table) ||
            !fgi_resize(&d->weight, room, sizeof *d->weight) ||
            !fgi_resize(&d->transposed, room, sizeof *d->transposed) ||
            !fgi_resize(&d->var_begin, room + 1, sizeof *d->var_begin))
            return fail(d);
        d->factor_capacity = room;
    }
    if (!fgi_grow(&d->vars, &d->slot_capacity, d->n_slots + arity, sizeof *d->vars)) return fail(d);
    d->factor_table[d->n_factors] = table;
    d->weight[d->n_factors] = weight;
    d->transposed[d->n_factors] = (uint8_t)transposed;
    d->var_begin[d->n_factors] = d->n_slots;
    for (int32_t k = 0; k < arity; k++) d->vars[d->n_slots++] = local ? local[vars[k]] : vars[k];
    d->weighted |= weight != 1.0;
    d->any_transposed |= transposed;
    d->any_higher |= arity != 2;
    return (int32_t)d->n_factors++;
}

int32_t fgi_draft_copy_factor(fgi_draft *d, int64_t f, const int32_t *local) {
    const fgi_structure *s = d->from->s;
    fgi_assert(f >= 0 && f < s->n_factors);
    return fgi_draft_factor(d, fgi_draft_shared(d, s->factor_table[f]), fgi_factor_weight(s, f),
        s->factor_transposed ? s->factor_transposed[f] : 0, fgi_factor_arity(s, f), fgi_factor_vars(s, f), local);
}

static void empty(fgi_draft *d) {
    for (int64_t t = 0; t < d->n_tables; t++)
        if (d->origin[t] >= 0) d->new_table[d->origin[t]] = -1;
    d->n_vars = d->n_tables = d->n_dims = d->n_values = d->n_factors = d->n_slots = 0;
    d->weighted = d->any_transposed = d->any_higher = d->any_implicit = 0;
    d->folded = NULL;
    d->failed = !d->new_table;
    if (!d->values) d->values_capacity = 0;
}

#ifdef FGI_CHECKED
static void check(const fgi_draft *d) {
    for (int64_t i = 0; i < d->n_vars; i++) {
        fgi_assert(d->unary_begin[i + 1] - d->unary_begin[i] == d->cards[i]);
        for (int32_t a = 0; a < d->cards[i]; a++) fgi_assert(d->unary[d->unary_begin[i] + a] < INFINITY);
    }
    for (int64_t f = 0; f < d->n_factors; f++) {
        const int64_t begin = d->var_begin[f], end = f + 1 < d->n_factors ? d->var_begin[f + 1] : d->n_slots;
        fgi_assert(d->factor_table[f] >= 0 && d->factor_table[f] < d->n_tables);
        fgi_assert(d->arity[d->factor_table[f]] == end - begin);
        for (int64_t k = begin; k < end; k++) {
            fgi_assert(d->vars[k] >= 0 && d->vars[k] < d->n_vars);
            for (int64_t l = begin; l < k; l++) fgi_assert(d->vars[l] != d->vars[k]);
        }
    }
    for (int64_t t = 0; t < d->n_tables; t++) fgi_assert(d->origin[t] < 0 || d->new_table[d->origin[t]] == t);
    for (int64_t t = 0; t < d->from->s->n_tables; t++)
        fgi_assert(d->new_table[t] < 0 || d->origin[d->new_table[t]] == t);
}
#endif

fgi_rc fgi_draft_finish(fgi_draft *d, double constant, fgi_model **out, fgi_error *err) {
    fgi_rc rc = d->failed ? fgi_no_memory(err) : FGI_OK;
    if (!rc) fgi_audit_rarely(check(d));
    if (!rc && d->n_values && fgi_resize(&d->values, d->n_values, sizeof *d->values)) /* no matter if it fails */
        d->values_capacity = d->n_values;
    if (!rc) {
        if (d->n_factors) d->var_begin[d->n_factors] = d->n_slots;
        fgi_model_spec spec = {.n_vars = d->n_vars,
            .cards = d->cards,
            .unary = d->unary,
            .constant = constant,
            .n_tables = d->n_tables,
            .table_kind = d->kind,
            .table_arity = d->arity,
            .dims = d->dims,
            .params = d->any_implicit ? d->params : NULL,
            .values = d->values,
            .n_values = d->n_values,
            .n_factors = d->n_factors,
            .factor_table = d->factor_table,
            .factor_weight = d->weighted ? d->weight : NULL,
            .factor_transposed = d->any_transposed ? d->transposed : NULL,
            .var_begin = d->any_higher ? d->var_begin : NULL,
            .vars = d->vars};
        if (d->folded) fgi_folding_put(d->folded, &spec);
        rc = d->n_values ? fgi_model_create_owning(&spec, d->values, out, err) : fgi_model_create(&spec, out, err);
        if (!rc) d->values = NULL; /* the model's now (or there were none) */
    }
    empty(d);
    return rc;
}
