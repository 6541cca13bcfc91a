/* dual/cycles.c - bounds for binary pairwise models from frustrated cycles (dual/cycles.h).
 *
 * Local relaxations do not see that a frustrated cycle has to violate one of its edges; here that is all that is seen.
 * One iteration improves the weights of the cycles known so far, bounds the score by them, makes a labeling from the
 * other side of that linear program, and looks for cycles that it falls short on. On planar graphs without fields the
 * bound is the optimum in the end (Barahona 1982); on other sparse ones it often is.
 *
 * Given a labeling, an edge whose weight is so much above its load that no better labeling can violate it is
 * contracted: its ends are known from each other. Where no edge is left, one labeling is all that may be better. */
#include "dual/cycles.h"
#include <string.h>
#include "base/util.h"
#include "primal/first.h"
#include "primal/labeling.h"
#include "solver.h"

/* CPU s to the proof of six models (random graph, 3D glass, three grids, a dense one that stays open): a quarter, half
 * and four times MOST_STEPS, twice LEAST_STEPS, three times NEAR, a quarter and five times SHORT are as good but for
 * noise, or worse: 80 x 80 with fields 14 to 24 s. */
enum {
    MOST_TERMS = 500000, /* terms of a model: sorting edges cannot be cut into pieces */
    PIECE = 1000000,     /* operations between two looks at the clock: a millisecond or two */
    ASCENT = 100000,     /* operations of coordinate ascent */
    LEAST_STEPS = 100,   /* steps of an iteration */
    MOST_STEPS = 1000,
    CHECKED = 50 /* steps between two looks at how far the bound is from the other side */
};
static const double NEAR = 0.1;      /* within this share of the gap both sides are near enough for new cycles */
static const double SHORT = 0.02;    /* a new cycle falls short of 1 by this much at first */
static const double SHORTEST = 1e-6; /* a new cycle falls short of 1 by this much in the end */
static const double MERGED = 0.02;   /* this share of all nodes, contracted together, is enough for a round */

typedef enum stage { PACKING, ASCENDING, FINDING, OVER } stage;

typedef struct cycles {
    fgi_spins *spins;
    fgi_packing packing;
    fgi_cycle_finder *finder;
    fgi_local *local;
    fgi_first *first;
    fgi_bonds bonds;
    int32_t *labels;
    uint8_t *side;
    stage stage;
    int64_t steps; /* steps of this iteration */
    double cost;   /* lower bound on the weights that are violated */
    double shortfall;
    int64_t counted; /* operations of finder and ascent, as counted so far */
    fgi_arena arena;
} cycles;

static void cycles_destroy(fgi_solver *solver) {
    cycles *s = solver->state;
    fgi_cycle_finder_free(s->finder);
    fgi_packing_free(&s->packing);
    fgi_spins_free(s->spins);
    fgi_local_free(s->local);
    fgi_first_free(s->first);
    fgi_arena_free(&s->arena);
    free(s);
}

static fgi_rc cycles_create(fgi_solver *solver, fgi_error *err) {
    cycles *s = fgi_calloc(1, sizeof *s);
    solver->state = s;
    if (!s) return fgi_no_memory(err);
    const int64_t n = solver->model->s->n_vars;
    if (n + solver->model->s->n_factors > MOST_TERMS)
        return fgi_fail(err, FGI_UNSUPPORTED, -1, "the model is too large for cycles: %d terms", MOST_TERMS);
    s->spins = fgi_spins_create(solver->model);
    s->local = fgi_local_create(solver->model);
    s->finder = s->spins ? fgi_cycle_finder_create(s->spins) : NULL;
    s->labels = fgi_take_zero(&s->arena, n, int32_t);
    s->side = fgi_take_zero(&s->arena, n + 1, uint8_t);
    s->bonds.parent = fgi_take(&s->arena, n + 1, int32_t);
    s->bonds.differs = fgi_take(&s->arena, n + 1, uint8_t);
    s->shortfall = SHORT;
    if (!s->local || !s->finder || s->arena.failed || fgi_packing_init(&s->packing, s->spins))
        return fgi_no_memory(err);
    solver->info.memory = s->arena.bytes + s->spins->arena.bytes + s->packing.arena.bytes + fgi_local_memory(s->local);
    return FGI_OK;
}

/* What no better labeling exceeds: the bound of what is left, or that of the labeling itself. */
static double upper(const cycles *s) {
    const double bound = s->spins->top - s->cost + s->spins->error;
    return bound + 0x1p-51 * (fabs(bound) + fabs(s->spins->top));
}

static void report(fgi_solver *solver, const cycles *s) {
    const double bound = upper(s);
    fgi_solver_bound(solver, solver->info.score > -INFINITY ? fgi_larger(bound, solver->above) : bound);
}

