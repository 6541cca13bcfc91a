/* learn/extreme/pd.h - the state of pd-sparse. */
#ifndef FGI_PD_H
#define FGI_PD_H
#include "base/array.h"
#include "base/pool.h"
#include "base/util.h"
#include "fginfer_extreme.h"
#include "learn/extreme/hash_row.h"
#include "oracle/oracle.h"

/* Dual variables of one row: its own labels first, in their order, then the active others. */
typedef struct pd_block {
    int32_t *label;
    double *alpha;
    int32_t n, room;
} pd_block;

/* What one thread needs for a question to the oracle. */
typedef struct pd_asker {
    fgi_oracle_scratch *scratch;
    double *x;         /* values of a row, in double */
    int64_t *excluded; /* the row's own labels */
} pd_asker;

struct fgi_pd {
    fgi_extreme_data data;
    fgi_pd_settings settings;
    double *squares, *gaps; /* by row: |x_i|^2, gap at the last visit */
    pd_block *blocks;
    hash_row *v;     /* by feature: X^T alpha */
    fgi_products *w; /* S(v): the source the oracle is asked about */
    fgi_rng rng;
    int64_t searches, visits_touched;
    int32_t refitting; /* v has the weights that stay, and no others come */
    int32_t threads;
    fgi_pool *pool;
    pd_asker *askers;
    /* Scratch of a step. */
    int64_t room, change_room;
    double *gradient, *up, *down, *work;
    int32_t *change_label, *change_feature;
    double *change_value;
};

static inline int32_t pd_own(const fgi_pd *p, int64_t row) {
    return (int32_t)(p->data.label_begin[row + 1] - p->data.label_begin[row]);
}
/* The best label of part `part` of `parts` that the row does not have: state -1 if there is none. path: an
 * fgi_access_path; both give the same answer. */
fgi_rc pd_ask(
    const fgi_pd *p, pd_asker *a, int64_t row, int32_t part, int32_t parts, fgi_access_path path, fgi_argmax *out);
/* <w_k, x_row>. */
double pd_score(const fgi_pd *p, int64_t row, int32_t label);
int pd_block_reserve(pd_block *b, int32_t n);
/* Room for a step of the row; then its dual variables become `up` (its own labels) and minus `down` (the others). */
int pd_reserve_move(fgi_pd *p, int64_t row);
fgi_rc pd_move(fgi_pd *p, int64_t row, fgi_error *err);

#endif
