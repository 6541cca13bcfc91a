/* oracle/search_codes.c - see oracle/search_codes.h. */
#include "oracle/search_codes.h"
#include <float.h>
#include <string.h>
#include "base/util.h"

/* Sums over a chunk of columns fit into 8 bits: 127, less one half for the rounding of each of its 32 tables. */
static const double LARGEST_SUM = 127 - FGI_CODE_CHUNK;
enum { SAMPLED = 16 }; /* one block in so many shows how large values are */

/* ---- rotation --------------------------------------------------------------------------------------------------- */

/* Hadamard's matrix over eight groups of numbers, x[k], x[k + step], ..., for all k below step. */
static void hadamard8(double *restrict x, int64_t step) {
    for (int64_t k = 0; k < step; k++) {
        double *at = x + k;
        const double a = at[0] + at[step], b = at[0] - at[step], c = at[2 * step] + at[3 * step];
        const double d = at[2 * step] - at[3 * step], e = at[4 * step] + at[5 * step], f = at[4 * step] - at[5 * step];
        const double g = at[6 * step] + at[7 * step], h = at[6 * step] - at[7 * step];
        at[0] = (a + c) + (e + g);
        at[step] = (b + d) + (f + h);
        at[2 * step] = (a - c) + (e - g);
        at[3 * step] = (b - d) + (f - h);
        at[4 * step] = (a + c) - (e + g);
        at[5 * step] = (b + d) - (f + h);
        at[6 * step] = (a - c) - (e - g);
        at[7 * step] = (b - d) - (f - h);
    }
}

/* Hadamard's matrix, n a power of two: eight at a time as long as that fits, what is left in pairs. */
static void hadamard(double *x, int64_t n) {
    int64_t step = 1;
    for (; 8 * step <= n; step *= 8)
        for (int64_t from = 0; from < n; from += 8 * step) hadamard8(x + from, step);
    for (; step < n; step *= 2)
        for (int64_t from = 0; from < n; from += 2 * step)
            for (int64_t k = from; k < from + step; k++) {
                const double a = x[k], b = x[k + step];
                x[k] = a + b;
                x[k + step] = a - b;
            }
}

/* The largest power of two in d. */
static int64_t span_of(int32_t d) {
    int64_t n = 1;
    while (2 * n <= d) n *= 2;
    return n;
}

/* Random signs and Hadamard's matrix on the first 2^m columns, then the same on the last ones: each is orthogonal (but
 * for a factor, which the signs have), and together they reach every column. */
static void rotate(const fgi_codes *c, int32_t part, double *x) {
    const int32_t d = c->begin[part + 1] - c->begin[part];
    const int64_t n = span_of(d);
    const double *flips = c->flips + c->begin[part];
    for (int32_t k = 0; k < d; k++) x[k] *= flips[k];
    hadamard(x, n);
    for (int32_t k = 0; k < d; k++) x[k] *= flips[c->d + k];
    hadamard(x + (d - n), n);
}

/* Where a part's numbers begin in c->turned: parts are whole pieces there. */
static int64_t place_of(const fgi_codes *c, int32_t part) { return part > 0 ? 8 * c->cut[part - 1] : 0; }

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

/* The pieces of all parts. */
static int64_t cut_columns(fgi_codes *c) {
    int64_t pieces = 0;
    for (int32_t part = 0; part < c->parts; part++) {
        c->begin[part + 1] = (int32_t)((int64_t)c->d * (part + 1) / c->parts);
        pieces += (c->begin[part + 1] - c->begin[part] + 7) / 8;
        c->cut[part] = pieces;
    }
    return pieces;
}

/* Signs at random; where Hadamard's matrix follows, over the square root of its size. */
static void set_flips(fgi_codes *c, uint64_t seed) {
    fgi_rng rng = {seed};
    for (int64_t k = 0; k < 2 * (int64_t)c->d; k++) c->flips[k] = fgi_rng_next(&rng) >> 63 ? 1 : -1;
    for (int32_t part = 0; part < c->parts; part++) {
        const int32_t begin = c->begin[part], end = c->begin[part + 1];
        const int64_t n = span_of(end - begin);
        for (int64_t k = 0; k < n; k++) {
            c->flips[begin + k] /= sqrt((double)n);
            c->flips[c->d + end - n + k] /= sqrt((double)n);
        }
    }
}

