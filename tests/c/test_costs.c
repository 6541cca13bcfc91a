/* Cost networks: propagation and decisions never change what a labeling costs, undoing them restores every number, and
 * the methods on top of them agree with brute force; run under the sanitizers. */
#include <stdlib.h>
#include "exact/costs.h"
#include "random_model.h"

enum { MODELS = 400, FORBIDDEN = 12 };

/* What the network says a labeling costs; -1: one of its terms is negative. */
static int64_t cost_of(const fgi_costs *c, const int32_t *labels) {
    int64_t cost = c->lower;
    for (int32_t i = 0; i < c->n; i++) {
        const int64_t term = c->unary[c->begin[i] + labels[i]];
        if (term < 0) return -1;
        if (term >= FGI_COST_LARGEST) return FGI_COST_LARGEST;
        cost += term;
    }
    for (int32_t f = 0; f < c->n_factors; f++) {
        if (c->spent[f] == FGI_MOVED) continue;
        int64_t state = 0, moved = 0;
        for (int32_t s = c->slot_begin[f]; s < c->slot_begin[f + 1]; s++) {
            state += c->slot_stride[s] * labels[c->slot_var[s]];
            moved += c->shift[c->slot_shift[s] + labels[c->slot_var[s]]];
        }
        const int64_t term = c->table[c->slot_begin[f]][state] - moved;
        if (term < 0) return -1;
        if (term >= FGI_COST_LARGEST) return FGI_COST_LARGEST;
        cost += term;
    }
    return cost;
}

static int is_live(const fgi_costs *c, const int32_t *labels) {
    for (int32_t i = 0; i < c->n; i++)
        if (!fgi_costs_alive(c, i, labels[i])) return 0;
    return 1;
}

static int next_labeling(const fgi_model *m, int32_t *labels) {
    for (int64_t i = 0; i < m->s->n_vars; i++) {
        if (++labels[i] < m->s->cards[i]) return 1;
        labels[i] = 0;
    }
    return 0;
}

/* Labelings below the upper limit that `c` still allows cost what they cost in `plain`; returns how many there are. */
static int64_t count_equal(const fgi_model *m, const fgi_costs *c, const fgi_costs *plain) {
    int32_t labels[MAX_VARS] = {0};
    int64_t n = 0;
    do {
        const int64_t cost = cost_of(plain, labels);
        if (!is_live(c, labels) || cost >= c->upper) continue;
        CHECK(cost_of(c, labels) == cost);
        n++;
    } while (next_labeling(m, labels));
    return n;
}

static void check_network(uint64_t seed) {
    fgi_rng rng = {seed};
    const int n = 2 + (int)fgi_rng_below(&rng, 4);
    fgi_model *m = random_model(&rng, n, (int)fgi_rng_below(&rng, 9), seed % 2 ? FORBIDDEN : 0, 0);
    fgi_costs *c = NULL, *plain = NULL;
    CHECK(!fgi_costs_create(m, -INFINITY, 0, &c) && !fgi_costs_create(m, -INFINITY, 0, &plain));
    if (c->infeasible) goto done;
    const int64_t all = count_equal(m, plain, plain);
    while (!fgi_costs_propagate(c, c->work + 3)) continue; /* in many small pieces */
    CHECK(c->conflict ? all == 0 : count_equal(m, c, plain) == all);
    if (c->conflict) goto done;
    const int64_t propagated = c->lower;
    while (!fgi_costs_sweep(c, c->work + 3)) continue;
    CHECK(c->conflict ? all == 0 : count_equal(m, c, plain) == all && c->lower >= propagated);
    while (!fgi_costs_propagate(c, c->work + 3)) continue;
    CHECK(c->conflict ? all == 0 : count_equal(m, c, plain) == all && c->lower >= propagated);
    if (c->conflict) goto done;
    const int64_t lower = c->lower;
    c->recording = 1;
    for (int round = 0; round < 6; round++) {
        const int64_t before = count_equal(m, c, plain), mark = c->n_trail;
        const int32_t i = (int32_t)fgi_rng_below(&rng, n), a = c->domain[c->begin[i]];
        if (c->size[i] > 1) fgi_costs_remove(c, i, a);
        while (!fgi_costs_propagate(c, c->work + 10)) continue;
        if (!c->conflict) {
            CHECK(count_equal(m, c, plain) <= before && c->lower >= lower);
            if (round % 2) continue; /* deeper */
        }
        fgi_costs_undo(c, mark);
        CHECK(count_equal(m, c, plain) == before);
    }
    fgi_costs_undo(c, 0);
    CHECK(c->lower == lower && count_equal(m, c, plain) == all);
done:
    fgi_costs_free(c);
    fgi_costs_free(plain);
    fgi_model_free(m);
}

static void check_method(uint64_t seed, int32_t method) {
    fgi_rng rng = {seed};
    const int n = 2 + (int)fgi_rng_below(&rng, 5);
    fgi_model *m = random_model(&rng, n, (int)fgi_rng_below(&rng, 12), seed % 2 ? FORBIDDEN : 0, 0);
    int32_t labels[MAX_VARS] = {0};
    double best = -INFINITY;
    do {
        int64_t violations;
        const double score = plain_sum(m, labels, &violations);
        if (!violations && score > best) best = score;
    } while (next_labeling(m, labels));
    fgi_settings settings = fgi_settings_default();
    settings.method = method;
    settings.gap = 0;
    fgi_solver *s = NULL;
    fgi_info info = {0};
    CHECK(!fgi_solver_create(m, &settings, &s, NULL));
    do CHECK(!fgi_solver_run(s, 0, 1, &info));
    while (info.status == FGI_RUNNING && info.bound >= best - 1e-12);
    CHECK(info.status == (best > -INFINITY ? FGI_OPTIMAL : FGI_INFEASIBLE));
    CHECK(info.score == best || fabs(info.score - best) <= 1e-12);
    fgi_solver_free(s);
    fgi_model_free(m);
}

int main(void) {
    for (uint64_t seed = 1; seed <= MODELS && check_failures < 10; seed++) {
        check_network(seed);
        check_method(seed, FGI_EDAC);
        check_method(seed, FGI_DOLLS);
    }
    return failed();
}
