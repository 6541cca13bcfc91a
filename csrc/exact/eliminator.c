/* exact/eliminator.c - runs the buckets of a problem that exact/pose.c has posed; see exact/eliminate.h.
 *
 * After ordering everything is named by *position*: variable p is eliminated p-th. Bucket p collects the factors and
 * messages whose first variable to go is p, and sends one message over bag(p), which is consumed by the earliest
 * position in it. */
#include <string.h>
#include "base/meter.h"
#include "exact/eliminator.h"

/* Inputs of at least this many entries are freed once used; the bucket then remembers its best labels. */
enum { LARGE_INPUT = 1 << 15 };
enum { SMALL_MESSAGE = 4096 };  /* entries: their maxima are moved into the value, which keeps rounding small */
enum { STEP_STATES = 1 << 17 }; /* joint states between two looks at the clock */

fgi_eliminator *fgi_eliminator_create(const fgi_model *m) {
    fgi_eliminator *e = fgi_calloc(1, sizeof *e);
    if (!e) return NULL;
    e->m = m;
    e->orderer = fgi_orderer_create();
    e->local = fgi_alloc(m->s->n_vars, sizeof(int32_t));
    if (!e->orderer || !e->local) {
        fgi_eliminator_free(e);
        return NULL;
    }
    for (int64_t i = 0; i < m->s->n_vars; i++) e->local[i] = -1;
    return e;
}

static void drop_spares(fgi_eliminator *e) {
    for (int k = 0; k < SPARES; k++) {
        free(e->spare[k].values);
        e->spare[k].values = NULL;
    }
}

void fgi_eliminator_drop_messages(fgi_eliminator *e) {
    for (int32_t p = 0; p < e->n_messages_held; p++) {
        if (!e->keep) free(e->messages[p].values);
        free(e->messages[p].arg);
    }
    e->n_messages_held = 0;
}

void fgi_eliminator_free(fgi_eliminator *e) {
    if (!e) return;
    fgi_eliminator_drop_messages(e);
    drop_spares(e);
    fgi_orderer_free(e->orderer);
    fgi_bucket_free(&e->bucket);
    void *owned[] = {e->local, e->var, e->card, e->unary_at, e->unary, e->factor, e->factor_next, e->scope_begin,
        e->scope, e->first_factor, e->first_message, e->messages, e->scratch, e->slices, e->slice_dims, e->arena};
    for (size_t k = 0; k < sizeof owned / sizeof owned[0]; k++) free(owned[k]);
    free(e);
}

/* ---- ordering ----------------------------------------------------------------------------------------------- */

static void permute(int32_t *array, const int32_t *order, int32_t n, int32_t *scratch) {
    for (int32_t p = 0; p < n; p++) scratch[p] = array[order[p]];
    memcpy(array, scratch, (size_t)n * sizeof(int32_t));
}

static void sort_descending(int32_t *a, int64_t n) {
    for (int64_t k = 1; k < n; k++) {
        int32_t x = a[k];
        int64_t l = k;
        for (; l > 0 && a[l - 1] < x; l--) a[l] = a[l - 1];
        a[l] = x;
    }
}

fgi_rc fgi_eliminator_order(fgi_eliminator *e, double log2_limit, double effort) {
    const int32_t n = e->n;
    int64_t no_scopes = 0;
    fgi_scopes g = {n, e->card, e->n_factors, e->n_factors ? e->scope_begin : &no_scopes, e->scope};
    const fgi_bags *bags;
    fgi_rc rc = fgi_orderer_run(e->orderer, &g, log2_limit, effort, &bags);
    return rc ? rc : fgi_eliminator_use_order(e, bags);
}

