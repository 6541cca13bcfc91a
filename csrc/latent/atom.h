/* latent/atom.h - the matrix F by rows, and what the relaxation and the search share. */
#ifndef FGI_ATOM_H
#define FGI_ATOM_H
#include "base/arena.h"
#include "base/meter.h"
#include "base/pool.h"
#include "base/util.h"
#include "fginfer_latent.h"

struct fgi_atom {
    int64_t n, r;
    int64_t *begin; /* NULL: dense, row i at values + i * r */
    int32_t *cols;
    double *values;
    double *square; /* |row i|^2 */
    double *scale;  /* by the number of ones; NULL: all 1 */
    fgi_pool *pool;
    int threads;
    double deadline;
    fgi_arena arena; /* the arrays above */
    /* The relaxation; vectors 0 .. n, where 0 belongs to the row 1'F. */
    fgi_arena mixing;  /* the arrays below */
    int64_t rank;      /* 0: it has not been started */
    double *ones;      /* 1'F */
    double *vectors;   /* (n + 1) x rank */
    double *moment;    /* r x rank: the sum over rows of row' * vector */
    double *direction; /* rank: scratch */
};

/* A meter of multiplications, for a search or a sweep under way. */
static inline fgi_meter fgi_atom_meter(const fgi_atom *a) { return (fgi_meter){100000, 0, a->deadline}; }

/* A row of F: `cols` is NULL where it is dense. */
typedef struct fgi_row {
    const double *values;
    const int32_t *cols;
    int64_t n;
} fgi_row;

static inline fgi_row fgi_atom_row(const fgi_atom *a, int64_t i) {
    if (!a->begin) return (fgi_row){a->values + i * a->r, NULL, a->r};
    return (fgi_row){a->values + a->begin[i], a->cols + a->begin[i], a->begin[i + 1] - a->begin[i]};
}

/* Row times a vector, added up as fgi_dot does. */
static inline double fgi_row_dot(fgi_row f, const double *x) {
    if (!f.cols) return fgi_dot(f.values, x, f.n);
    double s[4] = {0, 0, 0, 0};
    int64_t p = 0;
    for (; p + 4 <= f.n; p += 4)
        for (int l = 0; l < 4; l++) s[l] += f.values[p + l] * x[f.cols[p + l]];
    for (; p < f.n; p++) s[0] += f.values[p] * x[f.cols[p]];
    return (s[0] + s[1]) + (s[2] + s[3]);
}

/* x += c * row. */
static inline void fgi_row_add(fgi_row f, double c, double *x) {
    if (f.cols) {
        for (int64_t p = 0; p < f.n; p++) x[f.cols[p]] += c * f.values[p];
    } else {
        for (int64_t p = 0; p < f.n; p++) x[p] += c * f.values[p];
    }
}

/* F'z into sum (r entries); returns the number of ones. */
int64_t fgi_atom_sum(const fgi_atom *a, const uint8_t *z, double *sum);

/* A standard normal number. */
double fgi_rng_normal(fgi_rng *r);

/* Random numbers of item `index` of a job: unrelated to those of its neighbours. */
fgi_rng fgi_rng_of(uint64_t seed, int64_t index);

#endif
