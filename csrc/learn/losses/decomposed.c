/* learn/losses/decomposed.c - the loss from searches in blocks of the coordinates (Algorithm 11 of the work cited in
 * fginfer_losses.h).
 *
 * With z = sum_j z_j over B blocks, L(z) is the least (1/B) sum_j L(B (z_j + lambda_j)) over messages that add up to 0,
 * reached at lambda_j = z/B - z_j. A block's scores are known where its search found the label, and for the positives.
 * Every round, labels with large gradients in some block get messages: their scores in all blocks are computed, and
 * the messages move the share eta = 2 / (t + 2) of the way to the optimum. With `mix` the share that a label has gone,
 * block j sees it at
 *
 *     B (z_jk + lambda_jk) = (1 - mix_k) B z_jk + mix_k z_k
 *
 * so that after the first round it is at its full score everywhere.
 *
 * Blocks that are searched together know their scores of all labels found, not only of those that their own search has
 * found: more than the algorithm asks for, at no cost. */
#include <string.h>
#include "base/cutoff.h"
#include "learn/losses/losses.h"

enum { UNKNOWN = 0, FOUND = 1, PICKED = 2, CHOSEN = 3 }; /* what a label is; PICKED ones are about to be chosen */

typedef struct task {
    fgi_losses *l;
    const fgi_loss_batch *b;
    int64_t i;
    fgi_loss_scratch *w;
    int32_t blocks;
    int64_t span; /* labels found by a search, at most */
} task;

/* What the search of block j has found: labels, up to the first -1. */
static const int32_t *found_in(const task *t, int32_t j) {
    return t->l->found_labels + (t->l->s.together ? t->i : (int64_t)j * t->b->n + t->i) * t->span;
}

/* And block j's score of the k-th. */
static double found_score(const task *t, int32_t j, int64_t k) {
    if (t->l->s.together) return t->l->found_parts[(t->i * t->span + k) * t->blocks + j];
    return t->l->found_values[((int64_t)j * t->b->n + t->i) * t->span + k];
}

/* Where block j begins, as fgi_loss_blocks says. */
static int32_t cut(const task *t, int32_t j) { return (int32_t)((int64_t)t->b->d * j / t->blocks); }

/* Labels with messages are those in w->scored: positives first. Their scores by block: w->part. */
static int choose(task *t, int32_t label) {
    fgi_loss_scratch *w = t->w;
    fgi_scored *scored = &w->scored;
    const int64_t need = (scored->n + 1) * t->blocks;
    if (!fgi_scored_reserve(scored, scored->n + 1)) return 0;
    if (need > w->part_capacity) {
        if (!fgi_resize(&w->part, 2 * need, sizeof *w->part) || !fgi_resize(&w->mix, 2 * need, sizeof *w->mix))
            return 0;
        w->part_capacity = 2 * need;
    }
    double sum = 0;
    for (int32_t j = 0; j < t->blocks; j++) {
        float score;
        const int32_t from = cut(t, j), d = cut(t, j + 1) - from;
        t->l->kernels->dots(
            t->b->rows + (int64_t)label * t->b->d + from, 1, d, d, t->b->x + t->i * t->b->d + from, &score);
        w->part[scored->n * t->blocks + j] = score;
        sum += score;
    }
    w->mix[scored->n] = 0;
    w->touched++;
    fgi_scored_add(scored, label, sum);
    if (w->state[label] == UNKNOWN) w->found[w->n_found++] = label;
    w->state[label] = CHOSEN;
    return 1;
}

/* The labels that the searches found, and the sums of their scores. */
static int gather(task *t) {
    fgi_loss_scratch *w = t->w;
    const int64_t most = t->span * t->blocks + t->b->positive_begin[t->i + 1] - t->b->positive_begin[t->i];
    w->n_found = 0;
    if (most > w->found_capacity) {
        free(w->found);
        free(w->keys);
        w->found = fgi_alloc(most, sizeof *w->found);
        w->keys = fgi_alloc(most, sizeof *w->keys);
        w->found_capacity = w->found && w->keys ? most : 0;
        if (!w->found_capacity) return 0;
    }
    for (int32_t j = 0; j < t->blocks; j++) {
        const int32_t *found = found_in(t, j);
        for (int64_t k = 0; k < t->span && found[k] >= 0; k++) {
            const int32_t label = found[k];
            if (w->state[label] == UNKNOWN) {
                w->state[label] = FOUND;
                w->found[w->n_found++] = label;
            }
            w->sum[label] += (float)found_score(t, j, k);
        }
    }
    return 1;
}

