/* learn/extreme/pd_joint.c - a step of pd-sparse in the dual variables of all rows together.
 *
 * Passes move one row at a time. Where C is large the rows share their weights without being held by it, and passes
 * creep. With signs, zeros and the sums of full rows held, G is a convex function in pieces that are quadratic: the
 * piece at hand is minimised by conjugate gradients, and an exact line search follows the direction found through the
 * other pieces, as far as signs and sums allow. A variable that meets its bound is held from then on, and the rest goes
 * on. No step makes G larger.
 */
#include <string.h>
#include "learn/extreme/pd.h"
#include "base/meter.h"

enum {
    WORK = 48,       /* one step does so much: a conjugate direction, a gradient, a search along a line are 1 each */
    EVALUATIONS = 12 /* slopes looked at in one search along a line */
};
/* Squared residual, of that at the start, at which a face is done. */
static const double RESIDUAL = 1e-20;
/* Squared residual, of the squared gradient off the face, below which it is rounding. */
static const double ROUNDING = 1e-24;
/* Curvature, of the squared length of a direction, below which it has none. */
static const double FLAT = 1e-14;
/* Part of C by which the sum of a full row may miss it. */
static const double FULL = 1e-12;
/* Slope, as a part of that at the start, at which a line search ends. */
static const double SLOPE = 1e-4;

typedef struct joint {
    fgi_pd *p;
    int32_t left;      /* work that may still be done */
    int64_t n;         /* dual variables, zeros as well */
    int64_t *begin;    /* by row */
    double *residual;  /* minus the gradient on the face */
    double *direction; /* conjugate to those before */
    double *image;     /* H times the direction */
    double *total;     /* the way to the optimum of the face */
    hash_row *u;       /* by feature: X^T of a direction */
    double *store;
} joint;

static double dot(int64_t n, const double *a, const double *b) {
    fgi_sum sum = {0};
    for (int64_t k = 0; k < n; k++) fgi_sum_add(&sum, a[k] * b[k]);
    return fgi_sum_value(&sum);
}

/* ---- the face -------------------------------------------------------------------------------------------------- */

static void center(const double *alpha, double *d, int32_t n) {
    double sum = 0.0;
    int32_t moving = 0;
    for (int32_t k = 0; k < n; k++)
        if (alpha[k] != 0.0) sum += d[k], moving++;
    for (int32_t k = 0; k < n; k++) d[k] = alpha[k] != 0.0 ? d[k] - sum / moving : 0.0;
}

static double sum_of(const double *a, int32_t n) {
    double sum = 0.0;
    for (int32_t k = 0; k < n; k++) sum += a[k];
    return sum;
}

/* What of d stays on the face: zeros stay, and the sums of a row stay equal, those of a full one as they are. */
static void project(const joint *j, double *d) {
    for (int64_t i = 0; i < j->p->data.n_rows; i++) {
        const pd_block *b = &j->p->blocks[i];
        const int32_t own = pd_own(j->p, i);
        double *at = d + j->begin[i];
        if (sum_of(b->alpha, own) >= j->p->settings.C * (1.0 - FULL)) {
            center(b->alpha, at, own);
            center(b->alpha + own, at + own, b->n - own);
        } else {
            center(b->alpha, at, b->n);
        }
    }
}

/* u = X^T d. */
static int combine(joint *j, const double *d) {
    const fgi_extreme_data *data = &j->p->data;
    for (int64_t f = 0; f < data->n_features; f++)
        for (int64_t e = 0; j->u[f].entries && e < (int64_t)1 << j->u[f].bits; e++) j->u[f].entries[e].value = 0.0;
    for (int64_t i = 0; i < data->n_rows; i++) {
        const pd_block *b = &j->p->blocks[i];
        for (int32_t k = 0; k < b->n; k++) {
            const double change = d[j->begin[i] + k];
            for (int64_t e = data->row_begin[i]; change != 0.0 && e < data->row_begin[i + 1]; e++) {
                if (j->p->refitting && !hash_row_find(&j->p->v[data->row_feature[e]], b->label[k])) continue;
                double *u = hash_row_at(&j->u[data->row_feature[e]], b->label[k]);
                if (!u) return 0;
                *u += change * (double)data->row_value[e];
            }
        }
    }
    return 1;
}

