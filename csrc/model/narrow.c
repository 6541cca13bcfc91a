/* model/narrow.c - the model with only those labels of each variable that promise most.
 *
 * Half of them score best beside a given labeling, half by themselves. A labeling of the narrow model is one of the
 * whole, with the same score; its bounds are none of the whole. Tables shrink to the labels that are kept, and are no
 * longer shared unless all are. */
#include <math.h>
#include <string.h>
#include "base/arena.h"
#include "base/util.h"
#include "model/draft.h"

typedef struct narrowing {
    const fgi_model *m;
    const int32_t *labels; /* labels of the given labeling */
    int32_t most;
    int32_t *kept, *n;  /* per variable: `most` labels, ascending; how many */
    double *beside;     /* per label of all variables: its score beside the labeling */
    uint8_t *taken;     /* per label of one variable */
    int32_t *best;      /* the best labels of one variable so far, in their order */
    int32_t *at, *same; /* about one factor: places in the lists of its variables; numbers of variables */
    fgi_draft draft;
    fgi_arena arena;
} narrowing;

/* ---- which labels ------------------------------------------------------------------------------------------- */

static void add_beside(narrowing *r, int64_t f) {
    const fgi_structure *s = r->m->s;
    const fgi_view v = fgi_factor_view(r->m, f);
    for (int32_t k = 0; k < v.arity; k++) {
        const int32_t i = v.vars[k], card = s->cards[i];
        double *score = r->beside + s->unary_begin[i];
        if (v.arity == 2) {
            const int32_t other = r->labels[v.vars[1 - k]];
            for (int32_t a = 0; a < card; a++) score[a] += k ? fgi_view_at2(&v, other, a) : fgi_view_at2(&v, a, other);
            continue;
        }
        int64_t at = 0, stride = 0;
        for (int32_t q = 0; q < v.arity; q++) {
            const int32_t size = s->cards[v.vars[q]];
            at = at * size + (q == k ? 0 : r->labels[v.vars[q]]);
            stride = q == k ? 1 : stride * size;
        }
        for (int32_t a = 0; a < card; a++) score[a] += v.weight * v.values[at + a * stride];
    }
}

/* Takes the `most` labels with the largest scores, out of those not taken; ties go to the first. */
static void take_best(narrowing *r, const double *score, int32_t card, int32_t most) {
    int32_t have = 0;
    for (int32_t a = 0; a < card && most > 0; a++) {
        if (r->taken[a] || (have == most && !(score[a] > score[r->best[have - 1]]))) continue;
        int32_t k = have < most ? have++ : most - 1;
        for (; k > 0 && score[r->best[k - 1]] < score[a]; k--) r->best[k] = r->best[k - 1];
        r->best[k] = a;
    }
    for (int32_t k = 0; k < have; k++) r->taken[r->best[k]] = 1;
}

static void choose(narrowing *r, int64_t i) {
    const fgi_structure *s = r->m->s;
    const int32_t card = s->cards[i], half = r->most / 2;
    int32_t *kept = r->kept + i * r->most;
    memset(r->taken, card <= r->most, (size_t)card);
    if (card > r->most) {
        r->taken[r->labels[i]] = 1;
        take_best(r, r->beside + s->unary_begin[i], card, half);
        take_best(r, fgi_unary(r->m, i), card, r->most - 1 - half);
    }
    for (int32_t a = 0; a < card; a++)
        if (r->taken[a]) kept[r->n[i]++] = a;
    for (int32_t k = r->n[i]; k < r->most; k++) kept[k] = -1;
}

/* ---- their model -------------------------------------------------------------------------------------------- */

static void add_variable(narrowing *r, int64_t i) {
    const int32_t *kept = r->kept + i * r->most, var = fgi_draft_variable(&r->draft, r->n[i], fgi_unary(r->m, i));
    for (int32_t k = 0; var >= 0 && k < r->n[i]; k++) fgi_draft_unary(&r->draft, var)[k] = fgi_unary(r->m, i)[kept[k]];
}

