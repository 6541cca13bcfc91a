/* learn/crf/nbest.c - the n best labelings of a chain: dynamic programming over ranked partial labelings. A label keeps
 * the n best that end in it; memory is tokens x labels x n places. */
#include <string.h>
#include "learn/crf/crf.h"

typedef struct ranked { /* up to n partial labelings for each of k ends, best first */
    int64_t n;
    int64_t *count;
    double *value; /* k x n */
} ranked;

/* Puts (value, place) where it belongs among the first n of a list; equal ones stay before it. */
static void insert(double *values, int32_t *places, int64_t *count, int64_t n, double value, int32_t place) {
    int64_t at = *count < n ? (*count)++ : n - 1;
    for (; at > 0 && values[at - 1] < value; at--) {
        values[at] = values[at - 1];
        places[at] = places[at - 1];
    }
    values[at] = value;
    places[at] = place;
}

/* From the labelings that end in each label to those one token longer; table NULL: all pairs score 0. */
static void extend(const ranked *from, ranked *to, int32_t *back, int64_t k, const double *table, const double *score) {
    const int64_t n = to->n;
    memset(to->count, 0, (size_t)k * sizeof(int64_t));
    for (int64_t a = 0; a < k; a++)
        for (int64_t r = 0; r < from->count[a]; r++) {
            const double value = from->value[a * n + r], *row = table ? table + a * k : NULL;
            for (int64_t b = 0; b < k; b++) {
                const double reach = row ? value + row[b] : value;
                const int full = to->count[b] == n;
                if (reach > (full ? to->value[b * n + n - 1] : -INFINITY) && score[b] > -INFINITY)
                    insert(to->value + b * n, back + b * n, &to->count[b], n, reach, (int32_t)(a * n + r));
            }
        }
    for (int64_t b = 0; b < k; b++)
        for (int64_t r = 0; r < to->count[b]; r++) to->value[b * n + r] += score[b];
}

fgi_rc fgi_crf_nbest(int64_t tokens, int64_t k, const double *scores, const double *tables, const int64_t *which,
    int64_t n, int32_t *labels, double *values, int64_t *found, fgi_error *err) {
    int64_t places, room;
    *found = 0;
    if (tokens < 1 || k < 1 || n < 1)
        return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "there must be a token, a label, and a number of labelings");
    if (!fgi_mul(k, n, &places) || places > INT32_MAX || !fgi_mul(places, tokens, &room))
        return fgi_fail(err, FGI_NO_MEMORY, -1, "so many labelings of so many labels do not fit into memory");
    ranked now = {n, fgi_calloc(k, sizeof(int64_t)), fgi_alloc(places, sizeof(double))};
    ranked next = {n, fgi_calloc(k, sizeof(int64_t)), fgi_alloc(places, sizeof(double))};
    int32_t *back = fgi_alloc(room, sizeof(int32_t)), *ends = fgi_alloc(n, sizeof(int32_t));
    fgi_rc rc = FGI_OK;
    if (!now.count || !now.value || !next.count || !next.value || !back || !ends) rc = fgi_no_memory(err);
    for (int64_t b = 0; !rc && b < k; b++) {
        now.value[b * n] = scores[b];
        now.count[b] = scores[b] > -INFINITY;
    }
    for (int64_t t = 1; !rc && t < tokens; t++) {
        const double *table = tables ? tables + which[t - 1] * k * k : NULL;
        extend(&now, &next, back + t * places, k, table, scores + t * k);
        const ranked other = now;
        now = next, next = other;
    }
    for (int64_t b = 0; !rc && b < k; b++)
        for (int64_t r = 0; r < now.count[b]; r++)
            if (*found < n || now.value[b * n + r] > values[n - 1])
                insert(values, ends, found, n, now.value[b * n + r], (int32_t)(b * n + r));
    for (int64_t i = 0; !rc && i < *found; i++) {
        int64_t state = ends[i];
        for (int64_t t = tokens - 1; t >= 0; t--) {
            labels[i * tokens + t] = (int32_t)(state / n);
            if (t) state = back[t * places + state];
        }
    }
    free(now.count), free(now.value), free(next.count), free(next.value), free(back), free(ends);
    return rc;
}
