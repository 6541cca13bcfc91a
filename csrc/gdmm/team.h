/* gdmm/team.h - what gdmm/sweep_waves.c (sweeps in waves) and gdmm/sweep_step.c (variable by variable) share. */
#ifndef FGI_GDMM_TEAM_H
#define FGI_GDMM_TEAM_H
#include "gdmm/sweep.h"
#include "model/team.h"

struct gdmm_team {
    fgi_team team;
    gdmm_hand *hands;
    int64_t entries; /* entries that a sweep reads */
    double *tops;    /* per variable: its largest hat */
    gdmm_tops *blocks;
    fgi_arena arena;
};

/* The work of a message, in entries of a table or so. */
int64_t gdmm_link_work(const gdmm *g, const fgi_link *l);
/* The rest of a sweep by all threads, variable by variable; as gdmm_team_step. */
int gdmm_sweep_in_step(gdmm *g, gdmm_sweep *sweep);

#endif
