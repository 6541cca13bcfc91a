/*
 * io/uai_read.c - the UAI reader: a push parser for MARKOV and BAYES files, with potentials or (.LG) their logarithms.
 *
 * Text arrives in pieces of any size and is never kept; every array grows with the data actually read, so a header may
 * announce what it likes. Equal tables are found by hashing as they are read and stored once; factors of arity 0 and 1
 * go to the constant and the unaries.
 */
#include <string.h>
#include "io/collected.h"
#include "io/words.h"
#include "base/util.h"

typedef enum phase { TYPE, N_VARS, CARDS, N_FACTORS, ARITY, SCOPE, TABLE_SIZE, ENTRIES, DONE } phase;

/* Labels of variables without factors cost memory that the file never pays for, so there is a limit on them. */
enum {
    LONELY_LABELS = 1 << 20, /* labels in any file */
    LONELY_LABELS_EACH = 256 /* more labels for every variable */
};

struct fgi_uai {
    fgi_words words;
    int log_values;
    phase now;
    int64_t n_vars, n_given; /* as announced */
    int64_t seen;            /* variables or factors read so far in this phase */
    fgi_collected
        c; /* its scopes are those given; ENTRIES moves those of arity >= 2 to the front. stamp: the last factor
                        in which a variable was seen, to find repeated ones */
    int64_t arity_left;
    int64_t entries, entries_left; /* entries of the table being read, which is at the end of c.tables.values */
    fgi_cached cache[1 << FGI_CACHE_BITS];
    int threads;
    fgi_numbers *numbers; /* with several threads, once there is much text */
};

#define fail_at(r, ...) fgi_words_fail(&(r)->words, __VA_ARGS__)
static long long ll(int64_t x) { return x; } /* for %lld */
static fgi_rc out_of_memory(fgi_uai *r, fgi_error *err) { return fgi_words_no_memory(&r->words, err); }

/* ---- the preamble ------------------------------------------------------------------------------------------- */

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
    if (!fgi_collected_variable(&r->c, (int32_t)x)) return out_of_memory(r, err);
    if (++r->seen == r->n_vars) r->now = N_FACTORS;
    return FGI_OK;
}

static fgi_rc end_of_scope(fgi_uai *r, fgi_error *err) {
    if (!fgi_array_push_i64(&r->c.scope_begin, r->c.scope.n)) return out_of_memory(r, err);
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
    int32_t *stamp = (int32_t *)r->c.stamp.at + x;
    if (*stamp == (int32_t)r->seen)
        return fail_at(r, err, token, n, "factor %lld names variable %lld twice", ll(r->seen), ll(x));
    *stamp = (int32_t)r->seen;
    if (!fgi_array_push_i32(&r->c.scope, (int32_t)x)) return out_of_memory(r, err);
    return --r->arity_left == 0 ? end_of_scope(r, err) : FGI_OK;
}

/* ---- tables ------------------------------------------------------------------------------------------------- */

static const int32_t *given_scope(const fgi_uai *r, int64_t *arity) {
    const int64_t *begin = (const int64_t *)r->c.scope_begin.at + r->seen;
    *arity = begin[1] - begin[0];
    return *arity ? (const int32_t *)r->c.scope.at + begin[0] : NULL;
}

