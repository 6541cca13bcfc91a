/*
 * io/cfn_read.c - the reader of toulbar2's .cfn, a cost function network in relaxed JSON:
 *
 *     { problem { name N mustbe <B }  variables { x 3  y [a b] }  functions { f { scope [x y] costs [1 2 3 4 5 6] } } }
 *
 * Keywords may be left out. Costs are listed, or a default cost and the tuples that differ, or the name of a function
 * that has them, before or after, or a formula. A score is minus a cost (mustbe >B: the value itself). Which costs
 * forbid can be said only when all are known: those so high that the negative costs of all other functions cannot pay.
 * Until then tables hold costs, in the order of the file.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "base/decimal.h"
#include "base/util.h"
#include "io/cfn.h"

enum { SHORT_INDEX = 9 }; /* digits of a variable or label given by its number */

#define fail_at(r, err, t, ...) fgi_words_fail(&(r)->json.words, err, (t)->text, (t)->n, __VA_ARGS__)
static long long ll(int64_t x) { return x; } /* for %lld */
static fgi_rc out_of_memory(fgi_cfn *r, fgi_error *err) { return fgi_words_no_memory(&r->json.words, err); }
static int64_t this_function(const fgi_cfn *r) { return r->factors.n; }
static int64_t this_variable(const fgi_cfn *r) { return r->c.cards.n; }

/* ---- tokens ------------------------------------------------------------------------------------------------- */

static int is_word(const fgi_token *t, const char *word) {
    return t->kind == FGI_WORD && t->n == (int64_t)strlen(word) && !memcmp(t->text, word, (size_t)t->n);
}

static int is_number(const fgi_token *t, double *value) {
    fgi_decimal d;
    const char *end = t->text + t->n;
    if (t->kind != FGI_WORD || fgi_decimal_scan(t->text, end, &d) != end) return 0;
    *value = fgi_decimal_double(&d, t->text, end);
    return 1;
}

static fgi_rc expect_opening(fgi_cfn *r, const fgi_token *t, const char *what, phase next, fgi_error *err) {
    char text[100];
    snprintf(text, sizeof text, what, ll(this_function(r)));
    if (t->kind != FGI_OPENING) return fail_at(r, err, t, "expected %s, in brackets", text);
    r->now = next;
    return FGI_OK;
}

/* A keyword that may be left out: then the token is for what follows it. */
static fgi_rc skip_keyword(fgi_cfn *r, const fgi_token *t, const char *word, phase next) {
    r->again = !is_word(t, word);
    r->now = next;
    return FGI_OK;
}

static fgi_rc fail_inside(fgi_cfn *r, const fgi_token *t, fgi_error *err) {
    return fail_at(r, err, t, "the file ends inside a bracket");
}

/* A bracket closes here; `otherwise` is what to say if not. */
static fgi_rc expect_closing(fgi_cfn *r, const fgi_token *t, const char *otherwise, phase next, fgi_error *err) {
    if (t->kind == FGI_END) return fail_inside(r, t, err);
    char text[100];
    snprintf(text, sizeof text, otherwise, ll(this_function(r)));
    if (t->kind != FGI_CLOSING) return fail_at(r, err, t, "%s", text);
    r->now = next;
    return FGI_OK;
}

static fgi_rc take_number(fgi_cfn *r, const fgi_token *t, const char *what, int64_t k, double *out, fgi_error *err) {
    char text[100];
    if (is_number(t, out) && isfinite(*out)) return FGI_OK;
    snprintf(text, sizeof text, what, ll(k));
    if (!is_number(t, out)) return fail_at(r, err, t, "expected %s, a number", text);
    return fail_at(r, err, t, "%s is too large for a double", text);
}

/* A number, or the infinity that forbids. */
static fgi_rc take_cost(fgi_cfn *r, const fgi_token *t, const char *what, double *out, fgi_error *err) {
    const int64_t sign = t->n > 0 && (t->text[0] == '-' || t->text[0] == '+');
    const int infinite = t->kind == FGI_WORD &&
        (fgi_words_same(t->text + sign, t->n - sign, "INF") || fgi_words_same(t->text + sign, t->n - sign, "INFINITY"));
    if (!infinite) return take_number(r, t, what, this_function(r), out, err);
    const double forbids = r->maximise ? -INFINITY : INFINITY;
    char text[100];
    *out = t->text[0] == '-' ? -INFINITY : INFINITY;
    if (*out == forbids) return FGI_OK;
    snprintf(text, sizeof text, what, ll(this_function(r)));
    return fail_at(r, err, t, "%s is %s; only %s forbids here, and nothing else is infinite", text,
        *out < 0 ? "-inf" : "inf", forbids < 0 ? "-inf" : "inf");
}

