/* optimise/proxqn.c - proximal quasi-Newton with shrinking (Zhong, Yen, Dhillon, Ravikumar 2014, Algorithms 1 and 2).
 *
 * Every iteration minimises  g'd + 1/2 d'Bd + l1 |w + d|_1  over the working set, roughly, by coordinate descent, and
 * steps along d as far as Armijo's rule allows. Within an epoch coordinates only leave the working set; when what is
 * left has converged as far as the epoch asks, all come back, and the next epoch asks for more. Only a look at all
 * coordinates ends the run. Coordinates outside the working set are zero.
 *
 * The paper clears the memory of B at each epoch (settings.forget). It can be kept: what comes back was zero in every
 * step, and with zeros for its gradient differences, too, the pairs are still pairs of positive curvature. On a
 * quarter of CoNLL-2000 that takes 150 values and gradients to 5680, against 173. */
#include "optimise/compact.h"
#include <float.h>
#include <string.h>

enum { FIRST_VALUE = FGI_FIRST_PHASE, ALL_GRADIENT, TRIAL_VALUE, SET_GRADIENT, BACK_VALUE, SET_CURVATURE };

/* The violation that an epoch asks for, against the one it begins with (decision 0016). */
#define COOLING 0.2
/* The larger of these two limits how many coordinates may join; 100 always may (decision 0016). */
#define FIRST_SHARE (1.0 / 256) /* a share of all coordinates */
#define GROWTH 2.0              /* coordinates for each that is not zero */
/* Coordinates that do not pull may stay in the working set all the same, as the paper has it, unless there are more
 * than this of them: each takes some 400 bytes, and a step of every pass (decision 0016). */
#define IDLE 100000
#define BINS_A_HALF 8.0 /* bins of pulls while these halve */
#define PULL_BINS 257   /* bins in all: down to 2^-32 of the strongest pull */
/* Second derivatives below this share of their mean count as that much. It holds where a feature has next to no
 * curvature (decision 0016). */
#define FLOOR 1e-3
/* Coordinate steps that take some ten milliseconds (decision 0016). */
#define CHEAP 300000

typedef struct proxqn {
    int64_t n;    /* working set */
    int64_t room; /* room of the arrays over the working set */
    fgi_arena arena;
    int64_t *set, *order, *kept;
    double *g, *next, *base, *direction; /* gradient; the new one; w before the step; d */
    double *diagonal;                    /* diagonal of B */
    double *hat;                         /* the cached product of B's low-rank part with d, 2 memory */
    fgi_compact B;
    double widest;      /* M of the iteration before: how far below l1 a gradient may be without leaving */
    double asked;       /* the violation, against the first one, at which the epoch ends */
    double decrease;    /* predicted by the model for a step of 1: Delta */
    double step;        /* being tried */
    double penalty;     /* l1 |w|_1 + l2/2 |w|^2 at the point being tried */
    double start;       /* the objective that the run began with */
    double promised[3]; /* the largest decrease promised in this epoch, and the last two */
    int64_t stalled;    /* searches that failed since the last step */
} proxqn;

static proxqn *of(const fgi_optimiser *o) { return o->method; }

static int make_room(proxqn *p, int64_t n) {
    if (p->set && n <= p->room && n >= p->room / 8) return 1;
    fgi_arena_free(&p->arena);
    p->set = fgi_take(&p->arena, n, int64_t);
    p->order = fgi_take(&p->arena, n, int64_t);
    p->kept = fgi_take(&p->arena, n, int64_t);
    p->g = fgi_take(&p->arena, n, double);
    p->next = fgi_take(&p->arena, n, double);
    p->base = fgi_take(&p->arena, n, double);
    p->direction = fgi_take(&p->arena, n, double);
    p->diagonal = fgi_take(&p->arena, n, double);
    p->room = n;
    return !p->arena.failed;
}

/* ---- the working set ------------------------------------------------------------------------------------------ */

