/* primal/join.c - see primal/join.h. */
#include "primal/join.h"
#include <stdlib.h>
#include <string.h>
#include "model/draft.h"

enum {
    MOST_ENTRIES = 1 << 22, /* in the tables of the joined model */
    MOST_ARITY = 16,        /* sets in one factor */
    FLIPPED = -1            /* in place of a labeling: the labels that the first one does not have */
};

typedef struct pair {
    int64_t sets; /* the two, first * n_sets + second */
    int64_t factor;
} pair;

/* What is only needed while the model is made. */
typedef struct making {
    fgi_join *j;
    const fgi_model *m;
    int32_t n;         /* labelings */
    uint8_t *pattern;  /* n per variable: the first labeling with the same label */
    int32_t *parent;   /* sets as trees */
    int32_t *labels;   /* a labeling to look up factors with */
    int64_t n_entries; /* so far */
    pair *pairs;
    int64_t n_pairs;
    int64_t *first; /* per set: its first state */
    double *zeros;  /* unary scores to begin with */
    fgi_draft draft;
    fgi_arena arena;
} making;

static const uint8_t *pattern_of(const making *k, int64_t var) { return k->pattern + var * k->n; }

static int all_agree(const making *k, int64_t var) {
    const uint8_t *p = pattern_of(k, var);
    for (int32_t e = 1; e < k->n; e++)
        if (p[e]) return 0;
    return 1;
}

/* All labelings agree, and so does what else there would be: more than one label, or none. */
static int is_fixed(const making *k, int64_t var) { return k->m->s->cards[var] != 2 && all_agree(k, var); }

static void find_patterns(making *k) {
    for (int64_t v = 0; v < k->m->s->n_vars; v++) {
        uint8_t *p = k->pattern + v * k->n;
        for (int32_t e = 0; e < k->n; e++) {
            int32_t same = 0;
            while (k->j->labelings[same][v] != k->j->labelings[e][v]) same++;
            p[e] = (uint8_t)same;
        }
    }
    k->j->work += (double)k->m->s->n_vars * k->n;
}

static int32_t root_of(int32_t *parent, int32_t v) {
    while (parent[v] != v) v = parent[v] = parent[parent[v]];
    return v;
}

static void join_variables(making *k) {
    const fgi_structure *s = k->m->s;
    for (int32_t v = 0; v < s->n_vars; v++) k->parent[v] = v;
    for (int64_t f = 0; f < s->n_factors; f++) {
        const int32_t *vars = fgi_factor_vars(s, f), arity = fgi_factor_arity(s, f);
        for (int32_t a = 1; a < arity; a++)
            for (int32_t b = 0; b < a; b++) {
                if (memcmp(pattern_of(k, vars[a]), pattern_of(k, vars[b]), (size_t)k->n) != 0) continue;
                if (is_fixed(k, vars[a]) || is_fixed(k, vars[b])) continue;
                const int32_t x = root_of(k->parent, vars[a]), y = root_of(k->parent, vars[b]);
                k->parent[x > y ? x : y] = x < y ? x : y;
            }
        k->j->work += arity * arity;
    }
}

/* A variable of the joined model for each set, and its states. */
static int32_t number_sets(making *k) {
    fgi_join *j = k->j;
    const int64_t n_vars = k->m->s->n_vars;
    int32_t n_sets = 0;
    int64_t n_states = 0;
    for (int32_t v = 0; v < n_vars; v++) {
        j->set[v] = -1;
        if (is_fixed(k, v)) continue;
        const int32_t root = root_of(k->parent, v); /* the first of its set */
        if (root != v) {
            j->set[v] = j->set[root];
            continue;
        }
        j->set[v] = n_sets;
        k->first[n_sets++] = n_states;
        for (int32_t e = 0; e < k->n; e++)
            if (pattern_of(k, v)[e] == e) j->origin[n_states++] = e;
        if (n_states == k->first[n_sets - 1] + 1) j->origin[n_states++] = FLIPPED;
    }
    k->first[n_sets] = n_states;
    k->n_entries = n_states;
    return n_sets;
}

