/* exact/support.c - supports of labels in factors: the steps that soft arc consistency is made of. See exact/costs.h;
 * Larrosa & Schiex, "In the quest of the best form of local consistency for weighted CSP", 2003 (full directional
 * supports); de Givry, Heras, Zytnicki & Larrosa, "Existential arc consistency", 2005. */
#include "exact/costs.h"
#include "exact/support.h"

enum { VISIT = 6 }; /* work of looking at a factor, in table entries */

/* The largest shift: sums of shifts stay far from overflow and below FGI_COST_FORBIDDEN. A step that would go beyond is
 * not taken, which makes the bound weaker but never wrong. */
static int64_t most_shift(int32_t arity) { return FGI_COST_FORBIDDEN / 4 / arity; }

/* ---- pairwise factors ------------------------------------------------------------------------------------------ */

/* A pairwise factor seen from one of its variables, i. */
typedef struct pair {
    int32_t slot, other, i, j;
    const int64_t *table; /* rows: labels of i */
    const int64_t *shift_i, *shift_j, *unary_j;
    int64_t cols, size_j;
    const int32_t *place_j;
    int32_t *support;
    int used; /* unaries of j count */
    int prepared;
    int64_t grain; /* costs below it stay where they are */
} pair;

static inline pair pair_of(const fgi_costs *c, int32_t slot, int used) {
    const int32_t other = c->slot_other[slot], i = c->slot_var[slot], j = c->slot_var[other];
    fgi_assert(c->slot_other[other] == slot && i != j && c->size[j] > 0);
    const int64_t begin = c->begin[j], size = c->size[j];
    return (pair){slot, other, i, j, c->table[slot], c->shift + c->slot_shift[slot], c->shift + c->slot_shift[other],
        c->unary + begin, c->card[j], size, c->place + begin, c->support + c->slot_shift[slot], used, 0,
        size > 1 ? c->grain : 1};
}

/* Does the label of j that cost nothing with a when that was last looked at still do so? Mostly. */
static inline int is_supported(const pair *p, int32_t a) {
    const int32_t b = p->support[a];
    fgi_assert(b >= 0 && b < p->cols);
    if (p->place_j[b] >= p->size_j) return 0;
    const int64_t cost = p->table[a * p->cols + b] - p->shift_i[a] - p->shift_j[b];
    return cost + (p->used ? p->unary_j[b] : 0) < p->grain;
}

/* The least cost of label a in the factor, its support being remembered. */
static int64_t find_support(fgi_costs *c, pair *p, int32_t a) {
    const int64_t *row = p->table + a * p->cols;
    int32_t b = p->support[a];
    const int32_t *domain = c->domain + c->begin[p->j];
    const int64_t size = c->size[p->j];
    int64_t *add = c->used, least = INT64_MAX;
    if (!p->prepared) {
        for (int64_t k = 0; k < size; k++) add[k] = (p->used ? p->unary_j[domain[k]] : 0) - p->shift_j[domain[k]];
        p->prepared = 1;
        c->work += size;
    }
    for (int64_t k = 0; k < size; k++) {
        const int64_t cost = row[domain[k]] + add[k];
        if (cost < least) {
            least = cost;
            b = domain[k];
        }
    }
    c->work += size;
    p->support[a] = b;
    least -= p->shift_i[a];
    fgi_assert(least >= 0 && b >= 0 && b < p->cols);
    return least < p->grain ? 0 : least;
}

static inline int64_t pair_least(fgi_costs *c, pair *p, int32_t a) {
    return is_supported(p, a) ? 0 : find_support(c, p, a);
}

/* What has to be extended from labels of j so that the factor alone costs what was pulled. */
static int pair_extensions(fgi_costs *c, const pair *p, int64_t *extended) {
    const int32_t *di = c->domain + c->begin[p->i], *dj = c->domain + c->begin[p->j];
    const int64_t size = c->size[p->j], limit = most_shift(2);
    int any = 0;
    for (int64_t k = 0; k < size; k++) extended[k] = 0;
    for (int64_t q = 0; q < c->size[p->i]; q++) {
        const int32_t a = di[q];
        if (c->pulled[a] <= 0) continue;
        const int64_t *row = p->table + a * p->cols, wanted = c->pulled[a] + p->shift_i[a];
        for (int64_t k = 0; k < size; k++) {
            const int64_t lacks = wanted - row[dj[k]] + p->shift_j[dj[k]];
            if (lacks > extended[k]) extended[k] = lacks;
        }
    }
    c->work += size * c->size[p->i];
    for (int64_t k = 0; k < size; k++) {
        if (extended[k] == 0) continue;
        any = 1;
        if (p->shift_j[dj[k]] - extended[k] < -limit) return -1;
    }
    return any;
}

static void pull_pair(fgi_costs *c, int32_t slot, int used) {
    pair p = pair_of(c, slot, used);
    const int32_t *di = c->domain + c->begin[p.i], *dj = c->domain + c->begin[p.j];
    const int64_t *unary_i = c->unary + c->begin[p.i], limit = most_shift(2);
    int any = 0, left = 0;
    for (int64_t q = c->size[p.i] - 1; q >= 0; q--) {
        const int32_t a = di[q];
        const int64_t cost = c->pulled[a] = pair_least(c, &p, a);
        if (cost == 0) continue;
        if (cost >= c->upper - c->lower - unary_i[a]) fgi_costs_remove(c, p.i, a);
        else if (p.shift_i[a] + cost > limit) {
            c->pulled[a] = 0;
            left = 1;
        } else any = 1;
    }
    c->work += c->size[p.i] + VISIT;
    if (c->conflict) return;
    int moved = 0;
    if (any) {
        moved = used ? pair_extensions(c, &p, c->total) : 0;
        if (moved < 0) return;
        for (int64_t k = 0; moved && k < c->size[p.j]; k++)
            if (c->total[k] > 0) fgi_costs_extend(c, p.other, dj[k], c->total[k]);
        for (int64_t q = 0; q < c->size[p.i]; q++)
            if (c->pulled[di[q]] > 0) fgi_costs_project(c, slot, di[q], c->pulled[di[q]]);
    }
    if (c->size[p.j] == 1 && !left) fgi_costs_spend(c, c->slot_factor[slot], FGI_SPENT);
    else if (moved) pull_pair(c, p.other, 0); /* what the factor does not need goes back */
}

