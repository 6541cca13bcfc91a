/* semidefinite/certify.c - an upper bound from the vectors and prices that holds whatever rounding has done.
 *
 * d_i = v_i . (M v)_i is the best diagonal once the vectors stand still. Before that, and because of rounding, it is
 * shifted: the smallest shift is looked for under which a floating-point Cholesky factorisation of Diag(d) - M - e I
 * runs to its end, with e = 2 (n + 2) u trace(Diag(d)) and more for the rounding of the difference. If it does,
 * Diag(d) - M is positive semidefinite (S. M. Rump, Verification of positive definiteness, BIT 46, 2006). */
#include <string.h>
#include "semidefinite/gram.h"

enum { MOST_TRIES = 12 };               /* factorisations of one bound */
static const double FINE_ENOUGH = 1.25; /* the shift may be this much too large: chosen */
static const double LEAST_SHIFT = 1e-9; /* in units of the mean of |d|: chosen */

fgi_rc fgi_certificate_init(fgi_certificate *k, int32_t most_nodes) {
    *k = (fgi_certificate){.capacity = most_nodes};
    const int64_t n = most_nodes;
    k->matrix = fgi_take(&k->arena, n * n, double);
    k->factor = fgi_take(&k->arena, n * n, double);
    k->diagonal = fgi_take(&k->arena, n, double);
    k->column = fgi_take(&k->arena, n, double);
    return k->arena.failed ? FGI_NO_MEMORY : FGI_OK;
}

void fgi_certificate_free(fgi_certificate *k) { fgi_arena_free(&k->arena); }

/* M and d; and what may be lost where M is rounded: every entry is a sum, and signs pick each of them up once. */
static void begin(fgi_certificate *k, const fgi_gram *g, int64_t additions) {
    const int64_t n = g->n;
    const fgi_triangle *t = fgi_gram_triangles(g);
    double magnitude = 0, price = 0;
    memcpy(k->matrix, g->c, (size_t)(n * n) * sizeof(double));
    for (int64_t e = 0; e < n * n; e++) magnitude += fabs(g->c[e]);
    for (int64_t e = 0; e < g->triangles.n; e++) {
        price += (double)t[e].mean;
        for (int p = 0; p < 3; p++)
            for (int q = 0; q < 3; q++)
                if (p != q) {
                    const double half = 0.5 * (double)t[e].mean * t[e].sign[p] * t[e].sign[q];
                    k->matrix[t[e].node[p] * n + t[e].node[q]] += half;
                }
    }
    magnitude += 3 * price;
    k->price = price * (1 + 0x1p-51 * (double)(g->triangles.n + 1));
    k->error = 0x1p-51 * (double)(additions + g->triangles.n + 4) * magnitude;
    for (int64_t i = 0; i < n; i++) k->diagonal[i] = fgi_dot(k->matrix + i * n, g->x + i * n, n);
    double mean = 0;
    for (int64_t i = 0; i < n; i++) mean += fabs(k->diagonal[i]) / (double)n;
    k->holds = INFINITY;
    k->fails = LEAST_SHIFT * mean;
    k->shift = fgi_larger(k->shift, 4 * k->fails);
    if (!(k->shift > 0)) k->shift = k->fails = 0x1p-1000; /* a graph without edges */
    k->row = k->tries = 0;
    k->is_begun = 1;
}

/* How much is taken off the diagonal before it is factored. */
static double margin(const fgi_certificate *k, int32_t n) {
    double trace = 0, most = 0;
    for (int32_t i = 0; i < n; i++) {
        const double d = fabs(k->diagonal[i] + k->shift);
        trace += d;
        most = fgi_larger(most, d);
    }
    return 0x1p-51 * ((double)n + 3) * trace + 0x1p-50 * most + 0x1p-1000;
}

/* One row of the factor; 0: the matrix is not known to be positive definite. */
static int factor_row(fgi_certificate *k, const fgi_gram *g, int32_t j, double off) {
    const int64_t n = g->n;
    double *row = k->factor + j * n;
    for (int32_t p = 0; p < j; p++) k->column[p] = k->factor[p * n + j];
    if (j > 0) g->kernels->rows(k->factor + j, n, j, n - j, k->column, row + j);
    else memset(row, 0, (size_t)n * sizeof(double));
    const double pivot = (k->diagonal[j] + k->shift - off) - row[j];
    if (!(pivot > 0) || !isfinite(pivot)) return 0;
    const double root = sqrt(pivot);
    row[j] = root;
    for (int64_t b = j + 1; b < n; b++) row[b] = (-k->matrix[j * n + b] - row[b]) / root;
    return 1;
}

/* The next shift to try; 0: the one that holds is near enough to the one that fails. */
static int next_shift(fgi_certificate *k, int has_held) {
    if (has_held) k->holds = k->shift;
    else k->fails = k->shift;
    k->row = 0;
    if (k->holds < INFINITY && (k->holds <= FINE_ENOUGH * k->fails || ++k->tries > MOST_TRIES)) return 0;
    /* The geometric mean of the two. A root of their ratio is rounded the same way in every unit of the scores. */
    const double low = fgi_larger(k->fails, k->holds / 64);
    k->shift = k->holds < INFINITY ? low * sqrt(k->holds / low) : 8 * k->shift;
    return isfinite(k->shift);
}

/* Sums of at most n + 2 terms, rounded up. */
static double total(const fgi_certificate *k, int32_t n) {
    double sum = 0, magnitude = fabs(k->price);
    for (int32_t i = 0; i < n; i++) {
        sum += k->diagonal[i] + k->holds;
        magnitude += fabs(k->diagonal[i]) + k->holds;
    }
    sum += k->price;
    return sum + k->error + 0x1p-51 * ((double)n + 4) * magnitude;
}

int fgi_certify(
    fgi_certificate *k, const fgi_gram *g, int64_t additions, fgi_meter *meter, double *bound, int64_t *work) {
    if (!k->is_begun) begin(k, g, additions);
    for (;;) {
        const double off = margin(k, g->n);
        int held = 1;
        while (held && k->row < g->n) {
            const int32_t j = k->row++;
            held = factor_row(k, g, j, off);
            const int64_t cost = (int64_t)j * (g->n - j) / 4 + 4 * g->n;
            *work += cost;
            if (held && fgi_meter_spend(meter, cost) && k->row < g->n) return 0;
        }
        if (!next_shift(k, held)) break;
    }
    k->is_begun = 0;
    k->shift = k->holds;
    *bound = k->holds < INFINITY ? total(k, g->n) : INFINITY;
    return 1;
}
