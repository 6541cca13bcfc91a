/* rules/automaton.c - a weighted automaton reads the labels in order: dynamic programming over its states.
 *
 * ahead[p][s] is the best that positions p, p + 1, ... bring from state s on. A sequence may have several paths; the
 * lowest of the best sequences is found by walking with the best of the paths to every state at once. */
#include "rules/rule.h"

/* Invariants: arcs are in the order of their labels, first[l] .. first[l + 1] - 1 those of a label l that a variable
 * has; given has n_positions entries, of which base.n are -1. */
typedef struct automaton {
    fgi_rule base;
    int32_t n_states;
    int64_t n_arcs, n_positions;
    fgi_arc *arcs;
    int64_t *first; /* where the arcs of a label begin */
    double *end;
    int32_t *given;
} automaton;

typedef struct range {
    int64_t from, to;
} range;

/* The first arc of this label or a later one. */
static int64_t first_arc(const automaton *r, int64_t label) {
    int64_t low = 0, high = r->n_arcs;
    if (label <= r->base.max_card) return r->first[label];
    while (low < high) {
        const int64_t mid = low + (high - low) / 2;
        if (r->arcs[mid].label < label) low = mid + 1;
        else high = mid;
    }
    return low;
}

static range arcs_of(const automaton *r, int32_t label) {
    return (range){first_arc(r, label), first_arc(r, (int64_t)label + 1)};
}

/* after = the best ways from `before` by one label. */
static void step(const automaton *r, int32_t label, const double *before, double *after) {
    const range own = arcs_of(r, label);
    for (int32_t s = 0; s < r->n_states; s++) after[s] = -INFINITY;
    for (int64_t k = own.from; k < own.to; k++) {
        const fgi_arc *arc = &r->arcs[k];
        after[arc->to] = fgi_larger(after[arc->to], before[arc->from] + arc->score);
    }
}

static void begin_paths(const automaton *r, double *at) {
    for (int32_t s = 0; s < r->n_states; s++) at[s] = s == 0 ? 0 : -INFINITY;
}

static double automaton_score(const fgi_rule *rule, const int32_t *labels) {
    const automaton *r = (const automaton *)rule;
    double few[2][32], *both[2] = {few[0], few[1]}, *more = NULL;
    double best = -INFINITY;
    if (r->n_states > 32) {
        more = fgi_alloc(2 * (int64_t)r->n_states, sizeof *more);
        if (!more) return NAN; /* whoever asks sees a score that is none */
        both[0] = more;
        both[1] = more + r->n_states;
    }
    begin_paths(r, both[0]);
    for (int64_t p = 0, k = 0; p < r->n_positions; p++) {
        const int32_t label = r->given[p] >= 0 ? r->given[p] : labels[k++];
        step(r, label, both[p % 2], both[1 - p % 2]);
    }
    for (int32_t s = 0; s < r->n_states; s++) best = fgi_larger(best, both[r->n_positions % 2][s] + r->end[s]);
    free(more);
    return best;
}

/* ahead, a row for each position and one for the end. */
static double *look_ahead(const automaton *r, const double *gains, fgi_rule_room *room) {
    double *ahead = fgi_take(&room->arena, (r->n_positions + 1) * r->n_states, double);
    if (room->arena.failed) return NULL;
    memcpy(ahead + r->n_positions * r->n_states, r->end, (size_t)r->n_states * sizeof *ahead);
    for (int64_t p = r->n_positions - 1, k = r->base.n; p >= 0; p--) {
        const int is_free = r->given[p] < 0;
        double *here = ahead + p * r->n_states;
        const double *next = here + r->n_states;
        k -= is_free;
        for (int32_t s = 0; s < r->n_states; s++) here[s] = -INFINITY;
        const int32_t from = is_free ? 0 : r->given[p], to = is_free ? r->base.cards[k] : from + 1;
        for (int32_t l = from; l < to; l++) {
            const double gain = is_free ? fgi_rule_gains(&r->base, gains, (int32_t)k)[l] : 0;
            if (gain == -INFINITY) continue;
            const range own = arcs_of(r, l);
            for (int64_t e = own.from; e < own.to; e++) {
                const fgi_arc *arc = &r->arcs[e];
                here[arc->from] = fgi_larger(here[arc->from], gain + arc->score + next[arc->to]);
            }
            room->work += own.to - own.from;
        }
    }
    return ahead;
}

