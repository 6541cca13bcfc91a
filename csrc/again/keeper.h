/* again/keeper.h - the state of a keeper: see fginfer_again.h for what it is.
 *
 * Invariants, between two calls:
 * 1. mu is finite. theta'_i = theta_i + sum of its messages, theta'_f = theta_f - its messages: the same scores.
 * 2. The top of every term is no less than the exact maximum of its theta'; its value is its score at the labels.
 * 3. A term whose top lies above its theta' at the labels is in or beside a variable of `dirty`.
 * 4. A factor with full_at = q + 1 has messages to its variable q that are its max-marginals given the others: to make
 *    them again would change nothing. 0: there is no such variable.
 * 5. A label that cannot be used has a message of -wall in a factor that forbids it, so that it is never a maximum.
 *
 * Changes write to the terms they are about and put variables on `dirty`. A step of work (again/rounds.c) goes through
 * these, a region after the other: dirty variables side by side and their neighbourhood. A round is one iteration of
 * sequential reweighted message passing on a region alone (again/visit.c; the formulas are in model/reweight.h), as if
 * all other labels were free and had no scores of their own. A region has a few rounds while its numbers are in the
 * cache; what does not agree then waits for the next step, with wider neighbourhoods. */
#ifndef FGI_KEEPER_H
#define FGI_KEEPER_H
#include "again/terms.h"
#include "base/arena.h"
#include "base/kernels.h"
#include "fginfer_again.h"
#include "model/model.h"

enum { FGI_KEEPER_WAITS = 2 };  /* is_dirty of a variable of `waiting` */
enum { FGI_KEEPER_ARITY = 16 }; /* variables of a factor at most: as methods see factors, see fgi_model_normalised */

/* A factor of a variable. */
typedef struct fgi_keeper_link {
    fgi_view view;
    double *mu;  /* messages of the factor, one variable after the other */
    double *own; /* messages to this variable */
    int32_t factor, position;
    uint8_t onwards, before; /* has it a variable still to come in this sweep, or one that has been visited? */
} fgi_keeper_link;

struct fgi_keeper {
    const fgi_kernels *k;
    fgi_model *m; /* own: numbers are written to it */
    double constant, largest, wall;
    int64_t n_vars, n_base, n_factors; /* factors of the model come first */
    fgi_view *added;                   /* factors that came later; each owns its variables and values */
    uint8_t *gone, *full_at;           /* per factor */
    int64_t *mu_begin;                 /* per factor */
    double *mu;
    int64_t added_room, factor_room, n_mu, mu_room;
    int32_t *first_slot; /* per variable: its last added factor, -1 for none; NULL: there are no added factors */
    fgi_array slots;     /* pairs of int32: an added factor, and the slot that comes next */
    fgi_terms vars, factors;
    int32_t *labels, *trial;
    fgi_array dirty; /* int32: variables at which work begins */
    uint8_t *is_dirty;
    fgi_array waiting; /* int32: those of a step, which wait for their turn; empty between two calls */
    /* Rounds. */
    fgi_array active; /* int32: variables of the round, ascending once it begins */
    uint8_t *is_active;
    fgi_array moved;  /* int32: variables whose trial label is another one */
    fgi_array joined; /* int32: a set of them that factors join */
    int32_t radius;
    double slack; /* a term that is off by no more agrees */
    /* One visit. */
    fgi_keeper_link *links;
    int64_t links_room;
    double *hat, *given, *weight_of, *out, *h, *scratch;
    int64_t scratch_room;
    fgi_keeper_info info;
    fgi_arena arena;
};

static inline fgi_view fgi_keeper_view(const fgi_keeper *s, int64_t f) {
    return f < s->n_base ? fgi_factor_view(s->m, f) : s->added[f - s->n_base];
}

/* The factors of a variable, those of the model first; begins with {0, first slot}. */
typedef struct fgi_keeper_walk {
    int64_t at;
    int32_t slot;
} fgi_keeper_walk;

static inline fgi_keeper_walk fgi_keeper_walk_begin(const fgi_keeper *s, int32_t i) {
    return (fgi_keeper_walk){s->m->s->adj_begin[i], s->first_slot ? s->first_slot[i] : -1};
}
/* The next one that is still there; -1: there are no more. */
static inline int32_t fgi_keeper_walk_next(const fgi_keeper *s, int32_t i, fgi_keeper_walk *w) {
    const fgi_structure *st = s->m->s;
    while (w->at < st->adj_begin[i + 1]) {
        const int32_t f = st->adj[w->at++];
        if (!s->gone[f]) return f;
    }
    while (w->slot >= 0) {
        const int32_t *slot = (const int32_t *)s->slots.at + 2 * (int64_t)w->slot;
        w->slot = slot[1];
        if (!s->gone[slot[0]]) return slot[0];
    }
    return -1;
}

/* Score of a factor at labels. */
static inline double fgi_keeper_score(const fgi_keeper *s, const fgi_view *v, const int32_t *labels) {
    return fgi_view_score(s->m, v, labels);
}

static inline void fgi_keeper_put_dirty(fgi_keeper *s, int32_t i) {
    if (s->is_dirty[i]) return;
    s->is_dirty[i] = 1;
    ((int32_t *)s->dirty.at)[s->dirty.n++] = i; /* it has room for all variables */
}

/* A change at a variable: work begins with the smallest neighbourhoods. */
static inline void fgi_keeper_changed_at(fgi_keeper *s, int32_t i) {
    fgi_keeper_put_dirty(s, i);
    s->radius = 1;
}

static inline double *fgi_keeper_mu(const fgi_keeper *s, const fgi_view *v, int64_t f, int32_t position) {
    double *mu = s->mu + s->mu_begin[f];
    for (int32_t q = 0; q < position; q++) mu += s->m->s->cards[v->vars[q]];
    return mu;
}

/* The numbers of variables that are to come in a list that leads all over the model are fetched while others are at
 * work: offsets first, then what they lead to, then what that leads to. */
void fgi_keeper_fetch(const fgi_keeper *s, const int32_t *list, int64_t n, int64_t at);
/* again/visit.c. Makes a term anew from its numbers and messages. */
void fgi_keeper_refresh_variable(fgi_keeper *s, int32_t i);
void fgi_keeper_refresh_factor(fgi_keeper *s, int64_t f);
/* All that happens at a variable in one sweep: forwards it gets its trial label, backwards what does not agree with the
 * labels becomes dirty. 0: it has no label left. */
int fgi_keeper_visit(fgi_keeper *s, int32_t i, int forward);
/* How far the label of the variable, and the states of a factor, lie below the tops. */
double fgi_keeper_variable_slack(const fgi_keeper *s, int32_t i);
double fgi_keeper_factor_slack(const fgi_keeper *s, int64_t f, const fgi_view *v);
/* Room for what a visit of a variable with so many factors needs, and factors with so many states; 0: no memory. */
int fgi_keeper_reserve(fgi_keeper *s, int64_t degree, int64_t states);

#endif
