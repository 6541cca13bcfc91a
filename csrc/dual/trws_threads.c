/* dual/trws_threads.c - TRW-S by several threads, the same to the last bit as by one.
 *
 * What a visit computes depends on the visits of its neighbours earlier in the sweep alone, so visits that do not
 * depend on each other may happen at the same time (model/waves.h). Every number is made of the same terms in the same
 * order; what is summed over nodes (the bound, the score of the decoded labeling) is recorded per node and summed in
 * the order of nodes when the sweep is complete. Where the graph has no two such nodes for long, as chains and complete
 * graphs, all threads work on the same node instead (dual/trws_step.c).
 * The first sweeps go on without waves, until they are found (model/waves_maker.h). */
#include <string.h>
#include "dual/trws_team.h"
#include "solver.h"

static int64_t scratch_size(const fgi_structure *s) { return 8 * (int64_t)s->max_card + 3; }

int fgi_trws_team_create(const fgi_solver *solver, fgi_trws *self) {
    fgi_trws_team *t = fgi_calloc(1, sizeof *t);
    self->team = t;
    if (!t) return 0;
    const int threads = solver->settings.threads, has_team = fgi_team_begin(&t->team, solver->pool, threads);
    t->in_step = -1;
    t->workers = fgi_calloc(threads, sizeof *t->workers);
    t->scratch = fgi_alloc(threads * scratch_size(solver->model->s), sizeof(double));
    return has_team && t->workers && t->scratch;
}

void fgi_trws_team_free(fgi_trws_team *t) {
    if (!t) return;
    fgi_team_end(&t->team);
    free(t->workers);
    free(t->scratch);
    free(t->record);
    free(t->decoded);
    free(t->blocks);
    free(t->tops);
    free(t);
}

void fgi_trws_brief(const fgi_model *m, const fgi_trws *self) {
    fgi_trws_team *t = self->team;
    const int64_t n = m->s->max_card;
    for (int k = 0; k < t->team.threads; k++) {
        fgi_trws *w = &t->workers[k];
        double *own = t->scratch + k * scratch_size(m->s);
        *w = *self;
        w->hat = own;
        w->h = own + n;
        w->given = t->team.own[k] = own + 2 * n;
        w->scratch = own + 3 * n;
        w->h_f32 = (float *)(own + 5 * n + 1);
        w->out_f32 = (float *)(own + 6 * n + 1);
        w->list_rows = (int32_t *)(own + 7 * n + 1);
        w->left_out = (int64_t *)(own + 8 * n + 2);
        *w->left_out = 0;
        w->progress.bound = w->progress.decoded = (fgi_sum){0};
    }
}

/* After their work. */
void fgi_trws_count_left_out(const fgi_trws *self) {
    for (int k = 0; k < self->team->team.threads; k++) *self->left_out += *self->team->workers[k].left_out;
}

/* ---- waves --------------------------------------------------------------------------------------------------- */

int64_t fgi_trws_edge_entries(const fgi_model *m, const fgi_trws_edge *e) {
    return FGI_LINK_WORK + fgi_trws_edge_work(m, e);
}

typedef fgi_trws_visits context;

/* Looks at the model alone, because edges may be under construction. */
static double visit_work(const void *c, int64_t i) {
    const fgi_model *m = ((const context *)c)->m;
    const fgi_structure *s = m->s;
    const double degree = (double)(s->adj_begin[i + 1] - s->adj_begin[i]);
    if (((const context *)c)->s->visit_few && s->cards[i] <= FGI_FEW)
        return 8 + 12 * degree; /* measured: 40 to 70 ns a node of a grid */
    double work = (FGI_LINK_WORK + s->cards[i]) * (degree + 1);
    for (int64_t k = s->adj_begin[i]; k < s->adj_begin[i + 1]; k++) {
        const fgi_view v = fgi_factor_view(m, s->adj[k]);
        work += 0.5 * (double)(FGI_LINK_WORK + fgi_view_work(m, &v)); /* half of them in either direction */
    }
    return work;
}

