/* dual/ad3_factor.c - see dual/ad3_factor.h. Martins et al. 2015, section 6, with dependent states exchanged instead of
 * refused.
 *
 * On an active set W with Gram matrix G (G_st = number of variables on which states s and t agree) the minimum of the
 * objective over { sum y = 1 } solves
 *
 *     [ G  1 ] [ y   ]   [ b ]
 *     [ 1' 0 ] [ tau ] = [ 1 ],       b_s = theta_s / rho + sum_q z_q(s_q).
 *
 * Where y leaves the simplex, go as far as it lasts and drop the state that blocks. Where it does not, y is optimal if
 * no state outside W scores more than tau: that is the oracle, with messages z - M y. Otherwise its best state joins W.
 * If its indicators are an affine combination u of those of W, M y does not change along e_s - u and the objective is
 * linear there: go on until a state of W is used up, and let the new one take its place. W so stays independent and the
 * system solvable. */
#include "dual/ad3_factor.h"
#include "base/array.h"
#include <string.h>

static const double TINY = 1e-10; /* pivots and shares below count as 0: far above rounding, far below what matters */

static int32_t agreement(const int32_t *s, const int32_t *t, int32_t arity) {
    int32_t n = 0;
    for (int32_t q = 0; q < arity; q++) n += s[q] == t[q];
    return n;
}

static fgi_rc reserve_system(ad3_solver *w, int64_t n) {
    if (n <= w->capacity) return FGI_OK;
    int64_t capacity = n < 16 ? 16 : 2 * n, entries;
    if (!fgi_mul(capacity, capacity, &entries)) return FGI_NO_MEMORY;
    free(w->matrix);
    free(w->rhs);
    free(w->solution);
    w->matrix = fgi_alloc(entries, sizeof(double));
    w->rhs = fgi_alloc(capacity, sizeof(double));
    w->solution = fgi_alloc(capacity, sizeof(double));
    w->capacity = w->matrix && w->rhs && w->solution ? capacity : 0;
    return w->capacity ? FGI_OK : FGI_NO_MEMORY;
}

/* Gaussian elimination with partial pivoting, matrix and rhs overwritten. A vanishing pivot gives a 0 in the solution.
 * Returns 0 when the time is over: the columns before w->column are done with. */
static int solve_system(ad3_solver *w, int32_t n, fgi_meter *meter) {
    double *a = w->matrix, *b = w->rhs;
    while (w->column < n) {
        const int32_t k = w->column;
        if (k > w->begun && fgi_meter_spend(meter, (int64_t)(n - k) * (n - k))) {
            w->begun = k; /* where the next call begins, without another look */
            return 0;
        }
        w->column++;
        int32_t pivot = k;
        for (int32_t r = k + 1; r < n; r++)
            if (fabs(a[r * n + k]) > fabs(a[pivot * n + k])) pivot = r;
        if (fabs(a[pivot * n + k]) < TINY) continue;
        for (int32_t c = 0; pivot != k && c < n; c++) {
            double swap = a[k * n + c];
            a[k * n + c] = a[pivot * n + c];
            a[pivot * n + c] = swap;
        }
        double swap = b[k];
        b[k] = b[pivot];
        b[pivot] = swap;
        for (int32_t r = k + 1; r < n; r++) {
            double factor = a[r * n + k] / a[k * n + k];
            if (factor == 0) continue;
            for (int32_t c = k; c < n; c++) a[r * n + c] -= factor * a[k * n + c];
            b[r] -= factor * b[k];
        }
    }
    for (int32_t k = n - 1; k >= 0; k--) {
        double sum = b[k];
        for (int32_t c = k + 1; c < n; c++) sum -= a[k * n + c] * w->solution[c];
        w->solution[k] = fabs(a[k * n + k]) < TINY ? 0 : sum / a[k * n + k];
    }
    w->column = w->begun = 0;
    return 1;
}

static void fill_matrix(ad3_solver *w, const ad3_point *p, int32_t arity) {
    const int32_t n = p->n + 1;
    for (int32_t s = 0; s < p->n; s++) {
        for (int32_t t = 0; t < p->n; t++)
            w->matrix[s * n + t] = agreement(p->labels + s * arity, p->labels + t * arity, arity);
        w->matrix[s * n + p->n] = w->matrix[p->n * n + s] = 1;
    }
    w->matrix[p->n * n + p->n] = 0;
}