/* image = X of u where there is a weight: H times the direction that u was made of. */
static void spread(const joint *j, double *image) {
    const fgi_extreme_data *data = &j->p->data;
    for (int64_t i = 0; i < data->n_rows; i++) {
        const pd_block *b = &j->p->blocks[i];
        for (int32_t k = 0; k < b->n; k++) {
            double sum = 0.0;
            for (int64_t e = data->row_begin[i]; b->alpha[k] != 0.0 && e < data->row_begin[i + 1]; e++) {
                const int32_t feature = data->row_feature[e];
                if (fabs(hash_row_get(&j->p->v[feature], b->label[k])) > j->p->settings.lambda)
                    sum += (double)data->row_value[e] * hash_row_get(&j->u[feature], b->label[k]);
            }
            image[j->begin[i] + k] = sum;
        }
    }
}

/* How far signs and sums let the rows go. */
static double farthest(const joint *j) {
    double most = INFINITY;
    for (int64_t i = 0; i < j->p->data.n_rows; i++) {
        const pd_block *b = &j->p->blocks[i];
        const int32_t own = pd_own(j->p, i);
        const double *way = j->total + j->begin[i];
        const double sum = sum_of(b->alpha, own), grows = sum_of(way, own);
        for (int32_t k = 0; k < b->n; k++)
            if (b->alpha[k] * way[k] < 0.0) most = fgi_smaller(most, -b->alpha[k] / way[k]);
        if (grows > 0.0 && sum < j->p->settings.C * (1.0 - FULL))
            most = fgi_smaller(most, (j->p->settings.C - sum) / grows);
    }
    return most;
}

/* total: the way to the optimum of the quadratic piece, or along a direction in which it has no end. */
static fgi_rc minimise(joint *j, double deadline, fgi_error *err) {
    const size_t size = (size_t)j->n * sizeof(double);
    for (int64_t i = 0; i < j->p->data.n_rows; i++) {
        const pd_block *b = &j->p->blocks[i];
        for (int32_t k = 0; k < b->n; k++)
            j->residual[j->begin[i] + k] =
                b->alpha[k] == 0.0 ? 0.0 : -pd_score(j->p, i, b->label[k]) - (k >= pd_own(j->p, i));
    }
    const double raw = dot(j->n, j->residual, j->residual);
    project(j, j->residual);
    memset(j->total, 0, size);
    memcpy(j->direction, j->residual, size);
    const double first = dot(j->n, j->residual, j->residual);
    const double end = fgi_larger(RESIDUAL * first, ROUNDING * raw);
    double now = first;
    for (; now > end && j->left > 0 && (now == first || fgi_clock() < deadline); j->left--) {
        if (!combine(j, j->direction)) return fgi_no_memory(err);
        spread(j, j->image);
        const double curvature = dot(j->n, j->direction, j->image);
        if (curvature <= FLAT * dot(j->n, j->direction, j->direction)) {
            memcpy(j->total, j->direction, size);
            break;
        }
        project(j, j->image);
        for (int64_t k = 0; k < j->n; k++) {
            j->total[k] += now / curvature * j->direction[k];
            j->residual[k] -= now / curvature * j->image[k];
        }
        const double next = dot(j->n, j->residual, j->residual);
        for (int64_t k = 0; k < j->n; k++) j->direction[k] = j->residual[k] + next / now * j->direction[k];
        now = next;
        if (farthest(j) < 1.0) break; /* the optimum of this face is out of reach */
    }
    project(j, j->total); /* once more, as what is left of large numbers is not centered */
    return FGI_OK;
}

/* ---- the line -------------------------------------------------------------------------------------------------- */

/* The derivative of G along the way, of which u is the image; linear: that of the sum of the others. */
static double slope(const joint *j, double linear, double t) {
    fgi_sum sum = {0};
    fgi_sum_add(&sum, linear);
    for (int64_t f = 0; f < j->p->data.n_features; f++)
        for (int64_t e = 0; j->u[f].entries && e < (int64_t)1 << j->u[f].bits; e++) {
            const hash_entry *u = &j->u[f].entries[e];
            if (u->label < 0 || u->value == 0.0) continue;
            const double v = hash_row_get(&j->p->v[f], u->label);
            fgi_sum_add(&sum, fgi_soft(v + t * u->value, j->p->settings.lambda) * u->value);
        }
    return fgi_sum_value(&sum);
}

