/* model/model.c and model/condition.c: malformed specs are refused with a message, potentials are copied on write, and
 * conditioning agrees with the whole model. */
#include <stdio.h>
#include <string.h>
#include "check.h"
#include "model/lean.h"
#include "model/model.h"
#include "base/util.h"

static const int32_t cards[] = {2, 3, 2};
static const int32_t arity[] = {2, 2, 3};
static const int32_t dims[] = {2, 3, 2, 2, 2, 3, 2};
static double values[6 + 4 + 12];
static const int32_t factor_table[] = {0, 0, 1, 2};
static const double weight[] = {1, 2, 0.5, 1};
static const uint8_t transposed[] = {0, 1, 0, 0};
static const int64_t var_begin[] = {0, 2, 4, 6, 9};
static const int32_t vars[] = {0, 1, 1, 2, 0, 2, 0, 1, 2};
static const double unary[] = {0, 1, 0, 0.5, -INFINITY, 2, 3};

static fgi_model_spec good(void) {
    for (int k = 0; k < 22; k++) values[k] = k % 7 - 3;
    values[9] = -INFINITY;
    return (fgi_model_spec){
        .n_vars = 3,
        .cards = cards,
        .unary = unary,
        .constant = 1.5,
        .n_tables = 3,
        .table_arity = arity,
        .dims = dims,
        .values = values,
        .n_values = 22,
        .n_factors = 4,
        .factor_table = factor_table,
        .factor_weight = weight,
        .factor_transposed = transposed,
        .var_begin = var_begin,
        .vars = vars,
    };
}

static void refused(const char *name, const fgi_model_spec *spec, const char *message) {
    fgi_model *m = NULL;
    fgi_error err;
    memset(&err, 0, sizeof err);
    fgi_rc rc = fgi_model_create(spec, &m, &err);
    if (rc == FGI_BAD_MODEL && !m && strstr(err.message, message)) return;
    fprintf(stderr, "%s: rc %d, message '%s'\n", name, rc, err.message);
    fgi_model_free(m);
    check_failures++;
}

static void malformed_specs(void) {
    fgi_model_spec s;
#define BAD(field, value, message) (s = good(), s.field = value, refused(#field, &s, message))
    BAD(n_vars, -1, "negative");
    BAD(n_factors, -1, "negative");
    BAD(n_tables, -1, "negative");
    BAD(n_factors, INT64_MAX, "2^31");
    BAD(n_values, 21, "needs 12 values, 11 are left");
    BAD(n_values, 23, "need 22 values, 23 are given");
    BAD(constant, NAN, "constant");
    BAD(constant, INFINITY, "constant");
    BAD(n_vars, 2, "variable 2 of 2");
    static const int32_t no_labels[] = {2, 0, 2}, wrong_labels[] = {2, 4, 2}, unary_arity[] = {1, 2, 3};
    BAD(cards, no_labels, "variable 1 has 0 labels");
    BAD(cards, wrong_labels, "factor 0: variable 1 has 4 labels");
    BAD(table_arity, unary_arity, "arity 1");
    static const int32_t huge[] = {INT32_MAX, INT32_MAX, 2, 2, INT32_MAX, INT32_MAX, INT32_MAX};
    BAD(dims, huge, "left");
    static const int32_t huge3[] = {2, 3, 2, 2, INT32_MAX, INT32_MAX, INT32_MAX};
    BAD(dims, huge3, "more than 2^63");
    static const int32_t zero_dim[] = {2, 0, 2, 2, 2, 3, 2};
    BAD(dims, zero_dim, "dimension of 0");
    static const int32_t no_table[] = {0, 0, 3, 2}, negative_table[] = {0, 0, -1, 2}, other_arity[] = {0, 0, 2, 2};
    BAD(factor_table, no_table, "table 3 of 3");
    BAD(factor_table, negative_table, "table -1 of 3");
    BAD(factor_table, other_arity, "factor 2 has 2 variables");
    static const double w_zero[] = {1, 0, 1, 1}, w_nan[] = {1, NAN, 1, 1}, w_inf[] = {1, 1, INFINITY, 1},
                        w_huge[] = {1, 1e308, 1, 1};
    BAD(factor_weight, w_zero, "weight 0");
    BAD(factor_weight, w_nan, "factor 1 has weight");
    BAD(factor_weight, w_inf, "factor 2 has weight");
    BAD(factor_weight, w_huge, "overflows");
    static const uint8_t t_three[] = {0, 1, 0, 1};
    BAD(factor_transposed, t_three, "factor 3 is transposed");
    static const int64_t b_start[] = {1, 2, 4, 6, 9}, b_down[] = {0, 2, 1, 6, 9};
    BAD(var_begin, b_start, "start at 0");
    BAD(var_begin, b_down, "decreases");
    static const int32_t v_far[] = {0, 1, 1, 3, 0, 2, 0, 1, 2}, v_minus[] = {0, -1, 1, 2, 0, 2, 0, 1, 2},
                         v_twice[] = {0, 1, 1, 2, 2, 2, 0, 1, 2};
    BAD(vars, v_far, "variable 3 of 3");
    BAD(vars, v_minus, "variable -1");
    BAD(vars, v_twice, "variable 2 twice");
    static const double u_nan[] = {0, 1, 0, NAN, 0, 0, 0}, u_inf[] = {0, 1, 0, 0, 0, 0, INFINITY};
    BAD(unary, u_nan, "variable 1, entry 1 is NaN");
    BAD(unary, u_inf, "variable 2, entry 1 is +inf");
    static const int32_t kinds[] = {FGI_DENSE, 9, FGI_DENSE};
    static double params[] = {0, 0, 0, 0, 0, 0};
    s = good(), s.table_kind = kinds, s.params = params, refused("kind", &s, "unknown kind 9");
    s = good();
    values[3] = NAN;
    refused("values", &s, "table 0, entry 3 is NaN");
}

