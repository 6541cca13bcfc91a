/* learn/gdmm/oracle.c - factorwise oracles of gdmm for learning.
 *
 *     unigram j:  grad(y) = <w_U, phi(y)> + loss_j(y) - rho sum_f m_jf(y)      inner products, all labels or one part
 *     edge    f:  grad(y) = theta_f(y) + rho (m_uf(y_u) + m_vf(y_v))           a table kept in order, or scanned
 * (docs/mathematics.md, section 5: messages enter with the sign opposite to MAP, and the true state is excluded.) */
#include "base/kernels.h"
#include "learn/gdmm/gdmm.h"

/* ---- unigrams -------------------------------------------------------------------------------------------------- */

/* The question about a token: its features, its loss (cost_z(y), or 1, times the token's weight) as the start. */
static fgi_features features_of(const fgi_learn_gdmm *g, int64_t token) {
    const fgi_learn_data *d = &g->L->data;
    const double weight = d->token_weight ? d->token_weight[token] : 1.0;
    return (fgi_features){.n = d->row_begin[token + 1] - d->row_begin[token],
        .index = d->feature + d->row_begin[token],
        .values = d->value ? d->value + d->row_begin[token] : NULL,
        .constant = weight,
        .start = d->cost && weight != 0.0 ? d->cost + (int64_t)d->truth[token] * d->n_labels : NULL,
        .start_weight = weight};
}

static double rho_messages(const fgi_learn_gdmm *g, const fgi_support *t, int32_t at) {
    double sum = 0;
    for (int32_t e = 0; e < t->degree; e++) sum += fgi_support_message(t, e, at);
    return g->rho * sum;
}

/* A label's gradient alone: for the support. The truth has no loss. */
static double score_one(const fgi_learn_gdmm *g, int64_t token, int32_t y, int32_t at) {
    fgi_features x = features_of(g, token);
    if (y == g->L->data.truth[token]) x.start = NULL, x.constant = 0.0;
    const double s = fgi_products_score(fgi_products_source(g->unigrams), &x, y);
    return s - (at >= 0 ? rho_messages(g, &g->tokens[token], at) : 0.0);
}

/* The labels a call looks at: all, or one part of them; candidate lists are looked at whole. */
static int32_t count_parts(const fgi_learn_gdmm *g) {
    const int32_t n = g->L->data.n_labels;
    return g->s.partitions < n ? g->s.partitions : n;
}

static int32_t draw_part(fgi_learn_gdmm *g) {
    const int32_t parts = count_parts(g);
    return parts > 1 && !g->L->data.choice_begin ? (int32_t)fgi_rng_below(&g->rng, parts) : 0;
}

/* Best wrong label of a part, or of the candidates; its gradient, and those of all that were looked at, are left in s.
 */
static int32_t best_label(const fgi_learn_gdmm *g, int64_t token, int32_t part, fgi_learn_gdmm_worker *w, double *s) {
    const fgi_support *t = &g->tokens[token];
    const int64_t z = g->L->data.truth[token];
    fgi_message m = {0, w->label, w->value};
    for (int32_t at = 0; at < t->n; at++) {
        if (t->label[at] == z) continue;
        w->label[m.n] = t->label[at];
        w->value[m.n++] = rho_messages(g, t, at);
    }
    fgi_features x = features_of(g, token);
    const int32_t *list, n = fgi_learn_allowed(g->L, token, &list);
    if (list) x.labels = list, x.n_labels = n;
    else x.part = part, x.parts = count_parts(g);
    x.scores = s;
    const fgi_oracle_query q = {.source = fgi_products_source(g->unigrams),
        .messages = &m,
        .excluded = &z,
        .n_excluded = 1,
        .hint = -1,
        .path = FGI_BY_SCAN, /* the gradients themselves are wanted, too */
        .x = &x};
    fgi_argmax best;
    if (fgi_oracle_answer(&q, w->oracle, &best)) {
        w->starved = 1;
        return -1;
    }
    s[z] = score_one(g, token, (int32_t)z, fgi_support_find(t, (int32_t)z));
    return (int32_t)best.state;
}

