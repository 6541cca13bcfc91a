/*
 * io/uai_read.c - the UAI reader: a push parser for MARKOV and BAYES files, with potentials or (.LG) their logarithms.
 *
 * Text arrives in pieces of any size and is never kept; every array grows with the data actually read, so a header may
 * announce what it likes. Equal tables are found by hashing as they are read and stored once; factors of arity 0 and 1
 * go to the constant and the unaries.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "io/numbers.h"
#include "model/distinct.h"
#include "model/model.h"
#include "base/util.h"

typedef enum phase { TYPE, N_VARS, CARDS, N_FACTORS, ARITY, SCOPE, TABLE_SIZE, ENTRIES, DONE } phase;

/* Labels of variables without factors cost memory that the file never pays for: so many, and so many more per variable.
 */
enum { LONELY_LABELS = 1 << 20, LONELY_LABELS_EACH = 256 };

struct fgi_uai {
    int log_values, failed;
    phase now;
    int64_t line;
    int64_t n_vars, n_given; /* as announced */
    int64_t seen;            /* variables or factors read so far in this phase */
    pool cards;              /* int32 */
    pool scope_begin, scope; /* int64, int32: scopes as given; ENTRIES moves those of arity >= 2 to the front */
    int64_t arity_left;
    pool stamp; /* int32 per variable: last factor it was seen in, to find repeated variables */
    fgi_distinct tables;
    pool factor_table;             /* int32 per factor of arity >= 2 */
    int64_t scope_used;            /* variables of the factors kept, at the front of `scope` */
    int64_t entries, entries_left; /* of the table being read, which is at the end of tables.values */
    pool unary, unary_begin;       /* double; int64 per variable, -1 where none was given */
    double constant;
    int has_constant;
    char tail[FGI_MAX_TOKEN]; /* the token cut off by the end of a piece */
    int64_t tail_length;
    fgi_cached cache[1 << FGI_CACHE_BITS];
    int threads;
    fgi_numbers *numbers; /* with several threads, once there is much text */
};

/* ---- small things ------------------------------------------------------------------------------------------- */

static long long ll(int64_t x) { return x; } /* for %lld */

static fgi_rc out_of_memory(fgi_uai *r, fgi_error *err) {
    r->failed = 1;
    return fgi_fail(err, FGI_NO_MEMORY, -1, "out of memory after line %lld of the file", ll(r->line));
}

/* Fails at a token: its printable part goes into err->token. */
static fgi_rc fail_at(fgi_uai *r, fgi_error *err, const char *token, int64_t n, const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 5, 6)))
#endif
    ;
static fgi_rc fail_at(fgi_uai *r, fgi_error *err, const char *token, int64_t n, const char *format, ...) {
    r->failed = 1;
    if (!err) return FGI_BAD_FORMAT;
    va_list args;
    va_start(args, format);
    vsnprintf(err->message, sizeof err->message, format, args);
    va_end(args);
    int64_t room = (int64_t)sizeof err->token - 1, shown = n <= room ? n : room - 3;
    for (int64_t k = 0; k < shown; k++) err->token[k] = token[k] >= ' ' && token[k] <= '~' ? token[k] : '?';
    if (shown < n) {
        memcpy(err->token + shown, "...", 3);
        shown += 3;
    }
    err->token[shown] = '\0';
    err->line = r->line;
    err->index = r->now >= ARITY && r->now < DONE ? r->seen : -1;
    return FGI_BAD_FORMAT;
}

/* ---- the preamble ------------------------------------------------------------------------------------------- */

static int same_word(const char *token, int64_t n, const char *word) {
    if (n != (int64_t)strlen(word)) return 0;
    for (int64_t k = 0; k < n; k++)
        if ((token[k] & ~0x20) != word[k]) return 0;
    return 1;
}

