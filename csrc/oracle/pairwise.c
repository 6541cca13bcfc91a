/* oracle/pairwise.c - the sublinear oracle of a pairwise factor: four regions, sorted access, bounds.
 *
 * A state (a, b) lies in one of four regions (docs/mathematics.md, section 3), by whether a has a message
 * delta_1(a) and b a message delta_2(b):
 *
 *     both     pairs of messages, pruned by (rowmax(a) - delta_1(a)) - min delta_2, and its mirror image
 *     only a   the sorted row a, past columns with messages; skipped where rowmax(a) - delta_1(a) is too small
 *     only b   the sorted column b, likewise
 *     neither  rows (or columns) by descending maximum, each walked past columns (rows) with messages
 *
 * Rounding is monotone, so a bound computed with the same operations in the same order as the value is never below it:
 * no slack is needed, and a dense scan gives the same bits. What is left are ties: an equal value must still be looked
 * at if its flat index may be lower.
 *
 * Messages can rule out just what the lists begin with; then the search goes through most of the table, at several
 * times the cost of a scan. So every loop looks at fgi_oracle_is_spent and gives up: functions then return -1, as they
 * do when memory is short. */
#include "oracle/internal.h"
#include "oracle/lazy.h"

/* Where many columns can still win beside a row, its sorted list is walked first (decision 0016). */
enum {
    LEAST_AHEAD = 5, /* columns from which on it is */
    MOST_AHEAD = 16  /* entries of the list, at most */
};

typedef struct lookup {
    fgi_access *x;
    fgi_oracle_scratch *w;
    fgi_message message[2];
    double weight;
    double least[2]; /* smallest message, at most 0: what the other side may hope for */
    int32_t top[2];  /* which message's slice has the largest bound; -1: there is none */
    int marked[2];
    int hinted; /* the caller named a good state */
    fgi_argmax best;
} lookup;

static void mark(lookup *look, int side) {
    if (look->marked[side]) return;
    look->marked[side] = 1;
    uint32_t *marks = look->w->mark + (int64_t)side * look->w->max_card;
    double *marked = look->w->marked + (int64_t)side * look->w->max_card;
    for (int32_t k = 0; k < look->message[side].n; k++) {
        marks[look->message[side].labels[k]] = look->w->epoch;
        marked[look->message[side].labels[k]] = look->message[side].values[k];
    }
}

static int has_message(const lookup *look, int side, int32_t label) {
    return look->w->mark[(int64_t)side * look->w->max_card + label] == look->w->epoch;
}

static int64_t flat(const lookup *look, int side, int32_t slice, int32_t other) {
    return side == 0 ? (int64_t)slice * look->x->n[1] + other : (int64_t)other * look->x->n[1] + slice;
}

/* May a slice with this bound hold something better? With an equal bound, a row after the best one's cannot. */
static int hopeful(const lookup *look, int side, int32_t slice, double bound) {
    if (bound != look->best.value) return bound > look->best.value;
    return look->best.state >= 0 && (side == 1 || (int64_t)slice * look->x->n[1] <= look->best.state);
}

/* The value of entry theta of a slice with message delta when the other label has message d, or the bound when it may
 * have any: subtracted in the order of the variables, whichever of them the slice belongs to. */
static double both_value(const lookup *look, int side, double theta, double delta, double d) {
    return side == 0 ? (look->weight * theta - delta) - d : (look->weight * theta - d) - delta;
}

/* Walks down the row or column `slice`, whose own message is delta. First it looks for the best entry without a message
 * on the other side (not if `settled`: then there is no need). With `rest`, it also takes the entries that have one as
 * they come, goes on for them for a while where they may be better, and leaves in *rest an upper bound on the entries
 * it has not seen. Returns 1 if an entry without message was offered, 0 if not, -1 if it cannot go on. */
