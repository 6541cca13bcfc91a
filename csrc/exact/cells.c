/* exact/cells.c - supports in factors of three and more variables: the live states are copied out, and worked on there.
 * See exact/support.h. */
#include "exact/support.h"

enum { MOST_CELLS = FGI_COSTS_CELLS };

/* The live states of a factor, the last variable fastest. */
typedef struct cells {
    int32_t f, first, arity;
    int64_t count;
    int64_t step[FGI_COSTS_ARITY]; /* in cells, between labels of a variable */
} cells;

/* cells[...] = cost of every live state, with the unaries in `use`; with only label `only` of variable `at`, if that is
 * >= 0. Returns 0 when there are too many. */
static int fill(fgi_costs *c, int32_t f, uint32_t use, int32_t at, int32_t only, cells *out) {
    fgi_assert(f >= 0 && f < c->n_factors && !c->spent[f]);
    const int32_t first = c->slot_begin[f], arity = c->slot_begin[f + 1] - first;
    const int32_t *labels[FGI_COSTS_ARITY];
    int64_t sizes[FGI_COSTS_ARITY], count = 1;
    *out = (cells){.f = f, .first = first, .arity = arity};
    for (int32_t k = arity - 1; k >= 0; k--) {
        const int32_t i = c->slot_var[first + k];
        labels[k] = k == at ? &only : c->domain + c->begin[i];
        sizes[k] = k == at ? 1 : c->size[i];
        out->step[k] = count;
        if (sizes[k] > MOST_CELLS / count) return 0;
        count *= sizes[k];
    }
    out->count = count;
    c->work += 4 * count + arity;
    const int64_t *table = c->table[first];
    int64_t filled = 1, *cost = c->cells, *state = c->states;
    cost[0] = state[0] = 0;
    for (int32_t k = arity - 1; k >= 0; k--) { /* from the last label down, so that nothing is overwritten too soon */
        const int32_t i = c->slot_var[first + k];
        const int64_t *shift = c->shift + c->slot_shift[first + k], *unary = c->unary + c->begin[i];
        for (int64_t q = sizes[k] - 1; q >= 0; q--) {
            const int32_t a = labels[k][q];
            const int64_t add = (use >> k & 1 ? unary[a] : 0) - shift[a], move = a * c->slot_stride[first + k];
            for (int64_t s = 0; s < filled; s++) {
                cost[q * filled + s] = cost[s] + add;
                state[q * filled + s] = state[s] + move;
            }
        }
        filled *= sizes[k];
    }
    for (int64_t s = 0; s < count; s++) cost[s] += table[state[s]];
    return 1;
}

/* The least cell of every label of variable k, which is its support from now on: what the pull leaves costs nothing. */
static void supports(fgi_costs *c, const cells *x, int32_t k, int64_t *least) {
    const int32_t i = c->slot_var[x->first + k];
    const int64_t size = c->size[i], step = x->step[k];
    int32_t *support = c->support + c->slot_shift[x->first + k];
    for (int64_t q = 0; q < size; q++) {
        int64_t at = q * step;
        for (int64_t begin = 0; begin < x->count; begin += size * step)
            for (int64_t s = begin + q * step; s < begin + (q + 1) * step; s++)
                if (c->cells[s] < c->cells[at]) at = s;
        least[q] = c->cells[at];
        support[c->domain[c->begin[i] + q]] = (int32_t)c->states[at];
    }
}

/* The least cell of every label of variable k. */
static void marginals(const fgi_costs *c, const cells *x, int32_t k, int64_t *least) {
    const int64_t size = c->size[c->slot_var[x->first + k]], step = x->step[k];
    for (int64_t q = 0; q < size; q++) least[q] = INT64_MAX;
    for (int64_t begin = 0; begin < x->count; begin += size * step)
        for (int64_t q = 0; q < size; q++)
            for (int64_t s = begin + q * step; s < begin + (q + 1) * step; s++)
                if (c->cells[s] < least[q]) least[q] = c->cells[s];
}

/* The cells of every label of variable k become cheaper by take[q]. */
static void subtract(fgi_costs *c, const cells *x, int32_t k, const int64_t *take) {
    const int64_t size = c->size[c->slot_var[x->first + k]], step = x->step[k];
    for (int64_t begin = 0; begin < x->count; begin += size * step)
        for (int64_t q = 0; q < size; q++)
            for (int64_t s = begin + q * step; take[q] && s < begin + (q + 1) * step; s++) c->cells[s] -= take[q];
}

