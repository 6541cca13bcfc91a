/* learn_kernels.c - y += a x, in a portable and an AVX2 version with the same bits; for the scores of tokens. */
#include "viterbi.h"

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define FGI_LEARN_AVX2 1
#include <immintrin.h>
#endif

static void axpy_plain(int64_t n, double a, const double *x, double *y) {
    for (int64_t k = 0; k < n; k++) y[k] += a * x[k];
}

#ifdef FGI_LEARN_AVX2
__attribute__((target("avx2"))) static void axpy_avx2(int64_t n, double a, const double *x, double *y) {
    const __m256d va = _mm256_set1_pd(a);
    int64_t k = 0;
    for (; k + 4 <= n; k += 4) /* multiply, then add: no fused operation, so the bits are those of the plain loop */
        _mm256_storeu_pd(y + k, _mm256_add_pd(_mm256_loadu_pd(y + k), _mm256_mul_pd(va, _mm256_loadu_pd(x + k))));
    for (; k < n; k++) y[k] += a * x[k];
}
#endif

fgi_learn_kernels fgi_learn_kernels_choose(void) {
    fgi_learn_kernels k = { axpy_plain };
#ifdef FGI_LEARN_AVX2
    if (__builtin_cpu_supports("avx2")) k.axpy = axpy_avx2;
#endif
    return k;
}
