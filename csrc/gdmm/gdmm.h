/* gdmm/gdmm.h - what the files of Algorithm 8 share. gdmm/gdmm.c drives; gdmm/factor.c and gdmm/variable.c are its two
 * passes; gdmm/certificate.c is the certificate; gdmm/setup.c prepares; gdmm/tables.c decides how tables are read;
 * gdmm/sweep.c and those that gdmm/sweep.h names ascend the dual; gdmm/decode.c finds labelings, gdmm/beside.c while a
 * factor pass goes on. */
#ifndef FGI_GDMM_H
#define FGI_GDMM_H
#include "base/arena.h"
#include "base/assert.h"
#include "base/array.h"
#include "base/kernels.h"
#include "primal/labeling.h"
#include "oracle/oracle.h"
#include "base/simplex.h"
#include "solver.h"

/* The multiplier of a label that cannot be used: no factor state with it can win, and no inf - inf can arise. */
#define GDMM_FORBIDDEN 0x1p600
#define GDMM_IS_FORBIDDEN(mu) ((mu) >= 0.5 * GDMM_FORBIDDEN)
#define GDMM_LARGEST 0x1p500 /* largest magnitude of a model: multipliers never come near GDMM_FORBIDDEN then */

/* Bounds on a product are made of the rows of a sliced table that have the largest messages (decision 0016). */
enum {
    GDMM_FIRST_ROWS = 32, /* rows at first */
    GDMM_LEAST_ROWS = 8   /* rows at least */
};
enum { GDMM_SLOTS = 4096 }; /* per block of a pass over slots */
enum { GDMM_BLOCK = 16 };   /* indices per block of a parallel pass, and per partial sum of a reduction */
enum { GDMM_LONGER = 8 };   /* pieces of several threads: to wake them takes as long as a tenth of a piece of one */

/* Both formulations over-relax between 1 and 2; 1.5 to 1.8 is usual (Boyd et al. 2011; decision 0016). */
#define GDMM_RELAXATION 1.5
/* Both residuals are relative and must be below this; the certificate must stand still, too (decision 0016). */
#define GDMM_CONVERGED 1e-6
/* Iterations between two looks at the balance of the residuals: a few, for them to follow. 2 and 10 take as many
 * iterations to .9995 of the way: the balance is hardly ever left. */
enum { GDMM_ADAPT_EVERY = 5 };

/* The edge (i, f): multipliers mu_if, factor marginals m = M_if y_f and variable marginals x_i, on the labels where one
 * of them is not zero (ascending). A dense slot lists every label and never grows.
 *
 * Invariants (gdmm_check): labels ascend and are the variable's; a dense slot has capacity 0 and as many as the
 * variable; m and x are never below 0, mu is a number. */
typedef struct gdmm_slot {
    int32_t n, capacity;
    int32_t *labels;
    double *mu, *m, *x;
} gdmm_slot;

/* The active states A_f of a factor, with their scores and their y_f.
 *
 * Invariants (gdmm_active_check): states are distinct and in range, none of them forbidden; y is from 0 to 1 and adds
 * up to 1, unless there is no state yet. */
typedef struct gdmm_active {
    int32_t n, capacity;
    int32_t *labels; /* arity per state */
    double *theta, *y;
} gdmm_active;

/* A binary pairwise factor with finite scores, as they are (for bounds) and, up to rounding and a constant, as
 * u0 [a] + u1 [b] + t [a and b]. */
typedef struct gdmm_pair {
    double at[2][2], u0, u1, t;
} gdmm_pair;

/* How a table is read by products with messages on all labels. */
typedef struct gdmm_table {
    fgi_sliced *slices;
    int sliced;       /* through them, not whole */
    int32_t products; /* noted so far, and the entries they have read */
    double touched;
} gdmm_table;

typedef struct gdmm_worker {
    fgi_oracle_scratch *oracle;
    fgi_message *messages; /* max_arity */
    double *delta;         /* max_arity * max_card */
    int32_t *cards;        /* max_arity: label counts of a factor's variables */
    double *gain;
    int64_t gain_capacity;
    double *sum;       /* max_card, by label */
    double *size;      /* max_card, by label: magnitudes of what went into a sum */
    double *value;     /* max_card, by label */
    double *candidate; /* max_card, by position in touched */
    int32_t *touched;
    uint8_t *mark;        /* all zero between variables */
    int64_t closed_forms; /* binary factors updated without an oracle */
    int64_t forbidden;    /* labels, found by the set-up */
    fgi_rc rc;
    int infeasible;
    char rest[64]; /* a cache line between what two threads count */
} gdmm_worker;

