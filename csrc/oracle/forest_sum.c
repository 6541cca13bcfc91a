/* oracle/forest_sum.c - see oracle/forest_sum.h. */
#include "oracle/forest_sum.h"
#include <math.h>
#include <string.h>

/* Scores of a token, and of a table, may differ by so much in all before sums leave the range of doubles (about e^-708
 * to e^709): a normalised own value is at least e^-SAFE, and so are messages and beliefs. */
#define SAFE 600.0

/* A table that is zero but for one entry in so many is summed by those: a sum over all labels, and what the others add
 * (Sokolovska, Lavergne, Cappe and Yvon, Efficient learning of sparse conditional random fields, 2010). An entry here
 * and there costs as much as some eight in a row. */
#define SPARSE 16
#define WIDE 64 /* labels from which that is worth it */
/* A sum over one row is made from the sum of everything by what differs. If less than one part in so many is left of
 * it, rounding may matter, and it is summed anew from its own terms. */
#define LOST_DIGITS 1e3

int fgi_sum_table_create(fgi_sum_table *t, int64_t n) {
    int64_t cells;
    *t = (fgi_sum_table){.n = n};
    if (!fgi_mul(n, n, &cells)) return 0;
    t->exp = fgi_alloc(cells, sizeof(double));
    t->transposed = fgi_alloc(cells, sizeof(double));
    if (n < WIDE) return t->exp && t->transposed;
    t->begin = fgi_alloc(n + 1, sizeof(int64_t));
    t->column = fgi_alloc(cells / SPARSE, sizeof(int32_t));
    t->excess = fgi_alloc(cells / SPARSE, sizeof(double));
    return t->exp && t->transposed && t->begin && t->column && t->excess;
}

void fgi_sum_table_free(fgi_sum_table *t) {
    free(t->exp), free(t->transposed), free(t->begin), free(t->column), free(t->excess);
}

/* Lists what is not zero, if that is little. */
static void list_entries(fgi_sum_table *t) {
    const int64_t n = t->n, room = n * n / SPARSE;
    const double zero = exp(-t->top);
    int64_t count = 0;
    t->few = 0;
    if (!t->begin || !(t->range < SAFE)) return;
    for (int64_t a = 0; a < n; a++) {
        t->begin[a] = count;
        for (int64_t b = 0; b < n; b++) {
            if (t->score[a * n + b] == 0.0) continue;
            if (count == room) return;
            t->column[count] = (int32_t)b;
            t->excess[count++] = t->exp[a * n + b] - zero;
        }
    }
    t->begin[n] = count;
    t->few = 1;
}

void fgi_sum_table_load(fgi_sum_table *t, const double *score, const fgi_sum_kernels *k) {
    const int64_t n = t->n, tile = 32;
    double low = INFINITY;
    t->score = score;
    t->top = k->max(score, n * n);
    for (int64_t i = 0; i < n * n; i++) low = score[i] < low ? score[i] : low;
    t->range = t->top > -INFINITY ? t->top - low : INFINITY;
    k->exp(score, n * n, t->top > -INFINITY ? t->top : 0.0, t->exp);
    for (int64_t i = 0; i < n; i += tile) /* tile by tile: both sides stay in the cache */
        for (int64_t j = 0; j < n; j += tile)
            for (int64_t a = i; a < n && a < i + tile; a++)
                for (int64_t b = j; b < n && b < j + tile; b++) t->transposed[b * n + a] = t->exp[a * n + b];
    list_entries(t);
}

/* ---- places ---------------------------------------------------------------------------------------------------- */

static inline int64_t place(const fgi_sum_forest *f, int64_t t) {
    return f->cell ? f->cell[t] - f->cell[0] : t * f->n_labels;
}
static inline int64_t count(const fgi_sum_forest *f, int64_t t) {
    if (f->kept) return f->kept[t];
    return f->cell ? f->cell[t + 1] - f->cell[t] : f->n_labels;
}
static inline const int32_t *labels(const fgi_sum_forest *f, int64_t t) {
    if (!f->label || (f->kept && f->kept[t] == f->n_labels)) return NULL; /* all of them */
    return f->label + place(f, t);
}

