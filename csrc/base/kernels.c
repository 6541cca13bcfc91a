/* base/kernels.c - see base/kernels.h. The portable versions, the implicit tables, and the choice of a version. */
#include "base/kernels.h"
#include "base/cpu.h"
#include "base/kernels_bytes.h"
#include "base/kernels_codes.h"
#include "base/kernels_dots.h"
#include <math.h>
#include <string.h>
#include <stdatomic.h>

/* ---- portable versions -------------------------------------------------------------------------------------- */

#define DEFINE_MAXPLUS(suffix, real)                                                                                \
    static void maxplus_rows##suffix(const real *t, int64_t rows, int64_t cols, real w, const real *h, real *out) { \
        for (int64_t c = 0; c < cols; c++) out[c] = -INFINITY;                                                      \
        for (int64_t r = 0; r < rows; r++, t += cols) {                                                             \
            if (h[r] == -INFINITY) continue;                                                                        \
            for (int64_t c = 0; c < cols; c++) {                                                                    \
                real v = w * t[c] + h[r];                                                                           \
                out[c] = out[c] > v ? out[c] : v;                                                                   \
            }                                                                                                       \
        }                                                                                                           \
        for (int64_t c = 0; c < cols; c++) out[c] += 0;                                                             \
    }                                                                                                               \
    static void maxplus_cols##suffix(const real *t, int64_t rows, int64_t cols, real w, const real *h, real *out) { \
        for (int64_t r = 0; r < rows; r++, t += cols) {                                                             \
            real best = -INFINITY;                                                                                  \
            for (int64_t c = 0; c < cols; c++) {                                                                    \
                real v = w * t[c] + h[c];                                                                           \
                best = best > v ? best : v;                                                                         \
            }                                                                                                       \
            out[r] = best + 0;                                                                                      \
        }                                                                                                           \
    }
DEFINE_MAXPLUS(, double)
DEFINE_MAXPLUS(_f32, float)

static void maxplus_some(const double *t, int64_t stride, int64_t cols, const int32_t *rows, int64_t n, double w,
    const double *h, double *out) {
    for (int64_t k = 0; k < n; k++) {
        const double *row = t + rows[k] * stride, given = h[rows[k]];
        for (int64_t c = 0; c < cols; c++) {
            const double v = w * row[c] + given;
            out[c] = out[c] > v ? out[c] : v;
        }
    }
}

static void maxplus_band(const double *band, int64_t n_band, double floor, const double *h, double *out, int64_t n) {
    for (int64_t b = 0; b < n; b++) {
        double best = floor;
        for (int64_t d = 0; d < n_band; d++) {
            const double x = h[b - d] > h[b + d] ? h[b - d] : h[b + d];
            best = band[d] + x > best ? band[d] + x : best;
        }
        out[b] = best + 0;
    }
}

static double max_of(const double *x, int64_t n) {
    double best = -INFINITY;
    for (int64_t k = 0; k < n; k++) best = best > x[k] ? best : x[k];
    return best + 0;
}

static fgi_extremes extremes(const double *x, int64_t n) { return fgi_extremes_plain(x, n); }

static void add(double *x, const double *y, int64_t n) {
    for (int64_t k = 0; k < n; k++) x[k] += y[k];
}

static void axpy(double *y, double a, const double *x, int64_t n) {
    for (int64_t k = 0; k < n; k++) y[k] += a * x[k];
}

static double raise(double *y, double a, const double *x, int64_t n) {
    double low = INFINITY;
    for (int64_t k = 0; k < n; k++) {
        y[k] = a + x[k] > y[k] ? a + x[k] : y[k];
        low = y[k] < low ? y[k] : low;
    }
    return low;
}

static void shift(double *x, double c, int64_t n) {
    for (int64_t k = 0; k < n; k++) x[k] -= c;
}

static void reweight(const double *x, double g, const double *m, double *out, int64_t n) {
    for (int64_t k = 0; k < n; k++) out[k] = x[k] == -INFINITY ? -INFINITY : g * x[k] - m[k];
}

const fgi_kernels fgi_kernels_scalar = {.name = "scalar",
    .maxplus_rows = maxplus_rows,
    .maxplus_cols = maxplus_cols,
    .maxplus_some = maxplus_some,
    .maxplus_band = maxplus_band,
    .maxplus_rows_f32 = maxplus_rows_f32,
    .maxplus_cols_f32 = maxplus_cols_f32,
    .max = max_of,
    .extremes = extremes,
    .add = add,
    .axpy = axpy,
    .raise = raise,
    .shift = shift,
    .reweight = reweight,
    .dots = fgi_dots_scalar,
    .dots4 = fgi_dots4_scalar,
    .collect_codes = fgi_collect_codes_scalar,
    .next_bytes = fgi_next_bytes_scalar,
    .guess_bytes = fgi_guess_bytes_scalar};

