/* sparsemap/faces.c - the faces of the local polytope that supports span, and projections onto their intersection.
 *
 * While factor f keeps its support S_f, M p_f moves in the span of M (e_s - e_first), s in S_f: an orthonormal basis
 * Q_f by Gram and Schmidt. Nearest in all faces is v - C'nu with C C'nu = C v - c, where C stacks the projections
 * I - Q_f Q_f' onto what a face forbids, and c what the anchors are there: a consistent system, singular or not, which
 * conjugate gradients solve. */
#include "sparsemap/sparsemap.h"
#include <string.h>
#include "base/util.h"

static const double DEPENDENT = 1e-8;  /* length of what is left of a direction, of which each has a length near 1 */
static const double SOLVED = 1e-15;    /* residual of the system, of the largest entry on its right */
static const double CONSISTENT = 1e-9; /* the same; above it there is no solution */
enum {
    MORE_STEPS = 100,  /* steps of conjugate gradients, beyond one for each unknown */
    MOST_STEPS = 20000 /* steps in all */
};

static void add_state(const sm_factor *f, const int32_t *labels, double y, double *out) {
    for (int32_t q = 0; q < f->arity; out += f->cards[q++]) out[labels[q]] += y;
}

/* Takes from v its parts along the basis and adds them to `row`, twice: the second time removes what rounding left. */
static void orthogonalise(const sm_face *face, int64_t dim, double *v, double *row) {
    for (int twice = 0; twice < 2; twice++)
        for (int32_t j = 0; j < face->rank; j++) {
            const double *basis = face->basis + j * dim, along = fgi_dot(basis, v, dim);
            for (int64_t k = 0; k < dim; k++) v[k] -= along * basis[k];
            row[j] += along;
        }
}

static void make_face(const sm_factor *f, const sm_point *p, sm_face *face, double *rows) {
    const int32_t most = p->n - 1;
    face->rank = 0;
    for (int32_t s = 1; s < p->n; s++) {
        double *v = face->basis + face->rank * f->dim, *row = rows + (int64_t)face->rank * most;
        memset(v, 0, (size_t)f->dim * sizeof *v);
        memset(row, 0, (size_t)most * sizeof *row);
        add_state(f, p->labels + (int64_t)s * f->arity, 1, v);
        add_state(f, p->labels, -1, v);
        orthogonalise(face, f->dim, v, row);
        const double length = sqrt(fgi_dot(v, v, f->dim));
        if (length < DEPENDENT || face->rank == f->dim - 1) continue;
        for (int64_t k = 0; k < f->dim; k++) v[k] /= length;
        row[face->rank] = length;
        face->column[face->rank++] = s;
    }
    for (int32_t k = 0; k < face->rank; k++) /* rows as long as the rank is */
        memmove(rows + (int64_t)k * face->rank, rows + (int64_t)k * most, (size_t)face->rank * sizeof *rows);
    face->triangle = rows;
}

fgi_rc sm_faces_make(const fgi_sparse *sparse, const sm_point *points, sm_faces *out) {
    *out = (sm_faces){{0}, NULL, NULL};
    out->at = fgi_take_zero(&out->arena, sparse->n_factors, sm_face);
    out->scratch = fgi_take(&out->arena, sparse->max_dim, double);
    for (int64_t f = 0; f < sparse->n_factors && !out->arena.failed; f++) {
        const sm_factor factor = sm_factor_at(sparse, f, NULL);
        const int64_t most = points[f].n - 1;
        if (most < 1) continue;
        sm_face *face = &out->at[f];
        face->column = fgi_take(&out->arena, most, int32_t);
        face->basis = fgi_take(&out->arena, most * factor.dim, double);
        double *rows = fgi_take(&out->arena, most * most, double);
        if (!out->arena.failed) make_face(&factor, &points[f], face, rows);
    }
    return out->arena.failed ? FGI_NO_MEMORY : FGI_OK;
}

void sm_faces_free(sm_faces *faces) { fgi_arena_free(&faces->arena); }

/* ---- the system ---------------------------------------------------------------------------------------------- */

/* slots = (I - Q Q') (v at the factor's variables - the anchor's labels). */
static void forbid(const sm_face *face, const sm_factor *f, const fgi_sparse *sparse, const double *v,
    const int32_t *anchor, double *slots) {
    double *at = slots;
    for (int32_t q = 0; q < f->arity; at += f->cards[q++])
        memcpy(at, v + sparse->unary_begin[f->vars[q]], (size_t)f->cards[q] * sizeof *v);
    if (anchor) add_state(f, anchor, -1, slots);
    for (int32_t j = 0; j < face->rank; j++) {
        const double *basis = face->basis + j * f->dim, along = fgi_dot(basis, slots, f->dim);
        for (int64_t k = 0; k < f->dim; k++) slots[k] -= along * basis[k];
    }
}

