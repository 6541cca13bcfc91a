/* model/sorted.c - see model/sorted.h. */
#include "model/sorted.h"
#include <string.h>
#include "base/util.h"

enum {
    MAX_LEVELS = 120,  /* distinct scores of a table that is ranked by level, in one byte each */
    LEVEL_SLOTS = 256, /* slots of the levels' hash table: less than half full */
    BLOCK = 8,         /* entries of a row that are compared at once: mostly none is large enough */
    FIRST_LIST = 64,   /* entries sorted when a list is first looked at (16 to all gain nothing) */
    GROWTH = 4         /* how many times as many entries are sorted when they run out */
};

/* ---- sorting ------------------------------------------------------------------------------------------------ */

/* Hoare's partition of [low, high) around a pivot from a fixed stream, so that no input order is bad and the result is
 * the same everywhere: what comes first of the order is before *right, the rest from *left on (*right <= *left). */
static void partition(fgi_ranked *items, int64_t low, int64_t high, fgi_rng *rng, int64_t *right, int64_t *left) {
    const fgi_ranked pivot = items[low + fgi_rng_below(rng, high - low)];
    int64_t i = low, j = high - 1;
    while (i <= j) { /* the keys are distinct */
        while (fgi_ranked_before(&items[i], &pivot)) i++;
        while (fgi_ranked_before(&pivot, &items[j])) j--;
        if (i > j) break;
        const fgi_ranked x = items[i];
        items[i++] = items[j];
        items[j--] = x;
    }
    *right = j + 1;
    *left = i;
}

static void sort_ranked(fgi_ranked *items, int64_t n) {
    fgi_rng rng = {(uint64_t)n};
    while (n > 24) { /* the smaller part by recursion, the larger one here */
        int64_t right, left;
        partition(items, 0, n, &rng, &right, &left);
        if (right < n - left) {
            sort_ranked(items, right);
            items += left;
            n -= left;
        } else {
            sort_ranked(items + left, n - left);
            n = right;
        }
    }
    for (int64_t k = 1; k < n; k++) { /* insertion sort: most lists are short */
        const fgi_ranked x = items[k];
        int64_t at = k;
        for (; at > 0 && fgi_ranked_before(&x, &items[at - 1]); at--) items[at] = items[at - 1];
        items[at] = x;
    }
}

/* The first m of the order to the front, in any order. */
static void select_first(fgi_ranked *items, int64_t n, int64_t m) {
    fgi_rng rng = {(uint64_t)n};
    int64_t low = 0, high = n; /* the border after the m-th lies inside (low, high) */
    while (m > low && m < high) {
        int64_t right, left;
        partition(items, low, high, &rng, &right, &left);
        if (m <= right) high = right;
        else low = left;
    }
}

/* ---- life --------------------------------------------------------------------------------------------------- */

/* How many entries of each slice the linear pass sorts: enough that most walks end inside. Small slices are sorted in a
 * few microseconds when somebody asks, so the pass finds only their maxima. */
static int32_t short_length(int64_t size) { return size >= 2048 ? 16 : size >= 512 ? 8 : 1; }

static size_t list_bytes(int64_t n) { return (sizeof(fgi_list) + (size_t)n * sizeof(int32_t) + 15) / 16 * 16; }

static fgi_list *slab_list(const fgi_axis *x, int32_t a) {
    return (fgi_list *)(void *)(x->slab + (size_t)a * list_bytes(short_length(x->size)));
}

fgi_sorted *fgi_sorted_retain(fgi_sorted *o) {
    atomic_fetch_add(&o->refs, 1);
    return o;
}

void fgi_sorted_release(fgi_sorted *o) {
    if (!o || atomic_fetch_sub(&o->refs, 1) != 1) return;
    for (int32_t k = 0; k < o->arity; k++) {
        fgi_axis *x = &o->axes[k];
        for (int32_t a = 0; x->lists && a < x->n; a++) {
            fgi_list *list = atomic_load(&x->lists[a]), *older;
            for (; list && !list->in_slab; list = older) {
                older = list->older;
                free(list);
            }
        }
        free(x->lists);
        free(x->slab);
        free(x->max);
        free(x->rank);
        free(x->run_end);
    }
    free(o->levels);
    free(o);
}

int64_t fgi_sorted_memory(const fgi_sorted *o) { return o ? (int64_t)atomic_load(&((fgi_sorted *)o)->bytes) : 0; }

/* ---- the linear pass ---------------------------------------------------------------------------------------- */

