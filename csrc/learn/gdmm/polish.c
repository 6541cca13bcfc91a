/* learn/gdmm/polish.c - a tighter bound on the relaxed loss of one example.
 *
 * The messages of the iterate are right for the weights when it has converged; before, and for other weights, sweeps
 * of block-coordinate descent over the edges lower the bound (the edge updates of Globerson, Jaakkola 2007). An edge
 * takes back its messages, and gives each of its tokens half of their max-marginals; then its own maximum is 0, so that
 * after a sweep the bound is the sum of the tokens' maxima. This works on a copy, with all labels: training never sees
 * it. */
#include <string.h>
#include "base/kernels.h"
#include "learn/gdmm/gdmm.h"

enum {
    SWEEPS = 30,      /* at most: any number gives a bound (decision 0016) */
    MOST_LABELS = 512 /* labels beyond which a sweep over K x K tables costs more than it tells (chosen) */
};

/* theta: scores of all tokens (rows of K), messages taken off; mine: 2 x K per edge, what it has been given. */
typedef struct polish {
    const fgi_learner *L;
    int32_t example;
    int64_t first, edge, n_edges, k;
    double *theta, *mine, *row, *column;
} polish;

/* max over b of T(a, b) + x(b), and over a of T(a, b) + y(a), in places of the candidate lists if there are any. */
static void max_marginals(const polish *p, const fgi_edge_block *e, const double *T, const double *y, const double *x) {
    const int32_t *from, *to;
    const int32_t n = fgi_learn_allowed(p->L, p->first + e->u, &from),
                  m = fgi_learn_allowed(p->L, p->first + e->v, &to);
    if (!from) {
        fgi_kernels_get()->maxplus_cols(T, p->k, p->k, 1.0, x, p->row);
        fgi_kernels_get()->maxplus_rows(T, p->k, p->k, 1.0, y, p->column);
        return;
    }
    for (int32_t a = 0; a < n; a++) p->row[a] = -INFINITY;
    for (int32_t b = 0; b < m; b++) p->column[b] = -INFINITY;
    for (int32_t a = 0; a < n; a++)
        for (int32_t b = 0; b < m; b++) {
            const double value = T[from[a] * p->k + to[b]];
            p->row[a] = fgi_larger(p->row[a], value + x[b]);
            p->column[b] = fgi_larger(p->column[b], value + y[a]);
        }
}

static void update_edge(const polish *p, const fgi_edge_block *e, const double *T, double *mine) {
    const int32_t *list;
    const int64_t token[2] = {e->u, e->v};
    double *theta[2], *own[2] = {mine, mine + p->k};
    const double *best[2] = {p->row, p->column};
    int32_t n[2];
    for (int side = 0; side < 2; side++) {
        theta[side] = p->theta + token[side] * p->k;
        n[side] = fgi_learn_allowed(p->L, p->first + token[side], &list);
        for (int32_t a = 0; a < n[side]; a++) own[side][a] += theta[side][a]; /* the token without this edge */
    }
    max_marginals(p, e, T, own[0], own[1]);
    for (int side = 0; side < 2; side++)
        for (int32_t a = 0; a < n[side]; a++) {
            theta[side][a] = 0.5 * (own[side][a] + best[side][a]);
            own[side][a] -= theta[side][a];
        }
}

/* Place of a label in what is scored of a token; -1: not a candidate. */
static int32_t place_of(const fgi_learner *L, int64_t token, int32_t label) {
    const int32_t *list;
    const int32_t n = fgi_learn_allowed(L, token, &list);
    if (!list) return label;
    for (int32_t c = 0; c < n; c++)
        if (list[c] == label) return c;
    return -1;
}

/* Takes the messages of the iterate over: theta(a) -= rho m(a) for every edge of the token, which has it instead. */
static void take_messages(const fgi_learn_gdmm *g, polish *p) {
    for (int64_t e = 0; e < p->n_edges; e++) {
        const fgi_edge_block *b = &g->edges[p->edge + e];
        for (int side = 0; side < 2; side++) {
            const int32_t position = side ? b->v : b->u;
            const fgi_support *t = &g->tokens[p->first + position];
            for (int32_t at = 0; at < t->n; at++) {
                const int32_t a = place_of(p->L, p->first + position, t->label[at]);
                const double x = g->rho * fgi_support_message(t, side ? b->kv : b->ku, at);
                if (a < 0) continue;
                p->theta[position * p->k + a] -= x;
                p->mine[(2 * e + side) * p->k + a] += x;
            }
        }
    }
}

static double truth_score(const fgi_learn_gdmm *g, const polish *p) {
    const fgi_learn_data *d = &p->L->data;
    double sum = 0;
    for (int64_t t = p->first; t < d->token_begin[p->example + 1]; t++)
        sum += p->theta[(t - p->first) * p->k + place_of(p->L, t, d->truth[t])];
    for (int64_t e = p->edge; e < p->edge + p->n_edges; e++)
        sum += fgi_learn_gdmm_pair_weight(g, e, d->truth[p->first + g->edges[e].u], d->truth[p->first + g->edges[e].v]);
    return sum;
}

fgi_rc fgi_learn_gdmm_polish(fgi_learn_gdmm *g, int32_t i, double *loss) {
    fgi_learner *L = g->L;
    const int64_t k = L->data.n_labels, tokens = fgi_learn_tokens(L, i);
    polish p = {L, i, L->data.token_begin[i], fgi_learn_gdmm_edge_begin(g, i), 0, k, NULL, NULL, NULL, NULL};
    p.n_edges = g->n_edges ? fgi_learn_gdmm_edge_begin(g, i + 1) - p.edge : 0;
    if (!p.n_edges || *loss <= 0 || k > MOST_LABELS) return FGI_OK;
    fgi_learn_scratch *s = &L->scratch[0];
    p.mine = fgi_calloc(2 * k * p.n_edges + 2 * k, sizeof(double));
    if (!p.mine) return FGI_NO_MEMORY;
    p.row = p.mine + 2 * k * p.n_edges, p.column = p.row + k;
    const int64_t touched = s->touched;
    const fgi_learn_vector w = fgi_learn_whole(L, L->w);
    fgi_learn_fill_scores(L, &w, 1.0, i, s);
    s->touched = touched;
    p.theta = s->scores;
    const double truth = truth_score(g, &p);
    take_messages(g, &p);
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
        double total = -truth;
        for (int64_t e = 0; e < p.n_edges; e++)
            update_edge(&p, &g->edges[p.edge + e], fgi_learn_edge_table(L, w.pairs, p.edge + e, s), p.mine + 2 * k * e);
        for (int64_t t = 0; t < tokens; t++) {
            const int32_t *list;
            const int32_t n = fgi_learn_allowed(L, p.first + t, &list);
            total += p.theta[t * k + fgi_argmax_of(p.theta + t * k, n)];
        }
        const double gain = *loss - total;
        if (gain > 0) *loss = total > 0 ? total : 0;
        if (sweep && gain <= 1e-4 * *loss) break; /* a tenth of the usual tolerance */
    }
    free(p.mine);
    return FGI_OK;
}
