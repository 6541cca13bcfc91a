/* base/array.h - arrays that grow. */
#ifndef FGI_ARRAY_H
#define FGI_ARRAY_H
#include <stddef.h>
#include <stdint.h>

/* p: the address of a pointer to malloc'ed memory (NULL: none yet). Makes room for at least `need` entries of `size`
 * bytes, half as many again to spare; 0: no memory, everything as before. */
int fgi_grow(void *p, int64_t *capacity, int64_t need, size_t size);

#endif
