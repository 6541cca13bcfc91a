/* model/sliced.c - see model/sliced.h. */
#include "model/sliced.h"
#include <math.h>
#include <string.h>
#include "base/util.h"

enum {
    TOP = 48,     /* entries kept of every slice */
    BLOCK = 8,    /* entries looked at together */
    TILE = 16,    /* rows and columns of a piece of the transposition */
    BUCKETS = 256 /* of h, by value: as good as a sort, in linear time */
};
enum {
    FIRST_BATCH = 16, /* largest h to begin with; doubled each time */
    SAMPLE = 32       /* slices whose lists are tried before all are */
};

struct fgi_sliced {
    int32_t n[2];        /* slices of either side */
    const double *by[2]; /* entry (x, y) at by[side][x * n[1 - side] + y] for x of that side */
    double *transposed;  /* by[1] */
    double *max[2];      /* per slice: its largest entry, -INFINITY if all are forbidden */
    double *top[2];      /* per slice: its largest entries, descending, filled up with -INFINITY */
    int32_t *at[2];      /* and where in the slice they are */
    double range;        /* of the finite entries */
    int side;            /* the set-up: which lists, and how far */
    int32_t slice;
};

struct fgi_sliced_scratch {
    int32_t *ranked; /* labels by descending h, bucket by bucket */
    int32_t *bucket;
    int32_t *open; /* slices that are not decided */
    double *rest;  /* per slice: the largest entry its list has not shown */
    double largest[FIRST_BATCH];
    int32_t begin[BUCKETS + 1];
    double peak[BUCKETS];
};

int64_t fgi_sliced_memory(int32_t rows, int32_t cols) {
    return 8 * (int64_t)rows * cols + (8 + 12 * TOP) * ((int64_t)rows + cols);
}

fgi_sliced *fgi_sliced_create(const double *values, int32_t rows, int32_t cols, double range) {
    const int64_t slices = (int64_t)rows + cols;
    fgi_sliced *s = fgi_calloc(1, sizeof *s);
    if (!s) return NULL;
    s->n[0] = rows;
    s->n[1] = cols;
    s->transposed = fgi_alloc((int64_t)rows * cols, sizeof(double));
    s->max[0] = fgi_alloc(slices, sizeof(double));
    s->top[0] = fgi_alloc(TOP * slices, sizeof(double));
    s->at[0] = fgi_alloc(TOP * slices, sizeof(int32_t));
    if (!s->transposed || !s->max[0] || !s->top[0] || !s->at[0]) {
        fgi_sliced_free(s);
        return NULL;
    }
    s->by[0] = values;
    s->by[1] = s->transposed;
    s->max[1] = s->max[0] + rows;
    s->top[1] = s->top[0] + TOP * (int64_t)rows;
    s->at[1] = s->at[0] + TOP * (int64_t)rows;
    s->range = range;
    return s;
}

void fgi_sliced_free(fgi_sliced *s) {
    if (!s) return;
    free(s->transposed);
    free(s->max[0]);
    free(s->top[0]);
    free(s->at[0]);
    free(s);
}

fgi_sliced_scratch *fgi_sliced_scratch_create(int32_t max_card) {
    fgi_sliced_scratch *s = fgi_calloc(1, sizeof *s);
    if (!s) return NULL;
    s->ranked = fgi_alloc(3 * (int64_t)max_card, sizeof(int32_t));
    s->rest = fgi_alloc(max_card, sizeof(double));
    if (!s->ranked || !s->rest) {
        fgi_sliced_scratch_free(s);
        return NULL;
    }
    s->bucket = s->ranked + max_card;
    s->open = s->ranked + 2 * (int64_t)max_card;
    return s;
}

void fgi_sliced_scratch_free(fgi_sliced_scratch *s) {
    if (!s) return;
    free(s->ranked);
    free(s->rest);
    free(s);
}

/* ---- set-up --------------------------------------------------------------------------------------------------- */

static void transpose_band(fgi_sliced *s, int32_t first, int32_t last) {
    const int64_t rows = s->n[0], cols = s->n[1];
    for (int64_t c0 = 0; c0 < cols; c0 += TILE)
        for (int64_t c = c0; c < c0 + TILE && c < cols; c++)
            for (int64_t r = first; r < last; r++) s->transposed[c * rows + r] = s->by[0][r * cols + c];
}

