/* model/marginal.c - see model/marginal.h. */
#include "model/marginal.h"
#include "base/kernels.h"
#include "base/pool.h"
#include "base/util.h"

enum { SMALL = 64 }; /* table entries below which plain loops are quicker than the set-up of products */

static void small_pairwise(
    const double *t, int32_t n_from, int32_t n_to, int by_rows, double w, const double *h, double *out) {
    const int32_t step = by_rows ? n_to : 1, next = by_rows ? 1 : n_from;
    for (int32_t b = 0; b < n_to; b++, t += next) {
        double best = -INFINITY;
        for (int32_t a = 0; a < n_from; a++) {
            const double x = w * t[a * step] + h[a];
            best = best > x ? best : x;
        }
        out[b] = best;
    }
}

/* by_rows: the stored rows belong to the variable that h is about. */
static void dense_pairwise(const fgi_kernels *k, const double *t, int32_t n_from, int32_t n_to, int by_rows, double w,
    const double *h, double *out) {
    if ((int64_t)n_from * n_to <= SMALL) small_pairwise(t, n_from, n_to, by_rows, w, h, out);
    else if (by_rows) k->maxplus_rows(t, n_from, n_to, w, h, out);
    else k->maxplus_cols(t, n_to, n_from, w, h, out);
}

void fgi_view_maxplus(
    const fgi_kernels *k, const fgi_view *v, int from, const double *h, double *out, double *scratch) {
    const int32_t n_from = from ? v->cols : v->rows, n_to = from ? v->rows : v->cols;
    if (v->kind != FGI_DENSE) {
        fgi_maxplus_implicit(v->kind, v->p0, v->p1, v->weight, h, n_from, out, n_to, scratch);
        return;
    }
    if (v->reach) {
        fgi_maxplus_near(k, v->values, v->reach, v->values[v->cols - 1], v->weight, h, n_from, out, n_to, scratch);
        return;
    }
    /* Stored rows belong to the first variable, or to the second if transposed. */
    dense_pairwise(k, v->values, n_from, n_to, from == v->transposed, v->weight, h, out);
}

/* x[i * n + a] = x[i] + g[a] in place, for i < size: from the back, so that nothing is overwritten before it is read.
 */
static int64_t outer_sum(double *x, int64_t size, const double *g, int32_t n) {
    for (int64_t i = size - 1; i >= 0; i--) {
        const double base = x[i];
        for (int32_t a = n - 1; a >= 0; a--) x[i * n + a] = base + g[a];
    }
    return size * n;
}

/* Small ternary factors are the bulk of many models. Called with a constant p: the choices are then made once. */
static inline void ternary_to(
    const double *t, const int32_t n[3], double w, int p, const double *const *g, double *restrict out) {
    for (int32_t x = 0; x < n[p]; x++) out[x] = -INFINITY;
    for (int32_t a = 0; a < n[0]; a++)
        for (int32_t b = 0; b < n[1]; b++, t += n[2]) {
            if (p == 2) {
                const double given = g[0][a] + g[1][b];
                for (int32_t c = 0; c < n[2]; c++) out[c] = fgi_larger(w * t[c] + given, out[c]);
                continue;
            }
            const double given = p ? g[0][a] : g[1][b], *last = g[2];
            double best = w * t[0] + last[0], *to = out + (p ? b : a);
            for (int32_t c = 1; c < n[2]; c++) best = fgi_larger(w * t[c] + last[c], best);
            *to = fgi_larger(best + given, *to);
        }
}

static void small_ternary(const double *t, const int32_t n[3], double w, int p, const double *const *g, double *out) {
    if (p == 0) ternary_to(t, n, w, 0, g, out);
    else if (p == 1) ternary_to(t, n, w, 1, g, out);
    else ternary_to(t, n, w, 2, g, out);
}

/* The table seen as before x K_p x after: the messages of the variables before p and after it are summed over their
 * product spaces once, and the maxima are two max-plus products. */
void fgi_table_marginal(const fgi_kernels *k, const double *values, double weight, int arity, const int32_t *vars,
    const int32_t *cards, int p, const double *const *g, double *out, double *scratch) {
    const int32_t n = cards[vars[p]];
    if (arity == 2) {
        dense_pairwise(k, values, cards[vars[1 - p]], n, p == 1, weight, g[1 - p], out);
        return;
    }
    if (arity == 3) {
        const int32_t sides[3] = {cards[vars[0]], cards[vars[1]], cards[vars[2]]};
        if ((int64_t)sides[0] * sides[1] * sides[2] <= SMALL) {
            small_ternary(values, sides, weight, p, g, out);
            return;
        }
    }
    int64_t before = 1, after = 1;
    double *head = scratch;
    head[0] = 0;
    for (int q = 0; q < p; q++) before = outer_sum(head, before, g[q], cards[vars[q]]);
    double *tail = head + before;
    tail[0] = 0;
    for (int q = p + 1; q < arity; q++) after = outer_sum(tail, after, g[q], cards[vars[q]]);
    if (p == arity - 1) {
        k->maxplus_rows(values, before, n, weight, head, out);
    } else if (p == 0) {
        k->maxplus_cols(values, n, after, weight, tail, out);
    } else {
        double *middle = tail + after;
        k->maxplus_cols(values, before * n, after, weight, tail, middle);
        k->maxplus_rows(middle, before, n, 1, head, out);
    }
}

