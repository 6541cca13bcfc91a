/* exact/node.c - see exact/node.h. */
#include "exact/node.h"
#include <string.h>
#include "base/kernels.h"
#include "model/marginal.h"

enum { MAX_ARITY = 64, FEW_ADDITIONS = 10 };

/* ---- making problems ---------------------------------------------------------------------------------------- */

void fgi_problem_free(fgi_problem *p) {
    if (!p) return;
    free(p->card);
    free(p->alive);
    free(p->begin);
    free(p->unary);
    free(p->belief);
    free(p->root_var);
    free(p->label);
    free(p->slot_begin);
    free(p->slot_var);
    free(p->slot_factor);
    free(p->slot_message);
    free(p->message);
    free(p->table);
    free(p->states);
    free(p->owned);
    free(p->factor_max);
    free(p->factor_low);
    free(p->factor_high);
    free(p->adj_begin);
    free(p->adj);
    free(p);
}

static fgi_problem *problem_new(
    int64_t n, int64_t n_labels, int64_t n_factors, int64_t n_slots, int64_t n_messages, int64_t n_entries) {
    fgi_problem *p = fgi_calloc(1, sizeof *p);
    if (!p) return NULL;
    p->n = (int32_t)n;
    p->n_factors = (int32_t)n_factors;
    p->n_slots = (int32_t)n_slots;
    p->card = fgi_alloc(n, sizeof(int32_t));
    p->alive = fgi_alloc(n, sizeof(int32_t));
    p->begin = fgi_alloc(n + 1, sizeof(int64_t));
    p->unary = fgi_alloc(n_labels, sizeof(double));
    p->belief = fgi_alloc(n_labels, sizeof(double));
    p->root_var = fgi_alloc(n, sizeof(int32_t));
    p->label = fgi_alloc(n_labels, sizeof(int32_t));
    p->slot_begin = fgi_alloc(n_factors + 1, sizeof(int32_t));
    p->slot_var = fgi_alloc(n_slots, sizeof(int32_t));
    p->slot_factor = fgi_alloc(n_slots, sizeof(int32_t));
    p->slot_message = fgi_alloc(n_slots, sizeof(int64_t));
    p->message = fgi_calloc(n_messages, sizeof(double));
    p->table = fgi_alloc(n_factors, sizeof *p->table);
    p->states = fgi_alloc(n_factors, sizeof(int64_t));
    p->owned = fgi_alloc(n_entries, sizeof(double));
    p->factor_max = fgi_alloc(n_factors, sizeof(double));
    p->factor_low = fgi_alloc(n_factors, sizeof(int32_t));
    p->factor_high = fgi_alloc(n_factors, sizeof(int32_t));
    p->adj_begin = fgi_calloc(n + 1, sizeof(int32_t));
    p->adj = fgi_alloc(n_slots, sizeof(int32_t));
    p->bytes = 8 * (2 * n_labels + n_messages + n_entries) + 4 * n_labels + 24 * n + 24 * n_factors + 20 * n_slots;
    if (p->card && p->alive && p->begin && p->unary && p->belief && p->root_var && p->label && p->slot_begin &&
        p->slot_var && p->slot_factor && p->slot_message && p->message && p->table && p->states && p->owned &&
        p->factor_max && p->factor_low && p->factor_high && p->adj_begin && p->adj)
        return p;
    fgi_problem_free(p);
    return NULL;
}

static void link_slots(fgi_problem *p) {
    for (int32_t f = 0; f < p->n_factors; f++) {
        p->factor_low[f] = p->factor_high[f] = p->slot_var[p->slot_begin[f]];
        for (int32_t s = p->slot_begin[f]; s < p->slot_begin[f + 1]; s++) {
            p->slot_factor[s] = f;
            if (p->slot_var[s] < p->factor_low[f]) p->factor_low[f] = p->slot_var[s];
            if (p->slot_var[s] > p->factor_high[f]) p->factor_high[f] = p->slot_var[s];
        }
    }
    for (int32_t s = 0; s < p->n_slots; s++) p->adj_begin[p->slot_var[s] + 1]++;
    for (int32_t i = 0; i < p->n; i++) p->adj_begin[i + 1] += p->adj_begin[i];
    for (int32_t s = 0; s < p->n_slots; s++) p->adj[p->adj_begin[p->slot_var[s]]++] = s;
    for (int32_t i = p->n; i > 0; i--) p->adj_begin[i] = p->adj_begin[i - 1];
    p->adj_begin[0] = 0;
}

