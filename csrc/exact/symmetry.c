/* exact/symmetry.c - labels that can be renamed: see exact/costs.h.
 *
 * If every table stays the same under every renaming of the labels, the first variable of any order may be taken to
 * have label 0, the second 0 or 1, and so on: the first label in that order that is new is the lowest that is left.
 * It is the scores that are compared: beside large penalties whole-number costs may be the same where scores are not,
 * and a labeling that is left out would not be as good as the one that stands for it. */
#include "exact/costs.h"
#include "model/alike.h"

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
    if (!fgi_labels_are_alike(m)) return;
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
