/* model/waves.c - see model/waves.h. */
#include "model/waves.h"
#include <string.h>
#include "base/arena.h"
#include "base/barrier.h"
#include "base/util.h"

static const double RUN_WORK[2] = {1500, 5e4}; /* length of a run, at least and at most, in nanoseconds */
static const double RUNS_A_THREAD = 64;        /* at least: else they are shorter */
static const double LONGEST = 1e5;             /* longest task in nanoseconds: then comes a look at the clock */
static const double TAKING = 100;              /* a task */
static const double WAITING = 400;             /* for another thread's task that has just ended */
/* A visit takes longer where those before are elsewhere: memory must be waited for. */
static const double OUT_OF_ORDER = 2;  /* times as long, at most */
static const double MISSES = 500;      /* nanoseconds more, at most */
static const double LEAST_GAIN = 1.25; /* estimated: below it threads are not worth their trouble */
static const double ENOUGH = 0.7;      /* a gain of this share of the threads is enough */

typedef struct task {
    int64_t begin, end;  /* places of the forward sweep */
    int32_t owner, turn; /* thread, and its how many'th task it is */
} task;

struct fgi_waves {
    int64_t n_vars, n_tasks;
    int threads, forward;
    task *tasks;       /* each after those it needs */
    int32_t *list;     /* the variable at each place; NULL: that of this number */
    int64_t *begin;    /* per thread: its tasks are mine[begin .. next begin] */
    int32_t *mine;     /* tasks by thread, in their order */
    int32_t *needs[2]; /* backward, forward; per task and thread: so many of that thread's tasks must be done before */
    fgi_counter *counters; /* how many of its tasks a thread has done */
    fgi_crowd crowd;
    fgi_arena arena;
};

/* ---- units: what is not taken apart -------------------------------------------------------------------------- */

/* Tasks under construction. Units are runs of consecutive variables, numbered in their order. */
typedef struct plan {
    const fgi_structure *st;
    double *visit; /* work, per variable */
    int64_t n;
    int32_t *unit;  /* per variable */
    int32_t *level; /* per unit: one after the last of those it needs */
    int64_t n_levels;
    double *work;     /* per unit */
    int64_t *first;   /* per level, into sorted; n_levels + 1 */
    int32_t *sorted;  /* units by level; those of one level in their order */
    int32_t *task_of; /* unit */
    const atomic_int *stop;
    fgi_arena arena;
} plan;

/* Has the caller changed its mind? Asked now and then, for the loops over all variables. */
static int stopped(const plan *d, int64_t i) {
    enum { NOW_AND_THEN = 1 << 14 }; /* variables */
    return i % NOW_AND_THEN == 0 && d->stop && atomic_load_explicit(d->stop, memory_order_relaxed);
}

/* In a random graph factors are anywhere: asks early for one that comes up soon, at place k of all adjacencies. */
static inline void ask_ahead(const fgi_structure *s, int64_t k) {
#if defined(__GNUC__)
    enum { AHEAD = 16 }; /* adjacencies: about as long as memory takes */
    if (k + AHEAD < s->adj_begin[s->n_vars]) __builtin_prefetch(fgi_factor_vars(s, s->adj[k + AHEAD]));
#else
    (void)s;
    (void)k;
#endif
}

static int are_neighbours(const fgi_structure *s, int64_t i, int64_t j) {
    fgi_assert(i >= 0 && i < s->n_vars && j >= 0 && j < s->n_vars);
    for (int64_t k = s->adj_begin[i]; k < s->adj_begin[i + 1]; k++) {
        const int32_t *vars = fgi_factor_vars(s, s->adj[k]);
        for (int32_t v = 0; v < fgi_factor_arity(s, s->adj[k]); v++)
            if (vars[v] == j) return 1;
    }
    return 0;
}

static void single_units(plan *d) {
    d->n = d->st->n_vars;
    for (int64_t i = 0; i < d->n; i++) {
        d->unit[i] = (int32_t)i;
        d->work[i] = d->visit[i] + fgi_smaller((OUT_OF_ORDER - 1) * d->visit[i], MISSES);
    }
}

