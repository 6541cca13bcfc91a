/* learn/crf/crf.c - the loss, its gradient on a set of coordinates, and marginals.
 *
 * A value fills scores and sums upward, block by block of examples. Its gradient goes on from there: down, which leaves
 * marginal minus truth in every cell, then along the features asked for, each over the tokens that have it. Results of
 * blocks and units are added in their order, so the number of threads changes nothing. */
#include <string.h>
#include "learn/crf/crf.h"

typedef crf_job job;

/* Derivatives by one in so many of the weights of pairs are summed one by one: an outer product goes eight entries at a
 * time. */
#define FEW_PAIRS 16

/* Cells and messages of a block: its place in the span, or the thread's own. */
static double *cells_of(const job *j, crf_worker *k, int64_t block) {
    const fgi_crf *c = j->c;
    if (j->span < 0) return k->cells;
    return c->span_cells + crf_cell(c, c->data.token_begin[c->block[block]]) -
        crf_cell(c, c->data.token_begin[c->block[c->span[j->span]]]);
}
static double *messages_of(const job *j, crf_worker *k, int64_t block) {
    const fgi_crf *c = j->c;
    if (!c->messages) return NULL;
    if (j->span < 0) return k->messages;
    return c->span_messages + crf_message(c, c->data.token_begin[c->block[block]]) -
        crf_message(c, c->data.token_begin[c->block[c->span[j->span]]]);
}

/* The same for the labels that pruning keeps. */
static int32_t *labels_of(const job *j, crf_worker *k, int64_t block) {
    const fgi_crf *c = j->c;
    if (!(c->prune.mass > 0)) return NULL;
    return j->span < 0 ? k->labels : c->prune.labels + (cells_of(j, k, block) - c->span_cells);
}

static void block_up(const job *j, int64_t block, crf_worker *k) {
    fgi_crf *c = j->c;
    const int64_t first = c->block[block], last = c->block[block + 1];
    double *cells = cells_of(j, k, block), *messages = messages_of(j, k, block);
    int32_t *labels = labels_of(j, k, block);
    fgi_sum loss = {0};
    k->w = j->w;
    crf_fill_scores(k, j->w, block, cells);
    for (int64_t i = first; i < last; i++) {
        const int64_t token = c->data.token_begin[i], zero = c->data.token_begin[first];
        double truth, *own = cells + crf_cell(c, token) - crf_cell(c, zero);
        double *up = messages ? messages + crf_message(c, token) - crf_message(c, zero) : NULL;
        const double log_z = crf_example_up(k, i, own, labels ? labels + (own - cells) : NULL, up, &truth);
        fgi_sum_add(&loss, (c->weight ? c->weight[i] : 1.0) * (log_z - truth));
        if (j->log_z) j->log_z[i] = log_z;
        if (j->truth_score) j->truth_score[i] = truth;
    }
    c->block_loss[block] = fgi_sum_value(&loss);
}

static void blocks_up(void *context, int64_t begin, int64_t end, int worker) {
    const job *j = context;
    const int64_t base = j->span < 0 ? 0 : j->c->span[j->span];
    for (int64_t b = begin; b < end && !crf_is_late(j->c); b++) block_up(j, base + b, &j->c->workers[worker]);
}

static void run_up(job *j) {
    fgi_crf *c = j->c;
    const int64_t n = j->span < 0 ? c->n_blocks : c->span[j->span + 1] - c->span[j->span];
    fgi_pool_run(c->pool, n, 1, blocks_up, j);
}

/* ---- value ----------------------------------------------------------------------------------------------------- */

void fgi_crf_set_deadline(fgi_crf *c, double deadline) {
    c->deadline = deadline;
    atomic_store(&c->late, 0);
}

int fgi_crf_is_late(const fgi_crf *c) { return atomic_load(&c->late); }

fgi_rc fgi_crf_value(fgi_crf *c, const double *w, const int64_t *support, int64_t n, double *loss, fgi_error *err) {
    const double *nonzero = c->touched.possible && support ? NULL : w;
    if (!crf_pattern_set(c, &c->support, nonzero, support, n) || !crf_load_weights(c, w)) return fgi_no_memory(err);
    c->info.passes++;
    c->went_down = 0;
    if (crf_touched_load(c, w)) return crf_touched_value(c, w, support != NULL, loss) ? FGI_OK : fgi_no_memory(err);
    if (!crf_kinds_load(c, w, support, n)) return fgi_no_memory(err);
    if (!c->kinds.now) crf_load_tables(c, w);
    job j = {.c = c, .w = w, .span = c->n_spans == 1 ? 0 : -1};
    run_up(&j);
    fgi_sum total = {0};
    for (int64_t b = 0; b < c->n_blocks; b++) fgi_sum_add(&total, c->block_loss[b]);
    *loss = fgi_sum_value(&total);
    return FGI_OK;
}

/* ---- gradient -------------------------------------------------------------------------------------------------- */