/* ---- any factor ------------------------------------------------------------------------------------------------ */

void fgi_costs_pull(fgi_costs *c, int32_t slot, int full) {
    fgi_assert(slot >= 0 && slot < c->n_slots + 2 * c->n_made);
    const int32_t f = c->slot_factor[slot];
    if (c->spent[f]) return;
    c->culprit = f;
    if (c->slot_other[slot] >= 0) pull_pair(c, slot, full);
    else fgi_cells_pull(c, slot, full ? ~(uint32_t)0 : 0);
}

/* Which of the factor's variables have unaries that no other factor has used in this look at i, as bits: now taken. */
static uint32_t take_unaries(fgi_costs *c, int32_t slot) {
    const int32_t f = c->slot_factor[slot];
    fgi_assert(!c->spent[f]);
    uint32_t free_ones = 0;
    if (c->slot_other[slot] >= 0) {
        const int32_t j = c->slot_var[c->slot_other[slot]];
        free_ones = c->stamp[j] != c->stamps;
        c->stamp[j] = c->stamps;
        return free_ones;
    }
    for (int32_t s = c->slot_begin[f]; s < c->slot_begin[f + 1]; s++) {
        const int32_t j = c->slot_var[s];
        if (s == slot || c->stamp[j] == c->stamps) continue;
        c->stamp[j] = c->stamps;
        free_ones |= (uint32_t)1 << (s - c->slot_begin[f]);
    }
    return free_ones;
}

static int is_pair(const fgi_costs *c, int32_t slot) { return c->slot_other[slot] >= 0; }

static int costs_nothing(fgi_costs *c, int32_t i, int32_t a) {
    fgi_assert(a >= 0 && a < c->card[i]);
    if (!fgi_costs_alive(c, i, a) || c->unary[c->begin[i] + a] >= c->grain) return 0;
    c->stamps++;
    for (int32_t k = fgi_costs_first(c, i); k >= 0; k = fgi_costs_next(c, i, k + 1)) {
        const int32_t slot = c->adj[k];
        c->work += VISIT;
        if (!is_pair(c, slot)) {
            uint32_t use;
            if (!fgi_cells_hold(c, slot, a, &use) && fgi_cells_least(c, slot, use, a) > 0) return 0;
            continue;
        }
        const int32_t j = c->slot_var[c->slot_other[slot]];
        const int used = c->stamp[j] != c->stamps;
        c->stamp[j] = c->stamps;
        pair p = pair_of(c, slot, used);
        if (pair_least(c, &p, a) > 0) return 0;
    }
    return 1;
}

/* total[a]: a bound on what label a costs beyond `lower`. */
static void add_up(fgi_costs *c, int32_t i, int64_t *total) {
    const int32_t *domain = c->domain + c->begin[i];
    const int64_t room = c->upper - c->lower;
    for (int64_t q = 0; q < c->size[i]; q++) total[domain[q]] = c->unary[c->begin[i] + domain[q]];
    c->stamps++;
    for (int32_t k = fgi_costs_first(c, i); k >= 0; k = fgi_costs_next(c, i, k + 1)) {
        const int32_t slot = c->adj[k];
        const uint32_t use = take_unaries(c, slot);
        pair p = is_pair(c, slot) ? pair_of(c, slot, use != 0) : (pair){0};
        for (int64_t q = 0; q < c->size[i]; q++) {
            const int32_t a = domain[q];
            if (total[a] >= room) continue;
            const int64_t cost = is_pair(c, slot) ? pair_least(c, &p, a) : fgi_cells_least(c, slot, use, a);
            total[a] = cost < room ? total[a] + cost : room;
        }
        c->work += c->size[i] + VISIT;
    }
}

void fgi_costs_exist(fgi_costs *c, int32_t i) {
    fgi_assert(i >= 0 && i < c->n && !c->conflict);
    if (costs_nothing(c, i, c->zero[i])) return;
    const int32_t *domain = c->domain + c->begin[i];
    int64_t *total = c->sums, least = INT64_MAX;
    add_up(c, i, total);
    for (int64_t q = 0; q < c->size[i]; q++)
        if (total[domain[q]] < least) {
            least = total[domain[q]];
            c->zero[i] = domain[q];
        }
    const int64_t room = c->upper - c->lower;
    for (int64_t q = c->size[i] - 1; q >= 0; q--)
        if (total[domain[q]] >= room) fgi_costs_remove(c, i, domain[q]);
    fgi_assert(least >= 0 || c->size[i] == 0);
    if (least < c->grain || c->conflict) return;
    c->stamps++;
    const uint32_t stamp = c->stamps;
    for (int32_t k = fgi_costs_first(c, i); k >= 0 && !c->conflict; k = fgi_costs_next(c, i, k + 1)) {
        const int32_t slot = c->adj[k], f = c->slot_factor[slot];
        c->stamps = stamp;
        const uint32_t use = take_unaries(c, slot);
        c->culprit = f;
        if (is_pair(c, slot)) pull_pair(c, slot, use != 0);
        else fgi_cells_pull(c, slot, use);
    }
    if (!c->conflict) fgi_costs_settle(c, i);
}
