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

static int64_t offset_of(const fgi_structure *st, const int64_t *begin, const edge *e, int32_t var) {
    const int32_t *vars = fgi_factor_vars(st, e->factor);
    return begin[e->factor] + (vars[0] == var ? 0 : st->cards[vars[0]]);
}

/* mu = M at the end the message points to; at the other end the least multipliers that keep the factor's maximum at 0,
 * mu(b) = max_a [ theta(a,b) - M(a) ]. These are never above the ones the bound was computed with (see dual/trws.c), so
 * D(mu) <= bound, as long as no label is forbidden: forbidden labels get 0, multipliers being finite by contract. */
fgi_rc fgi_trws_messages(const fgi_solver *solver, double *mu) {
    const trws *s = solver->state;
    const fgi_model *m = solver->model;
    const fgi_structure *st = m->s;
    if (s->stage < ROUND) {
        memset(mu, 0, (size_t)fgi_dual_message_size(m) * sizeof *mu);
        return FGI_OK;
    }
    int64_t *begin = message_offsets(m);
    trws exact = *s;      /* the same state, with products in double precision */
    int64_t left_out = 0; /* a look at messages is no work of the solver */
    exact.single = 0;
    exact.left_out = &left_out;
    double *h = fgi_alloc(st->max_card, sizeof *h);
    for (int64_t k = 0; begin && h && k < st->n_factors; k++) {
        const edge *e = &s->edges[k];
        const int32_t here = e->to_hi ? e->hi : e->lo, there = e->to_hi ? e->lo : e->hi;
        double *mu_here = mu + offset_of(st, begin, e, here), *mu_there = mu + offset_of(st, begin, e, there);
        const double *message = s->messages + e->message;
        for (int32_t a = 0; a < st->cards[here]; a++) {
            mu_here[a] = message[a] == -INFINITY ? 0 : message[a];
            h[a] = message[a] == -INFINITY ? -INFINITY : -message[a];
        }
        fgi_trws_product(m, &exact, e, !e->to_hi, h, mu_there);
        for (int32_t b = 0; b < st->cards[there]; b++)
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
    trws *s = solver->state;
    const fgi_model *m = solver->model;
    const fgi_structure *st = m->s;
    fgi_rc rc = fgi_check_multipliers(mu, fgi_dual_message_size(m), err);
    if (rc) return rc;
    fgi_trws_set_up(m, s);
    int64_t *begin = message_offsets(m);
    if (!begin) return fgi_no_memory(err);
    for (int64_t k = 0; k < st->n_factors; k++) {
        edge *e = &s->edges[k];
        const double *from = mu + offset_of(st, begin, e, e->hi);
        double *message = s->messages + e->message;
        for (int32_t b = 0; b < st->cards[e->hi]; b++) s->h[b] = -from[b];
        fgi_trws_product(m, s, e, 0, s->h, message);
        double top = s->k->max(message, st->cards[e->lo]);
        if (top > -INFINITY) s->k->shift(message, top, st->cards[e->lo]);
        e->to_hi = 0;
    }
    free(begin);
    *s->left_out = 0;
    fgi_trws_begin(solver, s);
    fgi_progress_restart(solver, &s->progress);
    return FGI_OK;
}

/* ---- new unary scores ---------------------------------------------------------------------------------------- */

/* Edges have pointers into the tables, and the middle of a sweep is of the old scores. */
int fgi_trws_takes(const fgi_solver *solver, const fgi_model *fresh) {
    const trws *s = solver->state;
    return s->is_between && !s->is_part && !s->rounded && s->single_begin < 0 && fresh->t == solver->model->t;
}

/* Any finite messages are a start. One of -INFINITY says that a label is forbidden, which was true of the old scores.
 */
fgi_rc fgi_trws_update(fgi_solver *solver) {
    trws *s = solver->state;
    for (int64_t k = 0; k < s->n_messages; k++) s->messages[k] = s->messages[k] == -INFINITY ? 0 : s->messages[k];
    s->progress.model_magnitude = fgi_dual_magnitude(solver->model, solver->pool);
    s->progress.last_decoded = NAN;
    fgi_first_free(s->first); /* its attempts were about the old scores */
    s->first = NULL;
    fgi_trws_resume(solver, s);
    fgi_progress_restart(solver, &s->progress);
    return FGI_OK;
}
