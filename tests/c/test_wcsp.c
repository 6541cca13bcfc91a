/* io/wcsp_read.c, io/formulas.c: what a file means, and a few thousand random attacks. */
#include "check.h"
#include "fuzz_wcsp.h"

static fuzz_wcsp_end read_text(const char *text) {
    static fuzz_text t;
    fgi_rng g = {1};
    t.n = (int64_t)strlen(text);
    memcpy(t.at, text, (size_t)t.n);
    return fuzz_wcsp_read(&t, 7, &g);
}

static void test_a_model(void) {
    fuzz_wcsp_end e = read_text("name 3 3 6 100\n2 3 2\n0 7 0\n1 1 0 2\n0 5\n2 200\n2 0 1 3 2\n0 0 1\n1 2 100\n"
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
    fuzz_wcsp_end e = read_text("m 2 3 1 9\n3 3\n2 0 1 0 1\n0 3 1");
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

int main(void) {
    test_a_model();
    test_errors();
    check_failures += fuzz_wcsp_many(1, 6000);
    return failed();
}
