/* exact/alike_places.h - places (or things) of a quadratic assignment that can be exchanged without changing any cost.
 *
 * A permutation of the places after which every thing and every two things cost the same maps placings to placings of
 * the same cost. So where a thing is to be placed, and some places have been taken, one place is enough of each set of
 * those that such permutations lead to one another, the taken places staying where they are. The same holds with things
 * and places exchanged. */
#ifndef FGI_ALIKE_PLACES_H
#define FGI_ALIKE_PLACES_H
#include "exact/placing.h"

typedef struct fgi_alike_places {
    int32_t m;
    int32_t *kind; /* m x m: equal where two ordered pairs have the same costs; a place with itself: its own costs */
} fgi_alike_places;

/* Before any ascent. of_things: of the things of p, else of its places. 0: out of memory. */
int fgi_alike_places_find(const fgi_placing *p, int of_things, fgi_arena *arena, fgi_alike_places *out);
/* set[j]: a place that j is known to be exchangeable with, itself if none before it is; is_taken stay where they are.
 * Returns 0 where no two are. What is too hard to find out counts as different. *work counts comparisons. */
int fgi_alike_places_group(const fgi_alike_places *a, const uint8_t *is_taken, int32_t *set, int64_t *work);

#endif
