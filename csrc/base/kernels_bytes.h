/* base/kernels_bytes.h - sums of products of whole numbers, 8 bits by 7; the versions behind fgi_kernels.next_bytes and
 * .guess_bytes.
 *
 * A row is `stride` bytes (a multiple of 32), each 1 to 255; a query as many numbers from -63 to 63: two products fit
 * into 16 bits. All versions give the same sums, and reach the same rows: bounds are computed in one order. */
#ifndef FGI_KERNELS_BYTES_H
#define FGI_KERNELS_BYTES_H
#include <stdint.h>

enum {
    FGI_BYTE_BLOCK = 8,   /* rows that are summed together */
    FGI_BYTE_QUERIES = 16 /* queries that share the reading of a row, at most */
};

typedef struct fgi_byte_query {
    const int8_t *x;
    int32_t offset; /* to be subtracted from its sums */
    /* A row of block b counts if factor * (sum - offset) >= floor - by_error * error[b] - by_length * length[b]. */
    float floor, by_error, by_length;
    uint32_t reached; /* a bit for every row of the block found that counts */
} fgi_byte_query;

typedef struct fgi_byte_scan {
    const uint8_t *codes; /* blocks x 8 x stride */
    int64_t stride;
    int64_t width;               /* what guess_bytes looks at of a row, a multiple of 32 bytes */
    const float *factor;         /* blocks x 8 */
    const float *error, *length; /* per block */
    int queries;                 /* FGI_BYTE_QUERIES at most */
    fgi_byte_query q[FGI_BYTE_QUERIES];
} fgi_byte_scan;

/* The next block, from `block` on and before `end`, with a row that counts for some query; `end` if there is none. */
int64_t fgi_next_bytes_scalar(fgi_byte_scan *scan, int64_t block, int64_t end);
int64_t fgi_next_bytes_avx2(fgi_byte_scan *scan, int64_t block, int64_t end);
/* guesses[i] = factor * (sum - offset) of row rows[i], for rows that lie anywhere. */
void fgi_guess_bytes_scalar(
    const fgi_byte_scan *scan, const fgi_byte_query *q, int64_t n, const int32_t *rows, float *guesses);
void fgi_guess_bytes_avx2(
    const fgi_byte_scan *scan, const fgi_byte_query *q, int64_t n, const int32_t *rows, float *guesses);

#endif
