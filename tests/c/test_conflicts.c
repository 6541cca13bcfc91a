/* Clauses and linear constraints, and a cost that is lowered until nothing is left, against enumeration. */
#include <string.h>
#include "check.h"
#include "fginfer_rules.h"
#include "base/util.h"

enum { VARS = 8, MOST = 12 };

typedef struct linear {
    int32_t n, literals[VARS];
    int64_t weights[VARS], limit;
} linear;

static int is_true(uint32_t x, int32_t literal) { return (int)(x >> (literal >> 1) & 1) != (literal & 1); }

static int32_t draw_literals(fgi_rng *rng, int32_t *out, int32_t n) {
    uint32_t used = 0;
    int32_t kept = 0;
    for (int32_t k = 0; k < n; k++) {
        const int32_t literal = (int32_t)fgi_rng_below(rng, 2 * VARS);
        if (used >> (literal >> 1) & 1) continue;
        used |= 1u << (literal >> 1);
        out[kept++] = literal;
    }
    return kept;
}

static linear draw_linear(fgi_rng *rng) {
    linear a = {.limit = (int64_t)fgi_rng_below(rng, 12)};
    const int alike = (int)fgi_rng_below(rng, 2);
    a.n = draw_literals(rng, a.literals, VARS);
    for (int32_t k = 0; k < a.n; k++) a.weights[k] = alike ? 1 : 1 + (int64_t)fgi_rng_below(rng, 9);
    if (alike && fgi_rng_below(rng, 2)) a.limit = 1;
    return a;
}

static int64_t weighs(const linear *a, uint32_t x) {
    int64_t sum = 0;
    for (int32_t k = 0; k < a->n; k++) sum += is_true(x, a->literals[k]) ? a->weights[k] : 0;
    return sum;
}

/* The least cost of what all allow; -1: there is nothing. */
static int64_t least(
    const int64_t *begin, const int32_t *clause, int64_t n, const linear *all, int64_t m, const linear *cost) {
    int64_t best = -1;
    for (uint32_t x = 0; x < 1u << VARS; x++) {
        int ok = 1;
        for (int64_t k = 0; k < n && ok; k++) {
            int any = 0;
            for (int64_t l = begin[k]; l < begin[k + 1]; l++) any |= is_true(x, clause[l]);
            ok = any;
        }
        for (int64_t k = 0; k < m && ok; k++) ok = weighs(&all[k], x) <= all[k].limit;
        if (ok && (best < 0 || weighs(cost, x) < best)) best = weighs(cost, x);
    }
    return best;
}

/* Solutions one after the other, each cheaper than the last; returns the cost of the last, or -1. */
static int64_t descend(fgi_conflicts *c, fgi_rng *rng, const linear *cost) {
    int32_t number = -1;
    int64_t last = -1, done;
    uint8_t values[VARS];
    fgi_conflicts_state state;
    fgi_error err;
    for (;;) {
        CHECK(fgi_conflicts_run(c, 1 + (int64_t)fgi_rng_below(rng, 200), &state, values, &done, &err) == FGI_OK);
        if (state == FGI_CONFLICTS_NONE) return last;
        if (state == FGI_CONFLICTS_RUNNING) continue;
        uint32_t x = 0;
        for (int32_t v = 0; v < VARS; v++) x |= (uint32_t)values[v] << v;
        const int64_t now = weighs(cost, x);
        CHECK(last < 0 || now < last);
        last = now;
        if (number >= 0 && fgi_rng_below(rng, 2)) CHECK(fgi_conflicts_limit(c, number, now - 1, &err) == FGI_OK);
        else CHECK(fgi_conflicts_linear(c, cost->n, cost->literals, cost->weights, now - 1, &number, &err) == FGI_OK);
        if (fgi_rng_below(rng, 2)) CHECK(fgi_conflicts_prefer(c, values, NULL, &err) == FGI_OK);
    }
}

static void check_model(uint64_t seed) {
    fgi_rng rng = {seed};
    fgi_error err;
    fgi_conflicts *c = NULL;
    int64_t begin[MOST + 1] = {0};
    int32_t clause[3 * MOST];
    linear all[MOST];
    const int64_t n = fgi_rng_below(&rng, MOST), m = fgi_rng_below(&rng, 5);
    for (int64_t k = 0; k < n; k++)
        begin[k + 1] = begin[k] + draw_literals(&rng, clause + begin[k], 1 + (int32_t)fgi_rng_below(&rng, 3));
    const linear cost = draw_linear(&rng);
    CHECK(fgi_conflicts_create(VARS, &c, &err) == FGI_OK);
    CHECK(fgi_conflicts_add(c, n, begin, clause, &err) == FGI_OK);
    for (int64_t k = 0; k < m; k++) {
        int32_t number = -1;
        all[k] = draw_linear(&rng);
        CHECK(
            fgi_conflicts_linear(c, all[k].n, all[k].literals, all[k].weights, all[k].limit, &number, &err) == FGI_OK);
        CHECK(number == k);
    }
    CHECK(descend(c, &rng, &cost) == least(begin, clause, n, all, m, &cost));
    CHECK(fgi_conflicts_memory(c) > 0);
    fgi_conflicts_free(c);
}

