/* dual/cycle_finder.c - frustrated cycles that a point z falls short on: see dual/cycles.h.
 *
 * A spanning forest of edges with small z gives every node a label. A frustrated cycle has an edge that these labels
 * violate; for each of those the shortest way round, by the z, is looked for in the graph of nodes and parities: the
 * ways from (i, 0) to (j, p) are those from i to j whose number of odd edges is p, modulo 2 (Barahona & Mahjoub, "On
 * the cut polytope", 1986). */
#include <string.h>
#include "base/util.h"
#include "dual/cycles.h"

static const double HOP = 1e-4; /* what an edge is longer than its z: of equal ways the one with fewer edges */
/* Decision 0016 has what other values of MOST_LOOKED_AT do. */
enum {
    MOST_NEW = 3,         /* cycles of one start that share an edge: they would all say the same */
    MOST_LOOKED_AT = 2000 /* edges of one search, in starts that find something */
};

typedef struct entry {
    double distance;
    int32_t at;
} entry;

/* Shortest ways from a node; a place is a node and a parity, 2 node + parity. */
typedef struct ball {
    double *distance;
    int32_t *by;        /* the edge a place was reached by */
    int32_t *seen, now; /* search in which both were written */
    entry *heap;
    int64_t n_heap;
} ball;

struct fgi_cycle_finder {
    const fgi_spins *g;
    const double *z;
    fgi_bonds bonds;
    int32_t *order;   /* edges by z */
    int32_t *sources; /* edges that the labels violate */
    int32_t n_sources, next;
    int64_t found, operations;
    uint8_t *used; /* cycles of this start that have an edge */
    uint8_t *twice;
    ball from, back;
    int32_t *way;
    fgi_arena arena;
};

static void make_ball(ball *b, int64_t n, int64_t m, fgi_arena *arena) {
    b->distance = fgi_take(arena, 2 * n, double);
    b->by = fgi_take(arena, 2 * n, int32_t);
    b->seen = fgi_take_zero(arena, 2 * n, int32_t);
    b->heap = fgi_take(arena, 4 * m + 1, entry); /* a place is entered at most once over each of its edges */
}

fgi_cycle_finder *fgi_cycle_finder_create(const fgi_spins *g) {
    fgi_cycle_finder *f = fgi_calloc(1, sizeof *f);
    if (!f) return NULL;
    const int64_t n = g->n, m = g->m;
    f->g = g;
    f->bonds.parent = fgi_take(&f->arena, n, int32_t);
    f->bonds.differs = fgi_take(&f->arena, n, uint8_t);
    f->order = fgi_take(&f->arena, m, int32_t);
    f->sources = fgi_take(&f->arena, m, int32_t);
    f->used = fgi_take_zero(&f->arena, m, uint8_t);
    f->twice = fgi_take_zero(&f->arena, m, uint8_t);
    make_ball(&f->from, n, m, &f->arena);
    make_ball(&f->back, n, m, &f->arena);
    f->way = fgi_take(&f->arena, 4 * n + 1, int32_t);
    if (!f->arena.failed) return f;
    fgi_cycle_finder_free(f);
    return NULL;
}

void fgi_cycle_finder_free(fgi_cycle_finder *f) {
    if (!f) return;
    fgi_arena_free(&f->arena);
    free(f);
}

int64_t fgi_cycle_finder_found(const fgi_cycle_finder *f) { return f->found; }
int64_t fgi_cycle_finder_operations(const fgi_cycle_finder *f) { return f->operations; }

/* Edges in ascending order of z, ties by number: a stable sort by merging. */
static void sort_edges(fgi_cycle_finder *f) {
    const int32_t m = f->g->m;
    int32_t *a = f->order, *b = f->sources;
    for (int32_t e = 0; e < m; e++) a[e] = e;
    for (int64_t width = 1; width < m; width *= 2) {
        for (int64_t at = 0; at < m; at += 2 * width) {
            const int64_t middle = at + width < m ? at + width : m, end = at + 2 * width < m ? at + 2 * width : m;
            int64_t i = at, j = middle;
            for (int64_t k = at; k < end; k++)
                b[k] = i < middle && (j >= end || f->z[a[i]] <= f->z[a[j]]) ? a[i++] : a[j++];
        }
        int32_t *const kept = a;
        a = b;
        b = kept;
    }
    if (a != f->order && m) memcpy(f->order, a, (size_t)m * sizeof *a);
}

