/* oracle/updatable.c - a pairwise table whose entries change, with the sorted access the oracle needs.
 *
 * Only non-zero entries are stored, so a learned 4424 x 4424 table costs memory for what has been learned. Each entry
 * is in two binary heaps, of its row and of its column, and knows its place in both; the rows (columns) themselves are
 * the leaves of a tournament tree by (maximum descending, index ascending). A point update moves the entry in its heaps
 * and replays its row and its column: O(log K). The entries of a row in descending order are the heap taken apart
 * lazily, through a frontier of heap nodes whose parents have been visited: O(k log k) for the first k, the heap itself
 * untouched. Zeros need no structure: they come between the positive and the negative entries, in ascending order of
 * what is not stored.
 *
 * All of that pays from some size on. A small table is an array that is scanned. */
#include "oracle/internal.h"
#include "base/array.h"
#include "base/kernels.h"
#include "base/util.h"

typedef struct entry {
    double value;
    int32_t label[2]; /* row, column */
    int32_t place[2]; /* in the heap of the row, of the column */
} entry;

typedef struct slice { /* one row or column */
    int32_t *heap;     /* ids of its entries */
    int32_t n, capacity;
    int32_t first_zero; /* all before this one are stored */
} slice;

struct fgi_updatable {
    fgi_source base;
    double scale; /* an entry is scale * value */
    int32_t n[2];
    entry *entries;
    int64_t n_entries, capacity;
    int32_t *slots;  /* hash of (row, column): id + 1, 0 for empty; linear probing */
    int64_t n_slots; /* a power of two */
    slice *slices[2];
    double *max[2];
    int32_t *winner[2]; /* tournament tree: node k has children 2k and 2k+1, leaves begin at n_leaves; -1: no slice */
    int32_t n_leaves[2];
    int64_t heap_bytes;
    double *dense; /* a table without sorted access: rows * cols values, and nothing of the above but n_entries */
};

/* Tables up to this many entries are scanned. Measured on gdmm learning of chains, updates and all else included: with
 * 8, 26 and 50 labels sorted access takes 1.4, 1.4 and 1.3 times as long as scans, with 100 the same, with 200 0.7
 * times. */
enum { SCAN_UP_TO = 80 * 80 };

/* Far from underflow: once a table is scaled, no product of an entry that is set and the scale rounds to 0. */
static const double LEAST_SCALE = 0x1p-200, LEAST_STORED = 0x1p-700;

/* ---- entries by row and column ----------------------------------------------------------------------------------- */

static int64_t home_slot(const fgi_updatable *u, int32_t a, int32_t b) {
    uint64_t key = (uint64_t)a * (uint64_t)u->n[1] + (uint64_t)b;
    key = (key ^ (key >> 31)) * 0x9E3779B97F4A7C15u;
    return (int64_t)((key ^ (key >> 29)) & (uint64_t)(u->n_slots - 1));
}

/* The slot that holds the entry, or the empty one where it belongs. */
static int64_t find_slot(const fgi_updatable *u, int32_t a, int32_t b) {
    int64_t at = home_slot(u, a, b);
    for (; u->slots[at]; at = (at + 1) & (u->n_slots - 1)) {
        const entry *e = &u->entries[u->slots[at] - 1];
        if (e->label[0] == a && e->label[1] == b) break;
    }
    return at;
}

static const entry *find(const fgi_updatable *u, int32_t a, int32_t b) {
    int32_t id = u->slots[find_slot(u, a, b)];
    return id ? &u->entries[id - 1] : NULL;
}

static int grow_hash(fgi_updatable *u) {
    int32_t *old = u->slots;
    const int64_t n = u->n_slots ? 2 * u->n_slots : 64;
    int32_t *slots = fgi_calloc(n, sizeof(int32_t));
    if (!slots) return 0;
    u->slots = slots;
    u->n_slots = n;
    for (int64_t id = 0; id < u->n_entries; id++)
        u->slots[find_slot(u, u->entries[id].label[0], u->entries[id].label[1])] = (int32_t)id + 1;
    free(old);
    return 1;
}

/* Empties a slot and moves later entries of the same cluster up, so that no search stops too early. */
static void clear_slot(fgi_updatable *u, int64_t hole) {
    const int64_t mask = u->n_slots - 1;
    for (int64_t at = (hole + 1) & mask; u->slots[at]; at = (at + 1) & mask) {
        const entry *e = &u->entries[u->slots[at] - 1];
        if (((at - home_slot(u, e->label[0], e->label[1])) & mask) < ((at - hole) & mask)) continue;
        u->slots[hole] = u->slots[at];
        hole = at;
    }
    u->slots[hole] = 0;
}

