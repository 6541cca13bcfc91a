/*
 * fginfer_latent.h - binary atoms: the oracle behind latent feature models and mixtures of regressions.
 *
 *     maximise  |F'z|^2 * scale[number of ones in z]   over z in {0,1}^N,      F an N x r matrix, dense or sparse.
 *
 * With every scale 1 this is z'Cz for the positive semidefinite C = FF', which is never formed: a binary pairwise MAP
 * problem on a complete graph with a low-rank table. Two ways to solve it, which may follow each other:
 *   - the semidefinite relaxation over unit vectors by coordinate ascent ("mixing": Wang, Chang, Kolter 2017), rounded
 *     by random hyperplanes; it also gives an upper bound (fgi_atom_mix_dual);
 *   - local and tabu search in which looking at a flip costs O(r).
 * Every start and every hyperplane has random numbers of its own: results depend on the seed, not on the threads.
 */
#ifndef FGINFER_LATENT_H
#define FGINFER_LATENT_H
#include "fginfer.h"

typedef struct fgi_atom fgi_atom;

/*
 * F by rows: row_begin has n + 1 offsets into cols (ascending within a row, below r) and values; row_begin == NULL says
 * that F is dense, values has n * r entries, row after row, and cols is not looked at. scale has n + 1 entries, each
 * positive or 0, or is NULL (all 1). threads >= 1. Everything is copied. Values must be finite and small enough for
 * their squares to be.
 */
fgi_rc fgi_atom_create(int64_t n, int64_t r, const int64_t *row_begin, const int32_t *cols, const double *values,
    const double *scale, int32_t threads, fgi_atom **out, fgi_error *err);
void fgi_atom_free(fgi_atom *a);
/* From this time of fgi_clock on, searches and sweeps end where they are: their vectors and values are then those of a
 * search that was not finished, still true. INFINITY, as after creation: never. */
void fgi_atom_until(fgi_atom *a, double deadline);

/* |F'z|^2 * scale of a vector of zeros and ones. */
double fgi_atom_value(const fgi_atom *a, const uint8_t *z);

/* ---- the relaxation: without scales --------------------------------------------------------------------------- */

/* Random unit vectors of `rank` dimensions for 1 + n rows: [1'F; F]. rank 0 takes ceil(sqrt(2 n)) + 1. */
fgi_rc fgi_atom_mix_start(fgi_atom *a, int64_t rank, uint64_t seed, fgi_error *err);
/* `sweeps` passes of coordinate ascent, each O(rank * nnz(F)); *value is the relaxation's value after them, which never
 * falls. Needs fgi_atom_mix_start. */
fgi_rc fgi_atom_mix_run(fgi_atom *a, int64_t sweeps, double *value, fgi_error *err);
/* The 1 + n multipliers y_i = |sum_j C_ij v_j| (C of the 1 + n rows): diag(t * y) - C is positive semidefinite for
 * t = lambda_max(C' D(1/y) C), and t * sum(y) / 4 an upper bound on the relaxation, so on every z. */
fgi_rc fgi_atom_mix_dual(const fgi_atom *a, double *y, fgi_error *err);
/* `count` random hyperplanes; row h of z (count x n) is the rounding by hyperplane h. */
fgi_rc fgi_atom_mix_round(const fgi_atom *a, int64_t count, uint64_t seed, uint8_t *z, fgi_error *err);

/* ---- search ------------------------------------------------------------------------------------------------- */

/*
 * Improves `count` starts (rows of z, in place) and gives their values. First flips, until none improves; then, with
 * tabu_steps > 0, that many steps of tabu search, each to the best of `candidates` random flips (0: all n; a flip may
 * come back only after a while, or to a new best), then flips again from the best vector seen. `first` is the number of
 * the first start: many starts in parts, each with its numbers, are the same as all of them at once.
 */
fgi_rc fgi_atom_search(const fgi_atom *a, uint8_t *z, int64_t first, int64_t count, int64_t tabu_steps,
    int64_t candidates, uint64_t seed, double *values, fgi_error *err);

#endif
