/* model/model.c - the immutable problem: variables, shared tables, factors, adjacency; and its versioned potentials. */
#include "model/model.h"
#include <string.h>
#include "base/kernels.h"
#include "base/util.h"
#include "model/sorted.h"

/* ---- checks ------------------------------------------------------------------------------------------------- */

static fgi_rc check_scores(const double *v, int64_t n, const char *what, int64_t index, fgi_error *err) {
    int wrong = 0;
    for (int64_t k = 0; k < n; k++) wrong |= !(v[k] < INFINITY); /* in vectors; who it is can be looked for slowly */
    for (int64_t k = 0; wrong && k < n; k++)
        if (!(v[k] < INFINITY)) /* true for NaN and +INFINITY */
            return fgi_fail(err, FGI_BAD_MODEL, index, "%s %lld, entry %lld is %s; scores must be finite or -inf", what,
                (long long)index, (long long)k, isnan(v[k]) ? "NaN" : "+inf");
    return FGI_OK;
}

static fgi_table_facts facts_of(const double *v, int64_t n) {
    fgi_table_facts f = {-INFINITY, -INFINITY, INFINITY, 0, 0};
    for (int64_t k = 0; k < n; k++) {
        if (v[k] == -INFINITY) {
            f.n_forbidden++;
            continue;
        }
        if (v[k] > f.second && v[k] != f.max) {
            if (v[k] > f.max) {
                f.second = f.max;
                f.max = v[k];
            } else {
                f.second = v[k];
            }
        }
        if (v[k] < f.min_finite) f.min_finite = v[k];
    }
    return f;
}

static fgi_rc check_table(const fgi_model_spec *spec, int64_t t, int64_t *dims_at, int64_t *values_at, fgi_error *err) {
    int32_t kind = spec->table_kind ? spec->table_kind[t] : FGI_DENSE;
    if (kind == FGI_DENSE) {
        int32_t arity = spec->table_arity[t];
        int64_t size = 1;
        if (arity < 2)
            return fgi_fail(
                err, FGI_BAD_MODEL, t, "table %lld has arity %d; fold arity 0 and 1 first", (long long)t, arity);
        for (int32_t k = 0; k < arity; k++) {
            int32_t d = spec->dims[*dims_at + k];
            if (d < 1) return fgi_fail(err, FGI_BAD_MODEL, t, "table %lld has a dimension of %d", (long long)t, d);
            if (!fgi_mul(size, d, &size))
                return fgi_fail(err, FGI_BAD_MODEL, t, "table %lld has more than 2^63 entries", (long long)t);
        }
        if (size > spec->n_values - *values_at)
            return fgi_fail(err, FGI_BAD_MODEL, t, "table %lld needs %lld values, %lld are left", (long long)t,
                (long long)size, (long long)(spec->n_values - *values_at));
        *dims_at += arity;
        fgi_rc rc = check_scores(spec->values + *values_at, size, "table", t, err);
        *values_at += size;
        return rc;
    }
    if (kind < 0 || kind > FGI_SQDIFF || !spec->params)
        return fgi_fail(err, FGI_BAD_MODEL, t, "table %lld has unknown kind %d", (long long)t, kind);
    if (spec->table_arity && spec->table_arity[t] != 2)
        return fgi_fail(err, FGI_BAD_MODEL, t, "implicit table %lld must be pairwise", (long long)t);
    double p0 = spec->params[2 * t], p1 = spec->params[2 * t + 1];
    if (kind == FGI_POTTS) {
        if (!(p0 < INFINITY) || !(p1 < INFINITY))
            return fgi_fail(err, FGI_BAD_MODEL, t, "Potts table %lld: scores must be finite or -inf", (long long)t);
    } else if (!(p0 >= 0 && p0 < INFINITY) || !(p1 > 0)) {
        return fgi_fail(err, FGI_BAD_MODEL, t,
            "difference table %lld: the weight must be finite and >= 0, the truncation > 0", (long long)t);
    }
    return FGI_OK;
}

