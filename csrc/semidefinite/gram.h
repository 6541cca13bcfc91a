/* semidefinite/gram.h - the semidefinite relaxation of a graph of spins, with triangle inequalities.
 *
 * The best s'Cs over signs s is at most the best <C, X> over Gram matrices X = V'V of unit vectors. Whatever the
 * signs of three nodes, their products satisfy
 *
 *     slack(t) = 1 + s_a s_b X_ab + s_a s_c X_ac + s_b s_c X_bc >= 0      (signs s_a, s_b, s_c of the triangle),
 *
 * and a triangle t with a price p_t >= 0 adds p_t slack(t) to what is maximised. With M = C + sum_t p_t A_t (A_t: half
 * a product of signs on the three pairs) and any d for which Diag(d) - M is positive semidefinite,
 *
 *     sum_i d_i + sum_t p_t  >=  s'Cs   for all signs s.                                (docs/mathematics.md)
 *
 * The vectors move one at a time to their best place (the mixing method); the prices follow the slacks (an augmented
 * Lagrangian); d comes from the vectors and is shifted until a Cholesky factorisation proves that it is valid.
 *
 * Invariants: (1) C is symmetric with a zero diagonal; (2) the n vectors have length 1 up to rounding; (3) x[i][j] is
 * the product of vectors i and j between two steps; (4) the nodes of a triangle differ and ascend; (5) `begin` and
 * `of_node` list, for each node, the triangles that it is in. */
#ifndef FGI_GRAM_H
#define FGI_GRAM_H
#include "base/arena.h"
#include "base/array.h"
#include "base/meter.h"
#include "base/sums.h"
#include "base/util.h"

typedef struct fgi_triangle {
    int32_t node[3]; /* ascending */
    int8_t sign[3];  /* 1 or -1; the first one is 1 */
    float price;     /* >= 0 */
    float mean;      /* mean of the last prices: steadier, and what bounds are made of */
} fgi_triangle;

typedef struct fgi_gram {
    int32_t n, rank, capacity;      /* nodes, length of a vector, nodes that there is room for */
    double *c;                      /* n x n */
    double *vectors;                /* n x rank */
    double *turned;                 /* rank x n: the same, for products with all vectors at once */
    double *x;                      /* n x n */
    fgi_array triangles;            /* fgi_triangle */
    fgi_array begin, of_node;       /* int64_t, int32_t */
    double stiffness;               /* what a slack of -1 adds to a price */
    double *row, *spare, *gradient; /* scratch: n, n, rank */
    const fgi_sum_kernels *kernels;
    int32_t next; /* node of the pass under way */
    fgi_arena arena;
} fgi_gram;

static inline fgi_triangle *fgi_gram_triangles(const fgi_gram *g) { return g->triangles.at; }

fgi_rc fgi_gram_init(fgi_gram *g, int32_t most_nodes);
void fgi_gram_free(fgi_gram *g);
void fgi_gram_randomise(fgi_gram *g, fgi_rng *rng); /* vectors for the n nodes */
/* After c, vectors or triangles were written from outside. 0: out of memory. */
int fgi_gram_refresh(fgi_gram *g);
/* Moves every vector once. 0: the time is over, call again. *work counts operations. */
int fgi_gram_pass(fgi_gram *g, fgi_meter *meter, int64_t *work);
void fgi_gram_update_prices(fgi_gram *g);

/* ---- cuts (semidefinite/triangles.c) -------------------------------------------------------------------------- */

/* Drops triangles that are slack and free, then adds the most violated others, at most `most`; *violated counts all
 * that are. Call fgi_gram_refresh afterwards. 0: out of memory. */
int fgi_gram_separate(fgi_gram *g, int64_t most, int64_t *violated, int64_t *work);
/* What nodes are now called: cluster[i], and whether they are turned round. Triangles that lose a node go. */
void fgi_triangles_rename(fgi_array *triangles, const int32_t *cluster, const int8_t *sign);

/* ---- the certified bound (semidefinite/certify.c) ------------------------------------------------------------- */

typedef struct fgi_certificate {
    int32_t capacity;
    double *matrix, *factor; /* M; its shifted Cholesky factor */
    double *diagonal;        /* d before the shift */
    double *column;          /* scratch */
    double price;            /* sum of all prices, rounded up */
    double error;            /* what rounding of M can hide */
    double shift;            /* that is tried now, the least that held, the largest that failed */
    double holds, fails;
    int32_t row, tries;
    int is_begun;
    fgi_arena arena;
} fgi_certificate;

fgi_rc fgi_certificate_init(fgi_certificate *k, int32_t most_nodes);
void fgi_certificate_free(fgi_certificate *k);
/* An upper bound on s'Cs for all signs s, rounding included. 0: the time is over, call again. `additions`: how many
 * terms an entry of g->c may have been summed from. */
int fgi_certify(
    fgi_certificate *k, const fgi_gram *g, int64_t additions, fgi_meter *meter, double *bound, int64_t *work);

#endif