/* A variable or label by its name, or by its number below `n`; -1: there is none. */
static int64_t index_of(const fgi_cfn *r, const fgi_token *t, int32_t owner, int64_t n) {
    if (t->kind != FGI_WORD) return -1;
    int64_t x = fgi_names_find(&r->names, owner, t->text, t->n);
    if (x >= 0) return x;
    if (t->n < 1 || t->n > SHORT_INDEX) return -1;
    x = 0;
    for (int64_t k = 0; k < t->n; k++) {
        if (t->text[k] < '0' || t->text[k] > '9') return -1;
        x = 10 * x + (t->text[k] - '0');
    }
    return x < n ? x : -1;
}

static int keep_name(fgi_array *to, const char *text, int64_t n) {
    if (!fgi_array_reserve(to, n + 1, 1)) return 0;
    if (n) memcpy((char *)to->at + to->n, text, (size_t)n);
    to->n += n;
    return 1;
}

/* ---- the problem and its variables --------------------------------------------------------------------------- */

static fgi_rc take_bound(fgi_cfn *r, const fgi_token *t, fgi_error *err) {
    const fgi_token number = {t->kind, 0, t->text + 1, t->n - 1};
    double bound = 0;
    if (t->kind != FGI_WORD || t->n < 1 || (t->text[0] != '<' && t->text[0] != '>') || !is_number(&number, &bound))
        return fail_at(r, err, t, "expected 'mustbe' as '<' or '>' and a number");
    r->maximise = t->text[0] == '>';
    r->bound = r->maximise ? 0.0 - bound : bound;
    r->now = PROBLEM_CLOSES;
    return FGI_OK;
}

static fgi_rc add_variable(fgi_cfn *r, int64_t labels, fgi_error *err) {
    r->small = labels < 1;
    r->now = VARIABLE;
    return fgi_collected_variable(&r->c, (int32_t)labels) ? FGI_OK : out_of_memory(r, err);
}

static fgi_rc take_variable(fgi_cfn *r, const fgi_token *t, fgi_error *err) {
    double value;
    if (r->small)
        return fail_at(r, err, t, "variable %lld needs between 1 and 2^31-1 labels", ll(this_variable(r) - 1));
    if (t->kind == FGI_END) return fail_inside(r, t, err);
    if (t->kind == FGI_CLOSING) {
        r->now = FUNCTIONS;
        return FGI_OK;
    }
    if (this_variable(r) == INT32_MAX) return fail_at(r, err, t, "more than 2^31-1 variables");
    r->now = DOMAIN_SIZE;
    r->named_twice = 0;
    r->again = t->kind == FGI_OPENING || (is_number(t, &value) && !t->quoted);
    if (r->again) return FGI_OK;
    r->named_twice = fgi_names_find(&r->names, OF_VARIABLES, t->text, t->n) >= 0;
    r->name.n = 0;
    if (!keep_name(&r->name, t->text, t->n)) return out_of_memory(r, err);
    if (!r->named_twice && !fgi_names_add(&r->names, OF_VARIABLES, t->text, t->n, (int32_t)this_variable(r)))
        return out_of_memory(r, err);
    return FGI_OK;
}

static fgi_rc take_domain(fgi_cfn *r, const fgi_token *t, fgi_error *err) {
    if (r->named_twice)
        return fail_at(r, err, t, "there are two variables '%.*s'", r->name.n < 100 ? (int)r->name.n : 100,
            (const char *)r->name.at);
    r->column = 0; /* labels so far */
    r->again = t->kind != FGI_OPENING;
    r->now = r->again ? SIZE : LABEL;
    return FGI_OK;
}

/* An interval of n values is said as -n: its labels are those of a list of n. */
static fgi_rc take_size(fgi_cfn *r, const fgi_token *t, fgi_error *err) {
    double size;
    fgi_rc rc = take_number(r, t, "the number of labels of variable %lld", this_variable(r), &size, err);
    if (rc) return rc;
    size = fabs(size);
    return add_variable(r, size < 2147483648.0 && size == floor(size) ? (int64_t)size : 0, err);
}

