/* base/kernels_avx2.c - the AVX2 twins of the kernels; see base/kernels.h. Same bits as the portable versions.
 *
 * Vectors that do not fill a register are finished by one more register that overlaps the one before: a maximum does
 * not mind being taken twice. Tables too narrow for one register go to the portable version. */
#include "base/kernels.h"
#include "base/kernels_bytes.h"
#include "base/kernels_codes.h"
#include "base/kernels_dots.h"
#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#include <math.h>

#define AVX2 __attribute__((target("avx2")))
#define INLINE_AVX2 static inline __attribute__((always_inline, target("avx2")))

typedef __m256d v4d;
typedef __m256 v8f;

/* One name per operation and precision, so that the loops are written once. */
#define LOAD_d(p) _mm256_loadu_pd(p)
#define LOAD_f(p) _mm256_loadu_ps(p)
#define STORE_d(p, x) _mm256_storeu_pd(p, x)
#define STORE_f(p, x) _mm256_storeu_ps(p, x)
#define SPREAD_d(x) _mm256_set1_pd(x)
#define SPREAD_f(x) _mm256_set1_ps(x)
#define ADD_d(x, y) _mm256_add_pd(x, y)
#define ADD_f(x, y) _mm256_add_ps(x, y)
#define MUL_d(x, y) _mm256_mul_pd(x, y)
#define MUL_f(x, y) _mm256_mul_ps(x, y)
#define MAX_d(x, y) _mm256_max_pd(x, y)
#define MAX_f(x, y) _mm256_max_ps(x, y)

INLINE_AVX2 double hmax_d(v4d x) {
    __m128d m = _mm_max_pd(_mm256_castpd256_pd128(x), _mm256_extractf128_pd(x, 1));
    m = _mm_max_sd(m, _mm_unpackhi_pd(m, m));
    return _mm_cvtsd_f64(m);
}

INLINE_AVX2 float hmax_f(v8f x) {
    __m128 m = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    m = _mm_max_ps(m, _mm_movehl_ps(m, m));
    m = _mm_max_ss(m, _mm_shuffle_ps(m, m, 1));
    return _mm_cvtss_f32(m);
}

/* TERM: w * t + h, the multiplication left out where w is 1 (it would give the same bits). */
#define TERM(s, weighted, p, w, h) ((weighted) ? ADD_##s(MUL_##s(w, LOAD_##s(p)), h) : ADD_##s(LOAD_##s(p), h))

/* Narrow tables: all of out[] stays in n <= 8 registers while the rows stream by; the last one overlaps. `n` is a
 * constant at every call. */
#define DEFINE_NARROW(s, real, vec, lanes)                                                                       \
    INLINE_AVX2 void narrow_##s(                                                                                 \
        const real *t, int64_t rows, int64_t cols, vec w, int weighted, const real *h, real *out, int n) {       \
        vec acc[8];                                                                                              \
        const int64_t last = cols - (lanes);                                                                     \
        for (int k = 0; k < n; k++) acc[k] = SPREAD_##s(-INFINITY);                                              \
        for (int64_t r = 0; r < rows; r++, t += cols) {                                                          \
            if (h[r] == -INFINITY) continue;                                                                     \
            vec hr = SPREAD_##s(h[r]);                                                                           \
            for (int k = 0; k < n - 1; k++) acc[k] = MAX_##s(acc[k], TERM(s, weighted, t + k * (lanes), w, hr)); \
            acc[n - 1] = MAX_##s(acc[n - 1], TERM(s, weighted, t + last, w, hr));                                \
        }                                                                                                        \
        vec zero = SPREAD_##s(0);                                                                                \
        for (int k = 0; k < n - 1; k++) STORE_##s(out + k * (lanes), ADD_##s(acc[k], zero));                     \
        STORE_##s(out + last, ADD_##s(acc[n - 1], zero));                                                        \
    }                                                                                                            \
    INLINE_AVX2 void narrow_any_##s(                                                                             \
        const real *t, int64_t rows, int64_t cols, vec w, int weighted, const real *h, real *out) {              \
        switch ((cols + (lanes)-1) / (lanes)) {                                                                  \
        case 1: narrow_##s(t, rows, cols, w, weighted, h, out, 1); return;                                       \
        case 2: narrow_##s(t, rows, cols, w, weighted, h, out, 2); return;                                       \
        case 3: narrow_##s(t, rows, cols, w, weighted, h, out, 3); return;                                       \
        case 4: narrow_##s(t, rows, cols, w, weighted, h, out, 4); return;                                       \
        case 5: narrow_##s(t, rows, cols, w, weighted, h, out, 5); return;                                       \
        case 6: narrow_##s(t, rows, cols, w, weighted, h, out, 6); return;                                       \
        case 7: narrow_##s(t, rows, cols, w, weighted, h, out, 7); return;                                       \
        default: narrow_##s(t, rows, cols, w, weighted, h, out, 8); return;                                      \
        }                                                                                                        \
    }

