/* exact/drop.c - variables with few factors left: see exact/costs.h.
 *
 * Bucket elimination inside the tree (Larrosa, "Boosting search with variable elimination", 2000): what remains of a
 * network deep in the tree is sparse, and much of it need not be searched. The best that such a variable can do is a
 * function of one or two others; it goes to their unaries or to the pairwise factor on them, which is made if there is
 * none, and takes the places of the factors that it stands for in the lists of both. */
#include "base/array.h"
#include "exact/costs.h"

enum {
    MOST_STEPS = 8192,          /* steps that making one table may take */
    MOST_MADE_ENTRIES = 4000000 /* entries of all made tables: 32 MB */
};

/* What is left of a factor: i with one other variable that has a choice. */
typedef struct rest {
    int32_t f, other; /* the factor, its slot of the other variable; -1: there is none */
    const int64_t *table, *shift_i, *shift_j;
    int64_t stride_i, stride_j, fixed; /* `fixed`: what variables without a choice have moved */
} rest;

/* Returns 0 if there are more others with a choice. */
static int rest_of(const fgi_costs *c, int32_t slot, rest *out) {
    const int32_t f = c->slot_factor[slot], first = c->slot_begin[f], end = c->slot_begin[f + 1];
    *out = (rest){.f = f, .other = -1, .table = c->table[first], .shift_i = c->shift + c->slot_shift[slot]};
    out->stride_i = c->slot_stride[slot];
    for (int32_t s = first; s < end; s++) {
        const int32_t j = c->slot_var[s];
        if (s == slot) continue;
        if (c->size[j] > 1) {
            if (out->other >= 0) return 0;
            out->other = s;
            out->shift_j = c->shift + c->slot_shift[s];
            out->stride_j = c->slot_stride[s];
            continue;
        }
        const int32_t b = c->domain[c->begin[j]];
        out->table += b * c->slot_stride[s];
        out->fixed += c->shift[c->slot_shift[s] + b];
    }
    return 1;
}

static int64_t cost_at(const rest *r, int32_t a, int32_t b) {
    int64_t cost = r->table[a * r->stride_i + (r->other >= 0 ? b * r->stride_j : 0)] - r->fixed - r->shift_i[a];
    if (r->other >= 0) cost -= r->shift_j[b];
    return cost < FGI_COST_LARGEST ? cost : FGI_COST_LARGEST;
}

static int64_t sum_of(int64_t a, int64_t b) { return a < FGI_COST_LARGEST - b ? a + b : FGI_COST_LARGEST; }

/* The least that i costs with labels b and d of the others. */
static int64_t least(const fgi_costs *c, int32_t i, const rest *r, int32_t n, int32_t b, int32_t d) {
    const int32_t *domain = c->domain + c->begin[i];
    int64_t best = FGI_COST_LARGEST;
    for (int64_t q = 0; q < c->size[i]; q++) {
        int64_t cost = c->unary[c->begin[i] + domain[q]];
        if (n > 0) cost = sum_of(cost, cost_at(&r[0], domain[q], b));
        if (n > 1) cost = sum_of(cost, cost_at(&r[1], domain[q], d));
        if (cost < best) best = cost;
    }
    return best;
}

static int32_t other_of(const fgi_costs *c, const rest *r) {
    fgi_assert(r->other >= 0 && r->other < c->n_slots + 2 * c->n_made);
    return c->slot_var[r->other];
}

static void into_unary(fgi_costs *c, int32_t i, const rest *r, int32_t n) {
    const int32_t j = other_of(c, r), *domain = c->domain + c->begin[j];
    c->work += n * c->size[i] * c->size[j];
    for (int64_t q = c->size[j] - 1; q >= 0; q--) {
        const int64_t cost = least(c, i, r, n, domain[q], domain[q]);
        if (cost > 0) fgi_costs_raise(c, j, domain[q], cost);
    }
}

/* The slot of j in the pairwise factor on j and l, -1: there is none. */
static int32_t pair_on(const fgi_costs *c, int32_t j, int32_t l) {
    for (int32_t k = c->adj_begin[j]; k < c->adj_begin[j + 1]; k++) {
        const int32_t other = c->slot_other[c->adj[k]];
        if (other >= 0 && c->slot_var[other] == l) return c->adj[k];
    }
    return -1;
}

