/* primal/trail.c - see primal/trail.h. */
#include <string.h>
#include "primal/trail.h"
#include "base/array.h"

void fgi_trail_init(fgi_trail *t, const fgi_model *m, fgi_labeling *local, fgi_arena *arena) {
    t->model = m;
    t->local = local;
    t->until = fgi_take_zero(arena, m->s->unary_begin[m->s->n_vars], int64_t);
}

void fgi_trail_free(fgi_trail *t) { free(t->undo); }

void fgi_trail_begin(fgi_trail *t, int64_t patience) {
    fgi_assert(patience >= 0);
    enum { VOID = 1 << 20 }; /* steps: beyond every tenure, so that nothing is tabu yet */
    t->step += VOID;
    t->stale = t->n_undo = 0;
    t->patience = patience;
    t->best_violations = fgi_labeling_violations(t->local);
    t->best_score = fgi_labeling_score(t->local);
}

int fgi_trail_reserve(fgi_trail *t, int64_t changes) {
    return fgi_grow(&t->undo, &t->capacity, changes, 2 * sizeof *t->undo);
}

void fgi_trail_give_up(fgi_trail *t, int32_t var, int64_t steps) {
    fgi_assert(var >= 0 && var < t->model->s->n_vars && t->n_undo >= 0);
    const int32_t before = fgi_labeling_labels(t->local)[var];
    if (t->n_undo == t->capacity && !fgi_trail_reserve(t, t->n_undo + 1)) {
        t->failed = 1;
        return;
    }
    t->undo[2 * t->n_undo] = var;
    t->undo[2 * t->n_undo++ + 1] = before;
    t->until[t->model->s->unary_begin[var] + before] = t->step + steps;
}

int fgi_trail_is_better(const fgi_trail *t, int64_t violations, double score) {
    if (violations != t->best_violations) return violations < t->best_violations;
    return score > t->best_score + fgi_labeling_tolerance(t->local, t->best_score);
}

void fgi_trail_look(fgi_trail *t) {
    const int64_t violations = fgi_labeling_violations(t->local);
    const double score = fgi_labeling_score(t->local);
    if (!fgi_trail_is_better(t, violations, score)) return;
    t->best_violations = violations;
    t->best_score = score;
    t->stale = t->n_undo = 0;
}

void fgi_trail_end(fgi_trail *t) {
    while (t->n_undo > 0) {
        t->n_undo--;
        fgi_labeling_flip(t->local, t->undo[2 * t->n_undo], t->undo[2 * t->n_undo + 1]);
    }
}

int64_t fgi_trail_best(const fgi_trail *t, double *score) {
    *score = t->best_score;
    return t->best_violations;
}

void fgi_trail_best_labels(const fgi_trail *t, int32_t *labels) {
    memcpy(labels, fgi_labeling_labels(t->local), (size_t)t->model->s->n_vars * sizeof *labels);
    for (int64_t k = t->n_undo - 1; k >= 0; k--) labels[t->undo[2 * k]] = t->undo[2 * k + 1];
}
