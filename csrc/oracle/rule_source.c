/* oracle/rule_source.c - a constraint as a source: the best state is its own algorithm's (rules/), others follow by
 * Lawler's division. The states other than the best one fall into sets, in each of which the labels before some
 * variable are those of the best and that variable has another one; the best of such a set is a question with fewer
 * labels. */
#include "oracle/internal.h"
#include "base/util.h"
#include "fginfer_rules.h"
#include "rules/rule.h"

/* A scan is for comparison; of more states it would take minutes. */
static const int64_t MOST_SCANNED = INT64_C(1) << 32;
static const double FORBIDDEN = 0x1p599; /* messages from here on forbid their labels */

typedef struct rule_source {
    fgi_source base;
    const fgi_rule *rule;
} rule_source;

static const fgi_rule *rule_of(const fgi_oracle_query *q) { return ((const rule_source *)q->source)->rule; }

static int32_t rule_arity(const fgi_oracle_query *q) { return rule_of(q)->n; }
static int32_t rule_card(const fgi_oracle_query *q, int32_t k) { return rule_of(q)->cards[k]; }

static fgi_rc rule_check(const fgi_oracle_query *q, fgi_error *err) {
    const fgi_rule *r = rule_of(q);
    if (!r->states && q->n_excluded)
        return fgi_fail(
            err, FGI_UNSUPPORTED, -1, "states of this rule have no numbers: there are too many to exclude some");
    if (q->path == FGI_BY_SCAN && (!r->states || r->states > MOST_SCANNED))
        return fgi_fail(err, FGI_UNSUPPORTED, -1, "this rule has too many states for a scan");
    return FGI_OK;
}

static void fill_gains(const fgi_oracle_query *q, double *gains) {
    const fgi_rule *r = rule_of(q);
    memset(gains, 0, (size_t)r->begin[r->n] * sizeof *gains);
    for (int32_t k = 0; q->messages && k < r->n; k++) {
        const fgi_message *m = &q->messages[k];
        for (int32_t l = 0; l < m->n; l++)
            gains[r->begin[k] + m->labels[l]] = m->values[l] >= FORBIDDEN ? -INFINITY : -m->values[l];
    }
}

/* The value of a state as a scan adds it up. */
static double value_of(const fgi_rule *r, const double *gains, const int32_t *labels) {
    double value = r->ops->score(r, labels);
    for (int32_t k = 0; k < r->n && value > -INFINITY; k++) value += gains[r->begin[k] + labels[k]];
    return value;
}

/* ---- the n best ------------------------------------------------------------------------------------------------ */

typedef struct found { /* the best state of a set: labels before `from` are given, some of `from` are not allowed */
    double value;
    int32_t from;
    int32_t *labels;
    int32_t n_taken; /* labels of variable `from` that are not allowed */
    int32_t *taken;
} found;

typedef struct division {
    const fgi_rule *rule;
    const double *gains;
    double *own; /* gains of the set at hand */
    fgi_arena arena;
    fgi_array sets; /* each is a `found` */
    int64_t work;
} division;

/* The best state of the set whose labels before `from` are as given, and of `from` none of those taken. */
static fgi_rc open_set(division *d, const int32_t *labels, int32_t from, int32_t n_taken, const int32_t *taken) {
    const fgi_rule *r = d->rule;
    found f = {.from = from, .n_taken = n_taken, .labels = fgi_take(&d->arena, r->n, int32_t)};
    int exists;
    double above;
    f.taken = fgi_arena_copy(&d->arena, taken, n_taken, sizeof *taken);
    if (d->arena.failed || !fgi_array_reserve(&d->sets, 1, sizeof f)) return FGI_NO_MEMORY;
    memcpy(d->own, d->gains, (size_t)r->begin[r->n] * sizeof *d->own);
    for (int32_t k = 0; k < from; k++)
        for (int32_t a = 0; a < r->cards[k]; a++)
            if (a != labels[k]) d->own[r->begin[k] + a] = -INFINITY;
    for (int32_t k = 0; k < n_taken; k++) d->own[r->begin[from] + taken[k]] = -INFINITY;
    const fgi_rc rc = fgi_rule_best(r, d->own, f.labels, &exists, &above, &d->work);
    if (rc || !exists) return rc;
    f.value = value_of(r, d->gains, f.labels);
    if (f.value != f.value) return FGI_NO_MEMORY; /* a score is no number when an automaton had no memory */
    ((found *)d->sets.at)[d->sets.n++] = f;
    return FGI_OK;
}

/* The set with the best state; among equal values the lowest state. */
static found take_best(division *d) {
    found *sets = d->sets.at;
    int64_t best = 0;
    for (int64_t k = 1; k < d->sets.n; k++)
        if (sets[k].value > sets[best].value ||
            (sets[k].value == sets[best].value && fgi_rule_is_lower(d->rule, sets[k].labels, sets[best].labels)))
            best = k;
    const found out = sets[best];
    sets[best] = sets[--d->sets.n];
    return out;
}

