/* gdmm/sweep_waves.c - the sweeps of gdmm/sweep.c by several threads, with the same result to the last bit as by one.
 *
 * What a visit computes depends on the visits of its neighbours earlier in the sweep alone, so visits that do not
 * depend on each other may happen at the same time (model/waves.h). The largest hat of each variable is recorded, and
 * all are added up in the order of one thread when the sweep is complete. Where the graph has no two such variables for
 * long, as chains and complete graphs, all threads work on the same one instead (gdmm/sweep_step.c). While a sliced
 * table is on trial the order of products matters, and one thread goes on alone. */
#include "gdmm/team.h"

enum {
    LINK_WORK = 60,     /* the fixed cost of a message in nanoseconds, as on grids of binary variables */
    VARIABLE_WORK = 40, /* the fixed cost of a visit in nanoseconds */
    COLD = 32           /* visits that it takes the hardware to foresee the next ones, at a new place */
};

int64_t gdmm_link_work(const gdmm *g, const fgi_link *l) {
    const fgi_view v = fgi_factor_view(g->model, l->factor);
    if (v.arity == 2 && g->tables[v.table].sliced) return LINK_WORK + GDMM_FIRST_ROWS * ((int64_t)v.rows + v.cols);
    return LINK_WORK + fgi_view_work(g->model, &v);
}

/* ---- waves --------------------------------------------------------------------------------------------------- */

/* Structure and tables alone: sweeps go on while the maker asks. */
static double visit_work(const void *of, int64_t i) {
    const gdmm *g = of;
    const fgi_structure *s = g->model->s;
    double work = VARIABLE_WORK;
    for (int64_t k = s->adj_begin[i]; k < s->adj_begin[i + 1]; k++) {
        const fgi_view v = fgi_factor_view(g->model, s->adj[k]);
        const double states = (double)fgi_view_work(g->model, &v);
        work += LINK_WORK + 2 * s->cards[i] + 0.5 * (g->is_pair[s->adj[k]] ? 0 : states); /* half in each direction */
    }
    return work;
}

static void ask_for_waves(const gdmm *g, gdmm_team *t) {
    fgi_team_ask(&t->team, g->model->s, t->entries, visit_work, g);
}

static int64_t n_blocks(const gdmm *g) { return (g->model->s->n_vars + GDMM_SWEEP_BLOCK - 1) / GDMM_SWEEP_BLOCK; }

int gdmm_team_create(const gdmm *g, gdmm_sweep *sweep) {
    const fgi_structure *s = g->model->s;
    if (g->n_workers < 2 || !g->solver->pool) return 1;
    gdmm_team *t = fgi_calloc(1, sizeof *t);
    sweep->team = t;
    if (!t) return 0;
    if (!fgi_team_begin(&t->team, g->solver->pool, g->n_workers)) return 0;
    for (int64_t f = 0; f < s->n_factors; f++) {
        const fgi_view v = fgi_factor_view(g->model, f);
        t->entries += fgi_view_work(g->model, &v);
    }
    t->hands = fgi_take_zero(&t->arena, g->n_workers, gdmm_hand);
    t->tops = fgi_take(&t->arena, s->n_vars, double);
    t->blocks = fgi_take(&t->arena, n_blocks(g), gdmm_tops);
    for (int k = 0; t->hands && k < g->n_workers; k++) {
        gdmm_hand_take(g, &t->hands[k], &g->workers[k], &t->arena);
        t->team.own[k] = t->hands[k].given;
    }
    if (!t->arena.failed) ask_for_waves(g, t); /* they are made beside what is left of the set-up */
    return !t->arena.failed;
}

void gdmm_team_rest(gdmm_team *t) {
    if (t) fgi_team_rest(&t->team);
}

void gdmm_team_free(gdmm_team *t) {
    if (!t) return;
    fgi_team_end(&t->team);
    fgi_arena_free(&t->arena);
    free(t);
}

typedef struct context {
    gdmm *g;
    gdmm_sweep *s;
    atomic_int infeasible;
} context;

/* A task begins far from where the one before has ended, and it takes the hardware some visits to foresee what is read
 * there: on grids of 500 x 500 the first of half a row take several times as long. So the last visits of a task ask for
 * what the next one begins with, a variable each: first its links, then what they point to. */
static void ask_for_next(const gdmm *g, const gdmm_sweep *sweep, int64_t then, int64_t cold, int64_t left) {
#if defined(__GNUC__)
    enum { SOME = 8 }; /* links: with many a visit has time to spare */
    const fgi_structure *s = g->model->s;
    const int64_t place = then + (left > cold ? 2 : 1) * cold - left;
    if (place >= s->n_vars) return;
    const int32_t i = gdmm_sweep_variable(g, sweep, place);
    const fgi_link *links = sweep->links + s->adj_begin[i];
    if (left > cold) {
        __builtin_prefetch(links);
        __builtin_prefetch(g->theta + s->unary_begin[i]);
        return;
    }
    for (int64_t k = 0; k < SOME && k < gdmm_degree(g, i); k++) {
        const int32_t f = links[k].factor;
        __builtin_prefetch(sweep->mu + links[k].mu);
        if (!gdmm_is_wanted(g, sweep, &links[k])) continue;
        __builtin_prefetch(sweep->mu + sweep->mu_begin[f]);
        if (g->is_pair[f]) __builtin_prefetch(&g->pairs[f]);
        else __builtin_prefetch(fgi_factor_vars(s, f));
    }
#else
    (void)g;
    (void)sweep;
    (void)then;
    (void)cold;
    (void)left;
#endif
}

