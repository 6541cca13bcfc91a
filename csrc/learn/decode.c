/* learn/decode.c - structured oracles: scores of the tokens, which an inner-product source gives (oracle/products.c),
 * max-sum over forests; batches in parallel. */
#include <string.h>
#include "base/kernels.h"
#include "learn/learn.h"
#include "oracle/oracle.h"

fgi_rc fgi_learn_scratch_init(fgi_learner *L, fgi_learn_scratch *scratch) {
    const fgi_learn_data *d = &L->data;
    fgi_arena *arena = &L->arena;
    const int64_t k = d->n_labels;
    const int labels = d->kind == FGI_LEARN_LABELS, choices = d->kind == FGI_LEARN_CHOICES;
    const int edges = labels && d->edges != FGI_EDGES_NONE;
    int64_t cells, scores = L->max_rows;
    if (!choices && !fgi_mul(L->max_tokens, k, &scores)) return FGI_NO_MEMORY;
    scratch->scores = fgi_take(arena, scores, double);
    scratch->best = fgi_take(arena, k + 1, double);
    if (fgi_learn_prunes(d)) scratch->rows = fgi_take(arena, k, int32_t);
    if (edges && (d->edge_row || d->choice_begin)) {
        if (!fgi_mul(k, k, &cells)) return FGI_NO_MEMORY;
        scratch->table = fgi_take(arena, cells, double);
    }
    if (d->kind == FGI_LEARN_SETS) scratch->on = fgi_take(arena, 2 * k, uint8_t);
    if (choices && d->projective) {
        const int64_t n = L->max_tokens + 1;
        if (!fgi_mul(n, 4 * n, &cells)) return FGI_NO_MEMORY;
        scratch->span = fgi_take(arena, cells, double);
        scratch->span_back = fgi_take(arena, cells, int32_t);
    }
    if (arena->failed) return FGI_NO_MEMORY;
    const int asks = labels && !edges && !d->choice_begin; /* token by token */
    if (asks && !(scratch->oracle = fgi_oracle_scratch_create((int32_t)k, 1))) return FGI_NO_MEMORY;
    /* Alternatives have features of their own and share their weights: one label each. */
    return fgi_products_create_dense(choices ? 1 : (int32_t)k, d->n_features, NULL,
        choices ? FGI_ROWS_BY_LABEL : FGI_ROWS_BY_FEATURE, &scratch->products, NULL);
}

void fgi_learn_scratch_clear(fgi_learn_scratch *scratch) {
    fgi_oracle_scratch_free(scratch->oracle);
    fgi_products_free(scratch->products);
}

/* ---- scores --------------------------------------------------------------------------------------------------- */

/* Whose weights the source has from now on. */
static void use_weights(const fgi_learn_vector *w, fgi_learn_scratch *scratch) {
    if (w->dense) fgi_products_borrow(scratch->products, w->dense);
    else fgi_products_borrow_rows(scratch->products, &(fgi_weight_rows){w->begin, w->end, w->label, w->value});
}

static fgi_features features_of(const fgi_learn_data *d, int64_t row) {
    const int64_t b = d->row_begin[row];
    return (fgi_features){
        .n = d->row_begin[row + 1] - b, .index = d->feature + b, .values = d->value ? d->value + b : NULL};
}

static void label_scores(
    const fgi_learner *L, const fgi_products *products, double loss_factor, int64_t token, double *out) {
    const fgi_learn_data *d = &L->data;
    const int32_t *list;
    int32_t n = fgi_learn_allowed(L, token, &list), z = d->truth[token];
    fgi_features x = features_of(d, token);
    x.labels = list, x.n_labels = n;
    fgi_products_scores(products, &x, out);
    if (loss_factor == 0.0) return;
    double weight = loss_factor * (d->token_weight ? d->token_weight[token] : 1.0);
    for (int32_t c = 0; c < n; c++) {
        int32_t y = list ? list[c] : c;
        if (y != z) out[c] += d->cost ? weight * d->cost[(int64_t)z * d->n_labels + y] : weight;
    }
}

static void set_scores(const fgi_learner *L, const fgi_products *products, double loss_factor, int32_t i, double *out) {
    const fgi_learn_data *d = &L->data;
    const fgi_features x = features_of(d, i);
    fgi_products_scores(products, &x, out);
    for (int32_t l = 0; l < d->n_labels; l++)
        out[l] += loss_factor * fgi_learn_spurious(d, i, l);              /* a label that is on may be an error */
    for (int64_t a = d->truth_begin[i]; a < d->truth_begin[i + 1]; a++) { /* one of the truth avoids one */
        const int32_t l = d->truth[a];
        out[l] -= loss_factor * (fgi_learn_spurious(d, i, l) + fgi_learn_missed(d, i, l));
    }
}

