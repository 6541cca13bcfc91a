/* base/array.c - arrays that grow. */
#include "base/array.h"
#include <stdlib.h>
#include <string.h>
#include "base/assert.h"
#include "base/util.h"

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

int fgi_array_reserve(fgi_array *a, int64_t more, size_t size) {
    fgi_assert(a->n >= 0 && a->n <= a->capacity && more >= 0);
    if (a->capacity - a->n >= more) return 1;
    const int64_t need = a->n + more, wish = a->capacity + a->capacity / 2 + 64, capacity = wish < need ? need : wish;
    if (!fgi_resize(&a->at, capacity, size)) return 0;
    fgi_prefer_large_pages(a->at, capacity * (int64_t)size);
    a->capacity = capacity;
    return 1;
}

void fgi_array_free(fgi_array *a) {
    free(a->at);
    *a = (fgi_array){0};
}
