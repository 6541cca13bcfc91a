/* gdmm/closer.c - sweeps over large tables: only the labels that may be best are looked at closely.
 *
 * D(mu) is a bound for every mu. At the visit of variable i (gdmm/sweep.c) the message of a factor may be too large at
 * a label that is not among the best of hat_i: the maximum of hat_i is exact all the same, no factor ends above 0, and
 * D has become as small as by an exact visit. The slack of a label, max hat_i - hat_i(a), is only handed out in other
 * parts: some of it stays with the factors whose message is too large, the rest is shared as ever. So messages are
 * made of bounds, from the rows of the table with the largest messages (oracle/sliced.h), and exact where hat_i is
 * within a margin of its maximum. Where that would be too many labels, the bounds are made of more rows. What is read
 * is a matter of the numbers alone, so that every run reads the same. */
#include <string.h>
#include "gdmm/sweep.h"

/* The margin is this part of the way from the maximum down to the middle of hat (decision 0016). */
static const double MARGIN_OF_SPREAD = 0.3;
/* Where most labels are forbidden it is at most this part of the mean range of the factors' scores. */
static const double MARGIN_OF_RANGE = 0.2;
/* Decision 0016 has what half and twice of these numbers do. */
enum {
    SURE = 4,    /* labels looked at first */
    LIKELY = 32, /* likely labels looked at next: what they have raises the bar for all others */
    WIDER = 4,   /* rows are multiplied by this where bounds leave too many labels open */
    NARROWER = 8 /* rows are halved for the next visit where close looks cost less than this part of them */
};

static fgi_loose_marginals open(
    const gdmm *g, const gdmm_sweep *sweep, gdmm_hand *d, const fgi_view *v, const fgi_link *l) {
    return (fgi_loose_marginals){.view = v,
        .slices = g->tables[v->table].slices,
        .variable = l->position,
        .delta = gdmm_sweep_other(sweep, v, l),
        .peaks = gdmm_sweep_peaks(g, sweep, v, l),
        .scratch = d->worker->oracle};
}

static int64_t bound_marginal(const gdmm *g, gdmm_sweep *sweep, gdmm_hand *d, const fgi_view *v, const fgi_link *l) {
    const int64_t slot = gdmm_sweep_slot(g, l);
    fgi_loose_marginals m = open(g, sweep, d, v, l);
    sweep->cap[slot] = fgi_loose_bounds(&m, sweep->rows[slot], sweep->mu + l->mu);
    return m.touched;
}

int64_t gdmm_loose_marginal(gdmm *g, gdmm_sweep *sweep, gdmm_hand *d, const fgi_view *v, const fgi_link *l) {
    const int64_t touched = bound_marginal(g, sweep, d, v, l);
    if (sweep->cap[gdmm_sweep_slot(g, l)] > -INFINITY)
        gdmm_table_note(g, v, touched, 1); /* the first messages are constant */
    return touched;
}

/* The message of a link with a cap, at the n labels picked. */
static void look_at_link(gdmm *g, gdmm_sweep *sweep, gdmm_hand *d, const fgi_link *l, double cap, int32_t n) {
    const fgi_view v = fgi_factor_view(g->model, l->factor);
    fgi_loose_marginals m = open(g, sweep, d, &v, l);
    double *out = sweep->mu + l->mu;
    for (int32_t k = 0; k < n; k++) {
        const int32_t a = d->pick[k];
        if (fgi_loose_is_open(&m, cap, a, out[a])) out[a] = fgi_loose_exact(&m, a);
    }
    gdmm_table_note(g, &v, m.touched, 0);
    d->entries += m.touched;
}

/* The messages of the factors of i, and hat, exact at the n labels picked. */
static void look_closely(gdmm *g, gdmm_sweep *sweep, gdmm_hand *d, int32_t i, int32_t n) {
    const fgi_structure *s = g->model->s;
    for (int32_t k = 0; k < n; k++) d->hat[d->pick[k]] = g->theta[s->unary_begin[i] + d->pick[k]];
    for (int64_t e = s->adj_begin[i]; e < s->adj_begin[i + 1]; e++) {
        const fgi_link *l = &sweep->links[e];
        const double cap = sweep->cap[gdmm_sweep_slot(g, l)];
        const double *out = sweep->mu + l->mu;
        if (cap > -INFINITY) look_at_link(g, sweep, d, l, cap, n);
        for (int32_t k = 0; k < n; k++) d->hat[d->pick[k]] += out[d->pick[k]];
    }
}

/* The n labels picked are looked at, as far as they reach the bar; what they have raises it. */
static void look_at(gdmm *g, gdmm_sweep *sweep, gdmm_hand *d, int32_t i, int32_t n, double margin, double *bar) {
    int32_t kept = 0;
    for (int32_t k = 0; k < n; k++)
        if (d->hat[d->pick[k]] > *bar - margin) d->pick[kept++] = d->pick[k];
    look_closely(g, sweep, d, i, kept);
    for (int32_t k = 0; k < kept; k++) *bar = fgi_larger(*bar, d->hat[d->pick[k]]);
}

