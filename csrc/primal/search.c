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
static double patience(const fgi_primal *s) {
    const double least = 5e6 + 5e3 * (double)s->model->s->n_vars + PATIENT_CHANGES * s->changes;
    const double taken = s->last_gain - s->epoch_begun;
    return taken / 3 > least ? taken / 3 : least;
}

/* However much it gains: several labelings put together gain more than one of them can in the same time. On dense
 * models annealing for longer soon gains more than what follows a short one, or comes before the first. */
static double most_work(const fgi_primal *s) {
    if (s->dense && (s->kind == FGI_PRIMAL_ANNEALED || s->kind == FGI_PRIMAL_FIRST))
        return fgi_larger(s->annealed, s->short_epoch);
    const fgi_structure *st = s->model->s;
    const double size = (double)(st->unary_begin[st->n_vars] + st->adj_begin[st->n_vars]);
    const double least = EPOCH_WORK * size, share = fgi_primal_work(s) / 16;
    return share > least ? share : least;
}

double fgi_primal_work(const fgi_primal *s) {
    return s->overhead + 3.0 * (double)fgi_labeling_operations(s->local) + 4.0 * (double)fgi_thin_operations(s->thin) +
        (double)fgi_block_operations(s->block) +
        (double)CONSTRUCT_COST * (double)fgi_construct_operations(s->construct) +
        3.0 * (double)fgi_tabu_operations(s->tabu) + (s->swap ? 3.0 * (double)fgi_swap_operations(s->swap) : 0) +
        5.0 * (double)fgi_anneal_operations(s->anneal) +
        (s->repair ? (double)REPAIR_COST * (double)fgi_repair_operations(s->repair) : 0);
}

int fgi_primal_better(
    const fgi_primal *s, int64_t violations, double score, int64_t than_violations, double than_score) {
    if (violations != than_violations) return violations < than_violations;
    return score > than_score + fgi_labeling_tolerance(s->local, than_score);
}

/* ---- reporting ---------------------------------------------------------------------------------------------- */

/* Scoring a labeling from the tables costs a pass over the model: not more often than moves have cost as much, except
 * at the end of a slice or an epoch. What is reported when does not steer the search. In the middle of a move it is
 * what the move began with, or the best that tabu search, which may take long, has come to. */
static double pass_work(const fgi_solver *solver) {
    return 20 * (double)(solver->model->s->n_vars + solver->model->s->n_factors);
}

/* The run of a tabu search that is under way. */
static fgi_trail *run_under_way(fgi_primal *s) {
    return s->stage == FGI_PRIMAL_SWAP ? fgi_swap_trail(s->swap) : fgi_tabu_trail(s->tabu);
}

static void show(fgi_solver *solver, fgi_primal *s) {
    if (s->stage == FGI_PRIMAL_TABU || s->stage == FGI_PRIMAL_SWAP) {
        fgi_trail_best_labels(run_under_way(s), s->before);
        if (s->best_violations == 0) fgi_solver_consider(solver, s->before);
    } else if (s->stage > FGI_PRIMAL_CHOOSE && s->now.style_arm == FGI_STYLE_BLOCK) {
        fgi_labeling_mark_labels(s->local, s->before);
        if (fgi_labeling_mark_violations(s->local) == 0) fgi_solver_consider(solver, s->before);
    } else if (fgi_labeling_violations(s->local) == 0) {
        fgi_solver_consider(solver, fgi_labeling_labels(s->local));
    }
    s->unreported = 0;
}

static void report(fgi_solver *solver, fgi_primal *s, int now) {
    if (!s->unreported || (!now && fgi_primal_work(s) - s->reported < pass_work(solver))) return;
    show(solver, s);
    s->reported = fgi_primal_work(s);
}

static void note(fgi_primal *s, int64_t violations, double score) {
    if (!fgi_primal_better(s, violations, score, s->best_violations, s->best_score)) return;
    s->best_violations = violations;
    s->best_score = score;
    s->unreported = 1;
}

static void note_best(fgi_primal *s) { note(s, fgi_labeling_violations(s->local), fgi_labeling_score(s->local)); }

