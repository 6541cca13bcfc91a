/* primal/feasible.c - see primal/feasible.h. */
#include "primal/feasible.h"
#include <string.h>
#include "base/util.h"

enum {
    MAX_ARITY = 32,      /* variables of a factor with forbidden states, at most */
    SHORTENED = 4096,    /* states of a table whose clauses are shortened: that takes time quadratic in them */
    PAIRWISE_LABELS = 64 /* "at most one label" takes a clause per pair */
};
static const int64_t MOST_STATES = 20000000; /* states of all tables with forbidden entries */

struct fgi_feasible {
    const fgi_model *m;
    double dear; /* costs from here on are forbidden */
    fgi_sat *sat;
    int32_t *first; /* per variable: its first Boolean */
    int32_t *live;  /* per variable: labels that the unaries allow */
    int32_t *nth;   /* per label, laid out as the unaries: its number among the live ones; -1: not live */
    int64_t factor; /* next to encode */
    int64_t work;   /* work of encoding */
    uint8_t *table; /* states of the factor at hand: 1 forbidden, 2 in a clause already */
    int64_t room;
};

/* ---- Booleans --------------------------------------------------------------------------------------------------- */

/* The literal that says "variable i has this label". */
static int32_t literal_of(const fgi_feasible *f, int64_t i, int32_t label) {
    const int32_t k = f->nth[f->m->s->unary_begin[i] + label];
    return f->live[i] == 2 ? 2 * f->first[i] + k : 2 * (f->first[i] + k);
}

/* Is this score of a factor or unary forbidden, or taken as that? */
static int is_forbidden(const fgi_feasible *f, double best, double score) {
    return score == -INFINITY || (f->dear < INFINITY && best - score >= f->dear);
}

/* Numbers the live labels; returns the number of Booleans, or -1 where there are too many. */
static int64_t number_labels(fgi_feasible *f) {
    const fgi_structure *s = f->m->s;
    int64_t n = 0;
    for (int64_t i = 0; i < s->n_vars; i++) {
        const double *u = fgi_unary(f->m, i);
        int32_t *nth = f->nth + s->unary_begin[i];
        const double best = fgi_max_of(u, s->cards[i]);
        f->live[i] = 0;
        for (int32_t a = 0; a < s->cards[i]; a++) nth[a] = is_forbidden(f, best, u[a]) ? -1 : f->live[i]++;
        f->first[i] = (int32_t)n;
        n += f->live[i] == 2 ? 1 : f->live[i];
        if (n > INT32_MAX / 4) return -1;
    }
    return n;
}

/* One label each; the best by the unaries is tried first, and variables in many factors before others. */
static void encode_variable(fgi_feasible *f, int64_t i) {
    const fgi_structure *s = f->m->s;
    const double *u = fgi_unary(f->m, i);
    const int32_t *nth = f->nth + s->unary_begin[i], n = f->live[i];
    const double activity = 1e-3 * (double)(s->adj_begin[i + 1] - s->adj_begin[i]) / (double)(s->max_degree + 1);
    int32_t best = 0, at = 0;
    double best_score = -INFINITY;
    for (int32_t a = 0; a < s->cards[i]; a++)
        if (nth[a] >= 0 && u[a] > best_score) best = nth[a], best_score = u[a];
    if (n == 2) {
        fgi_sat_prefer(f->sat, f->first[i], best == 0, activity);
        return;
    }
    int32_t literals[2], *all = fgi_alloc(n, sizeof *all);
    for (int32_t a = 0; a < n; a++) fgi_sat_prefer(f->sat, f->first[i] + a, a == best, activity);
    for (; all && at < n; at++) all[at] = 2 * (f->first[i] + at);
    if (all) fgi_sat_add(f->sat, all, n);
    free(all);
    for (int32_t a = 0; a < n && n <= PAIRWISE_LABELS; a++)
        for (int32_t b = 0; b < a; b++) {
            literals[0] = 2 * (f->first[i] + a) + 1;
            literals[1] = 2 * (f->first[i] + b) + 1;
            fgi_sat_add(f->sat, literals, 2);
        }
    f->work += (int64_t)n * n;
}

