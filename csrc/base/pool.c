/* base/pool.c - see base/pool.h. Workers sleep between runs; a run costs two wake-ups, so callers keep small ranges
 * serial. */
#include "base/pool.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct worker {
    fgi_pool *pool;
    pthread_t thread;
    int id;
} worker;

struct fgi_pool {
    int n_workers; /* besides the caller */
    int wanted;    /* so many, if the system lets us */
    pid_t process; /* that made the workers: a forked child has none of them */
    pthread_mutex_t lock;
    pthread_cond_t start, done;
    uint64_t generation;
    int busy, stop;
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
    pthread_mutex_lock(&p->lock);
    for (;;) {
        while (!p->stop && p->generation == seen) pthread_cond_wait(&p->start, &p->lock);
        if (p->stop) break;
        seen = p->generation;
        pthread_mutex_unlock(&p->lock);
        drain(p, w->id);
        pthread_mutex_lock(&p->lock);
        if (--p->busy == 0) pthread_cond_signal(&p->done);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* Makes the workers, or as many as the system grants: fewer are slower, not wrong. */
static void start_workers(fgi_pool *p) {
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->start, NULL);
    pthread_cond_init(&p->done, NULL);
    p->process = getpid();
    p->generation = 0;
    p->n_workers = p->busy = 0;
    for (int i = 0; i < p->wanted; i++) {
        worker *w = &p->workers[i];
        w->pool = p;
        w->id = i + 1;
        if (pthread_create(&w->thread, NULL, work, w) != 0) break;
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

void fgi_pool_run(fgi_pool *p, int64_t n, int64_t block, fgi_body body, void *context) {
    if (n <= 0) return;
    if (p && n > block && p->process != getpid()) start_workers(p); /* locks may be held by threads that are gone */
    if (!p || p->n_workers == 0 || n <= block) {
        for (int64_t begin = 0; begin < n; begin += block)
            body(context, begin, begin + block < n ? begin + block : n, 0);
        return;
    }
    pthread_mutex_lock(&p->lock);
    p->n = n;
    p->block = block;
    p->body = body;
    p->context = context;
    atomic_store(&p->next, 0);
    p->busy = p->n_workers;
    p->generation++;
    pthread_cond_broadcast(&p->start);
    pthread_mutex_unlock(&p->lock);
    drain(p, 0);
    pthread_mutex_lock(&p->lock);
    while (p->busy > 0) pthread_cond_wait(&p->done, &p->lock);
    pthread_mutex_unlock(&p->lock);
}

void fgi_pool_free(fgi_pool *p) {
    if (!p) return;
    if (p->process != getpid()) { /* there is nobody to wait for, and what they held cannot be destroyed */
        free(p);
        return;
    }
    pthread_mutex_lock(&p->lock);
    p->stop = 1;
    pthread_cond_broadcast(&p->start);
    pthread_mutex_unlock(&p->lock);
    for (int i = 0; i < p->n_workers; i++) pthread_join(p->workers[i].thread, NULL);
    pthread_cond_destroy(&p->done);
    pthread_cond_destroy(&p->start);
    pthread_mutex_destroy(&p->lock);
    free(p);
}
