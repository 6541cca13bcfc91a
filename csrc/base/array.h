/* base/array.h - arrays that grow, and places in lists that ascend. */
#ifndef FGI_ARRAY_H
#define FGI_ARRAY_H
#include <stddef.h>
#include <stdint.h>
#include "base/assert.h"

/* p: the address of a pointer to malloc'ed memory (NULL: none yet). Makes room for at least `need` entries of `size`
 * bytes, half as many again to spare; 0: no memory, everything as before. */
int fgi_grow(void *p, int64_t *capacity, int64_t need, size_t size);

/* The same for arrays that share a capacity, or have a rule of their own: room for exactly n entries (one, if n is 0).
 * After a failure all arrays are as long as before or longer, so that the old capacity holds. */
int fgi_resize(void *p, int64_t n, size_t size);

/* A growing array of elements of any one type, with its length. Large ones are asked for in large pages. */
typedef struct fgi_array {
    void *at;
    int64_t n, capacity;
} fgi_array; /* begins as {0} */

int fgi_array_reserve(fgi_array *a, int64_t more, size_t size); /* room for `more` elements; 0: no memory */
void fgi_array_free(fgi_array *a);                              /* frees the memory: the array is as at the beginning */

static inline int fgi_array_push_i32(fgi_array *a, int32_t x) {
    if (a->n == a->capacity && !fgi_array_reserve(a, 1, sizeof x)) return 0;
    ((int32_t *)a->at)[a->n++] = x;
    return 1;
}

static inline int fgi_array_push_i64(fgi_array *a, int64_t x) {
    if (a->n == a->capacity && !fgi_array_reserve(a, 1, sizeof x)) return 0;
    ((int64_t *)a->at)[a->n++] = x;
    return 1;
}

/* The first place of list[from .. to) that does not hold less than x; `to`: there is none. */
static inline int64_t fgi_lower_bound(const int32_t *list, int64_t from, int64_t to, int64_t x) {
    fgi_assert(from >= 0);
    while (from < to) {
        const int64_t middle = from + (to - from) / 2;
        if (list[middle] < x) from = middle + 1;
        else to = middle;
    }
    return from;
}

/* The place of x among n; -1: it is not there. */
static inline int64_t fgi_place_of(const int32_t *list, int64_t n, int32_t x) {
    fgi_assert(n >= 0);
    const int64_t at = fgi_lower_bound(list, 0, n, x);
    return at < n && list[at] == x ? at : -1;
}

#endif
