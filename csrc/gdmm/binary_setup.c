/* gdmm/binary_setup.c - memory and set-up of Algorithm 9: one linear pass folds every table into constant, unaries and
 * t, and lists the positive factors of each variable. After it nothing visits all factors. */
#include <string.h>
#include "gdmm/binary.h"

int gdmm_binary_fits(const fgi_model *m) {
    const fgi_structure *s = m->s;
    if (s->max_arity != 2 || s->max_card != 2 || s->n_factors == 0) return 0;
    for (int64_t i = 0; i < s->n_vars; i++)
        if (s->cards[i] != 2) return 0;
    for (int64_t k = 0; k < 2 * s->n_vars; k++)
        if (m->u->values[k] == -INFINITY) return 0;
    for (int64_t t = 0; t < s->n_tables; t++)
        if (m->t->facts[t].n_forbidden) return 0;
    return 1;
}

fgi_rc binary_create(fgi_solver *solver, fgi_error *err) {
    const fgi_structure *s = solver->model->s;
    const int64_t n = s->n_vars;
    binary *b = fgi_calloc(1, sizeof *b);
    solver->state = b;
    if (!b) return fgi_no_memory(err);
    b->model = solver->model;
    b->best = -INFINITY;
    b->last_bound = INFINITY;
    b->on_from = BINARY_SURELY_ON;
    b->u = fgi_take_zero(&b->arena, n, double);
    b->charge = fgi_take_zero(&b->arena, n, double);
    b->x = fgi_take_zero(&b->arena, n, double);
    b->sum = fgi_take_zero(&b->arena, n, double);
    b->degree = fgi_take_zero(&b->arena, n, int64_t);
    b->on = fgi_take(&b->arena, n, int32_t);
    b->is_on = fgi_take_zero(&b->arena, n, uint8_t);
    b->ascending = fgi_take_zero(&b->arena, n, uint8_t);
    b->by_neighbour = fgi_take_zero(&b->arena, n, int32_t *);
    b->positive_begin = fgi_take_zero(&b->arena, n + 1, int64_t);
    b->ranking = fgi_take_zero(&b->arena, n, fgi_ranking *);
    b->positive_take = fgi_take_zero(&b->arena, n, int32_t);
    b->rows.begin = fgi_take_zero(&b->arena, n + 1, int64_t);
    b->active = fgi_take_zero(&b->arena, (s->n_factors + 7) / 8, uint8_t);
    b->labels = fgi_take_zero(&b->arena, n, int32_t);
    b->worth = fgi_take_zero(&b->arena, n, double);
    b->first = fgi_take(&b->arena, n, int32_t);
    b->oracle = fgi_oracle_scratch_create(1, 1);
    if (b->arena.failed || !b->oracle) return fgi_no_memory(err);
    memset(b->first, -1, (size_t)n * sizeof *b->first);
    solver->info.memory = b->arena.bytes;
    return FGI_OK;
}

void binary_destroy(fgi_solver *solver) {
    binary *b = solver->state;
    free(b->rows.start);
    for (int64_t i = 0; b->by_neighbour && i < b->model->s->n_vars; i++) free(b->by_neighbour[i]);
    for (int64_t i = 0; b->ranking && i < b->model->s->n_vars; i++) fgi_ranking_free(b->ranking[i]);
    fgi_oracle_scratch_free(b->oracle);
    free(b->links);
    fgi_arena_free(&b->arena);
    free(b);
}

/* ---- set-up: the one linear pass, in pieces ----------------------------------------------------------------- */

static void fold_variable(binary *b, int64_t i) {
    const fgi_structure *s = b->model->s;
    const double *theta = fgi_unary(b->model, i);
    b->u[i] = theta[1] - theta[0];
    fgi_sum_add(&b->constant, theta[0]);
    b->ascending[i] = 1;
    int32_t before = -1;
    for (int64_t k = s->adj_begin[i]; k < s->adj_begin[i + 1] && b->ascending[i]; k++) {
        int32_t other = binary_neighbour(s, s->adj[k], (int32_t)i);
        if (other < before) b->ascending[i] = 0;
        before = other;
    }
    b->work += s->adj_begin[i + 1] - s->adj_begin[i];
}

static void fold_factor(binary *b, int64_t f) {
    const fgi_view v = fgi_factor_view(b->model, f);
    double t00 = fgi_view_at2(&v, 0, 0), t = binary_interaction(&v);
    fgi_sum_add(&b->constant, t00);
    b->u[v.vars[0]] += fgi_view_at2(&v, 1, 0) - t00;
    b->u[v.vars[1]] += fgi_view_at2(&v, 0, 1) - t00;
    b->rows.begin[(v.vars[0] < v.vars[1] ? v.vars[0] : v.vars[1]) + 1]++;
    if (!(t > 0)) return;
    for (int k = 0; k < 2; k++) {
        b->charge[v.vars[k]] += 0.5 * t;
        b->positive_begin[v.vars[k] + 1]++;
    }
}

/* Offsets of the lists. */
static int begin_fill(binary *b) {
    const int64_t n = b->model->s->n_vars;
    for (int64_t i = 0; i < n; i++) b->positive_begin[i + 1] += b->positive_begin[i];
    return (b->positive = fgi_take(&b->arena, b->positive_begin[n], int32_t)) != NULL;
}

/* The lists ascend: position of the next factor of each variable, counted in `degree`, which nothing else uses yet. */
static void fill_factor(binary *b, int64_t f) {
    const fgi_view v = fgi_factor_view(b->model, f);
    if (!(binary_interaction(&v) > 0)) return;
    for (int k = 0; k < 2; k++) {
        const int32_t i = v.vars[k];
        b->positive[b->positive_begin[i] + b->degree[i]++] = (int32_t)f;
    }
}

static int begin_bound_of_charges(binary *b) {
    for (int64_t i = 0; i < b->model->s->n_vars; i++) {
        b->x[i] = b->u[i] + b->charge[i] > 0;
        b->degree[i] = 0;
    }
    binary_begin_bound(b);
    return 1;
}

/* The set-up: folds all tables and lists the positive factors of each variable. */
int binary_set_up(fgi_solver *solver, binary *b) {
    const fgi_structure *s = b->model->s;
    switch (b->stage) {
    case FOLD:
        if (!binary_each(b, s->n_vars, fold_variable)) return 1;
        fgi_sum_add(&b->constant, s->constant);
        for (int64_t i = 0; i < s->n_vars; i++) b->labels[i] = b->u[i] > 0; /* no factor yet: a first labeling */
        fgi_solver_consider(solver, b->labels);
        b->magnitude = 4 * gdmm_magnitude(b->model, NULL); /* the closed form takes differences of all entries */
        b->stage = COUNT;
        return 1;
    case COUNT:
        if (!binary_each(b, s->n_factors, fold_factor)) return 1;
        b->sweeps_first = binary_expects_most(solver, b);
        if (b->sweeps_first) return begin_bound_of_charges(b);
        if (!begin_fill(b)) return 0;
        solver->info.memory = b->arena.bytes;
        b->stage = FILL;
        return 1;
    default:
        if (!binary_each(b, s->n_factors, fill_factor)) return 1;
        return begin_bound_of_charges(b);
    }
}
