/* base/masks.h - sums over 64 places that a word of bits selects from, in a portable, an AVX2 and an AVX-512 version
 * that give the same bits: what is added to a number, and in which order, is the same in all of them. */
#ifndef FGI_MASKS_H
#define FGI_MASKS_H
#include <stdint.h>

#define FGI_MASK_PLACES 64 /* bits of a word */
#define FGI_MASK_LANES 8   /* sums side by side: doubles of the widest register */

typedef struct fgi_mask_kernels {
    const char *name;
    /* out[p] = sum of x[k], k ascending, over the words[at[k]] with bit p; p < FGI_MASK_PLACES */
    void (*spread)(const uint64_t *words, const int32_t *at, const double *x, int64_t n, double *out);
    /* lanes[FGI_MASK_LANES * k + p % FGI_MASK_LANES] += value[p], p ascending, for the bits p of words[at[k]] */
    void (*collect)(const uint64_t *words, const int32_t *at, int64_t n, const double *value, double *lanes);
} fgi_mask_kernels;

/* All that this machine can run, the best one first; the last is portable. NULL ends the list. */
const fgi_mask_kernels *const *fgi_mask_kernels_all(void);

#endif
