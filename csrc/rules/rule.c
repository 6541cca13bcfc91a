/* rules/rule.c - the questions of fginfer_rules.h, and what all kinds of rules share. */
#include "rules/rule.h"

static const int64_t MOST_NUMBERED = INT64_C(1) << 62; /* states: more are not counted */

void *fgi_rule_begin(
    const fgi_rule_ops *ops, size_t size, int32_t n, const int32_t *cards, fgi_rc *rc, fgi_error *err) {
    fgi_arena arena = {0};
    int64_t labels = 0;
    *rc = FGI_OK;
    if (n < 1) *rc = fgi_fail(err, FGI_BAD_ARGUMENT, -1, "a rule is about one variable or more");
    for (int32_t k = 0; !*rc && k < n; k++) {
        if (cards[k] < 1) *rc = fgi_fail(err, FGI_BAD_ARGUMENT, k, "variable %d of a rule has %d labels", k, cards[k]);
        labels += cards[k];
    }
    if (*rc) return NULL;
    fgi_rule *r = fgi_arena_take_zero(&arena, 1, size);
    int32_t *own = fgi_arena_copy(&arena, cards, n, sizeof *own);
    int64_t *begin = fgi_take(&arena, (int64_t)n + 1, int64_t);
    if (arena.failed) {
        fgi_arena_free(&arena);
        *rc = fgi_no_memory(err);
        return NULL;
    }
    r->ops = ops;
    r->n = n;
    r->cards = own;
    r->begin = begin;
    r->states = 1;
    begin[0] = 0;
    for (int32_t k = 0; k < n; k++) {
        begin[k + 1] = begin[k] + cards[k];
        if (cards[k] > r->max_card) r->max_card = cards[k];
        r->states = r->states >= MOST_NUMBERED / cards[k] ? 0 : r->states * cards[k];
    }
    fgi_assert(begin[n] == labels);
    atomic_init(&r->shares, 1);
    r->arena = arena;
    return r;
}

fgi_rc fgi_rule_end(fgi_rule *r, fgi_rule **out, fgi_error *err) {
    if (r->arena.failed) {
        fgi_rule_free(r);
        return fgi_no_memory(err);
    }
    *out = r;
    return FGI_OK;
}

const fgi_rule *fgi_rule_share(const fgi_rule *r) {
    atomic_fetch_add(&((fgi_rule *)(uintptr_t)r)->shares, 1);
    return r;
}

void fgi_rule_free(const fgi_rule *r) {
    if (!r || atomic_fetch_sub(&((fgi_rule *)(uintptr_t)r)->shares, 1) > 1) return;
    fgi_arena arena = r->arena; /* the rule itself lives there */
    fgi_arena_free(&arena);
}

int64_t fgi_rule_memory(const fgi_rule *r) { return r->arena.bytes; }

int64_t fgi_rule_number(const fgi_rule *r, const int32_t *labels) {
    int64_t at = 0;
    if (!r->states) return INT64_MAX;
    for (int32_t k = 0; k < r->n; k++) at = at * r->cards[k] + labels[k];
    return at;
}

void fgi_rule_labels(const fgi_rule *r, int64_t state, int32_t *labels) {
    fgi_assert(state >= 0 && state < r->states);
    for (int32_t k = r->n - 1; k >= 0; k--) {
        labels[k] = (int32_t)(state % r->cards[k]);
        state /= r->cards[k];
    }
}

int fgi_rule_is_lower(const fgi_rule *r, const int32_t *a, const int32_t *b) {
    for (int32_t k = 0; k < r->n; k++)
        if (a[k] != b[k]) return a[k] < b[k];
    return 0;
}

double fgi_rule_score(const fgi_rule *r, const int32_t *labels) {
    for (int32_t k = 0; k < r->n; k++) fgi_assert(labels[k] >= 0 && labels[k] < r->cards[k]);
    return r->ops->score(r, labels);
}

/* Variables none of whose labels is allowed; *which: the last of them. */
static int32_t dead(const fgi_rule *r, const double *gains, int32_t *which) {
    int32_t n = 0;
    for (int32_t k = 0; k < r->n; k++) {
        const double *gain = fgi_rule_gains(r, gains, k);
        int32_t a = 0;
        while (a < r->cards[k] && gain[a] == -INFINITY) a++;
        if (a < r->cards[k]) continue;
        *which = k;
        n++;
    }
    return n;
}

double fgi_rule_grain(double grain, double score) {
    int exponent;
    if (score == 0 || score == -INFINITY) return grain;
    const uint64_t digits = (uint64_t)ldexp(fabs(frexp(score, &exponent)), 53);
    return fgi_smaller(grain, ldexp((double)(digits & (0 - digits)), exponent - 53));
}

