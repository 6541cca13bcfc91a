/* oracle/oracle.c - the one call that answers a query, on one thread or on many; scratch memory and counters. */
#include "oracle/internal.h"
#include "base/array.h"
#include "base/pool.h"
#include "base/util.h"

/* ---- scratch ------------------------------------------------------------------------------------------------ */

static void free_room(fgi_oracle_scratch *w) {
    free(w->dense);
    free(w->by_label);
    free(w->mark);
    free(w->marked);
    free(w->bound);
    free(w->implicit);
    free(w->plus);
    free(w->position);
    free(w->labels);
    for (int k = 0; k < 2; k++) free(w->kept[k]);
    w->dense = w->marked = w->bound = w->implicit = NULL;
    w->by_label = w->plus = NULL;
    w->mark = NULL;
    w->labels = w->position = NULL;
    w->kept[0] = w->kept[1] = NULL;
    w->max_card = w->max_arity = 0;
}

int fgi_oracle_reserve(fgi_oracle_scratch *w, int32_t max_card, int32_t max_arity) {
    if (max_card <= w->max_card && max_arity <= w->max_arity) return 1;
    if (max_card < w->max_card) max_card = w->max_card;
    if (max_arity < w->max_arity) max_arity = w->max_arity;
    free_room(w);
    w->dense = fgi_calloc((int64_t)max_card * max_arity, sizeof(double));
    w->by_label = fgi_calloc(max_arity, sizeof *w->by_label);
    w->mark = fgi_calloc((int64_t)max_card * max_arity, sizeof *w->mark);
    w->marked = fgi_alloc((int64_t)max_card * max_arity, sizeof(double));
    w->bound = fgi_alloc((int64_t)max_card * max_arity, sizeof(double));
    w->implicit = fgi_alloc(2 * (int64_t)max_card + 1, sizeof(double));
    w->plus = fgi_calloc(max_arity, sizeof *w->plus);
    w->position = fgi_alloc(max_arity, sizeof(int32_t));
    w->labels = fgi_alloc((int64_t)max_card * 2, sizeof(int32_t));
    for (int k = 0; k < 2; k++) w->kept[k] = fgi_alloc(max_card, sizeof(fgi_ranked));
    if (w->dense && w->by_label && w->mark && w->marked && w->bound && w->implicit && w->plus && w->position &&
        w->labels && w->kept[0] && w->kept[1]) {
        for (int32_t k = 0; k < max_arity; k++) w->position[k] = k;
        w->max_card = max_card;
        w->max_arity = max_arity;
        return 1;
    }
    free_room(w);
    return 0;
}

int fgi_oracle_reserve_cards(fgi_oracle_scratch *w, int32_t arity) {
    return fgi_grow(&w->cards, &w->cards_capacity, arity, sizeof *w->cards);
}

/* Room for what is excluded and for the answers found on the way. */
static int reserve_banned(fgi_oracle_scratch *w, int64_t n) {
    return n <= w->banned_capacity || fgi_grow(&w->banned, &w->banned_capacity, n, sizeof *w->banned);
}

/* A query that excludes one state, as learners ask them, then needs no more room: it cannot fail. */
fgi_oracle_scratch *fgi_oracle_scratch_create(int32_t max_card, int32_t max_arity) {
    fgi_oracle_scratch *w = fgi_calloc(1, sizeof *w);
    const int32_t card = max_card < 1 ? 1 : max_card, arity = max_arity < 2 ? 2 : max_arity;
    if (w && reserve_banned(w, 1) && fgi_oracle_reserve(w, card, arity)) return w;
    fgi_oracle_scratch_free(w);
    return NULL;
}

void fgi_oracle_scratch_free(fgi_oracle_scratch *w) {
    if (!w) return;
    free_room(w);
    for (int k = 0; k < 3; k++) free(w->frontier[k]);
    free(w->banned);
    free(w->cards);
    free(w->sums);
    free(w->scores);
    free(w->found);
    free(w->seen);
    free(w);
}

fgi_oracle_work fgi_oracle_scratch_work(const fgi_oracle_scratch *w) {
    fgi_oracle_work work = w->work;
    work.touched += w->touched;
    return work;
}

