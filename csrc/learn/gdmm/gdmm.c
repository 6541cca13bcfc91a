/* learn/gdmm/gdmm.c - Greedy Direction Method of Multipliers for structural SVMs (Yen et al. 2016, Algorithm 1 with
 * Algorithm 4; Algorithm 2 is in learn/gdmm/away.c).
 *
 * Every visit of an example runs, block by block: greedy oracle (15), active-set subproblem (25), weights; then the
 * multipliers (13) of that example, which no other example reads. In shares p = (C [y = truth] - alpha(y)) / C of a
 * block's simplex, the block step is p <- P(p + grad / (Q C)). For a unigram Q = |x|^2 + rho * degree is the whole
 * Hessian, so the step is exact; for an edge the subproblem is solved by pairwise steps with their own exact curvature.
 */
#include "learn/gdmm/gdmm.h"
#include "base/simplex.h"

/* ---- unigram block ----------------------------------------------------------------------------------------------- */

/* Gradients of the labels of the support alone, into g->scores. */
static void active_gradients(fgi_learn_gdmm *g, int64_t token) {
    const fgi_learn_data *d = &g->L->data;
    const fgi_support *t = &g->tokens[token];
    const int32_t z = d->truth[token];
    const double weight = d->token_weight ? d->token_weight[token] : 1.0;
    for (int32_t at = 0; at < t->n; at++) {
        const int32_t y = t->label[at];
        double sum = y == z ? 0.0 : d->cost ? weight * d->cost[(int64_t)z * d->n_labels + y] : weight, messages = 0;
        for (int64_t j = d->row_begin[token]; j < d->row_begin[token + 1]; j++)
            sum += (d->value ? d->value[j] : 1.0) * g->L->w[(int64_t)d->feature[j] * d->n_labels + y];
        for (int32_t e = 0; e < t->degree; e++) messages += fgi_support_message(t, e, at);
        g->scores[y] = sum - g->rho * messages;
    }
}

/* The label to add, if any: none on a further round, which stays on the active set. */
static int32_t greedy_label(fgi_learn_gdmm *g, int64_t token, int further, double *value) {
    if (!further)
        return g->proposal ? fgi_learn_gdmm_unary_proposed(g, token, value)
                           : fgi_learn_gdmm_unary_argmax(g, token, value);
    active_gradients(g, token);
    return -1;
}

/* *loss: gradient of the best label seen minus that of the truth, this block's share of the factorwise hinge loss. */
static fgi_rc visit_token(fgi_learn_gdmm *g, int64_t token, int further, double *loss) {
    if (!further && g->index && g->s.batch <= 1) {
        fgi_rc rc = fgi_unigram_index_token(g, token, NULL);
        if (rc) return rc;
    }
    const fgi_learn_data *d = &g->L->data;
    fgi_support *t = &g->tokens[token];
    const int32_t z = d->truth[token];
    const double C = g->C, Q = g->row_norm[token] + g->rho * t->degree;
    double value = -INFINITY;
    int32_t best = greedy_label(g, token, further, &value);
    if (best >= 0 && value - g->scores[z] > *loss) *loss = value - g->scores[z];
    if (Q == 0) return FGI_OK; /* no features and no edges: nothing to learn */
    int32_t n = t->n, place = best >= 0 ? fgi_support_find(t, best) : 0;
    if (!fgi_learn_gdmm_reserve(g, n + 1)) return FGI_NO_MEMORY;
    for (int32_t at = 0; at < n; at++)
        g->mass[at] = ((t->label[at] == z ? C : 0.0) - t->value[at]) / C + g->scores[t->label[at]] / (Q * C);
    if (place < 0) g->mass[n++] = g->scores[best] / (Q * C);
    fgi_simplex_project(g->mass, n);
    double fresh = place < 0 ? g->mass[n - 1] : 0.0;
    for (int32_t at = 0; at < t->n; at++) {
        double alpha = (t->label[at] == z ? C : 0.0) - C * g->mass[at];
        g->mass[at] = alpha - t->value[at]; /* now the change */
        g->residuals.moved += t->degree * g->mass[at] * g->mass[at];
        t->value[at] = alpha;
    }
    const int32_t old = t->n;
    for (int32_t at = 0; at <= old; at++) {
        double change = at < old ? g->mass[at] : -C * fresh;
        int32_t y = at < old ? t->label[at] : best;
        if (change == 0.0 || (at == old && place >= 0)) continue;
        if (g->index) fgi_unigram_index_mark(g->index, y);
        for (int64_t j = d->row_begin[token]; j < d->row_begin[token + 1]; j++) {
            const double x = change * (d->value ? d->value[j] : 1.0);
            const int64_t at_weight = (int64_t)d->feature[j] * d->n_labels + y;
            g->squared_norm += x * (2 * g->L->w[at_weight] + x);
            fgi_learn_shift(g->L, at_weight, x);
        }
    }
    if (fresh > 0) {
        g->residuals.moved += t->degree * C * C * fresh * fresh;
        int32_t at = fgi_support_insert(g, t, best);
        if (at < 0) return FGI_NO_MEMORY;
        t->value[at] = -C * fresh;
    }
    return FGI_OK;
}

