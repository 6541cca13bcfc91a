/* model/components.c - sizes of a model, its connected components, and the sub-model of one of them. */
#include <string.h>
#include "fginfer_exact.h"
#include "model/model.h"
#include "base/util.h"

int64_t fgi_model_variables(const fgi_model *m) { return m->s->n_vars; }
int64_t fgi_model_factors(const fgi_model *m) { return m->s->n_factors; }
int64_t fgi_model_entries(const fgi_model *m) { return m->s->values_begin[m->s->n_tables]; }

void fgi_model_cards(const fgi_model *m, int32_t *cards) {
    if (m->s->n_vars > 0) memcpy(cards, m->s->cards, (size_t)m->s->n_vars * sizeof(int32_t));
}

static int32_t find(int32_t *parent, int32_t i) {
    while (parent[i] != i) i = parent[i] = parent[parent[i]];
    return i;
}

int64_t fgi_components(const fgi_model *m, int32_t *component) {
    const fgi_structure *s = m->s;
    for (int64_t i = 0; i < s->n_vars; i++) component[i] = (int32_t)i;
    for (int64_t f = 0; f < s->n_factors; f++) {
        const int32_t *vars = fgi_factor_vars(s, f);
        int32_t a = find(component, vars[0]);
        for (int32_t k = 1; k < fgi_factor_arity(s, f); k++) {
            int32_t b = find(component, vars[k]);
            if (a < b) component[b] = a; /* the smallest variable is the root */
            else component[a] = b, a = b;
        }
    }
    int64_t n = 0;
    for (int64_t i = 0; i < s->n_vars;
         i++) { /* a root comes before its members; finished entries are stored as -1 - number */
        int32_t j = (int32_t)i;
        while (component[j] >= 0 && component[j] != j) j = component[j];
        int32_t number = component[j] < 0 ? component[j] : (int32_t)(-1 - n++);
        component[i] = number;
    }
    for (int64_t i = 0; i < s->n_vars; i++) component[i] = -1 - component[i];
    return n;
}

/* ---- splitting ---------------------------------------------------------------------------------------------- */

struct fgi_split {
    fgi_model *model;
    int64_t count;
    int64_t *var_begin, *factor_begin; /* count + 1 */
    int32_t *vars, *factors;           /* by component, ascending */
    int32_t *local;                    /* per variable: its number within its component */
    int32_t *new_table;                /* per table: its number in the sub-model being built; -1: not used */
};

void fgi_split_free(fgi_split *s) {
    if (!s) return;
    fgi_model_free(s->model);
    free(s->var_begin);
    free(s->factor_begin);
    free(s->vars);
    free(s->factors);
    free(s->local);
    free(s->new_table);
    free(s);
}

int64_t fgi_split_count(const fgi_split *s) { return s->count; }
int64_t fgi_split_size(const fgi_split *s, int64_t which) { return s->var_begin[which + 1] - s->var_begin[which]; }

void fgi_split_vars(const fgi_split *s, int64_t which, int32_t *vars) {
    const int64_t n = fgi_split_size(s, which);
    if (n > 0) memcpy(vars, s->vars + s->var_begin[which], (size_t)n * sizeof(int32_t));
}

/* Sorts 0 .. n-1 by key, stably: begin[k] is where key k starts in `sorted`. */
static void sort_by(const int32_t *key, int64_t n, int64_t n_keys, int64_t *begin, int32_t *sorted) {
    memset(begin, 0, ((size_t)n_keys + 1) * sizeof(int64_t));
    for (int64_t i = 0; i < n; i++) begin[key[i] + 1]++;
    for (int64_t k = 0; k < n_keys; k++) begin[k + 1] += begin[k];
    for (int64_t i = 0; i < n; i++) sorted[begin[key[i]]++] = (int32_t)i;
    for (int64_t k = n_keys; k > 0; k--) begin[k] = begin[k - 1];
    begin[0] = 0;
}

