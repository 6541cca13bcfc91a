/* dual/trws_step.c - sweeps of TRW-S that several threads go through together, node by node: for graphs in which hardly
 * two nodes can be visited at the same time, as chains and complete graphs, and whose nodes have much to do.
 *
 * The sums of a node are shared out by labels, its messages by edges, a large message by rows of its table. Each number
 * is made of the same terms in the same order as by one thread, and maxima do not depend on the order. Thread 0 keeps
 * the books: bound, labels, clock. */
#include <string.h>
#include "dual/trws_team.h"
#include "solver.h"

enum {
    LEAST_WORK = 1 << 13,   /* entries a node, on average: some meetings of threads take as long as a tenth of that */
    TOGETHER = 1 << 20,     /* entries of the edges that are sent together: a millisecond, then the clock */
    LARGE = 1 << 22,        /* entries from which a table is always parted */
    RATHER_LARGE = 1 << 15, /* entries from which a table is parted where a node has few edges */
    FEW_EDGES = 8           /* edges a thread, below which a node has few */
};

typedef struct step {
    const fgi_model *m;
    fgi_trws *s;
    atomic_llong stop_at; /* the meeting after which all leave */
    int crowded;          /* because the machine is too busy: thread 0 says so */
} step;

/* A thread on its way. */
typedef struct walker {
    step *c;
    const fgi_model *m;
    fgi_trws *s; /* shared by all threads: messages; thread 0 writes what is not an array */
    fgi_trws *w; /* its own scratch memory */
    fgi_trws_team *team;
    int me;
    int64_t meeting, place, done; /* as s->node and s->done */
} walker;

/* After the meeting that comes next nobody goes on. */
static void stop_after_next(const walker *k) {
    atomic_store_explicit(&k->c->stop_at, k->meeting + 1, memory_order_relaxed);
}

static void meet(walker *k) {
    const int is_long = fgi_meet(k->team->counters, k->team->threads, k->me, ++k->meeting);
    if (is_long && fgi_crowd_wait(&k->team->crowd) && k->me == 0) k->c->crowded = 1;
}

static int must_stop(const walker *k) {
    return atomic_load_explicit(&k->c->stop_at, memory_order_relaxed) <= k->meeting;
}

/* Where the share of a thread begins: at whole cache lines. */
static int32_t cut(const walker *k, int32_t n, int thread) {
    enum { LINE = 8 };
    return thread == k->team->threads ? n : (int32_t)((int64_t)n * thread / k->team->threads / LINE * LINE);
}

static double top_of_all(const walker *k, const fgi_trws_part *parts) {
    double top = -INFINITY;
    for (int u = 0; u < k->team->threads; u++) top = fgi_larger(top, parts[u].top);
    return top;
}

/* ---- the sums of a node -------------------------------------------------------------------------------------- */

static void decode(const walker *k, int32_t i, const fgi_trws_part *parts) {
    const fgi_trws_part *best = NULL;
    for (int u = 0; u < k->team->threads; u++)
        if (parts[u].label >= 0 && (!best || parts[u].score > best->score)) best = &parts[u];
    fgi_trws_decode(k->s, i, best->label, best->decoded);
}

/* hat_i with its maximum taken out, a copy for every thread. Returns 0 if that is -INFINITY. */
static int begin_node(walker *k, int32_t i) {
    fgi_trws *w = k->w;
    const int32_t n = k->m->s->cards[i], begin = cut(k, n, k->me), end = cut(k, n, k->me + 1);
    const int forward = w->stage == FORWARD;
    /* Who is quick may be at the next node before others have read these, but not at the one after it. */
    fgi_trws_part *parts = k->team->parts + k->place % 2 * k->team->threads, *part = &parts[k->me];
    double *own = w->hat;
    w->hat = k->s->hat;
    part->label = fgi_trws_add_up(k->m, w, i, forward, begin, end, &part->score);
    w->hat = own;
    part->decoded = forward && end > begin ? w->given[part->label] : 0;
    if (begin == end) part->label = -1;
    part->top = w->k->max(k->s->hat + begin, end - begin);
    meet(k);
    const double top = top_of_all(k, parts);
    if (k->me == 0) {
        fgi_trws_enter(k->s, i);
        if (forward) decode(k, i, parts);
        fgi_progress_take(&k->s->progress, top);
        k->s->done = 0;
        k->s->tops = 0;
    }
    k->done = 0;
    if (top == -INFINITY) return 0;
    if (fgi_trws_sends(w, i) == 0) return 1; /* others may be at the sums of the next node */
    memcpy(w->hat, k->s->hat, (size_t)n * sizeof(double));
    w->k->shift(w->hat, top, n);
    return 1;
}

