/* model/distinct.h - growing arrays, and a collection of tables in which equal ones are stored once. */
#ifndef FGI_DISTINCT_H
#define FGI_DISTINCT_H
#include <stdint.h>
#include <stdlib.h>
#include "base/array.h"
#include "base/util.h"

/* A growing array of elements of any one type. */
typedef struct pool {
    void *at;
    int64_t n, capacity;
} pool;

static inline int reserve(
    pool *p, int64_t more, size_t bytes) { /* room for `more` elements of `bytes` bytes; 0: no memory */
    if (p->capacity - p->n >= more) return 1;
    int64_t need = p->n + more, wish = p->capacity + p->capacity / 2 + 64;
    if (wish < need) wish = need;
    if (!fgi_resize(&p->at, wish, bytes)) return 0;
    fgi_prefer_large_pages(p->at, wish * (int64_t)bytes);
    p->capacity = wish;
    return 1;
}

static inline int push_i32(pool *p, int32_t x) {
    if (!reserve(p, 1, sizeof x)) return 0;
    ((int32_t *)p->at)[p->n++] = x;
    return 1;
}

static inline int push_i64(pool *p, int64_t x) {
    if (!reserve(p, 1, sizeof x)) return 0;
    ((int64_t *)p->at)[p->n++] = x;
    return 1;
}

typedef struct fgi_distinct {
    pool arity, dims, values;            /* int32, int32, double: the tables, as in fgi_model_spec */
    pool values_begin, dims_begin, hash; /* int64, int64, uint64 per table */
    int32_t *slots;                      /* open addressing: tables by hash, -1 free */
    int64_t n_slots;
} fgi_distinct;

/*
 * The last n of `values`, a table over variables with cards[vars[k]] labels, become a new table, or are dropped in
 * favour of an equal one (equal bits, equal dimensions). Returns its number; -1: out of memory. With `turned` (NULL:
 * not wanted) a pairwise table may also be dropped in favour of one that equals it transposed: *turned is then 1.
 */
int32_t fgi_distinct_store(
    fgi_distinct *d, const int32_t *cards, const int32_t *vars, int64_t arity, int64_t n, int *turned);

/* Gives back the memory that only storing needs, and what growing reserved in vain. */
void fgi_distinct_shrink(fgi_distinct *d);
void fgi_distinct_clear(fgi_distinct *d);

#endif
