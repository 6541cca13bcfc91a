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
 * visits all factors. */
#include <string.h>
#include "model/marginal.h"
#include "gdmm/gdmm.h"

enum {
    CHUNK = 20000,      /* factors between two looks at the clock */
    BISECTION = 16,     /* what it costs to look for a factor by bisection, in factors that are looked at */
    SORTING = 8,        /* and to sort one */
    FIRST_CHARGES = 16, /* positive factors a variable activates first; doubled each time */
    ACTIVATE_EVERY = 4,
    BOUND_EVERY = 8,
    ADAPT_EVERY = 5,
    SMALL = 256
};
static const double RELAXATION = 1.5, CONVERGED = 1e-6;
/* Where more than this part of the factors is touched, and the bound has gained less than this part of the gap in a
 * window of certificates, sequential message passing over all factors goes on from the multipliers: its sweeps still
 * gain where the iterations crawl (bench/binary.py, 0.05 to 5 % positive pairs). */
static const double MOST_TOUCHED = 0.05, WINDOW_GAIN = 0.02;
enum { WINDOW = 5 };
static const double SWEEP_SLICE = 0.005; /* seconds between two looks at the clock */

typedef struct link { /* an active factor */
    int32_t i, j;
    int32_t next[2]; /* ends of links, twice the link plus 0 or 1: the list of the ends at a variable; -1 closes it */
    int64_t factor;
    double t, lambda[2], copy[2];
} link;

typedef enum stage {
    FOLD,
    COUNT,
    FILL,
    ACTIVATE,
    FACTORS,
    GATHER,
    VARIABLES,
    MULTIPLIERS,
    BOUND,
    ROUND,
    ASCEND,
    SWEEP
} stage;

typedef struct binary {
    const fgi_model *model;
    stage stage;
    int64_t cursor; /* where the stage goes on after a look at the clock */
    int64_t work;   /* since then, in factors */
    fgi_sum constant;
    double magnitude;
    double *u, *charge, *x, *sum; /* per variable */
    int64_t *degree;              /* active factors of a variable */
    int32_t *on;                  /* variables that have been on, in that order */
    int64_t n_on;
    uint8_t *is_on, *ascending;              /* ascending: the adjacency of the variable is sorted by neighbour */
    int32_t **by_neighbour;                  /* for the others, sorted copies, made when first needed */
    int64_t *positive_begin, *positive_next; /* factors with t > 0 of a variable: not yet activated from next on */
    int32_t *positive, *positive_take;
    uint8_t *active; /* one bit per factor */
    link *links;
    int64_t n_links, capacity, activated;
    double rho, scale, primal, dual, last_bound;
    int64_t next_adapt, next_bound, next_activate;
    fgi_sum sum_of_bound;
    double size_of_bound; /* magnitudes of what went into it */
    int32_t *labels;
    double best;    /* of the labelings found here, by the running score */
    int32_t *first; /* per variable: its list of ends of links, -1 when it is empty */
    int32_t round;  /* of the ascent, and whether it has changed anything */
    int changed;
    int settled;
    double window_bound; /* at the beginning of the window of certificates */
    int32_t window;      /* certificates in it */
    fgi_solver *sweep;   /* what took over */
} binary;

/* ---- eligibility and memory --------------------------------------------------------------------------------- */

int gdmm_binary_fits(const fgi_model *m) {
    const fgi_structure *st = m->s;
    if (st->max_arity != 2 || st->max_card != 2 || st->n_factors == 0) return 0;
    for (int64_t i = 0; i < st->n_vars; i++)
        if (st->cards[i] != 2) return 0;
    for (int64_t k = 0; k < 2 * st->n_vars; k++)
        if (m->u->values[k] == -INFINITY) return 0;
    for (int64_t t = 0; t < st->n_tables; t++)
        if (m->t->facts[t].n_forbidden) return 0;
    return 1;
}