/* Variables begin .. end, each a neighbour of the next (a row of a grid), in equal parts, as many for every thread. */
static void cut_row(plan *d, int64_t begin, int64_t end, double row_work, double size, int threads) {
    double parts = threads * fgi_larger(1, rint(row_work / (threads * size)));
    if (row_work < parts * RUN_WORK[0]) parts = fgi_larger(1, floor(row_work / RUN_WORK[0]));
    double before = 0;
    int64_t part = -1;
    for (int64_t i = begin; i < end; i++) {
        const int64_t at = (int64_t)((before + 0.5 * d->visit[i]) * parts / row_work);
        if (at > part) {
            part = at;
            d->work[d->n++] = 0;
        }
        before += d->visit[i];
        d->unit[i] = (int32_t)(d->n - 1);
        d->work[d->n - 1] += d->visit[i];
    }
}

static void cut_rows(plan *d, int threads) {
    const fgi_structure *s = d->st;
    double all = 0, row_work = 0;
    int64_t begin = 0;
    for (int64_t i = 0; i < s->n_vars; i++) all += d->visit[i];
    const double size = fgi_smaller(RUN_WORK[1], fgi_larger(RUN_WORK[0], all / (RUNS_A_THREAD * threads)));
    d->n = 0;
    for (int64_t i = 0; i < s->n_vars && !stopped(d, i); i++) {
        row_work += d->visit[i];
        const int ends = i + 1 == s->n_vars || (row_work >= RUN_WORK[0] && !are_neighbours(s, i + 1, i));
        if (!ends) continue;
        cut_row(d, begin, i + 1, row_work, size, threads);
        begin = i + 1;
        row_work = 0;
    }
}

/* The last level among the units before that variable i has a factor with; -1: there are none. */
static int32_t level_before(const plan *d, int64_t i) {
    const fgi_structure *s = d->st;
    const int32_t unit = d->unit[i];
    int32_t last = -1;
    for (int64_t k = s->adj_begin[i]; k < s->adj_begin[i + 1]; k++) {
        const int32_t *vars = fgi_factor_vars(s, s->adj[k]);
        ask_ahead(s, k);
        for (int32_t v = 0; v < fgi_factor_arity(s, s->adj[k]); v++) {
            const int32_t other = d->unit[vars[v]], level = d->level[other];
            last =
                ((other < unit) & (level > last)) ? level : last; /* branches would be mispredicted half of the time */
        }
    }
    return last;
}

static void find_levels(plan *d) {
    d->n_levels = 0;
    for (int64_t k = 0; k < d->n; k++) d->level[k] = 0;
    for (int64_t i = 0; i < d->st->n_vars && !stopped(d, i); i++) {
        int32_t *level = &d->level[d->unit[i]], after = level_before(d, i) + 1;
        if (after > *level) *level = after;
        if (*level >= d->n_levels) d->n_levels = *level + 1;
    }
    memset(d->first, 0, (size_t)(d->n_levels + 1) * sizeof *d->first);
    for (int64_t k = 0; k < d->n; k++) d->first[d->level[k] + 1]++;
    for (int64_t k = 0; k < d->n_levels; k++) d->first[k + 1] += d->first[k];
    for (int64_t k = 0; k < d->n; k++) d->sorted[d->first[d->level[k]]++] = (int32_t)k;
    for (int64_t k = d->n_levels; k > 0; k--) d->first[k] = d->first[k - 1];
    d->first[0] = 0;
}

/* ---- tasks --------------------------------------------------------------------------------------------------- */

static void new_task(fgi_waves *w, int64_t begin, int owner) {
    task *t = &w->tasks[w->n_tasks++];
    t->begin = t->end = begin;
    t->owner = owner;
    t->turn = (int32_t)w->begin[owner + 1]++; /* counts them, for the time being */
}

/* A level is cut into shares such that all threads have had as much work by its end. */
static void share_out(plan *d, fgi_waves *w) {
    double total = 0, place_work = 0;
    double *had = d->visit; /* no longer needed */
    int64_t place = 0;
    for (int k = 0; k < w->threads; k++) had[k] = 0;
    for (int64_t level = 0; level < d->n_levels; level++) {
        int owner = 0, fresh = 1;
        for (int64_t k = d->first[level]; k < d->first[level + 1]; k++) total += d->work[d->sorted[k]];
        for (int64_t k = d->first[level]; k < d->first[level + 1]; k++) {
            const int32_t unit = d->sorted[k];
            const double half = 0.5 * d->work[unit];
            while (owner + 1 < w->threads && had[owner] + half > total / w->threads) {
                owner++;
                fresh = 1;
            }
            if (!w->list || fresh || place_work > LONGEST) {
                new_task(w, place, owner);
                place_work = 0;
                fresh = 0;
            }
            d->task_of[unit] = (int32_t)(w->n_tasks - 1);
            w->tasks[w->n_tasks - 1].end++;
            if (w->list) w->list[place] = unit;
            place++;
            place_work += d->work[unit];
            had[owner] += d->work[unit];
        }
    }
    for (int k = 0; k < w->threads; k++) w->begin[k + 1] += w->begin[k];
    for (int64_t k = 0; k < w->n_tasks; k++) w->mine[w->begin[w->tasks[k].owner] + w->tasks[k].turn] = (int32_t)k;
}

