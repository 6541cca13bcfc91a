/* exact/edac.c - branch and bound on whole-number costs with soft arc consistency (method "edac"): exact, anytime.
 * Where branch and bound by dual ascent (exact/branch.c) has strong bounds and some hundred nodes a second, this has
 * weaker ones and many thousands, and knows the difference between costs of 158.1 and 159.
 *
 * Nodes are reached by depth-first search in one network (exact/costs.h) that is changed and changed back. After a
 * number of dead ends it is left, what is open of it waits (exact/open_nodes.h), and the node with the lowest bound is
 * next (Allouche, de Givry, Katsirelos, Schiex & Zytnicki, "Anytime hybrid best-first search with tree decomposition
 * for weighted CSP", 2015): so the bound of the whole rises while the search goes deep. Time never decides anything. */
#include "base/array.h"
#include "exact/costs.h"
#include "exact/open_nodes.h"
#include "solver.h"

/* Decision 0016 has what half and twice of these numbers do. */
enum {
    MAX_ENTRIES = 20000000,     /* 160 MB */
    MAX_OPEN_BYTES = 200000000, /* bytes of waiting nodes: beyond, the search goes depth first to the end */
    CLOCK_WORK = 100000,
    WORK_COST = 4,   /* one unit of work here, in table entries of the other methods: measured in CPU time */
    SPLIT_SIZE = 10, /* domains with more labels are cut in two: deciding for one label of many says little */
    MOST_DEAD_ENDS = 16384,
    MOST_UNWANTED = 1000, /* labelings that rounded costs let pass and whose scores are no better */
    REPLAYED_MOST = 10,   /* a visit grows longer if more than one node in so many was visited before */
    REPLAYED_LEAST = 20   /* a visit grows shorter if fewer than one in so many was visited before */
};

static const double SHARE = 0.25; /* a better labeling must be better by this share of the tolerance */

typedef enum edac_phase { AT_ROOT, IN_TREE, FINISHED } edac_phase;

typedef struct frame {
    int64_t mark; /* length of the trail before the decision */
    int64_t cost; /* lower bound of the node that was split */
    int pending;  /* the other branch is still to be visited */
} frame;

typedef struct edac {
    fgi_costs *costs;
    edac_phase phase;
    frame *stack;
    fgi_decision *path; /* one a frame */
    int64_t depth, stack_capacity, path_capacity;
    fgi_open_nodes open;
    int64_t floor;                                      /* bound of the node at hand: its parent's, if that is better */
    int64_t nodes, replayed, dead_ends, most_dead_ends; /* the last two: of this visit */
    int32_t last_conflict;                              /* the variable whose decision failed last: -1 none */
    int32_t *labels;
    int sweeping;     /* at the root, after the first propagation */
    int64_t reported; /* least cost and best score of the last report */
    double reported_best;
    double explored;  /* fgi_info */
    double left;      /* no labeling visited is above this, or the incumbent */
    double missed;    /* no labeling that stands for others that cost no less is above this */
    int64_t unwanted; /* labelings visited that are no better than the cutoff */
    int may_drop;     /* variables, at the root before the first decision and in the tree: decisions are about others */
} edac;

/* ---- decisions ------------------------------------------------------------------------------------------------- */

static void apply(fgi_costs *c, const fgi_decision *d) {
    const int32_t *domain = c->domain + c->begin[d->var];
    for (int64_t q = c->size[d->var] - 1; q >= 0; q--) {
        const int32_t a = domain[q];
        const int stays = d->kind == FGI_IS ? a == d->label
            : d->kind == FGI_IS_NOT         ? a != d->label
            : d->kind == FGI_UP_TO          ? a <= d->label
                                            : a > d->label;
        if (!stays) fgi_costs_remove(c, d->var, a);
    }
    c->work += c->card[d->var];
    fgi_costs_push(&c->bare, d->var);
}

/* Is there something to decide? */
static int has_choice(const fgi_costs *c, int32_t i) {
    fgi_assert(i >= 0 && i < c->n);
    return c->size[i] > 1 && !c->dropped[i];
}

/* Few labels in factors that have ended many branches. */
static int32_t choose_variable(edac *e) {
    fgi_costs *c = e->costs;
    if (e->last_conflict >= 0 && has_choice(c, e->last_conflict)) return e->last_conflict;
    int32_t best = -1;
    double best_value = INFINITY;
    int64_t best_most = -1;
    for (int32_t i = 0; i < c->n; i++) {
        if (!has_choice(c, i)) continue;
        double weight = 0;
        for (int32_t k = fgi_costs_first(c, i); k >= 0; k = fgi_costs_next(c, i, k + 1)) {
            weight += c->weight[c->slot_factor[c->adj[k]]] + (double)c->load[c->slot_factor[c->adj[k]]];
            c->work++;
        }
        c->work++;
        const double value = weight > 0 ? (double)c->size[i] / weight : 1e30 * (double)c->size[i];
        if (value < best_value || (value == best_value && c->most[i] > best_most)) {
            best = i;
            best_value = value;
            best_most = c->most[i];
        }
    }
    return best;
}

