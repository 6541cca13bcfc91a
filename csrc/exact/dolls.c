/* exact/dolls.c - Russian doll search (method "dolls"): exact, and quick where variables that share factors are near
 * each other in some order, as observations of a satellite, the days of a plan, or the columns of a narrow grid are.
 *
 * The last variable of the order is a problem of its own, then the last two, ...: the optimum of each is a bound for
 * what is not decided yet in all larger ones (Verfaillie, Lemaitre & Schiex, "Russian doll search for solving
 * constraint optimization problems", 1996). Other bounds are those of a whole; this one knows how much a part of the
 * order must cost by itself. Costs are whole numbers, as those of edac (exact/costs.h). Time never decides anything. */
#include "exact/doll.h"
#include "solver.h"

enum {
    MAX_ENTRIES = 20000000, /* 160 MB */
    CLOCK_WORK = 100000,    /* work between two looks at the clock: below a millisecond */
    WORK_COST = 3           /* one unit of work here, in table entries of the other methods */
};

static const double SHARE = 0.25; /* a better labeling must be better by this share of the tolerance */

typedef enum dolls_phase { BETWEEN, SEARCHING, FINISHED } dolls_phase;

typedef struct dolls {
    fgi_costs *costs;
    fgi_doll doll;
    dolls_phase phase;
    int64_t cost_found; /* what doll.found costs */
    int32_t *labels;
    int64_t work, extending; /* all of it, and that of making labelings of all variables */
    int32_t done;            /* the largest doll that is done with begins here */
    double left;             /* no labeling visited is above this, or the incumbent */
    double best_at_first;    /* what was known when costs were made */
    int telling;             /* labelings of all variables that cost the same apart, by their scores */
} dolls;

/* What the variables that are not fixed by the network may cost. */
static int64_t room(const dolls *e) { return e->costs->upper - e->costs->lower; }

static void set_limit(fgi_solver *solver) {
    dolls *e = solver->state;
    fgi_costs_limit(
        e->costs, fgi_costs_least(e->costs, fgi_solver_best(solver) + SHARE * fgi_solver_tolerance(solver)));
    if (e->doll.upper > room(e)) e->doll.upper = room(e);
}

static void count_work(fgi_solver *solver) {
    dolls *e = solver->state;
    solver->info.entries_touched += WORK_COST * e->doll.work;
    e->work += e->doll.work;
    e->doll.work = 0;
}

/* A labeling of all variables, by their places. */
static void visit(fgi_solver *solver) {
    dolls *e = solver->state;
    const fgi_doll *d = &e->doll;
    for (int32_t p = 0; p < d->n; p++) e->labels[d->order[p]] = d->label[d->begin[p] + d->found[p]];
    double score, above;
    fgi_solver_consider(solver, e->labels);
    if (!fgi_model_score_above(solver->model, e->labels, &score, &above, NULL) && score > -INFINITY)
        e->left = fgi_larger(e->left, above);
    e->doll.work += 4 * (e->costs->n + e->costs->n_slots); /* scored twice, once with its rounding */
    set_limit(solver);
}

/* Every labeling is visited, or costs at least what the largest doll that is done with does. */
static void report_bound(fgi_solver *solver) {
    dolls *e = solver->state;
    const fgi_doll *d = &e->doll;
    int64_t least = e->costs->upper;
    if (d->n > 0 && d->optimum[e->done] < room(e)) least = e->costs->lower + d->optimum[e->done];
    const double best = fgi_larger(e->left, fgi_larger(fgi_solver_best(solver), solver->above));
    if (least >= FGI_COST_LARGEST) fgi_solver_bound(solver, best); /* nothing was found, nothing is open */
    else fgi_solver_bound(solver, fgi_larger(fgi_costs_score(e->costs, least), best));
}

/* The best of the doll, with labels of the others one by one: no more work than the search takes. */
static void try_all(fgi_solver *solver) {
    dolls *e = solver->state;
    fgi_doll *d = &e->doll;
    const int64_t before = d->work;
    if (e->extending > (e->work + before) / 2) return;
    for (int32_t p = d->start - 1; p >= 0; p--) fgi_doll_extend(d, p);
    visit(solver);
    e->extending += d->work - before;
}

/* What labelings of the doll must cost less than: the best of it, unless those of all variables are told apart. */
static void set_upper(dolls *e) {
    const int by_cost = e->cost_found < room(e) && !(e->telling && e->doll.start == 0);
    e->doll.upper = by_cost ? e->cost_found : room(e);
}

static void begin_doll(fgi_solver *solver) {
    dolls *e = solver->state;
    e->cost_found = fgi_doll_enlarge(&e->doll, e->cost_found);
    e->phase = SEARCHING;
    if (e->doll.start == 0 && e->cost_found < FGI_COST_LARGEST) visit(solver);
    set_upper(e);
}

static void found(fgi_solver *solver, int64_t cost) {
    dolls *e = solver->state;
    fgi_doll *d = &e->doll;
    for (int32_t p = d->start; p < d->n; p++) d->found[p] = d->frame[p].chosen;
    e->cost_found = cost;
    if (d->start == 0) visit(solver);
    set_upper(e);
}

