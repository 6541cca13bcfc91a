/* rules/sparse.c - listed states with their scores, and one score for all others.
 *
 * Listed states are looked at one by one. A state that is not listed leaves the tree of the listed ones somewhere: it
 * shares the labels before with some of them, has a label there that none of these has, and is free from there on. So
 * the best one is found by a walk over the tree, whose rows are the states in order. */
#include "rules/rule.h"

/* Invariants: the rows ascend and are distinct; first[j] is the depth at which row j differs from row j - 1. */
typedef struct sparse {
    fgi_rule base;
    int64_t n_rows;
    int32_t *states;
    double *scores;
    double otherwise;
    int32_t *first;
} sparse;

/* A sum that counts how many of its terms are -INFINITY: one of them can be taken off again. */
typedef struct tally_sum {
    double finite;
    int32_t forbidden;
} tally_sum;

static tally_sum with(tally_sum s, double x) {
    if (x == -INFINITY) s.forbidden++;
    else s.finite += x;
    return s;
}

static tally_sum without(tally_sum s, double x) {
    if (x == -INFINITY) s.forbidden--;
    else s.finite -= x;
    return s;
}

static double value_of(tally_sum s) { return s.forbidden ? -INFINITY : s.finite; }

static const int32_t *row_of(const sparse *r, int64_t j) { return r->states + j * r->base.n; }

/* What both questions need: labels by gain, and the best that variables from k on bring. */
typedef struct walk {
    const sparse *rule;
    const double *gains;
    int32_t *sorted;   /* per variable, by descending gain, then by label */
    tally_sum *suffix; /* n + 1 */
} walk;

typedef struct gained {
    double gain;
    int32_t label;
} gained;

static int by_gain(const void *a, const void *b) {
    const gained *x = a, *y = b;
    if (x->gain != y->gain) return x->gain > y->gain ? -1 : 1;
    return x->label < y->label ? -1 : 1;
}

static fgi_rc begin(walk *w, const sparse *r, const double *gains, fgi_rule_room *room) {
    const fgi_rule *base = &r->base;
    *w = (walk){r, gains, fgi_take(&room->arena, base->begin[base->n], int32_t),
        fgi_take(&room->arena, (int64_t)base->n + 1, tally_sum)};
    gained *own = fgi_take(&room->arena, base->max_card, gained);
    if (room->arena.failed) return FGI_NO_MEMORY;
    w->suffix[base->n] = (tally_sum){0, 0};
    for (int32_t k = base->n - 1; k >= 0; k--) {
        const double *gain = fgi_rule_gains(base, gains, k);
        for (int32_t a = 0; a < base->cards[k]; a++) own[a] = (gained){gain[a], a};
        qsort(own, (size_t)base->cards[k], sizeof *own, by_gain);
        for (int32_t a = 0; a < base->cards[k]; a++) w->sorted[base->begin[k] + a] = own[a].label;
        w->suffix[k] = with(w->suffix[k + 1], own[0].gain);
    }
    room->work += r->n_rows * base->n;
    return FGI_OK;
}

/* Is there a row from..to - 1, which agree before `depth`, with this label there? They ascend. */
static int has_label(const sparse *r, int64_t from, int64_t to, int32_t depth, int32_t label) {
    while (from < to) {
        const int64_t mid = from + (to - from) / 2;
        const int32_t at = row_of(r, mid)[depth];
        if (at == label) return 1;
        if (at < label) from = mid + 1;
        else to = mid;
    }
    return 0;
}

/* The end of the rows that agree with row j up to and with `depth` - 1. */
static int64_t end_of(const sparse *r, int64_t j, int32_t depth) {
    int64_t to = j + 1;
    while (to < r->n_rows && r->first[to] >= depth) to++;
    return to;
}

/* A node of the tree: rows from..to - 1 share the labels before `depth`. */
typedef void (*visit)(void *context, const walk *w, int64_t from, int64_t to, int32_t depth, tally_sum prefix);