static fgi_rc binary_create(fgi_solver *solver, fgi_error *err) {
    const fgi_structure *st = solver->model->s;
    const int64_t n = st->n_vars;
    binary *b = fgi_calloc(1, sizeof *b);
    solver->state = b;
    if (!b) return fgi_fail(err, FGI_NO_MEMORY, -1, "out of memory");
    b->model = solver->model;
    b->best = -INFINITY;
    b->last_bound = INFINITY;
    b->u = fgi_calloc(4 * n, sizeof(double));
    b->degree = fgi_calloc(n, sizeof(int64_t));
    b->on = fgi_alloc(n, sizeof(int32_t));
    b->is_on = fgi_calloc(2 * n, 1);
    b->by_neighbour = fgi_calloc(n, sizeof *b->by_neighbour);
    b->positive_begin = fgi_calloc(2 * n + 1, sizeof(int64_t));
    b->positive_take = fgi_calloc(n, sizeof(int32_t));
    b->active = fgi_calloc((st->n_factors + 7) / 8, 1);
    b->labels = fgi_calloc(n, sizeof(int32_t));
    b->first = fgi_alloc(n, sizeof(int32_t));
    if (!b->u || !b->degree || !b->on || !b->is_on || !b->by_neighbour || !b->positive_begin || !b->positive_take ||
        !b->active || !b->labels || !b->first)
        return fgi_fail(err, FGI_NO_MEMORY, -1, "out of memory");
    memset(b->first, -1, (size_t)n * sizeof *b->first);
    b->charge = b->u + n;
    b->x = b->u + 2 * n;
    b->sum = b->u + 3 * n;
    b->ascending = b->is_on + n;
    b->positive_next = b->positive_begin + n + 1;
    solver->info.memory = 90 * n + st->n_factors / 8;
    return FGI_OK;
}

static void binary_destroy(fgi_solver *solver) {
    binary *b = solver->state;
    fgi_solver_free(b->sweep);
    for (int64_t i = 0; b->by_neighbour && i < b->model->s->n_vars; i++) free(b->by_neighbour[i]);
    free(b->u);
    free(b->degree);
    free(b->on);
    free(b->is_on);
    free(b->by_neighbour);
    free(b->positive_begin);
    free(b->positive_take);
    free(b->positive);
    free(b->active);
    free(b->links);
    free(b->labels);
    free(b->first);
    free(b);
}

/* ---- set-up: the one linear pass, in pieces ----------------------------------------------------------------- */

static int32_t neighbour(const fgi_structure *st, int32_t f, int32_t i) {
    const int32_t *vars = fgi_factor_vars(st, f);
    return vars[0] == i ? vars[1] : vars[0];
}

static double interaction(const fgi_view *v) {
    return (fgi_view_at2(v, 1, 1) - fgi_view_at2(v, 1, 0)) - (fgi_view_at2(v, 0, 1) - fgi_view_at2(v, 0, 0));
}

static void fold_variable(binary *b, int64_t i) {
    const fgi_structure *st = b->model->s;
    const double *theta = fgi_unary(b->model, i);
    b->u[i] = theta[1] - theta[0];
    fgi_sum_add(&b->constant, theta[0]);
    b->ascending[i] = 1;
    int32_t before = -1;
    for (int64_t k = st->adj_begin[i]; k < st->adj_begin[i + 1] && b->ascending[i]; k++) {
        int32_t other = neighbour(st, st->adj[k], (int32_t)i);
        if (other < before) b->ascending[i] = 0;
        before = other;
    }
    b->work += st->adj_begin[i + 1] - st->adj_begin[i];
}

static void fold_factor(binary *b, int64_t f) {
    const fgi_view v = fgi_factor_view(b->model, f);
    double t00 = fgi_view_at2(&v, 0, 0), t = interaction(&v);
    fgi_sum_add(&b->constant, t00);
    b->u[v.vars[0]] += fgi_view_at2(&v, 1, 0) - t00;
    b->u[v.vars[1]] += fgi_view_at2(&v, 0, 1) - t00;
    if (!(t > 0)) return;
    for (int k = 0; k < 2; k++) {
        b->charge[v.vars[k]] += 0.5 * t;
        b->positive_begin[v.vars[k] + 1]++;
    }
}

