/* primal/first.h - a labeling for methods that find theirs on the way: one is at hand from the first moment on, and
 * where hard constraints stand against it, feasible rounding (primal/labeling.h) looks for one, now and then. */
#ifndef FGI_FIRST_H
#define FGI_FIRST_H
#include "solver.h"

typedef struct fgi_first fgi_first;

/* To be called when a run begins and after each iteration: works until there is a labeling, the attempt at hand is
 * over or the deadline passes, and does nothing while the next attempt is not due. `hint` is what the method would
 * round to, or NULL. Returns 0 when the time is over: call again with the same arguments. *first is made when it is
 * needed; memory that is short ends the attempts, not the run. A proof that there is no labeling goes to the solver. */
int fgi_first_labeling(fgi_first **first, fgi_solver *solver, const int32_t *hint, double deadline);
void fgi_first_free(fgi_first *first);

#endif
