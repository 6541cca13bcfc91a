/* dual/trws_shared.c - products with dense tables that many factors share, see dual/trws.c.
 *
 * out[b] = max over a of  w t(a, b) + h[a]. No result is below  bar = max over a of  w min_b t(a, b) + h[a], so a label
 * a with  w max_b t(a, b) + h[a] < bar  is the best one nowhere, and its row need not be read. Where h differs by more
 * than the entries of the table, as in an image whose pixels are nearly sure, few rows are left. Rounding is monotone,
 * so the results have the bits of those that read everything.
 *
 * What it takes, the largest and the smallest entry of every row and column and a copy of the table by columns, pays
 * where one table has many messages to serve. */
#include "dual/trws_state.h"

enum {
    LEAST_ENTRIES = 1 << 10, /* entries of a table: below it looking at h takes as long as looking at the table */
    MOST_ENTRIES = 1 << 21,  /* entries of a table: a copy is read again and again, which does not pay from memory */
    MOST_COPIES = 1 << 23,   /* entries of all copies: 64 MB */
    LEAST_FACTORS = 8        /* factors that share a table */
};

struct fgi_trws_shared {
    int32_t n[2];               /* labels of either side: rows and columns as they are stored */
    const double *by[2];        /* entry (x, y) at by[side][x * n[1 - side] + y] for x of that side */
    double *copy;               /* by[1]; NULL: the table is symmetric */
    double *least[2], *most[2]; /* extremes of the entries with this label */
};

static void free_one(fgi_trws_shared *t) {
    if (!t) return;
    free(t->copy);
    free(t->least[0]);
    free(t);
}

void fgi_trws_shared_free(fgi_trws *self) {
    for (int64_t k = 0; self->shared && k < self->n_shared; k++) free_one(self->shared[k]);
    free(self->shared);
    free(self->shared_by);
    self->shared = NULL;
    self->shared_by = NULL;
}

/* ---- set-up -------------------------------------------------------------------------------------------------- */

static int is_symmetric(const double *t, int32_t rows, int32_t cols) {
    if (rows != cols) return 0;
    for (int64_t x = 0; x < rows; x++)
        for (int64_t y = 0; y < x; y++)
            if (t[x * cols + y] != t[y * cols + x]) return 0;
    return 1;
}

static void copy_columns(const double *t, int32_t rows, int32_t cols, double *copy) {
    enum { TILE = 16 }; /* rows at a time: what is read stays in cache, what is written is whole lines */
    for (int64_t from = 0; from < rows; from += TILE)
        for (int64_t y = 0; y < cols; y++)
            for (int64_t x = from; x < rows && x < from + TILE; x++) copy[y * rows + x] = t[x * cols + y];
}

static fgi_trws_shared *make_one(const double *values, int32_t rows, int32_t cols) {
    fgi_trws_shared *t = fgi_calloc(1, sizeof *t);
    const int symmetric = is_symmetric(values, rows, cols);
    if (!t) return NULL;
    t->n[0] = rows;
    t->n[1] = cols;
    t->by[0] = t->by[1] = values;
    if (!symmetric) t->by[1] = t->copy = fgi_alloc((int64_t)rows * cols, sizeof(double));
    t->least[0] = fgi_alloc(2 * ((int64_t)rows + cols), sizeof(double));
    if (!t->by[1] || !t->least[0]) {
        free_one(t);
        return NULL;
    }
    if (!symmetric) copy_columns(values, rows, cols, t->copy);
    t->most[0] = t->least[0] + rows;
    t->least[1] = t->most[0] + rows;
    t->most[1] = t->least[1] + cols;
    for (int side = 0; side < 2; side++)
        for (int64_t x = 0; x < t->n[side]; x++) {
            const double *row = t->by[side] + x * t->n[1 - side];
            double least = INFINITY, most = -INFINITY;
            for (int32_t y = 0; y < t->n[1 - side]; y++) {
                least = fgi_smaller(least, row[y]);
                most = fgi_larger(most, row[y]);
            }
            t->least[side][x] = least;
            t->most[side][x] = most;
        }
    return t;
}

