/* optimise/optimise.c - an optimiser's life: settings, questions and answers, states that are saved. */
#include "optimise/optimise.h"
#include <string.h>

void fgi_optimise_want_value(fgi_optimiser *o, int64_t phase) {
    o->phase = phase;
    o->request = (fgi_request){FGI_ASK_VALUE, o->d, NULL, o->w, NULL};
}

void fgi_optimise_want_gradient(fgi_optimiser *o, int64_t phase, const int64_t *set, int64_t n, double *into) {
    o->phase = phase;
    o->request = (fgi_request){FGI_ASK_GRADIENT, n, set, o->w, into};
}

void fgi_optimise_finish(fgi_optimiser *o, fgi_status status) {
    o->info.status = status;
    o->request = (fgi_request){FGI_ASK_NOTHING, 0, NULL, o->w, NULL};
}

double fgi_optimise_objective(const fgi_optimiser *o, double loss) {
    fgi_sum first = {0}, second = {0};
    for (int64_t j = 0; j < o->d; j++)
        if (o->w[j] != 0.0) {
            fgi_sum_add(&first, fabs(o->w[j]));
            fgi_sum_add(&second, o->w[j] * o->w[j]);
        }
    const double f = loss + o->s.l1 * fgi_sum_value(&first) + 0.5 * o->s.l2 * fgi_sum_value(&second);
    return isnan(f) ? INFINITY : f;
}

int fgi_optimise_begin(fgi_optimiser *o, double loss) {
    o->info.loss = loss;
    o->info.objective = fgi_optimise_objective(o, loss);
    o->info.nonzeros = 0;
    for (int64_t j = 0; j < o->d; j++) o->info.nonzeros += o->w[j] != 0.0;
    return isfinite(o->info.objective);
}

int fgi_optimise_look_at_all(fgi_optimiser *o) {
    double most = 0;
    int finite = 1;
    for (int64_t j = 0; j < o->d; j++) {
        o->whole[j] += o->s.l2 * o->w[j];
        const double size = fabs(fgi_subgradient(o->w[j], o->whole[j], o->s.l1));
        finite &= isfinite(o->whole[j]) != 0;
        most = fgi_larger(most, size);
    }
    o->info.violation = most;
    o->info.full = 1;
    if (o->info.epochs++ == 0) o->info.first_violation = most;
    return finite;
}

static fgi_rc check_settings(const fgi_optimise_settings *settings, fgi_error *err) {
    if (settings->method < FGI_PROXQN || settings->method > FGI_BCD)
        return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "unknown method of optimisation");
    if (settings->memory < 1 || settings->memory > 100)
        return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "memory must be 1 to 100 pairs");
    if (settings->max_inner < 1) return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "max_inner must be at least 1");
    if (!(settings->l1 >= 0) || !(settings->l2 >= 0) || isinf(settings->l1) || isinf(settings->l2))
        return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "l1 and l2 must be finite and not negative");
    if (!(settings->tol >= 0)) return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "tol must not be negative");
    if (!(settings->samples >= 1)) return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "samples must be at least 1");
    return FGI_OK;
}

fgi_rc fgi_optimiser_create(int64_t dimension, const fgi_optimise_settings *settings, const double *start,
    fgi_optimiser **out, fgi_error *err) {
    *out = NULL;
    fgi_rc rc = check_settings(settings, err);
    if (rc) return rc;
    if (dimension < 1) return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "there must be at least one coordinate");
    for (int64_t j = 0; start && j < dimension; j++)
        if (!isfinite(start[j])) return fgi_fail(err, FGI_BAD_ARGUMENT, j, "the start is not finite");
    fgi_optimiser *o = fgi_calloc(1, sizeof *o);
    if (!o) return fgi_no_memory(err);
    o->s = *settings;
    o->d = dimension;
    o->rng.state = settings->seed;
    o->info.objective = o->info.loss = INFINITY;
    static const fgi_optimise_ops *const ops[] = {&fgi_proxqn_ops, &fgi_owlqn_ops, &fgi_proxgrad_ops, &fgi_bcd_ops};
    o->ops = ops[settings->method];
    o->w = fgi_calloc(dimension, sizeof(double));
    o->whole = fgi_calloc(dimension, sizeof(double));
    rc = o->w && o->whole ? FGI_OK : FGI_NO_MEMORY;
    if (!rc && start) memcpy(o->w, start, (size_t)dimension * sizeof(double));
    if (!rc) rc = o->ops->create(o);
    if (rc) {
        fgi_optimiser_free(o);
        return fgi_no_memory(err);
    }
    *out = o;
    return FGI_OK;
}

void fgi_optimiser_free(fgi_optimiser *o) {
    if (!o) return;
    if (o->method) o->ops->free(o);
    free(o->w), free(o->whole), free(o);
}

void fgi_optimiser_ask(const fgi_optimiser *o, fgi_request *request) { *request = o->request; }

fgi_rc fgi_optimiser_answer(fgi_optimiser *o, double value, fgi_error *err) {
    if (o->request.ask == FGI_ASK_NOTHING) return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "nothing was asked");
    if (o->request.ask == FGI_ASK_VALUE) o->info.values++;
    else if (o->request.ask == FGI_ASK_GRADIENT) o->info.gradients++, o->info.coordinates += o->request.n;
    const fgi_rc rc = o->ops->answer(o, value);
    if (!rc) return rc;
    fgi_optimise_finish(o, FGI_CONVERGED);
    return rc == FGI_NO_MEMORY ? fgi_no_memory(err) : fgi_fail(err, rc, -1, "the loss or its gradient is not finite");
}

