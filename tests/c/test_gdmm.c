/* test_gdmm.c - gdmm from C, for the sanitizers: random models, all algorithms, threads, slices, updates. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "check.h"
#include "fginfer.h"
#include "base/util.h"

enum { MAX_VARS = 24, MAX_CARD = 6, MAX_FACTORS = 40, MAX_VALUES = 1 << 14 };

typedef struct random_model {
    int32_t cards[MAX_VARS], table_arity[MAX_FACTORS], dims[3 * MAX_FACTORS], factor_table[MAX_FACTORS],
        vars[3 * MAX_FACTORS];
    int64_t var_begin[MAX_FACTORS + 1];
    double unary[MAX_VARS * MAX_CARD], values[MAX_VALUES];
    fgi_model_spec spec;
} random_model;

static void expect(int ok, const char *what, uint64_t seed) {
    CHECK_SAYING(ok, "%s, seed %llu\n", what, (unsigned long long)seed);
}

static double random_score(fgi_rng *rng, double forbid) {
    return fgi_rng_unit(rng) < forbid ? -INFINITY : 4 * fgi_rng_unit(rng) - 2;
}

static void generate(random_model *r, fgi_rng *rng, int32_t n_vars, int32_t max_card, int32_t max_arity,
    int32_t n_factors, double forbid) {
    memset(r, 0, sizeof *r);
    int64_t labels = 0, slots = 0, values = 0;
    for (int32_t i = 0; i < n_vars; i++) {
        r->cards[i] = max_card == 2 ? 2 : 1 + (int32_t)fgi_rng_below(rng, max_card);
        for (int32_t a = 0; a < r->cards[i]; a++) r->unary[labels++] = random_score(rng, forbid / 2);
    }
    for (int32_t f = 0; f < n_factors; f++) {
        int32_t arity = 2 + (int32_t)fgi_rng_below(rng, max_arity - 1),
                first = (int32_t)fgi_rng_below(rng, n_vars - arity + 1);
        int64_t size = 1;
        for (int32_t k = 0; k < arity; k++) { /* distinct: one of each residue class */
            int32_t v = (first + k) % n_vars;
            if (k == arity - 1 && first + k < n_vars - 1)
                v = first + k + (int32_t)fgi_rng_below(rng, n_vars - first - k);
            r->vars[slots] = v;
            r->dims[slots++] = r->cards[v];
            size *= r->cards[v];
        }
        r->table_arity[f] = arity;
        r->factor_table[f] = f;
        r->var_begin[f + 1] = slots;
        for (int64_t k = 0; k < size; k++) r->values[values++] = random_score(rng, forbid);
    }
    r->spec = (fgi_model_spec){.n_vars = n_vars,
        .cards = r->cards,
        .unary = r->unary,
        .n_tables = n_factors,
        .table_arity = r->table_arity,
        .dims = r->dims,
        .values = r->values,
        .n_values = values,
        .n_factors = n_factors,
        .factor_table = r->factor_table,
        .var_begin = r->var_begin,
        .vars = r->vars};
}

static double brute_force(const fgi_model *m, const random_model *r) {
    int32_t labels[MAX_VARS] = {0};
    double best = -INFINITY, score;
    for (;;) {
        fgi_model_score(m, labels, &score, NULL);
        if (score > best) best = score;
        int64_t k = r->spec.n_vars - 1;
        while (k >= 0 && ++labels[k] == r->cards[k]) labels[k--] = 0;
        if (k < 0) return best;
    }
}

typedef struct outcome {
    fgi_info info;
    int32_t labels[MAX_VARS];
} outcome;

static outcome solve(
    const fgi_model *m, int32_t threads, int32_t formulation, double seconds, int64_t iterations, fgi_solver **keep) {
    outcome o;
    memset(&o, 0, sizeof o);
    fgi_settings settings = fgi_settings_default();
    settings.method = FGI_GDMM;
    settings.threads = threads;
    settings.formulation = formulation;
    settings.gap = 1e-9;
    settings.max_iterations = iterations;
    fgi_solver *s = NULL;
    fgi_error err;
    if (fgi_solver_create(m, &settings, &s, &err)) {
        expect(0, err.message, 0);
        return o;
    }
    do {
        if (fgi_solver_run(s, seconds, -1, &o.info)) expect(0, "run failed", 0);
    } while (o.info.status == FGI_RUNNING);
    fgi_solver_labels(s, o.labels);
    if (keep) *keep = s;
    else fgi_solver_free(s);
    return o;
}

