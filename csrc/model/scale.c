/* model/scale.c - the magnitudes of a model: its unit, sums that could overflow, and the same model in another unit. */
#include <string.h>
#include "base/util.h"
#include "model/model.h"

/* ---- the unit ----------------------------------------------------------------------------------------------- */

/* Has the factor two states? Implicit tables fit any label counts, one among them. */
static int has_choice(const fgi_structure *s, int64_t f) {
    const int32_t *vars = fgi_factor_vars(s, f);
    return s->table_kind[s->factor_table[f]] == FGI_DENSE || s->cards[vars[0]] > 1 || s->cards[vars[1]] > 1;
}

double fgi_model_unit(const fgi_model *m) {
    const fgi_structure *s = m->s;
    double unit = INFINITY;
    for (int64_t i = 0; i < s->n_vars; i++) {
        const double *u = fgi_unary(m, i);
        double best = -INFINITY, second = -INFINITY;
        for (int32_t a = 0; a < s->cards[i]; a++) {
            if (u[a] > best) {
                second = best;
                best = u[a];
            } else if (u[a] > second && u[a] < best) {
                second = u[a];
            }
        }
        if (second > -INFINITY) unit = fgi_smaller(unit, best - second);
    }
    for (int64_t f = 0; f < s->n_factors; f++) {
        const fgi_table_facts *facts = &m->t->facts[s->factor_table[f]];
        if (facts->second == -INFINITY || !has_choice(s, f)) continue;
        const double w = fgi_factor_weight(s, f), step = w * facts->max - w * facts->second;
        if (step > 0) unit = fgi_smaller(unit, step);
    }
    return unit < INFINITY ? unit : 0;
}

/* ---- sums --------------------------------------------------------------------------------------------------- */

static double unary_magnitude(const fgi_model *m, int64_t i) {
    double largest = 0;
    for (int32_t a = 0; a < m->s->cards[i]; a++)
        if (fgi_unary(m, i)[a] > -INFINITY) largest = fgi_larger(largest, fabs(fgi_unary(m, i)[a]));
    return largest;
}

static double factor_magnitude(const fgi_model *m, int64_t f) {
    const fgi_table_facts *facts = &m->t->facts[m->s->factor_table[f]];
    if (facts->max == -INFINITY) return 0;
    return fgi_factor_weight(m->s, f) * fgi_larger(fabs(facts->max), fabs(facts->min_finite));
}

static double constant_magnitude(const fgi_model *m) {
    return m->s->constant > -INFINITY ? fabs(m->s->constant) : 0; /* forbidden: nothing is ever computed */
}

/* A quick look: is every magnitude within the window? Then there is nothing to do, as for nearly all models. */
static double largest_of(const fgi_model *m) {
    double largest = constant_magnitude(m);
    for (int64_t k = 0; k < m->s->unary_begin[m->s->n_vars]; k++) {
        const double size = fabs(m->u->values[k]);
        if (size > largest && size < INFINITY) largest = size;
    }
    for (int64_t f = 0; f < m->s->n_factors; f++) largest = fgi_larger(largest, factor_magnitude(m, f));
    return largest;
}

/* Do the scores of a factor lose digits because they are subnormal? Then they are others in another unit. */
static int underflows(const fgi_model *m, int64_t f) {
    const fgi_view v = fgi_factor_view(m, f);
    const int64_t n = v.kind == FGI_DENSE ? fgi_view_states(m, &v) : (v.rows > v.cols ? v.rows : v.cols);
    for (int64_t k = 0; k < n; k++) {
        const double entry = v.kind == FGI_DENSE ? v.values[k] : fgi_implicit_at(v.kind, v.p0, v.p1, (int32_t)k, 0);
        const double score = v.weight * entry;
        if (fabs(score) < 0x1p-1022 && (v.kind == FGI_ABSDIFF || v.kind == FGI_SQDIFF) && v.p0 > 0 && k > 0) return 1;
        if (fabs(score) < 0x1p-1022 && v.weight * (entry * 0x1p600) != score * 0x1p600) return 1;
    }
    return 0;
}

static fgi_rc check_products(const fgi_model *m, fgi_error *err) {
    for (int64_t f = 0; f < m->s->n_factors; f++)
        if (underflows(m, f))
            return fgi_fail(err, FGI_BAD_MODEL, f,
                "factor %lld: its weighted scores underflow; multiply all scores by a constant", (long long)f);
    return FGI_OK;
}

