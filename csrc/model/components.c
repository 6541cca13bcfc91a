/* model/components.c - the connected components of a model, and the model of one of them. */
#include <string.h>
#include "fginfer_exact.h"
#include "model/draft.h"
#include "base/util.h"

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
    /* A root comes before its members; finished entries are stored as -1 - number. */
    for (int64_t i = 0; i < s->n_vars; i++) {
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
    fgi_draft draft;
};

void fgi_split_free(fgi_split *split) {
    if (!split) return;
    fgi_model_free(split->model);
    free(split->var_begin);
    free(split->factor_begin);
    free(split->vars);
    free(split->factors);
    free(split->local);
    fgi_draft_free(&split->draft);
    free(split);
}

int64_t fgi_split_count(const fgi_split *split) { return split->count; }
int64_t fgi_split_size(const fgi_split *split, int64_t which) {
    fgi_assert(which >= 0 && which < split->count);
    return split->var_begin[which + 1] - split->var_begin[which];
}

void fgi_split_vars(const fgi_split *split, int64_t which, int32_t *vars) {
    const int64_t n = fgi_split_size(split, which);
    if (n > 0) memcpy(vars, split->vars + split->var_begin[which], (size_t)n * sizeof(int32_t));
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
    const fgi_structure *s = m->s;
    fgi_split *split = fgi_calloc(1, sizeof *split);
    int32_t *component = fgi_alloc(s->n_vars, sizeof(int32_t)), *of_factor = fgi_alloc(s->n_factors, sizeof(int32_t));
    if (!split || !component || !of_factor) goto no_memory;
    split->model = fgi_model_snapshot(m);
    split->count = fgi_components(m, component);
    split->var_begin = fgi_alloc(split->count + 1, sizeof(int64_t));
    split->factor_begin = fgi_alloc(split->count + 1, sizeof(int64_t));
    split->vars = fgi_alloc(s->n_vars, sizeof(int32_t));
    split->factors = fgi_alloc(s->n_factors, sizeof(int32_t));
    split->local = fgi_alloc(s->n_vars, sizeof(int32_t));
    if (!split->model || !split->var_begin || !split->factor_begin || !split->vars || !split->factors || !split->local)
        goto no_memory;
    for (int64_t f = 0; f < s->n_factors; f++) of_factor[f] = component[fgi_factor_vars(s, f)[0]];
    sort_by(component, s->n_vars, split->count, split->var_begin, split->vars);
    sort_by(of_factor, s->n_factors, split->count, split->factor_begin, split->factors);
    for (int64_t k = 0; k < s->n_vars; k++)
        split->local[split->vars[k]] = (int32_t)(k - split->var_begin[component[split->vars[k]]]);
    fgi_draft_begin(&split->draft, split->model);
    free(component);
    free(of_factor);
    *out = split;
    return FGI_OK;
no_memory:
    free(component);
    free(of_factor);
    fgi_split_free(split);
    return fgi_no_memory(err);
}

fgi_rc fgi_split_model(fgi_split *split, int64_t which, fgi_model **out, fgi_error *err) {
    const fgi_model *m = split->model;
    const fgi_structure *s = m->s;
    if (which < 0 || which >= split->count)
        return fgi_fail(err, FGI_BAD_ARGUMENT, which, "there is no component %lld", (long long)which);
    fgi_draft *d = &split->draft;
    for (int64_t k = split->var_begin[which]; k < split->var_begin[which + 1]; k++)
        fgi_draft_variable(d, s->cards[split->vars[k]], fgi_unary(m, split->vars[k]));
    for (int64_t k = split->factor_begin[which]; k < split->factor_begin[which + 1]; k++)
        fgi_draft_copy_factor(d, split->factors[k], split->local);
    return fgi_draft_finish(d, 0, out, err);
}
