/* base/sums.h - the hot loops of sum-product inference, in a portable and an AVX2 version that give the same bits:
 * every result is made by the same operations in the same order, four lanes side by side. */
#ifndef FGI_SUMS_H
#define FGI_SUMS_H
#include <stdint.h>

typedef struct fgi_sum_kernels {
    const char *name;
    /* out[k] = exp(x[k] - shift), within 2 units in the last place; x[k] - shift <= 709, results below 1e-307 are 0 */
    void (*exp)(const double *x, int64_t n, double shift, double *out);
    /* out[b] = sum over a of x[a] * t[a * stride + b], a ascending */
    void (*rows)(const double *t, int64_t stride, int64_t n_rows, int64_t n_cols, const double *x, double *out);
    /* t[a * stride + b] += x[a] * y[b] */
    void (*outer)(double *t, int64_t stride, int64_t n_rows, int64_t n_cols, const double *x, const double *y);
    /* y[k] += a * x[k] */
    void (*axpy)(int64_t n, double a, const double *x, double *y);
    /* out[b] += sum over e of x[e] * t[at[e] * width + b], e ascending; x NULL: all 1. For narrow tables. */
    void (*gather)(const double *t, int64_t width, const int32_t *at, const double *x, int64_t n, double *out);
    double (*sum)(const double *x, int64_t n);
    double (*max)(const double *x, int64_t n); /* -INFINITY for n == 0 */
    double (*min)(const double *x, int64_t n); /* INFINITY for n == 0 */
} fgi_sum_kernels;

extern const fgi_sum_kernels fgi_sum_kernels_plain;
const fgi_sum_kernels *fgi_sum_kernels_best(void);

#endif
