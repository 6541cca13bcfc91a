/* exact/costs_check.c - the invariants of a cost network, looked at in checked builds: see exact/costs.h. */
#include "exact/costs.h"

#ifdef FGI_CHECKED

/* Costs of factors are looked at where there are so few states: the others take longer than all else together. */
enum { FEW_STATES = 4096 };

static void check_queue(const fgi_costs *c, const fgi_costs_queue *q) {
    int32_t count = 0;
    for (int32_t w = 0; w <= c->n / 64; w++) {
        for (uint64_t word = q->words[w]; word; word &= word - 1) {
            fgi_assert(64 * w + fgi_lowest_bit(word) < c->n);
            fgi_assert(w >= q->first && w <= q->last);
            count++;
        }
    }
    fgi_assert(count == q->count);
}

static void check_variable(const fgi_costs *c, int32_t i) {
    const int64_t first = c->begin[i], size = c->size[i];
    fgi_assert(c->begin[i + 1] - first == c->card[i]);
    fgi_assert(size >= 0 && size <= c->card[i]);
    fgi_assert(size > 0 || c->conflict || c->infeasible);
    fgi_assert(c->zero[i] >= 0 && c->zero[i] < c->card[i]);
    for (int32_t k = 0; k < c->card[i]; k++) {
        const int32_t a = c->domain[first + k];
        fgi_assert(a >= 0 && a < c->card[i]);
        fgi_assert(c->place[first + a] == k);
        if (k >= size) continue;
        fgi_assert(c->unary[first + a] >= 0);
        fgi_assert(c->unary[first + a] <= c->most[i]);
    }
    for (int32_t k = c->adj_begin[i]; k < c->adj_begin[i + 1]; k++) {
        const int32_t s = c->adj[k], f = c->slot_factor[s];
        fgi_assert(c->slot_var[s] == i);
        fgi_assert(c->slot_place[s] == k);
        fgi_assert(((uint64_t)c->live[k >> 6] >> (k & 63) & 1) == (c->spent[f] == 0));
    }
}

static void check_pair(const fgi_costs *c, int32_t s) {
    const int32_t i = c->slot_var[s], j = c->slot_var[s + 1];
    fgi_assert(c->slot_other[s] == s + 1 && c->slot_other[s + 1] == s);
    fgi_assert(c->slot_stride[s] == c->card[j] && c->slot_stride[s + 1] == 1);
    if (c->size[i] * c->size[j] > FEW_STATES) return;
    for (int64_t p = 0; p < c->size[i]; p++)
        for (int64_t q = 0; q < c->size[j]; q++) {
            const int32_t a = c->domain[c->begin[i] + p], b = c->domain[c->begin[j] + q];
            const int64_t there = c->table[s][a * c->slot_stride[s] + b];
            fgi_assert(there == c->table[s + 1][(int64_t)b * c->card[i] + a]);
            fgi_assert(there - c->shift[c->slot_shift[s] + a] - c->shift[c->slot_shift[s + 1] + b] >= 0);
        }
}

static void check_factor(const fgi_costs *c, int32_t f) {
    const int32_t first = c->slot_begin[f], arity = c->slot_begin[f + 1] - first;
    fgi_assert(arity >= 2 && arity <= FGI_COSTS_ARITY);
    for (int32_t s = first; s < first + arity; s++) {
        fgi_assert(c->slot_factor[s] == f);
        fgi_assert(c->slot_var[s] >= 0 && c->slot_var[s] < c->n);
        fgi_assert((c->slot_other[s] >= 0) == (arity == 2));
    }
    fgi_assert(c->spent[f] == 0 || c->spent[f] == FGI_SPENT || c->spent[f] == FGI_MOVED);
    fgi_assert(c->weight[f] > 0 && c->load[f] >= 0);
    if (arity == 2 && c->spent[f] == 0) check_pair(c, first);
}

void fgi_costs_check(const fgi_costs *c) {
    if (c->infeasible || c->failure) return; /* nothing, or not all, is there */
    fgi_assert(c->lower >= 0 && c->upper <= FGI_COST_LARGEST);
    fgi_assert(c->conflict || c->lower < c->upper);
    fgi_assert(c->begin[0] == 0 && c->adj_begin[0] == 0 && c->adj_begin[c->n] == c->n_slots);
    for (int32_t i = 0; i < c->n; i++) check_variable(c, i);
    for (int32_t f = 0; f < c->n_factors + (int32_t)c->n_drops && f < c->n_factors + c->n_made; f++)
        if (f < c->n_factors || c->spent[f] == 0) check_factor(c, f);
    const fgi_costs_queue *const queues[] = {
        &c->unsupported, &c->bare, &c->dearer, &c->directed, &c->existential, &c->decided, &c->loose};
    for (size_t k = 0; k < sizeof queues / sizeof queues[0]; k++) check_queue(c, queues[k]);
    fgi_assert(c->n_trail >= 0 && c->n_trail <= c->trail_capacity);
    for (int64_t k = 0; k < c->n_trail; k++) fgi_assert(c->trail[k].where != NULL);
    int64_t dropped = 0;
    for (int32_t i = 0; i < c->n; i++) dropped += c->dropped[i];
    fgi_assert(dropped == c->n_drops && c->n_drops == c->n_dropped && c->n_drops <= c->n);
}

#endif
