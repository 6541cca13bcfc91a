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
static int wants_single(const fgi_model *m, trws *self, int32_t precision) {
    const fgi_structure *s = m->s;
    if (precision == 1 || (precision == 0 && read_whole(m) < SINGLE_ENTRIES)) return 0;
    return s->values_begin[s->n_tables] > 0 && fgi_trws_set_units(m, self);
}

static void end_single(trws *self) {
    self->single_begin = -1;
    free(self->rounded);
    free(self->h_f32);
    free(self->out_f32);
    self->rounded = self->h_f32 = self->out_f32 = NULL;
}

/* Without the memory for it the method stays in double precision. Returns 0 when the time is over. */
static int round_tables(const fgi_model *m, trws *self) {
    const int64_t n = m->s->values_begin[m->s->n_tables];
    if (!self->rounded) {
        self->rounded = fgi_alloc(n, sizeof(float));
        self->h_f32 = fgi_alloc(m->s->max_card, sizeof(float));
        self->out_f32 = fgi_alloc(m->s->max_card, sizeof(float));
        self->rounded_to = 0;
        fgi_prefer_large_pages(self->rounded, n * (int64_t)sizeof *self->rounded);
    }
    if (!self->rounded || !self->h_f32 || !self->out_f32) {
        end_single(self);
        return 1;
    }
    while (self->rounded_to < n) {
        int64_t end = n - self->rounded_to < FGI_CLOCK_WORK ? n : self->rounded_to + FGI_CLOCK_WORK;
        for (int64_t k = self->rounded_to; k < end; k++) self->rounded[k] = (float)(m->t->values[k] * self->table_unit);
        self->rounded_to = end;
        if (fgi_trws_out_of_time(self, FGI_CLOCK_WORK)) return 0;
    }
    return 1;
}

/* ---- messages ----------------------------------------------------------------------------------------------- */

static void product_f32(const fgi_model *m, const trws *self, const edge *e, int by_rows, int32_t from, int32_t to,
    const double *h, double *out, int32_t begin, int32_t end) {
    const int32_t cols = by_rows ? to : from;
    const float *t = self->rounded + (e->values - m->t->values) + (int64_t)begin * cols,
                w = (float)(fgi_factor_weight(m->s, e->factor) * self->weight_unit);
    const double per_score = 1 / self->score_unit;
    for (int32_t a = 0; a < from; a++) self->h_f32[a] = (float)(h[a] * per_score);
    if (by_rows) self->k->maxplus_rows_f32(t, end - begin, cols, w, self->h_f32 + begin, self->out_f32);
    else self->k->maxplus_cols_f32(t, end - begin, cols, w, self->h_f32, self->out_f32 + begin);
    for (int32_t b = by_rows ? 0 : begin; b < (by_rows ? to : end); b++) out[b] = self->out_f32[b] * self->score_unit;
}

/* The rows begin .. end of the table as it is stored: what they come to at all labels of the other end, or the results
 * for them. A table that is shared has rows of either end. */
