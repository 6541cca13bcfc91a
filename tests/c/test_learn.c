/* Learning core under the sanitizers: small random problems of every kind through every method, exported and imported
 * again. */
#include <stdio.h>
#include <string.h>
#include "check.h"
#include "learn_problem.h"

static int run_block(problem *p, int method, int threads) {
    fgi_learner *L, *M;
    fgi_error err;
    int32_t order[N];
    for (int i = 0; i < N; i++) order[i] = (int32_t)i;
    REQUIRE(fgi_learn_create(&p->data, threads, &L, &err) == FGI_OK);
    fgi_learn_settings s = {
        .method = method, .averaging = 1, .max_answers = 3, .batch = threads > 1 ? 5 : 1, .C = 0.5, .threshold = 1e-3};
    for (int pass = 0; pass < 6; pass++) {
        int64_t next = 0;
        REQUIRE(fgi_learn_pass(L, &s, order, N, &next, INFINITY, &err) == FGI_OK && next == N);
        next = 0;
        REQUIRE(fgi_learn_cached_pass(L, &s, order, N, &next, INFINITY, &err) == FGI_OK && next == N);
        fgi_learn_refresh(L, 0.5);
    }
    int64_t n, m;
    fgi_learn_export_size(L, &n, &m);
    int32_t *example = fgi_alloc(n, 4), *length = fgi_alloc(n, 4), *labels = fgi_alloc(m, 4);
    double *alpha = fgi_alloc(n, 8), *loss = fgi_alloc(n, 8), gaps[N], parts[N];
    fgi_learn_export(L, example, length, alpha, loss, labels, gaps, parts);
    REQUIRE(fgi_learn_create(&p->data, 1, &M, &err) == FGI_OK);
    REQUIRE(fgi_learn_import(M, n, example, length, alpha, loss, labels, gaps, parts, &err) == FGI_OK);
    fgi_learn_refresh(M, 0.5);
    fgi_learn_state a, b;
    fgi_learn_get_state(L, &a);
    fgi_learn_get_state(M, &b);
    REQUIRE(a.dual_loss == b.dual_loss && a.working_set == b.working_set);
    free(example), free(length), free(labels), free(alpha), free(loss);
    fgi_learn_free(L);
    fgi_learn_free(M);
    return 0;
}

/* A fresh gdmm in the state of *g, which may be in the middle of a block; *g is freed. */
static int hand_over(fgi_learner *L, const fgi_learn_gdmm_settings *s, int64_t tokens, fgi_learn_gdmm **g) {
    fgi_learn_gdmm *fresh;
    fgi_learn_gdmm_info info;
    fgi_error err;
    int64_t sizes[4], width, blocks = (N + s->away - 1) / s->away, vertices = 0, labels = 0, place[4];
    double values[5];
    uint64_t rng;
    fgi_learn_gdmm_export_size(*g, sizes);
    fgi_learn_gdmm_get_info(*g, &info);
    int32_t *support = fgi_calloc(tokens, 4), *label = fgi_calloc(sizes[0], 4), *state_size = fgi_calloc(tokens, 4);
    int32_t *states = fgi_calloc(2 * sizes[2], 4), *counts = fgi_calloc(blocks, 4);
    double *value = fgi_calloc(sizes[1], 8), *betas = fgi_calloc(sizes[2], 8), *losses = fgi_calloc(sizes[3], 8);
    fgi_learn_gdmm_export(*g, support, label, value, state_size, states, betas, losses, &rng);
    for (int64_t b = 0; b < blocks; b++) {
        vertices += counts[b] = (int32_t)fgi_learn_gdmm_away_size(*g, b, &width);
        labels += counts[b] * width;
    }
    const int64_t n = fgi_learn_gdmm_step_size(*g, &width),
                  work[5] = {
                      info.unary_calls, info.pair_calls, info.unary_touched, info.pair_touched, info.unary_products};
    int32_t *vertex = fgi_calloc(labels, 4), *greedy = fgi_calloc(width, 4);
    double *weights = fgi_calloc(vertices, 8), *slopes = fgi_calloc(n, 8);
    fgi_learn_gdmm_export_away(*g, weights, vertex);
    fgi_learn_gdmm_export_step(*g, place, values, slopes, greedy);
    fgi_learn_gdmm_free(*g);
    REQUIRE(fgi_learn_gdmm_create(L, s, &fresh, &err) == FGI_OK);
    *g = fresh;
    REQUIRE(fgi_learn_gdmm_import(fresh, support, label, value, state_size, states, betas, losses, rng, work, &err) ==
        FGI_OK);
    REQUIRE(fgi_learn_gdmm_import_away(fresh, counts, weights, vertex, &err) == FGI_OK);
    REQUIRE(fgi_learn_gdmm_import_step(fresh, place, values, slopes, greedy, &err) == FGI_OK);
    if (n) {
        greedy[width - 1] += 1 << 20;
        REQUIRE(fgi_learn_gdmm_import_step(fresh, place, values, slopes, greedy, &err) == FGI_BAD_ARGUMENT);
        place[3] = n, greedy[width - 1] = 0;
        REQUIRE(fgi_learn_gdmm_import_step(fresh, place, values, slopes, greedy, &err) == FGI_BAD_ARGUMENT);
    }
    free(support), free(label), free(state_size), free(states), free(counts), free(value), free(betas), free(losses);
    free(vertex), free(greedy), free(weights), free(slopes);
    return 0;
}

