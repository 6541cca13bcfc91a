/* dual/messages.c - see dual/messages.h. */
#include "dual/messages.h"
#include <string.h>
#include "base/work.h"

enum { PLACE_WORK = 8 /* work of finding where the messages of a factor begin */ };

fgi_rc fgi_dual_init(fgi_dual_state *dual, fgi_solver *solver, fgi_error *err) {
    const fgi_model *m = solver->model;
    const fgi_structure *s = m->s;
    const int64_t n_scratch = fgi_marginal_scratch(m), n_side = (int64_t)s->max_arity * s->max_card,
                  n_labels = s->unary_begin[s->n_vars];
    dual->k = fgi_kernels_get();
    dual->meter.every = FGI_CLOCK_WORK;
    dual->n_mu = fgi_dual_message_size(m);
    dual->begin = fgi_take_zero(&dual->arena, s->n_factors + 1, int64_t);
    dual->mu = fgi_take_zero(&dual->arena, dual->n_mu, double);
    dual->theta = fgi_arena_copy(&dual->arena, m->u->values, n_labels, sizeof *dual->theta);
    dual->sums = fgi_arena_copy(&dual->arena, m->u->values, n_labels, sizeof *dual->sums);
    dual->side = fgi_take(&dual->arena, n_side, double);
    dual->g = fgi_take(&dual->arena, s->max_arity, double *);
    dual->out = fgi_take(&dual->arena, s->max_card, double);
    dual->scratch = fgi_take(&dual->arena, n_scratch, double);
    dual->labels = fgi_take_zero(&dual->arena, s->n_vars, int32_t);
    if (dual->arena.failed) return fgi_no_memory(err);
    for (int32_t q = 0; q < s->max_arity; q++) dual->g[q] = dual->side + (int64_t)q * s->max_card;
    fgi_progress_init(&dual->progress);
    dual->summed = s->n_factors; /* no messages: the sums are theta */
    solver->info.memory += dual->arena.bytes;
    return FGI_OK;
}

void fgi_dual_destroy(fgi_dual_state *dual) {
    fgi_first_free(dual->first);
    fgi_arena_free(&dual->arena);
}

int fgi_dual_out_of_time(fgi_dual_state *dual, int64_t work) {
    return fgi_meter_spend(&dual->meter, work + FGI_FACTOR_WORK);
}

int fgi_dual_ready(fgi_dual_state *dual, fgi_solver *solver) {
    const fgi_structure *s = solver->model->s;
    if (dual->is_ready) return 1;
    while (dual->placed < s->n_factors) {
        const int64_t f = dual->placed++;
        int64_t size = 0;
        for (int32_t q = 0; q < fgi_factor_arity(s, f); q++) size += s->cards[fgi_factor_vars(s, f)[q]];
        dual->begin[f + 1] = dual->begin[f] + size;
        if (fgi_meter_spend(&dual->meter, PLACE_WORK)) return 0;
    }
    dual->progress.model_magnitude = fgi_dual_magnitude(solver->model, solver->pool);
    dual->is_ready = 1;
    return 1;
}

int fgi_dual_begin(fgi_dual_state *dual, fgi_solver *solver, double deadline) {
    dual->meter.deadline = deadline;
    return fgi_dual_ready(dual, solver) && fgi_first_labeling(&dual->first, solver, NULL, deadline) &&
        solver->info.status != FGI_INFEASIBLE;
}

int fgi_dual_first(fgi_dual_state *dual, fgi_solver *solver) {
    return fgi_first_labeling(&dual->first, solver, dual->labels, dual->meter.deadline);
}

int fgi_dual_sum(fgi_dual_state *dual, const fgi_model *m) {
    const fgi_structure *s = m->s;
    if (dual->summed < 0) {
        memcpy(dual->sums, dual->theta, (size_t)s->unary_begin[s->n_vars] * sizeof *dual->sums);
        dual->summed = 0;
    }
    const double *mu = dual->mu + dual->begin[dual->summed];
    while (dual->summed < s->n_factors) {
        const int64_t f = dual->summed++;
        for (int32_t q = 0; q < fgi_factor_arity(s, f); q++) {
            const int32_t i = fgi_factor_vars(s, f)[q];
            dual->k->add(dual->sums + s->unary_begin[i], mu, s->cards[i]);
            mu += s->cards[i];
        }
        if (fgi_dual_out_of_time(dual, dual->begin[f + 1] - dual->begin[f])) return 0;
    }
    return 1;
}

void fgi_dual_decode(fgi_dual_state *dual, fgi_solver *solver) {
    const fgi_structure *s = solver->model->s;
    for (int64_t i = 0; i < s->n_vars; i++)
        dual->labels[i] = (int32_t)fgi_argmax_of(dual->sums + s->unary_begin[i], s->cards[i]);
    fgi_solver_consider(solver, dual->labels);
}

int fgi_dual_take_nodes(fgi_dual_state *dual, const fgi_model *m) {
    for (int64_t i = 0; i < m->s->n_vars; i++) {
        double top = dual->k->max(dual->sums + m->s->unary_begin[i], m->s->cards[i]);
        fgi_progress_take(&dual->progress, top);
        if (top == -INFINITY) return 0;
    }
    return 1;
}

double fgi_dual_multipliers(const fgi_dual_state *dual, const fgi_model *m) {
    const fgi_structure *s = m->s;
    const double *mu = dual->mu;
    double sum = 0;
    for (int64_t k = 0; k < fgi_factor_begin(s, s->n_factors); k++) {
        const int32_t n = s->cards[s->vars[k]];
        double largest = 0;
        for (int32_t a = 0; a < n; a++) largest = fgi_larger(largest, fabs(mu[a]));
        sum += largest;
        mu += n;
    }
    return sum;
}

/* The first label is read off its max-marginals, the others off the slice it leaves. */
double fgi_dual_argmax(fgi_dual_state *dual, const fgi_model *m, const fgi_view *v, int32_t *y) {
    const int32_t *cards = m->s->cards, n = cards[v->vars[0]];
    fgi_max_marginal(dual->k, m, v, 0, (const double *const *)dual->g, dual->out, dual->scratch);
    dual->k->add(dual->out, dual->g[0], n);
    y[0] = (int32_t)fgi_argmax_of(dual->out, n);
    const double value = dual->out[y[0]];
    double best = -INFINITY;
    int64_t at = 0;
    if (v->arity == 2) {
        for (int32_t b = 0; b < v->cols; b++) {
            double x = fgi_view_at2(v, y[0], b) + dual->g[1][b];
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
        for (int32_t q = 1; q < v->arity && x > -INFINITY; q++) x += dual->g[q][y[q]];
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
