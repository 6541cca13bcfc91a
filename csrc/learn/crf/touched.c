/* learn/crf/touched.c - many labels, no edges, few weights: sums that visit only the nodes that a token touches.
 *
 * The features that all tokens have (a bias) give every node the same score for every token, and every subtree the
 * same mass. The other features of a token have weights at few nodes. A leaf that none of them is on the path of keeps
 * its mass, one below a touched node has it multiplied by exp(delta), delta the sum of the token's own weights on the
 * path. So
 *
 *     below(n) = (mass(n) - sum over touched children of mass(c)) exp(delta(n)) + sum over touched children of below(c)
 *
 * for touched nodes n, Z = below(root), and an untouched node has the probability mass(n) exp(delta(p)) / Z, p the next
 * touched node above it. The derivative by the weight of feature f at node n adds that up over the tokens of f: with
 * step_t(n) = exp(delta(n)) / Z - exp(delta(p)) / Z and more_t(n) = P_t(n) - mass(n) exp(delta(p)) / Z for the nodes
 * that t touches,
 *
 *     sum over t of P_t(n) = mass(n) * sum over t and over the nodes q above n of step_t(q) + sum over t of more_t(n).
 *
 * Differences lose digits where the untouched part is small against what it is taken from, and counts: a token where
 * that could be seen is summed over all nodes instead. */
#include <string.h>
#include "base/array.h"
#include "learn/crf/touched.h"

#define SHARE 4         /* a touched node costs as much as so many in sums over all of them */
#define WIDEST 300.0    /* delta is at most this, and common scores within twice: exp stays within doubles */
#define LOST_DIGITS 1e3 /* errors of sums may be so many times the rounding of their result */

/* ---- life ------------------------------------------------------------------------------------------------------ */

static int is_common(const fgi_crf *c, int64_t f) {
    const int64_t b = c->column_begin[f], e = c->column_begin[f + 1];
    if (e - b != c->tokens) return 0;
    for (int64_t k = b; c->column_value && k < e; k++)
        if (c->column_value[k] != c->column_value[b]) return 0;
    for (int64_t k = b; k < e; k++)
        if (c->column_token[k] != k - b) return 0; /* twice in one token, and not in another */
    return 1;
}

int crf_touched_create(fgi_crf *c) {
    crf_touched *t = &c->touched;
    const int64_t n = c->columns + 1;
    t->possible = c->tables == CRF_NO_EDGES && !c->cell && c->columns > CRF_NARROW;
    if (!t->possible) return 1;
    t->common = fgi_alloc(c->data.n_features, 1);
    t->score = fgi_alloc(n, sizeof(double));
    t->mass = fgi_alloc(n, sizeof(double));
    t->ratio = fgi_alloc(c->tokens, sizeof(double));
    t->begin = fgi_alloc(c->tokens, sizeof(int64_t));
    t->count = fgi_alloc(c->tokens, sizeof(int32_t));
    t->rank = fgi_alloc(c->data.row_begin[c->tokens], sizeof(int32_t));
    t->list = fgi_calloc(c->n_units, sizeof *t->list);
    t->room = fgi_calloc(c->n_units, sizeof(int64_t));
    t->failed = fgi_calloc(c->n_units, 1);
    t->work = fgi_calloc(c->threads, sizeof *t->work);
    if (!t->common || !t->score || !t->mass || !t->ratio || !t->begin || !t->count || !t->rank || !t->list ||
        !t->room || !t->failed || !t->work)
        return 0;
    memcpy(c->cursor, c->column_begin, (size_t)c->data.n_features * sizeof *c->cursor);
    for (int64_t j = 0; j < c->data.row_begin[c->tokens]; j++)
        t->rank[j] = (int32_t)(c->cursor[c->data.feature[j]]++ - c->column_begin[c->data.feature[j]]);
    for (int64_t f = 0; f < c->data.n_features; f++) t->common[f] = (uint8_t)is_common(c, f);
    for (int k = 0; k < c->threads; k++) {
        crf_touching *w = &t->work[k];
        w->list = fgi_alloc(n, sizeof(int32_t));
        w->node = fgi_calloc(n, sizeof *w->node);
        w->bits = fgi_calloc(c->n_inner / 64 + 1, sizeof(uint64_t));
        w->power = fgi_alloc(n, sizeof(double));
        w->sums = fgi_calloc(n, sizeof *w->sums);
        w->squares = fgi_calloc(n, sizeof(double));
        w->level = fgi_alloc(n, sizeof(double));
        if (!w->list || !w->node || !w->bits || !w->power || !w->sums || !w->squares || !w->level) return 0;
        for (int64_t m = 0; m < n; m++) w->node[m].parent = (int32_t)(m < c->columns ? crf_parent_of(c, m) : m);
    }
    return 1;
}