/* The bound is kept in two parts, so that taking maxima out and putting them in again loses nothing. */
static void set_value(fgi_problem *p, const fgi_sum *sum) {
    p->bound = fgi_sum_value(sum);
    p->carry = sum->forbidden ? 0 : (sum->sum - p->bound) + sum->carry;
    p->removed = -INFINITY;
}

static void add_to_bound(fgi_problem *p, double x) {
    fgi_sum sum = {p->bound, p->carry, 0};
    fgi_sum_add(&sum, x);
    p->bound = sum.sum + sum.carry;
    p->carry = (sum.sum - p->bound) + sum.carry;
}

double fgi_problem_error(const fgi_problem *p) {
    const double terms = p->magnitude + (double)p->n_slots * fgi_larger(p->largest[0], p->largest[1]);
    /* The bound itself is the nearest double, and so is its sum with this. */
    const double nearest = 0x1p-52 * (p->bound > -INFINITY ? fabs(p->bound) : 0);
    return p->error + 0x1p-53 * (double)(p->additions + p->sweeps) * terms + nearest;
}

/* bound = constant + all maxima; -INFINITY if a factor or variable has nothing left. */
static void set_bound(fgi_problem *p, const fgi_sum *constant) {
    fgi_sum sum = *constant;
    for (int32_t i = 0; i < p->n; i++) {
        double best = -INFINITY;
        for (int64_t k = p->begin[i]; k < p->begin[i + 1]; k++) best = fgi_larger(best, p->unary[k]);
        fgi_sum_add(&sum, best);
        for (int64_t k = p->begin[i]; best > -INFINITY && k < p->begin[i + 1]; k++) p->unary[k] -= best;
    }
    for (int32_t f = 0; f < p->n_factors; f++) {
        double best = -INFINITY;
        for (int64_t k = 0; k < p->states[f]; k++) best = fgi_larger(best, p->table[f][k]);
        p->factor_max[f] = best;
        fgi_sum_add(&sum, best);
    }
    set_value(p, &sum);
}

static int borrowable(const fgi_view *v) { return v->kind == FGI_DENSE && v->weight == 1.0 && !v->transposed; }

fgi_rc fgi_problem_from_model(const fgi_model *m, int64_t max_entries, fgi_problem **out) {
    const fgi_structure *s = m->s;
    int64_t n_slots = fgi_factor_begin(s, s->n_factors), n_entries = 0, n_messages = 0;
    for (int64_t f = 0; f < s->n_factors; f++) {
        fgi_view v = fgi_factor_view(m, f);
        int64_t states = fgi_view_states(m, &v);
        if (v.arity > MAX_ARITY) return FGI_UNSUPPORTED;
        if (!borrowable(&v)) {
            if (states > max_entries - n_entries) return FGI_UNSUPPORTED;
            n_entries += states;
        }
        for (int32_t k = 0; k < v.arity; k++) n_messages += s->cards[v.vars[k]];
    }
    if (n_slots > INT32_MAX) return FGI_UNSUPPORTED;
    fgi_problem *p = problem_new(s->n_vars, s->unary_begin[s->n_vars], s->n_factors, n_slots, n_messages, n_entries);
    if (!p) return FGI_NO_MEMORY;
    for (int64_t i = 0; i < s->n_vars; i++) {
        p->card[i] = p->alive[i] = s->cards[i];
        p->root_var[i] = (int32_t)i;
        for (int32_t a = 0; a < s->cards[i]; a++) p->label[s->unary_begin[i] + a] = a;
    }
    memcpy(p->begin, s->unary_begin, (size_t)(s->n_vars + 1) * sizeof *p->begin);
    memcpy(p->unary, m->u->values, (size_t)s->unary_begin[s->n_vars] * sizeof(double));
    int64_t message_at = 0, entry_at = 0;
    int32_t slot = 0;
    for (int64_t f = 0; f < s->n_factors; f++) {
        fgi_view v = fgi_factor_view(m, f);
        p->slot_begin[f] = slot;
        p->states[f] = fgi_view_states(m, &v);
        p->table[f] = borrowable(&v) ? v.values : p->owned + entry_at;
        if (borrowable(&v)) {
            /* nothing to copy */
        } else if (v.arity == 2) {
            for (int32_t a = 0; a < v.rows; a++)
                for (int32_t b = 0; b < v.cols; b++) p->owned[entry_at++] = fgi_view_at2(&v, a, b);
        } else {
            for (int64_t k = 0; k < p->states[f]; k++) p->owned[entry_at++] = v.weight * v.values[k];
        }
        for (int32_t k = 0; k < v.arity; k++, slot++) {
            p->slot_var[slot] = v.vars[k];
            p->slot_message[slot] = message_at;
            message_at += s->cards[v.vars[k]];
        }
    }
    p->slot_begin[s->n_factors] = slot;
    link_slots(p);
    p->max_card = s->max_card;
    p->magnitude = fgi_dual_magnitude(m);
    p->additions = (int32_t)(s->max_degree + s->max_arity) + FEW_ADDITIONS;
    fgi_sum constant = {0};
    fgi_sum_add(&constant, s->constant);
    set_bound(p, &constant);
    /* Labels that are forbidden from the start are dead: their messages are +INFINITY. */
    for (int32_t i = 0; i < p->n; i++)
        for (int32_t a = 0; a < p->card[i]; a++)
            if (p->unary[p->begin[i] + a] == -INFINITY && p->alive[i] > 0) fgi_problem_remove(p, i, a);
    memcpy(p->belief, p->unary, (size_t)p->begin[p->n] * sizeof(double));
    *out = p;
    return FGI_OK;
}

