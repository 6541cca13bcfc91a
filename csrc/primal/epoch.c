/* primal/epoch.c - where an epoch of the primal search starts: afresh, near the best labeling, or between two good
 * ones. */
#include <string.h>
#include "primal/search.h"

static const double MOST_ANNEALING = 0.4; /* of all work, epochs that begin with it included */

static void best_labels(const fgi_search *s, const double *preferences, int32_t *labels) {
    const fgi_structure *st = s->model->s;
    for (int64_t i = 0; i < st->n_vars; i++) {
        const double *u = preferences + st->unary_begin[i];
        int32_t best = 0;
        for (int32_t a = 1; a < st->cards[i]; a++)
            if (u[a] > u[best]) best = a;
        labels[i] = best;
    }
}

static void start_fresh(fgi_search *s) {
    for (int64_t i = 0; i < s->model->s->n_vars; i++)
        s->start[i] = (int32_t)fgi_rng_below(&s->rng, s->model->s->cards[i]);
    fgi_local_assign(s->local, s->start);
}

/* The best labeling with a random connected region, of any order of magnitude, relabelled at random. */
static void start_perturbed(fgi_search *s, const int32_t *best) {
    const int64_t n = s->model->s->n_vars;
    int64_t size = 2;
    while (size < n / 3 && fgi_rng_below(&s->rng, 5)) size *= 2;
    fgi_local_assign(s->local, best);
    const int32_t centre = (int32_t)fgi_rng_below(&s->rng, n);
    const int compact = (int)fgi_rng_below(&s->rng, 2);
    s->n_focus = fgi_region_grow(s->region, centre, size < n ? size : n, compact, &s->rng);
    memcpy(s->focus, fgi_region_variables(s->region), (size_t)s->n_focus * sizeof *s->focus);
    for (int64_t k = 0; k < s->n_focus; k++) {
        int32_t var = s->focus[k];
        fgi_local_flip(s->local, var, (int32_t)fgi_rng_below(&s->rng, s->model->s->cards[var]));
        fgi_local_push(s->local, var);
    }
}

/* Annealed from a random labeling: twice as long every time, but not longer than an eighth of all work so far. */
static void start_annealed(fgi_search *s) {
    for (int64_t i = 0; i < s->model->s->n_vars; i++)
        s->start[i] = (int32_t)fgi_rng_below(&s->rng, s->model->s->cards[i]);
    fgi_local_assign(s->local, s->start);
    const double sweep = 20.0 * (double)(s->model->s->n_vars + s->model->s->unary_begin[s->model->s->n_vars]);
    const int64_t most = (int64_t)(fgi_search_work(s) / (8 * sweep));
    if (s->sweeps < most) s->sweeps *= 2;
    fgi_anneal_start(s->anneal, s->sweeps, 1, &s->rng);
    s->stage = FGI_SEARCH_ANNEAL;
}

/* One elite becomes current; then the others, one after the other, offer the components in which they differ from it.
 */
static void start_crossed(fgi_search *s) {
    const fgi_elites *e = &s->elites;
    int32_t best = 0;
    for (int32_t k = 1; k < e->n; k++)
        if (fgi_search_better(s, e->violations[k], e->score[k], e->violations[best], e->score[best])) best = k;
    s->first_parent = fgi_rng_below(&s->rng, 2) ? best : (int32_t)fgi_rng_below(&s->rng, e->n);
    s->parent = s->first_parent;
    s->last_parent = (s->first_parent + e->n - 1) % e->n;
    fgi_local_assign(s->local, e->labels[s->first_parent]);
    fgi_local_clear(s->local);
    fgi_search_next_parent(s);
}

int fgi_search_next_parent(fgi_search *s) {
    if (s->parent == s->last_parent) return 0;
    s->parent = (s->parent + 1) % s->elites.n;
    s->n_focus = fgi_region_components(s->region, fgi_local_labels(s->local), s->elites.labels[s->parent]);
    memcpy(s->focus, fgi_region_variables(s->region), (size_t)s->n_focus * sizeof *s->focus);
    s->next_focus = 0;
    return 1;
}

/* A component is negative-ended: its last variable is stored as ~var. Each is taken over if that is no loss. */
int fgi_search_components(fgi_search *s, int64_t max_operations) {
    const int64_t end = fgi_local_operations(s->local) + max_operations;
    while (s->next_focus < s->n_focus) {
        if (fgi_local_operations(s->local) >= end) return 0;
        int last = 0;
        fgi_local_mark(s->local);
        while (!last) {
            last = s->focus[s->next_focus] < 0;
            if (last) s->focus[s->next_focus] = ~s->focus[s->next_focus];
            int32_t var = s->focus[s->next_focus++];
            fgi_local_flip(s->local, var, s->elites.labels[s->parent][var]);
        }
        if (fgi_search_better(s, fgi_local_mark_violations(s->local), fgi_local_mark_score(s->local),
                fgi_local_violations(s->local), fgi_local_score(s->local)))
            fgi_local_rollback(s->local);
    }
    return 1;
}

void fgi_search_begin_epoch(fgi_search *s, const int32_t *best) {
    s->epoch_violations = s->best_violations;
    s->epoch_score = s->best_score;
    s->constructed = 0;
    s->n_focus = 0;
    s->stage = FGI_SEARCH_ASCENT;
    fgi_local_clear(s->local);
    if (s->n_epochs == 0) {
        s->kind = FGI_SEARCH_FIRST;
        best_labels(s, s->model->u->values, s->start);
        fgi_local_assign(s->local, s->start);
        fgi_local_push_all(s->local);
    } else {
        s->kind = (fgi_search_kind)fgi_bandit_choose(&s->kinds, &s->rng);
        if (s->kind == FGI_SEARCH_ANNEALED && s->kind_work[s->kind] > MOST_ANNEALING * fgi_search_work(s))
            s->kind = FGI_SEARCH_PERTURBED;
        if (s->kind == FGI_SEARCH_CROSSED && s->elites.n < 2) s->kind = FGI_SEARCH_FRESH;
        if (s->kind == FGI_SEARCH_PERTURBED && !best) s->kind = FGI_SEARCH_FRESH;
        if (s->kind == FGI_SEARCH_FRESH) start_fresh(s);
        else if (s->kind == FGI_SEARCH_ANNEALED) start_annealed(s);
        else if (s->kind == FGI_SEARCH_PERTURBED) start_perturbed(s, best);
        else start_crossed(s);
        if (s->kind == FGI_SEARCH_CROSSED) s->stage = FGI_SEARCH_COMPONENTS;
    }
    s->n_epochs++;
    s->epoch_begun = s->last_gain = fgi_search_work(s);
}
