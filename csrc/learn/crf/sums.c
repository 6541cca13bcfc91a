/* learn/crf/sums.c - the sums of one example: forests exactly, pseudo-likelihood token by token, taxonomies down and up
 * their tree. */
#include <string.h>
#include "learn/crf/crf.h"

void crf_load_tables(fgi_crf *c, const double *w) {
    const int64_t k = c->data.n_labels;
    crf_prune_load(c, w);
    c->kinds.now = 0;
    for (int64_t g = 0; c->table && g < (c->tables == CRF_ONE_TABLE ? 1 : c->data.n_edge_features); g++)
        fgi_sum_table_load(&c->table[g], w + c->unary + g * k * k, c->kernels);
}

static const fgi_sum_table *table_of(void *context, int64_t edge) {
    crf_worker *k = context;
    const fgi_crf *c = k->crf;
    const fgi_learn_data *d = &c->data;
    if (c->tables == CRF_ONE_TABLE) return &c->table[0];
    int64_t first;
    fgi_learn_count_edges(&c->data, k->example, &first);
    if (c->tables == CRF_TYPED_TABLES) return &c->table[d->edge_feature[d->edge_row[first + edge]]];
    const int64_t square = (int64_t)d->n_labels * d->n_labels;
    memset(k->table_scores, 0, (size_t)square * sizeof(double));
    for (int64_t j = d->edge_row[first + edge]; j < d->edge_row[first + edge + 1]; j++)
        c->kernels->axpy(square, d->edge_value ? d->edge_value[j] : 1.0, k->w + c->unary + d->edge_feature[j] * square,
            k->table_scores);
    fgi_sum_table_load(&k->made, k->table_scores, c->kernels);
    return &k->made;
}

static fgi_sum_entries entries_of(void *context, int64_t edge) {
    const crf_worker *k = context;
    int64_t first;
    fgi_learn_count_edges(&k->crf->data, k->example, &first);
    return crf_kinds_entries(k->crf, first + edge);
}

static fgi_sum_forest forest_of(crf_worker *k, int64_t i, const int32_t *labels) {
    const fgi_crf *c = k->crf;
    const int64_t first = c->data.token_begin[i];
    k->example = i;
    return (fgi_sum_forest){c->data.token_begin[i + 1] - first, c->columns, c->cell ? c->cell + first : NULL,
        c->cell ? c->data.choice + c->cell[first] : labels, labels ? c->prune.kept + first : NULL,
        c->forest ? c->forest + first : NULL, NULL, c->children,
        c->tables == CRF_NO_EDGES || c->pseudo ? NULL : table_of, k, c->tables == CRF_ONE_TABLE, c->kernels,
        c->kinds.now ? entries_of : NULL};
}

/* Scores of pairs with neighbours that have their true labels. */
static void add_neighbours(const fgi_crf *c, const double *w, int64_t i, double *cells) {
    const fgi_learn_data *d = &c->data;
    int64_t first, u, v;
    const int64_t edges = fgi_learn_count_edges(&c->data, i, &first), token = d->token_begin[i],
                  base = crf_cell(c, token);
    for (int64_t e = 0; e < edges; e++) {
        fgi_learn_ends(&c->data, first, e, &u, &v);
        for (int side = 0; side < 2; side++) {
            const int64_t t = token + (side ? v : u), other = d->truth[token + (side ? u : v)];
            const int64_t n = crf_cell(c, t + 1) - crf_cell(c, t);
            for (int64_t a = 0; a < n; a++) {
                const int64_t y = c->cell ? d->choice[c->cell[t] + a] : a;
                cells[crf_cell(c, t) - base + a] +=
                    side ? crf_pair_score(c, w, first + e, other, y) : crf_pair_score(c, w, first + e, y, other);
            }
        }
    }
}

static double truth_score(const fgi_crf *c, const double *w, int64_t i, const double *cells) {
    const fgi_learn_data *d = &c->data;
    const int64_t token = d->token_begin[i], base = crf_cell(c, token);
    fgi_sum total = {0};
    for (int64_t t = token; t < d->token_begin[i + 1]; t++)
        fgi_sum_add(&total, cells[crf_cell(c, t) - base + crf_truth_cell(c, t)]);
    if (c->pseudo) return fgi_sum_value(&total);
    int64_t first, u, v;
    const int64_t edges = fgi_learn_count_edges(&c->data, i, &first);
    for (int64_t e = 0; e < edges; e++) {
        fgi_learn_ends(&c->data, first, e, &u, &v);
        fgi_sum_add(&total, crf_pair_score(c, w, first + e, d->truth[token + u], d->truth[token + v]));
    }
    return fgi_sum_value(&total);
}

