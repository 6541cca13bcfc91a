/* primal/epoch.c - where an epoch of the primal search starts: afresh, near the best labeling, between two good ones,
 * or at the best that all of them can be put together to. */
#include <string.h>
#include "primal/search.h"

/* These are shares of all work so far (decision 0016). */
static const double MOST_ANNEALING = 0.4;       /* epochs that begin with annealing */
static const double MOST_DENSE_ANNEALING = 0.6; /* the same on dense models */
static const double ANNEALING = 0.125;          /* one annealing, without what follows */
static const double DENSE_ANNEALING = 0.25;     /* the same on dense models */
/* On dense models the next annealing begins at once while the last has gained, or if all have been short. */
static const double LONGER = 3;            /* the next one takes so many times the work of the last */
static const double LONGEST_ANNEALING = 2; /* times all work so far, at most */
static const double LITTLE_ANNEALING = 16; /* all work is so many times that of the last: time for another */
static const double ANNEAL_COST = 4;       /* work of one operation of annealing, see fgi_primal_work (decision 0016) */
static const double MOST_JOINING = 0.125;  /* one search on joined elites */

enum {
    BROOD = 4,            /* new labelings before the elites are joined again */
    JOIN_WORK = 10000,    /* per label and variable of a factor: without gain, the search on joined elites ends */
    MOST_JOINED = 2000000 /* variables of factors: joining cannot be cut into slices */
};

static void best_labels(const fgi_primal *s, const double *preferences, int32_t *labels) {
    const fgi_structure *st = s->model->s;
    for (int64_t i = 0; i < st->n_vars; i++) {
        const double *u = preferences + st->unary_begin[i];
        int32_t best = 0;
        for (int32_t a = 1; a < st->cards[i]; a++)
            if (u[a] > u[best]) best = a;
        labels[i] = best;
    }
}

static void start_fresh(fgi_primal *s) {
    for (int64_t i = 0; i < s->model->s->n_vars; i++)
        s->start[i] = (int32_t)fgi_rng_below(&s->rng, s->model->s->cards[i]);
    fgi_labeling_assign(s->local, s->start);
}

/* The best labeling with a random connected region, of any order of magnitude, relabelled at random. */
static void start_perturbed(fgi_primal *s, const int32_t *best) {
    const int64_t n = s->model->s->n_vars;
    int64_t size = 2;
    while (size < n / 3 && fgi_rng_below(&s->rng, 5)) size *= 2;
    fgi_labeling_assign(s->local, best);
    const int32_t centre = (int32_t)fgi_rng_below(&s->rng, n);
    const int compact = (int)fgi_rng_below(&s->rng, 2);
    s->n_focus = fgi_region_grow(s->region, centre, size < n ? size : n, compact, &s->rng);
    memcpy(s->focus, fgi_region_variables(s->region), (size_t)s->n_focus * sizeof *s->focus);
    for (int64_t k = 0; k < s->n_focus; k++) {
        int32_t var = s->focus[k];
        fgi_labeling_flip(s->local, var, (int32_t)fgi_rng_below(&s->rng, s->model->s->cards[var]));
        fgi_labeling_push(s->local, var);
    }
}

/* From a random labeling. */
static void start_annealed(fgi_primal *s) {
    const double all = fgi_primal_work(s) / ANNEAL_COST;
    start_fresh(s);
    if (!s->dense) {
        if ((double)s->annealing < ANNEALING * all) s->annealing *= 2;
    } else {
        if (s->annealed > 0)
            s->annealing = (int64_t)fgi_smaller(LONGER * (double)s->annealing, LONGEST_ANNEALING * all);
        s->annealing = (int64_t)fgi_larger((double)s->annealing, DENSE_ANNEALING * all);
    }
    fgi_anneal_start(s->anneal, s->annealing, &s->rng);
    s->stage = FGI_PRIMAL_ANNEAL;
}

static int32_t best_elite(const fgi_primal *s) {
    const fgi_elites *e = &s->elites;
    int32_t best = 0;
    for (int32_t k = 1; k < e->n; k++)
        if (fgi_primal_better(s, e->violations[k], e->score[k], e->violations[best], e->score[best])) best = k;
    return best;
}

/* One elite becomes current; then the others, one after the other, offer the components in which they differ from it.
 */
