/* oracle/scan.c - the best states of a pairwise table row by row.
 *
 * The max-marginals of the first variable (oracle/marginals.h) say what is best in every row. They are added up in
 * another order than the contract says, so they rule rows out, with a margin for rounding, and the rows that are left
 * are read once more as the contract wants it: most often that is one. From a table that is read whole they come at the
 * speed of memory, from a sliced one as bounds that read little of it, from an implicit one in linear time. */
#include <float.h>
#include "oracle/internal.h"
#include "base/kernels.h"
#include "base/util.h"

/* Tables with fewer entries are read directly. With 26 labels the kernel takes a third of the time of plain loops. */
enum { KERNEL_FROM = 64 };

static double least_wanted(const fgi_best *best) {
    return best->n == best->capacity ? best->items[best->n - 1].value : -INFINITY;
}

static void read_row(const fgi_view *v, const fgi_oracle_scratch *w, int32_t a, fgi_best *best) {
    const double *second = w->by_label[1], first = w->by_label[0][a];
    const int64_t step = v->transposed ? v->rows : 1;
    const double *row = v->kind == FGI_DENSE ? v->values + (v->transposed ? a : (int64_t)a * v->cols) : NULL;
    double least = least_wanted(best);
    for (int32_t b = 0; b < v->cols; b++) {
        const double theta = row ? v->weight * row[b * step] : fgi_view_at2(v, a, b);
        const double value = (theta - first) - second[b];
        if (!(value >= least) || value == -INFINITY || fgi_is_banned(w, (int64_t)a * v->cols + b)) continue;
        fgi_best_offer(best, (int64_t)a * v->cols + b, value);
        least = least_wanted(best);
    }
}

/* The row that promises most. */
static int32_t best_row(const double *row_max, const double *first, int32_t rows) {
    int32_t top = 0;
    for (int32_t a = 1; a < rows; a++)
        if (row_max[a] - first[a] > row_max[top] - first[top]) top = a;
    return top;
}

/* row_max: max-marginals of the first variable, or bounds on them; minus: the messages of the second, negated.
 *
 * Either order has three roundings, each of a number that is no larger than the sum of the magnitudes of value, score
 * and messages of a state that matters. Its second message is no larger than what the score leaves it: labels that a
 * caller rules out by messages beyond all scores do not count. */
static void read_rows(const fgi_table_source *t, const fgi_oracle_scratch *w, const double *row_max,
    const double *minus, fgi_best *best) {
    const double unit = 8 * DBL_EPSILON, *first = w->by_label[0];
    const fgi_view *v = &t->view;
    const int32_t top = best_row(row_max, first, v->rows);
    double size = fgi_larger(fgi_kernels_get()->max(minus, v->cols), 0);
    if (t->most) size += fabs(v->weight * *t->most);
    else
        for (int32_t b = 0; b < v->cols; b++) size = fgi_larger(size, -minus[b]);
    read_row(v, w, top, best);
    double least = least_wanted(best);
    for (int32_t a = 0; a < v->rows; a++) {
        const double value = row_max[a] - first[a];
        if (value + unit * (fabs(value) + 5 * fabs(first[a]) + 2 * size + 3 * fabs(least)) < least) continue;
        if (a == top || row_max[a] == -INFINITY) continue;
        read_row(v, w, a, best);
        least = least_wanted(best);
    }
}

/* The block of the first variable's messages is free: they are not asked for. */
static double *room_for_rows(fgi_oracle_scratch *w) { return w->bound; }

void fgi_scan_pair(const fgi_table_source *t, fgi_oracle_scratch *w, fgi_best *best) {
    const fgi_view *v = &t->view;
    if ((int64_t)v->rows * v->cols < KERNEL_FROM) {
        for (int32_t a = 0; a < v->rows; a++) read_row(v, w, a, best);
        w->touched += (int64_t)v->rows * v->cols;
        return;
    }
    w->touched += fgi_pair_marginals(v, 0, w->by_label[1], w, room_for_rows(w));
    read_rows(t, w, room_for_rows(w), fgi_oracle_negated(w, 1), best);
}

/* Bounds first; then the rows in their order, until the best of them is exact. */
fgi_rc fgi_scan_slices(const fgi_table_source *t, fgi_oracle_scratch *w, fgi_best *best) {
    enum {
        ROWS = 32, /* rows that bounds are made of, as in gdmm/gdmm.h */
        FEW = 8    /* one row in so many is read, at most */
    };
    const int32_t rows = t->view.rows;
    double *row_max = room_for_rows(w);
    fgi_loose_marginals m = {&t->view, t->slices, 0, w->by_label[1], w->implicit, w, 0, 0};
    const double cap = fgi_loose_bounds(&m, ROWS, row_max);
    int32_t looks = 0;
    for (; FEW * looks <= rows; looks++) {
        const int32_t a = best_row(row_max, w->by_label[0], rows);
        if (!fgi_loose_is_open(&m, cap, a, row_max[a])) break;
        const double exact = fgi_loose_exact(&m, a);
        if (exact == row_max[a]) break;
        row_max[a] = exact;
    }
    const int is_found = FEW * looks <= rows;
    if (is_found) read_rows(t, w, row_max, fgi_oracle_negated(w, 1), best);
    w->touched += m.touched + t->view.cols;
    return is_found ? FGI_OK : FGI_UNSUPPORTED;
}
