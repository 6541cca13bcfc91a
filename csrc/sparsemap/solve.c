/* sparsemap/solve.c - LP-SparseMAP by ADMM. With multipliers lambda of M_if p_f = mu_i, penalty rho and d_i factors:
 *
 *     p_f       = argmin over the simplex of  rho/2 |M p - (mu - lambda_f/rho)|^2 - theta_f.p     (sparsemap/factor.c)
 *     h_f       = M p_f, relaxed: a little beyond, seen from the old mu
 *     mu_i      = [ theta_i + sum_f (lambda_if + rho h_if) ] / (1 + rho d_i)
 *     lambda_if += rho (h_if - mu_i)
 *
 * Once both residuals are small the supports are known, and the linear system on them gives the answer itself
 * (sparsemap/polish.c). Factors whose variables are in no other need one step; variables without factors one
 * projection. */
#include "sparsemap/sparsemap.h"
#include <stdlib.h>
#include <string.h>
#include "base/simplex.h"
#include "base/util.h"

enum { BALANCE_EVERY = 10 };          /* iterations between two looks at the balance of the residuals */
static const double BALANCE = 5;      /* ratio of the residuals beyond which rho changes */
static const double RHO_STEP = 1.5;   /* rho changes by this factor */
static const double RHO_START = 1;    /* the curvature of the objective (chosen) */
static const double RELAXATION = 1.6; /* Eckstein, Bertsekas 1992: between 1.5 and 1.8 */

typedef struct admm {
    const fgi_sparse *s;
    const double *unary, *table;
    double *x, *sum, *lambda;
    double *z, *h; /* what factors answer: the factor at hand; all factors */
    sm_point *points;
    sm_work work;
    double rho;
} admm;

/* M p of a factor. */
static void sum_down(const sm_factor *f, const sm_point *p, double *out) {
    memset(out, 0, (size_t)f->dim * sizeof *out);
    for (int32_t s = 0; s < p->n; s++) {
        double *at = out;
        for (int32_t q = 0; q < f->arity; at += f->cards[q++]) at[p->labels[s * f->arity + q]] += p->y[s];
    }
}

static fgi_rc factor_step(admm *a, int64_t f, double rho) {
    const fgi_sparse *sparse = a->s;
    const sm_factor factor = sm_factor_at(sparse, f, a->table);
    const double *lambda = a->lambda + sparse->slot_begin[f];
    double *z = a->z;
    for (int32_t q = 0; q < factor.arity; q++) {
        const double *x = a->x + sparse->unary_begin[factor.vars[q]],
                     *theta = a->unary + sparse->unary_begin[factor.vars[q]];
        for (int32_t l = 0; l < factor.cards[q]; l++)
            *z++ = theta[l] == -INFINITY ? -INFINITY : sparse->lone[f] ? theta[l] : x[l] - *lambda / rho, lambda++;
    }
    fgi_rc rc = sm_factor_step(&a->work, &factor, a->z, rho, &a->points[f]);
    if (!rc) sum_down(&factor, &a->points[f], a->h + sparse->slot_begin[f]);
    return rc;
}

/* Factors by themselves: mu and lambda do not matter. */
static fgi_rc lone_factors(admm *a, int64_t *failed) {
    for (int64_t f = 0; f < a->s->n_factors; f++)
        if (a->s->lone[f]) {
            fgi_rc rc = factor_step(a, f, 1);
            if (rc) {
                *failed = f;
                return rc;
            }
        }
    return FGI_OK;
}