/* ---- heaps of a row or column, and the tournament over them ------------------------------------------------- */

static int before(const fgi_updatable *u, int side, int32_t x, int32_t y) {
    const entry *e = &u->entries[x], *f = &u->entries[y];
    return e->value > f->value || (e->value == f->value && e->label[1 - side] < f->label[1 - side]);
}

static void put_at(fgi_updatable *u, int side, slice *s, int32_t place, int32_t id) {
    s->heap[place] = id;
    u->entries[id].place[side] = place;
}

/* Restores the heap after the entry at `place` changed. */
static void sift(fgi_updatable *u, int side, slice *s, int32_t place) {
    const int32_t id = s->heap[place];
    for (; place > 0 && before(u, side, id, s->heap[(place - 1) / 2]); place = (place - 1) / 2)
        put_at(u, side, s, place, s->heap[(place - 1) / 2]);
    for (int64_t child; (child = 2 * (int64_t)place + 1) < s->n; place = (int32_t)child) {
        if (child + 1 < s->n && before(u, side, s->heap[child + 1], s->heap[child])) child++;
        if (!before(u, side, s->heap[child], id)) break;
        put_at(u, side, s, place, s->heap[child]);
    }
    put_at(u, side, s, place, id);
}

static int wins(const fgi_updatable *u, int side, int32_t x, int32_t y) {
    if (x < 0 || y < 0) return y < 0;
    return u->max[side][x] > u->max[side][y] || (u->max[side][x] == u->max[side][y] && x < y);
}

static void replay(fgi_updatable *u, int side, int32_t a) {
    const slice *s = &u->slices[side][a];
    double max = s->n < u->n[1 - side] ? 0.0 : -INFINITY; /* is there a zero */
    if (s->n && u->entries[s->heap[0]].value > max) max = u->entries[s->heap[0]].value;
    if (max == u->max[side][a]) return;
    u->max[side][a] = max;
    for (int64_t k = (u->n_leaves[side] + (int64_t)a) / 2; k > 0; k /= 2) {
        int32_t x = u->winner[side][2 * k], y = u->winner[side][2 * k + 1];
        u->winner[side][k] = wins(u, side, x, y) ? x : y;
    }
}

static int reserve_heap(fgi_updatable *u, slice *s) {
    if (s->n < s->capacity) return 1;
    const int32_t capacity = s->capacity < 4 ? 4
        : s->capacity > INT32_MAX / 2        ? INT32_MAX
                                             : s->capacity + s->capacity / 2;
    if (!fgi_resize(&s->heap, capacity, sizeof *s->heap)) return 0;
    u->heap_bytes += (capacity - s->capacity) * (int64_t)sizeof *s->heap;
    s->capacity = capacity;
    return 1;
}

static int reserve_entry(fgi_updatable *u) {
    if (u->n_entries + 1 > u->n_slots / 4 * 3 && !grow_hash(u)) return 0;
    if (u->n_entries < u->capacity) return 1;
    return u->n_entries < INT32_MAX && fgi_grow(&u->entries, &u->capacity, u->n_entries + 1, sizeof *u->entries);
}

/* ---- updates -------------------------------------------------------------------------------------------------- */

static int insert(fgi_updatable *u, const int32_t label[2], double value) {
    if (!reserve_entry(u) || !reserve_heap(u, &u->slices[0][label[0]]) || !reserve_heap(u, &u->slices[1][label[1]]))
        return 0;
    const int32_t id = (int32_t)u->n_entries;
    u->slots[find_slot(u, label[0], label[1])] = id + 1;
    u->entries[u->n_entries++] = (entry){value, {label[0], label[1]}, {0, 0}};
    for (int side = 0; side < 2; side++) {
        slice *s = &u->slices[side][label[side]];
        put_at(u, side, s, s->n, id);
        sift(u, side, s, s->n++);
    }
    for (slice *s = &u->slices[0][label[0]]; s->first_zero < u->n[1] && find(u, label[0], s->first_zero);)
        s->first_zero++;
    for (slice *s = &u->slices[1][label[1]]; s->first_zero < u->n[0] && find(u, s->first_zero, label[1]);)
        s->first_zero++;
    return 1;
}

