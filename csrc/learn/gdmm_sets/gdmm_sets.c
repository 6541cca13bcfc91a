/* learn/gdmm_sets/gdmm_sets.c - gdmm for label sets with pairwise interactions (Yen et al. 2016, Algorithm 1 with
 * Algorithm 3), on the one-number form of binary factors (docs/mathematics.md, section 3).
 *
 * Example i has a mass X_l in [0, C] for each label (C: on) and Y_lm in [0, C] for each pair (both on), and
 *     w_l = sum_i (C t_l - X_l) x_i,   v_lm = sum_i (C t_l t_m - Y_lm),
 *     dual = sum_i loss(X_i) - |w|^2 / 2 - |v|^2 / 2,
 * with Y <= X_l, Y <= X_m, X_l + X_m - C <= Y in the local polytope. These three have multipliers P_l, P_m, Q >= 0
 * (scaled by 1/rho). Labels and pairs that are not listed have X = Y = 0 and no multipliers; listing is the greedy
 * part:
 *   - labels: the best few with a positive gradient <w_l, x> + loss;
 *   - pairs of listed labels: when v_lm > 0 and both are on in part, or when X_l + X_m > C;
 *   - the joint FMO: of all other pairs the one with the largest v_lm + min(0, s_l) + min(0, s_m),
 *     s = 0 for labels that are on in part (learn/gdmm_sets/joint.c).
 *
 * Every block is one-dimensional and piecewise quadratic, and solved exactly. */
#include <string.h>
#include "base/assert.h"
#include "learn/gdmm_sets/gdmm_sets.h"

/* ---- one-dimensional blocks --------------------------------------------------------------------------------- */

typedef struct hinge_term {
    double sign, offset;
} hinge_term; /* rho/2 (sign z + offset)_+^2 */

/* argmin over z in [0, C] of  -g (z - z0) + q/2 (z - z0)^2 + sum of terms: Newton on the derivative, which is
 * increasing and piecewise linear, inside a bracket. */
static double minimise(double z0, double g, double q, double rho, const hinge_term *terms, int32_t n, double C) {
    double lo = 0, hi = C, z = z0 < 0 ? 0 : z0 > C ? C : z0;
    for (int32_t step = 0; step < 60; step++) {
        double slope = q, d = -g + q * (z - z0);
        for (int32_t k = 0; k < n; k++) {
            double excess = terms[k].sign * z + terms[k].offset;
            if (excess > 0) d += rho * terms[k].sign * excess, slope += rho;
        }
        if (d > 0) hi = z;
        else lo = z;
        if (d == 0 || slope <= 0) break;
        double next = z - d / slope;
        if (next <= lo) next = d > 0 && lo > 0 ? 0.5 * (lo + z) : lo;
        else if (next >= hi) next = d < 0 && hi < C ? 0.5 * (hi + z) : hi;
        if (fabs(next - z) <= 1e-15 * C) {
            z = next;
            break;
        }
        z = next;
    }
    return z;
}

static int has_pair(const set_example *x, int32_t l, int32_t m) {
    for (int32_t k = 0; k < x->n_pairs; k++)
        if (x->pairs[k].l == l && x->pairs[k].m == m) return 1;
    return 0;
}

/* ---- oracles ------------------------------------------------------------------------------------------------- */

/* The question about example i: switching a label on costs its loss; the true labels get it back, and what missing them
 * would cost, through the message. */
static fgi_features features_of(const fgi_learn_gdmm_sets *g, int32_t i) {
    const fgi_learn_data *d = &g->L->data;
    const double weight = d->token_weight ? d->token_weight[i] : 1.0;
    return (fgi_features){.n = d->row_begin[i + 1] - d->row_begin[i],
        .index = d->feature + d->row_begin[i],
        .values = d->value ? d->value + d->row_begin[i] : NULL,
        .constant = weight,
        .start = weight != 0.0 ? g->spurious : NULL,
        .start_weight = weight,
        .scores = g->scores};
}

static void score_listed(fgi_learn_gdmm_sets *g, int32_t i, const fgi_features *x, const fgi_message *m) {
    const set_example *e = &g->examples[i];
    for (int32_t k = 0, at = 0; k < e->n; k++) {
        const int32_t l = e->label[k];
        if (g->scores[l] != -FGI_NEVER) continue;
        g->scores[l] = fgi_products_score(fgi_products_source(g->unigrams), x, l);
        while (at < m->n && m->labels[at] < l) at++;
        if (at < m->n && m->labels[at] == l) g->scores[l] -= m->values[at];
        g->unary_touched++;
        g->unary_products += x->n;
    }
}

