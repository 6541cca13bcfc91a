/* exact/sweeps.c - dual ascent on whole-number costs, before soft arc consistency: see exact/costs.h.
 *
 * Reweighted message passing (model/reweight.h) by projections and extensions: at a variable, what its factors cost
 * comes to its labels, what all labels cost goes into `lower`, and the rest is shared out among the factors whose other
 * variables are still to come. Its fixed points are about as good as those of virtual arc consistency (Cooper, de
 * Givry, Sanchez, Schiex, Zytnicki & Werner, "Soft arc consistency revisited", 2010), and whole numbers keep the bound
 * exact. */
#include "exact/costs.h"

/* Decision 0016 has what half and twice of these numbers do. */
enum {
    LOOKED_AT = 4,    /* sweeps over which the gain is measured */
    MOST_SWEEPS = 400 /* in all */
};
static const double LEAST_GAIN = 0.01; /* part of what is left that sweeps have to gain to go on */

/* Does the factor have a variable after i in this direction? */
static int goes_on(const fgi_costs *c, int32_t f, int32_t i, int forward) {
    for (int32_t s = c->slot_begin[f]; s < c->slot_begin[f + 1]; s++)
        if (c->size[c->slot_var[s]] > 1 && (forward ? c->slot_var[s] > i : c->slot_var[s] < i)) return 1;
    return 0;
}

static void share(fgi_costs *c, int32_t i, int forward) {
    int64_t on = 0, all = 0;
    for (int32_t k = fgi_costs_first(c, i); k >= 0; k = fgi_costs_next(c, i, k + 1)) {
        const int32_t f = c->slot_factor[c->adj[k]];
        all++;
        on += goes_on(c, f, i, forward);
    }
    const int64_t parts = on > all - on ? on : all - on;
    for (int64_t q = 0; on && q < c->size[i]; q++)
        c->total[q] = c->unary[c->begin[i] + c->domain[c->begin[i] + q]] / parts;
    for (int32_t k = fgi_costs_first(c, i); on && k >= 0; k = fgi_costs_next(c, i, k + 1)) {
        const int32_t slot = c->adj[k], f = c->slot_factor[slot];
        if (!goes_on(c, f, i, forward)) continue;
        const int64_t limit = FGI_COST_FORBIDDEN / 4 / (c->slot_begin[f + 1] - c->slot_begin[f]);
        for (int64_t q = 0; q < c->size[i]; q++) {
            const int32_t a = c->domain[c->begin[i] + q];
            if (c->total[q] > 0 && c->shift[c->slot_shift[slot] + a] - c->total[q] >= -limit)
                fgi_costs_extend(c, slot, a, c->total[q]);
        }
    }
    c->work += 4 * all + on * c->size[i];
}

static void visit(fgi_costs *c, int32_t i, int forward) {
    for (int32_t k = fgi_costs_first(c, i); k >= 0 && !c->conflict; k = fgi_costs_next(c, i, k + 1))
        fgi_costs_pull(c, c->adj[k], 0);
    if (!c->conflict) fgi_costs_settle(c, i);
    if (!c->conflict) share(c, i, forward);
}

/* Is it worth going on? The first sweeps are a trial that leaves no trace if it is not: soft arc consistency may have
 * found more than they can, and would have to find it again. */
static int gets_on(fgi_costs *c) {
    if (c->sweeps % LOOKED_AT) return 1;
    const int64_t gained = c->lower - c->swept_from,
                  left = c->upper < FGI_COST_LARGEST ? c->upper - c->lower : c->lower;
    const int pays = (double)gained > LEAST_GAIN * (double)left;
    c->swept_from = c->lower;
    if (c->recording && !pays && !c->conflict) fgi_costs_undo(c, 0);
    c->recording = 0;
    c->n_trail = 0;
    return pays;
}

int fgi_costs_sweep(fgi_costs *c, int64_t work_limit) {
    c->grain = 1;
    if (c->sweeps + c->sweep_at == 0) {
        c->swept_from = c->lower;
        c->recording = 1;
        c->n_trail = 0;
    }
    int on = 1;
    while (on && !c->conflict && !c->failure) {
        if (c->work > work_limit) return 0;
        const int forward = !(c->sweeps & 1);
        if (c->sweep_at < c->n) {
            visit(c, forward ? c->sweep_at : c->n - 1 - c->sweep_at, forward);
            c->sweep_at++;
            continue;
        }
        c->sweep_at = 0;
        c->sweeps++;
        on = gets_on(c) && c->sweeps < MOST_SWEEPS;
    }
    c->recording = 0;
    c->n_trail = 0;
    const int undone = c->sweeps == LOOKED_AT;
    c->sweeps++; /* never 0 again, whatever has ended them */
    if (!c->conflict && !undone)
        for (int32_t i = 0; i < c->n; i++) {
            fgi_costs_push(&c->bare, i);
            fgi_costs_push(&c->unsupported, i);
            fgi_costs_push(&c->dearer, i);
            fgi_costs_push(&c->directed, i);
        }
    return 1;
}
