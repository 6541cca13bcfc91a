/* sparsemap/sparsemap.h - what the files of LP-SparseMAP share: structures, factors, sparse points, faces.
 *
 * Invariants of a point: its states are distinct and affinely independent in their indicators; y is positive up to
 * states that have just joined, and sums to 1. */
#ifndef FGI_SPARSEMAP_H
#define FGI_SPARSEMAP_H
#include <math.h>
#include "base/assert.h"
#include "base/arena.h"
#include "fginfer_sparsemap.h"

struct fgi_sparse {
    int64_t n_vars, n_factors, n_labels, n_states, n_slots;
    int32_t max_arity, max_card;
    int64_t max_dim; /* labels of the variables of one factor, at most */
    int32_t *cards;
    int64_t *unary_begin; /* n_vars + 1 */
    int64_t *var_begin;   /* n_factors + 1 */
    int32_t *vars, *var_cards;
    int64_t *state_begin, *slot_begin; /* n_factors + 1 */
    int32_t *degree;                   /* factors of a variable */
    int32_t *links;                    /* the same, but 0 where its only factor is lone */
    uint8_t *lone;                     /* by factor: its variables are in no other */
    fgi_arena arena;
};

typedef struct sm_factor {
    int32_t arity;
    int64_t dim;
    const int32_t *vars, *cards;
    const double *theta; /* NULL where scores are not asked for */
} sm_factor;

typedef struct sm_point {
    int32_t n, capacity;
    int32_t *labels; /* n * arity */
    double *y;
} sm_point;

static inline sm_factor sm_factor_at(const fgi_sparse *sparse, int64_t f, const double *table) {
    fgi_assert(f >= 0 && f < sparse->n_factors);
    const int64_t at = sparse->var_begin[f];
    return (sm_factor){(int32_t)(sparse->var_begin[f + 1] - at), sparse->slot_begin[f + 1] - sparse->slot_begin[f],
        sparse->vars + at, sparse->var_cards + at, table ? table + sparse->state_begin[f] : NULL};
}

static inline int64_t sm_state_index(const sm_factor *f, const int32_t *labels) {
    int64_t at = 0;
    for (int32_t q = 0; q < f->arity; q++) {
        fgi_assert(labels[q] >= 0 && labels[q] < f->cards[q]);
        at = at * f->cards[q] + labels[q];
    }
    return at;
}

fgi_rc sm_point_append(sm_point *p, int32_t arity, const int32_t *labels, double y);
/* A point for every factor from the states given; to be freed with sm_points_free, whatever is returned. */
fgi_rc sm_points_read(const fgi_sparse *sparse, const double *states, sm_point **out);
void sm_points_write(const fgi_sparse *sparse, const sm_point *points, double *states);
void sm_points_free(const fgi_sparse *sparse, sm_point *points);

/* Scratch of a factor step. */
typedef struct sm_work {
    int64_t capacity;
    double *matrix, *rhs, *solution;
    double *residual; /* max_dim */
    int32_t *state;   /* max_arity */
} sm_work;

/* y = argmin over the simplex of 1/2 |M y - z|^2 - theta.y / rho, z the labels of the factor's variables one after the
 * other, from the point given (n == 0: from scratch). FGI_UNSUPPORTED: no state is allowed. */
fgi_rc sm_factor_step(sm_work *w, const sm_factor *f, const double *z, double rho, sm_point *p);
void sm_work_free(sm_work *w); /* its systems */

/* Faces: for every factor an orthonormal basis of the directions in which M p can move while p keeps its support. */
typedef struct sm_face {
    int32_t rank;
    int32_t *column;  /* rank: states of the support, the first left out, that the basis was made from */
    double *basis;    /* rank * dim: a row each */
    double *triangle; /* rank * rank: a row for each of `column`, its direction in the basis */
} sm_face;

typedef struct sm_faces {
    fgi_arena arena;
    sm_face *at;     /* by factor */
    double *scratch; /* max_dim */
} sm_faces;

fgi_rc sm_faces_make(const fgi_sparse *sparse, const sm_point *points, sm_faces *out);
void sm_faces_free(sm_faces *faces);
/* v becomes the nearest point to it in the intersection of all faces; if `anchored` they go through M e of each point's
 * first state, else through 0. *ok: 0 where that is empty, or was not found. */
fgi_rc sm_faces_project(
    const fgi_sparse *sparse, sm_faces *faces, const sm_point *points, int anchored, double *v, int *ok);
/* The movement of a point's y by which M p moves by `move`, which lies in the face. */
void sm_face_movement(const sm_face *face, const sm_factor *f, const double *move, double *coefficients, double *y);
/* Adds to `out` (labels of the factor's variables) the gradient of theta.p in the face. */
void sm_face_gradient(const sm_face *face, const sm_factor *f, const sm_point *p, double *coefficients, double *out);

/* The exact answer on the supports of the points, if it lies near `marginals` and no share in it is negative: both are
 * replaced. Else nothing is changed and *ok is 0. */
fgi_rc sm_polish(const fgi_sparse *sparse, const double *unary, const double *table, double tolerance, sm_point *points,
    double *marginals, int *ok);

#endif
