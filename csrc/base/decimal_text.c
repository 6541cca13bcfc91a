/*
 * base/decimal_text.c - doubles to text, see base/decimal.h. Every candidate is read back by the reader itself before
 * it is taken, so "reads back as the same number" holds by construction and not by an argument about rounding.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "base/decimal.h"

/* value = digits * 10^(exponent - 17), 18 digits, from the C library; its decimal point may be any character. */
static uint64_t digits_of(double value, int *exponent) {
    char text[40];
    uint64_t digits = 0;
    int k = 0, e = 0, minus;
    snprintf(text, sizeof text, "%.17e", value);
    for (; text[k] != 'e'; k++)
        if (text[k] >= '0' && text[k] <= '9') digits = 10 * digits + (uint64_t)(text[k] - '0');
    minus = text[++k] == '-';
    while (text[++k]) e = 10 * e + (text[k] - '0');
    *exponent = minus ? -e : e;
    return digits;
}

static int put_whole(uint64_t x, char *text) {
    char reversed[24];
    int n = 0;
    do reversed[n++] = (char)('0' + x % 10);
    while (x /= 10);
    for (int k = 0; k < n; k++) text[k] = reversed[n - 1 - k];
    return n;
}

/* digits * 10^(exponent - (number of digits - 1)): plain where that is short, scientific otherwise. */
static int put_decimal(uint64_t digits, int exponent, char *text) {
    char all[24];
    char *t = text;
    int n = put_whole(digits, all);
    while (n > 1 && all[n - 1] == '0') n--; /* 100 came from rounding up 99.6: its point is where it was */
    if (exponent >= 0 && exponent < 17) {
        for (int k = 0; k <= exponent || k < n; k++) {
            if (k == exponent + 1) *t++ = '.';
            *t++ = k < n ? all[k] : '0';
        }
    } else if (exponent < 0 && exponent >= -4) {
        memcpy(t, "0.000", (size_t)(1 - exponent));
        t += 1 - exponent;
        memcpy(t, all, (size_t)n);
        t += n;
    } else {
        *t++ = all[0];
        if (n > 1) {
            *t++ = '.';
            memcpy(t, all + 1, (size_t)n - 1);
            t += n - 1;
        }
        *t++ = 'e';
        if (exponent < 0) *t++ = '-';
        t += put_whole((uint64_t)(exponent < 0 ? -exponent : exponent), t);
    }
    return (int)(t - text);
}

static double read_double(const char *text, int n) {
    fgi_decimal d;
    fgi_decimal_scan(text, text + n, &d);
    return fgi_decimal_double(&d, text, text + n);
}

static double read_log(const char *text, int n) {
    fgi_decimal d;
    fgi_decimal_scan(text, text + n, &d);
    return fgi_decimal_log(&d, text, text + n);
}

static const uint64_t UNITS[18] = {100000000000000000u, 10000000000000000u, 1000000000000000u, 100000000000000u,
    10000000000000u, 1000000000000u, 100000000000u, 10000000000u, 1000000000u, 100000000u, 10000000u, 1000000u, 100000u,
    10000u, 1000u, 100u, 10u, 1u};

/* The shortest rounding of value > 0 that `read` maps to `wanted`, 0 if none does; tried are those off by at most
 * `slack`. */
static int shortest(double value, double wanted, double (*read)(const char *, int), double slack, char *text) {
    int exponent;
    uint64_t digits = digits_of(value, &exponent);
    for (int p = 0; p < 17; p++) {
        uint64_t unit = UNITS[p], rounded = (digits + unit / 2) / unit, back = rounded * unit;
        double off = (double)(back > digits ? back - digits : digits - back);
        if (off > slack * (double)digits + 2.0) continue;
        int carry = rounded == 10 * (p ? UNITS[17 - p] : 1); /* 9.97 became 10.0 */
        int n = put_decimal(carry ? 1 : rounded, exponent + carry, text);
        if (read(text, n) == wanted) return n;
    }
    return 0;
}

int fgi_text_of_double(double value, char *text) {
    int sign = signbit(value) != 0, n = 0;
    if (sign) *text++ = '-', value = -value;
    if (value == 0.0) *text = '0', n = 1;
    else
        n = shortest(
            value, value, read_double, value < 1e-290 ? 1.0 : 2.3e-16, text); /* a subnormal needs few digits */
    return n + sign;
}

