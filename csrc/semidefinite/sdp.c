/* semidefinite/sdp.c - branch and bound on the semidefinite relaxation (method "sdp"), for dense binary models.
 *
 * Local relaxations say nothing about a dense model of spins; the semidefinite one with triangle inequalities comes
 * within a few percent (semidefinite/gram.h). A node of the tree knows of some spins that they are equal or opposite,
 * and is a smaller model of the same kind. The most promising node is next: passes over its vectors, a certified
 * bound now and then, more triangles as long as they help; then it is split into "equal" and "opposite" for a pair
 * that the relaxation leaves open. Time never decides anything: a run cut into slices visits the same nodes. */
#include <string.h>
#include "dual/cycles.h"
#include "primal/first.h"
#include "primal/labeling.h"
#include "semidefinite/gram.h"
#include "semidefinite/tree.h"
#include "solver.h"

enum {
    MOST_NODES = 1200,   /* spins: three dense matrices of 12 MB */
    CLOCK_WORK = 300000, /* operations between two looks at the clock: a tenth of a millisecond */
    ASCENT = 2000000,    /* operations of coordinate ascent from a rounded labeling: far more than it takes */
    PASSES = 12,         /* over all vectors between two bounds (chosen) */
    ROUNDINGS = 3,       /* labelings from random directions for each bound (chosen) */
    BOUNDS = 20          /* bounds of a node between two looks at its pace (measured) */
};
static const double NEW_TRIANGLES = 4; /* times the number of nodes, at each bound (chosen) */
static const double HORIZON = 4;       /* a node that will not close within so many such looks is split (measured) */
static const double ROUNDING = 4;      /* times the known rounding, within which a bound counts as reached (chosen) */
static const double STRONG = 0.5;      /* part of the strongest spin's couplings that a spin to fix has (chosen) */
static const double APART = 3;         /* what it counts that two spins are undecided beside each other (chosen) */

typedef enum stage { SETTING, PASSING, CERTIFYING, OVER } stage;

typedef struct sdp {
    fgi_spins *spins;
    double *root; /* the matrix C of all spins */
    double top;   /* score of a labeling: top + s'Cs, within error */
    double error;
    fgi_gram gram;
    fgi_certificate certificate;
    fgi_tree tree;
    fgi_tree_node node; /* under way */
    int32_t *cluster;   /* where the spins are in the node under way */
    int8_t *sign;
    double constant; /* the part of s'Cs that pairs within clusters make */
    double before;   /* the node's bound one certificate ago */
    int64_t bounds, passes;
    double left; /* no labeling outside the open nodes is above this, or the incumbent */
    fgi_labeling *local;
    fgi_first *first;
    fgi_lattice lattice;
    fgi_rng rng;
    int32_t *labels;
    uint8_t *side;
    double *direction;
    stage stage;
    int amid; /* time ended the last step before its end */
    fgi_meter meter;
    fgi_arena arena;
} sdp;

static void sdp_destroy(fgi_solver *solver) {
    sdp *self = solver->state;
    fgi_tree_release(&self->node);
    fgi_tree_free(&self->tree);
    fgi_gram_free(&self->gram);
    fgi_certificate_free(&self->certificate);
    fgi_spins_free(self->spins);
    fgi_labeling_free(self->local);
    fgi_first_free(self->first);
    fgi_arena_free(&self->arena);
    free(self);
}

/* s'Cs + top is the score: an edge of weight w is worth w / 2 more or less than the mean of its two cases. */
static void read_spins(sdp *self) {
    const fgi_spins *g = self->spins;
    fgi_sum top = {0};
    double magnitude = fabs(g->top);
    fgi_sum_add(&top, g->top);
    for (int32_t e = 0; e < g->m; e++) {
        const int64_t i = g->ends[2 * e], j = g->ends[2 * e + 1];
        const double quarter = g->odd[e] ? -0.25 * g->weight[e] : 0.25 * g->weight[e];
        self->root[i * g->n + j] = self->root[j * g->n + i] = quarter; /* parallel edges were added up */
        fgi_sum_add(&top, -0.5 * g->weight[e]);
        magnitude += g->weight[e];
    }
    self->top = fgi_sum_value(&top);
    self->error = g->error + 0x1p-50 * magnitude + 0x1p-51 * (double)g->m * magnitude;
}

