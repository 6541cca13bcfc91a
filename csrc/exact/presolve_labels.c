/* exact/presolve_labels.c - reductions that remove labels: propagation of hard constraints, and dead-end elimination.
 */
#include <string.h>
#include "exact/presolve.h"
#include "model/consistency.h"

/* ---- propagation -------------------------------------------------------------------------------------------- */

/* The labels of a factor's variables that have a state left go into `seen`. Returns how many have none. */
static int64_t find_supports(ps_work *w, const ps_factor *f, fgi_domain *domains, uint8_t *seen) {
    int64_t strides[f->arity], work = 0;
    if (f->kind == FGI_DENSE) ps_strides(w, f, strides);
    for (int32_t k = 0; k < f->arity; k++) {
        const ps_var *v = &w->vars[f->vars[k]];
        domains[k] = (fgi_domain){.scores = v->unary, .card = v->card, .live = v->live};
        if (f->kind == FGI_DENSE) domains[k].stride = strides[k];
    }
    if (f->kind != FGI_DENSE) { /* Potts tables with a forbidden side: equality or difference */
        const fgi_view view = ps_view(w, f);
        return fgi_potts_supports(domains, view.p0, view.p1, seen);
    }
    const int64_t missing = fgi_find_supports(f->arity, domains, f->values, seen, &work);
    ps_spend(w, (double)work);
    return missing;
}

/* A table of the original over complete label sets: what was found once holds for all factors that share it. */
static int is_complete(const ps_work *w, const ps_factor *f) {
    int complete = f->table >= 0;
    for (int32_t k = 0; k < f->arity; k++) complete &= w->vars[f->vars[k]].live == w->m->s->cards[f->vars[k]];
    return complete;
}

/* Factors that are to be revised, each at most once. */
typedef struct revisions {
    int32_t *stack;
    int64_t n;
} revisions;

/* Labels of variable i have gone because of factor f: others of its factors are to be looked at again. */
static void wake(ps_work *w, int32_t i, const ps_factor *f, revisions *r) {
    ps_var *v = &w->vars[i];
    v->todo |= PS_DOMINATE;
    for (int32_t l = 0; l < v->n_factors; l++) {
        ps_factor *g = &w->factors[v->factors[l]];
        if (g != f && g->arity && g->forbidden && !(g->todo & PS_REVISE)) {
            g->todo |= PS_REVISE;
            r->stack[r->n++] = v->factors[l];
        }
        g->todo |= PS_SPLIT;
        for (int32_t x = 0; x < g->arity; x++) w->vars[g->vars[x]].todo |= PS_DOMINATE;
    }
    ps_spend(w, 4.0 * v->n_factors);
}

/* The labels of a factor's variables that were not seen go; returns how many. */
static int64_t remove_unseen(ps_work *w, const ps_factor *f, const uint8_t *seen, revisions *r) {
    int64_t removed = 0;
    for (int32_t k = 0; k < f->arity && !w->infeasible; k++) {
        const int32_t i = f->vars[k];
        const ps_var *v = &w->vars[i];
        const int32_t before = v->live;
        for (int32_t a = 0; a < v->card; a++)
            if (!seen[a] && v->unary[a] > -INFINITY) ps_remove_label(w, i, a);
        seen += v->card;
        if (v->live == before) continue;
        removed += before - v->live;
        wake(w, i, f, r);
    }
    return removed;
}

