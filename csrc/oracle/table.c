/* oracle/table.c - static tables as sources: one factor's view of a table, and all factors of a model. Small tables are
 * scanned, large ones searched in sorted order (oracle/pairwise.c, oracle/general.c), implicit ones worked out
 * (oracle/implicit.c). */
#include "oracle/internal.h"
#include "base/util.h"

/* Below this many entries a scan is as fast as any search (decision 0016). */
enum { SCAN_BELOW = 1600 };

/* ---- how far a search goes --------------------------------------------------------------------------------------- */

/* A search may touch this many entries, and one more for so many states, until a scan of the table is the better way:
 * an entry costs it that much more, and most where the table lies beyond the cache. Two messages cost as much as an
 * entry. Measured by bench/papers/adversarial.py. */
typedef struct pace {
    int32_t at_least, states, far_states;
} pace;
static const pace PAIRS = {12, 260, 700}, MORE_VARIABLES = {12, 140, 140};
enum { CACHED = 1 << 18 };  /* states */
enum { IMPLICIT_PACE = 2 }; /* entries for each label, where labels are all that a scan goes through */

static int64_t patience_of(const fgi_oracle_query *q, fgi_table_kind kind) {
    const fgi_source_ops *ops = q->source->ops;
    const int32_t arity = ops->arity(q);
    int64_t states = 1, labels = 0, messages = 0;
    for (int32_t k = 0; k < arity; k++) {
        const int32_t card = ops->card(q, k);
        states *= card;
        labels += card;
        if (q->messages) messages += q->messages[k].n;
    }
    if (kind != FGI_DENSE) return messages + IMPLICIT_PACE * labels;
    const pace *p = arity == 2 ? &PAIRS : &MORE_VARIABLES;
    const int64_t cached = states < CACHED ? states : CACHED;
    const int64_t entries = p->at_least + cached / p->states + (states - cached) / p->far_states - messages / 2;
    return entries > 0 ? messages + entries : 0;
}

/* ---- one factor's view ------------------------------------------------------------------------------------------- */

static const fgi_table_source *table_of(const fgi_oracle_query *q) { return (const fgi_table_source *)q->source; }

static int32_t table_card(const fgi_table_source *t, int32_t k) {
    if (t->view.arity == 2) return k == 0 ? t->view.rows : t->view.cols;
    return t->cards[k];
}

static int64_t states_of(const fgi_table_source *t) {
    int64_t n = 1;
    for (int32_t k = 0; k < t->view.arity; k++) n *= table_card(t, k);
    return n;
}

static int reserve(const fgi_table_source *t, fgi_oracle_scratch *w) {
    int32_t card = 2;
    for (int32_t k = 0; k < t->view.arity; k++)
        if (table_card(t, k) > card) card = table_card(t, k);
    return fgi_oracle_reserve(w, card, t->view.arity);
}

static int lists_all_labels(const fgi_table_source *t, const fgi_oracle_query *q) {
    return q->messages && q->messages[0].n == t->view.rows && q->messages[1].n == t->view.cols;
}

/* Bounds go by messages on all labels. */
static fgi_rc search_slices(
    const fgi_table_source *t, const fgi_oracle_query *q, fgi_oracle_scratch *w, fgi_best *best) {
    if (best->capacity > 1 || !(t->view.weight > 0) || !lists_all_labels(t, q)) return FGI_UNSUPPORTED;
    fgi_oracle_spread(q, 2, (const int32_t[]){t->view.rows, t->view.cols}, w);
    return fgi_scan_slices(t, w, best); /* nothing to gather */
}

static fgi_rc search_table(
    const fgi_table_source *t, const fgi_oracle_query *q, fgi_oracle_scratch *w, fgi_best *best) {
    fgi_argmax found;
    fgi_rc rc = FGI_UNSUPPORTED;
    if (!reserve(t, w)) return FGI_NO_MEMORY;
    if (t->slices) return search_slices(t, q, w, best);
    if (t->view.kind != FGI_DENSE) rc = fgi_implicit_argmax(t, q, w, &found);
    else if (t->order && t->view.arity == 2) rc = fgi_pairwise_argmax(t, q, w, &found);
    else if (t->order && t->view.arity > 2 && q->messages) rc = fgi_general_argmax(t, q, w, &found);
    if (!rc && found.state >= 0) best->items[best->n++] = found;
    return rc;
}

/* States come in ascending order, so an equal value never displaces one. */
static double least_wanted(const fgi_best *best) {
    return best->n == best->capacity ? best->items[best->n - 1].value : -INFINITY;
}

