/* oracle.c - the oracle interface: dispatch, scratch, and the dense scan that every other oracle must agree with. */
#include "oracle_impl.h"
#include "util.h"

fgi_oracle_scratch *fgi_oracle_scratch_create(int32_t max_card, int32_t max_arity) {
    fgi_oracle_scratch *w = fgi_calloc(1, sizeof *w);
    if (!w) return NULL;
    w->max_card = max_card;
    w->max_arity = max_arity;
    w->dense = fgi_calloc((int64_t)max_card * max_arity, sizeof(double));
    if (w->dense) return w;
    fgi_oracle_scratch_free(w);
    return NULL;
}

void fgi_oracle_scratch_free(fgi_oracle_scratch *w) {
    if (!w) return;
    free(w->dense);
    free(w);
}

int64_t fgi_oracle_touched(const fgi_oracle_scratch *w) { return w->touched; }
int64_t fgi_oracle_calls(const fgi_oracle_scratch *w) { return w->calls; }

/* ---- the dense scan ----------------------------------------------------------------------------------------- */

/* The value of the message at label a; *at is a cursor that moves forward with a. */
static double message_next(const fgi_message *m, int32_t a, int32_t *at) {
    while (*at < m->n && m->labels[*at] < a) ++*at;
    return *at < m->n && m->labels[*at] == a ? m->values[*at] : 0.0;
}

static void scan2(const fgi_oracle_query *q, fgi_argmax *out) {
    static const fgi_message none = {0, NULL, NULL};
    const fgi_message *first = q->messages ? &q->messages[0] : &none, *second = q->messages ? &q->messages[1] : &none;
    int32_t at1 = 0;
    for (int32_t a = 0; a < q->view.rows; a++) {
        double d1 = message_next(first, a, &at1);
        int32_t at2 = 0;
        for (int32_t b = 0; b < q->view.cols; b++) {
            double d2 = message_next(second, b, &at2), theta = fgi_view_at2(&q->view, a, b);
            int64_t state = (int64_t)a * q->view.cols + b;
            if (theta == -INFINITY || state == q->excluded) continue;
            double value = (theta - d1) - d2;
            if (value > out->value) *out = (fgi_argmax){state, value};
        }
    }
}

/* Any arity, by walking the flat index; a label is recovered by division and its message by bisection: slow and plain. */
static double message_at(const fgi_message *m, int32_t a) {
    int32_t low = 0, high = m->n;
    while (low < high) {
        int32_t mid = low + (high - low) / 2;
        if (m->labels[mid] < a) low = mid + 1;
        else high = mid;
    }
    return low < m->n && m->labels[low] == a ? m->values[low] : 0.0;
}

static void scan_any(const fgi_oracle_query *q, fgi_argmax *out) {
    int64_t n = 1;
    for (int32_t k = 0; k < q->view.arity; k++) n *= q->cards[k];
    for (int64_t state = 0; state < n; state++) {
        double value = q->view.weight * q->view.values[state];
        if (value == -INFINITY || state == q->excluded) continue;
        int64_t stride = n, rest = state;
        for (int32_t k = 0; k < q->view.arity; k++) {
            stride /= q->cards[k];
            if (q->messages) value -= message_at(&q->messages[k], (int32_t)(rest / stride));
            rest %= stride;
        }
        if (value > out->value) *out = (fgi_argmax){state, value};
    }
}

void fgi_oracle_scan(const fgi_oracle_query *q, fgi_argmax *out) {
    *out = (fgi_argmax){-1, -INFINITY};
    if (q->view.arity == 2) scan2(q, out);
    else scan_any(q, out);
}

fgi_rc fgi_oracle_argmax(const fgi_oracle_query *q, fgi_oracle_scratch *w, fgi_argmax *out) {
    int64_t n = q->view.arity == 2 ? (int64_t)q->view.rows * q->view.cols : 1;
    for (int32_t k = 0; q->view.arity != 2 && k < q->view.arity; k++) n *= q->cards[k];
    w->calls++;
    w->touched += n;
    fgi_oracle_scan(q, out);
    return FGI_OK;
}

fgi_order *fgi_model_order(const fgi_model *m, int32_t table, fgi_rc *rc) {
    *rc = FGI_OK;
    return atomic_load(&m->t->order[table]);
}