static void variable_step(admm *a, double *change) {
    const fgi_sparse *sparse = a->s;
    memset(a->sum, 0, (size_t)sparse->n_labels * sizeof *a->sum);
    for (int64_t f = 0; f < sparse->n_factors; f++) {
        if (sparse->lone[f]) continue;
        const sm_factor factor = sm_factor_at(sparse, f, NULL);
        const double *lambda = a->lambda + sparse->slot_begin[f], *h = a->h + sparse->slot_begin[f];
        for (int32_t q = 0; q < factor.arity; q++) {
            const int64_t begin = sparse->unary_begin[factor.vars[q]];
            for (int32_t l = 0; l < factor.cards[q]; l++, lambda++, h++)
                a->sum[begin + l] += *lambda + a->rho * (RELAXATION * *h + (1 - RELAXATION) * a->x[begin + l]);
        }
    }
    *change = 0;
    for (int64_t i = 0; i < sparse->n_vars; i++)
        for (int64_t k = sparse->unary_begin[i]; sparse->links[i] && k < sparse->unary_begin[i + 1]; k++) {
            const double x = a->unary[k] == -INFINITY ? 0 : (a->unary[k] + a->sum[k]) / (1 + a->rho * sparse->links[i]);
            *change = fmax(*change, fabs(x - a->x[k]));
            a->sum[k] = a->x[k]; /* the old one, which the relaxed point is seen from */
            a->x[k] = x;
        }
}

static double multiplier_step(admm *a) {
    const fgi_sparse *sparse = a->s;
    double largest = 0;
    for (int64_t f = 0; f < sparse->n_factors; f++) {
        if (sparse->lone[f]) continue;
        const sm_factor factor = sm_factor_at(sparse, f, NULL);
        double *lambda = a->lambda + sparse->slot_begin[f];
        const double *h = a->h + sparse->slot_begin[f];
        for (int32_t q = 0; q < factor.arity; q++) {
            const int64_t begin = sparse->unary_begin[factor.vars[q]];
            for (int32_t l = 0; l < factor.cards[q]; l++, lambda++, h++) {
                largest = fmax(largest, fabs(*h - a->x[begin + l]));
                *lambda += a->rho * (RELAXATION * *h + (1 - RELAXATION) * a->sum[begin + l] - a->x[begin + l]);
            }
        }
    }
    return largest;
}

static fgi_rc iterate(admm *a, double tolerance, int64_t most, fgi_sparse_info *info, int64_t *failed) {
    const fgi_sparse *sparse = a->s;
    while (info->iterations < most && !info->converged) {
        for (int64_t f = 0; f < sparse->n_factors; f++) {
            fgi_rc rc = sparse->lone[f] ? FGI_OK : factor_step(a, f, a->rho);
            *failed = f;
            if (rc) return rc;
        }
        double change;
        variable_step(a, &change);
        info->primal = multiplier_step(a);
        info->dual = a->rho * change;
        info->iterations++;
        info->converged = info->primal <= tolerance && info->dual <= tolerance;
        if (info->iterations % BALANCE_EVERY) continue;
        if (info->primal > BALANCE * info->dual) a->rho *= RHO_STEP;
        else if (info->dual > BALANCE * info->primal) a->rho /= RHO_STEP;
    }
    return FGI_OK;
}

/* mu of what is feasible: the mean of what factors say, or the projection where there is none. */
static void read_marginals(const admm *a, double *marginals) {
    const fgi_sparse *sparse = a->s;
    memset(marginals, 0, (size_t)sparse->n_labels * sizeof *marginals);
    for (int64_t f = 0; f < sparse->n_factors; f++) {
        const sm_factor factor = sm_factor_at(sparse, f, NULL);
        const double *h = a->h + sparse->slot_begin[f];
        for (int32_t q = 0; q < factor.arity; q++)
            for (int32_t l = 0; l < factor.cards[q]; l++)
                marginals[sparse->unary_begin[factor.vars[q]] + l] += *h++ / sparse->degree[factor.vars[q]];
    }
    for (int64_t i = 0; i < sparse->n_vars; i++) {
        if (sparse->degree[i]) continue;
        double *mu = marginals + sparse->unary_begin[i];
        const double *theta = a->unary + sparse->unary_begin[i];
        int32_t n = 0;
        for (int32_t l = 0; l < sparse->cards[i]; l++)
            if (theta[l] > -INFINITY) mu[n++] = theta[l];
        if (n) fgi_simplex_project(mu, n);
        for (int32_t l = sparse->cards[i]; l-- > 0;) mu[l] = theta[l] > -INFINITY ? mu[--n] : 0;
    }
}

