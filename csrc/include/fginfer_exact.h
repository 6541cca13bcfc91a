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
int64_t fgi_model_factors(const fgi_model *m);            /* of two or more variables: others are folded */
int64_t fgi_model_entries(const fgi_model *m);            /* values of its dense tables, each shared table once */
void fgi_model_cards(const fgi_model *m, int32_t *cards); /* label counts */

/* Connected components, numbered from 0 in the order of their first variable; returns how many. component: one per
 * variable. */
int64_t fgi_components(const fgi_model *m, int32_t *component);
/* All components as models of their own. */
typedef struct fgi_split fgi_split;
fgi_rc fgi_split_create(const fgi_model *m, fgi_split **out, fgi_error *err);
int64_t fgi_split_count(const fgi_split *s);
int64_t fgi_split_size(const fgi_split *s, int64_t which);             /* variables of a component */
void fgi_split_vars(const fgi_split *s, int64_t which, int32_t *vars); /* ascending */
/* The sub-model of one component, with the constant 0. Tables that its factors share stay shared. */
fgi_rc fgi_split_model(fgi_split *s, int64_t which, fgi_model **out, fgi_error *err);
void fgi_split_free(fgi_split *s);

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
void fgi_eliminate_free(fgi_eliminate *e);

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
    int64_t variables, factors, labels; /* of the reduced model */
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
