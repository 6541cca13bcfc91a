/* primal/trail.h - a run of changes that may make a labeling worse, and the way back to the best one it came to.
 *
 * What the tabu searches (primal/tabu.c, primal/swap.c) share: labels that were given up stay tabu for a while, changes
 * since the best labeling are noted, and a run ends where it has gone on without a better one for too long. */
#ifndef FGI_TRAIL_H
#define FGI_TRAIL_H
#include "primal/labeling.h"

typedef struct fgi_trail {
    const fgi_model *model;
    fgi_labeling *local; /* borrowed */
    int64_t *until;      /* per label, laid out as the unaries: the step from which it may be taken again */
    int64_t step;        /* steps of all runs: never reset, so that old entries are void */
    int64_t patience, stale;
    int32_t *undo;            /* changes since the best labeling of this run: variable, label before */
    int64_t n_undo, capacity; /* changes */
    int64_t best_violations;
    double best_score;
    int failed; /* memory was short for `undo` */
} fgi_trail;

/* In memory of the arena, which remembers a failure. */
void fgi_trail_init(fgi_trail *t, const fgi_model *m, fgi_labeling *local, fgi_arena *arena);
void fgi_trail_free(fgi_trail *t);

/* A run begins at the present labeling; it ends after `patience` steps without a better one. */
void fgi_trail_begin(fgi_trail *t, int64_t patience);
/* Room for so many changes. Returns 0 without memory. */
int fgi_trail_reserve(fgi_trail *t, int64_t changes);

static inline int fgi_trail_goes_on(const fgi_trail *t) { return t->stale < t->patience && !t->failed; }
static inline void fgi_trail_stop(fgi_trail *t) { t->stale = t->patience; } /* the next look ends the run */
static inline void fgi_trail_next(fgi_trail *t) {                           /* a step begins */
    t->step++;
    t->stale++;
}
static inline int fgi_trail_is_held(const fgi_trail *t, int32_t var, int32_t label) {
    return t->until[t->model->s->unary_begin[var] + label] > t->step;
}

/* The label that a variable has may not come back before so many steps are over, and can be restored. */
void fgi_trail_give_up(fgi_trail *t, int32_t var, int64_t steps);
/* Whether this is better than the best of the run. */
int fgi_trail_is_better(const fgi_trail *t, int64_t violations, double score);
void fgi_trail_look(fgi_trail *t); /* a step is over: is this the best labeling? */
void fgi_trail_end(fgi_trail *t);  /* back to the best labeling */

/* Violations, score and labels of the best labeling so far. */
int64_t fgi_trail_best(const fgi_trail *t, double *score);
void fgi_trail_best_labels(const fgi_trail *t, int32_t *labels);

#endif