static inline int stays(const fgi_optimiser *o, double w, double g) {
    return !o->s.shrink || w != 0.0 || fabs(g) > o->s.l1 - of(o)->widest / o->s.samples;
}

/* How strongly a coordinate at zero must pull to join: all that pull may, unless they are many more than there are
 * non-zeros. Then the strongest come first, which keeps the first iterations as sparse as the last. The bins shrink by
 * a constant factor: where features are words, a few pulls are thousands of times as strong as the rest, and in bins of
 * equal width all the others would be in the last. */
static double least_pull(const fgi_optimiser *o) {
    int64_t count[PULL_BINS] = {0}, nonzeros = 0, sum = 0, idle = 0;
    const double most = o->info.violation;
    for (int64_t j = 0; j < o->d; j++) {
        if (o->w[j] != 0.0) nonzeros++;
        else {
            const double pull = fabs(o->whole[j]) - o->s.l1;
            idle += pull <= 0 && stays(o, 0, o->whole[j]);
            if (pull > 0) count[(int)fgi_smaller(PULL_BINS - 1, fgi_larger(0, BINS_A_HALF * log2(most / pull)))]++;
        }
    }
    const double room = fgi_larger(fgi_larger(FIRST_SHARE * (double)o->d, 100), GROWTH * (double)nonzeros);
    for (int k = 0; k < PULL_BINS - 1; k++)
        if ((double)(sum += count[k]) > room) return most * exp2(-(k + 1.0) / BINS_A_HALF);
    return idle > IDLE ? DBL_MIN : 0;
}

static inline int joins(const fgi_optimiser *o, int64_t j, double least) {
    const double w = o->w[j], g = o->whole[j];
    return stays(o, w, g) && (w != 0.0 || least == 0 || fabs(g) - o->s.l1 >= least);
}

/* Takes the coordinates that matter from a gradient on all of them. */
static fgi_rc open_epoch(fgi_optimiser *o) {
    proxqn *p = of(o);
    if (!(p->widest < INFINITY)) p->widest = o->info.violation;
    double least = o->s.shrink ? least_pull(o) : 0;
    int64_t n = 0, old = 0;
    for (int64_t j = 0; j < o->d; j++) n += joins(o, j, least);
    const int keep = !o->s.forget && p->B.pairs > 0;
    int64_t *from = keep ? fgi_alloc(n, sizeof(int64_t)) : NULL;
    if (keep && !from) return FGI_NO_MEMORY;
    for (int64_t j = 0, k = 0; keep && j < o->d; j++) {
        const int known = old < p->n && p->set[old] == j;
        if (joins(o, j, least)) from[k++] = known ? old : -1;
        old += known;
    }
    if (!make_room(p, n)) {
        free(from);
        return FGI_NO_MEMORY;
    }
    for (int64_t j = 0, k = 0; j < o->d; j++)
        if (joins(o, j, least)) {
            p->set[k] = j;
            p->g[k++] = o->whole[j];
        }
    p->n = n;
    p->widest = o->info.violation;
    p->promised[0] = p->promised[1] = p->promised[2] = 0;
    const int done = keep ? fgi_compact_move(&p->B, from, n) : fgi_compact_clear(&p->B, n);
    free(from);
    return done ? FGI_OK : FGI_NO_MEMORY;
}

/* The largest violation on the set; coordinates at zero that do not pull leave it. */
static double shrink(fgi_optimiser *o) {
    proxqn *p = of(o);
    int64_t n = 0;
    double most = 0;
    for (int64_t k = 0; k < p->n; k++) {
        const double w = o->w[p->set[k]], size = fabs(fgi_subgradient(w, p->g[k], o->s.l1));
        if (!stays(o, w, p->g[k])) continue;
        most = fgi_larger(most, size);
        p->kept[n] = k;
        p->set[n] = p->set[k];
        p->g[n++] = p->g[k];
    }
    if (n < p->n) fgi_compact_keep(&p->B, p->kept, n);
    p->n = n;
    p->widest = most;
    return most;
}

