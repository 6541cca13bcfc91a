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

static void best_labels(const fgi_primal *primal, const double *preferences, int32_t *labels) {
    const fgi_structure *s = primal->model->s;
    for (int64_t i = 0; i < s->n_vars; i++) {
        const double *u = preferences + s->unary_begin[i];
        int32_t best = 0;
        for (int32_t a = 1; a < s->cards[i]; a++)
            if (u[a] > u[best]) best = a;
        labels[i] = best;
    }
}

static void start_fresh(fgi_primal *primal) {
    for (int64_t i = 0; i < primal->model->s->n_vars; i++)
        primal->start[i] = (int32_t)fgi_rng_below(&primal->rng, primal->model->s->cards[i]);
    fgi_labeling_assign(primal->local, primal->start);
}

/* The best labeling with a random connected region, of any order of magnitude, relabelled at random. */
static void start_perturbed(fgi_primal *primal, const int32_t *best) {
    const int64_t n = primal->model->s->n_vars;
    int64_t size = 2;
    while (size < n / 3 && fgi_rng_below(&primal->rng, 5)) size *= 2;
    fgi_labeling_assign(primal->local, best);
    const int32_t centre = (int32_t)fgi_rng_below(&primal->rng, n);
    const int compact = (int)fgi_rng_below(&primal->rng, 2);
    primal->n_focus = fgi_region_grow(primal->region, centre, size < n ? size : n, compact, &primal->rng);
    memcpy(primal->focus, fgi_region_variables(primal->region), (size_t)primal->n_focus * sizeof *primal->focus);
    for (int64_t k = 0; k < primal->n_focus; k++) {
        int32_t var = primal->focus[k];
        fgi_labeling_flip(primal->local, var, (int32_t)fgi_rng_below(&primal->rng, primal->model->s->cards[var]));
        fgi_labeling_push(primal->local, var);
    }
}

/* From a random labeling. */
static void start_annealed(fgi_primal *primal) {
    const double all = fgi_primal_work(primal) / ANNEAL_COST;
    start_fresh(primal);
    if (!primal->dense) {
        if ((double)primal->annealing < ANNEALING * all) primal->annealing *= 2;
    } else {
        if (primal->annealed > 0)
            primal->annealing = (int64_t)fgi_smaller(LONGER * (double)primal->annealing, LONGEST_ANNEALING * all);
        primal->annealing = (int64_t)fgi_larger((double)primal->annealing, DENSE_ANNEALING * all);
    }
    fgi_anneal_start(primal->anneal, primal->annealing, &primal->rng);
    primal->stage = FGI_PRIMAL_ANNEAL;
}

static int32_t best_elite(const fgi_primal *primal) {
    const fgi_elites *e = &primal->elites;
    int32_t best = 0;
    for (int32_t k = 1; k < e->n; k++)
        if (fgi_primal_better(primal, e->violations[k], e->score[k], e->violations[best], e->score[best])) best = k;
    return best;
}

/* One elite becomes current; then the others, one after the other, offer the components in which they differ from it.
 */
static void start_crossed(fgi_primal *primal) {
    const fgi_elites *e = &primal->elites;
    primal->first_parent =
        fgi_rng_below(&primal->rng, 2) ? best_elite(primal) : (int32_t)fgi_rng_below(&primal->rng, e->n);
    primal->parent = primal->first_parent;
    primal->last_parent = (primal->first_parent + e->n - 1) % e->n;
    fgi_labeling_assign(primal->local, e->labels[primal->first_parent]);
    fgi_labeling_clear(primal->local);
    fgi_primal_next_parent(primal);
}

int fgi_primal_next_parent(fgi_primal *primal) {
    if (primal->parent == primal->last_parent) return 0;
    primal->parent = (primal->parent + 1) % primal->elites.n;
    primal->n_focus = fgi_region_components(
        primal->region, fgi_labeling_labels(primal->local), primal->elites.labels[primal->parent]);
    memcpy(primal->focus, fgi_region_variables(primal->region), (size_t)primal->n_focus * sizeof *primal->focus);
    primal->next_focus = 0;
    return 1;
}