static int walk_slice(lookup *look, int side, int32_t slice, double delta, int settled, double *rest) {
    fgi_walk walk;
    int32_t other, ahead = look->message[1 - side].n / 4; /* no more than the pairs it may save */
    double theta;
    int status = look->x->walk_open(look->x, &walk, side, slice), found = 0;
    if (status < 0) return status;
    mark(look, 1 - side);
    if (ahead > MOST_AHEAD) ahead = MOST_AHEAD;
    const double *messages = look->w->marked + (int64_t)(1 - side) * look->w->max_card;
    while ((status = look->x->walk_next(&walk, &other, &theta)) > 0) {
        look->w->touched++;
        if (fgi_oracle_is_spent(look->w)) return -1;
        const double value = look->weight * theta - delta;
        if (value == -INFINITY || !hopeful(look, side, slice, value)) settled = 1; /* nothing larger follows */
        if (settled &&
            (!rest || value == -INFINITY || ahead-- == 0 ||
                !hopeful(look, side, slice, both_value(look, side, theta, delta, look->least[1 - side]))))
            break;
        const int64_t state = flat(look, side, slice, other);
        if (fgi_is_banned(look->w, state)) continue;
        if (has_message(look, 1 - side, other)) {
            if (rest) fgi_argmax_offer(&look->best, state, both_value(look, side, theta, delta, messages[other]));
            continue;
        }
        if (settled) continue;
        fgi_argmax_offer(&look->best, state, value);
        found = 1;
        /* Entries equal to theta that follow have higher indices; smaller ones matter only if rounding makes them tie.
         */
        if ((look->weight == 1.0 && delta == 0.0) || look->weight * look->x->walk_below(&walk, theta) - delta < value)
            settled = 1;
        if (settled && !rest) break;
    }
    if (rest) *rest = status > 0 ? theta : -INFINITY;
    return status < 0 ? status : found;
}

/* What is known of every message's slice: an upper bound on its entries not seen so far, at first its maximum. */
static double *rest_of(const lookup *look, int side) { return look->w->bound + (int64_t)side * look->w->max_card; }

static double slice_bound(const lookup *look, int side, int32_t k) {
    return look->weight * rest_of(look, side)[k] - look->message[side].values[k];
}

static void bound_messages(lookup *look, int side) {
    const fgi_message *m = &look->message[side];
    double *rest = rest_of(look, side), top = -INFINITY;
    look->least[side] = 0.0;
    look->top[side] = -1;
    for (int32_t k = 0; k < m->n; k++) {
        rest[k] = look->x->max[side][m->labels[k]];
        const double bound = slice_bound(look, side, k);
        if (m->values[k] < look->least[side]) look->least[side] = m->values[k];
        if (bound > top) {
            top = bound;
            look->top[side] = k;
        }
    }
    look->w->touched += m->n;
}

static int walk_message(lookup *look, int side, int32_t k) {
    const fgi_message *m = &look->message[side];
    if (!hopeful(look, side, m->labels[k], slice_bound(look, side, k))) return 0;
    return walk_slice(look, side, m->labels[k], m->values[k], 0, rest_of(look, side) + k);
}

/* Regions "only a" (side 0) and "only b" (side 1); the most promising slice first, for the sake of the others' bounds.
 */
static int one_message(lookup *look, int side) {
    const int32_t top = look->top[side];
    if (top < 0 || slice_bound(look, side, top) < look->best.value || look->message[1 - side].n == look->x->n[1 - side])
        return 0;
    if (walk_message(look, side, top) < 0) return -1;
    for (int32_t k = 0; k < look->message[side].n; k++)
        if (k != top && walk_message(look, side, k) < 0) return -1;
    return 0;
}

/* The messages of one side whose bound, with the best the other side may offer, is hopeful: rows by descending bound,
 * columns by ascending message (kept as its negative: x - d is x + (-d), to the bit). */
static fgi_lazy keep_hopeful(lookup *look, int side) {
    const fgi_message *m = &look->message[side];
    fgi_ranked *kept = look->w->kept[side];
    int32_t n = 0;
    for (int32_t k = 0; k < m->n; k++) {
        double bound = both_value(look, side, rest_of(look, side)[k], m->values[k], look->least[1 - side]);
        if (hopeful(look, side, m->labels[k], bound))
            kept[n++] = (fgi_ranked){side == 0 ? bound : -m->values[k], m->labels[k], k};
    }
    return fgi_lazy_make(kept, n);
}

/* All pairs of one row: a good state to start from when the caller has none. */
static void try_row(lookup *look, int32_t k) {
    const fgi_message *second = &look->message[1];
    const int32_t a = look->message[0].labels[k];
    for (int32_t l = 0; l < second->n; l++) {
        const double theta = look->weight * look->x->entry(look->x, a, second->labels[l]);
        const int64_t state = (int64_t)a * look->x->n[1] + second->labels[l];
        if (theta > -INFINITY && !fgi_is_banned(look->w, state))
            fgi_argmax_offer(&look->best, state, (theta - look->message[0].values[k]) - second->values[l]);
    }
    look->w->touched += second->n;
}

