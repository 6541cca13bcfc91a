/* gdmm/sweep.h - what the files of the sweeps share: gdmm/sweep.c walks, gdmm/closer.c looks closely at the labels that
 * may be best. */
#ifndef FGI_GDMM_SWEEP_H
#define FGI_GDMM_SWEEP_H
#include "gdmm/gdmm.h"
#include "model/reweight.h"

struct gdmm_sweep {
    fgi_link *links;   /* in the order of adj */
    int64_t *mu_begin; /* per factor: its first message */
    double *mu;        /* as in fgi_solver_messages; GDMM_FORBIDDEN at labels that are */
    int forward, decode;
    int fresh;          /* no sweep has come before this one: all messages are to be collected */
    int64_t node, edge; /* where the sweep goes on */
    fgi_sum sum;
    double magnitude, model_magnitude;
    double loaded; /* the largest multipliers of all slots, where they were loaded */
    double *hat, *given, *h;
    double *minus, *scratch; /* for factors of more than two variables: negated messages, and their maxima */
    const double **g;
    double *cap;     /* per slot: where mu is w max(a) + cap it may be too large (model/sliced.h); -INFINITY: exact */
    int32_t *pick;   /* labels to look at closely */
    int32_t *rows;   /* per slot: how many rows its bounds are made of */
    int32_t *labels; /* decoded in the forward sweep */
    fgi_arena arena;
};

/* The messages of the other variable of a pairwise factor. */
static inline const double *gdmm_sweep_other(const gdmm_sweep *s, const fgi_view *v, const fgi_link *l) {
    return s->mu + s->mu_begin[l->factor] + (l->position ? 0 : v->rows);
}

static inline int64_t gdmm_sweep_slot(const gdmm *g, const fgi_link *l) {
    return fgi_factor_begin(g->model->s, l->factor) + l->position;
}

/* gdmm/closer.c: a message from a sliced table, made of bounds; returns the entries read. */
int64_t gdmm_loose_marginal(gdmm *g, gdmm_sweep *s, const fgi_view *v, const fgi_link *l);
/* The messages and hat of variable i are made exact where hat may be largest, or nearly. */
void gdmm_settle(gdmm *g, gdmm_sweep *s, int32_t i);

#endif
