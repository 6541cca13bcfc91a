/* base/arena.c - see base/arena.h. */
#if defined(__linux__)
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include <sys/mman.h>
#endif
#include "base/arena.h"
#include <stdlib.h>
#include <string.h>
#include "base/util.h"

enum { HEADER = 64 }; /* a cache line: blocks begin as far from a boundary as what malloc returns */

struct fgi_arena_block {
    struct fgi_arena_block *previous;
    size_t mapped; /* bytes that the system has given; 0: malloc has */
};

/* calloc clears what it gives out again, and that may be as much as here; 0: it is to be asked all the same. */
static void *map_pages(size_t bytes) {
#if defined(__linux__) && defined(MAP_ANONYMOUS)
    enum { LARGE = 4 << 20 }; /* bytes that are asked of the system by themselves */
    if (bytes < LARGE) return NULL;
    void *b = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return b == MAP_FAILED ? NULL : b;
#else
    (void)bytes;
    return NULL;
#endif
}

static void give_back(struct fgi_arena_block *b) {
#if defined(__linux__) && defined(MAP_ANONYMOUS)
    if (b->mapped) {
        (void)munmap(b, b->mapped);
        return;
    }
#endif
    free(b);
}

typedef enum contents { ANY, ZERO, BLANK } contents;

static void *take(fgi_arena *a, int64_t n, size_t size, contents wanted) {
    const int fits = n >= 0 && (uint64_t)n <= ((uint64_t)PTRDIFF_MAX - HEADER) / size;
    const size_t bytes = fits ? (size_t)n * size : 0;
    struct fgi_arena_block *b = NULL;
    size_t mapped = 0;
    if (!a->failed && fits && wanted == BLANK && (b = map_pages(HEADER + bytes))) mapped = HEADER + bytes;
    if (!a->failed && fits && !b) b = wanted == ANY ? malloc(HEADER + bytes) : calloc(1, HEADER + bytes);
    if (!b) {
        a->failed = 1;
        return NULL;
    }
    fgi_prefer_large_pages(b, HEADER + (int64_t)bytes);
    *b = (struct fgi_arena_block){a->last, mapped};
    a->last = b;
    a->bytes += (int64_t)bytes;
    return (char *)b + HEADER;
}

void *fgi_arena_take(fgi_arena *a, int64_t n, size_t size) { return take(a, n, size, ANY); }

void *fgi_arena_take_zero(fgi_arena *a, int64_t n, size_t size) { return take(a, n, size, ZERO); }

void *fgi_arena_take_blank(fgi_arena *a, int64_t n, size_t size) { return take(a, n, size, BLANK); }

void *fgi_arena_copy(fgi_arena *a, const void *from, int64_t n, size_t size) {
    void *to = take(a, n, size, ANY);
    if (to && n > 0) memcpy(to, from, (size_t)n * size);
    return to;
}

void fgi_arena_free(fgi_arena *a) {
    while (a->last) {
        struct fgi_arena_block *b = a->last;
        a->last = b->previous;
        give_back(b);
    }
    *a = (fgi_arena){0};
}