static fgi_rc begin(fgi_solver *solver) {
    dolls *e = solver->state;
    const double best = e->best_at_first = fgi_solver_best(solver);
    const double scale = best > -INFINITY ? fgi_larger(fabs(best), solver->info.unit) : solver->info.unit;
    fgi_rc rc = fgi_costs_create(solver->model, best, 1e-12 * scale, &e->costs);
    if (rc) return rc;
    if (e->costs->infeasible) {
        e->phase = FINISHED;
        return FGI_OK;
    }
    rc = fgi_doll_create(e->costs, &e->doll);
    if (rc) return rc;
    solver->info.memory = e->costs->bytes + e->doll.arena.bytes;
    e->done = e->costs->n;
    e->phase = BETWEEN;
    if (e->costs->n == 0) visit(solver);
    return FGI_OK;
}

/* Costs are rounded so much that what costs no less may be better: all of it again, with the finer costs that a
 * labeling in hand allows, and then the last doll again. */
static fgi_rc refine(fgi_solver *solver) {
    dolls *e = solver->state;
    fgi_doll *d = &e->doll;
    if (fgi_solver_best(solver) > e->best_at_first) {
        const fgi_doll before = {.nodes = d->nodes, .work = d->work};
        fgi_doll_free(d);
        fgi_costs_free(e->costs);
        *d = before;
        e->costs = NULL;
        e->cost_found = 0;
        fgi_rc rc = begin(solver);
        if (!rc) set_limit(solver);
        return rc;
    }
    e->telling = 1;
    e->phase = SEARCHING;
    fgi_doll_again(d);
    set_upper(e);
    return FGI_OK;
}

static fgi_rc end_doll(fgi_solver *solver) {
    dolls *e = solver->state;
    fgi_doll *d = &e->doll;
    solver->info.iterations++;
    d->optimum[d->start] = d->upper;
    e->done = d->start;
    solver->info.explored = fgi_larger(solver->info.explored, (double)(d->n - d->start) / d->n);
    e->phase = d->start == 0 || d->upper >= room(e) ? FINISHED : BETWEEN;
    if (e->phase == BETWEEN) try_all(solver);
    report_bound(solver);
    const int proven =
        d->upper >= room(e) || solver->info.bound <= fgi_solver_best(solver) + fgi_solver_tolerance(solver);
    return e->phase == FINISHED && !proven ? refine(solver) : FGI_OK;
}

/* Has the limit come down to what the dolls cost, or is there nothing left to search? */
static int is_over(const dolls *e) {
    return e->phase == FINISHED || e->costs->conflict || e->doll.n == 0 || e->doll.optimum[e->done] >= room(e);
}

static fgi_rc dolls_run(fgi_solver *solver, double deadline, int64_t iteration_limit) {
    dolls *e = solver->state;
    if (!e->costs) {
        fgi_rc rc = begin(solver);
        if (rc) return rc;
    }
    fgi_doll *d = &e->doll;
    set_limit(solver); /* a labeling may have come from outside */
    while (!is_over(e)) {
        if (e->phase == BETWEEN) begin_doll(solver);
        int64_t cost;
        const fgi_doll_state state = fgi_doll_search(d, CLOCK_WORK, &cost);
        if (d->failed) return FGI_NO_MEMORY;
        if (state == FGI_DOLL_FOUND) found(solver, cost);
        if (state == FGI_DOLL_DONE) {
            fgi_rc rc = end_doll(solver);
            if (rc) return rc;
            if (solver->info.iterations >= iteration_limit || fgi_solver_done(solver)) break;
        }
        if (d->work < CLOCK_WORK) continue;
        count_work(solver);
        solver->info.paused = solver->info.entries_touched >= solver->pause_at;
        if (solver->info.paused || fgi_clock() >= deadline) break;
    }
    solver->info.nodes = d->nodes;
    if (!is_over(e)) return FGI_OK;
    count_work(solver);
    e->phase = FINISHED;
    report_bound(solver);
    if (!fgi_solver_done(solver)) solver->info.status = FGI_CONVERGED;
    return FGI_OK;
}

static fgi_rc dolls_create(fgi_solver *solver, fgi_error *err) {
    dolls *e = fgi_calloc(1, sizeof *e);
    solver->state = e;
    if (e) e->labels = fgi_calloc(solver->model->s->n_vars, sizeof *e->labels);
    if (!e || !e->labels) return fgi_no_memory(err);
    if (!fgi_costs_fit(solver->model, MAX_ENTRIES))
        return fgi_fail(err, FGI_UNSUPPORTED, -1, "the model is too large for dolls");
    e->left = -INFINITY;
    return FGI_OK;
}

static void dolls_destroy(fgi_solver *solver) {
    dolls *e = solver->state;
    if (!e) return;
    fgi_doll_free(&e->doll);
    fgi_costs_free(e->costs);
    free(e->labels);
    free(e);
}

const fgi_solver_ops fgi_dolls_ops = {
    .name = "dolls", .create = dolls_create, .run = dolls_run, .destroy = dolls_destroy};
