/* gdmm/gdmm.c - the greedy direction method of multipliers for MAP, docs/mathematics.md, section 3 (Algorithm 8 of Yan
 * 2018). One iteration is
 *
 *     1. every factor: the oracle's state joins A_f, y_f is optimised on A_f          gdmm/factor.c
 *        (while labelings are looked for beside it                                    gdmm/beside.c)
 *     2. every variable: x_i by projection, then mu_if += rho (M_if y_f - x_i)        gdmm/variable.c
 *
 * and, now and then, the certificate D(mu) (gdmm/certificate.c) and a labeling (gdmm/decode.c). The penalty follows the
 * residuals. Stages are walked in pieces of a millisecond or so: a run can pause anywhere and goes on where it was, and
 * what it computes depends neither on the pauses nor on the number of threads. */
#include <string.h>
#include "gdmm/gdmm.h"

/* Iterations: the certificate costs about as much as one, so that this spends a ninth of the time on it. Every 4 sees
 * the bound up to 4 iterations sooner, every 16 up to 8 later, as is to be expected. */
static const int64_t BOUND_EVERY = 8;
static const int64_t SWEEP_WINDOW = 10; /* sweeps that are looked at together */
/* Sweeps go on while a window gains this part of what sweeps have gained before, or of the gap (decision 0016). */
static const double SWEEP_GAIN = 0.01;
/* Residual balancing (Boyd et al. 2011; decision 0016). */
static const double RHO_STEP = 1.5;   /* rho changes by this factor */
static const double RHO_BALANCE = 10; /* the ratio of the residuals that is aimed at */
static const double RHO_SLACK = 5;    /* rho stays where the ratio is within this factor of it */

/* Sweeps stand still: this part of the bound in a window of them. Chosen: above its rounding, and below what anybody
 * would wait for. */
static const double SWEEPS_STANDSTILL = 1e-9;

/* Algorithm 9 for so many binary factors that a pass over all of them is to be avoided: from a millisecond on. */
static const int64_t MANY_FACTORS = 100000;
/* Factors per variable from which the binary formulation is taken. Its bounds lead on sparse graphs, too, but it has
 * no search, no messages to start from and one thread, so the lead must be large (decision 0016). */
static const int64_t MANY_EACH = 20;

/* Operations of a pass, from which on labelings are looked for beside the sweep that comes next, and are known at its
 * end: a fraction of a millisecond, for which threads are not woken. Where a sweep takes less one sees them sooner. */
static const int64_t WORTH_BESIDE = 300000;

/* Algorithm 8 as printed: what steers beyond it is off, so settings that ask for that are contradictions. */
static fgi_rc choose_variant(fgi_solver *solver, fgi_error *err) {
    fgi_settings *settings = &solver->settings;
    if (settings->variant != FGI_VARIANT_PUBLISHED) return FGI_OK;
    if (settings->formulation == FGI_FORMULATION_BINARY)
        return fgi_fail(err, FGI_BAD_ARGUMENT, -1,
            "variant published is Algorithm 8: it goes with formulation tables, not with binary");
    if (settings->access == FGI_ACCESS_DENSE || settings->sweep == FGI_ON || settings->search == FGI_ON)
        return fgi_fail(err, FGI_BAD_ARGUMENT, -1,
            "variant published has sorted lists and neither sweeps nor a search: leave out access dense, sweep on and "
            "search on");
    settings->formulation = FGI_FORMULATION_TABLES;
    settings->access = FGI_ACCESS_SORTED;
    settings->sweep = settings->search = FGI_OFF;
    return FGI_OK;
}

