/* gdmm/binary_pass.c - one iteration of Algorithm 9 on the active factors, and the certificate:
 *
 *     D = c + sum_i max(0, u_i + charge_i + sum_f lambda_fi)
 *           + sum_{f active} max(0, -lambda_fi, -lambda_fj, t - lambda_fi - lambda_fj)
 */
#include <string.h>
#include "model/marginal.h"
#include "gdmm/binary.h"

enum {
    PASSES = 3, /* over the links, in an iteration */
    SMALL = 256 /* links of a task of a thread */
};

static void factor_pass(void *context, int64_t begin, int64_t end, int worker) {
    binary *b = context;
    (void)worker;
    const double inverse = 1 / b->rho;
    for (int64_t k = begin; k < end; k++) {
        binary_link *l = &b->links[k];
        double p0 = b->x[l->i] - l->lambda[0] * inverse, q0 = b->x[l->j] - l->lambda[1] * inverse;
        gdmm_binary_step(p0, q0, 2 * l->t * inverse, &l->copy[0], &l->copy[1]);
    }
}

/* Bodies of the passes below: for one link, one variable. */

static void gather_link(binary *b, int64_t k) {
    const double inverse = 1 / b->rho;
    binary_link *l = &b->links[k];
    l->copy[0] = GDMM_RELAXATION * l->copy[0] + (1 - GDMM_RELAXATION) * b->x[l->i];
    l->copy[1] = GDMM_RELAXATION * l->copy[1] + (1 - GDMM_RELAXATION) * b->x[l->j];
    b->sum[l->i] += l->copy[0] + l->lambda[0] * inverse;
    b->sum[l->j] += l->copy[1] + l->lambda[1] * inverse;
}

/* x_i = clip( [ (u_i + charge_i)/rho + sum_f (copy + lambda/rho) ] / degree ), with over-relaxed copies. */
static void update_variable(binary *b, int64_t i) {
    double x, u = b->u[i] + b->charge[i];
    if (b->degree[i] == 0) x = u > 0;
    else {
        x = (u / b->rho + b->sum[i]) / (double)b->degree[i];
        x = x < 0 ? 0 : x > 1 ? 1 : x;
    }
    b->dual += (double)b->degree[i] * (x - b->x[i]) * (x - b->x[i]);
    b->x[i] = x;
    b->sum[i] = 0;
}

static void update_multipliers(binary *b, int64_t k) {
    binary_link *l = &b->links[k];
    for (int e = 0; e < 2; e++) {
        int32_t i = e ? l->j : l->i;
        double d = l->copy[e] - b->x[i];
        b->primal += d * d;
        l->lambda[e] += b->rho * d;
        b->sum[i] += l->lambda[e];
    }
}

static void measure_residuals(binary *b) {
    const double edges = b->n_links ? 2.0 * (double)b->n_links : 1.0;
    const double scale = b->scale > 0 ? b->scale / (double)b->n_links : 1;
    b->primal = sqrt(b->primal / edges);
    b->dual = b->rho * sqrt(b->dual / edges) / scale;
}

/* The bound, over variables and then over links. */
static void bound_term(binary *b, int64_t k) {
    if (k < b->model->s->n_vars) {
        double v = b->u[k] + b->charge[k] + b->sum[k];
        if (v > 0) fgi_sum_add(&b->sum_of_bound, v);
        b->size_of_bound += fabs(v);
        return;
    }
    const binary_link *l = &b->links[k - b->model->s->n_vars];
    double best = 0, both = l->t - l->lambda[0] - l->lambda[1];
    if (-l->lambda[0] > best) best = -l->lambda[0];
    if (-l->lambda[1] > best) best = -l->lambda[1];
    if (both > best) best = both;
    fgi_sum_add(&b->sum_of_bound, best);
    b->size_of_bound += fabs(l->lambda[0]) + fabs(l->lambda[1]);
}

static void finish_iteration(fgi_solver *solver, binary *b) {
    fgi_info *info = &solver->info;
    info->iterations++;
    info->primal_infeasibility = b->primal;
    info->dual_infeasibility = b->dual;
    info->rho = b->rho;
    info->closed_forms += b->n_links;
    info->entries_touched = b->n_links;
    b->pass_work += PASSES * b->n_links;
    info->active_per_factor = (double)b->n_links / (double)b->model->s->n_factors;
    if (info->iterations >= b->next_adapt) {
        b->next_adapt = info->iterations + GDMM_ADAPT_EVERY + info->iterations / 20;
        b->rho = fgi_solver_rho(solver, gdmm_balanced(b->rho, b->primal, b->dual));
    }
}

void binary_begin_bound(binary *b) {
    b->sum_of_bound = b->constant;
    b->size_of_bound = 0;
    b->stage = BOUND;
}

int binary_certify(fgi_solver *solver, binary *b) {
    if (!binary_each(b, b->model->s->n_vars + b->n_links, bound_term)) return 0;
    const int64_t t = solver->info.iterations; /* the first ones gain most */
    b->next_bound = t + (t < 1 ? 1 : t < BINARY_BOUND_EVERY ? t : BINARY_BOUND_EVERY);
    /* u and charge are sums over all factors of a variable, and charges are taken back one by one: 3 x degree. */
    double bound = fgi_safe_bound(b->model, fgi_sum_value(&b->sum_of_bound), 3 * (b->magnitude + b->size_of_bound));
    const int stalled = gdmm_stands_still(b->last_bound, bound, solver->info.unit);
    b->last_bound = bound;
    fgi_solver_bound(solver, bound);
    b->settled =
        stalled && b->primal < GDMM_CONVERGED && b->dual < GDMM_CONVERGED && b->activated == 0 ? b->settled + 1 : 0;
    if (b->settled > 0 && b->on_from > BINARY_ON) { /* what was left out may matter now */
        b->on_from = BINARY_ON;
        b->settled = 0;
    }
    return 1;
}

/* One of the passes over links and variables. */
void binary_pass(fgi_solver *solver, binary *b) {
    const int64_t n = b->model->s->n_vars;
    switch (b->stage) {
    case FACTORS:
        fgi_pool_run(b->n_links > 4 * SMALL ? solver->pool : NULL, b->n_links, SMALL, factor_pass, b);
        memset(b->sum, 0, (size_t)n * sizeof(double));
        b->dual = 0;
        b->stage = GATHER;
        return;
    case GATHER:
        if (binary_each(b, b->n_links, gather_link)) b->stage = VARIABLES;
        return;
    case VARIABLES:
        if (!binary_each(b, n, update_variable)) return;
        b->primal = 0;
        b->stage = MULTIPLIERS;
        return;
    default:
        if (!binary_each(b, b->n_links, update_multipliers)) return;
        measure_residuals(b);
        finish_iteration(solver, b);
        b->stage = ACTIVATE;
        if (solver->info.iterations >= b->next_bound) binary_begin_bound(b);
    }
}