static int same(const outcome *a, const outcome *b) {
    return a->info.score == b->info.score && a->info.bound == b->info.bound &&
        a->info.iterations == b->info.iterations && memcmp(a->labels, b->labels, sizeof a->labels) == 0;
}

static void check(const outcome *o, double optimum, uint64_t seed) {
    expect(o->info.bound >= optimum - 1e-9, "bound below the optimum", seed);
    expect(o->info.score <= optimum + 1e-9, "score above the optimum", seed);
    expect(o->info.status != FGI_INFEASIBLE || optimum == -INFINITY, "feasible model called infeasible", seed);
}

static void test_small(uint64_t seed) {
    static random_model r;
    fgi_rng rng = {seed};
    const double forbid = (double)fgi_rng_below(&rng, 3) * 0.15;
    const int binary = fgi_rng_below(&rng, 3) == 0;
    generate(&r, &rng, 6, binary ? 2 : 5, binary ? 2 : 3, 9, forbid);
    fgi_model *m = NULL;
    if (fgi_model_create(&r.spec, &m, NULL)) {
        expect(0, "model refused", seed);
        return;
    }
    const double optimum = brute_force(m, &r);
    for (int32_t formulation = 0; formulation <= FGI_FORMULATION_BINARY; formulation++) {
        if (formulation == FGI_FORMULATION_BINARY && (!binary || forbid > 0)) continue;
        fgi_solver *s = NULL;
        outcome one = solve(m, 1, formulation, -1, 60, &s), sliced = solve(m, 1, formulation, 0, 60, NULL);
        check(&one, optimum, seed);
        expect(same(&one, &sliced), "slices change the result", seed);
        int64_t n = fgi_solver_message_size(s), labels = 0;
        for (int32_t i = 0; i < r.spec.n_vars; i++) labels += r.cards[i];
        double *x = malloc((size_t)labels * sizeof *x), *mu = malloc((size_t)(n > 0 ? n : 1) * sizeof *mu);
        expect(x && mu && fgi_solver_marginals(s, x), "no marginals", seed);
        if (n >= 0) {
            expect(fgi_solver_messages(s, mu) == FGI_OK && fgi_solver_warm_start(s, mu, NULL) == FGI_OK, "no messages",
                seed);
            expect(fgi_solver_update(s, m, NULL) == FGI_OK, "no update", seed);
            outcome again;
            memset(&again, 0, sizeof again);
            while (fgi_solver_run(s, 0.001, -1, &again.info) == FGI_OK && again.info.status == FGI_RUNNING) {}
            check(&again, optimum, seed);
        }
        free(x);
        free(mu);
        fgi_solver_free(s);
    }
    fgi_model_free(m);
}

static void test_threads(uint64_t seed) {
    enum { LONG = 140 }; /* iterations: by then sweeps are over, and searches go on beside factor passes */
    static random_model r;
    fgi_rng rng = {seed};
    generate(&r, &rng, MAX_VARS, 6, 3, MAX_FACTORS, 0.05);
    fgi_model *m = NULL;
    if (fgi_model_create(&r.spec, &m, NULL)) {
        expect(0, "model refused", seed);
        return;
    }
    for (int32_t formulation = 0; formulation <= FGI_FORMULATION_TABLES; formulation++) {
        outcome one = solve(m, 1, formulation, -1, LONG, NULL), two = solve(m, 2, formulation, -1, LONG, NULL);
        outcome four = solve(m, 4, formulation, 0.0001, LONG, NULL);
        expect(same(&one, &two) && same(&one, &four), "threads change the result", seed);
    }
    fgi_model_free(m);
}

int main(void) {
    for (uint64_t seed = 1; seed <= 60; seed++) test_small(seed);
    for (uint64_t seed = 1; seed <= 5; seed++) test_threads(seed);
    return failed();
}