static fgi_rc check_factor(const fgi_model_spec *spec, const fgi_structure *s, int64_t f, fgi_error *err) {
    int64_t begin = fgi_factor_begin(s, f);
    int32_t arity = fgi_factor_arity(s, f), t = spec->factor_table[f];
    if (t < 0 || t >= spec->n_tables)
        return fgi_fail(err, FGI_BAD_MODEL, f, "factor %lld refers to table %d of %lld", (long long)f, t,
            (long long)spec->n_tables);
    if (arity != s->table_arity[t])
        return fgi_fail(err, FGI_BAD_MODEL, f, "factor %lld has %d variables, its table %d has arity %d", (long long)f,
            arity, t, s->table_arity[t]);
    double w = fgi_factor_weight(s, f);
    if (!(w > 0 && w < INFINITY))
        return fgi_fail(err, FGI_BAD_MODEL, f, "factor %lld has weight %g; it must be finite and > 0", (long long)f, w);
    int transposed = s->factor_transposed && s->factor_transposed[f];
    if (transposed && arity != 2)
        return fgi_fail(err, FGI_BAD_MODEL, f, "factor %lld is transposed but not pairwise", (long long)f);
    for (int32_t k = 0; k < arity; k++) {
        int32_t i = spec->vars[begin + k];
        if (i < 0 || i >= spec->n_vars)
            return fgi_fail(err, FGI_BAD_MODEL, f, "factor %lld refers to variable %d of %lld", (long long)f, i,
                (long long)spec->n_vars);
        for (int32_t l = 0; l < k; l++)
            if (spec->vars[begin + l] == i)
                return fgi_fail(err, FGI_BAD_MODEL, f, "factor %lld names variable %d twice", (long long)f, i);
        if (s->table_kind[t] != FGI_DENSE) continue;
        int32_t d = s->dims[s->dims_begin[t] + (transposed ? 1 - k : k)];
        if (d != s->cards[i])
            return fgi_fail(err, FGI_BAD_MODEL, f, "factor %lld: variable %d has %d labels, table %d has %d there",
                (long long)f, i, s->cards[i], t, d);
    }
    return FGI_OK;
}

/* ---- structure ---------------------------------------------------------------------------------------------- */

static void structure_release(fgi_structure *s) {
    if (!s || atomic_fetch_sub(&s->refs, 1) != 1) return;
    fgi_arena_free(&s->arena);
    free(s);
}

/* The factors of every variable, ascending. */
static int build_adjacency(fgi_structure *s, int64_t n_slots) {
    s->adj_begin = fgi_take_zero(&s->arena, s->n_vars + 1, int64_t);
    s->adj = fgi_take(&s->arena, n_slots, int32_t);
    if (s->arena.failed) return 0;
    for (int64_t k = 0; k < n_slots; k++) s->adj_begin[s->vars[k] + 1]++;
    for (int64_t i = 0; i < s->n_vars; i++) s->adj_begin[i + 1] += s->adj_begin[i];
    for (int64_t f = 0; f < s->n_factors; f++) {
        const int32_t *vars = fgi_factor_vars(s, f);
        for (int32_t k = 0; k < fgi_factor_arity(s, f); k++) s->adj[s->adj_begin[vars[k]]++] = (int32_t)f;
    }
    for (int64_t i = s->n_vars; i > 0; i--) s->adj_begin[i] = s->adj_begin[i - 1];
    s->adj_begin[0] = 0;
    for (int64_t i = 0; i < s->n_vars; i++)
        if (s->adj_begin[i + 1] - s->adj_begin[i] > s->max_degree)
            s->max_degree = s->adj_begin[i + 1] - s->adj_begin[i];
    return 1;
}