/* A whole number without sign; -1 if it is none, INT64_MAX if it is too large to matter. */
static int64_t whole_number(const char *token, int64_t n) {
    int64_t x = 0;
    for (int64_t k = 0; k < n; k++) {
        if (token[k] < '0' || token[k] > '9') return -1;
        x = x > INT64_MAX / 10 - 1 ? INT64_MAX : 10 * x + (token[k] - '0');
    }
    return n ? x : -1;
}

static fgi_rc take_count(fgi_uai *r, const char *token, int64_t n, const char *what, int64_t *count, fgi_error *err) {
    int64_t x = whole_number(token, n);
    if (x < 0) return fail_at(r, err, token, n, "expected the number of %s", what);
    if (x > INT32_MAX) return fail_at(r, err, token, n, "too many %s; at most 2^31-1 are supported", what);
    *count = x;
    r->seen = 0;
    return FGI_OK;
}

static fgi_rc take_card(fgi_uai *r, const char *token, int64_t n, fgi_error *err) {
    int64_t x = whole_number(token, n);
    if (x < 1 || x > INT32_MAX)
        return fail_at(
            r, err, token, n, "expected the label count of variable %lld, a number from 1 to 2^31-1", ll(r->seen));
    if (!push_i32(&r->cards, (int32_t)x) || !push_i32(&r->stamp, -1) || !push_i64(&r->unary_begin, -1))
        return out_of_memory(r, err);
    if (++r->seen == r->n_vars) r->now = N_FACTORS;
    return FGI_OK;
}

static fgi_rc end_of_scope(fgi_uai *r, fgi_error *err) {
    if (!push_i64(&r->scope_begin, r->scope.n)) return out_of_memory(r, err);
    r->now = ARITY;
    if (++r->seen < r->n_given) return FGI_OK;
    r->now = TABLE_SIZE;
    r->seen = 0;
    return FGI_OK;
}

static fgi_rc take_arity(fgi_uai *r, const char *token, int64_t n, fgi_error *err) {
    int64_t x = whole_number(token, n);
    if (x < 0) return fail_at(r, err, token, n, "factor %lld: expected its number of variables", ll(r->seen));
    if (x > r->n_vars)
        return fail_at(
            r, err, token, n, "factor %lld: more variables than the %lld there are", ll(r->seen), ll(r->n_vars));
    r->arity_left = x;
    if (x == 0) return end_of_scope(r, err);
    r->now = SCOPE;
    return FGI_OK;
}

static fgi_rc take_variable(fgi_uai *r, const char *token, int64_t n, fgi_error *err) {
    int64_t x = whole_number(token, n);
    if (x < 0 || x >= r->n_vars)
        return fail_at(
            r, err, token, n, "factor %lld: expected a variable from 0 to %lld", ll(r->seen), ll(r->n_vars) - 1);
    int32_t *stamp = (int32_t *)r->stamp.at + x;
    if (*stamp == (int32_t)r->seen)
        return fail_at(r, err, token, n, "factor %lld names variable %lld twice", ll(r->seen), ll(x));
    *stamp = (int32_t)r->seen;
    if (!push_i32(&r->scope, (int32_t)x)) return out_of_memory(r, err);
    return --r->arity_left == 0 ? end_of_scope(r, err) : FGI_OK;
}

/* ---- tables ------------------------------------------------------------------------------------------------- */

static const int32_t *given_scope(const fgi_uai *r, int64_t *arity) {
    const int64_t *begin = (const int64_t *)r->scope_begin.at + r->seen;
    *arity = begin[1] - begin[0];
    return *arity ? (const int32_t *)r->scope.at + begin[0] : NULL;
}

static fgi_rc take_table_size(fgi_uai *r, const char *token, int64_t n, fgi_error *err) {
    int64_t arity, size = 1, x = whole_number(token, n);
    const int32_t *vars = given_scope(r, &arity);
    for (int64_t k = 0; k < arity; k++)
        if (!fgi_mul(size, ((const int32_t *)r->cards.at)[vars[k]], &size))
            return fail_at(r, err, token, n, "factor %lld has a table of more than 2^63 entries", ll(r->seen));
    if (x < 0)
        return fail_at(r, err, token, n, "factor %lld: expected the size of its table, %lld", ll(r->seen), ll(size));
    if (x != size)
        return fail_at(r, err, token, n, "factor %lld: the table size must be %lld, the product of its label counts",
            ll(r->seen), ll(size));
    r->entries = r->entries_left = size;
    r->now = ENTRIES;
    return FGI_OK;
}

