/* solver.h - what all solvers share: the incumbent, the bound, the trace, the clock; and the table of methods.
 *
 * A method is a file that fills an fgi_solver_ops. It never reports a score of its own: it hands labelings to
 * fgi_solver_consider, which scores them from the tables, and bounds to fgi_solver_bound. */
#ifndef FGI_SOLVER_H
#define FGI_SOLVER_H
#include "model/model.h"
#include "model/lattice.h"
#include "base/pool.h"
#include "base/proof.h"
#include "base/util.h"

typedef struct fgi_solver_ops {
    const char *name;
    /* Allocates solver->state. Long set-up belongs into the first steps of run, where the deadline is watched. */
    fgi_rc (*create)(fgi_solver *solver, fgi_error *err);
    /* Works until fgi_clock() >= deadline, or info.iterations + info.sweeps >= iteration_limit, or info.status is set,
     * and returns. It may pause in the middle of an iteration and must look at the clock at least every few
     * milliseconds. At least one step of progress per call. It sets info.status to FGI_CONVERGED, FGI_OPTIMAL or
     * FGI_INFEASIBLE where that holds; gap and iteration limits are handled by fgi_solver_run and fgi_solver_done. */
    fgi_rc (*run)(fgi_solver *solver, double deadline, int64_t iteration_limit);
    void (*destroy)(fgi_solver *solver);
    /* The rest may be NULL. */
    void (*offered)(fgi_solver *solver); /* the incumbent was replaced from outside */
    int64_t (*message_size)(const fgi_solver *solver);
    fgi_rc (*messages)(const fgi_solver *solver, double *mu);
    fgi_rc (*warm_start)(fgi_solver *solver, const double *mu, fgi_error *err);
    int (*marginals)(const fgi_solver *solver, double *x);
    /* Can it go on with these potentials? NULL: always. */
    int (*takes)(const fgi_solver *solver, const fgi_model *fresh);
    fgi_rc (*update)(fgi_solver *solver); /* solver->model has new potentials; keep what is still useful */
    /* All or none, see fgi_solver_move_unary in fginfer.h. `ready` comes before the others: set-up and the iteration
     * under way are brought to their end, and what follows is of new numbers. `moved`: variable i has new unary scores
     * in the model; a call of `ready` with `moves` says that such calls, for all variables that ever moved, follow. */
    void (*ready)(fgi_solver *solver, int moves);
    void (*moved)(fgi_solver *solver, int32_t i);
    void (*belief)(const fgi_solver *solver, int32_t i, double *out);
    double *(*state)(fgi_solver *solver, int64_t *n);        /* where the method keeps it */
    fgi_rc (*state_set)(fgi_solver *solver, fgi_error *err); /* after the state has been written there */
    fgi_rc (*speak)(fgi_solver *solver); /* from here on every step goes to solver->proof; before the first run */
    double (*hush)(fgi_solver *solver);  /* no step is to come: closes what is open; see fgi_solver_hush */
} fgi_solver_ops;

struct fgi_solver {
    const fgi_solver_ops *ops;
    fgi_model *given; /* own snapshot of the caller's model */
    fgi_model *model; /* what methods see: the same, with scores near 1 (fgi_model_normalised); usually a snapshot */
    int exponent;     /* scores of `given` are those of `model` times 2^exponent */
    fgi_settings settings; /* rho and cutoff in the unit of `model` */
    fgi_info info;         /* score, bound, unit and rho in the unit of `model`; the cutoff hides nothing here */
    double score;          /* score of the incumbent in `given` */
    double above;          /* no smaller than its exact score, in the unit of `model` */
    int32_t *best;         /* valid when info.score > -INFINITY */
    double start_time;
    fgi_event *trace;
    int64_t n_trace, trace_capacity;
    fgi_pool *pool;      /* NULL with one thread */
    fgi_lattice lattice; /* scores that can occur */
    int has_lattice;     /* `lattice` has been looked for */
    int32_t finder;      /* fgi_finder of the labelings considered now */
    int64_t pause_at;    /* entries touched: see fgi_solver_pause_at */
    int amid;            /* the last run was ended by time */
    int has_run;         /* there was a run */
    int has_unaries;     /* which began with the labels of the unaries */
    fgi_proof *proof;    /* NULL: nobody wants one */
    fgi_rc failure;      /* an allocation failed while recording; run reports it */
    void *state;
};

/* The method of a number, NULL if there is none (methods.c, the only file that sees every method). */
const fgi_solver_ops *fgi_method_ops(int32_t method);

/* Scores the labeling from the tables; if it beats the incumbent it is copied and an event is stamped. Returns 1 then.
 */
int fgi_solver_consider(fgi_solver *solver, const int32_t *labels);
/* A valid upper bound, whatever rounding has done to its terms; kept if it is better. One event per iteration. A bound
 * of -INFINITY proves infeasibility. */
void fgi_solver_bound(fgi_solver *solver, double bound);
/* The bound that needs no messages, D(0): the sum of the maxima of all potentials. For methods that have none of their
 * own; does nothing where a bound is known. Tight on models without interactions. */
void fgi_solver_trivial_bound(fgi_solver *solver);
/* True when there is no reason to go on: status set, gap reached, iteration limit. Sets info.status. */
int fgi_solver_done(fgi_solver *solver);
/* What a labeling must beat to be of interest: the incumbent or the cutoff; -INFINITY: any will do. */
double fgi_solver_best(const fgi_solver *solver);
/* Is the incumbent above the cutoff? */
int fgi_solver_wanted(const fgi_solver *solver);
/* The same rho, or the nearest that scores can be divided by and multiples be added to. */
double fgi_solver_rho(const fgi_solver *solver, double rho);
/* How far a bound may lie above that and still prove that there is nothing better: fgi_proof_tolerance of an incumbent;
 * nothing above a cutoff, of which *infeasible* is said. */
double fgi_solver_tolerance(const fgi_solver *solver);
/* May bounds be rounded to the next score that can occur? */
int fgi_solver_in_steps(const fgi_solver *solver, const fgi_lattice *l);
/* What a labeling needs at least to be worth the search of a tree that leaves a part of the tolerance to pruning. */
double fgi_solver_goal(const fgi_solver *solver, const fgi_lattice *l);
/* No labeling is above `bound`: what those among them can have at most that are not worth a search. */
double fgi_solver_left(const fgi_solver *solver, const fgi_lattice *l, double bound);

#endif