static double value(const admm *a, const double *mu) {
    const fgi_sparse *sparse = a->s;
    double sum = 0;
    for (int64_t k = 0; k < sparse->n_labels; k++)
        if (mu[k] != 0) sum += mu[k] * (a->unary[k] - mu[k] / 2);
    for (int64_t f = 0; f < sparse->n_factors; f++) {
        const sm_factor factor = sm_factor_at(sparse, f, a->table);
        const sm_point *p = &a->points[f];
        for (int32_t k = 0; k < p->n; k++)
            sum += p->y[k] * factor.theta[sm_state_index(&factor, p->labels + (int64_t)k * factor.arity)];
    }
    return sum;
}

/* mu where it begins: what the point and the multipliers given say, without a relaxation. */
static void start(admm *a) {
    const fgi_sparse *sparse = a->s;
    memset(a->x, 0, (size_t)sparse->n_labels * sizeof *a->x);
    for (int64_t f = 0; f < sparse->n_factors; f++) {
        const sm_factor factor = sm_factor_at(sparse, f, NULL);
        const double *lambda = a->lambda + sparse->slot_begin[f];
        sum_down(&factor, &a->points[f], a->h + sparse->slot_begin[f]);
        const double *h = a->h + sparse->slot_begin[f];
        for (int32_t q = 0; q < factor.arity; q++)
            for (int32_t l = 0; l < factor.cards[q]; l++)
                a->x[sparse->unary_begin[factor.vars[q]] + l] += *lambda++ + a->rho * *h++;
    }
    for (int64_t i = 0; i < sparse->n_vars; i++)
        for (int64_t k = sparse->unary_begin[i]; k < sparse->unary_begin[i + 1]; k++)
            a->x[k] = a->unary[k] == -INFINITY ? 0 : (a->unary[k] + a->x[k]) / (1 + a->rho * sparse->degree[i]);
}

static fgi_rc run(admm *a, double tolerance, int64_t most, double *marginals, fgi_sparse_info *info, fgi_error *err) {
    const fgi_sparse *sparse = a->s;
    int64_t failed = 0;
    int lone = 1, polished = 0;
    for (int64_t f = 0; f < sparse->n_factors; f++) lone &= sparse->lone[f];
    start(a);
    fgi_rc rc = lone_factors(a, &failed);
    info->converged = lone;
    if (!rc) rc = iterate(a, tolerance, most, info, &failed);
    if (rc == FGI_UNSUPPORTED)
        return fgi_fail(err, FGI_BAD_MODEL, failed, "factor %lld has no state that is allowed", (long long)failed);
    if (rc) return fgi_no_memory(err);
    read_marginals(a, marginals);
    if (info->converged && !lone)
        rc = sm_polish(sparse, a->unary, a->table, tolerance, a->points, marginals, &polished);
    info->polished = lone || polished;
    info->rho = a->rho;
    info->value = value(a, marginals);
    return rc ? fgi_no_memory(err) : FGI_OK;
}

fgi_rc fgi_sparse_solve(const fgi_sparse *sparse, const double *unary, const double *table, double tolerance,
    int64_t most, double *marginals, double *states, double *multipliers, fgi_sparse_info *info, fgi_error *err) {
    admm a = {.s = sparse, .unary = unary, .table = table, .lambda = multipliers};
    fgi_arena arena = {0};
    a.rho = info->rho > 0 ? info->rho : RHO_START;
    a.x = fgi_take(&arena, sparse->n_labels, double);
    a.sum = fgi_take(&arena, sparse->n_labels, double);
    a.z = fgi_take(&arena, sparse->max_dim, double);
    a.h = fgi_take(&arena, sparse->n_slots, double);
    a.work.residual = fgi_take(&arena, sparse->max_dim, double);
    a.work.state = fgi_take(&arena, 2 * (int64_t)sparse->max_arity, int32_t);
    *info = (fgi_sparse_info){.rho = a.rho};
    fgi_rc rc = arena.failed ? FGI_NO_MEMORY : sm_points_read(sparse, states, &a.points);
    if (rc) fgi_no_memory(err);
    else rc = run(&a, tolerance, most, marginals, info, err);
    if (!rc) sm_points_write(sparse, a.points, states);
    sm_points_free(sparse, a.points);
    sm_work_free(&a.work);
    fgi_arena_free(&arena);
    return rc;
}
