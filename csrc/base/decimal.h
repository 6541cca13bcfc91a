/* base/decimal.h - decimal text to double and back: correctly rounded, the same on every machine, whatever the locale.
 */
#ifndef FGI_DECIMAL_H
#define FGI_DECIMAL_H
#include <stddef.h>
#include <stdint.h>

/* digits * 10^exponent. With `truncated`, digits are the first 19 significant ones and the true value is slightly
 * larger. */
typedef struct fgi_decimal {
    uint64_t digits;
    int64_t exponent;
    int64_t written; /* the part of the exponent that stood after the 'e' */
    int negative, truncated;
} fgi_decimal;

enum { FGI_DECIMAL_MAX_EXPONENT = 1000000000 }; /* larger ones in the text saturate here */

/* Scans [+-]digits[.digits][e[+-]digits] and returns the first byte after it, or NULL if no number starts at p. */
static inline const char *fgi_decimal_scan(const char *p, const char *end, fgi_decimal *d) {
    uint64_t digits = 0;
    int64_t exponent = 0;
    int any = 0, dot = 0, truncated = 0;
    d->negative = p < end && *p == '-';
    if (p < end && (*p == '-' || *p == '+')) p++;
    for (; p < end; p++) {
        unsigned c = (unsigned char)*p - (unsigned)'0';
        if (c < 10) {
            any = 1;
            if (digits < 1000000000000000000u) { /* room for one more: at most 19 digits in all */
                digits = 10 * digits + c;
                exponent -= dot;
            } else {
                truncated |= c != 0;
                exponent += !dot;
            }
        } else if (*p == '.' && !dot) {
            dot = 1;
        } else {
            break;
        }
    }
    if (!any) return NULL;
    d->written = 0;
    if (p < end && (*p == 'e' || *p == 'E')) {
        const char *q = p + 1;
        int minus = q < end && *q == '-';
        int64_t e = 0;
        if (q < end && (*q == '-' || *q == '+')) q++;
        if (q >= end || (unsigned char)*q - (unsigned)'0' > 9) return NULL;
        for (; q < end && (unsigned char)*q - (unsigned)'0' < 10; q++)
            if (e < FGI_DECIMAL_MAX_EXPONENT) e = 10 * e + (*q - '0');
        if (e > FGI_DECIMAL_MAX_EXPONENT) e = FGI_DECIMAL_MAX_EXPONENT;
        d->written = minus ? -e : e;
        exponent += d->written;
        p = q;
    }
    d->digits = digits;
    d->exponent = exponent;
    d->truncated = truncated;
    return p;
}

/* The nearest double, ties to even; infinite beyond the largest one. [text, end) is what was scanned. */
double fgi_decimal_double(const fgi_decimal *d, const char *text, const char *end);

/*
 * The natural logarithm of a non-negative number; -INFINITY for zero only. Numbers outside the range of a double keep
 * their logarithm, and digits beyond the 17th count where the logarithm can show them.
 */
double fgi_decimal_log(const fgi_decimal *d, const char *text, const char *end);

enum { FGI_TEXT_SIZE = 96 }; /* room for any number written below */

/* The shortest text that reads back as exactly this finite double; returns its length (no terminating zero). */
int fgi_text_of_double(double value, char *text);

/*
 * Text of a potential whose logarithm reads back as `score`, bit for bit wherever decimals can do that and always to
 * 1e-15 * max(1, |score|). -INFINITY gives "0". Returns 0 where exp(score) overflows or is lost in underflow.
 */
int fgi_text_of_potential(double score, char *text);

#endif
