/* exact/slabs.c - dual decomposition into slabs of small width (exact/slabs.h): bounds for sparse models whose local
 * relaxation is loose.
 *
 * One iteration solves all slabs by elimination and takes one subgradient step on the multipliers of the split
 * variables, with Polyak's step length: alpha * (value - best score) / (number of variables whose copies disagree).
 * Where progress stalls alpha shrinks, and after a while the slabs are made thicker: fewer copies, larger tables. Where
 * all copies agree the labeling is optimal. Agreed labels with either choice at the seams, improved by coordinate
 * ascent, are the labelings. */
#include "exact/slabs.h"
#include <string.h>
#include "exact/eliminate.h"
#include "primal/labeling.h"
#include "solver.h"

enum {
    ENOUGH_WORK = 1000000,  /* table entries of an iteration: the first slabs are made thicker until they have them */
    FIRST_WORK = 8000000,   /* table entries of an iteration with the first slabs, at most */
    MOST_WORK = 200000000,  /* table entries of an iteration with thicker slabs, at most */
    LOG2_TABLE = 24,        /* logarithm of the entries in the largest table of an elimination: 128 MB */
    KEEP_ENTRIES = 1 << 24, /* entries of a level whose tables are kept for the way back, or else made again */
    STALL = 5,              /* iterations without a better bound after which alpha shrinks */
    LEVEL_ITERATIONS = 60,  /* with the same slabs, at most */
    ASCENT = 100000,        /* operations of coordinate ascent between two looks at the clock */
    COPY_WORK = 256,        /* what a copy costs besides tables, in entries */
    ORDER_STEPS = 4         /* that a variable of a factor takes before the search for an order begins */
};
static const double ORDER_EFFORT = 3e6; /* steps of the search for an elimination order */
/* alpha is the length of a step and begins at 1 (decision 0016). */
static const double SHRINK = 0.7;       /* alpha is multiplied by this after a stall */
static const double LEVEL_ALPHA = 0.05; /* below it the slabs are made thicker */
static const double LAST_ALPHA = 1e-3;  /* below it the thickest slabs have converged */

typedef enum stage { NEW_LEVEL, ELIMINATING, ASCENDING } stage;

typedef struct slabs {
    fgi_layers layers;
    fgi_relaxed relaxed;
    fgi_eliminator *eliminator;
    fgi_labeling *local;
    stage stage;
    int32_t thickness;
    int last;      /* thicker slabs are too expensive */
    double *unary; /* unaries of the copies, multipliers included */
    int64_t unary_capacity, label_capacity;
    int32_t *copy_labels, *labels;
    double alpha, level_best;
    int64_t stalled, level_iterations;
    int64_t operations; /* operations of the ascents, as counted so far */
} slabs;

static void slabs_destroy(fgi_solver *solver) {
    slabs *self = solver->state;
    fgi_eliminator_free(self->eliminator);
    fgi_relaxed_free(&self->relaxed);
    fgi_labeling_free(self->local);
    free(self->layers.layer);
    free(self->unary);
    free(self->copy_labels);
    free(self->labels);
    free(self);
}

/* Slabs of the given thickness; FGI_UNSUPPORTED, and the old ones kept, where they are too wide. */
static fgi_rc set_thickness(fgi_solver *solver, slabs *self, int32_t thickness, double most_work, fgi_error *err) {
    fgi_relaxed relaxed;
    fgi_eliminator *eliminator = NULL;
    fgi_rc rc = fgi_relaxed_create(solver->model, &self->layers, thickness, &relaxed, err);
    if (rc) return rc;
    const int64_t n_unary = relaxed.model->s->unary_begin[relaxed.n_copies];
    eliminator = fgi_eliminator_create(relaxed.model);
    rc = eliminator ? fgi_eliminator_pose(eliminator, NULL, NULL, 0, -INFINITY) : FGI_NO_MEMORY;
    if (!rc) rc = fgi_eliminator_order(eliminator, LOG2_TABLE, ORDER_EFFORT);
    if (!rc && fgi_eliminator_bags(eliminator)->work > most_work) rc = FGI_UNSUPPORTED;
    if (!rc &&
        (!fgi_grow(&self->unary, &self->unary_capacity, n_unary, sizeof(double)) ||
            !fgi_grow(&self->copy_labels, &self->label_capacity, relaxed.n_copies, sizeof(int32_t))))
        rc = FGI_NO_MEMORY;
    if (rc) {
        fgi_eliminator_free(eliminator);
        fgi_relaxed_free(&relaxed);
        return rc == FGI_UNSUPPORTED ? rc : fgi_fail(err, rc, -1, "out of memory");
    }
    fgi_eliminator_free(self->eliminator);
    fgi_relaxed_free(&self->relaxed);
    self->eliminator = eliminator;
    self->relaxed = relaxed;
    self->thickness = thickness;
    if (n_unary) memcpy(self->unary, relaxed.model->u->values, (size_t)n_unary * sizeof(double));
    self->alpha = 1;
    self->level_best = INFINITY;
    self->stalled = self->level_iterations = 0;
    return FGI_OK;
}

