/* oracle/sliced.c - see oracle/sliced.h. */
#include "oracle/sliced.h"
#include <math.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include "base/util.h"

/* CROWDED 2 and 8 on the models of FGI_SLICED_CELL: 18, 35, 45, 110 and 20, 42, 55, 103 ms. Without it matchings of
 * 1034 labels, whose cells hardly differ, take half as long again. */
enum {
    CELL = FGI_SLICED_CELL,
    CROWDED = 4, /* where more than this part of the cells is to be read, all are, in one go */
    BLOCK = 8,   /* entries looked at together */
    FEW = 16,    /* as many are found by insertion, more by a guess */
    SAMPLE = 64  /* of the values, for that */
};

struct fgi_sliced {
    int32_t n[2];           /* slices of either side */
    const double *by[2];    /* entry (x, y) at by[side][x * n[1 - side] + y] for x of that side */
    double *transposed;     /* by[1]: memory that is not there before a cell is copied */
    _Atomic uint8_t *state; /* per column and cell of it: ABSENT, COMING, THERE */
    double *max[2];         /* per slice: its largest entry, -INFINITY if all are forbidden */
    int32_t n_cells[2];     /* per slice of a side: pieces of CELL entries, the last one may be shorter */
    double *cell[2];        /* per slice: the largest entries of its cells */
    double *least[2];       /* per cell of slices: the smallest of their max */
    int32_t row;            /* the set-up: how far, */
    double *raised;         /* and the largest entries of the columns in the cell of rows under way */
};

enum { ABSENT, COMING, THERE };

/* Entries of a cell of n. */
static int32_t cell_width(int32_t n, int32_t cell) { return n - cell * CELL < CELL ? n - cell * CELL : CELL; }

int64_t fgi_sliced_memory(int32_t rows, int32_t cols) {
    const int64_t cells = (int64_t)rows * fgi_sliced_cells(cols) + (int64_t)cols * fgi_sliced_cells(rows);
    const int64_t slices = rows + 2 * (int64_t)cols + fgi_sliced_cells(rows) + fgi_sliced_cells(cols);
    return 8 * ((int64_t)rows * cols + slices + cells) + cols * fgi_sliced_cells(rows);
}

fgi_sliced *fgi_sliced_create(const double *values, int32_t rows, int32_t cols) {
    fgi_sliced *s = fgi_calloc(1, sizeof *s);
    if (!s) return NULL;
    s->n[0] = rows;
    s->n[1] = cols;
    s->transposed = fgi_alloc((int64_t)rows * cols, sizeof(double));
    s->n_cells[0] = (int32_t)fgi_sliced_cells(cols);
    s->n_cells[1] = (int32_t)fgi_sliced_cells(rows);
    s->max[0] = fgi_alloc((int64_t)rows + 2 * (int64_t)cols + s->n_cells[0] + s->n_cells[1], sizeof(double));
    s->cell[0] = fgi_alloc((int64_t)rows * s->n_cells[0] + (int64_t)cols * s->n_cells[1], sizeof(double));
    s->state = fgi_calloc((int64_t)cols * s->n_cells[1], sizeof *s->state);
    if (!s->transposed || !s->state || !s->max[0] || !s->cell[0]) {
        fgi_sliced_free(s);
        return NULL;
    }
    s->by[0] = values;
    s->by[1] = s->transposed;
    s->max[1] = s->max[0] + rows;
    s->raised = s->max[1] + cols;
    s->least[0] = s->raised + cols;
    s->least[1] = s->least[0] + s->n_cells[1];
    s->cell[1] = s->cell[0] + (int64_t)rows * s->n_cells[0];
    for (int32_t y = 0; y < cols; y++) s->max[1][y] = s->raised[y] = -INFINITY;
    return s;
}

void fgi_sliced_free(fgi_sliced *s) {
    if (!s) return;
    free(s->transposed);
    free((void *)s->state);
    free(s->max[0]);
    free(s->cell[0]);
    free(s);
}

/* ---- set-up --------------------------------------------------------------------------------------------------- */

/* A cell of rows is complete. */
static void end_cell(fgi_sliced *s, int32_t cell) {
    for (int64_t y = 0; y < s->n[1]; y++) {
        s->cell[1][y * s->n_cells[1] + cell] = s->raised[y];
        s->max[1][y] = fgi_larger(s->max[1][y], s->raised[y]);
        s->raised[y] = -INFINITY;
    }
}

static void find_least(fgi_sliced *s) {
    for (int side = 0; side < 2; side++)
        for (int32_t x = 0; x < s->n[side]; x++) {
            double *least = &s->least[side][x / CELL];
            *least = x % CELL ? fgi_smaller(*least, s->max[side][x]) : s->max[side][x];
        }
}