/* The label that had a support for nothing when that was last looked at, or else the cheapest. */
static int32_t choose_label(const fgi_costs *c, int32_t i) {
    fgi_assert(i >= 0 && i < c->n && c->size[i] > 0);
    const int32_t *domain = c->domain + c->begin[i];
    const int64_t *unary = c->unary + c->begin[i];
    int32_t best = c->zero[i];
    if (fgi_costs_alive(c, i, best) && unary[best] == 0) return best;
    best = domain[0];
    for (int64_t q = 1; q < c->size[i]; q++)
        if (unary[domain[q]] < unary[best]) best = domain[q];
    return best;
}

static fgi_decision decide(const fgi_costs *c, int32_t i) {
    fgi_assert(i >= 0 && i < c->n && c->size[i] > 1);
    const int32_t *domain = c->domain + c->begin[i], label = choose_label(c, i);
    if (c->size[i] <= SPLIT_SIZE) return (fgi_decision){i, label, FGI_IS};
    int32_t least = INT32_MAX, most = -1;
    for (int64_t q = 0; q < c->size[i]; q++) {
        if (domain[q] < least) least = domain[q];
        if (domain[q] > most) most = domain[q];
    }
    const int32_t middle = least + (most - least) / 2;
    return (fgi_decision){i, middle, label <= middle ? FGI_UP_TO : FGI_BEYOND};
}

/* ---- the tree -------------------------------------------------------------------------------------------------- */

static fgi_rc split(edac *e) {
    fgi_costs *c = e->costs;
    const int32_t i = choose_variable(e);
    if (!fgi_grow(&e->stack, &e->stack_capacity, e->depth + 1, sizeof *e->stack) ||
        !fgi_grow(&e->path, &e->path_capacity, e->depth + 1, sizeof *e->path))
        return FGI_NO_MEMORY;
    e->path[e->depth] = decide(c, i);
    e->stack[e->depth] = (frame){c->n_trail, e->floor, 1};
    apply(c, &e->path[e->depth++]);
    e->nodes++;
    return FGI_OK;
}

/* All that waits in the tree at hand goes to the open nodes. */
static fgi_rc put_off(edac *e) {
    for (int64_t d = e->depth - 1; d >= 0; d--) {
        if (!e->stack[d].pending) continue;
        fgi_rc rc = fgi_open_nodes_add(&e->open, e->stack[d].cost, e->path, (int32_t)(d + 1));
        if (rc) return rc;
    }
    e->depth = 0;
    return FGI_OK;
}

static void leave_tree(edac *e) {
    fgi_costs_undo(e->costs, 0);
    e->depth = 0;
    e->floor = e->costs->lower;
    e->phase = AT_ROOT;
    e->costs->may_drop = 0;
    if (e->nodes > 0 && e->replayed > e->nodes / REPLAYED_MOST && e->most_dead_ends < MOST_DEAD_ENDS)
        e->most_dead_ends *= 2;
    else if (e->replayed < e->nodes / REPLAYED_LEAST && e->most_dead_ends > 1) e->most_dead_ends /= 2;
    e->dead_ends = 0;
}

/* The share of the tree that lies below a node. */
static double part_at(int64_t depth) {
    fgi_assert(depth >= 0);
    return ldexp(1, depth < 1000 ? (int)-depth : -1000);
}

/* Back to the last decision whose other branch is open, and into that. */
static fgi_rc backtrack(edac *e) {
    fgi_costs *c = e->costs;
    e->dead_ends++;
    e->explored += part_at(e->depth);
    while (e->depth > 0 && !(e->stack[e->depth - 1].pending && e->stack[e->depth - 1].cost < c->upper)) {
        if (e->stack[e->depth - 1].pending) e->explored += part_at(e->depth);
        e->depth--;
    }
    if (e->depth > 0 && e->dead_ends > e->most_dead_ends && e->open.bytes < MAX_OPEN_BYTES) {
        fgi_rc rc = put_off(e);
        if (rc) return rc;
    }
    if (e->depth == 0) {
        leave_tree(e);
        return FGI_OK;
    }
    frame *f = &e->stack[e->depth - 1];
    fgi_costs_undo(c, f->mark);
    f->pending = 0;
    e->floor = f->cost;
    e->path[e->depth - 1].kind ^= 1;
    apply(c, &e->path[e->depth - 1]);
    return FGI_OK;
}

