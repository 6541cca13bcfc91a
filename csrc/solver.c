/* solver.c - see solver.h. */
#include "solver.h"
#include "base/array.h"
#include "model/marginal.h"
#include <float.h>
#include <string.h>

/* What callers see: in the model's own unit, and without labelings that the cutoff excludes. */
static void export_info(const fgi_solver *solver, fgi_info *info) {
    *info = solver->info;
    info->score = fgi_solver_wanted(solver) ? solver->score : -INFINITY;
    info->bound = ldexp(solver->info.bound, solver->exponent);
    info->unit = ldexp(solver->info.unit, solver->exponent);
    info->rho = ldexp(solver->info.rho, solver->exponent);
    /* Where that rounds (subnormal numbers), a bound still is one. */
    if (ldexp(info->bound, -solver->exponent) < solver->info.bound) info->bound = nextafter(info->bound, INFINITY);
}

double fgi_relative_gap(double score, double bound, double unit) {
    if (score == -INFINITY || bound == INFINITY) return INFINITY;
    const double distance = bound - score;
    return distance > 0 ? distance / fgi_larger(fabs(score), unit) : 0;
}

double fgi_proof_tolerance(double score, double unit) { return 1e-12 * fgi_larger(fabs(score), unit); }

/* Relative to max(|score|, unit); INFINITY while either is missing. */
static double gap_of(const fgi_solver *solver) {
    fgi_info seen = solver->info;
    if (solver->exponent)
        export_info(solver, &seen); /* the gap that callers see: their numbers may be rounded once more */
    return fgi_relative_gap(seen.score, seen.bound, seen.unit);
}

/* What a labeling must beat: the incumbent, or the cutoff. */
double fgi_solver_best(const fgi_solver *solver) { return fgi_larger(solver->info.score, solver->settings.cutoff); }

int fgi_solver_wanted(const fgi_solver *solver) { return solver->info.score > solver->settings.cutoff; }

double fgi_solver_tolerance(const fgi_solver *solver) {
    return fgi_solver_wanted(solver) ? fgi_proof_tolerance(solver->info.score, solver->info.unit) : 0;
}

/* Methods see unaries and tables; a forbidden constant is nobody's business but ours. */
static double first_bound(const fgi_model *m) { return m->s->constant == -INFINITY ? -INFINITY : INFINITY; }

/* Steps of multipliers: beside scores that are so much larger or smaller, quotients and sums of them are no numbers. */
static const double LEAST_RHO = 0x1p-300;  /* times the largest score */
static const double LARGEST_RHO = 0x1p300; /* times the largest score */

static fgi_rc check_rho(double rho, const fgi_model *m, fgi_error *err) {
    const double largest = atomic_load(&m->largest), times = rho / largest;
    if (rho == 0 || largest == 0 || (times >= LEAST_RHO && times <= LARGEST_RHO)) return FGI_OK;
    return fgi_fail(err, FGI_BAD_ARGUMENT, -1,
        "rho is %g, the largest score %g: too far apart to be added (0 chooses one that suits the scores)", rho,
        largest);
}

/* The caller's cutoff in the unit of `model`: never INFINITY, but a number, and where that is rounded no higher. */
static double cutoff_in_unit(double cutoff, int exponent) {
    const double own = fgi_smaller(ldexp(cutoff, -exponent), DBL_MAX);
    return ldexp(own, exponent) > cutoff ? nextafter(own, -INFINITY) : own;
}

double fgi_solver_rho(const fgi_solver *solver, double rho) {
    const double largest = ldexp(atomic_load(&solver->given->largest), -solver->exponent);
    return largest > 0 ? fgi_larger(fgi_smaller(rho, LARGEST_RHO * largest), LEAST_RHO * largest) : rho;
}

