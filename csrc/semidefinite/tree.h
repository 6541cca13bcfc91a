/* semidefinite/tree.h - open nodes of the semidefinite branch and bound.
 *
 * Both children of a node share what they start from: its clusters of spins, its vectors, its triangles. A child adds
 * that two clusters are equal or opposite. */
#ifndef FGI_SEMIDEFINITE_TREE_H
#define FGI_SEMIDEFINITE_TREE_H
#include "semidefinite/gram.h"

typedef struct fgi_tree_start fgi_tree_start;

typedef struct fgi_tree_node {
    double bound;          /* no labeling in the node is above this */
    int64_t number;        /* in the order of making: 0 is the root; -1: there is no node here */
    fgi_tree_start *start; /* NULL: the root */
    int32_t kept, gone;    /* clusters of the start that become one */
    int8_t sign;           /* they are equal (1) or opposite (-1) */
} fgi_tree_node;

typedef struct fgi_tree {
    fgi_tree_node *heap; /* the largest bound first, then the oldest */
    int64_t count, capacity, numbers;
    int64_t bytes;
    int32_t n_spins, rank;
    int32_t *renamed; /* scratch: clusters of the start -> clusters of the node */
    int8_t *turned;   /* scratch: how clusters of the start are turned */
    uint8_t *side;    /* scratch for a sign for each cluster */
    fgi_arena arena;
} fgi_tree;

fgi_rc fgi_tree_init(fgi_tree *t, int32_t n_spins, int32_t rank); /* with the root */
void fgi_tree_free(fgi_tree *t);
double fgi_tree_bound(const fgi_tree *t);            /* the largest bound; -INFINITY: no node is open */
int fgi_tree_take(fgi_tree *t, fgi_tree_node *node); /* 0: none is open */
void fgi_tree_release(fgi_tree_node *node);          /* the start is none of them */
/* Sets n, vectors and triangles of the relaxation, and the clusters. The root has no vectors. 0: out of memory. */
int fgi_tree_enter(fgi_tree *t, const fgi_tree_node *node, fgi_gram *g, int32_t *cluster, int8_t *sign);
/* Opens the two children in which clusters a and b are equal and opposite. 0: out of memory. */
int fgi_tree_split(fgi_tree *t, const fgi_tree_node *node, const fgi_gram *g, const int32_t *cluster,
    const int8_t *sign, int32_t a, int32_t b);

#endif
