/* oracle/search_query.c - queries of a search index: best-first over clusters, or many at a time over everything.
 *
 * A batch goes through twice. First every query by itself: clusters by descending bound (exact) or promise
 * (approximate), rows whose own bound cannot reach the result left out. An exact query that would visit much of the
 * index is given up there. In the second pass such queries go over all rows, sixteen sharing the reading, from the
 * floors already found on (search_scan.c). The answers are the same either way. */
#include <float.h>
#include <string.h>
#include "base/array.h"
#include "base/util.h"
#include "oracle/search_query.h"

/* Shares of all rows; answers do not depend on them (decision 0016). */
static const double LOOKED = 0.01; /* a query that has seen so many decides whether to go on */
static const double SCAN = 0.1;    /* it does if fewer are to come: a row costs ten times one in a shared scan */
enum {
    RETRY = 16, /* where bounds did not help, one query in so many tries them again */
    FEWEST = 16 /* clusters, below which the first one would be too much to look at */
};

/* ---- one candidate ---------------------------------------------------------------------------------------------- */

int fgi_search_excludes(const fgi_one_query *o, int32_t label) {
    if (!(o->sieve[label / 64 % FGI_SEARCH_SIEVE] >> label % 64 & 1)) return 0;
    return (o->message->n && fgi_place_of(o->message->labels, o->message->n, label) >= 0) ||
        (o->n_excluded && fgi_place_of(o->excluded, o->n_excluded, label) >= 0);
}

void fgi_search_insert(const fgi_one_query *o, fgi_top *top, double value, int32_t label) {
    if (!fgi_search_excludes(o, label)) fgi_top_insert(top, value, label);
}

void fgi_search_offer_messages(const fgi_search *index, const fgi_one_query *o, fgi_search_scratch *w, fgi_top *top) {
    for (int32_t k = 0; k < o->message->n; k++) {
        const int32_t label = o->message->labels[k];
        if (o->n_excluded && fgi_place_of(o->excluded, o->n_excluded, label) >= 0) continue;
        float score;
        index->kernels->dots(fgi_search_at(index, label), 1, index->stride, index->d, o->x, &score);
        fgi_top_offer(top, (double)score - o->message->values[k], label);
    }
    w->touched += o->message->n;
}

/* ---- one cluster ------------------------------------------------------------------------------------------------ */

/* s = <c, x> is rounded; so are the parts of the rows. `slack` covers both, and the sums that follow. */
typedef struct view {
    double along, away, slack;
} view;

static view view_of(const fgi_search *index, const fgi_one_query *o, double score) {
    const double square = o->length * o->length;
    const double rest = square * (1 + 4 * index->rounding) - score * score;
    return (view){score, rest > 0 ? sqrt(rest) : 0, 2 * index->rounding * index->longest * o->length};
}

static void visit(
    const fgi_search *index, const fgi_one_query *o, int32_t cell, view v, fgi_search_scratch *w, fgi_top *top) {
    const fgi_cell *c = &index->cells[cell];
    float *scores = w->scores[0];
    const float along = (float)v.along, away = (float)v.away;
    /* A bound in single precision, with room for its own rounding. */
    const float reach = (float)((top->floor - v.slack) - 1e-6 * (fabs(top->floor) + index->longest * o->length));
    if (top->floor == -INFINITY || !o->bounded) {
        index->kernels->dots(c->rows, c->n, index->stride, index->d, o->x, scores);
        for (int32_t k = 0; k < c->n; k++) fgi_search_offer(o, top, scores[k], c->labels[k]);
        w->touched += c->n;
        return;
    }
    for (int32_t k = 0; k < c->n;) {
        while (k < c->n && c->along[k] * along + c->away[k] * away < reach) k++;
        const int32_t from = k; /* a run of rows that may matter */
        while (k < c->n && k - from < 64 && !(c->along[k] * along + c->away[k] * away < reach)) k++;
        if (k == from) break;
        index->kernels->dots(c->rows + from * index->stride, k - from, index->stride, index->d, o->x, scores);
        for (int32_t i = from; i < k; i++) fgi_search_offer(o, top, scores[i - from], c->labels[i]);
        w->touched += k - from;
    }
}

