/* Constraints against a scan of their states, the search for large sums above all; every allocation of each question
 * fails in turn; what is wrong with a rule is said. Meant to be run under the sanitizers. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "scarce.h"
#include "rules/rule.h"

enum { N = 6, MOST = 4, ROUNDS = 400, EVERY = 60 };

static const int32_t CARDS[N] = {2, 3, 1, 4, 2, 3};
enum { LABELS = 15 };

static fgi_rule *sum_of(fgi_rng *rng, int64_t unit, int64_t modulus, int64_t most) {
    int64_t adds[LABELS];
    for (int a = 0; a < LABELS; a++) adds[a] = unit * fgi_rng_below(rng, most + 1);
    const fgi_piece pieces[] = {{0, fgi_rng_below(rng, 3) ? 0.5 : -INFINITY, 0, 0}, {1 + 2 * unit, -1, 0.125, 3},
        {1 + 5 * unit, fgi_rng_below(rng, 2) ? -INFINITY : 0.25, 0, 0}};
    fgi_rule *r = NULL;
    return fgi_rule_sum(N, CARDS, adds, 3, pieces, modulus, &r, NULL) ? NULL : r;
}

static fgi_rule *occurrences_of(fgi_rng *rng, double price) {
    int64_t low[5], high[5];
    for (int l = 0; l < 5; l++) {
        low[l] = fgi_rng_below(rng, 3) - 1;
        high[l] = low[l] + fgi_rng_below(rng, 4);
    }
    fgi_rule *r = NULL;
    return fgi_rule_occurrences(N, CARDS, 5, low, high, price, &r, NULL) ? NULL : r;
}

static fgi_rule *automaton_of(fgi_rng *rng) {
    fgi_arc arcs[40];
    double end[40];
    const int32_t given[] = {-1, 2, -1, -1, -1, 7, -1, -1};
    for (int k = 0; k < 40; k++) {
        arcs[k] = (fgi_arc){(int32_t)fgi_rng_below(rng, 3), (int32_t)fgi_rng_below(rng, 4),
            k % 5 ? (int32_t)fgi_rng_below(rng, 3) : 39, (double)fgi_rng_below(rng, 9) / 4 - 1};
        end[k] = fgi_rng_below(rng, 4) ? 0.5 : -INFINITY;
    }
    for (int k = 0; k < 4; k++) arcs[k] = (fgi_arc){k % 3, 7, (k + 1) % 3, 0};
    fgi_rule *r = NULL;
    return fgi_rule_automaton(N, CARDS, 40, 40, arcs, end, 8, given, &r, NULL) ? NULL : r;
}

static fgi_rule *sparse_of(fgi_rng *rng) {
    int32_t states[20 * N];
    double scores[20];
    const int64_t first = fgi_rng_below(rng, 100);
    int64_t n = fgi_rng_below(rng, 20);
    for (int64_t j = 0; j < n; j++) { /* distinct, and in no order */
        int64_t state = (first + 37 * j) % 144;
        for (int32_t k = N - 1; k >= 0; k--) {
            states[j * N + k] = (int32_t)(state % CARDS[k]);
            state /= CARDS[k];
        }
        scores[j] = fgi_rng_below(rng, 4) ? (double)fgi_rng_below(rng, 9) / 4 : -INFINITY;
    }
    fgi_rule *r = NULL;
    const double otherwise = fgi_rng_below(rng, 2) ? 0.75 : -INFINITY;
    return fgi_rule_sparse(N, CARDS, n, states, scores, otherwise, &r, NULL) ? NULL : r;
}

static fgi_rule *rule_of(fgi_rng *rng, int kind) {
    switch (kind) {
    case 0: return sum_of(rng, 1, 0, 1);
    case 1: return sum_of(rng, 1, 0, 5);
    case 2: return sum_of(rng, 1, 2, 1);
    case 3: return sum_of(rng, 1, 3, 4);
    case 4: return sum_of(rng, 10000019, 0, 5);
    case 5: return occurrences_of(rng, INFINITY);
    case 6: return occurrences_of(rng, 0.75);
    case 7: return automaton_of(rng);
    default: return sparse_of(rng);
    }
}

static void draw_gains(fgi_rng *rng, double *gains) {
    for (int a = 0; a < LABELS; a++)
        gains[a] = fgi_rng_below(rng, 9) ? (double)fgi_rng_below(rng, 17) / 4 - 2 : -INFINITY;
}

