/* learn/dcd.c - dual coordinate descent for the squared hinge (Chang, Yih 2013, Algorithms 1 to 3).
 *
 *     P(w) = 1/2 |w|^2 + C sum_i H_i(w)^2,     dual = sum alpha loss - |w|^2 / 2 - 1/(4C) sum_i (sum_y alpha_i(y))^2,
 *
 * alpha >= 0 without an equality, w = sum alpha psi. L->dual_loss[i] holds sum_y alpha_i(y) loss(y). */
#include "learn/learn.h"

static double total_alpha(const fgi_working_set *set) {
    double sum = 0;
    for (int32_t k = 0; k < set->count; k++) sum += set->answers[k]->alpha;
    return sum;
}

/* Algorithm 1 for one answer: the exact step of its alpha. */
static fgi_rc step_answer(fgi_learner *L, const fgi_learn_settings *settings, int32_t i, fgi_answer *a) {
    fgi_learn_term term = {a->labels, a->length, 1.0};
    fgi_rc rc = fgi_learn_psi_own(L, i, &term, 1);
    if (rc) return rc;
    double dot, norm, sum = total_alpha(&L->sets[i]);
    fgi_learn_products(L, &dot, &norm);
    double d = (a->loss - dot - sum / (2 * settings->C)) / (norm + 1 / (2 * settings->C));
    double now = a->alpha + d > 0 ? a->alpha + d : 0;
    d = now - a->alpha;
    if (d == 0) return FGI_OK;
    fgi_learn_apply(L, d, 0.0);
    L->state.squared_norm += d * (2 * dot + d * norm);
    L->state.dual_square += d * (2 * sum + d);
    L->dual_loss[i] += d * a->loss;
    L->state.dual_loss += d * a->loss;
    a->alpha = now;
    return FGI_OK;
}

fgi_rc fgi_learn_update_dcd(
    fgi_learner *L, const fgi_learn_settings *settings, int32_t i, const int32_t *labels, int32_t length) {
    fgi_working_set *set = &L->sets[i];
    fgi_rc rc = FGI_OK;
    L->state.steps++;
    if (labels && !fgi_learn_is_truth(L, i, labels, length)) {
        fgi_answer *a = fgi_learn_find_answer(L, i, labels, length);
        double loss = a ? a->loss : fgi_learn_loss(L, i, labels, length), dot, norm;
        fgi_learn_term term = {labels, length, 1.0};
        if ((rc = fgi_learn_psi_own(L, i, &term, 1))) return rc;
        fgi_learn_products(L, &dot, &norm);
        double violation = loss - dot - total_alpha(set) / (2 * settings->C);
        L->gaps[i] = violation > 0 ? violation : 0;
        if (!a && violation >= settings->threshold && !(a = fgi_learn_add_answer(L, i, labels, length, loss)))
            return FGI_NO_MEMORY;
        if (a && (rc = step_answer(L, settings, i, a))) return rc; /* the newest first: Theorem 1 needs it */
    } else if (labels) L->gaps[i] = 0;
    for (int32_t k = 0; k < set->count; k++)
        if ((rc = step_answer(L, settings, i, set->answers[k]))) return rc;
    for (int32_t k = set->count - 1; k >= 0; k--)
        if (set->answers[k]->alpha == 0) fgi_learn_drop_answer(L, i, k);
    return FGI_OK;
}