static fgi_rc take_label_name(fgi_cfn *r, const fgi_token *t, fgi_error *err) {
    const int32_t i = (int32_t)this_variable(r);
    if (t->kind == FGI_END) return fail_inside(r, t, err);
    if (t->kind == FGI_CLOSING) return add_variable(r, r->column, err);
    if (t->kind == FGI_OPENING) return fail_at(r, err, t, "expected a label of variable %d", (int)i);
    if (fgi_names_find(&r->names, i, t->text, t->n) >= 0)
        return fail_at(r, err, t, "variable %d has two labels of one name", (int)i);
    return fgi_names_add(&r->names, i, t->text, t->n, (int32_t)r->column++) ? FGI_OK : out_of_memory(r, err);
}

/* ---- what a file can ask for --------------------------------------------------------------------------------- */

static fgi_rc refuse(fgi_cfn *r, const fgi_token *t, double bytes, int listed, const char *what, fgi_error *err) {
    r->refused = bytes;
    r->refused_listed = listed;
    return fail_at(r, err, t, "%s", what);
}

static fgi_rc take_functions(fgi_cfn *r, const fgi_token *t, fgi_error *err) {
    double labels = 0;
    for (int64_t i = 0; i < r->c.cards.n; i++) labels += ((const int32_t *)r->c.cards.at)[i];
    r->taken += 8 * labels;
    if (r->taken > r->allowed) {
        char what[80];
        snprintf(what, sizeof what, "%.0f labels in all", labels);
        return refuse(r, t, r->taken, 0, what, err);
    }
    return skip_keyword(r, t, "functions", FUNCTIONS_OPEN);
}

static fgi_rc allow_table(fgi_cfn *r, const fgi_token *t, fgi_error *err) {
    const int listed = is_word(t, "costs"); /* then its entries come one by one, and are counted when they are there */
    double size = 1;
    for (int64_t k = 0; k < r->vars.n; k++) size *= r->dims[k];
    if (!listed) r->taken += 8 * size;
    if (listed ? 8 * size > r->most : r->taken > r->allowed) {
        char what[160];
        snprintf(what, sizeof what, "function %lld, a table of %.0f entries,", ll(this_function(r)), size);
        return refuse(r, t, listed ? 8 * size : r->taken, listed, what, err);
    }
    if (!(size < 0x1p62)) return out_of_memory(r, err);
    r->states = size;
    return FGI_OK;
}

/* ---- functions ---------------------------------------------------------------------------------------------- */

static double *costs_begin(const fgi_cfn *r) {
    return (double *)r->c.tables.values.at + (r->c.tables.values.n - r->entries);
}

static fgi_rc take_function(fgi_cfn *r, const fgi_token *t, fgi_error *err) {
    if (t->kind == FGI_END) return fail_inside(r, t, err);
    r->vars.n = r->entries = r->at = r->column = 0;
    r->twice = r->has_default = 0;
    r->formula = NULL;
    if (t->kind == FGI_CLOSING) {
        r->now = NETWORK_CLOSES;
        return FGI_OK;
    }
    if (this_function(r) == INT32_MAX) return fail_at(r, err, t, "more than 2^31-1 functions");
    const int unnamed = t->kind == FGI_OPENING;
    r->name.n = 0;
    char number[32];
    const int digits = snprintf(number, sizeof number, "%lld", ll(this_function(r)));
    if (!keep_name(&r->name, unnamed ? number : t->text, unnamed ? digits : t->n)) return out_of_memory(r, err);
    r->now = unnamed ? SCOPE : FUNCTION_OPENS;
    return FGI_OK;
}

static fgi_rc take_scope(fgi_cfn *r, const fgi_token *t, fgi_error *err) {
    if (t->kind == FGI_END) return fail_inside(r, t, err);
    if (t->kind == FGI_CLOSING) {
        r->now = BODY;
        return FGI_OK;
    }
    const int64_t x = index_of(r, t, OF_VARIABLES, this_variable(r));
    if (x < 0) return fail_at(r, err, t, "function %lld: there is no such variable", ll(this_function(r)));
    int32_t *stamp = (int32_t *)r->c.stamp.at + x;
    r->twice |= *stamp == (int32_t)this_function(r);
    *stamp = (int32_t)this_function(r);
    return fgi_array_push_i32(&r->vars, (int32_t)x) ? FGI_OK : out_of_memory(r, err);
}

