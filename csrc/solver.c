/* solver.c - see solver.h. */
#include "solver.h"
#include "base/array.h"
#include "model/marginal.h"
#include <float.h>
#include <string.h>

/* What callers see: in the model's own unit, and without labelings that the cutoff excludes. */
static void export_info(const fgi_solver *s, fgi_info *info) {
    *info = s->info;
    info->score = fgi_solver_wanted(s) ? s->score : -INFINITY;
    info->bound = ldexp(s->info.bound, s->exponent);
    info->unit = ldexp(s->info.unit, s->exponent);
    info->rho = ldexp(s->info.rho, s->exponent);
    /* Where that rounds (subnormal numbers), a bound still is one. */
    if (ldexp(info->bound, -s->exponent) < s->info.bound) info->bound = nextafter(info->bound, INFINITY);
}

double fgi_relative_gap(double score, double bound, double unit) {
    if (score == -INFINITY || bound == INFINITY) return INFINITY;
    const double distance = bound - score;
    return distance > 0 ? distance / fgi_larger(fabs(score), unit) : 0;
}

double fgi_proof_tolerance(double score, double unit) { return 1e-12 * fgi_larger(fabs(score), unit); }

/* Relative to max(|score|, unit); INFINITY while either is missing. */
static double gap_of(const fgi_solver *s) {
    fgi_info seen = s->info;
    if (s->exponent) export_info(s, &seen); /* the gap that callers see: their numbers may be rounded once more */
    return fgi_relative_gap(seen.score, seen.bound, seen.unit);
}

/* What a labeling must beat: the incumbent, or the cutoff. */
double fgi_solver_best(const fgi_solver *s) { return fgi_larger(s->info.score, s->settings.cutoff); }

int fgi_solver_wanted(const fgi_solver *s) { return s->info.score > s->settings.cutoff; }

