/* exact/eliminate.c - the public handle of bucket elimination. See fginfer_exact.h. */
#include <string.h>
#include "exact/eliminate.h"
#include "exact/eliminator.h"
#include "fginfer_exact.h"

struct fgi_eliminate {
    fgi_model *model;
    fgi_eliminator *eliminator;
    fgi_eliminate_info info;
    double memory_limit;
};

enum { LOG2_CAP = 48 }; /* no table is ever this large; keeps sizes within int64 */

void fgi_eliminate_free(fgi_eliminate *e) {
    if (!e) return;
    fgi_eliminator_free(e->eliminator);
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
    if (!e) return fgi_no_memory(err);
    e->model = fgi_model_snapshot(m);
    e->memory_limit = memory;
    e->info.width = -1;
    e->info.memory = e->info.work = e->info.value = INFINITY;
    if (!(effort > 0)) effort = 2e7;
    fgi_rc rc = FGI_NO_MEMORY;
    if (!e->model) goto fail;
    if (graph_steps(m->s) <= effort) {
        if (!(e->eliminator = fgi_eliminator_create(e->model))) goto fail;
        if ((rc = fgi_eliminator_pose(e->eliminator, NULL, NULL, 0, -INFINITY))) goto fail;
        /* The joint table of a bucket is never stored, only its message: one variable less. */
        double log2_limit = log2(fmax(memory, 8) / 8) + log2(m->s->max_card > 1 ? m->s->max_card : 2);
        rc = fgi_eliminator_order(e->eliminator, fmin(log2_limit, LOG2_CAP), effort);
        if (rc == FGI_NO_MEMORY) goto fail;
        if (!rc) {
            e->info.width = fgi_eliminator_bags(e->eliminator)->width;
            e->info.work = fgi_eliminator_bags(e->eliminator)->work;
            e->info.memory = fgi_eliminator_memory(e->eliminator);
            rc = isinf(e->info.memory) ? FGI_NO_MEMORY : FGI_OK; /* no room to estimate it */
            if (rc) goto fail;
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
        rc = fgi_eliminator_run(e->eliminator, 0, seconds < 0 ? INFINITY : fgi_clock() + seconds, &done);
        if (rc) fgi_fail(err, rc, -1, "out of memory");
        e->info.done = fgi_eliminator_progress(e->eliminator);
        if (!rc && done) {
            double value = fgi_eliminator_value(e->eliminator) + e->model->s->constant;
            e->info.value = value;
            if (value > -INFINITY)
                e->info.error =
                    fgi_eliminator_error(e->eliminator) + 0x1p-52 * (fabs(value) + fabs(e->model->s->constant));
            e->info.done = 1;
            e->info.status = value == -INFINITY ? FGI_INFEASIBLE : FGI_OPTIMAL;
        }
    }
    if (info) *info = e->info;
    return rc;
}

int fgi_eliminate_order(const fgi_eliminate *e, int32_t *order) {
    if (e->info.width < 0) return 0;
    memcpy(order, e->eliminator->var, (size_t)e->eliminator->n * sizeof *order);
    return 1;
}

int fgi_eliminate_labels(fgi_eliminate *e, int32_t *labels) {
    if (e->info.status != FGI_OPTIMAL) return 0;
    fgi_eliminator_traceback(e->eliminator, labels);
    return 1;
}
