/* base/pool.c: every index exactly once, whatever the sizes; pools side by side; results independent of the number of
 * threads. Worth most under ThreadSanitizer. Also: solvers on several threads over snapshots of one model that is being
 * changed. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "beside.h"
#include "check.h"
#include "base/pool.h"
#include "solver.h"

enum { MOST = 10007, THREADS = 4 };

typedef struct job {
    int32_t seen[MOST];
    double partial[MOST]; /* per block, reduced by the caller in block order */
    int64_t block;
    int worker_out_of_range;
} job;

static void body(void *context, int64_t begin, int64_t end, int worker) {
    job *j = context;
    double sum = 0;
    for (int64_t i = begin; i < end; i++) {
        j->seen[i]++;
        sum += 1.0 / (double)(i + 1);
    }
    j->partial[begin / j->block] = sum;
    if (worker < 0 || worker >= THREADS) j->worker_out_of_range = 1;
}

static double harmonic(fgi_pool *pool, int64_t n, int64_t block) {
    static _Thread_local job j;
    memset(&j, 0, sizeof j);
    j.block = block;
    fgi_pool_run(pool, n, block, body, &j);
    double sum = 0;
    for (int64_t k = 0; k * block < n; k++) sum += j.partial[k];
    for (int64_t i = 0; i < MOST; i++)
        if (j.seen[i] != (i < n)) return NAN;
    return j.worker_out_of_range ? NAN : sum;
}

static double harmonic_part(const void *unused, int64_t begin, int64_t end) {
    double sum = 0;
    (void)unused;
    for (int64_t i = begin; i < end; i++) sum += 1.0 / (double)(i + 1);
    return sum;
}

static double added(double a, double b) { return a + b; }

/* The same sum, joined by the pool: the same bits. */
static double folded(fgi_pool *pool, int64_t n, int64_t block) {
    return fgi_pool_fold(pool, n, block, harmonic_part, NULL, added, 0);
}

static void *many_runs(void *unused) {
    (void)unused;
    fgi_pool *pool = fgi_pool_create(THREADS);
    const int64_t sizes[] = {0, 1, 2, 63, 64, 65, 1000, MOST}, blocks[] = {1, 7, 64, 100000};
    int *bad = calloc(1, sizeof *bad);
    for (int repeat = 0; repeat < 20; repeat++)
        for (int s = 0; s < 8; s++)
            for (int b = 0; b < 4; b++) {
                const double sum = harmonic(NULL, sizes[s], blocks[b]);
                *bad += harmonic(pool, sizes[s], blocks[b]) != sum;
                *bad += folded(pool, sizes[s], blocks[b]) != sum || folded(NULL, sizes[s], blocks[b]) != sum;
            }
    fgi_pool_free(pool);
    return bad;
}

/* ---- one model, many threads -------------------------------------------------------------------------------- */

static fgi_model *chain(void) {
    enum { N = 60 };
    static int32_t cards[N], table_kind[] = {FGI_POTTS}, arity[] = {2}, factor_table[N - 1], vars[2 * (N - 1)];
    static const double params[] = {1, 0};
    for (int i = 0; i < N; i++) cards[i] = 3;
    for (int f = 0; f < N - 1; f++) vars[2 * f] = f, vars[2 * f + 1] = f + 1;
    fgi_model_spec spec = {.n_vars = N,
        .cards = cards,
        .n_tables = 1,
        .table_kind = table_kind,
        .table_arity = arity,
        .params = params,
        .n_factors = N - 1,
        .factor_table = factor_table,
        .vars = vars};
    fgi_model *m = NULL;
    CHECK(fgi_model_create(&spec, &m, NULL) == FGI_OK);
    return m;
}

static void *solve_snapshot(void *arg) {
    fgi_model *m = arg;
    fgi_settings settings = fgi_settings_default();
    settings.method = FGI_ICM;
    settings.max_iterations = 20;
    fgi_solver *s = NULL;
    fgi_info info = {0};
    int ok = fgi_solver_create(m, &settings, &s, NULL) == FGI_OK && fgi_solver_run(s, -1, -1, &info) == FGI_OK;
    fgi_solver_free(s);
    fgi_model_free(m);
    int *bad = calloc(1, sizeof *bad);
    *bad = !ok || !(info.score > -INFINITY && info.bound >= info.score);
    return bad;
}

static int joined(beside *thread) {
    void *bad = beside_end(thread);
    int n = bad ? *(int *)bad : 1;
    free(bad);
    return n;
}

int main(void) {
    beside threads[6];
    for (int i = 0; i < 2; i++) CHECK(beside_begin(&threads[i], many_runs, NULL) == 0);
    for (int i = 0; i < 2; i++) CHECK(joined(&threads[i]) == 0);

    fgi_model *m = chain();
    for (int round = 0; m && round < 5; round++) {
        for (int i = 0; i < 6; i++) {
            const double scores[] = {i, round, 1};
            CHECK(beside_begin(&threads[i], solve_snapshot, fgi_model_snapshot(m)) == 0);
            CHECK(fgi_model_set_unary(m, i, scores, NULL) == FGI_OK); /* while that thread reads its version */
        }
        for (int i = 0; i < 6; i++) CHECK(joined(&threads[i]) == 0);
    }
    fgi_model_free(m);
    return failed();
}