double fgi_solver_tolerance(const fgi_solver *s) {
    return fgi_solver_wanted(s) ? fgi_proof_tolerance(s->info.score, s->info.unit) : 0;
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

double fgi_solver_rho(const fgi_solver *s, double rho) {
    const double largest = ldexp(atomic_load(&s->given->largest), -s->exponent);
    return largest > 0 ? fgi_larger(fgi_smaller(rho, LARGEST_RHO * largest), LEAST_RHO * largest) : rho;
}

fgi_rc fgi_solver_create(const fgi_model *m, const fgi_settings *settings, fgi_solver **out, fgi_error *err) {
    fgi_rc rc = fgi_settings_check(settings, err);
    if (rc) return rc;
    double now = fgi_clock();
    fgi_solver *s = fgi_calloc(1, sizeof *s);
    if (!s) return fgi_no_memory(err);
    s->ops = fgi_method_ops(settings->method);
    s->settings = *settings;
    if (settings->threads > 1) s->pool = fgi_pool_create(settings->threads);
    rc = fgi_model_normalised_by(m, s->pool, &s->model, &s->exponent, err);
    s->given = fgi_model_plain(m); /* with its largest score, which is known now */
    s->best = fgi_calloc(m->s->n_vars, sizeof(int32_t));
    s->settings.gap = fgi_smaller(settings->gap, DBL_MAX); /* that of a missing bound or labeling is never reached */
    s->settings.rho = ldexp(settings->rho, -s->exponent);
    s->settings.cutoff = cutoff_in_unit(settings->cutoff, s->exponent);
    if (s->model) s->info.unit = fgi_model_unit_by(s->exponent ? s->model : m, s->pool); /* who remembers it */
    s->info.score = s->score = s->above = -INFINITY;
    s->info.bound = first_bound(m);
    s->info.primal_infeasibility = s->info.dual_infeasibility = INFINITY;
    s->start_time = settings->start_time < 0 ? now : settings->start_time;
    s->pause_at = INT64_MAX;
    if (!rc && !(s->given && s->best)) rc = fgi_no_memory(err);
    if (!rc) rc = check_rho(settings->rho, m, err);
    if (!rc) rc = s->ops->create(s, err);
    if (rc) {
        fgi_solver_free(s);
        return rc;
    }
    s->info.seconds += fgi_clock() - now;
    s->info.seconds_setup = s->info.seconds;
    *out = s;
    return FGI_OK;
}

/* Where scores are counted in steps, a bound less than a step above the incumbent, or the cutoff, is a proof. No step
 * is larger than the unit, so nobody looks for one before. */
static void close_last_step(fgi_solver *s) {
    const double best = fgi_solver_best(s), left = s->info.bound - best;
    if (!(left < s->info.unit) || left <= fgi_solver_tolerance(s)) return;
    if (!s->has_lattice) s->lattice = fgi_lattice_find(s->model);
    s->has_lattice = 1;
    const double floor = fgi_solver_wanted(s) ? fgi_lattice_floor(&s->lattice, s->info.bound)
                                              : fgi_lattice_exact_floor(&s->lattice, s->info.bound);
    if (floor - best <= fgi_solver_tolerance(s)) fgi_solver_bound(s, fgi_larger(floor, s->info.score));
}

int fgi_solver_done(fgi_solver *s) {
    fgi_info *i = &s->info;
    /* A gap that was small enough may have closed since: what was begun has been brought to an end. */
    if (i->status != FGI_RUNNING && i->status != FGI_GAP_REACHED) return 1;
    const double best = fgi_solver_best(s);
    const int wanted = fgi_solver_wanted(s);
    close_last_step(s);
    if (i->bound == -INFINITY) i->status = FGI_INFEASIBLE;
    else if (best > -INFINITY && i->bound - best <= fgi_solver_tolerance(s))
        i->status = wanted ? FGI_OPTIMAL : FGI_INFEASIBLE;
    else if (wanted && gap_of(s) <= s->settings.gap) i->status = FGI_GAP_REACHED;
    else if (s->settings.max_iterations >= 0 && i->iterations + i->sweeps >= s->settings.max_iterations)
        i->status = FGI_ITERATION_LIMIT;
    return i->status != FGI_RUNNING;
}

static const double SHARE = 0.25; /* part of the tolerance of a proof that pruning may use up (as in bnb) */

int fgi_solver_in_steps(const fgi_solver *s, const fgi_lattice *l) {
    if (l->step == 0 || 2 * l->error > SHARE * fgi_solver_tolerance(s)) return 0;
    return fgi_solver_wanted(s);
}

double fgi_solver_goal(const fgi_solver *s, const fgi_lattice *l) {
    const double best = fgi_solver_best(s), least = best + SHARE * fgi_solver_tolerance(s);
    return fgi_solver_in_steps(s, l) ? fgi_larger(least, fgi_lattice_next(l, best)) : least;
}

double fgi_solver_left(const fgi_solver *s, const fgi_lattice *l, double bound) {
    const double best = fgi_solver_best(s);
    if (!fgi_solver_in_steps(s, l) || bound >= fgi_lattice_least(l, best)) return bound;
    const double off = l->error > 0 ? 2 * l->error + 0x1p-52 * fabs(best) : 0;
    return fgi_smaller(bound, fgi_larger(best, s->above) + off);
}

/* The labeling and the bound that cost a pass over everything, on models of which all else takes a large part of a
 * second: by their size, not by the clock. Methods that begin with them find it done. Without factors they are all. */
static int begin_with_unaries(fgi_solver *s) {
    static const int64_t LARGE = 10000000; /* labels and factors */
    const fgi_structure *st = s->model->s;
    const int is_small = st->n_factors > 0 && st->unary_begin[st->n_vars] + st->n_factors < LARGE;
    if (is_small || s->has_run || s->info.score > -INFINITY) return 0;
    int32_t *labels = fgi_alloc(st->n_vars, sizeof *labels);
    if (!labels) return 0;
    fgi_model_unary_labels_by(s->model, s->pool, labels);
    s->has_unaries = fgi_solver_consider(s, labels);
    free(labels);
    fgi_solver_trivial_bound(s);
    return 1;
}

/* Where time has ended a call, perhaps in the middle of an iteration, nobody asks whether what was found until then is
 * enough before the method itself does: the answer would depend on the length of the slices. */
fgi_rc fgi_solver_run(fgi_solver *s, double seconds, int64_t iterations, fgi_info *info) {
    const double now = fgi_clock(), deadline = seconds < 0 ? INFINITY : now + seconds;
    fgi_rc rc = s->failure;
    s->info.paused = 0;
    if (!rc && (s->amid ? s->info.status == FGI_RUNNING : !fgi_solver_done(s))) {
        int64_t limit = iterations < 0 ? INT64_MAX : s->info.iterations + s->info.sweeps + iterations;
        if (s->settings.max_iterations >= 0 && s->settings.max_iterations < limit) limit = s->settings.max_iterations;
        const int is_enough = begin_with_unaries(s) && fgi_solver_done(s); /* as where there are no factors */
        s->has_run = 1;
        if (!is_enough) rc = s->ops->run(s, deadline, limit);
        if (!rc) rc = s->failure;
        s->amid = s->info.iterations + s->info.sweeps < limit && fgi_clock() >= deadline;
        if (!s->amid) fgi_solver_done(s);
    }
    s->info.seconds += fgi_clock() - now;
    if (info) export_info(s, info);
    return rc;
}

static void record(fgi_solver *s, int merge) {
    fgi_assert(s->n_trace >= 0 && s->n_trace <= s->trace_capacity);
    fgi_info seen;
    export_info(s, &seen);
    fgi_event e = {fgi_clock() - s->start_time, seen.score, seen.bound, seen.iterations + seen.sweeps};
    if (merge && s->n_trace > 0 && s->trace[s->n_trace - 1].iteration == e.iteration) {
        s->trace[s->n_trace - 1] = e;
        return;
    }
    if (!fgi_grow(&s->trace, &s->trace_capacity, s->n_trace + 1, sizeof *s->trace)) {
        s->failure = FGI_NO_MEMORY;
        return;
    }
    s->trace[s->n_trace++] = e;
}

int fgi_solver_consider(fgi_solver *s, const int32_t *labels) {
    double score, above;
    if (fgi_model_score_by(s->model, s->pool, labels, &score, &above, NULL) || !(score > s->info.score)) return 0;
    s->above = above;
    s->info.score = s->score = score;
    if (s->exponent) fgi_model_score_by(s->given, s->pool, labels, &s->score, &above, NULL);
    memcpy(s->best, labels, (size_t)s->model->s->n_vars * sizeof *labels);
    s->info.found_by = s->finder;
    record(s, 0);
    return 1;
}

void fgi_solver_bound(fgi_solver *s, double bound) {
    fgi_assert(bound == bound);
    if (!(bound < s->info.bound)) return;
    s->info.bound = bound;
    /* Merge into the previous event only when that one was a bound of the same iteration. */
    fgi_info seen;
    export_info(s, &seen);
    int same =
        s->n_trace > 0 && s->trace[s->n_trace - 1].score == seen.score && s->trace[s->n_trace - 1].bound < INFINITY;
    record(s, same);
}

void fgi_solver_trivial_bound(fgi_solver *s) {
    if (s->info.bound == INFINITY) fgi_solver_bound(s, fgi_model_trivial_bound(s->model));
}

void fgi_solver_pause_at(fgi_solver *s, int64_t entries) {
    fgi_assert(entries >= 0);
    s->pause_at = entries;
}

void fgi_solver_rest(fgi_solver *s, int32_t rests) { fgi_pool_rest(s->pool, rests); }

void fgi_solver_info(const fgi_solver *s, fgi_info *info) { export_info(s, info); }

int fgi_solver_labels(const fgi_solver *s, int32_t *labels) {
    if (!fgi_solver_wanted(s)) return 0;
    memcpy(labels, s->best, (size_t)s->model->s->n_vars * sizeof *labels);
    return 1;
}

int64_t fgi_solver_trace(const fgi_solver *s, int64_t from, int64_t capacity, fgi_event *events) {
    if (from >= 0 && from < s->n_trace && capacity > 0) {
        int64_t n = s->n_trace - from < capacity ? s->n_trace - from : capacity;
        memcpy(events, s->trace + from, (size_t)n * sizeof *events);
    }
    return s->n_trace;
}

fgi_rc fgi_solver_offer(fgi_solver *s, const int32_t *labels, fgi_error *err) {
    fgi_rc rc = fgi_model_check_labels(s->model, labels, err);
    if (rc) return rc;
    const int32_t finder = s->finder;
    s->finder = FGI_FOUND_OUTSIDE;
    const int better = fgi_solver_consider(s, labels);
    s->finder = finder;
    if (better && s->ops->offered) s->ops->offered(s);
    return s->failure;
}

void fgi_solver_offer_bound(fgi_solver *s, double bound) { fgi_solver_bound(s, ldexp(bound, -s->exponent)); }

int64_t fgi_solver_message_size(const fgi_solver *s) { return s->ops->message_size ? s->ops->message_size(s) : -1; }

fgi_rc fgi_solver_messages(const fgi_solver *s, double *mu) {
    fgi_rc rc = s->ops->messages ? s->ops->messages(s, mu) : FGI_UNSUPPORTED;
    for (int64_t k = 0, n = rc || !s->exponent ? 0 : fgi_solver_message_size(s); k < n; k++)
        mu[k] = ldexp(mu[k], s->exponent);
    return rc;
}

fgi_rc fgi_solver_warm_start(fgi_solver *s, const double *mu, fgi_error *err) {
    if (!s->ops->warm_start) return fgi_fail(err, FGI_UNSUPPORTED, -1, "%s takes no messages", s->ops->name);
    if (!s->exponent) return s->ops->warm_start(s, mu, err);
    const int64_t n = fgi_solver_message_size(s);
    double *own = fgi_copy(mu, n, sizeof *own);
    if (!own) return fgi_no_memory(err);
    for (int64_t k = 0; k < n; k++) own[k] = ldexp(mu[k], -s->exponent);
    fgi_rc rc = s->ops->warm_start(s, own, err);
    free(own);
    return rc;
}

fgi_rc fgi_solver_update(fgi_solver *s, const fgi_model *m, fgi_error *err) {
    if (!fgi_model_same_structure(s->given, m))
        return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "the model has another structure");
    int exponent = 0;
    fgi_model *old = s->model, *fresh = NULL;
    fgi_rc rc = s->ops->update ? fgi_model_normalised_by(m, s->pool, &fresh, &exponent, err) : FGI_OK;
    if (rc) return rc;
    const int is_taken = s->ops->update && fresh->s == old->s && (!s->ops->takes || s->ops->takes(s, fresh));
    if (!is_taken) { /* another structure: in another unit, or without constants of wide factors */
        fgi_model_free(fresh);
        return fgi_fail(err, FGI_UNSUPPORTED, -1, "%s takes no new potentials", s->ops->name);
    }
    fgi_model *given = fgi_model_plain(m);
    int32_t *labels = s->info.score > -INFINITY ? fgi_copy(s->best, m->s->n_vars, sizeof *labels) : NULL;
    if (!fresh || !given || (s->info.score > -INFINITY && !labels)) {
        free(labels);
        fgi_model_free(fresh);
        fgi_model_free(given);
        return fgi_no_memory(err);
    }
    fgi_model_free(s->given);
    s->given = given;
    s->model = fresh;
    s->info.unit = fgi_model_unit_by(m, s->pool);
    s->has_lattice = 0;
    s->start_time = fgi_clock();
    s->n_trace = 0;
    s->info.status = FGI_RUNNING;
    s->amid = 0;
    s->info.iterations = 0;
    s->info.sweeps = 0;
    s->info.score = s->score = s->above = -INFINITY;
    s->info.bound = first_bound(fresh);
    rc = s->ops->update(s);
    if (!rc && labels && fgi_solver_consider(s, labels) && s->ops->offered) s->ops->offered(s);
    free(labels);
    fgi_model_free(old);
    if (rc) {
        s->failure = rc;
        fgi_fail(
            err, rc, -1, rc == FGI_NO_MEMORY ? "out of memory" : "%s does not take these potentials", s->ops->name);
    }
    return rc ? rc : s->failure;
}

