/* exact/presolve_differ.c - variables that must all differ: what their pairwise constraints say together.
 *
 * Two variables differ if a factor forbids every label they share. Among variables that differ pairwise (a clique,
 * found greedily) labels are a matching: there is no labeling if they cannot be matched, and a label that is in no
 * matching of all of them can go (Regin 1994). Propagation of single factors sees neither: eleven pigeons find room in
 * ten holes until the last is to be placed. */
#include <string.h>
#include "exact/presolve.h"

enum {
    MOST_VARIABLES = 4096, /* a bit for each pair of them */
    LEAST_CLIQUE = 3,      /* variables: what two say, propagation sees */
    MOST_PASSES = 4        /* passes of one presolve, since each may cost a matching a label */
};

typedef struct differ {
    ps_work *w;
    int64_t words;         /* words in a row of bits */
    uint64_t *differs;     /* a bit per pair of variables: their labels must differ */
    uint64_t *covered;     /* the pairs that a clique has had */
    int32_t *clique, size; /* variables */
    int32_t n_labels;      /* most labels of a variable of the original model */
    int32_t *owner;        /* per label: place in the clique of the variable that has it, -1: none */
    int32_t *taken;        /* per place: its label */
    int32_t *saved;        /* both, while a label is tried */
    uint8_t *seen;         /* per label, in one search */
} differ;

static int has_bit(const uint64_t *rows, int64_t words, int64_t i, int64_t j) {
    return (int)(rows[i * words + (j >> 6)] >> (j & 63) & 1);
}

static void set_bits(uint64_t *rows, int64_t words, int64_t i, int64_t j) {
    rows[i * words + (j >> 6)] |= (uint64_t)1 << (j & 63);
    rows[j * words + (i >> 6)] |= (uint64_t)1 << (i & 63);
}

static int32_t original(const ps_var *v, int32_t a) { return v->label ? v->label[a] : a; }
static int is_live(const ps_var *v, int32_t a) { return v->unary[a] > -INFINITY; }

/* Does the factor forbid every label that both of its variables have? Label maps ascend. */
static int forbids_equal(ps_work *w, const ps_factor *f) {
    const ps_var *x = &w->vars[f->vars[0]], *y = &w->vars[f->vars[1]];
    int32_t shared = 0;
    ps_spend(w, x->card + y->card);
    for (int32_t a = 0, b = 0; a < x->card && b < y->card;) {
        const int32_t one = original(x, a), other = original(y, b);
        if (one == other && is_live(x, a) && is_live(y, b)) {
            if (ps_at2(w, f, a, b) > -INFINITY) return 0;
            shared++;
        }
        a += one <= other;
        b += other <= one;
    }
    return shared > 0;
}

static int64_t find_pairs(differ *d) {
    ps_work *w = d->w;
    int64_t n = 0;
    for (int64_t k = 0; k < w->n_factors && !w->stop; k++) {
        const ps_factor *f = &w->factors[k];
        if (f->arity != 2 || !f->forbidden || !forbids_equal(w, f)) continue;
        set_bits(d->differs, d->words, f->vars[0], f->vars[1]);
        n++;
    }
    return n;
}

/* The clique of a pair: every later or earlier variable that differs from all in it, the nearest first. */
static void grow_clique(differ *d, int32_t i, int32_t j) {
    d->size = 2;
    d->clique[0] = i;
    d->clique[1] = j;
    for (int32_t step = 1; step < d->w->n_vars; step++) {
        const int32_t k = (int32_t)((j + step) % d->w->n_vars);
        int32_t at = 0;
        while (at < d->size && has_bit(d->differs, d->words, k, d->clique[at])) at++;
        if (at == d->size) d->clique[d->size++] = k;
        ps_spend(d->w, at + 1);
    }
    for (int32_t a = 0; a < d->size; a++)
        for (int32_t b = 0; b < a; b++) set_bits(d->covered, d->words, d->clique[a], d->clique[b]);
}

/* ---- matchings -------------------------------------------------------------------------------------------------- */

/* Gives the variable at a place a label that has not been seen in this search; others move. The depth is at most the
 * size of the clique. */
