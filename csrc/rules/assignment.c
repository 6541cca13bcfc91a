/* rules/assignment.c - see rules/assignment.h: successive shortest paths, one for each variable, with potentials (the
 * Hungarian method, in which labels take several variables). A path leads from label to label: the variable that
 * arrives pushes another one on, until a label takes one more. */
#include "rules/assignment.h"

fgi_cost fgi_place_cost(const fgi_occurrences *r, int32_t label, int64_t count) {
    const int64_t low = r->low[label], high = r->high[label];
    if (r->price == INFINITY) return count >= high ? FGI_NO_WAY : (fgi_cost){count < low ? -1 : 0, 0};
    return (fgi_cost){0, r->price * (double)((count >= high) - (count < low))};
}

static double gain_of(const fgi_assignment *a, int32_t variable, int32_t label) {
    const fgi_rule *r = &a->rule->base;
    return label < r->cards[variable] ? a->gains[r->begin[variable] + label] : -INFINITY;
}

/* What it costs that a variable moves from its label to another one. */
static fgi_cost move_cost(const fgi_assignment *a, int32_t variable, int32_t label) {
    const double gain = gain_of(a, variable, label);
    return gain == -INFINITY ? FGI_NO_WAY : (fgi_cost){0, gain_of(a, variable, a->labels[variable]) - gain};
}

typedef struct paths {     /* from the variable that comes next */
    fgi_cost *reduced;     /* the distance of each label, by reduced costs */
    int32_t *from, *mover; /* the label before, and the variable that comes from there */
    uint8_t *done;
    int32_t *first, *following; /* the variables at each label, as lists */
} paths;

static void list_occupants(const fgi_assignment *a, paths *p) {
    for (int32_t l = 0; l < a->rule->n_labels; l++) p->first[l] = -1;
    for (int32_t k = a->rule->base.n - 1; k >= 0; k--) {
        if (a->labels[k] < 0) continue;
        p->following[k] = p->first[a->labels[k]];
        p->first[a->labels[k]] = k;
    }
}

/* Relaxes what leads out of a label. */
static void relax(const fgi_assignment *a, paths *p, int32_t label) {
    for (int32_t k = p->first[label]; k >= 0; k = p->following[k])
        for (int32_t to = 0; to < a->rule->base.cards[k]; to++) {
            if (p->done[to]) continue;
            const fgi_cost step = move_cost(a, k, to);
            if (!fgi_cost_is_way(step)) continue;
            fgi_cost reduced = fgi_cost_sum(step, fgi_cost_less(a->price[label], a->price[to]));
            if (reduced.needs == 0 && reduced.cost < 0) reduced.cost = 0; /* rounding */
            const fgi_cost at = fgi_cost_sum(p->reduced[label], reduced);
            if (!fgi_cost_is_below(at, p->reduced[to])) continue;
            p->reduced[to] = at;
            p->from[to] = label;
            p->mover[to] = k;
        }
}

/* Dijkstra from one variable to all labels, and the one where the path should end; -1: none takes one more. */
static int32_t find_path(fgi_assignment *a, paths *p, int32_t variable) {
    const int32_t m = a->rule->n_labels;
    fgi_cost best = FGI_NO_WAY, farthest = {0, 0};
    int32_t end = -1;
    for (int32_t l = 0; l < m; l++) {
        const double gain = gain_of(a, variable, l);
        p->reduced[l] = gain == -INFINITY ? FGI_NO_WAY : fgi_cost_less((fgi_cost){0, -gain}, a->price[l]);
        p->from[l] = -1;
        p->mover[l] = variable;
        p->done[l] = 0;
    }
    for (;;) {
        int32_t at = -1;
        for (int32_t l = 0; l < m; l++)
            if (!p->done[l] && fgi_cost_is_way(p->reduced[l]) &&
                (at < 0 || fgi_cost_is_below(p->reduced[l], p->reduced[at])))
                at = l;
        if (at < 0) break;
        p->done[at] = 1;
        farthest = p->reduced[at];
        const fgi_cost place = fgi_place_cost(a->rule, at, a->count[at]);
        const fgi_cost total = fgi_cost_sum(fgi_cost_sum(p->reduced[at], a->price[at]), place);
        if (fgi_cost_is_way(place) && (end < 0 || fgi_cost_is_below(total, best))) {
            best = total;
            end = at;
        }
        relax(a, p, at);
        a->work += m;
    }
    for (int32_t l = 0; end >= 0 && l < m; l++) /* labels out of reach move as far as the farthest */
        a->price[l] = fgi_cost_sum(a->price[l], p->done[l] ? p->reduced[l] : farthest);
    return end;
}