/* ---- edge block -------------------------------------------------------------------------------------------------- */

typedef struct edge_visit {
    fgi_support *u, *v;
    int32_t zu, zv;
    int64_t edge;
} edge_visit;

/* State s of the block, the truth being state n. */
static inline void labels_of(const edge_visit *x, const fgi_edge_block *e, int32_t s, int32_t *a, int32_t *b) {
    *a = s < e->n ? e->state[2 * s] : x->zu;
    *b = s < e->n ? e->state[2 * s + 1] : x->zv;
}

/* Pairwise steps on (25) with the true Hessian: along e_up - e_down it is 2 |phi|^2 + 2 rho (labels in which they
 * differ). g->mass holds the shares times C, g->gain the gradients. */
static void solve_edge(fgi_learn_gdmm *g, const edge_visit *x, const fgi_edge_block *e) {
    const double norm = fgi_learn_gdmm_edge_norm(g, x->edge);
    double first = 0;
    for (int32_t step = 0; step < 4 * e->n + 8; step++) {
        int32_t up = 0, down = -1, a, b, c, f;
        for (int32_t s = 0; s <= e->n; s++) {
            if (g->gain[s] > g->gain[up]) up = s;
            if (g->mass[s] > 0 && (down < 0 || g->gain[s] < g->gain[down])) down = s;
        }
        double excess = g->gain[up] - g->gain[down];
        if (step == 0) first = excess;
        if (excess <= 1e-4 * first || excess <= 1e-13) return;
        labels_of(x, e, up, &a, &b);
        labels_of(x, e, down, &c, &f);
        double t = excess / (2 * norm + 2 * g->rho * ((a != c) + (b != f)));
        if (t >= g->mass[down]) t = g->mass[down];
        g->mass[up] += t;
        g->mass[down] = t == g->mass[down] ? 0.0 : g->mass[down] - t;
        g->gain[up] -= norm * t;
        g->gain[down] += norm * t;
        for (int32_t s = 0; s <= e->n; s++) {
            int32_t p, q;
            labels_of(x, e, s, &p, &q);
            g->gain[s] += g->rho * t * ((p == c) + (q == f) - (p == a) - (q == b));
        }
    }
}

/* M_jf alpha_f changes by x at a label. */
static int shift_marginal(fgi_learn_gdmm *g, fgi_support *t, int32_t k, int32_t label, double x) {
    int32_t at = fgi_support_find(t, label);
    if (at < 0 && (at = fgi_support_insert(g, t, label)) < 0) return 0;
    fgi_support_row(t, 1 + 2 * k)[at] += x;
    return 1;
}

static fgi_rc move_state(
    fgi_learn_gdmm *g, const edge_visit *x, const fgi_edge_block *e, int32_t s, double beta_change) {
    int32_t a, b;
    labels_of(x, e, s, &a, &b);
    if (!shift_marginal(g, x->u, e->ku, a, -beta_change) || !shift_marginal(g, x->v, e->kv, b, -beta_change))
        return FGI_NO_MEMORY;
    return fgi_learn_gdmm_add_pair(g, x->edge, a, b, -beta_change);
}

