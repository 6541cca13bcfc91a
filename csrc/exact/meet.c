/* exact/meet.c - factors of three and more variables that have become pairwise: see exact/costs.h.
 *
 * Their costs are added up in one table for each two variables (Sanchez, de Givry & Schiex, "Mendelian error detection
 * in complex pedigrees using weighted constraint satisfaction techniques", 2008): soft arc consistency looks at one
 * factor at a time, and sees in the sum what it does not see in the parts. */
#include "exact/costs.h"
#include "exact/support.h"

/* The pairwise factor to which the costs of f have gone, -1 if they have not. */
static int32_t move(fgi_costs *c, int32_t f) {
    const int32_t first = c->slot_begin[f], arity = c->slot_begin[f + 1] - first;
    fgi_assert(arity >= 2 && !c->spent[f]);
    int32_t free_ones = 0, at[2] = {0, 0};
    if (arity == 2) return -1;
    for (int32_t k = 0; k < arity; k++) {
        if (c->size[c->slot_var[first + k]] < 2) continue;
        if (free_ones == 2) return -1;
        at[free_ones++] = k;
    }
    if (free_ones < 2) return -1;
    const int32_t pair = c->meet[c->meet_begin[f] + fgi_costs_pair_at(at[0], at[1])];
    return pair >= 0 && fgi_cells_move(c, f, at[0], at[1], pair) ? pair : -1;
}

void fgi_costs_meet(fgi_costs *c, int32_t j) {
    fgi_assert(c->meet && j >= 0 && j < c->n);
    int32_t n = 0;
    for (int32_t k = fgi_costs_first(c, j); k >= 0; k = fgi_costs_next(c, j, k + 1)) {
        const int32_t pair = move(c, c->slot_factor[c->adj[k]]);
        fgi_assert(pair < c->n_factors && n < c->n_factors);
        if (pair >= 0) c->met[n++] = pair;
        c->work += 4;
    }
    for (int32_t k = 0; k < n && !c->conflict; k++) {
        const int32_t s = c->slot_begin[c->met[k]], first = s + (c->slot_var[s] > c->slot_var[s + 1]);
        fgi_costs_push(&c->existential, c->slot_var[s]);
        fgi_costs_push(&c->existential, c->slot_var[s + 1]);
        fgi_costs_pull(c, first, 1);
        if (!c->conflict) fgi_costs_pull(c, s == first ? s + 1 : s, 0);
    }
}

void fgi_costs_blame_met(fgi_costs *c, int32_t pair) {
    const int32_t s = c->slot_begin[pair], i = c->slot_var[s], j = c->slot_var[s + 1];
    for (int32_t k = c->adj_begin[i]; k < c->adj_begin[i + 1]; k++) {
        const int32_t f = c->slot_factor[c->adj[k]];
        if (c->spent[f] != FGI_MOVED) continue;
        for (int32_t t = c->slot_begin[f]; t < c->slot_begin[f + 1]; t++) c->weight[f] += c->slot_var[t] == j;
    }
    c->work += c->adj_begin[i + 1] - c->adj_begin[i];
}