/* The best over paths by one label, its gain left out. */
static double through(const automaton *r, int32_t label, const double *before, const double *next) {
    double best = -INFINITY;
    for (int64_t e = r->first[label]; e < r->first[label + 1]; e++) {
        const fgi_arc *arc = &r->arcs[e];
        best = fgi_larger(best, before[arc->from] + arc->score + next[arc->to]);
    }
    return best;
}

static fgi_rc automaton_best(
    const fgi_rule *rule, const double *gains, fgi_rule_room *room, int32_t *labels, int *found) {
    const automaton *r = (const automaton *)rule;
    const double *ahead = look_ahead(r, gains, room);
    double *before = fgi_take(&room->arena, r->n_states, double), *after = fgi_take(&room->arena, r->n_states, double);
    if (room->arena.failed) return FGI_NO_MEMORY;
    *found = ahead[0] > -INFINITY;
    begin_paths(r, before);
    for (int64_t p = 0, k = 0; *found && p < r->n_positions; p++) {
        int32_t label = r->given[p];
        if (label < 0) {
            const double *gain = fgi_rule_gains(rule, gains, (int32_t)k);
            double best = -INFINITY;
            for (int32_t l = 0; l < rule->cards[k]; l++) {
                if (gain[l] == -INFINITY) continue;
                const double value = gain[l] + through(r, l, before, ahead + (p + 1) * r->n_states);
                if (!(value > best)) continue;
                best = value;
                label = l;
            }
            fgi_assert(label >= 0);
            labels[k++] = label;
        }
        step(r, label, before, after);
        double *turn = before;
        before = after;
        after = turn;
    }
    return FGI_OK;
}

static fgi_rc automaton_marginals(const fgi_rule *rule, const double *gains, fgi_rule_room *room, double *out) {
    const automaton *r = (const automaton *)rule;
    const double *ahead = look_ahead(r, gains, room);
    double *before = fgi_take(&room->arena, r->n_states, double), *after = fgi_take(&room->arena, r->n_states, double);
    if (room->arena.failed) return FGI_NO_MEMORY;
    begin_paths(r, before);
    for (int64_t p = 0, k = 0; p < r->n_positions; p++) {
        if (r->given[p] >= 0) {
            step(r, r->given[p], before, after);
        } else {
            for (int32_t s = 0; s < r->n_states; s++) after[s] = -INFINITY;
            for (int32_t l = 0; l < rule->cards[k]; l++) {
                const double gain = gains[rule->begin[k] + l];
                out[rule->begin[k] + l] = through(r, l, before, ahead + (p + 1) * r->n_states);
                for (int64_t e = r->first[l]; gain > -INFINITY && e < r->first[l + 1]; e++) {
                    const fgi_arc *arc = &r->arcs[e];
                    after[arc->to] = fgi_larger(after[arc->to], before[arc->from] + gain + arc->score);
                }
                room->work += r->first[l + 1] - r->first[l];
            }
            k++;
        }
        double *turn = before;
        before = after;
        after = turn;
    }
    return FGI_OK;
}

static const fgi_rule_ops automaton_ops = {
    .kind = "automaton", .best = automaton_best, .marginals = automaton_marginals, .score = automaton_score};

/* ---- making it ------------------------------------------------------------------------------------------------- */

static int by_label(const void *a, const void *b) {
    const fgi_arc *x = a, *y = b;
    if (x->label != y->label) return x->label < y->label ? -1 : 1;
    if (x->from != y->from) return x->from < y->from ? -1 : 1;
    return x->to < y->to ? -1 : x->to > y->to;
}