/* Labelings that are looked for beside a factor pass or a sweep. */
typedef struct gdmm_beside {
    int climbs, begun, climbed; /* an ascent from the rounding is wanted, under way, at its end */
    int searches, searched;     /* the search; so far as it was to go */
    fgi_rc rc;
} gdmm_beside;

typedef struct gdmm_propagation gdmm_propagation;

typedef struct gdmm_sweep gdmm_sweep;

typedef enum gdmm_stage {
    GDMM_PROPAGATE,
    GDMM_PREPARE,
    GDMM_SWEEP,
    GDMM_FACTORS,
    GDMM_VARIABLES,
    GDMM_BOUND,
    GDMM_DECODE,
    GDMM_SEARCH
} gdmm_stage;

typedef struct gdmm {
    fgi_solver *solver;
    const fgi_model *model;
    const fgi_kernels *kernels;
    gdmm_stage stage;
    int64_t cursor;  /* where the stage goes on after a pause */
    double deadline; /* deadline of the run under way: threads that work together look at it themselves */
    int published;   /* as printed, to be compared with */
    int dense;       /* slots list all labels */
    int sweeps_only; /* and there are so many that they have room for sweeps, not for iterations */
    /* How a run begins (gdmm/opening.c): a look is to come, it is under way, sparse iterations are on trial. */
    int looks, looking, trial;
    double trial_gap, half_sweep; /* at the last look; what a pass with messages on all labels costs */
    gdmm_table *tables;
    int64_t n_sliced; /* tables done, during the set-up */
    int has_slices;   /* some tables have been read through slices */
    int64_t on_trial; /* how many sliced tables may still turn out to be better read whole */

    double *theta; /* unaries; -INFINITY also where propagation removed a label */
    int64_t n_slots;
    int64_t *adj_slot; /* the slots of a variable, in the order of adj */
    gdmm_slot *slots;
    gdmm_active *active;
    int32_t *iota;    /* the labels of dense slots */
    double *numbers;  /* numbers of dense slots, three for every label, in the order of slots */
    int64_t *number;  /* per block of slots: where its own begin */
    int has_slots;    /* dense slots have been given theirs */
    int pass;         /* pass of the set-up that is under way */
    gdmm_pair *pairs; /* per factor, or NULL when no factor is one */
    uint8_t *is_pair;
    fgi_sorted **order; /* per table */
    int64_t n_orders;   /* tables done, during the set-up */
    fgi_sorted_builder *builder;
    int32_t *sorted; /* labels of a variable by descending theta, laid out as the unaries; NULL when dense */

    int warm;      /* multipliers come from an earlier run */
    double *given; /* messages from the caller, until the set-up is complete */
    gdmm_propagation *propagation;
    double rho, relaxation, eta; /* eta: multiplier step in units of rho */
    double scale;                /* mean range of the factors' scores */
    double primal, dual; /* residuals of the last iteration, root mean square per edge; dual relative to scale */

    double *partial;      /* per block of variables: primal and dual residual */
    fgi_sum *partial_sum; /* per block, for the certificate */
    double last_bound;    /* D(mu) at its last evaluation */

    int32_t *rounded; /* best label of every variable in the last variable pass */
    int32_t *labels;
    int offered; /* the incumbent came from outside: the next labeling starts from it */
    fgi_labeling *local;
    fgi_solver *search;     /* made when it is first due */
    double search_improved; /* its work when it last improved the incumbent */
    gdmm_beside beside;
    int64_t next_adapt, next_bound, next_decode;
    int64_t work;      /* operations of the passes so far, an estimate that is the same in every run */
    int64_t pass_work; /* work of one iteration */
    int64_t piece;     /* indices of a pass between two looks at the clock; whole blocks */
    int converged;

    gdmm_sweep *sweep;               /* where slots list all labels */
    int64_t sweep_entries;           /* table entries read by sweeps */
    double sweep_first, sweep_bound; /* bounds of the first sweep, and at the last look */
    int swept;                       /* the first phase is over */
    int is_loaded;                   /* for the certificate that is under way */
    int64_t swept_at;                /* iterations then: those of the multiplier method are counted from here */

    gdmm_worker *workers;
    int n_workers;
    fgi_arena arena; /* what lives as long as the solver and does not grow */
} gdmm;

