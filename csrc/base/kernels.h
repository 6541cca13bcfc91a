/* base/kernels.h - the few hot loops, each in a portable and a SIMD version that give the same bits.
 *
 * The maximum of a set of numbers does not depend on the order in which they are compared, so blocking and vectorising
 * a max-plus product is free of rounding differences; the one exception, max(-0, +0), is removed by adding +0 at the
 * end. Inputs may be -INFINITY (never +INFINITY or NaN), and so may results. Vectors must not overlap unless said so.
 */
#ifndef FGI_KERNELS_H
#define FGI_KERNELS_H
#include <math.h>
#include "fginfer.h"

struct fgi_code_query;
struct fgi_byte_scan;
struct fgi_byte_query;

/* What a row of scores has at most. */
typedef struct fgi_extremes {
    double best, second; /* the largest, and the largest below it; -INFINITY: there is none */
    double largest;      /* magnitude of those above -INFINITY; 0: there are none */
    int forbids;         /* some are -INFINITY */
    int in_order;        /* none is NaN or INFINITY, the inputs that this alone may have: the rest means nothing then */
} fgi_extremes;

typedef struct fgi_kernels {
    const char *name;
    /* Max-plus products with a row-major rows x cols table t, entries weighted by w > 0:
     *     maxplus_rows:  out[c] = max over r of  w * t[r][c] + h[r]      (cols results; rows are streamed)
     *     maxplus_cols:  out[r] = max over c of  w * t[r][c] + h[c]      (rows results; each row is reduced)
     * so one table serves both directions and both storage orders. Rows with h = -INFINITY are not read by
     * maxplus_rows. */
    void (*maxplus_rows)(const double *t, int64_t rows, int64_t cols, double w, const double *h, double *out);
    void (*maxplus_cols)(const double *t, int64_t rows, int64_t cols, double w, const double *h, double *out);
    /* The same over the n rows listed alone, which are `stride` apart; out[] never falls:
     *     out[c] = max(out[c], w * t[r][c] + h[r]). */
    void (*maxplus_some)(const double *t, int64_t stride, int64_t cols, const int32_t *rows, int64_t n, double w,
        const double *h, double *out);
    /* A table whose entry at (a, b) is band[|a - b|] below a distance of n_band, and no more from there on:
     *     out[b] = max( floor, max over d < n_band of band[d] + max(h[b - d], h[b + d]) ),      b < n.
     * h can be read from -(n_band - 1) to n + n_band - 2. */
    void (*maxplus_band)(const double *band, int64_t n_band, double floor, const double *h, double *out, int64_t n);
    void (*maxplus_rows_f32)(const float *t, int64_t rows, int64_t cols, float w, const float *h, float *out);
    void (*maxplus_cols_f32)(const float *t, int64_t rows, int64_t cols, float w, const float *h, float *out);
    double (*max)(const double *x, int64_t n); /* -INFINITY for n == 0 */
    fgi_extremes (*extremes)(const double *x, int64_t n);
    void (*add)(double *x, const double *y, int64_t n);            /* x += y */
    void (*axpy)(double *y, double a, const double *x, int64_t n); /* y += a x */
    /* y = max(y, a + x); returns the smallest y, INFINITY for n == 0. */
    double (*raise)(double *y, double a, const double *x, int64_t n);
    void (*shift)(double *x, double c, int64_t n); /* x -= c, c finite */
    /* out = g * x - m where x is finite, -INFINITY elsewhere, whatever m is there: the part of a node's scores that
     * goes back into a factor. out may be x or m. */
    void (*reweight)(const double *x, double g, const double *m, double *out, int64_t n);
    /* Inner products of n rows of d floats, `stride` apart: out[r] = <row r, x>, and the same for four queries at once
     * (out[q][r]). Here the order of the sums is fixed, see base/kernels_dots.h. */
    void (*dots)(const float *rows, int64_t n, int64_t stride, int64_t d, const float *x, float *out);
    void (*dots4)(
        const float *rows, int64_t n, int64_t stride, int64_t d, const float *const x[4], float *const out[4]);
    /* One-bit codes above a value, see base/kernels_codes.h; rows of bytes, see base/kernels_bytes.h. */
    int64_t (*collect_codes)(struct fgi_code_query *q, int64_t block, int64_t end, int64_t step);
    int64_t (*next_bytes)(struct fgi_byte_scan *scan, int64_t block, int64_t end);
    void (*guess_bytes)(const struct fgi_byte_scan *scan, const struct fgi_byte_query *q, int64_t n,
        const int32_t *rows, float *guesses);
} fgi_kernels;

extern const fgi_kernels fgi_kernels_scalar;
/* The SIMD version for this CPU, or the scalar one. */
const fgi_kernels *fgi_kernels_best(void);
/* What solvers use: the best, unless a test has forced another one. NULL takes the force away again. */
const fgi_kernels *fgi_kernels_get(void);
void fgi_kernels_force(const fgi_kernels *k);

/* Lowest index of the largest value; 0 if all are -INFINITY. */
int64_t fgi_argmax_of(const double *x, int64_t n);

enum { FGI_SHORT_ROW = 16 }; /* a call through a pointer takes longer than what it does to shorter rows */

/* No branches on the numbers: they would be mispredicted. */
static inline fgi_extremes fgi_extremes_plain(const double *x, int64_t n) {
    fgi_extremes e = {-INFINITY, -INFINITY, 0, 0, 1};
    for (int64_t k = 0; k < n; k++) {
        const double below = x[k] < e.best ? x[k] : -INFINITY, next = below > e.second ? below : e.second,
                     size = x[k] > -INFINITY ? fabs(x[k]) : 0;
        e.forbids |= x[k] == -INFINITY;
        e.in_order &= x[k] < INFINITY;
        e.second = x[k] > e.best ? e.best : next;
        e.best = x[k] > e.best ? x[k] : e.best;
        e.largest = size > e.largest ? size : e.largest;
    }
    e.best += 0;
    e.second += 0;
    return e;
}

static inline fgi_extremes fgi_extremes_of(const double *x, int64_t n) {
    return n < FGI_SHORT_ROW ? fgi_extremes_plain(x, n) : fgi_kernels_get()->extremes(x, n);
}

/* The product with a table that depends on the distance of two labels alone, w * near[d] for d < reach, and w * far, no
 * more than any of those, from there on: out[b] = max over a < n_from of that + h[a], b < n_to. The bits are those of a
 * table that is written out. scratch holds 2 * n_from + 1 doubles, which is enough for where fgi_band_pays. */
void fgi_maxplus_near(const fgi_kernels *k, const double *near, int64_t reach, double far, double w, const double *h,
    int64_t n_from, double *out, int64_t n_to, double *scratch);
/* Is that quicker than other ways, for these numbers of labels? */
static inline int fgi_band_pays(int64_t reach, int64_t n_from, int64_t n_to) {
    return 3 * reach + (n_from > n_to ? n_from : n_to) <= 2 * n_from;
}

/* The same product for the implicit tables, in O(rows + cols): out[b] = max over a < n_from of w * table(a, b) + h[a],
 * b < n_to. All implicit tables are symmetric, so this serves both directions. scratch holds 2 * n_from + 1 doubles. */
void fgi_maxplus_implicit(int32_t kind, double p0, double p1, double w, const double *h, int64_t n_from, double *out,
    int64_t n_to, double *scratch);

#endif
