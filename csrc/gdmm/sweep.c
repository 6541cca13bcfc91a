/* gdmm/sweep.c - dual coordinate ascent on a copy of the multipliers, for models whose tables can be read whole.
 *
 * The visit of a variable is that of model/reweight.h. No maxima are taken out of messages: at the end of a sweep the
 * last visit has left the maximum of every factor at 0, so that D(mu) is the sum of the max hat_i: the bound costs
 * nothing. It never makes D worse, stalls at weak fixed points where the method of multipliers moves on, and gives a
 * good start and a good certificate early. */
#include <string.h>
#include "base/work.h"
#include "model/marginal.h"
#include "gdmm/sweep.h"

void gdmm_sweep_free(gdmm_sweep *sweep) {
    if (!sweep) return;
    gdmm_team_free(sweep->team);
    fgi_arena_free(&sweep->arena);
    free(sweep);
}

void gdmm_hand_take(const gdmm *g, gdmm_hand *d, gdmm_worker *worker, fgi_arena *arena) {
    const fgi_structure *s = g->model->s;
    d->worker = worker;
    d->hat = fgi_take(arena, s->max_card, double);
    d->given = fgi_take(arena, s->max_card, double);
    d->delta = fgi_take(arena, s->max_arity, const double *);
    d->cards = fgi_take(arena, s->max_arity, int32_t);
    d->pick = fgi_take(arena, (int64_t)s->max_card + 1, int32_t);
    d->entries = 0;
    if (!fgi_oracle_reserve_sums(worker->oracle, fgi_marginal_scratch(g->model))) arena->failed = 1;
}

gdmm_sweep *gdmm_sweep_create(const gdmm *g) {
    const fgi_structure *s = g->model->s;
    gdmm_sweep *sweep = fgi_calloc(1, sizeof *sweep);
    if (!sweep) return NULL;
    sweep->links = fgi_take(&sweep->arena, g->n_slots, fgi_link);
    sweep->mu_begin = fgi_take(&sweep->arena, s->n_factors, int64_t);
    sweep->mu = fgi_take(&sweep->arena, fgi_dual_message_size(g->model), double);
    sweep->cap = fgi_take(&sweep->arena, g->n_slots, double);
    sweep->rows = fgi_take(&sweep->arena, g->n_slots, int32_t);
    if (g->has_slices)
        sweep->peaks =
            fgi_take(&sweep->arena, fgi_dual_message_size(g->model) / FGI_SLICED_CELL + g->n_slots + 1, double);
    sweep->largest = fgi_take_zero(&sweep->arena, gdmm_slot_blocks(g), double);
    sweep->labels = fgi_take_zero(&sweep->arena, s->n_vars, int32_t);
    gdmm_hand_take(g, &sweep->hand, &g->workers[0], &sweep->arena);
    if (sweep->arena.failed || !gdmm_team_create(g, sweep)) {
        gdmm_sweep_free(sweep);
        return NULL;
    }
    fgi_dual_message_begin(g->model, sweep->mu_begin);
    sweep->model_magnitude = fgi_dual_magnitude(g->model, g->solver->pool);
    return sweep;
}

static void make_links(void *context, int64_t begin, int64_t end, int worker) {
    const gdmm *g = context;
    const fgi_structure *s = g->model->s;
    gdmm_sweep *sweep = g->sweep;
    (void)worker;
    for (int64_t k = begin; k < end; k++) {
        const int32_t f = s->adj[k], position = (int32_t)(g->adj_slot[k] - fgi_factor_begin(s, f));
        sweep->links[k] =
            fgi_link_make(f, fgi_factor_vars(s, f), fgi_factor_arity(s, f), position, s->cards, sweep->mu_begin[f]);
        sweep->rows[k] = GDMM_FIRST_ROWS;
    }
}

int gdmm_sweep_link_step(gdmm *g, double *seconds) {
    enum { PIECE = 16 * GDMM_SLOTS }; /* slots between two looks at the clock */
    return gdmm_advance(g, g->n_slots, GDMM_SLOTS, PIECE, make_links, seconds);
}

