/* exact/assignment.c - branch and bound for quadratic assignment (method "assignment"): variables that must differ.
 *
 * Local bounds do not see that every place is taken once. The dual ascent of Hahn and Grant (exact/placing.h) does: it
 * solves a small assignment problem for each thing at each place. A node of the tree has some things placed; its
 * children place one more thing everywhere it may go, or everything that may go to one place. Where there are more
 * places than variables, things without costs take the rest. Costs are whole numbers, as those of edac (exact/costs.h).
 * Places that can be exchanged without changing a cost are tried once, things too (exact/alike_places.h).
 * Time never decides anything. */
#include <string.h>
#include "base/meter.h"
#include "exact/alike_places.h"
#include "exact/costs.h"
#include "exact/placing.h"
#include "exact/places.h"
#include "solver.h"

enum {
    MAX_ENTRIES = 20000000, /* entries in all tables together, as in edac */
    CLOCK_WORK = 100000,    /* work between two looks at the clock: below a millisecond */
    MOST_SHIFT = 24,        /* bits that costs are scaled up by, at most: shares of them are whole numbers */
    HORIZON = 6,            /* a node is split unless its ascent is likely to close it within so many sweeps (chosen) */
    ROOT_PACE = 4000        /* the root's also goes on while a sweep adds its bound's part of so many (chosen) */
};

static const double SHARE = 0.25; /* a better labeling must be better by this share of the tolerance */

/* A node on the way from the root to the one under way. */
typedef struct level {
    fgi_placing problem;
    int64_t before; /* its bound one sweep ago */
    int is_open;    /* its ascent goes on; else its children are next */
    int32_t n_children, next, line, is_thing;
    int32_t child[FGI_LAP_MOST]; /* the other side of the line, the cheapest first */
    int64_t cost[FGI_LAP_MOST];  /* the bound of each */
    uint8_t alike[2];            /* some of its things, or places, may still be exchangeable */
} level;

typedef struct assignment {
    fgi_costs *costs; /* NULL: not begun */
    int32_t *place, n_places;
    int32_t m;                 /* things and places, with those that have no costs */
    int32_t shift;             /* costs in the tree are those of the network times 2^shift */
    fgi_alike_places alike[2]; /* things and places, where costs are exact */
    level *levels;             /* m of them */
    int32_t depth;             /* index of the node under way; -1: the tree is done with */
    int32_t made;              /* levels that have memory */
    int32_t *where, *labels;   /* per thing its place; per variable its label */
    double left;               /* no labeling visited is above this, or the incumbent */
    fgi_meter meter;
    fgi_arena arena;
} assignment;

/* What labelings that matter cost less than, in the unit of the tree: the network's costs times 2^shift, since dual
 * ascent divides costs. */
static int64_t room(const assignment *e) {
    const fgi_costs *c = e->costs;
    const int64_t most = c->upper - c->lower, range = c->range + 1;
    return (((most < range ? most : range) - 1) << e->shift) + 1;
}

/* The finest unit in which sums of a line are far from overflow. */
static void set_unit(assignment *e) {
    e->shift = 0;
    while (e->shift < MOST_SHIFT && room(e) < FGI_COST_LARGEST / 4) e->shift++;
}

static void set_limit(fgi_solver *solver) {
    assignment *e = solver->state;
    fgi_costs_limit(
        e->costs, fgi_costs_least(e->costs, fgi_solver_best(solver) + SHARE * fgi_solver_tolerance(solver)));
}

/* ---- the whole problem ----------------------------------------------------------------------------------------- */

static int64_t cost_of(const assignment *e, int64_t cost) {
    return cost >= FGI_COST_LARGEST || cost > e->costs->range ? FGI_LAP_NEVER : cost << e->shift;
}

static void add(int64_t *to, int64_t cost) {
    *to = fgi_lap_is_never(*to) || fgi_lap_is_never(cost) ? FGI_LAP_NEVER : *to + cost;
}

/* The costs of pairs, half of the places' own being zero. */
static void set_pairs(assignment *e, const fgi_model *model, fgi_placing *p) {
    const fgi_costs *c = e->costs;
    const int64_t m = p->m, *begin = model->s->unary_begin;
    for (int32_t f = 0; f < c->n_factors; f++) {
        if (c->spent[f]) continue;
        const int32_t s = c->slot_begin[f], x = c->slot_var[s], y = c->slot_var[s + 1];
        for (int32_t a = 0; a < c->card[x]; a++)
            for (int32_t b = 0; b < c->card[y]; b++) {
                if (!fgi_costs_alive(c, x, a) || !fgi_costs_alive(c, y, b)) continue;
                const int64_t j = e->place[begin[x] + a], l = e->place[begin[y] + b];
                if (j != l) add(&p->both[((x * m + j) * m + y) * m + l], cost_of(e, c->table[s][a * c->card[y] + b]));
            }
    }
}

