/* dual/srmp.c - sequential reweighted message passing (Kolmogorov 2015), maximising: TRW-S for factors of any arity.
 *
 * The visit of a node is that of model/reweight.h; one iteration is a forward and a backward sweep. The maximum v_f of
 * a message that is collected is taken out of it. A label whose hat is -INFINITY belongs to no feasible labeling and
 * stays forbidden: it is recorded in a copy of the unaries, its multipliers are 0, and it never meets a subtraction
 * again.
 *
 * After a backward sweep every factor's maximum is the v_f of its first node, so D(mu) = sum top_i + sum v_f: the
 * bound, in double and afresh each time. For pairwise models this is TRW-S. The forward sweep decodes each node given
 * the labels of earlier nodes (not in every iteration); what the later nodes of a factor will do is replaced by the
 * maximum over them.
 *
 * Several threads visit nodes that have no factor in common (model/waves.h), and what the bound is made of is added up
 * in the order of one thread. */
#include <string.h>
#include "base/arena.h"
#include "base/meter.h"
#include "base/work.h"
#include "dual/progress.h"
#include "model/team.h"
#include "model/reweight.h"
#include "primal/first.h"
#include "solver.h"
#include "dual/trws.h"

typedef enum stage { BUILD, FORWARD, BACKWARD } stage;

/* Working memory of a thread. */
typedef struct hand {
    double *hat, *scratch;
    double *minus; /* negated messages of the factor at hand, and pointers to those of each variable */
    const double **g;
    struct axis *axes;      /* max_arity, for the decoder */
    int64_t calls, entries; /* messages collected, and what was read for them: since they were last counted */
} hand;

/* Several threads. */
typedef struct helpers {
    fgi_team team;
    const fgi_model *model; /* what waves are made from */
    hand *hands;
    double *link_tops; /* per link: the maximum taken out of its message; NAN: none counts in this sweep */
    double *tops;      /* per node */
    atomic_int is_infeasible;
    fgi_arena arena;
} helpers;

typedef struct srmp {
    const fgi_kernels *k;
    fgi_link *links;   /* those of variable i are adj_begin[i] .. adj_begin[i+1] */
    int64_t *mu_begin; /* n_factors: start of a factor's messages */
    double *mu;
    double *theta; /* the unaries; -INFINITY also where a label has been refuted */
    hand hand;
    helpers *helpers; /* NULL with one thread */
    int32_t *labels;
    fgi_first *first;
    stage stage;
    double given_magnitude; /* magnitude of the model before unaries moved */
    int is_part;            /* unaries move between runs: labels are those of the sweeps alone */
    int collect_all;        /* in the first sweep after a warm start: nothing is known about the factors */
    int64_t entries;        /* that a sweep reads, about */
    int64_t node;           /* next node of the stage, counted from its start */
    int64_t done;           /* links of that node already collected; -1: not begun */
    fgi_meter meter;
    fgi_progress progress;
    fgi_arena arena;
} srmp;

/* ---- set-up ------------------------------------------------------------------------------------------------- */

static void build_node(const fgi_model *m, srmp *self, int32_t i) {
    const fgi_structure *s = m->s;
    fgi_assert(i >= 0 && i < s->n_vars);
    for (int64_t at = s->adj_begin[i]; at < s->adj_begin[i + 1]; at++) {
        const int32_t f = s->adj[at], *vars = fgi_factor_vars(s, f);
        int32_t position = 0;
        while (vars[position] != i) position++;
        self->links[at] = fgi_link_make(f, vars, fgi_factor_arity(s, f), position, s->cards, self->mu_begin[f]);
        const fgi_view v = fgi_factor_view(m, f);
        self->entries += fgi_view_work(m, &v);
    }
}