/* More pigeons than holes, and as many: with many conflicts, so that clauses are forgotten, too. */
static void check_pigeons(int32_t pigeons, int32_t holes, fgi_conflicts_state expected) {
    fgi_conflicts *c = NULL;
    fgi_error err;
    int32_t own[16];
    const int64_t ones[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, begin[2] = {0, holes};
    uint8_t values[256];
    int64_t done;
    CHECK(fgi_conflicts_create(pigeons * holes, &c, &err) == FGI_OK);
    for (int32_t p = 0; p < pigeons; p++) {
        for (int32_t h = 0; h < holes; h++) own[h] = 2 * (p * holes + h);
        CHECK(fgi_conflicts_add(c, 1, begin, own, &err) == FGI_OK);
    }
    for (int32_t h = 0; h < holes; h++) {
        int32_t number = -1;
        for (int32_t p = 0; p < pigeons; p++) own[p] = 2 * (p * holes + h);
        CHECK(fgi_conflicts_linear(c, pigeons, own, ones, 1, &number, &err) == FGI_OK);
    }
    fgi_conflicts_state state = FGI_CONFLICTS_RUNNING;
    while (state == FGI_CONFLICTS_RUNNING) CHECK(fgi_conflicts_run(c, 100000, &state, values, &done, &err) == FGI_OK);
    CHECK(state == expected);
    fgi_conflicts_free(c);
}

static void check_refusals(void) {
    fgi_conflicts *c = NULL;
    fgi_error err;
    int32_t number = -1, twice[2] = {0, 1}, wrong = 2 * VARS, fine = 3;
    int64_t weights[2] = {1, 1}, none = 0, huge[2] = {(int64_t)1 << 62, 1}, begin[2] = {0, 2}, done;
    double activity[VARS] = {0};
    uint8_t values[VARS] = {0};
    fgi_conflicts_state state;
    CHECK(fgi_conflicts_create(-1, &c, &err) == FGI_BAD_ARGUMENT);
    CHECK(fgi_conflicts_create(VARS, &c, &err) == FGI_OK);
    CHECK(fgi_conflicts_add(c, 1, begin, twice, &err) == FGI_BAD_ARGUMENT);
    CHECK(fgi_conflicts_linear(c, 2, twice, weights, 1, &number, &err) == FGI_BAD_ARGUMENT);
    CHECK(fgi_conflicts_linear(c, 1, &wrong, weights, 1, &number, &err) == FGI_BAD_ARGUMENT);
    CHECK(fgi_conflicts_linear(c, 1, &fine, &none, 1, &number, &err) == FGI_BAD_ARGUMENT);
    twice[1] = 2;
    CHECK(fgi_conflicts_linear(c, 2, twice, huge, 1, &number, &err) == FGI_BAD_ARGUMENT);
    CHECK(fgi_conflicts_limit(c, 0, 1, &err) == FGI_BAD_ARGUMENT);
    CHECK(fgi_conflicts_linear(c, 1, &fine, weights, 1, &number, &err) == FGI_OK && number == 0);
    CHECK(fgi_conflicts_limit(c, 0, 2, &err) == FGI_BAD_ARGUMENT);
    CHECK(fgi_conflicts_prefer(c, values, activity, &err) == FGI_OK);
    CHECK(fgi_conflicts_run(c, 1000, &state, values, &done, &err) == FGI_OK && state == FGI_CONFLICTS_SATISFIED);
    CHECK(fgi_conflicts_prefer(c, values, activity, &err) == FGI_BAD_ARGUMENT);
    CHECK(fgi_conflicts_add(c, 1, begin, twice, &err) == FGI_BAD_ARGUMENT);
    CHECK(fgi_conflicts_limit(c, 0, -5, &err) == FGI_OK);
    CHECK(fgi_conflicts_run(c, 1000, &state, values, &done, &err) == FGI_OK && state == FGI_CONFLICTS_NONE);
    fgi_conflicts_free(c);
    fgi_conflicts_free(NULL);
}

int main(void) {
    for (uint64_t seed = 1; seed <= 2000; seed++) check_model(seed);
    check_pigeons(7, 7, FGI_CONFLICTS_SATISFIED);
    check_pigeons(7, 6, FGI_CONFLICTS_NONE);
    check_refusals();
    return failed();
}
