/* learn/viterbi.c - the decoder of chains and trees: max-sum from the leaves to the roots and back.
 *
 * Only maxima are computed on the way up, by the max-plus kernels; the argmax is recovered on the way down for the one
 * label that was chosen, which costs K instead of K^2. A large transition table is not read whole: with a bound on each
 * of its rows a message looks only at rows that can still raise one of its maxima, mostly a handful of thousands. */
#include <string.h>
#include "base/kernels.h"
#include "learn/learn.h"

/* Node of the elimination order at position p of example i. A chain is eliminated from its first token on. */
static inline fgi_forest_node node_at(const fgi_learner *L, int32_t i, int64_t p) {
    if (L->forest) return L->forest[L->data.token_begin[i] + p];
    int last = L->data.edges == FGI_EDGES_NONE || p + 1 == fgi_learn_tokens(L, i);
    return (fgi_forest_node){(int32_t)p, last ? -1 : (int32_t)p + 1, last ? -1 : (int32_t)p, 0};
}

/* The pairwise table of an edge, in full label coordinates; made in scratch->table when the edge has features. */
const double *fgi_learn_edge_table(
    const fgi_learner *L, const double *pairs, int64_t edge, fgi_learn_scratch *scratch) {
    const fgi_learn_data *d = &L->data;
    int64_t square = (int64_t)d->n_labels * d->n_labels;
    if (!d->edge_row) return pairs;
    memset(scratch->table, 0, (size_t)square * sizeof(double));
    for (int64_t j = d->edge_row[edge]; j < d->edge_row[edge + 1]; j++)
        fgi_kernels_get()->axpy(
            scratch->table, d->edge_value ? d->edge_value[j] : 1.0, pairs + d->edge_feature[j] * square, square);
    return scratch->table;
}

typedef struct edge_view { /* entry (a, b) of a child's label a and its parent's label b: T[a * row + b * column] */
    const double *T;
    int64_t row, column;
    const int32_t *from, *to; /* candidate lists; NULL: all */
    int32_t n_from, n_to;
} edge_view;

static edge_view view_edge(
    const fgi_learner *L, const double *pairs, int32_t i, fgi_forest_node node, fgi_learn_scratch *scratch) {
    const fgi_learn_data *d = &L->data;
    int64_t first = d->token_begin[i];
    const int64_t edge = fgi_learn_edge_begin(d, i) + node.edge;
    edge_view v = {fgi_learn_edge_table(L, pairs, edge, scratch), d->n_labels, 1, NULL, NULL, 0, 0};
    if (node.transposed) v.row = 1, v.column = d->n_labels;
    v.n_from = fgi_learn_allowed(L, first + node.token, &v.from);
    v.n_to = fgi_learn_allowed(L, first + node.parent, &v.to);
    return v;
}

static inline double entry(const edge_view *v, int32_t a, int32_t b) {
    return v->T[(v->from ? v->from[a] : a) * v->row + (v->to ? v->to[b] : b) * v->column];
}

void fgi_learn_bound_rows(fgi_learner *L, const double *pairs) {
    const int64_t k = L->data.n_labels;
    if (!L->row_bound) return;
    const fgi_kernels *kernels = fgi_kernels_get();
    for (int64_t a = 0; a < k; a++) L->row_bound[a] = kernels->max(pairs + a * k, k);
    L->bounded = 1;
    L->tracked = 0;
}

static inline int prunable(const fgi_learner *L, const edge_view *v) { return L->bounded && v->column == 1; }

/* scratch->best[b] = max over a of child[a] + T(a, b): row by row, best child first, until no row left can raise any
 * of them. */
static void send_pruned(const fgi_learner *L, const edge_view *v, const double *child, fgi_learn_scratch *scratch) {
    const fgi_kernels *kernels = fgi_kernels_get();
    const int32_t n = v->n_from;
    int32_t top = (int32_t)fgi_argmax_of(child, n), left = n;
    for (int32_t b = 0; b < n; b++) scratch->best[b] = -INFINITY, scratch->rows[b] = b;
    for (int32_t taken = 1; left; taken++) {
        const double low = kernels->raise(scratch->best, child[top], v->T + top * v->row, n);
        int32_t kept = 0, next = -1;
        scratch->touched += n;
        for (int32_t r = 0; r < left; r++) {
            int32_t a = scratch->rows[r];
            if (a == top || child[a] + L->row_bound[a] <= low) continue;
            if (next < 0 || child[a] > child[next]) next = a;
            scratch->rows[kept++] = a;
        }
        left = kept;
        top = next;
        if ((taken >= 8 && left > n / 2) || taken > n / 8)
            break; /* too little is skipped: the blocked kernel is faster */
    }
    if (!left) return;
    kernels->maxplus_rows(v->T, n, n, 1.0, child, scratch->best);
    scratch->touched += (int64_t)n * n;
}