static fgi_rc check_sizes(const fgi_model_spec *spec, fgi_error *err) {
    if (spec->n_vars < 0 || spec->n_tables < 0 || spec->n_factors < 0 || spec->n_values < 0)
        return fgi_fail(err, FGI_BAD_MODEL, -1, "a size is negative");
    if (spec->n_vars > INT32_MAX || spec->n_factors > INT32_MAX || spec->n_tables > INT32_MAX)
        return fgi_fail(err, FGI_BAD_MODEL, -1, "more than 2^31 variables, factors or tables");
    if (!(spec->constant < INFINITY)) return fgi_fail(err, FGI_BAD_MODEL, -1, "the constant must be finite or -inf");
    return FGI_OK;
}

/* A copy of what is given; NULL if nothing is. */
static void *copy_given(fgi_structure *s, const void *given, int64_t n, size_t size) {
    return given ? fgi_arena_copy(&s->arena, given, n, size) : NULL;
}

/* The arrays whose length the sizes give; 0: out of memory. */
static int copy_arrays(const fgi_model_spec *spec, fgi_structure *s) {
    s->cards = fgi_arena_copy(&s->arena, spec->cards, s->n_vars, sizeof(int32_t));
    s->unary_begin = fgi_take_zero(&s->arena, s->n_vars + 1, int64_t);
    s->table_kind = fgi_take_zero(&s->arena, s->n_tables, int32_t);
    s->table_arity = fgi_take_zero(&s->arena, s->n_tables, int32_t);
    s->dims_begin = fgi_take_zero(&s->arena, s->n_tables + 1, int64_t);
    s->values_begin = fgi_take_zero(&s->arena, s->n_tables + 1, int64_t);
    s->factor_table = fgi_arena_copy(&s->arena, spec->factor_table, s->n_factors, sizeof(int32_t));
    s->params = copy_given(s, spec->params, 2 * s->n_tables, sizeof(double));
    s->factor_weight = copy_given(s, spec->factor_weight, s->n_factors, sizeof(double));
    s->factor_transposed = copy_given(s, spec->factor_transposed, s->n_factors, 1);
    s->var_begin = copy_given(s, spec->var_begin, s->n_factors + 1, sizeof(int64_t));
    return !s->arena.failed;
}

static fgi_rc place_variables(fgi_structure *s, fgi_error *err) {
    for (int64_t i = 0; i < s->n_vars; i++) {
        if (s->cards[i] < 1)
            return fgi_fail(err, FGI_BAD_MODEL, i, "variable %lld has %d labels; at least one is needed", (long long)i,
                s->cards[i]);
        s->unary_begin[i + 1] = s->unary_begin[i] + s->cards[i];
        if (s->cards[i] > s->max_card) s->max_card = s->cards[i];
        if (s->cards[i] < s->min_card || i == 0) s->min_card = s->cards[i];
    }
    return FGI_OK;
}

static fgi_rc place_tables(const fgi_model_spec *spec, fgi_structure *s, fgi_error *err) {
    int64_t dims_at = 0, values_at = 0;
    for (int64_t t = 0; t < s->n_tables; t++) {
        s->table_kind[t] = spec->table_kind ? spec->table_kind[t] : (int32_t)FGI_DENSE;
        s->table_arity[t] = s->table_kind[t] == FGI_DENSE ? spec->table_arity[t] : 2;
        fgi_rc rc = check_table(spec, t, &dims_at, &values_at, err);
        if (rc) return rc;
        s->dims_begin[t + 1] = dims_at;
        s->values_begin[t + 1] = values_at;
    }
    if (values_at != spec->n_values)
        return fgi_fail(err, FGI_BAD_MODEL, -1, "the tables need %lld values, %lld are given", (long long)values_at,
            (long long)spec->n_values);
    s->dims = fgi_arena_copy(&s->arena, spec->dims, dims_at, sizeof(int32_t));
    return s->arena.failed ? fgi_no_memory(err) : FGI_OK;
}

