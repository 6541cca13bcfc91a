/* dual/trws.c - sequential tree-reweighted message passing (Kolmogorov 2006; docs/mathematics.md, section 4) for
 * pairwise models, maximising.
 *
 * Nodes are visited in the order of the variables, forwards and backwards; one iteration is both. Every edge holds one
 * message, towards the end that will be visited next. At node i
 *
 *     hat_i = theta_i + sum of the messages on all its edges,      hat_i -= max hat_i,
 *     for each edge (i,j) to a node still to come:   h = hat_i / max(#earlier, #later) - M_ji,
 *                                                    M_ij(b) = max_a [ theta_ij(a,b) + h(a) ],     M_ij -= max M_ij.
 *
 * The bound is the sum of all the maxima subtracted in one backward sweep, in double precision and afresh each time.
 * With mu_j = M_ij - hat_j / max(...) at the later end of an edge and mu_i = M_ji at the earlier one it is exactly
 * D(mu) of docs/mathematics.md, section 2, so it is valid for any messages, however they were rounded. The forward
 * sweep also decodes: each node takes the best label given the labels of earlier nodes and the messages from later
 * ones.
 *
 * Factors over the same pair of variables are edges of their own, and each counts in the node weight.
 * -INFINITY travels through sums and maxima only; the one difference, h, is taken where hat_i is finite. A label whose
 * hat is -INFINITY has no feasible labeling, and a node or message without a finite entry proves that there is none at
 * all.
 *
 * Precision. In single precision the two max-plus products of an iteration read float copies of the tables (one copy
 * per distinct table) and round the messages; all sums stay double. Whenever a bound is due, the backward sweep runs in
 * double on the double tables, so that reported bounds are exact for the rounded messages. Once rounding stops the
 * progress, double takes over for good.
 *
 * Nodes with few labels, as many as their neighbours, are left to dual/trws_few.c where the machine has it: same
 * results, less overhead.
 *
 * Several threads share a sweep, see dual/trws_threads.c: same results. */
#include <string.h>
#include "dual/progress.h"
#include "model/marginal.h"
#include "primal/first.h"
#include "solver.h"
#include "dual/trws.h"
#include "dual/trws_state.h"

enum {
    FEW_DEGREE = FGI_TRWS_FEW_DEGREE,
    EDGES_AHEAD = 4,          /* edges of a node whose data are asked for before their turn */
    SINGLE_ENTRIES = 1 << 22, /* automatic precision: single pays for more entries, which do not fit in cache */
    SINGLE_BEGIN = 8 /* automatic precision: single pays beyond these iterations, one of which the copies cost */
};
/* Relative gain of the bound per iteration, below which single precision has done its work. */
static const double SINGLE_GAIN = 1e-9;

typedef fgi_trws_edge edge;
typedef fgi_trws trws;

/* ---- set-up ------------------------------------------------------------------------------------------------- */

/* Entries that products read one by one. */
static int64_t read_whole(const fgi_model *m) {
    int64_t n = m->s->values_begin[m->s->n_tables];
    for (int64_t t = 0; m->t->any_reach && t < m->s->n_tables; t++)
        if (m->t->facts[t].reach) n -= m->s->values_begin[t + 1] - m->s->values_begin[t];
    return n;
}

/* Single precision is used if asked for, or if it pays. */
static int wants_single(const fgi_model *m, trws *s, int32_t precision) {
    const fgi_structure *st = m->s;
    if (precision == 1 || (precision == 0 && read_whole(m) < SINGLE_ENTRIES)) return 0;
    return st->values_begin[st->n_tables] > 0 && fgi_trws_set_units(m, s);
}

static void end_single(trws *s) {
    s->single_begin = -1;
    free(s->rounded);
    free(s->h_f32);
    free(s->out_f32);
    s->rounded = s->h_f32 = s->out_f32 = NULL;
}

