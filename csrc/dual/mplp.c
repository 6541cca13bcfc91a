/* dual/mplp.c - block coordinate descent on the dual of docs/mathematics.md, section 2 (Globerson and Jaakkola's MPLP,
 * for factors of any arity).
 *
 * One iteration updates the messages of each factor in turn. With c_i = theta_i + sum of the messages of the *other*
 * factors, and n the factor's arity,
 *
 *     mu_fi = -c_i + ( c_i + max-marginal_i [ theta_f + sum of the other c_j ] ) / n,
 *
 * which makes the factor's maximum exactly 0: every state is at most the mean of its max-marginals, and the best one
 * attains it. So after a pass D(mu) is the sum of the node maxima. It never gets worse. Labels are the argmax of the
 * node sums. */
#include "dual/messages.h"

typedef struct mplp {
    fgi_dual_state d;
    int64_t factor; /* next one of this pass */
    int passed;     /* all factors of this pass are done, its sums are not */
    double given;   /* the largest message of a warm start: rounding of another model's messages stays in these */
} mplp;

/* A label without a supporting state in the factor is refuted for good. */
static void update_variable(
    fgi_dual_state *d, const fgi_structure *s, int32_t i, int64_t at, const double *c, double share) {
    double *theta = d->theta + s->unary_begin[i], *sums = d->sums + s->unary_begin[i];
    for (int32_t a = 0; a < s->cards[i]; a++) {
        if (c[a] == -INFINITY || d->out[a] == -INFINITY) {
            theta[a] = sums[a] = -INFINITY;
            d->mu[at + a] = 0;
        } else {
            sums[a] = share * (c[a] + d->out[a]);
            d->mu[at + a] = sums[a] - c[a];
        }
    }
}

static void update_factor(fgi_dual_state *d, const fgi_model *m, int64_t f, const fgi_view *v) {
    fgi_assert(f >= 0 && f < m->s->n_factors);
    const fgi_structure *s = m->s;
    int64_t at = d->begin[f];
    for (int32_t q = 0; q < v->arity; q++) {
        const int32_t i = v->vars[q];
        d->k->reweight(d->sums + s->unary_begin[i], 1, d->mu + at, d->g[q], s->cards[i]);
        at += s->cards[i];
    }
    at = d->begin[f];
    for (int32_t q = 0; q < v->arity; q++) {
        const int32_t i = v->vars[q];
        fgi_max_marginal(d->k, m, v, q, (const double *const *)d->g, d->out, d->scratch);
        update_variable(d, s, i, at, d->g[q], 1.0 / v->arity);
        d->progress.magnitude += fabs(d->k->max(d->sums + s->unary_begin[i], s->cards[i]));
        at += s->cards[i];
    }
}

static fgi_rc mplp_run(fgi_solver *solver, double deadline, int64_t iteration_limit) {
    mplp *self = solver->state;
    fgi_dual_state *d = &self->d;
    const fgi_model *m = solver->model;
    if (!fgi_dual_begin(d, solver, deadline)) return FGI_OK;
    do {
        if (self->factor == 0 && !self->passed) {
            if (!fgi_dual_sum(d, m)) return FGI_OK;
            d->summed = -1; /* afresh at the end of the pass: no rounding errors pile up */
            fgi_progress_begin(&d->progress, m->s->constant);
            d->progress.magnitude += self->given * (double)m->s->n_factors;
        }
        while (self->factor < m->s->n_factors && !self->passed) {
            fgi_view v = fgi_factor_view(m, self->factor);
            update_factor(d, m, self->factor++, &v);
            solver->info.entries_touched += v.arity * fgi_view_work(m, &v);
            if (fgi_dual_out_of_time(d, v.arity * fgi_view_work(m, &v))) return FGI_OK;
        }
        self->factor = 0;
        self->passed = 1;
        if (!fgi_dual_sum(d, m)) return FGI_OK;
        self->passed = 0;
        solver->info.iterations++;
        if (!fgi_dual_take_nodes(d, m)) {
            fgi_dual_infeasible(solver);
            return FGI_OK;
        }
        fgi_dual_decode(d, solver);
        fgi_progress_report(solver, &d->progress);
        if (!fgi_dual_first(d, solver)) return FGI_OK;
    } while (!fgi_solver_done(solver) && solver->info.iterations < iteration_limit && !fgi_meter_over(&d->meter));
    return FGI_OK;
}

static fgi_rc mplp_create(fgi_solver *solver, fgi_error *err) {
    mplp *self = fgi_calloc(1, sizeof *self);
    solver->state = self;
    return self ? fgi_dual_init(&self->d, solver, err) : fgi_no_memory(err);
}

static void mplp_destroy(fgi_solver *solver) {
    fgi_dual_destroy(&((mplp *)solver->state)->d);
    free(solver->state);
}

static int64_t mplp_message_size(const fgi_solver *solver) { return ((const mplp *)solver->state)->d.n_mu; }

static fgi_rc mplp_messages(const fgi_solver *solver, double *mu) {
    const fgi_dual_state *d = &((const mplp *)solver->state)->d;
    for (int64_t k = 0; k < d->n_mu; k++) mu[k] = d->mu[k];
    return FGI_OK;
}

static fgi_rc mplp_warm_start(fgi_solver *solver, const double *mu, fgi_error *err) {
    mplp *self = solver->state;
    fgi_rc rc = fgi_check_multipliers(mu, self->d.n_mu, err);
    if (rc) return rc;
    self->given = 0;
    for (int64_t k = 0; k < self->d.n_mu; k++) {
        self->d.mu[k] = mu[k];
        self->given = fgi_larger(self->given, fabs(mu[k]));
    }
    self->factor = self->passed = 0;
    self->d.summed = -1;
    fgi_progress_restart(solver, &self->d.progress);
    return FGI_OK;
}

const fgi_solver_ops fgi_mplp_ops = {.name = "mplp",
    .create = mplp_create,
    .run = mplp_run,
    .destroy = mplp_destroy,
    .message_size = mplp_message_size,
    .messages = mplp_messages,
    .warm_start = mplp_warm_start};