void fgi_max_marginal(const fgi_kernels *k, const fgi_model *m, const fgi_view *v, int p, const double *const *g,
    double *out, double *scratch) {
    if (v->arity == 2) fgi_view_maxplus(k, v, 1 - p, g[1 - p], out, scratch);
    else fgi_table_marginal(k, v->values, v->weight, v->arity, v->vars, m->s->cards, p, g, out, scratch);
}

int64_t fgi_marginal_scratch(const fgi_model *m) {
    int64_t most = 2 * (int64_t)m->s->max_card + 1;
    for (int64_t f = 0; f < m->s->n_factors; f++) {
        fgi_view v = fgi_factor_view(m, f);
        if (v.arity == 2) continue;
        int64_t states = fgi_view_states(m, &v); /* before + after <= states + 1, before * K_p <= states */
        if (states > INT64_MAX / 4) return -1;
        if (2 * states + 2 > most) most = 2 * states + 2;
    }
    return most;
}

double fgi_best_of_term(const fgi_model *m, int64_t k) {
    const fgi_structure *s = m->s;
    if (k >= s->n_vars) return fgi_factor_weight(s, k - s->n_vars) * m->t->facts[s->factor_table[k - s->n_vars]].max;
    const int32_t card = s->cards[k];
    return card < FGI_SHORT_ROW ? fgi_max_of(fgi_unary(m, k), card) : fgi_kernels_get()->max(fgi_unary(m, k), card);
}

static double magnitude_of_terms(const void *model, int64_t begin, int64_t end) {
    const fgi_model *m = model;
    double sum = 0;
    for (int64_t k = begin; k < end; k++) {
        const double best = fgi_best_of_term(m, k);
        if (best > -INFINITY) sum += fabs(best);
    }
    return sum;
}

static double added(double a, double b) { return a + b; }

double fgi_dual_magnitude(const fgi_model *m, fgi_pool *pool) {
    return fgi_pool_fold(
        pool, m->s->n_vars + m->s->n_factors, FGI_TERMS, magnitude_of_terms, m, added, fabs(m->s->constant));
}

double fgi_safe_bound(const fgi_model *m, double value, double magnitude) {
    enum { FEW = 10 }; /* products with weights, shares and maxima taken out, each more than once */
    return value + 0x1p-53 * (double)(m->s->max_degree + m->s->max_arity + FEW) * magnitude;
}

/* fgi_dual_magnitude and the sum of the same maxima, in one pass over the model. */
double fgi_model_trivial_bound(const fgi_model *m) {
    const int64_t n = m->s->n_vars + m->s->n_factors;
    double magnitude = fabs(m->s->constant);
    fgi_sum sum = {0};
    fgi_sum_add(&sum, m->s->constant);
    for (int64_t begin = 0; begin < n; begin += FGI_TERMS) {
        double of_block = 0;
        for (int64_t k = begin; k < n && k < begin + FGI_TERMS; k++) {
            const double best = fgi_best_of_term(m, k);
            fgi_sum_add(&sum, best);
            if (best > -INFINITY) of_block += fabs(best);
        }
        magnitude += of_block;
    }
    return fgi_safe_bound(m, fgi_sum_value(&sum), magnitude);
}

double fgi_mean_range(const fgi_model *m) {
    double sum = 0;
    for (int64_t f = 0; f < m->s->n_factors; f++) {
        const fgi_table_facts *t = &m->t->facts[m->s->factor_table[f]];
        const double w = fgi_factor_weight(m->s, f); /* first: the difference of unweighted scores may overflow */
        if (t->max > -INFINITY) sum += w * t->max - w * t->min_finite;
    }
    if (sum > 0) return sum / (double)m->s->n_factors;
    double magnitude = fgi_dual_magnitude(m, NULL); /* constant factors: steps are as large as what there is */
    for (int64_t k = 0; magnitude == 0 && k < m->s->unary_begin[m->s->n_vars]; k++)
        if (m->u->values[k] > -INFINITY) magnitude = fabs(m->u->values[k]); /* the best are 0, and others are not */
    return magnitude > 0 ? magnitude : 1;
}

fgi_rc fgi_check_multipliers(const double *mu, int64_t n, fgi_error *err) {
    for (int64_t k = 0; k < n; k++)
        if (!isfinite(mu[k]))
            return fgi_fail(err, FGI_BAD_ARGUMENT, k, "message entry %lld is not finite", (long long)k);
    return FGI_OK;
}

int64_t fgi_dual_message_size(const fgi_model *m) {
    int64_t n = 0;
    for (int64_t i = 0; i < m->s->n_vars; i++) n += (m->s->adj_begin[i + 1] - m->s->adj_begin[i]) * m->s->cards[i];
    return n;
}

void fgi_dual_message_begin(const fgi_model *m, int64_t *begin) {
    const fgi_structure *s = m->s;
    int64_t at = 0;
    for (int64_t f = 0; f < s->n_factors; f++) {
        begin[f] = at;
        for (int32_t q = 0; q < fgi_factor_arity(s, f); q++) at += s->cards[fgi_factor_vars(s, f)[q]];
    }
}
