/* learn/parse.c - first-order projective dependency parsing (Eisner's algorithm, O(n^3)).
 *
 * Tokens are 1 .. n, 0 is the root; scratch->scores holds, token by token, the score of each head 0 .. n (that of a
 * token as its own head is never looked at). Four charts over spans [i, j]: right/left (head at i / at j) times
 * complete/incomplete. Exactly one token hangs on the root. Ties go to the lowest split point. */
#include "learn/learn.h"

enum { RIGHT_OPEN, LEFT_OPEN, RIGHT_DONE, LEFT_DONE };

typedef struct chart {
    double *value;
    int32_t *back;
    const double *arc; /* arc[(dependent - 1) * (n + 1) + head] */
    int64_t n;
} chart;

static inline int64_t cell(const chart *c, int kind, int64_t i, int64_t j) {
    return ((int64_t)kind * (c->n + 1) + i) * (c->n + 1) + j;
}

/* Best of left[split] + right[split + shift] over split in [from, to). */
static void best_split(chart *c, int64_t target, int left, int64_t i, int right, int64_t j, int64_t from, int64_t to,
    int shift, double bonus) {
    double best = -INFINITY;
    int32_t at = (int32_t)from;
    for (int64_t k = from; k < to; k++) {
        double v = c->value[cell(c, left, i, k)] + c->value[cell(c, right, k + shift, j)];
        if (v > best) best = v, at = (int32_t)k;
    }
    c->value[target] = best + bonus;
    c->back[target] = at;
}

static void follow(const chart *c, int kind, int64_t i, int64_t j, int32_t *heads) {
    if (i == j) return;
    int64_t k = c->back[cell(c, kind, i, j)];
    switch (kind) {
    case RIGHT_OPEN:
        heads[j - 1] = (int32_t)i;
        follow(c, RIGHT_DONE, i, k, heads), follow(c, LEFT_DONE, k + 1, j, heads);
        break;
    case LEFT_OPEN:
        heads[i - 1] = (int32_t)j;
        follow(c, RIGHT_DONE, i, k, heads), follow(c, LEFT_DONE, k + 1, j, heads);
        break;
    case RIGHT_DONE: follow(c, RIGHT_OPEN, i, k, heads), follow(c, RIGHT_DONE, k, j, heads); break;
    default: follow(c, LEFT_DONE, i, k, heads), follow(c, LEFT_OPEN, k, j, heads);
    }
}

double fgi_learn_parse(const fgi_learner *L, int32_t i, fgi_learn_scratch *scratch, int32_t *heads) {
    int64_t n = fgi_learn_tokens(L, i);
    chart c = {scratch->span, scratch->span_back, scratch->scores, n};
    for (int64_t a = 0; a <= n; a++) c.value[cell(&c, RIGHT_DONE, a, a)] = c.value[cell(&c, LEFT_DONE, a, a)] = 0;
    scratch->touched += n * (n + 1) * (n + 1) / 2;
    for (int64_t width = 1; width < n; width++)
        for (int64_t a = 1; a + width <= n; a++) {
            int64_t b = a + width;
            best_split(
                &c, cell(&c, RIGHT_OPEN, a, b), RIGHT_DONE, a, LEFT_DONE, b, a, b, 1, c.arc[(b - 1) * (n + 1) + a]);
            best_split(
                &c, cell(&c, LEFT_OPEN, a, b), RIGHT_DONE, a, LEFT_DONE, b, a, b, 1, c.arc[(a - 1) * (n + 1) + b]);
            best_split(&c, cell(&c, RIGHT_DONE, a, b), RIGHT_OPEN, a, RIGHT_DONE, b, a + 1, b + 1, 0, 0);
            best_split(&c, cell(&c, LEFT_DONE, a, b), LEFT_DONE, a, LEFT_OPEN, b, a, b, 0, 0);
        }
    double best = -INFINITY;
    int64_t top = 1;
    for (int64_t r = 1; r <= n; r++) {
        double v = c.value[cell(&c, LEFT_DONE, 1, r)] + c.value[cell(&c, RIGHT_DONE, r, n)] + c.arc[(r - 1) * (n + 1)];
        if (v > best) best = v, top = r;
    }
    heads[top - 1] = 0;
    follow(&c, LEFT_DONE, 1, top, heads);
    follow(&c, RIGHT_DONE, top, n, heads);
    return best;
}
