/* base/array.c - arrays that grow. */
#include "base/array.h"
#include <stdlib.h>
#include <string.h>

int fgi_resize(void *p, int64_t n, size_t size) {
    if (n < 0 || (uint64_t)n > (uint64_t)PTRDIFF_MAX / size) return 0;
    void *array;
    memcpy(&array, p, sizeof array); /* p is the address of a pointer of any type */
    void *grown = realloc(array, (n > 0 ? (size_t)n : 1) * size);
    if (!grown) return 0;
    memcpy(p, &grown, sizeof grown);
    return 1;
}

int fgi_grow(void *p, int64_t *capacity, int64_t need, size_t size) {
    void *array;
    memcpy(&array, p, sizeof array);
    if (need <= *capacity && array) return 1;
    const int64_t wanted = need <= INT64_MAX / 2 ? need + need / 2 + 16 : -1;
    if (!fgi_resize(p, wanted, size)) return 0;
    *capacity = wanted;
    return 1;
}
