/* model/waves.h - which variables a sweep over the variables of a model, in their order, may visit at the same time.
 *
 * A visit of variable i in a forward sweep needs the visits of the earlier variables that share a factor with it, and
 * no others; backwards it is the other way round. Tasks are runs of consecutive variables, which read memory in order,
 * or, where runs depend on each other one by one, as in a random graph, variables of one level of the graph. Each
 * thread has its own tasks: a share of every level, the same part of it each time, so that on a grid in raster order a
 * thread has some columns and what it reads was last written by itself. Before a task it waits until the others have
 * got far enough. So any number of threads computes what one thread computes. */
#ifndef FGI_WAVES_H
#define FGI_WAVES_H
#include <stdatomic.h>
#include "base/pool.h"
#include "model/model.h"

typedef struct fgi_waves fgi_waves;

/* The work of a visit, forwards or backwards, in nanoseconds or so. */
typedef double fgi_visit_work(const void *context, int64_t var);

/* *out is NULL where this number of threads would gain little. Returns 0 without memory, or soon after another thread
 * has set *stop (NULL: nobody will). */
int fgi_waves_create(const fgi_structure *s, int threads, fgi_visit_work *work, const void *context,
    const atomic_int *stop, fgi_waves **out);
void fgi_waves_free(fgi_waves *w);

/* The variable at each place of a forward sweep, to be read from its end backwards. NULL: variable i is at place i. */
const int32_t *fgi_waves_list(const fgi_waves *w);

/* A new sweep begins. */
void fgi_waves_begin(fgi_waves *w, int forward);
/* The sweep goes on until the deadline; at least one task is done. Returns 1 when all are. `body` does one task, given
 * as places of a sweep in this direction, and returns 0 to end the run early; `then` is where this thread goes on, or
 * -1; the worker is 0 .. threads - 1. */
typedef int fgi_task_body(void *context, int64_t begin, int64_t end, int64_t then, int worker);
/* Other work that one thread does before it joins the sweep, which the others begin without it. It may pause, too. */
typedef struct fgi_aside {
    int (*piece)(void *context); /* a piece of a millisecond or so; 1: that was the last */
    void *context;
} fgi_aside;
int fgi_waves_run(
    fgi_waves *w, fgi_pool *pool, double deadline, fgi_task_body *body, void *context, const fgi_aside *aside);

#endif
