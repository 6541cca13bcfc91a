/* Bounds on products are bounds, and exact where they say so; single results have the bits of products that read all
 * of a table; and where there is something to skip, it is skipped. */
#include <math.h>
#include <string.h>
#include "check.h"
#include "base/util.h"
#include "oracle/sliced.h"

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

static void draw_messages(fgi_rng *rng, double spread, double *h) {
    for (int32_t x = 0; x < MAX_SIDE; x++) {
        h[x] = spread * fgi_rng_unit(rng);
        if (fgi_rng_below(rng, 40) == 0) h[x] = fgi_rng_below(rng, 2) ? -0x1p600 : -0.0;
    }
    if (fgi_rng_below(rng, 10) == 0)
        for (int32_t x = 0; x < MAX_SIDE; x++) h[x] = -0.0;
}

/* Shares: of results that bounds from `most` rows leave open, and of the entries read for bounds and single results. */
typedef struct shares {
    double open, bounds, single;
} shares;

static shares test_table(
    fgi_rng *rng, shape kind, int32_t rows, int32_t cols, double spread, int32_t most, int is_listed) {
    static double t[MAX_SIDE * MAX_SIDE], h[MAX_SIDE], delta[MAX_SIDE], expected[MAX_SIDE], out[MAX_SIDE],
        peaks[MAX_SIDE];
    static int32_t rows_at[MAX_SIDE + 1];
    const fgi_kernels *kernels[2] = {&fgi_kernels_scalar, fgi_kernels_best()};
    const int64_t entries = (int64_t)rows * cols;
    int64_t open = 0, looks = 0, all = 0, for_bounds = 0, for_looks = 0;
    for (int32_t a = 0; a < rows; a++)
        for (int32_t b = 0; b < cols; b++) t[(int64_t)a * cols + b] = draw(rng, kind, a, b);
    fgi_sliced *sliced = fgi_sliced_create(t, rows, cols, is_listed);
    CHECK(sliced);
    while (!fgi_sliced_step(sliced, 1 + fgi_rng_below(rng, 5000))) {}
    for (int side = 0; side < 2; side++)
        for (int which = 0; which < 2; which++) {
            const fgi_kernels *k = kernels[which];
            const double w = which ? 1.0 : 0.3 + fgi_rng_unit(rng);
            const int32_t n_from = side ? cols : rows, n_to = side ? rows : cols;
            int64_t touched = 0, read = 0, whole = 0;
            draw_messages(rng, spread, h);
            for (int32_t x = 0; x < n_from; x++) delta[x] = -h[x];
            if (side == 0) k->maxplus_rows(t, rows, cols, w, h, expected);
            else k->maxplus_cols(t, rows, cols, w, h, expected);
            const double cap = fgi_sliced_bounds(sliced, k, w, side, h, most, out, peaks, rows_at, &touched);
            CHECK(touched <= entries + n_from * fgi_sliced_cells(n_to) + n_from + n_to);
            for_bounds += touched;
            for (int32_t y = 0; y < n_to; y++) {
                const int is_open = fgi_sliced_is_open(sliced, w, side, cap, y, out[y]);
                CHECK_SAYING(is_open ? out[y] >= expected[y] : out[y] == expected[y],
                    "result %d of %d x %d is no bound (kind %d, %s)\n", y, rows, cols, (int)kind, k->name);
                open += is_open;
                double value = fgi_sliced_value(sliced, k, w, side, h, y, &whole);
                CHECK(!memcmp(&value, &expected[y], sizeof value));
                if (cap == -INFINITY) continue;
                if (!fgi_sliced_search(sliced, k, w, side, delta, peaks, y, &value, &read))
                    value = fgi_sliced_value(sliced, k, w, side, h, y, &read);
                CHECK_SAYING(!memcmp(&value, &expected[y], sizeof value),
                    "result %d of %d x %d differs (kind %d, %s)\n", y, rows, cols, (int)kind, k->name);
                looks++;
            }
            CHECK(whole == entries);
            CHECK(is_listed || read <= entries + n_to * (FGI_SLICED_CELL + 2 * fgi_sliced_cells(n_from)));
            for_looks += read;
            all += n_to;
            const int32_t x = (int32_t)fgi_rng_below(rng, n_from);
            const double *slice = is_listed && side ? NULL : fgi_sliced_slice(sliced, side, x);
            for (int32_t y = 0; slice && y < n_to; y++)
                CHECK(slice[y] == (side ? t[(int64_t)y * cols + x] : t[(int64_t)x * cols + y]));
        }
    fgi_sliced_free(sliced);
    return (shares){(double)open / (double)all, (double)for_bounds / (4.0 * (double)entries),
        looks ? (double)for_looks / ((double)entries * (double)looks / (0.5 * (rows + cols))) : 0};
}

