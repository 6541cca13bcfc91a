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
    sdp *s = solver->state;
    fgi_tree_release(&s->node);
    fgi_tree_free(&s->tree);
    fgi_gram_free(&s->gram);
    fgi_certificate_free(&s->certificate);
    fgi_spins_free(s->spins);
    fgi_labeling_free(s->local);
    fgi_first_free(s->first);
    fgi_arena_free(&s->arena);
    free(s);
}

/* s'Cs + top is the score: an edge of weight w is worth w / 2 more or less than the mean of its two cases. */
static void read_spins(sdp *s) {
    const fgi_spins *g = s->spins;
    fgi_sum top = {0};
    double magnitude = fabs(g->top);
    fgi_sum_add(&top, g->top);
    for (int32_t e = 0; e < g->m; e++) {
        const int64_t i = g->ends[2 * e], j = g->ends[2 * e + 1];
        const double quarter = g->odd[e] ? -0.25 * g->weight[e] : 0.25 * g->weight[e];
        s->root[i * g->n + j] = s->root[j * g->n + i] = quarter; /* parallel edges were added up */
        fgi_sum_add(&top, -0.5 * g->weight[e]);
        magnitude += g->weight[e];
    }
    s->top = fgi_sum_value(&top);
    s->error = g->error + 0x1p-50 * magnitude + 0x1p-51 * (double)g->m * magnitude;
}

static fgi_rc sdp_create(fgi_solver *solver, fgi_error *err) {
    sdp *s = fgi_calloc(1, sizeof *s);
    solver->state = s;
    if (!s) return fgi_no_memory(err);
    const fgi_structure *st = solver->model->s;
    if (st->n_vars >= MOST_NODES)
        return fgi_fail(err, FGI_UNSUPPORTED, -1, "the model is too large for sdp: %d variables", MOST_NODES - 1);
    s->spins = fgi_spins_create(solver->model);
    if (!s->spins) return fgi_no_memory(err);
    const int32_t n = s->spins->n;
    s->root = fgi_take_zero(&s->arena, (int64_t)n * n, double);
    s->cluster = fgi_take(&s->arena, n, int32_t);
    s->sign = fgi_take(&s->arena, n, int8_t);
    s->labels = fgi_take(&s->arena, st->n_vars, int32_t);
    s->side = fgi_take(&s->arena, n, uint8_t);
    s->local = fgi_labeling_create(solver->model);
    if (s->arena.failed || !s->local || fgi_gram_init(&s->gram, n) || fgi_certificate_init(&s->certificate, n))
        return fgi_no_memory(err);
    s->direction = fgi_take(&s->arena, s->gram.rank, double);
    if (s->arena.failed || fgi_tree_init(&s->tree, n, s->gram.rank)) return fgi_no_memory(err);
    read_spins(s);
    s->lattice = fgi_lattice_find(solver->model);
    s->rng.state = solver->settings.seed;
    s->left = -INFINITY;
    s->meter.every = CLOCK_WORK;
    solver->info.memory = s->arena.bytes + s->gram.arena.bytes + s->certificate.arena.bytes + s->spins->arena.bytes;
    return FGI_OK;
}

/* ---- the node under way ---------------------------------------------------------------------------------------- */

/* C of the node: entries of equal or opposite spins added up. Both halves are summed in the same order. */
static void contract(sdp *s) {
    const int64_t n0 = s->spins->n, n = s->gram.n;
    double *c = s->gram.c;
    fgi_sum constant = {0};
    memset(c, 0, (size_t)(n * n) * sizeof *c);
    for (int64_t i = 0; i < n0; i++)
        for (int64_t j = i + 1; j < n0; j++) {
            const double x = s->sign[i] * s->sign[j] * s->root[i * n0 + j];
            const int64_t a = s->cluster[i], b = s->cluster[j];
            if (a == b) fgi_sum_add(&constant, 2 * x);
            else c[b * n + a] = c[a * n + b] += x;
        }
    s->constant = fgi_sum_value(&constant);
}

