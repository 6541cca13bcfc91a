/* dual/trws_few.c - the sweeps of TRW-S at nodes with 2 to 8 labels whose neighbours have as many: the grids of
 * computer vision.
 *
 * There a message is a handful of numbers, and the general code of dual/trws.c spends its time on calls, loops and
 * look-ups around them. Here the number of labels K is a constant of the compiled code, a vector over the labels is one
 * or two AVX2 registers from its first sum to its last, and an edge costs no call. Every sum is made in the order of
 * dual/trws.c and a maximum has no order, so the results are the same bits; tests/c/test_message_passing.c holds the
 * two against each other.
 *
 * Registers have four lanes. With 3, 5, 6 or 7 labels those beyond K hold -INFINITY (or anything, in a message: they
 * meet the -INFINITY of the node first); with 2 they are never looked at. */
#include "dual/trws_state.h"
#include "base/util.h"

/* ---- set-up -------------------------------------------------------------------------------------------------- */

void fgi_trws_build_bands(const fgi_structure *s, fgi_trws *self) {
    for (int64_t t = 0; t < s->n_tables; t++) self->n_bands += s->table_kind[t] != FGI_DENSE;
    if (self->n_bands == 0) return;
    self->bands = fgi_take_zero(&self->arena, FGI_TRWS_BAND * self->n_bands, double);
    self->band_of = fgi_take(&self->arena, s->n_tables, int32_t);
    if (self->arena.failed) return;
    int32_t at = 0;
    for (int64_t t = 0; t < s->n_tables; t++) {
        if (s->table_kind[t] == FGI_DENSE) continue;
        const double p0 = s->params[2 * t], p1 = s->params[2 * t + 1];
        self->band_of[t] = at++;
        double *band = fgi_trws_band(self, t);
        for (int32_t b = 0; b < FGI_FEW; b++) band[b] = band[-b] = fgi_implicit_at(s->table_kind[t], p0, p1, 0, b);
    }
}

/* On a grid the edges of one node lie next to those of the node before, on a random graph hardly ever; and tables of
 * several cache lines each are read in jumps on a grid, too. */
int fgi_trws_needs_look_ahead(const fgi_structure *s, const fgi_trws *self) {
    enum {
        NEAR = 64,      /* edges apart: within what was read just now */
        CACHE = 1 << 20 /* bytes of a second-level cache */
    };
    const int64_t table_bytes = 8 * s->values_begin[s->n_tables];
    int64_t jumps = 0, last = 0;
    if (table_bytes > CACHE && s->max_card > 4) return 1;
    for (int64_t i = 0; i < s->n_vars; i++) {
        if (self->earlier_begin[i] == self->earlier_begin[i + 1]) continue;
        const int64_t first = self->earlier[self->earlier_begin[i]];
        jumps += first - last > NEAR || last - first > NEAR;
        last = first;
    }
    return jumps > s->n_vars / 4 && table_bytes + s->n_factors * (int64_t)(sizeof(fgi_trws_edge) + 8 * FGI_FEW) > CACHE;
}

#if defined(__x86_64__) && defined(__GNUC__)
#include <float.h>
#include <immintrin.h>

#define AVX2 __attribute__((target("avx2")))
/* With sanitizers a copy for every K takes a minute to compile; to gcov every branch of every copy would be one. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(FGI_ONE_COPY)
#define INLINE_AVX2 AVX2 static
#else
#define INLINE_AVX2 static inline __attribute__((always_inline, target("avx2")))
#endif

enum { AHEAD = 2 }; /* nodes whose data are asked for before their turn: about as long as memory takes */
typedef __m256d v4d;
typedef struct vec {
    v4d part[2];
} vec; /* one number per label; the second part only with more than 4 of them */

#define EACH_PART(p) for (int p = 0; p < (K + 3) / 4; p++)

/* ---- vectors over K labels ----------------------------------------------------------------------------------- */

/* The first n of four numbers, never reading beyond them; the rest is 0. */
INLINE_AVX2 v4d load_first(const double *x, int n) {
    if (n >= 4) return _mm256_loadu_pd(x);
    if (n == 3) return _mm256_insertf128_pd(_mm256_castpd128_pd256(_mm_loadu_pd(x)), _mm_load_sd(x + 2), 1);
    return _mm256_zextpd128_pd256(n == 2 ? _mm_loadu_pd(x) : _mm_load_sd(x));
}

