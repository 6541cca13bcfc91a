/* learn/sets.c - decoding of label sets: a threshold without interactions, local search with them.
 *
 * With interactions the best set is a maximum over a complete binary graph, which is hard in general. The search flips
 * the label that gains most until none gains, from the empty set and from the labels that are on by themselves, and
 * keeps the better end. Ties go to the lowest label. Models trained on the LP relaxation are mostly easy for it. */
#include <string.h>
#include "learn/learn.h"

/* gain[m] changes by sign * v(l, m) for all m: label l was switched. */
static void switch_label(const fgi_learner *L, const double *pairs, int32_t l, double sign, double *gain) {
    const int64_t n = L->data.n_labels;
    const double *v = pairs;
    for (int64_t m = 0; m < l; m++) gain[m] += sign * v[m * n + l];
    for (int64_t m = l + 1; m < n; m++) gain[m] += sign * v[l * n + m];
}

/* From the set `on`; returns the score of the local maximum, which is left in `on`. */
static double climb(
    const fgi_learner *L, const double *pairs, const double *scores, uint8_t *on, double *gain, int64_t *touched) {
    const int32_t n = L->data.n_labels;
    double total = 0;
    memcpy(gain, scores, (size_t)n * sizeof *gain);
    for (int32_t l = 0; l < n; l++)
        if (on[l]) {
            total += gain[l];
            switch_label(L, pairs, l, 1.0, gain);
        }
    for (int32_t step = 0; step < 4 * n; step++) {
        int32_t best = -1;
        double most = 1e-12; /* rounding never makes it go round in circles */
        for (int32_t l = 0; l < n; l++) {
            double x = on[l] ? -gain[l] : gain[l];
            if (x > most) most = x, best = l;
        }
        *touched += n;
        if (best < 0) break;
        on[best] = !on[best];
        total += most;
        switch_label(L, pairs, best, on[best] ? 1.0 : -1.0, gain);
    }
    return total;
}

double fgi_learn_decode_set(
    const fgi_learner *L, const double *pairs, fgi_learn_scratch *scratch, int32_t *answer, int32_t *length) {
    const int32_t n = L->data.n_labels;
    double value = 0;
    *length = 0;
    if (L->data.edges == FGI_EDGES_NONE) {
        for (int32_t l = 0; l < n; l++)
            if (scratch->scores[l] > 0) answer[(*length)++] = l, value += scratch->scores[l];
        return value;
    }
    uint8_t *on = scratch->on, *other = scratch->on + n;
    for (int32_t l = 0; l < n; l++) on[l] = 0, other[l] = scratch->scores[l] > 0;
    value = climb(L, pairs, scratch->scores, on, scratch->best, &scratch->touched);
    double second = climb(L, pairs, scratch->scores, other, scratch->best, &scratch->touched);
    if (second > value) value = second, on = other;
    for (int32_t l = 0; l < n; l++)
        if (on[l]) answer[(*length)++] = l;
    return value;
}