/* a + b, or 0 in *fine where two finite scores add up to an infinite one (which would forbid, or be refused later). */
static double add_scores(double a, double b, int *fine) {
    double sum = a + b;
    if (isinf(sum) && isfinite(a) && isfinite(b)) *fine = 0;
    return sum;
}

/* Returns 0 when memory is short; *fine as above. */
static int fold_unary(fgi_uai *r, int32_t var, int *fine) {
    const double *given = (const double *)r->tables.values.at + (r->tables.values.n - r->entries);
    int64_t *begin = (int64_t *)r->unary_begin.at + var;
    r->tables.values.n -= r->entries;
    if (*begin >= 0) {
        double *known = (double *)r->unary.at + *begin;
        for (int64_t a = 0; a < r->entries; a++) known[a] = add_scores(known[a], given[a], fine);
        return 1;
    }
    if (!reserve(&r->unary, r->entries, sizeof(double))) return 0;
    *begin = r->unary.n;
    memcpy((double *)r->unary.at + r->unary.n, given, (size_t)r->entries * sizeof *given);
    r->unary.n += r->entries;
    return 1;
}

/* The last entry was read; [token, end) is its text. */
static fgi_rc end_of_table(fgi_uai *r, const char *token, const char *end, fgi_error *err) {
    int64_t arity;
    int fine = 1;
    const int32_t *vars = given_scope(r, &arity);
    if (arity == 0) {
        double given = ((double *)r->tables.values.at)[--r->tables.values.n];
        r->constant = r->has_constant ? add_scores(r->constant, given, &fine) : given; /* a single -0.0 stays one */
        r->has_constant = 1;
    } else if (arity == 1) {
        if (!fold_unary(r, vars[0], &fine)) return out_of_memory(r, err);
    } else {
        int32_t t = fgi_distinct_store(&r->tables, r->cards.at, vars, arity, r->entries);
        if (t < 0 || !push_i32(&r->factor_table, t)) return out_of_memory(r, err);
        /* The scope moves to the front; what is overwritten belongs to factors already read. */
        memmove((int32_t *)r->scope.at + r->scope_used, vars, (size_t)arity * sizeof *vars);
        r->scope_used += arity;
        ((int64_t *)r->scope_begin.at)[r->factor_table.n] = r->scope_used;
    }
    if (!fine)
        return fail_at(r, err, token, end - token,
            "factor %lld: scores over its variables add up to more than a double holds", ll(r->seen));
    r->now = ++r->seen == r->n_given ? DONE : TABLE_SIZE;
    return FGI_OK;
}

/* ---- entries ------------------------------------------------------------------------------------------------ */

static fgi_rc fail_entry(fgi_uai *r, fgi_error *err, const char *token, int64_t n, const char *what) {
    return fail_at(r, err, token, n, "factor %lld, entry %lld %s", ll(r->seen), ll(r->entries - r->entries_left), what);
}

/* -inf, inf and nan in any spelling in use; returns 0 for anything else. */
static char special_value(const char *token, int64_t n) {
    int minus = n > 0 && token[0] == '-';
    if (n > 0 && (token[0] == '-' || token[0] == '+')) token++, n--;
    if (same_word(token, n, "INF") || same_word(token, n, "INFINITY")) return minus ? '-' : '+';
    return same_word(token, n, "NAN") ? 'n' : 0;
}

static const char NEGATIVE[] = "is negative; potentials must be >= 0 (a file of log scores is named .LG)";

