/*
 * fuzz_costs.h - random attacks on the readers of .wcsp and .cfn, for test_costs_files.c (thousands) and
 * tests/truth/fuzz_uai.c (millions), with the damage of fuzz_uai.h: read whole and in random pieces, a file ends with
 * the same error or the same model.
 */
#ifndef FUZZ_COSTS_H
#define FUZZ_COSTS_H
#include "fuzz_uai.h"

static const double FUZZ_ALLOWED = 1e6; /* bytes of tables */

/* A valid file: shared functions and their uses, formulas, tuples once and again, scopes of 0 to 3 variables. */
static void fuzz_wcsp_seed(fgi_rng *g, fuzz_text *t) {
    static const char *const formulas[] = {
        ">= 1 2", "> 0 1", "<= -1 0", "< 0 1", "= 1 1", "disj 1 2 inf", "sdisj 1 1 2 2 3 4"};
    int n_vars = 1 + (int)fgi_rng_below(g, 5), n = (int)fgi_rng_below(g, 6), cards[5], same = 1;
    int shared[6], n_shared = 0; /* arities; with `same` all variables have equal label counts */
    t->n = 0;
    same = (int)fgi_rng_below(g, 2);
    fuzz_put(t, "name ");
    fuzz_number(t, n_vars);
    fuzz_number(t, 4);
    fuzz_number(t, n);
    fuzz_number(t, (long long)(fgi_rng_below(g, 4) ? fgi_rng_below(g, 100) : 1000000));
    fuzz_put(t, "\n");
    for (int i = 0; i < n_vars; i++) fuzz_number(t, cards[i] = same && i ? cards[0] : 1 + (int)fgi_rng_below(g, 4));
    for (int f = 0; f < n; f++) {
        const int arity = (int)fgi_rng_below(g, n_vars < 3 ? n_vars + 1 : 4), first = (int)fgi_rng_below(g, n_vars);
        const int define = arity > 0 && fgi_rng_below(g, 3) == 0;
        fuzz_put(t, "\n");
        fuzz_number(t, define ? -arity : arity);
        for (int k = 0; k < arity; k++) fuzz_number(t, (first + k) % n_vars);
        int known = 0;
        for (int s = 1; s <= n_shared; s++)
            if (shared[s - 1] == arity) known = s;
        if (!define && same && known && fgi_rng_below(g, 2)) {
            fuzz_number(t, 0);
            fuzz_number(t, -known);
            continue;
        }
        if (define) shared[n_shared++] = arity;
        if (arity == 2 && fgi_rng_below(g, 4) == 0) {
            fuzz_put(t, "-1 ");
            fuzz_put(t, formulas[fgi_rng_below(g, 7)]);
            continue;
        }
        fuzz_number(t, fgi_rng_below(g, 5));
        const int tuples = arity ? (int)fgi_rng_below(g, 6) : 0;
        fuzz_number(t, tuples);
        for (int k = 0; k < tuples; k++) {
            fuzz_put(t, fgi_rng_below(g, 4) ? "\n" : " ");
            for (int j = 0; j < arity; j++) fuzz_number(t, fgi_rng_below(g, cards[(first + j) % n_vars]));
            if (fgi_rng_below(g, 8)) fuzz_number(t, fgi_rng_below(g, 200));
            else fuzz_put(t, "inf");
        }
    }
}

/* One of a few valid files, in which everything is said in some way. */
static void fuzz_cfn_seed(fgi_rng *g, fuzz_text *t) {
    static const char *const texts[] = {
        "{problem: {name: m, mustbe: \"<12.50\"},\n\"variables\": {\"a\": 2, \"b c\": [\"red\", \"green\"], c: 3},\n"
        "functions: {\"f\": {\"scope\": [\"a\"], \"costs\": [0.5, inf]},\n# a comment\n"
        "g: {scope: [a, \"b c\"], defaultcost: 1, costs: [0, \"green\", 2.25]},\n"
        "h: {scope: [1, 0], costs: \"g2\"}, \"g2\": {scope: [a 1], costs: [1, 2, 3, -4]},\n"
        "t: {scope: [1 c], type: >=, params: [1 0]}, k: {scope: [], costs: [3]}, d {scope [a c] defaultcost 2}}}\n",
        "{{max >-3} {x:2 y:2} {{scope:[x y] costs:[1 0 0 1]} {[y x] costs [1 0 0 1]} {[0] defaultcost -inf costs [1 "
        "2]}}}",
        "{{x <9} [2 3 [u v]] [[[0 1] [1 2 3 4 5 6]] [[0 1] costs [1.5 2 3e0 4 5. .5]] [[2 1] costs [1 .5 2 4 3 5]]]}"};
    t->n = 0;
    fuzz_put(t, texts[fgi_rng_below(g, 3)]);
}

typedef struct fuzz_costs_end {
    fgi_rc rc;
    fgi_model *model;
    int64_t given;
    double cutoff, refused;
    int64_t names; /* -1: they do not fit together */
    fgi_error err;
} fuzz_costs_end;