static double state_theta(const fgi_model *m, const fgi_view *v, const int32_t *y) {
    if (v->arity == 2) return fgi_view_at2(v, y[0], y[1]);
    int64_t at = 0;
    for (int32_t q = 0; q < v->arity; q++) at = at * m->s->cards[v->vars[q]] + y[q];
    return v->weight * v->values[at];
}

static void drop(ad3_point *p, int32_t arity, int32_t s) {
    p->n--;
    memmove(p->labels + s * arity, p->labels + (s + 1) * arity, (size_t)(p->n - s) * (size_t)arity * sizeof *p->labels);
    memmove(p->y + s, p->y + s + 1, (size_t)(p->n - s) * sizeof *p->y);
}

static fgi_rc append(ad3_point *p, int32_t arity, const int32_t *state, double y) {
    if (p->n == p->capacity) {
        int32_t capacity = p->capacity ? 2 * p->capacity : 4;
        if (!fgi_resize(&p->labels, (int64_t)capacity * arity, sizeof *p->labels) ||
            !fgi_resize(&p->y, capacity, sizeof *p->y))
            return FGI_NO_MEMORY;
        p->capacity = capacity;
    }
    memcpy(p->labels + p->n * arity, state, (size_t)arity * sizeof *state);
    p->y[p->n++] = y;
    return FGI_OK;
}

/* Moves y along `direction` as far as the simplex allows, at most by 1; drops the state that blocks. Returns 1 if one
 * did. */
static int move(ad3_point *p, int32_t arity, const double *direction, double most) {
    double step = most;
    int32_t blocking = -1;
    for (int32_t s = 0; s < p->n; s++)
        if (direction[s] < 0 && p->y[s] < -direction[s] * step) {
            step = p->y[s] / -direction[s];
            blocking = s;
        }
    for (int32_t s = 0; s < p->n; s++) p->y[s] = fmax(0, p->y[s] + step * direction[s]);
    if (blocking >= 0) drop(p, arity, blocking);
    return blocking >= 0;
}

/* The system of the minimum over W. */
static fgi_rc pose(
    ad3_solver *w, const fgi_model *m, const fgi_view *v, const double *const *z, double rho, const ad3_point *p) {
    fgi_rc rc = reserve_system(w, p->n + 2);
    if (rc) return rc;
    fill_matrix(w, p, v->arity);
    for (int32_t s = 0; s < p->n; s++) {
        const int32_t *y = p->labels + s * v->arity;
        w->rhs[s] = state_theta(m, v, y) / rho;
        for (int32_t q = 0; q < v->arity; q++) w->rhs[s] += z[q][y[q]];
    }
    w->rhs[p->n] = 1;
    w->phase = AD3_MINIMISE;
    return FGI_OK;
}

/* Towards that minimum: all the way, or until a state is dropped; then it is sought again without that. */
static void minimise(ad3_solver *w, ad3_point *p, int32_t arity) {
    w->tau = w->solution[p->n];
    for (int32_t s = 0; s < p->n; s++) w->solution[s] -= p->y[s];
    w->phase = move(p, arity, w->solution, 1) ? AD3_POSE : AD3_ASK;
}

/* The system that says whether the best state outside W depends on it. */
static fgi_rc pose_joining(ad3_solver *w, const ad3_point *p, int32_t arity) {
    fgi_rc rc = reserve_system(w, p->n + 2);
    if (rc) return rc;
    fill_matrix(w, p, arity);
    for (int32_t s = 0; s < p->n; s++) w->rhs[s] = agreement(p->labels + s * arity, w->state, arity);
    w->rhs[p->n] = 1;
    w->phase = AD3_JOIN;
    return FGI_OK;
}