/* ---- tables ----------------------------------------------------------------------------------------------------- */

/* A table over live labels: dims and strides, last variable fastest. */
typedef struct grid {
    int32_t arity, dim[MAX_ARITY];
    int64_t stride[MAX_ARITY], states;
} grid;

static int has_forbidden(const fgi_model *m, double dear, int64_t factor) {
    const fgi_table_facts *facts = &m->t->facts[m->s->factor_table[factor]];
    const double weight = fgi_factor_weight(m->s, factor);
    return facts->n_forbidden > 0 || (dear < INFINITY && weight * facts->max - weight * facts->min_finite >= dear);
}

/* f->table[state] says whether it is forbidden. Returns 0 without memory. */
static int read_table(fgi_feasible *f, int64_t factor, grid *g) {
    const fgi_structure *s = f->m->s;
    const fgi_view v = fgi_factor_view(f->m, factor);
    g->arity = v.arity;
    g->states = 1;
    for (int32_t k = v.arity; k-- > 0;) {
        g->stride[k] = g->states;
        g->dim[k] = s->cards[v.vars[k]];
        g->states *= g->dim[k];
    }
    if (g->states > f->room) {
        free(f->table);
        f->table = fgi_alloc(g->states, sizeof *f->table);
        f->room = f->table ? g->states : 0;
        if (!f->table) return 0;
    }
    const double best = v.weight * f->m->t->facts[s->factor_table[factor]].max;
    if (v.arity == 2)
        for (int32_t a = 0; a < v.rows; a++)
            for (int32_t b = 0; b < v.cols; b++)
                f->table[(int64_t)a * v.cols + b] = (uint8_t)is_forbidden(f, best, fgi_view_at2(&v, a, b));
    else
        for (int64_t k = 0; k < g->states; k++)
            f->table[k] = v.values[k] == -INFINITY || is_forbidden(f, best, v.weight * v.values[k]);
    f->work += g->states;
    return 1;
}

/* Over the states that agree with `at` in the dimensions that are not free: are all forbidden (labels that are not live
 * count as that)? With `mark`, they are marked instead. */
static int each_state(fgi_feasible *f, const grid *g, const int32_t *vars, const int32_t *at, uint32_t free, int mark) {
    int32_t digit[MAX_ARITY];
    for (int32_t k = 0; k < g->arity; k++) digit[k] = free >> k & 1 ? 0 : at[k];
    for (;;) {
        int64_t state = 0;
        int dead = 0;
        for (int32_t k = 0; k < g->arity; k++) {
            state += digit[k] * g->stride[k];
            dead |= f->nth[f->m->s->unary_begin[vars[k]] + digit[k]] < 0;
        }
        f->work += g->arity;
        if (mark) f->table[state] |= 2;
        else if (!dead && !f->table[state]) return 0;
        int32_t k = g->arity - 1;
        for (; k >= 0; k--) {
            if (!(free >> k & 1)) continue;
            if (++digit[k] < g->dim[k]) break;
            digit[k] = 0;
        }
        if (k < 0) return 1;
    }
}

/* The clause against one forbidden state, or against a box of them around it. */
static void encode_state(fgi_feasible *f, const grid *g, const int32_t *vars, const int32_t *at) {
    int32_t literals[MAX_ARITY], n = 0;
    uint32_t free = 0;
    for (int32_t k = 0; k < g->arity; k++)
        if (f->nth[f->m->s->unary_begin[vars[k]] + at[k]] < 0) return;
    if (g->states <= SHORTENED) {
        for (int32_t k = 0; k < g->arity; k++)
            if (each_state(f, g, vars, at, free | 1u << k, 0)) free |= 1u << k;
        each_state(f, g, vars, at, free, 1);
    }
    for (int32_t k = 0; k < g->arity; k++)
        if (!(free >> k & 1) && f->live[vars[k]] > 1) literals[n++] = literal_of(f, vars[k], at[k]) ^ 1;
    fgi_sat_add(f->sat, literals, n);
}