static int has_room(fgi_costs *c, fgi_costs_drop *d, int64_t entries) {
    if (entries <= d->entries) return 1;
    if (c->made_entries + entries - d->entries > MOST_MADE_ENTRIES) return 0;
    const int64_t before = d->entries;
    if (!fgi_grow(&d->table, &d->entries, entries, sizeof *d->table)) {
        c->failure = FGI_NO_MEMORY;
        return 0;
    }
    c->made_entries += d->entries - before;
    c->bytes += (d->entries - before) * (int64_t)sizeof *d->table;
    return 1;
}

/* A factor without costs on the two others, in the place of those of i. */
static int32_t make_pair(fgi_costs *c, fgi_costs_drop *d, const rest *r) {
    const int32_t f = c->n_factors + (int32_t)c->n_drops, s = c->slot_begin[f];
    const int32_t j = other_of(c, &r[0]), l = other_of(c, &r[1]);
    const int64_t states = (int64_t)c->card[j] * c->card[l];
    fgi_assert(j != l && c->n_drops >= 0 && c->n_drops <= c->n);
    if (c->n_drops >= c->n_made || !has_room(c, d, 2 * states)) return -1;
    c->table[s] = d->table;
    c->table[s + 1] = d->table + states;
    c->slot_stride[s] = c->card[l];
    c->slot_stride[s + 1] = 1;
    d->made = f;
    for (int32_t q = 0; q < 2; q++) {
        const int32_t v = q ? l : j, w = q ? j : l, *domain = c->domain + c->begin[v];
        c->slot_var[s + q] = v;
        for (int64_t p = 0; p < c->size[v]; p++) {
            c->shift[c->slot_shift[s + q] + domain[p]] = 0;
            c->support[c->slot_shift[s + q] + domain[p]] = c->domain[c->begin[w]];
        }
        d->slot[q] = r[q].other;
        d->adj[q] = c->slot_place[r[q].other];
        c->adj[d->adj[q]] = s + q;
        c->slot_place[s + q] = (int32_t)d->adj[q];
    }
    c->spent[f] = 0;
    c->load[f] = 0;
    c->weight[f] = 1; /* the sum of both weights, or half of it, makes trees larger (decision 0016) */
    return s;
}

/* The costs of i onto those of the pairwise factor in which `slot` is that of r[0]'s other variable. */
static void into_pair(fgi_costs *c, int32_t i, const rest *r, int32_t slot, int made) {
    const int32_t f = c->slot_factor[slot], s = c->slot_begin[f], j = other_of(c, &r[0]), l = other_of(c, &r[1]);
    const int32_t *dj = c->domain + c->begin[j], *dl = c->domain + c->begin[l];
    const int64_t room = c->upper - c->lower;
    c->work += c->size[i] * c->size[j] * c->size[l];
    for (int64_t p = 0; p < c->size[j]; p++)
        for (int64_t q = 0; q < c->size[l]; q++) {
            const int64_t cost = least(c, i, r, 2, dj[p], dl[q]);
            if (made) {
                const int64_t total = cost >= room ? FGI_COST_FORBIDDEN : cost;
                c->table[s][dj[p] * c->slot_stride[s] + dl[q]] = total;
                c->table[s + 1][(int64_t)dl[q] * c->card[j] + dj[p]] = total;
            } else if (slot == s) fgi_costs_add(c, f, dj[p], dl[q], cost);
            else fgi_costs_add(c, f, dl[q], dj[p], cost);
        }
}

/* New costs in a pairwise factor. */
static void look_at(fgi_costs *c, int32_t slot) {
    const int32_t s = c->slot_begin[c->slot_factor[slot]], first = s + (c->slot_var[s] > c->slot_var[s + 1]);
    fgi_costs_push(&c->existential, c->slot_var[s]);
    fgi_costs_push(&c->existential, c->slot_var[s + 1]);
    fgi_costs_pull(c, first, 1);
    if (!c->conflict) fgi_costs_pull(c, s == first ? s + 1 : s, 0);
}

