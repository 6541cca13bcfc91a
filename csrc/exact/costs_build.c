/* exact/costs_build.c - whole-number costs from the scores of a model: see exact/costs.h.
 *
 * A cost is how far a factor's score lies below the factor's best one. Where all scores are whole multiples of a step,
 * costs are counted in it, and a bound is rounded up to the next score that can occur simply by being a whole number.
 * Elsewhere they are counted in 2^-54 of what labelings that matter may cost, always rounded down: a bound on these is
 * one on the scores. */
#include <string.h>
#include "exact/costs.h"
#include "exact/costs_pairs.h"
#include "model/lattice.h"

enum { MOST_MADE_LABELS = 2000000 };     /* labels of factors that dropped variables may leave: 24 MB */
static const double SHARE = 0.25;        /* steps may be off by this share of the tolerance */
static const double DOWN = 1 - 0x1p-50;  /* covers the roundings of a difference, a product and a quotient */
static const double ABOVE = 1 + 0x1p-20; /* covers those of a sum of up to 2^32 errors */

/* ---- what costs mean ------------------------------------------------------------------------------------------- */

double fgi_costs_score(const fgi_costs *c, int64_t cost) {
    const double high = (double)(cost >> 26) * 0x1p26, low = (double)(cost & 0x3FFFFFF); /* both exact */
    fgi_sum sum = c->origin;
    const double a = -high * c->quantum, b = -low * c->quantum, magnitude = fabs(sum.sum) + fabs(a) + fabs(b);
    int exact = fgi_sum_exactly(&sum, a) & (c->error == 0);
    exact &= fgi_sum_exactly(&sum, b);
    exact &= fgi_sum_exactly(&sum, fma(-high, c->quantum, -a));
    exact &= fgi_sum_exactly(&sum, fma(-low, c->quantum, -b));
    const double value = fgi_sum_value(&sum);
    if (exact) return value;
    /* Rounding of the value, what the sum is off by, that of these additions; then of adding the slack itself. */
    const double slack = c->error + 0x1p-52 * fabs(value) + 0x1p-100 * magnitude;
    return nextafter(value + slack * ABOVE, INFINITY);
}

int64_t fgi_costs_least(const fgi_costs *c, double score) {
    int64_t low = 0, high = FGI_COST_LARGEST;
    if (score == -INFINITY) return high;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (fgi_costs_score(c, middle) <= score) high = middle;
        else low = middle + 1;
    }
    return low;
}

/* ---- scores by factor ------------------------------------------------------------------------------------------ */

typedef struct extremes {
    double most, least; /* finite scores alone, without the weight */
} extremes;

static extremes extremes_of(const double *v, int64_t n) {
    extremes e = {-INFINITY, INFINITY};
    for (int64_t k = 0; k < n; k++) {
        if (v[k] == -INFINITY) continue;
        e.most = fgi_larger(e.most, v[k]);
        e.least = fgi_smaller(e.least, v[k]);
    }
    return e;
}

static extremes factor_extremes(const fgi_model *m, const fgi_view *v) {
    if (v->kind == FGI_DENSE) return extremes_of(v->values, fgi_view_states(m, v));
    extremes e = {-INFINITY, INFINITY};
    const int32_t most = v->rows > v->cols ? v->rows : v->cols;
    for (int32_t d = 0; d < most; d++) { /* implicit tables depend on the distance of labels alone */
        const double at = fgi_implicit_at(v->kind, v->p0, v->p1, d, 0);
        if (at == -INFINITY) continue;
        e.most = fgi_larger(e.most, at);
        e.least = fgi_smaller(e.least, at);
    }
    return e;
}

/* How far the score lies below the best one. Without their weight the two may be too far apart for a number. */
static double below(double best, double score, double weight) {
    const double difference = best - score;
    return isinf(difference) ? 2 * (weight * (0.5 * best - 0.5 * score)) : weight * difference;
}

typedef struct origin_error {
    double magnitude; /* sum of the magnitudes of all terms */
    double products;  /* scores are rounded products, costs are not: what that makes */
    int exact;        /* the sum so far */
} origin_error;

static int is_power_of_two(double weight) {
    int exponent;
    return fabs(frexp(weight, &exponent)) == 0.5;
}

