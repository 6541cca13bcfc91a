/* model/team.c - see model/team.h. */
#include "model/team.h"
#include "base/assert.h"
#include "base/util.h"

enum {
    LEAST_ENTRIES = 1 << 15, /* entries of a sweep: starting a thread takes as long as some sweeps over fewer */
    TOGETHER = 1 << 20,      /* entries of messages that are shared out together: a millisecond, then the clock */
    LARGE = 1 << 22,         /* entries from which a table is always parted */
    FEW = 8                  /* messages a thread, below which a variable has few */
};

int fgi_team_begin(fgi_team *t, fgi_pool *pool, int threads) {
    fgi_assert(pool && threads > 1);
    t->pool = pool;
    t->threads = threads;
    t->counters = fgi_alloc(threads, sizeof *t->counters);
    t->found = fgi_calloc(3 * (int64_t)threads, sizeof *t->found);
    t->own = fgi_calloc(threads, sizeof *t->own);
    return t->counters && t->found && t->own;
}

void fgi_team_end(fgi_team *t) {
    fgi_waves_maker_free(t->maker);
    fgi_waves_free(t->waves);
    free(t->counters);
    free(t->found);
    free(t->own);
}

/* ---- waves --------------------------------------------------------------------------------------------------- */

void fgi_team_ask(fgi_team *t, const fgi_structure *s, int64_t entries, fgi_visit_work *work, const void *context) {
    if (t->tried || entries < LEAST_ENTRIES) return;
    t->tried = 1;
    t->maker = fgi_waves_maker_start(s, t->threads, work, context);
}

int fgi_team_has_waves(fgi_team *t) {
    if (t->maker && fgi_waves_maker_look(&t->maker, &t->waves) == FGI_WAVES_LOST) t->tried = 0;
    return t->waves != NULL;
}

void fgi_team_rest(fgi_team *t) {
    if (t->maker) t->tried = 0;
    fgi_waves_maker_free(t->maker);
    t->maker = NULL;
}

void fgi_team_drop_waves(fgi_team *t) {
    fgi_waves_free(t->waves);
    t->waves = NULL;
}

void fgi_team_sweep(fgi_team *t, int is_forward) {
    fgi_assert(t->waves && !t->under_way);
    fgi_waves_begin(t->waves, is_forward);
    t->under_way = 1;
}

/* ---- in step ------------------------------------------------------------------------------------------------- */

static void go(void *of, int64_t me, int64_t end, int worker) {
    const fgi_walk *w = of;
    (void)end;
    (void)worker;
    w->go(w->context, (int)me);
}

int fgi_walk_run(fgi_walk *w, fgi_team *t, int64_t meetings, void (*body)(void *context, int me), void *context) {
    if (fgi_pool_threads(t->pool) < t->threads || !fgi_crowd_begin(&t->crowd, meetings)) return 0;
    *w = (fgi_walk){.team = t, .go = body, .context = context};
    atomic_init(&w->stop_at, INT64_MAX);
    for (int k = 0; k < t->threads; k++) atomic_store(&t->counters[k].done, 0);
    fgi_pool_run(t->pool, t->threads, 1, go, w);
    fgi_crowd_end(&t->crowd, w->crowded);
    return 1;
}

void fgi_walk_meet(fgi_walker *k) {
    fgi_team *t = k->walk->team;
    const int is_long = fgi_meet(t->counters, t->threads, k->me, ++k->meeting);
    if (is_long && fgi_crowd_wait(&t->crowd) && k->me == 0) k->walk->crowded = 1;
}

void fgi_walk_stop(const fgi_walker *k) {
    atomic_store_explicit(&k->walk->stop_at, k->meeting + 1, memory_order_relaxed);
}

int fgi_walk_is_over(const fgi_walker *k) {
    return atomic_load_explicit(&k->walk->stop_at, memory_order_relaxed) <= k->meeting;
}

int32_t fgi_walk_cut(const fgi_walker *k, int32_t n, int thread) {
    enum { LINE = 8 }; /* doubles of a cache line */
    const int threads = k->walk->team->threads;
    return thread == threads ? n : (int32_t)((int64_t)n * thread / threads / LINE * LINE);
}

int fgi_walk_is_parted(const fgi_walker *k, int64_t entries, int64_t least, int64_t messages) {
    return entries >= LARGE || (entries >= least && messages < FEW * k->walk->team->threads);
}

void fgi_walk_join(const fgi_walker *k, int32_t n, double *out) {
    const fgi_team *t = k->walk->team;
    const double *own = t->own[k->me];
    for (int32_t b = fgi_walk_cut(k, n, k->me); b < fgi_walk_cut(k, n, k->me + 1); b++) {
        double top = own[b];
        for (int u = 0; u < t->threads; u++) top = fgi_larger(top, t->own[u][b]);
        out[b] = top;
    }
}

double fgi_found_top(const fgi_walker *k, const fgi_found *found) {
    double top = -INFINITY;
    for (int u = 0; u < k->walk->team->threads; u++) top = fgi_larger(top, found[u].top);
    return top;
}

const fgi_found *fgi_found_best(const fgi_walker *k, const fgi_found *found) {
    const fgi_found *best = NULL;
    for (int u = 0; u < k->walk->team->threads; u++)
        if (found[u].label >= 0 && (!best || found[u].score > best->score)) best = &found[u];
    return best;
}

int fgi_walk_is_long(int64_t work) { return work >= TOGETHER; }

int64_t fgi_walk_share(const fgi_walker *k, fgi_messages *x) {
    const int threads = k->walk->team->threads;
    int64_t n = 0, before = 0;
    for (x->total = 0; n < x->n && x->total < TOGETHER; n++) {
        const int64_t work = x->work(x->context, n);
        if (work < 0) break;
        x->total += work;
    }
    const int64_t begin = x->total * k->me / threads, end = x->total * (k->me + 1) / threads;
    for (int64_t j = 0; j < n && before < end; j++) {
        const int64_t work = x->work(x->context, j);
        if (work > 0 && before >= begin) x->make(x->context, j);
        before += work;
    }
    return n;
}
