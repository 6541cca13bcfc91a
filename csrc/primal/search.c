/* primal/search.c - primal search: a labeling improved by exact re-optimisation of large random subsets, until told to
 * stop.
 *
 * One iteration is one move: choose a region and a table size; optionally kick a few variables to other labels and hold
 * them there; re-optimise a thin subset of the region exactly (primal/thin.c, primal/block.c); after a kick once more
 * with the kicked variables free; coordinate ascent from what changed; keep the result unless it is worse. Tabu search
 * (primal/tabu.c), and where variables must differ exchanges of labels (primal/swap.c), are moves, too. Region size,
 * table size and kick are chosen by gain per operation (primal/parts.c). When moves stop gaining, or have had their
 * share, the labeling joins the elites and another epoch begins elsewhere (primal/epoch.c): afresh, near the best, or
 * where all elites put together lead (primal/join.c).
 *
 * All decisions come from the seed and from operation counts, none from the clock: a run can be cut into slices
 * anywhere. */
#include "primal/search.h"
#include <string.h>

/* Decision 0016 has what half and twice of these numbers do. */
enum {
    CHUNK = 100000,        /* operations between two looks at the clock: some tenths of a millisecond */
    FIRST_SWEEPS = 64,     /* sweeps of the first annealing; later ones are longer */
    SHORT_EPOCH = 16,      /* work per operation of that one: four times what it takes */
    CONSTRUCT_COST = 30,   /* work of an operation of feasible rounding, see fgi_primal_work */
    REPAIR_COST = 5,       /* work of an operation of repair */
    CONSTRUCT_PIECES = 20, /* pieces of CHUNK operations, once a feasible labeling is known */
    PATIENT_CHANGES = 15,  /* changes of all labels without a gain, see patience: dense models need them */
    DENSE_CHANGES = 32,    /* labels of neighbours per label from which a model is dense; grids have 4 */
    EPOCH_WORK = 10000     /* per label and variable of a factor: what an epoch may take while there are few */
};

/* An epoch ends after so much work without a gain; the longer it has gained, the longer. */
static double patience(const fgi_primal *primal) {
    const double least = 5e6 + 5e3 * (double)primal->model->s->n_vars + PATIENT_CHANGES * primal->changes;
    const double taken = primal->last_gain - primal->epoch_begun;
    return taken / 3 > least ? taken / 3 : least;
}

/* However much it gains: several labelings put together gain more than one of them can in the same time. On dense
 * models annealing for longer soon gains more than what follows a short one, or comes before the first. */
static double most_work(const fgi_primal *primal) {
    if (primal->dense && (primal->kind == FGI_PRIMAL_ANNEALED || primal->kind == FGI_PRIMAL_FIRST))
        return fgi_larger(primal->annealed, primal->short_epoch);
    const fgi_structure *s = primal->model->s;
    const double size = (double)(s->unary_begin[s->n_vars] + s->adj_begin[s->n_vars]);
    const double least = EPOCH_WORK * size, share = fgi_primal_work(primal) / 16;
    return share > least ? share : least;
}

double fgi_primal_work(const fgi_primal *primal) {
    return primal->overhead + 3.0 * (double)fgi_labeling_operations(primal->local) +
        4.0 * (double)fgi_thin_operations(primal->thin) + (double)fgi_block_operations(primal->block) +
        (double)CONSTRUCT_COST * (double)fgi_construct_operations(primal->construct) +
        3.0 * (double)fgi_tabu_operations(primal->tabu) +
        (primal->swap ? 3.0 * (double)fgi_swap_operations(primal->swap) : 0) +
        5.0 * (double)fgi_anneal_operations(primal->anneal) +
        (primal->repair ? (double)REPAIR_COST * (double)fgi_repair_operations(primal->repair) : 0);
}

int fgi_primal_better(
    const fgi_primal *primal, int64_t violations, double score, int64_t than_violations, double than_score) {
    if (violations != than_violations) return violations < than_violations;
    return score > than_score + fgi_labeling_tolerance(primal->local, than_score);
}

