/*
 * fuzz_uai.h - random attacks on the UAI reader, for test_uai.c (a few thousand) and tests/truth/fuzz_uai.c (millions).
 *
 * Each input is a small valid file, damaged: bytes, tokens, lengths, endings. Whatever it is, reading it whole and in
 * random pieces must end the same way: with the same error (line, token, one sentence), or with the same model, which
 * then must survive being written and read back. Run under ASan and UBSan.
 */
#ifndef FUZZ_UAI_H
#define FUZZ_UAI_H
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/decimal.h"
#include "model/model.h"
#include "base/util.h"

enum { FUZZ_CAPACITY = 1 << 14 };

typedef struct fuzz_text {
    char at[FUZZ_CAPACITY];
    int64_t n;
} fuzz_text;

static const char *const FUZZ_TOKENS[] = {"0", "1", "2", "3", "4", "8", "16", "-1", "1e15", "1000000000000000",
    "99999999999999999999", "2147483647", "2147483648", "nan", "inf", "-inf", "1e-400", "1e400", "1e-99999999999",
    "4.9e-324", "1.7976931348623157e308", "0.1234567890123456789012345678901234567890",
    "0000000000000000000000000000000000000001", "0x10", "+5", "1.5.5", "..", "e5", "1e", "1e+", "-", "+", "1#",
    "MARKOV", "BAYES", "\x01\xff", "\n", "\n\n", "\r\n", "\t"};

static int64_t fuzz_below(fgi_rng *g, int64_t n) { return n > 0 ? fgi_rng_below(g, n) : 0; }

static void fuzz_put(fuzz_text *t, const char *word) {
    int64_t n = (int64_t)strlen(word);
    if (t->n + n > FUZZ_CAPACITY) return;
    memcpy(t->at + t->n, word, (size_t)n);
    t->n += n;
}

static void fuzz_number(fuzz_text *t, long long x) {
    char word[32];
    snprintf(word, sizeof word, "%lld ", x);
    fuzz_put(t, word);
}

/* Text of a random number: short and long, tiny and huge, near 1, halfway between doubles. */
static void fuzz_value(fgi_rng *g, char *text, size_t size) {
    double v = fgi_rng_unit(g);
    switch (fgi_rng_below(g, 9)) {
    case 0: snprintf(text, size, "%d", (int)fgi_rng_below(g, 3)); break;
    case 1: snprintf(text, size, "%.3g", v); break;
    case 2: snprintf(text, size, "%.17g", v); break;
    case 3: snprintf(text, size, "%.25f", v); break;
    case 4: snprintf(text, size, "%.40f", 1.0 + (v - 0.5) * 1e-9); break;
    case 5: snprintf(text, size, "%.16e", ldexp(v, (int)fgi_rng_below(g, 2100) - 1080)); break;
    case 6:
        snprintf(text, size, "%llue%d", (unsigned long long)fgi_rng_next(g), (int)fgi_rng_below(g, 700) - 360);
        break;
    case 7:
        snprintf(text, size, "%llu.%d", (unsigned long long)(fgi_rng_next(g) >> 11) * 2 + 1, (int)fgi_rng_below(g, 2));
        break;
    default: snprintf(text, size, "0.0005"); break;
    }
}

static void fuzz_seed(fgi_rng *g, fuzz_text *t) {
    int n_vars = 1 + (int)fgi_rng_below(g, 5), n_factors = (int)fgi_rng_below(g, 6), cards[5], scope[6][3], arity[6];
    char word[96];
    t->n = 0;
    fuzz_put(t, fgi_rng_below(g, 4) ? "MARKOV\n" : "BAYES\n");
    fuzz_number(t, n_vars);
    for (int i = 0; i < n_vars; i++) fuzz_number(t, cards[i] = 1 + (int)fgi_rng_below(g, 4));
    fuzz_put(t, "\n");
    fuzz_number(t, n_factors);
    for (int f = 0; f < n_factors; f++) {
        arity[f] = (int)fgi_rng_below(g, n_vars < 3 ? n_vars + 1 : 4);
        fuzz_number(t, arity[f]);
        int first = (int)fgi_rng_below(g, n_vars);
        for (int k = 0; k < arity[f]; k++) fuzz_number(t, scope[f][k] = (first + k) % n_vars);
        fuzz_put(t, "\n");
    }
    for (int f = 0; f < n_factors; f++) {
        int size = 1, same = (int)fgi_rng_below(g, 3) == 0;
        for (int k = 0; k < arity[f]; k++) size *= cards[scope[f][k]];
        fuzz_number(t, size);
        fuzz_put(t, "\n");
        fuzz_value(g, word, sizeof word);
        for (int k = 0; k < size; k++) {
            if (!same) fuzz_value(g, word, sizeof word);
            fuzz_put(t, word);
            fuzz_put(t, fgi_rng_below(g, 8) ? " " : "\n ");
        }
    }
}