fgi_rc fgi_split_create(const fgi_model *m, fgi_split **out, fgi_error *err) {
    const fgi_structure *st = m->s;
    fgi_split *s = fgi_calloc(1, sizeof *s);
    int32_t *component = fgi_alloc(st->n_vars, sizeof(int32_t)), *of_factor = fgi_alloc(st->n_factors, sizeof(int32_t));
    if (!s || !component || !of_factor) goto no_memory;
    s->model = fgi_model_snapshot(m);
    s->count = fgi_components(m, component);
    s->var_begin = fgi_alloc(s->count + 1, sizeof(int64_t));
    s->factor_begin = fgi_alloc(s->count + 1, sizeof(int64_t));
    s->vars = fgi_alloc(st->n_vars, sizeof(int32_t));
    s->factors = fgi_alloc(st->n_factors, sizeof(int32_t));
    s->local = fgi_alloc(st->n_vars, sizeof(int32_t));
    s->new_table = fgi_alloc(st->n_tables, sizeof(int32_t));
    if (!s->model || !s->var_begin || !s->factor_begin || !s->vars || !s->factors || !s->local || !s->new_table)
        goto no_memory;
    for (int64_t f = 0; f < st->n_factors; f++) of_factor[f] = component[fgi_factor_vars(st, f)[0]];
    sort_by(component, st->n_vars, s->count, s->var_begin, s->vars);
    sort_by(of_factor, st->n_factors, s->count, s->factor_begin, s->factors);
    for (int64_t k = 0; k < st->n_vars; k++) s->local[s->vars[k]] = (int32_t)(k - s->var_begin[component[s->vars[k]]]);
    for (int64_t t = 0; t < st->n_tables; t++) s->new_table[t] = -1;
    free(component);
    free(of_factor);
    *out = s;
    return FGI_OK;
no_memory:
    free(component);
    free(of_factor);
    fgi_split_free(s);
    return fgi_fail(err, FGI_NO_MEMORY, -1, "out of memory");
}

typedef struct parts {
    int32_t *cards, *kind, *arity, *dims, *factor_table, *vars;
    double *unary, *params, *values, *weight;
    uint8_t *transposed;
    int64_t *var_begin;
} parts;

static void parts_free(parts *p) {
    void *owned[] = {p->cards, p->kind, p->arity, p->dims, p->factor_table, p->vars, p->unary, p->params, p->values,
        p->weight, p->transposed, p->var_begin};
    for (size_t k = 0; k < sizeof owned / sizeof owned[0]; k++) free(owned[k]);
}

/* Copies table t as the next of the parts. */
static void copy_table(const fgi_model *m, int32_t t, parts *p, int64_t next, int64_t *dims_at, int64_t *values_at) {
    const fgi_structure *st = m->s;
    const int64_t dims = st->dims_begin[t + 1] - st->dims_begin[t],
                  values = st->values_begin[t + 1] - st->values_begin[t];
    p->kind[next] = st->table_kind[t];
    p->arity[next] = st->table_arity[t];
    if (st->params) memcpy(p->params + 2 * next, st->params + 2 * (int64_t)t, 2 * sizeof(double));
    if (dims) memcpy(p->dims + *dims_at, st->dims + st->dims_begin[t], (size_t)dims * sizeof(int32_t));
    if (values) memcpy(p->values + *values_at, m->t->values + st->values_begin[t], (size_t)values * sizeof(double));
    *dims_at += dims;
    *values_at += values;
}

