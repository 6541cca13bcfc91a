/* dual/ad3_factor.h - the exact factor step of AD3: a quadratic program over the states of one factor, by the
 * active-set method. */
#ifndef FGI_AD3_FACTOR_H
#define FGI_AD3_FACTOR_H
#include "dual/messages.h"

/* A sparse point of the simplex over a factor's states: n states as label tuples, affinely independent in their
 * indicators. */
typedef struct ad3_point {
    int32_t n, capacity;
    int32_t *labels; /* n * arity */
    double *y;       /* n, positive, summing to 1 */
} ad3_point;

/* Where a step is: of a linear system, `column` columns may be done with. */
typedef enum ad3_phase { AD3_POSE, AD3_MINIMISE, AD3_ASK, AD3_JOIN } ad3_phase;

/* Scratch for the linear systems, grown on demand, and the place of the step under way. */
typedef struct ad3_solver {
    int64_t capacity; /* largest system so far */
    double *matrix, *rhs, *solution;
    int32_t *state; /* max_arity */
    ad3_phase phase;
    int32_t column, begun; /* begun: those that were done with when the time was last over */
    int64_t round;
    double tau; /* tau of the last minimum over the active states */
} ad3_solver;

/*
 * y = argmin over the simplex of  1/2 |M y - z|^2 - theta_f.y / rho,  z[q] one vector per variable of the factor
 * (-INFINITY: a forbidden label), starting from the point given (n == 0: from scratch). Adds to *entries the table
 * entries read. FGI_UNSUPPORTED: the factor has no feasible state. *done is 0 when the time of d->meter is over: then
 * the next call, with the same z, goes on from there.
 */
fgi_rc ad3_factor_step(fgi_dual_state *d, ad3_solver *w, const fgi_model *m, const fgi_view *v, const double *const *z,
    double rho, ad3_point *point, int64_t *entries, int *done);

#endif
