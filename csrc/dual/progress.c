/* dual/progress.c - see dual/progress.h. */
#include "dual/progress.h"

/* A method has converged when it gains less than this part of the bound in each of so many iterations: far above
 * rounding, far below any gap that is asked for. */
static const double STALL_GAIN = 1e-11;
enum { STALL_ITERATIONS = 20 }; /* looked at together */

void fgi_progress_init(fgi_progress *p) {
    *p = (fgi_progress){0};
    p->last_decoded = NAN;
    p->stall_bound = INFINITY;
}

void fgi_progress_begin(fgi_progress *p, double constant) {
    p->bound = p->decoded = (fgi_sum){0};
    p->magnitude = 0;
    fgi_progress_take(p, constant);
    fgi_sum_add(&p->decoded, constant);
}

void fgi_progress_consider(fgi_solver *solver, fgi_progress *p, const int32_t *labels) {
    double score = fgi_sum_value(&p->decoded), best = solver->info.score;
    if (score == -INFINITY || score == p->last_decoded) return;
    p->last_decoded = score;
    if (best == -INFINITY || score > best - 1e-9 * fgi_larger(fabs(best), solver->info.unit))
        fgi_solver_consider(solver, labels);
}

void fgi_progress_report(fgi_solver *solver, fgi_progress *p) {
    double value = fgi_sum_value(&p->bound);
    fgi_solver_bound(solver, fgi_safe_bound(solver->model, value, p->magnitude + p->model_magnitude));
    if (fgi_solver_done(solver) || solver->info.iterations - p->stall_begin < STALL_ITERATIONS) return;
    double gain = p->stall_bound - value;
    p->stall_bound = value;
    p->stall_begin = solver->info.iterations;
    if (gain < STALL_GAIN * STALL_ITERATIONS * fgi_larger(fabs(value), solver->info.unit))
        solver->info.status = FGI_CONVERGED;
}

void fgi_progress_restart(fgi_solver *solver, fgi_progress *p) {
    p->stall_bound = INFINITY;
    p->stall_begin = solver->info.iterations;
    if (solver->info.status == FGI_CONVERGED) solver->info.status = FGI_RUNNING;
}
