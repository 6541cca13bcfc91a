/* optimise/owlqn.c - orthant-wise limited-memory quasi-Newton (Andrew and Gao 2007): L-BFGS directions from the
 * pseudo-gradient, kept to its signs, and a backtracking search that stays in one orthant. l1 = 0 makes it L-BFGS. */
#include "optimise/optimise.h"
#include <string.h>

enum { FIRST_VALUE = FGI_FIRST_PHASE, FIRST_GRADIENT, TRIAL_VALUE, TRIAL_GRADIENT };

typedef struct owlqn {
    int64_t pairs;                /* the newest is last */
    double **s, **y, *rho;        /* memory vectors of d */
    double *base, *g, *direction; /* w and smooth gradient before the step; d */
    double *alpha;
    double step;
    fgi_arena arena;
} owlqn;

static owlqn *of(const fgi_optimiser *o) { return o->method; }

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
        q->alpha[k] = q->rho[k] * fgi_dot(q->s[k], z, d);
        add(z, -q->alpha[k], q->y[k], d);
    }
    if (q->pairs) {
        const int64_t last = q->pairs - 1;
        const double scale = 1.0 / (q->rho[last] * fgi_dot(q->y[last], q->y[last], d));
        for (int64_t j = 0; j < d; j++) z[j] *= scale;
    }
    for (int64_t k = 0; k < q->pairs; k++) add(z, q->alpha[k] - q->rho[k] * fgi_dot(q->y[k], z, d), q->s[k], d);
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
        const double square = fgi_dot(q->direction, q->direction, o->d);
        first = square > 1 ? 1.0 / sqrt(square) : 1.0;
    }
    move(o, first);
    fgi_optimise_want_value(o, TRIAL_VALUE);
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
    const double curvature = fgi_dot(s, y, d);
    if (curvature > FGI_LEAST_CURVATURE * sqrt(fgi_dot(s, s, d) * fgi_dot(y, y, d)))
        q->rho[q->pairs++] = 1.0 / curvature;
}

static fgi_rc after_gradient(fgi_optimiser *o) {
    owlqn *q = of(o);
    if (!fgi_optimise_look_at_all(o)) return FGI_BAD_MODEL;
    if (o->phase == TRIAL_GRADIENT) keep_pair(o);
    memcpy(q->g, o->whole, (size_t)o->d * sizeof(double));
    if (o->info.violation <= o->s.tol * o->info.first_violation) fgi_optimise_finish(o, FGI_OPTIMAL);
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
    const double f = fgi_optimise_objective(o, loss);
    if (promised < 0 && fgi_optimise_descends(o, f, promised)) {
        fgi_optimise_accept(o, f, loss, q->step);
        o->info.nonzeros = count;
        fgi_optimise_want_gradient(o, TRIAL_GRADIENT, NULL, o->d, o->whole);
    } else if (q->step > FGI_SEARCH_LEAST) {
        move(o, FGI_SEARCH_FACTOR * q->step);
        fgi_optimise_want_value(o, TRIAL_VALUE);
    } else {
        memcpy(o->w, q->base, (size_t)o->d * sizeof(double));
        if (q->pairs) {
            q->pairs = 0;
            begin_step(o);
        } else fgi_optimise_finish(o, FGI_CONVERGED);
    }
}

static fgi_rc answer(fgi_optimiser *o, double value) {
    switch (o->phase) {
    case FIRST_VALUE:
        if (!fgi_optimise_begin(o, value)) return FGI_BAD_MODEL;
        o->info.working_set = o->d;
        fgi_optimise_want_gradient(o, FIRST_GRADIENT, NULL, o->d, o->whole);
        return FGI_OK;
    case TRIAL_VALUE: after_trial(o, value); return FGI_OK;
    default: return after_gradient(o);
    }
}

static fgi_rc create(fgi_optimiser *o) {
    owlqn *q = o->method = fgi_calloc(1, sizeof *q);
    if (!q) return FGI_NO_MEMORY;
    const int64_t m = o->s.memory;
    q->s = fgi_take(&q->arena, m, double *);
    q->y = fgi_take(&q->arena, m, double *);
    q->rho = fgi_take_zero(&q->arena, m, double);
    q->alpha = fgi_take_zero(&q->arena, m, double);
    q->base = fgi_take_zero(&q->arena, o->d, double);
    q->g = fgi_take_zero(&q->arena, o->d, double);
    q->direction = fgi_take_zero(&q->arena, o->d, double);
    for (int64_t k = 0; !q->arena.failed && k < m; k++) {
        q->s[k] = fgi_take_zero(&q->arena, o->d, double);
        q->y[k] = fgi_take_zero(&q->arena, o->d, double);
    }
    fgi_optimise_want_value(o, FIRST_VALUE);
    return q->arena.failed ? FGI_NO_MEMORY : FGI_OK;
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
    else if (o->phase == FIRST_VALUE || o->phase == TRIAL_VALUE) fgi_optimise_want_value(o, o->phase);
    else fgi_optimise_want_gradient(o, o->phase, NULL, o->d, o->whole);
    return FGI_OK;
}

static void release(fgi_optimiser *o) {
    fgi_arena_free(&of(o)->arena);
    free(o->method);
}

const fgi_optimise_ops fgi_owlqn_ops = {create, answer, settled, walk, release};