/* Every node once: a row begins those below the depth at which it differs from the one before. */
static void visit_nodes(const walk *w, visit body, void *context, fgi_rule_room *room) {
    const sparse *r = w->rule;
    if (r->n_rows == 0) body(context, w, 0, 0, 0, (tally_sum){0, 0});
    for (int64_t j = 0; j < r->n_rows; j++) {
        tally_sum prefix = {0, 0};
        for (int32_t depth = 0; depth < r->base.n; depth++) {
            if (j == 0 || depth > r->first[j]) body(context, w, j, end_of(r, j, depth), depth, prefix);
            prefix = with(prefix, fgi_rule_gains(&r->base, w->gains, depth)[row_of(r, j)[depth]]);
        }
        room->work += r->base.n;
    }
}

/* ---- the best state -------------------------------------------------------------------------------------------- */

typedef struct leaving { /* a state that is not listed: row's labels, then `label`, then the best ones */
    double value;
    int64_t row;
    int32_t depth, label;
} leaving;

static void write_leaving(const walk *w, const leaving *best, int32_t *labels) {
    const fgi_rule *base = &w->rule->base;
    for (int32_t k = 0; k < base->n; k++) {
        if (k < best->depth) labels[k] = row_of(w->rule, best->row)[k];
        else labels[k] = k == best->depth ? best->label : w->sorted[base->begin[k]];
    }
}

typedef struct search {
    leaving best;
    int32_t *labels, *other;
} search;

static void look_for_best(void *context, const walk *w, int64_t from, int64_t to, int32_t depth, tally_sum prefix) {
    search *s = context;
    const fgi_rule *base = &w->rule->base;
    for (int32_t k = 0; k < base->cards[depth]; k++) {
        const int32_t label = w->sorted[base->begin[depth] + k];
        if (has_label(w->rule, from, to, depth, label)) continue;
        const tally_sum rest = w->suffix[depth + 1];
        const tally_sum sum = with(prefix, fgi_rule_gains(base, w->gains, depth)[label]);
        const double value = value_of((tally_sum){sum.finite + rest.finite, sum.forbidden + rest.forbidden});
        if (value == -INFINITY || value < s->best.value) return;
        const leaving found = {value, from, depth, label};
        int32_t *into = value > s->best.value ? s->labels : s->other;
        write_leaving(w, &found, into);
        if (into == s->other && fgi_rule_is_lower(base, s->other, s->labels))
            memcpy(s->labels, s->other, (size_t)base->n * sizeof *s->labels);
        s->best.value = value;
        return;
    }
}

static fgi_rc sparse_best(const fgi_rule *rule, const double *gains, fgi_rule_room *room, int32_t *labels, int *found) {
    const sparse *r = (const sparse *)rule;
    walk w;
    fgi_rc rc = begin(&w, r, gains, room);
    search s = {{-INFINITY, 0, 0, 0}, labels, fgi_take(&room->arena, rule->n, int32_t)};
    if (rc || room->arena.failed) return FGI_NO_MEMORY;
    if (r->otherwise > -INFINITY) visit_nodes(&w, look_for_best, &s, room);
    double best = s.best.value + (s.best.value > -INFINITY ? r->otherwise : 0);
    for (int64_t j = 0; j < r->n_rows; j++) {
        const int32_t *row = row_of(r, j);
        tally_sum sum = with((tally_sum){0, 0}, r->scores[j]);
        for (int32_t k = 0; k < rule->n; k++) sum = with(sum, fgi_rule_gains(rule, gains, k)[row[k]]);
        const double value = value_of(sum);
        if (value == -INFINITY || value < best || (value == best && !fgi_rule_is_lower(rule, row, labels))) continue;
        best = value;
        memcpy(labels, row, (size_t)rule->n * sizeof *labels);
    }
    *found = best > -INFINITY;
    return FGI_OK;
}

/* ---- max-marginals --------------------------------------------------------------------------------------------- */

typedef struct marginals {
    double *out;
    double *beyond; /* per depth: the best of prefix and a label of their own, over the nodes there */
    double *own;    /* the same with the label's gain left out, by label: what is at the depth itself */
} marginals;

static void lift(double *at, double value) { *at = fgi_larger(*at, value); }

