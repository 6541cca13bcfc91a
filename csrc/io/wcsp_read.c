/*
 * io/wcsp_read.c - the reader of toulbar2's .wcsp: a name, the number of variables, the largest domain, the number of
 * cost functions, the upper bound; the domain sizes; then per function its arity and variables, a default cost, the
 * number of tuples that have another one, and these. A negative arity defines a function that others share: they give
 * minus its number in place of the number of tuples. A default cost of -1 comes before a function given by a formula.
 *
 * Costs are whole and not negative; a score is minus a cost, and one at or above the upper bound forbids.
 */
#include <stdio.h>
#include <string.h>
#include "base/util.h"
#include "io/collected.h"
#include "io/formulas.h"
#include "io/words.h"

typedef enum phase {
    NAME,
    N_VARS,
    LARGEST,
    N_FUNCTIONS,
    TOP,
    DOMAIN_SIZE,
    ARITY,
    VARIABLE,
    DEFAULT,
    N_TUPLES,
    TUPLES,
    KEYWORD,
    PARAMETER,
    DONE
} phase;

enum { LONGEST_NAME = 1 << 20 };                        /* bytes */
enum { REPEATED = 1000000 };                            /* tuples that may be given again (the last counts) */
static const int64_t HUGE_NUMBER = 1000000000000000000; /* 10^18: larger ones need not be told apart */
enum { SHORT_NUMBER = 18 };                             /* digits that fit into 64 bits, whichever they are */
enum { LONGEST_NUMBER = 19 };                           /* characters of a number in a tuple */

/* A function that others may share. */
typedef struct shared {
    int64_t arity, dims; /* where its label counts begin in `shared_dims` */
    int64_t values;      /* where the scores of one variable or none begin in `shared_values` */
    int64_t most;        /* its largest finite cost */
    int32_t table;       /* table of more than one variable */
    int transposed;
} shared;

struct fgi_wcsp {
    fgi_words words;
    phase now;
    int64_t most_variables; /* variables of the largest function */
    double allowed, taken;  /* bytes of tables, which a few words of the file can ask for */
    int refused;            /* more than that was asked for */
    int64_t n_vars, largest, n_functions, top;
    int64_t f;       /* the function being read */
    int64_t most;    /* no total is larger, but for what is forbidden; at most 2^62 */
    fgi_collected c; /* the table being read is at the end of its tables' values */
    fgi_array vars;  /* int32: of this function */
    int32_t *dims;   /* their label counts, most_variables of them */
    int64_t arity_left, entries, default_cost, n_tuples, tuples_left;
    int is_shared, twice;
    int64_t at, column; /* in the table, and in the tuple being read */
    const fgi_formula *formula;
    double parameters[FGI_FORMULA_MOST];
    fgi_array shared, shared_dims, shared_values; /* shared, int32, double */
};

#define fail_at(r, ...) fgi_words_fail(&(r)->words, __VA_ARGS__)
static long long ll(int64_t x) { return x; } /* for %lld */
static fgi_rc out_of_memory(fgi_wcsp *r, fgi_error *err) { return fgi_words_no_memory(&r->words, err); }

/* ---- numbers ------------------------------------------------------------------------------------------------ */

/* A whole number with or without a sign; large ones become +-10^18. Returns 0 if it is none. */
static int whole(const char *word, int64_t n, int64_t *out) {
    const int minus = n > 0 && word[0] == '-';
    int64_t k = n > 0 && (word[0] == '-' || word[0] == '+'), x = 0;
    if (k == n) return 0;
    const int64_t digits = n - k;
    for (; k < n; k++) {
        if (word[k] < '0' || word[k] > '9') return 0;
        if (digits <= SHORT_NUMBER) x = 10 * x + (word[k] - '0');
    }
    if (digits > SHORT_NUMBER) x = HUGE_NUMBER;
    *out = minus ? -x : x;
    return 1;
}

