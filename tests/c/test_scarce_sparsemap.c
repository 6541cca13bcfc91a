/* LP-SparseMAP: every allocation of a solve and of its derivative fails in turn; the derivative agrees with differences
 * of answers; what is wrong with a structure is said. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "scarce.h"
#include "fginfer_sparsemap.h"

enum { N = 5, LABELS = 12, FACTORS = 4, STATES = 6 + 6 + 12 + 6, SLOTS = 5 + 5 + 7 + 5, EVERY = 200 };

static const int32_t CARDS[N] = {2, 3, 2, 3, 2};
static const int64_t BEGIN[FACTORS + 1] = {0, 2, 4, 7, 9};
static const int32_t VARS[] = {0, 1, 1, 2, 0, 2, 3, 3, 4};

static double number(int k) { return sin(12.9898 * (k + 1)) * 1.5; } /* any numbers do, the same each time */

static void fill(double *unary, double *table, double shift) {
    for (int k = 0; k < LABELS; k++) unary[k] = number(k) + shift * number(k + 200);
    for (int k = 0; k < STATES; k++) table[k] = number(k + 50) + shift * number(k + 300);
}

static fgi_rc answer(const fgi_sparse *s, double shift, double *mu, double *p, fgi_error *err) {
    double unary[LABELS], table[STATES], lambda[SLOTS] = {0};
    fgi_sparse_info info = {0};
    fill(unary, table, shift);
    memset(p, 0, STATES * sizeof *p);
    fgi_rc rc = fgi_sparse_solve(s, unary, table, 1e-8, 5000, mu, p, lambda, &info, err);
    CHECK(rc || (info.converged && info.polished));
    return rc;
}

static double slope; /* slope of the first run, which had enough memory */

static fgi_rc job(void *given) {
    double mu[LABELS], p[STATES], g[LABELS], d_unary[LABELS], d_table[STATES];
    fgi_sparse *s = NULL;
    fgi_error err;
    (void)given;
    fgi_rc rc = fgi_sparse_create(N, CARDS, FACTORS, BEGIN, VARS, &s, &err);
    if (!rc) rc = answer(s, 0, mu, p, &err);
    for (int k = 0; k < LABELS; k++) g[k] = number(k + 100);
    if (!rc) rc = fgi_sparse_adjoint(s, mu, p, g, d_unary, d_table, &err);
    if (!rc) {
        double sum = 0;
        for (int k = 0; k < LABELS; k++) sum += d_unary[k] * number(k + 200);
        for (int k = 0; k < STATES; k++) sum += d_table[k] * number(k + 300);
        CHECK(isnan(slope) || sum == slope);
        slope = sum;
    }
    fgi_sparse_free(s);
    return rc;
}

static void test_the_derivative(void) {
    double low[LABELS], high[LABELS], p[STATES], difference = 0;
    fgi_sparse *s = NULL;
    fgi_error err;
    CHECK(!fgi_sparse_create(N, CARDS, FACTORS, BEGIN, VARS, &s, &err));
    CHECK(fgi_sparse_labels(s) == LABELS && fgi_sparse_states(s) == STATES && fgi_sparse_multipliers(s) == SLOTS);
    CHECK(!answer(s, -1e-6, low, p, &err) && !answer(s, 1e-6, high, p, &err));
    for (int k = 0; k < LABELS; k++) difference += number(k + 100) * (high[k] - low[k]) / 2e-6;
    CHECK(fabs(difference - slope) < 1e-6);
    fgi_sparse_free(s);
}

static void test_wrong_structures(void) {
    const int32_t none[N] = {2, 0, 2, 3, 2}, twice[] = {0, 1, 1, 1, 0, 2, 3, 3, 4}, far[] = {0, 1, 1, 2, 0, 2, 3, 3, 9};
    const int64_t empty[FACTORS + 1] = {0, 2, 2, 7, 9};
    fgi_sparse *s = NULL;
    fgi_error err;
    CHECK(fgi_sparse_create(N, none, FACTORS, BEGIN, VARS, &s, &err) == FGI_BAD_MODEL && !s);
    CHECK(fgi_sparse_create(N, CARDS, FACTORS, BEGIN, twice, &s, &err) == FGI_BAD_MODEL && !s);
    CHECK(fgi_sparse_create(N, CARDS, FACTORS, BEGIN, far, &s, &err) == FGI_BAD_MODEL && !s);
    CHECK(fgi_sparse_create(N, CARDS, FACTORS, empty, VARS, &s, &err) == FGI_BAD_MODEL && !s);
}

static void test_no_state(void) {
    double unary[LABELS] = {0}, table[STATES], mu[LABELS], p[STATES] = {0}, lambda[SLOTS] = {0};
    fgi_sparse *s = NULL;
    fgi_sparse_info info = {0};
    fgi_error err;
    for (int k = 0; k < STATES; k++) table[k] = -INFINITY;
    CHECK(!fgi_sparse_create(N, CARDS, FACTORS, BEGIN, VARS, &s, &err));
    CHECK(fgi_sparse_solve(s, unary, table, 1e-6, 100, mu, p, lambda, &info, &err) == FGI_BAD_MODEL);
    CHECK(fgi_sparse_adjoint(s, mu, p, unary, mu, table, &err) == FGI_BAD_ARGUMENT);
    fgi_sparse_free(s);
}

int main(void) {
    slope = NAN;
    scarce_try("sparsemap", job, NULL, EVERY);
    test_the_derivative();
    test_wrong_structures();
    test_no_state();
    return failed();
}
