/* model/waves.c: in sweeps by several threads every variable is visited once, after the earlier ones it has a factor
 * with; and trws and gdmm by several threads, for ThreadSanitizer to look at. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "check.h"
#include "model/waves.h"
#include "solver.h"

enum { MOST = 40000, THREADS = 3 };

typedef struct visits {
    const fgi_model *m;
    const fgi_waves *waves;
    int forward;
    atomic_uchar *seen;
    atomic_int wrong;
} visits;

static int body(void *context, int64_t begin, int64_t end, int64_t then, int worker) {
    visits *v = context;
    const fgi_structure *st = v->m->s;
    const int32_t *list = fgi_waves_list(v->waves);
    if (then >= v->m->s->n_vars) atomic_store(&v->wrong, 1);
    if (worker < 0 || worker >= THREADS) atomic_store(&v->wrong, 1);
    for (int64_t place = begin; place < end; place++) {
        const int64_t at = v->forward ? place : st->n_vars - 1 - place;
        const int32_t i = list ? list[at] : (int32_t)at;
        if (atomic_exchange(&v->seen[i], 1)) atomic_store(&v->wrong, 1);
        for (int64_t k = st->adj_begin[i]; k < st->adj_begin[i + 1]; k++)
            for (int32_t e = 0; e < 2; e++) {
                const int32_t j = fgi_factor_vars(st, st->adj[k])[e];
                const int expected = v->forward ? j <= i : j >= i;
                if (atomic_load(&v->seen[j]) != expected) atomic_store(&v->wrong, 1);
            }
    }
    return 1;
}

static double work(const void *context, int64_t var) {
    (void)context;
    return 60 + (double)(var % 7);
}

static fgi_model *make(int64_t n, int64_t n_factors, int32_t *vars) {
    int32_t *cards = malloc((size_t)n * sizeof *cards), *table = calloc((size_t)n_factors, sizeof *table);
    int32_t kind[] = {FGI_POTTS}, arity[] = {2};
    const double params[] = {1, 0};
    for (int64_t i = 0; i < n; i++) cards[i] = 2 + (int32_t)(i / 64 % 3);
    fgi_model_spec spec = {.n_vars = n,
        .cards = cards,
        .n_tables = 1,
        .table_kind = kind,
        .table_arity = arity,
        .params = params,
        .n_factors = n_factors,
        .factor_table = table,
        .vars = vars};
    fgi_model *m = NULL;
    CHECK(fgi_model_create(&spec, &m, NULL) == FGI_OK);
    free(cards);
    free(table);
    return m;
}

static fgi_model *grid(int32_t height, int32_t width) {
    int32_t *vars = malloc(4 * (size_t)(height * width) * sizeof *vars);
    int64_t n = 0;
    for (int32_t i = 0; i < height * width; i++) {
        if ((i + 1) % width) vars[2 * n] = i, vars[2 * n++ + 1] = i + 1;
        if (i + width < height * width) vars[2 * n] = i + width, vars[2 * n++ + 1] = i;
    }
    fgi_model *m = make((int64_t)height * width, n, vars);
    free(vars);
    return m;
}

static fgi_model *random_graph(int32_t n, int64_t n_factors) {
    fgi_rng rng = {7};
    int32_t *vars = malloc(2 * (size_t)n_factors * sizeof *vars);
    for (int64_t f = 0; f < n_factors; f++) {
        vars[2 * f] = (int32_t)fgi_rng_below(&rng, n);
        do vars[2 * f + 1] = (int32_t)fgi_rng_below(&rng, n);
        while (vars[2 * f + 1] == vars[2 * f]);
    }
    fgi_model *m = make(n, n_factors, vars);
    free(vars);
    return m;
}

/* Every variable with the `reach` next ones, one dense table for all: nodes with enough work to be shared out. */
static fgi_model *band(int32_t n, int32_t card, int32_t reach) {
    fgi_rng rng = {11};
    int32_t *cards = malloc((size_t)n * sizeof *cards), *vars = malloc(2 * (size_t)n * (size_t)reach * sizeof *vars),
            *table = calloc((size_t)n * (size_t)reach, sizeof *table);
    const int32_t arity[] = {2}, dims[] = {card, card};
    double *values = malloc((size_t)card * (size_t)card * sizeof *values),
           *unary = malloc((size_t)n * (size_t)card * sizeof *unary);
    int64_t n_factors = 0;
    for (int32_t i = 0; i < n; i++) {
        cards[i] = card;
        for (int32_t j = i + 1; j < n && j <= i + reach; j++) vars[2 * n_factors] = i, vars[2 * n_factors++ + 1] = j;
    }
    for (int64_t k = 0; k < (int64_t)card * card; k++) values[k] = (double)fgi_rng_below(&rng, 1000) / 999;
    for (int64_t k = 0; k < (int64_t)n * card; k++) unary[k] = (double)fgi_rng_below(&rng, 1000) / 99;
    fgi_model_spec spec = {.n_vars = n,
        .cards = cards,
        .unary = unary,
        .n_tables = 1,
        .table_arity = arity,
        .dims = dims,
        .values = values,
        .n_values = (int64_t)card * card,
        .n_factors = n_factors,
        .factor_table = table,
        .vars = vars};
    fgi_model *m = NULL;
    CHECK(fgi_model_create(&spec, &m, NULL) == FGI_OK);
    free(cards), free(vars), free(table), free(values), free(unary);
    return m;
}