/* ---- clusters by descending key --------------------------------------------------------------------------------- */

static void sift(int32_t *heap, const float *key, int32_t root, int32_t n) {
    const int32_t item = heap[root];
    for (int32_t child; (child = 2 * root + 1) < n; root = child) {
        if (child + 1 < n && key[heap[child + 1]] > key[heap[child]]) child++;
        if (key[item] >= key[heap[child]]) break;
        heap[root] = heap[child];
    }
    heap[root] = item;
}

static int32_t pop(int32_t *heap, const float *key, int32_t *n) {
    const int32_t top = heap[0];
    heap[0] = heap[--*n];
    if (*n > 0) sift(heap, key, 0, *n);
    return top;
}

/* Bounds, promises, and the heap, from the scores of the directions. Single precision, with room for its rounding; for
 * x / |x|, whose square neither underflows nor overflows. */
static void look(
    const fgi_search *index, const fgi_one_query *o, const float *centre, int exact, fgi_search_scratch *w) {
    const fgi_cell_views *v = &index->views;
    const float inverse = (float)fgi_smaller(1 / o->length, FLT_MAX); /* FLT_MAX for 0, too */
    const float square = (float)(1 + 4 * index->rounding + 1e-6), length = (float)o->length;
    const float slack = (float)((2 * index->rounding + 2e-6) * index->longest * o->length);
    for (int32_t c = 0; c < index->clusters; c++) {
        const float along = centre[c] * inverse, rest = square - along * along, away = sqrtf(rest > 0 ? rest : 0);
        const float low = along * v->along_min[c], high = along * v->along_max[c];
        w->bound[c] = ((low > high ? low : high) + away * v->away_max[c]) * length + slack;
        w->key[c] = exact ? w->bound[c] : along * v->along[c] + away * v->promise[c];
    }
    for (int32_t c = 0; c < index->clusters; c++) {
        if (!o->bounded) w->bound[c] = INFINITY;
        if (v->away_max[c] == -INFINITY) w->bound[c] = w->key[c] = -INFINITY; /* not 0 * -INFINITY */
        w->heap[c] = c;
    }
    memset(w->visited, 0, (size_t)index->clusters);
    for (int32_t k = index->clusters / 2 - 1; k >= 0; k--) sift(w->heap, w->key, k, index->clusters);
}

/* Rows in clusters that may still hold a result. */
static int64_t rows_to_come(const fgi_search *index, const fgi_search_scratch *w, double floor) {
    int64_t rows = 0;
    for (int32_t c = 0; c < index->clusters; c++)
        if (!w->visited[c] && w->bound[c] >= floor) rows += index->cells[c].n;
    return rows;
}

/* Raises the floor, where that takes little time for what it brings. */
static void tighten(fgi_top *top) {
    if (top->floor == -INFINITY || top->n > top->want + top->want / 2) fgi_top_cut(top);
}

/* Exact; 0 when it was given up. */
static int search_exact(
    const fgi_search *index, const fgi_one_query *o, const float *centre, fgi_search_scratch *w, fgi_top *top) {
    int32_t left = index->clusters;
    int64_t seen = 0;
    int decided = 0;
    look(index, o, centre, 1, w);
    while (left > 0 && w->bound[w->heap[0]] >= top->floor) {
        const int32_t cell = pop(w->heap, w->key, &left);
        w->visited[cell] = 1;
        visit(index, o, cell, view_of(index, o, centre[cell]), w, top);
        tighten(top);
        seen += index->cells[cell].n;
        if (!decided && seen > o->want && seen > LOOKED * (double)index->rows) {
            decided = 1;
            if (rows_to_come(index, w, top->floor) > SCAN * (double)index->rows) return 0;
        }
    }
    return 1;
}

