/* learn/passes.c - passes over examples: answers of one fixed batch are found in parallel at the same w, then the
 * updates run one after the other, each with its own exact step at the current w. So the result depends on the batch,
 * not on the threads. */
#include "learn/learn.h"

/* Factor on the loss with which a method decodes under its stored vector. */
static double loss_factor(const fgi_learner *L, const fgi_learn_settings *settings) {
    if (settings->method == FGI_LEARN_PERCEPTRON) return 0.0;
    if (settings->method != FGI_LEARN_SSG) return 1.0;
    /* argmax of (n C / t) <v, phi> + loss: v is stored, so the loss is divided by the scale instead */
    return L->state.steps == 0 ? 1.0 : (double)L->state.steps / ((double)L->data.n_examples * settings->C);
}

static fgi_rc check_settings(const fgi_learn_settings *settings, fgi_error *err) {
    if (settings->method < FGI_LEARN_BCFW || settings->method > FGI_LEARN_SSG)
        return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "unknown learning method");
    if (!(settings->C > 0) || !isfinite(settings->C)) return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "C must be positive");
    if (settings->averaging < FGI_MEAN_NONE || settings->averaging > FGI_MEAN_SUFFIX)
        return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "unknown average");
    if (settings->batch < 1 || settings->max_answers < 1)
        return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "batch and max_answers must be at least 1");
    return FGI_OK;
}

static fgi_rc update(
    fgi_learner *L, const fgi_learn_settings *settings, int32_t i, const int32_t *labels, int32_t length) {
    if (settings->method == FGI_LEARN_BCFW) return fgi_learn_update_bcfw(L, settings, i, labels, length);
    if (settings->method == FGI_LEARN_DCD) return fgi_learn_update_dcd(L, settings, i, labels, length);
    return labels ? fgi_learn_update_online(L, settings, i, labels, length) : FGI_OK;
}

static int reserve_batch(fgi_learner *L, int64_t room, int64_t count) {
    if (room > L->batch_room) {
        free(L->batch_labels);
        L->batch_labels = fgi_alloc(room, sizeof *L->batch_labels);
        L->batch_room = L->batch_labels ? room : 0;
    }
    if (count > L->batch_count) {
        free(L->batch_end);
        L->batch_end = fgi_alloc(count, sizeof *L->batch_end);
        L->batch_count = L->batch_end ? count : 0;
    }
    return L->batch_labels && L->batch_end;
}

fgi_rc fgi_learn_pass(fgi_learner *L, const fgi_learn_settings *settings, const int32_t *examples, int64_t m,
    int64_t *next, double deadline, fgi_error *err) {
    fgi_rc rc = check_settings(settings, err);
    if (!rc && L->row_bound &&
        !settings->brute_force) { /* a pass may come in many short calls: do not start over each time */
        if (!L->tracked) fgi_learn_bound_rows(L, fgi_learn_own(L).pairs);
        L->bounded = L->tracked = 1;
    }
    while (!rc && *next < m) {
        const int32_t *now = examples + *next;
        int64_t n = m - *next < settings->batch ? m - *next : settings->batch;
        for (int64_t k = 0; k < n; k++)
            if (now[k] < 0 || now[k] >= L->data.n_examples)
                rc = fgi_fail(err, FGI_BAD_ARGUMENT, k, "there is no example %d", (int)now[k]);
        if (!rc && !reserve_batch(L, fgi_learn_answer_size(L, now, n), n)) rc = fgi_no_memory(err);
        if (rc) break;
        const fgi_learn_vector w = fgi_learn_own(L);
        rc = fgi_learn_decode_batch(L, &w, loss_factor(L, settings), now, n, L->batch_labels, L->batch_end, NULL, err);
        for (int64_t k = 0, at = 0; !rc && k < n; at = L->batch_end[k++])
            if ((rc = update(L, settings, now[k], L->batch_labels + at, (int32_t)(L->batch_end[k] - at))))
                fgi_no_memory(err);
        *next += n;
        if (fgi_clock() >= deadline) break;
    }
    L->bounded = 0;
    return rc;
}

fgi_rc fgi_learn_cached_pass(fgi_learner *L, const fgi_learn_settings *settings, const int32_t *examples, int64_t m,
    int64_t *next, double deadline, fgi_error *err) {
    fgi_rc rc = check_settings(settings, err);
    fgi_meter meter = {FGI_LEARN_LOOK, 0, deadline};
    while (!rc && *next < m) {
        int32_t i = examples[*next];
        if (i < 0 || i >= L->data.n_examples)
            return fgi_fail(err, FGI_BAD_ARGUMENT, *next, "there is no example %d", (int)i);
        if ((rc = update(L, settings, i, NULL, 0))) return fgi_no_memory(err);
        ++*next;
        if (fgi_meter_spend(&meter, 1)) break;
    }
    return rc;
}

fgi_rc fgi_learn_offer(fgi_learner *L, const fgi_learn_settings *settings, int32_t example, const int32_t *answer,
    int32_t length, fgi_error *err) {
    fgi_rc rc = check_settings(settings, err);
    if (!rc) rc = fgi_learn_check_answer(L, example, answer, length, err);
    if (rc) return rc;
    rc = update(L, settings, example, answer, length);
    return rc ? fgi_no_memory(err) : FGI_OK;
}