static fgi_rc check(const automaton *r, fgi_error *err) {
    int64_t n_free = 0;
    for (int64_t k = 0; k < r->n_arcs; k++) {
        const fgi_arc *arc = &r->arcs[k];
        if (arc->from < 0 || arc->from >= r->n_states || arc->to < 0 || arc->to >= r->n_states || arc->label < 0)
            return fgi_fail(
                err, FGI_BAD_ARGUMENT, k, "arc %lld names a state or label that there is not", (long long)k);
        if (!(arc->score < INFINITY))
            return fgi_fail(err, FGI_BAD_ARGUMENT, k, "the score of arc %lld is NaN or +inf", (long long)k);
    }
    for (int32_t s = 0; s < r->n_states; s++)
        if (!(r->end[s] < INFINITY)) return fgi_fail(err, FGI_BAD_ARGUMENT, s, "the score of ending in %d is none", s);
    for (int64_t p = 0; p < r->n_positions; p++) {
        n_free += r->given[p] == -1;
        if (r->given[p] < -1) return fgi_fail(err, FGI_BAD_ARGUMENT, p, "a given label is -1, or 0 or more");
    }
    if (n_free != r->base.n)
        return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "%lld positions are free, and there are %d variables",
            (long long)n_free, r->base.n);
    return FGI_OK;
}

static double finite_size(double x) { return x > -INFINITY ? fabs(x) : 0; }

/* The arcs by label, where each begins, the magnitude and the grain; 0: no memory. */
static int index_arcs(automaton *r) {
    double arc = 0, end = 0;
    qsort(r->arcs, (size_t)r->n_arcs, sizeof *r->arcs, by_label);
    const int64_t n = r->base.max_card;
    r->first = fgi_take_zero(&r->base.arena, n + 1, int64_t);
    if (r->base.arena.failed) return 0;
    for (int64_t k = 0; k < r->n_arcs && r->arcs[k].label < n; k++) r->first[r->arcs[k].label + 1]++;
    for (int64_t l = 0; l < n; l++) r->first[l + 1] += r->first[l];
    for (int64_t k = 0; k < r->n_arcs; k++) arc = fgi_larger(arc, finite_size(r->arcs[k].score));
    for (int32_t s = 0; s < r->n_states; s++) end = fgi_larger(end, finite_size(r->end[s]));
    r->base.magnitude = arc * (double)r->n_positions + end;
    r->base.grain = INFINITY;
    for (int64_t k = 0; k < r->n_arcs; k++) r->base.grain = fgi_rule_grain(r->base.grain, r->arcs[k].score);
    for (int32_t s = 0; s < r->n_states; s++) r->base.grain = fgi_rule_grain(r->base.grain, r->end[s]);
    return 1;
}

fgi_rc fgi_rule_automaton(int32_t n, const int32_t *cards, int32_t n_states, int64_t n_arcs, const fgi_arc *arcs,
    const double *end, int64_t n_positions, const int32_t *given, fgi_rule **out, fgi_error *err) {
    fgi_rc rc = FGI_OK;
    if (n_states < 1 || n_arcs < 0 || n_positions < n)
        return fgi_fail(
            err, FGI_BAD_ARGUMENT, -1, "an automaton has a state or more, and as many positions as variables");
    automaton *r = fgi_rule_begin(&automaton_ops, sizeof *r, n, cards, &rc, err);
    if (!r) return rc;
    r->n_states = n_states;
    r->n_arcs = n_arcs;
    r->n_positions = n_positions;
    r->arcs = fgi_arena_copy(&r->base.arena, arcs, n_arcs, sizeof *arcs);
    r->end = fgi_arena_copy(&r->base.arena, end, n_states, sizeof *end);
    r->given = fgi_arena_copy(&r->base.arena, given, n_positions, sizeof *given);
    if (!r->base.arena.failed && !(rc = check(r, err)) && index_arcs(r) && r->base.magnitude == INFINITY)
        rc = fgi_fail(err, FGI_BAD_ARGUMENT, -1, "the score of the longest path overflows");
    if (!rc) return fgi_rule_end(&r->base, out, err);
    fgi_rule_free(&r->base);
    return rc;
}
