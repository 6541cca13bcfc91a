/* exact/costs_change.c - reversible changes of a cost network: see exact/costs.h. */
#include <string.h>
#include "base/array.h"
#include "exact/costs.h"

static void set(fgi_costs *c, int64_t *where, int64_t value) {
    fgi_assert(c->n_trail >= 0 && c->n_trail <= c->trail_capacity);
    if (c->recording) {
        if (c->n_trail == c->trail_capacity &&
            !fgi_grow(&c->trail, &c->trail_capacity, c->n_trail + 1, sizeof *c->trail)) {
            c->failure = FGI_NO_MEMORY; /* the search ends here: what is not undone does not matter */
            return;
        }
        c->trail[c->n_trail++] = (fgi_costs_change){where, *where};
    }
    *where = value;
}

static void clear(fgi_costs_queue *q, int32_t n) {
    if (q->count) memset(q->words, 0, (size_t)(n / 64 + 1) * sizeof *q->words);
    q->count = 0;
}

/* Nothing waits any more. */
static void clear_all(fgi_costs *c) {
    clear(&c->unsupported, c->n);
    clear(&c->directed, c->n);
    clear(&c->existential, c->n);
    clear(&c->dearer, c->n);
    clear(&c->bare, c->n);
    clear(&c->decided, c->n);
    clear(&c->loose, c->n);
}

void fgi_costs_undo(fgi_costs *c, int64_t mark) {
    fgi_assert(mark >= 0 && mark <= c->n_trail);
    while (c->n_trail > mark) {
        const fgi_costs_change *change = &c->trail[--c->n_trail];
        *change->where = change->before;
    }
    fgi_costs_undrop(c);
    clear_all(c);
    c->conflict = 0;
    c->pruned_at = INT64_MAX;         /* the upper limit may have changed since */
    if (c->lower >= c->upper) return; /* its caller will see */
    fgi_audit_rarely(fgi_costs_check(c));
}

static int32_t highest_bit(uint64_t word) {
#if defined(__GNUC__)
    return 63 - __builtin_clzll(word);
#else
    int32_t bit = 63;
    while (!(word >> bit & 1)) bit--;
    return bit;
#endif
}

int32_t fgi_costs_pop_first(fgi_costs_queue *q) {
    fgi_assert(q->count > 0 && q->first <= q->last);
    while (!q->words[q->first]) q->first++;
    const int32_t bit = fgi_lowest_bit(q->words[q->first]);
    q->words[q->first] &= q->words[q->first] - 1;
    q->count--;
    return 64 * q->first + bit;
}

int32_t fgi_costs_pop_last(fgi_costs_queue *q) {
    fgi_assert(q->count > 0 && q->first <= q->last);
    while (!q->words[q->last]) q->last--;
    const int32_t bit = highest_bit(q->words[q->last]);
    q->words[q->last] &= ~((uint64_t)1 << bit);
    q->count--;
    return 64 * q->last + bit;
}

void fgi_costs_remove(fgi_costs *c, int32_t i, int32_t a) {
    fgi_assert(i >= 0 && i < c->n && a >= 0 && a < c->card[i]);
    const int64_t first = c->begin[i];
    const int32_t at = c->place[first + a], last = (int32_t)c->size[i] - 1;
    if (at > last) return;
    const int32_t moved = c->domain[first + last]; /* dead and live labels keep their places when this is undone */
    fgi_assert(c->domain[first + at] == a && moved >= 0 && moved < c->card[i]);
    c->domain[first + at] = moved;
    c->domain[first + last] = a;
    c->place[first + moved] = at;
    c->place[first + a] = last;
    set(c, &c->size[i], last);
    if (last == 0) c->conflict = 1;
    if (last == 1 && c->meet) fgi_costs_push(&c->decided, i);
    fgi_costs_push(&c->unsupported, i);
    if (c->unary[first + a] < c->grain) {
        fgi_costs_push(&c->bare, i);
        fgi_costs_push(&c->dearer, i);
    }
}

void fgi_costs_raise(fgi_costs *c, int32_t i, int32_t a, int64_t cost) {
    fgi_assert(cost >= 0 && fgi_costs_alive(c, i, a));
    int64_t *unary = &c->unary[c->begin[i] + a];
    if (cost >= c->upper - c->lower - *unary) { /* does not overflow: a live label's unary is below upper */
        fgi_costs_remove(c, i, a);
        return;
    }
    if (*unary < c->grain) {
        fgi_costs_push(&c->bare, i);
        fgi_costs_push(&c->dearer, i);
        fgi_costs_push(&c->directed, i);
    }
    set(c, unary, *unary + cost);
    fgi_assert(*unary >= 0);
    if (*unary > c->most[i]) set(c, &c->most[i], *unary);
}

void fgi_costs_project(fgi_costs *c, int32_t slot, int32_t a, int64_t cost) {
    fgi_assert(slot >= 0 && slot < c->n_slots + 2 * c->n_made && !c->spent[c->slot_factor[slot]]);
    const int32_t i = c->slot_var[slot];
    int64_t *shift = &c->shift[c->slot_shift[slot] + a];
    fgi_costs_raise(c, i, a, cost);
    if (fgi_costs_alive(c, i, a)) set(c, shift, *shift + cost);
}

