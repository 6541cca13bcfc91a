/* primal/clauses.c - the method "clauses": a labeling that meets all hard constraints, or a proof that there is none,
 * by learning from conflicts (primal/feasible.h). It looks at scores only to improve what it has found by coordinate
 * ascent, and then it ends. */
#include "primal/feasible.h"
#include "primal/labeling.h"
#include "solver.h"

enum { OPERATIONS_PER_LOOK = 100000 }; /* below a millisecond */

typedef struct clauses {
    fgi_feasible *feasible;
    fgi_local *local; /* once there is a labeling */
    int32_t *labels;
} clauses;

static fgi_rc clauses_create(fgi_solver *solver, fgi_error *err) {
    int too_large = 0;
    clauses *s = fgi_calloc(1, sizeof *s);
    solver->state = s;
    if (s) s->labels = fgi_alloc(solver->model->s->n_vars, sizeof *s->labels);
    if (s && s->labels) s->feasible = fgi_feasible_create(solver->model, &too_large);
    if (too_large) return fgi_fail(err, FGI_UNSUPPORTED, -1, "too many forbidden states to be written as clauses");
    return s && s->feasible ? FGI_OK : fgi_no_memory(err);
}

/* The labeling found, and what coordinate ascent makes of it. Returns 0 when the time is over. */
static int improve(fgi_solver *solver, clauses *s, double deadline) {
    if (!s->local) {
        fgi_feasible_labels(s->feasible, s->labels);
        fgi_solver_consider(solver, s->labels);
        s->local = fgi_local_create(solver->model);
        if (!s->local) return 1;
        fgi_local_assign(s->local, s->labels);
    }
    while (!fgi_local_ascend(s->local, OPERATIONS_PER_LOOK))
        if (fgi_clock() >= deadline) return 0;
    if (fgi_local_violations(s->local) == 0) fgi_solver_consider(solver, fgi_local_labels(s->local));
    return 1;
}

static fgi_rc clauses_run(fgi_solver *solver, double deadline, int64_t iteration_limit) {
    clauses *s = solver->state;
    fgi_info *info = &solver->info;
    fgi_solver_trivial_bound(solver);
    do {
        const fgi_sat_state state = fgi_feasible_step(s->feasible, OPERATIONS_PER_LOOK);
        info->entries_touched = fgi_feasible_operations(s->feasible);
        if (state == FGI_SAT_NO_MEMORY) return FGI_NO_MEMORY;
        if (state == FGI_SAT_CONTRADICTION) {
            fgi_solver_bound(solver, -INFINITY);
            info->status = FGI_INFEASIBLE;
        }
        if (state == FGI_SAT_SATISFIED) {
            if (!improve(solver, s, deadline)) return FGI_OK;
            info->iterations++;
            if (!fgi_solver_done(solver)) info->status = FGI_CONVERGED;
        }
        if (info->status != FGI_RUNNING) return FGI_OK;
        info->iterations++;
    } while (info->iterations < iteration_limit && fgi_clock() < deadline);
    info->memory = fgi_feasible_memory(s->feasible);
    return FGI_OK;
}

static void clauses_destroy(fgi_solver *solver) {
    clauses *s = solver->state;
    if (!s) return;
    fgi_feasible_free(s->feasible);
    fgi_local_free(s->local);
    free(s->labels);
    free(s);
}

const fgi_solver_ops fgi_clauses_ops = {
    .name = "clauses", .create = clauses_create, .run = clauses_run, .destroy = clauses_destroy};
