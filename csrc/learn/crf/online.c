/* learn/crf/online.c - stochastic gradients with the cumulative l1 penalty (Tsuruoka, Tsujii, Ananiadou 2009): a
 * baseline.
 *
 * One example is a step. Only the weights of its features move; each of them has then received as much penalty as if it
 * had been penalised in every step before. */
#include <string.h>
#include "learn/crf/crf.h"

/* w has received q of penalty, u is due. */
static inline void penalise(double *w, double *q, double u) {
    const double before = *w;
    if (before > 0) *w = fgi_larger(0.0, before - (u + *q));
    else if (before < 0) *w = fgi_smaller(0.0, before + (u - *q));
    *q += *w - before;
}

static void score_rows(const fgi_crf *c, const double *w, int64_t from, int64_t to, double *cells) {
    const fgi_learn_data *d = &c->data;
    memset(cells, 0, (size_t)(crf_cell(c, to) - crf_cell(c, from)) * sizeof(double));
    for (int64_t t = from; t < to; t++)
        for (int64_t j = d->row_begin[t]; j < d->row_begin[t + 1]; j++) {
            const double x = d->value ? d->value[j] : 1.0, *row = w + d->feature[j] * c->columns;
            double *own = cells + crf_cell(c, t) - crf_cell(c, from);
            if (!c->cell) c->kernels->axpy(c->columns, x, row, own);
            else
                for (int64_t a = 0; a < c->cell[t + 1] - c->cell[t]; a++) own[a] += x * row[d->choice[c->cell[t] + a]];
        }
}

static void move_rows(const fgi_crf *c, double *w, double *q, double rate, double due, int64_t from, int64_t to,
    const double *cells, int penalty) {
    const fgi_learn_data *d = &c->data;
    for (int64_t t = from; t < to; t++)
        for (int64_t j = d->row_begin[t]; j < d->row_begin[t + 1]; j++) {
            const double x = d->value ? d->value[j] : 1.0, *own = cells + crf_cell(c, t) - crf_cell(c, from);
            const int64_t n = crf_cell(c, t + 1) - crf_cell(c, t), first = d->feature[j] * c->columns;
            for (int64_t a = 0; a < n; a++) {
                const int64_t at = first + (c->cell ? d->choice[c->cell[t] + a] : a);
                if (penalty) penalise(&w[at], &q[at], due);
                else w[at] -= rate * x * own[a];
            }
        }
}

fgi_rc fgi_crf_sgd(fgi_crf *c, double *w, double *penalty, double *due, const int32_t *examples, int64_t m,
    int64_t *next, double rate, double l1, double deadline, fgi_error *err) {
    const fgi_learn_data *d = &c->data;
    const int64_t pairs = crf_pair_size(c), square = (int64_t)d->n_labels * d->n_labels;
    crf_worker *k = &c->workers[0];
    int64_t longest = 0, messages = 0;
    if (c->pseudo || c->n_inner)
        return fgi_fail(err, FGI_UNSUPPORTED, -1, "stochastic steps are for chains and forests");
    for (int64_t i = 0; i < d->n_examples; i++) {
        const int64_t from = d->token_begin[i], to = d->token_begin[i + 1];
        if (crf_cell(c, to) - crf_cell(c, from) > longest) longest = crf_cell(c, to) - crf_cell(c, from);
        if (c->messages && crf_message(c, to) - crf_message(c, from) > messages)
            messages = crf_message(c, to) - crf_message(c, from);
    }
    double *cells = fgi_alloc(longest, sizeof(double)), *up = fgi_alloc(messages, sizeof(double));
    fgi_rc rc = cells && up && crf_clear_pairs(c, pairs) ? FGI_OK : fgi_no_memory(err);
    c->kinds.adding = CRF_BY_PAIRS;
    fgi_meter meter = {FGI_LEARN_LOOK, 0, deadline};
    while (!rc && *next < m) {
        const int64_t i = examples[*next];
        if (i < 0 || i >= d->n_examples) {
            rc = fgi_fail(err, FGI_BAD_ARGUMENT, *next, "there is no example %lld", (long long)i);
            break;
        }
        const int64_t from = d->token_begin[i], to = d->token_begin[i + 1];
        double truth;
        k->w = w;
        score_rows(c, w, from, to, cells);
        crf_load_tables(c, w);
        crf_example_up(k, i, cells, NULL, up, &truth);
        memset(c->pair_scaled, 0, (size_t)pairs * sizeof(double));
        memset(c->pair_direct, 0, (size_t)pairs * sizeof(double));
        crf_example_down(k, i, cells, NULL, up, c->pair_scaled, c->pair_direct);
        crf_example_truth(c, i, c->weight ? -c->weight[i] : -1.0, c->pair_direct);
        *due += rate * l1 / (double)d->n_examples;
        move_rows(c, w, penalty, rate, *due, from, to, cells, 0);
        move_rows(c, w, penalty, rate, *due, from, to, cells, 1);
        for (int64_t at = 0; at < pairs && to - from > 1; at++) {
            double g = c->pair_direct[at];
            if (c->table) g += c->pair_scaled[at] * c->table[at / square].exp[at % square];
            w[c->unary + at] -= rate * g;
            penalise(&w[c->unary + at], &penalty[c->unary + at], *due);
        }
        ++*next;
        if (fgi_meter_spend(&meter, 1)) break;
    }
    free(cells), free(up);
    c->went_down = 0;
    return rc;
}
