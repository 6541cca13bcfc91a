/* optimise/proxgrad.c - accelerated proximal gradient: a soft-thresholded gradient step of length 1/L from a point v
 * ahead of the last two, L doubled until the quadratic bound holds and lowered a little after each step, the momentum
 * restarted when it points uphill or the objective rises. */
#include "optimise/optimise.h"
#include <string.h>

enum { FIRST_VALUE = FGI_FIRST_PHASE, FIRST_GRADIENT, AHEAD_VALUE, AHEAD_GRADIENT, STEP_VALUE, CHECK_GRADIENT };

#define FALL 0.9 /* L is multiplied by this after a step (decision 0016) */
#define RISE 2.0 /* L is multiplied by this after a step that was too long (decision 0016) */

typedef struct proxgrad {
    double *x, *v, *g; /* the last iterate; the point ahead; the gradient there */
    double L, t;       /* curvature; the momentum's sequence */
    double ahead;      /* smooth part of f at v */
    fgi_arena arena;
} proxgrad;

static proxgrad *of(const fgi_optimiser *o) { return o->method; }

static double smooth_penalty(const fgi_optimiser *o) {
    double square = 0;
    for (int64_t j = 0; j < o->d; j++) square += o->w[j] * o->w[j];
    return 0.5 * o->s.l2 * square;
}

/* w = prox(v - g / L). */
static void step(fgi_optimiser *o) {
    proxgrad *p = of(o);
    for (int64_t j = 0; j < o->d; j++) o->w[j] = fgi_soft(p->v[j] - p->g[j] / p->L, o->s.l1 / p->L);
    fgi_optimise_want_value(o, STEP_VALUE);
}

static void restart(fgi_optimiser *o) {
    proxgrad *p = of(o);
    p->t = 1;
    memcpy(p->v, p->x, (size_t)o->d * sizeof(double));
    memcpy(o->w, p->x, (size_t)o->d * sizeof(double));
    fgi_optimise_want_value(o, AHEAD_VALUE);
}

/* From an accepted step w: the next point ahead. */
static void go_ahead(fgi_optimiser *o) {
    proxgrad *p = of(o);
    double uphill = 0;
    for (int64_t j = 0; j < o->d; j++) uphill += (p->v[j] - o->w[j]) * (o->w[j] - p->x[j]);
    const double t = uphill > 0 ? 1.0 : 0.5 * (1 + sqrt(1 + 4 * p->t * p->t));
    const double momentum = uphill > 0 ? 0.0 : (p->t - 1) / t;
    for (int64_t j = 0; j < o->d; j++) {
        p->v[j] = o->w[j] + momentum * (o->w[j] - p->x[j]);
        p->x[j] = o->w[j];
        o->w[j] = p->v[j];
    }
    p->t = t;
    p->L *= FALL;
    fgi_optimise_want_value(o, AHEAD_VALUE);
}

static void after_step(fgi_optimiser *o, double loss) {
    proxgrad *p = of(o);
    double linear = 0, square = 0, mapping = 0;
    int64_t count = 0;
    for (int64_t j = 0; j < o->d; j++) {
        const double z = o->w[j] - p->v[j];
        count += o->w[j] != 0.0;
        linear += p->g[j] * z;
        square += z * z;
        mapping = fgi_larger(mapping, fabs(z));
    }
    const double smooth = loss + smooth_penalty(o), bound = p->ahead + linear + 0.5 * p->L * square;
    if (!(smooth <= bound + FGI_SEARCH_ROUNDING * fabs(p->ahead))) {
        if (p->L > 1e300) {
            memcpy(o->w, p->x, (size_t)o->d * sizeof(double));
            fgi_optimise_finish(o, FGI_CONVERGED);
            return;
        }
        p->L *= RISE;
        step(o);
        return;
    }
    const double f = fgi_optimise_objective(o, loss);
    if (f > o->info.objective && p->t > 1) {
        restart(o);
        return;
    }
    o->info.full = 0;
    o->info.iterations++;
    o->info.step = 1 / p->L;
    const int still = mapping == 0.0;
    if (f <= o->info.objective) {
        o->info.objective = f;
        o->info.loss = loss;
        o->info.nonzeros = count;
    }
    /* the prox mapping bounds the subgradient up to the change of the gradient: look closely when it is small */
    if (p->L * mapping <= 0.5 * o->s.tol * o->info.first_violation || still)
        fgi_optimise_want_gradient(o, CHECK_GRADIENT, NULL, o->d, o->whole);
    else go_ahead(o);
}

