/* exact/slabs.h - a relaxation of small width: the model cut into slabs across a breadth-first layering.
 *
 * Neighbours are at most one layer apart, so `thickness` consecutive layers form a slab whose factors touch no other
 * slab but in the layers where two slabs meet. Variables there get one copy in each slab; every factor belongs to one
 * slab. Without the demand that copies agree the slabs are solved one by one by elimination, and their optima sum to an
 * upper bound. */
#ifndef FGI_SLABS_H
#define FGI_SLABS_H
#include "model/model.h"
#include "base/util.h"

typedef struct fgi_layers {
    int32_t count;
    int32_t *layer; /* per variable */
} fgi_layers;

/* Layers by distance from a far end of each component, one component after the other. */
fgi_rc fgi_layers_find(const fgi_model *m, fgi_layers *out);

typedef struct fgi_relaxed {
    fgi_model *model; /* over the copies; half of a unary in each of two copies */
    int32_t n_copies;
    int32_t *first;  /* per variable: its copy */
    int32_t *second; /* per variable: its other copy; -1: there is none */
} fgi_relaxed;

fgi_rc fgi_relaxed_create(
    const fgi_model *m, const fgi_layers *layers, int32_t thickness, fgi_relaxed *out, fgi_error *err);
void fgi_relaxed_free(fgi_relaxed *r);

#endif