/* parent[b] += max over a of child[a] + T(a, b). */
static void send(
    const fgi_learner *L, const edge_view *v, const double *child, double *parent, fgi_learn_scratch *scratch) {
    if (prunable(L, v)) {
        send_pruned(L, v, child, scratch);
        for (int32_t b = 0; b < v->n_to; b++) parent[b] += scratch->best[b];
        return;
    }
    scratch->touched += (int64_t)v->n_from * v->n_to;
    if (!v->from) {
        const fgi_kernels *k = fgi_kernels_get(); /* all labels: the table is square, its rows are contiguous */
        if (v->column == 1) k->maxplus_rows(v->T, v->n_from, v->n_to, 1.0, child, scratch->best);
        else k->maxplus_cols(v->T, v->n_to, v->n_from, 1.0, child, scratch->best);
        for (int32_t b = 0; b < v->n_to; b++) parent[b] += scratch->best[b];
        return;
    }
    for (int32_t b = 0; b < v->n_to; b++) scratch->best[b] = -INFINITY;
    for (int32_t a = 0; a < v->n_from; a++)
        for (int32_t b = 0; b < v->n_to; b++) {
            double x = child[a] + entry(v, a, b);
            scratch->best[b] = x > scratch->best[b] ? x : scratch->best[b];
        }
    for (int32_t b = 0; b < v->n_to; b++) parent[b] += scratch->best[b];
}

/* The label a of the child that goes with label b of its parent; ties go to the lowest. */
static int32_t best_child(const fgi_learner *L, const edge_view *v, const double *child, int32_t b) {
    const int pruned = prunable(L, v);
    int32_t best = pruned ? (int32_t)fgi_argmax_of(child, v->n_from) : 0;
    double most = child[best] + entry(v, best, b);
    for (int32_t a = 0; a < v->n_from; a++) {
        if (pruned && child[a] + L->row_bound[a] < most) continue;
        double x = child[a] + entry(v, a, b);
        if (x > most || (x == most && a < best)) most = x, best = a;
    }
    return best;
}

/* Leaves to roots, then back: the label of a child is recomputed for the one label its parent took. */
double fgi_learn_decode_forest(
    const fgi_learner *L, const double *pairs, int32_t i, fgi_learn_scratch *scratch, int32_t *answer) {
    int64_t tokens = fgi_learn_tokens(L, i), k = L->data.n_labels;
    double value = 0;
    for (int64_t p = 0; p < tokens; p++) {
        fgi_forest_node node = node_at(L, i, p);
        if (node.parent < 0) continue;
        edge_view v = view_edge(L, pairs, i, node, scratch);
        send(L, &v, scratch->scores + node.token * k, scratch->scores + node.parent * k, scratch);
    }
    for (int64_t p = tokens - 1; p >= 0; p--) {
        fgi_forest_node node = node_at(L, i, p);
        const double *own = scratch->scores + node.token * k;
        const int32_t *list;
        int32_t n = fgi_learn_allowed(L, L->data.token_begin[i] + node.token, &list), best = 0;
        if (node.parent < 0) {
            best = (int32_t)fgi_argmax_of(own, n);
            value += own[best];
        } else {
            edge_view v = view_edge(L, pairs, i, node, scratch);
            best = best_child(L, &v, own, answer[node.parent]);
        }
        answer[node.token] = best; /* position in the candidate list; turned into a label below */
    }
    if (L->data.choice_begin)
        for (int64_t t = 0; t < tokens; t++) {
            const int32_t *list;
            fgi_learn_allowed(L, L->data.token_begin[i] + t, &list);
            answer[t] = list[answer[t]];
        }
    return value;
}