/* Enters value v at place j into a list that it belongs to; ties stay in the order of their places. */
static int32_t enter(double *top, int32_t *at, int32_t have, int32_t most, double v, int32_t j) {
    int32_t k = have < most ? have : most - 1;
    for (; k > 0 && top[k - 1] < v; k--) {
        top[k] = top[k - 1];
        at[k] = at[k - 1];
    }
    top[k] = v;
    at[k] = j;
    return have < most ? have + 1 : most;
}

/* The `most` largest of n values, descending; returns how many there are. -INFINITY is none. */
static int32_t list_largest(const double *values, int32_t n, int32_t most, double *top, int32_t *at) {
    double bar = -INFINITY;
    int32_t have = 0;
    for (int32_t from = 0; from < n; from += BLOCK) {
        const int32_t to = from + BLOCK < n ? from + BLOCK : n;
        int hit = 0;
        for (int32_t j = from; j < to; j++) hit |= values[j] > bar;
        if (!hit) continue; /* nearly always, after the first ones */
        for (int32_t j = from; j < to; j++) {
            if (!(values[j] > bar)) continue;
            have = enter(top, at, have, most, values[j], j);
            if (have == most) bar = top[most - 1];
        }
    }
    return have;
}

static void list_slice(fgi_sliced *s, int side, int32_t a) {
    const int32_t n = s->n[1 - side];
    double *top = s->top[side] + TOP * (int64_t)a;
    int32_t *at = s->at[side] + TOP * (int64_t)a, have = list_largest(s->by[side] + (int64_t)a * n, n, TOP, top, at);
    for (; have < TOP; have++) {
        top[have] = -INFINITY;
        at[have] = 0;
    }
    s->max[side][a] = top[0];
}

int fgi_sliced_step(fgi_sliced *s, int64_t entries) {
    for (int64_t done = 0; done < entries && s->side < 2;) {
        const int32_t last = s->slice + TILE < s->n[s->side] ? s->slice + TILE : s->n[s->side];
        if (s->side == 0) transpose_band(s, s->slice, last);
        for (int32_t a = s->slice; a < last; a++) list_slice(s, s->side, a);
        done += (int64_t)(last - s->slice) * s->n[1 - s->side];
        s->slice = last;
        if (last < s->n[s->side]) continue;
        s->side++;
        s->slice = 0;
    }
    return s->side == 2;
}

/* ---- a product ------------------------------------------------------------------------------------------------ */

typedef struct product {
    const fgi_sliced *s;
    const fgi_kernels *k;
    fgi_sliced_scratch *scratch;
    double w;
    int side; /* of h; the slices of the other side are the results */
    const double *h;
    double *out;
    int64_t touched;
} product;

/* Labels by descending h, up to the width of a bucket. Half of the buckets are for those that are no further below the
 * largest than the mean of those that matter; beyond the range of the table nothing does, where all entries are finite.
 */
static void rank_labels(const product *p) {
    fgi_sliced_scratch *x = p->scratch;
    const int32_t n = p->s->n[p->side];
    const double range = p->w * p->s->range;
    double top = -INFINITY, below = 0, near = 0;
    for (int32_t a = 0; a < n; a++) top = p->h[a] > top ? p->h[a] : top;
    for (int32_t a = 0; a < n; a++) {
        const double d = top - p->h[a];
        below += d <= range ? d : 0;
        near += d <= range ? 1 : 0;
    }
    const double span = below > 0 ? below / near : 1;
    memset(x->begin, 0, sizeof x->begin);
    for (int32_t k = 0; k < BUCKETS; k++) x->peak[k] = -INFINITY;
    for (int32_t a = 0; a < n; a++) {
        const double d = top - p->h[a], place = BUCKETS * (d / (d + span)); /* NaN if d is infinite: the last bucket */
        const int32_t k = place < BUCKETS - 1 ? (int32_t)place : BUCKETS - 1;
        x->bucket[a] = k;
        x->begin[k + 1]++;
        if (p->h[a] > x->peak[k]) x->peak[k] = p->h[a];
    }
    for (int32_t k = 0; k < BUCKETS; k++) x->begin[k + 1] += x->begin[k];
    for (int32_t a = 0; a < n; a++) x->ranked[x->begin[x->bucket[a]]++] = a;
    memmove(x->begin + 1, x->begin, BUCKETS * sizeof *x->begin); /* each has moved to where the next begins */
    x->begin[0] = 0;
}

/* The next labels by h: the first few are found by themselves, which mostly is enough. Returns how many have been seen
 * then; no h of the others is above *cap. */