fgi_rc fgi_solver_create(const fgi_model *m, const fgi_settings *settings, fgi_solver **out, fgi_error *err) {
    fgi_rc rc = fgi_settings_check(settings, err);
    if (rc) return rc;
    double now = fgi_clock();
    fgi_solver *solver = fgi_calloc(1, sizeof *solver);
    if (!solver) return fgi_no_memory(err);
    solver->ops = fgi_method_ops(settings->method);
    solver->settings = *settings;
    if (settings->threads > 1) solver->pool = fgi_pool_create(settings->threads);
    rc = fgi_model_normalised_by(m, solver->pool, &solver->model, &solver->exponent, err);
    solver->given = fgi_model_plain(m); /* with its largest score, which is known now */
    solver->best = fgi_calloc(m->s->n_vars, sizeof(int32_t));
    solver->settings.gap =
        fgi_smaller(settings->gap, DBL_MAX); /* that of a missing bound or labeling is never reached */
    solver->settings.rho = ldexp(settings->rho, -solver->exponent);
    solver->settings.cutoff = cutoff_in_unit(settings->cutoff, solver->exponent);
    if (solver->model)
        solver->info.unit =
            fgi_model_unit_by(solver->exponent ? solver->model : m, solver->pool); /* who remembers it */
    solver->info.score = solver->score = solver->above = -INFINITY;
    solver->info.bound = first_bound(m);
    solver->info.primal_infeasibility = solver->info.dual_infeasibility = INFINITY;
    solver->start_time = settings->start_time < 0 ? now : settings->start_time;
    solver->pause_at = INT64_MAX;
    if (!rc && !(solver->given && solver->best)) rc = fgi_no_memory(err);
    if (!rc) rc = check_rho(settings->rho, m, err);
    if (!rc) rc = solver->ops->create(solver, err);
    if (rc) {
        fgi_solver_free(solver);
        return rc;
    }
    solver->info.seconds += fgi_clock() - now;
    solver->info.seconds_setup = solver->info.seconds;
    *out = solver;
    return FGI_OK;
}

/* Where scores are counted in steps, a bound less than a step above the incumbent, or the cutoff, is a proof. No step
 * is larger than the unit, so nobody looks for one before. */
static void close_last_step(fgi_solver *solver) {
    const double best = fgi_solver_best(solver), left = solver->info.bound - best;
    if (!(left < solver->info.unit) || left <= fgi_solver_tolerance(solver)) return;
    if (!solver->has_lattice) solver->lattice = fgi_lattice_find(solver->model);
    solver->has_lattice = 1;
    const double floor = fgi_solver_wanted(solver) ? fgi_lattice_floor(&solver->lattice, solver->info.bound)
                                                   : fgi_lattice_exact_floor(&solver->lattice, solver->info.bound);
    if (floor - best <= fgi_solver_tolerance(solver)) fgi_solver_bound(solver, fgi_larger(floor, solver->info.score));
}

int fgi_solver_done(fgi_solver *solver) {
    fgi_info *i = &solver->info;
    /* A gap that was small enough may have closed since: what was begun has been brought to an end. */
    if (i->status != FGI_RUNNING && i->status != FGI_GAP_REACHED) return 1;
    const double best = fgi_solver_best(solver);
    const int wanted = fgi_solver_wanted(solver);
    close_last_step(solver);
    if (i->bound == -INFINITY) i->status = FGI_INFEASIBLE;
    else if (best > -INFINITY && i->bound - best <= fgi_solver_tolerance(solver))
        i->status = wanted ? FGI_OPTIMAL : FGI_INFEASIBLE;
    else if (wanted && gap_of(solver) <= solver->settings.gap) i->status = FGI_GAP_REACHED;
    else if (solver->settings.max_iterations >= 0 && i->iterations + i->sweeps >= solver->settings.max_iterations)
        i->status = FGI_ITERATION_LIMIT;
    return i->status != FGI_RUNNING;
}

static const double SHARE = 0.25; /* part of the tolerance of a proof that pruning may use up (as in bnb) */

int fgi_solver_in_steps(const fgi_solver *solver, const fgi_lattice *l) {
    if (l->step == 0 || 2 * l->error > SHARE * fgi_solver_tolerance(solver)) return 0;
    return fgi_solver_wanted(solver);
}

double fgi_solver_goal(const fgi_solver *solver, const fgi_lattice *l) {
    const double best = fgi_solver_best(solver), least = best + SHARE * fgi_solver_tolerance(solver);
    return fgi_solver_in_steps(solver, l) ? fgi_larger(least, fgi_lattice_next(l, best)) : least;
}

