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
    clauses *s = fgi_calloc(1, sizeof *s);
    solver->state = s;
    if (!s) return fgi_no_memory(err);
    s->n_tiers = -1;
    s->labels = fgi_alloc(solver->model->s->n_vars, sizeof *s->labels);
    if (s->labels) s->feasible = fgi_feasible_create(solver->model, INFINITY, &too_large);
    if (too_large) return fgi_fail(err, FGI_UNSUPPORTED, -1, "too many forbidden states to be written as clauses");
    return s->feasible ? FGI_OK : fgi_no_memory(err);
}

/* The labeling found, and what coordinate ascent makes of it. Returns 0 when the time is over. */
static int improve(fgi_solver *solver, clauses *s, double deadline) {
    if (s->improving == NOTHING) {
        fgi_feasible_labels(s->feasible, s->labels);
        fgi_solver_consider(solver, s->labels);
        s->improving = TO_ASSIGN;
        if (fgi_clock() >= deadline) return 0;
    }
    if (s->improving == TO_ASSIGN) {
        if (!s->local) s->local = fgi_labeling_create(solver->model);
        s->improving = s->local ? ASCENDING : NOTHING;
        if (!s->local) return 1;
        fgi_labeling_assign(s->local, s->labels);
    }
    while (!fgi_labeling_ascend(s->local, ITERATION))
        if (fgi_clock() >= deadline) return 0;
    s->improving = NOTHING;
    if (fgi_labeling_violations(s->local) == 0) fgi_solver_consider(solver, fgi_labeling_labels(s->local));
    return 1;
}

/* Operations of one iteration; returns 0 when the time is over. */
static int iterate(clauses *s, double deadline, fgi_sat_state *state) {
    int64_t done = fgi_feasible_operations(s->feasible);
    if (!s->iteration_end) s->iteration_end = done + ITERATION;
    do {
        const int64_t left = s->iteration_end - done;
        *state = fgi_feasible_step(s->feasible, left < OPERATIONS_PER_LOOK ? left : OPERATIONS_PER_LOOK);
        done = fgi_feasible_operations(s->feasible);
        if (*state != FGI_SAT_RUNNING || done >= s->iteration_end) break;
    } while (fgi_clock() < deadline);
    if (*state == FGI_SAT_RUNNING && done < s->iteration_end) return 0;
    s->iteration_end = 0;
    return 1;
}

static void leave(clauses *s) {
    if (s->feasible) s->finished += fgi_feasible_operations(s->feasible);
    fgi_feasible_free(s->feasible);
    s->feasible = NULL;
    s->iteration_end = 0;
}

/* The first tier of which the incumbent pays something. Without one, the method has converged. */
static fgi_rc next_tier(fgi_solver *solver, clauses *s) {
    const fgi_model *m = solver->model;
    int too_large = 0;
    if (s->n_tiers < 0) s->n_tiers = fgi_tiers_find(m, s->least);
    const double paid = s->tier < s->n_tiers ? fgi_tiers_paid(m, solver->best) : 0;
    while (s->tier < s->n_tiers && s->least[s->tier] > paid) s->tier++;
    if (s->tier < s->n_tiers) {
        s->feasible = fgi_feasible_create(m, s->least[s->tier++], &too_large);
        if (!s->feasible && !too_large) return FGI_NO_MEMORY;
    }
    if (!s->feasible) solver->info.status = FGI_CONVERGED;
    return FGI_OK;
}

static void end_tier(fgi_solver *solver, clauses *s, fgi_sat_state state) {
    if (state == FGI_SAT_CONTRADICTION && s->tier == 0) {
        fgi_solver_bound(solver, -INFINITY);
        solver->info.status = FGI_INFEASIBLE;
    } else if (state == FGI_SAT_CONTRADICTION && !fgi_solver_done(solver)) solver->info.status = FGI_CONVERGED;
    leave(s);
}

static fgi_rc clauses_run(fgi_solver *solver, double deadline, int64_t iteration_limit) {
    clauses *s = solver->state;
    fgi_info *info = &solver->info;
    fgi_solver_trivial_bound(solver);
    if (s->tier == 0 && info->score > -INFINITY && !s->improving) leave(s); /* it meets the hard constraints */
    do {
        if (!s->feasible) {
            fgi_rc rc = next_tier(solver, s);
            if (rc || info->status != FGI_RUNNING) return rc;
        }
        fgi_sat_state state;
        if (!iterate(s, deadline, &state)) return FGI_OK;
        info->entries_touched = s->finished + fgi_feasible_operations(s->feasible);
        info->memory = fgi_feasible_memory(s->feasible);
        if (state == FGI_SAT_NO_MEMORY) return FGI_NO_MEMORY;
        if (state == FGI_SAT_SATISFIED && !improve(solver, s, deadline)) return FGI_OK;
        if (state != FGI_SAT_RUNNING) end_tier(solver, s, state);
        info->iterations++;
        if (info->status != FGI_RUNNING || fgi_solver_done(solver)) return FGI_OK;
    } while (info->iterations < iteration_limit && fgi_clock() < deadline);
    return FGI_OK;
}

static void clauses_destroy(fgi_solver *solver) {
    clauses *s = solver->state;
    if (!s) return;
    fgi_feasible_free(s->feasible);
    fgi_labeling_free(s->local);
    free(s->labels);
    free(s);
}

const fgi_solver_ops fgi_clauses_ops = {
    .name = "clauses", .create = clauses_create, .run = clauses_run, .destroy = clauses_destroy};
