/* gdmm/binary_sweep.c - sweeps over all factors, for models most of whose factors take part, and where Algorithm 9
 * crawls: sequential reweighted message passing (Kolmogorov 2006, 2015) in one number per factor.
 *
 * With lambda_fj at the far end of a factor fixed, the best choice at its end i is
 *
 *     m_fi = max(0, t - lambda_fj) - max(0, -lambda_fj),
 *
 * what the factor gains by x_i = 1. A node in its turn takes all of it, hat_i = u_i + sum_f m_fi, and hands equal parts
 * on to the factors that lead to nodes whose turn is still to come: lambda_fi = m_fi - share_i, with
 * share_i = hat_i / max(factors to nodes before, factors to nodes after). All other lambda_fi are m_fi, by definition,
 * so a factor stores the lambda of the end whose turn came last, and
 *
 *     D = c + sum_i max(0, hat_i - sent_i share_i) + sum_f max(0, -lambda_f)
 *
 * at the end of a pass. On binary variables this ends at the optimum of the relaxation (Kolmogorov, Wainwright 2005).
 *
 * Factors lie in rows by their earlier end and are read in that order by passes in both directions: a forward pass adds
 * what a row's factors offer to their later ends as it goes, and a backward pass does what those ends owe to a factor
 * when it comes to its row. So a pass streams over t and lambda once: 8 million factors take 35 ms where those of trws,
 * which has general tables and two ends to look at, take 250. */
#include <string.h>
#include "model/marginal.h"
#include "gdmm/binary.h"

/* Iterations crawl where both hold (decision 0016). */
static const double MOST_TOUCHED = 0.05; /* more than this part of the factors is touched */
static const double WINDOW_GAIN = 0.02;  /* the bound has gained less than this part of the gap in a window */
enum { WINDOW = 5 };                     /* certificates that are looked at together */
/* The method begins with sweeps if more than this part of all factors is expected to take part: few models lie
 * between the cases measured (decision 0016). */
static const double MOST_EXPECTED = 0.5;
/* Sweeps have converged when they gain less than this part of the bound each, as in dual/progress.c. */
static const double STALL_GAIN = 1e-11;
enum { STALL_SWEEPS = 20 }; /* looked at together */

/* ---- when ---------------------------------------------------------------------------------------------------- */

/* Variables that could be on will be, and all factors between them and all positive ones that they have take part. */
int binary_expects_most(const fgi_solver *solver, const binary *b) {
    const fgi_structure *s = b->model->s;
    double on = 0, factors = 0, positive = 0;
    if (solver->settings.sweep == FGI_OFF) return 0;
    for (int64_t i = 0; i < s->n_vars; i++) {
        if (!(b->u[i] + b->charge[i] > 0)) continue;
        on++;
        factors += (double)(s->adj_begin[i + 1] - s->adj_begin[i]);
        positive += (double)b->positive_begin[i + 1];
    }
    const double both = on / (double)s->n_vars; /* probability that the other end of a factor is on, too, if one is */
    return both * factors / 2 + (1 - both) * positive > MOST_EXPECTED * (double)s->n_factors;
}

/* Is it time for sweeps? Asked once after every certificate. */
int binary_is_stuck(const fgi_solver *solver, binary *b) {
    const int64_t t = solver->info.iterations;
    if (solver->settings.sweep == FGI_OFF || (t > 1 && t < BINARY_BOUND_EVERY)) return 0;
    if (b->window++ == 0) b->window_bound = b->last_bound;
    if (b->window <= WINDOW) return 0;
    const double gained = b->window_bound - b->last_bound;
    b->window = 0;
    return (double)b->n_links > MOST_TOUCHED * (double)b->model->s->n_factors &&
        gained < WINDOW_GAIN * (solver->info.bound - solver->info.score);
}

/* ---- rows ---------------------------------------------------------------------------------------------------- */

/* max(x, 0), exactly, and without a branch, which would be mispredicted in every second factor. */
static inline double above_zero(double x) { return 0.5 * (x + fabs(x)); }

