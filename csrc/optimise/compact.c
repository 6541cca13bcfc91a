/* optimise/compact.c - see optimise/compact.h. */
#include "optimise/compact.h"
#include <string.h>
#include "base/assert.h"

int fgi_compact_create(fgi_compact *c, int64_t memory) {
    fgi_assert(memory >= 1);
    *c = (fgi_compact){.memory = memory, .gamma = 1.0};
    c->ss = fgi_calloc(memory * memory, sizeof(double));
    c->sy = fgi_calloc(memory * memory, sizeof(double));
    c->R = fgi_calloc(4 * memory * memory, sizeof(double));
    c->work = fgi_calloc(8 * memory * memory + 2 * memory, sizeof(double));
    return c->ss && c->sy && c->R && c->work;
}

void fgi_compact_free(fgi_compact *c) {
    free(c->rows), free(c->hat), free(c->h), free(c->ss), free(c->sy), free(c->R), free(c->work);
}

int fgi_compact_clear(fgi_compact *c, int64_t n) {
    c->pairs = 0;
    c->n = n;
    for (int64_t j = 0; j < n && n <= c->room; j++) c->h[j] = 1.0;
    if (c->h && n <= c->room && n >= c->room / 8) return 1;
    free(c->rows), free(c->hat), free(c->h);
    int64_t cells;
    c->rows = c->hat = c->h = NULL;
    c->room = 0;
    if (!fgi_mul(n, 2 * c->memory, &cells)) return 0;
    c->rows = fgi_alloc(cells, sizeof(double));
    c->hat = fgi_alloc(cells, sizeof(double));
    c->h = fgi_alloc(n, sizeof(double));
    if (!c->rows || !c->hat || !c->h) return 0;
    for (int64_t j = 0; j < n; j++) c->h[j] = 1.0;
    c->room = n;
    return 1;
}

void fgi_compact_keep(fgi_compact *c, const int64_t *kept, int64_t n) {
    const int64_t stride = 2 * c->memory, used = 2 * c->pairs;
    fgi_assert(n >= 0 && n <= c->n);
    for (int64_t k = 0; k < n; k++) {
        fgi_assert(kept[k] >= k && kept[k] < c->n);
        if (kept[k] == k) continue;
        c->h[k] = c->h[kept[k]];
        if (!used) continue;
        memmove(c->rows + k * stride, c->rows + kept[k] * stride, (size_t)used * sizeof(double));
        memmove(c->hat + k * stride, c->hat + kept[k] * stride, (size_t)used * sizeof(double));
    }
    c->n = n;
}

int fgi_compact_move(fgi_compact *c, const int64_t *from, int64_t n) {
    const int64_t stride = 2 * c->memory;
    const size_t used = (size_t)(2 * c->pairs) * sizeof(double);
    fgi_compact old = *c;
    c->rows = c->hat = c->h = NULL;
    c->room = 0;
    const int64_t pairs = c->pairs;
    if (!fgi_compact_clear(c, n)) {
        free(old.rows), free(old.hat), free(old.h);
        return 0;
    }
    c->pairs = pairs;
    for (int64_t k = 0; k < n; k++) {
        fgi_assert(from[k] >= -1 && from[k] < old.n);
        if (from[k] >= 0) {
            c->h[k] = old.h[from[k]];
            memcpy(c->rows + k * stride, old.rows + from[k] * stride, used);
            memcpy(c->hat + k * stride, old.hat + from[k] * stride, used);
        } else {
            memset(c->rows + k * stride, 0, used);
            memset(c->hat + k * stride, 0, used);
        }
    }
    free(old.rows), free(old.hat), free(old.h);
    return 1;
}

/* In place inverse of the n x n matrix a by Gauss-Jordan elimination with partial pivoting, after scaling rows and
 * columns to diagonals of size 1. work: n x n + n doubles. Returns 0 when it is singular. */
static int invert(double *a, int64_t n, double *work) {
    double *inverse = work, *scale = work + n * n;
    for (int64_t i = 0; i < n; i++) {
        scale[i] = 1.0 / sqrt(fabs(a[i * n + i]));
        if (!isfinite(scale[i])) return 0;
    }
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            a[i * n + j] *= scale[i] * scale[j];
            inverse[i * n + j] = i == j;
        }
    for (int64_t k = 0; k < n; k++) {
        int64_t top = k;
        for (int64_t i = k + 1; i < n; i++)
            if (fabs(a[i * n + k]) > fabs(a[top * n + k])) top = i;
        const double pivot = a[top * n + k];
        if (!(fabs(pivot) > 1e-14)) return 0;
        for (int64_t j = 0; j < n; j++) {
            double x = a[k * n + j], y = inverse[k * n + j];
            a[k * n + j] = a[top * n + j] / pivot, inverse[k * n + j] = inverse[top * n + j] / pivot;
            if (top != k) a[top * n + j] = x, inverse[top * n + j] = y;
        }
        for (int64_t i = 0; i < n; i++) {
            const double x = a[i * n + k];
            if (i == k || x == 0.0) continue;
            for (int64_t j = 0; j < n; j++) {
                a[i * n + j] -= x * a[k * n + j];
                inverse[i * n + j] -= x * inverse[k * n + j];
            }
        }
    }
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) a[i * n + j] = scale[i] * scale[j] * inverse[i * n + j];
    return 1;
}

