/* base/kernels_codes.c - see base/kernels_codes.h. */
#include "base/kernels_codes.h"

static int16_t limited(int sum) { return (int16_t)(sum > INT16_MAX ? INT16_MAX : sum < INT16_MIN ? INT16_MIN : sum); }

static int16_t sum_of(const uint8_t *bits, int64_t pieces, const int8_t *table) {
    int16_t sum = 0;
    for (int64_t from = 0; from < pieces; from += FGI_CODE_CHUNK) {
        int part = 0;
        for (int64_t p = from; p < pieces && p < from + FGI_CODE_CHUNK; p++) {
            const uint8_t both = bits[p * FGI_CODE_BLOCK];
            part += table[p * 32 + (both & 15)] + table[p * 32 + 16 + (both >> 4)];
        }
        sum = limited(sum + part);
    }
    return sum;
}

int64_t fgi_next_codes_scalar(fgi_code_query *q, int64_t block, int64_t end) {
    for (; block < end; block++) {
        uint32_t any = 0;
        for (int k = 0; k < q->queries; k++) {
            q->reached[k] = 0;
            for (int r = 0; r < FGI_CODE_BLOCK; r++) {
                const int64_t first = block * FGI_CODE_BLOCK;
                const int sum = sum_of(q->bits + first * q->pieces + r, q->pieces, q->tables[k]) * (1 << q->shift);
                const int value = sum * q->factor[first + r] + (1 << 14); /* below 2^30 */
                q->values[k][r] = (int16_t)(value >= 0 ? value >> 15 : ~(~value >> 15));
                q->reached[k] |= (uint32_t)(q->values[k][r] >= q->floors[k]) << r;
            }
            any |= q->reached[k];
        }
        if (any) return block;
    }
    return end;
}

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>

#define AVX2 __attribute__((target("avx2")))
#define INLINE_AVX2 static inline __attribute__((always_inline, target("avx2")))

INLINE_AVX2 __m256i table_at(const int8_t *t) {
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)t));
}

/* For a constant number of queries: the sums stay in registers. */
INLINE_AVX2 void block_sums(
    const fgi_code_query *q, const uint8_t *bits, int queries, __m256i low[FGI_CODE_QUERIES], __m256i high[4]) {
    const __m256i half = _mm256_set1_epi8(15);
    for (int k = 0; k < queries; k++) low[k] = high[k] = _mm256_setzero_si256();
    for (int64_t from = 0; from < q->pieces; from += FGI_CODE_CHUNK) {
        const int64_t to = from + FGI_CODE_CHUNK < q->pieces ? from + FGI_CODE_CHUNK : q->pieces;
        __m256i part[FGI_CODE_QUERIES];
        for (int k = 0; k < queries; k++) part[k] = _mm256_setzero_si256();
        for (int64_t p = from; p < to; p++) {
            const __m256i both = _mm256_loadu_si256((const __m256i *)(bits + p * FGI_CODE_BLOCK));
            const __m256i first = _mm256_and_si256(both, half);
            const __m256i second = _mm256_and_si256(_mm256_srli_epi16(both, 4), half);
            for (int k = 0; k < queries; k++) {
                const int8_t *t = q->tables[k] + p * 32;
                part[k] = _mm256_add_epi8(part[k], _mm256_shuffle_epi8(table_at(t), first));
                part[k] = _mm256_add_epi8(part[k], _mm256_shuffle_epi8(table_at(t + 16), second));
            }
        }
        for (int k = 0; k < queries; k++) {
            low[k] = _mm256_adds_epi16(low[k], _mm256_cvtepi8_epi16(_mm256_castsi256_si128(part[k])));
            high[k] = _mm256_adds_epi16(high[k], _mm256_cvtepi8_epi16(_mm256_extracti128_si256(part[k], 1)));
        }
    }
}

INLINE_AVX2 int64_t next_codes(fgi_code_query *q, int64_t block, int64_t end, int queries) {
    __m256i low[FGI_CODE_QUERIES], high[FGI_CODE_QUERIES];
    const __m128i shift = _mm_cvtsi32_si128(q->shift);
    for (; block < end; block++) {
        const int64_t first = block * FGI_CODE_BLOCK;
        const __m256i factor_low = _mm256_loadu_si256((const __m256i *)(q->factor + first));
        const __m256i factor_high = _mm256_loadu_si256((const __m256i *)(q->factor + first + 16));
        uint32_t any = 0;
        block_sums(q, q->bits + first * q->pieces, queries, low, high);
        for (int k = 0; k < queries; k++) {
            const __m256i floor = _mm256_set1_epi16(q->floors[k]);
            low[k] = _mm256_mulhrs_epi16(_mm256_sll_epi16(low[k], shift), factor_low);
            high[k] = _mm256_mulhrs_epi16(_mm256_sll_epi16(high[k], shift), factor_high);
            const __m256i below =
                _mm256_packs_epi16(_mm256_cmpgt_epi16(floor, low[k]), _mm256_cmpgt_epi16(floor, high[k]));
            q->reached[k] = ~(uint32_t)_mm256_movemask_epi8(_mm256_permute4x64_epi64(below, 0xD8)); /* back in order */
            any |= q->reached[k];
        }
        if (!any) continue;
        for (int k = 0; k < queries; k++) {
            _mm256_storeu_si256((__m256i *)q->values[k], low[k]);
            _mm256_storeu_si256((__m256i *)(q->values[k] + 16), high[k]);
        }
        return block;
    }
    return end;
}

AVX2 int64_t fgi_next_codes_avx2(fgi_code_query *q, int64_t block, int64_t end) {
    switch (q->queries) {
    case 1: return next_codes(q, block, end, 1);
    case 2: return next_codes(q, block, end, 2);
    case 3: return next_codes(q, block, end, 3);
    default: return next_codes(q, block, end, 4);
    }
}
#endif
