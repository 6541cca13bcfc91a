/* sparsemap/factor.c - the quadratic program over the states of one factor, by the active-set method of Martins et al.
 * 2015, section 6, with dependent states exchanged instead of refused (dual/ad3_factor.c explains the method; here
 * nothing pauses, and tables are dense). */
#include "sparsemap/sparsemap.h"
#include <stdlib.h>
#include <string.h>
#include "base/assert.h"
#include "base/util.h"

static const double PIVOT = 1e-10;    /* below it a pivot is zero */
static const double DEPENDENT = 1e-7; /* squared distance of a state's indicator from the span of the others */
static const double OPTIMAL = 1e-13;  /* a reduced score below this share of the scores is rounding */

static int32_t agreement(const int32_t *s, const int32_t *t, int32_t arity) {
    int32_t n = 0;
    for (int32_t q = 0; q < arity; q++) n += s[q] == t[q];
    return n;
}

void sm_work_free(sm_work *w) {
    free(w->matrix);
    free(w->rhs);
    free(w->solution);
}

static fgi_rc reserve(sm_work *w, int64_t n) {
    if (n <= w->capacity) return FGI_OK;
    const int64_t capacity = n < 8 ? 8 : 2 * n;
    sm_work_free(w);
    w->matrix = fgi_alloc(capacity * capacity, sizeof(double));
    w->rhs = fgi_alloc(capacity, sizeof(double));
    w->solution = fgi_alloc(capacity, sizeof(double));
    w->capacity = w->matrix && w->rhs && w->solution ? capacity : 0;
    return w->capacity ? FGI_OK : FGI_NO_MEMORY;
}

static void swap_rows(double *a, double *b, int32_t n, int32_t k, int32_t pivot) {
    for (int32_t c = k; c < n; c++) {
        const double entry = a[k * n + c];
        a[k * n + c] = a[pivot * n + c];
        a[pivot * n + c] = entry;
    }
    const double entry = b[k];
    b[k] = b[pivot];
    b[pivot] = entry;
}

/* Gaussian elimination with partial pivoting; a vanishing pivot gives a 0 in the solution. */
static void solve_system(sm_work *w, int32_t n) {
    double *a = w->matrix, *b = w->rhs;
    for (int32_t k = 0; k < n; k++) {
        int32_t pivot = k;
        for (int32_t r = k + 1; r < n; r++)
            if (fabs(a[r * n + k]) > fabs(a[pivot * n + k])) pivot = r;
        if (fabs(a[pivot * n + k]) < PIVOT) continue;
        if (pivot != k) swap_rows(a, b, n, k, pivot);
        for (int32_t r = k + 1; r < n; r++) {
            const double share = a[r * n + k] / a[k * n + k];
            if (share == 0) continue;
            for (int32_t c = k; c < n; c++) a[r * n + c] -= share * a[k * n + c];
            b[r] -= share * b[k];
        }
    }
    for (int32_t k = n - 1; k >= 0; k--) {
        double sum = b[k];
        for (int32_t c = k + 1; c < n; c++) sum -= a[k * n + c] * w->solution[c];
        w->solution[k] = fabs(a[k * n + k]) < PIVOT ? 0 : sum / a[k * n + k];
    }
}

/* [G 1; 1' 0], G_st = variables on which s and t agree. */
static void fill_matrix(sm_work *w, const sm_point *p, int32_t arity) {
    const int32_t n = p->n + 1;
    for (int32_t s = 0; s < p->n; s++) {
        for (int32_t t = 0; t <= s; t++)
            w->matrix[s * n + t] = w->matrix[t * n + s] =
                agreement(p->labels + s * arity, p->labels + t * arity, arity);
        w->matrix[s * n + p->n] = w->matrix[p->n * n + s] = 1;
    }
    w->matrix[p->n * n + p->n] = 0;
}

static void drop(sm_point *p, int32_t arity, int32_t s) {
    fgi_assert(s >= 0 && s < p->n);
    p->n--;
    memmove(p->labels + s * arity, p->labels + (s + 1) * arity, (size_t)(p->n - s) * (size_t)arity * sizeof *p->labels);
    memmove(p->y + s, p->y + s + 1, (size_t)(p->n - s) * sizeof *p->y);
}

/* Goes from y towards `target` as far as the simplex allows; drops the state that blocks and returns 1 if one did. */
static int move(sm_point *p, int32_t arity, const double *target) {
    double step = 1;
    int32_t blocking = -1;
    for (int32_t s = 0; s < p->n; s++) {
        const double down = p->y[s] - target[s];
        if (down > 0 && p->y[s] < down * step) {
            step = p->y[s] / down;
            blocking = s;
        }
    }
    for (int32_t s = 0; s < p->n; s++) p->y[s] = fmax(0, p->y[s] + step * (target[s] - p->y[s]));
    if (blocking >= 0) drop(p, arity, blocking);
    return blocking >= 0;
}

static double linear_term(const sm_factor *f, const double *z, double share, const int32_t *labels) {
    double sum = f->theta[sm_state_index(f, labels)] * share;
    for (int32_t q = 0; q < f->arity; z += f->cards[q++]) sum += z[labels[q]];
    return sum;
}

