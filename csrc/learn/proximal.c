/* learn/proximal.c - a large C by way of smaller ones.
 *
 * Block-coordinate steps need a number of passes that grows with C |x|^2. The proximal point method (Rockafellar 1976)
 * goes from y to the minimiser of
 *
 *     1/2 |w|^2 + C sum_i H_i(w) + kappa/2 |w - y|^2,
 *
 * which, divided by 1 + kappa, is the same kind of problem with C' = C / (1 + kappa) and w = center + Phi alpha',
 * center = kappa / (1 + kappa) y. The blocks work with C' and do not know of the center; alpha = (1 + kappa) alpha' is
 * the dual point of the whole problem. A center is left as soon as w has nearly stopped moving away from it: a pass
 * that adds less than a fifth to the distance, or the tenth pass. The next one may be beyond the present w, by a
 * relaxation below 2 (Eckstein, Bertsekas 1992). */
#include "learn/learn.h"

/* Passes at one center, hardly ever reached: with 5, gdmm takes as many passes to a gap of 1e-3 on the four shapes of
 * bench/learning_any_c.py at C = 1, 10 and 100. */
enum { MOST_PASSES = 10 };
/* The center stays while a pass takes w further away from it by more than this share (decision 0016). */
static const double GROWTH = 0.2;
/* A handful of passes solves a subproblem at this C' |x|^2 (settings.block_C replaces it; decision 0016). */
static const double EASY = 6.0;

/* Mean |phi|^2 of a token, or of an edge if that is larger. */
static double mean_norm(const fgi_learner *L) {
    const fgi_learn_data *d = &L->data;
    const int64_t tokens = d->token_begin[d->n_examples];
    double mean = fgi_learn_square(d->value, 0, d->row_begin[tokens]) / (double)tokens;
    const int64_t edges = fgi_learn_edge_begin(d, d->n_examples);
    if (edges == 0) return mean;
    const double all = d->edge_row ? fgi_learn_square(d->edge_value, 0, d->edge_row[edges]) : (double)edges;
    return fgi_larger(mean, all / (double)edges);
}

fgi_rc fgi_proximal_start(fgi_learner *L, double C, double wanted, double *block_C) {
    const double norm = mean_norm(L), easy = wanted > 0 ? wanted : norm > 0 ? EASY / norm : C;
    free(L->proximal.center);
    L->proximal = (fgi_proximal){1.0, NULL, 0, 0};
    *block_C = C;
    if (easy >= (wanted > 0 ? C : 0.5 * C)) return FGI_OK; /* the detour would not pay */
    *block_C = easy;
    L->proximal.share = easy / C;
    return (L->proximal.center = fgi_calloc(L->dimension, sizeof(double))) ? FGI_OK : FGI_NO_MEMORY;
}

int fgi_proximal_end_pass(fgi_learner *L, double relaxation) {
    fgi_proximal *p = &L->proximal;
    if (!p->center) return 0;
    const double keep = 1.0 - p->share; /* kappa / (1 + kappa) */
    double square = 0;
    for (int64_t k = 0; k < L->dimension; k++) {
        const double off = L->w[k] - p->center[k] / keep;
        square += off * off;
    }
    const double before = p->distance;
    p->distance = sqrt(square);
    p->passes++;
    if (p->distance > (1 + GROWTH) * before && p->passes < MOST_PASSES) return 0;
    for (int64_t k = 0; k < L->dimension; k++) {
        const double change = relaxation * (keep * L->w[k] - p->center[k]);
        if (change == 0.0) continue;
        p->center[k] += change;
        fgi_learn_shift(L, k, change);
    }
    p->distance = 0;
    p->passes = 0;
    return 1;
}

void fgi_proximal_rescale(fgi_learner *L, double share) {
    fgi_proximal *p = &L->proximal;
    const double factor = share / p->share, keep = (1.0 - share) / (1.0 - p->share);
    p->share = share;
    for (int64_t k = 0; k < L->dimension; k++) {
        const double center = keep * p->center[k], change = center + factor * (L->w[k] - p->center[k]) - L->w[k];
        p->center[k] = center;
        if (change != 0.0) fgi_learn_shift(L, k, change);
    }
}

double *fgi_learn_center(fgi_learner *L) { return L->proximal.center; }

void fgi_learn_center_state(const fgi_learner *L, double *distance, int32_t *passes) {
    *distance = L->proximal.distance;
    *passes = L->proximal.passes;
}

void fgi_learn_set_center_state(fgi_learner *L, double distance, int32_t passes) {
    L->proximal.distance = distance;
    L->proximal.passes = passes;
}