fgi_rc fgi_eliminator_use_order(fgi_eliminator *e, const fgi_bags *bags) {
    const int32_t n = e->n;
    e->bags = bags;
    if (!fgi_grow(&e->first_factor, &e->first_factor_capacity, n, sizeof(int32_t)) ||
        !fgi_grow(&e->first_message, &e->first_message_capacity, n, sizeof(int32_t)) ||
        !fgi_grow(&e->messages, &e->message_capacity, n, sizeof(message)) ||
        !fgi_grow(&e->factor_next, &e->next_capacity, e->n_factors, sizeof(int32_t)))
        return FGI_NO_MEMORY;
    const fgi_bags *b = e->bags;
    permute(e->var, b->order, n, e->scratch);
    permute(e->card, b->order, n, e->scratch);
    /* The unaries stay where they are; only their offsets are permuted (the messages' sizes serve as scratch). */
    for (int32_t p = 0; p < n; p++) e->messages[p].size = e->unary_at[b->order[p]];
    for (int32_t p = 0; p < n; p++) {
        e->unary_at[p] = e->messages[p].size;
        e->messages[p] = (message){.size = 1, .next = -1};
        e->local[e->var[p]] = p;
        e->first_factor[p] = e->first_message[p] = -1;
        e->scratch[b->order[p]] = p;
    }
    for (int32_t p = 0; p < n; p++)
        for (int64_t k = b->begin[p]; k < b->begin[p + 1]; k++)
            e->messages[p].size *= e->card[b->bag[k]]; /* below 2^log2_limit */
    for (int64_t k = e->n_factors; k-- > 0;) {
        for (int64_t l = e->scope_begin[k]; l < e->scope_begin[k + 1]; l++) e->scope[l] = e->scratch[e->scope[l]];
        sort_descending(e->scope + e->scope_begin[k], e->scope_begin[k + 1] - e->scope_begin[k]);
        int32_t p = e->scope[e->scope_begin[k + 1] - 1];
        fgi_assert(p >= 0 && p < n);
        e->factor_next[k] = e->first_factor[p];
        e->first_factor[p] = (int32_t)k;
    }
    e->n_messages_held = n;
    return FGI_OK;
}

const fgi_bags *fgi_eliminator_bags(const fgi_eliminator *e) { return e->bags; }
double fgi_eliminator_value(const fgi_eliminator *e) { return fgi_sum_value(&e->value); }

double fgi_eliminator_error(const fgi_eliminator *e) {
    const double value = fgi_sum_value(&e->value);
    return e->error + (value > -INFINITY ? 0x1p-52 * fabs(value) : 0);
}

/* With the blocks of the bucket at hand: one bucket may be nearly all of the work. */
double fgi_eliminator_progress(const fgi_eliminator *e) {
    if (!e->bags || !(e->bags->work > 0)) return 1.0;
    const double states = e->open ? (double)(e->block * e->bucket.block) * (double)e->bucket.card : 0;
    return (e->work_done + states) / e->bags->work;
}

static int32_t bag_size(const fgi_eliminator *e, int32_t p) {
    fgi_assert(p >= 0 && p < e->n);
    return (int32_t)(e->bags->begin[p + 1] - e->bags->begin[p]);
}
static const int32_t *bag_of(const fgi_eliminator *e, int32_t p) {
    fgi_assert(p >= 0 && p < e->n);
    return e->bags->bag + e->bags->begin[p];
}
static int arg_size(int32_t card) {
    fgi_assert(card > 0);
    return card <= 256 ? 1 : card <= 65536 ? 2 : 4;
}

/* True when bucket p remembers its best labels so that its inputs can go. */
static int forgets_inputs(const fgi_eliminator *e, int64_t input_entries) {
    return !e->keep && input_entries >= LARGE_INPUT;
}

