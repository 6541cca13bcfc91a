/* exact/order.c - elimination orders: smallest table first, breadth first along the graph (good on strips), and
 * min-fill.
 *
 * The graph is kept as neighbour lists from which eliminated vertices are dropped lazily, so that hubs of large stars
 * cost nothing. Fill counts are exact: eliminating a simplicial vertex updates its neighbours in O(1) each; a new edge
 * (u,w) lowers the fill of every common neighbour by one; the neighbours of an eliminated vertex are counted afresh. */
#include <string.h>
#include "exact/eliminate.h"

enum { EASY = 7 }; /* log2 of tables so small that no better order is looked for */

struct fgi_orderer {
    const fgi_scopes *g;
    double *log2_card;
    /* the graph as given */
    int64_t *first; /* n + 1 */
    int32_t *neighbours;
    /* the graph as it is now */
    int64_t *at;            /* where a vertex's list starts in pool */
    int32_t *length, *room; /* entries (dead ones included), capacity */
    int32_t *degree;        /* live neighbours */
    double *log2_size;      /* logarithm of the size of the table over the vertex and its live neighbours */
    int64_t *fill;
    uint8_t *dead;
    int32_t *pool;
    int64_t pool_used;
    int32_t *stamp, now;
    int32_t *touched; /* vertices whose key changed */
    uint8_t *is_touched;
    int32_t n_touched;
    /* indexed heap */
    int32_t *heap, *where;
    double *key;
    uint64_t *tie;
    int32_t heap_size;
    int64_t *scope_first; /* scopes of a vertex */
    int32_t *scope_list;
    int64_t vertex_capacity, edge_capacity, pool_capacity, scope_capacity;
    double steps;     /* work done, in list entries visited */
    fgi_bags bags[2]; /* the best and the one being built */
    int32_t *position;
};

fgi_orderer *fgi_orderer_create(void) { return fgi_calloc(1, sizeof(fgi_orderer)); }

void fgi_orderer_free(fgi_orderer *o) {
    if (!o) return;
    void *owned[] = {o->log2_card, o->first, o->neighbours, o->at, o->length, o->room, o->degree, o->log2_size, o->fill,
        o->dead, o->pool, o->stamp, o->touched, o->is_touched, o->heap, o->where, o->key, o->tie, o->scope_first,
        o->scope_list, o->position};
    for (size_t k = 0; k < sizeof owned / sizeof owned[0]; k++) free(owned[k]);
    for (int k = 0; k < 2; k++) {
        free(o->bags[k].order);
        free(o->bags[k].begin);
        free(o->bags[k].bag);
    }
    free(o);
}

/* ---- heap: smallest key first, ties by `tie`, then by index -------------------------------------------------- */

static int before(const fgi_orderer *o, int32_t a, int32_t b) {
    if (o->key[a] != o->key[b]) return o->key[a] < o->key[b];
    if (o->tie[a] != o->tie[b]) return o->tie[a] < o->tie[b];
    return a < b;
}

static void sift(fgi_orderer *o, int32_t k) {
    int32_t v = o->heap[k];
    while (k > 0 && before(o, v, o->heap[(k - 1) / 2])) {
        o->heap[k] = o->heap[(k - 1) / 2];
        o->where[o->heap[k]] = k;
        k = (k - 1) / 2;
    }
    for (int32_t child; (child = 2 * k + 1) < o->heap_size; k = child) {
        if (child + 1 < o->heap_size && before(o, o->heap[child + 1], o->heap[child])) child++;
        if (!before(o, o->heap[child], v)) break;
        o->heap[k] = o->heap[child];
        o->where[o->heap[k]] = k;
    }
    o->heap[k] = v;
    o->where[v] = k;
}

static int32_t heap_pop(fgi_orderer *o) {
    int32_t top = o->heap[0], last = o->heap[--o->heap_size];
    if (o->heap_size > 0) {
        o->heap[0] = last;
        o->where[last] = 0;
        sift(o, 0);
    }
    return top;
}

/* ---- the graph ---------------------------------------------------------------------------------------------- */

