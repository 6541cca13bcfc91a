/* model/waves.h - which variables a sweep over the variables of a model, in their order, may visit at the same time.
 *
 * A visit of variable i in a forward sweep needs the visits of the earlier variables that share a factor with it, and
 * no others. Tasks are made of visits in one of two ways. Runs of consecutive variables read memory in order; on a grid
 * in raster order a run waits for the one to its left and the one above. Where runs depend on each other one by one, as
 * in a random graph, tasks are variables of one level of the graph: none of them needs another, and all levels before
 * must be done. Threads take tasks in an order in which none comes before what it needs, and wait for that; so any
 * number of them computes what one thread computes. */
#ifndef FGI_WAVES_H
#define FGI_WAVES_H
#include "base/pool.h"
#include "model/model.h"

typedef struct fgi_waves fgi_waves;

/* The work of a visit, in nanoseconds or so. */
typedef double fgi_visit_work(const void *context, int64_t var, int forward);

/* *out is NULL where this number of threads would gain little. Returns 0 without memory. */
int fgi_waves_create(
    const fgi_structure *st, int forward, int threads, fgi_visit_work *work, const void *context, fgi_waves **out);
void fgi_waves_free(fgi_waves *w);

/* Where tasks are not runs: the variable at each place. NULL: variable i is at place i, or n_vars - 1 - i backwards. */
const int32_t *fgi_waves_list(const fgi_waves *w);

/* Tasks *next and following, until the deadline: *next is where to go on, at 0 a sweep begins. At least one is done.
 * Returns 1 when all are. `body` does one task, given as places of the sweep, and returns 0 to end the run early; the
 * worker is 0 .. threads - 1. */
typedef int fgi_task_body(void *context, int64_t begin, int64_t end, int worker);
int fgi_waves_run(
    fgi_waves *w, fgi_pool *pool, int threads, int64_t *next, double deadline, fgi_task_body *body, void *context);

#endif
