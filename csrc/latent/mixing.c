/* latent/mixing.c - the semidefinite relaxation of the atom problem over unit vectors.
 *
 *     max  1/4 sum_ij C_ij v_i.v_j   over unit vectors v_0 .. v_n,    C = G G', G = [1'F; F]
 *
 * whose value at v_i = +-1 is |F'z|^2 for z_i = [v_i = v_0]. Given the others the best v_i points along
 * sum_{j != i} C_ij v_j; with the moment sum_j G_j' v_j (r x rank) kept up to date that costs O(rank * nnz(row i)).
 * From rank ceil(sqrt(2 n)) + 1 on, local optima are global (Barvinok; Pataki; Wang, Chang and Kolter 2017). */
#include <string.h>
#include "latent/atom.h"

/* Row 0 is the sum of all rows. */
static fgi_row mixed_row(const fgi_atom *a, int64_t i) {
    return i == 0 ? (fgi_row){a->ones, NULL, a->r} : fgi_atom_row(a, i - 1);
}

static double mixed_square(const fgi_atom *a, int64_t i) {
    return i == 0 ? fgi_dot(a->ones, a->ones, a->r) : a->square[i - 1];
}

/* out = row * moment, a vector of `rank` entries. */
static void pull(const fgi_atom *a, fgi_row f, double *out) {
    memset(out, 0, (size_t)a->rank * sizeof *out);
    for (int64_t p = 0; p < f.n; p++) {
        const double *m = a->moment + (f.cols ? f.cols[p] : p) * a->rank, x = f.values[p];
        if (x == 0) continue;
        for (int64_t d = 0; d < a->rank; d++) out[d] += x * m[d];
    }
}

/* moment += row' * change. */
static void push(fgi_atom *a, fgi_row f, const double *change) {
    for (int64_t p = 0; p < f.n; p++) {
        double *m = a->moment + (f.cols ? f.cols[p] : p) * a->rank;
        const double x = f.values[p];
        if (x == 0) continue;
        for (int64_t d = 0; d < a->rank; d++) m[d] += x * change[d];
    }
}

static double normalise(double *v, int64_t n) {
    const double length = sqrt(fgi_dot(v, v, n));
    for (int64_t d = 0; length > 0 && d < n; d++) v[d] /= length;
    return length;
}

static void recompute_moment(fgi_atom *a) {
    memset(a->moment, 0, (size_t)(a->r * a->rank) * sizeof *a->moment);
    for (int64_t i = 0; i <= a->n; i++) push(a, mixed_row(a, i), a->vectors + i * a->rank);
}

fgi_rc fgi_atom_mix_start(fgi_atom *a, int64_t rank, uint64_t seed, fgi_error *err) {
    int64_t vectors, moment;
    if (rank < 0) return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "rank must not be negative");
    if (rank == 0) rank = (int64_t)ceil(sqrt(2.0 * (double)a->n)) + 1;
    if (!fgi_mul(a->n + 1, rank, &vectors) || !fgi_mul(a->r, rank, &moment))
        return fgi_fail(err, FGI_NO_MEMORY, -1, "the relaxation is too large");
    fgi_arena_free(&a->mixing);
    a->rank = 0;
    a->ones = fgi_take_zero(&a->mixing, a->r, double);
    a->vectors = fgi_take(&a->mixing, vectors, double);
    a->moment = fgi_take(&a->mixing, moment, double);
    a->direction = fgi_take(&a->mixing, rank, double);
    if (a->mixing.failed) return fgi_no_memory(err);
    a->rank = rank;
    for (int64_t i = 0; i < a->n; i++) fgi_row_add(fgi_atom_row(a, i), 1, a->ones);
    fgi_rng rng = fgi_rng_of(seed, 0);
    for (int64_t i = 0; i <= a->n; i++) {
        double *v = a->vectors + i * rank;
        do {
            for (int64_t d = 0; d < rank; d++) v[d] = fgi_rng_normal(&rng);
        } while (normalise(v, rank) == 0);
    }
    recompute_moment(a);
    return FGI_OK;
}

static void improve(fgi_atom *a, int64_t i) {
    double *v = a->vectors + i * a->rank, *to = a->direction;
    const fgi_row f = mixed_row(a, i);
    const double own = mixed_square(a, i);
    pull(a, f, to);
    for (int64_t d = 0; d < a->rank; d++) to[d] -= own * v[d];
    if (normalise(to, a->rank) == 0) return; /* nothing pulls: any vector is best */
    for (int64_t d = 0; d < a->rank; d++) {
        const double next = to[d];
        to[d] = next - v[d];
        v[d] = next;
    }
    push(a, f, to);
}

fgi_rc fgi_atom_mix_run(fgi_atom *a, int64_t sweeps, double *value, fgi_error *err) {
    fgi_meter meter = fgi_atom_meter(a);
    int over = fgi_meter_over(&meter);
    if (a->rank == 0) return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "the relaxation has not been started");
    for (int64_t s = 0; s < sweeps && !over; s++) {
        for (int64_t i = 0; i <= a->n && !over; i++) {
            improve(a, i);
            over = fgi_meter_spend(&meter, 2 * a->rank * mixed_row(a, i).n);
        }
        recompute_moment(a); /* half as much work again: updates must not add up their rounding errors */
    }
    *value = fgi_dot(a->moment, a->moment, a->r * a->rank) / 4;
    return FGI_OK;
}

fgi_rc fgi_atom_mix_dual(const fgi_atom *a, double *y, fgi_error *err) {
    if (a->rank == 0) return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "the relaxation has not been started");
    double *pulled = fgi_alloc(a->rank, sizeof *pulled);
    if (!pulled) return fgi_no_memory(err);
    for (int64_t i = 0; i <= a->n; i++) {
        pull(a, mixed_row(a, i), pulled);
        y[i] = sqrt(fgi_dot(pulled, pulled, a->rank));
    }
    free(pulled);
    return FGI_OK;
}

/* ---- rounding ------------------------------------------------------------------------------------------------- */

typedef struct rounding {
    const fgi_atom *atom;
    const double *normals; /* count x rank */
    uint8_t *z;
} rounding;

static void round_some(void *context, int64_t begin, int64_t end, int worker) {
    const rounding *t = context;
    const fgi_atom *a = t->atom;
    (void)worker;
    for (int64_t h = begin; h < end; h++) {
        const double *normal = t->normals + h * a->rank;
        const int side = fgi_dot(a->vectors, normal, a->rank) > 0;
        for (int64_t i = 0; i < a->n; i++)
            t->z[h * a->n + i] = (fgi_dot(a->vectors + (i + 1) * a->rank, normal, a->rank) > 0) == side;
    }
}

fgi_rc fgi_atom_mix_round(const fgi_atom *a, int64_t count, uint64_t seed, uint8_t *z, fgi_error *err) {
    int64_t entries;
    if (a->rank == 0) return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "the relaxation has not been started");
    if (count < 0) return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "count must not be negative");
    double *normals = fgi_mul(count, a->rank, &entries) ? fgi_alloc(entries, sizeof *normals) : NULL;
    if (!normals) return fgi_no_memory(err);
    for (int64_t h = 0; h < count; h++) {
        fgi_rng rng = fgi_rng_of(seed, h);
        for (int64_t d = 0; d < a->rank; d++) normals[h * a->rank + d] = fgi_rng_normal(&rng);
    }
    rounding t = {a, normals, z};
    fgi_pool_run(a->pool, count, 1, round_some, &t);
    free(normals);
    return FGI_OK;
}