int fgi_sliced_step(fgi_sliced *s, int64_t entries) {
    const fgi_kernels *k = fgi_kernels_get();
    const int32_t cols = s->n[1];
    for (int64_t done = 0; done < entries && s->row < s->n[0]; done += cols) {
        const double *row = s->by[0] + (int64_t)s->row * cols;
        double *cells = s->cell[0] + (int64_t)s->row * s->n_cells[0];
        for (int32_t c = 0; c < s->n_cells[0]; c++) {
            const int32_t width = cell_width(cols, c);
            cells[c] = k->max(row + c * CELL, width);
            k->raise(s->raised + c * CELL, 0, row + c * CELL, width);
        }
        s->max[0][s->row] = k->max(cells, s->n_cells[0]);
        s->row++;
        if (s->row % CELL == 0 || s->row == s->n[0]) end_cell(s, (s->row - 1) / CELL);
    }
    if (s->row < s->n[0]) return 0;
    find_least(s);
    return 1;
}

/* Cells of columns are copied when they are first asked for: most of a large table never is. */
static void copy_cell(const fgi_sliced *s, int32_t x, int32_t cell) {
    _Atomic uint8_t *state = &s->state[(int64_t)x * s->n_cells[1] + cell];
    uint8_t expected = ABSENT;
    if (atomic_load_explicit(state, memory_order_acquire) == THERE) return;
    if (!atomic_compare_exchange_strong(state, &expected, COMING)) { /* another thread is at it */
        while (atomic_load_explicit(state, memory_order_acquire) != THERE) sched_yield();
        return;
    }
    const int64_t rows = s->n[0], cols = s->n[1], begin = (int64_t)cell * CELL;
    const double *from = s->by[0] + begin * cols + x;
    double *to = s->transposed + x * rows + begin;
    for (int64_t r = 0; r < cell_width(s->n[0], cell); r++) to[r] = from[r * cols];
    atomic_store_explicit(state, THERE, memory_order_release);
}

int64_t fgi_sliced_copied(const fgi_sliced *s) {
    int64_t n = 0;
    for (int64_t k = 0; k < (int64_t)s->n[1] * s->n_cells[1]; k++)
        if (atomic_load_explicit(&s->state[k], memory_order_relaxed) == THERE)
            n += cell_width(s->n[0], (int32_t)(k % s->n_cells[1]));
    return n;
}

