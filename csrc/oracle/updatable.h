/* oracle/updatable.h - what oracle/updatable.c (entries, and how they change) and oracle/updatable_source.c (questions)
 * share.
 *
 * Invariants between two calls (fgi_updatable_check looks at them):
 *   1  `dense` is set, or all the rest is; n_entries counts the non-zero entries in both cases, all below INFINITY.
 *   2  Entry e is in the heaps of its row and of its column: slices[k][e.label[k]].heap[e.place[k]] is its number. The
 *      hash finds it from its labels, and nothing else.
 *   3  A heap has no entry before its parent: values descend, ties by the other label.
 *   4  max[k][a] is the largest entry of slice a, its zeros included; winner[k] is the tournament over these.
 *   5  All labels of a slice before first_zero are stored.
 *   6  The scale is a number above 0. */
#ifndef FGI_ORACLE_UPDATABLE_H
#define FGI_ORACLE_UPDATABLE_H
#include "base/assert.h"
#include "base/util.h"
#include "oracle/internal.h"

typedef struct entry {
    double value;
    int32_t label[2]; /* row, column */
    int32_t place[2]; /* in the heap of the row, of the column */
} entry;

typedef struct slice { /* one row or column */
    int32_t *heap;     /* ids of its entries */
    int32_t n, capacity;
    int32_t first_zero; /* all before this one are stored */
} slice;

struct fgi_updatable {
    fgi_source base;
    double scale; /* an entry is scale * value */
    int32_t n[2];
    entry *entries;
    int64_t n_entries, capacity;
    int32_t *slots;  /* hash of (row, column): id + 1, 0 for empty; linear probing */
    int64_t n_slots; /* a power of two */
    slice *slices[2];
    double *max[2];
    int32_t *winner[2]; /* tournament tree: node k has children 2k and 2k+1, leaves begin at n_leaves; -1: no slice */
    int32_t n_leaves[2];
    int64_t heap_bytes;
    double *dense; /* a table without sorted access: rows * cols values, and nothing of the above but n_entries */
};

extern const fgi_source_ops fgi_updatable_ops;

#ifdef FGI_CHECKED
void fgi_updatable_check(const fgi_updatable *u); /* oracle/updatable_check.c */
#endif

static inline int64_t updatable_home(const fgi_updatable *u, int32_t a, int32_t b) {
    uint64_t key = (uint64_t)a * (uint64_t)u->n[1] + (uint64_t)b;
    key = (key ^ (key >> 31)) * 0x9E3779B97F4A7C15u;
    return (int64_t)((key ^ (key >> 29)) & (uint64_t)(u->n_slots - 1));
}

/* The slot that holds the entry, or the empty one where it belongs. */
static inline int64_t updatable_slot(const fgi_updatable *u, int32_t a, int32_t b) {
    fgi_assert(a >= 0 && a < u->n[0] && b >= 0 && b < u->n[1] && !u->dense);
    int64_t at = updatable_home(u, a, b);
    for (; u->slots[at]; at = (at + 1) & (u->n_slots - 1)) {
        const entry *e = &u->entries[u->slots[at] - 1];
        if (e->label[0] == a && e->label[1] == b) break;
    }
    return at;
}

static inline const entry *updatable_find(const fgi_updatable *u, int32_t a, int32_t b) {
    int32_t id = u->slots[updatable_slot(u, a, b)];
    return id ? &u->entries[id - 1] : NULL;
}

/* Without the scale. */
static inline double updatable_stored(const fgi_updatable *u, int32_t row, int32_t col) {
    fgi_assert(row >= 0 && row < u->n[0] && col >= 0 && col < u->n[1]);
    if (u->dense) return u->dense[(int64_t)row * u->n[1] + col];
    const entry *e = updatable_find(u, row, col);
    return e ? e->value : 0.0;
}

#endif