/* Labels ascend, so a message of as many numbers as there are labels is there by label. */
void fgi_oracle_spread(const fgi_oracle_query *q, int32_t arity, const int32_t *cards, fgi_oracle_scratch *w) {
    for (int32_t k = 0; k < arity; k++) {
        double *dense = w->dense + (int64_t)k * w->max_card;
        const int is_there = q->messages && q->messages[k].n == cards[k];
        w->by_label[k] = is_there ? q->messages[k].values : dense;
        for (int32_t l = 0; q->messages && !is_there && l < q->messages[k].n; l++)
            dense[q->messages[k].labels[l]] = q->messages[k].values[l];
    }
}

void fgi_oracle_gather(const fgi_oracle_query *q, int32_t arity, fgi_oracle_scratch *w) {
    for (int32_t k = 0; q->messages && k < arity; k++) {
        double *dense = w->dense + (int64_t)k * w->max_card;
        for (int32_t l = 0; w->by_label[k] == dense && l < q->messages[k].n; l++) dense[q->messages[k].labels[l]] = 0.0;
    }
}

double fgi_message_at(const fgi_message *m, int32_t label) {
    const int64_t at = fgi_place_of(m->labels, m->n, label);
    return at >= 0 ? m->values[at] : 0.0;
}

/* ---- frontiers: heaps of nodes yet to be visited, for walks over heaps and trees ---------------------------- */

int fgi_frontier_push(fgi_oracle_scratch *w, int which, int32_t *n, fgi_ranked item) {
    if (*n == w->frontier_capacity[which] &&
        !fgi_grow(&w->frontier[which], &w->frontier_capacity[which], (int64_t)*n + 1, sizeof(fgi_ranked)))
        return 0;
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

/* ---- answers -------------------------------------------------------------------------------------------------- */

void fgi_best_insert(fgi_best *best, int64_t state, double value) {
    fgi_assert(value == value);
    int64_t k = best->n < best->capacity ? best->n++ : best->n - 1;
    for (; k > 0; k--) {
        const fgi_argmax *above = &best->items[k - 1];
        if (above->value > value || (above->value == value && above->state < state)) break;
        best->items[k] = *above;
    }
    best->items[k] = (fgi_argmax){state, value};
}

static void ban(fgi_oracle_scratch *w, int64_t state) {
    int64_t k = w->n_banned++;
    for (; k > 0 && w->banned[k - 1] > state; k--) w->banned[k] = w->banned[k - 1];
    w->banned[k] = state;
}

/* Searches until there are enough, or it cannot go on (FGI_UNSUPPORTED: the scan finds the others). */
static fgi_rc search_best(const fgi_oracle_query *q, fgi_oracle_scratch *w, fgi_best *best) {
    while (best->n < best->capacity) {
        const int64_t before = best->n;
        fgi_rc rc = q->source->ops->search(q, w, best);
        if (rc || best->n == before) return rc;
        for (int64_t k = before; k < best->n && best->capacity > 1; k++) ban(w, best->items[k].state);
    }
    return FGI_OK;
}

/* Is there a search that may try? It is told how far it may go. */
static int begins_search(const fgi_oracle_query *q, fgi_oracle_scratch *w) {
    const fgi_source_ops *ops = q->source->ops;
    w->limit = INT64_MAX;
    if (!ops->search || q->path == FGI_BY_SCAN) return 0;
    if (q->path == FGI_BY_SEARCH) return 1;
    if (ops->prefers_scan(q)) return 0;
    const int64_t patience = ops->patience ? ops->patience(q) : INT64_MAX - w->touched;
    w->limit = w->touched + patience;
    return patience > 0;
}

fgi_rc fgi_oracle_answer(const fgi_oracle_query *q, fgi_oracle_scratch *w, fgi_argmax *out) {
    const fgi_source_ops *ops = q->source->ops;
    const int64_t n = q->n_best > 1 ? q->n_best : 1;
    fgi_best best = {out, 0, n};
    if (!reserve_banned(w, q->n_excluded + (n > 1 ? n : 0))) return FGI_NO_MEMORY;
    for (int64_t k = 0; k < q->n_excluded; k++) w->banned[k] = q->excluded[k];
    w->n_banned = q->n_excluded;
    w->work.calls++;
    fgi_rc rc = begins_search(q, w) ? search_best(q, w, &best) : FGI_UNSUPPORTED;
    if (rc == FGI_UNSUPPORTED) {
        fgi_best rest = {out + best.n, 0, n - best.n};
        w->work.scans++;
        rc = ops->scan(q, w, &rest);
        best.n += rest.n;
    }
    for (int64_t k = best.n; k < n; k++) out[k] = (fgi_argmax){-1, -INFINITY};
    return rc;
}

/* ---- from outside: checked, and by several threads --------------------------------------------------------------- */

struct fgi_oracle {
    int32_t threads;
    fgi_pool *pool;
    fgi_oracle_scratch **scratch; /* one per thread */
};

fgi_rc fgi_oracle_create(int32_t threads, fgi_oracle **out, fgi_error *err) {
    if (threads < 1) return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "threads must be 1 or more, not %d", threads);
    fgi_oracle *o = fgi_calloc(1, sizeof *o);
    int complete = o && (o->scratch = fgi_calloc(threads, sizeof *o->scratch)) != NULL;
    for (int32_t k = 0; complete && k < threads; k++, o->threads++)
        complete = (o->scratch[k] = fgi_oracle_scratch_create(1, 2)) != NULL;
    if (complete && threads > 1) complete = (o->pool = fgi_pool_create(threads)) != NULL;
    if (complete) {
        *out = o;
        return FGI_OK;
    }
    fgi_oracle_free(o);
    return fgi_no_memory(err);
}