static fgi_rc place_factors(const fgi_model_spec *spec, fgi_structure *s, fgi_error *err) {
    if (s->var_begin && s->var_begin[0] != 0) return fgi_fail(err, FGI_BAD_MODEL, -1, "var_begin must start at 0");
    for (int64_t f = 0; s->var_begin && f < s->n_factors; f++)
        if (s->var_begin[f + 1] < s->var_begin[f])
            return fgi_fail(err, FGI_BAD_MODEL, f, "var_begin decreases at factor %lld", (long long)f);
    for (int64_t f = 0; f < s->n_factors; f++) {
        fgi_rc rc = check_factor(spec, s, f, err);
        if (rc) return rc;
        if (fgi_factor_arity(s, f) > s->max_arity) s->max_arity = fgi_factor_arity(s, f);
        if (fgi_factor_weight(s, f) > s->max_weight) s->max_weight = fgi_factor_weight(s, f);
    }
    const int64_t n_slots = fgi_factor_begin(s, s->n_factors);
    s->vars = fgi_arena_copy(&s->arena, spec->vars, n_slots, sizeof(int32_t));
    return !s->arena.failed && build_adjacency(s, n_slots) ? FGI_OK : fgi_no_memory(err);
}

static fgi_rc build_structure(const fgi_model_spec *spec, fgi_structure **out, fgi_error *err) {
    fgi_rc rc = check_sizes(spec, err);
    if (rc) return rc;
    fgi_structure *s = fgi_calloc(1, sizeof *s);
    if (!s) return fgi_no_memory(err);
    atomic_init(&s->refs, 1);
    s->n_vars = spec->n_vars;
    s->n_tables = spec->n_tables;
    s->n_factors = spec->n_factors;
    s->constant = spec->constant;
    if (!copy_arrays(spec, s)) rc = fgi_no_memory(err);
    if (!rc) rc = place_variables(s, err);
    if (!rc) rc = place_tables(spec, s, err);
    if (!rc) rc = place_factors(spec, s, err);
    if (rc) {
        structure_release(s);
        return rc;
    }
    *out = s;
    return FGI_OK;
}

/* ---- potentials --------------------------------------------------------------------------------------------- */

static void unaries_release(fgi_unaries *u) {
    if (!u || atomic_fetch_sub(&u->refs, 1) != 1) return;
    free(u->values);
    free(u);
}

static void tables_release(fgi_tables *t, int64_t n_tables) {
    if (!t || atomic_fetch_sub(&t->refs, 1) != 1) return;
    if (t->order)
        for (int64_t k = 0; k < n_tables; k++) fgi_sorted_release(atomic_load(&t->order[k]));
    free(t->order);
    free(t->values);
    free(t->facts);
    free(t);
}

static fgi_unaries *unaries_new(const double *values, int64_t n) {
    fgi_unaries *u = fgi_calloc(1, sizeof *u);
    if (!u) return NULL;
    atomic_init(&u->refs, 1);
    u->values = values ? fgi_copy(values, n, sizeof(double)) : fgi_calloc(n, sizeof(double));
    if (u->values) return u;
    free(u);
    return NULL;
}

/* With values NULL the caller puts its own. Orders are kept: a permutation stays right while its table's values do. */
static fgi_tables *tables_new(
    const fgi_structure *s, const double *values, const fgi_table_facts *facts, const fgi_tables *orders_of) {
    fgi_tables *t = fgi_calloc(1, sizeof *t);
    if (!t) return NULL;
    atomic_init(&t->refs, 1);
    t->values = values ? fgi_copy(values, s->values_begin[s->n_tables], sizeof(double)) : NULL;
    t->facts = facts ? fgi_copy(facts, s->n_tables, sizeof *facts) : fgi_alloc(s->n_tables, sizeof *facts);
    t->any_reach = orders_of && orders_of->any_reach;
    t->order = fgi_calloc(s->n_tables, sizeof *t->order);
    if ((values && !t->values) || !t->facts || !t->order) {
        tables_release(t, s->n_tables);
        return NULL;
    }
    for (int64_t k = 0; orders_of && k < s->n_tables; k++) {
        struct fgi_sorted *o = atomic_load(&orders_of->order[k]);
        if (o) atomic_store(&t->order[k], fgi_sorted_retain(o));
    }
    return t;
}