static void unit_down(const job *j, int64_t unit, crf_worker *k) {
    fgi_crf *c = j->c;
    const int by_kinds = c->kinds.adding != CRF_BY_PAIRS;
    const int64_t at = unit * (by_kinds ? c->kinds.size : c->pair_stride);
    double *scaled = (by_kinds ? c->kinds.scaled : c->pair_scaled) + at;
    double *direct = (by_kinds ? c->kinds.direct : c->pair_direct) + at;
    int64_t from = c->unit[unit], to = c->unit[unit + 1];
    if (from < c->span[j->span]) from = c->span[j->span];
    if (to > c->span[j->span + 1]) to = c->span[j->span + 1];
    k->w = j->w;
    for (int64_t b = from; b < to && !crf_is_late(j->c); b++) {
        double *cells = cells_of(j, k, b), *messages = messages_of(j, k, b);
        const int32_t *labels = labels_of(j, k, b);
        for (int64_t i = c->block[b]; i < c->block[b + 1]; i++) {
            const int64_t token = c->data.token_begin[i], zero = c->data.token_begin[c->block[b]];
            const int64_t own = crf_cell(c, token) - crf_cell(c, zero);
            crf_example_down(k, i, cells + own, labels ? labels + own : NULL,
                messages ? messages + crf_message(c, token) - crf_message(c, zero) : NULL, scaled, direct);
        }
    }
}

static void units_down(void *context, int64_t begin, int64_t end, int worker) {
    const job *j = context;
    for (int64_t u = begin; u < end; u++) unit_down(j, u, &j->c->workers[worker]);
}

int crf_clear_pairs(fgi_crf *c, int64_t stride) {
    int64_t all;
    if (!fgi_mul(c->n_units, stride, &all)) return 0;
    if (all > c->pair_room || !c->pair_scaled) {
        free(c->pair_scaled), free(c->pair_direct);
        c->pair_scaled = fgi_alloc(all, sizeof(double));
        c->pair_direct = fgi_alloc(all, sizeof(double));
        if (!c->pair_scaled || !c->pair_direct) {
            c->pair_room = 0;
            return 0;
        }
        c->info.memory += 16 * (all - c->pair_room);
        c->pair_room = all;
    }
    c->pair_stride = stride;
    memset(c->pair_scaled, 0, (size_t)all * sizeof(double));
    memset(c->pair_direct, 0, (size_t)all * sizeof(double));
    return 1;
}

/* at: place in the tables; from: among the sums. */
static double pair_derivative(const fgi_crf *c, int64_t at, int64_t from, int curvature) {
    const int64_t square = (int64_t)c->data.n_labels * c->data.n_labels;
    double scaled = 0, direct = 0;
    for (int64_t u = 0; u < c->n_units; u++) {
        scaled += c->pair_scaled[u * c->pair_stride + from];
        direct += c->pair_direct[u * c->pair_stride + from];
    }
    if (c->table) direct += scaled * c->table[at / square].exp[at % square];
    /* the residuals of pseudo-likelihood have had the truth taken away, twice an edge; a curvature is close to the
     * expected number of pairs */
    if (curvature) return fgi_larger(direct + (c->pseudo ? 2 * c->pair_truth[at] : 0.0), 0.0);
    return c->pseudo ? direct : direct - c->pair_truth[at];
}

static fgi_rc derivatives(
    fgi_crf *c, const double *w, const int64_t *set, int64_t n, int square, double *out, fgi_error *err) {
    if (set && !crf_pattern_set(c, &c->wanted, NULL, set, n)) return fgi_no_memory(err);
    if (!set) n = c->dimension;
    const int64_t unary = set ? c->wanted.first_pair : c->unary, pairs = crf_pair_size(c);
    memset(out, 0, (size_t)n * sizeof(double));
    const int few =
        set && c->tables == CRF_ONE_TABLE && !c->cell && c->columns > CRF_NARROW && FEW_PAIRS * (n - unary) < pairs;
    /* a second question at this point, and its pairs have been summed. By kinds some pairs are summed in other units of
     * blocks than all of them: a run that goes on from here must get the bits of one that was not broken. */
    const int summed = c->all_pairs && !(c->kinds.possible && set);
    const int again = c->went_down && c->n_spans == 1 && (summed || unary == n);
    c->few_pairs = few ? set + unary : NULL;
    c->n_few = n - unary;
    if (!again && c->kinds.possible && !crf_kinds_begin_sums(c, set, unary, n)) return fgi_no_memory(err);
    if (!again && !c->kinds.possible) {
        c->packed_pairs = few && !c->pseudo && !(c->prune.mass > 0);
        if (!crf_clear_pairs(c, c->packed_pairs ? c->n_few : pairs)) return fgi_no_memory(err);
    }
    job j = {.c = c, .w = w, .set = set, .gradient = out, .square = square};
    if (c->touched.now) {
        c->info.derivatives += n;
        return crf_touched_gradient(&j) ? FGI_OK : fgi_no_memory(err);
    }
    for (j.span = 0; j.span < c->n_spans; j.span++) {
        j.from = c->data.token_begin[c->block[c->span[j.span]]];
        j.to = c->data.token_begin[c->block[c->span[j.span + 1]]];
        if (c->n_spans > 1 || (c->went_down && !again)) run_up(&j); /* its cells are not there */
        if (!again) fgi_pool_run(c->pool, c->n_units, 1, units_down, &j);
        if (!crf_add_features(&j)) return fgi_no_memory(err);
    }
    if (!again) c->all_pairs = !few && c->kinds.adding != CRF_OF_ENTRIES;
    c->few_pairs = NULL;
    c->went_down = !crf_is_late(c);
    c->info.derivatives += n;
    if (c->kinds.possible) crf_kinds_derivatives(&j, unary, n);
    else
        for (int64_t k = unary; k < n; k++) {
            const int64_t at = (set ? set[k] : k) - c->unary;
            out[k] = pair_derivative(c, at, c->packed_pairs ? k - unary : at, square);
        }
    return FGI_OK;
}