static int32_t next_labels(const product *p, int32_t seen, double *cap) {
    fgi_sliced_scratch *x = p->scratch;
    const int32_t n = p->s->n[p->side];
    if (seen == 0) {
        const int32_t found = list_largest(p->h, n, FIRST_BATCH, x->largest, x->ranked);
        *cap = found == FIRST_BATCH ? x->largest[found - 1] : -INFINITY;
        return found;
    }
    if (seen == FIRST_BATCH) rank_labels(p);
    seen = seen < n / 2 ? seen + seen / 2 : n;
    *cap = seen < n ? x->peak[x->bucket[x->ranked[seen]]] : -INFINITY;
    return seen;
}

/* May slice y still get better, when the labels not seen have at most this h? Rounding is monotone: what is not above
 * the computed bound is not above it as computed, either. */
static int is_open(const product *p, int32_t y, double cap) { return p->w * p->scratch->rest[y] + cap > p->out[y]; }

/* Walks down the list of slice y; returns 1 if it is decided. */
static int walk(product *p, int32_t y, double cap) {
    const double *top = p->s->top[1 - p->side] + TOP * (int64_t)y;
    const int32_t *at = p->s->at[1 - p->side] + TOP * (int64_t)y;
    const int64_t seen = p->k->maxplus_list(top, at, TOP, p->w, p->h, cap, &p->out[y]);
    p->touched += seen;
    p->scratch->rest[y] = top[seen < TOP ? seen : TOP - 1];
    return !is_open(p, y, cap);
}

/* Keeps the open slices that stay open. */
static int32_t sift(const product *p, int32_t n_open, double cap) {
    int32_t *open = p->scratch->open, n = 0;
    for (int32_t k = 0; k < n_open; k++) {
        const int32_t y = open[k];
        open[n] = y;
        n += is_open(p, y, cap);
    }
    return n;
}

/* A few lists are tried; where they decide as many as not, all are. */
static int32_t try_lists(product *p, int32_t n_open, double cap, int *walked) {
    int32_t *open = p->scratch->open, decided = 0, tried = 0;
    const int32_t stride = n_open > SAMPLE ? n_open / SAMPLE : 1;
    for (int32_t k = 0; k < n_open; k += stride, tried++) decided += walk(p, open[k], cap);
    if (2 * decided >= tried) {
        if (stride > 1)
            for (int32_t k = 0; k < n_open; k++)
                if (k % stride) walk(p, open[k], cap);
        *walked = 1;
    }
    return sift(p, n_open, cap);
}

static int is_constant(const double *h, int32_t n) {
    int32_t k = 1;
    while (k < n && h[k] == h[0]) k++;
    return k >= n;
}

void fgi_sliced_maxplus(const fgi_sliced *s, const fgi_kernels *k, double w, int side, const double *h, double *out,
    fgi_sliced_scratch *scratch, int64_t *touched) {
    product p = {s, k, scratch, w, side, h, out, 0};
    const int32_t n_from = s->n[side], n_to = s->n[1 - side];
    int32_t n_open = n_to, seen = 0;
    int walked = 0;
    double cap = 0;
    if (is_constant(h, n_from)) { /* before the first messages have been sent */
        for (int32_t y = 0; y < n_to; y++) out[y] = (w * s->max[1 - side][y] + h[0]) + 0;
        *touched += n_from + n_to;
        return;
    }
    memcpy(scratch->rest, s->max[1 - side], (size_t)n_to * sizeof *out);
    for (int32_t y = 0; y < n_to; y++) {
        out[y] = -INFINITY;
        scratch->open[y] = y;
    }
    do {
        /* Open slices read whole, or half as many labels more as there have been: a few rounds of that. */
        if (seen > 0 && (int64_t)n_open * n_from <= 2 * (int64_t)seen * n_to) {
            for (int32_t j = 0; j < n_open; j++) {
                const int32_t y = scratch->open[j];
                k->maxplus_cols(s->by[1 - side] + (int64_t)y * n_from, 1, n_from, w, h, &out[y]);
            }
            p.touched += (int64_t)n_open * n_from;
            break;
        }
        const int32_t last = next_labels(&p, seen, &cap), first = seen == FIRST_BATCH ? 0 : seen;
        k->maxplus_some(s->by[side], n_to, scratch->ranked + first, last - first, w, h, out);
        p.touched += (int64_t)(last - first) * n_to;
        seen = last;
        n_open = sift(&p, n_open, cap);
        if (!walked && n_open > 0) n_open = try_lists(&p, n_open, cap, &walked);
    } while (n_open > 0 && cap > -INFINITY);
    for (int32_t y = 0; y < n_to; y++) out[y] += 0;
    *touched += p.touched + n_from + n_to;
}
