/* oracle/search_codes.c - see oracle/search_codes.h. */
#include "oracle/search_codes.h"
#include <float.h>
#include <string.h>
#include "base/util.h"

/* Sums over a chunk of columns fit into 8 bits: 127, less one half for the rounding of each of its 32 tables. */
static const double LARGEST_SUM = 127 - FGI_CODE_CHUNK;
enum { SAMPLED = 16 }; /* one block in so many shows how large guesses are */

/* ---- rotation --------------------------------------------------------------------------------------------------- */

/* Hadamard's matrix over sqrt(n), n a power of two. */
static void hadamard(double *x, int64_t n) {
    for (int64_t half = 1; half < n; half *= 2)
        for (int64_t from = 0; from < n; from += 2 * half)
            for (int64_t k = from; k < from + half; k++) {
                const double a = x[k], b = x[k + half];
                x[k] = a + b;
                x[k + half] = a - b;
            }
    const double scale = 1 / sqrt((double)n);
    for (int64_t k = 0; k < n; k++) x[k] *= scale;
}

/* Random signs and Hadamard's matrix on the first 2^m columns, then the same on the last ones: each is orthogonal, and
 * together they reach every column. */
static void rotate(const fgi_codes *c, double *x) {
    int64_t n = 1;
    while (2 * n <= c->d) n *= 2;
    for (int32_t k = 0; k < c->d; k++) x[k] *= c->flips[k];
    hadamard(x, n);
    for (int32_t k = 0; k < c->d; k++) x[k] *= c->flips[c->d + k];
    hadamard(x + (c->d - n), n);
}

/* ---- codes ------------------------------------------------------------------------------------------------------ */

static int64_t blocks_of(int64_t rows) { return (rows + FGI_CODE_BLOCK - 1) / FGI_CODE_BLOCK; }

void fgi_codes_free(fgi_codes *c) {
    if (!c) return;
    free(c->mean);
    free(c->flips);
    free(c->bits);
    free(c->factor);
    free(c->share);
    free(c->turned);
    free(c->tables);
    free(c);
}

fgi_codes *fgi_codes_create(int64_t rows, int32_t d, int32_t threads, uint64_t seed, double *mean) {
    const int64_t blocks = blocks_of(rows), pieces = ((int64_t)d + 7) / 8;
    int64_t size;
    fgi_codes *c = fgi_calloc(1, sizeof *c);
    if (!c || !fgi_mul(blocks, pieces * FGI_CODE_BLOCK, &size)) {
        free(c);
        free(mean);
        return NULL;
    }
    *c = (fgi_codes){.rows = rows, .pieces = pieces, .d = d, .threads = threads, .mean = mean};
    c->kernels = fgi_kernels_get();
    c->table_size = pieces * 32;
    c->flips = fgi_alloc(2 * (int64_t)d, sizeof *c->flips);
    c->bits = fgi_calloc(size, 1);
    c->factor = fgi_calloc(rows, sizeof *c->factor);
    c->share = fgi_calloc(blocks * FGI_CODE_BLOCK, sizeof *c->share);
    c->turned = fgi_calloc(threads * 8 * pieces, sizeof *c->turned);
    c->tables = fgi_alloc(threads * FGI_CODE_QUERIES * c->table_size, 1);
    if (!c->mean || !c->flips || !c->bits || !c->factor || !c->share || !c->turned || !c->tables) {
        fgi_codes_free(c);
        return NULL;
    }
    fgi_rng rng = {seed};
    for (int64_t k = 0; k < 2 * (int64_t)d; k++) c->flips[k] = fgi_rng_next(&rng) >> 63 ? 1 : -1;
    return c;
}

static int16_t share_of(const fgi_codes *c, int64_t label) {
    return c->largest > 0 ? (int16_t)fgi_smaller(lrint(c->factor[label] / c->largest * 32768), INT16_MAX) : 0;
}

void fgi_codes_set(fgi_codes *c, int32_t label, const float *row, int32_t worker) {
    double *r = c->turned + worker * 8 * c->pieces, square = 0, sum = 0;
    const int64_t block = label / FGI_CODE_BLOCK, at = label % FGI_CODE_BLOCK;
    for (int32_t k = 0; k < c->d; k++) r[k] = row[k] - c->mean[k];
    rotate(c, r);
    for (int32_t k = 0; k < c->d; k++) {
        square += r[k] * r[k];
        sum += fabs(r[k]);
    }
    for (int64_t p = 0; p < c->pieces; p++) {
        unsigned bits = 0;
        for (int k = 0; k < 8; k++) bits |= (unsigned)(r[8 * p + k] > 0) << k;
        c->bits[(block * c->pieces + p) * FGI_CODE_BLOCK + at] = (uint8_t)bits;
    }
    c->factor[label] = sum > 0 ? (float)fgi_smaller(square / sum, FLT_MAX) : 0;
    c->share[label] = share_of(c, label);
}

/* Room for half as much again: factors that grow step by step are seldom the cause of another pass. */
void fgi_codes_rescale(fgi_codes *c) {
    double largest = 0;
    for (int64_t k = 0; k < c->rows; k++) largest = fgi_larger(largest, c->factor[k]);
    c->largest = 1.5 * largest;
    for (int64_t k = 0; k < c->rows; k++) c->share[k] = share_of(c, k);
}

