/* exact/refute.c - clauses asked about under assumptions: the handle of base/sat.h. See fginfer_exact.h. */
#include <string.h>
#include "base/sat.h"
#include "fginfer_exact.h"

enum { STEP_OPERATIONS = 1 << 18 }; /* literals read between two looks at the clock */

struct fgi_clauses {
    fgi_sat *sat;
    int32_t n_vars, n_asked;
    int32_t *asked;
    fgi_sat_state state;
};

void fgi_clauses_free(fgi_clauses *c) {
    if (!c) return;
    fgi_sat_free(c->sat);
    free(c->asked);
    free(c);
}

static int is_literal(const fgi_clauses *c, int32_t literal) { return literal >= 0 && literal / 2 < c->n_vars; }

fgi_rc fgi_clauses_create(int32_t n_vars, int64_t n_clauses, const int64_t *begin, const int32_t *literals,
    fgi_clauses **out, fgi_error *err) {
    if (n_vars < 0 || n_vars > INT32_MAX / 2 - 1) return fgi_fail(err, FGI_BAD_ARGUMENT, n_vars, "too many variables");
    fgi_clauses *c = fgi_calloc(1, sizeof *c);
    if (!c) return fgi_no_memory(err);
    c->n_vars = n_vars;
    c->asked = fgi_alloc(n_vars, sizeof(int32_t));
    c->sat = fgi_sat_create(n_vars);
    if (!c->asked || !c->sat) {
        fgi_clauses_free(c);
        return fgi_no_memory(err);
    }
    for (int64_t k = 0; k < n_clauses; k++) {
        for (int64_t l = begin[k]; l < begin[k + 1]; l++)
            if (!is_literal(c, literals[l])) {
                fgi_clauses_free(c);
                return fgi_fail(err, FGI_BAD_ARGUMENT, k, "clause %lld has a literal that is none", (long long)k);
            }
        fgi_sat_add(c->sat, literals + begin[k], (int32_t)(begin[k + 1] - begin[k]));
    }
    *out = c;
    return FGI_OK;
}

fgi_rc fgi_clauses_ask(fgi_clauses *c, const int32_t *literals, int32_t n, fgi_error *err) {
    if (n < 0 || n > c->n_vars) return fgi_fail(err, FGI_BAD_ARGUMENT, n, "more literals than variables");
    for (int32_t k = 0; k < n; k++)
        if (!is_literal(c, literals[k])) return fgi_fail(err, FGI_BAD_ARGUMENT, k, "literal %d is none", literals[k]);
    if (n) memcpy(c->asked, literals, (size_t)n * sizeof(int32_t));
    c->n_asked = n;
    fgi_sat_assume(c->sat, c->asked, n);
    c->state = FGI_SAT_RUNNING;
    return FGI_OK;
}

fgi_rc fgi_clauses_run(fgi_clauses *c, double seconds, int32_t *status, fgi_error *err) {
    const double deadline = seconds < 0 ? INFINITY : fgi_clock() + seconds;
    while (c->state == FGI_SAT_RUNNING) {
        c->state = fgi_sat_step(c->sat, STEP_OPERATIONS);
        if (deadline < INFINITY && fgi_clock() >= deadline) break;
    }
    if (c->state == FGI_SAT_NO_MEMORY) return fgi_no_memory(err);
    *status = c->state == FGI_SAT_RUNNING ? FGI_RUNNING : c->state == FGI_SAT_SATISFIED ? FGI_OPTIMAL : FGI_INFEASIBLE;
    return FGI_OK;
}

int64_t fgi_clauses_core(const fgi_clauses *c, int32_t *out) {
    const int32_t *core;
    if (c->state != FGI_SAT_REFUTED) return 0;
    const int32_t n = fgi_sat_core(c->sat, &core);
    memcpy(out, core, (size_t)n * sizeof(int32_t));
    return n;
}

void fgi_clauses_values(const fgi_clauses *c, uint8_t *out) {
    for (int32_t v = 0; v < c->n_vars; v++) out[v] = (uint8_t)fgi_sat_value(c->sat, v);
}