void fgi_costs_consider_drop(fgi_costs *c, int32_t i) {
    rest r[2] = {{0}};
    int32_t n = 0;
    if (c->size[i] < 2 || c->dropped[i]) return;
    for (int32_t k = fgi_costs_first(c, i); k >= 0; k = fgi_costs_next(c, i, k + 1)) {
        if (n == 2 || !rest_of(c, c->adj[k], &r[n])) return;
        n++;
    }
    c->work += 8;
    if ((n > 0 && r[0].other < 0) || (n > 1 && r[1].other < 0)) return; /* soon to be spent */
    const int pair = n == 2 && other_of(c, &r[0]) != other_of(c, &r[1]);
    fgi_assert(c->n_drops < c->n);
    fgi_costs_drop *d = &c->drops[c->n_drops];
    d->var = i;
    d->n_factors = n;
    d->made = -1;
    for (int32_t k = 0; k < n; k++) d->factor[k] = r[k].f;
    int32_t slot = -1, made = 0;
    if (pair) {
        const int32_t j = other_of(c, &r[0]), l = other_of(c, &r[1]);
        if (c->size[i] > MOST_STEPS / c->size[j] || c->size[i] * c->size[j] > MOST_STEPS / c->size[l]) return;
        slot = pair_on(c, j, l);
        made = slot < 0;
        if (made) slot = make_pair(c, d, r);
        if (slot < 0) return;
    } else if (n > 0 && c->size[i] > MOST_STEPS / c->size[other_of(c, &r[0])]) return;
    c->dropped[i] = 1;
    c->n_drops++;
    fgi_costs_count_drop(c);
    if (pair) into_pair(c, i, r, slot, made);
    else if (n > 0) into_unary(c, i, r, n);
    for (int32_t k = 0; k < n; k++) fgi_costs_spend(c, r[k].f, FGI_SPENT);
    if (pair && !c->conflict) look_at(c, slot);
}

void fgi_costs_undrop(fgi_costs *c) {
    while (c->n_drops > c->n_dropped) {
        const fgi_costs_drop *d = &c->drops[--c->n_drops];
        fgi_assert(d->var >= 0 && d->var < c->n && c->dropped[d->var]);
        c->dropped[d->var] = 0;
        for (int32_t q = 0; q < 2 && d->made >= 0; q++) c->adj[d->adj[q]] = d->slot[q];
    }
}

/* What a factor costs with these labels. */
static int64_t cost_of(const fgi_costs *c, int32_t f, const int32_t *labels) {
    const int32_t first = c->slot_begin[f];
    int64_t state = 0, moved = 0;
    for (int32_t s = first; s < c->slot_begin[f + 1]; s++) {
        const int32_t a = labels[c->slot_var[s]];
        fgi_assert(a >= 0 && a < c->card[c->slot_var[s]]);
        state += a * c->slot_stride[s];
        moved += c->shift[c->slot_shift[s] + a];
    }
    const int64_t cost = c->table[first][state] - moved;
    return cost < FGI_COST_LARGEST ? cost : FGI_COST_LARGEST;
}

void fgi_costs_find_dropped(fgi_costs *c, int32_t *labels) {
    for (int64_t k = c->n_drops - 1; k >= 0; k--) { /* those that stand in for it come later */
        const fgi_costs_drop *d = &c->drops[k];
        const int32_t *domain = c->domain + c->begin[d->var];
        int64_t best = INT64_MAX;
        int32_t label = domain[0];
        for (int64_t q = 0; q < c->size[d->var]; q++) {
            labels[d->var] = domain[q];
            int64_t cost = c->unary[c->begin[d->var] + domain[q]];
            for (int32_t p = 0; p < d->n_factors; p++) cost = sum_of(cost, cost_of(c, d->factor[p], labels));
            if (cost >= best) continue;
            best = cost;
            label = domain[q];
        }
        fgi_assert(label >= 0 && label < c->card[d->var]);
        labels[d->var] = label;
        c->work += 4 * c->size[d->var];
    }
}
