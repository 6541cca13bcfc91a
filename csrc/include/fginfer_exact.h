/*
 * fginfer_exact.h - exact methods: elimination, subsets given the rest, components, presolve, minimum cuts.
 *
 * The conventions of fginfer.h hold here too. Limits are counted in steps of work, not in time, so that results do not
 * depend on the speed of the machine; the calls that can take long are run in slices with a deadline, and keep their
 * place.
 */
#ifndef FGINFER_EXACT_H
#define FGINFER_EXACT_H
#include "fginfer.h"

/* ---- what a model looks like -------------------------------------------------------------------------------- */

int64_t fgi_model_variables(const fgi_model *m);
int64_t fgi_model_factors(const fgi_model *m);            /* factors of two or more variables: others are folded */
int64_t fgi_model_entries(const fgi_model *m);            /* values of its dense tables, each shared table once */
void fgi_model_cards(const fgi_model *m, int32_t *cards); /* label counts */

/* Connected components, numbered from 0 in the order of their first variable; returns how many. component: one per
 * variable. */
int64_t fgi_components(const fgi_model *m, int32_t *component);
/* All components as models of their own. */
typedef struct fgi_split fgi_split;
fgi_rc fgi_split_create(const fgi_model *m, fgi_split **out, fgi_error *err);
int64_t fgi_split_count(const fgi_split *split);
int64_t fgi_split_size(const fgi_split *split, int64_t which);             /* variables of a component */
void fgi_split_vars(const fgi_split *split, int64_t which, int32_t *vars); /* ascending */
/* The sub-model of one component, with the constant 0. Tables that its factors share stay shared. */
fgi_rc fgi_split_model(fgi_split *split, int64_t which, fgi_model **out, fgi_error *err);
void fgi_split_free(fgi_split *split);

/* ---- bucket elimination ------------------------------------------------------------------------------------- */

typedef struct fgi_eliminate_info {
    int32_t status; /* FGI_RUNNING, FGI_OPTIMAL or FGI_INFEASIBLE */
    int32_t width;  /* induced width of the order found; -1: none within the effort */
    double memory;  /* bytes a run needs at its peak; INFINITY where there is no order */
    double work;    /* table entries a run computes */
    double done;    /* fraction of the work done */
    double value;   /* the optimum, once status says so, up to `error`; -INFINITY: infeasible */
    double error;   /* no labeling has a score above value + error: rounding */
} fgi_eliminate_info;

typedef struct fgi_eliminate fgi_eliminate;

/* Looks for an elimination order with at most `effort` steps (<= 0: a default) and estimates what a run would cost;
 * nothing else is allocated yet. Orders with a table beyond `memory` bytes are not pursued. Forests are the special
 * case of width 1. */
fgi_rc fgi_eliminate_create(const fgi_model *m, double memory, double effort, fgi_eliminate **out, fgi_error *err);
void fgi_eliminate_info_get(const fgi_eliminate *e, fgi_eliminate_info *info);
/* Works for about `seconds` (< 0: to the end). FGI_UNSUPPORTED, before anything is allocated, when the estimate exceeds
 * `memory`. */
fgi_rc fgi_eliminate_run(fgi_eliminate *e, double seconds, fgi_eliminate_info *info, fgi_error *err);
/* An optimal labeling; returns 0 and leaves `labels` alone unless the status is FGI_OPTIMAL. */
int fgi_eliminate_labels(fgi_eliminate *e, int32_t *labels);
/* The variables in the order in which they go; 0: there is none. */
int fgi_eliminate_order(const fgi_eliminate *e, int32_t *order);
void fgi_eliminate_free(fgi_eliminate *e);

/* ---- the best labelings in order ------------------------------------------------------------------------------ */

/* Given the messages of elimination, the score of any labeling is the optimum minus a loss for each variable, which
 * depends on the labels of the variables eliminated later: labelings come in the order of their losses, one for each
 * call, and none is lost among ties. */
typedef struct fgi_ranked fgi_ranked;

/* At most `most` labelings will be asked for (< 0: any number, at the price of memory). FGI_UNSUPPORTED where the
 * messages need more than `memory` bytes; `effort` is that of fgi_eliminate_create. */
fgi_rc fgi_ranked_create(
    const fgi_model *m, double memory, double effort, int64_t most, fgi_ranked **out, fgi_error *err);
/* The next labeling. *status is FGI_OPTIMAL: here it is, and neither it nor any that has not been given yet has a score
 * above *bound; FGI_INFEASIBLE: there is none left; FGI_RUNNING: about `seconds` (< 0: no limit) were not enough for
 * the messages, call again. */
fgi_rc fgi_ranked_next(fgi_ranked *r, double seconds, int32_t *labels, double *bound, int32_t *status, fgi_error *err);
void fgi_ranked_free(fgi_ranked *r);

