/* primal/thin.h - large sets of variables that can be re-optimised exactly: random thin (low-width) induced subgraphs.
 *
 * Variables of a region are eliminated one by one, smallest clique first, as long as the clique's table stays below a
 * limit. When none fits, one variable is given up: it keeps its label, which shrinks the cliques around it. What could
 * be eliminated is the set. A sweep lets one front of limited size move through the region instead and gives up what
 * would widen it: sets are smaller on grids, and larger on layered models, where it keeps a few variables of one layer
 * and all of the next (decision 0016). */
#ifndef FGI_PRIMAL_THIN_H
#define FGI_PRIMAL_THIN_H
#include "primal/block.h"

enum { FGI_LOG_UNIT = 16 }; /* sizes of tables are counted in sixteenths of a bit */

typedef struct fgi_thin fgi_thin;

fgi_thin *fgi_thin_create(const fgi_model *m); /* NULL: out of memory. The model must outlive the object. */
void fgi_thin_free(fgi_thin *thin);
typedef struct fgi_thin_options {
    int32_t log_limit;     /* largest clique table, in 1/FGI_LOG_UNIT bits */
    int64_t cost_limit;    /* stop when the cliques' tables together exceed this */
    int32_t sample;        /* the variable with the largest clique is given up, out of so many random ones */
    int32_t last_in_first; /* per cent: how often a variable jumps the queue of its size when its size changes */
    int32_t two_states;    /* for fusion moves: every variable counts one bit */
    int32_t sweep;         /* grow one front through the region instead */
} fgi_thin_options;
/* Region: distinct variables, borrowed until done. */
void fgi_thin_start(fgi_thin *thin, const int32_t *region, int64_t n, const fgi_thin_options *options, uint64_t seed);
fgi_rc fgi_thin_step(fgi_thin *thin, int64_t max_operations, int *done);
/* Valid until the next start. */
const fgi_elimination *fgi_thin_elimination(const fgi_thin *thin);
int64_t fgi_thin_operations(const fgi_thin *thin); /* since creation */

#endif