fgi_rc fgi_crf_gradient(fgi_crf *c, const double *w, const int64_t *set, int64_t n, double *gradient, fgi_error *err) {
    return derivatives(c, w, set, n, 0, gradient, err);
}

/* x of a feature, where it is not zero: sum of x^2 / sum of |x|. */
static double size_of(const fgi_crf *c, int64_t feature) {
    double one = 0, two = 0;
    for (int64_t e = c->column_begin[feature]; c->column_value && e < c->column_begin[feature + 1]; e++)
        one += fabs(c->column_value[e]), two += c->column_value[e] * c->column_value[e];
    return one > 0 ? two / one : 1;
}

fgi_rc fgi_crf_curvature(
    fgi_crf *c, const double *w, const int64_t *set, int64_t n, double *curvature, fgi_error *err) {
    if (!set) n = c->dimension;
    double *missing = fgi_alloc(n, sizeof(double));
    if (!missing) return fgi_no_memory(err);
    memcpy(missing, curvature, (size_t)n * sizeof(double));
    const fgi_rc rc = derivatives(c, w, set, n, 1, curvature, err);
    int64_t feature = -1;
    double scale = 1;
    for (int64_t k = 0; !rc && k < n; k++) {
        const int64_t j = set ? set[k] : k;
        if (j < c->unary && j / c->columns != feature) scale = size_of(c, feature = j / c->columns);
        else if (j >= c->unary) scale = 1; /* values of edges are shares, as a rule */
        curvature[k] += scale * fabs(missing[k]);
    }
    free(missing);
    return rc;
}

/* ---- marginals ------------------------------------------------------------------------------------------------- */

static void unit_marginals(void *context, int64_t begin, int64_t end, int worker) {
    const job *j = context;
    fgi_crf *c = j->c;
    crf_worker *k = &c->workers[worker];
    k->w = j->w;
    k->pairs = j->pairs;
    for (int64_t b = c->span[j->span] + begin; b < c->span[j->span] + end; b++) {
        double *cells = cells_of(j, k, b), *messages = messages_of(j, k, b);
        const int32_t *labels = labels_of(j, k, b);
        for (int64_t i = c->block[b]; i < c->block[b + 1]; i++) {
            const int64_t token = c->data.token_begin[i], zero = c->data.token_begin[c->block[b]];
            if (j->log_z[i] == -INFINITY) continue;
            const int64_t at = crf_cell(c, token) - crf_cell(c, zero);
            crf_example_down(k, i, cells + at, labels ? labels + at : NULL,
                messages ? messages + crf_message(c, token) - crf_message(c, zero) : NULL, NULL, NULL);
        }
    }
    k->pairs = NULL;
}

fgi_rc fgi_crf_marginals(
    fgi_crf *c, const double *w, double *log_z, double *truth_score, double *marginals, double *pairs, fgi_error *err) {
    if (!crf_pattern_set(c, &c->support, w, NULL, 0) || !crf_load_weights(c, w)) return fgi_no_memory(err);
    crf_load_tables(c, w);
    double *own = log_z ? NULL : fgi_alloc(c->data.n_examples, sizeof(double));
    if (!log_z && !own) return fgi_no_memory(err);
    job j = {.c = c, .w = w, .log_z = log_z ? log_z : own, .truth_score = truth_score, .pairs = pairs};
    for (j.span = 0; j.span < c->n_spans; j.span++) {
        run_up(&j);
        if (!marginals && !pairs) continue;
        fgi_pool_run(c->pool, c->span[j.span + 1] - c->span[j.span], 1, unit_marginals, &j);
        const int64_t from = c->data.token_begin[c->block[c->span[j.span]]];
        const int64_t to = c->data.token_begin[c->block[c->span[j.span + 1]]];
        if (marginals)
            memcpy(marginals + crf_cell(c, from), c->span_cells,
                (size_t)(crf_cell(c, to) - crf_cell(c, from)) * sizeof(double));
    }
    free(own);
    c->info.passes++;
    return FGI_OK;
}
