/* The kernels under maximum inner-product search against their scalar versions and the definition, and the best of a
 * stream. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/kernels.h"
#include "base/kernels_bytes.h"
#include "base/kernels_codes.h"
#include "base/kernels_dots.h"
#include "check.h"
#include "search_draws.h"

static int test_dots(fgi_rng *rng) {
    enum { MOST = 11 };
    const fgi_kernels *best = fgi_kernels_best();
    for (int64_t d = 1; d <= 35; d++)
        for (int64_t n = 0; n <= MOST; n++) {
            const int64_t stride = d + fgi_rng_below(rng, 4);
            float *rows = draw_many(rng, n ? (n - 1) * stride + d : 1, 0), *queries[4];
            float plain[4][MOST], fast[4][MOST], single[MOST];
            for (int q = 0; q < 4; q++) REQUIRE(queries[q] = draw_many(rng, d, 0));
            REQUIRE(rows);
            const float *x[4] = {queries[0], queries[1], queries[2], queries[3]};
            float *to_plain[4] = {plain[0], plain[1], plain[2], plain[3]};
            float *to_fast[4] = {fast[0], fast[1], fast[2], fast[3]};
            fgi_dots4_scalar(rows, n, stride, d, x, to_plain);
            best->dots4(rows, n, stride, d, x, to_fast);
            for (int q = 0; q < 4; q++) {
                CHECK(!memcmp(plain[q], fast[q], (size_t)n * sizeof(float)));
                fgi_dots_scalar(rows, n, stride, d, x[q], single);
                CHECK(!memcmp(plain[q], single, (size_t)n * sizeof(float)));
                best->dots(rows, n, stride, d, x[q], single);
                CHECK(!memcmp(plain[q], single, (size_t)n * sizeof(float)));
                for (int64_t r = 0; r < n; r++) {
                    double sum = 0;
                    for (int64_t k = 0; k < d; k++) sum += (double)rows[r * stride + k] * x[q][k];
                    CHECK(fabs(sum - plain[q][r]) <= 1e-6 * (double)d);
                }
                free(queries[q]);
            }
            free(rows);
        }
    return 0;
}

/* Random bits, factors and tables that fit into 8 bits over a chunk: both versions find the same rows and values, and
 * stop when a list is full. */
static int test_codes(fgi_rng *rng) {
    enum { BLOCKS = 5, MOST = 40, ROOM = 3 * FGI_CODE_BLOCK };
    static fgi_code_hit one[FGI_CODE_QUERIES][ROOM], two[FGI_CODE_QUERIES][ROOM];
    for (int round = 0; round < 300; round++) {
        const int64_t pieces = 1 + fgi_rng_below(rng, MOST), step = 1 + fgi_rng_below(rng, 2);
        fgi_code_query a = {.pieces = pieces, .shift = (int)fgi_rng_below(rng, 6), .queries = 1 + round % 4};
        a.parts = 1 + (int)fgi_rng_below(rng, pieces < FGI_CODE_PARTS ? pieces : FGI_CODE_PARTS);
        a.first = (int)fgi_rng_below(rng, a.parts);
        a.last = a.first + 1 + (int)fgi_rng_below(rng, a.parts - a.first);
        for (int j = 0; j < a.parts; j++) a.cut[j] = pieces * (j + 1) / a.parts;
        if (pieces <= FGI_CODE_CHUNK && round % 2) a.shift = 8;
        uint8_t *bits = fgi_alloc(BLOCKS * pieces * FGI_CODE_BLOCK, 1);
        int8_t *tables = fgi_alloc(FGI_CODE_QUERIES * pieces * 32, 1);
        int16_t factor[BLOCKS * FGI_CODE_BLOCK * FGI_CODE_PARTS];
        REQUIRE(bits && tables);
        for (int64_t k = 0; k < BLOCKS * pieces * FGI_CODE_BLOCK; k++) bits[k] = (uint8_t)fgi_rng_next(rng);
        for (int64_t k = 0; k < FGI_CODE_QUERIES * pieces * 32; k++) tables[k] = (int8_t)(fgi_rng_below(rng, 7) - 3);
        for (int k = 0; k < BLOCKS * FGI_CODE_BLOCK * FGI_CODE_PARTS; k++)
            factor[k] = (int16_t)fgi_rng_below(rng, 32768);
        a.bits = bits;
        a.factor = factor;
        for (int k = 0; k < FGI_CODE_QUERIES; k++) {
            a.tables[k] = tables + k * pieces * 32;
            a.below[k] = round % 5 ? (int16_t)(fgi_rng_below(rng, 4000) - 500) : INT16_MIN;
            for (int j = 0; j < a.parts; j++) a.less[k][j] = round % 3 ? (int16_t)(fgi_rng_below(rng, 2000) - 500) : 0;
            a.hits[k] = one[k];
            a.room[k] = ROOM;
        }
        fgi_code_query b = a;
        for (int k = 0; k < FGI_CODE_QUERIES; k++) b.hits[k] = two[k];
        const int64_t end = fgi_collect_codes_scalar(&a, 0, BLOCKS, step);
        REQUIRE(fgi_kernels_best()->collect_codes(&b, 0, BLOCKS, step) == end);
        for (int k = 0; k < a.queries; k++) {
            int64_t n = 0;
            REQUIRE(a.n[k] == b.n[k]);
            for (int64_t row = 0; row < end * FGI_CODE_BLOCK && row < BLOCKS * FGI_CODE_BLOCK; row++) {
                const int64_t block = row / FGI_CODE_BLOCK, r = row % FGI_CODE_BLOCK;
                if (block % step) continue;
                double value = -INFINITY;
                for (int j = a.first; j < a.last; j++) {
                    const int64_t at = (block * a.parts + j) * FGI_CODE_BLOCK + fgi_code_place((int)r);
                    int sum = 0;
                    for (int64_t p = j ? a.cut[j - 1] : 0; p < a.cut[j]; p++) {
                        const uint8_t both = bits[(block * pieces + p) * FGI_CODE_BLOCK + r];
                        sum += a.tables[k][p * 32 + (both & 15)] + a.tables[k][p * 32 + 16 + (both >> 4)];
                    }
                    value = fmax(value, ldexp((double)sum, a.shift) * factor[at] / 32768 - a.less[k][j]);
                }
                if (n < a.n[k] && a.hits[k][n].row == row) {
                    CHECK(a.hits[k][n].row == b.hits[k][n].row && a.hits[k][n].value == b.hits[k][n].value);
                    CHECK(fabs(value - a.hits[k][n].value) <= 0.5);
                    n++;
                } else {
                    CHECK(value <= a.below[k] + 0.5);
                }
            }
            CHECK(n == a.n[k]);
        }
        free(bits);
        free(tables);
    }
    return 0;
}