/* ---- marginals and max-marginals ------------------------------------------------------------------------------ */

/* FGI_BELIEFS_SUM: log Z = log of the sum of exp(score) over all labelings, and P(variable = label); FGI_BELIEFS_MAX:
 * the best score of all, and of the labelings with each label. Two passes over the buckets of an elimination. Where
 * their tables do not fit, a *cut set* of variables is held: all joint labels of it are runs of their own, which the
 * caller goes through with fgi_beliefs_hold and adds up. */
enum { FGI_BELIEFS_MAX = 0, FGI_BELIEFS_SUM = 1 };

typedef struct fgi_beliefs_info {
    int32_t status; /* FGI_RUNNING; FGI_OPTIMAL: done; FGI_INFEASIBLE: every labeling of this run is forbidden */
    int32_t width;
    double memory; /* bytes */
    double work;   /* joint states of a pass */
    double runs;   /* joint labels of the cut set; 1: there is none */
    double value;  /* log Z, or the best score, of this run: the constant of the model included */
    double done;   /* fraction of this run */
} fgi_beliefs_info;

typedef struct fgi_beliefs fgi_beliefs;

/* `held` (one a variable; NULL: none) is in the cut set from the start. Looks for an order with about `effort` steps
 * (<= 0: a default), again for each variable that is held for want of memory. FGI_UNSUPPORTED: none fits into `memory`
 * bytes. The cut set is held at its first labels. */
fgi_rc fgi_beliefs_create(const fgi_model *m, int32_t kind, const uint8_t *held, double memory, double effort,
    fgi_beliefs **out, fgi_error *err);
void fgi_beliefs_info_get(const fgi_beliefs *b, fgi_beliefs_info *info);
int64_t fgi_beliefs_cut(const fgi_beliefs *b, int32_t *vars); /* how many; vars may be NULL */
/* Begins a new run with these labels of the cut set (NULL: the first ones). */
fgi_rc fgi_beliefs_hold(fgi_beliefs *b, const int32_t *labels, fgi_error *err);
/* Works for about `seconds` (< 0: to the end): the value, and with `both` passes the beliefs. */
fgi_rc fgi_beliefs_run(fgi_beliefs *b, int32_t both, double seconds, fgi_beliefs_info *info, fgi_error *err);
/* One number for each label of each variable; returns 0 unless both passes are done. */
int fgi_beliefs_get(const fgi_beliefs *b, double *out);
/* `count` labelings with the probabilities of this run, after the first pass of a sum and before the second; returns
 * 0 where there are none. *state is that of the random numbers. */
int fgi_beliefs_sample(fgi_beliefs *b, int64_t count, uint64_t *state, int32_t *out);
void fgi_beliefs_free(fgi_beliefs *b);

/* ---- clauses that contradict each other ------------------------------------------------------------------------ */

/* Literal 2 v says that v is true, 2 v + 1 that it is false. Clauses are asked about again and again, with other
 * literals assumed; what was learnt is kept. */
typedef struct fgi_clauses fgi_clauses;

/* Clause k has the literals [begin[k] .. begin[k+1]), no variable twice. */
fgi_rc fgi_clauses_create(int32_t n_vars, int64_t n_clauses, const int64_t *begin, const int32_t *literals,
    fgi_clauses **out, fgi_error *err);
/* What is asked from now on: can all of these literals be true? No variable twice. */
fgi_rc fgi_clauses_ask(fgi_clauses *c, const int32_t *literals, int32_t n, fgi_error *err);
/* Works for about `seconds` (< 0: to the end). *status is FGI_RUNNING, FGI_OPTIMAL: they can, or FGI_INFEASIBLE. */
fgi_rc fgi_clauses_run(fgi_clauses *c, double seconds, int32_t *status, fgi_error *err);
/* After FGI_INFEASIBLE: those of the literals that cannot be true together (none: the clauses have no solution at all);
 * returns how many. out has room for all that were asked about. */
int64_t fgi_clauses_core(const fgi_clauses *c, int32_t *out);
void fgi_clauses_values(const fgi_clauses *c, uint8_t *out); /* after FGI_OPTIMAL: one a variable */
void fgi_clauses_free(fgi_clauses *c);

/* ---- presolve ----------------------------------------------------------------------------------------------- */

/* Each reduction keeps at least one optimal labeling; any set of them may be combined. */
typedef enum fgi_reduction {
    FGI_REDUCE_FIX = 1, /* variables with one label left are put into their factors */
    FGI_REDUCE_PROPAGATE =
        2, /* labels without a finite state in some factor are removed (generalised arc consistency) */
    FGI_REDUCE_DOMINATE = 4,     /* dead-end elimination, simple and Goldstein's */
    FGI_REDUCE_MERGE = 8,        /* factors over the same variables, or over a part of another's, are added up */
    FGI_REDUCE_SPLIT = 16,       /* a variable on which a factor depends only by a sum is taken out of it */
    FGI_REDUCE_LEAVES = 32,      /* variables of at most one factor are maximised out */
    FGI_REDUCE_CHAINS = 64,      /* and variables of more factors, where the new table is small */
    FGI_REDUCE_ROOF = 128,       /* binary pairwise models: persistent labels from roof duality */
    FGI_REDUCE_SUBSTITUTE = 256, /* variables whose label is a function of another's are written as that */
    FGI_REDUCE_ALL = 511
} fgi_reduction;

