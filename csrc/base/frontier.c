/* base/frontier.c - a heap of open nodes: see base/frontier.h. */
#include "base/frontier.h"
#include <math.h>
#include "base/array.h"
#include "base/assert.h"
#include "base/util.h"

static int is_before(const fgi_open *a, const fgi_open *b) {
    return a->bound != b->bound ? a->bound > b->bound : a->number < b->number;
}

int fgi_frontier_reserve(fgi_frontier *f, int64_t more) {
    return fgi_grow(&f->heap, &f->capacity, f->count + more, sizeof *f->heap);
}

static void rise(fgi_frontier *f, int64_t at) {
    const fgi_open node = f->heap[at];
    for (; at > 0 && is_before(&node, &f->heap[(at - 1) / 2]); at = (at - 1) / 2) f->heap[at] = f->heap[(at - 1) / 2];
    f->heap[at] = node;
}

static void sink(fgi_frontier *f, int64_t at) {
    const fgi_open node = f->heap[at];
    for (int64_t child; (child = 2 * at + 1) < f->count; at = child) {
        if (child + 1 < f->count && is_before(&f->heap[child + 1], &f->heap[child])) child++;
        if (!is_before(&f->heap[child], &node)) break;
        f->heap[at] = f->heap[child];
    }
    f->heap[at] = node;
}

void fgi_frontier_add(fgi_frontier *f, fgi_open node) {
    fgi_assert(f->count < f->capacity && !isnan(node.bound));
    node.number = f->numbers++;
    f->heap[f->count++] = node;
    rise(f, f->count - 1);
}

int fgi_frontier_take(fgi_frontier *f, int newest, fgi_open *node) {
    if (f->count == 0) return 0;
    int64_t at = 0;
    for (int64_t k = 1; newest && k < f->count; k++)
        if (f->heap[k].number > f->heap[at].number) at = k;
    *node = f->heap[at];
    f->heap[at] = f->heap[--f->count];
    if (at == f->count) return 1;
    sink(f, at);
    rise(f, at);
    return 1;
}

double fgi_frontier_bound(const fgi_frontier *f) { return f->count > 0 ? f->heap[0].bound : -INFINITY; }
