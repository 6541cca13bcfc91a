/* model/score.c - what a labeling is worth.
 *
 * Terms are summed in blocks and the blocks in their order, so that several threads find what one finds. */
#include "model/model.h"
#include "base/exact_sum.h"
#include "base/pool.h"
#include "base/util.h"

/* A sum under way. */
typedef struct partial {
    fgi_sum sum;
    double lost; /* the magnitudes of all corrections: what the last digits of the sum hang on */
} partial;

fgi_rc fgi_model_check_labels(const fgi_model *m, const int32_t *labels, fgi_error *err) {
    const fgi_structure *s = m->s;
    for (int64_t i = 0; i < s->n_vars; i++)
        if (labels[i] < 0 || labels[i] >= s->cards[i])
            return fgi_fail(err, FGI_BAD_ARGUMENT, i, "label %d of variable %lld is out of range 0..%d", labels[i],
                (long long)i, s->cards[i] - 1);
    return FGI_OK;
}

static inline void add(partial *p, double x) {
    const double carry = p->sum.carry;
    fgi_sum_add(&p->sum, x);
    p->lost += fabs(p->sum.carry - carry);
}

static void join(partial *to, const partial *block) {
    add(to, block->sum.sum);
    add(to, block->sum.carry);
    to->sum.forbidden |= block->sum.forbidden;
    to->lost += block->lost;
}

/* Terms are the unaries, then the factors. */
static partial sum_block(const fgi_model *m, const int32_t *labels, int64_t block) {
    const int64_t n_vars = m->s->n_vars, n = n_vars + m->s->n_factors, begin = block * FGI_TERMS,
                  end = begin + FGI_TERMS < n ? begin + FGI_TERMS : n;
    partial p = {{0}, 0};
    int64_t k = begin;
    for (; k < end && k < n_vars; k++) add(&p, fgi_unary(m, k)[labels[k]]);
    for (; k < end; k++) add(&p, fgi_factor_score(m, k - n_vars, labels));
    return p;
}

typedef struct job {
    const fgi_model *m;
    const int32_t *labels;
    partial *blocks;
} job;

static void sum_blocks(void *of, int64_t begin, int64_t end, int worker) {
    const job *j = of;
    (void)worker;
    for (int64_t k = begin; k < end; k++) j->blocks[k] = sum_block(j->m, j->labels, k);
}

static partial sum_of(const fgi_model *m, fgi_pool *pool, const int32_t *labels) {
    const int64_t n = (m->s->n_vars + m->s->n_factors + FGI_TERMS - 1) / FGI_TERMS;
    partial *blocks = pool && n > 1 ? fgi_alloc(n, sizeof *blocks) : NULL, all = {{0}, 0}; /* NULL: one thread */
    job j = {m, labels, blocks};
    if (blocks) fgi_pool_run(pool, n, 1, sum_blocks, &j);
    add(&all, m->s->constant);
    for (int64_t k = 0; k < n; k++) {
        const partial block = blocks ? blocks[k] : sum_block(m, labels, k);
        join(&all, &block);
    }
    for (int64_t k = 0; m->x && k < m->x->n; k++) add(&all, fgi_leftover_at(m->x, k, labels));
    free(blocks);
    return all;
}

/* The same sum, rounded once. All its terms are finite. */
static double exact_score(const fgi_model *m, const int32_t *labels) {
    const fgi_structure *s = m->s;
    fgi_exact_sum sum = {{0}, 0};
    fgi_exact_sum_add(&sum, s->constant);
    for (int64_t i = 0; i < s->n_vars; i++) fgi_exact_sum_add(&sum, fgi_unary(m, i)[labels[i]]);
    for (int64_t f = 0; f < s->n_factors; f++) fgi_exact_sum_add(&sum, fgi_factor_score(m, f, labels));
    for (int64_t k = 0; m->x && k < m->x->n; k++) fgi_exact_sum_add(&sum, fgi_leftover_at(m->x, k, labels));
    return fgi_exact_sum_value(&sum);
}

fgi_rc fgi_model_score_by(
    const fgi_model *m, fgi_pool *pool, const int32_t *labels, double *score, double *above, fgi_error *err) {
    const fgi_structure *s = m->s;
    fgi_rc rc = fgi_model_check_labels(m, labels, err);
    if (rc) return rc;
    const partial all = sum_of(m, pool, labels);
    *score = fgi_sum_value(&all.sum);
    /* The carry is rounded for each term and each block, by at most 2^-53 of what is lost: four times that. So the
     * score does not depend on the order of the terms, which conditioning changes. */
    const double n = (double)(s->n_vars + s->n_factors + (m->x ? m->x->n : 0) + 1);
    if (*score > -INFINITY && !fgi_sum_rounds_right(&all.sum, n * 0x1p-50 * all.lost)) *score = exact_score(m, labels);
    /* 0 is either exact or was summed exactly; the number after it would not be the same in another unit. */
    *above = all.lost == 0 || *score == 0 ? *score : nextafter(*score, INFINITY);
    return FGI_OK;
}

fgi_rc fgi_model_score_above(const fgi_model *m, const int32_t *labels, double *score, double *above, fgi_error *err) {
    return fgi_model_score_by(m, NULL, labels, score, above, err);
}

fgi_rc fgi_model_score(const fgi_model *m, const int32_t *labels, double *score, fgi_error *err) {
    double above;
    return fgi_model_score_above(m, labels, score, &above, err);
}

fgi_rc fgi_model_factor_scores(const fgi_model *m, const int32_t *labels, double *factor_scores, fgi_error *err) {
    fgi_rc rc = fgi_model_check_labels(m, labels, err);
    if (rc) return rc;
    for (int64_t f = 0; f < m->s->n_factors; f++) factor_scores[f] = fgi_factor_score(m, f, labels);
    return FGI_OK;
}