static void drop(fgi_updatable *u, int32_t id) {
    const entry gone = u->entries[id];
    for (int side = 0; side < 2; side++) {
        slice *s = &u->slices[side][gone.label[side]];
        const int32_t place = gone.place[side], moved = s->heap[--s->n];
        if (place < s->n) {
            put_at(u, side, s, place, moved);
            sift(u, side, s, place);
        }
        if (gone.label[1 - side] < s->first_zero) s->first_zero = gone.label[1 - side];
    }
    clear_slot(u, find_slot(u, gone.label[0], gone.label[1]));
    const int32_t last = (int32_t)--u->n_entries;
    if (id == last) return;
    const entry e = u->entries[last]; /* the last entry takes the free id */
    u->slots[find_slot(u, e.label[0], e.label[1])] = id + 1;
    u->entries[id] = e;
    for (int side = 0; side < 2; side++) u->slices[side][e.label[side]].heap[e.place[side]] = id;
}

static int put(fgi_updatable *u, int32_t a, int32_t b, double value) {
    if (u->scale != 1.0 && fabs(value) < LEAST_STORED) value = 0.0;
    if (u->dense) {
        double *at = u->dense + (int64_t)a * u->n[1] + b;
        u->n_entries += (value != 0.0) - (*at != 0.0);
        *at = value + 0.0; /* no -0 */
        return 1;
    }
    const int32_t label[2] = {a, b}, id = u->slots[find_slot(u, a, b)] - 1;
    if (id < 0 && value == 0.0) return 1;
    if (id < 0) {
        if (!insert(u, label, value)) return 0;
    } else if (value == 0.0) {
        drop(u, id);
    } else {
        u->entries[id].value = value;
        for (int side = 0; side < 2; side++) sift(u, side, &u->slices[side][label[side]], u->entries[id].place[side]);
    }
    replay(u, 0, a);
    replay(u, 1, b);
    return 1;
}

/* Stores the entries as they are: the scale is 1 again. */
static void restore_scale(fgi_updatable *u) {
    const double scale = u->scale;
    const int64_t n = u->dense ? (int64_t)u->n[0] * u->n[1] : 0;
    u->scale = 1.0;
    for (int64_t k = 0; k < n; k++) {
        if (u->dense[k] == 0.0) continue;
        u->dense[k] *= scale;
        if (fabs(u->dense[k]) < LEAST_STORED) u->dense[k] = 0.0, u->n_entries--;
    }
    if (u->dense) return;
    for (int64_t k = 0; k < u->n_entries; k++) u->entries[k].value *= scale; /* heaps keep their order */
    for (int side = 0; side < 2; side++)
        for (int32_t a = 0; a < u->n[side]; a++) u->max[side][a] *= scale;
    for (int64_t k = u->n_entries; k-- > 0;) { /* last first: the one that takes a free place has been looked at */
        const entry e = u->entries[k];
        if (fabs(e.value) < LEAST_STORED) put(u, e.label[0], e.label[1], 0.0);
    }
}

static fgi_rc update(fgi_updatable *u, int64_t n, const int32_t *rows, const int32_t *cols, const double *values,
    int add, fgi_error *err) {
    for (int64_t k = 0; k < n; k++) {
        if (rows[k] < 0 || rows[k] >= u->n[0] || cols[k] < 0 || cols[k] >= u->n[1])
            return fgi_fail(err, FGI_BAD_ARGUMENT, k, "there is no entry (%d, %d)", rows[k], cols[k]);
        if (!(values[k] < INFINITY))
            return fgi_fail(err, FGI_BAD_ARGUMENT, k, "value %lld is NaN or +inf", (long long)k);
    }
    for (int64_t k = 0; k < n; k++) {
        double value = values[k] + (add ? fgi_updatable_get(u, rows[k], cols[k]) : 0.0);
        if (!(value < INFINITY))
            return fgi_fail(err, FGI_BAD_ARGUMENT, k, "the sum at (%d, %d) is not a number", rows[k], cols[k]);
        if (u->scale != 1.0 && !(value / u->scale < INFINITY)) restore_scale(u);
        if (u->scale != 1.0) value /= u->scale;
        if (!put(u, rows[k], cols[k], value)) return fgi_no_memory(err);
    }
    return FGI_OK;
}

fgi_rc fgi_updatable_set(
    fgi_updatable *u, int64_t n, const int32_t *rows, const int32_t *cols, const double *values, fgi_error *err) {
    return update(u, n, rows, cols, values, 0, err);
}