/* ---- reporting ---------------------------------------------------------------------------------------------- */

/* Scoring a labeling from the tables costs a pass over the model: not more often than moves have cost as much, except
 * at the end of a slice or an epoch. What is reported when does not steer the search. In the middle of a move it is
 * what the move began with, or the best that tabu search, which may take long, has come to. */
static double pass_work(const fgi_solver *solver) {
    return 20 * (double)(solver->model->s->n_vars + solver->model->s->n_factors);
}

/* The run of a tabu search that is under way. */
static fgi_trail *run_under_way(fgi_primal *primal) {
    return primal->stage == FGI_PRIMAL_SWAP ? fgi_swap_trail(primal->swap) : fgi_tabu_trail(primal->tabu);
}

static void show(fgi_solver *solver, fgi_primal *primal) {
    if (primal->stage == FGI_PRIMAL_TABU || primal->stage == FGI_PRIMAL_SWAP) {
        fgi_trail_best_labels(run_under_way(primal), primal->before);
        if (primal->best_violations == 0) fgi_solver_consider(solver, primal->before);
    } else if (primal->stage > FGI_PRIMAL_CHOOSE && primal->now.style_arm == FGI_STYLE_BLOCK) {
        fgi_labeling_mark_labels(primal->local, primal->before);
        if (fgi_labeling_mark_violations(primal->local) == 0) fgi_solver_consider(solver, primal->before);
    } else if (fgi_labeling_violations(primal->local) == 0) {
        fgi_solver_consider(solver, fgi_labeling_labels(primal->local));
    }
    primal->unreported = 0;
}

static void report(fgi_solver *solver, fgi_primal *primal, int now) {
    if (!primal->unreported || (!now && fgi_primal_work(primal) - primal->reported < pass_work(solver))) return;
    show(solver, primal);
    primal->reported = fgi_primal_work(primal);
}

static void note(fgi_primal *primal, int64_t violations, double score) {
    if (!fgi_primal_better(primal, violations, score, primal->best_violations, primal->best_score)) return;
    primal->best_violations = violations;
    primal->best_score = score;
    primal->unreported = 1;
}

static void note_best(fgi_primal *primal) {
    note(primal, fgi_labeling_violations(primal->local), fgi_labeling_score(primal->local));
}

/* A piece of either kind of tabu search: 1 when it has ended. */
static int run_piece(fgi_primal *primal) {
    return primal->stage == FGI_PRIMAL_SWAP ? fgi_swap_run(primal->swap, CHUNK, &primal->rng)
                                            : fgi_tabu_run(primal->tabu, CHUNK, &primal->rng);
}

/* A long run is shown while it goes on, by its own work alone: slices must not decide when a proof is complete. */
static fgi_rc run_tabu(fgi_solver *solver, fgi_primal *primal) {
    double score;
    fgi_trail *trail = run_under_way(primal);
    if (fgi_primal_work(primal) - primal->now.begun > most_work(primal)) fgi_trail_stop(trail);
    if (run_piece(primal)) {
        primal->stage = FGI_PRIMAL_FOLLOW;
        return trail->failed ? FGI_NO_MEMORY : FGI_OK;
    }
    const int64_t violations = fgi_trail_best(trail, &score);
    note(primal, violations, score);
    if (!primal->unreported || fgi_primal_work(primal) - primal->now.shown < pass_work(solver)) return FGI_OK;
    show(solver, primal);
    primal->now.shown = fgi_primal_work(primal);
    return FGI_OK;
}

/* ---- set-up ------------------------------------------------------------------------------------------------- */

/* Operations of changing the label of every variable once: whole numbers, in whatever order they are added. */
static double all_changes(const fgi_structure *s) {
    double sum = 0;
    if (s->max_arity == 2) { /* in the order of memory */
        for (int64_t i = 0; i < s->n_vars; i++)
            sum += (double)s->cards[i] * (double)(s->adj_begin[i + 1] - s->adj_begin[i]);
        return sum;
    }
    for (int64_t f = 0; f < s->n_factors; f++) {
        const int32_t *vars = fgi_factor_vars(s, f), arity = fgi_factor_arity(s, f);
        for (int32_t k = 0; k < arity; k++) sum += (arity - 1) * (double)s->cards[vars[k]];
    }
    return sum;
}

