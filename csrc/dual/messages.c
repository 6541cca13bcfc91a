/* dual/messages.c - see dual/messages.h. */
#include "dual/messages.h"
#include <string.h>
#include "base/work.h"

enum { PLACE_WORK = 8 /* work of finding where the messages of a factor begin */ };

fgi_rc fgi_dual_init(fgi_dual_state *s, fgi_solver *solver, fgi_error *err) {
    const fgi_model *m = solver->model;
    const fgi_structure *st = m->s;
    const int64_t n_scratch = fgi_marginal_scratch(m), n_side = (int64_t)st->max_arity * st->max_card,
                  n_labels = st->unary_begin[st->n_vars];
    s->k = fgi_kernels_get();
    s->meter.every = FGI_CLOCK_WORK;
    s->n_mu = fgi_dual_message_size(m);
    s->begin = fgi_take_zero(&s->arena, st->n_factors + 1, int64_t);
    s->mu = fgi_take_zero(&s->arena, s->n_mu, double);
    s->theta = fgi_arena_copy(&s->arena, m->u->values, n_labels, sizeof *s->theta);
    s->sums = fgi_arena_copy(&s->arena, m->u->values, n_labels, sizeof *s->sums);
    s->side = fgi_take(&s->arena, n_side, double);
    s->g = fgi_take(&s->arena, st->max_arity, double *);
    s->out = fgi_take(&s->arena, st->max_card, double);
    s->scratch = fgi_take(&s->arena, n_scratch, double);
    s->labels = fgi_take_zero(&s->arena, st->n_vars, int32_t);
    if (s->arena.failed) return fgi_no_memory(err);
    for (int32_t q = 0; q < st->max_arity; q++) s->g[q] = s->side + (int64_t)q * st->max_card;
    fgi_progress_init(&s->progress);
    s->summed = st->n_factors; /* no messages: the sums are theta */
    solver->info.memory += s->arena.bytes;
    return FGI_OK;
}

void fgi_dual_destroy(fgi_dual_state *s) {
    fgi_first_free(s->first);
    fgi_arena_free(&s->arena);
}

int fgi_dual_out_of_time(fgi_dual_state *s, int64_t work) { return fgi_meter_spend(&s->meter, work + FGI_FACTOR_WORK); }

int fgi_dual_ready(fgi_dual_state *s, fgi_solver *solver) {
    const fgi_structure *st = solver->model->s;
    if (s->is_ready) return 1;
    while (s->placed < st->n_factors) {
        const int64_t f = s->placed++;
        int64_t size = 0;
        for (int32_t q = 0; q < fgi_factor_arity(st, f); q++) size += st->cards[fgi_factor_vars(st, f)[q]];
        s->begin[f + 1] = s->begin[f] + size;
        if (fgi_meter_spend(&s->meter, PLACE_WORK)) return 0;
    }
    s->progress.model_magnitude = fgi_dual_magnitude(solver->model, solver->pool);
    s->is_ready = 1;
    return 1;
}

int fgi_dual_begin(fgi_dual_state *s, fgi_solver *solver, double deadline) {
    s->meter.deadline = deadline;
    return fgi_dual_ready(s, solver) && fgi_first_labeling(&s->first, solver, NULL, deadline) &&
        solver->info.status != FGI_INFEASIBLE;
}

int fgi_dual_first(fgi_dual_state *s, fgi_solver *solver) {
    return fgi_first_labeling(&s->first, solver, s->labels, s->meter.deadline);
}

int fgi_dual_sum(fgi_dual_state *s, const fgi_model *m) {
    const fgi_structure *st = m->s;
    if (s->summed < 0) {
        memcpy(s->sums, s->theta, (size_t)st->unary_begin[st->n_vars] * sizeof *s->sums);
        s->summed = 0;
    }
    const double *mu = s->mu + s->begin[s->summed];
    while (s->summed < st->n_factors) {
        const int64_t f = s->summed++;
        for (int32_t q = 0; q < fgi_factor_arity(st, f); q++) {
            const int32_t i = fgi_factor_vars(st, f)[q];
            s->k->add(s->sums + st->unary_begin[i], mu, st->cards[i]);
            mu += st->cards[i];
        }
        if (fgi_dual_out_of_time(s, s->begin[f + 1] - s->begin[f])) return 0;
    }
    return 1;
}

void fgi_dual_decode(fgi_dual_state *s, fgi_solver *solver) {
    const fgi_structure *st = solver->model->s;
    for (int64_t i = 0; i < st->n_vars; i++)
        s->labels[i] = (int32_t)fgi_argmax_of(s->sums + st->unary_begin[i], st->cards[i]);
    fgi_solver_consider(solver, s->labels);
}

int fgi_dual_take_nodes(fgi_dual_state *s, const fgi_model *m) {
    for (int64_t i = 0; i < m->s->n_vars; i++) {
        double top = s->k->max(s->sums + m->s->unary_begin[i], m->s->cards[i]);
        fgi_progress_take(&s->progress, top);
        if (top == -INFINITY) return 0;
    }
    return 1;
}

double fgi_dual_multipliers(const fgi_dual_state *s, const fgi_model *m) {
    const fgi_structure *st = m->s;
    const double *mu = s->mu;
    double sum = 0;
    for (int64_t k = 0; k < fgi_factor_begin(st, st->n_factors); k++) {
        const int32_t n = st->cards[st->vars[k]];
        double largest = 0;
        for (int32_t a = 0; a < n; a++) largest = fgi_larger(largest, fabs(mu[a]));
        sum += largest;
        mu += n;
    }
    return sum;
}

/* The first label is read off its max-marginals, the others off the slice it leaves. */
double fgi_dual_argmax(fgi_dual_state *s, const fgi_model *m, const fgi_view *v, int32_t *y) {
    const int32_t *cards = m->s->cards, n = cards[v->vars[0]];
    fgi_max_marginal(s->k, m, v, 0, (const double *const *)s->g, s->out, s->scratch);
    s->k->add(s->out, s->g[0], n);
    y[0] = (int32_t)fgi_argmax_of(s->out, n);
    const double value = s->out[y[0]];
    double best = -INFINITY;
    int64_t at = 0;
    if (v->arity == 2) {
        for (int32_t b = 0; b < v->cols; b++) {
            double x = fgi_view_at2(v, y[0], b) + s->g[1][b];
            if (x > best) best = x, at = b;
        }
        y[1] = (int32_t)at;
        return value;
    }
    const int64_t rest = fgi_view_states(m, v) / n;
    const double *slice = v->values + y[0] * rest;
    memset(y + 1, 0, (size_t)(v->arity - 1) * sizeof *y);
    for (int64_t k = 0; k < rest; k++) {
        double x = v->weight * slice[k];
        for (int32_t q = 1; q < v->arity && x > -INFINITY; q++) x += s->g[q][y[q]];
        if (x > best) best = x, at = k;
        for (int32_t q = v->arity - 1; q > 0 && ++y[q] == cards[v->vars[q]]; q--) y[q] = 0;
    }
    for (int32_t q = v->arity - 1; q > 0; q--) {
        y[q] = (int32_t)(at % cards[v->vars[q]]);
        at /= cards[v->vars[q]];
    }
    return value;
}

void fgi_dual_infeasible(fgi_solver *solver) {
    fgi_solver_bound(solver, -INFINITY);
    solver->info.status = FGI_INFEASIBLE;
}
