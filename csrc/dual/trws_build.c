/* dual/trws_build.c - the edges of TRW-S, laid out in the order of the sweeps; see dual/trws.c.
 *
 * Nodes are taken in blocks of about the same number of edges, by all threads, and the clock is looked at between some
 * blocks and the next. What is made does not depend on who makes which block. */
#include "base/pool.h"
#include "dual/trws_team.h"

enum {
    BLOCK_ENDS = 1 << 13, /* ends of edges in a block: a tenth of a millisecond or so */
    BLOCKS_A_THREAD = 16, /* between two looks at the clock */
    FACTORS_AHEAD = 16    /* whose data are asked for before their turn: in a random graph they are anywhere */
};

typedef fgi_trws_edge edge;
typedef fgi_trws trws;

typedef struct context {
    const fgi_model *m;
    trws *s;
} context;

#if defined(__GNUC__)
#define PREFETCH(p) __builtin_prefetch(p)
#else
#define PREFETCH(p) ((void)(p))
#endif

static int32_t other_end(const fgi_structure *s, int32_t factor, int32_t var) {
    fgi_assert(factor >= 0 && factor < s->n_factors);
    const int32_t *vars = fgi_factor_vars(s, factor);
    return vars[0] ^ vars[1] ^ var; /* a branch would be mispredicted half of the time */
}

/* ---- blocks -------------------------------------------------------------------------------------------------- */

static int64_t n_blocks(const fgi_structure *s) { return s->adj_begin[s->n_vars] / BLOCK_ENDS + 1; }

/* The first node of a block: that with the first end, of which every block but the last has as many. */
static int64_t first_node(const fgi_structure *s, int64_t block) {
    int64_t low = 0, high = s->n_vars;
    if (block == n_blocks(s)) return high;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (s->adj_begin[middle] < block * BLOCK_ENDS) low = middle + 1;
        else high = middle;
    }
    return low;
}

/* Some blocks more, by all threads; self->node is the next. Returns 1 when all are done, 0 when the time is over. */
static int do_blocks(const fgi_model *m, trws *self, fgi_body body, void (*then)(context *, int64_t, int64_t)) {
    fgi_pool *pool = self->team ? self->team->team.pool : NULL;
    const int64_t n = n_blocks(m->s), some = BLOCKS_A_THREAD * (int64_t)fgi_pool_threads(pool);
    context c = {m, self};
    while (self->node < n) {
        const int64_t count = n - self->node < some ? n - self->node : some;
        fgi_pool_run(pool, count, 1, body, &c);
        if (then) then(&c, first_node(m->s, self->node), first_node(m->s, self->node + count));
        self->node += count;
        if (fgi_meter_over(&self->meter)) return 0;
    }
    return 1;
}

/* ---- numbers of earlier and later edges of each node ----------------------------------------------------------- */

static void count_block(const fgi_model *m, trws *self, int64_t block) {
    const fgi_structure *s = m->s;
    const int64_t end = first_node(s, block + 1), last = s->adj_begin[end];
    int64_t messages = 0;
    for (int64_t i = first_node(s, block); i < end; i++) {
        int64_t later = 0, unlike = 0, degree = s->adj_begin[i + 1] - s->adj_begin[i];
        for (int64_t k = s->adj_begin[i]; k < s->adj_begin[i + 1]; k++) {
            if (k + FACTORS_AHEAD < last) PREFETCH(fgi_factor_vars(s, s->adj[k + FACTORS_AHEAD]));
            const int32_t j = other_end(s, s->adj[k], (int32_t)i);
            const int64_t is_later = j > i;
            unlike += s->cards[j] != s->cards[i];
            later += is_later;
            messages += is_later * fgi_trws_message_size(s->cards[i], s->cards[j]);
        }
        const int few =
            self->visit_few && s->cards[i] > 1 && s->cards[i] <= FGI_FEW && degree <= FGI_TRWS_FEW_DEGREE && !unlike;
        self->few[i] = few ? (uint8_t)s->cards[i] : 0;
        self->later_begin[i + 1] = later;
        self->earlier_begin[i + 1] = degree - later;
    }
    self->block_message[block + 1] = messages;
}