/* Wide tables: row by row, in the order of memory, with out[] in L1. (Several rows at a time would save traffic with
 * L1, but their interleaved pieces are read from memory at half the speed.) */
#define DEFINE_WIDE(s, real, vec, lanes)                                                                         \
    INLINE_AVX2 void raise_##s(const real *t, vec h, vec w, int weighted, real *out) {                           \
        STORE_##s(out, MAX_##s(LOAD_##s(out), TERM(s, weighted, t, w, h)));                                      \
    }                                                                                                            \
    INLINE_AVX2 void wide_##s(                                                                                   \
        const real *t, int64_t rows, int64_t cols, vec w, int weighted, const real *h, real *out) {              \
        for (int64_t c = 0; c + (lanes) <= cols; c += (lanes)) STORE_##s(out + c, SPREAD_##s(-INFINITY));        \
        vec last =                                                                                               \
            SPREAD_##s(-INFINITY); /* stored once, at the end: loads that meet two unfinished stores are slow */ \
        for (int64_t r = 0; r < rows; r++, t += cols) {                                                          \
            if (h[r] == -INFINITY) continue;                                                                     \
            const vec hr = SPREAD_##s(h[r]);                                                                     \
            int64_t c = 0;                                                                                       \
            for (; c + 4 * (lanes) <= cols; c += 4 * (lanes)) {                                                  \
                raise_##s(t + c, hr, w, weighted, out + c);                                                      \
                raise_##s(t + c + (lanes), hr, w, weighted, out + c + (lanes));                                  \
                raise_##s(t + c + 2 * (lanes), hr, w, weighted, out + c + 2 * (lanes));                          \
                raise_##s(t + c + 3 * (lanes), hr, w, weighted, out + c + 3 * (lanes));                          \
            }                                                                                                    \
            for (; c + (lanes) <= cols; c += (lanes)) raise_##s(t + c, hr, w, weighted, out + c);                \
            last = MAX_##s(last, TERM(s, weighted, t + cols - (lanes), w, hr));                                  \
        }                                                                                                        \
        STORE_##s(out + cols - (lanes), last);                                                                   \
        for (int64_t c = 0; c < cols; c++) out[c] += 0;                                                          \
    }                                                                                                            \
    AVX2 static void rows_##s(const real *t, int64_t rows, int64_t cols, real w, const real *h, real *out) {     \
        vec spread = SPREAD_##s(w);                                                                              \
        int weighted = w != 1;                                                                                   \
        if (cols < (lanes)) {                                                                                    \
            SMALL_ROWS_##s(t, rows, cols, w, h, out);                                                            \
        } else if (cols <= 8 * (lanes)) {                                                                        \
            if (weighted) narrow_any_##s(t, rows, cols, spread, 1, h, out);                                      \
            else narrow_any_##s(t, rows, cols, spread, 0, h, out);                                               \
        } else {                                                                                                 \
            if (weighted) wide_##s(t, rows, cols, spread, 1, h, out);                                            \
            else wide_##s(t, rows, cols, spread, 0, h, out);                                                     \
        }                                                                                                        \
    }

