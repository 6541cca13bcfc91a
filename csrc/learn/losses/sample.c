/* learn/losses/sample.c - the loss of one sample: from all scores, from labels drawn at random, from a search. (From
 * searches by blocks: decomposed.c.) */
#include "learn/losses/losses.h"

static int is_positive(const fgi_loss_batch *b, int64_t i, int32_t label) {
    const int64_t begin = b->positive_begin[i];
    return fgi_place_of(b->positives + begin, b->positive_begin[i + 1] - begin, label) >= 0;
}

static double score_of(const fgi_losses *l, const fgi_loss_batch *b, int64_t i, int32_t label) {
    float score;
    if (b->scores) return b->scores[i * b->labels + label];
    l->kernels->dots(b->rows + (int64_t)label * b->d, 1, b->d, b->d, b->x + i * b->d, &score);
    return score;
}

void fgi_loss_positives(const fgi_losses *l, const fgi_loss_batch *b, int64_t i, fgi_loss_scratch *w) {
    fgi_scored *scored = &w->scored;
    scored->n = scored->n_rest = 0;
    scored->n_positives = b->positive_begin[i + 1] - b->positive_begin[i];
    scored->rest = 0;
    if (!fgi_scored_reserve(scored, scored->n_positives)) {
        w->failed = 1;
        scored->n_positives = 0;
        return;
    }
    for (int64_t p = b->positive_begin[i]; p < b->positive_begin[i + 1]; p++) {
        scored->weight[scored->n] = b->weights ? b->weights[p] : 1;
        fgi_scored_add(scored, b->positives[p], score_of(l, b, i, b->positives[p]));
    }
    w->touched += scored->n_positives;
}

/* Scores come many at a time, and few of them matter: loops without branches over so many. One score after the other
 * took .3 ms for 10^5, next to .46 for BLAS to compute them. */
enum { SCORES = 16 };

static float largest(const float *z, int64_t n) {
    float most[SCORES], top = -INFINITY;
    int64_t k = 0;
    for (int j = 0; j < SCORES; j++) most[j] = -INFINITY;
    for (; k + SCORES <= n; k += SCORES)
        for (int j = 0; j < SCORES; j++) most[j] = z[k + j] > most[j] ? z[k + j] : most[j];
    for (; k < n; k++) top = z[k] > top ? z[k] : top;
    for (int j = 0; j < SCORES; j++) top = most[j] > top ? most[j] : top;
    return top;
}

/* The first block of scores, from `k` on, with one that is not below `least`. */
static int64_t next_scores(const float *z, int64_t k, int64_t n, float least) {
    for (; k + SCORES <= n; k += SCORES) {
        int below = 0;
        for (int j = 0; j < SCORES; j++) below += z[k + j] < least;
        if (below < SCORES) break;
    }
    return k;
}

/* All scores are there; those that cannot have a gradient are left out. */
fgi_loss_answer fgi_loss_exact(fgi_losses *l, const fgi_loss_batch *b, int64_t i, fgi_loss_scratch *w) {
    fgi_scored *scored = &w->scored;
    const float *z = b->scores + i * b->labels;
    float least = -INFINITY;
    if (l->s.loss == FGI_LOSS_TRIPLET) {
        least = INFINITY;
        for (int64_t k = 0; k < scored->n; k++)
            if ((float)scored->z[k] < least) least = (float)scored->z[k];
        least -= 1.0f;
    } else if (l->s.loss == FGI_LOSS_MARGIN) { /* within mu of the best negative: the rest is projected to 0 */
        int64_t p = b->positive_begin[i], begin = 0;
        for (; p <= b->positive_begin[i + 1]; p++) {
            const int64_t end = p < b->positive_begin[i + 1] ? b->positives[p] : b->labels;
            const float top = largest(z + begin, end - begin);
            least = top > least ? top : least;
            begin = end + 1;
        }
        least -= (float)(l->s.mu * (1 + 1e-6)) + 1e-6f * fabsf(least);
    }
    for (int64_t k = 0; k < b->labels; k++) {
        if (k % SCORES == 0) k = next_scores(z, k, b->labels, least);
        if (k == b->labels) break;
        if (z[k] < least || is_positive(b, i, (int32_t)k)) continue;
        if (scored->n == scored->capacity && !fgi_scored_reserve(scored, scored->n + 1)) {
            w->failed = 1;
            break;
        }
        fgi_scored_add(scored, (int32_t)k, z[k]);
    }
    w->touched += b->labels;
    return (fgi_loss_answer){fgi_loss_evaluate(l->s.loss, l->s.mu, scored), FGI_VALUE_EXACT};
}

