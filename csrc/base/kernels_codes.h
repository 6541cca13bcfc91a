/* base/kernels_codes.h - sums over one-bit codes; the versions behind fgi_kernels.next_codes.
 *
 * Rows lie in blocks of 32. A row has four bits for every four of its columns, and a block stores, for every eight
 * columns, 32 bytes: the bits of row r for the first four in the low half of byte r, for the others in the high half. A
 * query is a table of 16 small numbers for every four columns. Its sum for a row adds up what the row's bits select, in
 * 8 bits over FGI_CODE_CHUNK * 8 columns (whoever makes the tables sees to it that this suffices), and over such
 * chunks in 16 bits that stay at their limits. The row's value is sum * 2^shift * factor / 2^15, rounded: 16 bits, too.
 * All versions give the same. */
#ifndef FGI_KERNELS_CODES_H
#define FGI_KERNELS_CODES_H
#include <stdint.h>

enum { FGI_CODE_BLOCK = 32, FGI_CODE_CHUNK = 16, FGI_CODE_QUERIES = 4 };

typedef struct fgi_code_query {
    const uint8_t *bits;   /* blocks x pieces x 32 */
    const int16_t *factor; /* blocks x 32 */
    int64_t pieces;        /* of eight columns */
    int shift, queries;    /* FGI_CODE_QUERIES at most */
    const int8_t *tables[FGI_CODE_QUERIES];
    int16_t floors[FGI_CODE_QUERIES];
    /* of the block that was found: values, and a bit for every row that reaches the floor */
    int16_t values[FGI_CODE_QUERIES][FGI_CODE_BLOCK];
    uint32_t reached[FGI_CODE_QUERIES];
} fgi_code_query;

/* The next block, from `block` on and before `end`, with a row that reaches a floor; `end` if there is none. */
int64_t fgi_next_codes_scalar(fgi_code_query *q, int64_t block, int64_t end);
int64_t fgi_next_codes_avx2(fgi_code_query *q, int64_t block, int64_t end);

#endif