static void count_blocks(void *of, int64_t begin, int64_t end, int worker) {
    const context *c = of;
    (void)worker;
    for (int64_t k = begin; k < end; k++) count_block(c->m, c->s, c->s->node + k);
}

static void add_counts(context *c, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
        c->s->later_begin[i + 1] += c->s->later_begin[i];
        c->s->earlier_begin[i + 1] += c->s->earlier_begin[i];
    }
}

int fgi_trws_count_edges(const fgi_model *m, trws *self) {
    if (!do_blocks(m, self, count_blocks, add_counts)) return 0;
    for (int64_t k = 0; k < n_blocks(m->s); k++) self->block_message[k + 1] += self->block_message[k];
    self->node = 0;
    self->stage = BUILD;
    return 1;
}

int fgi_trws_take_for_building(const fgi_structure *s, trws *self) {
    self->block_message = fgi_calloc(n_blocks(s) + 1, sizeof *self->block_message);
    self->edge_of = fgi_alloc(s->n_factors, sizeof *self->edge_of);
    return self->block_message && self->edge_of;
}

void fgi_trws_end_building(trws *self) {
    free(self->block_message);
    free(self->edge_of);
    self->block_message = NULL;
    self->edge_of = NULL;
}

/* ---- edges ----------------------------------------------------------------------------------------------------- */

static void build_edge(const fgi_model *m, trws *self, int64_t at, int32_t factor, int64_t message) {
    const fgi_structure *s = m->s;
    const int32_t *vars = fgi_factor_vars(s, factor), table = s->factor_table[factor];
    edge *e = &self->edges[at];
    e->factor = factor;
    e->lo = vars[0] < vars[1] ? vars[0] : vars[1];
    e->hi = vars[0] < vars[1] ? vars[1] : vars[0];
    e->form = m->t->any_reach && m->t->facts[table].reach ? FGI_TRWS_NEAR : FGI_TRWS_DENSE;
    e->values = m->t->values + s->values_begin[table];
    if (s->table_kind[table] != FGI_DENSE) {
        e->values = fgi_trws_band(self, table);
        const int friendly = s->table_kind[table] == FGI_POTTS && e->values[0] >= e->values[1];
        e->form = friendly ? FGI_TRWS_POTTS : FGI_TRWS_IMPLICIT;
    }
    int32_t row_var = vars[s->factor_transposed && s->factor_transposed[factor] ? 1 : 0];
    e->lo_rows = row_var == e->lo;
    e->to_hi = 0;
    e->message = message;
    self->edge_of[factor] = (int32_t)at;
}

static void build_block(const fgi_model *m, trws *self, int64_t block) {
    const fgi_structure *s = m->s;
    const int64_t end = first_node(s, block + 1), last = s->adj_begin[end];
    int64_t message = self->block_message[block];
    for (int64_t i = first_node(s, block); i < end; i++) {
        int64_t at = self->later_begin[i];
        for (int64_t k = s->adj_begin[i]; k < s->adj_begin[i + 1]; k++) {
            if (k + FACTORS_AHEAD < last) {
                PREFETCH(fgi_factor_vars(s, s->adj[k + FACTORS_AHEAD]));
                PREFETCH(&s->factor_table[s->adj[k + FACTORS_AHEAD]]);
            }
            int32_t j = other_end(s, s->adj[k], (int32_t)i);
            if (j < i) continue;
            build_edge(m, self, at++, s->adj[k], message);
            message += fgi_trws_message_size(s->cards[i], s->cards[j]);
        }
    }
}