void gdmm_sweep_rest(gdmm_sweep *sweep) {
    if (sweep) gdmm_team_rest(sweep->team);
}

int64_t gdmm_sweep_memory(const gdmm_sweep *sweep) { return sweep->arena.bytes; }

static void begin_sweep(const gdmm *g, gdmm_sweep *sweep, int forward) {
    const int64_t t = gdmm_steps(g);
    sweep->forward = forward;
    sweep->fresh = 0;
    sweep->decode = forward && (t < 8 || t % 4 == 0);
    sweep->node = 0;
    sweep->edge = 0;
    sweep->tops = sweep->block = (gdmm_tops){0};
    gdmm_tops_add(&sweep->tops, g->model->s->constant);
}

/* The messages of slot k, of which all list all labels. */
static double *messages_of(const gdmm *g, const gdmm_sweep *sweep, int64_t k) {
    return sweep->mu + (g->slots[k].mu - g->numbers) / 3;
}

/* Are all multipliers still 0? */
static int is_blank(const gdmm *g) {
    int64_t forbidden = 0;
    for (int k = 0; k < g->n_workers; k++) forbidden += g->workers[k].forbidden;
    return !g->warm && g->solver->info.iterations == 0 && forbidden == 0;
}

static void load_nothing(void *context, int64_t begin, int64_t end, int worker) {
    const gdmm *g = context;
    (void)worker;
    for (int64_t k = begin * GDMM_SLOTS; k < end * GDMM_SLOTS && k < g->n_slots; k++) {
        memset(messages_of(g, g->sweep, k), 0, (size_t)g->slots[k].n * sizeof(double));
        g->sweep->cap[k] = -INFINITY;
    }
}

static void load_blocks(void *context, int64_t begin, int64_t end, int worker) {
    const gdmm *g = context;
    gdmm_sweep *sweep = g->sweep;
    (void)worker;
    for (int64_t block = begin; block < end; block++) {
        double sum = 0;
        for (int64_t k = block * GDMM_SLOTS; k < (block + 1) * GDMM_SLOTS && k < g->n_slots; k++) {
            const double *mu = g->slots[k].mu;
            double largest = 0;
            memcpy(messages_of(g, sweep, k), mu, (size_t)g->slots[k].n * sizeof *mu);
            for (int32_t a = 0; a < g->slots[k].n; a++)
                if (!GDMM_IS_FORBIDDEN(mu[a])) largest = fgi_larger(largest, fabs(mu[a]));
            sum += largest;
            sweep->cap[k] = -INFINITY;
        }
        sweep->largest[block] = sum;
    }
}

/* Takes over the multipliers of the slots; the next sweep is a forward one. */
int gdmm_sweep_load_step(gdmm *g, double *seconds) {
    enum { PIECE = 16 }; /* blocks of slots between two looks at the clock */
    gdmm_sweep *sweep = g->sweep;
    const int64_t blocks = gdmm_slot_blocks(g);
    if (!gdmm_advance(g, blocks, 1, PIECE, is_blank(g) ? load_nothing : load_blocks, seconds)) return 0;
    sweep->loaded = 0;
    for (int64_t k = 0; k < blocks; k++) sweep->loaded += sweep->largest[k];
    begin_sweep(g, sweep, 1);
    sweep->fresh = 1;
    return 1;
}

void gdmm_sweep_store(gdmm *g, const gdmm_sweep *sweep) {
    for (int64_t k = 0; k < g->n_slots; k++)
        memcpy(g->slots[k].mu, messages_of(g, sweep, k), (size_t)g->slots[k].n * sizeof(double));
}

const double *gdmm_sweep_messages(const gdmm_sweep *sweep) { return sweep->mu; }

int gdmm_sweep_forward(const gdmm_sweep *sweep) { return sweep->forward; }

const int32_t *gdmm_sweep_labels(const gdmm_sweep *sweep) { return sweep->labels; }

/* ---- messages ------------------------------------------------------------------------------------------------ */