/* The best value, the lowest state that has it, and max-marginals, by looking at every state. */
static double scan(const fgi_rule *r, const double *gains, int32_t *best, double *marginals) {
    double top = -INFINITY;
    int32_t x[N];
    for (int a = 0; a < LABELS; a++) marginals[a] = -INFINITY;
    for (int64_t s = 0; s < r->states; s++) {
        fgi_rule_labels(r, s, x);
        double value = fgi_rule_score(r, x);
        for (int k = 0; k < N; k++) {
            double others = fgi_rule_score(r, x);
            for (int q = 0; q < N; q++) others += q == k ? 0 : gains[r->begin[q] + x[q]];
            if (others > marginals[r->begin[k] + x[k]]) marginals[r->begin[k] + x[k]] = others;
            value += gains[r->begin[k] + x[k]];
        }
        if (value > top) {
            top = value;
            memcpy(best, x, sizeof x);
        }
    }
    return top;
}

static double value_of(const fgi_rule *r, const double *gains, const int32_t *x) {
    double value = fgi_rule_score(r, x);
    for (int k = 0; k < N; k++) value += gains[r->begin[k] + x[k]];
    return value;
}

static void test_against_a_scan(int kind) {
    fgi_rng rng = {(uint64_t)kind + 1};
    for (int round = 0; round < ROUNDS; round++) {
        fgi_rule *r = rule_of(&rng, kind);
        double gains[LABELS], marginals[LABELS], expected[LABELS], above;
        int32_t x[N], best[N];
        int found;
        int64_t work = 0;
        draw_gains(&rng, gains);
        CHECK(r != NULL);
        if (!r) return;
        const double top = scan(r, gains, best, expected);
        CHECK(fgi_rule_best(r, gains, x, &found, &above, &work) == FGI_OK);
        CHECK_SAYING(found == (top > -INFINITY) && (!found || work > 0), "kind %d: found %d of %g\n", kind, found, top);
        CHECK(!found || fabs(value_of(r, gains, x) - top) <= 1e-9);
        CHECK(!found || kind == 4 || memcmp(x, best, sizeof x) == 0);
        if (kind != 4) CHECK(fgi_rule_marginals(r, gains, marginals, &work) == FGI_OK);
        for (int a = 0; kind != 4 && a < LABELS; a++)
            CHECK(marginals[a] == expected[a] || fabs(marginals[a] - expected[a]) <= 1e-9);
        fgi_rule_free(r);
    }
}

/* The search for large sums on small ones, where dynamic programming would do. */
static void test_the_core(void) {
    fgi_rng rng = {99};
    for (int round = 0; round < 4 * ROUNDS; round++) {
        fgi_rule *r = sum_of(&rng, 1, 0, 1 + fgi_rng_below(&rng, 7));
        double gains[LABELS], expected[LABELS];
        int32_t x[N], best[N];
        int found = 0;
        fgi_rule_room room = {0};
        draw_gains(&rng, gains);
        for (int k = 0; k < N; k++) gains[r->begin[k]] = 0; /* no variable without a label */
        const double top = scan(r, gains, best, expected);
        CHECK(fgi_core_best((const fgi_sum_rule *)r, gains, &room, x, &found) == FGI_OK);
        CHECK(found == (top > -INFINITY) && room.above == 0);
        CHECK(!found || fabs(value_of(r, gains, x) - top) <= 1e-9);
        fgi_arena_free(&room.arena);
        fgi_rule_free(r);
    }
}

/* A knapsack whose gains are nearly its weights is hard to solve to the end: what is left open is said. */
static void test_a_hard_knapsack(void) {
    enum { ITEMS = 400 };
    static int32_t cards[ITEMS], labels[ITEMS];
    static int64_t adds[2 * ITEMS];
    static double gains[2 * ITEMS];
    fgi_rng rng = {5};
    int64_t total = 0, weight = 0, work = 0;
    for (int k = 0; k < ITEMS; k++) {
        cards[k] = 2;
        adds[2 * k] = 0;
        adds[2 * k + 1] = 1000000 + fgi_rng_below(&rng, 1000000000);
        gains[2 * k] = 0;
        gains[2 * k + 1] = (double)adds[2 * k + 1] + 1e8;
        total += adds[2 * k + 1];
    }
    const fgi_piece pieces[] = {{0, 0, 0, 0}, {total / 2 + 1, -INFINITY, 0, 0}};
    fgi_rule *r = NULL;
    double above = 0, gain = 0;
    int found = 0;
    CHECK(fgi_rule_sum(ITEMS, cards, adds, 2, pieces, 0, &r, NULL) == FGI_OK);
    CHECK(fgi_rule_best(r, gains, labels, &found, &above, &work) == FGI_OK && found);
    for (int k = 0; k < ITEMS; k++) {
        weight += adds[2 * k + labels[k]];
        gain += gains[2 * k + labels[k]];
    }
    CHECK(weight <= total / 2 && fgi_rule_score(r, labels) == 0);
    CHECK(above >= 0 && above <= 5e-3 * gain);
    fgi_rule_free(r);
}

