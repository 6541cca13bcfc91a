/* base/partials.c and model/leftovers.c: sums of scores lose nothing, whatever cancels. */
#include <string.h>
#include "base/exact_sum.h"
#include "base/partials.h"
#include "base/util.h"
#include "check.h"
#include "model/model.h"

/* A number of any size, often one that cancels an earlier one. */
static double draw(fgi_rng *rng, const double *before, int n) {
    if (n > 0 && fgi_rng_unit(rng) < 0.3) return -before[(int)(fgi_rng_unit(rng) * n)];
    const int widest = fgi_rng_unit(rng) < 0.5 ? 60 : 2000;
    return ldexp(fgi_rng_unit(rng) - 0.5, (int)((fgi_rng_unit(rng) - 0.5) * widest));
}

static void partial_sums_are_exact(void) {
    fgi_rng rng = {1};
    for (int trial = 0; trial < 2000; trial++) {
        double x[40];
        fgi_partials p = {.n = 0};
        fgi_exact_sum exact = {{0}, 0};
        const int n = 1 + (int)(fgi_rng_unit(&rng) * 40);
        for (int k = 0; k < n; k++) {
            x[k] = draw(&rng, x, k);
            fgi_partials_add(&p, x[k]);
            fgi_exact_sum_add(&exact, x[k]);
        }
        while (p.n > 0) { /* the sum, then what is left of it, until nothing is */
            const double value = fgi_partials_value(&p);
            CHECK(value == fgi_exact_sum_value(&exact));
            if (value == 0 || check_failures) break;
            fgi_partials_add(&p, -value);
            fgi_exact_sum_add(&exact, -value);
        }
        CHECK(fgi_exact_sum_value(&exact) == 0);
    }
    fgi_partials large = {.n = 0};
    fgi_partials_add(&large, 1e308);
    fgi_partials_add(&large, 1e308);
    fgi_partials_add(&large, -1e308);
    CHECK(!isfinite(fgi_partials_value(&large)));
}

/* 1e16 + 1 on label 0, by a double and what it lost; the same of the constant. */
static const int32_t cards[] = {2}, left_var[] = {-1, 0, 0};
static const double unary[] = {1e16, 0}, left[] = {1, 1, 0.5, 0x1p-80, 0};

static fgi_model_spec good(void) {
    return (fgi_model_spec){.n_vars = 1,
        .cards = cards,
        .unary = unary,
        .constant = -1e16,
        .n_leftovers = 3,
        .leftover_var = left_var,
        .leftover = left,
        .n_leftover_values = 5};
}

static double score(const fgi_model *m, int32_t label) {
    double s = NAN;
    CHECK(fgi_model_score(m, &label, &s, NULL) == FGI_OK);
    return s;
}

static void scores_count_leftovers(void) {
    fgi_model_spec spec = good(), again;
    fgi_model *m = NULL, *copy = NULL, *none = NULL;
    CHECK(fgi_model_create(&spec, &m, NULL) == FGI_OK);
    CHECK(fgi_model_has_leftovers(m) && score(m, 0) == 2 && score(m, 1) == -1e16 + 2);
    CHECK(fgi_model_leftover_bound(m) > 2 && fgi_model_leftover_bound(m) < 2.000001);
    fgi_model_arrays(m, &again);
    CHECK(fgi_model_create(&again, &copy, NULL) == FGI_OK && score(copy, 0) == 2);
    fgi_model *plain = fgi_model_plain(m);
    CHECK(!fgi_model_has_leftovers(plain) && score(plain, 0) == 0 && fgi_model_leftover_bound(plain) == 0);
    const int32_t var = 0, label = 0;
    CHECK(fgi_model_condition(m, 1, &var, &label, &none, NULL) == FGI_OK && score(none, 0) == 2);
    const double other[] = {3, 4};
    CHECK(fgi_model_set_unary(copy, 0, other, NULL) == FGI_OK && score(copy, 0) == 4 - 1e16);
    CHECK(fgi_model_has_leftovers(copy) && score(m, 0) == 2); /* the constant's stay, and those of other handles */
    fgi_model *all[] = {m, copy, plain, none};
    for (int k = 0; k < 4; k++) fgi_model_free(all[k]);
}

static void refused(fgi_model_spec spec, const char *why) {
    fgi_model *m = NULL;
    fgi_error err;
    CHECK(fgi_model_create(&spec, &m, &err) == FGI_BAD_MODEL && !m && strstr(err.message, why));
}

static void wrong_leftovers_are_refused(void) {
    const int32_t unknown[] = {-1, 0, 1}, below[] = {-2, 0, 0}, unordered[] = {0, -1, 0};
    const double bad[] = {1, INFINITY, 0, 0, 0};
    fgi_model_spec spec = good();
    spec.leftover_var = unknown;
    refused(spec, "variable 1");
    spec.leftover_var = below;
    refused(spec, "variable -2");
    spec.leftover_var = unordered;
    refused(spec, "order");
    spec = good();
    spec.n_leftover_values = 4;
    refused(spec, "another number");
    spec.n_leftover_values = 6;
    refused(spec, "another number");
    spec = good();
    spec.leftover = bad;
    refused(spec, "not finite");
}

static void rows_fold_in_any_order(void) {
    const double rows[][2] = {{1e16, -1e30}, {1, 5}, {-1e16, 1e30}, {0x1p-70, -INFINITY}};
    double sums[2] = {0.5, 0}, constant;
    const int32_t two[] = {2, 2};
    const int64_t begin[] = {0, 0};
    fgi_folding f = {0};
    for (int k = 0; k < 4; k++) CHECK(fgi_folding_add(&f, 1, 2, rows[k]));
    fgi_folding_add_constant(&f, 1e16);
    fgi_folding_add_constant(&f, 3);
    CHECK(fgi_folding_finish(&f, two, begin, sums, &constant, NULL) == FGI_OK);
    CHECK(sums[0] == 1.5 && sums[1] == -INFINITY && constant == 1e16 + 4);
    fgi_model_spec spec = {0};
    fgi_folding_put(&f, &spec);
    CHECK(spec.n_leftovers == 2 && spec.leftover_var[0] == -1 && spec.leftover_var[1] == 1);
    CHECK(spec.leftover[0] == -1 && spec.leftover[1] == 0x1p-70 && spec.leftover[2] == 0 && fgi_folding_held(&f) > 0);
    fgi_folding_free(&f);
    const double large[] = {1.5e308, 0};
    fgi_error err;
    double other[2] = {1.5e308, 0};
    CHECK(fgi_folding_add(&f, 0, 2, large));
    CHECK(fgi_folding_finish(&f, two, begin, other, &constant, &err) == FGI_BAD_MODEL &&
        strstr(err.message, "variable 0"));
    fgi_folding_free(&f);
}

int main(void) {
    partial_sums_are_exact();
    scores_count_leftovers();
    wrong_leftovers_are_refused();
    rows_fold_in_any_order();
    return failed();
}