static void choice_scores(
    const fgi_learner *L, const fgi_products *products, double loss_factor, int64_t token, double *out) {
    const fgi_learn_data *d = &L->data;
    int64_t b = d->choice_begin[token], n = d->choice_begin[token + 1] - b;
    double weight = loss_factor * (d->token_weight ? d->token_weight[token] : 1.0);
    for (int64_t c = 0; c < n; c++) {
        const fgi_features x = features_of(d, b + c);
        fgi_products_scores(products, &x, out + c);
        out[c] += c == d->truth[token] ? 0.0 : weight;
    }
}

/* Scores of all tokens of example i: rows of K for labels (candidates packed to the left), packed rows for choices. For
 * sets the score of a label is the difference between on and off, loss included; the constant loss of the true set is
 * left out. */
void fgi_learn_fill_scores(
    const fgi_learner *L, const fgi_learn_vector *w, double loss_factor, int32_t i, fgi_learn_scratch *scratch) {
    const fgi_learn_data *d = &L->data;
    int64_t first = d->token_begin[i], end = d->token_begin[i + 1];
    double *out = scratch->scores;
    use_weights(w, scratch);
    for (int64_t t = first; t < end; t++) {
        const int32_t *list;
        if (d->kind == FGI_LEARN_LABELS) {
            label_scores(L, scratch->products, loss_factor, t, out);
            scratch->touched += fgi_learn_allowed(L, t, &list);
            out += d->n_labels;
        } else if (d->kind == FGI_LEARN_SETS) {
            set_scores(L, scratch->products, loss_factor, i, out);
            scratch->touched += d->n_labels;
        } else {
            choice_scores(L, scratch->products, loss_factor, t, out);
            scratch->touched += d->choice_begin[t + 1] - d->choice_begin[t];
            out += d->choice_begin[t + 1] - d->choice_begin[t];
        }
    }
}

/* The best label of a token that has no edges: one question about inner products. The loss of all labels but the true
 * one is where their scores start; a message takes it off the true one. */
static double ask_token(
    const fgi_learner *L, double loss_factor, int64_t token, fgi_learn_scratch *scratch, int32_t *answer) {
    const fgi_learn_data *d = &L->data;
    const int32_t z = d->truth[token];
    const double weight = loss_factor * (d->token_weight ? d->token_weight[token] : 1.0);
    fgi_features x = features_of(d, token);
    double off = weight;
    if (d->cost && weight != 0.0) {
        x.start = d->cost + (int64_t)z * d->n_labels, x.start_weight = weight;
        off *= x.start[z];
    } else {
        x.constant = weight;
    }
    x.scores = scratch->scores;
    const fgi_message truth = {off != 0.0, &z, &off};
    const fgi_oracle_query q = {
        .source = fgi_products_source(scratch->products), .messages = &truth, .hint = -1, .x = &x};
    fgi_argmax best = {0, 0};
    fgi_oracle_answer(&q, scratch->oracle, &best); /* a scan into scratch->scores allocates nothing: it cannot fail */
    scratch->touched += d->n_labels;
    *answer = best.state < 0 ? 0 : (int32_t)best.state;
    return best.value;
}

static int32_t decode_one(const fgi_learner *L, const fgi_learn_vector *w, double loss_factor, int32_t i,
    fgi_learn_scratch *scratch, int32_t *answer, double *value) {
    const fgi_learn_data *d = &L->data;
    int64_t tokens = fgi_learn_tokens(L, i);
    double total = 0;
    if (scratch->oracle) {
        use_weights(w, scratch);
        for (int64_t t = tokens - 1; t >= 0; t--)
            total += ask_token(L, loss_factor, d->token_begin[i] + t, scratch, &answer[t]);
        if (value) *value = total;
        return (int32_t)tokens;
    }
    fgi_learn_fill_scores(L, w, loss_factor, i, scratch);
    if (d->kind == FGI_LEARN_LABELS) total = fgi_learn_decode_forest(L, w->pairs, i, scratch, answer);
    else if (d->kind == FGI_LEARN_SETS) {
        int32_t n;
        total = fgi_learn_decode_set(L, w->pairs, scratch, answer, &n);
        if (value) *value = total + loss_factor * fgi_learn_missed_all(d, i);
        return n;
    } else if (d->projective) total = fgi_learn_parse(L, i, scratch, answer);
    else {
        const double *row = scratch->scores;
        for (int64_t t = 0; t < tokens; t++) {
            int64_t token = d->token_begin[i] + t;
            int32_t n = (int32_t)(d->choice_begin[token + 1] - d->choice_begin[token]);
            answer[t] = (int32_t)fgi_argmax_of(row, n);
            total += row[answer[t]];
            row += n;
        }
    }
    if (value) *value = total;
    return (int32_t)tokens;
}