/* A number within [low, high] (INT64_MAX: no upper limit); `what` is a format for `index`. */
static fgi_rc take_whole(fgi_wcsp *r, const char *word, int64_t n, const char *what, int64_t index, int64_t low,
    int64_t high, int64_t *out, fgi_error *err) {
    const int is_one = whole(word, n, out);
    if (is_one && *out >= low && *out <= high) return FGI_OK;
    char text[100];
    snprintf(text, sizeof text, what, ll(index));
    if (!is_one) return fail_at(r, err, word, n, "expected %s, a whole number", text);
    if (high == INT64_MAX) return fail_at(r, err, word, n, "expected %s, at least %lld", text, ll(low));
    return fail_at(r, err, word, n, "expected %s, from %lld to %lld", text, ll(low), ll(high));
}

/* The same for a cost: `inf` is the upper bound. */
static fgi_rc take_cost(
    fgi_wcsp *r, const char *word, int64_t n, const char *what, int64_t low, int64_t *out, fgi_error *err) {
    if (n == 3 && !memcmp(word, "inf", 3)) {
        *out = r->top;
        return FGI_OK;
    }
    return take_whole(r, word, n, what, r->f, low, INT64_MAX, out, err);
}

static double score_of(const fgi_wcsp *r, double cost) { return cost >= (double)r->top ? -INFINITY : 0.0 - cost; }

/* ---- what a few words can ask for ---------------------------------------------------------------------------- */

static fgi_rc allow(fgi_wcsp *r, double entries, const char *word, int64_t n, const char *what, fgi_error *err) {
    r->taken += 8 * entries;
    if (r->taken <= r->allowed) return FGI_OK;
    r->refused = 1;
    return fail_at(r, err, word, n, "%s", what);
}

static fgi_rc allow_table(fgi_wcsp *r, const char *word, int64_t n, fgi_error *err) {
    char what[160];
    double size = 1;
    for (int64_t k = 0; k < r->vars.n; k++) size *= r->dims[k];
    snprintf(what, sizeof what, "cost function %lld, a table of %.0f entries,", ll(r->f), size);
    fgi_rc rc = allow(r, size, word, n, what, err);
    if (rc) return rc;
    r->entries = 1;
    for (int64_t k = 0; k < r->vars.n; k++)
        if (!fgi_mul(r->entries, r->dims[k], &r->entries)) return out_of_memory(r, err);
    return fgi_array_reserve(&r->c.tables.values, r->entries, sizeof(double)) ? FGI_OK : out_of_memory(r, err);
}

/* ---- functions ---------------------------------------------------------------------------------------------- */

static double *table_begin(const fgi_wcsp *r) {
    return (double *)r->c.tables.values.at + (r->c.tables.values.n - r->entries);
}

static void next_function(fgi_wcsp *r) { r->now = ++r->f == r->n_functions ? DONE : ARITY; }

static void add_most(fgi_wcsp *r, int64_t most) {
    r->most += most; /* each is below the upper bound, and so below 10^18 */
    if (r->most > INT64_C(1) << 62) r->most = INT64_C(1) << 62;
}

/* The largest finite cost of the table; 0 if there is none. */
static int64_t largest_cost(const fgi_wcsp *r) {
    const double *scores = table_begin(r);
    double largest = 0;
    for (int64_t k = 0; k < r->entries; k++)
        if (-scores[k] > largest && scores[k] != -INFINITY) largest = -scores[k];
    return (int64_t)largest;
}

static int share(fgi_wcsp *r, shared table, const double *scores) {
    table.dims = r->shared_dims.n;
    table.values = r->shared_values.n;
    for (int64_t k = 0; k < table.arity; k++)
        if (!fgi_array_push_i32(&r->shared_dims, r->dims[k])) return 0;
    if (table.arity < 2) {
        if (!fgi_array_reserve(&r->shared_values, r->entries, sizeof(double))) return 0;
        memcpy((double *)r->shared_values.at + table.values, scores, (size_t)r->entries * sizeof *scores);
        r->shared_values.n += r->entries;
    }
    if (!fgi_array_reserve(&r->shared, 1, sizeof(shared))) return 0;
    ((shared *)r->shared.at)[r->shared.n++] = table;
    return 1;
}

/* One more factor with this function; `scores` where it has one variable or none. */
static int add_factor(fgi_wcsp *r, const shared *table, const double *scores) {
    add_most(r, table->most);
    if (table->arity >= 2)
        return fgi_collected_factor(&r->c, r->vars.at, table->arity, table->table, table->transposed);
    if (table->arity == 1) return fgi_collected_unary(&r->c, *(const int32_t *)r->vars.at, scores);
    fgi_collected_constant(&r->c, scores[0]);
    return 1;
}