/* ---- choice ------------------------------------------------------------------------------------------------- */

#if defined(__x86_64__) && defined(__GNUC__)
extern const fgi_kernels fgi_kernels_avx2; /* base/kernels_avx2.c */
const fgi_kernels *fgi_kernels_best(void) { return fgi_cpu_has_avx2() ? &fgi_kernels_avx2 : &fgi_kernels_scalar; }
#else
const fgi_kernels *fgi_kernels_best(void) { return &fgi_kernels_scalar; }
#endif

static _Atomic(const fgi_kernels *) forced; /* tests only; NULL in production */

void fgi_kernels_force(const fgi_kernels *k) { atomic_store(&forced, k); }

const fgi_kernels *fgi_kernels_get(void) {
    const fgi_kernels *k = atomic_load_explicit(&forced, memory_order_relaxed);
    return k ? k : fgi_kernels_best();
}

const char *fgi_cpu_path(void) { return fgi_kernels_get()->name; }

int64_t fgi_argmax_of(const double *x, int64_t n) {
    int64_t best = 0;
    if (n >= FGI_SHORT_ROW) {
        const double most = fgi_kernels_get()->max(x, n);
        while (x[best] != most) best++;
        return best;
    }
    for (int64_t k = 1; k < n; k++)
        if (x[k] > x[best]) best = k;
    return best;
}

/* ---- implicit tables ---------------------------------------------------------------------------------------- */

/* Up to these distances, in labels, a band is quicker than an envelope (decision 0016). */
enum {
    MOST_OF_CONES = 16,    /* for |a - b| */
    MOST_OF_PARABOLAS = 60 /* for (a - b)^2 */
};

/* Four maxima side by side: one would wait for itself. */
static double best_of(const double *h, int64_t n) {
    double best[4] = {-INFINITY, -INFINITY, -INFINITY, -INFINITY};
    int64_t a = 0;
    for (; a + 4 <= n; a += 4)
        for (int k = 0; k < 4; k++) best[k] = h[a + k] > best[k] ? h[a + k] : best[k];
    for (; a < n; a++) best[0] = h[a] > best[0] ? h[a] : best[0];
    const double left = best[0] > best[1] ? best[0] : best[1], right = best[2] > best[3] ? best[2] : best[3];
    return left > right ? left : right;
}

/* out[b] = max( h[b] + same, max over a != b of h[a] + different ): the best and the second best of h are enough, and
 * the best alone where different labels are no better than equal ones. */
static void potts(double same, double different, const double *h, int64_t n_from, double *out, int64_t n_to) {
    if (same >= different) {
        const double other = best_of(h, n_from) + different;
        const int64_t n_both = n_from < n_to ? n_from : n_to;
        for (int64_t b = 0; b < n_both; b++) out[b] = h[b] + same > other ? h[b] + same : other;
        for (int64_t b = n_both; b < n_to; b++) out[b] = other;
        return;
    }
    int64_t best = fgi_argmax_of(h, n_from);
    double second = -INFINITY;
    for (int64_t a = 0; a < n_from; a++)
        if (a != best && h[a] > second) second = h[a];
    for (int64_t b = 0; b < n_to; b++) {
        double v = (b == best ? second : h[best]) + different;
        if (b < n_from && h[b] + same > v) v = h[b] + same;
        out[b] = v;
    }
}

/* The place in the scratch for the weighted scores of distances below `reach`: behind the padded copy of h. */
static double *band_in(double *scratch, int64_t reach, int64_t n_from, int64_t n_to) {
    return scratch + 2 * (reach - 1) + (n_from > n_to ? n_from : n_to);
}

/* h is padded on both sides with labels that are forbidden, so that no label is a special case. */
static void apply_band(const fgi_kernels *k, int64_t reach, double far, const double *h, int64_t n_from, double *out,
    int64_t n_to, double *scratch) {
    double *band = band_in(scratch, reach, n_from, n_to), *padded = scratch + (reach - 1);
    for (int64_t d = 1; d < reach; d++) padded[-d] = -INFINITY;
    memcpy(padded, h, (size_t)n_from * sizeof *h);
    for (double *x = padded + n_from; x < band; x++) *x = -INFINITY;
    k->maxplus_band(band, reach, far + k->max(h, n_from), padded, out, n_to);
}

void fgi_maxplus_near(const fgi_kernels *k, const double *near, int64_t reach, double far, double w, const double *h,
    int64_t n_from, double *out, int64_t n_to, double *scratch) {
    double *band = band_in(scratch, reach, n_from, n_to);
    for (int64_t d = 0; d < reach; d++) band[d] = w * near[d];
    apply_band(k, reach, w * far, h, n_from, out, n_to, scratch);
}