/* Approximate; 1 if the answer turns out to be exact. */
static int search_some(const fgi_search *index, const fgi_one_query *o, const float *centre, int32_t probes,
    fgi_search_scratch *w, fgi_top *top) {
    int32_t left = index->clusters;
    int64_t seen = 0;
    look(index, o, centre, 0, w);
    for (int32_t visited = 0; left > 0 && (visited < probes || seen < o->want + o->n_excluded); visited++) {
        const int32_t cell = pop(w->heap, w->key, &left);
        w->visited[cell] = 1;
        if (w->bound[cell] < top->floor) continue;
        visit(index, o, cell, view_of(index, o, centre[cell]), w, top);
        tighten(top);
        seen += index->cells[cell].n;
    }
    return rows_to_come(index, w, top->floor) == 0;
}

/* ---- batches ---------------------------------------------------------------------------------------------------- */

void fgi_search_answer(const fgi_search_batch *b, int64_t i, fgi_top *top, int proven) {
    const int32_t want = b->q->want;
    if (b->q->unordered) fgi_top_cut(top);
    else fgi_top_sort(top);
    for (int32_t k = 0; k < want; k++) {
        b->labels[i * want + k] = k < top->n ? top->items[k].label : -1;
        b->values[i * want + k] = k < top->n ? top->items[k].value : -INFINITY;
    }
    if (b->proven) b->proven[i] = (uint8_t)proven;
}

static void mark(uint64_t *sieve, int32_t label) { sieve[label / 64 % FGI_SEARCH_SIEVE] |= (uint64_t)1 << label % 64; }

fgi_one_query fgi_search_load(
    const fgi_search_batch *b, int64_t i, fgi_search_scratch *w, int place, fgi_message *message) {
    const fgi_search *index = b->s;
    const fgi_search_query *q = b->q;
    fgi_one_query o = {.x = w->x + place * index->stride, .message = message, .want = q->want};
    memcpy(w->x + place * index->stride, q->x + i * q->stride, (size_t)index->d * sizeof *w->x);
    double square = 0;
    for (int32_t k = 0; k < index->d; k++) square += (double)o.x[k] * o.x[k];
    o.length = sqrt(square);
    o.bounded = fgi_search_bounded(index, o.length);
    *message = (fgi_message){0, NULL, NULL};
    if (q->message_begin)
        *message = (fgi_message){(int32_t)(q->message_begin[i + 1] - q->message_begin[i]),
            q->message_labels + q->message_begin[i], q->message_values + q->message_begin[i]};
    if (q->excluded_begin) {
        o.n_excluded = (int32_t)(q->excluded_begin[i + 1] - q->excluded_begin[i]);
        o.excluded = q->excluded_labels + q->excluded_begin[i];
    }
    o.sieve = w->sieve + place * FGI_SEARCH_SIEVE;
    memset(o.sieve, 0, FGI_SEARCH_SIEVE * sizeof *o.sieve);
    for (int32_t k = 0; k < message->n; k++) mark(o.sieve, message->labels[k]);
    for (int32_t k = 0; k < o.n_excluded; k++) mark(o.sieve, o.excluded[k]);
    return o;
}

static void search_one(
    const fgi_search_batch *b, int64_t i, const fgi_one_query *o, const float *centre, fgi_search_scratch *w) {
    fgi_top *top = &w->top[0];
    fgi_top_clear(top, b->q->want, -INFINITY);
    fgi_search_offer_messages(b->s, o, w, top);
    if (b->q->probes > 0) {
        fgi_search_answer(b, i, top, search_some(b->s, o, centre, b->q->probes, w, top));
    } else if (search_exact(b->s, o, centre, w, top)) {
        fgi_search_answer(b, i, top, 1);
    } else {
        b->late[i] = 1;
        b->floor[i] = top->floor;
    }
}

/* Where bounds have been in vain: one query in RETRY. */
static int tries(const fgi_search_batch *b, int64_t i) { return (b->s->queries + i) % RETRY == 0; }

