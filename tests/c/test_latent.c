/* The atom oracle under the sanitizers: dense and sparse, scaled and not, on several threads, and bad input. */
#include <math.h>
#include <string.h>
#include "check.h"
#include "fginfer_latent.h"

enum { N = 40, R = 3, STARTS = 8 };

static double values[N * R], scale[N + 1];
static int64_t begin[N + 1];
static int32_t cols[N * R];

static void fill(void) {
    uint64_t x = 1;
    for (int i = 0; i < N * R; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        values[i] = (double)(int64_t)(x >> 40) / 8388608.0 - 1;
        cols[i] = i % R;
    }
    for (int i = 0; i <= N; i++) {
        begin[i] = (int64_t)i * R;
        scale[i] = i ? 1.0 / i : 0;
    }
}

static int run(int sparse, int scaled, int threads, double *best, uint8_t *z) {
    fgi_atom *a = NULL;
    fgi_error err;
    double v[STARTS], relaxed = 0, y[N + 1];
    uint8_t before[N];
    REQUIRE(
        fgi_atom_create(N, R, sparse ? begin : NULL, cols, values, scaled ? scale : NULL, threads, &a, &err) == FGI_OK);
    REQUIRE(fgi_atom_mix_run(a, 1, &relaxed, &err) == FGI_BAD_ARGUMENT);
    REQUIRE(fgi_atom_mix_start(a, 0, 7, &err) == FGI_OK);
    REQUIRE(fgi_atom_mix_start(a, 5, 7, &err) == FGI_OK);
    REQUIRE(fgi_atom_mix_run(a, 20, &relaxed, &err) == FGI_OK);
    REQUIRE(fgi_atom_mix_dual(a, y, &err) == FGI_OK);
    REQUIRE(fgi_atom_mix_round(a, STARTS, 3, z, &err) == FGI_OK);
    REQUIRE(fgi_atom_search(a, z, 0, STARTS / 2, 50, 10, 5, v, &err) == FGI_OK);
    REQUIRE(
        fgi_atom_search(a, z + N * (STARTS / 2), STARTS / 2, STARTS / 2, 50, 10, 5, v + STARTS / 2, &err) == FGI_OK);
    *best = 0;
    for (int k = 0; k < STARTS; k++) {
        const double again = fgi_atom_value(a, z + k * N);
        REQUIRE(v[k] >= again * (1 - 1e-9) && v[k] <= again * (1 + 1e-9));
        if (v[k] > *best) *best = v[k];
    }
    REQUIRE(scaled || *best <= relaxed * 1.01);
    z[0] = 2;
    REQUIRE(fgi_atom_search(a, z, 0, 1, 0, 0, 0, v, &err) == FGI_BAD_ARGUMENT);
    z[0] = 0;
    fgi_atom_until(a, 0); /* long ago: nothing moves, and what is said of it is true */
    memcpy(before, z, N);
    const double now = fgi_atom_value(a, z), was = relaxed;
    REQUIRE(fgi_atom_search(a, z, 0, 1, 50, 10, 5, v, &err) == FGI_OK);
    REQUIRE(memcmp(before, z, N) == 0 && fabs(v[0] - now) <= 1e-9 * now);
    REQUIRE(fgi_atom_mix_run(a, 20, &relaxed, &err) == FGI_OK);
    REQUIRE(relaxed == was);
    fgi_atom_free(a);
    return 0;
}

int main(void) {
    fgi_atom *a = NULL;
    fgi_error err;
    static uint8_t z[STARTS * N], other[STARTS * N];
    fill();
    for (int scaled = 0; scaled < 2; scaled++) {
        double dense, sparse, threaded;
        REQUIRE(run(0, scaled, 1, &dense, z) == 0);
        REQUIRE(run(1, scaled, 1, &sparse, other) == 0);
        REQUIRE(dense == sparse);
        REQUIRE(run(0, scaled, 3, &threaded, other) == 0);
        REQUIRE(dense == threaded && memcmp(z, other, sizeof z) == 0);
    }
    begin[1] = 4; /* a column twice */
    REQUIRE(fgi_atom_create(N, R, begin, cols, values, NULL, 1, &a, &err) == FGI_BAD_ARGUMENT);
    begin[1] = -1;
    REQUIRE(fgi_atom_create(N, R, begin, cols, values, NULL, 1, &a, &err) == FGI_BAD_ARGUMENT);
    REQUIRE(fgi_atom_create(0, R, NULL, NULL, values, NULL, 1, &a, &err) == FGI_BAD_ARGUMENT);
    values[3] = 1e300;
    REQUIRE(fgi_atom_create(N, R, NULL, NULL, values, NULL, 1, &a, &err) == FGI_BAD_MODEL);
    fgi_atom_free(NULL);
    return 0;
}
