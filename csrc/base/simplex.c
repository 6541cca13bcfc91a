/* base/simplex.c - see base/simplex.h. */
#include "base/simplex.h"

/* Michelot's algorithm on values shifted so that their maximum is 0: whatever lies below -1 is zero in the projection,
 * and the shift keeps the digits of large inputs. The threshold only rises, so the filter is exact when it is stable.
 */
void fgi_simplex_project(double *v, int32_t n) {
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