static fgi_rc sdp_create(fgi_solver *solver, fgi_error *err) {
    sdp *self = fgi_calloc(1, sizeof *self);
    solver->state = self;
    if (!self) return fgi_no_memory(err);
    const fgi_structure *s = solver->model->s;
    if (s->n_vars >= MOST_NODES)
        return fgi_fail(err, FGI_UNSUPPORTED, -1, "the model is too large for sdp: %d variables", MOST_NODES - 1);
    self->spins = fgi_spins_create(solver->model);
    if (!self->spins) return fgi_no_memory(err);
    const int32_t n = self->spins->n;
    self->root = fgi_take_zero(&self->arena, (int64_t)n * n, double);
    self->cluster = fgi_take(&self->arena, n, int32_t);
    self->sign = fgi_take(&self->arena, n, int8_t);
    self->labels = fgi_take(&self->arena, s->n_vars, int32_t);
    self->side = fgi_take(&self->arena, n, uint8_t);
    self->local = fgi_labeling_create(solver->model);
    if (self->arena.failed || !self->local || fgi_gram_init(&self->gram, n) ||
        fgi_certificate_init(&self->certificate, n))
        return fgi_no_memory(err);
    self->direction = fgi_take(&self->arena, self->gram.rank, double);
    if (self->arena.failed || fgi_tree_init(&self->tree, n, self->gram.rank)) return fgi_no_memory(err);
    read_spins(self);
    self->lattice = fgi_lattice_find(solver->model);
    self->rng.state = solver->settings.seed;
    self->left = -INFINITY;
    self->meter.every = CLOCK_WORK;
    solver->info.memory =
        self->arena.bytes + self->gram.arena.bytes + self->certificate.arena.bytes + self->spins->arena.bytes;
    return FGI_OK;
}

/* ---- the node under way ---------------------------------------------------------------------------------------- */

/* C of the node: entries of equal or opposite spins added up. Both halves are summed in the same order. */
static void contract(sdp *self) {
    const int64_t n0 = self->spins->n, n = self->gram.n;
    double *c = self->gram.c;
    fgi_sum constant = {0};
    memset(c, 0, (size_t)(n * n) * sizeof *c);
    for (int64_t i = 0; i < n0; i++)
        for (int64_t j = i + 1; j < n0; j++) {
            const double x = self->sign[i] * self->sign[j] * self->root[i * n0 + j];
            const int64_t a = self->cluster[i], b = self->cluster[j];
            if (a == b) fgi_sum_add(&constant, 2 * x);
            else c[b * n + a] = c[a * n + b] += x;
        }
    self->constant = fgi_sum_value(&constant);
}

static fgi_rc set_node(sdp *self) {
    fgi_gram *g = &self->gram;
    if (!fgi_tree_enter(&self->tree, &self->node, g, self->cluster, self->sign)) return FGI_NO_MEMORY;
    if (self->node.number == 0) fgi_gram_randomise(g, &self->rng);
    contract(self);
    if (!fgi_gram_refresh(g)) return FGI_NO_MEMORY;
    self->bounds = self->passes = 0;
    self->certificate.is_begun = 0;
    self->certificate.shift = 0;
    self->before = self->node.bound;
    self->stage = PASSING;
    return FGI_OK;
}

/* Signs of the node's spins become labels, and those a local optimum. */
static void offer(fgi_solver *solver, sdp *self, const uint8_t *side_of_cluster) {
    for (int32_t i = 0; i < self->spins->n; i++)
        self->side[i] = (uint8_t)(side_of_cluster[self->cluster[i]] ^ (self->sign[i] < 0));
    fgi_spins_labels(self->spins, self->side, self->labels);
    for (int64_t i = 0; i < solver->model->s->n_vars; i++)
        if (solver->model->s->cards[i] != 2) self->labels[i] = 0;
    fgi_solver_consider(solver, self->labels);
    const int64_t before = fgi_labeling_operations(self->local);
    fgi_labeling_assign(self->local, self->labels);
    fgi_labeling_ascend(self->local, ASCENT);
    solver->info.entries_touched += fgi_labeling_operations(self->local) - before;
    fgi_solver_consider(solver, fgi_labeling_labels(self->local));
}

