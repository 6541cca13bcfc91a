/* primal/effects.h - what a variable's pairwise factors give each neighbour's labels while it has one label, side by
 * side.
 *
 * On dense models a change of label waits for memory: half of what it reads are columns of tables, each entry in a
 * cache line of its own, the rest short rows of as many tables as there are neighbours. Most changes of a search go
 * back to a label that the variable had not long ago. So the entries of those it had last are kept as rows of numbers,
 * weighted as they are used: what is computed from them is the same to the bit. */
#ifndef FGI_EFFECTS_H
#define FGI_EFFECTS_H
#include "base/arena.h"
#include "model/model.h"

enum { FGI_EFFECTS_ROWS = 4 }; /* per variable */

typedef struct fgi_effects {
    const fgi_model *model;
    int32_t *neighbour; /* by place in the adjacency: the other variable, -1: the factor has no part in rows; known
                                        from the first row of the variable on */
    struct fgi_effects_rows *kept; /* per variable */
    double *numbers;
    fgi_arena arena;
} fgi_effects;

/* NULL: variables have few neighbours, rows would take too much memory, or there is none: one has to do without. */
fgi_effects *fgi_effects_create(const fgi_model *m);
void fgi_effects_free(fgi_effects *e);
/* The entries of those factors of the variable under this label, in the order of its adjacency, all labels of the
 * neighbour each. Valid until two other labels of the variable have been asked for. */
const double *fgi_effects_of(fgi_effects *e, int32_t var, int32_t label);

#endif