/* Any number of variables. */
static void scan_general(const fgi_table_source *t, const fgi_oracle_scratch *w, fgi_best *best) {
    const fgi_view *v = &t->view;
    const int32_t arity = v->arity, last = table_card(t, arity - 1);
    const int64_t n = states_of(t);
    const double *inner = w->by_label[arity - 1];
    double *outer = w->bound, least = -INFINITY; /* outer: the messages of the labels before the last one */
    for (int64_t state = 0; state < n; state += last) {
        int64_t rest = state / last;
        for (int32_t k = arity - 2; k >= 0; k--) {
            outer[k] = w->by_label[k][rest % table_card(t, k)];
            rest /= table_card(t, k);
        }
        for (int32_t b = 0; b < last; b++) {
            double value = v->weight * v->values[state + b];
            for (int32_t k = 0; k < arity - 1; k++) value -= outer[k];
            value -= inner[b];
            if (value > least && !fgi_is_banned(w, state + b)) {
                fgi_best_insert(best, state + b, value);
                least = least_wanted(best);
            }
        }
    }
}

static fgi_rc scan_table(const fgi_table_source *t, const fgi_oracle_query *q, fgi_oracle_scratch *w, fgi_best *best) {
    if (!reserve(t, w)) return FGI_NO_MEMORY;
    if (t->view.arity == 2) {
        fgi_oracle_spread(q, 2, (const int32_t[]){t->view.rows, t->view.cols}, w);
        fgi_scan_pair(t, w, best);
    } else {
        fgi_oracle_spread(q, t->view.arity, t->cards, w);
        scan_general(t, w, best);
        w->touched += states_of(t);
    }
    fgi_oracle_gather(q, t->view.arity, w);
    return FGI_OK;
}

static fgi_rc table_marginals(
    const fgi_table_source *t, const fgi_oracle_query *q, int32_t variable, fgi_oracle_scratch *w, double *out) {
    const fgi_view *v = &t->view;
    const int32_t pair[2] = {v->rows, v->cols}, *cards = v->arity == 2 ? pair : t->cards;
    if (!reserve(t, w)) return FGI_NO_MEMORY;
    if (v->arity != 2 && !fgi_oracle_reserve_sums(w, 2 * states_of(t) + 2)) return FGI_NO_MEMORY;
    fgi_oracle_spread(q, v->arity, cards, w);
    w->touched += fgi_factor_marginals(v, cards, variable, w->by_label, w, out);
    fgi_oracle_gather(q, v->arity, w);
    return FGI_OK;
}

static int32_t view_arity(const fgi_oracle_query *q) { return table_of(q)->view.arity; }
static int32_t view_card(const fgi_oracle_query *q, int32_t k) { return table_card(table_of(q), k); }
static fgi_rc view_search(const fgi_oracle_query *q, fgi_oracle_scratch *w, fgi_best *best) {
    return search_table(table_of(q), q, w, best);
}
static fgi_rc view_scan(const fgi_oracle_query *q, fgi_oracle_scratch *w, fgi_best *best) {
    return scan_table(table_of(q), q, w, best);
}
/* Implicit tables: a search costs as much as there are messages, a scan as there are labels. */
static int prefers_scan(const fgi_table_source *t, const fgi_oracle_query *q) {
    return t->view.kind == FGI_DENSE ? !t->order && !t->slices : lists_all_labels(t, q);
}

static int64_t view_patience(const fgi_oracle_query *q) {
    const fgi_table_source *t = table_of(q);
    return t->slices ? INT32_MAX : patience_of(q, t->view.kind); /* slices know when to end */
}

static int view_prefers_scan(const fgi_oracle_query *q) { return prefers_scan(table_of(q), q); }

static fgi_rc view_marginals(const fgi_oracle_query *q, int32_t variable, fgi_oracle_scratch *w, double *out) {
    return table_marginals(table_of(q), q, variable, w, out);
}

const fgi_source_ops fgi_table_ops = {.arity = view_arity,
    .card = view_card,
    .search = view_search,
    .scan = view_scan,
    .prefers_scan = view_prefers_scan,
    .patience = view_patience,
    .marginals = view_marginals};

/* ---- the order of a model's table ------------------------------------------------------------------------------ */

static int can_be_ordered(const fgi_structure *s, int32_t table) {
    if (s->table_kind[table] != FGI_DENSE) return 0;
    const int64_t n = s->values_begin[table + 1] - s->values_begin[table];
    for (int64_t k = s->dims_begin[table]; k < s->dims_begin[table + 1]; k++)
        if (n / s->dims[k] > INT32_MAX) return 0; /* positions in a slice are int32 */
    return n > 0;
}

static int wants_order(const fgi_structure *s, int32_t table) {
    return can_be_ordered(s, table) && s->values_begin[table + 1] - s->values_begin[table] >= SCAN_BELOW;
}

/* Publishes a new order; if another thread was faster, its order is used. */
static fgi_sorted *publish(const fgi_model *m, int32_t table, fgi_sorted *o) {
    struct fgi_sorted *now = NULL;
    if (atomic_compare_exchange_strong(&m->t->order[table], &now, o)) return o;
    fgi_sorted_release(o);
    return now;
}

static int order_step(const fgi_model *m, int32_t table, int64_t entries, fgi_sorted_builder **builder, fgi_rc *rc) {
    const fgi_structure *s = m->s;
    if (!*builder) {
        if (atomic_load(&m->t->order[table])) return 1;
        *builder = fgi_sorted_builder_create(s->table_arity[table], s->dims + s->dims_begin[table]);
    }
    if (*builder && !fgi_sorted_builder_step(*builder, m->t->values + s->values_begin[table], entries)) return 0;
    fgi_sorted *o = *builder ? fgi_sorted_builder_finish(*builder) : NULL;
    *builder = NULL;
    if (o) publish(m, table, o);
    else *rc = FGI_NO_MEMORY;
    return 1;
}