static int by_number(const void *a, const void *b) {
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

static void sort(int32_t *edges, int64_t n) {
    enum { FEW = 32 }; /* edges, which insertion sorts sooner */
    if (n > FEW) {
        qsort(edges, (size_t)n, sizeof *edges, by_number);
        return;
    }
    for (int64_t k = 1; k < n; k++) {
        const int32_t x = edges[k];
        int64_t to = k;
        for (; to > 0 && edges[to - 1] > x; to--) edges[to] = edges[to - 1];
        edges[to] = x;
    }
}

/* The edges to earlier nodes, in the order of all edges. */
static void link_block(const fgi_model *m, trws *self, int64_t block) {
    const fgi_structure *s = m->s;
    const int64_t end = first_node(s, block + 1), last = s->adj_begin[end];
    for (int64_t i = first_node(s, block); i < end; i++) {
        int32_t *earlier = self->earlier + self->earlier_begin[i];
        const int64_t n_earlier = self->earlier_begin[i + 1] - self->earlier_begin[i];
        int64_t n = 0;
        for (int64_t k = s->adj_begin[i]; k < s->adj_begin[i + 1]; k++) {
            if (k + FACTORS_AHEAD < last) PREFETCH(&self->edge_of[s->adj[k + FACTORS_AHEAD]]);
            const int32_t at = self->edge_of[s->adj[k]];
            if (n < n_earlier) earlier[n] = at;
            n += at < self->later_begin[i];
        }
        sort(earlier, n);
    }
}

static void build_blocks(void *of, int64_t begin, int64_t end, int worker) {
    const context *c = of;
    (void)worker;
    for (int64_t k = begin; k < end; k++) build_block(c->m, c->s, c->s->node + k);
}

static void link_blocks(void *of, int64_t begin, int64_t end, int worker) {
    const context *c = of;
    (void)worker;
    for (int64_t k = begin; k < end; k++) link_block(c->m, c->s, c->s->node + k);
}

int fgi_trws_build_edges(const fgi_model *m, trws *self) {
    const fgi_structure *s = m->s;
    if (self->stage == BUILD) {
        if (!do_blocks(m, self, build_blocks, NULL)) return 0;
        self->node = 0;
        self->stage = LINK;
    }
    if (!do_blocks(m, self, link_blocks, NULL)) return 0;
    fgi_trws_end_building(self);
    self->look_ahead = fgi_trws_needs_look_ahead(s, self);
    self->progress.model_magnitude = fgi_dual_magnitude(m, self->team ? self->team->team.pool : NULL);
    return 1;
}

/* ---- units of single precision ----------------------------------------------------------------------------------- */

/* Floats hold scores in units of the largest table entry and the largest weight, as powers of two. Returns 0 where sums
 * of scores could overflow them nevertheless. */
int fgi_trws_set_units(const fgi_model *m, trws *self) {
    enum {
        LEAST = -1000, /* exponent of a unit, at least: above those of subnormal numbers */
        SAFE = 100     /* exponent of what is counted in units, at most: those of floats end at 127 */
    };
    const fgi_structure *s = m->s;
    double table = 0, sum = 0, least_weight = INFINITY;
    for (int64_t t = 0; t < s->n_tables; t++) {
        const fgi_table_facts *facts = &m->t->facts[t];
        if (s->table_kind[t] == FGI_DENSE && facts->max > -INFINITY)
            table = fgi_larger(table, fgi_larger(fabs(facts->max), fabs(facts->min_finite)));
    }
    for (int64_t k = 0; k < s->unary_begin[s->n_vars]; k++)
        if (m->u->values[k] > -INFINITY) sum += fabs(m->u->values[k]);
    for (int64_t f = 0; f < s->n_factors; f++) {
        const fgi_table_facts *facts = &m->t->facts[s->factor_table[f]];
        least_weight = fgi_smaller(least_weight, fgi_factor_weight(s, f));
        if (facts->max > -INFINITY)
            sum += fgi_factor_weight(s, f) * fgi_larger(fabs(facts->max), fabs(facts->min_finite));
    }
    /* A weight that floats round to 0 would make numbers of what is forbidden. */
    if (table == 0 || least_weight < ldexp(s->max_weight, -SAFE)) return 0;
    const int of_table = ilogb(table) > LEAST ? ilogb(table) : LEAST, of_weight = ilogb(s->max_weight);
    self->table_unit = ldexp(1, -of_table);
    self->weight_unit = ldexp(1, -of_weight);
    self->score_unit = ldexp(1, of_table + of_weight);
    return isfinite(self->weight_unit) && isfinite(self->score_unit) && self->score_unit > 0 &&
        sum < ldexp(self->score_unit, SAFE);
}