/* A piece of either kind of tabu search: 1 when it has ended. */
static int run_piece(fgi_primal *s) {
    return s->stage == FGI_PRIMAL_SWAP ? fgi_swap_run(s->swap, CHUNK, &s->rng) : fgi_tabu_run(s->tabu, CHUNK, &s->rng);
}

/* A long run is shown while it goes on, by its own work alone: slices must not decide when a proof is complete. */
static fgi_rc run_tabu(fgi_solver *solver, fgi_primal *s) {
    double score;
    fgi_trail *trail = run_under_way(s);
    if (fgi_primal_work(s) - s->now.begun > most_work(s)) fgi_trail_stop(trail);
    if (run_piece(s)) {
        s->stage = FGI_PRIMAL_FOLLOW;
        return trail->failed ? FGI_NO_MEMORY : FGI_OK;
    }
    const int64_t violations = fgi_trail_best(trail, &score);
    note(s, violations, score);
    if (!s->unreported || fgi_primal_work(s) - s->now.shown < pass_work(solver)) return FGI_OK;
    show(solver, s);
    s->now.shown = fgi_primal_work(s);
    return FGI_OK;
}

/* ---- set-up ------------------------------------------------------------------------------------------------- */

/* Operations of changing the label of every variable once: whole numbers, in whatever order they are added. */
static double all_changes(const fgi_structure *st) {
    double sum = 0;
    if (st->max_arity == 2) { /* in the order of memory */
        for (int64_t i = 0; i < st->n_vars; i++)
            sum += (double)st->cards[i] * (double)(st->adj_begin[i + 1] - st->adj_begin[i]);
        return sum;
    }
    for (int64_t f = 0; f < st->n_factors; f++) {
        const int32_t *vars = fgi_factor_vars(st, f), arity = fgi_factor_arity(st, f);
        for (int32_t k = 0; k < arity; k++) sum += (arity - 1) * (double)st->cards[vars[k]];
    }
    return sum;
}

static fgi_rc search_create(fgi_solver *solver, fgi_error *err) {
    const fgi_model *m = solver->model;
    const int64_t n = m->s->n_vars;
    fgi_primal *s = fgi_calloc(1, sizeof *s);
    solver->state = s;
    if (!s) return fgi_no_memory(err);
    s->model = m;
    s->rng.state = solver->settings.seed;
    s->local = fgi_labeling_create(m);
    s->construct = fgi_construct_create(m);
    s->region = fgi_region_create(m, &s->arena);
    s->thin = fgi_thin_create(m);
    s->block = fgi_block_create(m);
    s->tabu = fgi_tabu_create(m, s->local, &s->arena);
    if (s->local) s->swap = fgi_swap_create(m, s->local, &s->arena);
    s->anneal = fgi_anneal_create(m, s->local);
    s->changes = all_changes(m->s);
    s->dense = s->changes > DENSE_CHANGES * (double)m->s->unary_begin[n];
    s->annealing = (int64_t)(FIRST_SWEEPS * ((double)(m->s->unary_begin[n] + 4 * n) + 0.1 * s->changes));
    s->short_epoch = SHORT_EPOCH * (double)s->annealing;
    s->start = fgi_take_zero(&s->arena, n, int32_t);
    s->before = fgi_take(&s->arena, n, int32_t);
    s->focus = fgi_take(&s->arena, n, int32_t);
    s->alternatives = fgi_take(&s->arena, n, int32_t);
    fgi_elites_init(&s->elites, n);
    if (s->arena.failed || !s->local || !s->anneal || !s->construct || !s->thin || !s->block) return fgi_no_memory(err);
    fgi_labeling_keep_effects(s->local);
    fgi_labeling_narrow_choices(s->local);
    s->best_violations = INT64_MAX;
    s->best_score = -INFINITY;
    fgi_bandit_init(&s->kinds, FGI_PRIMAL_KINDS, 1000);
    fgi_moves_init(s);
    solver->info.memory = s->arena.bytes + fgi_labeling_memory(s->local) + fgi_construct_memory(s->construct) +
        n * FGI_ELITES * (int64_t)sizeof(int32_t);
    return FGI_OK;
}