/* Upper and lower bound on the relaxed objective. */
static int measure_gdmm(fgi_learner *L, fgi_learn_gdmm *g, double *upper, double *lower) {
    double loss[N], infeasibility, square = 0;
    const double *w = fgi_learn_weights(L);
    int32_t order[N], done;
    int64_t next = 0;
    fgi_error err;
    for (int i = 0; i < N; i++) order[i] = (int32_t)i;
    for (int calls = 0; next < N; calls++)
        CHECK(calls < N && fgi_learn_gdmm_losses(g, NULL, order, N, &next, 0.0, loss, &err) == FGI_OK);
    CHECK(fgi_learn_gdmm_dual(g, INFINITY, lower, &infeasibility, &done, &err) == FGI_OK && done);
    for (int64_t k = 0; k < fgi_learn_dimension(L); k++) square += w[k] * w[k];
    *upper = 0.5 * square;
    for (int i = 0; i < N; i++) *upper += 0.5 * loss[i]; /* C = 0.5 */
    return 0;
}

/* Upper and lower bound on the relaxed objective. */
static int measure_gdmm_sets(fgi_learner *L, fgi_learn_gdmm_sets *g, double *upper, double *lower) {
    double loss[N], infeasibility, square = 0;
    const double *w = fgi_learn_weights(L);
    int32_t order[N], done;
    int64_t next = 0;
    fgi_error err;
    for (int i = 0; i < N; i++) order[i] = (int32_t)i;
    for (int calls = 0; next < N; calls++)
        CHECK(calls < N && fgi_learn_gdmm_sets_losses(g, NULL, order, N, &next, 0.0, loss, &err) == FGI_OK);
    CHECK(fgi_learn_gdmm_sets_dual(g, INFINITY, lower, &infeasibility, &done, &err) == FGI_OK && done);
    for (int64_t k = 0; k < fgi_learn_dimension(L); k++) square += w[k] * w[k];
    *upper = 0.5 * square;
    for (int i = 0; i < N; i++) *upper += 0.5 * loss[i]; /* C = 0.5 */
    return 0;
}