static fgi_rc slow_entry(fgi_uai *r, const char *token, int64_t n, double *score, fgi_error *err) {
    fgi_decimal d;
    const char *end = token + n;
    if (fgi_decimal_scan(token, end, &d) == end) {
        if (r->log_values) {
            *score = fgi_decimal_double(&d, token, end);
            if (*score == -INFINITY || *score == INFINITY)
                return fail_entry(r, err, token, n, "is too large for a double");
            return FGI_OK;
        }
        if (d.negative && d.digits) return fail_entry(r, err, token, n, NEGATIVE);
        *score = fgi_decimal_log(&d, token, end);
        return FGI_OK;
    }
    switch (special_value(token, n)) {
    case '-':
        if (!r->log_values) return fail_entry(r, err, token, n, NEGATIVE);
        *score = -INFINITY;
        return FGI_OK;
    case '+':
        return fail_entry(
            r, err, token, n, r->log_values ? "is infinite; log scores are finite or -inf" : "is infinite");
    case 'n': return fail_entry(r, err, token, n, "is not a number (NaN)");
    default: return fail_entry(r, err, token, n, "is not a number");
    }
}

static fgi_rc take_entry(fgi_uai *r, const char *token, int64_t n, fgi_error *err) {
    double score = 0;
    fgi_rc rc = slow_entry(r, token, n, &score, err);
    if (rc) return rc;
    if (!reserve(&r->tables.values, 1, sizeof score)) return out_of_memory(r, err);
    ((double *)r->tables.values.at)[r->tables.values.n++] = score;
    return --r->entries_left == 0 ? end_of_table(r, token, token + n, err) : FGI_OK;
}

/*
 * The hot loop: entries of the current table from text that holds them in plain sight. Stops, with everything before
 * *from consumed, at the end of the table, near the end of the text, or at a token that needs the slow way (or is
 * wrong).
 */
static fgi_rc take_entries(fgi_uai *r, const char **from, const char *end, fgi_error *err) {
    const char *p = *from;
    int64_t n = (end - p) / 2 + 1; /* a token needs two bytes of text */
    if (n > r->entries_left) n = r->entries_left;
    if (!reserve(&r->tables.values, n, sizeof(double))) return out_of_memory(r, err);
    double *out = (double *)r->tables.values.at + r->tables.values.n, *stop = out + n, *first = out;
    while (out < stop && end - p > FGI_NEAR_END) {
        if (*p == ' ') p++;
        while (fgi_is_space(*p)) {
            r->line += *p == '\n';
            if (++p == end) goto finish;
        }
        const char *q = fgi_number_read(p, end, r->log_values, r->cache, out);
        if (!q) break;
        out++;
        p = q;
    }
finish:
    r->tables.values.n += out - first;
    r->entries_left -= out - first;
    const char *token = p; /* of the last entry, for an error */
    while (r->entries_left == 0 && token > *from && !fgi_is_space(token[-1])) token--;
    *from = p;
    return r->entries_left == 0 ? end_of_table(r, token, p, err) : FGI_OK;
}

/* ---- the reader --------------------------------------------------------------------------------------------- */

fgi_rc fgi_uai_create(int log_values, int threads, fgi_uai **out, fgi_error *err) {
    fgi_uai *r = fgi_calloc(1, sizeof *r);
    if (!r) return fgi_no_memory(err);
    r->log_values = log_values;
    r->threads = threads;
    r->line = 1;
    if (!push_i64(&r->scope_begin, 0)) {
        fgi_uai_free(r);
        return fgi_no_memory(err);
    }
    *out = r;
    return FGI_OK;
}

int64_t fgi_uai_held(const fgi_uai *r) {
    const fgi_distinct *d = &r->tables;
    const int64_t fours = r->cards.capacity + r->scope.capacity + r->stamp.capacity + r->factor_table.capacity +
        d->arity.capacity + d->dims.capacity + d->n_slots;
    const int64_t eights = r->scope_begin.capacity + r->unary.capacity + r->unary_begin.capacity + d->values.capacity +
        d->values_begin.capacity + d->dims_begin.capacity + d->hash.capacity;
    return 4 * fours + 8 * eights + (r->numbers ? fgi_numbers_held(r->numbers) : 0);
}