/* How one variable of the parent appears in the child. */
typedef struct kept {
    int32_t child; /* index in the child, -1: fixed */
    int32_t first; /* offset of its live labels in `live` */
    int32_t count;
} kept;

/* Copies the part of factor f that is left, reparametrised, to `to`; the free variables keep their order. */
static void slice_factor(const fgi_problem *p, int32_t f, const kept *keep, const int32_t *live, double *to) {
    int32_t first = p->slot_begin[f], arity = p->slot_begin[f + 1] - first;
    const double *table = p->table[f];
    if (arity == 2) {
        const kept *ki = &keep[p->slot_var[first]], *kj = &keep[p->slot_var[first + 1]];
        const double *mi = p->message + p->slot_message[first], *mj = p->message + p->slot_message[first + 1];
        int32_t cols = p->card[p->slot_var[first + 1]];
        for (int32_t x = 0; x < ki->count; x++) {
            int32_t a = live[ki->first + x];
            for (int32_t y = 0; y < kj->count; y++) {
                int32_t b = live[kj->first + y];
                *to++ = table[(int64_t)a * cols + b] - mi[a] - mj[b];
            }
        }
        return;
    }
    /* The variables with a choice left, fastest first. */
    int32_t index[MAX_ARITY] = {0}, proper[MAX_ARITY], n_proper = 0;
    int64_t strides[MAX_ARITY], base = 0, stride = 1;
    double offset = 0;
    for (int32_t k = arity - 1; k >= 0; k--) {
        int32_t i = p->slot_var[first + k];
        if (keep[i].count > 1) {
            strides[n_proper] = stride;
            proper[n_proper++] = k;
        } else {
            base += stride * live[keep[i].first];
            offset += p->message[p->slot_message[first + k] + live[keep[i].first]];
        }
        stride *= p->card[i];
    }
    for (;;) {
        int64_t at = base;
        double mu = offset;
        for (int32_t q = 0; q < n_proper; q++) {
            int32_t a = live[keep[p->slot_var[first + proper[q]]].first + index[q]];
            at += strides[q] * a;
            mu += p->message[p->slot_message[first + proper[q]] + a];
        }
        *to++ = table[at] - mu;
        int32_t q = 0;
        while (q < n_proper && ++index[q] == keep[p->slot_var[first + proper[q]]].count) index[q++] = 0;
        if (q == n_proper) return;
    }
}

