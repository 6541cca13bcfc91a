/* Exact methods against brute force on random small models; run under the sanitizers. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "check.h"
#include "fginfer_exact.h"
#include "base/util.h"

enum { MOST_VARS = 7, MOST_FACTORS = 9 };

static void expect(int ok, const char *what, uint64_t seed) {
    CHECK_SAYING(ok, "%s, seed %llu\n", what, (unsigned long long)seed);
}

static double normal(fgi_rng *r, double forbidden) {
    if (fgi_rng_unit(r) < forbidden) return -INFINITY;
    return 4 * (fgi_rng_unit(r) + fgi_rng_unit(r) + fgi_rng_unit(r) - 1.5);
}

/* A model with dense tables of arity 2 and 3 and some Potts tables, weights and transposition. */
static fgi_model *random_model(fgi_rng *r, double forbidden) {
    int32_t cards[MOST_VARS], kind[MOST_FACTORS], arity[MOST_FACTORS], dims[3 * MOST_FACTORS], table[MOST_FACTORS],
        vars[3 * MOST_FACTORS];
    double unary[3 * MOST_VARS], params[2 * MOST_FACTORS], values[27 * MOST_FACTORS], weight[MOST_FACTORS];
    uint8_t transposed[MOST_FACTORS];
    int64_t begin[MOST_FACTORS + 1] = {0}, n_dims = 0, n_values = 0, n_labels = 0;
    const int32_t n = 3 + (int32_t)fgi_rng_below(r, MOST_VARS - 2), m = (int32_t)fgi_rng_below(r, MOST_FACTORS + 1);
    for (int32_t i = 0; i < n; i++) {
        cards[i] = 1 + (int32_t)fgi_rng_below(r, 3);
        for (int32_t a = 0; a < cards[i]; a++) unary[n_labels++] = normal(r, forbidden / 2);
    }
    for (int32_t f = 0; f < m; f++) {
        arity[f] = 2 + (int32_t)fgi_rng_below(r, 2);
        kind[f] = arity[f] == 2 && fgi_rng_below(r, 4) == 0 ? FGI_POTTS : FGI_DENSE;
        transposed[f] = arity[f] == 2 && fgi_rng_below(r, 3) == 0;
        table[f] = f;
        weight[f] = 0.5 + fgi_rng_unit(r);
        int32_t *scope = vars + begin[f];
        for (int32_t k = 0; k < arity[f];) {
            scope[k] = (int32_t)fgi_rng_below(r, n);
            int32_t l = 0;
            while (scope[l] != scope[k]) l++;
            k += l == k;
        }
        params[2 * f] = normal(r, forbidden);
        params[2 * f + 1] = normal(r, forbidden);
        begin[f + 1] = begin[f] + arity[f];
        if (kind[f] != FGI_DENSE) continue;
        int64_t size = 1;
        for (int32_t k = 0; k < arity[f]; k++) {
            dims[n_dims] = cards[scope[transposed[f] ? 1 - k : k]];
            size *= dims[n_dims++];
        }
        for (int64_t k = 0; k < size; k++) values[n_values++] = normal(r, forbidden);
    }
    fgi_model_spec spec = {.n_vars = n,
        .cards = cards,
        .unary = unary,
        .constant = normal(r, 0),
        .n_tables = m,
        .table_kind = kind,
        .table_arity = arity,
        .dims = dims,
        .params = params,
        .values = values,
        .n_values = n_values,
        .n_factors = m,
        .factor_table = table,
        .factor_weight = weight,
        .factor_transposed = transposed,
        .var_begin = begin,
        .vars = vars};
    fgi_model *model = NULL;
    fgi_error err;
    if (fgi_model_create(&spec, &model, &err)) {
        fprintf(stderr, "%s\n", err.message);
        exit(1);
    }
    return model;
}

static double brute_force(const fgi_model *m) {
    int32_t labels[MOST_VARS] = {0}, cards[MOST_VARS];
    const int64_t n = fgi_model_variables(m);
    double best = -INFINITY, score;
    fgi_model_cards(m, cards);
    for (;;) {
        fgi_model_score(m, labels, &score, NULL);
        if (score > best) best = score;
        int64_t k = 0;
        while (k < n && ++labels[k] == cards[k]) labels[k++] = 0;
        if (k == n) return best;
    }
}

static int close_to(double a, double b) { return a == b || fabs(a - b) <= 1e-9 * fmax(1, fmax(fabs(a), fabs(b))); }