/* The first L is the length of the subgradient: a first step of length 1, about. */
static fgi_rc after_first(fgi_optimiser *o) {
    proxgrad *p = of(o);
    if (!fgi_optimise_look_at_all(o)) return FGI_BAD_MODEL;
    if (o->info.violation <= o->s.tol * o->info.first_violation) {
        fgi_optimise_finish(o, FGI_OPTIMAL);
        return FGI_OK;
    }
    double square = 0;
    for (int64_t j = 0; j < o->d; j++) {
        const double z = fgi_subgradient(o->w[j], o->whole[j], o->s.l1);
        square += z * z;
    }
    p->L = fgi_larger(sqrt(square), 1e-300);
    memcpy(p->g, o->whole, (size_t)o->d * sizeof(double));
    step(o);
    return FGI_OK;
}

static fgi_rc answer(fgi_optimiser *o, double value) {
    proxgrad *p = of(o);
    switch (o->phase) {
    case FIRST_VALUE:
        if (!fgi_optimise_begin(o, value)) return FGI_BAD_MODEL;
        o->info.working_set = o->d;
        p->ahead = value + smooth_penalty(o);
        fgi_optimise_want_gradient(o, FIRST_GRADIENT, NULL, o->d, o->whole);
        return FGI_OK;
    case FIRST_GRADIENT: return after_first(o);
    case AHEAD_VALUE:
        if (!isfinite(value)) { /* the point ahead is out of bounds */
            if (p->t > 1) restart(o);
            else fgi_optimise_finish(o, FGI_CONVERGED);
            return FGI_OK;
        }
        p->ahead = value + smooth_penalty(o);
        fgi_optimise_want_gradient(o, AHEAD_GRADIENT, NULL, o->d, o->whole);
        return FGI_OK;
    case AHEAD_GRADIENT:
        for (int64_t j = 0; j < o->d; j++) p->g[j] = o->whole[j] + o->s.l2 * o->w[j];
        step(o);
        return FGI_OK;
    case STEP_VALUE: after_step(o, value); return FGI_OK;
    default:
        if (!fgi_optimise_look_at_all(o)) return FGI_BAD_MODEL;
        if (o->info.violation <= o->s.tol * o->info.first_violation) fgi_optimise_finish(o, FGI_OPTIMAL);
        else if (memcmp(o->w, p->v, (size_t)o->d * sizeof(double)) == 0) fgi_optimise_finish(o, FGI_CONVERGED);
        else go_ahead(o);
        return FGI_OK;
    }
}

static fgi_rc create(fgi_optimiser *o) {
    proxgrad *p = o->method = fgi_calloc(1, sizeof *p);
    if (!p) return FGI_NO_MEMORY;
    p->x = fgi_arena_copy(&p->arena, o->w, o->d, sizeof(double));
    p->v = fgi_arena_copy(&p->arena, o->w, o->d, sizeof(double));
    p->g = fgi_take_zero(&p->arena, o->d, double);
    p->t = 1;
    fgi_optimise_want_value(o, FIRST_VALUE);
    return p->arena.failed ? FGI_NO_MEMORY : FGI_OK;
}

static void settled(const fgi_optimiser *o, double *w) {
    const int here = o->request.ask == FGI_ASK_NOTHING || o->phase == CHECK_GRADIENT;
    memcpy(w, here ? o->w : of(o)->x, (size_t)o->d * sizeof(double));
}

static fgi_rc walk(fgi_optimiser *o, fgi_record *v) {
    proxgrad *p = of(o);
    double *reals[] = {&p->L, &p->t, &p->ahead};
    for (size_t k = 0; k < sizeof reals / sizeof *reals; k++) fgi_record_reals(v, reals[k], 1);
    fgi_record_reals(v, p->x, o->d);
    fgi_record_reals(v, p->v, o->d);
    fgi_record_reals(v, p->g, o->d);
    if (v->mode != FGI_RECORD_READ || v->failed) return FGI_OK;
    if (o->phase < FIRST_VALUE || o->phase > CHECK_GRADIENT) v->failed = 1;
    else if (o->phase == FIRST_VALUE || o->phase == AHEAD_VALUE || o->phase == STEP_VALUE)
        fgi_optimise_want_value(o, o->phase);
    else fgi_optimise_want_gradient(o, o->phase, NULL, o->d, o->whole);
    return FGI_OK;
}

static void release(fgi_optimiser *o) {
    fgi_arena_free(&of(o)->arena);
    free(o->method);
}

const fgi_optimise_ops fgi_proxgrad_ops = {create, answer, settled, walk, release};
