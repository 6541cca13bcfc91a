/* exact/bucket.c - see exact/bucket.h. */
#include "exact/bucket.h"
#include <string.h>
#include "base/kernels.h"

enum { INPUT_BASE, INPUT_ROW, INPUT_CONTIGUOUS, INPUT_GATHER };
enum {
    BLOCK_LIMIT = 512, /* joint states of a block, at most: 4 KB, a part of the first cache */
    BLOCK_ENOUGH = 64  /* joint states that suffice: eight cache lines */
};

void fgi_bucket_free(fgi_bucket *b) {
    free(b->inputs);
    free(b->outer_card);
    free(b->digit);
    free(b->strides);
    free(b->offsets);
    free(b->base);
    free(b->sum);
    free(b->row);
    memset(b, 0, sizeof *b);
}

int fgi_bucket_reserve(fgi_bucket *b, int64_t n) {
    fgi_assert(n >= 0);
    return fgi_grow(&b->inputs, &b->input_capacity, n, sizeof *b->inputs);
}

static int has(const fgi_input *f, int32_t position) {
    for (int32_t k = 0; k < f->n_dims; k++)
        if (f->dims[k] == position) return 1;
    return 0;
}

static int64_t table_size(const fgi_input *f, const int32_t *card_at) {
    int64_t size = 1;
    for (int32_t k = 0; k < f->n_dims; k++) size *= card_at[f->dims[k]];
    return size;
}

/* How many of the fastest output variables form the block. It ends early where the largest input would cease to be
 * contiguous. */
static int32_t choose_inner(
    const fgi_bucket *b, const int32_t *bag, int32_t n_bag, const int32_t *card_at, int64_t *block) {
    const fgi_input *largest = NULL;
    int64_t most = 0;
    for (int64_t k = 0; k < b->n_inputs; k++) {
        int64_t size = table_size(&b->inputs[k], card_at);
        if (size > most) {
            most = size;
            largest = &b->inputs[k];
        }
    }
    int64_t states = b->card;
    int32_t inner = 0;
    int holes = 0; /* dimensions of the block that the largest input lacks */
    *block = 1;
    for (int32_t k = n_bag; k-- > 0; inner++) {
        int32_t d = card_at[bag[k]];
        int present = has(largest, bag[k]);
        if (inner > 0 && states * d > BLOCK_LIMIT) break;
        if (states >= BLOCK_ENOUGH && !present && !holes) break;
        holes += !present;
        states *= d;
        *block *= d;
    }
    return inner;
}

/* Stride of `position` in an input's table; 0 where the input does not depend on it. */
static int64_t stride_of(const fgi_input *f, int32_t position, const int32_t *card_at) {
    int64_t stride = 1;
    for (int32_t k = f->n_dims; k-- > 0; stride *= card_at[f->dims[k]])
        if (f->dims[k] == position) return stride;
    return 0;
}

/* Offsets of an input at the states of the block, one per run of states that lie side by side in it; sets f->run. */
static void block_offsets(
    fgi_input *f, const int32_t *inner, int32_t n_inner, const int32_t *card_at, int64_t *offsets) {
    int32_t k = n_inner;
    int64_t n = 1;
    f->run = 1;
    while (k > 0 && has(f, inner[k - 1])) f->run *= card_at[inner[--k]]; /* the fastest ones it has, without a hole */
    offsets[0] = 0;
    while (k-- > 0) {
        const int64_t stride = stride_of(f, inner[k], card_at);
        for (int32_t a = 1; a < card_at[inner[k]]; a++)
            for (int64_t t = 0; t < n; t++) offsets[a * n + t] = offsets[t] + a * stride;
        n *= card_at[inner[k]];
    }
}

static void add_runs(double *sum, const double *values, const int64_t *offsets, int64_t states, int64_t length) {
    if (length == 2) {
        for (int64_t t = 0; 2 * t < states; t++) {
            sum[2 * t] += values[offsets[t]];
            sum[2 * t + 1] += values[offsets[t] + 1];
        }
        return;
    }
    if (length == 4) {
        for (int64_t t = 0; 4 * t < states; t++)
            for (int k = 0; k < 4; k++) sum[4 * t + k] += values[offsets[t] + k];
        return;
    }
    for (int64_t t = 0; t * length < states; t++) {
        double *to = sum + t * length;
        const double *from = values + offsets[t];
        for (int64_t k = 0; k < length; k++) to[k] += from[k];
    }
}

