/* learn/losses/evaluate.c - cross-entropy, smoothed margin and triplet loss of a list of scores. */
#include <string.h>
#include "learn/losses/losses.h"

int fgi_scored_reserve(fgi_scored *scored, int64_t n) {
    if (n <= scored->capacity) return 1;
    const int64_t capacity = n + n / 2 + 16;
    if (!fgi_resize(&scored->labels, capacity, sizeof *scored->labels) ||
        !fgi_resize(&scored->z, capacity, sizeof *scored->z) ||
        !fgi_resize(&scored->weight, capacity, sizeof *scored->weight) ||
        !fgi_resize(&scored->g, capacity, sizeof *scored->g) ||
        !fgi_resize(&scored->work, 2 * capacity, sizeof *scored->work))
        return 0;
    scored->capacity = capacity;
    return 1;
}

void fgi_scored_free(fgi_scored *scored) {
    free(scored->labels);
    free(scored->z);
    free(scored->g);
    free(scored->weight);
    free(scored->work);
}

static double entropy(fgi_scored *scored) {
    double top = scored->n_rest ? scored->rest : -INFINITY, sum, total = 0, value = 0;
    for (int64_t k = 0; k < scored->n; k++)
        if (scored->z[k] > top) top = scored->z[k];
    sum = scored->n_rest ? (double)scored->n_rest * exp(scored->rest - top) : 0;
    for (int64_t k = 0; k < scored->n; k++) sum += scored->g[k] = exp(scored->z[k] - top);
    for (int64_t k = 0; k < scored->n_positives; k++) total += scored->weight[k];
    const double log_sum = top + log(sum);
    for (int64_t k = 0; k < scored->n; k++) scored->g[k] *= total / sum;
    if (scored->n_rest) scored->rest_g = total * exp(scored->rest - top) / sum;
    for (int64_t k = 0; k < scored->n_positives; k++) {
        scored->g[k] -= scored->weight[k];
        value += scored->weight[k] * (log_sum - scored->z[k]);
    }
    return value;
}

static double triplet(fgi_scored *scored) {
    double value = 0, lowest = INFINITY;
    memset(scored->g, 0, (size_t)scored->n * sizeof *scored->g);
    for (int64_t k = 0; k < scored->n_positives; k++)
        if (scored->z[k] < lowest) lowest = scored->z[k];
    for (int64_t j = scored->n_positives; j < scored->n; j++) {
        if (!(scored->z[j] + 1 > lowest)) continue;
        for (int64_t k = 0; k < scored->n_positives; k++) {
            const double over = scored->z[j] - scored->z[k] + 1;
            if (!(over > 0)) continue;
            value += scored->weight[k] * over;
            scored->g[j] += scored->weight[k];
            scored->g[k] -= scored->weight[k];
        }
    }
    for (int64_t k = 0; scored->n_rest && k < scored->n_positives; k++) {
        const double over = scored->rest - scored->z[k] + 1;
        if (!(over > 0)) continue;
        value += scored->weight[k] * over * (double)scored->n_rest;
        scored->g[k] -= scored->weight[k] * (double)scored->n_rest;
        scored->rest_g += scored->weight[k];
    }
    return value;
}

/* ---- smoothed margin -------------------------------------------------------------------------------------------- */

static int descending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? 1 : x > y ? -1 : 0;
}

/* A side of the projection, all of it less its largest value: values that may be positive in it, descending; `n_more`
 * further ones equal `more`. */
typedef struct side {
    double *v;
    int64_t n;
    double more;
    int64_t n_more;
} side;

/* Leaves out what cannot be positive. The sums are at most 1, so the threshold is at least the t at which they are 1,
 * and that is at least (sum - 1) / n over any part of the values: what lies below is dropped, over and over, until
 * little changes (Michelot, "A finite algorithm for finding the projection of a point onto the canonical simplex of
 * R^n", 1986). Sorting 10^5 values at the start of training took ten times as long as computing them. */
static void side_filter(side *half) {
    const double room = 1e-12; /* rounding must not drop what is positive by a hair */
    double least = -1;
    for (int round = 0; round < 64; round++) {
        const int64_t before = half->n;
        double sum = 0;
        int64_t kept = 0;
        for (int64_t k = 0; k < half->n; k++) {
            if (!(half->v[k] > least)) continue;
            sum += half->v[k];
            half->v[kept++] = half->v[k];
        }
        half->n = kept;
        if (!(half->more > least)) half->n_more = 0;
        if (round > 0 && kept > before - before / 8 - 1) break;
        const double n = (double)(kept + half->n_more);
        const double next = (sum + (half->n_more ? (double)half->n_more * half->more : 0) - 1) / n;
        if (!(n > 0) || !(next - room > least)) break;
        least = next - room;
    }
    qsort(half->v, (size_t)half->n, sizeof *half->v, descending);
}

/* sum over the side of (v - t)_+ */
static double above(const side *half, double t) {
    double sum = half->n_more && half->more > t ? (double)half->n_more * (half->more - t) : 0;
    for (int64_t k = 0; k < half->n && half->v[k] > t; k++) sum += half->v[k] - t;
    return sum;
}

/* The t at which that is 1. */
static double simplex_threshold(const side *half) {
    double sum = 0, count = 0;
    int pending = half->n_more > 0;
    for (int64_t k = 0; k < half->n || pending;) {
        double next;
        if (pending && (k == half->n || half->more >= half->v[k])) next = half->more;
        else next = half->v[k];
        if (count > 0 && (sum - 1) / count >= next) break;
        if (pending && next == half->more) {
            sum += (double)half->n_more * half->more;
            count += (double)half->n_more;
            pending = 0;
        } else {
            sum += next;
            count++;
            k++;
        }
    }
    return (sum - 1) / count;
}

