/* exact/presolve_factors.c - reductions that rewrite factors: fixed variables, duplicates, separable tables, small
 * eliminations. */
#include <string.h>
#include "exact/presolve.h"

/* Takes the variable at `slot` out of a factor by fixing its label. */
static void fix_slot(ps_work *w, int64_t at, int32_t slot, int32_t label) {
    ps_factor f = w->factors[at];
    const int32_t n = f.arity - 1;
    int32_t *vars = ps_alloc(w, n, sizeof(int32_t));
    if (!vars) return;
    for (int32_t k = 0, l = 0; k < f.arity; k++)
        if (k != slot) vars[l++] = f.vars[k];
    const int64_t size = ps_states(w, &f) / w->vars[f.vars[slot]].card;
    double *values = ps_alloc(w, size, sizeof(double));
    if (!values) return;
    ps_spend(w, (double)size);
    if (f.arity == 2) {
        for (int64_t a = 0; a < size; a++)
            values[a] = slot == 0 ? ps_at2(w, &f, label, (int32_t)a) : ps_at2(w, &f, (int32_t)a, label);
        ps_kill(w, at);
        ps_add_unary(w, vars[0], values, f.depth);
        w->vars[vars[0]].todo |= PS_ELIMINATE;
        return;
    }
    int64_t strides[f.arity];
    ps_strides(w, &f, strides);
    const int64_t card = w->vars[f.vars[slot]].card, inner = strides[slot], outer = size / inner;
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < inner; i++) values[o * inner + i] = f.weight * f.values[(o * card + label) * inner + i];
    w->factors[at].vars = vars;
    w->factors[at].arity = (int16_t)n;
    ps_replace_table(w, at, values, f.depth);
    for (int32_t k = 0; k < n; k++) w->vars[vars[k]].todo |= PS_ELIMINATE;
}

int64_t ps_fix(ps_work *w) {
    int64_t fixed = 0;
    while (w->n_fix > 0 && !w->infeasible && !w->failure) {
        const int32_t i = w->fix_queue[--w->n_fix];
        ps_var *v = &w->vars[i];
        if (v->gone) continue;
        int32_t label = 0, n = ps_tidy(w, i);
        while (v->unary[label] == -INFINITY) label++;
        double needed = 0;
        for (int32_t k = 0; k < n; k++)
            if (w->factors[v->factors[k]].arity > 2)
                needed += (double)ps_states(w, &w->factors[v->factors[k]]) / v->card;
        if (!ps_affords(w, needed)) continue;
        fgi_sum_add(&w->constant, v->unary[label]);
        if (!ps_record_var(w, i, NULL, 0)) break;
        for (int32_t k = 0; k < n && !w->failure; k++)
            fix_slot(w, v->factors[k], ps_slot(&w->factors[v->factors[k]], i), label);
        fixed++;
    }
    w->info.variables_fixed += fixed;
    return fixed;
}

/* ---- merging ------------------------------------------------------------------------------------------------ */

/* What a factor that takes others in may become (decision 0016). */
enum {
    MERGE_ARITY = 16,      /* variables: more than as many states allow */
    MERGE_STATES = 1 << 14 /* states: 128 KB, which fit into a cache */
};

static void sorted_scope(const int32_t *vars, int32_t n, int32_t *out) {
    for (int32_t k = 0; k < n; k++) {
        int32_t l = k;
        for (; l > 0 && out[l - 1] > vars[k]; l--) out[l] = out[l - 1];
        out[l] = vars[k];
    }
}

static uint64_t hash_scope(const int32_t *sorted, int32_t n) {
    uint64_t h = (uint64_t)n;
    for (int32_t k = 0; k < n; k++) h = (h ^ (uint64_t)(uint32_t)sorted[k]) * 0x9E3779B97F4A7C15u, h ^= h >> 29;
    return h;
}

/* The factor over exactly these variables, or -1; *slot is where it is, or would be put. */
static int32_t look_up(const ps_work *w, const int32_t *sorted, int32_t n, int64_t *slot) {
    int32_t other[MERGE_ARITY];
    for (int64_t k = (int64_t)(hash_scope(sorted, n) & (uint64_t)(w->hash_size - 1));;
         k = (k + 1) & (w->hash_size - 1)) {
        const int32_t f = w->hash[k];
        *slot = k;
        if (f < 0) return -1;
        if (w->factors[f].arity != n) continue;
        sorted_scope(w->factors[f].vars, n, other);
        if (!memcmp(other, sorted, (size_t)n * sizeof(int32_t))) return f;
    }
}