/* Are sweeps what goes on, so that they hold the messages? */
static inline int gdmm_is_sweeping(const gdmm *g) { return g->sweep && (!g->swept || g->sweeps_only); }

/* Sweeps and iterations: what schedules and limits count. */
static inline int64_t gdmm_steps(const gdmm *g) { return g->solver->info.iterations + g->solver->info.sweeps; }

static inline int64_t gdmm_slot_blocks(const gdmm *g) { return (g->n_slots + GDMM_SLOTS - 1) / GDMM_SLOTS; }

/* Has a certificate gained next to nothing? This part of the bound was chosen: above its rounding, and below what
 * anybody would wait for. */
static inline int gdmm_stands_still(double last, double bound, double unit) {
    fgi_assert(unit >= 0);
    return last - bound < 1e-7 * fgi_larger(fabs(bound), unit);
}

/* gdmm/gdmm.c: the penalty that the residuals ask for. */
double gdmm_balanced(double rho, double primal, double dual);
/* The next piece (whole blocks) of a pass over n indices, by all threads; 1: the pass is complete. */
int gdmm_advance(gdmm *g, int64_t n, int64_t block, int64_t piece, fgi_body body, double *seconds);

static inline int64_t gdmm_degree(const gdmm *g, int64_t i) {
    fgi_assert(i >= 0 && i < g->model->s->n_vars);
    return g->model->s->adj_begin[i + 1] - g->model->s->adj_begin[i];
}

/* gdmm/setup.c */
/* Sum of the largest magnitudes of all potentials, penalties included. */
double gdmm_magnitude(const fgi_model *m, fgi_pool *pool);
/* Are the scores small enough for GDMM_FORBIDDEN to mean what it says? */
int gdmm_in_range(const fgi_model *m, fgi_pool *pool);
fgi_rc gdmm_allocate(gdmm *g, fgi_error *err);
void gdmm_release(gdmm *g);
int gdmm_prepare_step(gdmm *g); /* one bounded piece; returns 1 when set-up is complete */
/* The position of a label in a slot, made if missing (m = x = mu = 0); -1 when memory is short. */
int32_t gdmm_slot_at(gdmm_slot *slot, int32_t label);
int32_t gdmm_slot_find(const gdmm_slot *slot, int32_t label); /* -1: not listed */

/* gdmm/check.c: the invariants of slots and active states, in checked builds. */
#ifdef FGI_CHECKED
void gdmm_active_check(const gdmm *g, int64_t f);
void gdmm_check(const gdmm *g);
#endif

/* gdmm/tables.c */
fgi_rc gdmm_choose_access(gdmm *g);
void gdmm_measure_pass(gdmm *g); /* what one costs, the way that messages are kept now */
void gdmm_tables_free(gdmm *g);
void gdmm_tables_reset(gdmm *g);
int64_t gdmm_tables_copied(const gdmm *g); /* entries of columns that sweeps have copied */
int gdmm_tables_step(gdmm *g, int64_t entries);
/* The factor as the oracle's source; cards: room for max_arity numbers, which it points to. */
fgi_table_source gdmm_source(const gdmm *g, const fgi_view *v, int32_t *cards);
void gdmm_table_note(gdmm *g, const fgi_view *v, int64_t touched, int32_t products);

/* gdmm/opening.c: is a look worth it; a piece of it (1: it is over, and dense is chosen); does the trial go on; sweeps
 * instead, by a new set-up. */
int gdmm_is_worth_a_look(const gdmm *g);
int gdmm_look_step(gdmm *g);
int gdmm_trial_goes_on(gdmm *g);
void gdmm_end_trial(gdmm *g);

/* gdmm/propagate.c: one bounded piece of label removal; 1: complete, 0: more to do, -1: no feasible labeling exists. */
gdmm_propagation *gdmm_propagation_create(const gdmm *g);
int gdmm_propagate_step(gdmm *g, gdmm_propagation *p);
void gdmm_propagation_free(gdmm_propagation *p);

