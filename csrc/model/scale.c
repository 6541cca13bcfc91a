/* model/scale.c - the magnitudes of a model: its unit, sums that could overflow, and the same model in another unit. */
#include <stdio.h>
#include <string.h>
#include "base/kernels.h"
#include "base/pool.h"
#include "base/util.h"
#include "model/lean.h"
#include "model/model.h"

/* Scores within these are as good as any: nothing overflows when they are squared. */
static const double LEAST_SCALE = 0x1p-128;  /* the least of them */
static const double LARGEST_SCALE = 0x1p128; /* the largest of them */

/* ---- the unit ----------------------------------------------------------------------------------------------- */

/* Has the factor two states? Implicit tables fit any label counts, one among them. */
static int has_choice(const fgi_structure *s, int64_t f) {
    const int32_t *vars = fgi_factor_vars(s, f);
    if (s->min_card > 1 || s->table_kind[s->factor_table[f]] == FGI_DENSE) return 1;
    return s->cards[vars[0]] > 1 || s->cards[vars[1]] > 1;
}

static double unit_of(fgi_extremes row) { return row.second > -INFINITY ? row.best - row.second : INFINITY; }

static fgi_extremes unary_extremes(const fgi_model *m, int64_t i) {
    return fgi_extremes_of(fgi_unary(m, i), m->s->cards[i]);
}

/* Where the two largest entries are the same once they are weighted: the next weighted score that is not. */
static double next_distinct(const fgi_model *m, int64_t f, double best) {
    const fgi_view v = fgi_factor_view(m, f);
    const int64_t n = v.kind == FGI_DENSE ? fgi_view_states(m, &v) : (v.rows > v.cols ? v.rows : v.cols);
    double next = -INFINITY;
    for (int64_t k = 0; k < n; k++) {
        const double entry = v.kind == FGI_DENSE ? v.values[k] : fgi_implicit_at(v.kind, v.p0, v.p1, (int32_t)k, 0);
        if (v.weight * entry < best) next = fgi_larger(next, v.weight * entry);
    }
    return next;
}

static double factor_unit(const fgi_model *m, int64_t f) {
    const fgi_table_facts *facts = &m->t->facts[m->s->factor_table[f]];
    if (facts->second == -INFINITY || !has_choice(m->s, f)) return INFINITY;
    const double w = fgi_factor_weight(m->s, f), best = w * facts->max, step = best - w * facts->second;
    return step > 0 ? step : best - next_distinct(m, f, best); /* INFINITY, if there is none */
}

static double unit_of_terms(const void *model, int64_t begin, int64_t end) {
    const fgi_model *m = model;
    double unit = INFINITY;
    int64_t k = begin;
    for (; k < end && k < m->s->n_vars; k++) unit = fgi_smaller(unit, unit_of(unary_extremes(m, k)));
    for (; k < end; k++) unit = fgi_smaller(unit, factor_unit(m, k - m->s->n_vars));
    return unit;
}

/* Models are made in memory of our own: what is only remembered may be written to one that is const for its user. */
static double remember(const _Atomic double *at, double value) {
    atomic_store((_Atomic double *)at, value);
    return value;
}

double fgi_model_unit_by(const fgi_model *m, fgi_pool *pool) {
    double unit = atomic_load(&m->unit);
    if (unit > 0) return unit;
    unit = fgi_pool_fold(pool, m->s->n_vars + m->s->n_factors, FGI_TERMS, unit_of_terms, m, fgi_smaller, INFINITY);
    return unit < INFINITY ? remember(&m->unit, unit) : 0;
}

double fgi_model_unit(const fgi_model *m) { return fgi_model_unit_by(m, NULL); }

double fgi_model_term_unit(const fgi_model *m, int64_t term) { return unit_of_terms(m, term, term + 1); }

/* ---- sums --------------------------------------------------------------------------------------------------- */

static double factor_magnitude(const fgi_model *m, int64_t f) {
    const fgi_table_facts *facts = &m->t->facts[m->s->factor_table[f]];
    if (facts->max == -INFINITY) return 0;
    return fgi_factor_weight(m->s, f) * fgi_larger(fabs(facts->max), fabs(facts->min_finite));
}

static double constant_magnitude(const fgi_model *m) {
    return m->s->constant > -INFINITY ? fabs(m->s->constant) : 0; /* forbidden: nothing is ever computed */
}

