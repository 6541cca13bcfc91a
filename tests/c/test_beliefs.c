/* Marginals, max-marginals, samples and ranked labelings against enumeration; run under the sanitizers. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "check.h"
#include "fginfer_exact.h"
#include "random_model.h"

enum { MOST_LABELS = MAX_VARS * FEW_LABELS };

static double score_of(const fgi_model *m, const int32_t *labels) {
    double score = NAN;
    CHECK(fgi_model_score(m, labels, &score, NULL) == FGI_OK);
    return score;
}

static int next_labeling(const fgi_model *m, int32_t *labels) {
    for (int32_t i = 0; i < m->s->n_vars; i++) {
        if (++labels[i] < m->s->cards[i]) return 1;
        labels[i] = 0;
    }
    return 0;
}

/* By definition: the sum of exp(score), or the best score, of all labelings and of those with each label. */
static double enumerate(const fgi_model *m, int32_t kind, double *out) {
    int32_t labels[MAX_VARS] = {0};
    double all = kind == FGI_BELIEFS_SUM ? 0 : -INFINITY;
    for (int k = 0; k < MOST_LABELS; k++) out[k] = all;
    do {
        const double score = score_of(m, labels);
        double *at = out;
        all = kind == FGI_BELIEFS_SUM ? all + exp(score) : fmax(all, score);
        for (int32_t i = 0; i < m->s->n_vars; at += m->s->cards[i++])
            at[labels[i]] = kind == FGI_BELIEFS_SUM ? at[labels[i]] + exp(score) : fmax(at[labels[i]], score);
    } while (next_labeling(m, labels));
    return all;
}

static int near(double a, double b) { return a == b || fabs(a - b) <= 1e-9 * (1 + fabs(b)); }

static int next_held(const fgi_model *m, const int32_t *cut, int64_t n, int32_t *held) {
    for (int64_t k = 0; k < n; k++) {
        if (++held[k] < m->s->cards[cut[k]]) return 1;
        held[k] = 0;
    }
    return 0;
}

static void check_samples(fgi_beliefs *b, const fgi_model *m) {
    int32_t rows[20 * MAX_VARS];
    uint64_t state = 5;
    CHECK(fgi_beliefs_sample(b, 20, &state, rows));
    for (int k = 0; k < 20; k++) CHECK(score_of(m, rows + k * m->s->n_vars) > -INFINITY);
}

/* All runs of the cut set, in slices of no time, added up. Returns the number of variables held, -1: none fits. */
static int64_t check_beliefs(const fgi_model *m, int32_t kind, const uint8_t *held_first, double memory) {
    double expected[MOST_LABELS], found[MOST_LABELS], part[MOST_LABELS];
    const double all = enumerate(m, kind, expected);
    double total = kind == FGI_BELIEFS_SUM ? 0 : -INFINITY;
    int32_t cut[MAX_VARS], held[MAX_VARS] = {0};
    int64_t n_labels = 0;
    for (int32_t i = 0; i < m->s->n_vars; i++) n_labels += m->s->cards[i];
    fgi_beliefs *b = NULL;
    fgi_error err;
    const fgi_rc rc = fgi_beliefs_create(m, kind, held_first, memory, 0, &b, &err);
    CHECK(rc == FGI_OK || rc == FGI_UNSUPPORTED);
    if (rc) return -1;
    for (int k = 0; k < MOST_LABELS; k++) found[k] = total;
    const int64_t n = fgi_beliefs_cut(b, cut);
    do {
        fgi_beliefs_info info;
        CHECK(fgi_beliefs_hold(b, held, &err) == FGI_OK);
        CHECK(!fgi_beliefs_get(b, part));
        do CHECK(fgi_beliefs_run(b, 0, 0, &info, &err) == FGI_OK);
        while (info.status == FGI_RUNNING);
        if (info.status == FGI_INFEASIBLE) continue;
        if (kind == FGI_BELIEFS_SUM) check_samples(b, m);
        do CHECK(fgi_beliefs_run(b, 1, 0, &info, &err) == FGI_OK);
        while (info.status == FGI_RUNNING);
        CHECK(info.done == 1 && fgi_beliefs_get(b, part));
        total = kind == FGI_BELIEFS_SUM ? total + exp(info.value) : fmax(total, info.value);
        for (int64_t k = 0; k < n_labels; k++)
            found[k] = kind == FGI_BELIEFS_SUM ? found[k] + part[k] * exp(info.value) : fmax(found[k], part[k]);
    } while (next_held(m, cut, n, held));
    CHECK(near(total, all));
    for (int64_t k = 0; k < n_labels; k++) CHECK(near(found[k], expected[k]));
    fgi_beliefs_free(b);
    return n;
}

static int descending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x > y ? -1 : x < y;
}

static void check_ranked(const fgi_model *m, double *scores) {
    int64_t n = 0;
    int32_t labels[MAX_VARS] = {0}, status = FGI_RUNNING;
    do {
        scores[n] = score_of(m, labels);
        n += scores[n] > -INFINITY;
    } while (next_labeling(m, labels));
    qsort(scores, (size_t)n, sizeof *scores, descending);
    const int64_t most = n < 40 ? n : 40;
    fgi_ranked *r = NULL;
    fgi_error err;
    CHECK(fgi_ranked_create(m, 1e9, 0, most + 1, &r, &err) == FGI_OK);
    for (int64_t k = 0; k <= most && r; k++) {
        double bound;
        do CHECK(fgi_ranked_next(r, 0, labels, &bound, &status, &err) == FGI_OK);
        while (status == FGI_RUNNING);
        if (k == n) CHECK(status == FGI_INFEASIBLE);
        else if (k < most) CHECK(near(score_of(m, labels), scores[k]) && bound >= scores[k]);
    }
    fgi_ranked_free(r);
}

static void check_refusals(const fgi_model *m) {
    fgi_beliefs *b = NULL;
    fgi_error err;
    CHECK(fgi_beliefs_create(m, 2, NULL, 1e9, 0, &b, &err) == FGI_BAD_ARGUMENT);
    CHECK(fgi_beliefs_create(m, FGI_BELIEFS_SUM, NULL, -1, 0, &b, &err) == FGI_BAD_ARGUMENT);
    CHECK(fgi_beliefs_create(m, FGI_BELIEFS_SUM, NULL, 0, 0, &b, &err) == FGI_UNSUPPORTED);
}

int main(void) {
    int64_t held = 0;
    const uint8_t first[MAX_VARS] = {1};
    double *scores = malloc(sizeof(double) << 14);
    if (!scores) return 1;
    for (uint64_t seed = 1; seed <= 120; seed++) {
        fgi_rng rng = {seed};
        fgi_model *m =
            random_model(&rng, 2 + (int)(seed % 5), (int)(seed % 9), seed % 3 ? 0 : 15, seed % 7 == 0 ? 1 : 0);
        for (int32_t kind = FGI_BELIEFS_MAX; kind <= FGI_BELIEFS_SUM; kind++)
            for (double memory = 150; memory < 1e9; memory *= 10)
                held += check_beliefs(m, kind, seed % 5 ? NULL : first, memory) > 0;
        check_ranked(m, scores);
        if (seed == 1) check_refusals(m);
        fgi_model_free(m);
    }
    CHECK(held > 20);
    free(scores);
    return failed();
}