INLINE_AVX2 __m128 load_first_f32(const float *x, int n) {
    if (n >= 4) return _mm_loadu_ps(x);
    if (n == 1) return _mm_load_ss(x);
    const __m128 two = _mm_castsi128_ps(_mm_loadl_epi64((const __m128i_u *)(const void *)x));
    return n == 2 ? two : _mm_movelh_ps(two, _mm_load_ss(x + 2));
}

INLINE_AVX2 vec load(const double *x, const int K) {
    vec v;
    EACH_PART(p) v.part[p] = load_first(x + 4 * p, K - 4 * p);
    return v;
}

INLINE_AVX2 vec load_message(const double *x, const int K) { return load(x, K == 2 ? 2 : (K + 3) / 4 * 4); }

INLINE_AVX2 void store_message(double *x, vec v, const int K) {
    if (K == 2) _mm_storeu_pd(x, _mm256_castpd256_pd128(v.part[0]));
    else EACH_PART(p) _mm256_storeu_pd(x + 4 * p, v.part[p]);
}

INLINE_AVX2 vec spread(double x, const int K) {
    vec v;
    EACH_PART(p) v.part[p] = _mm256_set1_pd(x);
    return v;
}

INLINE_AVX2 vec add(vec a, vec b, const int K) {
    EACH_PART(p) a.part[p] = _mm256_add_pd(a.part[p], b.part[p]);
    return a;
}

INLINE_AVX2 vec subtract(vec a, v4d b, const int K) {
    EACH_PART(p) a.part[p] = _mm256_sub_pd(a.part[p], b);
    return a;
}

/* -INFINITY in the lanes beyond K. */
INLINE_AVX2 vec close_lanes(vec v, const int K) {
    const v4d forbidden = _mm256_set1_pd(-INFINITY);
    v4d *last = &v.part[(K - 1) / 4];
    if (K == 2) return v;
    switch (K % 4) {
    case 1: *last = _mm256_blend_pd(*last, forbidden, 14); break;
    case 2: *last = _mm256_blend_pd(*last, forbidden, 12); break;
    case 3: *last = _mm256_blend_pd(*last, forbidden, 8); break;
    default: break;
    }
    return v;
}

/* The maximum, in every lane (with two labels: in the first two). */
INLINE_AVX2 v4d top_of(vec v, const int K) {
    v4d m = K > 4 ? _mm256_max_pd(v.part[0], v.part[1]) : v.part[0];
    if (K > 2) m = _mm256_max_pd(m, _mm256_permute2f128_pd(m, m, 1));
    return _mm256_max_pd(m, _mm256_permute_pd(m, 5));
}

/* The lowest label whose value is the maximum. */
INLINE_AVX2 int32_t argmax_of(vec v, const int K) {
    const v4d top = top_of(v, K);
    int at = _mm256_movemask_pd(_mm256_cmp_pd(v.part[0], top, _CMP_EQ_OQ));
    if (K > 4) at |= _mm256_movemask_pd(_mm256_cmp_pd(v.part[1], top, _CMP_EQ_OQ)) << 4;
    return __builtin_ctz((unsigned)at);
}

/* The maxima of four registers, as one. */
INLINE_AVX2 v4d tops_of_four(v4d a, v4d b, v4d c, v4d d) {
    const v4d ab = _mm256_max_pd(_mm256_unpacklo_pd(a, b), _mm256_unpackhi_pd(a, b));
    const v4d cd = _mm256_max_pd(_mm256_unpacklo_pd(c, d), _mm256_unpackhi_pd(c, d));
    return _mm256_max_pd(_mm256_permute2f128_pd(ab, cd, 0x20), _mm256_permute2f128_pd(ab, cd, 0x31));
}

/* ---- products ------------------------------------------------------------------------------------------------ */

/* What a product reads: row r of the table, in either precision, begins at r * stride. */
typedef struct table {
    const double *t;
    const float *t_f32;
    int64_t stride;
    double w;
} table;

/* w * t + h for the labels of part p of row r. With single precision in single precision: a maximum does not mind
 * whether it is taken before or after the result is made a double again. */
