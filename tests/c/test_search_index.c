/* Maximum inner-product search against a plain scan, the kernels under it, and the losses over it against their
 * definitions. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/kernels.h"
#include "base/kernels_bytes.h"
#include "base/kernels_codes.h"
#include "base/kernels_dots.h"
#include "base/util.h"
#include "check.h"
#include "fginfer_losses.h"
#include "oracle/top.h"

static float draw(fgi_rng *rng, int whole) {
    return whole ? (float)(fgi_rng_below(rng, 5) - 2) : (float)(2 * fgi_rng_unit(rng) - 1);
}

static float *draw_many(fgi_rng *rng, int64_t n, int whole) {
    float *x = fgi_alloc(n, sizeof *x); /* exactly so long: the sanitizer sees a read beyond */
    for (int64_t k = 0; x && k < n; k++) x[k] = draw(rng, whole);
    return x;
}

/* ---- kernels ---------------------------------------------------------------------------------------------------- */

static int test_dots(fgi_rng *rng) {
    enum { MOST = 11 };
    const fgi_kernels *best = fgi_kernels_best();
    for (int64_t d = 1; d <= 35; d++)
        for (int64_t n = 0; n <= MOST; n++) {
            const int64_t stride = d + fgi_rng_below(rng, 4);
            float *rows = draw_many(rng, n ? (n - 1) * stride + d : 1, 0), *queries[4];
            float plain[4][MOST], fast[4][MOST], single[MOST];
            for (int q = 0; q < 4; q++) REQUIRE(queries[q] = draw_many(rng, d, 0));
            REQUIRE(rows);
            const float *x[4] = {queries[0], queries[1], queries[2], queries[3]};
            float *to_plain[4] = {plain[0], plain[1], plain[2], plain[3]};
            float *to_fast[4] = {fast[0], fast[1], fast[2], fast[3]};
            fgi_dots4_scalar(rows, n, stride, d, x, to_plain);
            best->dots4(rows, n, stride, d, x, to_fast);
            for (int q = 0; q < 4; q++) {
                CHECK(!memcmp(plain[q], fast[q], (size_t)n * sizeof(float)));
                fgi_dots_scalar(rows, n, stride, d, x[q], single);
                CHECK(!memcmp(plain[q], single, (size_t)n * sizeof(float)));
                best->dots(rows, n, stride, d, x[q], single);
                CHECK(!memcmp(plain[q], single, (size_t)n * sizeof(float)));
                for (int64_t r = 0; r < n; r++) {
                    double sum = 0;
                    for (int64_t k = 0; k < d; k++) sum += (double)rows[r * stride + k] * x[q][k];
                    CHECK(fabs(sum - plain[q][r]) <= 1e-6 * (double)d);
                }
                free(queries[q]);
            }
            free(rows);
        }
    return 0;
}

/* Random bits, factors and tables that fit into 8 bits over a chunk: both versions find the same rows and values, and
 * stop when a list is full. */
