/* dual/trws_team.h - what dual/trws_threads.c (sweeps in waves) and dual/trws_step.c (node by node) share. */
#ifndef FGI_TRWS_TEAM_H
#define FGI_TRWS_TEAM_H
#include "dual/trws_state.h"
#include "model/team.h"

/* What a visit is about. Of the state the maker of waves reads what sweeps do not change. */
typedef struct fgi_trws_visits {
    const fgi_model *m;
    fgi_trws *s;
} fgi_trws_visits;

struct fgi_trws_team {
    fgi_team team;
    fgi_trws *workers; /* the state, with scratch memory of their own */
    double *scratch;   /* scratch memory of all workers */
    /* Waves. */
    fgi_trws_visits seen; /* what waves are made from */
    double *record, *decoded;
    fgi_progress *blocks; /* what is recorded, summed by blocks of nodes */
    /* Node by node. */
    int in_step;  /* nodes have enough work for that; -1: not known yet */
    double *tops; /* largest hats of the edges of a node */
};

int64_t fgi_trws_edge_entries(const fgi_model *m, const fgi_trws_edge *e);
/* Workers see the state as it is now. */
void fgi_trws_brief(const fgi_model *m, const fgi_trws *self);
void fgi_trws_count_left_out(const fgi_trws *self);
/* The rest of a sweep by all threads, node by node. 1: complete, 0: the time is over, -1: nodes have too little work
 * for that. */
int fgi_trws_sweep_in_step(const fgi_model *m, fgi_trws *self);

#endif