/* ---- batches -------------------------------------------------------------------------------------------------- */

static int64_t answer_room(const fgi_learner *L, int32_t i) {
    return L->data.kind == FGI_LEARN_SETS ? L->data.n_labels : fgi_learn_tokens(L, i);
}

int64_t fgi_learn_answer_size(const fgi_learner *L, const int32_t *examples, int64_t m) {
    int64_t total = 0;
    for (int64_t k = 0; k < m; k++) total += answer_room(L, examples[k]);
    return total;
}

typedef struct batch {
    const fgi_learner *L;
    const fgi_learn_vector *w;
    double loss_factor;
    const int32_t *examples;
    int32_t *answers;
    int64_t *end; /* first the room before each answer, then (after compaction) the ends */
    double *value;
} batch;

static void decode_range(void *context, int64_t begin, int64_t end, int worker) {
    const batch *b = context;
    for (int64_t k = begin; k < end; k++) {
        int64_t at = b->end[k];
        b->end[k] = at +
            decode_one(b->L, b->w, b->loss_factor, b->examples[k], &b->L->scratch[worker], b->answers + at,
                b->value ? &b->value[k] : NULL);
    }
}

fgi_rc fgi_learn_decode_batch(fgi_learner *L, const fgi_learn_vector *w, double loss_factor, const int32_t *examples,
    int64_t m, int32_t *answers, int64_t *answer_end, double *value, fgi_error *err) {
    if (!L->decodes && L->data.kind != FGI_LEARN_SETS)
        return fgi_fail(err, FGI_UNSUPPORTED, -1, "this graph has cycles: it is decoded outside the learning core");
    for (int64_t k = 0; k < m; k++)
        if (examples[k] < 0 || examples[k] >= L->data.n_examples)
            return fgi_fail(err, FGI_BAD_ARGUMENT, k, "there is no example %d", (int)examples[k]);
    batch b = {L, w, loss_factor, examples, answers, answer_end, value};
    for (int64_t k = 0, at = 0; k < m; k++) {
        answer_end[k] = at;
        at += answer_room(L, examples[k]);
    }
    fgi_pool_run(L->pool, m, 8, decode_range, &b);
    L->state.oracle_calls += m;
    if (L->data.kind == FGI_LEARN_SETS) { /* close the gaps behind short sets */
        int64_t room = 0, at = 0;
        for (int64_t k = 0; k < m; k++) {
            int64_t n = answer_end[k] - room;
            memmove(answers + at, answers + room, (size_t)n * sizeof *answers);
            answer_end[k] = at += n;
            room += L->data.n_labels;
        }
    }
    return FGI_OK;
}

fgi_rc fgi_learn_decode(fgi_learner *L, const fgi_learn_vector *w, double loss_factor, const int32_t *examples,
    int64_t m, int32_t *answers, int64_t *answer_end, double *value, fgi_error *err) {
    fgi_learn_bound_rows(L, w->pairs);
    fgi_rc rc = fgi_learn_decode_batch(L, w, loss_factor, examples, m, answers, answer_end, value, err);
    L->bounded = 0;
    return rc;
}

/* <w, phi(truth)> from the scores of its labels, and the pairs among them. */
static double score_true_set(const fgi_learner *L, const double *pairs, int32_t i, const double *scores) {
    const fgi_learn_data *d = &L->data;
    double sum = 0;
    for (int64_t a = d->truth_begin[i]; a < d->truth_begin[i + 1]; a++) {
        sum += scores[d->truth[a]];
        for (int64_t b = a + 1; d->edges != FGI_EDGES_NONE && b < d->truth_begin[i + 1]; b++)
            sum += pairs[(int64_t)d->truth[a] * d->n_labels + d->truth[b]];
    }
    return sum;
}