static int reserve(fgi_orderer *o, int32_t n) {
    if (n + 1 <= o->vertex_capacity && o->stamp) return 1;
    int64_t wanted = (int64_t)n + n / 2 + 64;
    struct {
        void **p;
        size_t size;
    } all[] = {{(void **)&o->log2_card, 8}, {(void **)&o->first, 8}, {(void **)&o->at, 8}, {(void **)&o->length, 4},
        {(void **)&o->room, 4}, {(void **)&o->degree, 4}, {(void **)&o->log2_size, 8}, {(void **)&o->fill, 8},
        {(void **)&o->dead, 1}, {(void **)&o->stamp, 4}, {(void **)&o->touched, 4}, {(void **)&o->is_touched, 1},
        {(void **)&o->heap, 4}, {(void **)&o->where, 4}, {(void **)&o->key, 8}, {(void **)&o->tie, 8},
        {(void **)&o->scope_first, 8}, {(void **)&o->position, 4}};
    for (size_t k = 0; k < sizeof all / sizeof all[0]; k++) {
        if (!fgi_resize(all[k].p, wanted, all[k].size)) return 0;
    }
    o->vertex_capacity = wanted;
    return 1;
}

/* Neighbour lists without repeats, from the scopes. Returns 0 when memory is short. */
static int build_graph(fgi_orderer *o, const fgi_scopes *g) {
    const int32_t n = g->n;
    const int64_t slots = g->n_scopes ? g->begin[g->n_scopes] : 0;
    if (!reserve(o, n) || !fgi_grow(&o->scope_list, &o->scope_capacity, slots, sizeof(int32_t))) return 0;
    memset(o->scope_first, 0, ((size_t)n + 1) * sizeof(int64_t));
    for (int64_t k = 0; k < slots; k++) o->scope_first[g->vars[k] + 1]++;
    for (int32_t v = 0; v < n; v++) o->scope_first[v + 1] += o->scope_first[v];
    for (int64_t s = 0; s < g->n_scopes; s++)
        for (int64_t k = g->begin[s]; k < g->begin[s + 1]; k++)
            o->scope_list[o->scope_first[g->vars[k]]++] = (int32_t)s;
    for (int32_t v = n; v > 0; v--) o->scope_first[v] = o->scope_first[v - 1];
    if (n > 0) o->scope_first[0] = 0;

    memset(o->stamp, 0, (size_t)n * sizeof(int32_t));
    o->now = 0;
    o->first[0] = 0;
    for (int32_t v = 0; v < n; v++) {
        int64_t end = o->first[v];
        o->stamp[v] = ++o->now;
        o->log2_card[v] = g->cards[v] == 2 ? 1.0 : log2(g->cards[v]);
        for (int64_t k = o->scope_first[v]; k < o->scope_first[v + 1]; k++) {
            const int64_t from = g->begin[o->scope_list[k]], to = g->begin[o->scope_list[k] + 1];
            if (!fgi_grow(&o->neighbours, &o->edge_capacity, end + (to - from), sizeof(int32_t))) return 0;
            for (int64_t l = from; l < to; l++)
                if (o->stamp[g->vars[l]] != o->now) {
                    o->stamp[g->vars[l]] = o->now;
                    o->neighbours[end++] = g->vars[l];
                }
        }
        o->first[v + 1] = end;
    }
    o->steps += 4.0 * (double)slots + (double)o->first[n];
    return 1;
}

static void next_stamp(fgi_orderer *o) {
    if (++o->now < INT32_MAX) return;
    memset(o->stamp, 0, (size_t)o->g->n * sizeof(int32_t));
    o->now = 1;
}

/* Drops eliminated vertices from a list. */
static void tidy(fgi_orderer *o, int32_t v) {
    if (o->length[v] == o->degree[v]) return;
    int32_t *list = o->pool + o->at[v], n = 0;
    for (int32_t k = 0; k < o->length[v]; k++)
        if (!o->dead[list[k]]) list[n++] = list[k];
    o->steps += o->length[v];
    o->length[v] = n;
}