fgi_rc fgi_bucket_open(fgi_bucket *b, const int32_t *bag, int32_t n_bag, const int32_t *card_at) {
    fgi_assert(n_bag > 0 && b->card > 0);
    int32_t n_inner = choose_inner(b, bag, n_bag, card_at, &b->block);
    b->n_dims = n_bag;
    b->n_outer = n_bag - n_inner;
    const int32_t *inner = bag + b->n_outer;
    b->n_blocks = 1;
    for (int32_t k = 0; k < b->n_outer; k++) b->n_blocks *= card_at[bag[k]];
    const int64_t states = b->block * b->card;
    if (!fgi_grow(&b->outer_card, &b->outer_capacity, b->n_outer + 1, sizeof(int32_t)) ||
        !fgi_grow(&b->digit, &b->digit_capacity, b->n_outer + 1, sizeof(int32_t)) ||
        !fgi_grow(&b->strides, &b->stride_capacity, b->n_inputs * b->n_outer + 1, sizeof(int64_t)) ||
        !fgi_grow(&b->offsets, &b->offset_capacity, (b->n_inputs + 1) * b->block, sizeof(int64_t)) ||
        !fgi_grow(&b->base, &b->base_capacity, states, sizeof(double)) ||
        !fgi_grow(&b->sum, &b->sum_capacity, states, sizeof(double)) ||
        !fgi_grow(&b->row, &b->row_capacity, b->card, sizeof(double)))
        return FGI_NO_MEMORY;
    for (int32_t k = 0; k < b->n_outer; k++) b->outer_card[k] = card_at[bag[k]];
    for (int64_t t = 0; t < b->block; t++)
        for (int32_t a = 0; a < b->card; a++) b->base[t * b->card + a] = b->unary[a];

    int64_t used = b->block; /* the first `block` offsets are scratch */
    for (int64_t j = 0; j < b->n_inputs; j++) {
        fgi_input *f = &b->inputs[j];
        int outer = 0, covered = 0;
        f->stride_at = j * b->n_outer;
        for (int32_t k = 0; k < b->n_outer; k++)
            outer += (b->strides[f->stride_at + k] = stride_of(f, bag[k], card_at)) != 0;
        for (int32_t k = 0; k < n_inner; k++) covered += has(f, inner[k]);
        if (!outer) {
            f->kind = INPUT_BASE;
            block_offsets(f, inner, n_inner, card_at, b->offsets);
            add_runs(b->base, f->values, b->offsets, states, f->run * b->card);
        } else if (covered == n_inner) {
            f->kind = INPUT_CONTIGUOUS;
        } else if (covered == 0) {
            f->kind = INPUT_ROW;
        } else {
            f->kind = INPUT_GATHER;
            f->gather_at = used;
            block_offsets(f, inner, n_inner, card_at, b->offsets + used);
            used += b->block;
        }
    }
    /* Base inputs are done with. */
    int64_t kept = 0;
    for (int64_t j = 0; j < b->n_inputs; j++)
        if (b->inputs[j].kind != INPUT_BASE) b->inputs[kept++] = b->inputs[j];
    b->n_inputs = kept;
    return FGI_OK;
}

/* ---- walking the blocks ------------------------------------------------------------------------------------- */

static void seek(fgi_bucket *b, int64_t index) {
    for (int32_t k = b->n_outer; k-- > 0;) {
        b->digit[k] = (int32_t)(index % b->outer_card[k]);
        index /= b->outer_card[k];
    }
    for (int64_t j = 0; j < b->n_inputs; j++) {
        fgi_input *f = &b->inputs[j];
        f->offset = 0;
        for (int32_t k = 0; k < b->n_outer; k++) f->offset += b->digit[k] * b->strides[f->stride_at + k];
    }
}