/* Adds a maximum to the origin, and returns what the factor can cost; -1: it forbids everything. */
static double add_origin(fgi_costs *c, extremes e, double weight, origin_error *error) {
    if (e.most == -INFINITY) return -1;
    const double product = weight * e.most;
    error->exact &= fgi_sum_exactly(&c->origin, product);
    error->magnitude += fabs(product);
    const double largest = fgi_larger(fabs(product), fabs(weight * e.least));
    if (!is_power_of_two(weight)) error->products += 0x1p-52 * largest;
    const int subnormal = weight != 1 && largest > 0 && largest < 0x1p-960; /* these lose more than that */
    if (subnormal) error->products += 2 * 0x1p-1074;
    return below(e.most, e.least, weight);
}

/* Costs are whole multiples of this quantum. All costs, subnormal ones too, may be divided by LEAST. */
static double quantum_of(double size) {
    const double LEAST = 0x1p-960;
    return size > 0 ? fgi_larger(size * 0x1p-54, LEAST) : 1;
}

/* origin, quantum, error. */
static void choose_unit(fgi_costs *c, const fgi_model *m, double best, double tolerance) {
    const fgi_structure *s = m->s;
    double range = 0;
    origin_error error = {fabs(s->constant), 0, fgi_sum_exactly(&c->origin, s->constant)};
    for (int64_t i = 0; i < s->n_vars; i++) {
        const double cost = add_origin(c, extremes_of(fgi_unary(m, i), s->cards[i]), 1, &error);
        if (cost < 0) c->infeasible = 1;
        range += fgi_larger(cost, 0);
    }
    for (int64_t f = 0; f < s->n_factors; f++) {
        const fgi_view v = fgi_factor_view(m, f);
        const double cost = add_origin(c, factor_extremes(m, &v), v.weight, &error);
        if (cost < 0) c->infeasible = 1;
        range += fgi_larger(cost, 0);
    }
    if (!error.exact) c->error = fgi_sum_error(s->n_vars + s->n_factors + 1, error.magnitude);
    c->error += error.products;
    /* Costs are of products not rounded, scores of rounded ones: a labeling may be better and cost that much more. */
    if (best > -INFINITY)
        range = fgi_smaller(range, fgi_larger(0, fgi_sum_value(&c->origin) - best) + tolerance + 2 * c->error);
    const fgi_lattice steps = fgi_lattice_find(m);
    if (steps.step > 0 && 2 * (steps.error + c->error) <= SHARE * tolerance && range / steps.step < 0x1p50) {
        c->in_steps = 1;
        c->quantum = steps.step;
        c->error += steps.error;
    } else c->quantum = quantum_of(range > 0 ? range : error.magnitude);
    /* Labelings that differ in dropped variables alone are told apart by rounded costs: these must say enough. */
    const double rounding = c->in_steps ? 0 : c->quantum * (double)(s->n_vars + s->n_factors);
    c->may_drop = c->in_steps || rounding + 2 * c->error <= SHARE * tolerance;
}

static int64_t cost_of(const fgi_costs *c, double best, double score, double weight) {
    if (score == -INFINITY) return FGI_COST_FORBIDDEN;
    const double cost = below(best, score, weight) / c->quantum;
    if (!(cost < FGI_COST_LARGEST)) return FGI_COST_FORBIDDEN; /* no labeling that matters pays that */
    return (int64_t)(c->in_steps ? rint(cost) : floor(cost * DOWN));
}

/* ---- the network ----------------------------------------------------------------------------------------------- */

void fgi_costs_free(fgi_costs *c) {
    if (!c) return;
    void *const owned[] = {c->begin, c->unary, c->domain, c->place, c->size, c->most, c->zero, c->slot_begin,
        c->slot_var, c->slot_factor, c->slot_other, c->slot_shift, c->slot_stride, c->slot_log, c->shift, c->support,
        c->table, c->storage, c->spent, c->weight, c->load, c->adj_begin, c->adj, c->live, c->slot_place, c->meet_begin,
        c->meet, c->met, c->trail, c->unsupported.words, c->bare.words, c->dearer.words, c->directed.words,
        c->existential.words, c->decided.words, c->loose.words, c->dropped, c->cells, c->states, c->pulled, c->used,
        c->total, c->sums, c->stamp};
    for (size_t k = 0; k < sizeof owned / sizeof owned[0]; k++) free(owned[k]);
    for (int32_t k = 0; c->drops && k < c->n; k++) free(c->drops[k].table);
    free(c->drops);
    free(c);
}

/* Counts what is allocated. NULL: no memory, which `c` remembers. */
static void *take(fgi_costs *c, int64_t n, size_t size) {
    void *memory = fgi_calloc(n, size);
    if (!memory) c->failure = FGI_NO_MEMORY;
    c->bytes += n * (int64_t)size;
    return memory;
}

