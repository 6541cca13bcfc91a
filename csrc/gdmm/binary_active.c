/* gdmm/binary_active.c - which factors take part: those between variables that are on, and, largest t first, the
 * positive ones whose charge is in the way of the bound. */
#include <string.h>
#include "gdmm/binary.h"

enum {
    BISECTION = 16,        /* what it costs to look for a factor by bisection, in factors that are looked at */
    RANKING = 4,           /* work to rank one */
    FIRST_CHARGES = 16,    /* positive factors a variable activates first; doubled each time */
    MOST_CHARGES = 1 << 20 /* until that many */
};

static int activate(binary *b, int64_t f) {
    if (b->active[f >> 3] >> (f & 7) & 1) return 1;
    if (b->n_links > INT32_MAX / 2 - 1) return 0; /* more than their lists can hold, and than memory does */
    if (!fgi_grow(&b->links, &b->capacity, b->n_links + 1, sizeof *b->links)) return 0;
    const fgi_view v = fgi_factor_view(b->model, f);
    const int32_t i = v.vars[0], j = v.vars[1];
    const double t = binary_interaction(&v), half = t > 0 ? 0.5 * t : 0;
    b->active[f >> 3] |= (uint8_t)(1 << (f & 7));
    b->links[b->n_links] = /* what was charged is now a multiplier */
        (binary_link){i, j, {b->first[i], b->first[j]}, f, t, {half, half}, {b->x[i], b->x[j]}};
    b->first[i] = (int32_t)(2 * b->n_links);
    b->first[j] = (int32_t)(2 * b->n_links++ + 1);
    b->charge[i] -= half;
    b->charge[j] -= half;
    b->degree[i]++;
    b->degree[j]++;
    b->scale += fabs(t);
    if (b->labels[j]) b->worth[i] += t;
    if (b->labels[i]) b->worth[j] += t;
    return 1;
}

/* Sorts the factors of variable i by its neighbours: bottom-up merge sort, stable. */
static int sort_by_neighbour(const binary *b, int32_t *factors, int64_t n, int32_t i) {
    int32_t *other = fgi_alloc(n, sizeof(int32_t));
    if (!other) return 0;
    for (int64_t width = 1; width < n; width *= 2) {
        for (int64_t begin = 0; begin < n; begin += 2 * width) {
            int64_t middle = begin + width < n ? begin + width : n, end = begin + 2 * width < n ? begin + 2 * width : n;
            for (int64_t k = begin, l = begin, r = middle; k < end; k++) {
                const int left = r >= end ||
                    (l < middle &&
                        binary_neighbour(b->model->s, factors[l], i) <= binary_neighbour(b->model->s, factors[r], i));
                other[k] = factors[left ? l++ : r++];
            }
        }
        memcpy(factors, other, (size_t)n * sizeof *factors);
    }
    free(other);
    return 1;
}

/* Activates the factors between i and j, found by bisection in the adjacency of i. */
static int activate_between(binary *b, int32_t i, int32_t j) {
    const fgi_structure *s = b->model->s;
    const int64_t n = s->adj_begin[i + 1] - s->adj_begin[i];
    if (!b->ascending[i] && !b->by_neighbour[i]) {
        b->by_neighbour[i] = fgi_copy(s->adj + s->adj_begin[i], n, sizeof(int32_t));
        if (!b->by_neighbour[i] || !sort_by_neighbour(b, b->by_neighbour[i], n, i)) return 0;
    }
    const int32_t *list = b->ascending[i] ? s->adj + s->adj_begin[i] : b->by_neighbour[i];
    int64_t low = 0, high = n;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (binary_neighbour(s, list[middle], i) < j) low = middle + 1;
        else high = middle;
    }
    for (; low < n && binary_neighbour(s, list[low], i) == j; low++)
        if (!activate(b, list[low])) return 0;
    return 1;
}

/* A variable with fewer factors than there are variables on looks at its factors, else at those variables: where all
 * have some factors, as in a sparse graph, the second would be quadratic. */
int binary_turn_on(binary *b, int32_t i) {
    const fgi_structure *s = b->model->s;
    if (b->is_on[i]) return 1;
    if (s->adj_begin[i + 1] - s->adj_begin[i] <= b->n_on) {
        for (int64_t k = s->adj_begin[i]; k < s->adj_begin[i + 1]; k++)
            if (b->is_on[binary_neighbour(s, s->adj[k], i)] && !activate(b, s->adj[k])) return 0;
        b->work += s->adj_begin[i + 1] - s->adj_begin[i];
    } else {
        for (int64_t k = 0; k < b->n_on; k++)
            if (!activate_between(b, i, b->on[k])) return 0;
        b->work += BISECTION * b->n_on;
    }
    b->is_on[i] = 1;
    b->on[b->n_on++] = i;
    return 1;
}

/* The positive factors of a variable by their t: a ranking, from which those that become active are taken. */
static int rank_charges(binary *b, int32_t i) {
    const int64_t begin = b->positive_begin[i], n = b->positive_begin[i + 1] - begin;
    double *t = fgi_alloc(n, sizeof *t);
    for (int64_t k = 0; t && k < n; k++) {
        const fgi_view v = fgi_factor_view(b->model, b->positive[begin + k]);
        t[k] = binary_interaction(&v);
    }
    const int ok = t && !fgi_ranking_create(n, t, 0, &b->ranking[i], NULL);
    free(t);
    b->work += RANKING * n;
    return ok;
}

static int has_charges(const binary *b, int32_t i) {
    double t;
    return b->ranking[i] ? fgi_ranking_top(b->ranking[i], &t) >= 0 : b->positive_begin[i] < b->positive_begin[i + 1];
}

/* The next positive factors of a variable whose charge is in the way, largest first: the joint oracle over its inactive
 * factors is asked for each. */
static int release_charges(binary *b, int32_t i) {
    if (!b->ranking[i] && !rank_charges(b, i)) return 0;
    b->positive_take[i] = b->positive_take[i] == 0 ? FIRST_CHARGES
        : b->positive_take[i] < MOST_CHARGES       ? 2 * b->positive_take[i]
                                                   : b->positive_take[i];
    const fgi_oracle_query q = {.source = fgi_ranking_source(b->ranking[i]), .hint = -1};
    for (int32_t k = 0; k < b->positive_take[i]; k++, b->work++) {
        fgi_argmax best;
        if (fgi_oracle_answer(&q, b->oracle, &best)) return 0;
        if (best.state < 0) break;
        fgi_ranking_take(b->ranking[i], (int32_t)best.state);
        if (!activate(b, b->positive[b->positive_begin[i] + best.state])) return 0;
    }
    return 1;
}

/* (3.33) and (3.34): variables that are on or could be; then the factors that their state calls for. A piece of it;
 * *complete says whether it was the last. */
int binary_activate_more(binary *b, int *complete) {
    *complete = 0;
    if (b->cursor == 0) b->activated = -b->n_links;
    for (b->work = 0; b->cursor < b->model->s->n_vars; b->cursor++) {
        const int32_t i = (int32_t)b->cursor;
        if (b->work++ > BINARY_CHUNK) return 1;
        int alive = b->x[i] > 0 || b->u[i] + b->charge[i] + b->sum[i] > 0;
        if (alive && has_charges(b, i) && !release_charges(b, i)) return 0;
        if (b->x[i] > b->on_from && !binary_turn_on(b, i)) return 0;
    }
    b->activated += b->n_links;
    b->cursor = 0;
    *complete = 1;
    return 1;
}