/* The table at the end of the values is complete. */
static fgi_rc end_of_table(fgi_wcsp *r, fgi_error *err) {
    shared table = {.arity = r->vars.n, .most = largest_cost(r)};
    const double *scores = table_begin(r);
    if (table.arity < 2) {
        r->c.tables.values.n -= r->entries; /* which stay where they are until they are copied */
    } else {
        table.table = fgi_distinct_store(&r->c.tables, r->dims, table.arity, r->entries, &table.transposed);
        if (table.table < 0) return out_of_memory(r, err);
    }
    if (!add_factor(r, &table, scores) || (r->is_shared && !share(r, table, scores))) return out_of_memory(r, err);
    next_function(r);
    return FGI_OK;
}

static fgi_rc use_shared(fgi_wcsp *r, int64_t number, const char *word, int64_t n, fgi_error *err) {
    const shared *table = (const shared *)r->shared.at + (number - 1);
    const int32_t *dims = (const int32_t *)r->shared_dims.at + table->dims;
    if (table->arity != r->vars.n ||
        (table->arity && memcmp(dims, r->dims, (size_t)table->arity * sizeof *dims) != 0)) {
        char mine[80], known[80];
        fgi_words_list(mine, sizeof mine, r->dims, r->vars.n);
        fgi_words_list(known, sizeof known, dims, table->arity);
        return fail_at(r, err, word, n, "cost function %lld has label counts %s, the shared function %lld has %s",
            ll(r->f), mine, ll(number), known);
    }
    const double *scores = table->arity < 2 ? (const double *)r->shared_values.at + table->values : NULL;
    if (!add_factor(r, table, scores)) return out_of_memory(r, err);
    next_function(r);
    return FGI_OK;
}

static fgi_rc end_of_scope(fgi_wcsp *r, const char *word, int64_t n, fgi_error *err) {
    const int32_t *vars = r->vars.at, *cards = r->c.cards.at;
    if (r->twice) return fail_at(r, err, word, n, "cost function %lld names a variable twice", ll(r->f));
    if (r->vars.n > r->most_variables)
        return fail_at(r, err, word, n, "cost function %lld has %lld variables; %lld are the most", ll(r->f),
            ll(r->vars.n), ll(r->most_variables));
    for (int64_t k = 0; k < r->vars.n; k++) r->dims[k] = cards[vars[k]];
    r->now = DEFAULT;
    return FGI_OK;
}

static fgi_rc take_variable(fgi_wcsp *r, const char *word, int64_t n, fgi_error *err) {
    int64_t x;
    fgi_rc rc = take_whole(r, word, n, "a variable of cost function %lld", r->f, 0, r->n_vars - 1, &x, err);
    if (rc) return rc;
    int32_t *stamp = (int32_t *)r->c.stamp.at + x;
    r->twice |= *stamp == (int32_t)r->f;
    *stamp = (int32_t)r->f;
    if (!fgi_array_push_i32(&r->vars, (int32_t)x)) return out_of_memory(r, err);
    return --r->arity_left ? FGI_OK : end_of_scope(r, word, n, err);
}

/* All tuples at the default cost, until others come. */
static fgi_rc take_tuple_count(fgi_wcsp *r, const char *word, int64_t n, fgi_error *err) {
    int64_t count;
    fgi_rc rc = take_whole(
        r, word, n, "the number of tuples of cost function %lld", r->f, -r->shared.n, INT64_MAX, &count, err);
    if (rc) return rc;
    if (count < 0) return use_shared(r, -count, word, n, err);
    if (!r->vars.n && count)
        return fail_at(r, err, word, n, "cost function %lld has no variables and so no tuples", ll(r->f));
    if ((rc = allow_table(r, word, n, err))) return rc;
    if (count > r->entries + REPEATED)
        return fail_at(r, err, word, n, "cost function %lld has %lld entries; %lld tuples cannot be meant", ll(r->f),
            ll(r->entries), ll(count));
    const double score = score_of(r, (double)r->default_cost);
    r->c.tables.values.n += r->entries;
    double *out = table_begin(r);
    for (int64_t k = 0; k < r->entries; k++) out[k] = score;
    r->n_tuples = r->tuples_left = count;
    r->column = r->at = 0;
    r->now = TUPLES;
    return count ? FGI_OK : end_of_table(r, err);
}