struct fgi_sorted_builder {
    fgi_sorted *order;
    int64_t total, at;       /* entries of the table; entries read so far */
    double *short_values[2]; /* pairwise: the values of the short lists, descending, as long as the lists */
    double *least;           /* per column: what an entry must exceed to enter its short list */
    int32_t *labels;         /* odometer of the next entry, arity > 2 */
    double level[MAX_LEVELS];
    uint8_t slot[LEVEL_SLOTS]; /* hash of the levels, 1-based; 0: empty */
    int32_t n_levels;          /* > MAX_LEVELS: given up */
};

static int init_axis(fgi_sorted_builder *b, int32_t k, int32_t n, int64_t inner) {
    fgi_axis *x = &b->order->axes[k];
    x->n = n;
    x->inner = inner;
    x->size = b->total / n;
    x->max = fgi_alloc(n, sizeof(double));
    x->rank = fgi_alloc(n, sizeof(int32_t));
    x->run_end = fgi_alloc(n, sizeof(int32_t));
    x->lists = fgi_calloc(n, sizeof *x->lists);
    if (!x->max || !x->rank || !x->run_end || !x->lists) return 0;
    for (int32_t a = 0; a < n; a++) x->max[a] = -INFINITY;
    int64_t bytes = n * (int64_t)(sizeof(double) + 2 * sizeof(int32_t) + sizeof *x->lists);
    if (b->order->arity == 2) {
        int32_t length = short_length(x->size);
        x->slab = fgi_calloc(n, list_bytes(length));
        b->short_values[k] = fgi_alloc((int64_t)n * length, sizeof(double));
        if (!x->slab || !b->short_values[k]) return 0;
        for (int32_t a = 0; a < n; a++) {
            slab_list(x, a)->in_slab = 1;
            atomic_init(&slab_list(x, a)->rest, NAN);
        }
        bytes += n * (int64_t)list_bytes(length);
    }
    atomic_fetch_add(&b->order->bytes, bytes);
    return 1;
}

fgi_sorted_builder *fgi_sorted_builder_create(int32_t arity, const int32_t *dims) {
    fgi_sorted_builder *b = fgi_calloc(1, sizeof *b);
    if (!b) return NULL;
    b->order = fgi_calloc(1, sizeof *b->order + (size_t)arity * sizeof(fgi_axis));
    b->labels = fgi_calloc(arity, sizeof(int32_t));
    if (!b->order || !b->labels) goto fail;
    atomic_init(&b->order->refs, 1);
    atomic_init(&b->order->bytes, (long long)sizeof *b->order + arity * (long long)sizeof(fgi_axis));
    b->order->arity = arity;
    b->total = 1;
    for (int32_t k = 0; k < arity; k++) b->total *= dims[k];
    int64_t inner = b->total;
    for (int32_t k = 0; k < arity; k++)
        if (!init_axis(b, k, dims[k], inner /= dims[k])) goto fail;
    if (arity == 2) {
        if (!(b->least = fgi_alloc(dims[1], sizeof(double)))) goto fail;
        for (int32_t c = 0; c < dims[1]; c++) b->least[c] = -INFINITY;
    }
    return b;
fail:
    fgi_sorted_builder_free(b);
    return NULL;
}

void fgi_sorted_builder_free(fgi_sorted_builder *b) {
    if (!b) return;
    fgi_sorted_release(b->order);
    free(b->short_values[0]);
    free(b->short_values[1]);
    free(b->least);
    free(b->labels);
    free(b);
}

/* Few distinct values (distances in a graph, counts): remembered, so that walks over long ties can stop at once. */
static void note_level(fgi_sorted_builder *b, double v) {
    uint64_t bits, h;
    v += 0.0; /* one zero */
    memcpy(&bits, &v, sizeof bits);
    h = bits * 0x9E3779B97F4A7C15u >> 56;
    for (; b->slot[h]; h = (h + 1) % LEVEL_SLOTS)
        if (b->level[b->slot[h] - 1] == v) return;
    if (b->n_levels++ == MAX_LEVELS) return; /* now beyond the limit: given up */
    b->level[b->n_levels - 1] = v;
    b->slot[h] = (uint8_t)b->n_levels;
}

/* Enters v at position j into a short list that it belongs to; returns what the next one must exceed. Equal values stay
 * in the order of arrival, which is ascending. */