static int append(fgi_orderer *o, int32_t v, int32_t u) {
    if (o->length[v] == o->room[v]) {
        int32_t room = 2 * o->room[v] + 4;
        if (!fgi_grow(&o->pool, &o->pool_capacity, o->pool_used + room, sizeof(int32_t))) return 0;
        memcpy(o->pool + o->pool_used, o->pool + o->at[v], (size_t)o->length[v] * sizeof(int32_t));
        o->at[v] = o->pool_used;
        o->room[v] = room;
        o->pool_used += room;
    }
    o->pool[o->at[v] + o->length[v]++] = u;
    o->degree[v]++;
    o->log2_size[v] += o->log2_card[u];
    return 1;
}

static void stamp_neighbours(fgi_orderer *o, int32_t v) {
    tidy(o, v);
    next_stamp(o);
    const int32_t *list = o->pool + o->at[v];
    for (int32_t k = 0; k < o->length[v]; k++) o->stamp[list[k]] = o->now;
    o->steps += o->length[v];
}

/* Pairs of neighbours of v that are not neighbours of each other. */
static int64_t count_fill(fgi_orderer *o, int32_t v) {
    stamp_neighbours(o, v);
    const int64_t d = o->degree[v];
    int64_t twice = 0;
    for (int32_t k = 0; k < o->length[v]; k++) {
        int32_t u = o->pool[o->at[v] + k];
        tidy(o, u);
        const int32_t *list = o->pool + o->at[u];
        for (int32_t l = 0; l < o->length[u]; l++) twice += o->stamp[list[l]] == o->now;
        o->steps += o->length[u];
    }
    return (d * (d - 1) - twice) / 2;
}

static void touch(fgi_orderer *o, int32_t v) {
    if (o->is_touched[v]) return;
    o->is_touched[v] = 1;
    o->touched[o->n_touched++] = v;
}

typedef enum rule { BY_SIZE, BY_BREADTH, BY_FILL } rule;

/* Min-fill: few new edges first; among equals the smaller table. */
static double key_of(const fgi_orderer *o, int32_t v, rule by) {
    return by == BY_FILL ? (double)o->fill[v] + o->log2_size[v] * 0x1p-12 : by == BY_SIZE ? o->log2_size[v] : o->key[v];
}

/* Appends the component of `root` to queue[n ..) breadth first, new neighbours by ascending degree; returns its end. */
static int32_t search(fgi_orderer *o, int32_t root, int32_t *queue, int32_t n) {
    int32_t head = n;
    next_stamp(o);
    o->stamp[root] = o->now;
    queue[n++] = root;
    for (; head < n; head++) {
        const int32_t found = n;
        for (int64_t k = o->first[queue[head]]; k < o->first[queue[head] + 1]; k++) {
            int32_t u = o->neighbours[k], l = n;
            if (o->stamp[u] == o->now) continue;
            o->stamp[u] = o->now;
            for (; l > found && n - found < 64 && o->degree[queue[l - 1]] > o->degree[u]; l--) queue[l] = queue[l - 1];
            queue[l] = u;
            n++;
        }
    }
    return n;
}

/* Keys that follow a breadth-first search of each component from its far end (as in Cuthill and McKee), so that a long
 * strip is eliminated from one end to the other, at the width of the strip. */
static void breadth_keys(fgi_orderer *o) {
    const int32_t n = o->g->n;
    int32_t *queue = o->touched, done = 0;
    for (int32_t v = 0; v < n; v++) o->key[v] = -1;
    for (int32_t v = 0; v < n; v++) {
        if (o->key[v] >= 0) continue;
        for (int round = 0; round < 2; round++) { /* the last vertex found is far from everything: start again there */
            int32_t end = search(o, round == 0 ? v : queue[done], queue, done), last = queue[end - 1];
            if (round == 0) {
                end = search(o, last, queue, done);
                queue[done] = queue[end - 1];
                continue;
            }
            for (; done < end; done++) o->key[queue[done]] = done;
        }
    }
    o->steps += 3.0 * (double)o->first[n];
}

/* ---- one greedy pass ---------------------------------------------------------------------------------------- */

