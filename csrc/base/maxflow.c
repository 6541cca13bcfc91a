/* base/maxflow.c - see base/maxflow.h. */
#include "base/maxflow.h"
#include "base/assert.h"
#include <string.h>
#include "base/meter.h"

enum { STEPS_PER_LOOK = 100000 }; /* arc visits between two looks at the clock */

enum { NONE = -3, ORPHAN = -2, TERMINAL = -1 }; /* in place of an arc to the parent */
enum { FREE = 0, SOURCE = 1, SINK = 2 };        /* whose tree a node is in */

struct fgi_maxflow {
    int32_t n;
    int64_t n_arcs;        /* arc a and its reverse a ^ 1 lie side by side */
    int64_t *first, *next; /* arcs of a node, as a list; -1 ends it */
    int32_t *head;
    int64_t *residual;
    int64_t *terminal; /* what is left from the source (> 0) or to the sink (< 0) */
    int64_t *parent;   /* arc from the node to its parent */
    int64_t *stamp, now;
    int32_t *distance; /* to the terminal, known to be right at time `stamp` */
    uint8_t *side;
    int32_t *active, *orphans; /* circular queues; a node is in each at most once */
    uint8_t *is_active;
    int64_t active_head, n_active, orphan_head, n_orphans;
    int32_t current; /* node being grown; -1: none */
    int started;
    int64_t flow;
    double steps;
};

fgi_maxflow *fgi_maxflow_create(int32_t n, int64_t n_edges) {
    fgi_maxflow *g = fgi_calloc(1, sizeof *g);
    if (!g) return NULL;
    g->n = n;
    g->current = -1;
    g->first = fgi_alloc(n, sizeof(int64_t));
    g->next = fgi_alloc(2 * n_edges, sizeof(int64_t));
    g->head = fgi_alloc(2 * n_edges, sizeof(int32_t));
    g->residual = fgi_alloc(2 * n_edges, sizeof(int64_t));
    g->terminal = fgi_calloc(n, sizeof(int64_t));
    g->parent = fgi_alloc(n, sizeof(int64_t));
    g->stamp = fgi_calloc(n, sizeof(int64_t));
    g->distance = fgi_calloc(n, sizeof(int32_t));
    g->side = fgi_calloc(n, 1);
    g->active = fgi_alloc(n, sizeof(int32_t));
    g->orphans = fgi_alloc(n, sizeof(int32_t));
    g->is_active = fgi_calloc(n, 1);
    if (!g->first || !g->next || !g->head || !g->residual || !g->terminal || !g->parent || !g->stamp || !g->distance ||
        !g->side || !g->active || !g->orphans || !g->is_active) {
        fgi_maxflow_free(g);
        return NULL;
    }
    for (int32_t i = 0; i < n; i++) {
        g->first[i] = -1;
        g->parent[i] = NONE;
    }
    return g;
}

void fgi_maxflow_free(fgi_maxflow *g) {
    if (!g) return;
    void *owned[] = {g->first, g->next, g->head, g->residual, g->terminal, g->parent, g->stamp, g->distance, g->side,
        g->active, g->orphans, g->is_active};
    for (size_t k = 0; k < sizeof owned / sizeof owned[0]; k++) free(owned[k]);
    free(g);
}

void fgi_maxflow_add_terminal(fgi_maxflow *g, int32_t node, int64_t capacity) {
    const int64_t have = g->terminal[node];
    if ((have > 0) != (capacity > 0) && have && capacity) { /* what meets here flows straight through */
        const int64_t a = have > 0 ? have : -have, b = capacity > 0 ? capacity : -capacity;
        g->flow += a < b ? a : b;
    }
    g->terminal[node] = have + capacity;
}