static void bad_implicit(int32_t kind, double p0, double p1, const char *message) {
    const int32_t k[] = {kind}, v[] = {0, 1}, t[] = {0}, two[] = {2, 2}, a[] = {2};
    const double p[] = {p0, p1};
    fgi_model_spec s = {.n_vars = 2,
        .cards = two,
        .n_tables = 1,
        .table_kind = k,
        .table_arity = a,
        .params = p,
        .n_factors = 1,
        .factor_table = t,
        .vars = v};
    refused("implicit", &s, message);
}

static double score(const fgi_model *m, const int32_t *labels) {
    double out = NAN;
    CHECK(fgi_model_score(m, labels, &out, NULL) == FGI_OK);
    return out;
}

static void copy_on_write(void) {
    fgi_model_spec spec = good();
    fgi_model *m = NULL;
    CHECK(fgi_model_create(&spec, &m, NULL) == FGI_OK);
    const int32_t x[] = {1, 1, 0};
    double before = score(m, x);
    fgi_model *held = fgi_model_snapshot(m);
    CHECK(fgi_model_same_structure(m, held));
    const double other[] = {5, 7}, table[] = {1, 1, 1, 1, 1, 1};
    CHECK(fgi_model_set_unary(m, 0, other, NULL) == FGI_OK);
    CHECK(score(held, x) == before);
    CHECK(score(m, x) == before + 6);
    CHECK(fgi_model_set_table(m, 0, table, NULL) == FGI_OK);
    CHECK(score(held, x) == before);
    CHECK(fgi_model_set_unary(m, 3, other, NULL) == FGI_BAD_ARGUMENT);
    CHECK(fgi_model_set_table(m, 3, table, NULL) == FGI_BAD_ARGUMENT);
    const double nan_scores[] = {NAN, 0}, big[] = {1e308, 0, 0, 0, 0, 0};
    CHECK(fgi_model_set_unary(m, 0, nan_scores, NULL) == FGI_BAD_MODEL);
    CHECK(fgi_model_set_table(m, 0, big, NULL) == FGI_BAD_MODEL); /* weight 2 makes it overflow */
    const int32_t out_of_range[] = {0, 3, 0};
    double unused;
    fgi_error err;
    CHECK(fgi_model_score(m, out_of_range, &unused, &err) == FGI_BAD_ARGUMENT && err.index == 1);
    CHECK(fgi_model_memory(m) > 22 * 8);
    fgi_model_free(m);
    CHECK(score(held, x) == before);
    fgi_model_free(held);
    fgi_model_free(NULL);
}

/* The arrays of a model build the same model again. */
static void arrays_round_trip(void) {
    fgi_model_spec spec = good(), again;
    fgi_model *m = NULL, *copy = NULL;
    CHECK(fgi_model_create(&spec, &m, NULL) == FGI_OK);
    fgi_model_arrays(m, &again);
    CHECK(fgi_model_create(&again, &copy, NULL) == FGI_OK);
    CHECK(!fgi_model_same_structure(m, copy));
    for (int32_t a = 0; a < 12; a++) {
        const int32_t x[] = {a / 6, a / 2 % 3, a % 2};
        CHECK(score(m, x) == score(copy, x));
    }
    fgi_model_free(copy);
    fgi_model_free(m);
}