/* Reduction along rows, again in the order of memory; four independent chains hide the latency of the maximum. */
#define DEFINE_COLS(s, real, vec, lanes)                                                                         \
    INLINE_AVX2 real row_max_##s(const real *t, int64_t cols, vec w, int weighted, const real *h) {              \
        vec a = SPREAD_##s(-INFINITY), b = a, c = a, d = a;                                                      \
        int64_t k = 0;                                                                                           \
        for (; k + 4 * (lanes) <= cols; k += 4 * (lanes)) {                                                      \
            a = MAX_##s(a, TERM(s, weighted, t + k, w, LOAD_##s(h + k)));                                        \
            b = MAX_##s(b, TERM(s, weighted, t + k + (lanes), w, LOAD_##s(h + k + (lanes))));                    \
            c = MAX_##s(c, TERM(s, weighted, t + k + 2 * (lanes), w, LOAD_##s(h + k + 2 * (lanes))));            \
            d = MAX_##s(d, TERM(s, weighted, t + k + 3 * (lanes), w, LOAD_##s(h + k + 3 * (lanes))));            \
        }                                                                                                        \
        for (; k + (lanes) <= cols; k += (lanes)) a = MAX_##s(a, TERM(s, weighted, t + k, w, LOAD_##s(h + k)));  \
        if (k < cols) b = MAX_##s(b, TERM(s, weighted, t + cols - (lanes), w, LOAD_##s(h + cols - (lanes))));    \
        return hmax_##s(MAX_##s(MAX_##s(a, b), MAX_##s(c, d))) + 0;                                              \
    }                                                                                                            \
    /* Short rows: four at a time are still one piece of memory, and share the loads of h. */                    \
    INLINE_AVX2 void four_rows_##s(const real *t, int64_t cols, vec w, int weighted, const real *h, real *out) { \
        vec acc[4];                                                                                              \
        const vec end = LOAD_##s(h + cols - (lanes));                                                            \
        for (int k = 0; k < 4; k++) acc[k] = TERM(s, weighted, t + (k + 1) * cols - (lanes), w, end);            \
        for (int64_t c = 0; c + (lanes) <= cols; c += (lanes)) {                                                 \
            const vec hc = LOAD_##s(h + c);                                                                      \
            for (int k = 0; k < 4; k++) acc[k] = MAX_##s(acc[k], TERM(s, weighted, t + k * cols + c, w, hc));    \
        }                                                                                                        \
        for (int k = 0; k < 4; k++) out[k] = hmax_##s(acc[k]) + 0;                                               \
    }                                                                                                            \
    INLINE_AVX2 void all_rows_##s(                                                                               \
        const real *t, int64_t rows, int64_t cols, vec w, int weighted, const real *h, real *out) {              \
        int64_t r = 0;                                                                                           \
        if (cols <= 6 * (lanes))                                                                                 \
            for (; r + 4 <= rows; r += 4) four_rows_##s(t + r * cols, cols, w, weighted, h, out + r);            \
        for (; r < rows; r++) out[r] = row_max_##s(t + r * cols, cols, w, weighted, h);                          \
    }                                                                                                            \
    AVX2 static void cols_##s(const real *t, int64_t rows, int64_t cols, real w, const real *h, real *out) {     \
        vec spread = SPREAD_##s(w);                                                                              \
        if (cols < (lanes)) SMALL_COLS_##s(t, rows, cols, w, h, out);                                            \
        else if (w != 1) all_rows_##s(t, rows, cols, spread, 1, h, out);                                         \
        else all_rows_##s(t, rows, cols, spread, 0, h, out);                                                     \
    }

#define SMALL_ROWS_d fgi_kernels_scalar.maxplus_rows
#define SMALL_ROWS_f fgi_kernels_scalar.maxplus_rows_f32
#define SMALL_COLS_d fgi_kernels_scalar.maxplus_cols
#define SMALL_COLS_f fgi_kernels_scalar.maxplus_cols_f32

DEFINE_NARROW(d, double, v4d, 4)
DEFINE_NARROW(f, float, v8f, 8)
DEFINE_WIDE(d, double, v4d, 4)
DEFINE_WIDE(f, float, v8f, 8)
DEFINE_COLS(d, double, v4d, 4)
DEFINE_COLS(f, float, v8f, 8)

/* Rows that are not neighbours in memory: four at a time, for the sake of the traffic with out[], and of as many
 * streams that are fetched beside each other. The last row stands in for those that are missing. */
INLINE_AVX2 void some_rows(const double *t, int64_t stride, int64_t cols, const int32_t *rows, int64_t n, v4d w,
    int weighted, const double *h, double *out) {
    const int64_t last = cols - 4;
    for (int64_t k = 0; k < n; k += 4) {
        const double *x[4];
        v4d hx[4];
        for (int j = 0; j < 4; j++) {
            const int32_t r = rows[k + j < n ? k + j : n - 1];
            x[j] = t + r * stride;
            hx[j] = SPREAD_d(h[r]);
        }
        v4d end = LOAD_d(out + last); /* before its stores: loads that meet two unfinished ones are slow */
        for (int j = 0; j < 4; j++) end = MAX_d(end, TERM(d, weighted, x[j] + last, w, hx[j]));
        for (int64_t c = 0; c < last; c += 4) {
            const v4d a = MAX_d(TERM(d, weighted, x[0] + c, w, hx[0]), TERM(d, weighted, x[1] + c, w, hx[1]));
            const v4d b = MAX_d(TERM(d, weighted, x[2] + c, w, hx[2]), TERM(d, weighted, x[3] + c, w, hx[3]));
            STORE_d(out + c, MAX_d(LOAD_d(out + c), MAX_d(a, b)));
        }
        STORE_d(out + last, end);
    }
}