static fgi_rc take_body(fgi_cfn *r, const fgi_token *t, fgi_error *err) {
    const long long f = ll(this_function(r));
    if (r->twice) return fail_at(r, err, t, "function %lld names a variable twice", f);
    if (r->vars.n > r->most_variables)
        return fail_at(
            r, err, t, "function %lld has %lld variables; %lld are the most", f, ll(r->vars.n), ll(r->most_variables));
    for (int64_t k = 0; k < r->vars.n; k++)
        r->dims[k] = ((const int32_t *)r->c.cards.at)[((const int32_t *)r->vars.at)[k]];
    fgi_rc rc = allow_table(r, t, err);
    if (rc) return rc;
    r->again = !is_word(t, "type") && !is_word(t, "defaultcost");
    r->now = is_word(t, "type") ? TYPE : r->again ? COSTS : DEFAULT;
    return FGI_OK;
}

/* Room for the whole table, at the default cost. */
static fgi_rc fill(fgi_cfn *r, double cost, fgi_error *err) {
    r->entries = (int64_t)r->states;
    if (!fgi_array_reserve(&r->c.tables.values, r->entries, sizeof(double))) return out_of_memory(r, err);
    r->c.tables.values.n += r->entries;
    double *out = costs_begin(r);
    for (int64_t k = 0; k < r->entries; k++) out[k] = cost;
    return FGI_OK;
}

static int add_factor(fgi_cfn *r, factor x) {
    x.scope = r->scopes.n;
    x.arity = r->vars.n;
    for (int64_t k = 0; k < r->vars.n; k++)
        if (!fgi_array_push_i32(&r->scopes, ((const int32_t *)r->vars.at)[k])) return 0;
    if (!fgi_array_reserve(&r->factors, 1, sizeof x)) return 0;
    ((factor *)r->factors.at)[r->factors.n++] = x;
    return 1;
}

/* The costs at the end of the values are those of the function, which has come to its end. */
static fgi_rc keep_function(fgi_cfn *r, fgi_error *err) {
    const int32_t number = (int32_t)r->functions.n;
    function x = {.entries = r->entries,
        .begin = r->c.tables.values.n - r->entries,
        .dims = r->table_dims.n,
        .arity = r->vars.n,
        .table = -1};
    double *costs = costs_begin(r), least = INFINITY, largest = -INFINITY;
    for (int64_t k = 0; k < r->entries; k++) {
        if (r->maximise) costs[k] = 0.0 - costs[k];
        if (!isfinite(costs[k])) continue;
        least = fgi_smaller(least, costs[k]);
        largest = fgi_larger(largest, costs[k]);
    }
    x.least = least < INFINITY ? least : 0;
    x.largest = least < INFINITY ? largest : 0;
    for (int64_t k = 0; k < r->vars.n; k++)
        if (!fgi_array_push_i32(&r->table_dims, r->dims[k])) return out_of_memory(r, err);
    const int32_t known = fgi_names_find(&r->names, OF_FUNCTIONS, r->name.at, r->name.n);
    if (known >= 0) ((function *)r->functions.at)[known].twice = 1;
    else if (!fgi_names_add(&r->names, OF_FUNCTIONS, r->name.at, r->name.n, number)) return out_of_memory(r, err);
    if (!fgi_array_reserve(&r->functions, 1, sizeof x)) return out_of_memory(r, err);
    ((function *)r->functions.at)[r->functions.n++] = x;
    if (!add_factor(r, (factor){.name = -1, .function = number})) return out_of_memory(r, err);
    r->now = FUNCTION;
    return FGI_OK;
}

static fgi_rc take_costs(fgi_cfn *r, const fgi_token *t, fgi_error *err) {
    if (is_word(t, "costs")) {
        r->now = COSTS_THEMSELVES;
        return FGI_OK;
    }
    if (r->has_default && t->kind == FGI_END) return fail_inside(r, t, err);
    if (!r->has_default || t->kind != FGI_CLOSING)
        return fail_at(r, err, t, "expected the costs of function %lld", ll(this_function(r)));
    fgi_rc rc = fill(r, r->default_cost, err);
    return rc ? rc : keep_function(r, err);
}

