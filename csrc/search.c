/* search.c - primal search: a labeling improved by exact re-optimisation of large random subsets, until told to stop.
 *
 * One iteration is one move: choose a region and a table size; optionally kick a few variables to other labels and hold them
 * there; re-optimise a low-width subset of the region exactly (search_thin.c, treeblock.c); after a kick once more with
 * the kicked variables free; coordinate ascent from what changed; keep the result unless it is worse. Region size, table
 * size and kick are chosen by success per operation (search_parts.c). All decisions come from the seed and from operation counts, none from
 * the clock: a run can be cut into slices anywhere. */
#include "search.h"
#include <string.h>

enum {
    CHUNK = 100000,            /* operations between two looks at the clock */
    REGION_ARMS = 10, BITS_ARMS = 7, KICK_ARMS = 5
};

typedef enum stage { UNARY_START, CONSTRUCT, FIRST_ASCENT, CHOOSE, SUBSET, BLOCK, ASCENT, JUDGE } stage;

typedef struct move {
    int32_t region_arm, bits_arm, kick_arm;
    int64_t n_region;
    int32_t n_kicked;          /* the first of the region, held at their new labels during the first block */
    fgi_thin_options options;
    double operations;         /* spent before this move */
} move;

typedef struct search {
    fgi_local *local;
    fgi_construct *construct;
    fgi_region *region;
    fgi_thin *thin;
    fgi_treeblock *block;
    fgi_rng rng;
    stage stage;
    move now;
    fgi_bandit regions, bits, kicks;
    int32_t n_regions;
    int64_t region_size[REGION_ARMS];
    double *guide;             /* preferences given from outside; NULL: none */
    int32_t *start;            /* scratch labeling */
    /* the best labeling met, by running score, and whether the solver base has seen it */
    int64_t best_violations;
    double best_score;
    int unreported;
    double reported_at;        /* operations when it was last told */
    int offered;
} search;

/* DP entries are cheap (contiguous sums), flips and graph work are not. */
static double work(const search *s) {
    return 2.0 * (double)fgi_local_operations(s->local) + 2.0 * (double)fgi_thin_operations(s->thin) + 0.5 * (double)fgi_treeblock_operations(s->block);
}

static int better(const search *s, int64_t violations, double score, int64_t than_violations, double than_score) {
    if (violations != than_violations) return violations < than_violations;
    return score > than_score + fgi_local_tolerance(s->local, than_score);
}

/* ---- reporting ---------------------------------------------------------------------------------------------------- */

/* Scoring a labeling from the tables costs a pass over the model: not more often than moves have cost as much, except at the end of a
 * slice. What is reported when does not steer the search. */
static void report(fgi_solver *solver, search *s, int now) {
    if (!s->unreported) return;
    const double pass = (double)(solver->model->s->n_vars + 2 * solver->model->s->n_factors);
    if (!now && work(s) - s->reported_at < pass) return;
    if (fgi_local_violations(s->local) == 0) fgi_solver_consider(solver, fgi_local_labels(s->local));
    s->unreported = 0;
    s->reported_at = work(s);
}

static void note_best(search *s) {
    const int64_t violations = fgi_local_violations(s->local);
    const double score = fgi_local_score(s->local);
    if (!better(s, violations, score, s->best_violations, s->best_score)) return;
    s->best_violations = violations;
    s->best_score = score;
    s->unreported = 1;
}

/* ---- set-up ------------------------------------------------------------------------------------------------------- */

static fgi_rc search_create(fgi_solver *solver, fgi_error *err) {
    const fgi_model *m = solver->model;
    const int64_t n = m->s->n_vars;
    search *s = fgi_calloc(1, sizeof *s);
    solver->state = s;
    if (!s) return fgi_fail(err, FGI_NO_MEMORY, -1, "out of memory");
    s->rng.state = solver->settings.seed;
    s->local = fgi_local_create(m);
    s->construct = fgi_construct_create(m);
    s->region = fgi_region_create(m);
    s->thin = fgi_thin_create(m);
    s->block = fgi_treeblock_create(m);
    s->start = fgi_alloc(n, sizeof(int32_t));
    if (!s->local || !s->construct || !s->region || !s->thin || !s->block || !s->start) return fgi_fail(err, FGI_NO_MEMORY, -1, "out of memory");
    s->best_violations = INT64_MAX;
    s->best_score = -INFINITY;
    for (int64_t size = 4; s->n_regions < REGION_ARMS - 1 && size < n; size *= 3) s->region_size[s->n_regions++] = size;
    s->region_size[s->n_regions++] = n;
    fgi_bandit_init(&s->regions, s->n_regions, 1000);
    fgi_bandit_init(&s->bits, BITS_ARMS, 1000);
    fgi_bandit_init(&s->kicks, KICK_ARMS, 1000);
    for (int32_t k = 0; k < s->n_regions; k++) s->regions.cost[k] = 100.0 * (double)s->region_size[k];
    for (int32_t k = 0; k < BITS_ARMS; k++) s->bits.cost[k] = 1000.0 * (1 << k);
    solver->info.memory = fgi_local_memory(s->local) + n * 60;
    return FGI_OK;
}

