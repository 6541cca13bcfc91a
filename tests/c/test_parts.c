/* model/draft.c and model/consistency.c on random models: a draft of parts has the scores of its parts; supported
 * labels are those of the definition. */
#include <math.h>
#include "check.h"
#include "model/consistency.h"
#include "model/draft.h"
#include "random_model.h"

enum { MODELS = 300 };

/* The model with its variables in reverse order, twice from one draft. */
static void drafts_keep_scores(fgi_rng *rng) {
    fgi_model *m = random_model(rng, 6, 8, 15, 0), *twins[2] = {NULL, NULL};
    const int32_t n = (int32_t)m->s->n_vars;
    int32_t local[MAX_VARS], labels[MAX_VARS], reversed[MAX_VARS];
    fgi_error err;
    fgi_draft d;
    fgi_draft_begin(&d, m);
    for (int k = 0; k < 2; k++) {
        for (int32_t i = n - 1; i >= 0; i--) local[i] = fgi_draft_variable(&d, m->s->cards[i], fgi_unary(m, i));
        for (int64_t f = 0; f < m->s->n_factors; f++) fgi_draft_copy_factor(&d, f, local);
        CHECK(fgi_draft_finish(&d, m->s->constant, &twins[k], &err) == FGI_OK);
    }
    fgi_draft_free(&d);
    for (int k = 0; k < 2 && twins[k]; k++) {
        CHECK(twins[k]->s->n_tables == m->s->n_tables && twins[k]->s->n_factors == m->s->n_factors);
        for (int trial = 0; trial < 20; trial++) {
            for (int32_t i = 0; i < n; i++)
                labels[i] = reversed[local[i]] = (int32_t)fgi_rng_below(rng, m->s->cards[i]);
            double own, twin;
            CHECK(fgi_model_score(m, labels, &own, &err) == FGI_OK);
            CHECK(fgi_model_score(twins[k], reversed, &twin, &err) == FGI_OK);
            CHECK(own == twin || fabs(own - twin) < 1e-12);
        }
        fgi_model_free(twins[k]);
    }
    fgi_model_free(m);
}

/* Tables that factors share stay shared, whatever uses them first. */
static void drafts_keep_sharing(void) {
    const int32_t cards[3] = {2, 2, 2}, arity[1] = {2}, dims[2] = {2, 2}, table[2] = {0, 0}, vars[4] = {0, 1, 1, 2};
    const double values[4] = {1, 2, 3, 4}, unary[6] = {0};
    fgi_model_spec spec = {.n_vars = 3,
        .cards = cards,
        .unary = unary,
        .n_tables = 1,
        .table_arity = arity,
        .dims = dims,
        .values = values,
        .n_values = 4,
        .n_factors = 2,
        .factor_table = table,
        .vars = vars};
    fgi_model *m = NULL, *twin = NULL;
    fgi_error err;
    CHECK(fgi_model_create(&spec, &m, &err) == FGI_OK);
    const int32_t local[3] = {0, 1, 2}, more[2] = {2, 0};
    fgi_draft d;
    fgi_draft_begin(&d, m);
    for (int32_t i = 0; i < 3; i++) fgi_draft_variable(&d, 2, unary);
    for (int64_t f = 0; f < 2; f++) fgi_draft_copy_factor(&d, f, local);
    double *own;
    const int32_t t = fgi_draft_dense(&d, 2, dims, &own);
    for (int k = 0; k < 4; k++) own[k] = -k;
    fgi_draft_factor(&d, t, 2.0, 1, 2, more, NULL);
    CHECK(fgi_draft_finish(&d, 1.5, &twin, &err) == FGI_OK);
    CHECK(twin->s->n_tables == 2 && twin->s->n_factors == 3 && !twin->s->var_begin);
    const int32_t labels[3] = {1, 0, 1};
    double score;
    CHECK(fgi_model_score(twin, labels, &score, &err) == FGI_OK);
    CHECK(score == 1.5 + 3 + 2 + 2.0 * -3); /* entry (1, 1) of the table that was added */
    fgi_draft_free(&d);
    fgi_model_free(m);
    fgi_model_free(twin);
}

static void supports_are_those_of_the_definition(fgi_rng *rng) {
    fgi_model *m = random_model(rng, 5, 8, 60, 0);
    for (int64_t f = 0; f < m->s->n_factors; f++) {
        const fgi_view v = fgi_factor_view(m, f);
        fgi_domain domains[3] = {{0}};
        uint8_t seen[12], wanted[12] = {0};
        int32_t labels[MAX_VARS] = {0}, begin[4] = {0};
        double scores[3][4];
        for (int32_t k = 0; k < v.arity; k++) {
            const int32_t card = m->s->cards[v.vars[k]];
            begin[k + 1] = begin[k] + card;
            for (int32_t a = 0; a < card; a++) scores[k][a] = fgi_rng_below(rng, 4) == 0 ? -INFINITY : 0;
            scores[k][fgi_rng_below(rng, card)] = 1; /* one is left */
            domains[k].scores = scores[k];
            for (int32_t a = 0; a < card; a++) domains[k].live += scores[k][a] > -INFINITY;
        }
        int64_t missing = 0, work = 0;
        for (int64_t state = 0; state < fgi_view_states(m, &v); state++) {
            int allowed = 1;
            int64_t rest = state;
            for (int32_t k = v.arity - 1; k >= 0; k--) {
                labels[v.vars[k]] = (int32_t)(rest % m->s->cards[v.vars[k]]);
                rest /= m->s->cards[v.vars[k]];
                allowed &= scores[k][labels[v.vars[k]]] > -INFINITY;
            }
            if (allowed && fgi_view_score(m, &v, labels) > -INFINITY)
                for (int32_t k = 0; k < v.arity; k++) wanted[begin[k] + labels[v.vars[k]]] = 1;
        }
        for (int32_t k = 0; k < v.arity; k++)
            for (int32_t a = 0; a < m->s->cards[v.vars[k]]; a++)
                missing += scores[k][a] > -INFINITY && !wanted[begin[k] + a];
        CHECK(fgi_view_supports(m, &v, domains, seen, &work) == missing);
        for (int32_t k = 0; missing && k < v.arity; k++) /* with none missing it may end before all is marked */
            for (int32_t a = 0; a < m->s->cards[v.vars[k]]; a++)
                CHECK(scores[k][a] == -INFINITY || seen[begin[k] + a] == wanted[begin[k] + a]);
        CHECK(work > 0);
    }
    fgi_model_free(m);
}

int main(void) {
    fgi_rng rng = {11};
    for (int k = 0; k < MODELS; k++) drafts_keep_scores(&rng);
    drafts_keep_sharing();
    for (int k = 0; k < MODELS; k++) supports_are_those_of_the_definition(&rng);
    return failed();
}