static int begin_fill(binary *b) {
    const int64_t n = b->model->s->n_vars;
    for (int64_t i = 0; i < n; i++) {
        b->positive_begin[i + 1] += b->positive_begin[i];
        b->positive_next[i] = b->positive_begin[i];
        b->positive_take[i] = 0; /* its list is not sorted yet */
    }
    return (b->positive = fgi_alloc(b->positive_begin[n], sizeof(int32_t))) != NULL;
}

static void fill_factor(binary *b, int64_t f) {
    const fgi_view v = fgi_factor_view(b->model, f);
    if (!(interaction(&v) > 0)) return;
    for (int k = 0; k < 2; k++) b->positive[b->positive_next[v.vars[k]]++] = (int32_t)f;
}

/* ---- activation --------------------------------------------------------------------------------------------- */

static int activate(binary *b, int64_t f) {
    if (b->active[f >> 3] >> (f & 7) & 1) return 1;
    if (b->n_links > INT32_MAX / 2 - 1) return 0; /* more than their lists can hold, and than memory does */
    if (b->n_links == b->capacity) {
        int64_t capacity = b->capacity ? 2 * b->capacity : 1024;
        link *links = realloc(b->links, (size_t)capacity * sizeof *links);
        if (!links) return 0;
        b->links = links;
        b->capacity = capacity;
    }
    const fgi_view v = fgi_factor_view(b->model, f);
    const int32_t i = v.vars[0], j = v.vars[1];
    const double t = interaction(&v), half = t > 0 ? 0.5 * t : 0;
    b->active[f >> 3] |= (uint8_t)(1 << (f & 7));
    b->links[b->n_links] = /* what was charged is now a multiplier */
        (link){i, j, {b->first[i], b->first[j]}, f, t, {half, half}, {b->x[i], b->x[j]}};
    b->first[i] = (int32_t)(2 * b->n_links);
    b->first[j] = (int32_t)(2 * b->n_links++ + 1);
    b->charge[i] -= half;
    b->charge[j] -= half;
    b->degree[i]++;
    b->degree[j]++;
    b->scale += fabs(t);
    return 1;
}

/* Sorts factors by a key that is computed on the fly: bottom-up merge sort, stable. */
static int sort_factors(const binary *b, int32_t *factors, int64_t n, int32_t i, int by_interaction) {
    double *key = fgi_alloc(n, sizeof(double)), *key2 = fgi_alloc(n, sizeof(double));
    int32_t *other = fgi_alloc(n, sizeof(int32_t));
    int ok = key && key2 && other;
    for (int64_t k = 0; ok && k < n; k++) {
        fgi_view v = fgi_factor_view(b->model, factors[k]);
        key[k] = by_interaction ? -interaction(&v) : neighbour(b->model->s, factors[k], i);
    }
    for (int64_t width = 1; ok && width < n; width *= 2) {
        for (int64_t begin = 0; begin < n; begin += 2 * width) {
            int64_t middle = begin + width < n ? begin + width : n, end = begin + 2 * width < n ? begin + 2 * width : n;
            for (int64_t k = begin, l = begin, r = middle; k < end; k++) {
                int64_t from = r >= end || (l < middle && key[l] <= key[r]) ? l++ : r++;
                other[k] = factors[from];
                key2[k] = key[from];
            }
        }
        memcpy(factors, other, (size_t)n * sizeof *factors);
        memcpy(key, key2, (size_t)n * sizeof *key);
    }
    free(key);
    free(key2);
    free(other);
    return ok;
}

/* Activates the factors between i and j, found by bisection in the adjacency of i. */
static int activate_between(binary *b, int32_t i, int32_t j) {
    const fgi_structure *st = b->model->s;
    const int64_t n = st->adj_begin[i + 1] - st->adj_begin[i];
    if (!b->ascending[i] && !b->by_neighbour[i]) {
        b->by_neighbour[i] = fgi_copy(st->adj + st->adj_begin[i], n, sizeof(int32_t));
        if (!b->by_neighbour[i] || !sort_factors(b, b->by_neighbour[i], n, i, 0)) return 0;
    }
    const int32_t *list = b->ascending[i] ? st->adj + st->adj_begin[i] : b->by_neighbour[i];
    int64_t low = 0, high = n;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (neighbour(st, list[middle], i) < j) low = middle + 1;
        else high = middle;
    }
    for (; low < n && neighbour(st, list[low], i) == j; low++)
        if (!activate(b, list[low])) return 0;
    return 1;
}

