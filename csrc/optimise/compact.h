/* optimise/compact.h - the L-BFGS matrix in compact form (Nocedal and Wright, Numerical Optimization, 7.2), kept on a
 * set of n coordinates only:
 *
 *     B = gamma H - P R' P^T,   row j of P = (h_j s_0j, y_0j, h_j s_1j, y_1j, ...),   R' = G R G,
 *     R^-1 = [[gamma S'HS, L], [L', -D]]
 *
 * with a diagonal H > 0, the s and y columns interleaved, G = gamma for s columns and 1 for y columns. "hat" holds
 * row j of P R'.
 *
 * When coordinates leave the set, their rows go and R stays: what is left is a principal submatrix of B, so it stays
 * positive definite. Products computed later are over the smaller set; they are those of the longer vectors, because a
 * new s is zero on what has left. */
#ifndef FGI_COMPACT_H
#define FGI_COMPACT_H
#include "optimise/optimise.h"

typedef struct fgi_compact {
    int64_t memory; /* most pairs */
    int64_t pairs;
    int64_t n, room; /* coordinates; rows allocated */
    double gamma;
    double *h;          /* n: the diagonal of H */
    double *rows, *hat; /* room x 2 memory */
    double *ss, *sy;    /* memory x memory: s_i'H s_j; s_i'y_j for i >= j, the diagonal is D */
    double *R;          /* 2 memory x 2 memory, with stride 2 * pairs */
    double *work;
} fgi_compact;

int fgi_compact_create(fgi_compact *c, int64_t memory);
void fgi_compact_free(fgi_compact *c);
/* An empty memory over n coordinates, H = I; 0 when there is not enough room. */
int fgi_compact_clear(fgi_compact *c, int64_t n);
/* Keeps the coordinates listed in `kept` (ascending positions). */
void fgi_compact_keep(fgi_compact *c, const int64_t *kept, int64_t n);
/* Moves to another set of n coordinates: from[k] is the position that coordinate k had, or -1. What is new is zero in
 * every pair, so that B has nothing but gamma there (H = 1). 0: not enough room. */
int fgi_compact_move(fgi_compact *c, const int64_t *from, int64_t n);
/* Sets another diagonal H. Coordinates that have left the set keep their old entry, so that the curvature of all pairs
 * stays positive. */
void fgi_compact_scale(fgi_compact *c, const double *h);
/* Adds the pair (step * direction, y); a pair of no positive curvature changes nothing. */
void fgi_compact_push(fgi_compact *c, const double *direction, double step, const double *y);
/* Forgets the pairs, keeps gamma. */
static inline void fgi_compact_forget(fgi_compact *c) { c->pairs = 0; }
void fgi_compact_walk(fgi_compact *c, fgi_record *v);

#endif
