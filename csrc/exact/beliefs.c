/* exact/beliefs.c - exact marginals and max-marginals: orders, cut sets, samples. See fginfer_exact.h.
 *
 * All messages are kept for the way back. Where they do not fit, variables are held (a cut set): each
 * joint label of them is a run of its own, with smaller tables. */
#include <string.h>
#include "exact/beliefs.h"

enum { LOG2_CAP = 48 };         /* no table is ever this large; keeps sizes within int64 */
static const double RUNS = 1e6; /* joint labels of a cut set, at most */

void fgi_beliefs_free(fgi_beliefs *b) {
    if (!b) return;
    fgi_eliminator_free(b->e);
    fgi_model_free(b->model);
    void *owned[] = {
        b->free_vars, b->cut, b->labels, b->is_cut, b->at, b->out, b->joint, b->offsets, b->steps, b->digits, b->row};
    for (size_t k = 0; k < sizeof owned / sizeof owned[0]; k++) free(owned[k]);
    free(b);
}

static fgi_beliefs *allocate(const fgi_model *m, int32_t kind) {
    fgi_beliefs *b = fgi_calloc(1, sizeof *b);
    if (!b) return NULL;
    const int64_t n = m->s->n_vars;
    b->kind = kind;
    b->model = fgi_model_snapshot(m);
    b->free_vars = fgi_alloc(n, sizeof(int32_t));
    b->cut = fgi_alloc(n, sizeof(int32_t));
    b->labels = fgi_calloc(n, sizeof(int32_t));
    b->is_cut = fgi_calloc(n, 1);
    b->at = fgi_alloc(n + 1, sizeof(int64_t));
    b->row = fgi_alloc(m->s->max_card, sizeof(double));
    if (!b->model || !b->free_vars || !b->cut || !b->labels || !b->is_cut || !b->at || !b->row ||
        !(b->e = fgi_eliminator_create(b->model))) {
        fgi_beliefs_free(b);
        return NULL;
    }
    b->at[0] = 0;
    for (int64_t i = 0; i < n; i++) b->at[i + 1] = b->at[i] + m->s->cards[i];
    b->out = fgi_alloc(b->at[n], sizeof(double));
    if (b->out) return b;
    fgi_beliefs_free(b);
    return NULL;
}

static double message_states(const fgi_beliefs *b, int32_t p) { return (double)b->e->messages[p].size; }

/* Bytes of all messages, the largest joint table, and copies of a bucket's factors. */
static double memory_needed(const fgi_beliefs *b) {
    const fgi_eliminator *e = b->e;
    double messages = 0, largest = 0;
    for (int32_t p = 0; p < e->n; p++) {
        double joint = message_states(b, p) * e->card[p];
        messages += message_states(b, p);
        for (int32_t k = e->first_factor[p]; k >= 0; k = e->factor_next[k]) {
            double copy = 1;
            for (int64_t l = e->scope_begin[k]; l < e->scope_begin[k + 1]; l++) copy *= e->card[e->scope[l]];
            joint += copy;
        }
        largest = fmax(largest, joint);
    }
    return 8 * (1.5 * messages + 1.5 * largest); /* growing arrays have half as much to spare */
}

/* The variable that saves most memory for each doubling of the runs. */
static int32_t best_to_hold(const fgi_beliefs *b, double *saved) {
    const fgi_eliminator *e = b->e;
    for (int32_t p = 0; p < e->n; p++) saved[p] = 0;
    for (int32_t p = 0; p < e->n; p++) {
        const int32_t *bag, n = belief_bag(b, p, &bag);
        const double joint = message_states(b, p) * e->card[p];
        saved[p] += joint;
        for (int32_t k = 0; k < n; k++) saved[bag[k]] += joint;
    }
    int32_t best = -1;
    for (int32_t p = 0; p < e->n; p++) {
        if (e->card[p] < 2) continue;
        saved[p] *= (1 - 1.0 / e->card[p]) / log2(e->card[p]);
        if (best < 0 || saved[p] > saved[best]) best = p;
    }
    return best < 0 ? -1 : e->var[best];
}

static fgi_rc pose(fgi_beliefs *b) {
    b->n_free = 0;
    for (int32_t i = 0; i < b->model->s->n_vars; i++)
        if (!b->is_cut[i]) b->free_vars[b->n_free++] = i;
    return fgi_eliminator_pose(b->e, b->labels, b->free_vars, b->n_free, -INFINITY);
}

