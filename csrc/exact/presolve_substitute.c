/* exact/presolve_substitute.c - variables whose label is a function of another's.
 *
 * A pairwise factor that leaves, for every label of x, a single label g(x) of y allows y to be written as g(x) in every
 * other factor: y goes, and what it scored becomes a part of x. Frequencies a fixed distance apart, copies of a
 * variable and permuted ones come this way; half of the variables of CELAR instances go. */
#include <string.h>
#include "exact/presolve.h"

/* Entries that tables may grow by all the same: 2 KB, no pass notices them. 128 and 512: the same on 68 models. */
enum { LITTLE = 256 };

static int is_live(const ps_var *v, int32_t a) { return v->unary[a] > -INFINITY; }

static double at_labels(const ps_work *w, const ps_factor *f, int slot, int32_t a, int32_t b) {
    return slot == 0 ? ps_at2(w, f, a, b) : ps_at2(w, f, b, a);
}

/* The label that the other variable must have if the one at `slot` has label a; -1: it has a choice, or none at all. */
static int32_t only_label(ps_work *w, const ps_factor *f, int slot, int32_t a) {
    const ps_var *y = &w->vars[f->vars[1 - slot]];
    int32_t only = -1;
    ps_spend(w, y->card);
    for (int32_t b = 0; b < y->card; b++) {
        if (!is_live(y, b) || at_labels(w, f, slot, a, b) == -INFINITY) continue;
        if (only >= 0) return -1;
        only = b;
    }
    return only;
}

static int is_function(ps_work *w, const ps_factor *f, int slot) {
    const ps_var *x = &w->vars[f->vars[slot]];
    for (int32_t a = 0; a < x->card; a++)
        if (is_live(x, a) && only_label(w, f, slot, a) < 0) return 0;
    return 1;
}

/* Entries of the other factors of y once it is replaced by x, less those that go. */
static double growth(const ps_work *w, int32_t of, int32_t x, int32_t y, double *rewritten) {
    const ps_var *v = &w->vars[y];
    double before = 0;
    *rewritten = 0;
    for (int32_t k = 0; k < v->n_factors; k++) {
        const ps_factor *h = &w->factors[v->factors[k]];
        before += (double)ps_states(w, h);
        if (v->factors[k] == of) continue;
        *rewritten += (double)ps_states(w, h) / v->card * (ps_slot(h, x) >= 0 ? 1 : w->vars[x].card);
    }
    return *rewritten - before;
}

/* A factor with y replaced by x, as a new factor. */
static void rewrite(ps_work *w, int32_t at, int32_t x, int32_t y, const int32_t *image) {
    const ps_factor f = w->factors[at];
    const int both = ps_slot(&f, x) >= 0;
    const int32_t n = f.arity - both;
    int64_t strides[f.arity], size = 1;
    int32_t digit[f.arity], *vars = ps_alloc(w, n, sizeof(int32_t)), m = 0, at_x = 0;
    if (!vars) return;
    for (int32_t k = 0; k < f.arity; k++) {
        if (f.vars[k] == y && both) continue;
        digit[m] = 0;
        vars[m] = f.vars[k] == y ? x : f.vars[k];
        if (vars[m] == x) at_x = m;
        size *= w->vars[vars[m++]].card;
    }
    double *table = ps_scratch(w, ps_states(w, &f)), *values = ps_alloc(w, size, sizeof(double));
    if (!table || !values) return;
    ps_expand_table(w, &f, table);
    int64_t stride = 1;
    for (int32_t k = f.arity; k-- > 0; stride *= w->vars[f.vars[k]].card) strides[k] = stride;
    for (int64_t out = 0; out < size; out++) {
        int64_t in = 0;
        for (int32_t k = 0, l = 0; k < f.arity; k++) {
            if (f.vars[k] == y) in += strides[k] * image[digit[at_x]];
            else in += strides[k] * digit[l];
            l += !(f.vars[k] == y && both);
        }
        values[out] = table[in];
        for (int32_t k = n - 1; k >= 0 && ++digit[k] == w->vars[vars[k]].card; k--) digit[k] = 0;
    }
    ps_spend(w, 3.0 * (double)size);
    ps_kill(w, at);
    ps_add_factor(w, vars, n, values, f.depth);
}

/* The other variable of factor `of` becomes a function of the one at `slot`. */
static void substitute(ps_work *w, int32_t of, int slot) {
    const ps_factor f = w->factors[of];
    const int32_t x = f.vars[slot], y = f.vars[1 - slot], n = w->vars[y].n_factors;
    const ps_var *v = &w->vars[y];
    double *scores = ps_alloc(w, w->vars[x].card, sizeof(double));
    int32_t *image = ps_alloc(w, w->vars[x].card, sizeof(int32_t));
    if (!scores || !image || !ps_record_var(w, y, &of, 1)) return;
    for (int32_t a = 0; a < w->vars[x].card; a++) {
        const int live = is_live(&w->vars[x], a);
        image[a] = live ? only_label(w, &f, slot, a) : 0;
        scores[a] = live ? at_labels(w, &f, slot, a, image[a]) + v->unary[image[a]] : 0;
    }
    ps_kill(w, of);
    ps_add_unary(w, x, scores, 1 + (f.depth > v->depth ? f.depth : v->depth));
    for (int32_t k = 0; k < n && !w->failure; k++)
        if (v->factors[k] != of) rewrite(w, v->factors[k], x, y, image);
    ps_wake_var(w, x);
}

/* The cheaper way round, if one pays. */
static int substitute_by(ps_work *w, int32_t of) {
    const ps_factor *f = &w->factors[of];
    int best = -1;
    double least = LITTLE;
    for (int slot = 0; slot < 2; slot++) {
        const int32_t x = f->vars[slot], y = f->vars[1 - slot];
        double rewritten;
        ps_tidy(w, y);
        const double more = growth(w, of, x, y, &rewritten);
        if (more > least || (best >= 0 && more == least) || !ps_affords(w, rewritten)) continue;
        if (!is_function(w, f, slot)) continue;
        best = slot;
        least = more;
    }
    if (best < 0) return 0;
    substitute(w, of, best);
    return !w->failure;
}

int64_t ps_substitute(ps_work *w) {
    int64_t count = 0;
    for (int64_t f = 0; f < w->n_factors && !w->stop && !w->infeasible && !w->failure; f++) {
        ps_factor *at = &w->factors[f];
        if (!(at->todo & PS_SUBSTITUTE)) continue;
        at->todo &= (uint8_t)~PS_SUBSTITUTE;
        if (at->arity == 2 && at->forbidden) count += substitute_by(w, (int32_t)f);
    }
    w->info.substituted += count;
    return count;
}
