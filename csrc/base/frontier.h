/* base/frontier.h - the open nodes of a search tree: the largest bound first, then the oldest. */
#ifndef FGI_FRONTIER_H
#define FGI_FRONTIER_H
#include <stdint.h>

typedef struct fgi_open {
    double bound;   /* no labeling in the node has more */
    int64_t number; /* in the order of adding */
    void *start;    /* what the node begins from: the owner of the frontier knows */
    int32_t choice; /* what was decided there, and which way */
    uint8_t way;
} fgi_open;

typedef struct fgi_frontier {
    fgi_open *heap;
    int64_t count, capacity, numbers;
} fgi_frontier;

int fgi_frontier_reserve(fgi_frontier *f, int64_t more); /* 0: out of memory */
/* There is room for it. The number is the frontier's to give. */
void fgi_frontier_add(fgi_frontier *f, fgi_open node);
/* 0: none is open. `newest`: the last one that was added, for a search that has to save memory. */
int fgi_frontier_take(fgi_frontier *f, int newest, fgi_open *node);
double fgi_frontier_bound(const fgi_frontier *f); /* the largest; -INFINITY: none is open */

#endif
