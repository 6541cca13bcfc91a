/* base/arena.h - blocks of memory that are taken one by one and given back together.
 *
 * A failure is remembered, so that a list of takings is checked once, at its end; what was taken is counted; and there
 * is one thing to free. Blocks that grow, or go before the rest, live elsewhere (base/array.h). */
#ifndef FGI_ARENA_H
#define FGI_ARENA_H
#include <stddef.h>
#include <stdint.h>

typedef struct fgi_arena {
    struct fgi_arena_block *last;
    int64_t bytes; /* bytes of all blocks */
    int failed;    /* a block could not be had: NULL was returned, as for every one since */
} fgi_arena;       /* begins as {0} */

#define fgi_take(arena, n, type) ((type *)fgi_arena_take((arena), (n), sizeof(type)))
#define fgi_take_zero(arena, n, type) ((type *)fgi_arena_take_zero((arena), (n), sizeof(type)))
#define fgi_take_blank(arena, n, type) ((type *)fgi_arena_take_blank((arena), (n), sizeof(type)))

/* n entries; n < 0 counts as a failure, so that sizes may say "too large" by it. Never NULL for n == 0. */
void *fgi_arena_take(fgi_arena *a, int64_t n, size_t size);
void *fgi_arena_take_zero(fgi_arena *a, int64_t n, size_t size);
/* Zero, too, for what may never be used: a large block takes no time, and no memory, before it is. */
void *fgi_arena_take_blank(fgi_arena *a, int64_t n, size_t size);
void *fgi_arena_copy(fgi_arena *a, const void *from, int64_t n, size_t size);
void fgi_arena_free(fgi_arena *a); /* frees all blocks: the arena is as at the beginning */

#endif