typedef struct fgi_presolve_options {
    int32_t reductions;  /* sum of fgi_reduction */
    double work;         /* most steps (about one table entry each); <= 0: a few passes over the model, up to 4e7, and
                            again over what is left for as long as they remove a fourth of the factors */
    double seconds;      /* time limit, after which what was done is used; < 0: none */
    int64_t table_limit; /* largest table made by FGI_REDUCE_CHAINS; <= 0: 4096 */
    const int32_t *cancelled; /* looked at now and then: once it is not 0 the call ends soon; NULL: never */
    double least; /* the score of a labeling in hand, or a cutoff: labelings below it may be lost, and penalties
                          * with which none reaches it become hard constraints; -INFINITY: none */
} fgi_presolve_options;

fgi_presolve_options fgi_presolve_options_default(void); /* everything, without limits */

typedef struct fgi_presolve_info {
    int32_t infeasible;                 /* proven */
    int32_t complete;                   /* nothing that pays was left when it ended; 0: the limits came first */
    int64_t variables, factors, labels; /* size of the reduced model */
    int64_t labels_propagated, labels_dominated, labels_persistent;
    int64_t variables_fixed, leaves, chains, substituted;
    int64_t factors_merged, factors_split; /* split: variables taken out of factors */
    double roof_bound; /* upper bound of roof duality on the model then left; INFINITY: not computed */
    int64_t penalties; /* scores that were made hard constraints */
    double error;      /* by which rounding may have changed the score of a labeling, or lost a better one */
    double work, seconds;
} fgi_presolve_info;

typedef struct fgi_presolve fgi_presolve;

/* Reduces the model to a fixed point, or as far as the limits allow; the result is always valid. When the model is
 * infeasible the reduced model is the original one. */
fgi_rc fgi_presolve_create(const fgi_model *m, const fgi_presolve_options *o, fgi_presolve **out, fgi_error *err);
/* The reduced model, owned by the handle; take a snapshot to keep it. Its variables are those left, in their old order.
 */
const fgi_model *fgi_presolve_model(const fgi_presolve *p);
void fgi_presolve_info_get(const fgi_presolve *p, fgi_presolve_info *info);
/* Labels of the original model from labels of the reduced one: the same score (up to rounding) or, where `reduced` is
 * not feasible, any. An optimal labeling expands to an optimal one. */
fgi_rc fgi_presolve_expand(const fgi_presolve *p, const int32_t *reduced, int32_t *labels, fgi_error *err);
/* The other way, as a start for searches: each variable left keeps its label if that is left too, else it takes its
 * best single label. */
void fgi_presolve_restrict(const fgi_presolve *p, const int32_t *labels, int32_t *reduced);
void fgi_presolve_free(fgi_presolve *p);

/* ---- at most one -------------------------------------------------------------------------------------------- */

/* The model with a variable more for every clique of labels that exclude each other pair by pair: which of them is
 * taken, 0 being none. Labelings keep their scores, and relaxations become tighter, often by much (set packing,
 * scheduling). Pairs that cost more than what `least`, the score of a labeling in hand, leaves room for count as
 * excluded: then labelings that are no better than it may be missing. *out is NULL where few large cliques are found.
 */
typedef struct fgi_cliques fgi_cliques;
fgi_rc fgi_cliques_create(const fgi_model *m, double least, fgi_cliques **out, fgi_error *err);
const fgi_model *fgi_cliques_model(const fgi_cliques *c); /* the variables of the original come first */
void fgi_cliques_lift(const fgi_cliques *c, const int32_t *labels, int32_t *lifted);
void fgi_cliques_free(fgi_cliques *c);

/* ---- cuts --------------------------------------------------------------------------------------------------- */

/* Binary pairwise models with finite scores, by one maximum flow (what FGI_REDUCE_ROOF runs, on its own). Labels are 0,
 * 1 or -1 (open); those that are not open belong to one optimal labeling, and *bound is an upper bound on the optimum.
 * *exact: the model is submodular after flipping some labels, no label is open and the bound is the optimum. At most
 * `steps` arc visits (<= 0: no limit); when they are used up all labels are open. FGI_UNSUPPORTED for other models. */
fgi_rc fgi_roof(const fgi_model *m, double steps, int32_t *labels, double *bound, int32_t *exact, fgi_error *err);

#endif
