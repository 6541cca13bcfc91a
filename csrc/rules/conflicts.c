/* rules/conflicts.c - the search of base/sat.h for callers of the library: what they say is checked here. */
#include "base/sat.h"
#include "fginfer_rules.h"

struct fgi_conflicts {
    fgi_sat *sat;
    int32_t n;
    int32_t n_linears;
    int begun;
    uint8_t *seen; /* per variable: for a look at what is said twice */
};

static const int64_t MOST_WEIGHT = (int64_t)1 << 62; /* sum of the weights of a constraint: differences fit, too */

fgi_rc fgi_conflicts_create(int32_t n, fgi_conflicts **out, fgi_error *err) {
    *out = NULL;
    if (n < 0 || n > INT32_MAX / 4) return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "so many Booleans do not fit");
    fgi_conflicts *c = fgi_calloc(1, sizeof *c);
    if (!c) return fgi_no_memory(err);
    c->n = n;
    c->sat = fgi_sat_create(n);
    c->seen = fgi_calloc((int64_t)n + 1, sizeof *c->seen);
    if (!c->sat || !c->seen) {
        fgi_conflicts_free(c);
        return fgi_no_memory(err);
    }
    *out = c;
    return FGI_OK;
}

void fgi_conflicts_free(fgi_conflicts *c) {
    if (!c) return;
    fgi_sat_free(c->sat);
    free(c->seen);
    free(c);
}

/* Are these literals of variables that exist, each once? */
static int are_literals(fgi_conflicts *c, int64_t n, const int32_t *literals) {
    int64_t k = 0;
    for (; k < n; k++) {
        if (literals[k] < 0 || literals[k] >= 2 * c->n || c->seen[literals[k] >> 1]) break;
        c->seen[literals[k] >> 1] = 1;
    }
    for (int64_t j = 0; j < k; j++) c->seen[literals[j] >> 1] = 0;
    return k == n;
}

fgi_rc fgi_conflicts_add(fgi_conflicts *c, int64_t n, const int64_t *begin, const int32_t *literals, fgi_error *err) {
    if (c->begun) return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "clauses come before the first run");
    for (int64_t k = 0; k < n; k++) {
        const int64_t size = begin[k + 1] - begin[k];
        if (size < 0 || !are_literals(c, size, literals + begin[k]))
            return fgi_fail(err, FGI_BAD_ARGUMENT, k, "a clause has a literal that does not exist, or one twice");
        fgi_sat_add(c->sat, literals + begin[k], (int32_t)size);
    }
    return FGI_OK;
}

fgi_rc fgi_conflicts_linear(fgi_conflicts *c, int32_t n, const int32_t *literals, const int64_t *weights, int64_t limit,
    int32_t *number, fgi_error *err) {
    int64_t sum = 0;
    if (*number < -1 || *number >= c->n_linears)
        return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "there is no such linear constraint");
    if (n < 0 || !are_literals(c, n, literals))
        return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "a constraint has a literal that does not exist, or one twice");
    for (int32_t k = 0; k < n; k++) {
        if (weights[k] <= 0 || weights[k] > MOST_WEIGHT - sum)
            return fgi_fail(err, FGI_BAD_ARGUMENT, k, "a weight is not above 0, or the sum of weights is too large");
        sum += weights[k];
    }
    if (limit < -MOST_WEIGHT) limit = -MOST_WEIGHT;
    if (limit > MOST_WEIGHT) limit = MOST_WEIGHT;
    fgi_sat_go_back(c->sat);
    if (*number >= 0) {
        if (!fgi_sat_set_linear(c->sat, *number, literals, weights, n, limit)) return fgi_no_memory(err);
        return FGI_OK;
    }
    *number = fgi_sat_add_linear(c->sat, literals, weights, n, limit);
    if (*number < 0) return fgi_no_memory(err);
    c->n_linears = *number + 1;
    return FGI_OK;
}

fgi_rc fgi_conflicts_limit(fgi_conflicts *c, int32_t number, int64_t limit, fgi_error *err) {
    if (number < 0 || number >= c->n_linears)
        return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "there is no such linear constraint");
    fgi_sat_go_back(c->sat);
    if (!fgi_sat_limit(c->sat, number, limit < -MOST_WEIGHT ? -MOST_WEIGHT : limit))
        return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "a limit may only become lower");
    return FGI_OK;
}

fgi_rc fgi_conflicts_prefer(fgi_conflicts *c, const uint8_t *values, const double *activity, fgi_error *err) {
    if (activity && c->begun) return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "activities come before the first run");
    for (int32_t v = 0; v < c->n; v++) {
        if (activity) fgi_sat_prefer(c->sat, v, values[v], activity[v]);
        else fgi_sat_set_phase(c->sat, v, values[v]);
    }
    return FGI_OK;
}

fgi_rc fgi_conflicts_run(
    fgi_conflicts *c, int64_t work, fgi_conflicts_state *state, uint8_t *values, int64_t *done, fgi_error *err) {
    c->begun = 1;
    const fgi_sat_state said = fgi_sat_step(c->sat, work);
    *done = fgi_sat_operations(c->sat);
    if (said == FGI_SAT_NO_MEMORY) return fgi_no_memory(err);
    *state = said == FGI_SAT_SATISFIED  ? FGI_CONFLICTS_SATISFIED
        : said == FGI_SAT_CONTRADICTION ? FGI_CONFLICTS_NONE
                                        : FGI_CONFLICTS_RUNNING;
    for (int32_t v = 0; v < c->n && said == FGI_SAT_SATISFIED; v++) values[v] = (uint8_t)fgi_sat_value(c->sat, v);
    return FGI_OK;
}

int64_t fgi_conflicts_memory(const fgi_conflicts *c) { return fgi_sat_memory(c->sat) + c->n; }
