/* oracle/sliced.c - see oracle/sliced.h. */
#include "oracle/sliced.h"
#include <math.h>
#include <stdatomic.h>
#include <string.h>
#include "base/assert.h"
#include "base/threads.h"
#include "base/util.h"

/* Decision 0016 has what other values of CROWDED do. */
enum {
    CELL = FGI_SLICED_CELL,
    CROWDED = 4, /* where more than this part of the cells is to be read, all are, in one go */
    BLOCK = 8,   /* entries looked at together */
    FEW = 16,    /* as many are found by insertion, more by a guess */
    SAMPLE = 64  /* values that the guess looks at */
};

struct fgi_sliced {
    int32_t n[2];           /* slices of either side */
    int32_t row;            /* how far the set-up is */
    int is_listed;          /* no cells, no copies: what stands below by[0] is not there */
    double *max[2];         /* per slice: its largest entry, -INFINITY if all are forbidden */
    const double *by[2];    /* entry (x, y) at by[side][x * n[1 - side] + y] for x of that side */
    double *transposed;     /* by[1]: memory that is not there before a cell is copied */
    _Atomic uint8_t *state; /* per column and cell of it: ABSENT, COMING, THERE */
    int32_t n_cells[2];     /* per slice of a side: pieces of CELL entries, the last one may be shorter */
    double *cell[2];        /* per slice: the largest entries of its cells */
    double *least[2];       /* per cell of slices: the smallest of their max */
    double *raised;         /* the set-up: the largest entries of the columns in the cell of rows under way */
    _Atomic int64_t copied; /* entries of columns */
};

enum { ABSENT, COMING, THERE };

/* Entries of a cell of n. */
static int32_t cell_width(int32_t n, int32_t cell) { return n - cell * CELL < CELL ? n - cell * CELL : CELL; }

int fgi_sliced_is_listed(const fgi_sliced *sliced) { return sliced->is_listed; }

int64_t fgi_sliced_memory(const fgi_sliced *sliced) {
    const int64_t rows = sliced->n[0], cols = sliced->n[1];
    if (sliced->is_listed) return 8 * (rows + cols);
    const int64_t cells = rows * sliced->n_cells[0] + cols * sliced->n_cells[1];
    return 8 * (rows * cols + rows + 2 * cols + sliced->n_cells[0] + sliced->n_cells[1] + cells) +
        cols * sliced->n_cells[1];
}

/* Does a row have a large entry in most of its cells, above the middle between its mean and its largest one? */
static int is_even(const double *row, int32_t cols) {
    const fgi_kernels *k = fgi_kernels_get();
    const double most = k->max(row, cols);
    double below = 0;
    int32_t finite = 0, large = 0;
    for (int32_t y = 0; y < cols; y++) {
        if (row[y] == -INFINITY) continue;
        below += most - row[y];
        finite++;
    }
    const double bar = most - 0.5 * below / (finite ? finite : 1);
    for (int32_t c = 0; c < fgi_sliced_cells(cols); c++) large += k->max(row + c * CELL, cell_width(cols, c)) > bar;
    return 2 * large > fgi_sliced_cells(cols);
}

int fgi_sliced_is_even(const double *values, int32_t rows, int32_t cols) {
    enum { SEEN = 16 }; /* rows that are looked at, evenly spread */
    int32_t even = 0;
    for (int64_t p = 0; p < SEEN; p++) even += is_even(values + (2 * p + 1) * rows / (2 * SEEN) * cols, cols);
    return 2 * even > SEEN;
}