void fgi_uai_free(fgi_uai *r) {
    if (!r) return;
    pool *all[] = {&r->cards, &r->scope_begin, &r->scope, &r->stamp, &r->factor_table, &r->unary, &r->unary_begin};
    for (size_t k = 0; k < sizeof all / sizeof all[0]; k++) free(all[k]->at);
    fgi_distinct_clear(&r->tables);
    fgi_numbers_free(r->numbers);
    free(r);
}

static fgi_rc take_token(fgi_uai *r, const char *token, int64_t n, fgi_error *err) {
    fgi_rc rc = FGI_OK;
    switch (r->now) {
    case TYPE:
        if (n > 3 && !memcmp(token, "\xEF\xBB\xBF", 3))
            token += 3, n -= 3; /* a byte order mark, as some editors leave it */
        if (n > 1 && (!memcmp(token, "\xFF\xFE", 2) || !memcmp(token, "\xFE\xFF", 2)))
            return fail_at(r, err, token, n, "this is UTF-16; save the file as plain text (UTF-8)");
        if (!same_word(token, n, "MARKOV") && !same_word(token, n, "BAYES"))
            return fail_at(r, err, token, n, "not a UAI model: it must start with MARKOV or BAYES");
        r->now = N_VARS;
        return FGI_OK;
    case N_VARS:
        if ((rc = take_count(r, token, n, "variables", &r->n_vars, err))) return rc;
        r->now = r->n_vars ? CARDS : N_FACTORS;
        return FGI_OK;
    case CARDS: return take_card(r, token, n, err);
    case N_FACTORS:
        if ((rc = take_count(r, token, n, "factors", &r->n_given, err))) return rc;
        r->now = r->n_given ? ARITY : DONE;
        return FGI_OK;
    case ARITY: return take_arity(r, token, n, err);
    case SCOPE: return take_variable(r, token, n, err);
    case TABLE_SIZE: return take_table_size(r, token, n, err);
    case ENTRIES: return take_entry(r, token, n, err);
    case DONE: break;
    }
    return fail_at(r, err, token, n, "extra text after the last of %lld tables", ll(r->n_given));
}

static fgi_rc keep_tail(fgi_uai *r, const char *from, int64_t n, fgi_error *err) {
    int64_t known = r->tail_length;
    if (known + n > FGI_MAX_TOKEN)
        return fail_at(r, err, known ? r->tail : from, known ? known : n,
            "a token of more than %d bytes; this is not a UAI model", (int)FGI_MAX_TOKEN);
    memcpy(r->tail + known, from, (size_t)n);
    r->tail_length = known + n;
    return FGI_OK;
}

/* ---- tables by all threads ---------------------------------------------------------------------------------- */

/* A text of tables whose tokens have been read; `token` is the next one, lines are counted up to `counted`. */
typedef struct tokens {
    const char *text, *counted, *end; /* `end`: of the last token taken */
    fgi_numbers_part part;
    int64_t next;
} tokens;

static void count_lines(fgi_uai *r, tokens *t, const char *to) {
    for (const char *p = t->counted; (p = memchr(p, '\n', (size_t)(to - p))); p++) r->line++;
    t->counted = to;
}

/* The text of a token, and its end; lines are counted up to it, for errors. */
static const char *show(fgi_uai *r, tokens *t, int64_t k) {
    const char *token = t->text + t->part.begin[k];
    count_lines(r, t, token);
    for (t->end = token; !fgi_is_space(*t->end);) t->end++;
    return token;
}