/* The rest of a set without its best state. */
static fgi_rc divide(division *d, const found *f) {
    const fgi_rule *r = d->rule;
    fgi_rc rc = FGI_OK;
    int32_t *taken = fgi_take(&d->arena, (int64_t)r->max_card + 1, int32_t);
    if (d->arena.failed) return FGI_NO_MEMORY;
    for (int32_t k = f->from; !rc && k < r->n; k++) {
        const int32_t n = k == f->from ? f->n_taken : 0;
        if (n) memcpy(taken, f->taken, (size_t)n * sizeof *taken);
        taken[n] = f->labels[k];
        if (n + 1 < r->cards[k]) rc = open_set(d, f->labels, k, n + 1, taken);
    }
    return rc;
}

static void hand_out(
    const fgi_oracle_query *q, const fgi_rule *r, const int32_t *labels, double value, fgi_best *best) {
    if (q->labels) memcpy(q->labels + best->n * r->n, labels, (size_t)r->n * sizeof *labels);
    best->items[best->n++] = (fgi_argmax){fgi_rule_number(r, labels), value};
}

/* All answers at once. */
static fgi_rc rule_search(const fgi_oracle_query *q, fgi_oracle_scratch *w, fgi_best *best) {
    const fgi_rule *r = rule_of(q);
    if (best->n > 0) return FGI_OK;
    division d = {.rule = r};
    double *gains = fgi_take(&d.arena, r->begin[r->n], double);
    d.own = fgi_take(&d.arena, r->begin[r->n], double);
    fgi_rc rc = d.arena.failed ? FGI_NO_MEMORY : FGI_OK;
    if (!rc) {
        fill_gains(q, gains);
        d.gains = gains;
        rc = open_set(&d, NULL, 0, 0, NULL);
    }
    while (!rc && d.sets.n > 0 && best->n < best->capacity) {
        const found f = take_best(&d);
        if (!r->states || !fgi_is_banned(w, fgi_rule_number(r, f.labels))) hand_out(q, r, f.labels, f.value, best);
        if (best->n < best->capacity) rc = divide(&d, &f);
    }
    for (int64_t k = best->n * r->n; !rc && q->labels && k < best->capacity * r->n; k++) q->labels[k] = -1;
    w->touched += d.work;
    fgi_array_free(&d.sets);
    fgi_arena_free(&d.arena);
    return rc; /* FGI_UNSUPPORTED: the scan may do it */
}

static fgi_rc rule_scan(const fgi_oracle_query *q, fgi_oracle_scratch *w, fgi_best *best) {
    const fgi_rule *r = rule_of(q);
    if (!r->states || r->states > MOST_SCANNED) return FGI_UNSUPPORTED; /* a search has given up */
    double *gains = fgi_alloc(r->begin[r->n], sizeof *gains);
    int32_t *labels = fgi_calloc(r->n, sizeof *labels);
    fgi_rc rc = gains && labels ? FGI_OK : FGI_NO_MEMORY;
    if (!rc) fill_gains(q, gains);
    for (int64_t s = 0; !rc && s < r->states; s++) {
        const double value = value_of(r, gains, labels);
        if (value != value) rc = FGI_NO_MEMORY;
        else if (!fgi_is_banned(w, s)) fgi_best_offer(best, s, value);
        for (int32_t k = r->n - 1; k >= 0 && ++labels[k] == r->cards[k]; k--) labels[k] = 0;
    }
    w->touched += r->states;
    for (int64_t k = 0; !rc && q->labels && k < best->capacity * r->n; k++) q->labels[k] = -1;
    for (int64_t k = 0; !rc && q->labels && k < best->n; k++)
        fgi_rule_labels(r, best->items[k].state, q->labels + k * r->n);
    free(gains);
    free(labels);
    return rc;
}

static int never_prefers_scan(const fgi_oracle_query *q) {
    (void)q;
    return 0;
}

static fgi_rc rule_marginals(const fgi_oracle_query *q, int32_t variable, fgi_oracle_scratch *w, double *out) {
    const fgi_rule *r = rule_of(q);
    fgi_arena arena = {0};
    int64_t work = 0;
    double *gains = fgi_take(&arena, r->begin[r->n], double), *all = fgi_take(&arena, r->begin[r->n], double);
    fgi_rc rc = arena.failed ? FGI_NO_MEMORY : FGI_OK;
    if (!rc) {
        fill_gains(q, gains);
        rc = fgi_rule_marginals(r, gains, all, &work);
    }
    if (!rc) memcpy(out, all + r->begin[variable], (size_t)r->cards[variable] * sizeof *out);
    w->touched += work;
    fgi_arena_free(&arena);
    return rc;
}

static const fgi_source_ops rule_ops = {.arity = rule_arity,
    .card = rule_card,
    .check = rule_check,
    .search = rule_search,
    .scan = rule_scan,
    .prefers_scan = never_prefers_scan,
    .marginals = rule_marginals};

fgi_rc fgi_rule_source_create(const fgi_rule *r, fgi_source **out, fgi_error *err) {
    rule_source *source = fgi_calloc(1, sizeof *source);
    if (!source) return fgi_no_memory(err);
    *source = (rule_source){{&rule_ops}, fgi_rule_share(r)};
    *out = &source->base;
    return FGI_OK;
}

void fgi_rule_source_free(fgi_source *source) {
    if (source) fgi_rule_free(((rule_source *)source)->rule);
    free(source);
}
