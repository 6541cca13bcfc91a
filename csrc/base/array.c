/* base/array.c - arrays that grow. */
#include "base/array.h"
#include <stdlib.h>
#include <string.h>

int fgi_grow(void *p, int64_t *capacity, int64_t need, size_t size) {
    void *array;
    memcpy(&array, p, sizeof array); /* p is the address of a pointer of any type */
    if (need <= *capacity && array) return 1;
    int64_t wanted = need + need / 2 + 16;
    if (wanted < 0 || (uint64_t)wanted > (uint64_t)PTRDIFF_MAX / size) return 0;
    void *grown = realloc(array, (size_t)wanted * size);
    if (!grown) return 0;
    memcpy(p, &grown, sizeof grown);
    *capacity = wanted;
    return 1;
}