/* A variable with fewer factors than there are variables on looks at its factors, else at those variables: where all
 * have some factors, as in a sparse graph, the second would be quadratic. */
static int turn_on(binary *b, int32_t i) {
    const fgi_structure *st = b->model->s;
    if (b->is_on[i]) return 1;
    if (st->adj_begin[i + 1] - st->adj_begin[i] <= b->n_on) {
        for (int64_t k = st->adj_begin[i]; k < st->adj_begin[i + 1]; k++)
            if (b->is_on[neighbour(st, st->adj[k], i)] && !activate(b, st->adj[k])) return 0;
        b->work += st->adj_begin[i + 1] - st->adj_begin[i];
    } else {
        for (int64_t k = 0; k < b->n_on; k++)
            if (!activate_between(b, i, b->on[k])) return 0;
        b->work += BISECTION * b->n_on;
    }
    b->is_on[i] = 1;
    b->on[b->n_on++] = i;
    return 1;
}

/* The next positive factors of a variable whose charge is in the way, largest first. */
static int release_charges(binary *b, int32_t i) {
    if (b->positive_take[i] == 0) {
        b->positive_take[i] = FIRST_CHARGES;
        b->positive_next[i] = b->positive_begin[i];
        b->work += SORTING * (b->positive_begin[i + 1] - b->positive_begin[i]);
        if (!sort_factors(b, b->positive + b->positive_begin[i], b->positive_begin[i + 1] - b->positive_begin[i], i, 1))
            return 0;
    } else if (b->positive_take[i] < (1 << 20)) {
        b->positive_take[i] *= 2;
    }
    for (int32_t k = 0; k < b->positive_take[i] && b->positive_next[i] < b->positive_begin[i + 1]; k++, b->work++)
        if (!activate(b, b->positive[b->positive_next[i]++])) return 0;
    return 1;
}

/* (3.33) and (3.34): variables that are on or could be; then the factors that their state calls for. A piece of it;
 * *complete says whether it was the last. */
static int activate_more(binary *b, int *complete) {
    *complete = 0;
    if (b->cursor == 0) b->activated = -b->n_links;
    for (b->work = 0; b->cursor < b->model->s->n_vars; b->cursor++) {
        const int32_t i = (int32_t)b->cursor;
        if (b->work++ > CHUNK) return 1;
        int alive = b->x[i] > 0 || b->u[i] + b->charge[i] + b->sum[i] > 0;
        int64_t next = b->positive_take[i] == 0 ? b->positive_begin[i] : b->positive_next[i];
        int pending = next < b->positive_begin[i + 1];
        if (alive && pending && !release_charges(b, i)) return 0;
        if (b->x[i] > 1e-9 && !turn_on(b, i)) return 0;
    }
    b->activated += b->n_links;
    b->cursor = 0;
    *complete = 1;
    return 1;
}

/* ---- one iteration ------------------------------------------------------------------------------------------ */

static void factor_pass(void *context, int64_t begin, int64_t end, int worker) {
    binary *b = context;
    (void)worker;
    const double inverse = 1 / b->rho;
    for (int64_t k = begin; k < end; k++) {
        link *l = &b->links[k];
        double p0 = b->x[l->i] - l->lambda[0] * inverse, q0 = b->x[l->j] - l->lambda[1] * inverse;
        gdmm_binary_step(p0, q0, 2 * l->t * inverse, &l->copy[0], &l->copy[1]);
    }
}

/* Bodies of the passes below: for one link, one variable. */

static void gather_link(binary *b, int64_t k) {
    const double inverse = 1 / b->rho;
    link *l = &b->links[k];
    l->copy[0] = RELAXATION * l->copy[0] + (1 - RELAXATION) * b->x[l->i];
    l->copy[1] = RELAXATION * l->copy[1] + (1 - RELAXATION) * b->x[l->j];
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
    link *l = &b->links[k];
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
    const link *l = &b->links[k - b->model->s->n_vars];
    double best = 0, both = l->t - l->lambda[0] - l->lambda[1];
    if (-l->lambda[0] > best) best = -l->lambda[0];
    if (-l->lambda[1] > best) best = -l->lambda[1];
    if (both > best) best = both;
    fgi_sum_add(&b->sum_of_bound, best);
    b->size_of_bound += fabs(l->lambda[0]) + fabs(l->lambda[1]);
}

