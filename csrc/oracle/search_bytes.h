/* oracle/search_bytes.h - rows of a search index in a byte a column, with bounds on what that leaves out.
 *
 * A row less the mean of all is w = f c + e, with whole numbers c from -127 to 127 and a rest of known length; so is a
 * query, x = s z + r with z from -63 to 63. Then
 *
 *     <w, x>  <=  f s <c, z> + |e| |x| + |f c| |r|
 *
 * where the rests are about a hundredth of what they belong to: of all rows only those that come close to the best ones
 * have a bound above them. A scan of whole numbers, a quarter of the bytes and twice the products a cycle, and then the
 * inner products of these few: as exact as a dense scan. For a row by itself f s <c, z> is a guess. */
#ifndef FGI_SEARCH_BYTES_H
#define FGI_SEARCH_BYTES_H
#include "base/kernels.h"
#include "base/kernels_bytes.h"

enum { FGI_BYTE_SHIFT = 128 }; /* what codes are more than the numbers that they stand for */

typedef struct fgi_bytes {
    int64_t rows, stride;
    int32_t d;
    const fgi_kernels *kernels;
    double *mean;            /* mean of the rows when they were encoded */
    uint8_t *codes;          /* 128 + c; a multiple of 32 bytes a row, whole blocks */
    float *factor;           /* per row: f; 0 behind the last */
    float *error, *length;   /* per row: at least |e| and |f c| */
    float *errors, *lengths; /* per block: the largest */
} fgi_bytes;

/* A query in whole numbers. */
typedef struct fgi_byte_x {
    double scale;         /* s */
    double length, error; /* |x|, and at least |r| */
    double shift;         /* <mean, x> */
    int32_t offset;
} fgi_byte_x;

/* Bytes of no rows yet, for rows whose mean is `mean` (kept); NULL when out of memory. */
fgi_bytes *fgi_bytes_create(int64_t rows, int32_t d, double *mean);
void fgi_bytes_free(fgi_bytes *b);
/* Encodes a row; different blocks of FGI_BYTE_BLOCK rows at a time by different workers. */
void fgi_bytes_set(fgi_bytes *b, int32_t label, const float *row);
int64_t fgi_bytes_memory(const fgi_bytes *b);
/* z: `stride` numbers. */
fgi_byte_x fgi_bytes_query(const fgi_bytes *b, const float *x, int8_t *z);
/* What a row's guess in q's units must reach, for its inner product to reach `floor` when inner products themselves are
 * off by at most `slack`. */
void fgi_bytes_floor(const fgi_byte_x *x, double floor, double slack, fgi_byte_query *q);

#endif
