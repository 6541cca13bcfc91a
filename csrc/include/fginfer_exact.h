/*
 * fginfer_exact.h - exact methods: elimination, subsets given the rest, components, presolve, minimum cuts.
 *
 * The conventions of fginfer.h hold here too. Limits are counted in steps of work, not in time, so that results do not depend on
 * the speed of the machine; the calls that can take long are run in slices with a deadline, and keep their place.
 */
#ifndef FGINFER_EXACT_H
#define FGINFER_EXACT_H
#include "fginfer.h"

/* ---- what a model looks like -------------------------------------------------------------------------------- */

int64_t fgi_model_variables(const fgi_model *m);
int64_t fgi_model_factors(const fgi_model *m);
int64_t fgi_model_entries(const fgi_model *m);            /* values of its dense tables, each shared table once */
void fgi_model_cards(const fgi_model *m, int32_t *cards); /* label counts */

/* Connected components, numbered from 0 in the order of their first variable; returns how many. component: one per variable. */
int64_t fgi_components(const fgi_model *m, int32_t *component);
/* The sub-model of one component, with the constant 0; `vars` takes its variables, ascending (room for all of them), and *n how
 * many there are. Tables that its factors share stay shared. */
fgi_rc fgi_component_model(const fgi_model *m, const int32_t *component, int32_t which, int32_t *vars, int64_t *n, fgi_model **out, fgi_error *err);

/* ---- bucket elimination ------------------------------------------------------------------------------------- */

typedef struct fgi_eliminate_info {
    int32_t status;        /* FGI_RUNNING, FGI_OPTIMAL or FGI_INFEASIBLE */
    int32_t width;         /* induced width of the order found; -1: none within the effort */
    double memory;         /* bytes a run needs at its peak; INFINITY where there is no order */
    double work;           /* table entries a run computes */
    double done;           /* fraction of the work done */
    double value;          /* the optimum, once status says so; -INFINITY: infeasible */
} fgi_eliminate_info;

typedef struct fgi_eliminate fgi_eliminate;

/* Looks for an elimination order with at most `effort` steps (<= 0: a default) and estimates what a run would cost; nothing else
 * is allocated yet. Orders with a table beyond `memory` bytes are not pursued. Forests are the special case of width 1. */
fgi_rc fgi_eliminate_create(const fgi_model *m, double memory, double effort, fgi_eliminate **out, fgi_error *err);
void fgi_eliminate_info_get(const fgi_eliminate *e, fgi_eliminate_info *info);
/* Works for about `seconds` (< 0: to the end). FGI_UNSUPPORTED, before anything is allocated, when the estimate exceeds `memory`. */
fgi_rc fgi_eliminate_run(fgi_eliminate *e, double seconds, fgi_eliminate_info *info, fgi_error *err);
/* An optimal labeling; returns 0 and leaves `labels` alone unless the status is FGI_OPTIMAL. */
int fgi_eliminate_labels(fgi_eliminate *e, int32_t *labels);
void fgi_eliminate_free(fgi_eliminate *e);

/* Exact re-optimisation of a subset of the variables given the others: the move of large-neighbourhood search. The scratch holds
 * a snapshot of the model and keeps its memory between calls; one per thread. */
typedef struct fgi_subset fgi_subset;
fgi_rc fgi_subset_create(const fgi_model *m, fgi_subset **out, fgi_error *err);
/* `subset` lists n different variables. Their labels are replaced by an optimal choice given the rest, and *gain is by how
 * much that raises the score: 0 leaves the labels alone; INFINITY: from infeasible to feasible.
 * Gives up with FGI_UNSUPPORTED, nothing changed, when a table of more than max_table entries would be needed.
 * Forbidden entries count as `forbidden` each: -INFINITY, or a large negative number to repair an infeasible labeling. */
fgi_rc fgi_eliminate_subset(fgi_subset *w, int32_t *labels, const int32_t *subset, int64_t n, int64_t max_table, double forbidden, double *gain);
double fgi_subset_work(const fgi_subset *w); /* table entries computed by the last call */
void fgi_subset_free(fgi_subset *w);

#endif