/* See fgi_table_facts. Most tables are found out at the second row. */
static int32_t reach_of(const double *v, int64_t rows, int64_t cols) {
    enum { SMALL = 64 }; /* entries, of which plain loops are quick */
    if (rows != cols || rows * cols <= SMALL) return 0;
    int64_t reach = cols - 1;
    while (reach > 0 && v[reach - 1] == v[cols - 1]) reach--;
    if (reach == 0) reach = 1;
    if (!fgi_band_pays(reach, cols, cols)) return 0;
    for (int64_t d = 0; d < reach; d++)
        if (!(v[d] >= v[cols - 1])) return 0;
    for (int64_t a = 1; a < rows; a++) {
        const double *row = v + a * cols;
        for (int64_t b = 0; b < a; b++)
            if (row[b] != v[a - b]) return 0;
        for (int64_t b = a; b < cols; b++)
            if (row[b] != v[b - a]) return 0;
    }
    return (int32_t)reach;
}

static fgi_table_facts dense_facts(const fgi_structure *s, int64_t t, const double *v) {
    fgi_table_facts facts = facts_of(v, s->values_begin[t + 1] - s->values_begin[t]);
    const int32_t *dims = s->dims + s->dims_begin[t];
    if (s->table_arity[t] == 2) facts.reach = reach_of(v, dims[0], dims[1]);
    return facts;
}

static fgi_table_facts implicit_facts(const fgi_structure *s, int64_t t) {
    double p0 = s->params[2 * t], p1 = s->params[2 * t + 1];
    if (s->table_kind[t] == FGI_POTTS) {
        double both[2] = {p0, p1};
        return facts_of(both, 2);
    }
    double far = s->max_card > 1 ? s->max_card - 1.0 : 0.0; /* the widest pair there can be */
    if (s->table_kind[t] == FGI_SQDIFF) far *= far;
    const double second = p0 > 0 && far > 0 ? fgi_implicit_at(s->table_kind[t], p0, p1, 1, 0) : -INFINITY;
    return (fgi_table_facts){0.0, second, -p0 * (far < p1 ? far : p1), 0, 0};
}

static void put_facts(fgi_tables *t, int64_t table, fgi_table_facts facts) {
    t->facts[table] = facts;
    t->any_reach |= facts.reach > 0;
}

/* Finite scores must stay finite when weighted: -DBL_MAX * 2 would silently forbid a state. */
static int weight_overflows(double weight, const fgi_table_facts *facts) {
    return (facts->max > -INFINITY && !isfinite(weight * facts->max)) ||
        (facts->min_finite < INFINITY && !isfinite(weight * facts->min_finite));
}