static void collect(void *context, const walk *w, int64_t from, int64_t to, int32_t depth, tally_sum prefix) {
    marginals *m = context;
    const fgi_rule *base = &w->rule->base;
    const double *gain = fgi_rule_gains(base, w->gains, depth);
    const tally_sum rest = w->suffix[depth + 1];
    double best = -INFINITY; /* the best gain of a label that none of the rows has */
    for (int32_t a = 0; a < base->cards[depth]; a++) {
        if (has_label(w->rule, from, to, depth, a)) continue;
        lift(&best, gain[a]);
        lift(&m->own[base->begin[depth] + a], prefix.forbidden ? -INFINITY : prefix.finite);
    }
    if (!prefix.forbidden) lift(&m->beyond[depth], prefix.finite + best);
    /* Labels on the way here: each without its own gain. */
    if (best == -INFINITY || rest.forbidden) return;
    for (int32_t k = 0; k < depth; k++) {
        const int32_t a = row_of(w->rule, from)[k];
        const double others = value_of(without(prefix, fgi_rule_gains(base, w->gains, k)[a]));
        lift(&m->out[base->begin[k] + a], others + best + rest.finite + w->rule->otherwise);
    }
}

/* The labels of variables at and behind the depth where a state leaves the tree. */
static void spread(const walk *w, marginals *m) {
    const fgi_rule *base = &w->rule->base;
    double before = -INFINITY; /* the best of states that have left the tree, up to variable k */
    for (int32_t k = 0; k < base->n; k++) {
        const double rest = value_of(w->suffix[k + 1]);
        const double top = fgi_rule_gains(base, w->gains, k)[w->sorted[base->begin[k]]];
        for (int64_t a = base->begin[k]; a < base->begin[k + 1]; a++)
            lift(&m->out[a], fgi_larger(before, m->own[a]) + rest + w->rule->otherwise);
        before = fgi_larger(before + top, m->beyond[k]);
    }
}

static fgi_rc sparse_marginals(const fgi_rule *rule, const double *gains, fgi_rule_room *room, double *out) {
    const sparse *r = (const sparse *)rule;
    walk w;
    fgi_rc rc = begin(&w, r, gains, room);
    marginals m = {out, fgi_take(&room->arena, rule->n, double), fgi_take(&room->arena, rule->begin[rule->n], double)};
    if (rc || room->arena.failed) return FGI_NO_MEMORY;
    for (int32_t k = 0; k < rule->n; k++) m.beyond[k] = -INFINITY;
    for (int64_t a = 0; a < rule->begin[rule->n]; a++) m.own[a] = -INFINITY;
    if (r->otherwise > -INFINITY) {
        visit_nodes(&w, collect, &m, room);
        spread(&w, &m);
    }
    for (int64_t j = 0; j < r->n_rows; j++) {
        tally_sum sum = with((tally_sum){0, 0}, r->scores[j]);
        for (int32_t k = 0; k < rule->n; k++) sum = with(sum, fgi_rule_gains(rule, gains, k)[row_of(r, j)[k]]);
        for (int32_t k = 0; k < rule->n; k++) {
            const int64_t at = rule->begin[k] + row_of(r, j)[k];
            lift(&out[at], value_of(without(sum, gains[at])));
        }
    }
    return FGI_OK;
}

/* ---- scores and making it -------------------------------------------------------------------------------------- */

static double sparse_score(const fgi_rule *rule, const int32_t *labels) {
    const sparse *r = (const sparse *)rule;
    int64_t low = 0, high = r->n_rows;
    while (low < high) {
        const int64_t mid = low + (high - low) / 2;
        if (fgi_rule_is_lower(rule, row_of(r, mid), labels)) low = mid + 1;
        else high = mid;
    }
    const int same = low < r->n_rows && memcmp(row_of(r, low), labels, (size_t)rule->n * sizeof *labels) == 0;
    return same ? r->scores[low] : r->otherwise;
}

static const fgi_rule_ops sparse_ops = {
    .kind = "sparse", .best = sparse_best, .marginals = sparse_marginals, .score = sparse_score};