void fgi_cycle_finder_start(fgi_cycle_finder *f, const double *z, uint8_t *side) {
    const fgi_spins *g = f->g;
    f->z = z;
    f->n_sources = f->next = 0;
    f->found = 0;
    sort_edges(f);
    fgi_bonds_clear(&f->bonds, g->n);
    for (int32_t k = 0; k < g->m; k++) {
        const int32_t e = f->order[k];
        if (fgi_bonds_join(&f->bonds, g->ends[2 * e], g->ends[2 * e + 1], g->odd[e]) < 0)
            f->sources[f->n_sources++] = e;
    }
    for (int32_t i = 0; i < g->n; i++) fgi_bonds_root(&f->bonds, i, &side[i]);
    if (g->m) memset(f->used, 0, (size_t)g->m);
    f->operations += 30 * (int64_t)g->m;
}

/* ---- shortest ways -------------------------------------------------------------------------------------------- */

static void push(ball *b, double distance, int32_t at) {
    int64_t k = b->n_heap++;
    for (; k > 0 && distance < b->heap[(k - 1) / 2].distance; k = (k - 1) / 2) b->heap[k] = b->heap[(k - 1) / 2];
    b->heap[k] = (entry){distance, at};
}

static entry pop(ball *b) {
    const entry least = b->heap[0], last = b->heap[--b->n_heap];
    int64_t k = 0;
    for (;;) {
        int64_t child = 2 * k + 1;
        if (child >= b->n_heap) break;
        if (child + 1 < b->n_heap && b->heap[child + 1].distance < b->heap[child].distance) child++;
        if (b->heap[child].distance >= last.distance) break;
        b->heap[k] = b->heap[child];
        k = child;
    }
    b->heap[k] = last;
    return least;
}

static double distance_to(const ball *b, int32_t at) { return b->seen[at] == b->now ? b->distance[at] : INFINITY; }

static int32_t other_end(const fgi_spins *g, int32_t edge, int32_t node) {
    fgi_assert(edge >= 0 && edge < g->m && (g->ends[2 * edge] == node || g->ends[2 * edge + 1] == node));
    return g->ends[2 * edge] == node ? g->ends[2 * edge + 1] : g->ends[2 * edge];
}

/* Without going on from the ground, which is a neighbour of all: ways through it are put together of two. */
static void reach(ball *b, int32_t at, double distance, int32_t by, int32_t ground) {
    if (distance_to(b, at) <= distance) return;
    b->seen[at] = b->now;
    b->distance[at] = distance;
    b->by[at] = by;
    if (at / 2 != ground) push(b, distance, at);
}

static void begin(ball *b, const fgi_spins *g, int32_t node) {
    if (b->now == INT32_MAX) {
        memset(b->seen, 0, 2 * (size_t)g->n * sizeof *b->seen);
        b->now = 0;
    }
    b->now++;
    b->n_heap = 0;
    reach(b, 2 * node, 0, -1, g->ground);
}

/* The least length of a way to `target` that is known: there at once, or through the ground, which the ball around the
 * other end has come to as well (NULL: there is none). *parity: with which it goes to the ground; -1: not at all. */
static double best_way(const ball *from, const ball *back, int32_t target, int32_t ground, int *parity) {
    double best = distance_to(from, target);
    *parity = -1;
    for (int p = 0; p < 2 && back; p++) {
        const double through = distance_to(from, 2 * ground + p) + distance_to(back, 2 * ground + (p ^ (target & 1)));
        if (through >= best) continue;
        best = through;
        *parity = p;
    }
    return best;
}

/* Goes on until nothing shorter can be found, or nothing within `within`. target -1: to the ground, in both parities.
 * Returns 0 where it has taken too long. */
