/* gdmm/sweep_step.c - sweeps that several threads go through together, variable by variable: for graphs in which hardly
 * two variables can be visited at the same time, as chains and complete graphs, and whose variables have much to do.
 *
 * The messages to a variable are shared out by factors, a large one by rows of its table; sums, decoding and shares by
 * labels. Each number is made of the same terms in the same order as by one thread, and maxima do not depend on the
 * order. Thread 0 keeps the books: bound, labels, clock. */
#include "gdmm/team.h"

enum {
    LEAST_WORK = 1 << 13,  /* entries a variable, on average: meetings of threads take as long as a tenth of that */
    RATHER_LARGE = 1 << 14 /* entries from which a table is parted where a variable has few factors */
};

typedef struct step {
    fgi_walk walk;
    gdmm *g;
    gdmm_sweep *s;
    int infeasible; /* thread 0 says so */
} step;

/* A thread on its way. */
typedef struct walker {
    fgi_walker k;
    step *c;
    gdmm *g;
    gdmm_sweep *s; /* shared by all threads: thread 0 writes what is not an array */
    gdmm_hand *d;
    gdmm_team *team;
    int64_t place, edge;   /* as sweep->node and sweep->edge */
    const fgi_link *links; /* `degree` messages to the variable */
    int64_t degree;
} walker;

static void walker_cut(const walker *k, int32_t n, int32_t *begin, int32_t *end) {
    *begin = fgi_walk_cut(&k->k, n, k->k.me);
    *end = fgi_walk_cut(&k->k, n, k->k.me + 1);
}

/* Thread 0, before a meeting: nobody goes on after it if the time is over. */
static void look_at_the_clock(const walker *k) {
    if (k->k.me == 0 && (k->k.walk->crowded || fgi_clock() >= k->g->deadline)) fgi_walk_stop(&k->k);
}

/* ---- messages ------------------------------------------------------------------------------------------------ */

static int is_parted(const walker *k, const fgi_link *l) {
    const fgi_view v = fgi_factor_view(k->g->model, l->factor);
    if (v.arity != 2 || v.kind != FGI_DENSE || v.reach || k->g->tables[v.table].sliced) return 0;
    return fgi_walk_is_parted(&k->k, (int64_t)v.rows * v.cols, RATHER_LARGE, k->degree);
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
    const int rows_are_others = l->position != v.transposed;
    const int32_t rows = v.transposed ? v.cols : v.rows, n_to = l->position ? v.cols : v.rows;
    int32_t first, last;
    walker_cut(k, rows, &first, &last);
    const fgi_view part = part_of(&v, first, last);
    const double *other = gdmm_sweep_other(k->s, &v, l);
    double *own = k->d->given, *out = k->s->mu + l->mu;
    if (rows_are_others) {
        if (first < last) ask_part(k, l, &part, other + first, own);
        else
            for (int32_t b = 0; b < n_to; b++) own[b] = -INFINITY;
        fgi_walk_meet(&k->k);
        fgi_walk_join(&k->k, n_to, out);
    } else if (first < last) {
        ask_part(k, l, &part, other, out + first);
    }
    if (k->k.me == 0) k->s->cap[gdmm_sweep_slot(g, l)] = -INFINITY;
    look_at_the_clock(k);
    fgi_walk_meet(&k->k);
    k->edge++;
}

static int64_t message_work(const void *of, int64_t j) {
    const walker *k = of;
    const fgi_link *l = &k->links[k->edge + j];
    return !gdmm_is_wanted(k->g, k->s, l) ? 0 : is_parted(k, l) ? -1 : gdmm_link_work(k->g, l);
}

static void make_message(void *of, int64_t j) {
    const walker *k = of;
    gdmm_collect(k->g, k->s, k->d, &k->links[k->edge + j]);
}

static void collect_some(walker *k) {
    fgi_messages x = {message_work, make_message, k, k->degree - k->edge, 0};
    const int64_t n = fgi_walk_share(&k->k, &x);
    if (fgi_walk_is_long(x.total)) look_at_the_clock(k);
    fgi_walk_meet(&k->k);
    k->edge += n;
}