double fgi_solver_left(const fgi_solver *solver, const fgi_lattice *l, double bound) {
    const double best = fgi_solver_best(solver);
    if (!fgi_solver_in_steps(solver, l) || bound >= fgi_lattice_least(l, best)) return bound;
    const double off = l->error > 0 ? 2 * l->error + 0x1p-52 * fabs(best) : 0;
    return fgi_smaller(bound, fgi_larger(best, solver->above) + off);
}

/* The labeling and the bound that cost a pass over everything, on models of which all else takes a large part of a
 * second: by their size, not by the clock. Methods that begin with them find it done. Without factors they are all. */
static int begin_with_unaries(fgi_solver *solver) {
    static const int64_t LARGE = 10000000; /* labels and factors */
    const fgi_structure *s = solver->model->s;
    const int is_small = s->n_factors > 0 && s->unary_begin[s->n_vars] + s->n_factors < LARGE;
    if (is_small || solver->has_run || solver->info.score > -INFINITY) return 0;
    int32_t *labels = fgi_alloc(s->n_vars, sizeof *labels);
    if (!labels) return 0;
    fgi_model_unary_labels_by(solver->model, solver->pool, labels);
    solver->has_unaries = fgi_solver_consider(solver, labels);
    free(labels);
    fgi_solver_trivial_bound(solver);
    return 1;
}

/* Where time has ended a call, perhaps in the middle of an iteration, nobody asks whether what was found until then is
 * enough before the method itself does: the answer would depend on the length of the slices. */
fgi_rc fgi_solver_run(fgi_solver *solver, double seconds, int64_t iterations, fgi_info *info) {
    const double now = fgi_clock(), deadline = seconds < 0 ? INFINITY : now + seconds;
    fgi_rc rc = solver->failure;
    solver->info.paused = 0;
    if (!rc && (solver->amid ? solver->info.status == FGI_RUNNING : !fgi_solver_done(solver))) {
        int64_t limit = iterations < 0 ? INT64_MAX : solver->info.iterations + solver->info.sweeps + iterations;
        if (solver->settings.max_iterations >= 0 && solver->settings.max_iterations < limit)
            limit = solver->settings.max_iterations;
        const int is_enough = begin_with_unaries(solver) && fgi_solver_done(solver); /* as where there are no factors */
        solver->has_run = 1;
        if (!is_enough) rc = solver->ops->run(solver, deadline, limit);
        if (!rc) rc = solver->failure;
        solver->amid = solver->info.iterations + solver->info.sweeps < limit && fgi_clock() >= deadline;
        if (!solver->amid) fgi_solver_done(solver);
    }
    solver->info.seconds += fgi_clock() - now;
    if (info) export_info(solver, info);
    return rc;
}

static void record(fgi_solver *solver, int merge) {
    fgi_assert(solver->n_trace >= 0 && solver->n_trace <= solver->trace_capacity);
    fgi_info seen;
    export_info(solver, &seen);
    fgi_event e = {fgi_clock() - solver->start_time, seen.score, seen.bound, seen.iterations + seen.sweeps};
    if (merge && solver->n_trace > 0 && solver->trace[solver->n_trace - 1].iteration == e.iteration) {
        solver->trace[solver->n_trace - 1] = e;
        return;
    }
    if (!fgi_grow(&solver->trace, &solver->trace_capacity, solver->n_trace + 1, sizeof *solver->trace)) {
        solver->failure = FGI_NO_MEMORY;
        return;
    }
    solver->trace[solver->n_trace++] = e;
}

int fgi_solver_consider(fgi_solver *solver, const int32_t *labels) {
    double score, above;
    if (fgi_model_score_by(solver->model, solver->pool, labels, &score, &above, NULL) || !(score > solver->info.score))
        return 0;
    solver->above = above;
    solver->info.score = solver->score = score;
    if (solver->exponent) fgi_model_score_by(solver->given, solver->pool, labels, &solver->score, &above, NULL);
    memcpy(solver->best, labels, (size_t)solver->model->s->n_vars * sizeof *labels);
    solver->info.found_by = solver->finder;
    record(solver, 0);
    return 1;
}