static int test_codes(fgi_rng *rng) {
    enum { BLOCKS = 5, MOST = 40, ROOM = 3 * FGI_CODE_BLOCK };
    static fgi_code_hit one[FGI_CODE_QUERIES][ROOM], two[FGI_CODE_QUERIES][ROOM];
    for (int round = 0; round < 300; round++) {
        const int64_t pieces = 1 + fgi_rng_below(rng, MOST), step = 1 + fgi_rng_below(rng, 2);
        fgi_code_query a = {.pieces = pieces, .shift = (int)fgi_rng_below(rng, 6), .queries = 1 + round % 4};
        a.parts = 1 + (int)fgi_rng_below(rng, pieces < FGI_CODE_PARTS ? pieces : FGI_CODE_PARTS);
        a.first = (int)fgi_rng_below(rng, a.parts);
        a.last = a.first + 1 + (int)fgi_rng_below(rng, a.parts - a.first);
        for (int j = 0; j < a.parts; j++) a.cut[j] = pieces * (j + 1) / a.parts;
        if (pieces <= FGI_CODE_CHUNK && round % 2) a.shift = 8;
        uint8_t *bits = fgi_alloc(BLOCKS * pieces * FGI_CODE_BLOCK, 1);
        int8_t *tables = fgi_alloc(FGI_CODE_QUERIES * pieces * 32, 1);
        int16_t factor[BLOCKS * FGI_CODE_BLOCK * FGI_CODE_PARTS];
        REQUIRE(bits && tables);
        for (int64_t k = 0; k < BLOCKS * pieces * FGI_CODE_BLOCK; k++) bits[k] = (uint8_t)fgi_rng_next(rng);
        for (int64_t k = 0; k < FGI_CODE_QUERIES * pieces * 32; k++) tables[k] = (int8_t)(fgi_rng_below(rng, 7) - 3);
        for (int k = 0; k < BLOCKS * FGI_CODE_BLOCK * FGI_CODE_PARTS; k++)
            factor[k] = (int16_t)fgi_rng_below(rng, 32768);
        a.bits = bits;
        a.factor = factor;
        for (int k = 0; k < FGI_CODE_QUERIES; k++) {
            a.tables[k] = tables + k * pieces * 32;
            a.below[k] = round % 5 ? (int16_t)(fgi_rng_below(rng, 4000) - 500) : INT16_MIN;
            for (int j = 0; j < a.parts; j++) a.less[k][j] = round % 3 ? (int16_t)(fgi_rng_below(rng, 2000) - 500) : 0;
            a.hits[k] = one[k];
            a.room[k] = ROOM;
        }
        fgi_code_query b = a;
        for (int k = 0; k < FGI_CODE_QUERIES; k++) b.hits[k] = two[k];
        const int64_t end = fgi_collect_codes_scalar(&a, 0, BLOCKS, step);
        REQUIRE(fgi_kernels_best()->collect_codes(&b, 0, BLOCKS, step) == end);
        for (int k = 0; k < a.queries; k++) {
            int64_t n = 0;
            REQUIRE(a.n[k] == b.n[k]);
            for (int64_t row = 0; row < end * FGI_CODE_BLOCK && row < BLOCKS * FGI_CODE_BLOCK; row++) {
                const int64_t block = row / FGI_CODE_BLOCK, r = row % FGI_CODE_BLOCK;
                if (block % step) continue;
                double value = -INFINITY;
                for (int j = a.first; j < a.last; j++) {
                    const int64_t at = (block * a.parts + j) * FGI_CODE_BLOCK + fgi_code_place((int)r);
                    int sum = 0;
                    for (int64_t p = j ? a.cut[j - 1] : 0; p < a.cut[j]; p++) {
                        const uint8_t both = bits[(block * pieces + p) * FGI_CODE_BLOCK + r];
                        sum += a.tables[k][p * 32 + (both & 15)] + a.tables[k][p * 32 + 16 + (both >> 4)];
                    }
                    value = fmax(value, ldexp((double)sum, a.shift) * factor[at] / 32768 - a.less[k][j]);
                }
                if (n < a.n[k] && a.hits[k][n].row == row) {
                    CHECK(a.hits[k][n].row == b.hits[k][n].row && a.hits[k][n].value == b.hits[k][n].value);
                    CHECK(fabs(value - a.hits[k][n].value) <= 0.5);
                    n++;
                } else {
                    CHECK(value <= a.below[k] + 0.5);
                }
            }
            CHECK(n == a.n[k]);
        }
        free(bits);
        free(tables);
    }
    return 0;
}

