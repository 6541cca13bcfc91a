/* dual/trws_build.c - the edges of TRW-S, laid out in the order of the sweeps; see dual/trws.c. */
#include "dual/trws_state.h"

typedef fgi_trws_edge edge;
typedef fgi_trws trws;

static int32_t other_end(const fgi_structure *st, int32_t factor, int32_t var) {
    const int32_t *vars = fgi_factor_vars(st, factor);
    return vars[0] == var ? vars[1] : vars[0];
}

/* Numbers of earlier and later edges of each node. */
int fgi_trws_count_edges(const fgi_model *m, trws *s) {
    const fgi_structure *st = m->s;
    for (; s->node < st->n_vars; s->node++) {
        int64_t i = s->node, later = 0, unlike = 0, degree = st->adj_begin[i + 1] - st->adj_begin[i];
        if (fgi_trws_out_of_time(s, degree)) return 0;
        for (int64_t k = st->adj_begin[i]; k < st->adj_begin[i + 1]; k++) {
            const int32_t j = other_end(st, st->adj[k], (int32_t)i);
            later += j > i;
            unlike += st->cards[j] != st->cards[i];
        }
        const int few =
            s->visit_few && st->cards[i] > 1 && st->cards[i] <= FGI_FEW && degree <= FGI_TRWS_FEW_DEGREE && !unlike;
        s->few[i] = few ? (uint8_t)st->cards[i] : 0;
        s->later_begin[i + 1] = s->later_begin[i] + later;
        s->earlier_begin[i + 1] = s->earlier_begin[i] + (degree - later);
    }
    s->node = 0;
    s->stage = BUILD;
    return 1;
}

static void build_edge(const fgi_model *m, trws *s, int64_t at, int32_t factor, int64_t message) {
    const fgi_structure *st = m->s;
    const int32_t *vars = fgi_factor_vars(st, factor), table = st->factor_table[factor];
    edge *e = &s->edges[at];
    e->factor = factor;
    e->lo = vars[0] < vars[1] ? vars[0] : vars[1];
    e->hi = vars[0] < vars[1] ? vars[1] : vars[0];
    e->form = FGI_TRWS_DENSE;
    e->values = m->t->values + st->values_begin[table];
    if (st->table_kind[table] != FGI_DENSE) {
        e->values = fgi_trws_band(s, table);
        const int friendly = st->table_kind[table] == FGI_POTTS && e->values[0] >= e->values[1];
        e->form = friendly ? FGI_TRWS_POTTS : FGI_TRWS_IMPLICIT;
    }
    int32_t row_var = vars[st->factor_transposed && st->factor_transposed[factor] ? 1 : 0];
    e->lo_rows = row_var == e->lo;
    e->to_hi = 0;
    e->message = message;
    s->earlier[s->earlier_begin[e->hi]++] = (int32_t)at; /* put right at the end of the stage */
}

int fgi_trws_build_edges(const fgi_model *m, trws *s) {
    const fgi_structure *st = m->s;
    for (; s->node < st->n_vars; s->node++) {
        int64_t i = s->node, at = s->later_begin[i];
        if (fgi_trws_out_of_time(s, 8 * (st->adj_begin[i + 1] - st->adj_begin[i]))) return 0;
        int64_t message = 0;
        if (at > 0) {
            const edge *last = &s->edges[at - 1];
            message = last->message + fgi_trws_message_size(st->cards[last->lo], st->cards[last->hi]);
        }
        for (int64_t k = st->adj_begin[i]; k < st->adj_begin[i + 1]; k++) {
            int32_t j = other_end(st, st->adj[k], (int32_t)i);
            if (j < i) continue;
            build_edge(m, s, at++, st->adj[k], message);
            message += fgi_trws_message_size(st->cards[i], st->cards[j]);
        }
    }
    for (int64_t i = st->n_vars; i > 0; i--) s->earlier_begin[i] = s->earlier_begin[i - 1];
    s->earlier_begin[0] = 0;
    s->look_ahead = fgi_trws_needs_look_ahead(st, s);
    s->progress.model_magnitude = fgi_dual_magnitude(m);
    return 1;
}
