/*
 * fginfer_again.h - solving a model again after a few of its numbers have changed.
 *
 * A keeper holds a labeling, messages, and every term of the labeling's score and of the bound D(mu) of
 * docs/mathematics.md. After a change it makes the changed terms anew, and improves messages and labels around those
 * terms that do not agree: what a change costs depends on how far it spreads, not on the size of the model.
 */
#ifndef FGINFER_AGAIN_H
#define FGINFER_AGAIN_H
#include "fginfer.h"

typedef struct fgi_keeper fgi_keeper;

typedef enum fgi_keeper_status {
    FGI_KEEPER_RUNNING = 0, /* the work allowed is done, there is more to do */
    FGI_KEEPER_DONE = 1,    /* the gap is small enough */
    FGI_KEEPER_STUCK = 2    /* local steps do not close the gap */
} fgi_keeper_status;

typedef struct fgi_keeper_info {
    int32_t status; /* fgi_keeper_status */
    double score;   /* score of the labels, rounded once as fgi_model_score does */
    double bound;   /* no labeling has a higher score, rounding included */
    double unit;    /* fgi_model_unit of the model as it is now */
    int64_t work;   /* entries read so far */
    int64_t visits; /* visits of variables, in all rounds */
    int64_t rounds;
} fgi_keeper_info;

/*
 * `mu` as fgi_solver_messages gives them, NULL: 0; `labels` must have a finite score. FGI_UNSUPPORTED: models with
 * leftovers, with scores far from 1 or with variables in very many factors. The keeper has a snapshot of the model.
 */
fgi_rc fgi_keeper_create(const fgi_model *m, const double *mu, const int32_t *labels, fgi_keeper **out, fgi_error *err);
void fgi_keeper_free(fgi_keeper *k);

/* ---- changes: after a call that fails nothing has changed ------------------------------------------------------ */

/* New unary scores of n variables, one after the other. */
fgi_rc fgi_keeper_set_unary(fgi_keeper *k, int64_t n, const int32_t *vars, const double *scores, fgi_error *err);
/* The unary scores of these variables (NULL: of all) as another model with the same variables has them. */
fgi_rc fgi_keeper_take_unary(fgi_keeper *k, const fgi_model *from, int64_t n, const int32_t *vars, fgi_error *err);
/* These dense tables as another model of the structure that the keeper was made with has them. */
fgi_rc fgi_keeper_take_tables(fgi_keeper *k, const fgi_model *from, int64_t n, const int32_t *tables, fgi_error *err);
fgi_rc fgi_keeper_set_constant(fgi_keeper *k, double constant, fgi_error *err);

typedef struct fgi_keeper_factor {
    int32_t kind;  /* fgi_table_kind */
    int32_t arity; /* >= 2 */
    int32_t transposed;
    const int32_t *vars;
    double weight; /* > 0 */
    double p0, p1;
    const double *values; /* entries of a dense table, copied; else NULL */
} fgi_keeper_factor;

/* A new factor; *number is what it is called by. Those of the model have their numbers in it. */
fgi_rc fgi_keeper_add_factor(fgi_keeper *k, const fgi_keeper_factor *f, int64_t *number, fgi_error *err);
fgi_rc fgi_keeper_remove_factor(fgi_keeper *k, int64_t number, fgi_error *err);

/* ---- work ------------------------------------------------------------------------------------------------------ */

/* Until the relative gap is at most `gap` (0: until nothing better is proven, see fgi_proof_tolerance), or so many
 * entries more have been read. */
fgi_rc fgi_keeper_run(fgi_keeper *k, double gap, int64_t work, fgi_keeper_info *info);
/* The model as it is now; a pass over everything where factors have come or gone. */
fgi_rc fgi_keeper_model(const fgi_keeper *k, fgi_model **out, fgi_error *err);
void fgi_keeper_labels(const fgi_keeper *k, int32_t *labels);
/* The messages of the factors that it was made with, as fgi_solver_messages gives them, and how many numbers that is.
 */
int64_t fgi_keeper_message_size(const fgi_keeper *k);
void fgi_keeper_messages(const fgi_keeper *k, double *mu);
int64_t fgi_keeper_memory(const fgi_keeper *k); /* bytes, without the model */

/* ---- many small models of one structure ----------------------------------------------------------------------- */

/* n items, one after the other in each array. What is NULL, or not listed, every item has as the model has it. */
typedef struct fgi_batch {
    int64_t n;
    const double *unary; /* all unary scores of an item; or NULL */
    int64_t n_tables;    /* dense tables that the items have of their own */
    const int32_t *tables;
    const double *values; /* values of an item's tables, in their order */
    int32_t *labels;      /* results: labels of all variables of an item */
    double *scores;       /* results: scores; -INFINITY: there is no labeling */
    double *bounds;
    int32_t *statuses; /* results: the fgi_status of an item */
} fgi_batch;

/* Solves each of them to the relative gap, whatever it takes; results do not depend on `threads`. An error's index is
 * the item; the results mean nothing then. */
fgi_rc fgi_batch_solve(const fgi_model *m, const fgi_batch *b, double gap, int32_t threads, fgi_error *err);

#endif