/* ---- the direction -------------------------------------------------------------------------------------------- */

static void shuffle(fgi_optimiser *o, int64_t *order, int64_t n) {
    for (int64_t k = n - 1; k > 0; k--) {
        const int64_t other = fgi_rng_below(&o->rng, k + 1), x = order[k];
        order[k] = order[other];
        order[other] = x;
    }
}

static inline double dot(const double *restrict x, const double *restrict y, int64_t n) {
    double four[4] = {0, 0, 0, 0}; /* four chains of additions side by side */
    int64_t a = 0;
    for (; a + 4 <= n; a += 4)
        for (int l = 0; l < 4; l++) four[l] += x[a + l] * y[a + l];
    for (int l = 0; a < n; a++, l++) four[l] += x[a] * y[a];
    return (four[0] + four[1]) + (four[2] + four[3]);
}

/* One pass of coordinate descent over the model; the largest |change of a coordinate| * curvature. */
static double sweep(fgi_optimiser *o) {
    proxqn *p = of(o);
    const int64_t used = 2 * p->B.pairs, stride = 2 * p->B.memory;
    const double l1 = o->s.l1;
    double *restrict hat = p->hat, most = 0;
    for (int64_t i = 0; i < p->n; i++) {
        const int64_t k = p->order[i];
        const double gamma = p->B.gamma * p->B.h[k];
        const double *restrict row_hat = p->B.hat + k * stride;
        const double a = p->diagonal[k], product = dot(p->B.rows + k * stride, hat, used); /* q_j.dhat */
        const double b = p->g[k] + gamma * p->direction[k] - product, c = p->base[k] + p->direction[k];
        const double z = fgi_soft(c - b / a, l1 / a) - c;
        if (z == 0.0) continue;
        p->direction[k] += z;
        for (int64_t q = 0; q < used; q++) hat[q] += z * row_hat[q];
        most = fgi_larger(most, fabs(z) * a);
    }
    return most;
}

/* d, and the decrease Delta = g'd + l1 (|w + d| - |w|) that it promises (negative). */
static void solve_model(fgi_optimiser *o) {
    proxqn *p = of(o);
    memset(p->hat, 0, (size_t)(2 * p->B.memory) * sizeof(double));
    for (int64_t k = 0; k < p->n; k++) {
        p->order[k] = k;
        p->direction[k] = 0;
        p->base[k] = o->w[p->set[k]];
        const double gamma = p->B.gamma * p->B.h[k];
        const int64_t row = k * 2 * p->B.memory;
        p->diagonal[k] = fgi_larger(gamma - dot(p->B.rows + row, p->B.hat + row, 2 * p->B.pairs), 1e-10 * gamma);
    }
    /* d / |A| passes balance the work over the iterations; where a few passes cost next to nothing there are more */
    int64_t passes = p->n ? (o->d > CHEAP ? o->d : CHEAP) / p->n : 1;
    passes = passes < 1 ? 1 : passes > o->s.max_inner ? o->s.max_inner : passes;
    if (!p->B.pairs) passes = 1; /* B is diagonal: one pass is the exact answer */
    for (double first = 0; passes > 0; passes--) {
        shuffle(o, p->order, p->n);
        const double change = sweep(o);
        if (first == 0) first = change;
        if (change <= 1e-3 * first) break;
    }
    fgi_sum decrease = {0};
    for (int64_t k = 0; k < p->n; k++)
        if (p->direction[k] != 0.0)
            fgi_sum_add(&decrease,
                p->g[k] * p->direction[k] + o->s.l1 * (fabs(p->base[k] + p->direction[k]) - fabs(p->base[k])));
    p->decrease = fgi_sum_value(&decrease);
    p->promised[0] = fgi_larger(p->promised[0], -p->decrease);
    p->promised[1] = p->promised[2];
    p->promised[2] = -p->decrease;
}