static fgi_rc take_table_size(fgi_uai *r, const char *token, int64_t n, fgi_error *err) {
    int64_t arity, size = 1, x = whole_number(token, n);
    const int32_t *vars = given_scope(r, &arity);
    for (int64_t k = 0; k < arity; k++)
        if (!fgi_mul(size, ((const int32_t *)r->c.cards.at)[vars[k]], &size))
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

/* The last entry was read. */
static fgi_rc end_of_table(fgi_uai *r, fgi_error *err) {
    int64_t arity;
    const int32_t *vars = given_scope(r, &arity);
    const double *given = (const double *)r->c.tables.values.at + (r->c.tables.values.n - r->entries);
    if (arity == 0) {
        fgi_collected_constant(&r->c, given[0]);
    } else if (arity == 1) {
        if (!fgi_collected_unary(&r->c, vars[0], given)) return out_of_memory(r, err);
    } else {
        int32_t t = fgi_distinct_store_of(&r->c.tables, r->c.cards.at, vars, arity, r->entries, NULL);
        if (t < 0 || !fgi_collected_factor(&r->c, vars, arity, t, 0)) return out_of_memory(r, err);
    }
    if (arity < 2) r->c.tables.values.n -= r->entries;
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
    if (fgi_words_same(token, n, "INF") || fgi_words_same(token, n, "INFINITY")) return minus ? '-' : '+';
    return fgi_words_same(token, n, "NAN") ? 'n' : 0;
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
    if (!fgi_array_reserve(&r->c.tables.values, 1, sizeof score)) return out_of_memory(r, err);
    ((double *)r->c.tables.values.at)[r->c.tables.values.n++] = score;
    return --r->entries_left == 0 ? end_of_table(r, err) : FGI_OK;
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
    if (!fgi_array_reserve(&r->c.tables.values, n, sizeof(double))) return out_of_memory(r, err);
    double *out = (double *)r->c.tables.values.at + r->c.tables.values.n, *stop = out + n, *first = out;
    while (out < stop && end - p > FGI_NEAR_END) {
        if (*p == ' ') p++;
        while (fgi_is_space(*p)) {
            r->words.line += *p == '\n';
            if (++p == end) goto finish;
        }
        const char *q = fgi_number_read(p, end, r->log_values, r->cache, out);
        if (!q) break;
        out++;
        p = q;
    }
finish:
    r->c.tables.values.n += out - first;
    r->entries_left -= out - first;
    const char *token = p; /* the last entry's text, for an error */
    while (r->entries_left == 0 && token > *from && !fgi_is_space(token[-1])) token--;
    *from = p;
    return r->entries_left == 0 ? end_of_table(r, err) : FGI_OK;
}

/* ---- the reader --------------------------------------------------------------------------------------------- */

static int64_t index_of_factor(const fgi_words *w) {
    const fgi_uai *r = (const fgi_uai *)w;
    return r->now >= ARITY && r->now < DONE ? r->seen : -1;
}

static fgi_rc take_token(fgi_words *w, const char *token, int64_t n, fgi_error *err) {
    fgi_uai *r = (fgi_uai *)w;
    fgi_rc rc = FGI_OK;
    switch (r->now) {
    case TYPE:
        if (n > 3 && !memcmp(token, "\xEF\xBB\xBF", 3))
            token += 3, n -= 3; /* a byte order mark, as some editors leave it */
        if (n > 1 && (!memcmp(token, "\xFF\xFE", 2) || !memcmp(token, "\xFE\xFF", 2)))
            return fail_at(r, err, token, n, "this is UTF-16; save the file as plain text (UTF-8)");
        if (!fgi_words_same(token, n, "MARKOV") && !fgi_words_same(token, n, "BAYES"))
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

/* ---- tables by all threads ---------------------------------------------------------------------------------- */

/* A text of tables whose tokens have been read; `token` is the next one, lines are counted up to `counted`. */
typedef struct tokens {
    const char *text, *counted, *end; /* `end`: of the last token taken */
    fgi_numbers_part part;
    int64_t next;
} tokens;

static void count_lines(fgi_uai *r, tokens *t, const char *to) {
    for (const char *p = t->counted; (p = memchr(p, '\n', (size_t)(to - p))); p++) r->words.line++;
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
    if (!fgi_array_reserve(&r->c.tables.values, n, sizeof(double))) {
        show(r, t, t->next);
        return out_of_memory(r, err);
    }
    double *out = (double *)r->c.tables.values.at + r->c.tables.values.n;
    int64_t k = 0;
    for (; k < n && score[k] == score[k]; k++) out[k] = score[k];
    r->c.tables.values.n += k;
    r->entries_left -= k;
    t->next += k;
    if (k == 0 || r->entries_left > 0) return FGI_OK;
    show(r, t, t->next - 1); /* errors of the table name its last line */
    return end_of_table(r, err);
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
            rc = fgi_words_take(&r->words, token, t.end - token, err);
        }
    }
    count_lines(r, &t, end);
    *from = end;
    return rc;
}

static fgi_rc take_many(fgi_words *w, const char **from, const char *end, fgi_error *err) {
    fgi_uai *r = (fgi_uai *)w;
    fgi_rc rc = FGI_OK;
    if (r->threads > 1 && (r->now == TABLE_SIZE || r->now == ENTRIES) && end - *from >= FGI_TOGETHER)
        rc = take_together(r, from, end, err);
    if (!rc && r->now == ENTRIES && end - *from > FGI_NEAR_END) rc = take_entries(r, from, end, err);
    return rc;
}

/* ---- the reader --------------------------------------------------------------------------------------------- */

static const fgi_words_ops OPS = {FGI_MAX_TOKEN, "a UAI model", take_token, take_many, index_of_factor};

fgi_rc fgi_uai_create(int log_values, int threads, fgi_uai **out, fgi_error *err) {
    fgi_uai *r = fgi_calloc(1, sizeof *r);
    if (!r) return fgi_no_memory(err);
    r->words.ops = &OPS;
    r->words.line = 1;
    r->log_values = log_values;
    r->threads = threads;
    if (!fgi_array_push_i64(&r->c.scope_begin, 0)) {
        fgi_uai_free(r);
        return fgi_no_memory(err);
    }
    *out = r;
    return FGI_OK;
}

int64_t fgi_uai_held(const fgi_uai *r) {
    return fgi_collected_held(&r->c) + (r->numbers ? fgi_numbers_held(r->numbers) : 0);
}

void fgi_uai_free(fgi_uai *r) {
    if (!r) return;
    fgi_collected_clear(&r->c);
    fgi_numbers_free(r->numbers);
    free(r);
}

fgi_rc fgi_uai_feed(fgi_uai *r, const char *text, int64_t n, fgi_error *err) {
    return fgi_words_feed(&r->words, text, n, err);
}

static fgi_rc check_complete(fgi_uai *r, fgi_error *err) {
    fgi_words *w = &r->words;
    switch (r->now) {
    case TYPE: return fgi_words_fail_end(w, err, "the file is empty");
    case N_VARS: return fgi_words_fail_end(w, err, "truncated: the number of variables is missing");
    case CARDS:
        return fgi_words_fail_end(w, err, "truncated: %lld of %lld label counts are there", ll(r->seen), ll(r->n_vars));
    case N_FACTORS: return fgi_words_fail_end(w, err, "truncated: the number of factors is missing");
    case ARITY:
    case SCOPE:
        return fgi_words_fail_end(
            w, err, "truncated: %lld of %lld factor scopes are there", ll(r->seen), ll(r->n_given));
    case TABLE_SIZE:
        return fgi_words_fail_end(w, err, "truncated: %lld of %lld tables are there", ll(r->seen), ll(r->n_given));
    case ENTRIES:
        return fgi_words_fail_end(w, err, "truncated: table %lld of %lld has %lld of its %lld entries", ll(r->seen + 1),
            ll(r->n_given), ll(r->entries - r->entries_left), ll(r->entries));
    case DONE: break;
    }
    int64_t lonely = 0;
    for (int64_t i = 0; i < r->n_vars; i++)
        if (((const int32_t *)r->c.stamp.at)[i] < 0) lonely += ((const int32_t *)r->c.cards.at)[i];
    if (lonely > LONELY_LABELS + LONELY_LABELS_EACH * r->n_vars)
        return fgi_words_fail_end(
            w, err, "variables without any factor announce %lld labels; that cannot be meant", ll(lonely));
    return FGI_OK;
}

fgi_rc fgi_uai_finish(fgi_uai *r, fgi_model **out, int64_t *given_factors, fgi_error *err) {
    fgi_rc rc = fgi_words_finish(&r->words, err);
    if (rc || (rc = check_complete(r, err))) return rc;
    r->words.failed = 1; /* nothing can be fed any more */
    *given_factors = r->n_given;
    return fgi_collected_finish(&r->c, out, err);
}
