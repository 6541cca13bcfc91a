/* Exact re-optimisation of subsets against enumeration of all labelings of the subset, on random models. */
#include "primal/labeling.h"
#include "random_model.h"
#include "primal/thin.h"

static int below(int64_t violations, double score, int64_t than_violations, double than_score) {
    return violations > than_violations || (violations == than_violations && score < than_score - 1e-9);
}

static int one(fgi_rng *rng, int forbidden) {
    const int n = 2 + (int)fgi_rng_below(rng, 7);
    fgi_model *m = random_model(rng, n, (int)fgi_rng_below(rng, 14), forbidden, 0);
    REQUIRE(m);
    fgi_thin *subset = fgi_thin_create(m);
    fgi_block *block = fgi_block_create(m);
    fgi_labeling *l = fgi_labeling_create(m);
    REQUIRE(subset && block && l);
    int32_t labels[MAX_VARS], region[MAX_VARS], trial[MAX_VARS], other[MAX_VARS];
    for (int round = 0; round < 6; round++) {
        int size = 0, done = 0, fuse = (int)fgi_rng_below(rng, 2);
        for (int32_t i = 0; i < n; i++) {
            labels[i] = (int32_t)fgi_rng_below(rng, m->s->cards[i]);
            other[i] = (int32_t)fgi_rng_below(rng, m->s->cards[i]);
            if (fgi_rng_below(rng, 3) && !(fuse && other[i] == labels[i])) region[size++] = i;
        }
        fgi_labeling_assign(l, labels);
        fgi_thin_options options = {.log_limit = FGI_LOG_UNIT * (int32_t)(1 + fgi_rng_below(rng, 12)),
            .cost_limit = 1 << 20,
            .sample = 1 + round % 3,
            .last_in_first = 50,
            .sweep = round % 2,
            .two_states = fuse};
        fgi_thin_start(subset, region, size, &options, fgi_rng_next(rng));
        while (!done) REQUIRE(fgi_thin_step(subset, 1 + round * 7, &done) == FGI_OK);
        const fgi_elimination *e = fgi_thin_elimination(subset);
        /* Everything fits when the limit is the whole table. */
        if (options.log_limit >= 12 * FGI_LOG_UNIT && size <= 6)
            for (int k = 0; k < size; k++) REQUIRE(e->position[region[k]] >= 0 || m->s->cards[region[k]] == 1);
        const double penalty = fgi_labeling_violations(l) > 0 ? fgi_labeling_penalty(l) : 0;
        REQUIRE(fgi_block_start(block, e, labels, fuse ? other : NULL, penalty, fgi_rng_next(rng)) == FGI_OK);
        done = 0;
        while (!done) REQUIRE(fgi_block_step(block, 1 + round * 7, &done) == FGI_OK);
        memcpy(trial, labels, sizeof trial);
        for (int64_t k = 0; k < e->n; k++) trial[e->order[k]] = fgi_block_labels(block)[k];
        int64_t violations, trial_violations;
        double score = plain_sum(m, trial, &violations);
        for (int64_t k = 0; k < e->n; k++) trial[e->order[k]] = fuse ? labels[e->order[k]] : 0;
        for (;;) { /* no labeling of the set is better */
            double x = plain_sum(m, trial, &trial_violations);
            REQUIRE(!below(violations, score, trial_violations, x));
            int64_t k = 0;
            while (k < e->n) { /* count on, in states of the variables */
                const int32_t v = e->order[k++], first = fuse ? labels[v] : 0,
                              last = fuse ? other[v] : m->s->cards[v] - 1;
                const int carry = trial[v] == last;
                trial[v] = carry ? first : fuse ? other[v] : trial[v] + 1;
                if (!carry) break;
                if (k == e->n) k++;
            }
            if (k > e->n || e->n == 0) break;
        }
    }
    fgi_thin_free(subset);
    fgi_block_free(block);
    fgi_labeling_free(l);
    fgi_model_free(m);
    return 0;
}

int main(void) {
    fgi_rng rng = {2};
    for (int k = 0; k < 400; k++)
        if (one(&rng, k % 3 * 12)) {
            fprintf(stderr, "round %d\n", k);
            return 1;
        }
    return 0;
}
