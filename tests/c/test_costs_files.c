/* io/wcsp_read.c, io/cfn_read.c, io/cfn_model.c, io/formulas.c: what files mean, and thousands of random attacks. */
#include "check.h"
#include "fuzz_costs.h"

static fuzz_costs_end read_as(int cfn, const char *text) {
    static fuzz_text t;
    fgi_rng g = {1};
    t.n = (int64_t)strlen(text);
    memcpy(t.at, text, (size_t)t.n);
    return fuzz_costs_read(&t, cfn, 7, &g);
}

static fuzz_costs_end read_text(const char *text) { return read_as(0, text); }

static void test_a_model(void) {
    fuzz_costs_end e = read_text("name 3 3 6 100\n2 3 2\n0 7 0\n1 1 0 2\n0 5\n2 200\n2 0 1 3 2\n0 0 1\n1 2 100\n"
                                 "-2 2 0 0 1\n1 1 4\n2 0 2 0 -1\n2 1 0 3 2\n0 0 1\n2 1 inf");
    int32_t labels[] = {1, 0, 1};
    double score;
    CHECK(!e.rc && e.given == 6 && e.cutoff == -INFINITY);
    if (!e.model) return;
    /* the last table is the first one transposed, the shared one is used twice */
    CHECK(e.model->s->n_tables == 2 && e.model->s->n_factors == 4 && e.model->s->factor_transposed[3]);
    CHECK(!fgi_model_score(e.model, labels, &score, &e.err) && score == -(7 + 5 + 3 + 4 + 4 + 3));
    labels[0] = 0;
    CHECK(!fgi_model_score(e.model, labels, &score, &e.err) && score == -(7 + 5 + 1 + 0 + 0 + 1));
    labels[1] = 2;
    CHECK(!fgi_model_score(e.model, labels, &score, &e.err) && score == -INFINITY);
    fgi_model_free(e.model);
    e = read_text("m 1 2 1 3 2 1 0 0 1 1 2");
    CHECK(!e.rc && e.cutoff == -INFINITY); /* no total reaches the upper bound */
    fgi_model_free(e.model);
    e = read_text("m 1 2 2 3 2 1 0 0 1 1 2 1 0 0 1 1 2");
    CHECK(!e.rc && e.cutoff == -3);
    fgi_model_free(e.model);
}

static void test_errors(void) {
    fuzz_costs_end e = read_text("m 2 3 1 9\n3 3\n2 0 1 0 1\n0 3 1");
    CHECK(e.rc == FGI_BAD_FORMAT && e.err.line == 4 && !strcmp(e.err.token, "3") && e.err.index == 0);
    e = read_text("m 2 1000000 1 9 1000 1000\n2 0 1 0 0");
    CHECK(e.rc == FGI_BAD_FORMAT && e.refused == 8 * (2000.0 + 1000000.0));
    CHECK(!strcmp(e.err.message, "cost function 0, a table of 1000000 entries,"));
    e = read_text("m 2 3 1 9 3 3\n2 0 1 -1 disj 1 1 -5");
    CHECK(e.rc == FGI_BAD_FORMAT && !strcmp(e.err.token, "-5"));
    fgi_wcsp *r = NULL;
    CHECK(!fgi_wcsp_create(32, 1e6, &r, &e.err));
    CHECK(fgi_wcsp_feed(r, "m x ", 4, &e.err) == FGI_BAD_FORMAT);
    CHECK(fgi_wcsp_feed(r, "m x ", 4, &e.err) == FGI_BAD_ARGUMENT); /* a reader that failed stays failed */
    fgi_wcsp_free(r);
    fgi_wcsp_free(NULL);
}