static void search_destroy(fgi_solver *solver) {
    fgi_primal *s = solver->state;
    fgi_labeling_free(s->local);
    fgi_construct_free(s->construct);
    fgi_repair_free(s->repair);
    fgi_thin_free(s->thin);
    fgi_block_free(s->block);
    fgi_tabu_free(s->tabu);
    fgi_swap_free(s->swap);
    fgi_anneal_free(s->anneal);
    fgi_solver_free(s->joined);
    fgi_join_free(&s->join);
    fgi_elites_free(&s->elites);
    fgi_arena_free(&s->arena);
    free(s);
}

static void search_offered(fgi_solver *solver) { ((fgi_primal *)solver->state)->offered = 1; }

/* ---- moves -------------------------------------------------------------------------------------------------- */

/* Writes the block's answer into the labeling; neighbours of what changed go onto the work list. Returns 1 when done.
 */
static int apply(fgi_primal *s, int64_t max_operations) {
    const fgi_elimination *e = fgi_thin_elimination(s->thin);
    const int32_t *out = fgi_block_labels(s->block);
    const int64_t end = fgi_labeling_operations(s->local) + max_operations;
    for (; s->now.cursor < e->n; s->now.cursor++) {
        if (fgi_labeling_operations(s->local) > end) return 0;
        fgi_labeling_flip(s->local, e->order[s->now.cursor], out[s->now.cursor]);
    }
    return 1;
}

/* Keeps or takes back the move, and learns from it. */
static void judge(fgi_solver *solver, fgi_primal *s) {
    const int64_t violations = fgi_labeling_violations(s->local),
                  old_violations = fgi_labeling_mark_violations(s->local);
    const double score = fgi_labeling_score(s->local), old_score = fgi_labeling_mark_score(s->local);
    double success = 0;
    if (fgi_primal_better(s, violations, score, old_violations, old_score)) {
        const double gain = violations < old_violations ? s->gain_scale : score - old_score;
        s->gain_scale = s->gain_scale > 0 ? 0.95 * s->gain_scale + 0.05 * gain : gain;
        success = s->gain_scale > 0 ? gain / s->gain_scale : 1;
        s->last_gain = fgi_primal_work(s);
        note_best(s);
    } else if (fgi_primal_better(s, old_violations, old_score, violations, score)) {
        fgi_labeling_rollback(s->local);
    }
    const double cost = fgi_primal_work(s) - s->now.begun;
    fgi_bandit_learn(&s->styles, s->now.style_arm, success, cost);
    s->style_work[s->now.style_arm] += cost;
    if (s->now.style_arm == FGI_STYLE_TABU) {
        fgi_bandit_learn(&s->tabus, s->now.tabu_arm, success, cost);
    } else if (s->now.style_arm == FGI_STYLE_BLOCK) {
        fgi_bandit_learn(&s->blocks, s->now.block_arm, success, cost);
        fgi_bandit_learn(&s->shapes, s->now.shape_arm, success, cost);
        fgi_bandit_learn(&s->fusions, s->now.fusion_arm, success, cost);
        fgi_bandit_learn(&s->kicks, s->now.kick_arm, success, cost);
    }
    s->stage = FGI_PRIMAL_CHOOSE;
    report(solver, s, 0);
    solver->info.iterations++;
}

/* A better labeling came from outside: go on from there. */
static void adopt(fgi_solver *solver, fgi_primal *s) {
    s->offered = 0;
    if (solver->info.score == -INFINITY || (s->best_violations == 0 && s->best_score >= solver->info.score)) return;
    s->unreported = 0;
    /* What is being made is to be different: it waits for the others. On dense models annealings gain more than what
     * anybody else has found on the way, and would begin again and again. */
    if (s->n_fresh > 0 || s->dense) {
        s->best_violations = 0;
        s->best_score = solver->info.score;
        fgi_elites_add(&s->elites, solver->best, 0, s->best_score);
        return;
    }
    fgi_labeling_assign(s->local, solver->best);
    s->best_violations = fgi_labeling_violations(s->local);
    s->best_score = fgi_labeling_score(s->local);
    s->last_gain = fgi_primal_work(s);
}

static void end_epoch(fgi_solver *solver, fgi_primal *s) {
    report(solver, s, 1);
    fgi_elites_add(
        &s->elites, fgi_labeling_labels(s->local), fgi_labeling_violations(s->local), fgi_labeling_score(s->local));
    if (s->kind != FGI_PRIMAL_FIRST && s->n_fresh == 0) {
        fgi_bandit_learn(&s->kinds, (int32_t)s->kind, fgi_primal_has_gained(s), fgi_primal_work(s) - s->kind_begun);
        s->kind_work[s->kind] += fgi_primal_work(s) - s->kind_begun;
    }
    s->stage = FGI_PRIMAL_EPOCH;
}

