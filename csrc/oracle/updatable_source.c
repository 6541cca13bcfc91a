/* oracle/updatable_source.c - a table that changes (oracle/updatable.h) as a source: walks in descending order over its
 * heaps for the search by regions, and a scan that goes through what is stored and, of the zeros, the best. */
#include "base/util.h"
#include "oracle/lazy.h"
#include "oracle/updatable.h"

/* ---- sorted access: frontiers ---------------------------------------------------------------------------------- */

/* frontier[side] enumerates rows or columns by maximum, frontier[WALK] the entries of one of them. */
enum { WALK = 2 };

static int push_node(fgi_access *x, int side, int32_t node) {
    const fgi_updatable *u = x->table;
    const int32_t a = u->winner[side][node];
    if (a < 0 || u->max[side][a] == -INFINITY) return 1;
    return fgi_frontier_push(x->scratch, side, &x->rank_at[side], (fgi_ranked){u->max[side][a], a, node});
}

static int updatable_rank_open(fgi_access *x, int side) {
    x->rank_at[side] = 0; /* here: the size of the frontier */
    return push_node(x, side, 1) ? 1 : -1;
}

/* The winner of the best subtree; what it beat on its way up joins the frontier. */
static int updatable_rank_next(fgi_access *x, int side, int32_t *slice_out) {
    const fgi_updatable *u = x->table;
    if (x->rank_at[side] == 0) return 0;
    const fgi_ranked top = fgi_frontier_pop(x->scratch, side, &x->rank_at[side]);
    for (int32_t k = u->n_leaves[side] + top.at; k > top.tag; k /= 2) {
        if (!push_node(x, side, k ^ 1)) return -1;
        x->scratch->limit--; /* as dear as an entry */
    }
    *slice_out = top.at;
    x->last_max = top.value;
    return 1;
}

/* Most rows of a sparse table have the maximum 0, and what follows them is negative: no need to go through them. Of
 * other values there are few. */
static void updatable_rank_skip(fgi_access *x, int side) {
    if (x->rank_at[side] && x->scratch->frontier[side][0].value <= 0.0 && x->last_max == 0.0) x->rank_at[side] = 0;
}

static int push_entry(fgi_walk *walk, int64_t place) {
    const fgi_updatable *u = walk->access->table;
    const slice *part = &u->slices[walk->side][walk->slice];
    if (place >= part->n) return 1;
    const entry *e = &u->entries[part->heap[place]];
    return fgi_frontier_push(
        walk->access->scratch, WALK, &walk->at, (fgi_ranked){e->value, e->label[1 - walk->side], (int32_t)place});
}

static int updatable_walk_open(fgi_access *x, fgi_walk *walk, int side, int32_t a) {
    *walk = (fgi_walk){
        .access = x, .side = side, .slice = a, .zero = ((const fgi_updatable *)x->table)->slices[side][a].first_zero};
    return push_entry(walk, 0) ? 1 : -1; /* walk->at: the size of the frontier */
}

/* The next label that is not stored, or the label count. */
static int32_t next_zero(fgi_walk *walk) {
    const fgi_updatable *u = walk->access->table;
    const int32_t n = u->n[1 - walk->side];
    if (u->slices[walk->side][walk->slice].n == n) return walk->zero = n;
    while (walk->zero < n &&
        (walk->side == 0 ? updatable_find(u, walk->slice, walk->zero) : updatable_find(u, walk->zero, walk->slice)))
        walk->zero++;
    return walk->zero;
}

static int updatable_walk_next(fgi_walk *walk, int32_t *other, double *theta) {
    const fgi_updatable *u = walk->access->table;
    if (walk->at == 0 || walk->access->scratch->frontier[WALK][0].value < 0.0) { /* no entry is 0 */
        const int32_t zero = next_zero(walk);
        if (zero < u->n[1 - walk->side]) {
            *other = zero;
            *theta = 0.0;
            walk->zero++;
            return 1;
        }
    }
    if (walk->at == 0) return 0;
    const fgi_ranked top = fgi_frontier_pop(walk->access->scratch, WALK, &walk->at);
    if (!push_entry(walk, 2 * (int64_t)top.tag + 1) || !push_entry(walk, 2 * (int64_t)top.tag + 2)) return -1;
    *other = top.at;
    *theta = top.value;
    return top.value > -INFINITY;
}