static int start_pass(fgi_orderer *o, rule by, fgi_rng *rng) {
    const int32_t n = o->g->n;
    if (!fgi_grow(&o->pool, &o->pool_capacity, o->first[n] + 1, sizeof(int32_t))) return 0;
    if (o->first[n] > 0) memcpy(o->pool, o->neighbours, (size_t)o->first[n] * sizeof(int32_t));
    o->pool_used = o->first[n];
    for (int32_t v = 0; v < n; v++) {
        o->at[v] = o->first[v];
        o->length[v] = o->room[v] = o->degree[v] = (int32_t)(o->first[v + 1] - o->first[v]);
        o->dead[v] = o->is_touched[v] = 0;
        o->tie[v] = rng ? fgi_rng_next(rng) : 0;
        o->log2_size[v] = o->log2_card[v];
        for (int64_t k = o->first[v]; k < o->first[v + 1]; k++) o->log2_size[v] += o->log2_card[o->neighbours[k]];
    }
    o->steps += 2.0 * (double)(o->first[n] + n);
    o->n_touched = 0;
    if (by == BY_BREADTH) breadth_keys(o);
    for (int32_t v = 0; v < n; v++) {
        o->fill[v] = by == BY_FILL ? count_fill(o, v) : 0;
        o->key[v] = key_of(o, v, by);
    }
    for (o->heap_size = 0; o->heap_size < n;) { /* one at a time: sift moves both ways and needs a heap around it */
        int32_t k = o->heap_size++;
        o->heap[k] = k;
        sift(o, k);
    }
    return 1;
}

/* Makes the neighbours of the (dead) vertex v a clique. The vertex of highest degree goes last: its list is never
 * walked. */
static int make_clique(fgi_orderer *o, int32_t *list, int32_t d, rule by) {
    for (int32_t k = 0; k + 1 < d; k++)
        if (o->degree[list[k]] > o->degree[list[d - 1]]) {
            int32_t u = list[k];
            list[k] = list[d - 1];
            list[d - 1] = u;
        }
    for (int32_t k = 0; k + 1 < d; k++) {
        int32_t u = list[k];
        stamp_neighbours(o, u);
        for (int32_t l = k + 1; l < d; l++) {
            int32_t w = list[l];
            if (o->stamp[w] == o->now) continue;
            if (by == BY_FILL) {
                tidy(o, w);
                const int32_t *common = o->pool + o->at[w];
                for (int32_t x = 0; x < o->length[w]; x++)
                    if (o->stamp[common[x]] == o->now) {
                        o->fill[common[x]]--;
                        touch(o, common[x]);
                    }
                o->steps += o->length[w];
            }
            if (!append(o, u, w) || !append(o, w, u)) return 0;
            o->stamp[w] = o->now;
        }
    }
    return 1;
}

typedef enum pass_end { PASS_DONE, PASS_WORSE, PASS_NO_MEMORY } pass_end;

static int open_bags(fgi_bags *bags, int32_t n) {
    if (!fgi_grow(&bags->order, &bags->order_capacity, n, sizeof(int32_t)) ||
        !fgi_grow(&bags->begin, &bags->begin_capacity, (int64_t)n + 1, sizeof(int64_t)))
        return 0;
    bags->n = n;
    bags->width = 0;
    bags->log2_largest = bags->work = 0;
    bags->begin[0] = 0;
    return 1;
}

/* v, which had these d neighbours, leaves the graph; they become a clique. Returns 0 if there is no memory. */
static int eliminate(fgi_orderer *o, rule by, int32_t v, int32_t *list, int32_t d) {
    const int simplicial = by == BY_FILL && o->fill[v] == 0;
    o->dead[v] = 1;
    for (int32_t k = 0; k < d; k++) {
        int32_t u = list[k];
        if (simplicial) o->fill[u] -= o->degree[u] - d; /* the pairs (v, x) with x beyond the clique */
        o->degree[u]--;
        o->log2_size[u] -= o->log2_card[v];
        touch(o, u);
    }
    if (!simplicial) {
        if (!make_clique(o, list, d, by)) return 0;
        if (by == BY_FILL)
            for (int32_t k = 0; k < d; k++) o->fill[list[k]] = count_fill(o, list[k]);
    }
    o->steps += d + 8;
    for (int32_t k = 0; k < o->n_touched; k++) {
        int32_t u = o->touched[k];
        o->is_touched[u] = 0;
        o->key[u] = key_of(o, u, by);
        if (by != BY_BREADTH) sift(o, o->where[u]);
    }
    o->n_touched = 0;
    return 1;
}