double fgi_eliminator_memory(const fgi_eliminator *e) {
    double live = 0, peak = 0;
    double *input = fgi_calloc(e->n, sizeof(double));
    if (!input) return INFINITY;
    for (int32_t p = 0; p < e->n; p++) {
        double size = 1, copies = 0;
        for (int32_t k = 0; k < bag_size(e, p); k++) size *= e->card[bag_of(e, p)[k]];
        for (int32_t k = e->first_factor[p]; k >= 0; k = e->factor_next[k]) {
            double copy = 8;
            for (int64_t l = e->scope_begin[k]; l < e->scope_begin[k + 1]; l++) copy *= e->card[e->scope[l]];
            copies += copy;
        }
        if (bag_size(e, p) == 0) size = 0;
        int forget = input[p] >= LARGE_INPUT;
        live += 8 * size + (forget ? arg_size(e->card[p]) * size : 0);
        peak = fmax(peak, live + copies);
        if (forget) live -= 8 * input[p];
        if (bag_size(e, p) > 0) input[bag_of(e, p)[bag_size(e, p) - 1]] += size;
    }
    free(input);
    return peak;
}

/* ---- buckets ------------------------------------------------------------------------------------------------ */

/* Strides of the factor's variables in its table (dense only). */
static void table_strides(const fgi_model *m, const fgi_view *v, int64_t *strides) {
    if (v->arity == 2) {
        strides[0] = v->transposed ? 1 : v->cols;
        strides[1] = v->transposed ? v->rows : 1;
        return;
    }
    int64_t stride = 1;
    for (int32_t k = v->arity; k-- > 0; stride *= m->s->cards[v->vars[k]]) strides[k] = stride;
}

/* Writes factor k densely over its free variables, in the layout of exact/bucket.h. */
static void slice(const fgi_eliminator *e, int32_t k, double *out) {
    const fgi_view v = fgi_factor_view(e->m, e->factor[k]);
    const int64_t begin = e->scope_begin[k];
    const int32_t n = (int32_t)(e->scope_begin[k + 1] - begin), *dims = e->scope + begin;
    if (v.kind != FGI_DENSE) { /* pairwise, both free: dims[0] slow, dims[1] fast */
        const int first_fast = e->local[v.vars[0]] == dims[1];
        for (int32_t slow = 0; slow < e->card[dims[0]]; slow++)
            for (int32_t fast = 0; fast < e->card[dims[1]]; fast++)
                *out++ = raise_score(e, first_fast ? fgi_view_at2(&v, fast, slow) : fgi_view_at2(&v, slow, fast));
        return;
    }
    int64_t strides[v.arity], mine[n];
    int32_t digit[n];
    table_strides(e->m, &v, strides);
    const double *at = v.values;
    for (int32_t l = 0; l < v.arity; l++) {
        int32_t position = e->local[v.vars[l]];
        if (position < 0) {
            at += strides[l] * e->labels[v.vars[l]];
            continue;
        }
        for (int32_t d = 0; d < n; d++)
            if (dims[d] == position) mine[d] = strides[l];
    }
    memset(digit, 0, sizeof digit);
    const int32_t fastest = e->card[dims[n - 1]];
    for (;;) {
        for (int32_t a = 0; a < fastest; a++) *out++ = raise_score(e, v.weight * at[a * mine[n - 1]]);
        int32_t d = n - 2;
        for (; d >= 0 && digit[d] + 1 == e->card[dims[d]]; d--) {
            at -= digit[d] * mine[d];
            digit[d] = 0;
        }
        if (d < 0) return;
        digit[d]++;
        at += mine[d];
    }
}

/* Large tables are written from end to end: large pages save most of the cost of touching them first. */
static double *allocate_table(int64_t size) {
    fgi_assert(size > 0);
    double *values = fgi_alloc(size, sizeof(double));
    if (values) fgi_prefer_large_pages(values, size * (int64_t)sizeof(double));
    return values;
}

/* A spare table of about the right size. When there is none, spares are given back first, so that they never add to the
 * peak. */
static double *reuse_or_allocate(fgi_eliminator *e, int64_t size) {
    for (int k = 0; k < SPARES; k++) {
        double *values = e->spare[k].values;
        if (!values || e->spare[k].size < size || e->spare[k].size > size + size / 8) continue;
        e->spare[k].values = NULL;
        return values;
    }
    if (size >= LARGE_INPUT) drop_spares(e);
    return allocate_table(size);
}