/* Same table read the same way: the weights add up. */
static int same_table(const ps_factor *f, const ps_factor *g) {
    if (f->table < 0 || f->table != g->table) return 0;
    if (!memcmp(f->vars, g->vars, (size_t)f->arity * sizeof(int32_t)))
        return f->transposed == g->transposed || f->kind != FGI_DENSE;
    return f->arity == 2 && (f->transposed != g->transposed || f->kind != FGI_DENSE);
}

/* Adds the scores of f, whose variables are among those of g, into g. Returns 0 where that is not worth the memory. */
static int absorb(ps_work *w, int32_t f_at, int32_t g_at) {
    const ps_factor *f = &w->factors[f_at];
    ps_factor *g = &w->factors[g_at];
    if (f->arity == g->arity && same_table(f, g)) {
        g->weight += f->weight;
        g->depth = 2 + (f->depth > g->depth ? f->depth : g->depth); /* the sum, and another product */
        if (g->depth > w->depth) w->depth = g->depth;
        for (int32_t k = 0; k < g->arity; k++) w->vars[g->vars[k]].todo |= PS_DOMINATE;
        ps_kill(w, f_at);
        return 1;
    }
    const int64_t states = ps_states(w, g), f_states = ps_states(w, f);
    const int own = g->table < 0 || (w->uses[g->table] == 1 && g->kind == FGI_DENSE);
    if (g->kind != FGI_DENSE && f->kind != FGI_DENSE && states > 64) return 0;
    if (!own && states > 64 && !ps_affords(w, (double)states)) return 0;
    if (f->arity < g->arity && states > MERGE_STATES) return 0;
    double *values = ps_alloc(w, states, sizeof(double)), *add = ps_scratch(w, f_states);
    if (!values || !add) return 0;
    ps_expand_table(w, g, values);
    ps_expand_table(w, f, add);
    int64_t strides[MERGE_ARITY], stride = 1;
    int32_t digit[MERGE_ARITY] = {0};
    for (int32_t k = 0; k < g->arity; k++) strides[k] = 0;
    for (int32_t k = f->arity; k-- > 0; stride *= w->vars[f->vars[k]].card) strides[ps_slot(g, f->vars[k])] = stride;
    int64_t at = 0;
    for (int64_t y = 0; y < states; y++) {
        values[y] += add[at];
        int32_t k = g->arity - 1;
        for (; k >= 0 && digit[k] + 1 == w->vars[g->vars[k]].card; k--) {
            at -= digit[k] * strides[k];
            digit[k] = 0;
        }
        if (k < 0) break;
        digit[k]++;
        at += strides[k];
    }
    ps_spend(w, 3.0 * (double)states);
    ps_replace_table(w, g_at, values, 1 + (f->depth > g->depth ? f->depth : g->depth));
    g->todo |= PS_MERGE;
    ps_kill(w, f_at);
    return 1;
}

/* Factors over subsets of a larger factor's variables. */
static int64_t absorb_parts(ps_work *w, int32_t g) {
    int32_t sorted[MERGE_ARITY], part[MERGE_ARITY];
    const int32_t n = w->factors[g].arity;
    int64_t merged = 0, slot;
    sorted_scope(w->factors[g].vars, n, sorted);
    const uint32_t all = (1u << n) - 1;
    for (uint32_t set = 3; set < all && !w->failure; set++) {
        int32_t size = 0;
        for (int32_t k = 0; k < n; k++)
            if (set >> k & 1) part[size++] = sorted[k];
        if (size < 2 || (n > 6 && size > 2)) continue;
        int32_t f = look_up(w, part, size, &slot);
        if (f >= 0 && absorb(w, f, g)) merged++;
        ps_spend(w, 4);
    }
    return merged;
}

