/* dual/trws_messages.c - the dual state of TRW-S in and out, as multipliers mu, and what new unary scores leave of it.
 */
#include <string.h>
#include "dual/messages.h"
#include "dual/trws_state.h"
#include "primal/first.h"

typedef fgi_trws_edge edge;
typedef fgi_trws trws;

int64_t fgi_trws_dual_size(const fgi_solver *solver) { return fgi_dual_message_size(solver->model); }

/* Offsets of the two messages of each factor in the dense layout of fgi_solver_messages. */
static int64_t *message_offsets(const fgi_model *m) {
    int64_t *begin = fgi_alloc(m->s->n_factors, sizeof *begin);
    if (begin) fgi_dual_message_begin(m, begin);
    return begin;
}

static int64_t offset_of(const fgi_structure *s, const int64_t *begin, const edge *e, int32_t var) {
    const int32_t *vars = fgi_factor_vars(s, e->factor);
    return begin[e->factor] + (vars[0] == var ? 0 : s->cards[vars[0]]);
}

/* mu = M at the end the message points to; at the other end the least multipliers that keep the factor's maximum at 0,
 * mu(b) = max_a [ theta(a,b) - M(a) ]. These are never above the ones the bound was computed with (see dual/trws.c), so
 * D(mu) <= bound, as long as no label is forbidden: forbidden labels get 0, multipliers being finite by contract. */
fgi_rc fgi_trws_messages(const fgi_solver *solver, double *mu) {
    const trws *self = solver->state;
    const fgi_model *m = solver->model;
    const fgi_structure *s = m->s;
    if (self->stage < ROUND) {
        memset(mu, 0, (size_t)fgi_dual_message_size(m) * sizeof *mu);
        return FGI_OK;
    }
    int64_t *begin = message_offsets(m);
    trws exact = *self;   /* the same state, with products in double precision */
    int64_t left_out = 0; /* a look at messages is no work of the solver */
    exact.single = 0;
    exact.left_out = &left_out;
    double *h = fgi_alloc(s->max_card, sizeof *h);
    for (int64_t k = 0; begin && h && k < s->n_factors; k++) {
        const edge *e = &self->edges[k];
        const int32_t here = e->to_hi ? e->hi : e->lo, there = e->to_hi ? e->lo : e->hi;
        double *mu_here = mu + offset_of(s, begin, e, here), *mu_there = mu + offset_of(s, begin, e, there);
        const double *message = self->messages + e->message;
        for (int32_t a = 0; a < s->cards[here]; a++) {
            mu_here[a] = message[a] == -INFINITY ? 0 : message[a];
            h[a] = message[a] == -INFINITY ? -INFINITY : -message[a];
        }
        fgi_trws_product(m, &exact, e, !e->to_hi, h, mu_there);
        for (int32_t b = 0; b < s->cards[there]; b++)
            if (mu_there[b] == -INFINITY) mu_there[b] = 0;
    }
    fgi_rc rc = begin && h ? FGI_OK : FGI_NO_MEMORY;
    free(begin);
    free(h);
    return rc;
}

/* The inverse: M_ji(a) = max_b [ theta(a,b) - mu_j(b) ] for the earlier end i. D can only get better by that, and so it
 * does in every sweep that follows: the first bound reported is at most D(mu). */
fgi_rc fgi_trws_warm_start(fgi_solver *solver, const double *mu, fgi_error *err) {
    trws *self = solver->state;
    const fgi_model *m = solver->model;
    const fgi_structure *s = m->s;
    fgi_rc rc = fgi_check_multipliers(mu, fgi_dual_message_size(m), err);
    if (rc) return rc;
    fgi_trws_set_up(m, self);
    int64_t *begin = message_offsets(m);
    if (!begin) return fgi_no_memory(err);
    for (int64_t k = 0; k < s->n_factors; k++) {
        edge *e = &self->edges[k];
        const double *from = mu + offset_of(s, begin, e, e->hi);
        double *message = self->messages + e->message;
        for (int32_t b = 0; b < s->cards[e->hi]; b++) self->h[b] = -from[b];
        fgi_trws_product(m, self, e, 0, self->h, message);
        double top = self->k->max(message, s->cards[e->lo]);
        if (top > -INFINITY) self->k->shift(message, top, s->cards[e->lo]);
        e->to_hi = 0;
    }
    free(begin);
    *self->left_out = 0;
    fgi_trws_begin(solver, self);
    fgi_progress_restart(solver, &self->progress);
    return FGI_OK;
}

/* ---- new unary scores ---------------------------------------------------------------------------------------- */

/* Edges have pointers into the tables, and the middle of a sweep is of the old scores. */
int fgi_trws_takes(const fgi_solver *solver, const fgi_model *fresh) {
    const trws *self = solver->state;
    return self->is_between && !self->is_part && !self->rounded && self->single_begin < 0 &&
        fresh->t == solver->model->t;
}

/* Any finite messages are a start. One of -INFINITY says that a label is forbidden, which was true of the old scores.
 */
fgi_rc fgi_trws_update(fgi_solver *solver) {
    trws *self = solver->state;
    for (int64_t k = 0; k < self->n_messages; k++)
        self->messages[k] = self->messages[k] == -INFINITY ? 0 : self->messages[k];
    self->progress.model_magnitude = fgi_dual_magnitude(solver->model, solver->pool);
    self->progress.last_decoded = NAN;
    fgi_first_free(self->first); /* its attempts were about the old scores */
    self->first = NULL;
    fgi_trws_resume(solver, self);
    fgi_progress_restart(solver, &self->progress);
    return FGI_OK;
}