/* Merge sort of the rows' numbers: qsort has no context for the arity. */
static void sort_rows(const sparse *r, const int32_t *states, int64_t *order, int64_t *spare, int64_t n) {
    if (n < 2) return;
    const int64_t half = n / 2;
    sort_rows(r, states, order, spare, half);
    sort_rows(r, states, order + half, spare, n - half);
    memcpy(spare, order, (size_t)half * sizeof *spare);
    for (int64_t i = 0, j = half, k = 0; i < half; k++) {
        const int takes_right =
            j < n && fgi_rule_is_lower(&r->base, states + order[j] * r->base.n, states + spare[i] * r->base.n);
        order[k] = takes_right ? order[j++] : spare[i++];
    }
}

static fgi_rc check(const sparse *r, int64_t n_rows, const int32_t *states, const double *scores, fgi_error *err) {
    const int32_t n = r->base.n;
    if (!(r->otherwise < INFINITY))
        return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "the score of other states is NaN or +inf");
    for (int64_t j = 0; j < n_rows; j++) {
        if (!(scores[j] < INFINITY))
            return fgi_fail(err, FGI_BAD_ARGUMENT, j, "score %lld is NaN or +inf", (long long)j);
        for (int32_t k = 0; k < n; k++)
            if (states[j * n + k] < 0 || states[j * n + k] >= r->base.cards[k])
                return fgi_fail(err, FGI_BAD_ARGUMENT, j, "state %lld: label %d of variable %d is out of range",
                    (long long)j, states[j * n + k], k);
    }
    return FGI_OK;
}

/* Copies the rows in order; FGI_BAD_ARGUMENT if one is there twice. */
static fgi_rc fill_rows(sparse *r, int64_t n_rows, const int32_t *states, const double *scores, fgi_error *err) {
    const int32_t n = r->base.n;
    fgi_arena own = {0};
    int64_t *order = fgi_take(&own, n_rows, int64_t), *spare = fgi_take(&own, n_rows, int64_t), entries;
    r->states = fgi_take(&r->base.arena, fgi_mul(n_rows, n, &entries) ? entries : -1, int32_t);
    r->scores = fgi_take(&r->base.arena, n_rows, double);
    r->first = fgi_take(&r->base.arena, n_rows, int32_t);
    fgi_rc rc = own.failed || r->base.arena.failed ? fgi_no_memory(err) : FGI_OK;
    for (int64_t j = 0; !rc && j < n_rows; j++) order[j] = j;
    if (!rc) sort_rows(r, states, order, spare, n_rows);
    r->base.grain = fgi_rule_grain(INFINITY, r->otherwise);
    for (int64_t j = 0; !rc && j < n_rows; j++) {
        memcpy(r->states + j * n, states + order[j] * n, (size_t)n * sizeof *states);
        r->scores[j] = scores[order[j]];
        r->base.magnitude = fgi_larger(r->base.magnitude, r->scores[j] > -INFINITY ? fabs(r->scores[j]) : 0);
        r->base.grain = fgi_rule_grain(r->base.grain, r->scores[j]);
        r->first[j] = 0;
        while (j > 0 && r->first[j] < n && row_of(r, j)[r->first[j]] == row_of(r, j - 1)[r->first[j]]) r->first[j]++;
        if (r->first[j] == n)
            rc = fgi_fail(err, FGI_BAD_ARGUMENT, order[j], "state %lld is listed twice", (long long)order[j]);
    }
    r->n_rows = n_rows;
    fgi_arena_free(&own);
    return rc;
}

fgi_rc fgi_rule_sparse(int32_t n, const int32_t *cards, int64_t n_states, const int32_t *states, const double *scores,
    double otherwise, fgi_rule **out, fgi_error *err) {
    fgi_rc rc = FGI_OK;
    if (n_states < 0) return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "there cannot be %lld states", (long long)n_states);
    sparse *r = fgi_rule_begin(&sparse_ops, sizeof *r, n, cards, &rc, err);
    if (!r) return rc;
    r->otherwise = otherwise;
    if (otherwise > -INFINITY) r->base.magnitude = fabs(otherwise);
    rc = check(r, n_states, states, scores, err);
    if (!rc) rc = fill_rows(r, n_states, states, scores, err);
    if (!rc) return fgi_rule_end(&r->base, out, err);
    fgi_rule_free(&r->base);
    return rc;
}
