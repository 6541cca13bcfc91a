/* dual/cycle_tree.c - open nodes of the tree over packings of cycles: see dual/cycle_node.h. Both children of a node
 * begin from its graph and packing, and are made when their turn comes. */
#include "base/util.h"
#include "dual/cycle_node.h"

/* Beyond it the newest nodes come first, which need no more memory than the depth of the tree (chosen). */
static const int64_t MOST_BYTES = 400000000;

typedef struct start {
    fgi_cycle_node node;
    int64_t bytes;
    int refs; /* open nodes that begin here */
} start;

static void release(fgi_cycle_tree *t, start *begun) {
    if (--begun->refs > 0) return;
    t->bytes -= begun->bytes;
    fgi_cycle_node_free(&begun->node);
    free(begun);
}

void fgi_cycle_tree_free(fgi_cycle_tree *t) {
    for (int64_t k = 0; k < t->open.count; k++) release(t, t->open.heap[k].start);
    free(t->open.heap);
}

static int64_t bytes_of(const fgi_cycle_node *node) {
    const fgi_packing *p = &node->packing;
    return node->spins->arena.bytes + p->arena.bytes + p->cycle_capacity * (4 * (int64_t)sizeof(double) + 1) +
        p->edges.n * (int64_t)sizeof(int32_t) + p->begin.n * (int64_t)sizeof(int64_t);
}

fgi_rc fgi_cycle_tree_split(fgi_cycle_tree *t, fgi_cycle_node *node, const fgi_cycle_branch *b, double goal) {
    fgi_assert(b->best >= 0 && b->best < node->spins->m);
    start *begun = fgi_calloc(1, sizeof *begun);
    if (!begun || !fgi_frontier_reserve(&t->open, 2)) {
        free(begun);
        return FGI_NO_MEMORY;
    }
    const uint8_t last = node->packing.z_next[b->best] > 0.5; /* the likelier one is the newest */
    fgi_cycle_finder_free(node->finder);
    node->finder = NULL;
    *begun = (start){.node = *node, .bytes = bytes_of(node), .refs = 1};
    *node = (fgi_cycle_node){0};
    t->bytes += begun->bytes;
    for (int k = 0; k < 2; k++) {
        const uint8_t way = k ? last : !last;
        if (b->best_bound[way] < goal) continue;
        fgi_frontier_add(
            &t->open, (fgi_open){.bound = b->best_bound[way], .start = begun, .choice = b->best, .way = way});
        begun->refs++;
    }
    release(t, begun);
    return FGI_OK;
}

fgi_rc fgi_cycle_tree_take(fgi_cycle_tree *t, fgi_bonds *bonds, fgi_cycle_node *node, double *bound, int *taken) {
    fgi_open open;
    *taken = fgi_frontier_take(&t->open, t->bytes > MOST_BYTES, &open);
    if (!*taken) return FGI_OK;
    start *begun = open.start;
    const fgi_spins *g = begun->node.spins;
    const int32_t e = open.choice;
    fgi_bonds_clear(bonds, g->n);
    fgi_bonds_join(bonds, g->ends[2 * e], g->ends[2 * e + 1], g->odd[e] ^ open.way);
    const fgi_rc rc = fgi_cycle_node_contract(&begun->node, bonds, g->n - 1, node);
    *bound = open.bound;
    release(t, begun);
    return rc;
}

void fgi_cycle_tree_skip(fgi_cycle_tree *t) {
    fgi_open open;
    if (fgi_frontier_take(&t->open, 0, &open)) release(t, open.start);
}
