/* dual/ad3.c - AD3, the alternating directions dual decomposition of Martins et al. 2015, in the signs of
 * docs/mathematics.md, section 3: ADMM on the local-polytope relaxation with dense messages and an exact factor step.
 * It converges to the relaxation's optimum, where coordinate descent stalls.
 *
 *     y_f    = argmin over the simplex of rho/2 sum_i |M_if y - (x_i - mu_if/rho)|^2 - theta_f.y    (dual/ad3_factor.c)
 *     x_i    = projection onto the simplex of [ theta_i/rho + sum_f (M_if y_f + mu_if/rho) ] / d_i
 *     mu_if += rho (M_if y_f - x_i)
 *
 * D(mu), evaluated every few iterations by one pass over the tables, is the bound; it is not monotone. The labeling is
 * the argmax of x. rho starts at a tenth of the mean range of the tables and follows the residuals: it grows while the
 * primal one is much larger than the dual one, and shrinks in the opposite case. */
#include <string.h>
#include "dual/ad3_factor.h"
#include "base/simplex.h"

enum {
    BOUND_EVERY = 4, /* iterations between two bounds: one asks each factor once, an iteration at least once */
    RHO_EVERY = 10,  /* iterations between two looks at the balance of the residuals */
    POINT_BYTES = 64 /* bytes of a factor whose active states are there: four states of two labels */
};
static const double CONVERGED = 1e-8; /* both residuals end below it */
/* Residual balancing (Boyd et al. 2011; decision 0016). */
static const double BALANCE = 5;    /* ratio of the residuals beyond which rho changes */
static const double RHO_STEP = 1.5; /* rho changes by this factor */

typedef enum stage { FACTORS, VARIABLES, MULTIPLIERS, BOUND, NODES } stage;

typedef struct ad3 {
    fgi_dual_state d; /* sums holds x, but in stage NODES, where `average` does */
    ad3_solver solver;
    ad3_point *points; /* per factor */
    double *targets;   /* x - mu/rho of the factor at hand */
    const double **z;
    double *average;    /* accumulates the right-hand side of the variable step */
    double rho, primal; /* primal: sum of |M y - x|^2 of this iteration */
    double change;      /* sum of d_i |x_i - previous x_i|^2, the dual residual, of the variables done with */
    stage stage;
    int64_t factor, variable; /* the next of the stage */
} ad3;

static int64_t degree(const fgi_structure *s, int64_t i) { return s->adj_begin[i + 1] - s->adj_begin[i]; }

static size_t label_bytes(const fgi_solver *solver) {
    return (size_t)solver->model->s->unary_begin[solver->model->s->n_vars] * sizeof(double);
}

/* Uniform over the allowed labels; variables without factors take their best label once and for all. */
static void start_variables(ad3 *self, const fgi_model *m) {
    const fgi_structure *s = m->s;
    for (int64_t i = 0; i < s->n_vars; i++) {
        double *x = self->d.sums + s->unary_begin[i];
        const double *theta = fgi_unary(m, i);
        int32_t allowed = 0;
        for (int32_t a = 0; a < s->cards[i]; a++) allowed += theta[a] > -INFINITY;
        for (int32_t a = 0; a < s->cards[i]; a++) x[a] = theta[a] > -INFINITY && degree(s, i) > 0 ? 1.0 / allowed : 0;
        if (degree(s, i) == 0) x[fgi_argmax_of(theta, s->cards[i])] = 1;
    }
}

/* *done is 0 when the time is over in the middle of it: to be called again, before anything else is changed. */
static fgi_rc factor_step(fgi_solver *solver, ad3 *self, int64_t f, const fgi_view *v, int64_t *entries, int *done) {
    const fgi_structure *s = solver->model->s;
    fgi_dual_state *d = &self->d;
    const double *mu = d->mu + d->begin[f];
    for (int32_t q = 0; q < v->arity; q++) {
        const int32_t i = v->vars[q];
        const double *x = d->sums + s->unary_begin[i], *theta = d->theta + s->unary_begin[i];
        double *z = self->targets + (int64_t)q * s->max_card;
        for (int32_t a = 0; a < s->cards[i]; a++) z[a] = theta[a] == -INFINITY ? -INFINITY : x[a] - mu[a] / self->rho;
        self->z[q] = z;
        mu += s->cards[i];
    }
    ad3_point *p = &self->points[f];
    fgi_rc rc = ad3_factor_step(d, &self->solver, solver->model, v, self->z, self->rho, p, entries, done);
    if (rc || !*done) return rc;
    mu = d->mu + d->begin[f];
    for (int32_t q = 0; q < v->arity; q++) { /* its part of the variable step */
        const int32_t i = v->vars[q];
        double *average = self->average + s->unary_begin[i];
        for (int32_t a = 0; a < s->cards[i]; a++) average[a] += mu[a] / self->rho;
        for (int32_t k = 0; k < p->n; k++) average[p->labels[k * v->arity + q]] += p->y[k];
        mu += s->cards[i];
    }
    return FGI_OK;
}