static double largest_term(const void *model, int64_t begin, int64_t end) {
    const fgi_model *m = model;
    const int64_t n_vars = m->s->n_vars;
    double largest = 0;
    if (begin < n_vars) {
        const int64_t from = m->s->unary_begin[begin], to = m->s->unary_begin[end < n_vars ? end : n_vars];
        largest = fgi_extremes_of(m->u->values + from, to - from).largest;
    }
    for (int64_t k = begin < n_vars ? n_vars : begin; k < end; k++)
        largest = fgi_larger(largest, factor_magnitude(m, k - n_vars));
    return largest;
}

/* The largest magnitude: within the two scales above, as in nearly all models, there is nothing to do. */
static double largest_of(const fgi_model *m, fgi_pool *pool) {
    return fgi_pool_fold(
        pool, m->s->n_vars + m->s->n_factors, FGI_TERMS, largest_term, m, fgi_larger, constant_magnitude(m));
}

/* Does the product lose digits because it is subnormal? */
static int loses_digits(double weight, double entry) {
    const double score = weight * entry;
    if (entry == 0 || fabs(score) >= 0x1p-1022) return 0;
    const int w = ilogb(weight), e = ilogb(entry);
    return ldexp(ldexp(score, -w), -e) != ldexp(weight, -w) * ldexp(entry, -e);
}

/* Do the scores of a factor lose digits? Then they are others in another unit. */
static int underflows(const fgi_model *m, int64_t f) {
    const fgi_view v = fgi_factor_view(m, f);
    const int64_t n = v.kind == FGI_DENSE ? fgi_view_states(m, &v) : (v.rows > v.cols ? v.rows : v.cols);
    for (int64_t k = 0; k < n; k++) {
        const double entry = v.kind == FGI_DENSE ? v.values[k] : fgi_implicit_at(v.kind, v.p0, v.p1, (int32_t)k, 0);
        const int is_product = (v.kind == FGI_ABSDIFF || v.kind == FGI_SQDIFF) && v.p0 > 0 && k > 0; /* may have lost */
        if (is_product && fabs(v.weight * entry) < 0x1p-1022) return 1;
        if (loses_digits(v.weight, entry)) return 1;
    }
    return 0;
}

fgi_factor_name fgi_factor_named(const fgi_structure *s, int64_t f) {
    enum { MOST = 4 }; /* variables that are listed */
    const int32_t *vars = fgi_factor_vars(s, f), arity = fgi_factor_arity(s, f);
    fgi_factor_name name;
    int n = snprintf(name.text, sizeof name.text, "factor over variables");
    for (int32_t k = 0; k < arity && k < MOST; k++)
        n += snprintf(name.text + n, sizeof name.text - (size_t)n, "%s %d", k ? "," : "", vars[k]);
    if (arity > MOST) snprintf(name.text + n, sizeof name.text - (size_t)n, ", ...");
    return name;
}

static fgi_rc refuse_underflow(const fgi_model *m, int64_t f, fgi_error *err) {
    return fgi_fail(err, FGI_BAD_MODEL, f, "%s: its weighted scores underflow; multiply all scores by a constant",
        fgi_factor_named(m->s, f).text);
}

static fgi_rc check_products(const fgi_model *m, fgi_error *err) {
    for (int64_t f = 0; f < m->s->n_factors; f++)
        if (underflows(m, f)) return refuse_underflow(m, f, err);
    return FGI_OK;
}

/* ---- how far scores are apart ------------------------------------------------------------------------------- */

enum { LARGEST_SPAN = 1900 }; /* exponents: what is left of a double's range is for sums and products of scores */

/* The exponents of the largest score and of the smallest non-zero weight or score. */
typedef struct extent {
    int high, low;
    int64_t low_variable, low_factor; /* where the smallest is; -1: not there */
} extent;

/* Smallest non-zero magnitude of a table, INFINITY if there is none. */
static double least_entry(const fgi_model *m, int64_t t) {
    const fgi_structure *s = m->s;
    const double *v = m->t->values + s->values_begin[t], *p = s->params ? s->params + 2 * t : NULL;
    double least = INFINITY;
    if (s->table_kind[t] == FGI_DENSE) {
        for (int64_t k = 0; k < s->values_begin[t + 1] - s->values_begin[t]; k++)
            if (v[k] != 0 && fabs(v[k]) < least) least = fabs(v[k]);
    } else if (s->table_kind[t] == FGI_POTTS) {
        for (int k = 0; k < 2; k++)
            if (p[k] != 0 && fabs(p[k]) < least) least = fabs(p[k]);
    } else if (p[0] > 0) { /* p[1] truncates */
        least = p[0] * fgi_smaller(1, p[1]);
    }
    return least;
}