/* Finds an order, and holds variables until its tables fit. */
static fgi_rc choose(fgi_beliefs *b, double memory, double effort) {
    double *saved = fgi_alloc(b->model->s->n_vars, sizeof(double));
    fgi_rc rc = saved ? FGI_OK : FGI_NO_MEMORY;
    b->info.runs = 1; /* one run for every labeling of the variables that are held for want of memory */
    while (!rc) {
        if ((rc = pose(b)) || (rc = fgi_eliminator_order(b->e, LOG2_CAP, effort))) break;
        b->bags = fgi_eliminator_bags(b->e);
        b->info.width = b->bags->width;
        b->info.work = b->bags->work;
        b->info.memory = memory_needed(b);
        if (b->info.memory <= memory) break;
        const int32_t var = best_to_hold(b, saved);
        if (var < 0) rc = FGI_UNSUPPORTED;
        else {
            b->is_cut[var] = 1;
            b->cut[b->n_cut++] = var;
            b->info.runs *= b->model->s->cards[var];
            if (b->info.runs > RUNS) rc = FGI_UNSUPPORTED;
        }
    }
    free(saved);
    return rc;
}

fgi_rc fgi_beliefs_create(const fgi_model *m, int32_t kind, const uint8_t *held, double memory, double effort,
    fgi_beliefs **out, fgi_error *err) {
    if (!(memory >= 0)) return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "the memory limit must be >= 0 bytes");
    if (kind != FGI_BELIEFS_MAX && kind != FGI_BELIEFS_SUM)
        return fgi_fail(err, FGI_BAD_ARGUMENT, kind, "beliefs are sums or maxima");
    fgi_beliefs *b = allocate(m, kind);
    if (!b) return fgi_no_memory(err);
    for (int32_t i = 0; held && i < m->s->n_vars; i++)
        if ((b->is_cut[i] = held[i] != 0)) b->cut[b->n_cut++] = i;
    fgi_rc rc = choose(b, memory, effort > 0 ? effort : 2e7);
    if (!rc) rc = fgi_beliefs_hold(b, NULL, err);
    if (!rc) {
        *out = b;
        return FGI_OK;
    }
    fgi_beliefs_free(b);
    if (rc == FGI_UNSUPPORTED)
        return fgi_fail(
            err, rc, -1, "no elimination keeps the limit of %.3g bytes, not even with variables held", memory);
    return fgi_no_memory(err);
}

int64_t fgi_beliefs_cut(const fgi_beliefs *b, int32_t *vars) {
    if (vars && b->n_cut) memcpy(vars, b->cut, (size_t)b->n_cut * sizeof(int32_t));
    return b->n_cut;
}

/* What no free variable takes part in. */
static double held_score(const fgi_beliefs *b) {
    const fgi_structure *s = b->model->s;
    double sum = s->constant;
    for (int64_t c = 0; c < b->n_cut; c++) {
        const int32_t var = b->cut[c];
        sum += fgi_unary(b->model, var)[b->labels[var]];
        for (int64_t k = s->adj_begin[var]; k < s->adj_begin[var + 1]; k++) {
            const int32_t f = s->adj[k], arity = fgi_factor_arity(s, f), *vars = fgi_factor_vars(s, f);
            int mine = 1; /* the least of its variables counts it */
            for (int32_t l = 0; l < arity; l++) mine &= b->is_cut[vars[l]] && vars[l] >= var;
            if (!mine) continue;
            const fgi_view v = fgi_factor_view(b->model, f);
            sum += fgi_view_score(b->model, &v, b->labels);
        }
    }
    return sum;
}

fgi_rc fgi_beliefs_hold(fgi_beliefs *b, const int32_t *labels, fgi_error *err) {
    for (int64_t k = 0; k < b->n_cut; k++) {
        const int32_t label = labels ? labels[k] : 0;
        if (label < 0 || label >= b->model->s->cards[b->cut[k]])
            return fgi_fail(err, FGI_BAD_ARGUMENT, b->cut[k], "variable %d has no label %d", b->cut[k], label);
        b->labels[b->cut[k]] = label;
    }
    fgi_rc rc = pose(b);
    if (!rc) rc = fgi_eliminator_use_order(b->e, b->bags);
    if (rc) return fgi_fail(err, rc, -1, "out of memory");
    memset(&b->value, 0, sizeof b->value);
    fgi_sum_add(&b->value, held_score(b));
    b->phase = BELIEFS_UP;
    b->p = 0;
    b->block = -1;
    b->info.done = 0;
    b->info.value = 0;
    return FGI_OK;
}

