/* exact/node.c - see exact/node.h. */
#include "exact/node.h"
#include <string.h>
#include "model/marginal.h"

enum {
    MAX_ARITY = 64,
    FEW_ADDITIONS = 10, /* of one term, besides those of messages */
    FEW_STATES = 15,    /* of a pair: read directly, see few_marginal */
    FEW_LABELS = 8      /* of a variable: as in model/reweight.c */
};

/* ---- making problems ---------------------------------------------------------------------------------------- */

void fgi_problem_free(fgi_problem *p) {
    if (!p) return;
    fgi_arena_free(&p->arena);
    free(p);
}

static fgi_problem *problem_new(
    int64_t n, int64_t n_labels, int64_t n_factors, int64_t n_slots, int64_t n_messages, int64_t n_entries) {
    fgi_problem *p = fgi_calloc(1, sizeof *p);
    if (!p) return NULL;
    fgi_arena *arena = &p->arena;
    p->kernels = fgi_kernels_get();
    p->n = (int32_t)n;
    p->n_factors = (int32_t)n_factors;
    p->n_slots = (int32_t)n_slots;
    p->card = fgi_take(arena, n, int32_t);
    p->alive = fgi_take(arena, n, int32_t);
    p->begin = fgi_take(arena, n + 1, int64_t);
    p->unary = fgi_take(arena, n_labels, double);
    p->belief = fgi_take(arena, n_labels, double);
    p->root_var = fgi_take(arena, n, int32_t);
    p->label = fgi_take(arena, n_labels, int32_t);
    p->slot_begin = fgi_take(arena, n_factors + 1, int32_t);
    p->slot_var = fgi_take(arena, n_slots, int32_t);
    p->slot_message = fgi_take(arena, n_slots, int64_t);
    p->message = fgi_take_zero(arena, n_messages, double);
    p->table = fgi_take(arena, n_factors, const double *);
    p->states = fgi_take(arena, n_factors, int64_t);
    p->owned = fgi_take(arena, n_entries, double);
    p->factor_max = fgi_take(arena, n_factors, double);
    p->link_begin = fgi_take_zero(arena, n + 1, int32_t);
    p->links = fgi_take(arena, n_slots, fgi_link);
    if (!arena->failed) return p;
    fgi_problem_free(p);
    return NULL;
}

