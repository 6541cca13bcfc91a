/* base/kernels_codes.c - see base/kernels_codes.h. */
#include "base/kernels_codes.h"

static int full(const fgi_code_query *q, int queries) {
    for (int k = 0; k < queries; k++)
        if (q->room[k] - q->n[k] < FGI_CODE_BLOCK) return 1;
    return 0;
}

static int64_t begin_of(const fgi_code_query *q, int part) { return part > 0 ? q->cut[part - 1] : 0; }

static int16_t limited(int sum) { return (int16_t)(sum > INT16_MAX ? INT16_MAX : sum < INT16_MIN ? INT16_MIN : sum); }

static int16_t sum_of(const uint8_t *bits, int64_t begin, int64_t end, const int8_t *table) {
    int16_t sum = 0;
    for (int64_t from = begin; from < end; from += FGI_CODE_CHUNK) {
        int chunk = 0;
        for (int64_t p = from; p < end && p < from + FGI_CODE_CHUNK; p++) {
            const uint8_t both = bits[p * FGI_CODE_BLOCK];
            chunk += table[p * 32 + (both & 15)] + table[p * 32 + 16 + (both >> 4)];
        }
        sum = limited(sum + chunk);
    }
    return sum;
}

/* Row r of a block, for query k. */
static int16_t value_of(const fgi_code_query *q, int64_t block, int r, int k) {
    const uint8_t *bits = q->bits + block * FGI_CODE_BLOCK * q->pieces + r;
    int16_t best = INT16_MIN;
    for (int part = q->first; part < q->last; part++) {
        const int sum = sum_of(bits, begin_of(q, part), q->cut[part], q->tables[k]) * (1 << q->shift);
        const int16_t factor = q->factor[(block * q->parts + part) * FGI_CODE_BLOCK + fgi_code_place(r)];
        const int scaled = sum * factor + (1 << 14); /* below 2^30 */
        const int16_t value = limited((scaled >= 0 ? scaled >> 15 : ~(~scaled >> 15)) - q->less[k][part]);
        best = value > best ? value : best;
    }
    return best;
}

int64_t fgi_collect_codes_scalar(fgi_code_query *q, int64_t block, int64_t end, int64_t step) {
    for (; block < end && !full(q, q->queries); block += step)
        for (int k = 0; k < q->queries; k++)
            for (int r = 0; r < FGI_CODE_BLOCK; r++) {
                const int16_t value = value_of(q, block, r, k);
                if (value > q->below[k])
                    q->hits[k][q->n[k]++] = (fgi_code_hit){(int32_t)(block * FGI_CODE_BLOCK + r), value};
            }
    return block;
}

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>

#define AVX2 __attribute__((target("avx2")))
#define INLINE_AVX2 static inline __attribute__((always_inline, target("avx2")))
/* A loop over queries must be no loop: all stays in registers. */
#define UNROLL _Pragma("GCC unroll 4")

/* The values of a block's rows, in two halves, in the order of fgi_code_place. */
typedef struct values {
    __m256i low, high;
} values;

INLINE_AVX2 __m256i table_at(const int8_t *t) {
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)t));
}

/* Sums in 8 bits over pieces `from` to `to`. */
INLINE_AVX2 void chunk_sums(
    const fgi_code_query *q, const uint8_t *bits, int64_t from, int64_t to, int queries, __m256i *sums) {
    const __m256i half = _mm256_set1_epi8(15);
    UNROLL for (int k = 0; k < queries; k++) sums[k] = _mm256_setzero_si256();
    for (int64_t p = from; p < to; p++) {
        const __m256i both = _mm256_loadu_si256((const __m256i *)(bits + p * FGI_CODE_BLOCK));
        const __m256i first = _mm256_and_si256(both, half);
        const __m256i second = _mm256_and_si256(_mm256_srli_epi16(both, 4), half);
        UNROLL for (int k = 0; k < queries; k++) {
            const int8_t *t = q->tables[k] + p * 32;
            sums[k] = _mm256_add_epi8(sums[k],
                _mm256_add_epi8(
                    _mm256_shuffle_epi8(table_at(t), first), _mm256_shuffle_epi8(table_at(t + 16), second)));
        }
    }
}