static int take_cells(fgi_sliced *sliced) {
    const int64_t rows = sliced->n[0], cols = sliced->n[1];
    sliced->n_cells[0] = (int32_t)fgi_sliced_cells(cols);
    sliced->n_cells[1] = (int32_t)fgi_sliced_cells(rows);
    sliced->transposed = fgi_alloc(rows * cols, sizeof(double));
    sliced->raised = fgi_alloc(cols + sliced->n_cells[0] + sliced->n_cells[1], sizeof(double));
    sliced->cell[0] = fgi_alloc(rows * sliced->n_cells[0] + cols * sliced->n_cells[1], sizeof(double));
    sliced->state = fgi_calloc(cols * sliced->n_cells[1], sizeof *sliced->state);
    if (!sliced->transposed || !sliced->raised || !sliced->cell[0] || !sliced->state) return 0;
    sliced->by[1] = sliced->transposed;
    sliced->least[0] = sliced->raised + cols;
    sliced->least[1] = sliced->least[0] + sliced->n_cells[1];
    sliced->cell[1] = sliced->cell[0] + rows * sliced->n_cells[0];
    for (int64_t y = 0; y < cols; y++) sliced->raised[y] = -INFINITY;
    return 1;
}

fgi_sliced *fgi_sliced_create(const double *values, int32_t rows, int32_t cols, int is_listed) {
    fgi_assert(rows >= 1 && cols >= 1);
    fgi_sliced *sliced = fgi_calloc(1, sizeof *sliced);
    if (!sliced) return NULL;
    sliced->n[0] = rows;
    sliced->n[1] = cols;
    sliced->by[0] = values;
    sliced->is_listed = is_listed;
    sliced->max[0] = fgi_alloc((int64_t)rows + cols, sizeof(double));
    if (!sliced->max[0] || (!sliced->is_listed && !take_cells(sliced))) {
        fgi_sliced_free(sliced);
        return NULL;
    }
    sliced->max[1] = sliced->max[0] + rows;
    for (int32_t y = 0; y < cols; y++) sliced->max[1][y] = -INFINITY;
    return sliced;
}

void fgi_sliced_free(fgi_sliced *sliced) {
    if (!sliced) return;
    free(sliced->transposed);
    free((void *)sliced->state);
    free(sliced->max[0]);
    free(sliced->raised);
    free(sliced->cell[0]);
    free(sliced);
}

/* ---- set-up --------------------------------------------------------------------------------------------------- */

/* A cell of rows is complete. */
static void end_cell(fgi_sliced *sliced, int32_t cell) {
    fgi_assert(!sliced->is_listed && cell >= 0 && cell < sliced->n_cells[1]);
    for (int64_t y = 0; y < sliced->n[1]; y++) {
        sliced->cell[1][y * sliced->n_cells[1] + cell] = sliced->raised[y];
        sliced->max[1][y] = fgi_larger(sliced->max[1][y], sliced->raised[y]);
        sliced->raised[y] = -INFINITY;
    }
}

static void find_least(fgi_sliced *sliced) {
    for (int side = 0; side < 2; side++)
        for (int32_t x = 0; x < sliced->n[side]; x++) {
            double *least = &sliced->least[side][x / CELL];
            *least = x % CELL ? fgi_smaller(*least, sliced->max[side][x]) : sliced->max[side][x];
        }
}

int fgi_sliced_step(fgi_sliced *sliced, int64_t entries) {
    const fgi_kernels *k = fgi_kernels_get();
    const int32_t cols = sliced->n[1];
    for (int64_t done = 0; done < entries && sliced->row < sliced->n[0]; done += cols) {
        const double *row = sliced->by[0] + (int64_t)sliced->row * cols;
        if (sliced->is_listed) {
            sliced->max[0][sliced->row++] = k->max(row, cols);
            k->raise(sliced->max[1], 0, row, cols);
            continue;
        }
        double *cells = sliced->cell[0] + (int64_t)sliced->row * sliced->n_cells[0];
        for (int32_t c = 0; c < sliced->n_cells[0]; c++) {
            const int32_t width = cell_width(cols, c);
            cells[c] = k->max(row + c * CELL, width);
            k->raise(sliced->raised + c * CELL, 0, row + c * CELL, width);
        }
        sliced->max[0][sliced->row] = k->max(cells, sliced->n_cells[0]);
        sliced->row++;
        if (sliced->row % CELL == 0 || sliced->row == sliced->n[0]) end_cell(sliced, (sliced->row - 1) / CELL);
    }
    if (sliced->row < sliced->n[0]) return 0;
    if (!sliced->is_listed) find_least(sliced);
    return 1;
}

