/* oracle/ranking.c - a vector in descending order that changes: the oracle of a unary factor, and the joint oracle over
 * all binary factors of a model (docs/mathematics.md, section 3), whose inactive factors have
 * gradient -t.
 *
 * An indexed binary heap: made in one linear pass, O(1) to look at the top, O(log n) to take it off or to change a
 * value. A walk in descending order takes it apart lazily, through a frontier of nodes whose parents have been visited.
 */
#include "oracle/internal.h"
#include "base/util.h"

struct fgi_ranking {
    fgi_source base;
    int64_t n;
    double *values;
    int32_t *heap;  /* items by value, a binary heap */
    int32_t *place; /* where an item is in the heap; -1: taken off, or not above the floor */
    int32_t n_heap;
    double floor;
};

static int before(const fgi_ranking *r, int32_t x, int32_t y) {
    return r->values[x] > r->values[y] || (r->values[x] == r->values[y] && x < y);
}

static void put_at(fgi_ranking *r, int32_t place, int32_t item) {
    r->heap[place] = item;
    r->place[item] = place;
}

static void sift_down(fgi_ranking *r, int32_t place) {
    const int32_t item = r->heap[place];
    for (int64_t child; (child = 2 * (int64_t)place + 1) < r->n_heap; place = (int32_t)child) {
        if (child + 1 < r->n_heap && before(r, r->heap[child + 1], r->heap[child])) child++;
        if (!before(r, r->heap[child], item)) break;
        put_at(r, place, r->heap[child]);
    }
    put_at(r, place, item);
}

static void sift(fgi_ranking *r, int32_t place) {
    const int32_t item = r->heap[place];
    for (; place > 0 && before(r, item, r->heap[(place - 1) / 2]); place = (place - 1) / 2)
        put_at(r, place, r->heap[(place - 1) / 2]);
    put_at(r, place, item);
    sift_down(r, place);
}

static const fgi_source_ops ranking_ops;

fgi_rc fgi_ranking_create(int64_t n, const double *values, double floor, fgi_ranking **out, fgi_error *err) {
    if (n < 0 || n > INT32_MAX - 1) return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "a ranking of %lld items", (long long)n);
    for (int64_t k = 0; k < n; k++)
        if (!(values[k] < INFINITY))
            return fgi_fail(err, FGI_BAD_ARGUMENT, k, "value %lld is NaN or +inf", (long long)k);
    fgi_ranking *r = fgi_calloc(1, sizeof *r);
    if (!r) return fgi_no_memory(err);
    r->base.ops = &ranking_ops;
    r->n = n;
    r->floor = floor;
    r->values = fgi_copy(values, n, sizeof(double));
    r->heap = fgi_alloc(n, sizeof(int32_t));
    r->place = fgi_alloc(n, sizeof(int32_t));
    if (!r->values || !r->heap || !r->place) {
        fgi_ranking_free(r);
        return fgi_no_memory(err);
    }
    for (int32_t k = 0; k < n; k++) {
        r->place[k] = -1;
        if (values[k] > floor) put_at(r, r->n_heap++, k);
    }
    for (int32_t place = r->n_heap / 2 - 1; place >= 0; place--) sift_down(r, place);
    *out = r;
    return FGI_OK;
}

void fgi_ranking_free(fgi_ranking *r) {
    if (!r) return;
    free(r->values);
    free(r->heap);
    free(r->place);
    free(r);
}

int32_t fgi_ranking_top(const fgi_ranking *r, double *value) {
    if (r->n_heap == 0) return -1;
    *value = r->values[r->heap[0]];
    return r->heap[0];
}

int fgi_ranking_take(fgi_ranking *r, int32_t item) {
    if (item < 0 || item >= r->n || r->place[item] < 0) return 0;
    const int32_t place = r->place[item], last = r->heap[--r->n_heap];
    r->place[item] = -1;
    if (place < r->n_heap) {
        put_at(r, place, last);
        sift(r, place);
    }
    return 1;
}

fgi_rc fgi_ranking_set(fgi_ranking *r, int32_t item, double value, fgi_error *err) {
    if (item < 0 || item >= r->n) return fgi_fail(err, FGI_BAD_ARGUMENT, item, "there is no item %d", item);
    if (!(value < INFINITY)) return fgi_fail(err, FGI_BAD_ARGUMENT, item, "the value is NaN or +inf");
    if (!(value > r->floor)) {
        fgi_ranking_take(r, item);
        r->values[item] = value;
        return FGI_OK;
    }
    r->values[item] = value;
    if (r->place[item] < 0) put_at(r, r->n_heap++, item);
    sift(r, r->place[item]);
    return FGI_OK;
}