static int build(const fgi_model *m, srmp *self) {
    for (; self->node < m->s->n_vars; self->node++) {
        const int64_t degree = m->s->adj_begin[self->node + 1] - m->s->adj_begin[self->node];
        if (fgi_meter_spend(&self->meter, FGI_FACTOR_WORK + 16 * degree)) return 0;
        build_node(m, self, (int32_t)self->node);
    }
    self->progress.model_magnitude = fgi_dual_magnitude(m, NULL);
    return 1;
}

static void begin_sweep(srmp *self, stage next, double constant) {
    self->stage = next;
    self->node = 0;
    self->done = -1;
    if (self->helpers) self->helpers->team.under_way = 0;
    fgi_progress_begin(&self->progress, constant);
}

/* ---- one factor --------------------------------------------------------------------------------------------- */

/* Points g at the negated messages of all variables of the factor but position p; -INFINITY at refuted labels. */
static void negate(const fgi_model *m, const srmp *self, hand *h, const fgi_link *l, const fgi_view *v) {
    const double *mu = self->mu + self->mu_begin[l->factor];
    double *to = h->minus;
    for (int32_t q = 0; q < v->arity; q++) {
        const int32_t n = m->s->cards[v->vars[q]];
        h->g[q] = to;
        if (q != l->position) {
            const double *theta = self->theta + m->s->unary_begin[v->vars[q]];
            for (int32_t a = 0; a < n; a++) to[a] = theta[a] == -INFINITY ? -INFINITY : -mu[a];
            to += n;
        }
        mu += n;
    }
}

/* Collects the message of an arc; returns the maximum taken out of it. */
static double collect(const fgi_model *m, srmp *self, hand *h, const fgi_link *l, const fgi_view *v, int32_t n) {
    fgi_assert(l->factor >= 0 && l->factor < m->s->n_factors && n > 0);
    double *mu = self->mu + l->mu;
    negate(m, self, h, l, v);
    fgi_max_marginal(self->k, m, v, l->position, h->g, mu, h->scratch);
    h->calls++;
    h->entries += fgi_view_work(m, v);
    double top = mu[0];
    for (int32_t a = 1; a < n; a++) top = top > mu[a] ? top : mu[a];
    for (int32_t a = 0; top > -INFINITY && a < n; a++) mu[a] -= top;
    return top;
}

/* One later node of a factor: how far its labels lie apart in the table, and what it loses by them. */
typedef struct axis {
    int64_t stride;
    int32_t n, at;
    const double *mu, *theta;
} axis;

static double axis_loss(const axis *x, int32_t label) {
    return x->theta[label] == -INFINITY ? -INFINITY : -x->mu[label];
}

/* best[a] = max( best[a], table at a + sum ). */
static void lift(double *best, int32_t n, const double *t, int64_t stride, double w, double sum) {
    if (sum == -INFINITY) return;
    for (int32_t a = 0; a < n; a++) {
        const double score = w * t[a * stride] + sum;
        best[a] = best[a] > score ? best[a] : score;
    }
}

/* Adds to x what factor l offers each label, given the labels of earlier nodes and the best of later ones. */
static void add_given(const fgi_model *m, const srmp *self, hand *h, const fgi_link *l, double *x) {
    const fgi_view v = fgi_factor_view(m, l->factor);
    const int32_t *cards = m->s->cards, i = v.vars[l->position], n = cards[i];
    if (v.arity == 2) {
        const int32_t label = self->labels[v.vars[1 - l->position]];
        for (int32_t a = 0; a < n; a++) x[a] += l->position ? fgi_view_at2(&v, label, a) : fgi_view_at2(&v, a, label);
        return;
    }
    const double *t = v.values, *mu = self->mu + self->mu_begin[l->factor];
    int64_t step = fgi_view_states(m, &v), mine = 0;
    int32_t n_axes = 0;
    for (int32_t q = 0; q < v.arity; q++) {
        const int32_t j = v.vars[q];
        step /= cards[j];
        if (j < i) t += step * self->labels[j];
        else if (j == i) mine = step;
        else h->axes[n_axes++] = (axis){step, cards[j], 0, mu, self->theta + m->s->unary_begin[j]};
        mu += cards[j];
    }
    double *best = h->scratch;
    for (int32_t a = 0; a < n; a++) best[a] = -INFINITY;
    if (n_axes == 0) lift(best, n, t, mine, v.weight, 0);
    while (n_axes > 0) {
        const double *at = t;
        double sum = 0;
        for (int32_t k = 1; k < n_axes; k++) {
            at += h->axes[k].stride * h->axes[k].at;
            sum += axis_loss(&h->axes[k], h->axes[k].at);
        }
        const axis *first = &h->axes[0];
        for (int32_t b = 0; b < first->n; b++)
            lift(best, n, at + b * first->stride, mine, v.weight, sum + axis_loss(first, b));
        int32_t k = 1; /* next combination of the other axes */
        while (k < n_axes && ++h->axes[k].at == h->axes[k].n) h->axes[k++].at = 0;
        if (k >= n_axes) break;
    }
    self->k->add(x, best, n);
}