static fgi_rc slabs_create(fgi_solver *solver, fgi_error *err) {
    slabs *self = fgi_calloc(1, sizeof *self);
    solver->state = self;
    if (!self) return fgi_no_memory(err);
    const fgi_structure *s = solver->model->s;
    if (ORDER_STEPS * fgi_larger((double)fgi_factor_begin(s, s->n_factors), (double)s->n_vars) >= ORDER_EFFORT)
        return fgi_fail(
            err, FGI_UNSUPPORTED, -1, "the model is too large: it would be given up before an order is found");
    self->local = fgi_labeling_create(solver->model);
    self->labels = fgi_calloc(solver->model->s->n_vars, sizeof(int32_t));
    if (!self->local || !self->labels || fgi_layers_find(solver->model, &self->layers)) return fgi_no_memory(err);
    fgi_rc rc = set_thickness(solver, self, 1, MOST_WORK, err);
    return rc == FGI_UNSUPPORTED
        ? fgi_fail(err, rc, -1, "the model is too dense: two layers of it are too wide for elimination")
        : rc;
}

/* Thicker slabs: at first until an iteration has something to do, later by half. The stage stays NEW_LEVEL when the
 * time is over before that. */
static fgi_rc next_level(fgi_solver *solver, slabs *self, double deadline) {
    const int fresh = solver->info.iterations == 0;
    while (!self->last) {
        if (self->thickness >= self->layers.count) self->last = 1;
        if (self->last || (fresh && fgi_eliminator_bags(self->eliminator)->work > ENOUGH_WORK)) break;
        fgi_rc rc = set_thickness(
            solver, self, self->thickness + (self->thickness + 1) / 2, fresh ? FIRST_WORK : MOST_WORK, NULL);
        if (rc && rc != FGI_UNSUPPORTED) return rc;
        self->last = rc == FGI_UNSUPPORTED && !fresh;
        if (rc || !fresh) break;
        if (fgi_clock() >= deadline) return FGI_OK;
    }
    self->stage = ELIMINATING;
    return FGI_OK;
}

static double *copy_unary(const slabs *self, int32_t copy) {
    return self->unary + self->relaxed.model->s->unary_begin[copy];
}

/* Moves score between the two copies of every variable on whose label they disagree; returns how many those are. */
static int64_t step(fgi_solver *solver, slabs *self, double value) {
    const int64_t n = solver->model->s->n_vars;
    const int32_t *x = self->copy_labels;
    int64_t apart = 0;
    for (int64_t i = 0; i < n; i++) {
        const int32_t p = self->relaxed.first[i], q = self->relaxed.second[i];
        apart += p >= 0 && q >= 0 && x[p] != x[q];
        self->labels[i] = x[p >= 0 && (q < 0 || solver->info.iterations % 2 == 0) ? p : q];
    }
    if (!apart) return 0;
    const double target =
        solver->info.score > -INFINITY ? solver->info.score : value - 0.05 * fabs(value) - solver->info.unit;
    const double size = 0.5 * self->alpha * fmax(value - target, 0) / (double)apart;
    for (int64_t i = 0; i < n; i++) {
        const int32_t p = self->relaxed.first[i], q = self->relaxed.second[i];
        if (p < 0 || q < 0 || x[p] == x[q]) continue;
        copy_unary(self, p)[x[p]] -= size;
        copy_unary(self, p)[x[q]] += size;
        copy_unary(self, q)[x[q]] -= size;
        copy_unary(self, q)[x[p]] += size;
    }
    return apart;
}

/* A bound on rounding errors: those of the elimination, and those of the unaries, whose copies add up to the original's
 * only approximately. Each variable counts with the label that loses most. */
