/* random_model.h - small random models and plain sums over them, for the tests of the local search. */
#ifndef RANDOM_MODEL_H
#define RANDOM_MODEL_H
#include <stdio.h>
#include <string.h>
#include "check.h"
#include "model/model.h"
#include "base/util.h"

enum { MAX_VARS = 12, MAX_FACTORS = 20, MAX_VALUES = 7000, FEW_LABELS = 4, MAX_LABELS = 7 };

/* A random model with pairwise, ternary and implicit factors, of up to `most_labels` labels (at most MAX_LABELS);
 * `forbidden` per cent of the entries are -inf. */
static fgi_model *random_model_of(fgi_rng *rng, int n_vars, int most_labels, int n_factors, int forbidden, int tree) {
    int32_t cards[MAX_VARS], table_kind[MAX_FACTORS], table_arity[MAX_FACTORS], dims[3 * MAX_FACTORS],
        tables[MAX_FACTORS], vars[3 * MAX_FACTORS];
    double unary[MAX_VARS * MAX_LABELS], params[2 * MAX_FACTORS], values[MAX_VALUES], weight[MAX_FACTORS];
    uint8_t transposed[MAX_FACTORS];
    int64_t var_begin[MAX_FACTORS + 1] = {0}, n_dims = 0, n_values = 0, n_unary = 0;
    for (int i = 0; i < n_vars; i++) {
        cards[i] = 1 + (int32_t)fgi_rng_below(rng, most_labels);
        for (int a = 0; a < cards[i]; a++)
            unary[n_unary++] = fgi_rng_below(rng, 400) < forbidden ? -INFINITY : fgi_rng_unit(rng) - 0.5;
    }
    if (tree) n_factors = n_vars - 1;
    for (int f = 0; f < n_factors; f++) {
        int arity = !tree && n_vars > 2 && fgi_rng_below(rng, 3) == 0 ? 3 : 2;
        int32_t *v = vars + var_begin[f];
        if (tree) {
            v[0] = f + 1;
            v[1] = (int32_t)fgi_rng_below(rng, f + 1);
        } else {
            for (int k = 0; k < arity; k++) {
                int again;
                do {
                    v[k] = (int32_t)fgi_rng_below(rng, n_vars);
                    again = 0;
                    for (int j = 0; j < k; j++) again |= v[j] == v[k];
                } while (again);
            }
        }
        var_begin[f + 1] = var_begin[f] + arity;
        tables[f] = f;
        weight[f] = 0.5 + fgi_rng_unit(rng);
        table_arity[f] = arity;
        transposed[f] = arity == 2 && fgi_rng_below(rng, 2);
        table_kind[f] =
            arity == 2 && !tree && fgi_rng_below(rng, 3) == 0 ? 1 + (int32_t)fgi_rng_below(rng, 3) : FGI_DENSE;
        params[2 * f] = fgi_rng_unit(rng);
        params[2 * f + 1] = 1 + fgi_rng_unit(rng);
        if (table_kind[f] != FGI_DENSE) {
            transposed[f] = 0;
            continue;
        }
        int64_t states = 1;
        for (int k = 0; k < arity; k++) {
            dims[n_dims++] = cards[v[transposed[f] ? 1 - k : k]];
            states *= cards[v[k]];
        }
        for (int64_t y = 0; y < states; y++)
            values[n_values++] = fgi_rng_below(rng, 100) < forbidden ? -INFINITY : 2 * fgi_rng_unit(rng) - 1;
    }
    fgi_model_spec spec = {.n_vars = n_vars,
        .cards = cards,
        .unary = unary,
        .constant = 0.25,
        .n_tables = n_factors,
        .table_kind = table_kind,
        .table_arity = table_arity,
        .dims = dims,
        .params = params,
        .values = values,
        .n_values = n_values,
        .n_factors = n_factors,
        .factor_table = tables,
        .factor_weight = weight,
        .factor_transposed = transposed,
        .var_begin = var_begin,
        .vars = vars};
    fgi_model *m = NULL;
    fgi_error err;
    if (fgi_model_create(&spec, &m, &err)) fprintf(stderr, "model: %s\n", err.message);
    return m;
}

static inline fgi_model *random_model(fgi_rng *rng, int n_vars, int n_factors, int forbidden, int tree) {
    return random_model_of(rng, n_vars, FEW_LABELS, n_factors, forbidden, tree);
}

static inline double plain_sum(const fgi_model *m, const int32_t *labels, int64_t *violations) {
    double sum = m->s->constant;
    *violations = 0;
    for (int64_t i = 0; i < m->s->n_vars; i++) {
        double x = fgi_unary(m, i)[labels[i]];
        if (x == -INFINITY) ++*violations;
        else sum += x;
    }
    for (int64_t f = 0; f < m->s->n_factors; f++) {
        fgi_view v = fgi_factor_view(m, f);
        double x = fgi_view_score(m, &v, labels);
        if (x == -INFINITY) ++*violations;
        else sum += x;
    }
    return sum;
}

#endif