static double eliminate(const fgi_model *m, int32_t *labels, double memory) {
    fgi_eliminate *e;
    fgi_eliminate_info info;
    if (fgi_eliminate_create(m, memory, 0, &e, NULL)) return NAN;
    fgi_rc rc;
    do rc = fgi_eliminate_run(e, 0, &info, NULL);
    while (!rc && info.status == FGI_RUNNING);
    if (!rc) fgi_eliminate_labels(e, labels);
    fgi_eliminate_free(e);
    return rc ? NAN : info.value;
}

static void check_one(uint64_t seed) {
    fgi_rng r = {seed};
    fgi_model *m = random_model(&r, seed % 3 == 0 ? 0 : seed % 3 == 1 ? 0.15 : 0.4);
    const int64_t n = fgi_model_variables(m);
    int32_t labels[MOST_VARS] = {0}, reduced[MOST_VARS] = {0}, component[MOST_VARS], subset[MOST_VARS];
    double best = brute_force(m), score = -INFINITY;

    double value = eliminate(m, labels, 1e9);
    expect(close_to(value, best), "elimination", seed);
    fgi_model_score(m, labels, &score, NULL);
    expect(best == -INFINITY || close_to(score, best), "labels of the elimination", seed);
    expect(fgi_model_factors(m) == 0 || isnan(eliminate(m, labels, 0)) || !isnan(value), "memory limit", seed);

    for (int32_t reductions = 1; reductions <= 255; reductions = reductions < 128 ? 2 * reductions
             : reductions == 128                                                  ? 255
                                                                                  : 256) {
        fgi_presolve *p;
        fgi_presolve_info info;
        fgi_presolve_options options = fgi_presolve_options_default();
        options.reductions = reductions;
        if (fgi_presolve_create(m, &options, &p, NULL)) {
            expect(0, "presolve", seed);
            continue;
        }
        fgi_presolve_info_get(p, &info);
        expect(!info.infeasible || best == -INFINITY, "claim of infeasibility", seed);
        if (!info.infeasible) {
            expect(
                close_to(eliminate(fgi_presolve_model(p), reduced, 1e9), best), "optimum of the reduced model", seed);
            if (best > -INFINITY) {
                fgi_presolve_expand(p, reduced, labels, NULL);
                fgi_model_score(m, labels, &score, NULL);
                expect(close_to(score, best), "expanded labels", seed);
                fgi_presolve_restrict(p, labels, reduced);
            }
        }
        fgi_presolve_free(p);
    }

    fgi_split *split;
    int64_t members = 0, parts = fgi_components(m, component);
    if (!fgi_split_create(m, &split, NULL)) {
        expect(fgi_split_count(split) == parts, "number of components", seed);
        for (int64_t k = 0; k < parts; k++) {
            fgi_model *part;
            fgi_split_vars(split, k, subset);
            expect(component[subset[0]] == k, "numbers of components", seed);
            if (fgi_split_model(split, k, &part, NULL)) continue;
            members += fgi_model_variables(part);
            fgi_model_free(part);
        }
        fgi_split_free(split);
    }
    expect(members == n, "components", seed);
    fgi_model_free(m);
}

static void check_bounds(uint64_t seed, int32_t method, const char *name) {
    fgi_rng r = {seed};
    fgi_model *m = random_model(&r, seed % 3 == 0 ? 0 : 0.2);
    fgi_settings settings = fgi_settings_default();
    fgi_solver *solver;
    fgi_info info;
    settings.method = method;
    settings.max_iterations = 30;
    settings.gap = 0;
    double best = brute_force(m);
    if (!fgi_solver_create(m, &settings, &solver, NULL)) {
        do expect(fgi_solver_run(solver, 0, -1, &info) == FGI_OK, name, seed);
        while (info.status == FGI_RUNNING);
        expect(info.bound >= best - 1e-9 * fmax(1, fabs(best)), name, seed);
        expect(info.score <= best || close_to(info.score, best), name, seed);
        expect(info.status != FGI_OPTIMAL || close_to(info.score, best), name, seed);
        expect(info.status != FGI_INFEASIBLE || best == -INFINITY, name, seed);
        fgi_solver_free(solver);
    }
    fgi_model_free(m);
}

int main(void) {
    for (uint64_t seed = 0; seed < 400; seed++) check_one(seed);
    for (uint64_t seed = 0; seed < 200; seed++) check_bounds(seed, FGI_SLABS, "slabs");
    for (uint64_t seed = 0; seed < 400; seed++) check_bounds(seed, FGI_CYCLES, "cycles");
    for (uint64_t seed = 0; seed < 200; seed++) check_bounds(seed, FGI_SDP, "sdp");
    return failed();
}