int64_t ps_merge(ps_work *w) {
    int64_t merged = 0, live = 0, fresh = 0, size = 16;
    for (int64_t f = 0; f < w->n_factors; f++) {
        live += w->factors[f].arity > 0;
        fresh += w->factors[f].arity > 0 && w->factors[f].todo & PS_MERGE;
    }
    if (!fresh || w->stop) return 0;
    while (size < 2 * live) size *= 2;
    free(w->hash);
    w->hash = fgi_alloc(size, sizeof(int32_t));
    if (!w->hash) {
        w->failure = FGI_NO_MEMORY;
        return 0;
    }
    w->hash_size = size;
    memset(w->hash, 0xFF, (size_t)size * sizeof(int32_t));
    ps_spend(w, 4.0 * (double)live);
    int32_t sorted[MERGE_ARITY];
    const int64_t n_factors = w->n_factors;
    for (int64_t f = 0; f < n_factors && !w->stop; f++) {
        const int32_t n = w->factors[f].arity;
        int64_t slot;
        if (n == 0 || n > MERGE_ARITY) continue;
        sorted_scope(w->factors[f].vars, n, sorted);
        int32_t g = look_up(w, sorted, n, &slot);
        if (g < 0) w->hash[slot] = (int32_t)f;
        else if (absorb(w, (int32_t)f, g)) merged++;
    }
    for (int64_t f = 0; f < n_factors && !w->stop; f++) {
        ps_factor *g = &w->factors[f];
        const int part_of_fresh =
            g->arity > 2 && g->arity <= 10 && g->kind == FGI_DENSE && (g->table < 0 || w->uses[g->table] == 1);
        if (part_of_fresh && ps_states(w, g) <= MERGE_STATES) merged += absorb_parts(w, (int32_t)f);
        w->factors[f].todo &= (uint8_t)~PS_MERGE;
    }
    w->info.factors_merged += merged;
    return merged;
}

/* ---- separable tables --------------------------------------------------------------------------------------- */

/* Products with a power of two are not rounded. */
static int is_exact(double weight) {
    int exponent;
    return frexp(weight, &exponent) == 0.5;
}

/* How far theta(r, rest) + shift is from x = theta(a, rest), products with the weight included. */
static double split_error(double x, double at_r, double shift, double weight) {
    const double sum = at_r + shift, rest = (sum - at_r) - shift; /* what the sum has lost, where at_r is the larger */
    const double off = fabs(x - sum) + (rest != 0 || x != sum ? 0x1p-52 * (fabs(at_r) + fabs(shift)) : 0);
    return weight * off + (is_exact(weight) ? 0 : 0x1p-53 * weight * (fabs(x) + fabs(at_r) + fabs(shift)));
}

/* True if theta(a, rest) - theta(r, rest) is the same for all rest over live labels; shift[a] is that difference
 * (unweighted). Values within a few rounding errors count as equal; *error is what that may change. */
static int additive(ps_work *w, const ps_factor *f, int32_t slot, int32_t r, double *shift, double *error) {
    const int32_t n = f->arity;
    const ps_var *mine = &w->vars[f->vars[slot]];
    int64_t strides[n];
    int32_t digit[n];
    int known = 0;
    ps_strides(w, f, strides);
    for (int32_t k = 0; k < n; k++) {
        digit[k] = 0;
        while (w->vars[f->vars[k]].unary[digit[k]] == -INFINITY) digit[k]++;
    }
    digit[slot] = 0;
    for (;;) {
        int64_t base = 0;
        for (int32_t k = 0; k < n; k++) base += digit[k] * strides[k];
        const double *row = f->values + base, at_r = row[r * strides[slot]];
        for (int32_t a = 0; a < mine->card; a++) {
            const double x = row[a * strides[slot]];
            if (mine->unary[a] == -INFINITY) continue;
            if ((x == -INFINITY) != (at_r == -INFINITY)) return 0;
            if (x == -INFINITY) continue;
            if (!known) shift[a] = x - at_r;
            *error = fgi_larger(*error, split_error(x, at_r, shift[a], f->weight));
            if (!known) continue;
            if (fabs((x - at_r) - shift[a]) > 2e-15 * (fabs(x) + fabs(at_r) + fabs(shift[a]))) return 0;
        }
        if (at_r > -INFINITY) known = 1;
        ps_spend(w, mine->card);
        int32_t k = n - 1;
        for (; k >= 0; k--) {
            if (k == slot) continue;
            const ps_var *v = &w->vars[f->vars[k]];
            do digit[k]++;
            while (digit[k] < v->card && v->unary[digit[k]] == -INFINITY);
            if (digit[k] < v->card) break;
            digit[k] = 0;
            while (v->unary[digit[k]] == -INFINITY) digit[k]++;
        }
        if (k < 0) return known;
    }
}