/* With `own` (spec->values, from malloc), the model takes that array over on success instead of copying it. */
static fgi_rc create(const fgi_model_spec *spec, double *own, fgi_model **out, fgi_error *err) {
    fgi_structure *s = NULL;
    fgi_rc rc = build_structure(spec, &s, err);
    if (rc) return rc;
    fgi_model *m = NULL;
    for (int64_t i = 0; spec->unary && i < s->n_vars; i++)
        if ((rc = check_scores(spec->unary + s->unary_begin[i], s->cards[i], "variable", i, err))) goto fail;
    m = fgi_calloc(1, sizeof *m);
    if (m) {
        m->u = unaries_new(spec->unary, s->unary_begin[s->n_vars]);
        m->t = tables_new(s, own ? NULL : spec->values, NULL, NULL);
    }
    if (!m || !m->u || !m->t) {
        rc = fgi_no_memory(err);
        goto fail;
    }
    for (int64_t t = 0; t < s->n_tables; t++)
        put_facts(m->t, t,
            s->table_kind[t] == FGI_DENSE ? dense_facts(s, t, spec->values + s->values_begin[t])
                                          : implicit_facts(s, t));
    for (int64_t f = 0; s->factor_weight && f < s->n_factors; f++)
        if (weight_overflows(s->factor_weight[f], &m->t->facts[s->factor_table[f]])) {
            rc = fgi_fail(err, FGI_BAD_MODEL, f, "%s: weight %g times its table overflows", fgi_factor_named(s, f).text,
                s->factor_weight[f]);
            goto fail;
        }
    m->s = s;
    if (own) m->t->values = own;
    if ((rc = fgi_leftovers_create(spec, &m->x, err)) || (rc = fgi_model_check_sums(m, err))) {
        if (own) m->t->values = NULL; /* still the caller's */
        goto fail;
    }
    *out = m;
    return FGI_OK;
fail:
    if (m) {
        unaries_release(m->u);
        tables_release(m->t, s->n_tables);
        fgi_leftovers_release(m->x);
        free(m);
    }
    structure_release(s);
    return rc;
}

fgi_rc fgi_model_create(const fgi_model_spec *spec, fgi_model **out, fgi_error *err) {
    return create(spec, NULL, out, err);
}

fgi_rc fgi_model_create_owning(const fgi_model_spec *spec, double *values, fgi_model **out, fgi_error *err) {
    return create(spec, values, out, err);
}

fgi_model *fgi_model_snapshot(const fgi_model *m) {
    fgi_model *c = fgi_calloc(1, sizeof *c);
    if (!c) return NULL;
    c->s = m->s;
    c->u = m->u;
    c->t = m->t;
    c->x = fgi_leftovers_retain(m->x);
    atomic_init(&c->unit, atomic_load(&m->unit));
    atomic_init(&c->largest, atomic_load(&m->largest));
    atomic_fetch_add(&c->s->refs, 1);
    atomic_fetch_add(&c->u->refs, 1);
    atomic_fetch_add(&c->t->refs, 1);
    return c;
}

fgi_model *fgi_model_plain(const fgi_model *m) {
    fgi_model *c = fgi_model_snapshot(m);
    if (c) fgi_leftovers_release(c->x);
    if (c) c->x = NULL;
    return c;
}

int fgi_model_has_leftovers(const fgi_model *m) { return m->x != NULL; }

void fgi_model_take_leftovers(fgi_model *m, const fgi_model *from) {
    fgi_leftovers *before = m->x;
    m->x = fgi_leftovers_retain(from->x);
    fgi_leftovers_release(before);
}

void fgi_model_free(fgi_model *m) {
    if (!m) return;
    fgi_leftovers_release(m->x);
    tables_release(m->t, m->s->n_tables);
    unaries_release(m->u);
    structure_release(m->s);
    free(m);
}

fgi_model *fgi_model_reweighted(const fgi_model *m, const double *weight, const double *unary, double constant) {
    fgi_model_spec spec;
    fgi_structure *s = NULL;
    fgi_model_arrays(m, &spec);
    spec.factor_weight = weight;
    spec.constant = constant;
    fgi_model *c = fgi_calloc(1, sizeof *c);
    fgi_unaries *u = unaries_new(unary, m->s->unary_begin[m->s->n_vars]);
    if (!c || !u || build_structure(&spec, &s, NULL)) {
        unaries_release(u);
        free(c);
        return NULL;
    }
    c->s = s;
    c->u = u;
    c->t = m->t;
    atomic_fetch_add(&c->t->refs, 1);
    return c;
}

int fgi_model_same_structure(const fgi_model *a, const fgi_model *b) { return a->s == b->s; }