static fgi_rc visit_edge(fgi_learn_gdmm *g, int32_t i, int64_t edge, int further, double *loss) {
    const fgi_learn_data *d = &g->L->data;
    fgi_edge_block *e = &g->edges[edge];
    const int64_t first = d->token_begin[i], k = d->n_labels;
    edge_visit x = {
        &g->tokens[first + e->u], &g->tokens[first + e->v], d->truth[first + e->u], d->truth[first + e->v], edge};
    fgi_argmax found = {-1, -INFINITY};
    fgi_rc rc = further ? FGI_OK : fgi_learn_gdmm_pair_argmax(g, i, edge, &found);
    if (rc) return rc;
    if (!fgi_learn_gdmm_reserve(g, e->n + 2) || !fgi_edge_reserve(g, e, e->n + 1)) return FGI_NO_MEMORY;
    const double truth = fgi_learn_gdmm_pair_gradient(g, i, edge, x.zu, x.zv);
    double left = g->C, least = INFINITY;
    int known = found.state < 0;
    for (int32_t s = 0; s < e->n; s++) {
        g->mass[s] = e->beta[s];
        g->gain[s] = fgi_learn_gdmm_pair_gradient(g, i, edge, e->state[2 * s], e->state[2 * s + 1]);
        left -= e->beta[s];
        if (g->gain[s] < least) least = g->gain[s];
        known |= e->state[2 * s] * k + e->state[2 * s + 1] == found.state;
    }
    if (left > 0 && truth < least) least = truth;
    if (found.state >= 0 && found.value - truth > *loss) *loss = found.value - truth;
    if (!known && found.value > least + 1e-12) {
        e->state[2 * e->n] = (int32_t)(found.state / k);
        e->state[2 * e->n + 1] = (int32_t)(found.state % k);
        e->beta[e->n] = g->mass[e->n] = 0;
        g->gain[e->n++] = found.value;
    }
    if (e->n == 0) return FGI_OK;
    g->mass[e->n] = left > 0 ? left : 0;
    g->gain[e->n] = truth;
    solve_edge(g, &x, e);
    double moved = 0;
    for (int32_t s = 0; s < e->n && !rc; s++) {
        double change = g->mass[s] - e->beta[s];
        if (change != 0.0) rc = move_state(g, &x, e, s, change);
        moved += change;
        e->beta[s] = g->mass[s];
    }
    if (!rc && moved != 0.0) rc = move_state(g, &x, e, e->n, -moved);
    int32_t n = 0; /* drop what became zero */
    for (int32_t s = 0; s < e->n; s++)
        if (e->beta[s] > 0) {
            e->state[2 * n] = e->state[2 * s];
            e->state[2 * n + 1] = e->state[2 * s + 1];
            e->beta[n++] = e->beta[s];
        }
    e->n = n;
    return rc;
}

/* ---- multipliers ------------------------------------------------------------------------------------------------- */

/* (13), and labels that no longer matter leave the support. */
void fgi_learn_gdmm_step_multipliers(fgi_learn_gdmm *g, int64_t token) {
    fgi_support *t = &g->tokens[token];
    const int32_t z = g->L->data.truth[token], rows = 1 + 2 * t->degree;
    int32_t n = 0;
    for (int32_t at = 0; at < t->n; at++) {
        double weight = fabs(t->value[at]);
        for (int32_t k = 0; k < t->degree; k++) {
            double marginal = fgi_support_row(t, 1 + 2 * k)[at], *lambda = fgi_support_row(t, 2 + 2 * k) + at;
            const double apart = marginal - t->value[at];
            *lambda += g->s.eta * apart;
            g->residuals.apart += apart * apart;
            g->residuals.marginals += t->value[at] * t->value[at];
            g->residuals.messages += *lambda * *lambda;
            weight += fabs(marginal) + fabs(*lambda);
        }
        if (t->label[at] != z && weight <= 1e-14 * g->C) continue;
        t->label[n] = t->label[at];
        for (int32_t r = 0; r < rows; r++) fgi_support_row(t, r)[n] = fgi_support_row(t, r)[at];
        n++;
    }
    t->n = n;
}

