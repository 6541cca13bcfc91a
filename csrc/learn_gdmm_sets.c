/* learn_gdmm_sets.c - gdmm for label sets with pairwise interactions (gdmm-learning.txt, Algorithm 1 with Algorithm 3), on the
 * one-number form of binary factors (MATH.md, section 3).
 *
 * Example i has a mass X_l in [0, C] for each label (C: on) and Y_lm in [0, C] for each pair (both on), and
 *     w_l = sum_i (C t_l - X_l) x_i,   v_lm = sum_i (C t_l t_m - Y_lm),   dual = sum_i loss(X_i) - |w|^2 / 2 - |v|^2 / 2,
 * with Y <= X_l, Y <= X_m, X_l + X_m - C <= Y in the local polytope. These three have multipliers P_l, P_m, Q >= 0 (scaled by
 * 1/rho). Labels and pairs that are not listed have X = Y = 0 and no multipliers; listing is the greedy part:
 *   - labels: the best few with a positive gradient <w_l, x> + loss;
 *   - pairs of listed labels: when v_lm > 0 and both are on in part, or when X_l + X_m > C;
 *   - the joint FMO: of all other pairs the one with the largest v_lm + min(0, s_l) + min(0, s_m), s = 0 for labels that are on in
 *     part; the sorted table finds it without looking at the L^2 / 2 pairs.
 * Every block is one-dimensional and piecewise quadratic, and solved exactly. */
#include <string.h>
#include "learn.h"
#include "oracle.h"

typedef struct set_pair {
    int32_t l, m;        /* labels, l < m */
    double Y, Pl, Pm, Q;
} set_pair;

typedef struct set_example {
    int32_t n, capacity;         /* labels */
    int32_t n_pairs, pair_capacity;
    int32_t *label;              /* ascending; the true ones are always there */
    double *X;
    set_pair *pairs;
} set_example;

struct fgi_gdmm_sets {
    fgi_learner *L;
    fgi_gdmm_settings s;
    double rho;
    int32_t greedy;
    set_example *examples;
    int64_t n_examples;
    double *norm;                /* |x_i|^2 */
    double *loss;                /* relaxed loss at the last visit: an estimate */
    fgi_updatable *table;
    fgi_oracle_scratch *oracle;
    double *scores, *X;          /* L: of the example at hand; X is zero elsewhere */
    uint8_t *listed, *truth;     /* L: of the example at hand */
    uint8_t *partner;            /* L: labels already paired with the one at hand; zero between calls */
    int32_t *message_label[2];
    double *message[2];
    double *row_best;
    int64_t unary_calls, pair_calls, unary_touched, pair_touched, bytes;
};

/* ---- one-dimensional blocks ----------------------------------------------------------------------------------------- */

typedef struct hinge_term { double sign, offset; } hinge_term; /* rho/2 (sign z + offset)_+^2 */

/* argmin over z in [0, C] of  -g (z - z0) + q/2 (z - z0)^2 + sum of terms: Newton on the derivative, which is increasing and
 * piecewise linear, inside a bracket. */
static double minimise(double z0, double g, double q, double rho, const hinge_term *terms, int32_t n, double C) {
    double lo = 0, hi = C, z = z0 < 0 ? 0 : z0 > C ? C : z0;
    for (int32_t step = 0; step < 60; step++) {
        double slope = q, d = -g + q * (z - z0);
        for (int32_t k = 0; k < n; k++) {
            double excess = terms[k].sign * z + terms[k].offset;
            if (excess > 0) d += rho * terms[k].sign * excess, slope += rho;
        }
        if (d > 0) hi = z; else lo = z;
        if (d == 0 || slope <= 0) break;
        double next = z - d / slope;
        if (next <= lo) next = d > 0 && lo > 0 ? 0.5 * (lo + z) : lo;
        else if (next >= hi) next = d < 0 && hi < C ? 0.5 * (hi + z) : hi;
        if (fabs(next - z) <= 1e-15 * C) { z = next; break; }
        z = next;
    }
    return z;
}

/* ---- lists ----------------------------------------------------------------------------------------------------------- */

