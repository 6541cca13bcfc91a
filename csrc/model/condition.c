/* model/condition.c - the model that is left when some variables are fixed.
 *
 * Free variables keep their order. A factor with no free variable becomes part of the constant, one with a single free
 * variable part of its unary scores, and one that loses some of three or more variables reads a slice of its table.
 * Slices are made once per (table, fixed positions, fixed labels), so what was shared stays shared. */
#include <string.h>
#include "base/arena.h"
#include "base/array.h"
#include "base/util.h"
#include "model/draft.h"

/* A table of the new model that is a part of an old one: where factor `origin` reads it. */
typedef struct slice {
    int64_t origin;
    int32_t table;
} slice;

typedef struct reduction {
    const fgi_model *m;
    fgi_draft draft;
    int32_t *fixed;     /* label of a fixed variable, -1 for a free one */
    int32_t *index;     /* new number of a free variable */
    int32_t *labels;    /* labels of all variables: the fixed ones at theirs */
    int32_t *free, *at; /* about one factor: its free variables, or their label counts; the labels of all of them */
    slice *slices;
    int64_t n_slices, slice_capacity;
    int64_t *hash;     /* open addressing over slices: number + 1, or 0 */
    int64_t hash_size; /* a power of two; 0: none yet */
    fgi_folding folding;
    double *scores; /* scores of the labels of one variable */
    fgi_arena arena;
} reduction;

static fgi_rc fix_variables(reduction *r, int64_t n, const int32_t *vars, const int32_t *labels, fgi_error *err) {
    const fgi_structure *s = r->m->s;
    for (int64_t i = 0; i < s->n_vars; i++) r->fixed[i] = -1;
    for (int64_t k = 0; k < n; k++) {
        int32_t i = vars[k];
        if (i < 0 || i >= s->n_vars)
            return fgi_fail(
                err, FGI_BAD_ARGUMENT, k, "evidence for variable %d; there are %lld", i, (long long)s->n_vars);
        if (labels[k] < 0 || labels[k] >= s->cards[i])
            return fgi_fail(err, FGI_BAD_ARGUMENT, k, "evidence gives variable %d label %d, out of range 0..%d", i,
                labels[k], s->cards[i] - 1);
        if (r->fixed[i] >= 0 && r->fixed[i] != labels[k])
            return fgi_fail(err, FGI_BAD_ARGUMENT, k, "evidence gives variable %d both label %d and label %d", i,
                r->fixed[i], labels[k]);
        r->fixed[i] = labels[k];
    }
    return FGI_OK;
}

static int32_t n_free_of(const reduction *r, int64_t f) {
    fgi_assert(f >= 0);
    const int32_t *vars = fgi_factor_vars(r->m->s, f);
    int32_t n = 0;
    for (int32_t k = 0; k < fgi_factor_arity(r->m->s, f); k++) n += r->fixed[vars[k]] < 0;
    return n;
}

/* ---- which tables the new model has ------------------------------------------------------------------------- */

static uint64_t slice_hash(const reduction *r, int64_t f) {
    const fgi_structure *s = r->m->s;
    const int32_t *vars = fgi_factor_vars(s, f);
    fgi_rng mix = {(uint64_t)s->factor_table[f]};
    for (int32_t k = 0; k < fgi_factor_arity(s, f); k++)
        mix.state = fgi_rng_next(&mix) ^ (uint64_t)(r->fixed[vars[k]] + 1);
    return fgi_rng_next(&mix);
}

static int same_slice(const reduction *r, int64_t f, int64_t g) {
    const fgi_structure *s = r->m->s;
    if (s->factor_table[f] != s->factor_table[g]) return 0;
    const int32_t *a = fgi_factor_vars(s, f), *b = fgi_factor_vars(s, g);
    for (int32_t k = 0; k < fgi_factor_arity(s, f); k++)
        if (r->fixed[a[k]] != r->fixed[b[k]]) return 0;
    return 1;
}

/* ---- numbers ------------------------------------------------------------------------------------------------ */

/* The entries of factor f's table that agree with the fixed labels, last free variable fastest. `at` is scratch for the
 * labels of all its variables, counted up like an odometer whose fixed wheels do not turn. */
static void copy_slice(const reduction *r, int64_t f, double *out, int32_t *at) {
    fgi_view v = fgi_factor_view(r->m, f);
    const int32_t *cards = r->m->s->cards;
    for (int32_t k = 0; k < v.arity; k++) at[k] = r->fixed[v.vars[k]] >= 0 ? r->fixed[v.vars[k]] : 0;
    for (;;) {
        int64_t flat = 0;
        for (int32_t k = 0; k < v.arity; k++) flat = flat * cards[v.vars[k]] + at[k];
        *out++ = v.values[flat];
        int32_t k = v.arity - 1;
        for (; k >= 0; k--) {
            if (r->fixed[v.vars[k]] >= 0) continue;
            if (++at[k] < cards[v.vars[k]]) break;
            at[k] = 0;
        }
        if (k < 0) return;
    }
}

/* Room for one more slice in a hash table that is at most half full. */
static int reserve_slice(reduction *r) {
    if (!fgi_grow(&r->slices, &r->slice_capacity, r->n_slices + 1, sizeof *r->slices)) return 0;
    if (2 * (r->n_slices + 1) <= r->hash_size) return 1;
    const int64_t size = r->hash_size ? 2 * r->hash_size : 16;
    if (!fgi_resize(&r->hash, size, sizeof *r->hash)) return 0;
    memset(r->hash, 0, (size_t)size * sizeof *r->hash);
    r->hash_size = size;
    for (int64_t k = 0; k < r->n_slices; k++) {
        uint64_t at = slice_hash(r, r->slices[k].origin) & (uint64_t)(size - 1);
        while (r->hash[at] != 0) at = (at + 1) & (uint64_t)(size - 1);
        r->hash[at] = k + 1;
    }
    return 1;
}