static fgi_rc gdmm_create(fgi_solver *solver, fgi_error *err) {
    const fgi_rc refused = choose_variant(solver, err);
    if (refused) return refused;
    const int32_t formulation = solver->settings.formulation;
    if (formulation == FGI_FORMULATION_BINARY ||
        (formulation == FGI_FORMULATION_AUTO && solver->model->s->n_factors >= MANY_FACTORS &&
            solver->model->s->n_factors >= MANY_EACH * solver->model->s->n_vars)) {
        if (gdmm_binary_fits(solver->model)) {
            solver->ops = &fgi_gdmm_binary_ops;
            return solver->ops->create(solver, err);
        }
        if (formulation == FGI_FORMULATION_BINARY)
            return fgi_fail(err, FGI_UNSUPPORTED, -1,
                "the binary formulation takes binary variables and finite pairwise factors only");
    }
    if (!gdmm_in_range(solver->model, solver->pool))
        return fgi_fail(err, FGI_UNSUPPORTED, -1,
            "gdmm takes scores whose magnitudes are closer together: at most some 1e150 apart");
    gdmm *g = fgi_calloc(1, sizeof *g);
    solver->state = g;
    if (!g) return fgi_no_memory(err);
    g->solver = solver;
    g->model = solver->model;
    g->kernels = fgi_kernels_get();
    g->published = solver->settings.variant == FGI_VARIANT_PUBLISHED;
    g->relaxation = g->published ? 1 : GDMM_RELAXATION;
    g->eta = solver->settings.eta > 0 ? solver->settings.eta : 1.0;
    g->last_bound = g->sweep_bound = INFINITY;
    fgi_rc rc = gdmm_allocate(g, err);
    if (!rc && !(g->propagation = gdmm_propagation_create(g))) rc = fgi_no_memory(err);
    return rc;
}

static void gdmm_destroy(fgi_solver *solver) { gdmm_release(solver->state); }

/* ---- stages ------------------------------------------------------------------------------------------------- */

typedef struct shifted {
    gdmm *g;
    fgi_body body;
    int64_t offset;
} shifted;

static void run_shifted(void *context, int64_t begin, int64_t end, int worker) {
    shifted *moved = context;
    moved->body(moved->g, moved->offset + begin, moved->offset + end, worker);
}

int gdmm_advance(gdmm *g, int64_t n, int64_t block, int64_t piece, fgi_body body, double *seconds) {
    double start = fgi_clock();
    if (g->solver->pool) piece *= GDMM_LONGER;
    int64_t left = n - g->cursor, take = left < piece ? left : piece;
    shifted context = {g, body, g->cursor};
    fgi_pool_run(g->solver->pool, take, block, run_shifted, &context);
    g->cursor += take;
    *seconds += fgi_clock() - start;
    if (g->cursor < n) return 0;
    g->cursor = 0;
    return 1;
}

static void enter(gdmm *g, gdmm_stage stage) {
    g->stage = stage;
    g->cursor = 0;
    g->is_loaded = 0;
}

/* Residual balancing: the ratio of the primal residual and the dual one (relative to the range of the scores) stays
 * near RHO_BALANCE. Ever rarer, since each change sets the convergence back a little. Zero residuals leave the penalty
 * alone: early on they mean that it is too large for anything to move, not convergence, and the multipliers go on
 * growing. */
double gdmm_balanced(double rho, double primal, double dual) {
    if (primal > RHO_BALANCE * RHO_SLACK * dual && dual > 0) return rho * RHO_STEP;
    return dual * RHO_BALANCE > RHO_SLACK * primal ? rho / RHO_STEP : rho;
}

static void adapt_penalty(gdmm *g) {
    int64_t t = gdmm_steps(g);
    if (t < g->next_adapt || g->published) return;
    g->next_adapt = t + GDMM_ADAPT_EVERY + t / 20;
    g->rho = fgi_solver_rho(g->solver, gdmm_balanced(g->rho, g->primal, g->dual));
}

static void finish_iteration(gdmm *g) {
    const fgi_structure *s = g->model->s;
    fgi_info *info = &g->solver->info;
    double primal = 0, dual = 0, edges = g->n_slots > 0 ? (double)g->n_slots : 1;
    for (int64_t b = 0; b < (s->n_vars + GDMM_BLOCK - 1) / GDMM_BLOCK; b++) {
        primal += g->partial[2 * b];
        dual += g->partial[2 * b + 1];
    }
    g->primal = sqrt(primal / edges);
    g->dual = g->rho * sqrt(dual / edges) / g->scale;
    info->iterations++;
    g->work += g->pass_work;
    info->primal_infeasibility = g->primal;
    info->dual_infeasibility = g->dual;
    info->rho = g->rho;
    adapt_penalty(g);
}

