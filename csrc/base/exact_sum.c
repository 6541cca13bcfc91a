/* base/exact_sum.c - see base/exact_sum.h. */
#include "base/exact_sum.h"
#include <math.h>

enum {
    LIMB_BITS = 32,        /* bits in use of the 64 of a limb: the rest is for carries */
    LOWEST = -1074,        /* exponent of the first bit: that of the least subnormal number */
    MOST_PENDING = 1 << 29 /* additions before carries are moved on, which fit into what is left of a limb */
};

/* Every limb but the last into 0 .. 2^32 - 1; the last keeps the sign. */
static void carry(fgi_exact_sum *exact) {
    for (int k = 0; k + 1 < FGI_EXACT_LIMBS; k++) {
        const int64_t low = exact->limb[k] & 0xFFFFFFFF;
        exact->limb[k + 1] +=
            (exact->limb[k] - low) / ((int64_t)1 << LIMB_BITS); /* exact: no shift of a negative number */
        exact->limb[k] = low;
    }
    exact->pending = 0;
}

void fgi_exact_sum_add(fgi_exact_sum *exact, double x) {
    int exponent;
    const double mantissa = frexp(x, &exponent); /* x = whole * 2^(exponent - 53) */
    if (x == 0) return;
    int64_t whole = (int64_t)ldexp(mantissa, 53), sign = whole < 0 ? -1 : 1;
    int at = exponent - 53 - LOWEST;
    uint64_t bits = (uint64_t)(whole * sign);
    if (at < 0) { /* subnormal: the low bits are zero */
        bits >>= -at;
        at = 0;
    }
    const int k = at / LIMB_BITS, shift = at % LIMB_BITS;
    const uint64_t low = (bits & 0xFFFFFFFF) << shift, high = (bits >> LIMB_BITS) << shift;
    exact->limb[k] += sign * (int64_t)(low & 0xFFFFFFFF);
    exact->limb[k + 1] += sign * (int64_t)((low >> LIMB_BITS) + (high & 0xFFFFFFFF));
    exact->limb[k + 2] += sign * (int64_t)(high >> LIMB_BITS);
    if (++exact->pending >= MOST_PENDING) carry(exact);
}

double fgi_exact_sum_value(const fgi_exact_sum *sum) {
    fgi_exact_sum exact = *sum;
    carry(&exact);
    const int negative = exact.limb[FGI_EXACT_LIMBS - 1] < 0;
    if (negative) {
        for (int k = 0; k < FGI_EXACT_LIMBS; k++) exact.limb[k] = -exact.limb[k];
        carry(&exact);
    }
    int top = FGI_EXACT_LIMBS - 1, sticky = 0;
    while (top >= 0 && exact.limb[top] == 0) top--;
    if (top < 0) return 0;
    /* The highest three limbs hold 65 bits at least: 53 to keep, and those to round by. What is below breaks ties. */
    uint64_t high = (uint64_t)exact.limb[top] << 32 | (top > 0 ? (uint64_t)exact.limb[top - 1] : 0);
    uint64_t low = top > 1 ? (uint64_t)exact.limb[top - 2] << 32 : 0;
    int exponent = LOWEST + LIMB_BITS * (top - 1);
    for (int k = 0; k < top - 2; k++) sticky |= exact.limb[k] != 0;
    for (; !(high >> 63); exponent--) {
        high = high << 1 | low >> 63;
        low <<= 1;
    }
    sticky |= low != 0;
    const uint64_t half = 1 << 10, tail = high & 0x7FF;
    uint64_t kept = high >> 11;
    if (tail > half || (tail == half && (sticky || (kept & 1)))) kept++;
    const double value = ldexp((double)kept, exponent + 11); /* no second rounding: nothing lies below 2^-1074 */
    return negative ? -value : value;
}