static void step(fgi_bucket *b) {
    int32_t k = b->n_outer - 1;
    for (; k >= 0 && b->digit[k] + 1 == b->outer_card[k]; k--) {
        for (int64_t j = 0; j < b->n_inputs; j++)
            b->inputs[j].offset -= b->digit[k] * b->strides[b->inputs[j].stride_at + k];
        b->digit[k] = 0;
    }
    if (k < 0) return;
    b->digit[k]++;
    for (int64_t j = 0; j < b->n_inputs; j++) b->inputs[j].offset += b->strides[b->inputs[j].stride_at + k];
}

static inline double larger(double a, double b) { return a >= b ? a : b; }

static void reduce(const double *sum, int64_t block, int32_t card, double *out) {
    if (card == 2) {
        for (int64_t t = 0; t < block; t++) out[t] = larger(sum[2 * t], sum[2 * t + 1]);
    } else if (card == 3) {
        for (int64_t t = 0; t < block; t++) out[t] = larger(larger(sum[3 * t], sum[3 * t + 1]), sum[3 * t + 2]);
    } else if (card == 4) {
        for (int64_t t = 0; t < block; t++)
            out[t] = larger(larger(sum[4 * t], sum[4 * t + 1]), larger(sum[4 * t + 2], sum[4 * t + 3]));
    } else {
        for (int64_t t = 0; t < block; t++) {
            double best = sum[t * card];
            for (int32_t a = 1; a < card; a++) best = larger(best, sum[t * card + a]);
            out[t] = best;
        }
    }
}

static void reduce_arg(
    const double *sum, int64_t block, int32_t card, double *out, void *arg, int64_t at, int arg_size) {
    if (card == 2) {
        uint8_t *to = (uint8_t *)arg + at;
        for (int64_t t = 0; t < block; t++) {
            out[t] = larger(sum[2 * t], sum[2 * t + 1]);
            to[t] = sum[2 * t + 1] > sum[2 * t];
        }
        return;
    }
    for (int64_t t = 0; t < block; t++) {
        int32_t best = 0;
        for (int32_t a = 1; a < card; a++)
            if (sum[t * card + a] > sum[t * card + best]) best = a;
        out[t] = sum[t * card + best];
        if (arg_size == 1) ((uint8_t *)arg)[at + t] = (uint8_t)best;
        else if (arg_size == 2) ((uint16_t *)arg)[at + t] = (uint16_t)best;
        else ((int32_t *)arg)[at + t] = best;
    }
}

/* The case that matters in binary grids: one large input, binary variable. */
static void fused_binary(
    const double *base, const double *row, const double *f, int64_t block, double *out, uint8_t *arg) {
    const double r0 = row[0], r1 = row[1];
    if (!arg) {
        for (int64_t t = 0; t < block; t++) {
            double a = (base[2 * t] + r0) + f[2 * t], c = (base[2 * t + 1] + r1) + f[2 * t + 1];
            out[t] = larger(a, c);
        }
        return;
    }
    for (int64_t t = 0; t < block; t++) {
        double a = (base[2 * t] + r0) + f[2 * t], c = (base[2 * t + 1] + r1) + f[2 * t + 1];
        out[t] = larger(a, c);
        arg[t] = c > a;
    }
}

static void start_sum(const fgi_bucket *b, double *sum) {
    const double *base = b->base, *row = b->row;
    if (b->card == 2) {
        const double r0 = row[0], r1 = row[1];
        for (int64_t t = 0; t < b->block; t++) {
            sum[2 * t] = base[2 * t] + r0;
            sum[2 * t + 1] = base[2 * t + 1] + r1;
        }
        return;
    }
    for (int64_t t = 0; t < b->block; t++)
        for (int32_t a = 0; a < b->card; a++) sum[t * b->card + a] = base[t * b->card + a] + row[a];
}

/* What depends on the odometer alone. */
static void sum_row(fgi_bucket *b) {
    for (int32_t a = 0; a < b->card; a++) b->row[a] = 0;
    for (int64_t j = 0; j < b->n_inputs; j++)
        if (b->inputs[j].kind == INPUT_ROW)
            for (int32_t a = 0; a < b->card; a++) b->row[a] += b->inputs[j].values[b->inputs[j].offset + a];
}