/* `n` registers of out[] from b on. A sum is monotonous: that of the larger of two is the larger of their sums. */
INLINE_AVX2 void band_at(
    const double *band, int64_t n_band, double floor, const double *h, double *out, int64_t b, int n) {
    v4d best[4];
    for (int k = 0; k < n; k++) best[k] = SPREAD_d(floor);
    for (int64_t d = 0; d < n_band; d++) {
        const v4d score = SPREAD_d(band[d]);
        for (int k = 0; k < n; k++) {
            const v4d x = MAX_d(LOAD_d(h + b + 4 * k - d), LOAD_d(h + b + 4 * k + d));
            best[k] = MAX_d(best[k], ADD_d(score, x));
        }
    }
    for (int k = 0; k < n; k++) STORE_d(out + b + 4 * k, ADD_d(best[k], SPREAD_d(0)));
}

AVX2 static void maxplus_band(
    const double *band, int64_t n_band, double floor, const double *h, double *out, int64_t n) {
    if (n < 4) {
        fgi_kernels_scalar.maxplus_band(band, n_band, floor, h, out, n);
        return;
    }
    int64_t b = 0;
    for (; b + 16 <= n; b += 16) band_at(band, n_band, floor, h, out, b, 4);
    for (; b + 4 <= n; b += 4) band_at(band, n_band, floor, h, out, b, 1);
    if (b < n) band_at(band, n_band, floor, h, out, n - 4, 1);
}

AVX2 static void maxplus_some(const double *t, int64_t stride, int64_t cols, const int32_t *rows, int64_t n, double w,
    const double *h, double *out) {
    if (cols < 4) fgi_kernels_scalar.maxplus_some(t, stride, cols, rows, n, w, h, out);
    else if (w != 1) some_rows(t, stride, cols, rows, n, SPREAD_d(w), 1, h, out);
    else some_rows(t, stride, cols, rows, n, SPREAD_d(w), 0, h, out);
}

AVX2 static double max_of(const double *x, int64_t n) {
    if (n < 4) return fgi_kernels_scalar.max(x, n);
    v4d a = LOAD_d(x + n - 4), b = a, c = a, d = a; /* chains, as above */
    int64_t k = 0;
    for (; k + 16 <= n; k += 16) {
        a = MAX_d(a, LOAD_d(x + k));
        b = MAX_d(b, LOAD_d(x + k + 4));
        c = MAX_d(c, LOAD_d(x + k + 8));
        d = MAX_d(d, LOAD_d(x + k + 12));
    }
    for (; k + 4 <= n; k += 4) a = MAX_d(a, LOAD_d(x + k));
    return hmax_d(MAX_d(MAX_d(a, b), MAX_d(c, d))) + 0;
}

typedef struct extremes_chain {
    v4d best, second, largest, wrong, forbidden;
} extremes_chain;

INLINE_AVX2 void look_at(extremes_chain *e, v4d x) {
    const v4d none = SPREAD_d(-INFINITY), same = _mm256_cmp_pd(x, e->best, _CMP_EQ_OQ),
              lower = _mm256_blendv_pd(_mm256_min_pd(x, e->best), none, same),
              forbidden = _mm256_cmp_pd(x, none, _CMP_EQ_OQ),
              size = _mm256_andnot_pd(_mm256_or_pd(forbidden, SPREAD_d(-0.0)), x);
    e->forbidden = _mm256_or_pd(e->forbidden, forbidden);
    e->wrong = _mm256_or_pd(e->wrong, _mm256_cmp_pd(x, SPREAD_d(INFINITY), _CMP_NLT_UQ));
    e->second = MAX_d(lower, e->second);
    e->best = MAX_d(x, e->best);
    e->largest = MAX_d(size, e->largest);
}

