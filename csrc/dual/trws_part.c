/* dual/trws_part.c - TRW-S on a model that is a part of a larger one: unary scores that move between iterations, what
 * is said of the variables that parts share, and a state that another process can go on from.
 *
 * Between iterations all messages point to the earlier ends, and a sweep's bound is valid for any messages: new
 * unaries need no new set-up. */
#include <string.h>
#include "dual/messages.h"
#include "dual/trws_state.h"

typedef fgi_trws_edge edge;
typedef fgi_trws trws;

static double magnitude(const double *scores, int32_t n) {
    double top = 0;
    for (int32_t a = 0; a < n; a++)
        if (scores[a] > -INFINITY) top = fgi_larger(top, fabs(scores[a]));
    return top;
}

/* The magnitude that bounds are rounded by is that of the model as it was given, with the set-up, and of what the
 * variables have got since: the same, however often they moved. After a proof that there is no labeling no sweep begins
 * by itself. */
void fgi_trws_ready(fgi_solver *solver, int moves) {
    trws *self = solver->state;
    self->is_part = 1;
    while (self->stage >= FORWARD && !self->progress.bound.forbidden && fgi_trws_finish(solver)) continue;
    const int begins = self->stage < FORWARD || self->progress.bound.forbidden;
    fgi_trws_set_up(solver->model, self);
    if (begins) fgi_trws_begin(solver, self);
    if (self->given_magnitude == 0) self->given_magnitude = self->progress.model_magnitude;
    if (moves) self->progress.model_magnitude = self->given_magnitude;
    self->progress.last_decoded = NAN;
    fgi_progress_restart(solver, &self->progress);
}

void fgi_trws_moved(fgi_solver *solver, int32_t i) {
    trws *self = solver->state;
    self->progress.model_magnitude += magnitude(fgi_unary(solver->model, i), solver->model->s->cards[i]);
}

/* The message on edge e towards node i, or, where it points the other way, the multipliers that keep the factor's
 * maximum at 0 (see dual/trws_messages.c). */
static void add_edge(const fgi_model *m, const trws *self, const edge *e, int32_t i, double *out) {
    const int is_hi = e->hi == i;
    const double *message = self->messages + e->message;
    if (e->to_hi == is_hi) {
        for (int32_t a = 0; a < m->s->cards[i]; a++) out[a] += message[a];
        return;
    }
    const int32_t n = m->s->cards[is_hi ? e->lo : e->hi];
    trws exact = *self;
    int64_t left_out = 0;
    exact.single = 0;
    exact.left_out = &left_out;
    for (int32_t a = 0; a < n; a++) self->h[a] = message[a] == -INFINITY ? -INFINITY : -message[a];
    fgi_trws_product(m, &exact, e, is_hi, self->h, self->given);
    for (int32_t a = 0; a < m->s->cards[i]; a++) out[a] += self->given[a];
}

void fgi_trws_belief(const fgi_solver *solver, int32_t i, double *out) {
    const trws *self = solver->state;
    const fgi_model *m = solver->model;
    memcpy(out, fgi_unary(m, i), (size_t)m->s->cards[i] * sizeof *out);
    if (self->stage < FORWARD) return;
    for (int64_t k = self->later_begin[i]; k < self->later_begin[i + 1]; k++)
        add_edge(m, self, &self->edges[k], i, out);
    for (int64_t k = self->earlier_begin[i]; k < self->earlier_begin[i + 1]; k++)
        add_edge(m, self, &self->edges[self->earlier[k]], i, out);
}

double *fgi_trws_own_state(fgi_solver *solver, int64_t *n) {
    trws *self = solver->state;
    *n = self->n_messages;
    return self->messages;
}

fgi_rc fgi_trws_state_set(fgi_solver *solver, fgi_error *err) {
    trws *self = solver->state;
    const fgi_model *m = solver->model;
    (void)err;
    for (int64_t k = 0; k < m->s->n_factors; k++) self->edges[k].to_hi = 0;
    fgi_trws_begin(solver, self);
    return FGI_OK;
}
