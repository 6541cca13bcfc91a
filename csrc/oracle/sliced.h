/* oracle/sliced.h - max-plus products with one pairwise table that read little of it.
 *
 * out[y] = max over x of  w t(x, y) + h[x] is seldom wanted for every y: who looks for the best y, or passes messages
 * on that only have to be large enough, does with bounds nearly everywhere. So a product comes in two parts: bounds on
 * all results from the rows with the largest h, and single results, exact, from one slice. Kept are the largest entry
 * of every slice and of each of its *cells*, pieces of a few entries, which takes one linear pass: of a slice only
 * those cells are read whose largest entry may matter. And, from when they are first asked for, copies of cells of
 * columns, so that slices of either side are contiguous. Exact results have the bits of those of base/kernels.h, which
 * read the table whole.
 *
 * Cells of an *even* table, say a random one, hardly differ; whole slices would be read, and where no cache holds the
 * table an entry of a column costs as much as any access to memory. Then products are better *listed*: nothing is kept
 * but the largest entry of every slice, bounds are that plus the largest h, and a single result goes through the labels
 * by descending h until the largest entry of its slice cannot make up for what is missing.
 *
 * Read-only once built: any number of threads may use one. */
#ifndef FGI_SLICED_H
#define FGI_SLICED_H
#include "base/kernels.h"

typedef struct fgi_sliced fgi_sliced;

/* Entries of a cell (decision 0016). */
enum { FGI_SLICED_CELL = 32 };
static inline int64_t fgi_sliced_cells(int64_t n) { return (n + FGI_SLICED_CELL - 1) / FGI_SLICED_CELL; }

/* The values are borrowed. step reads about `entries` more and returns 1 when all have been: before that there are no
 * products. */
fgi_sliced *fgi_sliced_create(const double *values, int32_t rows, int32_t cols, int is_listed);
int fgi_sliced_step(fgi_sliced *sliced, int64_t entries);
void fgi_sliced_free(fgi_sliced *sliced); /* NULL is fine */
int64_t fgi_sliced_memory(const fgi_sliced *sliced);
int fgi_sliced_is_listed(const fgi_sliced *sliced);
int fgi_sliced_is_even(const double *values, int32_t rows, int32_t cols); /* by some of the rows */
int64_t fgi_sliced_copied(const fgi_sliced *sliced); /* entries of columns copied so far: not in `touched` below */

/* Slice x of a side: entry y of it is t(x, y), or t(y, x). Not for columns where products are listed. */
const double *fgi_sliced_slice(const fgi_sliced *sliced, int side, int32_t x);

/* side: 0 if h belongs to the rows, 1 if to the columns. w > 0. Adds the entries read to *touched. */

/* out[y] = an upper bound on the result at y, from the `most` largest h (listed: from the largest). Returns the *cap*:
 * the result at y is out[y] itself unless that is w max(y) + cap (fgi_sliced_is_open); -INFINITY: all results are
 * exact, else peaks, room for fgi_sliced_cells of the h, has what fgi_sliced_search wants to know of them. rows: room
 * for one more than there are h. */
double fgi_sliced_bounds(const fgi_sliced *sliced, const fgi_kernels *k, double w, int side, const double *h,
    int32_t most, double *out, double *peaks, int32_t *rows, int64_t *touched);
int fgi_sliced_is_open(const fgi_sliced *sliced, double w, int side, double cap, int32_t y, double out);
/* The result at y, by what bounds that are not all exact have left in peaks; delta: -h. 0: much would have to be read,
 * fgi_sliced_value is better. */
int fgi_sliced_search(const fgi_sliced *sliced, const fgi_kernels *k, double w, int side, const double *delta,
    const double *peaks, int32_t y, double *value, int64_t *touched);
/* The result at y, by reading a slice. */
double fgi_sliced_value(
    const fgi_sliced *sliced, const fgi_kernels *k, double w, int side, const double *h, int32_t y, int64_t *touched);

/* The places of about the `most` largest of n values that are not -INFINITY (that many exactly if they are few), in any
 * order; returns how many there are. *below: no other value is larger, and -INFINITY if there is none. */
int32_t fgi_sliced_largest(const double *values, int32_t n, int32_t most, int32_t *at, double *below);

/* The places of the values above the bar, of which there is room for one more than there are; returns how many. */
int32_t fgi_sliced_above(const double *values, int32_t n, double bar, int32_t *at);

/* About the middle one of n values. */
double fgi_sliced_median(const double *values, int32_t n);

#endif
