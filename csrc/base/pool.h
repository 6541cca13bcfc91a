/* base/pool.h - a fixed set of worker threads and one primitive: run a function over a range, in blocks.
 *
 * Which thread takes which block is not fixed, so a body must write only what belongs to its indices; reductions are
 * done by the caller over per-block results in block order. Then results do not depend on the number of threads. */
#ifndef FGI_POOL_H
#define FGI_POOL_H
#include <stdint.h>

typedef struct fgi_pool fgi_pool;

/* worker is 0 .. threads-1 and identifies scratch memory. */
typedef void (*fgi_body)(void *context, int64_t begin, int64_t end, int worker);

/* threads == 1 needs no pool: NULL is a valid pool that runs everything on the caller's thread. A forked child gets
 * workers of its own when it first runs something. */
fgi_pool *fgi_pool_create(int threads);
/* How many run at the same time, the caller's included: the system may have refused some, or they are to rest. */
int fgi_pool_threads(fgi_pool *pool);
/* Other work needs the cores: until this is taken back the number above is 1, and threads that would wait for each
 * other had better not be used. Any thread may say so at any time. */
void fgi_pool_rest(fgi_pool *pool, int rests);
void fgi_pool_run(fgi_pool *pool, int64_t n, int64_t block, fgi_body body, void *context);

/* One number made of a range: `part` makes one of every block, and these are joined in their order, beginning with
 * `start`, so that the result does not depend on the number of threads. Without the memory for them one thread does it.
 */
typedef double fgi_part(const void *context, int64_t begin, int64_t end);
double fgi_pool_fold(fgi_pool *pool, int64_t n, int64_t block, fgi_part *part, const void *context,
    double (*join)(double, double), double start);
void fgi_pool_free(fgi_pool *pool);

#endif
