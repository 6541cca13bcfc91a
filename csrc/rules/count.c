/* rules/count.c - a score by how many variables have a label that counts.
 *
 * Each variable has a best label that counts (on) and one that does not (off). With the differences on - off in
 * descending order, the best state with c of them on takes the first c; what every label has at best follows from the
 * same prefix sums. Variables with one of the two only are decided beforehand. */
#include "rules/rule.h"

typedef struct choice {
    double gain[2]; /* off, on; -INFINITY: no such label */
    int32_t label[2];
} choice;

typedef struct ranked {
    double more; /* on - off */
    int32_t variable;
} ranked;

typedef struct counting {
    const fgi_sum_rule *rule;
    choice *choices;
    ranked *order;        /* variables that may be either, by descending difference, then by number */
    int32_t n_free, n_on; /* these, and those that are on in any case */
    double base;          /* gains with all free ones off */
    double *prefix;       /* n_free + 1 sums of the first differences */
} counting;

static int by_difference(const void *a, const void *b) {
    const ranked *x = a, *y = b;
    if (x->more != y->more) return x->more > y->more ? -1 : 1;
    return x->variable < y->variable ? -1 : 1;
}

static choice choose(const fgi_sum_rule *r, const double *gains, int32_t k) {
    choice c = {{-INFINITY, -INFINITY}, {-1, -1}};
    for (int32_t a = 0; a < r->base.cards[k]; a++) {
        const int64_t at = r->base.begin[k] + a;
        const int on = r->adds[at] != 0;
        if (gains[at] > c.gain[on]) {
            c.gain[on] = gains[at];
            c.label[on] = a;
        }
    }
    return c;
}

/* Prefix sums of the differences. What each addition loses is added up beside them, so that a sum of any length is off
 * by a few roundings of its largest part (Neumaier 1974). */
static void fill_prefix(counting *c) {
    double sum = 0, lost = 0;
    c->prefix[0] = 0;
    for (int32_t k = 0; k < c->n_free; k++) {
        const double more = c->order[k].more, next = sum + more;
        lost += fabs(sum) >= fabs(more) ? (sum - next) + more : (more - next) + sum;
        sum = next;
        c->prefix[k + 1] = sum + lost;
    }
}

static fgi_rc begin(counting *c, const fgi_sum_rule *r, const double *gains, fgi_rule_room *room) {
    const int32_t n = r->base.n;
    *c = (counting){.rule = r,
        .choices = fgi_take(&room->arena, n, choice),
        .order = fgi_take(&room->arena, n, ranked),
        .prefix = fgi_take(&room->arena, (int64_t)n + 1, double)};
    if (room->arena.failed) return FGI_NO_MEMORY;
    for (int32_t k = 0; k < n; k++) {
        const choice one = c->choices[k] = choose(r, gains, k);
        fgi_assert(one.label[0] >= 0 || one.label[1] >= 0);
        c->n_on += one.label[0] < 0;
        c->base += one.gain[one.label[0] < 0];
        if (one.label[0] >= 0 && one.label[1] >= 0) c->order[c->n_free++] = (ranked){one.gain[1] - one.gain[0], k};
    }
    qsort(c->order, (size_t)c->n_free, sizeof *c->order, by_difference);
    fill_prefix(c);
    for (int64_t left = c->n_free; left > 0; left /= 2) room->work += c->n_free;
    return FGI_OK;
}

static double value(const counting *c, int32_t on) {
    return c->prefix[on] + fgi_sum_score(c->rule, (int64_t)c->n_on + on);
}

/* ---- the best state -------------------------------------------------------------------------------------------- */

/* next[x] is the least count from x on that is as good as the best; count + 1 at the end. */
static void fill_next(const counting *c, double top, int32_t from, int32_t to, int32_t *next) {
    next[to + 1] = to + 1;
    for (int32_t x = to; x >= from; x--) next[x] = value(c, x) == top ? x : next[x + 1];
}

/* The lowest state with a best count from `from` to `to`, where the differences of order[from .. to) are the same:
 * each of these takes its lower label if a best count can still be reached. */
static void lowest_within(const counting *c, int32_t from, int32_t to, const int32_t *next, int32_t *labels) {
    for (int32_t k = 0; k < c->rule->base.n; k++) labels[k] = c->choices[k].label[c->choices[k].label[0] < 0];
    for (int32_t k = 0; k < from; k++) labels[c->order[k].variable] = c->choices[c->order[k].variable].label[1];
    for (int32_t k = from, on = from; k < to; k++) {
        const choice *one = &c->choices[c->order[k].variable];
        const int32_t left = to - k - 1;
        const int may_on = next[on + 1] <= on + 1 + left && next[on + 1] <= to;
        const int may_off = next[on] <= on + left && next[on] <= to;
        fgi_assert(may_on || may_off);
        const int takes = may_on && (!may_off || one->label[1] < one->label[0]);
        labels[c->order[k].variable] = one->label[takes];
        on += takes;
    }
}

