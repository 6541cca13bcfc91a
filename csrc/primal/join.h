/* primal/join.h - the best labeling that several good ones can be put together to.
 *
 * Variables that share a factor and of which the labelings say the same, up to the names of the labels, are joined: the
 * labelings that agree about one agree about the other. What is left is a small model with a variable for each joined
 * set, whose states are what the labelings propose there; where all agree, a set of binary variables may be flipped as
 * a whole. On a grid of 80 x 80 ten labelings leave 400 sets. Solving that model recombines all of them at once
 * (Houdayer and Martin, Hierarchical approach for computing spin glass ground states, 2001). */
#ifndef FGI_JOIN_H
#define FGI_JOIN_H
#include "base/arena.h"
#include "model/model.h"

typedef struct fgi_join {
    fgi_model *model; /* model whose variables are the sets */
    int64_t n_vars;
    int32_t *set;                    /* per variable; -1: all agree, and there is no other label to offer */
    int32_t *origin;                 /* per state, laid out as the unaries of the model: a labeling, or -1: flipped */
    const int32_t *const *labelings; /* borrowed */
    double work;                     /* entries looked at */
    fgi_arena arena;
} fgi_join;

/* From n labelings of m, which must outlive the join. FGI_UNSUPPORTED: the joined model would be too large. After a
 * failure there is nothing to free. */
fgi_rc fgi_join_create(fgi_join *j, const fgi_model *m, int32_t n, const int32_t *const *labelings);
void fgi_join_free(fgi_join *j); /* also of one that is all zeros */
void fgi_join_expand(const fgi_join *j, const int32_t *states, int32_t *labels);
void fgi_join_states(const fgi_join *j, int32_t labeling, int32_t *states); /* which state each set has in it */

#endif
