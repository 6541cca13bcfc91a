/* exact/bucket.h - one bucket: the sum of its input functions, maximised over one variable.
 *
 * Every table is laid out with the variable eliminated *first* fastest, so the bucket's own variable is the fastest of
 * all its inputs, and of the output's variables the next one to go is. The output is walked in blocks: the `block`
 * fastest states of the output form an inner loop, the others an odometer. Inputs that do not depend on the odometer
 * are summed once per bucket. */
#ifndef FGI_BUCKET_H
#define FGI_BUCKET_H
#include "exact/eliminate.h"

typedef struct fgi_input {
    const double *values;
    int32_t n_dims;      /* the bucket's own variable included */
    const int32_t *dims; /* positions, descending; the last is the bucket's own */
    int32_t kind;        /* set by fgi_bucket_open */
    int64_t offset;      /* offset that belongs to the odometer's present state */
    int64_t stride_at;   /* into strides: one per outer dimension */
    int64_t gather_at;   /* into offsets: one per run of the block */
    int64_t run;         /* states of the block that lie side by side in this input */
} fgi_input;

typedef struct fgi_bucket {
    int32_t card; /* labels of the variable to eliminate */
    int32_t n_outer, n_dims;
    int64_t block, n_blocks;
    int64_t n_inputs, input_capacity;
    fgi_input *inputs;
    const double *unary; /* card values */
    int32_t *outer_card, *digit;
    int64_t *strides; /* n_inputs x n_outer */
    int64_t *offsets;
    double *base; /* block x card: unary and everything that does not depend on the odometer */
    double *sum;  /* block x card */
    double *row;  /* card */
    int64_t outer_capacity, digit_capacity, stride_capacity, offset_capacity, base_capacity, sum_capacity, row_capacity;
} fgi_bucket;

void fgi_bucket_free(fgi_bucket *b);
/* Room for n inputs; returns 0 when memory is short. Then fill inputs[], n_inputs, unary and card. */
int fgi_bucket_reserve(fgi_bucket *b, int64_t n);
/* bag: positions of the output's variables, descending. card_at[p] labels at position p. */
fgi_rc fgi_bucket_open(fgi_bucket *b, const int32_t *bag, int32_t n_bag, const int32_t *card_at);
/* Blocks [from, to) of the output; `arg` (NULL: not wanted) takes the best labels, arg_size 1, 2 or 4 bytes each. */
void fgi_bucket_blocks(fgi_bucket *b, int64_t from, int64_t to, double *out, void *arg, int arg_size);
/* The same blocks before the maximum: all joint states, the bucket's own variable fastest. */
void fgi_bucket_joint(fgi_bucket *b, int64_t from, int64_t to, double *out);

/* out[y] = max over x of u[x] + weight * T(x, y) for one pairwise table, dense or implicit. x_fast: T is stored with x
 * fastest. Entries are raised to at least `forbidden`; `b` lends scratch memory. */
fgi_rc fgi_bucket_leaf(fgi_bucket *b, const fgi_view *v, int x_fast, const double *u, int32_t n_x, int32_t n_y,
    double forbidden, double *out);

#endif