static inline fgi_forest_node node_at(const fgi_sum_forest *f, int64_t p) {
    if (f->node) return f->node[p];
    const int last = !f->table || p + 1 == f->tokens;
    return (fgi_forest_node){(int32_t)p, last ? -1 : (int32_t)p + 1, last ? -1 : (int32_t)p, 0};
}

static inline int64_t message_place(const fgi_sum_forest *f, fgi_forest_node node) {
    if (f->message) return f->message[node.token];
    return f->node ? node.token * f->n_labels : place(f, node.parent);
}

static fgi_sum_edge edge_of(const fgi_sum_forest *f, fgi_forest_node node, int logs) {
    fgi_sum_edge e = {node.edge, f->table(f->context, node.edge), count(f, node.token), count(f, node.parent),
        labels(f, node.token), labels(f, node.parent), NULL, NULL, node.transposed, logs, f->entries && !logs, {0}};
    if (e.few) e.entries = f->entries(f->context, node.edge);
    return e;
}

/* ---- sums over one edge ---------------------------------------------------------------------------------------- */

/* out[b] = sum over a of x[a] t[a][b], by what is not zero in the scores. t is exp, or with `across` transposed. */
static void weigh_few(const fgi_sum_table *table, const fgi_sum_kernels *k, int across, const double *x, double *out) {
    const int64_t n = table->n;
    const double all = exp(-table->top) * k->sum(x, n);
    if (across)
        for (int64_t a = 0; a < n; a++) {
            double more = 0;
            for (int64_t i = table->begin[a]; i < table->begin[a + 1]; i++)
                more += x[table->column[i]] * table->excess[i];
            out[a] = all + more;
        }
    else {
        for (int64_t b = 0; b < n; b++) out[b] = all;
        for (int64_t a = 0; a < n; a++)
            for (int64_t i = table->begin[a]; i < table->begin[a + 1]; i++)
                out[table->column[i]] += x[a] * table->excess[i];
    }
    for (int64_t b = 0; b < n; b++) {
        if (!(LOST_DIGITS * out[b] < all)) continue;
        const double *terms =
            (across ? table->exp : table->transposed) + b * n; /* those of out[b], one after the other */
        out[b] = 0;
        for (int64_t a = 0; a < n; a++) out[b] += x[a] * terms[a];
    }
}

/* What `weigh` does, between two lists of labels, by the scores that are not zero there. */
static void weigh_entries(const fgi_sum_edge *e, const fgi_sum_kernels *k, int back, const double *x, double *out) {
    const fgi_sum_entries *entries = &e->entries;
    const int32_t *from = back ? e->to : e->from, *to = back ? e->from : e->to;
    const int64_t n = e->table->n, n_from = back ? e->n_to : e->n_from, n_to = back ? e->n_from : e->n_to;
    const int rows = (e->transposed != 0) == (back != 0);
    const int32_t *in = rows ? entries->row : entries->column, *into = rows ? entries->column : entries->row;
    const double all = entries->zero * k->sum(x, n_from);
    for (int64_t b = 0; b < n_to; b++) out[b] = all;
    for (int64_t i = 0; i < entries->n; i++) out[into[i]] += x[in[i]] * entries->excess[i];
    for (int64_t b = 0; b < n_to; b++) {
        if (!(LOST_DIGITS * out[b] < all)) continue;
        const double *score = e->table->score;
        out[b] = 0;
        for (int64_t a = 0; a < n_from; a++)
            out[b] += x[a] * exp(score[rows ? from[a] * n + to[b] : to[b] * n + from[a]] - e->table->top);
    }
}

