/* base/cutoff.c - see base/cutoff.h. Keys are counted in bins, those of the bin with the cutoff again, until they are
 * all the same. No branch depends on the numbers, where Hoare's selection guesses wrong at every other one. */
#include "base/cutoff.h"

enum { BINS = 256 }; /* counted at a time: eight bits of the keys */

fgi_cutoff fgi_cutoff_of(uint32_t *keys, int64_t n, int64_t most) {
    if (most <= 0) return (fgi_cutoff){UINT32_MAX, 0};
    if (n <= most) return (fgi_cutoff){0, n};
    for (;;) { /* the cutoff is the most-th largest of n keys */
        uint32_t low = UINT32_MAX, high = 0;
        int32_t count[BINS] = {0};
        int shift = 0;
        for (int64_t k = 0; k < n; k++) {
            low = keys[k] < low ? keys[k] : low;
            high = keys[k] > high ? keys[k] : high;
        }
        if (low == high) return (fgi_cutoff){low, most};
        while ((high - low) >> shift >= BINS) shift++;
        for (int64_t k = 0; k < n; k++) count[(keys[k] - low) >> shift]++;
        uint32_t bin = BINS - 1;
        for (; count[bin] < most; bin--) most -= count[bin];
        int64_t kept = 0;
        for (int64_t k = 0; k < n; k++) {
            keys[kept] = keys[k];
            kept += (keys[k] - low) >> shift == bin;
        }
        n = kept;
    }
}
