/* The losses over very many labels against their definitions, and their methods against the exact one. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/kernels_dots.h"
#include "check.h"
#include "fginfer_losses.h"
#include "search_draws.h"

enum { LABELS = 60, MANY = 8 };

static int positive(const int32_t *positives, int64_t n, int64_t k) {
    for (int64_t p = 0; p < n; p++)
        if (positives[p] == k) return 1;
    return 0;
}

static double plain_entropy(int64_t n, const double *z, const int32_t *positives, const double *weight, int64_t n_p) {
    double sum = 0, value = 0;
    for (int64_t k = 0; k < n; k++) sum += exp(z[k]);
    for (int64_t p = 0; p < n_p; p++) value += (weight ? weight[p] : 1) * (log(sum) - z[positives[p]]);
    return value;
}

static double plain_triplet(int64_t n, const double *z, const int32_t *positives, const double *weight, int64_t n_p) {
    double value = 0;
    for (int64_t k = 0; k < n; k++)
        for (int64_t p = 0; p < n_p && !positive(positives, n_p, k); p++)
            value += (weight ? weight[p] : 1) * fmax(0, z[k] - z[positives[p]] + 1);
    return value;
}

/* The margin loss is a maximum over a polytope with the corners 0 and e_j - e_k: no corner may promise more than the
 * point that the gradient is. */
static void check_margin(
    int64_t n, const double *z, const int32_t *positives, int64_t n_p, double mu, double value, const double *alpha) {
    double up = 0, down = 0, at = 0, here = 0, high = -INFINITY, low = INFINITY;
    for (int64_t k = 0; k < n; k++) {
        const int is = positive(positives, n_p, k);
        const double c = z[k] + !is, slope = c - mu * alpha[k];
        CHECK(is ? alpha[k] <= 0 : alpha[k] >= 0);
        if (is) down -= alpha[k], low = fmin(low, slope);
        else up += alpha[k], high = fmax(high, slope);
        here += slope * alpha[k];
        at += c * alpha[k] - 0.5 * mu * alpha[k] * alpha[k];
    }
    CHECK(fabs(up - down) <= 1e-9 && up <= 1 + 1e-9);
    CHECK(fabs(value - at) <= 1e-9 * (1 + fabs(at)));
    CHECK_SAYING(fmax(0, high - low) - here <= 1e-8, "a corner promises %g more\n", fmax(0, high - low) - here);
}

static void test_scores(fgi_rng *rng) {
    double z[LABELS], g[LABELS], weight[LABELS], value, other;
    int32_t positives[LABELS];
    fgi_loss_settings s;
    const int64_t n = 2 + fgi_rng_below(rng, LABELS - 1);
    int64_t n_p = draw_labels(rng, n - 1, 1 + fgi_rng_below(rng, 9), positives, 0);
    if (!n_p) positives[n_p++] = 0;
    const double scale = pow(10, 2 * fgi_rng_unit(rng) - 1), *w = fgi_rng_below(rng, 2) ? weight : NULL;
    for (int64_t k = 0; k < n; k++) z[k] = scale * draw(rng, 0);
    for (int64_t p = 0; p < n_p; p++) weight[p] = 0.5 + fgi_rng_unit(rng);
    fgi_loss_defaults(&s);
    s.mu = pow(10, 3 * fgi_rng_unit(rng) - 2);
    for (s.loss = FGI_LOSS_ENTROPY; s.loss <= FGI_LOSS_TRIPLET; s.loss++) {
        CHECK(fgi_loss_of_scores(&s, n, z, n_p, positives, w, &value, g, NULL) == FGI_OK);
        if (s.loss == FGI_LOSS_MARGIN) {
            check_margin(n, z, positives, n_p, s.mu, value, g);
            continue;
        }
        double (*plain)(int64_t, const double *, const int32_t *, const double *, int64_t) =
            s.loss == FGI_LOSS_ENTROPY ? plain_entropy : plain_triplet;
        CHECK(fabs(value - plain(n, z, positives, w, n_p)) <= 1e-10 * (1 + value));
        for (int64_t k = 0; k < n; k++) { /* kinks of the triplet loss are too rare to be met */
            const double kept = z[k], h = 1e-6;
            z[k] = kept + h;
            other = plain(n, z, positives, w, n_p);
            z[k] = kept - h;
            other -= plain(n, z, positives, w, n_p);
            z[k] = kept;
            CHECK(fabs(other / (2 * h) - g[k]) <= 1e-6 * (1 + value));
        }
    }
}