fgi_rc fgi_sets_open(fgi_learn_gdmm_sets *g, int32_t i, int32_t part, int32_t parts) {
    const fgi_learn_data *d = &g->L->data;
    const set_example *e = &g->examples[i];
    fgi_message m = {0, g->message_label[0], g->message[0]};
    for (int64_t a = d->truth_begin[i]; a < d->truth_begin[i + 1]; a++) {
        const int32_t l = d->truth[a];
        g->message_label[0][m.n] = l;
        g->message[0][m.n++] = fgi_learn_spurious(d, i, l) + fgi_learn_missed(d, i, l);
        g->truth[l] = 1;
    }
    for (int32_t k = 0; k < e->n; k++) {
        g->listed[e->label[k]] = 1;
        g->X[e->label[k]] = e->X[k];
        g->without[k] = e->label[k];
    }
    fgi_features x = features_of(g, i);
    x.part = part, x.parts = parts;
    for (int32_t l = 0; parts > 1 && l < d->n_labels; l++) g->scores[l] = -FGI_NEVER;
    fgi_products_borrow(g->unigrams, g->L->w);
    const fgi_oracle_query q = {.source = fgi_products_source(g->unigrams),
        .messages = &m,
        .excluded = g->without,
        .n_excluded = e->n,
        .hint = -1,
        .n_best = g->greedy,
        .path = FGI_BY_SCAN, /* the scores themselves are wanted, too */
        .x = &x};
    fgi_rc rc = fgi_oracle_answer(&q, g->oracle, g->found);
    const int64_t n = d->n_labels, looked = parts > 1 ? n * (part + 1) / parts - n * part / parts : n;
    g->unary_calls++;
    g->unary_touched += looked;
    g->unary_products += looked * x.n;
    if (parts > 1) score_listed(g, i, &x, &m);
    return rc;
}

void fgi_sets_close(fgi_learn_gdmm_sets *g, int32_t i) {
    const fgi_learn_data *d = &g->L->data;
    const set_example *x = &g->examples[i];
    for (int64_t a = d->truth_begin[i]; a < d->truth_begin[i + 1]; a++) g->truth[d->truth[a]] = 0;
    for (int32_t k = 0; k < x->n; k++) g->listed[x->label[k]] = 0, g->X[x->label[k]] = 0;
}

/* The best few labels that are not listed and have a positive gradient, as fgi_sets_open found them. */
static int list_labels(fgi_learn_gdmm_sets *g, set_example *x) {
    for (int32_t k = 0; k < g->greedy && g->found[k].state >= 0 && g->found[k].value > 0; k++) {
        if (!fgi_sets_insert(g, x, (int32_t)g->found[k].state, 0)) return 0;
        g->listed[g->found[k].state] = 1;
    }
    return 1;
}

/* The pairs of each listed label, in their order: incident[begin[a] .. begin[a + 1]) for the a-th label. */
static int index_pairs(fgi_learn_gdmm_sets *g, const set_example *x) {
    if (!fgi_grow(&g->incident, &g->incident_capacity, 2 * (int64_t)x->n_pairs, sizeof *g->incident)) return 0;
    int32_t *begin = g->incident_begin;
    memset(begin, 0, ((size_t)x->n + 1) * sizeof *begin);
    for (int32_t a = 0; a < x->n; a++) g->place[x->label[a]] = a;
    for (int32_t k = 0; k < x->n_pairs; k++) begin[g->place[x->pairs[k].l]]++, begin[g->place[x->pairs[k].m]]++;
    for (int32_t a = 0, at = 0; a <= x->n; a++) {
        const int32_t count = begin[a];
        begin[a] = at += count; /* ends; the loop below turns them into beginnings */
    }
    for (int32_t k = x->n_pairs - 1; k >= 0; k--) {
        g->incident[--begin[g->place[x->pairs[k].l]]] = k;
        g->incident[--begin[g->place[x->pairs[k].m]]] = k;
    }
    return 1;
}

static int list_pairs(fgi_learn_gdmm_sets *g, set_example *x) {
    if (!index_pairs(g, x)) return 0;
    for (int32_t a = 0; a < x->n; a++) {
        const int32_t l = x->label[a];
        for (int32_t j = g->incident_begin[a]; j < g->incident_begin[a + 1]; j++)
            g->partner[x->pairs[g->incident[j]].m] = 1;
        for (int32_t b = a + 1; b < x->n; b++) {
            if (g->partner[x->label[b]]) continue;
            int wanted =
                x->X[a] + x->X[b] > g->C || (x->X[a] > 0 && x->X[b] > 0 && *fgi_sets_weight(g, l, x->label[b]) > 0);
            if (wanted && !fgi_sets_add_pair(g, x, l, x->label[b], 0)) return 0;
        }
        for (int32_t j = g->incident_begin[a]; j < g->incident_begin[a + 1]; j++)
            g->partner[x->pairs[g->incident[j]].m] = 0;
    }
    g->pair_touched += (int64_t)x->n * (x->n - 1) / 2;
    return 1;
}

