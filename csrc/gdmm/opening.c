/* gdmm/opening.c - how a run begins on tables whose sweeps cost much, decided by what is counted in its first work:
 *
 *     a look       the bound of every part by itself, and an ascent from the best label of every variable
 *     a trial      where these are nearly level: iterations with sparse messages (Algorithm 8), while each window of
 *                  them takes away a fair part of the gap and all have cost less than a few sweeps
 *     sweeps       else, from the multipliers of the trial if their bound is the better one
 *
 * The look ends runs whose first bound is tight, before anything is sorted or any message has room. On what is loose,
 * sweeps gain more in the same time at every size that was tried (python -m bench gdmm_start), so a trial needs a gap
 * that is small for the scores of the factors. */
#include <string.h>
#include "model/marginal.h"
#include "gdmm/gdmm.h"

static const double ASCENT_WORK = 4; /* operations of an ascent and its first scores, per label of a message */
static const double LOOK_WORTH = 8;  /* a look is worth it where a sweep costs so many times more */
/* No look takes more than this part of a half sweep: the ascent is left where it is then. */
static const double LOOK_SHARE = 0.15;
/* A trial: the gap is at most this part of what the ranges of all factors add up to. */
static const double NEARLY_TIGHT = 0.01;
static const double WINDOW_LEAVES = 0.8; /* a window of iterations must leave at most this part of the gap */
static const double TRIAL_SWEEPS = 4;    /* half sweeps that a trial may cost */
/* An update of a factor with about one active state, in entries of a table read whole: one to two microseconds. */
static const double UPDATE_WORK = 6000;

static double labels_of_messages(const gdmm *g) { return (double)fgi_dual_message_size(g->model); }

int gdmm_is_worth_a_look(const gdmm *g) {
    if (!g->dense || g->solver->settings.search == FGI_OFF || g->model->s->n_factors == 0) return 0;
    const double sweep = (double)g->pass_work - ASCENT_WORK * labels_of_messages(g);
    return sweep >= LOOK_WORTH * ASCENT_WORK * labels_of_messages(g);
}

static void finish_look(gdmm *g) {
    fgi_solver *solver = g->solver;
    solver->finder = FGI_FOUND_BY_LOCAL;
    if (fgi_labeling_violations(g->local) == 0) fgi_solver_consider(solver, fgi_labeling_labels(g->local));
    const double ranges = g->scale * (double)g->model->s->n_factors;
    g->trial = solver->info.score > -INFINITY && solver->info.bound - solver->info.score <= NEARLY_TIGHT * ranges;
    g->trial_gap = solver->info.bound - solver->info.score;
    if (g->trial) g->offered = 1; /* the first labeling of the iterations need not climb again */
    g->dense = !g->trial;
}

/* Returns 1 when the look is over. */
int gdmm_look_step(gdmm *g) {
    enum { PIECE = 200000 }; /* operations between two looks at the clock */
    const fgi_structure *s = g->model->s;
    if (!g->looking) {
        fgi_solver_trivial_bound(g->solver);
        if (g->solver->info.score > -INFINITY)
            memcpy(g->labels, g->solver->best, (size_t)s->n_vars * sizeof *g->labels);
        for (int64_t i = 0; g->solver->info.score == -INFINITY && i < s->n_vars; i++) {
            const double *theta = g->theta + s->unary_begin[i];
            g->labels[i] = 0;
            for (int32_t a = 1; a < s->cards[i]; a++)
                if (theta[a] > theta[g->labels[i]]) g->labels[i] = a;
        }
        fgi_labeling_assign(g->local, g->labels);
        g->looking = 1;
        return 0;
    }
    const double most = LOOK_SHARE * (double)g->pass_work;
    if (!fgi_labeling_ascend(g->local, PIECE) && (double)fgi_labeling_operations(g->local) < most) return 0;
    g->looking = 0;
    finish_look(g);
    return 1;
}

/* After each certificate of the trial: does it go on? */
int gdmm_trial_goes_on(gdmm *g) {
    const fgi_info *info = &g->solver->info;
    const double gap = info->bound - info->score, before = g->trial_gap;
    if (info->iterations == 0) return 1; /* the bound at no messages is known already */
    g->trial_gap = gap;
    const double work = UPDATE_WORK * (double)g->model->s->n_factors * (double)info->iterations;
    return gap <= WINDOW_LEAVES * before && work <= TRIAL_SWEEPS * g->half_sweep;
}

/* The lists of sparse slots go, and the set-up begins again with messages on all labels. */
void gdmm_end_trial(gdmm *g) {
    const int64_t size = gdmm_message_size(g->solver);
    fgi_assert(g->trial && !g->dense && !g->sweep);
    if (g->last_bound <= g->solver->info.bound && size > 0) {
        g->given = fgi_alloc(size, sizeof *g->given);
        if (!g->given) {
            g->solver->failure = FGI_NO_MEMORY;
            return;
        }
        gdmm_messages(g->solver, g->given);
    }
    for (int64_t s = 0; s < g->n_slots; s++) {
        if (g->slots[s].capacity) free(g->slots[s].mu);
        g->slots[s] = (gdmm_slot){0};
    }
    for (int64_t t = 0; t < g->model->s->n_tables; t++) g->order[t] = NULL;
    g->trial = 0;
    g->dense = 1;
    g->has_slots = 0;
    g->numbers = NULL; /* those of small variables are few and stay in the arena */
    g->rho = 0;
    g->primal = g->dual = 0;
    gdmm_restart(g);
}
