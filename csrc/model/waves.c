/* model/waves.c - see model/waves.h. */
#include "base/array.h"
#include "model/waves.h"
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include "base/util.h"

static const double SYNC_WORK = 1000;  /* what it costs to take a task, nanoseconds */
static const double LEAST_GAIN = 1.25; /* estimated: below it threads are not worth their trouble */
static const double ENOUGH = 0.9;      /* of the number of threads: no other way of making tasks is tried */

struct fgi_waves {
    int64_t n_tasks;
    int64_t *begin, *end; /* of a task: places of the sweep */
    int64_t *need_begin;  /* of a run: the tasks it waits for are needs[need_begin .. next need_begin] */
    int32_t *needs;
    int64_t *earlier; /* of a task of a level: how many tasks the levels before have; else NULL */
    int32_t *list;    /* with levels: the variable at each place */
    atomic_uchar *done;
};

/* ---- runs ---------------------------------------------------------------------------------------------------- */

/* Tasks under construction, numbered in the order of the sweep. */
typedef struct draft {
    const fgi_structure *st;
    int forward;
    int64_t n;
    int32_t *run;  /* per place */
    int32_t *wave; /* per run: one after the last of those it needs */
    int64_t n_waves;
    double *work, *ends; /* per run; ends: when it would be done with a thread for every run */
} draft;

static int64_t at_place(const draft *d, int64_t place) { return d->forward ? place : d->st->n_vars - 1 - place; }

/* Runs have about this work, and rather end where a variable and the next are not neighbours: the rows of a grid. */
static void cut_runs(draft *d, double size, fgi_visit_work *work, const void *context) {
    const fgi_structure *st = d->st;
    double filled = 0;
    d->n = 0;
    for (int64_t place = 0; place < st->n_vars; place++) {
        const int64_t i = at_place(d, place);
        int joined = 0;
        for (int64_t k = st->adj_begin[i]; k < st->adj_begin[i + 1] && !joined && filled >= 0.25 * size; k++) {
            const int32_t *vars = fgi_factor_vars(st, st->adj[k]);
            for (int32_t v = 0; v < fgi_factor_arity(st, st->adj[k]); v++)
                joined |= d->forward ? vars[v] == i - 1 : vars[v] == i + 1;
        }
        if (place == 0 || filled >= size || (filled >= 0.25 * size && !joined)) {
            d->work[d->n++] = 0;
            filled = 0;
        }
        const double own = work(context, i, d->forward);
        d->run[place] = (int32_t)(d->n - 1);
        d->work[d->n - 1] += own;
        filled += own;
    }
}

/* Calls `needed` for each run before its own that the variable at a place has a factor with. */
static void each_needed(
    draft *d, int64_t place, void (*needed)(draft *, int32_t run, int32_t other, void *), void *to) {
    const fgi_structure *st = d->st;
    const int64_t i = at_place(d, place);
    const int32_t run = d->run[place];
    for (int64_t k = st->adj_begin[i]; k < st->adj_begin[i + 1]; k++) {
        const int32_t *vars = fgi_factor_vars(st, st->adj[k]);
        for (int32_t v = 0; v < fgi_factor_arity(st, st->adj[k]); v++) {
            const int32_t other = d->run[at_place(d, vars[v])];
            if (other < run) needed(d, run, other, to);
        }
    }
}

static void level_after(draft *d, int32_t run, int32_t other, void *unused) {
    (void)unused;
    if (d->wave[other] >= d->wave[run]) d->wave[run] = d->wave[other] + 1;
    d->ends[run] = fgi_larger(d->ends[run], d->ends[other]);
}

/* Waves of all runs; returns the time with a thread for every run. */
static double level(draft *d) {
    double last = 0;
    d->n_waves = 0;
    for (int64_t place = 0; place < d->st->n_vars; place++) {
        const int32_t run = d->run[place];
        if (place == 0 || d->run[place - 1] != run) d->wave[run] = 0, d->ends[run] = 0;
        each_needed(d, place, level_after, NULL);
        if (place + 1 < d->st->n_vars && d->run[place + 1] == run) continue;
        d->ends[run] += d->work[run] + SYNC_WORK;
        last = fgi_larger(last, d->ends[run]);
        if (d->wave[run] >= d->n_waves) d->n_waves = d->wave[run] + 1;
    }
    return last;
}

/* Runs by wave; those of one wave in the order of the sweep. first: n_waves + 1. */
static void sort_runs(const draft *d, int64_t *first, int32_t *sorted) {
    memset(first, 0, (size_t)(d->n_waves + 1) * sizeof *first);
    for (int64_t k = 0; k < d->n; k++) first[d->wave[k] + 1]++;
    for (int64_t k = 0; k < d->n_waves; k++) first[k + 1] += first[k];
    for (int64_t k = 0; k < d->n; k++) sorted[first[d->wave[k]]++] = (int32_t)k;
    for (int64_t k = d->n_waves; k > 0; k--) first[k] = first[k - 1];
    first[0] = 0;
}

