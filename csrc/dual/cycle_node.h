/* dual/cycle_node.h - a graph of spins with its packing of cycles: the whole model, or what decisions have left of it.
 *
 * Decisions say of spins that they are known from each other; such spins become one node of a smaller graph, to which
 * the packing is carried over. Edges that decisions violate count in `top` of that graph. */
#ifndef FGI_CYCLE_NODE_H
#define FGI_CYCLE_NODE_H
#include "base/frontier.h"
#include "dual/cycles.h"

typedef struct fgi_cycle_node {
    fgi_spins *spins;
    fgi_packing packing;
    fgi_cycle_finder *finder;
    double cost;     /* lower bound on the weights that are violated */
    int32_t *origin; /* per edge: one of the whole graph that it comes from */
} fgi_cycle_node;

fgi_rc fgi_cycle_node_init(fgi_cycle_node *node, fgi_spins *spins); /* which is the node's from here on */
void fgi_cycle_node_free(fgi_cycle_node *node);
/* No labeling scores more. */
double fgi_cycle_node_upper(const fgi_cycle_node *node);
/* Joins the ends of edges that no labeling with a score of at least `wanted` violates. Returns how many nodes that
 * saves, -1: there is no such labeling. */
int64_t fgi_cycle_node_join(const fgi_cycle_node *node, double wanted, fgi_bonds *bonds);
/* What is left of a node where its spins are known from each other by `bonds`: n_left sets of them. */
fgi_rc fgi_cycle_node_contract(const fgi_cycle_node *from, fgi_bonds *bonds, int32_t n_left, fgi_cycle_node *to);

/* ---- what to split on (dual/cycle_branch.c) --------------------------------------------------------------------- */

enum { FGI_CYCLE_CANDIDATES = 8 }; /* edges that are compared (chosen) */

typedef struct fgi_cycle_branch {
    double *gains;                      /* per edge of the whole graph and way; below 0: not known */
    int32_t edge[FGI_CYCLE_CANDIDATES]; /* candidates, the most open first */
    double value[FGI_CYCLE_CANDIDATES]; /* how open they are */
    double bound;                       /* bound of the node */
    int n, at, way;                     /* candidates; the one that is next, and which half of it */
    int n_tried;                        /* candidates that were tried at this node */
    int32_t best;                       /* the edge that gains most so far */
    double best_bound[2], most;         /* bounds of its halves (satisfied, violated), and what it gains */
    fgi_cycle_node half;                /* the half that is tried; without spins: none */
    double half_bound[2];
    int64_t taken; /* steps */
    fgi_arena arena;
} fgi_cycle_branch;

/* n_edges: those of the whole graph. */
fgi_rc fgi_cycle_branch_init(fgi_cycle_branch *b, int32_t n_edges);
void fgi_cycle_branch_begin(fgi_cycle_branch *b, const fgi_cycle_node *node, double bound);
/* About so much work; until *is_done. An edge with a half below `goal` is taken at once. */
fgi_rc fgi_cycle_branch_advance(fgi_cycle_branch *b, const fgi_cycle_node *node, fgi_bonds *bonds, double goal,
    int64_t piece, int64_t *work, int *is_done);
void fgi_cycle_branch_free(fgi_cycle_branch *b);

/* ---- a tree of them (dual/cycle_tree.c) ------------------------------------------------------------------------ */

typedef struct fgi_cycle_tree {
    fgi_frontier open;
    int64_t bytes; /* memory that open nodes begin from */
} fgi_cycle_tree;

/* Replaces the node, whose memory the tree takes over, by its two halves: the edge is satisfied in one and violated in
 * the other. A half with a bound below `goal` is left out. */
fgi_rc fgi_cycle_tree_split(fgi_cycle_tree *t, fgi_cycle_node *node, const fgi_cycle_branch *b, double goal);
/* The next node, and its bound; 0 in *taken: none is open. */
fgi_rc fgi_cycle_tree_take(fgi_cycle_tree *t, fgi_bonds *bonds, fgi_cycle_node *node, double *bound, int *taken);
/* Drops the next node unseen, because its bound says that nothing in it is wanted. */
void fgi_cycle_tree_skip(fgi_cycle_tree *t);
void fgi_cycle_tree_free(fgi_cycle_tree *t);

#endif
