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
    cycles *self = solver->state;
    fgi_cycle_node_free(&self->node);
    fgi_cycle_branch_free(&self->branch);
    fgi_cycle_tree_free(&self->tree);
    fgi_labeling_free(self->local);
    fgi_first_free(self->first);
    fgi_arena_free(&self->arena);
    free(self);
}

static void set_memory(fgi_solver *solver) {
    const cycles *self = solver->state;
    int64_t bytes = self->arena.bytes + self->tree.bytes + fgi_labeling_memory(self->local);
    if (self->node.spins) bytes += self->node.spins->arena.bytes + self->node.packing.arena.bytes;
    solver->info.memory = bytes;
}

static fgi_rc cycles_create(fgi_solver *solver, fgi_error *err) {
    cycles *self = fgi_calloc(1, sizeof *self);
    solver->state = self;
    if (!self) return fgi_no_memory(err);
    const int64_t n = solver->model->s->n_vars;
    if (n + solver->model->s->n_factors > MOST_TERMS)
        return fgi_fail(err, FGI_UNSUPPORTED, -1, "the model is too large for cycles: %d terms", MOST_TERMS);
    fgi_spins *spins = fgi_spins_create(solver->model);
    if (!spins || fgi_cycle_node_init(&self->node, spins) || fgi_cycle_branch_init(&self->branch, spins->m))
        return fgi_no_memory(err);
    self->local = fgi_labeling_create(solver->model);
    self->labels = fgi_take_zero(&self->arena, n, int32_t);
    self->side = fgi_take_zero(&self->arena, n + 1, uint8_t);
    self->bonds.parent = fgi_take(&self->arena, n + 1, int32_t);
    self->bonds.differs = fgi_take(&self->arena, n + 1, uint8_t);
    if (!self->local || self->arena.failed) return fgi_no_memory(err);
    self->shortfall = SHORT;
    self->bound = self->before = INFINITY;
    self->left = -INFINITY;
    self->lattice = fgi_lattice_find(solver->model);
    set_memory(solver);
    return FGI_OK;
}

static void report(fgi_solver *solver, const cycles *self) {
    double bound = fgi_larger(self->left, fgi_frontier_bound(&self->tree.open));
    if (self->node.spins) bound = fgi_larger(bound, self->bound);
    const double known = fgi_larger(fgi_solver_best(solver), solver->above);
    fgi_solver_bound(solver, fgi_larger(bound, known));
}

static void count(fgi_solver *solver, cycles *self) {
    const int64_t finder = self->node.finder ? fgi_cycle_finder_operations(self->node.finder) : 0;
    const int64_t now = fgi_labeling_operations(self->local) + finder;
    solver->info.entries_touched += now - self->counted;
    self->counted = now;
}

/* Another node is under way, the old one having been freed; its finder has counted nothing yet. */
static void replace(fgi_solver *solver, cycles *self, const fgi_cycle_node *node) {
    self->counted = fgi_labeling_operations(self->local);
    self->node = *node;
    set_memory(solver);
}

/* ---- an iteration ---------------------------------------------------------------------------------------------- */

/* Variables that are no spins get whatever label there is: ascent finds a better one. */
static void read_labels(const fgi_solver *solver, cycles *self) {
    fgi_spins_labels(self->node.spins, self->side, self->labels);
    for (int64_t i = 0; i < solver->model->s->n_vars; i++)
        if (solver->model->s->cards[i] != 2) self->labels[i] = 0;
}

/* The labels are those of a spanning forest of edges that are not violated on the other side. */
static void round_labels(fgi_solver *solver, cycles *self) {
    fgi_cycle_finder_start(self->node.finder, self->node.packing.z_next, self->side);
    read_labels(solver, self);
    fgi_labeling_assign(self->local, self->labels);
}

/* After CHECKED steps: are both sides near enough? */
static int packed(const fgi_solver *solver, cycles *self) {
    const fgi_spins *g = self->node.spins;
    self->node.cost = fgi_packing_bound(&self->node.packing, g);
    double other = 0;
    for (int32_t e = 0; e < g->m; e++) other += g->weight[e] * self->node.packing.z_next[e];
    const double gap = solver->info.score > -INFINITY ? g->top - self->node.cost - solver->info.score : fabs(other);
    if (fgi_cycle_node_upper(&self->node) < fgi_solver_goal(solver, &self->lattice)) return 1;
    return self->steps >= MOST_STEPS || (self->steps >= LEAST_STEPS && fabs(other - self->node.cost) <= NEAR * gap);
}

/* Every edge has both ends in one cluster. */
static int is_spanned(cycles *self) {
    const fgi_spins *g = self->node.spins;
    uint8_t differs;
    for (int32_t e = 0; e < g->m; e++)
        if (fgi_bonds_root(&self->bonds, g->ends[2 * e], &differs) !=
            fgi_bonds_root(&self->bonds, g->ends[2 * e + 1], &differs))
            return 0;
    return 1;
}