/* A taxonomy: path sums downward, then the leaves are a token without edges. */
static double taxonomy_up(crf_worker *k, int64_t i, double *cells, double *truth) {
    fgi_crf *c = k->crf;
    const int64_t tokens = c->data.token_begin[i + 1] - c->data.token_begin[i];
    for (int64_t t = 0; t < tokens; t++)
        for (int64_t n = 0; n < c->columns; n++)
            if (c->parent[n] >= 0) cells[t * c->columns + n] += cells[t * c->columns + c->parent[n]];
    *truth = truth_score(c, k->w, i, cells);
    fgi_sum total = {0};
    c->logs[i] = 0;
    for (int64_t t = 0; t < tokens; t++) {
        const fgi_sum_forest f = {
            1, c->data.n_labels, NULL, NULL, NULL, NULL, NULL, 1, NULL, NULL, 1, c->kernels, NULL};
        double *leaves = cells + t * c->columns + c->n_inner;
        int logs;
        fgi_sum_add(&total, fgi_forest_sum_up(&f, leaves, NULL, &logs));
        fgi_forest_sum_down(&f, leaves, NULL, NULL, logs, NULL, NULL); /* from logs, if it was one */
    }
    k->touched += tokens * c->columns;
    return fgi_sum_value(&total);
}

double crf_example_up(crf_worker *k, int64_t i, double *cells, int32_t *labels, double *messages, double *truth) {
    fgi_crf *c = k->crf;
    if (c->n_inner) return taxonomy_up(k, i, cells, truth);
    if (c->pseudo) add_neighbours(c, k->w, i, cells);
    *truth = truth_score(c, k->w, i, cells);
    if (labels) crf_prune_example(k, i, cells, labels);
    fgi_sum_forest f = forest_of(k, i, labels);
    int64_t *message = c->message; /* places of all messages; those of this example begin at its first token's */
    if (message) {
        f.message = message + c->data.token_begin[i];
        messages -= f.message[0];
    }
    int logs;
    const double log_z = fgi_forest_sum_up(&f, cells, messages, &logs);
    c->logs[i] = (uint8_t)logs;
    k->touched += crf_cell(c, c->data.token_begin[i + 1]) - crf_cell(c, c->data.token_begin[i]);
    return log_z;
}

/* ---- down ------------------------------------------------------------------------------------------------------ */

typedef struct pair_sums {
    crf_worker *worker;
    double *scaled, *direct, weight;
} pair_sums;

/* Adds x * (P(a, b) of the edge) to the table t; the exponentials are left out where they are the same for all edges.
 * */
static void add_pairs(const pair_sums *sums, const fgi_sum_edge *e, double *t, double x, int leave_exp) {
    const fgi_sum_kernels *k = sums->worker->crf->kernels;
    const int64_t n = e->table->n;
    const fgi_crf *c = sums->worker->crf;
    if (!e->from && !e->to && c->few_pairs && (leave_exp || c->packed_pairs)) { /* those asked for, and no others */
        const double *left = e->transposed ? e->q : e->own, *right = e->transposed ? e->own : e->q;
        for (int64_t i = 0; i < c->n_few; i++) {
            const int64_t at = c->few_pairs[i] - c->unary, a = at / n;
            const double y = right[at - a * n];
            t[c->packed_pairs ? i : at] += x * (e->logs ? exp(left[a] + e->table->score[at] + y) : left[a] * y);
        }
        return;
    }
    if (!e->from && !e->to && leave_exp) {
        double *row = sums->worker->row;
        const double *q = e->transposed ? e->own : e->q;
        if (x != 1.0) {
            for (int64_t b = 0; b < n; b++) row[b] = x * q[b];
            q = row;
        }
        k->outer(t, n, n, n, e->transposed ? e->q : e->own, q);
        return;
    }
    for (int64_t a = 0; a < e->n_from; a++) {
        const int64_t from = e->from ? e->from[a] : a;
        for (int64_t b = 0; b < e->n_to; b++) {
            const int64_t to = e->to ? e->to[b] : b, at = e->transposed ? to * n + from : from * n + to;
            double p = e->logs ? exp(e->own[a] + e->table->score[at] + e->q[b]) : e->own[a] * e->q[b];
            if (!e->logs && !leave_exp) p *= e->table->exp[at];
            t[at] += x * p;
        }
    }
}

