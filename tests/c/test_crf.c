/* A chain field in the core alone: log Z by enumeration, gradients by differences, threads; for the sanitizers. Kernels
 * of both kinds give the same bits. */
#include <math.h>
#include <string.h>
#include "base/masks.h"
#include "base/sums.h"
#include "check.h"
#include "fginfer_learn_crf.h"

enum { K = 3, T = 4, F = 5 };

static int test_kernels(void) {
    const fgi_sum_kernels *best = fgi_sum_kernels_best(), *plain = &fgi_sum_kernels_plain;
    double x[37], y[37], a[37], b[37], t[37 * 37];
    for (int n = 0; n <= 37; n++) {
        for (int k = 0; k < n; k++) x[k] = k % 7 == 6 ? -INFINITY : (k * 73 % 101) * 7.0 - 700;
        best->exp(x, n, 3.0, a);
        plain->exp(x, n, 3.0, b);
        REQUIRE(memcmp(a, b, (size_t)n * sizeof *a) == 0);
        for (int k = 0; k < n; k++) REQUIRE(fabs(a[k] - exp(x[k] - 3.0)) <= 1e-15 * exp(x[k] - 3.0) + 1e-306);
        for (int k = 0; k < n * n; k++) t[k] = (k * 31 % 97) / 97.0;
        best->rows(t, n, n, n, a, x);
        plain->rows(t, n, n, n, b, y);
        REQUIRE(memcmp(x, y, (size_t)n * sizeof *x) == 0);
        REQUIRE(best->sum(a, n) == plain->sum(a, n));
        REQUIRE(best->max(a, n) == plain->max(a, n));
        REQUIRE(best->min(a, n) == plain->min(a, n));
    }
    return 0;
}

/* Kernels that change what they read: every number of columns, so that all leftovers occur, and nothing behind them. */
static int test_updates(void) {
    const fgi_sum_kernels *both[] = {fgi_sum_kernels_best(), &fgi_sum_kernels_plain};
    enum { MOST = 67, ROWS = 5 };
    const int32_t at[] = {3, 0, 3, 4, 1};
    const double weight[] = {0.3, -2, 0, 1.7, 0.1};
    for (int n = 0; n <= MOST; n++) {
        double out[2][6][MOST + 1], t[2][ROWS * (MOST + 1)];
        for (int which = 0; which < 2; which++) {
            const fgi_sum_kernels *k = both[which];
            double x[MOST + 1];
            for (int i = 0; i <= MOST; i++) x[i] = (i * 37 % 41) / 41.0 - 0.4;
            for (int i = 0; i < ROWS * (MOST + 1); i++) t[which][i] = (i * 31 % 97) / 97.0;
            for (int i = 0; i < 6; i++) memcpy(out[which][i], x, sizeof x);
            k->exp(out[which][0], n, 0.5, out[which][0]);
            k->axpy(n, 0.7, t[which], out[which][1]);
            k->gather(t[which], n, at, weight, ROWS, out[which][2]);
            k->gather(t[which], n, at, NULL, ROWS, out[which][3]);
            k->rows(t[which], n, ROWS, n, weight, out[which][4]);
            k->outer(t[which], n + 1, ROWS, n, weight, x);
            for (int i = 0; i < 6; i++) REQUIRE(out[which][i][n] == x[n]);
        }
        REQUIRE(memcmp(out[0], out[1], sizeof out[0]) == 0);
        REQUIRE(memcmp(t[0], t[1], sizeof t[0]) == 0);
        double sum = -0.4; /* column 0, from the definition */
        for (int e = 0; n && e < ROWS; e++) sum += weight[e] * ((at[e] * n * 31 % 97) / 97.0);
        REQUIRE(!n || out[0][2][0] == sum);
    }
    return 0;
}