fgi_rc fgi_problem_child(const fgi_problem *p, int32_t var, int32_t value, int64_t max_entries, fgi_problem **out) {
    kept *keep = fgi_alloc(p->n, sizeof *keep);
    int32_t *live = fgi_alloc(p->begin[p->n], sizeof *live);
    fgi_problem *c = NULL;
    fgi_rc rc = FGI_NO_MEMORY;
    if (!keep || !live) goto done;
    int64_t n = 0, n_labels = 0, n_factors = 0, n_slots = 0, n_messages = 0, n_entries = 0, largest = 1;
    int32_t at = 0;
    for (int32_t i = 0; i < p->n; i++) {
        keep[i].first = at;
        for (int32_t a = 0; a < p->card[i]; a++)
            if (i == var ? a == value : p->unary[p->begin[i] + a] > -INFINITY) live[at++] = a;
        keep[i].count = at - keep[i].first;
        keep[i].child = keep[i].count > 1 ? (int32_t)n++ : -1;
        if (keep[i].count > 1) n_labels += keep[i].count;
    }
    for (int32_t f = 0; f < p->n_factors; f++) {
        int64_t states = 1, free_vars = 0, messages = 0;
        for (int32_t s = p->slot_begin[f]; s < p->slot_begin[f + 1]; s++) {
            const kept *k = &keep[p->slot_var[s]];
            states *= k->count;
            if (k->count > 1) {
                free_vars++;
                messages += k->count;
            }
        }
        if (states > largest) largest = states;
        if (free_vars < 2) continue;
        if (states > max_entries - n_entries) {
            rc = FGI_UNSUPPORTED;
            goto done;
        }
        n_factors++;
        n_slots += free_vars;
        n_messages += messages;
        n_entries += states;
    }
    c = problem_new(n, n_labels, n_factors, n_slots, n_messages, n_entries);
    double *folded = fgi_alloc(largest, sizeof *folded);
    if (!c || !folded) {
        free(folded);
        fgi_problem_free(c);
        goto done;
    }
    /* The parent's bound minus its maxima is its constant; what is fixed below is added to it. */
    fgi_sum constant = {p->bound, p->carry, 0};
    for (int32_t f = 0; f < p->n_factors; f++) fgi_sum_add(&constant, -p->factor_max[f]);
    c->begin[0] = 0;
    for (int32_t i = 0; i < p->n; i++) {
        const kept *k = &keep[i];
        if (k->child < 0) {
            fgi_sum_add(&constant, p->unary[p->begin[i] + live[k->first]]);
            continue;
        }
        int32_t j = k->child;
        c->card[j] = c->alive[j] = k->count;
        c->root_var[j] = p->root_var[i];
        c->begin[j + 1] = c->begin[j] + k->count;
        for (int32_t x = 0; x < k->count; x++) {
            c->unary[c->begin[j] + x] = p->unary[p->begin[i] + live[k->first + x]];
            c->label[c->begin[j] + x] = p->label[p->begin[i] + live[k->first + x]];
        }
    }
    /* Messages go into the unaries (plus) and the tables (minus). */
    for (int32_t s = 0; s < p->n_slots; s++) {
        const kept *k = &keep[p->slot_var[s]];
        const double *mu = p->message + p->slot_message[s];
        if (k->child < 0) fgi_sum_add(&constant, mu[live[k->first]]);
        else
            for (int32_t x = 0; x < k->count; x++) c->unary[c->begin[k->child] + x] += mu[live[k->first + x]];
    }
    int64_t message_at = 0, entry_at = 0;
    int32_t slot = 0, factor = 0;
    for (int32_t f = 0; f < p->n_factors; f++) {
        int32_t free_vars = 0, only = -1;
        int64_t states = 1;
        for (int32_t s = p->slot_begin[f]; s < p->slot_begin[f + 1]; s++)
            if (keep[p->slot_var[s]].count > 1) {
                free_vars++;
                only = keep[p->slot_var[s]].child;
                states *= keep[p->slot_var[s]].count;
            }
        slice_factor(p, f, keep, live, free_vars < 2 ? folded : c->owned + entry_at);
        if (free_vars == 0) fgi_sum_add(&constant, folded[0]);
        else if (free_vars == 1)
            for (int32_t x = 0; x < c->card[only]; x++) c->unary[c->begin[only] + x] += folded[x];
        else {
            c->slot_begin[factor] = slot;
            c->table[factor] = c->owned + entry_at;
            c->states[factor++] = states;
            entry_at += states;
            for (int32_t s = p->slot_begin[f]; s < p->slot_begin[f + 1]; s++) {
                const kept *k = &keep[p->slot_var[s]];
                if (k->count < 2) continue;
                c->slot_var[slot] = k->child;
                c->slot_message[slot++] = message_at;
                message_at += k->count;
            }
        }
    }
    c->slot_begin[factor] = slot;
    link_slots(c);
    c->max_card = p->max_card;
    c->magnitude = p->magnitude;
    c->additions = p->additions;
    c->error = fgi_problem_error(p);
    set_bound(c, &constant);
    for (int32_t i = 0; i < c->n; i++)
        for (int32_t a = 0; a < c->card[i]; a++)
            if (c->unary[c->begin[i] + a] == -INFINITY && c->alive[i] > 0) fgi_problem_remove(c, i, a);
    memcpy(c->belief, c->unary, (size_t)c->begin[c->n] * sizeof(double));
    free(folded);
    *out = c;
    rc = FGI_OK;
done:
    free(keep);
    free(live);
    return rc;
}

