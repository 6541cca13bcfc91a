/* The local-search state against sums over the tables, and feasible rounding against enumeration, on random models. */
#include "primal/labeling.h"
#include "random_model.h"

static int agrees(const fgi_model *m, fgi_labeling *l) {
    int64_t violations;
    double sum = plain_sum(m, fgi_labeling_labels(l), &violations);
    REQUIRE(violations == fgi_labeling_violations(l));
    REQUIRE(fabs(sum - fgi_labeling_score(l)) < 1e-9);
    return 0;
}

static int label_scores_agree(const fgi_model *m, fgi_labeling *l, int32_t var) {
    int32_t labels[MAX_VARS];
    const int32_t *bad;
    memcpy(labels, fgi_labeling_labels(l), (size_t)m->s->n_vars * sizeof *labels);
    int64_t violations, now_violations;
    double now = plain_sum(m, labels, &now_violations);
    const double *x = fgi_labeling_label_scores(l, var, &bad);
    int32_t current = labels[var];
    for (int32_t a = 0; a < m->s->cards[var]; a++) {
        labels[var] = a;
        double sum = plain_sum(m, labels, &violations);
        REQUIRE(fabs((sum - now) - (x[a] - x[current])) < 1e-9);
        REQUIRE((bad ? bad[a] - bad[current] : 0) == violations - now_violations);
    }
    return 0;
}

static int random_moves(fgi_rng *rng) {
    int n = 2 + (int)fgi_rng_below(rng, MAX_VARS - 2);
    fgi_model *m =
        random_model_of(rng, n, MAX_LABELS, (int)fgi_rng_below(rng, MAX_FACTORS), (int)fgi_rng_below(rng, 3) * 15, 0);
    REQUIRE(m);
    fgi_labeling *l = fgi_labeling_create(m);
    REQUIRE(l);
    int32_t labels[MAX_VARS] = {0};
    fgi_labeling_assign(l, labels);
    for (int step = 0; step < 200; step++) {
        int32_t var = (int32_t)fgi_rng_below(rng, n);
        switch (fgi_rng_below(rng, 4)) {
        case 0:
            fgi_labeling_flip(l, var, (int32_t)fgi_rng_below(rng, m->s->cards[var]));
            fgi_labeling_push(l, var);
            break;
        case 1:
            memcpy(labels, fgi_labeling_labels(l), (size_t)n * sizeof *labels);
            for (int i = 0; i < n; i++)
                if (fgi_rng_below(rng, step % 2 ? 8 : 2) == 0) labels[i] = (int32_t)fgi_rng_below(rng, m->s->cards[i]);
            fgi_labeling_assign(l, labels);
            REQUIRE(memcmp(labels, fgi_labeling_labels(l), (size_t)n * sizeof *labels) == 0);
            break;
        case 2: {
            int64_t before = fgi_labeling_violations(l);
            double score = fgi_labeling_score(l);
            int done = fgi_labeling_ascend(l, 1 + fgi_rng_below(rng, 100));
            int64_t after = fgi_labeling_violations(l);
            REQUIRE(after < before || (after == before && fgi_labeling_score(l) >= score - 1e-12));
            if (done)
                for (int32_t i = 0; i < n; i++) REQUIRE(fgi_labeling_best_label(l, i) == fgi_labeling_labels(l)[i]);
            break;
        }
        default:
            if (label_scores_agree(m, l, var)) return 1;
        }
        if (agrees(m, l)) return 1;
    }
    fgi_labeling_free(l);
    fgi_model_free(m);
    return 0;
}