/* A sum of n numbers is off by no more than n roundings of the sum of their magnitudes, a steady one by a few. Sums of
 * multiples of one power of two are exact while they have no more digits than a double. */
static double rounding(const fgi_rule *r, const double *gains, int is_steady) {
    double size = r->magnitude, grain = r->grain;
    for (int32_t k = 0; k < r->n; k++) {
        const double *gain = fgi_rule_gains(r, gains, k);
        double most = 0;
        for (int32_t a = 0; a < r->cards[k]; a++)
            if (gain[a] > -INFINITY) {
                most = fgi_larger(most, fabs(gain[a]));
                if (grain > 0) grain = fgi_rule_grain(grain, gain[a]);
            }
        size += most;
    }
    if (size * (1 + 0x1p-20) * 0x1p-53 <= grain) return 0; /* size itself is rounded */
    return 8 * 0x1p-53 * (is_steady ? 4 : (double)r->n + 4) * size;
}

fgi_rc fgi_rule_best(
    const fgi_rule *r, const double *gains, int32_t *labels, int *found, double *above, int64_t *work) {
    fgi_rule_room room = {.work = r->begin[r->n]};
    int32_t which;
    *found = 0;
    *above = 0;
    if (dead(r, gains, &which)) return FGI_OK;
    fgi_rc rc = r->ops->best(r, gains, &room, labels, found);
    if (!rc) rc = fgi_room_rc(&room);
    if (!rc && *found) *above = room.above + rounding(r, gains, room.is_steady);
    *work += room.work;
    fgi_arena_free(&room.arena);
    return rc;
}

/* One variable has no label left: its own max-marginals are those with gains of 0 there. */
static fgi_rc marginals_beside_dead(
    const fgi_rule *r, const double *gains, int32_t which, fgi_rule_room *room, double *out) {
    const int64_t n = r->begin[r->n], from = r->begin[which], to = r->begin[which + 1];
    double *open = fgi_arena_copy(&room->arena, gains, n, sizeof *open);
    if (room->arena.failed) return FGI_NO_MEMORY;
    for (int64_t a = from; a < to; a++) open[a] = 0;
    const fgi_rc rc = r->ops->marginals(r, open, room, out);
    for (int64_t a = 0; a < n; a++)
        if (a < from || a >= to) out[a] = -INFINITY;
    return rc;
}

fgi_rc fgi_rule_marginals(const fgi_rule *r, const double *gains, double *out, int64_t *work) {
    fgi_rule_room room = {.work = r->begin[r->n]};
    int32_t which = -1;
    const int32_t n = dead(r, gains, &which);
    fgi_rc rc = FGI_OK;
    for (int64_t a = 0; a < r->begin[r->n]; a++) out[a] = -INFINITY;
    if (n == 0) rc = r->ops->marginals(r, gains, &room, out);
    else if (n == 1) rc = marginals_beside_dead(r, gains, which, &room, out);
    if (!rc) rc = fgi_room_rc(&room);
    *work += room.work;
    fgi_arena_free(&room.arena);
    return rc;
}

/* ---- propagation ----------------------------------------------------------------------------------------------- */

/* Every label that some allowed state has is left, and no other one. */
fgi_rc fgi_rule_propagate_by_marginals(const fgi_rule *r, fgi_rule_room *room, uint8_t *allowed) {
    const int64_t n = r->begin[r->n];
    double *gains = fgi_take(&room->arena, n, double), *out = fgi_take(&room->arena, n, double);
    if (room->arena.failed) return FGI_NO_MEMORY;
    for (int64_t a = 0; a < n; a++) {
        gains[a] = allowed[a] ? 0 : -INFINITY;
        out[a] = -INFINITY;
    }
    const fgi_rc rc = r->ops->marginals(r, gains, room, out);
    for (int64_t a = 0; !rc && a < n; a++)
        if (out[a] == -INFINITY) allowed[a] = 0;
    return rc;
}

static int64_t count_allowed(const fgi_rule *r, const uint8_t *allowed) {
    int64_t n = 0;
    for (int64_t a = 0; a < r->begin[r->n]; a++) n += allowed[a] != 0;
    return n;
}

/* Is there a variable without a label? */
static int is_empty(const fgi_rule *r, const uint8_t *allowed) {
    for (int32_t k = 0; k < r->n; k++)
        if (!memchr(allowed + r->begin[k], 1, (size_t)r->cards[k])) return 1;
    return 0;
}

fgi_rc fgi_rule_propagate(const fgi_rule *r, uint8_t *allowed, int64_t *removed) {
    fgi_rule_room room = {0};
    fgi_rc rc = FGI_OK;
    for (int64_t a = 0; a < r->begin[r->n]; a++) allowed[a] = allowed[a] != 0;
    const int64_t before = count_allowed(r, allowed);
    if (!is_empty(r, allowed))
        rc = (r->ops->propagate ? r->ops->propagate : fgi_rule_propagate_by_marginals)(r, &room, allowed);
    if (!rc && is_empty(r, allowed)) memset(allowed, 0, (size_t)r->begin[r->n]);
    *removed = before - count_allowed(r, allowed);
    fgi_arena_free(&room.arena);
    return rc;
}