/* A batch by one method: values keep their claims, and a step is the one the gradients list. */
static int run_method(fgi_rng *rng, const fgi_loss_settings *set, const fgi_loss_batch *b, const double *exact) {
    fgi_losses *l;
    double values[MANY];
    int32_t claims[MANY], changed[MANY * LABELS];
    const int64_t *begin;
    const int32_t *labels;
    const float *g;
    REQUIRE(fgi_losses_create(set, &l, NULL) == FGI_OK);
    for (int again = 0; again < 2; again++) REQUIRE(fgi_losses_run(l, b, values, claims, NULL) == FGI_OK);
    for (int64_t i = 0; i < b->n; i++) {
        const double unit = 1e-5 * (1 + fabs(exact[i]));
        const int32_t c = claims[i];
        CHECK(set->method != FGI_LOSS_EXACT || c == FGI_VALUE_EXACT);
        CHECK_SAYING(!(c == FGI_VALUE_EXACT || c == FGI_VALUE_UPPER) || values[i] >= exact[i] - unit,
            "method %d loss %d: %g is above %g?\n", (int)set->method, (int)set->loss, values[i], exact[i]);
        CHECK_SAYING(!(c == FGI_VALUE_EXACT || c == FGI_VALUE_LOWER) || values[i] <= exact[i] + unit,
            "method %d loss %d: %g is below %g?\n", (int)set->method, (int)set->loss, values[i], exact[i]);
    }
    float *rows = fgi_copy(b->rows, b->labels * b->d, sizeof *rows), *x_gradient = draw_many(rng, b->n * b->d, 0);
    double *plain = fgi_alloc(b->labels * b->d, sizeof *plain);
    REQUIRE(rows && x_gradient && plain);
    for (int64_t k = 0; k < b->labels * b->d; k++) plain[k] = b->rows[k];
    CHECK(fgi_losses_gradient(l, &begin, &labels, &g) <= MANY * LABELS);
    for (int64_t i = 0; i < b->n; i++)
        for (int32_t k = 0; k < b->d; k++) {
            double sum = 0;
            for (int64_t e = begin[i]; e < begin[i + 1]; e++) {
                plain[labels[e] * b->d + k] -= 0.25 * g[e] * b->x[i * b->d + k];
                sum += (double)g[e] * b->rows[labels[e] * b->d + k];
            }
            x_gradient[i * b->d + k] = (float)sum;
        }
    float *got = draw_many(rng, b->n * b->d, 0);
    REQUIRE(got);
    const int64_t n = fgi_losses_step(l, b, rows, 0.25, got, changed);
    for (int64_t k = 0; k < b->n * b->d; k++) CHECK(fabsf(got[k] - x_gradient[k]) <= 1e-4f * (1 + fabsf(got[k])));
    for (int64_t k = 0; k < b->labels * b->d; k++) {
        CHECK(fabs(rows[k] - plain[k]) <= 1e-4 * (1 + fabs(plain[k])));
        CHECK(rows[k] == b->rows[k] || positive(changed, n, k / b->d));
    }
    free(rows);
    free(plain);
    free(x_gradient);
    free(got);
    fgi_losses_free(l);
    return 0;
}

static int run_methods(fgi_rng *rng, fgi_loss_settings *set, fgi_loss_batch *b, const float *scores,
    const double *exact, fgi_search *const *whole, fgi_search *const *blocks) {
    const int32_t wants[] = {1, 7, (int32_t)b->labels};
    set->method = FGI_LOSS_EXACT;
    b->scores = scores;
    if (run_method(rng, set, b, exact)) return 1;
    b->scores = NULL;
    for (int k = 0; k < 3; k++) {
        set->want = wants[k] < b->labels ? wants[k] : (int32_t)b->labels;
        for (set->rest = FGI_REST_OMIT; set->rest <= FGI_REST_MOMENTS; set->rest++) {
            b->indexes = whole;
            set->method = FGI_LOSS_SEARCH;
            if (run_method(rng, set, b, exact)) return 1;
            b->indexes = blocks;
            set->method = FGI_LOSS_DECOMPOSED;
            set->keep = k * 3;
            for (set->joined = 0; set->joined <= 1; set->joined++)
                if (run_method(rng, set, b, exact)) return 1;
        }
        set->rest = FGI_REST_OMIT;
        b->indexes = NULL;
        set->method = FGI_LOSS_SAMPLED;
        if (run_method(rng, set, b, exact)) return 1;
    }
    return 0;
}