/* Cells of columns are copied when they are first asked for: most of a large table never is. */
static void copy_cell(const fgi_sliced *sliced, int32_t x, int32_t cell) {
    _Atomic uint8_t *state = &sliced->state[(int64_t)x * sliced->n_cells[1] + cell];
    uint8_t expected = ABSENT;
    if (atomic_load_explicit(state, memory_order_acquire) == THERE) return;
    if (!atomic_compare_exchange_strong(state, &expected, COMING)) { /* another thread is at it */
        while (atomic_load_explicit(state, memory_order_acquire) != THERE) fgi_thread_yield();
        return;
    }
    const int64_t rows = sliced->n[0], cols = sliced->n[1], begin = (int64_t)cell * CELL;
    const double *from = sliced->by[0] + begin * cols + x;
    double *to = sliced->transposed + x * rows + begin;
    for (int64_t r = 0; r < cell_width(sliced->n[0], cell); r++) to[r] = from[r * cols];
    atomic_fetch_add_explicit((_Atomic int64_t *)&sliced->copied, cell_width(sliced->n[0], cell), memory_order_relaxed);
    atomic_store_explicit(state, THERE, memory_order_release);
}

int64_t fgi_sliced_copied(const fgi_sliced *sliced) {
    return atomic_load_explicit(&sliced->copied, memory_order_relaxed);
}