void crf_touched_free(fgi_crf *c) {
    crf_touched *t = &c->touched;
    for (int k = 0; t->work && k < c->threads; k++) {
        crf_touching *w = &t->work[k];
        free(w->list), free(w->node), free(w->bits), free(w->power), free(w->sums), free(w->squares), free(w->level);
    }
    for (int64_t u = 0; t->list && u < c->n_units; u++) free(t->list[u]);
    free(t->common), free(t->score), free(t->mass), free(t->ratio), free(t->begin), free(t->count), free(t->list);
    free(t->room), free(t->failed), free(t->value), free(t->work), free(t->rank), free(t->slot), free(t->residual);
    free(t->sums), free(t->unit_ratio);
}

/* ---- one token ------------------------------------------------------------------------------------------------- */

static inline crf_node *touch(const fgi_crf *c, crf_touching *k, int64_t n) {
    crf_node *node = &k->node[n];
    if (node->stamp == k->mark) return node;
    node->stamp = k->mark;
    node->delta = node->below = node->covered = 0;
    if (n < c->n_inner) k->list[k->inner++] = (int32_t)n;
    else if (n < c->columns) k->list[--k->leaf] = (int32_t)n;
    return node;
}

/* The nodes of the token and their ancestors, with the weights of its own features there. */
static void collect(const fgi_crf *c, int64_t token, crf_touching *k) {
    const fgi_learn_data *d = &c->data;
    const crf_pattern *p = &c->support;
    const double *value = c->touched.value;
    if (k->mark++ == INT32_MAX) {
        for (int64_t n = 0; n <= c->columns; n++) k->node[n].stamp = 0;
        k->mark = 1;
    }
    k->inner = 0, k->leaf = c->columns;
    touch(c, k, c->columns);
    for (int64_t j = d->row_begin[token]; j < d->row_begin[token + 1]; j++) {
        const int64_t f = d->feature[j], at = c->touched.common[f] ? -1 : p->at[f];
        const double x = d->value ? d->value[j] : 1.0;
        for (int64_t a = at < 0 ? 0 : p->begin[at]; at >= 0 && a < p->begin[at + 1]; a++)
            touch(c, k, p->columns[a])->delta += x * value[a];
    }
    if (!c->n_inner) return;
    for (int64_t i = k->leaf; i < c->columns; i++) touch(c, k, k->node[k->list[i]].parent);
    for (int64_t i = 0; i < k->inner; i++) touch(c, k, k->node[k->list[i]].parent);
    /* parents come before their children: a bit a node sorts them */
    for (int64_t i = 0; i < k->inner; i++) k->bits[k->list[i] / 64] |= UINT64_C(1) << (k->list[i] % 64);
    int64_t n = 0;
    for (int64_t word = 0; 64 * word < c->n_inner; word++)
        for (; k->bits[word]; k->bits[word] &= k->bits[word] - 1)
            k->list[n++] = (int32_t)(64 * word + __builtin_ctzll(k->bits[word]));
}

/* Path sums of delta, and their exponentials; 0 when one is too large. */
static int raise(const fgi_crf *c, crf_touching *k) {
    double widest = 0;
    k->node[c->columns].times = 1;
    for (int part = 0; part < 2; part++) {
        const int32_t *list = k->list + (part ? k->leaf : 0);
        const int64_t n = part ? c->columns - k->leaf : k->inner;
        for (int64_t i = 0; i < n; i++) {
            crf_node *node = &k->node[list[i]];
            k->power[i] = node->delta += k->node[node->parent].delta;
            if (!(fabs(k->power[i]) <= widest)) widest = fabs(k->power[i]);
        }
        if (!(widest <= WIDEST)) return 0;
        c->kernels->exp(k->power, n, 0.0, k->power);
        for (int64_t i = 0; i < n; i++) k->node[list[i]].times = k->power[i];
    }
    return 1;
}

