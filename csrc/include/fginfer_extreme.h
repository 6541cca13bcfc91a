/*
 * fginfer_extreme.h - extreme classification: linear classifiers with very many labels, sparse in primal and dual.
 *
 * Two objectives, both with an elastic net on every label's weights w_k:
 *
 *   pd-sparse   sum_k [ 1/2 |w_k|^2 + lambda |w_k|_1 ] + C sum_i max over n not in P_i, p in P_i of
 *               (1 + <w_n, x_i> - <w_p, x_i>)_+                   one problem over all labels
 *   ppd-sparse  lambda |w_k|_1 + 1/2 |w_k|^2 + 1/2 (b_k - b0)^2 + sum_i C_i loss(1 - y_ik (<w_k, x_i> + b_k))
 *                                                                a problem a label, each independent of the others
 *
 * after Yen, Huang, Zhong, Ravikumar, Dhillon, "PD-Sparse" (2016), and Yen, Huang, Dai, Ravikumar, Dhillon, Xing,
 * "PPDsparse" (2017). w = S(v) with v the data combined by the dual variables and S the soft threshold at lambda.
 *
 * Values of features and weights are single precision, as data of that size are kept; all sums are double. Arrays are
 * *borrowed*: the caller keeps them alive and unchanged during a call (or while a handle made from them lives). They
 * may be memory-mapped files. Results do not depend on the number of threads.
 */
#ifndef FGINFER_EXTREME_H
#define FGINFER_EXTREME_H
#include "fginfer.h"

typedef struct fgi_extreme_data {
    int64_t n_rows, n_features, n_labels;
    const int64_t *row_begin; /* n_rows + 1: features of a row, ascending */
    const int32_t *row_feature;
    const float *row_value;
    const int64_t *column_begin; /* n_features + 1: rows of a feature, ascending. ppd-sparse only */
    const int32_t *column_row;
    const float *column_value;
    const int64_t *label_begin; /* n_rows + 1: labels of a row, ascending. pd-sparse only */
    const int32_t *label;
    const int64_t *positive_begin; /* n_labels + 1: rows of a label, ascending. ppd-sparse only */
    const int32_t *positive;
} fgi_extreme_data;

/* One compressed matrix: begin[0] = 0, never decreasing; indices of a line ascending, different, below `width`; values
 * finite (NULL: none). The error's index is the first bad line. */
fgi_rc fgi_extreme_check(
    int64_t n_lines, int64_t width, const int64_t *begin, const int32_t *index, const float *value, fgi_error *err);
/* Columns first .. last-1 of a compressed matrix, as compressed lines of their own. begin[c] for c = first .. last says
 * where column c goes in the whole transpose; outputs begin at begin[first]. value and out_value may be NULL. Stable,
 * so rows ascend. A transpose in several such parts needs memory for one part at a time. */
fgi_rc fgi_extreme_transpose(int64_t n_lines, const int64_t *line_begin, const int32_t *index, const float *value,
    int64_t first, int64_t last, const int64_t *begin, int32_t *out_index, float *out_value, fgi_error *err);

/* ---- ppd-sparse: one label at a time --------------------------------------------------------------------------- */

typedef enum fgi_ppd_loss { FGI_PPD_HINGE = 0, FGI_PPD_SQUARED_HINGE = 1 } fgi_ppd_loss;

typedef struct fgi_ppd_settings {
    int32_t loss;           /* fgi_ppd_loss */
    double C;               /* weight of the loss */
    double positive_weight; /* factor of C for rows that have the label */
    double lambda;          /* weight of the l1 term; the bias is outside it */
    int32_t learn_bias;     /* 0: b = bias for every label; 1: b is learned, 1/2 (b - bias)^2 inside the l2 term */
    double bias;
    double tol;          /* relative duality gap of a label at which it is done */
    int32_t max_outer;   /* searches for violators */
    int32_t max_inner;   /* epochs of coordinate descent after each */
    double admit;        /* violators admitted per search, as a multiple of the label's active rows */
    int32_t admit_least; /* least number of violators admitted per search */
    /* Precision of sampled searches (random sparsification, 2 |w|_1^2 / sparsify^2 draws); 0: all are exact. An exact
     * search ends every run, so this changes the way, not the end. */
    double sparsify;
    uint64_t seed; /* every label has a generator of its own, made from this and its number */
} fgi_ppd_settings;

typedef struct fgi_ppd_info {
    double primal, dual;
    int64_t positives; /* rows with the label */
    int64_t support;   /* non-zero dual variables */
    int64_t weights;   /* non-zero weights, the bias not counted */
    int64_t touched;   /* matrix entries read */
    int32_t searches, exact_searches, epochs;
    int32_t converged; /* 1: the gap is within tol; 0: an iteration limit ended it */
    double seconds;
} fgi_ppd_info;

typedef struct fgi_ppd fgi_ppd;
typedef struct fgi_ppd_columns fgi_ppd_columns;

/* Checks the settings and makes the scratch memory of so many threads. The data must outlive it. */
fgi_rc fgi_ppd_create(
    const fgi_extreme_data *data, const fgi_ppd_settings *settings, int32_t threads, fgi_ppd **out, fgi_error *err);
void fgi_ppd_free(fgi_ppd *p);
/* Trains labels[0 .. n). Where *stop becomes non-zero (NULL: never) the call returns within milliseconds;
 * fgi_ppd_columns_get then says which labels are done: only these have weights. */
fgi_rc fgi_ppd_train(
    fgi_ppd *p, const int32_t *labels, int64_t n, const int32_t *stop, fgi_ppd_columns **out, fgi_error *err);