static void release_message(fgi_eliminator *e, message *msg) {
    fgi_assert(msg->size > 0);
    for (int k = 0; k < SPARES && msg->values && msg->size >= LARGE_INPUT; k++)
        if (!e->spare[k].values) {
            e->spare[k].values = msg->values;
            e->spare[k].size = msg->size;
            msg->values = NULL;
        }
    free(msg->values);
    msg->values = NULL;
}

static double *new_message(fgi_eliminator *e, int64_t size) {
    if (!e->keep) return reuse_or_allocate(e, size);
    double *values = e->arena + e->arena_used;
    e->arena_used += size;
    fgi_assert(e->arena_used <= e->arena_capacity);
    return values;
}

/* The dims of a message to p are its bag. Unary messages join the unary scores, the first time. */
fgi_rc fgi_eliminator_collect(fgi_eliminator *e, int32_t p, int again) {
    fgi_bucket *b = &e->bucket;
    double *u = e->unary + e->unary_at[p];
    fgi_assert(p >= 0 && p < e->n);
    int64_t count = 0, entries = 0;
    for (int32_t k = e->first_factor[p]; k >= 0; k = e->factor_next[k], count++) {
        int64_t size = 1;
        for (int64_t l = e->scope_begin[k]; l < e->scope_begin[k + 1]; l++) size *= e->card[e->scope[l]];
        entries += size;
    }
    for (int32_t q = e->first_message[p]; q >= 0; q = e->messages[q].next) count++;
    if (!fgi_bucket_reserve(b, count) || !fgi_grow(&e->slices, &e->slice_capacity, entries, sizeof(double)))
        return FGI_NO_MEMORY;
    b->n_inputs = 0;
    b->card = e->card[p];
    b->unary = u;
    double *to = e->slices;
    for (int32_t k = e->first_factor[p]; k >= 0; k = e->factor_next[k]) {
        fgi_input *f = &b->inputs[b->n_inputs++];
        *f = (fgi_input){.values = to,
            .n_dims = (int32_t)(e->scope_begin[k + 1] - e->scope_begin[k]),
            .dims = e->scope + e->scope_begin[k]};
        slice(e, k, to);
        int64_t size = 1;
        for (int32_t l = 0; l < f->n_dims; l++) size *= e->card[f->dims[l]];
        to += size;
    }
    for (int32_t q = e->first_message[p]; q >= 0; q = e->messages[q].next) {
        const message *msg = &e->messages[q];
        fgi_assert(q < p && msg->values);
        if (bag_size(e, q) == 1) {
            for (int32_t a = 0; a < e->card[p] && !again; a++) u[a] += msg->values[a];
            continue;
        }
        b->inputs[b->n_inputs++] = (fgi_input){.values = msg->values, .n_dims = bag_size(e, q), .dims = bag_of(e, q)};
    }
    return FGI_OK;
}

/* One pairwise factor and nothing else but unary terms: no copy of the table is needed. */
static int is_leaf(const fgi_eliminator *e, int32_t p) {
    int32_t k = e->first_factor[p];
    if (bag_size(e, p) != 1 || k < 0 || e->factor_next[k] >= 0) return 0;
    if (fgi_factor_arity(e->m->s, e->factor[k]) != 2) return 0;
    for (int32_t q = e->first_message[p]; q >= 0; q = e->messages[q].next)
        if (bag_size(e, q) != 1) return 0;
    return 1;
}

static fgi_rc run_leaf(fgi_eliminator *e, int32_t p, double *out) {
    double *u = e->unary + e->unary_at[p];
    for (int32_t q = e->first_message[p]; q >= 0; q = e->messages[q].next)
        for (int32_t a = 0; a < e->card[p]; a++) u[a] += e->messages[q].values[a];
    const fgi_view v = fgi_factor_view(e->m, e->factor[e->first_factor[p]]);
    const int second = v.vars[1] == e->var[p];
    return fgi_bucket_leaf(
        &e->bucket, &v, second != v.transposed, u, e->card[p], e->card[bag_of(e, p)[0]], e->forbidden, out);
}

