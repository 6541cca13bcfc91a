/* The optimisers on a separable quadratic, whose answer is known; states are saved and read again on the way. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "check.h"
#include "fginfer_optimise.h"

enum { N = 200 };

static double curvature(int j) { return 1 + j % 7; }
static double centre(int j) { return (j * 37 % 101) / 25.0 - 2; }

static double value(const double *w) {
    double sum = 0;
    for (int j = 0; j < N; j++) sum += 0.5 * curvature(j) * (w[j] - centre(j)) * (w[j] - centre(j));
    return sum;
}

static int run(int method) {
    fgi_optimise_settings s = {method, 5, 10, 1, 0, 1.5, 0.25, 1e-9, 10, 7, 0};
    fgi_optimiser *o, *next;
    fgi_error err;
    fgi_request q;
    REQUIRE(fgi_optimiser_create(N, &s, NULL, &o, &err) == FGI_OK);
    for (int asked = 0; fgi_optimiser_ask(o, &q), q.ask != FGI_ASK_NOTHING; asked++) {
        REQUIRE(asked < 5000);
        if (asked % 3 == 0) { /* through a saved state */
            int64_t n, m;
            fgi_optimiser_export_size(o, &n, &m);
            double *reals = malloc((size_t)n * sizeof *reals);
            int64_t *ints = malloc((size_t)m * sizeof *ints);
            REQUIRE(reals && ints);
            fgi_optimiser_export(o, reals, ints);
            REQUIRE(fgi_optimiser_create(N, &s, NULL, &next, &err) == FGI_OK);
            REQUIRE(fgi_optimiser_import(next, reals, n - 1, ints, m, &err) == FGI_BAD_MODEL);
            REQUIRE(fgi_optimiser_import(next, reals, n, ints, m, &err) == FGI_OK);
            free(reals), free(ints);
            fgi_optimiser_free(o);
            o = next;
            fgi_optimiser_ask(o, &q);
        }
        for (int64_t k = 0; q.ask == FGI_ASK_GRADIENT && k < q.n; k++) {
            const int j = (int)(q.set ? q.set[k] : k);
            q.gradient[k] = curvature(j) * (q.w[j] - centre(j));
        }
        REQUIRE(fgi_optimiser_answer(o, q.ask == FGI_ASK_VALUE ? value(q.w) : 0, &err) == FGI_OK);
    }
    fgi_optimise_info info;
    fgi_optimiser_get_info(o, &info);
    REQUIRE(info.status == FGI_OPTIMAL);
    double w[N];
    fgi_optimiser_weights(o, w);
    for (int j = 0; j < N; j++) {
        const double pull = curvature(j) * centre(j);
        const double best = fabs(pull) <= 1.5 ? 0 : (pull - copysign(1.5, pull)) / (curvature(j) + 0.25);
        REQUIRE(fabs(w[j] - best) < 1e-6);
    }
    REQUIRE(fgi_optimiser_answer(o, 0, &err) == FGI_BAD_ARGUMENT);
    fgi_optimiser_free(o);
    return 0;
}

int main(void) {
    for (int method = FGI_PROXQN; method <= FGI_BCD; method++)
        if (run(method)) return 1;
    fgi_optimiser_free(NULL);
    return 0;
}
