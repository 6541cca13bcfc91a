/* exact/symmetry.c - labels that can be renamed: see exact/costs.h.
 *
 * If every table stays the same under every renaming of the labels, the first variable of any order may be taken to
 * have label 0, the second 0 or 1, and so on: the first label in that order that is new is the lowest that is left.
 * It is the scores that are compared: beside large penalties whole-number costs may be the same where scores are not,
 * and a labeling that is left out would not be as good as the one that stands for it. */
#include "exact/costs.h"
#include "base/util.h"

/* Labels 0 and 1 change places, or each goes one up: these two make all renamings. */
static int32_t rename_label(int32_t a, int32_t k, int upwards) {
    if (upwards) return (a + 1) % k;
    return a < 2 ? 1 - a : a;
}

/* Is the factor's table the same when all its labels are renamed? `labels`: of all variables, as scratch. */
static int is_invariant(const fgi_model *m, int64_t f, int32_t k, int upwards, int32_t *labels) {
    const fgi_view v = fgi_factor_view(m, f);
    int64_t states = 1;
    for (int32_t j = 0; j < v.arity; j++) states *= k;
    for (int64_t state = 0; state < states; state++) {
        int64_t left = state;
        for (int32_t j = 0; j < v.arity; j++, left /= k) labels[v.vars[j]] = (int32_t)(left % k);
        const double score = fgi_view_score(m, &v, labels);
        for (int32_t j = 0; j < v.arity; j++) labels[v.vars[j]] = rename_label(labels[v.vars[j]], k, upwards);
        if (fgi_view_score(m, &v, labels) != score) return 0;
    }
    return 1;
}

static int labels_are_alike(const fgi_model *m) {
    const fgi_structure *s = m->s;
    const int32_t k = s->n_vars > 0 ? s->cards[0] : 0;
    if (k < 2) return 0;
    for (int64_t i = 0; i < s->n_vars; i++) {
        const double *unary = fgi_unary(m, i);
        if (s->cards[i] != k) return 0;
        for (int32_t a = 0; a < k; a++)
            if (unary[a] != unary[0]) return 0;
    }
    int32_t *labels = fgi_alloc(s->n_vars, sizeof *labels);
    int alike = labels != NULL; /* without memory nothing is left out */
    for (int64_t f = 0; f < s->n_factors && alike; f++)
        alike = is_invariant(m, f, k, 0, labels) && (k == 2 || is_invariant(m, f, k, 1, labels));
    free(labels);
    return alike;
}

static int32_t factors_of(const fgi_costs *c, int32_t i) { return c->adj_begin[i + 1] - c->adj_begin[i]; }

/* How many factors of i have a variable that has been chosen. */
static int32_t links(const fgi_costs *c, int32_t i) {
    int32_t n = 0;
    for (int32_t k = c->adj_begin[i]; k < c->adj_begin[i + 1]; k++) {
        const int32_t f = c->slot_factor[c->adj[k]];
        int any = 0;
        for (int32_t s = c->slot_begin[f]; s < c->slot_begin[f + 1]; s++) any |= c->stamp[c->slot_var[s]] == c->stamps;
        n += any;
    }
    return n;
}

void fgi_costs_break_symmetry(fgi_costs *c, const fgi_model *m) {
    if (!labels_are_alike(m)) return;
    c->stamps++; /* marks those chosen */
    for (int32_t chosen = 0; chosen + 1 < c->card[0] && chosen < c->n; chosen++) {
        int32_t best = -1, most = -1;
        for (int32_t i = 0; i < c->n; i++) {
            if (c->stamp[i] == c->stamps) continue;
            const int32_t near = links(c, i);
            if (near < most || (near == most && factors_of(c, i) <= factors_of(c, best))) continue;
            best = i;
            most = near;
        }
        c->stamp[best] = c->stamps;
        for (int32_t a = c->card[0] - 1; a > chosen; a--) fgi_costs_remove(c, best, a);
    }
}
