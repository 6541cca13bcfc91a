/* model/sliced.h - max-plus products with one pairwise table that read little of it.
 *
 * out[y] = max over x of  w t(x, y) + h[x]  needs, for most y, only the x with the largest h and the largest entries of
 * slice y (McAuley and Caetano 2011): what neither list has shown is no better than the next of both. Kept are the
 * table in both storage orders, so that slices of either side are contiguous, and the first entries of every slice.
 * Results have the same bits as those of base/kernels.h, which read the table whole; the worst case costs little more.
 *
 * Read-only once built: any number of threads may use one, each with a scratch of its own. */
#ifndef FGI_SLICED_H
#define FGI_SLICED_H
#include "base/kernels.h"

typedef struct fgi_sliced fgi_sliced;
typedef struct fgi_sliced_scratch fgi_sliced_scratch;

/* The values are borrowed; range is that of the finite ones. step reads about `entries` more and returns 1 when all
 * have been: before that there are no products. */
fgi_sliced *fgi_sliced_create(const double *values, int32_t rows, int32_t cols, double range);
int fgi_sliced_step(fgi_sliced *s, int64_t entries);
void fgi_sliced_free(fgi_sliced *s); /* NULL is fine */
int64_t fgi_sliced_memory(int32_t rows, int32_t cols);

fgi_sliced_scratch *fgi_sliced_scratch_create(int32_t max_card);
void fgi_sliced_scratch_free(fgi_sliced_scratch *s);

/* side: 0 if h belongs to the rows, 1 if to the columns. w > 0. Adds the entries read to *touched. */
void fgi_sliced_maxplus(const fgi_sliced *s, const fgi_kernels *k, double w, int side, const double *h, double *out,
    fgi_sliced_scratch *scratch, int64_t *touched);

#endif
