/* model/leftovers.c - see model/leftovers.h. */
#include "model/leftovers.h"
#include <math.h>
#include <stdlib.h>
#include "base/exact_sum.h"
#include "base/util.h"
#include "model/model.h"

/* ---- of a model ----------------------------------------------------------------------------------------------- */

static int64_t size_of(const int32_t *cards, int32_t var) { return var < 0 ? 1 : cards[var]; }

fgi_leftovers *fgi_leftovers_retain(fgi_leftovers *x) {
    if (x) atomic_fetch_add(&x->refs, 1);
    return x;
}

void fgi_leftovers_release(fgi_leftovers *x) {
    if (!x || atomic_fetch_sub(&x->refs, 1) != 1) return;
    free(x->var);
    free(x->begin);
    free(x->values);
    free(x);
}

int64_t fgi_leftovers_memory(const fgi_leftovers *x) {
    return x ? (int64_t)sizeof *x + x->n * (4 + 8) + 8 + x->begin[x->n] * 8 : 0;
}

static fgi_leftovers *make(int64_t n, const int32_t *var, const double *values, int64_t n_values) {
    fgi_leftovers *x = fgi_calloc(1, sizeof *x);
    if (!x) return NULL;
    atomic_init(&x->refs, 1);
    x->n = n;
    x->var = fgi_copy(var, n, sizeof *var);
    x->begin = fgi_calloc(n + 1, sizeof *x->begin);
    x->values = fgi_copy(values, n_values, sizeof *values);
    if (x->var && x->begin && x->values) return x;
    fgi_leftovers_release(x);
    return NULL;
}

fgi_rc fgi_leftovers_create(const fgi_model_spec *spec, fgi_leftovers **out, fgi_error *err) {
    int64_t total = 0;
    *out = NULL;
    if (spec->n_leftovers == 0) return FGI_OK;
    for (int64_t k = 0; k < spec->n_leftovers; k++) {
        const int32_t var = spec->leftover_var[k];
        if (var < -1 || var >= spec->n_vars || (k > 0 && var < spec->leftover_var[k - 1]))
            return fgi_fail(err, FGI_BAD_MODEL, k, "leftover %lld is of variable %d; there are %lld, in their order",
                (long long)k, var, (long long)spec->n_vars);
        total += size_of(spec->cards, var);
        if (total > spec->n_leftover_values) break;
    }
    if (total != spec->n_leftover_values)
        return fgi_fail(err, FGI_BAD_MODEL, -1, "the leftovers have %lld values, their variables another number",
            (long long)spec->n_leftover_values);
    for (int64_t k = 0; k < total; k++)
        if (!isfinite(spec->leftover[k]))
            return fgi_fail(err, FGI_BAD_MODEL, k, "value %lld of the leftovers is not finite", (long long)k);
    fgi_leftovers *x = make(spec->n_leftovers, spec->leftover_var, spec->leftover, total);
    if (!x) return fgi_no_memory(err);
    for (int64_t k = 0; k < x->n; k++) x->begin[k + 1] = x->begin[k] + size_of(spec->cards, x->var[k]);
    *out = x;
    return FGI_OK;
}

fgi_rc fgi_leftovers_without(fgi_leftovers *x, int32_t var, fgi_leftovers **out, fgi_error *err) {
    int64_t kept = 0, at = 0;
    for (int64_t k = 0; x && k < x->n; k++) kept += var < 0 ? x->var[k] < 0 : x->var[k] != var;
    *out = NULL;
    if (kept == 0) return FGI_OK;
    if (kept == x->n) {
        *out = fgi_leftovers_retain(x);
        return FGI_OK;
    }
    fgi_leftovers *y = make(x->n, x->var, x->values, x->begin[x->n]);
    if (!y) return fgi_no_memory(err);
    for (int64_t k = 0; k < x->n; k++) {
        if (!(var < 0 ? x->var[k] < 0 : x->var[k] != var)) continue;
        y->var[at] = x->var[k];
        y->begin[at + 1] = y->begin[at];
        for (int64_t e = x->begin[k]; e < x->begin[k + 1]; e++) y->values[y->begin[at + 1]++] = x->values[e];
        at++;
    }
    y->n = kept;
    *out = y;
    return FGI_OK;
}

double fgi_model_leftover_bound(const fgi_model *m) {
    const fgi_leftovers *x = m->x;
    fgi_exact_sum sum = {{0}, 0};
    for (int64_t k = 0; x && k < x->n; k++) {
        double most = -INFINITY;
        for (int64_t e = x->begin[k]; e < x->begin[k + 1]; e++) most = fgi_larger(most, x->values[e]);
        fgi_exact_sum_add(&sum, most);
    }
    const double value = fgi_exact_sum_value(&sum);
    fgi_exact_sum_add(&sum, -value);
    return fgi_exact_sum_value(&sum) > 0 ? nextafter(value, INFINITY) : value;
}

/* ---- folding -------------------------------------------------------------------------------------------------- */

typedef struct term {
    int32_t var;
    int64_t begin; /* in the scores */
} term;