static double updatable_walk_below(fgi_walk *walk, double theta) {
    const fgi_updatable *u = walk->access->table;
    const double next = walk->at ? walk->access->scratch->frontier[WALK][0].value : -INFINITY;
    if (next == theta) return nextafter(theta, -INFINITY);
    if (theta > 0.0 && next < 0.0 && next_zero(walk) < u->n[1 - walk->side]) return 0.0;
    return next;
}

static double updatable_entry(const fgi_access *x, int32_t a, int32_t b) { return updatable_stored(x->table, a, b); }

/* ---- as a source ------------------------------------------------------------------------------------------------ */

static const fgi_updatable *table_of(const fgi_oracle_query *q) { return (const fgi_updatable *)q->source; }
static int32_t updatable_arity(const fgi_oracle_query *q) { return q->factor == 0 ? 2 : 0; }
static int32_t updatable_card(const fgi_oracle_query *q, int32_t k) { return table_of(q)->n[k]; }
static int updatable_reserve(const fgi_updatable *u, fgi_oracle_scratch *w) {
    return fgi_oracle_reserve(w, u->n[0] > u->n[1] ? u->n[0] : u->n[1], 2);
}

static fgi_rc updatable_search(const fgi_oracle_query *q, fgi_oracle_scratch *w, fgi_best *best) {
    const fgi_updatable *u = table_of(q);
    if (u->dense) return FGI_UNSUPPORTED;
    if (!updatable_reserve(u, w)) return FGI_NO_MEMORY;
    fgi_access x = {.n = {u->n[0], u->n[1]},
        .max = {u->max[0], u->max[1]},
        .entry = updatable_entry,
        .rank_open = updatable_rank_open,
        .rank_next = updatable_rank_next,
        .rank_skip = updatable_rank_skip,
        .walk_open = updatable_walk_open,
        .walk_next = updatable_walk_next,
        .walk_below = updatable_walk_below,
        .scratch = w,
        .table = u};
    fgi_argmax found;
    fgi_rc rc = fgi_regions_argmax(&x, u->scale, q, &found);
    if (!rc && found.state >= 0) best->items[best->n++] = found;
    return rc;
}

/* A table without sorted access, as others are. */
static fgi_table_source array_of(const fgi_updatable *u) {
    return (fgi_table_source){.base = {&fgi_table_ops},
        .view = {
            .kind = FGI_DENSE, .arity = 2, .values = u->dense, .weight = u->scale, .rows = u->n[0], .cols = u->n[1]}};
}

/* Labels of one variable, those with the smallest message first. */
static fgi_lazy by_message(const fgi_updatable *u, int32_t side, const fgi_oracle_scratch *w) {
    fgi_ranked *items = w->kept[side];
    for (int32_t a = 0; a < u->n[side]; a++) items[a] = (fgi_ranked){0.0 - w->by_label[side][a], a, 0};
    return fgi_lazy_make(items, u->n[side]);
}

/* Can no state with at most this value, none below `lowest`, be among the best any more? */
static int is_beaten(const fgi_best *best, double value, int64_t lowest) {
    if (best->n < best->capacity) return value == -INFINITY;
    const fgi_argmax *last = &best->items[best->n - 1];
    return value < last->value || (value == last->value && lowest > last->state);
}

/* The zeros of a row, the smallest messages first; past entries that are stored. */
static void scan_zeros(const fgi_updatable *u, int32_t a, fgi_lazy *cols, fgi_oracle_scratch *w, fgi_best *best) {
    const int64_t row = (int64_t)a * u->n[1];
    for (int32_t k = 0; k < u->n[1]; k++) {
        const int32_t b = fgi_lazy_at(cols, k, &w->touched)->at;
        const double value = (0.0 - w->by_label[0][a]) - w->by_label[1][b];
        if (is_beaten(best, value, row)) return;
        if (is_beaten(best, value, row + b)) continue;
        w->touched++;
        if (!updatable_find(u, a, b) && !fgi_is_banned(w, row + b)) fgi_best_offer(best, row + b, value);
    }
}

