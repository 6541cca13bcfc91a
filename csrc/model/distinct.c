/* model/distinct.c - see model/distinct.h. */
#include "model/distinct.h"
#include <string.h>
#include "base/util.h"

static uint64_t mix(uint64_t h, uint64_t x) {
    h = (h ^ x) * 0x9E3779B97F4A7C15u;
    return h ^ (h >> 29);
}

static uint64_t hash_table(const double *values, int64_t n, const int32_t *dims, int64_t arity) {
    uint64_t h[4] = {1, 2, 3, 4}, x[4];
    int64_t k = 0;
    for (; k + 4 <= n; k += 4) { /* four independent chains keep the multiplier busy */
        memcpy(x, values + k, sizeof x);
        for (int c = 0; c < 4; c++) h[c] = mix(h[c], x[c]);
    }
    for (; k < n; k++) {
        memcpy(x, values + k, sizeof x[0]);
        h[0] = mix(h[0], x[0]);
    }
    uint64_t all = mix(mix(mix(h[0], h[1]), h[2]), h[3]);
    for (int64_t a = 0; a < arity; a++) all = mix(all, (uint64_t)dims[a]);
    return mix(all, (uint64_t)arity);
}

static uint64_t hash_of(const fgi_distinct *d, int64_t t) { return ((const uint64_t *)d->hash.at)[t]; }

static int grow_slots(fgi_distinct *d) {
    int64_t n = d->n_slots ? 2 * d->n_slots : 1024;
    int32_t *slots = fgi_alloc(n, sizeof *slots);
    if (!slots) return 0;
    memset(slots, 0xFF, (size_t)n * sizeof *slots);
    for (int64_t t = 0; t < d->arity.n; t++) {
        int64_t at = (int64_t)(hash_of(d, t) & (uint64_t)(n - 1));
        while (slots[at] >= 0) at = (at + 1) & (n - 1);
        slots[at] = (int32_t)t;
    }
    free(d->slots);
    d->slots = slots;
    d->n_slots = n;
    return 1;
}

static int same_table(
    const fgi_distinct *d, int64_t t, const double *values, int64_t n, const int32_t *dims, int64_t arity) {
    const int32_t *known = (const int32_t *)d->dims.at + ((const int64_t *)d->dims_begin.at)[t];
    const double *entries = (const double *)d->values.at + ((const int64_t *)d->values_begin.at)[t];
    return ((const int32_t *)d->arity.at)[t] == arity && !memcmp(known, dims, (size_t)arity * sizeof *dims) &&
        !memcmp(entries, values, (size_t)n * sizeof *values);
}

/* The slot of the table with these values, or the free one where it would be. */
static int64_t find_slot(
    const fgi_distinct *d, uint64_t hash, const double *values, int64_t n, const int32_t *dims, int64_t arity) {
    int64_t at = (int64_t)(hash & (uint64_t)(d->n_slots - 1));
    for (; d->slots[at] >= 0; at = (at + 1) & (d->n_slots - 1)) {
        const int32_t t = d->slots[at];
        if (hash_of(d, t) == hash && same_table(d, t, values, n, dims, arity)) break;
    }
    return at;
}

/* The table that equals the last n values when those are transposed; -1: none, -2: out of memory. */
static int32_t find_turned(fgi_distinct *d, const int32_t *dims, int64_t n) {
    d->turned.n = 0;
    if (!fgi_array_reserve(&d->turned, n, sizeof(double))) return -2;
    const double *values = (const double *)d->values.at + (d->values.n - n);
    double *turned = d->turned.at;
    const int32_t other[2] = {dims[1], dims[0]};
    for (int64_t a = 0; a < dims[0]; a++)
        for (int64_t b = 0; b < dims[1]; b++) turned[b * dims[0] + a] = values[a * dims[1] + b];
    return d->slots[find_slot(d, hash_table(turned, n, other, 2), turned, n, other, 2)];
}

int32_t fgi_distinct_store(fgi_distinct *d, const int32_t *sizes, int64_t arity, int64_t n, int *turned) {
    if (!fgi_array_reserve(&d->dims, arity, sizeof(int32_t))) return -1;
    if (2 * (d->arity.n + 1) > d->n_slots && !grow_slots(d)) return -1;
    int32_t *dims = (int32_t *)d->dims.at + d->dims.n;
    const double *values = (const double *)d->values.at + (d->values.n - n);
    memcpy(dims, sizes, (size_t)arity * sizeof *dims);
    const uint64_t hash = hash_table(values, n, dims, arity);
    const int64_t at = find_slot(d, hash, values, n, dims, arity);
    int32_t known = d->slots[at];
    if (turned) *turned = 0;
    if (known < 0 && turned && arity == 2) {
        known = find_turned(d, dims, n);
        if (known == -2) return -1;
        *turned = known >= 0;
    }
    if (known >= 0) {
        d->values.n -= n;
        return known;
    }
    int32_t t = (int32_t)d->arity.n;
    if (!fgi_array_push_i64(&d->values_begin, d->values.n - n) || !fgi_array_push_i64(&d->dims_begin, d->dims.n))
        return -1;
    if (!fgi_array_push_i64(&d->hash, (int64_t)hash) || !fgi_array_push_i32(&d->arity, (int32_t)arity)) return -1;
    d->dims.n += arity;
    d->slots[at] = t;
    return t;
}

int32_t fgi_distinct_store_of(
    fgi_distinct *d, const int32_t *cards, const int32_t *vars, int64_t arity, int64_t n, int *turned) {
    d->sizes.n = 0;
    for (int64_t k = 0; k < arity; k++)
        if (!fgi_array_push_i32(&d->sizes, cards[vars[k]])) return -1;
    return fgi_distinct_store(d, d->sizes.at, arity, n, turned);
}

void fgi_distinct_shrink(fgi_distinct *d) {
    fgi_array_free(&d->values_begin);
    fgi_array_free(&d->dims_begin);
    fgi_array_free(&d->hash);
    fgi_array_free(&d->turned);
    fgi_array_free(&d->sizes);
    free(d->slots);
    d->slots = NULL;
    d->n_slots = 0;
    if (d->values.n) (void)fgi_resize(&d->values.at, d->values.n, sizeof(double)); /* no matter if it fails */
}

void fgi_distinct_clear(fgi_distinct *d) {
    fgi_distinct_shrink(d);
    fgi_array_free(&d->arity);
    fgi_array_free(&d->dims);
    fgi_array_free(&d->values);
}