/* ---- a part of a larger model ------------------------------------------------------------------------------- */

/* What was found is of other numbers. The unit stays: it is the whole model's business. */
static void forget_found(fgi_solver *s) {
    s->info.status = FGI_RUNNING;
    s->amid = 0;
    s->has_run = 1; /* no labels of the unaries: a solver that is made later, with this one's state, does as this one */
    s->has_lattice = 0;
    s->n_trace = 0;
    s->info.score = s->score = s->above = -INFINITY;
    s->info.bound = first_bound(s->model);
}

static fgi_rc check_variables(const fgi_solver *s, int64_t n, const int32_t *variables, fgi_error *err) {
    if (!s->ops->moved) return fgi_fail(err, FGI_UNSUPPORTED, -1, "%s does not work on parts", s->ops->name);
    for (int64_t k = 0; k < n; k++)
        if (variables[k] < 0 || variables[k] >= s->model->s->n_vars)
            return fgi_fail(err, FGI_BAD_ARGUMENT, variables[k], "there is no variable %d", variables[k]);
    return FGI_OK;
}

fgi_rc fgi_solver_move_unary(fgi_solver *s, int64_t n, const int32_t *variables, const double *scores, fgi_error *err) {
    fgi_rc rc = check_variables(s, n, variables, err);
    double *own = rc ? NULL : fgi_alloc(s->model->s->max_card, sizeof *own);
    if (!rc && !own) rc = fgi_no_memory(err);
    if (!rc) s->ops->ready(s, 1);
    for (int64_t k = 0; !rc && k < n; k++) {
        const int32_t i = variables[k], card = s->model->s->cards[i];
        for (int32_t a = 0; a < card; a++) own[a] = ldexp(scores[a], -s->exponent);
        rc = fgi_model_set_unary(s->model, i, own, err);
        if (!rc && s->exponent) rc = fgi_model_set_unary(s->given, i, scores, err);
        if (!rc) s->ops->moved(s, i);
        scores += card;
    }
    free(own);
    if (!rc) forget_found(s);
    return rc;
}

