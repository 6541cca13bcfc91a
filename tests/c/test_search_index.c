/* Maximum inner-product search against a plain scan. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/kernels.h"
#include "base/kernels_codes.h"
#include "base/kernels_dots.h"
#include "check.h"
#include "fginfer_losses.h"
#include "search_draws.h"

/* What an index should hold, and a batch of questions. */
typedef struct trial {
    int64_t rows, n, stride;
    int32_t d;
    float *all, *x;
    int64_t *message_begin, *excluded_begin;
    int32_t *message_labels, *excluded_labels;
    double *message_values;
} trial;

static void trial_free(trial *t) {
    free(t->all);
    free(t->x);
    free(t->message_begin);
    free(t->message_labels);
    free(t->message_values);
    free(t->excluded_begin);
    free(t->excluded_labels);
}

static int trial_draw(fgi_rng *rng, trial *t, int whole) {
    *t = (trial){.rows = 1 + fgi_rng_below(rng, 400), .n = 1 + fgi_rng_below(rng, 40)};
    t->d = 1 + (int32_t)fgi_rng_below(rng, 20);
    t->stride = t->d + fgi_rng_below(rng, 3);
    t->all = draw_many(rng, t->rows * t->d, whole);
    t->x = draw_many(rng, (t->n - 1) * t->stride + t->d, whole);
    t->message_begin = fgi_calloc(t->n + 1, sizeof *t->message_begin);
    t->excluded_begin = fgi_calloc(t->n + 1, sizeof *t->excluded_begin);
    t->message_labels = fgi_alloc(t->n * t->rows, sizeof *t->message_labels);
    t->excluded_labels = fgi_alloc(t->n * t->rows, sizeof *t->excluded_labels);
    t->message_values = fgi_alloc(t->n * t->rows, sizeof *t->message_values);
    REQUIRE(t->all && t->x && t->message_begin && t->excluded_begin && t->message_labels && t->excluded_labels &&
        t->message_values);
    /* every second trial: rows in bunches, where bounds help */
    const int64_t centres = fgi_rng_below(rng, 2) ? 1 + t->rows / 20 : t->rows;
    for (int64_t k = centres; k < t->rows; k++)
        for (int32_t i = 0; i < t->d; i++)
            t->all[k * t->d + i] = t->all[k % centres * t->d + i] + (whole ? 0 : 0.1f * t->all[k * t->d + i]);
    for (int64_t i = 0; i < t->n; i++) {
        t->message_begin[i + 1] = draw_labels(rng, t->rows, i % 4 * 3, t->message_labels, t->message_begin[i]);
        t->excluded_begin[i + 1] =
            draw_labels(rng, t->rows, fgi_rng_below(rng, 6), t->excluded_labels, t->excluded_begin[i]);
    }
    for (int64_t k = 0; k < t->message_begin[t->n]; k++) t->message_values[k] = 3 * draw(rng, whole);
    return 0;
}

/* The labels of question i, best first; returns how many. */
static int64_t scan(const trial *t, const fgi_search_query *q, int64_t i, fgi_ranked_label *out) {
    int64_t n = 0;
    for (int64_t k = 0; k < t->rows; k++) {
        float score;
        int excluded = 0;
        fgi_dots_scalar(t->all + k * t->d, 1, t->d, t->d, t->x + i * t->stride, &score);
        double value = score;
        for (int64_t e = q->message_begin ? t->message_begin[i] : 0; q->message_begin && e < t->message_begin[i + 1];
             e++)
            if (t->message_labels[e] == k) value -= t->message_values[e];
        for (int64_t e = q->excluded_begin ? t->excluded_begin[i] : 0;
             q->excluded_begin && e < t->excluded_begin[i + 1]; e++)
            excluded |= t->excluded_labels[e] == k;
        if (!excluded) out[n++] = (fgi_ranked_label){value, (int32_t)k};
    }
    qsort(out, (size_t)n, sizeof *out, ranked);
    return n;
}