static int32_t part_begin(const fgi_learn_gdmm *g, int32_t part) {
    return (int32_t)((int64_t)g->L->data.n_labels * part / count_parts(g));
}

static void count_unary(fgi_learn_gdmm *g, int64_t token, int32_t part) {
    const int32_t *list, n = fgi_learn_allowed(g->L, token, &list);
    const int64_t labels = list ? n : part_begin(g, part + 1) - part_begin(g, part);
    g->unary_calls++;
    g->unary_touched += labels;
    g->unary_products += labels * (g->L->data.row_begin[token + 1] - g->L->data.row_begin[token]);
}

int32_t fgi_learn_gdmm_unary_argmax(fgi_learn_gdmm *g, int64_t token, double *value) {
    const fgi_support *t = &g->tokens[token];
    const int32_t part = draw_part(g), begin = part_begin(g, part), end = part_begin(g, part + 1);
    fgi_products_borrow(g->unigrams, g->L->w);
    const int32_t best = best_label(g, token, part, &g->workers[0], g->scores);
    count_unary(g, token, part);
    for (int32_t at = 0; at < t->n && !g->L->data.choice_begin; at++)
        if (t->label[at] < begin || t->label[at] >= end)
            g->scores[t->label[at]] = score_one(g, token, t->label[at], at);
    *value = best < 0 ? -INFINITY : g->scores[best];
    return best;
}

/* ---- unigrams of a batch, by all threads ------------------------------------------------------------------------- */

typedef struct proposal_job {
    const fgi_learn_gdmm *g;
    const int32_t *examples;
} proposal_job;

static void propose(void *context, int64_t begin, int64_t end, int worker) {
    const proposal_job *job = context;
    const fgi_learn_gdmm *g = job->g;
    const int64_t *first = g->L->data.token_begin;
    for (int64_t k = begin; k < end; k++)
        for (int64_t t = first[job->examples[k]]; t < first[job->examples[k] + 1]; t++)
            g->proposal[t] = best_label(g, t, g->proposal[t], &g->workers[worker], g->L->scratch[worker].scores);
}

void fgi_learn_gdmm_propose(fgi_learn_gdmm *g, const int32_t *examples, int64_t n) {
    const int64_t *first = g->L->data.token_begin;
    for (int64_t k = 0; k < n; k++)
        for (int64_t t = first[examples[k]]; t < first[examples[k] + 1]; t++) {
            g->proposal[t] = draw_part(g); /* drawn here: the order of the draws must not depend on threads */
            count_unary(g, t, g->proposal[t]);
        }
    fgi_products_borrow(g->unigrams, g->L->w);
    proposal_job job = {g, examples};
    fgi_pool_run(g->L->pool, n, 1, propose, &job);
}

int32_t fgi_learn_gdmm_unary_proposed(fgi_learn_gdmm *g, int64_t token, double *value) {
    const fgi_support *t = &g->tokens[token];
    const int32_t best = g->proposal[token];
    fgi_products_borrow(g->unigrams, g->L->w);
    for (int32_t at = 0; at < t->n; at++) g->scores[t->label[at]] = score_one(g, token, t->label[at], at);
    if (best >= 0) g->scores[best] = score_one(g, token, best, fgi_support_find(t, best));
    *value = best < 0 ? -INFINITY : g->scores[best];
    return best;
}

/* ---- edges ----------------------------------------------------------------------------------------------------- */

/* The one feature of an edge, if it has just one with a positive value; else -1. */
static int64_t single_feature(const fgi_learn_data *d, int64_t edge, double *x) {
    *x = 1.0;
    if (!d->edge_row) return 0;
    int64_t b = d->edge_row[edge];
    if (d->edge_row[edge + 1] - b != 1) return -1;
    if (d->edge_value) *x = d->edge_value[b];
    return *x > 0 ? d->edge_feature[b] : -1;
}