static fgi_rc search_create(fgi_solver *solver, fgi_error *err) {
    const fgi_model *m = solver->model;
    const int64_t n = m->s->n_vars;
    fgi_primal *primal = fgi_calloc(1, sizeof *primal);
    solver->state = primal;
    if (!primal) return fgi_no_memory(err);
    primal->model = m;
    primal->rng.state = solver->settings.seed;
    primal->local = fgi_labeling_create(m);
    primal->construct = fgi_construct_create(m);
    primal->region = fgi_region_create(m, &primal->arena);
    primal->thin = fgi_thin_create(m);
    primal->block = fgi_block_create(m);
    primal->tabu = fgi_tabu_create(m, primal->local, &primal->arena);
    if (primal->local) primal->swap = fgi_swap_create(m, primal->local, &primal->arena);
    primal->anneal = fgi_anneal_create(m, primal->local);
    primal->changes = all_changes(m->s);
    primal->dense = primal->changes > DENSE_CHANGES * (double)m->s->unary_begin[n];
    primal->annealing = (int64_t)(FIRST_SWEEPS * ((double)(m->s->unary_begin[n] + 4 * n) + 0.1 * primal->changes));
    primal->short_epoch = SHORT_EPOCH * (double)primal->annealing;
    primal->start = fgi_take_zero(&primal->arena, n, int32_t);
    primal->before = fgi_take(&primal->arena, n, int32_t);
    primal->focus = fgi_take(&primal->arena, n, int32_t);
    primal->alternatives = fgi_take(&primal->arena, n, int32_t);
    fgi_elites_init(&primal->elites, n);
    if (primal->arena.failed || !primal->local || !primal->anneal || !primal->construct || !primal->thin ||
        !primal->block)
        return fgi_no_memory(err);
    fgi_labeling_keep_effects(primal->local);
    fgi_labeling_narrow_choices(primal->local);
    primal->best_violations = INT64_MAX;
    primal->best_score = -INFINITY;
    fgi_bandit_init(&primal->kinds, FGI_PRIMAL_KINDS, 1000);
    fgi_moves_init(primal);
    solver->info.memory = primal->arena.bytes + fgi_labeling_memory(primal->local) +
        fgi_construct_memory(primal->construct) + n * FGI_ELITES * (int64_t)sizeof(int32_t);
    return FGI_OK;
}

static void search_destroy(fgi_solver *solver) {
    fgi_primal *primal = solver->state;
    fgi_labeling_free(primal->local);
    fgi_construct_free(primal->construct);
    fgi_repair_free(primal->repair);
    fgi_thin_free(primal->thin);
    fgi_block_free(primal->block);
    fgi_tabu_free(primal->tabu);
    fgi_swap_free(primal->swap);
    fgi_anneal_free(primal->anneal);
    fgi_solver_free(primal->joined);
    fgi_join_free(&primal->join);
    fgi_elites_free(&primal->elites);
    fgi_arena_free(&primal->arena);
    free(primal);
}

static void search_offered(fgi_solver *solver) { ((fgi_primal *)solver->state)->offered = 1; }

/* ---- moves -------------------------------------------------------------------------------------------------- */

/* Writes the block's answer into the labeling; neighbours of what changed go onto the work list. Returns 1 when done.
 */
static int apply(fgi_primal *primal, int64_t max_operations) {
    const fgi_elimination *e = fgi_thin_elimination(primal->thin);
    const int32_t *out = fgi_block_labels(primal->block);
    const int64_t end = fgi_labeling_operations(primal->local) + max_operations;
    for (; primal->now.cursor < e->n; primal->now.cursor++) {
        if (fgi_labeling_operations(primal->local) > end) return 0;
        fgi_labeling_flip(primal->local, e->order[primal->now.cursor], out[primal->now.cursor]);
    }
    return 1;
}