static int32_t find_label(const set_example *x, int32_t label) {
    int32_t lo = 0, hi = x->n;
    while (lo < hi) {
        int32_t mid = (lo + hi) / 2;
        if (x->label[mid] < label) lo = mid + 1; else hi = mid;
    }
    return lo;
}

static int insert_label(fgi_gdmm_sets *g, set_example *x, int32_t label, double X) {
    int32_t at = find_label(x, label);
    if (at < x->n && x->label[at] == label) return 1;
    if (x->n == x->capacity) {
        int32_t capacity = x->capacity ? 2 * x->capacity : 8;
        int32_t *labels = realloc(x->label, (size_t)capacity * sizeof *labels);
        if (labels) x->label = labels;
        double *values = realloc(x->X, (size_t)capacity * sizeof *values);
        if (values) x->X = values;
        if (!labels || !values) return 0;
        g->bytes += (int64_t)(capacity - x->capacity) * (int64_t)(sizeof *labels + sizeof *values);
        x->capacity = capacity;
    }
    memmove(x->label + at + 1, x->label + at, (size_t)(x->n - at) * sizeof *x->label);
    memmove(x->X + at + 1, x->X + at, (size_t)(x->n - at) * sizeof *x->X);
    x->label[at] = label;
    x->X[at] = X;
    x->n++;
    return 1;
}

static int add_pair(fgi_gdmm_sets *g, set_example *x, int32_t l, int32_t m, double Y) {
    if (x->n_pairs == x->pair_capacity) {
        int32_t capacity = x->pair_capacity ? 2 * x->pair_capacity : 4;
        set_pair *pairs = realloc(x->pairs, (size_t)capacity * sizeof *pairs);
        if (!pairs) return 0;
        g->bytes += (int64_t)(capacity - x->pair_capacity) * (int64_t)sizeof *pairs;
        x->pairs = pairs;
        x->pair_capacity = capacity;
    }
    x->pairs[x->n_pairs++] = (set_pair){ l, m, Y, 0, 0, 0 };
    return 1;
}

static int has_pair(const set_example *x, int32_t l, int32_t m) {
    for (int32_t k = 0; k < x->n_pairs; k++)
        if (x->pairs[k].l == l && x->pairs[k].m == m) return 1;
    return 0;
}

static inline double *pair_weight(const fgi_gdmm_sets *g, int32_t l, int32_t m) {
    return g->L->w + g->L->unary + (int64_t)l * g->L->data.n_labels + m;
}

/* ---- oracles --------------------------------------------------------------------------------------------------------- */

static void open_example(fgi_gdmm_sets *g, int32_t i) {
    const fgi_learner *L = g->L;
    const fgi_learn_data *d = &L->data;
    const set_example *x = &g->examples[i];
    for (int32_t l = 0; l < d->n_labels; l++) g->scores[l] = fgi_learn_spurious(d, i, l);
    for (int64_t j = d->row_begin[i]; j < d->row_begin[i + 1]; j++)
        L->kernels.axpy(d->n_labels, d->value ? d->value[j] : 1.0, L->w + (int64_t)d->feature[j] * d->n_labels, g->scores);
    for (int64_t a = d->truth_begin[i]; a < d->truth_begin[i + 1]; a++) {
        const int32_t l = d->truth[a];
        g->scores[l] -= fgi_learn_spurious(d, i, l) + fgi_learn_missed(d, i, l);
        g->truth[l] = 1;
    }
    for (int32_t k = 0; k < x->n; k++) g->listed[x->label[k]] = 1, g->X[x->label[k]] = x->X[k];
    g->unary_calls++;
    g->unary_touched += d->n_labels;
}

static void close_example(fgi_gdmm_sets *g, int32_t i) {
    const fgi_learn_data *d = &g->L->data;
    const set_example *x = &g->examples[i];
    for (int64_t a = d->truth_begin[i]; a < d->truth_begin[i + 1]; a++) g->truth[d->truth[a]] = 0;
    for (int32_t k = 0; k < x->n; k++) g->listed[x->label[k]] = 0, g->X[x->label[k]] = 0;
}

