/* learn/extreme/pd_state.c - what pd-sparse has reached: losses, bound, weights; and its state for checkpoints. */
#include "learn/extreme/pd.h"
#include <string.h>

/* ---- losses ---------------------------------------------------------------------------------------------------- */

typedef struct loss_job {
    fgi_pd *p;
    int64_t first;
    double *loss;
    int32_t failed; /* atomic */
} loss_job;

static void losses_of(void *context, int64_t begin, int64_t end, int worker) {
    loss_job *j = context;
    for (int64_t k = begin; k < end; k++) {
        const int64_t row = j->first + k;
        const pd_block *b = &j->p->blocks[row];
        fgi_argmax found = {-1, -INFINITY};
        if (pd_ask(j->p, &j->p->askers[worker], row, 0, 1, FGI_BY_SCAN, &found))
            __atomic_store_n(&j->failed, 1, __ATOMIC_RELAXED);
        double lowest = INFINITY;
        for (int32_t l = 0; l < pd_own(j->p, row); l++) lowest = fgi_smaller(lowest, pd_score(j->p, row, b->label[l]));
        j->loss[k] = found.state < 0 ? 0.0 : fgi_larger(0.0, 1.0 + found.value - lowest);
    }
}

fgi_rc fgi_pd_losses(fgi_pd *p, int64_t first, int64_t last, double *loss, fgi_error *err) {
    if (first < 0 || last < first || last > p->data.n_rows)
        return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "rows out of range");
    loss_job j = {p, first, fgi_alloc(last - first, sizeof(double)), 0};
    if (!j.loss) return fgi_no_memory(err);
    const int64_t before = fgi_oracle_scratch_work(p->askers[0].scratch).products;
    fgi_pool_run(p->pool, last - first, 16, losses_of, &j);
    p->visits_touched -= fgi_oracle_scratch_work(p->askers[0].scratch).products - before; /* measuring is not counted */
    fgi_sum sum = {0};
    for (int64_t k = 0; k < last - first; k++) fgi_sum_add(&sum, j.loss[k]);
    free(j.loss);
    if (j.failed) return fgi_no_memory(err);
    *loss = fgi_sum_value(&sum);
    return FGI_OK;
}

/* ---- sums ------------------------------------------------------------------------------------------------------ */

void fgi_pd_get_info(fgi_pd *p, fgi_pd_info *info) {
    fgi_sum square = {0}, l1 = {0}, linear = {0}, gaps = {0};
    memset(info, 0, sizeof *info);
    info->memory = fgi_products_memory(p->w);
    for (int64_t j = 0; j < p->data.n_features; j++) {
        const int32_t *labels;
        const double *values;
        const int32_t n = fgi_products_row(p->w, (int32_t)j, &labels, &values);
        for (int32_t k = 0; k < n; k++) {
            fgi_sum_add(&square, values[k] * values[k]);
            fgi_sum_add(&l1, fabs(values[k]));
        }
        info->weights += n;
        info->combined += p->v[j].n;
        if (p->v[j].entries) info->memory += (int64_t)sizeof(hash_entry) << p->v[j].bits;
    }
    for (int64_t i = 0; i < p->data.n_rows; i++) {
        const pd_block *b = &p->blocks[i];
        for (int32_t k = 0; k < b->n; k++) {
            info->active += b->alpha[k] != 0.0;
            if (k >= pd_own(p, i)) fgi_sum_add(&linear, b->alpha[k]);
        }
        fgi_sum_add(&gaps, p->gaps[i]);
        info->memory += b->room * (int64_t)(sizeof(int32_t) + sizeof(double));
    }
    info->squared_norm = fgi_sum_value(&square);
    info->l1_norm = fgi_sum_value(&l1);
    info->dual = -fgi_sum_value(&linear) - 0.5 * info->squared_norm;
    info->gap_estimate = fgi_sum_value(&gaps);
    info->searches = p->searches;
    info->touched = p->visits_touched;
    const fgi_oracle_work work = fgi_oracle_scratch_work(p->askers[0].scratch);
    info->touched += work.products;
    info->rng = p->rng.state;
}

void fgi_pd_weights(const fgi_pd *p, int64_t *begin, int32_t *label, float *value) {
    begin[0] = 0;
    for (int64_t j = 0; j < p->data.n_features; j++) {
        const int32_t *labels;
        const double *values;
        const int32_t n = fgi_products_row(p->w, (int32_t)j, &labels, &values);
        for (int32_t k = 0; k < n; k++) {
            label[begin[j] + k] = labels[k];
            value[begin[j] + k] = (float)values[k];
        }
        begin[j + 1] = begin[j] + n;
    }
}

