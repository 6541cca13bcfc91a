/* gdmm/sweep_step.c - sweeps that several threads go through together, variable by variable: for graphs in which hardly
 * two variables can be visited at the same time, as chains and complete graphs, and whose variables have much to do.
 *
 * The messages to a variable are shared out by factors, a large one by rows of its table; sums, decoding and shares by
 * labels. Each number is made of the same terms in the same order as by one thread, and maxima do not depend on the
 * order. Thread 0 keeps the books: bound, labels, clock. */
#include "gdmm/team.h"

enum {
    LEAST_WORK = 1 << 13,   /* entries a variable, on average: meetings of threads take as long as a tenth of that */
    TOGETHER = 1 << 20,     /* entries of the messages that are collected together: a millisecond, then the clock */
    LARGE = 1 << 22,        /* entries from which a table is always parted */
    RATHER_LARGE = 1 << 14, /* entries from which a table is parted where a variable has few factors */
    FEW = 8                 /* factors a thread, below which a variable has few */
};

typedef struct step {
    gdmm *g;
    gdmm_sweep *s;
    atomic_llong stop_at; /* the meeting after which all leave */
    int crowded;          /* because the machine is too busy: thread 0 says so */
    int infeasible;       /* likewise */
} step;

/* A thread on its way. */
typedef struct walker {
    step *c;
    gdmm *g;
    gdmm_sweep *s; /* shared by all threads: thread 0 writes what is not an array */
    gdmm_hand *d;
    gdmm_team *team;
    int me;
    int64_t meeting, place, edge; /* as s->node and s->edge */
} walker;

static void meet(walker *k) {
    const int is_long = fgi_meet(k->team->counters, k->team->threads, k->me, ++k->meeting);
    if (is_long && fgi_crowd_wait(&k->team->crowd) && k->me == 0) k->c->crowded = 1;
}

/* Thread 0, before a meeting: nobody goes on after it if the time is over. */
static void look_at_the_clock(const walker *k) {
    if (k->me == 0 && (k->c->crowded || fgi_clock() >= k->g->deadline))
        atomic_store_explicit(&k->c->stop_at, k->meeting + 1, memory_order_relaxed);
}

static int must_stop(const walker *k) {
    return atomic_load_explicit(&k->c->stop_at, memory_order_relaxed) <= k->meeting;
}

/* Where the share of a thread begins: at whole cache lines. */
static int32_t cut(const walker *k, int32_t n, int thread) {
    enum { LINE = 8 };
    return thread == k->team->threads ? n : (int32_t)((int64_t)n * thread / k->team->threads / LINE * LINE);
}

/* ---- messages ------------------------------------------------------------------------------------------------ */

static int is_parted(const walker *k, const fgi_link *l, int64_t degree) {
    const fgi_view v = fgi_factor_view(k->g->model, l->factor);
    if (v.arity != 2 || v.kind != FGI_DENSE || v.reach || k->g->tables[v.table].sliced) return 0;
    const int64_t entries = (int64_t)v.rows * v.cols;
    return entries >= LARGE || (entries >= RATHER_LARGE && degree < FEW * k->team->threads);
}

/* Rows first .. last of a table as it is stored: a table, too. */
static fgi_view part_of(const fgi_view *v, int32_t first, int32_t last) {
    fgi_view part = *v;
    part.values += (int64_t)first * (v->transposed ? v->rows : v->cols);
    *(v->transposed ? &part.cols : &part.rows) = last - first;
    return part;
}

static void ask_part(walker *k, const fgi_link *l, const fgi_view *part, const double *other, double *out) {
    k->d->entries += fgi_pair_marginals(part, l->position, other, k->d->worker->oracle, out);
}

/* One message, by rows of its table as it is stored: of the other variable's (then each thread has a maximum over its
 * rows, and they are put together), or of this one's. */
static void collect_parted(walker *k, const fgi_link *l) {
    const gdmm *g = k->g;
    const fgi_view v = fgi_factor_view(g->model, l->factor);
    const int rows_are_others = l->position != v.transposed, threads = k->team->threads;
    const int32_t rows = v.transposed ? v.cols : v.rows, n_to = l->position ? v.cols : v.rows;
    const int32_t first = cut(k, rows, k->me), last = cut(k, rows, k->me + 1);
    const fgi_view part = part_of(&v, first, last);
    const double *other = gdmm_sweep_other(k->s, &v, l);
    double *own = k->d->given, *out = k->s->mu + l->mu;
    if (rows_are_others) {
        if (first < last) ask_part(k, l, &part, other + first, own);
        else
            for (int32_t b = 0; b < n_to; b++) own[b] = -INFINITY;
        meet(k);
        for (int32_t b = cut(k, n_to, k->me); b < cut(k, n_to, k->me + 1); b++) {
            double top = own[b];
            for (int u = 0; u < threads; u++) top = fgi_larger(top, k->team->hands[u].given[b]);
            out[b] = top;
        }
    } else if (first < last) {
        ask_part(k, l, &part, other, out + first);
    }
    if (k->me == 0) k->s->cap[gdmm_sweep_slot(g, l)] = -INFINITY;
    look_at_the_clock(k);
    meet(k);
    k->edge++;
}