void fgi_optimiser_get_info(const fgi_optimiser *o, fgi_optimise_info *info) { *info = o->info; }
void fgi_optimiser_weights(const fgi_optimiser *o, double *w) { o->ops->settled(o, w); }

/* ---- saving --------------------------------------------------------------------------------------------------- */

void fgi_record_reals(fgi_record *v, double *a, int64_t n) {
    if (v->failed || (v->mode != FGI_RECORD_COUNT && v->at_real + n > v->n_reals)) {
        v->failed = 1;
        return;
    }
    if (n && v->mode == FGI_RECORD_WRITE) memcpy(v->reals + v->at_real, a, (size_t)n * sizeof *a);
    if (n && v->mode == FGI_RECORD_READ) memcpy(a, v->reals + v->at_real, (size_t)n * sizeof *a);
    v->at_real += n;
}

void fgi_record_ints(fgi_record *v, int64_t *a, int64_t n) {
    if (v->failed || (v->mode != FGI_RECORD_COUNT && v->at_int + n > v->n_ints)) {
        v->failed = 1;
        return;
    }
    if (n && v->mode == FGI_RECORD_WRITE) memcpy(v->ints + v->at_int, a, (size_t)n * sizeof *a);
    if (n && v->mode == FGI_RECORD_READ) memcpy(a, v->ints + v->at_int, (size_t)n * sizeof *a);
    v->at_int += n;
}

void fgi_record_size(fgi_record *v, int64_t *size, int64_t limit) {
    int64_t n = *size;
    fgi_record_ints(v, &n, 1);
    if (v->failed || n < 0 || n > limit) v->failed = 1;
    else *size = n;
}

static fgi_rc walk(fgi_optimiser *o, fgi_record *v) {
    int64_t ask = o->request.ask, status = o->info.status, rng = (int64_t)o->rng.state, full = o->info.full;
    fgi_record_size(v, &ask, FGI_ASK_CURVATURE);
    fgi_record_size(v, &status, FGI_INFEASIBLE);
    fgi_record_size(v, &full, 1);
    fgi_record_ints(v, &rng, 1);
    fgi_record_size(v, &o->phase, 100);
    int64_t *counts[] = {&o->info.iterations, &o->info.epochs, &o->info.values, &o->info.gradients,
        &o->info.coordinates, &o->info.working_set, &o->info.nonzeros};
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) fgi_record_size(v, counts[k], FGI_RECORD_MOST);
    double *reals[] = {&o->info.objective, &o->info.loss, &o->info.violation, &o->info.first_violation, &o->info.step};
    for (size_t k = 0; k < sizeof reals / sizeof *reals; k++) fgi_record_reals(v, reals[k], 1);
    fgi_record_reals(v, o->w, o->d);
    const int ended = status == FGI_OPTIMAL || status == FGI_CONVERGED;
    if (ask == FGI_ASK_NOTHING ? !ended : status != FGI_RUNNING) v->failed = 1; /* what no run has written */
    if (v->failed) return FGI_OK;
    if (v->mode == FGI_RECORD_READ) {
        o->rng.state = (uint64_t)rng;
        o->info.status = (int32_t)status;
        o->info.full = (int32_t)full;
    }
    const fgi_rc rc = o->ops->walk(o, v); /* restores the question, too */
    if (rc || v->failed || v->mode != FGI_RECORD_READ || ask != FGI_ASK_NOTHING) return rc;
    if (status == FGI_OPTIMAL && o->info.violation > o->s.tol * o->info.first_violation) {
        o->info.status = FGI_RUNNING; /* it was done, for a larger tol */
        fgi_optimise_want_value(o, FGI_FIRST_PHASE);
    } else fgi_optimise_finish(o, (fgi_status)status);
    return rc;
}

void fgi_optimiser_export_size(fgi_optimiser *o, int64_t *n_reals, int64_t *n_ints) {
    fgi_record v = {FGI_RECORD_COUNT, NULL, NULL, 0, 0, 0, 0, 0};
    walk(o, &v);
    *n_reals = v.at_real;
    *n_ints = v.at_int;
}

void fgi_optimiser_export(fgi_optimiser *o, double *reals, int64_t *ints) {
    fgi_record v = {FGI_RECORD_WRITE, reals, ints, 0, 0, 0, 0, 0};
    fgi_optimiser_export_size(o, &v.n_reals, &v.n_ints);
    walk(o, &v);
}

fgi_rc fgi_optimiser_import(
    fgi_optimiser *o, const double *reals, int64_t n_reals, const int64_t *ints, int64_t n_ints, fgi_error *err) {
    fgi_record v = {FGI_RECORD_READ, (double *)reals, (int64_t *)ints, 0, 0, n_reals, n_ints, 0};
    const fgi_rc rc = walk(o, &v);
    if (rc) return fgi_no_memory(err);
    if (v.failed || v.at_real != n_reals || v.at_int != n_ints)
        return fgi_fail(err, FGI_BAD_MODEL, -1, "the saved state does not fit this optimiser");
    return FGI_OK;
}