void fgi_oracle_free(fgi_oracle *o) {
    if (!o) return;
    fgi_pool_free(o->pool);
    for (int32_t k = 0; k < o->threads; k++) fgi_oracle_scratch_free(o->scratch[k]);
    free(o->scratch);
    free(o);
}

void fgi_oracle_get_work(const fgi_oracle *o, fgi_oracle_work *work) {
    *work = (fgi_oracle_work){0};
    for (int32_t k = 0; k < o->threads; k++) {
        const fgi_oracle_work one = fgi_oracle_scratch_work(o->scratch[k]);
        work->calls += one.calls;
        work->scans += one.scans;
        work->touched += one.touched;
        work->products += one.products;
        work->unproven += one.unproven;
    }
}

static fgi_rc check_message(const fgi_message *m, int32_t k, int32_t card, int64_t index, fgi_error *err) {
    if (m->n < 0) return fgi_fail(err, FGI_BAD_ARGUMENT, index, "message %d has a negative length", k);
    for (int32_t l = 0; l < m->n; l++) {
        if (m->labels[l] < 0 || m->labels[l] >= card || (l > 0 && m->labels[l] <= m->labels[l - 1]))
            return fgi_fail(
                err, FGI_BAD_ARGUMENT, index, "message %d: labels must be ascending and in 0..%d", k, card - 1);
        if (!isfinite(m->values[l]))
            return fgi_fail(err, FGI_BAD_ARGUMENT, index, "message %d: values must be finite", k);
    }
    return FGI_OK;
}

static fgi_rc check_query(const fgi_oracle_query *q, int64_t index, fgi_error *err) {
    const fgi_source_ops *ops = q->source->ops;
    const int32_t arity = ops->arity(q);
    fgi_rc rc = FGI_OK;
    int64_t states = 1;
    if (arity < 1) return fgi_fail(err, FGI_BAD_ARGUMENT, index, "there is no factor %lld", (long long)q->factor);
    if (q->path < FGI_BY_SIZE || q->path > FGI_BY_SEARCH)
        return fgi_fail(err, FGI_BAD_ARGUMENT, index, "there is no access path %d", q->path);
    if (q->n_best < 0) return fgi_fail(err, FGI_BAD_ARGUMENT, index, "n_best must not be negative");
    for (int32_t k = 0; k < arity; k++) {
        const int32_t card = ops->card(q, k);
        states = states > INT64_MAX / card ? INT64_MAX : states * card;
        if (q->messages && (rc = check_message(&q->messages[k], k, card, index, err))) return rc;
    }
    for (int64_t k = 0; k < q->n_excluded; k++)
        if (q->excluded[k] < 0 || q->excluded[k] >= states || (k > 0 && q->excluded[k] <= q->excluded[k - 1]))
            return fgi_fail(err, FGI_BAD_ARGUMENT, index, "excluded states must be ascending and in 0..%lld",
                (long long)(states - 1));
    rc = ops->check ? ops->check(q, err) : FGI_OK;
    if (rc && err) err->index = index;
    return rc;
}

typedef struct batch {
    const fgi_oracle *o;
    const fgi_oracle_query *queries;
    const int64_t *begin; /* where a query's answers begin; NULL: one each */
    fgi_argmax *answers;
    const int32_t *variables; /* the variables whose max-marginals are wanted */
    double *marginals;        /* max-marginals of these variables */
    fgi_rc *rc;               /* one per worker */
} batch;

