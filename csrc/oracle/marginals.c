/* oracle/marginals.c - see oracle/marginals.h. */
#include "oracle/internal.h"
#include "base/array.h"
#include "model/marginal.h"

/* Messages count for what they take off; products add. */
static void negate(const double *delta, int32_t n, double *out) {
    for (int32_t a = 0; a < n; a++) out[a] = -delta[a];
}

int64_t fgi_pair_marginals(
    const fgi_view *v, int32_t variable, const double *delta, fgi_oracle_scratch *w, double *out) {
    const int32_t other = 1 - variable;
    double *minus = fgi_oracle_negated(w, other);
    negate(delta, other ? v->cols : v->rows, minus);
    fgi_view_maxplus(fgi_kernels_get(), v, other, minus, out, w->implicit);
    return fgi_pair_work(v);
}

int64_t fgi_factor_marginals(const fgi_view *v, const int32_t *cards, int32_t variable, const double *const *delta,
    fgi_oracle_scratch *w, double *out) {
    int64_t states = 1;
    if (v->arity == 2) return fgi_pair_marginals(v, variable, delta[1 - variable], w, out);
    for (int32_t q = 0; q < v->arity; q++) {
        double *minus = fgi_oracle_negated(w, q);
        if (q != variable) negate(delta[q], cards[q], minus);
        w->plus[q] = minus;
        states *= cards[q];
    }
    fgi_table_marginal(
        fgi_kernels_get(), v->values, v->weight, v->arity, w->position, cards, variable, w->plus, out, w->sums);
    return states;
}

int fgi_oracle_reserve_sums(fgi_oracle_scratch *w, int64_t n) {
    return n >= 0 && (n <= w->sums_capacity || fgi_grow(&w->sums, &w->sums_capacity, n, sizeof *w->sums));
}

/* ---- sliced tables ----------------------------------------------------------------------------------------------- */

/* The side of the table, as it is stored, that the messages belong to. */
static int message_side(const fgi_loose_marginals *m) { return (1 - m->variable) ^ m->view->transposed; }

/* The messages with the other sign. */
static const double *negated(fgi_loose_marginals *m) {
    double *minus = fgi_oracle_negated(m->scratch, 1 - m->variable);
    if (!m->is_negated) negate(m->delta, m->variable ? m->view->rows : m->view->cols, minus);
    m->is_negated = 1;
    return minus;
}

double fgi_loose_bounds(fgi_loose_marginals *m, int32_t rows, double *out) {
    return fgi_sliced_bounds(m->slices, fgi_kernels_get(), m->view->weight, message_side(m), negated(m), rows, out,
        m->peaks, m->scratch->labels, &m->touched);
}

int fgi_loose_is_open(const fgi_loose_marginals *m, double cap, int32_t label, double bound) {
    return fgi_sliced_is_open(m->slices, m->view->weight, message_side(m), cap, label, bound);
}

double fgi_loose_exact(fgi_loose_marginals *m, int32_t label) {
    const fgi_kernels *k = fgi_kernels_get();
    const double w = m->view->weight;
    const int side = message_side(m);
    double value;
    if (fgi_sliced_search(m->slices, k, w, side, m->delta, m->peaks, label, &value, &m->touched)) return value;
    return fgi_sliced_value(m->slices, k, w, side, negated(m), label, &m->touched);
}
