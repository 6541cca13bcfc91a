/* exact/roof.h - binary pairwise models as cuts: exact where all factors agree after flipping labels, roof duality
 * otherwise. */
#ifndef FGI_ROOF_H
#define FGI_ROOF_H
#include "base/util.h"

/* Scores; every entry finite. */
typedef struct fgi_roof_edge {
    int32_t i, j;
    double score[2][2];
} fgi_roof_edge;

typedef struct fgi_roof_result {
    double bound;     /* upper bound on the best score; the best score itself where exact */
    int32_t exact;    /* the model is submodular up to flips: all variables are labelled, optimally */
    int32_t finished; /* 0: the limits came first; labels are all -1, the bound is valid */
    int64_t labelled;
    double error; /* no labeling that agrees with the labels was better by more than this: rounding */
    double steps;
} fgi_roof_result;

/* At most `steps` arc visits; where the model is not submodular, at most `patience` per variable and edge.
 * unary: two scores per variable. labels: 0, 1 or -1 for each variable; all labelled ones agree with one optimal
 * labeling. */
fgi_rc fgi_roof_solve(int32_t n, const double *unary, int64_t n_edges, const fgi_roof_edge *edges, double steps,
    double patience, double deadline, int32_t *labels, fgi_roof_result *result);

#endif
