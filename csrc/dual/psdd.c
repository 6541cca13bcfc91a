/* dual/psdd.c - projected subgradient dual decomposition (Komodakis, Paragios, Tziritas).
 *
 * Every factor is a slave with an equal share of its variables' unaries and an offset: D = sum_f max_y [ theta_f(y) +
 * sum_i ( theta_i/d_i + lambda_fi )(y_i) ], sum_f lambda_fi = 0, d_i the number of factors of i. Each iteration solves
 * all slaves, and
 *
 *     lambda_fi -= eta_t ( [y_f picks a] - share of the slaves of i that pick a ),     eta_t = eta_0 / sqrt(t),
 *
 * the projected subgradient step; eta_0 is the mean range of the tables. D is a bound at every iteration, not a
 * monotone one. The labeling is a vote: each variable takes the label most of its slaves picked. In the signs of
 * docs/mathematics.md, section 2, mu_fi = -(theta_i/d_i + lambda_fi). */
#include <string.h>
#include "dual/messages.h"

typedef enum stage {
    SOLVING, /* the slaves */
    LEFT,    /* what they have left of the unaries is being found */
    DECODING,
    BOUNDING,
    UPDATING /* their offsets are being moved */
} stage;

typedef struct psdd {
    fgi_dual_state d; /* mu holds lambda; sums holds the votes */
    int32_t *picks;   /* the slaves' labels, laid out as the factors' variables */
    double *left;     /* what is left of the unaries when all slaves have taken their shares */
    int64_t factor;
    stage stage;
    double step; /* eta_0 */
    int64_t disagreements;
} psdd;

static double share(const fgi_structure *s, int32_t i) { return 1.0 / (double)(s->adj_begin[i + 1] - s->adj_begin[i]); }

/* What a slave sees of a unary score. */
static double seen(double part, double theta, double lambda) {
    return theta == -INFINITY ? -INFINITY : part * theta + lambda;
}

static double solve_slave(psdd *self, const fgi_model *m, int64_t f, const fgi_view *v) {
    fgi_assert(f >= 0 && f < m->s->n_factors);
    fgi_dual_state *d = &self->d;
    const fgi_structure *s = m->s;
    const double *lambda = d->mu + d->begin[f];
    int32_t *pick = self->picks + fgi_factor_begin(s, f);
    for (int32_t q = 0; q < v->arity; q++) {
        const int32_t i = v->vars[q];
        const double part = share(s, i), *theta = d->theta + s->unary_begin[i];
        for (int32_t a = 0; a < s->cards[i]; a++) d->g[q][a] = seen(part, theta[a], lambda[a]);
        lambda += s->cards[i];
    }
    double value = fgi_dual_argmax(d, m, v, pick);
    for (int32_t q = 0; q < v->arity && value > -INFINITY; q++) d->sums[s->unary_begin[v->vars[q]] + pick[q]] += 1;
    return value;
}

static void move_offsets(psdd *self, const fgi_structure *s, int64_t f, double eta) {
    fgi_assert(f >= 0 && f < s->n_factors && eta >= 0);
    fgi_dual_state *d = &self->d;
    double *lambda = d->mu + d->begin[f];
    const int32_t *vars = fgi_factor_vars(s, f), *pick = self->picks + fgi_factor_begin(s, f);
    for (int32_t q = 0; q < fgi_factor_arity(s, f); q++) {
        const double *votes = d->sums + s->unary_begin[vars[q]], part = share(s, vars[q]);
        self->disagreements += votes[pick[q]] * part < 1;
        for (int32_t a = 0; a < s->cards[vars[q]]; a++) lambda[a] += eta * part * votes[a];
        lambda[pick[q]] -= eta;
        lambda += s->cards[vars[q]];
    }
}

/* Variables without a factor vote for themselves, and count in the bound. */
static void begin_iteration(psdd *self, const fgi_model *m) {
    fgi_dual_state *d = &self->d;
    const fgi_structure *s = m->s;
    fgi_progress_begin(&d->progress, s->constant);
    memset(d->sums, 0, (size_t)s->unary_begin[s->n_vars] * sizeof *d->sums);
    for (int64_t i = 0; i < s->n_vars; i++) {
        if (s->adj_begin[i + 1] > s->adj_begin[i]) continue;
        int64_t best = fgi_argmax_of(fgi_unary(m, i), s->cards[i]);
        d->sums[s->unary_begin[i] + best] = 1;
        fgi_progress_take(&d->progress, fgi_unary(m, i)[best]);
    }
}

