/* base/sums.c - see base/sums.h. */
#include "base/sums.h"
#include <math.h>
#include <string.h>

/* exp(x) = 2^k exp(r), |r| <= ln 2 / 2: ln 2 in two parts (the first with 21 low bits zero, so that k times it is
 * exact) and the series of exp to the 13th power, whose rest is below 4e-18. Adding 1.5 * 2^52 rounds to a whole
 * number and leaves it in the low bits. */
#define LOG2_E 1.4426950408889634
#define LN2_HIGH 0x1.62e42fee00000p-1
#define LN2_LOW 0x1.a39ef35793c76p-33
#define MAGIC 0x1.8p52
#define LOWEST -707.0 /* exp of less counts as 0 */
static const double SERIES[] = {1.0 / 6227020800.0, 1.0 / 479001600.0, 1.0 / 39916800.0, 1.0 / 3628800.0,
    1.0 / 362880.0, 1.0 / 40320.0, 1.0 / 5040.0, 1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0};
#define TERMS 14

static inline double exp_one(double x) {
    if (!(x >= LOWEST)) return 0.0;
    const double shifted = x * LOG2_E + MAGIC, k = shifted - MAGIC;
    const double r = (x - k * LN2_HIGH) - k * LN2_LOW;
    double p = SERIES[0];
    for (int i = 1; i < TERMS; i++) p = p * r + SERIES[i];
    uint64_t bits;
    memcpy(&bits, &shifted, sizeof bits);
    bits = (bits + 1023) << 52;
    double scale;
    memcpy(&scale, &bits, sizeof scale);
    return p * scale;
}

static void exp_plain(const double *x, int64_t n, double shift, double *out) {
    for (int64_t k = 0; k < n; k++) out[k] = exp_one(x[k] - shift);
}

static void rows_plain(const double *t, int64_t stride, int64_t n_rows, int64_t n_cols, const double *x, double *out) {
    for (int64_t b = 0; b < n_cols; b++) out[b] = 0;
    for (int64_t a = 0; a < n_rows; a++)
        for (int64_t b = 0; b < n_cols; b++) out[b] += x[a] * t[a * stride + b];
}

static void axpy_plain(int64_t n, double a, const double *x, double *y) {
    for (int64_t k = 0; k < n; k++) y[k] += a * x[k];
}

static void outer_plain(double *t, int64_t stride, int64_t n_rows, int64_t n_cols, const double *x, const double *y) {
    for (int64_t a = 0; a < n_rows; a++)
        if (x[a] != 0.0) axpy_plain(n_cols, x[a], y, t + a * stride);
}

static double sum_plain(const double *x, int64_t n) {
    double four[4] = {0, 0, 0, 0};
    int64_t k = 0;
    for (; k + 4 <= n; k += 4)
        for (int l = 0; l < 4; l++) four[l] += x[k + l];
    double rest = 0;
    for (; k < n; k++) rest += x[k];
    return ((four[0] + four[1]) + (four[2] + four[3])) + rest;
}

static double max_plain(const double *x, int64_t n) {
    double most = -INFINITY;
    for (int64_t k = 0; k < n; k++) most = x[k] > most ? x[k] : most;
    return most;
}

const fgi_sum_kernels fgi_sum_kernels_plain = {
    "scalar", exp_plain, rows_plain, outer_plain, axpy_plain, sum_plain, max_plain};

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#include <immintrin.h>
#define AVX2 __attribute__((target("avx2")))

AVX2 static void exp_avx2(const double *x, int64_t n, double shift, double *out) {
    const __m256d down = _mm256_set1_pd(shift), magic = _mm256_set1_pd(MAGIC), lowest = _mm256_set1_pd(LOWEST);
    int64_t k = 0;
    for (; k + 4 <= n; k += 4) {
        const __m256d v = _mm256_sub_pd(_mm256_loadu_pd(x + k), down);
        const __m256d keep = _mm256_cmp_pd(v, lowest, _CMP_GE_OQ);
        const __m256d shifted = _mm256_add_pd(_mm256_mul_pd(v, _mm256_set1_pd(LOG2_E)), magic);
        const __m256d whole = _mm256_sub_pd(shifted, magic);
        const __m256d r = _mm256_sub_pd(_mm256_sub_pd(v, _mm256_mul_pd(whole, _mm256_set1_pd(LN2_HIGH))),
            _mm256_mul_pd(whole, _mm256_set1_pd(LN2_LOW)));
        __m256d p = _mm256_set1_pd(SERIES[0]);
        for (int i = 1; i < TERMS; i++) p = _mm256_add_pd(_mm256_mul_pd(p, r), _mm256_set1_pd(SERIES[i]));
        const __m256i bits =
            _mm256_slli_epi64(_mm256_add_epi64(_mm256_castpd_si256(shifted), _mm256_set1_epi64x(1023)), 52);
        const __m256d value = _mm256_mul_pd(p, _mm256_castsi256_pd(bits));
        _mm256_storeu_pd(out + k, _mm256_and_pd(value, keep));
    }
    for (; k < n; k++) out[k] = exp_one(x[k] - shift);
}

