/* latent/atom_search.c - local and tabu search for the atom problem.
 *
 * With s = F'z at hand, flipping bit i changes |s|^2 by |f_i|^2 +- 2 f_i.s: O(r) to look, O(r) to do. Tabu steps look
 * at a sample of the bits, so that a step costs O(candidates * r) and not O(N r). */
#include <string.h>
#include "base/assert.h"
#include "latent/atom.h"

typedef struct point {
    const fgi_atom *a;
    uint8_t *z;
    double *sum;   /* F'z */
    double square; /* |sum|^2 */
    int64_t ones;
    fgi_meter meter;
} point;

typedef struct scratch {
    double *sum;    /* r */
    int64_t *until; /* n: the step from which a bit may flip again */
    uint8_t *best;  /* n */
} scratch;

typedef struct job {
    const fgi_atom *a;
    uint8_t *z;
    double *values;
    scratch *scratch; /* one a thread */
    int64_t first, tabu_steps, candidates;
    uint64_t seed;
} job;

static double scaled(const fgi_atom *a, double square, int64_t ones) {
    return a->scale ? square * a->scale[ones] : square;
}

static void place(point *p) {
    p->ones = fgi_atom_sum(p->a, p->z, p->sum);
    p->square = fgi_dot(p->sum, p->sum, p->a->r);
}

static double value(const point *p) { return scaled(p->a, p->square, p->ones); }

/* The value after flipping bit i. */
static double value_after(const point *p, int64_t i, double *square) {
    const int sign = p->z[i] ? -1 : 1;
    *square = p->square + p->a->square[i] + sign * 2 * fgi_row_dot(fgi_atom_row(p->a, i), p->sum);
    return scaled(p->a, *square, p->ones + sign);
}

static void flip(point *p, int64_t i, double square) {
    const int sign = p->z[i] ? -1 : 1;
    fgi_assert(i >= 0 && i < p->a->n && p->ones + sign >= 0 && p->ones + sign <= p->a->n);
    fgi_row_add(fgi_atom_row(p->a, i), sign, p->sum);
    p->z[i] ^= 1;
    p->ones += sign;
    p->square = square;
}

/* Whether time is over, after looking at so many flips. */
static int over(point *p, int64_t looks) { return fgi_meter_spend(&p->meter, looks * p->a->r); }

/* Flips in turn until none improves, or time is over. A gain counts from 1e-12 of the value on, so that rounding cannot
 * make a circle; sums are taken afresh after every sweep that changed something. */
static void ascend(point *p) {
    const int64_t n = p->a->n;
    int64_t quiet = 0; /* bits looked at since the last flip */
    int late = fgi_meter_over(&p->meter);
    while (quiet < n && !late) {
        for (int64_t i = 0; i < n && quiet < n && !late; i++) {
            double square;
            const double now = value(p), then = value_after(p, i, &square);
            if (then > now + 1e-12 * fabs(now)) {
                flip(p, i, square);
                quiet = 0;
            } else {
                quiet++;
            }
            late = over(p, 1);
        }
        place(p);
    }
}

/* The best flip among the candidates that may be made; -1 if there is none. */
static int64_t best_flip(
    const point *p, const int64_t *until, int64_t step, double best, int64_t candidates, fgi_rng *rng, double *square) {
    const int64_t n = p->a->n;
    int64_t chosen = -1;
    double most = -INFINITY;
    for (int64_t c = 0; c < candidates; c++) {
        const int64_t i = candidates == n ? c : fgi_rng_below(rng, n);
        double after;
        const double then = value_after(p, i, &after);
        if (then <= most || (until[i] > step && then <= best + 1e-12 * fabs(best))) continue;
        most = then;
        chosen = i;
        *square = after;
    }
    return chosen;
}

static void tabu(point *p, scratch *room, const job *t, fgi_rng *rng) {
    const int64_t n = p->a->n, tenure = n < 8 ? 0 : 3 + n / 50;
    const int64_t candidates = t->candidates <= 0 || t->candidates > n ? n : t->candidates;
    double best = value(p);
    memcpy(room->best, p->z, (size_t)n);
    memset(room->until, 0, (size_t)n * sizeof *room->until);
    for (int64_t step = 1; step <= t->tabu_steps && !over(p, candidates); step++) {
        double square;
        const int64_t i = best_flip(p, room->until, step, best, candidates, rng, &square);
        if (i < 0) continue;
        flip(p, i, square);
        room->until[i] = step + tenure + fgi_rng_below(rng, tenure + 2);
        if (step % 256 == 0) place(p);
        if (value(p) <= best + 1e-12 * fabs(best)) continue;
        best = value(p);
        memcpy(room->best, p->z, (size_t)n);
    }
    memcpy(p->z, room->best, (size_t)n);
    place(p);
    ascend(p);
}

static void search_some(void *context, int64_t begin, int64_t end, int worker) {
    const job *t = context;
    scratch *room = t->scratch + worker;
    for (int64_t k = begin; k < end; k++) {
        fgi_rng rng = fgi_rng_of(t->seed, t->first + k);
        point p = {t->a, t->z + k * t->a->n, room->sum, 0, 0, fgi_atom_meter(t->a)};
        place(&p);
        ascend(&p);
        if (t->tabu_steps > 0 && !fgi_meter_over(&p.meter)) tabu(&p, room, t, &rng);
        t->values[k] = value(&p);
    }
}

fgi_rc fgi_atom_search(const fgi_atom *a, uint8_t *z, int64_t first, int64_t count, int64_t tabu_steps,
    int64_t candidates, uint64_t seed, double *values, fgi_error *err) {
    if (first < 0 || count < 0 || tabu_steps < 0 || candidates < 0)
        return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "first, count, tabu_steps and candidates must not be negative");
    for (int64_t k = 0; k < count * a->n; k++)
        if (z[k] > 1)
            return fgi_fail(err, FGI_BAD_ARGUMENT, k / a->n, "start %lld is not 0 or 1", (long long)(k / a->n));
    fgi_arena arena = {0};
    job t = {a, z, values, fgi_take(&arena, a->threads, scratch), first, tabu_steps, candidates, seed};
    for (int w = 0; t.scratch && w < a->threads; w++)
        t.scratch[w] =
            (scratch){fgi_take(&arena, a->r, double), fgi_take(&arena, a->n, int64_t), fgi_take(&arena, a->n, uint8_t)};
    const fgi_rc rc = arena.failed ? fgi_no_memory(err) : FGI_OK;
    if (!rc) fgi_pool_run(a->pool, count, 1, search_some, &t);
    fgi_arena_free(&arena);
    return rc;
}