/* Fills `bags` (positions are filled in later) unless the order gets worse than the limits. */
static pass_end greedy_pass(
    fgi_orderer *o, rule by, fgi_rng *rng, double log2_limit, double work_limit, double step_limit, fgi_bags *bags) {
    const int32_t n = o->g->n;
    if (!start_pass(o, by, rng) || !open_bags(bags, n)) return PASS_NO_MEMORY;
    for (int32_t p = 0; p < n; p++) {
        int32_t v = heap_pop(o);
        if (o->log2_size[v] > log2_limit) return PASS_WORSE;
        bags->work += exp2(o->log2_size[v]);
        if (bags->work > work_limit || o->steps > step_limit) return PASS_WORSE;
        tidy(o, v);
        const int32_t d = o->degree[v];
        int64_t end = bags->begin[p];
        if (!fgi_grow(&bags->bag, &bags->bag_capacity, end + d, sizeof(int32_t))) return PASS_NO_MEMORY;
        int32_t *list = bags->bag + end;
        memcpy(list, o->pool + o->at[v], (size_t)d * sizeof(int32_t));
        bags->order[p] = v;
        bags->begin[p + 1] = end + d;
        if (d > bags->width) bags->width = d;
        if (o->log2_size[v] > bags->log2_largest) bags->log2_largest = o->log2_size[v];
        if (!eliminate(o, by, v, list, d)) return PASS_NO_MEMORY;
    }
    return PASS_DONE;
}

/* Bags from vertices to positions, descending. */
static void finish(fgi_orderer *o, fgi_bags *b) {
    for (int32_t p = 0; p < b->n; p++) o->position[b->order[p]] = p;
    for (int32_t p = 0; p < b->n; p++)
        for (int64_t k = b->begin[p]; k < b->begin[p + 1]; k++) {
            int32_t x = o->position[b->bag[k]];
            int64_t l = k;
            for (; l > b->begin[p] && b->bag[l - 1] < x; l--) b->bag[l] = b->bag[l - 1];
            b->bag[l] = x;
        }
}

fgi_rc fgi_orderer_run(fgi_orderer *o, const fgi_scopes *g, double log2_limit, double effort, const fgi_bags **out) {
    o->g = g;
    o->steps = 0;
    if (!build_graph(o, g)) return FGI_NO_MEMORY;
    fgi_bags *best = NULL, *next = &o->bags[0];
    fgi_rng rng = {0x5EED};
    int32_t least_left = g->n; /* vertices left when a pass gave up */
    for (int attempt = 0; attempt < 64 && o->steps < effort; attempt++) {
        /* First a try whether the problem is easy, then the full passes. Another pass is worth at most a part of the
         * elimination it may shorten; a step here costs about as much as eight table entries there. */
        const rule by = attempt == 0 || attempt == 2 ? BY_SIZE : attempt == 1 ? BY_BREADTH : BY_FILL;
        const double share = attempt <= 1 ? INFINITY : attempt <= 3 ? 0.02 : 0.004;
        const double table = best ? best->log2_largest + 1 : attempt == 0 ? fmin(EASY, log2_limit) : log2_limit;
        const double steps = best ? fmin(effort, o->steps + share * best->work) : effort;
        pass_end end = greedy_pass(o, by, attempt > 3 ? &rng : NULL, table, best ? best->work : INFINITY, steps, next);
        if (end == PASS_NO_MEMORY) return FGI_NO_MEMORY;
        if (!best && attempt > 0 && o->heap_size < least_left) least_left = o->heap_size;
        if (!best && end != PASS_DONE && attempt >= 3 && 4 * (int64_t)least_left > g->n) break; /* not even close */
        if (end == PASS_DONE) {
            best = next;
            next = &o->bags[best == &o->bags[0]];
            if (best->log2_largest <= EASY) break;
        }
    }
    if (!best) return FGI_UNSUPPORTED;
    finish(o, best);
    *out = best;
    return FGI_OK;
}