const double *fgi_sliced_slice(const fgi_sliced *s, int side, int32_t x) {
    for (int32_t c = 0; side == 1 && c < s->n_cells[1]; c++) copy_cell(s, x, c);
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

/* What the results in a cell have at least, by the cap. */
static double floor_of(const fgi_sliced *s, double w, int side, double cap, int32_t cell) {
    return w * s->least[1 - side][cell] + cap;
}

static int may_raise(
    const fgi_sliced *s, double w, int side, const double *h, int32_t row, int32_t cell, double floor) {
    return w * s->cell[side][(int64_t)row * s->n_cells[side] + cell] + h[row] > floor;
}

/* Are so many cells to be read that it is better to read whole rows? By a few of the n rows listed. */
static int is_crowded(
    const fgi_sliced *s, double w, int side, const double *h, double cap, const int32_t *rows, int32_t n) {
    enum { PROBES = 4 };
    int32_t hits = 0;
    for (int32_t c = 0; c < s->n_cells[side]; c++) {
        const double floor = floor_of(s, w, side, cap, c);
        for (int32_t p = 0; p < PROBES; p++) hits += may_raise(s, w, side, h, rows[(int64_t)p * n / PROBES], c, floor);
    }
    return CROWDED * hits > PROBES * s->n_cells[side];
}

/* out[y], w max(y) + cap before, is raised to the results of the n rows listed. A cell that has no entry large enough
 * for that is not read. Returns the entries read. */
static int64_t raise_by_rows(const fgi_sliced *s, const fgi_kernels *k, double w, int side, const double *h, double cap,
    const int32_t *rows, int32_t n, double *out) {
    enum { SOME = 64 };
    const int32_t n_to = s->n[1 - side];
    int64_t read = 0;
    if (n == 0) return 0;
    if (is_crowded(s, w, side, h, cap, rows, n)) {
        for (int32_t j = 0; j < n; j++) (void)fgi_sliced_slice(s, side, rows[j]);
        k->maxplus_some(s->by[side], n_to, n_to, rows, n, w, h, out);
        return (int64_t)n * n_to;
    }
    for (int32_t first = 0; first < n; first += SOME) {
        const int32_t end = n - first < SOME ? n : first + SOME;
        for (int32_t c = 0; c < s->n_cells[side]; c++) {
            const int32_t width = cell_width(n_to, c);
            const double floor = floor_of(s, w, side, cap, c);
            int32_t kept[SOME + 1], n_kept = 0;
            for (int32_t j = first; j < end; j++) { /* a branch would be guessed wrongly too often */
                kept[n_kept] = rows[j];
                n_kept += may_raise(s, w, side, h, rows[j], c, floor);
            }
            for (int32_t j = 0; j < n_kept && side == 1; j++) copy_cell(s, kept[j], c);
            if (n_kept) k->maxplus_some(s->by[side] + c * CELL, n_to, width, kept, n_kept, w, h, out + c * CELL);
            read += (int64_t)n_kept * width;
        }
    }
    return read + (int64_t)n * s->n_cells[side];
}

/* Rounding is monotone: what is not above the computed bound is not above it as computed, either. */
double fgi_sliced_bounds(const fgi_sliced *s, const fgi_kernels *k, double w, int side, const double *h, int32_t most,
    double *out, double *peaks, int32_t *rows, int64_t *touched) {
    const int32_t n_from = s->n[side], n_to = s->n[1 - side];
    const double *max = s->max[1 - side];
    double cap;
    *touched += (int64_t)n_from + n_to;
    if (is_constant(h, n_from)) { /* before the first messages have been sent */
        for (int32_t y = 0; y < n_to; y++) out[y] = (w * max[y] + h[0]) + 0;
        return -INFINITY;
    }
    for (int32_t c = 0; c < s->n_cells[1 - side]; c++) peaks[c] = k->max(h + c * CELL, cell_width(n_from, c));
    const int32_t n = fgi_sliced_largest(h, n_from, most, rows, &cap);
    if (n == n_from) cap = -INFINITY;
    for (int32_t y = 0; y < n_to; y++) out[y] = w * max[y] + cap;
    *touched += raise_by_rows(s, k, w, side, h, cap, rows, n, out);
    for (int32_t y = 0; y < n_to; y++) out[y] += 0;
    return cap;
}

int fgi_sliced_is_open(const fgi_sliced *s, double w, int side, double cap, int32_t y, double out) {
    return cap > -INFINITY && w * s->max[1 - side][y] + cap >= out && out > -INFINITY;
}

/* The largest result of a cell whose largest entry is `most`, or `least`, if that is larger. Columns are not copied for
 * it: of a cell few entries matter. */
static double raise_by_cell(
    const fgi_sliced *s, double w, int side, const double *delta, int32_t y, int32_t cell, double most, double least) {
    const int32_t begin = cell * CELL, end = begin + cell_width(s->n[side], cell);
    const int64_t step = side == 0 ? s->n[1] : 1;
    const double *at = side == 0 ? s->by[0] + y : s->by[0] + (int64_t)y * s->n[1];
    for (int32_t x = begin; x < end; x++)
        if (w * most - delta[x] > least) least = fgi_larger(least, w * at[x * step] - delta[x]);
    return least;
}

int fgi_sliced_search(const fgi_sliced *s, const fgi_kernels *k, double w, int side, const double *delta,
    const double *peaks, int32_t y, double *value, int64_t *touched) {
    const int32_t n = s->n_cells[1 - side];
    const double *cell = s->cell[1 - side] + (int64_t)y * n;
    int32_t first = 0, hits = 0;
    k->maxplus_cols(cell, 1, n, w, peaks, value);
    *touched += 2 * n;
    if (*value == -INFINITY) return 1;
    while (w * cell[first] + peaks[first] < *value) first++; /* the most promising cell: often no other is needed */
    double best = raise_by_cell(s, w, side, delta, y, first, cell[first], -INFINITY);
    for (int32_t c = 0; c < n; c++) hits += w * cell[c] + peaks[c] > best;
    if (CROWDED * hits > n + CROWDED) return 0; /* the first one counts */
    for (int32_t c = 0; c < n && hits > 1; c++) {
        if (c == first || !(w * cell[c] + peaks[c] > best)) continue;
        best = raise_by_cell(s, w, side, delta, y, c, cell[c], best);
        *touched += CELL;
    }
    *touched += CELL;
    *value = best + 0;
    return 1;
}

double fgi_sliced_value(
    const fgi_sliced *s, const fgi_kernels *k, double w, int side, const double *h, int32_t y, int64_t *touched) {
    double value;
    k->maxplus_cols(fgi_sliced_slice(s, 1 - side, y), 1, s->n[side], w, h, &value);
    *touched += s->n[side];
    return value;
}