static void fuzz_cut(fuzz_text *t, int64_t from, int64_t n) {
    if (from + n > t->n) n = t->n - from;
    memmove(t->at + from, t->at + from + n, (size_t)(t->n - from - n));
    t->n -= n;
}

static void fuzz_insert(fuzz_text *t, int64_t at, const char *word, int64_t n) {
    if (t->n + n > FUZZ_CAPACITY) return;
    memmove(t->at + at + n, t->at + at, (size_t)(t->n - at));
    memcpy(t->at + at, word, (size_t)n);
    t->n += n;
}

static void fuzz_damage(fgi_rng *g, fuzz_text *t) {
    int64_t at = fuzz_below(g, t->n), from = at, to = at;
    char word[96];
    switch (fgi_rng_below(g, 9)) {
    case 0:
        if (t->n) t->at[at] = (char)fgi_rng_next(g);
        break;
    case 1: t->n = at; break;
    case 2: fuzz_cut(t, at, 1 + fuzz_below(g, 8)); break;
    case 3: /* another token in place of this one */
        while (from > 0 && t->at[from - 1] > ' ') from--;
        while (to < t->n && t->at[to] > ' ') to++;
        fuzz_cut(t, from, to - from);
        /* fall through */
    case 4: {
        const char *token = FUZZ_TOKENS[fgi_rng_below(g, (int64_t)(sizeof FUZZ_TOKENS / sizeof FUZZ_TOKENS[0]))];
        fuzz_insert(t, from, token, (int64_t)strlen(token));
        break;
    }
    case 5: fuzz_insert(t, at, " ", 1); break;
    case 6: /* a piece of the text once more */
        to = fuzz_below(g, t->n - at) % 64;
        memcpy(word, t->at + at, (size_t)to);
        fuzz_insert(t, fuzz_below(g, t->n), word, to);
        break;
    case 7:
        fuzz_value(g, word, sizeof word);
        fuzz_insert(t, at, word, (int64_t)strlen(word));
        break;
    default:
        if (t->n) t->at[at] ^= (char)(1 << fgi_rng_below(g, 8));
        break;
    }
}

/* Reads the text in pieces of at most `piece` bytes (each a copy of its own, so that reading past it is seen): all at
 * once by one thread, else as for two. */
static fgi_rc fuzz_read(
    const fuzz_text *t, int logs, int64_t piece, fgi_rng *g, fgi_model **out, int64_t *given, fgi_error *err) {
    fgi_uai *r = NULL;
    fgi_rc rc = fgi_uai_create(logs, piece >= t->n ? 1 : 2, &r, err);
    for (int64_t at = 0; !rc && at < t->n;) {
        int64_t n = piece >= t->n ? t->n : 1 + fgi_rng_below(g, piece);
        if (n > t->n - at) n = t->n - at;
        char *copy = fgi_alloc(n, 1);
        if (!copy) break;
        memcpy(copy, t->at + at, (size_t)n);
        rc = fgi_uai_feed(r, copy, n, err);
        free(copy);
        at += n;
    }
    if (!rc) rc = fgi_uai_finish(r, out, given, err);
    fgi_uai_free(r);
    return rc;
}

/* Lengths of pieces: short ones, and such as are worth several threads. */
static int64_t fuzz_piece(fgi_rng *g) { return 1 + fgi_rng_below(g, fgi_rng_below(g, 2) ? 100 : 1500); }

/* Equal bits, except where potentials have none to spare: scores below 1e-34, and sums of scores of subnormal
 * potentials. */
static int fuzz_same_score(double a, double b) {
    return a == b || (fabs(a) < 1e-33 && fabs(b) < 1e-33) || (a < -708.0 && fabs(a - b) <= 1e-15 * fabs(a));
}

static int fuzz_same_doubles(const double *a, const double *b, int64_t n) {
    for (int64_t k = 0; k < n; k++)
        if (!fuzz_same_score(a[k], b[k])) return 0;
    return 1;
}

static int fuzz_same(const fgi_model *a, const fgi_model *b) {
    const fgi_structure *s = a->s, *t = b->s;
    if (s->n_vars != t->n_vars || s->n_tables != t->n_tables || s->n_factors != t->n_factors) return 0;
    if (!fuzz_same_score(s->constant, t->constant)) return 0;
    if (s->values_begin[s->n_tables] != t->values_begin[t->n_tables]) return 0;
    if (s->unary_begin[s->n_vars] != t->unary_begin[t->n_vars]) return 0;
    for (int64_t f = 0; f < s->n_factors; f++) {
        int32_t arity = fgi_factor_arity(s, f);
        if (arity != fgi_factor_arity(t, f) || s->factor_table[f] != t->factor_table[f]) return 0;
        if (memcmp(fgi_factor_vars(s, f), fgi_factor_vars(t, f), (size_t)arity * sizeof(int32_t))) return 0;
    }
    return fuzz_same_doubles(a->t->values, b->t->values, s->values_begin[s->n_tables]) &&
        fuzz_same_doubles(a->u->values, b->u->values, s->unary_begin[s->n_vars]);
}