/* All inputs at the odometer's present state. */
static void sum_block(fgi_bucket *b, double *sum) {
    const int64_t states = b->block * b->card;
    start_sum(b, sum);
    for (int64_t j = 0; j < b->n_inputs; j++) {
        const fgi_input *f = &b->inputs[j];
        const double *values = f->values + f->offset;
        if (f->kind == INPUT_CONTIGUOUS)
            for (int64_t t = 0; t < states; t++) sum[t] += values[t];
        else if (f->kind == INPUT_GATHER) add_runs(sum, values, b->offsets + f->gather_at, states, f->run * b->card);
    }
}

void fgi_bucket_joint(fgi_bucket *b, int64_t from, int64_t to, double *out) {
    seek(b, from);
    for (int64_t i = from; i < to; i++, step(b)) {
        sum_row(b);
        sum_block(b, out + (i - from) * b->block * b->card);
    }
}

void fgi_bucket_blocks(fgi_bucket *b, int64_t from, int64_t to, double *out, void *arg, int arg_size) {
    fgi_assert(from >= 0 && from <= to && to <= b->n_blocks);
    const int32_t card = b->card;
    int contiguous = 0, gathers = 0;
    const fgi_input *only = NULL;
    for (int64_t j = 0; j < b->n_inputs; j++) {
        gathers += b->inputs[j].kind == INPUT_GATHER;
        if (b->inputs[j].kind == INPUT_CONTIGUOUS) {
            contiguous++;
            only = &b->inputs[j];
        }
    }
    const int fused = card == 2 && contiguous == 1 && gathers == 0;
    seek(b, from);
    for (int64_t i = from; i < to; i++, step(b)) {
        sum_row(b);
        if (fused) {
            fused_binary(b->base, b->row, only->values + only->offset, b->block, out + i * b->block,
                arg ? (uint8_t *)arg + i * b->block : NULL);
            continue;
        }
        sum_block(b, b->sum);
        if (arg) reduce_arg(b->sum, b->block, card, out + i * b->block, arg, i * b->block, arg_size);
        else reduce(b->sum, b->block, card, out + i * b->block);
    }
}

/* ---- leaves ------------------------------------------------------------------------------------------------- */

/* With forbidden entries raised to a finite score: entry by entry. */
static void leaf_raised(
    const fgi_view *v, int x_fast, const double *u, int32_t n_x, int32_t n_y, double forbidden, double *out) {
    for (int32_t y = 0; y < n_y; y++) {
        double best = -INFINITY;
        for (int32_t x = 0; x < n_x; x++) {
            double value = v->kind != FGI_DENSE ? fgi_implicit_at(v->kind, v->p0, v->p1, x, y)
                                                : v->values[x_fast ? (int64_t)y * n_x + x : (int64_t)x * n_y + y];
            value *= v->weight;
            best = larger(u[x] + (value > forbidden ? value : forbidden), best);
        }
        out[y] = best;
    }
}

fgi_rc fgi_bucket_leaf(fgi_bucket *b, const fgi_view *v, int x_fast, const double *u, int32_t n_x, int32_t n_y,
    double forbidden, double *out) {
    const fgi_kernels *k = fgi_kernels_get();
    if (forbidden > -INFINITY) {
        leaf_raised(v, x_fast, u, n_x, n_y, forbidden, out);
    } else if (v->kind != FGI_DENSE) {
        if (!fgi_grow(&b->row, &b->row_capacity, 2 * (int64_t)n_x + 1, sizeof(double))) return FGI_NO_MEMORY;
        fgi_maxplus_implicit(v->kind, v->p0, v->p1, v->weight, u, n_x, out, n_y, b->row);
    } else if (x_fast) {
        k->maxplus_cols(v->values, n_y, n_x, v->weight, u, out);
    } else {
        k->maxplus_rows(v->values, n_x, n_y, v->weight, u, out);
    }
    return FGI_OK;
}
