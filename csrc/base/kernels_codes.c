/* base/kernels_codes.c - see base/kernels_codes.h. */
#include "base/kernels_codes.h"

static int full(const fgi_code_query *q, int queries) {
    for (int k = 0; k < queries; k++)
        if (q->room[k] - q->n[k] < FGI_CODE_BLOCK) return 1;
    return 0;
}

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

int64_t fgi_collect_codes_scalar(fgi_code_query *q, int64_t block, int64_t end, int64_t step) {
    for (; block < end && !full(q, q->queries); block += step)
        for (int k = 0; k < q->queries; k++)
            for (int r = 0; r < FGI_CODE_BLOCK; r++) {
                const int64_t first = block * FGI_CODE_BLOCK;
                const int sum = sum_of(q->bits + first * q->pieces + r, q->pieces, q->tables[k]) * (1 << q->shift);
                const int scaled = sum * q->factor[first + fgi_code_place(r)] + (1 << 14); /* below 2^30 */
                const int16_t value = (int16_t)(scaled >= 0 ? scaled >> 15 : ~(~scaled >> 15));
                if (value > q->below[k]) q->hits[k][q->n[k]++] = (fgi_code_hit){(int32_t)(first + r), value};
            }
    return block;
}

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>

#define AVX2 __attribute__((target("avx2")))
#define INLINE_AVX2 static inline __attribute__((always_inline, target("avx2")))

INLINE_AVX2 __m256i table_at(const int8_t *t) {
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)t));
}

/* Sums in 8 bits over pieces `from` to `to`. A constant number of queries: all stays in registers. */
INLINE_AVX2 void chunk_sums(
    const fgi_code_query *q, const uint8_t *bits, int64_t from, int64_t to, int queries, __m256i *part) {
    const __m256i half = _mm256_set1_epi8(15);
    for (int k = 0; k < queries; k++) part[k] = _mm256_setzero_si256();
    for (int64_t p = from; p < to; p++) {
        const __m256i both = _mm256_loadu_si256((const __m256i *)(bits + p * FGI_CODE_BLOCK));
        const __m256i first = _mm256_and_si256(both, half);
        const __m256i second = _mm256_and_si256(_mm256_srli_epi16(both, 4), half);
        for (int k = 0; k < queries; k++) {
            const int8_t *t = q->tables[k] + p * 32;
            part[k] = _mm256_add_epi8(part[k],
                _mm256_add_epi8(
                    _mm256_shuffle_epi8(table_at(t), first), _mm256_shuffle_epi8(table_at(t + 16), second)));
        }
    }
}

/* The rows of a block whose values, from sums that have been shifted, count. */
INLINE_AVX2 void append(fgi_code_query *q, int k, int64_t block, __m256i low, __m256i high) {
    const int64_t first = block * FGI_CODE_BLOCK;
    const __m256i below = _mm256_set1_epi16(q->below[k]);
    low = _mm256_mulhrs_epi16(low, _mm256_loadu_si256((const __m256i *)(q->factor + first)));
    high = _mm256_mulhrs_epi16(high, _mm256_loadu_si256((const __m256i *)(q->factor + first + 16)));
    const __m256i above = _mm256_packs_epi16(_mm256_cmpgt_epi16(low, below), _mm256_cmpgt_epi16(high, below));
    uint32_t left = (uint32_t)_mm256_movemask_epi8(above);
    if (__builtin_expect(left == 0, 1)) return;
    int16_t values[FGI_CODE_BLOCK];
    _mm256_storeu_si256((__m256i *)values, low);
    _mm256_storeu_si256((__m256i *)(values + 16), high);
    for (; left; left &= left - 1) {
        const int r = __builtin_ctz(left);
        q->hits[k][q->n[k]++] = (fgi_code_hit){(int32_t)(first + r), values[fgi_code_place(r)]};
    }
}

/* The bytes of a block become the high halves of 16 bits, in the order of fgi_code_place. */
INLINE_AVX2 void collect_block(fgi_code_query *q, int64_t block, int queries) {
    const uint8_t *bits = q->bits + block * FGI_CODE_BLOCK * q->pieces;
    const __m256i zero = _mm256_setzero_si256();
    __m256i low[FGI_CODE_QUERIES], high[FGI_CODE_QUERIES], part[FGI_CODE_QUERIES];
    if (q->pieces <= FGI_CODE_CHUNK && q->shift == 8) {
        chunk_sums(q, bits, 0, q->pieces, queries, part);
        for (int k = 0; k < queries; k++)
            append(q, k, block, _mm256_unpacklo_epi8(zero, part[k]), _mm256_unpackhi_epi8(zero, part[k]));
        return;
    }
    const __m128i shift = _mm_cvtsi32_si128(q->shift);
    for (int k = 0; k < queries; k++) low[k] = high[k] = zero;
    for (int64_t from = 0; from < q->pieces; from += FGI_CODE_CHUNK) {
        const int64_t to = from + FGI_CODE_CHUNK < q->pieces ? from + FGI_CODE_CHUNK : q->pieces;
        chunk_sums(q, bits, from, to, queries, part);
        for (int k = 0; k < queries; k++) {
            low[k] = _mm256_adds_epi16(low[k], _mm256_srai_epi16(_mm256_unpacklo_epi8(zero, part[k]), 8));
            high[k] = _mm256_adds_epi16(high[k], _mm256_srai_epi16(_mm256_unpackhi_epi8(zero, part[k]), 8));
        }
    }
    for (int k = 0; k < queries; k++)
        append(q, k, block, _mm256_sll_epi16(low[k], shift), _mm256_sll_epi16(high[k], shift));
}

INLINE_AVX2 int64_t collect(fgi_code_query *q, int64_t block, int64_t end, int64_t step, int queries) {
    for (; block < end && !full(q, queries); block += step) collect_block(q, block, queries);
    return block;
}

AVX2 int64_t fgi_collect_codes_avx2(fgi_code_query *q, int64_t block, int64_t end, int64_t step) {
    switch (q->queries) {
    case 1: return collect(q, block, end, step, 1);
    case 2: return collect(q, block, end, step, 2);
    case 3: return collect(q, block, end, step, 3);
    default: return collect(q, block, end, step, 4);
    }
}
#endif