/* Returns 0 when the time is over. */
static int pass(fgi_solver *solver, psdd *self) {
    const fgi_model *m = solver->model;
    fgi_dual_state *d = &self->d;
    const double eta = self->step / sqrt(1.0 + (double)solver->info.iterations);
    while (self->factor < m->s->n_factors) {
        const int64_t f = self->factor++;
        fgi_view v = fgi_factor_view(m, f);
        if (self->stage == UPDATING) {
            move_offsets(self, m->s, f, eta);
        } else {
            double value = solve_slave(self, m, f, &v);
            fgi_progress_take(&d->progress, value);
            if (value == -INFINITY) return 1;
            solver->info.oracle_calls++;
            solver->info.entries_touched += fgi_view_work(m, &v);
        }
        if (fgi_dual_out_of_time(d, self->stage == UPDATING ? v.rows + v.cols : fgi_view_work(m, &v))) return 0;
    }
    self->factor = 0;
    return 1;
}

/* The shares of a unary score add up to it, and the offsets of a variable to 0, only up to rounding: that of all steps
 * so far, and offsets may have been much larger than they are. What is left of the unaries belongs to the bound.
 * Returns 0 when the time is over. */
static int take_what_is_left(psdd *self, const fgi_model *m) {
    fgi_dual_state *d = &self->d;
    const fgi_structure *s = m->s;
    if (self->factor == 0) memcpy(self->left, d->theta, (size_t)s->unary_begin[s->n_vars] * sizeof *self->left);
    while (self->factor < s->n_factors) {
        const int64_t f = self->factor++;
        const double *lambda = d->mu + d->begin[f];
        for (int32_t q = 0; q < fgi_factor_arity(s, f); q++) {
            const int32_t i = fgi_factor_vars(s, f)[q];
            const double part = share(s, i), *theta = d->theta + s->unary_begin[i];
            double *left = self->left + s->unary_begin[i];
            for (int32_t a = 0; a < s->cards[i]; a++)
                if (theta[a] > -INFINITY) left[a] -= seen(part, theta[a], lambda[a]);
            lambda += s->cards[i];
        }
        if (fgi_dual_out_of_time(d, d->begin[f + 1] - d->begin[f])) return 0;
    }
    self->factor = 0;
    for (int64_t i = 0; i < s->n_vars; i++)
        if (s->adj_begin[i + 1] > s->adj_begin[i])
            fgi_progress_take(&d->progress, d->k->max(self->left + s->unary_begin[i], s->cards[i]));
    return 1;
}

/* What the rounding of the bound is relative to. */
static double bound_magnitude(const fgi_solver *solver, const fgi_dual_state *d) {
    const fgi_structure *s = solver->model->s;
    double unaries = 0;
    for (int64_t i = 0; i < s->n_vars; i++) {
        double largest = 0;
        for (int64_t k = s->unary_begin[i]; k < s->unary_begin[i + 1]; k++)
            if (d->theta[k] > -INFINITY) largest = fgi_larger(largest, fabs(d->theta[k]));
        unaries += largest;
    }
    return d->progress.magnitude + d->progress.model_magnitude + 2 * unaries +
        2 * fgi_dual_multipliers(d, solver->model);
}

