/* io/numbers.h - the numbers of a text as scores: one after the other, or a long text by all threads at once. */
#ifndef FGI_NUMBERS_H
#define FGI_NUMBERS_H
#include <math.h>
#include <string.h>
#include "base/decimal.h"
#include "base/pool.h"
#include "fginfer.h"

/* Numbers that were read lately: tables repeat theirs. */
enum { FGI_CACHE_BITS = 10 };
typedef struct fgi_cached {
    uint64_t text;
    double score;
} fgi_cached; /* a token of at most 7 bytes, and what it means */

static inline int fgi_is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/* FGI_SMALL_PIECES is for the fuzzer: short texts then go the way of long ones. */
#ifdef FGI_SMALL_PIECES
#define FGI_SIZE(usual, small) small
#else
#define FGI_SIZE(usual, small) usual
#endif
enum {
    FGI_MAX_TOKEN = FGI_SIZE(4096, 200),   /* bytes: a longer word is no number that anybody writes */
    FGI_TOGETHER = FGI_SIZE(1 << 18, 160), /* bytes: so much text is worth waking other threads */
    FGI_PART = FGI_SIZE(1 << 16, 48)       /* bytes that one of them reads at a time: half a millisecond */
};

enum { FGI_NEAR_END = 64 }; /* bytes before the end of a text, where words of it are not read any more */

#if defined(__GNUC__) && defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define FGI_WORD_SCAN 1 /* words are read eight bytes at a time */
/* Bytes of a token at the start of a word of text: 0 .. 7, or 8 if it does not end in there. Blanks are all bytes <= '
 * '. */
static inline int fgi_token_length(uint64_t word) {
    uint64_t blank = (word - 0x2121212121212121u) & ~word & 0x8080808080808080u; /* exact up to the first hit */
    return blank ? __builtin_ctzll(blank) >> 3 : 8;
}
#endif

/* The number that begins at p, with `log_values` a score, else a potential. Returns where it ends; NULL at what needs
 * more than that: special values, what is no number or not allowed, and whatever is near the end of the text. Tables
 * repeat few short tokens again and again, so those are looked up instead of parsed. */
static inline const char *fgi_number_read(
    const char *p, const char *end, int log_values, fgi_cached *cache, double *score) {
    if (end - p < FGI_NEAR_END) return NULL;
#ifdef FGI_WORD_SCAN
    uint64_t word;
    memcpy(&word, p, sizeof word);
    int length = fgi_token_length(word);
    fgi_cached *known = NULL;
    if (length < 8) {
        word &= ((uint64_t)1 << (8 * length)) - 1;
        known = &cache[(word * 0x9E3779B97F4A7C15u) >> (64 - FGI_CACHE_BITS)];
        if (known->text == word && length && fgi_is_space(p[length])) { /* other control characters belong to a token */
            *score = known->score;
            return p + length;
        }
    }
#else
    (void)cache;
#endif
    fgi_decimal d;
    const char *q = fgi_decimal_scan(p, end, &d);
    if (!q || q == end || !fgi_is_space(*q) || q - p > FGI_MAX_TOKEN || (d.negative && !log_values)) return NULL;
    *score = log_values ? fgi_decimal_double(&d, p, q) : fgi_decimal_log(&d, p, q);
    if (*score == INFINITY || (log_values && *score == -INFINITY)) return NULL;
#ifdef FGI_WORD_SCAN
    if (known && q - p == length) *known = (fgi_cached){word, *score};
#endif
    return q;
}

/* A long text, ending with a blank, cut into its tokens by several threads. */
typedef struct fgi_numbers fgi_numbers;
/* Tokens of a part of the text: where each begins, and its score, NAN where fgi_number_read had none. */
typedef struct fgi_numbers_part {
    int64_t n;
    const double *score;
    const uint32_t *begin; /* in the whole text */
} fgi_numbers_part;

fgi_numbers *fgi_numbers_create(int threads, int log_values); /* NULL: out of memory */
void fgi_numbers_free(fgi_numbers *x);
int64_t fgi_numbers_held(const fgi_numbers *x); /* bytes */
/* Returns the number of parts, 0 when memory is short. n < 2^32. */
int64_t fgi_numbers_read(fgi_numbers *x, const char *text, int64_t n);
fgi_numbers_part fgi_numbers_at(const fgi_numbers *x, int64_t part);

#endif
