/* optimise/owlqn.c - orthant-wise limited-memory quasi-Newton (Andrew and Gao 2007): L-BFGS directions from the
 * pseudo-gradient, kept to its signs, and a backtracking search that stays in one orthant. l1 = 0 makes it L-BFGS. */
#include "optimise/optimise.h"
#include <string.h>

enum { FIRST_VALUE = FGI_FIRST_PHASE, FIRST_GRADIENT, TRIAL_VALUE, TRIAL_GRADIENT };

#define SIGMA 1e-4 /* both as in optimise/proxqn.c */
#define BETA 0.5
#define ROUNDING 4e-16 /* as in optimise/proxqn.c */

typedef struct owlqn {
    int64_t pairs;                /* the newest is last */
    double **s, **y, *rho;        /* memory vectors of d */
    double *base, *g, *direction; /* w and smooth gradient before the step; d */
    double *alpha;
    double step;
} owlqn;

static owlqn *of(const fgi_optimiser *o) { return o->method; }

static double dot(const double *a, const double *b, int64_t n) {
    double four[4] = {0, 0, 0, 0};
    int64_t k = 0;
    for (; k + 4 <= n; k += 4)
        for (int l = 0; l < 4; l++) four[l] += a[k + l] * b[k + l];
    for (; k < n; k++) four[0] += a[k] * b[k];
    return (four[0] + four[1]) + (four[2] + four[3]);
}

static void add(double *a, double x, const double *b, int64_t n) {
    for (int64_t k = 0; k < n; k++) a[k] += x * b[k];
}

/* -H pseudo-gradient by the two loops, without the components that point up. */
static void find_direction(fgi_optimiser *o) {
    owlqn *q = of(o);
    const int64_t d = o->d;
    double *z = q->direction;
    for (int64_t j = 0; j < d; j++) z[j] = -fgi_subgradient(q->base[j], q->g[j], o->s.l1);
    for (int64_t k = q->pairs - 1; k >= 0; k--) {
        q->alpha[k] = q->rho[k] * dot(q->s[k], z, d);
        add(z, -q->alpha[k], q->y[k], d);
    }
    if (q->pairs) {
        const int64_t last = q->pairs - 1;
        const double scale = 1.0 / (q->rho[last] * dot(q->y[last], q->y[last], d));
        for (int64_t j = 0; j < d; j++) z[j] *= scale;
    }
    for (int64_t k = 0; k < q->pairs; k++) add(z, q->alpha[k] - q->rho[k] * dot(q->y[k], z, d), q->s[k], d);
    for (int64_t j = 0; o->s.l1 > 0 && j < d; j++)
        if (z[j] * fgi_subgradient(q->base[j], q->g[j], o->s.l1) >= 0) z[j] = 0;
}

/* w = base + step * d, but zero where that leaves the orthant of base (at zero: of the pseudo-gradient). */
static void move(fgi_optimiser *o, double step) {
    owlqn *q = of(o);
    q->step = step;
    for (int64_t j = 0; j < o->d; j++) {
        const double w = q->base[j] + step * q->direction[j];
        const double side = q->base[j] != 0.0 ? q->base[j] : -fgi_subgradient(q->base[j], q->g[j], o->s.l1);
        o->w[j] = o->s.l1 > 0 && w * side <= 0 ? 0.0 : w;
    }
}

static void begin_step(fgi_optimiser *o) {
    owlqn *q = of(o);
    memcpy(q->base, o->w, (size_t)o->d * sizeof(double));
    find_direction(o);
    double first = 1.0;
    if (!q->pairs) { /* a first step of length 1, about */
        const double square = dot(q->direction, q->direction, o->d);
        first = square > 1 ? 1.0 / sqrt(square) : 1.0;
    }
    move(o, first);
    fgi_want_value(o, TRIAL_VALUE);
}

static void keep_pair(fgi_optimiser *o) {
    owlqn *q = of(o);
    const int64_t d = o->d, m = o->s.memory;
    if (q->pairs == m) {
        double *s = q->s[0], *y = q->y[0];
        memmove(q->s, q->s + 1, (size_t)(m - 1) * sizeof *q->s);
        memmove(q->y, q->y + 1, (size_t)(m - 1) * sizeof *q->y);
        memmove(q->rho, q->rho + 1, (size_t)(m - 1) * sizeof *q->rho);
        q->s[m - 1] = s, q->y[m - 1] = y;
        q->pairs--;
    }
    double *s = q->s[q->pairs], *y = q->y[q->pairs];
    for (int64_t j = 0; j < d; j++) {
        s[j] = o->w[j] - q->base[j];
        y[j] = o->whole[j] - q->g[j];
    }
    const double curvature = dot(s, y, d);
    if (curvature > 1e-12 * sqrt(dot(s, s, d) * dot(y, y, d))) q->rho[q->pairs++] = 1.0 / curvature;
}