static void collect_statistics(gdmm *g) {
    fgi_info *info = &g->solver->info;
    int64_t active = 0, calls = 0, touched = 0, scans = 0, closed = 0;
    for (int64_t f = 0; f < g->model->s->n_factors; f++) active += g->is_pair[f] ? 4 : g->active[f].n;
    for (int k = 0; k < g->n_workers; k++) {
        const fgi_oracle_work work = fgi_oracle_scratch_work(g->workers[k].oracle);
        calls += work.calls;
        touched += work.touched;
        scans += work.scans;
        closed += g->workers[k].closed_forms;
    }
    info->active_per_factor = g->model->s->n_factors ? (double)active / (double)g->model->s->n_factors : 0;
    info->oracle_calls = calls;
    info->sweep_entries = g->sweep_entries + gdmm_tables_copied(g);
    info->entries_touched = touched + info->sweep_entries;
    info->scans = scans;
    info->closed_forms = closed;
    info->local_operations = g->local ? fgi_labeling_operations(g->local) : 0;
    info->search_operations = g->search ? g->search->info.entries_touched : 0;
}

/* What comes after a complete stage: certificate, labeling and search when they are due, else the next iteration. */
static gdmm_stage next_stage(gdmm *g) {
    int64_t t = gdmm_steps(g);
    if (g->stage == GDMM_PREPARE && !g->sweep) return GDMM_BOUND;
    if (g->stage == GDMM_VARIABLES && t >= g->next_bound) {
        g->next_bound = t + BOUND_EVERY;
        return GDMM_BOUND;
    }
    const int iterates = t > 0 && !gdmm_is_sweeping(g) && !g->converged; /* a factor pass comes next in any case */
    if (g->stage < GDMM_DECODE && (t == 0 || g->offered || g->converged || gdmm_decode_due(g))) {
        const int goes_on = iterates ||
            (t > 0 && g->stage == GDMM_SWEEP && g->solver->info.score > -INFINITY && g->pass_work >= WORTH_BESIDE);
        if (!goes_on || g->offered || g->solver->settings.search == FGI_OFF) return GDMM_DECODE;
        gdmm_climb_beside(g);
    }
    if (gdmm_search_due(g)) {
        if (!iterates || g->solver->info.score == -INFINITY) return GDMM_SEARCH;
        gdmm_search_beside(g);
    }
    if (g->converged) g->solver->info.status = FGI_CONVERGED;
    if (t == 0 && !g->sweep && (g->warm || g->published)) g->solver->failure = gdmm_start_from_labels(g);
    return gdmm_is_sweeping(g) ? GDMM_SWEEP : GDMM_FACTORS;
}

static void take_bound(gdmm *g, double bound) {
    fgi_info *info = &g->solver->info;
    const int stalled = gdmm_stands_still(g->last_bound, bound, info->unit);
    fgi_solver_bound(g->solver, bound);
    g->last_bound = bound;
    /* Residuals vanish in the first iterations after a start from labels, too: that is no convergence. */
    if (g->primal < GDMM_CONVERGED && g->dual < GDMM_CONVERGED && stalled &&
        gdmm_steps(g) - g->swept_at > 2 * BOUND_EVERY)
        g->converged = 1;
}

/* The first phase, on models whose tables can be read whole: sweeps of dual coordinate ascent, for as long as they
 * gain a fair part of what there is to gain. Then their multipliers are where Algorithm 8 starts. */
static gdmm_stage after_sweep(gdmm *g, double bound) {
    fgi_info *info = &g->solver->info;
    fgi_solver_bound(g->solver, bound);
    g->work += g->pass_work;
    memcpy(g->rounded, gdmm_sweep_labels(g->sweep), (size_t)g->model->s->n_vars * sizeof *g->rounded);
    if (!gdmm_sweep_forward(g->sweep)) return next_stage(g); /* the backward half is next */
    info->sweeps++;
    if (info->sweeps == 1) g->sweep_first = g->sweep_bound = bound;
    if (info->sweeps % SWEEP_WINDOW != 0) return GDMM_SWEEP;
    double gained = g->sweep_bound - bound, gap = info->score > -INFINITY ? bound - info->score : INFINITY;
    g->sweep_bound = bound;
    const double least = SWEEPS_STANDSTILL * (fabs(bound) + info->unit);
    if (gained >= SWEEP_GAIN * fmin(gap, g->sweep_first - bound) && gained > least) return GDMM_SWEEP;
    g->swept = 1;
    g->swept_at = gdmm_steps(g);
    if (g->sweeps_only) { /* the search joins, and they go on */
        g->converged = !(gained > least);
        return next_stage(g);
    }
    gdmm_sweep_store(g, g->sweep);
    g->solver->failure = gdmm_start_from_labels(g);
    return GDMM_FACTORS;
}

static fgi_rc worker_failure(const gdmm *g) {
    for (int k = 0; k < g->n_workers; k++)
        if (g->workers[k].rc) return g->workers[k].rc;
    return g->solver->failure;
}