/* All that is stored, then the rows by their messages: as long as there are entries and labels, not states. */
static void scan_sorted(const fgi_updatable *u, fgi_oracle_scratch *w, fgi_best *best) {
    for (int64_t k = 0; k < u->n_entries; k++) {
        const entry *e = &u->entries[k];
        const int64_t state = (int64_t)e->label[0] * u->n[1] + e->label[1];
        const double value = (u->scale * e->value - w->by_label[0][e->label[0]]) - w->by_label[1][e->label[1]];
        if (!is_beaten(best, value, state) && !fgi_is_banned(w, state)) fgi_best_offer(best, state, value);
    }
    w->touched += u->n_entries + u->n[0] + u->n[1];
    fgi_lazy rows = by_message(u, 0, w), cols = by_message(u, 1, w);
    const double least = w->by_label[1][fgi_lazy_at(&cols, 0, &w->touched)->at];
    for (int32_t k = 0; k < u->n[0]; k++) {
        const int32_t a = fgi_lazy_at(&rows, k, &w->touched)->at;
        const double bound = (0.0 - w->by_label[0][a]) - least;
        if (is_beaten(best, bound, -1)) break;
        if (!is_beaten(best, bound, (int64_t)a * u->n[1])) scan_zeros(u, a, &cols, w, best);
    }
}

static fgi_rc updatable_scan(const fgi_oracle_query *q, fgi_oracle_scratch *w, fgi_best *best) {
    const fgi_updatable *u = table_of(q);
    if (!updatable_reserve(u, w)) return FGI_NO_MEMORY;
    fgi_oracle_spread(q, 2, u->n, w);
    if (u->dense) {
        const fgi_table_source table = array_of(u);
        fgi_scan_pair(&table, w, best);
    } else {
        scan_sorted(u, w, best);
    }
    fgi_oracle_gather(q, 2, w);
    return FGI_OK;
}

/* What the labels have by the zeros of a sorted table: the best message with an entry that is not stored. */
static void zero_marginals(const fgi_updatable *u, int32_t side, const double *other, double *out) {
    const int32_t n = u->n[1 - side];
    int32_t top = 0;
    for (int32_t b = 1; b < n; b++)
        if (other[b] < other[top]) top = b;
    for (int32_t a = 0; a < u->n[side]; a++) {
        const int is_stored = (side ? updatable_find(u, top, a) : updatable_find(u, a, top)) != NULL;
        out[a] = is_stored ? -INFINITY : 0.0 - other[top];
        for (int32_t b = 0; is_stored && b < n; b++)
            if (0.0 - other[b] > out[a] && !(side ? updatable_find(u, b, a) : updatable_find(u, a, b)))
                out[a] = 0.0 - other[b];
    }
}

static fgi_rc updatable_marginals(const fgi_oracle_query *q, int32_t side, fgi_oracle_scratch *w, double *out) {
    const fgi_updatable *u = table_of(q);
    if (!updatable_reserve(u, w)) return FGI_NO_MEMORY;
    fgi_oracle_spread(q, 2, u->n, w);
    const double *other = w->by_label[1 - side];
    if (u->dense) {
        const fgi_table_source table = array_of(u);
        w->touched += fgi_pair_marginals(&table.view, side, other, w, out);
    } else {
        zero_marginals(u, side, other, out);
        for (int64_t k = 0; k < u->n_entries; k++) {
            const entry *e = &u->entries[k];
            double *best = &out[e->label[side]];
            *best = fgi_larger(*best, u->scale * e->value - other[e->label[1 - side]]);
        }
        w->touched += u->n_entries + u->n[side];
    }
    fgi_oracle_gather(q, 2, w);
    return FGI_OK;
}

static int updatable_prefers_scan(const fgi_oracle_query *q) { return table_of(q)->dense != NULL; }

/* A scan goes through entries and labels; an entry of a search is looked up in the hash. So long may a search be for
 * the scan that follows to cost a third more (decision 0012). */
static int64_t updatable_patience(const fgi_oracle_query *q) {
    enum {
        CACHED = 1 << 13, /* entries and labels that fit into the cache */
        SCANNED = 30,     /* three times what a scan goes through in the time of an entry of a search */
        SCANNED_FAR = 90, /* the same beyond the cache */
        MESSAGES = 8,     /* messages that cost as much as an entry of a search */
        LEAST = 12        /* entries that any search may look at */
    };
    const fgi_updatable *u = table_of(q);
    const int64_t messages = q->messages ? (int64_t)q->messages[0].n + q->messages[1].n : 0;
    const int64_t all = u->n_entries + u->n[0] + u->n[1], cached = all < CACHED ? all : CACHED;
    const int64_t entries = LEAST + cached / SCANNED + (all - cached) / SCANNED_FAR - messages / MESSAGES;
    return entries > 0 ? messages + entries : 0;
}

const fgi_source_ops fgi_updatable_ops = {.arity = updatable_arity,
    .card = updatable_card,
    .search = updatable_search,
    .scan = updatable_scan,
    .prefers_scan = updatable_prefers_scan,
    .patience = updatable_patience,
    .marginals = updatable_marginals};