fgi_codes *fgi_codes_create(int64_t rows, int32_t d, int32_t parts, int32_t threads, uint64_t seed, double *mean) {
    const int64_t blocks = blocks_of(rows);
    int64_t size, pieces = 0;
    fgi_codes *c = fgi_calloc(1, sizeof *c);
    if (c) {
        *c = (fgi_codes){.rows = rows, .d = d, .parts = parts, .threads = threads, .mean = mean};
        c->pieces = pieces = cut_columns(c);
    }
    if (!c || !fgi_mul(blocks, pieces * FGI_CODE_BLOCK, &size)) {
        free(c);
        free(mean);
        return NULL;
    }
    c->kernels = fgi_kernels_get();
    c->table_size = pieces * 32;
    c->flips = fgi_alloc(2 * (int64_t)d, sizeof *c->flips);
    c->bits = fgi_calloc(size, 1);
    c->factor = fgi_calloc(rows * parts, sizeof *c->factor);
    c->share = fgi_calloc(blocks * parts * FGI_CODE_BLOCK, sizeof *c->share);
    c->turned = fgi_calloc(threads * 8 * pieces, sizeof *c->turned);
    c->tables = fgi_alloc(threads * FGI_CODE_QUERIES * c->table_size, 1);
    if (!c->mean || !c->flips || !c->bits || !c->factor || !c->share || !c->turned || !c->tables) {
        fgi_codes_free(c);
        return NULL;
    }
    set_flips(c, seed);
    return c;
}

static void set_share(fgi_codes *c, int64_t label) {
    const int64_t block = label / FGI_CODE_BLOCK, at = fgi_code_place((int)(label % FGI_CODE_BLOCK));
    for (int32_t part = 0; part < c->parts; part++) {
        const double share = c->largest > 0 ? c->factor[label * c->parts + part] / c->largest * 32768 : 0;
        c->share[(block * c->parts + part) * FGI_CODE_BLOCK + at] = (int16_t)lrint(fgi_smaller(share, INT16_MAX));
    }
}

/* c->turned gets the numbers of one part, rotated; the factor that fits their signs. */
static float turn(const fgi_codes *c, int32_t part, const float *row, double *r) {
    const int32_t begin = c->begin[part], d = c->begin[part + 1] - begin;
    double square = 0, sum = 0;
    for (int32_t k = 0; k < d; k++) r[k] = row[begin + k] - c->mean[begin + k];
    rotate(c, part, r);
    for (int32_t k = 0; k < d; k++) {
        square += r[k] * r[k];
        sum += fabs(r[k]);
    }
    return sum > 0 ? (float)fgi_smaller(square / sum, FLT_MAX) : 0;
}

void fgi_codes_set(fgi_codes *c, int32_t label, const float *row, int32_t worker) {
    double *r = c->turned + worker * 8 * c->pieces;
    const int64_t block = label / FGI_CODE_BLOCK, at = label % FGI_CODE_BLOCK;
    for (int32_t part = 0; part < c->parts; part++)
        c->factor[(int64_t)label * c->parts + part] = turn(c, part, row, r + place_of(c, part));
    for (int64_t p = 0; p < c->pieces; p++) {
        unsigned bits = 0;
        for (int k = 0; k < 8; k++) bits |= (unsigned)(r[8 * p + k] > 0) << k;
        c->bits[(block * c->pieces + p) * FGI_CODE_BLOCK + at] = (uint8_t)bits;
    }
    set_share(c, label);
}

/* Room for half as much again: factors that grow step by step are seldom the cause of another pass. */
void fgi_codes_rescale(fgi_codes *c) {
    double largest = 0;
    for (int64_t k = 0; k < c->rows * c->parts; k++) largest = fgi_larger(largest, c->factor[k]);
    c->largest = 1.5 * largest;
    for (int64_t k = 0; k < c->rows; k++) set_share(c, k);
}

void fgi_codes_update(fgi_codes *c, int32_t label, const float *row) {
    fgi_codes_set(c, label, row, 0);
    for (int32_t part = 0; part < c->parts; part++)
        if (c->factor[(int64_t)label * c->parts + part] > c->largest) {
            fgi_codes_rescale(c);
            return;
        }
}

int64_t fgi_codes_memory(const fgi_codes *c) {
    return blocks_of(c->rows) * FGI_CODE_BLOCK *
        (c->pieces + c->parts * (int64_t)(sizeof *c->factor + sizeof *c->share)) +
        c->threads * (FGI_CODE_QUERIES * (c->table_size + c->room * (int64_t)sizeof *c->hits) + 64 * c->pieces) +
        24 * (int64_t)c->d;
}

/* ---- queries ---------------------------------------------------------------------------------------------------- */

/* The tables of a query, in units with which the sums over chunks fill 8 bits. Rows are ranked by the values that the
 * kernel makes of them: <row - mean, x> in some unit, which is all it takes. */