static int test_masks(void) {
    enum { WORDS = 9, N = 13 };
    const fgi_mask_kernels *const *all = fgi_mask_kernels_all();
    uint64_t words[WORDS] = {0, UINT64_MAX};
    int32_t at[N];
    double x[N], value[FGI_MASK_PLACES];
    for (int k = 2; k < WORDS; k++) words[k] = words[k - 1] * UINT64_C(6364136223846793005) + 1442695040888963407u;
    for (int k = 0; k < N; k++) at[k] = k * 5 % WORDS, x[k] = (k * 37 % 41) / 41.0 - 0.4;
    for (int p = 0; p < FGI_MASK_PLACES; p++) value[p] = (p * 31 % 97) / 97.0 - 0.3;
    for (int n = 0; n <= N; n++) {
        double first[FGI_MASK_PLACES], lanes[N * FGI_MASK_LANES] = {0};
        for (int p = 0; p < FGI_MASK_PLACES; p++) {
            first[p] = 0;
            for (int k = 0; k < n; k++)
                if (words[at[k]] >> p & 1) first[p] += x[k], lanes[k * FGI_MASK_LANES + p % FGI_MASK_LANES] += value[p];
        }
        for (int which = 0; all[which]; which++) {
            double out[FGI_MASK_PLACES], sums[N * FGI_MASK_LANES] = {0};
            all[which]->spread(words, at, x, n, out);
            all[which]->collect(words, at, n, value, sums);
            REQUIRE(memcmp(out, first, sizeof out) == 0);
            REQUIRE(memcmp(sums, lanes, sizeof sums) == 0);
        }
    }
    return 0;
}

static int test_nbest(void) {
    const double scores[] = {0, 1, 2, -INFINITY, 0.5, 0}, table[] = {0, 1, 0, 3};
    const int64_t which[] = {0, 0};
    int32_t labels[8 * 3];
    double values[8];
    int64_t found;
    fgi_error err;
    REQUIRE(fgi_crf_nbest(3, 2, scores, table, which, 8, labels, values, &found, &err) == FGI_OK);
    REQUIRE(found == 4 && values[0] == 1 + 0 + 2 + 1 + 0 && labels[0] == 1 && labels[1] == 0 && labels[2] == 1);
    REQUIRE(fgi_crf_nbest(3, 2, scores, NULL, NULL, 1, labels, values, &found, &err) == FGI_OK);
    REQUIRE(found == 1 && values[0] == 3.5 && labels[2] == 0);
    REQUIRE(fgi_crf_nbest(3, 1 << 20, scores, NULL, NULL, 1 << 20, labels, values, &found, &err) == FGI_NO_MEMORY);
    REQUIRE(fgi_crf_nbest(0, 2, scores, NULL, NULL, 1, labels, values, &found, &err) == FGI_BAD_ARGUMENT);
    return 0;
}

static double value(fgi_crf *c, const double *w) {
    double loss;
    fgi_error err;
    return fgi_crf_value(c, w, NULL, 0, &loss, &err) == FGI_OK ? loss : NAN;
}

