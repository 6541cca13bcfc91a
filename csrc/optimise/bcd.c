/* optimise/bcd.c - blockwise coordinate descent with line search (after Tseng and Yun, A coordinate gradient descent
 * method for nonsmooth separable minimization, 2009): blocks of consecutive coordinates in turn; in each a few
 * soft-thresholded gradient steps with the curvature that the last step met (Barzilai and Borwein 1988), and an Armijo
 * search. Every sweep ends with a look at all coordinates. A baseline: each step of a block costs a value on all the
 * data. */
#include "optimise/optimise.h"
#include <string.h>

enum { FIRST_VALUE = FGI_FIRST_PHASE, ALL_GRADIENT, BLOCK_GRADIENT, AGAIN_GRADIENT, TRIAL_VALUE, BACK_VALUE };

/* The method is a baseline, to be compared by gradients (decision 0016). */
#define MOST_BLOCKS 32 /* blocks that the coordinates are cut into */
#define ENOUGH 0.1     /* share of its violation at which a block is left */

typedef struct bcd {
    int64_t blocks, width;               /* the last block may be shorter */
    int64_t block, inner, moved;         /* the present block, steps in it, steps in this sweep */
    int64_t *set;                        /* its coordinates; width */
    double *base, *g, *next, *direction; /* w and smooth gradient before the step, ...; width */
    double curvature[MOST_BLOCKS];       /* 0: nothing known yet */
    double entered;                      /* violation of the block when its turn came */
    double decrease, step;
    fgi_arena arena;
} bcd;

static bcd *of(const fgi_optimiser *o) { return o->method; }
static int64_t begin_of(const bcd *p) { return p->block * p->width; }

static int64_t size_of(const fgi_optimiser *o) {
    const bcd *p = of(o);
    const int64_t rest = o->d - begin_of(p);
    return rest < p->width ? rest : p->width;
}

static void want_all(fgi_optimiser *o) { fgi_optimise_want_gradient(o, ALL_GRADIENT, NULL, o->d, o->whole); }

static void want_block(fgi_optimiser *o, int64_t phase) {
    bcd *p = of(o);
    const int64_t n = size_of(o);
    for (int64_t k = 0; k < n; k++) p->set[k] = begin_of(p) + k;
    fgi_optimise_want_gradient(o, phase, p->set, n, p->next);
}

static void enter_block(fgi_optimiser *o, int64_t block) {
    bcd *p = of(o);
    p->block = block;
    p->inner = 0;
    o->info.working_set = size_of(o);
    want_block(o, BLOCK_GRADIENT);
}

static void leave_block(fgi_optimiser *o) {
    bcd *p = of(o);
    if (p->block + 1 < p->blocks) enter_block(o, p->block + 1);
    else want_all(o);
}

static void move(fgi_optimiser *o, double step) {
    bcd *p = of(o);
    double *w = o->w + begin_of(p);
    const int64_t n = size_of(o);
    p->step = step;
    /* a whole step makes zeros, and they must be exact */
    for (int64_t k = 0; k < n; k++) {
        const double h = p->curvature[p->block];
        w[k] = step == 1.0 ? fgi_soft(p->base[k] - p->g[k] / h, o->s.l1 / h) : p->base[k] + step * p->direction[k];
    }
}

/* The minimum of the model g'z + h/2 |z|^2 + l1 |base + z|_1, and the descent that it promises. */
static void begin_step(fgi_optimiser *o) {
    bcd *p = of(o);
    const double *w = o->w + begin_of(p);
    const int64_t n = size_of(o);
    const double h = p->curvature[p->block];
    p->decrease = 0;
    for (int64_t k = 0; k < n; k++) {
        p->base[k] = w[k];
        const double to = fgi_soft(w[k] - p->g[k] / h, o->s.l1 / h);
        p->direction[k] = to - w[k];
        p->decrease += p->g[k] * p->direction[k] + o->s.l1 * (fabs(to) - fabs(w[k]));
    }
    if (!(p->decrease < 0)) {
        leave_block(o);
        return;
    }
    move(o, 1.0);
    fgi_optimise_want_value(o, TRIAL_VALUE);
}

/* From what the last step met: the curvature along it. */
static void learn_curvature(fgi_optimiser *o) {
    bcd *p = of(o);
    const int64_t n = size_of(o);
    double sy = 0, ss = 0;
    for (int64_t k = 0; k < n; k++) {
        const double s = p->step * p->direction[k];
        ss += s * s;
        sy += s * (p->next[k] - p->g[k]);
    }
    const double h = sy / ss;
    if (h > 1e-12 && h < 1e300) p->curvature[p->block] = h;
    else p->curvature[p->block] *= 0.5;
}

static fgi_rc after_block(fgi_optimiser *o) {
    bcd *p = of(o);
    const double *w = o->w + begin_of(p);
    const int64_t n = size_of(o);
    double most = 0, square = 0;
    for (int64_t k = 0; k < n; k++) {
        p->next[k] += o->s.l2 * w[k];
        if (!isfinite(p->next[k])) return FGI_BAD_MODEL;
        const double z = fgi_subgradient(w[k], p->next[k], o->s.l1);
        most = fgi_larger(most, fabs(z));
        square += z * z;
    }
    if (o->phase == AGAIN_GRADIENT) learn_curvature(o);
    else {
        p->entered = most;
        if (p->curvature[p->block] == 0) p->curvature[p->block] = fgi_larger(1.0, sqrt(square));
    }
    memcpy(p->g, p->next, (size_t)n * sizeof(double));
    const int there = most <= o->s.tol * o->info.first_violation || (p->inner && most <= ENOUGH * p->entered);
    if (there || p->inner >= o->s.max_inner) leave_block(o);
    else begin_step(o);
    return FGI_OK;
}