AVX2 static fgi_extremes extremes(const double *x, int64_t n) {
    if (n < 8) return fgi_kernels_scalar.extremes(x, n);
    const v4d none = SPREAD_d(-INFINITY), zero = _mm256_setzero_pd();
    extremes_chain a = {none, none, zero, zero, zero}, b = a;
    int64_t k = 0;
    for (; k + 8 <= n; k += 8) {
        look_at(&a, LOAD_d(x + k));
        look_at(&b, LOAD_d(x + k + 4));
    }
    if (k < n) { /* numbers may be looked at twice */
        look_at(&a, LOAD_d(x + n - 8));
        look_at(&b, LOAD_d(x + n - 4));
    }
    const int wrong = _mm256_movemask_pd(_mm256_or_pd(a.wrong, b.wrong)),
              forbids = _mm256_movemask_pd(_mm256_or_pd(a.forbidden, b.forbidden));
    look_at(&a, b.best);
    look_at(&a, b.second);
    double heads[8];
    STORE_d(heads, a.best);
    STORE_d(heads + 4, a.second);
    fgi_extremes e = fgi_extremes_plain(heads, 8);
    e.largest = hmax_d(MAX_d(a.largest, b.largest));
    e.forbids = forbids != 0;
    e.in_order = wrong == 0;
    return e;
}

AVX2 static void add(double *x, const double *y, int64_t n) {
    int64_t k = 0;
    for (; k + 4 <= n; k += 4) STORE_d(x + k, ADD_d(LOAD_d(x + k), LOAD_d(y + k)));
    for (; k < n; k++) x[k] += y[k];
}

AVX2 static void axpy(double *y, double a, const double *x, int64_t n) {
    const __m256d va = _mm256_set1_pd(a);
    int64_t k = 0;
    for (; k + 4 <= n; k += 4) /* multiply, then add: no fused operation, so the bits are those of the plain loop */
        _mm256_storeu_pd(y + k, _mm256_add_pd(_mm256_loadu_pd(y + k), _mm256_mul_pd(va, _mm256_loadu_pd(x + k))));
    for (; k < n; k++) y[k] += a * x[k];
}

AVX2 static double raise(double *y, double a, const double *x, int64_t n) {
    const v4d spread = SPREAD_d(a);
    v4d least = SPREAD_d(INFINITY);
    int64_t k = 0;
    for (; k + 4 <= n; k += 4) {
        const v4d now = MAX_d(ADD_d(spread, LOAD_d(x + k)), LOAD_d(y + k));
        STORE_d(y + k, now);
        least = _mm256_min_pd(now, least);
    }
    double four[4], low = fgi_kernels_scalar.raise(y + k, a, x + k, n - k);
    STORE_d(four, least);
    for (int l = 0; l < 4; l++) low = four[l] < low ? four[l] : low;
    return low;
}

AVX2 static void shift(double *x, double c, int64_t n) {
    v4d spread = SPREAD_d(c);
    int64_t k = 0;
    for (; k + 4 <= n; k += 4) STORE_d(x + k, _mm256_sub_pd(LOAD_d(x + k), spread));
    for (; k < n; k++) x[k] -= c;
}

AVX2 static void reweight(const double *x, double g, const double *m, double *out, int64_t n) {
    v4d spread = SPREAD_d(g), forbidden = SPREAD_d(-INFINITY);
    int64_t k = 0;
    for (; k + 4 <= n; k += 4) {
        v4d v = LOAD_d(x + k), r = _mm256_sub_pd(MUL_d(spread, v), LOAD_d(m + k));
        STORE_d(out + k, _mm256_blendv_pd(r, forbidden, _mm256_cmp_pd(v, forbidden, _CMP_EQ_OQ)));
    }
    for (; k < n; k++) out[k] = x[k] == -INFINITY ? -INFINITY : g * x[k] - m[k];
}

extern const fgi_kernels fgi_kernels_avx2;
const fgi_kernels fgi_kernels_avx2 = {.name = "avx2",
    .maxplus_rows = rows_d,
    .maxplus_cols = cols_d,
    .maxplus_some = maxplus_some,
    .maxplus_band = maxplus_band,
    .maxplus_rows_f32 = rows_f,
    .maxplus_cols_f32 = cols_f,
    .max = max_of,
    .extremes = extremes,
    .add = add,
    .axpy = axpy,
    .raise = raise,
    .shift = shift,
    .reweight = reweight,
    .dots = fgi_dots_avx2,
    .dots4 = fgi_dots4_avx2,
    .collect_codes = fgi_collect_codes_avx2,
    .next_bytes = fgi_next_bytes_avx2,
    .guess_bytes = fgi_guess_bytes_avx2};
#else
typedef int fgi_kernels_avx2_unused; /* a translation unit must declare something */
#endif
