/* gdmm/binary.c - GDMM for very many binary pairwise factors (docs/mathematics.md, section 3; Algorithm 9 of Yan 2018).
 *
 * Every finite 2x2 table is constant + unary + unary + t [a = b = 1]; one linear pass at set-up folds the first three.
 * Then
 *
 *     max  c + sum_i u_i x_i + sum_f t_f y_f,      y_f <= x_i, x_j,   y_f >= x_i + x_j - 1,   0 <= x, y <= 1,
 *
 * on the few factors that matter. A factor that was never touched has y_f = min(x_i, x_j) or 0 by its sign, and is
 * charged to its variables in aggregate: t x_i x_j <= t/2 x_i + t/2 x_j for t > 0 (the sums of t/2 are the `charge`),
 * and <= 0 for t < 0. So
 *
 *     D = c + sum_i max(0, u_i + charge_i + sum_f lambda_fi)
 *           + sum_{f active} max(0, -lambda_fi, -lambda_fj, t - lambda_fi - lambda_fj)
 *
 * is an upper bound at any time. Factors become active when both their variables are on, and, largest t first, when the
 * charge of a variable that could be on is in the way of the bound. lambda_fi is the multiplier of p = x_i, where p is
 * the factor's own copy of x_i; the copies (p, q) have the closed form of gdmm/factor.c. After the set-up nothing
 * visits all factors, unless most of them take part: then sweeps do (gdmm/binary_sweep.c). */
#include "model/marginal.h"
#include "gdmm/binary.h"

/* Iterations between two looks at all variables (decision 0016). */
enum { ACTIVATE_EVERY = 4 };

int binary_each(binary *b, int64_t n, void (*body)(binary *, int64_t)) {
    for (b->work = 0; b->cursor < n; b->cursor++) {
        if (b->work++ > BINARY_CHUNK) return 0;
        body(b, b->cursor);
    }
    b->cursor = 0;
    return 1;
}

static double first_penalty(const binary *b) {
    return b->scale > 0 ? 0.1 * b->scale / (double)b->n_links : fgi_mean_range(b->model);
}

/* Factors join. After the set-up that is the time for a first labeling, too. */
static int activation(fgi_solver *solver, binary *b) {
    const int64_t t = solver->info.iterations;
    int complete = 1;
    if (t >= b->next_activate || b->cursor > 0) {
        b->next_activate = t + ACTIVATE_EVERY;
        if (!binary_activate_more(b, &complete)) return 0;
    }
    if (!complete) return 1;
    if (b->rho == 0)
        b->rho = solver->settings.rho > 0 ? solver->settings.rho : fgi_solver_rho(solver, first_penalty(b));
    b->stage = t == 0 ? ROUND : FACTORS;
    return 1;
}

/* A piece of a stage; 0: no memory. */
static int step(fgi_solver *solver, binary *b) {
    fgi_info *info = &solver->info;
    const double begin = fgi_clock();
    double *seconds = &info->seconds_update;
    int ok = 1;
    switch (b->stage) {
    case FOLD:
    case COUNT:
    case FILL:
        seconds = &info->seconds_setup;
        ok = binary_set_up(solver, b);
        break;
    case ACTIVATE:
        seconds = &info->seconds_oracle;
        ok = activation(solver, b);
        break;
    case BOUND:
        seconds = &info->seconds_bound;
        if (!binary_certify(solver, b)) break;
        if (info->iterations == 0 ? b->sweeps_first : binary_is_stuck(solver, b)) ok = binary_begin_sweeps(solver, b);
        else b->stage = info->iterations > 0 && binary_label_is_due(solver, b) ? ROUND : ACTIVATE;
        break;
    case ROUND:
    case WEIGH:
    case ASCEND:
        seconds = &info->seconds_decode;
        ok = binary_label(solver, b);
        break;
    case PACK:
    case FORWARD:
    case BACKWARD:
        seconds = &info->seconds_bound;
        binary_sweep(solver, b);
        break;
    default: binary_pass(solver, b);
    }
    *seconds += fgi_clock() - begin;
    return ok;
}

static fgi_rc binary_run(fgi_solver *solver, double deadline, int64_t iteration_limit) {
    binary *b = solver->state;
    do {
        if (!step(solver, b)) return FGI_NO_MEMORY;
    } while (!solver->failure && !fgi_solver_done(solver) && fgi_clock() < deadline &&
        ((b->stage >= BOUND && b->stage <= ASCEND) || solver->info.iterations + solver->info.sweeps < iteration_limit));
    solver->info.oracle_calls = fgi_oracle_scratch_work(b->oracle).calls;
    solver->info.local_operations = b->label_work;
    return FGI_OK;
}

static int binary_marginals(const fgi_solver *solver, double *x) {
    const binary *b = solver->state;
    for (int64_t i = 0; i < b->model->s->n_vars; i++) {
        x[2 * i] = 1 - b->x[i];
        x[2 * i + 1] = b->x[i];
    }
    return 1;
}

const fgi_solver_ops fgi_gdmm_binary_ops = {.name = "gdmm",
    .create = binary_create,
    .run = binary_run,
    .destroy = binary_destroy,
    .marginals = binary_marginals};