/* ones: without values, so that frequent features become words of bits. */
static int test_chain(int candidates, int ones, int threads, int64_t memory, double prune) {
    const int64_t token_begin[] = {0, T, T + 1}, row_begin[] = {0, 2, 3, 5, 5, 6};
    const int32_t feature[] = {0, 3, 1, 2, 4, 4}, truth[] = {0, 2, 1, 1, 2};
    const double values[] = {1, -0.5, 2, 1, 0.25, 1};
    const int64_t choice_begin[] = {0, 2, 3, 6, 8, 9};
    const int32_t choice[] = {0, 1, 2, 0, 1, 2, 1, 2, 2};
    fgi_learn_data d = {.kind = FGI_LEARN_LABELS,
        .edges = FGI_EDGES_CHAIN,
        .n_examples = 2,
        .token_begin = token_begin,
        .n_features = F,
        .n_labels = K,
        .row_begin = row_begin,
        .feature = feature,
        .value = ones ? NULL : values,
        .truth = truth,
        .n_edge_features = 1};
    if (candidates) d.choice_begin = choice_begin, d.choice = choice;
    fgi_crf_settings s = {threads, 0, memory, 0, NULL, NULL, prune};
    fgi_crf *c;
    fgi_error err;
    REQUIRE(fgi_crf_create(&d, &s, &c, &err) == FGI_OK);
    double w[F * K + K * K], g[F * K + K * K], some[3];
    REQUIRE(fgi_crf_dimension(c) == F * K + K * K);
    for (int j = 0; j < F * K + K * K; j++) w[j] = (j * 37 % 11) / 5.0 - 1;
    REQUIRE(isfinite(value(c, w)));
    REQUIRE(fgi_crf_gradient(c, w, NULL, 0, g, &err) == FGI_OK);
    for (int j = 0; j < F * K + K * K; j++) {
        double v[F * K + K * K];
        memcpy(v, w, sizeof v);
        v[j] += 1e-5;
        const double up = value(c, v);
        v[j] -= 2e-5;
        REQUIRE(fabs((up - value(c, v)) / 2e-5 - g[j]) < 1e-6);
    }
    const int64_t set[] = {1, 7, F * K + 4};
    value(c, w);
    REQUIRE(fgi_crf_gradient(c, w, set, 3, some, &err) == FGI_OK);
    for (int k = 0; k < 3; k++) REQUIRE(fabs(some[k] - g[set[k]]) < 1e-12);
    REQUIRE(fgi_crf_curvature(c, w, set, 3, some, &err) == FGI_OK);
    for (int k = 0; k < 3; k++) REQUIRE(some[k] >= 0);
    double cells[(T + 1) * K], log_z[2], pairs[(T - 1) * K * K] = {0}, total = 0;
    REQUIRE(fgi_crf_marginals(c, w, log_z, NULL, cells, pairs, &err) == FGI_OK);
    for (int k = 0; k < (T - 1) * K * K; k++) total += pairs[k];
    REQUIRE(fabs(total - (T - 1)) < 1e-9);
    fgi_crf_free(c);
    return 0;
}

/* A taxonomy with many labels and few weights: sums over the nodes that are touched, over all of them where digits
 * would be lost, and with too little memory over the cells. */
static int test_touched(int threads, int64_t memory, double scale) {
    enum { LEAVES = 70, INNER = 4, NODES = INNER + LEAVES, ROWS = 6, WORDS = 3 };
    const int64_t token_begin[] = {0, 1, 2, 3, 4, 5, 6}, row_begin[] = {0, 2, 4, 5, 7, 10, 11};
    const int32_t feature[] = {0, 2, 1, 2, 2, 0, 2, 0, 1, 2, 2}, truth[] = {0, 69, 3, 3, 12, 40};
    const double weight[] = {1, 2, 0.5, 1, 1, 0};
    int32_t parent[NODES] = {-1, 0, 0, -1};
    for (int y = 0; y < LEAVES; y++) parent[INNER + y] = y % 5 - 1;
    const fgi_learn_data d = {.kind = FGI_LEARN_LABELS,
        .edges = FGI_EDGES_NONE,
        .n_examples = ROWS,
        .token_begin = token_begin,
        .n_features = WORDS,
        .n_labels = LEAVES,
        .row_begin = row_begin,
        .feature = feature,
        .truth = truth};
    const fgi_crf_settings s = {threads, 0, memory, INNER, parent, weight, 0};
    fgi_crf *c;
    fgi_error err;
    REQUIRE(fgi_crf_create(&d, &s, &c, &err) == FGI_OK);
    double w[WORDS * NODES] = {0}, g[WORDS * NODES], some[2];
    for (int n = 0; n < NODES; n++) w[2 * NODES + n] = (n * 37 % 11) / 5.0;
    w[1] = -scale, w[7] = scale, w[NODES + 3] = 0.5, w[NODES + 60] = scale;
    REQUIRE(isfinite(value(c, w)));
    REQUIRE(fgi_crf_gradient(c, w, NULL, 0, g, &err) == FGI_OK);
    const int64_t set[] = {7, 2 * NODES + 1};
    REQUIRE(fgi_crf_gradient(c, w, set, 2, some, &err) == FGI_OK);
    REQUIRE(fabs(some[0] - g[7]) < 1e-12 && fabs(some[1] - g[2 * NODES + 1]) < 1e-12);
    REQUIRE(fgi_crf_curvature(c, w, set, 2, some, &err) == FGI_OK && some[0] >= 0 && some[1] >= 0);
    double told[WORDS * NODES], loss; /* a value that is told where w is not zero keeps the derivatives there */
    int64_t nonzero[WORDS * NODES], n = 0;
    for (int j = 0; j < WORDS * NODES; j++)
        if (w[j] != 0 || j % 9 == 0) nonzero[n++] = j;
    REQUIRE(fgi_crf_value(c, w, nonzero, n, &loss, &err) == FGI_OK && fabs(loss - value(c, w)) < 1e-12 * fabs(loss));
    REQUIRE(fgi_crf_value(c, w, nonzero, n, &loss, &err) == FGI_OK);
    REQUIRE(fgi_crf_gradient(c, w, nonzero, n, told, &err) == FGI_OK);
    for (int64_t k = 0; k < n; k++) REQUIRE(fabs(told[k] - g[nonzero[k]]) < 1e-12 * (1 + fabs(g[nonzero[k]])));
    REQUIRE(fgi_crf_gradient(c, w, set, 2, some, &err) == FGI_OK);
    REQUIRE(fabs(some[0] - g[7]) < 1e-12 && fabs(some[1] - g[2 * NODES + 1]) < 1e-12);
    for (int j = 0; j < WORDS * NODES; j++) {
        const double before = w[j];
        w[j] = before + 1e-5;
        const double up = value(c, w);
        w[j] = before - 1e-5;
        REQUIRE(fabs((up - value(c, w)) / 2e-5 - g[j]) < 1e-6);
        w[j] = before;
    }
    fgi_crf_free(c);
    return 0;
}