const double *fgi_sliced_slice(const fgi_sliced *sliced, int side, int32_t x) {
    for (int32_t c = 0; side == 1 && c < sliced->n_cells[1]; c++) copy_cell(sliced, x, c);
    return sliced->by[side] + (int64_t)x * sliced->n[1 - side];
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
static double floor_of(const fgi_sliced *sliced, double w, int side, double cap, int32_t cell) {
    return w * sliced->least[1 - side][cell] + cap;
}

static int may_raise(
    const fgi_sliced *sliced, double w, int side, const double *h, int32_t row, int32_t cell, double floor) {
    return w * sliced->cell[side][(int64_t)row * sliced->n_cells[side] + cell] + h[row] > floor;
}

/* Are so many cells to be read that it is better to read whole rows? By a few of the n rows listed. */
static int is_crowded(
    const fgi_sliced *sliced, double w, int side, const double *h, double cap, const int32_t *rows, int32_t n) {
    enum { PROBES = 4 }; /* rows that are looked at */
    int32_t hits = 0;
    for (int32_t c = 0; c < sliced->n_cells[side]; c++) {
        const double floor = floor_of(sliced, w, side, cap, c);
        for (int32_t p = 0; p < PROBES; p++)
            hits += may_raise(sliced, w, side, h, rows[(int64_t)p * n / PROBES], c, floor);
    }
    return CROWDED * hits > PROBES * sliced->n_cells[side];
}

/* out[y], w max(y) + cap before, is raised to the results of the n rows listed. A cell that has no entry large enough
 * for that is not read. Returns the entries read. */
static int64_t raise_by_rows(const fgi_sliced *sliced, const fgi_kernels *k, double w, int side, const double *h,
    double cap, const int32_t *rows, int32_t n, double *out) {
    enum { SOME = 64 }; /* rows at a time: what they raise lifts the floor for those that follow */
    const int32_t n_to = sliced->n[1 - side];
    int64_t read = 0;
    if (n == 0) return 0;
    if (is_crowded(sliced, w, side, h, cap, rows, n)) {
        for (int32_t j = 0; j < n; j++) (void)fgi_sliced_slice(sliced, side, rows[j]);
        k->maxplus_some(sliced->by[side], n_to, n_to, rows, n, w, h, out);
        return (int64_t)n * n_to;
    }
    for (int32_t first = 0; first < n; first += SOME) {
        const int32_t end = n - first < SOME ? n : first + SOME;
        for (int32_t c = 0; c < sliced->n_cells[side]; c++) {
            const int32_t width = cell_width(n_to, c);
            const double floor = floor_of(sliced, w, side, cap, c);
            int32_t kept[SOME + 1], n_kept = 0;
            for (int32_t j = first; j < end; j++) { /* a branch would be guessed wrongly too often */
                kept[n_kept] = rows[j];
                n_kept += may_raise(sliced, w, side, h, rows[j], c, floor);
            }
            for (int32_t j = 0; j < n_kept && side == 1; j++) copy_cell(sliced, kept[j], c);
            if (n_kept) k->maxplus_some(sliced->by[side] + c * CELL, n_to, width, kept, n_kept, w, h, out + c * CELL);
            read += (int64_t)n_kept * width;
        }
    }
    return read + (int64_t)n * sliced->n_cells[side];
}

/* Lists the places of the largest h, in their order, in the room of the peaks: first how many, then the places. With
 * random scores some tens of them decide most results. */
static void list_first(const double *h, int32_t n, int32_t *list) {
    enum { MOST = 128 }; /* places listed */
    const int32_t room = 2 * (int32_t)fgi_sliced_cells(n) - 1, most = room < MOST ? room : MOST;
    int32_t have = 0, *at = list + 1;
    double bar = -INFINITY;
    for (int32_t x = 0; x < n; x++) {
        if (have == most && !(h[x] > bar)) continue;
        int32_t k = have < most ? have++ : most - 1;
        for (; k > 0 && h[at[k - 1]] < h[x]; k--) at[k] = at[k - 1];
        at[k] = x;
        bar = h[at[have - 1]];
    }
    list[0] = have;
}

/* Rounding is monotone: what is not above the computed bound is not above it as computed, either. */
double fgi_sliced_bounds(const fgi_sliced *sliced, const fgi_kernels *k, double w, int side, const double *h,
    int32_t most, double *out, double *peaks, int32_t *rows, int64_t *touched) {
    const int32_t n_from = sliced->n[side], n_to = sliced->n[1 - side];
    const double *max = sliced->max[1 - side];
    double cap;
    *touched += (int64_t)n_from + n_to;
    if (is_constant(h, n_from)) { /* before the first messages have been sent */
        for (int32_t y = 0; y < n_to; y++) out[y] = (w * max[y] + h[0]) + 0;
        return -INFINITY;
    }
    if (sliced->is_listed) {
        list_first(h, n_from, (int32_t *)peaks);
        cap = h[((int32_t *)peaks)[1]];
        for (int32_t y = 0; y < n_to; y++) out[y] = w * max[y] + cap + 0;
        return cap;
    }
    for (int32_t c = 0; c < sliced->n_cells[1 - side]; c++) peaks[c] = k->max(h + c * CELL, cell_width(n_from, c));
    const int32_t n = fgi_sliced_largest(h, n_from, most, rows, &cap);
    if (n == n_from) cap = -INFINITY;
    for (int32_t y = 0; y < n_to; y++) out[y] = w * max[y] + cap;
    *touched += raise_by_rows(sliced, k, w, side, h, cap, rows, n, out);
    for (int32_t y = 0; y < n_to; y++) out[y] += 0;
    return cap;
}

int fgi_sliced_is_open(const fgi_sliced *sliced, double w, int side, double cap, int32_t y, double out) {
    return cap > -INFINITY && w * sliced->max[1 - side][y] + cap >= out && out > -INFINITY;
}

/* The largest result of a cell whose largest entry is `most`, or `least`, if that is larger. Columns are not copied for
 * it: of a cell few entries matter. */
static double raise_by_cell(const fgi_sliced *sliced, double w, int side, const double *delta, int32_t y, int32_t cell,
    double most, double least) {
    const int32_t begin = cell * CELL, end = begin + cell_width(sliced->n[side], cell);
    const int64_t step = side == 0 ? sliced->n[1] : 1;
    const double *at = side == 0 ? sliced->by[0] + y : sliced->by[0] + (int64_t)y * sliced->n[1];
    for (int32_t x = begin; x < end; x++)
        if (w * most - delta[x] > least) least = fgi_larger(least, w * at[x * step] - delta[x]);
    return least;
}

/* The result at y where there are no cells: the labels of the list come first, then those that may still matter. */
static int search_list(const fgi_sliced *sliced, double w, int side, const double *delta, const int32_t *list,
    int32_t y, double *value, int64_t *touched) {
    enum { TOGETHER = 8 }; /* reads that wait for memory at the same time */
    const int64_t step = side == 0 ? sliced->n[1] : 1;
    const double *at = side == 0 ? sliced->by[0] + y : sliced->by[0] + (int64_t)y * sliced->n[1];
    const double most = w * sliced->max[1 - side][y];
    double best = -INFINITY;
    for (int32_t k = 1; k <= list[0]; k += TOGETHER) {
        const int32_t end = k + TOGETHER <= list[0] ? k + TOGETHER : list[0] + 1;
        if (!(most - delta[list[k]] > best)) {
            *value = best + 0;
            return 1;
        }
        for (int32_t j = k; j < end; j++) best = fgi_larger(best, w * at[list[j] * step] - delta[list[j]]);
        *touched += TOGETHER;
    }
    for (int32_t from = 0; from < sliced->n[side]; from += BLOCK) { /* few that may matter are left */
        const int32_t end = from + BLOCK < sliced->n[side] ? from + BLOCK : sliced->n[side];
        int hit = 0;
        for (int32_t x = from; x < end; x++) hit |= most - delta[x] > best;
        for (int32_t x = from; hit && x < end; x++) {
            if (!(most - delta[x] > best)) continue;
            best = fgi_larger(best, w * at[x * step] - delta[x]);
            ++*touched;
        }
    }
    *touched += sliced->n[side] / BLOCK;
    *value = best + 0;
    return 1;
}

int fgi_sliced_search(const fgi_sliced *sliced, const fgi_kernels *k, double w, int side, const double *delta,
    const double *peaks, int32_t y, double *value, int64_t *touched) {
    if (sliced->is_listed) return search_list(sliced, w, side, delta, (const int32_t *)peaks, y, value, touched);
    const int32_t n = sliced->n_cells[1 - side];
    const double *cell = sliced->cell[1 - side] + (int64_t)y * n;
    int32_t first = 0, hits = 0;
    k->maxplus_cols(cell, 1, n, w, peaks, value);
    *touched += 2 * n;
    if (*value == -INFINITY) return 1;
    while (w * cell[first] + peaks[first] < *value) first++; /* the most promising cell: often no other is needed */
    double best = raise_by_cell(sliced, w, side, delta, y, first, cell[first], -INFINITY);
    for (int32_t c = 0; c < n; c++) hits += w * cell[c] + peaks[c] > best;
    if (CROWDED * hits > n + CROWDED) return 0; /* the first one counts */
    for (int32_t c = 0; c < n && hits > 1; c++) {
        if (c == first || !(w * cell[c] + peaks[c] > best)) continue;
        best = raise_by_cell(sliced, w, side, delta, y, c, cell[c], best);
        *touched += CELL;
    }
    *touched += CELL;
    *value = best + 0;
    return 1;
}

double fgi_sliced_value(
    const fgi_sliced *sliced, const fgi_kernels *k, double w, int side, const double *h, int32_t y, int64_t *touched) {
    double value = -INFINITY;
    *touched += sliced->n[side];
    if (sliced->is_listed && side == 0) {
        const double *at = sliced->by[0] + y;
        for (int64_t x = 0; x < sliced->n[0]; x++) value = fgi_larger(value, w * at[x * sliced->n[1]] + h[x]);
        return value + 0;
    }
    k->maxplus_cols(fgi_sliced_slice(sliced, 1 - side, y), 1, sliced->n[side], w, h, &value);
    return value;
}
