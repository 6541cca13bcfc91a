/* model/model.h - what the solvers see of a model. Structure is immutable; potentials are versioned and copied on
 * write. */
#ifndef FGI_MODEL_H
#define FGI_MODEL_H
#include <math.h>
#include <stdatomic.h>
#include "base/arena.h"
#include "base/assert.h"
#include "fginfer.h"
#include "model/leftovers.h"

/* What one linear pass over a table tells: computed at creation and by set_table. */
typedef struct fgi_table_facts {
    double max;          /* -INFINITY if every state is forbidden */
    double second;       /* the largest value below max; -INFINITY if there is none */
    double min_finite;   /* INFINITY if every state is forbidden */
    int64_t n_forbidden; /* entries that are -INFINITY */
    /* The entries of a dense table depend on the distance of two labels alone, and from this distance on they are all
     * the same, and no more than those before. 0: other tables, and those too small for it to matter. */
    int32_t reach;
} fgi_table_facts;

/* Immutable, shared by all snapshots. */
typedef struct fgi_structure {
    atomic_int refs;
    int64_t n_vars, n_tables, n_factors;
    int32_t max_card, min_card, max_arity;
    int64_t max_degree; /* most factors of one variable */
    int32_t *cards;
    int64_t *unary_begin; /* n_vars + 1 offsets into the unaries */
    double constant;
    int32_t *table_kind; /* fgi_table_kind */
    int32_t *table_arity;
    int64_t *dims_begin; /* n_tables + 1 offsets into dims (implicit tables have none) */
    int32_t *dims;
    double *params;        /* 2 per table, NULL when all tables are dense */
    int64_t *values_begin; /* n_tables + 1 offsets into the values */
    int32_t *factor_table;
    double *factor_weight; /* NULL: all 1 */
    double max_weight;
    uint8_t *factor_transposed; /* NULL: none */
    int64_t *var_begin;         /* NULL: all factors are pairwise */
    int32_t *vars;
    int64_t *adj_begin; /* n_vars + 1 offsets into adj */
    int32_t *adj;       /* factors of a variable, ascending */
    fgi_arena arena;    /* all of these arrays */
} fgi_structure;

typedef struct fgi_unaries {
    atomic_int refs;
    double *values;
} fgi_unaries;

struct fgi_sorted; /* sorted access to one table, see model/sorted.h */

typedef struct fgi_tables {
    atomic_int refs;
    double *values;
    fgi_table_facts *facts;              /* per table */
    int any_reach;                       /* one of them, at least, has a reach */
    _Atomic(struct fgi_sorted *) *order; /* per table, lazily made by fgi_model_order; NULL array until first use */
} fgi_tables;

struct fgi_model {
    fgi_structure *s;
    fgi_unaries *u;
    fgi_tables *t;
    fgi_leftovers *x; /* NULL: none */
    /* model/scale.c: found once, by passes over everything that every solver would make again; 0: not yet. */
    _Atomic double unit, largest;
};

/* fgi_model_create without a copy of the tables: `values` is spec->values, comes from malloc, and is the model's on
 * success. */
fgi_rc fgi_model_create_owning(const fgi_model_spec *spec, double *values, fgi_model **out, fgi_error *err);

struct fgi_pool;

/* Terms of a model are its variables, then its factors. Threads share them in blocks of so many: below a tenth of a
 * millisecond each. */
enum { FGI_TERMS = 1 << 13 };

/* fgi_model_score, and a number that is no smaller than the exact score: the same, unless that was rounded. */
fgi_rc fgi_model_score_above(const fgi_model *m, const int32_t *labels, double *score, double *above, fgi_error *err);
/* The same by the threads of a pool. */
fgi_rc fgi_model_score_by(
    const fgi_model *m, struct fgi_pool *pool, const int32_t *labels, double *score, double *above, fgi_error *err);
fgi_rc fgi_model_check_labels(const fgi_model *m, const int32_t *labels, fgi_error *err); /* are they in range? */

/* How errors call a factor: by its variables. Its number here says nothing to callers, who count unary factors, too. */
typedef struct fgi_factor_name {
    char text[96];
} fgi_factor_name;
fgi_factor_name fgi_factor_named(const fgi_structure *s, int64_t f);

