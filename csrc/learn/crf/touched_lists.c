/* learn/crf/touched_lists.c - derivatives from lists of the nodes that each token touches; the formulas are in
 * learn/crf/touched.c. */
#include <string.h>
#include "base/array.h"
#include "learn/crf/touched.h"

/* Beside what was touched, the path of the truth is taken away. Returns the end of the list. */
static crf_touch *put_truth(const fgi_crf *c, int64_t token, crf_touch *to) {
    for (int64_t n = c->n_inner + c->data.truth[token]; n < c->columns; n = crf_parent_of(c, n))
        *to++ = (crf_touch){(int32_t)n, 0.0, -crf_weight_of(c, token)};
    return to;
}

static crf_touch *put_touched(const fgi_crf *c, int64_t token, const crf_touching *k, double z, crf_touch *to) {
    const double scale = crf_weight_of(c, token) / z;
    c->touched.ratio[token] = scale;
    for (int64_t i = 0; i < k->inner; i++) {
        const crf_node *node = &k->node[k->list[i]];
        const double above = scale * k->node[node->parent].times;
        *to++ = (crf_touch){k->list[i], scale * node->times - above, scale * node->below - node->mass * above};
    }
    for (int64_t i = k->leaf; i < c->columns; i++) {
        const crf_node *node = &k->node[k->list[i]];
        const double step = scale * (node->times - k->node[node->parent].times);
        *to++ = (crf_touch){k->list[i], step, node->mass * step};
    }
    return put_truth(c, token, to);
}

static crf_touch *put_all(const fgi_crf *c, int64_t token, const crf_touching *k, crf_touch *to) {
    for (int64_t n = c->columns - 1; n >= 0; n--) *to++ = (crf_touch){(int32_t)n, 0.0, k->power[n]};
    c->touched.ratio[token] = 0;
    return put_truth(c, token, to);
}

int crf_lists_store(fgi_crf *c, int64_t unit, const crf_token_sums *token, const crf_touching *k, int64_t *used) {
    crf_touched *t = &c->touched;
    /* all nodes and all of a path are the most there can be */
    if (!fgi_grow(&t->list[unit], &t->room[unit], *used + 2 * c->columns, sizeof(crf_touch))) return 0;
    crf_touch *begin = t->list[unit] + *used;
    crf_touch *end =
        token->z > 0 ? put_touched(c, token->token, k, token->z, begin) : put_all(c, token->token, k, begin);
    t->begin[token->token] = *used;
    t->count[token->token] = (int32_t)(end - begin);
    *used += end - begin;
    return 1;
}

/* The touched nodes of a feature's tokens, added up; the sum of ratios. */
static double add_tokens(const fgi_crf *c, int64_t f, crf_touching *k, int64_t *unit) {
    const crf_touched *t = &c->touched;
    double ratio = 0;
    for (int64_t e = c->column_begin[f], u = 0; e < c->column_begin[f + 1]; e++) {
        const int64_t token = c->column_token[e];
        const double x = c->column_value ? c->column_value[e] : 1.0;
        while (token >= unit[u + 1]) u++;
        const crf_touch *at = t->list[u] + t->begin[token], *end = at + t->count[token];
        ratio += x * t->ratio[token];
        for (; at < end; at++) {
            k->sums[at->node].step += x * at->step;
            k->sums[at->node].more += x * at->more;
        }
    }
    return ratio;
}

/* Curvatures: sums of x^2 P (1 - P). P = more + mass * level of the parent, so P^2 has a part that is the square of the
 * mass times what adds up along the path, and the rest. Returns the root's part of the squares. */
