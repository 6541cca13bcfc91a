/* model/lattice.c - see model/lattice.h. */
#include "model/lattice.h"
#include "base/util.h"

enum { MOST_TERMS = 20000000 };        /* a look at more takes a tenth of a second and longer, without a clock */
static const double LEAST_STEP = 1e-5; /* share of the largest cost: finer steps do not help */
static const double SAME = 1e-7;       /* share of a step: closer than this is the same */
/* Share of a step: a search, too, may not notice differences below it, which are rounding. */
static const double MOST_ERROR = 5e-10;

/* Costs are maximum - score >= 0. The greatest common step so far; 0: none seen yet, negative: there is none. */
typedef struct divisor {
    double step, largest;
} divisor;

static void divide(divisor *d, double cost) {
    if (cost > d->largest) d->largest = cost;
    if (cost == INFINITY) d->step = -1; /* a difference that overflows without its weight */
    if (cost <= SAME * d->step || cost == 0 || d->step < 0) return;
    double a = d->step, b = cost; /* Euclid's algorithm */
    if (a > 0 && fabs(b - a * rint(b / a)) <= SAME * a) return;
    while (a > SAME * d->largest) {
        double rest = fabs(b - a * rint(b / a));
        b = a;
        a = rest;
    }
    d->step = b < LEAST_STEP * d->largest ? -1 : b;
}

static int divide_all(divisor *d, const double *v, int64_t n, double weight) {
    const double best = fgi_max_of(v, n);
    for (int64_t k = 0; k < n && d->step >= 0; k++)
        if (v[k] > -INFINITY) divide(d, weight * (best - v[k]));
    return d->step >= 0;
}

/* What the product with a weight is off by; near subnormal numbers that need not be a number itself. */
static double product_error(double weight, double b) {
    const double product = weight * b;
    const int may_be_lost = weight != 1 && b != 0 && fabs(product) < 0x1p-960;
    return fabs(fma(weight, b, -product)) + (may_be_lost ? 0x1p-1074 : 0);
}

/* How far the cost of a score is from a whole number of steps, all rounding included. */
static double off_step(double step, double best, double score, double weight) {
    const double difference = best - score, back = best - difference;
    const double lost = (best - (difference + back)) + (back - score); /* exactly what the difference lacks */
    const double cost = weight * difference, steps = rint(cost / step);
    return fabs(fma(-step, steps, cost)) + weight * fabs(lost) + product_error(weight, difference) +
        product_error(weight, best) + product_error(weight, score);
}

/* The largest distance of a cost from a whole number of steps. */
static double deviation(double step, const double *v, int64_t n, double weight) {
    const double best = fgi_max_of(v, n);
    double most = 0;
    for (int64_t k = 0; k < n; k++)
        if (v[k] > -INFINITY) most = fgi_larger(most, off_step(step, best, v[k], weight));
    return most;
}

/* The values of a factor without its weight. Those of an implicit table depend on the distance of the labels alone. */
static const double *values_of(const fgi_model *m, const fgi_view *v, double *scratch, int64_t *n) {
    *n = fgi_view_states(m, v);
    if (v->kind == FGI_DENSE) return v->values;
    *n = v->rows > v->cols ? v->rows : v->cols;
    for (int32_t a = 0; a < *n; a++) scratch[a] = fgi_implicit_at(v->kind, v->p0, v->p1, a, 0);
    return scratch;
}

/* What is known of a dense table, which many factors may share. */
typedef struct table_steps {
    divisor costs; /* without weights */
    int is_known;
    double weight, deviation; /* about the factor seen last; weight 0: none yet */
} table_steps;

static int divide_factor(divisor *d, const fgi_model *m, const fgi_view *v, table_steps *tables, double *scratch) {
    int64_t n;
    const double *values = values_of(m, v, scratch, &n);
    if (v->kind != FGI_DENSE) return divide_all(d, values, n, v->weight);
    table_steps *t = &tables[v->table];
    if (!t->is_known) divide_all(&t->costs, values, n, 1);
    t->is_known = 1;
    if (t->costs.step < 0) return 0;
    d->largest = fgi_larger(d->largest, v->weight * t->costs.largest);
    divide(d, v->weight * t->costs.step);
    return d->step >= 0;
}

static double factor_deviation(
    double step, const fgi_model *m, const fgi_view *v, table_steps *tables, double *scratch) {
    int64_t n;
    const double *values = values_of(m, v, scratch, &n);
    if (v->kind != FGI_DENSE) return deviation(step, values, n, v->weight);
    table_steps *t = &tables[v->table];
    if (t->weight != v->weight) t->deviation = deviation(step, values, n, v->weight);
    t->weight = v->weight;
    return t->deviation;
}

/* The largest score without its weight. Implicit tables fit any label counts, of which a factor may have one. */
static double factor_most(const fgi_model *m, const fgi_view *v, double *scratch) {
    if (v->kind == FGI_DENSE) return m->t->facts[v->table].max;
    int64_t n;
    const double *values = values_of(m, v, scratch, &n);
    return fgi_max_of(values, n);
}