/* ---- labelings ---------------------------------------------------------------------------------------------- */

/* What variable i adds to the score when it is on. All factors between variables that are on are active. */
static double worth(binary *b, int32_t i) {
    double w = b->u[i];
    for (int32_t k = b->first[i]; k >= 0;) {
        const link *l = &b->links[k / 2];
        if (b->labels[k % 2 ? l->i : l->j]) w += l->t;
        k = l->next[k % 2];
    }
    b->work += b->degree[i];
    return w;
}

/* Rounds x. A variable new to the labeling first gets its factors to the rest. A piece of it, see activate_more. */
static int round_labels(binary *b, int *complete) {
    *complete = 0;
    for (b->work = 0; b->cursor < b->model->s->n_vars; b->cursor++) {
        if (b->work++ > CHUNK) return 1;
        b->labels[b->cursor] = b->x[b->cursor] > 0.5;
        if (b->labels[b->cursor] && !turn_on(b, (int32_t)b->cursor)) return 0;
    }
    b->cursor = b->round = b->changed = 0;
    *complete = 1;
    return 1;
}

/* Flips single variables while that gains, a piece of it. */
static int ascend(binary *b, int *complete) {
    enum { MOST_ROUNDS = 50 };
    const int64_t n = b->model->s->n_vars;
    *complete = 0;
    for (b->work = 0;;) {
        for (; b->cursor < n; b->cursor++) {
            const int32_t i = (int32_t)b->cursor;
            if (b->work++ > CHUNK) return 1;
            double w = b->degree[i] || b->u[i] > 0 || b->labels[i] ? worth(b, i) : -1;
            if (b->labels[i] ? w >= 0 : w <= 0) continue;
            if (!b->is_on[i]) {
                if (!turn_on(b, i)) return 0;
                if (worth(b, i) <= 0) continue;
            }
            b->labels[i] = !b->labels[i];
            b->changed = 1;
        }
        b->cursor = 0;
        if (!b->changed || ++b->round == MOST_ROUNDS) break;
        b->changed = 0;
    }
    *complete = 1;
    return 1;
}

static void consider(fgi_solver *solver, binary *b) {
    double score = 0;
    for (int32_t i = 0; i < b->model->s->n_vars; i++)
        if (b->labels[i]) score += 0.5 * (b->u[i] + worth(b, i)); /* each pair is seen from both ends */
    if (b->best == -INFINITY || score > b->best + 1e-12 * fabs(b->best)) {
        b->best = score;
        fgi_solver_consider(solver, b->labels);
    }
}

/* ---- driver ------------------------------------------------------------------------------------------------- */

static void finish_iteration(fgi_solver *solver, binary *b) {
    fgi_info *info = &solver->info;
    info->iterations++;
    info->primal_infeasibility = b->primal;
    info->dual_infeasibility = b->dual;
    info->rho = b->rho;
    info->oracle_calls += b->n_links;
    info->entries_touched = b->n_links;
    info->active_per_factor = (double)b->n_links / (double)b->model->s->n_factors;
    if (info->iterations >= b->next_adapt) {
        b->next_adapt = info->iterations + ADAPT_EVERY + info->iterations / 20;
        if (b->primal > 50 * b->dual && b->dual > 0) b->rho *= 1.5;
        else if (2 * b->dual > b->primal) b->rho /= 1.5;
    }
}

static void certify(fgi_solver *solver, binary *b) {
    /* u and charge are sums over all factors of a variable, and charges are taken back one by one: 3 x degree. */
    double bound = fgi_safe_bound(b->model, fgi_sum_value(&b->sum_of_bound), 3 * (b->magnitude + b->size_of_bound));
    int stalled = b->last_bound - bound < 1e-7 * fgi_larger(fabs(bound), solver->info.unit);
    b->last_bound = bound;
    fgi_solver_bound(solver, bound);
    b->settled = stalled && b->primal < CONVERGED && b->dual < CONVERGED && b->activated == 0 ? b->settled + 1 : 0;
}

