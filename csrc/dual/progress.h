/* dual/progress.h - what a message-passing sweep adds up: its bound, its decoded labeling, and whether it still gets
 * anywhere. */
#ifndef FGI_PROGRESS_H
#define FGI_PROGRESS_H
#include "model/marginal.h"
#include "solver.h"

/* What a sweep adds up, and what is remembered between sweeps. */
typedef struct fgi_progress {
    fgi_sum bound;    /* bound of the sweep under way: maxima taken out of nodes and factors */
    double magnitude; /* their absolute values, and those of the potentials */
    double model_magnitude;
    fgi_sum decoded; /* score of the labeling under way */
    double last_decoded;
    double stall_bound; /* bound at the start of the window in which progress is judged */
    int64_t stall_begin;
} fgi_progress;

void fgi_progress_init(fgi_progress *p);
/* Starts a sweep. */
void fgi_progress_begin(fgi_progress *p, double constant);
static inline void fgi_progress_take(fgi_progress *p, double top) {
    fgi_sum_add(&p->bound, top);
    p->magnitude += fabs(top);
}
/* Hands a decoded labeling to fgi_solver_consider, unless the sum made on the way shows that it is no better than the
 * best or the same as the last one. */
void fgi_progress_consider(fgi_solver *solver, fgi_progress *p, const int32_t *labels);
/* The bound of the sweep just finished goes to the solver, and so does the news that there is none to gain any more:
 * less than 1e-11 per iteration, relative to max(|bound|, u), over 20 iterations. */
void fgi_progress_report(fgi_solver *solver, fgi_progress *p);

/* After a warm start: judge progress anew, and go on if the method had stopped. */
void fgi_progress_restart(fgi_solver *solver, fgi_progress *p);

#endif
