/* io/numbers.c - see io/numbers.h. A token belongs to the part in which it begins, so that parts need not know of each
 * other; what tokens mean, sizes or entries, is for the reader to say, who goes through them in order. */
#include "io/numbers.h"
#include <stdlib.h>
#include "base/util.h"

typedef struct helper {
    fgi_cached cache[1 << FGI_CACHE_BITS];
} helper;

struct fgi_numbers {
    fgi_pool *pool;
    helper *helpers;
    int log_values, threads;
    const char *text, *end;
    int64_t n_parts, capacity; /* there is memory for so many */
    int64_t *count;
    double *score; /* FGI_PART / 2 for each: a token needs two bytes */
    uint32_t *begin;
};

enum { MOST_TOKENS = FGI_PART / 2 }; /* tokens of a part: each needs two bytes */

fgi_numbers *fgi_numbers_create(int threads, int log_values) {
    fgi_numbers *x = fgi_calloc(1, sizeof *x);
    if (!x) return NULL;
    x->log_values = log_values;
    x->pool = fgi_pool_create(threads);
    x->threads = threads;
    x->helpers = fgi_calloc(threads, sizeof *x->helpers);
    if (x->helpers) return x;
    fgi_numbers_free(x);
    return NULL;
}

void fgi_numbers_free(fgi_numbers *x) {
    if (!x) return;
    fgi_pool_free(x->pool);
    free(x->helpers);
    free(x->count);
    free(x->score);
    free(x->begin);
    free(x);
}

int64_t fgi_numbers_held(const fgi_numbers *x) {
    const int64_t each = MOST_TOKENS * (int64_t)(sizeof *x->score + sizeof *x->begin);
    return x->threads * (int64_t)sizeof *x->helpers + x->capacity * each;
}

static void read_part(fgi_numbers *x, int64_t part, fgi_cached *cache) {
    const char *p = x->text + part * FGI_PART, *stop = x->end - p < FGI_PART ? x->end : p + FGI_PART;
    double *score = x->score + part * MOST_TOKENS;
    uint32_t *begin = x->begin + part * MOST_TOKENS;
    int64_t n = 0;
    while (part > 0 && p < stop && !fgi_is_space(p[-1])) p++; /* the rest of a token of the part before */
    for (;;) {
        while (p < stop && fgi_is_space(*p)) p++;
        if (p >= stop) break;
        begin[n] = (uint32_t)(p - x->text);
        const char *q = fgi_number_read(p, x->end, x->log_values, cache, &score[n]);
        if (!q) {
            score[n] = NAN;
            for (q = p; !fgi_is_space(*q);) q++; /* the text ends with one */
        }
        n++;
        p = q;
    }
    x->count[part] = n;
}

static void read_parts(void *context, int64_t begin, int64_t end, int worker) {
    fgi_numbers *x = context;
    for (int64_t part = begin; part < end; part++) read_part(x, part, x->helpers[worker].cache);
}

int64_t fgi_numbers_read(fgi_numbers *x, const char *text, int64_t n) {
    x->text = text;
    x->end = text + n;
    x->n_parts = (n + FGI_PART - 1) / FGI_PART;
    if (x->n_parts > x->capacity) {
        free(x->count);
        free(x->score);
        free(x->begin);
        x->capacity = 0;
        x->count = fgi_alloc(x->n_parts, sizeof *x->count);
        x->score = fgi_alloc(x->n_parts * MOST_TOKENS, sizeof *x->score);
        x->begin = fgi_alloc(x->n_parts * MOST_TOKENS, sizeof *x->begin);
        if (!x->count || !x->score || !x->begin) return 0;
        x->capacity = x->n_parts;
    }
    fgi_pool_run(x->pool, x->n_parts, 1, read_parts, x);
    return x->n_parts;
}

fgi_numbers_part fgi_numbers_at(const fgi_numbers *x, int64_t part) {
    return (fgi_numbers_part){x->count[part], x->score + part * MOST_TOKENS, x->begin + part * MOST_TOKENS};
}