/* ---- one node ----------------------------------------------------------------------------------------------- */

/* The best label given the earlier ones; factors that begin here speak through their messages. */
static void decode(const fgi_model *m, srmp *self, hand *h, int32_t i) {
    fgi_assert(i >= 0 && i < m->s->n_vars);
    const int32_t n = m->s->cards[i];
    double *x = h->hat;
    memcpy(x, self->theta + m->s->unary_begin[i], (size_t)n * sizeof *x);
    for (int64_t at = m->s->adj_begin[i]; at < m->s->adj_begin[i + 1]; at++) {
        const fgi_link *l = &self->links[at];
        if (l->has_earlier) add_given(m, self, h, l, x);
        else self->k->add(x, self->mu + l->mu, n);
    }
    self->labels[i] = (int32_t)fgi_argmax_of(x, n);
}

/* hat_i and the shares of the factors that come next; returns the maximum of hat_i. */
static double distribute(const fgi_model *m, srmp *self, hand *h, int32_t i, int forward) {
    fgi_assert(i >= 0 && i < m->s->n_vars);
    const int32_t n = m->s->cards[i];
    const int64_t n_links = m->s->adj_begin[i + 1] - m->s->adj_begin[i];
    const fgi_link *links = self->links + m->s->adj_begin[i];
    double *theta = self->theta + m->s->unary_begin[i];
    const double top = fgi_reweight_sum(self->k, theta, n, self->mu, links, n_links, h->hat);
    if (top == -INFINITY) return top;
    self->k->shift(h->hat, top, n);
    for (int32_t a = 0; a < n; a++) {
        if (h->hat[a] > -INFINITY) continue;
        theta[a] = -INFINITY;
        h->hat[a] = 0;
        for (int64_t e = 0; e < n_links; e++) self->mu[links[e].mu + a] = 0;
    }
    fgi_reweight_share(self->k, h->hat, n, self->mu, links, n_links, forward);
    return top;
}

/* Decoding costs about as much as the sweep it rides on, and labelings change slowly: after the first iterations, every
 * fourth. */
static int decodes(const srmp *self, int64_t iteration) {
    return self->stage == FORWARD && (iteration < 8 || iteration % 4 == 0);
}

static int is_wanted(const srmp *self, const fgi_link *l) {
    return self->collect_all || fgi_link_has_changed(l, self->stage == FORWARD);
}

/* Whether the top taken out of a message is added to the bound: only at the first node of its factor, so that it counts
 * once, and always where the model is infeasible. */
static int counts(const fgi_link *l, double top) { return top == -INFINITY || !l->has_earlier; }

static int32_t node_at(const fgi_model *m, const srmp *self, int64_t place) {
    return (int32_t)(self->stage == FORWARD ? place : m->s->n_vars - 1 - place);
}

/* ---- several threads ----------------------------------------------------------------------------------------- */

typedef struct context {
    const fgi_model *m;
    srmp *s;
    int decodes;
} context;