/* ---- magnitudes (model/scale.c) ------------------------------------------------------------------------------- */

/* Whether the sum of the largest magnitudes of all potentials is so large that sums or differences of scores could
 * overflow; names the factor or variable with which it becomes so. */
fgi_rc fgi_model_check_sums(const fgi_model *m, fgi_error *err);
/* fgi_model_unit, fgi_model_normalised and fgi_model_unary_labels by the threads of a pool. */
double fgi_model_unit_by(const fgi_model *m, struct fgi_pool *pool);
/* What one term has to say about the unit, which is the least of all; INFINITY: nothing. */
double fgi_model_term_unit(const fgi_model *m, int64_t term);
fgi_rc fgi_model_normalised_by(
    const fgi_model *m, struct fgi_pool *pool, fgi_model **out, int *exponent, fgi_error *err);
void fgi_model_unary_labels_by(const fgi_model *m, struct fgi_pool *pool, int32_t *labels);
/* Magnitudes up to this one need no look at their sum. */
#define FGI_MODEST 0x1p950

/* The same variables, factors and tables under other weights; everything but the tables is copied. NULL: no memory. */
fgi_model *fgi_model_reweighted(const fgi_model *m, const double *weight, const double *unary, double constant);

/* A factor as it sees its table: rows are labels of the first variable, columns of the second, whatever the storage. */
typedef struct fgi_view {
    int32_t kind, arity, table;
    int32_t transposed; /* pairwise: entry (a,b) is values[b * rows + a] */
    const int32_t *vars;
    const double *values; /* dense only */
    double weight, p0, p1;
    int32_t rows, cols; /* label counts of the first and second variable (cols = 1 for arity 1) */
    int32_t reach;      /* reach of the table, from its facts */
} fgi_view;

static inline int64_t fgi_factor_begin(const fgi_structure *s, int64_t f) {
    fgi_assert(f >= 0 && f <= s->n_factors);
    return s->var_begin ? s->var_begin[f] : 2 * f;
}
static inline int32_t fgi_factor_arity(const fgi_structure *s, int64_t f) {
    fgi_assert(f >= 0 && f < s->n_factors);
    return s->var_begin ? (int32_t)(s->var_begin[f + 1] - s->var_begin[f]) : 2;
}
static inline const int32_t *fgi_factor_vars(const fgi_structure *s, int64_t f) {
    fgi_assert(f >= 0 && f < s->n_factors);
    return s->vars + fgi_factor_begin(s, f);
}
static inline double fgi_factor_weight(const fgi_structure *s, int64_t f) {
    fgi_assert(f >= 0 && f < s->n_factors);
    return s->factor_weight ? s->factor_weight[f] : 1.0;
}
static inline const double *fgi_unary(const fgi_model *m, int64_t i) {
    fgi_assert(i >= 0 && i <= m->s->n_vars);
    return m->u->values + m->s->unary_begin[i];
}

static inline fgi_view fgi_factor_view(const fgi_model *m, int64_t f) {
    fgi_assert(f >= 0 && f < m->s->n_factors);
    const fgi_structure *s = m->s;
    fgi_view v;
    v.table = s->factor_table[f];
    v.kind = s->table_kind[v.table];
    v.arity = fgi_factor_arity(s, f);
    v.transposed = s->factor_transposed ? s->factor_transposed[f] : 0;
    v.vars = fgi_factor_vars(s, f);
    v.values = m->t->values + s->values_begin[v.table];
    v.weight = fgi_factor_weight(s, f);
    v.p0 = s->params ? s->params[2 * v.table] : 0.0;
    v.p1 = s->params ? s->params[2 * v.table + 1] : 0.0;
    v.rows = s->cards[v.vars[0]];
    v.cols = v.arity > 1 ? s->cards[v.vars[1]] : 1;
    v.reach = m->t->any_reach ? m->t->facts[v.table].reach : 0;
    return v;
}

