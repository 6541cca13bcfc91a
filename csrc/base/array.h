/* base/array.h - arrays that grow. */
#ifndef FGI_ARRAY_H
#define FGI_ARRAY_H
#include <stddef.h>
#include <stdint.h>

/* p: the address of a pointer to malloc'ed memory (NULL: none yet). Makes room for at least `need` entries of `size`
 * bytes, half as many again to spare; 0: no memory, everything as before. */
int fgi_grow(void *p, int64_t *capacity, int64_t need, size_t size);

/* The same for arrays that share a capacity, or have a rule of their own: room for exactly n entries (one, if n is 0).
 * After a failure all arrays are as long as before or longer, so that the old capacity holds. */
int fgi_resize(void *p, int64_t n, size_t size);

#endif