/* Below this a label found has no gradient in block j: a margin's is projected to 0 at mu below the best negative. */
static double least_score(const task *t, int32_t j) {
    const fgi_loss_settings *set = &t->l->s;
    const int32_t *found = found_in(t, j);
    double top = -INFINITY;
    if (set->loss != FGI_LOSS_MARGIN || set->rest != FGI_REST_OMIT) return top;
    for (int64_t k = 0; k < t->span && found[k] >= 0; k++) /* chosen labels are somewhere else, with their messages */
        if (t->w->state[found[k]] != CHOSEN) top = fmax(top, found_score(t, j, k));
    top *= t->blocks;
    return top - set->mu * (1 + 1e-6) - 1e-6 * fabs(top);
}

/* Block j's scores, times B and with messages, and the gradient of its loss: chosen labels first, in their order. */
static double block_loss(task *t, int32_t j) {
    fgi_loss_scratch *w = t->w;
    const fgi_loss_settings *set = &t->l->s;
    const fgi_scored *scored = &w->scored;
    fgi_scored *o = &w->block;
    const int32_t *found = found_in(t, j);
    double last = INFINITY, least = least_score(t, j);
    o->n = 0;
    o->n_positives = scored->n_positives;
    if (!fgi_scored_reserve(o, scored->n + t->span)) {
        w->failed = 1;
        return 0;
    }
    for (int64_t k = 0; k < scored->n_positives; k++) o->weight[k] = scored->weight[k];
    for (int64_t k = 0; k < scored->n; k++)
        fgi_scored_add(
            o, scored->labels[k], (1 - w->mix[k]) * t->blocks * w->part[k * t->blocks + j] + w->mix[k] * scored->z[k]);
    for (int64_t k = 0; k < t->span && found[k] >= 0; k++) {
        const double z = t->blocks * found_score(t, j, k);
        if (z >= least && w->state[found[k]] != CHOSEN) fgi_scored_add(o, found[k], z);
        if (z < last) last = z;
    }
    o->n_rest = set->rest == FGI_REST_OMIT ? 0 : t->b->labels - o->n;
    o->rest = set->rest == FGI_REST_LAST ? last : 0;
    return fgi_loss_evaluate(set->loss, set->mu, o);
}

/* One round: large gradients get messages, and the messages move. */
static int pass_messages(task *t, int32_t round) {
    fgi_loss_scratch *w = t->w;
    const int64_t before = w->scored.n;
    const float eta = 2.0f / (float)(round + 2);
    int ok = 1;
    for (int32_t j = 0; ok && j < t->blocks; j++) {
        block_loss(t, j);
        for (int64_t k = before; ok && k < w->block.n; k++) /* chosen in this round by another block: again */
            if (fabs(w->block.g[k]) > t->l->s.threshold && w->state[w->block.labels[k]] != CHOSEN)
                ok = choose(t, w->block.labels[k]);
    }
    for (int64_t k = 0; ok && k < w->scored.n; k++) w->mix[k] += eta * (1 - w->mix[k]);
    return ok;
}

/* Rows lie anywhere: the memory is asked for them beforehand. */
static void prefetch(const task *t, int32_t label) {
    enum { LINE = 16 }; /* floats of a cache line */
    const float *row = t->b->rows + (int64_t)label * t->b->d;
    for (int32_t at = 0; at < t->b->d; at += LINE) __builtin_prefetch(row + at);
}

/* The labels with the largest sums of scores found: where the rounds would lead, were there many. */
static int choose_sums(task *t) {
    fgi_loss_scratch *w = t->w;
    int64_t n = 0;
    int ok = 1;
    for (int64_t k = 0; k < w->n_found; k++)
        if (w->state[w->found[k]] == FOUND) w->keys[n++] = fgi_cutoff_key(w->sum[w->found[k]]);
    fgi_cutoff cutoff = fgi_cutoff_of(w->keys, n, t->l->s.keep);
    for (int64_t k = 0; k < w->n_found; k++) {
        const int32_t label = w->found[k];
        if (w->state[label] != FOUND || !fgi_cutoff_takes(&cutoff, w->sum[label])) continue;
        w->state[label] = PICKED;
        prefetch(t, label);
    }
    for (int64_t k = 0; ok && k < w->n_found; k++) {
        if (w->state[w->found[k]] != PICKED) continue;
        ok = choose(t, w->found[k]);
        if (ok) w->mix[w->scored.n - 1] = 1;
    }
    return ok;
}

