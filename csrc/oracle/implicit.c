/* oracle/implicit.c - oracles of the factors without a table: Potts, truncated absolute and squared differences.
 *
 * The cost is that of the messages, whatever the label counts. Pairs of messages on differences can cost more than a
 * scan, so these give up where fgi_oracle_is_spent. An excluded state is treated by giving both its labels a message
 * (of 0 if they have none): then it is a pair of messages, looked at one by one. Ties, also those that rounding makes,
 * go to the lowest flat index as everywhere: the largest value is found first, then the first state that has it. */
#include <stdlib.h>
#include "oracle/internal.h"

typedef struct lookup {
    const fgi_table_source *t;
    fgi_oracle_scratch *w;
    fgi_message message[2];
    int32_t n[2];     /* label counts */
    double truncated; /* differences: the score of the farthest labels; not reached by any pair without truncation */
    fgi_argmax best;
} lookup;

/* ---- labels with and without a message ------------------------------------------------------------------------ */

static int32_t lower_bound(const fgi_message *m, int32_t label) {
    return (int32_t)fgi_lower_bound(m->labels, 0, m->n, label);
}

/* The first label >= `label` without a message (the label count: none). labels[k] - k does not decrease, so the end of
 * a run of consecutive labels is found by bisection. */
static int32_t next_free(const lookup *look, int side, int32_t label) {
    const fgi_message *m = &look->message[side];
    int32_t k = lower_bound(m, label), low = k, high = m->n;
    if (k == m->n || m->labels[k] != label) return label < look->n[side] ? label : look->n[side];
    while (low < high) {
        int32_t mid = low + (high - low) / 2;
        if (m->labels[mid] - mid > label - k) high = mid;
        else low = mid + 1;
    }
    return m->labels[low - 1] + 1; /* the label count itself, if the run reaches the end */
}

/* The last label <= `label` without a message (-1: none). */
static int32_t previous_free(const lookup *look, int side, int32_t label) {
    const fgi_message *m = &look->message[side];
    int32_t k = lower_bound(m, label), low = 0, high = k;
    if (k == m->n || m->labels[k] != label) return label;
    while (low < high) {
        int32_t mid = low + (high - low) / 2;
        if (m->labels[mid] - mid < label - k) low = mid + 1;
        else high = mid;
    }
    return m->labels[low] - 1;
}

/* The message with label `label` of value 0 added, if it has none; written to the scratch. */
static fgi_message with_label(const fgi_message *m, int32_t label, int32_t *labels, double *values) {
    int32_t k = lower_bound(m, label);
    if (k < m->n && m->labels[k] == label) return *m;
    for (int32_t l = 0; l < m->n; l++) {
        labels[l + (l >= k)] = m->labels[l];
        values[l + (l >= k)] = m->values[l];
    }
    labels[k] = label;
    values[k] = 0.0;
    return (fgi_message){m->n + 1, labels, values};
}

static int allowed(const lookup *look, int32_t a, int32_t b) {
    return !fgi_is_banned(look->w, (int64_t)a * look->n[1] + b);
}

static void offer(lookup *look, int32_t a, int32_t b, double value) {
    look->w->touched++;
    if (value > -INFINITY && allowed(look, a, b)) fgi_argmax_offer(&look->best, (int64_t)a * look->n[1] + b, value);
}

/* ---- Potts -------------------------------------------------------------------------------------------------- */

/* Equal labels: those with a message on either side, and the first without any. */
static void potts_equal(lookup *look, double theta) {
    const fgi_message *m1 = &look->message[0], *m2 = &look->message[1];
    const int32_t n = look->n[0] < look->n[1] ? look->n[0] : look->n[1];
    int32_t k = 0, l = 0, unmet = 0; /* unmet: first label not seen in either list so far */
    while (k < m1->n || l < m2->n) {
        int32_t a = k == m1->n || (l < m2->n && m2->labels[l] < m1->labels[k]) ? m2->labels[l] : m1->labels[k];
        if (a >= n) break;
        double d1 = k < m1->n && m1->labels[k] == a ? m1->values[k++] : 0.0;
        double d2 = l < m2->n && m2->labels[l] == a ? m2->values[l++] : 0.0;
        offer(look, a, a, (theta - d1) - d2);
        if (a == unmet) unmet++;
    }
    if (unmet < n) offer(look, unmet, unmet, theta);
}

/* The labels worth trying on one side when labels must differ: all with a message and the first two without; from the
 * third on, one of those two does as well. Calls are numbered 0 .. candidates-1, in no particular order. */
static int32_t candidates(const lookup *look, int side, int32_t *spare) {
    int32_t n = look->message[side].n;
    spare[0] = next_free(look, side, 0);
    if (spare[0] == look->n[side]) return n;
    spare[1] = next_free(look, side, spare[0] + 1);
    return n + (spare[1] == look->n[side] ? 1 : 2);
}