/* out[b] = sum over a of x[a] exp(T(a, b) - top), or with `back` out[a] = sum over b of exp(T(a, b) - top) x[b]. */
static void weigh(const fgi_sum_edge *e, const fgi_sum_kernels *k, int back, const double *x, double *out) {
    const int64_t n = e->table->n;
    const double *t = (e->transposed != 0) == (back != 0) ? e->table->exp : e->table->transposed;
    const int32_t *from = back ? e->to : e->from, *to = back ? e->from : e->to;
    const int64_t n_from = back ? e->n_to : e->n_from, n_to = back ? e->n_from : e->n_to;
    if (e->few) {
        weigh_entries(e, k, back, x, out);
        return;
    }
    if (!from && !to && e->table->few) {
        weigh_few(e->table, k, t != e->table->exp, x, out);
        return;
    }
    if (!from && !to) {
        k->rows(t, n, n_from, n_to, x, out);
        return;
    }
    for (int64_t b = 0; b < n_to; b++) out[b] = 0;
    for (int64_t a = 0; a < n_from; a++) {
        const double *row = t + (from ? from[a] : a) * n;
        if (x[a] == 0.0) continue;
        for (int64_t b = 0; b < n_to; b++) out[b] += x[a] * row[to ? to[b] : b];
    }
}

/* The same in logs: out[b] = log sum over a of exp(x[a] + T(a, b)). */
static void weigh_logs(const fgi_sum_edge *e, int back, const double *x, double *out) {
    const int64_t n = e->table->n, n_from = back ? e->n_to : e->n_from, n_to = back ? e->n_from : e->n_to;
    const int rows = (e->transposed != 0) == (back != 0); /* x runs over rows of the table */
    const int32_t *from = back ? e->to : e->from, *to = back ? e->from : e->to;
    for (int64_t b = 0; b < n_to; b++) {
        const int64_t to_label = to ? to[b] : b;
        double top = -INFINITY, sum = 0;
        for (int pass = 0; pass < 2; pass++)
            for (int64_t a = 0; a < n_from; a++) {
                const int64_t at = from ? from[a] : a;
                const double v = x[a] + e->table->score[rows ? at * n + to_label : to_label * n + at];
                if (!pass) top = v > top ? v : top;
                else if (top > -INFINITY) sum += exp(v - top);
            }
        out[b] = top > -INFINITY ? top + log(sum) : -INFINITY;
    }
}

/* ---- up -------------------------------------------------------------------------------------------------------- */

static double up_logs(const fgi_sum_forest *f, double *cells, double *messages) {
    fgi_sum total = {0};
    for (int64_t p = 0; p < f->tokens; p++) {
        const fgi_forest_node node = node_at(f, p);
        double *own = cells + place(f, node.token);
        const int64_t n = count(f, node.token);
        const double top = f->kernels->max(own, n);
        if (top == -INFINITY) return -INFINITY;
        if (node.parent < 0) {
            double sum = 0;
            for (int64_t a = 0; a < n; a++) sum += exp(own[a] - top);
            fgi_sum_add(&total, top + log(sum));
            for (int64_t a = 0; a < n; a++) own[a] -= top + log(sum);
            continue;
        }
        for (int64_t a = 0; a < n; a++)
            own[a] -= top; /* small numbers on long chains: nothing is lost to cancellation */
        fgi_sum_add(&total, top);
        const fgi_sum_edge e = edge_of(f, node, 1);
        double *m = messages + message_place(f, node), *up = cells + place(f, node.parent);
        weigh_logs(&e, 0, own, m);
        for (int64_t b = 0; b < e.n_to; b++) up[b] += m[b];
    }
    return fgi_sum_value(&total);
}

/* Largest difference of scores inside a token; INFINITY if one is forbidden. */
static double widest_token(const fgi_sum_forest *f, const double *cells) {
    double range = 0;
    for (int64_t t = 0; t < f->tokens; t++) {
        const double *own = cells + place(f, t);
        const int64_t n = count(f, t);
        const double low = f->kernels->min(own, n), top = f->kernels->max(own, n);
        if (!(top - low <= range)) range = top - low;
    }
    return range;
}

