/* dual/cycle_node.c - see dual/cycle_node.h. */
#include "dual/cycle_node.h"
#include "base/util.h"

fgi_rc fgi_cycle_node_init(fgi_cycle_node *node, fgi_spins *spins) {
    *node = (fgi_cycle_node){.spins = spins};
    node->finder = fgi_cycle_finder_create(spins);
    node->origin = fgi_take(&spins->arena, spins->m, int32_t);
    const fgi_rc rc = fgi_packing_init(&node->packing, spins);
    if (!node->finder || spins->arena.failed) return FGI_NO_MEMORY;
    for (int32_t e = 0; e < spins->m; e++) node->origin[e] = e;
    return rc;
}

void fgi_cycle_node_free(fgi_cycle_node *node) {
    fgi_cycle_finder_free(node->finder);
    fgi_packing_free(&node->packing);
    fgi_spins_free(node->spins);
    *node = (fgi_cycle_node){0};
}

double fgi_cycle_node_upper(const fgi_cycle_node *node) {
    const double bound = node->spins->top - node->cost + node->spins->error;
    return bound + 0x1p-51 * (fabs(bound) + fabs(node->spins->top));
}

int64_t fgi_cycle_node_join(const fgi_cycle_node *node, double wanted, fgi_bonds *bonds) {
    const fgi_spins *g = node->spins;
    const double bound = fgi_cycle_node_upper(node);
    int64_t joined = 0;
    fgi_bonds_clear(bonds, g->n);
    for (int32_t e = 0; e < g->m; e++) {
        const double room = g->weight[e] - node->packing.load[e];
        if (room <= 0 || bound - room * (1 - 0x1p-50) + 0x1p-50 * fabs(bound) >= wanted) continue;
        const int made = fgi_bonds_join(bonds, g->ends[2 * e], g->ends[2 * e + 1], g->odd[e]);
        if (made < 0) return -1;
        joined += made;
    }
    return joined;
}

fgi_rc fgi_cycle_node_contract(const fgi_cycle_node *from, fgi_bonds *bonds, int32_t n_left, fgi_cycle_node *to) {
    const fgi_spins *g = from->spins;
    fgi_arena arena = {0};
    int32_t *cluster = fgi_take(&arena, g->n, int32_t), *number = fgi_take(&arena, g->n, int32_t),
            *map = fgi_take(&arena, g->m, int32_t);
    uint8_t *flipped = fgi_take(&arena, g->n, uint8_t);
    fgi_rc rc = FGI_NO_MEMORY;
    *to = (fgi_cycle_node){0};
    if (!arena.failed) {
        int32_t n = 0;
        for (int32_t i = 0; i < g->n; i++)
            if (bonds->parent[i] == i) number[i] = n++;
        fgi_assert(n == n_left);
        for (int32_t i = 0; i < g->n; i++) cluster[i] = number[fgi_bonds_root(bonds, i, &flipped[i])];
        fgi_spins *left = fgi_spins_contract(g, cluster, flipped, n_left, map);
        if (left) rc = fgi_cycle_node_init(to, left);
    }
    for (int32_t e = g->m - 1; e >= 0 && !rc; e--)
        if (map[e] >= 0) to->origin[map[e]] = from->origin[e];
    if (!rc) rc = fgi_packing_carry_over(&to->packing, &from->packing, map, g->m, to->spins);
    fgi_arena_free(&arena);
    if (rc) {
        fgi_cycle_node_free(to);
        return rc;
    }
    to->packing.omega = from->packing.omega;
    fgi_packing_anchor(&to->packing);
    to->cost = fgi_packing_bound(&to->packing, to->spins);
    return FGI_OK;
}
