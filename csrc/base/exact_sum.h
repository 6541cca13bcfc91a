/* base/exact_sum.h - sums of doubles without any rounding, for the few that cancel almost completely. */
#ifndef FGI_EXACT_SUM_H
#define FGI_EXACT_SUM_H
#include <stdint.h>

/* A fixed-point number wide enough for every double and for 2^40 of the largest: limb k counts 2^(32 k - 1074). Limbs
 * are signed and carry late, so that an addition touches three of them. */
enum { FGI_EXACT_LIMBS = 69 };
typedef struct fgi_exact_sum {
    int64_t limb[FGI_EXACT_LIMBS];
    int32_t pending; /* additions since carries were last taken care of */
} fgi_exact_sum;

void fgi_exact_sum_add(fgi_exact_sum *exact, double x); /* finite */
/* The sum, rounded once, to nearest (ties to even); infinite where it is no double. */
double fgi_exact_sum_value(const fgi_exact_sum *exact);

#endif
