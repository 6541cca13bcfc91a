/* exact/doll.c - the search through one doll: see exact/doll.h. */
#include <stdlib.h>
#include "base/array.h"
#include "exact/doll.h"
#include "exact/doll_order.h"

static int64_t sum_of(int64_t a, int64_t b) {
    return a >= FGI_COST_LARGEST || a + b >= FGI_COST_LARGEST ? FGI_COST_FORBIDDEN : a + b;
}

/* ---- set-up ---------------------------------------------------------------------------------------------------- */

typedef struct places { /* the variables of one factor */
    int32_t slot[FGI_COSTS_ARITY], place[FGI_COSTS_ARITY], n;
} places;

/* The slots of a factor by the places of their variables. */
static places places_of(const fgi_costs *c, int32_t f, const int32_t *place) {
    places o = {.n = 0};
    for (int32_t s = c->slot_begin[f]; s < c->slot_begin[f + 1]; s++, o.n++) {
        int32_t k = o.n;
        for (; k > 0 && o.place[k - 1] > place[c->slot_var[s]]; k--) {
            o.slot[k] = o.slot[k - 1];
            o.place[k] = o.place[k - 1];
        }
        o.slot[k] = s;
        o.place[k] = place[c->slot_var[s]];
    }
    return o;
}

static void set_labels(fgi_doll *d, const fgi_costs *c) {
    for (int32_t p = 0; p < d->n; p++) {
        const int32_t i = d->order[p];
        int64_t at = d->begin[p];
        for (int32_t a = 0; a < c->card[i]; a++) {
            if (!fgi_costs_alive(c, i, a)) continue;
            d->label[at] = a;
            d->own[at++] = c->unary[c->begin[i] + a];
        }
        d->begin[p + 1] = at;
    }
}

static void set_factor(fgi_doll *d, const fgi_costs *c, const places *o, fgi_doll_factor *to, int32_t *n_given) {
    const int32_t last = o->slot[o->n - 1], first = o->slot[0];
    *to = (fgi_doll_factor){c->table[first], c->slot_stride[last], o->place[0], o->place[o->n - 1], *n_given, o->n - 1};
    for (int32_t k = 0; k + 1 < o->n; k++)
        d->given[(*n_given)++] = (fgi_doll_given){o->place[k], c->slot_stride[o->slot[k]]};
    if (o->n == 2) { /* a table of its own for every first variable */
        to->stride = 1;
        d->given[to->given_begin].stride = c->card[c->slot_var[last]];
    }
}

/* Factors by their first variables, the latest first, so that those of every list come in this order, too. */
static void set_factors(fgi_doll *d, const fgi_costs *c, const int32_t *place, int32_t *by_first) {
    int32_t n_given = 0;
    for (int32_t f = 0; f < c->n_factors; f++) {
        if (c->spent[f]) continue;
        const places o = places_of(c, f, place);
        d->factor_begin[o.place[o.n - 2] + 1]++;
        d->entering_begin[o.place[0] + 1]++;
    }
    for (int32_t p = 0; p < d->n; p++) {
        d->factor_begin[p + 1] += d->factor_begin[p];
        d->entering_begin[p + 1] += d->entering_begin[p];
    }
    for (int32_t f = 0; f < c->n_factors; f++) {
        if (c->spent[f]) continue;
        const places o = places_of(c, f, place);
        by_first[d->entering_begin[o.place[0]] + d->active[o.place[0]]++] = f;
    }
    for (int32_t p = 0; p < d->n; p++) d->active[p] = 0;
    for (int32_t p = d->n - 1; p >= 0; p--)
        for (int32_t k = d->entering_begin[p]; k < d->entering_begin[p + 1]; k++) {
            const places o = places_of(c, by_first[k], place);
            const int32_t before = o.place[o.n - 2], at = d->factor_begin[before] + d->active[before]++;
            set_factor(d, c, &o, &d->factor[at], &n_given);
            d->entering[k] = at;
        }
    for (int32_t p = 0; p < d->n; p++) d->active[p] = 0;
}

