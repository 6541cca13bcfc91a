/* dual/cycles.c - bounds for binary pairwise models from frustrated cycles (dual/cycles.h).
 *
 * Local relaxations do not see that a frustrated cycle has to violate one of its edges; here that is all that is seen.
 * One iteration improves the weights of the cycles known so far, bounds the score by them, makes a labeling from the
 * other side of that linear program, and looks for cycles that it falls short on. On planar graphs without fields the
 * bound is the optimum in the end (Barahona 1982); on other sparse ones it often is.
 *
 * Given a labeling, an edge whose weight is so much above its load that no better labeling can violate it is
 * contracted: its ends are known from each other. Where no edge is left, one labeling is all that may be better.
 *
 * Where all cycles are known, or more of them bring little, the model is split: an edge that the linear program leaves
 * open is satisfied in one half and violated in the other, both of which are smaller models of the same kind. The half
 * with the largest bound is next. Time never decides anything. */
#include <string.h>
#include "base/util.h"
#include "dual/cycle_node.h"
#include "primal/first.h"
#include "primal/labeling.h"
#include "solver.h"

/* Decision 0016 has what smaller and larger numbers do. */
enum {
    MOST_TERMS = 500000, /* terms of a model: sorting edges cannot be cut into pieces */
    PIECE = 1000000,     /* operations between two looks at the clock: a millisecond or two */
    ASCENT = 100000,     /* operations of coordinate ascent */
    LEAST_STEPS = 100,   /* steps of an iteration, at least */
    MOST_STEPS = 1000,   /* the same, at most */
    CHECKED = 50,        /* steps between two looks at how far the bound is from the other side */
    LOOK = 3,            /* iterations between two looks at the pace of a node (chosen) */
    ROOT_LOOK = 10       /* the same of the root, which has to find its cycles (chosen) */
};
static const double NEAR = 0.1;      /* within this share of the gap both sides are near enough for new cycles */
static const double SHORT = 0.02;    /* a new cycle falls short of 1 by this much at first */
static const double SHORTEST = 1e-6; /* a new cycle falls short of 1 by this much in the end */
static const double MERGED = 0.02;   /* this share of all nodes, contracted together, is enough for a round */

static const double HORIZON = 4;  /* a node that will not close within so many such looks is split (chosen) */
static const double ROUNDING = 4; /* times the known rounding, within which a bound counts as reached (chosen) */

typedef enum stage { PACKING, ASCENDING, FINDING, TRYING, TAKING, OVER } stage;

typedef struct cycles {
    fgi_cycle_node node; /* under way; without spins: the next one has to be taken */
    fgi_cycle_tree tree;
    fgi_cycle_branch branch; /* what it is split on */
    double bound;            /* bound of the node under way */
    double before;           /* its bound when its pace was last looked at */
    double left;             /* no labeling outside the open nodes is above this, or the incumbent */
    fgi_labeling *local;
    fgi_first *first;
    fgi_lattice lattice;
    fgi_bonds bonds;
    int32_t *labels;
    uint8_t *side;
    stage stage;
    int64_t steps, rounds; /* steps of this iteration; iterations of this node */
    double shortfall;
    int64_t counted; /* operations of finder and ascent, as counted so far */
    fgi_arena arena;
} cycles;

static void cycles_destroy(fgi_solver *solver) {
    cycles *s = solver->state;
    fgi_cycle_node_free(&s->node);
    fgi_cycle_branch_free(&s->branch);
    fgi_cycle_tree_free(&s->tree);
    fgi_labeling_free(s->local);
    fgi_first_free(s->first);
    fgi_arena_free(&s->arena);
    free(s);
}

static void set_memory(fgi_solver *solver) {
    const cycles *s = solver->state;
    int64_t bytes = s->arena.bytes + s->tree.bytes + fgi_labeling_memory(s->local);
    if (s->node.spins) bytes += s->node.spins->arena.bytes + s->node.packing.arena.bytes;
    solver->info.memory = bytes;
}