/* The extent of a model with large scores. Products that underflow are refused. */
static fgi_rc find_extent(const fgi_model *m, extent *e, fgi_error *err) {
    const fgi_structure *s = m->s;
    *e = (extent){INT32_MIN, INT32_MAX, -1, -1};
    if (constant_magnitude(m) > 0) e->high = e->low = ilogb(s->constant);
    for (int64_t i = 0; i < s->n_vars; i++)
        for (int32_t a = 0; a < s->cards[i]; a++) {
            const double score = fgi_unary(m, i)[a];
            if (score == 0 || score == -INFINITY) continue;
            const int exponent = ilogb(score);
            if (exponent > e->high) e->high = exponent;
            if (exponent < e->low) *e = (extent){e->high, exponent, i, -1};
        }
    double *least = fgi_alloc(s->n_tables, sizeof *least);
    if (!least) return fgi_no_memory(err);
    for (int64_t t = 0; t < s->n_tables; t++) least[t] = least_entry(m, t);
    fgi_rc rc = FGI_OK;
    for (int64_t f = 0; f < s->n_factors && !rc; f++) {
        const double size = factor_magnitude(m, f), weight = fgi_factor_weight(s, f);
        const double product = weight * least[s->factor_table[f]];
        if (product < 0x1p-1022 && underflows(m, f)) rc = refuse_underflow(m, f, err);
        if (size == 0 || rc) continue;
        /* Products below normal numbers are those of entries that no state reads, such as labels there are none of. */
        const int low = ilogb(fgi_smaller(weight, fgi_larger(product, 0x1p-1022)));
        if (ilogb(size) > e->high) e->high = ilogb(size);
        if (low < e->low) *e = (extent){e->high, low, -1, f};
    }
    free(least);
    return rc;
}

static fgi_rc check_extent(const fgi_model *m, const extent *e, fgi_error *err) {
    if (e->high - e->low <= LARGEST_SPAN || e->low == INT32_MAX) return FGI_OK;
    if (e->low_factor < 0 && e->low_variable < 0)
        return fgi_fail(err, FGI_BAD_MODEL, -1,
            "the constant is 2^%d, and there is a score of 2^%d: too far apart to be added", e->low, e->high);
    const int64_t which = e->low_factor >= 0 ? e->low_factor : e->low_variable;
    fgi_factor_name name;
    if (e->low_factor >= 0) name = fgi_factor_named(m->s, which);
    else snprintf(name.text, sizeof name.text, "variable %lld", (long long)which);
    return fgi_fail(err, FGI_BAD_MODEL, which,
        "%s has a weight or score of 2^%d, and there is one of 2^%d elsewhere: too far apart to be added", name.text,
        e->low, e->high);
}

/* What a potential adds to the span of all sums: its largest minus its smallest score, 0 being one of them. */
static double span(double largest, double smallest) { return fgi_larger(0, largest) - fgi_smaller(0, smallest); }

static double unary_span(const fgi_model *m, int64_t i) {
    double largest = 0, smallest = 0;
    for (int32_t a = 0; a < m->s->cards[i]; a++) {
        const double score = fgi_unary(m, i)[a];
        if (score == -INFINITY) continue;
        largest = fgi_larger(largest, score);
        smallest = fgi_smaller(smallest, score);
    }
    return span(largest, smallest);
}

static double factor_span(const fgi_model *m, int64_t f) {
    const fgi_table_facts *facts = &m->t->facts[m->s->factor_table[f]];
    const double w = fgi_factor_weight(m->s, f);
    return facts->max == -INFINITY ? 0 : span(w * facts->max, w * facts->min_finite);
}

static const char *const OVERFLOW_ADVICE =
    "could overflow; divide all scores by a constant, or use -inf for what is forbidden";

/* Differences of sums, such as units and gaps, must be numbers, too. */
static fgi_rc check_differences(const fgi_model *m, fgi_error *err) {
    double sum = constant_magnitude(m);
    for (int64_t i = 0; i < m->s->n_vars; i++)
        if (!((sum += unary_span(m, i)) < INFINITY))
            return fgi_fail(err, FGI_BAD_MODEL, i, "variable %lld: with its scores, differences of sums %s",
                (long long)i, OVERFLOW_ADVICE);
    for (int64_t f = 0; f < m->s->n_factors; f++)
        if (!((sum += factor_span(m, f)) < INFINITY))
            return fgi_fail(err, FGI_BAD_MODEL, f, "%s: with its scores, differences of sums %s",
                fgi_factor_named(m->s, f).text, OVERFLOW_ADVICE);
    return FGI_OK;
}

/* What is seen on the way is remembered: every solver would look for it, and a pass over the scores of a million pixels
 * with hundreds of labels takes part of a second. */
