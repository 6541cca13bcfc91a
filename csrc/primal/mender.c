/* primal/mender.c - labelings of tables and rules together: mended where rules are violated, then improved.
 *
 * Tables are followed by an fgi_labeling, rules by tallies: what a change of label does to each is the fourth question
 * of fginfer_rules.h, so that no kind of rule is known here. A rule that forbids comes with a second one that measures
 * the excess, 0 where it is obeyed and less the further from it: a change is a step towards a feasible labeling if it
 * makes the excess smaller.
 *
 *   mend      of the changes that lessen the excess, those that cost least by scores and prices come first
 *   improve   every variable takes its best label that adds no excess
 *   eject     a variable is forced to another label, and the rest is mended around it; undone if that gains nothing
 *
 * Invariants: over is the sum of the excesses of all tallies; tallies and labeling have the same labels. */
#include <math.h>
#include <string.h>
#include "base/array.h"
#include "primal/labeling.h"
#include "rules/rule.h"

static const double NONE = 1e-9; /* excess below this is rounding */
enum { ROUNDS = 1000 };          /* rounds of a mending of all rules (chosen) */
enum { FEW_ROUNDS = 6 };         /* rounds of a mending around a forced label (chosen) */
enum { TALLY_WORK = 8 };         /* operations a question (chosen) */
enum { MOST_LABELS = 64 };       /* labels tried by an ejection (chosen) */

typedef struct use { /* a rule that has the variable, and its place there */
    int32_t rule, at;
} use;

typedef struct change { /* what a change of label does */
    double score, over; /* over: excess of rules, and forbidden entries of tables */
} change;

typedef struct step {
    double value;
    int32_t variable, label;
} step;

struct fgi_mender {
    fgi_model *model; /* a snapshot */
    fgi_labeling *local;
    int32_t n_rules;
    const fgi_rule **rules, **excess; /* excess[k] NULL: the rule forbids nothing, or has no measure of it */
    int64_t *begin;                   /* by rule: its variables in vars */
    int32_t *vars;
    int64_t *use_begin; /* by variable */
    use *uses;
    fgi_tally **score, **beyond;
    const double *prices; /* added to the scores of labels when steps are chosen; NULL: none */
    double over;
    int64_t work, most; /* operations of tallies so far; the most of all */
    int64_t before;     /* operations of the labeling before the run */
    fgi_rng rng;
    fgi_array steps; /* step */
    fgi_array undo;  /* step: what an ejection has changed, with the labels before */
    int keeps_undo;
    int32_t held;          /* a variable that must not change; -1: none */
    int64_t *asked, round; /* by variable: the last round of proposals that it was part of */
    int32_t *best;
    double best_score;
    fgi_arena arena;
};

static int has_work(const fgi_mender *s) { return s->work + fgi_labeling_operations(s->local) - s->before < s->most; }

/* ---- what a change does ---------------------------------------------------------------------------------------- */

static double finite_or_zero(double x) { return x > -INFINITY ? x : 0; }

static double excess_of(const fgi_tally *score, const fgi_tally *beyond) {
    return beyond ? -fgi_tally_score(beyond) : fgi_tally_score(score) == -INFINITY;
}

static change effect_of(fgi_mender *s, int32_t v, int32_t label) {
    const int32_t *forbidden, now = fgi_labeling_labels(s->local)[v];
    const double *scores = fgi_labeling_label_scores(s->local, v, &forbidden);
    change c = {scores[label] - scores[now], forbidden ? forbidden[label] - forbidden[now] : 0};
    for (int64_t k = s->use_begin[v]; k < s->use_begin[v + 1]; k++) {
        const use *u = &s->uses[k];
        fgi_tally *score = s->score[u->rule], *beyond = s->beyond[u->rule];
        const double after = fgi_tally_after(score, 1, &u->at, &label);
        c.score += finite_or_zero(after) - finite_or_zero(fgi_tally_score(score));
        c.over -= excess_of(score, beyond);
        c.over += beyond ? -fgi_tally_after(beyond, 1, &u->at, &label) : after == -INFINITY;
    }
    s->work += 1 + TALLY_WORK * (s->use_begin[v + 1] - s->use_begin[v]);
    return c;
}

static double price_of(const fgi_mender *s, int32_t v, int32_t label) {
    if (!s->prices) return 0;
    const double *own = s->prices + s->model->s->unary_begin[v];
    return own[label] - own[fgi_labeling_labels(s->local)[v]];
}