fgi_rc fgi_count_best(const fgi_sum_rule *r, const double *gains, fgi_rule_room *room, int32_t *labels, int *found) {
    counting c;
    fgi_rc rc = begin(&c, r, gains, room);
    if (rc) return rc;
    room->is_steady = 1;
    int32_t *next = fgi_take(&room->arena, (int64_t)c.n_free + 2, int32_t);
    int32_t *other = fgi_take(&room->arena, r->base.n, int32_t);
    if (room->arena.failed) return FGI_NO_MEMORY;
    double top = -INFINITY;
    for (int32_t on = 0; on <= c.n_free; on++) top = fgi_larger(top, value(&c, on));
    *found = 0;
    if (top == -INFINITY) return FGI_OK;
    fill_next(&c, top, 0, c.n_free, next);
    /* Stretches of equal differences; a best count at the border of two is in both, and gives the same state. */
    for (int32_t from = 0, to;; from = to) {
        to = from;
        while (to < c.n_free && c.order[to].more == c.order[from].more) to++;
        if (next[from] <= to) {
            int32_t *at = *found ? other : labels;
            lowest_within(&c, from, to, next, at);
            if (*found && fgi_rule_is_lower(&r->base, other, labels))
                memcpy(labels, other, (size_t)r->base.n * sizeof *labels);
            *found = 1;
            room->work += r->base.n;
        }
        if (to == c.n_free) break;
    }
    return FGI_OK;
}

/* ---- max-marginals --------------------------------------------------------------------------------------------- */

/* With the variable at rank k left out and `given` more that are on, the best over counts of the others: of the first c
 * up to rank k, of the first c + 1 but it beyond. before[c] and after[c] are maxima of prefix and score up to and from
 * c, of the counts c as they are and of those one less. */
typedef struct maxima {
    double *before, *after;
} maxima;

/* before[c] = max over x <= c of prefix[x] + score(n_on + x + given); after[c] = max over x >= c of prefix[x] +
 * score(n_on + x - 1 + given). */
static maxima maxima_of(const counting *c, int32_t n_on, int given, fgi_rule_room *room) {
    const int32_t n = c->n_free;
    maxima m = {fgi_take(&room->arena, (int64_t)n + 1, double), fgi_take(&room->arena, (int64_t)n + 2, double)};
    if (room->arena.failed) return m;
    for (int32_t x = 0; x <= n; x++) {
        const double at = c->prefix[x] + fgi_sum_score(c->rule, (int64_t)n_on + x + given);
        m.before[x] = x > 0 ? fgi_larger(m.before[x - 1], at) : at;
    }
    m.after[n + 1] = -INFINITY;
    for (int32_t x = n; x >= 0; x--) {
        const int64_t total = (int64_t)n_on + x - 1 + given;
        m.after[x] = fgi_larger(m.after[x + 1], total >= 0 ? c->prefix[x] + fgi_sum_score(c->rule, total) : -INFINITY);
    }
    return m;
}

static void write_row(const counting *c, int32_t k, const double *by_add, double *out) {
    const fgi_rule *base = &c->rule->base;
    for (int64_t a = base->begin[k]; a < base->begin[k + 1]; a++) out[a] = by_add[c->rule->adds[a] != 0];
}

fgi_rc fgi_count_marginals(const fgi_sum_rule *r, const double *gains, fgi_rule_room *room, double *out) {
    counting c;
    fgi_rc rc = begin(&c, r, gains, room);
    if (rc) return rc;
    maxima free_ones[2], decided[2]; /* by what the variable itself adds; those that are on lack one of n_on */
    for (int given = 0; given < 2; given++) {
        free_ones[given] = maxima_of(&c, c.n_on, given, room);
        decided[given] = c.n_on ? maxima_of(&c, c.n_on - 1, given, room) : free_ones[given];
    }
    if (room->arena.failed) return FGI_NO_MEMORY;
    for (int32_t k = 0; k < c.n_free; k++) {
        const ranked one = c.order[k];
        const double base = c.base - c.choices[one.variable].gain[0];
        double by_add[2];
        for (int given = 0; given < 2; given++)
            by_add[given] = base + fgi_larger(free_ones[given].before[k], free_ones[given].after[k + 1] - one.more);
        write_row(&c, one.variable, by_add, out);
    }
    for (int32_t k = 0; k < r->base.n; k++) {
        const choice *one = &c.choices[k];
        const int on = one->label[0] < 0;
        if (!on && one->label[1] >= 0) continue;
        double by_add[2];
        for (int given = 0; given < 2; given++)
            by_add[given] = c.base - one->gain[on] + (on ? decided : free_ones)[given].before[c.n_free];
        write_row(&c, k, by_add, out);
    }
    room->work += r->base.begin[r->base.n];
    return FGI_OK;
}