/* The best few labels that are not listed and have a positive gradient. */
static int list_labels(fgi_gdmm_sets *g, set_example *x) {
    for (int32_t round = 0; round < g->greedy; round++) {
        int32_t best = -1;
        double most = 0;
        for (int32_t l = 0; l < g->L->data.n_labels; l++)
            if (!g->listed[l] && g->scores[l] > most) most = g->scores[l], best = l;
        if (best < 0) return 1;
        if (!insert_label(g, x, best, 0)) return 0;
        g->listed[best] = 1;
    }
    return 1;
}

static int list_pairs(fgi_gdmm_sets *g, set_example *x) {
    for (int32_t a = 0; a < x->n; a++) {
        const int32_t l = x->label[a], known = x->n_pairs; /* pairs that this row adds are not asked for again */
        for (int32_t k = 0; k < known; k++) if (x->pairs[k].l == l) g->partner[x->pairs[k].m] = 1;
        for (int32_t b = a + 1; b < x->n; b++) {
            if (g->partner[x->label[b]]) continue;
            int wanted = x->X[a] + x->X[b] > g->s.C || (x->X[a] > 0 && x->X[b] > 0 && *pair_weight(g, l, x->label[b]) > 0);
            if (wanted && !add_pair(g, x, l, x->label[b], 0)) return 0;
        }
        for (int32_t k = 0; k < known; k++) if (x->pairs[k].l == l) g->partner[x->pairs[k].m] = 0;
    }
    g->pair_touched += (int64_t)x->n * (x->n - 1) / 2;
    return 1;
}

/* Does a label count as on in part: then its own score is no obstacle to a pair. */
static inline int on(const fgi_gdmm_sets *g, int32_t l) { return g->X[l] > 0; }
/* What a label holds against a pair; a label that gains by itself is the unigram oracle's business. */
static inline double obstacle(const fgi_gdmm_sets *g, int32_t l) { return on(g, l) || g->scores[l] > 0 ? 0.0 : -g->scores[l]; }

/* The joint FMO by looking at all pairs: the reference, and the brute force of the papers. */
static void scan_pairs(fgi_gdmm_sets *g, fgi_argmax *out) {
    const int32_t n = g->L->data.n_labels;
    double *against = g->message[0];
    *out = (fgi_argmax){ -1, -INFINITY };
    for (int32_t l = 0; l < n; l++) against[l] = obstacle(g, l);
    for (int32_t l = 0; l < n; l++) {
        const double *row = pair_weight(g, l, 0);
        for (int32_t m = l + 1; m < n; m++) {
            double x = (row[m] - against[l]) - against[m];
            if (x > out->value && !(on(g, l) && on(g, m))) *out = (fgi_argmax){ (int64_t)l * n + m, x };
        }
    }
    g->pair_touched += (int64_t)n * (n - 1) / 2;
}

/* The same on the sorted table: once without the rows that are on, once without the columns. Pairs of two labels that are on are
 * listed already; the lower triangle is empty and never better than nothing. */
static fgi_rc walk_pairs(fgi_gdmm_sets *g, fgi_argmax *out) {
    const int32_t n = g->L->data.n_labels;
    const double never = 1e150;
    const int64_t before = fgi_oracle_touched(g->oracle);
    fgi_rc rc = FGI_OK;
    *out = (fgi_argmax){ -1, -INFINITY };
    for (int side = 0; rc == FGI_OK && side < 2; side++) {
        int32_t count[2] = { 0, 0 }, least = -1;
        for (int32_t l = 0; l < n; l++) {
            double x = obstacle(g, l);
            if (!on(g, l) && (least < 0 || x < obstacle(g, least))) least = l;
            for (int s = 0; s < 2; s++) {
                double message = s == side && on(g, l) ? never : x;
                if (message == 0.0) continue;
                g->message_label[s][count[s]] = l;
                g->message[s][count[s]++] = message;
            }
        }
        const fgi_message m[2] = { { count[0], g->message_label[0], g->message[0] }, { count[1], g->message_label[1], g->message[1] } };
        fgi_argmax found;
        int64_t hint = least < 0 ? -1 : (int64_t)least * n + least; /* an entry that is zero: about as good as nothing */
        rc = fgi_updatable_argmax(g->table, m, -1, hint, g->oracle, &found, NULL);
        if (rc == FGI_OK && found.value > out->value) *out = found;
    }
    g->pair_touched += fgi_oracle_touched(g->oracle) - before;
    return rc;
}