/* Rows of bytes: both versions reach the same rows, which are those that the sums say. */
static int test_bytes(fgi_rng *rng) {
    enum { BLOCKS = 6, ROWS = BLOCKS * FGI_BYTE_BLOCK };
    for (int round = 0; round < 200; round++) {
        const int64_t stride = 32 * (1 + fgi_rng_below(rng, 9));
        uint8_t *codes = fgi_alloc(ROWS * stride, 1);
        int8_t *x = fgi_alloc(FGI_BYTE_QUERIES * stride, 1);
        float factor[ROWS], error[BLOCKS], length[BLOCKS];
        REQUIRE(codes && x);
        for (int64_t k = 0; k < ROWS * stride; k++) codes[k] = (uint8_t)(round % 3 ? 1 + fgi_rng_below(rng, 255) : 255);
        for (int64_t k = 0; k < FGI_BYTE_QUERIES * stride; k++)
            x[k] = (int8_t)(round % 3 ? fgi_rng_below(rng, 127) - 63 : round % 2 ? 63 : -63);
        for (int k = 0; k < ROWS; k++) factor[k] = (float)fgi_rng_below(rng, 9);
        for (int k = 0; k < BLOCKS; k++) error[k] = length[k] = (float)fgi_rng_below(rng, 9);
        fgi_byte_scan a = {codes, stride, stride, factor, error, length, 1 + round % FGI_BYTE_QUERIES, {{0}}};
        for (int k = 0; k < a.queries; k++)
            a.q[k] = (fgi_byte_query){x + k * stride, (int32_t)fgi_rng_below(rng, 1000), 1e5f * (float)(round % 7),
                (float)fgi_rng_below(rng, 3), (float)fgi_rng_below(rng, 3), 0};
        fgi_byte_scan b = a;
        for (int64_t at = 0; at < BLOCKS; at++) {
            const int64_t next = fgi_next_bytes_scalar(&a, at, BLOCKS);
            REQUIRE(fgi_kernels_best()->next_bytes(&b, at, BLOCKS) == next);
            at = next;
            for (int k = 0; at < BLOCKS && k < a.queries; k++) {
                int32_t rows[FGI_BYTE_BLOCK];
                float one[FGI_BYTE_BLOCK], two[FGI_BYTE_BLOCK];
                const float least = a.q[k].floor - (a.q[k].by_error * error[at] + a.q[k].by_length * length[at]);
                for (int r = 0; r < FGI_BYTE_BLOCK; r++) rows[r] = (int32_t)(at * FGI_BYTE_BLOCK + r);
                fgi_guess_bytes_scalar(&a, &a.q[k], FGI_BYTE_BLOCK, rows, one);
                fgi_kernels_best()->guess_bytes(&b, &b.q[k], FGI_BYTE_BLOCK, rows, two);
                CHECK(a.q[k].reached == b.q[k].reached);
                CHECK(!memcmp(one, two, sizeof one));
                for (int r = 0; r < FGI_BYTE_BLOCK; r++) CHECK((a.q[k].reached >> r & 1) == (one[r] >= least));
            }
        }
        free(codes);
        free(x);
    }
    return 0;
}

/* ---- the best of a stream --------------------------------------------------------------------------------------- */

static int ranked(const void *a, const void *b) {
    const fgi_ranked_label *x = a, *y = b;
    if (x->value != y->value) return x->value < y->value ? 1 : -1;
    return (x->label > y->label) - (x->label < y->label);
}

static int test_top(fgi_rng *rng) {
    enum { MOST = 400 };
    fgi_ranked_label all[MOST];
    fgi_top top = {0};
    for (int round = 0; round < 300; round++) {
        const int32_t n = (int32_t)fgi_rng_below(rng, MOST + 1), want = 1 + (int32_t)fgi_rng_below(rng, 90);
        REQUIRE(fgi_top_reserve(&top, want));
        fgi_top_clear(&top, want, -INFINITY);
        for (int32_t k = 0; k < n; k++) {
            all[k] = (fgi_ranked_label){(double)fgi_rng_below(rng, 60), (k * 7 + 3) % MOST}; /* ties, out of order */
            fgi_top_offer(&top, all[k].value, all[k].label);
        }
        fgi_top_sort(&top);
        qsort(all, (size_t)n, sizeof *all, ranked);
        REQUIRE(top.n == (n < want ? n : want));
        for (int32_t k = 0; k < top.n; k++)
            CHECK(top.items[k].value == all[k].value && top.items[k].label == all[k].label);
    }
    fgi_top_free(&top);
    return 0;
}

/* ---- the index -------------------------------------------------------------------------------------------------- */

/* What an index should hold, and a batch of questions. */
typedef struct trial {
    int64_t rows, n, stride;
    int32_t d;
    float *all, *x;
    int64_t *message_begin, *excluded_begin;
    int32_t *message_labels, *excluded_labels;
    double *message_values;
} trial;

/* Every label with odds of one in `odds`; returns the new end. */
static int64_t draw_labels(fgi_rng *rng, int64_t rows, int64_t odds, int32_t *labels, int64_t at) {
    for (int64_t k = 0; odds && k < rows; k++)
        if (!fgi_rng_below(rng, odds)) labels[at++] = (int32_t)k;
    return at;
}

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

/* ---- losses ----------------------------------------------------------------------------------------------------- */

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
    if (test_dots(&rng) || test_codes(&rng) || test_bytes(&rng) || test_top(&rng) || test_refusals()) return 1;
    for (int round = 0; round < 40; round++) REQUIRE(!test_index(&rng, round));
    for (int round = 0; round < 400; round++) test_scores(&rng);
    for (int round = 0; round < 20; round++) REQUIRE(!test_batch(&rng, round));
    return failed();
}
