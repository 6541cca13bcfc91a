/* latent/atom.c - see fginfer_latent.h: the matrix, its checks, and the value of a vector. */
#include "latent/atom.h"
#include <string.h>

static fgi_rc check_rows(int64_t n, int64_t r, const int64_t *begin, const int32_t *cols, fgi_error *err) {
    if (begin[0] != 0) return fgi_fail(err, FGI_BAD_ARGUMENT, 0, "the first row begins at %lld", (long long)begin[0]);
    for (int64_t i = 0; i < n; i++)
        if (begin[i + 1] < begin[i])
            return fgi_fail(err, FGI_BAD_ARGUMENT, i, "row %lld ends before it begins", (long long)i);
    for (int64_t i = 0; i < n; i++)
        for (int64_t p = begin[i]; p < begin[i + 1]; p++)
            if (cols[p] < 0 || cols[p] >= r || (p > begin[i] && cols[p] <= cols[p - 1]))
                return fgi_fail(err, FGI_BAD_ARGUMENT, i, "columns of row %lld are not ascending numbers below %lld",
                    (long long)i, (long long)r);
    return FGI_OK;
}

static fgi_rc check_values(const double *values, int64_t entries, const double *scale, int64_t n, fgi_error *err) {
    double total = 0;
    for (int64_t p = 0; p < entries; p++) total += values[p] * values[p];
    /* (1'F)(1'F)' and all sums stay below n * total * n. */
    if (!(total * (double)n * (double)n < 1e300))
        return fgi_fail(err, FGI_BAD_MODEL, -1, "F has entries that are not finite, or too large to be squared");
    for (int64_t k = 0; scale && k <= n; k++)
        if (!(scale[k] >= 0 && scale[k] < INFINITY))
            return fgi_fail(err, FGI_BAD_ARGUMENT, k, "scale %lld is not a non-negative number", (long long)k);
    return FGI_OK;
}

fgi_rc fgi_atom_create(int64_t n, int64_t r, const int64_t *row_begin, const int32_t *cols, const double *values,
    const double *scale, int32_t threads, fgi_atom **out, fgi_error *err) {
    int64_t entries;
    fgi_rc rc = FGI_OK;
    if (n < 1 || r < 1 || r > INT32_MAX || threads < 1)
        return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "n, r and threads must be at least 1");
    if (!fgi_mul(n, r, &entries)) return fgi_fail(err, FGI_NO_MEMORY, -1, "F is too large");
    if (row_begin) {
        rc = check_rows(n, r, row_begin, cols, err);
        entries = row_begin[n];
    }
    if (!rc) rc = check_values(values, entries, scale, n, err);
    if (rc) return rc;
    fgi_atom *a = fgi_calloc(1, sizeof *a);
    if (!a) return fgi_no_memory(err);
    a->n = n;
    a->r = r;
    a->threads = threads;
    a->deadline = INFINITY;
    a->values = fgi_arena_copy(&a->arena, values, entries, sizeof *values);
    a->square = fgi_take(&a->arena, n, double);
    if (row_begin) {
        a->begin = fgi_arena_copy(&a->arena, row_begin, n + 1, sizeof *row_begin);
        a->cols = fgi_arena_copy(&a->arena, cols, entries, sizeof *cols);
    }
    if (scale) a->scale = fgi_arena_copy(&a->arena, scale, n + 1, sizeof *scale);
    a->pool = fgi_pool_create(threads);
    if (a->arena.failed || (threads > 1 && !a->pool)) {
        fgi_atom_free(a);
        return fgi_no_memory(err);
    }
    for (int64_t i = 0; i < n; i++) {
        const fgi_row f = fgi_atom_row(a, i);
        a->square[i] = fgi_dot(f.values, f.values, f.n);
    }
    *out = a;
    return FGI_OK;
}

void fgi_atom_until(fgi_atom *a, double deadline) { a->deadline = deadline; }

void fgi_atom_free(fgi_atom *a) {
    if (!a) return;
    fgi_pool_free(a->pool);
    fgi_arena_free(&a->arena);
    fgi_arena_free(&a->mixing);
    free(a);
}

int64_t fgi_atom_sum(const fgi_atom *a, const uint8_t *z, double *sum) {
    int64_t ones = 0;
    memset(sum, 0, (size_t)a->r * sizeof *sum);
    for (int64_t i = 0; i < a->n; i++) {
        if (!z[i]) continue;
        fgi_row_add(fgi_atom_row(a, i), 1, sum);
        ones++;
    }
    return ones;
}

double fgi_atom_value(const fgi_atom *a, const uint8_t *z) {
    double *sum = fgi_alloc(a->r, sizeof *sum);
    if (!sum) return NAN;
    const int64_t ones = fgi_atom_sum(a, z, sum);
    const double square = fgi_dot(sum, sum, a->r);
    free(sum);
    return a->scale ? square * a->scale[ones] : square;
}

fgi_rng fgi_rng_of(uint64_t seed, int64_t index) {
    fgi_rng r = {seed};
    r.state = fgi_rng_next(&r) ^ (0xD1B54A32D192ED03u * (uint64_t)(index + 1));
    return (fgi_rng){fgi_rng_next(&r)};
}

double fgi_rng_normal(fgi_rng *r) { /* Box and Muller; the second number is not kept, to have no state */
    const double u = 1 - fgi_rng_unit(r), v = fgi_rng_unit(r);
    return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}