static void answer_range(void *context, int64_t begin, int64_t end, int worker) {
    const batch *b = context;
    for (int64_t k = begin; k < end; k++) {
        fgi_rc rc = fgi_oracle_answer(&b->queries[k], b->o->scratch[worker], b->answers + (b->begin ? b->begin[k] : k));
        if (rc) b->rc[worker] = rc;
    }
}

/* All queries, by all threads: how many a piece, so that threads neither wait for each other nor ask too often. */
static fgi_rc run_batch(batch *b, int64_t n, fgi_body body) {
    const fgi_oracle *o = b->o;
    fgi_rc rc = FGI_OK;
    b->rc = fgi_calloc(o->threads, sizeof *b->rc);
    if (!b->rc) return FGI_NO_MEMORY;
    fgi_pool_run(o->pool, n, n < 64 * (int64_t)o->threads ? 1 : 16, body, b);
    for (int32_t k = 0; k < o->threads; k++)
        if (b->rc[k]) rc = b->rc[k];
    free(b->rc);
    return rc;
}

/* Why a batch was not answered, when all questions were well put. */
static fgi_rc fail_batch(fgi_rc rc, fgi_error *err) {
    if (rc == FGI_NO_MEMORY) return fgi_no_memory(err);
    return fgi_fail(err, rc, -1, "a rule has too many states or totals for this question");
}

fgi_rc fgi_oracle_ask(fgi_oracle *o, const fgi_oracle_query *queries, int64_t n, fgi_argmax *answers, fgi_error *err) {
    fgi_rc rc = FGI_OK;
    int64_t total = 0, *begin = NULL;
    for (int64_t k = 0; !rc && k < n; k++) {
        rc = check_query(&queries[k], k, err);
        total += queries[k].n_best > 1 ? queries[k].n_best : 1;
    }
    if (rc || n == 0) return rc;
    if (total > n && !(begin = fgi_alloc(n, sizeof *begin))) rc = FGI_NO_MEMORY;
    for (int64_t k = 0, at = 0; begin && k < n; k++) {
        begin[k] = at;
        at += queries[k].n_best > 1 ? queries[k].n_best : 1;
    }
    batch b = {.o = o, .queries = queries, .begin = begin, .answers = answers};
    if (!rc) rc = run_batch(&b, n, answer_range);
    free(begin);
    return rc ? fail_batch(rc, err) : FGI_OK;
}

/* ---- max-marginals --------------------------------------------------------------------------------------------- */

static void marginals_range(void *context, int64_t begin, int64_t end, int worker) {
    const batch *b = context;
    for (int64_t k = begin; k < end; k++) {
        fgi_oracle_scratch *w = b->o->scratch[worker];
        const fgi_oracle_query *q = &b->queries[k];
        const fgi_rc rc = q->source->ops->marginals(q, b->variables[k], w, b->marginals + b->begin[k]);
        w->work.calls++;
        w->work.scans++;
        if (rc) b->rc[worker] = rc;
    }
}

fgi_rc fgi_oracle_ask_marginals(
    fgi_oracle *o, const fgi_oracle_query *queries, const int32_t *variables, int64_t n, double *out, fgi_error *err) {
    int64_t *begin = fgi_alloc(n, sizeof *begin), at = 0;
    fgi_rc rc = begin ? FGI_OK : fgi_no_memory(err);
    for (int64_t k = 0; !rc && k < n; k++) {
        const fgi_source_ops *ops = queries[k].source->ops;
        begin[k] = at;
        if ((rc = check_query(&queries[k], k, err))) break;
        if (!ops->marginals) rc = fgi_fail(err, FGI_UNSUPPORTED, k, "this source has one variable only");
        else if (variables[k] < 0 || variables[k] >= ops->arity(&queries[k]))
            rc = fgi_fail(err, FGI_BAD_ARGUMENT, k, "there is no variable %d in this factor", variables[k]);
        else at += ops->card(&queries[k], variables[k]);
    }
    batch b = {.o = o, .queries = queries, .begin = begin, .variables = variables, .marginals = out};
    if (!rc && (rc = run_batch(&b, n, marginals_range))) rc = fail_batch(rc, err);
    free(begin);
    return rc;
}
