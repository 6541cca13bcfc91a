/* Labelings put together: every joint state of the joined model is a labeling of the model, with the same score up to a
 * constant, and the labelings it was made from are among them. */
#include "random_model.h"
#include "primal/join.h"

enum { LABELINGS = 4 };

static double joined_sum(const fgi_join *j, const int32_t *states, int *forbidden) {
    int64_t violations;
    const double sum = plain_sum(j->model, states, &violations);
    *forbidden = violations > 0;
    return sum;
}

/* Sums differ by what is the same in all labelings: the constant, and factors without a choice. */
static int all_states(const fgi_model *m, const fgi_join *j) {
    const fgi_structure *s = j->model->s;
    int32_t states[MAX_VARS] = {0}, labels[MAX_VARS];
    double shift = 0;
    int known = 0, lost = 0; /* a forbidden factor without a choice is in every labeling, and in no state */
    for (;;) {
        int64_t violations;
        int forbidden;
        fgi_join_expand(j, states, labels);
        REQUIRE(fgi_model_check_labels(m, labels, NULL) == FGI_OK);
        const double own = plain_sum(m, labels, &violations), joined = joined_sum(j, states, &forbidden);
        if (forbidden) REQUIRE(violations > 0);
        if (!forbidden && violations > 0) lost = 1;
        if (!forbidden && violations == 0) {
            REQUIRE(!lost);
            if (!known) shift = own - joined;
            known = 1;
            REQUIRE(fabs(own - joined - shift) < 1e-9);
        }
        int64_t i = 0;
        while (i < s->n_vars && ++states[i] == s->cards[i]) states[i++] = 0;
        if (i == s->n_vars) return 0;
    }
}

static int one(fgi_rng *rng, int round) {
    const int n = 2 + (int)fgi_rng_below(rng, 7), used = 1 + (int)fgi_rng_below(rng, LABELINGS);
    fgi_model *m = random_model(rng, n, (int)fgi_rng_below(rng, 14), round % 3 * 10, 0);
    int32_t labels[LABELINGS][MAX_VARS], states[MAX_VARS] = {0}, back[MAX_VARS];
    const int32_t *given[LABELINGS];
    REQUIRE(m);
    for (int k = 0; k < LABELINGS; k++) {
        given[k] = labels[k];
        for (int i = 0; i < n; i++) /* some alike */
            labels[k][i] = k && fgi_rng_below(rng, 2) ? labels[0][i] : (int32_t)fgi_rng_below(rng, m->s->cards[i]);
    }
    fgi_join j;
    REQUIRE(fgi_join_create(&j, m, used, given) == FGI_OK);
    REQUIRE(j.work > 0);
    if (all_states(m, &j)) return 1;
    for (int k = 0; k < used; k++) {
        fgi_join_states(&j, k, states);
        fgi_join_expand(&j, states, back);
        for (int i = 0; i < n; i++) REQUIRE(back[i] == labels[k][i]);
    }
    fgi_join_free(&j);
    fgi_join_free(&j); /* nothing was joined */
    fgi_model_free(m);
    return 0;
}

/* Two labelings of a chain that differ in its middle only: three sets. */
static int chain(void) {
    enum { N = 9 };
    int32_t cards[N], vars[2 * (N - 1)], tables[N - 1], first[N], second[N], kind = FGI_POTTS, arity = 2;
    double unary[2 * N], params[2] = {1, -1};
    for (int i = 0; i < N; i++) {
        cards[i] = 2;
        unary[2 * i] = 0;
        unary[2 * i + 1] = i;
        first[i] = i % 2;
        second[i] = i >= 3 && i < 6 ? 1 - first[i] : first[i];
    }
    for (int i = 0; i + 1 < N; i++) {
        vars[2 * i] = i;
        vars[2 * i + 1] = i + 1;
        tables[i] = 0;
    }
    fgi_model_spec spec = {.n_vars = N,
        .cards = cards,
        .unary = unary,
        .n_tables = 1,
        .table_kind = &kind,
        .table_arity = &arity,
        .params = params,
        .n_factors = N - 1,
        .factor_table = tables,
        .vars = vars};
    const int32_t *given[2] = {first, second};
    fgi_model *m = NULL;
    fgi_join j;
    REQUIRE(fgi_model_create(&spec, &m, NULL) == FGI_OK);
    REQUIRE(fgi_join_create(&j, m, 2, given) == FGI_OK);
    REQUIRE(j.model->s->n_vars == 3 && j.model->s->n_factors == 2 && j.model->s->max_card == 2);
    REQUIRE(j.set[0] == j.set[2] && j.set[3] == j.set[5] && j.set[6] == j.set[8] && j.set[0] != j.set[6]);
    if (all_states(m, &j)) return 1;
    fgi_join_free(&j);
    fgi_model_free(m);
    return 0;
}

int main(void) {
    fgi_rng rng = {7};
    if (chain()) return 1;
    for (int round = 0; round < 300; round++)
        if (one(&rng, round)) {
            fprintf(stderr, "round %d\n", round);
            return 1;
        }
    return 0;
}