static double enter(fgi_list *list, double *values, int32_t length, double v, int32_t j) {
    int32_t at = list->n < length ? list->n++ : length - 1;
    for (; at > 0 && values[at - 1] < v; at--) {
        values[at] = values[at - 1];
        list->at[at] = list->at[at - 1];
    }
    values[at] = v;
    list->at[at] = j;
    return list->n < length ? -INFINITY : values[length - 1];
}

static void read_row(fgi_sorted_builder *b, const double *row, int32_t a) {
    fgi_axis *rows = &b->order->axes[0], *cols = &b->order->axes[1];
    const int32_t row_length = short_length(rows->size), col_length = short_length(cols->size), n = cols->n;
    fgi_list *list = slab_list(rows, a);
    double *values = b->short_values[0] + (int64_t)a * row_length, least = -INFINITY;
    for (int32_t from = 0; from < n; from += BLOCK) {
        const int32_t to = from + BLOCK < n ? from + BLOCK : n;
        int hit = 0;
        for (int32_t c = from; c < to; c++) hit |= (row[c] > least) | (row[c] > b->least[c]);
        if (!hit) continue; /* nearly always, after the first rows */
        for (int32_t c = from; c < to; c++) {
            if (row[c] > least) least = enter(list, values, row_length, row[c], c);
            if (row[c] > b->least[c])
                b->least[c] =
                    enter(slab_list(cols, c), b->short_values[1] + (int64_t)c * col_length, col_length, row[c], a);
        }
    }
}

static void read_levels(fgi_sorted_builder *b, const double *values, int64_t n) {
    double last = -INFINITY;
    for (int64_t k = 0; k < n && b->n_levels <= MAX_LEVELS; k++) {
        if (values[k] == last || values[k] == -INFINITY) continue;
        note_level(b, last = values[k]);
    }
}

/* One run over the last variable, arity > 2: the maxima along every axis. */
static void read_run(fgi_sorted_builder *b, const double *run) {
    const int32_t arity = b->order->arity;
    fgi_axis *last = &b->order->axes[arity - 1];
    double best = -INFINITY;
    for (int32_t c = 0; c < last->n; c++) {
        if (run[c] > last->max[c]) last->max[c] = run[c];
        if (run[c] > best) best = run[c];
    }
    for (int32_t k = 0; k < arity - 1; k++)
        if (best > b->order->axes[k].max[b->labels[k]]) b->order->axes[k].max[b->labels[k]] = best;
    for (int32_t k = arity - 2; k >= 0; k--) {
        if (++b->labels[k] < b->order->axes[k].n) break;
        b->labels[k] = 0;
    }
}

int fgi_sorted_builder_step(fgi_sorted_builder *b, const double *values, int64_t entries) {
    const int64_t n = b->order->axes[b->order->arity - 1].n;
    for (int64_t stop = entries < b->total - b->at ? b->at + entries : b->total; b->at < stop; b->at += n) {
        const double *row = values + b->at;
        if (b->order->arity == 2) read_row(b, row, (int32_t)(b->at / n));
        else read_run(b, row);
        if (b->n_levels <= MAX_LEVELS) read_levels(b, row, n);
    }
    return b->at >= b->total;
}

static int rank_slices(fgi_axis *x) {
    fgi_ranked *items = fgi_alloc(x->n, sizeof *items);
    if (!items) return 0;
    for (int32_t a = 0; a < x->n; a++)
        if (x->max[a] > -INFINITY) items[x->n_live++] = (fgi_ranked){x->max[a], a, 0};
    sort_ranked(items, x->n_live);
    for (int32_t r = x->n_live - 1; r >= 0; r--) {
        x->rank[r] = items[r].at;
        x->run_end[r] = r + 1 < x->n_live && items[r + 1].value == items[r].value ? x->run_end[r + 1] : r + 1;
    }
    free(items);
    return 1;
}