/* Binary factors: a call costs more than the work. */
static void binary_marginal(const gdmm_pair *t, const double *other, int32_t position, double *out) {
    const double a = t->at[0][0] - other[0], b = (position ? t->at[1][0] : t->at[0][1]) - other[1];
    const double c = (position ? t->at[0][1] : t->at[1][0]) - other[0], d = t->at[1][1] - other[1];
    out[0] = a > b ? a : b;
    out[1] = c > d ? c : d;
}

static int64_t pair_marginal(gdmm *g, gdmm_sweep *sweep, gdmm_hand *d, const fgi_view *v, const fgi_link *l) {
    if (g->tables[v->table].sliced && v->weight > 0) return gdmm_loose_marginal(g, sweep, d, v, l);
    return fgi_pair_marginals(v, l->position, gdmm_sweep_other(sweep, v, l), d->worker->oracle, sweep->mu + l->mu);
}

static int64_t general_marginal(const gdmm *g, gdmm_sweep *sweep, gdmm_hand *d, const fgi_view *v, const fgi_link *l) {
    const double *mu = sweep->mu + sweep->mu_begin[l->factor];
    for (int32_t q = 0; q < v->arity; q++) {
        d->delta[q] = mu;
        d->cards[q] = g->model->s->cards[v->vars[q]];
        mu += d->cards[q];
    }
    return fgi_factor_marginals(v, d->cards, l->position, d->delta, d->worker->oracle, sweep->mu + l->mu);
}

/* Collects a message. Returns the entries read. */
int64_t gdmm_collect(gdmm *g, gdmm_sweep *sweep, gdmm_hand *d, const fgi_link *l) {
    int64_t entries = 4;
    if (g->has_slices) sweep->cap[gdmm_sweep_slot(g, l)] = -INFINITY;
    if (g->is_pair[l->factor]) {
        binary_marginal(&g->pairs[l->factor], sweep->mu + sweep->mu_begin[l->factor] + (l->position ? 0 : 2),
            l->position, sweep->mu + l->mu);
    } else {
        const fgi_view v = fgi_factor_view(g->model, l->factor);
        entries = v.arity == 2 ? pair_marginal(g, sweep, d, &v, l) : general_marginal(g, sweep, d, &v, l);
    }
    d->entries += entries;
    return entries;
}

/* ---- the visit of a variable -------------------------------------------------------------------------------- */

static void forbid(gdmm *g, int32_t i, int32_t a) {
    const fgi_structure *s = g->model->s;
    g->theta[s->unary_begin[i] + a] = -INFINITY;
    for (int64_t k = s->adj_begin[i]; k < s->adj_begin[i + 1]; k++) g->slots[g->adj_slot[k]].mu[a] = GDMM_FORBIDDEN;
}

/* given[a] += theta_f at a, begin <= a < end, where the variable at position `at` has this label and a is the label of
 * the other. */
static void add_slice(
    const gdmm *g, const fgi_view *v, int at, int32_t label, int32_t begin, int32_t end, double *restrict given) {
    const gdmm_table *table = &g->tables[v->table];
    const int side = at ^ v->transposed; /* side of the table as it is stored */
    const int32_t card = at ? v->rows : v->cols;
    if (v->kind != FGI_DENSE) {
        for (int32_t a = begin; a < end; a++) given[a] += at ? fgi_view_at2(v, a, label) : fgi_view_at2(v, label, a);
        return;
    }
    const int copied = table->slices && !(side && fgi_sliced_is_listed(table->slices));
    const double *slice =
        copied ? fgi_sliced_slice(table->slices, side, label) : v->values + (side ? label : (int64_t)label * card);
    const int64_t stride = side && !copied ? (v->transposed ? v->rows : v->cols) : 1;
    if (stride == 1)
        for (int32_t a = begin; a < end; a++) given[a] += v->weight * slice[a];
    else
        for (int32_t a = begin; a < end; a++) given[a] += v->weight * slice[a * stride];
}