/* Spins on one side of a random plane through the vectors' origin (Goemans and Williamson 1995). */
static void round_vectors(fgi_solver *solver, sdp *self) {
    const fgi_gram *g = &self->gram;
    uint8_t *side = self->tree.side;
    for (int32_t k = 0; k < g->rank; k++)
        self->direction[k] = fgi_rng_unit(&self->rng) + fgi_rng_unit(&self->rng) + fgi_rng_unit(&self->rng) - 1.5;
    for (int32_t a = 0; a < g->n; a++)
        side[a] = fgi_dot(g->vectors + (int64_t)a * g->rank, self->direction, g->rank) < 0;
    offer(solver, self, side);
}

/* ---- bounds ---------------------------------------------------------------------------------------------------- */

/* Nothing in the node is above its bound, and so nothing in it is worth a search. */
static void leave(const fgi_solver *solver, sdp *self) {
    self->left = fgi_larger(self->left, fgi_solver_left(solver, &self->lattice, self->node.bound));
}

static void report(fgi_solver *solver, const sdp *self) {
    double bound = fgi_larger(self->left, fgi_tree_bound(&self->tree));
    if (self->node.number >= 0) bound = fgi_larger(bound, self->node.bound);
    fgi_solver_bound(solver, fgi_larger(bound, fgi_larger(fgi_solver_best(solver), solver->above)));
}

static void close_node(fgi_solver *solver, sdp *self) {
    fgi_tree_release(&self->node);
    solver->info.nodes++;
    self->stage = SETTING;
}

/* ---- a step ---------------------------------------------------------------------------------------------------- */

/* Two spins that are nearly decided beside all others, but not beside each other: fixing them settles most else (rule
 * R2 of Rendl, Rinaldi and Wiegele 2010). Spins with weak couplings say little, and come last. */
static void choose(const sdp *self, int32_t *a, int32_t *b) {
    const fgi_gram *g = &self->gram;
    const int64_t n = g->n;
    double *strength = g->row, *undecided = g->spare, most = 0, least = INFINITY;
    for (int64_t i = 0; i < n; i++) {
        strength[i] = undecided[i] = 0;
        for (int64_t j = 0; j < n; j++) {
            const double open = 1 - fabs(g->x[i * n + j]);
            strength[i] += fabs(g->c[i * n + j]);
            undecided[i] += open * open;
        }
        most = fgi_larger(most, strength[i]);
    }
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = i + 1; j < n; j++) {
            if (strength[i] < STRONG * most || strength[j] < STRONG * most) continue;
            const double value = undecided[i] + undecided[j] + APART * fabs(g->x[i * n + j]);
            if (value < least) least = value, *a = (int32_t)i, *b = (int32_t)j;
        }
    if (least == INFINITY) *a = 0, *b = 1; /* one strong spin at most */
}

static fgi_rc split(fgi_solver *solver, sdp *self) {
    int32_t a = 0, b = 1;
    if (!self->spins->whole) { /* a tree over the spins alone proves nothing about the rest */
        solver->info.status = FGI_CONVERGED;
        return FGI_OK;
    }
    choose(self, &a, &b);
    if (!fgi_tree_split(&self->tree, &self->node, &self->gram, self->cluster, self->sign, a, b)) return FGI_NO_MEMORY;
    solver->info.memory = self->arena.bytes + self->gram.arena.bytes + self->certificate.arena.bytes +
        self->spins->arena.bytes + self->tree.bytes;
    close_node(solver, self);
    return FGI_OK;
}

/* Is the node likely to close soon, if its bound goes on falling as it has since the last look? */
static int is_promising(const fgi_solver *solver, sdp *self) {
    if (self->bounds % BOUNDS) return 1;
    const double gain = self->before - self->node.bound,
                 open = self->node.bound - fgi_solver_goal(solver, &self->lattice);
    self->before = self->node.bound;
    return gain * HORIZON >= open;
}

