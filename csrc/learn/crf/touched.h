/* learn/crf/touched.h - inside of the sums over touched nodes (learn/crf/touched.c): what its three files share.
 *
 * What a value leaves for derivatives is one of two things. Where it was told the set of coordinates that may be
 * non-zero, the derivatives by those are asked for next, as a rule: it keeps the residual (probability minus truth) of
 * every coordinate at every token (touched_set.c). Any others come from lists of what each token touches, which are
 * made when they are needed (touched_lists.c). */
#ifndef FGI_CRF_TOUCHED_H
#define FGI_CRF_TOUCHED_H
#include "learn/crf/crf.h"

struct crf_touch {
    int32_t node;
    double step, more;
};

/* What is known of a node, side by side: tokens touch nodes here and there, each is one line of the cache, or two. */
typedef struct crf_node {
    double delta, times; /* sum of the token's weights on its path, and its exponential */
    double below, covered;
    double mass; /* at this w */
    int32_t parent, stamp;
} crf_node;

/* Per-thread memory over the nodes; the last of them is the root of all. */
struct crf_touching {
    int32_t *list; /* the nodes that the token touches: inner nodes from the left, ascending; leaves from the right */
    crf_node *node;
    uint64_t *bits; /* which inner nodes are touched; zeros between two tokens */
    double *power;
    crf_touch *sums;     /* over the tokens of a feature; zeros between two */
    double *squares;     /* curvatures: the same of the squares of step */
    double *level;       /* curvatures: sums of step on a node's path */
    int64_t inner, leaf; /* list[0 .. inner), list[leaf .. columns) */
    int32_t mark;
};

static inline int64_t crf_parent_of(const fgi_crf *c, int64_t n) {
    return c->parent && c->parent[n] >= 0 ? c->parent[n] : c->columns;
}

static inline double crf_weight_of(const fgi_crf *c, int64_t token) {
    return c->token_weight ? c->token_weight[token] : 1.0;
}

/* One token's sums. z > 0: those of `below` over what it touches; 0: all probabilities, times its weight, are in
 * `power`. */
typedef struct crf_token_sums {
    int64_t token;
    double z, log_z, truth;
} crf_token_sums;

/* touched_lists.c: 0: no memory. */
int crf_lists_store(fgi_crf *c, int64_t unit, const crf_token_sums *token, const crf_touching *k, int64_t *used);
void crf_lists_derivatives(crf_job *j);

/* touched_set.c: prepare: for the support of this value, 0: no memory; derivatives: 0: the set is another one. */
int crf_set_prepare(fgi_crf *c);
void crf_set_store(fgi_crf *c, int64_t unit, const crf_token_sums *token, crf_touching *k);
int crf_set_derivatives(crf_job *j);

#endif
