/* primal/labeling.h - a labeling that can be changed one variable at a time, at the cost of that variable's
 * neighbourhood.
 *
 * The state keeps, for every variable it has been asked about, the score of each of its labels given the rest (the
 * "label scores"), and brings them up to date when a neighbour changes: O(degree * labels) a flip, no setup. A
 * forbidden
 * (-inf) entry is never added to anything; it is counted, and labelings are compared by (violations, score), fewer
 * violations first. Everything is deterministic; ties go to the lowest label. Work is counted in operations (table
 * or score entries read), so that limits on it do not depend on the clock.
 *
 * Clients: the decoders of gdmm and trws (assign, ascend, labels), primal/icm.c, primal/search.c. One thread per
 * object. */
#ifndef FGI_LABELING_H
#define FGI_LABELING_H
#include "base/arena.h"
#include "base/util.h"
#include "model/model.h"

typedef struct fgi_labeling fgi_labeling;

/* All labels are 0 until the first assign. The model must outlive the object. NULL: out of memory. */
fgi_labeling *fgi_labeling_create(const fgi_model *m);
void fgi_labeling_free(fgi_labeling *l);
int64_t fgi_labeling_memory(const fgi_labeling *l);
/* Takes some memory to make changes of label cheaper, if variables have many neighbours (primal/effects.h). For those
 * who change labels many times; nothing but the time depends on it. */
void fgi_labeling_keep_effects(fgi_labeling *l);
/* From here on, if labels are alike, only those in use and one more are looked at (primal/choices.h). */
void fgi_labeling_narrow_choices(fgi_labeling *l);
/* How many labels of a variable are worth a look, and which; *labels NULL: all of them. Valid until the next change. */
int32_t fgi_labeling_choices(const fgi_labeling *l, int32_t var, const int32_t **labels);

/* Takes over a labeling. Only variables whose label changes cost work and join the work list, with their neighbours;
 * the first assign puts every variable there. */
void fgi_labeling_assign(fgi_labeling *l, const int32_t *labels);
/* Changes one label; the variable's neighbours, not itself, join the work list. */
void fgi_labeling_flip(fgi_labeling *l, int32_t var, int32_t label);
void fgi_labeling_push(fgi_labeling *l, int32_t var); /* onto the work list (once) */
void fgi_labeling_push_all(fgi_labeling *l);
void fgi_labeling_clear(fgi_labeling *l); /* empties the work list */

/* From here on, changes can be taken back. */
void fgi_labeling_mark(fgi_labeling *l);
/* Labels, score and violations as they were at the mark; the work list is emptied. */
void fgi_labeling_rollback(fgi_labeling *l);
double fgi_labeling_mark_score(const fgi_labeling *l);
int64_t fgi_labeling_mark_violations(const fgi_labeling *l);
void fgi_labeling_mark_labels(const fgi_labeling *l, int32_t *labels);

/* Coordinate ascent from the work list: never worsens (violations, score). Stops when the list is empty or after about
 * max_operations; returns 1 when the list is empty, i.e. when no variable that was affected can improve alone. */
int fgi_labeling_ascend(fgi_labeling *l, int64_t max_operations);

const int32_t *fgi_labeling_labels(const fgi_labeling *l);
int64_t fgi_labeling_violations(
    const fgi_labeling *l); /* forbidden unaries and factors in use; after the first assign */
double fgi_labeling_score(
    const fgi_labeling *l); /* running sum of what is not forbidden; for comparisons, never reported */
int64_t fgi_labeling_operations(const fgi_labeling *l); /* since creation */

/* Scores of all labels of a variable given the rest, and how many forbidden entries each label meets (NULL in a model
 * without any). Valid until the next change. */
const double *fgi_labeling_label_scores(fgi_labeling *l, int32_t var, const int32_t **violations);
/* The best label of a variable given the rest: the current one unless another is really better (beyond rounding). */
int32_t fgi_labeling_best_label(fgi_labeling *l, int32_t var);
/* The least difference that counts as an improvement at this score: above accumulated rounding. */
double fgi_labeling_tolerance(const fgi_labeling *l, double score);
int fgi_labeling_has_forbidden(const fgi_labeling *l); /* whether the model has any forbidden state */
double fgi_labeling_penalty(const fgi_labeling *l);    /* more than any two feasible labelings can differ */

/* ---- feasible rounding (primal/construct.c) ----------------------------------------------------------------- */

/*
 * Builds a labeling that meets all hard constraints, if propagation and a bounded amount of backtracking find one:
 * variables are fixed one after the other, each to its most preferred remaining label; the domains of the others are
 * kept generalised arc consistent on the factors with forbidden entries. Conflicts raise the weight of their factor,
 * which steers the order after a restart. Resumable: step works for about max_operations and returns.
 */
typedef struct fgi_construct fgi_construct;

typedef enum fgi_construct_state {
    FGI_CONSTRUCT_RUNNING,
    FGI_CONSTRUCT_DONE,      /* the labels are feasible */
    FGI_CONSTRUCT_GAVE_UP,   /* variables not fixed have their most preferred label */
    FGI_CONSTRUCT_INFEASIBLE /* proven: no labeling is feasible */
} fgi_construct_state;

fgi_construct *fgi_construct_create(const fgi_model *m); /* NULL: out of memory. The model must outlive the object. */
void fgi_construct_free(fgi_construct *c);
int64_t fgi_construct_memory(const fgi_construct *c); /* bytes */
/* Starts a construction. Preferences are laid out as the unaries (higher is better) and copied; NULL: the unaries.
 * `greedy` adds to them the best that each factor can still give under the current domains (a look-ahead). With a
 * `hint`, that label is tried first where it is still allowed. At most `max_backtracks` before giving up. */
void fgi_construct_start(
    fgi_construct *c, const double *preferences, const int32_t *hint, int greedy, int64_t max_backtracks);
fgi_construct_state fgi_construct_step(fgi_construct *c, int64_t max_operations);
/* Valid when the state is not RUNNING. */
const int32_t *fgi_construct_labels(const fgi_construct *c);
int64_t fgi_construct_operations(const fgi_construct *c); /* since creation */

/* All of it in one call: constructs with at most max_operations of work, assigns the result. Returns 1 if it is
 * feasible. */
int fgi_labeling_construct(fgi_labeling *l, fgi_construct *c, const double *preferences, const int32_t *hint,
    int greedy, int64_t max_operations);

#endif