static int compare(fgi_rng *rng, const trial *t, fgi_search *s, int32_t probes, int32_t candidates) {
    fgi_search_query q = {.n = t->n, .stride = t->stride, .x = t->x, .probes = probes, .candidates = candidates};
    q.want = 1 + (int32_t)fgi_rng_below(rng, t->rows < 60 ? t->rows : 60);
    if (fgi_rng_below(rng, 2)) {
        q.message_begin = t->message_begin;
        q.message_labels = t->message_labels;
        q.message_values = t->message_values;
    }
    if (fgi_rng_below(rng, 2)) {
        q.excluded_begin = t->excluded_begin;
        q.excluded_labels = t->excluded_labels;
    }
    int32_t *labels = fgi_alloc(t->n * q.want, sizeof *labels);
    double *values = fgi_alloc(t->n * q.want, sizeof *values);
    uint8_t *proven = fgi_alloc(t->n, sizeof *proven);
    fgi_ranked_label *plain = fgi_alloc(t->rows, sizeof *plain);
    REQUIRE(labels && values && proven && plain);
    REQUIRE(fgi_search_run(s, &q, labels, values, proven, NULL) == FGI_OK);
    for (int64_t i = 0; i < t->n; i++) {
        const int64_t n = scan(t, &q, i, plain);
        CHECK(proven[i] == 1 || probes > 0 || (candidates > 0 && candidates < t->rows));
        for (int32_t k = 0; proven[i] && k < q.want; k++) {
            CHECK(labels[i * q.want + k] == (k < n ? plain[k].label : -1));
            CHECK(values[i * q.want + k] == (k < n ? plain[k].value : -INFINITY));
        }
    }
    free(labels);
    free(values);
    free(proven);
    free(plain);
    return 0;
}

/* By parts: every label once, none that is excluded, every part's inner product nearly; all labels when so many are
 * wanted; and otherwise as many as are wanted. */
static int compare_parts(const trial *t, fgi_search *s, int32_t want) {
    fgi_search_query q = {.n = t->n, .stride = t->stride, .x = t->x, .want = want};
    q.excluded_begin = t->excluded_begin;
    q.excluded_labels = t->excluded_labels;
    const int32_t parts = fgi_search_parts_of(s);
    const int64_t most = fgi_search_parts_most(parts, want, t->rows);
    int32_t *labels = fgi_alloc(t->n * most, sizeof *labels);
    float *values = fgi_alloc(t->n * most * parts, sizeof *values);
    uint8_t *given = fgi_calloc(t->rows, sizeof *given);
    REQUIRE(labels && values && given && most <= t->rows && most <= (int64_t)parts * want);
    REQUIRE(fgi_search_parts(s, &q, labels, values, NULL) == FGI_OK);
    double longest = 0;
    for (int64_t k = 0; k < t->rows; k++) {
        double square = 0;
        for (int32_t i = 0; i < t->d; i++) square += (double)t->all[k * t->d + i] * t->all[k * t->d + i];
        longest = fmax(longest, sqrt(square));
    }
    for (int64_t i = 0; i < t->n; i++) {
        const float *x = t->x + i * t->stride;
        const int64_t excluded = t->excluded_begin ? t->excluded_begin[i + 1] - t->excluded_begin[i] : 0;
        double length = 0;
        int64_t n = 0;
        for (int32_t k = 0; k < t->d; k++) length += (double)x[k] * x[k];
        length = sqrt(length);
        memset(given, 0, (size_t)t->rows);
        for (int64_t k = 0; k < excluded; k++) given[t->excluded_labels[t->excluded_begin[i] + k]] = 1;
        for (; n < most && labels[i * most + n] >= 0; n++) {
            const int32_t label = labels[i * most + n];
            REQUIRE(label < t->rows && !given[label]);
            given[label] = 1;
            for (int32_t part = 0; part < parts; part++) {
                double sum = 0;
                for (int64_t c = (int64_t)t->d * part / parts; c < (int64_t)t->d * (part + 1) / parts; c++)
                    sum += (double)t->all[(int64_t)label * t->d + c] * x[c];
                CHECK(fabs(sum - values[(i * most + n) * parts + part]) <= 0.06 * longest * length + 1e-30);
            }
        }
        const int64_t left = t->rows - excluded;
        CHECK(n >= (left < want ? left : want) && (want < t->rows || n == left));
    }
    free(labels);
    free(values);
    free(given);
    return 0;
}

/* Rows, rows of the matrix, or single entries change, by little or a lot. */
static int change(fgi_rng *rng, trial *t, fgi_search *s, int whole) {
    int32_t labels[64], columns[64];
    float values[64];
    const int64_t n = 1 + fgi_rng_below(rng, 64), how = fgi_rng_below(rng, 3);
    const float size = whole ? 1 : fgi_rng_below(rng, 2) ? 0.01f : 2.0f;
    float *rows = fgi_alloc(n * t->d, sizeof *rows);
    REQUIRE(rows);
    for (int64_t i = 0; i < n; i++) {
        labels[i] = (int32_t)fgi_rng_below(rng, t->rows);
        columns[i] = (int32_t)fgi_rng_below(rng, t->d);
        float *row = t->all + (int64_t)labels[i] * t->d;
        for (int32_t k = 0; k < t->d; k++)
            if (how < 2 || k == columns[i]) row[k] += size * draw(rng, whole);
        values[i] = row[columns[i]];
        memcpy(rows + i * t->d, row, (size_t)t->d * sizeof *row);
    }
    if (how == 0) REQUIRE(fgi_search_set_rows(s, n, labels, t->d, rows, NULL) == FGI_OK);
    if (how == 1) REQUIRE(fgi_search_refresh(s, n, labels, t->d, t->all, NULL) == FGI_OK);
    if (how == 2) REQUIRE(fgi_search_set_entries(s, n, labels, columns, values, NULL) == FGI_OK);
    for (int64_t i = 0; i < n; i++) {
        fgi_search_row(s, labels[i], rows);
        CHECK(!memcmp(rows, t->all + (int64_t)labels[i] * t->d, (size_t)t->d * sizeof *rows));
    }
    free(rows);
    return 0;
}