static fgi_rc joint_oracle(fgi_gdmm_sets *g, set_example *x) {
    const int32_t n = g->L->data.n_labels;
    fgi_argmax found;
    fgi_rc rc = FGI_OK;
    g->pair_calls++;
    if (g->s.brute_force) scan_pairs(g, &found); else rc = walk_pairs(g, &found);
    if (rc != FGI_OK || found.state < 0 || !(found.value > 0)) return rc;
    int32_t l = (int32_t)(found.state / n), m = (int32_t)(found.state % n);
    if (l >= m) return FGI_OK;
    if (!insert_label(g, x, l, 0) || !insert_label(g, x, m, 0)) return FGI_NO_MEMORY;
    g->listed[l] = g->listed[m] = 1;
    if (!has_pair(x, l, m) && !add_pair(g, x, l, m, 0)) return FGI_NO_MEMORY;
    return FGI_OK;
}

/* ---- blocks ---------------------------------------------------------------------------------------------------------- */

static fgi_rc update_pair(fgi_gdmm_sets *g, set_pair *p) {
    const double Xl = g->X[p->l], Xm = g->X[p->m], C = g->s.C;
    const hinge_term terms[3] = { { 1, p->Pl - Xl }, { 1, p->Pm - Xm }, { -1, Xl + Xm - C + p->Q } };
    double *v = pair_weight(g, p->l, p->m), Y = minimise(p->Y, *v, 1.0, g->rho, terms, 3, C), change = Y - p->Y;
    if (change == 0) return FGI_OK;
    p->Y = Y;
    *v -= change;
    return g->table ? fgi_updatable_set(g->table, 1, &p->l, &p->m, v, NULL) : FGI_OK;
}

static void update_label(fgi_gdmm_sets *g, int32_t i, set_example *x, int32_t at, hinge_term *terms) {
    const fgi_learn_data *d = &g->L->data;
    const int32_t l = x->label[at];
    int32_t n = 0;
    for (int32_t k = 0; k < x->n_pairs; k++) {
        const set_pair *p = &x->pairs[k];
        if (p->l != l && p->m != l) continue;
        terms[n++] = (hinge_term){ -1, p->Y + (p->l == l ? p->Pl : p->Pm) };
        terms[n++] = (hinge_term){ 1, g->X[p->l == l ? p->m : p->l] - g->s.C - p->Y + p->Q };
    }
    double old = x->X[at], now = minimise(old, g->scores[l], g->norm[i], g->rho, terms, n, g->s.C), change = now - old;
    if (change == 0) return;
    x->X[at] = g->X[l] = now;
    g->scores[l] -= change * g->norm[i];
    for (int64_t j = d->row_begin[i]; j < d->row_begin[i + 1]; j++)
        g->L->w[(int64_t)d->feature[j] * d->n_labels + l] -= change * (d->value ? d->value[j] : 1.0);
}