/* The minimum over the states that are active, some of which may go on the way to it. Returns the price of the sum. */
static fgi_rc minimise(sm_work *w, const sm_factor *f, const double *z, double share, sm_point *p, double *tau) {
    do {
        fgi_rc rc = reserve(w, p->n + 2);
        if (rc) return rc;
        if (p->n == 1) { /* most factors, most of the time */
            p->y[0] = 1;
            *tau = linear_term(f, z, share, p->labels) - f->arity;
            return FGI_OK;
        }
        fill_matrix(w, p, f->arity);
        for (int32_t s = 0; s < p->n; s++) w->rhs[s] = linear_term(f, z, share, p->labels + s * f->arity);
        w->rhs[p->n] = 1;
        solve_system(w, p->n + 1);
        *tau = w->solution[p->n];
    } while (move(p, f->arity, w->solution));
    return FGI_OK;
}

/* The best state under `residual`, and its score. */
static double best_pair(const sm_factor *f, const double *residual, double share, int32_t *state) {
    const int32_t rows = f->cards[0], cols = f->cards[1];
    const double *second = residual + rows, *row = f->theta;
    double best = -INFINITY;
    for (int32_t a = 0; a < rows; a++, row += cols) {
        for (int32_t b = 0; b < cols; b++) {
            const double score = row[b] * share + second[b] + residual[a];
            if (score > best) {
                best = score;
                state[0] = a;
                state[1] = b;
            }
        }
    }
    return best;
}

/* Its score under the labels of all variables but the last. */
static double head_score(const sm_factor *f, const double *residual, const int32_t *labels) {
    double sum = 0;
    for (int32_t q = 0; q + 1 < f->arity; residual += f->cards[q++]) sum += residual[labels[q]];
    return sum;
}

static double best_state(const sm_factor *f, const double *residual, double share, int32_t *labels, int32_t *state) {
    if (f->arity == 2) return best_pair(f, residual, share, state);
    const int32_t last = f->arity - 1, width = f->cards[last];
    const double *tail = residual + f->dim - width, *row = f->theta;
    double best = -INFINITY;
    memset(labels, 0, (size_t)f->arity * sizeof *labels);
    for (int32_t q = last; q >= 0;) {
        const double head = head_score(f, residual, labels);
        for (int32_t a = 0; a < width; a++)
            if (head + tail[a] + row[a] * share > best) {
                best = head + tail[a] + row[a] * share;
                memcpy(state, labels, (size_t)f->arity * sizeof *state);
                state[last] = a;
            }
        row += width;
        for (q = last - 1; q >= 0 && ++labels[q] == f->cards[q]; q--) labels[q] = 0;
    }
    return best;
}

/* The state in w->state joins the point; if it depends on those that are there, it takes the place of one of them. */
static fgi_rc join(sm_work *w, sm_point *p, int32_t arity) {
    if (p->n == 0) return sm_point_append(p, arity, w->state, 1);
    fill_matrix(w, p, arity);
    for (int32_t s = 0; s < p->n; s++) w->rhs[s] = agreement(p->labels + s * arity, w->state, arity);
    w->rhs[p->n] = 1;
    solve_system(w, p->n + 1);
    double distance = arity;
    for (int32_t s = 0; s < p->n; s++) distance -= w->solution[s] * agreement(p->labels + s * arity, w->state, arity);
    distance -= w->solution[p->n];
    if (distance > DEPENDENT) return sm_point_append(p, arity, w->state, 0);
    double used = INFINITY;
    int32_t blocking = -1;
    for (int32_t s = 0; s < p->n; s++)
        if (w->solution[s] > PIVOT && p->y[s] / w->solution[s] < used) {
            used = p->y[s] / w->solution[s];
            blocking = s;
        }
    if (blocking < 0) return FGI_OK; /* cannot be: the combination sums to 1 */
    for (int32_t s = 0; s < p->n; s++) p->y[s] = fmax(0, p->y[s] - used * w->solution[s]);
    drop(p, arity, blocking);
    return sm_point_append(p, arity, w->state, used);
}

static int is_active(const sm_point *p, int32_t arity, const int32_t *state) {
    for (int32_t s = 0; s < p->n; s++)
        if (agreement(p->labels + s * arity, state, arity) == arity) return 1;
    return 0;
}

fgi_rc sm_factor_step(sm_work *w, const sm_factor *f, const double *z, double rho, sm_point *p) {
    fgi_assert(rho > 0 && p->n >= 0 && p->n <= p->capacity);
    const double share = 1 / rho;
    const int64_t most = 4 * f->dim + 2; /* finite in theory; rounding may make a cycle among equals */
    double tau = -INFINITY;
    for (int64_t round = 0; round < most; round++) {
        fgi_rc rc = p->n ? minimise(w, f, z, share, p, &tau) : reserve(w, 2);
        if (rc) return rc;
        memcpy(w->residual, z, (size_t)f->dim * sizeof *z);
        for (int32_t s = 0; s < p->n; s++) {
            double *residual = w->residual;
            for (int32_t q = 0; q < f->arity; residual += f->cards[q++])
                residual[p->labels[s * f->arity + q]] -= p->y[s];
        }
        const double best = best_state(f, w->residual, share, w->state + f->arity, w->state);
        if (best == -INFINITY) return FGI_UNSUPPORTED;
        if (p->n && (best <= tau + OPTIMAL * (1 + fabs(tau)) || is_active(p, f->arity, w->state))) break;
        rc = join(w, p, f->arity);
        if (rc) return rc;
    }
    return FGI_OK;
}