void fgi_codes_update(fgi_codes *c, int32_t label, const float *row) {
    fgi_codes_set(c, label, row, 0);
    if (c->factor[label] > c->largest) fgi_codes_rescale(c);
}

int64_t fgi_codes_memory(const fgi_codes *c) {
    return blocks_of(c->rows) * FGI_CODE_BLOCK * (c->pieces + (int64_t)(sizeof *c->factor + sizeof *c->share)) +
        c->threads * (FGI_CODE_QUERIES * c->table_size + 64 * c->pieces) + 24 * (int64_t)c->d;
}

/* ---- queries ---------------------------------------------------------------------------------------------------- */

/* The tables of a query, in units with which the sums over chunks fill 8 bits. Rows are ranked by the values that the
 * kernel makes of them: <row - mean, x> in some unit, which is all it takes. */
static void prepare(const fgi_codes *c, const float *x, int8_t *table, double *turned) {
    double longest = 0;
    for (int32_t k = 0; k < c->d; k++) turned[k] = x[k];
    rotate(c, turned);
    for (int64_t from = 0; from < c->pieces; from += FGI_CODE_CHUNK) {
        double sum = 0;
        for (int64_t k = 8 * from; k < 8 * c->pieces && k < 8 * (from + FGI_CODE_CHUNK); k++) sum += fabs(turned[k]);
        longest = fgi_larger(longest, sum);
    }
    const double scale = longest > 0 ? LARGEST_SUM / longest : 0;
    for (int64_t half = 0; half < 2 * c->pieces; half++) {
        const double *v = turned + 4 * half;
        for (int code = 0; code < 16; code++) {
            double sum = 0;
            for (int k = 0; k < 4; k++) sum += code >> k & 1 ? v[k] : -v[k];
            table[16 * half + code] = (int8_t)lrint(scale * sum);
        }
    }
}

/* Sums are shifted until they fill 16 bits. */
static int shift_of(const fgi_codes *c) {
    const int64_t chunks = (c->pieces + FGI_CODE_CHUNK - 1) / FGI_CODE_CHUNK;
    int shift = 8;
    while (shift > 0 && (127 * chunks) << shift > INT16_MAX) shift--;
    return shift;
}

static void set_floors(fgi_code_query *q, const fgi_top *top) {
    for (int k = 0; k < q->queries; k++) /* floors are values: whole numbers */
        q->floors[k] = top[k].floor == -INFINITY ? INT16_MIN : (int16_t)top[k].floor;
}

/* The rows of a block that the kernel has found. */
static void offer_found(const fgi_codes *c, const fgi_code_query *q, int64_t block, fgi_top *top) {
    const int64_t first = block * FGI_CODE_BLOCK;
    const uint32_t there = c->rows - first < FGI_CODE_BLOCK ? (1u << (c->rows - first)) - 1 : UINT32_MAX;
    for (int k = 0; k < q->queries; k++)
        for (uint32_t left = q->reached[k] & there; left; left &= left - 1) {
            const int r = __builtin_ctz(left);
            fgi_top_offer(&top[k], q->values[k][r], (int32_t)(first + r));
        }
}

static void offer_all(const fgi_codes *c, fgi_code_query *q, fgi_top *top) {
    const int64_t blocks = blocks_of(c->rows);
    for (int64_t block = 0; block < blocks; block++) {
        set_floors(q, top);
        block = c->kernels->next_codes(q, block, blocks);
        if (block < blocks) offer_found(c, q, block, top);
    }
}

/* Floors from every SAMPLED-th block: of what passes them there are about twice as many as are wanted. Without them
 * most of the time of a scan for hundreds of rows would go into sorting out those that come too early. */
static void sample_floors(const fgi_codes *c, fgi_code_query *q, const int32_t *want, fgi_top *top) {
    for (int k = 0; k < q->queries; k++) {
        const int32_t some = 2 * (want[k] / SAMPLED) + 4;
        fgi_top_clear(&top[k], some < want[k] ? some : want[k], -INFINITY);
    }
    for (int64_t block = 0; block < blocks_of(c->rows); block += SAMPLED) {
        set_floors(q, top);
        if (c->kernels->next_codes(q, block, block + 1) == block) offer_found(c, q, block, top);
    }
    for (int k = 0; k < q->queries; k++) {
        fgi_top_cut(&top[k]);
        fgi_top_clear(&top[k], want[k], top[k].n == top[k].want ? top[k].floor : -INFINITY);
    }
}

void fgi_codes_scan(const fgi_codes *c, int queries, const float *const *x, fgi_top *top, int32_t worker) {
    fgi_code_query q = {
        .bits = c->bits, .factor = c->share, .pieces = c->pieces, .shift = shift_of(c), .queries = queries};
    int32_t want[FGI_CODE_QUERIES];
    int again = 0;
    for (int k = 0; k < queries; k++) {
        int8_t *table = c->tables + (worker * FGI_CODE_QUERIES + k) * c->table_size;
        prepare(c, x[k], table, c->turned + worker * 8 * c->pieces);
        q.tables[k] = table;
        want[k] = top[k].want;
    }
    sample_floors(c, &q, want, top);
    offer_all(c, &q, top);
    for (int k = 0; k < queries; k++) again |= top[k].n < want[k];
    if (!again) return; /* else the sample has misled */
    for (int k = 0; k < queries; k++) fgi_top_clear(&top[k], want[k], -INFINITY);
    offer_all(c, &q, top);
}