void fgi_solver_bound(fgi_solver *solver, double bound) {
    fgi_assert(bound == bound);
    if (!(bound < solver->info.bound)) return;
    solver->info.bound = bound;
    /* Merge into the previous event only when that one was a bound of the same iteration. */
    fgi_info seen;
    export_info(solver, &seen);
    int same = solver->n_trace > 0 && solver->trace[solver->n_trace - 1].score == seen.score &&
        solver->trace[solver->n_trace - 1].bound < INFINITY;
    record(solver, same);
}

void fgi_solver_trivial_bound(fgi_solver *solver) {
    if (solver->info.bound == INFINITY) fgi_solver_bound(solver, fgi_model_trivial_bound(solver->model));
}

void fgi_solver_pause_at(fgi_solver *solver, int64_t entries) {
    fgi_assert(entries >= 0);
    solver->pause_at = entries;
}

void fgi_solver_rest(fgi_solver *solver, int32_t rests) { fgi_pool_rest(solver->pool, rests); }

void fgi_solver_info(const fgi_solver *solver, fgi_info *info) { export_info(solver, info); }

int fgi_solver_labels(const fgi_solver *solver, int32_t *labels) {
    if (!fgi_solver_wanted(solver)) return 0;
    memcpy(labels, solver->best, (size_t)solver->model->s->n_vars * sizeof *labels);
    return 1;
}

int64_t fgi_solver_trace(const fgi_solver *solver, int64_t from, int64_t capacity, fgi_event *events) {
    if (from >= 0 && from < solver->n_trace && capacity > 0) {
        int64_t n = solver->n_trace - from < capacity ? solver->n_trace - from : capacity;
        memcpy(events, solver->trace + from, (size_t)n * sizeof *events);
    }
    return solver->n_trace;
}

fgi_rc fgi_solver_offer(fgi_solver *solver, const int32_t *labels, fgi_error *err) {
    fgi_rc rc = fgi_model_check_labels(solver->model, labels, err);
    if (rc) return rc;
    const int32_t finder = solver->finder;
    solver->finder = FGI_FOUND_OUTSIDE;
    const int better = fgi_solver_consider(solver, labels);
    solver->finder = finder;
    if (better && solver->ops->offered) solver->ops->offered(solver);
    return solver->failure;
}

void fgi_solver_offer_bound(fgi_solver *solver, double bound) {
    fgi_solver_bound(solver, ldexp(bound, -solver->exponent));
}

int64_t fgi_solver_message_size(const fgi_solver *solver) {
    return solver->ops->message_size ? solver->ops->message_size(solver) : -1;
}

fgi_rc fgi_solver_messages(const fgi_solver *solver, double *mu) {
    fgi_rc rc = solver->ops->messages ? solver->ops->messages(solver, mu) : FGI_UNSUPPORTED;
    for (int64_t k = 0, n = rc || !solver->exponent ? 0 : fgi_solver_message_size(solver); k < n; k++)
        mu[k] = ldexp(mu[k], solver->exponent);
    return rc;
}

fgi_rc fgi_solver_warm_start(fgi_solver *solver, const double *mu, fgi_error *err) {
    if (!solver->ops->warm_start) return fgi_fail(err, FGI_UNSUPPORTED, -1, "%s takes no messages", solver->ops->name);
    if (!solver->exponent) return solver->ops->warm_start(solver, mu, err);
    const int64_t n = fgi_solver_message_size(solver);
    double *own = fgi_copy(mu, n, sizeof *own);
    if (!own) return fgi_no_memory(err);
    for (int64_t k = 0; k < n; k++) own[k] = ldexp(mu[k], -solver->exponent);
    fgi_rc rc = solver->ops->warm_start(solver, own, err);
    free(own);
    return rc;
}