static void set_root(assignment *e, const fgi_model *model, fgi_placing *p) {
    const fgi_costs *c = e->costs;
    const int64_t m = p->m, *begin = model->s->unary_begin;
    set_unit(e);
    for (int64_t k = 0; k < m * m; k++) p->alone[k] = k < c->n * m ? FGI_LAP_NEVER : 0;
    for (int64_t k = 0; k < m * m * m * m; k++) p->both[k] = 0;
    for (int32_t i = 0; i < c->n; i++)
        for (int32_t a = 0; a < c->card[i]; a++)
            if (fgi_costs_alive(c, i, a))
                p->alone[i * m + e->place[begin[i] + a]] = cost_of(e, c->unary[c->begin[i] + a]);
    set_pairs(e, model, p);
    for (int32_t k = 0; k < m; k++) p->thing[k] = p->place[k] = k;
    p->lower = 0;
}

/* ---- what is known --------------------------------------------------------------------------------------------- */

/* A labeling of all variables, by the places of all things. */
static void visit(fgi_solver *solver) {
    assignment *e = solver->state;
    const int64_t *begin = solver->model->s->unary_begin;
    for (int32_t i = 0; i < e->costs->n; i++)
        for (int32_t a = 0; a < e->costs->card[i]; a++)
            if (fgi_costs_alive(e->costs, i, a) && e->place[begin[i] + a] == e->where[i]) e->labels[i] = a;
    double score, above;
    fgi_solver_consider(solver, e->labels);
    if (!fgi_model_score_above(solver->model, e->labels, &score, &above, NULL) && score > -INFINITY)
        e->left = fgi_larger(e->left, above);
    set_limit(solver);
}

/* The least that a labeling can cost which was not visited, and how much of the tree is done with. */
static int64_t least_open(const assignment *e, double *explored) {
    int64_t least = room(e);
    double part = 1;
    *explored = 0;
    for (int32_t d = 0; d <= e->depth; d++) {
        const level *v = &e->levels[d];
        if (v->is_open && v->problem.lower < least) least = v->problem.lower;
        if (v->is_open) break;
        const int32_t first = v->next - (d < e->depth); /* that is not done with */
        for (int32_t k = v->next; k < v->n_children; k++)
            if (v->cost[k] < least) least = v->cost[k];
        *explored += v->n_children ? part * first / v->n_children : part;
        part /= v->n_children ? v->n_children : 1;
    }
    return least;
}

static void report(fgi_solver *solver) {
    assignment *e = solver->state;
    double explored;
    const int64_t open = least_open(e, &explored), unit = (int64_t)1 << e->shift;
    const int64_t least = open >= room(e) ? e->costs->upper : e->costs->lower + (open + unit - 1) / unit;
    const double best = fgi_larger(e->left, fgi_larger(fgi_solver_best(solver), solver->above));
    solver->info.explored = fgi_larger(solver->info.explored, e->depth < 0 ? 1 : explored);
    if (least >= FGI_COST_LARGEST) fgi_solver_bound(solver, best); /* nothing was found, nothing is open */
    else fgi_solver_bound(solver, fgi_larger(fgi_costs_score(e->costs, least), best));
}

/* ---- the tree -------------------------------------------------------------------------------------------------- */

static void enter(level *v) {
    v->is_open = 1;
    v->before = v->problem.lower;
    v->n_children = v->next = 0;
}

/* Costs in steps tell scores apart: once a labeling was visited, others of its cost are better by rounding at most,
 * which a proof may neglect but beside a cutoff. The best score may be as small as the unit in the end, whatever the
 * first labeling has. Costs that are rounded down tell nothing. */
static int find_alike(const fgi_solver *solver) {
    assignment *e = solver->state;
    level *root = &e->levels[0];
    const double least = SHARE * fgi_proof_tolerance(solver->info.unit, solver->info.unit);
    if (!e->costs->in_steps || (e->costs->error > 0 && solver->settings.cutoff > -INFINITY)) return 1;
    if (2 * e->costs->error > least) return 1;
    for (int kind = 0; kind < 2; kind++) {
        if (!fgi_alike_places_find(&root->problem, kind == 0, &e->arena, &e->alike[kind])) return 0;
        root->alike[kind] = 1;
    }
    return 1;
}