/* Runs lie where their variables do. */
static void place_runs(const plan *d, fgi_waves *w) {
    for (int64_t i = 0; i < d->st->n_vars; i++) {
        task *t = &w->tasks[d->task_of[d->unit[i]]];
        if (i == 0 || d->unit[i - 1] != d->unit[i]) t->begin = i;
        t->end = i + 1;
    }
}

static void need(int32_t *needs, int32_t at_least) {
    if (*needs < at_least) *needs = at_least;
}

/* Task a comes before task b and has a factor with it. */
static void depend(fgi_waves *w, int32_t a, int32_t b) {
    fgi_assert(a >= 0 && b >= 0);
    const task *before = &w->tasks[a], *after = &w->tasks[b];
    const int64_t all = w->begin[after->owner + 1] - w->begin[after->owner];
    if (before->owner == after->owner) return;
    need(&w->needs[1][(int64_t)b * w->threads + before->owner], before->turn + 1);
    need(&w->needs[0][(int64_t)a * w->threads + after->owner], (int32_t)all - after->turn);
}

/* Factor by factor, as they lie in memory. */
static void find_needs(const plan *d, fgi_waves *w) {
    const fgi_structure *s = d->st;
    for (int64_t f = 0; f < s->n_factors && !stopped(d, f); f++) {
        const int32_t *vars = fgi_factor_vars(s, f), arity = fgi_factor_arity(s, f);
        for (int32_t p = 1; p < arity; p++)
            for (int32_t q = 0; q < p; q++) {
                const int32_t a = d->unit[vars[p]], b = d->unit[vars[q]];
                if (a != b) depend(w, d->task_of[a < b ? a : b], d->task_of[a < b ? b : a]);
            }
    }
}

/* The time that a forward sweep would take. `ends` has room for every task. */
static double estimate(const plan *d, const fgi_waves *w, double *work, double *ends) {
    double last = 0;
    memset(work, 0, (size_t)w->n_tasks * sizeof *work);
    for (int64_t k = 0; k < d->n; k++) work[d->task_of[k]] += d->work[k];
    for (int64_t k = 0; k < w->n_tasks; k++) {
        const task *t = &w->tasks[k];
        const int32_t *mine = w->mine + w->begin[t->owner], *needs = w->needs[1] + k * w->threads;
        double start = t->turn ? ends[mine[t->turn - 1]] : 0;
        for (int u = 0; u < w->threads; u++)
            if (needs[u]) start = fgi_larger(start, ends[w->mine[w->begin[u] + needs[u] - 1]] + WAITING);
        ends[k] = start + work[k] + TAKING;
        last = fgi_larger(last, ends[k]);
    }
    return last;
}

/* ---- creation ------------------------------------------------------------------------------------------------ */

/* NULL without memory. *gain: how many times quicker than one thread it seems. */
static fgi_waves *make(plan *d, int threads, int runs, double *gain) {
    fgi_waves *w = fgi_calloc(1, sizeof *w);
    if (!w) return NULL;
    double all = 0;
    for (int64_t k = 0; k < d->n; k++) all += runs ? d->work[k] : d->visit[k];
    w->n_vars = d->st->n_vars;
    w->threads = threads;
    w->tasks = fgi_take(&w->arena, d->n, task);
    w->begin = fgi_take_zero(&w->arena, threads + 1, int64_t);
    w->mine = fgi_take(&w->arena, d->n, int32_t);
    w->counters = fgi_take_zero(&w->arena, threads, fgi_counter);
    if (!runs) w->list = fgi_take(&w->arena, d->n, int32_t);
    fgi_arena scratch = {0};
    double *work = fgi_take(&scratch, d->n, double), *ends = fgi_take(&scratch, d->n, double);
    int ok = !w->arena.failed && !scratch.failed;
    if (ok) {
        share_out(d, w);
        if (runs) place_runs(d, w);
        for (int forward = 0; forward < 2; forward++)
            w->needs[forward] = fgi_take_zero(&w->arena, w->n_tasks * threads, int32_t);
        ok = !w->arena.failed;
    }
    if (ok) {
        find_needs(d, w);
        *gain = all / estimate(d, w, work, ends);
    }
    fgi_arena_free(&scratch);
    if (ok) return w;
    fgi_waves_free(w);
    return NULL;
}