static fgi_lattice find(const fgi_model *m, table_steps *tables, double *scratch) {
    const fgi_structure *s = m->s;
    const fgi_lattice none = {0, 0, 0};
    divisor d = {0, 0};
    for (int64_t i = 0; i < s->n_vars; i++)
        if (!divide_all(&d, fgi_unary(m, i), s->cards[i], 1)) return none;
    for (int64_t f = 0; f < s->n_factors; f++) {
        const fgi_view v = fgi_factor_view(m, f);
        if (!divide_factor(&d, m, &v, tables, scratch)) return none;
    }
    if (d.step == 0) return none;                             /* all constant */
    const double step = d.largest / rint(d.largest / d.step); /* as exact as the largest cost */
    fgi_sum origin = {0};
    double error = 0, magnitude = fabs(s->constant);
    int exact = fgi_sum_exactly(&origin, s->constant);
    for (int64_t i = 0; i < s->n_vars; i++) {
        const double most = fgi_max_of(fgi_unary(m, i), s->cards[i]);
        exact &= fgi_sum_exactly(&origin, most);
        magnitude += fabs(most);
        error += deviation(step, fgi_unary(m, i), s->cards[i], 1);
    }
    for (int64_t f = 0; f < s->n_factors; f++) {
        const fgi_view v = fgi_factor_view(m, f);
        const double most = factor_most(m, &v, scratch), product = v.weight * most;
        exact &= fgi_sum_exactly(&origin, product) & (fma(v.weight, most, -product) == 0);
        magnitude += fabs(product);
        error += factor_deviation(step, m, &v, tables, scratch);
    }
    const double value = fgi_sum_value(&origin);
    if (!exact) /* the origin is rounded, too */
        error += 0x1p-52 * fabs(value) + fgi_sum_error(s->n_vars + s->n_factors + 1, magnitude);
    return isfinite(value) && error < MOST_ERROR * step ? (fgi_lattice){step, value, error} : none;
}

/* What `find` looks at, at most. */
static int64_t terms(const fgi_structure *s) {
    return s->unary_begin[s->n_vars] + s->n_factors * (s->params ? s->max_card : 1) + s->values_begin[s->n_tables];
}

fgi_lattice fgi_lattice_find(const fgi_model *m) {
    if (terms(m->s) > MOST_TERMS) return (fgi_lattice){0, 0, 0};
    double *scratch = fgi_alloc(m->s->max_card, sizeof(double));
    table_steps *tables = fgi_calloc(m->s->n_tables, sizeof *tables);
    const fgi_lattice found = scratch && tables ? find(m, tables, scratch) : (fgi_lattice){0, 0, 0}; /* else no help */
    free(scratch);
    free(tables);
    return found;
}

/* Rounding of scores and bounds of this size, and of the tables. */
static double margin(const fgi_lattice *l, double value) { return 2 * l->error + 1e-6 * l->step + 1e-9 * fabs(value); }

/* Is the score one that can occur? A cutoff need not be. */
static int is_on(const fgi_lattice *l, double score) {
    const double steps = (l->origin - score) / l->step;
    return l->step > 0 && fabs(steps - rint(steps)) * l->step <= margin(l, score);
}

double fgi_lattice_next(const fgi_lattice *l, double score) {
    return is_on(l, score) ? fgi_larger(score, score + l->step - margin(l, score)) : score;
}

double fgi_lattice_least(const fgi_lattice *l, double score) {
    if (!is_on(l, score)) return score;
    return fgi_larger(score, score + l->step - 2 * l->error - 1e-14 * (fabs(l->origin) + fabs(score)));
}

/* The score so many steps below the origin; whether that is exact. */
static int is_exactly(const fgi_lattice *l, double steps, double *score) {
    const double product = l->step * steps;
    fgi_sum sum = {0};
    int exact = fma(l->step, steps, -product) == 0;
    exact &= fgi_sum_exactly(&sum, l->origin) & fgi_sum_exactly(&sum, -product);
    *score = fgi_sum_value(&sum);
    return exact;
}

int fgi_lattice_contains(const fgi_lattice *l, double number) {
    double score; /* that is rounded to the number is not enough: a bound that says it would be below it */
    if (l->step == 0 || l->error > 0) return 0;
    return is_exactly(l, rint((l->origin - number) / l->step), &score) && score == number;
}

double fgi_lattice_exact_floor(const fgi_lattice *l, double bound) {
    if (l->step == 0 || l->error > 0 || !isfinite(bound)) return bound;
    const double steps = ceil((l->origin - bound) / l->step); /* rounded: may be one off */
    double score, above;
    for (int k = 0; k < 2; k++)
        if (is_exactly(l, steps + k, &score) && score <= bound)
            return is_exactly(l, steps + k - 1, &above) && above > bound ? score : bound;
    return bound;
}

double fgi_model_floor(const fgi_model *m, double bound) {
    const fgi_lattice lattice = fgi_lattice_find(m);
    return fgi_lattice_exact_floor(&lattice, bound);
}

double fgi_lattice_floor(const fgi_lattice *l, double bound) {
    if (l->step == 0 || !isfinite(bound) || margin(l, bound) > 0.5 * l->step) return bound;
    const double steps = ceil((l->origin - bound - margin(l, bound)) / l->step);
    const double rounding = 4e-16 * (fabs(l->origin) + l->step * fabs(steps));
    return fgi_smaller(bound, l->origin - l->step * steps + l->error + rounding);
}
