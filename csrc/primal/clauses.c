/* primal/clauses.c - the method "clauses": a labeling that meets all hard constraints, or a proof that there is none,
 * by learning from conflicts (primal/feasible.h). Then the penalties that stand for constraints (primal/tiers.h), the
 * largest first: a labeling that pays none of them, too, as long as there is one. It looks at other scores only to
 * improve what it has found by coordinate ascent. */
#include "primal/feasible.h"
#include "primal/labeling.h"
#include "primal/tiers.h"
#include "solver.h"

enum {
    ITERATION = 100000,         /* operations of one */
    OPERATIONS_PER_LOOK = 10000 /* at the clock: a millisecond or two, where there are a million variables */
};

/* What is to be done with a labeling that was found and considered: a pass over the model each. */
typedef enum improving { NOTHING, TO_ASSIGN, ASCENDING } improving;

typedef struct clauses {
    fgi_feasible *feasible; /* NULL: the next tier is to be looked at */
    fgi_labeling *local;    /* once there is a labeling */
    int32_t *labels;
    improving improving;
    int64_t iteration_end; /* operations at which the iteration under way ends; 0: none is */
    int32_t n_tiers;       /* -1: not counted yet */
    int32_t tier;          /* the next */
    int64_t finished;      /* operations of those before */
    double least[FGI_MOST_TIERS];
} clauses;

static fgi_rc clauses_create(fgi_solver *solver, fgi_error *err) {
    int too_large = 0;
    clauses *self = fgi_calloc(1, sizeof *self);
    solver->state = self;
    if (!self) return fgi_no_memory(err);
    self->n_tiers = -1;
    self->labels = fgi_alloc(solver->model->s->n_vars, sizeof *self->labels);
    if (self->labels) self->feasible = fgi_feasible_create(solver->model, INFINITY, &too_large);
    if (too_large) return fgi_fail(err, FGI_UNSUPPORTED, -1, "too many forbidden states to be written as clauses");
    return self->feasible ? FGI_OK : fgi_no_memory(err);
}

/* The labeling found, and what coordinate ascent makes of it. Returns 0 when the time is over. */
static int improve(fgi_solver *solver, clauses *self, double deadline) {
    if (self->improving == NOTHING) {
        fgi_feasible_labels(self->feasible, self->labels);
        fgi_solver_consider(solver, self->labels);
        self->improving = TO_ASSIGN;
        if (fgi_clock() >= deadline) return 0;
    }
    if (self->improving == TO_ASSIGN) {
        if (!self->local) self->local = fgi_labeling_create(solver->model);
        self->improving = self->local ? ASCENDING : NOTHING;
        if (!self->local) return 1;
        fgi_labeling_assign(self->local, self->labels);
    }
    while (!fgi_labeling_ascend(self->local, ITERATION))
        if (fgi_clock() >= deadline) return 0;
    self->improving = NOTHING;
    if (fgi_labeling_violations(self->local) == 0) fgi_solver_consider(solver, fgi_labeling_labels(self->local));
    return 1;
}

/* Operations of one iteration; returns 0 when the time is over. */
static int iterate(clauses *self, double deadline, fgi_sat_state *state) {
    int64_t done = fgi_feasible_operations(self->feasible);
    if (!self->iteration_end) self->iteration_end = done + ITERATION;
    do {
        const int64_t left = self->iteration_end - done;
        *state = fgi_feasible_step(self->feasible, left < OPERATIONS_PER_LOOK ? left : OPERATIONS_PER_LOOK);
        done = fgi_feasible_operations(self->feasible);
        if (*state != FGI_SAT_RUNNING || done >= self->iteration_end) break;
    } while (fgi_clock() < deadline);
    if (*state == FGI_SAT_RUNNING && done < self->iteration_end) return 0;
    self->iteration_end = 0;
    return 1;
}

static void leave(clauses *self) {
    if (self->feasible) self->finished += fgi_feasible_operations(self->feasible);
    fgi_feasible_free(self->feasible);
    self->feasible = NULL;
    self->iteration_end = 0;
}

/* The first tier of which the incumbent pays something. Without one, the method has converged. */
static fgi_rc next_tier(fgi_solver *solver, clauses *self) {
    const fgi_model *m = solver->model;
    int too_large = 0;
    if (self->n_tiers < 0) self->n_tiers = fgi_tiers_find(m, self->least);
    const double paid = self->tier < self->n_tiers ? fgi_tiers_paid(m, solver->best) : 0;
    while (self->tier < self->n_tiers && self->least[self->tier] > paid) self->tier++;
    if (self->tier < self->n_tiers) {
        self->feasible = fgi_feasible_create(m, self->least[self->tier++], &too_large);
        if (!self->feasible && !too_large) return FGI_NO_MEMORY;
    }
    if (!self->feasible) solver->info.status = FGI_CONVERGED;
    return FGI_OK;
}

static void end_tier(fgi_solver *solver, clauses *self, fgi_sat_state state) {
    if (state == FGI_SAT_CONTRADICTION && self->tier == 0) {
        fgi_solver_bound(solver, -INFINITY);
        solver->info.status = FGI_INFEASIBLE;
    } else if (state == FGI_SAT_CONTRADICTION && !fgi_solver_done(solver)) solver->info.status = FGI_CONVERGED;
    leave(self);
}

static fgi_rc clauses_run(fgi_solver *solver, double deadline, int64_t iteration_limit) {
    clauses *self = solver->state;
    fgi_info *info = &solver->info;
    fgi_solver_trivial_bound(solver);
    if (self->tier == 0 && info->score > -INFINITY && !self->improving) leave(self); /* it meets the hard constraints */
    do {
        if (!self->feasible) {
            fgi_rc rc = next_tier(solver, self);
            if (rc || info->status != FGI_RUNNING) return rc;
        }
        fgi_sat_state state;
        if (!iterate(self, deadline, &state)) return FGI_OK;
        info->entries_touched = self->finished + fgi_feasible_operations(self->feasible);
        info->memory = fgi_feasible_memory(self->feasible);
        if (state == FGI_SAT_NO_MEMORY) return FGI_NO_MEMORY;
        if (state == FGI_SAT_SATISFIED && !improve(solver, self, deadline)) return FGI_OK;
        if (state != FGI_SAT_RUNNING) end_tier(solver, self, state);
        info->iterations++;
        if (info->status != FGI_RUNNING || fgi_solver_done(solver)) return FGI_OK;
    } while (info->iterations < iteration_limit && fgi_clock() < deadline);
    return FGI_OK;
}

static void clauses_destroy(fgi_solver *solver) {
    clauses *self = solver->state;
    if (!self) return;
    fgi_feasible_free(self->feasible);
    fgi_labeling_free(self->local);
    free(self->labels);
    free(self);
}

const fgi_solver_ops fgi_clauses_ops = {
    .name = "clauses", .create = clauses_create, .run = clauses_run, .destroy = clauses_destroy};
