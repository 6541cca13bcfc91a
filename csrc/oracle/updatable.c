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
#include "oracle/updatable.h"
#include "base/array.h"
#include "base/kernels.h"
#include "base/util.h"

/* Tables up to this many entries are scanned (decision 0016). */
enum { SCAN_UP_TO = 80 * 80 };

/* Far from underflow: once a table is scaled, no product of an entry that is set and the scale rounds to 0. */
static const double LEAST_SCALE = 0x1p-200;  /* the least scale of a table */
static const double LEAST_STORED = 0x1p-700; /* the least entry that is stored; others are set to 0 */

/* ---- entries by row and column ----------------------------------------------------------------------------------- */

static int grow_hash(fgi_updatable *u) {
    int32_t *old = u->slots;
    const int64_t n = u->n_slots ? 2 * u->n_slots : 64;
    int32_t *slots = fgi_calloc(n, sizeof(int32_t));
    if (!slots) return 0;
    u->slots = slots;
    u->n_slots = n;
    for (int64_t id = 0; id < u->n_entries; id++)
        u->slots[updatable_slot(u, u->entries[id].label[0], u->entries[id].label[1])] = (int32_t)id + 1;
    free(old);
    return 1;
}

/* Empties a slot and moves later entries of the same cluster up, so that no search stops too early. */
static void clear_slot(fgi_updatable *u, int64_t hole) {
    const int64_t mask = u->n_slots - 1;
    for (int64_t at = (hole + 1) & mask; u->slots[at]; at = (at + 1) & mask) {
        const entry *e = &u->entries[u->slots[at] - 1];
        if (((at - updatable_home(u, e->label[0], e->label[1])) & mask) < ((at - hole) & mask)) continue;
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

static void put_at(fgi_updatable *u, int side, slice *part, int32_t place, int32_t id) {
    fgi_assert(place >= 0 && place < part->capacity && id >= 0 && id < u->n_entries);
    part->heap[place] = id;
    u->entries[id].place[side] = place;
}

/* Restores the heap after the entry at `place` changed. */
static void sift(fgi_updatable *u, int side, slice *part, int32_t place) {
    fgi_assert(place >= 0 && place <= part->n);
    const int32_t id = part->heap[place];
    for (; place > 0 && before(u, side, id, part->heap[(place - 1) / 2]); place = (place - 1) / 2)
        put_at(u, side, part, place, part->heap[(place - 1) / 2]);
    for (int64_t child; (child = 2 * (int64_t)place + 1) < part->n; place = (int32_t)child) {
        if (child + 1 < part->n && before(u, side, part->heap[child + 1], part->heap[child])) child++;
        if (!before(u, side, part->heap[child], id)) break;
        put_at(u, side, part, place, part->heap[child]);
    }
    put_at(u, side, part, place, id);
}

static int wins(const fgi_updatable *u, int side, int32_t x, int32_t y) {
    if (x < 0 || y < 0) return y < 0;
    return u->max[side][x] > u->max[side][y] || (u->max[side][x] == u->max[side][y] && x < y);
}

static void replay(fgi_updatable *u, int side, int32_t a) {
    const slice *part = &u->slices[side][a];
    fgi_assert(a >= 0 && a < u->n[side] && part->n <= u->n[1 - side]);
    double max = part->n < u->n[1 - side] ? 0.0 : -INFINITY; /* is there a zero */
    if (part->n && u->entries[part->heap[0]].value > max) max = u->entries[part->heap[0]].value;
    if (max == u->max[side][a]) return;
    u->max[side][a] = max;
    for (int64_t k = (u->n_leaves[side] + (int64_t)a) / 2; k > 0; k /= 2) {
        int32_t x = u->winner[side][2 * k], y = u->winner[side][2 * k + 1];
        u->winner[side][k] = wins(u, side, x, y) ? x : y;
    }
}

static int reserve_heap(fgi_updatable *u, slice *part) {
    if (part->n < part->capacity) return 1;
    const int32_t capacity = part->capacity < 4 ? 4
        : part->capacity > INT32_MAX / 2        ? INT32_MAX
                                                : part->capacity + part->capacity / 2;
    if (!fgi_resize(&part->heap, capacity, sizeof *part->heap)) return 0;
    u->heap_bytes += (capacity - part->capacity) * (int64_t)sizeof *part->heap;
    part->capacity = capacity;
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
    fgi_assert(u->slots[updatable_slot(u, label[0], label[1])] == 0 && value != 0.0);
    u->slots[updatable_slot(u, label[0], label[1])] = id + 1;
    u->entries[u->n_entries++] = (entry){value, {label[0], label[1]}, {0, 0}};
    for (int side = 0; side < 2; side++) {
        slice *part = &u->slices[side][label[side]];
        put_at(u, side, part, part->n, id);
        sift(u, side, part, part->n++);
    }
    for (slice *part = &u->slices[0][label[0]];
         part->first_zero < u->n[1] && updatable_find(u, label[0], part->first_zero);)
        part->first_zero++;
    for (slice *part = &u->slices[1][label[1]];
         part->first_zero < u->n[0] && updatable_find(u, part->first_zero, label[1]);)
        part->first_zero++;
    return 1;
}

static void drop(fgi_updatable *u, int32_t id) {
    fgi_assert(id >= 0 && id < u->n_entries);
    const entry gone = u->entries[id];
    for (int side = 0; side < 2; side++) {
        slice *part = &u->slices[side][gone.label[side]];
        fgi_assert(part->n > 0 && part->heap[gone.place[side]] == id);
        const int32_t place = gone.place[side], moved = part->heap[--part->n];
        if (place < part->n) {
            put_at(u, side, part, place, moved);
            sift(u, side, part, place);
        }
        if (gone.label[1 - side] < part->first_zero) part->first_zero = gone.label[1 - side];
    }
    clear_slot(u, updatable_slot(u, gone.label[0], gone.label[1]));
    const int32_t last = (int32_t)--u->n_entries;
    if (id == last) return;
    const entry e = u->entries[last]; /* the last entry takes the free id */
    u->slots[updatable_slot(u, e.label[0], e.label[1])] = id + 1;
    u->entries[id] = e;
    for (int side = 0; side < 2; side++) u->slices[side][e.label[side]].heap[e.place[side]] = id;
}

static int put(fgi_updatable *u, int32_t a, int32_t b, double value) {
    fgi_assert(value < INFINITY);
    if (u->scale != 1.0 && fabs(value) < LEAST_STORED) value = 0.0;
    if (u->dense) {
        double *at = u->dense + (int64_t)a * u->n[1] + b;
        u->n_entries += (value != 0.0) - (*at != 0.0);
        *at = value + 0.0; /* no -0 */
        return 1;
    }
    const int32_t label[2] = {a, b}, id = u->slots[updatable_slot(u, a, b)] - 1;
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
    fgi_audit_rarely(fgi_updatable_check(u));
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
    u->base.ops = &fgi_updatable_ops;
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
        fgi_audit_rarely(fgi_updatable_check(u));
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

double fgi_updatable_get(const fgi_updatable *u, int32_t row, int32_t col) {
    return u->scale * updatable_stored(u, row, col);
}

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
    fgi_audit_rarely(fgi_updatable_check(u));
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

const fgi_source *fgi_updatable_source(const fgi_updatable *u) { return &u->base; }
