/* dual/messages.h - the dense state of the message-passing baselines (bp, mplp, psdd, ad3) and their common steps.
 *
 * Messages are laid out as in fgi_solver_messages. `theta` is a copy of the unaries in which a label is set to
 * -INFINITY once it is known to belong to no feasible labeling; such a label takes no part in anything, and its
 * messages stay finite. */
#ifndef FGI_MESSAGES_H
#define FGI_MESSAGES_H
#include "base/arena.h"
#include "base/meter.h"
#include "dual/progress.h"
#include "primal/first.h"

typedef struct fgi_dual_state {
    const fgi_kernels *k;
    int64_t *begin; /* per factor: start of its messages; and their end */
    double *mu;
    double *theta; /* laid out as the unaries, as is: */
    double *sums;  /* theta + sum of the messages */
    double *side;  /* one vector per variable of the factor at hand, and pointers to them */
    double **g;
    double *out;     /* max_card */
    double *scratch; /* for fgi_max_marginal */
    int32_t *labels; /* n_vars */
    int64_t n_mu;
    int is_ready;
    int64_t placed; /* factors whose `begin` is known */
    int64_t summed; /* factors whose messages are in `sums`; -1: they are not what they were, see fgi_dual_sum */
    fgi_meter meter;
    fgi_arena arena; /* what a method keeps beside this may come from it, too: before fgi_dual_init, which counts it */
    fgi_progress progress;
    fgi_first *first; /* made when it is needed */
} fgi_dual_state;

fgi_rc fgi_dual_init(fgi_dual_state *dual, fgi_solver *solver, fgi_error *err); /* counts its memory in solver->info */
/* What of the set-up takes a pass over the factors. Returns 0 when the time is over. */
int fgi_dual_ready(fgi_dual_state *dual, fgi_solver *solver);
/* At the beginning of every run: sets the deadline of the meter, makes the state ready, and sees to it that there is a
 * labeling where one is found soon. Returns 0 when the time is over, or when it is proven that there is none. */
int fgi_dual_begin(fgi_dual_state *dual, fgi_solver *solver, double deadline);
/* At the end of every iteration: while there is no labeling, looks for one now and then. Returns 0 when the time is
 * over; the next run goes on with it. */
int fgi_dual_first(fgi_dual_state *dual, fgi_solver *solver);
void fgi_dual_destroy(fgi_dual_state *dual);

/* Counts the work on a factor; 1 when the deadline of dual->meter has passed. */
int fgi_dual_out_of_time(fgi_dual_state *dual, int64_t work);
/* sums = theta + sum of the messages, afresh; nothing is done where they are that already. Whoever changes messages or
 * theta sets `summed` to -1. Returns 0 when the time is over: to be called again, before anything else is changed. */
int fgi_dual_sum(fgi_dual_state *dual, const fgi_model *m);
/* The best label of each variable by its sums goes to fgi_solver_consider. */
void fgi_dual_decode(fgi_dual_state *dual, fgi_solver *solver);
/* Sum over the variables of the maxima of their sums goes into progress; 0 when one has no label left. */
int fgi_dual_take_nodes(fgi_dual_state *dual, const fgi_model *m);
/* Sum over factors and their variables of the largest multiplier: multipliers that are not kept near 0 count when a
 * bound is rounded. */
double fgi_dual_multipliers(const fgi_dual_state *dual, const fgi_model *m);
/* The state of factor v with the largest theta_f(y) + sum_q g[q][y_q]; returns its value, -INFINITY if there is none.
 */
double fgi_dual_argmax(fgi_dual_state *dual, const fgi_model *m, const fgi_view *v, int32_t *y);
/* Ends a solver whose model has been proven infeasible. */
void fgi_dual_infeasible(fgi_solver *solver);

#endif