fgi_rc fgi_solver_update(fgi_solver *solver, const fgi_model *m, fgi_error *err) {
    if (!fgi_model_same_structure(solver->given, m))
        return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "the model has another structure");
    int exponent = 0;
    fgi_model *old = solver->model, *fresh = NULL;
    fgi_rc rc = solver->ops->update ? fgi_model_normalised_by(m, solver->pool, &fresh, &exponent, err) : FGI_OK;
    if (rc) return rc;
    const int is_taken =
        solver->ops->update && fresh->s == old->s && (!solver->ops->takes || solver->ops->takes(solver, fresh));
    if (!is_taken) { /* another structure: in another unit, or without constants of wide factors */
        fgi_model_free(fresh);
        return fgi_fail(err, FGI_UNSUPPORTED, -1, "%s takes no new potentials", solver->ops->name);
    }
    fgi_model *given = fgi_model_plain(m);
    int32_t *labels = solver->info.score > -INFINITY ? fgi_copy(solver->best, m->s->n_vars, sizeof *labels) : NULL;
    if (!fresh || !given || (solver->info.score > -INFINITY && !labels)) {
        free(labels);
        fgi_model_free(fresh);
        fgi_model_free(given);
        return fgi_no_memory(err);
    }
    fgi_model_free(solver->given);
    solver->given = given;
    solver->model = fresh;
    solver->info.unit = fgi_model_unit_by(m, solver->pool);
    solver->has_lattice = 0;
    solver->start_time = fgi_clock();
    solver->n_trace = 0;
    solver->info.status = FGI_RUNNING;
    solver->amid = 0;
    solver->info.iterations = 0;
    solver->info.sweeps = 0;
    solver->info.score = solver->score = solver->above = -INFINITY;
    solver->info.bound = first_bound(fresh);
    rc = solver->ops->update(solver);
    if (!rc && labels && fgi_solver_consider(solver, labels) && solver->ops->offered) solver->ops->offered(solver);
    free(labels);
    fgi_model_free(old);
    if (rc) {
        solver->failure = rc;
        fgi_fail(err, rc, -1, rc == FGI_NO_MEMORY ? "out of memory" : "%s does not take these potentials",
            solver->ops->name);
    }
    return rc ? rc : solver->failure;
}

/* ---- a part of a larger model ------------------------------------------------------------------------------- */

/* What was found is of other numbers. The unit stays: it is the whole model's business. */
static void forget_found(fgi_solver *solver) {
    solver->info.status = FGI_RUNNING;
    solver->amid = 0;
    solver->has_run =
        1; /* no labels of the unaries: a solver that is made later, with this one's state, does as this one */
    solver->has_lattice = 0;
    solver->n_trace = 0;
    solver->info.score = solver->score = solver->above = -INFINITY;
    solver->info.bound = first_bound(solver->model);
}

static fgi_rc check_variables(const fgi_solver *solver, int64_t n, const int32_t *variables, fgi_error *err) {
    if (!solver->ops->moved) return fgi_fail(err, FGI_UNSUPPORTED, -1, "%s does not work on parts", solver->ops->name);
    for (int64_t k = 0; k < n; k++)
        if (variables[k] < 0 || variables[k] >= solver->model->s->n_vars)
            return fgi_fail(err, FGI_BAD_ARGUMENT, variables[k], "there is no variable %d", variables[k]);
    return FGI_OK;
}

fgi_rc fgi_solver_move_unary(
    fgi_solver *solver, int64_t n, const int32_t *variables, const double *scores, fgi_error *err) {
    fgi_rc rc = check_variables(solver, n, variables, err);
    double *own = rc ? NULL : fgi_alloc(solver->model->s->max_card, sizeof *own);
    if (!rc && !own) rc = fgi_no_memory(err);
    if (!rc) solver->ops->ready(solver, 1);
    for (int64_t k = 0; !rc && k < n; k++) {
        const int32_t i = variables[k], card = solver->model->s->cards[i];
        for (int32_t a = 0; a < card; a++) own[a] = ldexp(scores[a], -solver->exponent);
        rc = fgi_model_set_unary(solver->model, i, own, err);
        if (!rc && solver->exponent) rc = fgi_model_set_unary(solver->given, i, scores, err);
        if (!rc) solver->ops->moved(solver, i);
        scores += card;
    }
    free(own);
    if (!rc) forget_found(solver);
    return rc;
}