/* Every query by itself, but for the scores of the directions: there four share the reading. */
static void first_pass(void *context, int64_t begin, int64_t end, int worker) {
    const fgi_search_batch *b = context;
    const fgi_search *index = b->s;
    fgi_search_scratch *w = &index->scratch[worker];
    fgi_message message[4];
    fgi_one_query o[4];
    int64_t at[4];
    const float *x[4];
    for (int64_t i = begin; i < end;) {
        int n = 0;
        for (; i < end && n < 4; i++) {
            b->late[i] = b->q->probes < 0 || b->no_bounds || (b->skip && !tries(b, i));
            b->floor[i] = -INFINITY;
            if (b->late[i]) continue;
            o[n] = fgi_search_load(b, i, w, n, &message[n]);
            b->late[i] = b->q->probes == 0 && !o[n].bounded;
            if (!b->late[i]) at[n++] = i;
        }
        for (int j = 0; j < 4; j++) x[j] = w->x + (j < n ? j : 0) * index->stride;
        if (n > 1) index->kernels->dots4(index->directions, index->clusters, index->stride, index->d, x, w->centre);
        else if (n == 1)
            index->kernels->dots(index->directions, index->clusters, index->stride, index->d, x[0], w->centre[0]);
        w->touched += (int64_t)n * index->clusters;
        for (int j = 0; j < n; j++) search_one(b, at[j], &o[j], w->centre[j], w);
    }
}

/* ---- checks ----------------------------------------------------------------------------------------------------- */

static fgi_rc check_list(const fgi_search *index, const int32_t *labels, int64_t begin, int64_t end, const char *what,
    int64_t i, fgi_error *err) {
    if (end < begin) return fgi_fail(err, FGI_BAD_MODEL, i, "the offsets of the %s must not decrease", what);
    for (int64_t k = begin; k < end; k++)
        if (labels[k] < 0 || labels[k] >= index->rows || (k > begin && labels[k] <= labels[k - 1]))
            return fgi_fail(err, FGI_BAD_MODEL, i, "the %s of query %lld must be ascending labels below %lld", what,
                (long long)i, (long long)index->rows);
    return FGI_OK;
}

fgi_rc fgi_search_check(const fgi_search *index, const fgi_search_query *q, fgi_error *err) {
    if (q->stride < index->d)
        return fgi_fail(err, FGI_BAD_MODEL, -1, "queries must have %d columns, as the rows", (int)index->d);
    if (q->want < 1 || q->want > index->rows)
        return fgi_fail(
            err, FGI_BAD_ARGUMENT, -1, "%d labels are wanted of %lld rows", (int)q->want, (long long)index->rows);
    if (q->candidates < 0) return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "candidates must not be negative");
    fgi_rc rc = FGI_OK;
    for (int64_t i = 0; !rc && i < q->n; i++) {
        for (int32_t k = 0; k < index->d; k++)
            if (!isfinite(q->x[i * q->stride + k]))
                return fgi_fail(err, FGI_BAD_MODEL, i, "query %lld has an entry that is not finite", (long long)i);
        if (q->message_begin)
            rc = check_list(index, q->message_labels, q->message_begin[i], q->message_begin[i + 1], "message", i, err);
        for (int64_t k = q->message_begin ? q->message_begin[i] : 0;
             !rc && q->message_begin && k < q->message_begin[i + 1]; k++)
            if (!isfinite(q->message_values[k]))
                return fgi_fail(err, FGI_BAD_MODEL, i, "the message of query %lld is not finite", (long long)i);
        if (!rc && q->excluded_begin)
            rc = check_list(
                index, q->excluded_labels, q->excluded_begin[i], q->excluded_begin[i + 1], "exclusions", i, err);
    }
    return rc;
}

/* ---- the call --------------------------------------------------------------------------------------------------- */

/* How often bounds were in vain lately: a sliding mean over about 64 queries, from the answers in their order. */
static void remember(fgi_search *index, const fgi_search_batch *b) {
    for (int64_t i = 0; i < b->q->n; i++) {
        index->scanned += b->late[i];
        if (b->no_bounds || (b->skip && !tries(b, i))) continue;
        index->hopeless += b->late[i] ? (64 - index->hopeless + 15) / 16 : -((index->hopeless + 15) / 16);
    }
}