/* Every block once, then the multipliers. */
static fgi_rc visit_blocks(fgi_learn_gdmm *g, int32_t i, int further, double *total) {
    const int64_t first = g->L->data.token_begin[i], end = g->L->data.token_begin[i + 1];
    fgi_rc rc = FGI_OK;
    for (int64_t t = first; !rc && t < end; t++) {
        double loss = 0;
        rc = visit_token(g, t, further, &loss);
        *total += loss;
    }
    for (int64_t e = fgi_learn_gdmm_edge_begin(g, i); !rc && g->n_edges && e < fgi_learn_gdmm_edge_begin(g, i + 1);
         e++) {
        double loss = 0;
        rc = visit_edge(g, i, e, further, &loss);
        *total += loss;
    }
    for (int64_t t = first; !rc && t < end; t++) fgi_learn_gdmm_step_multipliers(g, t);
    return rc;
}

/* With proximal points C is large for the data, and the blocks of an example are far from agreement when it comes up:
 * further rounds over its active sets, without oracles, then save passes (of the 96 small problems of
 * bench/learning_any_c.py three more reach a gap of 1e-3 in 1000 passes, and all take half as many). */
enum { FURTHER_ROUNDS = 2 };

static fgi_rc visit_example(fgi_learn_gdmm *g, int32_t i) {
    const int rounds = g->L->proximal.center && g->n_edges ? FURTHER_ROUNDS : 0;
    double unused = 0;
    g->loss[i] = 0;
    fgi_learn_begin_visit(g->L, g->s.averaging);
    fgi_rc rc = visit_blocks(g, i, 0, &g->loss[i]);
    for (int round = 0; !rc && round < rounds; round++) rc = visit_blocks(g, i, 1, &unused);
    return rc;
}

/* Algorithm 4 on a batch: stops between batches only, so that they do not depend on the clock. */
static fgi_rc visit_batch(fgi_learn_gdmm *g, const int32_t *examples, int64_t n) {
    fgi_rc rc = FGI_OK;
    if (g->s.batch > 1 && g->index) rc = fgi_unigram_index_examples(g, examples, n, NULL);
    else if (g->s.batch > 1) fgi_learn_gdmm_propose(g, examples, n);
    for (int64_t k = 0; !rc && k < n; k++) rc = visit_example(g, examples[k]);
    return rc;
}

fgi_rc fgi_learn_gdmm_pass(
    fgi_learn_gdmm *g, const int32_t *examples, int64_t m, int64_t *next, double deadline, fgi_error *err) {
    const int64_t known = g->away ? g->n_away : g->L->data.n_examples;
    fgi_learn_gdmm_drop_guest(g);
    if (g->step.phase == FGI_AWAY_IDLE) fgi_audit_rarely(fgi_learn_gdmm_check(g));
    while (*next < m) {
        int64_t n = g->s.batch > 1 && !g->away ? g->s.batch : 1;
        if (n > m - *next) n = m - *next;
        for (int64_t k = *next; k < *next + n; k++)
            if (examples[k] < 0 || examples[k] >= known)
                return fgi_fail(err, FGI_BAD_ARGUMENT, k, "there is no example %d", (int)examples[k]);
        fgi_rc rc = g->away ? fgi_away_visit(g, examples[*next], deadline) : visit_batch(g, examples + *next, n);
        for (int k = 0; k < g->n_workers && !rc; k++)
            if (g->workers[k].starved) rc = FGI_NO_MEMORY;
        if (rc == FGI_BAD_ARGUMENT)
            return fgi_fail(err, rc, *next,
                g->index ? "the weights are too large for a search index" : "another block is under way");
        if (rc) return fgi_learn_gdmm_told(rc, err);
        if (g->step.phase != FGI_AWAY_IDLE) break;
        *next += n;
        if (fgi_clock() >= deadline) break;
    }
    return FGI_OK;
}

/* The multipliers rho lambda stay what they are. */
static void change_rho(fgi_learn_gdmm *g, double factor) {
    g->rho *= factor;
    for (int64_t j = 0; j < g->n_tokens; j++) {
        const fgi_support *t = &g->tokens[j];
        for (int32_t k = 0; k < t->degree; k++)
            for (int32_t at = 0; at < t->n; at++) fgi_support_row(t, 2 + 2 * k)[at] /= factor;
    }
}