typedef struct collected {
    fgi_waves *w;
    const int32_t *task; /* of a run */
    int32_t *last;       /* of a run: the run that has collected it last */
    int64_t n, capacity;
    int failed;
} collected;

static void collect(draft *d, int32_t run, int32_t other, void *to) {
    collected *c = to;
    (void)d;
    if (c->last[other] == run || c->failed) return;
    c->last[other] = run;
    c->failed = !fgi_grow(&c->w->needs, &c->capacity, c->n + 1, sizeof *c->w->needs);
    if (c->failed) return;
    c->w->needs[c->n++] = c->task[other];
}

/* Tasks are the runs in the order of their waves; what they need is collected run by run, in the order of the sweep. */
static int finish_runs(draft *d, fgi_waves *w, const int32_t *sorted) {
    int32_t *task = fgi_alloc(d->n, sizeof *task), *last = fgi_alloc(d->n, sizeof *last);
    int64_t *begin = fgi_alloc(d->n + 1, sizeof *begin);        /* needs of a run */
    w->need_begin = fgi_alloc(2 * d->n, sizeof *w->need_begin); /* and their end */
    collected c = {.w = w, .task = task, .last = last, .failed = !task || !last || !begin || !w->need_begin};
    for (int64_t k = 0; k < d->n && !c.failed; k++) {
        task[sorted[k]] = (int32_t)k;
        last[k] = -1;
    }
    for (int64_t place = 0; place < d->st->n_vars && !c.failed; place++) {
        const int32_t run = d->run[place];
        if (place == 0 || d->run[place - 1] != run) {
            begin[run] = c.n;
            w->begin[task[run]] = place;
        }
        w->end[task[run]] = place + 1;
        each_needed(d, place, collect, &c);
        begin[run + 1] = c.n;
    }
    for (int64_t k = 0; k < d->n && !c.failed; k++) {
        w->need_begin[2 * task[k]] = begin[k];
        w->need_begin[2 * task[k] + 1] = begin[k + 1];
    }
    free(task);
    free(last);
    free(begin);
    return !c.failed;
}

/* ---- levels -------------------------------------------------------------------------------------------------- */

/* The time that levels take, a task being a share of a level. */
static double level_time(const draft *d, int threads) {
    double *total = d->ends, time = 0; /* no longer needed for the runs */
    memset(total, 0, (size_t)d->n_waves * sizeof *total);
    for (int64_t k = 0; k < d->n; k++) total[d->wave[k]] += d->work[k];
    for (int64_t k = 0; k < d->n_waves; k++) time += 4 * SYNC_WORK + total[k] / threads;
    return time;
}

/* Single variables of a level are put together to tasks. */
static int finish_levels(const draft *d, fgi_waves *w, int threads, const int64_t *first, const int32_t *sorted) {
    enum { TASKS_A_THREAD = 4 };
    w->earlier = fgi_alloc(d->n, sizeof *w->earlier);
    w->list = fgi_alloc(d->n, sizeof *w->list);
    if (!w->earlier || !w->list) return 0;
    w->n_tasks = 0;
    for (int64_t wave = 0; wave < d->n_waves; wave++) {
        const int64_t before = w->n_tasks;
        double total = 0;
        for (int64_t k = first[wave]; k < first[wave + 1]; k++) total += d->work[sorted[k]];
        const double full = fgi_larger(SYNC_WORK, total / (TASKS_A_THREAD * threads));
        double filled = full;
        for (int64_t k = first[wave]; k < first[wave + 1]; k++) {
            if (filled >= full) {
                w->begin[w->n_tasks] = k;
                w->earlier[w->n_tasks++] = before;
                filled = 0;
            }
            w->end[w->n_tasks - 1] = k + 1;
            w->list[k] = (int32_t)at_place(d, sorted[k]);
            filled += d->work[sorted[k]];
        }
    }
    return 1;
}

/* ---- creation ------------------------------------------------------------------------------------------------ */

static fgi_waves *finish(draft *d, int threads, int levels) {
    fgi_waves *w = fgi_calloc(1, sizeof *w);
    int64_t *first = fgi_alloc(d->n_waves + 1, sizeof *first);
    int32_t *sorted = fgi_alloc(d->n, sizeof *sorted);
    int ok = w && first && sorted;
    if (ok) {
        w->n_tasks = d->n;
        w->begin = fgi_alloc(d->n, sizeof *w->begin);
        w->end = fgi_alloc(d->n, sizeof *w->end);
        ok = w->begin && w->end;
    }
    if (ok) {
        sort_runs(d, first, sorted);
        ok = levels ? finish_levels(d, w, threads, first, sorted) : finish_runs(d, w, sorted);
    }
    if (ok) ok = (w->done = fgi_calloc(w->n_tasks, sizeof *w->done)) != NULL;
    free(first);
    free(sorted);
    if (ok) return w;
    fgi_waves_free(w);
    return NULL;
}

