/* learn/extreme/predict.c - the best labels of rows, by weights stored by feature.
 *
 * A score is bias + sum over the row's features, in their order, of value * weight, in double: it does not depend on
 * threads, on k, or on which labels are asked for. Labels that no feature touches have their bias for a score; the best
 * of them are found by walking down the labels in order of bias. */
#include "base/pool.h"
#include "base/util.h"
#include "fginfer_extreme.h"

typedef struct scorer {
    double *score; /* n_labels, 0 outside `seen` */
    uint8_t *is_seen;
    int32_t *seen; /* n_labels + 1 */
    int64_t n_seen, touched;
    int damaged; /* a weight of a label that is not there: mapped files are not read before they are used */
} scorer;

typedef struct job {
    const fgi_extreme_weights *w;
    const int64_t *row_begin;
    const int32_t *row_feature;
    const float *row_value;
    int32_t k;
    const int32_t *chosen;
    int64_t n_chosen;
    int32_t *labels;
    float *scores;
    scorer *scorers;
} job;

static void score_row(const job *j, scorer *task, int64_t row) {
    const fgi_extreme_weights *w = j->w;
    for (int64_t p = j->row_begin[row]; p < j->row_begin[row + 1]; p++) {
        const int64_t f = j->row_feature[p];
        if (f < 0 || f >= w->n_features) continue;
        const double x = j->row_value[p];
        const int64_t end = w->begin[f + 1];
        for (int64_t q = w->begin[f]; q < end; q++) {
            const int32_t label = w->label[q];
            if ((uint32_t)label >= (uint32_t)w->n_labels) {
                task->damaged = 1;
                break;
            }
            task->score[label] += x * (double)w->value[q];
            task->seen[task->n_seen] = label;
            task->n_seen += !task->is_seen[label];
            task->is_seen[label] = 1;
        }
        task->touched += end - w->begin[f];
    }
}

static void forget(scorer *task) {
    for (int64_t k = 0; k < task->n_seen; k++) {
        task->score[task->seen[k]] = 0.0;
        task->is_seen[task->seen[k]] = 0;
    }
    task->n_seen = 0;
}

static int better(float a, int32_t label_a, float b, int32_t label_b) { return a > b || (a == b && label_a < label_b); }

/* Keeps the best `k` of what it is offered, in order; *n of them so far. */
static void insert(int32_t *labels, float *scores, int32_t *n, int32_t k, int32_t label, float score) {
    if (*n == k && !better(score, label, scores[k - 1], labels[k - 1])) return;
    int32_t place = *n < k ? (*n)++ : k - 1;
    for (; place > 0 && better(score, label, scores[place - 1], labels[place - 1]); place--) {
        labels[place] = labels[place - 1];
        scores[place] = scores[place - 1];
    }
    labels[place] = label;
    scores[place] = score;
}

static void topk_range(void *context, int64_t begin, int64_t end, int worker) {
    const job *j = context;
    const fgi_extreme_weights *w = j->w;
    scorer *task = &j->scorers[worker];
    for (int64_t row = begin; row < end; row++) {
        int32_t *labels = j->labels + row * j->k, n = 0;
        float *scores = j->scores + row * j->k;
        score_row(j, task, row);
        for (int64_t q = 0; q < task->n_seen; q++) {
            const int32_t label = task->seen[q];
            insert(labels, scores, &n, j->k, label, (float)(task->score[label] + (double)w->bias[label]));
        }
        /* Only the first k untouched labels by bias can matter. */
        int32_t taken = 0;
        for (int64_t q = 0; q < w->n_labels && taken < j->k; q++) {
            const int32_t label = w->bias_order[q];
            if (task->is_seen[label]) continue;
            if (n == j->k && !better(w->bias[label], label, scores[n - 1], labels[n - 1])) break;
            insert(labels, scores, &n, j->k, label, w->bias[label]);
            taken++;
        }
        forget(task);
    }
}

static void chosen_range(void *context, int64_t begin, int64_t end, int worker) {
    const job *j = context;
    scorer *task = &j->scorers[worker];
    for (int64_t row = begin; row < end; row++) {
        score_row(j, task, row);
        for (int64_t c = 0; c < j->n_chosen; c++) {
            const int32_t label = j->chosen[c];
            j->scores[row * j->n_chosen + c] = (float)(task->score[label] + (double)j->w->bias[label]);
        }
        forget(task);
    }
}

static fgi_rc run(job *j, int64_t n_rows, int32_t threads, fgi_body body, int64_t *touched, fgi_error *err) {
    if (threads < 1) return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "threads must be 1 or more");
    fgi_rc rc = FGI_OK;
    fgi_pool *pool = NULL;
    if (threads > n_rows) threads = n_rows > 0 ? (int32_t)n_rows : 1;
    j->scorers = fgi_calloc(threads, sizeof *j->scorers);
    if (!j->scorers) return fgi_no_memory(err);
    for (int32_t t = 0; t < threads; t++) {
        j->scorers[t].score = fgi_calloc(j->w->n_labels, sizeof(double));
        j->scorers[t].is_seen = fgi_calloc(j->w->n_labels, 1);
        j->scorers[t].seen = fgi_alloc(j->w->n_labels + 1, sizeof(int32_t));
        if (!j->scorers[t].score || !j->scorers[t].is_seen || !j->scorers[t].seen) rc = FGI_NO_MEMORY;
    }
    if (!rc && threads > 1) {
        pool = fgi_pool_create(threads);
        if (!pool) rc = FGI_NO_MEMORY;
    }
    if (!rc) fgi_pool_run(pool, n_rows, 16, body, j);
    fgi_pool_free(pool);
    int damaged = 0;
    if (touched) *touched = 0;
    for (int32_t t = 0; t < threads; t++) {
        if (touched) *touched += j->scorers[t].touched;
        damaged |= j->scorers[t].damaged;
        free(j->scorers[t].score);
        free(j->scorers[t].is_seen);
        free(j->scorers[t].seen);
    }
    free(j->scorers);
    if (damaged)
        return fgi_fail(err, FGI_BAD_MODEL, -1, "damaged weights: there is one of a label that does not exist");
    return rc ? fgi_fail(err, rc, -1, "out of memory") : FGI_OK;
}

fgi_rc fgi_extreme_topk(const fgi_extreme_weights *w, int64_t n_rows, const int64_t *row_begin,
    const int32_t *row_feature, const float *row_value, int32_t k, int32_t threads, int32_t *labels, float *scores,
    int64_t *touched, fgi_error *err) {
    if (k < 1 || k > w->n_labels)
        return fgi_fail(
            err, FGI_BAD_ARGUMENT, -1, "k must be between 1 and the number of labels, %lld", (long long)w->n_labels);
    job j = {w, row_begin, row_feature, row_value, k, NULL, 0, labels, scores, NULL};
    return run(&j, n_rows, threads, topk_range, touched, err);
}

fgi_rc fgi_extreme_scores(const fgi_extreme_weights *w, int64_t n_rows, const int64_t *row_begin,
    const int32_t *row_feature, const float *row_value, const int32_t *chosen, int64_t n_chosen, int32_t threads,
    float *scores, fgi_error *err) {
    for (int64_t c = 0; c < n_chosen; c++)
        if (chosen[c] < 0 || chosen[c] >= w->n_labels)
            return fgi_fail(err, FGI_BAD_ARGUMENT, c, "there is no label %d", (int)chosen[c]);
    job j = {w, row_begin, row_feature, row_value, 0, chosen, n_chosen, NULL, scores, NULL};
    return run(&j, n_rows, threads, chosen_range, NULL, err);
}
