/* rules/totals.c - dynamic programming over the totals of a sum, or over remainders.
 *
 * Totals from the start of the last piece on are one state: where that piece has a slope, it is paid as the total
 * grows. rest[k][t] is the best that variables k, k + 1, ... bring when those before have come to t. */
#include "rules/rule.h"

typedef struct program {
    const fgi_sum_rule *rule;
    const double *gains;
    int64_t n_totals;
    int64_t *reach; /* per variable: totals before it are at most this one */
    double *rest;   /* n + 1 rows of n_totals */
} program;

/* The total after an add, and what is paid at once. */
static int64_t next_total(const fgi_sum_rule *r, int64_t n_totals, int64_t total, int64_t add, double *paid) {
    *paid = 0;
    if (r->modulus) return (total + add) % r->modulus;
    const int64_t last = r->pieces[r->n_pieces - 1].start;
    const double slope = r->pieces[r->n_pieces - 1].slope;
    if (total + add < last || last >= n_totals) return total + add;
    if (slope != 0) *paid = slope * (double)(total + add - (total > last ? total : last));
    return n_totals - 1;
}

static fgi_rc begin(program *p, const fgi_sum_rule *r, const double *gains, fgi_rule_room *room) {
    const int64_t n = r->base.n, m = r->n_totals;
    *p = (program){r, gains, m, fgi_take(&room->arena, n + 1, int64_t), fgi_take(&room->arena, (n + 1) * m, double)};
    if (room->arena.failed) return FGI_NO_MEMORY;
    p->reach[0] = 0;
    for (int64_t k = 0; k < n; k++) {
        const int64_t more = p->reach[k] + r->most[k];
        p->reach[k + 1] = more < m - 1 ? more : m - 1;
    }
    if (r->modulus)
        for (int64_t k = 1; k <= n; k++) p->reach[k] = m - 1;
    for (int64_t t = 0; t < m; t++) p->rest[n * m + t] = fgi_sum_score(r, t);
    for (int64_t k = n - 1; k >= 0; k--)
        for (int64_t t = 0; t <= p->reach[k]; t++) {
            double best = -INFINITY, paid;
            for (int64_t a = r->base.begin[k]; a < r->base.begin[k + 1]; a++) {
                if (gains[a] == -INFINITY) continue;
                const int64_t to = next_total(r, m, t, r->adds[a], &paid);
                best = fgi_larger(best, gains[a] + paid + p->rest[(k + 1) * m + to]);
            }
            p->rest[k * m + t] = best;
        }
    for (int64_t k = 0; k < n; k++) room->work += (p->reach[k] + 1) * r->base.cards[k];
    return FGI_OK;
}

fgi_rc fgi_totals_best(const fgi_sum_rule *r, const double *gains, fgi_rule_room *room, int32_t *labels, int *found) {
    program p;
    fgi_rc rc = begin(&p, r, gains, room);
    if (rc) return rc;
    *found = p.rest[0] > -INFINITY;
    for (int64_t k = 0, t = 0; *found && k < r->base.n; k++) {
        double best = -INFINITY, paid;
        int64_t after = t;
        for (int64_t a = r->base.begin[k]; a < r->base.begin[k + 1]; a++) {
            if (gains[a] == -INFINITY) continue;
            const int64_t to = next_total(r, p.n_totals, t, r->adds[a], &paid);
            const double value = gains[a] + paid + p.rest[(k + 1) * p.n_totals + to];
            if (!(value > best)) continue;
            best = value;
            after = to;
            labels[k] = (int32_t)(a - r->base.begin[k]);
        }
        t = after;
    }
    return FGI_OK;
}

/* One pass forward, with the best of those before in two rows that take turns. */
fgi_rc fgi_totals_marginals(const fgi_sum_rule *r, const double *gains, fgi_rule_room *room, double *out) {
    program p;
    fgi_rc rc = begin(&p, r, gains, room);
    if (rc) return rc;
    const int64_t m = p.n_totals;
    double *before = fgi_take(&room->arena, m, double), *after = fgi_take(&room->arena, m, double);
    if (room->arena.failed) return FGI_NO_MEMORY;
    before[0] = 0;
    for (int64_t k = 0; k < r->base.n; k++) {
        for (int64_t t = 0; t < m; t++) after[t] = -INFINITY;
        for (int64_t a = r->base.begin[k]; a < r->base.begin[k + 1]; a++) {
            double best = -INFINITY, paid;
            for (int64_t t = 0; t <= p.reach[k]; t++) {
                if (before[t] == -INFINITY) continue;
                const int64_t to = next_total(r, m, t, r->adds[a], &paid);
                best = fgi_larger(best, before[t] + paid + p.rest[(k + 1) * m + to]);
                after[to] = fgi_larger(after[to], before[t] + paid + gains[a]);
            }
            out[a] = best;
        }
        double *turn = before;
        before = after;
        after = turn;
        room->work += (p.reach[k] + 1) * r->base.cards[k];
    }
    return FGI_OK;
}