fgi_rc fgi_model_check_sums(const fgi_model *m, fgi_error *err) {
    double sum = constant_magnitude(m), largest = sum, unit = INFINITY;
    for (int64_t i = 0; i < m->s->n_vars; i++) {
        const fgi_extremes row = unary_extremes(m, i);
        largest = fgi_larger(largest, row.largest);
        unit = fgi_smaller(unit, unit_of(row));
        if (!((sum += row.largest) < INFINITY))
            return fgi_fail(
                err, FGI_BAD_MODEL, i, "variable %lld: with its scores, sums %s", (long long)i, OVERFLOW_ADVICE);
    }
    for (int64_t f = 0; f < m->s->n_factors; f++) {
        const double size = factor_magnitude(m, f);
        largest = fgi_larger(largest, size);
        if (!((sum += size) < INFINITY))
            return fgi_fail(
                err, FGI_BAD_MODEL, f, "%s: with its scores, sums %s", fgi_factor_named(m->s, f).text, OVERFLOW_ADVICE);
    }
    fgi_rc rc = largest < LEAST_SCALE ? check_products(m, err) : FGI_OK;
    if (rc) return rc;
    for (int64_t f = 0; f < m->s->n_factors; f++) unit = fgi_smaller(unit, factor_unit(m, f));
    remember(&m->largest, largest);
    if (unit < INFINITY) remember(&m->unit, unit);
    return FGI_OK;
}

/* ---- another unit ------------------------------------------------------------------------------------------- */

static fgi_rc unchanged(const fgi_model *m, fgi_model **out, fgi_error *err) {
    *out = fgi_model_plain(m);
    return *out ? FGI_OK : fgi_no_memory(err);
}

/* All scores times 2^-shift. */
static fgi_model *shifted(const fgi_model *m, int shift) {
    const fgi_structure *s = m->s;
    const int64_t n_unary = s->unary_begin[s->n_vars];
    double *unary = fgi_alloc(n_unary, sizeof *unary), *weight = fgi_alloc(s->n_factors, sizeof *weight);
    fgi_model *scaled = NULL;
    if (unary && weight) {
        for (int64_t k = 0; k < n_unary; k++) unary[k] = ldexp(m->u->values[k], -shift);
        for (int64_t f = 0; f < s->n_factors; f++) { /* the weight of zeros means nothing, but must stay above 0 */
            weight[f] = ldexp(fgi_factor_weight(s, f), -shift);
            if (weight[f] < 0x1p-1022 && factor_magnitude(m, f) == 0) weight[f] = 0x1p-1022;
        }
        scaled = fgi_model_reweighted(m, weight, unary, ldexp(s->constant, -shift));
    }
    free(unary);
    free(weight);
    return scaled;
}

fgi_rc fgi_model_normalised(const fgi_model *m, fgi_model **out, int *exponent, fgi_error *err) {
    return fgi_model_normalised_by(m, NULL, out, exponent, err);
}

static fgi_rc scaled(const fgi_model *m, double largest, fgi_model **out, int *exponent, fgi_error *err) {
    enum {
        LEAST = -1000, /* exponents that weights and scores may get */
        MOST = 1000    /* the largest one */
    };
    const fgi_structure *s = m->s;
    *exponent = 0;
    if (largest == 0 || (largest >= LEAST_SCALE && largest <= LARGEST_SCALE)) return unchanged(m, out, err);
    extent e;
    fgi_rc rc = find_extent(m, &e, err);
    if (!rc) rc = check_differences(m, err);
    if (!rc) rc = check_extent(m, &e, err);
    if (rc) return rc;
    /* Nothing may be lost: the least weight or score stays a normal number, and the largest weight a finite one. */
    int shift = e.high;
    if (e.low < INT32_MAX && e.low - shift < LEAST) shift = e.low - LEAST > 0 ? e.low - LEAST : 0;
    if (s->n_factors && ilogb(s->max_weight) - shift > MOST) shift = ilogb(s->max_weight) - MOST;
    if (abs(e.high - shift) >= abs(e.high)) return unchanged(m, out, err); /* no help */
    *out = shifted(m, shift);
    *exponent = shift;
    return *out ? FGI_OK : fgi_no_memory(err);
}

fgi_rc fgi_model_normalised_by(const fgi_model *m, fgi_pool *pool, fgi_model **out, int *exponent, fgi_error *err) {
    double largest = atomic_load(&m->largest);
    if (!(largest > 0)) largest = remember(&m->largest, largest_of(m, pool));
    if (!fgi_model_is_wide(m)) return scaled(m, largest, out, exponent, err);
    fgi_model *lean = NULL;
    fgi_rc rc = fgi_model_lean(m, &lean, err);
    if (!rc) rc = scaled(lean, largest, out, exponent, err);
    fgi_model_free(lean);
    return rc;
}