fgi_rc fgi_solver_beliefs(
    const fgi_solver *solver, int64_t n, const int32_t *variables, double *beliefs, fgi_error *err) {
    fgi_rc rc = check_variables(solver, n, variables, err);
    for (int64_t k = 0; !rc && k < n; k++) {
        const int32_t card = solver->model->s->cards[variables[k]];
        solver->ops->belief(solver, variables[k], beliefs);
        for (int32_t a = 0; a < card; a++) beliefs[a] = ldexp(beliefs[a], solver->exponent);
        beliefs += card;
    }
    return rc;
}

int64_t fgi_solver_state_size(const fgi_solver *solver) {
    int64_t n = -1;
    if (solver->ops->state) solver->ops->state((fgi_solver *)solver, &n);
    return n;
}

fgi_rc fgi_solver_state(fgi_solver *solver, double *state, fgi_error *err) {
    fgi_rc rc = check_variables(solver, 0, NULL, err);
    if (rc) return rc;
    int64_t n;
    solver->ops->ready(solver, 0);
    const double *own = solver->ops->state(solver, &n);
    memcpy(state, own, (size_t)n * sizeof *state);
    return FGI_OK;
}

fgi_rc fgi_solver_set_state(fgi_solver *solver, const double *state, fgi_error *err) {
    fgi_rc rc = check_variables(solver, 0, NULL, err);
    if (rc) return rc;
    int64_t n;
    solver->ops->ready(solver, 0);
    double *own = solver->ops->state(solver, &n);
    for (int64_t k = 0; k < n; k++)
        if (!(state[k] < INFINITY)) return fgi_fail(err, FGI_BAD_ARGUMENT, k, "state %lld is no number", (long long)k);
    memcpy(own, state, (size_t)n * sizeof *state);
    rc = solver->ops->state_set(solver, err);
    if (!rc) forget_found(solver);
    return rc;
}

int fgi_solver_marginals(const fgi_solver *solver, double *x) {
    if (!solver->ops->marginals) return 0;
    return x ? solver->ops->marginals(solver, x) : 1;
}

int fgi_solver_speaks(const fgi_solver *solver) { return solver->ops->speak != NULL; }

fgi_rc fgi_solver_speak(fgi_solver *solver, double lead, double quantum, double reach, fgi_error *err) {
    if (!solver->ops->speak || solver->proof)
        return fgi_fail(err, FGI_UNSUPPORTED, -1, "%s writes no proof", solver->ops->name);
    int exponent;
    if (!(lead > 0 && lead < INFINITY) || frexp(quantum, &exponent) != 0.5 || !(reach >= quantum))
        return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "lead must be above 0, quantum a power of two, reach no smaller");
    solver->proof = fgi_calloc(1, sizeof *solver->proof);
    if (!solver->proof) return fgi_no_memory(err);
    solver->proof->exponent = solver->exponent;
    solver->proof->lead = ldexp(lead, -solver->exponent);
    solver->proof->quantum = ldexp(quantum, -solver->exponent);
    solver->proof->reach = ldexp(reach, -solver->exponent);
    const fgi_rc rc = solver->ops->speak(solver);
    return rc ? fgi_fail(err, rc, -1, "%s cannot write a proof now", solver->ops->name) : FGI_OK;
}

double fgi_solver_hush(fgi_solver *solver) {
    if (!solver->proof) return -1;
    const double lead = solver->ops->hush(solver);
    return lead < 0 ? lead : ldexp(lead, solver->exponent);
}

int64_t fgi_solver_spoken(const fgi_solver *solver) {
    return !solver->proof ? 0 : solver->proof->failed ? -1 : solver->proof->n;
}

void fgi_solver_take_spoken(fgi_solver *solver, uint8_t *out) {
    memcpy(out, solver->proof->bytes, (size_t)solver->proof->n);
    solver->proof->n = 0;
}

void fgi_solver_free(fgi_solver *solver) {
    if (!solver) return;
    if (solver->state) solver->ops->destroy(solver);
    fgi_proof_free(solver->proof);
    fgi_pool_free(solver->pool);
    fgi_model_free(solver->model);
    fgi_model_free(solver->given);
    free(solver->best);
    free(solver->trace);
    free(solver);
}
