/* order.c - see order.h. */
#include "order.h"
#include <stdatomic.h>
#include <stdlib.h>

struct fgi_order {
    atomic_int refs;
};

fgi_order *fgi_order_retain(fgi_order *o) {
    atomic_fetch_add(&o->refs, 1);
    return o;
}

void fgi_order_release(fgi_order *o) {
    if (!o || atomic_fetch_sub(&o->refs, 1) != 1) return;
    free(o);
}

int64_t fgi_order_memory(const fgi_order *o) { return o ? (int64_t)sizeof *o : 0; }