static fgi_rc psdd_run(fgi_solver *solver, double deadline, int64_t iteration_limit) {
    psdd *self = solver->state;
    fgi_dual_state *d = &self->d;
    if (!fgi_dual_begin(d, solver, deadline)) return FGI_OK;
    do {
        if (self->stage == SOLVING) {
            if (self->factor == 0) begin_iteration(self, solver->model);
            if (!pass(solver, self)) return FGI_OK;
            self->stage = LEFT;
        }
        if (self->stage == LEFT) {
            if (!d->progress.bound.forbidden && !take_what_is_left(self, solver->model)) return FGI_OK;
            if (d->progress.bound.forbidden) {
                fgi_dual_infeasible(solver);
                return FGI_OK;
            }
            self->stage = DECODING;
        }
        if (self->stage == DECODING) { /* a pass over the factors, as the next stage is */
            fgi_dual_decode(d, solver);
            self->stage = BOUNDING;
            if (fgi_meter_over(&d->meter)) return FGI_OK;
        }
        if (self->stage == BOUNDING) {
            fgi_solver_bound(
                solver, fgi_safe_bound(solver->model, fgi_sum_value(&d->progress.bound), bound_magnitude(solver, d)));
            self->stage = UPDATING;
            self->disagreements = 0;
        }
        if (!pass(solver, self)) return FGI_OK;
        self->stage = SOLVING;
        solver->info.iterations++;
        solver->info.primal_infeasibility = (double)self->disagreements;
        /* All slaves agree: the labeling attains the bound, and there is nothing to move. */
        if (!fgi_solver_done(solver) && self->disagreements == 0) solver->info.status = FGI_CONVERGED;
        if (!fgi_dual_first(d, solver)) return FGI_OK;
    } while (!fgi_solver_done(solver) && solver->info.iterations < iteration_limit && !fgi_meter_over(&self->d.meter));
    return FGI_OK;
}

static fgi_rc psdd_create(fgi_solver *solver, fgi_error *err) {
    psdd *self = fgi_calloc(1, sizeof *self);
    solver->state = self;
    if (!self) return fgi_no_memory(err);
    const int64_t n_slots = fgi_factor_begin(solver->model->s, solver->model->s->n_factors);
    self->picks = fgi_take_zero(&self->d.arena, n_slots, int32_t);
    self->step = fgi_mean_range(solver->model);
    const int64_t n_labels = solver->model->s->unary_begin[solver->model->s->n_vars];
    self->left = fgi_take(&self->d.arena, n_labels, double);
    return fgi_dual_init(&self->d, solver, err);
}

static void psdd_destroy(fgi_solver *solver) {
    psdd *self = solver->state;
    fgi_dual_destroy(&self->d);
    free(self);
}

static int64_t psdd_message_size(const fgi_solver *solver) { return ((const psdd *)solver->state)->d.n_mu; }

static fgi_rc psdd_messages(const fgi_solver *solver, double *mu) {
    const fgi_dual_state *d = &((const psdd *)solver->state)->d;
    const fgi_structure *s = solver->model->s;
    int64_t at = 0;
    for (int64_t k = 0; k < fgi_factor_begin(s, s->n_factors); k++) {
        const int32_t i = s->vars[k];
        for (int32_t a = 0; a < s->cards[i]; a++, at++) {
            const double theta = d->theta[s->unary_begin[i] + a];
            mu[at] = theta == -INFINITY ? 0 : -(share(s, i) * theta + d->mu[at]);
        }
    }
    return FGI_OK;
}

/* lambda = -mu - theta/d, projected: what is left at a node is shared out evenly, which never worsens D. */
static fgi_rc psdd_warm_start(fgi_solver *solver, const double *mu, fgi_error *err) {
    psdd *self = solver->state;
    fgi_dual_state *d = &self->d;
    const fgi_structure *s = solver->model->s;
    fgi_rc rc = fgi_check_multipliers(mu, d->n_mu, err);
    if (rc) return rc;
    for (int64_t k = 0; k < d->n_mu; k++) d->mu[k] = mu[k];
    d->meter.deadline = INFINITY;
    fgi_dual_ready(d, solver);
    d->summed = -1;
    fgi_dual_sum(d, solver->model);
    int64_t at = 0;
    for (int64_t k = 0; k < fgi_factor_begin(s, s->n_factors); k++) {
        const int32_t i = s->vars[k];
        for (int32_t a = 0; a < s->cards[i]; a++, at++) {
            const double theta = d->theta[s->unary_begin[i] + a], left = d->sums[s->unary_begin[i] + a];
            d->mu[at] = theta == -INFINITY ? 0 : share(s, i) * (left - theta) - mu[at];
        }
    }
    self->factor = 0;
    self->stage = SOLVING;
    if (solver->info.status == FGI_CONVERGED) solver->info.status = FGI_RUNNING;
    return FGI_OK;
}

const fgi_solver_ops fgi_psdd_ops = {.name = "psdd",
    .create = psdd_create,
    .run = psdd_run,
    .destroy = psdd_destroy,
    .message_size = psdd_message_size,
    .messages = psdd_messages,
    .warm_start = psdd_warm_start};
