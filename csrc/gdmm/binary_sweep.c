/* gdmm/binary_sweep.c - where Algorithm 9 crawls, sequential message passing over all factors goes on from its
 * multipliers. */
#include <string.h>
#include "model/marginal.h"
#include "gdmm/binary.h"

/* Where more than this part of the factors is touched, and the bound has gained less than this part of the gap in a
 * window of certificates, sequential message passing over all factors goes on from the multipliers: its sweeps still
 * gain where the iterations crawl (bench/binary.py, 0.05 to 5 % positive pairs). */
static const double MOST_TOUCHED = 0.05, WINDOW_GAIN = 0.02;
enum { WINDOW = 5 };
/* Where most of all factors take part an iteration costs more than a sweep, and the window is shorter. 500 variables,
 * 5 % positive, negatives of .03 and .1, one second: 1490.0879 and 1490.0878; with the long window 1490.3552 and
 * 1490.0879, by trws 1490.0891 and 1490.2121. */
static const double MOST_OF_ALL = 0.5;
enum { SHORT_WINDOW = 2 };
static const double SWEEP_SLICE = 0.005; /* seconds between two looks at the clock */

/* Is it time for sweeps over all factors? Asked once after every certificate. */
int binary_is_stuck(const fgi_solver *solver, binary *b) {
    const int64_t t = solver->info.iterations;
    if (solver->settings.sweep == FGI_OFF || (t > 1 && t < BINARY_BOUND_EVERY)) return 0;
    if (b->window++ == 0) b->window_bound = b->last_bound;
    const double touched = (double)b->n_links / (double)b->model->s->n_factors;
    if (b->window <= (touched > MOST_OF_ALL ? SHORT_WINDOW : WINDOW)) return 0;
    const double gained = b->window_bound - b->last_bound;
    b->window = 0;
    return touched > MOST_TOUCHED && gained < WINDOW_GAIN * (solver->info.bound - solver->info.score);
}

/* Our multipliers for every label of every factor: what is not active has its charge. */
static double *all_messages(const binary *b) {
    const fgi_structure *st = b->model->s;
    double *mu = fgi_calloc(4 * st->n_factors, sizeof *mu);
    for (int64_t f = 0; mu && f < st->n_factors; f++) {
        const fgi_view v = fgi_factor_view(b->model, f);
        const double t00 = fgi_view_at2(&v, 0, 0), t = binary_interaction(&v), half = t > 0 ? 0.5 * t : 0;
        mu[4 * f + 1] = fgi_view_at2(&v, 1, 0) - t00 + half;
        mu[4 * f + 3] = fgi_view_at2(&v, 0, 1) - t00 + half;
    }
    for (int64_t k = 0; mu && k < b->n_links; k++) {
        const binary_link *l = &b->links[k];
        const double half = l->t > 0 ? 0.5 * l->t : 0;
        mu[4 * l->factor + 1] += l->lambda[0] - half;
        mu[4 * l->factor + 3] += l->lambda[1] - half;
    }
    return mu;
}

/* A piece of the other method's work; its labelings and bounds are ours. */
fgi_rc binary_sweep(fgi_solver *solver, binary *b) {
    fgi_info *info = &solver->info;
    fgi_rc rc = FGI_OK;
    if (!b->sweep) {
        fgi_settings settings = solver->settings;
        settings.method = FGI_TRWS;
        settings.max_iterations = -1;
        rc = fgi_solver_create(solver->model, &settings, &b->sweep, NULL);
        double *mu = rc ? NULL : all_messages(b);
        if (!rc) rc = mu ? fgi_solver_warm_start(b->sweep, mu, NULL) : FGI_NO_MEMORY;
        free(mu);
        if (!rc && info->score > -INFINITY) rc = fgi_solver_offer(b->sweep, solver->best, NULL);
    }
    fgi_info seen;
    if (!rc) rc = fgi_solver_run(b->sweep, SWEEP_SLICE, 1, &seen);
    if (rc) return rc;
    info->sweeps = seen.iterations;
    info->sweep_entries = seen.entries_touched;
    info->entries_touched = b->n_links + info->sweep_entries;
    solver->finder = FGI_FOUND_BY_SWEEP;
    if (seen.score > info->score) fgi_solver_consider(solver, b->sweep->best);
    fgi_solver_bound(solver, seen.bound);
    if (seen.status == FGI_CONVERGED) info->status = FGI_CONVERGED;
    return FGI_OK;
}
