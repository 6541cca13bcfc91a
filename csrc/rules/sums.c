/* rules/sums.c - a score by a sum that the labels add: which of three ways a question is answered.
 *
 *   count.c    nothing adds more than 1: the gains sorted, O(n log n)
 *   totals.c   dynamic programming over totals, where there are few
 *   core.c     the other sums: a bound by a price per unit, and a search around it */
#include "rules/rule.h"

/* Totals are counted one by one up to these limits: some milliseconds, 16 MB (chosen). */
static const int64_t MOST_ENTRIES = 2000000; /* entries of the dynamic program's table */
static const int64_t MOST_STEPS = 5000000;   /* steps through the table */
/* Max-marginals may take so many times as much, since nothing else is there for them (chosen). */
static const int64_t MORE_FOR_MARGINALS = 10;
static const int64_t MOST_TOTAL = INT64_C(1) << 60; /* everything added up is no more, so that no sum overflows */

/* The index of the piece that a total lies in. */
static int32_t piece_of(const fgi_sum_rule *r, int64_t total) {
    int32_t low = 0, high = r->n_pieces;
    while (high - low > 1) {
        const int32_t mid = low + (high - low) / 2;
        if (r->pieces[mid].start <= total) low = mid;
        else high = mid;
    }
    return low;
}

double fgi_sum_score(const fgi_sum_rule *r, int64_t total) {
    const fgi_piece *p = &r->pieces[piece_of(r, r->modulus ? total % r->modulus : total)];
    const int64_t at = r->modulus ? total % r->modulus : total;
    return p->slope != 0 ? p->base + p->slope * (double)(at - p->anchor) : p->base;
}

static int64_t total_of(const fgi_sum_rule *r, const int32_t *labels) {
    int64_t total = 0;
    for (int32_t k = 0; k < r->base.n; k++) total += r->adds[r->base.begin[k] + labels[k]];
    return total;
}

static double sum_score(const fgi_rule *rule, const int32_t *labels) {
    const fgi_sum_rule *r = (const fgi_sum_rule *)rule;
    return fgi_sum_score(r, total_of(r, labels));
}

static int few_totals(const fgi_sum_rule *r, int64_t times) {
    int64_t entries, steps;
    return fgi_mul(r->n_totals, (int64_t)r->base.n + 1, &entries) && entries <= times * MOST_ENTRIES &&
        fgi_mul(r->n_totals, r->base.begin[r->base.n], &steps) && steps <= times * MOST_STEPS;
}

static fgi_rc sum_best(const fgi_rule *rule, const double *gains, fgi_rule_room *room, int32_t *labels, int *found) {
    const fgi_sum_rule *r = (const fgi_sum_rule *)rule;
    if (r->is_count) return fgi_count_best(r, gains, room, labels, found);
    if (few_totals(r, 1)) return fgi_totals_best(r, gains, room, labels, found);
    return fgi_core_best(r, gains, room, labels, found);
}

static fgi_rc sum_marginals(const fgi_rule *rule, const double *gains, fgi_rule_room *room, double *out) {
    const fgi_sum_rule *r = (const fgi_sum_rule *)rule;
    if (r->is_count) return fgi_count_marginals(r, gains, room, out);
    return few_totals(r, MORE_FOR_MARGINALS) ? fgi_totals_marginals(r, gains, room, out) : FGI_UNSUPPORTED;
}

/* ---- bounds consistency ---------------------------------------------------------------------------------------- */

/* Is a total from low to high allowed? */
static int is_allowed(const fgi_sum_rule *r, int64_t low, int64_t high) {
    for (int32_t p = piece_of(r, low); p < r->n_pieces && r->pieces[p].start <= high; p++)
        if (r->pieces[p].base > -INFINITY) return 1;
    return 0;
}

/* Labels go whose adds cannot come to an allowed total, by the least and the most that the others add; what is left
 * then may remove others. */
static fgi_rc sum_bounds(const fgi_rule *rule, fgi_rule_room *room, uint8_t *allowed) {
    const fgi_sum_rule *r = (const fgi_sum_rule *)rule;
    int64_t *least = fgi_take(&room->arena, rule->n, int64_t), *most = fgi_take(&room->arena, rule->n, int64_t);
    if (room->arena.failed) return FGI_NO_MEMORY;
    for (int changed = 1; changed;) {
        int64_t low = 0, high = 0;
        changed = 0;
        for (int32_t k = 0; k < rule->n; k++) {
            least[k] = INT64_MAX;
            most[k] = -1;
            for (int64_t a = rule->begin[k]; a < rule->begin[k + 1]; a++) {
                if (allowed[a] && r->adds[a] < least[k]) least[k] = r->adds[a];
                if (allowed[a] && r->adds[a] > most[k]) most[k] = r->adds[a];
            }
            if (most[k] < 0) return FGI_OK;
            low += least[k];
            high += most[k];
        }
        for (int32_t k = 0; k < rule->n; k++)
            for (int64_t a = rule->begin[k]; a < rule->begin[k + 1]; a++)
                if (allowed[a] && !is_allowed(r, low - least[k] + r->adds[a], high - most[k] + r->adds[a])) {
                    allowed[a] = 0;
                    changed = 1;
                }
    }
    return FGI_OK;
}

