/* base/kernels_dots.c - see base/kernels_dots.h. */
#include "base/kernels_dots.h"

static float dot(const float *a, const float *b, int64_t d) {
    float s[8] = {0};
    int64_t i = 0;
    for (; i + 8 <= d; i += 8)
        for (int l = 0; l < 8; l++) s[l] += a[i + l] * b[i + l];
    for (int l = 0; i < d && l < 8; l++) s[l] += i + l < d ? a[i + l] * b[i + l] : 0.0f;
    return ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]));
}

void fgi_dots_scalar(const float *rows, int64_t n, int64_t stride, int64_t d, const float *x, float *out) {
    for (int64_t r = 0; r < n; r++) out[r] = dot(rows + r * stride, x, d);
}

void fgi_dots4_scalar(
    const float *rows, int64_t n, int64_t stride, int64_t d, const float *const x[4], float *const out[4]) {
    for (int64_t r = 0; r < n; r++)
        for (int q = 0; q < 4; q++) out[q][r] = dot(rows + r * stride, x[q], d);
}

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>

#define AVX2 __attribute__((target("avx2")))
#define INLINE_AVX2 static inline __attribute__((always_inline, target("avx2")))

/* Lanes of the last, incomplete, piece of a row. */
INLINE_AVX2 __m256i tail_mask(int64_t d) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)(d & 7)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

/* Four sums of eight lanes each, in the order of the definition. */
INLINE_AVX2 __m128 reduce4(__m256 a, __m256 b, __m256 c, __m256 d) {
    __m256 t = _mm256_hadd_ps(_mm256_hadd_ps(a, b), _mm256_hadd_ps(c, d));
    return _mm_add_ps(_mm256_castps256_ps128(t), _mm256_extractf128_ps(t, 1));
}

/* acc[q][r] += x[q] * rows[r], for constant numbers of queries and rows: they stay in registers. */
INLINE_AVX2 void accumulate(const float *rows, int64_t stride, int64_t d, const float *const *x, int queries, int n,
    __m256i tail, __m256 acc[4][4]) {
    for (int q = 0; q < queries; q++)
        for (int r = 0; r < n; r++) acc[q][r] = _mm256_setzero_ps();
    int64_t i = 0;
    for (; i + 8 <= d; i += 8)
        for (int r = 0; r < n; r++) {
            const __m256 row = _mm256_loadu_ps(rows + r * stride + i);
            for (int q = 0; q < queries; q++)
                acc[q][r] = _mm256_add_ps(acc[q][r], _mm256_mul_ps(row, _mm256_loadu_ps(x[q] + i)));
        }
    if (i < d)
        for (int r = 0; r < n; r++) {
            const __m256 row = _mm256_maskload_ps(rows + r * stride + i, tail);
            for (int q = 0; q < queries; q++)
                acc[q][r] = _mm256_add_ps(acc[q][r], _mm256_mul_ps(row, _mm256_maskload_ps(x[q] + i, tail)));
        }
}

AVX2 void fgi_dots_avx2(const float *rows, int64_t n, int64_t stride, int64_t d, const float *x, float *out) {
    const __m256i tail = tail_mask(d);
    __m256 acc[4][4];
    int64_t r = 0;
    for (; r + 4 <= n; r += 4) {
        accumulate(rows + r * stride, stride, d, &x, 1, 4, tail, acc);
        _mm_storeu_ps(out + r, reduce4(acc[0][0], acc[0][1], acc[0][2], acc[0][3]));
    }
    for (; r < n; r++) {
        accumulate(rows + r * stride, stride, d, &x, 1, 1, tail, acc);
        out[r] = _mm_cvtss_f32(reduce4(acc[0][0], acc[0][0], acc[0][0], acc[0][0]));
    }
}

AVX2 void fgi_dots4_avx2(
    const float *rows, int64_t n, int64_t stride, int64_t d, const float *const x[4], float *const out[4]) {
    const __m256i tail = tail_mask(d);
    __m256 acc[4][4];
    int64_t r = 0;
    for (; r + 2 <= n; r += 2) {
        accumulate(rows + r * stride, stride, d, x, 4, 2, tail, acc);
        float both[8];
        _mm_storeu_ps(both, reduce4(acc[0][0], acc[0][1], acc[1][0], acc[1][1]));
        _mm_storeu_ps(both + 4, reduce4(acc[2][0], acc[2][1], acc[3][0], acc[3][1]));
        for (int q = 0; q < 4; q++) {
            out[q][r] = both[2 * q];
            out[q][r + 1] = both[2 * q + 1];
        }
    }
    for (; r < n; r++) {
        accumulate(rows + r * stride, stride, d, x, 4, 1, tail, acc);
        float one[4];
        _mm_storeu_ps(one, reduce4(acc[0][0], acc[1][0], acc[2][0], acc[3][0]));
        for (int q = 0; q < 4; q++) out[q][r] = one[q];
    }
}
#endif