/* A piece of a pass over n indices; returns 1 when it was the last. */
static int each(binary *b, int64_t n, void (*body)(binary *, int64_t)) {
    for (b->work = 0; b->cursor < n; b->cursor++) {
        if (b->work++ > CHUNK) return 0;
        body(b, b->cursor);
    }
    b->cursor = 0;
    return 1;
}

static double first_penalty(const binary *b) {
    return b->scale > 0 ? 0.1 * b->scale / (double)b->n_links : fgi_mean_range(b->model);
}

/* Is it time for sweeps over all factors? Asked once after every certificate. */
static int is_stuck(const fgi_solver *solver, binary *b) {
    if (solver->settings.sweep == FGI_OFF) return 0;
    if (b->window++ == 0) b->window_bound = b->last_bound;
    if (b->window <= WINDOW) return 0;
    const double gained = b->window_bound - b->last_bound;
    b->window = 0;
    return (double)b->n_links > MOST_TOUCHED * (double)b->model->s->n_factors &&
        gained < WINDOW_GAIN * (solver->info.bound - solver->info.score);
}

/* The set-up: folds all tables and lists the positive factors of each variable. */
static int set_up(fgi_solver *solver, binary *b) {
    const fgi_structure *st = b->model->s;
    switch (b->stage) {
    case FOLD:
        if (!each(b, st->n_vars, fold_variable)) return 1;
        fgi_sum_add(&b->constant, st->constant);
        b->magnitude = 4 * gdmm_magnitude(b->model); /* the closed form takes differences of all entries */
        b->stage = COUNT;
        return 1;
    case COUNT:
        if (!each(b, st->n_factors, fold_factor)) return 1;
        if (!begin_fill(b)) return 0;
        solver->info.memory += 4 * b->positive_begin[st->n_vars];
        b->stage = FILL;
        return 1;
    default:
        if (!each(b, st->n_factors, fill_factor)) return 1;
        for (int64_t i = 0; i < st->n_vars; i++) b->x[i] = b->u[i] + b->charge[i] > 0;
        b->stage = ACTIVATE;
        return 1;
    }
}

/* ---- handing over to sweeps over all factors ------------------------------------------------------------------ */

/* Our multipliers for every label of every factor: what is not active has its charge. */
static double *all_messages(const binary *b) {
    const fgi_structure *st = b->model->s;
    double *mu = fgi_calloc(4 * st->n_factors, sizeof *mu);
    for (int64_t f = 0; mu && f < st->n_factors; f++) {
        const fgi_view v = fgi_factor_view(b->model, f);
        const double t00 = fgi_view_at2(&v, 0, 0), t = interaction(&v), half = t > 0 ? 0.5 * t : 0;
        mu[4 * f + 1] = fgi_view_at2(&v, 1, 0) - t00 + half;
        mu[4 * f + 3] = fgi_view_at2(&v, 0, 1) - t00 + half;
    }
    for (int64_t k = 0; mu && k < b->n_links; k++) {
        const link *l = &b->links[k];
        const double half = l->t > 0 ? 0.5 * l->t : 0;
        mu[4 * l->factor + 1] += l->lambda[0] - half;
        mu[4 * l->factor + 3] += l->lambda[1] - half;
    }
    return mu;
}

/* A piece of the other method's work; its labelings and bounds are ours. */
static fgi_rc sweep(fgi_solver *solver, binary *b) {
    fgi_info *info = &solver->info;
    fgi_rc rc = FGI_OK;
    if (!b->sweep) {
        fgi_settings settings = solver->settings;
        settings.method = FGI_TRWS;
        settings.max_iterations = -1;
        rc = fgi_solver_create(solver->model, &settings, &b->sweep, NULL);
        double *mu = rc ? NULL : all_messages(b);
        if (!rc) rc = mu ? fgi_solver_warm_start(b->sweep, mu, NULL) : FGI_NO_MEMORY;
        free(mu);
        if (!rc && info->score > -INFINITY) rc = fgi_solver_offer(b->sweep, solver->best, NULL);
    }
    fgi_info seen;
    if (!rc) rc = fgi_solver_run(b->sweep, SWEEP_SLICE, 1, &seen);
    if (rc) return rc;
    info->sweeps = seen.iterations;
    info->sweep_entries = seen.entries_touched;
    info->entries_touched = b->n_links + info->sweep_entries;
    solver->finder = FGI_FOUND_BY_SWEEP;
    if (seen.score > info->score) fgi_solver_consider(solver, b->sweep->best);
    fgi_solver_bound(solver, seen.bound);
    if (seen.status == FGI_CONVERGED) info->status = FGI_CONVERGED;
    return FGI_OK;
}

