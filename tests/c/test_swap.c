/* primal/swap.c on random assignments: what a run says of its best labeling is what the tables say, nothing that must
 * differ is alike, and small assignments are solved. */
#include <math.h>
#include "check.h"
#include "primal/search.h"

enum { MODELS = 60, MOST = 6, PIECE = 1000 };

/* Places of n things: costs between all pairs, each thing with its own order of the labels, so that the labels that
 * exclude each other have different numbers; every third pair has a second factor. */
static fgi_model *assignment(fgi_rng *rng, int32_t n, int32_t *true_label) {
    enum { PAIRS = MOST * (MOST - 1), SQUARE = MOST * MOST };
    static double values[PAIRS * SQUARE], unary[SQUARE], weight[PAIRS];
    static int32_t cards[MOST], arity[PAIRS], dims[2 * PAIRS], tables[PAIRS], vars[2 * PAIRS];
    static uint8_t transposed[PAIRS];
    int64_t n_values = 0, n_factors = 0;
    for (int32_t i = 0; i < n; i++) {
        cards[i] = n;
        for (int32_t a = 0; a < n; a++) {
            unary[i * n + a] = fgi_rng_unit(rng);
            true_label[i * n + a] = a;
        }
        for (int32_t a = n - 1; a > 0; a--) {
            const int32_t b = (int32_t)fgi_rng_below(rng, a + 1), keep = true_label[i * n + a];
            true_label[i * n + a] = true_label[i * n + b];
            true_label[i * n + b] = keep;
        }
    }
    for (int32_t i = 0; i < n; i++)
        for (int32_t j = 0; j < i; j++)
            for (int32_t second = 0; second <= (i + j) % 3 / 2; second++) {
                const int turned = (int)fgi_rng_below(rng, 2), swapped = (int)fgi_rng_below(rng, 2);
                vars[2 * n_factors] = swapped ? j : i;
                vars[2 * n_factors + 1] = swapped ? i : j;
                const int32_t row = turned ? vars[2 * n_factors + 1] : vars[2 * n_factors], column = i + j - row;
                for (int32_t a = 0; a < n; a++)
                    for (int32_t b = 0; b < n; b++)
                        values[n_values++] = !second && true_label[row * n + a] == true_label[column * n + b]
                            ? -INFINITY
                            : fgi_rng_unit(rng);
                arity[n_factors] = 2;
                dims[2 * n_factors] = dims[2 * n_factors + 1] = n;
                tables[n_factors] = (int32_t)n_factors;
                weight[n_factors] = 0.5 + fgi_rng_unit(rng);
                transposed[n_factors++] = (uint8_t)turned;
            }
    fgi_model_spec spec = {.n_vars = n,
        .cards = cards,
        .unary = unary,
        .n_tables = n_factors,
        .table_arity = arity,
        .dims = dims,
        .values = values,
        .n_values = n_values,
        .n_factors = n_factors,
        .factor_table = tables,
        .factor_weight = weight,
        .factor_transposed = transposed,
        .vars = vars};
    fgi_model *m = NULL;
    fgi_error err;
    CHECK(fgi_model_create(&spec, &m, &err) == FGI_OK);
    return m;
}

/* The best of all labelings, by trying them. */
static double best_of_all(const fgi_model *m, int32_t *labels, int32_t from) {
    fgi_error err;
    double best = -INFINITY, score;
    if (from == m->s->n_vars) {
        CHECK(fgi_model_score(m, labels, &score, &err) == FGI_OK);
        return score;
    }
    for (labels[from] = 0; labels[from] < m->s->cards[from]; labels[from]++) {
        score = best_of_all(m, labels, from + 1);
        if (score > best) best = score;
    }
    return best;
}

/* A run from any labeling, in pieces: 1 if it ended with the best of all. */
static int run_once(const fgi_model *m, fgi_labeling *local, fgi_swap *swap, double optimum, fgi_rng *rng) {
    int32_t labels[MOST], best[MOST];
    double said, score;
    fgi_error err;
    for (int32_t i = 0; i < m->s->n_vars; i++) labels[i] = (int32_t)fgi_rng_below(rng, m->s->cards[i]);
    fgi_labeling_assign(local, labels);
    const int64_t before = fgi_labeling_violations(local);
    fgi_swap_start(swap);
    for (int done = 0; !done;) {
        done = fgi_swap_run(swap, PIECE, rng);
        const int64_t violations = fgi_trail_best(fgi_swap_trail(swap), &said);
        CHECK(violations <= before);
        fgi_trail_best_labels(fgi_swap_trail(swap), best);
        CHECK(fgi_model_score(m, best, &score, &err) == FGI_OK);
        CHECK((violations > 0) == (score == -INFINITY));
        CHECK(violations > 0 || fabs(score - said) < 1e-9);
    }
    CHECK(!fgi_swap_trail(swap)->failed);
    for (int32_t i = 0; i < m->s->n_vars; i++) CHECK(fgi_labeling_labels(local)[i] == best[i]);
    return score > optimum - 1e-9;
}

int main(void) {
    fgi_rng rng = {5};
    int32_t labels[MOST], true_label[MOST * MOST];
    for (int k = 0; k < MODELS; k++) {
        const int32_t n = 3 + (int32_t)fgi_rng_below(&rng, MOST - 3);
        fgi_model *m = assignment(&rng, n, true_label);
        if (!m) return failed();
        fgi_arena arena = {0};
        fgi_labeling *local = fgi_labeling_create(m);
        fgi_swap *swap = fgi_swap_create(m, local, &arena);
        CHECK(swap != NULL);
        const double optimum = best_of_all(m, labels, 0);
        int solved = 0;
        for (int trial = 0; swap && trial < 5; trial++) solved += run_once(m, local, swap, optimum, &rng);
        CHECK(solved > 0);
        fgi_swap_free(swap);
        fgi_labeling_free(local);
        fgi_arena_free(&arena);
        fgi_model_free(m);
    }
    return failed();
}
