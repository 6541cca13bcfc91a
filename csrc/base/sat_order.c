/* base/sat_order.c - which open variable is decided next: a heap by activity (base/sat_own.h). */
#include "base/sat_own.h"

static const double ACTIVITY_LIMIT = 1e100; /* activities are scaled down beyond it */

static int goes_before(const fgi_sat *s, int32_t a, int32_t b) {
    fgi_assert(a >= 0 && a < s->n_vars && b >= 0 && b < s->n_vars);
    return s->activity[a] > s->activity[b] || (s->activity[a] == s->activity[b] && a < b);
}

static void put(fgi_sat *s, int32_t at, int32_t var) {
    fgi_assert(at >= 0 && at < s->n_vars && var >= 0 && var < s->n_vars);
    s->heap[at] = var;
    s->place[var] = at;
}

static void move_up(fgi_sat *s, int32_t at) {
    fgi_assert(at >= 0);
    const int32_t var = s->heap[at];
    for (; at > 0 && goes_before(s, var, s->heap[(at - 1) / 2]); at = (at - 1) / 2) put(s, at, s->heap[(at - 1) / 2]);
    put(s, at, var);
}

static void move_down(fgi_sat *s, int32_t at) {
    fgi_assert(at >= 0 && at < s->n_heap);
    const int32_t var = s->heap[at];
    for (int32_t child; (child = 2 * at + 1) < s->n_heap; at = child) {
        if (child + 1 < s->n_heap && goes_before(s, s->heap[child + 1], s->heap[child])) child++;
        if (!goes_before(s, s->heap[child], var)) break;
        put(s, at, s->heap[child]);
    }
    put(s, at, var);
}

void fgi_sat_enqueue(fgi_sat *s, int32_t var) {
    fgi_assert(var >= 0 && var < s->n_vars);
    if (s->place[var] >= 0) return;
    put(s, s->n_heap, var);
    move_up(s, s->n_heap++);
}

int32_t fgi_sat_dequeue(fgi_sat *s) {
    fgi_assert(s->n_heap > 0);
    const int32_t var = s->heap[0];
    fgi_assert(s->place[var] == 0);
    s->place[var] = -1;
    if (--s->n_heap > 0) {
        put(s, 0, s->heap[s->n_heap]);
        move_down(s, 0);
    }
    return var;
}

void fgi_sat_bump(fgi_sat *s, int32_t var) {
    fgi_assert(s->growth > 0 && s->activity[var] <= ACTIVITY_LIMIT);
    s->activity[var] += s->growth;
    if (s->activity[var] > ACTIVITY_LIMIT) {
        for (int32_t v = 0; v < s->n_vars; v++) s->activity[v] /= ACTIVITY_LIMIT;
        s->growth /= ACTIVITY_LIMIT;
    }
    if (s->place[var] >= 0) move_up(s, s->place[var]);
}
