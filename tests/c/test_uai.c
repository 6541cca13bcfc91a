/* io/uai_read.c, io/uai_write.c, base/decimal.c: a few thousand random attacks, and what every one of them takes for
 * granted. */
#include "check.h"
#include "fuzz_uai.h"

static fgi_rc read_text(const char *text, int logs, fgi_model **m, fgi_error *err) {
    static fuzz_text t;
    fgi_rng g = {1};
    int64_t given;
    t.n = (int64_t)strlen(text);
    memcpy(t.at, text, (size_t)t.n);
    return fuzz_read(&t, logs, 7, &g, m, &given, err);
}

static void test_a_model(void) {
    fgi_model *m = NULL;
    fgi_error err;
    int32_t labels[] = {1, 0, 1};
    double score;
    const char *text = "MARKOV 3 2 2 2  5 0 1 0 2 0 1 2 1 2 1 0  1 2.0  2 1 2  4 1 2 3 4  4 1 2 3 4  2 1 0.5";
    CHECK(read_text(text, 0, &m, &err) == FGI_OK);
    if (!m) return;
    CHECK(m->s->n_tables == 1 && m->s->n_factors == 2); /* equal tables are one; arity 0 and 1 are folded */
    CHECK(!fgi_model_score(m, labels, &score, &err));
    CHECK(fabs(score - (log(2) + log(2) + log(0.5) + log(3) + log(2))) < 1e-15);
    fgi_model_free(m);
}

static void test_errors(void) {
    fgi_model *m = NULL;
    fgi_error err;
    CHECK(read_text("MARKOV\n1\n3\n1\n1 0\n3\n1 2\n-3", 0, &m, &err) == FGI_BAD_FORMAT);
    CHECK(err.line == 8 && !strcmp(err.token, "-3") && strstr(err.message, "negative"));
    CHECK(read_text("MARKOV 2 30000000 33333334 1 2 0 1 1000000020000000 1", 0, &m, &err) == FGI_BAD_FORMAT);
    CHECK(strstr(err.message, "truncated"));
    CHECK(!m);
    fgi_uai *r = NULL;
    CHECK(!fgi_uai_create(0, 1, &r, &err));
    CHECK(fgi_uai_feed(r, "x ", 2, &err) == FGI_BAD_FORMAT);
    CHECK(fgi_uai_feed(r, "x ", 2, &err) == FGI_BAD_ARGUMENT); /* a reader that failed stays failed */
    fgi_uai_free(r);
    fgi_uai_free(NULL);
    fgi_uai_writer_free(NULL);
}

static void test_texts(void) {
    char text[FGI_TEXT_SIZE];
    static const struct {
        double value;
        const char *text;
    } known[] = {{0.3, "0.3"}, {100.0, "100"}, {1e22, "1e22"}, {-2.5e-7, "-2.5e-7"}, {5e-324, "5e-324"}, {0.0, "0"},
        {-0.0, "-0"}};
    for (size_t k = 0; k < sizeof known / sizeof known[0]; k++) {
        int n = fgi_text_of_double(known[k].value, text);
        CHECK(n == (int)strlen(known[k].text) && !memcmp(text, known[k].text, (size_t)n));
    }
    CHECK(fgi_text_of_potential(-INFINITY, text) == 1 && text[0] == '0');
    CHECK(fgi_text_of_potential(-800.0, text) == 0);
    CHECK(fgi_text_of_potential(800.0, text) == 0);
    CHECK(fgi_text_of_potential(log(0.3), text) == 3 && !memcmp(text, "0.3", 3));
}

/* Long texts are read by all threads: the same tables, or the same error at the same line. */
static void test_threads(void) {
    enum { TABLES = 30000, CAPACITY = 2 << 20 };
    char *text = malloc(CAPACITY);
    if (!text) exit(1);
    for (int wrong = 0; wrong < 2; wrong++) {
        int64_t n = sprintf(text, "MARKOV\n2\n3 3\n%d\n", TABLES), given;
        for (int t = 0; t < TABLES; t++) n += sprintf(text + n, "2 0 1\n");
        for (int t = 0; t < TABLES; t++)
            n +=
                sprintf(text + n, "9\n %d 2 0.%d 4 1e-3\n5 6 %s %d.5\n", t % 9, t, wrong && t == 29000 ? "-1" : "7", t);
        CHECK(n < CAPACITY);
        double sums[2] = {0, 0};
        for (int threads = 1; threads <= 3; threads += 2) {
            fgi_uai *r = NULL;
            fgi_model *m = NULL;
            fgi_error err;
            CHECK(!fgi_uai_create(0, threads, &r, &err));
            const fgi_rc rc = fgi_uai_feed(r, text, n, &err);
            if (wrong) {
                CHECK(rc == FGI_BAD_FORMAT && err.index == 29000 && !strcmp(err.token, "-1"));
                CHECK(err.line == 5 + TABLES + 29000 * 3 + 2);
            } else if (!rc && !fgi_uai_finish(r, &m, &given, &err)) {
                CHECK(given == TABLES);
                for (int64_t k = 0; k < m->s->values_begin[m->s->n_tables]; k++)
                    if (m->t->values[k] > -INFINITY) sums[threads > 1] += (double)(k % 97) * m->t->values[k];
            } else CHECK(0);
            fgi_model_free(m);
            fgi_uai_free(r);
        }
        CHECK(sums[0] == sums[1] && (wrong || sums[0] != 0));
    }
    free(text);
}

int main(void) {
    test_a_model();
    test_errors();
    test_texts();
    test_threads();
    check_failures += fuzz_many(1, 4000);
    check_failures +=
        fuzz_many(85789, 1) + fuzz_many(96401, 1); /* logarithms whose sums overflow: the model refuses them */
    return failed();
}
