/* Products that read little of a table have the bits of those that read all of it, on every kind of table; and where
 * there is something to skip, they skip it. */
#include <math.h>
#include <string.h>
#include "check.h"
#include "base/util.h"
#include "model/sliced.h"

enum { MAX_SIDE = 300 };

typedef enum shape { RANDOM, SMOOTH, LEVELS, PEAKED, SHAPES } shape;

/* Random scores; scores that fall with the distance; few distinct ones, some forbidden; one far above all others. */
static double draw(fgi_rng *rng, shape kind, int32_t a, int32_t b) {
    switch (kind) {
    case RANDOM: return 20 * fgi_rng_unit(rng) - 10;
    case SMOOTH: return -fabs(0.05 * (a - b)) + 0.01 * fgi_rng_unit(rng);
    case LEVELS: return fgi_rng_below(rng, 50) ? (double)fgi_rng_below(rng, 3) : -INFINITY;
    default: return fgi_rng_below(rng, 1000) ? -0.0 : 1e6;
    }
}

static int64_t test_table(fgi_rng *rng, shape kind, int32_t rows, int32_t cols, double spread) {
    static double t[MAX_SIDE * MAX_SIDE], h[MAX_SIDE], expected[MAX_SIDE], out[MAX_SIDE];
    const fgi_kernels *kernels[2] = {&fgi_kernels_scalar, fgi_kernels_best()};
    double least = INFINITY, largest = -INFINITY;
    for (int32_t a = 0; a < rows; a++)
        for (int32_t b = 0; b < cols; b++) {
            const double v = t[(int64_t)a * cols + b] = draw(rng, kind, a, b);
            if (v > -INFINITY && v < least) least = v;
            if (v > largest) largest = v;
        }
    fgi_sliced *sliced = fgi_sliced_create(t, rows, cols, largest > least ? largest - least : 0);
    fgi_sliced_scratch *scratch = fgi_sliced_scratch_create(MAX_SIDE);
    CHECK(sliced && scratch);
    while (!fgi_sliced_step(sliced, 1 + fgi_rng_below(rng, 5000))) {}
    int64_t touched = 0;
    for (int side = 0; side < 2; side++)
        for (int which = 0; which < 2; which++) {
            const fgi_kernels *k = kernels[which];
            const double w = which ? 1.0 : 0.3 + fgi_rng_unit(rng);
            for (int32_t x = 0; x < MAX_SIDE; x++) {
                h[x] = spread * fgi_rng_unit(rng);
                if (fgi_rng_below(rng, 40) == 0) h[x] = fgi_rng_below(rng, 2) ? -0x1p600 : -0.0;
            }
            if (fgi_rng_below(rng, 10) == 0)
                for (int32_t x = 0; x < MAX_SIDE; x++) h[x] = -0.0;
            if (side == 0) k->maxplus_rows(t, rows, cols, w, h, expected);
            else k->maxplus_cols(t, rows, cols, w, h, expected);
            fgi_sliced_maxplus(sliced, k, w, side, h, out, scratch, &touched);
            CHECK_SAYING(!memcmp(out, expected, (size_t)(side ? rows : cols) * sizeof *out),
                "product %d of %d x %d differs (kind %d, %s)\n", side, rows, cols, (int)kind, k->name);
        }
    fgi_sliced_free(sliced);
    fgi_sliced_scratch_free(scratch);
    return touched / 4;
}

int main(void) {
    fgi_rng rng = {1};
    for (int kind = 0; kind < SHAPES; kind++)
        for (int trial = 0; trial < 60; trial++) {
            const int32_t rows = 1 + (int32_t)fgi_rng_below(&rng, trial < 40 ? 40 : MAX_SIDE),
                          cols = 1 + (int32_t)fgi_rng_below(&rng, trial < 40 ? 40 : MAX_SIDE);
            test_table(&rng, (shape)kind, rows, cols, trial % 3 ? 1 : 100);
        }
    const int64_t all = (int64_t)MAX_SIDE * MAX_SIDE;
    CHECK(test_table(&rng, SMOOTH, MAX_SIDE, MAX_SIDE, 0.5) < all / 6); /* the first entries of slices decide */
    CHECK(test_table(&rng, LEVELS, MAX_SIDE, MAX_SIDE, 100) < all / 6); /* the largest h do */
    CHECK(test_table(&rng, RANDOM, MAX_SIDE, MAX_SIDE, 20) < 2 * all);  /* nothing does: little more than all */
    fgi_sliced_free(NULL);
    fgi_sliced_scratch_free(NULL);
    return failed();
}