static void copy_pair(const narrowing *r, const fgi_view *v, double *out) {
    const int32_t *rows = r->kept + (int64_t)v->vars[0] * r->most, *cols = r->kept + (int64_t)v->vars[1] * r->most;
    fgi_view plain = *v;
    plain.weight = 1;
    for (int32_t a = 0; a < r->n[v->vars[0]]; a++)
        for (int32_t b = 0; b < r->n[v->vars[1]]; b++) *out++ = fgi_view_at2(&plain, rows[a], cols[b]);
}

/* The places in the lists are counted up like an odometer. */
static void copy_entries(const narrowing *r, const fgi_view *v, double *out) {
    const int32_t *cards = r->m->s->cards;
    for (int32_t k = 0; k < v->arity; k++) r->at[k] = 0;
    for (int32_t k = v->arity - 1; k >= 0;) {
        int64_t flat = 0;
        for (int32_t q = 0; q < v->arity; q++)
            flat = flat * cards[v->vars[q]] + r->kept[(int64_t)v->vars[q] * r->most + r->at[q]];
        *out++ = v->values[flat];
        for (k = v->arity - 1; k >= 0 && ++r->at[k] == r->n[v->vars[k]]; k--) r->at[k] = 0;
    }
}

static void add_factor(narrowing *r, int64_t f) {
    const fgi_view v = fgi_factor_view(r->m, f);
    int whole = 1;
    double *values;
    for (int32_t k = 0; k < v.arity; k++) {
        whole &= r->n[v.vars[k]] == r->m->s->cards[v.vars[k]];
        r->at[k] = r->n[v.vars[k]];
    }
    if (whole) {
        fgi_draft_copy_factor(&r->draft, f, r->same);
        return;
    }
    const int32_t table = fgi_draft_dense(&r->draft, v.arity, r->at, &values);
    if (table < 0) return;
    if (v.arity == 2) copy_pair(r, &v, values);
    else copy_entries(r, &v, values);
    fgi_draft_factor(&r->draft, table, v.weight, 0, v.arity, v.vars, NULL);
}

fgi_rc fgi_model_narrow(
    const fgi_model *m, const int32_t *labels, int32_t most, fgi_model **out, int32_t *kept, fgi_error *err) {
    const fgi_structure *s = m->s;
    if (most < 2) return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "at least two labels a variable are kept");
    for (int64_t i = 0; i < s->n_vars; i++)
        if (labels[i] < 0 || labels[i] >= s->cards[i])
            return fgi_fail(err, FGI_BAD_ARGUMENT, i, "label %d of variable %lld is out of range 0..%d", labels[i],
                (long long)i, s->cards[i] - 1);
    narrowing r = {.m = m, .labels = labels, .most = most, .kept = kept};
    r.n = fgi_take_zero(&r.arena, s->n_vars, int32_t);
    r.same = fgi_take(&r.arena, s->n_vars, int32_t);
    r.beside = fgi_arena_copy(&r.arena, m->u->values, s->unary_begin[s->n_vars], sizeof *r.beside);
    r.taken = fgi_take(&r.arena, s->max_card, uint8_t);
    r.best = fgi_take(&r.arena, most, int32_t);
    r.at = fgi_take(&r.arena, s->max_arity, int32_t);
    if (r.arena.failed) {
        fgi_arena_free(&r.arena);
        return fgi_no_memory(err);
    }
    fgi_draft_begin(&r.draft, m);
    for (int64_t f = 0; f < s->n_factors; f++) add_beside(&r, f);
    for (int64_t i = 0; i < s->n_vars; i++) {
        r.same[i] = (int32_t)i;
        choose(&r, i);
        add_variable(&r, i);
    }
    for (int64_t f = 0; f < s->n_factors; f++) add_factor(&r, f);
    const fgi_rc rc = fgi_draft_finish(&r.draft, s->constant, out, err);
    fgi_draft_free(&r.draft);
    fgi_arena_free(&r.arena);
    return rc;
}