static double magnitude(double best) { return best > -INFINITY ? fabs(best) : 0; }

static double factor_magnitude(const fgi_eliminator *e, int32_t k) {
    const fgi_structure *s = e->m->s;
    return magnitude(fgi_factor_weight(s, e->factor[k]) * e->m->t->facts[s->factor_table[e->factor[k]]].max);
}

static double unary_magnitude(const fgi_eliminator *e, int32_t p) {
    return magnitude(fgi_max_of(fgi_unary(e->m, e->var[p]), e->card[p]));
}

/* Rounding in bucket p, whose best sum is `top`: one addition for each of its inputs. Scores far below the best do not
 * count (see fgi_safe_bound). Where all its inputs have their best at 0, its own factors and `top` are all that is
 * added; else it may be as much as there is. */
static void count_rounding(fgi_eliminator *e, int32_t p, double top) {
    double local = magnitude(top) + unary_magnitude(e, p);
    int64_t additions = 3;
    int normal = 1;
    for (int32_t k = e->first_factor[p]; k >= 0; k = e->factor_next[k], additions++) local += factor_magnitude(e, k);
    for (int32_t q = e->first_message[p]; q >= 0; q = e->messages[q].next, additions++) normal &= e->messages[q].normal;
    e->error += 0x1p-53 * (double)additions * (normal ? local : e->total + magnitude(top));
}

static void begin_rounding(fgi_eliminator *e) {
    e->error = e->total = 0;
    for (int32_t p = 0; p < e->n; p++) e->total += unary_magnitude(e, p);
    for (int64_t k = 0; k < e->n_factors; k++) e->total += factor_magnitude(e, (int32_t)k);
}

static void normalise(fgi_eliminator *e, int32_t p) {
    message *msg = &e->messages[p];
    if (msg->size > SMALL_MESSAGE) {
        count_rounding(e, p, e->total);
        return;
    }
    const double top = fgi_max_of(msg->values, msg->size);
    count_rounding(e, p, top);
    msg->normal = 1;
    if (top == -INFINITY || top == 0) return;
    fgi_sum_add(&e->value, top);
    for (int64_t k = 0; k < msg->size; k++) msg->values[k] -= top;
}

void fgi_eliminator_send(fgi_eliminator *e, int32_t p) {
    if (bag_size(e, p) == 0) return;
    fgi_assert(e->messages[p].next < p);
    const int32_t to = bag_of(e, p)[bag_size(e, p) - 1];
    fgi_assert(to > p && to < e->n);
    e->messages[p].next = e->first_message[to];
    e->first_message[to] = p;
}

static void end_bucket(fgi_eliminator *e, int32_t p) {
    if (bag_size(e, p) > 0) normalise(e, p);
    if (e->messages[p].arg) /* the inputs were only needed to find these */
        for (int32_t q = e->first_message[p]; q >= 0; q = e->messages[q].next) release_message(e, &e->messages[q]);
    fgi_eliminator_send(e, p);
    e->work_done += (double)(bag_size(e, p) > 0 ? e->messages[p].size : 1) * e->card[p];
    e->open = 0;
    e->p++;
}

static fgi_rc begin_bucket(fgi_eliminator *e, int32_t p) {
    message *msg = &e->messages[p];
    fgi_assert(p == e->p && !e->open && !msg->values);
    if (bag_size(e, p) == 0) {
        fgi_rc rc = fgi_eliminator_collect(e, p, 0);
        if (rc) return rc;
        double best = -INFINITY;
        for (int32_t a = 0; a < e->card[p]; a++) best = fmax(best, e->unary[e->unary_at[p] + a]);
        count_rounding(e, p, best);
        fgi_sum_add(&e->value, best);
        end_bucket(e, p);
        return FGI_OK;
    }
    msg->values = new_message(e, msg->size);
    if (!msg->values) return FGI_NO_MEMORY;
    if (is_leaf(e, p)) {
        fgi_rc rc = run_leaf(e, p, msg->values);
        if (!rc) end_bucket(e, p);
        return rc;
    }
    int64_t entries = 0;
    for (int32_t q = e->first_message[p]; q >= 0; q = e->messages[q].next) entries += e->messages[q].size;
    if (forgets_inputs(e, entries) && !(msg->arg = fgi_alloc(msg->size, (size_t)arg_size(e->card[p]))))
        return FGI_NO_MEMORY;
    fgi_rc rc = fgi_eliminator_collect(e, p, 0);
    if (!rc) rc = fgi_bucket_open(&e->bucket, bag_of(e, p), bag_size(e, p), e->card);
    e->open = !rc;
    e->block = 0;
    return rc;
}