static void test_cfn(void) {
    fuzz_costs_end e = read_as(1,
        "{problem: {name: m, mustbe: \"<10\"}, variables: {x: [a b], \"y z\": 3},\n# nothing\nfunctions: {\n"
        "c: {scope: [], costs: [-1.25]} u: {scope: [x], costs: [0.5, 11]} g: {scope: [x \"y z\"] costs: f}\n"
        "f: {scope: [0 1], costs: [1 2 3 4 5 6]} t: {scope: [1 0], costs: [1 4 2 5 3 6]} s: {scope: [x 1], "
        "defaultcost: 0.25, costs: [\"b\" 2 3]}}}");
    const int32_t labels[] = {1, 2};
    double score;
    CHECK(!e.rc && e.given == 6 && e.cutoff == -10);
    if (!e.model) return;
    CHECK(e.model->s->n_tables == 2 && e.model->s->n_factors == 4 && e.model->s->factor_transposed[2]);
    CHECK(!fgi_model_score(e.model, labels, &score, &e.err) && score == 1.25 - (11 + 6 + 6 + 6 + 3));
    fgi_model_free(e.model);
    e = read_as(1, "{{x <9} {a 2 b 2}\n{f {scope [a b] costs [1 2 3]}}}");
    CHECK(e.rc == FGI_BAD_FORMAT && e.err.line == 2 && !strcmp(e.err.message, "function 0 has 3 of 4 costs"));
    e = read_as(1, "{{x <9} {a 1000 b 1000} {f {scope [a b] defaultcost 1}}}");
    CHECK(e.rc == FGI_BAD_FORMAT && e.refused == 8 * (2000.0 + 1000000.0));
    fgi_cfn *r = NULL;
    CHECK(!fgi_cfn_create(32, 1e6, 1e6, &r, &e.err));
    CHECK(fgi_cfn_feed(r, "x ", 2, &e.err) == FGI_BAD_FORMAT);
    CHECK(fgi_cfn_feed(r, "x ", 2, &e.err) == FGI_BAD_ARGUMENT);
    fgi_cfn_free(r);
    fgi_cfn_free(NULL);
}

/* Names in the order in which they came, in one text: of variables (-1), labels and functions (-2). */
static void test_names(void) {
    const char *file = "{problem: {name: m, mustbe: \"<9\"}, variables: {x: [a bb], \"y z\": 3},\n"
                       "functions: {f: {scope: [x], costs: [0, 1]}}}";
    const char *text = NULL;
    int64_t begin[9] = {0}, n;
    int32_t owner[9], value[9], of_x = 0, labels = 0, spaces = 0;
    fgi_cfn *r = NULL;
    fgi_model *m = NULL;
    fgi_error err;
    double cutoff;
    CHECK(!fgi_cfn_create(32, 1e6, 1e6, &r, &err));
    CHECK(fgi_cfn_names(r, &text, begin, owner, value) == 0 && begin[0] == 0); /* none yet, and no text */
    CHECK(!fgi_cfn_feed(r, file, (int64_t)strlen(file), &err) && !fgi_cfn_finish(r, &m, &n, &cutoff, &err));
    n = fgi_cfn_names(r, &text, NULL, NULL, NULL);
    CHECK(n == 5 && fgi_cfn_names(r, &text, begin, owner, value) == 5);
    for (int64_t k = 0; k < 5; k++) {
        const int64_t size = begin[k + 1] - begin[k];
        of_x += owner[k] == -1 && value[k] == 0 && size == 1 && text[begin[k]] == 'x';
        spaces += owner[k] == -1 && value[k] == 1 && size == 3 && !memcmp(text + begin[k], "y z", 3);
        labels += owner[k] == 0 && value[k] == 1 && size == 2 && !memcmp(text + begin[k], "bb", 2);
    }
    CHECK(of_x == 1 && spaces == 1 && labels == 1);
    fgi_model_free(m);
    fgi_cfn_free(r);
}

int main(void) {
    test_a_model();
    test_errors();
    test_cfn();
    test_names();
    check_failures += fuzz_costs_many(0, 1, 6000) + fuzz_costs_many(1, 1, 6000);
    return failed();
}
