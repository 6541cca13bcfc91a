/* learn/working.c - working sets: the answers kept per example, and their way in and out of checkpoints. */
#include <string.h>
#include "learn/learn.h"

#ifdef FGI_CHECKED
static void check(const fgi_learner *L, int32_t i) {
    const fgi_working_set *set = &L->sets[i];
    fgi_assert(set->count >= 0 && set->count <= set->capacity);
    for (int32_t k = 0; k < set->count; k++) {
        const fgi_answer *a = set->answers[k];
        fgi_assert(a && a->length >= 0 && a->alpha >= 0 && a->alpha < INFINITY && isfinite(a->loss));
        for (int32_t l = 0; l < k; l++)
            fgi_assert(set->answers[l]->length != a->length ||
                memcmp(set->answers[l]->labels, a->labels, (size_t)a->length * sizeof *a->labels) != 0);
    }
}
#endif

fgi_answer *fgi_learn_find_answer(fgi_learner *L, int32_t i, const int32_t *labels, int32_t length) {
    const fgi_working_set *set = &L->sets[i];
    fgi_assert(i >= 0 && i < L->data.n_examples && length >= 0);
    fgi_audit_rarely(check(L, i));
    for (int32_t k = set->count - 1; k >= 0; k--) {
        fgi_answer *a = set->answers[k];
        if (a->length == length && memcmp(a->labels, labels, (size_t)length * sizeof *labels) == 0) return a;
    }
    return NULL;
}

fgi_answer *fgi_learn_add_answer(fgi_learner *L, int32_t i, const int32_t *labels, int32_t length, double loss) {
    fgi_working_set *set = &L->sets[i];
    fgi_assert(i >= 0 && i < L->data.n_examples && set->count <= set->capacity);
    if (set->count == set->capacity) {
        int32_t capacity = set->capacity ? 2 * set->capacity : 4;
        if (!fgi_resize(&set->answers, capacity, sizeof *set->answers)) return NULL;
        set->capacity = capacity;
    }
    fgi_answer *a = malloc(sizeof *a + (size_t)length * sizeof *labels);
    if (!a) return NULL;
    a->alpha = 0;
    a->loss = loss;
    a->length = length;
    memcpy(a->labels, labels, (size_t)length * sizeof *labels);
    return set->answers[set->count++] = a;
}

void fgi_learn_drop_answer(fgi_learner *L, int32_t i, int32_t position) {
    fgi_working_set *set = &L->sets[i];
    fgi_assert(position >= 0 && position < set->count);
    free(set->answers[position]);
    set->count--; /* the order is kept: resumed runs visit answers as the first run did */
    memmove(
        set->answers + position, set->answers + position + 1, (size_t)(set->count - position) * sizeof *set->answers);
}

void fgi_learn_export_size(const fgi_learner *L, int64_t *n_answers, int64_t *n_labels) {
    *n_answers = *n_labels = 0;
    for (int64_t i = 0; i < L->data.n_examples; i++)
        for (int32_t k = 0; k < L->sets[i].count; k++) *n_answers += 1, *n_labels += L->sets[i].answers[k]->length;
}

void fgi_learn_export(const fgi_learner *L, int32_t *example, int32_t *length, double *alpha, double *loss,
    int32_t *labels, double *gaps, double *block_loss) {
    for (int64_t i = 0; i < L->data.n_examples; i++)
        for (int32_t k = 0; k < L->sets[i].count; k++) {
            const fgi_answer *a = L->sets[i].answers[k];
            *example++ = (int32_t)i;
            *length++ = a->length;
            *alpha++ = a->alpha;
            *loss++ = a->loss;
            memcpy(labels, a->labels, (size_t)a->length * sizeof *labels);
            labels += a->length;
        }
    memcpy(gaps, L->gaps, (size_t)L->data.n_examples * sizeof *gaps);
    memcpy(block_loss, L->dual_loss, (size_t)L->data.n_examples * sizeof *block_loss);
}

fgi_rc fgi_learn_import(fgi_learner *L, int64_t n_answers, const int32_t *example, const int32_t *length,
    const double *alpha, const double *loss, const int32_t *labels, const double *gaps, const double *block_loss,
    fgi_error *err) {
    for (int64_t k = 0; k < n_answers; k++) {
        fgi_rc rc = fgi_learn_check_answer(L, example[k], labels, length[k], err);
        if (rc) return rc;
        fgi_answer *a = fgi_learn_add_answer(L, example[k], labels, length[k], loss[k]);
        if (!a) return fgi_no_memory(err);
        a->alpha = alpha[k];
        labels += length[k];
    }
    memcpy(L->gaps, gaps, (size_t)L->data.n_examples * sizeof *gaps);
    memcpy(L->dual_loss, block_loss, (size_t)L->data.n_examples * sizeof *block_loss);
    return FGI_OK;
}
