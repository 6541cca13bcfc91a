/* base/kernels_dots.h - inner products of single-precision rows; the versions behind fgi_kernels.dots and .dots4.
 *
 * An inner product is eight interleaved sums, l taking the terms l, l + 8, l + 16, ..., and then
 * ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7)). That is its definition here: every version, and every way to group
 * rows and queries, gives the same bits, so what a search returns does not depend on how it went about it. */
#ifndef FGI_KERNELS_DOTS_H
#define FGI_KERNELS_DOTS_H
#include <stdint.h>

void fgi_dots_scalar(const float *rows, int64_t n, int64_t stride, int64_t d, const float *x, float *out);
void fgi_dots4_scalar(
    const float *rows, int64_t n, int64_t stride, int64_t d, const float *const x[4], float *const out[4]);
void fgi_dots_avx2(const float *rows, int64_t n, int64_t stride, int64_t d, const float *x, float *out);
void fgi_dots4_avx2(
    const float *rows, int64_t n, int64_t stride, int64_t d, const float *const x[4], float *const out[4]);

#endif