/* ---- dual ascent -------------------------------------------------------------------------------------------- */

int fgi_problem_remove(fgi_problem *p, int32_t var, int32_t a) {
    p->unary[p->begin[var] + a] = -INFINITY;
    p->belief[p->begin[var] + a] = -INFINITY;
    for (int32_t k = p->adj_begin[var]; k < p->adj_begin[var + 1]; k++)
        p->message[p->slot_message[p->adj[k]] + a] = INFINITY;
    return --p->alive[var] > 0;
}

/* nu(a) = max over the states with y_k = a of table - messages of the other variables. `h` is scratch. */
static void pairwise_marginal(const fgi_problem *p, int32_t f, int second, double *nu, double *h) {
    int32_t s = p->slot_begin[f];
    int32_t rows = p->card[p->slot_var[s]], cols = p->card[p->slot_var[s + 1]], n_other = second ? rows : cols;
    const double *table = p->table[f];
    const double *other = p->message + p->slot_message[second ? s : s + 1];
    for (int32_t k = 0; k < n_other; k++) h[k] = -other[k]; /* -INFINITY at dead labels */
    if (rows > 3 && cols > 3) {
        const fgi_kernels *kernels = fgi_kernels_get();
        (second ? kernels->maxplus_rows : kernels->maxplus_cols)(table, rows, cols, 1.0, h, nu);
        return;
    }
    for (int32_t k = 0; k < (second ? cols : rows); k++) nu[k] = -INFINITY;
    for (int32_t a = 0; a < rows; a++, table += cols)
        for (int32_t b = 0; b < cols; b++) {
            double v = table[b] + (second ? h[a] : h[b]);
            double *to = second ? nu + b : nu + a;
            *to = v > *to ? v : *to;
        }
}

static void triple_marginal(const fgi_problem *p, int32_t f, int32_t position, double *nu) {
    const int32_t *vars = p->slot_var + p->slot_begin[f];
    const int64_t *at = p->slot_message + p->slot_begin[f];
    const double *m0 = p->message + at[0], *m1 = p->message + at[1], *m2 = p->message + at[2], *row = p->table[f];
    const int32_t cols = p->card[vars[2]];
    for (int32_t a = 0; a < p->card[vars[position]]; a++) nu[a] = -INFINITY;
    for (int32_t a = 0; a < p->card[vars[0]]; a++)
        for (int32_t b = 0; b < p->card[vars[1]]; b++, row += cols) {
            double before = (position == 0 ? 0 : m0[a]) + (position == 1 ? 0 : m1[b]);
            if (before == INFINITY) continue;
            if (position == 2) {
                for (int32_t c = 0; c < cols; c++) nu[c] = fgi_larger(nu[c], row[c] - before);
                continue;
            }
            double best = -INFINITY;
            for (int32_t c = 0; c < cols; c++) best = fgi_larger(best, row[c] - m2[c]);
            double *to = nu + (position == 0 ? a : b);
            *to = fgi_larger(*to, best - before);
        }
}