static fgi_rc begin(fgi_solver *solver) {
    assignment *e = solver->state;
    const double best = fgi_solver_best(solver),
                 scale = best > -INFINITY ? fgi_larger(fabs(best), solver->info.unit) : solver->info.unit;
    fgi_rc rc = fgi_costs_create(solver->model, best, 1e-12 * scale, &e->costs);
    if (rc) return rc;
    if (e->costs->infeasible) {
        e->depth = -1;
        return FGI_OK;
    }
    set_root(e, solver->model, &e->levels[0].problem);
    enter(&e->levels[0]);
    if (!find_alike(solver)) return FGI_NO_MEMORY;
    solver->info.nodes++;
    solver->info.memory = e->costs->bytes + e->arena.bytes;
    return FGI_OK;
}

/* set[k]: the first choice on the line of a node that stands for choice k, too. */
static void group(const assignment *e, level *v, int32_t *set, int64_t *work) {
    const fgi_placing *p = &v->problem;
    const int32_t kind = v->is_thing, *number = kind ? p->place : p->thing; /* 1: things have places to go to */
    int32_t all[FGI_LAP_MOST], local[FGI_LAP_MOST];
    uint8_t is_taken[FGI_LAP_MOST];
    for (int32_t k = 0; k < p->m; k++) set[k] = k;
    if (!v->alike[kind]) return;
    memset(is_taken, 1, sizeof is_taken);
    for (int32_t k = 0; k < p->m; k++) is_taken[number[k]] = 0, local[number[k]] = k;
    v->alike[kind] = (uint8_t)fgi_alike_places_group(&e->alike[kind], is_taken, all, work);
    for (int32_t k = 0; k < p->m; k++) set[k] = local[all[number[k]]];
}

/* The node is decided by its cheapest choices first. Choices that can be exchanged cost the same at best, so what
 * bounds one of them bounds all. */
static void branch(assignment *e, level *v, int64_t *work) {
    const fgi_placing *p = &v->problem;
    int32_t set[FGI_LAP_MOST], dearest[FGI_LAP_MOST];
    int64_t bound[FGI_LAP_MOST];
    v->is_open = 0;
    v->line = fgi_placing_branch(p, room(e), &v->is_thing);
    group(e, v, set, work);
    for (int32_t k = 0; k < p->m; k++) dearest[k] = -1;
    for (int32_t k = 0; k < p->m; k++) {
        const int64_t alone = p->alone[v->is_thing ? v->line * p->m + k : k * p->m + v->line];
        bound[k] = fgi_lap_is_never(alone) ? room(e) : p->lower + alone;
        if (dearest[set[k]] < 0 || bound[k] > bound[dearest[set[k]]]) dearest[set[k]] = k;
    }
    for (int32_t k = 0; k < p->m; k++) {
        if (dearest[set[k]] != k || bound[k] >= room(e)) continue;
        int32_t at = v->n_children++;
        for (; at > 0 && v->cost[at - 1] > bound[k]; at--) {
            v->cost[at] = v->cost[at - 1];
            v->child[at] = v->child[at - 1];
        }
        v->cost[at] = bound[k];
        v->child[at] = k;
    }
}

/* Is the ascent likely to close the node soon, if it goes on as in the last sweep? */
static int is_promising(const assignment *e, level *v) {
    const int64_t gain = v->problem.lower - v->before, left = room(e) - v->problem.lower;
    v->before = v->problem.lower;
    if (gain <= 0) return 0;
    return left / gain <= HORIZON || (e->depth == 0 && v->problem.lower / gain <= ROOT_PACE);
}

/* One step of ascent, and what follows from it. */
static void ascend(fgi_solver *solver) {
    assignment *e = solver->state;
    level *v = &e->levels[e->depth];
    int swept, closed;
    solver->info.entries_touched += fgi_placing_ascend(&v->problem, room(e), &swept, &closed);
    if (swept && !closed) {
        for (int32_t k = 0; k < v->problem.m; k++)
            e->where[v->problem.thing[k]] = v->problem.place[v->problem.assigned[k]];
        visit(solver);
    }
    if (closed) v->is_open = 0; /* without children */
    else if (swept && !is_promising(e, v)) branch(e, v, &solver->info.entries_touched);
    if (!swept) return;
    solver->info.iterations++;
    if (e->depth == 0) report(solver);
}

