/* oracle/top.c - see oracle/top.h. */
#include "oracle/top.h"
#include <math.h>
#include "base/assert.h"
#include "base/util.h"

enum { FEW = 32 }; /* up to here a sorted list, beyond it a buffer; where exactly was not measured */

static int before(fgi_ranked_label a, fgi_ranked_label b) {
    return a.value > b.value || (a.value == b.value && a.label < b.label);
}

static void swap(fgi_ranked_label *a, fgi_ranked_label *b) {
    fgi_ranked_label t = *a;
    *a = *b;
    *b = t;
}

int fgi_top_reserve(fgi_top *t, int32_t want) {
    int64_t capacity = want <= FEW ? FEW + 1 : 2 * (int64_t)want + FEW;
    if (capacity <= t->capacity) return 1;
    fgi_ranked_label *items = fgi_alloc(capacity, sizeof *items);
    if (!items) return 0;
    free(t->items);
    t->items = items;
    t->capacity = capacity;
    return 1;
}

void fgi_top_free(fgi_top *t) { free(t->items); }

void fgi_top_clear(fgi_top *t, int32_t want, double floor) {
    fgi_assert(want >= 0 && (want == 0 || t->capacity >= want));
    t->n = 0;
    t->want = want;
    t->floor = floor;
}

/* Hoare's selection: afterwards the k best are the first k. */
static void select_best(fgi_ranked_label *x, int64_t n, int64_t k) {
    int64_t low = 0, high = n - 1;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (before(x[middle], x[low])) swap(x + middle, x + low);
        if (before(x[high], x[low])) swap(x + high, x + low);
        if (before(x[high], x[middle])) swap(x + high, x + middle);
        const fgi_ranked_label pivot = x[middle];
        int64_t i = low, j = high;
        while (i <= j) {
            while (before(x[i], pivot)) i++;
            while (before(pivot, x[j])) j--;
            if (i <= j) swap(x + i++, x + j--);
        }
        if (k - 1 <= j) high = j;
        else if (k - 1 >= i) low = i;
        else return;
    }
}

void fgi_top_cut(fgi_top *t) {
    if (t->n < t->want || t->want <= FEW) return;
    select_best(t->items, t->n, t->want);
    t->n = t->want;
    double floor = INFINITY;
    for (int32_t k = 0; k < t->n; k++)
        if (t->items[k].value < floor) floor = t->items[k].value;
    t->floor = floor;
}

void fgi_top_insert(fgi_top *t, double value, int32_t label) {
    fgi_assert(t->want >= 1 && t->n >= 0 && t->n <= (t->want > FEW ? t->capacity : t->want));
    const fgi_ranked_label item = {value, label};
    if (t->want > FEW) {
        if (t->n == t->capacity) fgi_top_cut(t);
        t->items[t->n++] = item;
        return;
    }
    if (t->n == t->want && !before(item, t->items[t->n - 1])) return;
    int32_t at = t->n < t->want ? t->n++ : t->n - 1;
    for (; at > 0 && before(item, t->items[at - 1]); at--) t->items[at] = t->items[at - 1];
    t->items[at] = item;
    if (t->n == t->want && t->items[t->n - 1].value > t->floor) t->floor = t->items[t->n - 1].value;
}

/* Sift down in a heap with the worst on top. */
static void sift(fgi_ranked_label *x, int64_t root, int64_t n) {
    for (int64_t child; (child = 2 * root + 1) < n; root = child) {
        if (child + 1 < n && before(x[child], x[child + 1])) child++;
        if (!before(x[root], x[child])) return;
        swap(x + root, x + child);
    }
}

void fgi_top_sort(fgi_top *t) {
    fgi_top_cut(t);
    if (t->want <= FEW) return; /* in order already */
    for (int64_t k = t->n / 2 - 1; k >= 0; k--) sift(t->items, k, t->n);
    for (int64_t k = t->n - 1; k > 0; k--) {
        swap(t->items, t->items + k);
        sift(t->items, 0, k);
    }
}