/* Takes one variable out of the factor if its table is a sum. */
static int split_factor(ps_work *w, int64_t at) {
    ps_factor *f = &w->factors[at];
    if (f->kind != FGI_DENSE) {
        const fgi_view v = ps_view(w, f);
        const int flat = f->kind == FGI_POTTS ? v.p0 == v.p1 && v.p0 > -INFINITY : v.p0 == 0;
        if (!flat) return 0;
        double value = ps_at2(w, f, 0, 0);
        ps_kill(w, at);
        fgi_sum_add(&w->constant, value);
        return 1;
    }
    if (f->arity > 2 && !ps_affords(w, (double)ps_states(w, f))) return 0;
    for (int32_t slot = 0; slot < f->arity; slot++) {
        const int32_t var = f->vars[slot], card = w->vars[var].card;
        int32_t r = 0;
        double *shift = ps_scratch(w, card);
        if (!shift) return 0;
        while (w->vars[var].unary[r] == -INFINITY) r++;
        memset(shift, 0, (size_t)card * sizeof(double));
        double error = 0;
        if (!additive(w, f, slot, r, shift, &error) || !ps_accept(w, error)) continue;
        for (int32_t a = 0; a < card; a++) shift[a] = w->vars[var].unary[a] == -INFINITY ? 0 : f->weight * shift[a];
        ps_add_unary(w, var, shift, f->depth);
        w->vars[var].todo |= PS_ELIMINATE;
        fix_slot(w, at, slot, r);
        return 1;
    }
    return 0;
}

int64_t ps_split(ps_work *w) {
    int64_t count = 0;
    const int64_t n_factors = w->n_factors;
    /* A shared table over complete label sets need be looked at once only. */
    uint8_t *whole = fgi_calloc(w->m->s->n_tables, 1);
    if (!whole) {
        w->failure = FGI_NO_MEMORY;
        return 0;
    }
    for (int64_t at = 0; at < n_factors && !w->stop && !w->infeasible; at++) {
        ps_factor *f = &w->factors[at];
        if (!f->arity || !(f->todo & PS_SPLIT)) continue;
        f->todo &= (uint8_t)~PS_SPLIT;
        int complete = f->table >= 0;
        const int32_t table = f->table;
        for (int32_t k = 0; k < f->arity; k++) complete &= w->vars[f->vars[k]].live == w->vars[f->vars[k]].card;
        if (complete && whole[table]) continue;
        int64_t before = count;
        while (w->factors[at].arity && !w->stop && !w->infeasible && split_factor(w, at)) count++;
        if (complete && count == before) whole[table] = 1;
    }
    free(whole);
    w->info.factors_split += count;
    return count;
}

/* ---- eliminating variables ---------------------------------------------------------------------------------- */

/* A variable with more neighbours, even of two labels each, would leave a large table (decision 0016). */
enum { MOST_NEIGHBOURS = 12 };

/* Writes a factor densely in the layout of exact/bucket.h: positions descending, position 0 (the variable that goes)
 * fastest. */
