/* Every allocation of the readers, the exact methods and the solvers fails in turn: each says so, frees what it had,
 * and what it had found until then is right. */
#include <math.h>
#include <stdlib.h>
#include "scarce.h"
#include "fginfer_exact.h"
#include "random_model.h"

typedef struct trial {
    const fgi_model *model;
    fgi_settings settings;
    double optimum; /* by trying all labelings */
} trial;

static double best_of_all(const fgi_model *m) {
    int32_t cards[MAX_VARS], x[MAX_VARS] = {0};
    const int64_t n = fgi_model_variables(m);
    double best = -INFINITY;
    fgi_model_cards(m, cards);
    for (;;) {
        double score = 0;
        CHECK(fgi_model_score(m, x, &score, NULL) == FGI_OK);
        if (score > best) best = score;
        int64_t i = 0;
        while (i < n && ++x[i] == cards[i]) x[i++] = 0;
        if (i == n) return best;
    }
}

static void check_claims(const trial *t, const fgi_solver *s, const fgi_info *info) {
    int32_t labels[MAX_VARS];
    double score;
    const double room = 1e-9 * (1 + fabs(t->optimum));
    CHECK_SAYING(info->score <= t->optimum + room, "%s: score %.17g above %.17g\n", fgi_method_name(t->settings.method),
        info->score, t->optimum);
    CHECK_SAYING(info->bound >= t->optimum - room, "%s: bound %.17g below %.17g\n", fgi_method_name(t->settings.method),
        info->bound, t->optimum);
    if (fgi_solver_labels(s, labels)) {
        CHECK(fgi_model_score(t->model, labels, &score, NULL) == FGI_OK);
        CHECK(fabs(score - info->score) <= room);
    }
}

static fgi_rc run_solver(void *given) {
    const trial *t = given;
    fgi_solver *s = NULL;
    fgi_error err;
    fgi_info info;
    fgi_rc rc = fgi_solver_create(t->model, &t->settings, &s, &err);
    if (rc) return rc;
    rc = fgi_solver_run(s, -1.0, 12, &info);
    fgi_solver_info(s, &info);
    check_claims(t, s, &info);
    fgi_solver_free(s);
    return rc;
}

static fgi_rc run_presolve(void *given) {
    const trial *t = given;
    fgi_presolve *p = NULL;
    fgi_error err;
    fgi_presolve_options options = fgi_presolve_options_default();
    fgi_rc rc = fgi_presolve_create(t->model, &options, &p, &err);
    if (rc) return rc;
    const fgi_model *left = fgi_presolve_model(p);
    int32_t reduced[MAX_VARS] = {0}, labels[MAX_VARS];
    double score = 0, whole = 0;
    rc = fgi_presolve_expand(p, reduced, labels, &err);
    if (!rc && !fgi_model_score(left, reduced, &score, NULL) && isfinite(score)) {
        CHECK(fgi_model_score(t->model, labels, &whole, NULL) == FGI_OK);
        CHECK(fabs(score - whole) <= 1e-9 * (1 + fabs(score)));
    }
    fgi_presolve_free(p);
    return rc;
}

/* Six variables of which at most one has a label other than 0, said pair by pair. */
static fgi_model *exclusive_model(fgi_rng *rng) {
    enum { N = 6, PAIRS = N * (N - 1) / 2 };
    int32_t cards[N], kind = FGI_DENSE, arity = 2, dims[2] = {3, 3}, tables[PAIRS] = {0}, vars[2 * PAIRS], n = 0;
    int64_t var_begin[PAIRS + 1] = {0};
    double unary[3 * N], values[9] = {0, 0, 0, 0, -INFINITY, -INFINITY, 0, -INFINITY, -INFINITY};
    for (int32_t i = 0; i < N; i++) {
        cards[i] = 3;
        for (int a = 0; a < 3; a++) unary[3 * i + a] = fgi_rng_unit(rng) + a;
        for (int32_t j = 0; j < i; j++) {
            vars[2 * n] = i;
            vars[2 * n + 1] = j;
            n++;
            var_begin[n] = 2 * (int64_t)n;
        }
    }
    fgi_model_spec spec = {.n_vars = N,
        .cards = cards,
        .unary = unary,
        .n_tables = 1,
        .table_kind = &kind,
        .table_arity = &arity,
        .dims = dims,
        .values = values,
        .n_values = 9,
        .n_factors = PAIRS,
        .factor_table = tables,
        .var_begin = var_begin,
        .vars = vars};
    fgi_model *m = NULL;
    CHECK(fgi_model_create(&spec, &m, NULL) == FGI_OK);
    return m;
}