/* Beliefs of the variables that are held; losses become max-marginals. */
static void finish(fgi_beliefs *b) {
    const int64_t n = b->model->s->n_vars;
    const double absent = b->kind == FGI_BELIEFS_SUM ? 0 : -INFINITY;
    for (int64_t k = 0; k < b->n_cut; k++) {
        const int32_t var = b->cut[k];
        for (int64_t a = b->at[var]; a < b->at[var + 1]; a++) b->out[a] = absent;
        b->out[b->at[var] + b->labels[var]] = b->kind == FGI_BELIEFS_SUM ? 1 : 0;
    }
    if (b->kind == FGI_BELIEFS_MAX)
        for (int64_t a = 0; a < b->at[n]; a++)
            b->out[a] = b->info.value == -INFINITY ? -INFINITY : b->out[a] + b->info.value;
}

fgi_rc fgi_beliefs_run(fgi_beliefs *b, int32_t both, double seconds, fgi_beliefs_info *info, fgi_error *err) {
    const double deadline = seconds < 0 ? INFINITY : fgi_clock() + seconds;
    fgi_rc rc = FGI_OK;
    if (b->phase == BELIEFS_UP) rc = fgi_beliefs_up(b, deadline);
    if (!rc && b->phase == BELIEFS_SUMMED) {
        b->info.value = fgi_sum_value(&b->value);
        if (both && b->info.value > -INFINITY) b->phase = BELIEFS_DOWN;
        b->block = -1;
    }
    if (!rc && b->phase == BELIEFS_DOWN) {
        rc = fgi_beliefs_down(b, deadline);
        if (b->phase == BELIEFS_DONE) finish(b);
    }
    if (rc) return fgi_fail(err, rc, -1, "out of memory");
    const int summed = b->phase >= BELIEFS_SUMMED, done = b->phase == BELIEFS_DONE || (summed && !both);
    *info = b->info;
    info->status = summed && b->info.value == -INFINITY ? FGI_INFEASIBLE : done ? FGI_OPTIMAL : FGI_RUNNING;
    info->done = b->info.work > 0 ? fmin(1, b->info.done / (b->info.work * (both ? 2 : 1))) : 1;
    return FGI_OK;
}

void fgi_beliefs_info_get(const fgi_beliefs *b, fgi_beliefs_info *info) {
    *info = b->info;
    info->status = FGI_RUNNING;
    info->done = 0;
}

int fgi_beliefs_get(const fgi_beliefs *b, double *out) {
    if (b->phase != BELIEFS_DONE) return 0;
    memcpy(out, b->out, (size_t)b->at[b->model->s->n_vars] * sizeof(double));
    return 1;
}

/* A label with the probabilities exp(row - top), not normalised. */
static int32_t draw(double *row, int32_t card, double top, fgi_rng *rng) {
    double total = 0;
    for (int32_t a = 0; a < card; a++) total += row[a] = exp(row[a] - top);
    double left = fgi_rng_unit(rng) * total;
    int32_t last = 0;
    for (int32_t a = 0; a < card; a++) {
        if (!(row[a] > 0)) continue;
        last = a;
        left -= row[a];
        if (left < 0) break;
    }
    return last;
}

int fgi_beliefs_sample(fgi_beliefs *b, int64_t count, uint64_t *state, int32_t *out) {
    if (b->phase != BELIEFS_SUMMED || b->kind != FGI_BELIEFS_SUM || b->info.value == -INFINITY) return 0;
    const int64_t n = b->model->s->n_vars;
    fgi_rng rng = {*state};
    for (int64_t c = 0; c < count; c++) {
        for (int32_t p = b->e->n; p-- > 0;) {
            const double top = fgi_eliminator_row(b->e, p, b->labels, b->row);
            b->labels[b->e->var[p]] = draw(b->row, b->e->card[p], top, &rng);
        }
        memcpy(out + c * n, b->labels, (size_t)n * sizeof(int32_t));
    }
    *state = rng.state;
    return 1;
}