/* Does the label go when only the variables of `kept` have missing labels? */
static fgi_rc goes(
    const fgi_rule *r, const uint8_t *allowed, const uint8_t *kept, int32_t v, int32_t label, uint8_t *mask, int *out) {
    int64_t removed;
    memset(mask, 1, (size_t)r->begin[r->n]);
    for (int32_t k = 0; k < r->n; k++)
        if (kept[k]) memcpy(mask + r->begin[k], allowed + r->begin[k], (size_t)r->cards[k]);
    mask[r->begin[v] + label] = 1; /* whether it is missing already must not count */
    const fgi_rc rc = fgi_rule_propagate(r, mask, &removed);
    *out = !rc && !mask[r->begin[v] + label];
    return rc;
}

/* All variables at first; then one after the other is left out if the label goes without it. */
fgi_rc fgi_rule_reason(
    const fgi_rule *r, const uint8_t *allowed, int32_t variable, int32_t label, uint8_t *out, fgi_error *err) {
    int removed;
    if (variable < 0 || variable >= r->n || label < 0 || label >= r->cards[variable])
        return fgi_fail(
            err, FGI_BAD_ARGUMENT, variable, "there is no label %d of variable %d in this rule", label, variable);
    uint8_t *mask = fgi_alloc(r->begin[r->n], sizeof *mask);
    if (!mask) return fgi_no_memory(err);
    memset(out, 1, (size_t)r->n);
    out[variable] = 0;
    fgi_rc rc = goes(r, allowed, out, variable, label, mask, &removed);
    if (!rc && !removed)
        rc = fgi_fail(err, FGI_BAD_ARGUMENT, variable, "label %d of variable %d is not removed", label, variable);
    for (int32_t k = 0; !rc && k < r->n; k++) {
        if (!out[k]) continue;
        out[k] = 0;
        rc = goes(r, allowed, out, variable, label, mask, &removed);
        out[k] = (uint8_t)!removed;
    }
    free(mask);
    return rc;
}

/* ---- moves ----------------------------------------------------------------------------------------------------- */

fgi_rc fgi_tally_create(const fgi_rule *r, const int32_t *labels, fgi_tally **out, fgi_error *err) {
    fgi_arena arena = {0};
    for (int32_t k = 0; k < r->n; k++)
        if (labels[k] < 0 || labels[k] >= r->cards[k])
            return fgi_fail(err, FGI_BAD_ARGUMENT, k, "there is no label %d of variable %d in this rule", labels[k], k);
    fgi_tally *t = fgi_take_zero(&arena, 1, fgi_tally);
    int32_t *own = fgi_arena_copy(&arena, labels, r->n, sizeof *own), *other = fgi_take(&arena, r->n, int32_t);
    int32_t *counts = fgi_take_zero(&arena, r->max_card, int32_t);
    if (arena.failed) {
        fgi_arena_free(&arena);
        return fgi_no_memory(err);
    }
    *t = (fgi_tally){.rule = fgi_rule_share(r), .labels = own, .counts = counts, .other = other, .arena = arena};
    if (r->ops->count) r->ops->count(t);
    t->score = r->ops->score(r, own);
    *out = t;
    return FGI_OK;
}

void fgi_tally_free(fgi_tally *t) {
    if (!t) return;
    fgi_rule_free(t->rule);
    fgi_arena arena = t->arena;
    fgi_arena_free(&arena);
}

double fgi_tally_score(const fgi_tally *t) { return t->score; }

double fgi_tally_after(fgi_tally *t, int32_t n, const int32_t *variables, const int32_t *labels) {
    const fgi_rule *r = t->rule;
    for (int32_t k = 0; k < n; k++)
        fgi_assert(variables[k] >= 0 && variables[k] < r->n && labels[k] >= 0 && labels[k] < r->cards[variables[k]]);
    if (r->ops->after) return r->ops->after(t, n, variables, labels, 0);
    memcpy(t->other, t->labels, (size_t)r->n * sizeof *t->other);
    for (int32_t k = 0; k < n; k++) t->other[variables[k]] = labels[k];
    return r->ops->score(r, t->other);
}

void fgi_tally_move(fgi_tally *t, int32_t n, const int32_t *variables, const int32_t *labels) {
    t->score = t->rule->ops->after ? t->rule->ops->after(t, n, variables, labels, 1)
                                   : fgi_tally_after(t, n, variables, labels);
    for (int32_t k = 0; k < n; k++) t->labels[variables[k]] = labels[k];
}