/* gdmm/state.c: the operations of solver.h on messages, marginals and new potentials. */
int64_t gdmm_message_size(const fgi_solver *solver);
fgi_rc gdmm_messages(const fgi_solver *solver, double *mu);
int gdmm_marginals(const fgi_solver *solver, double *x);
fgi_rc gdmm_warm_start(fgi_solver *solver, const double *mu, fgi_error *err);
fgi_rc gdmm_apply_messages(gdmm *g);
fgi_rc gdmm_start_from_labels(gdmm *g);
void gdmm_offered(fgi_solver *solver);
fgi_rc gdmm_update(fgi_solver *solver);
void gdmm_restart(gdmm *g); /* back to the preparation, with the multipliers as they are */

/* The two passes: bodies for fgi_pool_run, context is the gdmm. */
/* The oracle's answer about a factor whose messages are in w->messages. */
fgi_rc gdmm_ask(const gdmm *g, gdmm_worker *w, const fgi_view *v, const gdmm_active *a, fgi_argmax *out);
void gdmm_factor_pass(void *context, int64_t begin, int64_t end, int worker);
void gdmm_variable_pass(void *context, int64_t begin, int64_t end, int worker);

/* min over p, q in [0,1] and feasible y of (p-p0)^2 + (q-q0)^2 - tau y(1,1): a binary factor in closed form. */
void gdmm_binary_step(double p0, double q0, double tau, double *p, double *q);

/* gdmm/certificate.c: D(mu) in resumable pieces. Factors come first, then variables. */
int64_t gdmm_bound_size(const gdmm *g);
void gdmm_bound_pass(void *context, int64_t begin, int64_t end, int worker);
double gdmm_bound_value(const gdmm *g);

/* gdmm/sweep.c: dual coordinate ascent on a copy of mu. */
gdmm_sweep *gdmm_sweep_create(const gdmm *g);
void gdmm_sweep_free(gdmm_sweep *sweep);
void gdmm_sweep_rest(gdmm_sweep *sweep);            /* the model may change now: no other thread looks at it */
int64_t gdmm_sweep_memory(const gdmm_sweep *sweep); /* in bytes */
int gdmm_sweep_link_step(gdmm *g, double *seconds); /* the rest of its creation, in pieces; 1: complete */
int gdmm_sweep_load_step(gdmm *g, double *seconds); /* takes over mu, in pieces; 1: complete */
void gdmm_sweep_store(gdmm *g, const gdmm_sweep *sweep);
int gdmm_sweep_step(gdmm *g, gdmm_sweep *sweep, double *bound);
int gdmm_sweep_forward(const gdmm_sweep *sweep);            /* the direction of the sweep at hand */
const double *gdmm_sweep_messages(const gdmm_sweep *sweep); /* -INFINITY where a label is about to be forbidden */
const int32_t *gdmm_sweep_labels(const gdmm_sweep *sweep);  /* decoded by the last forward sweep */

/* gdmm/binary.c: Algorithm 9. fits: all variables binary, all factors pairwise, nothing forbidden. */
int gdmm_binary_fits(const fgi_model *m);
extern const fgi_solver_ops fgi_gdmm_binary_ops;

/* gdmm/decode.c */
int gdmm_decode_due(gdmm *g);
int gdmm_decode_step(gdmm *g); /* one bounded piece; returns 1 when the labeling is done */
int gdmm_search_due(const gdmm *g);
int gdmm_search_step(gdmm *g); /* a piece of one move; returns 1 when the move is complete */
/* The parts of these: an ascent from the rounding (a piece of it returns 1 when it was the last), a search. */
void gdmm_take_rounding(gdmm *g);
void gdmm_begin_climb(gdmm *g);
int gdmm_climb(gdmm *g, double seconds);
void gdmm_end_climb(gdmm *g);
fgi_rc gdmm_begin_search(gdmm *g);
double gdmm_search_share(const gdmm *g); /* share of the work so far */
void gdmm_end_search(gdmm *g);

/* gdmm/beside.c: what is to go on beside the factor pass or the sweep that comes next; a piece of that pass (1: it is
 * complete, and so are they); a piece of it by itself, of a gdmm (1: there is no more); what they have found. */
void gdmm_climb_beside(gdmm *g);
void gdmm_search_beside(gdmm *g);
int gdmm_factors_step(gdmm *g);
int gdmm_beside_is_over(const gdmm *g);
int gdmm_beside_piece(void *g);
void gdmm_end_beside(gdmm *g);

#endif