static double slack(const fgi_solver *solver, const slabs *self, double value) {
    fgi_sum sum = {0};
    for (int64_t i = 0; i < solver->model->s->n_vars; i++) {
        const int32_t p = self->relaxed.first[i], q = self->relaxed.second[i];
        const double *u = fgi_unary(solver->model, i);
        double most = 0;
        for (int32_t a = 0; p >= 0 && q >= 0 && a < solver->model->s->cards[i]; a++) {
            if (u[a] == -INFINITY) continue;
            fgi_sum rest = {0};
            fgi_sum_add(&rest, u[a]);
            fgi_sum_add(&rest, -copy_unary(self, p)[a]);
            fgi_sum_add(&rest, -copy_unary(self, q)[a]);
            most = fgi_larger(most, fgi_sum_value(&rest));
        }
        fgi_sum_add(&sum, most);
    }
    return 1.0000001 * fgi_sum_value(&sum) + fgi_eliminator_error(self->eliminator) + 0x1p-52 * fabs(value);
}

/* After an elimination: bound, step, and what to do next. */
static fgi_rc conclude(fgi_solver *solver, slabs *self) {
    const double raw = fgi_eliminator_value(self->eliminator);
    if (raw == -INFINITY) {
        fgi_solver_bound(solver, -INFINITY);
        solver->info.status = FGI_INFEASIBLE;
        return FGI_OK;
    }
    const double value = raw + self->relaxed.model->s->constant;
    fgi_solver_bound(solver, value + slack(solver, self, value));
    fgi_eliminator_traceback(self->eliminator, self->copy_labels);
    const double gap = solver->info.score > -INFINITY ? value - solver->info.score : fabs(value);
    if (value < self->level_best - 1e-4 * fabs(gap)) self->stalled = 0;
    else self->stalled++;
    self->level_best = fmin(self->level_best, value);
    if (self->stalled >= STALL) {
        self->alpha *= SHRINK;
        self->stalled = 0;
    }
    self->level_iterations++;
    solver->info.slabs++;
    solver->info.entries_touched +=
        (int64_t)fgi_eliminator_bags(self->eliminator)->work + COPY_WORK * self->relaxed.n_copies;
    if (step(solver, self, value) == 0) { /* the relaxation is tight */
        fgi_solver_consider(solver, self->labels);
        if (!fgi_solver_done(solver)) solver->info.status = FGI_CONVERGED; /* to rounding */
        return FGI_OK;
    }
    fgi_labeling_assign(self->local, self->labels);
    self->stage = ASCENDING;
    return fgi_model_set_all_unary(self->relaxed.model, self->unary, NULL);
}

static fgi_rc slabs_run(fgi_solver *solver, double deadline, int64_t iteration_limit) {
    slabs *self = solver->state;
    fgi_rc rc = FGI_OK;
    do {
        if (self->stage == NEW_LEVEL && (rc = next_level(solver, self, deadline))) return rc;
        if (self->stage == NEW_LEVEL) return FGI_OK;
        if (self->stage == ELIMINATING) {
            int done = 0;
            double states = fgi_eliminator_bags(self->eliminator)->work;
            if ((rc = fgi_eliminator_run(self->eliminator, states <= KEEP_ENTRIES, deadline, &done))) return rc;
            if (!done) return FGI_OK;
            if ((rc = conclude(solver, self))) return rc;
            if (self->stage == ELIMINATING) { /* infeasible, or tight: there is nothing more to do */
                solver->info.iterations++;
                return FGI_OK;
            }
            fgi_eliminator_restart(self->eliminator);
        }
        while (self->stage == ASCENDING) {
            if (fgi_labeling_ascend(self->local, ASCENT)) self->stage = ELIMINATING;
            else if (fgi_clock() >= deadline) return FGI_OK;
        }
        solver->info.entries_touched += fgi_labeling_operations(self->local) - self->operations;
        self->operations = fgi_labeling_operations(self->local);
        if (fgi_labeling_violations(self->local) == 0) fgi_solver_consider(solver, fgi_labeling_labels(self->local));
        solver->info.iterations++;
        if (fgi_solver_done(solver)) return FGI_OK;
        if (!self->last && (self->alpha < LEVEL_ALPHA || self->level_iterations >= LEVEL_ITERATIONS))
            self->stage = NEW_LEVEL;
        if (self->last && self->alpha < LAST_ALPHA) solver->info.status = FGI_CONVERGED;
    } while (solver->info.status == FGI_RUNNING && solver->info.iterations < iteration_limit && fgi_clock() < deadline);
    return FGI_OK;
}

const fgi_solver_ops fgi_slabs_ops = {
    .name = "slabs", .create = slabs_create, .run = slabs_run, .destroy = slabs_destroy};