fgi_rc fgi_doll_create(const fgi_costs *c, fgi_doll *d) {
    const int32_t n = c->n, n_factors = c->n_factors;
    fgi_arena scratch = {0};
    d->n = d->start = n;
    d->order = fgi_take_zero(&d->arena, n, int32_t);
    d->begin = fgi_take_zero(&d->arena, n + 1, int64_t);
    d->label = fgi_take_zero(&d->arena, c->begin[n], int32_t);
    d->own = fgi_take_zero(&d->arena, c->begin[n], int64_t);
    d->extra = fgi_take_zero(&d->arena, c->begin[n], int64_t);
    d->least = fgi_take_zero(&d->arena, n, int64_t);
    d->factor_begin = fgi_take_zero(&d->arena, n + 1, int32_t);
    d->factor = fgi_take_zero(&d->arena, n_factors, fgi_doll_factor);
    d->active = fgi_take_zero(&d->arena, n, int32_t);
    d->entering_begin = fgi_take_zero(&d->arena, n + 1, int32_t);
    d->entering = fgi_take_zero(&d->arena, n_factors, int32_t);
    d->given = fgi_take_zero(&d->arena, c->n_slots, fgi_doll_given);
    d->frame = fgi_take_zero(&d->arena, n, fgi_doll_frame);
    d->optimum = fgi_take_zero(&d->arena, n + 1, int64_t);
    d->found = fgi_take_zero(&d->arena, n, int32_t);
    int32_t *place = fgi_take_zero(&scratch, n, int32_t), *by_first = fgi_take_zero(&scratch, n_factors, int32_t);
    int failed = d->arena.failed || scratch.failed;
    if (!failed) {
        d->waiting = fgi_doll_order(c, d->order);
        failed = d->waiting < 0;
    }
    if (!failed) {
        for (int32_t p = 0; p < n; p++) place[d->order[p]] = p;
        set_labels(d, c);
        set_factors(d, c, place, by_first);
    }
    fgi_arena_free(&scratch);
    return failed ? FGI_NO_MEMORY : FGI_OK;
}

void fgi_doll_free(fgi_doll *d) {
    fgi_arena_free(&d->arena);
    free(d->trail);
    d->trail = NULL;
}

/* ---- one variable more ----------------------------------------------------------------------------------------- */

static int64_t cost_of(const fgi_doll *d, const fgi_doll_factor *f) {
    const int64_t *cost = f->table + d->label[d->begin[f->last] + d->found[f->last]] * f->stride;
    for (int32_t k = f->given_begin; k < f->given_begin + f->n_given; k++) {
        const int32_t p = d->given[k].place;
        cost += d->label[d->begin[p] + d->found[p]] * d->given[k].stride;
    }
    return *cost;
}

int64_t fgi_doll_extend(fgi_doll *d, int32_t p) {
    int64_t best = INT64_MAX;
    int32_t label = 0;
    const int32_t size = (int32_t)(d->begin[p + 1] - d->begin[p]);
    for (int32_t a = 0; a < size; a++) {
        int64_t cost = d->own[d->begin[p] + a];
        d->found[p] = a;
        for (int32_t k = d->entering_begin[p]; k < d->entering_begin[p + 1]; k++)
            cost = sum_of(cost, cost_of(d, &d->factor[d->entering[k]]));
        if (cost >= best) continue;
        best = cost;
        label = a;
    }
    d->found[p] = label;
    d->work += size * (int64_t)(d->entering_begin[p + 1] - d->entering_begin[p] + 1);
    return size > 0 ? best : FGI_COST_FORBIDDEN;
}

void fgi_doll_again(fgi_doll *d) {
    d->at = d->start;
    d->frame[d->start] = (fgi_doll_frame){.mark = d->n_trail, .key = -1};
}

int64_t fgi_doll_enlarge(fgi_doll *d, int64_t cost_found) {
    const int32_t p = --d->start;
    for (int32_t k = d->entering_begin[p]; k < d->entering_begin[p + 1]; k++) {
        const fgi_doll_factor *f = &d->factor[d->entering[k]];
        d->active[d->given[f->given_begin + f->n_given - 1].place]++;
    }
    fgi_doll_again(d);
    return sum_of(fgi_doll_extend(d, p), cost_found);
}

/* ---- search ---------------------------------------------------------------------------------------------------- */