static fgi_rc take_tuple(fgi_wcsp *r, const char *word, int64_t n, fgi_error *err) {
    int64_t x;
    const int is_cost = r->column == r->vars.n;
    if (is_cost && n == 3 && !memcmp(word, "inf", 3)) x = r->top;
    else if (n > LONGEST_NUMBER || !whole(word, n, &x))
        return fail_at(r, err, word, n, "expected %lld tuples of cost function %lld, whole numbers below 10^18",
            ll(r->n_tuples), ll(r->f));
    if (!is_cost) {
        const int32_t labels = r->dims[r->column];
        if (x < 0 || x >= labels)
            return fail_at(r, err, word, n, "cost function %lld: expected a label from 0 to %d", ll(r->f), labels - 1);
        r->at = r->at * labels + x;
        r->column++;
        return FGI_OK;
    }
    if (x < 0) return fail_at(r, err, word, n, "cost function %lld has a negative cost", ll(r->f));
    table_begin(r)[r->at] = score_of(r, (double)x);
    r->column = r->at = 0;
    return --r->tuples_left ? FGI_OK : end_of_table(r, err);
}

/* A number of digits only, SHORT_NUMBER at most, and the blank behind it: where that is, or NULL. */
static inline const char *plain_number(const char *p, const char *end, int64_t *line, int64_t *out) {
    while (p < end && fgi_is_space(*p)) *line += *p++ == '\n';
    const char *begin = p;
    int64_t x = 0;
    for (; p < end; p++) {
        const unsigned digit = (unsigned char)*p - (unsigned)'0';
        if (digit > 9) break;
        x = (int64_t)((uint64_t)x * 10 + digit); /* too long a number is refused below */
    }
    *out = x;
    return p > begin && p < end && fgi_is_space(*p) && p - begin <= SHORT_NUMBER ? p : NULL;
}

/* The hot loop: whole tuples in plain sight. Anything else, and the end of the table, is for take_tuple. */
static fgi_rc take_many(fgi_words *w, const char **from, const char *end, fgi_error *err) {
    fgi_wcsp *r = (fgi_wcsp *)w;
    if (r->now != TUPLES || r->column) return FGI_OK;
    const int64_t arity = r->vars.n;
    const int32_t *dims = r->dims;
    double *out = table_begin(r);
    while (r->tuples_left) {
        const char *p = *from;
        int64_t line = w->line, at = 0, k, x = 0;
        for (k = 0; k < arity && (p = plain_number(p, end, &line, &x)) && x < dims[k]; k++) at = at * dims[k] + x;
        if (k < arity || !(p = plain_number(p, end, &line, &x))) return FGI_OK;
        out[at] = score_of(r, (double)x);
        *from = p;
        w->line = line;
        r->tuples_left--;
    }
    return end_of_table(r, err);
}

/* ---- functions given by a formula ---------------------------------------------------------------------------- */

static fgi_rc take_keyword(fgi_wcsp *r, const char *word, int64_t n, fgi_error *err) {
    r->formula = fgi_formula_find(word, n);
    if (!r->formula || r->vars.n != 2)
        return fail_at(r, err, word, n, "cost function %lld is a global one of a kind that is not supported", ll(r->f));
    r->column = 0;
    r->now = PARAMETER;
    return allow_table(r, word, n, err);
}

static fgi_rc take_parameter(fgi_wcsp *r, const char *word, int64_t n, fgi_error *err) {
    int64_t x;
    fgi_rc rc = take_cost(r, word, n, "a parameter of cost function %lld", -(INT64_C(1) << 62), &x, err);
    if (rc) return rc;
    r->parameters[r->column] = (double)x;
    if (x < 0 && r->column >= r->formula->first_cost)
        return fail_at(r, err, word, n, "cost function %lld has a negative cost", ll(r->f));
    if (++r->column < r->formula->n_parameters) return FGI_OK;
    r->c.tables.values.n += r->entries;
    double *out = table_begin(r);
    fgi_formula_expand(r->formula, r->parameters, r->dims, (double)r->top, out);
    for (int64_t k = 0; k < r->entries; k++) out[k] = score_of(r, out[k]);
    return end_of_table(r, err);
}