/* Keeps or takes back the move, and learns from it. */
static void judge(fgi_solver *solver, fgi_primal *primal) {
    const int64_t violations = fgi_labeling_violations(primal->local),
                  old_violations = fgi_labeling_mark_violations(primal->local);
    const double score = fgi_labeling_score(primal->local), old_score = fgi_labeling_mark_score(primal->local);
    double success = 0;
    if (fgi_primal_better(primal, violations, score, old_violations, old_score)) {
        const double gain = violations < old_violations ? primal->gain_scale : score - old_score;
        primal->gain_scale = primal->gain_scale > 0 ? 0.95 * primal->gain_scale + 0.05 * gain : gain;
        success = primal->gain_scale > 0 ? gain / primal->gain_scale : 1;
        primal->last_gain = fgi_primal_work(primal);
        note_best(primal);
    } else if (fgi_primal_better(primal, old_violations, old_score, violations, score)) {
        fgi_labeling_rollback(primal->local);
    }
    const double cost = fgi_primal_work(primal) - primal->now.begun;
    fgi_bandit_learn(&primal->styles, primal->now.style_arm, success, cost);
    primal->style_work[primal->now.style_arm] += cost;
    if (primal->now.style_arm == FGI_STYLE_TABU) {
        fgi_bandit_learn(&primal->tabus, primal->now.tabu_arm, success, cost);
    } else if (primal->now.style_arm == FGI_STYLE_BLOCK) {
        fgi_bandit_learn(&primal->blocks, primal->now.block_arm, success, cost);
        fgi_bandit_learn(&primal->shapes, primal->now.shape_arm, success, cost);
        fgi_bandit_learn(&primal->fusions, primal->now.fusion_arm, success, cost);
        fgi_bandit_learn(&primal->kicks, primal->now.kick_arm, success, cost);
    }
    primal->stage = FGI_PRIMAL_CHOOSE;
    report(solver, primal, 0);
    solver->info.iterations++;
}

/* A better labeling came from outside: go on from there. */
static void adopt(fgi_solver *solver, fgi_primal *primal) {
    primal->offered = 0;
    if (solver->info.score == -INFINITY || (primal->best_violations == 0 && primal->best_score >= solver->info.score))
        return;
    primal->unreported = 0;
    /* The elite under construction shall differ from the others, so a labeling from outside waits among them. On dense
     * models an annealing gains more than such a labeling, and must not begin anew for each. */
    if (primal->n_fresh > 0 || primal->dense) {
        primal->best_violations = 0;
        primal->best_score = solver->info.score;
        fgi_elites_add(&primal->elites, solver->best, 0, primal->best_score);
        return;
    }
    fgi_labeling_assign(primal->local, solver->best);
    primal->best_violations = fgi_labeling_violations(primal->local);
    primal->best_score = fgi_labeling_score(primal->local);
    primal->last_gain = fgi_primal_work(primal);
}

static void end_epoch(fgi_solver *solver, fgi_primal *primal) {
    report(solver, primal, 1);
    fgi_elites_add(&primal->elites, fgi_labeling_labels(primal->local), fgi_labeling_violations(primal->local),
        fgi_labeling_score(primal->local));
    if (primal->kind != FGI_PRIMAL_FIRST && primal->n_fresh == 0) {
        fgi_bandit_learn(&primal->kinds, (int32_t)primal->kind, fgi_primal_has_gained(primal),
            fgi_primal_work(primal) - primal->kind_begun);
        primal->kind_work[primal->kind] += fgi_primal_work(primal) - primal->kind_begun;
    }
    primal->stage = FGI_PRIMAL_EPOCH;
}

/* Pieces of work that a way to feasibility may take: few once a feasible labeling is known; else as much as all work so
 * far, so that neither these nor moves starve. */
static int64_t pieces(const fgi_primal *primal, double cost) {
    return CONSTRUCT_PIECES + (primal->best_violations > 0 ? (int64_t)(fgi_primal_work(primal) / (cost * CHUNK)) : 0);
}

