/* sparsemap/polish.c - the answer of LP-SparseMAP on known supports, and its derivative.
 *
 * On the supports theta_f.p_f is linear in M p_f: with its gradient t_f in the face, mu is the projection of
 * theta + sum_f t_f onto the intersection of the faces. The derivative of that is the projection onto their directions,
 * which is symmetric: d unary = P g, and d table what moves the states so that M p moves by P g. */
#include "sparsemap/sparsemap.h"
#include <string.h>
#include "base/util.h"

static const double SAME = 100;      /* the answer on the supports lies within so many tolerances of that of the ADMM */
static const double ROUNDING = 1e-9; /* a share below 0 by more says that the support was another one */

/* The labels of a factor's variables, one after the other. */
static void gather(const fgi_sparse *sparse, const sm_factor *f, const double *v, double *out) {
    for (int32_t q = 0; q < f->arity; out += f->cards[q++])
        memcpy(out, v + sparse->unary_begin[f->vars[q]], (size_t)f->cards[q] * sizeof *v);
}

static void scatter(const fgi_sparse *sparse, const sm_factor *f, const double *in, double *v) {
    for (int32_t q = 0; q < f->arity; q++)
        for (int32_t l = 0; l < f->cards[q]; l++) v[sparse->unary_begin[f->vars[q]] + l] += *in++;
}

/* theta + sum_f t_f. Labels that are forbidden are in no support: any number does. */
static void target(const fgi_sparse *sparse, const sm_faces *faces, const sm_point *points, const double *unary,
    const double *table, double *coefficients, double *v) {
    for (int64_t k = 0; k < sparse->n_labels; k++) v[k] = unary[k] == -INFINITY ? 0 : unary[k];
    for (int64_t f = 0; f < sparse->n_factors; f++) {
        const sm_factor factor = sm_factor_at(sparse, f, table);
        memset(faces->scratch, 0, (size_t)factor.dim * sizeof(double));
        sm_face_gradient(&faces->at[f], &factor, &points[f], coefficients, faces->scratch);
        scatter(sparse, &factor, faces->scratch, v);
    }
}

/* Shares of a factor's states for marginals in its face; 0: one is negative. */
static int shares(const fgi_sparse *sparse, const sm_faces *faces, int64_t f, const sm_point *p, const double *mu,
    double *coefficients, double *y) {
    const sm_factor factor = sm_factor_at(sparse, f, NULL);
    double *move = faces->scratch;
    gather(sparse, &factor, mu, move);
    for (int32_t q = 0, at = 0; q < factor.arity; at += factor.cards[q++]) move[at + p->labels[q]] -= 1;
    memset(y, 0, (size_t)p->n * sizeof *y);
    y[0] = 1;
    sm_face_movement(&faces->at[f], &factor, move, coefficients, y);
    for (int32_t k = 0; k < p->n; k++)
        if (y[k] < -ROUNDING) return 0;
    return 1;
}

static int64_t most_states(const fgi_sparse *sparse, const sm_point *points) {
    int64_t most = 1;
    for (int64_t f = 0; f < sparse->n_factors; f++)
        if (points[f].n > most) most = points[f].n;
    return most;
}

/* With the supports of the points; writes them only if all is well. */
static void take(const fgi_sparse *sparse, const sm_faces *faces, double tolerance, double *mu, double *coefficients,
    double *y, sm_point *points, double *marginals, int *ok) {
    for (int64_t k = 0; k < sparse->n_labels; k++) {
        if (fabs(mu[k] - marginals[k]) > SAME * tolerance) *ok = 0;
        mu[k] = fgi_larger(mu[k], 0);
    }
    for (int64_t f = 0; f < sparse->n_factors && *ok; f++)
        *ok = shares(sparse, faces, f, &points[f], mu, coefficients, y);
    if (!*ok) return;
    for (int64_t f = 0; f < sparse->n_factors; f++) {
        shares(sparse, faces, f, &points[f], mu, coefficients, y);
        for (int32_t k = 0; k < points[f].n; k++) points[f].y[k] = fgi_larger(y[k], 0);
    }
    memcpy(marginals, mu, (size_t)sparse->n_labels * sizeof *mu);
}

