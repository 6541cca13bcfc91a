/* oracle/sliced.c - see oracle/sliced.h. */
#include "oracle/sliced.h"
#include <math.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include "base/util.h"

enum {
    BLOCK = 8,  /* entries looked at together */
    FEW = 16,   /* as many are found by insertion, more by a guess */
    SAMPLE = 64 /* of the values, for that */
};

struct fgi_sliced {
    int32_t n[2];           /* slices of either side */
    const double *by[2];    /* entry (x, y) at by[side][x * n[1 - side] + y] for x of that side */
    double *transposed;     /* by[1]: memory that is not there before a column is copied */
    _Atomic uint8_t *state; /* per column: ABSENT, COMING, THERE */
    double *max[2];         /* per slice: its largest entry, -INFINITY if all are forbidden */
    int32_t row;            /* the set-up: how far */
};

enum { ABSENT, COMING, THERE };

int64_t fgi_sliced_memory(int32_t rows, int32_t cols) {
    return 8 * ((int64_t)rows * cols + (int64_t)rows + cols) + cols;
}

fgi_sliced *fgi_sliced_create(const double *values, int32_t rows, int32_t cols) {
    fgi_sliced *s = fgi_calloc(1, sizeof *s);
    if (!s) return NULL;
    s->n[0] = rows;
    s->n[1] = cols;
    s->transposed = fgi_alloc((int64_t)rows * cols, sizeof(double));
    s->max[0] = fgi_alloc((int64_t)rows + cols, sizeof(double));
    s->state = fgi_calloc(cols, sizeof *s->state);
    if (!s->transposed || !s->state || !s->max[0]) {
        fgi_sliced_free(s);
        return NULL;
    }
    s->by[0] = values;
    s->by[1] = s->transposed;
    s->max[1] = s->max[0] + rows;
    for (int32_t y = 0; y < cols; y++) s->max[1][y] = -INFINITY;
    return s;
}

void fgi_sliced_free(fgi_sliced *s) {
    if (!s) return;
    free(s->transposed);
    free((void *)s->state);
    free(s->max[0]);
    free(s);
}

/* ---- set-up --------------------------------------------------------------------------------------------------- */

static void raise_maxima(double *restrict max, const double *restrict row, int32_t n) {
    for (int32_t y = 0; y < n; y++) max[y] = row[y] > max[y] ? row[y] : max[y];
}

int fgi_sliced_step(fgi_sliced *s, int64_t entries) {
    const int32_t cols = s->n[1];
    for (int64_t done = 0; done < entries && s->row < s->n[0]; s->row++, done += cols) {
        const double *row = s->by[0] + (int64_t)s->row * cols;
        s->max[0][s->row] = fgi_kernels_get()->max(row, cols);
        raise_maxima(s->max[1], row, cols);
    }
    return s->row == s->n[0];
}

/* Columns are copied when they are first asked for: most of a large table never is. */
static void copy_column(const fgi_sliced *s, int32_t x) {
    const int64_t rows = s->n[0], cols = s->n[1];
    uint8_t expected = ABSENT;
    if (atomic_load_explicit(&s->state[x], memory_order_acquire) == THERE) return;
    if (!atomic_compare_exchange_strong(&s->state[x], &expected, COMING)) { /* another thread is at it */
        while (atomic_load_explicit(&s->state[x], memory_order_acquire) != THERE) sched_yield();
        return;
    }
    double *column = s->transposed + x * rows;
    for (int64_t r = 0; r < rows; r++) column[r] = s->by[0][r * cols + x];
    atomic_store_explicit(&s->state[x], THERE, memory_order_release);
}

int64_t fgi_sliced_copied(const fgi_sliced *s) {
    int64_t n = 0;
    for (int32_t x = 0; x < s->n[1]; x++)
        n += atomic_load_explicit(&s->state[x], memory_order_relaxed) == THERE ? s->n[0] : 0;
    return n;
}

const double *fgi_sliced_slice(const fgi_sliced *s, int side, int32_t x) {
    if (side == 1) copy_column(s, x);
    return s->by[side] + (int64_t)x * s->n[1 - side];
}

/* ---- the largest of many -------------------------------------------------------------------------------------- */

