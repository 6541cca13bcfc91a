/* oracle/scan.c - the best entries of a dense pairwise table by looking at all of them, at the speed of memory.
 *
 * The max-plus kernel gives for every row the largest w t(a, b) - delta_2(b). It adds up in another order than the
 * contract says, so it rules rows out, with a margin for rounding, and the rows that are left are read once more as the
 * contract wants it: most often that is one. */
#include <float.h>
#include "base/kernels.h"
#include "oracle/internal.h"

/* Tables with fewer entries are read directly. With 26 labels the kernel takes a third of the time of plain loops. */
enum { KERNEL_FROM = 64 };

/* Largest |message|; w->dense has the messages. */
static double largest(const double *message, int32_t n) {
    double most = 0.0;
    for (int32_t b = 0; b < n; b++)
        if (fabs(message[b]) > most) most = fabs(message[b]);
    return most;
}

static void read_row(const fgi_dense_pair *t, const fgi_oracle_scratch *w, int32_t a, fgi_best *best) {
    const double *second = w->dense + w->max_card, first = w->dense[a];
    const int64_t step = t->transposed ? t->rows : 1;
    const double *row = t->values + (t->transposed ? a : (int64_t)a * t->cols);
    for (int32_t b = 0; b < t->cols; b++) {
        const double value = (t->weight * row[b * step] - first) - second[b];
        const double least = best->n == best->capacity ? best->items[best->n - 1].value : -INFINITY;
        if (value >= least && value > -INFINITY && !fgi_is_banned(w, (int64_t)a * t->cols + b))
            fgi_best_offer(best, (int64_t)a * t->cols + b, value);
    }
}

void fgi_scan_pair(const fgi_dense_pair *t, const fgi_oracle_scratch *w, fgi_best *best) {
    const int64_t entries = (int64_t)t->rows * t->cols;
    if (entries < KERNEL_FROM) {
        for (int32_t a = 0; a < t->rows; a++) read_row(t, w, a, best);
        return;
    }
    const double *second = w->dense + w->max_card;
    double *minus = w->bound, *row_max = w->bound + w->max_card;
    for (int32_t b = 0; b < t->cols; b++) minus[b] = -second[b];
    if (t->transposed) fgi_kernels_get()->maxplus_rows(t->values, t->cols, t->rows, t->weight, minus, row_max);
    else fgi_kernels_get()->maxplus_cols(t->values, t->rows, t->cols, t->weight, minus, row_max);
    int32_t top = 0;
    for (int32_t a = 0; a < t->rows; a++)
        if (row_max[a] - w->dense[a] > row_max[top] - w->dense[top]) top = a;
    read_row(t, w, top, best);
    const double spread = largest(second, t->cols);
    for (int32_t a = 0; a < t->rows; a++) {
        if (a == top || row_max[a] == -INFINITY) continue;
        if (best->n == best->capacity) { /* three roundings in either order, each of a number of this size at most */
            const double least = best->items[best->n - 1].value, first = fabs(w->dense[a]);
            const double size = fabs(row_max[a]) + fabs(least) + 2 * first + 2 * spread;
            if (row_max[a] - w->dense[a] + 8 * DBL_EPSILON * size < least) continue;
        }
        read_row(t, w, a, best);
    }
}