/* What a factor gains by the label 1 at one end, lambda being that of the other. */
static inline double gain(double t, double lambda) { return above_zero(t - lambda) - above_zero(-lambda); }

static int64_t n_later(const binary *b, int64_t i) { return b->rows.begin[i + 1] - b->rows.begin[i]; }
static int64_t n_earlier(const binary *b, int64_t i) { return b->degree[i] - n_later(b, i); }
static double share_of(const binary *b, int64_t i, double hat) {
    const int64_t later = n_later(b, i), earlier = n_earlier(b, i), most = later > earlier ? later : earlier;
    return most ? hat / (double)most : 0;
}

int binary_begin_sweeps(fgi_solver *solver, binary *b) {
    const fgi_structure *s = b->model->s;
    binary_rows *r = &b->rows;
    const int64_t n = s->n_vars, m = s->n_factors;
    r->far = fgi_take(&b->arena, m, int32_t);
    r->t = fgi_take(&b->arena, m, double);
    r->lambda = fgi_take(&b->arena, m, double);
    r->before = fgi_take_zero(&b->arena, n, double);
    r->after = fgi_take_zero(&b->arena, n, double);
    r->share = fgi_take_zero(&b->arena, n, double);
    r->start = b->n_links ? fgi_alloc(m, sizeof(double)) : NULL;
    if (b->arena.failed || (b->n_links && !r->start)) return 0;
    fgi_prefer_large_pages(r->t, m * (int64_t)sizeof(double));
    fgi_prefer_large_pages(r->lambda, m * (int64_t)sizeof(double));
    for (int64_t k = 0; k < b->n_links; k++) {
        const binary_link *l = &b->links[k];
        r->start[l->factor] = l->lambda[l->j > l->i];
    }
    free(b->links);
    b->links = NULL;
    b->n_links = b->capacity = 0;
    for (int64_t i = 0; i < n; i++) {
        r->begin[i + 1] += r->begin[i];
        b->degree[i] = 0;
    }
    memset(b->is_on, 1, (size_t)n);
    r->stall_bound = INFINITY;
    solver->info.memory = b->arena.bytes;
    b->stage = PACK;
    return 1;
}

/* The factors of a row come in their order; so far they are counted in `degree`. */
static void pack_factor(binary *b, int64_t f) {
    binary_rows *r = &b->rows;
    const fgi_view v = fgi_factor_view(b->model, f);
    const int forward = v.vars[0] < v.vars[1];
    const int32_t lo = v.vars[!forward], hi = v.vars[forward];
    const int64_t at = r->begin[lo] + b->degree[lo]++;
    const int is_active = b->active[f >> 3] >> (f & 7) & 1;
    r->far[at] = hi;
    r->t[at] = binary_interaction(&v);
    r->lambda[at] = is_active ? r->start[f] : 0.5 * fgi_larger(r->t[at], 0);
    r->after[lo] += gain(r->t[at], r->lambda[at]);
}

static void end_packing(binary *b) {
    const fgi_structure *s = b->model->s;
    for (int64_t i = 0; i < s->n_vars; i++) b->degree[i] = s->adj_begin[i + 1] - s->adj_begin[i];
    memset(b->active, 0xff, (size_t)(s->n_factors + 7) / 8);
    free(b->rows.start);
    b->rows.start = NULL;
}

/* ---- passes: row i ------------------------------------------------------------------------------------------- */

/* A node's turn is over: what it keeps goes to the bound. */
static void keep(binary *b, double hat, double share, int64_t sent) {
    const double rest = hat - (double)sent * share;
    if (rest > 0) fgi_sum_add(&b->sum_of_bound, rest);
    b->size_of_bound += fabs(hat) + 2 * (double)sent * fabs(share);
}