/* ---- the reader --------------------------------------------------------------------------------------------- */

/* An interval of n values is said as -n: its labels are those of a list of n. */
static fgi_rc take_domain(fgi_wcsp *r, const char *word, int64_t n, fgi_error *err) {
    const int interval = n > 1 && word[0] == '-';
    const int64_t high = r->largest < INT32_MAX ? r->largest : INT32_MAX, i = r->c.cards.n;
    int64_t size;
    fgi_rc rc =
        take_whole(r, word + interval, n - interval, "the domain size of variable %lld", i, 1, high, &size, err);
    if (rc) return rc;
    char what[80];
    snprintf(what, sizeof what, "variable %lld with %lld labels", ll(i), ll(size));
    if ((rc = allow(r, (double)size, word, n, what, err))) return rc;
    if (!fgi_collected_variable(&r->c, (int32_t)size)) return out_of_memory(r, err);
    if (r->c.cards.n == r->n_vars) r->now = r->n_functions ? ARITY : DONE;
    return FGI_OK;
}

static fgi_rc take_arity(fgi_wcsp *r, const char *word, int64_t n, fgi_error *err) {
    int64_t x;
    fgi_rc rc = take_whole(r, word, n, "the arity of cost function %lld", r->f, -r->n_vars, r->n_vars, &x, err);
    if (rc) return rc;
    if (r->f == INT32_MAX) return fail_at(r, err, word, n, "more than 2^31-1 cost functions");
    r->is_shared = x < 0;
    r->arity_left = x < 0 ? -x : x;
    r->vars.n = 0;
    r->twice = 0;
    r->now = r->arity_left ? VARIABLE : DEFAULT;
    return FGI_OK;
}

static fgi_rc take_one(fgi_wcsp *r, const char *word, int64_t n, fgi_error *err) {
    fgi_rc rc = FGI_OK;
    switch (r->now) {
    case NAME: break; /* see take */
    case N_VARS:
        rc = take_whole(r, word, n, "the number of variables", 0, 0, INT32_MAX, &r->n_vars, err);
        r->now = LARGEST;
        break;
    case LARGEST:
        rc = take_whole(r, word, n, "the largest domain size", 0, 0, INT64_MAX, &r->largest, err);
        r->now = N_FUNCTIONS;
        break;
    case N_FUNCTIONS:
        rc = take_whole(r, word, n, "the number of cost functions", 0, 0, INT64_MAX, &r->n_functions, err);
        r->now = TOP;
        break;
    case TOP:
        rc = take_whole(r, word, n, "the upper bound", 0, 0, INT64_MAX, &r->top, err);
        r->now = r->n_vars ? DOMAIN_SIZE : r->n_functions ? ARITY : DONE;
        break;
    case DOMAIN_SIZE: return take_domain(r, word, n, err);
    case ARITY: return take_arity(r, word, n, err);
    case VARIABLE: return take_variable(r, word, n, err);
    case DEFAULT:
        rc = take_cost(r, word, n, "the default cost of cost function %lld, or -1", -1, &r->default_cost, err);
        r->now = r->default_cost == -1 ? KEYWORD : N_TUPLES;
        break;
    case N_TUPLES: return take_tuple_count(r, word, n, err);
    case TUPLES: return take_tuple(r, word, n, err);
    case KEYWORD: return take_keyword(r, word, n, err);
    case PARAMETER: return take_parameter(r, word, n, err);
    case DONE: return fail_at(r, err, word, n, "extra text after %lld cost functions", ll(r->n_functions));
    }
    return rc;
}

/* A word of the file. Behind the name, `29-1` is two numbers, as it is for a program in C++ that reads them. */
static fgi_rc take(fgi_words *w, const char *word, int64_t n, fgi_error *err) {
    fgi_wcsp *r = (fgi_wcsp *)w;
    fgi_rc rc = FGI_OK;
    if (r->now == NAME) {
        if (n != 3 || memcmp(word, "\xEF\xBB\xBF", 3) != 0) r->now = N_VARS; /* else a byte order mark alone */
        return FGI_OK;
    }
    int64_t from = 0;
    for (int64_t k = 1; k + 1 < n && !rc; k++) {
        if ((word[k] != '-' && word[k] != '+') || (unsigned)(word[k - 1] - '0') > 9 ||
            (unsigned)(word[k + 1] - '0') > 9)
            continue;
        rc = take_one(r, word + from, k - from, err);
        from = k;
    }
    return rc ? rc : take_one(r, word + from, n - from, err);
}

