/* icm.c - coordinate ascent with restarts: the simplest solver, and the one every other is compared with.
 *
 * One iteration is one descent: from a start (the best unary labels first, then random perturbations of the incumbent),
 * variables are re-optimised from a work list until none can improve. Forbidden states count as a large finite penalty
 * in the *comparison* only (number of violations first, then score), so a descent can walk out of an infeasible start. */
#include <string.h>
#include "solver.h"

typedef struct icm {
    int32_t *labels;
    int32_t *queue;       /* circular work list of variables */
    uint8_t *queued;
    double *gain;         /* max_card scores of the variable at hand */
    int32_t *violations;  /* and how many forbidden entries each label meets */
    int64_t head, count;
    fgi_rng rng;
    int started;
} icm;

static void push(icm *s, int64_t n_vars, int32_t var) {
    if (s->queued[var]) return;
    s->queued[var] = 1;
    s->queue[(s->head + s->count++) % n_vars] = var;
}

static void add(icm *s, int32_t label, double score) {
    if (score == -INFINITY) s->violations[label]++;
    else s->gain[label] += score;
}

/* Scores of every label of `var` given its neighbours. */
static void local_scores(const fgi_model *m, icm *s, int32_t var) {
    const int32_t card = m->s->cards[var];
    for (int32_t a = 0; a < card; a++) {
        s->gain[a] = 0;
        s->violations[a] = 0;
        add(s, a, fgi_unary(m, var)[a]);
    }
    int32_t keep = s->labels[var];
    for (int64_t k = m->s->adj_begin[var]; k < m->s->adj_begin[var + 1]; k++) {
        fgi_view v = fgi_factor_view(m, m->s->adj[k]);
        for (int32_t a = 0; a < card; a++) {
            s->labels[var] = a;
            add(s, a, fgi_view_score(m, &v, s->labels));
        }
    }
    s->labels[var] = keep;
}

static int improve(const fgi_model *m, icm *s, int32_t var) {
    local_scores(m, s, var);
    int32_t best = s->labels[var];
    for (int32_t a = 0; a < m->s->cards[var]; a++)
        if (s->violations[a] < s->violations[best] || (s->violations[a] == s->violations[best] && s->gain[a] > s->gain[best] + 1e-12 * fabs(s->gain[best])))
            best = a;
    if (best == s->labels[var]) return 0;
    s->labels[var] = best;
    return 1;
}

static void push_neighbours(const fgi_model *m, icm *s, int32_t var) {
    for (int64_t k = m->s->adj_begin[var]; k < m->s->adj_begin[var + 1]; k++) {
        const int32_t *vars = fgi_factor_vars(m->s, m->s->adj[k]);
        for (int32_t j = 0; j < fgi_factor_arity(m->s, m->s->adj[k]); j++)
            if (vars[j] != var) push(s, m->s->n_vars, vars[j]);
    }
}

/* First start: best unary labels. Later: the incumbent with a random twentieth of its variables relabelled. */
static void start(fgi_solver *solver, icm *s) {
    const fgi_model *m = solver->model;
    const int64_t n = m->s->n_vars;
    int first = solver->info.score == -INFINITY && solver->info.iterations == 0;
    if (!first && solver->info.score > -INFINITY) memcpy(s->labels, solver->best, (size_t)n * sizeof *s->labels);
    for (int64_t i = 0; i < n; i++) {
        if (first) {
            const double *u = fgi_unary(m, i);
            int32_t best = 0;
            for (int32_t a = 1; a < m->s->cards[i]; a++)
                if (u[a] > u[best]) best = a;
            s->labels[i] = best;
        } else if (fgi_rng_below(&s->rng, 20) == 0) {
            s->labels[i] = (int32_t)fgi_rng_below(&s->rng, m->s->cards[i]);
        }
        push(s, n, (int32_t)i);
    }
    s->started = 1;
}

static fgi_rc icm_create(fgi_solver *solver, fgi_error *err) {
    const fgi_structure *st = solver->model->s;
    icm *s = fgi_calloc(1, sizeof *s);
    solver->state = s;
    if (!s) return fgi_fail(err, FGI_NO_MEMORY, -1, "out of memory");
    s->rng.state = solver->settings.seed;
    s->labels = fgi_calloc(st->n_vars, sizeof(int32_t));
    s->queue = fgi_alloc(st->n_vars, sizeof(int32_t));
    s->queued = fgi_calloc(st->n_vars, 1);
    s->gain = fgi_alloc(st->max_card, sizeof(double));
    s->violations = fgi_alloc(st->max_card, sizeof(int32_t));
    if (!s->labels || !s->queue || !s->queued || !s->gain || !s->violations) return fgi_fail(err, FGI_NO_MEMORY, -1, "out of memory");
    solver->info.memory = st->n_vars * 9 + st->max_card * 12;
    return FGI_OK;
}

/* The bound that needs no work: the maxima of all potentials. It is tight on models without interactions. */
static double trivial_bound(const fgi_model *m) {
    fgi_sum sum = {0};
    fgi_sum_add(&sum, m->s->constant);
    for (int64_t i = 0; i < m->s->n_vars; i++) {
        double best = -INFINITY;
        for (int32_t a = 0; a < m->s->cards[i]; a++) best = fmax(best, fgi_unary(m, i)[a]);
        fgi_sum_add(&sum, best);
    }
    for (int64_t f = 0; f < m->s->n_factors; f++) fgi_sum_add(&sum, fgi_factor_weight(m->s, f) * m->t->facts[m->s->factor_table[f]].max);
    double value = fgi_sum_value(&sum);
    return value == -INFINITY ? value : value + 1e-13 * fabs(value);
}

static fgi_rc icm_run(fgi_solver *solver, double deadline, int64_t iteration_limit) {
    icm *s = solver->state;
    const fgi_model *m = solver->model;
    if (solver->info.bound == INFINITY) fgi_solver_bound(solver, trivial_bound(m));
    do {
        if (!s->started) start(solver, s);
        for (int step = 0; s->count > 0; step++) {
            if ((step & 63) == 63 && fgi_clock() >= deadline) return FGI_OK;
            int32_t var = s->queue[s->head];
            s->head = (s->head + 1) % m->s->n_vars;
            s->count--;
            s->queued[var] = 0;
            if (improve(m, s, var)) push_neighbours(m, s, var);
        }
        fgi_solver_consider(solver, s->labels);
        s->started = 0;
        solver->info.iterations++;
        if (fgi_solver_done(solver)) return FGI_OK;
    } while (solver->info.iterations < iteration_limit && fgi_clock() < deadline);
    return FGI_OK;
}

static void icm_destroy(fgi_solver *solver) {
    icm *s = solver->state;
    free(s->labels);
    free(s->queue);
    free(s->queued);
    free(s->gain);
    free(s->violations);
    free(s);
}

const fgi_solver_ops fgi_icm_ops = {.name = "icm", .create = icm_create, .run = icm_run, .destroy = icm_destroy};
