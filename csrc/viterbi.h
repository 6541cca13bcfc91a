/* viterbi.h - max-sum dynamic programming over the forest of one example, and the kernels under it. */
#ifndef FGI_VITERBI_H
#define FGI_VITERBI_H
#include "fginfer_learn.h"

/* The hot loops, chosen once per learner; both versions give the same bits. */
typedef struct fgi_learn_kernels {
    /* y[k] += a * x[k] */
    void (*axpy)(int64_t n, double a, const double *x, double *y);
    /* out[b] = max over a of m[a] + T[a * stride + b] */
    void (*max_columns)(int64_t na, int64_t nb, const double *m, const double *T, int64_t stride, double *out);
    /* out[b] = max over a of m[a] + T[b * stride + a] */
    void (*max_rows)(int64_t na, int64_t nb, const double *m, const double *T, int64_t stride, double *out);
} fgi_learn_kernels;

fgi_learn_kernels fgi_learn_kernels_choose(void);

/* One node of a forest in elimination order: every node comes before its parent. */
typedef struct fgi_forest_node {
    int32_t token;
    int32_t parent;      /* token; -1 for a root */
    int32_t edge;        /* index of the edge to the parent inside the example */
    int32_t transposed;  /* the edge is (parent, token): its table is indexed [parent][token] */
} fgi_forest_node;

#endif
