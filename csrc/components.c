/* components.c - sizes of a model, its connected components, and the sub-model of one of them. */
#include <string.h>
#include "fginfer_exact.h"
#include "model.h"
#include "util.h"

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
    for (int64_t i = 0; i < s->n_vars; i++) { /* a root comes before its members; finished entries are stored as -1 - number */
        int32_t j = (int32_t)i;
        while (component[j] >= 0 && component[j] != j) j = component[j];
        int32_t number = component[j] < 0 ? component[j] : (int32_t)(-1 - n++);
        component[i] = number;
    }
    for (int64_t i = 0; i < s->n_vars; i++) component[i] = -1 - component[i];
    return n;
}

typedef struct parts {
    int32_t *local;         /* per variable */
    int32_t *new_table;     /* per table; -1: not used */
    int32_t *cards, *kind, *arity, *dims, *factor_table, *vars;
    double *unary, *params, *values, *weight;
    uint8_t *transposed;
    int64_t *var_begin;
} parts;

static void parts_free(parts *p) {
    void *owned[] = {p->local, p->new_table, p->cards, p->kind, p->arity, p->dims, p->factor_table, p->vars, p->unary, p->params, p->values,
                     p->weight, p->transposed, p->var_begin};
    for (size_t k = 0; k < sizeof owned / sizeof owned[0]; k++) free(owned[k]);
}

fgi_rc fgi_component_model(const fgi_model *m, const int32_t *component, int32_t which, int32_t *vars, int64_t *n, fgi_model **out, fgi_error *err) {
    const fgi_structure *s = m->s;
    parts p = {0};
    int64_t n_vars = 0, n_labels = 0, n_factors = 0, n_slots = 0, n_tables = 0, n_dims = 0, n_values = 0;
    for (int64_t i = 0; i < s->n_vars; i++)
        if (component[i] == which) {
            vars[n_vars++] = (int32_t)i;
            n_labels += s->cards[i];
        }
    p.local = fgi_alloc(s->n_vars, sizeof(int32_t));
    p.new_table = fgi_alloc(s->n_tables, sizeof(int32_t));
    if (!p.local || !p.new_table) goto no_memory;
    for (int64_t t = 0; t < s->n_tables; t++) p.new_table[t] = -1;
    for (int64_t i = 0; i < n_vars; i++) p.local[vars[i]] = (int32_t)i;
    for (int64_t f = 0; f < s->n_factors; f++) {
        if (component[fgi_factor_vars(s, f)[0]] != which) continue;
        const int32_t t = s->factor_table[f];
        n_factors++;
        n_slots += fgi_factor_arity(s, f);
        if (p.new_table[t] >= 0) continue;
        p.new_table[t] = (int32_t)n_tables++;
        n_dims += s->dims_begin[t + 1] - s->dims_begin[t];
        n_values += s->values_begin[t + 1] - s->values_begin[t];
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
    if (!p.cards || !p.unary || !p.kind || !p.arity || !p.dims || !p.params || !p.values || !p.factor_table || !p.weight || !p.transposed ||
        !p.var_begin || !p.vars)
        goto no_memory;
    double *u = p.unary;
    for (int64_t i = 0; i < n_vars; i++) {
        p.cards[i] = s->cards[vars[i]];
        memcpy(u, fgi_unary(m, vars[i]), (size_t)p.cards[i] * sizeof(double));
        u += p.cards[i];
    }
    /* Tables in the order of their first use, which is the order of their new numbers. */
    int64_t at = 0, dims_at = 0, values_at = 0, next_table = 0;
    p.var_begin[0] = 0;
    for (int64_t f = 0, k = 0; f < s->n_factors; f++) {
        const int32_t *of = fgi_factor_vars(s, f), arity = fgi_factor_arity(s, f), t = s->factor_table[f];
        if (component[of[0]] != which) continue;
        if (p.new_table[t] == next_table) {
            const int64_t dims = s->dims_begin[t + 1] - s->dims_begin[t], values = s->values_begin[t + 1] - s->values_begin[t];
            p.kind[next_table] = s->table_kind[t];
            p.arity[next_table] = s->table_arity[t];
            if (s->params) memcpy(p.params + 2 * next_table, s->params + 2 * t, 2 * sizeof(double));
            if (dims) memcpy(p.dims + dims_at, s->dims + s->dims_begin[t], (size_t)dims * sizeof(int32_t));
            if (values) memcpy(p.values + values_at, m->t->values + s->values_begin[t], (size_t)values * sizeof(double));
            dims_at += dims;
            values_at += values;
            next_table++;
        }
        p.factor_table[k] = p.new_table[t];
        p.weight[k] = fgi_factor_weight(s, f);
        p.transposed[k] = s->factor_transposed ? s->factor_transposed[f] : 0;
        for (int32_t l = 0; l < arity; l++) p.vars[at++] = p.local[of[l]];
        p.var_begin[++k] = at;
    }
    fgi_model_spec spec = {.n_vars = n_vars, .cards = p.cards, .unary = p.unary, .n_tables = n_tables, .table_kind = p.kind, .table_arity = p.arity,
                           .dims = p.dims, .params = p.params, .values = p.values, .n_values = n_values, .n_factors = n_factors,
                           .factor_table = p.factor_table, .factor_weight = p.weight, .factor_transposed = p.transposed,
                           .var_begin = p.var_begin, .vars = p.vars};
    *n = n_vars;
    fgi_rc rc = fgi_model_create(&spec, out, err);
    parts_free(&p);
    return rc;
no_memory:
    parts_free(&p);
    return fgi_fail(err, FGI_NO_MEMORY, -1, "out of memory");
}