/* Scores of labels of i in factor f given the labels of all its other variables. */
static void add_conditional(
    const gdmm *g, const gdmm_sweep *sweep, int64_t f, int32_t i, int32_t begin, int32_t end, double *given) {
    const fgi_structure *s = g->model->s;
    const fgi_view v = fgi_factor_view(g->model, f);
    if (v.arity == 2) {
        add_slice(g, &v, v.vars[0] == i, sweep->labels[v.vars[v.vars[0] == i]], begin, end, given);
        return;
    }
    int64_t at = 0, stride = 0;
    for (int32_t k = 0; k < v.arity; k++) {
        int64_t size = s->cards[v.vars[k]];
        at = at * size + (v.vars[k] == i ? 0 : sweep->labels[v.vars[k]]);
        stride = v.vars[k] == i ? 1 : stride * size;
    }
    for (int32_t a = begin; a < end; a++) given[a] += v.weight * v.values[at + a * stride];
}

int32_t gdmm_visit_decode(const gdmm *g, const gdmm_sweep *sweep, gdmm_hand *d, int32_t i, int32_t begin, int32_t end) {
    const fgi_structure *s = g->model->s;
    const double *theta = g->theta + s->unary_begin[i];
    double *given = d->given;
    memcpy(given + begin, theta + begin, (size_t)(end - begin) * sizeof(double));
    for (int64_t k = s->adj_begin[i]; k < s->adj_begin[i + 1]; k++) {
        if (sweep->links[k].has_later) {
            g->kernels->add(given + begin, sweep->mu + sweep->links[k].mu + begin, end - begin);
        } else {
            add_conditional(g, sweep, s->adj[k], i, begin, end, given);
            d->entries += end - begin;
        }
    }
    int32_t best = -1;
    for (int32_t a = begin; a < end; a++)
        if (theta[a] > -INFINITY && (best < 0 || given[a] > given[best])) best = a;
    return best;
}

int gdmm_visit_forbid(gdmm *g, const double *hat, int32_t i, int32_t begin, int32_t end, double *top) {
    const double *theta = g->theta + g->model->s->unary_begin[i];
    int some_forbidden = 0;
    *top = -INFINITY;
    for (int32_t a = begin; a < end; a++) {
        if (hat[a] > *top) *top = hat[a];
        if (hat[a] >= -0.5 * GDMM_FORBIDDEN) continue;
        some_forbidden = 1;
        if (theta[a] > -INFINITY) forbid(g, i, a);
    }
    return some_forbidden;
}

void gdmm_visit_share(const gdmm *g, gdmm_sweep *sweep, double *hat, double top, int some_forbidden, int32_t i,
    int32_t begin, int32_t end) {
    const fgi_structure *s = g->model->s;
    const fgi_link *links = sweep->links + s->adj_begin[i];
    const int64_t degree = gdmm_degree(g, i);
    const double *theta = g->theta + s->unary_begin[i];
    g->kernels->shift(hat + begin, top, end - begin);
    for (int32_t a = begin; some_forbidden && a < end; a++) {
        if (theta[a] > -INFINITY) continue;
        hat[a] = 0;
        for (int64_t e = 0; e < degree; e++) sweep->mu[links[e].mu + a] = GDMM_FORBIDDEN;
    }
    fgi_reweight_share(g->kernels, hat + begin, end - begin, sweep->mu + begin, links, degree, sweep->forward);
}

/* All messages of the variable are collected: hat, label, shares. Returns max hat, of which the bound is made. */
static double visit(gdmm *g, gdmm_sweep *sweep, gdmm_hand *d, int32_t i) {
    const fgi_structure *s = g->model->s;
    const int32_t card = s->cards[i];
    double top;
    fgi_reweight_sum(g->kernels, g->theta + s->unary_begin[i], card, sweep->mu, sweep->links + s->adj_begin[i],
        gdmm_degree(g, i), d->hat);
    gdmm_settle(g, sweep, d, i);
    const int some_forbidden = gdmm_visit_forbid(g, d->hat, i, 0, card, &top);
    if (!gdmm_is_feasible(top)) return top;
    if (sweep->decode) sweep->labels[i] = gdmm_visit_decode(g, sweep, d, i, 0, card);
    gdmm_visit_share(g, sweep, d->hat, top, some_forbidden, i, 0, card);
    return top;
}