/* Multipliers; then pairs and labels that are back at nothing leave the lists. */
static void step_multipliers(fgi_gdmm_sets *g, set_example *x) {
    const double C = g->s.C, eta = g->s.eta, tiny = 1e-14 * C;
    int32_t n = 0;
    for (int32_t k = 0; k < x->n_pairs; k++) {
        set_pair p = x->pairs[k];
        double Xl = g->X[p.l], Xm = g->X[p.m];
        p.Pl = fmax(0, p.Pl + eta * (p.Y - Xl));
        p.Pm = fmax(0, p.Pm + eta * (p.Y - Xm));
        p.Q = fmax(0, p.Q + eta * (Xl + Xm - C - p.Y));
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

static fgi_rc visit(fgi_gdmm_sets *g, int32_t i) {
    set_example *x = &g->examples[i];
    fgi_rc rc = FGI_OK;
    open_example(g, i);
    if (!list_labels(g, x)) rc = FGI_NO_MEMORY;
    if (rc == FGI_OK && g->L->data.edges != FGI_EDGES_NONE) {
        if (!list_pairs(g, x)) rc = FGI_NO_MEMORY;
        if (rc == FGI_OK) rc = joint_oracle(g, x);
    }
    hinge_term *terms = rc == FGI_OK ? fgi_alloc(2 * (int64_t)x->n_pairs + 1, sizeof *terms) : NULL;
    if (rc == FGI_OK && !terms) rc = FGI_NO_MEMORY;
    g->loss[i] = 0;
    for (int32_t k = 0; rc == FGI_OK && k < x->n; k++) {
        int32_t l = x->label[k];
        double gain = g->scores[l] * (g->truth[l] ? -1 : 1); /* of leaving the truth, messages aside */
        if (gain > 0) g->loss[i] += gain;
        update_label(g, i, x, k, terms);
    }
    for (int32_t k = 0; rc == FGI_OK && k < x->n_pairs; k++) rc = update_pair(g, &x->pairs[k]);
    if (rc == FGI_OK) step_multipliers(g, x);
    free(terms);
    close_example(g, i);
    return rc;
}

fgi_rc fgi_gdmm_sets_pass(fgi_gdmm_sets *g, const int32_t *examples, int64_t m, int64_t *next, double deadline, fgi_error *err) {
    while (*next < m) {
        int32_t i = examples[*next];
        if (i < 0 || i >= g->L->data.n_examples) return fgi_fail(err, FGI_BAD_ARGUMENT, *next, "there is no example %d", (int)i);
        fgi_rc rc = visit(g, i);
        if (rc != FGI_OK) return fgi_fail(err, rc, -1, "out of memory");
        ++*next;
        if (fgi_clock() >= deadline) break;
    }
    return FGI_OK;
}

/* ---- certificates ---------------------------------------------------------------------------------------------------- */

/* Upper bound on the relaxed loss of the example that is open. Multipliers: those of the listed pairs; of the other pairs with
 * v > 0, a label that is off pays for all of it (the one with more to spare, when both are off). */
static double bound_loss(fgi_gdmm_sets *g, int32_t i, const int32_t *rows, const int32_t *cols, int64_t n) {
    const fgi_learn_data *d = &g->L->data;
    const set_example *x = &g->examples[i];
    double *u = g->message[0], total = 0; /* u: score of switching a label on, after all charges */
    memcpy(u, g->scores, (size_t)d->n_labels * sizeof *u);
    for (int32_t k = 0; k < x->n_pairs; k++) {
        const set_pair *p = &x->pairs[k];
        double pl = g->rho * p->Pl, pm = g->rho * p->Pm, q = g->rho * p->Q, rest = *pair_weight(g, p->l, p->m) - pl - pm + q;
        u[p->l] += pl - q;
        u[p->m] += pm - q;
        total += q + (rest > 0 ? rest : 0);
        g->row_best[k] = *pair_weight(g, p->l, p->m);
        *pair_weight(g, p->l, p->m) = 0; /* done: not to be charged again below */
    }
    for (int64_t k = 0; k < n; k++) {
        double v = *pair_weight(g, rows[k], cols[k]);
        if (v > 0) u[u[rows[k]] < u[cols[k]] ? rows[k] : cols[k]] += v;
    }
    for (int32_t k = 0; k < x->n_pairs; k++) *pair_weight(g, x->pairs[k].l, x->pairs[k].m) = g->row_best[k];
    for (int32_t l = 0; l < d->n_labels; l++) if (u[l] > 0) total += u[l];
    double truth = 0; /* score of the true set */
    total += fgi_learn_missed_all(d, i);
    for (int64_t a = d->truth_begin[i]; a < d->truth_begin[i + 1]; a++) {
        truth += g->scores[d->truth[a]] + fgi_learn_missed(d, i, d->truth[a]);
        for (int64_t b = a + 1; d->edges != FGI_EDGES_NONE && b < d->truth_begin[i + 1]; b++) truth += *pair_weight(g, d->truth[a], d->truth[b]);
    }
    return total - truth;
}

/* The consistent point: Y put into its interval. Adds C t t - Y to the pairwise weights under construction in L->dense. */
static void consistent_pairs(fgi_gdmm_sets *g, int32_t i, double *worst) {
    const fgi_learn_data *d = &g->L->data;
    const set_example *x = &g->examples[i];
    const double C = g->s.C;
    for (int32_t a = 0; a < x->n; a++)
        for (int32_t b = a + 1; b < x->n; b++) {
            double lo = fmax(0, x->X[a] + x->X[b] - C), hi = fmin(x->X[a], x->X[b]), Y = 0;
            for (int32_t k = 0; k < x->n_pairs; k++)
                if (x->pairs[k].l == x->label[a] && x->pairs[k].m == x->label[b]) Y = x->pairs[k].Y;
            *worst = fmax(*worst, fmax(lo - Y, Y - hi));
            Y = Y < lo ? lo : Y > hi ? hi : Y;
            g->L->dense[g->L->unary + (int64_t)x->label[a] * d->n_labels + x->label[b]] += (g->truth[x->label[a]] && g->truth[x->label[b]] ? C : 0) - Y;
        }
}

fgi_rc fgi_gdmm_sets_measure(fgi_gdmm_sets *g, double *relaxed, double *dual, double *infeasibility, fgi_error *err) {
    fgi_learner *L = g->L;
    const fgi_learn_data *d = &L->data;
    const int64_t calls = g->unary_calls, touched = g->unary_touched;
    int64_t square = (int64_t)d->n_labels * d->n_labels, n = 0, most = 1;
    int32_t *rows = NULL, *cols = NULL;
    if (d->edges != FGI_EDGES_NONE) {
        for (int64_t k = 0; k < square; k++) n += L->w[L->unary + k] > 0;
        rows = fgi_alloc(n, sizeof *rows), cols = fgi_alloc(n, sizeof *cols);
        for (int32_t i = 0; i < d->n_examples; i++) if (g->examples[i].n_pairs > most) most = g->examples[i].n_pairs;
        double *room = realloc(g->row_best, (size_t)most * sizeof *room);
        if (room) g->row_best = room;
        if (!rows || !cols || !room) {
            free(rows), free(cols);
            return fgi_fail(err, FGI_NO_MEMORY, -1, "out of memory");
        }
        n = 0;
        for (int64_t k = 0; k < square; k++) if (L->w[L->unary + k] > 0) rows[n] = (int32_t)(k / d->n_labels), cols[n++] = (int32_t)(k % d->n_labels);
    }
    fgi_sum loss = { 0 }, gain = { 0 }, norm = { 0 }, own = { 0 };
    double worst = 0;
    for (int32_t i = 0; i < d->n_examples; i++) {
        const set_example *x = &g->examples[i];
        open_example(g, i);
        fgi_sum_add(&loss, bound_loss(g, i, rows, cols, n));
        for (int32_t k = 0; k < x->n; k++) {
            const int32_t l = x->label[k];
            fgi_sum_add(&gain, g->truth[l] ? fgi_learn_missed(d, i, l) * (g->s.C - x->X[k]) : fgi_learn_spurious(d, i, l) * x->X[k]);
        }
        if (d->edges != FGI_EDGES_NONE) consistent_pairs(g, i, &worst);
        close_example(g, i);
    }
    for (int64_t k = 0; k < L->dimension; k++) {
        double w = L->w[k], v = k < L->unary ? w : L->dense[k];
        fgi_sum_add(&norm, w * w);
        fgi_sum_add(&own, v * v);
        if (k >= L->unary) L->dense[k] = 0;
    }
    free(rows), free(cols);
    *relaxed = 0.5 * fgi_sum_value(&norm) + g->s.C * fgi_sum_value(&loss);
    *dual = fgi_sum_value(&gain) - 0.5 * fgi_sum_value(&own);
    *infeasibility = worst / g->s.C;
    g->unary_calls = calls, g->unary_touched = touched;
    return FGI_OK;
}

void fgi_gdmm_sets_get_info(const fgi_gdmm_sets *g, fgi_gdmm_info *info) {
    *info = (fgi_gdmm_info){ g->unary_calls, g->pair_calls, g->unary_touched, g->pair_touched, 0, 0, 0, 0, g->rho, g->bytes };
    fgi_sum norm = { 0 };
    for (int64_t k = 0; k < g->L->dimension; k++) fgi_sum_add(&norm, g->L->w[k] * g->L->w[k]);
    info->squared_norm = fgi_sum_value(&norm);
    for (int32_t i = 0; i < g->L->data.n_examples; i++) {
        info->active_labels += g->examples[i].n;
        info->active_states += g->examples[i].n_pairs;
        info->loss_estimate += g->loss[i];
    }
    info->active_labels /= (double)g->L->data.n_examples;
    info->active_states /= (double)g->L->data.n_examples;
    if (g->table) info->memory += fgi_updatable_memory(g->table);
}

/* ---- life ------------------------------------------------------------------------------------------------------------ */

static fgi_rc fill(fgi_gdmm_sets *g) {
    const fgi_learn_data *d = &g->L->data;
    const int64_t n = d->n_labels;
    g->n_examples = d->n_examples;
    g->examples = fgi_calloc(d->n_examples, sizeof *g->examples);
    g->norm = fgi_calloc(d->n_examples, sizeof(double));
    g->loss = fgi_calloc(d->n_examples, sizeof(double));
    g->scores = fgi_alloc(n, sizeof(double));
    g->X = fgi_calloc(n, sizeof(double));
    g->listed = fgi_calloc(n, 1);
    g->truth = fgi_calloc(n, 1);
    g->partner = fgi_calloc(n, 1);
    g->message_label[0] = fgi_alloc(n, sizeof(int32_t));
    g->message_label[1] = fgi_alloc(n, sizeof(int32_t));
    g->message[0] = fgi_alloc(n, sizeof(double));
    g->message[1] = fgi_alloc(n, sizeof(double));
    g->oracle = fgi_oracle_scratch_create((int32_t)n, 2);
    if (!g->examples || !g->norm || !g->loss || !g->scores || !g->X || !g->listed || !g->truth || !g->partner || !g->message_label[0] || !g->message_label[1] || !g->message[0] || !g->message[1] || !g->oracle)
        return FGI_NO_MEMORY;
    if (d->edges != FGI_EDGES_NONE && !g->s.brute_force) {
        fgi_rc rc = fgi_updatable_create((int32_t)n, (int32_t)n, NULL, &g->table, NULL);
        if (rc != FGI_OK) return rc;
    }
    for (int32_t i = 0; i < d->n_examples; i++) { /* start at the truth: w = 0 */
        set_example *x = &g->examples[i];
        for (int64_t j = d->row_begin[i]; j < d->row_begin[i + 1]; j++) g->norm[i] += d->value ? d->value[j] * d->value[j] : 1.0;
        for (int64_t a = d->truth_begin[i]; a < d->truth_begin[i + 1]; a++) {
            if (!insert_label(g, x, d->truth[a], g->s.C)) return FGI_NO_MEMORY;
            for (int64_t b = a + 1; d->edges != FGI_EDGES_NONE && b < d->truth_begin[i + 1]; b++)
                if (!add_pair(g, x, d->truth[a], d->truth[b], g->s.C)) return FGI_NO_MEMORY;
        }
    }
    return FGI_OK;
}

fgi_rc fgi_gdmm_sets_create(fgi_learner *L, const fgi_gdmm_settings *s, int32_t greedy, fgi_gdmm_sets **out, fgi_error *err) {
    *out = NULL;
    if (L->data.kind != FGI_LEARN_SETS) return fgi_fail(err, FGI_UNSUPPORTED, -1, "this variant of gdmm takes label sets");
    if (!(s->C > 0) || !(s->rho >= 0) || !(s->eta >= 0) || greedy < 1 || !isfinite(s->C) || !isfinite(s->rho) || !isfinite(s->eta))
        return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "C must be positive, rho and eta not negative, greedy at least 1");
    fgi_gdmm_sets *g = fgi_calloc(1, sizeof *g);
    if (!g) return fgi_fail(err, FGI_NO_MEMORY, -1, "out of memory");
    g->L = L;
    g->s = *s;
    g->greedy = greedy;
    g->rho = s->rho > 0 ? s->rho : 1.0 / s->C;
    fgi_rc rc = fill(g);
    if (rc != FGI_OK) {
        fgi_gdmm_sets_free(g);
        return fgi_fail(err, rc, -1, "out of memory");
    }
    *out = g;
    return FGI_OK;
}

void fgi_gdmm_sets_free(fgi_gdmm_sets *g) {
    if (!g) return;
    for (int64_t i = 0; g->examples && i < g->n_examples; i++) free(g->examples[i].label), free(g->examples[i].X), free(g->examples[i].pairs);
    fgi_updatable_free(g->table);
    fgi_oracle_scratch_free(g->oracle);
    free(g->examples), free(g->norm), free(g->loss), free(g->scores), free(g->X), free(g->listed), free(g->truth), free(g->partner);
    free(g->message_label[0]), free(g->message_label[1]), free(g->message[0]), free(g->message[1]), free(g->row_best);
    free(g);
}

/* ---- checkpoints ------------------------------------------------------------------------------------------------------ */

void fgi_gdmm_sets_export_size(const fgi_gdmm_sets *g, int64_t *n_labels, int64_t *n_pairs) {
    *n_labels = *n_pairs = 0;
    for (int32_t i = 0; i < g->L->data.n_examples; i++) *n_labels += g->examples[i].n, *n_pairs += g->examples[i].n_pairs;
}

void fgi_gdmm_sets_export(const fgi_gdmm_sets *g, int32_t *sizes, int32_t *labels, double *X, int32_t *pair_labels, double *pair_values, double *losses) {
    for (int32_t i = 0; i < g->L->data.n_examples; i++) {
        const set_example *x = &g->examples[i];
        *sizes++ = x->n;
        *sizes++ = x->n_pairs;
        for (int32_t k = 0; k < x->n; k++) *labels++ = x->label[k], *X++ = x->X[k];
        for (int32_t k = 0; k < x->n_pairs; k++) {
            const set_pair *p = &x->pairs[k];
            *pair_labels++ = p->l, *pair_labels++ = p->m;
            *pair_values++ = p->Y, *pair_values++ = p->Pl, *pair_values++ = p->Pm, *pair_values++ = p->Q;
        }
    }
    memcpy(losses, g->loss, (size_t)g->L->data.n_examples * sizeof *losses);
}

fgi_rc fgi_gdmm_sets_import(fgi_gdmm_sets *g, const int32_t *sizes, const int32_t *labels, const double *X, const int32_t *pair_labels,
                            const double *pair_values, const double *losses, const int64_t *work, fgi_error *err) {
    const int32_t n = g->L->data.n_labels;
    for (int32_t i = 0; i < g->L->data.n_examples; i++, sizes += 2) {
        set_example *x = &g->examples[i];
        x->n = x->n_pairs = 0;
        for (int32_t k = 0; k < sizes[0]; k++, labels++, X++)
            if (*labels < 0 || *labels >= n) return fgi_fail(err, FGI_BAD_ARGUMENT, i, "the checkpoint does not fit the data");
            else if (!insert_label(g, x, *labels, *X)) return fgi_fail(err, FGI_NO_MEMORY, -1, "out of memory");
        for (int32_t k = 0; k < sizes[1]; k++, pair_labels += 2, pair_values += 4) {
            if (pair_labels[0] < 0 || pair_labels[0] >= pair_labels[1] || pair_labels[1] >= n)
                return fgi_fail(err, FGI_BAD_ARGUMENT, i, "the checkpoint does not fit the data");
            if (!add_pair(g, x, pair_labels[0], pair_labels[1], pair_values[0])) return fgi_fail(err, FGI_NO_MEMORY, -1, "out of memory");
            set_pair *p = &x->pairs[x->n_pairs - 1];
            p->Pl = pair_values[1], p->Pm = pair_values[2], p->Q = pair_values[3];
        }
    }
    memcpy(g->loss, losses, (size_t)g->L->data.n_examples * sizeof *losses);
    g->unary_calls = work[0], g->pair_calls = work[1], g->unary_touched = work[2], g->pair_touched = work[3];
    for (int32_t l = 0; g->table && l < n; l++)
        for (int32_t m = l + 1; m < n; m++) {
            fgi_rc rc = *pair_weight(g, l, m) == 0 ? FGI_OK : fgi_updatable_set(g->table, 1, &l, &m, pair_weight(g, l, m), err);
            if (rc != FGI_OK) return rc;
        }
    return FGI_OK;
}
