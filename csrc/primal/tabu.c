/* primal/tabu.c - tabu search on a region: single changes, the best one at every step, also where all of them make
 * things worse.
 *
 * A label that was given up may not come back for a while, except to a new best: so the labeling is carried out of
 * local maxima along the cheapest way. It pays where factors are many or large, and exact blocks (primal/thin.c) are
 * small: dense models, clauses, covers. Violations of hard constraints count first. */
#include <string.h>
#include "primal/search.h"
#include "base/array.h"

/* Steps beyond which a tenure does not grow with the region: 2500 binary variables, density .1, 6 s, four seeds:
 * 1309356 without, 1311013 with it (and with regions of all variables). */
enum { LONGEST = 20 };

struct fgi_tabu {
    const fgi_model *model;
    fgi_local *local;
    int64_t *until;      /* per label, laid out as the unaries: the step from which it may be taken again */
    int64_t step;        /* of all runs: never reset, so that old entries are void */
    const int32_t *vars; /* the region, borrowed */
    int64_t n_vars, patience, stale;
    int32_t *undo; /* changes since the best labeling of this run: variable, label before */
    int64_t n_undo, undo_capacity;
    int64_t best_violations;
    double best_score;
    int64_t operations;
};

fgi_tabu *fgi_tabu_create(const fgi_model *m, fgi_local *local, fgi_arena *arena) {
    fgi_tabu *t = fgi_take_zero(arena, 1, fgi_tabu);
    if (!t) return NULL;
    t->model = m;
    t->local = local;
    t->until = fgi_take_zero(arena, m->s->unary_begin[m->s->n_vars], int64_t);
    return t;
}

void fgi_tabu_free(fgi_tabu *t) {
    if (t) free(t->undo);
}

int64_t fgi_tabu_operations(const fgi_tabu *t) { return t->operations; }

fgi_rc fgi_tabu_start(fgi_tabu *t, const int32_t *vars, int64_t n, int64_t patience) {
    if (patience > t->undo_capacity) {
        if (!fgi_resize(&t->undo, 2 * patience, sizeof *t->undo)) return FGI_NO_MEMORY;
        t->undo_capacity = patience;
    }
    t->vars = vars;
    t->n_vars = n;
    t->patience = patience;
    t->step += 1 << 20; /* beyond every tenure: nothing is tabu yet */
    t->stale = t->n_undo = 0;
    t->best_violations = fgi_local_violations(t->local);
    t->best_score = fgi_local_score(t->local);
    return FGI_OK;
}

/* The best change that is allowed; ties are thrown. Returns 0 if there is none. */
static int best_change(fgi_tabu *t, fgi_rng *rng, int32_t *var, int32_t *label) {
    const fgi_structure *s = t->model->s;
    const int32_t *now = fgi_local_labels(t->local);
    /* What a forbidden change must reach to be allowed all the same. */
    const int64_t less = t->best_violations - fgi_local_violations(t->local);
    const double more = t->best_score - fgi_local_score(t->local) + fgi_local_tolerance(t->local, t->best_score);
    int64_t fewest = INT64_MAX, ties = 0;
    double most = -INFINITY;
    for (int64_t k = 0; k < t->n_vars; k++) {
        const int32_t *bad, i = t->vars[k], own = now[i], card = s->cards[i];
        const double *score = fgi_local_label_scores(t->local, i, &bad);
        const int64_t *until = t->until + s->unary_begin[i];
        for (int32_t a = 0; a < card; a++) {
            const int64_t worse = bad ? bad[a] - bad[own] : 0;
            const double gain = score[a] - score[own];
            if (a == own || worse > fewest || (worse == fewest && gain < most)) continue;
            if (until[a] > t->step && (worse > less || (worse == less && gain <= more))) continue;
            ties = worse == fewest && gain == most ? ties + 1 : 1;
            fewest = worse;
            most = gain;
            if (ties > 1 && fgi_rng_below(rng, ties) > 0) continue;
            *var = i;
            *label = a;
        }
        t->operations += card + 2;
    }
    return ties > 0;
}

int fgi_tabu_run(fgi_tabu *t, int64_t max_operations, fgi_rng *rng) {
    const int64_t end = t->operations + fgi_local_operations(t->local) + max_operations;
    const int64_t share = t->n_vars / 16, tenure = t->n_vars < 4 ? 0 : 2 + (share < LONGEST ? share : LONGEST);
    while (t->stale < t->patience) {
        int32_t var, label;
        if (t->operations + fgi_local_operations(t->local) >= end) return 0;
        t->step++;
        t->stale++;
        if (!best_change(t, rng, &var, &label)) continue;
        const int32_t before = fgi_local_labels(t->local)[var];
        t->until[t->model->s->unary_begin[var] + before] = t->step + tenure + fgi_rng_below(rng, tenure + 2);
        t->undo[2 * t->n_undo] = var;
        t->undo[2 * t->n_undo++ + 1] = before;
        fgi_local_flip(t->local, var, label);
        const int64_t violations = fgi_local_violations(t->local);
        const double score = fgi_local_score(t->local);
        if (violations > t->best_violations ||
            (violations == t->best_violations && score <= t->best_score + fgi_local_tolerance(t->local, t->best_score)))
            continue;
        t->best_violations = violations;
        t->best_score = score;
        t->stale = t->n_undo = 0;
    }
    while (t->n_undo > 0) { /* back to the best */
        t->n_undo--;
        fgi_local_flip(t->local, t->undo[2 * t->n_undo], t->undo[2 * t->n_undo + 1]);
    }
    return 1;
}