static fgi_rc run_cliques(void *given) {
    const trial *t = given;
    fgi_cliques *c = NULL;
    fgi_error err;
    int32_t labels[MAX_VARS] = {0}, lifted[2 * MAX_VARS];
    double score, same;
    fgi_rc rc = fgi_cliques_create(t->model, -INFINITY, &c, &err);
    CHECK(!rc == (c != NULL));
    for (int a = 0; c && a < 3; a++) {
        labels[2] = a;
        fgi_cliques_lift(c, labels, lifted);
        CHECK(fgi_model_score(t->model, labels, &score, NULL) == FGI_OK);
        CHECK(fgi_model_score(fgi_cliques_model(c), lifted, &same, NULL) == FGI_OK);
        CHECK(score == same);
    }
    fgi_cliques_free(c);
    return rc;
}

static fgi_rc run_eliminate(void *given) {
    const trial *t = given;
    fgi_eliminate *e = NULL;
    fgi_eliminate_info info;
    fgi_error err;
    int32_t labels[MAX_VARS];
    double score;
    fgi_rc rc = fgi_eliminate_create(t->model, 1e8, 0, &e, &err);
    if (!rc) rc = fgi_eliminate_run(e, -1.0, &info, &err);
    if (!rc && fgi_eliminate_labels(e, labels)) {
        CHECK(fgi_model_score(t->model, labels, &score, NULL) == FGI_OK);
        CHECK(fabs(score - t->optimum) <= 1e-9 * (1 + fabs(score)));
    }
    fgi_eliminate_free(e);
    return rc;
}

static fgi_rc run_beliefs(void *given) {
    const trial *t = given;
    fgi_beliefs *b = NULL;
    fgi_beliefs_info info;
    fgi_ranked *r = NULL;
    fgi_error err;
    int32_t labels[MAX_VARS], status;
    double bound;
    fgi_rc rc = fgi_beliefs_create(t->model, FGI_BELIEFS_MAX, NULL, 1500, 0, &b, &err);
    if (!rc) rc = fgi_beliefs_run(b, 1, -1.0, &info, &err);
    if (!rc && fgi_beliefs_cut(b, NULL) == 0) CHECK(fabs(info.value - t->optimum) <= 1e-9 * (1 + fabs(info.value)));
    if (!rc) rc = fgi_ranked_create(t->model, 1e8, 0, 9, &r, &err);
    for (int k = 0; k < 9 && !rc; k++) rc = fgi_ranked_next(r, -1.0, labels, &bound, &status, &err);
    fgi_beliefs_free(b);
    fgi_ranked_free(r);
    return rc;
}

static fgi_rc run_parts(void *given) {
    const trial *t = given;
    fgi_split *split = NULL;
    fgi_model *part = NULL, *rest = NULL;
    fgi_error err;
    const int32_t variable = 0, label = 0;
    fgi_rc rc = fgi_split_create(t->model, &split, &err);
    for (int64_t k = 0; !rc && k < fgi_split_count(split); k++) {
        rc = fgi_split_model(split, k, &part, &err);
        if (!rc) CHECK(fgi_model_variables(part) == fgi_split_size(split, k));
        if (!rc) fgi_model_free(part);
    }
    fgi_split_free(split);
    if (!rc) rc = fgi_model_condition(t->model, 1, &variable, &label, &rest, &err);
    if (!rc) CHECK(fgi_model_variables(rest) == fgi_model_variables(t->model) - 1);
    if (!rc) fgi_model_free(rest);
    return rc;
}

/* A file of the model, read again. */
static fgi_rc run_file(void *given) {
    const trial *t = given;
    fgi_uai_writer *w = NULL;
    fgi_uai *r = NULL;
    fgi_model *again = NULL;
    fgi_error err;
    char text[1024];
    int64_t n = 0, factors;
    fgi_rc rc = fgi_uai_writer_create(t->model, 1, 0, &w, &err);
    if (!rc) rc = fgi_uai_create(1, 1, &r, &err);
    while (!rc) {
        rc = fgi_uai_writer_next(w, text, (int64_t)sizeof text, &n, &err);
        if (rc || n == 0) break;
        rc = fgi_uai_feed(r, text, n, &err);
    }
    if (!rc) rc = fgi_uai_finish(r, &again, &factors, &err);
    if (!rc) {
        CHECK(fabs(best_of_all(again) - t->optimum) <= 1e-9 * (1 + fabs(t->optimum)));
        fgi_model_free(again);
    }
    fgi_uai_free(r);
    fgi_uai_writer_free(w);
    return rc;
}

/* A .wcsp file with all that it can hold. */
static fgi_rc run_wcsp(void *given) {
    static const char text[] = "m 3 3 7 100\n2 3 2\n0 7 0\n-1 1 0 2\n0 5\n2 inf\n1 1 0 -1\n2 0 1 3 2\n0 0 1\n1 2 100\n"
                               "2 1 0 3 2\n0 0 1\n2 1 inf\n-2 2 0 -1 <= 0 1\n2 0 2 0 -2\n";
    fgi_wcsp *r = NULL;
    fgi_model *m = NULL;
    fgi_error err;
    int64_t factors;
    double cutoff;
    (void)given;
    fgi_rc rc = fgi_wcsp_create(8, 1e6, &r, &err);
    if (!rc) rc = fgi_wcsp_feed(r, text, (int64_t)sizeof text - 1, &err);
    if (!rc) rc = fgi_wcsp_finish(r, &m, &factors, &cutoff, &err);
    if (!rc) CHECK(factors == 7 && m->s->n_tables == 2 && fabs(best_of_all(m) + 13) < 1e-9);
    fgi_model_free(m);
    fgi_wcsp_free(r);
    return rc;
}