/* A component is negative-ended: its last variable is stored as ~var. Each is taken over if that is no loss. */
int fgi_primal_components(fgi_primal *primal, int64_t max_operations) {
    const int64_t end = fgi_labeling_operations(primal->local) + max_operations;
    while (primal->next_focus < primal->n_focus) {
        if (fgi_labeling_operations(primal->local) >= end) return 0;
        int last = 0;
        fgi_labeling_mark(primal->local);
        while (!last) {
            last = primal->focus[primal->next_focus] < 0;
            if (last) primal->focus[primal->next_focus] = ~primal->focus[primal->next_focus];
            int32_t var = primal->focus[primal->next_focus++];
            fgi_labeling_flip(primal->local, var, primal->elites.labels[primal->parent][var]);
        }
        if (fgi_primal_better(primal, fgi_labeling_mark_violations(primal->local),
                fgi_labeling_mark_score(primal->local), fgi_labeling_violations(primal->local),
                fgi_labeling_score(primal->local)))
            fgi_labeling_rollback(primal->local);
    }
    return 1;
}

/* ---- all elites at once ------------------------------------------------------------------------------------- */

static int can_join(const fgi_primal *primal) {
    return primal->model->s->adj_begin[primal->model->s->n_vars] <= MOST_JOINED;
}

/* The best of them first: where all are too much, half of them are taken. */
static int32_t rank_parents(fgi_primal *primal) {
    const fgi_elites *e = &primal->elites;
    int32_t rank[FGI_ELITES];
    for (int32_t k = 0; k < e->n; k++) {
        int32_t at = k;
        for (; at > 0 &&
             fgi_primal_better(
                 primal, e->violations[k], e->score[k], e->violations[rank[at - 1]], e->score[rank[at - 1]]);
             at--)
            rank[at] = rank[at - 1];
        rank[at] = k;
    }
    for (int32_t k = 0; k < e->n; k++) primal->parents[k] = e->labels[rank[k]];
    return e->n;
}

static fgi_rc create_joined(fgi_primal *primal) {
    fgi_rc rc = FGI_UNSUPPORTED;
    for (int32_t n = rank_parents(primal); rc == FGI_UNSUPPORTED && n > 1; n /= 2) {
        rc = fgi_join_create(&primal->join, primal->model, n, primal->parents);
        primal->overhead += 3 * primal->join.work;
    }
    if (rc) return rc;
    fgi_settings settings = fgi_settings_default();
    settings.method = FGI_SEARCH;
    settings.seed = fgi_rng_next(&primal->rng);
    settings.gap = 0;
    rc = fgi_solver_create(primal->join.model, &settings, &primal->joined, NULL);
    if (rc) return rc;
    fgi_join_states(&primal->join, 0, primal->start);
    primal->joined_moves = 0;
    primal->joined_work = primal->joined_gain = 0;
    primal->joined_score = -INFINITY;
    return fgi_solver_offer(primal->joined, primal->start, NULL);
}

static void end_join(fgi_primal *primal) {
    fgi_solver_free(primal->joined);
    fgi_join_free(&primal->join);
    primal->joined = NULL;
}

/* Memory may be short, or the model too large: then it is one more epoch from the best of them. */
static void start_joined(fgi_primal *primal) {
    primal->stage = FGI_PRIMAL_JOIN;
    if (!create_joined(primal)) return;
    end_join(primal);
    fgi_labeling_assign(primal->local, primal->elites.labels[best_elite(primal)]);
    primal->stage = FGI_PRIMAL_ASCENT;
}