INLINE_AVX2 v4d term(const table *t, int single, int weighted, int r, int p, v4d h, const int K) {
    const int64_t at = r * t->stride + 4 * p;
    if (single) {
        const __m128 row = load_first_f32(t->t_f32 + at, K - 4 * p);
        return _mm256_cvtps_pd(
            _mm_add_ps(weighted ? _mm_mul_ps(_mm_set1_ps((float)t->w), row) : row, _mm256_cvtpd_ps(h)));
    }
    const v4d row = load_first(t->t + at, K - 4 * p);
    return _mm256_add_pd(weighted ? _mm256_mul_pd(_mm256_set1_pd(t->w), row) : row, h);
}

/* out[b] = max over a of  w * t[a][b] + h[a]. */
INLINE_AVX2 vec product_rows(const table *t, int single, int weighted, vec h, const int K) {
    double scores[8];
    EACH_PART(p) _mm256_storeu_pd(scores + 4 * p, h.part[p]);
    vec out;
    for (int a = 0; a < K; a++) {
        const v4d score = _mm256_set1_pd(scores[a]);
        EACH_PART(p) {
            const v4d x = term(t, single, weighted, a, p, score, K);
            out.part[p] = a ? _mm256_max_pd(out.part[p], x) : x;
        }
    }
    return close_lanes(out, K);
}

/* out[b] = max over a of  w * t[b][a] + h[a]. */
INLINE_AVX2 vec product_cols(const table *t, int single, int weighted, vec h, const int K) {
    v4d rows[8];
    for (int b = 0; b < 8; b++) {
        rows[b] = _mm256_set1_pd(-INFINITY);
        if (b >= K) continue;
        EACH_PART(p) {
            const v4d x = term(t, single, weighted, b, p, h.part[p], K);
            rows[b] = p ? _mm256_max_pd(rows[b], x) : x;
        }
    }
    vec out;
    EACH_PART(p) out.part[p] = tops_of_four(rows[4 * p], rows[4 * p + 1], rows[4 * p + 2], rows[4 * p + 3]);
    return out;
}

/* Two labels: the whole table is one register, turned round without a branch (half of which would be mispredicted where
 * files list the variables of a factor in any order). */
INLINE_AVX2 vec product_binary(const double *t, double w, int by_rows, vec h) {
    static const int32_t turn[2][8] = {
        {0, 1, 4, 5, 2, 3, 6, 7}, {0, 1, 2, 3, 4, 5, 6, 7}}; /* halves of the four doubles */
    const __m256i to = _mm256_loadu_si256((const __m256i *)(const void *)turn[by_rows]);
    const v4d rows = _mm256_castps_pd(_mm256_permutevar8x32_ps(_mm256_castpd_ps(_mm256_loadu_pd(t)), to));
    const v4d scores = _mm256_permute4x64_pd(h.part[0], 0x50); /* h0 h0 h1 h1 */
    const v4d x = _mm256_add_pd(_mm256_mul_pd(_mm256_set1_pd(w), rows), scores);
    return (vec){{_mm256_max_pd(x, _mm256_permute2f128_pd(x, x, 1))}};
}

INLINE_AVX2 vec product_potts(double same, double different, vec h, const int K) {
    const v4d other = _mm256_add_pd(top_of(h, K), _mm256_set1_pd(different));
    EACH_PART(p) h.part[p] = _mm256_max_pd(_mm256_add_pd(h.part[p], _mm256_set1_pd(same)), other);
    return h;
}

/* What a sweep needs of model and state, in registers: behind pointers it would be read again after every store. */
typedef struct sweep {
    fgi_trws_edge *edges;
    const int64_t *later_begin, *earlier_begin, *unary_begin;
    const int32_t *earlier;
    const double *unary, *weights; /* weights are not looked at where a sweep is not weighted */
    const double *values;          /* all tables, and in single precision; NULL: in double */
    const float *rounded;
    double weight_unit, score_unit; /* units of what is in single precision */
    double *messages;
    int32_t *labels;
    double *record, *decoded; /* see fgi_trws */
} sweep;

INLINE_AVX2 vec times(vec v, double x, const int K) {
    EACH_PART(p) v.part[p] = _mm256_mul_pd(v.part[p], _mm256_set1_pd(x));
    return v;
}