/* Unweighted entry of an implicit table. */
static inline double fgi_implicit_at(int32_t kind, double p0, double p1, int32_t a, int32_t b) {
    double d = (double)a - (double)b;
    if (kind == FGI_POTTS) return a == b ? p0 : p1;
    d = kind == FGI_ABSDIFF ? fabs(d) : d * d;
    return -p0 * (d < p1 ? d : p1) + 0.0; /* + 0.0: no negative zeros */
}

/* The distance between labels from which on a pairwise factor has one score for all; INT32_MAX: not known. */
static inline int32_t fgi_view_reach(const fgi_view *v) {
    if (v->kind == FGI_POTTS) return 1;
    if (v->kind == FGI_DENSE) return v->reach ? v->reach : INT32_MAX;
    const double limit = ceil(v->kind == FGI_ABSDIFF ? v->p1 : sqrt(v->p1));
    return limit < INT32_MAX - 1 ? (int32_t)limit + 1 : INT32_MAX; /* + 1: a root may be rounded down */
}

/* The score of a pairwise factor at (a, b). The one definition every oracle and solver agrees with, bit for bit. */
static inline double fgi_view_at2(const fgi_view *v, int32_t a, int32_t b) {
    fgi_assert(a >= 0 && b >= 0 && (v->kind != FGI_DENSE || (a < v->rows && b < v->cols))); /* others are symmetric */
    if (v->kind == FGI_DENSE)
        return v->weight * (v->transposed ? v->values[(int64_t)b * v->rows + a] : v->values[(int64_t)a * v->cols + b]);
    return v->weight * fgi_implicit_at(v->kind, v->p0, v->p1, a, b);
}

/* The score of any factor at the labels of a full labeling. */
static inline double fgi_view_score(const fgi_model *m, const fgi_view *v, const int32_t *labels) {
    if (v->arity == 2) return fgi_view_at2(v, labels[v->vars[0]], labels[v->vars[1]]);
    int64_t at = 0;
    for (int32_t k = 0; k < v->arity; k++) at = at * m->s->cards[v->vars[k]] + labels[v->vars[k]];
    return v->weight * v->values[at];
}

/* The score of factor f of the model at a labeling. A pairwise factor does without the label counts of its variables:
 * they lie far apart in sparse models, and fetching them would take half of the time. */
static inline double fgi_factor_score(const fgi_model *m, int64_t f, const int32_t *labels) {
    const fgi_structure *s = m->s;
    const int32_t t = s->factor_table[f], kind = s->table_kind[t];
    if (fgi_factor_arity(s, f) != 2) {
        const fgi_view v = fgi_factor_view(m, f);
        return fgi_view_score(m, &v, labels);
    }
    const int32_t *vars = fgi_factor_vars(s, f), a = labels[vars[0]], b = labels[vars[1]];
    const double *p = s->params + (s->params ? 2 * (int64_t)t : 0), w = fgi_factor_weight(s, f);
    if (kind == FGI_POTTS) return w * p[a != b]; /* a branch would be mispredicted */
    if (kind != FGI_DENSE) return w * fgi_implicit_at(kind, p[0], p[1], a, b);
    const int64_t cols = s->dims[s->dims_begin[t] + 1];
    const int turned = s->factor_transposed && s->factor_transposed[f];
    return w * m->t->values[s->values_begin[t] + (turned ? b * cols + a : a * cols + b)];
}

/* Number of states of a factor; exact because creation checked it. */
static inline int64_t fgi_view_states(const fgi_model *m, const fgi_view *v) {
    int64_t n = 1;
    for (int32_t k = 0; k < v->arity; k++) n *= m->s->cards[v->vars[k]];
    return n;
}

/* What a max-plus product with a pairwise factor costs, in entries of a table that is read whole: two of a band take as
 * long as one of those. And of any factor. */
static inline int64_t fgi_pair_work(const fgi_view *v) {
    if (v->kind == FGI_DENSE && !v->reach) return (int64_t)v->rows * v->cols;
    return (int64_t)v->rows + v->cols + (int64_t)v->rows * v->reach / 2;
}
static inline int64_t fgi_view_work(const fgi_model *m, const fgi_view *v) {
    return v->arity == 2 ? fgi_pair_work(v) : fgi_view_states(m, v);
}

#endif