int fgi_costs_fit(const fgi_model *m, int64_t max_entries) {
    const fgi_structure *s = m->s;
    int64_t entries = 0;
    if (s->max_arity > FGI_COSTS_ARITY || s->n_factors > max_entries / 2 || s->n_vars > INT32_MAX / 2) return 0;
    for (int64_t f = 0; f < s->n_factors; f++) {
        const fgi_view v = fgi_factor_view(m, f);
        const int64_t states = fgi_view_states(m, &v);
        if (states > (max_entries - entries) / 2) return 0;
        entries += 2 * states;
    }
    return 1;
}

/* Pairwise factors of the same two variables become one. */
static void measure(const fgi_model *m, const fgi_costs_pairs *pairs, fgi_costs *c, int64_t *entries, int64_t *labels) {
    *entries = pairs->entries;
    *labels = 0;
    for (int64_t f = 0; f < m->s->n_factors; f++) {
        if (pairs->first[f] != f) continue;
        const fgi_view v = fgi_factor_view(m, f);
        *entries += (v.arity == 2 ? 2 : 1) * fgi_view_states(m, &v);
        for (int32_t k = 0; k < v.arity; k++) *labels += m->s->cards[v.vars[k]];
        c->n_factors++;
        c->n_slots += v.arity;
    }
    for (int32_t k = 0; k < 2 * pairs->n_added; k++) *labels += m->s->cards[pairs->added[k]];
    c->n_factors += pairs->n_added;
    c->n_slots += 2 * pairs->n_added;
}

static void allocate(fgi_costs *c, const fgi_structure *s, int64_t entries, int64_t own_labels, int64_t n_meet) {
    const int64_t n = s->n_vars, labels = s->unary_begin[n], words = n / 64 + 1,
                  most = s->max_card > 0 ? s->max_card : 1;
    c->n_made = 2 * n * most <= MOST_MADE_LABELS ? (int32_t)n : 0;
    const int64_t slots = c->n_slots + 2 * c->n_made, factors = c->n_factors + c->n_made,
                  slot_labels = own_labels + 2 * most * c->n_made;
    c->begin = take(c, n + 1, sizeof *c->begin);
    c->unary = take(c, labels, sizeof *c->unary);
    c->domain = take(c, labels, sizeof *c->domain);
    c->place = take(c, labels, sizeof *c->place);
    c->size = take(c, n, sizeof *c->size);
    c->most = take(c, n, sizeof *c->most);
    c->zero = take(c, n, sizeof *c->zero);
    c->slot_begin = take(c, factors + 1, sizeof *c->slot_begin);
    c->slot_var = take(c, slots, sizeof *c->slot_var);
    c->slot_factor = take(c, slots, sizeof *c->slot_factor);
    c->slot_other = take(c, slots, sizeof *c->slot_other);
    c->slot_shift = take(c, slots, sizeof *c->slot_shift);
    c->slot_stride = take(c, slots, sizeof *c->slot_stride);
    c->slot_log = take(c, slots, sizeof *c->slot_log);
    c->shift = take(c, slot_labels, sizeof *c->shift);
    c->support = take(c, slot_labels, sizeof *c->support);
    c->table = take(c, slots + 1, sizeof *c->table);
    c->storage = take(c, entries, sizeof *c->storage);
    c->spent = take(c, factors, sizeof *c->spent);
    c->weight = take(c, factors, sizeof *c->weight);
    c->load = take(c, factors, sizeof *c->load);
    c->adj_begin = take(c, n + 1, sizeof *c->adj_begin);
    c->adj = take(c, c->n_slots, sizeof *c->adj);
    c->live = take(c, c->n_slots / 64 + 1, sizeof *c->live);
    c->slot_place = take(c, slots, sizeof *c->slot_place);
    fgi_costs_queue *const queues[] = {
        &c->unsupported, &c->bare, &c->dearer, &c->directed, &c->existential, &c->decided, &c->loose};
    for (size_t k = 0; k < sizeof queues / sizeof queues[0]; k++) queues[k]->words = take(c, words, sizeof(uint64_t));
    if (s->max_arity > 2) {
        c->cells = take(c, FGI_COSTS_CELLS, sizeof *c->cells);
        c->states = take(c, FGI_COSTS_CELLS, sizeof *c->states);
    }
    if (n_meet > 0) {
        c->meet_begin = take(c, c->n_factors, sizeof *c->meet_begin);
        c->meet = take(c, n_meet, sizeof *c->meet);
        c->met = take(c, c->n_factors, sizeof *c->met);
    }
    c->pulled = take(c, most, sizeof *c->pulled);
    c->used = take(c, most, sizeof *c->used);
    c->total = take(c, most, sizeof *c->total);
    c->sums = take(c, most, sizeof *c->sums);
    c->stamp = take(c, n, sizeof *c->stamp);
    c->dropped = take(c, n, sizeof *c->dropped);
    c->drops = take(c, n, sizeof *c->drops);
}

