/* oracle/search_codes.h - one bit for every column of every row of a search index; inner products guessed from them.
 *
 * A row less the mean of all, turned by a random rotation, is kept as its signs o in {-1, 1}^d and one number
 * f = |r|^2 / |r|_1, so that <r, x> is about f <o, x>: on a line with r that is exact, and across it the rotation makes
 * the error look like noise of .75 |r| |x| / sqrt(d) (Gao, Long, "RaBitQ: quantizing high-dimensional vectors", 2024).
 * The sums <o, x> come from tables of four columns at a time (Andre, Kermarrec, Le Scouarnec, "Cache locality is not
 * enough: high-performance nearest neighbor search with product quantization fast scan", 2015); 128 columns take 16
 * bytes. No training, and a changed row costs O(d log d): unlike clusters, codes do not mind where rows lie.
 *
 * Columns may be cut into parts, each with its own rotation and factors: a scan then ranks rows by each part, in one
 * pass, for hardly more time than by all columns (10^5 rows of 128 columns, four queries at a time: 35 us a query, two
 * parts 39, four 46). */
#ifndef FGI_SEARCH_CODES_H
#define FGI_SEARCH_CODES_H
#include "base/kernels.h"
#include "base/kernels_codes.h"

typedef struct fgi_codes {
    int64_t rows, pieces; /* pieces of eight columns */
    int32_t d, threads, parts;
    int32_t begin[FGI_CODE_PARTS + 1]; /* columns of a part */
    int64_t cut[FGI_CODE_PARTS];       /* where it ends, in pieces */
    const fgi_kernels *kernels;
    double *mean;       /* mean of the rows when the codes were made */
    double *flips;      /* 2 x d: signs before the two halves of the rotation, and their scale */
    uint8_t *bits;      /* blocks x pieces x 32, see base/kernels_codes.h */
    float *factor;      /* per row and part */
    int16_t *share;     /* blocks x parts x 32, see fgi_code_place: factor / largest * 2^15; 0 behind the last */
    double largest;     /* no factor is larger */
    double *turned;     /* per thread: a vector being rotated */
    int8_t *tables;     /* per thread and query: pieces x 32 */
    int64_t table_size; /* bytes of one query's tables */
    fgi_code_hit *hits; /* per thread and query: `room` */
    int64_t room;
} fgi_codes;

/* Codes of no rows yet, for rows whose mean is `mean` (kept), and 1 to FGI_CODE_PARTS parts of the columns; NULL when
 * out of memory. */
fgi_codes *fgi_codes_create(int64_t rows, int32_t d, int32_t parts, int32_t threads, uint64_t seed, double *mean);
void fgi_codes_free(fgi_codes *c);
/* Encodes a row; different ones at a time by different workers. When all are there, fgi_codes_rescale. */
void fgi_codes_set(fgi_codes *c, int32_t label, const float *row, int32_t worker);
void fgi_codes_rescale(fgi_codes *c);
void fgi_codes_update(fgi_codes *c, int32_t label, const float *row);
/* Room for scans that want so many rows (of each part); 0 when out of memory. */
int fgi_codes_reserve(fgi_codes *c, int64_t want);
/* The want[q] rows (at most all of them) that a guess ranks highest by their inner products with x[q], and up to twice
 * as many more that come next, ascending: list[q], until the worker's next scan. Of several parts about so many for
 * each, at most thrice as many for all. Up to FGI_CODE_QUERIES queries. */
typedef struct fgi_code_list {
    const fgi_code_hit *hits;
    int64_t n;
} fgi_code_list;
void fgi_codes_scan(
    const fgi_codes *c, int queries, const float *const *x, const int32_t *want, fgi_code_list *list, int32_t worker);
int64_t fgi_codes_memory(const fgi_codes *c);

#endif