INLINE_AVX2 vec product(const sweep *few, const fgi_trws_edge *e, int to_hi, vec h, const int weighted, const int K) {
    const double w = weighted ? few->weights[e->factor] : 1;
    const int by_rows = e->lo_rows == to_hi;
    table t = {.t = e->values, .stride = K, .w = w};
    if (e->form != FGI_TRWS_DENSE) {
        if (e->form == FGI_TRWS_POTTS) return product_potts(w * e->values[0], w * e->values[1], h, K);
        t.stride = -1;
        return product_rows(&t, 0, weighted, h, K);
    }
    if (K == 2) return product_binary(e->values, w, by_rows, h);
    if (few->rounded) {
        t.t_f32 = few->rounded + (e->values - few->values);
        t.w *= few->weight_unit;
        h = times(h, 1 / few->score_unit, K);
        h = by_rows ? product_rows(&t, 1, weighted, h, K) : product_cols(&t, 1, weighted, h, K);
        return times(h, few->score_unit, K);
    }
    return by_rows ? product_rows(&t, 0, weighted, h, K) : product_cols(&t, 0, weighted, h, K);
}

/* ---- one node ------------------------------------------------------------------------------------------------ */

/* x plus the scores of edge e at the label its earlier end has been given. */
INLINE_AVX2 vec add_slice(const sweep *few, const fgi_trws_edge *e, vec x, const int weighted, const int K) {
    const int64_t label = few->labels[e->lo];
    vec slice;
    if (e->form != FGI_TRWS_DENSE) {
        slice = load(e->values - label, K);
    } else if (K == 2) { /* without a branch, as in product_binary() */
        const double *t = e->values + (label << e->lo_rows);
        slice.part[0] = _mm256_castpd128_pd256(_mm_loadh_pd(_mm_load_sd(t), t + 2 - e->lo_rows));
    } else if (e->lo_rows) {
        slice = load(e->values + label * K, K);
    } else {
        double column[8] = {0};
        for (int b = 0; b < K; b++) column[b] = e->values[b * K + label];
        slice = load_message(column, K);
    }
    if (weighted) EACH_PART(p) slice.part[p] = _mm256_mul_pd(_mm256_set1_pd(few->weights[e->factor]), slice.part[p]);
    return add(x, slice, K);
}

/* The messages of node i over these edges, from its share `hat` of all that it was told. Returns 0 if one is -INFINITY
 * everywhere, else `tops` is the sum of the maxima that were taken off. */
INLINE_AVX2 int send(const sweep *few, fgi_trws_edge *later, const int32_t *earlier, int64_t n, const vec hat,
    const int forward, const int weighted, const int K, double *tops) {
    for (int64_t k = 0; k < n; k++) {
        fgi_trws_edge *e = forward ? &later[k] : &few->edges[earlier[k]];
        double *message = few->messages + e->message;
        vec h = load_message(message, K);
        /* Where a message is -INFINITY, hat is, too, and so must be the difference: any finite number will do there. */
        EACH_PART(p) h.part[p] = _mm256_sub_pd(hat.part[p], _mm256_max_pd(h.part[p], _mm256_set1_pd(-DBL_MAX)));
        const vec out = product(few, e, forward, h, weighted, K);
        const v4d top = top_of(out, K);
        e->to_hi = (uint8_t)forward;
        if (_mm256_cvtsd_f64(top) == -INFINITY) return 0;
        store_message(message, subtract(out, top, K), K);
        *tops += _mm256_cvtsd_f64(top);
    }
    return 1;
}