fgi_rc sm_polish(const fgi_sparse *sparse, const double *unary, const double *table, double tolerance, sm_point *points,
    double *marginals, int *ok) {
    sm_faces faces;
    fgi_arena arena = {0};
    const int64_t most = most_states(sparse, points);
    double *coefficients = fgi_take(&arena, most, double), *y = fgi_take(&arena, most, double);
    double *mu = fgi_take(&arena, sparse->n_labels, double);
    fgi_rc rc = sm_faces_make(sparse, points, &faces);
    if (arena.failed) rc = FGI_NO_MEMORY;
    *ok = 0;
    if (!rc) {
        target(sparse, &faces, points, unary, table, coefficients, mu);
        rc = sm_faces_project(sparse, &faces, points, 1, mu, ok);
    }
    for (int64_t i = 0; i < sparse->n_vars && *ok; i++)
        if (sparse->degree[i] == 0)
            memcpy(
                mu + sparse->unary_begin[i], marginals + sparse->unary_begin[i], (size_t)sparse->cards[i] * sizeof *mu);
    if (*ok) take(sparse, &faces, tolerance, mu, coefficients, y, points, marginals, ok);
    sm_faces_free(&faces);
    fgi_arena_free(&arena);
    return rc;
}

/* ---- the derivative ------------------------------------------------------------------------------------------ */

/* A variable without factors moves within the simplex of its own support. */
static void project_free(const fgi_sparse *sparse, const double *marginals, double *v) {
    for (int64_t i = 0; i < sparse->n_vars; i++) {
        if (sparse->degree[i]) continue;
        double sum = 0, n = 0;
        for (int64_t k = sparse->unary_begin[i]; k < sparse->unary_begin[i + 1]; k++)
            if (marginals[k] > 0) sum += v[k], n++;
        for (int64_t k = sparse->unary_begin[i]; k < sparse->unary_begin[i + 1]; k++)
            v[k] = marginals[k] > 0 ? v[k] - sum / n : 0;
    }
}

static void write_states(const fgi_sparse *sparse, const sm_faces *faces, const sm_point *points, const double *v,
    double *coefficients, double *y, double *d_table) {
    memset(d_table, 0, (size_t)sparse->n_states * sizeof *d_table);
    for (int64_t f = 0; f < sparse->n_factors; f++) {
        const sm_factor factor = sm_factor_at(sparse, f, NULL);
        const sm_point *p = &points[f];
        gather(sparse, &factor, v, faces->scratch);
        memset(y, 0, (size_t)p->n * sizeof *y);
        sm_face_movement(&faces->at[f], &factor, faces->scratch, coefficients, y);
        for (int32_t k = 0; k < p->n; k++)
            d_table[sparse->state_begin[f] + sm_state_index(&factor, p->labels + (int64_t)k * factor.arity)] = y[k];
    }
}

fgi_rc fgi_sparse_adjoint(const fgi_sparse *sparse, const double *marginals, const double *states,
    const double *gradient, double *d_unary, double *d_table, fgi_error *err) {
    sm_faces faces = {{0}, NULL, NULL};
    fgi_arena arena = {0};
    sm_point *points = NULL;
    int ok = 1;
    fgi_rc rc = sm_points_read(sparse, states, &points);
    for (int64_t f = 0; !rc && f < sparse->n_factors; f++)
        if (points[f].n == 0) rc = fgi_fail(err, FGI_BAD_ARGUMENT, f, "factor %lld has no state", (long long)f);
    if (!rc) rc = sm_faces_make(sparse, points, &faces);
    const int64_t most = rc ? 1 : most_states(sparse, points);
    double *coefficients = fgi_take(&arena, most, double), *y = fgi_take(&arena, most, double);
    if (!rc && arena.failed) rc = FGI_NO_MEMORY;
    if (!rc) {
        memcpy(d_unary, gradient, (size_t)sparse->n_labels * sizeof *d_unary);
        rc = sm_faces_project(sparse, &faces, points, 0, d_unary, &ok);
        project_free(sparse, marginals, d_unary);
    }
    if (!rc) write_states(sparse, &faces, points, d_unary, coefficients, y, d_table);
    sm_faces_free(&faces);
    fgi_arena_free(&arena);
    sm_points_free(sparse, points);
    return rc == FGI_NO_MEMORY ? fgi_no_memory(err) : rc;
}
