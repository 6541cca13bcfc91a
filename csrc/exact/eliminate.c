/* exact/eliminate.c - the public handles of bucket elimination: a whole model, and a subset given the rest. See
 * fginfer_exact.h. */
#include <string.h>
#include "exact/eliminate.h"
#include "fginfer_exact.h"

struct fgi_eliminate {
    fgi_model *model;
    fgi_engine *engine;
    fgi_eliminate_info info;
    double memory_limit;
};

enum { LOG2_CAP = 48 }; /* no table is ever this large; keeps sizes within int64 */

void fgi_eliminate_free(fgi_eliminate *e) {
    if (!e) return;
    fgi_engine_free(e->engine);
    fgi_model_free(e->model);
    free(e);
}

/* Steps that building the graph will take; beyond the effort it is not even tried. */
static double graph_steps(const fgi_structure *s) {
    double steps = (double)s->n_vars;
    if (!s->var_begin) return steps + 4.0 * (double)s->n_factors;
    for (int64_t f = 0; f < s->n_factors; f++) steps += (double)fgi_factor_arity(s, f) * fgi_factor_arity(s, f);
    return steps;
}

fgi_rc fgi_eliminate_create(const fgi_model *m, double memory, double effort, fgi_eliminate **out, fgi_error *err) {
    if (!(memory >= 0)) return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "the memory limit must be >= 0 bytes");
    fgi_eliminate *e = fgi_calloc(1, sizeof *e);
    if (!e) return fgi_fail(err, FGI_NO_MEMORY, -1, "out of memory");
    e->model = fgi_model_snapshot(m);
    e->memory_limit = memory;
    e->info.width = -1;
    e->info.memory = e->info.work = e->info.value = INFINITY;
    if (!(effort > 0)) effort = 2e7;
    fgi_rc rc = FGI_NO_MEMORY;
    if (!e->model) goto fail;
    if (graph_steps(m->s) <= effort) {
        if (!(e->engine = fgi_engine_create(e->model))) goto fail;
        if ((rc = fgi_engine_pose(e->engine, NULL, NULL, 0, -INFINITY))) goto fail;
        /* The joint table of a bucket is never stored, only its message: one variable less. */
        double log2_limit = log2(fmax(memory, 8) / 8) + log2(m->s->max_card > 1 ? m->s->max_card : 2);
        rc = fgi_engine_order(e->engine, fmin(log2_limit, LOG2_CAP), effort);
        if (rc == FGI_NO_MEMORY) goto fail;
        if (rc == FGI_OK) {
            e->info.width = fgi_engine_bags(e->engine)->width;
            e->info.work = fgi_engine_bags(e->engine)->work;
            e->info.memory = fgi_engine_memory(e->engine);
        }
    }
    *out = e;
    return FGI_OK;
fail:
    fgi_eliminate_free(e);
    return fgi_fail(err, rc, -1, "out of memory");
}

void fgi_eliminate_info_get(const fgi_eliminate *e, fgi_eliminate_info *info) { *info = e->info; }

fgi_rc fgi_eliminate_run(fgi_eliminate *e, double seconds, fgi_eliminate_info *info, fgi_error *err) {
    fgi_rc rc = FGI_OK;
    if (e->info.memory > e->memory_limit) {
        rc = e->info.width < 0 ? fgi_fail(err, FGI_UNSUPPORTED, -1,
                                     "no elimination order fits the memory limit of %.0f bytes", e->memory_limit)
                               : fgi_fail(err, FGI_UNSUPPORTED, -1,
                                     "elimination of width %d needs %.0f bytes, more than the limit of %.0f",
                                     e->info.width, e->info.memory, e->memory_limit);
    } else if (e->info.status == FGI_RUNNING) {
        int done = 0;
        rc = fgi_engine_run(e->engine, 0, seconds < 0 ? INFINITY : fgi_clock() + seconds, &done);
        if (rc) fgi_fail(err, rc, -1, "out of memory");
        e->info.done = fgi_engine_progress(e->engine);
        if (!rc && done) {
            double value = fgi_engine_value(e->engine) + e->model->s->constant;
            e->info.value = value;
            e->info.done = 1;
            e->info.status = value == -INFINITY ? FGI_INFEASIBLE : FGI_OPTIMAL;
        }
    }
    if (info) *info = e->info;
    return rc;
}