/* Looks at the model alone: links may be under construction. */
static double visit_work(const void *of, int64_t i) {
    const fgi_model *m = ((const helpers *)of)->model;
    const fgi_structure *s = m->s;
    double work = FGI_FACTOR_WORK;
    for (int64_t k = s->adj_begin[i]; k < s->adj_begin[i + 1]; k++) {
        const fgi_view v = fgi_factor_view(m, s->adj[k]);
        work += 0.5 * (double)(FGI_FACTOR_WORK + fgi_view_work(m, &v)); /* half of them in either direction */
    }
    return work;
}

/* Returns 0 if the model is infeasible. */
static int visit(const context *c, hand *h, int32_t i) {
    const fgi_model *m = c->m;
    srmp *self = c->s;
    helpers *t = self->helpers;
    if (c->decodes) decode(m, self, h, i);
    for (int64_t at = m->s->adj_begin[i]; at < m->s->adj_begin[i + 1]; at++) {
        const fgi_link *l = &self->links[at];
        t->link_tops[at] = NAN;
        if (!is_wanted(self, l)) continue;
        const fgi_view v = fgi_factor_view(m, l->factor);
        const double top = collect(m, self, h, l, &v, m->s->cards[i]);
        if (counts(l, top)) t->link_tops[at] = top;
        if (top == -INFINITY) return 0;
    }
    t->tops[i] = distribute(m, self, h, i, self->stage == FORWARD);
    return t->tops[i] > -INFINITY;
}

static int visit_task(void *of, int64_t begin, int64_t end, int64_t then, int worker) {
    const context *c = of;
    helpers *t = c->s->helpers;
    const int32_t *list = fgi_waves_list(t->team.waves);
    (void)then;
    for (int64_t place = begin; place < end; place++) {
        const int32_t at = node_at(c->m, c->s, place);
        if (visit(c, &t->hands[worker], list ? list[at] : at)) continue;
        atomic_store(&t->is_infeasible, 1);
        return 0;
    }
    return 1;
}

static void count_work(hand *h, fgi_info *info) {
    info->oracle_calls += h->calls;
    info->entries_touched += h->entries;
    h->calls = h->entries = 0;
}

/* What the visits have taken out, in the order of one thread. */
static void add_up(const fgi_model *m, srmp *self) {
    const helpers *t = self->helpers;
    for (int64_t place = 0; place < m->s->n_vars; place++) {
        const int32_t i = node_at(m, self, place);
        for (int64_t at = m->s->adj_begin[i]; at < m->s->adj_begin[i + 1]; at++)
            if (!isnan(t->link_tops[at])) fgi_progress_take(&self->progress, t->link_tops[at]);
        fgi_progress_take(&self->progress, t->tops[i]);
    }
}

static int sweep_in_waves(const fgi_model *m, srmp *self, fgi_info *info, int is_decoded) {
    helpers *t = self->helpers;
    context c = {m, self, is_decoded};
    const int complete = fgi_waves_run(t->team.waves, t->team.pool, self->meter.deadline, visit_task, &c, NULL);
    for (int k = 0; k < t->team.threads; k++) count_work(&t->hands[k], info);
    if (atomic_load(&t->is_infeasible)) {
        fgi_progress_take(&self->progress, -INFINITY);
        return 1;
    }
    if (!complete) return 0;
    add_up(m, self);
    t->team.under_way = 0;
    return 1;
}

static int is_in_waves(const fgi_model *m, srmp *self) {
    helpers *t = self->helpers;
    if (!t) return 0;
    const int is_fresh = self->node == 0 && self->done < 0; /* a sweep that began without waves ends without */
    fgi_team_ask(&t->team, m->s, self->entries, visit_work, t);
    if (!t->team.under_way && is_fresh && fgi_team_has_waves(&t->team))
        fgi_team_sweep(&t->team, self->stage == FORWARD);
    return t->team.under_way;
}

