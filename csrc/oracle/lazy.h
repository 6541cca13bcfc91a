/* oracle/lazy.h - a list in descending order that is sorted only as far as somebody asks: a heap that shrinks, and
 * behind it, backwards, what it has given. Making it is linear, each further number O(log n).
 *
 * 1. items[0 .. n_heap) is a heap by fgi_ranked_before.
 * 2. items[n_heap .. n) is what has been asked for: number k of the order is items[n - 1 - k]. */
#ifndef FGI_ORACLE_LAZY_H
#define FGI_ORACLE_LAZY_H
#include "model/sorted.h"

typedef struct fgi_lazy {
    fgi_ranked *items;
    int32_t n, n_heap;
} fgi_lazy;

static inline void fgi_lazy_sift(fgi_ranked *heap, int32_t n, int32_t k) {
    const fgi_ranked item = heap[k];
    for (int64_t child; (child = 2 * (int64_t)k + 1) < n; k = (int32_t)child) {
        if (child + 1 < n && fgi_ranked_before(&heap[child + 1], &heap[child])) child++;
        if (!fgi_ranked_before(&heap[child], &item)) break;
        heap[k] = heap[child];
    }
    heap[k] = item;
}

static inline fgi_lazy fgi_lazy_make(fgi_ranked *items, int32_t n) {
    for (int32_t k = n / 2 - 1; k >= 0; k--) fgi_lazy_sift(items, n, k);
    return (fgi_lazy){items, n, n};
}

/* Number `at` of the order, from 0; all before it have been asked for. Adds to *touched what is taken off the heap. */
static inline const fgi_ranked *fgi_lazy_at(fgi_lazy *l, int32_t at, int64_t *touched) {
    if (at == l->n - l->n_heap) {
        const fgi_ranked top = l->items[0];
        l->items[0] = l->items[--l->n_heap];
        fgi_lazy_sift(l->items, l->n_heap, 0);
        l->items[l->n_heap] = top;
        ++*touched;
    }
    return &l->items[l->n - 1 - at];
}

#endif
