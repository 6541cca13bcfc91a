/* primal/first.c - see primal/first.h. */
#include "primal/first.h"
#include "primal/feasible.h"
#include "primal/labeling.h"

enum {
    OPERATIONS_PER_LOOK = 50000, /* below a millisecond */
    FIRST_BACKTRACKS = 200       /* backtracks of the first attempt; each has four times as many as the one before */
};
/* Operations of the first attempt, growing likewise: some tenths of a second. */
static const int64_t FIRST_OPERATIONS = 20000000;

struct fgi_first {
    fgi_construct *construct;
    fgi_feasible *feasible; /* goes on where the attempt before has left it */
    int under_way, hopeless, too_large;
    int64_t due; /* iteration of the next attempt */
    int64_t attempts, backtracks, operations, end;
};

void fgi_first_free(fgi_first *f) {
    if (!f) return;
    fgi_construct_free(f->construct);
    fgi_feasible_free(f->feasible);
    free(f);
}

/* The labeling that costs nothing. */
static void consider_unaries(fgi_solver *solver) {
    int32_t *labels = fgi_alloc(solver->model->s->n_vars, sizeof *labels);
    if (!labels) return;
    fgi_model_unary_labels_by(solver->model, solver->pool, labels);
    fgi_solver_consider(solver, labels);
    free(labels);
}

static int create(fgi_first **first, fgi_solver *solver) {
    if (!*first) {
        consider_unaries(solver);
        *first = fgi_calloc(1, sizeof **first);
    }
    fgi_first *f = *first;
    if (!f || f->hopeless || solver->info.score > -INFINITY) return 0;
    if (!f->construct && !(f->construct = fgi_construct_create(solver->model))) f->hopeless = 1;
    return !f->hopeless;
}

/* Attempts take turns: rounding that propagates and backtracks, and a search that learns from conflicts, which alone is
 * a proof where there is nothing to be found. */
static int learns(const fgi_first *f) { return f->feasible && f->attempts % 2 == 0; }

static void begin(fgi_first *f, const fgi_model *m, const int32_t *hint) {
    f->backtracks = f->attempts ? 4 * f->backtracks : FIRST_BACKTRACKS;
    f->operations = f->attempts ? 4 * f->operations : FIRST_OPERATIONS;
    f->under_way = 1;
    f->attempts++;
    if (f->attempts == 2) f->feasible = fgi_feasible_create(m, INFINITY, &f->too_large);
    if (learns(f)) {
        f->end = fgi_feasible_operations(f->feasible) + f->operations;
        return;
    }
    const int greedy = f->attempts % 4 == 1;
    f->end = fgi_construct_operations(f->construct) + f->operations;
    fgi_construct_start(f->construct, NULL, greedy ? NULL : hint, greedy, f->backtracks);
}

static void consider_learnt(fgi_first *f, fgi_solver *solver) {
    int32_t *labels = fgi_alloc(solver->model->s->n_vars, sizeof *labels);
    if (!labels) return;
    fgi_feasible_labels(f->feasible, labels);
    fgi_solver_consider(solver, labels);
    free(labels);
}

static void prove_infeasible(fgi_solver *solver) {
    fgi_solver_bound(solver, -INFINITY);
    solver->info.status = FGI_INFEASIBLE;
}

/* Both return 0 when the time is over, 1 at the end of the attempt. */
static int learn(fgi_first *f, fgi_solver *solver, double deadline) {
    fgi_sat_state state;
    while ((state = fgi_feasible_step(f->feasible, OPERATIONS_PER_LOOK)) == FGI_SAT_RUNNING) {
        if (fgi_feasible_operations(f->feasible) >= f->end) break;
        if (fgi_clock() >= deadline) return 0;
    }
    if (state == FGI_SAT_SATISFIED) consider_learnt(f, solver);
    if (state == FGI_SAT_CONTRADICTION) prove_infeasible(solver);
    if (state == FGI_SAT_RUNNING) return 1;
    fgi_feasible_free(f->feasible);
    f->feasible = NULL;
    return 1;
}

static int construct(fgi_first *f, fgi_solver *solver, double deadline) {
    fgi_construct_state state;
    while ((state = fgi_construct_step(f->construct, OPERATIONS_PER_LOOK)) == FGI_CONSTRUCT_RUNNING) {
        if (fgi_construct_operations(f->construct) >= f->end) break;
        if (fgi_clock() >= deadline) return 0;
    }
    if (state == FGI_CONSTRUCT_DONE) fgi_solver_consider(solver, fgi_construct_labels(f->construct));
    if (state == FGI_CONSTRUCT_INFEASIBLE) prove_infeasible(solver);
    return 1;
}

int fgi_first_labeling(fgi_first **first, fgi_solver *solver, const int32_t *hint, double deadline) {
    enum { ENOUGH_ATTEMPTS = 16 }; /* the last has had 4^15 times the effort of the first: it ends before, or never */
    if (solver->info.score > -INFINITY || solver->info.status != FGI_RUNNING) return 1;
    if (!create(first, solver)) return 1;
    fgi_first *f = *first;
    if (!f->under_way) {
        if (solver->info.iterations < f->due || f->attempts >= ENOUGH_ATTEMPTS) return 1;
        begin(f, solver->model, hint);
    }
    if (!(learns(f) ? learn(f, solver, deadline) : construct(f, solver, deadline))) return 0;
    f->under_way = 0;
    f->due = f->attempts == 1 ? 0 : 4 * solver->info.iterations + 4;
    return 1;
}