static void propagate(gdmm *g) {
    const int done = gdmm_propagate_step(g, g->propagation);
    if (done < 0) fgi_solver_bound(g->solver, -INFINITY);
    if (done <= 0) return;
    gdmm_propagation_free(g->propagation);
    g->propagation = NULL;
    enter(g, GDMM_PREPARE);
}

/* The certificate where tables can be read whole: a sweep from the multipliers, both ways. */
static void bound_by_sweep(gdmm *g, double start) {
    fgi_info *info = &g->solver->info;
    double bound;
    if (!g->is_loaded) {
        g->is_loaded = gdmm_sweep_load_step(g, &info->seconds_bound);
        return;
    }
    const int done = gdmm_sweep_step(g, g->sweep, &bound);
    info->seconds_bound += fgi_clock() - start;
    if (done < 0) fgi_solver_bound(g->solver, -INFINITY);
    if (done <= 0) return;
    take_bound(g, bound);
    if (gdmm_sweep_forward(g->sweep)) enter(g, next_stage(g));
}

static void factors_piece(gdmm *g) {
    if (gdmm_factors_step(g)) {
        g->stage = GDMM_VARIABLES;
        gdmm_end_beside(g);
    }
    for (int k = 0; k < g->n_workers; k++)
        if (g->workers[k].infeasible) fgi_solver_bound(g->solver, -INFINITY);
}

/* One piece of the current stage. */
static void step(gdmm *g) {
    const fgi_structure *s = g->model->s;
    fgi_info *info = &g->solver->info;
    double start = fgi_clock(), bound;
    int done;
    switch (g->stage) {
    case GDMM_PROPAGATE:
        propagate(g);
        info->seconds_setup += fgi_clock() - start;
        return;
    case GDMM_PREPARE:
        if (gdmm_prepare_step(g)) enter(g, next_stage(g));
        info->seconds_setup += fgi_clock() - start;
        return;
    case GDMM_SWEEP:
        start += info->seconds_decode;
        done = gdmm_sweep_step(g, g->sweep, &bound);
        if (done < 0) fgi_solver_bound(g->solver, -INFINITY);
        info->seconds_bound += fgi_clock() - start + info->seconds_decode;
        if (done > 0) {
            gdmm_end_beside(g);
            enter(g, after_sweep(g, bound));
        }
        return;
    case GDMM_FACTORS: factors_piece(g); return;
    case GDMM_VARIABLES:
        if (gdmm_advance(g, s->n_vars, GDMM_BLOCK, g->piece, gdmm_variable_pass, &info->seconds_update)) {
            finish_iteration(g);
            enter(g, next_stage(g));
        }
        return;
    case GDMM_BOUND:
        if (g->sweep) bound_by_sweep(g, start);
        else if (gdmm_advance(g, gdmm_bound_size(g), 1, g->piece / GDMM_BLOCK, gdmm_bound_pass, &info->seconds_bound)) {
            take_bound(g, gdmm_bound_value(g));
            if (g->trial && !fgi_solver_done(g->solver) && !gdmm_trial_goes_on(g)) gdmm_end_trial(g);
            else enter(g, next_stage(g));
        }
        return;
    case GDMM_DECODE:
        if (gdmm_decode_step(g)) enter(g, next_stage(g));
        info->seconds_decode += fgi_clock() - start;
        return;
    case GDMM_SEARCH:
        if (gdmm_search_step(g)) enter(g, next_stage(g));
        info->seconds_decode += fgi_clock() - start;
        return;
    }
}

static fgi_rc gdmm_run(fgi_solver *solver, double deadline, int64_t iteration_limit) {
    gdmm *g = solver->state;
    fgi_rc rc = FGI_OK;
    g->deadline = deadline;
    do {
        step(g);
        rc = worker_failure(g);
    } while (!rc && !fgi_solver_done(solver) && gdmm_steps(g) < iteration_limit && fgi_clock() < deadline);
    if (g->stage > GDMM_PREPARE) collect_statistics(g);
    return rc;
}

const fgi_solver_ops fgi_gdmm_ops = {.name = "gdmm",
    .create = gdmm_create,
    .run = gdmm_run,
    .destroy = gdmm_destroy,
    .offered = gdmm_offered,
    .message_size = gdmm_message_size,
    .messages = gdmm_messages,
    .warm_start = gdmm_warm_start,
    .marginals = gdmm_marginals,
    .update = gdmm_update};