/* Nothing in the node is above `bound`, or worth a search. */
static void leave(const fgi_solver *solver, cycles *self, double bound) {
    self->left = fgi_larger(self->left, fgi_solver_left(solver, &self->lattice, bound));
}

static void close_node(fgi_solver *solver, cycles *self) {
    count(solver, self);
    fgi_cycle_node_free(&self->node);
    self->counted = fgi_labeling_operations(self->local);
    solver->info.nodes++;
    self->stage = TAKING;
    report(solver, self);
}

/* The labels that all edges that are left are met by. Where more than one spin is left there are others, which differ
 * by nothing, or by what rounding has taken for nothing. */
static void visit_last(fgi_solver *solver, cycles *self) {
    double score, above;
    memset(self->side, 0, (size_t)self->node.spins->n);
    read_labels(solver, self);
    fgi_solver_consider(solver, self->labels);
    if (!fgi_model_score_above(solver->model, self->labels, &score, &above, NULL))
        self->left = fgi_larger(self->left, above);
    if (self->node.spins->n > 1) leave(solver, self, fgi_cycle_node_upper(&self->node));
}

/* The score that a labeling must reach to be wanted. Labelings that violate an edge can be left out if they stay below
 * it. */
static double wanted(const fgi_solver *solver, const cycles *self) {
    const double score = solver->info.score, best = fgi_solver_best(solver);
    if (fgi_solver_in_steps(solver, &self->lattice)) return fgi_solver_goal(solver, &self->lattice);
    return best > score ? best : score - (solver->above - score) - 0x1p-51 * fabs(score);
}

/* Joins what no better labeling has apart. 1 in *is_done: there is none, or only one that has been looked at. */
static fgi_rc simplify(fgi_solver *solver, cycles *self, int *is_done) {
    const double least = wanted(solver, self);
    const int64_t joined = fgi_cycle_node_join(&self->node, least, &self->bonds);
    *is_done = joined < 0;
    if (joined != 0 && fgi_solver_in_steps(solver, &self->lattice)) leave(solver, self, least);
    if (joined > MERGED * self->node.spins->n || (joined > 0 && is_spanned(self))) {
        fgi_cycle_node left;
        fgi_rc rc = fgi_cycle_node_contract(&self->node, &self->bonds, (int32_t)(self->node.spins->n - joined), &left);
        if (rc) return rc;
        count(solver, self);
        fgi_cycle_node_free(&self->node);
        replace(solver, self, &left);
    }
    if (joined >= 0 && self->node.spins->m == 0 && self->node.spins->whole) {
        visit_last(solver, self);
        *is_done = 1;
    }
    return FGI_OK;
}

static fgi_rc end_packing(fgi_solver *solver, cycles *self) {
    int is_done = 0;
    self->bound = fgi_smaller(self->bound, fgi_cycle_node_upper(&self->node));
    report(solver, self);
    if (fgi_solver_done(solver)) {
        self->stage = OVER;
        return FGI_OK;
    }
    if (self->bound < fgi_solver_goal(solver, &self->lattice)) {
        leave(solver, self, self->bound);
        is_done = 1;
    } else if (fgi_solver_best(solver) > -INFINITY) {
        fgi_rc rc = simplify(solver, self, &is_done);
        if (rc) return rc;
    }
    if (is_done) {
        close_node(solver, self);
        return FGI_OK;
    }
    round_labels(solver, self);
    self->stage = ASCENDING;
    return FGI_OK;
}

/* ---- the tree -------------------------------------------------------------------------------------------------- */

/* Rounding alone keeps the node open: its bound is as good as a proof gets. */
static int is_hidden(const fgi_solver *solver, const cycles *self) {
    const fgi_spins *g = self->node.spins;
    const double rounding = g->error + 0x1p-48 * (fabs(self->bound) + fabs(g->top));
    return self->bound - fgi_solver_best(solver) <= ROUNDING * rounding;
}

static void begin_split(fgi_solver *solver, cycles *self) {
    if (is_hidden(solver, self)) {
        leave(solver, self, self->bound);
        close_node(solver, self);
        return;
    }
    count(solver, self);
    fgi_cycle_branch_begin(&self->branch, &self->node, self->bound);
    self->stage = TRYING;
}

static fgi_rc try_edges(fgi_solver *solver, cycles *self) {
    const double goal = fgi_solver_goal(solver, &self->lattice);
    int is_done;
    fgi_rc rc = fgi_cycle_branch_advance(
        &self->branch, &self->node, &self->bonds, goal, PIECE, &solver->info.entries_touched, &is_done);
    if (rc || !is_done) return rc;
    for (int way = 0; way < 2; way++)
        if (self->branch.best_bound[way] < goal) leave(solver, self, self->branch.best_bound[way]);
    rc = fgi_cycle_tree_split(&self->tree, &self->node, &self->branch, goal);
    self->counted = fgi_labeling_operations(self->local);
    solver->info.nodes++;
    self->stage = TAKING;
    set_memory(solver);
    return rc;
}