static fgi_rc joint_oracle(fgi_learn_gdmm_sets *g, set_example *x) {
    const int32_t n = g->L->data.n_labels;
    fgi_argmax found;
    fgi_rc rc = fgi_sets_best_pair(g, &found);
    g->pair_calls++;
    if (rc || found.state < 0 || !(found.value > 0)) return rc;
    int32_t l = (int32_t)(found.state / n), m = (int32_t)(found.state % n);
    if (l >= m) return FGI_OK;
    if (!fgi_sets_insert(g, x, l, 0) || !fgi_sets_insert(g, x, m, 0)) return FGI_NO_MEMORY;
    g->listed[l] = g->listed[m] = 1;
    if (!has_pair(x, l, m) && !fgi_sets_add_pair(g, x, l, m, 0)) return FGI_NO_MEMORY;
    return FGI_OK;
}

/* ---- blocks -------------------------------------------------------------------------------------------------- */

static fgi_rc update_pair(fgi_learn_gdmm_sets *g, set_pair *p) {
    fgi_assert(p->l >= 0 && p->l < p->m && p->m < g->L->data.n_labels);
    const double Xl = g->X[p->l], Xm = g->X[p->m], C = g->C;
    const hinge_term terms[3] = {{1, p->Pl - Xl}, {1, p->Pm - Xm}, {-1, Xl + Xm - C + p->Q}};
    double *v = fgi_sets_weight(g, p->l, p->m), Y = minimise(p->Y, *v, 1.0, g->rho, terms, 3, C), change = Y - p->Y;
    if (change == 0) return FGI_OK;
    p->Y = Y;
    fgi_learn_shift(g->L, v - g->L->w, -change);
    g->top[p->l] = fgi_larger(g->top[p->l], *v);
    g->top[p->m] = fgi_larger(g->top[p->m], *v);
    return g->table ? fgi_updatable_set(g->table, 1, &p->l, &p->m, v, NULL) : FGI_OK;
}

static void update_label(fgi_learn_gdmm_sets *g, int32_t i, set_example *x, int32_t at, hinge_term *terms) {
    const fgi_learn_data *d = &g->L->data;
    fgi_assert(at >= 0 && at < x->n && x->n <= x->capacity);
    const int32_t l = x->label[at];
    int32_t n = 0;
    for (int32_t j = g->incident_begin[at]; j < g->incident_begin[at + 1]; j++) {
        const set_pair *p = &x->pairs[g->incident[j]];
        terms[n++] = (hinge_term){-1, p->Y + (p->l == l ? p->Pl : p->Pm)};
        terms[n++] = (hinge_term){1, g->X[p->l == l ? p->m : p->l] - g->C - p->Y + p->Q};
    }
    double old = x->X[at], now = minimise(old, g->scores[l], g->norm[i], g->rho, terms, n, g->C), change = now - old;
    if (change == 0) return;
    x->X[at] = g->X[l] = now;
    g->residuals.moved += 0.5 * n * change * change; /* each of its pairs has moved */
    g->scores[l] -= change * g->norm[i];
    for (int64_t j = d->row_begin[i]; j < d->row_begin[i + 1]; j++)
        fgi_learn_shift(g->L, (int64_t)d->feature[j] * d->n_labels + l, -change * (d->value ? d->value[j] : 1.0));
}

/* Multipliers; then pairs and labels that are back at nothing leave the lists. */
static void step_multipliers(fgi_learn_gdmm_sets *g, set_example *x) {
    fgi_assert(x->n_pairs >= 0 && x->n_pairs <= x->pair_capacity);
    const double C = g->C, eta = g->s.eta, tiny = 1e-14 * C;
    int32_t n = 0;
    for (int32_t k = 0; k < x->n_pairs; k++) {
        set_pair p = x->pairs[k];
        double Xl = g->X[p.l], Xm = g->X[p.m];
        const double off[3] = {p.Y - Xl, p.Y - Xm, Xl + Xm - C - p.Y};
        double *own[3] = {&p.Pl, &p.Pm, &p.Q};
        for (int c = 0; c < 3; c++) {
            const double before = *own[c];
            *own[c] = fmax(0, before + eta * off[c]);
            const double apart = eta > 0 ? (*own[c] - before) / eta : 0; /* slack is no disagreement */
            g->residuals.apart += apart * apart;
            g->residuals.messages += *own[c] * *own[c];
        }
        g->residuals.marginals += Xl * Xl + Xm * Xm + p.Y * p.Y;
        if (p.Y > 0 || p.Pl > tiny || p.Pm > tiny || p.Q > tiny || Xl + Xm > C) {
            x->pairs[n++] = p;
            g->listed[p.l] = g->listed[p.m] = 2;
        }
    }
    x->n_pairs = n;
    n = 0;
    for (int32_t k = 0; k < x->n; k++) {
        int32_t l = x->label[k];
        if (x->X[k] > 0 || g->truth[l] || g->listed[l] == 2) x->label[n] = l, x->X[n++] = x->X[k];
        else g->listed[l] = 0;
    }
    x->n = n;
}

