/* exact/doll_order.c - the order of the dolls: see exact/doll_order.h. */
#include <stdlib.h>
#include <string.h>
#include "base/arena.h"
#include "exact/doll_order.h"

enum { FARTHER = 4 /* searches for an end of a component, each from the last variable of the one before */ };

/* So many times as near variables must be in the other order: that of the model is often better than it looks. On
 * spot5/408, where 19.6 wait, it takes half a million nodes to the proof; by breadth, where 17.5 do, more than 10^8. */
static const double NEARER = 2;

typedef struct walk {
    const fgi_costs *c;
    int32_t *degree; /* per variable: slots of factors it shares */
    int32_t *place;  /* per variable: where it is in an order */
    int32_t *seen;   /* number of the search that met it last */
    int32_t *order, number;
} walk;

/* Variables that wait, summed over the places. */
static double waiting(const walk *w, const int32_t *order) {
    const fgi_costs *c = w->c;
    double sum = 0;
    for (int32_t p = 0; p < c->n; p++) w->place[order[p]] = p;
    for (int32_t i = 0; i < c->n; i++) {
        int32_t last = w->place[i];
        for (int32_t k = c->adj_begin[i]; k < c->adj_begin[i + 1]; k++) {
            const int32_t f = c->slot_factor[c->adj[k]];
            for (int32_t s = c->slot_begin[f]; s < c->slot_begin[f + 1] && !c->spent[f]; s++)
                if (w->place[c->slot_var[s]] > last) last = w->place[c->slot_var[s]];
        }
        sum += last - w->place[i];
    }
    return sum;
}

/* Fewer factors first, then the order of the model. */
static int comes_first(const walk *w, int32_t i, int32_t j) {
    return w->degree[i] != w->degree[j] ? w->degree[i] < w->degree[j] : i < j;
}

/* Sorted into order[from .. to). */
static void insert(const walk *w, int32_t from, int32_t to, int32_t i) {
    int32_t low = from, high = to; /* the first place whose variable comes later */
    while (low < high) {
        const int32_t middle = low + (high - low) / 2;
        if (comes_first(w, i, w->order[middle])) high = middle;
        else low = middle + 1;
    }
    memmove(w->order + low + 1, w->order + low, (size_t)(to - low) * sizeof *w->order);
    w->order[low] = i;
}

/* All that `first` is connected with, into the order from place `from` on; returns where it ends. */
static int32_t breadth_first(walk *w, int32_t first, int32_t from) {
    const fgi_costs *c = w->c;
    int32_t end = from;
    w->number++;
    w->order[end++] = first;
    w->seen[first] = w->number;
    for (int32_t at = from; at < end; at++) {
        const int32_t i = w->order[at], begin = end;
        for (int32_t k = c->adj_begin[i]; k < c->adj_begin[i + 1]; k++) {
            const int32_t f = c->slot_factor[c->adj[k]];
            for (int32_t s = c->slot_begin[f]; s < c->slot_begin[f + 1] && !c->spent[f]; s++) {
                const int32_t j = c->slot_var[s];
                if (w->seen[j] == w->number) continue;
                w->seen[j] = w->number;
                insert(w, begin, end++, j);
            }
        }
    }
    return end;
}

static void by_breadth(walk *w) {
    const fgi_costs *c = w->c;
    int32_t at = 0;
    for (int32_t i = 0; i < c->n; i++) {
        if (w->seen[i] > 0) continue;
        int32_t end = breadth_first(w, i, at);
        for (int32_t k = 0; k < FARTHER; k++) end = breadth_first(w, w->order[end - 1], at);
        at = end;
    }
}

double fgi_doll_order(const fgi_costs *c, int32_t *order) {
    walk w = {.c = c};
    fgi_arena arena = {0};
    w.degree = fgi_take_zero(&arena, c->n, int32_t);
    w.place = fgi_take_zero(&arena, c->n, int32_t);
    w.seen = fgi_take_zero(&arena, c->n, int32_t);
    w.order = fgi_take_zero(&arena, c->n, int32_t);
    double least = -1;
    if (!arena.failed) {
        for (int32_t i = 0; i < c->n; i++) {
            order[i] = i;
            w.degree[i] = c->adj_begin[i + 1] - c->adj_begin[i];
        }
        by_breadth(&w);
        const double own = waiting(&w, order), other = waiting(&w, w.order);
        const int breadth = other * NEARER < own;
        if (breadth) memcpy(order, w.order, (size_t)c->n * sizeof *order);
        least = (breadth ? other : own) / (c->n > 0 ? c->n : 1);
    }
    fgi_arena_free(&arena);
    return least;
}