fgi_rc fgi_updatable_add(
    fgi_updatable *u, int64_t n, const int32_t *rows, const int32_t *cols, const double *values, fgi_error *err) {
    return update(u, n, rows, cols, values, 1, err);
}

static const fgi_source_ops updatable_ops;

/* ---- life ----------------------------------------------------------------------------------------------------- */

static int init_side(fgi_updatable *u, int side) {
    const int32_t n = u->n[side];
    int64_t leaves = 1;
    while (leaves < n) leaves *= 2;
    if (leaves > INT32_MAX / 2) return 0;
    u->n_leaves[side] = (int32_t)leaves;
    u->slices[side] = fgi_calloc(n, sizeof(slice));
    u->max[side] = fgi_calloc(n, sizeof(double));
    u->winner[side] = fgi_alloc(2 * leaves, sizeof(int32_t));
    if (!u->slices[side] || !u->max[side] || !u->winner[side]) return 0;
    for (int64_t k = 0; k < leaves; k++) u->winner[side][leaves + k] = k < n ? (int32_t)k : -1;
    for (int64_t k = leaves - 1; k > 0; k--)
        u->winner[side][k] = u->winner[side][2 * k]; /* all are 0: the first wins */
    return 1;
}

fgi_rc fgi_updatable_create(
    int32_t rows, int32_t cols, int32_t path, const double *values, fgi_updatable **out, fgi_error *err) {
    if (rows < 1 || cols < 1) return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "a table of %d x %d", rows, cols);
    fgi_updatable *u = fgi_calloc(1, sizeof *u);
    if (!u) return fgi_no_memory(err);
    u->base.ops = &updatable_ops;
    u->scale = 1.0;
    u->n[0] = rows;
    u->n[1] = cols;
    fgi_rc rc = FGI_OK;
    if (path == FGI_BY_SCAN || (path == FGI_BY_SIZE && (int64_t)rows * cols <= SCAN_UP_TO)) {
        if (!(u->dense = fgi_calloc((int64_t)rows * cols, sizeof(double)))) rc = FGI_NO_MEMORY;
    } else if (!init_side(u, 0) || !init_side(u, 1) || !grow_hash(u)) rc = FGI_NO_MEMORY;
    for (int32_t a = 0; values && !rc && a < rows; a++)
        for (int32_t b = 0; !rc && b < cols; b++) {
            double value = values[(int64_t)a * cols + b];
            if (!(value < INFINITY))
                rc = fgi_fail(err, FGI_BAD_ARGUMENT, (int64_t)a * cols + b, "entry (%d, %d) is NaN or +inf", a, b);
            else if (!put(u, a, b, value)) rc = FGI_NO_MEMORY;
        }
    if (!rc) {
        *out = u;
        return FGI_OK;
    }
    fgi_updatable_free(u);
    return rc == FGI_NO_MEMORY ? fgi_fail(err, rc, -1, "out of memory") : rc;
}

void fgi_updatable_free(fgi_updatable *u) {
    if (!u) return;
    for (int side = 0; side < 2; side++) {
        for (int32_t a = 0; u->slices[side] && a < u->n[side]; a++) free(u->slices[side][a].heap);
        free(u->slices[side]);
        free(u->max[side]);
        free(u->winner[side]);
    }
    free(u->entries);
    free(u->slots);
    free(u->dense);
    free(u);
}

/* Without the scale. */
static double stored(const fgi_updatable *u, int32_t row, int32_t col) {
    if (u->dense) return u->dense[(int64_t)row * u->n[1] + col];
    const entry *e = find(u, row, col);
    return e ? e->value : 0.0;
}

double fgi_updatable_get(const fgi_updatable *u, int32_t row, int32_t col) { return u->scale * stored(u, row, col); }

fgi_rc fgi_updatable_scale(fgi_updatable *u, double factor, fgi_error *err) {
    if (!(factor >= 0) || factor == INFINITY)
        return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "a table is scaled by a finite number that is not negative");
    if (factor == 0.0 && u->dense) {
        memset(u->dense, 0, (size_t)u->n[0] * (size_t)u->n[1] * sizeof(double));
        u->n_entries = 0;
        u->scale = 1.0;
        return FGI_OK;
    }
    if (factor == 0.0) {
        while (u->n_entries > 0) {
            const entry e = u->entries[u->n_entries - 1];
            put(u, e.label[0], e.label[1], 0.0);
        }
        u->scale = 1.0;
        return FGI_OK;
    }
    double top = 0.0; /* only a factor above 1 can make it too large */
    if (factor > 1 && !u->dense) top = u->max[0][u->winner[0][1]];
    if (factor > 1 && u->dense) top = fgi_kernels_get()->max(u->dense, (int64_t)u->n[0] * u->n[1]);
    if (top > 0 && top * u->scale * factor == INFINITY)
        return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "scaled by %g, the largest entry is not a number", factor);
    if (factor < LEAST_SCALE || factor > 1 / LEAST_SCALE) restore_scale(u);
    u->scale *= factor;
    if (u->scale < LEAST_SCALE || u->scale > 1 / LEAST_SCALE) restore_scale(u);
    return FGI_OK;
}

