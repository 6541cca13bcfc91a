/* learn/viterbi.h - types of the decoder of chains and trees, and the kernel of the token scores. */
#ifndef FGI_VITERBI_H
#define FGI_VITERBI_H
#include "fginfer_learn.h"

/* Chosen once per learner; both versions give the same bits. */
typedef struct fgi_learn_kernels {
    /* y[k] += a * x[k] */
    void (*axpy)(int64_t n, double a, const double *x, double *y);
    /* y[k] = max(y[k], a + x[k]); returns the smallest of them */
    double (*raise)(int64_t n, double a, const double *x, double *y);
} fgi_learn_kernels;

fgi_learn_kernels fgi_learn_kernels_choose(void);

/* One node of a forest in elimination order: every node comes before its parent. */
typedef struct fgi_forest_node {
    int32_t token;
    int32_t parent;     /* token; -1 for a root */
    int32_t edge;       /* index of the edge to the parent inside the example */
    int32_t transposed; /* the edge is (parent, token): its table is indexed [parent][token] */
} fgi_forest_node;

#endif
