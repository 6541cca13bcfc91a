/* The search solver on random models, in short slices: no leak, no undefined step, the optimum of small models,
 * guidance. */
#include "random_model.h"
#include "primal/search.h"

static double optimum(const fgi_model *m) {
    int32_t labels[MAX_VARS] = {0};
    double best = -INFINITY;
    for (;;) {
        int64_t violations;
        double x = plain_sum(m, labels, &violations);
        if (!violations && x > best) best = x;
        int64_t i = 0;
        while (i < m->s->n_vars && ++labels[i] == m->s->cards[i]) labels[i++] = 0;
        if (i == m->s->n_vars) return best;
    }
}

static int one(fgi_rng *rng, int round) {
    const int n = 1 + (int)fgi_rng_below(rng, 8);
    fgi_model *m = random_model(rng, n, n > 1 ? (int)fgi_rng_below(rng, 14) : 0, round % 3 * 15, 0);
    fgi_settings settings = fgi_settings_default();
    settings.method = FGI_SEARCH;
    settings.seed = (uint64_t)round;
    settings.gap = 0;
    settings.max_iterations = 150;
    fgi_solver *s = NULL;
    fgi_info info;
    fgi_error err;
    REQUIRE(m && fgi_solver_create(m, &settings, &s, &err) == FGI_OK);
    do REQUIRE(fgi_solver_run(s, 1e-6, -1, &info) == FGI_OK);
    while (info.status == FGI_RUNNING);
    const double best = optimum(m);
    REQUIRE(best == -INFINITY ? info.score == best : fabs(info.score - best) < 1e-9);
    REQUIRE(info.status == FGI_ITERATION_LIMIT || best == -INFINITY || info.bound - info.score < 1e-9);
    fgi_solver_free(s);
    fgi_model_free(m);
    return 0;
}

int main(void) {
    fgi_rng rng = {3};
    for (int round = 0; round < 120; round++)
        if (one(&rng, round)) {
            fprintf(stderr, "round %d\n", round);
            return 1;
        }
    return 0;
}
