/* rules/occurrences.c - how often labels occur: at most once is all different, other limits are global cardinality.
 *
 * The best state is an assignment of variables to the places of labels (rules/assignment.c). What a variable has at
 * best with another label is that assignment, less the shortest way on which the others make room. */
#include "rules/assignment.h"

/* Where one more at `label` goes: the way to the label that `home` loses; FGI_NO_WAY: nowhere. */
static fgi_cost way_home(const fgi_assignment *a, const fgi_ways *w, int32_t label, int32_t home) {
    if (label == home) return (fgi_cost){0, 0};
    const int32_t to = w->node[home], sink = w->n - 1;
    if (w->node[label] >= 0) return w->way[(int64_t)w->node[label] * w->n + to];
    const fgi_cost place = fgi_place_cost(a->rule, label, 0), rest = w->way[(int64_t)sink * w->n + to];
    return fgi_cost_is_way(place) && fgi_cost_is_way(rest) ? fgi_cost_sum(place, rest) : FGI_NO_WAY;
}

/* ---- the questions --------------------------------------------------------------------------------------------- */

static fgi_rc occurrences_best(
    const fgi_rule *rule, const double *gains, fgi_rule_room *room, int32_t *labels, int *found) {
    fgi_assignment a;
    *found = fgi_assign(&a, (const fgi_occurrences *)rule, gains, labels, &room->arena);
    if (*found && !fgi_assign_lowest(&a, &room->arena)) return FGI_NO_MEMORY;
    room->work += a.work;
    return FGI_OK;
}

/* Max-marginals of the variables from..to - 1: the best of all, less what is lost with the label in question. *found 0:
 * there is no assignment, and nothing is written. */
static fgi_rc rows(
    const fgi_rule *rule, const double *gains, int32_t from, int32_t to, fgi_rule_room *room, double *out, int *found) {
    fgi_rule_room own = {0};
    fgi_assignment a;
    fgi_ways w;
    int32_t *labels = fgi_take(&own.arena, rule->n, int32_t);
    *found = !own.arena.failed && fgi_assign(&a, (const fgi_occurrences *)rule, gains, labels, &own.arena);
    if (*found && fgi_find_ways(&a, &w, &own.arena)) {
        double best = rule->ops->score(rule, labels);
        for (int32_t k = 0; k < rule->n; k++) best += fgi_rule_gains(rule, gains, k)[labels[k]];
        for (int32_t k = from; k < to; k++) {
            const double rest = best - fgi_rule_gains(rule, gains, k)[labels[k]];
            for (int32_t l = 0; l < rule->cards[k]; l++) {
                const fgi_cost way = way_home(&a, &w, l, labels[k]);
                if (fgi_cost_is_way(way) && way.needs <= 0) out[rule->begin[k] + l] = rest - way.cost;
            }
        }
        room->work += a.work + (int64_t)w.n * w.n * w.n;
    }
    const fgi_rc rc = fgi_room_rc(&own);
    fgi_arena_free(&own.arena);
    return rc;
}

/* Where there is no assignment there may be one if a variable could have any label: its own gains do not count. */
static fgi_rc occurrences_marginals(const fgi_rule *rule, const double *gains, fgi_rule_room *room, double *out) {
    int found;
    fgi_rc rc = rows(rule, gains, 0, rule->n, room, out, &found);
    if (rc || found) return rc;
    double *open = fgi_arena_copy(&room->arena, gains, rule->begin[rule->n], sizeof *open);
    if (room->arena.failed) return FGI_NO_MEMORY;
    for (int32_t k = 0; !rc && k < rule->n; k++) {
        const int64_t at = rule->begin[k];
        for (int32_t l = 0; l < rule->cards[k]; l++) open[at + l] = 0;
        rc = rows(rule, open, k, k + 1, room, out, &found);
        memcpy(open + at, gains + at, (size_t)rule->cards[k] * sizeof *open);
    }
    return rc;
}

static int64_t off_by(const fgi_occurrences *r, int32_t label, int64_t count) {
    if (count < r->low[label]) return r->low[label] - count;
    return count > r->high[label] ? count - r->high[label] : 0;
}

static double score_of(const fgi_occurrences *r, int64_t off) {
    if (off == 0) return 0;
    return r->price == INFINITY ? -INFINITY : -r->price * (double)off;
}

static double occurrences_score(const fgi_rule *rule, const int32_t *labels) {
    const fgi_occurrences *r = (const fgi_occurrences *)rule;
    int32_t few[64], *count = r->n_labels <= 64 ? few : fgi_alloc(r->n_labels, sizeof *count);
    int64_t off = 0;
    if (!count) { /* slowly, but without memory */
        for (int32_t l = 0; l < r->n_labels; l++) {
            int64_t n = 0;
            for (int32_t k = 0; k < rule->n; k++) n += labels[k] == l;
            off += off_by(r, l, n);
        }
        return score_of(r, off);
    }
    memset(count, 0, (size_t)r->n_labels * sizeof *count);
    for (int32_t k = 0; k < rule->n; k++) count[labels[k]]++;
    for (int32_t l = 0; l < r->n_labels; l++) off += off_by(r, l, count[l]);
    if (count != few) free(count);
    return score_of(r, off);
}