/* The mean of the blocks' losses and gradients; labels by first appearance. Uses w->sum for the places of labels. */
static double mean_of_blocks(task *t) {
    fgi_loss_scratch *w = t->w;
    fgi_scored *scored = &w->scored;
    const int64_t chosen = scored->n;
    double value = 0, rest = 0;
    double *total = fgi_calloc(chosen + w->n_found, sizeof *total);
    if (!total || !fgi_scored_reserve(&w->block, chosen + w->n_found)) {
        free(total);
        w->failed = 1;
        return 0;
    }
    for (int64_t k = 0, next = chosen; k < w->n_found; k++)
        if (w->state[w->found[k]] == FOUND) w->sum[w->found[k]] = (float)next++; /* exact: fewer than 2^24 */
    for (int32_t j = 0; j < t->blocks; j++) {
        value += block_loss(t, j) / t->blocks;
        rest += w->block.rest_g / t->blocks;
        for (int64_t k = 0; k < w->block.n; k++)
            total[k < chosen ? k : (int64_t)w->sum[w->block.labels[k]]] += w->block.g[k] / t->blocks;
    }
    if (!fgi_scored_reserve(scored, chosen + w->n_found)) w->failed = 1;
    for (int64_t k = 0; !w->failed && k < w->n_found; k++)
        if (w->state[w->found[k]] == FOUND) fgi_scored_add(scored, w->found[k], 0);
    for (int64_t k = 0; !w->failed && k < scored->n; k++) scored->g[k] = total[k];
    scored->rest_g = rest;
    free(total);
    return value;
}

static int32_t claim_of(const task *t) {
    const fgi_loss_settings *settings = &t->l->s;
    const int64_t negatives = t->b->labels - t->w->scored.n_positives;
    if (settings->joined) {
        if (t->w->scored.n == t->b->labels) return FGI_VALUE_EXACT;
        return settings->rest == FGI_REST_OMIT ? FGI_VALUE_LOWER : FGI_VALUE_NEITHER;
    }
    return settings->want >= negatives ? FGI_VALUE_UPPER : FGI_VALUE_NEITHER; /* complete block scores */
}

fgi_loss_answer fgi_loss_decomposed(fgi_losses *l, const fgi_loss_batch *b, int64_t i, fgi_loss_scratch *w) {
    task t = {.l = l, .b = b, .i = i, .w = w, .blocks = l->s.blocks, .span = l->s.want};
    if (l->s.together) t.span = fgi_search_parts_most(t.blocks, l->s.want, b->labels);
    fgi_loss_answer a = {0, FGI_VALUE_NEITHER};
    int ok = gather(&t);
    const int64_t positives = w->scored.n_positives;
    w->scored.n = 0;
    for (int64_t p = 0; ok && p < positives; p++) ok = choose(&t, b->positives[b->positive_begin[i] + p]);
    for (int32_t round = 0; ok && round < l->s.rounds; round++) ok = pass_messages(&t, round);
    if (ok) ok = choose_sums(&t);
    if (ok) {
        a.claim = claim_of(&t);
        if (l->s.joined) {
            fgi_scored *scored = &w->scored;
            double last = INFINITY;
            for (int64_t k = positives; k < scored->n; k++) last = scored->z[k] < last ? scored->z[k] : last;
            fgi_scored_rest(l, b, i, last, w);
            a.value = fgi_loss_evaluate(l->s.loss, l->s.mu, scored);
        } else {
            a.value = mean_of_blocks(&t);
        }
    } else {
        w->failed = 1;
        w->scored.n = 0;
    }
    for (int64_t k = 0; k < w->n_found; k++) {
        w->sum[w->found[k]] = 0;
        w->state[w->found[k]] = UNKNOWN;
    }
    return a;
}