static void lay_out(const ps_work *w, const ps_factor *f, const int32_t *position, double *out) {
    const int32_t n = f->arity;
    if (n == 2) {
        const fgi_view v = ps_view(w, f);
        const int first_fast = position[0] == 0;
        const int32_t slow_card = first_fast ? v.cols : v.rows, fast_card = first_fast ? v.rows : v.cols;
        for (int32_t slow = 0; slow < slow_card; slow++)
            for (int32_t fast = 0; fast < fast_card; fast++)
                *out++ = first_fast ? fgi_view_at2(&v, fast, slow) : fgi_view_at2(&v, slow, fast);
        return;
    }
    int64_t strides[MOST_NEIGHBOURS + 1], mine[MOST_NEIGHBOURS + 1];
    int32_t slots[MOST_NEIGHBOURS + 1], digit[MOST_NEIGHBOURS + 1] = {0}, cards[MOST_NEIGHBOURS + 1];
    ps_strides(w, f, strides);
    for (int32_t k = 0; k < n; k++) {
        int32_t l = k;
        for (; l > 0 && position[slots[l - 1]] < position[k]; l--) slots[l] = slots[l - 1];
        slots[l] = k;
    }
    for (int32_t k = 0; k < n; k++) {
        mine[k] = strides[slots[k]];
        cards[k] = w->vars[f->vars[slots[k]]].card;
    }
    int64_t at = 0;
    for (;;) {
        *out++ = f->weight * f->values[at];
        int32_t k = n - 1;
        for (; k >= 0 && digit[k] + 1 == cards[k]; k--) {
            at -= digit[k] * mine[k];
            digit[k] = 0;
        }
        if (k < 0) return;
        digit[k]++;
        at += mine[k];
    }
}

/* The other variables of a variable's factors; -1 when there are too many. */
static int32_t neighbours_of(const ps_work *w, int32_t var, int32_t *out) {
    const ps_var *v = &w->vars[var];
    int32_t n = 0;
    for (int32_t k = 0; k < v->n_factors; k++) {
        const ps_factor *f = &w->factors[v->factors[k]];
        for (int32_t l = 0; l < f->arity; l++) {
            int32_t m = 0, u = f->vars[l];
            if (u == var) continue;
            while (m < n && out[m] != u) m++;
            if (m < n) continue;
            if (n == MOST_NEIGHBOURS) return -1;
            out[n++] = u;
        }
    }
    return n;
}

/* Whether maximising the variable out makes the model smaller, or hardly larger. New tables have no more variables than
 * old ones. */
static int pays(const ps_work *w, int32_t var, const int32_t *others, int32_t n) {
    const ps_var *v = &w->vars[var];
    double out = 1, in = 0;
    int32_t arity = 2;
    for (int32_t k = 0; k < n; k++) out *= w->vars[others[k]].card;
    for (int32_t k = 0; k < v->n_factors; k++) {
        const ps_factor *f = &w->factors[v->factors[k]];
        in += (double)ps_states(w, f);
        if (f->arity > arity) arity = f->arity;
        if (f->arity > 2 && !ps_affords(w, out)) return 0;
    }
    if (v->n_factors <= 1)
        return w->options.reductions & FGI_REDUCE_LEAVES && in <= w->options.work - w->work &&
            ps_affords(w, n > 1 ? out : 0);
    if (!(w->options.reductions & FGI_REDUCE_CHAINS) || n > arity || out > (double)w->options.table_limit ||
        !ps_affords(w, out))
        return 0;
    return n <= 2 ? out <= fmax(256, 2 * in) : out <= in;
}

/* The factors of a variable as inputs of a bucket: position 0 is the variable, position k + 1 is others[k]. They have
 * `total` states. */
static void fill_bucket(ps_work *w, const ps_var *v, const int32_t *others, int32_t n, int64_t total) {
    fgi_bucket *b = &w->bucket;
    int32_t *dims = ps_alloc(w, (int64_t)v->n_factors * (n + 1), sizeof(int32_t));
    double *to = ps_scratch(w, total);
    if (!dims || !to || !fgi_bucket_reserve(b, v->n_factors)) {
        w->failure = FGI_NO_MEMORY;
        return;
    }
    b->n_inputs = 0;
    b->card = v->card;
    b->unary = v->unary;
    for (int32_t k = 0; k < v->n_factors; k++, dims += n + 1) {
        const ps_factor *f = &w->factors[v->factors[k]];
        int32_t position[MOST_NEIGHBOURS + 1], m = 0;
        for (int32_t l = 0; l < f->arity; l++) {
            position[l] = 0;
            for (int32_t x = 0; x < n; x++)
                if (others[x] == f->vars[l]) position[l] = x + 1;
        }
        for (int32_t p = n; p >= 0; p--)
            for (int32_t l = 0; l < f->arity; l++)
                if (position[l] == p) dims[m++] = p;
        lay_out(w, f, position, to);
        b->inputs[b->n_inputs++] = (fgi_input){.values = to, .n_dims = m, .dims = dims};
        to += ps_states(w, f);
    }
}

