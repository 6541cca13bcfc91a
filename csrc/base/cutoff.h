/* base/cutoff.h - the largest of many numbers, without an order among them: what parts them from the others.
 *
 *     for (k = 0; k < n; k++) keys[k] = fgi_cutoff_key(x[k]);
 *     fgi_cutoff c = fgi_cutoff_of(keys, n, most);
 *     for (k = 0; k < n; k++)
 *         if (fgi_cutoff_takes(&c, x[k])) ...          `most` of them, or all n; of equal numbers the first */
#ifndef FGI_CUTOFF_H
#define FGI_CUTOFF_H
#include <stdint.h>
#include <string.h>

typedef struct fgi_cutoff {
    uint32_t key;  /* numbers with a larger key are taken */
    int64_t equal; /* how many numbers with this very key are taken */
} fgi_cutoff;

/* The bits of a number, in the order of the numbers. */
static inline uint32_t fgi_cutoff_key(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits ^ ((0u - (bits >> 31)) | 1u << 31);
}

/* The keys are lost. */
fgi_cutoff fgi_cutoff_of(uint32_t *keys, int64_t n, int64_t most);

static inline int fgi_cutoff_takes(fgi_cutoff *c, float x) {
    const uint32_t key = fgi_cutoff_key(x);
    const int equal = key == c->key && c->equal > 0;
    c->equal -= equal;
    return equal || key > c->key;
}

#endif
