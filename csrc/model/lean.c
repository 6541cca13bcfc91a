/* model/lean.c - see model/lean.h. */
#include "model/lean.h"
#include "base/util.h"
#include <string.h>

enum { WIDE = 16 }; /* variables of a factor that every method takes */

static int is_wide(const fgi_structure *s, int64_t t) {
    const int32_t *dims = s->dims + s->dims_begin[t];
    int32_t constants = 0;
    if (s->table_kind[t] != FGI_DENSE || s->table_arity[t] <= WIDE) return 0;
    for (int32_t k = 0; k < s->table_arity[t]; k++) constants += dims[k] == 1;
    return constants > 0;
}

int fgi_model_is_wide(const fgi_model *m) {
    int wide = 0;
    for (int64_t t = 0; m->s->max_arity > WIDE && t < m->s->n_tables && !wide; t++) wide = is_wide(m->s, t);
    return wide;
}

/* Copies what belongs to the axes of table t that stay, and returns how many these are. */
static int32_t keep(const fgi_structure *s, int64_t t, const int32_t *from, int32_t *to) {
    const int32_t *dims = s->dims + s->dims_begin[t], arity = s->table_arity[t];
    if (!is_wide(s, t)) {
        memcpy(to, from, (size_t)arity * sizeof *to);
        return arity;
    }
    int32_t n = 0, spare = 2; /* constants that stay, where there is little else */
    for (int32_t k = 0; k < arity; k++) spare -= dims[k] > 1;
    for (int32_t k = 0; k < arity; k++)
        if (dims[k] > 1 || spare-- > 0) to[n++] = from[k];
    return n;
}

fgi_rc fgi_model_lean(const fgi_model *m, fgi_model **out, fgi_error *err) {
    const fgi_structure *s = m->s;
    fgi_arena arena = {0};
    int32_t *arity = fgi_take(&arena, s->n_tables, int32_t),
            *dims = fgi_take(&arena, s->dims_begin[s->n_tables], int32_t);
    int32_t *vars = fgi_take(&arena, fgi_factor_begin(s, s->n_factors), int32_t);
    int64_t *begin = fgi_take_zero(&arena, s->n_factors + 1, int64_t), at = 0;
    fgi_rc rc = arena.failed ? fgi_no_memory(err) : FGI_OK;
    for (int64_t t = 0; !rc && t < s->n_tables; t++) {
        arity[t] = s->table_arity[t];
        if (s->table_kind[t] == FGI_DENSE) at += arity[t] = keep(s, t, s->dims + s->dims_begin[t], dims + at);
    }
    for (int64_t f = 0; !rc && f < s->n_factors; f++) {
        const int64_t table = s->factor_table[f];
        begin[f + 1] = begin[f] + keep(s, table, fgi_factor_vars(s, f), vars + begin[f]);
    }
    fgi_model_spec spec;
    fgi_model_arrays(m, &spec);
    spec.table_arity = arity;
    spec.dims = dims;
    spec.var_begin = begin;
    spec.vars = vars;
    if (!rc) rc = fgi_model_create(&spec, out, err);
    fgi_arena_free(&arena);
    return rc;
}