static void link_slots(fgi_costs *c) {
    for (int32_t s = 0; s < c->n_slots; s++) c->adj_begin[c->slot_var[s] + 1]++;
    for (int32_t i = 0; i < c->n; i++) c->adj_begin[i + 1] += c->adj_begin[i];
    for (int32_t s = 0; s < c->n_slots; s++) {
        const int32_t k = c->slot_place[s] = c->adj_begin[c->slot_var[s]]++;
        c->adj[k] = s;
        fgi_assert(k >= 0 && k < c->n_slots);
        if (!c->spent[c->slot_factor[s]]) c->live[k >> 6] |= (int64_t)((uint64_t)1 << (k & 63));
    }
    for (int32_t i = c->n; i > 0; i--) c->adj_begin[i] = c->adj_begin[i - 1];
    c->adj_begin[0] = 0;
}

static void set_unaries(fgi_costs *c, const fgi_model *m) {
    const fgi_structure *s = m->s;
    memcpy(c->begin, s->unary_begin, (size_t)(s->n_vars + 1) * sizeof *c->begin);
    for (int32_t i = 0; i < c->n; i++) {
        const double *unary = fgi_unary(m, i);
        const extremes e = extremes_of(unary, s->cards[i]);
        c->size[i] = s->cards[i];
        for (int32_t a = 0; a < s->cards[i]; a++) {
            c->unary[c->begin[i] + a] = cost_of(c, e.most, unary[a], 1);
            c->domain[c->begin[i] + a] = c->place[c->begin[i] + a] = a;
        }
    }
}

static int64_t sum_of(int64_t a, int64_t b) {
    return a >= FGI_COST_LARGEST || a + b >= FGI_COST_LARGEST ? FGI_COST_FORBIDDEN : a + b;
}

/* The costs of factor f of the model onto those of its first slot, and, pairwise, of its second. */
static void add_table(const fgi_costs *c, const fgi_model *m, int64_t f, int32_t slot) {
    fgi_assert(f >= 0 && f < m->s->n_factors && slot >= 0 && slot < c->n_slots);
    fgi_view v = fgi_factor_view(m, f);
    const double best = factor_extremes(m, &v).most, weight = v.weight;
    int64_t *to = c->table[slot], *other = c->table[slot + 1];
    v.weight = 1;
    if (v.arity > 2) {
        const int64_t states = fgi_view_states(m, &v);
        for (int64_t k = 0; k < states; k++) to[k] = cost_of(c, best, v.values[k], weight);
        return;
    }
    if (v.vars[0] != c->slot_var[slot]) { /* the other way round */
        int64_t *kept = to;
        to = other;
        other = kept;
    }
    for (int32_t a = 0; a < v.rows; a++)
        for (int32_t b = 0; b < v.cols; b++) {
            const int64_t at = (int64_t)a * v.cols + b;
            to[at] = sum_of(cost_of(c, best, fgi_view_at2(&v, a, b), weight), to[at]);
            other[(int64_t)b * v.rows + a] = to[at];
        }
}

static int8_t logarithm(int64_t states) {
    int8_t log = 0;
    while (states >> log > 1) log++;
    return states == (int64_t)1 << log ? log : -1;
}

/* The slots of a factor; returns how many costs its tables have. */
static int64_t add_slots(
    fgi_costs *c, const int32_t *vars, int32_t arity, int32_t number, int64_t *to, int64_t *shift_at) {
    const int32_t slot = c->slot_begin[number];
    fgi_assert(number >= 0 && number < c->n_factors && slot + arity <= c->n_slots);
    int64_t states = 1;
    for (int32_t k = arity - 1; k >= 0; k--) {
        c->slot_stride[slot + k] = states;
        c->slot_log[slot + k] = logarithm(states);
        states *= c->card[vars[k]];
        fgi_assert(vars[k] >= 0 && vars[k] < c->n);
    }
    for (int32_t k = 0; k < arity; k++) {
        c->slot_var[slot + k] = vars[k];
        c->slot_factor[slot + k] = number;
        c->slot_other[slot + k] = arity == 2 ? slot + 1 - k : -1;
        c->slot_shift[slot + k] = *shift_at;
        c->table[slot + k] = arity == 2 && k == 1 ? to + states : to;
        *shift_at += c->card[vars[k]];
    }
    c->weight[number] = 1;
    c->slot_begin[number + 1] = slot + arity;
    return arity == 2 ? 2 * states : states;
}