static int place(differ *d, int32_t at) {
    const ps_var *v = &d->w->vars[d->clique[at]];
    for (int32_t a = 0; a < v->card; a++) {
        const int32_t label = original(v, a);
        if (!is_live(v, a) || d->seen[label]) continue;
        d->seen[label] = 1;
        if (d->owner[label] < 0 || place(d, d->owner[label])) {
            d->owner[label] = at;
            d->taken[at] = label;
            return 1;
        }
    }
    ps_spend(d->w, v->card);
    return 0;
}

static int match_all(differ *d) {
    memset(d->owner, -1, (size_t)d->n_labels * sizeof *d->owner);
    for (int32_t at = 0; at < d->size; at++) {
        memset(d->seen, 0, (size_t)d->n_labels);
        if (!place(d, at)) return 0;
    }
    return 1;
}

/* Is there a matching of all in which this variable has this label? The one at hand may change to it. */
static int is_possible(differ *d, int32_t at, int32_t label) {
    if (d->taken[at] == label) return 1;
    const int32_t other = d->owner[label], had = d->taken[at];
    memcpy(d->saved, d->owner, (size_t)d->n_labels * sizeof *d->owner);
    memcpy(d->saved + d->n_labels, d->taken, (size_t)d->size * sizeof *d->taken);
    d->owner[had] = -1;
    d->owner[label] = at;
    d->taken[at] = label;
    memset(d->seen, 0, (size_t)d->n_labels);
    d->seen[label] = 1;
    if (other < 0 || place(d, other)) return 1;
    memcpy(d->owner, d->saved, (size_t)d->n_labels * sizeof *d->owner);
    memcpy(d->taken, d->saved + d->n_labels, (size_t)d->size * sizeof *d->taken);
    return 0;
}

static int64_t prune(differ *d) {
    int64_t removed = 0;
    for (int32_t at = 0; at < d->size && !d->w->stop && !d->w->infeasible; at++) {
        const int32_t var = d->clique[at], before = d->w->vars[var].live;
        for (int32_t a = 0; a < d->w->vars[var].card; a++) {
            const ps_var *v = &d->w->vars[var];
            if (!is_live(v, a) || is_possible(d, at, original(v, a))) continue;
            ps_remove_label(d->w, var, a);
            removed++;
        }
        if (d->w->vars[var].live < before) ps_wake_var(d->w, var);
    }
    return removed;
}

static int64_t look_at_cliques(differ *d) {
    ps_work *w = d->w;
    int64_t removed = 0;
    for (int32_t i = 0; i < w->n_vars; i++)
        for (int32_t j = i + 1; j < w->n_vars && !w->stop && !w->infeasible; j++) {
            if (!has_bit(d->differs, d->words, i, j) || has_bit(d->covered, d->words, i, j)) continue;
            grow_clique(d, i, j);
            if (d->size < LEAST_CLIQUE) continue;
            if (!match_all(d)) w->infeasible = 1;
            else removed += prune(d);
        }
    return removed;
}

int64_t ps_differ(ps_work *w) {
    const int32_t n = w->n_vars;
    if (n > MOST_VARIABLES || w->differ_passes >= MOST_PASSES) return 0;
    w->differ_passes++;
    differ d = {.w = w, .words = (n + 63) / 64, .n_labels = w->m->s->max_card};
    d.differs = fgi_calloc(n * d.words, sizeof *d.differs);
    d.covered = fgi_calloc(n * d.words, sizeof *d.covered);
    d.clique = fgi_alloc(2 * (int64_t)n, sizeof *d.clique);
    d.owner = fgi_alloc(2 * (int64_t)d.n_labels + n, sizeof *d.owner);
    d.seen = fgi_alloc(d.n_labels, sizeof *d.seen);
    int64_t removed = 0;
    if (d.differs && d.covered && d.clique && d.owner && d.seen) {
        d.taken = d.clique + n;
        d.saved = d.owner + d.n_labels;
        if (find_pairs(&d) >= LEAST_CLIQUE) removed = look_at_cliques(&d);
    } else {
        w->failure = FGI_NO_MEMORY;
    }
    free(d.differs);
    free(d.covered);
    free(d.clique);
    free(d.owner);
    free(d.seen);
    return removed;
}