void fgi_model_arrays(const fgi_model *m, fgi_model_spec *out) {
    const fgi_structure *s = m->s;
    *out = (fgi_model_spec){
        .n_vars = s->n_vars,
        .cards = s->cards,
        .unary = m->u->values,
        .constant = s->constant,
        .n_tables = s->n_tables,
        .table_kind = s->table_kind,
        .table_arity = s->table_arity,
        .dims = s->dims,
        .params = s->params,
        .values = m->t->values,
        .n_values = s->values_begin[s->n_tables],
        .n_factors = s->n_factors,
        .factor_table = s->factor_table,
        .factor_weight = s->factor_weight,
        .factor_transposed = s->factor_transposed,
        .var_begin = s->var_begin,
        .vars = s->vars,
    };
    if (!m->x) return;
    out->n_leftovers = m->x->n;
    out->leftover_var = m->x->var;
    out->leftover = m->x->values;
    out->n_leftover_values = m->x->begin[m->x->n];
}

/* ---- new numbers -------------------------------------------------------------------------------------------- */

static int own_unaries(fgi_model *m) {
    if (atomic_load(&m->u->refs) == 1) return 1;
    fgi_unaries *u = unaries_new(m->u->values, m->s->unary_begin[m->s->n_vars]);
    if (!u) return 0;
    unaries_release(m->u);
    m->u = u;
    return 1;
}

/* Before potentials change. */
static void forget_magnitudes(fgi_model *m) {
    atomic_store(&m->unit, 0);
    atomic_store(&m->largest, 0);
}

/* The numbers are in order one by one. Where their sum could overflow, the old ones are put back. var: -1 for all. */
static fgi_rc put_unaries(fgi_model *m, int32_t var, int64_t at, const double *scores, int64_t n, fgi_error *err) {
    double largest = 0;
    fgi_leftovers *left = NULL;
    for (int64_t k = 0; k < n; k++)
        if (scores[k] > -INFINITY) largest = fgi_larger(largest, fabs(scores[k]));
    double *before = largest > FGI_MODEST ? fgi_copy(m->u->values + at, n, sizeof *before) : NULL;
    if ((largest > FGI_MODEST && !before) || !own_unaries(m) || fgi_leftovers_without(m->x, var, &left, err)) {
        free(before);
        return fgi_no_memory(err);
    }
    forget_magnitudes(m);
    if (n > 0) memcpy(m->u->values + at, scores, (size_t)n * sizeof *scores);
    fgi_rc rc = before ? fgi_model_check_sums(m, err) : FGI_OK;
    if (rc) memcpy(m->u->values + at, before, (size_t)n * sizeof *scores);
    free(before);
    fgi_leftovers_release(rc ? left : m->x);
    if (!rc) m->x = left;
    return rc;
}

fgi_rc fgi_model_set_unary(fgi_model *m, int32_t var, const double *scores, fgi_error *err) {
    if (var < 0 || var >= m->s->n_vars) return fgi_fail(err, FGI_BAD_ARGUMENT, var, "there is no variable %d", var);
    fgi_rc rc = check_scores(scores, m->s->cards[var], "variable", var, err);
    if (rc) return rc;
    return put_unaries(m, var, m->s->unary_begin[var], scores, m->s->cards[var], err);
}

/* Puts back what n variables had before. */
static void restore_unaries(fgi_model *m, int64_t n, const int32_t *vars, const double *before) {
    for (int64_t k = 0; k < n; before += m->s->cards[vars[k++]])
        memcpy(m->u->values + m->s->unary_begin[vars[k]], before, (size_t)m->s->cards[vars[k]] * sizeof *before);
}