double fgi_learn_gdmm_pair_weight(const fgi_learn_gdmm *g, int64_t edge, int32_t a, int32_t b) {
    const fgi_learn_data *d = &g->L->data;
    const int64_t k = d->n_labels, at = (int64_t)a * k + b;
    if (!d->edge_row) return g->L->w[g->L->unary + at];
    double sum = 0;
    for (int64_t j = d->edge_row[edge]; j < d->edge_row[edge + 1]; j++)
        sum += (d->edge_value ? d->edge_value[j] : 1.0) * g->L->w[g->L->unary + d->edge_feature[j] * k * k + at];
    return sum;
}

double fgi_learn_gdmm_pair_gradient(const fgi_learn_gdmm *g, int32_t i, int64_t edge, int32_t a, int32_t b) {
    const fgi_edge_block *e = &g->edges[edge];
    const fgi_support *u = &g->tokens[g->L->data.token_begin[i] + e->u],
                      *v = &g->tokens[g->L->data.token_begin[i] + e->v];
    int32_t p = fgi_support_find(u, a), q = fgi_support_find(v, b);
    double m = (p >= 0 ? fgi_support_message(u, e->ku, p) : 0.0) + (q >= 0 ? fgi_support_message(v, e->kv, q) : 0.0);
    return fgi_learn_gdmm_pair_weight(g, edge, a, b) + g->rho * m;
}

double fgi_learn_gdmm_edge_norm(const fgi_learn_gdmm *g, int64_t edge) {
    const fgi_learn_data *d = &g->L->data;
    return d->edge_row ? fgi_learn_square(d->edge_value, d->edge_row[edge], d->edge_row[edge + 1]) : 1.0;
}

fgi_rc fgi_learn_gdmm_add_weight(fgi_learn_gdmm *g, int64_t at, double x) {
    const int64_t k = g->L->data.n_labels, pair = at - g->L->unary;
    const double *w = g->L->w + at;
    g->squared_norm += x * (2 * *w + x);
    fgi_learn_shift(g->L, at, x);
    if (pair < 0 || !g->tables[pair / (k * k)]) return FGI_OK;
    const int32_t a = (int32_t)(pair / k % k), b = (int32_t)(pair % k);
    return fgi_learn_gdmm_set_entry(g->tables[pair / (k * k)], a, b, *w);
}

fgi_rc fgi_learn_gdmm_add_pair(fgi_learn_gdmm *g, int64_t edge, int32_t a, int32_t b, double x) {
    const fgi_learn_data *d = &g->L->data;
    const int64_t k = d->n_labels, at = g->L->unary + a * k + b;
    if (!d->edge_row) return fgi_learn_gdmm_add_weight(g, at, x);
    fgi_rc rc = FGI_OK;
    for (int64_t j = d->edge_row[edge]; !rc && j < d->edge_row[edge + 1]; j++)
        rc = fgi_learn_gdmm_add_weight(g, at + d->edge_feature[j] * k * k, d->edge_value ? x * d->edge_value[j] : x);
    return rc;
}

/* Messages of one side as the oracle wants them: -rho m, non-zero ones only, divided by the edge's feature value. */
static fgi_message collect(fgi_learn_gdmm *g, const fgi_support *t, int32_t k, int side, double scale) {
    fgi_message m = {0, g->message_label[side], g->message_value[side]};
    for (int32_t at = 0; at < t->n; at++) {
        double x = -g->rho * fgi_support_message(t, k, at) / scale;
        if (x == 0.0) continue;
        g->message_label[side][m.n] = t->label[at];
        g->message_value[side][m.n++] = x;
    }
    return m;
}

/* A table at hand, as a source that is scanned. */
static fgi_rc ask_dense(fgi_learn_gdmm *g, const double *values, int32_t rows, int32_t cols, const fgi_message *m,
    int64_t excluded, fgi_argmax *out) {
    const fgi_table_source table = {.base = {&fgi_table_ops},
        .view = {.kind = FGI_DENSE, .arity = 2, .values = values, .weight = 1.0, .rows = rows, .cols = cols}};
    const fgi_oracle_query q = {
        .source = &table.base, .messages = m, .excluded = &excluded, .n_excluded = 1, .hint = -1};
    return fgi_oracle_answer(&q, g->workers[0].oracle, out);
}