void fgi_costs_extend(fgi_costs *c, int32_t slot, int32_t a, int64_t cost) {
    fgi_assert(slot >= 0 && slot < c->n_slots + 2 * c->n_made && !c->spent[c->slot_factor[slot]]);
    fgi_assert(cost >= 0 && fgi_costs_alive(c, c->slot_var[slot], a));
    int64_t *unary = &c->unary[c->begin[c->slot_var[slot]] + a], *shift = &c->shift[c->slot_shift[slot] + a];
    fgi_assert(*unary >= cost || c->failure);
    set(c, unary, *unary - cost);
    set(c, shift, *shift - cost);
}

/* Whether a factor is spent, where variables have it in their lists. */
static void set_spent(fgi_costs *c, int32_t f, int how) {
    fgi_assert(f >= 0 && f < c->n_factors + c->n_made);
    fgi_assert(how == 0 || how == FGI_SPENT || how == FGI_MOVED);
    set(c, &c->spent[f], how);
    for (int32_t s = c->slot_begin[f]; s < c->slot_begin[f + 1]; s++) {
        const int32_t k = c->slot_place[s];
        if (c->adj[k] != s) continue;
        int64_t *word = &c->live[k >> 6];
        const uint64_t bit = (uint64_t)1 << (k & 63);
        set(c, word, (int64_t)(how ? (uint64_t)*word & ~bit : (uint64_t)*word | bit));
    }
}

void fgi_costs_spend(fgi_costs *c, int32_t f, int how) {
    set_spent(c, f, how);
    for (int32_t s = c->slot_begin[f]; s < c->slot_begin[f + 1] && c->drops; s++)
        if (c->size[c->slot_var[s]] > 1) fgi_costs_push(&c->loose, c->slot_var[s]);
}

void fgi_costs_count_drop(fgi_costs *c) {
    fgi_assert(c->n_dropped < c->n);
    set(c, &c->n_dropped, c->n_dropped + 1);
}

void fgi_costs_load(fgi_costs *c, int32_t f, int64_t weight) {
    fgi_assert(f >= 0 && f < c->n_factors && weight >= 0);
    set(c, &c->load[f], c->load[f] + weight);
}

void fgi_costs_add(fgi_costs *c, int32_t f, int32_t a, int32_t b, int64_t cost) {
    const int32_t s = c->slot_begin[f];
    fgi_assert(c->slot_begin[f + 1] - s == 2 && cost >= 0);
    fgi_assert(fgi_costs_alive(c, c->slot_var[s], a) && fgi_costs_alive(c, c->slot_var[s + 1], b));
    int64_t *there = &c->table[s][a * c->slot_stride[s] + b];
    int64_t *back = &c->table[s + 1][(int64_t)b * c->card[c->slot_var[s]] + a];
    const int64_t already = *there - c->shift[c->slot_shift[s] + a] - c->shift[c->slot_shift[s + 1] + b];
    const int64_t room = c->upper - c->lower;
    fgi_assert(*there == *back);
    if (c->spent[f]) set_spent(c, f, 0);
    if (cost == 0 || already >= room) return;
    const int64_t total = cost >= room - already ? FGI_COST_FORBIDDEN : *there + cost;
    set(c, there, total);
    set(c, back, total);
}

void fgi_costs_settle(fgi_costs *c, int32_t i) {
    fgi_assert(i >= 0 && i < c->n);
    const int64_t first = c->begin[i];
    const int32_t *domain = c->domain + first;
    int64_t least = INT64_MAX, most = 0;
    int32_t at = -1;
    c->work += c->size[i];
    for (int64_t k = 0; k < c->size[i]; k++) {
        const int64_t cost = c->unary[first + domain[k]];
        fgi_assert(cost >= 0 && c->place[first + domain[k]] == k);
        if (cost < least) {
            least = cost;
            at = domain[k];
        }
        if (cost > most) most = cost;
    }
    if (at < 0) return; /* no label is left */
    fgi_assert(least <= most);
    if (c->unary[first + c->zero[i]] != least || !fgi_costs_alive(c, i, c->zero[i])) c->zero[i] = at;
    if (least > 0) {
        for (int64_t k = 0; k < c->size[i]; k++)
            set(c, &c->unary[first + domain[k]], c->unary[first + domain[k]] - least);
        set(c, &c->lower, c->lower + least);
        most -= least;
    }
    if (c->lower >= c->upper) {
        c->conflict = 1;
        return;
    }
    if (most != c->most[i]) set(c, &c->most[i], most);
    for (int64_t k = c->size[i] - 1; k >= 0 && most >= c->upper - c->lower; k--)
        if (c->unary[first + domain[k]] >= c->upper - c->lower) fgi_costs_remove(c, i, domain[k]);
}

void fgi_costs_limit(fgi_costs *c, int64_t upper) {
    fgi_assert(c->lower >= 0);
    if (upper < c->upper) c->upper = upper;
    if (c->lower >= c->upper) c->conflict = 1;
}
