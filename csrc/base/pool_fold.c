/* base/pool_fold.c - see base/pool.h: sums over blocks, joined in their order whatever the number of threads. */
#include <stdlib.h>
#include "base/pool.h"

typedef struct fold {
    int64_t n, block;
    fgi_part *part;
    const void *context;
    double *parts; /* per block */
} fold;

static double part_of(const fold *f, int64_t block) {
    const int64_t begin = block * f->block;
    return f->part(f->context, begin, begin + f->block < f->n ? begin + f->block : f->n);
}

static void make_parts(void *of, int64_t begin, int64_t end, int id) {
    const fold *f = of;
    (void)id;
    for (int64_t k = begin; k < end; k++) f->parts[k] = part_of(f, k);
}

double fgi_pool_fold(fgi_pool *pool, int64_t n, int64_t block, fgi_part *part, const void *context,
    double (*join)(double, double), double start) {
    const int64_t n_blocks = (n + block - 1) / block;
    fold f = {n, block, part, context, pool && n_blocks > 1 ? malloc((size_t)n_blocks * sizeof *f.parts) : NULL};
    if (f.parts) fgi_pool_run(pool, n_blocks, 1, make_parts, &f);
    for (int64_t k = 0; k < n_blocks; k++) start = join(start, f.parts ? f.parts[k] : part_of(&f, k));
    free(f.parts);
    return start;
}