/* Rows of bytes: both versions reach the same rows, which are those that the sums say. */
static int test_bytes(fgi_rng *rng) {
    enum { BLOCKS = 6, ROWS = BLOCKS * FGI_BYTE_BLOCK };
    for (int round = 0; round < 200; round++) {
        const int64_t stride = 32 * (1 + fgi_rng_below(rng, 9));
        uint8_t *codes = fgi_alloc(ROWS * stride, 1);
        int8_t *x = fgi_alloc(FGI_BYTE_QUERIES * stride, 1);
        float factor[ROWS], error[BLOCKS], length[BLOCKS];
        REQUIRE(codes && x);
        for (int64_t k = 0; k < ROWS * stride; k++) codes[k] = (uint8_t)(round % 3 ? 1 + fgi_rng_below(rng, 255) : 255);
        for (int64_t k = 0; k < FGI_BYTE_QUERIES * stride; k++)
            x[k] = (int8_t)(round % 3 ? fgi_rng_below(rng, 127) - 63 : round % 2 ? 63 : -63);
        for (int k = 0; k < ROWS; k++) factor[k] = (float)fgi_rng_below(rng, 9);
        for (int k = 0; k < BLOCKS; k++) error[k] = length[k] = (float)fgi_rng_below(rng, 9);
        fgi_byte_scan a = {codes, stride, stride, factor, error, length, 1 + round % FGI_BYTE_QUERIES, {{0}}};
        for (int k = 0; k < a.queries; k++)
            a.q[k] = (fgi_byte_query){x + k * stride, (int32_t)fgi_rng_below(rng, 1000), 1e5f * (float)(round % 7),
                (float)fgi_rng_below(rng, 3), (float)fgi_rng_below(rng, 3), 0};
        fgi_byte_scan b = a;
        for (int64_t at = 0; at < BLOCKS; at++) {
            const int64_t next = fgi_next_bytes_scalar(&a, at, BLOCKS);
            REQUIRE(fgi_kernels_best()->next_bytes(&b, at, BLOCKS) == next);
            at = next;
            for (int k = 0; at < BLOCKS && k < a.queries; k++) {
                int32_t rows[FGI_BYTE_BLOCK];
                float one[FGI_BYTE_BLOCK], two[FGI_BYTE_BLOCK];
                const float least = a.q[k].floor - (a.q[k].by_error * error[at] + a.q[k].by_length * length[at]);
                for (int r = 0; r < FGI_BYTE_BLOCK; r++) rows[r] = (int32_t)(at * FGI_BYTE_BLOCK + r);
                fgi_guess_bytes_scalar(&a, &a.q[k], FGI_BYTE_BLOCK, rows, one);
                fgi_kernels_best()->guess_bytes(&b, &b.q[k], FGI_BYTE_BLOCK, rows, two);
                CHECK(a.q[k].reached == b.q[k].reached);
                CHECK(!memcmp(one, two, sizeof one));
                for (int r = 0; r < FGI_BYTE_BLOCK; r++) CHECK((a.q[k].reached >> r & 1) == (one[r] >= least));
            }
        }
        free(codes);
        free(x);
    }
    return 0;
}

/* ---- the best of a stream --------------------------------------------------------------------------------------- */

static int test_top(fgi_rng *rng) {
    enum { MOST = 400 };
    fgi_ranked_label all[MOST];
    fgi_top top = {0};
    for (int round = 0; round < 300; round++) {
        const int32_t n = (int32_t)fgi_rng_below(rng, MOST + 1), want = 1 + (int32_t)fgi_rng_below(rng, 90);
        REQUIRE(fgi_top_reserve(&top, want));
        fgi_top_clear(&top, want, -INFINITY);
        for (int32_t k = 0; k < n; k++) {
            all[k] = (fgi_ranked_label){(double)fgi_rng_below(rng, 60), (k * 7 + 3) % MOST}; /* ties, out of order */
            fgi_top_offer(&top, all[k].value, all[k].label);
        }
        fgi_top_sort(&top);
        qsort(all, (size_t)n, sizeof *all, ranked);
        REQUIRE(top.n == (n < want ? n : want));
        for (int32_t k = 0; k < top.n; k++)
            CHECK(top.items[k].value == all[k].value && top.items[k].label == all[k].label);
    }
    fgi_top_free(&top);
    return 0;
}

int main(void) {
    fgi_rng rng = {15};
    if (test_dots(&rng) || test_codes(&rng) || test_bytes(&rng) || test_top(&rng)) return 1;
    return failed();
}