/* In a first sweep from multipliers of 0 a factor of which no variable has been visited knows the maxima of its rows.
 * That helps later sweeps, but not as much as it costs where a large table has to be read whole: with 50 labels (flow
 * problem of bench/sorted_oracles.py) nine tenths of the way take .61 instead of .70 ms without it. */
static int knows_more(const gdmm *g, const gdmm_sweep *sweep, int32_t f) {
    enum { LARGE = 1024 }; /* entries of a table: from here on reading it is what a message costs */
    const fgi_structure *s = g->model->s;
    const int32_t table = s->factor_table[f];
    return sweep->loaded > 0 || g->tables[table].sliced || s->values_begin[table + 1] - s->values_begin[table] < LARGE;
}

int gdmm_is_wanted(const gdmm *g, const gdmm_sweep *sweep, const fgi_link *l) {
    return fgi_link_has_changed(l, sweep->forward) || (sweep->fresh && knows_more(g, sweep, l->factor));
}

double gdmm_visit(gdmm *g, gdmm_sweep *sweep, gdmm_hand *d, int32_t i) {
    const fgi_structure *s = g->model->s;
    for (int64_t k = s->adj_begin[i]; k < s->adj_begin[i + 1]; k++)
        if (gdmm_is_wanted(g, sweep, &sweep->links[k])) gdmm_collect(g, sweep, d, &sweep->links[k]);
    return visit(g, sweep, d, i);
}

void gdmm_sweep_take(gdmm_sweep *sweep, double top) {
    if (sweep->node % GDMM_SWEEP_BLOCK == 0) gdmm_sweep_join(sweep);
    gdmm_tops_add(&sweep->block, top);
}

void gdmm_sweep_join(gdmm_sweep *sweep) {
    fgi_sum_add(&sweep->tops.sum, sweep->block.sum.sum);
    fgi_sum_add(&sweep->tops.sum, sweep->block.sum.carry);
    sweep->tops.sum.forbidden |= sweep->block.sum.forbidden;
    sweep->tops.magnitude += sweep->block.magnitude;
    sweep->block = (gdmm_tops){0};
}

int gdmm_sweep_alone(gdmm *g, gdmm_sweep *sweep) {
    const fgi_structure *s = g->model->s;
    for (int64_t work = 0; sweep->node < s->n_vars; sweep->node++, sweep->edge = 0) {
        const int32_t i = gdmm_sweep_variable(g, sweep, sweep->node);
        const int64_t degree = gdmm_degree(g, i);
        for (; sweep->edge < degree; sweep->edge++) {
            const fgi_link *l = &sweep->links[s->adj_begin[i] + sweep->edge];
            if (work > FGI_CLOCK_WORK) return 0;
            work += FGI_LINK_WORK + 4 * s->cards[i];
            if (gdmm_is_wanted(g, sweep, l)) work += gdmm_collect(g, sweep, &sweep->hand, l);
        }
        const double top = visit(g, sweep, &sweep->hand, i);
        if (!gdmm_is_feasible(top)) return -1;
        gdmm_sweep_take(sweep, top);
    }
    return 1;
}

/* A bounded piece of the sweep. 1: it is complete, *bound is D(mu), the other direction comes next; 0: more to do; -1:
 * infeasible. */
int gdmm_sweep_step(gdmm *g, gdmm_sweep *sweep, double *bound) {
    if (!sweep->team && !gdmm_beside_is_over(g)) {
        gdmm_beside_piece(g);
        return 0;
    }
    int done = sweep->team ? gdmm_team_step(g, sweep) : GDMM_ALONE;
    if (done == GDMM_ALONE) done = gdmm_sweep_alone(g, sweep);
    g->sweep_entries += sweep->hand.entries;
    sweep->hand.entries = 0;
    if (done <= 0) return done;
    gdmm_sweep_join(sweep);
    const double magnitude = sweep->tops.magnitude + sweep->model_magnitude + sweep->loaded;
    *bound = fgi_safe_bound(g->model, fgi_sum_value(&sweep->tops.sum), magnitude);
    begin_sweep(g, sweep, !sweep->forward);
    return 1;
}