void fgi_trws_team_begin(const fgi_model *m, fgi_trws *self) {
    fgi_trws_team *t = self->team;
    if (!t->team.maker) t->seen = (fgi_trws_visits){m, self}; /* its thread reads this */
    fgi_team_ask(&t->team, m->s, self->entries, visit_work, &t->seen);
}

static int has_waves(const fgi_model *m, fgi_trws *self) {
    fgi_trws_team *t = self->team;
    fgi_trws_team_begin(m, self);
    if (!fgi_team_has_waves(&t->team) || t->record) return t->team.waves != NULL;
    t->record = fgi_alloc(2 * m->s->n_vars, sizeof *t->record);
    t->decoded = fgi_alloc(m->s->n_vars, sizeof *t->decoded);
    t->blocks = fgi_alloc(m->s->n_vars / FGI_TRWS_BLOCK + 1, sizeof *t->blocks);
    if (t->record && t->decoded && t->blocks) return 1;
    free(t->record);
    t->record = NULL;
    fgi_team_drop_waves(&t->team);
    return 0;
}

/* Asks for the first things that a later task reads: what follows the hardware foresees. Visits of nodes with few
 * labels ask for the rest (dual/trws_few.c), once it is known where that is. */
static void ask_for(const fgi_model *m, const fgi_trws *self, int64_t place) {
#if defined(__GNUC__)
    enum {
        FIRST = 6,   /* visits whose data are asked for */
        LINE = 64,   /* bytes of a cache line */
        PER_LINE = 8 /* numbers of eight bytes in it */
    };
    const int is_few = self->few[fgi_trws_node(m, self, place)] != 0;
    for (int64_t k = place; is_few && k < place + FGI_TRWS_COLD && k < m->s->n_vars; k += PER_LINE) {
        const int32_t i = fgi_trws_node(m, self, k);
        __builtin_prefetch(&self->later_begin[i]);
        __builtin_prefetch(&self->earlier_begin[i]);
        __builtin_prefetch(&m->s->unary_begin[i]);
        __builtin_prefetch(&self->labels[i]);
    }
    for (int64_t k = place; !is_few && k < place + FIRST && k < m->s->n_vars; k++) {
        const int32_t i = fgi_trws_node(m, self, k);
        const fgi_trws_edge *later = &self->edges[self->later_begin[i]];
        const int has_later = self->later_begin[i] < self->later_begin[i + 1];
        const char *message = (const char *)(self->messages + (has_later ? later->message : 0));
        __builtin_prefetch(fgi_unary(m, i));
        __builtin_prefetch(later);
        __builtin_prefetch(message);
        __builtin_prefetch(message + LINE);
    }
#else
    (void)m;
    (void)self;
    (void)place;
#endif
}

static int visit_task(void *of, int64_t begin, int64_t end, int64_t then, int worker) {
    const context *c = of;
    fgi_trws *w = &c->s->team->workers[worker];
    const int asks = then >= 0 && !w->look_ahead;
    w->end = end;
    w->then = then;
    w->cold = !asks ? 0 : end - begin < 2 * FGI_TRWS_COLD ? (end - begin) / 2 : FGI_TRWS_COLD;
    if (asks) ask_for(c->m, w, then);
    for (w->node = begin; w->node < end;) {
        const int32_t i = fgi_trws_node(c->m, w, w->node);
        w->meter.spent = 0;
        if (w->few[i] ? !w->visit_few(c->m, w) : !fgi_trws_visit(c->m, w, i)) return 0;
        w->node += !w->few[i];
    }
    return 1;
}

/* One block of what the visits have recorded, in the order in which one thread adds it up. */
static void add_up_block(const context *c, int64_t block) {
    const fgi_trws_team *t = c->s->team;
    const int64_t begin = block * FGI_TRWS_BLOCK, n = c->m->s->n_vars,
                  end = begin + FGI_TRWS_BLOCK < n ? begin + FGI_TRWS_BLOCK : n;
    fgi_progress sums = {0};
    for (int64_t i = begin; c->s->stage == FORWARD && i < end; i++) fgi_sum_add(&sums.decoded, t->decoded[i]);
    for (int64_t i = end - 1; c->s->stage == BACKWARD && i >= begin; i--) {
        fgi_progress_take(&sums, t->record[2 * i]);
        fgi_progress_take(&sums, t->record[2 * i + 1]);
    }
    t->blocks[block] = sums;
}