/* Without the memory for it the method stays in double precision. Returns 0 when the time is over. */
static int round_tables(const fgi_model *m, trws *s) {
    const int64_t n = m->s->values_begin[m->s->n_tables];
    if (!s->rounded) {
        s->rounded = fgi_alloc(n, sizeof(float));
        s->h_f32 = fgi_alloc(m->s->max_card, sizeof(float));
        s->out_f32 = fgi_alloc(m->s->max_card, sizeof(float));
        s->rounded_to = 0;
        fgi_prefer_large_pages(s->rounded, n * (int64_t)sizeof *s->rounded);
    }
    if (!s->rounded || !s->h_f32 || !s->out_f32) {
        end_single(s);
        return 1;
    }
    while (s->rounded_to < n) {
        int64_t end = n - s->rounded_to < FGI_CLOCK_WORK ? n : s->rounded_to + FGI_CLOCK_WORK;
        for (int64_t k = s->rounded_to; k < end; k++) s->rounded[k] = (float)(m->t->values[k] * s->table_unit);
        s->rounded_to = end;
        if (fgi_trws_out_of_time(s, FGI_CLOCK_WORK)) return 0;
    }
    return 1;
}

/* ---- messages ----------------------------------------------------------------------------------------------- */

static void product_f32(const fgi_model *m, const trws *s, const edge *e, int by_rows, int32_t from, int32_t to,
    const double *h, double *out, int32_t begin, int32_t end) {
    const int32_t cols = by_rows ? to : from;
    const float *t = s->rounded + (e->values - m->t->values) + (int64_t)begin * cols,
                w = (float)(fgi_factor_weight(m->s, e->factor) * s->weight_unit);
    const double per_score = 1 / s->score_unit;
    for (int32_t a = 0; a < from; a++) s->h_f32[a] = (float)(h[a] * per_score);
    if (by_rows) s->k->maxplus_rows_f32(t, end - begin, cols, w, s->h_f32 + begin, s->out_f32);
    else s->k->maxplus_cols_f32(t, end - begin, cols, w, s->h_f32, s->out_f32 + begin);
    for (int32_t b = by_rows ? 0 : begin; b < (by_rows ? to : end); b++) out[b] = s->out_f32[b] * s->score_unit;
}

/* The rows begin .. end of the table as it is stored: what they come to at all labels of the other end, or the results
 * for them. A table that is shared has rows of either end. */
void fgi_trws_product_part(const fgi_model *m, const trws *s, const edge *e, int to_hi, const double *h, double *out,
    int32_t begin, int32_t end) {
    const int32_t from = m->s->cards[to_hi ? e->lo : e->hi], to = m->s->cards[to_hi ? e->hi : e->lo];
    const int by_rows = e->lo_rows == to_hi;
    const fgi_trws_shared *shared = fgi_trws_shared_table(m, s, e);
    if (s->single) {
        product_f32(m, s, e, by_rows, from, to, h, out, begin, end);
        return;
    }
    if (shared) {
        *s->left_out += fgi_trws_product_shared(
            s->k, shared, !by_rows, fgi_factor_weight(m->s, e->factor), h, out, begin, end, s->list_rows);
        return;
    }
    const double w = fgi_factor_weight(m->s, e->factor), *t = e->values + (int64_t)begin * (by_rows ? to : from);
    if (by_rows) s->k->maxplus_rows(t, end - begin, to, w, h + begin, out);
    else s->k->maxplus_cols(t, end - begin, from, w, h, out + begin);
}

/* An implicit table for few labels, entry by entry: every rounding is that of the definition, in every version of the
 * code. */
static void product_band(const double *band, double w, const double *h, int32_t from, double *out, int32_t to) {
    for (int32_t b = 0; b < to; b++) {
        double best = -INFINITY;
        for (int32_t a = 0; a < from; a++) best = fgi_larger(best, w * band[b - a] + h[a]);
        out[b] = best;
    }
}

