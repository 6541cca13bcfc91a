/* order.h - sorted access to one table: whole, by row, by column. Reference counted, shared by every factor (and every
 * version of the potentials) in which the table's values are the same. See oracle.h for what is built on it. */
#ifndef FGI_ORDER_H
#define FGI_ORDER_H
#include "fginfer.h"

typedef struct fgi_order fgi_order;

fgi_order *fgi_order_retain(fgi_order *o);
void fgi_order_release(fgi_order *o); /* NULL is fine */
int64_t fgi_order_memory(const fgi_order *o);

#endif
