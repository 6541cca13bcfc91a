/* Every SIMD kernel gives the bits of the portable one, and both agree with a plain double loop; so do the implicit
 * tables. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "check.h"
#include "base/kernels.h"
#include "model/model.h"
#include "base/util.h"

enum { MAX_SIDE = 150 };

/* Numbers with ties, both zeros and some forbidden entries. */
static double draw(fgi_rng *rng, int forbidden_percent) {
    if (fgi_rng_below(rng, 100) < forbidden_percent) return -INFINITY;
    switch (fgi_rng_below(rng, 8)) {
    case 0: return 0.0;
    case 1: return -0.0;
    case 2: return (double)fgi_rng_below(rng, 5) - 2;
    default: return 20 * fgi_rng_unit(rng) - 10;
    }
}

static void test_products(fgi_rng *rng, int64_t rows, int64_t cols, int forbidden) {
    static double t[MAX_SIDE * MAX_SIDE], h[MAX_SIDE], a[MAX_SIDE], b[MAX_SIDE];
    static float tf[MAX_SIDE * MAX_SIDE], hf[MAX_SIDE], af[MAX_SIDE], bf[MAX_SIDE];
    const fgi_kernels *best = fgi_kernels_best(), *plain = &fgi_kernels_scalar;
    double w = fgi_rng_below(rng, 2) ? 1.0 : 0.3 + fgi_rng_unit(rng);
    for (int64_t k = 0; k < rows * cols; k++) tf[k] = (float)(t[k] = draw(rng, forbidden));
    for (int64_t k = 0; k < MAX_SIDE; k++) hf[k] = (float)(h[k] = draw(rng, forbidden));
    plain->maxplus_rows(t, rows, cols, w, h, a);
    best->maxplus_rows(t, rows, cols, w, h, b);
    CHECK_SAYING(!memcmp(a, b, (size_t)cols * sizeof *a), "maxplus_rows differs at %lld x %lld\n", (long long)rows,
        (long long)cols);
    for (int64_t c = 0; c < cols; c++) {
        double expected = -INFINITY;
        for (int64_t r = 0; r < rows; r++) expected = fmax(expected, w * t[r * cols + c] + h[r]);
        CHECK_SAYING(a[c] == expected, "maxplus_rows is wrong at %lld x %lld\n", (long long)rows, (long long)cols);
    }
    plain->maxplus_cols(t, rows, cols, w, h, a);
    best->maxplus_cols(t, rows, cols, w, h, b);
    CHECK_SAYING(!memcmp(a, b, (size_t)rows * sizeof *a), "maxplus_cols differs at %lld x %lld\n", (long long)rows,
        (long long)cols);
    for (int64_t r = 0; r < rows; r++) {
        double expected = -INFINITY;
        for (int64_t c = 0; c < cols; c++) expected = fmax(expected, w * t[r * cols + c] + h[c]);
        CHECK_SAYING(a[r] == expected, "maxplus_cols is wrong at %lld x %lld\n", (long long)rows, (long long)cols);
    }
    plain->maxplus_rows_f32(tf, rows, cols, (float)w, hf, af);
    best->maxplus_rows_f32(tf, rows, cols, (float)w, hf, bf);
    CHECK_SAYING(!memcmp(af, bf, (size_t)cols * sizeof *af), "maxplus_rows_f32 differs at %lld x %lld\n",
        (long long)rows, (long long)cols);
    plain->maxplus_cols_f32(tf, rows, cols, (float)w, hf, af);
    best->maxplus_cols_f32(tf, rows, cols, (float)w, hf, bf);
    CHECK_SAYING(!memcmp(af, bf, (size_t)rows * sizeof *af), "maxplus_cols_f32 differs at %lld x %lld\n",
        (long long)rows, (long long)cols);
}

/* The definitions, two passes each, against both kernels. */
static void check_extremes(const double *x, int64_t n) {
    fgi_extremes by[2] = {fgi_kernels_scalar.extremes(x, n), fgi_kernels_best()->extremes(x, n)};
    double top = -INFINITY, second = -INFINITY, largest = 0;
    int forbids = 0;
    for (int64_t k = 0; k < n; k++) {
        top = fmax(top, x[k]);
        forbids |= x[k] == -INFINITY;
        if (x[k] > -INFINITY) largest = fmax(largest, fabs(x[k]));
    }
    for (int64_t k = 0; k < n; k++)
        if (x[k] < top) second = fmax(second, x[k]);
    for (int k = 0; k < 2; k++)
        CHECK_SAYING(by[k].best == top && by[k].second == second && by[k].largest == largest &&
                by[k].forbids == forbids && by[k].in_order,
            "extremes %d are wrong at %lld\n", k, (long long)n);
    int64_t at = fgi_argmax_of(x, n), first = 0;
    while (first < n - 1 && x[first] != top) first++;
    CHECK_SAYING(n == 0 || at == first, "argmax is wrong at %lld\n", (long long)n);
}

static void check_disorder(void) {
    enum { N = 37 };
    double x[N] = {0};
    for (int k = 0; k < N; k++) {
        for (int bad = 0; bad < 2; bad++) {
            x[k] = bad ? NAN : INFINITY;
            for (int64_t n = k + 1; n <= N; n++)
                CHECK(!fgi_kernels_scalar.extremes(x, n).in_order && !fgi_kernels_best()->extremes(x, n).in_order);
        }
        x[k] = -INFINITY;
    }
}

