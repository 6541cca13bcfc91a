/* semidefinite/gram.c - the vectors of the relaxation, and how they move: see semidefinite/gram.h. */
#include "semidefinite/gram.h"
#include <string.h>

/* Decision 0002 has the measurements. */
enum {
    LEAST_RANK = 8, /* dimensions, at least (chosen) */
    MOST_RANK = 128 /* dimensions, at most (chosen) */
};
static const double RANK = 0.6;      /* dimensions for each node (measured) */
static const double STIFFNESS = 0.1; /* price of a slack of -1, in units of the mean coupling (measured) */
static const double HELD_BACK = 0.5; /* part of the curvature of triangles that slows a vector down (chosen) */
static const float LATEST = 0.2f;    /* weight of the latest price in the mean (measured) */

fgi_rc fgi_gram_init(fgi_gram *g, int32_t most_nodes) {
    *g = (fgi_gram){.capacity = most_nodes, .kernels = fgi_sum_kernels_best()};
    /* Prices on hundreds of triangles are at home in high dimensions: in sqrt(2 n), which is enough without them, the
     * vectors get caught and the certified bound stays apart from the relaxation's. A multiple of four suits the
     * kernels. */
    const int32_t rank = (int32_t)(RANK * most_nodes) + LEAST_RANK;
    g->rank = (rank < MOST_RANK ? rank : MOST_RANK) / 4 * 4;
    const int64_t n = most_nodes;
    g->c = fgi_take(&g->arena, n * n, double);
    g->x = fgi_take(&g->arena, n * n, double);
    g->vectors = fgi_take(&g->arena, n * g->rank, double);
    g->turned = fgi_take(&g->arena, n * g->rank, double);
    g->row = fgi_take(&g->arena, n, double);
    g->spare = fgi_take(&g->arena, n, double);
    g->gradient = fgi_take(&g->arena, g->rank, double);
    return g->arena.failed ? FGI_NO_MEMORY : FGI_OK;
}

void fgi_gram_free(fgi_gram *g) {
    fgi_array_free(&g->triangles);
    fgi_array_free(&g->begin);
    fgi_array_free(&g->of_node);
    fgi_arena_free(&g->arena);
}

/* The vector becomes v / |v|; one without a direction stays as it is. */
static void place(fgi_gram *g, int32_t i, const double *v) {
    fgi_assert(i >= 0 && i < g->n);
    const double length = sqrt(fgi_dot(v, v, g->rank));
    double *to = g->vectors + (int64_t)i * g->rank;
    if (!(length > 0) || !isfinite(length)) return;
    for (int32_t k = 0; k < g->rank; k++) {
        to[k] = v[k] / length;
        g->turned[(int64_t)k * g->n + i] = to[k];
    }
}

static void multiply(fgi_gram *g, int32_t i) {
    fgi_assert(i >= 0 && i < g->n);
    double *x = g->x + (int64_t)i * g->n;
    g->kernels->rows(g->turned, g->n, g->rank, g->n, g->vectors + (int64_t)i * g->rank, x);
    for (int32_t j = 0; j < g->n; j++) g->x[(int64_t)j * g->n + i] = x[j];
}

void fgi_gram_randomise(fgi_gram *g, fgi_rng *rng) {
    for (int32_t i = 0; i < g->n; i++) {
        for (int32_t k = 0; k < g->rank; k++) g->gradient[k] = fgi_rng_unit(rng) + fgi_rng_unit(rng) - 1;
        place(g, i, g->gradient);
    }
}

static int list_triangles(fgi_gram *g) {
    const fgi_triangle *t = fgi_gram_triangles(g);
    const int64_t n = g->triangles.n;
    g->begin.n = g->of_node.n = 0;
    if (!fgi_array_reserve(&g->begin, (int64_t)g->n + 2, sizeof(int64_t))) return 0;
    if (!fgi_array_reserve(&g->of_node, 3 * n + 1, sizeof(int32_t))) return 0;
    int64_t *begin = g->begin.at;
    int32_t *list = g->of_node.at;
    memset(begin, 0, ((size_t)g->n + 2) * sizeof *begin);
    for (int64_t k = 0; k < n; k++)
        for (int c = 0; c < 3; c++) begin[t[k].node[c] + 2]++;
    for (int32_t i = 0; i < g->n; i++) begin[i + 2] += begin[i + 1];
    for (int64_t k = 0; k < n; k++)
        for (int c = 0; c < 3; c++) list[begin[t[k].node[c] + 1]++] = (int32_t)k;
    return 1;
}

