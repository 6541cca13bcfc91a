/*
 * base/decimal.c - see base/decimal.h. Three steps, each taken only when the one before cannot decide:
 *   1. digits and power of ten are both exact doubles: one multiplication or division rounds correctly (Clinger 1990);
 *   2. digits times a 128-bit power of five, as an interval: done if both ends round to the same double;
 *   3. the exact comparison of the decimal with the midpoint of two doubles, in long integers.
 */
#include "base/decimal.h"
#include <math.h>
#include <string.h>

/* ---- 128-bit products --------------------------------------------------------------------------------------- */

static uint64_t mul_64(uint64_t a, uint64_t b, uint64_t *low) {
#ifdef __SIZEOF_INT128__
    unsigned __int128 p = (unsigned __int128)a * b;
    *low = (uint64_t)p;
    return (uint64_t)(p >> 64);
#else
    uint64_t a0 = (uint32_t)a, a1 = a >> 32, b0 = (uint32_t)b, b1 = b >> 32;
    uint64_t mid = a1 * b0 + (a0 * b0 >> 32), mid2 = a0 * b1 + (uint32_t)mid;
    *low = a * b;
    return a1 * b1 + (mid >> 32) + (mid2 >> 32);
#endif
}

typedef struct wide {
    uint64_t high, low;
} wide;

/* The upper 128 bits of a * b (192 bits), and the lower 64. */
static wide mul_wide(wide a, uint64_t b, uint64_t *rest) {
    uint64_t carry_low, low, high;
    uint64_t carry = mul_64(a.low, b, rest);
    high = mul_64(a.high, b, &low);
    carry_low = low + carry;
    return (wide){high + (carry_low < low), carry_low};
}

static void add_wide(wide *a, uint64_t high, uint64_t low) { /* saturates */
    uint64_t before = a->high;
    a->low += low;
    a->high += high + (a->low < low);
    if (a->high < before) *a = (wide){UINT64_MAX, UINT64_MAX};
}

static int leading_zeros(uint64_t x) { /* x != 0 */
#if defined(__GNUC__)
    return __builtin_clzll(x);
#else
    int n = 0;
    while (!(x >> 63)) x <<= 1, n++;
    return n;
#endif
}

/* ---- powers of five ----------------------------------------------------------------------------------------- */

enum {
    STEP = 28,        /* exponents between two powers that are stored: 5^27 fits into 64 bits */
    FIRST = -13,      /* steps to the smallest power that is stored */
    MIN_POWER = -343, /* decimal exponents below round to 0 */
    MAX_POWER = 308   /* decimal exponents above overflow */
};

/* 5^(28k), k = -13 .. 11, scaled to 128 bits and cut off. Exact for k = 0 and 1. */
static const wide BIG_POWERS[] = {
    {0xE1AFA13AFBD14D6Du, 0x82189C09A3A1EC21u},
    {0xE3E27A444D8D98B7u, 0xFD1B1B2308169B25u},
    {0xE61ACF033D1A45DFu, 0x6FB92487298E33BDu},
    {0xE858AD248F5C22C9u, 0xD1B3400F8F9CFF68u},
    {0xEA9C227723EE8BCBu, 0x465E15A979C1CADCu},
    {0xECE53CEC4A314EBDu, 0xA4F8BF5635246428u},
    {0xEF340A98172AACE4u, 0x86FB897116C87C34u},
    {0xF18899B1BC3F8CA1u, 0xDC44E6C3CB279AC1u},
    {0xF3E2F893DEC3F126u, 0x5A89DBA3C3EFCCFAu},
    {0xF64335BCF065D37Du, 0x4D4617B5FF4A16D5u},
    {0xF8A95FCF88747D94u, 0x75A44C6397CE912Au},
    {0xFB158592BE068D2Eu, 0xEED6E2F0F0D56712u},
    {0xFD87B5F28300CA0Du, 0x8BCA9D6E188853FCu},
    {0x8000000000000000u, 0x0000000000000000u},
    {0x813F3978F8940984u, 0x4000000000000000u},
    {0x82818F1281ED449Fu, 0xBFF8F10E7A8921A4u},
    {0x83C7088E1AAB65DBu, 0x792667C6DA79E0FAu},
    {0x850FADC09923329Eu, 0x03E2CF6BC604DDB0u},
    {0x865B86925B9BC5C2u, 0x0B8A2392BA45A9B2u},
    {0x87AA9AFF79042286u, 0x90FB44D2F05D0842u},
    {0x88FCF317F22241E2u, 0x441FECE3BDF81F03u},
    {0x8A5296FFE33CC92Fu, 0x82BD6B70D99AAA6Fu},
    {0x8BAB8EEFB6409C1Au, 0x1AD089B6C2F7548Eu},
    {0x8D07E33455637EB2u, 0xDB0B487B6423E1E8u},
    {0x8E679C2F5E44FF8Fu, 0x570F09EAA7EA7648u},
};

