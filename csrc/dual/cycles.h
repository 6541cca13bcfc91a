/* dual/cycles.h - bounds for binary pairwise models from frustrated cycles: the parts of dual/cycles.c.
 *
 * A binary pairwise model is a graph of spins: every edge is satisfied by equal or by different ends, and costs its
 * weight where it is violated; a field is an edge to one more node, the ground. On a cycle with an odd number of edges
 * that want different ends (a frustrated one) an odd number of edges is violated, whatever the labels: at least one. */
#ifndef FGI_CYCLES_H
#define FGI_CYCLES_H
#include "base/arena.h"
#include "base/array.h"
#include "model/model.h"

/* ---- the graph of spins (dual/spins.c) ----------------------------------------------------------------------- */

typedef struct fgi_spins {
    int32_t n, m;      /* nodes and edges */
    int32_t *ends;     /* 2 m: from, to */
    double *weight;    /* weights of edges, above 0 */
    uint8_t *odd;      /* which edges are satisfied where their ends differ */
    int64_t *begin;    /* n + 1: where a node's edges begin in adj */
    int32_t *adj;      /* 2 m edges */
    int32_t n_vars;    /* variables of the model */
    int32_t *node;     /* per variable: its node */
    uint8_t *flipped;  /* per variable: its label is the opposite of the node's */
    int32_t ground;    /* the node that is always 1 */
    int whole;         /* the graph is all of the model */
    double top, error; /* score of a labeling: top - the weights that are violated, within error */
    fgi_arena arena;
} fgi_spins;

/* Terms that are no spins (more than two labels or variables, forbidden states) count as the most they can be: the
 * graph is then a relaxation of the model. NULL: out of memory. */
fgi_spins *fgi_spins_create(const fgi_model *m);
/* The same graph where nodes of a cluster have labels that are known from each other: flipped[i] says whether node i
 * differs from its cluster. An edge becomes map[e] >= 0 with the same ends wanted, FGI_SPINS_MET (always satisfied) or
 * FGI_SPINS_LOST (neither: what is known of it does not carry over). NULL: out of memory. */
enum { FGI_SPINS_MET = -1, FGI_SPINS_LOST = -2 };
fgi_spins *fgi_spins_contract(
    const fgi_spins *g, const int32_t *cluster, const uint8_t *flipped, int32_t n_clusters, int32_t *map);
/* Turns sides of nodes into labels of variables. */
void fgi_spins_labels(const fgi_spins *g, const uint8_t *side, int32_t *labels);
void fgi_spins_free(fgi_spins *g);

/* Sets of nodes that are known from each other. */
typedef struct fgi_bonds {
    int32_t *parent;  /* itself: a root */
    uint8_t *differs; /* from the parent */
} fgi_bonds;
void fgi_bonds_clear(fgi_bonds *b, int32_t n);
/* The root of a node; *differs: whether the node differs from it. */
int32_t fgi_bonds_root(fgi_bonds *b, int32_t node, uint8_t *differs);
/* 1: they were not known from each other; 0: they were, as said; -1: they were, but not so. */
int fgi_bonds_join(fgi_bonds *b, int32_t i, int32_t j, int differ);

/* ---- a packing of cycles (dual/packing.c) -------------------------------------------------------------------- */

/* Weights lambda of cycles: sum lambda - sum over e of (load of e - weight of e)^+ is no more than any labeling's
 * violated weights. The best ones by the primal-dual hybrid gradient method; z: how far an edge is violated in the
 * linear program on the other side.
 *
 * Invariants (fgi_packing_iterate looks at them):
 *   1  `begin` ascends from 0 to the number of `edges`; every cycle has edges, all of the graph, none twice.
 *   2  `degree` of an edge is the number of cycles that it is on.
 *   3  z_next is from 0 to 1, lambda_next and polished are not below 0 (lambda and z may be: they are reflected). */
typedef struct fgi_packing {
    fgi_array edges; /* int32_t: of all cycles, one after the other */
    fgi_array begin; /* int64_t: n_cycles + 1 */
    int64_t n_cycles, cycle_capacity;
    double *lambda, *lambda_anchor, *lambda_next; /* multipliers of cycles */
    double *polished;                             /* what the bound is made of */
    uint8_t *idle;                                /* rounds in which a cycle has had no weight */
    double *z, *z_anchor, *z_next, *load;         /* shares of edges */
    int32_t *degree;                              /* cycles of an edge */
    double omega, scale;                          /* weight of a step in lambda to one in z; the mean weight */
    double first_residual, last_residual;         /* residuals of the run from the anchor, and of the last iteration */
    int64_t since_anchor, iterations;
    fgi_arena arena;
} fgi_packing;

fgi_rc fgi_packing_init(fgi_packing *p, const fgi_spins *g);
void fgi_packing_free(fgi_packing *p);
/* A cycle of n edges; 0: out of memory. */
int fgi_packing_add(fgi_packing *p, const int32_t *edges, int64_t n);
void fgi_packing_anchor(fgi_packing *p);                                 /* after cycles were added */
int64_t fgi_packing_step_work(const fgi_packing *p, const fgi_spins *g); /* operations of an iteration */
void fgi_packing_iterate(fgi_packing *p, const fgi_spins *g, int64_t iterations);
/* Lower bound on the violated weights, safe against rounding; load: of edges, with the weights it is made of. */
double fgi_packing_bound(fgi_packing *p, const fgi_spins *g);
void fgi_packing_drop_idle(fgi_packing *p, int64_t m); /* m: edges of the graph */
/* The cycles of another packing, on a graph of n_from edges, on what it has been contracted to. */
fgi_rc fgi_packing_carry_over(
    fgi_packing *p, const fgi_packing *from, const int32_t *map, int32_t n_from, const fgi_spins *g);

/* ---- cycles that z falls short on (dual/cycle_finder.c) ------------------------------------------------------- */

typedef struct fgi_cycle_finder fgi_cycle_finder;
fgi_cycle_finder *fgi_cycle_finder_create(const fgi_spins *g); /* NULL: out of memory. Borrows g. */
void fgi_cycle_finder_free(fgi_cycle_finder *f);
/* A spanning forest of edges with small z: labels of nodes that agree with it, and the edges that do not agree. */
void fgi_cycle_finder_start(fgi_cycle_finder *f, const double *z, uint8_t *side);
/* Frustrated cycles on which the z add up to less than `below`, through the next edges that do not agree; about
 * max_operations. 1: all have been looked at. *no_memory is set where that ends it. */
int fgi_cycle_finder_run(fgi_cycle_finder *f, fgi_packing *into, double below, int64_t max_operations, int *no_memory);
int64_t fgi_cycle_finder_found(const fgi_cycle_finder *f); /* since the start */
int64_t fgi_cycle_finder_operations(const fgi_cycle_finder *f);

#endif