static void test_vectors(fgi_rng *rng, int64_t n) {
    double x[MAX_SIDE], y[MAX_SIDE], a[MAX_SIDE], b[MAX_SIDE];
    const fgi_kernels *best = fgi_kernels_best(), *plain = &fgi_kernels_scalar;
    for (int64_t k = 0; k < n; k++) x[k] = draw(rng, 20), y[k] = draw(rng, 20);
    double p = plain->max(x, n), q = best->max(x, n);
    CHECK_SAYING(!memcmp(&p, &q, sizeof p), "max differs at %lld\n", (long long)n);
    check_extremes(x, n);
    for (int64_t k = 0; k < n; k++) a[k] = floor(2 * x[k]); /* with ties, and zeros of both signs */
    check_extremes(a, n);
    memcpy(a, x, sizeof a), memcpy(b, x, sizeof b);
    plain->add(a, y, n), best->add(b, y, n);
    CHECK_SAYING(!memcmp(a, b, (size_t)n * sizeof *a), "add differs at %lld\n", (long long)n);
    memcpy(a, x, sizeof a), memcpy(b, x, sizeof b);
    plain->shift(a, 0.7, n), best->shift(b, 0.7, n);
    CHECK_SAYING(!memcmp(a, b, (size_t)n * sizeof *a), "shift differs at %lld\n", (long long)n);
    for (int64_t k = 0; k < n; k++)
        if (y[k] == -INFINITY) x[k] = y[k]; /* as in the solvers: a node's sum contains the message */
    plain->reweight(x, 0.25, y, a, n), best->reweight(x, 0.25, y, b, n);
    CHECK_SAYING(!memcmp(a, b, (size_t)n * sizeof *a), "reweight differs at %lld\n", (long long)n);
    for (int64_t k = 0; k < n; k++) CHECK_SAYING(!isnan(a[k]), "reweight gives NaN\n");
}

static void test_implicit(fgi_rng *rng, int32_t kind, int64_t from, int64_t to) {
    double h[MAX_SIDE], out[MAX_SIDE], scratch[2 * MAX_SIDE + 1];
    static const double stops[] = {INFINITY, 0.5, 3, 7.25, 100};
    double p0 = kind == FGI_POTTS ? draw(rng, 20) : fabs(draw(rng, 0)), w = 0.5 + fgi_rng_unit(rng);
    double p1 = kind == FGI_POTTS ? draw(rng, 20) : stops[fgi_rng_below(rng, 5)];
    for (int64_t a = 0; a < from; a++) h[a] = draw(rng, 15);
    fgi_maxplus_implicit(kind, p0, p1, w, h, from, out, to, scratch);
    for (int64_t b = 0; b < to; b++) {
        double expected = -INFINITY;
        for (int64_t a = 0; a < from; a++)
            expected = fmax(expected, w * fgi_implicit_at(kind, p0, p1, (int32_t)a, (int32_t)b) + h[a]);
        CHECK_SAYING(out[b] == expected || fabs(out[b] - expected) <= 1e-12 * (1 + fabs(expected)),
            "implicit kind %d (%g, %g) is wrong: %.17g, not %.17g\n", kind, p0, p1, out[b], expected);
    }
}

/* A band gives the bits of the table that is written out, by both versions of the kernel. */
static void test_band(fgi_rng *rng, int64_t from, int64_t to, int forbidden) {
    static double t[MAX_SIDE * MAX_SIDE], h[MAX_SIDE], near[MAX_SIDE], a[MAX_SIDE], b[MAX_SIDE];
    double scratch[2 * MAX_SIDE + 1];
    const int64_t reach = 1 + fgi_rng_below(rng, (int32_t)(from / 3 + 1));
    const double w = 0.5 + fgi_rng_unit(rng), far = draw(rng, forbidden);
    if (!fgi_band_pays(reach, from, to)) return;
    for (int64_t d = 0; d < reach; d++) near[d] = fmax(far, draw(rng, forbidden));
    for (int64_t x = 0; x < from; x++) {
        h[x] = draw(rng, forbidden);
        for (int64_t y = 0; y < to; y++) t[x * to + y] = llabs(x - y) < reach ? near[llabs(x - y)] : far;
    }
    fgi_kernels_scalar.maxplus_rows(t, from, to, w, h, a);
    fgi_maxplus_near(&fgi_kernels_scalar, near, reach, far, w, h, from, b, to, scratch);
    CHECK_SAYING(!memcmp(a, b, (size_t)to * sizeof *a), "a band of %lld differs from its table at %lld x %lld\n",
        (long long)reach, (long long)from, (long long)to);
    fgi_maxplus_near(fgi_kernels_best(), near, reach, far, w, h, from, b, to, scratch);
    CHECK_SAYING(
        !memcmp(a, b, (size_t)to * sizeof *a), "maxplus_band differs at %lld x %lld\n", (long long)from, (long long)to);
}

int main(void) {
    fgi_rng rng = {1};
    for (int64_t rows = 1; rows <= 40; rows++)
        for (int64_t cols = 1; cols <= 70; cols++) test_products(&rng, rows, cols, rows % 3 == 0 ? 30 : 0);
    for (int k = 0; k < 60; k++)
        test_products(&rng, 1 + fgi_rng_below(&rng, MAX_SIDE), 1 + fgi_rng_below(&rng, MAX_SIDE), k % 2 ? 95 : 0);
    for (int64_t n = 1; n <= 70; n++) test_vectors(&rng, n);
    for (int k = 0; k < 3000; k++)
        test_implicit(&rng, 1 + k % 3, 1 + fgi_rng_below(&rng, 30), 1 + fgi_rng_below(&rng, 30));
    for (int k = 0; k < 5000; k++)
        test_band(&rng, 1 + fgi_rng_below(&rng, MAX_SIDE), 1 + fgi_rng_below(&rng, MAX_SIDE), k % 3 ? 0 : 30);
    check_disorder();
    return failed();
}