/* R' from the products, then the rows of P R'. */
static int refresh(fgi_compact *c) {
    const int64_t k = c->pairs, n = 2 * k, m = c->memory, stride = 2 * m;
    for (int64_t i = 0; i < k; i++)
        for (int64_t j = 0; j < k; j++) {
            c->R[(2 * i) * n + 2 * j] = c->gamma * c->ss[i * m + j];
            c->R[(2 * i) * n + 2 * j + 1] = i > j ? c->sy[i * m + j] : 0.0;
            c->R[(2 * i + 1) * n + 2 * j] = j > i ? c->sy[j * m + i] : 0.0;
            c->R[(2 * i + 1) * n + 2 * j + 1] = i == j ? -c->sy[i * m + i] : 0.0;
        }
    if (!invert(c->R, n, c->work)) return 0;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) c->R[i * n + j] *= (i % 2 ? 1.0 : c->gamma) * (j % 2 ? 1.0 : c->gamma);
    for (int64_t j = 0; j < c->n; j++) {
        const double *p = c->rows + j * stride;
        double *hat = c->hat + j * stride;
        for (int64_t a = 0; a < n; a++) hat[a] = 0;
        for (int64_t b = 0; b < n; b++) {
            const double x = p[b], *row = c->R + b * n; /* R' is symmetric */
            for (int64_t a = 0; a < n; a++) hat[a] += x * row[a];
        }
    }
    return 1;
}

/* Between the curvature along s, y's / s'Hs, and its upper mean y'H^-1 y / y's: with the first alone every second step
 * is too long, with the second steps are short (decision 0016). */
static double middle(double yy, double ss) { return sqrt(yy / ss); }

void fgi_compact_scale(fgi_compact *c, const double *h) {
    const int64_t m = c->memory, stride = 2 * m;
    fgi_sum yy = {0};
    for (int64_t j = 0; j < c->n; j++) {
        double *p = c->rows + j * stride;
        const double more = (h[j] - c->h[j]) / (c->h[j] * c->h[j]), ratio = h[j] / c->h[j];
        for (int64_t a = 0; a < c->pairs; a++)
            for (int64_t b = 0; b <= a; b++) c->ss[a * m + b] += more * p[2 * a] * p[2 * b];
        for (int64_t a = 0; a < c->pairs; a++) p[2 * a] *= ratio;
        c->h[j] = h[j];
        if (c->pairs) fgi_sum_add(&yy, p[2 * c->pairs - 1] * p[2 * c->pairs - 1] / h[j]);
    }
    for (int64_t a = 0; a < c->pairs; a++)
        for (int64_t b = 0; b < a; b++) c->ss[b * m + a] = c->ss[a * m + b];
    if (!c->pairs) return;
    const double gamma = middle(fgi_sum_value(&yy), c->ss[(c->pairs - 1) * (m + 1)]);
    if (gamma > 0 && isfinite(gamma)) c->gamma = gamma;
    if (!refresh(c)) c->pairs = 0;
}

void fgi_compact_push(fgi_compact *c, const double *direction, double step, const double *y) {
    const int64_t m = c->memory, stride = 2 * m;
    fgi_sum sy = {0}, ss = {0}, yy = {0};
    for (int64_t j = 0; j < c->n; j++) {
        const double s = step * direction[j];
        fgi_sum_add(&sy, s * y[j]), fgi_sum_add(&ss, s * s * c->h[j]), fgi_sum_add(&yy, y[j] * y[j] / c->h[j]);
    }
    const double curvature = fgi_sum_value(&sy), square = fgi_sum_value(&ss);
    if (!(curvature > FGI_LEAST_CURVATURE * sqrt(square * fgi_sum_value(&yy))) || !(square > 0)) return;
    fgi_assert(c->pairs >= 0 && c->pairs <= m && c->n <= c->room);
    if (c->pairs == m) { /* the oldest pair goes */
        c->pairs--;
        for (int64_t j = 0; j < c->n; j++)
            memmove(c->rows + j * stride, c->rows + j * stride + 2, (size_t)(2 * c->pairs) * sizeof(double));
        for (int64_t i = 0; i < c->pairs; i++) {
            memmove(c->ss + i * m, c->ss + (i + 1) * m + 1, (size_t)c->pairs * sizeof(double));
            memmove(c->sy + i * m, c->sy + (i + 1) * m + 1, (size_t)c->pairs * sizeof(double));
        }
    }
    const int64_t k = c->pairs++;
    double *products = c->work; /* s_new's_i and s_new'y_i of the pairs before */
    for (int64_t a = 0; a < 2 * k; a++) products[a] = 0;
    for (int64_t j = 0; j < c->n; j++) {
        const double s = step * direction[j];
        double *p = c->rows + j * stride;
        for (int64_t a = 0; a < 2 * k; a++) products[a] += s * p[a];
        p[2 * k] = c->h[j] * s;
        p[2 * k + 1] = y[j];
    }
    for (int64_t i = 0; i < k; i++) {
        c->ss[k * m + i] = c->ss[i * m + k] = products[2 * i];
        c->sy[k * m + i] = products[2 * i + 1];
        c->sy[i * m + k] = 0;
    }
    c->ss[k * m + k] = square;
    c->sy[k * m + k] = curvature;
    c->gamma = middle(fgi_sum_value(&yy), square);
    if (!refresh(c)) c->pairs = 0; /* pairs that are nearly the same: begin anew, with this gamma */
}

void fgi_compact_walk(fgi_compact *c, fgi_record *v) {
    const int64_t m = c->memory, stride = 2 * m;
    fgi_record_size(v, &c->pairs, m);
    fgi_record_reals(v, &c->gamma, 1);
    fgi_record_reals(v, c->h, c->n);
    fgi_record_reals(v, c->ss, m * m);
    fgi_record_reals(v, c->sy, m * m);
    for (int64_t j = 0; j < c->n && !v->failed; j++) {
        fgi_record_reals(v, c->rows + j * stride, 2 * c->pairs);
        fgi_record_reals(v, c->hat + j * stride, 2 * c->pairs);
    }
}
