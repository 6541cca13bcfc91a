/* learn/viterbi.h - types of the decoder of chains and trees, and the kernel of the token scores. */
#ifndef FGI_VITERBI_H
#define FGI_VITERBI_H
#include "fginfer_learn.h"
#include "oracle/forest.h"

/* Chosen once per learner; both versions give the same bits. */
typedef struct fgi_learn_kernels {
    /* y[k] += a * x[k] */
    void (*axpy)(int64_t n, double a, const double *x, double *y);
    /* y[k] = max(y[k], a + x[k]); returns the smallest of them */
    double (*raise)(int64_t n, double a, const double *x, double *y);
} fgi_learn_kernels;

fgi_learn_kernels fgi_learn_kernels_choose(void);

#endif