fgi_rc fgi_split_model(fgi_split *s, int64_t which, fgi_model **out, fgi_error *err) {
    const fgi_model *m = s->model;
    const fgi_structure *st = m->s;
    if (which < 0 || which >= s->count)
        return fgi_fail(err, FGI_BAD_ARGUMENT, which, "there is no component %lld", (long long)which);
    const int32_t *vars = s->vars + s->var_begin[which], *factors = s->factors + s->factor_begin[which];
    const int64_t n_vars = fgi_split_size(s, which), n_factors = s->factor_begin[which + 1] - s->factor_begin[which];
    int64_t n_labels = 0, n_slots = 0, n_tables = 0, n_dims = 0, n_values = 0;
    parts p = {0};
    for (int64_t i = 0; i < n_vars; i++) n_labels += st->cards[vars[i]];
    for (int64_t k = 0; k < n_factors; k++) {
        const int32_t t = st->factor_table[factors[k]];
        n_slots += fgi_factor_arity(st, factors[k]);
        if (s->new_table[t] >= 0) continue;
        s->new_table[t] = (int32_t)n_tables++;
        n_dims += st->dims_begin[t + 1] - st->dims_begin[t];
        n_values += st->values_begin[t + 1] - st->values_begin[t];
    }
    p.cards = fgi_alloc(n_vars, sizeof(int32_t));
    p.unary = fgi_alloc(n_labels, sizeof(double));
    p.kind = fgi_alloc(n_tables, sizeof(int32_t));
    p.arity = fgi_alloc(n_tables, sizeof(int32_t));
    p.dims = fgi_alloc(n_dims, sizeof(int32_t));
    p.params = fgi_calloc(2 * n_tables, sizeof(double));
    p.values = fgi_alloc(n_values, sizeof(double));
    p.factor_table = fgi_alloc(n_factors, sizeof(int32_t));
    p.weight = fgi_alloc(n_factors, sizeof(double));
    p.transposed = fgi_alloc(n_factors, 1);
    p.var_begin = fgi_alloc(n_factors + 1, sizeof(int64_t));
    p.vars = fgi_alloc(n_slots, sizeof(int32_t));
    fgi_rc rc = FGI_NO_MEMORY;
    if (p.cards && p.unary && p.kind && p.arity && p.dims && p.params && p.values && p.factor_table && p.weight &&
        p.transposed && p.var_begin && p.vars) {
        double *u = p.unary;
        for (int64_t i = 0; i < n_vars; i++) {
            p.cards[i] = st->cards[vars[i]];
            memcpy(u, fgi_unary(m, vars[i]), (size_t)p.cards[i] * sizeof(double));
            u += p.cards[i];
        }
        int64_t at = 0, dims_at = 0, values_at = 0, next = 0;
        p.var_begin[0] = 0;
        for (int64_t k = 0; k < n_factors; k++) {
            const int32_t f = factors[k], t = st->factor_table[f], *of = fgi_factor_vars(st, f);
            if (s->new_table[t] == next)
                copy_table(m, t, &p, next++, &dims_at, &values_at); /* tables are numbered by first use */
            p.factor_table[k] = s->new_table[t];
            p.weight[k] = fgi_factor_weight(st, f);
            p.transposed[k] = st->factor_transposed ? st->factor_transposed[f] : 0;
            for (int32_t l = 0; l < fgi_factor_arity(st, f); l++) p.vars[at++] = s->local[of[l]];
            p.var_begin[k + 1] = at;
        }
        fgi_model_spec spec = {.n_vars = n_vars,
            .cards = p.cards,
            .unary = p.unary,
            .n_tables = n_tables,
            .table_kind = p.kind,
            .table_arity = p.arity,
            .dims = p.dims,
            .params = p.params,
            .values = p.values,
            .n_values = n_values,
            .n_factors = n_factors,
            .factor_table = p.factor_table,
            .factor_weight = p.weight,
            .factor_transposed = p.transposed,
            .var_begin = p.var_begin,
            .vars = p.vars};
        rc = fgi_model_create(&spec, out, err);
    } else {
        fgi_fail(err, rc, -1, "out of memory");
    }
    for (int64_t k = 0; k < n_factors; k++) s->new_table[st->factor_table[factors[k]]] = -1;
    parts_free(&p);
    return rc;
}