static void blame(edac *e) {
    fgi_costs *c = e->costs;
    if (e->depth > 0) e->last_conflict = e->path[e->depth - 1].var;
    if (c->culprit < 0) return;
    c->weight[c->culprit] += 1;
    if (c->load[c->culprit] > 0) fgi_costs_blame_met(c, c->culprit);
}

/* One labeling is left, but for variables that were dropped: the best of these, none of which costs less than the bound
 * of the node. */
static void visit_labeling(fgi_solver *solver) {
    edac *e = solver->state;
    fgi_costs *c = e->costs;
    for (int32_t i = 0; i < c->n; i++) e->labels[i] = c->domain[c->begin[i]];
    fgi_costs_find_dropped(c, e->labels);
    if (c->n_drops) e->missed = fgi_larger(e->missed, fgi_costs_score(c, c->lower));
    e->left = fgi_larger(e->left, e->missed);
    double score, above;
    fgi_solver_consider(solver, e->labels);
    e->unwanted += !fgi_solver_wanted(solver);
    if (!fgi_model_score_above(solver->model, e->labels, &score, &above, NULL)) e->left = fgi_larger(e->left, above);
    c->work += c->n_slots;
}

/* Nothing is taken off a cutoff, but for rounding, once too many labelings were visited because of that. */
static void set_limit(fgi_solver *solver) {
    edac *e = solver->state;
    double slack = SHARE * fgi_solver_tolerance(solver);
    if (e->unwanted >= MOST_UNWANTED && !fgi_solver_wanted(solver)) slack = 2 * e->costs->error;
    fgi_costs_limit(e->costs, fgi_costs_least(e->costs, fgi_solver_best(solver) + slack));
}

/* All is searched. Scores are rounded, bounds are on what they were before: all labelings may be at the cutoff, and the
 * bound a little above. Else rounding hides the rest. */
static fgi_status last_status(const fgi_solver *solver) {
    const edac *e = solver->state;
    const int64_t least = e->costs->upper;
    const double open = least < FGI_COST_LARGEST ? fgi_costs_score(e->costs, least) : -INFINITY;
    const int missed = fgi_larger(open, e->missed) > solver->settings.cutoff;
    return !fgi_solver_wanted(solver) && !missed ? FGI_INFEASIBLE : FGI_CONVERGED;
}

/* Every labeling is visited, or costs at least this. */
static int64_t least_open(const edac *e) {
    int64_t least = e->costs->upper;
    if (e->phase == FINISHED) return least; /* nodes may be waiting that are not worth a visit any more */
    if (e->phase != AT_ROOT && e->floor < least) least = e->floor;
    if (e->phase == AT_ROOT && e->nodes == 0 && e->costs->lower < least) least = e->costs->lower;
    int64_t d = 0;
    while (d < e->depth && !e->stack[d].pending) d++; /* further down bounds are no lower */
    if (d < e->depth && e->stack[d].cost < least) least = e->stack[d].cost;
    if (e->open.count > 0 && e->open.heap[0].cost < least) least = e->open.heap[0].cost;
    return least;
}

/* After every iteration, whatever the slices: what is reported decides when a run ends. */
static void report_bound(fgi_solver *solver) {
    edac *e = solver->state;
    const int64_t least = least_open(e);
    const double best = fgi_larger(e->left, fgi_larger(fgi_solver_best(solver), solver->above));
    if (least == e->reported && best == e->reported_best) return;
    e->reported = least;
    e->reported_best = best;
    if (least >= FGI_COST_LARGEST) fgi_solver_bound(solver, best); /* nothing was found, nothing is open */
    else fgi_solver_bound(solver, fgi_larger(fgi_costs_score(e->costs, least), best));
}

/* The next node to visit, from the root. */
static void descend(edac *e) {
    fgi_costs *c = e->costs;
    const fgi_open_node node = fgi_open_nodes_take(&e->open);
    e->floor = node.cost;
    for (int32_t d = 0; d < node.depth && !c->conflict; d++) apply(c, &node.path[d]);
    for (int32_t d = 0; d < node.depth; d++) e->path[d] = node.path[d];
    for (int32_t d = 0; d < node.depth; d++) e->stack[d] = (frame){0, node.cost, 0};
    e->depth = node.depth; /* was as deep before: there is room */
    e->nodes += node.depth;
    e->replayed += node.depth;
    free(node.path);
}

/* Once, at the root: what soft arc consistency has found is the start of dual ascent. */
static int may_sweep(const edac *e) {
    const fgi_costs *c = e->costs;
    return c->sweeps == 0 && e->nodes == 0 && !c->conflict && !c->failure;
}