/* How many distances have scores of their own: those below the truncation; 0: a band of so many does not pay. */
static int64_t reach_of(int32_t kind, double p1, int64_t n_from, int64_t n_to) {
    double reach = ceil(kind == FGI_ABSDIFF ? p1 : sqrt(p1));
    if (kind != FGI_ABSDIFF && reach * reach < p1) reach++; /* the root was rounded down to a whole number */
    const double most = kind == FGI_ABSDIFF ? MOST_OF_CONES : MOST_OF_PARABOLAS;
    return reach <= most && fgi_band_pays((int64_t)reach, n_from, n_to) ? (int64_t)reach : 0;
}

static double difference(int32_t kind, double slope, int64_t a, int64_t b) {
    double d = (double)a - (double)b;
    return slope * (kind == FGI_ABSDIFF ? fabs(d) : d * d);
}

/* All cones have one slope, so the best cone at b-1 stays the best one to the left of b until h[b] itself beats it. The
 * source is carried, not the value, so that every result is rounded as a single difference and not as a chain of them.
 */
static void cones(double slope, const double *h, int64_t n_from, double *out, int64_t n_to) {
    int64_t n = n_from > n_to ? n_from : n_to, source = -1;
    for (int64_t b = 0; b < n; b++) {
        double v = source < 0 ? -INFINITY : h[source] + difference(FGI_ABSDIFF, slope, source, b);
        if (b < n_from && h[b] > v) {
            v = h[b];
            source = b;
        }
        if (b < n_to) out[b] = v;
    }
    source = -1;
    for (int64_t b = n - 1; b >= 0; b--) {
        double v = source < 0 ? -INFINITY : h[source] + difference(FGI_ABSDIFF, slope, source, b);
        if (b < n_from && h[b] > v) {
            v = h[b];
            source = b;
        }
        if (b < n_to && v > out[b]) out[b] = v;
    }
}

/* Upper envelope of the parabolas h[a] + slope (a-b)^2, slope < 0 (Felzenszwalb and Huttenlocher). apex[k] is the k-th
 * parabola of the envelope, from[k] the place where it takes over from its left neighbour. */
static void parabolas(
    double slope, const double *h, int64_t n_from, double *out, int64_t n_to, double *apex, double *from) {
    int64_t n = 0;
    for (int64_t a = 0; a < n_from; a++) {
        if (h[a] == -INFINITY) continue;
        double start = -INFINITY;
        while (n > 0) {
            double p = apex[n - 1], q = (double)a;
            start = ((h[a] - h[(int64_t)p]) / slope + (q * q - p * p)) / (2 * (q - p));
            if (start > from[n - 1]) break;
            n--;
        }
        if (n == 0) start = -INFINITY;
        apex[n] = (double)a;
        from[n++] = start;
    }
    for (int64_t b = 0, k = 0; b < n_to; b++) {
        if (n == 0) {
            out[b] = -INFINITY;
            continue;
        }
        while (k + 1 < n && from[k + 1] <= (double)b) k++;
        int64_t a = (int64_t)apex[k];
        double v = h[a] + difference(FGI_SQDIFF, slope, a, b);
        /* `from` is rounded: next to a crossing the neighbour may be better by an ulp, and the result must not be too
         * low. */
        if (k + 1 < n) v = fmax(v, h[(int64_t)apex[k + 1]] + difference(FGI_SQDIFF, slope, (int64_t)apex[k + 1], b));
        if (k > 0) v = fmax(v, h[(int64_t)apex[k - 1]] + difference(FGI_SQDIFF, slope, (int64_t)apex[k - 1], b));
        out[b] = v;
    }
}

void fgi_maxplus_implicit(int32_t kind, double p0, double p1, double w, const double *h, int64_t n_from, double *out,
    int64_t n_to, double *scratch) {
    if (kind == FGI_POTTS) {
        potts(w * p0, w * p1, h, n_from, out, n_to);
        return;
    }
    const double slope = -(w * p0), best = best_of(h, n_from);
    if (p0 == 0) {
        for (int64_t b = 0; b < n_to; b++) out[b] = best;
        return;
    }
    const int64_t reach = reach_of(kind, p1, n_from, n_to);
    if (reach) {
        double *band = band_in(scratch, reach, n_from, n_to);
        for (int64_t d = 0; d < reach; d++) band[d] = w * (-p0 * (double)(kind == FGI_ABSDIFF ? d : d * d) + 0.0);
        apply_band(fgi_kernels_get(), reach, w * (-p0 * p1 + 0.0), h, n_from, out, n_to, scratch);
        return;
    }
    if (kind == FGI_ABSDIFF) cones(slope, h, n_from, out, n_to);
    else parabolas(slope, h, n_from, out, n_to, scratch, scratch + n_from);
    if (p1 == INFINITY) return;
    double floor_value = best + slope * p1;
    for (int64_t b = 0; b < n_to; b++)
        if (out[b] < floor_value) out[b] = floor_value;
}
