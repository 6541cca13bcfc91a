/* learn/online.c - methods without dual variables: averaged perceptron, 1-best MIRA, stochastic subgradient.
 *
 * ssg has steps 1/t, so that w_t = (n C / t) v_t with v = sum of psi, which L->w stores. Averages: learn/means.c;
 * that of ssg weighted by t is 2 n C / (k (k + 1)) (k v - sum). */
#include "learn/learn.h"

fgi_rc fgi_learn_update_online(
    fgi_learner *L, const fgi_learn_settings *settings, int32_t i, const int32_t *labels, int32_t length) {
    fgi_learn_begin_step(L, settings);
    if (fgi_learn_is_truth(L, i, labels, length)) return FGI_OK;
    fgi_learn_term term = {labels, length, 1.0};
    fgi_rc rc = fgi_learn_psi_own(L, i, &term, 1);
    if (rc) return rc;
    double dot, norm, step = 1.0;
    fgi_learn_products(L, &dot, &norm);
    if (settings->method == FGI_LEARN_MIRA) {
        double violation = fgi_learn_loss(L, i, labels, length) - dot;
        if (violation <= 0 || norm == 0) return FGI_OK;
        step = violation / norm < settings->C ? violation / norm : settings->C;
    }
    fgi_learn_apply(L, step, fgi_learn_mean_factor(L, settings));
    L->state.squared_norm += step * (2 * dot + step * norm);
    return FGI_OK;
}