/* More labels than are added row by row, and lists that recur: sums by kinds of edges. Scores of some `size` are too
 * large for anything but logs. */
static int test_kinds(int threads, int64_t memory, double size) {
    enum { LABELS = 70, WORDS = 40, PLACES = 4, TOKENS = WORDS * PLACES };
    static const int32_t list[3][4] = {{1, 5, 9}, {2, 40}, {3, 9, 66, 69}};
    static const int length[3] = {3, 2, 4};
    static double w[2 * LABELS + LABELS * LABELS], g[2 * LABELS + LABELS * LABELS];
    int64_t begin[WORDS + 1], row[TOKENS + 1], cell[TOKENS + 1] = {0}, some[5];
    int32_t truth[TOKENS], feature[TOKENS], choice[TOKENS * 4], which[TOKENS];
    for (int i = 0; i <= WORDS; i++) begin[i] = i * PLACES;
    for (int t = 0; t <= TOKENS; t++) row[t] = t;
    for (int t = 0; t < TOKENS; t++) {
        const int l = which[t] = (t * 7 + t / 5) % 3;
        cell[t + 1] = cell[t] + length[l];
        memcpy(choice + cell[t], list[l], (size_t)length[l] * sizeof **list);
        truth[t] = list[l][t % length[l]];
        feature[t] = t % 2;
    }
    fgi_learn_data d = {.kind = FGI_LEARN_LABELS,
        .edges = FGI_EDGES_CHAIN,
        .n_labels = LABELS,
        .n_features = 2,
        .n_edge_features = 1,
        .n_examples = WORDS,
        .token_begin = begin,
        .row_begin = row,
        .feature = feature,
        .truth = truth,
        .choice_begin = cell,
        .choice = choice};
    fgi_crf_settings s = {.threads = threads, .memory = memory};
    fgi_crf *c;
    fgi_error err;
    REQUIRE(fgi_crf_create(&d, &s, &c, &err) == FGI_OK);
    memset(w, 0, sizeof w);
    const int64_t pair[] = {1 * LABELS + 2, 5 * LABELS + 40, 9 * LABELS + 9, 40 * LABELS + 66, 66 * LABELS + 1};
    for (int k = 0; k < 5; k++) w[some[k] = 2 * LABELS + pair[k]] = size * (k % 2 ? -1 : 1) * (k + 1);
    for (int k = 0; k < 2 * LABELS; k++) w[k] = (k * 37 % 41) / 20.0 - 1;
    double expected = 0;
    for (int i = 0; i < WORDS; i++) {
        double own[4], next[4], score = 0, top = -INFINITY, sum = 0;
        for (int t = begin[i]; t < begin[i + 1]; t++) {
            const int l = which[t], m = t > begin[i] ? which[t - 1] : -1;
            score += w[feature[t] * LABELS + truth[t]];
            if (m >= 0) score += w[2 * LABELS + truth[t - 1] * LABELS + truth[t]];
            for (int b = 0; b < length[l]; b++) {
                double most = m < 0 ? 0 : -INFINITY, all = m < 0;
                for (int a = 0; m >= 0 && a < length[m]; a++)
                    most = fmax(most, own[a] + w[2 * LABELS + list[m][a] * LABELS + list[l][b]]);
                for (int a = 0; m >= 0 && a < length[m]; a++)
                    all += exp(own[a] + w[2 * LABELS + list[m][a] * LABELS + list[l][b]] - most);
                next[b] = most + log(all) + w[feature[t] * LABELS + list[l][b]];
            }
            memcpy(own, next, sizeof own);
        }
        const int l = which[begin[i + 1] - 1];
        for (int b = 0; b < length[l]; b++) top = fmax(top, own[b]);
        for (int b = 0; b < length[l]; b++) sum += exp(own[b] - top);
        expected += top + log(sum) - score;
    }
    REQUIRE(fabs(value(c, w) - expected) < 1e-10 * fabs(expected));
    REQUIRE(fgi_crf_gradient(c, w, NULL, 0, g, &err) == FGI_OK);
    double told[5];
    REQUIRE(fgi_crf_gradient(c, w, some, 5, told, &err) == FGI_OK); /* from the sums of all */
    for (int k = 0; k < 5; k++) REQUIRE(fabs(told[k] - g[some[k]]) < 1e-9);
    value(c, w);
    REQUIRE(fgi_crf_gradient(c, w, some, 5, told, &err) == FGI_OK); /* from their own */
    for (int k = 0; k < 5; k++) REQUIRE(fabs(told[k] - g[some[k]]) < 1e-9);
    for (int k = 0; k < 5 && size < 100; k++) {
        const double before = w[some[k]];
        w[some[k]] = before + 1e-5;
        const double up = value(c, w);
        w[some[k]] = before - 1e-5;
        REQUIRE(fabs((up - value(c, w)) / 2e-5 - told[k]) < 1e-6);
        w[some[k]] = before;
    }
    fgi_crf_free(c);
    return 0;
}

int main(void) {
    fgi_crf_free(NULL);
    if (test_kernels() || test_updates() || test_masks() || test_nbest()) return 1;
    for (int threads = 1; threads < 4; threads += 2)
        for (int little = 0; little < 2; little++)
            if (test_touched(threads, little ? 8 : 1 << 20, 1.5) || test_touched(threads, little ? 8 : 1 << 20, 400))
                return 1;
    for (int threads = 1; threads < 4; threads += 2)
        for (int little = 0; little < 2; little++)
            if (test_kinds(threads, little ? 64 : 1 << 20, 0.7) || test_kinds(threads, little ? 64 : 1 << 20, 300))
                return 1;
    for (int candidates = 0; candidates < 2; candidates++)
        for (int threads = 1; threads < 4; threads += 2)
            for (int prune = 0; prune <= !candidates; prune++)
                for (int ones = 0; ones < 2; ones++)
                    if (test_chain(candidates, ones, threads, 1 << 20, 1e-9 * prune) ||
                        test_chain(candidates, ones, threads, 8, 1e-9 * prune))
                        return 1;
    return 0;
}