/* About `most` labels, those with the largest hat. */
static void look_at_best(
    gdmm *g, gdmm_sweep *sweep, gdmm_hand *d, int32_t i, int32_t most, double margin, double *bar) {
    double below;
    const int32_t n = fgi_sliced_largest(d->hat, g->model->s->cards[i], most, d->pick, &below);
    look_at(g, sweep, d, i, n, margin, bar);
}

/* Entries that a close look at one label reads, and those that all bounds have been made of; of bounds that can be made
 * of more. */
typedef struct effort {
    int64_t label, rows;
    int is_open; /* some bounds are not exact */
} effort;

static int is_listed(const gdmm *g, const fgi_view *v) { return fgi_sliced_is_listed(g->tables[v->table].slices); }

static effort measure_effort(const gdmm *g, const gdmm_sweep *sweep, int32_t i) {
    const fgi_structure *s = g->model->s;
    effort sum = {0};
    for (int64_t e = s->adj_begin[i]; e < s->adj_begin[i + 1]; e++) {
        const int64_t slot = g->adj_slot[e];
        if (sweep->cap[slot] == -INFINITY) continue;
        const fgi_view v = fgi_factor_view(g->model, s->adj[e]);
        sum.is_open = 1;
        if (is_listed(g, &v)) continue;
        sum.label += (int64_t)v.rows + v.cols - s->cards[i];
        sum.rows += (int64_t)sweep->rows[slot] * s->cards[i];
    }
    return sum;
}

/* Bounds from more rows, of all factors that have bounds. */
static void widen(gdmm *g, gdmm_sweep *sweep, gdmm_hand *d, int32_t i) {
    const fgi_structure *s = g->model->s;
    const int32_t card = s->cards[i];
    memcpy(d->hat, g->theta + s->unary_begin[i], (size_t)card * sizeof(double));
    for (int64_t e = s->adj_begin[i]; e < s->adj_begin[i + 1]; e++) {
        const int64_t slot = g->adj_slot[e];
        const fgi_view v = fgi_factor_view(g->model, s->adj[e]);
        if (sweep->cap[slot] > -INFINITY && !is_listed(g, &v)) {
            const int32_t all = v.rows + v.cols - card;
            sweep->rows[slot] = 2 * WIDER * sweep->rows[slot] < all ? WIDER * sweep->rows[slot] : all;
            const int64_t touched = bound_marginal(g, sweep, d, &v, &sweep->links[e]);
            if (sweep->rows[slot] == all)
                sweep->rows[slot] = all / NARROWER > GDMM_LEAST_ROWS ? all / NARROWER : GDMM_LEAST_ROWS; /* next time */
            gdmm_table_note(g, &v, touched, 0);
            d->entries += touched;
        }
        g->kernels->add(d->hat, sweep->mu + sweep->links[e].mu, card);
    }
}

static void narrow(const gdmm *g, gdmm_sweep *sweep, int32_t i) {
    const fgi_structure *s = g->model->s;
    for (int64_t e = s->adj_begin[i]; e < s->adj_begin[i + 1]; e++) {
        int32_t *rows = &sweep->rows[g->adj_slot[e]];
        if (*rows > GDMM_LEAST_ROWS) *rows /= 2;
    }
}

static double margin_below(const gdmm *g, const gdmm_hand *d, int32_t card, double bar) {
    return fmin(MARGIN_OF_RANGE * g->scale, MARGIN_OF_SPREAD * (bar - fgi_sliced_median(d->hat, card)));
}

void gdmm_settle(gdmm *g, gdmm_sweep *sweep, gdmm_hand *d, int32_t i) {
    const int32_t card = g->model->s->cards[i];
    double bar = -INFINITY, margin = 0;
    if (!g->has_slices) return; /* all is exact */
    effort each = measure_effort(g, sweep, i);
    for (int first = 1; each.is_open; first = 0) {
        int32_t n = 0;
        bar = -INFINITY;
        look_at_best(g, sweep, d, i, SURE, 0, &bar);
        margin = margin_below(g, d, card, bar);
        for (int32_t a = 0; a < card; a++) n += d->hat[a] > bar - margin;
        if (n * each.label <= WIDER * each.rows) {
            if (first && NARROWER * n * each.label < each.rows) narrow(g, sweep, i);
            break;
        }
        widen(g, sweep, d, i);
        each = measure_effort(g, sweep, i);
    }
    if (!each.is_open) return; /* likewise */
    look_at_best(g, sweep, d, i, LIKELY, margin, &bar);
    look_at(g, sweep, d, i, fgi_sliced_above(d->hat, card, bar - margin, d->pick), margin, &bar);
}
