/* exact/eliminate.h - elimination orders and bucket elimination, inside the core.
 *
 * An *orderer* turns a set of scopes into an elimination order with its bags: bag(v) are the neighbours of v when it is
 * eliminated, which is exactly the scope of the message that bucket v sends. An *eliminator* runs the buckets of one
 * order over a model, or over a subset of its variables with all others held at given labels. Both keep their memory
 * between uses. */
#ifndef FGI_ELIMINATE_H
#define FGI_ELIMINATE_H
#include "model/model.h"
#include "base/array.h"
#include "base/util.h"

/* ---- orders ------------------------------------------------------------------------------------------------- */

typedef struct fgi_scopes {
    int32_t n; /* vertices */
    const int32_t *cards;
    int64_t n_scopes;
    const int64_t *begin; /* n_scopes + 1 */
    const int32_t *vars;
} fgi_scopes;

/* order[p] is eliminated p-th; bag[begin[p] .. begin[p+1]) are the *positions* of its neighbours then, descending. */
typedef struct fgi_bags {
    int32_t n;
    int32_t width;       /* size of the largest bag */
    double log2_largest; /* binary logarithm of the largest joint table's size, the eliminated variable included */
    double work;         /* sum of the sizes of all joint tables */
    int32_t *order;
    int64_t *begin;
    int32_t *bag;
    int64_t order_capacity, begin_capacity, bag_capacity;
} fgi_bags;

typedef struct fgi_orderer fgi_orderer;
fgi_orderer *fgi_orderer_create(void);
void fgi_orderer_free(fgi_orderer *o);
/* Tries smallest-table, then min-fill orders, with random ties, as long as that is cheap beside the elimination itself
 * and within `effort` steps in all. Gives up on orders whose largest table exceeds 2^log2_limit entries.
 * FGI_UNSUPPORTED: no order was found. *out stays valid until the next call. */
fgi_rc fgi_orderer_run(fgi_orderer *o, const fgi_scopes *g, double log2_limit, double effort, const fgi_bags **out);

/* ---- the eliminator --------------------------------------------------------------------------------------------- */

typedef struct fgi_eliminator fgi_eliminator;
fgi_eliminator *fgi_eliminator_create(const fgi_model *m); /* borrows the model */
void fgi_eliminator_free(fgi_eliminator *e);
/* Poses the problem: `subset` (NULL: all variables) is free, the others are held at `labels`; forbidden entries count
 * as `forbidden` (-INFINITY to be exact, a large negative number to search for the least infeasible labeling). */
fgi_rc fgi_eliminator_pose(
    fgi_eliminator *e, const int32_t *labels, const int32_t *subset, int64_t n, double forbidden);
/* Finds an order; FGI_UNSUPPORTED as above. */
fgi_rc fgi_eliminator_order(fgi_eliminator *e, double log2_limit, double effort);
/* The order that was found for the same variables, after they have been posed again with other labels held. */
fgi_rc fgi_eliminator_use_order(fgi_eliminator *e, const fgi_bags *bags);
const fgi_bags *fgi_eliminator_bags(const fgi_eliminator *e);
/* Bytes the run will hold at its peak, from the order; exact for messages, an upper estimate for scratch. */
double fgi_eliminator_memory(const fgi_eliminator *e);
/* Runs buckets until the deadline; *done when the value is known. `keep` keeps all messages in one block of memory
 * (fast, for small problems); otherwise large inputs are freed as soon as they are used. */
fgi_rc fgi_eliminator_run(fgi_eliminator *e, int keep, double deadline, int *done);
/* Back to the start with the same order and the model's present unaries (all variables must be free). */
void fgi_eliminator_restart(fgi_eliminator *e);
double fgi_eliminator_value(const fgi_eliminator *e);    /* optimum of the terms that touch the subset, up to */
double fgi_eliminator_error(const fgi_eliminator *e);    /* this much rounding */
double fgi_eliminator_progress(const fgi_eliminator *e); /* fraction of the work done */
/* Writes optimal labels of the free variables; call when done and the value is not -INFINITY. */
void fgi_eliminator_traceback(fgi_eliminator *e, int32_t *labels);

#endif
