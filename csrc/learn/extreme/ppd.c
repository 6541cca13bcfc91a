/* learn/extreme/ppd.c - ppd-sparse over many labels: threads, results, settings. See learn/extreme/ppd_class.c. */
#include "learn/extreme/ppd.h"
#include "base/pool.h"
#include <string.h>

struct fgi_ppd {
    const fgi_extreme_data *data;
    fgi_extreme_data copy;
    fgi_ppd_settings settings;
    double *squares;
    int32_t threads;
    fgi_pool *pool;
    ppd_work *work;
};

struct fgi_ppd_columns {
    int64_t n;
    ppd_column *column;
};

static fgi_rc check_settings(const fgi_ppd_settings *settings, fgi_error *err) {
    if (settings->loss != FGI_PPD_HINGE && settings->loss != FGI_PPD_SQUARED_HINGE)
        return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "unknown loss %d", (int)settings->loss);
    if (!(settings->C > 0.0 && settings->C < INFINITY))
        return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "C must be positive and finite");
    if (!(settings->positive_weight > 0.0 && settings->positive_weight < INFINITY))
        return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "positive_weight must be positive and finite");
    if (!(settings->lambda >= 0.0 && settings->lambda < INFINITY))
        return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "lambda must be finite and not negative");
    if (!isfinite(settings->bias)) return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "the bias must be finite");
    if (!(settings->tol >= 0.0)) return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "tol must not be negative");
    if (settings->max_outer < 1 || settings->max_inner < 1)
        return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "max_outer and max_inner must be 1 or more");
    if (!(settings->admit >= 0.0 && settings->admit <= 1e6) || settings->admit_least < 1)
        return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "admit must be between 0 and 1e6, admit_least 1 or more");
    if (!(settings->sparsify >= 0.0)) return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "sparsify must not be negative");
    return FGI_OK;
}

fgi_rc fgi_ppd_create(
    const fgi_extreme_data *data, const fgi_ppd_settings *settings, int32_t threads, fgi_ppd **out, fgi_error *err) {
    fgi_rc rc = check_settings(settings, err);
    if (rc) return rc;
    if (threads < 1) return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "threads must be 1 or more");
    if (!data->column_begin || !data->positive_begin)
        return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "ppd-sparse needs the data by feature and by label, too");
    fgi_ppd *p = fgi_calloc(1, sizeof *p);
    if (!p) return fgi_no_memory(err);
    p->copy = *data;
    p->data = &p->copy;
    p->settings = *settings;
    p->threads = threads;
    p->squares = fgi_alloc(data->n_rows, sizeof(double));
    p->work = fgi_calloc(threads, sizeof *p->work);
    rc = p->squares && p->work ? FGI_OK : FGI_NO_MEMORY;
    for (int32_t t = 0; t < threads && !rc; t++) rc = ppd_work_init(&p->work[t], data);
    if (!rc && threads > 1) {
        p->pool = fgi_pool_create(threads);
        if (!p->pool) rc = FGI_NO_MEMORY;
    }
    if (rc) {
        fgi_ppd_free(p);
        return fgi_fail(err, rc, -1, "out of memory");
    }
    for (int64_t i = 0; i < data->n_rows; i++) {
        double square = 0.0;
        for (int64_t k = data->row_begin[i]; k < data->row_begin[i + 1]; k++)
            square += (double)data->row_value[k] * (double)data->row_value[k];
        p->squares[i] = square;
    }
    *out = p;
    return FGI_OK;
}

void fgi_ppd_free(fgi_ppd *p) {
    if (!p) return;
    fgi_pool_free(p->pool);
    for (int32_t t = 0; p->work && t < p->threads; t++) ppd_work_free(&p->work[t]);
    free(p->work);
    free(p->squares);
    free(p);
}

typedef struct ppd_batch {
    fgi_ppd *p;
    ppd_problem problem;
    const int32_t *labels;
    fgi_ppd_columns *columns;
    int32_t failed; /* atomic */
} ppd_batch;

static void solve_range(void *context, int64_t begin, int64_t end, int worker) {
    ppd_batch *b = context;
    for (int64_t k = begin; k < end; k++) {
        if (__atomic_load_n(&b->failed, __ATOMIC_RELAXED)) return;
        if (b->problem.stop && __atomic_load_n(b->problem.stop, __ATOMIC_RELAXED)) return;
        if (ppd_solve(&b->problem, &b->p->work[worker], b->labels[k], &b->columns->column[k]))
            __atomic_store_n(&b->failed, 1, __ATOMIC_RELAXED);
    }
}

fgi_rc fgi_ppd_train(
    fgi_ppd *p, const int32_t *labels, int64_t n, const int32_t *stop, fgi_ppd_columns **out, fgi_error *err) {
    for (int64_t k = 0; k < n; k++)
        if (labels[k] < 0 || labels[k] >= p->data->n_labels)
            return fgi_fail(err, FGI_BAD_ARGUMENT, k, "there is no label %d", (int)labels[k]);
    fgi_ppd_columns *c = fgi_calloc(1, sizeof *c);
    if (c) c->column = fgi_calloc(n, sizeof *c->column);
    if (!c || !c->column) {
        free(c);
        return fgi_no_memory(err);
    }
    c->n = n;
    ppd_batch b = {.p = p, .problem = {p->data, &p->settings, p->squares, stop}, .labels = labels, .columns = c};
    fgi_pool_run(p->pool, n, 1, solve_range, &b);
    if (b.failed) {
        fgi_ppd_columns_free(c);
        return fgi_no_memory(err);
    }
    *out = c;
    return FGI_OK;
}

void fgi_ppd_columns_free(fgi_ppd_columns *c) {
    if (!c) return;
    for (int64_t k = 0; k < c->n; k++) {
        free(c->column[k].feature);
        free(c->column[k].value);
    }
    free(c->column);
    free(c);
}

int64_t fgi_ppd_columns_weights(const fgi_ppd_columns *c) {
    int64_t sum = 0;
    for (int64_t k = 0; k < c->n; k++) sum += c->column[k].n;
    return sum;
}

void fgi_ppd_columns_get(const fgi_ppd_columns *c, int64_t *begin, int32_t *feature, float *value, float *bias,
    fgi_ppd_info *info, uint8_t *done) {
    begin[0] = 0;
    for (int64_t k = 0; k < c->n; k++) {
        const ppd_column *column = &c->column[k];
        begin[k + 1] = begin[k] + column->n;
        if (column->n) {
            memcpy(feature + begin[k], column->feature, (size_t)column->n * sizeof *feature);
            memcpy(value + begin[k], column->value, (size_t)column->n * sizeof *value);
        }
        bias[k] = column->bias;
        info[k] = column->info;
        done[k] = (uint8_t)column->done;
    }
}