static void visit_edge(void *context, const fgi_sum_edge *e) {
    const pair_sums *sums = context;
    const fgi_crf *c = sums->worker->crf;
    const fgi_learn_data *d = &c->data;
    const int64_t square = e->table->n * e->table->n;
    sums->worker->touched += e->few ? e->entries.n : 2 * e->n_from * e->n_to;
    if (sums->worker->pairs) { /* the marginals themselves */
        int64_t from;
        fgi_learn_count_edges(&c->data, sums->worker->example, &from);
        add_pairs(sums, e, sums->worker->pairs + (from + e->edge) * square, 1.0, 0);
        return;
    }
    if (c->kinds.adding != CRF_BY_PAIRS) {
        int64_t from;
        fgi_learn_count_edges(&c->data, sums->worker->example, &from);
        crf_kinds_add(c, e, from + e->edge, sums->weight, sums->scaled, sums->direct);
        return;
    }
    const int shared = c->tables != CRF_MADE_TABLES && !e->logs;
    double *into = shared ? sums->scaled : sums->direct;
    if (c->tables == CRF_ONE_TABLE) {
        add_pairs(sums, e, into, sums->weight, shared);
        return;
    }
    int64_t first;
    fgi_learn_count_edges(&c->data, sums->worker->example, &first);
    for (int64_t j = d->edge_row[first + e->edge]; j < d->edge_row[first + e->edge + 1]; j++)
        add_pairs(sums, e, into + d->edge_feature[j] * square, sums->weight * (d->edge_value ? d->edge_value[j] : 1.0),
            shared);
}

/* direct[g][a][b] += x * value of g on the edge. */
static void add_state(const fgi_crf *c, int64_t edge, int64_t a, int64_t b, double x, double *direct) {
    const fgi_learn_data *d = &c->data;
    const int64_t k = d->n_labels;
    if (!d->edge_row) direct[a * k + b] += x;
    else
        for (int64_t j = d->edge_row[edge]; j < d->edge_row[edge + 1]; j++)
            direct[d->edge_feature[j] * k * k + a * k + b] += x * (d->edge_value ? d->edge_value[j] : 1.0);
}

/* Pseudo-likelihood: residuals of each token, beside its neighbours' true labels. */
static void neighbour_pairs(const fgi_crf *c, int64_t i, const double *cells, double *direct) {
    const fgi_learn_data *d = &c->data;
    int64_t first, u, v;
    const int64_t edges = fgi_learn_count_edges(&c->data, i, &first), token = d->token_begin[i],
                  base = crf_cell(c, token);
    for (int64_t e = 0; e < edges; e++) {
        fgi_learn_ends(&c->data, first, e, &u, &v);
        for (int side = 0; side < 2; side++) {
            const int64_t t = token + (side ? v : u), other = d->truth[token + (side ? u : v)];
            for (int64_t a = 0; a < crf_cell(c, t + 1) - crf_cell(c, t); a++) {
                const int64_t y = c->cell ? d->choice[c->cell[t] + a] : a;
                add_state(c, first + e, side ? other : y, side ? y : other, cells[crf_cell(c, t) - base + a], direct);
            }
        }
    }
}

/* Cells become weight * (marginal - truth), pair sums weight * marginals of the pairs (pseudo: residuals). */
void crf_example_down(crf_worker *k, int64_t i, double *cells, const int32_t *labels, double *messages,
    double *pair_scaled, double *pair_direct) {
    fgi_crf *c = k->crf;
    const fgi_learn_data *d = &c->data;
    const int64_t token = d->token_begin[i], base = crf_cell(c, token), end = d->token_begin[i + 1];
    const double weight = c->weight ? c->weight[i] : 1.0;
    if (!c->n_inner) {
        fgi_sum_forest f = forest_of(k, i, labels);
        pair_sums sums = {k, pair_scaled, pair_direct, weight};
        if (c->message) {
            f.message = c->message + token;
            messages -= f.message[0];
        }
        fgi_forest_sum_down(&f, cells, messages, k->row, c->logs[i],
            c->pseudo || (!pair_scaled && !k->pairs) ? NULL : visit_edge, &sums);
    }
    if (labels) crf_prune_spread(c, i, cells, labels);
    if (!pair_direct) return; /* marginals only */
    for (int64_t t = token; t < end; t++) {
        double *own = cells + crf_cell(c, t) - base;
        own[crf_truth_cell(c, t)] -= 1.0;
        if (weight != 1.0)
            for (int64_t a = 0; a < crf_cell(c, t + 1) - crf_cell(c, t); a++) own[a] *= weight;
        for (int64_t n = c->n_inner - 1; n >= 0; n--) own[n] = 0;
        for (int64_t n = c->n_inner ? c->columns - 1 : -1; n >= 0; n--)
            if (c->parent[n] >= 0) own[c->parent[n]] += own[n];
    }
    if (c->pseudo) neighbour_pairs(c, i, cells, pair_direct);
}

void crf_example_truth(const fgi_crf *c, int64_t i, double x, double *table) {
    const fgi_learn_data *d = &c->data;
    int64_t first, u, v;
    for (int64_t e = 0, edges = fgi_learn_count_edges(&c->data, i, &first); e < edges; e++) {
        fgi_learn_ends(&c->data, first, e, &u, &v);
        add_state(c, first + e, d->truth[d->token_begin[i] + u], d->truth[d->token_begin[i] + v], x, table);
    }
}

void crf_count_truth(fgi_crf *c) {
    for (int64_t i = 0; i < c->data.n_examples; i++)
        crf_example_truth(c, i, c->weight ? c->weight[i] : 1.0, c->pair_truth);
}