/* max over the variable of its unary and all its factors, into a new factor over `others`. */
static void maximise_out(ps_work *w, int32_t var, const int32_t *others, int32_t n) {
    ps_var *v = &w->vars[var];
    const int32_t degree = v->n_factors;
    int32_t card_at[MOST_NEIGHBOURS + 1], bag[MOST_NEIGHBOURS], *vars = ps_alloc(w, n, sizeof(int32_t));
    int64_t size = 1, total = 0;
    card_at[0] = v->card;
    for (int32_t k = 0; k < n; k++) { /* position k + 1 is others[k]; the output lists positions descending */
        card_at[k + 1] = w->vars[others[k]].card;
        size *= card_at[k + 1];
        bag[n - 1 - k] = k + 1;
        if (vars) vars[n - 1 - k] = others[k];
    }
    for (int32_t k = 0; k < degree; k++) total += ps_states(w, &w->factors[v->factors[k]]);
    double *values = ps_alloc(w, size, sizeof(double));
    if (!vars || !values) return;
    ps_spend(w, (double)total + (double)size * v->card);
    if (n == 0) {
        values[0] = -INFINITY;
        for (int32_t a = 0; a < v->card; a++) values[0] = fmax(values[0], v->unary[a]);
    } else if (degree == 1 && n == 1) {
        const ps_factor *f = &w->factors[v->factors[0]];
        const fgi_view view = ps_view(w, f);
        const int second = f->vars[1] == var;
        w->failure = fgi_bucket_leaf(
            &w->bucket, &view, second != f->transposed, v->unary, v->card, card_at[1], -INFINITY, values);
    } else {
        fill_bucket(w, v, others, n, total);
        if (!w->failure) w->failure = fgi_bucket_open(&w->bucket, bag, n, card_at);
        if (!w->failure) fgi_bucket_blocks(&w->bucket, 0, w->bucket.n_blocks, values, NULL, 0);
    }
    if (w->failure || !ps_record_var(w, var, v->factors, degree)) return;
    int32_t depth = v->depth;
    for (int32_t k = 0; k < degree; k++)
        if (w->factors[v->factors[k]].depth > depth) depth = w->factors[v->factors[k]].depth;
    for (int32_t k = 0; k < degree; k++) ps_kill(w, v->factors[k]);
    ps_add_factor(w, vars, n, values, depth + degree + 1);
}

int64_t ps_eliminate(ps_work *w) {
    int64_t count = 0;
    int32_t n_stack = 0, others[MOST_NEIGHBOURS], *stack = fgi_alloc(w->n_vars, sizeof(int32_t));
    if (!stack) {
        w->failure = FGI_NO_MEMORY;
        return 0;
    }
    /* A variable is on the stack if it is marked; marks made by others wait for the next call. */
    for (int32_t i = w->n_vars; i-- > 0;)
        if (!w->vars[i].gone && w->vars[i].todo & PS_ELIMINATE) stack[n_stack++] = i;
    while (n_stack > 0 && !w->stop && !w->infeasible && !w->failure) {
        const int32_t i = stack[--n_stack];
        ps_var *v = &w->vars[i];
        v->todo &= (uint8_t)~PS_ELIMINATE;
        if (v->gone || ps_tidy(w, i) > MOST_NEIGHBOURS) continue;
        ps_spend(w, 4 + v->n_factors);
        const int32_t n = neighbours_of(w, i, others), degree = v->n_factors;
        if (n < 0 || !pays(w, i, others, n)) continue;
        uint8_t marked[MOST_NEIGHBOURS];
        for (int32_t k = 0; k < n; k++) marked[k] = w->vars[others[k]].todo & PS_ELIMINATE;
        maximise_out(w, i, others, n);
        if (w->failure) break;
        if (degree <= 1) w->info.leaves++;
        else w->info.chains++;
        count++;
        for (int32_t k = 0; k < n; k++) {
            w->vars[others[k]].todo |= PS_ELIMINATE | PS_DOMINATE;
            if (!marked[k]) stack[n_stack++] = others[k];
        }
    }
    free(stack);
    return count;
}