static void start_crossed(fgi_primal *s) {
    const fgi_elites *e = &s->elites;
    s->first_parent = fgi_rng_below(&s->rng, 2) ? best_elite(s) : (int32_t)fgi_rng_below(&s->rng, e->n);
    s->parent = s->first_parent;
    s->last_parent = (s->first_parent + e->n - 1) % e->n;
    fgi_labeling_assign(s->local, e->labels[s->first_parent]);
    fgi_labeling_clear(s->local);
    fgi_primal_next_parent(s);
}

int fgi_primal_next_parent(fgi_primal *s) {
    if (s->parent == s->last_parent) return 0;
    s->parent = (s->parent + 1) % s->elites.n;
    s->n_focus = fgi_region_components(s->region, fgi_labeling_labels(s->local), s->elites.labels[s->parent]);
    memcpy(s->focus, fgi_region_variables(s->region), (size_t)s->n_focus * sizeof *s->focus);
    s->next_focus = 0;
    return 1;
}

/* A component is negative-ended: its last variable is stored as ~var. Each is taken over if that is no loss. */
int fgi_primal_components(fgi_primal *s, int64_t max_operations) {
    const int64_t end = fgi_labeling_operations(s->local) + max_operations;
    while (s->next_focus < s->n_focus) {
        if (fgi_labeling_operations(s->local) >= end) return 0;
        int last = 0;
        fgi_labeling_mark(s->local);
        while (!last) {
            last = s->focus[s->next_focus] < 0;
            if (last) s->focus[s->next_focus] = ~s->focus[s->next_focus];
            int32_t var = s->focus[s->next_focus++];
            fgi_labeling_flip(s->local, var, s->elites.labels[s->parent][var]);
        }
        if (fgi_primal_better(s, fgi_labeling_mark_violations(s->local), fgi_labeling_mark_score(s->local),
                fgi_labeling_violations(s->local), fgi_labeling_score(s->local)))
            fgi_labeling_rollback(s->local);
    }
    return 1;
}

/* ---- all elites at once ------------------------------------------------------------------------------------- */

static int can_join(const fgi_primal *s) { return s->model->s->adj_begin[s->model->s->n_vars] <= MOST_JOINED; }

/* The best of them first: where all are too much, half of them are taken. */
static int32_t rank_parents(fgi_primal *s) {
    const fgi_elites *e = &s->elites;
    int32_t rank[FGI_ELITES];
    for (int32_t k = 0; k < e->n; k++) {
        int32_t at = k;
        for (; at > 0 &&
             fgi_primal_better(s, e->violations[k], e->score[k], e->violations[rank[at - 1]], e->score[rank[at - 1]]);
             at--)
            rank[at] = rank[at - 1];
        rank[at] = k;
    }
    for (int32_t k = 0; k < e->n; k++) s->parents[k] = e->labels[rank[k]];
    return e->n;
}

static fgi_rc create_joined(fgi_primal *s) {
    fgi_rc rc = FGI_UNSUPPORTED;
    for (int32_t n = rank_parents(s); rc == FGI_UNSUPPORTED && n > 1; n /= 2) {
        rc = fgi_join_create(&s->join, s->model, n, s->parents);
        s->overhead += 3 * s->join.work;
    }
    if (rc) return rc;
    fgi_settings settings = fgi_settings_default();
    settings.method = FGI_SEARCH;
    settings.seed = fgi_rng_next(&s->rng);
    settings.gap = 0;
    rc = fgi_solver_create(s->join.model, &settings, &s->joined, NULL);
    if (rc) return rc;
    fgi_join_states(&s->join, 0, s->start);
    s->joined_moves = 0;
    s->joined_work = s->joined_gain = 0;
    s->joined_score = -INFINITY;
    return fgi_solver_offer(s->joined, s->start, NULL);
}

static void end_join(fgi_primal *s) {
    fgi_solver_free(s->joined);
    fgi_join_free(&s->join);
    s->joined = NULL;
}

/* Memory may be short, or the model too large: then it is one more epoch from the best of them. */
static void start_joined(fgi_primal *s) {
    s->stage = FGI_PRIMAL_JOIN;
    if (!create_joined(s)) return;
    end_join(s);
    fgi_labeling_assign(s->local, s->elites.labels[best_elite(s)]);
    s->stage = FGI_PRIMAL_ASCENT;
}