/* M(b) = max_a [ theta(a,b) + h(a) ] from one end of the edge to the other. */
static void product(const fgi_model *m, const trws *s, const edge *e, int to_hi, const double *h, double *out) {
    const int32_t from = m->s->cards[to_hi ? e->lo : e->hi], to = m->s->cards[to_hi ? e->hi : e->lo];
    if (!fgi_trws_is_table(e->form) && from <= FGI_FEW && to <= FGI_FEW) {
        product_band(e->values, fgi_factor_weight(m->s, e->factor), h, from, out, to);
        return;
    }
    if (e->form != FGI_TRWS_DENSE) {
        const fgi_view v = fgi_factor_view(m, e->factor);
        fgi_view_maxplus(s->k, &v, v.vars[0] == (to_hi ? e->hi : e->lo), h, out, s->scratch);
        return;
    }
    fgi_trws_product_part(m, s, e, to_hi, h, out, 0, fgi_trws_parts_source(m, s, e, to_hi) ? from : to);
}

#if defined(__GNUC__)
#define PREFETCH(p) __builtin_prefetch(p)
#else
#define PREFETCH(p) ((void)(p))
#endif

/* Edges are not in the order of memory, their tables even less: ask early for what the next one needs. The hardware
 * follows once a table is being read. */
static void prefetch_edge(const fgi_model *m, const trws *s, const edge *e) {
    enum {
        LINE = 64, /* bytes of a cache line */
        LINES = 8  /* lines of a table: then the hardware follows */
    };
    const char *message = (const char *)(s->messages + e->message);
    PREFETCH(message);
    PREFETCH(message + LINE);
    if (e->form != FGI_TRWS_DENSE) return;
    const char *t = s->single ? (const char *)(s->rounded + (e->values - m->t->values)) : (const char *)e->values;
    const int64_t bytes = (s->single ? 4 : 8) * (int64_t)m->s->cards[e->lo] * m->s->cards[e->hi];
    for (int64_t k = 0; k < LINES * LINE && k < bytes; k += LINE) PREFETCH(t + k);
}

/* send() for two labels at both ends, where the calls would cost more than the work. */
static double send_binary(const fgi_model *m, const trws *s, edge *e, int to_hi, double weight) {
    const double w = fgi_factor_weight(m->s, e->factor), *t = e->values, *hat = s->hat;
    const int flip =
        e->lo_rows != to_hi; /* no branches on the data here: they would be mispredicted half of the time */
    double *message = s->messages + e->message;
    const double h0 = hat[0] == -INFINITY ? -INFINITY : weight * hat[0] - message[0];
    const double h1 = hat[1] == -INFINITY ? -INFINITY : weight * hat[1] - message[1];
    const double m0 = fgi_larger(w * t[0] + h0, w * t[2 - flip] + h1),
                 m1 = fgi_larger(w * t[1 + flip] + h0, w * t[3] + h1);
    const double top = fgi_larger(m0, m1);
    e->to_hi = (uint8_t)to_hi;
    if (top == -INFINITY) return top;
    message[0] = m0 - top;
    message[1] = m1 - top;
    return top;
}

/* Sends the edge's message from node i onwards and returns the maximum taken out of it. */
double fgi_trws_send(const fgi_model *m, trws *s, edge *e, int to_hi, double weight) {
    const int32_t from = m->s->cards[to_hi ? e->lo : e->hi], to = m->s->cards[to_hi ? e->hi : e->lo];
    if (from == 2 && to == 2 && e->form == FGI_TRWS_DENSE) return send_binary(m, s, e, to_hi, weight);
    double *message = s->messages + e->message;
    s->k->reweight(s->hat, weight, message, s->h, from);
    product(m, s, e, to_hi, s->h, message);
    double top = s->k->max(message, to);
    if (top > -INFINITY) s->k->shift(message, top, to);
    e->to_hi = (uint8_t)to_hi;
    return top;
}