/*
 * Written and read back it is the same model; with `exact` off only readable (scores below 1e-34 become 0 as
 * potentials). Potentials outside the range of a double may be refused.
 */
static int fuzz_round_trip(const fgi_model *m, int logs, int exact, fgi_rng *g) {
    static fuzz_text text; /* large, and only one at a time */
    fgi_uai_writer *w = NULL;
    fgi_model *again = NULL;
    fgi_error err;
    int64_t n, given;
    int fine = 1;
    text.n = 0;
    if (fgi_uai_writer_create(m, logs, 0, &w, &err)) return 0;
    for (;;) {
        fgi_rc rc = FGI_NO_MEMORY;
        if (FUZZ_CAPACITY - text.n >= 4096)
            rc = fgi_uai_writer_next(w, text.at + text.n, 256 + fgi_rng_below(g, 1024), &n, &err);
        if (rc) { /* too long for this buffer, or refused: then with a reason */
            fine = rc == FGI_NO_MEMORY || (rc == FGI_BAD_FORMAT && !logs && strstr(err.message, ".LG"));
            break;
        }
        if (n == 0) {
            fine = !fuzz_read(&text, logs, text.n, g, &again, &given, &err) && (!exact || fuzz_same(m, again));
            break;
        }
        text.n += n;
    }
    fgi_model_free(again);
    fgi_uai_writer_free(w);
    return fine;
}

/* Our numbers against the C library's. */
static int fuzz_decimals(fgi_rng *g) {
    char text[96], back[FGI_TEXT_SIZE + 1];
    fgi_decimal d;
    fuzz_value(g, text, sizeof text);
    const char *end = text + strlen(text);
    if (fgi_decimal_scan(text, end, &d) != end) return 0;
    double ours = fgi_decimal_double(&d, text, end);
    if (ours != strtod(text, NULL)) return 0;
    if (!isfinite(ours)) return 1;
    int n = fgi_text_of_double(ours, back);
    back[n] = '\0';
    return n > 0 && n <= FGI_TEXT_SIZE && strtod(back, NULL) == ours;
}

/* May a reader end so? Scores so large that sums could overflow are refused by the model, which knows no lines; only
   logarithms can be so large. */
static int fuzz_may_end(fgi_rc rc, int logs) { return !rc || rc == FGI_BAD_FORMAT || (logs && rc == FGI_BAD_MODEL); }

/* One input. Returns NULL, or what went wrong. */
static const char *fuzz_one(uint64_t seed, fuzz_text *t) {
    fgi_rng g = {seed};
    fgi_error whole = {0}, cut = {0};
    fgi_model *a = NULL, *b = NULL;
    int64_t given_a = -1, given_b = -1;
    const char *wrong = NULL;
    int logs = (int)fgi_rng_below(&g, 2);
    fuzz_seed(&g, t);
    for (int64_t k = fgi_rng_below(&g, 4); k > 0; k--) fuzz_damage(&g, t);
    fgi_rc rc = fuzz_read(t, logs, t->n, &g, &a, &given_a, &whole);
    fgi_rc rc_cut = fuzz_read(t, logs, fuzz_piece(&g), &g, &b, &given_b, &cut);
    if (rc != rc_cut) wrong = "reading in pieces ends differently";
    else if (!fuzz_may_end(rc, logs)) wrong = "an unexpected error code";
    else if (rc && (!whole.message[0] || strchr(whole.message, '\n'))) wrong = "an error without a sentence";
    else if (rc == FGI_BAD_FORMAT && (whole.line < 1 || !whole.token[0])) wrong = "an error without line or token";
    else if (rc && (whole.line != cut.line || strcmp(whole.message, cut.message) || strcmp(whole.token, cut.token)))
        wrong = "reading in pieces gives another error";
    else if (!rc && (given_a != given_b || !fuzz_same(a, b))) wrong = "reading in pieces gives another model";
    else if (!rc && !(fuzz_round_trip(a, 0, !logs, &g) && fuzz_round_trip(a, 1, 1, &g)))
        wrong = "the model does not survive being written";
    else if (!fuzz_decimals(&g)) wrong = "a number is not what the C library says";
    fgi_model_free(a);
    fgi_model_free(b);
    return wrong;
}

/* Inputs first .. first + n - 1; returns the number of failures, after printing them. */
static inline int fuzz_many(uint64_t first, int64_t n) {
    static fuzz_text text;
    int failures = 0;
    for (int64_t k = 0; k < n && failures < 10; k++) {
        const char *wrong = fuzz_one(first + (uint64_t)k, &text);
        if (!wrong) continue;
        failures++;
        fprintf(
            stderr, "input %llu: %s\n%.*s\n", (unsigned long long)(first + (uint64_t)k), wrong, (int)text.n, text.at);
    }
    return failures;
}

#endif