/* Rounding alone keeps the node open: no split would change that, and its bound is as good as a proof gets. */
static int is_hidden(const fgi_solver *solver, const sdp *self) {
    const double rounding =
        self->error + self->certificate.error + 0x1p-48 * (fabs(self->node.bound) + fabs(self->top));
    return self->node.bound - fgi_solver_best(solver) <= ROUNDING * rounding;
}

static fgi_rc decide(fgi_solver *solver, sdp *self, double bound) {
    int64_t violated;
    bound += self->top + self->constant;
    bound += self->error + 0x1p-51 * (fabs(bound) + fabs(self->top) + fabs(self->constant));
    self->node.bound = fgi_smaller(self->node.bound, bound);
    self->bounds++;
    for (int k = 0; k < ROUNDINGS; k++) round_vectors(solver, self);
    solver->info.iterations++;
    if (self->node.bound < fgi_solver_goal(solver, &self->lattice) || is_hidden(solver, self)) {
        leave(solver, self);
        close_node(solver, self);
        report(solver, self);
        return FGI_OK;
    }
    report(solver, self);
    if (fgi_solver_done(solver)) return FGI_OK;
    if (!is_promising(solver, self)) return split(solver, self);
    const int64_t most = (int64_t)(NEW_TRIANGLES * self->gram.n);
    if (!fgi_gram_separate(&self->gram, most, &violated, &solver->info.entries_touched)) return FGI_NO_MEMORY;
    if (!fgi_gram_refresh(&self->gram)) return FGI_NO_MEMORY;
    self->stage = PASSING;
    return FGI_OK;
}

/* One labeling, or nothing, is left of the node. */
static void decide_last(fgi_solver *solver, sdp *self) {
    const uint8_t side = 0;
    double score, above;
    offer(solver, self, &side);
    if (!fgi_model_score_above(solver->model, self->labels, &score, &above, NULL))
        self->left = fgi_larger(self->left, above);
    close_node(solver, self);
    report(solver, self);
}

static fgi_rc take_node(fgi_solver *solver, sdp *self) {
    if (!fgi_tree_take(&self->tree, &self->node)) {
        report(solver, self);
        self->stage = OVER;
        if (!fgi_solver_done(solver)) solver->info.status = FGI_CONVERGED; /* to rounding */
        return FGI_OK;
    }
    if (self->node.bound < fgi_solver_goal(solver, &self->lattice)) {
        leave(solver, self);
        close_node(solver, self);
        return FGI_OK;
    }
    fgi_rc rc = set_node(self);
    if (!rc && self->gram.n == 1) decide_last(solver, self);
    return rc;
}

static fgi_rc advance(fgi_solver *solver, sdp *self) {
    double bound;
    self->amid = 0;
    switch (self->stage) {
    case SETTING: return take_node(solver, self);
    case PASSING:
        self->amid = !fgi_gram_pass(&self->gram, &self->meter, &solver->info.entries_touched);
        if (self->amid) break;
        if (++self->passes % PASSES) break;
        fgi_gram_update_prices(&self->gram);
        self->stage = CERTIFYING;
        break;
    case CERTIFYING:
        self->amid = !fgi_certify(
            &self->certificate, &self->gram, self->spins->m, &self->meter, &bound, &solver->info.entries_touched);
        if (self->amid) break;
        return decide(solver, self, bound);
    case OVER: break;
    }
    return FGI_OK;
}

static fgi_rc sdp_run(fgi_solver *solver, double deadline, int64_t iteration_limit) {
    sdp *self = solver->state;
    fgi_rc rc = FGI_OK;
    fgi_solver_trivial_bound(solver);
    if (!fgi_first_labeling(&self->first, solver, NULL, deadline)) return FGI_OK;
    self->meter.deadline = deadline;
    do {
        if (self->stage == OVER || (self->stage == SETTING && fgi_solver_done(solver))) break;
        rc = advance(solver, self);
        solver->info.paused = !self->amid && solver->info.entries_touched >= solver->pause_at;
    } while (!rc && !solver->info.paused && solver->info.status == FGI_RUNNING &&
        solver->info.iterations < iteration_limit && fgi_clock() < deadline);
    return rc;
}

const fgi_solver_ops fgi_sdp_ops = {.name = "sdp", .create = sdp_create, .run = sdp_run, .destroy = sdp_destroy};