static fgi_rc take_node(fgi_solver *solver, cycles *self) {
    fgi_cycle_node node;
    int taken;
    while (
        self->tree.open.count > 0 && fgi_frontier_bound(&self->tree.open) < fgi_solver_goal(solver, &self->lattice)) {
        leave(solver, self, fgi_frontier_bound(&self->tree.open));
        fgi_cycle_tree_skip(&self->tree);
    }
    fgi_rc rc = fgi_cycle_tree_take(&self->tree, &self->bonds, &node, &self->bound, &taken);
    if (rc) return rc;
    self->stage = taken ? PACKING : OVER;
    if (taken) {
        replace(solver, self, &node);
        self->shortfall = SHORT;
        self->before = self->bound;
        self->steps = self->rounds = 0;
    }
    report(solver, self);
    if (!taken && !fgi_solver_done(solver)) solver->info.status = FGI_CONVERGED; /* to rounding */
    return FGI_OK;
}

/* Is the node likely to close soon, if its bound goes on falling as it has since the last look? */
static int is_promising(const fgi_solver *solver, cycles *self) {
    if (self->rounds % (self->tree.open.numbers ? LOOK : ROOT_LOOK)) return 1;
    const double gain = self->before - self->bound, open = self->bound - fgi_solver_goal(solver, &self->lattice);
    self->before = self->bound;
    return open == INFINITY || gain * HORIZON >= open;
}

static void end_finding(fgi_solver *solver, cycles *self) {
    const int has_found = fgi_cycle_finder_found(self->node.finder) > 0, can_split = self->node.spins->whole;
    const size_t size = (size_t)self->node.spins->m * sizeof(double);
    fgi_packing *p = &self->node.packing;
    fgi_packing_drop_idle(p, self->node.spins->m);
    fgi_packing_anchor(p);
    memcpy(p->z, p->z_next, size);
    memcpy(p->z_anchor, p->z_next, size);
    solver->info.iterations++;
    self->rounds++;
    self->steps = 0;
    self->stage = PACKING;
    const int is_known = !has_found && self->shortfall <= SHORTEST; /* all cycles are */
    if (can_split && (is_known || !is_promising(solver, self))) begin_split(solver, self);
    else if (is_known) solver->info.status = FGI_CONVERGED;
    if (!has_found) self->shortfall *= 0.1;
}

/* Some steps: as many as there is time for between two looks at the clock, and no more than up to the next check. */
static void pack(fgi_solver *solver, cycles *self) {
    const int64_t work = fgi_packing_step_work(&self->node.packing, self->node.spins);
    const int64_t left = CHECKED - self->steps % CHECKED, fit = PIECE / work + 1, steps = fit < left ? fit : left;
    fgi_packing_iterate(&self->node.packing, self->node.spins, steps);
    self->steps += steps;
    solver->info.entries_touched += steps * work;
}

static fgi_rc advance(fgi_solver *solver, cycles *self) {
    fgi_rc rc = FGI_OK;
    int no_memory = 0;
    switch (self->stage) {
    case PACKING:
        pack(solver, self);
        if (self->steps % CHECKED == 0 && packed(solver, self)) rc = end_packing(solver, self);
        break;
    case ASCENDING:
        if (!fgi_labeling_ascend(self->local, ASCENT)) break;
        if (fgi_labeling_violations(self->local) == 0) fgi_solver_consider(solver, fgi_labeling_labels(self->local));
        report(solver, self);
        self->stage = FINDING;
        break;
    case FINDING:
        if (fgi_cycle_finder_run(self->node.finder, &self->node.packing, 1 - self->shortfall, PIECE, &no_memory))
            end_finding(solver, self);
        if (no_memory) rc = FGI_NO_MEMORY;
        break;
    case TRYING: rc = try_edges(solver, self); break;
    case TAKING: rc = take_node(solver, self); break;
    case OVER: break;
    }
    return rc;
}

static fgi_rc cycles_run(fgi_solver *solver, double deadline, int64_t iteration_limit) {
    cycles *self = solver->state;
    fgi_rc rc = FGI_OK;
    fgi_solver_trivial_bound(solver);
    do {
        if (self->stage == PACKING && self->steps == 0) { /* between two iterations */
            if (!fgi_first_labeling(&self->first, solver, NULL, deadline)) break;
            if (solver->info.status != FGI_RUNNING || fgi_solver_done(solver)) break;
        }
        if (self->stage == OVER) break;
        rc = advance(solver, self);
        count(solver, self);
        solver->info.paused = solver->info.entries_touched >= solver->pause_at;
    } while (!rc && !solver->info.paused && solver->info.status == FGI_RUNNING &&
        solver->info.iterations < iteration_limit && fgi_clock() < deadline);
    return rc;
}

const fgi_solver_ops fgi_cycles_ops = {
    .name = "cycles", .create = cycles_create, .run = cycles_run, .destroy = cycles_destroy};
