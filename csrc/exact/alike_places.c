/* exact/alike_places.c - see exact/alike_places.h. */
#include "exact/alike_places.h"
#include "base/assert.h"
#include "base/util.h"

enum { MOST_WORK = 20000 }; /* comparisons in search of one permutation (chosen) */

/* What thing i at place j and thing k at place l cost together. */
static int64_t cost_of(const fgi_placing *p, int64_t i, int64_t j, int64_t k, int64_t l) {
    const int64_t m = p->m, a = p->both[((i * m + j) * m + k) * m + l], b = p->both[((k * m + l) * m + i) * m + j];
    return fgi_lap_is_never(a) || fgi_lap_is_never(b) ? FGI_LAP_NEVER : a + b;
}

/* A cost of the pair (x, y) of places or things, the others being u and v; x = y: of one alone. */
static int64_t entry(const fgi_placing *p, int of_things, int64_t x, int64_t y, int64_t u, int64_t v) {
    if (x == y) return of_things ? p->alone[x * p->m + u] : p->alone[u * p->m + x];
    if (u == v) return 0; /* nothing is twice */
    return of_things ? cost_of(p, x, u, y, v) : cost_of(p, u, x, v, y);
}

static int is_same(const fgi_placing *p, int of_things, int64_t pair, int64_t other) {
    const int64_t m = p->m, x = pair / m, y = pair % m, z = other / m, w = other % m;
    if ((x == y) != (z == w)) return 0;
    for (int64_t u = 0; u < m; u++)
        for (int64_t v = 0; v < m; v++)
            if (entry(p, of_things, x, y, u, v) != entry(p, of_things, z, w, u, v)) return 0;
    return 1;
}

static uint64_t hash(const fgi_placing *p, int of_things, int64_t pair) {
    const int64_t m = p->m, x = pair / m, y = pair % m;
    uint64_t sum = x == y;
    for (int64_t u = 0; u < m; u++)
        for (int64_t v = 0; v < m; v++)
            sum = (sum ^ (uint64_t)entry(p, of_things, x, y, u, v)) * 0x9E3779B97F4A7C15u + 1;
    return sum ^ sum >> 31;
}

int fgi_alike_places_find(const fgi_placing *p, int of_things, fgi_arena *arena, fgi_alike_places *out) {
    const int64_t pairs = (int64_t)p->m * p->m;
    out->m = p->m;
    out->kind = fgi_take(arena, pairs, int32_t);
    uint64_t *key = fgi_take(arena, pairs, uint64_t);
    int32_t *first = fgi_take(arena, pairs, int32_t), n_kinds = 0; /* pair of each kind */
    if (arena->failed) return 0;
    for (int32_t e = 0; e < pairs; e++) {
        const uint64_t own = hash(p, of_things, e);
        int32_t k = 0;
        while (k < n_kinds && !(key[k] == own && is_same(p, of_things, e, first[k]))) k++;
        if (k == n_kinds) {
            key[n_kinds] = own;
            first[n_kinds++] = e;
        }
        out->kind[e] = k;
    }
    return 1;
}

/* ---- permutations ---------------------------------------------------------------------------------------------- */

/* A permutation that is being made: the first `done` of `order` have an image. */
typedef struct trial {
    const fgi_alike_places *a;
    int32_t order[FGI_LAP_MOST], image[FGI_LAP_MOST];
    uint8_t is_used[FGI_LAP_MOST];
    int32_t done;
    int64_t work;
} trial;

static int fits(trial *t, int32_t place, int32_t to) {
    const int32_t *kind = t->a->kind, m = t->a->m;
    if (t->is_used[to] || kind[place * m + place] != kind[to * m + to]) return 0;
    for (int32_t k = 0; k < t->done; k++) {
        const int32_t q = t->order[k], r = t->image[q];
        t->work++;
        if (kind[place * m + q] != kind[to * m + r] || kind[q * m + place] != kind[r * m + to]) return 0;
    }
    return 1;
}

static void set(trial *t, int32_t place, int32_t to) {
    t->order[t->done++] = place;
    t->image[place] = to;
    t->is_used[to] = 1;
}

/* Images for all from `done` on, by trying: 1 if there are any. The depth of the recursion is the number of places. */
static int complete(trial *t) {
    if (t->done == t->a->m) return 1;
    const int32_t place = t->order[t->done];
    for (int32_t to = 0; to < t->a->m && t->work < MOST_WORK; to++) {
        if (!fits(t, place, to)) continue;
        set(t, place, to);
        if (complete(t)) return 1;
        t->done--;
        t->is_used[to] = 0;
    }
    return 0;
}

/* Is there a permutation that leads `from` to `to`, and leaves what is taken where it is? */
static int is_led(const fgi_alike_places *a, const uint8_t *is_taken, int32_t from, int32_t to, int64_t *work) {
    trial t = {.a = a};
    int32_t n = 0;
    for (int32_t j = 0; j < a->m; j++)
        if (is_taken[j]) set(&t, j, j);
    const int is_open = fits(&t, from, to);
    if (is_open) {
        set(&t, from, to);
        n = t.done;
        for (int32_t j = 0; j < a->m; j++)
            if (!is_taken[j] && j != from) t.order[n++] = j;
        fgi_assert(n == a->m);
    }
    const int found = is_open && complete(&t);
    *work += t.work + a->m;
    return found;
}

int fgi_alike_places_group(const fgi_alike_places *a, const uint8_t *is_taken, int32_t *set_of, int64_t *work) {
    int any = 0;
    for (int32_t j = 0; j < a->m; j++) {
        set_of[j] = j;
        for (int32_t i = 0; i < j && !is_taken[j] && set_of[j] == j; i++)
            if (!is_taken[i] && set_of[i] == i && is_led(a, is_taken, i, j, work)) set_of[j] = i;
        any |= set_of[j] != j;
    }
    return any;
}