/* `first` becomes the numbers of factors in the network. */
static void set_tables(fgi_costs *c, const fgi_model *m, const fgi_costs_pairs *pairs) {
    const fgi_structure *s = m->s;
    int32_t *first = pairs->first, number = 0;
    int64_t shift_at = 0, at = 0;
    for (int64_t f = 0; f < s->n_factors; f++) {
        if (first[f] == f) {
            const int32_t arity = fgi_factor_arity(s, f);
            at += add_slots(c, fgi_factor_vars(s, f), arity, number, c->storage + at, &shift_at);
            if (c->meet) c->meet_begin[number] = pairs->begin[f];
            first[f] = number++;
        } else first[f] = first[first[f]];
        add_table(c, m, f, c->slot_begin[first[f]]);
    }
    for (int64_t k = 0; k < pairs->n_meet; k++) {
        const int32_t pair = pairs->meet[k];
        c->meet[k] = pair == FGI_NO_PAIR ? pair
            : pair < s->n_factors        ? first[pair]
                                         : number + (pair - (int32_t)s->n_factors);
    }
    for (int32_t k = 0; k < pairs->n_added; k++, number++) {
        at += add_slots(c, pairs->added + 2 * k, 2, number, c->storage + at, &shift_at);
        c->spent[number] = FGI_SPENT;
    }
    for (int32_t k = 0; k < c->n_made; k++, number++) { /* in factors yet to be made */
        const int32_t slot = c->slot_begin[number];
        c->slot_begin[number + 1] = slot + 2;
        c->spent[number] = FGI_SPENT;
        for (int32_t q = 0; q < 2; q++) {
            c->slot_factor[slot + q] = number;
            c->slot_other[slot + q] = slot + 1 - q;
            c->slot_shift[slot + q] = shift_at;
            shift_at += s->max_card;
        }
    }
}

static int64_t dearest(const int64_t *costs, int64_t n) {
    int64_t most = 0;
    for (int64_t k = 0; k < n; k++)
        if (costs[k] < FGI_COST_LARGEST && costs[k] > most) most = costs[k];
    return most;
}

static void set_range(fgi_costs *c) {
    for (int32_t i = 0; i < c->n && c->range < FGI_COST_LARGEST; i++)
        c->range += dearest(c->unary + c->begin[i], c->card[i]);
    for (int32_t f = 0; f < c->n_factors && c->range < FGI_COST_LARGEST; f++) {
        const int32_t s = c->slot_begin[f];
        c->range += dearest(c->table[s], c->card[c->slot_var[s]] * c->slot_stride[s]);
    }
    if (c->range > FGI_COST_LARGEST) c->range = FGI_COST_LARGEST;
}

fgi_rc fgi_costs_create(const fgi_model *m, double best, double tolerance, fgi_costs **out) {
    int64_t entries, labels;
    fgi_costs_pairs pairs;
    fgi_costs *c = fgi_calloc(1, sizeof *c);
    if (!c || !fgi_costs_pairs_find(m->s, &pairs)) {
        free(c);
        return FGI_NO_MEMORY;
    }
    measure(m, &pairs, c, &entries, &labels);
    c->n = (int32_t)m->s->n_vars;
    c->card = m->s->cards;
    allocate(c, m->s, entries, labels, pairs.n_meet);
    if (c->failure) {
        const fgi_rc rc = c->failure;
        fgi_costs_pairs_free(&pairs);
        fgi_costs_free(c);
        return rc;
    }
    choose_unit(c, m, best, tolerance);
    c->upper = FGI_COST_LARGEST;
    c->pruned_at = INT64_MAX;
    c->grain = 1;
    c->culprit = -1;
    if (!c->infeasible) {
        set_unaries(c, m);
        set_tables(c, m, &pairs);
        link_slots(c);
        set_range(c);
        fgi_costs_break_symmetry(c, m);
        for (int32_t i = 0; i < c->n; i++) {
            fgi_costs_settle(c, i);
            fgi_costs_push(&c->unsupported, i);
            fgi_costs_push(&c->dearer, i);
            fgi_costs_push(&c->directed, i);
            if (c->meet && c->size[i] == 1) fgi_costs_push(&c->decided, i);
            fgi_costs_push(&c->loose, i);
        }
    }
    fgi_costs_pairs_free(&pairs);
    fgi_audit(fgi_costs_check(c));
    *out = c;
    return FGI_OK;
}
