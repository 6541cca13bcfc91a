/* oracle/search_query.c - queries of a search index: best-first over clusters, or many at a time over everything.
 *
 * A batch goes through twice. First every query by itself: clusters by descending bound (exact) or promise
 * (approximate), rows whose own bound cannot reach the result left out. An exact query that would visit much of the
 * index is given up there. In the second pass such queries scan the clusters densely, sixteen sharing a read of the
 * rows, starting from the floors already found. The answers are the same either way. */
#include <string.h>
#include "base/util.h"
#include "oracle/search_index.h"

/* Shares of all rows. A query that has seen LOOKED of them decides whether to go on: below SCAN of them still to come
 * it does. Both are choices, not tuned: a row of its own costs more than one in a scan that four queries share, so
 * going on pays only while few rows are to come. Answers do not depend on them. */
static const double LOOKED = 0.04, SCAN = 0.25;
enum { RETRY = 16 }; /* where bounds did not help, one query in so many tries them again */

typedef struct one_query {
    const float *x; /* padded */
    double length;  /* |x| */
    const fgi_message *message;
    int32_t n_excluded;
    const int32_t *excluded;
    int32_t want;
    uint64_t
        *sieve; /* bits of the labels with a message or an exclusion, by their lowest digits; few others hit them */
} one_query;

typedef struct batch {
    fgi_search *s;
    const fgi_search_query *q;
    int32_t *labels;
    double *values;
    uint8_t *proven;
    uint8_t *late; /* per query: left to the second pass */
    double *floor; /* and what its first pass has found */
    int32_t *list; /* the queries of the second pass */
    int64_t n_late;
    int skip; /* first passes only for one in RETRY */
} batch;

/* ---- one candidate ---------------------------------------------------------------------------------------------- */

static int listed(const int32_t *labels, int32_t n, int32_t label) {
    int32_t low = 0, high = n;
    while (low < high) {
        const int32_t middle = low + (high - low) / 2;
        if (labels[middle] < label) low = middle + 1;
        else high = middle;
    }
    return low < n && labels[low] == label;
}

/* Labels with a message or an exclusion are not taken on the way: the former have been offered before. */
static void offer(const one_query *o, fgi_top *top, double value, int32_t label) {
    if (value < top->floor) return;
    if (!(o->sieve[label / 64 % FGI_SEARCH_SIEVE] >> label % 64 & 1)) {
        fgi_top_insert(top, value, label);
        return;
    }
    if (o->message->n && listed(o->message->labels, o->message->n, label)) return;
    if (o->n_excluded && listed(o->excluded, o->n_excluded, label)) return;
    fgi_top_insert(top, value, label);
}

static void offer_messages(const fgi_search *s, const one_query *o, fgi_search_scratch *w, fgi_top *top) {
    for (int32_t k = 0; k < o->message->n; k++) {
        const int32_t label = o->message->labels[k];
        if (o->n_excluded && listed(o->excluded, o->n_excluded, label)) continue;
        float score;
        s->kernels->dots(fgi_search_at(s, label), 1, s->stride, s->d, o->x, &score);
        fgi_top_offer(top, (double)score - o->message->values[k], label);
    }
    w->touched += o->message->n;
}

/* ---- one cluster ------------------------------------------------------------------------------------------------ */

/* s = <c, x> is rounded; so are the parts of the rows. `slack` covers both, and the sums that follow. */
typedef struct view {
    double along, away, slack;
} view;

static view view_of(const fgi_search *s, const one_query *o, double score) {
    const double square = o->length * o->length;
    const double rest = square * (1 + 4 * s->rounding) - score * score;
    return (view){score, rest > 0 ? sqrt(rest) : 0, 2 * s->rounding * s->longest * o->length};
}