static int32_t candidate(const lookup *look, int side, const int32_t *spare, int32_t k, double *delta) {
    const fgi_message *m = &look->message[side];
    *delta = k < m->n ? m->values[k] : 0.0;
    return k < m->n ? m->labels[k] : spare[k - m->n];
}

static void potts_different(lookup *look, double theta) {
    int32_t spare[2][2], least[3] = {-1, -1, -1}, at = -1;
    const int32_t n1 = candidates(look, 0, spare[0]), n2 = candidates(look, 1, spare[1]);
    double least_delta[3], d1, d2, top = -INFINITY, top_first = 0.0;
    /* A row misses at most two columns (its own label, the excluded state): the three smallest messages are enough. */
    for (int32_t l = 0; l < n2; l++) {
        int32_t b = candidate(look, 1, spare[1], l, &d2), k = 3;
        while (k > 0 && (least[k - 1] < 0 || d2 < least_delta[k - 1])) k--;
        if (k == 3) continue;
        for (int32_t j = 2; j > k; j--) {
            least[j] = least[j - 1];
            least_delta[j] = least_delta[j - 1];
        }
        least[k] = b;
        least_delta[k] = d2;
    }
    for (int32_t k = 0; k < n1; k++) {
        int32_t a = candidate(look, 0, spare[0], k, &d1);
        for (int32_t j = 0; j < 3 && least[j] >= 0; j++) {
            if (least[j] == a || !allowed(look, a, least[j])) continue;
            double value = (theta - d1) - least_delta[j];
            if (value > top || (value == top && a < at)) {
                top = value;
                top_first = theta - d1;
                at = a;
            }
            break;
        }
    }
    look->w->touched += n1 + n2;
    if (at < 0 || top < look->best.value) return;
    for (int32_t l = 0; l < n2; l++) { /* the first column that gives this value */
        int32_t b = candidate(look, 1, spare[1], l, &d2);
        if (b != at && top_first - d2 == top) offer(look, at, b, top);
    }
}

/* ---- differences -------------------------------------------------------------------------------------------- */

static double by_distance(const lookup *look, int32_t distance) {
    return look->t->view.weight * fgi_implicit_at(look->t->view.kind, look->t->view.p0, look->t->view.p1, distance, 0);
}

/* The largest distance whose score, less delta, still gives `value`. */
static int32_t reach(const lookup *look, double delta, double value) {
    int32_t low = 0, high = look->n[0] > look->n[1] ? look->n[0] : look->n[1];
    while (low + 1 < high) {
        int32_t mid = low + (high - low) / 2;
        if (by_distance(look, mid) - delta >= value) low = mid;
        else high = mid;
    }
    return low;
}

/* The distance from `label` to the nearest free label of `side`; INT32_MAX: there is none. */
static int32_t nearest_free(const lookup *look, int side, int32_t label) {
    const int32_t last = look->n[side] - 1;
    int32_t below = previous_free(look, side, label < last ? label : last), distance = INT32_MAX;
    if (below >= 0) distance = label - below;
    if (below != label && label <= last) {
        int32_t above = next_free(look, side, label);
        if (above <= last && above - label < distance) distance = above - label;
    }
    return distance;
}

/* Label `label` of `side` with message delta, and a label without one on the other side. */
static void difference_one(lookup *look, int side, int32_t label, double delta) {
    look->w->touched++;
    if (by_distance(look, 0) - delta < look->best.value) return;
    int32_t distance = nearest_free(look, 1 - side, label);
    if (distance == INT32_MAX) return;
    double value = by_distance(look, distance) - delta;
    if (value < look->best.value) return;
    int32_t from = label - reach(look, delta, value);
    int32_t other = next_free(look, 1 - side, from < 0 ? 0 : from);
    offer(look, side == 0 ? label : other, side == 0 ? other : label, value);
}

/* No message on either side. A free label of the first variable is either free for the second, too (distance 0), or has
 * a message there, or lies beyond its labels: the loops run no more often than there are messages. */
static void difference_none(lookup *look) {
    int32_t distance = INT32_MAX;
    for (int32_t a = next_free(look, 0, 0); a < look->n[0] && distance > 0; a = next_free(look, 0, a + 1)) {
        int32_t here = nearest_free(look, 1, a);
        look->w->touched++;
        if (here < distance) distance = here;
        if (a >= look->n[1]) break;
    }
    if (distance == INT32_MAX) return;
    double value = by_distance(look, distance);
    if (value < look->best.value) return;
    const int32_t far = reach(look, 0.0, value);
    for (int32_t a = next_free(look, 0, 0); a < look->n[0]; a = next_free(look, 0, a + 1)) {
        look->w->touched++;
        if (nearest_free(look, 1, a) > far) continue;
        offer(look, a, next_free(look, 1, a > far ? a - far : 0), value);
        return;
    }
}