void fgi_maxflow_add_edge(fgi_maxflow *g, int32_t i, int32_t j, int64_t forward, int64_t backward) {
    fgi_assert(i >= 0 && i < g->n && j >= 0 && j < g->n && i != j);
    fgi_assert(forward >= 0 && backward >= 0 && !g->started);
    const int64_t a = g->n_arcs;
    g->n_arcs += 2;
    g->head[a] = j;
    g->head[a + 1] = i;
    g->residual[a] = forward;
    g->residual[a + 1] = backward;
    g->next[a] = g->first[i];
    g->first[i] = a;
    g->next[a + 1] = g->first[j];
    g->first[j] = a + 1;
}

static void activate(fgi_maxflow *g, int32_t i) {
    fgi_assert(i >= 0 && i < g->n && g->n_active <= g->n);
    if (g->is_active[i]) return;
    g->is_active[i] = 1;
    g->active[(g->active_head + g->n_active++) % g->n] = i;
}

static void make_orphan(fgi_maxflow *g, int32_t i) {
    fgi_assert(i >= 0 && i < g->n && g->n_orphans < g->n);
    g->parent[i] = ORPHAN;
    g->orphans[(g->orphan_head + g->n_orphans++) % g->n] = i;
}

/* The residual capacity of arc a as the tree of its tail sees it: away from the source, towards the sink. */
static int64_t outward(const fgi_maxflow *g, int64_t a, int side) { return g->residual[side == SOURCE ? a : a ^ 1]; }
static int64_t inward(const fgi_maxflow *g, int64_t a, int side) { return g->residual[side == SOURCE ? a ^ 1 : a]; }

/* Grows the tree at node i; returns an arc from the source's tree to the sink's, or -1. */
static int64_t grow(fgi_maxflow *g, int32_t i) {
    fgi_assert(i >= 0 && i < g->n);
    const int side = g->side[i];
    for (int64_t a = g->first[i]; a >= 0; a = g->next[a]) {
        g->steps++;
        if (!outward(g, a, side)) continue;
        const int32_t j = g->head[a];
        if (g->parent[j] == NONE) {
            g->side[j] = (uint8_t)side;
            g->parent[j] = a ^ 1;
            g->stamp[j] = g->stamp[i];
            g->distance[j] = g->distance[i] + 1;
            activate(g, j);
        } else if (g->side[j] != side) {
            return side == SOURCE ? a : a ^ 1;
        } else if (g->stamp[j] <= g->stamp[i] && g->distance[j] > g->distance[i]) { /* a shorter way to the root */
            g->parent[j] = a ^ 1;
            g->stamp[j] = g->stamp[i];
            g->distance[j] = g->distance[i] + 1;
        }
    }
    return -1;
}

/* Least residual capacity from node i to its root; or, with push > 0, pushes that much and makes orphans where it is
 * used up. */
static int64_t walk(fgi_maxflow *g, int32_t i, int64_t least, int64_t push) {
    const int side = g->side[i];
    for (;;) {
        const int64_t a = g->parent[i];
        g->steps++;
        if (a == TERMINAL) break;
        const int64_t along = side == SOURCE ? a ^ 1 : a;
        if (push) {
            g->residual[along] -= push;
            g->residual[along ^ 1] += push;
            if (!g->residual[along]) make_orphan(g, i);
        } else if (g->residual[along] < least) {
            least = g->residual[along];
        }
        i = g->head[a];
    }
    if (push) {
        g->terminal[i] += side == SOURCE ? -push : push;
        if (!g->terminal[i]) make_orphan(g, i);
        return push;
    }
    const int64_t left = side == SOURCE ? g->terminal[i] : -g->terminal[i];
    return left < least ? left : least;
}

static void augment(fgi_maxflow *g, int64_t arc) {
    const int32_t from = g->head[arc ^ 1], to = g->head[arc];
    int64_t push = walk(g, from, g->residual[arc], 0);
    push = walk(g, to, push, 0);
    g->residual[arc] -= push;
    g->residual[arc ^ 1] += push;
    walk(g, from, 0, push);
    walk(g, to, 0, push);
    g->flow += push;
}

/* Distance of node j to its root, or INT32_MAX if its path ends at an orphan. The distances found are noted on the way.
 */