/* ---- sweeps -------------------------------------------------------------------------------------------------- */

/* One sweep in either direction, resumed where it paused. Returns 0 when the time is over; a maximum of -INFINITY ends
 * it early. */
static int sweep(const fgi_model *m, srmp *self, fgi_info *info) {
    const fgi_structure *s = m->s;
    hand *h = &self->hand;
    if (is_in_waves(m, self)) return sweep_in_waves(m, self, info, decodes(self, info->iterations));
    for (; self->node < s->n_vars; self->node++, self->done = -1) {
        const int32_t i = node_at(m, self, self->node), n = s->cards[i];
        const int64_t n_links = s->adj_begin[i + 1] - s->adj_begin[i];
        if (self->done < 0) {
            if (decodes(self, info->iterations)) decode(m, self, h, i);
            self->done = 0;
        }
        while (self->done < n_links) {
            const fgi_link *l = &self->links[s->adj_begin[i] + self->done++];
            if (!is_wanted(self, l)) continue;
            const fgi_view v = fgi_factor_view(m, l->factor);
            const double top = collect(m, self, h, l, &v, n);
            const int64_t entries = h->entries;
            count_work(h, info);
            if (counts(l, top)) fgi_progress_take(&self->progress, top);
            if (top == -INFINITY) return 1;
            if (fgi_meter_spend(&self->meter, FGI_FACTOR_WORK + entries)) return 0;
        }
        fgi_progress_take(&self->progress, distribute(m, self, h, i, self->stage == FORWARD));
        if (self->progress.bound.forbidden) return 1;
        if (fgi_meter_spend(&self->meter, FGI_FACTOR_WORK + n_links * n)) {
            self->node++;
            self->done = -1;
            return 0;
        }
    }
    return 1;
}

/* The end of a sweep: what it found goes to the solver, and the next one begins. */
static void end_sweep(fgi_solver *solver, srmp *self) {
    const double constant = solver->model->s->constant;
    if (fgi_sum_value(&self->progress.bound) == -INFINITY) {
        fgi_solver_bound(solver, -INFINITY);
        solver->info.status = FGI_INFEASIBLE;
    } else if (self->stage == FORWARD) {
        if (self->is_part || decodes(self, solver->info.iterations)) fgi_solver_consider(solver, self->labels);
        self->collect_all = 0;
        begin_sweep(self, BACKWARD, constant);
    } else {
        solver->info.iterations++;
        fgi_progress_report(solver, &self->progress);
        begin_sweep(self, FORWARD, constant);
    }
}

static fgi_rc srmp_run(fgi_solver *solver, double deadline, int64_t iteration_limit) {
    srmp *self = solver->state;
    const fgi_model *m = solver->model;
    self->meter.every = FGI_CLOCK_WORK, self->meter.deadline = deadline;
    if (self->stage == BUILD) {
        if (!self->is_part && !fgi_first_labeling(&self->first, solver, NULL, deadline)) return FGI_OK;
        if (solver->info.status != FGI_RUNNING || !build(m, self)) return FGI_OK;
        begin_sweep(self, FORWARD, m->s->constant);
    }
    do {
        if (!self->is_part && self->stage == FORWARD && self->node == 0 &&
            !fgi_first_labeling(&self->first, solver, self->labels, deadline))
            return FGI_OK;
        if (fgi_solver_done(solver)) return FGI_OK;
        if (!sweep(m, self, &solver->info)) return FGI_OK;
        end_sweep(solver, self);
    } while (!fgi_solver_done(solver) &&
        (self->stage == BACKWARD || (solver->info.iterations < iteration_limit && !fgi_meter_over(&self->meter))));
    return FGI_OK;
}

/* ---- state -------------------------------------------------------------------------------------------------- */

