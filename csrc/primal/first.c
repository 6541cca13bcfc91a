/* primal/first.c - see primal/first.h. */
#include "primal/first.h"
#include "primal/labeling.h"

enum {
    OPERATIONS_PER_LOOK = 50000, /* below a millisecond */
    FIRST_BACKTRACKS = 200       /* of the first attempt; each has four times as many as the one before */
};
static const int64_t FIRST_OPERATIONS = 20000000; /* of an attempt: some tenths of a second; they grow likewise */

struct fgi_first {
    fgi_construct *construct;
    int under_way, hopeless;
    int64_t due; /* iteration of the next attempt */
    int64_t attempts, backtracks, operations, end;
};

void fgi_first_free(fgi_first *f) {
    if (!f) return;
    fgi_construct_free(f->construct);
    free(f);
}

/* The labeling that costs nothing. */
static void consider_unaries(fgi_solver *solver) {
    int32_t *labels = fgi_alloc(solver->model->s->n_vars, sizeof *labels);
    if (!labels) return;
    fgi_model_unary_labels(solver->model, labels);
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

static void begin(fgi_first *f, const int32_t *hint) {
    f->backtracks = f->attempts ? 4 * f->backtracks : FIRST_BACKTRACKS;
    f->operations = f->attempts ? 4 * f->operations : FIRST_OPERATIONS;
    f->end = fgi_construct_operations(f->construct) + f->operations;
    f->under_way = 1;
    fgi_construct_start(f->construct, NULL, f->attempts % 2 ? hint : NULL, f->attempts % 2 == 0, f->backtracks);
    f->attempts++;
}

int fgi_first_labeling(fgi_first **first, fgi_solver *solver, const int32_t *hint, double deadline) {
    enum { ENOUGH_ATTEMPTS = 16 };
    if (solver->info.score > -INFINITY || solver->info.status != FGI_RUNNING) return 1;
    if (!create(first, solver)) return 1;
    fgi_first *f = *first;
    if (!f->under_way) {
        if (solver->info.iterations < f->due || f->attempts >= ENOUGH_ATTEMPTS) return 1;
        begin(f, hint);
    }
    fgi_construct_state state;
    while ((state = fgi_construct_step(f->construct, OPERATIONS_PER_LOOK)) == FGI_CONSTRUCT_RUNNING) {
        if (fgi_construct_operations(f->construct) >= f->end) break;
        if (fgi_clock() >= deadline) return 0;
    }
    f->under_way = 0;
    f->due = 4 * solver->info.iterations + 4;
    if (state == FGI_CONSTRUCT_DONE) fgi_solver_consider(solver, fgi_construct_labels(f->construct));
    if (state == FGI_CONSTRUCT_INFEASIBLE) {
        fgi_solver_bound(solver, -INFINITY);
        solver->info.status = FGI_INFEASIBLE;
    }
    return 1;
}
