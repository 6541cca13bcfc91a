/* semidefinite/triangles.c - which triangle inequalities the relaxation has: see semidefinite/gram.h. */
#include <string.h>
#include "base/cutoff.h"
#include "semidefinite/gram.h"

/* A triangle without a price that is satisfied by this much is not coming back soon. */
static const double IDLE_SLACK = 0.05; /* chosen */
static const double IDLE_PRICE = 1e-4; /* mean price that counts as none, in units of the stiffness (chosen) */
/* Smaller violations are left to rounding. */
static const double LEAST_VIOLATION = 1e-3; /* chosen */

/* The signs of a triangle whose products are ab and ac. */
static fgi_triangle triangle_of(int32_t a, int32_t b, int32_t c, int ab, int ac) {
    return (fgi_triangle){.node = {a, b, c}, .sign = {1, (int8_t)ab, (int8_t)ac}};
}

/* The sign pattern of three nodes with the smallest slack: 1 + p X_ab + q X_ac + p q X_bc. */
static double least_slack(double ab, double ac, double bc, int *p, int *q) {
    double least = INFINITY;
    for (int pattern = 0; pattern < 4; pattern++) {
        const int s = pattern & 1 ? 1 : -1, r = pattern & 2 ? 1 : -1;
        const double value = 1 + s * ab + r * ac + s * r * bc;
        if (value < least) least = value, *p = s, *q = r;
    }
    return least;
}

static void drop_idle(fgi_gram *g) {
    fgi_triangle *t = fgi_gram_triangles(g);
    int64_t kept = 0;
    for (int64_t k = 0; k < g->triangles.n; k++) {
        const int64_t n = g->n, a = t[k].node[0], b = t[k].node[1], c = t[k].node[2];
        const int p = t[k].sign[0] * t[k].sign[1], q = t[k].sign[0] * t[k].sign[2];
        const double slack = 1 + p * g->x[a * n + b] + q * g->x[a * n + c] + p * q * g->x[b * n + c];
        if (t[k].price > 0 || t[k].mean > IDLE_PRICE * g->stiffness || slack < IDLE_SLACK) t[kept++] = t[k];
    }
    g->triangles.n = kept;
}

static int is_before(const fgi_triangle *triangle, const fgi_triangle *t) {
    for (int c = 0; c < 3; c++)
        if (triangle->node[c] != t->node[c]) return triangle->node[c] < t->node[c];
    for (int c = 1; c < 3; c++)
        if (triangle->sign[c] != t->sign[c]) return triangle->sign[c] < t->sign[c];
    return 0;
}

static int compare(const void *s, const void *t) { return is_before(t, s) - is_before(s, t); }

/* Equal triangles become one, with the sum of their prices. */
static void merge(fgi_array *triangles) {
    fgi_triangle *t = triangles->at;
    int64_t kept = 0;
    if (triangles->n == 0) return;
    qsort(t, (size_t)triangles->n, sizeof *t, compare);
    for (int64_t k = 1; k < triangles->n; k++) {
        if (compare(&t[kept], &t[k]) == 0) t[kept].price += t[k].price, t[kept].mean += t[k].mean;
        else t[++kept] = t[k];
    }
    triangles->n = kept + 1;
}

/* Calls for every violated triple, either to count its violation or to take it where the cutoff does. */
static int visit(fgi_gram *g, fgi_array *violations, fgi_cutoff *taken) {
    const int64_t n = g->n;
    for (int32_t a = 0; a < n; a++)
        for (int32_t b = a + 1; b < n; b++) {
            const double *xa = g->x + a * n, *xb = g->x + b * n, ab = xa[b];
            for (int32_t c = b + 1; c < n; c++) {
                int p = 1, q = 1;
                /* All four slacks are at least 1 - |ab| - |ac| - |bc|. */
                if (1 + LEAST_VIOLATION > fabs(ab) + fabs(xa[c]) + fabs(xb[c])) continue;
                const float violation = (float)-least_slack(ab, xa[c], xb[c], &p, &q);
                if (violation < (float)LEAST_VIOLATION) continue;
                if (!taken) {
                    if (!fgi_array_push_i32(violations, (int32_t)fgi_cutoff_key(violation))) return 0;
                } else if (fgi_cutoff_takes(taken, violation)) {
                    if (!fgi_array_reserve(&g->triangles, 1, sizeof(fgi_triangle))) return 0;
                    fgi_gram_triangles(g)[g->triangles.n++] = triangle_of(a, b, c, p, q);
                }
            }
        }
    return 1;
}

int fgi_gram_separate(fgi_gram *g, int64_t most, int64_t *violated, int64_t *work) {
    fgi_array violations = {0};
    drop_idle(g);
    int ok = visit(g, &violations, NULL);
    *work += (int64_t)g->n * g->n * g->n / 3;
    *violated = violations.n;
    if (ok && violations.n > 0) {
        fgi_cutoff taken = fgi_cutoff_of(violations.at, violations.n, most);
        ok = visit(g, NULL, &taken);
        merge(&g->triangles);
    }
    fgi_array_free(&violations);
    return ok;
}

void fgi_triangles_rename(fgi_array *triangles, const int32_t *cluster, const int8_t *sign) {
    fgi_triangle *t = triangles->at;
    int64_t kept = 0;
    for (int64_t k = 0; k < triangles->n; k++) {
        fgi_triangle triangle = t[k];
        for (int c = 0; c < 3; c++) {
            triangle.sign[c] = (int8_t)(triangle.sign[c] * sign[triangle.node[c]]);
            triangle.node[c] = cluster[triangle.node[c]];
        }
        for (int c = 0; c < 2; c++) /* three are sorted by three exchanges of neighbours */
            for (int d = 0; d < 2 - c; d++)
                if (triangle.node[d] > triangle.node[d + 1]) {
                    const int32_t node = triangle.node[d];
                    const int8_t turn = triangle.sign[d];
                    triangle.node[d] = triangle.node[d + 1], triangle.sign[d] = triangle.sign[d + 1];
                    triangle.node[d + 1] = node, triangle.sign[d + 1] = turn;
                }
        if (triangle.node[0] == triangle.node[1] || triangle.node[1] == triangle.node[2]) continue;
        if (triangle.sign[0] < 0)
            for (int c = 0; c < 3; c++) triangle.sign[c] = (int8_t)-triangle.sign[c];
        t[kept++] = triangle;
    }
    triangles->n = kept;
    merge(triangles);
}