int64_t ps_propagate(ps_work *w) {
    int64_t removed = 0, seen_capacity = 0, domain_capacity = 0;
    revisions r = {fgi_alloc(w->n_factors, sizeof *r.stack), 0};
    uint8_t *seen = NULL;
    fgi_domain *domains = NULL;
    if (!r.stack) w->failure = FGI_NO_MEMORY;
    for (int64_t f = w->n_factors; r.stack && f-- > 0;) {
        ps_factor *x = &w->factors[f];
        if (!x->arity || !x->forbidden || !(x->todo & PS_REVISE)) x->todo &= (uint8_t)~PS_REVISE;
        else r.stack[r.n++] = (int32_t)f;
    }
    while (r.n > 0 && !w->stop && !w->infeasible) {
        ps_factor *f = &w->factors[r.stack[--r.n]];
        f->todo &= (uint8_t)~PS_REVISE; /* off the stack */
        int64_t labels = 0;
        for (int32_t k = 0; k < f->arity; k++) labels += w->vars[f->vars[k]].card;
        if (!fgi_grow(&seen, &seen_capacity, labels, 1) ||
            !fgi_grow(&domains, &domain_capacity, f->arity, sizeof *domains)) {
            w->failure = FGI_NO_MEMORY;
            break;
        }
        const int complete = is_complete(w, f);
        if (complete && w->supported[f->table]) continue;
        ps_spend(w, (double)labels);
        if (find_supports(w, f, domains, seen) > 0) removed += remove_unseen(w, f, seen, &r);
        else if (complete) w->supported[f->table] = 1;
    }
    free(r.stack);
    free(seen);
    free(domains);
    w->info.labels_propagated += removed;
    return removed;
}

/* ---- dead-end elimination ----------------------------------------------------------------------------------- */

typedef struct rows {
    double max, min;
} rows; /* over the finite entries of one label's row */

/* Row statistics of a factor from its slot's point of view, weighted. */
static void row_statistics(ps_work *w, const ps_factor *f, int32_t slot, rows *out) {
    const int32_t card = w->vars[f->vars[slot]].card;
    for (int32_t a = 0; a < card; a++) out[a] = (rows){-INFINITY, INFINITY};
    if (f->kind != FGI_DENSE) {
        const int32_t other = w->vars[f->vars[1 - slot]].card;
        for (int32_t a = 0; a < card; a++)
            for (int32_t b = 0; b < other; b++) {
                double x = ps_at2(w, f, a, b); /* implicit tables are symmetric */
                if (x > out[a].max) out[a].max = x;
                if (x > -INFINITY && x < out[a].min) out[a].min = x;
            }
        ps_spend(w, 4.0 * card * other);
        return;
    }
    int64_t strides[f->arity];
    ps_strides(w, f, strides);
    const int64_t states = ps_states(w, f), inner = strides[slot], outer = states / (inner * card);
    for (int64_t o = 0; o < outer && inner == 1; o++) {
        const double *x = f->values + o * card;
        for (int32_t a = 0; a < card; a++) {
            out[a].max = x[a] > out[a].max ? x[a] : out[a].max;
            out[a].min = x[a] < out[a].min && x[a] > -INFINITY ? x[a] : out[a].min;
        }
    }
    for (int64_t o = 0; o < outer && inner > 1; o++)
        for (int32_t a = 0; a < card; a++) {
            const double *x = f->values + (o * card + a) * inner;
            double high = out[a].max, low = out[a].min;
            for (int64_t i = 0; i < inner; i++) {
                high = x[i] > high ? x[i] : high;
                low = x[i] < low && x[i] > -INFINITY ? x[i] : low;
            }
            out[a] = (rows){high, low};
        }
    for (int32_t a = 0; a < card; a++) {
        if (out[a].max > -INFINITY) out[a].max *= f->weight;
        if (out[a].min < INFINITY) out[a].min *= f->weight;
    }
    ps_spend(w, (double)states);
}

/* min over the states y of the others of theta(b, y) - theta(a, y), where theta(a, y) is finite; -INFINITY if only b is
 * forbidden. */
