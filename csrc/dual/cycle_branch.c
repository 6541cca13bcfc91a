/* dual/cycle_branch.c - which edge a node is split on: see dual/cycle_node.h. Candidates are the edges that the linear
 * program is least sure of and that cost most. What splitting on an edge gains is much the same from node to node, so
 * an edge is tried once: both halves are made, and get some steps. What that has shown is remembered: branching by
 * pseudo-costs that are made reliable (docs/mathematics.md). */
#include <string.h>
#include "base/util.h"
#include "dual/cycle_node.h"

static const double LEAST_GAIN = 1e-6; /* a half without a gain counts this part of the other's (chosen) */
enum {
    STEPS = 500,   /* steps of each half that is tried (measured) */
    MOST_TRIED = 4 /* edges at a node (measured) */
};

fgi_rc fgi_cycle_branch_init(fgi_cycle_branch *b, int32_t n_edges) {
    *b = (fgi_cycle_branch){0};
    b->gains = fgi_take(&b->arena, 2 * (int64_t)n_edges, double);
    if (b->arena.failed) return FGI_NO_MEMORY;
    for (int64_t k = 0; k < 2 * (int64_t)n_edges; k++) b->gains[k] = -1;
    return FGI_OK;
}

void fgi_cycle_branch_free(fgi_cycle_branch *b) {
    fgi_cycle_node_free(&b->half);
    fgi_arena_free(&b->arena);
}

/* The best edges so far, the first one best: an insertion into a list of few. */
static void offer(fgi_cycle_branch *b, int32_t edge, double value) {
    if (b->n == FGI_CYCLE_CANDIDATES && b->value[b->n - 1] >= value) return;
    int k = b->n < FGI_CYCLE_CANDIDATES ? b->n++ : b->n - 1;
    for (; k > 0 && b->value[k - 1] < value; k--) {
        b->edge[k] = b->edge[k - 1];
        b->value[k] = b->value[k - 1];
    }
    b->edge[k] = edge;
    b->value[k] = value;
}

/* By what an edge gains in both halves. */
static void judge(fgi_cycle_branch *b, const fgi_cycle_node *node, int32_t edge, const double *bound) {
    const double *gain = b->gains + 2 * (int64_t)node->origin[edge];
    const double floor = LEAST_GAIN * fgi_larger(gain[0], gain[1]);
    const double value = fgi_larger(gain[0], floor) * fgi_larger(gain[1], floor);
    if (value <= b->most) return;
    b->most = value;
    b->best = edge;
    memcpy(b->best_bound, bound, sizeof b->best_bound);
}

/* The next candidate that is to be tried; known ones are judged on the way. */
static void go_on(fgi_cycle_branch *b, const fgi_cycle_node *node) {
    const double bound[2] = {b->bound, b->bound};
    for (; b->at < b->n; b->at++) {
        if (b->gains[2 * (int64_t)node->origin[b->edge[b->at]]] >= 0) judge(b, node, b->edge[b->at], bound);
        else if (b->n_tried < MOST_TRIED) return;
    }
}

void fgi_cycle_branch_begin(fgi_cycle_branch *b, const fgi_cycle_node *node, double bound) {
    const fgi_spins *g = node->spins;
    const double *z = node->packing.z_next;
    fgi_assert(!b->half.spins && g->m > 0);
    b->n = b->at = b->n_tried = b->way = 0;
    for (int32_t e = 0; e < g->m; e++) offer(b, e, g->weight[e] * fgi_smaller(z[e], 1 - z[e]));
    b->best = b->edge[0];
    b->bound = b->best_bound[0] = b->best_bound[1] = bound;
    b->most = -1;
    go_on(b, node);
}

/* A half has been tried: the other one is next, or both have shown what the edge gains. */
static void end_half(fgi_cycle_branch *b, const fgi_cycle_node *node, double goal) {
    const int32_t e = b->edge[b->at];
    b->half.cost = fgi_packing_bound(&b->half.packing, b->half.spins);
    b->half_bound[b->way] = fgi_smaller(b->bound, fgi_cycle_node_upper(&b->half));
    fgi_cycle_node_free(&b->half);
    b->way = !b->way;
    if (b->way) return;
    for (int k = 0; k < 2; k++) b->gains[2 * (int64_t)node->origin[e] + k] = b->bound - b->half_bound[k];
    judge(b, node, e, b->half_bound);
    b->n_tried++;
    b->at++;
    if (b->half_bound[0] >= goal && b->half_bound[1] >= goal) {
        go_on(b, node);
        return;
    }
    b->best = e; /* one half is over: nothing is better */
    memcpy(b->best_bound, b->half_bound, sizeof b->best_bound);
    b->at = b->n;
}

fgi_rc fgi_cycle_branch_advance(fgi_cycle_branch *b, const fgi_cycle_node *node, fgi_bonds *bonds, double goal,
    int64_t piece, int64_t *work, int *is_done) {
    const fgi_spins *g = node->spins;
    fgi_rc rc = FGI_OK;
    if (b->at < b->n && !b->half.spins) {
        const int32_t e = b->edge[b->at];
        fgi_bonds_clear(bonds, g->n);
        fgi_bonds_join(bonds, g->ends[2 * e], g->ends[2 * e + 1], g->odd[e] ^ b->way);
        b->taken = 0;
        *work += 60 * (int64_t)g->m + 4 * node->packing.edges.n;
        rc = fgi_cycle_node_contract(node, bonds, g->n - 1, &b->half);
    } else if (b->at < b->n) {
        const int64_t cost = fgi_packing_step_work(&b->half.packing, b->half.spins), fit = piece / cost + 1,
                      left = STEPS - b->taken, steps = fit < left ? fit : left;
        fgi_packing_iterate(&b->half.packing, b->half.spins, steps);
        *work += steps * cost;
        b->taken += steps;
        if (b->taken == STEPS) end_half(b, node, goal);
    }
    *is_done = b->at >= b->n;
    return rc;
}
