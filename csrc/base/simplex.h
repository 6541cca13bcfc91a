/* base/simplex.h - projections onto the probability simplex, and the small quadratic programs of the factor step. */
#ifndef FGI_SIMPLEX_H
#define FGI_SIMPLEX_H
#include <stdint.h>

/* The Euclidean projection of v (n >= 1 finite values) onto { x >= 0, sum x = 1 }, in place. Expected O(n). */
void fgi_simplex_project(double *v, int32_t n);

/*
 * The projection of (p, q), n and m finite values, onto { p, q >= 0, sum p = sum q <= size }, in place and by sorting:
 * O((n + m) log(n + m)). If p and q sum to more than `size` where they balance, each lies on the simplex of that size.
 * work holds n + m doubles.
 */
void fgi_bisimplex_project(double *p, int32_t n, double *q, int32_t m, double size, double *work);

/*
 * max over y in the simplex of  c.y - rho/2 |M y|^2  for the states of one factor, M summing y down to every variable.
 * State s is the tuple labels[s * arity .. ]; states are distinct. On entry `gain` holds the gradient c - rho M'M y at
 * the y given (which lies in the simplex); both are updated. Pairwise steps along e_up - e_down with exact line search:
 * the curvature there is 2 rho times the number of labels in which the two states differ, so every step ascends, and
 * two states are solved in one. Returns the number of steps taken.
 */
int32_t fgi_simplex_ascend(
    int32_t n, int32_t arity, const int32_t *labels, double rho, double *gain, double *y, int32_t max_steps);

#endif