/* Several messages, those of each thread about the same work. */
static void collect_some(walker *k, const fgi_link *links, int64_t degree) {
    const gdmm *g = k->g;
    int64_t n = 0, work = 0, before = 0;
    for (; k->edge + n < degree && work < TOGETHER; n++) {
        const fgi_link *l = &links[k->edge + n];
        if (!gdmm_is_wanted(g, k->s, l)) continue;
        if (is_parted(k, l, degree)) break;
        work += gdmm_link_work(g, l);
    }
    const int64_t begin = work * k->me / k->team->threads, end = work * (k->me + 1) / k->team->threads;
    for (int64_t j = 0; j < n && before < end; j++) {
        const fgi_link *l = &links[k->edge + j];
        if (!gdmm_is_wanted(g, k->s, l)) continue;
        const int64_t one = gdmm_link_work(g, l);
        if (before >= begin) gdmm_collect(k->g, k->s, k->d, l);
        before += one;
    }
    if (work >= TOGETHER) look_at_the_clock(k);
    meet(k);
    k->edge += n;
}

/* Returns 0 if the sweep pauses here. */
static int collect_all(walker *k, int32_t i) {
    const fgi_link *links = k->s->links + k->g->model->s->adj_begin[i];
    const int64_t degree = gdmm_degree(k->g, i);
    while (k->edge < degree) {
        const fgi_link *l = &links[k->edge];
        if (gdmm_is_wanted(k->g, k->s, l) && is_parted(k, l, degree)) collect_parted(k, l);
        else collect_some(k, links, degree);
        if (k->me == 0) k->s->edge = k->edge;
        if (must_stop(k)) return 0;
    }
    return 1;
}

/* ---- sums and shares ----------------------------------------------------------------------------------------- */

/* All messages are there. Returns 0 if the sweep ends or pauses after it. */
static int visit(walker *k, int32_t i) {
    gdmm *g = k->g;
    gdmm_sweep *s = k->s;
    const gdmm_team *t = k->team;
    const fgi_structure *st = g->model->s;
    const int32_t card = st->cards[i], begin = cut(k, card, k->me), end = cut(k, card, k->me + 1);
    double *hat = s->hand.hat, top = -INFINITY;
    gdmm_part *part = &k->team->parts[k->me];
    const gdmm_part *best = NULL;
    int some_forbidden = 0;
    if (begin < end)
        fgi_reweight_sum(g->kernels, g->theta + st->unary_begin[i] + begin, end - begin, s->mu + begin,
            s->links + st->adj_begin[i], gdmm_degree(g, i), hat + begin);
    if (g->has_slices) { /* close looks go on where the last one has led */
        meet(k);
        if (k->me == 0) gdmm_settle(g, s, &s->hand, i);
        meet(k);
    }
    part->label = -1;
    part->some_forbidden = gdmm_visit_forbid(g, hat, i, begin, end, &part->top);
    if (s->decode && begin < end) part->label = gdmm_visit_decode(g, s, k->d, i, begin, end);
    if (part->label >= 0) part->score = k->d->given[part->label];
    look_at_the_clock(k);
    meet(k);
    for (int u = 0; u < t->threads; u++) {
        top = fgi_larger(top, t->parts[u].top);
        some_forbidden |= t->parts[u].some_forbidden;
        if (t->parts[u].label >= 0 && (!best || t->parts[u].score > best->score)) best = &t->parts[u];
    }
    const int is_over = must_stop(k);
    if (!gdmm_is_feasible(top)) {
        if (k->me == 0) k->c->infeasible = 1;
        return 0;
    }
    if (begin < end) gdmm_visit_share(g, s, hat, top, some_forbidden, i, begin, end);
    if (k->me == 0) {
        if (s->decode) s->labels[i] = best ? best->label : -1;
        gdmm_sweep_take(s, top);
        s->node++;
        s->edge = 0;
    }
    meet(k); /* the next variable reads all that; and parts are written anew */
    k->place++;
    k->edge = 0;
    return !is_over;
}

static void walk(void *of, int64_t me, int64_t end, int worker) {
    step *c = of;
    gdmm_team *t = c->s->team;
    walker k = {.c = c, .g = c->g, .s = c->s, .d = &t->hands[me], .team = t, .me = (int)me};
    (void)end;
    (void)worker;
    k.place = c->s->node;
    k.edge = c->s->edge;
    meet(&k);
    while (k.place < c->g->model->s->n_vars) {
        const int32_t i = gdmm_sweep_variable(c->g, c->s, k.place);
        if (!collect_all(&k, i) || !visit(&k, i)) return;
    }
}

int gdmm_sweep_in_step(gdmm *g, gdmm_sweep *s) {
    enum { MEETINGS = 3 }; /* for a variable, at least */
    gdmm_team *t = s->team;
    const int64_t n = g->model->s->n_vars;
    if (t->entries < LEAST_WORK * n || t->maker || fgi_pool_threads(t->pool) < t->threads) return GDMM_ALONE;
    if (!fgi_crowd_begin(&t->crowd, MEETINGS * (n - s->node))) return GDMM_ALONE;
    step c = {.g = g, .s = s};
    atomic_init(&c.stop_at, INT64_MAX);
    for (int k = 0; k < t->threads; k++) atomic_store(&t->counters[k].done, 0);
    fgi_pool_run(t->pool, t->threads, 1, walk, &c);
    fgi_crowd_end(&t->crowd, c.crowded);
    if (c.infeasible) return -1;
    if (s->node == n) return 1;
    return c.crowded ? GDMM_ALONE : 0;
}