/* Mean share of its box that the dual of a token uses. */
static double used_share(const fgi_learn_gdmm *g) {
    double sum = 0;
    for (int64_t j = 0; j < g->n_tokens; j++) {
        const int32_t at = fgi_support_find(&g->tokens[j], g->L->data.truth[j]);
        if (at >= 0) sum += g->tokens[j].value[at];
    }
    return sum / (g->C * (double)g->n_tokens);
}

/* Blocks with `factor` times their C: duals keep their shares, rho lambda and rho times a dual stay what they are. */
static void change_C(fgi_learn_gdmm *g, double factor) {
    g->C *= factor;
    g->rho /= factor;
    for (int64_t j = 0; j < g->n_tokens; j++) {
        const fgi_support *t = &g->tokens[j];
        for (int32_t r = 0; r < 1 + 2 * t->degree; r++)
            for (int32_t at = 0; at < t->n; at++) fgi_support_row(t, r)[at] *= factor;
    }
    for (int64_t e = 0; e < g->n_edges; e++)
        for (int32_t s = 0; s < g->edges[e].n; s++) g->edges[e].beta[s] *= factor;
    double *sums[] = {&g->residuals.apart, &g->residuals.marginals, &g->residuals.moved, &g->residuals.messages};
    for (int k = 0; k < 4; k++) *sums[k] *= factor * factor;
    fgi_proximal_rescale(g->L, g->C / g->s.C);
}

/* The C that the blocks began with counts on duals that fill a good part of their boxes. Where nearly all examples are
 * fitted the duals are a small part of C, and proximal points that a small C chains together forget an early overshoot
 * only after C / C' of them: then the blocks may have a larger C, by the square of the proportion (decision 0016). */
static const double USUAL_SHARE = 0.15; /* part of their boxes that the duals usually fill */
static const double MOST_OF_C = 0.05;   /* part of C that the blocks may have, at most */

static void fit_block_C(fgi_learn_gdmm *g) {
    if (g->away || g->s.block_C > 0) return;
    const double room = USUAL_SHARE / used_share(g), wanted = room * room * g->easy_C, largest = MOST_OF_C * g->s.C;
    const double factor = fgi_larger(g->easy_C, wanted < largest ? wanted : largest) / g->C, most = 1.5;
    if (!(factor > 0) || !isfinite(factor)) return; /* numbers too large to train on: the run will say so */
    if (factor != 1.0) change_C(g, factor > most ? most : factor < 1 / most ? 1 / most : factor);
}

/* Over-relaxation of proximal points: problems with a large C take fewer passes by it. Label sets are better without
 * (decision 0016). */
static const double RELAXATION = 1.6;

fgi_rc fgi_learn_gdmm_end_pass(fgi_learn_gdmm *g, fgi_error *err) {
    fgi_audit_rarely(fgi_learn_gdmm_check(g));
    const double factor = g->s.eta > 0 && !g->s.fixed_rho ? fgi_residuals_balance(&g->residuals) : 1.0;
    if (factor != 1.0) change_rho(g, factor);
    /* Clusters that are made anew for every pass are worth their price where answers depend on them. */
    if (g->index && g->s.probes > 0) fgi_unigram_index_forget(g->index);
    if (!fgi_proximal_end_pass(g->L, RELAXATION)) return FGI_OK;
    fit_block_C(g);
    if (g->index) fgi_unigram_index_forget(g->index); /* the point has moved, and all weights with it */
    return fgi_learn_gdmm_told(fgi_learn_gdmm_fill_tables(g), err);
}

void fgi_learn_gdmm_get_penalty(const fgi_learn_gdmm *g, double *state) {
    fgi_penalty_export(g->rho, &g->residuals, g->C, state);
}

void fgi_learn_gdmm_set_penalty(fgi_learn_gdmm *g, const double *state) {
    double C;
    fgi_penalty_import(state, &g->rho, &g->residuals, &C);
    if (!(C > 0) || !g->L->proximal.center) return;
    g->C = C;
    g->L->proximal.share = g->C / g->s.C;
}