/* Adds the scores of edge e at the label its earlier end has been given, for the labels begin .. end. */
static void add_slice(const fgi_model *m, const edge *e, int32_t label, double *x, int32_t begin, int32_t end) {
    const int32_t n = m->s->cards[e->hi];
    const double w = fgi_factor_weight(m->s, e->factor);
    if (e->form == FGI_TRWS_DENSE && n == 2) {
        const double *t = e->values + (e->lo_rows ? 2 * (int64_t)label : label);
        x[0] += w * t[0];
        x[1] += w * t[e->lo_rows ? 1 : m->s->cards[e->lo]];
    } else if (!fgi_trws_is_table(e->form)) {
        const fgi_view v = fgi_factor_view(m, e->factor);
        const int known = begin <= label && label < end;
        const double here = known ? x[label] : 0;
        if (v.kind == FGI_POTTS) {
            for (int32_t b = begin; b < end; b++) x[b] += w * v.p1;
            if (known) x[label] = here + w * v.p0;
            return;
        }
        for (int32_t b = begin; b < end; b++) x[b] += w * fgi_implicit_at(v.kind, v.p0, v.p1, label, b);
    } else if (e->lo_rows) {
        const double *row = e->values + (int64_t)label * n;
        for (int32_t b = begin; b < end; b++) x[b] += w * row[b];
    } else {
        const double *column = e->values + label;
        for (int32_t b = begin, step = m->s->cards[e->lo]; b < end; b++) x[b] += w * column[(int64_t)b * step];
    }
}

/* fgi_trws_add_up() for two labels. */
static int32_t add_up_binary(const fgi_model *m, trws *s, int32_t i, int decoding, double *liked) {
    const double *theta = fgi_unary(m, i);
    double later0 = 0, later1 = 0, earlier0 = 0, earlier1 = 0;
    for (int64_t k = s->later_begin[i]; k < s->later_begin[i + 1]; k++) {
        const double *message = s->messages + s->edges[k].message;
        later0 += message[0];
        later1 += message[1];
    }
    for (int64_t k = s->earlier_begin[i]; k < s->earlier_begin[i + 1]; k++) {
        const double *message = s->messages + s->edges[s->earlier[k]].message;
        earlier0 += message[0];
        earlier1 += message[1];
    }
    s->hat[0] = later0 + theta[0] + earlier0;
    s->hat[1] = later1 + theta[1] + earlier1;
    if (!decoding) return 0;
    double *given = s->given;
    given[0] = theta[0], given[1] = theta[1];
    for (int64_t k = s->earlier_begin[i]; k < s->earlier_begin[i + 1]; k++) {
        const edge *e = &s->edges[s->earlier[k]];
        add_slice(m, e, s->labels[e->lo], given, 0, 2);
    }
    const int32_t best = given[1] + later1 > given[0] + later0;
    *liked = best ? given[1] + later1 : given[0] + later0;
    return best;
}

/* hat_i; in the forward sweep also the label of node i, whose choice needs most of the same sums: the best among those
 * from begin to end (ties go to the lowest), and what made it so. Two labels are never parted. */