int fgi_assign(fgi_assignment *a, const fgi_occurrences *r, const double *gains, int32_t *labels, fgi_arena *arena) {
    const int32_t n = r->base.n, m = r->n_labels;
    *a = (fgi_assignment){.rule = r, .gains = gains, .labels = labels};
    a->count = fgi_take_zero(arena, m, int32_t);
    a->price = fgi_take_zero(arena, m, fgi_cost);
    paths p = {fgi_take(arena, m, fgi_cost), fgi_take(arena, m, int32_t), fgi_take(arena, m, int32_t),
        fgi_take(arena, m, uint8_t), fgi_take(arena, m, int32_t), fgi_take(arena, n, int32_t)};
    if (arena->failed) return 0;
    for (int32_t k = 0; k < n; k++) labels[k] = -1;
    for (int32_t k = 0; k < n; k++) {
        list_occupants(a, &p);
        int32_t at = find_path(a, &p, k);
        if (at < 0) return 0;
        a->count[at]++;
        for (; p.from[at] >= 0; at = p.from[at]) labels[p.mover[at]] = at;
        fgi_assert(p.mover[at] == k);
        labels[k] = at;
    }
    for (int32_t l = 0; r->price == INFINITY && l < m; l++)
        if (a->count[l] < r->low[l] || a->count[l] > r->high[l]) return 0; /* an upper limit may be below 0 */
    return 1;
}

/* ---- ways ------------------------------------------------------------------------------------------------------ */

static void offer_way(fgi_ways *w, int32_t from, int32_t to, fgi_cost cost) {
    const int64_t at = (int64_t)from * w->n + to;
    if (fgi_cost_is_way(cost) && fgi_cost_is_below(cost, w->way[at])) w->way[at] = cost;
}

/* To another label in use, or by one that nobody has to the sink. */
static void add_moves(const fgi_assignment *a, fgi_ways *w, int32_t variable) {
    const int32_t from = w->node[a->labels[variable]];
    for (int32_t to = 0; to < a->rule->base.cards[variable]; to++) {
        const fgi_cost cost = move_cost(a, variable, to), place = fgi_place_cost(a->rule, to, 0);
        if (to == a->labels[variable] || !fgi_cost_is_way(cost)) continue;
        if (w->node[to] >= 0) offer_way(w, from, w->node[to], cost);
        else if (fgi_cost_is_way(place)) offer_way(w, from, w->n - 1, fgi_cost_sum(cost, place));
    }
}

/* Floyd and Warshall; an optimal assignment has no cycles below 0. */
static void close_ways(fgi_ways *w) {
    const int32_t n = w->n;
    for (int32_t k = 0; k < n; k++)
        for (int32_t i = 0; i < n; i++) {
            const fgi_cost first = w->way[(int64_t)i * n + k];
            if (i == k || !fgi_cost_is_way(first)) continue;
            for (int32_t j = 0; j < n; j++)
                if (j != i && j != k) {
                    const fgi_cost second = w->way[(int64_t)k * n + j];
                    if (fgi_cost_is_way(second)) offer_way(w, i, j, fgi_cost_sum(first, second));
                }
        }
}

int fgi_find_ways(const fgi_assignment *a, fgi_ways *w, fgi_arena *arena) {
    const int32_t m = a->rule->n_labels;
    w->n = 1;
    w->node = fgi_take(arena, m, int32_t);
    if (arena->failed) return 0;
    for (int32_t l = 0; l < m; l++) w->node[l] = a->count[l] > 0 ? w->n++ - 1 : -1;
    const int64_t cells = (int64_t)w->n * w->n;
    w->way = fgi_take(arena, cells, fgi_cost);
    if (arena->failed) return 0;
    for (int64_t c = 0; c < cells; c++) w->way[c] = c % (w->n + 1) == 0 ? (fgi_cost){0, 0} : FGI_NO_WAY;
    for (int32_t l = 0; l < m; l++) {
        if (w->node[l] < 0) continue;
        offer_way(w, w->node[l], w->n - 1, fgi_place_cost(a->rule, l, a->count[l]));
        const fgi_cost last = fgi_place_cost(a->rule, l, a->count[l] - 1);
        if (fgi_cost_is_way(last)) offer_way(w, w->n - 1, w->node[l], fgi_cost_less((fgi_cost){0, 0}, last));
    }
    for (int32_t k = 0; k < a->rule->base.n; k++) add_moves(a, w, k);
    close_ways(w);
    return 1;
}