/* The new number of the part of its table that factor f will read; -1: no memory. */
static int32_t slice_of(reduction *r, int64_t f) {
    if (!reserve_slice(r)) return -1;
    uint64_t at = slice_hash(r, f) & (uint64_t)(r->hash_size - 1);
    for (; r->hash[at] != 0; at = (at + 1) & (uint64_t)(r->hash_size - 1)) {
        const slice *known = &r->slices[r->hash[at] - 1];
        if (same_slice(r, f, known->origin)) return known->table;
    }
    const int32_t *vars = fgi_factor_vars(r->m->s, f);
    int32_t n = 0;
    for (int32_t k = 0; k < fgi_factor_arity(r->m->s, f); k++)
        if (r->fixed[vars[k]] < 0) r->free[n++] = r->m->s->cards[vars[k]];
    double *values;
    const int32_t table = fgi_draft_dense(&r->draft, n, r->free, &values);
    if (table < 0) return -1;
    copy_slice(r, f, values, r->at);
    r->slices[r->n_slices++] = (slice){f, table};
    r->hash[at] = r->n_slices;
    return table;
}

/* Folds a factor with one free variable into the unary scores, or one with none into the constant. */
static void fold(reduction *r, int64_t f) {
    fgi_view v = fgi_factor_view(r->m, f);
    int32_t var = -1;
    for (int32_t k = 0; k < v.arity; k++)
        if (r->fixed[v.vars[k]] < 0) var = v.vars[k];
    if (var < 0) {
        fgi_folding_add_constant(&r->folding, fgi_view_score(r->m, &v, r->labels));
        return;
    }
    const int32_t card = r->m->s->cards[var];
    for (int32_t a = 0; a < card; a++) {
        r->labels[var] = a;
        r->scores[a] = fgi_view_score(r->m, &v, r->labels);
    }
    if (!fgi_folding_add(&r->folding, r->index[var], card, r->scores)) r->draft.failed = 1;
}

/* What rounding took before is folded like all else. */
static void fold_leftovers(reduction *r) {
    const fgi_leftovers *x = r->m->x;
    for (int64_t k = 0; x && k < x->n && !r->draft.failed; k++) {
        const int32_t var = x->var[k];
        const double *row = x->values + x->begin[k];
        if (var < 0) fgi_folding_add_constant(&r->folding, row[0]);
        else if (r->fixed[var] >= 0) fgi_folding_add_constant(&r->folding, row[r->fixed[var]]);
        else if (!fgi_folding_add(&r->folding, r->index[var], r->m->s->cards[var], row)) r->draft.failed = 1;
    }
}

static void reduce_factor(reduction *r, int64_t f) {
    const fgi_structure *s = r->m->s;
    const int32_t n = n_free_of(r, f), *vars = fgi_factor_vars(s, f);
    if (r->draft.failed) return;
    if (n < 2) {
        fold(r, f);
    } else if (n == fgi_factor_arity(s, f)) {
        fgi_draft_copy_factor(&r->draft, f, r->index);
    } else {
        const int32_t table = slice_of(r, f);
        int32_t at = 0;
        for (int32_t k = 0; k < fgi_factor_arity(s, f); k++)
            if (r->fixed[vars[k]] < 0) r->free[at++] = vars[k];
        if (table < 0) r->draft.failed = 1;
        fgi_draft_factor(&r->draft, table, fgi_factor_weight(s, f), 0, n, r->free, r->index);
    }
}

fgi_rc fgi_model_condition(
    const fgi_model *m, int64_t n, const int32_t *vars, const int32_t *labels, fgi_model **out, fgi_error *err) {
    const fgi_structure *s = m->s;
    reduction r = {.m = m};
    r.fixed = fgi_take(&r.arena, s->n_vars, int32_t);
    r.index = fgi_take(&r.arena, s->n_vars, int32_t);
    r.labels = fgi_take_zero(&r.arena, s->n_vars, int32_t);
    r.free = fgi_take(&r.arena, s->max_arity, int32_t);
    r.at = fgi_take(&r.arena, s->max_arity, int32_t);
    r.scores = fgi_take(&r.arena, s->max_card, double);
    fgi_draft_begin(&r.draft, m);
    fgi_rc rc = r.arena.failed ? fgi_no_memory(err) : fix_variables(&r, n, vars, labels, err);
    if (!rc) {
        double constant;
        fgi_folding_add_constant(&r.folding, s->constant);
        for (int64_t i = 0; i < s->n_vars; i++) {
            if (r.fixed[i] < 0) {
                r.index[i] = fgi_draft_variable(&r.draft, s->cards[i], fgi_unary(m, i));
            } else {
                r.labels[i] = r.fixed[i];
                fgi_folding_add_constant(&r.folding, fgi_unary(m, i)[r.fixed[i]]);
            }
        }
        for (int64_t f = 0; f < s->n_factors; f++) reduce_factor(&r, f);
        fold_leftovers(&r);
        const fgi_draft *d = &r.draft;
        rc = fgi_folding_finish(&r.folding, d->cards, d->unary_begin, d->unary, &constant, err);
        r.draft.folded = &r.folding;
        if (!rc) rc = fgi_draft_finish(&r.draft, constant, out, err);
    }
    fgi_draft_free(&r.draft);
    fgi_folding_free(&r.folding);
    fgi_arena_free(&r.arena);
    free(r.slices);
    free(r.hash);
    return rc;
}