static fgi_rc take_costs_themselves(fgi_cfn *r, const fgi_token *t, fgi_error *err) {
    if (t->kind == FGI_OPENING) {
        r->now = r->has_default ? TUPLES : LISTED;
        return r->has_default ? fill(r, r->default_cost, err) : FGI_OK;
    }
    if (t->kind != FGI_WORD) return fail_at(r, err, t, "expected the costs of function %lld", ll(this_function(r)));
    const factor x = {.line = r->json.words.line, .name = r->shared_names.n, .name_length = t->n, .function = -1};
    if (!keep_name(&r->shared_names, t->text, t->n)) return out_of_memory(r, err);
    r->column = this_function(r); /* for the message about what follows */
    r->now = FUNCTION_CLOSES;
    return add_factor(r, x) ? FGI_OK : out_of_memory(r, err);
}

static fgi_rc take_listed(fgi_cfn *r, const fgi_token *t, fgi_error *err) {
    double cost;
    if (t->kind == FGI_END) return fail_inside(r, t, err);
    if (t->kind == FGI_CLOSING) {
        r->now = COSTS_ENDED;
        return FGI_OK;
    }
    if ((double)r->entries == r->states)
        return fail_at(r, err, t, "function %lld has more than %.0f costs", ll(this_function(r)), r->states);
    fgi_rc rc = take_cost(r, t, "a cost of function %lld", &cost, err);
    if (rc) return rc;
    if (!fgi_array_reserve(&r->c.tables.values, 1, sizeof cost)) return out_of_memory(r, err);
    ((double *)r->c.tables.values.at)[r->c.tables.values.n++] = cost;
    r->entries++;
    return FGI_OK;
}

/* The hot loop: costs in plain sight. */
static fgi_rc take_many(fgi_relaxed_json *json, const char **from, const char *end, fgi_error *err) {
    fgi_cfn *r = (fgi_cfn *)json;
    if (r->now != LISTED) return FGI_OK;
    const char *p = *from;
    int64_t n = (end - p) / 2 + 1, lines = 0; /* a cost needs two bytes of text */
    if ((double)n > r->states - (double)r->entries) n = (int64_t)(r->states - (double)r->entries);
    if (!fgi_array_reserve(&r->c.tables.values, n, sizeof(double))) return out_of_memory(r, err);
    double *out = (double *)r->c.tables.values.at + r->c.tables.values.n, *stop = out + n, *first = out;
    while (out < stop) {
        fgi_decimal d;
        for (; p < end && (*p == ' ' || *p == ',' || *p == '\n'); p++)
            lines += *p == '\n'; /* taken once, whatever comes */
        const char *stops = fgi_decimal_scan(p, end, &d);
        if (!stops || stops == end || !fgi_relaxed_json_ends(*stops) || *stops == '"') break;
        *out = fgi_decimal_double(&d, p, stops);
        if (!isfinite(*out)) break;
        out++;
        p = stops;
    }
    r->c.tables.values.n += out - first;
    r->entries += out - first;
    json->words.line += lines;
    *from = p;
    return FGI_OK;
}

static fgi_rc take_tuple(fgi_cfn *r, const fgi_token *t, fgi_error *err) {
    if (r->column == 0) {
        r->at = 0;
        if (t->kind == FGI_END) return fail_inside(r, t, err);
        if (t->kind == FGI_CLOSING) {
            r->now = COSTS_ENDED;
            return FGI_OK;
        }
    }
    if (r->column < r->vars.n) {
        const int32_t i = ((const int32_t *)r->vars.at)[r->column];
        const int64_t x = index_of(r, t, i, r->dims[r->column]);
        if (x < 0)
            return fail_at(r, err, t, "function %lld: variable %d has no such label", ll(this_function(r)), (int)i);
        r->at = r->at * r->dims[r->column++] + x;
        return FGI_OK;
    }
    r->column = 0;
    return take_cost(r, t, "a cost of function %lld", costs_begin(r) + r->at, err);
}

static fgi_rc take_costs_ended(fgi_cfn *r, const fgi_token *t, fgi_error *err) {
    if ((double)r->entries < r->states)
        return fail_at(
            r, err, t, "function %lld has %lld of %.0f costs", ll(this_function(r)), ll(r->entries), r->states);
    fgi_rc rc = expect_closing(r, t, "extra text in function %lld", FUNCTION, err);
    return rc ? rc : keep_function(r, err);
}