/* That state joins W. */
static fgi_rc join(ad3_solver *w, ad3_point *p, int32_t arity) {
    double gram = arity;
    for (int32_t s = 0; s < p->n; s++) gram -= w->solution[s] * agreement(p->labels + s * arity, w->state, arity);
    gram -= w->solution[p->n]; /* Schur complement: 0 if the state depends on W */
    if (gram > 1e-7) return append(p, arity, w->state, 0);
    double used = INFINITY;
    int32_t blocking = -1;
    for (int32_t s = 0; s < p->n; s++)
        if (w->solution[s] > TINY && p->y[s] / w->solution[s] < used) {
            used = p->y[s] / w->solution[s];
            blocking = s;
        }
    if (blocking < 0) return FGI_OK; /* cannot be: the combination sums to 1 */
    for (int32_t s = 0; s < p->n; s++) p->y[s] = fmax(0, p->y[s] - used * w->solution[s]);
    drop(p, arity, blocking);
    return append(p, arity, w->state, used);
}

/* residual = z - M y, which the oracle takes as messages, times rho. */
static void oracle_scores(
    fgi_dual_state *d, const fgi_model *m, const fgi_view *v, const double *const *z, double rho, const ad3_point *p) {
    for (int32_t q = 0; q < v->arity; q++) {
        const int32_t n = m->s->cards[v->vars[q]];
        for (int32_t a = 0; a < n; a++) d->g[q][a] = z[q][a] == -INFINITY ? -INFINITY : rho * z[q][a];
        for (int32_t s = 0; s < p->n; s++) d->g[q][p->labels[s * v->arity + q]] -= rho * p->y[s];
    }
}

/* Asks the oracle. *over: no state outside W is better, or rounding says so. */
static fgi_rc ask(fgi_dual_state *d, ad3_solver *w, const fgi_model *m, const fgi_view *v, const double *const *z,
    double rho, ad3_point *p, int *over) {
    oracle_scores(d, m, v, z, rho, p);
    const double value = fgi_dual_argmax(d, m, v, w->state);
    if (value == -INFINITY) return FGI_UNSUPPORTED;
    if (p->n == 0) {
        w->round++;
        w->phase = AD3_POSE;
        return append(p, v->arity, w->state, 1);
    }
    *over = value <= rho * w->tau + 1e-11 * (fabs(value) + rho);
    for (int32_t s = 0; s < p->n && !*over; s++)
        *over = agreement(p->labels + s * v->arity, w->state, v->arity) == v->arity;
    return *over ? FGI_OK : pose_joining(w, p, v->arity);
}

/* One piece of the step, of what takes long: a linear system or a question. */
static fgi_rc go_on(fgi_dual_state *d, ad3_solver *w, const fgi_model *m, const fgi_view *v, const double *const *z,
    double rho, ad3_point *p, int64_t *entries, int *over) {
    fgi_rc rc = FGI_OK;
    if (w->phase == AD3_POSE && p->n == 0) w->phase = AD3_ASK;
    if (w->phase == AD3_POSE) rc = pose(w, m, v, z, rho, p);
    else if (w->phase == AD3_ASK) {
        *entries += fgi_view_work(m, v);
        rc = ask(d, w, m, v, z, rho, p, over);
    } else if (solve_system(w, p->n + 1, &d->meter)) {
        if (w->phase == AD3_MINIMISE) minimise(w, p, v->arity);
        else {
            rc = join(w, p, v->arity);
            w->round++;
            w->phase = AD3_POSE;
        }
    }
    return rc;
}

fgi_rc ad3_factor_step(fgi_dual_state *d, ad3_solver *w, const fgi_model *m, const fgi_view *v, const double *const *z,
    double rho, ad3_point *point, int64_t *entries, int *done) {
    int64_t limit = 2; /* in theory finite; in floating point a cycle among equals is cut short */
    for (int32_t q = 0; q < v->arity; q++) limit += 4 * (int64_t)m->s->cards[v->vars[q]];
    int over = 0;
    fgi_rc rc = FGI_OK;
    while (!rc && !over && w->round < limit) {
        const int64_t before = *entries;
        rc = go_on(d, w, m, v, z, rho, point, entries, &over);
        if (rc || over || w->round == limit) break;
        *done = 0;
        if (w->column > 0 || fgi_meter_spend(&d->meter, *entries - before)) return FGI_OK;
    }
    *done = 1;
    w->phase = AD3_POSE;
    w->column = w->begun = 0;
    w->round = 0;
    return rc;
}
