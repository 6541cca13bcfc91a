/* base/sums.c - see base/sums.h. */
#include "base/sums.h"
#include "base/cpu.h"
#include <math.h>
#include <string.h>

/* exp(x) = 2^k exp(r), |r| <= ln 2 / 2: ln 2 in two parts (the first with 21 low bits zero, so that k times it is
 * exact) and the series of exp to the 13th power, whose rest is below 4e-18. Adding 1.5 * 2^52 rounds to a whole
 * number and leaves it in the low bits. */
#define LOG2_E 1.4426950408889634     /* 1 / ln 2 */
#define LN2_HIGH 0x1.62e42fee00000p-1 /* ln 2 to 32 bits */
#define LN2_LOW 0x1.a39ef35793c76p-33 /* the rest of ln 2 */
#define MAGIC 0x1.8p52                /* 1.5 * 2^52 */
#define LOWEST -707.0                 /* exp of less counts as 0 */
static const double SERIES[] = {1.0 / 6227020800.0, 1.0 / 479001600.0, 1.0 / 39916800.0, 1.0 / 3628800.0,
    1.0 / 362880.0, 1.0 / 40320.0, 1.0 / 5040.0, 1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0};
#define TERMS 14 /* terms of the series */

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

static void gather_plain(const double *t, int64_t width, const int32_t *at, const double *x, int64_t n, double *out) {
    for (int64_t e = 0; e < n; e++) axpy_plain(width, x ? x[e] : 1.0, t + at[e] * width, out);
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

static double min_plain(const double *x, int64_t n) {
    double least = INFINITY;
    for (int64_t k = 0; k < n; k++) least = x[k] < least ? x[k] : least;
    return least;
}

const fgi_sum_kernels fgi_sum_kernels_plain = {
    "scalar", exp_plain, rows_plain, outer_plain, axpy_plain, gather_plain, sum_plain, max_plain, min_plain};

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#include <immintrin.h>
#define AVX2 __attribute__((target("avx2")))
#define INLINE AVX2 static inline __attribute__((always_inline))
/* Labels are often few and not a multiple of four. What is left over is done by one more vector that ends where the
 * array does: it repeats some columns, with the same bits, from values read before they were overwritten. */

INLINE __m256d exp_four(__m256d v) {
    const __m256d magic = _mm256_set1_pd(MAGIC);
    const __m256d keep = _mm256_cmp_pd(v, _mm256_set1_pd(LOWEST), _CMP_GE_OQ);
    const __m256d shifted = _mm256_add_pd(_mm256_mul_pd(v, _mm256_set1_pd(LOG2_E)), magic);
    const __m256d whole = _mm256_sub_pd(shifted, magic);
    const __m256d r = _mm256_sub_pd(_mm256_sub_pd(v, _mm256_mul_pd(whole, _mm256_set1_pd(LN2_HIGH))),
        _mm256_mul_pd(whole, _mm256_set1_pd(LN2_LOW)));
    __m256d p = _mm256_set1_pd(SERIES[0]);
    for (int i = 1; i < TERMS; i++) p = _mm256_add_pd(_mm256_mul_pd(p, r), _mm256_set1_pd(SERIES[i]));
    const __m256i bits =
        _mm256_slli_epi64(_mm256_add_epi64(_mm256_castpd_si256(shifted), _mm256_set1_epi64x(1023)), 52);
    return _mm256_and_pd(_mm256_mul_pd(p, _mm256_castsi256_pd(bits)), keep);
}

AVX2 static void exp_avx2(const double *x, int64_t n, double shift, double *out) {
    if (n < 4) {
        exp_plain(x, n, shift, out);
        return;
    }
    const __m256d down = _mm256_set1_pd(shift), last = _mm256_sub_pd(_mm256_loadu_pd(x + n - 4), down);
    int64_t k = 0;
    for (; k + 4 <= n; k += 4) _mm256_storeu_pd(out + k, exp_four(_mm256_sub_pd(_mm256_loadu_pd(x + k), down)));
    if (k < n) _mm256_storeu_pd(out + n - 4, exp_four(last));
}

/* The columns of `vectors` registers; the last one begins at column `last`. */
#define MOST 6
#define AT(i) ((i) + 1 < vectors ? 4 * (i) : last)

INLINE void rows_block(
    const double *t, int64_t stride, int64_t n_rows, const double *x, double *out, const int vectors, int64_t last) {
    __m256d s[MOST];
    for (int i = 0; i < vectors; i++) s[i] = _mm256_setzero_pd();
    for (int64_t a = 0; a < n_rows; a++, t += stride) {
        const __m256d v = _mm256_set1_pd(x[a]);
        for (int i = 0; i < vectors; i++) s[i] = _mm256_add_pd(s[i], _mm256_mul_pd(v, _mm256_loadu_pd(t + AT(i))));
    }
    for (int i = 0; i < vectors; i++) _mm256_storeu_pd(out + AT(i), s[i]);
}

INLINE void gather_block(const double *t, int64_t width, const int32_t *at, const double *x, int64_t n, double *out,
    const int vectors, int64_t last) {
    __m256d s[MOST];
    for (int i = 0; i < vectors; i++) s[i] = _mm256_loadu_pd(out + AT(i));
    for (int64_t e = 0; e < n; e++) {
        const double *row = t + at[e] * width;
        if (x) {
            const __m256d v = _mm256_set1_pd(x[e]);
            for (int i = 0; i < vectors; i++)
                s[i] = _mm256_add_pd(s[i], _mm256_mul_pd(v, _mm256_loadu_pd(row + AT(i))));
        } else
            for (int i = 0; i < vectors; i++) s[i] = _mm256_add_pd(s[i], _mm256_loadu_pd(row + AT(i)));
    }
    for (int i = 0; i < vectors; i++) _mm256_storeu_pd(out + AT(i), s[i]);
}

INLINE void outer_block(
    double *t, int64_t stride, int64_t n_rows, const double *x, const double *y, const int vectors, int64_t last) {
    __m256d v[MOST];
    for (int i = 0; i < vectors; i++) v[i] = _mm256_loadu_pd(y + AT(i));
    for (int64_t a = 0; a < n_rows; a++, t += stride) {
        const __m256d va = _mm256_set1_pd(x[a]), end = _mm256_loadu_pd(t + last);
        if (x[a] == 0.0) continue;
        for (int i = 0; i + 1 < vectors; i++)
            _mm256_storeu_pd(t + 4 * i, _mm256_add_pd(_mm256_loadu_pd(t + 4 * i), _mm256_mul_pd(va, v[i])));
        _mm256_storeu_pd(t + last, _mm256_add_pd(end, _mm256_mul_pd(va, v[vectors - 1])));
    }
}

/* CALL(vectors, last) for the block of `left` columns, 4 to 24 of them. */
#define BY_VECTORS(left, CALL)         \
    switch (((left) + 3) / 4) {        \
    case 1: CALL(1, (left)-4); break;  \
    case 2: CALL(2, (left)-4); break;  \
    case 3: CALL(3, (left)-4); break;  \
    case 4: CALL(4, (left)-4); break;  \
    case 5: CALL(5, (left)-4); break;  \
    default: CALL(6, (left)-4); break; \
    }

AVX2 static void rows_avx2(
    const double *t, int64_t stride, int64_t n_rows, int64_t n_cols, const double *x, double *out) {
    if (n_cols < 4) {
        rows_plain(t, stride, n_rows, n_cols, x, out);
        return;
    }
    for (int64_t b = 0; b < n_cols; b += 4 * MOST) {
        if (n_cols - b < 4) b = n_cols - 4;
        const int64_t left = n_cols - b < 4 * MOST ? n_cols - b : 4 * MOST;
#define CALL(vectors, last) rows_block(t + b, stride, n_rows, x, out + b, vectors, last)
        BY_VECTORS(left, CALL)
#undef CALL
    }
}

AVX2 static void gather_avx2(
    const double *t, int64_t width, const int32_t *at, const double *x, int64_t n, double *out) {
    if (width < 4) {
        gather_plain(t, width, at, x, n, out);
        return;
    }
    double rest[4]; /* a short last block would begin inside the one before, whose columns are done by then */
    const int64_t full = width / (4 * MOST) * (4 * MOST), few = width - full < 4 ? width - full : 0;
    for (int64_t b = 0; b < few; b++) rest[b] = out[full + b];
    for (int64_t b = 0; b < width - few; b += 4 * MOST) {
        const int64_t left = width - few - b < 4 * MOST ? width - few - b : 4 * MOST;
#define CALL(vectors, last) gather_block(t + b, width, at, x, n, out + b, vectors, last)
        BY_VECTORS(left, CALL)
#undef CALL
    }
    for (int64_t b = 0; b < few; b++) {
        for (int64_t e = 0; e < n; e++) rest[b] += (x ? x[e] : 1.0) * t[at[e] * width + full + b];
        out[full + b] = rest[b];
    }
}

AVX2 static void axpy_avx2(int64_t n, double a, const double *x, double *y) {
    if (n < 4) {
        axpy_plain(n, a, x, y);
        return;
    }
    const __m256d va = _mm256_set1_pd(a), end = _mm256_loadu_pd(y + n - 4);
    int64_t k = 0;
    for (; k + 4 <= n; k += 4)
        _mm256_storeu_pd(y + k, _mm256_add_pd(_mm256_loadu_pd(y + k), _mm256_mul_pd(va, _mm256_loadu_pd(x + k))));
    if (k < n) _mm256_storeu_pd(y + n - 4, _mm256_add_pd(end, _mm256_mul_pd(va, _mm256_loadu_pd(x + n - 4))));
}

AVX2 static void outer_avx2(
    double *t, int64_t stride, int64_t n_rows, int64_t n_cols, const double *x, const double *y) {
    if (n_cols >= 4 && n_cols <= 4 * MOST) {
#define CALL(vectors, last) outer_block(t, stride, n_rows, x, y, vectors, last)
        BY_VECTORS(n_cols, CALL)
#undef CALL
        return;
    }
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
    const __m256d least = _mm256_set1_pd(-INFINITY); /* the second of a pair with NaN counts: NaN is left out */
    __m256d s = _mm256_max_pd(_mm256_loadu_pd(x + n - 4), least);
    for (int64_t k = 0; k + 4 <= n; k += 4) s = _mm256_max_pd(_mm256_loadu_pd(x + k), s);
    double four[4];
    _mm256_storeu_pd(four, s);
    return max_plain(four, 4);
}

AVX2 static double min_avx2(const double *x, int64_t n) {
    if (n < 4) return min_plain(x, n);
    __m256d s = _mm256_min_pd(_mm256_loadu_pd(x + n - 4), _mm256_set1_pd(INFINITY));
    for (int64_t k = 0; k + 4 <= n; k += 4) s = _mm256_min_pd(_mm256_loadu_pd(x + k), s);
    double four[4];
    _mm256_storeu_pd(four, s);
    return min_plain(four, 4);
}

static const fgi_sum_kernels avx2 = {
    "avx2", exp_avx2, rows_avx2, outer_avx2, axpy_avx2, gather_avx2, sum_avx2, max_avx2, min_avx2};
#endif

const fgi_sum_kernels *fgi_sum_kernels_best(void) {
#ifdef AVX2
    if (fgi_cpu_has_avx2()) return &avx2;
#endif
    return &fgi_sum_kernels_plain;
}
