/* Bounds of binary models (cycles, sdp): a torus of spins, against elimination; in one go and in slices. */
#include <math.h>
#include "check.h"
#include "base/util.h"
#include "fginfer_exact.h"

enum { SIDE = 7, SPINS = SIDE * SIDE, EDGES = 2 * SPINS };

/* Every spin and its neighbours to the right and below, round the edge; own tables. */
static fgi_model *torus(uint64_t seed, double field) {
    static int32_t cards[SPINS], kind[EDGES], arity[EDGES], dims[2 * EDGES], tables[EDGES], vars[2 * EDGES];
    static double unary[2 * SPINS], params[2 * EDGES], values[4 * EDGES], weight[EDGES];
    static uint8_t transposed[EDGES];
    static int64_t begin[EDGES + 1];
    fgi_rng rng = {seed};
    for (int i = 0; i < SPINS; i++) {
        cards[i] = 2;
        unary[2 * i] = 0;
        unary[2 * i + 1] = field * (fgi_rng_unit(&rng) - 0.5);
    }
    for (int f = 0; f < EDGES; f++) {
        const int i = f / 2, x = i % SIDE, y = i / SIDE;
        const double strength = fgi_rng_unit(&rng) - 0.5;
        vars[2 * f] = i;
        vars[2 * f + 1] = f % 2 ? (y + 1) % SIDE * SIDE + x : y * SIDE + (x + 1) % SIDE;
        begin[f + 1] = 2 * f + 2;
        kind[f] = FGI_DENSE;
        arity[f] = dims[2 * f] = dims[2 * f + 1] = 2;
        tables[f] = f;
        weight[f] = 1;
        for (int k = 0; k < 4; k++) values[4 * f + k] = k == 0 || k == 3 ? strength : -strength;
    }
    const fgi_model_spec spec = {.n_vars = SPINS,
        .cards = cards,
        .unary = unary,
        .n_tables = EDGES,
        .table_kind = kind,
        .table_arity = arity,
        .dims = dims,
        .params = params,
        .values = values,
        .n_values = 4 * EDGES,
        .n_factors = EDGES,
        .factor_table = tables,
        .factor_weight = weight,
        .factor_transposed = transposed,
        .var_begin = begin,
        .vars = vars};
    fgi_model *m = NULL;
    CHECK(fgi_model_create(&spec, &m, NULL) == FGI_OK);
    return m;
}

static double optimum(const fgi_model *m) {
    fgi_eliminate *e = NULL;
    fgi_eliminate_info info = {0};
    CHECK(fgi_eliminate_create(m, 1e9, 1e6, &e, NULL) == FGI_OK);
    CHECK(fgi_eliminate_run(e, -1, &info, NULL) == FGI_OK);
    fgi_eliminate_free(e);
    return info.value;
}

/* seconds < 0: in one go. Returns whether bound and score met; to 1e-12 real scores need not in sdp. */
static int check_torus(int32_t method, uint64_t seed, double field, double seconds) {
    fgi_model *m = torus(seed, field);
    const double best = optimum(m), room = 1e-11;
    fgi_settings settings = fgi_settings_default();
    fgi_solver *solver = NULL;
    fgi_info info = {0};
    settings.method = method;
    settings.gap = 0;
    CHECK(fgi_solver_create(m, &settings, &solver, NULL) == FGI_OK);
    do CHECK(fgi_solver_run(solver, seconds, -1, &info) == FGI_OK);
    while (info.status == FGI_RUNNING);
    CHECK_SAYING(info.bound >= best - room, "seed %d: bound %.17g below %.17g\n", (int)seed, info.bound, best);
    CHECK(info.score <= best + room);
    CHECK(info.status != FGI_OPTIMAL || fabs(info.score - best) <= room);
    const int proven = info.bound - info.score <= 1e-9;
    fgi_solver_free(solver);
    fgi_model_free(m);
    return proven;
}

int main(void) {
    int proven = 0;
    for (uint64_t seed = 0; seed < 30; seed++)
        proven += check_torus(FGI_CYCLES, seed, seed % 3 ? 0.5 : 0, seed % 2 ? 0 : -1);
    CHECK(proven >= 15); /* most of these relaxations are tight */
    for (uint64_t seed = 0; seed < 2; seed++) CHECK(check_torus(FGI_SDP, seed, seed ? 0.5 : 0, seed ? 0 : -1));
    return failed();
}
