/* Extreme classification under sanitizers: both solvers, threads, checkpoints of pd-sparse, prediction, bad input. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/util.h"
#include "check.h"
#include "fginfer_extreme.h"

enum { ROWS = 120, FEATURES = 40, LABELS = 15, MOST = 10 };

/* Random rows whose labels are two of their features; all arrays are of their exact size, so overruns are seen. */
typedef struct problem {
    fgi_extreme_data data;
    int64_t row_begin[ROWS + 1], column_begin[FEATURES + 1], label_begin[ROWS + 1], positive_begin[LABELS + 1];
    int32_t *feature, *column_row, *label, *positive;
    float *value, *column_value;
} problem;

static void transpose(int64_t lines, const int64_t *begin, const int32_t *index, const float *value, int64_t width,
    int64_t *out_begin, int32_t *out_index, float *out_value) {
    memset(out_begin, 0, (size_t)(width + 1) * sizeof *out_begin);
    for (int64_t p = 0; p < begin[lines]; p++) out_begin[index[p] + 1]++;
    for (int64_t c = 0; c < width; c++) out_begin[c + 1] += out_begin[c];
    CHECK(fgi_extreme_transpose(lines, begin, index, value, 0, width, out_begin, out_index, out_value, NULL) == FGI_OK);
}

static void make(problem *p) {
    fgi_rng rng = {7};
    int32_t feature[ROWS * MOST], label[ROWS * MOST];
    int64_t n = 0, m = 0;
    for (int64_t i = 0; i < ROWS; i++) {
        p->row_begin[i] = n;
        p->label_begin[i] = m;
        const int64_t first = n;
        for (int32_t j = 0; j < FEATURES && n - first < MOST; j++)
            if (fgi_rng_below(&rng, 6) == 0) feature[n++] = j;
        if (n == first) feature[n++] = (int32_t)(i % FEATURES);
        int32_t last = -1;
        for (int64_t k = first; k < n && m - p->label_begin[i] < 2; k++)
            if (feature[k] % LABELS > last) label[m++] = last = feature[k] % LABELS;
    }
    p->row_begin[ROWS] = n;
    p->label_begin[ROWS] = m;
    p->feature = fgi_copy(feature, n, sizeof *feature);
    p->label = fgi_copy(label, m, sizeof *label);
    p->value = fgi_alloc(n, sizeof(float));
    for (int64_t k = 0; k < n; k++) p->value[k] = 0.2f + (float)fgi_rng_unit(&rng);
    p->column_row = fgi_alloc(n, sizeof(int32_t));
    p->column_value = fgi_alloc(n, sizeof(float));
    p->positive = fgi_alloc(m, sizeof(int32_t));
    transpose(ROWS, p->row_begin, p->feature, p->value, FEATURES, p->column_begin, p->column_row, p->column_value);
    transpose(ROWS, p->label_begin, p->label, NULL, LABELS, p->positive_begin, p->positive, NULL);
    p->data = (fgi_extreme_data){ROWS, FEATURES, LABELS, p->row_begin, p->feature, p->value, p->column_begin,
        p->column_row, p->column_value, p->label_begin, p->label, p->positive_begin, p->positive};
}

static void drop(problem *p) {
    void *all[] = {p->feature, p->column_row, p->label, p->positive, p->value, p->column_value};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) free(all[k]);
}

typedef struct columns {
    int64_t begin[LABELS + 1];
    int32_t *feature;
    float *value, bias[LABELS];
    fgi_ppd_info info[LABELS];
    uint8_t done[LABELS];
} columns;

static int train(const problem *p, const fgi_ppd_settings *s, int32_t threads, const int32_t *stop, columns *out) {
    int32_t labels[LABELS];
    fgi_ppd *ppd;
    fgi_ppd_columns *found;
    for (int32_t k = 0; k < LABELS; k++) labels[k] = k;
    REQUIRE(fgi_ppd_create(&p->data, s, threads, &ppd, NULL) == FGI_OK);
    REQUIRE(fgi_ppd_train(ppd, labels, LABELS, stop, &found, NULL) == FGI_OK);
    const int64_t n = fgi_ppd_columns_weights(found);
    out->feature = fgi_alloc(n, sizeof(int32_t));
    out->value = fgi_alloc(n, sizeof(float));
    fgi_ppd_columns_get(found, out->begin, out->feature, out->value, out->bias, out->info, out->done);
    labels[3] = LABELS;
    fgi_ppd_columns *none;
    CHECK(fgi_ppd_train(ppd, labels, LABELS, NULL, &none, NULL) == FGI_BAD_ARGUMENT);
    fgi_ppd_columns_free(found);
    fgi_ppd_free(ppd);
    return 0;
}

static int test_ppd(const problem *p) {
    for (int32_t kind = 0; kind < 8; kind++) {
        const fgi_ppd_settings s = {.loss = kind & 1,
            .C = 0.5,
            .positive_weight = 1.0,
            .lambda = 0.05,
            .learn_bias = kind >> 1 & 1,
            .bias = -1.0,
            .tol = 1e-4,
            .max_outer = 500,
            .max_inner = 20,
            .admit = 0.5,
            .admit_least = 4,
            .sparsify = kind & 4 ? 3.0 : 0.0,
            .seed = 1};
        columns one, three, none;
        const int32_t stop = 1;
        if (train(p, &s, 1, NULL, &one) || train(p, &s, 3, NULL, &three) || train(p, &s, 2, &stop, &none)) return 1;
        CHECK(memcmp(one.begin, three.begin, sizeof one.begin) == 0);
        CHECK(memcmp(one.value, three.value, (size_t)one.begin[LABELS] * sizeof(float)) == 0);
        for (int32_t k = 0; k < LABELS; k++) {
            CHECK(one.done[k] && one.info[k].converged && !none.done[k]);
            CHECK(one.info[k].primal - one.info[k].dual <= 1e-4 * one.info[k].primal + 1e-12);
        }
        columns *all[] = {&one, &three, &none};
        for (int32_t k = 0; k < 3; k++) {
            free(all[k]->feature);
            free(all[k]->value);
        }
    }
    return 0;
}