fgi_rc fgi_model_set_some_unary(fgi_model *m, int64_t n, const int32_t *vars, const double *scores, fgi_error *err) {
    const double *at = scores;
    for (int64_t k = 0; k < n; at += m->s->cards[vars[k++]]) {
        if (vars[k] < 0 || vars[k] >= m->s->n_vars)
            return fgi_fail(err, FGI_BAD_ARGUMENT, vars[k], "there is no variable %d", vars[k]);
        const fgi_rc rc = check_scores(at, m->s->cards[vars[k]], "variable", vars[k], err);
        if (rc) return rc;
    }
    double *before = fgi_alloc(at - scores, sizeof *before), *to = before;
    fgi_leftovers *left = fgi_leftovers_retain(m->x);
    fgi_rc rc = before ? FGI_OK : fgi_no_memory(err);
    for (int64_t k = 0; !rc && k < n; to += m->s->cards[vars[k++]])
        memcpy(to, fgi_unary(m, vars[k]), (size_t)m->s->cards[vars[k]] * sizeof *to);
    for (int64_t k = 0; !rc && k < n; scores += m->s->cards[vars[k++]]) {
        rc = put_unaries(m, vars[k], m->s->unary_begin[vars[k]], scores, m->s->cards[vars[k]], err);
        if (!rc) continue;
        restore_unaries(m, k, vars, before);
        fgi_leftovers_release(m->x);
        m->x = fgi_leftovers_retain(left);
    }
    fgi_leftovers_release(left);
    free(before);
    return rc;
}

fgi_rc fgi_model_set_all_unary(fgi_model *m, const double *scores, fgi_error *err) {
    for (int64_t i = 0; i < m->s->n_vars; i++) {
        fgi_rc rc = check_scores(scores + m->s->unary_begin[i], m->s->cards[i], "variable", i, err);
        if (rc) return rc;
    }
    return put_unaries(m, -1, 0, scores, m->s->unary_begin[m->s->n_vars], err);
}

fgi_rc fgi_model_set_table(fgi_model *m, int32_t table, const double *values, fgi_error *err) {
    const fgi_structure *s = m->s;
    if (table < 0 || table >= s->n_tables || s->table_kind[table] != FGI_DENSE)
        return fgi_fail(err, FGI_BAD_ARGUMENT, table, "there is no dense table %d", table);
    int64_t n = s->values_begin[table + 1] - s->values_begin[table];
    fgi_rc rc = check_scores(values, n, "table", table, err);
    if (rc) return rc;
    const fgi_table_facts facts = dense_facts(s, table, values);
    if (weight_overflows(s->max_weight, &facts))
        return fgi_fail(
            err, FGI_BAD_MODEL, table, "table %d: its scores overflow when weighted by up to %g", table, s->max_weight);
    if (atomic_load(&m->t->refs) != 1) {
        fgi_tables *t = tables_new(s, m->t->values, m->t->facts, m->t);
        if (!t) return fgi_no_memory(err);
        tables_release(m->t, s->n_tables);
        m->t = t;
    }
    const fgi_table_facts before = m->t->facts[table];
    put_facts(m->t, table, facts);
    const double largest = s->max_weight * fgi_larger(fabs(facts.max), fabs(facts.min_finite));
    if (facts.max > -INFINITY && largest > FGI_MODEST && (rc = fgi_model_check_sums(m, err))) {
        m->t->facts[table] = before;
        return rc;
    }
    forget_magnitudes(m);
    memcpy(m->t->values + s->values_begin[table], values, (size_t)n * sizeof *values);
    fgi_sorted_release(atomic_exchange(&m->t->order[table], NULL));
    return FGI_OK;
}

fgi_rc fgi_model_set_tables(fgi_model *m, int64_t n, const int32_t *tables, const double *values, fgi_error *err) {
    for (int64_t k = 0; k < n; k++) {
        const fgi_rc rc = fgi_model_set_table(m, tables[k], values, err);
        if (rc) return rc;
        values += m->s->values_begin[tables[k] + 1] - m->s->values_begin[tables[k]];
    }
    return FGI_OK;
}
