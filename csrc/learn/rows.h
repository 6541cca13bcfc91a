/* learn/rows.h - unary weights by feature, in memory proportional to what is not zero.
 *
 * A row holds the labels of one feature that were ever touched, ascending, each with its weight and its sum for
 * averages. It is made when first touched, grows by doubling, and becomes whole (every label, in order) when a quarter
 * of the labels is there: from then on it is read as a dense row is, which takes less time and hardly more memory. */
#ifndef FGI_ROWS_H
#define FGI_ROWS_H
#include "base/util.h"

enum { FGI_ROW_SIZES = 33 }; /* powers of two up to 2^31, and all labels */

typedef struct fgi_rows {
    int64_t n; /* features */
    int32_t labels;
    int64_t *begin, *end; /* where each row begins and ends in the arrays that follow */
    int8_t *size;         /* room of a row: 2^size entries, or (FGI_ROW_SIZES - 1) all labels */
    int32_t *label;
    double *w, *sum;
    int64_t used, capacity;
    int64_t vacant[FGI_ROW_SIZES]; /* first free place of each size, -1: none; it holds the next in w */
} fgi_rows;

fgi_rows *fgi_rows_create(int64_t n, int32_t labels);
void fgi_rows_free(fgi_rows *r);
/* Where the weight of a label is; -1 where it was never touched. */
int64_t fgi_rows_find(const fgi_rows *r, int64_t row, int32_t label);
/* The same, and makes it if need be, which moves other weights; -1: out of memory. */
int64_t fgi_rows_place(fgi_rows *r, int64_t row, int32_t label);
void fgi_rows_clear_sums(fgi_rows *r);

#endif