/* Keeps the better of two ways. */
static int try_units(plan *d, int threads, int runs, double *best, fgi_waves **out) {
    double gain = 0;
    if (runs) cut_rows(d, threads);
    else single_units(d);
    find_levels(d);
    if (stopped(d, 0)) return 0;
    if (d->n_levels > 0.9 * (double)d->n) return 1; /* one by one */
    fgi_waves *w = make(d, threads, runs, &gain);
    if (!w) return 0;
    if (stopped(d, 0)) {
        fgi_waves_free(w);
        return 0;
    }
    if (gain > *best) {
        *best = gain;
        fgi_waves_free(*out);
        *out = w;
    } else {
        fgi_waves_free(w);
    }
    return 1;
}

int fgi_waves_create(const fgi_structure *s, int threads, fgi_visit_work *work, const void *context,
    const atomic_int *stop, fgi_waves **out) {
    const int64_t n = s->n_vars;
    double best = LEAST_GAIN;
    *out = NULL;
    if (n < 2 || threads < 2 || threads > n) return 1;
    plan d = {.st = s, .stop = stop};
    d.visit = fgi_take(&d.arena, n, double);
    d.unit = fgi_take(&d.arena, n, int32_t);
    d.level = fgi_take(&d.arena, n, int32_t);
    d.work = fgi_take(&d.arena, n, double);
    d.first = fgi_take(&d.arena, n + 1, int64_t);
    d.sorted = fgi_take(&d.arena, n, int32_t);
    d.task_of = fgi_take(&d.arena, n, int32_t);
    int ok = !d.arena.failed;
    for (int runs = 1; runs >= 0 && ok && best < ENOUGH * threads; runs--) {
        for (int64_t i = 0; i < n && !stopped(&d, i); i++) d.visit[i] = work(context, i);
        ok = !stopped(&d, 0) && try_units(&d, threads, runs, &best, out);
    }
    fgi_arena_free(&d.arena);
    if (ok) return 1;
    fgi_waves_free(*out);
    *out = NULL;
    return 0;
}

void fgi_waves_free(fgi_waves *w) {
    if (!w) return;
    fgi_arena_free(&w->arena);
    free(w);
}

const int32_t *fgi_waves_list(const fgi_waves *w) { return w->list; }

/* ---- running tasks ------------------------------------------------------------------------------------------- */

typedef struct run {
    fgi_waves *waves;
    fgi_task_body *body;
    void *context;
    double deadline;
    const fgi_aside *aside; /* NULL: nothing else is to be done */
    atomic_int stop, crowded;
    atomic_int aside_is_over, all_join;
} run;

/* Returns 0 if the run ends before. */
static int wait_for_needs(run *r, int64_t number) {
    const fgi_waves *w = r->waves;
    const int32_t *needs = w->needs[w->forward] + number * w->threads;
    fgi_wait waited = {0, 0};
    for (int u = 0; u < w->threads; u++)
        while (atomic_load_explicit(&w->counters[u].done, memory_order_acquire) < needs[u]) {
            if (atomic_load_explicit(&r->stop, memory_order_relaxed) ||
                atomic_load_explicit(&r->crowded, memory_order_relaxed))
                return 0;
            fgi_wait_a_little(&waited);
        }
    if (fgi_wait_was_long(&waited) && fgi_crowd_wait(&r->waves->crowd))
        atomic_store_explicit(&r->crowded, 1, memory_order_relaxed);
    return 1;
}