/* Returns 0 when the time is over. */
static int variable_step(ad3 *self, const fgi_model *m) {
    const fgi_structure *s = m->s;
    fgi_dual_state *d = &self->d;
    while (self->variable < s->n_vars) {
        const int64_t i = self->variable++;
        if (fgi_meter_spend(&d->meter, s->cards[i])) {
            self->variable = i;
            return 0;
        }
        if (degree(s, i) == 0) continue;
        const int64_t begin = s->unary_begin[i];
        int32_t n = 0;
        for (int32_t a = 0; a < s->cards[i]; a++)
            if (d->theta[begin + a] > -INFINITY)
                d->out[n++] = (d->theta[begin + a] / self->rho + self->average[begin + a]) / (double)degree(s, i);
        if (n > 0) fgi_simplex_project(d->out, n);
        n = 0;
        for (int32_t a = 0; a < s->cards[i]; a++) {
            if (d->theta[begin + a] == -INFINITY) continue;
            const double difference = d->out[n] - d->sums[begin + a];
            self->change += (double)degree(s, i) * difference * difference;
            d->sums[begin + a] = d->out[n++];
        }
    }
    self->variable = 0;
    return 1;
}

static void multiplier_step(ad3 *self, const fgi_structure *s, int64_t f, const fgi_view *v) {
    fgi_assert(f >= 0 && f < s->n_factors);
    fgi_dual_state *d = &self->d;
    const ad3_point *p = &self->points[f];
    double *mu = d->mu + d->begin[f];
    for (int32_t q = 0; q < v->arity; q++) {
        const int32_t i = v->vars[q];
        const double *x = d->sums + s->unary_begin[i];
        for (int32_t a = 0; a < s->cards[i]; a++) d->out[a] = -x[a];
        for (int32_t k = 0; k < p->n; k++) d->out[p->labels[k * v->arity + q]] += p->y[k];
        for (int32_t a = 0; a < s->cards[i]; a++) {
            self->primal += d->out[a] * d->out[a];
            mu[a] += self->rho * d->out[a];
        }
        mu += s->cards[i];
    }
}

static void take_factor(ad3 *self, const fgi_model *m, int64_t f, const fgi_view *v) {
    fgi_dual_state *d = &self->d;
    const double *mu = d->mu + d->begin[f];
    for (int32_t q = 0; q < v->arity; q++) {
        const int32_t i = v->vars[q];
        const double *theta = d->theta + m->s->unary_begin[i];
        for (int32_t a = 0; a < m->s->cards[i]; a++) d->g[q][a] = theta[a] == -INFINITY ? -INFINITY : -mu[a];
        mu += m->s->cards[i];
    }
    fgi_max_marginal(d->k, m, v, 0, (const double *const *)d->g, d->out, d->scratch);
    d->k->add(d->out, d->g[0], m->s->cards[v->vars[0]]);
    fgi_progress_take(&d->progress, d->k->max(d->out, m->s->cards[v->vars[0]]));
}

static void begin_nodes(fgi_solver *solver, ad3 *self) {
    memcpy(self->average, self->d.sums, label_bytes(solver)); /* x, while sums is needed for sums */
    self->d.summed = -1;
    self->stage = NODES;
}

/* Would every labeling have a lower score than any that is allowed can have? Where the relaxation has no solution
 * bounds fall without end. */
static int is_below_all(const fgi_solver *solver, double bound) {
    const fgi_structure *s = solver->model->s;
    const double largest = ldexp(atomic_load(&solver->given->largest), -solver->exponent);
    return largest > 0 && bound < -2 * largest * (double)(s->n_vars + s->n_factors + 1);
}