static int32_t root_distance(fgi_maxflow *g, int32_t j) {
    fgi_assert(j >= 0 && j < g->n);
    int32_t d = 0, k = j;
    for (;; k = g->head[g->parent[k]]) {
        g->steps++;
        if (g->stamp[k] == g->now) {
            d += g->distance[k];
            break;
        }
        if (g->parent[k] == ORPHAN) return INT32_MAX;
        d++;
        if (g->parent[k] == TERMINAL) {
            g->stamp[k] = g->now;
            g->distance[k] = 1;
            break;
        }
    }
    int32_t result = d;
    for (k = j; g->stamp[k] != g->now; k = g->head[g->parent[k]]) {
        g->stamp[k] = g->now;
        g->distance[k] = d--;
    }
    return result;
}

/* Finds the orphan a new parent in its tree, or sets it free and makes its children orphans. */
static void adopt(fgi_maxflow *g, int32_t i) {
    fgi_assert(i >= 0 && i < g->n);
    const int side = g->side[i];
    int64_t best = -1;
    int32_t nearest = INT32_MAX;
    for (int64_t a = g->first[i]; a >= 0; a = g->next[a]) {
        const int32_t j = g->head[a];
        g->steps++;
        if (!inward(g, a, side) || g->side[j] != side || g->parent[j] == NONE || g->parent[j] == ORPHAN) continue;
        const int32_t d = root_distance(g, j);
        if (d < nearest) {
            nearest = d;
            best = a;
        }
    }
    if (best >= 0) {
        g->parent[i] = best;
        g->stamp[i] = g->now;
        g->distance[i] = nearest + 1;
        return;
    }
    g->parent[i] = NONE;
    g->side[i] = FREE;
    for (int64_t a = g->first[i]; a >= 0; a = g->next[a]) {
        const int32_t j = g->head[a];
        g->steps++;
        if (g->side[j] != side || g->parent[j] == NONE) continue;
        if (inward(g, a, side)) activate(g, j);
        if (g->parent[j] >= 0 && g->head[g->parent[j]] == i) make_orphan(g, j);
    }
}

static void start(fgi_maxflow *g) {
    g->started = 1;
    for (int32_t i = 0; i < g->n; i++) {
        if (!g->terminal[i]) continue;
        g->side[i] = g->terminal[i] > 0 ? SOURCE : SINK;
        g->parent[i] = TERMINAL;
        g->distance[i] = 1;
        activate(g, i);
    }
}

int fgi_maxflow_run(fgi_maxflow *g, double steps, double deadline) {
    if (!g->started) start(g);
    const double limit = g->steps + steps;
    fgi_meter meter = {STEPS_PER_LOOK, 0, deadline};
    double counted = g->steps;
    for (;;) {
        const int over = fgi_meter_spend(&meter, (int64_t)(g->steps - counted));
        counted = g->steps;
        if (over || g->steps >= limit) return 0;
        int32_t i = g->current;
        if (i >= 0 && g->parent[i] == NONE) i = -1;
        while (i < 0 && g->n_active > 0) {
            i = g->active[g->active_head];
            g->active_head = (g->active_head + 1) % g->n;
            g->n_active--;
            g->is_active[i] = 0;
            if (g->parent[i] == NONE) i = -1;
        }
        if (i < 0) return 1;
        const int64_t arc = grow(g, i);
        g->now++;
        g->current = -1;
        if (arc < 0) continue;
        g->current = i; /* it may have more */
        augment(g, arc);
        while (g->n_orphans > 0) {
            int32_t orphan = g->orphans[g->orphan_head];
            g->orphan_head = (g->orphan_head + 1) % g->n;
            g->n_orphans--;
            adopt(g, orphan);
        }
    }
}

int64_t fgi_maxflow_value(const fgi_maxflow *g) { return g->flow; }
double fgi_maxflow_steps(const fgi_maxflow *g) { return g->steps; }
int fgi_maxflow_side(const fgi_maxflow *g, int32_t node) {
    return g->parent[node] == NONE ? 0 : g->side[node] == SOURCE ? 1 : -1;
}
