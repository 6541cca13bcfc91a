/* gdmm/sweep.h - what the files of the sweeps share: gdmm/sweep.c walks, gdmm/closer.c looks closely at the labels that
 * may be best, gdmm/sweep_waves.c and gdmm/sweep_step.c walk with several threads. */
#ifndef FGI_GDMM_SWEEP_H
#define FGI_GDMM_SWEEP_H
#include "gdmm/gdmm.h"
#include "oracle/marginals.h"
#include "model/reweight.h"

/* What a thread has of its own. */
typedef struct gdmm_hand {
    gdmm_worker *worker;
    double *hat, *given;
    const double **delta; /* messages of a factor of more than two variables */
    int32_t *cards;       /* how many labels these messages are for */
    int32_t *pick;        /* labels to look at closely */
    int64_t entries;      /* entries read since they were last counted */
    char rest[64];        /* a cache line between what two threads write */
} gdmm_hand;

typedef struct gdmm_team gdmm_team;

/* Largest hats are summed by blocks of so many places of a sweep, and the blocks in their order: several threads find
 * what one finds. */
enum { GDMM_SWEEP_BLOCK = 1 << 12 };
typedef struct gdmm_tops {
    fgi_sum sum;
    double magnitude;
} gdmm_tops;

static inline void gdmm_tops_add(gdmm_tops *t, double top) {
    fgi_sum_add(&t->sum, top);
    t->magnitude += fabs(top);
}

struct gdmm_sweep {
    fgi_link *links;   /* in the order of adj */
    int64_t *mu_begin; /* per factor: its first message */
    double *mu;        /* as in fgi_solver_messages; GDMM_FORBIDDEN at labels that are */
    int forward, decode;
    int fresh;             /* no sweep has come before this one: all messages are to be collected */
    int64_t node, edge;    /* where the sweep goes on */
    gdmm_tops tops, block; /* tops of the blocks before, and of the one under way */
    double model_magnitude;
    double loaded;   /* the largest multipliers of all slots, where they were loaded */
    double *largest; /* the same by blocks of slots */
    gdmm_hand hand;
    gdmm_team *team; /* NULL: one thread */
    double *cap;     /* per slot: where mu is w max(a) + cap it may be too large (oracle/sliced.h); -INFINITY: exact */
    int32_t *rows;   /* per slot: how many rows its bounds are made of */
    double *peaks;   /* per slot: what bounds leave for exact numbers (oracle/marginals.h) */
    int32_t *labels; /* decoded in the forward sweep */
    fgi_arena arena;
};

/* The messages of the other variable of a pairwise factor. */
static inline const double *gdmm_sweep_other(const gdmm_sweep *sweep, const fgi_view *v, const fgi_link *l) {
    return sweep->mu + sweep->mu_begin[l->factor] + (l->position ? 0 : v->rows);
}

/* What is left by bounds that are made of these. There is room for another cell than whole ones for every slot. */
static inline double *gdmm_sweep_peaks(const gdmm *g, const gdmm_sweep *sweep, const fgi_view *v, const fgi_link *l) {
    const int64_t slot = fgi_factor_begin(g->model->s, l->factor) + 1 - l->position;
    return sweep->peaks + (gdmm_sweep_other(sweep, v, l) - sweep->mu) / FGI_SLICED_CELL + slot;
}

static inline int64_t gdmm_sweep_slot(const gdmm *g, const fgi_link *l) {
    return fgi_factor_begin(g->model->s, l->factor) + l->position;
}

/* The variable at a place of the sweep. */
static inline int32_t gdmm_sweep_variable(const gdmm *g, const gdmm_sweep *sweep, int64_t place) {
    return (int32_t)(sweep->forward ? place : g->model->s->n_vars - 1 - place);
}

/* Has a variable whose largest hat is this a label left? */
static inline int gdmm_is_feasible(double top) { return top > -0.5 * GDMM_FORBIDDEN; }

/* gdmm/sweep.c */
void gdmm_hand_take(const gdmm *g, gdmm_hand *d, gdmm_worker *worker, fgi_arena *arena);
int gdmm_is_wanted(const gdmm *g, const gdmm_sweep *sweep, const fgi_link *l); /* is this message to be collected? */
int64_t gdmm_collect(gdmm *g, gdmm_sweep *sweep, gdmm_hand *d, const fgi_link *l); /* returns the entries read */
/* All of a variable, messages included. Returns its largest hat, which gdmm_sweep_take adds to the bound; where that is
 * not feasible, no labeling is. */
double gdmm_visit(gdmm *g, gdmm_sweep *sweep, gdmm_hand *d, int32_t i);
int gdmm_sweep_alone(gdmm *g, gdmm_sweep *sweep);    /* a piece of the sweep by one thread, as gdmm_sweep_step */
void gdmm_sweep_take(gdmm_sweep *sweep, double top); /* takes the top of the variable at sweep->node */
void gdmm_sweep_join(gdmm_sweep *sweep);             /* a block is complete */
/* Parts of a visit, for the labels begin .. end: what forbids labels and finds the largest hat, what decodes (the best
 * of them, or -1; d->given has their scores), what hands hat out to the factors. */
int gdmm_visit_forbid(gdmm *g, const double *hat, int32_t i, int32_t begin, int32_t end, double *top);
int32_t gdmm_visit_decode(const gdmm *g, const gdmm_sweep *sweep, gdmm_hand *d, int32_t i, int32_t begin, int32_t end);
void gdmm_visit_share(const gdmm *g, gdmm_sweep *sweep, double *hat, double top, int some_forbidden, int32_t i,
    int32_t begin, int32_t end);

/* gdmm/sweep_waves.c: a sweep by several threads, with the bits of one. */
enum { GDMM_ALONE = 2 }; /* one thread is to go on */
int gdmm_team_create(const gdmm *g, gdmm_sweep *sweep);
void gdmm_team_free(gdmm_team *t);
void gdmm_team_rest(gdmm_team *t);              /* nobody looks at the model until the next step */
int gdmm_team_step(gdmm *g, gdmm_sweep *sweep); /* until the time is over; as gdmm_sweep_step, or GDMM_ALONE */

/* gdmm/closer.c: a message from a sliced table, made of bounds; returns the entries read. */
int64_t gdmm_loose_marginal(gdmm *g, gdmm_sweep *sweep, gdmm_hand *d, const fgi_view *v, const fgi_link *l);
/* The messages and hat of variable i are made exact where hat may be largest, or nearly. */
void gdmm_settle(gdmm *g, gdmm_sweep *sweep, gdmm_hand *d, int32_t i);

#endif