/* Returns 0 if the sweep pauses here. */
static int collect_all(walker *k, int32_t i) {
    k->links = k->s->links + k->g->model->s->adj_begin[i];
    k->degree = gdmm_degree(k->g, i);
    while (k->edge < k->degree) {
        const fgi_link *l = &k->links[k->edge];
        if (gdmm_is_wanted(k->g, k->s, l) && is_parted(k, l)) collect_parted(k, l);
        else collect_some(k);
        if (k->k.me == 0) k->s->edge = k->edge;
        if (fgi_walk_is_over(&k->k)) return 0;
    }
    return 1;
}

/* ---- sums and shares ----------------------------------------------------------------------------------------- */

/* All messages are there. Returns 0 if the sweep ends or pauses after it. */
static int visit(walker *k, int32_t i) {
    gdmm *g = k->g;
    gdmm_sweep *sweep = k->s;
    const fgi_structure *s = g->model->s;
    fgi_found *found = k->team->team.found, *own = &found[k->k.me];
    double *hat = sweep->hand.hat;
    int some_forbidden = 0;
    int32_t begin, end;
    walker_cut(k, s->cards[i], &begin, &end);
    if (begin < end)
        fgi_reweight_sum(g->kernels, g->theta + s->unary_begin[i] + begin, end - begin, sweep->mu + begin,
            sweep->links + s->adj_begin[i], gdmm_degree(g, i), hat + begin);
    if (g->has_slices) { /* close looks go on where the last one has led */
        fgi_walk_meet(&k->k);
        if (k->k.me == 0) gdmm_settle(g, sweep, &sweep->hand, i);
        fgi_walk_meet(&k->k);
    }
    own->label = -1;
    own->some_forbidden = gdmm_visit_forbid(g, hat, i, begin, end, &own->top);
    if (sweep->decode && begin < end) own->label = gdmm_visit_decode(g, sweep, k->d, i, begin, end);
    if (own->label >= 0) own->score = k->d->given[own->label];
    look_at_the_clock(k);
    fgi_walk_meet(&k->k);
    for (int u = 0; u < k->team->team.threads; u++) some_forbidden |= found[u].some_forbidden;
    const double top = fgi_found_top(&k->k, found);
    const fgi_found *best = fgi_found_best(&k->k, found);
    const int is_over = fgi_walk_is_over(&k->k);
    if (!gdmm_is_feasible(top)) {
        if (k->k.me == 0) k->c->infeasible = 1;
        return 0;
    }
    if (begin < end) gdmm_visit_share(g, sweep, hat, top, some_forbidden, i, begin, end);
    if (k->k.me == 0) {
        if (sweep->decode) sweep->labels[i] = best ? best->label : -1;
        gdmm_sweep_take(sweep, top);
        sweep->node++;
        sweep->edge = 0;
    }
    fgi_walk_meet(&k->k); /* the next variable reads all that; and parts are written anew */
    k->place++;
    k->edge = 0;
    return !is_over;
}

static void walk(void *of, int me) {
    step *c = of;
    gdmm_team *t = c->s->team;
    walker k = {.k = {.walk = &c->walk, .me = me}, .c = c, .g = c->g, .s = c->s, .d = &t->hands[me], .team = t};
    k.place = c->s->node;
    k.edge = c->s->edge;
    fgi_walk_meet(&k.k);
    while (k.place < c->g->model->s->n_vars) {
        const int32_t i = gdmm_sweep_variable(c->g, c->s, k.place);
        if (!collect_all(&k, i) || !visit(&k, i)) return;
    }
}

int gdmm_sweep_in_step(gdmm *g, gdmm_sweep *sweep) {
    enum { MEETINGS = 3 }; /* for a variable, at least */
    gdmm_team *t = sweep->team;
    const int64_t n = g->model->s->n_vars;
    if (t->entries < LEAST_WORK * n || t->team.maker) return GDMM_ALONE;
    step c = {.g = g, .s = sweep};
    if (!fgi_walk_run(&c.walk, &t->team, MEETINGS * (n - sweep->node), walk, &c)) return GDMM_ALONE;
    if (c.infeasible) return -1;
    if (sweep->node == n) return 1;
    return c.walk.crowded ? GDMM_ALONE : 0;
}
