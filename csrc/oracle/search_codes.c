/* oracle/search_codes.c - see oracle/search_codes.h. */
#include "oracle/search_codes.h"
#include <float.h>
#include <string.h>
#include "base/util.h"

/* Sums over a chunk of columns fit into 8 bits: 127, less one half for the rounding of each of its 32 tables. */
static const double LARGEST_SUM = 127 - FGI_CODE_CHUNK;
enum { SAMPLED = 32 }; /* one block in so many shows how large values are */

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
    free(c->hits);
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

static void set_share(fgi_codes *c, int64_t label) {
    const int64_t first = label / FGI_CODE_BLOCK * FGI_CODE_BLOCK;
    c->share[first + fgi_code_place((int)(label - first))] =
        c->largest > 0 ? (int16_t)fgi_smaller(lrint(c->factor[label] / c->largest * 32768), INT16_MAX) : 0;
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
    set_share(c, label);
}

/* Room for half as much again: factors that grow step by step are seldom the cause of another pass. */
void fgi_codes_rescale(fgi_codes *c) {
    double largest = 0;
    for (int64_t k = 0; k < c->rows; k++) largest = fgi_larger(largest, c->factor[k]);
    c->largest = 1.5 * largest;
    for (int64_t k = 0; k < c->rows; k++) set_share(c, k);
}

void fgi_codes_update(fgi_codes *c, int32_t label, const float *row) {
    fgi_codes_set(c, label, row, 0);
    if (c->factor[label] > c->largest) fgi_codes_rescale(c);
}

int64_t fgi_codes_memory(const fgi_codes *c) {
    return blocks_of(c->rows) * FGI_CODE_BLOCK * (c->pieces + (int64_t)(sizeof *c->factor + sizeof *c->share)) +
        c->threads * (FGI_CODE_QUERIES * (c->table_size + c->room * (int64_t)sizeof *c->hits) + 64 * c->pieces) +
        24 * (int64_t)c->d;
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

/* ---- the best of a list ----------------------------------------------------------------------------------------- */

enum { BINS = 256 };

/* The bin in which the `want`-th largest of the values from `low` to low + width - 1 lies, bins of 2^shift values each;
 * *want becomes its place in that bin. */
static int bin_of(const fgi_code_hit *x, int64_t n, int low, unsigned width, int shift, int64_t *want) {
    int64_t count[BINS] = {0};
    for (int64_t k = 0; k < n; k++) {
        const unsigned at = (unsigned)(x[k].value - low);
        if (at < width) count[at >> shift]++;
    }
    int bin = BINS - 1;
    for (; count[bin] < *want; bin--) *want -= count[bin];
    return bin;
}

/* Cuts a list of more than `want` back to its best ones, of equal values the first; the least value that is left. */
static int16_t keep_best(fgi_code_hit *x, int64_t *n, int64_t want) {
    int low = INT16_MAX, high = INT16_MIN, shift = 0;
    for (int64_t k = 0; k < *n; k++) {
        low = x[k].value < low ? x[k].value : low;
        high = x[k].value > high ? x[k].value : high;
    }
    while ((high - low) >> shift >= BINS) shift++; /* at most 8: a bin has no more values than there are bins */
    int64_t equal = want, kept = 0;
    low += bin_of(x, *n, low, 1u << 16, shift, &equal) * (1 << shift);
    if (shift > 0) low += bin_of(x, *n, low, 1u << shift, 0, &equal);
    for (int64_t k = 0; k < *n; k++) {
        const int take = x[k].value > low || (x[k].value == low && equal > 0);
        equal -= x[k].value == low;
        x[kept] = x[k];
        kept += take;
    }
    *n = kept;
    return (int16_t)low;
}

/* ---- scans ------------------------------------------------------------------------------------------------------ */

/* The best of every step-th block, as many as are wanted or more; lists that fill up are cut back, and let less in. */
static void scan(const fgi_codes *c, fgi_code_query *q, const int64_t *want, int64_t step) {
    const int64_t blocks = blocks_of(c->rows);
    for (int64_t block = 0; block < blocks;) {
        block = c->kernels->collect_codes(q, block, blocks, step);
        for (int k = 0; k < q->queries; k++) {
            while (q->n[k] > 0 && q->hits[k][q->n[k] - 1].row >= c->rows) q->n[k]--; /* behind the last */
            if (q->room[k] - q->n[k] < FGI_CODE_BLOCK && q->n[k] > want[k])
                q->below[k] = keep_best(q->hits[k], &q->n[k], want[k]);
        }
    }
}

static void clear(fgi_code_query *q, int k, int64_t room, int16_t below) {
    q->n[k] = 0;
    q->room[k] = room;
    q->below[k] = below;
}

int fgi_codes_reserve(fgi_codes *c, int64_t want) {
    const int64_t room = 3 * want + 4 * FGI_CODE_BLOCK; /* about two thirds are filled after a sample */
    if (room <= c->room) return 1;
    free(c->hits);
    c->hits = fgi_alloc(c->threads * FGI_CODE_QUERIES * room, sizeof *c->hits);
    c->room = c->hits ? room : 0;
    return c->hits != NULL;
}

/* A sample of the blocks shows how large values are: of those above the last of its best there are about so many as are
 * wanted, and some more for safety. Without it most of the time of a scan for hundreds of rows would go into those that
 * come too early. */
static void sample(const fgi_codes *c, fgi_code_query *q, const int64_t *want) {
    int64_t some[FGI_CODE_QUERIES];
    for (int k = 0; k < q->queries; k++) {
        const double expected = (double)want[k] / SAMPLED;
        some[k] = (int64_t)(expected + 2 * sqrt(expected) + 2);
        clear(q, k, c->room, INT16_MIN);
        if (4 * some[k] + 2 * FGI_CODE_BLOCK < c->room) q->room[k] = 4 * some[k] + 2 * FGI_CODE_BLOCK;
    }
    scan(c, q, some, SAMPLED);
    for (int k = 0; k < q->queries; k++) {
        int16_t below = INT16_MIN;
        if (q->n[k] > some[k] && some[k] < want[k]) below = keep_best(q->hits[k], &q->n[k], some[k]);
        clear(q, k, c->room, below > INT16_MIN ? (int16_t)(below - 1) : below); /* values like the last one's count */
    }
}

void fgi_codes_scan(
    const fgi_codes *c, int queries, const float *const *x, const int32_t *want, fgi_code_list *list, int32_t worker) {
    fgi_code_query q = {
        .bits = c->bits, .factor = c->share, .pieces = c->pieces, .shift = shift_of(c), .queries = queries};
    int64_t all[FGI_CODE_QUERIES];
    int again = 0;
    for (int k = 0; k < queries; k++) {
        int8_t *table = c->tables + (worker * FGI_CODE_QUERIES + k) * c->table_size;
        prepare(c, x[k], table, c->turned + worker * 8 * c->pieces);
        q.tables[k] = table;
        q.hits[k] = c->hits + (worker * FGI_CODE_QUERIES + k) * c->room;
        all[k] = want[k];
    }
    sample(c, &q, all);
    scan(c, &q, all, 1);
    for (int k = 0; k < queries; k++) again |= q.n[k] < all[k];
    if (again) { /* the sample has misled */
        for (int k = 0; k < queries; k++) clear(&q, k, c->room, INT16_MIN);
        scan(c, &q, all, 1);
    }
    for (int k = 0; k < queries; k++) {
        if (q.n[k] > 3 * all[k]) keep_best(q.hits[k], &q.n[k], 3 * all[k]); /* the room is that of other queries, too */
        list[k] = (fgi_code_list){q.hits[k], q.n[k]};
    }
}