/* The largest t found at which G still falls, by the rule of Illinois; `most` if it falls all the way. */
static double lowest(const joint *j, double most) {
    double linear = 0.0;
    for (int64_t i = 0; i < j->p->data.n_rows; i++) {
        const int32_t own = pd_own(j->p, i);
        linear += sum_of(j->total + j->begin[i] + own, j->p->blocks[i].n - own);
    }
    const double first = slope(j, linear, 0.0);
    if (!(first < 0.0)) return 0.0;
    double low = 0.0, high = most, at_low = first, at_high = slope(j, linear, most);
    if (at_high <= 0.0) return most;
    double kept_low = at_low, kept_high = at_high; /* halved where one end does not move */
    for (int32_t k = 0; k < EVALUATIONS && -at_low > -SLOPE * first; k++) {
        double t = low - kept_low * (high - low) / (kept_high - kept_low);
        if (k == 0 && most > 1.0) t = 1.0; /* the end of the piece, if it reaches so far */
        if (!(t > low && t < high)) break;
        const double here = slope(j, linear, t);
        if (here <= 0.0) {
            low = t, at_low = kept_low = here;
            kept_high *= 0.5;
        } else {
            high = t, kept_high = here;
            kept_low *= 0.5;
        }
    }
    return low;
}

static fgi_rc go(joint *j, double t, fgi_error *err) {
    fgi_pd *p = j->p;
    for (int64_t i = 0; i < p->data.n_rows; i++) {
        pd_block *b = &p->blocks[i];
        const int32_t own = pd_own(p, i);
        if (!pd_reserve_move(p, i)) return fgi_no_memory(err);
        for (int32_t k = 0; k < b->n; k++) {
            const double way = j->total[j->begin[i] + k], new = b->alpha[k] + t *way;
            const int at_end = b->alpha[k] * way < 0.0 && -b->alpha[k] / way <= t;
            if (k < own) p->up[k] = at_end ? 0.0 : fgi_larger(0.0, new);
            else p->down[k - own] = at_end ? 0.0 : fgi_larger(0.0, -new);
        }
        const fgi_rc rc = pd_move(p, i, err);
        if (rc) return rc;
    }
    return FGI_OK;
}

/* ---- the step -------------------------------------------------------------------------------------------------- */

static void place(joint *j) {
    j->begin[0] = 0;
    for (int64_t i = 0; i < j->p->data.n_rows; i++) j->begin[i + 1] = j->begin[i] + j->p->blocks[i].n;
    j->n = j->begin[j->p->data.n_rows];
    j->residual = j->store;
    j->direction = j->residual + j->n;
    j->image = j->direction + j->n;
    j->total = j->image + j->n;
}

static fgi_rc faces(joint *j, double deadline, fgi_error *err) {
    for (; j->left > 0 && (j->left == WORK || fgi_clock() < deadline); j->left -= 2) {
        place(j);
        fgi_rc rc = minimise(j, deadline, err);
        if (rc) return rc;
        const double most = farthest(j);
        if (!(most > 0.0 && most < INFINITY)) return FGI_OK;
        if (!combine(j, j->total)) return fgi_no_memory(err);
        const double t = lowest(j, most);
        if (!(t > 0.0)) return FGI_OK;
        if ((rc = go(j, t, err))) return rc;
    }
    return FGI_OK;
}

fgi_rc fgi_pd_joint(fgi_pd *p, double deadline, fgi_error *err) {
    int64_t n = 0;
    for (int64_t i = 0; i < p->data.n_rows; i++) n += p->blocks[i].n;
    joint j = {.p = p, .left = WORK};
    j.begin = fgi_alloc(p->data.n_rows + 1, sizeof *j.begin);
    j.store = fgi_alloc(4 * n, sizeof *j.store);
    j.u = fgi_calloc(p->data.n_features, sizeof *j.u);
    const fgi_rc rc = j.begin && j.store && j.u ? faces(&j, deadline, err) : fgi_no_memory(err);
    for (int64_t f = 0; j.u && f < p->data.n_features; f++) hash_row_free(&j.u[f]);
    free(j.begin);
    free(j.store);
    free(j.u);
    return rc;
}
