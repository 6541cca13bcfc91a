/* learn/extreme/ppd.h - one label's problem of ppd-sparse, and the scratch memory of the thread that solves it. */
#ifndef FGI_PPD_H
#define FGI_PPD_H
#include "base/array.h"
#include "base/assert.h"
#include "base/util.h"
#include "fginfer_extreme.h"

/* A violator that waits to be admitted. */
typedef struct ppd_candidate {
    double violation;
    int32_t row;
} ppd_candidate;

/* One feature of the label in hand. A step reads w, then changes v and w. */
typedef struct ppd_feature {
    double v;    /* sum of y_i alpha_i x_i */
    double w;    /* S(v) */
    double seen; /* whether it is in `features` */
} ppd_feature;

/* Invariants, between the steps of a label (check in learn/extreme/ppd_class.c looks at them):
 *   1  Features that are not in `features` are all zero; those that are have seen = 1 and w = S(v), each once.
 *   2  Active rows are distinct and marked, positives first; alpha is from 0 to its limit.
 *   3  bias_sum is the sum of y alpha, to rounding.
 *   4  Rows outside `rows` have score 0 and are not marked as seen, unless all_rows. */
typedef struct ppd_work {
    ppd_feature *feature; /* zero outside `features` */
    int32_t *features;
    int64_t n_features;
    /* By row: score = <w, x_i> of the last search, zero outside `rows`; all rows once there are many. */
    double *score;
    uint8_t *row_state; /* ROW_* bits */
    int32_t *rows;
    int64_t n_rows;
    int all_rows;
    /* The active set: positives first, then negatives. */
    int32_t *active;
    double *alpha;
    int64_t n_active, room;
    int32_t *order; /* `room` of them: the order of an epoch */
    ppd_candidate *heap;
    int64_t heap_room;
    double *draws;   /* running sums of |w| over `features`, and then */
    double *sampled; /* the weights drawn */
    double bias_sum; /* sum of y_i alpha_i */
} ppd_work;

/* The result for one label. */
typedef struct ppd_column {
    int32_t *feature;
    float *value;
    int64_t n;
    float bias;
    fgi_ppd_info info;
    int done;
} ppd_column;

typedef struct ppd_problem {
    const fgi_extreme_data *data;
    const fgi_ppd_settings *settings;
    const double *squares; /* |x_i|^2 */
    const int32_t *stop;   /* NULL: never */
} ppd_problem;

fgi_rc ppd_work_init(ppd_work *w, const fgi_extreme_data *d);
void ppd_work_free(ppd_work *w);
/* FGI_OK with column->done == 0 when it was stopped. */
fgi_rc ppd_solve(const ppd_problem *p, ppd_work *w, int32_t label, ppd_column *column);

#endif
