/* base/util.h - small things every file needs: checked allocation sizes, errors, arithmetic, random numbers, exact
 * sums. */
#ifndef FGI_UTIL_H
#define FGI_UTIL_H
#include <math.h>
#include <stdlib.h>
#include "fginfer.h"
#include "base/assert.h"

/* Writes a printf-style message into err (NULL allowed) and returns rc. */
fgi_rc fgi_fail(fgi_error *err, fgi_rc rc, int64_t index, const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 4, 5)))
#endif
    ;

/* The one message about it. */
fgi_rc fgi_no_memory(fgi_error *err);

/* n * size bytes, or NULL when that overflows or memory is short. Never NULL for n == 0. */
void *fgi_alloc(int64_t n, size_t size);
void *fgi_calloc(int64_t n, size_t size);
void *fgi_copy(const void *from, int64_t n, size_t size);

/* Tells the system that a large block, all of which will be used, is best served in large pages: reading it in order is
 * then half as fast again. Call before the block is first written; does nothing for small blocks and on systems without
 * such advice. */
void fgi_prefer_large_pages(void *block, int64_t bytes);

/* *product = a * b for non-negative a and b; returns 0 on overflow. */
static inline int fgi_mul(int64_t a, int64_t b, int64_t *product) {
    fgi_assert(a >= 0 && b >= 0);
    if (b != 0 && a > INT64_MAX / b) return 0;
    *product = a * b;
    return 1;
}

/* fmax and fmin without the call and the care for NaN. */
static inline double fgi_larger(double a, double b) { return a > b ? a : b; }
static inline double fgi_smaller(double a, double b) { return a < b ? a : b; }
/* The largest of n numbers; -INFINITY: there is none, or all are. */
static inline double fgi_max_of(const double *x, int64_t n) {
    double best = -INFINITY;
    for (int64_t k = 0; k < n; k++) best = fgi_larger(best, x[k]);
    return best;
}

/* The soft threshold S_t(x): x moved towards 0 by t, and 0 where that would be beyond. */
static inline double fgi_soft(double x, double t) {
    fgi_assert(t >= 0);
    return x > t ? x - t : x < -t ? x + t : 0.0;
}

/* An inner product by four running sums: they fill the pipeline, and fix the order of the additions. */
static inline double fgi_dot(const double *x, const double *y, int64_t n) {
    fgi_assert(n >= 0);
    double s[4] = {0, 0, 0, 0};
    int64_t k = 0;
    for (; k + 4 <= n; k += 4)
        for (int l = 0; l < 4; l++) s[l] += x[k + l] * y[k + l];
    for (; k < n; k++) s[0] += x[k] * y[k];
    return (s[0] + s[1]) + (s[2] + s[3]);
}

/* splitmix64: tiny, seedable, the same everywhere. */
typedef struct fgi_rng {
    uint64_t state;
} fgi_rng;
static inline uint64_t fgi_rng_next(fgi_rng *r) {
    uint64_t z = (r->state += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}
static inline int64_t fgi_rng_below(fgi_rng *r, int64_t n) {
    fgi_assert(n > 0);
    return (int64_t)(fgi_rng_next(r) % (uint64_t)n);
}
static inline double fgi_rng_unit(fgi_rng *r) { return (double)(fgi_rng_next(r) >> 11) * 0x1p-53; }

/* Neumaier's sum: the result does not depend noticeably on the order. -INFINITY is sticky. */
typedef struct fgi_sum {
    double sum, carry;
    int forbidden;
} fgi_sum;
static inline void fgi_sum_add(fgi_sum *sum, double x) {
    if (x == -INFINITY) {
        sum->forbidden = 1;
        return;
    }
    double t = sum->sum + x;
    sum->carry += fabs(sum->sum) >= fabs(x) ? (sum->sum - t) + x : (x - t) + sum->sum;
    sum->sum = t;
}
/* Adds x and says whether the sum is exact. Look after every addition: errors in the carry may cancel later, but digits
 * that it has lost stay lost. */
static inline int fgi_sum_exactly(fgi_sum *sum, double x) {
    fgi_sum_add(sum, x);
    return sum->carry == 0;
}
static inline double fgi_sum_value(const fgi_sum *sum) { return sum->forbidden ? -INFINITY : sum->sum + sum->carry; }
/* Whether sum + carry, whose carry may be off by `error`, is rounded as the exact sum is. */
static inline int fgi_sum_rounds_right(const fgi_sum *sum, double error) {
    const double value = sum->sum + sum->carry, of_carry = value - sum->sum;
    const double left = (sum->sum - (value - of_carry)) + (sum->carry - of_carry); /* exactly (Knuth) */
    return value + (left - error) == value && value + (left + error) == value;
}
/* What sum + carry, before that is rounded, can be off by after n terms: each leaves at most 2^-53 of all magnitudes
 * in the carry, which is rounded n times itself. Four times as much, for a few terms more and a rounded magnitude. */
static inline double fgi_sum_error(int64_t n, double magnitude) { return (double)n * (double)n * 0x1p-104 * magnitude; }

#endif