int64_t fgi_updatable_entries(const fgi_updatable *u, int64_t capacity, int32_t *rows, int32_t *cols, double *values) {
    const int64_t n = u->dense ? (int64_t)u->n[0] * u->n[1] : 0;
    for (int64_t state = 0, k = 0; state < n && k < capacity; state++) {
        if (u->dense[state] == 0.0) continue;
        rows[k] = (int32_t)(state / u->n[1]);
        cols[k] = (int32_t)(state % u->n[1]);
        values[k++] = u->scale * u->dense[state];
    }
    if (u->dense) return u->n_entries;
    for (int64_t k = 0; k < u->n_entries && k < capacity; k++) {
        rows[k] = u->entries[k].label[0];
        cols[k] = u->entries[k].label[1];
        values[k] = u->scale * u->entries[k].value;
    }
    return u->n_entries;
}

int64_t fgi_updatable_memory(const fgi_updatable *u) {
    if (u->dense) return (int64_t)sizeof *u + (int64_t)u->n[0] * u->n[1] * (int64_t)sizeof(double);
    int64_t bytes = (int64_t)sizeof *u + u->capacity * (int64_t)sizeof(entry) + u->n_slots * (int64_t)sizeof(int32_t) +
        u->heap_bytes;
    for (int side = 0; side < 2; side++)
        bytes += u->n[side] * (int64_t)(sizeof(slice) + sizeof(double)) + u->n_leaves[side] * 8;
    return bytes;
}

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
    for (int32_t k = u->n_leaves[side] + top.at; k > top.tag; k /= 2)
        if (!push_node(x, side, k ^ 1)) return -1;
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
    const slice *s = &u->slices[walk->side][walk->slice];
    if (place >= s->n) return 1;
    const entry *e = &u->entries[s->heap[place]];
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
    while (walk->zero < n && (walk->side == 0 ? find(u, walk->slice, walk->zero) : find(u, walk->zero, walk->slice)))
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

static double updatable_entry(const fgi_access *x, int32_t a, int32_t b) { return stored(x->table, a, b); }

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

static fgi_rc updatable_scan(const fgi_oracle_query *q, fgi_oracle_scratch *w, fgi_best *best) {
    const fgi_updatable *u = table_of(q);
    if (!updatable_reserve(u, w)) return FGI_NO_MEMORY;
    fgi_oracle_spread(q, 2, u->n, w);
    if (u->dense) {
        const fgi_table_source table = array_of(u);
        fgi_scan_pair(&table, w, best);
    } else {
        w->touched += (int64_t)u->n[0] * u->n[1];
    }
    for (int32_t a = 0; !u->dense && a < u->n[0]; a++)
        for (int32_t b = 0; b < u->n[1]; b++) {
            const int64_t state = (int64_t)a * u->n[1] + b;
            if (!fgi_is_banned(w, state))
                fgi_best_offer(best, state, (fgi_updatable_get(u, a, b) - w->by_label[0][a]) - w->by_label[1][b]);
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
        const int is_stored = (side ? find(u, top, a) : find(u, a, top)) != NULL;
        out[a] = is_stored ? -INFINITY : 0.0 - other[top];
        for (int32_t b = 0; is_stored && b < n; b++)
            if (0.0 - other[b] > out[a] && !(side ? find(u, b, a) : find(u, a, b))) out[a] = 0.0 - other[b];
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

/* A sorted table has its entries in a hash: reading all of them is never the faster way. */
static int updatable_prefers_scan(const fgi_oracle_query *q) { return table_of(q)->dense != NULL; }

static const fgi_source_ops updatable_ops = {.arity = updatable_arity,
    .card = updatable_card,
    .search = updatable_search,
    .scan = updatable_scan,
    .prefers_scan = updatable_prefers_scan,
    .marginals = updatable_marginals};

const fgi_source *fgi_updatable_source(const fgi_updatable *u) { return &u->base; }