/* What is kept of labels used before changes nothing but the time: the same numbers to the bit, as much work. */
static int kept_effects(fgi_rng *rng) {
    const int n = 2 + (int)fgi_rng_below(rng, 2);
    fgi_model *m = random_model_of(rng, n, MAX_LABELS, MAX_FACTORS, (int)fgi_rng_below(rng, 2) * 15, 0);
    REQUIRE(m);
    fgi_labeling *with = fgi_labeling_create(m), *without = fgi_labeling_create(m);
    REQUIRE(with && without);
    fgi_labeling_keep_effects(with);
    REQUIRE(fgi_labeling_memory(with) > fgi_labeling_memory(without));
    const int32_t labels[MAX_VARS] = {0};
    fgi_labeling_assign(with, labels);
    fgi_labeling_assign(without, labels);
    for (int step = 0; step < 300; step++) {
        const int32_t var = (int32_t)fgi_rng_below(rng, n), label = (int32_t)fgi_rng_below(rng, m->s->cards[var]);
        fgi_labeling_flip(with, var, label);
        fgi_labeling_flip(without, var, label);
        if (step % 50 == 49) REQUIRE(fgi_labeling_ascend(with, 1000) == fgi_labeling_ascend(without, 1000));
        REQUIRE(fgi_labeling_score(with) == fgi_labeling_score(without));
        REQUIRE(fgi_labeling_violations(with) == fgi_labeling_violations(without));
        for (int32_t i = 0; i < n; i++) {
            const int32_t *bad, *expected_bad;
            const double *x = fgi_labeling_label_scores(with, i, &bad);
            const double *expected = fgi_labeling_label_scores(without, i, &expected_bad);
            for (int32_t a = 0; a < m->s->cards[i]; a++) {
                REQUIRE(x[a] == expected[a]);
                REQUIRE(!bad || bad[a] == expected_bad[a]);
            }
        }
        REQUIRE(fgi_labeling_operations(with) == fgi_labeling_operations(without));
    }
    fgi_labeling_free(with);
    fgi_labeling_free(without);
    fgi_model_free(m);
    return 0;
}

static int feasible_by_enumeration(const fgi_model *m) {
    int32_t labels[MAX_VARS] = {0};
    for (;;) {
        int64_t violations;
        plain_sum(m, labels, &violations);
        if (!violations) return 1;
        int64_t i = 0;
        while (i < m->s->n_vars && ++labels[i] == m->s->cards[i]) labels[i++] = 0;
        if (i == m->s->n_vars) return 0;
    }
}

static int feasible_rounding(fgi_rng *rng, int tree) {
    int n = 2 + (int)fgi_rng_below(rng, 7);
    fgi_model *m = random_model(rng, n, (int)fgi_rng_below(rng, 14), 20 + (int)fgi_rng_below(rng, 40), tree);
    REQUIRE(m);
    fgi_construct *c = fgi_construct_create(m);
    fgi_labeling *l = fgi_labeling_create(m);
    REQUIRE(c && l);
    int expected = feasible_by_enumeration(m);
    for (int round = 0; round < 4; round++) {
        /* The same result however the work is cut. On trees propagation alone is enough: no backtracking. */
        int32_t first[MAX_VARS];
        fgi_construct_start(c, NULL, NULL, round & 1, tree ? 0 : 1000000);
        fgi_construct_state state;
        while ((state = fgi_construct_step(c, 1 + round * 10)) == FGI_CONSTRUCT_RUNNING) continue;
        REQUIRE(state == (expected ? FGI_CONSTRUCT_DONE : FGI_CONSTRUCT_INFEASIBLE));
        memcpy(first, fgi_construct_labels(c), (size_t)n * sizeof *first);
        int64_t violations;
        plain_sum(m, first, &violations);
        REQUIRE((violations == 0) == expected);
        REQUIRE(fgi_labeling_construct(l, c, NULL, first, 0, 1000000) == expected);
        if (expected) REQUIRE(memcmp(first, fgi_labeling_labels(l), (size_t)n * sizeof *first) == 0);
        if (agrees(m, l)) return 1;
    }
    fgi_labeling_free(l);
    fgi_construct_free(c);
    fgi_model_free(m);
    return 0;
}

int main(void) {
    fgi_rng rng = {1};
    for (int k = 0; k < 300; k++)
        if (random_moves(&rng) || kept_effects(&rng) || feasible_rounding(&rng, 0) || feasible_rounding(&rng, 1)) {
            fprintf(stderr, "round %d\n", k);
            return 1;
        }
    return 0;
}