int fgi_folding_add(fgi_folding *f, int32_t var, int64_t card, const double *scores) {
    if (!fgi_array_reserve(&f->terms, 1, sizeof(term)) || !fgi_array_reserve(&f->scores, card, sizeof *scores))
        return 0;
    ((term *)f->terms.at)[f->terms.n++] = (term){var, f->scores.n};
    for (int64_t a = 0; a < card; a++) ((double *)f->scores.at)[f->scores.n++] = scores[a];
    return 1;
}

void fgi_folding_add_constant(fgi_folding *f, double score) {
    if (f->constants == 0) f->first = score; /* a single -0.0 stays one */
    f->constants += f->constants < 2;
    if (score == -INFINITY) f->forbidden = 1;
    else fgi_partials_add(&f->constant, score);
}

static int by_variable(const void *a, const void *b) {
    const term *x = a, *y = b;
    if (x->var != y->var) return x->var < y->var ? -1 : 1;
    return x->begin < y->begin ? -1 : 1;
}

/* Takes entry `a` of the rows of a variable that has `size` labels: what is left of the sum, a row for each double. */
static int put_rows(fgi_folding *f, int32_t var, int64_t size, int64_t a, int64_t first, fgi_partials *left) {
    for (int64_t row = first;; row++) {
        const double value = fgi_partials_value(left);
        if (value == 0) return 1;
        if (row == f->left_var.n) {
            if (!fgi_array_reserve(&f->left, size, sizeof(double)) || !fgi_array_push_i32(&f->left_var, var)) return 0;
            for (int64_t k = 0; k < size; k++) ((double *)f->left.at)[f->left.n++] = 0;
        }
        ((double *)f->left.at)[f->left.n - (f->left_var.n - row) * size + a] = value;
        fgi_partials_add(left, -value);
    }
}

static fgi_rc too_large(int32_t var, fgi_error *err) {
    return fgi_fail(err, FGI_BAD_MODEL, var, "the scores of variable %d add up to more than a double holds", (int)var);
}

static fgi_rc fold_variable(
    fgi_folding *f, int32_t var, int64_t card, const term *terms, int64_t n, double *unary, fgi_error *err) {
    const int64_t first = f->left_var.n;
    for (int64_t a = 0; a < card; a++) {
        fgi_partials sum = {.n = 0};
        int forbidden = unary[a] == -INFINITY;
        if (!forbidden) fgi_partials_add(&sum, unary[a]);
        for (int64_t k = 0; k < n && !forbidden; k++) {
            const double x = ((const double *)f->scores.at)[terms[k].begin + a];
            forbidden = x == -INFINITY;
            if (!forbidden) fgi_partials_add(&sum, x);
        }
        unary[a] = forbidden ? -INFINITY : fgi_partials_value(&sum);
        if (forbidden) continue;
        if (!isfinite(unary[a])) return too_large(var, err);
        fgi_partials_add(&sum, -unary[a]);
        if (!put_rows(f, var, card, a, first, &sum)) return fgi_no_memory(err);
    }
    return FGI_OK;
}

static fgi_rc fold_constant(fgi_folding *f, double *constant, fgi_error *err) {
    *constant = f->constants < 2 ? f->first : f->forbidden ? -INFINITY : fgi_partials_value(&f->constant);
    if (f->constants < 2 || f->forbidden) return FGI_OK;
    if (!isfinite(*constant))
        return fgi_fail(err, FGI_BAD_MODEL, -1, "the scores of the constant add up to more than a double holds");
    fgi_partials_add(&f->constant, -*constant);
    return put_rows(f, -1, 1, 0, 0, &f->constant) ? FGI_OK : fgi_no_memory(err);
}

fgi_rc fgi_folding_finish(
    fgi_folding *f, const int32_t *cards, const int64_t *unary_begin, double *unary, double *constant, fgi_error *err) {
    term *terms = f->terms.at;
    fgi_rc rc = fold_constant(f, constant, err);
    if (f->terms.n) qsort(terms, (size_t)f->terms.n, sizeof *terms, by_variable);
    for (int64_t k = 0, end; k < f->terms.n && !rc; k = end) {
        const int32_t var = terms[k].var;
        for (end = k + 1; end < f->terms.n && terms[end].var == var;) end++;
        rc = fold_variable(f, var, cards[var], terms + k, end - k, unary + unary_begin[var], err);
    }
    return rc;
}

void fgi_folding_put(const fgi_folding *f, fgi_model_spec *spec) {
    spec->n_leftovers = f->left_var.n;
    spec->leftover_var = f->left_var.at;
    spec->leftover = f->left.at;
    spec->n_leftover_values = f->left.n;
}

int64_t fgi_folding_held(const fgi_folding *f) {
    return f->terms.capacity * (int64_t)sizeof(term) + 8 * (f->scores.capacity + f->left.capacity) +
        4 * f->left_var.capacity;
}

void fgi_folding_free(fgi_folding *f) {
    fgi_array *all[] = {&f->terms, &f->scores, &f->left_var, &f->left};
    for (size_t k = 0; k < sizeof all / sizeof all[0]; k++) fgi_array_free(all[k]);
    *f = (fgi_folding){0};
}
