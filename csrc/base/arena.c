/* base/arena.c - see base/arena.h. */
#include "base/arena.h"
#include <stdlib.h>
#include <string.h>
#include "base/util.h"

enum { HEADER = 64 }; /* a cache line: blocks begin as far from a boundary as what malloc returns */

struct fgi_arena_block {
    struct fgi_arena_block *previous;
};

static void *take(fgi_arena *a, int64_t n, size_t size, int zero) {
    const int fits = n >= 0 && (uint64_t)n <= ((uint64_t)PTRDIFF_MAX - HEADER) / size;
    const size_t bytes = fits ? (size_t)n * size : 0;
    struct fgi_arena_block *b = a->failed || !fits ? NULL : zero ? calloc(1, HEADER + bytes) : malloc(HEADER + bytes);
    if (!b) {
        a->failed = 1;
        return NULL;
    }
    fgi_prefer_large_pages(b, HEADER + (int64_t)bytes);
    b->previous = a->last;
    a->last = b;
    a->bytes += (int64_t)bytes;
    return (char *)b + HEADER;
}

void *fgi_arena_take(fgi_arena *a, int64_t n, size_t size) { return take(a, n, size, 0); }

void *fgi_arena_take_zero(fgi_arena *a, int64_t n, size_t size) { return take(a, n, size, 1); }

void *fgi_arena_copy(fgi_arena *a, const void *from, int64_t n, size_t size) {
    void *to = take(a, n, size, 0);
    if (to && n > 0) memcpy(to, from, (size_t)n * size);
    return to;
}

void fgi_arena_free(fgi_arena *a) {
    while (a->last) {
        struct fgi_arena_block *b = a->last;
        a->last = b->previous;
        free(b);
    }
    *a = (fgi_arena){0};
}