/* 5^r, r = 0 .. 27: all below 2^63. */
static const uint64_t SMALL_POWERS[STEP] = {1u, 5u, 25u, 125u, 625u, 3125u, 15625u, 78125u, 390625u, 1953125u, 9765625u,
    48828125u, 244140625u, 1220703125u, 6103515625u, 30517578125u, 152587890625u, 762939453125u, 3814697265625u,
    19073486328125u, 95367431640625u, 476837158203125u, 2384185791015625u, 11920928955078125u, 59604644775390625u,
    298023223876953125u, 1490116119384765625u, 7450580596923828125u};

static const double TENS[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
    1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

static int floor_log2_power(int64_t e) {
    return (int)((e * 152170) >> 16);
} /* floor(log2(5^e)), e in the range above */

/* 5^e = (result + [0, *error]) * 2^(floor_log2_power(e) - 127), the result in [2^127, 2^128). */
static wide power_of_five(int e, unsigned *error) {
    int k = (e - FIRST * STEP) / STEP + FIRST, r = e - k * STEP;
    uint64_t rest;
    wide p = mul_wide(BIG_POWERS[k - FIRST], SMALL_POWERS[r] << leading_zeros(SMALL_POWERS[r]), &rest);
    *error = (k == 0 || k == 1) && rest == 0 ? 0 : 4; /* both factors cut off, then one shift: below 4 units */
    if (!(p.high >> 63)) p = (wide){p.high << 1 | p.low >> 63, p.low << 1 | rest >> 63};
    return p;
}

/* ---- rounding ----------------------------------------------------------------------------------------------- */

/* A rounded-down double m * 2^q, and what is needed to round it. */
typedef struct cut {
    uint64_t m;
    int q;
} cut;

static double assemble(uint64_t m, int q) { /* m <= 2^53; m < 2^52 only with q = -1074 */
    uint64_t bits;
    double value;
    if (m == (uint64_t)1 << 53) m >>= 1, q++;
    if (m < (uint64_t)1 << 52) bits = m;
    else if (q > 971) return INFINITY;
    else bits = (uint64_t)(q + 1075) << 52 | (m & (((uint64_t)1 << 52) - 1));
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Rounds t * 2^e (t in [2^127, 2^128), `sticky` says that it is a bit more) half to even; *c gets the value rounded
 * down. */
static double round_wide(wide t, int sticky, int e, cut *c) {
    int q = e + 127 - 52;
    if (q < -1074) q = -1074;
    int drop = q - e; /* >= 75 */
    uint64_t m, half, below;
    if (drop >= 129) {
        *c = (cut){0, q};
        return 0.0;
    }
    if (drop == 128) {
        m = 0, half = t.high >> 63, below = (t.high << 1) | t.low;
    } else {
        int s = drop - 64; /* 11 .. 63 */
        m = t.high >> s;
        half = t.high >> (s - 1) & 1;
        below = (t.high & (((uint64_t)1 << (s - 1)) - 1)) | t.low;
    }
    *c = (cut){m, q};
    return assemble(m + (half && (below || sticky || (m & 1))), q);
}

/* ---- exact comparison --------------------------------------------------------------------------------------- */

enum {
    LIMBS = 256,     /* 8192 bits; the largest number compared has below 5000 (see exact_double) */
    MAX_DIGITS = 800 /* a midpoint of two doubles has at most 767 */
};
typedef struct big {
    int n;
    uint32_t limb[LIMBS];
} big;

static void big_mul_add(big *b, uint32_t factor, uint32_t add) {
    uint64_t carry = add;
    for (int k = 0; k < b->n; k++) {
        carry += (uint64_t)b->limb[k] * factor;
        b->limb[k] = (uint32_t)carry;
        carry >>= 32;
    }
    if (carry && b->n < LIMBS) b->limb[b->n++] = (uint32_t)carry;
}

static void big_mul_power_of_five(big *b, int64_t e) {
    for (; e >= 13; e -= 13) big_mul_add(b, 1220703125u, 0);
    if (e > 0) big_mul_add(b, (uint32_t)SMALL_POWERS[e], 0);
}

static void big_shift(big *b, int64_t bits) {
    int whole = (int)(bits / 32);
    big_mul_add(b, (uint32_t)1 << (bits % 32), 0);
    if (b->n == 0 || b->n + whole > LIMBS) return;
    memmove(b->limb + whole, b->limb, (size_t)b->n * sizeof b->limb[0]);
    memset(b->limb, 0, (size_t)whole * sizeof b->limb[0]);
    b->n += whole;
}

static int big_compare(const big *a, const big *b) {
    if (a->n != b->n) return a->n < b->n ? -1 : 1;
    for (int k = a->n - 1; k >= 0; k--)
        if (a->limb[k] != b->limb[k]) return a->limb[k] < b->limb[k] ? -1 : 1;
    return 0;
}

/* All significant digits of the text, at most MAX_DIGITS and one more that stands for the rest; returns the power of
 * ten. */
static int64_t big_from_text(big *b, const char *p, const char *end) {
    int64_t exponent = 0;
    int dot = 0, used = 0, more = 0;
    b->n = 0;
    for (; p < end && *p != 'e' && *p != 'E'; p++) {
        unsigned c = (unsigned char)*p - (unsigned)'0';
        if (*p == '.') dot = 1;
        if (c > 9) continue; /* sign or dot */
        if (used < MAX_DIGITS) {
            if (used || c) used++;
            if (b->n == 0 && c) b->limb[b->n++] = c;
            else big_mul_add(b, 10, c);
            exponent -= dot;
        } else {
            more |= c != 0;
            exponent += !dot;
        }
    }
    if (more) {
        big_mul_add(b, 10, 1);
        exponent--;
    }
    return exponent;
}

/*
 * Rounds the decimal, known to lie in [c.m, c.m + 1.5) * 2^c.q, by comparing it with the midpoint (2m + 1) * 2^(q-1).
 * A midpoint has at most 767 significant digits, so a longer decimal is decided by its first 800 and "more than that".
 */
static double exact_double(cut c, const fgi_decimal *d, const char *text, const char *end) {
    big a, b;
    int64_t exponent = big_from_text(&a, text, end) + d->written;
    uint64_t middle = 2 * c.m + 1;
    b.n = 0;
    b.limb[b.n++] = (uint32_t)middle;
    if (middle >> 32) b.limb[b.n++] = (uint32_t)(middle >> 32);
    big_mul_power_of_five(exponent >= 0 ? &a : &b, exponent >= 0 ? exponent : -exponent);
    int64_t shift = exponent - (c.q - 1);
    big_shift(shift >= 0 ? &a : &b, shift >= 0 ? shift : -shift);
    int order = big_compare(&a, &b);
    return assemble(c.m + (order > 0 || (order == 0 && (c.m & 1))), c.q);
}

/* ---- doubles ------------------------------------------------------------------------------------------------ */

static double magnitude(const fgi_decimal *d, const char *text, const char *end) {
    int64_t e = d->exponent;
    if (d->digits == 0) return 0.0;
    if (!d->truncated && d->digits <= (uint64_t)1 << 53 && e >= -22 && e <= 22)
        return e < 0 ? (double)d->digits / TENS[-e] : (double)d->digits * TENS[e];
    if (e < MIN_POWER) return 0.0;      /* below 10^19 * 10^-344, less than half the smallest double */
    if (e > MAX_POWER) return INFINITY; /* at least 10^309 */
    /* The value lies in [low, high] * 2^binary; a truncated decimal may be larger by one unit of its digits. */
    unsigned error;
    uint64_t rest;
    int zeros = leading_zeros(d->digits);
    wide power = power_of_five((int)e, &error);
    wide low = mul_wide(power, d->digits << zeros, &rest), high = low;
    int binary = floor_log2_power(e) + (int)e + 64 - 127 - zeros;
    if (d->truncated) add_wide(&high, (power.high >> 1 >> (63 - zeros)) + 1, power.high << zeros);
    if (error) add_wide(&high, 0, error + 1);
    if (!(low.high >> 63) && high.high >> 63)
        high = (wide){UINT64_MAX >> 1, UINT64_MAX}; /* a power of two: rounds to it */
    if (!(low.high >> 63)) {
        low = (wide){low.high << 1 | low.low >> 63, low.low << 1 | rest >> 63};
        high = (wide){high.high << 1 | high.low >> 63, high.low << 1 | 1};
        rest <<= 1;
        binary--;
    }
    cut c, unused;
    double value = round_wide(low, rest != 0, binary, &c);
    if ((error || d->truncated) && round_wide(high, 0, binary, &unused) != value) return exact_double(c, d, text, end);
    return value;
}

double fgi_decimal_double(const fgi_decimal *d, const char *text, const char *end) {
    double value = magnitude(d, text, end);
    return d->negative ? -value : value;
}

/* ---- logarithms --------------------------------------------------------------------------------------------- */

typedef struct pair {
    double high, low;
} pair; /* an unevaluated sum, about 106 bits */

static pair two_sum(double a, double b) {
    double s = a + b, t = s - a;
    return (pair){s, (a - (s - t)) + (b - t)};
}

static pair pair_add(pair a, pair b) {
    pair sum = two_sum(a.high, b.high);
    return two_sum(sum.high, sum.low + (a.low + b.low));
}

static pair pair_of(uint64_t x) { /* x < 10^19 */
    double high = (double)x;
    return (pair){high, (double)(int64_t)(x - (uint64_t)high)};
}

static pair pair_divide(pair a, double b) {
    double q = a.high / b, r = fma(-q, b, a.high);
    return two_sum(q, (r + a.low) / b);
}

/* The digits after the first 19 significant ones, as a fraction of a unit of the 19th. */
static pair digits_beyond(const char *p, const char *end) {
    uint64_t group[2] = {0, 0};
    int seen = 0;
    for (; p < end && *p != 'e' && *p != 'E'; p++) {
        unsigned c = (unsigned char)*p - (unsigned)'0';
        if (c > 9 || (seen == 0 && c == 0)) continue;
        if (seen >= 19 && seen < 57) group[(seen - 19) / 19] = 10 * group[(seen - 19) / 19] + c;
        seen++;
    }
    for (; seen < 57; seen++)
        if (seen >= 19) group[(seen - 19) / 19] *= 10;
    pair second = pair_divide(pair_divide(pair_of(group[1]), 1e19), 1e19);
    return pair_add(pair_divide(pair_of(group[0]), 1e19), second);
}

double fgi_decimal_log(const fgi_decimal *d, const char *text, const char *end) {
    static const double LN10_HIGH = 0x1.26bb1b8p+1;       /* ln 10 to 26 bits */
    static const double LN10_LOW = 0x1.daaa8ac16ea57p-26; /* the rest of ln 10 */
    double v = magnitude(d, text, end);
    if (d->digits == 0) return -INFINITY;
    if (v == 0.0 || v == INFINITY) {
        pair p = two_sum((double)d->exponent * LN10_HIGH, log((double)d->digits));
        return p.high + (p.low + (double)d->exponent * LN10_LOW);
    }
    /* Near 1 the logarithm resolves more than a double does: with v the nearest double, ln(v + r) = ln v + r/v. */
    int all_counted = !d->truncated && d->digits < 100000000000000000u; /* at most 17 digits */
    if (all_counted || v < 0.0625 || v > 16.0 || d->exponent > 0 || d->exponent < -22) return log(v);
    double scale = TENS[-d->exponent], product = v * scale, error = fma(v, scale, -product);
    pair digits = pair_of(d->digits);
    pair r = pair_add((pair){digits.high - product, 0.0}, two_sum(digits.low, -error));
    if (d->truncated) r = pair_add(r, digits_beyond(text, end));
    r = pair_divide(r, scale);
    return log(v) + (v == 1.0 ? r.high + r.low : (r.high + r.low) / v);
}
