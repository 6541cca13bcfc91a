/* oracle/sliced.h - max-plus products with one pairwise table that read little of it.
 *
 * out[y] = max over x of  w t(x, y) + h[x] is seldom wanted for every y: who looks for the best y, or passes messages
 * on that only have to be large enough, does with bounds nearly everywhere. So a product comes in two parts: bounds on
 * all results from the rows with the largest h, and single results, exact, by reading one slice. Kept are the largest
 * entry of every slice, which takes one linear pass, and, from when they are first asked for, copies of columns, so
 * that slices of either side are contiguous. Exact results have the bits of those of base/kernels.h, which read the
 * table whole.
 *
 * Read-only once built: any number of threads may use one. */
#ifndef FGI_SLICED_H
#define FGI_SLICED_H
#include "base/kernels.h"

typedef struct fgi_sliced fgi_sliced;

/* The values are borrowed. step reads about `entries` more and returns 1 when all have been: before that there are no
 * products. */
fgi_sliced *fgi_sliced_create(const double *values, int32_t rows, int32_t cols);
int fgi_sliced_step(fgi_sliced *s, int64_t entries);
void fgi_sliced_free(fgi_sliced *s); /* NULL is fine */
int64_t fgi_sliced_memory(int32_t rows, int32_t cols);
int64_t fgi_sliced_copied(const fgi_sliced *s); /* entries of columns copied so far: not in `touched` below */

/* Slice x of a side: entry y of it is t(x, y), or t(y, x). */
const double *fgi_sliced_slice(const fgi_sliced *s, int side, int32_t x);

/* side: 0 if h belongs to the rows, 1 if to the columns. w > 0. Adds the entries read to *touched. */

/* out[y] = an upper bound on the result at y, from the `most` largest h. Returns the *cap*: the result at y is out[y]
 * itself unless that is w max(y) + cap (fgi_sliced_is_open); -INFINITY: all results are exact. rows: room for one more
 * than there are h. */
double fgi_sliced_bounds(const fgi_sliced *s, const fgi_kernels *k, double w, int side, const double *h, int32_t most,
    double *out, int32_t *rows, int64_t *touched);
int fgi_sliced_is_open(const fgi_sliced *s, double w, int side, double cap, int32_t y, double out);
/* The result at y. */
double fgi_sliced_value(
    const fgi_sliced *s, const fgi_kernels *k, double w, int side, const double *h, int32_t y, int64_t *touched);

/* The places of about the `most` largest of n values that are not -INFINITY (that many exactly if they are few), in any
 * order; returns how many there are. *below: no other value is larger, and -INFINITY if there is none. */
int32_t fgi_sliced_largest(const double *values, int32_t n, int32_t most, int32_t *at, double *below);

/* The places of the values above the bar, of which there is room for one more than there are; returns how many. */
int32_t fgi_sliced_above(const double *values, int32_t n, double bar, int32_t *at);

/* About the middle one of n values. */
double fgi_sliced_median(const double *values, int32_t n);

#endif