/* Factors join. After the set-up that is the time for a first labeling, too. */
static int activation(fgi_solver *solver, binary *b) {
    const int64_t t = solver->info.iterations;
    int complete = 1;
    if (t >= b->next_activate || b->cursor > 0) {
        b->next_activate = t + ACTIVATE_EVERY;
        if (!activate_more(b, &complete)) return 0;
    }
    if (!complete) return 1;
    if (b->rho == 0) b->rho = solver->settings.rho > 0 ? solver->settings.rho : first_penalty(b);
    b->stage = t == 0 ? ROUND : FACTORS;
    return 1;
}

static int labeling(fgi_solver *solver, binary *b) {
    int complete;
    if (!(b->stage == ROUND ? round_labels(b, &complete) : ascend(b, &complete))) return 0;
    if (!complete) return 1;
    if (b->stage == ROUND) {
        b->stage = ASCEND;
        return 1;
    }
    consider(solver, b);
    if (b->settled > 1) solver->info.status = FGI_CONVERGED;
    b->stage = solver->info.iterations == 0 ? FACTORS : ACTIVATE;
    return 1;
}

/* One of the passes over links and variables. */
static void pass(fgi_solver *solver, binary *b) {
    const int64_t n = b->model->s->n_vars;
    switch (b->stage) {
    case FACTORS:
        fgi_pool_run(b->n_links > 4 * SMALL ? solver->pool : NULL, b->n_links, SMALL, factor_pass, b);
        memset(b->sum, 0, (size_t)n * sizeof(double));
        b->dual = 0;
        b->stage = GATHER;
        return;
    case GATHER:
        if (each(b, b->n_links, gather_link)) b->stage = VARIABLES;
        return;
    case VARIABLES:
        if (!each(b, n, update_variable)) return;
        b->primal = 0;
        b->stage = MULTIPLIERS;
        return;
    default:
        if (!each(b, b->n_links, update_multipliers)) return;
        measure_residuals(b);
        finish_iteration(solver, b);
        b->sum_of_bound = b->constant;
        b->size_of_bound = 0;
        b->stage = solver->info.iterations >= b->next_bound ? BOUND : ACTIVATE;
    }
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
        ok = set_up(solver, b);
        break;
    case ACTIVATE:
        seconds = &info->seconds_oracle;
        ok = activation(solver, b);
        break;
    case BOUND:
        seconds = &info->seconds_bound;
        if (!each(b, b->model->s->n_vars + b->n_links, bound_term)) break;
        b->next_bound = info->iterations + BOUND_EVERY;
        certify(solver, b);
        b->stage = is_stuck(solver, b) ? SWEEP : ROUND;
        break;
    case ROUND:
    case ASCEND:
        seconds = &info->seconds_decode;
        ok = labeling(solver, b);
        break;
    case SWEEP:
        seconds = &info->seconds_bound;
        solver->failure = sweep(solver, b);
        break;
    default: pass(solver, b);
    }
    *seconds += fgi_clock() - begin;
    return ok;
}

static fgi_rc binary_run(fgi_solver *solver, double deadline, int64_t iteration_limit) {
    binary *b = solver->state;
    do {
        if (!step(solver, b)) return FGI_NO_MEMORY;
    } while (!solver->failure && !fgi_solver_done(solver) && fgi_clock() < deadline &&
        (b->stage == BOUND || b->stage == ROUND || b->stage == ASCEND ||
            solver->info.iterations + solver->info.sweeps < iteration_limit));
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