/* All that happens at node i in one sweep. Returns 0 if a maximum is -INFINITY. */
INLINE_AVX2 int visit(
    const sweep *few, fgi_progress *progress, int32_t i, const int forward, const int weighted, const int K) {
    fgi_trws_edge *const later_edges = few->edges + few->later_begin[i],
                         *const later_end = few->edges + few->later_begin[i + 1];
    const int32_t *const earlier_edges = few->earlier + few->earlier_begin[i],
                         *const earlier_end = few->earlier + few->earlier_begin[i + 1];
    const vec theta = close_lanes(load(few->unary + few->unary_begin[i], K), K);
    vec later = spread(0, K), given = theta;
    for (const fgi_trws_edge *e = later_edges; e < later_end; e++)
        later = add(later, load_message(few->messages + e->message, K), K);
    /* With two labels dual/trws.c sums in another order: the earlier messages by themselves. */
    vec hat = add(later, theta, K), earlier = spread(0, K);
    for (const int32_t *k = earlier_edges; k < earlier_end; k++) {
        const fgi_trws_edge *e = &few->edges[*k];
        const vec message = load_message(few->messages + e->message, K);
        if (K == 2) earlier = add(earlier, message, K);
        else hat = add(hat, message, K);
        if (forward) given = add_slice(few, e, given, weighted, K);
    }
    if (K == 2) hat = add(hat, earlier, K);
    if (forward) { /* decode: the best label given those of earlier nodes and the messages from later ones */
        const int32_t best = argmax_of(add(given, later, K), K);
        double scores[8];
        EACH_PART(p) _mm256_storeu_pd(scores + 4 * p, given.part[p]);
        few->labels[i] = best;
        if (few->decoded) few->decoded[i] = scores[best];
        else fgi_sum_add(&progress->decoded, scores[best]);
    }
    const v4d top = top_of(hat, K);
    double tops = _mm256_cvtsd_f64(top);
    if (tops == -INFINITY || !forward) /* a bound uses nothing else of the forward sweep */
        fgi_trws_take(progress, few->record, i, 0, tops);
    if (tops == -INFINITY) return 0;
    hat = subtract(hat, top, K);
    const int64_t n_later = later_end - later_edges, n_earlier = earlier_end - earlier_edges;
    const v4d weight = _mm256_set1_pd(1.0 / (double)(n_later > n_earlier ? n_later : n_earlier));
    EACH_PART(p) hat.part[p] = _mm256_mul_pd(weight, hat.part[p]);
    tops = 0;
    const int64_t n_sent = forward ? n_later : n_earlier;
    if (!send(few, later_edges, earlier_edges, n_sent, hat, forward, weighted, K, &tops)) {
        fgi_progress_take(progress, -INFINITY);
        return 0;
    }
    if (!forward) fgi_trws_take(progress, few->record, i, 1, tops);
    return 1;
}

/* Asks early for what node i will read (see fgi_trws.look_ahead): its edges, and some nodes later what they point to.
 * Those to later nodes, which lie one after the other, the hardware foresees, unless nodes come in the order of a list.
 */
INLINE_AVX2 void ask_for_edges(const sweep *few, int64_t i, int listed) {
    if (listed) {
        __builtin_prefetch(&few->edges[few->later_begin[i]]);
        __builtin_prefetch((const char *)&few->edges[few->later_begin[i + 1]] - 1);
        __builtin_prefetch(few->unary + few->unary_begin[i]);
    }
    for (int64_t k = few->earlier_begin[i]; k < few->earlier_begin[i + 1]; k++)
        __builtin_prefetch(&few->edges[few->earlier[k]]);
}

INLINE_AVX2 void ask_for_table(const sweep *few, const fgi_trws_edge *e, const int K) {
    if (e->form != FGI_TRWS_DENSE) return;
    const char *t = few->rounded ? (const char *)(few->rounded + (e->values - few->values)) : (const char *)e->values;
    for (int at = 0; at < K * K * (few->rounded ? 4 : 8); at += 64) __builtin_prefetch(t + at);
}

INLINE_AVX2 void ask_for_contents(const sweep *few, int64_t i, int listed, const int forward, const int K) {
    if (listed && few->later_begin[i] < few->later_begin[i + 1]) {
        const char *first = (const char *)(few->messages + few->edges[few->later_begin[i]].message),
                   *last = (const char *)(few->messages + few->edges[few->later_begin[i + 1] - 1].message + K) - 1;
        for (const char *at = first; at < last; at += 64) __builtin_prefetch(at);
        __builtin_prefetch(last);
    }
    for (int64_t k = few->earlier_begin[i]; k < few->earlier_begin[i + 1]; k++) {
        const fgi_trws_edge *e = &few->edges[few->earlier[k]];
        __builtin_prefetch(few->messages + e->message);
        if (!forward) ask_for_table(few, e, K);
    }
    for (int64_t k = few->later_begin[i]; forward && k < few->later_begin[i + 1]; k++)
        ask_for_table(few, &few->edges[k], K);
}

/* A task of one of several threads begins far from where the one before has ended, and its first visits take several
 * times as long (decision 0016). So the last visits of a task ask for what the next one begins with, a node each: first
 * where its edges are, then what they point to. */
