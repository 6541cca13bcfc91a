/* exact/placing.h - a quadratic assignment problem, its bound by dual ascent, and its parts with one thing placed.
 *
 * m things go to m places. Thing i at place j costs alone[i * m + j]; things i at j and k at l cost together
 * both[((i * m + j) * m + k) * m + l] + both[((k * m + l) * m + i) * m + j], and `lower` in any case. Invariants:
 *   1. all costs are whole numbers >= 0, or never taken (exact/lap.h);
 *   2. every placing costs the same before and after fgi_placing_ascend, unless it costs `room` or more. */
#ifndef FGI_PLACING_H
#define FGI_PLACING_H
#include "base/arena.h"
#include "exact/lap.h"

typedef struct fgi_placing {
    int32_t m;
    int64_t lower;
    int64_t *alone, *both;
    int32_t thing[FGI_LAP_MOST], place[FGI_LAP_MOST]; /* their numbers in the whole problem */
    int32_t assigned[FGI_LAP_MOST];                   /* per thing: where the last sweep puts it */
    int32_t at, backward; /* the pair that the next step of ascent looks at, and whether the last ones come first */
} fgi_placing;

/* Memory for m things; nothing else is set. 0: there is none, and the arena says so. */
int fgi_placing_make(fgi_placing *p, int32_t m, fgi_arena *arena);
/* One step of ascent: a thing at a place; after the last of them also the assignment of all. What costs `room` or more
 * is never taken. Returns the work of it, in entries. 1 in *swept: that was the last of a sweep. 1 in *closed: no
 * placing costs less than `room`. */
int64_t fgi_placing_ascend(fgi_placing *p, int64_t room, int *swept, int *closed);
/* Puts thing i to place j: what is left of p is written to `out`, which was made for m - 1 things. */
void fgi_placing_restrict(const fgi_placing *p, int32_t i, int32_t j, fgi_placing *out);
/* The row (thing, 1) or column (place, 0) that it costs most to decide, up to `room` for each choice. */
int32_t fgi_placing_branch(const fgi_placing *p, int64_t room, int *is_thing);

#endif
