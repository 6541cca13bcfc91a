/* learn/losses/step.c - gradient descent on the rows after a batch, and the gradients of its samples. */
#include <string.h>
#include "base/assert.h"
#include "learn/losses/losses.h"

typedef struct backward {
    const fgi_losses *l;
    const fgi_loss_batch *b;
    float *x_gradient;
} backward;

static void through_rows(void *context, int64_t begin, int64_t end, int worker) {
    const backward *c = context;
    (void)worker;
    for (int64_t i = begin; i < end; i++) {
        float *to = c->x_gradient + i * c->b->d;
        memset(to, 0, (size_t)c->b->d * sizeof *to);
        for (int64_t e = c->l->begin[i]; e < c->l->begin[i + 1]; e++) {
            const float g = c->l->values[e], *row = c->b->rows + (int64_t)c->l->labels[e] * c->b->d;
            for (int32_t k = 0; k < c->b->d; k++) to[k] += g * row[k];
        }
    }
}

static int ascending(const void *a, const void *b) {
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

int64_t fgi_losses_step(
    fgi_losses *l, const fgi_loss_batch *b, float *rows, double step, float *x_gradient, int32_t *changed) {
    backward c = {l, b, x_gradient};
    if (x_gradient) fgi_pool_run(l->pool, l->n, 1, through_rows, &c);
    fgi_loss_unmark(l);
    int64_t n = 0;
    for (int64_t i = 0; i < l->n; i++) {
        const float *x = b->x + i * b->d;
        fgi_assert(l->begin[i] <= l->begin[i + 1]);
        for (int64_t e = l->begin[i]; e < l->begin[i + 1]; e++) {
            const int32_t label = l->labels[e];
            const float g = (float)(step * l->values[e]);
            float *row = rows + (int64_t)label * b->d;
            for (int32_t k = 0; k < b->d; k++) row[k] -= g * x[k];
            if (l->mark[label] == l->epoch) continue;
            l->mark[label] = l->epoch;
            changed[n++] = label;
        }
    }
    qsort(changed, (size_t)n, sizeof *changed, ascending);
    return n;
}
