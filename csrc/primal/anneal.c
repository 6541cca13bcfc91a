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
    fgi_anneal *s = fgi_calloc(1, sizeof *s);
    if (!s) return NULL;
    s->model = m;
    s->local = local;
    return s;
}

void fgi_anneal_free(fgi_anneal *s) { free(s); }

int64_t fgi_anneal_operations(const fgi_anneal *s) { return s->operations; }

/* What a change costs or gains on average, from a sample of the variables. */
static double usual_change(fgi_anneal *s, fgi_rng *rng) {
    const fgi_structure *st = s->model->s;
    double sum = 0;
    int64_t n = 0;
    for (int k = 0; k < 200; k++) {
        const int32_t i = (int32_t)fgi_rng_below(rng, st->n_vars);
        const int32_t *bad, a = (int32_t)fgi_rng_below(rng, st->cards[i]),
                            b = (int32_t)fgi_rng_below(rng, st->cards[i]);
        const double *score = fgi_labeling_label_scores(s->local, i, &bad);
        if (a == b || (bad && bad[a] + bad[b] > 0)) continue;
        sum += fabs(score[a] - score[b]);
        n++;
    }
    return n ? sum / (double)n : 0;
}

static int64_t all_operations(const fgi_anneal *s) { return s->operations + fgi_labeling_operations(s->local); }

void fgi_anneal_start(fgi_anneal *s, int64_t budget, fgi_rng *rng) {
    const double usual = usual_change(s, rng);
    s->hottest = s->temperature = usual;
    s->penalty = usual > 0 ? FORBIDDEN_COST * usual : fgi_labeling_penalty(s->local);
    s->begun = all_operations(s);
    s->budget = budget;
    s->cursor = 0;
}

/* One of the labels that lose less than the threshold, the present one included; all alike. */
static int32_t draw(fgi_anneal *s, int32_t i, fgi_rng *rng) {
    const int32_t *bad, *choices, own = fgi_labeling_labels(s->local)[i],
                                  n_choices = fgi_labeling_choices(s->local, i, &choices);
    const double *score = fgi_labeling_label_scores(s->local, i, &bad);
    const double least = score[own] + s->temperature * log(fgi_rng_unit(rng) + 1e-300);
    int32_t chosen = own, n = 0;
    for (int32_t k = 0; k < n_choices; k++) {
        const int32_t a = choices ? choices[k] : k;
        if (a == own || score[a] - (bad ? s->penalty * (bad[a] - bad[own]) : 0) < least) continue;
        n++;
        if (n == 1 || fgi_rng_below(rng, n) == 0) chosen = a;
    }
    s->operations += n_choices + 4;
    return chosen;
}

int fgi_anneal_run(fgi_anneal *s, int64_t max_operations, fgi_rng *rng) {
    const int64_t pause = all_operations(s) + max_operations, end = s->begun + s->budget;
    for (int64_t now = all_operations(s); now < end; now = all_operations(s)) {
        if (now >= pause) return 0;
        if (s->cursor % LOOKS == 0)
            s->temperature = s->hottest * pow(COLDEST, (double)(now - s->begun) / (double)s->budget);
        fgi_labeling_flip(s->local, (int32_t)s->cursor, draw(s, (int32_t)s->cursor, rng));
        if (++s->cursor == s->model->s->n_vars) s->cursor = 0;
    }
    return 1;
}
