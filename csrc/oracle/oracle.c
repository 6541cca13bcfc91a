/* oracle/oracle.c - the oracle interface: dispatch, scratch, and the dense scan that every other oracle must agree
 * with. */
#include "oracle/internal.h"
#include "base/util.h"

/* Below this many entries a scan is as fast as any search. */
enum { SCAN_BELOW = 200 };

/* ---- scratch ------------------------------------------------------------------------------------------------ */

fgi_oracle_scratch *fgi_oracle_scratch_create(int32_t max_card, int32_t max_arity) {
    fgi_oracle_scratch *w = fgi_calloc(1, sizeof *w);
    if (!w) return NULL;
    if (max_arity < 2) max_arity = 2;
    if (max_card < 1) max_card = 1;
    w->max_card = max_card;
    w->max_arity = max_arity;
    w->dense = fgi_calloc((int64_t)max_card * max_arity, sizeof(double));
    w->mark = fgi_calloc((int64_t)max_card * max_arity, sizeof *w->mark);
    w->marked = fgi_alloc((int64_t)max_card * max_arity, sizeof(double));
    w->bound = fgi_alloc((int64_t)max_card * max_arity, sizeof(double));
    w->labels = fgi_alloc((int64_t)max_card * 2, sizeof(int32_t));
    for (int k = 0; k < 2; k++) w->kept[k] = fgi_alloc(max_card, sizeof(fgi_ranked));
    if (w->dense && w->mark && w->marked && w->bound && w->labels && w->kept[0] && w->kept[1]) return w;
    fgi_oracle_scratch_free(w);
    return NULL;
}

void fgi_oracle_scratch_free(fgi_oracle_scratch *w) {
    if (!w) return;
    free(w->dense);
    free(w->mark);
    free(w->marked);
    free(w->bound);
    free(w->labels);
    for (int k = 0; k < 2; k++) free(w->kept[k]);
    for (int k = 0; k < 3; k++) free(w->frontier[k]);
    free(w);
}

int64_t fgi_oracle_touched(const fgi_oracle_scratch *w) { return w->touched; }
int64_t fgi_oracle_calls(const fgi_oracle_scratch *w) { return w->calls; }

void fgi_oracle_spread(const fgi_oracle_query *q, fgi_oracle_scratch *w) {
    for (int32_t k = 0; q->messages && k < q->view.arity; k++)
        for (int32_t l = 0; l < q->messages[k].n; l++)
            w->dense[(int64_t)k * w->max_card + q->messages[k].labels[l]] = q->messages[k].values[l];
}

void fgi_oracle_gather(const fgi_oracle_query *q, fgi_oracle_scratch *w) {
    for (int32_t k = 0; q->messages && k < q->view.arity; k++)
        for (int32_t l = 0; l < q->messages[k].n; l++)
            w->dense[(int64_t)k * w->max_card + q->messages[k].labels[l]] = 0.0;
}

/* ---- frontiers: heaps of nodes yet to be visited, for walks over heaps and trees ---------------------------- */

int fgi_frontier_push(fgi_oracle_scratch *w, int which, int32_t *n, fgi_ranked item) {
    if (*n == w->frontier_capacity[which]) {
        int64_t capacity = *n < 32 ? 64 : 2 * (int64_t)*n;
        fgi_ranked *items = realloc(w->frontier[which], (size_t)capacity * sizeof *items);
        if (!items) return 0;
        w->frontier[which] = items;
        w->frontier_capacity[which] = capacity;
    }
    fgi_ranked *heap = w->frontier[which];
    int32_t k = (*n)++;
    for (; k > 0 && fgi_ranked_before(&item, &heap[(k - 1) / 2]); k = (k - 1) / 2) heap[k] = heap[(k - 1) / 2];
    heap[k] = item;
    return 1;
}

fgi_ranked fgi_frontier_pop(fgi_oracle_scratch *w, int which, int32_t *n) {
    fgi_ranked *heap = w->frontier[which];
    const fgi_ranked top = heap[0], item = heap[--*n];
    int32_t k = 0;
    for (int32_t child; (child = 2 * k + 1) < *n; k = child) {
        if (child + 1 < *n && fgi_ranked_before(&heap[child + 1], &heap[child])) child++;
        if (!fgi_ranked_before(&heap[child], &item)) break;
        heap[k] = heap[child];
    }
    heap[k] = item;
    return top;
}