int fgi_model_order_step(const fgi_model *m, int32_t table, int64_t entries, fgi_sorted_builder **builder, fgi_rc *rc) {
    *rc = FGI_OK;
    return !wants_order(m->s, table) || order_step(m, table, entries, builder, rc);
}

/* The order of a table of any size: who asks by search is answered by search. */
static fgi_sorted *order_of(const fgi_model *m, int32_t table, fgi_rc *rc) {
    fgi_sorted_builder *builder = NULL;
    *rc = FGI_OK;
    fgi_sorted *o = atomic_load_explicit(&m->t->order[table], memory_order_acquire);
    if (o || !can_be_ordered(m->s, table)) return o;
    order_step(m, table, INT64_MAX, &builder, rc);
    return atomic_load(&m->t->order[table]);
}

fgi_sorted *fgi_model_order(const fgi_model *m, int32_t table, fgi_rc *rc) {
    *rc = FGI_OK;
    return wants_order(m->s, table) ? order_of(m, table, rc) : NULL;
}

/* ---- all factors of a model -------------------------------------------------------------------------------------- */

typedef struct model_source {
    fgi_source base;
    const fgi_model *model; /* not a snapshot: it follows the changes of its owner */
} model_source;

static const fgi_model *model_of(const fgi_oracle_query *q) { return ((const model_source *)q->source)->model; }

static int32_t factor_arity(const fgi_oracle_query *q) {
    const fgi_structure *s = model_of(q)->s;
    return q->factor < 0 || q->factor >= s->n_factors ? 0 : fgi_factor_arity(s, q->factor);
}

static int32_t factor_card(const fgi_oracle_query *q, int32_t k) {
    const fgi_structure *s = model_of(q)->s;
    return s->cards[fgi_factor_vars(s, q->factor)[k]];
}

/* The view of the factor as the model is now; the label counts of its variables go to the scratch. */
static fgi_rc open_factor(const fgi_oracle_query *q, fgi_oracle_scratch *w, int sorted, fgi_table_source *t) {
    const fgi_model *m = model_of(q);
    fgi_rc rc = FGI_OK;
    *t = (fgi_table_source){.base = {&fgi_table_ops}, .view = fgi_factor_view(m, q->factor)};
    t->most = &m->t->facts[t->view.table].max;
    if (!fgi_oracle_reserve_cards(w, t->view.arity)) return FGI_NO_MEMORY;
    for (int32_t k = 0; k < t->view.arity; k++) w->cards[k] = m->s->cards[t->view.vars[k]];
    t->cards = w->cards;
    if (sorted) t->order = order_of(m, t->view.table, &rc);
    return rc;
}

static fgi_rc model_search(const fgi_oracle_query *q, fgi_oracle_scratch *w, fgi_best *best) {
    fgi_table_source t;
    fgi_rc rc = open_factor(q, w, 1, &t);
    return rc ? rc : search_table(&t, q, w, best);
}

static fgi_rc model_scan(const fgi_oracle_query *q, fgi_oracle_scratch *w, fgi_best *best) {
    fgi_table_source t;
    fgi_rc rc = open_factor(q, w, 0, &t);
    return rc ? rc : scan_table(&t, q, w, best);
}

static int model_prefers_scan(const fgi_oracle_query *q) {
    const fgi_structure *s = model_of(q)->s;
    const int32_t table = s->factor_table[q->factor];
    const fgi_table_source t = {.view = fgi_factor_view(model_of(q), q->factor)};
    return t.view.kind == FGI_DENSE ? !wants_order(s, table) : prefers_scan(&t, q);
}

static int64_t model_patience(const fgi_oracle_query *q) {
    const fgi_structure *s = model_of(q)->s;
    return patience_of(q, s->table_kind[s->factor_table[q->factor]]);
}

static fgi_rc model_marginals(const fgi_oracle_query *q, int32_t variable, fgi_oracle_scratch *w, double *out) {
    fgi_table_source t;
    fgi_rc rc = open_factor(q, w, 0, &t);
    return rc ? rc : table_marginals(&t, q, variable, w, out);
}

static const fgi_source_ops model_ops = {.arity = factor_arity,
    .card = factor_card,
    .search = model_search,
    .scan = model_scan,
    .prefers_scan = model_prefers_scan,
    .patience = model_patience,
    .marginals = model_marginals};

fgi_rc fgi_model_source_create(const fgi_model *m, fgi_source **out, fgi_error *err) {
    model_source *source = fgi_alloc(1, sizeof *source);
    if (!source) return fgi_no_memory(err);
    *source = (model_source){{&model_ops}, m};
    *out = &source->base;
    return FGI_OK;
}

void fgi_model_source_free(fgi_source *source) { free(source); }