int32_t fgi_trws_add_up(
    const fgi_model *m, trws *s, int32_t i, int decoding, int32_t begin, int32_t end, double *liked) {
    fgi_assert(i >= 0 && i < m->s->n_vars && begin >= 0 && begin <= end && end <= m->s->cards[i]);
    const int32_t n = end - begin;
    *liked = -INFINITY;
    if (n <= 0) return 0;
    if (m->s->cards[i] == 2) return add_up_binary(m, s, i, decoding, liked);
    const size_t bytes = (size_t)n * sizeof(double);
    const double *theta = fgi_unary(m, i);
    double *hat = s->hat + begin;
    int32_t best = begin;
    memset(hat, 0, bytes);
    for (int64_t k = s->later_begin[i]; k < s->later_begin[i + 1]; k++)
        s->k->add(hat, s->messages + s->edges[k].message + begin, n);
    if (decoding) {
        memcpy(s->given + begin, theta + begin, bytes);
        for (int64_t k = s->earlier_begin[i]; k < s->earlier_begin[i + 1]; k++) {
            const edge *e = &s->edges[s->earlier[k]];
            add_slice(m, e, s->labels[e->lo], s->given, begin, end);
        }
        for (int32_t a = begin + 1; a < end; a++) /* given + messages from later nodes */
            if (s->given[a] + s->hat[a] > s->given[best] + s->hat[best]) best = a;
        *liked = s->given[best] + s->hat[best];
    }
    s->k->add(hat, theta + begin, n);
    for (int64_t k = s->earlier_begin[i]; k < s->earlier_begin[i + 1]; k++) {
        if (k + 2 < s->earlier_begin[i + 1]) PREFETCH(s->messages + s->edges[s->earlier[k + 2]].message + begin);
        s->k->add(hat, s->messages + s->edges[s->earlier[k]].message + begin, n);
    }
    return best;
}

/* ---- sweeps ------------------------------------------------------------------------------------------------- */

/* hat_i with its maximum taken out. Returns 0 if that is -INFINITY. */
static int begin_node(const fgi_model *m, trws *s, int32_t i, int64_t n_send) {
    fgi_assert(i >= 0 && i < m->s->n_vars && n_send >= 0);
    const int forward = s->stage == FORWARD;
    for (int64_t k = 0; k < n_send && k < EDGES_AHEAD; k++) prefetch_edge(m, s, fgi_trws_outgoing(s, i, k));
    fgi_trws_enter(s, i);
    double liked;
    const int32_t label = fgi_trws_add_up(m, s, i, forward, 0, m->s->cards[i], &liked);
    if (forward) fgi_trws_decode(s, i, label, s->given[label]);
    double top = s->k->max(s->hat, m->s->cards[i]);
    fgi_trws_take(&s->progress, s->record, i, 0, top);
    if (top == -INFINITY) return 0;
    s->k->shift(s->hat, top, m->s->cards[i]);
    s->done = 0;
    s->tops = 0;
    return 1;
}

/* The next message of node i; returns its maximum. */
static double send_next(const fgi_model *m, trws *s, int32_t i, int64_t n_send, double weight) {
    fgi_assert(i >= 0 && i < m->s->n_vars && weight > 0);
    const int forward = s->stage == FORWARD;
    edge *e = fgi_trws_outgoing(s, i, s->done++);
    if (s->done + EDGES_AHEAD <= n_send) prefetch_edge(m, s, fgi_trws_outgoing(s, i, s->done + EDGES_AHEAD - 1));
    const double top = fgi_trws_send(m, s, e, forward, weight);
    s->tops += top;
    if (top == -INFINITY) fgi_progress_take(&s->progress, top);
    s->meter.spent += fgi_trws_edge_work(m, e);
    return top;
}

int fgi_trws_visit(const fgi_model *m, trws *s, int32_t i) {
    fgi_assert(i >= 0 && i < m->s->n_vars);
    const int64_t n_send = fgi_trws_sends(s, i);
    if (!begin_node(m, s, i, n_send)) return 0;
    const double weight = fgi_trws_weight(s, i);
    while (s->done < n_send)
        if (send_next(m, s, i, n_send, weight) == -INFINITY) return 0;
    fgi_trws_take(&s->progress, s->record, i, 1, s->tops);
    return 1;
}

/* One sweep in either direction, resumed where it paused. Returns 0 when the time is over; a maximum of -INFINITY ends
 * it early. */