/* Does the state that cost nothing with this label when that was last looked at still do so? */
static int still_supported(const fgi_costs *c, int32_t slot, uint32_t use, int32_t a, int64_t grain) {
    fgi_assert(slot >= 0 && slot < c->n_slots);
    const int32_t f = c->slot_factor[slot], first = c->slot_begin[f], end = c->slot_begin[f + 1];
    uint32_t left = (uint32_t)c->support[c->slot_shift[slot] + a];
    int64_t cost = c->table[first][left];
    for (int32_t s = first; s < end; s++) {
        const uint32_t stride = (uint32_t)c->slot_stride[s]; /* a division takes as long as the rest */
        const int32_t label = (int32_t)(c->slot_log[s] >= 0 ? left >> c->slot_log[s] : left / stride);
        const int32_t i = c->slot_var[s];
        left -= (uint32_t)label * stride;
        if (s == slot ? label != a : !fgi_costs_alive(c, i, label)) return 0;
        cost -= c->shift[c->slot_shift[s] + label];
        if (use >> (s - first) & 1) cost += c->unary[c->begin[i] + label];
    }
    return cost < grain;
}

/* still_supported and the choice of unaries in one walk: most factors end here. */
int fgi_cells_hold(fgi_costs *c, int32_t slot, int32_t a, uint32_t *use) {
    fgi_assert(slot >= 0 && slot < c->n_slots && a >= 0 && a < c->card[c->slot_var[slot]]);
    const int32_t f = c->slot_factor[slot], first = c->slot_begin[f], end = c->slot_begin[f + 1];
    uint32_t left = (uint32_t)c->support[c->slot_shift[slot] + a];
    int64_t cost = c->table[first][left];
    int holds = 1;
    *use = 0;
    for (int32_t s = first; s < end; s++) {
        const uint32_t stride = (uint32_t)c->slot_stride[s];
        const int32_t label = (int32_t)(c->slot_log[s] >= 0 ? left >> c->slot_log[s] : left / stride);
        const int32_t i = c->slot_var[s];
        left -= (uint32_t)label * stride;
        cost -= c->shift[c->slot_shift[s] + label];
        if (s == slot) {
            holds &= label == a;
            continue;
        }
        const int alive = fgi_costs_alive(c, i, label);
        holds &= alive;
        if (c->stamp[i] == c->stamps) continue;
        c->stamp[i] = c->stamps;
        *use |= (uint32_t)1 << (s - first);
        if (alive) cost += c->unary[c->begin[i] + label]; /* those of others may be too large to be added up */
    }
    return holds && cost < c->grain;
}

int64_t fgi_cells_least(fgi_costs *c, int32_t slot, uint32_t use, int32_t a) {
    fgi_assert(slot >= 0 && slot < c->n_slots && fgi_costs_alive(c, c->slot_var[slot], a));
    const int32_t f = c->slot_factor[slot];
    cells x;
    int64_t least = INT64_MAX, at = 0;
    if (still_supported(c, slot, use, a, c->grain)) return 0;
    if (!fill(c, f, use, slot - c->slot_begin[f], a, &x)) return 0;
    for (int64_t s = 0; s < x.count; s++)
        if (c->cells[s] < least) {
            least = c->cells[s];
            at = s;
        }
    c->support[c->slot_shift[slot] + a] = (int32_t)c->states[at];
    return least < c->grain ? 0 : least;
}

/* All labels of the slot's variable have supports that nothing has happened to. */
static int all_supported(const fgi_costs *c, int32_t slot, uint32_t use) {
    const int32_t i = c->slot_var[slot];
    for (int64_t q = 0; q < c->size[i]; q++)
        if (!still_supported(c, slot, use, c->domain[c->begin[i] + q], c->grain)) return 0;
    return 1;
}

/* The unaries that a pull has used but does not need: the cells keep what the factor must have. */
static int extend_needed(fgi_costs *c, const cells *x, int32_t k, int64_t *kept, int64_t limit, int commit) {
    const int32_t slot = x->first + k, j = c->slot_var[slot], *domain = c->domain + c->begin[j];
    const int64_t *unary = c->unary + c->begin[j], *shift = c->shift + c->slot_shift[slot];
    for (int64_t q = 0; q < c->size[j]; q++) {
        const int64_t extended = unary[domain[q]] - kept[q];
        if (extended == 0) continue;
        if (shift[domain[q]] - extended < -limit) return 0;
        if (commit) fgi_costs_extend(c, slot, domain[q], extended);
    }
    return 1;
}

