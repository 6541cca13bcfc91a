/* gdmm/team.h - what gdmm/sweep_waves.c (sweeps in waves) and gdmm/sweep_step.c (variable by variable) share. */
#ifndef FGI_GDMM_TEAM_H
#define FGI_GDMM_TEAM_H
#include <stdatomic.h>
#include "base/barrier.h"
#include "gdmm/sweep.h"
#include "model/waves_maker.h"

/* What a thread has found in its labels of a variable. */
typedef struct gdmm_part {
    double top;    /* the largest hat */
    double score;  /* score of the label that decoding likes best */
    int32_t label; /* -1: none */
    int some_forbidden;
    char rest[40]; /* fills a cache line */
} gdmm_part;

struct gdmm_team {
    fgi_pool *pool;
    int threads;
    gdmm_hand *hands;
    int64_t entries; /* entries that a sweep reads */
    /* Waves. */
    const gdmm *seen; /* by the maker: what sweeps do not change */
    fgi_waves_maker *maker;
    fgi_waves *waves;
    int tried;     /* to make them */
    int under_way; /* a sweep in waves */
    double *tops;  /* per variable: its largest hat */
    gdmm_tops *blocks;
    /* Variable by variable. */
    fgi_crowd crowd;
    fgi_counter *counters;
    gdmm_part *parts;
    fgi_arena arena;
};

/* The work of a message, in entries of a table or so. */
int64_t gdmm_link_work(const gdmm *g, const fgi_link *l);
/* The rest of a sweep by all threads, variable by variable; as gdmm_team_step. */
int gdmm_sweep_in_step(gdmm *g, gdmm_sweep *s);

#endif
