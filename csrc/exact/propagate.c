/* exact/propagate.c - existential directional arc consistency (EDAC*) to its end, from what has changed: see
 * exact/costs.h. */
#include "exact/costs.h"

/* Labels that have become too dear since the bounds came nearer; not those of variables that were dropped, whose costs
 * may be in `lower` already. */
static void prune(fgi_costs *c) {
    const int64_t room = c->upper - c->lower;
    c->pruned_at = room;
    c->work += c->n;
    for (int32_t i = 0; i < c->n && !c->conflict; i++)
        if (c->most[i] >= room && !c->dropped[i]) fgi_costs_settle(c, i);
}

/* Variables with a dearer label: their later neighbours are to be looked at, the earlier ones get costs directly. */
static void spread(fgi_costs *c) {
    while (c->dearer.count) {
        const int32_t i = fgi_costs_pop_first(&c->dearer);
        fgi_assert(i < c->n);
        fgi_costs_push(&c->existential, i);
        for (int32_t k = fgi_costs_first(c, i); k >= 0; k = fgi_costs_next(c, i, k + 1)) {
            const int32_t slot = c->adj[k], f = c->slot_factor[slot];
            c->work += 2;
            if (c->slot_other[slot] >= 0) {
                const int32_t j = c->slot_var[c->slot_other[slot]];
                if (j > i) fgi_costs_push(&c->existential, j);
                continue;
            }
            for (int32_t s = c->slot_begin[f]; s < c->slot_begin[f + 1]; s++)
                if (c->slot_var[s] > i) fgi_costs_push(&c->existential, c->slot_var[s]);
        }
        c->work += 2;
    }
}

/* The slot of the factor's first variable that still has a choice. */
static int32_t first_free(const fgi_costs *c, int32_t f) {
    fgi_assert(f >= 0 && f < c->n_factors);
    int32_t best = -1;
    for (int32_t s = c->slot_begin[f]; s < c->slot_begin[f + 1]; s++)
        if (c->size[c->slot_var[s]] > 1 && (best < 0 || c->slot_var[s] < c->slot_var[best])) best = s;
    return best;
}

/* The unaries of j into its factors, and on to their first variables. */
static void direct(fgi_costs *c, int32_t j) {
    fgi_assert(j >= 0 && j < c->n);
    for (int32_t k = fgi_costs_first(c, j); k >= 0 && !c->conflict; k = fgi_costs_next(c, j, k + 1)) {
        const int32_t slot = c->adj[k], other = c->slot_other[slot];
        c->work += 2;
        if (other >= 0) {
            const int32_t i = c->slot_var[other];
            if (i < j && c->size[i] > 1) fgi_costs_pull(c, other, 1);
            continue;
        }
        const int32_t to = first_free(c, c->slot_factor[slot]);
        if (to >= 0 && to != slot && c->slot_var[to] < j) fgi_costs_pull(c, to, 1);
    }
}

/* j has lost labels, which may have been supports. */
static void support_neighbours(fgi_costs *c, int32_t j) {
    fgi_assert(j >= 0 && j < c->n);
    for (int32_t k = fgi_costs_first(c, j); k >= 0 && !c->conflict; k = fgi_costs_next(c, j, k + 1)) {
        const int32_t slot = c->adj[k], f = c->slot_factor[slot], other = c->slot_other[slot];
        c->work += 2;
        if (other >= 0) {
            const int32_t i = c->slot_var[other];
            fgi_costs_pull(c, other, i < j && c->size[i] > 1);
            continue;
        }
        const int32_t to = first_free(c, f);
        for (int32_t s = c->slot_begin[f]; s < c->slot_begin[f + 1] && !c->conflict; s++)
            if (s != slot) fgi_costs_pull(c, s, s == to && c->slot_var[s] < j);
    }
}

int fgi_costs_propagate(fgi_costs *c, int64_t work_limit) {
    if (!c->conflict && !c->failure && c->lower < c->upper) fgi_audit_rarely(fgi_costs_check(c));
    while (!c->conflict && !c->failure) {
        if (c->work > work_limit) return 0;
        c->grain = (((c->upper < c->range ? c->upper : c->range) - c->lower) >> FGI_COSTS_GRAIN_BITS) + 1;
        if (c->grain < 1) c->grain = 1;
        if (c->lower >= c->upper) c->conflict = 1;
        else if (c->bare.count) fgi_costs_settle(c, fgi_costs_pop_first(&c->bare));
        else if (c->upper - c->lower < c->pruned_at) prune(c);
        else if (c->decided.count) fgi_costs_meet(c, fgi_costs_pop_first(&c->decided));
        else if (c->dearer.count) spread(c);
        else if (c->existential.count) {
            const int32_t i = fgi_costs_pop_first(&c->existential);
            if (c->size[i] > 1) fgi_costs_exist(c, i);
        } else if (c->directed.count) direct(c, fgi_costs_pop_last(&c->directed));
        else if (c->unsupported.count) support_neighbours(c, fgi_costs_pop_first(&c->unsupported));
        else if (c->loose.count && c->may_drop) fgi_costs_consider_drop(c, fgi_costs_pop_first(&c->loose));
        else return 1;
    }
    return 1;
}