fgi_rc fgi_model_check_sums(const fgi_model *m, fgi_error *err) {
    double sum = constant_magnitude(m);
    const char *advice = "could overflow; divide all scores by a constant, or use -inf for what is forbidden";
    for (int64_t i = 0; i < m->s->n_vars; i++)
        if (!((sum += unary_magnitude(m, i)) < INFINITY))
            return fgi_fail(err, FGI_BAD_MODEL, i, "variable %lld: with its scores, sums %s", (long long)i, advice);
    for (int64_t f = 0; f < m->s->n_factors; f++)
        if (!((sum += factor_magnitude(m, f)) < INFINITY))
            return fgi_fail(err, FGI_BAD_MODEL, f, "factor %lld: with its scores, sums %s", (long long)f, advice);
    return largest_of(m) < 0x1p-128 ? check_products(m, err) : FGI_OK;
}

/* ---- another unit ------------------------------------------------------------------------------------------- */

/* The exponents of the largest score and of the smallest non-zero weight, unary score and constant. */
typedef struct extent {
    int high, low;
} extent;

static void include_score(extent *e, double x) {
    if (x == 0 || x == -INFINITY) return;
    const int exponent = ilogb(x);
    if (exponent > e->high) e->high = exponent;
    if (exponent < e->low) e->low = exponent;
}

static extent extent_of(const fgi_model *m) {
    const fgi_structure *s = m->s;
    extent e = {INT32_MIN, INT32_MAX};
    include_score(&e, s->constant);
    for (int64_t k = 0; k < s->unary_begin[s->n_vars]; k++) include_score(&e, m->u->values[k]);
    for (int64_t f = 0; f < s->n_factors; f++) {
        const double size = factor_magnitude(m, f);
        if (size == 0) continue;
        const int high = ilogb(size), weight = ilogb(fgi_factor_weight(s, f));
        if (high > e.high) e.high = high;
        if (weight < e.low) e.low = weight;
    }
    return e;
}

fgi_model *fgi_model_normalised(const fgi_model *m, int *exponent) {
    enum { LEAST = -1000, MOST = 1000 }; /* exponents of weights and unary scores */
    const fgi_structure *s = m->s;
    const double largest = largest_of(m);
    *exponent = 0;
    if (largest == 0 || (largest >= 0x1p-128 && largest <= 0x1p128)) return fgi_model_snapshot(m);
    const extent e = extent_of(m);
    /* Nothing may be lost: the least weight or score stays a normal number, and the largest weight a finite one. */
    int shift = e.high;
    if (e.low < INT32_MAX && e.low - shift < LEAST) shift = e.low - LEAST > 0 ? e.low - LEAST : 0;
    if (s->n_factors && ilogb(s->max_weight) - shift > MOST) shift = ilogb(s->max_weight) - MOST;
    if (abs(e.high - shift) >= abs(e.high)) return fgi_model_snapshot(m); /* no help */
    const int64_t n_unary = s->unary_begin[s->n_vars];
    double *unary = fgi_alloc(n_unary, sizeof *unary), *weight = fgi_alloc(s->n_factors, sizeof *weight);
    fgi_model *scaled = NULL;
    if (unary && weight) {
        for (int64_t k = 0; k < n_unary; k++) unary[k] = ldexp(m->u->values[k], -shift);
        for (int64_t f = 0; f < s->n_factors; f++) weight[f] = ldexp(fgi_factor_weight(s, f), -shift);
        scaled = fgi_model_reweighted(m, weight, unary, ldexp(s->constant, -shift));
        *exponent = shift;
    }
    free(unary);
    free(weight);
    return scaled;
}

double fgi_model_attraction(const fgi_model *m) {
    enum { LOOKED_AT = 100000 };
    const fgi_structure *st = m->s;
    const int64_t step = st->n_factors / LOOKED_AT + 1;
    int64_t attracting = 0, n = 0;
    for (int64_t f = 0; f < st->n_factors; f += step, n++) {
        const fgi_view v = fgi_factor_view(m, f);
        if (v.arity != 2 || v.rows != 2 || v.cols != 2) continue;
        const double same = fgi_view_at2(&v, 1, 1) + fgi_view_at2(&v, 0, 0);
        attracting += same > fgi_view_at2(&v, 0, 1) + fgi_view_at2(&v, 1, 0);
    }
    return n ? (double)attracting / (double)n : 0;
}