/* Four whole blocks side by side, each in its order: a sum waits for its last addition, four of them for each other's
 * little. */
static void add_up_four(const context *c, int64_t block) {
    enum { FOUR = 4 }; /* blocks */
    const fgi_trws_team *t = c->s->team;
    const double *decoded = t->decoded + block * FGI_TRWS_BLOCK, *record = t->record + 2 * block * FGI_TRWS_BLOCK;
    fgi_progress sums[FOUR];
    memset(sums, 0, sizeof sums);
    for (int64_t i = 0; c->s->stage == FORWARD && i < FGI_TRWS_BLOCK; i++)
        for (int k = 0; k < FOUR; k++) fgi_sum_add(&sums[k].decoded, decoded[k * FGI_TRWS_BLOCK + i]);
    for (int64_t i = FGI_TRWS_BLOCK - 1; c->s->stage == BACKWARD && i >= 0; i--)
        for (int k = 0; k < FOUR; k++) {
            fgi_progress_take(&sums[k], record[2 * (k * FGI_TRWS_BLOCK + i)]);
            fgi_progress_take(&sums[k], record[2 * (k * FGI_TRWS_BLOCK + i) + 1]);
        }
    for (int k = 0; k < FOUR; k++) t->blocks[block + k] = sums[k];
}

static void add_up_blocks(void *of, int64_t begin, int64_t end, int worker) {
    const context *c = of;
    int64_t k = begin;
    (void)worker;
    for (; k + 4 <= end && (k + 4) * FGI_TRWS_BLOCK <= c->m->s->n_vars; k += 4) add_up_four(c, k);
    for (; k < end; k++) add_up_block(c, k);
}

static void add_up(context *c) {
    fgi_trws *self = c->s;
    const fgi_trws_team *t = self->team;
    const int64_t n = (c->m->s->n_vars + FGI_TRWS_BLOCK - 1) / FGI_TRWS_BLOCK;
    for (int k = 0; k < t->team.threads; k++)
        if (t->workers[k].progress.bound.forbidden) {
            fgi_progress_take(&self->progress, -INFINITY);
            return;
        }
    fgi_pool_run(t->team.pool, n, n / (4 * t->team.threads) + 1, add_up_blocks, c);
    for (int64_t k = 0; k < n; k++) {
        fgi_trws_add_block(&self->sums, &self->progress); /* what comes before: the constant, or the last block */
        self->progress.bound = t->blocks[self->stage == FORWARD ? k : n - 1 - k].bound;
        self->progress.decoded = t->blocks[self->stage == FORWARD ? k : n - 1 - k].decoded;
        self->progress.magnitude = t->blocks[self->stage == FORWARD ? k : n - 1 - k].magnitude;
    }
}

static int sweep_in_waves(const fgi_model *m, fgi_trws *self) {
    fgi_trws_team *t = self->team;
    context c = {m, self};
    self->list = fgi_waves_list(t->team.waves);
    self->record = t->record;
    self->decoded = t->decoded;
    fgi_trws_brief(m, self);
    self->list = NULL;
    self->record = self->decoded = NULL;
    int complete = fgi_waves_run(t->team.waves, t->team.pool, self->meter.deadline, visit_task, &c, NULL);
    fgi_trws_count_left_out(self);
    for (int k = 0; k < t->team.threads; k++) complete |= t->workers[k].progress.bound.forbidden;
    if (!complete) return 0;
    add_up(&c);
    t->team.under_way = 0;
    return 1;
}

void fgi_trws_forget_sweep(fgi_trws *self) {
    if (self->team) self->team->team.under_way = 0;
}

int fgi_trws_sweep_together(const fgi_model *m, fgi_trws *self) {
    fgi_team *t = &self->team->team;
    const int fresh = self->node == 0 && self->done < 0; /* a sweep that began without waves ends without */
    if (!t->under_way && fresh && has_waves(m, self)) fgi_team_sweep(t, self->stage == FORWARD);
    return t->under_way ? sweep_in_waves(m, self) : fgi_trws_sweep_in_step(m, self);
}
