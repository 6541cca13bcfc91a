/* gdmm/sweep.h - what the files of the sweeps share: gdmm/sweep.c walks, gdmm/closer.c looks closely at the labels that
 * may be best. */
#ifndef FGI_GDMM_SWEEP_H
#define FGI_GDMM_SWEEP_H
#include "gdmm/gdmm.h"

struct gdmm_sweep {
    int64_t *offset;     /* of a slot in mu */
    double *mu;          /* of every label of a slot, followed by its n: they are used together */
    int32_t *last;       /* per factor: the position that was visited last, whose n is up to date; -1: none */
    uint8_t *reach;      /* per slot: LATER and EARLIER, where the other variables of the factor are */
    int32_t *onwards[2]; /* per variable: factors that reach an earlier, a later variable */
    int forward, decode;
    int64_t node, edge; /* where the sweep goes on */
    fgi_sum sum;
    double magnitude, model_magnitude;
    double loaded; /* the largest multipliers of all slots, where they were loaded */
    double *hat, *given, *h;
    double *cap;     /* per slot: where n is w max(a) + cap it may be too large, see model/sliced.h; -INFINITY: exact */
    int32_t *pick;   /* labels to look at closely */
    int32_t *rows;   /* per slot: how many rows its bounds are made of */
    int32_t *labels; /* decoded in the forward sweep */
};

/* gdmm/closer.c: n of a factor with a sliced table, made of bounds; returns the entries read. */
int64_t gdmm_loose_marginal(gdmm *g, gdmm_sweep *s, const fgi_view *v, int64_t first, int32_t position, double *out);
/* n and hat of variable i are made exact where hat may be largest, or nearly. */
void gdmm_settle(gdmm *g, gdmm_sweep *s, int32_t i);

#endif