/* Labels, ascending, become their places in a list of candidates, which has them all. */
static void to_places(int32_t *labels, int32_t n, const int32_t *list) {
    for (int32_t k = 0, at = 0; k < n; labels[k++] = at)
        while (list[at] < labels[k]) at++;
}

/* Lists of candidates: the table between them is gathered, and asked about. */
static fgi_rc ask_candidates(
    fgi_learn_gdmm *g, int64_t edge, int64_t u, int64_t v, const fgi_message *m, fgi_argmax *out) {
    const int32_t *from, *to, k = g->L->data.n_labels;
    const int32_t n = fgi_learn_allowed(g->L, u, &from), l = fgi_learn_allowed(g->L, v, &to);
    if ((int64_t)n * l > g->table_capacity) {
        free(g->table);
        g->table_capacity = 0;
        if (!(g->table = fgi_alloc((int64_t)n * l, sizeof(double)))) return FGI_NO_MEMORY;
        g->table_capacity = (int64_t)n * l;
    }
    for (int32_t a = 0; a < n; a++)
        for (int32_t b = 0; b < l; b++)
            g->table[(int64_t)a * l + b] = fgi_learn_gdmm_pair_weight(g, edge, from[a], to[b]);
    int32_t hidden[2] = {g->L->data.truth[u], g->L->data.truth[v]};
    to_places(&hidden[0], 1, from);
    to_places(&hidden[1], 1, to);
    to_places(g->message_label[0], m[0].n, from);
    to_places(g->message_label[1], m[1].n, to);
    const int64_t excluded = (int64_t)hidden[0] * l + hidden[1];
    fgi_rc rc = ask_dense(g, g->table, n, l, m, excluded, out);
    if (out->state >= 0) out->state = (int64_t)from[out->state / l] * k + to[out->state % l];
    return rc;
}

/* An edge with several features: its table is added up. */
static double *sum_tables(fgi_learn_gdmm *g, int64_t edge) {
    const fgi_learn_data *d = &g->L->data;
    const int64_t square = (int64_t)d->n_labels * d->n_labels;
    for (int64_t k = 0; k < square; k++) g->table[k] = 0;
    for (int64_t j = d->edge_row[edge]; j < d->edge_row[edge + 1]; j++)
        fgi_kernels_get()->axpy(g->table, d->edge_value ? d->edge_value[j] : 1.0,
            g->L->w + g->L->unary + d->edge_feature[j] * square, square);
    return g->table;
}

fgi_rc fgi_learn_gdmm_pair_argmax(fgi_learn_gdmm *g, int32_t i, int64_t edge, fgi_argmax *out) {
    const fgi_learn_data *d = &g->L->data;
    const fgi_edge_block *e = &g->edges[edge];
    const int64_t first = d->token_begin[i], k = d->n_labels;
    const int64_t excluded = d->truth[first + e->u] * k + d->truth[first + e->v];
    double x;
    const int64_t feature = single_feature(d, edge, &x);
    const int kept = feature >= 0 && g->tables[feature];
    const fgi_message m[2] = {collect(g, &g->tokens[first + e->u], e->ku, 0, kept ? x : 1.0),
        collect(g, &g->tokens[first + e->v], e->kv, 1, kept ? x : 1.0)};
    const int64_t before = fgi_oracle_scratch_work(g->workers[0].oracle).touched;
    fgi_rc rc;
    g->pair_calls++;
    if (d->choice_begin) rc = ask_candidates(g, edge, first + e->u, first + e->v, m, out);
    else if (!kept) {
        const double *table = d->edge_row ? sum_tables(g, edge) : g->L->w + g->L->unary;
        rc = ask_dense(g, table, d->n_labels, d->n_labels, m, excluded, out);
    } else {
        const fgi_oracle_query q = {.source = fgi_updatable_source(g->tables[feature]),
            .messages = m,
            .excluded = &excluded,
            .n_excluded = 1,
            .hint = e->n ? e->state[0] * k + e->state[1] : -1};
        rc = fgi_oracle_answer(&q, g->workers[0].oracle, out);
        out->value *= x;
    }
    g->pair_touched += fgi_oracle_scratch_work(g->workers[0].oracle).touched - before;
    return rc;
}