static void encode_factor(fgi_feasible *f, int64_t factor) {
    const int32_t *vars = fgi_factor_vars(f->m->s, factor);
    grid g;
    int32_t digit[MAX_ARITY] = {0};
    if (!has_forbidden(f->m, f->dear, factor)) return;
    if (!read_table(f, factor, &g)) {
        f->factor = -1;
        return;
    }
    for (int64_t state = 0; state < g.states; state++) {
        if (f->table[state] == 1) encode_state(f, &g, vars, digit);
        for (int32_t k = g.arity - 1; k >= 0 && ++digit[k] == g.dim[k]; k--) digit[k] = 0;
    }
}

/* ---- the interface ---------------------------------------------------------------------------------------------- */

fgi_feasible *fgi_feasible_create(const fgi_model *m, double dear, int *too_large) {
    const fgi_structure *s = m->s;
    int64_t states = 0;
    *too_large = 0;
    for (int64_t k = 0; k < s->n_factors && !*too_large; k++) {
        if (!has_forbidden(m, dear, k)) continue;
        const fgi_view v = fgi_factor_view(m, k);
        states += fgi_view_states(m, &v);
        *too_large = states > MOST_STATES || v.arity > MAX_ARITY;
    }
    if (*too_large) return NULL;
    fgi_feasible *f = fgi_calloc(1, sizeof *f);
    if (!f) return NULL;
    f->m = m;
    f->dear = dear;
    f->first = fgi_alloc(s->n_vars, sizeof *f->first);
    f->live = fgi_alloc(s->n_vars, sizeof *f->live);
    f->nth = fgi_alloc(s->unary_begin[s->n_vars], sizeof *f->nth);
    const int64_t n = f->first && f->live && f->nth ? number_labels(f) : 0;
    *too_large = n < 0;
    if (n >= 0 && f->first && f->live && f->nth) f->sat = fgi_sat_create((int32_t)n);
    if (f->sat) return f;
    fgi_feasible_free(f);
    return NULL;
}

void fgi_feasible_free(fgi_feasible *f) {
    if (!f) return;
    fgi_sat_free(f->sat);
    free(f->first);
    free(f->live);
    free(f->nth);
    free(f->table);
    free(f);
}

fgi_sat_state fgi_feasible_step(fgi_feasible *f, int64_t max_operations) {
    const fgi_structure *s = f->m->s;
    const int64_t end = fgi_feasible_operations(f) + max_operations, all = s->n_vars + s->n_factors;
    while (f->factor >= 0 && f->factor < all) {
        const int64_t next = f->factor++;
        if (next < s->n_vars) encode_variable(f, next);
        else encode_factor(f, next - s->n_vars);
        f->work++;
        if (f->work + fgi_sat_operations(f->sat) >= end && f->factor >= 0) return FGI_SAT_RUNNING;
    }
    if (f->factor < 0) return FGI_SAT_NO_MEMORY;
    return fgi_sat_step(f->sat, end - fgi_feasible_operations(f));
}

void fgi_feasible_labels(const fgi_feasible *f, int32_t *labels) {
    const fgi_structure *s = f->m->s;
    for (int64_t i = 0; i < s->n_vars; i++) {
        const double *u = fgi_unary(f->m, i);
        int32_t best = -1;
        for (int32_t a = 0; a < s->cards[i]; a++) {
            if (f->nth[s->unary_begin[i] + a] < 0) continue;
            const int32_t literal = literal_of(f, i, a);
            const int taken = fgi_sat_value(f->sat, literal >> 1) != (literal & 1);
            if (taken && (best < 0 || u[a] > u[best])) best = a;
        }
        labels[i] = best < 0 ? 0 : best;
    }
}

int64_t fgi_feasible_operations(const fgi_feasible *f) { return f->work + fgi_sat_operations(f->sat); }
int64_t fgi_feasible_memory(const fgi_feasible *f) {
    return fgi_sat_memory(f->sat) + 8 * f->m->s->n_vars + 4 * f->m->s->unary_begin[f->m->s->n_vars] + f->room;
}