/* The values of one part, from sums that have been shifted. */
INLINE_AVX2 values part_values(const fgi_code_query *q, int k, int64_t block, int part, __m256i low, __m256i high) {
    const int16_t *factor = q->factor + (block * q->parts + part) * FGI_CODE_BLOCK;
    const __m256i less = _mm256_set1_epi16(q->less[k][part]);
    low = _mm256_mulhrs_epi16(low, _mm256_loadu_si256((const __m256i *)factor));
    high = _mm256_mulhrs_epi16(high, _mm256_loadu_si256((const __m256i *)(factor + 16)));
    return (values){_mm256_subs_epi16(low, less), _mm256_subs_epi16(high, less)};
}

/* The bytes of a block become the high halves of 16 bits. */
INLINE_AVX2 void part_of_block(const fgi_code_query *q, int64_t block, int part, int queries, values *out) {
    const uint8_t *bits = q->bits + block * FGI_CODE_BLOCK * q->pieces;
    const int64_t begin = part > 0 ? q->cut[part - 1] : 0, end = q->cut[part];
    const __m256i zero = _mm256_setzero_si256();
    __m256i sums[FGI_CODE_QUERIES], low[FGI_CODE_QUERIES], high[FGI_CODE_QUERIES];
    if (end - begin <= FGI_CODE_CHUNK && q->shift == 8) {
        chunk_sums(q, bits, begin, end, queries, sums);
        UNROLL for (int k = 0; k < queries; k++) out[k] =
            part_values(q, k, block, part, _mm256_unpacklo_epi8(zero, sums[k]), _mm256_unpackhi_epi8(zero, sums[k]));
        return;
    }
    const __m128i shift = _mm_cvtsi32_si128(q->shift);
    UNROLL for (int k = 0; k < queries; k++) low[k] = high[k] = zero;
    for (int64_t from = begin; from < end; from += FGI_CODE_CHUNK) {
        chunk_sums(q, bits, from, from + FGI_CODE_CHUNK < end ? from + FGI_CODE_CHUNK : end, queries, sums);
        UNROLL for (int k = 0; k < queries; k++) {
            low[k] = _mm256_adds_epi16(low[k], _mm256_srai_epi16(_mm256_unpacklo_epi8(zero, sums[k]), 8));
            high[k] = _mm256_adds_epi16(high[k], _mm256_srai_epi16(_mm256_unpackhi_epi8(zero, sums[k]), 8));
        }
    }
    UNROLL for (int k = 0; k < queries; k++) out[k] =
        part_values(q, k, block, part, _mm256_sll_epi16(low[k], shift), _mm256_sll_epi16(high[k], shift));
}

/* The rows of a block whose values count. */
INLINE_AVX2 void append(fgi_code_query *q, int k, int64_t block, values v) {
    const __m256i below = _mm256_set1_epi16(q->below[k]);
    const __m256i above = _mm256_packs_epi16(_mm256_cmpgt_epi16(v.low, below), _mm256_cmpgt_epi16(v.high, below));
    uint32_t left = (uint32_t)_mm256_movemask_epi8(above);
    if (__builtin_expect(left == 0, 1)) return;
    int16_t all[FGI_CODE_BLOCK];
    _mm256_storeu_si256((__m256i *)all, v.low);
    _mm256_storeu_si256((__m256i *)(all + 16), v.high);
    for (; left; left &= left - 1) {
        const int r = __builtin_ctz(left);
        q->hits[k][q->n[k]++] = (fgi_code_hit){(int32_t)(block * FGI_CODE_BLOCK + r), all[fgi_code_place(r)]};
    }
}

INLINE_AVX2 void collect_block(fgi_code_query *q, int64_t block, int queries) {
    values best[FGI_CODE_QUERIES], next[FGI_CODE_QUERIES];
    part_of_block(q, block, q->first, queries, best);
    for (int part = q->first + 1; part < q->last; part++) {
        part_of_block(q, block, part, queries, next);
        UNROLL for (int k = 0; k < queries; k++) best[k] =
            (values){_mm256_max_epi16(best[k].low, next[k].low), _mm256_max_epi16(best[k].high, next[k].high)};
    }
    UNROLL for (int k = 0; k < queries; k++) append(q, k, block, best[k]);
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