static void set(fgi_doll *d, int64_t *where, int64_t value) {
    if (d->n_trail == d->trail_capacity && !fgi_grow(&d->trail, &d->trail_capacity, d->n_trail + 1, sizeof *d->trail)) {
        d->failed = 1; /* the search ends here: what is not undone does not matter */
        return;
    }
    d->trail[d->n_trail++] = (fgi_costs_change){where, *where};
    *where = value;
}

static void undo(fgi_doll *d, int64_t mark) {
    while (d->n_trail > mark) {
        const fgi_costs_change *change = &d->trail[--d->n_trail];
        *change->where = change->before;
    }
}

/* The next label of place p, cheap ones first: its cost, or FGI_COST_FORBIDDEN. */
static int64_t next_label(fgi_doll *d, int32_t p, int32_t *label) {
    const fgi_doll_frame *f = &d->frame[p];
    const int64_t *own = d->own + d->begin[p], *extra = d->extra + d->begin[p];
    const int32_t size = (int32_t)(d->begin[p + 1] - d->begin[p]);
    const int64_t last = f->key;
    const int32_t chosen = f->chosen;
    int64_t best = FGI_COST_FORBIDDEN;
    for (int32_t a = 0; a < size; a++) {
        const int64_t cost = own[a] + extra[a];
        if (cost >= best || cost < last || (cost == last && a <= chosen)) continue;
        best = cost;
        *label = a;
    }
    d->work += size;
    return best;
}

/* What a factor with one variable left says about that one. Returns how much its least extra cost has risen. */
static int64_t add_factor(fgi_doll *d, const fgi_doll_factor *f) {
    const int64_t *costs = f->table;
    for (int32_t k = f->given_begin; k < f->given_begin + f->n_given; k++) {
        const int32_t p = d->given[k].place;
        costs += d->label[d->begin[p] + d->frame[p].chosen] * d->given[k].stride;
    }
    const int32_t *label = d->label + d->begin[f->last];
    int64_t *extra = d->extra + d->begin[f->last], least = FGI_COST_FORBIDDEN;
    const int32_t size = (int32_t)(d->begin[f->last + 1] - d->begin[f->last]);
    for (int32_t a = 0; a < size; a++) {
        const int64_t cost = costs[label[a] * f->stride];
        if (cost > 0 && extra[a] < FGI_COST_LARGEST) set(d, &extra[a], sum_of(extra[a], cost));
        if (extra[a] < least) least = extra[a];
    }
    d->work += size + f->n_given;
    const int64_t before = d->least[f->last];
    if (least > before) set(d, &d->least[f->last], least);
    return least - before;
}

/* Place p has its label: 0 if that costs too much. *rest: of the extras after it. */
static int decide(fgi_doll *d, int32_t p, int64_t cost, int64_t *rest) {
    const fgi_doll_factor *factor = d->factor + d->factor_begin[p];
    const int64_t room = d->upper - cost - d->optimum[p + 1];
    for (int32_t k = 0; k < d->active[p] && *rest < room; k++) {
        const int64_t more = add_factor(d, &factor[k]);
        if (more >= room) return 0;
        *rest += more;
    }
    return *rest < room && !d->failed;
}

fgi_doll_state fgi_doll_search(fgi_doll *d, int64_t work_limit, int64_t *cost) {
    while (d->work < work_limit) {
        const int32_t p = d->at;
        fgi_doll_frame *f = &d->frame[p];
        const int64_t key = next_label(d, p, &f->chosen);
        if (key >= FGI_COST_LARGEST || f->cost + key + f->rest + d->optimum[p + 1] >= d->upper) {
            if (p == d->start) return FGI_DOLL_DONE;
            d->at = p - 1;
            undo(d, d->frame[p - 1].mark);
            continue;
        }
        f->key = key;
        d->nodes++;
        if (p == d->n - 1) {
            *cost = f->cost + key;
            return FGI_DOLL_FOUND;
        }
        int64_t rest = f->rest;
        if (decide(d, p, f->cost + key, &rest)) {
            d->frame[++d->at] = (fgi_doll_frame){d->n_trail, f->cost + key, rest - d->least[p + 1], -1, 0};
        } else {
            if (d->failed) return FGI_DOLL_DONE;
            undo(d, f->mark);
        }
    }
    return FGI_DOLL_GOES_ON;
}
