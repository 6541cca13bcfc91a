/* The message-passing solvers on small random models: no memory errors (run under sanitizers), the same bits with
 * portable and with SIMD kernels and in one slice or many, and never a bound below a score. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "check.h"
#include "base/kernels.h"
#include "base/util.h"

enum { N_VARS = 12, N_FACTORS = 26, MAX_CARD = 21, N_TABLES = 10 };
static double draw(fgi_rng *rng, int forbidden) {
    return fgi_rng_below(rng, 100) < forbidden ? -INFINITY : 4 * fgi_rng_unit(rng) - 2;
}

/* Variables in two groups of equal label counts, so that tables can be shared and transposed; one ternary table if
 * asked for. `few`: all variables have that many labels, but for the first, which has one more and implicit tables
 * only. */
static fgi_model *random_model(fgi_rng *rng, int forbidden, int ternary, int32_t few) {
    int32_t cards[N_VARS], kind[N_TABLES], arity[N_TABLES], dims[3 * N_TABLES], table[N_FACTORS], vars[3 * N_FACTORS];
    static double unary[N_VARS * MAX_CARD], values[N_TABLES * MAX_CARD * MAX_CARD * 2], params[2 * N_TABLES],
        weight[N_FACTORS];
    uint8_t transposed[N_FACTORS];
    int64_t var_begin[N_FACTORS + 1] = {0}, n_values = 0, n_dims = 0;
    const int32_t k0 = few ? few : 1 + (int32_t)fgi_rng_below(rng, MAX_CARD),
                  k1 = few ? few : 1 + (int32_t)fgi_rng_below(rng, MAX_CARD);
    for (int i = 0; i < N_VARS; i++) cards[i] = i % 2 ? k1 : k0;
    if (few) cards[0]++;
    for (int i = 0; i < N_VARS * MAX_CARD; i++) unary[i] = draw(rng, forbidden / 4);
    for (int t = 0; t < N_TABLES; t++) {
        kind[t] = t < 4 ? t : FGI_DENSE;
        arity[t] = 2;
        params[2 * t] = fgi_rng_unit(rng);
        params[2 * t + 1] = 0.5 + 3 * fgi_rng_unit(rng);
        if (kind[t] != FGI_DENSE) continue;
        int n = t == 4 && ternary ? 3 : 2;
        arity[t] = n;
        int64_t size = 1;
        for (int k = 0; k < n; k++) {
            dims[n_dims++] = k == 1 ? k1 : k == 0 ? k0 : 2;
            size *= dims[n_dims - 1];
        }
        for (int64_t k = 0; k < size; k++) values[n_values++] = draw(rng, forbidden);
    }
    if (ternary) cards[N_VARS - 1] = 2;
    int64_t at = 0;
    for (int f = 0; f < N_FACTORS; f++) {
        int i = (int)fgi_rng_below(rng, N_VARS - 2), j = (i + 1 + 2 * (int)fgi_rng_below(rng, 4)) % (N_VARS - 2);
        weight[f] = f % 3 ? 1 : 0.5 + fgi_rng_unit(rng);
        table[f] = (int32_t)fgi_rng_below(rng, N_TABLES);
        if (ternary && f == 0) table[f] = 4;
        if (few && (i == 0 || j == 0)) table[f] = 1 + f % 3;
        transposed[f] = 0;
        vars[at++] = i;
        vars[at++] = j;
        if (arity[table[f]] == 3) {
            vars[at - 2] = i % 2 ? j : i;
            vars[at - 1] = i % 2 ? i : j;
            vars[at++] = N_VARS - 1;
        } else if (kind[table[f]] == FGI_DENSE) {
            transposed[f] = (few ? f : i) % 2;
        }
        var_begin[f + 1] = at;
    }
    fgi_model_spec spec = {.n_vars = N_VARS,
        .cards = cards,
        .unary = unary,
        .constant = 0.5,
        .n_tables = N_TABLES,
        .table_kind = kind,
        .table_arity = arity,
        .dims = dims,
        .params = params,
        .values = values,
        .n_values = n_values,
        .n_factors = N_FACTORS,
        .factor_table = table,
        .factor_weight = weight,
        .factor_transposed = transposed,
        .var_begin = var_begin,
        .vars = vars};
    fgi_model *m = NULL;
    fgi_error err = {0};
    if (fgi_model_create(&spec, &m, &err)) {
        fprintf(stderr, "%s\n", err.message);
        return NULL;
    }
    return m;
}