static void visit(const fgi_search *s, const one_query *o, int32_t cell, view v, fgi_search_scratch *w, fgi_top *top) {
    const fgi_cell *c = &s->cells[cell];
    float *scores = w->scores[0];
    const float along = (float)v.along, away = (float)v.away;
    /* A bound in single precision, with room for its own rounding. */
    const float reach = (float)((top->floor - v.slack) - 1e-6 * (fabs(top->floor) + s->longest * o->length));
    if (top->floor == -INFINITY) {
        s->kernels->dots(c->rows, c->n, s->stride, s->d, o->x, scores);
        for (int32_t k = 0; k < c->n; k++) offer(o, top, scores[k], c->labels[k]);
        w->touched += c->n;
        return;
    }
    for (int32_t k = 0; k < c->n;) {
        while (k < c->n && c->along[k] * along + c->away[k] * away < reach) k++;
        const int32_t from = k; /* a run of rows that may matter */
        while (k < c->n && k - from < 64 && !(c->along[k] * along + c->away[k] * away < reach)) k++;
        if (k == from) break;
        s->kernels->dots(c->rows + from * s->stride, k - from, s->stride, s->d, o->x, scores);
        for (int32_t i = from; i < k; i++) offer(o, top, scores[i - from], c->labels[i]);
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

/* Bounds, promises, and the heap, from the scores of the directions. Single precision, with room for its rounding. */
static void look(const fgi_search *s, const one_query *o, const float *centre, int exact, fgi_search_scratch *w) {
    const fgi_cell_views *v = &s->views;
    const float square = (float)(o->length * o->length * (1 + 4 * s->rounding + 1e-6));
    const float slack = (float)((2 * s->rounding + 2e-6) * s->longest * o->length);
    for (int32_t c = 0; c < s->clusters; c++) {
        const float along = centre[c], rest = square - along * along, away = sqrtf(rest > 0 ? rest : 0);
        const float low = along * v->along_min[c], high = along * v->along_max[c];
        w->bound[c] = (low > high ? low : high) + away * v->away_max[c] + slack;
        w->key[c] = exact ? w->bound[c] : along * v->along[c] + away * v->promise[c];
    }
    for (int32_t c = 0; c < s->clusters; c++) {
        if (v->away_max[c] == -INFINITY) w->bound[c] = w->key[c] = -INFINITY; /* not 0 * -INFINITY */
        w->heap[c] = c;
    }
    memset(w->visited, 0, (size_t)s->clusters);
    for (int32_t k = s->clusters / 2 - 1; k >= 0; k--) sift(w->heap, w->key, k, s->clusters);
}

/* Rows in clusters that may still hold a result. */
static int64_t rows_to_come(const fgi_search *s, const fgi_search_scratch *w, double floor) {
    int64_t rows = 0;
    for (int32_t c = 0; c < s->clusters; c++)
        if (!w->visited[c] && w->bound[c] >= floor) rows += s->cells[c].n;
    return rows;
}

/* Raises the floor, where that takes little time for what it brings. */
static void tighten(fgi_top *top) {
    if (top->floor == -INFINITY || top->n > top->want + top->want / 2) fgi_top_cut(top);
}

/* Exact; 0 when it was given up. */
static int search_exact(
    const fgi_search *s, const one_query *o, const float *centre, fgi_search_scratch *w, fgi_top *top) {
    int32_t left = s->clusters;
    int64_t seen = 0;
    int decided = 0;
    look(s, o, centre, 1, w);
    while (left > 0 && w->bound[w->heap[0]] >= top->floor) {
        const int32_t cell = pop(w->heap, w->key, &left);
        w->visited[cell] = 1;
        visit(s, o, cell, view_of(s, o, centre[cell]), w, top);
        tighten(top);
        seen += s->cells[cell].n;
        if (!decided && seen > o->want && seen > LOOKED * (double)s->rows) {
            decided = 1;
            if (rows_to_come(s, w, top->floor) > SCAN * (double)s->rows) return 0;
        }
    }
    return 1;
}

/* Approximate; 1 if the answer turns out to be exact. */
static int search_some(
    const fgi_search *s, const one_query *o, const float *centre, int32_t probes, fgi_search_scratch *w, fgi_top *top) {
    int32_t left = s->clusters;
    int64_t seen = 0;
    look(s, o, centre, 0, w);
    for (int32_t visited = 0; left > 0 && (visited < probes || seen < o->want + o->n_excluded); visited++) {
        const int32_t cell = pop(w->heap, w->key, &left);
        w->visited[cell] = 1;
        if (w->bound[cell] < top->floor) continue;
        visit(s, o, cell, view_of(s, o, centre[cell]), w, top);
        tighten(top);
        seen += s->cells[cell].n;
    }
    return rows_to_come(s, w, top->floor) == 0;
}

/* ---- batches ---------------------------------------------------------------------------------------------------- */

static void answer(const batch *b, int64_t i, fgi_top *top, int proven) {
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

static one_query load(const batch *b, int64_t i, fgi_search_scratch *w, int place, fgi_message *message) {
    const fgi_search *s = b->s;
    const fgi_search_query *q = b->q;
    one_query o = {.x = w->x + place * s->stride, .message = message, .want = q->want};
    memcpy(w->x + place * s->stride, q->x + i * q->stride, (size_t)s->d * sizeof *w->x);
    double square = 0;
    for (int32_t k = 0; k < s->d; k++) square += (double)o.x[k] * o.x[k];
    o.length = sqrt(square);
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

static void search_one(const batch *b, int64_t i, const one_query *o, const float *centre, fgi_search_scratch *w) {
    fgi_top *top = &w->top[0];
    fgi_top_clear(top, b->q->want, -INFINITY);
    offer_messages(b->s, o, w, top);
    if (b->q->probes > 0) {
        answer(b, i, top, search_some(b->s, o, centre, b->q->probes, w, top));
    } else if (search_exact(b->s, o, centre, w, top)) {
        answer(b, i, top, 1);
    } else {
        b->late[i] = 1;
        b->floor[i] = top->floor;
    }
}

/* Every query by itself, but for the scores of the directions: there four share the reading. */
static void first_pass(void *context, int64_t begin, int64_t end, int worker) {
    const batch *b = context;
    const fgi_search *s = b->s;
    fgi_search_scratch *w = &s->scratch[worker];
    fgi_message message[4];
    one_query o[4];
    int64_t at[4];
    const float *x[4];
    for (int64_t i = begin; i < end;) {
        int n = 0;
        for (; i < end && n < 4; i++) {
            b->late[i] = b->q->probes < 0 || (b->skip && i % RETRY != 0);
            b->floor[i] = -INFINITY;
            if (b->late[i]) continue;
            o[n] = load(b, i, w, n, &message[n]);
            at[n++] = i;
        }
        for (int j = 0; j < 4; j++) x[j] = w->x + (j < n ? j : 0) * s->stride;
        if (n > 1) s->kernels->dots4(s->directions, s->clusters, s->stride, s->d, x, w->centre);
        else if (n == 1) s->kernels->dots(s->directions, s->clusters, s->stride, s->d, x[0], w->centre[0]);
        w->touched += (int64_t)n * s->clusters;
        for (int j = 0; j < n; j++) search_one(b, at[j], &o[j], w->centre[j], w);
    }
}

/* The scores of one cluster's rows, for queries `from` .. from + 3 of a group of n. */
static void scan_cell(
    const fgi_search *s, const fgi_cell *cell, const one_query *o, int from, int n, fgi_search_scratch *w) {
    const float *x[4];
    const int some = n - from < 4 ? n - from : 4;
    for (int j = 0; j < 4; j++) x[j] = o[from + (j < some ? j : 0)].x;
    if (some > 1) s->kernels->dots4(cell->rows, cell->n, s->stride, s->d, x, w->scores);
    else s->kernels->dots(cell->rows, cell->n, s->stride, s->d, x[0], w->scores[0]);
    for (int j = 0; j < some; j++) {
        fgi_top *top = &w->top[from + j];
        for (int32_t k = 0; k < cell->n; k++)
            if (w->scores[j][k] >= top->floor) offer(&o[from + j], top, w->scores[j][k], cell->labels[k]);
    }
}

/* Groups of queries over all clusters. */
static void second_pass(void *context, int64_t begin, int64_t end, int worker) {
    const batch *b = context;
    const fgi_search *s = b->s;
    fgi_search_scratch *w = &s->scratch[worker];
    for (int64_t group = begin; group < end; group++) {
        const int32_t *list = b->list + group * FGI_SEARCH_GROUP;
        const int64_t left = b->n_late - group * FGI_SEARCH_GROUP;
        const int n = left < FGI_SEARCH_GROUP ? (int)left : FGI_SEARCH_GROUP;
        one_query o[FGI_SEARCH_GROUP];
        fgi_message message[FGI_SEARCH_GROUP];
        for (int j = 0; j < n; j++) {
            o[j] = load(b, list[j], w, j, &message[j]);
            fgi_top_clear(&w->top[j], b->q->want, b->floor[list[j]]);
            offer_messages(s, &o[j], w, &w->top[j]);
        }
        for (int32_t c = 0; c < s->clusters; c++)
            for (int from = 0; from < n; from += 4) scan_cell(s, &s->cells[c], o, from, n, w);
        w->touched += n * s->rows;
        for (int j = 0; j < n; j++) answer(b, list[j], &w->top[j], 1);
    }
}

/* ---- by codes --------------------------------------------------------------------------------------------------- */

/* Candidates of query i: labels with messages or exclusions do not count. */
static int32_t candidates_of(const batch *b, int64_t i) {
    const fgi_search_query *q = b->q;
    int64_t n = q->candidates > q->want ? q->candidates : q->want;
    if (q->message_begin) n += q->message_begin[i + 1] - q->message_begin[i];
    if (q->excluded_begin) n += q->excluded_begin[i + 1] - q->excluded_begin[i];
    return (int32_t)(n < b->s->rows ? n : b->s->rows);
}

/* The inner products of the candidates; their rows lie anywhere, so the memory is asked for them beforehand. */
static void compute(
    const fgi_search *s, const one_query *o, const fgi_top *found, fgi_search_scratch *w, fgi_top *top) {
    enum { AHEAD = 8, LINE = 16 }; /* rows; floats of a cache line. 4 to 32 rows ahead made no difference */
    for (int32_t k = 0; k < found->n + AHEAD; k++) {
        if (k < found->n) {
            const float *row = fgi_search_at(s, found->items[k].label);
            for (int64_t at = 0; at < s->d; at += LINE) __builtin_prefetch(row + at);
        }
        if (k < AHEAD) continue;
        float score;
        const int32_t label = found->items[k - AHEAD].label;
        s->kernels->dots(fgi_search_at(s, label), 1, s->stride, s->d, o->x, &score);
        offer(o, top, score, label);
    }
    w->touched += found->n;
}

static void coded_pass(void *context, int64_t begin, int64_t end, int worker) {
    const batch *b = context;
    const fgi_search *s = b->s;
    fgi_search_scratch *w = &s->scratch[worker];
    for (int64_t i = begin; i < end; i += FGI_CODE_QUERIES) {
        const int n = end - i < FGI_CODE_QUERIES ? (int)(end - i) : FGI_CODE_QUERIES;
        fgi_top *found = w->top, *top = w->top + FGI_CODE_QUERIES;
        one_query o[FGI_CODE_QUERIES];
        fgi_message message[FGI_CODE_QUERIES];
        const float *x[FGI_CODE_QUERIES];
        for (int j = 0; j < n; j++) {
            o[j] = load(b, i + j, w, j, &message[j]);
            x[j] = o[j].x;
            fgi_top_clear(&found[j], candidates_of(b, i + j), -INFINITY);
        }
        fgi_codes_scan(s->codes, n, x, found, worker);
        for (int j = 0; j < n; j++) {
            fgi_top_cut(&found[j]);
            fgi_top_clear(top, b->q->want, -INFINITY);
            offer_messages(s, &o[j], w, top);
            compute(s, &o[j], &found[j], w, top);
            answer(b, i + j, top, found[j].n == s->rows);
        }
    }
}

typedef struct encoding {
    fgi_search *s;
    fgi_codes *codes;
} encoding;

/* Blocks of rows. */
static void encode(void *context, int64_t begin, int64_t end, int worker) {
    const encoding *e = context;
    for (int64_t k = begin * FGI_CODE_BLOCK; k < end * FGI_CODE_BLOCK && k < e->s->rows; k++)
        fgi_codes_set(e->codes, (int32_t)k, fgi_search_at(e->s, (int32_t)k), worker);
}

static int make_codes(fgi_search *s) {
    if (s->codes) return 1;
    double *mean = fgi_calloc(s->d, sizeof *mean);
    for (int64_t k = 0; mean && k < s->rows; k++) {
        const float *row = fgi_search_at(s, (int32_t)k);
        for (int32_t i = 0; i < s->d; i++) mean[i] += row[i];
    }
    for (int32_t i = 0; mean && i < s->d; i++) mean[i] /= (double)s->rows;
    encoding e = {s, fgi_codes_create(s->rows, s->d, s->threads, s->settings.seed, mean)};
    if (!e.codes) return 0;
    fgi_pool_run(s->pool, (s->rows + FGI_CODE_BLOCK - 1) / FGI_CODE_BLOCK, 16, encode, &e);
    fgi_codes_rescale(e.codes);
    s->codes = e.codes;
    return 1;
}

/* ---- checks ----------------------------------------------------------------------------------------------------- */

static fgi_rc check_list(const fgi_search *s, const int32_t *labels, int64_t begin, int64_t end, const char *what,
    int64_t i, fgi_error *err) {
    if (end < begin) return fgi_fail(err, FGI_BAD_MODEL, i, "the offsets of the %s must not decrease", what);
    for (int64_t k = begin; k < end; k++)
        if (labels[k] < 0 || labels[k] >= s->rows || (k > begin && labels[k] <= labels[k - 1]))
            return fgi_fail(err, FGI_BAD_MODEL, i, "the %s of query %lld must be ascending labels below %lld", what,
                (long long)i, (long long)s->rows);
    return FGI_OK;
}

static fgi_rc check_query(const fgi_search *s, const fgi_search_query *q, fgi_error *err) {
    if (q->stride < s->d)
        return fgi_fail(err, FGI_BAD_MODEL, -1, "queries must have %d columns, as the rows", (int)s->d);
    if (q->want < 1 || q->want > s->rows)
        return fgi_fail(
            err, FGI_BAD_ARGUMENT, -1, "%d labels are wanted of %lld rows", (int)q->want, (long long)s->rows);
    if (q->candidates < 0) return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "candidates must not be negative");
    fgi_rc rc = FGI_OK;
    for (int64_t i = 0; !rc && i < q->n; i++) {
        for (int32_t k = 0; k < s->d; k++)
            if (!isfinite(q->x[i * q->stride + k]))
                return fgi_fail(err, FGI_BAD_MODEL, i, "query %lld has an entry that is not finite", (long long)i);
        if (q->message_begin)
            rc = check_list(s, q->message_labels, q->message_begin[i], q->message_begin[i + 1], "message", i, err);
        for (int64_t k = q->message_begin ? q->message_begin[i] : 0;
             !rc && q->message_begin && k < q->message_begin[i + 1]; k++)
            if (!isfinite(q->message_values[k]))
                return fgi_fail(err, FGI_BAD_MODEL, i, "the message of query %lld is not finite", (long long)i);
        if (!rc && q->excluded_begin)
            rc =
                check_list(s, q->excluded_labels, q->excluded_begin[i], q->excluded_begin[i + 1], "exclusions", i, err);
    }
    return rc;
}

/* ---- the call --------------------------------------------------------------------------------------------------- */

/* How often bounds were in vain lately: a sliding mean over about 64 queries, from the answers in their order. */
static void remember(fgi_search *s, const batch *b) {
    for (int64_t i = 0; i < b->q->n; i++) {
        s->scanned += b->late[i];
        if (b->skip && i % RETRY != 0) continue;
        s->hopeless += b->late[i] ? (64 - s->hopeless + 15) / 16 : -((s->hopeless + 15) / 16);
    }
}

static void run(fgi_search *s, batch *b) {
    const int64_t grain = b->q->n > 64 ? 8 : 1;
    if (b->q->candidates > 0) {
        fgi_pool_run(s->pool, b->q->n, FGI_CODE_QUERIES, coded_pass, b);
    } else {
        fgi_pool_run(s->pool, b->q->n, grain, first_pass, b);
        for (int64_t i = 0; i < b->q->n; i++)
            if (b->late[i]) b->list[b->n_late++] = (int32_t)i;
        fgi_pool_run(s->pool, (b->n_late + FGI_SEARCH_GROUP - 1) / FGI_SEARCH_GROUP, 1, second_pass, b);
        if (b->q->probes == 0) remember(s, b);
    }
    s->queries += b->q->n;
    for (int32_t t = 0; t < s->threads; t++) {
        s->touched += s->scratch[t].touched;
        s->scratch[t].touched = 0;
    }
}

fgi_rc fgi_search_run(
    fgi_search *s, const fgi_search_query *q, int32_t *labels, double *values, uint8_t *proven, fgi_error *err) {
    fgi_rc rc = check_query(s, q, err);
    if (rc) return rc;
    batch b = {.s = s,
        .q = q,
        .labels = labels,
        .values = values,
        .proven = proven,
        .skip = q->probes == 0 && s->hopeless > 48};
    b.late = fgi_alloc(q->n, 1);
    b.floor = fgi_alloc(q->n, sizeof *b.floor);
    b.list = fgi_alloc(q->n, sizeof *b.list);
    int ok = b.late && b.floor && b.list;
    int32_t most = q->want;
    for (int64_t i = 0; q->candidates > 0 && i < q->n; i++)
        if (candidates_of(&b, i) > most) most = candidates_of(&b, i);
    if (q->candidates > 0) ok = ok && make_codes(s);
    for (int32_t t = 0; ok && t < s->threads; t++)
        for (int j = 0; ok && j < FGI_SEARCH_GROUP; j++) ok = fgi_top_reserve(&s->scratch[t].top[j], most);
    if (ok) run(s, &b);
    free(b.late);
    free(b.floor);
    free(b.list);
    return ok ? FGI_OK : fgi_no_memory(err);
}
