/* primal/repair.c - from a labeling that violates hard constraints towards one that meets them: min-conflicts with a
 * tabu list.
 *
 * A step takes a violated factor at random and changes one of its variables to the label that violates fewest factors;
 * ties go to the better score, then to a throw. A label that was given up may not come back for a few steps, except to
 * a new best: that is what leads out of local minima. Now and then the change is a random one. Works where there are
 * many solutions and propagation has nothing to hold on to, such as random satisfiability; primal/construct.c is its
 * counterpart. */
#include <string.h>
#include "primal/search.h"

/* Usual values for tabu search; half and twice of each change nothing (decision 0016). */
enum {
    LEAST_TENURE = 3, /* steps for which a change is not taken back */
    MORE_TENURE = 10, /* more such steps by chance, up to so many */
    RANDOM_EVERY = 50 /* one step in so many is a random one */
};

struct fgi_repair {
    const fgi_model *model;
    fgi_labeling *local;
    int32_t *violated, *at; /* violated factors, and per factor its place among them or -1 */
    int64_t n_violated;
    int64_t *tabu; /* per label, laid out as the unaries: the step from which it may be taken again */
    int32_t *best; /* labeling with the fewest violations since the start */
    int64_t best_violations;
    int64_t steps, operations;
    fgi_arena arena;
};

fgi_repair *fgi_repair_create(const fgi_model *m, fgi_labeling *local) {
    const fgi_structure *s = m->s;
    fgi_repair *r = fgi_calloc(1, sizeof *r);
    if (!r) return NULL;
    r->model = m;
    r->local = local;
    r->violated = fgi_take(&r->arena, s->n_factors, int32_t);
    r->at = fgi_take(&r->arena, s->n_factors, int32_t);
    r->tabu = fgi_take_zero(&r->arena, s->unary_begin[s->n_vars], int64_t);
    r->best = fgi_take(&r->arena, s->n_vars, int32_t);
    if (!r->arena.failed) return r;
    fgi_repair_free(r);
    return NULL;
}

void fgi_repair_free(fgi_repair *r) {
    if (!r) return;
    fgi_arena_free(&r->arena);
    free(r);
}

int64_t fgi_repair_operations(const fgi_repair *r) { return r->operations; }

/* Brings one factor's membership in the list up to date. */
static void look_at(fgi_repair *r, int32_t f) {
    if (r->model->t->facts[r->model->s->factor_table[f]].n_forbidden == 0) return;
    const fgi_view v = fgi_factor_view(r->model, f);
    const int bad = fgi_view_score(r->model, &v, fgi_labeling_labels(r->local)) == -INFINITY;
    r->operations += v.arity;
    if (bad == (r->at[f] >= 0)) return;
    if (bad) {
        r->at[f] = (int32_t)r->n_violated;
        r->violated[r->n_violated++] = f;
    } else {
        const int32_t last = r->violated[--r->n_violated];
        r->violated[r->at[f]] = last;
        r->at[last] = r->at[f];
        r->at[f] = -1;
    }
}

static void change(fgi_repair *r, int32_t var, int32_t label) {
    const fgi_structure *s = r->model->s;
    fgi_labeling_flip(r->local, var, label);
    for (int64_t k = s->adj_begin[var]; k < s->adj_begin[var + 1]; k++) look_at(r, s->adj[k]);
}

static void note_best(fgi_repair *r) {
    const int64_t violations = fgi_labeling_violations(r->local);
    if (violations >= r->best_violations) return;
    r->best_violations = violations;
    memcpy(r->best, fgi_labeling_labels(r->local), (size_t)r->model->s->n_vars * sizeof *r->best);
    r->operations += r->model->s->n_vars / 8;
}

void fgi_repair_start(fgi_repair *r) {
    const fgi_structure *s = r->model->s;
    r->n_violated = 0;
    for (int64_t f = 0; f < s->n_factors; f++) r->at[f] = -1;
    for (int64_t f = 0; f < s->n_factors; f++) look_at(r, (int32_t)f);
    for (int64_t i = 0; i < s->n_vars;
         i++) { /* unaries are no factors: forbidden labels go first, and are never taken */
        const double *u = fgi_unary(r->model, i);
        int32_t a = 0;
        if (u[fgi_labeling_labels(r->local)[i]] > -INFINITY) continue;
        while (a < s->cards[i] - 1 && u[a] == -INFINITY) a++;
        change(r, (int32_t)i, a);
    }
    r->best_violations = INT64_MAX;
    note_best(r);
}

/* The change of one variable of a violated factor that leaves the fewest violations. Returns 0 if every one is tabu. */
static int best_change(fgi_repair *r, int32_t f, fgi_rng *rng, int32_t *var, int32_t *label) {
    const fgi_structure *s = r->model->s;
    const int64_t now = fgi_labeling_violations(r->local);
    const int32_t *vars = fgi_factor_vars(s, f);
    int64_t fewest = INT64_MAX, ties = 0;
    double most = -INFINITY;
    for (int32_t k = 0; k < fgi_factor_arity(s, f); k++) {
        const int32_t *bad, i = vars[k], own = fgi_labeling_labels(r->local)[i];
        const double *score = fgi_labeling_label_scores(r->local, i, &bad), *unary = fgi_unary(r->model, i);
        const int64_t *tabu = r->tabu + s->unary_begin[i];
        r->operations += s->cards[i];
        for (int32_t a = 0; a < s->cards[i]; a++) {
            if (a == own || unary[a] == -INFINITY) continue;
            const int64_t left = now + bad[a] - bad[own];
            const double gain = score[a] - score[own];
            if ((tabu[a] > r->steps && left >= r->best_violations) || left > fewest || (left == fewest && gain < most))
                continue;
            ties = left == fewest && gain == most ? ties + 1 : 1;
            fewest = left;
            most = gain;
            if (fgi_rng_below(rng, ties) > 0) continue;
            *var = i;
            *label = a;
        }
    }
    return ties > 0;
}

static int random_change(fgi_repair *r, int32_t f, fgi_rng *rng, int32_t *var, int32_t *label) {
    const fgi_structure *s = r->model->s;
    *var = fgi_factor_vars(s, f)[fgi_rng_below(rng, fgi_factor_arity(s, f))];
    *label = (int32_t)fgi_rng_below(rng, s->cards[*var]);
    return fgi_unary(r->model, *var)[*label] > -INFINITY;
}

int fgi_repair_step(fgi_repair *r, int64_t max_operations, fgi_rng *rng) {
    const int64_t end = r->operations + fgi_labeling_operations(r->local) + max_operations;
    while (r->n_violated > 0) {
        if (r->operations + fgi_labeling_operations(r->local) >= end) return 0;
        const int32_t f = r->violated[fgi_rng_below(rng, r->n_violated)];
        int32_t var, label;
        r->steps++;
        r->operations += 10;
        if (!(fgi_rng_below(rng, RANDOM_EVERY) ? best_change : random_change)(r, f, rng, &var, &label)) continue;
        r->tabu[r->model->s->unary_begin[var] + fgi_labeling_labels(r->local)[var]] =
            r->steps + LEAST_TENURE + fgi_rng_below(rng, MORE_TENURE);
        change(r, var, label);
        note_best(r);
    }
    return 1;
}

void fgi_repair_end(fgi_repair *r) { fgi_labeling_assign(r->local, r->best); }
