/* exact/support.h - factors of three and more variables in support.c: see exact/cells.c. */
#ifndef FGI_SUPPORT_H
#define FGI_SUPPORT_H
#include "exact/costs.h"

/* Moves to the slot's variable what the factor costs, with the unaries of the variables in `use` (bits by place in the
 * factor), and gives those back what is not needed. */
void fgi_cells_pull(fgi_costs *c, int32_t slot, uint32_t use);
/* Does the state that cost nothing with label a when that was last looked at still do so, with the unaries that no
 * other factor has used in this look (by c->stamps)? These are taken now, and returned as bits, whatever it says. */
int fgi_cells_hold(fgi_costs *c, int32_t slot, int32_t a, uint32_t *use);
/* The least cost of label a of the slot's variable in the factor, with those unaries. 0 where that takes too long. */
int64_t fgi_cells_least(fgi_costs *c, int32_t slot, uint32_t use, int32_t a);

/* The costs of a factor whose variables other than its k-th and a later one have one label each go to the pairwise
 * factor on these two. Returns 0 where that takes too long. */
int fgi_cells_move(fgi_costs *c, int32_t f, int32_t k, int32_t later, int32_t pair);

#endif