static int run_gdmm(problem *p, int brute, int away) {
    fgi_learner *L;
    fgi_learn_gdmm *g;
    fgi_error err;
    int32_t order[N];
    double upper, lower;
    for (int i = 0; i < N; i++) order[i] = (int32_t)i;
    REQUIRE(fgi_learn_create(&p->data, 1 + brute, &L, &err) == FGI_OK);
    fgi_learn_gdmm_settings s = {.C = 0.5,
        .eta = away ? 0.3 : 1,
        .partitions = 2,
        .brute_force = brute,
        .seed = 1,
        .batch = brute ? 3 : 1,
        .away = away};
    REQUIRE(fgi_learn_gdmm_create(L, &s, &g, &err) == FGI_OK);
    const int64_t blocks = away ? (N + away - 1) / away : N;
    for (int pass = 0, calls = 0; pass < (away ? 400 : 200); pass++) {
        int64_t next = 0;
        while (away && pass % 100 == 0 && next < blocks) { /* factor by factor, from one gdmm to the next */
            REQUIRE(fgi_learn_gdmm_pass(g, order, blocks, &next, 0.0, &err) == FGI_OK);
            if (++calls % 5 == 0 && hand_over(L, &s, p->data.token_begin[N], &g)) return 1;
        }
        REQUIRE(fgi_learn_gdmm_pass(g, order, blocks, &next, INFINITY, &err) == FGI_OK && next == blocks);
        if (pass % 50 == 0) REQUIRE(!measure_gdmm(L, g, &upper, &lower) && lower <= upper + 1e-9);
    }
    REQUIRE(!measure_gdmm(L, g, &upper, &lower));
    REQUIRE(upper - lower < 0.1 * upper);
    fgi_learn_free(L); /* before the gdmm: allowed */
    fgi_learn_gdmm_free(g);
    return 0;
}

static int run_sets(problem *p, int brute) {
    fgi_learner *L;
    fgi_learn_gdmm_sets *g;
    fgi_error err;
    int32_t order[N];
    double upper, lower;
    for (int i = 0; i < N; i++) order[i] = (int32_t)i;
    REQUIRE(fgi_learn_create(&p->data, 1, &L, &err) == FGI_OK);
    fgi_learn_gdmm_settings s = {.C = 0.5, .eta = 1, .partitions = 1, .brute_force = brute, .seed = 1};
    REQUIRE(fgi_learn_gdmm_sets_create(L, &s, 2, &g, &err) == FGI_OK);
    for (int pass = 0; pass < 200; pass++) {
        int64_t next = 0;
        REQUIRE(fgi_learn_gdmm_sets_pass(g, order, N, &next, INFINITY, &err) == FGI_OK && next == N);
        if (pass % 50 == 0) REQUIRE(!measure_gdmm_sets(L, g, &upper, &lower) && lower <= upper + 1e-9);
    }
    REQUIRE(!measure_gdmm_sets(L, g, &upper, &lower));
    REQUIRE(upper - lower < 0.1 * upper);
    fgi_learn_gdmm_sets_free(g);
    fgi_learn_free(L);
    return 0;
}

int main(void) {
    static problem p;
    for (uint64_t seed = 0; seed < 4; seed++)
        for (int method = FGI_LEARN_BCFW; method <= FGI_LEARN_SSG; method++)
            for (int shape = 0; shape < 7; shape++) {
                const int kinds[] = {0, 0, 0, 0, 1, 2, 2}, edges[] = {0, 1, 1, 2, 0, 0, 1};
                make(&p, kinds[shape], edges[shape], shape == 2, seed);
                if (run_block(&p, method, 1 + (int)(seed % 2) * 2)) return 1;
                p.data.n_labels = 100; /* enough for Viterbi to skip rows */
                if (kinds[shape] == FGI_LEARN_LABELS && shape != 2 && run_block(&p, method, 1 + (int)(seed % 2) * 2))
                    return 1;
            }
    for (uint64_t seed = 0; seed < 4; seed++)
        for (int shape = 0; shape < 8; shape++) {
            make(&p, FGI_LEARN_LABELS, shape / 2 % 3, shape / 2 == 3, seed);
            if (run_gdmm(&p, shape % 2, 0) || run_gdmm(&p, shape % 2, 1 + shape % 2)) return 1;
            make(&p, FGI_LEARN_SETS, shape / 2 % 2, 0, seed);
            if (run_sets(&p, shape % 2)) return 1;
        }
    puts("ok");
    return 0;
}