static int sweep(const fgi_model *m, trws *s) {
    const fgi_structure *st = m->s;
    s->is_between = 0;
    const int together = s->team ? fgi_trws_sweep_together(m, s) : -1;
    if (together >= 0) return together;
    for (; s->node < st->n_vars; s->node++, s->done = -1) {
        while (s->node < st->n_vars && s->few[fgi_trws_node(m, s, s->node)]) {
            if (!s->visit_few(m, s)) return 1;
            if (fgi_trws_out_of_time(s, 0)) return 0;
        }
        if (s->node == st->n_vars) break;
        const int32_t i = fgi_trws_node(m, s, s->node);
        const int64_t n_send = fgi_trws_sends(s, i), degree = st->adj_begin[i + 1] - st->adj_begin[i];
        if (s->done < 0) {
            if (!begin_node(m, s, i, n_send)) return 1;
            if (fgi_trws_out_of_time(s, degree * (st->cards[i] + FGI_LINK_WORK))) return 0;
        }
        const double weight = fgi_trws_weight(s, i);
        while (s->done < n_send) {
            const double top = send_next(m, s, i, n_send, weight);
            if (top == -INFINITY || fgi_trws_out_of_time(s, 0)) return top == -INFINITY;
        }
        fgi_progress_take(&s->progress, s->tops);
    }
    return 1;
}

static void begin_sweep(const fgi_solver *solver, trws *s, fgi_trws_stage next, int single) {
    s->stage = next;
    s->node = 0;
    s->is_between = 1;
    s->end = solver->model->s->n_vars;
    s->done = -1;
    s->single = single;
    fgi_trws_forget_sweep(s);
    s->sums = (fgi_trws_sums){0};
    s->block = -1; /* the constant is a block of its own */
    fgi_progress_begin(&s->progress, solver->model->s->constant);
}

/* A forward sweep, or what must come before it. */
static void begin_iteration(const fgi_solver *solver, trws *s) {
    if (!s->rounded && s->single_begin >= 0 && solver->info.iterations >= s->single_begin) s->stage = ROUND;
    else begin_sweep(solver, s, FORWARD, s->rounded != NULL);
}

/* In single precision an exact bound costs as much as three sweeps: often at first, when much happens, then every
 * eighth iteration. */
static int bound_is_due(int64_t iteration) {
    return iteration < 4 || (iteration < 16 ? iteration % 2 : iteration % 8) == 0;
}

/* Iterations in single precision end when they no longer move the bound. */
static int single_is_done(trws *s, int64_t iteration, double bound, double unit) {
    double gain = s->single_bound - bound, iterations = (double)(iteration - s->single_iteration);
    if (iteration < 4) return 0;
    s->single_bound = bound;
    s->single_iteration = iteration;
    return gain < SINGLE_GAIN * iterations * fgi_larger(fabs(bound), unit);
}

/* The end of a sweep: what it found goes to the solver, and the next one begins. */
static void end_sweep(fgi_solver *solver, trws *s) {
    fgi_info *info = &solver->info;
    fgi_trws_add_block(&s->sums, &s->progress);
    s->progress.bound = s->sums.bound;
    s->progress.decoded = s->sums.decoded;
    s->progress.magnitude = s->sums.magnitude;
    if (s->progress.bound.forbidden) {
        fgi_solver_bound(solver, -INFINITY);
        info->status = FGI_INFEASIBLE;
    } else if (s->stage == FORWARD) {
        fgi_progress_consider(solver, &s->progress, s->labels);
        begin_sweep(solver, s, BACKWARD, s->rounded && !bound_is_due(info->iterations));
    } else {
        info->iterations++;
        info->entries_touched += 2 * s->entries - *s->left_out;
        *s->left_out = 0;
        if (!s->single) {
            if (s->rounded) s->progress.stall_begin = info->iterations; /* rounding is no sign of convergence */
            fgi_progress_report(solver, &s->progress);
            if (s->rounded && single_is_done(s, info->iterations, fgi_sum_value(&s->progress.bound), info->unit))
                end_single(s);
        }
        begin_iteration(solver, s);
    }
}