void fgi_cells_pull(fgi_costs *c, int32_t slot, uint32_t use) {
    fgi_assert(slot >= 0 && slot < c->n_slots && c->slot_other[slot] < 0);
    const int32_t f = c->slot_factor[slot], k = slot - c->slot_begin[f], i = c->slot_var[slot];
    const int64_t limit = FGI_COST_FORBIDDEN / 4 / (c->slot_begin[f + 1] - c->slot_begin[f]);
    const int32_t *domain = c->domain + c->begin[i];
    int64_t *least = c->pulled, *slack = c->total;
    cells x;
    use &= ~((uint32_t)1 << k);
    int any = 0, gone = 0, free_others = 0;
    for (int32_t s = c->slot_begin[f]; s < c->slot_begin[f + 1]; s++)
        free_others += s != slot && c->size[c->slot_var[s]] > 1;
    c->work += 4 * c->size[i];
    if (free_others && all_supported(c, slot, use)) return;
    if (!fill(c, f, use, -1, 0, &x)) return;
    supports(c, &x, k, least);
    const int64_t grain = free_others ? c->grain : 1;
    for (int64_t q = c->size[i] - 1; q >= 0; q--) {
        const int32_t a = domain[q];
        if (least[q] >= c->upper - c->lower - c->unary[c->begin[i] + a]) {
            fgi_costs_remove(c, i, a);
            gone = 1;
        } else if (c->shift[c->slot_shift[slot] + a] + least[q] > limit) return;
        any |= least[q] >= grain;
    }
    if (!any && !free_others && !gone) fgi_costs_spend(c, f, FGI_SPENT);
    if (c->conflict || !any) return;
    if (gone) { /* the cells again, without the labels that went */
        if (!fill(c, f, use, -1, 0, &x)) return;
        supports(c, &x, k, least);
    }
    subtract(c, &x, k, least);
    for (int32_t m = 0; m < x.arity; m++) { /* what unaries could do without goes back to them, one after the other */
        if (!(use >> m & 1)) continue;
        const int32_t j = c->slot_var[x.first + m], *dj = c->domain + c->begin[j];
        marginals(c, &x, m, slack);
        for (int64_t q = 0; q < c->size[j]; q++)
            if (slack[q] > c->unary[c->begin[j] + dj[q]]) slack[q] = c->unary[c->begin[j] + dj[q]];
        subtract(c, &x, m, slack);
        if (!extend_needed(c, &x, m, slack, limit, 0)) return; /* nothing else has changed yet */
        extend_needed(c, &x, m, slack, limit, 1);              /* the costs stay in the factor */
    }
    for (int64_t q = 0; q < c->size[i]; q++)
        if (least[q] > 0) fgi_costs_project(c, slot, domain[q], least[q]);
    if (free_others == 0) fgi_costs_spend(c, f, FGI_SPENT);
}

int fgi_cells_move(fgi_costs *c, int32_t f, int32_t k, int32_t later, int32_t pair) {
    fgi_assert(k >= 0 && k < later && pair >= 0 && pair < c->n_factors);
    cells x;
    if (!fill(c, f, 0, -1, 0, &x)) return 0;
    const int32_t i = c->slot_var[x.first + k], j = c->slot_var[x.first + later];
    const int32_t *di = c->domain + c->begin[i], *dj = c->domain + c->begin[j];
    const int turned = c->slot_var[c->slot_begin[pair]] != i;
    for (int64_t p = 0; p < c->size[i]; p++)
        for (int64_t q = 0; q < c->size[j]; q++) {
            const int64_t cost = c->cells[p * c->size[j] + q];
            if (turned) fgi_costs_add(c, pair, dj[q], di[p], cost);
            else fgi_costs_add(c, pair, di[p], dj[q], cost);
        }
    c->work += 2 * x.count;
    fgi_costs_spend(c, f, FGI_MOVED);
    fgi_costs_load(c, pair, (int64_t)c->weight[f]);
    return 1;
}