/* ---- the reference scan: plain, no scratch -------------------------------------------------------------------- */

static double message_at(const fgi_message *m, int32_t a) {
    int32_t low = 0, high = m->n;
    while (low < high) {
        int32_t mid = low + (high - low) / 2;
        if (m->labels[mid] < a) low = mid + 1;
        else high = mid;
    }
    return low < m->n && m->labels[low] == a ? m->values[low] : 0.0;
}

static int64_t states_of(const fgi_oracle_query *q) {
    if (q->view.arity == 2) return (int64_t)q->view.rows * q->view.cols;
    int64_t n = 1;
    for (int32_t k = 0; k < q->view.arity; k++) n *= q->cards[k];
    return n;
}

void fgi_oracle_scan(const fgi_oracle_query *q, fgi_argmax *out) {
    const fgi_view *v = &q->view;
    const int32_t pair[2] = {v->rows, v->cols}, *cards = v->arity == 2 ? pair : q->cards;
    const int64_t n = states_of(q);
    *out = (fgi_argmax){-1, -INFINITY};
    for (int64_t state = 0; state < n; state++) {
        double value = v->arity == 2 ? fgi_view_at2(v, (int32_t)(state / v->cols), (int32_t)(state % v->cols))
                                     : v->weight * v->values[state];
        if (value == -INFINITY || state == q->excluded) continue;
        int64_t inner = n, rest = state;
        for (int32_t k = 0; q->messages && k < v->arity; k++) {
            inner /= cards[k];
            value -= message_at(&q->messages[k], (int32_t)(rest / inner));
            rest %= inner;
        }
        if (value > out->value) *out = (fgi_argmax){state, value};
    }
}

/* ---- the fast scan of small tables ---------------------------------------------------------------------------- */

static void scan_pairwise(const fgi_oracle_query *q, const fgi_oracle_scratch *w, fgi_argmax *out) {
    const fgi_view *v = &q->view;
    const double *first = w->dense, *second = w->dense + w->max_card;
    const int64_t row_step = v->transposed ? 1 : v->cols, col_step = v->transposed ? v->rows : 1;
    for (int32_t a = 0; a < v->rows; a++) {
        const double *row = v->values + a * row_step;
        for (int32_t b = 0; b < v->cols; b++) {
            double value = (v->weight * row[b * col_step] - first[a]) - second[b];
            if (value > out->value && (int64_t)a * v->cols + b != q->excluded)
                *out = (fgi_argmax){(int64_t)a * v->cols + b, value};
        }
    }
}

static void scan_from(const fgi_oracle_query *q, fgi_oracle_scratch *w, int64_t n, fgi_argmax *out) {
    const fgi_view *v = &q->view;
    const int32_t arity = v->arity, last = q->cards[arity - 1];
    const double *dense = w->dense + (int64_t)(arity - 1) * w->max_card;
    double *outer = w->bound; /* the messages of the labels before the last one */
    for (int64_t state = 0; state < n; state += last) {
        int64_t rest = state / last;
        for (int32_t k = arity - 2; k >= 0; k--) {
            outer[k] = w->dense[(int64_t)k * w->max_card + rest % q->cards[k]];
            rest /= q->cards[k];
        }
        for (int32_t b = 0; b < last; b++) {
            double value = v->weight * v->values[state + b];
            for (int32_t k = 0; k < arity - 1; k++) value -= outer[k];
            value -= dense[b];
            if (value > out->value && state + b != q->excluded) *out = (fgi_argmax){state + b, value};
        }
    }
}

/* ---- dispatch ----------------------------------------------------------------------------------------------- */

fgi_rc fgi_oracle_argmax(const fgi_oracle_query *q, fgi_oracle_scratch *w, fgi_argmax *out) {
    w->calls++;
    if (q->view.kind != FGI_DENSE) return fgi_implicit_argmax(q, w, out);
    if (q->order && q->view.arity == 2) return fgi_pairwise_argmax(q, w, out);
    if (q->order && q->messages) return fgi_general_argmax(q, w, out);
    *out = (fgi_argmax){-1, -INFINITY};
    const int64_t n = states_of(q);
    w->touched += n;
    fgi_oracle_spread(q, w);
    if (q->view.arity == 2) scan_pairwise(q, w, out);
    else scan_from(q, w, n, out);
    fgi_oracle_gather(q, w);
    return FGI_OK;
}

/* ---- the order of a model's table ------------------------------------------------------------------------------ */