#ifdef FGI_CHECKED
static void check_bag(const fgi_eliminator *e, int32_t p) {
    int64_t size = 1;
    for (int32_t k = 0; k < bag_size(e, p); k++) {
        const int32_t q = bag_of(e, p)[k];
        fgi_assert(q > p && q < e->n && (k == 0 || q < bag_of(e, p)[k - 1]));
        size *= e->card[q];
    }
    fgi_assert(size == e->messages[p].size);
}

static void check(const fgi_eliminator *e) {
    int64_t factors = 0;
    for (int32_t p = 0; p < e->n; p++) {
        fgi_assert(e->local[e->var[p]] == p && e->card[p] == e->m->s->cards[e->var[p]]);
        check_bag(e, p);
        for (int32_t k = e->first_factor[p]; k >= 0; k = e->factor_next[k], factors++) {
            fgi_assert(k < e->n_factors && e->scope[e->scope_begin[k + 1] - 1] == p);
            for (int64_t l = e->scope_begin[k] + 1; l < e->scope_begin[k + 1]; l++)
                fgi_assert(e->scope[l] < e->scope[l - 1]);
        }
        for (int32_t q = e->first_message[p]; q >= 0; q = e->messages[q].next) {
            fgi_assert(q < p && q < e->p && bag_of(e, q)[bag_size(e, q) - 1] == p);
            fgi_assert(e->messages[q].values || p < e->p);
        }
    }
    fgi_assert(factors == e->n_factors);
    fgi_assert(e->p >= 0 && e->p <= e->n && e->n_messages_held == e->n);
    fgi_assert(!e->open || (e->p < e->n && e->block < e->bucket.n_blocks));
    fgi_assert(e->error >= 0 && e->total >= 0);
}
#endif

fgi_rc fgi_eliminator_run(fgi_eliminator *e, int keep, double deadline, int *done) {
    if (e->p == 0 && !e->open) {
        e->keep = keep;
        begin_rounding(e);
    }
    if (e->keep && e->p == 0 && !e->open) {
        int64_t total = 0;
        for (int32_t p = 0; p < e->n; p++) total += bag_size(e, p) > 0 ? e->messages[p].size : 0;
        if (!fgi_grow(&e->arena, &e->arena_capacity, total, sizeof(double))) return FGI_NO_MEMORY;
    }
    fgi_audit_rarely(check(e));
    fgi_meter meter = {STEP_STATES, 0, deadline};
    while (e->p < e->n) {
        const int32_t p = e->p;
        int64_t work;
        if (!e->open) {
            fgi_rc rc = begin_bucket(e, p);
            if (rc) return rc;
            work = 64 + (int64_t)e->card[p] * (e->p > p && bag_size(e, p) == 1 ? e->card[bag_of(e, p)[0]] : 1);
        } else {
            const fgi_bucket *b = &e->bucket;
            int64_t per_block = b->block * b->card, chunk = STEP_STATES / per_block + 1, left = b->n_blocks - e->block;
            if (chunk > left) chunk = left;
            fgi_bucket_blocks(&e->bucket, e->block, e->block + chunk, e->messages[p].values, e->messages[p].arg,
                arg_size(e->card[p]));
            e->block += chunk;
            fgi_assert(e->block <= b->n_blocks);
            work = chunk * per_block;
            if (e->block == b->n_blocks) end_bucket(e, p);
        }
        if (fgi_meter_spend(&meter, work)) break;
    }
    *done = e->p == e->n;
    return FGI_OK;
}