static int compare_doubles(const void *x, const void *y) {
    const double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

fgi_sorted *fgi_sorted_builder_finish(fgi_sorted_builder *b) {
    fgi_sorted *o = b->order;
    int ok = 1;
    for (int32_t k = 0; k < o->arity && ok; k++) {
        fgi_axis *x = &o->axes[k];
        const int32_t length = short_length(x->size);
        for (int32_t a = 0; o->arity == 2 && a < x->n; a++) {
            fgi_list *list = slab_list(x, a);
            x->max[a] = list->n ? b->short_values[k][(int64_t)a * length] : -INFINITY;
            list->complete = list->n < length || length == x->size;
            if (length > 1 || list->complete) atomic_store_explicit(&x->lists[a], list, memory_order_relaxed);
        }
        ok = rank_slices(x);
    }
    if (ok && b->n_levels > 0 && b->n_levels <= MAX_LEVELS) {
        qsort(b->level, (size_t)b->n_levels, sizeof(double), compare_doubles);
        ok = (o->levels = fgi_copy(b->level, b->n_levels, sizeof(double))) != NULL;
        o->n_levels = b->n_levels;
    }
    if (ok) b->order = NULL;
    fgi_sorted_builder_free(b);
    return ok ? o : NULL;
}

/* ---- longer lists ------------------------------------------------------------------------------------------- */

const fgi_list *fgi_sorted_extend(
    fgi_sorted *o, const double *values, int32_t axis, int32_t a, const fgi_list *have, int64_t *work) {
    fgi_axis *x = &o->axes[axis];
    fgi_list *now = atomic_load_explicit(&x->lists[a], memory_order_acquire);
    if (now != have) return now; /* somebody was here before */
    const int32_t n_have = have ? have->n : 0;
    fgi_ranked last = {INFINITY, -1, 0};
    if (n_have) last = (fgi_ranked){values[fgi_axis_flat(x, a, have->at[n_have - 1])], have->at[n_have - 1], 0};
    fgi_ranked *items = fgi_alloc(x->size, sizeof *items);
    if (!items) return NULL;
    int64_t n = 0;
    for (int64_t j = 0; j < x->size; j++) {
        fgi_ranked item = {values[fgi_axis_flat(x, a, j)], (int32_t)j, 0};
        if (item.value > -INFINITY && fgi_ranked_before(&last, &item)) items[n++] = item;
    }
    int64_t more = n_have ? (GROWTH - 1) * (int64_t)n_have : FIRST_LIST;
    if (more > n / 2) more = n; /* a full sort costs little more */
    if (more < n) select_first(items, n, more);
    sort_ranked(items, more);
    fgi_list *list = malloc(list_bytes(n_have + more));
    if (list) {
        list->older = now;
        list->n = (int32_t)(n_have + more);
        list->complete = more == n;
        list->in_slab = 0;
        atomic_init(&list->rest, NAN);
        if (n_have) memcpy(list->at, have->at, (size_t)n_have * sizeof(int32_t));
        for (int64_t k = 0; k < more; k++) list->at[n_have + k] = items[k].at;
        if (atomic_compare_exchange_strong(&x->lists[a], &now, list)) {
            atomic_fetch_add(&o->bytes, (long long)list_bytes(list->n));
            *work += x->size + more;
        } else { /* another thread was faster: its list is as good */
            free(list);
            list = now;
        }
    }
    free(items);
    return list;
}

static double level_below(const fgi_sorted *o, double value) {
    int32_t low = 0, high = o->n_levels;
    while (low < high) {
        int32_t mid = (low + high) / 2;
        if (o->levels[mid] < value) low = mid + 1;
        else high = mid;
    }
    return low > 0 ? o->levels[low - 1] : -INFINITY;
}

/* The run of equal entries goes beyond the list: one pass over the slice, remembered. */
static double below_list(
    const fgi_axis *x, const double *values, int32_t a, fgi_list *list, double value, int64_t *work) {
    double rest = atomic_load_explicit(&list->rest, memory_order_relaxed);
    if (!isnan(rest)) return rest;
    rest = -INFINITY;
    for (int64_t j = 0; j < x->size; j++) {
        double v = values[fgi_axis_flat(x, a, j)];
        if (v < value && v > rest) rest = v;
    }
    *work += x->size;
    atomic_store_explicit(&list->rest, rest, memory_order_relaxed);
    return rest;
}

double fgi_sorted_below(fgi_sorted *o, const double *values, int32_t axis, int32_t a, const fgi_list *list,
    int32_t from, double value, int64_t *work) {
    if (o->levels) return level_below(o, value);
    const fgi_axis *x = &o->axes[axis];
    int32_t low = from + 1, high = list->n - 1; /* the run ends in (from, n) */
    if (low > high || values[fgi_axis_flat(x, a, list->at[high])] == value)
        return list->complete ? -INFINITY : below_list(x, values, a, (fgi_list *)list, value, work);
    while (low < high) {
        int32_t mid = (low + high) / 2;
        ++*work;
        if (values[fgi_axis_flat(x, a, list->at[mid])] < value) high = mid;
        else low = mid + 1;
    }
    return values[fgi_axis_flat(x, a, list->at[low])];
}