static int wants_order(const fgi_structure *s, int32_t table) {
    if (s->table_kind[table] != FGI_DENSE) return 0;
    int64_t n = s->values_begin[table + 1] - s->values_begin[table];
    if (n < SCAN_BELOW) return 0;
    for (int64_t k = s->dims_begin[table]; k < s->dims_begin[table + 1]; k++)
        if (n / s->dims[k] > INT32_MAX) return 0; /* positions in a slice are int32 */
    return 1;
}

/* Publishes a new order; if another thread was faster, its order is used. */
static fgi_order *publish(const fgi_model *m, int32_t table, fgi_order *o) {
    struct fgi_order *now = NULL;
    if (atomic_compare_exchange_strong(&m->t->order[table], &now, o)) return o;
    fgi_order_release(o);
    return now;
}

int fgi_model_order_step(const fgi_model *m, int32_t table, int64_t entries, fgi_order_builder **builder, fgi_rc *rc) {
    const fgi_structure *s = m->s;
    *rc = FGI_OK;
    if (!*builder) {
        if (!wants_order(s, table) || atomic_load(&m->t->order[table])) return 1;
        *builder = fgi_order_builder_create(s->table_arity[table], s->dims + s->dims_begin[table]);
    }
    if (*builder && !fgi_order_builder_step(*builder, m->t->values + s->values_begin[table], entries)) return 0;
    fgi_order *o = *builder ? fgi_order_builder_finish(*builder) : NULL;
    *builder = NULL;
    if (o) publish(m, table, o);
    else *rc = FGI_NO_MEMORY;
    return 1;
}

fgi_order *fgi_model_order(const fgi_model *m, int32_t table, fgi_rc *rc) {
    fgi_order_builder *builder = NULL;
    *rc = FGI_OK;
    fgi_order *o = atomic_load_explicit(&m->t->order[table], memory_order_acquire);
    if (o) return o;
    fgi_model_order_step(m, table, INT64_MAX, &builder, rc);
    return atomic_load(&m->t->order[table]);
}

/* ---- from outside --------------------------------------------------------------------------------------------- */

fgi_rc fgi_message_check(const fgi_message *m, int32_t card, int64_t index, fgi_error *err) {
    if (m->n < 0) return fgi_fail(err, FGI_BAD_ARGUMENT, index, "message %lld has a negative length", (long long)index);
    for (int32_t k = 0; k < m->n; k++) {
        if (m->labels[k] < 0 || m->labels[k] >= card || (k > 0 && m->labels[k] <= m->labels[k - 1]))
            return fgi_fail(err, FGI_BAD_ARGUMENT, index, "message %lld: labels must be ascending and in 0..%d",
                (long long)index, card - 1);
        if (!isfinite(m->values[k]))
            return fgi_fail(err, FGI_BAD_ARGUMENT, index, "message %lld: values must be finite", (long long)index);
    }
    return FGI_OK;
}

fgi_rc fgi_model_argmax(const fgi_model *m, int64_t factor, const fgi_message *messages, int64_t excluded, int64_t hint,
    int32_t scan, fgi_oracle_scratch *w, fgi_argmax *out, fgi_error *err) {
    if (factor < 0 || factor >= m->s->n_factors)
        return fgi_fail(err, FGI_BAD_ARGUMENT, factor, "there is no factor %lld", (long long)factor);
    fgi_oracle_query q = {.view = fgi_factor_view(m, factor), .messages = messages, .excluded = excluded, .hint = hint};
    if (w->max_card < m->s->max_card || w->max_arity < q.view.arity)
        return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "the scratch is too small for this model");
    int32_t *cards = fgi_alloc(q.view.arity, sizeof *cards);
    fgi_rc rc = cards ? FGI_OK : fgi_fail(err, FGI_NO_MEMORY, -1, "out of memory");
    for (int32_t k = 0; !rc && k < q.view.arity; k++) {
        cards[k] = m->s->cards[q.view.vars[k]];
        if (messages) rc = fgi_message_check(&messages[k], cards[k], k, err);
    }
    q.cards = cards;
    if (!rc && scan) {
        fgi_oracle_scan(&q, out);
    } else if (!rc) {
        q.order = fgi_model_order(m, q.view.table, &rc);
        if (!rc) rc = fgi_oracle_argmax(&q, w, out);
        if (rc) fgi_fail(err, rc, -1, "out of memory");
    }
    free(cards);
    return rc;
}