static int32_t label_in(const fgi_join *j, int64_t var, int32_t origin) {
    return origin == FLIPPED ? 1 - j->labelings[0][var] : j->labelings[origin][var];
}

static int32_t states_of(const making *k, int32_t set) { return (int32_t)(k->first[set + 1] - k->first[set]); }

static void add_variables(making *k, int32_t n_sets) {
    const fgi_join *j = k->j;
    for (int32_t c = 0; c < n_sets; c++) fgi_draft_variable(&k->draft, states_of(k, c), k->zeros);
    if (k->draft.failed) return;
    for (int64_t v = 0; v < j->n_vars; v++) {
        if (j->set[v] < 0) continue;
        double *unary = fgi_draft_unary(&k->draft, j->set[v]);
        const int32_t *origin = j->origin + k->first[j->set[v]];
        for (int32_t a = 0; a < states_of(k, j->set[v]); a++) unary[a] += fgi_unary(k->m, v)[label_in(j, v, origin[a])];
    }
}

/* The sets of a factor, each once; their number. */
static int32_t sets_of(const making *k, int64_t f, int32_t *sets) {
    const int32_t *vars = fgi_factor_vars(k->m->s, f), arity = fgi_factor_arity(k->m->s, f);
    int32_t n = 0;
    for (int32_t a = 0; a < arity; a++) {
        const int32_t c = k->j->set[vars[a]];
        int32_t at = 0;
        if (c < 0) continue;
        while (at < n && sets[at] != c) at++;
        if (at < n) continue;
        if (n == MOST_ARITY) return MOST_ARITY + 1;
        for (at = n++; at > 0 && sets[at - 1] > c; at--) sets[at] = sets[at - 1];
        sets[at] = c;
    }
    return n;
}

/* values[y] += the factor at every joint state y of these sets, the last fastest. */
static void add_factor(making *k, int64_t f, int32_t n, const int32_t *sets, double *values) {
    const fgi_view v = fgi_factor_view(k->m, f);
    int32_t state[MOST_ARITY] = {0}, at[MOST_ARITY];
    for (int64_t y = 0;; y++) {
        for (int32_t a = 0; a < n; a++) at[a] = k->j->origin[k->first[sets[a]] + state[a]];
        for (int32_t a = 0; a < v.arity; a++) {
            const int32_t c = k->j->set[v.vars[a]];
            int32_t place = 0;
            while (c >= 0 && sets[place] != c) place++;
            k->labels[v.vars[a]] = label_in(k->j, v.vars[a], c < 0 ? 0 : at[place]);
        }
        values[y] += fgi_view_score(k->m, &v, k->labels);
        k->j->work += v.arity;
        int32_t a = n - 1;
        while (a >= 0 && ++state[a] == states_of(k, sets[a])) state[a--] = 0;
        if (a < 0) return;
    }
}

/* An empty table over these sets, with a factor; NULL: too large, or no memory. */
static double *new_table(making *k, int32_t n, const int32_t *sets) {
    int32_t dims[MOST_ARITY];
    int64_t size = 1;
    for (int32_t a = 0; a < n; a++) {
        dims[a] = states_of(k, sets[a]);
        if ((size *= dims[a]) > MOST_ENTRIES) return NULL;
    }
    if ((k->n_entries += size) > MOST_ENTRIES) return NULL;
    double *values = NULL;
    const int32_t table = fgi_draft_dense(&k->draft, n, dims, &values);
    if (table < 0 || fgi_draft_factor(&k->draft, table, 1.0, 0, n, sets, NULL) < 0) return NULL;
    memset(values, 0, (size_t)size * sizeof *values);
    return values;
}

static int by_sets(const void *a, const void *b) {
    const pair *x = a, *y = b;
    if (x->sets != y->sets) return x->sets < y->sets ? -1 : 1;
    return x->factor < y->factor ? -1 : x->factor > y->factor;
}