/* slots = C v - c */
static void forbid_all(
    const fgi_sparse *sparse, const sm_faces *faces, const sm_point *anchors, const double *v, double *slots) {
    for (int64_t f = 0; f < sparse->n_factors; f++) {
        const sm_factor factor = sm_factor_at(sparse, f, NULL);
        forbid(&faces->at[f], &factor, sparse, v, anchors ? anchors[f].labels : NULL, slots + sparse->slot_begin[f]);
    }
}

/* v = C'nu, where nu already lies in what faces forbid */
static void spread(const fgi_sparse *sparse, const double *nu, double *v) {
    memset(v, 0, (size_t)sparse->n_labels * sizeof *v);
    for (int64_t f = 0; f < sparse->n_factors; f++) {
        const sm_factor factor = sm_factor_at(sparse, f, NULL);
        for (int32_t q = 0; q < factor.arity; q++) {
            double *at = v + sparse->unary_begin[factor.vars[q]];
            for (int32_t l = 0; l < factor.cards[q]; l++) at[l] += *nu++;
        }
    }
}

static double largest(const double *x, int64_t n) {
    double most = 0;
    for (int64_t k = 0; k < n; k++) most = fgi_larger(most, fabs(x[k]));
    return most;
}

/* Conjugate gradients on C C'nu = r; nu begins at 0. Returns the largest entry of the residual. */
static double conjugate_gradients(
    const fgi_sparse *sparse, const sm_faces *faces, double *nu, double *r, double *p, double *ap, double *v) {
    const int64_t n = sparse->n_slots, most = n + MORE_STEPS < MOST_STEPS ? n + MORE_STEPS : MOST_STEPS;
    const double target = SOLVED * largest(r, n);
    double square = fgi_dot(r, r, n);
    memcpy(p, r, (size_t)n * sizeof *p);
    for (int64_t step = 0; step < most && largest(r, n) > target; step++) {
        spread(sparse, p, v);
        forbid_all(sparse, faces, NULL, v, ap);
        const double curvature = fgi_dot(p, ap, n);
        if (!(curvature > 0)) break;
        const double length = square / curvature;
        for (int64_t k = 0; k < n; k++) {
            nu[k] += length * p[k];
            r[k] -= length * ap[k];
        }
        const double next = fgi_dot(r, r, n);
        for (int64_t k = 0; k < n; k++) p[k] = r[k] + next / square * p[k];
        square = next;
    }
    return largest(r, n);
}

fgi_rc sm_faces_project(
    const fgi_sparse *sparse, sm_faces *faces, const sm_point *points, int anchored, double *v, int *ok) {
    fgi_arena arena = {0};
    double *nu = fgi_take_zero(&arena, sparse->n_slots, double), *r = fgi_take(&arena, sparse->n_slots, double);
    double *p = fgi_take(&arena, sparse->n_slots, double), *ap = fgi_take(&arena, sparse->n_slots, double);
    double *step = fgi_take(&arena, sparse->n_labels, double);
    const fgi_rc rc = arena.failed ? FGI_NO_MEMORY : FGI_OK;
    if (!rc) {
        forbid_all(sparse, faces, anchored ? points : NULL, v, r);
        const double right = largest(r, sparse->n_slots);
        if (right > 0) {
            *ok = conjugate_gradients(sparse, faces, nu, r, p, ap, step) <= CONSISTENT * fgi_larger(right, 1e-300);
            spread(sparse, nu, step);
            for (int64_t k = 0; k < sparse->n_labels; k++) v[k] -= step[k];
        } else {
            *ok = 1;
        }
    }
    fgi_arena_free(&arena);
    return rc;
}

/* ---- states of a face ---------------------------------------------------------------------------------------- */

void sm_face_movement(const sm_face *face, const sm_factor *f, const double *move, double *coefficients, double *y) {
    const int32_t n = face->rank;
    for (int32_t j = 0; j < n; j++) coefficients[j] = fgi_dot(face->basis + j * f->dim, move, f->dim);
    for (int32_t k = n - 1; k >= 0; k--) {
        const double *row = face->triangle + (int64_t)k * n, weight = coefficients[k] / row[k];
        for (int32_t j = 0; j < k; j++) coefficients[j] -= weight * row[j];
        y[face->column[k]] = weight;
        y[0] -= weight;
    }
}

void sm_face_gradient(const sm_face *face, const sm_factor *f, const sm_point *p, double *coefficients, double *out) {
    const int32_t n = face->rank;
    const double first = f->theta[sm_state_index(f, p->labels)];
    for (int32_t k = 0; k < n; k++) {
        const double *row = face->triangle + (int64_t)k * n;
        double rest = f->theta[sm_state_index(f, p->labels + (int64_t)face->column[k] * f->arity)] - first;
        for (int32_t j = 0; j < k; j++) rest -= row[j] * coefficients[j];
        coefficients[k] = rest / row[k];
    }
    for (int32_t j = 0; j < n; j++)
        for (int64_t k = 0; k < f->dim; k++) out[k] += coefficients[j] * face->basis[j * f->dim + k];
}