/* Which tables; without the memory for that, none. */
static void choose(const fgi_model *m, fgi_trws *self) {
    const fgi_structure *s = m->s;
    int64_t left = MOST_COPIES;
    self->shared_by = fgi_calloc(s->n_tables, sizeof *self->shared_by);
    if (!self->shared_by) return;
    for (int64_t f = 0; f < s->n_factors; f++)
        if (self->shared_by[s->factor_table[f]] < LEAST_FACTORS) self->shared_by[s->factor_table[f]]++;
    for (int64_t t = 0; t < s->n_tables; t++) {
        const int64_t entries = s->values_begin[t + 1] - s->values_begin[t];
        const int pays = s->table_kind[t] == FGI_DENSE && !m->t->facts[t].reach &&
            self->shared_by[t] == LEAST_FACTORS && entries >= LEAST_ENTRIES && entries <= MOST_ENTRIES &&
            entries <= left;
        self->shared_by[t] = pays ? (int32_t)++self->n_shared : 0;
        left -= pays ? entries : 0;
    }
    if (self->n_shared) self->shared = fgi_calloc(self->n_shared, sizeof(fgi_trws_shared *));
}

int fgi_trws_share_tables(const fgi_model *m, fgi_trws *self) {
    const fgi_structure *s = m->s;
    if (self->node == 0) choose(m, self);
    while (self->shared && self->node < s->n_tables) {
        const int64_t t = self->node++;
        const int32_t *dims = s->dims + s->dims_begin[t];
        if (!self->shared_by[t]) continue;
        self->shared[self->shared_by[t] - 1] = make_one(m->t->values + s->values_begin[t], dims[0], dims[1]);
        if (fgi_trws_out_of_time(self, 2 * (s->values_begin[t + 1] - s->values_begin[t]))) return 0;
    }
    if (!self->shared) fgi_trws_shared_free(self);
    return 1;
}

/* ---- products ------------------------------------------------------------------------------------------------ */

/* The labels that may be the best somewhere; returns how many. */
static int32_t candidates(const fgi_trws_shared *t, int side, double w, const double *h, int32_t *list) {
    const int32_t n = t->n[side];
    const double *least = t->least[side], *most = t->most[side];
    double bars[4] = {-INFINITY, -INFINITY, -INFINITY, -INFINITY}; /* side by side: one would wait for itself */
    int32_t a = 0, kept = 0;
    for (; a + 4 <= n; a += 4)
        for (int k = 0; k < 4; k++) bars[k] = fgi_larger(bars[k], w * least[a + k] + h[a + k]);
    for (; a < n; a++) bars[0] = fgi_larger(bars[0], w * least[a] + h[a]);
    const double bar = fgi_larger(fgi_larger(bars[0], bars[1]), fgi_larger(bars[2], bars[3]));
    for (a = 0; a < n; a++) { /* a branch would be guessed wrongly too often */
        list[kept] = a;
        kept += w * most[a] + h[a] >= bar;
    }
    return kept;
}

int64_t fgi_trws_product_shared(const fgi_kernels *k, const fgi_trws_shared *t, int side, double w, const double *h,
    double *out, int32_t begin, int32_t end, int32_t *list) {
    const int32_t n = t->n[side], n_to = t->n[1 - side];
    const int64_t kept = candidates(t, side, w, h, list);
    if (2 * kept >= n) {
        k->maxplus_rows(t->by[side] + (int64_t)begin * n_to, end - begin, n_to, w, h + begin, out);
        return 0;
    }
    const int64_t first = kept * begin / n, last = kept * end / n; /* the same part of those that are kept */
    for (int32_t b = 0; b < n_to; b++) out[b] = -INFINITY;
    k->maxplus_some(t->by[side], n_to, n_to, list + first, last - first, w, h, out);
    for (int32_t b = 0; b < n_to; b++) out[b] += 0;
    return (end - begin - (last - first)) * n_to;
}