int fgi_gram_refresh(fgi_gram *g) {
    double sum = 0;
    int64_t count = 0;
    for (int64_t k = 0; k < (int64_t)g->n * g->n; k++) sum += fabs(g->c[k]), count += g->c[k] != 0;
    g->stiffness = count > 0 ? STIFFNESS * sum / (double)count : 1;
    for (int32_t i = 0; i < g->n; i++)
        for (int32_t k = 0; k < g->rank; k++) g->turned[(int64_t)k * g->n + i] = g->vectors[(int64_t)i * g->rank + k];
    for (int32_t i = 0; i < g->n; i++) multiply(g, i);
    g->next = 0;
    return list_triangles(g);
}

static double slack(const fgi_gram *g, const fgi_triangle *t) {
    const double *x = g->x;
    const int64_t n = g->n, a = t->node[0], b = t->node[1], c = t->node[2];
    const int ab = t->sign[0] * t->sign[1], ac = t->sign[0] * t->sign[2], bc = t->sign[1] * t->sign[2];
    return 1 + ab * x[a * n + b] + ac * x[a * n + c] + bc * x[b * n + c];
}

static double price_now(const fgi_gram *g, const fgi_triangle *t) {
    return fgi_larger(0, (double)t->price - g->stiffness * slack(g, t));
}

/* Adds what the triangles of a node do to its row of M; returns how strongly they hold its vector back. */
static double add_prices(fgi_gram *g, int32_t i) {
    fgi_assert(i >= 0 && i < g->n);
    const int64_t *begin = g->begin.at;
    const int32_t *list = g->of_node.at;
    double curvature = 0;
    for (int64_t at = begin[i]; at < begin[i + 1]; at++) {
        const fgi_triangle *t = fgi_gram_triangles(g) + list[at];
        const double price = price_now(g, t);
        if (price == 0) continue;
        const int mine = t->node[0] == i ? 0 : t->node[1] == i ? 1 : 2, p = mine == 0 ? 1 : 0, q = mine == 2 ? 1 : 2;
        const int32_t j = t->node[p], k = t->node[q];
        g->row[j] += 0.5 * price * t->sign[mine] * t->sign[p];
        g->row[k] += 0.5 * price * t->sign[mine] * t->sign[q];
        curvature += g->stiffness * (1 + t->sign[p] * t->sign[q] * g->x[(int64_t)j * g->n + k]);
    }
    return curvature;
}

static void move(fgi_gram *g, int32_t i) {
    fgi_assert(i >= 0 && i < g->n);
    const double *v = g->vectors + (int64_t)i * g->rank;
    memcpy(g->row, g->c + (int64_t)i * g->n, (size_t)g->n * sizeof(double));
    const double held = HELD_BACK * add_prices(g, i);
    g->kernels->rows(g->vectors, g->rank, g->n, g->rank, g->row, g->gradient);
    for (int32_t k = 0; k < g->rank; k++) g->gradient[k] += held * v[k];
    place(g, i, g->gradient);
    multiply(g, i);
}

int fgi_gram_pass(fgi_gram *g, fgi_meter *meter, int64_t *work) {
    const int64_t *begin = g->begin.at;
    while (g->next < g->n) {
        const int32_t i = g->next++;
        move(g, i);
        const int64_t cost = (int64_t)g->n * (g->rank / 2 + 3) + 8 * (begin[i + 1] - begin[i]);
        *work += cost;
        if (fgi_meter_spend(meter, cost) && g->next < g->n) return 0;
    }
    g->next = 0;
    return 1;
}

void fgi_gram_update_prices(fgi_gram *g) {
    fgi_triangle *t = fgi_gram_triangles(g);
    for (int64_t k = 0; k < g->triangles.n; k++) {
        t[k].price = (float)price_now(g, &t[k]);
        t[k].mean += LATEST * (t[k].price - t[k].mean);
    }
}