static void move(fgi_mender *s, int32_t v, int32_t label) {
    if (s->keeps_undo && fgi_array_reserve(&s->undo, 1, sizeof(step)))
        ((step *)s->undo.at)[s->undo.n++] = (step){0, v, fgi_labeling_labels(s->local)[v]};
    fgi_labeling_flip(s->local, v, label);
    for (int64_t k = s->use_begin[v]; k < s->use_begin[v + 1]; k++) {
        const use *u = &s->uses[k];
        s->over -= excess_of(s->score[u->rule], s->beyond[u->rule]);
        fgi_tally_move(s->score[u->rule], 1, &u->at, &label);
        if (s->beyond[u->rule]) fgi_tally_move(s->beyond[u->rule], 1, &u->at, &label);
        s->over += excess_of(s->score[u->rule], s->beyond[u->rule]);
    }
}

static int is_feasible(const fgi_mender *s) { return s->over < NONE && fgi_labeling_violations(s->local) == 0; }

static double score_of(const fgi_mender *s) {
    double score = fgi_labeling_score(s->local);
    for (int32_t k = 0; k < s->n_rules; k++) score += finite_or_zero(fgi_tally_score(s->score[k]));
    return score;
}

static void keep_best(fgi_mender *s) {
    if (!is_feasible(s)) return;
    const double score = score_of(s);
    if (!(score > s->best_score)) return;
    s->best_score = score;
    memcpy(s->best, fgi_labeling_labels(s->local), (size_t)s->model->s->n_vars * sizeof *s->best);
}

/* ---- mending --------------------------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b) {
    const step *x = a, *y = b;
    if (x->value != y->value) return x->value > y->value ? -1 : 1;
    return x->variable < y->variable ? -1 : x->variable > y->variable;
}

/* The cheapest change of the variable that lessens the excess joins the list. */
static void propose(fgi_mender *s, int32_t v) {
    step found = {-INFINITY, v, -1};
    const int32_t now = fgi_labeling_labels(s->local)[v];
    if (v == s->held || s->asked[v] == s->round) return;
    s->asked[v] = s->round;
    for (int32_t a = 0; a < s->model->s->cards[v]; a++) {
        if (a == now) continue;
        const change c = effect_of(s, v, a);
        const double value = c.score + price_of(s, v, a);
        if (c.over < -NONE && value > found.value) found = (step){value, v, a};
    }
    if (found.label >= 0 && fgi_array_reserve(&s->steps, 1, sizeof found)) ((step *)s->steps.at)[s->steps.n++] = found;
}

static void propose_all(fgi_mender *s) {
    const int64_t n = s->model->s->n_vars;
    s->steps.n = 0;
    s->round++;
    for (int32_t k = 0; k < s->n_rules; k++) {
        if (excess_of(s->score[k], s->beyond[k]) < NONE) continue;
        for (int64_t at = s->begin[k]; at < s->begin[k + 1] && has_work(s); at++) propose(s, s->vars[at]);
    }
    if (fgi_labeling_violations(s->local) == 0) return;
    for (int32_t v = 0; v < n && has_work(s); v++) {
        const int32_t *forbidden;
        fgi_labeling_label_scores(s->local, v, &forbidden);
        s->work++;
        if (forbidden && forbidden[fgi_labeling_labels(s->local)[v]]) propose(s, v);
    }
}

/* Takes the steps in order, as long as they still lessen the excess and are worth as much as the next one. */
static int take_steps(fgi_mender *s) {
    const step *steps = s->steps.at;
    int taken = 0;
    for (int64_t k = 0; k < s->steps.n && !is_feasible(s); k++) {
        const step *t = &steps[k];
        if (fgi_labeling_labels(s->local)[t->variable] == t->label) continue;
        const change c = effect_of(s, t->variable, t->label);
        const double value = c.score + price_of(s, t->variable, t->label);
        if (!(c.over < -NONE) || (k + 1 < s->steps.n && value < steps[k + 1].value - NONE)) continue;
        move(s, t->variable, t->label);
        taken = 1;
    }
    return taken;
}

static int mend(fgi_mender *s, int rounds) {
    for (; rounds > 0 && !is_feasible(s) && has_work(s); rounds--) {
        propose_all(s);
        if (s->steps.n) qsort(s->steps.at, (size_t)s->steps.n, sizeof(step), by_value);
        if (!take_steps(s)) return 0;
    }
    return is_feasible(s);
}

/* ---- improving ------------------------------------------------------------------------------------------------- */

