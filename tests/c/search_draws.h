/* search_draws.h - random rows and label lists for the tests of searches and of the losses over them, and the order in
 * which searches answer. */
#ifndef SEARCH_DRAWS_H
#define SEARCH_DRAWS_H
#include "base/util.h"
#include "oracle/top.h"

static inline float draw(fgi_rng *rng, int whole) {
    return whole ? (float)(fgi_rng_below(rng, 5) - 2) : (float)(2 * fgi_rng_unit(rng) - 1);
}

static inline float *draw_many(fgi_rng *rng, int64_t n, int whole) {
    float *x = fgi_alloc(n, sizeof *x); /* exactly so long: the sanitizer sees a read beyond */
    for (int64_t k = 0; x && k < n; k++) x[k] = draw(rng, whole);
    return x;
}

/* Every label with odds of one in `odds`; returns the new end. */
static inline int64_t draw_labels(fgi_rng *rng, int64_t rows, int64_t odds, int32_t *labels, int64_t at) {
    for (int64_t k = 0; odds && k < rows; k++)
        if (!fgi_rng_below(rng, odds)) labels[at++] = (int32_t)k;
    return at;
}

static inline int ranked(const void *a, const void *b) {
    const fgi_ranked_label *x = a, *y = b;
    if (x->value != y->value) return x->value < y->value ? 1 : -1;
    return (x->label > y->label) - (x->label < y->label);
}

#endif