/* Factors within a set become part of its unary scores; those between the same two sets become one. */
static fgi_rc add_factors(making *k, int32_t n_sets) {
    int32_t sets[MOST_ARITY];
    for (int64_t f = 0; f < k->m->s->n_factors; f++) {
        const int32_t n = sets_of(k, f, sets);
        if (n > MOST_ARITY) return FGI_UNSUPPORTED;
        if (n == 1) add_factor(k, f, n, sets, fgi_draft_unary(&k->draft, sets[0]));
        if (n == 2) k->pairs[k->n_pairs++] = (pair){(int64_t)sets[0] * n_sets + sets[1], f};
        if (n < 3) continue;
        double *values = new_table(k, n, sets);
        if (!values) return k->draft.failed ? FGI_NO_MEMORY : FGI_UNSUPPORTED;
        add_factor(k, f, n, sets, values);
    }
    qsort(k->pairs, (size_t)k->n_pairs, sizeof *k->pairs, by_sets);
    double *values = NULL;
    for (int64_t p = 0; p < k->n_pairs; p++) {
        sets[0] = (int32_t)(k->pairs[p].sets / n_sets);
        sets[1] = (int32_t)(k->pairs[p].sets % n_sets);
        if (p == 0 || k->pairs[p].sets != k->pairs[p - 1].sets) values = new_table(k, 2, sets);
        if (!values) return k->draft.failed ? FGI_NO_MEMORY : FGI_UNSUPPORTED;
        add_factor(k, k->pairs[p].factor, 2, sets, values);
    }
    return FGI_OK;
}

fgi_rc fgi_join_create(fgi_join *j, const fgi_model *m, int32_t n, const int32_t *const *labelings) {
    const int64_t n_vars = m->s->n_vars;
    memset(j, 0, sizeof *j);
    making k = {.j = j, .m = m, .n = n};
    j->n_vars = n_vars;
    j->labelings = labelings;
    j->set = fgi_take(&j->arena, n_vars, int32_t);
    j->origin = fgi_take(&j->arena, n_vars * (n < 2 ? 2 : n), int32_t);
    k.pattern = fgi_take(&k.arena, n_vars * n, uint8_t);
    k.parent = fgi_take(&k.arena, n_vars, int32_t);
    k.labels = fgi_take(&k.arena, n_vars, int32_t);
    k.first = fgi_take(&k.arena, n_vars + 1, int64_t);
    k.pairs = fgi_take(&k.arena, m->s->n_factors, pair);
    k.zeros = fgi_take_zero(&k.arena, n + 1, double);
    fgi_rc rc = j->arena.failed || k.arena.failed ? FGI_NO_MEMORY : FGI_OK;
    if (!rc) {
        find_patterns(&k);
        join_variables(&k);
        const int32_t n_sets = number_sets(&k);
        fgi_draft_begin(&k.draft, m);
        add_variables(&k, n_sets);
        rc = k.draft.failed ? FGI_NO_MEMORY : add_factors(&k, n_sets);
        if (!rc) rc = fgi_draft_finish(&k.draft, 0.0, &j->model, NULL);
        fgi_draft_free(&k.draft);
    }
    fgi_arena_free(&k.arena);
    if (rc) fgi_join_free(j);
    return rc;
}

void fgi_join_free(fgi_join *j) {
    fgi_model_free(j->model);
    fgi_arena_free(&j->arena);
    memset(j, 0, sizeof *j);
}

void fgi_join_expand(const fgi_join *j, const int32_t *states, int32_t *labels) {
    for (int64_t v = 0; v < j->n_vars; v++) {
        const int32_t c = j->set[v];
        labels[v] = label_in(j, v, c < 0 ? 0 : j->origin[j->model->s->unary_begin[c] + states[c]]);
    }
}

void fgi_join_states(const fgi_join *j, int32_t labeling, int32_t *states) {
    for (int64_t v = 0; v < j->n_vars; v++) {
        const int32_t c = j->set[v];
        if (c < 0) continue;
        const int32_t *origin = j->origin + j->model->s->unary_begin[c];
        states[c] = 0;
        while (label_in(j, v, origin[states[c]]) != j->labelings[labeling][v]) states[c]++;
    }
}