static void search_destroy(fgi_solver *solver) {
    search *s = solver->state;
    fgi_local_free(s->local);
    fgi_construct_free(s->construct);
    fgi_region_free(s->region);
    fgi_thin_free(s->thin);
    fgi_treeblock_free(s->block);
    free(s->guide);
    free(s->start);
    free(s);
}

static void search_offered(fgi_solver *solver) { ((search *)solver->state)->offered = 1; }

extern const fgi_solver_ops fgi_search_ops;

fgi_rc fgi_search_guide(fgi_solver *solver, const double *preferences) {
    if (solver->ops != &fgi_search_ops) return FGI_BAD_ARGUMENT;
    search *s = solver->state;
    const fgi_structure *st = solver->model->s;
    double *copy = fgi_copy(preferences, st->unary_begin[st->n_vars], sizeof(double));
    if (!copy) return FGI_NO_MEMORY;
    free(s->guide);
    s->guide = copy;
    return FGI_OK;
}

/* ---- moves -------------------------------------------------------------------------------------------------------- */

/* Another label for a variable: the k-th best alternative with probability 2^-k. */
static int32_t other_label(search *s, const fgi_model *m, int32_t var) {
    const int32_t card = m->s->cards[var], now = fgi_local_labels(s->local)[var];
    if (card == 2) return 1 - now;
    const int32_t *bad;
    const double *x = fgi_local_label_scores(s->local, var, &bad);
    int32_t skip = 0, best = now;
    while (skip < card - 2 && fgi_rng_below(&s->rng, 2)) skip++;
    double above_score = INFINITY;
    int32_t above_bad = -1, above = -1;
    for (int32_t round = 0; round <= skip; round++) { /* next in the order (violations, score, label) after `above` */
        best = -1;
        for (int32_t a = 0; a < card; a++) {
            if (a == now) continue;
            const int32_t b = bad ? bad[a] : 0;
            int after = b > above_bad || (b == above_bad && (x[a] < above_score || (x[a] == above_score && a > above)));
            if (!after) continue;
            if (best < 0 || b < (bad ? bad[best] : 0) || (b == (bad ? bad[best] : 0) && x[a] > x[best])) best = a;
        }
        if (best < 0) return now;
        above = best;
        above_score = x[best];
        above_bad = bad ? bad[best] : 0;
    }
    return best;
}

static void start_block(fgi_solver *solver, search *s) {
    (void)solver;
    fgi_thin_start(s->thin, fgi_region_variables(s->region) + s->now.n_kicked, s->now.n_region - s->now.n_kicked, &s->now.options, fgi_rng_next(&s->rng));
    s->stage = SUBSET;
}

static void choose(fgi_solver *solver, search *s) {
    const fgi_model *m = solver->model;
    move *v = &s->now;
    v->operations = work(s);
    fgi_local_mark(s->local);
    v->region_arm = fgi_bandit_choose(&s->regions, &s->rng);
    v->bits_arm = fgi_bandit_choose(&s->bits, &s->rng);
    v->kick_arm = fgi_bandit_choose(&s->kicks, &s->rng);
    const int64_t size = s->region_size[v->region_arm];
    const int32_t centre = (int32_t)fgi_rng_below(&s->rng, m->s->n_vars);
    const int kick = v->kick_arm > 0 && size < m->s->n_vars;
    if (size < m->s->n_vars) v->n_region = fgi_region_grow(s->region, centre, size, (int)fgi_rng_below(&s->rng, 2), &s->rng);
    else v->n_region = fgi_region_all(s->region, &s->rng);
    const int32_t bits = 6 + 2 * v->bits_arm;
    v->options.log_limit = FGI_LOG_UNIT * bits;
    v->options.cost_limit = (int64_t)1 << 26;
    v->options.sample = 1 << fgi_rng_below(&s->rng, 5);
    v->options.last_in_first = (int32_t)fgi_rng_below(&s->rng, 3) * 50;
    v->n_kicked = 0;
    if (kick) {
        int64_t wanted = 1 << (v->kick_arm - 1);
        if (wanted > v->n_region / 2) wanted = (v->n_region + 1) / 2;
        v->n_kicked = (int32_t)wanted;
        for (int32_t k = 0; k < v->n_kicked; k++) {
            int32_t var = fgi_region_variables(s->region)[k];
            fgi_local_flip(s->local, var, other_label(s, m, var));
        }
    }
    start_block(solver, s);
}

/* Writes the block's answer into the labeling; what changed and its neighbours go onto the work list. */
static void apply(search *s) {
    const fgi_elimination *e = fgi_thin_elimination(s->thin);
    const int32_t *out = fgi_treeblock_labels(s->block);
    for (int64_t k = 0; k < e->n; k++) fgi_local_flip(s->local, e->order[k], out[k]);
}