/* 0 when out of memory. */
static int run(fgi_search *index, fgi_search_batch *b) {
    const int64_t grain = b->q->n > 64 ? 8 : 1;
    if (b->q->candidates > 0) {
        fgi_pool_run(index->pool, b->q->n, FGI_CODE_QUERIES, fgi_search_coded, b);
    } else {
        fgi_pool_run(index->pool, b->q->n, grain, first_pass, b);
        for (int64_t i = 0; i < b->q->n; i++)
            if (b->late[i]) b->list[b->n_late++] = (int32_t)i;
        b->in_bytes = b->n_late > 0 && b->q->probes == 0 && fgi_search_wants_bytes(index, b->q->want);
        if (b->in_bytes && !fgi_search_make_bytes(index)) return 0;
        fgi_pool_run(index->pool, (b->n_late + FGI_SEARCH_GROUP - 1) / FGI_SEARCH_GROUP, 1, fgi_search_scan, b);
        if (b->q->probes == 0) remember(index, b);
    }
    index->queries += b->q->n;
    for (int32_t t = 0; t < index->threads; t++) {
        index->touched += index->scratch[t].touched;
        index->scratch[t].touched = 0;
    }
    return 1;
}

/* Working memory for so many candidates. */
static int reserve(fgi_search *index, int32_t want) {
    if (!fgi_codes_reserve(index->codes, want)) return 0;
    const int64_t most = index->codes->room;
    for (int32_t t = 0; most > index->chosen_room && t < index->threads; t++) {
        fgi_search_scratch *w = &index->scratch[t];
        if (!fgi_resize(&w->chosen, most, sizeof *w->chosen) || !fgi_resize(&w->guesses, most, sizeof *w->guesses) ||
            !fgi_resize(&w->keys, most, sizeof *w->keys) ||
            !fgi_resize(&w->parts, most * index->settings.parts, sizeof *w->parts))
            return 0;
    }
    index->chosen_room = most;
    return 1;
}

int fgi_search_reserve_codes(const fgi_search_batch *b, int32_t most) {
    fgi_search *index = b->s;
    int32_t candidates = 0;
    for (int64_t i = 0; i < b->q->n; i++)
        if (fgi_search_candidates(b, i) > candidates) candidates = fgi_search_candidates(b, i);
    int ok = fgi_search_make_codes(index) && fgi_search_make_bytes(index) && reserve(index, candidates);
    if (candidates > most) most = candidates;
    for (int32_t t = 0; ok && t < index->threads; t++) ok = fgi_top_reserve(&index->scratch[t].top[0], most);
    return ok;
}

fgi_rc fgi_search_run(
    fgi_search *index, const fgi_search_query *q, int32_t *labels, double *values, uint8_t *proven, fgi_error *err) {
    fgi_rc rc = fgi_search_check(index, q, err);
    if (rc) return rc;
    fgi_search_batch b = {.s = index,
        .q = q,
        .labels = labels,
        .values = values,
        .proven = proven,
        .no_bounds = q->probes == 0 && index->clusters < FEWEST,
        .skip = q->probes == 0 && index->hopeless > 48};
    b.late = fgi_alloc(q->n, 1);
    b.floor = fgi_alloc(q->n, sizeof *b.floor);
    b.list = fgi_alloc(q->n, sizeof *b.list);
    int ok = b.late && b.floor && b.list;
    if (q->candidates > 0) ok = ok && fgi_search_reserve_codes(&b, q->want);
    for (int32_t t = 0; ok && t < index->threads; t++)
        for (int j = 0; ok && j < FGI_SEARCH_GROUP; j++) ok = fgi_top_reserve(&index->scratch[t].top[j], q->want);
    ok = ok && run(index, &b);
    free(b.late);
    free(b.floor);
    free(b.list);
    return ok ? FGI_OK : fgi_no_memory(err);
}
