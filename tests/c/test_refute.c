/* Clauses under assumptions against enumeration; run under the sanitizers. */
#include <string.h>
#include "check.h"
#include "fginfer_exact.h"
#include "base/util.h"

enum { VARS = 8, CLAUSES = 40 };

static int is_true(uint32_t x, int32_t literal) { return (int)(x >> (literal >> 1) & 1) != (literal & 1); }

/* Whether some assignment satisfies all clauses and has all of the literals. */
static int possible(
    const int64_t *begin, const int32_t *clause, int64_t n_clauses, const int32_t *given, int64_t n_given) {
    for (uint32_t x = 0; x < 1u << VARS; x++) {
        int ok = 1;
        for (int64_t k = 0; k < n_given; k++) ok &= is_true(x, given[k]);
        for (int64_t k = 0; k < n_clauses && ok; k++) {
            int any = 0;
            for (int64_t l = begin[k]; l < begin[k + 1]; l++) any |= is_true(x, clause[l]);
            ok = any;
        }
        if (ok) return 1;
    }
    return 0;
}

static int64_t draw_literals(fgi_rng *rng, int32_t *out, int64_t most) {
    uint32_t used = 0;
    int64_t n = 0;
    for (int64_t k = 0; k < most; k++) {
        const int32_t literal = (int32_t)fgi_rng_below(rng, 2 * VARS);
        if (used >> (literal >> 1) & 1) continue;
        used |= 1u << (literal >> 1);
        out[n++] = literal;
    }
    return n;
}

static void check_answers(fgi_clauses *c, fgi_rng *rng, const int64_t *begin, const int32_t *clause, int64_t n) {
    int32_t given[VARS], core[VARS], status;
    uint8_t values[VARS];
    fgi_error err;
    for (int question = 0; question < 12; question++) {
        const int64_t n_given = draw_literals(rng, given, question % 7);
        CHECK(fgi_clauses_ask(c, given, (int32_t)n_given, &err) == FGI_OK);
        do CHECK(fgi_clauses_run(c, 0, &status, &err) == FGI_OK);
        while (status == FGI_RUNNING);
        CHECK((status == FGI_OPTIMAL) == possible(begin, clause, n, given, n_given));
        if (status == FGI_OPTIMAL) {
            fgi_clauses_values(c, values);
            for (int64_t k = 0; k < n_given; k++) CHECK(values[given[k] >> 1] == !(given[k] & 1));
            continue;
        }
        const int64_t n_core = fgi_clauses_core(c, core);
        CHECK(n_core <= n_given && !possible(begin, clause, n, core, n_core));
        for (int64_t k = 0; k < n_core; k++) {
            int known = 0;
            for (int64_t l = 0; l < n_given; l++) known |= core[k] == given[l];
            CHECK(known);
        }
    }
}

int main(void) {
    fgi_error err;
    fgi_clauses *c = NULL;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        fgi_rng rng = {seed};
        int64_t begin[CLAUSES + 1] = {0};
        int32_t clause[4 * CLAUSES];
        const int64_t n = fgi_rng_below(&rng, CLAUSES);
        for (int64_t k = 0; k < n; k++)
            begin[k + 1] = begin[k] + draw_literals(&rng, clause + begin[k], 1 + fgi_rng_below(&rng, 4));
        CHECK(fgi_clauses_create(VARS, n, begin, clause, &c, &err) == FGI_OK);
        check_answers(c, &rng, begin, clause, n);
        fgi_clauses_free(c);
    }
    const int64_t begin[2] = {0, 1};
    const int32_t wrong = 2 * VARS;
    CHECK(fgi_clauses_create(VARS, 1, begin, &wrong, &c, &err) == FGI_BAD_ARGUMENT);
    CHECK(fgi_clauses_create(VARS, 0, begin, NULL, &c, &err) == FGI_OK);
    CHECK(fgi_clauses_ask(c, &wrong, 1, &err) == FGI_BAD_ARGUMENT);
    fgi_clauses_free(c);
    return failed();
}