static fgi_rc start_repair(fgi_primal *primal) {
    primal->stage = FGI_PRIMAL_CHOOSE;
    if (primal->best_violations == 0) return FGI_OK;
    if (!primal->repair && !(primal->repair = fgi_repair_create(primal->model, primal->local))) return FGI_NO_MEMORY;
    fgi_repair_start(primal->repair);
    primal->construct_pieces = pieces(primal, 2 * REPAIR_COST);
    primal->stage = FGI_PRIMAL_REPAIR;
    return FGI_OK;
}

static void repair(fgi_primal *primal) {
    const int done = fgi_repair_step(primal->repair, CHUNK, &primal->rng);
    if (!done && primal->construct_pieces-- > 0) return;
    fgi_repair_end(primal->repair);
    primal->stage = FGI_PRIMAL_ASCENT;
}

/* Feasible rounding, for a limited time. */
static fgi_rc construct(fgi_solver *solver, fgi_primal *primal) {
    if (primal->construct_pieces-- == 0) return start_repair(primal);
    switch (fgi_construct_step(primal->construct, CHUNK)) {
    case FGI_CONSTRUCT_RUNNING: return FGI_OK;
    case FGI_CONSTRUCT_INFEASIBLE: fgi_solver_bound(solver, -INFINITY); return FGI_OK;
    case FGI_CONSTRUCT_GAVE_UP: return start_repair(primal);
    case FGI_CONSTRUCT_DONE: break;
    }
    fgi_labeling_assign(primal->local, fgi_construct_labels(primal->construct));
    primal->stage = FGI_PRIMAL_ASCENT;
    return FGI_OK;
}

/* A labeling that no single change improves. Where it is infeasible, feasible rounding gets a try in every epoch. */
static void end_ascent(fgi_solver *solver, fgi_primal *primal) {
    note_best(primal);
    report(solver, primal, 1);
    primal->stage = FGI_PRIMAL_CHOOSE;
    if (fgi_labeling_violations(primal->local) == 0 || primal->constructed) return;
    primal->constructed = 1;
    primal->construct_pieces = pieces(primal, CONSTRUCT_COST);
    const int32_t *hint = primal->kind == FGI_PRIMAL_FIRST ? NULL : fgi_labeling_labels(primal->local);
    fgi_construct_start(primal->construct, NULL, hint, 1, INT64_MAX - 1);
    primal->stage = FGI_PRIMAL_CONSTRUCT;
}

/* The subset has been thinned: its best labels come next. */
static fgi_rc optimise_block(fgi_primal *primal) {
    primal->stage = FGI_PRIMAL_BLOCK;
    return fgi_block_start(primal->block, fgi_thin_elimination(primal->thin), fgi_labeling_labels(primal->local),
        primal->now.options.two_states ? primal->alternatives : NULL,
        fgi_labeling_violations(primal->local) > 0 ? fgi_labeling_penalty(primal->local) : 0,
        fgi_rng_next(&primal->rng));
}

/* Its labels have been applied: after a kick once more, with the kicked variables free. */
static void end_block(fgi_primal *primal) {
    primal->stage = FGI_PRIMAL_FOLLOW;
    if (primal->now.n_kicked == 0) return;
    primal->now.n_kicked = 0;
    fgi_move_start_block(primal);
}

static void end_anneal(fgi_primal *primal) {
    fgi_labeling_push_all(primal->local);
    primal->last_gain = fgi_primal_work(primal);
    primal->annealed = primal->last_gain - primal->epoch_begun;
    if (primal->dense) primal->epoch_begun = primal->last_gain;
    primal->stage = FGI_PRIMAL_ASCENT;
}

static void begin_apply(fgi_primal *primal) {
    primal->now.cursor = 0;
    primal->stage = FGI_PRIMAL_APPLY;
}