/* Z, with below() of all that is touched; 0 when digits are lost. */
static double gather(const fgi_crf *c, crf_touching *k) {
    for (int64_t i = k->leaf; i < c->columns; i++) {
        crf_node *node = &k->node[k->list[i]], *above = &k->node[node->parent];
        node->below = node->mass * node->times;
        above->covered += node->mass;
        above->below += node->below;
    }
    double risk = 0;
    for (int64_t i = k->inner; i >= 0; i--) {
        crf_node *node = &k->node[i ? k->list[i - 1] : c->columns], *above = &k->node[node->parent];
        risk = fgi_larger(risk, node->covered * node->times);
        node->below += fgi_larger(node->mass - node->covered, 0.0) * node->times;
        if (!i) break;
        above->covered += node->mass;
        above->below += node->below;
    }
    const double z = k->node[c->columns].below;
    return risk <= LOST_DIGITS * z ? z : 0;
}

/* A token by all nodes: log Z, its score of the truth, and the probabilities times its weight, in `power`. */
static void sum_all(const fgi_crf *c, const double *w, crf_touching *k, crf_token_sums *s) {
    const fgi_learn_data *d = &c->data;
    const int64_t width = c->columns, leaves = width - c->n_inner, token = s->token;
    double *own = k->power, *leaf = own + c->n_inner;
    memset(own, 0, (size_t)width * sizeof(double));
    for (int64_t j = d->row_begin[token]; j < d->row_begin[token + 1]; j++)
        c->kernels->axpy(width, d->value ? d->value[j] : 1.0, w + d->feature[j] * width, own);
    for (int64_t n = 0; n < width; n++)
        if (crf_parent_of(c, n) < width) own[n] += own[crf_parent_of(c, n)];
    s->truth = leaf[d->truth[token]];
    const double top = c->kernels->max(leaf, leaves);
    c->kernels->exp(leaf, leaves, top, leaf);
    const double z = c->kernels->sum(leaf, leaves), scale = crf_weight_of(c, token) / z;
    memset(own, 0, (size_t)c->n_inner * sizeof(double));
    for (int64_t n = width - 1; n >= 0; n--) {
        if (crf_parent_of(c, n) < width) own[crf_parent_of(c, n)] += own[n];
        own[n] *= scale;
    }
    s->log_z = top + log(z);
}

static double score_truth(const fgi_crf *c, int64_t token, const crf_touching *k) {
    const int64_t leaf = c->n_inner + c->data.truth[token];
    int64_t n = leaf;
    while (k->node[n].stamp != k->mark) n = k->node[n].parent;
    return c->touched.score[leaf] + k->node[n].delta;
}

/* ---- value ----------------------------------------------------------------------------------------------------- */