static fgi_rc sum_propagate(const fgi_rule *rule, fgi_rule_room *room, uint8_t *allowed) {
    const fgi_sum_rule *r = (const fgi_sum_rule *)rule;
    if (!r->is_count && !few_totals(r, 1)) return r->modulus ? FGI_OK : sum_bounds(rule, room, allowed);
    return fgi_rule_propagate_by_marginals(rule, room, allowed);
}

/* ---- moves ----------------------------------------------------------------------------------------------------- */

static void sum_count(fgi_tally *t) { t->total = total_of((const fgi_sum_rule *)t->rule, t->labels); }

static double sum_after(fgi_tally *t, int32_t n, const int32_t *variables, const int32_t *labels, int keep) {
    const fgi_sum_rule *r = (const fgi_sum_rule *)t->rule;
    int64_t total = t->total;
    for (int32_t k = 0; k < n; k++) {
        const int64_t *add = r->adds + r->base.begin[variables[k]];
        total += add[labels[k]] - add[t->labels[variables[k]]];
    }
    if (keep) t->total = total;
    return fgi_sum_score(r, total);
}

static const fgi_rule_ops sum_ops = {.kind = "sum",
    .best = sum_best,
    .marginals = sum_marginals,
    .propagate = sum_propagate,
    .score = sum_score,
    .count = sum_count,
    .after = sum_after};

/* ---- making it ------------------------------------------------------------------------------------------------- */

static fgi_rc check_pieces(int32_t n, const fgi_piece *p, int64_t modulus, fgi_error *err) {
    if (n < 1 || p[0].start != 0) return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "the first piece must start at 0");
    if (modulus < 0 || modulus > MOST_TOTAL)
        return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "the modulus must be 0 or more, and at most 2^60");
    for (int32_t k = 0; k < n; k++) {
        if (k > 0 && p[k].start <= p[k - 1].start)
            return fgi_fail(err, FGI_BAD_ARGUMENT, k, "pieces must ascend: piece %d does not", k);
        if (!(p[k].base < INFINITY) || !isfinite(p[k].slope) || p[k].anchor < -MOST_TOTAL || p[k].anchor > MOST_TOTAL)
            return fgi_fail(err, FGI_BAD_ARGUMENT, k, "piece %d: a score must be finite or -inf", k);
    }
    return FGI_OK;
}

/* What follows from the adds; 0: they are too large or below 0. */
static int look_at_adds(fgi_sum_rule *r) {
    const fgi_rule *base = &r->base;
    r->is_count = 1;
    for (int32_t k = 0; k < base->n; k++) {
        r->most[k] = 0;
        for (int64_t a = base->begin[k]; a < base->begin[k + 1]; a++) {
            if (r->adds[a] < 0 || r->adds[a] > MOST_TOTAL) return 0;
            if (r->adds[a] > r->most[k]) r->most[k] = r->adds[a];
            if (r->adds[a] > 1) r->is_count = 0;
        }
        r->total += r->most[k];
        if (r->total > MOST_TOTAL) return 0;
    }
    const int64_t last = r->pieces[r->n_pieces - 1].start;
    r->n_totals = r->modulus ? r->modulus : (last < r->total ? last : r->total) + 1;
    return 1;
}

/* The largest finite score; a score that overflows is INFINITY. */
static double magnitude_of(const fgi_sum_rule *r) {
    double most = 0;
    const int64_t top = r->modulus ? r->modulus - 1 : r->total;
    for (int32_t p = 0; p < r->n_pieces && r->pieces[p].start <= top; p++) {
        if (r->pieces[p].base == -INFINITY) continue;
        const int64_t next = p + 1 < r->n_pieces ? r->pieces[p + 1].start - 1 : top;
        const double ends[2] = {fgi_sum_score(r, r->pieces[p].start), fgi_sum_score(r, next < top ? next : top)};
        for (int e = 0; e < 2; e++) most = fgi_larger(most, ends[e] == ends[e] ? fabs(ends[e]) : INFINITY);
    }
    return most;
}

fgi_rc fgi_rule_sum(int32_t n, const int32_t *cards, const int64_t *adds, int32_t n_pieces, const fgi_piece *pieces,
    int64_t modulus, fgi_rule **out, fgi_error *err) {
    fgi_rc rc = check_pieces(n_pieces, pieces, modulus, err);
    if (rc) return rc;
    fgi_sum_rule *r = fgi_rule_begin(&sum_ops, sizeof *r, n, cards, &rc, err);
    if (!r) return rc;
    r->n_pieces = n_pieces;
    r->modulus = modulus;
    r->adds = fgi_arena_copy(&r->base.arena, adds, r->base.begin[n], sizeof *adds);
    r->pieces = fgi_arena_copy(&r->base.arena, pieces, n_pieces, sizeof *pieces);
    r->most = fgi_take(&r->base.arena, n, int64_t);
    if (!r->base.arena.failed) {
        if (!look_at_adds(r))
            rc = fgi_fail(err, FGI_BAD_ARGUMENT, -1, "what labels add must be 0 or more, and at most 2^60 together");
        else if ((r->base.magnitude = magnitude_of(r)) == INFINITY)
            rc = fgi_fail(err, FGI_BAD_ARGUMENT, -1, "the score of the largest total overflows");
        else if (modulus && !r->is_count && !few_totals(r, MORE_FOR_MARGINALS))
            rc = fgi_fail(err, FGI_UNSUPPORTED, -1, "a sum modulo %lld has too many totals", (long long)modulus);
    }
    if (!rc) return fgi_rule_end(&r->base, out, err);
    fgi_rule_free(&r->base);
    return rc;
}