static fgi_rc after_gradient(fgi_optimiser *o) {
    owlqn *q = of(o);
    if (!fgi_look_at_all(o)) return FGI_BAD_MODEL;
    if (o->phase == TRIAL_GRADIENT) keep_pair(o);
    memcpy(q->g, o->whole, (size_t)o->d * sizeof(double));
    if (o->info.violation <= o->s.tol * o->info.first_violation) fgi_finish(o, FGI_OPTIMAL);
    else begin_step(o);
    return FGI_OK;
}

static void after_trial(fgi_optimiser *o, double loss) {
    owlqn *q = of(o);
    double promised = 0; /* pseudo-gradient'(w - base) */
    int64_t count = 0;
    for (int64_t j = 0; j < o->d; j++) {
        count += o->w[j] != 0.0;
        if (o->w[j] != q->base[j]) promised += fgi_subgradient(q->base[j], q->g[j], o->s.l1) * (o->w[j] - q->base[j]);
    }
    const double f = fgi_objective(o, loss), f0 = o->info.objective;
    if (f <= f0 + SIGMA * promised + ROUNDING * fabs(f0) && promised < 0) {
        o->info.objective = f;
        o->info.loss = loss;
        o->info.step = q->step;
        o->info.full = 0;
        o->info.nonzeros = count;
        o->info.iterations++;
        fgi_want_gradient(o, TRIAL_GRADIENT, NULL, o->d, o->whole);
    } else if (q->step > 1e-12) {
        move(o, BETA * q->step);
        fgi_want_value(o, TRIAL_VALUE);
    } else {
        memcpy(o->w, q->base, (size_t)o->d * sizeof(double));
        if (q->pairs) {
            q->pairs = 0;
            begin_step(o);
        } else fgi_finish(o, FGI_CONVERGED);
    }
}

static fgi_rc answer(fgi_optimiser *o, double value) {
    switch (o->phase) {
    case FIRST_VALUE:
        if (!fgi_begin(o, value)) return FGI_BAD_MODEL;
        o->info.working_set = o->d;
        fgi_want_gradient(o, FIRST_GRADIENT, NULL, o->d, o->whole);
        return FGI_OK;
    case TRIAL_VALUE: after_trial(o, value); return FGI_OK;
    default: return after_gradient(o);
    }
}

static fgi_rc create(fgi_optimiser *o) {
    owlqn *q = o->method = fgi_calloc(1, sizeof *q);
    if (!q) return FGI_NO_MEMORY;
    const int64_t m = o->s.memory;
    q->s = fgi_calloc(m, sizeof *q->s);
    q->y = fgi_calloc(m, sizeof *q->y);
    q->rho = fgi_calloc(m, sizeof(double));
    q->alpha = fgi_calloc(m, sizeof(double));
    q->base = fgi_calloc(o->d, sizeof(double));
    q->g = fgi_calloc(o->d, sizeof(double));
    q->direction = fgi_calloc(o->d, sizeof(double));
    int ok = q->s && q->y && q->rho && q->alpha && q->base && q->g && q->direction;
    for (int64_t k = 0; ok && k < m; k++)
        ok = (q->s[k] = fgi_calloc(o->d, sizeof(double))) && (q->y[k] = fgi_calloc(o->d, sizeof(double)));
    fgi_want_value(o, FIRST_VALUE);
    return ok ? FGI_OK : FGI_NO_MEMORY;
}

static void settled(const fgi_optimiser *o, double *w) {
    memcpy(w, o->phase == TRIAL_VALUE ? of(o)->base : o->w, (size_t)o->d * sizeof(double));
}

static fgi_rc walk(fgi_optimiser *o, fgi_record *v) {
    owlqn *q = of(o);
    fgi_record_size(v, &q->pairs, o->s.memory);
    fgi_record_reals(v, &q->step, 1);
    fgi_record_reals(v, q->base, o->d);
    fgi_record_reals(v, q->g, o->d);
    fgi_record_reals(v, q->direction, o->d);
    for (int64_t k = 0; k < q->pairs && !v->failed; k++) {
        fgi_record_reals(v, &q->rho[k], 1);
        fgi_record_reals(v, q->s[k], o->d);
        fgi_record_reals(v, q->y[k], o->d);
    }
    if (v->mode != FGI_RECORD_READ || v->failed) return FGI_OK;
    if (o->phase < FIRST_VALUE || o->phase > TRIAL_GRADIENT) v->failed = 1;
    else if (o->phase == FIRST_VALUE || o->phase == TRIAL_VALUE) fgi_want_value(o, o->phase);
    else fgi_want_gradient(o, o->phase, NULL, o->d, o->whole);
    return FGI_OK;
}

static void release(fgi_optimiser *o) {
    owlqn *q = of(o);
    for (int64_t k = 0; k < o->s.memory; k++) {
        if (q->s) free(q->s[k]);
        if (q->y) free(q->y[k]);
    }
    free(q->s), free(q->y), free(q->rho), free(q->alpha), free(q->base), free(q->g), free(q->direction), free(q);
}

const fgi_optimise_ops fgi_owlqn_ops = {create, answer, settled, walk, release};