/* A few: kept in order, since nearly all others are below the last of them. */
static int32_t insert_largest(const double *values, int32_t n, int32_t most, int32_t *at, double *top) {
    double bar = -INFINITY;
    int32_t have = 0;
    for (int32_t from = 0; from < n; from += BLOCK) {
        const int32_t to = from + BLOCK < n ? from + BLOCK : n;
        int hit = 0;
        for (int32_t j = from; j < to; j++) hit |= values[j] > bar;
        if (!hit) continue;
        for (int32_t j = from; j < to; j++) {
            if (!(values[j] > bar)) continue;
            int32_t k = have < most ? have++ : most - 1;
            for (; k > 0 && top[k - 1] < values[j]; k--) {
                top[k] = top[k - 1];
                at[k] = at[k - 1];
            }
            top[k] = values[j];
            at[k] = j;
            if (have == most) bar = top[most - 1];
        }
    }
    return have;
}

/* A value that about `most` of n are above: the one of its rank in a sample. */
static double guess_bar(const double *values, int32_t n, int32_t most) {
    double top[SAMPLE];
    const int32_t rank = (int32_t)((int64_t)SAMPLE * most / n);
    int32_t have = 0; /* the rank + 1 largest so far, descending */
    for (int64_t j = 0; j < SAMPLE; j++) {
        const double v = values[(2 * j + 1) * n / (2 * SAMPLE)];
        if (have > rank && !(v > top[rank])) continue;
        int32_t k = have > rank ? rank : have++;
        for (; k > 0 && top[k - 1] < v; k--) top[k] = top[k - 1];
        top[k] = v;
    }
    return top[rank];
}

double fgi_sliced_median(const double *values, int32_t n) { return guess_bar(values, n, n / 2); }

int32_t fgi_sliced_above(const double *values, int32_t n, double bar, int32_t *at) {
    int32_t have = 0, from = 0;
    for (; from + BLOCK <= n; from += BLOCK) { /* mostly there is none in a block */
        int hit = 0;
        for (int32_t j = from; j < from + BLOCK; j++) hit |= values[j] > bar;
        for (int32_t j = from; hit && j < from + BLOCK; j++) { /* a branch would be guessed wrongly too often */
            at[have] = j;
            have += values[j] > bar;
        }
    }
    for (; from < n; from++) {
        at[have] = from;
        have += values[from] > bar;
    }
    return have;
}

int32_t fgi_sliced_largest(const double *values, int32_t n, int32_t most, int32_t *at, double *below) {
    if (most <= FEW) {
        double largest[FEW];
        const int32_t have = insert_largest(values, n, most, at, largest);
        *below = have == most ? largest[most - 1] : -INFINITY;
        return have;
    }
    *below = most < n ? guess_bar(values, n, most) : -INFINITY;
    return fgi_sliced_above(values, n, *below, at);
}

/* ---- products ------------------------------------------------------------------------------------------------- */

static int is_constant(const double *h, int32_t n) {
    int32_t k = 1;
    while (k < n && h[k] == h[0]) k++;
    return k >= n;
}

/* Rounding is monotone: what is not above the computed bound is not above it as computed, either. */
double fgi_sliced_bounds(const fgi_sliced *s, const fgi_kernels *k, double w, int side, const double *h, int32_t most,
    double *out, int32_t *rows, int64_t *touched) {
    const int32_t n_from = s->n[side], n_to = s->n[1 - side];
    const double *max = s->max[1 - side];
    double cap;
    *touched += (int64_t)n_from + n_to;
    if (is_constant(h, n_from)) { /* before the first messages have been sent */
        for (int32_t y = 0; y < n_to; y++) out[y] = (w * max[y] + h[0]) + 0;
        return -INFINITY;
    }
    const int32_t n = fgi_sliced_largest(h, n_from, most, rows, &cap);
    for (int32_t y = 0; y < n_to; y++) out[y] = -INFINITY;
    for (int32_t j = 0; j < n && side == 1; j++) copy_column(s, rows[j]);
    k->maxplus_some(s->by[side], n_to, rows, n, w, h, out);
    *touched += (int64_t)n * n_to;
    if (n == n_from) cap = -INFINITY;
    for (int32_t y = 0; y < n_to; y++) {
        const double rest = w * max[y] + cap;
        out[y] = (rest > out[y] ? rest : out[y]) + 0;
    }
    return cap;
}

int fgi_sliced_is_open(const fgi_sliced *s, double w, int side, double cap, int32_t y, double out) {
    return cap > -INFINITY && w * s->max[1 - side][y] + cap >= out && out > -INFINITY;
}

double fgi_sliced_value(
    const fgi_sliced *s, const fgi_kernels *k, double w, int side, const double *h, int32_t y, int64_t *touched) {
    double value;
    k->maxplus_cols(fgi_sliced_slice(s, 1 - side, y), 1, s->n[side], w, h, &value);
    *touched += s->n[side];
    return value;
}