/* The same from the scores of its tokens, and its edges. */
static double score_true_tokens(const fgi_learner *L, const double *pairs, int32_t i, fgi_learn_scratch *scratch) {
    const fgi_learn_data *d = &L->data;
    const int64_t begin = d->token_begin[i];
    const double *row = scratch->scores;
    double sum = 0;
    for (int64_t t = begin; t < d->token_begin[i + 1]; t++) {
        const int32_t *list = NULL, z = d->truth[t];
        const int labels = d->kind == FGI_LEARN_LABELS;
        const int32_t n = labels ? fgi_learn_allowed(L, t, &list) : 0;
        sum += row[list ? fgi_place_of(list, n, z) : z];
        row += labels ? d->n_labels : d->choice_begin[t + 1] - d->choice_begin[t];
    }
    int64_t first, u, v;
    for (int64_t e = 0, edges = fgi_learn_count_edges(d, i, &first); e < edges; e++) {
        fgi_learn_ends(d, first, e, &u, &v);
        const int64_t state = (int64_t)d->truth[begin + u] * d->n_labels + d->truth[begin + v];
        sum += fgi_learn_edge_table(L, pairs, first + e, scratch)[state];
    }
    return sum;
}

fgi_rc fgi_learn_score(fgi_learner *L, const fgi_learn_vector *w, int32_t example, const int32_t *answer,
    int32_t length, double *score, double *loss, fgi_error *err) {
    fgi_rc rc = fgi_learn_check_answer(L, example, answer, length, err);
    if (rc) return rc;
    *loss = fgi_learn_loss(L, example, answer, length);
    fgi_learn_term term = {answer, length, 1.0};
    if ((rc = fgi_learn_psi(L, example, &term, 1))) return fgi_no_memory(err);
    const double against = fgi_learn_dot(L, w); /* <w, phi(truth) - phi(answer)> */
    fgi_learn_scratch *scratch = &L->scratch[0];
    fgi_learn_fill_scores(L, w, 0.0, example, scratch);
    const double truth = L->data.kind == FGI_LEARN_SETS ? score_true_set(L, w->pairs, example, scratch->scores)
                                                        : score_true_tokens(L, w->pairs, example, scratch);
    *score = truth - against;
    return FGI_OK;
}

fgi_rc fgi_learn_hinges(fgi_learner *L, const fgi_learn_vector *w, const int32_t *examples, int64_t m,
    const int32_t *answers, const int64_t *answer_end, double *hinge, fgi_error *err) {
    for (int64_t k = 0, at = 0; k < m; at = answer_end[k++]) {
        fgi_learn_term term = {answers + at, (int32_t)(answer_end[k] - at), 1.0};
        fgi_rc rc = fgi_learn_check_answer(L, examples[k], term.labels, term.length, err);
        if (rc) return rc;
        hinge[k] = 0;
        if (fgi_learn_is_truth(L, examples[k], term.labels, term.length)) continue;
        if ((rc = fgi_learn_psi(L, examples[k], &term, 1))) return fgi_no_memory(err);
        hinge[k] = fgi_learn_loss(L, examples[k], term.labels, term.length) - fgi_learn_dot(L, w);
    }
    return FGI_OK;
}

fgi_rc fgi_learn_add_psi(fgi_learner *L, const int32_t *examples, int64_t m, const int32_t *answers,
    const int64_t *answer_end, double weight, double *plane, double *loss, fgi_error *err) {
    fgi_sum total = {0};
    for (int64_t k = 0, at = 0; k < m; k++) {
        fgi_learn_term term = {answers + at, (int32_t)(answer_end[k] - at), weight};
        fgi_rc rc = fgi_learn_check_answer(L, examples[k], term.labels, term.length, err);
        if (rc) return rc;
        at = answer_end[k];
        fgi_sum_add(&total, weight * fgi_learn_loss(L, examples[k], term.labels, term.length));
        if (!plane || fgi_learn_is_truth(L, examples[k], term.labels, term.length)) continue;
        if ((rc = fgi_learn_psi(L, examples[k], &term, 1))) return fgi_no_memory(err);
        for (int64_t j = 0; j < L->n_index; j++) plane[L->index[j]] += L->compact[j];
    }
    *loss += fgi_sum_value(&total);
    return FGI_OK;
}

fgi_rc fgi_learn_token_scores(
    fgi_learner *L, const fgi_learn_vector *w, int32_t example, double loss_factor, double *scores, fgi_error *err) {
    if (example < 0 || example >= L->data.n_examples)
        return fgi_fail(err, FGI_BAD_ARGUMENT, example, "there is no example %d", (int)example);
    fgi_learn_fill_scores(L, w, loss_factor, example, &L->scratch[0]);
    int64_t first = L->data.token_begin[example], tokens = fgi_learn_tokens(L, example);
    int64_t n = L->data.kind == FGI_LEARN_CHOICES ? L->data.choice_begin[first + tokens] - L->data.choice_begin[first]
                                                  : tokens * L->data.n_labels;
    memcpy(scores, L->scratch[0].scores, (size_t)n * sizeof(double));
    return FGI_OK;
}
