/* learn_problem.h - small random problems of every kind of learning: tokens with labels, choices, label sets. */
#ifndef LEARN_PROBLEM_H
#define LEARN_PROBLEM_H
#include <string.h>
#include "fginfer_learn.h"
#include "base/util.h"

enum { N = 12, K = 5, D = 4, MOST = 4 };

typedef struct problem {
    fgi_learn_data data;
    int64_t token_begin[N + 1], row_begin[N * MOST * (MOST + 1) + 1], choice_begin[N * MOST + 1], truth_begin[N + 1],
        edge_begin[N + 1];
    int32_t feature[N * MOST * (MOST + 1) * 2], truth[N * MOST * 2], choice[N * MOST * K], edge_u[N * MOST],
        edge_v[N * MOST];
    double value[N * MOST * (MOST + 1) * 2];
} problem;

static void make(problem *p, int kind, int edges, int candidates, uint64_t seed) {
    fgi_rng r = {seed};
    memset(p, 0, sizeof *p);
    p->data = (fgi_learn_data){.kind = kind,
        .edges = edges,
        .n_examples = N,
        .token_begin = p->token_begin,
        .n_features = D,
        .n_labels = kind == FGI_LEARN_CHOICES ? 0 : K,
        .projective = kind == FGI_LEARN_CHOICES,
        .row_begin = p->row_begin,
        .feature = p->feature,
        .value = p->value,
        .truth = p->truth,
        .n_edge_features = 1};
    int64_t tokens = 0, rows = 0, choices = 0, n_edges = 0, on = 0;
    for (int i = 0; i < N; i++) {
        int64_t length = kind == FGI_LEARN_SETS ? 1 : 1 + fgi_rng_below(&r, MOST);
        for (int64_t t = 0; t < length; t++, tokens++) {
            int64_t alternatives = kind == FGI_LEARN_CHOICES ? length + 1 : 1;
            for (int64_t a = 0; a < alternatives; a++, rows++)
                for (int j = 0; j < 2; j++) {
                    p->feature[2 * rows + j] = (int32_t)fgi_rng_below(&r, D);
                    p->value[2 * rows + j] = fgi_rng_unit(&r) - 0.5;
                    p->row_begin[rows + 1] = 2 * rows + 2;
                }
            if (kind != FGI_LEARN_SETS)
                p->truth[tokens] = kind == FGI_LEARN_CHOICES ? (int32_t)t : (int32_t)fgi_rng_below(&r, K);
            if (kind == FGI_LEARN_CHOICES) choices += alternatives;
            else if (candidates)
                for (int32_t y = 0; y < K; y++)
                    if (y == p->truth[tokens] || fgi_rng_below(&r, 2)) p->choice[choices++] = y;
            p->choice_begin[tokens + 1] = choices;
            if (t > 0) {
                p->edge_u[n_edges] = (int32_t)t;
                p->edge_v[n_edges++] = (int32_t)fgi_rng_below(&r, t);
            }
        }
        for (int32_t l = 0; kind == FGI_LEARN_SETS && l < K; l++)
            if (fgi_rng_below(&r, 3) == 0) p->truth[on++] = l;
        p->token_begin[i + 1] = tokens;
        p->truth_begin[i + 1] = on;
        p->edge_begin[i + 1] = n_edges;
    }
    if (kind == FGI_LEARN_CHOICES || candidates) p->data.choice_begin = p->choice_begin;
    if (candidates) p->data.choice = p->choice;
    if (kind == FGI_LEARN_SETS) p->data.truth_begin = p->truth_begin;
    if (edges == FGI_EDGES_LIST)
        p->data.edge_begin = p->edge_begin, p->data.edge_u = p->edge_u, p->data.edge_v = p->edge_v;
}

#endif