INLINE_AVX2 void ask_for_next(const fgi_model *m, const fgi_trws *state, const sweep *few, int64_t left,
    const int forward, const int weighted, const int K) {
    const int64_t cold = state->cold, ahead = state->then + (left > cold ? 2 : 1) * cold - left;
    if (ahead >= m->s->n_vars) return;
    const int32_t i = fgi_trws_node(m, state, ahead);
    if (left > cold) {
        ask_for_edges(few, i, 1);
        return;
    }
    ask_for_contents(few, i, 1, forward, K);
    if (few->record) __builtin_prefetch(forward ? few->decoded + i : few->record + 2 * i, 1);
    for (int64_t k = few->later_begin[i]; weighted && forward && k < few->later_begin[i + 1]; k++)
        __builtin_prefetch(&few->weights[few->edges[k].factor]);
    for (int64_t k = few->earlier_begin[i]; weighted && k < few->earlier_begin[i + 1]; k++)
        __builtin_prefetch(&few->weights[few->edges[few->earlier[k]].factor]);
}

/* ---- sweeps -------------------------------------------------------------------------------------------------- */

INLINE_AVX2 int visits(const fgi_model *m, fgi_trws *state, const int forward, const int weighted, const int K) {
    const sweep few = {.edges = state->edges,
        .later_begin = state->later_begin,
        .earlier_begin = state->earlier_begin,
        .unary_begin = m->s->unary_begin,
        .earlier = state->earlier,
        .unary = m->u->values,
        .weights = m->s->factor_weight,
        .values = m->t->values,
        .rounded = state->single ? state->rounded : NULL,
        .weight_unit = state->weight_unit,
        .score_unit = state->score_unit,
        .messages = state->messages,
        .labels = state->labels,
        .record = state->record,
        .decoded = state->decoded};
    const int look_ahead = state->look_ahead, listed = state->list != NULL;
    const int64_t n = state->end;
    int64_t node = state->node, work = state->meter.spent;
    int possible = 1;
    for (; node < n && work < state->meter.every; node++) {
        const int64_t i = fgi_trws_node(m, state, node);
        if (state->few[i] != K) break;
        if (look_ahead && node + 2 * AHEAD < m->s->n_vars) { /* what comes after the end may be ours, too */
            ask_for_edges(&few, fgi_trws_node(m, state, node + 2 * AHEAD), listed);
            ask_for_contents(&few, fgi_trws_node(m, state, node + AHEAD), listed, forward, K);
        }
        if (n - node <= 2 * state->cold) ask_for_next(m, state, &few, n - node, forward, weighted, K);
        fgi_trws_enter(state, i);
        possible = visit(&few, &state->progress, (int32_t)i, forward, weighted, K);
        if (!possible) break;
        const int64_t n_edges =
            few.later_begin[i + 1] - few.later_begin[i] + few.earlier_begin[i + 1] - few.earlier_begin[i];
        work += n_edges * (K * K / 2 + 2 * FGI_LINK_WORK);
    }
    state->node = node;
    state->meter.spent = work;
    return possible;
}

#define DEFINE_VISITS(K)                                                            \
    AVX2 static int forward_##K(const fgi_model *m, fgi_trws *s) {                  \
        return m->s->factor_weight ? visits(m, s, 1, 1, K) : visits(m, s, 1, 0, K); \
    }                                                                               \
    AVX2 static int backward_##K(const fgi_model *m, fgi_trws *s) {                 \
        return m->s->factor_weight ? visits(m, s, 0, 1, K) : visits(m, s, 0, 0, K); \
    }
DEFINE_VISITS(2)
DEFINE_VISITS(3)
DEFINE_VISITS(4)
DEFINE_VISITS(5)
DEFINE_VISITS(6)
DEFINE_VISITS(7)
DEFINE_VISITS(8)

static int visit_few(const fgi_model *m, fgi_trws *self) {
    static fgi_trws_few_visits *const passes[2][FGI_FEW + 1] = {
        {NULL, NULL, backward_2, backward_3, backward_4, backward_5, backward_6, backward_7, backward_8},
        {NULL, NULL, forward_2, forward_3, forward_4, forward_5, forward_6, forward_7, forward_8}};
    const int forward = self->stage == FORWARD;
    return passes[forward][self->few[fgi_trws_node(m, self, self->node)]](m, self);
}

fgi_trws_few_visits *fgi_trws_few(const fgi_kernels *k) { return k == &fgi_kernels_scalar ? NULL : visit_few; }
#else
fgi_trws_few_visits *fgi_trws_few(const fgi_kernels *k) {
    (void)k;
    return NULL;
}
#endif
