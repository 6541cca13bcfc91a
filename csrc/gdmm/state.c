/* gdmm/state.c - the dual and primal state of Algorithm 8 for callers: messages out and in, marginals, new potentials.
 */
#include <string.h>
#include "model/marginal.h"
#include "gdmm/gdmm.h"

int64_t gdmm_message_size(const fgi_solver *solver) { return fgi_dual_message_size(solver->model); }

/* A label that propagation removed is given message 0: its own reasons are no multiplier that others could use. */
static double exported(double mu) { return GDMM_IS_FORBIDDEN(mu) || mu == -INFINITY ? 0 : mu; }

/* Otherwise the slots do. */
static int sweeps_hold_messages(const gdmm *g) { return gdmm_is_sweeping(g) && g->stage > GDMM_PREPARE; }

fgi_rc gdmm_messages(const fgi_solver *solver, double *mu) {
    const gdmm *g = solver->state;
    const fgi_structure *st = g->model->s;
    const int64_t size = gdmm_message_size(solver);
    if (sweeps_hold_messages(g)) {
        const double *swept = gdmm_sweep_messages(g->sweep);
        for (int64_t k = 0; k < size; k++) mu[k] = exported(swept[k]);
        return FGI_OK;
    }
    memset(mu, 0, (size_t)size * sizeof *mu);
    for (int64_t s = 0; s < g->n_slots; mu += st->cards[st->vars[s]], s++)
        for (int32_t e = 0; e < g->slots[s].n; e++) mu[g->slots[s].labels[e]] = exported(g->slots[s].mu[e]);
    return FGI_OK;
}

/* x_i is what the slots of i hold. Before the first iteration, and without factors, the rounding stands in for it. */
int gdmm_marginals(const fgi_solver *solver, double *x) {
    const gdmm *g = solver->state;
    const fgi_structure *s = g->model->s;
    for (int64_t i = 0; i < s->n_vars; i++) {
        double *at = x + s->unary_begin[i], sum = 0;
        memset(at, 0, (size_t)s->cards[i] * sizeof *at);
        if (gdmm_degree(g, i) > 0 && g->stage > GDMM_PREPARE) {
            const gdmm_slot *slot = &g->slots[g->adj_slot[s->adj_begin[i]]];
            for (int32_t e = 0; e < slot->n; e++) {
                at[slot->labels[e]] = slot->x[e];
                sum += slot->x[e];
            }
        }
        if (!(sum > 0)) at[solver->info.score > -INFINITY ? solver->best[i] : g->rounded[i]] = 1;
    }
    return 1;
}

/* Messages wait until the set-up is complete, since it decides which labels are left. */
fgi_rc gdmm_apply_messages(gdmm *g) {
    const fgi_structure *st = g->model->s;
    const double *mu = g->given;
    for (int64_t s = 0; s < g->n_slots; mu += st->cards[st->vars[s]], s++) {
        gdmm_slot *slot = &g->slots[s];
        for (int32_t a = 0; a < st->cards[st->vars[s]]; a++) {
            int32_t e = mu[a] == 0 ? gdmm_slot_find(slot, a) : gdmm_slot_at(slot, a);
            if (e < 0 && mu[a] != 0) return FGI_NO_MEMORY;
            if (e >= 0 && !GDMM_IS_FORBIDDEN(slot->mu[e])) slot->mu[e] = mu[a];
        }
    }
    free(g->given);
    g->given = NULL;
    return FGI_OK;
}

/* x at the best labeling known: with multipliers that are any good, the first steps should not pull them away from it.
 */
fgi_rc gdmm_start_from_labels(gdmm *g) {
    const int32_t *labels = g->solver->info.score > -INFINITY ? g->solver->best : g->rounded;
    for (int64_t s = 0; s < g->n_slots; s++) {
        int32_t e = gdmm_slot_at(&g->slots[s], labels[g->model->s->vars[s]]);
        if (e < 0) return FGI_NO_MEMORY;
        g->slots[s].x[e] = 1;
    }
    return FGI_OK;
}

fgi_rc gdmm_warm_start(fgi_solver *solver, const double *mu, fgi_error *err) {
    gdmm *g = solver->state;
    const int64_t n = gdmm_message_size(solver);
    fgi_rc rc = fgi_check_multipliers(mu, n, err);
    if (rc) return rc;
    for (int64_t k = 0; k < n; k++) /* they would be taken for those of forbidden labels */
        if (!(fabs(mu[k]) <= GDMM_LARGEST))
            return fgi_fail(err, FGI_BAD_ARGUMENT, k, "message entry %lld is too large", (long long)k);
    double *given = fgi_copy(mu, n, sizeof *mu);
    if (!given) return fgi_no_memory(err);
    free(g->given);
    g->given = given;
    if (g->stage > GDMM_PREPARE || g->sweep) gdmm_restart(g);
    return FGI_OK;
}

void gdmm_offered(fgi_solver *solver) { ((gdmm *)solver->state)->offered = 1; }

/* New potentials, same structure: what depends on them is made again by the set-up; the multipliers and the penalty
 * stay. */
fgi_rc gdmm_update(fgi_solver *solver) {
    gdmm *g = solver->state;
    const fgi_structure *st = solver->model->s;
    gdmm_sweep_rest(g->sweep);
    if (!gdmm_in_range(solver->model, solver->pool)) return FGI_UNSUPPORTED;
    if (g->model->t != solver->model->t) gdmm_tables_reset(g);
    g->model = solver->model;
    memcpy(g->theta, g->model->u->values, (size_t)st->unary_begin[st->n_vars] * sizeof(double));
    if (sweeps_hold_messages(g)) gdmm_sweep_store(g, g->sweep);
    for (int64_t s = 0; s < g->n_slots; s++)
        for (int32_t e = 0; e < g->slots[s].n; e++) g->slots[s].mu[e] = exported(g->slots[s].mu[e]);
    memset(g->is_pair, 0, (size_t)st->n_factors);
    gdmm_propagation_free(g->propagation);
    g->propagation = gdmm_propagation_create(g);
    if (!g->propagation) return FGI_NO_MEMORY;
    gdmm_restart(g);
    g->stage = GDMM_PROPAGATE;
    g->warm = 1;
    return FGI_OK;
}