/* Masses at w; 0 when sums over all nodes are as good, or needed. */
int crf_touched_load(fgi_crf *c, const double *w) {
    crf_touched *t = &c->touched;
    const crf_pattern *p = &c->support;
    t->now = 0;
    if (!t->possible) return 0;
    int64_t most = c->tokens; /* nodes touched, at most but for their ancestors */
    memset(t->score, 0, (size_t)(c->columns + 1) * sizeof(double));
    for (int64_t k = 0; k < p->n_features; k++) {
        const int64_t f = p->features[k], entries = c->column_begin[f + 1] - c->column_begin[f];
        if (!t->common[f]) {
            most += entries * (p->begin[k + 1] - p->begin[k]);
            continue;
        }
        c->kernels->axpy(
            c->columns, c->column_value ? c->column_value[c->column_begin[f]] : 1.0, w + f * c->columns, t->score);
    }
    if (!fgi_grow(&t->value, &t->values, p->room_columns, sizeof(double))) return 0;
    if (SHARE * most > c->tokens * c->columns || most * (int64_t)sizeof(crf_touch) > c->memory) return 0;
    double *leaf = t->score + c->n_inner;
    const int64_t leaves = c->columns - c->n_inner;
    for (int64_t n = 0; n < c->columns; n++)
        if (crf_parent_of(c, n) < c->columns) t->score[n] += t->score[crf_parent_of(c, n)];
    t->top = c->kernels->max(leaf, leaves);
    if (!(t->top - c->kernels->min(leaf, leaves) <= 2 * WIDEST)) return 0;
    memset(t->mass, 0, (size_t)(c->columns + 1) * sizeof(double));
    c->kernels->exp(leaf, leaves, t->top, t->mass + c->n_inner);
    for (int64_t n = c->columns - 1; n >= 0; n--) t->mass[crf_parent_of(c, n)] += t->mass[n];
    for (int k = 0; k < c->threads; k++)
        for (int64_t n = 0; n <= c->columns; n++) t->work[k].node[n].mass = t->mass[n];
    for (int64_t k = 0; k < p->n_features; k++) {
        const double *row = w + p->features[k] * c->columns;
        for (int64_t a = p->begin[k]; a < p->begin[k + 1]; a++) t->value[a] = row[p->columns[a]];
    }
    return t->now = 1;
}

static void sum_token(const fgi_crf *c, const double *w, crf_touching *k, crf_token_sums *token) {
    collect(c, token->token, k);
    token->z = raise(c, k) ? gather(c, k) : 0;
    if (!(token->z > 0)) {
        token->z = 0;
        sum_all(c, w, k, token);
        return;
    }
    token->truth = score_truth(c, token->token, k);
    token->log_z = c->touched.top + log(token->z);
}

static void units_up(void *context, int64_t begin, int64_t end, int worker) {
    const crf_job *j = context;
    fgi_crf *c = j->c;
    crf_touched *t = &c->touched;
    crf_touching *k = &t->work[worker];
    for (int64_t u = begin; u < end; u++) {
        int64_t used = 0;
        fgi_sum loss = {0};
        t->failed[u] = 0;
        const int64_t last = c->data.token_begin[c->block[c->unit[u + 1]]];
        for (int64_t token = c->data.token_begin[c->block[c->unit[u]]]; token < last; token++) {
            crf_token_sums s = {.token = token};
            sum_token(c, j->w, k, &s);
            fgi_sum_add(&loss, crf_weight_of(c, token) * (s.log_z - s.truth));
            c->workers[worker].touched += s.z > 0 ? k->inner + c->columns - k->leaf : c->columns;
            if (!t->listed) crf_set_store(c, u, &s, k);
            else if (!crf_lists_store(c, u, &s, k, &used)) {
                t->failed[u] = 1;
                return;
            }
        }
        c->block_loss[u] = fgi_sum_value(&loss);
    }
}

static int run_up(fgi_crf *c, const double *w) {
    crf_job j = {.c = c, .w = w};
    fgi_pool_run(c->pool, c->n_units, 1, units_up, &j);
    for (int64_t u = 0; u < c->n_units; u++)
        if (c->touched.failed[u]) return 0;
    return 1;
}

int crf_touched_value(fgi_crf *c, const double *w, int by_set, double *loss) {
    c->touched.listed = !by_set;
    if (by_set && !crf_set_prepare(c)) return 0;
    if (!run_up(c, w)) return 0;
    fgi_sum total = {0};
    for (int64_t u = 0; u < c->n_units; u++) fgi_sum_add(&total, c->block_loss[u]);
    *loss = fgi_sum_value(&total);
    return 1;
}

int crf_touched_gradient(crf_job *j) {
    crf_touched *t = &j->c->touched;
    j->parts = j->c->threads == 1 ? 1 : 8 * j->c->threads;
    if (!t->listed && crf_set_derivatives(j)) return 1;
    if (!t->listed) {
        t->listed = 1;
        if (!run_up(j->c, j->w)) return 0;
    }
    crf_lists_derivatives(j);
    return 1;
}
