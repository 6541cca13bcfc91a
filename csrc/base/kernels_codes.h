/* base/kernels_codes.h - sums over one-bit codes; the versions behind fgi_kernels.collect_codes.
 *
 * Rows lie in blocks of 32. A row has four bits for every four of its columns, and a block stores, for every eight
 * columns, 32 bytes: the bits of row r for the first four in the low half of byte r, for the others in the high half. A
 * query is a table of 16 small numbers for every four columns. Its sum for a row adds up what the row's bits select, in
 * 8 bits over FGI_CODE_CHUNK * 8 columns (whoever makes the tables sees to it that this suffices), and over such
 * chunks in 16 bits that stay at their limits. The value is sum * 2^shift * factor / 2^15, rounded: 16 bits, too, and
 * never -2^15.
 *
 * Columns may be in several parts, each with values of its own; a row's value is then the largest of them, each less
 * what the query says for its part (the least value if that is less). All versions give the same. */
#ifndef FGI_KERNELS_CODES_H
#define FGI_KERNELS_CODES_H
#include <stdint.h>

enum {
    FGI_CODE_BLOCK = 32,  /* rows of a block: a byte of a register for each */
    FGI_CODE_CHUNK = 16,  /* pieces of eight columns that are summed in 8 bits */
    FGI_CODE_QUERIES = 4, /* queries that share the reading of a block, at most */
    FGI_CODE_PARTS = 8    /* parts of the columns, at most */
};

typedef struct fgi_code_hit {
    int32_t row;
    int16_t value;
} fgi_code_hit;

typedef struct fgi_code_query {
    const uint8_t *bits;         /* blocks x pieces x 32 */
    const int16_t *factor;       /* blocks x parts x 32, row r of a block at fgi_code_place(r) */
    int64_t pieces;              /* pieces of eight columns */
    int parts, first, last;      /* FGI_CODE_PARTS at most; those from `first` up to `last` are looked at */
    int64_t cut[FGI_CODE_PARTS]; /* where each part ends, in pieces */
    int shift, queries;          /* FGI_CODE_QUERIES at most */
    const int8_t *tables[FGI_CODE_QUERIES];
    int16_t less[FGI_CODE_QUERIES][FGI_CODE_PARTS];
    int16_t below[FGI_CODE_QUERIES];      /* values up to this one do not count */
    fgi_code_hit *hits[FGI_CODE_QUERIES]; /* those that do, by ascending rows, are appended */
    int64_t n[FGI_CODE_QUERIES], room[FGI_CODE_QUERIES];
} fgi_code_query;

/* Rows 8 to 15 and 16 to 23 change places: so they come out when bytes are widened in two halves of a register. */
static inline int fgi_code_place(int row) { return (row & 7) | (row & 8) << 1 | (row & 16) >> 1; }

/* Blocks `block`, block + step, ... before `end`, as long as every list has room for a block more; the first block that
 * was not looked at. */
int64_t fgi_collect_codes_scalar(fgi_code_query *q, int64_t block, int64_t end, int64_t step);
int64_t fgi_collect_codes_avx2(fgi_code_query *q, int64_t block, int64_t end, int64_t step);

#endif