/* The links of every variable, by ascending factor. */
static void link_slots(fgi_problem *p) {
    int32_t *fill = p->link_begin;
    for (int32_t s = 0; s < p->n_slots; s++) fill[p->slot_var[s] + 1]++;
    for (int32_t i = 0; i < p->n; i++) fill[i + 1] += fill[i];
    for (int32_t f = 0; f < p->n_factors; f++) {
        const int32_t first = p->slot_begin[f], arity = p->slot_begin[f + 1] - first, *vars = p->slot_var + first;
        for (int32_t q = 0; q < arity; q++)
            p->links[fill[vars[q]]++] = fgi_link_make(f, vars, arity, q, p->card, p->slot_message[first]);
    }
    for (int32_t i = p->n; i > 0; i--) p->link_begin[i] = p->link_begin[i - 1];
    p->link_begin[0] = 0;
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
    /* Labels that are forbidden from the start are dead. */
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

void fgi_problem_scratch_take(fgi_problem_scratch *scratch, const fgi_model *m, fgi_arena *arena) {
    scratch->nu = fgi_take(arena, m->s->max_card, double);
    scratch->minus = fgi_take(arena, (int64_t)m->s->max_arity * m->s->max_card, double);
    scratch->wide = fgi_take(arena, fgi_marginal_scratch(m), double);
}

int fgi_problem_remove(fgi_problem *p, int32_t var, int32_t a) {
    p->unary[p->begin[var] + a] = -INFINITY;
    p->belief[p->begin[var] + a] = -INFINITY;
    for (int32_t k = p->link_begin[var]; k < p->link_begin[var + 1]; k++) p->message[p->links[k].mu + a] = 0;
    return --p->alive[var] > 0;
}

static double minus(double mu, double unary) { return unary == -INFINITY ? -INFINITY : -mu; }

/* A factor of two binary variables: most of a grid, and a call and its loops take three times as long as the work. */
static void binary_marginal(const fgi_problem *p, const fgi_link *l, double *nu) {
    const int32_t other = p->slot_begin[l->factor] + 1 - l->position;
    const double *t = p->table[l->factor], *mu = p->message + p->slot_message[other],
                 *unary = p->unary + p->begin[p->slot_var[other]];
    const double h0 = minus(mu[0], unary[0]), h1 = minus(mu[1], unary[1]);
    nu[0] = fgi_larger(t[0] + h0, (l->position ? t[2] : t[1]) + h1);
    nu[1] = fgi_larger((l->position ? t[1] : t[2]) + h0, t[3] + h1);
}

/* Two variables with few labels each: most of what is left deep in the tree. By callgrind on grids, a product of any
 * shape takes 300 instructions for 3 x 3 states, this 140; with 16 states and more the kernels are quicker. */
static void few_marginal(const fgi_problem *p, const fgi_link *l, double *restrict nu) {
    const int32_t other = p->slot_begin[l->factor] + 1 - l->position, j = p->slot_var[other];
    const int32_t n_from = p->card[j], n_to = p->card[p->slot_var[p->slot_begin[l->factor] + l->position]];
    const double *restrict t = p->table[l->factor], *mu = p->message + p->slot_message[other];
    const double *unary = p->unary + p->begin[j];
    const int32_t step = l->position ? 1 : n_from, next = l->position ? n_to : 1; /* to the next label of each */
    double h = minus(mu[0], unary[0]);
    for (int32_t b = 0; b < n_to; b++) nu[b] = t[b * step] + h;
    for (int32_t a = 1; a < n_from; a++) {
        t += next;
        if (unary[a] == -INFINITY) continue;
        h = -mu[a];
        for (int32_t b = 0; b < n_to; b++) nu[b] = fgi_larger(nu[b], t[b * step] + h);
    }
}

static void pair_marginal(const fgi_problem *p, const fgi_link *l, double *nu, double *h) {
    const int32_t first = p->slot_begin[l->factor], other = first + 1 - l->position, j = p->slot_var[other];
    const double *t = p->table[l->factor], *mu = p->message + p->slot_message[other], *unary = p->unary + p->begin[j];
    const int32_t rows = p->card[p->slot_var[first]], cols = p->card[p->slot_var[first + 1]];
    for (int32_t a = 0; a < p->card[j]; a++) h[a] = minus(mu[a], unary[a]);
    (l->position ? p->kernels->maxplus_rows : p->kernels->maxplus_cols)(t, rows, cols, 1, h, nu);
}

/* nu(a) = max over the states with y_k = a of table - messages of the other variables. */
static void marginal(const fgi_problem *p, const fgi_link *l, fgi_problem_scratch *scratch) {
    const int32_t first = p->slot_begin[l->factor], arity = p->slot_begin[l->factor + 1] - first;
    const int32_t *vars = p->slot_var + first;
    if (arity == 2) {
        if (p->card[vars[0]] == 2 && p->card[vars[1]] == 2) binary_marginal(p, l, scratch->nu);
        else if (p->states[l->factor] <= FEW_STATES) few_marginal(p, l, scratch->nu);
        else pair_marginal(p, l, scratch->nu, scratch->minus);
        return;
    }
    const double *g[MAX_ARITY];
    double *to = scratch->minus;
    for (int32_t q = 0; q < arity; q++) {
        const int32_t n = p->card[vars[q]];
        g[q] = to;
        if (q == l->position) continue;
        const double *mu = p->message + p->slot_message[first + q], *unary = p->unary + p->begin[vars[q]];
        for (int32_t a = 0; a < n; a++) to[a] = minus(mu[a], unary[a]);
        to += n;
    }
    fgi_table_marginal(
        p->kernels, p->table[l->factor], 1, arity, vars, p->card, l->position, g, scratch->nu, scratch->wide);
}

/* Maximum of the reparametrised factor. */
static double factor_maximum(const fgi_problem *p, int32_t f, fgi_problem_scratch *scratch) {
    const int32_t first = p->slot_begin[f], i = p->slot_var[first];
    const double *mu = p->message + p->slot_message[first], *unary = p->unary + p->begin[i];
    double best = -INFINITY;
    marginal(p, &(fgi_link){.factor = f}, scratch);
    for (int32_t a = 0; a < p->card[i]; a++)
        if (unary[a] > -INFINITY) best = fgi_larger(best, scratch->nu[a] - mu[a]);
    return best;
}

void fgi_problem_set_messages(fgi_problem *p, const double *mu, fgi_problem_scratch *scratch) {
    for (int32_t s = 0; s < p->n_slots; s++)
        for (int32_t a = 0, i = p->slot_var[s]; a < p->card[i]; a++, mu++)
            if (p->unary[p->begin[i] + a] > -INFINITY && fabs(*mu) < INFINITY) p->message[p->slot_message[s] + a] = *mu;
    /* The bound is a constant and the maxima of all reparametrised parts: take the old maxima out, put the new ones in.
     */
    fgi_sum sum = {p->bound, p->carry, 0};
    for (int32_t f = 0; f < p->n_factors; f++) fgi_sum_add(&sum, -p->factor_max[f]);
    for (int32_t i = 0; i < p->n; i++) {
        double best = -INFINITY;
        for (int32_t a = 0; a < p->card[i]; a++) {
            double b = p->unary[p->begin[i] + a];
            for (int32_t k = p->link_begin[i]; b > -INFINITY && k < p->link_begin[i + 1]; k++)
                b += p->message[p->links[k].mu + a];
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
        for (int32_t a = 0; a < p->card[p->slot_var[s]]; a++)
            p->largest[1] = fgi_larger(p->largest[1], fabs(p->message[p->slot_message[s] + a]));
}

/* Messages of the factors that have changed since the sweep before this one collected here; all of them if fresh. */
static void collect(fgi_problem *p, int32_t var, int forward, int fresh, fgi_problem_scratch *scratch) {
    const double *unary = p->unary + p->begin[var];
    const int32_t n = p->card[var];
    for (int32_t k = p->link_begin[var]; k < p->link_begin[var + 1]; k++) {
        const fgi_link *l = &p->links[k];
        if (!fresh && !fgi_link_has_changed(l, forward)) continue;
        double *mu = p->message + l->mu;
        marginal(p, l, scratch);
        p->work += p->states[l->factor];
        for (int32_t a = 0; a < n; a++) mu[a] = unary[a] > -INFINITY ? scratch->nu[a] : 0;
        if (p->factor_max[l->factor] != 0) add_to_bound(p, -p->factor_max[l->factor]);
        p->factor_max[l->factor] = 0;
    }
    p->work += (p->link_begin[var + 1] - p->link_begin[var] + 1) * (int64_t)(p->card[var] + 16);
}

/* Labels that cannot beat the cutoff go; the best of all labels, which is in the bound, is taken out of the others. */
static int32_t remove_labels(fgi_problem *p, int32_t var, double best, double cutoff) {
    double *unary = p->unary + p->begin[var], *belief = p->belief + p->begin[var];
    int32_t removed = 0;
    for (int32_t a = 0; a < p->card[var]; a++) {
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
    return removed;
}

/* fgi_reweight_share and the largest of what it wrote, in one loop: with few labels a loop costs more than its work. */
static double share_few(double *message, const double *belief, int32_t n, const fgi_link *l, double part, double most) {
    for (int32_t a = 0; a < n; a++) {
        const double mu = message[l->mu + a] - part * (belief[a] > -INFINITY ? belief[a] : 0);
        message[l->mu + a] = mu;
        most = fgi_larger(most, fabs(mu));
    }
    return most;
}

/* The factors that go on in the direction of the sweep get their shares back. */
static void distribute(fgi_problem *p, int32_t var, int forward, double *surplus) {
    const int32_t n = p->card[var];
    const fgi_link *links = p->links + p->link_begin[var];
    const int64_t n_links = p->link_begin[var + 1] - p->link_begin[var];
    const double *belief = p->belief + p->begin[var];
    double largest = p->largest[0];
    if (n <= FEW_LABELS) {
        const double part = fgi_reweight_part(links, n_links, forward);
        for (int64_t e = 0; part > 0 && e < n_links; e++)
            if (fgi_link_goes_on(&links[e], forward))
                largest = share_few(p->message, belief, n, &links[e], part, largest);
    } else {
        for (int32_t a = 0; a < n; a++) surplus[a] = belief[a] > -INFINITY ? belief[a] : 0;
        fgi_reweight_share(p->kernels, surplus, n, p->message, links, n_links, forward);
        for (int64_t e = 0; e < n_links; e++)
            for (int32_t a = 0; fgi_link_goes_on(&links[e], forward) && a < n; a++)
                largest = fgi_larger(largest, fabs(p->message[links[e].mu + a]));
    }
    p->largest[0] = largest;
}

int32_t fgi_problem_update(
    fgi_problem *p, int32_t var, int forward, int fresh, double cutoff, fgi_problem_scratch *scratch) {
    if (var == (forward ? 0 : p->n - 1)) { /* a sweep begins */
        p->largest[1] = p->largest[0];
        p->largest[0] = 0;
        p->sweeps++;
    }
    collect(p, var, forward, fresh, scratch);
    const double best = fgi_reweight_sum(p->kernels, p->unary + p->begin[var], p->card[var], p->message,
        p->links + p->link_begin[var], p->link_begin[var + 1] - p->link_begin[var], p->belief + p->begin[var]);
    if (best == -INFINITY) {
        p->bound = -INFINITY;
        return -1;
    }
    add_to_bound(p, best);
    if (p->bound <= cutoff) return -1;
    const int32_t removed = remove_labels(p, var, best, cutoff);
    distribute(p, var, forward, scratch->nu);
    return removed;
}

void fgi_problem_decode(const fgi_problem *p, int32_t *labels, fgi_problem_scratch *scratch) {
    double *score = scratch->nu;
    for (int32_t i = 0; i < p->n; i++) labels[i] = -1;
    for (int32_t i = 0; i < p->n; i++) {
        const double *unary = p->unary + p->begin[i];
        memcpy(score, unary, (size_t)p->card[i] * sizeof *score);
        for (int32_t k = p->link_begin[i]; k < p->link_begin[i + 1]; k++) {
            const int32_t f = p->links[k].factor, first = p->slot_begin[f];
            int32_t arity = p->slot_begin[f + 1] - first, unknown = 0;
            int64_t at = 0, stride = 1, own = 0;
            for (int32_t q = arity - 1; q >= 0; q--) {
                int32_t j = p->slot_var[first + q];
                if (j == i) own = stride;
                else if (labels[j] < 0) unknown = 1;
                else at += stride * labels[j];
                stride *= p->card[j];
            }
            const double *mu = p->message + p->links[k].mu;
            for (int32_t a = 0; a < p->card[i]; a++) {
                if (unary[a] == -INFINITY) continue;
                score[a] += unknown ? mu[a] : p->table[f][at + own * a];
            }
        }
        int32_t best = 0;
        for (int32_t a = 1; a < p->card[i]; a++)
            if (score[a] > score[best]) best = a;
        labels[i] = best;
    }
}