static int explore(fgi_cycle_finder *f, ball *b, const ball *back, int32_t e, int32_t target, double within) {
    const fgi_spins *g = f->g;
    const int32_t ground = g->ground;
    int64_t looked_at = 0;
    int parity;
    while (b->n_heap > 0) {
        const entry x = pop(b);
        if (x.distance > b->distance[x.at]) continue;
        const double enough = target >= 0 ? best_way(b, back, target, ground, &parity)
                                          : fgi_larger(distance_to(b, 2 * ground), distance_to(b, 2 * ground + 1));
        if (x.distance >= enough || x.distance > within) return 1;
        const int32_t node = x.at / 2;
        looked_at += g->begin[node + 1] - g->begin[node];
        if (looked_at > MOST_LOOKED_AT && f->found > 0) return 0;
        f->operations += 8 * (g->begin[node + 1] - g->begin[node]) + 16;
        for (int64_t k = g->begin[node]; k < g->begin[node + 1]; k++) {
            const int32_t over = g->adj[k];
            const double to = x.distance + f->z[over] + HOP;
            if (over == e || to > within || f->used[over] >= MOST_NEW) continue;
            reach(b, 2 * other_end(g, over, node) + ((x.at & 1) ^ g->odd[over]), to, over, ground);
        }
    }
    return 1;
}

/* Writes the edges of the way to `at`. */
static int64_t write_way(const fgi_cycle_finder *f, const ball *b, int32_t at, int32_t *way) {
    const fgi_spins *g = f->g;
    int64_t n = 0;
    while (b->by[at] >= 0) {
        const int32_t over = b->by[at];
        way[n++] = over;
        at = 2 * other_end(g, over, at / 2) + ((at & 1) ^ g->odd[over]);
    }
    return n;
}

/* The edges of the shortest way round from one end of edge e to the other that makes a frustrated cycle with it, and e;
 * 0: there is none within `within`. */
static int64_t search(fgi_cycle_finder *f, int32_t e, double within) {
    const fgi_spins *g = f->g;
    int32_t i = g->ends[2 * e], j = g->ends[2 * e + 1];
    const ball *back = NULL;
    int parity;
    if (i == g->ground) i = j, j = g->ground;
    const int32_t target = 2 * j + (1 ^ g->odd[e]);
    if (j != g->ground && g->begin[g->ground + 1] > g->begin[g->ground]) {
        begin(&f->back, g, j);
        if (explore(f, &f->back, NULL, e, -1, within)) back = &f->back;
    }
    begin(&f->from, g, i);
    explore(f, &f->from, back, e, target, within);
    const double length = best_way(&f->from, back, target, g->ground, &parity);
    if (length > within) return 0;
    int64_t n = 0;
    if (parity < 0) n = write_way(f, &f->from, target, f->way);
    else {
        n = write_way(f, &f->from, 2 * g->ground + parity, f->way);
        n += write_way(f, &f->back, 2 * g->ground + (parity ^ (target & 1)), f->way + n);
    }
    f->way[n++] = e;
    return n;
}

/* An edge that is gone along twice is none of the cycle's. Returns how many are left, and the length of them. */
static int64_t tidy(fgi_cycle_finder *f, int64_t n, double *length) {
    int64_t kept = 0;
    *length = 0;
    for (int64_t k = 0; k < n; k++) f->twice[f->way[k]] ^= 1;
    for (int64_t k = 0; k < n; k++) {
        const int32_t e = f->way[k];
        if (!f->twice[e]) continue;
        f->twice[e] = 0;
        f->way[kept++] = e;
        *length += f->z[e];
    }
    return kept;
}

int fgi_cycle_finder_run(fgi_cycle_finder *f, fgi_packing *into, double below, int64_t max_operations, int *no_memory) {
    const int64_t end = f->operations + max_operations;
    for (; f->next < f->n_sources; f->next++) {
        if (f->operations > end) return 0;
        const int32_t e = f->sources[f->next];
        double length;
        if (f->used[e] >= MOST_NEW || f->z[e] >= below) continue;
        const int64_t way = search(f, e, below - f->z[e]), n = tidy(f, way, &length);
        if (n == 0 || length >= below) continue;
        for (int64_t k = 0; k < n; k++) f->used[f->way[k]]++;
        f->found++;
        if (!fgi_packing_add(into, f->way, n)) {
            *no_memory = 1;
            return 1;
        }
    }
    return 1;
}