/* The best partner of label a, message d1, among the second variable's messages: outwards from a until the distance
 * alone rules the rest out, or reaches the truncation, where the smallest message (at `least`) wins. */
static double partner(const lookup *look, int32_t a, double d1, int32_t least, double so_far) {
    const fgi_message *m = &look->message[1];
    double top = -INFINITY;
    if (allowed(look, a, m->labels[least]))
        top = (by_distance(look, abs(a - m->labels[least])) - d1) - m->values[least];
    const int has_rival = !allowed(look, a, m->labels[least]); /* then the truncated part must be looked at, too */
    for (int step = -1; step <= 1; step += 2) {
        for (int32_t l = lower_bound(m, a) - (step < 0); l >= 0 && l < m->n; l += step) {
            double theta = by_distance(look, abs(a - m->labels[l])), value = (theta - d1) - m->values[l];
            look->w->touched++;
            if (fgi_oracle_is_spent(look->w)) return top;
            if ((theta - d1) - m->values[least] < (top > so_far ? top : so_far)) break;
            if (value > top && allowed(look, a, m->labels[l])) top = value;
            if (!has_rival && theta == look->truncated) break;
        }
    }
    return top;
}

static void difference_both(lookup *look) {
    const fgi_message *m1 = &look->message[0], *m2 = &look->message[1];
    if (m1->n == 0 || m2->n == 0) return;
    int32_t least = 0, at = -1;
    for (int32_t l = 1; l < m2->n; l++)
        if (m2->values[l] < m2->values[least]) least = l;
    look->truncated = by_distance(look, look->n[0] > look->n[1] ? look->n[0] : look->n[1]);
    double top = look->best.value;
    const double near = by_distance(look, 0);
    for (int32_t k = 0; k < m1->n; k++) {
        look->w->touched++;
        if (fgi_oracle_is_spent(look->w)) return;
        if ((near - m1->values[k]) - m2->values[least] < top) continue;
        double value = partner(look, m1->labels[k], m1->values[k], least, top);
        if (value == -INFINITY || value < top || (value == top && at >= 0)) continue;
        top = value;
        at = k;
    }
    look->w->touched += m2->n;
    for (int32_t l = 0; at >= 0 && l < m2->n; l++) { /* the first partner that gives this value */
        double value = (by_distance(look, abs(m1->labels[at] - m2->labels[l])) - m1->values[at]) - m2->values[l];
        if (value != top || !allowed(look, m1->labels[at], m2->labels[l])) continue;
        offer(look, m1->labels[at], m2->labels[l], value);
        return;
    }
}

/* ---- dispatch ----------------------------------------------------------------------------------------------- */

fgi_rc fgi_implicit_argmax(
    const fgi_table_source *t, const fgi_oracle_query *q, fgi_oracle_scratch *w, fgi_argmax *out) {
    const fgi_view *v = &t->view;
    if (w->n_banned > 1) return FGI_UNSUPPORTED; /* Potts counts on at most one */
    lookup look = {.t = t, .w = w, .n = {v->rows, v->cols}, .best = {-1, -INFINITY}};
    for (int side = 0; side < 2 && q->messages; side++) look.message[side] = q->messages[side];
    if (w->n_banned) {
        double *values = w->bound;
        look.message[0] = with_label(&look.message[0], (int32_t)(w->banned[0] / v->cols), w->labels, values);
        look.message[1] = with_label(
            &look.message[1], (int32_t)(w->banned[0] % v->cols), w->labels + w->max_card, values + w->max_card);
    }
    if (q->hint >= 0 && q->hint < (int64_t)v->rows * v->cols) {
        int32_t a = (int32_t)(q->hint / v->cols), b = (int32_t)(q->hint % v->cols);
        offer(&look, a, b,
            (fgi_view_at2(v, a, b) - fgi_message_at(&look.message[0], a)) - fgi_message_at(&look.message[1], b));
    }
    if (v->kind == FGI_POTTS) {
        potts_equal(&look, v->weight * v->p0);
        potts_different(&look, v->weight * v->p1);
    } else {
        for (int side = 0; side < 2; side++)
            for (int32_t k = 0; k < look.message[side].n; k++)
                difference_one(&look, side, look.message[side].labels[k], look.message[side].values[k]);
        difference_both(&look);
        if (fgi_oracle_is_spent(w)) return FGI_UNSUPPORTED;
        difference_none(&look);
    }
    *out = look.best;
    return FGI_OK;
}