static void after_trial(fgi_optimiser *o, double loss) {
    bcd *p = of(o);
    const double f = fgi_optimise_objective(o, loss);
    if (fgi_optimise_descends(o, f, p->step * p->decrease)) {
        const double *w = o->w + begin_of(p);
        const int64_t n = size_of(o);
        for (int64_t k = 0; k < n; k++) o->info.nonzeros += (w[k] != 0.0) - (p->base[k] != 0.0);
        fgi_optimise_accept(o, f, loss, p->step);
        p->inner++;
        p->moved++;
        want_block(o, AGAIN_GRADIENT);
    } else if (p->step > FGI_SEARCH_LEAST) {
        move(o, FGI_SEARCH_FACTOR * p->step);
        fgi_optimise_want_value(o, TRIAL_VALUE);
    } else {
        move(o, 0.0);
        p->curvature[p->block] = 0;
        fgi_optimise_want_value(o, BACK_VALUE);
    }
}

static fgi_rc after_all(fgi_optimiser *o) {
    bcd *p = of(o);
    const int first = o->info.epochs == 0;
    if (!fgi_optimise_look_at_all(o)) return FGI_BAD_MODEL;
    if (o->info.violation <= o->s.tol * o->info.first_violation) fgi_optimise_finish(o, FGI_OPTIMAL);
    else if (!first && !p->moved) fgi_optimise_finish(o, FGI_CONVERGED);
    else {
        p->moved = 0;
        enter_block(o, 0);
    }
    return FGI_OK;
}

static fgi_rc answer(fgi_optimiser *o, double value) {
    switch (o->phase) {
    case FIRST_VALUE:
        if (!fgi_optimise_begin(o, value)) return FGI_BAD_MODEL;
        of(o)->moved = 1; /* a run that goes on from a saved end has a sweep before it */
        want_all(o);
        return FGI_OK;
    case ALL_GRADIENT: return after_all(o);
    case TRIAL_VALUE: after_trial(o, value); return FGI_OK;
    case BACK_VALUE: leave_block(o); return FGI_OK;
    default: return after_block(o);
    }
}

/* ---- life ----------------------------------------------------------------------------------------------------- */

static fgi_rc create(fgi_optimiser *o) {
    bcd *p = o->method = fgi_calloc(1, sizeof *p);
    if (!p) return FGI_NO_MEMORY;
    p->width = (o->d + MOST_BLOCKS - 1) / MOST_BLOCKS;
    p->blocks = (o->d + p->width - 1) / p->width;
    p->set = fgi_take_zero(&p->arena, p->width, int64_t);
    double **parts[] = {&p->base, &p->g, &p->next, &p->direction};
    for (size_t k = 0; k < sizeof parts / sizeof *parts; k++) *parts[k] = fgi_take_zero(&p->arena, p->width, double);
    fgi_optimise_want_value(o, FIRST_VALUE);
    return p->arena.failed ? FGI_NO_MEMORY : FGI_OK;
}

static void settled(const fgi_optimiser *o, double *w) {
    const bcd *p = of(o);
    memcpy(w, o->w, (size_t)o->d * sizeof(double));
    if (o->phase == TRIAL_VALUE) memcpy(w + begin_of(p), p->base, (size_t)size_of(o) * sizeof(double));
}

static fgi_rc walk(fgi_optimiser *o, fgi_record *v) {
    bcd *p = of(o);
    fgi_record_size(v, &p->block, p->blocks - 1);
    fgi_record_size(v, &p->inner, FGI_RECORD_MOST);
    fgi_record_size(v, &p->moved, FGI_RECORD_MOST);
    double *reals[] = {&p->entered, &p->decrease, &p->step};
    for (size_t k = 0; k < sizeof reals / sizeof *reals; k++) fgi_record_reals(v, reals[k], 1);
    fgi_record_reals(v, p->curvature, p->blocks);
    double *parts[] = {p->base, p->g, p->direction};
    for (size_t k = 0; k < sizeof parts / sizeof *parts; k++) fgi_record_reals(v, parts[k], p->width);
    if (v->mode != FGI_RECORD_READ || v->failed) return FGI_OK;
    if (o->phase < FIRST_VALUE || o->phase > BACK_VALUE) v->failed = 1;
    else if (o->phase == ALL_GRADIENT) want_all(o);
    else if (o->phase == BLOCK_GRADIENT || o->phase == AGAIN_GRADIENT) want_block(o, o->phase);
    else fgi_optimise_want_value(o, o->phase);
    return FGI_OK;
}

static void release(fgi_optimiser *o) {
    fgi_arena_free(&of(o)->arena);
    free(o->method);
}

const fgi_optimise_ops fgi_bcd_ops = {create, answer, settled, walk, release};