/* How many names a file gives, each of which must lie in the text and belong to something. */
static int64_t fuzz_cfn_names(const fgi_cfn *c) {
    const char *text = NULL;
    volatile char sink = 0; /* every byte is read, for the sanitizer */
    const int64_t n = fgi_cfn_names(c, &text, NULL, NULL, NULL);
    int64_t *begin = fgi_alloc(n + 1, sizeof *begin), bytes = 0;
    int32_t *owner = fgi_alloc(n + 1, sizeof *owner), *value = fgi_alloc(n + 1, sizeof *value);
    int good = begin && owner && value && fgi_cfn_names(c, &text, begin, owner, value) == n && begin[0] == 0;
    for (int64_t k = 0; good && k < n; k++) {
        good = begin[k] <= begin[k + 1] && owner[k] >= -2 && value[k] >= 0;
        for (int64_t b = begin[k]; b < begin[k + 1]; b++) sink = text[b], bytes++;
    }
    good = good && bytes == begin[n];
    (void)sink;
    free(begin), free(owner), free(value);
    return good ? n : -1;
}

static fuzz_costs_end fuzz_costs_read(const fuzz_text *t, int cfn, int64_t piece, fgi_rng *g) {
    fuzz_costs_end e = {.given = -1};
    fgi_wcsp *w = NULL;
    fgi_cfn *c = NULL;
    int listed = 0;
    e.rc = cfn ? fgi_cfn_create(32, FUZZ_ALLOWED, FUZZ_ALLOWED, &c, &e.err)
               : fgi_wcsp_create(32, FUZZ_ALLOWED, &w, &e.err);
    for (int64_t at = 0; !e.rc && at < t->n;) {
        int64_t n = piece >= t->n ? t->n : 1 + fgi_rng_below(g, piece);
        if (n > t->n - at) n = t->n - at;
        char *copy = fgi_alloc(n, 1);
        if (!copy) break;
        memcpy(copy, t->at + at, (size_t)n);
        e.rc = cfn ? fgi_cfn_feed(c, copy, n, &e.err) : fgi_wcsp_feed(w, copy, n, &e.err);
        free(copy);
        at += n;
    }
    if (!e.rc)
        e.rc = cfn ? fgi_cfn_finish(c, &e.model, &e.given, &e.cutoff, &e.err)
                   : fgi_wcsp_finish(w, &e.model, &e.given, &e.cutoff, &e.err);
    if (c) e.refused = fgi_cfn_refused(c, &listed);
    if (c) e.names = fuzz_cfn_names(c);
    if (w) e.refused = fgi_wcsp_refused(w);
    fgi_wcsp_free(w);
    fgi_cfn_free(c);
    return e;
}

/* Returns NULL, or what went wrong. */
static const char *fuzz_costs_check(const fuzz_text *t, int cfn, fgi_rng *g) {
    const char *wrong = NULL;
    fuzz_costs_end a = fuzz_costs_read(t, cfn, t->n, g), b = fuzz_costs_read(t, cfn, fuzz_piece(g), g);
    if (a.rc != b.rc) wrong = "reading in pieces ends differently";
    else if (a.names < 0 || (!a.rc && a.names != b.names)) wrong = "names that do not fit together";
    else if (a.rc && a.rc != FGI_BAD_FORMAT && !(cfn && a.rc == FGI_BAD_MODEL)) wrong = "an unexpected error code";
    else if (a.rc && (!a.err.message[0] || strchr(a.err.message, '\n'))) wrong = "an error without a sentence";
    else if (a.rc == FGI_BAD_FORMAT && (a.err.line < 1 || (!cfn && !a.err.token[0])))
        wrong = "an error without line or token";
    else if (a.rc && (a.err.line != b.err.line || strcmp(a.err.message, b.err.message)))
        wrong = "reading in pieces gives another error";
    else if (a.rc && (strcmp(a.err.token, b.err.token) || a.refused != b.refused))
        wrong = "reading in pieces gives an error elsewhere";
    else if (!a.rc && (a.given != b.given || a.cutoff != b.cutoff || !fuzz_same(a.model, b.model)))
        wrong = "reading in pieces gives another model";
    else if (!a.rc && 8.0 * (double)a.model->s->values_begin[a.model->s->n_tables] > FUZZ_ALLOWED)
        wrong = "more tables than allowed";
    fgi_model_free(a.model);
    fgi_model_free(b.model);
    return wrong;
}

/* Inputs first .. first + n - 1; returns the number of failures, after printing them. */
static int fuzz_costs_many(int cfn, uint64_t first, int64_t n) {
    static fuzz_text text;
    int failures = 0;
    for (int64_t k = 0; k < n && failures < 10; k++) {
        fgi_rng g = {first + (uint64_t)k};
        if (cfn) fuzz_cfn_seed(&g, &text);
        else fuzz_wcsp_seed(&g, &text);
        const int64_t damages = fgi_rng_below(&g, 4);
        for (int64_t d = 0; d < damages; d++) fuzz_damage(&g, &text);
        const char *wrong = fuzz_costs_check(&text, cfn, &g);
        if (!wrong) continue;
        failures++;
        fprintf(stderr, "%s input %llu: %s\n%.*s\n", cfn ? ".cfn" : ".wcsp", (unsigned long long)(first + (uint64_t)k),
            wrong, (int)text.n, text.at);
    }
    return failures;
}

#endif