/* A .cfn file, the same. */
static fgi_rc run_cfn(void *given) {
    static const char text[] =
        "{{m <100} {a 2 b [u v w] c 2} {k {scope [] costs [7]} f {scope [b] costs [5 0 inf]}\n"
        "g {scope [b] costs f} h {scope [a b] costs [1 3 3 3 3 inf]} t {scope [b a] costs [1 3 3 3 "
        "3 inf]}\ns {scope [c a] type <= params [0 1]} d {scope [a c] defaultcost 0 costs [1 1 1]}}}";
    fgi_cfn *r = NULL;
    fgi_model *m = NULL;
    fgi_error err;
    int64_t factors;
    double cutoff;
    (void)given;
    fgi_rc rc = fgi_cfn_create(8, 1e6, 1e6, &r, &err);
    for (int64_t k = 0; k < (int64_t)sizeof text - 1 && !rc; k += 50)
        rc = fgi_cfn_feed(r, text + k, k + 50 < (int64_t)sizeof text ? 50 : (int64_t)sizeof text - 1 - k, &err);
    if (!rc) rc = fgi_cfn_finish(r, &m, &factors, &cutoff, &err);
    if (!rc) CHECK(factors == 7 && m->s->n_tables == 3 && fabs(best_of_all(m) + 13) < 1e-9);
    fgi_model_free(m);
    fgi_cfn_free(r);
    return rc;
}

/* Scores that cancel: read, changed and conditioned, with what rounding takes. */
static fgi_rc run_folding(void *given) {
    static const char text[] = "MARKOV 2 2 2 5 1 0 1 0 1 1 1 1 2 0 1 2 1e16 0 2 1 0 2 3 1e16 2 0 1 4 0 0 0 0 ";
    fgi_uai *r = NULL;
    fgi_model *m = NULL, *rest = NULL;
    fgi_error err;
    int64_t factors;
    double score;
    const int32_t variable = 1, label = 1;
    const double fresh[] = {-1e16, 0};
    (void)given;
    fgi_rc rc = fgi_uai_create(1, 1, &r, &err);
    if (!rc) rc = fgi_uai_feed(r, text, (int64_t)sizeof text - 1, &err);
    if (!rc) rc = fgi_uai_finish(r, &m, &factors, &err);
    if (!rc) rc = fgi_model_set_unary(m, 0, fresh, &err);
    if (!rc) rc = fgi_model_condition(m, 1, &variable, &label, &rest, &err);
    if (!rc) CHECK(fgi_model_score(rest, (const int32_t[]){0}, &score, NULL) == FGI_OK && score == 1);
    fgi_model_free(rest);
    fgi_model_free(m);
    fgi_uai_free(r);
    return rc;
}

static void try_methods(trial *t, int64_t most) {
    for (int32_t method = 0; method < 32; method++) {
        if (!fgi_method_name(method) || method == FGI_ASSIGNMENT) continue; /* it takes pairs that must differ alone */
        t->settings = fgi_settings_default();
        t->settings.method = method;
        t->settings.gap = 0;
        scarce_try(fgi_method_name(method), run_solver, t, most);
    }
    t->settings.method = FGI_GDMM;
    for (int32_t access = FGI_ACCESS_SORTED; access <= FGI_ACCESS_DENSE; access++) {
        t->settings.access = access;
        t->settings.sweep = FGI_OFF;
        t->settings.formulation = FGI_FORMULATION_TABLES;
        scarce_try("gdmm on tables", run_solver, t, most);
    }
}

int main(void) {
    for (uint64_t seed = 1; seed <= 4; seed++) {
        fgi_rng rng = {seed};
        fgi_model *m = random_model(&rng, 6, 9, seed % 2 ? 0 : 15, seed == 3);
        trial t = {.model = m, .settings = fgi_settings_default(), .optimum = best_of_all(m)};
        scarce_try("presolve", run_presolve, &t, 400);
        if (isfinite(t.optimum)) scarce_try("elimination", run_eliminate, &t, 400);
        if (isfinite(t.optimum)) scarce_try("beliefs", run_beliefs, &t, 400);
        scarce_try("parts", run_parts, &t, 400);
        scarce_try("a file", run_file, &t, 400);
        scarce_try("a file", run_wcsp, &t, 400);
        scarce_try("a file", run_cfn, &t, 400);
        scarce_try("folding", run_folding, &t, 400);
        try_methods(&t, 60);
        fgi_model_free(m);
    }
    fgi_rng rng = {7};
    fgi_model *exclusive = exclusive_model(&rng);
    trial t = {.model = exclusive};
    scarce_try("cliques", run_cliques, &t, 400);
    fgi_model_free(exclusive);
    return failed();
}