static void count(fgi_solver *solver, cycles *s) {
    const int64_t now = fgi_local_operations(s->local) + fgi_cycle_finder_operations(s->finder);
    solver->info.entries_touched += now - s->counted;
    s->counted = now;
}

/* ---- contraction ----------------------------------------------------------------------------------------------- */

/* Joins the ends of edges that nothing better violates. Returns how many nodes that saves, -1: nothing is better. */
static int64_t join_ends(const fgi_solver *solver, cycles *s) {
    const fgi_spins *g = s->spins;
    const double score = solver->info.score, best = score - (solver->above - score) - 0x1p-51 * fabs(score);
    const double bound = upper(s);
    int64_t joined = 0;
    fgi_bonds_clear(&s->bonds, g->n);
    for (int32_t e = 0; e < g->m; e++) {
        const double room = g->weight[e] - s->packing.load[e];
        if (room <= 0 || bound - room * (1 - 0x1p-50) + 0x1p-50 * fabs(bound) >= best) continue;
        const int made = fgi_bonds_join(&s->bonds, g->ends[2 * e], g->ends[2 * e + 1], g->odd[e]);
        if (made < 0) return -1;
        joined += made;
    }
    return joined;
}

static fgi_rc contract(cycles *s, int32_t n_left) {
    fgi_spins *const g = s->spins;
    fgi_arena arena = {0};
    int32_t *cluster = fgi_take(&arena, g->n, int32_t), *number = fgi_take(&arena, g->n, int32_t),
            *map = fgi_take(&arena, g->m, int32_t);
    uint8_t *flipped = fgi_take(&arena, g->n, uint8_t);
    fgi_packing packing = {0};
    fgi_spins *to = NULL;
    fgi_cycle_finder *finder = NULL;
    fgi_rc rc = FGI_NO_MEMORY;
    if (!arena.failed) {
        int32_t n = 0;
        for (int32_t i = 0; i < g->n; i++)
            if (s->bonds.parent[i] == i) number[i] = n++;
        for (int32_t i = 0; i < g->n; i++) cluster[i] = number[fgi_bonds_root(&s->bonds, i, &flipped[i])];
        to = fgi_spins_contract(g, cluster, flipped, n_left, map);
        finder = to ? fgi_cycle_finder_create(to) : NULL;
    }
    if (finder && !fgi_packing_init(&packing, to) && !fgi_packing_carry_over(&packing, &s->packing, map, g->m, to))
        rc = FGI_OK;
    fgi_arena_free(&arena);
    if (rc) {
        fgi_cycle_finder_free(finder);
        fgi_packing_free(&packing);
        fgi_spins_free(to);
        return rc;
    }
    s->counted -= fgi_cycle_finder_operations(s->finder);
    fgi_cycle_finder_free(s->finder);
    fgi_packing_free(&s->packing);
    fgi_spins_free(g);
    packing.omega = s->packing.omega;
    s->finder = finder;
    s->packing = packing;
    s->spins = to;
    fgi_packing_anchor(&s->packing);
    return FGI_OK;
}

/* ---- an iteration ---------------------------------------------------------------------------------------------- */

/* Variables that are no spins get whatever label there is: ascent finds a better one. */
static void read_labels(const fgi_solver *solver, cycles *s) {
    fgi_spins_labels(s->spins, s->side, s->labels);
    for (int64_t i = 0; i < solver->model->s->n_vars; i++)
        if (solver->model->s->cards[i] != 2) s->labels[i] = 0;
}

/* The labels are those of a spanning forest of edges that are not violated on the other side. */
static void round_labels(fgi_solver *solver, cycles *s) {
    fgi_cycle_finder_start(s->finder, s->packing.z_next, s->side);
    read_labels(solver, s);
    fgi_local_assign(s->local, s->labels);
}

/* After CHECKED steps: are both sides near enough? */
static int packed(const fgi_solver *solver, cycles *s) {
    const fgi_spins *g = s->spins;
    s->cost = fgi_packing_bound(&s->packing, g);
    double other = 0;
    for (int32_t e = 0; e < g->m; e++) other += g->weight[e] * s->packing.z_next[e];
    const double gap = solver->info.score > -INFINITY ? g->top - s->cost - solver->info.score : fabs(other);
    return s->steps >= MOST_STEPS || (s->steps >= LEAST_STEPS && fabs(other - s->cost) <= NEAR * gap);
}

/* Every edge has both ends in one cluster. */
static int is_spanned(cycles *s) {
    const fgi_spins *g = s->spins;
    uint8_t differs;
    for (int32_t e = 0; e < g->m; e++)
        if (fgi_bonds_root(&s->bonds, g->ends[2 * e], &differs) !=
            fgi_bonds_root(&s->bonds, g->ends[2 * e + 1], &differs))
            return 0;
    return 1;
}

