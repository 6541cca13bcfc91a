/* learn/gdmm_sets/joint.c - the joint FMO of label sets: of all pairs that are not both on the one with the largest
 *     v_lm - a_l - a_m,   a: what a label holds against being switched on, 0 if it is on or gains by itself,
 * if that is positive. Three ways, one answer (ties go to the lowest pair):
 *   - by bounds: a label whose largest pair does not outweigh a_l is in no such pair. On real label sets a few labels
 *     of an example are left, and only pairs among these are looked at;
 *   - on the sorted table of the paper, which takes every change of a pair, and messages of nearly all labels;
 *   - by looking at all pairs: the brute force of the papers. */
#include "learn/gdmm_sets/gdmm_sets.h"

/* Does a label count as on in part: then its own score is no obstacle to a pair. */
static inline int on(const fgi_learn_gdmm_sets *g, int32_t l) { return g->X[l] > 0; }
/* What a label holds against a pair; a label that gains by itself is the unigram oracle's business. */
static inline double obstacle(const fgi_learn_gdmm_sets *g, int32_t l) {
    return on(g, l) || g->scores[l] > 0 ? 0.0 : -g->scores[l];
}

/* The joint FMO by looking at all pairs once: the reference, and the brute force of the papers. (As questions to the
 * oracle these would be two scans of the square, four times the work, which would flatter the sorted search.) */
static void scan_pairs(fgi_learn_gdmm_sets *g, fgi_argmax *out) {
    const int32_t n = g->L->data.n_labels;
    double *against = g->message[0];
    *out = (fgi_argmax){-1, -INFINITY};
    for (int32_t l = 0; l < n; l++) against[l] = obstacle(g, l);
    for (int32_t l = 0; l < n; l++) {
        const double *row = fgi_sets_weight(g, l, 0);
        for (int32_t m = l + 1; m < n; m++) {
            double x = (row[m] - against[l]) - against[m];
            if (x > out->value && !(on(g, l) && on(g, m))) *out = (fgi_argmax){(int64_t)l * n + m, x};
        }
    }
    g->pair_touched += (int64_t)n * (n - 1) / 2;
}

/* The same on the sorted table: once without the rows that are on, once without the columns. Pairs of two labels that
 * are on are listed already; the lower triangle is empty and never better than nothing. */
static fgi_rc walk_pairs(fgi_learn_gdmm_sets *g, fgi_argmax *out) {
    const int32_t n = g->L->data.n_labels;
    const int64_t before = fgi_oracle_scratch_work(g->oracle).touched;
    fgi_rc rc = FGI_OK;
    *out = (fgi_argmax){-1, -INFINITY};
    for (int side = 0; !rc && side < 2; side++) {
        int32_t count[2] = {0, 0}, least = -1;
        for (int32_t l = 0; l < n; l++) {
            double x = obstacle(g, l);
            if (!on(g, l) && (least < 0 || x < obstacle(g, least))) least = l;
            for (int s = 0; s < 2; s++) {
                double message = s == side && on(g, l) ? FGI_NEVER : x;
                if (message == 0.0) continue;
                g->message_label[s][count[s]] = l;
                g->message[s][count[s]++] = message;
            }
        }
        const fgi_message m[2] = {
            {count[0], g->message_label[0], g->message[0]}, {count[1], g->message_label[1], g->message[1]}};
        fgi_argmax found;
        int64_t hint =
            least < 0 ? -1 : (int64_t)least * n + least; /* an entry that is zero: about as good as nothing */
        const fgi_oracle_query q = {.source = fgi_updatable_source(g->table), .messages = m, .hint = hint};
        rc = fgi_oracle_answer(&q, g->oracle, &found);
        if (!rc && found.value > out->value) *out = found;
    }
    g->pair_touched += fgi_oracle_scratch_work(g->oracle).touched - before;
    return rc;
}

/* ---- by bounds ------------------------------------------------------------------------------------------------ */

void fgi_sets_bound_labels(fgi_learn_gdmm_sets *g) {
    const int32_t n = g->L->data.n_labels;
    if (g->L->data.edges == FGI_EDGES_NONE) return;
    for (int32_t l = 0; l < n; l++) g->top[l] = 0.0; /* pairs without a positive weight are never wanted */
    for (int32_t l = 0; l < n; l++) {
        const double *row = fgi_sets_weight(g, l, 0);
        for (int32_t m = l + 1; m < n; m++) {
            if (row[m] > g->top[l]) g->top[l] = row[m];
            if (row[m] > g->top[m]) g->top[m] = row[m];
        }
    }
    g->bounded = 1;
}

/* Labels that can be in a pair worth listing, ascending; the others' bounds say no. */
static int32_t reachable(fgi_learn_gdmm_sets *g, double *against, int32_t *list) {
    int32_t count = 0;
    for (int32_t l = 0; l < g->L->data.n_labels; l++) {
        const double x = obstacle(g, l);
        if (!(g->top[l] > x)) continue;
        list[count] = l;
        against[count++] = x;
    }
    return count;
}

static void search_pairs(fgi_learn_gdmm_sets *g, fgi_argmax *out) {
    const int32_t n = g->L->data.n_labels, *list = g->message_label[0];
    const double *against = g->message[0];
    const int32_t count = reachable(g, g->message[0], g->message_label[0]);
    *out = (fgi_argmax){-1, 0.0};
    g->pair_touched += n;
    for (int32_t a = 0; a + 1 < count; a++) {
        const int32_t l = list[a];
        if (!(g->top[l] - against[a] > out->value)) continue;
        const double *row = fgi_sets_weight(g, l, 0);
        for (int32_t b = a + 1; b < count; b++) {
            const double x = (row[list[b]] - against[a]) - against[b];
            if (x > out->value && !(on(g, l) && on(g, list[b]))) *out = (fgi_argmax){(int64_t)l * n + list[b], x};
        }
        g->pair_touched += count - a - 1;
    }
}

void fgi_learn_gdmm_sets_get_bounds(const fgi_learn_gdmm_sets *g, double *bounds) {
    for (int32_t l = 0; l < g->L->data.n_labels; l++) bounds[l] = g->bounded ? g->top[l] : -1.0;
}

void fgi_learn_gdmm_sets_set_bounds(fgi_learn_gdmm_sets *g, const double *bounds) {
    g->bounded = g->L->data.n_labels > 0 && bounds[0] >= 0;
    for (int32_t l = 0; l < g->L->data.n_labels; l++) g->top[l] = bounds[l];
}

fgi_rc fgi_sets_best_pair(fgi_learn_gdmm_sets *g, fgi_argmax *out) {
    if (g->s.brute_force) {
        scan_pairs(g, out);
        return FGI_OK;
    }
    if (g->table) return walk_pairs(g, out);
    search_pairs(g, out);
    return FGI_OK;
}