typedef struct outcome {
    double score, bound;
    int32_t status;
    int64_t iterations;
    double checksum;
} outcome;

static outcome solve(const fgi_model *m, int32_t method, int32_t precision, int sliced) {
    fgi_settings settings = fgi_settings_default();
    settings.method = method;
    if (method == FGI_TRWS) settings.precision = precision; /* nobody else reads it */
    settings.gap = 0;
    settings.max_iterations = 25;
    fgi_solver *s = NULL;
    fgi_error err = {0};
    fgi_info info = {0};
    outcome o = {0};
    if (fgi_solver_create(m, &settings, &s, &err)) {
        CHECK_SAYING(0, "method %d: %s\n", method, err.message);
        return o;
    }
    do CHECK_SAYING(!fgi_solver_run(s, sliced ? 0 : -1, -1, &info), "run fails\n");
    while (info.status == FGI_RUNNING);
    int64_t n = fgi_solver_message_size(s);
    if (n > 0) {
        double *mu = malloc((size_t)n * sizeof *mu);
        CHECK_SAYING(mu && !fgi_solver_messages(s, mu), "no messages\n");
        for (int64_t k = 0; k < n; k++) {
            CHECK_SAYING(isfinite(mu[k]), "a message is not finite\n");
            o.checksum += mu[k] * (double)(k % 7 + 1);
        }
        CHECK_SAYING(!fgi_solver_warm_start(s, mu, &err), "warm start fails\n");
        free(mu);
    }
    o.score = info.score, o.bound = info.bound, o.status = info.status, o.iterations = info.iterations;
    CHECK_SAYING(
        info.score <= info.bound, "method %d: score %.17g above bound %.17g\n", method, info.score, info.bound);
    fgi_solver_free(s);
    return o;
}

static int same(outcome a, outcome b) {
    return !memcmp(&a.score, &b.score, sizeof a.score) && !memcmp(&a.bound, &b.bound, sizeof a.bound) &&
        a.status == b.status && a.iterations == b.iterations && !memcmp(&a.checksum, &b.checksum, sizeof a.checksum);
}

int main(void) {
    static const int32_t methods[] = {FGI_TRWS, FGI_BP, FGI_MPLP, FGI_AD3, FGI_PSDD};
    fgi_rng rng = {7};
    for (int round = 0; round < 52; round++) {
        const int few = round < 24 ? 0 : 2 + round % 7;
        fgi_model *m = random_model(&rng, round % 3 ? 0 : few ? 6 : 20, !few && round % 2, few);
        if (!m) return 1;
        for (size_t k = 0; k < (few ? 1 : sizeof methods / sizeof *methods);
             k++) /* few labels are special to the first, TRW-S */
            for (int32_t precision = 1; precision <= (methods[k] == FGI_TRWS ? 2 : 1); precision++) {
                outcome whole = solve(m, methods[k], precision, 0), sliced = solve(m, methods[k], precision, 1);
                fgi_kernels_force(&fgi_kernels_scalar);
                outcome scalar = solve(m, methods[k], precision, 0);
                fgi_kernels_force(NULL);
                CHECK_SAYING(same(whole, sliced), "round %d, method %d, precision %d: slices change the result\n",
                    round, methods[k], precision);
                CHECK_SAYING(same(whole, scalar), "round %d, method %d, precision %d: kernels change the result\n",
                    round, methods[k], precision);
            }
        fgi_model_free(m);
    }
    return failed();
}