/* ---- steps ---------------------------------------------------------------------------------------------------- */

/* w = base + step * d, with the penalties there. */
static void move(fgi_optimiser *o, double step) {
    proxqn *p = of(o);
    fgi_sum first = {0}, second = {0};
    int64_t count = 0;
    for (int64_t k = 0; k < p->n; k++) {
        const double w = p->direction[k] == 0.0 ? p->base[k] : p->base[k] + step * p->direction[k];
        o->w[p->set[k]] = w;
        if (w == 0.0) continue;
        count++;
        fgi_sum_add(&first, fabs(w));
        fgi_sum_add(&second, w * w);
    }
    p->step = step;
    p->penalty = o->s.l1 * fgi_sum_value(&first) + 0.5 * o->s.l2 * fgi_sum_value(&second);
    if (step != 0.0) o->info.nonzeros = count;
}

/* The loss at w, which is zero outside the working set. */
static void want_value(fgi_optimiser *o, int64_t phase) {
    fgi_optimise_want_value(o, phase);
    if (phase == FIRST_VALUE) return;
    o->request.set = of(o)->set;
    o->request.n = of(o)->n;
}

/* The second derivatives on the working set, told how far the first ones are from optimal. */
static void want_curvature(fgi_optimiser *o) {
    proxqn *p = of(o);
    for (int64_t k = 0; k < p->n; k++) p->next[k] = fgi_subgradient(o->w[p->set[k]], p->g[k], o->s.l1);
    fgi_optimise_want_gradient(o, SET_CURVATURE, p->set, p->n, p->next);
    o->request.ask = FGI_ASK_CURVATURE;
}

static void want_all(fgi_optimiser *o) { fgi_optimise_want_gradient(o, ALL_GRADIENT, NULL, o->d, o->whole); }

/* No step lowers the objective any more: the optimum if the violation says so, and else a matter of rounding. */
static void end_here(fgi_optimiser *o) {
    const int met = o->info.full && o->info.violation <= o->s.tol * o->info.first_violation;
    fgi_optimise_finish(o, met ? FGI_OPTIMAL : FGI_CONVERGED);
}

/* A direction and its first trial; without a descent direction, what is left to try. */
static void begin_step(fgi_optimiser *o) {
    proxqn *p = of(o);
    o->info.working_set = p->n;
    for (;;) {
        solve_model(o);
        if (p->decrease < 0 && isfinite(p->decrease)) break;
        if (!p->B.pairs) { /* the gradient itself promises nothing: the set is at its optimum */
            if (o->info.full) end_here(o);
            else want_all(o);
            return;
        }
        fgi_compact_forget(&p->B);
    }
    move(o, 1.0);
    want_value(o, TRIAL_VALUE);
}

/* No step along d is worth taking. */
static void give_up_search(fgi_optimiser *o) {
    proxqn *p = of(o);
    move(o, 0.0);
    if (p->B.pairs) { /* the model was misleading: try the plain gradient */
        fgi_compact_forget(&p->B);
        begin_step(o);
        return;
    }
    if (p->stalled++) end_here(o);
    else want_value(o, BACK_VALUE);
}

/* The first iteration of an epoch, with gamma from the one before; at the very start a step of length 1, about, because
 * the gradient of a sum over many samples is large. */
static void enter_epoch(fgi_optimiser *o) {
    proxqn *p = of(o);
    if (o->info.iterations == 0) {
        double square = 0;
        for (int64_t k = 0; k < p->n; k++) {
            const double x = fgi_subgradient(o->w[p->set[k]], p->g[k], o->s.l1);
            square += x * x;
        }
        p->B.gamma = o->s.curvature ? 1.0 : fgi_larger(1.0, sqrt(square));
    }
    begin_step(o);
}