static fgi_rc job(void *given) {
    const int kind = *(const int *)given;
    fgi_rng rng = {(uint64_t)kind + 40};
    fgi_rule *r = rule_of(&rng, kind);
    if (!r) return FGI_NO_MEMORY;
    double gains[LABELS], out[LABELS], above;
    int32_t x[N] = {0}, v = 1, to = 1;
    uint8_t allowed[LABELS], why[N];
    int found;
    int64_t work = 0, removed = 0;
    fgi_tally *t = NULL;
    for (int a = 0; a < LABELS; a++) gains[a] = a % 3;
    memset(allowed, 1, sizeof allowed);
    fgi_rc rc = fgi_rule_best(r, gains, x, &found, &above, &work);
    if (!rc) rc = fgi_rule_marginals(r, gains, out, &work);
    if (rc == FGI_UNSUPPORTED) rc = FGI_OK;
    if (!rc) rc = fgi_rule_propagate(r, allowed, &removed);
    memset(allowed, 1, sizeof allowed);
    if (!rc) rc = fgi_rule_reason(r, allowed, 1, 1, why, NULL);
    if (rc == FGI_BAD_ARGUMENT) rc = FGI_OK;
    memset(x, 0, sizeof x);
    if (!rc) rc = fgi_tally_create(r, x, &t, NULL);
    if (!rc && kind != 7) { /* an automaton of many states says that it had no memory by a score that is none */
        const double after = fgi_tally_after(t, 1, &v, &to);
        fgi_tally_move(t, 1, &v, &to);
        CHECK(after == fgi_tally_score(t));
    }
    fgi_tally_free(t);
    fgi_rule_free(r);
    return rc;
}

static void test_what_is_refused(void) {
    fgi_rule *r = NULL;
    const int64_t adds[] = {0, -1, 0, 1}, low[] = {2, 0}, high[] = {1, 1};
    const int32_t cards[] = {2, 2}, none[] = {0, 2}, states[] = {0, 1, 0, 1}, given[] = {-1, 0};
    const fgi_piece piece = {0, 0, 0, 0}, late = {1, 0, 0, 0}, bad = {0, NAN, 0, 0};
    const fgi_arc arc = {0, 0, 5, 0};
    const double scores[] = {0, 0}, end[] = {0};
    CHECK(fgi_rule_sum(2, cards, adds, 1, &piece, 0, &r, NULL) == FGI_BAD_ARGUMENT);
    CHECK(fgi_rule_sum(2, none, adds, 1, &piece, 0, &r, NULL) == FGI_BAD_ARGUMENT);
    CHECK(fgi_rule_sum(0, cards, adds, 1, &piece, 0, &r, NULL) == FGI_BAD_ARGUMENT);
    CHECK(fgi_rule_sum(2, cards, adds, 1, &late, 0, &r, NULL) == FGI_BAD_ARGUMENT);
    CHECK(fgi_rule_sum(2, cards, adds, 1, &bad, 0, &r, NULL) == FGI_BAD_ARGUMENT);
    CHECK(fgi_rule_occurrences(2, cards, 2, low, high, 1, &r, NULL) == FGI_BAD_ARGUMENT);
    CHECK(fgi_rule_occurrences(2, cards, 1, adds, high, 1, &r, NULL) == FGI_BAD_ARGUMENT);
    CHECK(fgi_rule_occurrences(2, cards, 2, adds, high, NAN, &r, NULL) == FGI_BAD_ARGUMENT);
    CHECK(fgi_rule_automaton(2, cards, 1, 1, &arc, end, 2, given, &r, NULL) == FGI_BAD_ARGUMENT);
    CHECK(fgi_rule_automaton(2, cards, 1, 0, &arc, end, 1, given, &r, NULL) == FGI_BAD_ARGUMENT);
    CHECK(fgi_rule_sparse(2, cards, 2, states, scores, 0, &r, NULL) == FGI_BAD_ARGUMENT);
    CHECK(fgi_rule_sparse(2, cards, 1, none, scores, 0, &r, NULL) == FGI_BAD_ARGUMENT);
    CHECK(r == NULL);
}

int main(void) {
    for (int kind = 0; kind < 9; kind++) test_against_a_scan(kind);
    test_the_core();
    test_a_hard_knapsack();
    for (int kind = 0; kind < 9; kind++) scarce_try("a rule", job, &kind, EVERY);
    test_what_is_refused();
    return failed();
}
