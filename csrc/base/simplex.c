/* base/simplex.c - see base/simplex.h. */
#include "base/simplex.h"
#include "base/assert.h"
#include <stdlib.h>

/* Michelot's algorithm on values shifted so that their maximum is 0: whatever lies below -1 is zero in the projection,
 * and the shift keeps the digits of large inputs. The threshold only rises, so the filter is exact when it is stable.
 */
void fgi_simplex_project(double *v, int32_t n) {
    fgi_assert(n > 0);
    double top = v[0];
    for (int32_t k = 1; k < n; k++)
        if (v[k] > top) top = v[k];
    double threshold = -1.0;
    int32_t count = n + 1;
    for (;;) {
        double sum = 0;
        int32_t kept = 0;
        for (int32_t k = 0; k < n; k++) {
            double d = v[k] - top;
            if (d > threshold) {
                sum += d;
                kept++;
            }
        }
        if (kept == count || kept <= 1) break;
        count = kept;
        double next = (sum - 1.0) / kept;
        if (next <= threshold) break;
        threshold = next;
    }
    for (int32_t k = 0; k < n; k++) {
        double x = v[k] - top - threshold;
        v[k] = x > 0 ? x : 0;
    }
}

static int32_t overlap(const int32_t *a, const int32_t *b, int32_t arity) {
    int32_t same = 0;
    for (int32_t k = 0; k < arity; k++) same += a[k] == b[k];
    return same;
}

int32_t fgi_simplex_ascend(
    int32_t n, int32_t arity, const int32_t *labels, double rho, double *gain, double *y, int32_t max_steps) {
    fgi_assert(n > 0 && arity > 0 && rho > 0);
    int32_t steps = 0;
    while (steps < max_steps) {
        int32_t up = 0, down = -1;
        for (int32_t s = 1; s < n; s++)
            if (gain[s] > gain[up]) up = s;
        double best = 0;
        for (int32_t s = 0; s < n; s++) { /* the partner with which the step gains most */
            double d = gain[up] - gain[s];
            if (!(y[s] > 0) || !(d > 0)) continue;
            int32_t differ = arity - overlap(labels + (int64_t)s * arity, labels + (int64_t)up * arity, arity);
            double t = d / (2 * rho * differ);
            if (t > y[s]) t = y[s];
            double value = t * (d - rho * differ * t);
            if (value > best) {
                best = value;
                down = s;
            }
        }
        if (down < 0) break;
        const int32_t *u = labels + (int64_t)up * arity, *w = labels + (int64_t)down * arity;
        double t = (gain[up] - gain[down]) / (2 * rho * (arity - overlap(u, w, arity)));
        if (t < 1e-13) break;
        steps++;
        if (t >= y[down]) {
            t = y[down];
            y[down] = 0;
        } else {
            y[down] -= t;
        }
        y[up] += t;
        for (int32_t s = 0; s < n; s++) {
            const int32_t *l = labels + (int64_t)s * arity;
            gain[s] -= rho * t * (overlap(l, u, arity) - overlap(l, w, arity));
        }
    }
    return steps;
}

/* ---- two sums that cancel -------------------------------------------------------------------------------------- */

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* sum (p - theta)_+ - sum (q + theta)_+ */
static double imbalance(const double *p, int32_t n, const double *q, int32_t m, double theta) {
    double sum = 0;
    for (int32_t k = 0; k < n; k++) sum += p[k] > theta ? p[k] - theta : 0;
    for (int32_t k = 0; k < m; k++) sum -= q[k] > -theta ? q[k] + theta : 0;
    return sum;
}

static void project_scaled(double *v, int32_t n, double size) {
    for (int32_t k = 0; k < n; k++) v[k] /= size;
    fgi_simplex_project(v, n);
    for (int32_t k = 0; k < n; k++) v[k] *= size;
}

static double largest(const double *v, int32_t n) {
    double top = v[0];
    for (int32_t k = 1; k < n; k++)
        if (v[k] > top) top = v[k];
    return top;
}

void fgi_bisimplex_project(double *p, int32_t n, double *q, int32_t m, double size, double *work) {
    if (n < 1 || m < 1 || !(largest(p, n) + largest(q, m) > 0) || size <= 0) {
        for (int32_t k = 0; k < n; k++) p[k] = 0;
        for (int32_t k = 0; k < m; k++) q[k] = 0;
        return;
    }
    /* The imbalance falls in theta and is linear between breakpoints: find the last one at which it is not negative. */
    const int32_t points = n + m;
    for (int32_t k = 0; k < n; k++) work[k] = p[k];
    for (int32_t k = 0; k < m; k++) work[n + k] = -q[k];
    qsort(work, (size_t)points, sizeof *work, ascending);
    int32_t low = 0, high = points - 1; /* at the first breakpoint no q counts, at the last no p */
    while (low < high) {
        const int32_t middle = low + (high - low + 1) / 2;
        if (imbalance(p, n, q, m, work[middle]) >= 0) low = middle;
        else high = middle - 1;
    }
    double theta = work[low], sum = 0;
    int32_t counted = 0;
    for (int32_t k = 0; k < n; k++)
        if (p[k] > theta) sum += p[k], counted++;
    for (int32_t k = 0; k < m; k++)
        if (-q[k] <= theta) sum -= q[k], counted++;
    if (counted) theta = sum / counted;
    double total = 0;
    for (int32_t k = 0; k < n; k++) total += p[k] > theta ? p[k] - theta : 0;
    if (total > size) {
        project_scaled(p, n, size);
        project_scaled(q, m, size);
        return;
    }
    for (int32_t k = 0; k < n; k++) p[k] = p[k] > theta ? p[k] - theta : 0;
    for (int32_t k = 0; k < m; k++) q[k] = q[k] > -theta ? q[k] + theta : 0;
}