/* Pieces of work that a way to feasibility may take: few once a feasible labeling is known; else as much as all work so
 * far, so that neither these nor moves starve. */
static int64_t pieces(const fgi_primal *s, double cost) {
    return CONSTRUCT_PIECES + (s->best_violations > 0 ? (int64_t)(fgi_primal_work(s) / (cost * CHUNK)) : 0);
}

static fgi_rc start_repair(fgi_primal *s) {
    s->stage = FGI_PRIMAL_CHOOSE;
    if (s->best_violations == 0) return FGI_OK;
    if (!s->repair && !(s->repair = fgi_repair_create(s->model, s->local))) return FGI_NO_MEMORY;
    fgi_repair_start(s->repair);
    s->construct_pieces = pieces(s, 2 * REPAIR_COST);
    s->stage = FGI_PRIMAL_REPAIR;
    return FGI_OK;
}

static void repair(fgi_primal *s) {
    const int done = fgi_repair_step(s->repair, CHUNK, &s->rng);
    if (!done && s->construct_pieces-- > 0) return;
    fgi_repair_end(s->repair);
    s->stage = FGI_PRIMAL_ASCENT;
}

/* Feasible rounding, for a limited time. */
static fgi_rc construct(fgi_solver *solver, fgi_primal *s) {
    if (s->construct_pieces-- == 0) return start_repair(s);
    switch (fgi_construct_step(s->construct, CHUNK)) {
    case FGI_CONSTRUCT_RUNNING: return FGI_OK;
    case FGI_CONSTRUCT_INFEASIBLE: fgi_solver_bound(solver, -INFINITY); return FGI_OK;
    case FGI_CONSTRUCT_GAVE_UP: return start_repair(s);
    case FGI_CONSTRUCT_DONE: break;
    }
    fgi_labeling_assign(s->local, fgi_construct_labels(s->construct));
    s->stage = FGI_PRIMAL_ASCENT;
    return FGI_OK;
}

/* A labeling that no single change improves. Where it is infeasible, feasible rounding gets a try in every epoch. */
static void end_ascent(fgi_solver *solver, fgi_primal *s) {
    note_best(s);
    report(solver, s, 1);
    s->stage = FGI_PRIMAL_CHOOSE;
    if (fgi_labeling_violations(s->local) == 0 || s->constructed) return;
    s->constructed = 1;
    s->construct_pieces = pieces(s, CONSTRUCT_COST);
    const int32_t *hint = s->kind == FGI_PRIMAL_FIRST ? NULL : fgi_labeling_labels(s->local);
    fgi_construct_start(s->construct, NULL, hint, 1, INT64_MAX - 1);
    s->stage = FGI_PRIMAL_CONSTRUCT;
}

/* The subset has been thinned: its best labels come next. */
static fgi_rc optimise_block(fgi_primal *s) {
    s->stage = FGI_PRIMAL_BLOCK;
    return fgi_block_start(s->block, fgi_thin_elimination(s->thin), fgi_labeling_labels(s->local),
        s->now.options.two_states ? s->alternatives : NULL,
        fgi_labeling_violations(s->local) > 0 ? fgi_labeling_penalty(s->local) : 0, fgi_rng_next(&s->rng));
}

/* Its labels have been applied: after a kick once more, with the kicked variables free. */
static void end_block(fgi_primal *s) {
    s->stage = FGI_PRIMAL_FOLLOW;
    if (s->now.n_kicked == 0) return;
    s->now.n_kicked = 0;
    fgi_move_start_block(s);
}

static void end_anneal(fgi_primal *s) {
    fgi_labeling_push_all(s->local);
    s->last_gain = fgi_primal_work(s);
    s->annealed = s->last_gain - s->epoch_begun;
    if (s->dense) s->epoch_begun = s->last_gain;
    s->stage = FGI_PRIMAL_ASCENT;
}

