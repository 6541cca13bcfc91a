/* learn/crf/touched_set.c - derivatives by the coordinates that a value was told of.
 *
 * A token of feature f touches all nodes that f has coordinates at, so their probabilities are known when its sums are:
 * the residuals of f's tokens are kept side by side, a row of its coordinates each, and a derivative is the sum of a
 * column. A feature that all tokens have touches nothing; what the tokens touch is added up over all of them, unit by
 * unit, and its derivatives follow as from lists. */
#include <string.h>
#include "base/array.h"
#include "learn/crf/touched.h"

int crf_set_prepare(fgi_crf *c) {
    crf_touched *t = &c->touched;
    const crf_pattern *p = &c->support;
    if (!fgi_grow(&t->slot, &t->slots, p->n_features + 1, sizeof(int64_t))) return 0;
    int64_t n = 0;
    t->any_common = 0;
    for (int64_t k = 0; k < p->n_features; k++) {
        const int64_t f = p->features[k];
        t->slot[k] = n;
        if (t->common[f]) t->any_common = 1;
        else n += (c->column_begin[f + 1] - c->column_begin[f]) * (p->begin[k + 1] - p->begin[k]);
    }
    if (!fgi_grow(&t->residual, &t->residuals, n, sizeof(double))) return 0;
    if (!t->any_common) return 1;
    const int64_t width = c->columns + 1;
    if (!t->sums) t->sums = fgi_alloc(c->n_units * width, sizeof *t->sums);
    if (!t->unit_ratio) t->unit_ratio = fgi_alloc(c->n_units, sizeof(double));
    if (!t->sums || !t->unit_ratio) return 0;
    memset(t->sums, 0, (size_t)(c->n_units * width) * sizeof *t->sums);
    memset(t->unit_ratio, 0, (size_t)c->n_units * sizeof(double));
    return 1;
}

/* What the token touches, for the features that all tokens have. */
static void add_common(const fgi_crf *c, int64_t unit, const crf_token_sums *token, const crf_touching *k) {
    crf_touch *sums = c->touched.sums + unit * (c->columns + 1);
    const double weight = crf_weight_of(c, token->token), scale = token->z > 0 ? weight / token->z : 0.0;
    for (int64_t n = c->n_inner + c->data.truth[token->token]; n < c->columns; n = crf_parent_of(c, n))
        sums[n].more -= weight;
    if (!(token->z > 0)) {
        for (int64_t n = 0; n < c->columns; n++) sums[n].more += k->power[n];
        return;
    }
    c->touched.unit_ratio[unit] += scale;
    for (int64_t i = 0; i < k->inner; i++) {
        const crf_node *node = &k->node[k->list[i]];
        const double above = scale * k->node[node->parent].times;
        sums[k->list[i]].step += scale * node->times - above;
        sums[k->list[i]].more += scale * node->below - node->mass * above;
    }
    for (int64_t i = k->leaf; i < c->columns; i++) {
        const crf_node *node = &k->node[k->list[i]];
        const double step = scale * (node->times - k->node[node->parent].times);
        sums[k->list[i]].step += step;
        sums[k->list[i]].more += node->mass * step;
    }
}

void crf_set_store(fgi_crf *c, int64_t unit, const crf_token_sums *token, crf_touching *k) {
    const fgi_learn_data *d = &c->data;
    const crf_touched *t = &c->touched;
    const crf_pattern *p = &c->support;
    const double weight = crf_weight_of(c, token->token), scale = token->z > 0 ? weight / token->z : 1.0;
    if (t->any_common) add_common(c, unit, token, k);
    for (int64_t n = c->n_inner + d->truth[token->token]; n < c->columns; n = crf_parent_of(c, n)) {
        k->node[n].below -= token->z; /* the probability of what is not touched is not looked at */
        if (!(token->z > 0)) k->power[n] -= weight;
    }
    for (int64_t j = d->row_begin[token->token]; j < d->row_begin[token->token + 1]; j++) {
        const int64_t f = d->feature[j], at = t->common[f] ? -1 : p->at[f];
        if (at < 0) continue;
        const int64_t n = p->begin[at + 1] - p->begin[at];
        const int32_t *columns = p->columns + p->begin[at];
        double *row = t->residual + t->slot[at] + t->rank[j] * n;
        if (token->z > 0)
            for (int64_t a = 0; a < n; a++) row[a] = scale * k->node[columns[a]].below;
        else
            for (int64_t a = 0; a < n; a++) row[a] = k->power[columns[a]];
    }
}

static void add_parts(void *context, int64_t begin, int64_t end, int worker) {
    const crf_job *j = context;
    const fgi_crf *c = j->c;
    const crf_pattern *p = &c->support;
    (void)worker;
    for (int64_t i = crf_part_begin(j, begin); i < crf_part_begin(j, end); i++) {
        const int64_t f = p->features[i], n = p->begin[i + 1] - p->begin[i];
        const double *row = c->touched.residual + c->touched.slot[i];
        if (c->touched.common[f]) continue;
        for (int64_t e = c->column_begin[f]; e < c->column_begin[f + 1]; e++, row += n)
            c->kernels->axpy(n, c->column_value ? c->column_value[e] : 1.0, row, j->gradient + p->begin[i]);
    }
}

/* The sums of all units, in the first one's. */
static double join_units(const fgi_crf *c) {
    crf_touch *sums = c->touched.sums;
    const int64_t width = c->columns + 1;
    double ratio = c->touched.unit_ratio[0];
    for (int64_t u = 1; u < c->n_units; u++) {
        const crf_touch *more = sums + u * width;
        for (int64_t n = 0; n < width; n++) sums[n].step += more[n].step, sums[n].more += more[n].more;
        ratio += c->touched.unit_ratio[u];
    }
    /* a second gradient at this point finds the same */
    memset(sums + width, 0, (size_t)((c->n_units - 1) * width) * sizeof *sums);
    c->touched.unit_ratio[0] = ratio;
    for (int64_t u = 1; u < c->n_units; u++) c->touched.unit_ratio[u] = 0;
    return ratio;
}

static void add_common_features(const crf_job *j) {
    const fgi_crf *c = j->c;
    const crf_pattern *p = &c->support;
    const double ratio = join_units(c);
    for (int64_t i = 0; i < p->n_features; i++) {
        const int64_t f = p->features[i];
        if (!c->touched.common[f]) continue;
        const double x = c->column_value ? c->column_value[c->column_begin[f]] : 1.0;
        for (int64_t a = p->begin[i]; a < p->begin[i + 1]; a++) {
            const int64_t node = p->columns[a];
            double above = ratio;
            for (int64_t q = crf_parent_of(c, node); q < c->columns; q = crf_parent_of(c, q))
                above += c->touched.sums[q].step;
            j->gradient[a] = x * (c->touched.mass[node] * above + c->touched.sums[node].more);
        }
    }
}

static int is_the_set(const crf_job *j) {
    const crf_pattern *a = &j->c->support, *b = &j->c->wanted;
    const size_t n = (size_t)a->n_features;
    return j->set && !j->square && a->n_features == b->n_features &&
        (n == 0 ||
            (memcmp(a->features, b->features, n * sizeof *a->features) == 0 &&
                memcmp(a->begin, b->begin, (n + 1) * sizeof *a->begin) == 0 &&
                memcmp(a->columns, b->columns, (size_t)a->begin[n] * sizeof *a->columns) == 0));
}

int crf_set_derivatives(crf_job *j) {
    if (!is_the_set(j)) return 0;
    fgi_pool_run(j->c->pool, j->parts, 1, add_parts, j);
    if (j->c->touched.any_common) add_common_features(j);
    return 1;
}
