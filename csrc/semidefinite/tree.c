/* semidefinite/tree.c - open nodes of the semidefinite branch and bound: see semidefinite/tree.h. */
#include "semidefinite/tree.h"
#include <string.h>

struct fgi_tree_start {
    int refs; /* nodes that begin here; a solver has one thread at a time */
    int32_t n;
    int32_t *cluster; /* the cluster of each spin */
    int8_t *sign;
    double *vectors;
    fgi_triangle *triangles;
    int64_t n_triangles;
    fgi_arena arena;
    int64_t *held; /* bytes that the tree counts */
};

fgi_rc fgi_tree_init(fgi_tree *t, int32_t n_spins, int32_t rank) {
    *t = (fgi_tree){.n_spins = n_spins, .rank = rank};
    t->renamed = fgi_take(&t->arena, n_spins, int32_t);
    t->turned = fgi_take(&t->arena, n_spins, int8_t);
    t->side = fgi_take(&t->arena, n_spins, uint8_t);
    if (t->arena.failed || !fgi_grow(&t->heap, &t->capacity, 1, sizeof *t->heap)) return FGI_NO_MEMORY;
    t->heap[t->count++] = (fgi_tree_node){.bound = INFINITY, .number = t->numbers++};
    return FGI_OK;
}

void fgi_tree_release(fgi_tree_node *node) {
    fgi_tree_start *start = node->start;
    node->start = NULL;
    node->number = -1;
    if (!start || --start->refs > 0) return;
    *start->held -= start->arena.bytes;
    fgi_arena_free(&start->arena);
    free(start);
}

void fgi_tree_free(fgi_tree *t) {
    for (int64_t k = 0; k < t->count; k++) fgi_tree_release(&t->heap[k]);
    free(t->heap);
    fgi_arena_free(&t->arena);
}

double fgi_tree_bound(const fgi_tree *t) { return t->count > 0 ? t->heap[0].bound : -INFINITY; }

static int is_before(const fgi_tree_node *a, const fgi_tree_node *b) {
    return a->bound != b->bound ? a->bound > b->bound : a->number < b->number;
}

static void swap(fgi_tree_node *a, fgi_tree_node *b) {
    const fgi_tree_node c = *a;
    *a = *b;
    *b = c;
}

/* There is room for it. */
static void add(fgi_tree *t, fgi_tree_node node) {
    int64_t at = t->count++;
    t->heap[at] = node;
    for (; at > 0 && is_before(&t->heap[at], &t->heap[(at - 1) / 2]); at = (at - 1) / 2)
        swap(&t->heap[at], &t->heap[(at - 1) / 2]);
}

int fgi_tree_take(fgi_tree *t, fgi_tree_node *node) {
    if (t->count == 0) return 0;
    *node = t->heap[0];
    t->heap[0] = t->heap[--t->count];
    for (int64_t at = 0, child; (child = 2 * at + 1) < t->count; at = child) {
        if (child + 1 < t->count && is_before(&t->heap[child + 1], &t->heap[child])) child++;
        if (!is_before(&t->heap[child], &t->heap[at])) break;
        swap(&t->heap[at], &t->heap[child]);
    }
    return 1;
}

static void enter_root(fgi_tree *t, fgi_gram *g, int32_t *cluster, int8_t *sign) {
    g->n = t->n_spins;
    g->triangles.n = 0;
    for (int32_t i = 0; i < t->n_spins; i++) cluster[i] = i, sign[i] = 1;
}

int fgi_tree_enter(fgi_tree *t, const fgi_tree_node *node, fgi_gram *g, int32_t *cluster, int8_t *sign) {
    const fgi_tree_start *start = node->start;
    if (!start) {
        enter_root(t, g, cluster, sign);
        return 1;
    }
    for (int32_t c = 0; c < start->n; c++) {
        t->renamed[c] = c == node->gone ? node->kept : c - (c > node->gone);
        t->turned[c] = (int8_t)(c == node->gone ? node->sign : 1);
    }
    for (int32_t i = 0; i < t->n_spins; i++) {
        cluster[i] = t->renamed[start->cluster[i]];
        sign[i] = (int8_t)(start->sign[i] * t->turned[start->cluster[i]]);
    }
    g->n = start->n - 1;
    for (int32_t c = 0; c < start->n; c++)
        if (c != node->gone)
            memcpy(g->vectors + (int64_t)t->renamed[c] * t->rank, start->vectors + (int64_t)c * t->rank,
                (size_t)t->rank * sizeof(double));
    g->triangles.n = 0;
    if (!fgi_array_reserve(&g->triangles, start->n_triangles + 1, sizeof(fgi_triangle))) return 0;
    memcpy(g->triangles.at, start->triangles, (size_t)start->n_triangles * sizeof(fgi_triangle));
    g->triangles.n = start->n_triangles;
    fgi_triangles_rename(&g->triangles, t->renamed, t->turned);
    return 1;
}

static fgi_tree_start *make_start(fgi_tree *t, const fgi_gram *g, const int32_t *cluster, const int8_t *sign) {
    fgi_tree_start *start = fgi_calloc(1, sizeof *start);
    if (!start) return NULL;
    start->n = g->n;
    start->held = &t->bytes;
    start->cluster = fgi_arena_copy(&start->arena, cluster, t->n_spins, sizeof *cluster);
    start->sign = fgi_arena_copy(&start->arena, sign, t->n_spins, sizeof *sign);
    start->vectors = fgi_arena_copy(&start->arena, g->vectors, (int64_t)g->n * g->rank, sizeof(double));
    start->n_triangles = g->triangles.n;
    start->triangles = fgi_take(&start->arena, g->triangles.n, fgi_triangle);
    if (start->arena.failed) {
        fgi_arena_free(&start->arena);
        free(start);
        return NULL;
    }
    if (start->n_triangles)
        memcpy(start->triangles, g->triangles.at, (size_t)start->n_triangles * sizeof *start->triangles);
    t->bytes += start->arena.bytes;
    return start;
}

int fgi_tree_split(fgi_tree *t, const fgi_tree_node *node, const fgi_gram *g, const int32_t *cluster,
    const int8_t *sign, int32_t a, int32_t b) {
    if (!fgi_grow(&t->heap, &t->capacity, t->count + 2, sizeof *t->heap)) return 0;
    fgi_tree_start *start = make_start(t, g, cluster, sign);
    if (!start) return 0;
    start->refs = 2;
    for (int8_t equal = 1; equal >= -1; equal = (int8_t)(equal - 2))
        add(t,
            (fgi_tree_node){
                .bound = node->bound, .number = t->numbers++, .start = start, .kept = a, .gone = b, .sign = equal});
    return 1;
}