/* t with sum over u of (u - t)_+ = sum over v of (v + apart + t)_+, between `low` and `high`: the difference falls in t
 * and is linear between breakpoints, which halving the interval soon leaves behind; then it is solved there. */
static double balance(const side *u, const side *v, double apart, double low, double high) {
    for (int step = 0; step < 200 && high - low > 0; step++) {
        const double t = 0.5 * (low + high), excess = above(u, t) - above(v, -apart - t);
        if (t <= low || t >= high) break;
        if (excess > 0) low = t;
        else high = t;
        const double at_low = above(u, low) - above(v, -apart - low);
        const double at_high = above(u, high) - above(v, -apart - high);
        if (at_low == at_high) break;
        const double cut = low + (high - low) * at_low / (at_low - at_high);
        const double there = above(u, cut) - above(v, -apart - cut);
        if (fabs(there) <= 1e-15 * apart) return cut;
        if (there > 0 && cut > low) low = cut;
        else if (there < 0 && cut < high) high = cut;
    }
    return 0.5 * (low + high);
}

/* Negatives against positives: u = (z + 1)/mu and v = -z/mu are projected onto { alpha, beta >= 0, the sums equal and
 * at most 1 }; the gradient is alpha on the negatives and -beta on the positives.
 *
 * Both sides are taken less their largest values, which are those of the best negative and the worst positive: then no
 * score is too large, and no mu too small, for what matters, differences up to mu. The largest values add up to
 * margin / mu, the distance of the sides, and the loss is sum of alpha * margin + mu * (<alpha, u> + <beta, v> -
 * (|alpha|^2 + |beta|^2) / 2). */
static double margin(fgi_scored *scored, double mu) {
    double best = scored->n_rest ? scored->rest : -INFINITY, worst = INFINITY;
    memset(scored->g, 0, (size_t)scored->n * sizeof *scored->g);
    if (scored->n - scored->n_positives + scored->n_rest == 0 || scored->n_positives == 0) return 0;
    for (int64_t k = 0; k < scored->n_positives; k++) worst = fgi_smaller(worst, scored->z[k]);
    for (int64_t k = scored->n_positives; k < scored->n; k++) best = fgi_larger(best, scored->z[k]);
    const double over = best - worst + 1;
    if (!(over > 0)) return 0;
    side u = {.v = scored->work,
        .n = scored->n - scored->n_positives,
        .more = (scored->rest - best) / mu,
        .n_more = scored->n_rest};
    side v = {.v = scored->work + scored->capacity, .n = scored->n_positives};
    for (int64_t k = 0; k < u.n; k++) u.v[k] = (scored->z[scored->n_positives + k] - best) / mu;
    for (int64_t k = 0; k < v.n; k++) v.v[k] = (worst - scored->z[k]) / mu;
    side_filter(&u);
    side_filter(&v);
    double t = simplex_threshold(&u), r = simplex_threshold(&v);
    if (!(over / mu + t + r > 0)) {     /* less than 1 on each side */
        const double apart = over / mu; /* the best negative has -t, the worst positive apart + t: neither is below 0 */
        t = balance(&u, &v, apart, fgi_larger(t, -apart), fgi_smaller(-apart - r, 0));
        r = -apart - t;
    }
    double mass = 0, inner = 0;
    for (int64_t k = 0; k < scored->n_positives; k++) {
        const double at = (worst - scored->z[k]) / mu, beta = at - r;
        if (!(beta > 0)) continue;
        scored->g[k] = -beta;
        inner += beta * (at - 0.5 * beta);
    }
    for (int64_t k = scored->n_positives; k < scored->n; k++) {
        const double at = (scored->z[k] - best) / mu, alpha = at - t;
        if (!(alpha > 0)) continue;
        scored->g[k] = alpha;
        mass += alpha;
        inner += alpha * (at - 0.5 * alpha);
    }
    const double at = (scored->rest - best) / mu, rest = at - t;
    if (scored->n_rest && rest > 0) {
        mass += (double)scored->n_rest * rest;
        inner += (double)scored->n_rest * rest * (at - 0.5 * rest);
        scored->rest_g = rest;
    }
    return mass * over + mu * inner;
}

double fgi_loss_evaluate(int32_t loss, double mu, fgi_scored *scored) {
    scored->rest_g = 0;
    if (loss == FGI_LOSS_MARGIN) return margin(scored, mu);
    return loss == FGI_LOSS_TRIPLET ? triplet(scored) : entropy(scored);
}

fgi_rc fgi_loss_of_scores(const fgi_loss_settings *settings, int64_t n, const double *scores, int64_t n_positives,
    const int32_t *positives, const double *weights, double *value, double *gradient, fgi_error *err) {
    fgi_scored l = {0};
    if (!fgi_scored_reserve(&l, n)) {
        fgi_scored_free(&l);
        return fgi_no_memory(err);
    }
    for (int64_t k = 0; k < n_positives; k++) {
        l.weight[k] = weights ? weights[k] : 1;
        fgi_scored_add(&l, positives[k], scores[positives[k]]);
    }
    l.n_positives = n_positives;
    for (int64_t k = 0, p = 0; k < n; k++) {
        if (p < n_positives && positives[p] == k) p++;
        else fgi_scored_add(&l, (int32_t)k, scores[k]);
    }
    *value = fgi_loss_evaluate(settings->loss, settings->mu, &l);
    for (int64_t k = 0; gradient && k < n; k++) gradient[l.labels[k]] = l.g[k];
    fgi_scored_free(&l);
    return FGI_OK;
}