static void prepare(const fgi_codes *c, const float *x, int8_t *table, double *turned) {
    double longest = 0;
    for (int32_t part = 0; part < c->parts; part++) {
        double *v = turned + place_of(c, part);
        const int32_t begin = c->begin[part], d = c->begin[part + 1] - begin;
        for (int32_t k = 0; k < d; k++) v[k] = x[begin + k];
        rotate(c, part, v);
        for (int64_t from = 0; from < d; from += 8 * FGI_CODE_CHUNK) {
            double sum = 0;
            for (int64_t k = from; k < d && k < from + 8 * FGI_CODE_CHUNK; k++) sum += fabs(v[k]);
            longest = fgi_larger(longest, sum);
        }
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
    int64_t chunks = 1;
    for (int32_t part = 0; part < c->parts; part++) {
        const int64_t pieces = c->cut[part] - place_of(c, part) / 8,
                      here = (pieces + FGI_CODE_CHUNK - 1) / FGI_CODE_CHUNK;
        chunks = here > chunks ? here : chunks;
    }
    int shift = 8;
    while (shift > 0 && (127 * chunks) << shift > INT16_MAX) shift--;
    return shift;
}

/* ---- the best of a list ----------------------------------------------------------------------------------------- */

enum { BINS = 256 }; /* bins of values: two rounds of them tell 16 bits apart */

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
    /* about two thirds are filled after a sample */
    const int64_t room = 3 * want * c->parts + 4 * FGI_CODE_BLOCK;
    if (room <= c->room) return 1;
    free(c->hits);
    c->hits = fgi_alloc(c->threads * FGI_CODE_QUERIES * room, sizeof *c->hits);
    c->room = c->hits ? room : 0;
    return c->hits != NULL;
}

/* A sample of the blocks shows how large values are: of those above the last of its best there are about so many as are
 * wanted, and some more for safety. Without it most of the time of a scan for hundreds of rows would go into those that
 * come too early. One part by itself; below[k]: what values must exceed. */
static void sample(const fgi_codes *c, fgi_code_query *q, const int64_t *want, int16_t *below) {
    int64_t some[FGI_CODE_QUERIES];
    for (int k = 0; k < q->queries; k++) {
        const double expected = (double)want[k] / SAMPLED;
        some[k] = (int64_t)(expected + 2 * sqrt(expected) + 2);
        clear(q, k, c->room, INT16_MIN);
        if (4 * some[k] + 2 * FGI_CODE_BLOCK < c->room) q->room[k] = 4 * some[k] + 2 * FGI_CODE_BLOCK;
    }
    scan(c, q, some, SAMPLED);
    for (int k = 0; k < q->queries; k++) {
        below[k] = INT16_MIN;
        if (q->n[k] > some[k] && some[k] < want[k]) below[k] = keep_best(q->hits[k], &q->n[k], some[k]);
        if (below[k] > INT16_MIN) below[k]--; /* values like the last one's count */
    }
}

/* Sets the guess that a row must exceed in some part, by a sample of the rows. For a query that wants more rows than
 * the sample can tell, every row exceeds it. */
static void set_floors(const fgi_codes *c, fgi_code_query *q, const int64_t *want) {
    int16_t below[FGI_CODE_PARTS][FGI_CODE_QUERIES];
    for (q->first = 0; q->first < c->parts; q->first++) {
        q->last = q->first + 1;
        sample(c, q, want, below[q->first]);
    }
    q->first = 0;
    q->last = c->parts;
    for (int k = 0; k < q->queries; k++) {
        int known = 1;
        for (int32_t part = 0; part < c->parts; part++) known = known && below[part][k] > INT16_MIN;
        for (int32_t part = 0; part < c->parts; part++) q->less[k][part] = known && c->parts > 1 ? below[part][k] : 0;
        clear(q, k, c->room, !known ? INT16_MIN : c->parts > 1 ? 0 : below[0][k]);
    }
}

void fgi_codes_scan(
    const fgi_codes *c, int queries, const float *const *x, const int32_t *want, fgi_code_list *list, int32_t worker) {
    fgi_code_query q = {.bits = c->bits,
        .factor = c->share,
        .pieces = c->pieces,
        .parts = c->parts,
        .shift = shift_of(c),
        .queries = queries};
    int64_t each[FGI_CODE_QUERIES], all[FGI_CODE_QUERIES];
    int again = 0;
    memcpy(q.cut, c->cut, sizeof q.cut);
    for (int k = 0; k < queries; k++) {
        int8_t *table = c->tables + (worker * FGI_CODE_QUERIES + k) * c->table_size;
        prepare(c, x[k], table, c->turned + worker * 8 * c->pieces);
        q.tables[k] = table;
        q.hits[k] = c->hits + (worker * FGI_CODE_QUERIES + k) * c->room;
        each[k] = want[k];
        all[k] = each[k] * c->parts < c->rows ? each[k] * c->parts : c->rows;
    }
    set_floors(c, &q, each);
    scan(c, &q, all, 1);
    for (int k = 0; k < queries; k++) again |= q.n[k] < each[k];
    if (again) { /* the sample has misled */
        for (int k = 0; k < queries; k++) clear(&q, k, c->room, INT16_MIN);
        scan(c, &q, all, 1);
    }
    for (int k = 0; k < queries; k++) {
        if (q.n[k] > 3 * all[k]) keep_best(q.hits[k], &q.n[k], 3 * all[k]); /* the room is that of other queries, too */
        list[k] = (fgi_code_list){q.hits[k], q.n[k]};
    }
}