/* ---- checkpoints ----------------------------------------------------------------------------------------------- */

int64_t fgi_pd_export_size(const fgi_pd *p, int64_t *combined) {
    int64_t n = 0;
    *combined = 0;
    for (int64_t i = 0; i < p->data.n_rows; i++) n += p->blocks[i].n;
    for (int64_t j = 0; j < p->data.n_features; j++) *combined += p->v[j].n;
    return n;
}

void fgi_pd_export(const fgi_pd *p, int64_t *row_begin, int32_t *labels, double *alpha, int64_t *begin,
    int32_t *combined_label, double *combined_value, double *gaps) {
    row_begin[0] = begin[0] = 0;
    for (int64_t i = 0; i < p->data.n_rows; i++) {
        const pd_block *b = &p->blocks[i];
        memcpy(labels + row_begin[i], b->label, (size_t)b->n * sizeof *labels);
        memcpy(alpha + row_begin[i], b->alpha, (size_t)b->n * sizeof *alpha);
        row_begin[i + 1] = row_begin[i] + b->n;
        gaps[i] = p->gaps[i];
    }
    for (int64_t j = 0; j < p->data.n_features; j++) {
        const hash_row *r = &p->v[j];
        begin[j + 1] = begin[j];
        for (int64_t k = 0; r->entries && k < (int64_t)1 << r->bits; k++) {
            if (r->entries[k].label < 0) continue;
            combined_label[begin[j + 1]] = r->entries[k].label;
            combined_value[begin[j + 1]++] = r->entries[k].value;
        }
    }
}

static fgi_rc bad(fgi_error *err) { return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "the saved state fits other data"); }

static fgi_rc import_block(
    fgi_pd *p, int64_t row, const int32_t *labels, const double *alpha, int64_t n, fgi_error *err) {
    pd_block *b = &p->blocks[row];
    const int32_t own = pd_own(p, row);
    if (n < own || n > p->data.n_labels || memcmp(labels, b->label, (size_t)own * sizeof *labels) != 0) return bad(err);
    for (int64_t k = 0; k < n; k++)
        if (labels[k] < 0 || labels[k] >= p->data.n_labels || !isfinite(alpha[k]) ||
            (k < own ? alpha[k] < 0.0 : alpha[k] > 0.0))
            return bad(err);
    if (!pd_block_reserve(b, (int32_t)n)) return fgi_no_memory(err);
    memcpy(b->label, labels, (size_t)n * sizeof *labels);
    memcpy(b->alpha, alpha, (size_t)n * sizeof *alpha);
    b->n = (int32_t)n;
    return FGI_OK;
}

fgi_rc fgi_pd_import(fgi_pd *p, const int64_t *row_begin, const int32_t *labels, const double *alpha,
    const int64_t *begin, const int32_t *combined_label, const double *combined_value, const double *gaps,
    const fgi_pd_info *info, fgi_error *err) {
    fgi_rc rc = FGI_OK;
    for (int64_t i = 0; i < p->data.n_rows && !rc; i++) {
        if (row_begin[i + 1] < row_begin[i] || !isfinite(gaps[i])) return bad(err);
        rc = import_block(p, i, labels + row_begin[i], alpha + row_begin[i], row_begin[i + 1] - row_begin[i], err);
        p->gaps[i] = gaps[i];
    }
    for (int64_t j = 0; j < p->data.n_features && !rc; j++) {
        const int32_t feature = (int32_t)j;
        for (int64_t k = begin[j]; k < begin[j + 1] && !rc; k++) {
            if (combined_label[k] < 0 || combined_label[k] >= p->data.n_labels || !isfinite(combined_value[k]))
                return bad(err);
            double *v = hash_row_at(&p->v[j], combined_label[k]);
            if (!v) return fgi_no_memory(err);
            *v = combined_value[k];
            const double w = fgi_soft(*v, p->settings.lambda);
            if (w != 0.0) rc = fgi_products_set(p->w, 1, &combined_label[k], &feature, &w, err);
        }
    }
    p->rng.state = info->rng;
    p->searches = info->searches;
    p->visits_touched = info->touched;
    return rc;
}