double fgi_ranking_get(const fgi_ranking *r, int32_t item) { return r->values[item]; }

/* ---- as a source: the items in order ---------------------------------------------------------------------------- */

static const fgi_ranking *ranking_of(const fgi_oracle_query *q) { return (const fgi_ranking *)q->source; }
static int32_t ranking_arity(const fgi_oracle_query *q) { return q->factor == 0 && ranking_of(q)->n > 0; }
static int32_t ranking_card(const fgi_oracle_query *q, int32_t k) { return k == 0 ? (int32_t)ranking_of(q)->n : 0; }

static int is_listed(const fgi_message *m, int32_t item) { return fgi_place_of(m->labels, m->n, item) >= 0; }

/* The best item without a message: past at most as many as there are messages and banned items. A walk past so many
 * that a scan is done sooner is given up, as where memory is short: 0. */
static int walk(const fgi_ranking *r, const fgi_message *m, fgi_oracle_scratch *w, fgi_argmax *best) {
    int32_t n = 0;
    if (r->n_heap > 0 && !fgi_frontier_push(w, 2, &n, (fgi_ranked){r->values[r->heap[0]], r->heap[0], 0})) return 0;
    while (n > 0) {
        const fgi_ranked top = fgi_frontier_pop(w, 2, &n);
        w->touched++;
        if (fgi_oracle_is_spent(w)) return 0;
        if (top.value < best->value) break;
        if (!fgi_is_banned(w, top.at) && !is_listed(m, top.at)) {
            fgi_argmax_offer(best, top.at, top.value);
            break;
        }
        for (int64_t child = 2 * (int64_t)top.tag + 1; child <= 2 * (int64_t)top.tag + 2 && child < r->n_heap; child++)
            if (!fgi_frontier_push(w, 2, &n, (fgi_ranked){r->values[r->heap[child]], r->heap[child], (int32_t)child}))
                return 0;
    }
    return 1;
}

static fgi_rc ranking_search(const fgi_oracle_query *q, fgi_oracle_scratch *w, fgi_best *best) {
    const fgi_message none = {0, NULL, NULL}, *m = q->messages ? q->messages : &none;
    const fgi_ranking *r = ranking_of(q);
    fgi_argmax found = {-1, -INFINITY};
    w->touched += m->n;
    for (int32_t k = 0; k < m->n; k++) {
        const int32_t item = m->labels[k];
        if (r->place[item] >= 0 && r->values[item] > -INFINITY && !fgi_is_banned(w, item))
            fgi_argmax_offer(&found, item, r->values[item] - m->values[k]);
    }
    if (!walk(r, m, w, &found)) return fgi_oracle_is_spent(w) ? FGI_UNSUPPORTED : FGI_NO_MEMORY;
    if (found.state >= 0) best->items[best->n++] = found;
    return FGI_OK;
}

static fgi_rc ranking_scan(const fgi_oracle_query *q, fgi_oracle_scratch *w, fgi_best *best) {
    const fgi_ranking *r = ranking_of(q);
    int32_t at = 0;
    for (int32_t item = 0; item < r->n; item++) {
        const fgi_message *m = q->messages;
        while (m && at < m->n && m->labels[at] < item) at++;
        const double delta = m && at < m->n && m->labels[at] == item ? m->values[at] : 0.0;
        if (r->place[item] >= 0 && !fgi_is_banned(w, item)) fgi_best_offer(best, item, r->values[item] - delta);
    }
    w->touched += r->n;
    return FGI_OK;
}

static int ranking_prefers_scan(const fgi_oracle_query *q) {
    (void)q;
    return 0; /* the top is O(1) */
}

/* A step of a walk costs as much as some thirty items of a scan, a message as much as one (decision 0012). */
enum {
    PATIENT_AT_LEAST = 2,  /* steps of any walk */
    SCANNED_PER_STEP = 100 /* items of a scan for each further step */
};

static int64_t ranking_patience(const fgi_oracle_query *q) {
    const int64_t n = ranking_of(q)->n, messages = q->messages ? q->messages->n : 0;
    if (messages > n / 8) return 0;
    return messages + PATIENT_AT_LEAST + n / SCANNED_PER_STEP;
}

static const fgi_source_ops ranking_ops = {.arity = ranking_arity,
    .card = ranking_card,
    .search = ranking_search,
    .scan = ranking_scan,
    .prefers_scan = ranking_prefers_scan,
    .patience = ranking_patience};

const fgi_source *fgi_ranking_source(const fgi_ranking *r) { return &r->base; }