/* ---- its messages -------------------------------------------------------------------------------------------- */

static int is_parted(const walker *k, const fgi_trws_edge *e, int64_t n_send) {
    if (e->form != FGI_TRWS_DENSE) return 0;
    const int64_t entries = (int64_t)k->m->s->cards[e->lo] * k->m->s->cards[e->hi];
    return entries >= LARGE || (entries >= RATHER_LARGE && n_send < FEW_EDGES * k->team->threads);
}

/* Thread 0, after its share of the work and before the meeting at its end. */
static void look_at_the_clock(const walker *k, int64_t work) {
    if (k->me == 0 && (fgi_trws_out_of_time(k->s, work) || k->c->crowded)) stop_after_next(k);
}

/* Thread 0, after that meeting. */
static void keep_books(const walker *k, const double *tops, int64_t n) {
    if (k->me != 0) return;
    for (int64_t j = 0; j < n; j++) {
        k->s->tops += tops[j];
        if (tops[j] == -INFINITY) fgi_progress_take(&k->s->progress, -INFINITY);
    }
    k->s->done += n;
}

/* One message, by rows of its table. */
static void send_parted(walker *k, fgi_trws_edge *e, double weight) {
    fgi_trws *w = k->w;
    const int to_hi = w->stage == FORWARD, by_rows = fgi_trws_parts_source(k->m, w, e, to_hi),
              threads = k->team->threads;
    const int32_t from = k->m->s->cards[to_hi ? e->lo : e->hi], to = k->m->s->cards[to_hi ? e->hi : e->lo],
                  rows = by_rows ? from : to, first = cut(k, rows, k->me), last = cut(k, rows, k->me + 1),
                  begin = cut(k, to, k->me), end = cut(k, to, k->me + 1);
    double *message = w->messages + e->message, *own = w->given;
    fgi_trws_part *parts = k->team->parts + 2 * threads;
    w->k->reweight(w->hat, weight, message, w->h, from);
    if (first < last) fgi_trws_product_part(k->m, w, e, to_hi, w->h, own, first, last);
    else
        for (int32_t b = 0; b < to; b++) own[b] = -INFINITY;
    meet(k); /* all have read the old message */
    for (int32_t b = begin; b < end; b++) {
        double top = own[b];
        for (int u = 0; by_rows && u < threads; u++) top = fgi_larger(top, k->team->workers[u].given[b]);
        message[b] = top;
    }
    parts[k->me].top = w->k->max(message + begin, end - begin);
    meet(k);
    const double top = top_of_all(k, parts);
    if (top > -INFINITY) w->k->shift(message + begin, top, end - begin);
    else stop_after_next(k);
    if (k->me == 0) e->to_hi = (uint8_t)to_hi;
    look_at_the_clock(k, (int64_t)from * to);
    meet(k);
    keep_books(k, &top, 1);
    k->done++;
}