static int do_task(run *r, int64_t number, int64_t then, int worker) {
    fgi_waves *w = r->waves;
    const task *t = &w->tasks[number];
    const int go_on = w->forward ? r->body(r->context, t->begin, t->end, then, worker)
                                 : r->body(r->context, w->n_vars - t->end, w->n_vars - t->begin, then, worker);
    atomic_fetch_add_explicit(&w->counters[t->owner].done, 1, memory_order_release);
    if (!go_on || fgi_clock() >= r->deadline) atomic_store_explicit(&r->stop, 1, memory_order_relaxed);
    return !atomic_load_explicit(&r->stop, memory_order_relaxed);
}

/* All tasks by one thread, in an order in which none has to wait, or those until the others join. */
static void alone(run *r, int worker) {
    const fgi_waves *w = r->waves;
    for (int64_t k = 0; k < w->n_tasks; k++) {
        const int64_t number = w->forward ? k : w->n_tasks - 1 - k;
        const task *t = &w->tasks[number];
        const int64_t n = w->begin[t->owner + 1] - w->begin[t->owner];
        const int64_t before = w->forward ? t->turn : n - 1 - t->turn;
        if (atomic_load_explicit(&w->counters[t->owner].done, memory_order_relaxed) > before) continue;
        if (r->aside && atomic_load_explicit(&r->aside_is_over, memory_order_relaxed)) return;
        if (!do_task(r, number, -1, worker)) return;
    }
}

/* Until it is over or the time is. */
static void do_aside(run *r) {
    int over = r->aside->piece(r->aside->context);
    while (!over && !atomic_load_explicit(&r->stop, memory_order_relaxed) && fgi_clock() < r->deadline)
        over = r->aside->piece(r->aside->context);
    atomic_store_explicit(over ? &r->aside_is_over : &r->stop, 1, memory_order_relaxed);
}

/* The first thread works on alone while the second has something else to do. */
static void wait_for_all(run *r, int64_t thread, int worker) {
    fgi_wait waited = {0, 0};
    if (thread == 0) {
        alone(r, worker);
        atomic_store_explicit(&r->all_join, 1, memory_order_release);
        return;
    }
    if (thread == 1) do_aside(r);
    while (!atomic_load_explicit(&r->all_join, memory_order_acquire)) fgi_wait_a_little(&waited);
}

/* The tasks of one thread, from the first to the last or the other way. */
static void take_part(void *context, int64_t thread, int64_t end, int worker) {
    run *r = context;
    const fgi_waves *w = r->waves;
    if (r->aside) wait_for_all(r, thread, worker);
    if (atomic_load_explicit(&r->stop, memory_order_relaxed)) return;
    const int64_t n = w->begin[thread + 1] - w->begin[thread];
    (void)end;
    for (int64_t k = atomic_load_explicit(&w->counters[thread].done, memory_order_relaxed); k < n; k++) {
        const int32_t *mine = w->mine + w->begin[thread];
        const int64_t number = w->forward ? mine[k] : mine[n - 1 - k];
        int64_t then = -1;
        if (k + 1 < n) then = w->forward ? w->tasks[mine[k + 1]].begin : w->n_vars - w->tasks[mine[n - 2 - k]].end;
        if (!wait_for_needs(r, number) || !do_task(r, number, then, worker)) return;
        if (atomic_load_explicit(&r->crowded, memory_order_relaxed)) return;
    }
}

void fgi_waves_begin(fgi_waves *w, int forward) {
    w->forward = forward;
    for (int k = 0; k < w->threads; k++) atomic_store_explicit(&w->counters[k].done, 0, memory_order_relaxed);
}

int fgi_waves_run(
    fgi_waves *w, fgi_pool *pool, double deadline, fgi_task_body *body, void *context, const fgi_aside *aside) {
    run r = {.waves = w, .body = body, .context = context, .deadline = deadline, .aside = aside};
    const int together = fgi_pool_threads(pool) >= w->threads && fgi_crowd_begin(&w->crowd, w->n_tasks);
    if (together) {
        fgi_pool_run(pool, w->threads, 1, take_part, &r);
        fgi_crowd_end(&w->crowd, atomic_load(&r.crowded));
    }
    if (!together && aside) do_aside(&r);
    r.aside = NULL;
    if ((!together || atomic_load(&r.crowded)) && !atomic_load(&r.stop)) alone(&r, 0);
    int64_t done = 0;
    for (int k = 0; k < w->threads; k++) done += atomic_load(&w->counters[k].done);
    return done == w->n_tasks;
}