void fgi_eliminator_restart(fgi_eliminator *e) {
    fgi_eliminator_drop_messages(e);
    e->n_messages_held = e->n;
    e->p = e->open = 0;
    e->arena_used = 0;
    e->work_done = 0;
    memset(&e->value, 0, sizeof e->value);
    for (int32_t p = 0; p < e->n; p++) {
        e->messages[p] = (message){NULL, NULL, e->messages[p].size, -1, 0};
        e->first_message[p] = -1;
        const double *u = fgi_unary(e->m, e->var[p]);
        for (int32_t a = 0; a < e->card[p]; a++) e->unary[e->unary_at[p] + a] = raise_score(e, u[a]);
    }
}

/* ---- labels ------------------------------------------------------------------------------------------------- */

static int32_t stored_label(const void *arg, int size, int64_t at) {
    return size == 1 ? ((const uint8_t *)arg)[at]
        : size == 2  ? ((const uint16_t *)arg)[at]
                     : ((const int32_t *)arg)[at];
}

/* Index of the present labels in the message of bucket q, with its fastest variable at 0. */
static int64_t message_index(const fgi_eliminator *e, int32_t q, const int32_t *labels, int skip_fastest) {
    const int32_t n = bag_size(e, q), *dims = bag_of(e, q);
    int64_t at = 0;
    for (int32_t k = 0; k < n; k++)
        at = at * e->card[dims[k]] + (skip_fastest && k == n - 1 ? 0 : labels[e->var[dims[k]]]);
    return at;
}

void fgi_eliminator_traceback(fgi_eliminator *e, int32_t *labels) {
    for (int32_t p = e->n; p-- > 0;) {
        const int32_t card = e->card[p], var = e->var[p];
        if (e->messages[p].arg) {
            labels[var] = stored_label(e->messages[p].arg, arg_size(card), message_index(e, p, labels, 0));
            continue;
        }
        double *u = e->unary + e->unary_at[p]; /* not needed afterwards: summed in place */
        for (int32_t q = e->first_message[p]; q >= 0; q = e->messages[q].next) {
            if (bag_size(e, q) == 1) continue;
            const double *values = e->messages[q].values + message_index(e, q, labels, 1);
            for (int32_t a = 0; a < card; a++) u[a] += values[a];
        }
        for (int32_t k = e->first_factor[p]; k >= 0; k = e->factor_next[k]) {
            const fgi_view v = fgi_factor_view(e->m, e->factor[k]);
            for (int32_t a = 0; a < card; a++) {
                labels[var] = a;
                u[a] += raise_score(e, fgi_view_score(e->m, &v, labels));
            }
        }
        int32_t best = 0;
        for (int32_t a = 1; a < card; a++)
            if (u[a] > u[best]) best = a;
        fgi_assert(best < card);
        labels[var] = best;
    }
}

double fgi_eliminator_row(const fgi_eliminator *e, int32_t p, int32_t *labels, double *row) {
    const int32_t card = e->card[p], var = e->var[p];
    memcpy(row, e->unary + e->unary_at[p], (size_t)card * sizeof(double));
    for (int32_t q = e->first_message[p]; q >= 0; q = e->messages[q].next) {
        if (bag_size(e, q) == 1) continue; /* it is among the unary scores */
        const double *values = e->messages[q].values + message_index(e, q, labels, 1);
        for (int32_t a = 0; a < card; a++) row[a] += values[a];
    }
    for (int32_t k = e->first_factor[p]; k >= 0; k = e->factor_next[k]) {
        const fgi_view v = fgi_factor_view(e->m, e->factor[k]);
        for (int32_t a = 0; a < card; a++) {
            labels[var] = a;
            row[a] += fgi_view_score(e->m, &v, labels);
        }
    }
    return fgi_max_of(row, card);
}
