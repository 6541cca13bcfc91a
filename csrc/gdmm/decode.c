/* gdmm/decode.c - labelings. From the iterates: round, then climb (primal/labeling.h). Where that is not enough,
 * because the relaxation is not tight or hard constraints are in the way, a primal search (primal/search.c) works on
 * the side, fed with the roundings. Work is measured in operations, so that when and how long these run does not depend
 * on the clock. While iterations go on, both do so beside them (gdmm/beside.c). */
#include <string.h>
#include "gdmm/gdmm.h"

static const double PIECE_RATE = 2e8; /* operations of an ascent in a second, or so: between two looks at the clock */
/* Work of the search per work of the passes: a fourth of all, so that at worst the bound comes a third later. */
static const double SEARCH_SHARE = 0.33;
/* Iterations on large domains before the search begins: those whose relaxation is tight mostly end before (decision
 * 0016). */
static const int64_t SEARCH_AFTER = 100;
/* After convergence nothing else is left to do, and the search goes on for as long as one of these says (chosen). */
static const double SEARCH_PASSES = 1e4;     /* passes' worth of operations without an improvement */
static const double SEARCH_PATIENCE = 1.5e9; /* operations without one, at most */

/* ---- rounding ----------------------------------------------------------------------------------------------- */

/* Due when the rounding has changed, at geometrically spaced iterations and whenever less than a fifth of the work has
 * gone into labelings; and once more before the end. */
int gdmm_decode_due(gdmm *g) {
    int64_t t = gdmm_steps(g);
    if (t < g->next_decode && 4 * fgi_labeling_operations(g->local) > g->work) return 0;
    if (memcmp(g->rounded, g->labels, (size_t)g->model->s->n_vars * sizeof *g->labels) == 0) return 0;
    if (t >= g->next_decode) g->next_decode = t + t / 4 + 1;
    return 1;
}

static void take_labels(gdmm *g, const int32_t *labels) {
    memcpy(g->labels, labels, (size_t)g->model->s->n_vars * sizeof *g->labels);
}

void gdmm_take_rounding(gdmm *g) { take_labels(g, g->rounded); }

void gdmm_begin_climb(gdmm *g) { fgi_labeling_assign(g->local, g->labels); }

int gdmm_climb(gdmm *g, double seconds) { return fgi_labeling_ascend(g->local, (int64_t)(PIECE_RATE * seconds)); }

void gdmm_end_climb(gdmm *g) {
    const int moved =
        memcmp(fgi_labeling_labels(g->local), g->labels, (size_t)g->model->s->n_vars * sizeof *g->labels) != 0;
    g->solver->finder = g->sweep && !g->swept ? FGI_FOUND_BY_SWEEP : moved ? FGI_FOUND_BY_LOCAL : FGI_FOUND_BY_ROUNDING;
    if (fgi_labeling_violations(g->local) == 0) fgi_solver_consider(g->solver, fgi_labeling_labels(g->local));
}

int gdmm_decode_step(gdmm *g) {
    if (g->cursor == 0) {
        take_labels(g, g->offered ? g->solver->best : g->rounded);
        g->offered = 0;
        const int first =
            g->sweep && gdmm_steps(g) == 0; /* better ones are near: climbing may cost more than a sweep */
        if (g->solver->settings.search == FGI_OFF || first) {
            g->solver->finder = g->sweep && !g->swept ? FGI_FOUND_BY_SWEEP : FGI_FOUND_BY_ROUNDING;
            fgi_solver_consider(g->solver, g->labels);
            return 1;
        }
        gdmm_begin_climb(g);
        g->cursor = 1;
    }
    if (!gdmm_climb(g, 1e-3)) return 0;
    gdmm_end_climb(g);
    return 1;
}

/* ---- search ------------------------------------------------------------------------------------------------- */

static double search_work(const gdmm *g) { return g->search ? (double)g->search->info.entries_touched : 0; }

int gdmm_search_due(const gdmm *g) {
    const fgi_info *info = &g->solver->info;
    if (g->model->s->n_vars == 0 || g->solver->settings.search == FGI_OFF) return 0;
    if (g->search && g->search->info.status != FGI_RUNNING) return 0; /* it has nothing more to try */
    if (g->converged)
        return search_work(g) < fmin(SEARCH_PATIENCE, SEARCH_PASSES * (double)g->pass_work) + 3 * g->search_improved;
    if (info->score > -INFINITY) { /* there is a labeling, and perhaps it needs no search */
        if (g->sweep && !g->swept) return 0;
        if (!g->sweep && gdmm_steps(g) < SEARCH_AFTER) return 0;
    }
    return search_work(g) < gdmm_search_share(g);
}

double gdmm_search_share(const gdmm *g) { return SEARCH_SHARE * (double)g->work; }

static fgi_rc create_search(gdmm *g) {
    const fgi_settings *own = &g->solver->settings;
    fgi_settings settings = fgi_settings_default();
    settings.method = FGI_SEARCH;
    settings.seed = own->seed;
    settings.gap = own->gap;
    settings.cutoff = own->cutoff;
    settings.start_time = own->start_time;
    fgi_rc rc = fgi_solver_create(g->model, &settings, &g->search, NULL);
    if (!rc && g->solver->info.score > -INFINITY) rc = fgi_solver_offer(g->search, g->solver->best, NULL);
    return rc;
}

/* From the best labeling known. */
fgi_rc gdmm_begin_search(gdmm *g) {
    const fgi_rc rc = g->search ? FGI_OK : create_search(g);
    if (rc || !(g->solver->info.score > g->search->info.score)) return rc;
    return fgi_solver_offer(g->search, g->solver->best, NULL);
}

void gdmm_end_search(gdmm *g) {
    fgi_solver *outer = g->solver;
    fgi_solver_bound(outer, g->search->info.bound);
    outer->finder = FGI_FOUND_BY_SEARCH;
    if (g->search->info.score > outer->info.score && fgi_solver_consider(outer, g->search->best))
        g->search_improved = search_work(g);
}

/* A piece of one move of the search; returns 1 when the move is complete. */
int gdmm_search_step(gdmm *g) {
    fgi_rc rc = g->cursor == 0 ? gdmm_begin_search(g) : FGI_OK;
    const int64_t moves = rc ? 0 : g->search->info.iterations;
    if (g->cursor == 0 && !rc) fgi_solver_pause_at(g->search, INT64_MAX);
    g->cursor = 1;
    if (!rc) rc = fgi_solver_run(g->search, 0.001, 1, NULL);
    if (rc) {
        g->solver->failure = rc;
        return 1;
    }
    fgi_solver_bound(g->solver, g->search->info.bound);
    if (g->search->info.iterations == moves && g->search->info.status == FGI_RUNNING) return 0;
    gdmm_end_search(g);
    return 1;
}
