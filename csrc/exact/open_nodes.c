/* exact/open_nodes.c - see exact/open_nodes.h. */
#include "exact/open_nodes.h"
#include "base/array.h"
#include "base/util.h"

static int before(const fgi_open_node *a, const fgi_open_node *b) {
    if (a->cost != b->cost) return a->cost < b->cost;
    if (a->depth != b->depth) return a->depth > b->depth;
    return a->number < b->number;
}

static void swap(fgi_open_node *a, fgi_open_node *b) {
    const fgi_open_node kept = *a;
    *a = *b;
    *b = kept;
}

static int64_t bytes_of(const fgi_open_node *node) {
    return (int64_t)sizeof *node + node->depth * (int64_t)sizeof *node->path;
}

fgi_rc fgi_open_nodes_add(fgi_open_nodes *o, int64_t cost, const fgi_decision *path, int32_t depth) {
    fgi_decision *own = fgi_copy(path, depth, sizeof *own);
    if (!own || !fgi_grow(&o->heap, &o->capacity, o->count + 1, sizeof *o->heap)) {
        free(own);
        return FGI_NO_MEMORY;
    }
    own[depth - 1].kind ^= 1;
    int64_t at = o->count++;
    o->heap[at] = (fgi_open_node){cost, o->numbers++, depth, own};
    o->bytes += bytes_of(&o->heap[at]);
    for (; at > 0 && before(&o->heap[at], &o->heap[(at - 1) / 2]); at = (at - 1) / 2)
        swap(&o->heap[at], &o->heap[(at - 1) / 2]);
    return FGI_OK;
}

fgi_open_node fgi_open_nodes_take(fgi_open_nodes *o) {
    const fgi_open_node best = o->heap[0];
    o->heap[0] = o->heap[--o->count];
    o->bytes -= bytes_of(&best);
    for (int64_t at = 0;;) {
        int64_t next = 2 * at + 1;
        if (next >= o->count) break;
        if (next + 1 < o->count && before(&o->heap[next + 1], &o->heap[next])) next++;
        if (!before(&o->heap[next], &o->heap[at])) break;
        swap(&o->heap[next], &o->heap[at]);
        at = next;
    }
    return best;
}

void fgi_open_nodes_free(fgi_open_nodes *o) {
    for (int64_t k = 0; k < o->count; k++) free(o->heap[k].path);
    free(o->heap);
}