/* How many columns the bound of row k alone lets through, up to `most`. */
static int32_t count_hopeful(lookup *look, double bound, fgi_lazy *cols, int32_t most) {
    int32_t n = 0;
    while (n < most && bound + fgi_lazy_at(cols, n, &look->w->touched)->value >= look->best.value) n++;
    return n;
}

/* The first n columns beside row k, whose message is delta. */
static int try_columns(lookup *look, int32_t k, double delta, fgi_lazy *cols, int32_t n) {
    const int32_t a = look->message[0].labels[k];
    const double row_rest = rest_of(look, 0)[k];
    for (int32_t c = 0; c < n; c++) {
        const fgi_ranked *col = fgi_lazy_at(cols, c, &look->w->touched);
        const double col_rest = rest_of(look, 1)[col->tag];
        look->w->touched++;
        if (fgi_oracle_is_spent(look->w)) return -1;
        if (!hopeful(look, 0, a, (look->weight * (row_rest < col_rest ? row_rest : col_rest) - delta) + col->value))
            continue;
        const double theta = look->weight * look->x->entry(look->x, a, col->at);
        const int64_t state = (int64_t)a * look->x->n[1] + col->at;
        if (theta > -INFINITY && !fgi_is_banned(look->w, state))
            fgi_argmax_offer(&look->best, state, (theta - delta) + col->value);
    }
    return 0;
}

/* Region "both": best first, until the bounds say stop. Where many columns would have to be tried, the first entries of
 * the sorted row often settle it sooner. */
static int both_messages(lookup *look) {
    if (!look->hinted && look->top[0] >= 0 && look->message[0].n > LEAST_AHEAD) try_row(look, look->top[0]);
    if (!look->message[0].n || !look->message[1].n) return 0;
    fgi_lazy rows = keep_hopeful(look, 0), cols = {0};
    if (rows.n) cols = keep_hopeful(look, 1);
    const int32_t few = cols.n < LEAST_AHEAD ? cols.n : LEAST_AHEAD;
    for (int32_t r = 0; r < rows.n; r++) {
        const fgi_ranked *row = fgi_lazy_at(&rows, r, &look->w->touched);
        if (fgi_oracle_is_spent(look->w)) return -1;
        if (row->value < look->best.value) break;
        const int32_t k = row->tag;
        const double delta = look->message[0].values[k];
        double *rest = rest_of(look, 0) + k;
        if (count_hopeful(look, slice_bound(look, 0, k), &cols, few) == LEAST_AHEAD &&
            *rest == look->x->max[0][row->at] && walk_slice(look, 0, row->at, delta, 1, rest) < 0)
            return -1;
        const int32_t n = count_hopeful(look, slice_bound(look, 0, k), &cols, cols.n);
        if (try_columns(look, k, delta, &cols, n) < 0) return -1;
    }
    return 0;
}

/* Region "neither". Rows by descending maximum prove it when the columns with messages do not hold the maxima of many
 * rows, columns when the rows do not: after every slice that brought nothing, the other side gets a turn, and whichever
 * side ends first has proven it. */
static int no_message(lookup *look) {
    if (look->message[0].n == look->x->n[0] || look->message[1].n == look->x->n[1]) return 0;
    int opened[2] = {0, 0}, side = 0, status;
    int32_t slice;
    for (;;) {
        if (!opened[side]) {
            if (look->x->rank_open(look->x, side) < 0) return -1;
            opened[side] = 1;
        }
        if ((status = look->x->rank_next(look->x, side, &slice)) <= 0) return status;
        look->w->touched++;
        if (fgi_oracle_is_spent(look->w)) return -1;
        double bound = look->weight * look->x->max[side][slice];
        if (bound == -INFINITY || bound < look->best.value) return 0;
        if (!hopeful(
                look, side, slice, bound)) { /* equal, and all rows to come with this maximum have higher indices */
            if (look->weight == 1.0) return 0;
            look->x->rank_skip(look->x, side);
            continue;
        }
        mark(look, side);
        if (has_message(look, side, slice)) continue;
        if ((status = walk_slice(look, side, slice, 0.0, 0, NULL)) < 0) return status;
        if (status == 0) side = 1 - side;
    }
}

/* A state the caller expects to be good; it makes the first bounds sharp. */
static void try_hint(lookup *look, int64_t hint) {
    int32_t a = (int32_t)(hint / look->x->n[1]), b = (int32_t)(hint % look->x->n[1]);
    if (hint < 0 || a >= look->x->n[0] || fgi_is_banned(look->w, hint)) return;
    double theta = look->weight * look->x->entry(look->x, a, b);
    look->w->touched++;
    look->hinted = hint > 0; /* 0 is also what a caller without any leaves there */
    if (theta > -INFINITY)
        fgi_argmax_offer(
            &look->best, hint, (theta - fgi_message_at(&look->message[0], a)) - fgi_message_at(&look->message[1], b));
}