/* D(mu): the factors' maxima are in progress, the nodes' are added here. */
static void report_bound(fgi_solver *solver, ad3 *self) {
    fgi_dual_state *d = &self->d;
    fgi_dual_take_nodes(d, solver->model);
    memcpy(d->sums, self->average, label_bytes(solver));
    const double value = fgi_sum_value(&d->progress.bound);
    const double bound = fgi_safe_bound(solver->model, value,
        d->progress.magnitude + d->progress.model_magnitude + fgi_dual_multipliers(d, solver->model));
    if (value == -INFINITY || is_below_all(solver, bound)) fgi_dual_infeasible(solver);
    else fgi_solver_bound(solver, bound);
}

/* A pass over the factors in the current stage; 0 when the time is over. */
static int pass(fgi_solver *solver, ad3 *self, fgi_rc *rc) {
    const fgi_model *m = solver->model;
    while (self->factor < m->s->n_factors) {
        const int64_t f = self->factor++;
        fgi_view v = fgi_factor_view(m, f);
        int64_t work = (int64_t)v.arity * m->s->max_card;
        if (self->stage == FACTORS) {
            int done = 1;
            work = 0;
            *rc = factor_step(solver, self, f, &v, &work, &done);
            solver->info.oracle_calls += done;
            solver->info.entries_touched += work;
            if (!*rc && !done) {
                self->factor = f;
                return 0;
            }
            work = 0; /* it has looked at the clock itself */
        } else if (self->stage == MULTIPLIERS) {
            multiplier_step(self, m->s, f, &v);
        } else {
            take_factor(self, m, f, &v);
            work = fgi_view_work(m, &v);
            solver->info.entries_touched += work;
        }
        if (*rc) return 1;
        if (fgi_dual_out_of_time(&self->d, work)) return 0;
    }
    self->factor = 0;
    return 1;
}

static void balance(fgi_solver *solver, ad3 *self) {
    const fgi_info *i = &solver->info;
    if (solver->settings.rho > 0 || i->iterations % RHO_EVERY || i->iterations < RHO_EVERY) return;
    if (i->primal_infeasibility > BALANCE * i->dual_infeasibility) self->rho *= RHO_STEP;
    else if (i->dual_infeasibility > BALANCE * i->primal_infeasibility) self->rho /= RHO_STEP;
    self->rho = fgi_solver_rho(solver, self->rho);
    solver->info.rho = self->rho;
}

static void end_variables(fgi_solver *solver, ad3 *self) {
    const fgi_structure *s = solver->model->s;
    const double slots = fmax(1, (double)fgi_factor_begin(s, s->n_factors));
    solver->info.dual_infeasibility = sqrt(self->change / slots);
    memset(self->average, 0, label_bytes(solver));
    self->primal = self->change = 0;
    fgi_dual_decode(&self->d, solver);
    self->stage = MULTIPLIERS;
}

static void end_iteration(fgi_solver *solver, ad3 *self) {
    const fgi_structure *s = solver->model->s;
    fgi_info *info = &solver->info;
    info->iterations++;
    info->primal_infeasibility = sqrt(self->primal / fmax(1, (double)fgi_factor_begin(s, s->n_factors)));
    const int converged =
        info->primal_infeasibility < CONVERGED && info->dual_infeasibility < CONVERGED && info->iterations > 1;
    balance(solver, self);
    if (!converged && info->iterations % BOUND_EVERY != 1) {
        self->stage = FACTORS;
        return;
    }
    self->stage = BOUND;
    fgi_progress_begin(&self->d.progress, s->constant);
}

static void end_bound(fgi_solver *solver, ad3 *self) {
    fgi_info *info = &solver->info;
    report_bound(solver, self);
    memset(self->average, 0, label_bytes(solver));
    self->stage = FACTORS;
    if (!fgi_solver_done(solver) && info->primal_infeasibility < CONVERGED && info->dual_infeasibility < CONVERGED &&
        info->iterations > 1)
        info->status = FGI_CONVERGED;
}