/* Nothing is better than the incumbent but, if there are any, the labels that all edges that are left are met by. Where
 * more than one node is left there are others, which differ by nothing, or by what rounding has taken for nothing. */
static void conclude(fgi_solver *solver, cycles *s, int has_labels) {
    const double others = has_labels && s->spins->n > 1 ? upper(s) : -INFINITY;
    if (has_labels) {
        memset(s->side, 0, (size_t)s->spins->n);
        read_labels(solver, s);
        fgi_solver_consider(solver, s->labels);
    }
    fgi_solver_bound(solver, fgi_larger(solver->above, others));
    if (!fgi_solver_done(solver)) solver->info.status = FGI_CONVERGED; /* to rounding */
}

static fgi_rc end_packing(fgi_solver *solver, cycles *s) {
    report(solver, s);
    s->stage = OVER;
    if (fgi_solver_done(solver)) return FGI_OK;
    if (solver->info.score > -INFINITY) {
        const int64_t joined = join_ends(solver, s);
        if (joined > MERGED * s->spins->n || (joined > 0 && is_spanned(s))) {
            fgi_rc rc = contract(s, (int32_t)(s->spins->n - joined));
            if (rc) return rc;
            s->cost = fgi_packing_bound(&s->packing, s->spins);
        }
        if (joined < 0 || (s->spins->m == 0 && s->spins->whole)) {
            conclude(solver, s, joined >= 0);
            return FGI_OK;
        }
    }
    round_labels(solver, s);
    s->stage = ASCENDING;
    return FGI_OK;
}

static void end_finding(fgi_solver *solver, cycles *s) {
    fgi_packing_drop_idle(&s->packing, s->spins->m);
    fgi_packing_anchor(&s->packing);
    memcpy(s->packing.z, s->packing.z_next, (size_t)s->spins->m * sizeof(double));
    memcpy(s->packing.z_anchor, s->packing.z_next, (size_t)s->spins->m * sizeof(double));
    solver->info.iterations++;
    s->steps = 0;
    s->stage = PACKING;
    if (fgi_cycle_finder_found(s->finder) > 0) return;
    if (s->shortfall > SHORTEST) s->shortfall *= 0.1;
    else solver->info.status = FGI_CONVERGED; /* all cycles are known */
}

/* Some steps: as many as there is time for between two looks at the clock, and no more than up to the next check. */
static void pack(fgi_solver *solver, cycles *s) {
    const int64_t work = 2 * s->packing.edges.n + 6 * s->packing.n_cycles + 4 * (int64_t)s->spins->m + 1;
    const int64_t left = CHECKED - s->steps % CHECKED, fit = PIECE / work + 1, steps = fit < left ? fit : left;
    fgi_packing_iterate(&s->packing, s->spins, steps);
    s->steps += steps;
    solver->info.entries_touched += steps * work;
}

static fgi_rc advance(fgi_solver *solver, cycles *s) {
    fgi_rc rc = FGI_OK;
    int no_memory = 0;
    switch (s->stage) {
    case PACKING:
        pack(solver, s);
        if (s->steps % CHECKED == 0 && packed(solver, s)) rc = end_packing(solver, s);
        break;
    case ASCENDING:
        if (!fgi_local_ascend(s->local, ASCENT)) break;
        if (fgi_local_violations(s->local) == 0) fgi_solver_consider(solver, fgi_local_labels(s->local));
        report(solver, s);
        s->stage = FINDING;
        break;
    case FINDING:
        if (fgi_cycle_finder_run(s->finder, &s->packing, 1 - s->shortfall, PIECE, &no_memory)) end_finding(solver, s);
        if (no_memory) rc = FGI_NO_MEMORY;
        break;
    case OVER: break;
    }
    return rc;
}

static fgi_rc cycles_run(fgi_solver *solver, double deadline, int64_t iteration_limit) {
    cycles *s = solver->state;
    fgi_rc rc = FGI_OK;
    fgi_solver_trivial_bound(solver);
    do {
        if (s->stage == PACKING && s->steps == 0) { /* between two iterations */
            if (!fgi_first_labeling(&s->first, solver, NULL, deadline)) break;
            if (solver->info.status != FGI_RUNNING || fgi_solver_done(solver)) break;
        }
        if (s->stage == OVER) break;
        rc = advance(solver, s);
        count(solver, s);
        solver->info.paused = solver->info.entries_touched >= solver->pause_at;
    } while (!rc && !solver->info.paused && solver->info.status == FGI_RUNNING &&
        solver->info.iterations < iteration_limit && fgi_clock() < deadline);
    return rc;
}

const fgi_solver_ops fgi_cycles_ops = {
    .name = "cycles", .create = cycles_create, .run = cycles_run, .destroy = cycles_destroy};
