/* primal/block.h - exact re-optimisation of a set of variables given the labels of all others.
 *
 * The set comes with an elimination order and, for each variable, its separator: the later variables its factors (and
 * the messages it receives) touch. Max-plus bucket elimination then costs the sum of the clique table sizes. With
 * separators of size one this is dynamic programming on a forest. Which sets are worth it is primal/thin.c's business.
 */
#ifndef FGI_BLOCK_H
#define FGI_BLOCK_H
#include "model/model.h"
#include "base/util.h"

enum { FGI_BLOCK_DIMENSIONS = 40 }; /* variables in one clique, at most; those with one label belong outside the set */

typedef struct fgi_elimination {
    int64_t n;
    const int32_t *order;     /* variables, first eliminated first */
    const int32_t *position;  /* per model variable: its place in order, -1: fixed */
    const int64_t *sep_begin; /* n + 1 */
    const int32_t *sep;       /* places in order, ascending, all later than the variable's own */
} fgi_elimination;

typedef struct fgi_block fgi_block;

fgi_block *fgi_block_create(const fgi_model *m); /* NULL: out of memory. The model must outlive the object. */
void fgi_block_free(fgi_block *t);
/*
 * Everything is borrowed until the last step. `penalty` > 0 replaces forbidden entries (needed while the labeling at
 * hand violates some); 0 keeps them -inf. `coins` makes the choice among equally good labels differ from call to call.
 * With `alternatives` (one label per model variable) each variable of the set chooses between its present label and
 * that one only (a fusion move): two states each, whatever the number of labels.
 */
fgi_rc fgi_block_start(fgi_block *t, const fgi_elimination *e, const int32_t *labels, const int32_t *alternatives,
    double penalty, uint64_t coins);
/* Works for about max_operations; *done is set when the answer is there. */
fgi_rc fgi_block_step(fgi_block *t, int64_t max_operations, int *done);
/* The best labels by place in order; valid when done. Arbitrary if every labeling is forbidden and penalty is 0. */
const int32_t *fgi_block_labels(const fgi_block *t);
int64_t fgi_block_operations(const fgi_block *t); /* since creation */

#endif
