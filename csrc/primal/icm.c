/* primal/icm.c - coordinate ascent with restarts: the simplest solver, and the one every other is compared with.
 *
 * One iteration is one ascent: from a start (the best unary labels first, then the incumbent with a random twentieth of
 * its variables relabelled), variables are re-optimised from a work list until none can improve. Violations of hard
 * constraints are compared first, then scores, so an ascent can walk out of an infeasible start (primal/labeling.h). */
#include <string.h>
#include "primal/labeling.h"
#include "solver.h"

/* The first start is told to the solver before the ascent from it begins: each takes a pass over the model. */
typedef enum first { TO_COME, SHOWN, OVER } first;

typedef struct icm {
    fgi_labeling *local;
    int32_t *start;
    fgi_rng rng;
    int started;
    first first;
    fgi_arena arena;
    int64_t stale; /* ascents since the last better labeling */
} icm;

enum { STALE_ASCENTS = 1000 };         /* in a row without a better labeling: there is little more to gain */
enum { RELABELLED = 20 };              /* one of so many variables is relabelled where an ascent starts anew */
enum { OPERATIONS_PER_LOOK = 100000 }; /* between two looks at the clock: well below a millisecond */

/* From a part of the incumbent, or, while there is none, of the last labeling. */
static void perturb(fgi_solver *solver, icm *self) {
    const fgi_model *m = solver->model;
    const int64_t n = m->s->n_vars;
    const int32_t *from = solver->info.score > -INFINITY ? solver->best : fgi_labeling_labels(self->local);
    memcpy(self->start, from, (size_t)n * sizeof *self->start);
    for (int64_t i = 0; i < n; i++)
        if (fgi_rng_below(&self->rng, RELABELLED) == 0)
            self->start[i] = (int32_t)fgi_rng_below(&self->rng, m->s->cards[i]);
}

/* Returns 0 when the time is over. */
static int start(fgi_solver *solver, icm *self, double deadline) {
    const int is_first = self->first == TO_COME && solver->info.iterations == 0;
    if (is_first && solver->has_unaries) { /* shown already */
        memcpy(self->start, solver->best, (size_t)solver->model->s->n_vars * sizeof *self->start);
        self->first = SHOWN;
    } else if (is_first && solver->info.score == -INFINITY) {
        fgi_model_unary_labels(solver->model, self->start);
        fgi_solver_consider(solver, self->start);
        self->first = SHOWN;
        if (fgi_clock() >= deadline) return 0;
    }
    if (self->first != SHOWN) perturb(solver, self);
    self->first = OVER;
    fgi_labeling_assign(self->local, self->start);
    self->started = 1;
    return 1;
}

static fgi_rc icm_create(fgi_solver *solver, fgi_error *err) {
    const int64_t n = solver->model->s->n_vars;
    icm *self = fgi_calloc(1, sizeof *self);
    solver->state = self;
    if (!self) return fgi_no_memory(err);
    self->rng.state = solver->settings.seed;
    self->start = fgi_take(&self->arena, n, int32_t);
    self->local = fgi_labeling_create(solver->model);
    if (self->arena.failed || !self->local) return fgi_no_memory(err);
    solver->info.memory = fgi_labeling_memory(self->local) + self->arena.bytes;
    return FGI_OK;
}

static fgi_rc icm_run(fgi_solver *solver, double deadline, int64_t iteration_limit) {
    icm *self = solver->state;
    fgi_solver_trivial_bound(solver);
    do {
        if (!self->started && !start(solver, self, deadline)) return FGI_OK;
        while (!fgi_labeling_ascend(self->local, OPERATIONS_PER_LOOK))
            if (fgi_clock() >= deadline) return FGI_OK;
        int better =
            fgi_labeling_violations(self->local) == 0 && fgi_solver_consider(solver, fgi_labeling_labels(self->local));
        self->stale = better ? 0 : self->stale + 1;
        self->started = 0;
        solver->info.iterations++;
        if (!fgi_solver_done(solver) && self->stale >= STALE_ASCENTS) solver->info.status = FGI_CONVERGED;
        if (fgi_solver_done(solver)) return FGI_OK;
    } while (solver->info.iterations < iteration_limit && fgi_clock() < deadline);
    return FGI_OK;
}

static void icm_destroy(fgi_solver *solver) {
    icm *self = solver->state;
    if (!self) return;
    fgi_labeling_free(self->local);
    fgi_arena_free(&self->arena);
    free(self);
}

const fgi_solver_ops fgi_icm_ops = {.name = "icm", .create = icm_create, .run = icm_run, .destroy = icm_destroy};