static hand make_hand(const fgi_model *m, fgi_arena *arena) {
    const fgi_structure *s = m->s;
    return (hand){.hat = fgi_take(arena, s->max_card, double),
        .scratch = fgi_take(arena, fgi_marginal_scratch(m), double),
        .minus = fgi_take(arena, (int64_t)s->max_arity * s->max_card, double),
        .g = fgi_take(arena, s->max_arity, const double *),
        .axes = fgi_take(arena, s->max_arity, axis)};
}

/* Returns 0 without memory. */
static int make_helpers(const fgi_solver *solver, srmp *self) {
    const fgi_structure *s = solver->model->s;
    helpers *t = self->helpers = fgi_calloc(1, sizeof *t);
    if (!t || !fgi_team_begin(&t->team, solver->pool, solver->settings.threads)) return 0;
    t->model = solver->model;
    t->hands = fgi_take_zero(&t->arena, t->team.threads, hand);
    for (int k = 0; k < t->team.threads && !t->arena.failed; k++) t->hands[k] = make_hand(solver->model, &t->arena);
    t->link_tops = fgi_take(&t->arena, s->adj_begin[s->n_vars], double);
    t->tops = fgi_take(&t->arena, s->n_vars, double);
    return !t->arena.failed;
}

static void free_helpers(helpers *t) {
    if (!t) return;
    fgi_team_end(&t->team);
    fgi_arena_free(&t->arena);
    free(t);
}

static fgi_rc srmp_create(fgi_solver *solver, fgi_error *err) {
    const fgi_model *m = solver->model;
    const fgi_structure *s = m->s;
    srmp *self = fgi_calloc(1, sizeof *self);
    solver->state = self;
    if (!self) return fgi_no_memory(err);
    if (s->max_arity > INT16_MAX)
        return fgi_fail(err, FGI_UNSUPPORTED, -1, "trws takes factors of at most %d variables", INT16_MAX);
    const int64_t n_mu = fgi_dual_message_size(m);
    self->k = fgi_kernels_get();
    self->links = fgi_take(&self->arena, s->adj_begin[s->n_vars], fgi_link);
    self->mu_begin = fgi_take(&self->arena, s->n_factors, int64_t);
    self->mu = fgi_take_zero(&self->arena, n_mu, double);
    self->theta = fgi_arena_copy(&self->arena, m->u->values, s->unary_begin[s->n_vars], sizeof *self->theta);
    self->hand = make_hand(m, &self->arena);
    self->labels = fgi_take_zero(&self->arena, s->n_vars, int32_t);
    if (self->arena.failed || (solver->pool && !make_helpers(solver, self))) return fgi_no_memory(err);
    fgi_dual_message_begin(m, self->mu_begin);
    fgi_progress_init(&self->progress);
    solver->info.memory = self->arena.bytes;
    return FGI_OK;
}

static void srmp_destroy(fgi_solver *solver) {
    srmp *self = solver->state;
    free_helpers(self->helpers); /* first: one of its threads may be reading what follows */
    fgi_first_free(self->first);
    fgi_arena_free(&self->arena);
    free(self);
}

static int64_t srmp_message_size(const fgi_solver *solver) { return fgi_dual_message_size(solver->model); }

/* Between iterations D(mu) is the bound, if no label has been refuted (those have multiplier 0, which D does not know).
 */
static fgi_rc srmp_messages(const fgi_solver *solver, double *mu) {
    const srmp *self = solver->state;
    const int64_t n = fgi_dual_message_size(solver->model);
    for (int64_t k = 0; k < n; k++)
        mu[k] = self->mu[k] == -INFINITY ? 0 : self->mu[k]; /* collected, not yet refuted: a pause in mid-node */
    return FGI_OK;
}

static fgi_rc srmp_warm_start(fgi_solver *solver, const double *mu, fgi_error *err) {
    srmp *self = solver->state;
    const int64_t n = fgi_dual_message_size(solver->model);
    fgi_rc rc = fgi_check_multipliers(mu, n, err);
    if (rc) return rc;
    memcpy(self->mu, mu, (size_t)n * sizeof *mu);
    self->meter.deadline = INFINITY;
    if (self->stage == BUILD) build(solver->model, self);
    begin_sweep(self, FORWARD, solver->model->s->constant);
    self->collect_all = 1;
    fgi_progress_restart(solver, &self->progress);
    return FGI_OK;
}