static double least_advantage(ps_work *w, const ps_factor *f, int32_t slot, int32_t b, int32_t a) {
    double least = INFINITY;
    if (f->kind != FGI_DENSE) {
        const int32_t other = w->vars[f->vars[1 - slot]].card;
        for (int32_t y = 0; y < other; y++) {
            double low = ps_at2(w, f, a, y), high = ps_at2(w, f, b, y);
            if (low == -INFINITY) continue;
            if (high - low < least) least = high - low;
        }
        ps_spend(w, 4.0 * other);
        return least;
    }
    int64_t strides[f->arity];
    ps_strides(w, f, strides);
    const int64_t card = w->vars[f->vars[slot]].card, inner = strides[slot], states = ps_states(w, f),
                  outer = states / (inner * card);
    if (inner == 1) {
        const double *low = f->values + a, *high = f->values + b;
        for (int64_t o = 0; o < outer * card; o += card)
            if (low[o] > -INFINITY && high[o] - low[o] < least) least = high[o] - low[o];
    }
    for (int64_t o = 0; o < outer && inner > 1; o++) {
        const double *low = f->values + (o * card + a) * inner, *high = f->values + (o * card + b) * inner;
        for (int64_t i = 0; i < inner; i++)
            if (low[i] > -INFINITY && high[i] - low[i] < least) least = high[i] - low[i];
    }
    const int64_t others = states / card;
    ps_spend(w, (double)others);
    return least < INFINITY && least > -INFINITY ? least * f->weight : least;
}

/* Labels of a variable that others are compared with: all pairs would be quadratic (decision 0016). */
enum { CANDIDATES = 6 };

/* The labels most likely to dominate others: the best by their worst case, and the best by their best case. */
static int32_t candidates_of(
    const ps_work *w, int32_t var, const rows *r, int32_t degree, const uint8_t *hard, int32_t *out) {
    const ps_var *v = &w->vars[var];
    double score[CANDIDATES];
    int32_t n = 0;
    for (int pass = 0; pass < 2; pass++) {
        const int32_t limit = pass == 0 ? CANDIDATES / 2 : CANDIDATES, from = n;
        for (int32_t a = 0; a < v->card; a++) {
            if (v->unary[a] == -INFINITY) continue;
            double s = v->unary[a];
            int known = 0;
            for (int32_t k = 0; k < degree; k++)
                s += pass == 0 && !hard[k] ? r[(int64_t)k * v->card + a].min : r[(int64_t)k * v->card + a].max;
            for (int32_t k = 0; k < from; k++) known |= out[k] == a;
            if (known || s == -INFINITY) continue;
            int32_t l = n < limit ? n++ : limit;
            for (; l > from && score[l - 1] < s; l--)
                if (l < limit) {
                    score[l] = score[l - 1];
                    out[l] = out[l - 1];
                }
            if (l < limit) {
                score[l] = s;
                out[l] = a;
            }
        }
    }
    return n;
}

/* A bound on the rounding error of a sum of differences. It has three parts: each difference is rounded, and the sum,
 * and products of a weight and an entry, whose error is relative to the entries. */
static double sum_error(
    const ps_work *w, int32_t var, int32_t b, int32_t a, const rows *r, int32_t degree, double sum) {
    const ps_var *v = &w->vars[var];
    double products = 0;
    for (int32_t k = 0; k < degree; k++) {
        const ps_factor *f = &w->factors[v->factors[k]];
        int exponent;
        if (frexp(f->weight, &exponent) == 0.5 && f->kind == FGI_DENSE) continue; /* a power of two: nothing is lost */
        for (int c = 0; c < 2; c++) {
            const rows *x = &r[(int64_t)k * v->card + (c ? a : b)];
            if (x->max > -INFINITY) products += fgi_larger(fabs(x->max), fabs(x->min));
        }
    }
    return 0x1p-53 * (degree + 2) * sum + 0x1p-52 * products;
}

