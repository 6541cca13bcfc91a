/* exact/doll_order.h - a static order of variables in which those that share factors are near each other. */
#ifndef FGI_DOLL_ORDER_H
#define FGI_DOLL_ORDER_H
#include "exact/costs.h"

/* order: room for n variables. The order of the model itself, which often is one in time or space, or one by breadth-
 * first search (Cuthill & McKee, "Reducing the bandwidth of sparse symmetric matrices", 1969) where far fewer variables
 * wait for the last of their factors there. Returns how many wait, on average over the places of the order; -1: no
 * memory. */
double fgi_doll_order(const fgi_costs *c, int32_t *order);

#endif