/* The largest are found: as many as wanted if that is few, and nothing above *below is left out. */
static void test_largest(fgi_rng *rng) {
    double values[MAX_SIDE], below;
    int32_t at[MAX_SIDE + 1];
    uint8_t taken[MAX_SIDE];
    for (int trial = 0; trial < 2000; trial++) {
        const int32_t n = 1 + (int32_t)fgi_rng_below(rng, MAX_SIDE), most = 1 + (int32_t)fgi_rng_below(rng, MAX_SIDE);
        for (int32_t k = 0; k < n; k++) values[k] = fgi_rng_below(rng, 9) ? (double)fgi_rng_below(rng, 40) : -INFINITY;
        const int32_t have = fgi_sliced_largest(values, n, most, at, &below);
        memset(taken, 0, sizeof taken);
        CHECK(have <= n && (most > 16 || have <= most));
        for (int32_t k = 0; k < have; k++) {
            CHECK(!taken[at[k]] && values[at[k]] > -INFINITY);
            taken[at[k]] = 1;
        }
        for (int32_t k = 0; k < n; k++) CHECK(taken[k] || values[k] <= below);
    }
}

static void test_even(fgi_rng *rng) {
    static double t[MAX_SIDE * MAX_SIDE];
    for (int kind = 0; kind < SHAPES; kind++) {
        for (int32_t a = 0; a < MAX_SIDE; a++)
            for (int32_t b = 0; b < MAX_SIDE; b++) t[a * MAX_SIDE + b] = draw(rng, (shape)kind, a, b);
        CHECK(fgi_sliced_is_even(t, MAX_SIDE, MAX_SIDE) == (kind == RANDOM || kind == LEVELS));
        CHECK(fgi_sliced_is_even(t, 1, 2) + 1 > 0); /* few rows are seen several times */
    }
}

int main(void) {
    fgi_rng rng = {1};
    for (int kind = 0; kind < SHAPES; kind++)
        for (int trial = 0; trial < 60; trial++) {
            const int32_t rows = 1 + (int32_t)fgi_rng_below(&rng, trial < 40 ? 40 : MAX_SIDE),
                          cols = 1 + (int32_t)fgi_rng_below(&rng, trial < 40 ? 40 : MAX_SIDE);
            test_table(
                &rng, (shape)kind, rows, cols, trial % 3 ? 1 : 100, 1 + (int32_t)fgi_rng_below(&rng, 60), trial % 2);
        }
    CHECK(test_table(&rng, LEVELS, MAX_SIDE, MAX_SIDE, 100, 16, 0).open < 0.02); /* the largest h decide */
    CHECK(test_table(&rng, RANDOM, MAX_SIDE, MAX_SIDE, 20, 16, 0).open > 0.5);   /* they do not */
    const shares near = test_table(&rng, SMOOTH, MAX_SIDE, MAX_SIDE, 1, 32, 0); /* few cells have entries that matter */
    CHECK(near.bounds < 0.06 && near.single < 0.4);
    const shares listed = test_table(&rng, RANDOM, MAX_SIDE, MAX_SIDE, 100, 16, 1); /* the largest h decide again */
    CHECK(listed.bounds < 0.02 && listed.single < 0.2);
    test_even(&rng);
    test_largest(&rng);
    fgi_sliced_free(NULL);
    return failed();
}