static int first(fgi_solver *solver, trws *s, double deadline) {
    return s->is_part || fgi_first_labeling(&s->first, solver, s->labels, deadline);
}

static fgi_rc trws_run(fgi_solver *solver, double deadline, int64_t iteration_limit) {
    trws *s = solver->state;
    const fgi_model *m = solver->model;
    s->meter.every = FGI_CLOCK_WORK, s->meter.deadline = deadline;
    if (s->stage == COUNT) {
        if (s->team) fgi_trws_team_begin(m, s);
        if (!s->is_part && !fgi_first_labeling(&s->first, solver, NULL, deadline)) return FGI_OK;
        if (solver->info.status != FGI_RUNNING || !fgi_trws_count_edges(m, s)) return FGI_OK;
    }
    if (s->stage == BUILD || s->stage == LINK) {
        if (!fgi_trws_build_edges(m, s)) return FGI_OK;
        s->stage = SHARE;
        s->node = 0;
    }
    if (s->stage == SHARE) {
        if (!fgi_trws_share_tables(m, s)) return FGI_OK;
        begin_iteration(solver, s);
    }
    do {
        if (s->stage == FORWARD && s->node == 0 && !first(solver, s, deadline)) return FGI_OK;
        if (fgi_solver_done(solver)) return FGI_OK;
        if (s->stage == ROUND) {
            if (!round_tables(m, s)) return FGI_OK;
            begin_sweep(solver, s, FORWARD, s->rounded != NULL);
        }
        if (!sweep(m, s)) return FGI_OK;
        end_sweep(solver, s);
    } while (!fgi_solver_done(solver) &&
        (s->stage == BACKWARD || (solver->info.iterations < iteration_limit && !fgi_meter_over(&s->meter))));
    return FGI_OK;
}

/* ---- for dual/trws_messages.c ------------------------------------------------------------------------------- */

void fgi_trws_product(const fgi_model *m, const trws *s, const edge *e, int to_hi, const double *h, double *out) {
    product(m, s, e, to_hi, h, out);
}

void fgi_trws_set_up(const fgi_model *m, trws *s) {
    s->meter.deadline = INFINITY;
    if (s->stage == COUNT) fgi_trws_count_edges(m, s);
    if (s->stage == BUILD || s->stage == LINK) {
        fgi_trws_build_edges(m, s);
        s->stage = SHARE;
        s->node = 0;
    }
    if (s->stage == SHARE) fgi_trws_share_tables(m, s);
    if (s->stage == ROUND) round_tables(m, s);
    s->single = 0;
}

void fgi_trws_begin(const fgi_solver *solver, trws *s) { begin_iteration(solver, s); }
void fgi_trws_resume(const fgi_solver *solver, trws *s) { begin_sweep(solver, s, s->stage, 0); }

int fgi_trws_finish(fgi_solver *solver) {
    trws *s = solver->state;
    s->meter.deadline = INFINITY;
    const int is_amid = s->stage == BACKWARD || (s->stage == FORWARD && (s->node > 0 || s->done >= 0));
    if (is_amid && sweep(solver->model, s)) end_sweep(solver, s);
    return is_amid;
}

/* ---- state -------------------------------------------------------------------------------------------------- */

/* Numbers in all messages, and the entries of a sweep. Where all variables have as many labels nobody asks which these
 * are: in sparse models they lie far apart. */
static int64_t measure(const fgi_model *m, int64_t *entries) {
    const fgi_structure *st = m->s;
    const int32_t most = st->max_card;
    int64_t n_messages = 0, sum = 0;
    if (st->min_card == most) {
        for (int64_t f = 0; f < st->n_factors; f++) {
            const int32_t t = st->factor_table[f];
            const fgi_view v = {.kind = st->table_kind[t],
                .rows = most,
                .cols = most,
                .reach = m->t->any_reach ? m->t->facts[t].reach : 0};
            sum += fgi_pair_work(&v);
        }
        *entries = sum;
        return st->n_factors * fgi_trws_message_size(most, most);
    }
    for (int64_t f = 0; f < st->n_factors; f++) {
        const fgi_view v = fgi_factor_view(m, f);
        n_messages += fgi_trws_message_size(v.rows, v.cols);
        sum += fgi_pair_work(&v);
    }
    *entries = sum;
    return n_messages;
}