/* The next child of the node under way, or back to its parent. */
static fgi_rc descend(fgi_solver *solver) {
    assignment *e = solver->state;
    level *v = &e->levels[e->depth];
    while (v->next < v->n_children && v->cost[v->next] >= room(e)) v->next++;
    if (v->next == v->n_children) {
        e->depth--;
        report(solver);
        return FGI_OK;
    }
    const int32_t k = v->child[v->next++], i = v->is_thing ? v->line : k, j = v->is_thing ? k : v->line;
    e->where[v->problem.thing[i]] = v->problem.place[j];
    if (v->problem.m == 1) {
        visit(solver);
        return FGI_OK;
    }
    level *child = &e->levels[e->depth + 1];
    if (e->depth + 1 == e->made) {
        if (!fgi_placing_make(&child->problem, v->problem.m - 1, &e->arena)) return FGI_NO_MEMORY;
        e->made++;
        solver->info.memory = e->costs->bytes + e->arena.bytes;
    }
    fgi_placing_restrict(&v->problem, i, j, &child->problem);
    solver->info.entries_touched += (int64_t)v->problem.m * v->problem.m * v->problem.m * v->problem.m / 4;
    e->depth++;
    enter(child);
    memcpy(child->alike, v->alike, sizeof child->alike);
    solver->info.nodes++;
    return FGI_OK;
}

static fgi_rc assignment_run(fgi_solver *solver, double deadline, int64_t iteration_limit) {
    assignment *e = solver->state;
    fgi_rc rc = FGI_OK;
    fgi_solver_trivial_bound(solver);
    if (!e->costs && (rc = begin(solver))) return rc;
    e->meter.deadline = deadline;
    set_limit(solver); /* a labeling may have come from outside */
    solver->info.paused = 0;
    while (e->depth >= 0 && !rc) {
        const int64_t before = solver->info.entries_touched;
        if (e->levels[e->depth].is_open) ascend(solver);
        else rc = descend(solver);
        if (solver->info.iterations >= iteration_limit || fgi_solver_done(solver)) break;
        solver->info.paused = solver->info.entries_touched >= solver->pause_at;
        if (solver->info.paused || fgi_meter_spend(&e->meter, solver->info.entries_touched - before)) break;
    }
    if (rc || e->depth >= 0) return rc;
    report(solver);
    if (!fgi_solver_done(solver)) solver->info.status = FGI_CONVERGED;
    return FGI_OK;
}

static fgi_rc assignment_create(fgi_solver *solver, fgi_error *err) {
    assignment *e = fgi_calloc(1, sizeof *e);
    const int64_t n = solver->model->s->n_vars;
    solver->state = e;
    if (!e) return fgi_no_memory(err);
    if (n == 0 || n > FGI_LAP_MOST || solver->model->s->max_card > FGI_LAP_MOST ||
        !fgi_costs_fit(solver->model, MAX_ENTRIES))
        return fgi_fail(
            err, FGI_UNSUPPORTED, -1, "assignment takes models of 1 to %d variables and labels", FGI_LAP_MOST);
    fgi_rc rc = fgi_places_find(solver->model, &e->arena, &e->place, &e->n_places, err);
    if (rc) return rc;
    e->m = e->n_places > n ? e->n_places : (int32_t)n;
    if (e->m > FGI_LAP_MOST)
        return fgi_fail(err, FGI_UNSUPPORTED, -1, "assignment takes no more than %d places", FGI_LAP_MOST);
    e->levels = fgi_take_zero(&e->arena, e->m, level);
    e->where = fgi_take(&e->arena, e->m, int32_t);
    e->labels = fgi_take_zero(&e->arena, n, int32_t);
    if (e->arena.failed || !fgi_placing_make(&e->levels[0].problem, e->m, &e->arena)) return fgi_no_memory(err);
    e->made = 1;
    e->left = -INFINITY;
    e->meter.every = CLOCK_WORK;
    return FGI_OK;
}

static void assignment_destroy(fgi_solver *solver) {
    assignment *e = solver->state;
    if (!e) return;
    fgi_costs_free(e->costs);
    fgi_arena_free(&e->arena);
    free(e);
}

const fgi_solver_ops fgi_assignment_ops = {
    .name = "assignment", .create = assignment_create, .run = assignment_run, .destroy = assignment_destroy};
