/* primal/tiers.c - see primal/tiers.h. */
#include "primal/tiers.h"
#include <string.h>
#include "base/util.h"

enum {
    EXPONENTS = 2048, /* exponents of doubles */
    APART = 4,     /* powers of two between two groups: the costs of one are more than eight times those of the other */
    FEW_BELOW = 64 /* one cost in so many at least is below a tier: a few small ones among many are no preferences */
};
static const int64_t MOST_STATES = 4000000; /* some milliseconds */

/* Costs by their exponents. */
typedef struct histogram {
    int64_t count[EXPONENTS];
    double least[EXPONENTS];
} histogram;

static void note(histogram *h, double cost) {
    uint64_t bits;
    if (!(cost > 0 && cost < INFINITY)) return;
    memcpy(&bits, &cost, sizeof bits);
    const int32_t exponent = (int32_t)(bits >> 52);
    if (!h->count[exponent]++ || cost < h->least[exponent]) h->least[exponent] = cost;
}

static double factor_best(const fgi_model *m, int64_t f) {
    return fgi_factor_weight(m->s, f) * m->t->facts[m->s->factor_table[f]].max;
}

static double unary_best(const fgi_model *m, int64_t i) {
    double best = -INFINITY;
    for (int32_t a = 0; a < m->s->cards[i]; a++) best = fgi_larger(best, fgi_unary(m, i)[a]);
    return best;
}

static void note_factor(histogram *h, const fgi_model *m, int64_t f) {
    const fgi_view v = fgi_factor_view(m, f);
    const double best = factor_best(m, f);
    if (v.arity == 2)
        for (int32_t a = 0; a < v.rows; a++)
            for (int32_t b = 0; b < v.cols; b++) note(h, best - fgi_view_at2(&v, a, b));
    else
        for (int64_t k = fgi_view_states(m, &v) - 1; k >= 0; k--) note(h, best - v.weight * v.values[k]);
}

static int32_t tiers_of(const histogram *h, double *least) {
    int64_t below = 0;
    double found[EXPONENTS / APART];
    int32_t n = 0, last = -APART;
    for (int32_t e = 0; e < EXPONENTS; e++) {
        if (!h->count[e]) continue;
        if (e - last >= APART) {
            int64_t from = 0;
            for (int32_t k = e; k < EXPONENTS; k++) from += h->count[k];
            if (below > 0 && below >= (below + from) / FEW_BELOW) found[n++] = h->least[e];
        }
        below += h->count[e];
        last = e;
    }
    const int32_t taken = n < FGI_MOST_TIERS ? n : FGI_MOST_TIERS;
    for (int32_t k = 0; k < taken; k++) least[k] = found[n - 1 - k];
    return taken;
}

int32_t fgi_tiers_find(const fgi_model *m, double least[FGI_MOST_TIERS]) {
    const fgi_structure *s = m->s;
    int64_t states = s->unary_begin[s->n_vars];
    for (int64_t f = 0; f < s->n_factors && states <= MOST_STATES; f++) {
        const fgi_view v = fgi_factor_view(m, f);
        states += fgi_view_states(m, &v);
    }
    histogram *h = states <= MOST_STATES ? fgi_calloc(1, sizeof *h) : NULL;
    if (!h) return 0;
    for (int64_t i = 0; i < s->n_vars; i++) {
        const double best = unary_best(m, i);
        for (int32_t a = 0; a < s->cards[i]; a++) note(h, best - fgi_unary(m, i)[a]);
    }
    for (int64_t f = 0; f < s->n_factors; f++) note_factor(h, m, f);
    const int32_t n = tiers_of(h, least);
    free(h);
    return n;
}

double fgi_tiers_paid(const fgi_model *m, const int32_t *labels) {
    double most = 0;
    for (int64_t i = 0; i < m->s->n_vars; i++) most = fgi_larger(most, unary_best(m, i) - fgi_unary(m, i)[labels[i]]);
    for (int64_t f = 0; f < m->s->n_factors; f++)
        most = fgi_larger(most, factor_best(m, f) - fgi_factor_score(m, f, labels));
    return most;
}