static int32_t count_parts(const fgi_learn_gdmm_sets *g) {
    return g->s.partitions < g->L->data.n_labels ? g->s.partitions : g->L->data.n_labels;
}

/* Which part of the labels a visit looks at: drawn by the number of the visit, so that a resumed run goes on the same.
 */
static int32_t draw_part(const fgi_learn_gdmm_sets *g) {
    fgi_rng rng = {g->s.seed ^ ((uint64_t)g->L->state.steps * 0xD1B54A32D192ED03u)};
    return count_parts(g) > 1 ? (int32_t)fgi_rng_below(&rng, count_parts(g)) : 0;
}

static fgi_rc visit(fgi_learn_gdmm_sets *g, int32_t i) {
    fgi_assert(i >= 0 && i < g->n_examples);
    set_example *x = &g->examples[i];
    fgi_learn_begin_visit(g->L, g->s.averaging);
    fgi_rc rc = fgi_sets_open(g, i, draw_part(g), count_parts(g));
    if (!rc && !list_labels(g, x)) rc = FGI_NO_MEMORY;
    if (!rc && g->L->data.edges != FGI_EDGES_NONE) {
        if (!list_pairs(g, x)) rc = FGI_NO_MEMORY;
        if (!rc) rc = joint_oracle(g, x);
    }
    if (!rc && !index_pairs(g, x)) rc = FGI_NO_MEMORY;
    hinge_term *terms = !rc ? fgi_alloc(2 * (int64_t)x->n_pairs + 1, sizeof *terms) : NULL;
    if (!rc && !terms) rc = FGI_NO_MEMORY;
    g->loss[i] = 0;
    for (int32_t k = 0; !rc && k < x->n; k++) {
        int32_t l = x->label[k];
        double gain = g->scores[l] * (g->truth[l] ? -1 : 1); /* gain of leaving the truth, messages aside */
        if (gain > 0) g->loss[i] += gain;
        update_label(g, i, x, k, terms);
    }
    for (int32_t k = 0; !rc && k < x->n_pairs; k++) rc = update_pair(g, &x->pairs[k]);
    if (!rc) step_multipliers(g, x);
    free(terms);
    fgi_sets_close(g, i);
    return rc;
}

fgi_rc fgi_learn_gdmm_sets_pass(
    fgi_learn_gdmm_sets *g, const int32_t *examples, int64_t m, int64_t *next, double deadline, fgi_error *err) {
    fgi_sets_drop_view(g);
    if (!g->bounded) fgi_sets_bound_labels(g);
    while (*next < m) {
        int32_t i = examples[*next];
        if (i < 0 || i >= g->L->data.n_examples)
            return fgi_fail(err, FGI_BAD_ARGUMENT, *next, "there is no example %d", (int)i);
        fgi_rc rc = visit(g, i);
        if (rc) return fgi_fail(err, rc, -1, "out of memory");
        ++*next;
        if (fgi_clock() >= deadline) break;
    }
    return FGI_OK;
}

/* The multipliers stay what they are. */
static void change_rho(fgi_learn_gdmm_sets *g, double factor) {
    g->rho *= factor;
    for (int64_t i = 0; i < g->n_examples; i++)
        for (int32_t k = 0; k < g->examples[i].n_pairs; k++) {
            set_pair *p = &g->examples[i].pairs[k];
            p->Pl /= factor, p->Pm /= factor, p->Q /= factor;
        }
}

fgi_rc fgi_learn_gdmm_sets_end_pass(fgi_learn_gdmm_sets *g, fgi_error *err) {
    const double factor = g->s.eta > 0 && !g->s.fixed_rho ? fgi_residuals_balance(&g->residuals) : 1.0;
    if (factor != 1.0) change_rho(g, factor);
    g->bounded = 0;
    if (!fgi_proximal_end_pass(g->L, 1.0) || !fgi_sets_fill_table(g)) return FGI_OK;
    return fgi_no_memory(err);
}

void fgi_learn_gdmm_sets_get_penalty(const fgi_learn_gdmm_sets *g, double *state) {
    fgi_penalty_export(g->rho, &g->residuals, g->C, state);
}

void fgi_learn_gdmm_sets_set_penalty(fgi_learn_gdmm_sets *g, const double *state) {
    double C; /* does not change within a run */
    fgi_penalty_import(state, &g->rho, &g->residuals, &C);
}