/* Entries of the current table, as far as they are plain numbers in this part. */
static fgi_rc take_scores(fgi_uai *r, tokens *t, fgi_error *err) {
    const int64_t left = t->part.n - t->next, n = left < r->entries_left ? left : r->entries_left;
    const double *score = t->part.score + t->next;
    if (!reserve(&r->tables.values, n, sizeof(double))) {
        show(r, t, t->next);
        return out_of_memory(r, err);
    }
    double *out = (double *)r->tables.values.at + r->tables.values.n;
    int64_t k = 0;
    for (; k < n && score[k] == score[k]; k++) out[k] = score[k];
    r->tables.values.n += k;
    r->entries_left -= k;
    t->next += k;
    if (k == 0 || r->entries_left > 0) return FGI_OK;
    const char *token = show(r, t, t->next - 1);
    return end_of_table(r, token, t->end, err);
}

/* All tokens of [*from, end) but the last, which may go on in the next piece, and what is near it. */
static fgi_rc take_together(fgi_uai *r, const char **from, const char *end, fgi_error *err) {
    if (end - *from > INT32_MAX) end = *from + INT32_MAX;
    while (end > *from && !fgi_is_space(end[-1])) end--;
    if (end - *from < FGI_TOGETHER) return FGI_OK;
    tokens t = {.text = *from, .counted = *from, .end = *from};
    fgi_rc rc = FGI_OK;
    if (!r->numbers && !(r->numbers = fgi_numbers_create(r->threads, r->log_values))) return out_of_memory(r, err);
    const int64_t n_parts = fgi_numbers_read(r->numbers, *from, end - *from);
    if (!n_parts) return out_of_memory(r, err);
    for (int64_t part = 0; part < n_parts && !rc; part++) {
        t.part = fgi_numbers_at(r->numbers, part);
        for (t.next = 0; t.next < t.part.n && !rc;) {
            if (r->now == ENTRIES && t.part.score[t.next] == t.part.score[t.next]) {
                rc = take_scores(r, &t, err);
                continue;
            }
            const char *token = show(r, &t, t.next++);
            if (t.end - token > FGI_MAX_TOKEN) rc = keep_tail(r, token, t.end - token, err);
            else rc = take_token(r, token, t.end - token, err);
        }
    }
    count_lines(r, &t, end);
    *from = end;
    return rc;
}

fgi_rc fgi_uai_feed(fgi_uai *r, const char *text, int64_t n, fgi_error *err) {
    const char *p = text, *end = text + n, *q;
    fgi_rc rc;
    if (r->failed) return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "this reader has failed before");
    if (r->tail_length) { /* the token that the last piece cut */
        for (q = p; q < end && !fgi_is_space(*q);) q++;
        if ((rc = keep_tail(r, p, q - p, err))) return rc;
        if (q == end) return FGI_OK;
        int64_t length = r->tail_length;
        r->tail_length = 0;
        if ((rc = take_token(r, r->tail, length, err))) return rc;
        p = q;
    }
    for (;;) {
        if (r->threads > 1 && (r->now == TABLE_SIZE || r->now == ENTRIES) && end - p >= FGI_TOGETHER) {
            if ((rc = take_together(r, &p, end, err))) return rc;
        }
        if (r->now == ENTRIES && end - p > FGI_NEAR_END) {
            if ((rc = take_entries(r, &p, end, err))) return rc;
        }
        for (; p < end && fgi_is_space(*p); p++) r->line += *p == '\n';
        for (q = p; q < end && !fgi_is_space(*q);) q++;
        if (q == end) return q > p ? keep_tail(r, p, q - p, err) : FGI_OK;
        if (q - p > FGI_MAX_TOKEN) return keep_tail(r, p, q - p, err);
        if ((rc = take_token(r, p, q - p, err))) return rc;
        p = q;
    }
}