static int visit_task(void *of, int64_t begin, int64_t end, int64_t then, int worker) {
    context *c = of;
    const gdmm_team *t = c->s->team;
    const int32_t *list = fgi_waves_list(t->team.waves);
    const int64_t cold = then < 0 || list || end - begin < 2 * COLD ? 0 : COLD; /* fewer visits have much to do each */
    for (int64_t place = begin; place < end; place++) {
        const int32_t at = gdmm_sweep_variable(c->g, c->s, place), i = list ? list[at] : at;
        if (end - place <= 2 * cold) ask_for_next(c->g, c->s, then, cold, end - place);
        t->tops[i] = gdmm_visit(c->g, c->s, &t->hands[worker], i);
        if (gdmm_is_feasible(t->tops[i])) continue;
        atomic_store(&c->infeasible, 1);
        return 0;
    }
    return 1;
}

static void add_up_blocks(void *of, int64_t begin, int64_t end, int worker) {
    const context *c = of;
    const gdmm_team *t = c->s->team;
    const int64_t n = c->g->model->s->n_vars;
    (void)worker;
    for (int64_t block = begin; block < end; block++) {
        const int64_t first = block * GDMM_SWEEP_BLOCK, after = first + GDMM_SWEEP_BLOCK;
        gdmm_tops sums = {0};
        for (int64_t k = first; k < after && k < n; k++)
            gdmm_tops_add(&sums, t->tops[gdmm_sweep_variable(c->g, c->s, k)]);
        t->blocks[block] = sums;
    }
}

static int sweep_in_waves(gdmm *g, gdmm_sweep *sweep) {
    gdmm_team *t = sweep->team;
    context c = {.g = g, .s = sweep};
    const fgi_aside aside = {gdmm_beside_piece, g};
    const int complete =
        fgi_waves_run(t->team.waves, t->team.pool, g->deadline, visit_task, &c, gdmm_beside_is_over(g) ? NULL : &aside);
    if (atomic_load(&c.infeasible)) return -1;
    if (!complete || !gdmm_beside_is_over(g)) return 0;
    fgi_pool_run(t->team.pool, n_blocks(g), 1, add_up_blocks, &c);
    for (int64_t k = 0; k < n_blocks(g); k++) {
        sweep->block = t->blocks[k];
        gdmm_sweep_join(sweep);
    }
    t->team.under_way = 0;
    return 1;
}

/* ---- one thread, while another looks for a labeling ---------------------------------------------------------- */

typedef struct pair {
    gdmm *g;
    gdmm_sweep *s;
    int done;        /* the sweep is done */
    atomic_int stop; /* labelings are over, or the sweep is infeasible, or the time is over */
} pair;

static int may_go_on(pair *p) { return !atomic_load(&p->stop) && fgi_clock() < p->g->deadline; }

static void go_on(void *of, int64_t which, int64_t end, int worker) {
    pair *p = of;
    int over = 0;
    (void)end;
    (void)worker;
    if (which == 0) {
        do p->done = gdmm_sweep_alone(p->g, p->s);
        while (!p->done && may_go_on(p));
        if (p->done > 0) return; /* the other thread goes on */
    } else {
        do over = gdmm_beside_piece(p->g);
        while (!over && may_go_on(p));
    }
    atomic_store(&p->stop, 1);
}

static int sweep_beside(gdmm *g, gdmm_sweep *sweep) {
    pair p = {.g = g, .s = sweep};
    fgi_pool_run(sweep->team->team.pool, 2, 1, go_on, &p);
    return p.done > 0 && !gdmm_beside_is_over(g) ? 0 : p.done; /* a complete sweep stays so until the next call */
}

/* ---- the choice ---------------------------------------------------------------------------------------------- */

int gdmm_team_step(gdmm *g, gdmm_sweep *sweep) {
    gdmm_team *t = sweep->team;
    int done = GDMM_ALONE;
    if (!t->team.under_way && g->on_trial == 0) {
        ask_for_waves(g, t);
        if (fgi_team_has_waves(&t->team) && sweep->node == 0 && sweep->edge == 0)
            fgi_team_sweep(&t->team, sweep->forward);
    }
    if (t->team.under_way) done = sweep_in_waves(g, sweep);
    else if (!gdmm_beside_is_over(g)) done = sweep_beside(g, sweep);
    else if (g->on_trial == 0) done = gdmm_sweep_in_step(g, sweep);
    for (int k = 0; k < t->team.threads; k++) {
        g->sweep_entries += t->hands[k].entries;
        t->hands[k].entries = 0;
    }
    return done;
}