static fgi_rc set_node(sdp *s) {
    fgi_gram *g = &s->gram;
    if (!fgi_tree_enter(&s->tree, &s->node, g, s->cluster, s->sign)) return FGI_NO_MEMORY;
    if (s->node.number == 0) fgi_gram_randomise(g, &s->rng);
    contract(s);
    if (!fgi_gram_refresh(g)) return FGI_NO_MEMORY;
    s->bounds = s->passes = 0;
    s->certificate.is_begun = 0;
    s->certificate.shift = 0;
    s->before = s->node.bound;
    s->stage = PASSING;
    return FGI_OK;
}

/* Signs of the node's spins become labels, and those a local optimum. */
static void offer(fgi_solver *solver, sdp *s, const uint8_t *side_of_cluster) {
    for (int32_t i = 0; i < s->spins->n; i++) s->side[i] = (uint8_t)(side_of_cluster[s->cluster[i]] ^ (s->sign[i] < 0));
    fgi_spins_labels(s->spins, s->side, s->labels);
    for (int64_t i = 0; i < solver->model->s->n_vars; i++)
        if (solver->model->s->cards[i] != 2) s->labels[i] = 0;
    fgi_solver_consider(solver, s->labels);
    const int64_t before = fgi_labeling_operations(s->local);
    fgi_labeling_assign(s->local, s->labels);
    fgi_labeling_ascend(s->local, ASCENT);
    solver->info.entries_touched += fgi_labeling_operations(s->local) - before;
    fgi_solver_consider(solver, fgi_labeling_labels(s->local));
}

/* Spins on one side of a random plane through the vectors' origin (Goemans and Williamson 1995). */
static void round_vectors(fgi_solver *solver, sdp *s) {
    const fgi_gram *g = &s->gram;
    uint8_t *side = s->tree.side;
    for (int32_t k = 0; k < g->rank; k++)
        s->direction[k] = fgi_rng_unit(&s->rng) + fgi_rng_unit(&s->rng) + fgi_rng_unit(&s->rng) - 1.5;
    for (int32_t a = 0; a < g->n; a++) side[a] = fgi_dot(g->vectors + (int64_t)a * g->rank, s->direction, g->rank) < 0;
    offer(solver, s, side);
}

/* ---- bounds ---------------------------------------------------------------------------------------------------- */

/* Nothing in the node is above its bound, and so nothing in it is worth a search. */
static void leave(const fgi_solver *solver, sdp *s) {
    s->left = fgi_larger(s->left, fgi_solver_left(solver, &s->lattice, s->node.bound));
}

static void report(fgi_solver *solver, const sdp *s) {
    double bound = fgi_larger(s->left, fgi_tree_bound(&s->tree));
    if (s->node.number >= 0) bound = fgi_larger(bound, s->node.bound);
    fgi_solver_bound(solver, fgi_larger(bound, fgi_larger(fgi_solver_best(solver), solver->above)));
}

static void close_node(fgi_solver *solver, sdp *s) {
    fgi_tree_release(&s->node);
    solver->info.nodes++;
    s->stage = SETTING;
}

/* ---- a step ---------------------------------------------------------------------------------------------------- */

/* Two spins that are nearly decided beside all others, but not beside each other: fixing them settles most else (rule
 * R2 of Rendl, Rinaldi and Wiegele 2010). Spins with weak couplings say little, and come last. */