/* The label is decided with those of the nodes before and the messages from the nodes after. */
static void forward_row(binary *b, int64_t i) {
    binary_rows *r = &b->rows;
    const int64_t n = n_later(b, i);
    const int32_t *far = r->far + r->begin[i];
    const double *t = r->t + r->begin[i];
    double *lambda = r->lambda + r->begin[i];
    const double hat = b->u[i] + r->before[i] + r->after[i], share = share_of(b, i, hat);
    double factors = 0;
    b->labels[i] = b->worth[i] + r->after[i] > 0;
    if (b->labels[i]) {
        b->decoded += b->worth[i];
        for (int64_t k = 0; k < n; k++) b->worth[far[k]] += t[k];
    }
    for (int64_t k = 0; k < n; k++) {
        const double l = gain(t[k], lambda[k]) - share, loss = above_zero(-l);
        lambda[k] = l;
        factors += loss;
        r->before[far[k]] += above_zero(t[k] - l) - loss;
    }
    fgi_sum_add(&b->sum_of_bound, factors);
    keep(b, hat, share, n);
    b->work += n;
}

static void backward_row(binary *b, int64_t place) {
    binary_rows *r = &b->rows;
    const int64_t i = b->model->s->n_vars - 1 - place, n = n_later(b, i);
    const int32_t *far = r->far + r->begin[i];
    const double *t = r->t + r->begin[i];
    double *lambda = r->lambda + r->begin[i];
    double factors = 0, after = 0;
    for (int64_t k = 0; k < n; k++) {
        const double l = gain(t[k], lambda[k]) - r->share[far[k]], loss = above_zero(-l);
        lambda[k] = l;
        factors += loss;
        after += above_zero(t[k] - l) - loss;
    }
    const double hat = b->u[i] + r->before[i] + after;
    r->after[i] = after;
    r->share[i] = share_of(b, i, hat);
    b->x[i] = hat > 0;
    fgi_sum_add(&b->sum_of_bound, factors);
    keep(b, hat, r->share[i], n_earlier(b, i));
    b->work += n;
}

/* ---- sweeps -------------------------------------------------------------------------------------------------- */

static void report_bound(fgi_solver *solver, binary *b) {
    b->last_bound = fgi_safe_bound(b->model, fgi_sum_value(&b->sum_of_bound), 3 * (b->magnitude + b->size_of_bound));
    fgi_solver_bound(solver, b->last_bound);
    solver->info.sweep_entries += b->model->s->n_factors;
    solver->info.entries_touched += b->model->s->n_factors;
    b->pass_work += b->model->s->n_factors;
}

void binary_begin_forward(binary *b) {
    const int64_t n = b->model->s->n_vars;
    b->sum_of_bound = b->constant;
    b->size_of_bound = b->decoded = 0;
    b->rows.decided = 1;
    memset(b->rows.before, 0, (size_t)n * sizeof(double));
    memcpy(b->worth, b->u, (size_t)n * sizeof(double));
    b->stage = FORWARD;
}

static void finish_sweep(fgi_solver *solver, binary *b) {
    fgi_info *info = &solver->info;
    binary_rows *r = &b->rows;
    report_bound(solver, b);
    info->sweeps++;
    solver->finder = FGI_FOUND_BY_SWEEP;
    if (info->sweeps % STALL_SWEEPS == 0) {
        const double least = STALL_SWEEPS * STALL_GAIN * fgi_larger(fabs(b->last_bound), info->unit);
        b->settled = r->stall_bound - b->last_bound < least ? 2 : 0; /* which makes a last labeling due */
        r->stall_bound = b->last_bound;
    }
    if (binary_label_is_due(solver, b)) b->stage = ROUND;
    else binary_begin_forward(b);
}

void binary_sweep(fgi_solver *solver, binary *b) {
    const int64_t n = b->model->s->n_vars;
    switch (b->stage) {
    case PACK:
        if (!binary_each(b, b->model->s->n_factors, pack_factor)) return;
        end_packing(b);
        if (b->best == -INFINITY) b->stage = ROUND; /* what the charges alone turn on */
        else binary_begin_forward(b);
        return;
    case FORWARD:
        if (!binary_each(b, n, forward_row)) return;
        report_bound(solver, b);
        b->sum_of_bound = b->constant;
        b->size_of_bound = 0;
        b->stage = BACKWARD;
        return;
    default:
        if (binary_each(b, n, backward_row)) finish_sweep(solver, b);
    }
}