/* Something else that takes a few pieces, as an ascent beside a sweep does. */
static int a_piece(void *of) {
    int *left = of;
    for (const double end = fgi_clock() + 5e-5; fgi_clock() < end;)
        ;
    return --*left <= 0;
}

/* The second pool has fewer threads than the waves are made for, as where the system refuses some. */
static void check_sweeps(const fgi_model *m, int expected) {
    fgi_waves *waves;
    CHECK(fgi_waves_create(m->s, THREADS, work, NULL, NULL, &waves));
    CHECK((waves != NULL) == expected);
    for (int threads = THREADS; waves && threads > 0; threads--) {
        fgi_pool *pool = fgi_pool_create(threads);
        for (int sweep = 0; sweep < 8; sweep++) {
            const int forward = sweep % 2;
            visits v = {.m = m, .waves = waves, .forward = forward, .seen = calloc((size_t)m->s->n_vars, 1)};
            int left = sweep > 2 ? 5 : 0;
            const fgi_aside aside = {a_piece, &left};
            fgi_pool_rest(pool, sweep % 3 == 1); /* other work needs the cores */
            CHECK(fgi_pool_threads(pool) == (sweep % 3 == 1 ? 1 : threads));
            fgi_waves_begin(waves, forward);
            while (!fgi_waves_run(
                       waves, pool, sweep > 1 ? fgi_clock() + 1e-4 : INFINITY, body, &v, left > 0 ? &aside : NULL) ||
                left > 0)
                ; /* a deadline that passes again and again */
            CHECK(left == 0);
            for (int64_t i = 0; i < m->s->n_vars; i++) CHECK(atomic_load(&v.seen[i]));
            CHECK(!atomic_load(&v.wrong));
            free(v.seen);
        }
        fgi_pool_free(pool);
    }
    fgi_waves_free(waves);
}

static double bound_of(const fgi_model *m, int32_t method, int threads) {
    fgi_settings settings = fgi_settings_default();
    settings.method = method;
    settings.threads = threads;
    settings.max_iterations = 6;
    settings.gap = 0;
    fgi_solver *s = NULL;
    fgi_info info = {0};
    CHECK(fgi_solver_create(m, &settings, &s, NULL) == FGI_OK);
    while (s && info.status == FGI_RUNNING) CHECK(fgi_solver_run(s, 1e-3, -1, &info) == FGI_OK);
    fgi_solver_free(s);
    return info.bound;
}

static void check_bits(const fgi_model *m) {
    const int32_t methods[] = {FGI_TRWS, FGI_GDMM};
    for (int k = 0; k < 2; k++) CHECK(bound_of(m, methods[k], 1) == bound_of(m, methods[k], THREADS));
}

int main(void) {
    fgi_model *models[] = {grid(150, 250), random_graph(MOST, 2 * MOST), grid(1, 5000), grid(5000, 1)};
    const int wide[] = {1, 1, 0, 0};
    for (int k = 0; k < 4; k++) {
        check_sweeps(models[k], wide[k]);
        check_bits(models[k]);
        fgi_model_free(models[k]);
    }
    fgi_model *bands[] = {band(60, 190, 1), band(40, 30, 39)};
    for (int k = 0; k < 2; k++) {
        check_bits(bands[k]);
        fgi_model_free(bands[k]);
    }
    return failed();
}