int fgi_primal_join(fgi_primal *primal) {
    fgi_info now;
    fgi_rc rc = fgi_solver_run(primal->joined, 0.001, 1, &now);
    if (!rc && now.status == FGI_RUNNING && now.iterations == primal->joined_moves)
        return 0; /* in the middle of a move */
    const double work = (double)now.entries_touched;
    primal->overhead += work - primal->joined_work;
    primal->joined_work = work;
    primal->joined_moves = now.iterations;
    if (now.score > primal->joined_score) {
        primal->joined_score = now.score;
        primal->joined_gain = work;
    }
    const fgi_structure *s = primal->join.model->s;
    const double least = JOIN_WORK * (double)(s->unary_begin[s->n_vars] + s->adj_begin[s->n_vars]);
    if (!rc && now.status == FGI_RUNNING && work < MOST_JOINING * fgi_primal_work(primal) &&
        work - primal->joined_gain < fgi_larger(least, primal->joined_gain))
        return 0;
    memcpy(primal->start, primal->parents[0], (size_t)primal->model->s->n_vars * sizeof *primal->start);
    if (primal->joined_score > -INFINITY) fgi_join_expand(&primal->join, primal->joined->best, primal->start);
    end_join(primal);
    fgi_labeling_assign(primal->local, primal->start);
    return 1;
}

/* ---- the choice --------------------------------------------------------------------------------------------- */

int fgi_primal_has_gained(const fgi_primal *primal) {
    return fgi_primal_better(
        primal, primal->best_violations, primal->best_score, primal->kind_violations, primal->kind_score);
}

static void choose_kind(fgi_primal *primal, const int32_t *best) {
    const int is_due = LITTLE_ANNEALING * primal->annealed < fgi_primal_work(primal);
    const int anneals_on =
        primal->dense && (is_due || (primal->kind == FGI_PRIMAL_ANNEALED && fgi_primal_has_gained(primal)));
    primal->kind_violations = primal->best_violations;
    primal->kind_score = primal->best_score;
    primal->kind_begun = fgi_primal_work(primal);
    primal->kind = (fgi_primal_kind)fgi_bandit_choose(&primal->kinds, &primal->rng);
    if (primal->kind == FGI_PRIMAL_ANNEALED &&
        primal->kind_work[primal->kind] >
            (primal->dense ? MOST_DENSE_ANNEALING : MOST_ANNEALING) * fgi_primal_work(primal))
        primal->kind = FGI_PRIMAL_PERTURBED;
    if (anneals_on) primal->kind = FGI_PRIMAL_ANNEALED;
    if (primal->kind == FGI_PRIMAL_JOINED && !can_join(primal)) primal->kind = FGI_PRIMAL_PERTURBED;
    if (primal->kind == FGI_PRIMAL_CROSSED && primal->elites.n < 2) primal->kind = FGI_PRIMAL_FRESH;
    if (primal->kind == FGI_PRIMAL_PERTURBED && !best) primal->kind = FGI_PRIMAL_FRESH;
    if (primal->kind == FGI_PRIMAL_JOINED) primal->n_fresh = BROOD + 1;
}

static void start(fgi_primal *primal, const int32_t *best) {
    switch (primal->kind) {
    case FGI_PRIMAL_FIRST:
        best_labels(primal, primal->model->u->values, primal->start);
        fgi_labeling_assign(primal->local, primal->start);
        fgi_labeling_push_all(primal->local);
        break;
    case FGI_PRIMAL_PERTURBED: start_perturbed(primal, best); break;
    case FGI_PRIMAL_CROSSED:
        start_crossed(primal);
        primal->stage = FGI_PRIMAL_COMPONENTS;
        break;
    case FGI_PRIMAL_ANNEALED: start_annealed(primal); break;
    case FGI_PRIMAL_JOINED:
        if (--primal->n_fresh == 0) start_joined(primal);
        else start_fresh(primal);
        break;
    default: start_fresh(primal);
    }
}

void fgi_primal_begin_epoch(fgi_primal *primal, const int32_t *best) {
    primal->constructed = 0;
    primal->n_focus = 0;
    primal->stage = FGI_PRIMAL_ASCENT;
    fgi_labeling_clear(primal->local);
    if (primal->n_epochs++ == 0) primal->kind = FGI_PRIMAL_FIRST;
    else if (primal->n_fresh == 0) choose_kind(primal, best);
    start(primal, best);
    primal->epoch_begun = primal->last_gain = fgi_primal_work(primal);
}