static void conditioned_scores(void) {
    fgi_model_spec spec = good();
    fgi_model *m = NULL;
    CHECK(fgi_model_create(&spec, &m, NULL) == FGI_OK);
    for (int mask = 0; mask < 8; mask++)
        for (int32_t a = 0; a < 12; a++) {
            const int32_t x[] = {a / 6, a / 2 % 3, a % 2};
            int32_t fixed[3], labels[3], rest[3], n = 0, left = 0;
            for (int i = 0; i < 3; i++) {
                if (mask >> i & 1) fixed[n] = i, labels[n++] = x[i];
                else rest[left++] = x[i];
            }
            fgi_model *r = NULL;
            CHECK(fgi_model_condition(m, n, fixed, labels, &r, NULL) == FGI_OK);
            if (!r) continue;
            CHECK(r->s->n_vars == left);
            double whole = score(m, x), part = score(r, rest);
            CHECK(whole == part);
            fgi_model_free(r);
        }
    fgi_model *r = NULL;
    fgi_error err;
    const int32_t unknown[] = {3}, zero[] = {0}, far[] = {2}, twice[] = {1, 1}, both[] = {0, 1};
    CHECK(fgi_model_condition(m, 1, unknown, zero, &r, &err) == FGI_BAD_ARGUMENT && strstr(err.message, "variable 3"));
    CHECK(fgi_model_condition(m, 1, zero, far, &r, &err) == FGI_BAD_ARGUMENT && strstr(err.message, "label 2"));
    CHECK(fgi_model_condition(m, 2, twice, both, &r, &err) == FGI_BAD_ARGUMENT && strstr(err.message, "both"));
    CHECK(!r);
    fgi_model_free(m);
}

/* Wide factors lose what has one label, and every labeling keeps its score. */
static void lean_scores(void) {
    enum { N = 72, FEW = N - 2, TWO = 3, THREE = N - 1 }; /* all but two variables have one label */
    int32_t sizes[N], shape[N + FEW], scopes[N + FEW], x[N] = {0}, n = N;
    const int32_t arities[] = {N, FEW}, tables[] = {0, 1};
    const int64_t begin[] = {0, N, N + FEW};
    const double scores[] = {1, 2, 3, 4, 5, 6, 7};
    for (int32_t i = 0; i < N; i++) {
        shape[i] = sizes[i] = i == TWO ? 2 : i == THREE ? 3 : 1;
        scopes[i] = i;
        if (sizes[i] > 1) continue;
        shape[n] = 1;
        scopes[n++] = i;
    }
    const fgi_model_spec spec = {
        .n_vars = N,
        .cards = sizes,
        .constant = 0.5,
        .n_tables = 2,
        .table_arity = arities,
        .dims = shape,
        .values = scores,
        .n_values = 7,
        .n_factors = 2,
        .factor_table = tables,
        .var_begin = begin,
        .vars = scopes,
    };
    fgi_model *m = NULL, *lean = NULL;
    fgi_error err;
    CHECK(fgi_model_create(&spec, &m, &err) == FGI_OK && fgi_model_lean(m, &lean, &err) == FGI_OK);
    if (m && lean) {
        CHECK(fgi_model_is_wide(m) && !fgi_model_is_wide(lean) && lean->s->max_arity == 2);
        for (x[TWO] = 0; x[TWO] < 2; x[TWO]++)
            for (x[THREE] = 0; x[THREE] < 3; x[THREE]++)
                CHECK(score(lean, x) == score(m, x) && score(m, x) == 8.5 + 3 * x[TWO] + x[THREE]);
    }
    fgi_model_free(lean);
    fgi_model_free(m);
}

int main(void) {
    malformed_specs();
    bad_implicit(FGI_POTTS, NAN, 0, "Potts");
    bad_implicit(FGI_POTTS, 0, INFINITY, "Potts");
    bad_implicit(FGI_ABSDIFF, -1, 1, "difference");
    bad_implicit(FGI_SQDIFF, 1, 0, "difference");
    bad_implicit(FGI_ABSDIFF, INFINITY, 1, "difference");
    copy_on_write();
    arrays_round_trip();
    conditioned_scores();
    lean_scores();
    return failed();
}