/* The network has settled. */
static fgi_rc after_propagation(fgi_solver *solver) {
    edac *e = solver->state;
    fgi_costs *c = e->costs;
    if (e->phase == AT_ROOT) {
        c->n_trail = 0; /* what holds at the root holds everywhere */
        if (c->conflict) {
            e->phase = FINISHED;
            return FGI_OK;
        }
        c->recording = 1;
        e->floor = c->lower;
        if (e->nodes > 0 && (e->open.count == 0 || e->open.heap[0].cost >= c->upper)) {
            e->phase = FINISHED;
            return FGI_OK;
        }
        e->phase = IN_TREE;
        c->may_drop = e->may_drop;
        if (e->nodes > 0) {
            descend(e);
            return FGI_OK;
        }
    }
    solver->info.iterations++;
    if (c->lower > e->floor) e->floor = c->lower;
    if (c->conflict || e->floor >= c->upper) {
        blame(e);
        return backtrack(e);
    }
    int32_t free_ones = 0;
    for (int32_t i = 0; i < c->n && !free_ones; i++) free_ones = has_choice(c, i);
    if (free_ones) return split(e);
    e->nodes++;
    visit_labeling(solver);
    set_limit(solver);
    return backtrack(e);
}

/* ---- the method ------------------------------------------------------------------------------------------------ */

static fgi_rc begin(fgi_solver *solver) {
    edac *e = solver->state;
    const double best = fgi_solver_best(solver);
    const double scale = best > -INFINITY ? fgi_larger(fabs(best), solver->info.unit) : solver->info.unit;
    fgi_rc rc = fgi_costs_create(solver->model, best, 1e-12 * scale, &e->costs);
    if (rc) return rc;
    solver->info.memory = e->costs->bytes;
    e->may_drop = e->costs->may_drop;
    set_limit(solver);
    if (e->costs->infeasible) e->phase = FINISHED;
    return FGI_OK;
}

static fgi_rc edac_run(fgi_solver *solver, double deadline, int64_t iteration_limit) {
    edac *e = solver->state;
    if (!e->costs) {
        fgi_rc rc = begin(solver);
        if (rc) return rc;
    }
    fgi_costs *c = e->costs;
    set_limit(solver); /* a labeling may have come from outside */
    while (e->phase != FINISHED) {
        const int64_t iterations = solver->info.iterations;
        if (e->sweeping) {
            const int32_t before = c->sweeps;
            e->sweeping = !fgi_costs_sweep(c, CLOCK_WORK);
            solver->info.iterations += c->sweeps > before;
        } else if (fgi_costs_propagate(c, CLOCK_WORK)) {
            if (may_sweep(e)) {
                e->sweeping = 1;
                continue;
            }
            fgi_rc rc = c->failure ? c->failure : after_propagation(solver);
            if (rc || c->failure) return rc ? rc : c->failure;
        }
        if (solver->info.iterations > iterations) {
            report_bound(solver);
            if (solver->info.iterations >= iteration_limit || fgi_solver_done(solver)) break;
        }
        if (c->work < CLOCK_WORK) continue;
        solver->info.entries_touched += WORK_COST * c->work;
        c->work = 0;
        solver->info.paused = solver->info.entries_touched >= solver->pause_at;
        if (solver->info.paused || fgi_clock() >= deadline) break;
    }
    solver->info.nodes = e->nodes;
    solver->info.explored = e->explored;
    solver->info.memory = c->bytes + e->open.bytes + c->trail_capacity * (int64_t)sizeof *c->trail;
    if (e->phase == FINISHED) report_bound(solver);
    if (e->phase == FINISHED && !fgi_solver_done(solver)) solver->info.status = last_status(solver);
    return FGI_OK;
}

static fgi_rc edac_create(fgi_solver *solver, fgi_error *err) {
    edac *e = fgi_calloc(1, sizeof *e);
    solver->state = e;
    if (e) e->labels = fgi_calloc(solver->model->s->n_vars, sizeof *e->labels);
    if (!e || !e->labels) return fgi_no_memory(err);
    if (!fgi_costs_fit(solver->model, MAX_ENTRIES))
        return fgi_fail(err, FGI_UNSUPPORTED, -1, "the model is too large for edac");
    e->last_conflict = -1;
    e->most_dead_ends = 1;
    e->left = e->missed = -INFINITY;
    e->reported = -1;
    return FGI_OK;
}

static void edac_destroy(fgi_solver *solver) {
    edac *e = solver->state;
    fgi_costs_free(e->costs);
    fgi_open_nodes_free(&e->open);
    free(e->stack);
    free(e->path);
    free(e->labels);
    free(e);
}

const fgi_solver_ops fgi_edac_ops = {.name = "edac", .create = edac_create, .run = edac_run, .destroy = edac_destroy};
