/* base/pool.c - see base/pool.h. Workers sleep between runs; a run costs two wake-ups, so callers keep small ranges
 * serial. */
#include "base/pool.h"
#include "base/assert.h"
#include "base/threads.h"
#include <stdatomic.h>
#include <stdlib.h>

typedef struct worker {
    fgi_pool *pool;
    fgi_thread thread;
    int id;
} worker;

struct fgi_pool {
    int n_workers;       /* besides the caller */
    int wanted;          /* so many, if the system lets us */
    fgi_process process; /* that made the workers: a forked child has none of them */
    fgi_mutex lock;
    fgi_condition start, done;
    uint64_t generation;
    int busy, stop;
    atomic_int rests;
    atomic_llong next;
    int64_t n, block;
    fgi_body body;
    void *context;
    worker workers[];
};

static void drain(fgi_pool *p, int id) {
    for (;;) {
        int64_t begin = (int64_t)atomic_fetch_add(&p->next, p->block);
        if (begin >= p->n) return;
        int64_t end = begin + p->block < p->n ? begin + p->block : p->n;
        p->body(p->context, begin, end, id);
    }
}

static void *work(void *arg) {
    worker *w = arg;
    fgi_pool *p = w->pool;
    uint64_t seen = 0;
    fgi_mutex_lock(&p->lock);
    for (;;) {
        while (!p->stop && p->generation == seen) fgi_condition_wait(&p->start, &p->lock);
        if (p->stop) break;
        seen = p->generation;
        fgi_mutex_unlock(&p->lock);
        drain(p, w->id);
        fgi_mutex_lock(&p->lock);
        if (--p->busy == 0) fgi_condition_signal(&p->done);
    }
    fgi_mutex_unlock(&p->lock);
    return NULL;
}

/* Makes the workers, or as many as the system grants: fewer are slower, not wrong. */
static void start_workers(fgi_pool *p) {
    fgi_mutex_init(&p->lock);
    fgi_condition_init(&p->start);
    fgi_condition_init(&p->done);
    p->process = fgi_this_process();
    p->generation = 0;
    p->n_workers = p->busy = 0;
    for (int i = 0; i < p->wanted; i++) {
        worker *w = &p->workers[i];
        w->pool = p;
        w->id = i + 1;
        if (fgi_thread_create(&w->thread, work, w) != 0) break;
        p->n_workers++;
    }
}

fgi_pool *fgi_pool_create(int threads) {
    if (threads <= 1) return NULL;
    fgi_pool *p = calloc(1, sizeof *p + (size_t)(threads - 1) * sizeof p->workers[0]);
    if (!p) return NULL;
    p->wanted = threads - 1;
    start_workers(p);
    return p;
}

static int threads_of(fgi_pool *p) {
    if (!p) return 1;
    if (p->process != fgi_this_process()) start_workers(p); /* locks may be held by threads that are gone */
    return p->n_workers + 1;
}

int fgi_pool_threads(fgi_pool *p) {
    const int threads = threads_of(p);
    return p && atomic_load_explicit(&p->rests, memory_order_relaxed) ? 1 : threads;
}

void fgi_pool_rest(fgi_pool *p, int rests) {
    if (p) atomic_store_explicit(&p->rests, rests, memory_order_relaxed);
}

void fgi_pool_run(fgi_pool *p, int64_t n, int64_t block, fgi_body body, void *context) {
    fgi_assert(block > 0);
    if (n <= 0) return;
    if (n <= block || threads_of(p) == 1) { /* who wants fewer has decided by now, and some bodies wait for others */
        for (int64_t begin = 0; begin < n; begin += block)
            body(context, begin, begin + block < n ? begin + block : n, 0);
        return;
    }
    fgi_mutex_lock(&p->lock);
    p->n = n;
    p->block = block;
    p->body = body;
    p->context = context;
    atomic_store(&p->next, 0);
    p->busy = p->n_workers;
    p->generation++;
    fgi_condition_broadcast(&p->start);
    fgi_mutex_unlock(&p->lock);
    drain(p, 0);
    fgi_mutex_lock(&p->lock);
    while (p->busy > 0) fgi_condition_wait(&p->done, &p->lock);
    fgi_mutex_unlock(&p->lock);
}

void fgi_pool_free(fgi_pool *p) {
    if (!p) return;
    if (p->process != fgi_this_process()) { /* there is nobody to wait for, and what they held cannot be destroyed */
        free(p);
        return;
    }
    fgi_mutex_lock(&p->lock);
    p->stop = 1;
    fgi_condition_broadcast(&p->start);
    fgi_mutex_unlock(&p->lock);
    for (int i = 0; i < p->n_workers; i++) fgi_thread_join(p->workers[i].thread);
    fgi_condition_destroy(&p->done);
    fgi_condition_destroy(&p->start);
    fgi_mutex_destroy(&p->lock);
    free(p);
}