static void judge(fgi_solver *solver, search *s, int64_t old_violations, double old_score) {
    const int64_t violations = fgi_local_violations(s->local);
    const double score = fgi_local_score(s->local);
    const int won = better(s, violations, score, old_violations, old_score);
    if (!won && better(s, old_violations, old_score, violations, score)) fgi_local_rollback(s->local);
    const double cost = work(s) - s->now.operations;
    fgi_bandit_learn(&s->regions, s->now.region_arm, won, cost);
    fgi_bandit_learn(&s->bits, s->now.bits_arm, won, cost);
    fgi_bandit_learn(&s->kicks, s->now.kick_arm, won, cost);
    if (won) note_best(s);
    report(solver, s, 0);
    solver->info.iterations++;
}

static void adopt(fgi_solver *solver, search *s) {
    s->offered = 0;
    if (solver->info.score == -INFINITY) return;
    if (s->best_violations == 0 && s->best_score >= solver->info.score) return;
    fgi_local_assign(s->local, solver->best);
    s->best_violations = fgi_local_violations(s->local);
    s->best_score = fgi_local_score(s->local);
}

/* One piece of work of about CHUNK operations. */
static fgi_rc advance(fgi_solver *solver, search *s) {
    const fgi_model *m = solver->model;
    int done = 0;
    fgi_rc rc = FGI_OK;
    switch (s->stage) {
        case UNARY_START:
            for (int64_t i = 0; i < m->s->n_vars; i++) {
                const double *u = (s->guide ? s->guide + m->s->unary_begin[i] : fgi_unary(m, i));
                int32_t best = 0;
                for (int32_t a = 1; a < m->s->cards[i]; a++)
                    if (u[a] > u[best]) best = a;
                s->start[i] = best;
            }
            fgi_local_assign(s->local, s->start);
            s->stage = FIRST_ASCENT;
            break;
        case FIRST_ASCENT:
            if (!fgi_local_ascend(s->local, CHUNK)) break;
            note_best(s);
            report(solver, s, 1);
            s->stage = CHOOSE;
            if (fgi_local_violations(s->local) > 0) {
                fgi_construct_start(s->construct, s->guide, NULL, 1, 100000);
                s->stage = CONSTRUCT;
            }
            break;
        case CONSTRUCT: {
            fgi_construct_state state = fgi_construct_step(s->construct, CHUNK);
            if (state == FGI_CONSTRUCT_RUNNING) break;
            if (state == FGI_CONSTRUCT_INFEASIBLE) {
                fgi_solver_bound(solver, -INFINITY);
                break;
            }
            if (state == FGI_CONSTRUCT_DONE) {
                fgi_local_assign(s->local, fgi_construct_labels(s->construct));
                s->stage = FIRST_ASCENT;
            } else {
                s->stage = CHOOSE;
            }
            break;
        }
        case CHOOSE:
            if (s->offered) adopt(solver, s);
            choose(solver, s);
            break;
        case SUBSET:
            rc = fgi_thin_step(s->thin, CHUNK, &done);
            if (rc || !done) break;
            rc = fgi_treeblock_start(s->block, fgi_thin_elimination(s->thin), fgi_local_labels(s->local),
                                     fgi_local_violations(s->local) > 0 ? fgi_local_penalty(s->local) : 0, fgi_rng_next(&s->rng));
            s->stage = BLOCK;
            break;
        case BLOCK:
            rc = fgi_treeblock_step(s->block, CHUNK, &done);
            if (rc || !done) break;
            apply(s);
            s->stage = ASCENT;
            if (s->now.n_kicked > 0) {
                s->now.n_kicked = 0;
                start_block(solver, s);
            }
            break;
        case ASCENT:
            if (fgi_local_ascend(s->local, CHUNK)) s->stage = JUDGE;
            break;
        case JUDGE:
            break;
    }
    return rc;
}

static fgi_rc search_run(fgi_solver *solver, double deadline, int64_t iteration_limit) {
    search *s = solver->state;
    fgi_rc rc = FGI_OK;
    if (solver->model->s->n_vars == 0) {
        fgi_solver_consider(solver, s->start);
        solver->info.status = FGI_CONVERGED;
        return FGI_OK;
    }
    do {
        if (s->stage == CHOOSE && (solver->info.iterations >= iteration_limit || fgi_solver_done(solver))) break;
        rc = advance(solver, s);
        if (s->stage == JUDGE) {
            judge(solver, s, fgi_local_mark_violations(s->local), fgi_local_mark_score(s->local));
            s->stage = CHOOSE;
        }
    } while (!rc && solver->info.status == FGI_RUNNING && solver->info.bound > -INFINITY && fgi_clock() < deadline);
    if (!rc && s->stage == CHOOSE) report(solver, s, 1);
    solver->info.entries_touched = (int64_t)work(s);
    return rc;
}

const fgi_solver_ops fgi_search_ops = {.name = "search", .create = search_create, .run = search_run, .destroy = search_destroy, .offered = search_offered};