/* True if label b is at least as good as a whatever the neighbours do. */
static int dominates(
    ps_work *w, int32_t var, int32_t b, int32_t a, const rows *r, int32_t degree, const uint8_t *hard) {
    const ps_var *v = &w->vars[var];
    const double own = v->unary[b] - v->unary[a];
    double simple = own, most = own; /* a lower and an upper bound on the least advantage */
    double size = fabs(own), high_size = size;
    for (int32_t k = 0; k < degree; k++) {
        const rows *rb = &r[(int64_t)k * v->card + b], *ra = &r[(int64_t)k * v->card + a];
        double high = rb->max - ra->max;
        if (!hard[k]) {
            simple += rb->min - ra->max;
            size += fabs(rb->min - ra->max);
            if (rb->min - ra->min < high) high = rb->min - ra->min;
        } else {
            simple = -INFINITY;
        }
        most += high;
        high_size += fabs(high);
    }
    if (simple >= 0) return ps_accept(w, sum_error(w, var, b, a, r, degree, size));
    double sum = own; /* sums the least advantages; `most` only says when to give up */
    size = fabs(own);
    const double slack = 0x1p-50 * high_size;
    for (int32_t k = 0; k < degree && most >= -slack; k++) {
        const rows *rb = &r[(int64_t)k * v->card + b], *ra = &r[(int64_t)k * v->card + a];
        double high = rb->max - ra->max;
        if (!hard[k] && rb->min - ra->min < high) high = rb->min - ra->min;
        const ps_factor *f = &w->factors[v->factors[k]];
        double least = least_advantage(w, f, ps_slot(f, var), b, a);
        if (least == -INFINITY) return 0;
        if (least == INFINITY) return 1; /* a is useless there */
        most += least - high;
        sum += least;
        size += fabs(least);
        if (k + 1 == degree) return sum >= 0 && ps_accept(w, sum_error(w, var, b, a, r, degree, size));
    }
    return degree == 0 && own >= 0;
}

static int64_t dominate_var(ps_work *w, int32_t var) {
    ps_var *v = &w->vars[var];
    const int32_t degree = ps_tidy(w, var), card = v->card, before = v->live;
    if (v->live < 2) return 0;
    /* Not worth it where the statistics alone are beyond what is left to spend. */
    double cost = 0;
    for (int32_t k = 0; k < degree; k++) cost += (double)ps_states(w, &w->factors[v->factors[k]]);
    if (cost > w->options.work - w->work) return 0;
    rows *r = (rows *)ps_scratch(w, 2 * (int64_t)card * degree + degree + CANDIDATES + 1);
    if (!r) return 0;
    uint8_t *hard = (uint8_t *)(r + (int64_t)card * degree);
    for (int32_t k = 0; k < degree; k++) {
        const ps_factor *f = &w->factors[v->factors[k]];
        row_statistics(w, f, ps_slot(f, var), r + (int64_t)k * card);
        hard[k] = f->forbidden;
        for (int32_t a = 0; a < card; a++)
            if (r[(int64_t)k * card + a].max == -INFINITY) ps_remove_label(w, var, a); /* no finite state at all */
        if (w->infeasible) return before;
    }
    int32_t candidates[CANDIDATES], n = candidates_of(w, var, r, degree, hard, candidates);
    for (int32_t k = 0; k < n && !w->stop && v->live > 1; k++) {
        const int32_t b = candidates[k];
        for (int32_t a = 0; a < card && !w->stop && v->unary[b] > -INFINITY; a++)
            if (a != b && v->unary[a] > -INFINITY && dominates(w, var, b, a, r, degree, hard))
                ps_remove_label(w, var, a);
        ps_spend(w, 2.0 * card * degree);
    }
    if (v->live < before) ps_wake_var(w, var);
    return before - v->live;
}

/* Dominance is looked for as long as it finds something: where it removes too few of the labels it looks at, it stops
 * for good. Small models, on which it costs nothing, are always done to the end; the first pass is given more time than
 * the later ones. */
int64_t ps_dominate(ps_work *w) {
    enum { TRIAL_VARS = 32 }; /* variables looked at before it may stop: fewer say little (decision 0016) */
    /* Work of a pass before it may stop (1e6: about a millisecond), and the share of labels that it must remove. */
    const double trial_work = w->dominance_passes++ == 0 ? 1e6 : 1e5, least_share = 0.02;
    int64_t removed = 0, n_seen = 0;
    double seen = 0, begin = w->work;
    for (int32_t i = 0; i < w->n_vars && !w->stop && !w->hopeless; i++) {
        ps_var *v = &w->vars[i];
        if (v->gone || !(v->todo & PS_DOMINATE)) continue;
        v->todo &= (uint8_t)~PS_DOMINATE;
        seen += v->live;
        n_seen++;
        removed += dominate_var(w, i);
        w->hopeless = n_seen >= TRIAL_VARS && w->work - begin > trial_work && (double)removed < least_share * seen;
    }
    w->info.labels_dominated += removed;
    return removed;
}