double fgi_forest_sum_up(const fgi_sum_forest *f, double *cells, double *messages, int *logs) {
    double widest = 0;
    const double range = widest_token(f, cells);
    for (int64_t p = 0; f->table && p < f->tokens; p++) {
        const fgi_forest_node node = node_at(f, p);
        if (node.parent < 0) continue;
        const fgi_sum_table *t = f->table(f->context, node.edge);
        if (!(t->range <= widest)) widest = t->range;
        if (f->one_table) break;
    }
    *logs = !(range + (f->node ? f->children : 1) * widest < SAFE);
    if (*logs) return up_logs(f, cells, messages);
    fgi_sum total = {0};
    double product = 1; /* product of the scales whose logs are still to be taken */
    for (int64_t t = 0; t < f->tokens; t++) {
        double *own = cells + place(f, t);
        const int64_t n = count(f, t);
        const double top = f->kernels->max(own, n);
        fgi_sum_add(&total, top);
        f->kernels->exp(own, n, top, own);
    }
    for (int64_t p = 0; p < f->tokens; p++) {
        const fgi_forest_node node = node_at(f, p);
        double *own = cells + place(f, node.token);
        const int64_t n = count(f, node.token);
        const double sum = f->kernels->sum(own, n), scale = 1.0 / sum;
        for (int64_t a = 0; a < n; a++) own[a] *= scale;
        if (product * sum > 1e-250 && product * sum < 1e250) product *= sum;
        else {
            fgi_sum_add(&total, log(product));
            product = sum;
        }
        if (node.parent < 0) continue;
        const fgi_sum_edge e = edge_of(f, node, 0);
        double *m = messages + message_place(f, node), *up = cells + place(f, node.parent);
        weigh(&e, f->kernels, 0, own, m);
        fgi_sum_add(&total, e.table->top);
        if (f->node) { /* many messages to one token: each is taken relative to its largest entry */
            const double most = f->kernels->max(m, e.n_to);
            fgi_sum_add(&total, log(most));
            for (int64_t b = 0; b < e.n_to; b++) up[b] *= m[b] / most;
        } else
            for (int64_t b = 0; b < e.n_to; b++) up[b] *= m[b];
    }
    fgi_sum_add(&total, log(product));
    return fgi_sum_value(&total);
}

/* ---- down ------------------------------------------------------------------------------------------------------ */

void fgi_forest_sum_down(const fgi_sum_forest *f, double *cells, double *messages, double *scratch, int logs,
    fgi_sum_visit visit, void *context) {
    for (int64_t p = f->tokens - 1; p >= 0; p--) {
        const fgi_forest_node node = node_at(f, p);
        double *own = cells + place(f, node.token);
        if (node.parent < 0) continue; /* normalised on the way up */
        fgi_sum_edge e = edge_of(f, node, logs);
        double *q = messages + message_place(f, node);
        const double *belief = cells + place(f, node.parent);
        if (logs)
            for (int64_t b = 0; b < e.n_to; b++) q[b] = belief[b] == -INFINITY ? -INFINITY : belief[b] - q[b];
        else
            for (int64_t b = 0; b < e.n_to; b++) q[b] = belief[b] / q[b];
        e.own = own;
        e.q = q;
        if (visit) visit(context, &e);
        if (logs) {
            weigh_logs(&e, 1, q, scratch);
            for (int64_t a = 0; a < e.n_from; a++) own[a] = own[a] == -INFINITY ? -INFINITY : own[a] + scratch[a];
        } else {
            weigh(&e, f->kernels, 1, q, scratch);
            for (int64_t a = 0; a < e.n_from; a++) own[a] *= scratch[a];
        }
    }
    if (!logs) return;
    for (int64_t t = 0; t < f->tokens; t++)
        for (int64_t a = 0; a < count(f, t); a++) cells[place(f, t) + a] = exp(cells[place(f, t) + a]);
}