static fgi_rc check_complete(fgi_uai *r, fgi_error *err) {
    const char *eof = "end of file";
    int64_t n = (int64_t)strlen(eof);
    switch (r->now) {
    case TYPE: return fail_at(r, err, eof, n, "the file is empty");
    case N_VARS: return fail_at(r, err, eof, n, "truncated: the number of variables is missing");
    case CARDS:
        return fail_at(r, err, eof, n, "truncated: %lld of %lld label counts are there", ll(r->seen), ll(r->n_vars));
    case N_FACTORS: return fail_at(r, err, eof, n, "truncated: the number of factors is missing");
    case ARITY:
    case SCOPE:
        return fail_at(r, err, eof, n, "truncated: %lld of %lld factor scopes are there", ll(r->seen), ll(r->n_given));
    case TABLE_SIZE:
        return fail_at(r, err, eof, n, "truncated: %lld of %lld tables are there", ll(r->seen), ll(r->n_given));
    case ENTRIES:
        return fail_at(r, err, eof, n, "truncated: table %lld of %lld has %lld of its %lld entries", ll(r->seen + 1),
            ll(r->n_given), ll(r->entries - r->entries_left), ll(r->entries));
    case DONE: break;
    }
    int64_t lonely = 0;
    for (int64_t i = 0; i < r->n_vars; i++)
        if (((const int32_t *)r->stamp.at)[i] < 0) lonely += ((const int32_t *)r->cards.at)[i];
    if (lonely > LONELY_LABELS + LONELY_LABELS_EACH * r->n_vars)
        return fail_at(
            r, err, eof, n, "variables without any factor announce %lld labels; that cannot be meant", ll(lonely));
    return FGI_OK;
}

/* The unaries in the order of the variables. Usually they were given in that order and are ready as they are. */
static fgi_rc order_unaries(fgi_uai *r, fgi_error *err) {
    const int32_t *cards = r->cards.at;
    const int64_t *begin = r->unary_begin.at;
    int64_t total = 0, ready = 1;
    for (int64_t i = 0; i < r->n_vars; i++) {
        ready &= begin[i] == total;
        total += cards[i]; /* no overflow: below 2^31 variables of below 2^31 labels */
    }
    if (ready) return FGI_OK;
    pool sorted = {0};
    if (!reserve(&sorted, total, sizeof(double))) return out_of_memory(r, err);
    double *out = sorted.at;
    for (int64_t i = 0; i < r->n_vars; i++) {
        if (begin[i] >= 0) memcpy(out, (double *)r->unary.at + begin[i], (size_t)cards[i] * sizeof *out);
        else memset(out, 0, (size_t)cards[i] * sizeof *out);
        out += cards[i];
    }
    sorted.n = total;
    free(r->unary.at);
    r->unary = sorted;
    return FGI_OK;
}

fgi_rc fgi_uai_finish(fgi_uai *r, fgi_model **out, int64_t *given_factors, fgi_error *err) {
    fgi_rc rc = FGI_OK;
    if (r->failed) return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "this reader has failed before");
    int64_t length = r->tail_length;
    r->tail_length = 0;
    if (length && (rc = take_token(r, r->tail, length, err))) return rc;
    if ((rc = check_complete(r, err)) || (rc = order_unaries(r, err))) return rc;
    r->failed = 1; /* nothing can be fed any more */
    fgi_distinct_shrink(&r->tables);
    int all_pairwise = r->scope_used == 2 * r->factor_table.n;
    for (int64_t t = 0; t < r->tables.arity.n; t++) all_pairwise &= ((const int32_t *)r->tables.arity.at)[t] == 2;
    fgi_model_spec spec = {
        .n_vars = r->n_vars,
        .cards = r->cards.at,
        .unary = r->unary.at,
        .constant = r->constant,
        .n_tables = r->tables.arity.n,
        .table_arity = r->tables.arity.at,
        .dims = r->tables.dims.at,
        .values = r->tables.values.at,
        .n_values = r->tables.values.n,
        .n_factors = r->factor_table.n,
        .factor_table = r->factor_table.at,
        .var_begin = all_pairwise ? NULL : r->scope_begin.at,
        .vars = r->scope.at,
    };
    rc = fgi_model_create_owning(&spec, r->tables.values.at, out, err);
    if (rc) return rc;
    r->tables.values.at = NULL; /* the model's now */
    *given_factors = r->n_given;
    return FGI_OK;
}
