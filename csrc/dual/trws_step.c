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
    LEAST_WORK = 1 << 13,  /* entries a node, on average: some meetings of threads take as long as a tenth of that */
    RATHER_LARGE = 1 << 15 /* entries from which a table is parted where a node has few edges */
};

typedef struct step {
    fgi_walk walk;
    const fgi_model *m;
    fgi_trws *s;
} step;

/* A thread on its way. */
typedef struct walker {
    fgi_walker k;
    const fgi_model *m;
    fgi_trws *s; /* shared by all threads: messages; thread 0 writes what is not an array */
    fgi_trws *w; /* its own scratch memory */
    fgi_trws_team *team;
    int64_t place, done; /* as self->node and self->done */
    int32_t node;
    int64_t n_send; /* messages of the node */
    double weight;
} walker;

static void walker_cut(const walker *k, int32_t n, int32_t *begin, int32_t *end) {
    *begin = fgi_walk_cut(&k->k, n, k->k.me);
    *end = fgi_walk_cut(&k->k, n, k->k.me + 1);
}

/* ---- the sums of a node -------------------------------------------------------------------------------------- */

/* hat_i with its maximum taken out, a copy for every thread. Returns 0 if that is -INFINITY. */
static int begin_node(walker *k, int32_t i) {
    fgi_trws *w = k->w;
    const int32_t n = k->m->s->cards[i];
    const int forward = w->stage == FORWARD;
    int32_t begin, end;
    walker_cut(k, n, &begin, &end);
    /* Who is quick may be at the next node before others have read these, but not at the one after it. */
    fgi_found *found = k->team->team.found + k->place % 2 * k->team->team.threads, *own_found = &found[k->k.me];
    double *own = w->hat;
    w->hat = k->s->hat;
    own_found->label = fgi_trws_add_up(k->m, w, i, forward, begin, end, &own_found->score);
    w->hat = own;
    own_found->decoded = forward && end > begin ? w->given[own_found->label] : 0;
    if (begin == end) own_found->label = -1;
    own_found->top = w->k->max(k->s->hat + begin, end - begin);
    fgi_walk_meet(&k->k);
    const double top = fgi_found_top(&k->k, found);
    if (k->k.me == 0) {
        fgi_trws_enter(k->s, i);
        const fgi_found *best = forward ? fgi_found_best(&k->k, found) : NULL;
        if (forward) fgi_trws_decode(k->s, i, best->label, best->decoded);
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

static int is_parted(const walker *k, const fgi_trws_edge *e) {
    const int64_t entries = (int64_t)k->m->s->cards[e->lo] * k->m->s->cards[e->hi];
    return e->form == FGI_TRWS_DENSE && fgi_walk_is_parted(&k->k, entries, RATHER_LARGE, k->n_send);
}

/* Thread 0, after its share of the work and before the meeting at its end. */
static void look_at_the_clock(const walker *k, int64_t work) {
    if (k->k.me == 0 && (fgi_trws_out_of_time(k->s, work) || k->k.walk->crowded)) fgi_walk_stop(&k->k);
}

/* Thread 0, after that meeting. */
static void keep_books(const walker *k, const double *tops, int64_t n) {
    if (k->k.me != 0) return;
    for (int64_t j = 0; j < n; j++) {
        k->s->tops += tops[j];
        if (tops[j] == -INFINITY) fgi_progress_take(&k->s->progress, -INFINITY);
    }
    k->s->done += n;
}

/* One message, by rows of its table. */
static void send_parted(walker *k, fgi_trws_edge *e) {
    fgi_trws *w = k->w;
    const int to_hi = w->stage == FORWARD, by_rows = fgi_trws_parts_source(k->m, w, e, to_hi);
    const int32_t from = k->m->s->cards[to_hi ? e->lo : e->hi], to = k->m->s->cards[to_hi ? e->hi : e->lo];
    int32_t first, last, begin, end;
    walker_cut(k, by_rows ? from : to, &first, &last);
    walker_cut(k, to, &begin, &end);
    double *message = w->messages + e->message, *own = w->given;
    fgi_found *found = k->team->team.found + 2 * k->team->team.threads;
    w->k->reweight(w->hat, k->weight, message, w->h, from);
    if (first < last) fgi_trws_product_part(k->m, w, e, to_hi, w->h, own, first, last);
    else
        for (int32_t b = 0; b < to; b++) own[b] = -INFINITY;
    fgi_walk_meet(&k->k); /* all have read the old message */
    if (by_rows) fgi_walk_join(&k->k, to, message);
    else memcpy(message + begin, own + begin, (size_t)(end - begin) * sizeof *own);
    found[k->k.me].top = w->k->max(message + begin, end - begin);
    fgi_walk_meet(&k->k);
    const double top = fgi_found_top(&k->k, found);
    if (top > -INFINITY) w->k->shift(message + begin, top, end - begin);
    else fgi_walk_stop(&k->k);
    if (k->k.me == 0) e->to_hi = (uint8_t)to_hi;
    look_at_the_clock(k, (int64_t)from * to);
    fgi_walk_meet(&k->k);
    keep_books(k, &top, 1);
    k->done++;
}

static int64_t message_work(const void *of, int64_t j) {
    const walker *k = of;
    const fgi_trws_edge *e = fgi_trws_outgoing(k->w, k->node, k->done + j);
    return is_parted(k, e) ? -1 : fgi_trws_edge_entries(k->m, e);
}

static void make_message(void *of, int64_t j) {
    const walker *k = of;
    double *top = k->team->tops + k->done + j;
    fgi_trws_edge *e = fgi_trws_outgoing(k->w, k->node, k->done + j);
    *top = fgi_trws_send(k->m, k->w, e, k->w->stage == FORWARD, k->weight);
    if (*top == -INFINITY) fgi_walk_stop(&k->k);
}

static void send_some(walker *k) {
    fgi_messages x = {message_work, make_message, k, k->n_send - k->done, 0};
    const int64_t n = fgi_walk_share(&k->k, &x);
    look_at_the_clock(k, x.total);
    fgi_walk_meet(&k->k);
    keep_books(k, k->team->tops + k->done, n);
    k->done += n;
}

/* Returns 0 if the sweep ends or pauses here. */
static int send_all(walker *k, int32_t i) {
    k->node = i;
    k->n_send = fgi_trws_sends(k->w, i);
    k->weight = fgi_trws_weight(k->w, i);
    while (k->done < k->n_send) {
        fgi_trws_edge *e = fgi_trws_outgoing(k->w, i, k->done);
        if (is_parted(k, e)) send_parted(k, e);
        else send_some(k);
        if (!fgi_walk_is_over(&k->k)) continue;
        if (k->k.me == 0) memcpy(k->s->hat, k->w->hat, (size_t)k->m->s->cards[i] * sizeof(double));
        return 0;
    }
    return 1;
}

/* ---- the sweep ----------------------------------------------------------------------------------------------- */

static void walk(void *of, int me) {
    step *c = of;
    fgi_trws_team *t = c->s->team;
    walker k = {.k = {.walk = &c->walk, .me = me}, .m = c->m, .s = c->s, .w = &t->workers[me], .team = t};
    k.place = k.w->node;
    k.done = k.w->done;
    if (k.done >= 0) memcpy(k.w->hat, c->s->hat, (size_t)c->m->s->max_card * sizeof(double));
    fgi_walk_meet(&k.k);
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
static int is_worth_it(const fgi_structure *s, const fgi_trws *self) {
    fgi_trws_team *t = self->team;
    int64_t most = 1;
    if (self->entries < LEAST_WORK * s->n_vars) return 0;
    for (int64_t i = 0; i < s->n_vars; i++)
        if (s->adj_begin[i + 1] - s->adj_begin[i] > most) most = s->adj_begin[i + 1] - s->adj_begin[i];
    t->tops = fgi_alloc(most, sizeof *t->tops);
    return t->tops != NULL;
}

int fgi_trws_sweep_in_step(const fgi_model *m, fgi_trws *self) {
    enum { MEETINGS = 2 }; /* for a node, at least */
    fgi_trws_team *t = self->team;
    if (t->in_step < 0) t->in_step = is_worth_it(m->s, self);
    if (!t->in_step) return -1;
    step c = {.m = m, .s = self};
    fgi_trws_brief(m, self);
    if (!fgi_walk_run(&c.walk, &t->team, MEETINGS * (m->s->n_vars - self->node), walk, &c)) return -1;
    fgi_trws_count_left_out(self);
    if (self->node == m->s->n_vars || self->progress.bound.forbidden) return 1;
    return c.walk.crowded ? -1 : 0;
}
