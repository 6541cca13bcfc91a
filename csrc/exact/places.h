/* exact/places.h - models in which variables must differ: which labels of different variables are the same place. */
#ifndef FGI_PLACES_H
#define FGI_PLACES_H
#include "base/arena.h"
#include "model/model.h"

/* Per label, laid out as the unaries, its place from 0 on; *n_places of them. FGI_UNSUPPORTED where the model is not of
 * this kind: every two variables have a pairwise factor that forbids all places which they share, and no factor has
 * more variables. Memory is the arena's. */
fgi_rc fgi_places_find(const fgi_model *m, fgi_arena *arena, int32_t **place, int32_t *n_places, fgi_error *err);

#endif