static void begin_apply(fgi_primal *s) {
    s->now.cursor = 0;
    s->stage = FGI_PRIMAL_APPLY;
}

/* One piece of work of about CHUNK operations. */
static fgi_rc advance(fgi_solver *solver, fgi_primal *s) {
    int done = 0;
    fgi_rc rc = FGI_OK;
    switch (s->stage) {
    case FGI_PRIMAL_EPOCH: fgi_primal_begin_epoch(s, solver->info.score > -INFINITY ? solver->best : NULL); break;
    case FGI_PRIMAL_COMPONENTS:
        if (fgi_primal_components(s, CHUNK) && !fgi_primal_next_parent(s)) s->stage = FGI_PRIMAL_ASCENT;
        break;
    case FGI_PRIMAL_JOIN:
        if (!fgi_primal_join(s)) break;
        s->last_gain = fgi_primal_work(s);
        s->stage = FGI_PRIMAL_ASCENT;
        break;
    case FGI_PRIMAL_ANNEAL:
        if (fgi_anneal_run(s->anneal, CHUNK, &s->rng)) end_anneal(s);
        break;
    case FGI_PRIMAL_ASCENT:
        if (fgi_labeling_ascend(s->local, CHUNK)) end_ascent(solver, s);
        break;
    case FGI_PRIMAL_CONSTRUCT: rc = construct(solver, s); break;
    case FGI_PRIMAL_REPAIR: repair(s); break;
    case FGI_PRIMAL_CHOOSE:
        if (s->offered) adopt(solver, s);
        if (fgi_primal_work(s) - s->last_gain > patience(s) || fgi_primal_work(s) - s->epoch_begun > most_work(s))
            end_epoch(solver, s);
        else rc = fgi_move_choose(s);
        break;
    case FGI_PRIMAL_TABU:
    case FGI_PRIMAL_SWAP: rc = run_tabu(solver, s); break;
    case FGI_PRIMAL_PROPOSE:
        if (fgi_move_propose(s, CHUNK)) fgi_move_start_block(s);
        break;
    case FGI_PRIMAL_THIN:
        rc = fgi_thin_step(s->thin, CHUNK, &done);
        if (!rc && done) rc = optimise_block(s);
        break;
    case FGI_PRIMAL_BLOCK:
        rc = fgi_block_step(s->block, CHUNK, &done);
        if (!rc && done) begin_apply(s);
        break;
    case FGI_PRIMAL_APPLY:
        if (apply(s, CHUNK)) end_block(s);
        break;
    case FGI_PRIMAL_FOLLOW:
        if (fgi_labeling_ascend(s->local, CHUNK)) s->stage = FGI_PRIMAL_JUDGE;
        break;
    case FGI_PRIMAL_JUDGE: judge(solver, s); break;
    }
    return rc;
}

/* Work has come to its limit, in the middle of a move, too. */
static int is_to_pause(const fgi_solver *solver, const fgi_primal *s) {
    return fgi_primal_work(s) >= (double)solver->pause_at;
}

static fgi_rc search_run(fgi_solver *solver, double deadline, int64_t iteration_limit) {
    fgi_primal *s = solver->state;
    fgi_rc rc = FGI_OK;
    fgi_solver_trivial_bound(solver);
    if (solver->model->s->n_vars == 0) {
        fgi_solver_consider(solver, s->start);
        solver->info.status = FGI_CONVERGED;
        return FGI_OK;
    }
    do {
        if (s->stage == FGI_PRIMAL_CHOOSE && (solver->info.iterations >= iteration_limit || fgi_solver_done(solver)))
            break;
        rc = advance(solver, s);
    } while (!rc && solver->info.status == FGI_RUNNING && solver->info.bound > -INFINITY && !is_to_pause(solver, s) &&
        fgi_clock() < deadline);
    solver->info.paused = is_to_pause(solver, s);
    /* Whoever says where to pause gets the same there, whenever the clock was looked at on the way. */
    if (!rc && (s->stage == FGI_PRIMAL_CHOOSE || solver->info.paused)) report(solver, s, 1);
    solver->info.entries_touched = (int64_t)fgi_primal_work(s);
    return rc;
}

const fgi_solver_ops fgi_search_ops = {
    .name = "search", .create = search_create, .run = search_run, .destroy = search_destroy, .offered = search_offered};
