/* methods.c - the table of methods, options and counters: the one place that knows them all. */
#include "solver.h"
#include <string.h>

#define FGI_METHOD(symbol, name, number, text, use) extern const fgi_solver_ops fgi_##name##_ops;
#include "fginfer_methods.def"

static const fgi_solver_ops *const ops[] = {
#define FGI_METHOD(symbol, name, number, text, use) [number] = &fgi_##name##_ops,
#include "fginfer_methods.def"
};

static const fgi_method_row methods[] = {
#define FGI_METHOD(symbol, name, number, text, use) {number, #name, text, use},
#define FGI_ENGINE(name, text, use) {FGI_NO_METHOD, #name, text, use},
#include "fginfer_methods.def"
};

static const fgi_option_row options[] = {
#define FGI_NUMBER(name, methods, standard, least, below, text) \
    {FGI_OPTION_NUMBER, 1, standard, least, below, #name, methods, "", text},
#define FGI_CHOICE(name, methods, choices, text) {FGI_OPTION_CHOICE, 1, 0, 0, 0, #name, methods, choices, text},
#define FGI_ENGINE_OPTION(name, methods, kind, standard, text) {kind, 0, standard, 0, 0, #name, methods, "", text},
#include "fginfer_methods.def"
};

static const fgi_counter_row counters[] = {
#define FGI_COUNTER(type, name, methods, text) {#name, methods, text},
#include "fginfer_methods.def"
};

enum {
    N_OPS = sizeof ops / sizeof ops[0],
    N_METHODS = sizeof methods / sizeof methods[0],
    N_OPTIONS = sizeof options / sizeof options[0],
    N_COUNTERS = sizeof counters / sizeof counters[0]
};

const fgi_solver_ops *fgi_method_ops(int32_t method) { return method >= 0 && method < N_OPS ? ops[method] : NULL; }

const char *fgi_method_name(int32_t method) {
    const fgi_solver_ops *found = fgi_method_ops(method);
    return found ? found->name : NULL;
}

const fgi_method_row *fgi_method_get(int32_t i) { return i >= 0 && i < N_METHODS ? &methods[i] : NULL; }

const fgi_option_row *fgi_option_get(int32_t i) { return i >= 0 && i < N_OPTIONS ? &options[i] : NULL; }

const fgi_counter_row *fgi_counter_get(int32_t i) { return i >= 0 && i < N_COUNTERS ? &counters[i] : NULL; }

/* ---- settings -------------------------------------------------------------------------------------------------- */

fgi_settings fgi_settings_default(void) {
    fgi_settings settings;
    memset(&settings, 0, sizeof settings);
    settings.method = FGI_GDMM;
    settings.threads = 1;
    settings.gap = 1e-6;
    settings.cutoff = -INFINITY;
    settings.max_iterations = -1;
    settings.start_time = -1;
#define FGI_NUMBER(name, methods, standard, least, below, text) settings.name = standard;
#include "fginfer_methods.def"
    return settings;
}

static int has_word(const char *list, const char *word) {
    const size_t n = strlen(word);
    for (const char *at = list; (at = strstr(at, word)); at += n)
        if ((at == list || at[-1] == ' ') && (at[n] == ' ' || at[n] == 0)) return 1;
    return 0;
}

/* Its number of words must fit an option that is a choice. */
static int n_words(const char *list) {
    int n = 1;
    for (; *list; list++) n += *list == ' ';
    return n;
}

static fgi_rc check_reader(const fgi_settings *settings, const char *name, const char *readers, fgi_error *err) {
    const char *method = fgi_method_name(settings->method);
    if (has_word(readers, method)) return FGI_OK;
    return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "%s does not read %s, an option of %s", method, name, readers);
}

static fgi_rc check_number(const char *name, double x, double least, double below, fgi_error *err) {
    if (x >= least && x < below) return FGI_OK;
    if (below == INFINITY) return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "%s must be finite and >= %g", name, least);
    return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "%s must be in [%g, %g), not %g", name, least, below, x);
}

static fgi_rc check_choice(const char *name, int32_t x, const char *choices, fgi_error *err) {
    const int n = n_words(choices);
    if (x >= 0 && x < n) return FGI_OK;
    return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "%s must be 0 to %d (%s), not %d", name, n - 1, choices, x);
}

static fgi_rc check_options(const fgi_settings *settings, fgi_error *err) {
    fgi_rc rc = FGI_OK;
#define FGI_NUMBER(name, methods, standard, least, below, text)           \
    if (!rc) rc = check_number(#name, settings->name, least, below, err); \
    if (!rc && settings->name != (standard)) rc = check_reader(settings, #name, methods, err);
#define FGI_CHOICE(name, methods, choices, text)                     \
    if (!rc) rc = check_choice(#name, settings->name, choices, err); \
    if (!rc && settings->name != 0) rc = check_reader(settings, #name, methods, err);
#include "fginfer_methods.def"
    return rc;
}

fgi_rc fgi_settings_check(const fgi_settings *settings, fgi_error *err) {
    if (!fgi_method_ops(settings->method))
        return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "unknown method %d", settings->method);
    if (settings->threads < 1 || settings->threads > 1024)
        return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "threads must be 1 to 1024, not %d", settings->threads);
    if (!(settings->gap >= 0)) return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "gap must be >= 0");
    if (!(settings->cutoff < INFINITY)) return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "cutoff must be finite or -inf");
    return check_options(settings, err);
}
