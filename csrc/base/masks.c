/* base/masks.c - see base/masks.h. */
#include "base/masks.h"
#include <string.h>
#include "base/cpu.h"

static void spread_plain(const uint64_t *words, const int32_t *at, const double *x, int64_t n, double *out) {
    memset(out, 0, FGI_MASK_PLACES * sizeof *out);
    for (int64_t k = 0; k < n; k++)
        for (uint64_t bits = words[at[k]]; bits; bits &= bits - 1) out[__builtin_ctzll(bits)] += x[k];
}

static void collect_plain(const uint64_t *words, const int32_t *at, int64_t n, const double *value, double *lanes) {
    for (int64_t k = 0; k < n; k++, lanes += FGI_MASK_LANES)
        for (uint64_t bits = words[at[k]]; bits; bits &= bits - 1) {
            const int p = __builtin_ctzll(bits);
            lanes[p % FGI_MASK_LANES] += value[p];
        }
}

static const fgi_mask_kernels plain = {"scalar", spread_plain, collect_plain};

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#include <immintrin.h>
#define AVX2 __attribute__((target("avx2")))
#define AVX512 __attribute__((target("avx512f")))

/* Four bits as four lanes. */
#define B(x, k) ((x) >> (k)&1 ? -1 : 0)
#define LANES(x) \
    { B(x, 0), B(x, 1), B(x, 2), B(x, 3) }
static const int64_t MASK[16][4] = {LANES(0), LANES(1), LANES(2), LANES(3), LANES(4), LANES(5), LANES(6), LANES(7),
    LANES(8), LANES(9), LANES(10), LANES(11), LANES(12), LANES(13), LANES(14), LANES(15)};

#define PICK(v, bits) _mm256_and_pd(v, _mm256_castsi256_pd(_mm256_loadu_si256((const __m256i *)MASK[(bits)&15])))

AVX2 static void spread_avx2(const uint64_t *words, const int32_t *at, const double *x, int64_t n, double *out) {
    for (int half = 0; half < 64; half += 32) { /* eight registers at a time */
        __m256d s[8];
        for (int i = 0; i < 8; i++) s[i] = _mm256_setzero_pd();
        for (int64_t k = 0; k < n; k++) {
            const __m256d v = _mm256_set1_pd(x[k]);
            const uint64_t bits = words[at[k]] >> half;
            for (int i = 0; i < 8; i++) s[i] = _mm256_add_pd(s[i], PICK(v, bits >> 4 * i));
        }
        for (int i = 0; i < 8; i++) _mm256_storeu_pd(out + half + 4 * i, s[i]);
    }
}

AVX2 static void collect_avx2(const uint64_t *words, const int32_t *at, int64_t n, const double *value, double *lanes) {
    for (int64_t k = 0; k < n; k++, lanes += FGI_MASK_LANES) {
        const uint64_t bits = words[at[k]];
        __m256d low = _mm256_loadu_pd(lanes), high = _mm256_loadu_pd(lanes + 4);
        for (int p = 0; p < FGI_MASK_PLACES; p += 8) {
            low = _mm256_add_pd(low, PICK(_mm256_loadu_pd(value + p), bits >> p));
            high = _mm256_add_pd(high, PICK(_mm256_loadu_pd(value + p + 4), bits >> (p + 4)));
        }
        _mm256_storeu_pd(lanes, low);
        _mm256_storeu_pd(lanes + 4, high);
    }
}

AVX512 static void spread_avx512(const uint64_t *words, const int32_t *at, const double *x, int64_t n, double *out) {
    __m512d s[8];
    for (int i = 0; i < 8; i++) s[i] = _mm512_setzero_pd();
    for (int64_t k = 0; k < n; k++) {
        const __m512d v = _mm512_set1_pd(x[k]);
        const uint64_t bits = words[at[k]];
        for (int i = 0; i < 8; i++) s[i] = _mm512_mask_add_pd(s[i], (__mmask8)(bits >> 8 * i), s[i], v);
    }
    for (int i = 0; i < 8; i++) _mm512_storeu_pd(out + 8 * i, s[i]);
}

AVX512 static void collect_avx512(
    const uint64_t *words, const int32_t *at, int64_t n, const double *value, double *lanes) {
    __m512d v[8];
    for (int i = 0; i < 8; i++) v[i] = _mm512_loadu_pd(value + 8 * i);
    for (int64_t k = 0; k < n; k++, lanes += FGI_MASK_LANES) {
        const uint64_t bits = words[at[k]];
        __m512d s = _mm512_loadu_pd(lanes);
        for (int i = 0; i < 8; i++) s = _mm512_mask_add_pd(s, (__mmask8)(bits >> 8 * i), s, v[i]);
        _mm512_storeu_pd(lanes, s);
    }
}

static const fgi_mask_kernels avx2 = {"avx2", spread_avx2, collect_avx2};
static const fgi_mask_kernels avx512 = {"avx512", spread_avx512, collect_avx512};
#endif

const fgi_mask_kernels *const *fgi_mask_kernels_all(void) {
#ifdef AVX2
    static const fgi_mask_kernels *const all[] = {&avx512, &avx2, &plain, NULL};
    return fgi_cpu_has_avx512() ? all : fgi_cpu_has_avx2() ? all + 1 : all + 2;
#else
    static const fgi_mask_kernels *const all[] = {&plain, NULL};
    return all;
#endif
}