static fgi_rc take_type(fgi_cfn *r, const fgi_token *t, fgi_error *err) {
    r->formula = t->kind == FGI_WORD ? fgi_formula_find(t->text, t->n) : NULL;
    if (!r->formula || r->vars.n != 2 || r->maximise)
        return fail_at(
            r, err, t, "function %lld is a global one of a kind that is not supported", ll(this_function(r)));
    r->now = PARAMETERS;
    return FGI_OK;
}

static fgi_rc take_parameter(fgi_cfn *r, const fgi_token *t, fgi_error *err) {
    fgi_rc rc = take_number(r, t, "a parameter of function %lld", this_function(r), &r->parameters[r->column], err);
    if (!rc && ++r->column == r->formula->n_parameters) {
        r->now = PARAMETERS_CLOSE;
        r->column = 0;
    }
    return rc;
}

/* Twice: that of the parameters and that of the function. */
static fgi_rc take_parameters_close(fgi_cfn *r, const fgi_token *t, fgi_error *err) {
    fgi_rc rc = expect_closing(r, t, "extra parameters of function %lld", PARAMETERS_CLOSE, err);
    if (rc || ++r->column < 2) return rc;
    if ((rc = fill(r, 0, err))) return rc;
    fgi_formula_expand(r->formula, r->parameters, r->dims, INFINITY, costs_begin(r));
    return keep_function(r, err);
}

static fgi_rc take_function_close(fgi_cfn *r, const fgi_token *t, fgi_error *err) {
    if (t->kind == FGI_END) return fail_inside(r, t, err);
    if (t->kind != FGI_CLOSING) return fail_at(r, err, t, "extra text in function %lld", ll(r->column));
    r->now = FUNCTION;
    return FGI_OK;
}

/* ---- the phases ---------------------------------------------------------------------------------------------- */

static fgi_rc take_one(fgi_cfn *r, const fgi_token *t, fgi_error *err) {
    static const char *const EXTRA = "extra text after the functions";
    switch (r->now) {
    case NETWORK:
        if (t->kind == FGI_END) return fail_at(r, err, t, "the file is empty");
        return expect_opening(r, t, "a cost function network", PROBLEM, err);
    case PROBLEM: return skip_keyword(r, t, "problem", PROBLEM_OPENS);
    case PROBLEM_OPENS: return expect_opening(r, t, "the properties of the problem", NAME, err);
    case NAME: return skip_keyword(r, t, "name", NAME_ITSELF);
    case NAME_ITSELF:
        r->now = MUST_BE;
        r->again = t->kind == FGI_END || t->n == 0 || t->text[0] == '<' || t->text[0] == '>';
        if (r->again || t->kind == FGI_WORD) return FGI_OK;
        return fail_at(r, err, t, "expected the name of the problem");
    case MUST_BE: return skip_keyword(r, t, "mustbe", BOUND);
    case BOUND: return take_bound(r, t, err);
    case PROBLEM_CLOSES: return expect_closing(r, t, "extra properties of the problem", VARIABLES, err);
    case VARIABLES: return skip_keyword(r, t, "variables", VARIABLES_OPEN);
    case VARIABLES_OPEN: return expect_opening(r, t, "the variables", VARIABLE, err);
    case VARIABLE: return take_variable(r, t, err);
    case DOMAIN_SIZE: return take_domain(r, t, err);
    case SIZE: return take_size(r, t, err);
    case LABEL: return take_label_name(r, t, err);
    case FUNCTIONS: return take_functions(r, t, err);
    case FUNCTIONS_OPEN: return expect_opening(r, t, "the functions", FUNCTION, err);
    case FUNCTION: return take_function(r, t, err);
    case FUNCTION_OPENS: return expect_opening(r, t, "function %lld", SCOPE, err);
    case SCOPE: return skip_keyword(r, t, "scope", SCOPE_OPENS);
    case SCOPE_OPENS: return expect_opening(r, t, "the scope of function %lld", SCOPE_VARIABLE, err);
    case SCOPE_VARIABLE: return take_scope(r, t, err);
    case BODY: return take_body(r, t, err);
    case DEFAULT:
        r->has_default = 1;
        r->now = COSTS;
        return take_cost(r, t, "the default cost of function %lld", &r->default_cost, err);
    case COSTS: return take_costs(r, t, err);
    case COSTS_THEMSELVES: return take_costs_themselves(r, t, err);
    case LISTED: return take_listed(r, t, err);
    case TUPLES: return take_tuple(r, t, err);
    case COSTS_ENDED: return take_costs_ended(r, t, err);
    case TYPE: return take_type(r, t, err);
    case PARAMETERS:
        r->again = !is_word(t, "params") && !is_word(t, "parameters");
        r->now = PARAMETERS_OPEN;
        return FGI_OK;
    case PARAMETERS_OPEN: return expect_opening(r, t, "the parameters of function %lld", PARAMETER, err);
    case PARAMETER: return take_parameter(r, t, err);
    case PARAMETERS_CLOSE: return take_parameters_close(r, t, err);
    case FUNCTION_CLOSES: return take_function_close(r, t, err);
    case NETWORK_CLOSES: return expect_closing(r, t, EXTRA, DONE, err);
    case DONE: return t->kind == FGI_END ? FGI_OK : fail_at(r, err, t, "%s", EXTRA);
    }
    return FGI_OK;
}