static fgi_rc ad3_run(fgi_solver *solver, double deadline, int64_t iteration_limit) {
    ad3 *self = solver->state;
    if (!fgi_dual_begin(&self->d, solver, deadline)) return FGI_OK;
    fgi_solver_trivial_bound(solver);
    if (fgi_solver_done(solver)) return FGI_OK;
    do {
        fgi_rc rc = FGI_OK;
        if (self->stage != NODES && self->stage != VARIABLES && !pass(solver, self, &rc)) return FGI_OK;
        if (rc == FGI_UNSUPPORTED) { /* a factor has no feasible state */
            fgi_dual_infeasible(solver);
            return FGI_OK;
        }
        if (rc) return rc;
        if (self->stage == FACTORS) {
            self->stage = VARIABLES;
        } else if (self->stage == VARIABLES) {
            if (!variable_step(self, solver->model)) return FGI_OK;
            end_variables(solver, self);
            if (fgi_meter_over(&self->d.meter)) return FGI_OK; /* a labeling was scored, which takes a pass */
        } else if (self->stage == MULTIPLIERS) {
            end_iteration(solver, self);
            if (!fgi_dual_first(&self->d, solver)) return FGI_OK;
        } else if (self->stage == BOUND) {
            begin_nodes(solver, self);
        } else {
            if (!fgi_dual_sum(&self->d, solver->model)) return FGI_OK;
            end_bound(solver, self);
        }
    } while (!fgi_solver_done(solver) &&
        (self->stage != FACTORS || (solver->info.iterations < iteration_limit && !fgi_meter_over(&self->d.meter))));
    return FGI_OK;
}

static fgi_rc ad3_create(fgi_solver *solver, fgi_error *err) {
    const fgi_structure *s = solver->model->s;
    ad3 *self = fgi_calloc(1, sizeof *self);
    solver->state = self;
    if (!self) return fgi_no_memory(err);
    const int64_t n_side = (int64_t)s->max_arity * s->max_card, n_labels = s->unary_begin[s->n_vars];
    fgi_arena *arena = &self->d.arena;
    self->points = fgi_take_zero(arena, s->n_factors, ad3_point);
    self->targets = fgi_take(arena, n_side, double);
    self->z = fgi_take(arena, s->max_arity, const double *);
    self->average = fgi_take_zero(arena, n_labels, double);
    self->solver.state = fgi_take(arena, s->max_arity, int32_t);
    self->rho =
        solver->settings.rho > 0 ? solver->settings.rho : fgi_solver_rho(solver, 0.1 * fgi_mean_range(solver->model));
    solver->info.rho = self->rho;
    solver->info.memory += s->n_factors * POINT_BYTES;
    fgi_rc rc = fgi_dual_init(&self->d, solver, err);
    if (!rc) start_variables(self, solver->model);
    return rc;
}

static void ad3_destroy(fgi_solver *solver) {
    ad3 *self = solver->state;
    for (int64_t f = 0; self->points && f < solver->model->s->n_factors; f++) {
        free(self->points[f].labels);
        free(self->points[f].y);
    }
    fgi_dual_destroy(&self->d);
    free(self->solver.matrix);
    free(self->solver.rhs);
    free(self->solver.solution);
    free(self);
}

static int64_t ad3_message_size(const fgi_solver *solver) { return ((const ad3 *)solver->state)->d.n_mu; }

static fgi_rc ad3_messages(const fgi_solver *solver, double *mu) {
    const fgi_dual_state *d = &((const ad3 *)solver->state)->d;
    memcpy(mu, d->mu, (size_t)d->n_mu * sizeof *mu);
    return FGI_OK;
}

static fgi_rc ad3_warm_start(fgi_solver *solver, const double *mu, fgi_error *err) {
    ad3 *self = solver->state;
    fgi_rc rc = fgi_check_multipliers(mu, self->d.n_mu, err);
    if (rc) return rc;
    memcpy(self->d.mu, mu, (size_t)self->d.n_mu * sizeof *mu);
    if (self->stage == NODES) memcpy(self->d.sums, self->average, label_bytes(solver));
    memset(self->average, 0, label_bytes(solver));
    self->factor = self->variable = 0;
    self->change = 0;
    self->solver.phase = AD3_POSE;
    self->solver.column = self->solver.begun = 0;
    self->solver.round = 0;
    self->stage = BOUND; /* D(mu) first */
    fgi_progress_begin(&self->d.progress, solver->model->s->constant);
    if (solver->info.status == FGI_CONVERGED) solver->info.status = FGI_RUNNING;
    solver->info.primal_infeasibility = solver->info.dual_infeasibility = INFINITY;
    return FGI_OK;
}

static int ad3_marginals(const fgi_solver *solver, double *x) {
    const ad3 *self = solver->state;
    memcpy(x, self->stage == NODES ? self->average : self->d.sums, label_bytes(solver));
    return 1;
}

const fgi_solver_ops fgi_ad3_ops = {.name = "ad3",
    .create = ad3_create,
    .run = ad3_run,
    .destroy = ad3_destroy,
    .message_size = ad3_message_size,
    .messages = ad3_messages,
    .warm_start = ad3_warm_start,
    .marginals = ad3_marginals};