/* ---- potentials near 1 -------------------------------------------------------------------------------------- */

enum { FRACTION = 6 }; /* 32-bit limbs after the point */
typedef struct fixed {
    uint32_t limb[FRACTION + 2];
} fixed;

/* f += sign * |x|, cut off below 2^-192; |x| < 16. */
static void fixed_add(fixed *f, double x, int sign) {
    int exponent;
    uint64_t m = (uint64_t)ldexp(frexp(fabs(x), &exponent), 53);
    int shift = exponent - 53 + 32 * FRACTION;
    if (x == 0.0 || shift <= -53) return;
    if (shift < 0) m >>= -shift, shift = 0;
    int64_t carry = 0;
    uint32_t part[3] = {(uint32_t)(m << (shift % 32)), (uint32_t)(m >> (32 - shift % 32)), 0};
    if (shift % 32) part[2] = (uint32_t)(m >> 32 >> (32 - shift % 32));
    for (int k = shift / 32, j = 0; k < FRACTION + 2; k++, j++) {
        int64_t sum = (int64_t)f->limb[k] + carry + sign * (int64_t)(j < 3 ? part[j] : 0);
        f->limb[k] = (uint32_t)sum;
        carry = sum >> 32; /* arithmetic: -1 when borrowing */
    }
}

/* The next decimal digit after the point, which moves out of the fraction. */
static char fixed_digit(fixed *f) {
    uint64_t carry = 0;
    for (int k = 0; k < FRACTION; k++) {
        carry += (uint64_t)f->limb[k] * 10;
        f->limb[k] = (uint32_t)carry;
        carry >>= 32;
    }
    return (char)('0' + carry);
}

/* Text of the exact sum v + r, as long as the reader needs it to find `score`; 0 if it does not. */
static int sum_text(double score, double v, double r, char *text) {
    fixed f = {{0}};
    fixed_add(&f, v, 1);
    fixed_add(&f, r, r < 0 ? -1 : 1);
    int n = put_whole(f.limb[FRACTION], text);
    text[n++] = '.';
    for (int digits = 1; digits <= 56; digits++) {
        text[n++] = fixed_digit(&f);
        if (digits >= 20 && digits % 4 == 0 && read_log(text, n) == score) return n;
    }
    return 0;
}

/*
 * The logarithm of a number near 1 has more resolution than a double near 1, so most scores there are the logarithm of
 * no double. The text then holds the sum of a double v and a remainder r with ln v + r/v = score, |r| below half a unit
 * of v.
 */
static int long_potential(double score, double v, char *text) {
    if (v < 0.0625 || v > 16.0 || fabs(score) < 1e-34) return 0; /* the reader looks at 57 digits */
    double r = (score - log(v)) * v, unit = nextafter(v, r < 0 ? 0.0 : INFINITY) - v;
    if (fabs(r) >= fabs(0.5 * unit)) r = nextafter(0.5 * unit, 0.0);
    int n = sum_text(score, v, r, text);
    if (!n) n = sum_text(score, v, nextafter(r, 1.0), text);
    return n ? n : sum_text(score, v, nextafter(r, -1.0), text);
}

int fgi_text_of_potential(double score, char *text) {
    if (score == -INFINITY) return text[0] = '0', 1;
    double v = exp(score), size = fabs(score) > 1.0 ? fabs(score) : 1.0;
    if (v == 0.0 || v == INFINITY) return 0;
    int n = shortest(v, score, read_log, v < 1e-290 ? 1.0 : 1e-15 * size, text);
    if (n) return n;
    double below = nextafter(v, 0.0), above = nextafter(v, INFINITY);
    if (below > 0.0 && (n = shortest(below, score, read_log, 1e-15 * size, text))) return n;
    if (above < INFINITY && (n = shortest(above, score, read_log, 1e-15 * size, text))) return n;
    if ((n = long_potential(score, v, text))) return n;
    if ((n = long_potential(score, below, text)) || (n = long_potential(score, above, text))) return n;
    int exponent;
    uint64_t digits = digits_of(v, &exponent);
    n = put_decimal((digits + 5) / 10, exponent, text);
    return fabs(read_log(text, n) - score) <= 1e-15 * size ? n : 0;
}