int fgi_eliminate_labels(fgi_eliminate *e, int32_t *labels) {
    if (e->info.status != FGI_OPTIMAL) return 0;
    fgi_engine_traceback(e->engine, labels);
    return 1;
}

/* ---- subsets ------------------------------------------------------------------------------------------------ */

struct fgi_subset {
    fgi_model *model;
    fgi_engine *engine;
    int32_t *old;    /* labels of the subset before the call */
    uint8_t *member; /* per variable */
    int64_t capacity;
    double work;
};

void fgi_subset_free(fgi_subset *w) {
    if (!w) return;
    fgi_engine_free(w->engine);
    fgi_model_free(w->model);
    free(w->old);
    free(w->member);
    free(w);
}

fgi_rc fgi_subset_create(const fgi_model *m, fgi_subset **out, fgi_error *err) {
    fgi_subset *w = fgi_calloc(1, sizeof *w);
    if (w) {
        w->model = fgi_model_snapshot(m);
        w->member = fgi_calloc(m->s->n_vars, 1);
        if (w->model) w->engine = fgi_engine_create(w->model);
    }
    if (!w || !w->engine || !w->member) {
        fgi_subset_free(w);
        return fgi_fail(err, FGI_NO_MEMORY, -1, "out of memory");
    }
    *out = w;
    return FGI_OK;
}

double fgi_subset_work(const fgi_subset *w) { return w->work; }

/* The terms that touch the subset at the present labels, forbidden entries counted as `forbidden`. */
static double subset_score(
    const fgi_subset *w, const int32_t *labels, const int32_t *subset, int64_t n, double forbidden) {
    const fgi_model *m = w->model;
    fgi_sum sum = {0};
    for (int64_t k = 0; k < n; k++) {
        const int32_t i = subset[k];
        fgi_sum_add(&sum, fmax(fgi_unary(m, i)[labels[i]], forbidden));
        for (int64_t l = m->s->adj_begin[i]; l < m->s->adj_begin[i + 1]; l++) {
            const fgi_view v = fgi_factor_view(m, m->s->adj[l]);
            int32_t first = 0; /* each factor is counted at the first of its variables that is free */
            while (!w->member[v.vars[first]]) first++;
            if (v.vars[first] == i) fgi_sum_add(&sum, fmax(fgi_view_score(m, &v, labels), forbidden));
        }
    }
    return fgi_sum_value(&sum);
}

fgi_rc fgi_eliminate_subset(fgi_subset *w, int32_t *labels, const int32_t *subset, int64_t n, int64_t max_table,
    double forbidden, double *gain) {
    *gain = 0;
    w->work = 0;
    if (n > w->model->s->n_vars) return FGI_BAD_ARGUMENT;
    if (!fgi_grow(&w->old, &w->capacity, n, sizeof(int32_t))) return FGI_NO_MEMORY;
    fgi_rc rc = fgi_engine_pose(w->engine, labels, subset, n, forbidden);
    if (!rc)
        rc = fgi_engine_order(
            w->engine, fmin(log2((double)(max_table > 1 ? max_table : 1)) + 1e-9, LOG2_CAP), 1e6 + 1e4 * (double)n);
    if (rc) return rc;
    w->work = fgi_engine_bags(w->engine)->work;
    int done = 0;
    if ((rc = fgi_engine_run(w->engine, 1, INFINITY, &done))) return rc;
    if (fgi_engine_value(w->engine) == -INFINITY) return FGI_OK;
    for (int64_t k = 0; k < n; k++) {
        w->old[k] = labels[subset[k]];
        w->member[subset[k]] = 1;
    }
    double before = subset_score(w, labels, subset, n, forbidden);
    fgi_engine_traceback(w->engine, labels);
    double after = subset_score(w, labels, subset, n, forbidden);
    for (int64_t k = 0; k < n; k++) w->member[subset[k]] = 0;
    *gain = before == -INFINITY ? INFINITY : after - before;
    if (*gain > 0) return FGI_OK;
    for (int64_t k = 0; k < n; k++) labels[subset[k]] = w->old[k];
    *gain = 0;
    return FGI_OK;
}