static int64_t index_of_function(const fgi_words *w) {
    const fgi_wcsp *r = (const fgi_wcsp *)w;
    return r->now >= ARITY && r->now < DONE ? r->f : -1;
}

static const fgi_words_ops OPS = {LONGEST_NAME, "a .wcsp file", take, take_many, index_of_function};

fgi_rc fgi_wcsp_create(int64_t most_variables, double allowed, fgi_wcsp **out, fgi_error *err) {
    fgi_wcsp *r = fgi_calloc(1, sizeof *r);
    if (r) r->dims = fgi_alloc(most_variables, sizeof *r->dims);
    if (!r || !r->dims) {
        fgi_wcsp_free(r);
        return fgi_no_memory(err);
    }
    r->words.ops = &OPS;
    r->words.line = 1;
    r->most_variables = most_variables;
    r->allowed = allowed;
    *out = r;
    return FGI_OK;
}

fgi_rc fgi_wcsp_feed(fgi_wcsp *r, const char *text, int64_t n, fgi_error *err) {
    return fgi_words_feed(&r->words, text, n, err);
}

static fgi_rc check_complete(fgi_wcsp *r, fgi_error *err) {
    static const char *const expected[] = {
        [NAME] = "the name of the problem was",
        [N_VARS] = "the number of variables was",
        [LARGEST] = "the largest domain size was",
        [N_FUNCTIONS] = "the number of cost functions was",
        [TOP] = "the upper bound was",
        [DOMAIN_SIZE] = "the domain size of variable %lld was",
        [ARITY] = "the arity of cost function %lld was",
        [VARIABLE] = "a variable of cost function %lld was",
        [DEFAULT] = "the default cost of cost function %lld, or -1 was",
        [N_TUPLES] = "the number of tuples of cost function %lld was",
        [KEYWORD] = "the keyword of cost function %lld was",
        [PARAMETER] = "a parameter of cost function %lld was",
    };
    char what[100];
    if (r->now == DONE) return FGI_OK;
    if (r->words.line_ended) r->words.line--; /* the last line that there is */
    if (r->now == TUPLES)
        snprintf(what, sizeof what, "%lld tuples of cost function %lld were", ll(r->n_tuples), ll(r->f));
    else snprintf(what, sizeof what, expected[r->now], ll(r->now == DOMAIN_SIZE ? r->c.cards.n : r->f));
    return fgi_words_fail_end(&r->words, err, "the file ends where %s expected", what);
}

fgi_rc fgi_wcsp_finish(fgi_wcsp *r, fgi_model **out, int64_t *given, double *cutoff, fgi_error *err) {
    fgi_rc rc = fgi_words_finish(&r->words, err);
    if (rc || (rc = check_complete(r, err))) return rc;
    r->words.failed = 1; /* nothing can be fed any more */
    *given = r->n_functions;
    *cutoff = r->most >= r->top ? -(double)r->top : -INFINITY; /* else no total gets there */
    return fgi_collected_finish(&r->c, out, err);
}

double fgi_wcsp_refused(const fgi_wcsp *r) { return r->refused ? r->taken : 0; }

int64_t fgi_wcsp_held(const fgi_wcsp *r) {
    return fgi_collected_held(&r->c) + 4 * (r->vars.capacity + r->shared_dims.capacity) +
        8 * r->shared_values.capacity + (int64_t)sizeof(shared) * r->shared.capacity;
}

void fgi_wcsp_free(fgi_wcsp *r) {
    if (!r) return;
    fgi_array *all[] = {&r->vars, &r->shared, &r->shared_dims, &r->shared_values};
    for (size_t k = 0; k < sizeof all / sizeof all[0]; k++) free(all[k]->at);
    fgi_collected_clear(&r->c);
    free(r->dims);
    free(r);
}