/* ---- moves ----------------------------------------------------------------------------------------------------- */

static void occurrences_count(fgi_tally *t) {
    const fgi_occurrences *r = (const fgi_occurrences *)t->rule;
    for (int32_t k = 0; k < r->base.n; k++) t->counts[t->labels[k]]++;
    t->off = 0;
    for (int32_t l = 0; l < r->n_labels; l++) t->off += off_by(r, l, l < r->base.max_card ? t->counts[l] : 0);
}

static void change_count(fgi_tally *t, int32_t label, int32_t by) {
    const fgi_occurrences *r = (const fgi_occurrences *)t->rule;
    t->off -= off_by(r, label, t->counts[label]);
    t->counts[label] += by;
    t->off += off_by(r, label, t->counts[label]);
}

static double occurrences_after(fgi_tally *t, int32_t n, const int32_t *variables, const int32_t *labels, int keep) {
    for (int32_t k = 0; k < n; k++) {
        change_count(t, t->labels[variables[k]], -1);
        change_count(t, labels[k], 1);
    }
    const double after = score_of((const fgi_occurrences *)t->rule, t->off);
    for (int32_t k = 0; !keep && k < n; k++) {
        change_count(t, labels[k], -1);
        change_count(t, t->labels[variables[k]], 1);
    }
    return after;
}

/* Soft limits remove nothing. */
static fgi_rc occurrences_propagate(const fgi_rule *rule, fgi_rule_room *room, uint8_t *allowed) {
    const int64_t n = rule->begin[rule->n];
    if (((const fgi_occurrences *)rule)->price < INFINITY) return FGI_OK;
    double *gains = fgi_take(&room->arena, n, double), *out = fgi_take(&room->arena, n, double);
    if (room->arena.failed) return FGI_NO_MEMORY;
    for (int64_t a = 0; a < n; a++) {
        gains[a] = allowed[a] ? 0 : -INFINITY;
        out[a] = -INFINITY;
    }
    int found;
    const fgi_rc rc = rows(rule, gains, 0, rule->n, room, out, &found);
    for (int64_t a = 0; !rc && a < n; a++)
        if (out[a] == -INFINITY) allowed[a] = 0;
    return rc;
}

static const fgi_rule_ops occurrences_ops = {.kind = "occurrences",
    .best = occurrences_best,
    .marginals = occurrences_marginals,
    .propagate = occurrences_propagate,
    .score = occurrences_score,
    .count = occurrences_count,
    .after = occurrences_after};

/* ---- making it ------------------------------------------------------------------------------------------------- */

static fgi_rc check_limits(const fgi_occurrences *r, fgi_error *err) {
    const int64_t most = INT64_C(1) << 40;
    double off = 0;
    if (r->base.max_card > r->n_labels)
        return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "a variable has %d labels, and there are limits for %d",
            r->base.max_card, r->n_labels);
    if (!(r->price >= 0)) return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "a price must be 0 or more");
    for (int32_t l = 0; l < r->n_labels; l++) {
        if (r->low[l] > r->high[l] || r->low[l] < -most || r->high[l] > most)
            return fgi_fail(
                err, FGI_BAD_ARGUMENT, l, "label %d: a lower limit above the upper one, or one that is too large", l);
        off += (double)(r->low[l] > 0 ? r->low[l] : 0) + (double)(r->high[l] < 0 ? -r->high[l] : 0);
    }
    if (r->price < INFINITY && !isfinite(r->price * (off + r->base.n)))
        return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "the price of the largest violation overflows");
    return FGI_OK;
}

fgi_rc fgi_rule_occurrences(int32_t n, const int32_t *cards, int32_t n_labels, const int64_t *low, const int64_t *high,
    double price, fgi_rule **out, fgi_error *err) {
    fgi_rc rc = FGI_OK;
    if (n_labels < 1) return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "limits for one label or more are needed");
    fgi_occurrences *r = fgi_rule_begin(&occurrences_ops, sizeof *r, n, cards, &rc, err);
    if (!r) return rc;
    r->n_labels = n_labels;
    r->price = price;
    r->low = fgi_arena_copy(&r->base.arena, low, n_labels, sizeof *low);
    r->high = fgi_arena_copy(&r->base.arena, high, n_labels, sizeof *high);
    if (!r->base.arena.failed && !(rc = check_limits(r, err)) && price < INFINITY) {
        double off = n;
        for (int32_t l = 0; l < n_labels; l++)
            off += (double)(low[l] > 0 ? low[l] : 0) - (double)(high[l] < 0 ? high[l] : 0);
        r->base.magnitude = price * off;
    }
    if (!rc) return fgi_rule_end(&r->base, out, err);
    fgi_rule_free(&r->base);
    return rc;
}