static fgi_rc cycles_create(fgi_solver *solver, fgi_error *err) {
    cycles *s = fgi_calloc(1, sizeof *s);
    solver->state = s;
    if (!s) return fgi_no_memory(err);
    const int64_t n = solver->model->s->n_vars;
    if (n + solver->model->s->n_factors > MOST_TERMS)
        return fgi_fail(err, FGI_UNSUPPORTED, -1, "the model is too large for cycles: %d terms", MOST_TERMS);
    fgi_spins *spins = fgi_spins_create(solver->model);
    if (!spins || fgi_cycle_node_init(&s->node, spins) || fgi_cycle_branch_init(&s->branch, spins->m))
        return fgi_no_memory(err);
    s->local = fgi_labeling_create(solver->model);
    s->labels = fgi_take_zero(&s->arena, n, int32_t);
    s->side = fgi_take_zero(&s->arena, n + 1, uint8_t);
    s->bonds.parent = fgi_take(&s->arena, n + 1, int32_t);
    s->bonds.differs = fgi_take(&s->arena, n + 1, uint8_t);
    if (!s->local || s->arena.failed) return fgi_no_memory(err);
    s->shortfall = SHORT;
    s->bound = s->before = INFINITY;
    s->left = -INFINITY;
    s->lattice = fgi_lattice_find(solver->model);
    set_memory(solver);
    return FGI_OK;
}

static void report(fgi_solver *solver, const cycles *s) {
    double bound = fgi_larger(s->left, fgi_frontier_bound(&s->tree.open));
    if (s->node.spins) bound = fgi_larger(bound, s->bound);
    const double known = fgi_larger(fgi_solver_best(solver), solver->above);
    fgi_solver_bound(solver, fgi_larger(bound, known));
}

static void count(fgi_solver *solver, cycles *s) {
    const int64_t finder = s->node.finder ? fgi_cycle_finder_operations(s->node.finder) : 0;
    const int64_t now = fgi_labeling_operations(s->local) + finder;
    solver->info.entries_touched += now - s->counted;
    s->counted = now;
}

/* Another node is under way, the old one having been freed; its finder has counted nothing yet. */
static void replace(fgi_solver *solver, cycles *s, const fgi_cycle_node *node) {
    s->counted = fgi_labeling_operations(s->local);
    s->node = *node;
    set_memory(solver);
}

/* ---- an iteration ---------------------------------------------------------------------------------------------- */

/* Variables that are no spins get whatever label there is: ascent finds a better one. */
static void read_labels(const fgi_solver *solver, cycles *s) {
    fgi_spins_labels(s->node.spins, s->side, s->labels);
    for (int64_t i = 0; i < solver->model->s->n_vars; i++)
        if (solver->model->s->cards[i] != 2) s->labels[i] = 0;
}

/* The labels are those of a spanning forest of edges that are not violated on the other side. */
static void round_labels(fgi_solver *solver, cycles *s) {
    fgi_cycle_finder_start(s->node.finder, s->node.packing.z_next, s->side);
    read_labels(solver, s);
    fgi_labeling_assign(s->local, s->labels);
}

/* After CHECKED steps: are both sides near enough? */
static int packed(const fgi_solver *solver, cycles *s) {
    const fgi_spins *g = s->node.spins;
    s->node.cost = fgi_packing_bound(&s->node.packing, g);
    double other = 0;
    for (int32_t e = 0; e < g->m; e++) other += g->weight[e] * s->node.packing.z_next[e];
    const double gap = solver->info.score > -INFINITY ? g->top - s->node.cost - solver->info.score : fabs(other);
    if (fgi_cycle_node_upper(&s->node) < fgi_solver_goal(solver, &s->lattice)) return 1;
    return s->steps >= MOST_STEPS || (s->steps >= LEAST_STEPS && fabs(other - s->node.cost) <= NEAR * gap);
}

/* Every edge has both ends in one cluster. */
static int is_spanned(cycles *s) {
    const fgi_spins *g = s->node.spins;
    uint8_t differs;
    for (int32_t e = 0; e < g->m; e++)
        if (fgi_bonds_root(&s->bonds, g->ends[2 * e], &differs) !=
            fgi_bonds_root(&s->bonds, g->ends[2 * e + 1], &differs))
            return 0;
    return 1;
}

