/* exact/lap.c and exact/placing.c against all permutations: the least cost, what is left of the costs, and bounds of
 * quadratic assignment that no placing is below. */
#include "check.h"
#include "base/util.h"
#include "exact/placing.h"

enum { MOST = 5, MODELS = 300 };

/* Calls `tell` for each permutation of 0..n-1. */
typedef void (*teller)(void *what, const int32_t *order);

static void permute(int32_t *order, int32_t from, int32_t n, teller tell, void *what) {
    if (from == n) tell(what, order);
    for (int32_t k = from; k < n; k++) {
        const int32_t keep = order[from];
        order[from] = order[k];
        order[k] = keep;
        permute(order, from + 1, n, tell, what);
        order[k] = order[from];
        order[from] = keep;
    }
}

static void all_orders(int32_t n, teller tell, void *what) {
    int32_t order[MOST];
    for (int32_t k = 0; k < n; k++) order[k] = k;
    permute(order, 0, n, tell, what);
}

static int64_t plus(int64_t a, int64_t b) { return fgi_lap_is_never(a) || fgi_lap_is_never(b) ? FGI_LAP_NEVER : a + b; }

typedef struct lines {
    const int64_t *before, *after;
    int32_t n;
    int64_t value, least;
} lines;

static void look_at_lines(void *what, const int32_t *order) {
    lines *x = what;
    int64_t before = 0, after = 0;
    for (int32_t i = 0; i < x->n; i++) {
        before = plus(before, x->before[i * x->n + order[i]]);
        after = plus(after, x->after[i * x->n + order[i]]);
    }
    if (before < x->least) x->least = before;
    if (x->value >= 0) CHECK(plus(after, x->value) == before);
}

static void assignments_are_the_least(fgi_rng *rng) {
    const int32_t n = 1 + (int32_t)fgi_rng_below(rng, MOST);
    int64_t before[MOST * MOST], after[MOST * MOST];
    int32_t column[MOST];
    for (int32_t k = 0; k < n * n; k++)
        before[k] = after[k] = fgi_rng_below(rng, 4) == 0 ? FGI_LAP_NEVER : fgi_rng_below(rng, 30);
    const int64_t value = fgi_lap_reduce(after, n, column);
    lines x = {before, after, n, value, FGI_LAP_NEVER};
    all_orders(n, look_at_lines, &x);
    CHECK(value == (fgi_lap_is_never(x.least) ? -1 : x.least));
    for (int32_t k = 0; k < n * n && value >= 0; k++) CHECK(after[k] >= 0);
    for (int32_t i = 0; i < n && value >= 0; i++) CHECK(after[i * n + column[i]] == 0);
}

typedef struct costs {
    const fgi_placing *p;
    int64_t cost[130]; /* per permutation, as they come */
    int32_t n;
} costs;

static void cost_all(void *what, const int32_t *order) {
    costs *x = what;
    const fgi_placing *p = x->p;
    const int64_t m = p->m;
    int64_t sum = p->lower;
    for (int64_t i = 0; i < m; i++) {
        sum = plus(sum, p->alone[i * m + order[i]]);
        for (int64_t k = 0; k < m; k++)
            if (k != i) sum = plus(sum, p->both[((i * m + order[i]) * m + k) * m + order[k]]);
    }
    x->cost[x->n++] = sum;
}

/* What costs less than `room` keeps its cost through any number of steps; the rest is not below it. */
static void ascent_keeps_costs(fgi_rng *rng) {
    fgi_arena arena = {0};
    fgi_placing p = {0}, part = {0};
    const int32_t m = 2 + (int32_t)fgi_rng_below(rng, MOST - 1);
    CHECK(fgi_placing_make(&p, m, &arena) && fgi_placing_make(&part, m - 1, &arena));
    p.lower = 0;
    for (int64_t k = 0; k < (int64_t)m * m; k++) {
        p.alone[k] = fgi_rng_below(rng, 10) == 0 ? FGI_LAP_NEVER : fgi_rng_below(rng, 300);
        for (int64_t l = 0; l < (int64_t)m * m; l++)
            p.both[k * m * m + l] = fgi_rng_below(rng, 20) == 0 ? FGI_LAP_NEVER : fgi_rng_below(rng, 100);
    }
    const int64_t room = 200 + fgi_rng_below(rng, 3000);
    costs before = {.p = &p}, after = {.p = &p}, rest = {.p = &part};
    all_orders(m, cost_all, &before);
    int swept = 0, closed = 0;
    for (int64_t k = fgi_rng_below(rng, 5 * m * m); k >= 0 && !closed; k--)
        fgi_placing_ascend(&p, room, &swept, &closed);
    all_orders(m, cost_all, &after);
    for (int32_t k = 0; k < before.n; k++) {
        CHECK(before.cost[k] >= room || (!closed && after.cost[k] == before.cost[k]));
        CHECK(closed || after.cost[k] >= p.lower);
    }
    fgi_placing_restrict(&p, 0, 0, &part);
    all_orders(m - 1, cost_all, &rest);
    for (int32_t k = 0; k < rest.n; k++) CHECK(rest.cost[k] == after.cost[k]); /* the first ones place 0 at 0 */
    fgi_arena_free(&arena);
}

int main(void) {
    fgi_rng rng = {11};
    for (int k = 0; k < MODELS; k++) {
        assignments_are_the_least(&rng);
        ascent_keeps_costs(&rng);
    }
    return failed();
}