/* Sixteen columns at a time stay in registers while the rows stream by. */
AVX2 static void rows_avx2(
    const double *t, int64_t stride, int64_t n_rows, int64_t n_cols, const double *x, double *out) {
    int64_t b = 0;
    for (; b + 16 <= n_cols; b += 16) {
        __m256d s0 = _mm256_setzero_pd(), s1 = s0, s2 = s0, s3 = s0;
        const double *row = t + b;
        for (int64_t a = 0; a < n_rows; a++, row += stride) {
            const __m256d v = _mm256_set1_pd(x[a]);
            s0 = _mm256_add_pd(s0, _mm256_mul_pd(v, _mm256_loadu_pd(row)));
            s1 = _mm256_add_pd(s1, _mm256_mul_pd(v, _mm256_loadu_pd(row + 4)));
            s2 = _mm256_add_pd(s2, _mm256_mul_pd(v, _mm256_loadu_pd(row + 8)));
            s3 = _mm256_add_pd(s3, _mm256_mul_pd(v, _mm256_loadu_pd(row + 12)));
        }
        _mm256_storeu_pd(out + b, s0), _mm256_storeu_pd(out + b + 4, s1);
        _mm256_storeu_pd(out + b + 8, s2), _mm256_storeu_pd(out + b + 12, s3);
    }
    for (; b + 4 <= n_cols; b += 4) {
        __m256d s0 = _mm256_setzero_pd();
        const double *row = t + b;
        for (int64_t a = 0; a < n_rows; a++, row += stride)
            s0 = _mm256_add_pd(s0, _mm256_mul_pd(_mm256_set1_pd(x[a]), _mm256_loadu_pd(row)));
        _mm256_storeu_pd(out + b, s0);
    }
    if (b < n_cols) {
        double rest[3] = {0, 0, 0};
        for (int64_t a = 0; a < n_rows; a++)
            for (int64_t c = b; c < n_cols; c++) rest[c - b] += x[a] * t[a * stride + c];
        for (int64_t c = b; c < n_cols; c++) out[c] = rest[c - b];
    }
}

AVX2 static void axpy_avx2(int64_t n, double a, const double *x, double *y) {
    const __m256d va = _mm256_set1_pd(a);
    int64_t k = 0;
    for (; k + 4 <= n; k += 4)
        _mm256_storeu_pd(y + k, _mm256_add_pd(_mm256_loadu_pd(y + k), _mm256_mul_pd(va, _mm256_loadu_pd(x + k))));
    for (; k < n; k++) y[k] += a * x[k];
}

AVX2 static void outer_avx2(
    double *t, int64_t stride, int64_t n_rows, int64_t n_cols, const double *x, const double *y) {
    for (int64_t a = 0; a < n_rows; a++)
        if (x[a] != 0.0) axpy_avx2(n_cols, x[a], y, t + a * stride);
}

AVX2 static double sum_avx2(const double *x, int64_t n) {
    __m256d s = _mm256_setzero_pd();
    int64_t k = 0;
    for (; k + 4 <= n; k += 4) s = _mm256_add_pd(s, _mm256_loadu_pd(x + k));
    double four[4], rest = 0;
    _mm256_storeu_pd(four, s);
    for (; k < n; k++) rest += x[k];
    return ((four[0] + four[1]) + (four[2] + four[3])) + rest;
}

AVX2 static double max_avx2(const double *x, int64_t n) {
    if (n < 4) return max_plain(x, n);
    __m256d s = _mm256_loadu_pd(x);
    int64_t k = 4;
    for (; k + 4 <= n; k += 4) s = _mm256_max_pd(_mm256_loadu_pd(x + k), s);
    double four[4], most = max_plain(x + k, n - k);
    _mm256_storeu_pd(four, s);
    for (int l = 0; l < 4; l++) most = four[l] > most ? four[l] : most;
    return most;
}

static const fgi_sum_kernels avx2 = {"avx2", exp_avx2, rows_avx2, outer_avx2, axpy_avx2, sum_avx2, max_avx2};
#endif

const fgi_sum_kernels *fgi_sum_kernels_best(void) {
#ifdef AVX2
    if (__builtin_cpu_supports("avx2")) return &avx2;
#endif
    return &fgi_sum_kernels_plain;
}
