/* dual/bp.c - max-product loopy belief propagation with damping.
 *
 * One iteration visits the factors in turn. With c_j = theta_j + sum of the messages of the other factors,
 *
 *     new_fi = max-marginal_i [ theta_f + sum of the other c_j ], minus its maximum,
 *     m_fi  <- (1 - damping) new_fi + damping m_fi.
 *
 * Exact on trees; elsewhere a heuristic without a certificate: the bound is the trivial one, the sum of the maxima of
 * all potentials. Labels are the argmax of the beliefs theta_i + sum_f m_fi. A message of -INFINITY can only come from
 * hard constraints, and refutes its label for good: that is sound, and so is infeasibility when a variable has no label
 * left. */
#include "dual/messages.h"

typedef struct bp {
    fgi_dual_state d;
    int64_t factor; /* next one of this pass */
    double change;  /* largest change of a message in this pass */
    double range;   /* usual range of a table: what changes are compared with */
    int started;
    int passed; /* all factors of this pass are done, its sums are not */
} bp;

static void update_variable(bp *self, const fgi_structure *s, int32_t i, int64_t at, const double *c, double damping) {
    fgi_dual_state *d = &self->d;
    double *theta = d->theta + s->unary_begin[i], *sums = d->sums + s->unary_begin[i];
    const double top = d->k->max(d->out, s->cards[i]);
    for (int32_t a = 0; a < s->cards[i]; a++) {
        double *message = &d->mu[at + a];
        if (c[a] == -INFINITY || d->out[a] == -INFINITY) {
            theta[a] = sums[a] = -INFINITY;
            *message = 0;
            continue;
        }
        double old = *message;
        *message = (1 - damping) * (d->out[a] - top) + damping * old;
        sums[a] = c[a] + *message;
        self->change = fmax(self->change, fabs(*message - old));
    }
}

static void update_factor(bp *self, const fgi_model *m, int64_t f, const fgi_view *v, double damping) {
    fgi_assert(f >= 0 && f < m->s->n_factors && damping >= 0 && damping < 1);
    fgi_dual_state *d = &self->d;
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
        update_variable(self, s, i, at, d->g[q], damping);
        at += s->cards[i];
    }
}

static fgi_rc bp_run(fgi_solver *solver, double deadline, int64_t iteration_limit) {
    bp *self = solver->state;
    fgi_dual_state *d = &self->d;
    const fgi_model *m = solver->model;
    if (!fgi_dual_begin(d, solver, deadline)) return FGI_OK;
    if (!self->started) {
        self->range = fgi_mean_range(m);
        fgi_solver_trivial_bound(solver);
        self->started = 1;
        if (fgi_solver_done(solver)) return FGI_OK;
    }
    do {
        if (self->factor == 0 && !self->passed) {
            if (!fgi_dual_sum(d, m)) return FGI_OK;
            d->summed = -1; /* afresh at the end of the pass: no rounding errors pile up */
            self->change = 0;
        }
        while (self->factor < m->s->n_factors && !self->passed) {
            fgi_view v = fgi_factor_view(m, self->factor);
            update_factor(self, m, self->factor++, &v, solver->settings.damping);
            solver->info.entries_touched += v.arity * fgi_view_work(m, &v);
            if (fgi_dual_out_of_time(d, v.arity * fgi_view_work(m, &v))) return FGI_OK;
        }
        self->factor = 0;
        self->passed = 1;
        if (!fgi_dual_sum(d, m)) return FGI_OK;
        self->passed = 0;
        solver->info.iterations++;
        fgi_progress_begin(&d->progress, 0);
        if (!fgi_dual_take_nodes(d, m)) {
            fgi_dual_infeasible(solver);
            return FGI_OK;
        }
        fgi_dual_decode(d, solver);
        if (!fgi_solver_done(solver) && self->change <= 1e-10 * self->range * (1 - solver->settings.damping))
            solver->info.status = FGI_CONVERGED;
        if (!fgi_dual_first(d, solver)) return FGI_OK;
    } while (!fgi_solver_done(solver) && solver->info.iterations < iteration_limit && !fgi_meter_over(&d->meter));
    return FGI_OK;
}

static fgi_rc bp_create(fgi_solver *solver, fgi_error *err) {
    bp *self = fgi_calloc(1, sizeof *self);
    solver->state = self;
    return self ? fgi_dual_init(&self->d, solver, err) : fgi_no_memory(err);
}

static void bp_destroy(fgi_solver *solver) {
    fgi_dual_destroy(&((bp *)solver->state)->d);
    free(solver->state);
}

const fgi_solver_ops fgi_bp_ops = {.name = "bp", .create = bp_create, .run = bp_run, .destroy = bp_destroy};
