/* viterbi.c - max-plus kernels of the decoders: portable loops and their AVX2 twins.
 *
 * Only maxima are computed on the way up; the argmax is recovered on the way down for the one label that was chosen,
 * which costs K instead of K^2 and leaves two instructions per vector in the inner loop. Rows of the table are taken four
 * at a time, so that large tables are streamed and the row of partial maxima stays in the first cache level. */
#include "viterbi.h"
#include <math.h>

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define FGI_LEARN_AVX2 1
#include <immintrin.h>
#endif

static inline double larger(double x, double y) { return x > y ? x : y; }

static void axpy_plain(int64_t n, double a, const double *x, double *y) {
    for (int64_t k = 0; k < n; k++) y[k] += a * x[k];
}

static void max_columns_plain(int64_t na, int64_t nb, const double *m, const double *T, int64_t stride, double *out) {
    for (int64_t b = 0; b < nb; b++) out[b] = -INFINITY;
    for (int64_t a = 0; a < na; a++) {
        const double ma = m[a], *row = T + a * stride;
        for (int64_t b = 0; b < nb; b++) {
            double v = ma + row[b];
            out[b] = v > out[b] ? v : out[b];
        }
    }
}

static void max_rows_plain(int64_t na, int64_t nb, const double *m, const double *T, int64_t stride, double *out) {
    for (int64_t b = 0; b < nb; b++) {
        const double *row = T + b * stride;
        double best = -INFINITY;
        for (int64_t a = 0; a < na; a++) {
            double v = m[a] + row[a];
            best = v > best ? v : best;
        }
        out[b] = best;
    }
}

#ifdef FGI_LEARN_AVX2
__attribute__((target("avx2"))) static void axpy_avx2(int64_t n, double a, const double *x, double *y) {
    const __m256d va = _mm256_set1_pd(a);
    int64_t k = 0;
    for (; k + 4 <= n; k += 4) /* multiply, then add: no fused operation, so the bits are those of the plain loop */
        _mm256_storeu_pd(y + k, _mm256_add_pd(_mm256_loadu_pd(y + k), _mm256_mul_pd(va, _mm256_loadu_pd(x + k))));
    for (; k < n; k++) y[k] += a * x[k];
}

__attribute__((target("avx2"))) static void max_columns_avx2(int64_t na, int64_t nb, const double *m, const double *T,
                                                             int64_t stride, double *out) {
    for (int64_t b = 0; b < nb; b++) out[b] = -INFINITY;
    int64_t a = 0;
    for (; a + 4 <= na; a += 4) {
        const double *r0 = T + a * stride, *r1 = r0 + stride, *r2 = r1 + stride, *r3 = r2 + stride;
        const __m256d m0 = _mm256_set1_pd(m[a]), m1 = _mm256_set1_pd(m[a + 1]);
        const __m256d m2 = _mm256_set1_pd(m[a + 2]), m3 = _mm256_set1_pd(m[a + 3]);
        int64_t b = 0;
        for (; b + 4 <= nb; b += 4) {
            __m256d x = _mm256_max_pd(_mm256_add_pd(m0, _mm256_loadu_pd(r0 + b)), _mm256_add_pd(m1, _mm256_loadu_pd(r1 + b)));
            __m256d y = _mm256_max_pd(_mm256_add_pd(m2, _mm256_loadu_pd(r2 + b)), _mm256_add_pd(m3, _mm256_loadu_pd(r3 + b)));
            _mm256_storeu_pd(out + b, _mm256_max_pd(_mm256_loadu_pd(out + b), _mm256_max_pd(x, y)));
        }
        for (; b < nb; b++) {
            double x = larger(m[a] + r0[b], m[a + 1] + r1[b]), y = larger(m[a + 2] + r2[b], m[a + 3] + r3[b]);
            out[b] = larger(out[b], larger(x, y));
        }
    }
    for (; a < na; a++) {
        const double *row = T + a * stride;
        const __m256d ma = _mm256_set1_pd(m[a]);
        int64_t b = 0;
        for (; b + 4 <= nb; b += 4)
            _mm256_storeu_pd(out + b, _mm256_max_pd(_mm256_loadu_pd(out + b), _mm256_add_pd(ma, _mm256_loadu_pd(row + b))));
        for (; b < nb; b++) out[b] = larger(out[b], m[a] + row[b]);
    }
}

__attribute__((target("avx2"))) static void max_rows_avx2(int64_t na, int64_t nb, const double *m, const double *T,
                                                          int64_t stride, double *out) {
    for (int64_t b = 0; b < nb; b++) {
        const double *row = T + b * stride;
        __m256d x = _mm256_set1_pd(-INFINITY), y = x;
        int64_t a = 0;
        for (; a + 8 <= na; a += 8) {
            x = _mm256_max_pd(x, _mm256_add_pd(_mm256_loadu_pd(m + a), _mm256_loadu_pd(row + a)));
            y = _mm256_max_pd(y, _mm256_add_pd(_mm256_loadu_pd(m + a + 4), _mm256_loadu_pd(row + a + 4)));
        }
        double lane[4];
        _mm256_storeu_pd(lane, _mm256_max_pd(x, y));
        double best = larger(larger(lane[0], lane[1]), larger(lane[2], lane[3]));
        for (; a < na; a++) best = larger(best, m[a] + row[a]);
        out[b] = best;
    }
}
#endif

fgi_learn_kernels fgi_learn_kernels_choose(void) {
    fgi_learn_kernels k = { axpy_plain, max_columns_plain, max_rows_plain };
#ifdef FGI_LEARN_AVX2
    if (__builtin_cpu_supports("avx2")) {
        k.axpy = axpy_avx2;
        k.max_columns = max_columns_avx2;
        k.max_rows = max_rows_avx2;
    }
#endif
    return k;
}