static fgi_rc take(fgi_relaxed_json *json, const fgi_token *t, fgi_error *err) {
    fgi_cfn *r = (fgi_cfn *)json;
    fgi_rc rc;
    do {
        r->again = 0;
        rc = take_one(r, t, err);
    } while (!rc && r->again);
    return rc;
}

/* ---- the reader --------------------------------------------------------------------------------------------- */

static int64_t index_of_function(const fgi_words *w) {
    const fgi_cfn *r = (const fgi_cfn *)w; /* which begins with its tokens, and those with their words */
    return r->now >= FUNCTION && r->now < DONE ? this_function(r) : -1;
}

static const fgi_words_ops OPS = {0, "a .cfn file", NULL, NULL, index_of_function};

fgi_rc fgi_cfn_create(int64_t most_variables, double allowed, double most, fgi_cfn **out, fgi_error *err) {
    fgi_cfn *r = fgi_calloc(1, sizeof *r);
    if (r) r->dims = fgi_alloc(most_variables, sizeof *r->dims);
    if (!r || !r->dims) {
        fgi_cfn_free(r);
        return fgi_no_memory(err);
    }
    r->json.words.ops = &OPS;
    r->json.words.line = 1;
    r->json.take = take;
    r->json.take_many = take_many;
    r->most_variables = most_variables;
    r->allowed = allowed;
    r->most = most;
    *out = r;
    return FGI_OK;
}

fgi_rc fgi_cfn_feed(fgi_cfn *r, const char *text, int64_t n, fgi_error *err) {
    return fgi_relaxed_json_feed(&r->json, text, n, err);
}

fgi_rc fgi_cfn_finish(fgi_cfn *r, fgi_model **out, int64_t *given, double *cutoff, fgi_error *err) {
    fgi_rc rc = fgi_relaxed_json_finish(&r->json, err);
    if (rc || (rc = fgi_cfn_find_functions(r, err))) return rc;
    r->json.words.failed = 1; /* nothing can be fed any more */
    *given = r->factors.n;
    if ((rc = fgi_cfn_build(r, cutoff, err))) return rc;
    return fgi_collected_finish(&r->c, out, err);
}

int64_t fgi_cfn_names(const fgi_cfn *r, const char **text, int64_t *begin, int32_t *owner, int32_t *value) {
    *text = r->names.text.at;
    return fgi_names_list(&r->names, begin, owner, value);
}

double fgi_cfn_refused(const fgi_cfn *r, int *listed) {
    *listed = r->refused_listed;
    return r->refused;
}

int64_t fgi_cfn_held(const fgi_cfn *r) {
    return fgi_collected_held(&r->c) + fgi_names_held(&r->names) + r->json.text.capacity + r->name.capacity +
        4 * (r->vars.capacity + r->table_dims.capacity + r->scopes.capacity) + r->shared_names.capacity +
        (int64_t)sizeof(function) * r->functions.capacity + (int64_t)sizeof(factor) * r->factors.capacity;
}

void fgi_cfn_free(fgi_cfn *r) {
    if (!r) return;
    fgi_array *all[] = {
        &r->json.text, &r->name, &r->vars, &r->functions, &r->table_dims, &r->factors, &r->scopes, &r->shared_names};
    for (size_t k = 0; k < sizeof all / sizeof all[0]; k++) free(all[k]->at);
    fgi_names_clear(&r->names);
    fgi_collected_clear(&r->c);
    free(r->dims);
    free(r);
}
