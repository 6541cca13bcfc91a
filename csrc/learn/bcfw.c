/* learn/bcfw.c - block-coordinate Frank-Wolfe (Lacoste-Julien et al. 2013, Algorithm 4), on the scale of
 * docs/mathematics.md, section 5.
 *
 * Block i is a simplex over the answers to example i; the truth holds what the kept answers leave. With
 *     w_i = C sum_y alpha_i(y) psi_i(y),   l_i = C sum_y alpha_i(y) loss_i(y),   dual = sum_i l_i - |w|^2 / 2,
 * the direction towards an answer y is d = C psi_i(y) - w_i, the block's duality gap g = C loss(y) - l_i - <w, d>, and
 * the best step min(1, g / |d|^2). Directions are made from the labels of the kept answers, so a block costs no memory
 * for w_i. */
#include "learn/learn.h"

/* Moves by `step` along the vector just made, with the bookkeeping that all steps share. */
static void move(fgi_learner *L, const fgi_learn_settings *settings, int32_t i, double step, double dot, double norm,
    double loss_change) {
    fgi_learn_apply(L, step, fgi_learn_mean_factor(L, settings));
    L->state.squared_norm += step * (2 * dot + step * norm);
    L->dual_loss[i] += loss_change;
    L->state.dual_loss += loss_change;
}

static void drop_empty(fgi_learner *L, int32_t i) {
    for (int32_t k = L->sets[i].count - 1; k >= 0; k--)
        if (L->sets[i].answers[k]->alpha <= 0) fgi_learn_drop_answer(L, i, k);
}

/* Makes room by giving the smallest share back to the truth: feasible, and w stays what the shares say. */
static fgi_rc shed_smallest(fgi_learner *L, const fgi_learn_settings *settings, int32_t i) {
    fgi_working_set *set = &L->sets[i];
    int32_t least = 0;
    for (int32_t k = 1; k < set->count; k++)
        if (set->answers[k]->alpha < set->answers[least]->alpha) least = k;
    fgi_answer *a = set->answers[least];
    fgi_learn_term term = {a->labels, a->length, -settings->C * a->alpha};
    fgi_rc rc = fgi_learn_psi_own(L, i, &term, 1);
    if (rc) return rc;
    double dot, norm;
    fgi_learn_products(L, &dot, &norm);
    move(L, settings, i, 1.0, dot, norm, -settings->C * a->alpha * a->loss);
    fgi_learn_drop_answer(L, i, least);
    return FGI_OK;
}

/* The step towards `labels` (NULL: the truth). */
static fgi_rc toward(
    fgi_learner *L, const fgi_learn_settings *settings, int32_t i, const int32_t *labels, int32_t length, double *gap) {
    fgi_working_set *set = &L->sets[i];
    fgi_learn_term few[32], *terms = set->count + 1 <= 32 ? few : fgi_alloc(set->count + 1, sizeof *terms);
    if (!terms) return FGI_NO_MEMORY;
    int32_t n = 0;
    for (int32_t k = 0; k < set->count; k++)
        terms[n++] =
            (fgi_learn_term){set->answers[k]->labels, set->answers[k]->length, -settings->C * set->answers[k]->alpha};
    if (labels) terms[n++] = (fgi_learn_term){labels, length, settings->C};
    fgi_rc rc = fgi_learn_psi_own(L, i, terms, n);
    if (terms != few) free(terms);
    if (rc) return rc;
    double dot, norm, loss = labels ? settings->C * fgi_learn_loss(L, i, labels, length) : 0.0;
    fgi_learn_products(L, &dot, &norm);
    *gap = loss - L->dual_loss[i] - dot;
    if (*gap <= 0 && !settings->predefined) return FGI_OK;
    const double n2 = 2.0 * (double)L->data.n_examples, before = (double)L->state.steps - 1;
    double step = settings->predefined ? n2 / (before + n2) : norm > *gap ? *gap / norm : 1.0;
    fgi_answer *a = labels ? fgi_learn_find_answer(L, i, labels, length) : NULL;
    if (labels && !a && !(a = fgi_learn_add_answer(L, i, labels, length, loss / settings->C))) return FGI_NO_MEMORY;
    move(L, settings, i, step, dot, norm, step * (loss - L->dual_loss[i]));
    for (int32_t k = 0; k < set->count; k++) set->answers[k]->alpha *= 1 - step;
    if (a) a->alpha += step;
    if (step == 1.0 || !a) drop_empty(L, i);
    return FGI_OK;
}

/* A pairwise step among the truth and the answers kept: weight moves from the worst that has any to the best. Unlike a
 * step towards one answer it can empty a corner without shrinking all others, which is what makes the tail of a run
 * fast. */
static fgi_rc exchange(fgi_learner *L, const fgi_learn_settings *settings, int32_t i) {
    fgi_working_set *set = &L->sets[i];
    double most = 0, least = INFINITY, left = 1; /* loss - <w, psi> is 0 for the truth */
    fgi_answer *best = NULL, *worst = NULL;
    for (int32_t k = 0; k < set->count; k++) {
        fgi_answer *a = set->answers[k];
        fgi_learn_term term = {a->labels, a->length, 1.0};
        fgi_rc rc = fgi_learn_psi_own(L, i, &term, 1);
        if (rc) return rc;
        double dot, norm;
        fgi_learn_products(L, &dot, &norm);
        left -= a->alpha;
        if (a->loss - dot > most) most = a->loss - dot, best = a;
        if (a->alpha > 0 && a->loss - dot < least) least = a->loss - dot, worst = a;
    }
    if (left > 0 && least > 0) least = 0, worst = NULL;
    double gain = settings->C * (most - least), limit = worst ? worst->alpha : left;
    if (best == worst || !(gain > 0) || limit <= 0) return FGI_OK;
    fgi_learn_term terms[2];
    int32_t n = 0;
    if (best) terms[n++] = (fgi_learn_term){best->labels, best->length, settings->C};
    if (worst) terms[n++] = (fgi_learn_term){worst->labels, worst->length, -settings->C};
    fgi_rc rc = fgi_learn_psi_own(L, i, terms, n);
    if (rc) return rc;
    double dot, norm;
    fgi_learn_products(L, &dot, &norm);
    double step = norm * limit > gain ? gain / norm : limit;
    move(L, settings, i, step, dot, norm, step * settings->C * ((best ? best->loss : 0) - (worst ? worst->loss : 0)));
    if (best) best->alpha += step;
    if (worst) worst->alpha = step == limit ? 0 : worst->alpha - step;
    drop_empty(L, i);
    return FGI_OK;
}

fgi_rc fgi_learn_update_bcfw(
    fgi_learner *L, const fgi_learn_settings *settings, int32_t i, const int32_t *labels, int32_t length) {
    fgi_rc rc = FGI_OK;
    double gap = 0;
    if (!labels) return L->sets[i].count ? exchange(L, settings, i) : FGI_OK; /* averages count oracle steps */
    fgi_learn_begin_step(L, settings);
    if (L->sets[i].count >= settings->max_answers && !fgi_learn_find_answer(L, i, labels, length) &&
        (rc = shed_smallest(L, settings, i)))
        return rc;
    int truth = fgi_learn_is_truth(L, i, labels, length);
    if (truth && L->sets[i].count == 0) {
        L->gaps[i] = 0;
        return FGI_OK;
    }
    rc = toward(L, settings, i, truth ? NULL : labels, length, &gap);
    L->gaps[i] = gap > 0 ? gap : 0;
    return rc;
}