fgi_rc fgi_solver_beliefs(const fgi_solver *s, int64_t n, const int32_t *variables, double *beliefs, fgi_error *err) {
    fgi_rc rc = check_variables(s, n, variables, err);
    for (int64_t k = 0; !rc && k < n; k++) {
        const int32_t card = s->model->s->cards[variables[k]];
        s->ops->belief(s, variables[k], beliefs);
        for (int32_t a = 0; a < card; a++) beliefs[a] = ldexp(beliefs[a], s->exponent);
        beliefs += card;
    }
    return rc;
}

int64_t fgi_solver_state_size(const fgi_solver *s) {
    int64_t n = -1;
    if (s->ops->state) s->ops->state((fgi_solver *)s, &n);
    return n;
}

fgi_rc fgi_solver_state(fgi_solver *s, double *state, fgi_error *err) {
    fgi_rc rc = check_variables(s, 0, NULL, err);
    if (rc) return rc;
    int64_t n;
    s->ops->ready(s, 0);
    const double *own = s->ops->state(s, &n);
    memcpy(state, own, (size_t)n * sizeof *state);
    return FGI_OK;
}

fgi_rc fgi_solver_set_state(fgi_solver *s, const double *state, fgi_error *err) {
    fgi_rc rc = check_variables(s, 0, NULL, err);
    if (rc) return rc;
    int64_t n;
    s->ops->ready(s, 0);
    double *own = s->ops->state(s, &n);
    for (int64_t k = 0; k < n; k++)
        if (!(state[k] < INFINITY)) return fgi_fail(err, FGI_BAD_ARGUMENT, k, "state %lld is no number", (long long)k);
    memcpy(own, state, (size_t)n * sizeof *state);
    rc = s->ops->state_set(s, err);
    if (!rc) forget_found(s);
    return rc;
}

