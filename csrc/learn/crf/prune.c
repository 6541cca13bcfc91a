/* learn/crf/prune.c - labels that cannot matter are left out of an example's sums, and what that loses is bounded.
 *
 * Whatever the labels of its neighbours are, the label a of a token has at most the probability
 *
 *     exp(s(a) + U(a)) / sum over b of exp(s(b) + L(b)),
 *
 * where U and L are the most and the least that the tables on its edges can add. These bounds, summed over all labels
 * that all tokens leave out, bound the mass of the answers that are left out: log Z is larger than what is summed by at
 * most -log(1 - that). A look costs as much as the token's exponentials, a sum saved is quadratic in the labels. */
#include <string.h>
#include "learn/crf/crf.h"

#define BUCKETS 64 /* bounds of 1/2, 1/4, ... and below */

int crf_prune_create(fgi_crf *c, double mass) {
    crf_prune *p = &c->prune;
    const fgi_learn_data *d = &c->data;
    p->mass = mass;
    if (!(mass > 0)) return 1;
    for (int side = 0; side < 2; side++) {
        p->most[side] = fgi_calloc(c->columns, sizeof(double));
        p->least[side] = fgi_calloc(c->columns, sizeof(double));
        p->degree[side] = fgi_calloc(c->tokens, sizeof(int32_t));
        if (!p->most[side] || !p->least[side] || !p->degree[side]) return 0;
    }
    p->kept = fgi_calloc(c->tokens, sizeof(int32_t));
    p->lost = fgi_calloc(d->n_examples, sizeof(double));
    p->labels = fgi_alloc(c->span_room, sizeof(int32_t));
    if (!p->kept || !p->lost || !p->labels) return 0;
    for (int64_t i = 0; i < d->n_examples; i++) {
        int64_t first, u, v;
        for (int64_t e = 0, edges = fgi_learn_count_edges(&c->data, i, &first); e < edges; e++) {
            fgi_learn_ends(&c->data, first, e, &u, &v);
            p->degree[0][d->token_begin[i] + u]++;
            p->degree[1][d->token_begin[i] + v]++;
        }
    }
    return 1;
}

void crf_prune_free(fgi_crf *c) {
    crf_prune *p = &c->prune;
    for (int side = 0; side < 2; side++) free(p->most[side]), free(p->least[side]), free(p->degree[side]);
    free(p->kept), free(p->lost), free(p->labels);
}

void crf_prune_load(fgi_crf *c, const double *w) {
    crf_prune *p = &c->prune;
    const int64_t k = c->data.n_labels;
    if (!(p->mass > 0) || c->tables == CRF_NO_EDGES) return;
    for (int side = 0; side < 2; side++)
        for (int64_t a = 0; a < k; a++) p->most[side][a] = -INFINITY, p->least[side][a] = INFINITY;
    const double *row = w + c->unary;
    for (int64_t a = 0; a < k; a++, row += k) {
        double most = -INFINITY, least = INFINITY;
        for (int64_t b = 0; b < k; b++) {
            most = fgi_larger(most, row[b]), least = fgi_smaller(least, row[b]);
            p->most[1][b] = fgi_larger(p->most[1][b], row[b]);
            p->least[1][b] = fgi_smaller(p->least[1][b], row[b]);
        }
        p->most[0][a] = most, p->least[0][a] = least;
    }
}

static inline int bucket_of(double p) { /* the bucket k has p from 2^-k on; p <= 1 */
    uint64_t bits;
    memcpy(&bits, &p, sizeof bits);
    const int64_t k = 1023 - (int64_t)(bits >> 52);
    return k < BUCKETS - 1 ? (int)k : BUCKETS - 1;
}

/* bound[a] of the token with the scores own. */
static void bounds(const fgi_crf *c, int64_t token, const double *own, double *low, double *bound) {
    const crf_prune *p = &c->prune;
    const int64_t k = c->data.n_labels;
    const double out = p->degree[0][token], in = p->degree[1][token];
    for (int64_t a = 0; a < k; a++) low[a] = own[a] + (out * p->least[0][a] + in * p->least[1][a]);
    const double top = c->kernels->max(low, k);
    c->kernels->exp(low, k, top, low);
    const double whole = top + log(c->kernels->sum(low, k));
    for (int64_t a = 0; a < k; a++) bound[a] = fgi_smaller(own[a] + (out * p->most[0][a] + in * p->most[1][a]), whole);
    c->kernels->exp(bound, k, whole, bound);
}

void crf_prune_example(crf_worker *w, int64_t i, double *cells, int32_t *labels) {
    fgi_crf *c = w->crf;
    const fgi_learn_data *d = &c->data;
    const int64_t k = d->n_labels, from = d->token_begin[i], to = d->token_begin[i + 1];
    const double share = c->prune.mass / (double)(to - from);
    fgi_sum lost = {0};
    for (int64_t t = from; t < to; t++, cells += k, labels += k) {
        double sums[BUCKETS] = {0}, rest = 0, *bound = w->bound;
        bounds(c, t, cells, w->row, bound);
        for (int64_t a = 0; a < k; a++) sums[bucket_of(bound[a])] += bound[a];
        int cut = BUCKETS;
        while (cut > 0 && rest + sums[cut - 1] <= share) rest += sums[--cut];
        int32_t n = 0;
        for (int64_t a = 0; a < k; a++)
            if (bucket_of(bound[a]) < cut || a == d->truth[t]) {
                cells[n] = cells[a];
                labels[n++] = (int32_t)a;
            } else fgi_sum_add(&lost, bound[a]);
        c->prune.kept[t] = n;
    }
    c->prune.lost[i] = fgi_sum_value(&lost);
}

void crf_prune_spread(const fgi_crf *c, int64_t i, double *cells, const int32_t *labels) {
    const int64_t k = c->data.n_labels;
    for (int64_t t = c->data.token_begin[i]; t < c->data.token_begin[i + 1]; t++, cells += k, labels += k) {
        int64_t end = k; /* from the last: a place is never before the value that goes there */
        for (int64_t n = c->prune.kept[t] - 1; n >= 0; n--) {
            const double x = cells[n];
            const int64_t at = labels[n];
            memset(cells + at + 1, 0, (size_t)(end - at - 1) * sizeof(double));
            cells[at] = x;
            end = at;
        }
        memset(cells, 0, (size_t)end * sizeof(double));
    }
}

void crf_prune_info(const fgi_crf *c, fgi_crf_info *info) {
    const crf_prune *p = &c->prune;
    info->summed = c->cells;
    info->lost = info->slack = 0;
    if (!(p->mass > 0)) return;
    info->summed = 0;
    fgi_sum slack = {0};
    for (int64_t t = 0; t < c->tokens; t++) info->summed += p->kept[t];
    for (int64_t i = 0; i < c->data.n_examples; i++) {
        info->lost = fgi_larger(info->lost, p->lost[i]);
        fgi_sum_add(&slack, (c->weight ? c->weight[i] : 1.0) * -log1p(-p->lost[i]));
    }
    info->slack = fgi_sum_value(&slack);
}