static int test_batch(fgi_rng *rng, int round) {
    fgi_loss_settings set;
    fgi_loss_batch b = {.n = 1 + fgi_rng_below(rng, MANY), .labels = 3 + fgi_rng_below(rng, LABELS - 2)};
    int64_t begin[MANY + 1] = {0};
    int32_t positives[MANY * LABELS], cuts[3];
    fgi_search *whole, *blocks[2];
    b.d = 2 + (int32_t)fgi_rng_below(rng, 12);
    float *rows = draw_many(rng, b.labels * b.d, 0), *x = draw_many(rng, b.n * b.d, 0);
    float *scores = fgi_alloc(b.n * b.labels, sizeof *scores);
    float *total = fgi_calloc(b.d, sizeof *total), *square = fgi_calloc(b.d * b.d, sizeof *square);
    REQUIRE(rows && x && scores && total && square);
    for (int64_t k = 0; k < b.labels * b.d; k++) total[k % b.d] += rows[k];
    for (int64_t k = 0; k < b.labels * b.d * b.d; k++)
        square[k % (b.d * b.d)] += rows[k / b.d] * rows[k / b.d / b.d * b.d + k % b.d];
    for (int64_t i = 0; i < b.n; i++) {
        fgi_dots_scalar(rows, b.labels, b.d, b.d, x + i * b.d, scores + i * b.labels);
        begin[i + 1] = draw_labels(rng, b.labels - 1, 2 + fgi_rng_below(rng, 8), positives, begin[i]);
        if (begin[i + 1] == begin[i]) positives[begin[i + 1]++] = (int32_t)(b.labels - 1);
    }
    b.rows = rows;
    b.x = x;
    b.total = total;
    b.square = square;
    b.positive_begin = begin;
    b.positives = positives;
    fgi_loss_defaults(&set);
    set.blocks = 2;
    set.threads = 1 + round % 2;
    set.rounds = 1 + round % 3;
    set.threshold = 0.01 * fgi_rng_unit(rng);
    fgi_loss_blocks(b.d, 2, cuts);
    REQUIRE(fgi_search_create(b.labels, b.d, b.d, rows, NULL, &whole, NULL) == FGI_OK);
    for (int j = 0; j < 2; j++)
        REQUIRE(
            fgi_search_create(b.labels, cuts[j + 1] - cuts[j], b.d, rows + cuts[j], NULL, &blocks[j], NULL) == FGI_OK);
    for (set.loss = FGI_LOSS_ENTROPY; set.loss <= FGI_LOSS_TRIPLET; set.loss++) {
        double exact[MANY], z[LABELS];
        for (int64_t i = 0; i < b.n; i++) {
            for (int64_t k = 0; k < b.labels; k++) z[k] = scores[i * b.labels + k];
            REQUIRE(fgi_loss_of_scores(&set, b.labels, z, begin[i + 1] - begin[i], positives + begin[i], NULL,
                        &exact[i], NULL, NULL) == FGI_OK);
        }
        if (run_methods(rng, &set, &b, scores, exact, &whole, blocks)) return 1;
    }
    fgi_search_free(whole);
    for (int j = 0; j < 2; j++) fgi_search_free(blocks[j]);
    free(rows);
    free(x);
    free(scores);
    free(total);
    free(square);
    return 0;
}

int main(void) {
    fgi_rng rng = {15};
    for (int round = 0; round < 400; round++) test_scores(&rng);
    for (int round = 0; round < 20; round++) REQUIRE(!test_batch(&rng, round));
    return failed();
}