int fgi_solver_marginals(const fgi_solver *s, double *x) {
    if (!s->ops->marginals) return 0;
    return x ? s->ops->marginals(s, x) : 1;
}

int fgi_solver_speaks(const fgi_solver *s) { return s->ops->speak != NULL; }

fgi_rc fgi_solver_speak(fgi_solver *s, double lead, double quantum, double reach, fgi_error *err) {
    if (!s->ops->speak || s->proof) return fgi_fail(err, FGI_UNSUPPORTED, -1, "%s writes no proof", s->ops->name);
    int exponent;
    if (!(lead > 0 && lead < INFINITY) || frexp(quantum, &exponent) != 0.5 || !(reach >= quantum))
        return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "lead must be above 0, quantum a power of two, reach no smaller");
    s->proof = fgi_calloc(1, sizeof *s->proof);
    if (!s->proof) return fgi_no_memory(err);
    s->proof->exponent = s->exponent;
    s->proof->lead = ldexp(lead, -s->exponent);
    s->proof->quantum = ldexp(quantum, -s->exponent);
    s->proof->reach = ldexp(reach, -s->exponent);
    const fgi_rc rc = s->ops->speak(s);
    return rc ? fgi_fail(err, rc, -1, "%s cannot write a proof now", s->ops->name) : FGI_OK;
}

double fgi_solver_hush(fgi_solver *s) {
    if (!s->proof) return -1;
    const double lead = s->ops->hush(s);
    return lead < 0 ? lead : ldexp(lead, s->exponent);
}

int64_t fgi_solver_spoken(const fgi_solver *s) { return !s->proof ? 0 : s->proof->failed ? -1 : s->proof->n; }

void fgi_solver_take_spoken(fgi_solver *s, uint8_t *out) {
    memcpy(out, s->proof->bytes, (size_t)s->proof->n);
    s->proof->n = 0;
}

void fgi_solver_free(fgi_solver *s) {
    if (!s) return;
    if (s->state) s->ops->destroy(s);
    fgi_proof_free(s->proof);
    fgi_pool_free(s->pool);
    fgi_model_free(s->model);
    fgi_model_free(s->given);
    free(s->best);
    free(s->trace);
    free(s);
}