fgi_rc fgi_regions_argmax(fgi_access *x, double weight, const fgi_oracle_query *q, fgi_argmax *out) {
    lookup look = {.x = x, .w = x->scratch, .weight = weight, .best = {-1, -INFINITY}};
    if (q->messages) {
        look.message[0] = q->messages[0];
        look.message[1] = q->messages[1];
    }
    fgi_oracle_epoch(look.w);
    try_hint(&look, q->hint);
    bound_messages(&look, 0);
    bound_messages(&look, 1);
    if (one_message(&look, 0) < 0 || one_message(&look, 1) < 0 || both_messages(&look) < 0 || no_message(&look) < 0)
        return fgi_oracle_is_spent(look.w) ? FGI_UNSUPPORTED : FGI_NO_MEMORY;
    *out = look.best;
    return FGI_OK;
}

/* ---- sorted access to a static table --------------------------------------------------------------------------- */

static double static_entry(const fgi_access *x, int32_t a, int32_t b) {
    const fgi_view *v = x->table;
    return v->transposed ? v->values[(int64_t)b * v->rows + a] : v->values[(int64_t)a * v->cols + b];
}

static fgi_axis *axis_of(const fgi_access *x, int side) {
    return &x->order->axes[((const fgi_view *)x->table)->transposed ? 1 - side : side];
}

static int static_rank_open(fgi_access *x, int side) {
    x->rank_at[side] = 0;
    return 1;
}

static int static_rank_next(fgi_access *x, int side, int32_t *slice) {
    const fgi_axis *axis = axis_of(x, side);
    if (x->rank_at[side] == axis->n_live) return 0;
    *slice = axis->rank[x->rank_at[side]++];
    return 1;
}

static void static_rank_skip(fgi_access *x, int side) {
    x->rank_at[side] = axis_of(x, side)->run_end[x->rank_at[side] - 1];
}

static int static_walk_open(fgi_access *x, fgi_walk *walk, int side, int32_t slice) {
    const fgi_axis *axis = axis_of(x, side);
    const int rows = axis == &x->order->axes[0]; /* whether the axis is the rows of the table, not of the factor */
    *walk = (fgi_walk){.access = x, .side = side, .slice = slice};
    walk->list = atomic_load_explicit(&axis->lists[slice], memory_order_acquire);
    walk->step = rows ? 1 : axis->n;
    walk->base = rows ? slice * axis->inner : slice;
    return 1;
}

static int static_walk_next(fgi_walk *walk, int32_t *other, double *theta) {
    fgi_access *x = walk->access;
    const double *values = ((const fgi_view *)x->table)->values;
    if (!walk->list || walk->at == walk->list->n) {
        if (walk->list && walk->list->complete) return 0;
        int32_t axis = (int32_t)(axis_of(x, walk->side) - x->order->axes);
        const fgi_list *longer =
            fgi_sorted_extend(x->order, values, axis, walk->slice, walk->list, &x->scratch->touched);
        if (!longer) return -1;
        walk->list = longer;
        if (walk->at == longer->n) return 0;
    }
    *other = walk->list->at[walk->at++];
    *theta = values[walk->base + walk->step * *other];
    return 1;
}

static double static_walk_below(fgi_walk *walk, double theta) {
    fgi_access *x = walk->access;
    int32_t axis = (int32_t)(axis_of(x, walk->side) - x->order->axes);
    return fgi_sorted_below(x->order, ((const fgi_view *)x->table)->values, axis, walk->slice, walk->list, walk->at - 1,
        theta, &x->scratch->touched);
}

fgi_rc fgi_pairwise_argmax(
    const fgi_table_source *t, const fgi_oracle_query *q, fgi_oracle_scratch *w, fgi_argmax *out) {
    fgi_access x = {.n = {t->view.rows, t->view.cols},
        .entry = static_entry,
        .rank_open = static_rank_open,
        .rank_next = static_rank_next,
        .rank_skip = static_rank_skip,
        .walk_open = static_walk_open,
        .walk_next = static_walk_next,
        .walk_below = static_walk_below,
        .scratch = w,
        .table = &t->view,
        .order = t->order};
    x.max[0] = axis_of(&x, 0)->max;
    x.max[1] = axis_of(&x, 1)->max;
    return fgi_regions_argmax(&x, t->view.weight, q, out);
}