void fgi_trws_product_part(const fgi_model *m, const trws *self, const edge *e, int to_hi, const double *h, double *out,
    int32_t begin, int32_t end) {
    const int32_t from = m->s->cards[to_hi ? e->lo : e->hi], to = m->s->cards[to_hi ? e->hi : e->lo];
    const int by_rows = e->lo_rows == to_hi;
    const fgi_trws_shared *shared = fgi_trws_shared_table(m, self, e);
    if (self->single) {
        product_f32(m, self, e, by_rows, from, to, h, out, begin, end);
        return;
    }
    if (shared) {
        *self->left_out += fgi_trws_product_shared(
            self->k, shared, !by_rows, fgi_factor_weight(m->s, e->factor), h, out, begin, end, self->list_rows);
        return;
    }
    const double w = fgi_factor_weight(m->s, e->factor), *t = e->values + (int64_t)begin * (by_rows ? to : from);
    if (by_rows) self->k->maxplus_rows(t, end - begin, to, w, h + begin, out);
    else self->k->maxplus_cols(t, end - begin, from, w, h, out + begin);
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
static void product(const fgi_model *m, const trws *self, const edge *e, int to_hi, const double *h, double *out) {
    const int32_t from = m->s->cards[to_hi ? e->lo : e->hi], to = m->s->cards[to_hi ? e->hi : e->lo];
    if (!fgi_trws_is_table(e->form) && from <= FGI_FEW && to <= FGI_FEW) {
        product_band(e->values, fgi_factor_weight(m->s, e->factor), h, from, out, to);
        return;
    }
    if (e->form != FGI_TRWS_DENSE) {
        const fgi_view v = fgi_factor_view(m, e->factor);
        fgi_view_maxplus(self->k, &v, v.vars[0] == (to_hi ? e->hi : e->lo), h, out, self->scratch);
        return;
    }
    fgi_trws_product_part(m, self, e, to_hi, h, out, 0, fgi_trws_parts_source(m, self, e, to_hi) ? from : to);
}

#if defined(__GNUC__)
#define PREFETCH(p) __builtin_prefetch(p)
#else
#define PREFETCH(p) ((void)(p))
#endif

/* Edges are not in the order of memory, their tables even less: ask early for what the next one needs. The hardware
 * follows once a table is being read. */
static void prefetch_edge(const fgi_model *m, const trws *self, const edge *e) {
    enum {
        LINE = 64, /* bytes of a cache line */
        LINES = 8  /* lines of a table: then the hardware follows */
    };
    const char *message = (const char *)(self->messages + e->message);
    PREFETCH(message);
    PREFETCH(message + LINE);
    if (e->form != FGI_TRWS_DENSE) return;
    const char *t = self->single ? (const char *)(self->rounded + (e->values - m->t->values)) : (const char *)e->values;
    const int64_t bytes = (self->single ? 4 : 8) * (int64_t)m->s->cards[e->lo] * m->s->cards[e->hi];
    for (int64_t k = 0; k < LINES * LINE && k < bytes; k += LINE) PREFETCH(t + k);
}

/* send() for two labels at both ends, where the calls would cost more than the work. */
static double send_binary(const fgi_model *m, const trws *self, edge *e, int to_hi, double weight) {
    const double w = fgi_factor_weight(m->s, e->factor), *t = e->values, *hat = self->hat;
    const int flip =
        e->lo_rows != to_hi; /* no branches on the data here: they would be mispredicted half of the time */
    double *message = self->messages + e->message;
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
double fgi_trws_send(const fgi_model *m, trws *self, edge *e, int to_hi, double weight) {
    const int32_t from = m->s->cards[to_hi ? e->lo : e->hi], to = m->s->cards[to_hi ? e->hi : e->lo];
    if (from == 2 && to == 2 && e->form == FGI_TRWS_DENSE) return send_binary(m, self, e, to_hi, weight);
    double *message = self->messages + e->message;
    self->k->reweight(self->hat, weight, message, self->h, from);
    product(m, self, e, to_hi, self->h, message);
    double top = self->k->max(message, to);
    if (top > -INFINITY) self->k->shift(message, top, to);
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
static int32_t add_up_binary(const fgi_model *m, trws *self, int32_t i, int decoding, double *liked) {
    const double *theta = fgi_unary(m, i);
    double later0 = 0, later1 = 0, earlier0 = 0, earlier1 = 0;
    for (int64_t k = self->later_begin[i]; k < self->later_begin[i + 1]; k++) {
        const double *message = self->messages + self->edges[k].message;
        later0 += message[0];
        later1 += message[1];
    }
    for (int64_t k = self->earlier_begin[i]; k < self->earlier_begin[i + 1]; k++) {
        const double *message = self->messages + self->edges[self->earlier[k]].message;
        earlier0 += message[0];
        earlier1 += message[1];
    }
    self->hat[0] = later0 + theta[0] + earlier0;
    self->hat[1] = later1 + theta[1] + earlier1;
    if (!decoding) return 0;
    double *given = self->given;
    given[0] = theta[0], given[1] = theta[1];
    for (int64_t k = self->earlier_begin[i]; k < self->earlier_begin[i + 1]; k++) {
        const edge *e = &self->edges[self->earlier[k]];
        add_slice(m, e, self->labels[e->lo], given, 0, 2);
    }
    const int32_t best = given[1] + later1 > given[0] + later0;
    *liked = best ? given[1] + later1 : given[0] + later0;
    return best;
}

/* hat_i; in the forward sweep also the label of node i, whose choice needs most of the same sums: the best among those
 * from begin to end (ties go to the lowest), and what made it so. Two labels are never parted. */
int32_t fgi_trws_add_up(
    const fgi_model *m, trws *self, int32_t i, int decoding, int32_t begin, int32_t end, double *liked) {
    fgi_assert(i >= 0 && i < m->s->n_vars && begin >= 0 && begin <= end && end <= m->s->cards[i]);
    const int32_t n = end - begin;
    *liked = -INFINITY;
    if (n <= 0) return 0;
    if (m->s->cards[i] == 2) return add_up_binary(m, self, i, decoding, liked);
    const size_t bytes = (size_t)n * sizeof(double);
    const double *theta = fgi_unary(m, i);
    double *hat = self->hat + begin;
    int32_t best = begin;
    memset(hat, 0, bytes);
    for (int64_t k = self->later_begin[i]; k < self->later_begin[i + 1]; k++)
        self->k->add(hat, self->messages + self->edges[k].message + begin, n);
    if (decoding) {
        memcpy(self->given + begin, theta + begin, bytes);
        for (int64_t k = self->earlier_begin[i]; k < self->earlier_begin[i + 1]; k++) {
            const edge *e = &self->edges[self->earlier[k]];
            add_slice(m, e, self->labels[e->lo], self->given, begin, end);
        }
        for (int32_t a = begin + 1; a < end; a++) /* given + messages from later nodes */
            if (self->given[a] + self->hat[a] > self->given[best] + self->hat[best]) best = a;
        *liked = self->given[best] + self->hat[best];
    }
    self->k->add(hat, theta + begin, n);
    for (int64_t k = self->earlier_begin[i]; k < self->earlier_begin[i + 1]; k++) {
        if (k + 2 < self->earlier_begin[i + 1])
            PREFETCH(self->messages + self->edges[self->earlier[k + 2]].message + begin);
        self->k->add(hat, self->messages + self->edges[self->earlier[k]].message + begin, n);
    }
    return best;
}

/* ---- sweeps ------------------------------------------------------------------------------------------------- */

/* hat_i with its maximum taken out. Returns 0 if that is -INFINITY. */
static int begin_node(const fgi_model *m, trws *self, int32_t i, int64_t n_send) {
    fgi_assert(i >= 0 && i < m->s->n_vars && n_send >= 0);
    const int forward = self->stage == FORWARD;
    for (int64_t k = 0; k < n_send && k < EDGES_AHEAD; k++) prefetch_edge(m, self, fgi_trws_outgoing(self, i, k));
    fgi_trws_enter(self, i);
    double liked;
    const int32_t label = fgi_trws_add_up(m, self, i, forward, 0, m->s->cards[i], &liked);
    if (forward) fgi_trws_decode(self, i, label, self->given[label]);
    double top = self->k->max(self->hat, m->s->cards[i]);
    fgi_trws_take(&self->progress, self->record, i, 0, top);
    if (top == -INFINITY) return 0;
    self->k->shift(self->hat, top, m->s->cards[i]);
    self->done = 0;
    self->tops = 0;
    return 1;
}

/* The next message of node i; returns its maximum. */
static double send_next(const fgi_model *m, trws *self, int32_t i, int64_t n_send, double weight) {
    fgi_assert(i >= 0 && i < m->s->n_vars && weight > 0);
    const int forward = self->stage == FORWARD;
    edge *e = fgi_trws_outgoing(self, i, self->done++);
    if (self->done + EDGES_AHEAD <= n_send)
        prefetch_edge(m, self, fgi_trws_outgoing(self, i, self->done + EDGES_AHEAD - 1));
    const double top = fgi_trws_send(m, self, e, forward, weight);
    self->tops += top;
    if (top == -INFINITY) fgi_progress_take(&self->progress, top);
    self->meter.spent += fgi_trws_edge_work(m, e);
    return top;
}

int fgi_trws_visit(const fgi_model *m, trws *self, int32_t i) {
    fgi_assert(i >= 0 && i < m->s->n_vars);
    const int64_t n_send = fgi_trws_sends(self, i);
    if (!begin_node(m, self, i, n_send)) return 0;
    const double weight = fgi_trws_weight(self, i);
    while (self->done < n_send)
        if (send_next(m, self, i, n_send, weight) == -INFINITY) return 0;
    fgi_trws_take(&self->progress, self->record, i, 1, self->tops);
    return 1;
}

/* One sweep in either direction, resumed where it paused. Returns 0 when the time is over; a maximum of -INFINITY ends
 * it early. */
static int sweep(const fgi_model *m, trws *self) {
    const fgi_structure *s = m->s;
    self->is_between = 0;
    const int together = self->team ? fgi_trws_sweep_together(m, self) : -1;
    if (together >= 0) return together;
    for (; self->node < s->n_vars; self->node++, self->done = -1) {
        while (self->node < s->n_vars && self->few[fgi_trws_node(m, self, self->node)]) {
            if (!self->visit_few(m, self)) return 1;
            if (fgi_trws_out_of_time(self, 0)) return 0;
        }
        if (self->node == s->n_vars) break;
        const int32_t i = fgi_trws_node(m, self, self->node);
        const int64_t n_send = fgi_trws_sends(self, i), degree = s->adj_begin[i + 1] - s->adj_begin[i];
        if (self->done < 0) {
            if (!begin_node(m, self, i, n_send)) return 1;
            if (fgi_trws_out_of_time(self, degree * (s->cards[i] + FGI_LINK_WORK))) return 0;
        }
        const double weight = fgi_trws_weight(self, i);
        while (self->done < n_send) {
            const double top = send_next(m, self, i, n_send, weight);
            if (top == -INFINITY || fgi_trws_out_of_time(self, 0)) return top == -INFINITY;
        }
        fgi_progress_take(&self->progress, self->tops);
    }
    return 1;
}

static void begin_sweep(const fgi_solver *solver, trws *self, fgi_trws_stage next, int single) {
    self->stage = next;
    self->node = 0;
    self->is_between = 1;
    self->end = solver->model->s->n_vars;
    self->done = -1;
    self->single = single;
    fgi_trws_forget_sweep(self);
    self->sums = (fgi_trws_sums){0};
    self->block = -1; /* the constant is a block of its own */
    fgi_progress_begin(&self->progress, solver->model->s->constant);
}

/* A forward sweep, or what must come before it. */
static void begin_iteration(const fgi_solver *solver, trws *self) {
    if (!self->rounded && self->single_begin >= 0 && solver->info.iterations >= self->single_begin) self->stage = ROUND;
    else begin_sweep(solver, self, FORWARD, self->rounded != NULL);
}

/* In single precision an exact bound costs as much as three sweeps: often at first, when much happens, then every
 * eighth iteration. */
static int bound_is_due(int64_t iteration) {
    return iteration < 4 || (iteration < 16 ? iteration % 2 : iteration % 8) == 0;
}

/* Iterations in single precision end when they no longer move the bound. */
static int single_is_done(trws *self, int64_t iteration, double bound, double unit) {
    double gain = self->single_bound - bound, iterations = (double)(iteration - self->single_iteration);
    if (iteration < 4) return 0;
    self->single_bound = bound;
    self->single_iteration = iteration;
    return gain < SINGLE_GAIN * iterations * fgi_larger(fabs(bound), unit);
}

/* The end of a sweep: what it found goes to the solver, and the next one begins. */
static void end_sweep(fgi_solver *solver, trws *self) {
    fgi_info *info = &solver->info;
    fgi_trws_add_block(&self->sums, &self->progress);
    self->progress.bound = self->sums.bound;
    self->progress.decoded = self->sums.decoded;
    self->progress.magnitude = self->sums.magnitude;
    if (self->progress.bound.forbidden) {
        fgi_solver_bound(solver, -INFINITY);
        info->status = FGI_INFEASIBLE;
    } else if (self->stage == FORWARD) {
        fgi_progress_consider(solver, &self->progress, self->labels);
        begin_sweep(solver, self, BACKWARD, self->rounded && !bound_is_due(info->iterations));
    } else {
        info->iterations++;
        info->entries_touched += 2 * self->entries - *self->left_out;
        *self->left_out = 0;
        if (!self->single) {
            if (self->rounded) self->progress.stall_begin = info->iterations; /* rounding is no sign of convergence */
            fgi_progress_report(solver, &self->progress);
            if (self->rounded &&
                single_is_done(self, info->iterations, fgi_sum_value(&self->progress.bound), info->unit))
                end_single(self);
        }
        begin_iteration(solver, self);
    }
}

static int first(fgi_solver *solver, trws *self, double deadline) {
    return self->is_part || fgi_first_labeling(&self->first, solver, self->labels, deadline);
}

static fgi_rc trws_run(fgi_solver *solver, double deadline, int64_t iteration_limit) {
    trws *self = solver->state;
    const fgi_model *m = solver->model;
    self->meter.every = FGI_CLOCK_WORK, self->meter.deadline = deadline;
    if (self->stage == COUNT) {
        if (self->team) fgi_trws_team_begin(m, self);
        if (!self->is_part && !fgi_first_labeling(&self->first, solver, NULL, deadline)) return FGI_OK;
        if (solver->info.status != FGI_RUNNING || !fgi_trws_count_edges(m, self)) return FGI_OK;
    }
    if (self->stage == BUILD || self->stage == LINK) {
        if (!fgi_trws_build_edges(m, self)) return FGI_OK;
        self->stage = SHARE;
        self->node = 0;
    }
    if (self->stage == SHARE) {
        if (!fgi_trws_share_tables(m, self)) return FGI_OK;
        begin_iteration(solver, self);
    }
    do {
        if (self->stage == FORWARD && self->node == 0 && !first(solver, self, deadline)) return FGI_OK;
        if (fgi_solver_done(solver)) return FGI_OK;
        if (self->stage == ROUND) {
            if (!round_tables(m, self)) return FGI_OK;
            begin_sweep(solver, self, FORWARD, self->rounded != NULL);
        }
        if (!sweep(m, self)) return FGI_OK;
        end_sweep(solver, self);
    } while (!fgi_solver_done(solver) &&
        (self->stage == BACKWARD || (solver->info.iterations < iteration_limit && !fgi_meter_over(&self->meter))));
    return FGI_OK;
}

/* ---- for dual/trws_messages.c ------------------------------------------------------------------------------- */

void fgi_trws_product(const fgi_model *m, const trws *self, const edge *e, int to_hi, const double *h, double *out) {
    product(m, self, e, to_hi, h, out);
}

void fgi_trws_set_up(const fgi_model *m, trws *self) {
    self->meter.deadline = INFINITY;
    if (self->stage == COUNT) fgi_trws_count_edges(m, self);
    if (self->stage == BUILD || self->stage == LINK) {
        fgi_trws_build_edges(m, self);
        self->stage = SHARE;
        self->node = 0;
    }
    if (self->stage == SHARE) fgi_trws_share_tables(m, self);
    if (self->stage == ROUND) round_tables(m, self);
    self->single = 0;
}

void fgi_trws_begin(const fgi_solver *solver, trws *self) { begin_iteration(solver, self); }
void fgi_trws_resume(const fgi_solver *solver, trws *self) { begin_sweep(solver, self, self->stage, 0); }

int fgi_trws_finish(fgi_solver *solver) {
    trws *self = solver->state;
    self->meter.deadline = INFINITY;
    const int is_amid = self->stage == BACKWARD || (self->stage == FORWARD && (self->node > 0 || self->done >= 0));
    if (is_amid && sweep(solver->model, self)) end_sweep(solver, self);
    return is_amid;
}

/* ---- state -------------------------------------------------------------------------------------------------- */

/* Numbers in all messages, and the entries of a sweep. Where all variables have as many labels nobody asks which these
 * are: in sparse models they lie far apart. */
static int64_t measure(const fgi_model *m, int64_t *entries) {
    const fgi_structure *s = m->s;
    const int32_t most = s->max_card;
    int64_t n_messages = 0, sum = 0;
    if (s->min_card == most) {
        for (int64_t f = 0; f < s->n_factors; f++) {
            const int32_t t = s->factor_table[f];
            const fgi_view v = {.kind = s->table_kind[t],
                .rows = most,
                .cols = most,
                .reach = m->t->any_reach ? m->t->facts[t].reach : 0};
            sum += fgi_pair_work(&v);
        }
        *entries = sum;
        return s->n_factors * fgi_trws_message_size(most, most);
    }
    for (int64_t f = 0; f < s->n_factors; f++) {
        const fgi_view v = fgi_factor_view(m, f);
        n_messages += fgi_trws_message_size(v.rows, v.cols);
        sum += fgi_pair_work(&v);
    }
    *entries = sum;
    return n_messages;
}

static fgi_rc trws_create(fgi_solver *solver, fgi_error *err) {
    const fgi_structure *s = solver->model->s;
    if (s->max_arity > 2) { /* the same method for any arity */
        solver->ops = &fgi_srmp_ops;
        return solver->ops->create(solver, err);
    }
    trws *self = fgi_calloc(1, sizeof *self);
    solver->state = self;
    if (!self) return fgi_no_memory(err);
    self->k = fgi_kernels_get();
    self->visit_few = fgi_trws_few(self->k);
    const int64_t n_messages = measure(solver->model, &self->entries);
    self->edges = fgi_take(&self->arena, s->n_factors, edge);
    self->later_begin = fgi_take_zero(&self->arena, s->n_vars + 1, int64_t);
    self->earlier_begin = fgi_take_zero(&self->arena, s->n_vars + 1, int64_t);
    self->earlier = fgi_take(&self->arena, s->n_factors, int32_t);
    self->messages = fgi_take_zero(&self->arena, n_messages, double);
    self->n_messages = n_messages;
    self->hat = fgi_take(&self->arena, s->max_card, double);
    self->h = fgi_take(&self->arena, s->max_card, double);
    self->given = fgi_take(&self->arena, s->max_card, double);
    self->scratch = fgi_take(&self->arena, 2 * (int64_t)s->max_card + 1, double);
    self->list_rows = fgi_take(&self->arena, (int64_t)s->max_card + 1, int32_t);
    self->left_out = fgi_take_zero(&self->arena, 1, int64_t);
    self->labels = fgi_take_zero(&self->arena, s->n_vars, int32_t);
    self->few = fgi_take_zero(&self->arena, s->n_vars, uint8_t);
    fgi_trws_build_bands(s, self);
    if (self->arena.failed || !fgi_trws_take_for_building(s, self) ||
        (solver->pool && !fgi_trws_team_create(solver, self)))
        return fgi_no_memory(err);
    fgi_prefer_large_pages(self->edges, s->n_factors * (int64_t)sizeof *self->edges);
    fgi_prefer_large_pages(self->messages, n_messages * (int64_t)sizeof *self->messages);
    fgi_progress_init(&self->progress);
    self->single_bound = INFINITY;
    const int wants = wants_single(solver->model, self, solver->settings.precision);
    self->single_begin = !wants ? -1 : solver->settings.precision == 2 ? 0 : SINGLE_BEGIN;
    solver->info.memory = self->arena.bytes + (wants ? (int64_t)sizeof(float) * s->values_begin[s->n_tables] : 0);
    return FGI_OK;
}

static void trws_destroy(fgi_solver *solver) {
    trws *self = solver->state;
    fgi_trws_team_free(self->team); /* first: one of its threads may be reading what follows */
    fgi_first_free(self->first);
    fgi_trws_end_building(self);
    fgi_trws_shared_free(self);
    end_single(self);
    fgi_arena_free(&self->arena);
    free(self);
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