static int improve_variable(fgi_mender *s, int32_t v, double least) {
    const int32_t now = fgi_labeling_labels(s->local)[v];
    double most = least;
    int32_t label = -1;
    for (int32_t a = 0; a < s->model->s->cards[v]; a++) {
        if (a == now) continue;
        const change c = effect_of(s, v, a);
        if (c.over > NONE || !(c.score > most)) continue;
        most = c.score;
        label = a;
    }
    if (label >= 0) move(s, v, label);
    return label >= 0;
}

static void improve(fgi_mender *s) {
    const double least = fgi_labeling_tolerance(s->local, score_of(s));
    int changed = 1;
    while (changed && has_work(s)) {
        changed = 0;
        for (int32_t v = 0; v < s->model->s->n_vars && has_work(s); v++) changed |= improve_variable(s, v, least);
    }
}

/* The label that promises most, were it not for the rules; a look at some of them where there are very many. */
static int32_t label_to_force(fgi_mender *s, int32_t v) {
    const int32_t card = s->model->s->cards[v], now = fgi_labeling_labels(s->local)[v];
    const int32_t first = card > MOST_LABELS ? (int32_t)fgi_rng_below(&s->rng, card) : 0;
    double most = -INFINITY;
    int32_t label = -1;
    for (int32_t k = 0; k < card && k < MOST_LABELS; k++) {
        const int32_t a = (first + k) % card;
        const int32_t *forbidden;
        const double *scores = fgi_labeling_label_scores(s->local, v, &forbidden);
        const double value = scores[a] + (s->prices ? price_of(s, v, a) : 0) * fgi_rng_unit(&s->rng);
        if (a == now || (forbidden && forbidden[a] > forbidden[now]) || !(value > most)) continue;
        most = value;
        label = a;
    }
    return label;
}

static void undo(fgi_mender *s) {
    s->keeps_undo = 0;
    const step *steps = s->undo.at;
    for (int64_t k = s->undo.n - 1; k >= 0; k--) move(s, steps[k].variable, steps[k].label);
}

static void eject(fgi_mender *s, double least) {
    const int32_t v = (int32_t)fgi_rng_below(&s->rng, s->model->s->n_vars), label = label_to_force(s, v);
    const double before = score_of(s);
    s->work++;
    if (label < 0) return;
    s->undo.n = 0;
    s->keeps_undo = 1;
    move(s, v, label);
    s->held = v;
    const int is_mended = mend(s, FEW_ROUNDS);
    s->held = -1;
    if (!is_mended || score_of(s) <= before + least) undo(s);
    s->keeps_undo = 0;
}

/* ---- a run ----------------------------------------------------------------------------------------------------- */

static void free_tallies(fgi_mender *s) {
    for (int32_t k = 0; k < s->n_rules; k++) {
        fgi_tally_free(s->score[k]);
        fgi_tally_free(s->beyond[k]);
        s->score[k] = s->beyond[k] = NULL;
    }
}

static fgi_rc begin(fgi_mender *s, const int32_t *labels, fgi_error *err) {
    fgi_rc rc = fgi_model_check_labels(s->model, labels, err);
    int32_t *own = fgi_alloc(s->begin[s->n_rules] + 1, sizeof *own);
    if (!rc && !own) rc = fgi_no_memory(err);
    free_tallies(s);
    if (!rc) fgi_labeling_assign(s->local, labels);
    s->over = 0;
    for (int32_t k = 0; !rc && k < s->n_rules; k++) {
        for (int64_t at = s->begin[k]; at < s->begin[k + 1]; at++) own[at - s->begin[k]] = labels[s->vars[at]];
        rc = fgi_tally_create(s->rules[k], own, &s->score[k], err);
        if (!rc && s->excess[k]) rc = fgi_tally_create(s->excess[k], own, &s->beyond[k], err);
        if (!rc) s->over += excess_of(s->score[k], s->beyond[k]);
    }
    free(own);
    return rc;
}

fgi_rc fgi_mender_run(fgi_mender *s, const int32_t *labels, const double *prices, int64_t work, uint64_t seed,
    int *found, int32_t *out, fgi_error *err) {
    *found = 0;
    s->work = 0;
    s->before = fgi_labeling_operations(s->local);
    const fgi_rc rc = begin(s, labels, err);
    if (rc) return rc;
    s->prices = prices;
    s->rng.state = seed;
    s->best_score = -INFINITY;
    s->held = -1;
    s->keeps_undo = 0;
    s->most = work;
    if (mend(s, ROUNDS)) {
        keep_best(s);
        improve(s);
        keep_best(s);
        const double least = fgi_labeling_tolerance(s->local, score_of(s));
        while (has_work(s) && s->n_rules > 0) eject(s, least);
        keep_best(s);
    }
    *found = s->best_score > -INFINITY;
    if (*found) memcpy(out, s->best, (size_t)s->model->s->n_vars * sizeof *out);
    return FGI_OK;
}