fgi_loss_answer fgi_loss_sampled(fgi_losses *l, const fgi_loss_batch *b, int64_t i, fgi_loss_scratch *w) {
    fgi_scored *scored = &w->scored;
    const int32_t m = l->s.want;
    if (!fgi_scored_reserve(scored, scored->n + m) || !fgi_scored_reserve(&w->block, m)) {
        w->failed = 1;
        return (fgi_loss_answer){0, FGI_VALUE_NEITHER};
    }
    float *score = (float *)w->block.work;
    l->kernels->dots(l->sample_rows, m, b->d, b->d, b->x + i * b->d, score);
    w->touched += m;
    for (int32_t k = 0; k < m; k++)
        if (!is_positive(b, i, l->sample[k])) fgi_scored_add(scored, l->sample[k], score[k]);
    const int64_t drawn = scored->n - scored->n_positives, negatives = b->labels - scored->n_positives;
    if (drawn == negatives) return (fgi_loss_answer){fgi_loss_evaluate(l->s.loss, l->s.mu, scored), FGI_VALUE_EXACT};
    if (l->s.loss == FGI_LOSS_ENTROPY && drawn > 0) { /* each stands for so many */
        const double shift = log((double)negatives / (double)drawn);
        for (int64_t k = scored->n_positives; k < scored->n; k++) scored->z[k] += shift;
    }
    const double value = fgi_loss_evaluate(l->s.loss, l->s.mu, scored);
    return (fgi_loss_answer){value, l->s.loss == FGI_LOSS_ENTROPY ? FGI_VALUE_NEITHER : FGI_VALUE_LOWER};
}

/* Whether labels with scores up to `last` would change neither value nor gradient. */
static int settled(const fgi_losses *l, const fgi_scored *scored, double last) {
    if (l->s.loss == FGI_LOSS_ENTROPY) return 0;
    double lowest = INFINITY, weakest = INFINITY;
    for (int64_t k = 0; k < scored->n_positives; k++)
        if (scored->z[k] < lowest) lowest = scored->z[k];
    if (l->s.loss == FGI_LOSS_TRIPLET) return last - lowest + 1 <= 0;
    for (int64_t k = scored->n_positives; k < scored->n; k++)
        if (scored->g[k] == 0 && scored->z[k] < weakest) weakest = scored->z[k];
    return weakest < INFINITY && last <= weakest; /* a negative at least as good was projected to 0 */
}

/* Mean and variance of the scores not listed, from the moments of all. */
static double by_moments(const fgi_loss_batch *b, int64_t i, const fgi_scored *scored) {
    const float *x = b->x + i * b->d;
    double sum = 0, squares = 0;
    for (int32_t a = 0; a < b->d; a++) {
        double along = 0;
        for (int32_t c = 0; c < b->d; c++) along += (double)b->square[(int64_t)a * b->d + c] * x[c];
        squares += along * x[a];
        sum += (double)b->total[a] * x[a];
    }
    for (int64_t k = 0; k < scored->n; k++) {
        sum -= scored->z[k];
        squares -= scored->z[k] * scored->z[k];
    }
    const double n = (double)(b->labels - scored->n), mean = sum / n, variance = squares / n - mean * mean;
    return mean + (variance > 0 ? variance / 2 : 0);
}

void fgi_scored_rest(const fgi_losses *l, const fgi_loss_batch *b, int64_t i, double last, fgi_loss_scratch *w) {
    fgi_scored *scored = &w->scored;
    scored->n_rest = l->s.rest == FGI_REST_OMIT ? 0 : b->labels - scored->n;
    scored->rest = 0;
    if (!scored->n_rest) return;
    if (l->s.rest == FGI_REST_LAST && last < INFINITY) scored->rest = last;
    if (l->s.rest == FGI_REST_MOMENTS) scored->rest = by_moments(b, i, scored);
}

fgi_loss_answer fgi_loss_searched(fgi_losses *l, const fgi_loss_batch *b, int64_t i, fgi_loss_scratch *w) {
    fgi_scored *scored = &w->scored;
    const int32_t want = l->s.want, *labels = l->found_labels + i * want;
    const double *values = l->found_values + i * want;
    if (!fgi_scored_reserve(scored, scored->n + want)) {
        w->failed = 1;
        return (fgi_loss_answer){0, FGI_VALUE_NEITHER};
    }
    double last = INFINITY;
    for (int32_t k = 0; k < want && labels[k] >= 0; k++) {
        fgi_scored_add(scored, labels[k], values[k]);
        if (values[k] < last) last = values[k];
    }
    const int64_t left = b->labels - scored->n;
    fgi_scored_rest(l, b, i, last, w);
    fgi_loss_answer a = {fgi_loss_evaluate(l->s.loss, l->s.mu, scored), FGI_VALUE_NEITHER};
    if (left == 0) a.claim = FGI_VALUE_EXACT;
    else if (l->s.rest == FGI_REST_OMIT)
        a.claim = l->proven[i] && settled(l, scored, last) ? FGI_VALUE_EXACT : FGI_VALUE_LOWER;
    else if (l->s.rest == FGI_REST_LAST && l->proven[i]) a.claim = FGI_VALUE_UPPER;
    return a;
}