static void general_marginal(const fgi_problem *p, int32_t f, int32_t position, double *nu) {
    int32_t first = p->slot_begin[f], arity = p->slot_begin[f + 1] - first;
    int32_t y[MAX_ARITY] = {0};
    for (int32_t a = 0; a < p->card[p->slot_var[first + position]]; a++) nu[a] = -INFINITY;
    /* Prefix sums of messages, so that an entry costs O(1) amortised. prefix[k]: variables before k. */
    double prefix[MAX_ARITY + 1];
    prefix[0] = 0;
    for (int32_t k = 0; k + 1 < arity; k++)
        prefix[k + 1] = prefix[k] + (k == position ? 0 : p->message[p->slot_message[first + k]]);
    const int32_t last = arity - 1, cols = p->card[p->slot_var[first + last]];
    const double *row = p->table[f], *end = p->table[f] + p->states[f];
    const double *m = p->message + p->slot_message[first + last];
    while (row < end) {
        double before = prefix[last];
        if (before < INFINITY) {
            if (position == last) {
                for (int32_t b = 0; b < cols; b++) nu[b] = fgi_larger(nu[b], row[b] - before);
            } else {
                double best = -INFINITY;
                for (int32_t b = 0; b < cols; b++) best = fgi_larger(best, row[b] - m[b]);
                nu[y[position]] = fgi_larger(nu[y[position]], best - before);
            }
        }
        row += cols;
        int32_t k = last - 1;
        while (k >= 0 && ++y[k] == p->card[p->slot_var[first + k]]) y[k--] = 0;
        for (k = k < 0 ? 0 : k; k < last; k++)
            prefix[k + 1] = prefix[k] + (k == position ? 0 : p->message[p->slot_message[first + k] + y[k]]);
    }
}

static void marginal(const fgi_problem *p, int32_t f, int32_t slot, double *scratch) {
    int32_t position = slot - p->slot_begin[f], arity = p->slot_begin[f + 1] - p->slot_begin[f];
    if (arity == 3) triple_marginal(p, f, position, scratch);
    else if (arity == 2) pairwise_marginal(p, f, position, scratch, scratch + p->max_card);
    else general_marginal(p, f, position, scratch);
}

/* Maximum of the reparametrised factor. */
static double factor_maximum(const fgi_problem *p, int32_t f, double *scratch) {
    int32_t first = p->slot_begin[f];
    const double *mu = p->message + p->slot_message[first];
    double best = -INFINITY;
    marginal(p, f, first, scratch);
    for (int32_t a = 0; a < p->card[p->slot_var[first]]; a++) best = fgi_larger(best, scratch[a] - mu[a]);
    return best;
}

void fgi_problem_set_messages(fgi_problem *p, const double *mu, double *scratch) {
    for (int32_t s = 0; s < p->n_slots; s++)
        for (int32_t a = 0, i = p->slot_var[s]; a < p->card[i]; a++, mu++)
            if (p->message[p->slot_message[s] + a] < INFINITY && fabs(*mu) < INFINITY)
                p->message[p->slot_message[s] + a] = *mu;
    /* The bound is a constant and the maxima of all reparametrised parts: take the old maxima out, put the new ones in.
     */
    fgi_sum sum = {p->bound, p->carry, 0};
    for (int32_t f = 0; f < p->n_factors; f++) fgi_sum_add(&sum, -p->factor_max[f]);
    for (int32_t i = 0; i < p->n; i++) {
        double best = -INFINITY;
        for (int32_t a = 0; a < p->card[i]; a++) {
            double b = p->unary[p->begin[i] + a];
            for (int32_t k = p->adj_begin[i]; b > -INFINITY && k < p->adj_begin[i + 1]; k++)
                b += p->message[p->slot_message[p->adj[k]] + a];
            best = fgi_larger(best, b);
        }
        if (best == -INFINITY) continue; /* the bound is -INFINITY already */
        fgi_sum_add(&sum, best);
        for (int32_t a = 0; a < p->card[i]; a++) p->unary[p->begin[i] + a] -= best;
    }
    for (int32_t f = 0; f < p->n_factors; f++) {
        p->factor_max[f] = factor_maximum(p, f, scratch);
        fgi_sum_add(&sum, p->factor_max[f]);
    }
    set_value(p, &sum);
    for (int32_t s = 0; s < p->n_slots; s++)
        for (int32_t a = 0; a < p->card[p->slot_var[s]]; a++) {
            const double size = fabs(p->message[p->slot_message[s] + a]);
            if (size < INFINITY) p->largest[1] = fgi_larger(p->largest[1], size);
        }
}

