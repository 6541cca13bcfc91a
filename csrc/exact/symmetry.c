/* exact/symmetry.c - labels that can be renamed: see exact/costs.h.
 *
 * If every table stays the same under every renaming of the labels, the first variable of any order may be taken to
 * have label 0, the second 0 or 1, and so on: the first label in that order that is new is the lowest that is left. */
#include "exact/costs.h"

/* Is the factor's table the same when all its labels are renamed? Labels 0 and 1 change places, or each goes one up:
 * these two make all renamings. */
static int is_invariant(const fgi_costs *c, int32_t f, int32_t k, int upwards) {
    const int32_t first = c->slot_begin[f], arity = c->slot_begin[f + 1] - first;
    const int64_t *table = c->table[first], states = k * c->slot_stride[first];
    for (int64_t state = 0; state < states; state++) {
        int64_t renamed = 0;
        for (int32_t s = first; s < first + arity; s++) {
            const int64_t a = state / c->slot_stride[s] % k;
            const int64_t b = upwards ? (a + 1) % k : a < 2 ? 1 - a : a;
            renamed += b * c->slot_stride[s];
        }
        if (table[state] != table[renamed]) return 0;
    }
    return 1;
}

static int labels_are_alike(const fgi_costs *c) {
    const int32_t k = c->n > 0 ? c->card[0] : 0;
    if (k < 2) return 0;
    for (int32_t i = 0; i < c->n; i++) {
        if (c->card[i] != k) return 0;
        for (int32_t a = 0; a < k; a++)
            if (c->unary[c->begin[i] + a] != c->unary[c->begin[i]]) return 0;
    }
    for (int32_t f = 0; f < c->n_factors; f++)
        if (!is_invariant(c, f, k, 0) || (k > 2 && !is_invariant(c, f, k, 1))) return 0;
    return 1;
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

void fgi_costs_break_symmetry(fgi_costs *c) {
    if (!labels_are_alike(c)) return;
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
