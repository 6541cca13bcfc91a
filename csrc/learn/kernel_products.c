/* learn/kernel_products.c - y += a x and y = max(y, a + x), in portable and AVX2 versions with the same bits. */
#include <math.h>
#include "base/cpu.h"
#include "learn/viterbi.h"

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define FGI_LEARN_AVX2 1
#include <immintrin.h>
#endif

static void axpy_plain(int64_t n, double a, const double *x, double *y) {
    for (int64_t k = 0; k < n; k++) y[k] += a * x[k];
}

static double raise_plain(int64_t n, double a, const double *x, double *y) {
    double low = INFINITY;
    for (int64_t k = 0; k < n; k++) {
        y[k] = a + x[k] > y[k] ? a + x[k] : y[k];
        low = y[k] < low ? y[k] : low;
    }
    return low;
}

#ifdef FGI_LEARN_AVX2
__attribute__((target("avx2"))) static void axpy_avx2(int64_t n, double a, const double *x, double *y) {
    const __m256d va = _mm256_set1_pd(a);
    int64_t k = 0;
    for (; k + 4 <= n; k += 4) /* multiply, then add: no fused operation, so the bits are those of the plain loop */
        _mm256_storeu_pd(y + k, _mm256_add_pd(_mm256_loadu_pd(y + k), _mm256_mul_pd(va, _mm256_loadu_pd(x + k))));
    for (; k < n; k++) y[k] += a * x[k];
}

__attribute__((target("avx2"))) static double raise_avx2(int64_t n, double a, const double *x, double *y) {
    const __m256d va = _mm256_set1_pd(a);
    __m256d least = _mm256_set1_pd(INFINITY);
    int64_t k = 0;
    for (; k + 4 <= n; k += 4) {
        const __m256d now = _mm256_max_pd(_mm256_add_pd(va, _mm256_loadu_pd(x + k)), _mm256_loadu_pd(y + k));
        _mm256_storeu_pd(y + k, now);
        least = _mm256_min_pd(now, least);
    }
    double four[4], low = raise_plain(n - k, a, x + k, y + k);
    _mm256_storeu_pd(four, least);
    for (int l = 0; l < 4; l++) low = four[l] < low ? four[l] : low;
    return low;
}
#endif

fgi_learn_kernels fgi_learn_kernels_choose(void) {
    fgi_learn_kernels k = {axpy_plain, raise_plain};
#ifdef FGI_LEARN_AVX2
    if (fgi_cpu_has_avx2()) k = (fgi_learn_kernels){axpy_avx2, raise_avx2};
#endif
    return k;
}