/* ---- a part of a larger model (see dual/trws_part.c) --------------------------------------------------------- */

static double largest(const double *scores, int32_t n) {
    double top = 0;
    for (int32_t a = 0; a < n; a++)
        if (scores[a] > -INFINITY) top = fgi_larger(top, fabs(scores[a]));
    return top;
}

/* An iteration has begun and is not over. */
static int is_amid(const srmp *self) {
    return self->stage == BACKWARD || self->node > 0 || self->done >= 0 ||
        (self->helpers && self->helpers->team.under_way);
}

static void srmp_ready(fgi_solver *solver, int moves) {
    srmp *self = solver->state;
    const double constant = solver->model->s->constant;
    self->is_part = 1;
    self->meter.deadline = INFINITY;
    if (self->stage == BUILD) {
        build(solver->model, self);
        begin_sweep(self, FORWARD, constant);
    }
    while (is_amid(self)) {
        const stage under_way = self->stage;
        sweep(solver->model, self, &solver->info);
        end_sweep(solver, self);
        if (self->stage == under_way) begin_sweep(self, FORWARD, constant); /* infeasible: no sweep has begun */
    }
    if (self->given_magnitude == 0) self->given_magnitude = self->progress.model_magnitude;
    if (moves) self->progress.model_magnitude = self->given_magnitude;
    fgi_progress_restart(solver, &self->progress);
}

/* A label that was refuted stays so: it was by what is forbidden, and finite scores never move that. */
static void srmp_moved(fgi_solver *solver, int32_t i) {
    srmp *self = solver->state;
    const fgi_model *m = solver->model;
    const double *now = fgi_unary(m, i);
    double *theta = self->theta + m->s->unary_begin[i];
    for (int32_t a = 0; a < m->s->cards[i]; a++)
        if (theta[a] > -INFINITY) theta[a] = now[a];
    self->progress.model_magnitude += largest(now, m->s->cards[i]);
}

static void srmp_belief(const fgi_solver *solver, int32_t i, double *out) {
    const srmp *self = solver->state;
    const fgi_structure *s = solver->model->s;
    const int32_t n = s->cards[i];
    memcpy(out, self->theta + s->unary_begin[i], (size_t)n * sizeof *out);
    for (int64_t at = s->adj_begin[i]; self->stage != BUILD && at < s->adj_begin[i + 1]; at++) {
        const double *mu = self->mu + self->links[at].mu;
        for (int32_t a = 0; a < n; a++) out[a] += mu[a] == -INFINITY ? 0 : mu[a];
    }
}

static double *srmp_state(fgi_solver *solver, int64_t *n) {
    *n = fgi_dual_message_size(solver->model);
    return ((srmp *)solver->state)->mu;
}

static fgi_rc srmp_state_set(fgi_solver *solver, fgi_error *err) {
    srmp *self = solver->state;
    const fgi_model *m = solver->model;
    (void)err;
    memcpy(self->theta, m->u->values, (size_t)m->s->unary_begin[m->s->n_vars] * sizeof *self->theta);
    begin_sweep(self, FORWARD, m->s->constant);
    self->collect_all = 1;
    return FGI_OK;
}

const fgi_solver_ops fgi_srmp_ops = {.name = "trws",
    .create = srmp_create,
    .run = srmp_run,
    .destroy = srmp_destroy,
    .message_size = srmp_message_size,
    .messages = srmp_messages,
    .warm_start = srmp_warm_start,
    .moved = srmp_moved,
    .ready = srmp_ready,
    .belief = srmp_belief,
    .state = srmp_state,
    .state_set = srmp_state_set};
