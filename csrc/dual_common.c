/* dual_common.c - see dual_common.h. */
#include "dual_common.h"
#include "util.h"

void fgi_view_maxplus(const fgi_kernels *k, const fgi_view *v, int from, const double *h, double *out, double *scratch) {
    int32_t n_from = from ? v->cols : v->rows, n_to = from ? v->rows : v->cols;
    if (v->kind != FGI_DENSE) {
        fgi_maxplus_implicit(v->kind, v->p0, v->p1, v->weight, h, n_from, out, n_to, scratch);
        return;
    }
    /* Stored rows belong to the first variable, or to the second if transposed. */
    if (from == v->transposed) k->maxplus_rows(v->values, n_from, n_to, v->weight, h, out);
    else k->maxplus_cols(v->values, n_to, n_from, v->weight, h, out);
}

double fgi_dual_magnitude(const fgi_model *m) {
    double sum = fabs(m->s->constant);
    for (int64_t i = 0; i < m->s->n_vars; i++) {
        double largest = 0;
        for (int32_t a = 0; a < m->s->cards[i]; a++) {
            double u = fgi_unary(m, i)[a];
            if (u > -INFINITY && fabs(u) > largest) largest = fabs(u);
        }
        sum += largest;
    }
    for (int64_t f = 0; f < m->s->n_factors; f++) {
        const fgi_table_facts *facts = &m->t->facts[m->s->factor_table[f]];
        if (facts->max > -INFINITY) sum += fgi_factor_weight(m->s, f) * fmax(fabs(facts->max), fabs(facts->min_finite));
    }
    return sum;
}

fgi_rc fgi_check_multipliers(const double *mu, int64_t n, fgi_error *err) {
    for (int64_t k = 0; k < n; k++)
        if (!isfinite(mu[k])) return fgi_fail(err, FGI_BAD_ARGUMENT, k, "message entry %lld is not finite", (long long)k);
    return FGI_OK;
}

int64_t fgi_dual_message_size(const fgi_model *m) {
    int64_t n = 0;
    for (int64_t i = 0; i < m->s->n_vars; i++) n += (m->s->adj_begin[i + 1] - m->s->adj_begin[i]) * m->s->cards[i];
    return n;
}