/* Nothing in the node is above `bound`, or worth a search. */
static void leave(const fgi_solver *solver, cycles *s, double bound) {
    s->left = fgi_larger(s->left, fgi_solver_left(solver, &s->lattice, bound));
}

static void close_node(fgi_solver *solver, cycles *s) {
    count(solver, s);
    fgi_cycle_node_free(&s->node);
    s->counted = fgi_labeling_operations(s->local);
    solver->info.nodes++;
    s->stage = TAKING;
    report(solver, s);
}

/* The labels that all edges that are left are met by. Where more than one spin is left there are others, which differ
 * by nothing, or by what rounding has taken for nothing. */
static void visit_last(fgi_solver *solver, cycles *s) {
    double score, above;
    memset(s->side, 0, (size_t)s->node.spins->n);
    read_labels(solver, s);
    fgi_solver_consider(solver, s->labels);
    if (!fgi_model_score_above(solver->model, s->labels, &score, &above, NULL)) s->left = fgi_larger(s->left, above);
    if (s->node.spins->n > 1) leave(solver, s, fgi_cycle_node_upper(&s->node));
}

/* What an edge must not cost, if what violates it is to be left out: no more than what nobody wants. */
static double wanted(const fgi_solver *solver, const cycles *s) {
    const double score = solver->info.score, best = fgi_solver_best(solver);
    if (fgi_solver_in_steps(solver, &s->lattice)) return fgi_solver_goal(solver, &s->lattice);
    return best > score ? best : score - (solver->above - score) - 0x1p-51 * fabs(score);
}

/* Joins what no better labeling has apart. 1 in *is_done: there is none, or only one that has been looked at. */
static fgi_rc simplify(fgi_solver *solver, cycles *s, int *is_done) {
    const double least = wanted(solver, s);
    const int64_t joined = fgi_cycle_node_join(&s->node, least, &s->bonds);
    *is_done = joined < 0;
    if (joined != 0 && fgi_solver_in_steps(solver, &s->lattice)) leave(solver, s, least);
    if (joined > MERGED * s->node.spins->n || (joined > 0 && is_spanned(s))) {
        fgi_cycle_node left;
        fgi_rc rc = fgi_cycle_node_contract(&s->node, &s->bonds, (int32_t)(s->node.spins->n - joined), &left);
        if (rc) return rc;
        count(solver, s);
        fgi_cycle_node_free(&s->node);
        replace(solver, s, &left);
    }
    if (joined >= 0 && s->node.spins->m == 0 && s->node.spins->whole) {
        visit_last(solver, s);
        *is_done = 1;
    }
    return FGI_OK;
}

static fgi_rc end_packing(fgi_solver *solver, cycles *s) {
    int is_done = 0;
    s->bound = fgi_smaller(s->bound, fgi_cycle_node_upper(&s->node));
    report(solver, s);
    if (fgi_solver_done(solver)) {
        s->stage = OVER;
        return FGI_OK;
    }
    if (s->bound < fgi_solver_goal(solver, &s->lattice)) {
        leave(solver, s, s->bound);
        is_done = 1;
    } else if (fgi_solver_best(solver) > -INFINITY) {
        fgi_rc rc = simplify(solver, s, &is_done);
        if (rc) return rc;
    }
    if (is_done) {
        close_node(solver, s);
        return FGI_OK;
    }
    round_labels(solver, s);
    s->stage = ASCENDING;
    return FGI_OK;
}

/* ---- the tree -------------------------------------------------------------------------------------------------- */

/* Rounding alone keeps the node open: its bound is as good as a proof gets. */
static int is_hidden(const fgi_solver *solver, const cycles *s) {
    const fgi_spins *g = s->node.spins;
    const double rounding = g->error + 0x1p-48 * (fabs(s->bound) + fabs(g->top));
    return s->bound - fgi_solver_best(solver) <= ROUNDING * rounding;
}

static void begin_split(fgi_solver *solver, cycles *s) {
    if (is_hidden(solver, s)) {
        leave(solver, s, s->bound);
        close_node(solver, s);
        return;
    }
    count(solver, s);
    fgi_cycle_branch_begin(&s->branch, &s->node, s->bound);
    s->stage = TRYING;
}