static int test_index(fgi_rng *rng, int round) {
    trial t;
    fgi_search *s;
    fgi_search_settings settings;
    const int whole = round % 3 == 0; /* small whole numbers: many ties, and rows of zeros */
    if (trial_draw(rng, &t, whole)) return 1;
    fgi_search_defaults(&settings);
    settings.clusters = (int32_t)fgi_rng_below(rng, t.rows / 8 + 2);
    settings.threads = 1 + round % 2;
    settings.seed = (uint64_t)round;
    settings.parts = 1 + (int32_t)fgi_rng_below(rng, t.d < FGI_CODE_PARTS ? t.d : FGI_CODE_PARTS);
    fgi_kernels_force(round % 5 ? NULL : &fgi_kernels_scalar);
    REQUIRE(fgi_search_create(t.rows, t.d, t.d, t.all, &settings, &s, NULL) == FGI_OK);
    for (int step = 0; step < 6; step++) {
        for (int32_t probes = -1; probes <= 1; probes++)
            if (compare(rng, &t, s, probes, 0)) return 1;
        if (compare(rng, &t, s, 0, (int32_t)t.rows) || compare(rng, &t, s, 0, 1 + step)) return 1;
        if (compare_parts(&t, s, (int32_t)fgi_smaller(1 + 3 * step, (double)t.rows)) ||
            compare_parts(&t, s, (int32_t)t.rows))
            return 1;
        if (change(rng, &t, s, whole)) return 1;
        if (step == 4) REQUIRE(fgi_search_rebuild(s, NULL) == FGI_OK);
    }
    fgi_search_free(s);
    trial_free(&t);
    fgi_kernels_force(NULL);
    return 0;
}

/* Bad input leaves an index as it was. */
static int test_refusals(void) {
    const float rows[] = {1, 2, 3, 4}, bad[] = {1, NAN};
    const int32_t labels[] = {0, 2}, twice[] = {1, 1};
    const int64_t begin[] = {0, 2};
    fgi_search *s = NULL;
    int32_t found[2];
    double values[2];
    float row[2];
    CHECK(fgi_search_create(1, 2, 2, bad, NULL, &s, NULL) == FGI_BAD_MODEL);
    REQUIRE(fgi_search_create(2, 2, 2, rows, NULL, &s, NULL) == FGI_OK);
    CHECK(fgi_search_set_rows(s, 2, labels, 2, rows, NULL) == FGI_BAD_MODEL);
    CHECK(fgi_search_set_rows(s, 1, labels, 2, bad, NULL) == FGI_BAD_MODEL);
    CHECK(fgi_search_set_entries(s, 1, labels, labels + 1, bad, NULL) == FGI_BAD_MODEL);
    fgi_search_row(s, 0, row);
    CHECK(row[0] == 1 && row[1] == 2);
    fgi_search_query q = {.n = 1, .stride = 2, .x = rows, .want = 3};
    CHECK(fgi_search_run(s, &q, found, values, NULL, NULL) != FGI_OK);
    q.want = 1;
    q.excluded_begin = begin;
    q.excluded_labels = twice;
    CHECK(fgi_search_run(s, &q, found, values, NULL, NULL) == FGI_BAD_MODEL);
    q.excluded_labels = labels;
    CHECK(fgi_search_run(s, &q, found, values, NULL, NULL) == FGI_BAD_MODEL);
    q.excluded_begin = NULL;
    CHECK(fgi_search_run(s, &q, found, values, NULL, NULL) == FGI_OK && found[0] == 1 && values[0] == 11);
    fgi_search_free(s);
    return 0;
}

int main(void) {
    fgi_rng rng = {15};
    REQUIRE(!test_refusals());
    for (int round = 0; round < 40; round++) REQUIRE(!test_index(&rng, round));
    return failed();
}