/* ---- making it ------------------------------------------------------------------------------------------------- */

static fgi_rc check(const fgi_model *m, int32_t n, const fgi_rule *const *rules, const fgi_rule *const *excess,
    const int32_t *variables, fgi_error *err) {
    for (int32_t k = 0; k < n; k++) {
        int fits = !excess[k] || excess[k]->n == rules[k]->n;
        for (int32_t at = 0; fits && at < rules[k]->n; at++, variables++) {
            fits = *variables >= 0 && *variables < m->s->n_vars && m->s->cards[*variables] == rules[k]->cards[at] &&
                (!excess[k] || excess[k]->cards[at] == rules[k]->cards[at]);
        }
        if (!fits) return fgi_fail(err, FGI_BAD_ARGUMENT, k, "rule %d does not fit the variables of the model", k);
    }
    return FGI_OK;
}

static void fill_uses(fgi_mender *s) {
    const int64_t n = s->model->s->n_vars;
    for (int64_t at = 0; at < s->begin[s->n_rules]; at++) s->use_begin[s->vars[at] + 1]++;
    for (int64_t v = 0; v < n; v++) s->use_begin[v + 1] += s->use_begin[v];
    for (int32_t k = s->n_rules - 1; k >= 0; k--)
        for (int64_t at = s->begin[k + 1] - 1; at >= s->begin[k]; at--)
            s->uses[--s->use_begin[s->vars[at] + 1]] = (use){k, (int32_t)(at - s->begin[k])};
    /* Each entry now begins its variable, one place too far to the right. */
    memmove(s->use_begin, s->use_begin + 1, (size_t)n * sizeof *s->use_begin);
    s->use_begin[n] = s->begin[s->n_rules];
}

fgi_rc fgi_mender_create(const fgi_model *m, int32_t n, const fgi_rule *const *rules, const fgi_rule *const *excess,
    const int32_t *variables, fgi_mender **out, fgi_error *err) {
    const fgi_rc rc = check(m, n, rules, excess, variables, err);
    if (rc) return rc;
    fgi_mender *s = fgi_calloc(1, sizeof *s);
    if (!s) return fgi_no_memory(err);
    fgi_arena *arena = &s->arena;
    s->model = fgi_model_snapshot(m);
    s->local = s->model ? fgi_labeling_create(s->model) : NULL;
    s->rules = fgi_take_zero(arena, n, const fgi_rule *);
    s->excess = fgi_take_zero(arena, n, const fgi_rule *);
    s->score = fgi_take_zero(arena, n, fgi_tally *);
    s->beyond = fgi_take_zero(arena, n, fgi_tally *);
    s->begin = fgi_take_zero(arena, (int64_t)n + 1, int64_t);
    int64_t total = 0;
    for (int32_t k = 0; k < n; k++) total += rules[k]->n;
    s->vars = fgi_arena_copy(arena, variables, total, sizeof *variables);
    s->use_begin = fgi_take_zero(arena, m->s->n_vars + 2, int64_t);
    s->uses = fgi_take(arena, total, use);
    s->best = fgi_take(arena, m->s->n_vars, int32_t);
    s->asked = fgi_take_zero(arena, m->s->n_vars, int64_t);
    if (arena->failed || !s->local) {
        fgi_mender_free(s);
        return fgi_no_memory(err);
    }
    for (int32_t k = 0; k < n; k++) {
        s->rules[k] = fgi_rule_share(rules[k]);
        s->excess[k] = excess[k] ? fgi_rule_share(excess[k]) : NULL;
        s->begin[k + 1] = s->begin[k] + rules[k]->n;
    }
    s->n_rules = n;
    fill_uses(s);
    *out = s;
    return FGI_OK;
}

void fgi_mender_free(fgi_mender *s) {
    if (!s) return;
    free_tallies(s);
    for (int32_t k = 0; k < s->n_rules; k++) {
        fgi_rule_free(s->rules[k]);
        fgi_rule_free(s->excess[k]);
    }
    fgi_labeling_free(s->local);
    fgi_model_free(s->model);
    fgi_array_free(&s->steps);
    fgi_array_free(&s->undo);
    fgi_arena_free(&s->arena);
    free(s);
}