static double add_squares(const fgi_crf *c, int64_t f, crf_touching *k, int64_t *unit, double *plain) {
    const crf_touched *t = &c->touched;
    double ratio = 0, square = 0;
    for (int64_t e = c->column_begin[f], u = 0; e < c->column_begin[f + 1]; e++) {
        const int64_t token = c->column_token[e];
        const double value = c->column_value ? c->column_value[e] : 1.0, x = value * value;
        const double weight = crf_weight_of(c, token), root = t->ratio[token];
        while (token >= unit[u + 1]) u++;
        const crf_touch *at = t->list[u] + t->begin[token], *end = at + t->count[token];
        for (int64_t n = c->n_inner + c->data.truth[token]; n < c->columns; n = crf_parent_of(c, n)) end--;
        if (!(weight > 0)) continue;
        ratio += x * root;
        square += x * root * root / weight;
        k->level[c->columns] = root;
        for (; at < end; at++) {
            const double above = root > 0 ? k->level[crf_parent_of(c, at->node)] : 0.0, level = above + at->step;
            const double part = t->mass[at->node] * above, p = part + at->more;
            k->level[at->node] = level;
            k->sums[at->node].step += x * at->step;
            k->squares[at->node] += x * (level * level - above * above) / weight;
            k->sums[at->node].more += x * (at->more - (p * p - part * part) / weight);
        }
    }
    *plain = ratio;
    return square;
}

static void square_columns(
    const fgi_crf *c, crf_touching *k, double ratio, double square, const int32_t *columns, int64_t n, double *out) {
    for (int64_t i = 0; i < n; i++) {
        const int64_t node = columns ? columns[i] : i;
        double above = ratio, twice = square;
        for (int64_t p = crf_parent_of(c, node); p < c->columns; p = crf_parent_of(c, p))
            above += k->sums[p].step, twice += k->squares[p];
        const double mass = c->touched.mass[node];
        out[i] = fgi_larger(0.0, mass * above - mass * mass * twice + k->sums[node].more);
    }
    memset(k->squares, 0, (size_t)(c->columns + 1) * sizeof(double));
}

static void some_columns(
    const fgi_crf *c, const crf_touching *k, double ratio, const int32_t *columns, int64_t n, double *out) {
    for (int64_t i = 0; i < n; i++) {
        double above = ratio;
        for (int64_t p = crf_parent_of(c, columns[i]); p < c->columns; p = crf_parent_of(c, p))
            above += k->sums[p].step;
        out[i] = c->touched.mass[columns[i]] * above + k->sums[columns[i]].more;
    }
}

static void all_columns(const fgi_crf *c, crf_touching *k, double ratio, double *out) {
    k->sums[c->columns].step = ratio;
    for (int64_t n = 0; n < c->columns; n++) {
        const double above = k->sums[crf_parent_of(c, n)].step;
        out[n] = c->touched.mass[n] * above + k->sums[n].more;
        k->sums[n].step += above;
    }
}

static void parts_down(void *context, int64_t begin, int64_t end, int worker) {
    const crf_job *j = context;
    const fgi_crf *c = j->c;
    const crf_pattern *p = &c->wanted;
    crf_touching *k = &c->touched.work[worker];
    int64_t unit[CRF_MAX_UNITS + 1]; /* the first token of each unit */
    for (int64_t u = 0; u <= c->n_units; u++) unit[u] = c->data.token_begin[c->block[c->unit[u]]];
    for (int64_t i = crf_part_begin(j, begin); i < crf_part_begin(j, end); i++) {
        const int64_t f = j->set ? p->features[i] : i;
        double ratio;
        if (j->square) {
            const double square = add_squares(c, f, k, unit, &ratio);
            square_columns(c, k, ratio, square, j->set ? p->columns + p->begin[i] : NULL,
                j->set ? p->begin[i + 1] - p->begin[i] : c->columns,
                j->gradient + (j->set ? p->begin[i] : f * c->columns));
            memset(k->sums, 0, (size_t)(c->columns + 1) * sizeof *k->sums);
            continue;
        }
        ratio = add_tokens(c, f, k, unit);
        if (j->set)
            some_columns(
                c, k, ratio, p->columns + p->begin[i], p->begin[i + 1] - p->begin[i], j->gradient + p->begin[i]);
        else all_columns(c, k, ratio, j->gradient + f * c->columns);
        memset(k->sums, 0, (size_t)(c->columns + 1) * sizeof *k->sums);
    }
}

void crf_lists_derivatives(crf_job *j) { fgi_pool_run(j->c->pool, j->parts, 1, parts_down, j); }
