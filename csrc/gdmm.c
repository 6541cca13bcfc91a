/* gdmm.c - the greedy direction method of multipliers for MAP, Algorithm 8 of the thesis (section 3.2). One iteration is
 *
 *     1. every factor: the oracle's state joins A_f, y_f is optimised on A_f          gdmm_factor.c
 *     2. every variable: x_i by projection, then mu_if += rho (M_if y_f - x_i)        gdmm_variable.c
 *
 * and, now and then, the certificate D(mu) (bound.c) and a labeling (gdmm_decode.c). The penalty follows the residuals.
 * Stages are walked in pieces of a millisecond or so: a run can pause anywhere and goes on where it was, and what it
 * computes depends neither on the pauses nor on the number of threads. */
#include <string.h>
#include "gdmm.h"

static const double CONVERGED = 1e-6;   /* both residuals */
static const int64_t BOUND_EVERY = 8;   /* iterations: the certificate costs about as much as one */
static const double RHO_STEP = 1.5;

static fgi_rc gdmm_create(fgi_solver *solver, fgi_error *err) {
    gdmm *g = fgi_calloc(1, sizeof *g);
    solver->state = g;
    if (!g) return fgi_fail(err, FGI_NO_MEMORY, -1, "out of memory");
    g->solver = solver;
    g->model = solver->model;
    g->relaxation = 1.5;
    g->last_bound = INFINITY;
    g->decode_gap = 1;
    fgi_rc rc = gdmm_allocate(g, err);
    if (!rc && !(g->propagation = gdmm_propagation_create(g))) rc = fgi_fail(err, FGI_NO_MEMORY, -1, "out of memory");
    return rc;
}

static void gdmm_destroy(fgi_solver *solver) { gdmm_release(solver->state); }

/* ---- stages ------------------------------------------------------------------------------------------------- */

/* Runs the next piece of a pass over n indices; returns 1 when the pass is complete. */
static int advance(gdmm *g, int64_t n, int64_t block, int64_t piece, fgi_body body, double *seconds) {
    double start = fgi_clock();
    int64_t left = n - g->cursor, take = left < piece ? left : piece;
    /* The body sees absolute indices: pieces are whole blocks. */
    struct { fgi_body body; gdmm *g; int64_t offset; } *unused = NULL;
    (void)unused;
    g->pass_body = body;
    g->pass_offset = g->cursor;
    fgi_pool_run(g->solver->pool, take, block, gdmm_shifted_pass, g);
    g->cursor += take;
    *seconds += fgi_clock() - start;
    if (g->cursor < n) return 0;
    g->cursor = 0;
    return 1;
}