static double passes(fgi_pd *pd, int32_t times) {
    int32_t order[ROWS];
    double loss;
    fgi_pd_info info;
    for (int32_t i = 0; i < ROWS; i++) order[i] = i;
    for (int32_t t = 0; t < times; t++) {
        int64_t next = 0;
        while (next < ROWS) CHECK(fgi_pd_pass(pd, order, ROWS, &next, 0.0, NULL) == FGI_OK); /* 16 rows at a time */
    }
    CHECK(fgi_pd_losses(pd, 0, ROWS, &loss, NULL) == FGI_OK);
    fgi_pd_get_info(pd, &info);
    return 0.5 * info.squared_norm + 0.02 * info.l1_norm + 0.5 * loss - info.dual;
}

static int test_pd(const problem *p) {
    for (int32_t parts = 1; parts <= 3; parts += 2) {
        const fgi_pd_settings s = {0.5, 0.02, parts, 3, 0};
        fgi_pd *pd, *other;
        fgi_pd_info info;
        int64_t combined, row_begin[ROWS + 1], begin[FEATURES + 1];
        double gaps[ROWS];
        REQUIRE(fgi_pd_create(&p->data, &s, 2, &pd, NULL) == FGI_OK);
        REQUIRE(fgi_pd_create(&p->data, &s, 1, &other, NULL) == FGI_OK);
        const double early = passes(pd, 2), late = passes(pd, 60);
        CHECK(late >= -1e-9 && late < 0.2 * early);
        fgi_pd_get_info(pd, &info);
        const double before = info.dual;
        CHECK(fgi_pd_joint(pd, INFINITY, NULL) == FGI_OK); /* all rows together: the bound never falls */
        fgi_pd_get_info(pd, &info);
        CHECK(info.dual >= before - 1e-12);
        const int64_t n = fgi_pd_export_size(pd, &combined);
        int32_t *labels = fgi_alloc(n, sizeof *labels), *combined_label = fgi_alloc(combined, sizeof *combined_label);
        double *alpha = fgi_alloc(n, sizeof *alpha), *value = fgi_alloc(combined, sizeof *value);
        fgi_pd_export(pd, row_begin, labels, alpha, begin, combined_label, value, gaps);
        fgi_pd_get_info(pd, &info);
        REQUIRE(
            fgi_pd_import(other, row_begin, labels, alpha, begin, combined_label, value, gaps, &info, NULL) == FGI_OK);
        CHECK(passes(pd, 1) == passes(other, 1));
        labels[0] = LABELS;
        CHECK(fgi_pd_import(other, row_begin, labels, alpha, begin, combined_label, value, gaps, &info, NULL) ==
            FGI_BAD_ARGUMENT);
        free(labels), free(combined_label), free(alpha), free(value);
        fgi_pd_free(pd);
        fgi_pd_free(other);
    }
    return 0;
}

static void test_prediction(const problem *p) {
    const int64_t begin[FEATURES + 1] = {0, 2, 3}; /* the rest is 0, and never less than before it should be */
    int64_t lines[FEATURES + 1];
    for (int32_t j = 0; j <= FEATURES; j++) lines[j] = j < 2 ? begin[j] : 3;
    const int32_t label[3] = {1, 4, 2}, bad[3] = {1, LABELS, 2};
    const float value[3] = {1.0f, -1.0f, 2.0f}, bias[LABELS] = {0};
    int32_t order[LABELS], labels[ROWS * LABELS];
    float scores[ROWS * LABELS];
    for (int32_t k = 0; k < LABELS; k++) order[k] = k;
    fgi_extreme_weights w = {FEATURES, LABELS, lines, label, value, bias, order};
    CHECK(fgi_extreme_topk(&w, ROWS, p->row_begin, p->feature, p->value, LABELS, 3, labels, scores, NULL, NULL) ==
        FGI_OK);
    for (int64_t i = 0; i < ROWS; i++)
        for (int32_t k = 1; k < LABELS; k++) CHECK(scores[i * LABELS + k - 1] >= scores[i * LABELS + k]);
    CHECK(fgi_extreme_topk(&w, ROWS, p->row_begin, p->feature, p->value, LABELS + 1, 1, labels, scores, NULL, NULL) ==
        FGI_BAD_ARGUMENT);
    w.label = bad;
    CHECK(fgi_extreme_topk(&w, ROWS, p->row_begin, p->feature, p->value, 2, 2, labels, scores, NULL, NULL) ==
        FGI_BAD_MODEL);
}

int main(void) {
    problem p;
    make(&p);
    CHECK(fgi_extreme_check(ROWS, FEATURES, p.row_begin, p.feature, p.value, NULL) == FGI_OK);
    CHECK(fgi_extreme_check(ROWS, FEATURES - 1, p.row_begin, p.feature, p.value, NULL) == FGI_BAD_ARGUMENT);
    if (test_ppd(&p) || test_pd(&p)) return 1;
    test_prediction(&p);
    drop(&p);
    return failed();
}