/* Whether ten steps like the last one would lower the objective by next to nothing. Where some features are thousands
 * of times as frequent as others a small violation, relative to the first, does not yet say so: on CoNLL-2000 the
 * objective can be 7e-4 too high at a violation of 1e-4. An objective that goes to zero is measured by the first. */
static int promises_little(const fgi_optimiser *o) {
    const proxqn *p = of(o);
    return -10 * p->decrease <= o->s.tol * fgi_larger(fabs(o->info.objective), 1e-3 * fabs(p->start));
}

/* All coordinates have been looked at. */
static fgi_rc after_all(fgi_optimiser *o) {
    proxqn *p = of(o);
    if (!fgi_optimise_look_at_all(o)) return FGI_BAD_MODEL;
    const double goal = o->s.tol * o->info.first_violation;
    if (o->info.violation <= goal && promises_little(o)) {
        fgi_optimise_finish(o, FGI_OPTIMAL);
        return FGI_OK;
    }
    const fgi_rc rc = open_epoch(o);
    if (rc) return rc;
    p->asked = fgi_larger(o->s.tol, COOLING * o->info.violation / o->info.first_violation);
    if (o->s.curvature && p->n) want_curvature(o);
    else enter_epoch(o);
    return FGI_OK;
}

/* The diagonal that the model begins with: the square roots of second derivatives, up to a factor. The derivatives
 * themselves are right where features hardly meet, and far too steep where many meet in every sample (decision 0016).
 * Where a second derivative is almost nothing the step would be almost without end; a small share of their mean is a
 * floor. */
static fgi_rc after_curvature(fgi_optimiser *o) {
    proxqn *p = of(o);
    double mean = 0;
    for (int64_t k = 0; k < p->n; k++) {
        if (!(p->next[k] >= 0) || isinf(p->next[k])) return FGI_BAD_MODEL;
        mean += p->next[k] / (double)p->n;
    }
    for (int64_t k = 0; k < p->n; k++)
        p->next[k] = mean > 0 ? sqrt(mean * fgi_larger(p->next[k] + o->s.l2, FLOOR * mean)) : 1.0;
    fgi_compact_scale(&p->B, p->next);
    enter_epoch(o);
    return FGI_OK;
}

/* Whether the last two steps promised little against the best of the epoch; decreases are as squares of violations. The
 * largest violation alone can wait for one coordinate long after the others have nothing to do but wait for those
 * that are not in the working set (CoNLL-2000: 170 of 300 steps in one epoch). */
static int has_cooled(const proxqn *p) {
    return fgi_larger(p->promised[1], p->promised[2]) <= COOLING * COOLING * p->promised[0];
}

static fgi_rc after_set(fgi_optimiser *o) {
    proxqn *p = of(o);
    for (int64_t k = 0; k < p->n; k++) {
        p->next[k] += o->s.l2 * o->w[p->set[k]];
        const double change = p->next[k] - p->g[k];
        p->g[k] = p->next[k];
        p->next[k] = change;
        if (!isfinite(change)) return FGI_BAD_MODEL;
    }
    fgi_compact_push(&p->B, p->direction, p->step, p->next);
    const double violation = shrink(o);
    o->info.violation = violation;
    o->info.full = p->n == o->d;
    const double asked = o->info.full ? o->s.tol : fgi_larger(o->s.tol, p->asked);
    if (!o->info.full && has_cooled(p)) want_all(o);
    else if (violation > asked * o->info.first_violation || (asked <= o->s.tol && !promises_little(o))) begin_step(o);
    else if (o->info.full) fgi_optimise_finish(o, FGI_OPTIMAL);
    else want_all(o);
    return FGI_OK;
}

static void after_trial(fgi_optimiser *o, double loss) {
    proxqn *p = of(o);
    const double f = loss + p->penalty;
    if (fgi_optimise_descends(o, f, p->step * p->decrease)) {
        fgi_optimise_accept(o, f, loss, p->step);
        p->stalled = 0;
        fgi_optimise_want_gradient(o, SET_GRADIENT, p->set, p->n, p->next);
    } else if (p->step < FGI_SEARCH_LEAST) give_up_search(o);
    else {
        move(o, FGI_SEARCH_FACTOR * p->step);
        want_value(o, TRIAL_VALUE);
    }
}