int32_t fgi_problem_update(fgi_problem *p, int32_t var, int forward, int fresh, double cutoff, double *scratch) {
    const int32_t card = p->card[var];
    double *unary = p->unary + p->begin[var], *belief = p->belief + p->begin[var];
    int32_t onward = 0, back = 0;
    if (var == (forward ? 0 : p->n - 1)) { /* a sweep begins */
        p->largest[1] = p->largest[0];
        p->largest[0] = 0;
        p->sweeps++;
    }
    memcpy(belief, unary, (size_t)card * sizeof *belief);
    for (int32_t k = p->adj_begin[var]; k < p->adj_begin[var + 1]; k++) {
        int32_t slot = p->adj[k], f = p->slot_factor[slot];
        double *mu = p->message + p->slot_message[slot];
        onward += var != p->factor_high[f];
        back += var != p->factor_low[f];
        /* Since the sweep before this one pulled here, no other variable of the factor has been updated: mu is still
         * right. */
        int unchanged = !fresh && var == (forward ? p->factor_low[f] : p->factor_high[f]);
        if (!unchanged) {
            marginal(p, f, slot, scratch);
            p->work += p->states[f];
            for (int32_t a = 0; a < card; a++)
                if (unary[a] > -INFINITY) mu[a] = scratch[a];
            if (p->factor_max[f] != 0) add_to_bound(p, -p->factor_max[f]);
            p->factor_max[f] = 0;
        }
        for (int32_t a = 0; a < card; a++)
            if (unary[a] > -INFINITY) belief[a] += mu[a];
    }
    p->work += (p->adj_begin[var + 1] - p->adj_begin[var] + 1) * (int64_t)(card + 16);
    double best = -INFINITY;
    for (int32_t a = 0; a < card; a++) best = fgi_larger(best, belief[a]);
    if (best == -INFINITY) {
        p->bound = -INFINITY;
        return -1;
    }
    add_to_bound(p, best);
    if (p->bound <= cutoff) return -1;
    int32_t removed = 0;
    for (int32_t a = 0; a < card; a++) {
        belief[a] -= best;
        if (unary[a] == -INFINITY) continue;
        if (p->bound + belief[a] <= cutoff) { /* also when belief is -INFINITY: no state of some factor allows it */
            p->removed = fgi_larger(p->removed, p->bound + belief[a]);
            fgi_problem_remove(p, var, a);
            removed++;
        } else {
            unary[a] -= best;
        }
    }
    int32_t share = onward > back ? onward : back;
    if (share == 0) return removed;
    double weight = 1.0 / share, largest = p->largest[0];
    for (int32_t k = p->adj_begin[var]; k < p->adj_begin[var + 1]; k++) {
        int32_t slot = p->adj[k], f = p->slot_factor[slot];
        if (var == (forward ? p->factor_high[f] : p->factor_low[f])) continue;
        double *mu = p->message + p->slot_message[slot];
        for (int32_t a = 0; a < card; a++)
            if (unary[a] > -INFINITY) {
                mu[a] -= weight * belief[a];
                largest = fgi_larger(largest, fabs(mu[a]));
            }
    }
    p->largest[0] = largest;
    return removed;
}

void fgi_problem_decode(const fgi_problem *p, int32_t *labels, double *scratch) {
    for (int32_t i = 0; i < p->n; i++) labels[i] = -1;
    for (int32_t i = 0; i < p->n; i++) {
        const double *unary = p->unary + p->begin[i];
        memcpy(scratch, unary, (size_t)p->card[i] * sizeof *scratch);
        for (int32_t k = p->adj_begin[i]; k < p->adj_begin[i + 1]; k++) {
            int32_t slot = p->adj[k], f = p->slot_factor[slot], first = p->slot_begin[f];
            int32_t arity = p->slot_begin[f + 1] - first, unknown = 0;
            int64_t at = 0, stride = 1, own = 0;
            for (int32_t q = arity - 1; q >= 0; q--) {
                int32_t j = p->slot_var[first + q];
                if (j == i) own = stride;
                else if (labels[j] < 0) unknown = 1;
                else at += stride * labels[j];
                stride *= p->card[j];
            }
            const double *mu = p->message + p->slot_message[slot];
            for (int32_t a = 0; a < p->card[i]; a++) {
                if (unary[a] == -INFINITY) continue;
                scratch[a] += unknown ? mu[a] : p->table[f][at + own * a];
            }
        }
        int32_t best = 0;
        for (int32_t a = 1; a < p->card[i]; a++)
            if (scratch[a] > scratch[best]) best = a;
        labels[i] = best;
    }
}