void fgi_ppd_columns_free(fgi_ppd_columns *c);
int64_t fgi_ppd_columns_weights(const fgi_ppd_columns *c); /* weights of all n labels together */
/* begin: n + 1; feature and value: as many as weights, features ascending; bias, info, done: n. */
void fgi_ppd_columns_get(const fgi_ppd_columns *c, int64_t *begin, int32_t *feature, float *value, float *bias,
    fgi_ppd_info *info, uint8_t *done);

/* ---- pd-sparse: all labels together ---------------------------------------------------------------------------- */

/* How the most violating label is found: by W's sparse rows, or by a search index (fginfer_search.h) that keeps W
 * dense, in single precision, and follows its changes: for few features and rows that have most of them. */
typedef enum fgi_pd_search { FGI_PD_BY_ROWS = 0, FGI_PD_BY_INDEX = 1 } fgi_pd_search;

typedef struct fgi_pd_settings {
    double C, lambda;
    int32_t parts; /* a search looks at one of so many parts of the labels, drawn at random; 1: at all labels */
    uint64_t seed;
    int32_t search; /* fgi_pd_search; the result is the same */
} fgi_pd_settings;

typedef struct fgi_pd_info {
    double squared_norm, l1_norm; /* norms of the weights */
    double dual;                  /* lower bound on the optimum */
    double gap_estimate;          /* sum over rows of the gap seen when last visited */
    int64_t weights;              /* nnz(W) */
    int64_t active;               /* nnz(A): non-zero dual variables */
    int64_t combined;             /* non-zeros of v, from which w is thresholded */
    int64_t searches, touched;    /* questions to the oracle, weights read by them */
    int64_t memory;               /* bytes */
    uint64_t rng;
} fgi_pd_info;

typedef struct fgi_pd fgi_pd;
/* Every row needs a label (FGI_BAD_MODEL, with the row as the index). The data must outlive it. */
fgi_rc fgi_pd_create(
    const fgi_extreme_data *data, const fgi_pd_settings *settings, int32_t threads, fgi_pd **out, fgi_error *err);
void fgi_pd_free(fgi_pd *p);
/* Visits rows[*next .. m): search, projected step on the row's active labels, weights. Stops past `deadline`. */
fgi_rc fgi_pd_pass(fgi_pd *p, const int32_t *rows, int64_t m, int64_t *next, double deadline, fgi_error *err);
/* A step of all rows together: conjugate gradients on the face of the active labels, and an exact line search. Passes
 * find the face, this its optimum, where C is large and rows share their weights. */
fgi_rc fgi_pd_joint(fgi_pd *p, double deadline, fgi_error *err);
/* From now on without l1, over the weights that are there: passes and joint steps move these, others stay zero, norms,
 * losses and the dual value are those of this problem. Its state is not for export. */
fgi_rc fgi_pd_refit(fgi_pd *p, fgi_error *err);
/* *loss = sum over rows first .. last-1 of the separation ranking loss, by exact searches on all threads. */
fgi_rc fgi_pd_losses(fgi_pd *p, int64_t first, int64_t last, double *loss, fgi_error *err);
/* Norms and the dual value are summed afresh. */
void fgi_pd_get_info(fgi_pd *p, fgi_pd_info *info);
/* Weights as in fgi_extreme_weights: begin has n_features + 1 entries, label and value as many as info.weights. */
void fgi_pd_weights(const fgi_pd *p, int64_t *begin, int32_t *label, float *value);
/* The state, for checkpoints: dual variables of row r at row_begin[r] .. (the row's own labels first), v of feature
 * j at begin[j] .., the gaps last seen. Sizes: as fgi_pd_export_size returns
 * and writes. */
int64_t fgi_pd_export_size(const fgi_pd *p, int64_t *combined);
void fgi_pd_export(const fgi_pd *p, int64_t *row_begin, int32_t *labels, double *alpha, int64_t *begin,
    int32_t *combined_label, double *combined_value, double *gaps);
fgi_rc fgi_pd_import(fgi_pd *p, const int64_t *row_begin, const int32_t *labels, const double *alpha,
    const int64_t *begin, const int32_t *combined_label, const double *combined_value, const double *gaps,
    const fgi_pd_info *info, fgi_error *err);

/* The projection onto { p, q >= 0, sum p = sum q <= size } of the step, in place: n and m values. */
fgi_rc fgi_pd_project(double *p, int32_t n, double *q, int32_t m, double size, fgi_error *err);

/* ---- prediction ------------------------------------------------------------------------------------------------ */

/* Weights by feature: (label, value) of feature j at begin[j] .. begin[j+1], labels ascending. A row costs the lines of
 * its features, not the number of labels. */
typedef struct fgi_extreme_weights {
    int64_t n_features, n_labels;
    const int64_t *begin;
    const int32_t *label;
    const float *value;
    const float *bias;         /* n_labels */
    const int32_t *bias_order; /* labels by descending bias, ties to the lower label */
} fgi_extreme_weights;

/* The k best labels of every row, by score, ties to the lower label: k labels and scores a row (k <= n_labels). Rows
 * are compressed lines as in fgi_extreme_data; features the weights do not have count nothing. *touched (NULL: not
 * wanted): weights read. */
fgi_rc fgi_extreme_topk(const fgi_extreme_weights *w, int64_t n_rows, const int64_t *row_begin,
    const int32_t *row_feature, const float *row_value, int32_t k, int32_t threads, int32_t *labels, float *scores,
    int64_t *touched, fgi_error *err);
/* Scores of chosen labels: n_chosen of them for every row, row after row. */
fgi_rc fgi_extreme_scores(const fgi_extreme_weights *w, int64_t n_rows, const int64_t *row_begin,
    const int32_t *row_feature, const float *row_value, const int32_t *chosen, int64_t n_chosen, int32_t threads,
    float *scores, fgi_error *err);

#endif
