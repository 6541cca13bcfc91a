/* base/kernels_bytes.c - see base/kernels_bytes.h. */
#include "base/kernels_bytes.h"

/* Three roundings, in this order, in every version. */
static float floor_of(const fgi_byte_query *q, float error, float length) {
    const float by_error = q->by_error * error, by_length = q->by_length * length;
    return q->floor - (by_error + by_length);
}

static int32_t sum_of(const uint8_t *row, const int8_t *x, int64_t stride) {
    int32_t sum = 0;
    for (int64_t i = 0; i < stride; i++) sum += row[i] * x[i];
    return sum;
}

int64_t fgi_next_bytes_scalar(fgi_byte_scan *scan, int64_t block, int64_t end) {
    for (; block < end; block++) {
        const uint8_t *rows = scan->codes + block * FGI_BYTE_BLOCK * scan->stride;
        const float *factor = scan->factor + block * FGI_BYTE_BLOCK;
        uint32_t any = 0;
        for (int k = 0; k < scan->queries; k++) {
            fgi_byte_query *q = &scan->q[k];
            const float floor = floor_of(q, scan->error[block], scan->length[block]);
            q->reached = 0;
            for (int r = 0; r < FGI_BYTE_BLOCK; r++) {
                const float value =
                    (float)(sum_of(rows + r * scan->stride, q->x, scan->stride) - q->offset) * factor[r];
                q->reached |= (uint32_t)(value >= floor) << r;
            }
            any |= q->reached;
        }
        if (any) return block;
    }
    return end;
}

void fgi_guess_bytes_scalar(
    const fgi_byte_scan *scan, const fgi_byte_query *q, int64_t n, const int32_t *rows, float *guesses) {
    for (int64_t i = 0; i < n; i++)
        guesses[i] = (float)(sum_of(scan->codes + rows[i] * scan->stride, q->x, scan->width) - q->offset) *
            scan->factor[rows[i]];
}

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>

#define AVX2 __attribute__((target("avx2")))
#define INLINE_AVX2 static inline __attribute__((always_inline, target("avx2")))

/* Products of 32 columns in eight partial sums. */
INLINE_AVX2 __m256i products(const uint8_t *row, __m256i x) {
    const __m256i pairs = _mm256_maddubs_epi16(_mm256_loadu_si256((const __m256i *)row), x);
    return _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
}

INLINE_AVX2 __m256i fold(__m256i a, __m256i b) {
    return _mm256_add_epi32(_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
}

INLINE_AVX2 __m256i fold_pairs(__m256i a, __m256i b) {
    return _mm256_add_epi32(_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b));
}

/* The sums of eight rows, in their order. */
INLINE_AVX2 __m256i block_sums(const uint8_t *rows, int64_t stride, const int8_t *x) {
    __m256i acc[FGI_BYTE_BLOCK];
    for (int r = 0; r < FGI_BYTE_BLOCK; r++) acc[r] = _mm256_setzero_si256();
    for (int64_t i = 0; i < stride; i += 32) {
        const __m256i piece = _mm256_loadu_si256((const __m256i *)(x + i));
        for (int r = 0; r < FGI_BYTE_BLOCK; r++)
            acc[r] = _mm256_add_epi32(acc[r], products(rows + r * stride + i, piece));
    }
    const __m256i low = fold_pairs(fold(acc[0], acc[1]), fold(acc[2], acc[3]));
    const __m256i high = fold_pairs(fold(acc[4], acc[5]), fold(acc[6], acc[7]));
    return _mm256_add_epi32(_mm256_permute2x128_si256(low, high, 0x20), _mm256_permute2x128_si256(low, high, 0x31));
}

AVX2 int64_t fgi_next_bytes_avx2(fgi_byte_scan *scan, int64_t block, int64_t end) {
    for (; block < end; block++) {
        const uint8_t *rows = scan->codes + block * FGI_BYTE_BLOCK * scan->stride;
        const __m256 factor = _mm256_loadu_ps(scan->factor + block * FGI_BYTE_BLOCK);
        uint32_t any = 0;
        for (int k = 0; k < scan->queries; k++) {
            fgi_byte_query *q = &scan->q[k];
            const __m256i sums = _mm256_sub_epi32(block_sums(rows, scan->stride, q->x), _mm256_set1_epi32(q->offset));
            const __m256 floor = _mm256_set1_ps(floor_of(q, scan->error[block], scan->length[block]));
            const __m256 above = _mm256_cmp_ps(_mm256_mul_ps(_mm256_cvtepi32_ps(sums), factor), floor, _CMP_GE_OQ);
            q->reached = (uint32_t)_mm256_movemask_ps(above);
            any |= q->reached;
        }
        if (any) return block;
    }
    return end;
}

AVX2 void fgi_guess_bytes_avx2(
    const fgi_byte_scan *scan, const fgi_byte_query *q, int64_t n, const int32_t *rows, float *guesses) {
    enum {
        AHEAD = 16, /* rows */
        LINE = 64   /* bytes of a cache line */
    };
    for (int64_t i = 0; i < n; i++) {
        if (i + AHEAD < n) {
            for (int64_t at = 0; at < scan->width; at += LINE)
                __builtin_prefetch(scan->codes + rows[i + AHEAD] * scan->stride + at);
            __builtin_prefetch(scan->factor + rows[i + AHEAD]);
        }
        __m256i acc = _mm256_setzero_si256();
        for (int64_t at = 0; at < scan->width; at += 32) {
            const __m256i piece = _mm256_loadu_si256((const __m256i *)(q->x + at));
            acc = _mm256_add_epi32(acc, products(scan->codes + rows[i] * scan->stride + at, piece));
        }
        __m128i four = _mm_add_epi32(_mm256_castsi256_si128(acc), _mm256_extracti128_si256(acc, 1));
        four = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4E));
        const int32_t sum = _mm_cvtsi128_si32(_mm_add_epi32(four, _mm_shuffle_epi32(four, 0xB1)));
        guesses[i] = (float)(sum - q->offset) * scan->factor[rows[i]];
    }
}
#endif