static void choose(const sdp *s, int32_t *a, int32_t *b) {
    const fgi_gram *g = &s->gram;
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

static fgi_rc split(fgi_solver *solver, sdp *s) {
    int32_t a = 0, b = 1;
    if (!s->spins->whole) { /* a tree over the spins alone proves nothing about the rest */
        solver->info.status = FGI_CONVERGED;
        return FGI_OK;
    }
    choose(s, &a, &b);
    if (!fgi_tree_split(&s->tree, &s->node, &s->gram, s->cluster, s->sign, a, b)) return FGI_NO_MEMORY;
    solver->info.memory =
        s->arena.bytes + s->gram.arena.bytes + s->certificate.arena.bytes + s->spins->arena.bytes + s->tree.bytes;
    close_node(solver, s);
    return FGI_OK;
}

/* Is the node likely to close soon, if its bound goes on falling as it has since the last look? */
static int is_promising(const fgi_solver *solver, sdp *s) {
    if (s->bounds % BOUNDS) return 1;
    const double gain = s->before - s->node.bound, open = s->node.bound - fgi_solver_goal(solver, &s->lattice);
    s->before = s->node.bound;
    return gain * HORIZON >= open;
}

/* Rounding alone keeps the node open: no split would change that, and its bound is as good as a proof gets. */
static int is_hidden(const fgi_solver *solver, const sdp *s) {
    const double rounding = s->error + s->certificate.error + 0x1p-48 * (fabs(s->node.bound) + fabs(s->top));
    return s->node.bound - fgi_solver_best(solver) <= ROUNDING * rounding;
}

static fgi_rc decide(fgi_solver *solver, sdp *s, double bound) {
    int64_t violated;
    bound += s->top + s->constant;
    bound += s->error + 0x1p-51 * (fabs(bound) + fabs(s->top) + fabs(s->constant));
    s->node.bound = fgi_smaller(s->node.bound, bound);
    s->bounds++;
    for (int k = 0; k < ROUNDINGS; k++) round_vectors(solver, s);
    solver->info.iterations++;
    if (s->node.bound < fgi_solver_goal(solver, &s->lattice) || is_hidden(solver, s)) {
        leave(solver, s);
        close_node(solver, s);
        report(solver, s);
        return FGI_OK;
    }
    report(solver, s);
    if (fgi_solver_done(solver)) return FGI_OK;
    if (!is_promising(solver, s)) return split(solver, s);
    const int64_t most = (int64_t)(NEW_TRIANGLES * s->gram.n);
    if (!fgi_gram_separate(&s->gram, most, &violated, &solver->info.entries_touched)) return FGI_NO_MEMORY;
    if (!fgi_gram_refresh(&s->gram)) return FGI_NO_MEMORY;
    s->stage = PASSING;
    return FGI_OK;
}

/* One labeling, or nothing, is left of the node. */
static void decide_last(fgi_solver *solver, sdp *s) {
    const uint8_t side = 0;
    double score, above;
    offer(solver, s, &side);
    if (!fgi_model_score_above(solver->model, s->labels, &score, &above, NULL)) s->left = fgi_larger(s->left, above);
    close_node(solver, s);
    report(solver, s);
}

static fgi_rc take_node(fgi_solver *solver, sdp *s) {
    if (!fgi_tree_take(&s->tree, &s->node)) {
        report(solver, s);
        s->stage = OVER;
        if (!fgi_solver_done(solver)) solver->info.status = FGI_CONVERGED; /* to rounding */
        return FGI_OK;
    }
    if (s->node.bound < fgi_solver_goal(solver, &s->lattice)) {
        leave(solver, s);
        close_node(solver, s);
        return FGI_OK;
    }
    fgi_rc rc = set_node(s);
    if (!rc && s->gram.n == 1) decide_last(solver, s);
    return rc;
}

static fgi_rc advance(fgi_solver *solver, sdp *s) {
    double bound;
    s->amid = 0;
    switch (s->stage) {
    case SETTING: return take_node(solver, s);
    case PASSING:
        s->amid = !fgi_gram_pass(&s->gram, &s->meter, &solver->info.entries_touched);
        if (s->amid) break;
        if (++s->passes % PASSES) break;
        fgi_gram_update_prices(&s->gram);
        s->stage = CERTIFYING;
        break;
    case CERTIFYING:
        s->amid =
            !fgi_certify(&s->certificate, &s->gram, s->spins->m, &s->meter, &bound, &solver->info.entries_touched);
        if (s->amid) break;
        return decide(solver, s, bound);
    case OVER: break;
    }
    return FGI_OK;
}

static fgi_rc sdp_run(fgi_solver *solver, double deadline, int64_t iteration_limit) {
    sdp *s = solver->state;
    fgi_rc rc = FGI_OK;
    fgi_solver_trivial_bound(solver);
    if (!fgi_first_labeling(&s->first, solver, NULL, deadline)) return FGI_OK;
    s->meter.deadline = deadline;
    do {
        if (s->stage == OVER || (s->stage == SETTING && fgi_solver_done(solver))) break;
        rc = advance(solver, s);
        solver->info.paused = !s->amid && solver->info.entries_touched >= solver->pause_at;
    } while (!rc && !solver->info.paused && solver->info.status == FGI_RUNNING &&
        solver->info.iterations < iteration_limit && fgi_clock() < deadline);
    return rc;
}

const fgi_solver_ops fgi_sdp_ops = {.name = "sdp", .create = sdp_create, .run = sdp_run, .destroy = sdp_destroy};