/* Several messages, those of each thread about the same work. */
static void send_some(walker *k, int32_t i, int64_t n_send, double weight) {
    fgi_trws *w = k->w;
    double *tops = k->team->tops + k->done;
    int64_t n = 0, work = 0, before = 0;
    for (; k->done + n < n_send && work < TOGETHER; n++) {
        const fgi_trws_edge *e = fgi_trws_outgoing(w, i, k->done + n);
        if (is_parted(k, e, n_send)) break;
        work += fgi_trws_edge_entries(k->m, e);
    }
    const int64_t begin = work * k->me / k->team->threads, end = work * (k->me + 1) / k->team->threads;
    for (int64_t j = 0; j < n && before < end; j++) {
        fgi_trws_edge *e = fgi_trws_outgoing(w, i, k->done + j);
        if (before >= begin) {
            tops[j] = fgi_trws_send(k->m, w, e, w->stage == FORWARD, weight);
            if (tops[j] == -INFINITY) stop_after_next(k);
        }
        before += fgi_trws_edge_entries(k->m, e);
    }
    look_at_the_clock(k, work);
    meet(k);
    keep_books(k, tops, n);
    k->done += n;
}

/* Returns 0 if the sweep ends or pauses here. */
static int send_all(walker *k, int32_t i) {
    const int64_t n_send = fgi_trws_sends(k->w, i);
    const double weight = fgi_trws_weight(k->w, i);
    while (k->done < n_send) {
        fgi_trws_edge *e = fgi_trws_outgoing(k->w, i, k->done);
        if (is_parted(k, e, n_send)) send_parted(k, e, weight);
        else send_some(k, i, n_send, weight);
        if (!must_stop(k)) continue;
        if (k->me == 0) memcpy(k->s->hat, k->w->hat, (size_t)k->m->s->cards[i] * sizeof(double));
        return 0;
    }
    return 1;
}

/* ---- the sweep ----------------------------------------------------------------------------------------------- */

static void walk(void *of, int64_t me, int64_t end, int worker) {
    step *c = of;
    fgi_trws_team *t = c->s->team;
    walker k = {.c = c, .m = c->m, .s = c->s, .w = &t->workers[me], .team = t, .me = (int)me};
    (void)end;
    (void)worker;
    k.place = k.w->node;
    k.done = k.w->done;
    if (k.done >= 0) memcpy(k.w->hat, c->s->hat, (size_t)c->m->s->max_card * sizeof(double));
    meet(&k);
    for (; k.place < c->m->s->n_vars; k.place++, k.done = -1) {
        const int32_t i = fgi_trws_node(c->m, k.w, k.place);
        if (k.done < 0 && !begin_node(&k, i)) return;
        if (!send_all(&k, i)) return;
        if (me > 0) continue;
        fgi_progress_take(&c->s->progress, c->s->tops);
        c->s->node++;
        c->s->done = -1;
    }
}

/* Without the memory for it one thread does it. */
static int is_worth_it(const fgi_structure *st, const fgi_trws *s) {
    fgi_trws_team *t = s->team;
    int64_t most = 1;
    if (s->entries < LEAST_WORK * st->n_vars) return 0;
    for (int64_t i = 0; i < st->n_vars; i++)
        if (st->adj_begin[i + 1] - st->adj_begin[i] > most) most = st->adj_begin[i + 1] - st->adj_begin[i];
    t->tops = fgi_alloc(most, sizeof *t->tops);
    return t->tops != NULL;
}

int fgi_trws_sweep_in_step(const fgi_model *m, fgi_trws *s) {
    enum { MEETINGS = 2 }; /* for a node, at least */
    fgi_trws_team *t = s->team;
    if (t->in_step < 0) t->in_step = is_worth_it(m->s, s);
    if (!t->in_step || fgi_pool_threads(t->pool) < t->threads) return -1;
    if (!fgi_crowd_begin(&t->crowd, MEETINGS * (m->s->n_vars - s->node))) return -1;
    step c = {.m = m, .s = s};
    atomic_init(&c.stop_at, INT64_MAX);
    for (int k = 0; k < t->threads; k++) atomic_store(&t->counters[k].done, 0);
    fgi_trws_brief(m, s);
    fgi_pool_run(t->pool, t->threads, 1, walk, &c);
    fgi_trws_count_left_out(s);
    fgi_crowd_end(&t->crowd, c.crowded);
    if (s->node == m->s->n_vars || s->progress.bound.forbidden) return 1;
    return c.crowded ? -1 : 0;
}