int fgi_primal_join(fgi_primal *s) {
    fgi_info now;
    fgi_rc rc = fgi_solver_run(s->joined, 0.001, 1, &now);
    if (!rc && now.status == FGI_RUNNING && now.iterations == s->joined_moves) return 0; /* in the middle of a move */
    const double work = (double)now.entries_touched;
    s->overhead += work - s->joined_work;
    s->joined_work = work;
    s->joined_moves = now.iterations;
    if (now.score > s->joined_score) {
        s->joined_score = now.score;
        s->joined_gain = work;
    }
    const fgi_structure *st = s->join.model->s;
    const double least = JOIN_WORK * (double)(st->unary_begin[st->n_vars] + st->adj_begin[st->n_vars]);
    if (!rc && now.status == FGI_RUNNING && work < MOST_JOINING * fgi_primal_work(s) &&
        work - s->joined_gain < fgi_larger(least, s->joined_gain))
        return 0;
    memcpy(s->start, s->parents[0], (size_t)s->model->s->n_vars * sizeof *s->start);
    if (s->joined_score > -INFINITY) fgi_join_expand(&s->join, s->joined->best, s->start);
    end_join(s);
    fgi_labeling_assign(s->local, s->start);
    return 1;
}

/* ---- the choice --------------------------------------------------------------------------------------------- */

int fgi_primal_has_gained(const fgi_primal *s) {
    return fgi_primal_better(s, s->best_violations, s->best_score, s->kind_violations, s->kind_score);
}

static void choose_kind(fgi_primal *s, const int32_t *best) {
    const int is_due = LITTLE_ANNEALING * s->annealed < fgi_primal_work(s);
    const int anneals_on = s->dense && (is_due || (s->kind == FGI_PRIMAL_ANNEALED && fgi_primal_has_gained(s)));
    s->kind_violations = s->best_violations;
    s->kind_score = s->best_score;
    s->kind_begun = fgi_primal_work(s);
    s->kind = (fgi_primal_kind)fgi_bandit_choose(&s->kinds, &s->rng);
    if (s->kind == FGI_PRIMAL_ANNEALED &&
        s->kind_work[s->kind] > (s->dense ? MOST_DENSE_ANNEALING : MOST_ANNEALING) * fgi_primal_work(s))
        s->kind = FGI_PRIMAL_PERTURBED;
    if (anneals_on) s->kind = FGI_PRIMAL_ANNEALED;
    if (s->kind == FGI_PRIMAL_JOINED && !can_join(s)) s->kind = FGI_PRIMAL_PERTURBED;
    if (s->kind == FGI_PRIMAL_CROSSED && s->elites.n < 2) s->kind = FGI_PRIMAL_FRESH;
    if (s->kind == FGI_PRIMAL_PERTURBED && !best) s->kind = FGI_PRIMAL_FRESH;
    if (s->kind == FGI_PRIMAL_JOINED) s->n_fresh = BROOD + 1;
}

static void start(fgi_primal *s, const int32_t *best) {
    switch (s->kind) {
    case FGI_PRIMAL_FIRST:
        best_labels(s, s->model->u->values, s->start);
        fgi_labeling_assign(s->local, s->start);
        fgi_labeling_push_all(s->local);
        break;
    case FGI_PRIMAL_PERTURBED: start_perturbed(s, best); break;
    case FGI_PRIMAL_CROSSED:
        start_crossed(s);
        s->stage = FGI_PRIMAL_COMPONENTS;
        break;
    case FGI_PRIMAL_ANNEALED: start_annealed(s); break;
    case FGI_PRIMAL_JOINED:
        if (--s->n_fresh == 0) start_joined(s);
        else start_fresh(s);
        break;
    default: start_fresh(s);
    }
}

void fgi_primal_begin_epoch(fgi_primal *s, const int32_t *best) {
    s->constructed = 0;
    s->n_focus = 0;
    s->stage = FGI_PRIMAL_ASCENT;
    fgi_labeling_clear(s->local);
    if (s->n_epochs++ == 0) s->kind = FGI_PRIMAL_FIRST;
    else if (s->n_fresh == 0) choose_kind(s, best);
    start(s, best);
    s->epoch_begun = s->last_gain = fgi_primal_work(s);
}
