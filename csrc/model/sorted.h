/* model/sorted.h - sorted access to one static table, along every axis: the entries with x_k = a, in descending order.
 *
 * Built lazily. One linear pass over the table (in parts, if the caller watches a clock) finds the maximum of every
 * slice, the few largest entries of every row and column, and, for tables with few distinct values, what those are.
 * Longer lists are made when somebody walks that far, a few times longer each time, so that looking at the first
 * entries of a row of 4096 never costs a sort of the row. -INFINITY entries enter no list. The entries of the whole
 * table in descending order are the slices by maximum and each slice by its list; no list of all entries is ever made.
 *
 * An order holds indices and maxima only. It is shared by all factors with the table and by all versions of the
 * potentials in which the table is unchanged; reading and lazy building are safe from any number of threads. */
#ifndef FGI_SORTED_H
#define FGI_SORTED_H
#include <stdatomic.h>
#include "fginfer.h"

/* The first n entries of a slice by (value descending, index ascending); immutable once published. */
typedef struct fgi_list {
    struct fgi_list *older; /* the shorter list it replaced, kept for threads that still walk it */
    int32_t n;
    int16_t complete; /* no finite entry is missing */
    int16_t in_slab;
    _Atomic double rest; /* largest entry of the slice below the last one listed; NaN: not looked for yet */
    int32_t at[];        /* positions inside the slice, see fgi_axis_flat */
} fgi_list;

typedef struct fgi_axis {
    int32_t n;                  /* slices: labels of this variable */
    int32_t n_live;             /* slices with a finite entry */
    int64_t size;               /* entries of a slice */
    int64_t inner;              /* product of the dimensions after this one */
    double *max;                /* per slice; -INFINITY: all forbidden */
    int32_t *rank;              /* live slices by (max descending, index ascending) */
    int32_t *run_end;           /* per position in rank: the first position with a smaller max */
    _Atomic(fgi_list *) *lists; /* per slice; NULL: not made yet */
    char *slab;                 /* the short lists found by the linear pass */
} fgi_axis;

typedef struct fgi_sorted {
    atomic_int refs;
    atomic_llong bytes;
    int32_t arity;
    int32_t n_levels; /* 0: too many distinct values to list */
    double *levels;   /* the distinct finite values, ascending */
    fgi_axis axes[];  /* arity of them */
} fgi_sorted;

/* The flat index, in the table, of position j of slice a; ascending in j. */
static inline int64_t fgi_axis_flat(const fgi_axis *x, int32_t a, int64_t j) {
    return (j / x->inner) * (x->inner * x->n) + a * x->inner + j % x->inner;
}

/* The linear pass in parts: step reads about `entries` more entries and returns 1 when none are left; then finish gives
 * the order (NULL: out of memory) and frees the builder. `values` must be the same in every call. */
typedef struct fgi_sorted_builder fgi_sorted_builder;
fgi_sorted_builder *fgi_sorted_builder_create(int32_t arity, const int32_t *dims);
int fgi_sorted_builder_step(fgi_sorted_builder *b, const double *values, int64_t entries);
fgi_sorted *fgi_sorted_builder_finish(fgi_sorted_builder *b);
void fgi_sorted_builder_free(fgi_sorted_builder *b); /* abandons it; NULL is fine */

fgi_sorted *fgi_sorted_retain(fgi_sorted *o);
void fgi_sorted_release(fgi_sorted *o); /* NULL is fine */
int64_t fgi_sorted_memory(const fgi_sorted *o);

/* A longer list of slice a than `have` (NULL: the first), or the one another thread made meanwhile; NULL: out of
 * memory. Adds the entries read to *work. */
const fgi_list *fgi_sorted_extend(
    fgi_sorted *o, const double *values, int32_t axis, int32_t a, const fgi_list *have, int64_t *work);

/* With values[list->at[from]] == value: the largest entry of slice a that is smaller than `value` (or anything between
 * the two); -INFINITY: none. What lets a walk over a long run of equal entries stop after the first. */
double fgi_sorted_below(fgi_sorted *o, const double *values, int32_t axis, int32_t a, const fgi_list *list,
    int32_t from, double value, int64_t *work);

/* ---- sorting, for everybody who keeps orders ------------------------------------------------------------------ */

typedef struct fgi_ranked {
    double value;
    int32_t at;
    int32_t tag; /* whatever the owner likes */
} fgi_ranked;

/* Does x come before y: larger value first, then lower index. */
static inline int fgi_ranked_before(const fgi_ranked *x, const fgi_ranked *y) {
    return x->value > y->value || (x->value == y->value && x->at < y->at);
}

#endif
