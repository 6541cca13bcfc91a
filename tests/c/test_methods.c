/* The table of methods, options and counters: rows end, names are found, and settings that nobody reads are refused. */
#include "solver.h"
#include "check.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void test_rows(void) {
    int native = 0, n = 0;
    for (const fgi_method_row *row; (row = fgi_method_get(n)); n++) {
        CHECK(row->name[0] && row->text[0] && row->use[0]);
        if (row->number == FGI_NO_METHOD) continue;
        CHECK(!strcmp(fgi_method_name(row->number), row->name));
        native++;
    }
    CHECK(!fgi_method_get(-1) && !fgi_method_get(n) && !fgi_option_get(-1) && !fgi_counter_get(-1));
    CHECK(!fgi_method_name(native) && !fgi_method_name(FGI_NO_METHOD));
    int options = 0, counters = 0;
    while (fgi_option_get(options)) CHECK(fgi_option_get(options++)->text[0]);
    while (fgi_counter_get(counters)) CHECK(fgi_counter_get(counters++)->text[0]);
    CHECK(native > 10 && options > 5 && counters > 10);
}

/* A number that an option may have, and that is not its default. */
static double another(double standard, double least, double below) {
    if (least != standard) return least;
    return isfinite(below) ? (least + below) / 2 : least + 1;
}

/* Every option, as the row says, by a number that is not its default. */
#define FGI_NUMBER(name, methods, standard, least, below, text) \
    static void change_##name(fgi_settings *s) { s->name = another(standard, least, below); }
#define FGI_CHOICE(name, methods, choices, text) \
    static void change_##name(fgi_settings *s) { s->name = 1; }
#include "fginfer_methods.def"

static void check_option(const char *name, const char *methods, void (*change)(fgi_settings *)) {
    for (int32_t method = 0; fgi_method_name(method); method++) {
        fgi_settings s = fgi_settings_default();
        fgi_error err;
        s.method = method;
        CHECK(fgi_settings_check(&s, &err) == FGI_OK);
        change(&s);
        const char *at = strstr(methods, fgi_method_name(method));
        CHECK(fgi_settings_check(&s, &err) == (at ? FGI_OK : FGI_BAD_ARGUMENT));
        if (!at) CHECK(strstr(err.message, name) && strstr(err.message, methods));
    }
}

static void test_options(void) {
#define FGI_NUMBER(name, methods, standard, least, below, text) check_option(#name, methods, change_##name);
#define FGI_CHOICE(name, methods, choices, text) check_option(#name, methods, change_##name);
#include "fginfer_methods.def"
}

static void test_a_solver_is_refused(void) {
    const int32_t cards[] = {2};
    const fgi_model_spec spec = {.n_vars = 1, .cards = cards};
    fgi_model *m = NULL;
    CHECK(fgi_model_create(&spec, &m, NULL) == FGI_OK);
    fgi_settings s = fgi_settings_default();
    fgi_solver *solver = NULL;
    fgi_error err;
    s.method = FGI_TRWS;
    s.damping = 0.9;
    CHECK(fgi_solver_create(m, &s, &solver, &err) == FGI_BAD_ARGUMENT && !solver);
    s.method = FGI_BP;
    CHECK(fgi_solver_create(m, &s, &solver, &err) == FGI_OK);
    fgi_solver_free(solver);
    s.damping = NAN;
    CHECK(fgi_solver_create(m, &s, &solver, &err) == FGI_BAD_ARGUMENT);
    fgi_model_free(m);
}

int main(void) {
    test_rows();
    test_options();
    test_a_solver_is_refused();
    return failed();
}