int fgi_waves_create(
    const fgi_structure *st, int forward, int threads, fgi_visit_work *work, const void *context, fgi_waves **out) {
    enum { SIZES = 4 };
    static const double sizes[SIZES] = {1e5, 3e4, 1e4, 0}; /* nanoseconds of a run; 0: single variables */
    draft d = {.st = st, .forward = forward};
    *out = NULL;
    if (st->n_vars < 2 || threads < 2) return 1;
    d.run = fgi_alloc(st->n_vars, sizeof *d.run);
    d.wave = fgi_alloc(st->n_vars, sizeof *d.wave);
    d.work = fgi_alloc(2 * st->n_vars, sizeof *d.work);
    d.ends = d.work + st->n_vars;
    int ok = d.run && d.wave && d.work, best = -1, drafted = -1;
    double best_gain = LEAST_GAIN;
    for (int k = 0; ok && k < SIZES && best_gain < ENOUGH * threads; k++) {
        double all = 0;
        cut_runs(&d, sizes[k], work, context);
        for (int64_t r = 0; r < d.n; r++) all += d.work[r];
        const double path = level(&d), share = (all + SYNC_WORK * (double)d.n) / threads;
        const double gain = all / (sizes[k] > 0 ? fgi_larger(path, share) : level_time(&d, threads));
        drafted = k;
        if (gain > best_gain) best_gain = gain, best = k;
    }
    if (ok && best >= 0) {
        if (best != drafted) {
            cut_runs(&d, sizes[best], work, context);
            level(&d);
        }
        *out = finish(&d, threads, sizes[best] == 0);
        ok = *out != NULL;
    }
    free(d.run);
    free(d.wave);
    free(d.work);
    return ok;
}

void fgi_waves_free(fgi_waves *w) {
    if (!w) return;
    free(w->begin);
    free(w->end);
    free(w->need_begin);
    free(w->needs);
    free(w->earlier);
    free(w->list);
    free(w->done);
    free(w);
}

const int32_t *fgi_waves_list(const fgi_waves *w) { return w->list; }

/* ---- running tasks ------------------------------------------------------------------------------------------- */

typedef struct run {
    fgi_waves *waves;
    fgi_task_body *body;
    void *context;
    double deadline;
    atomic_llong next, done;
    atomic_int stop;
} run;

/* After some microseconds, in which most waits end, other processes get their turn: whom we wait for may not have a
 * core. */
static void wait_a_little(int *waited) {
    enum { SPINS = 2000 };
    if (++*waited > SPINS) sched_yield();
#if defined(__x86_64__) && defined(__GNUC__)
    else __builtin_ia32_pause();
#endif
}

static void wait_for_needs(run *r, int64_t task) {
    const fgi_waves *w = r->waves;
    int waited = 0;
    if (w->earlier) {
        while (atomic_load_explicit(&r->done, memory_order_acquire) < w->earlier[task]) wait_a_little(&waited);
        return;
    }
    for (int64_t k = w->need_begin[2 * task]; k < w->need_begin[2 * task + 1]; k++)
        while (!atomic_load_explicit(&w->done[w->needs[k]], memory_order_acquire)) wait_a_little(&waited);
}

/* What each thread does. A task that has been taken is done, whatever happens: others may wait for it. */
static void take_part(void *context, int64_t begin, int64_t end, int worker) {
    (void)begin;
    (void)end;
    run *r = context;
    fgi_waves *w = r->waves;
    while (!atomic_load_explicit(&r->stop, memory_order_relaxed)) {
        const int64_t task = atomic_fetch_add_explicit(&r->next, 1, memory_order_relaxed);
        if (task >= w->n_tasks) return;
        wait_for_needs(r, task);
        const int go_on = r->body(r->context, w->begin[task], w->end[task], worker);
        atomic_store_explicit(&w->done[task], 1, memory_order_release);
        atomic_fetch_add_explicit(&r->done, 1, memory_order_release);
        if (!go_on || fgi_clock() >= r->deadline) atomic_store_explicit(&r->stop, 1, memory_order_relaxed);
    }
}

int fgi_waves_run(
    fgi_waves *w, fgi_pool *pool, int threads, int64_t *next, double deadline, fgi_task_body *body, void *context) {
    run r = {.waves = w, .body = body, .context = context, .deadline = deadline};
    if (*next == 0)
        for (int64_t k = 0; k < w->n_tasks; k++) atomic_store_explicit(&w->done[k], 0, memory_order_relaxed);
    atomic_init(&r.next, *next);
    atomic_init(&r.done, *next);
    fgi_pool_run(pool, threads, 1, take_part, &r);
    const int64_t taken = atomic_load(&r.next);
    *next = taken < w->n_tasks ? taken : w->n_tasks;
    return *next == w->n_tasks;
}
