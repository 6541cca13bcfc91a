/* primal/anneal.c - simulated annealing: a start for an epoch that is better than most, on models with many shallow
 * maxima.
 *
 * Sweep after sweep, each variable may move to any label that loses less than a random threshold of mean T (slice
 * sampling at temperature T); T falls from what a usual change costs to a small part of it. It falls with the work, not
 * with the sweeps: where variables have many neighbours a change costs far more than a look, and equal sweeps would
 * spend nearly all of the time where everything is still in motion. A violated hard constraint costs a few usual
 * changes: it is repaired later if it lasts to the end. */
#include <string.h>
#include "primal/search.h"

/* Decision 0016 has what half and twice of these numbers do. */
static const double COLDEST = 0.03;     /* the last temperature, in units of a usual change */
static const double FORBIDDEN_COST = 4; /* what a violation costs, in the same units */
enum { LOOKS = 16 };                    /* variables between two changes of the temperature */

struct fgi_anneal {
    const fgi_model *model;
    fgi_labeling *local;
    double hottest, temperature, penalty;
    int64_t cursor;
    int64_t begun, budget; /* operations before this annealing, and those it may take */
    int64_t operations;    /* since creation, those of the labeling apart */
};

fgi_anneal *fgi_anneal_create(const fgi_model *m, fgi_labeling *local) {
    fgi_anneal *anneal = fgi_calloc(1, sizeof *anneal);
    if (!anneal) return NULL;
    anneal->model = m;
    anneal->local = local;
    return anneal;
}

void fgi_anneal_free(fgi_anneal *anneal) { free(anneal); }

int64_t fgi_anneal_operations(const fgi_anneal *anneal) { return anneal->operations; }

/* What a change costs or gains on average, from a sample of the variables. */
static double usual_change(fgi_anneal *anneal, fgi_rng *rng) {
    const fgi_structure *s = anneal->model->s;
    double sum = 0;
    int64_t n = 0;
    for (int k = 0; k < 200; k++) {
        const int32_t i = (int32_t)fgi_rng_below(rng, s->n_vars);
        const int32_t *bad, a = (int32_t)fgi_rng_below(rng, s->cards[i]), b = (int32_t)fgi_rng_below(rng, s->cards[i]);
        const double *score = fgi_labeling_label_scores(anneal->local, i, &bad);
        if (a == b || (bad && bad[a] + bad[b] > 0)) continue;
        sum += fabs(score[a] - score[b]);
        n++;
    }
    return n ? sum / (double)n : 0;
}

static int64_t all_operations(const fgi_anneal *anneal) {
    return anneal->operations + fgi_labeling_operations(anneal->local);
}

void fgi_anneal_start(fgi_anneal *anneal, int64_t budget, fgi_rng *rng) {
    const double usual = usual_change(anneal, rng);
    anneal->hottest = anneal->temperature = usual;
    anneal->penalty = usual > 0 ? FORBIDDEN_COST * usual : fgi_labeling_penalty(anneal->local);
    anneal->begun = all_operations(anneal);
    anneal->budget = budget;
    anneal->cursor = 0;
}

/* One of the labels that lose less than the threshold, the present one included; all alike. */
static int32_t draw(fgi_anneal *anneal, int32_t i, fgi_rng *rng) {
    const int32_t *bad, *choices, own = fgi_labeling_labels(anneal->local)[i],
                                  n_choices = fgi_labeling_choices(anneal->local, i, &choices);
    const double *score = fgi_labeling_label_scores(anneal->local, i, &bad);
    const double least = score[own] + anneal->temperature * log(fgi_rng_unit(rng) + 1e-300);
    int32_t chosen = own, n = 0;
    for (int32_t k = 0; k < n_choices; k++) {
        const int32_t a = choices ? choices[k] : k;
        if (a == own || score[a] - (bad ? anneal->penalty * (bad[a] - bad[own]) : 0) < least) continue;
        n++;
        if (n == 1 || fgi_rng_below(rng, n) == 0) chosen = a;
    }
    anneal->operations += n_choices + 4;
    return chosen;
}

int fgi_anneal_run(fgi_anneal *anneal, int64_t max_operations, fgi_rng *rng) {
    const int64_t pause = all_operations(anneal) + max_operations, end = anneal->begun + anneal->budget;
    for (int64_t now = all_operations(anneal); now < end; now = all_operations(anneal)) {
        if (now >= pause) return 0;
        if (anneal->cursor % LOOKS == 0)
            anneal->temperature =
                anneal->hottest * pow(COLDEST, (double)(now - anneal->begun) / (double)anneal->budget);
        fgi_labeling_flip(anneal->local, (int32_t)anneal->cursor, draw(anneal, (int32_t)anneal->cursor, rng));
        if (++anneal->cursor == anneal->model->s->n_vars) anneal->cursor = 0;
    }
    return 1;
}