static fgi_rc trws_create(fgi_solver *solver, fgi_error *err) {
    const fgi_structure *st = solver->model->s;
    if (st->max_arity > 2) { /* the same method for any arity */
        solver->ops = &fgi_srmp_ops;
        return solver->ops->create(solver, err);
    }
    trws *s = fgi_calloc(1, sizeof *s);
    solver->state = s;
    if (!s) return fgi_no_memory(err);
    s->k = fgi_kernels_get();
    s->visit_few = fgi_trws_few(s->k);
    const int64_t n_messages = measure(solver->model, &s->entries);
    s->edges = fgi_take(&s->arena, st->n_factors, edge);
    s->later_begin = fgi_take_zero(&s->arena, st->n_vars + 1, int64_t);
    s->earlier_begin = fgi_take_zero(&s->arena, st->n_vars + 1, int64_t);
    s->earlier = fgi_take(&s->arena, st->n_factors, int32_t);
    s->messages = fgi_take_zero(&s->arena, n_messages, double);
    s->n_messages = n_messages;
    s->hat = fgi_take(&s->arena, st->max_card, double);
    s->h = fgi_take(&s->arena, st->max_card, double);
    s->given = fgi_take(&s->arena, st->max_card, double);
    s->scratch = fgi_take(&s->arena, 2 * (int64_t)st->max_card + 1, double);
    s->list_rows = fgi_take(&s->arena, (int64_t)st->max_card + 1, int32_t);
    s->left_out = fgi_take_zero(&s->arena, 1, int64_t);
    s->labels = fgi_take_zero(&s->arena, st->n_vars, int32_t);
    s->few = fgi_take_zero(&s->arena, st->n_vars, uint8_t);
    fgi_trws_build_bands(st, s);
    if (s->arena.failed || !fgi_trws_take_for_building(st, s) || (solver->pool && !fgi_trws_team_create(solver, s)))
        return fgi_no_memory(err);
    fgi_prefer_large_pages(s->edges, st->n_factors * (int64_t)sizeof *s->edges);
    fgi_prefer_large_pages(s->messages, n_messages * (int64_t)sizeof *s->messages);
    fgi_progress_init(&s->progress);
    s->single_bound = INFINITY;
    const int wants = wants_single(solver->model, s, solver->settings.precision);
    s->single_begin = !wants ? -1 : solver->settings.precision == 2 ? 0 : SINGLE_BEGIN;
    solver->info.memory = s->arena.bytes + (wants ? (int64_t)sizeof(float) * st->values_begin[st->n_tables] : 0);
    return FGI_OK;
}

static void trws_destroy(fgi_solver *solver) {
    trws *s = solver->state;
    fgi_trws_team_free(s->team); /* first: one of its threads may be reading what follows */
    fgi_first_free(s->first);
    fgi_trws_end_building(s);
    fgi_trws_shared_free(s);
    end_single(s);
    fgi_arena_free(&s->arena);
    free(s);
}

const fgi_solver_ops fgi_trws_ops = {.name = "trws",
    .create = trws_create,
    .run = trws_run,
    .destroy = trws_destroy,
    .message_size = fgi_trws_dual_size,
    .messages = fgi_trws_messages,
    .warm_start = fgi_trws_warm_start,
    .takes = fgi_trws_takes,
    .update = fgi_trws_update,
    .moved = fgi_trws_moved,
    .ready = fgi_trws_ready,
    .belief = fgi_trws_belief,
    .state = fgi_trws_own_state,
    .state_set = fgi_trws_state_set};