static fgi_rc try_edges(fgi_solver *solver, cycles *s) {
    const double goal = fgi_solver_goal(solver, &s->lattice);
    int is_done;
    fgi_rc rc =
        fgi_cycle_branch_advance(&s->branch, &s->node, &s->bonds, goal, PIECE, &solver->info.entries_touched, &is_done);
    if (rc || !is_done) return rc;
    for (int way = 0; way < 2; way++)
        if (s->branch.best_bound[way] < goal) leave(solver, s, s->branch.best_bound[way]);
    rc = fgi_cycle_tree_split(&s->tree, &s->node, &s->branch, goal);
    s->counted = fgi_labeling_operations(s->local);
    solver->info.nodes++;
    s->stage = TAKING;
    set_memory(solver);
    return rc;
}

static fgi_rc take_node(fgi_solver *solver, cycles *s) {
    fgi_cycle_node node;
    int taken;
    while (s->tree.open.count > 0 && fgi_frontier_bound(&s->tree.open) < fgi_solver_goal(solver, &s->lattice)) {
        leave(solver, s, fgi_frontier_bound(&s->tree.open));
        fgi_cycle_tree_skip(&s->tree);
    }
    fgi_rc rc = fgi_cycle_tree_take(&s->tree, &s->bonds, &node, &s->bound, &taken);
    if (rc) return rc;
    s->stage = taken ? PACKING : OVER;
    if (taken) {
        replace(solver, s, &node);
        s->shortfall = SHORT;
        s->before = s->bound;
        s->steps = s->rounds = 0;
    }
    report(solver, s);
    if (!taken && !fgi_solver_done(solver)) solver->info.status = FGI_CONVERGED; /* to rounding */
    return FGI_OK;
}

/* Is the node likely to close soon, if its bound goes on falling as it has since the last look? */
static int is_promising(const fgi_solver *solver, cycles *s) {
    if (s->rounds % (s->tree.open.numbers ? LOOK : ROOT_LOOK)) return 1;
    const double gain = s->before - s->bound, open = s->bound - fgi_solver_goal(solver, &s->lattice);
    s->before = s->bound;
    return open == INFINITY || gain * HORIZON >= open;
}

static void end_finding(fgi_solver *solver, cycles *s) {
    const int has_found = fgi_cycle_finder_found(s->node.finder) > 0, can_split = s->node.spins->whole;
    const size_t size = (size_t)s->node.spins->m * sizeof(double);
    fgi_packing *p = &s->node.packing;
    fgi_packing_drop_idle(p, s->node.spins->m);
    fgi_packing_anchor(p);
    memcpy(p->z, p->z_next, size);
    memcpy(p->z_anchor, p->z_next, size);
    solver->info.iterations++;
    s->rounds++;
    s->steps = 0;
    s->stage = PACKING;
    const int is_known = !has_found && s->shortfall <= SHORTEST; /* all cycles are */
    if (can_split && (is_known || !is_promising(solver, s))) begin_split(solver, s);
    else if (is_known) solver->info.status = FGI_CONVERGED;
    if (!has_found) s->shortfall *= 0.1;
}

/* Some steps: as many as there is time for between two looks at the clock, and no more than up to the next check. */
static void pack(fgi_solver *solver, cycles *s) {
    const int64_t work = fgi_packing_step_work(&s->node.packing, s->node.spins);
    const int64_t left = CHECKED - s->steps % CHECKED, fit = PIECE / work + 1, steps = fit < left ? fit : left;
    fgi_packing_iterate(&s->node.packing, s->node.spins, steps);
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
        if (!fgi_labeling_ascend(s->local, ASCENT)) break;
        if (fgi_labeling_violations(s->local) == 0) fgi_solver_consider(solver, fgi_labeling_labels(s->local));
        report(solver, s);
        s->stage = FINDING;
        break;
    case FINDING:
        if (fgi_cycle_finder_run(s->node.finder, &s->node.packing, 1 - s->shortfall, PIECE, &no_memory))
            end_finding(solver, s);
        if (no_memory) rc = FGI_NO_MEMORY;
        break;
    case TRYING: rc = try_edges(solver, s); break;
    case TAKING: rc = take_node(solver, s); break;
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