/* One piece of work of about CHUNK operations. */
static fgi_rc advance(fgi_solver *solver, fgi_primal *primal) {
    int done = 0;
    fgi_rc rc = FGI_OK;
    switch (primal->stage) {
    case FGI_PRIMAL_EPOCH: fgi_primal_begin_epoch(primal, solver->info.score > -INFINITY ? solver->best : NULL); break;
    case FGI_PRIMAL_COMPONENTS:
        if (fgi_primal_components(primal, CHUNK) && !fgi_primal_next_parent(primal)) primal->stage = FGI_PRIMAL_ASCENT;
        break;
    case FGI_PRIMAL_JOIN:
        if (!fgi_primal_join(primal)) break;
        primal->last_gain = fgi_primal_work(primal);
        primal->stage = FGI_PRIMAL_ASCENT;
        break;
    case FGI_PRIMAL_ANNEAL:
        if (fgi_anneal_run(primal->anneal, CHUNK, &primal->rng)) end_anneal(primal);
        break;
    case FGI_PRIMAL_ASCENT:
        if (fgi_labeling_ascend(primal->local, CHUNK)) end_ascent(solver, primal);
        break;
    case FGI_PRIMAL_CONSTRUCT: rc = construct(solver, primal); break;
    case FGI_PRIMAL_REPAIR: repair(primal); break;
    case FGI_PRIMAL_CHOOSE:
        if (primal->offered) adopt(solver, primal);
        if (fgi_primal_work(primal) - primal->last_gain > patience(primal) ||
            fgi_primal_work(primal) - primal->epoch_begun > most_work(primal))
            end_epoch(solver, primal);
        else rc = fgi_move_choose(primal);
        break;
    case FGI_PRIMAL_TABU:
    case FGI_PRIMAL_SWAP: rc = run_tabu(solver, primal); break;
    case FGI_PRIMAL_PROPOSE:
        if (fgi_move_propose(primal, CHUNK)) fgi_move_start_block(primal);
        break;
    case FGI_PRIMAL_THIN:
        rc = fgi_thin_step(primal->thin, CHUNK, &done);
        if (!rc && done) rc = optimise_block(primal);
        break;
    case FGI_PRIMAL_BLOCK:
        rc = fgi_block_step(primal->block, CHUNK, &done);
        if (!rc && done) begin_apply(primal);
        break;
    case FGI_PRIMAL_APPLY:
        if (apply(primal, CHUNK)) end_block(primal);
        break;
    case FGI_PRIMAL_FOLLOW:
        if (fgi_labeling_ascend(primal->local, CHUNK)) primal->stage = FGI_PRIMAL_JUDGE;
        break;
    case FGI_PRIMAL_JUDGE: judge(solver, primal); break;
    }
    return rc;
}

/* Work has come to its limit, in the middle of a move, too. */
static int is_to_pause(const fgi_solver *solver, const fgi_primal *primal) {
    return fgi_primal_work(primal) >= (double)solver->pause_at;
}

static fgi_rc search_run(fgi_solver *solver, double deadline, int64_t iteration_limit) {
    fgi_primal *primal = solver->state;
    fgi_rc rc = FGI_OK;
    fgi_solver_trivial_bound(solver);
    if (solver->model->s->n_vars == 0) {
        fgi_solver_consider(solver, primal->start);
        solver->info.status = FGI_CONVERGED;
        return FGI_OK;
    }
    do {
        if (primal->stage == FGI_PRIMAL_CHOOSE &&
            (solver->info.iterations >= iteration_limit || fgi_solver_done(solver)))
            break;
        rc = advance(solver, primal);
    } while (!rc && solver->info.status == FGI_RUNNING && solver->info.bound > -INFINITY &&
        !is_to_pause(solver, primal) && fgi_clock() < deadline);
    solver->info.paused = is_to_pause(solver, primal);
    /* Whoever says where to pause gets the same there, whenever the clock was looked at on the way. */
    if (!rc && (primal->stage == FGI_PRIMAL_CHOOSE || solver->info.paused)) report(solver, primal, 1);
    solver->info.entries_touched = (int64_t)fgi_primal_work(primal);
    return rc;
}

const fgi_solver_ops fgi_search_ops = {
    .name = "search", .create = search_create, .run = search_run, .destroy = search_destroy, .offered = search_offered};