/* ---- the lowest of the best assignments ------------------------------------------------------------------------ */

typedef struct homeward { /* the shortest ways to one label; entry n_labels is the sink */
    fgi_cost *way;
    int32_t *next, *mover; /* the label (or sink) that comes next, and who moves there; -1: nobody */
} homeward;

static int shorten(homeward *h, int32_t from, int32_t to, fgi_cost step, int32_t mover) {
    if (!fgi_cost_is_way(step) || !fgi_cost_is_way(h->way[to])) return 0;
    const fgi_cost both = fgi_cost_sum(step, h->way[to]);
    if (!fgi_cost_is_below(both, h->way[from])) return 0;
    h->way[from] = both;
    h->next[from] = to;
    h->mover[from] = mover;
    return 1;
}

/* Bellman and Ford, since ways over the sink have no potentials; variables below `fixed` stay. */
static void find_homeward(fgi_assignment *a, homeward *h, int32_t fixed, int32_t home) {
    const int32_t m = a->rule->n_labels, n = a->rule->base.n;
    for (int32_t l = 0; l <= m; l++) {
        h->way[l] = l == home ? (fgi_cost){0, 0} : FGI_NO_WAY;
        h->next[l] = h->mover[l] = -1;
    }
    for (int32_t round = 0, changed = 1; changed && round <= m + 1; round++) {
        changed = 0;
        for (int32_t l = 0; l < m; l++) {
            const fgi_cost last = a->count[l] > 0 ? fgi_place_cost(a->rule, l, a->count[l] - 1) : FGI_NO_WAY;
            if (fgi_cost_is_way(last)) changed |= shorten(h, m, l, fgi_cost_less((fgi_cost){0, 0}, last), -1);
        }
        for (int32_t l = 0; l < m; l++)
            if (l != home) changed |= shorten(h, l, m, fgi_place_cost(a->rule, l, a->count[l]), -1);
        for (int32_t k = fixed; k < n; k++)
            for (int32_t to = 0; a->labels[k] != home && to < a->rule->base.cards[k]; to++)
                if (to != a->labels[k]) changed |= shorten(h, a->labels[k], to, move_cost(a, k, to), k);
        a->work += (int64_t)(n - fixed) * m;
    }
}

static int32_t lowest_label(const fgi_assignment *a, const homeward *h, int32_t variable) {
    const int32_t home = a->labels[variable];
    for (int32_t l = 0; l < home; l++) {
        const fgi_cost step = move_cost(a, variable, l);
        if (!fgi_cost_is_way(step) || !fgi_cost_is_way(h->way[l])) continue;
        const fgi_cost both = fgi_cost_sum(step, h->way[l]);
        if (both.needs == 0 && both.cost == 0) return l;
    }
    return home;
}

static void put(fgi_assignment *a, int32_t variable, int32_t label) {
    a->count[a->labels[variable]]--;
    a->count[label]++;
    a->labels[variable] = label;
}

/* The variable takes the label, and those on the way move; rounding may have closed the way to a circle. */
static void follow(fgi_assignment *a, const homeward *h, int32_t variable, int32_t label) {
    const int32_t home = a->labels[variable], m = a->rule->n_labels;
    int32_t at = label, steps = 0;
    while (at != home && steps++ <= m) at = h->next[at];
    if (at != home) return;
    put(a, variable, label);
    for (at = label; at != home; at = h->next[at])
        if (h->mover[at] >= 0) put(a, h->mover[at], h->next[at]);
}

int fgi_assign_lowest(fgi_assignment *a, fgi_arena *arena) {
    const int64_t m = (int64_t)a->rule->n_labels + 1;
    homeward h = {fgi_take(arena, m, fgi_cost), fgi_take(arena, m, int32_t), fgi_take(arena, m, int32_t)};
    if (arena->failed) return 0;
    for (int32_t k = 0; k < a->rule->base.n; k++) {
        if (a->labels[k] == 0) continue;
        find_homeward(a, &h, k + 1, a->labels[k]);
        const int32_t label = lowest_label(a, &h, k);
        if (label != a->labels[k]) follow(a, &h, k, label);
    }
    return 1;
}