static fgi_rc answer(fgi_optimiser *o, double value) {
    proxqn *p = of(o);
    switch (o->phase) {
    case FIRST_VALUE:
        if (!fgi_optimise_begin(o, value)) return FGI_BAD_MODEL;
        p->start = o->info.objective;
        want_all(o);
        return FGI_OK;
    case ALL_GRADIENT: return after_all(o);
    case TRIAL_VALUE: after_trial(o, value); return FGI_OK;
    case BACK_VALUE: want_all(o); return FGI_OK;
    case SET_CURVATURE: return after_curvature(o);
    default: return after_set(o);
    }
}

/* ---- life ----------------------------------------------------------------------------------------------------- */

static fgi_rc create(fgi_optimiser *o) {
    proxqn *p = o->method = fgi_calloc(1, sizeof *p);
    if (!p) return FGI_NO_MEMORY;
    p->widest = INFINITY;
    p->asked = 1;
    p->hat = fgi_calloc(2 * o->s.memory, sizeof(double));
    if (!fgi_compact_create(&p->B, o->s.memory) || !p->hat) return FGI_NO_MEMORY;
    want_value(o, FIRST_VALUE);
    return FGI_OK;
}

static void settled(const fgi_optimiser *o, double *w) {
    const proxqn *p = of(o);
    memcpy(w, o->w, (size_t)o->d * sizeof(double));
    if (o->phase == TRIAL_VALUE)
        for (int64_t k = 0; k < p->n; k++) w[p->set[k]] = p->base[k];
}

static fgi_rc walk(fgi_optimiser *o, fgi_record *v) {
    proxqn *p = of(o);
    int64_t n = p->n;
    fgi_record_size(v, &n, o->d);
    fgi_record_size(v, &p->stalled, FGI_RECORD_MOST);
    double *reals[] = {&p->widest, &p->asked, &p->decrease, &p->step, &p->penalty, &p->start, &p->promised[0],
        &p->promised[1], &p->promised[2]};
    for (size_t k = 0; k < sizeof reals / sizeof *reals; k++) fgi_record_reals(v, reals[k], 1);
    if (v->failed) return FGI_OK;
    if (v->mode == FGI_RECORD_READ) {
        if (!make_room(p, n) || !fgi_compact_clear(&p->B, n)) return FGI_NO_MEMORY;
        p->n = n;
    }
    fgi_record_ints(v, p->set, n);
    fgi_record_reals(v, p->g, n);
    fgi_record_reals(v, p->base, n);
    fgi_record_reals(v, p->direction, n);
    fgi_compact_walk(&p->B, v);
    if (v->mode != FGI_RECORD_READ || v->failed) return FGI_OK;
    for (int64_t k = 0; k < n; k++)
        if (p->set[k] < 0 || p->set[k] >= o->d || (k && p->set[k] <= p->set[k - 1])) v->failed = 1;
    if (v->failed || o->phase < FIRST_VALUE || o->phase > SET_CURVATURE) v->failed = 1;
    else if (o->phase == ALL_GRADIENT) want_all(o);
    else if (o->phase == SET_GRADIENT) fgi_optimise_want_gradient(o, SET_GRADIENT, p->set, n, p->next);
    else if (o->phase == SET_CURVATURE) want_curvature(o);
    else want_value(o, o->phase);
    return FGI_OK;
}

static void release(fgi_optimiser *o) {
    proxqn *p = of(o);
    fgi_arena_free(&p->arena);
    free(p->hat);
    fgi_compact_free(&p->B);
    free(p);
}

const fgi_optimise_ops fgi_proxqn_ops = {create, answer, settled, walk, release};
