/* exact/lap.c - see exact/lap.h. Shortest augmenting paths over reduced costs (Jonker and Volgenant 1987): rows and
 * columns are reduced first, and what then costs nothing is taken where it is free. */
#include "exact/lap.h"

enum { NOBODY = -1 }; /* in place of a row or column */

typedef struct lap {
    int64_t *w;
    int32_t n;
    int32_t column_of[FGI_LAP_MOST], row_of[FGI_LAP_MOST];
    int64_t u[FGI_LAP_MOST], v[FGI_LAP_MOST]; /* prices since the first reduction */
} lap;

/* Takes the least entry of a row (step 1) or column (step n) off all of it. Returns it, or -1: all are never taken. */
static int64_t take_least(int64_t *w, int32_t n, int32_t step) {
    int64_t least = FGI_LAP_NEVER;
    for (int32_t k = 0; k < n; k++)
        if (w[k * step] < least) least = w[k * step];
    if (fgi_lap_is_never(least)) return -1;
    if (least > 0)
        for (int32_t k = 0; k < n; k++)
            if (!fgi_lap_is_never(w[k * step])) w[k * step] -= least;
    return least;
}

static void take_what_is_free(lap *p) {
    for (int32_t i = 0; i < p->n; i++)
        for (int32_t j = 0; j < p->n && p->column_of[i] == NOBODY; j++) {
            if (p->w[i * p->n + j] != 0 || p->row_of[j] != NOBODY) continue;
            p->column_of[i] = j;
            p->row_of[j] = i;
        }
}

/* A column for a row that has none, along the cheapest path; 0: there is no such path. */
static int augment(lap *p, int32_t row) {
    const int32_t n = p->n;
    int64_t distance[FGI_LAP_MOST], reached = 0;
    int32_t from[FGI_LAP_MOST], end = NOBODY, at = row;
    uint8_t done[FGI_LAP_MOST] = {0};
    for (int32_t j = 0; j < n; j++) distance[j] = FGI_LAP_NEVER, from[j] = NOBODY;
    while (end == NOBODY) {
        int32_t next = NOBODY;
        for (int32_t j = 0; j < n; j++) {
            if (done[j]) continue;
            const int64_t cost = p->w[at * n + j];
            if (!fgi_lap_is_never(cost)) {
                const int64_t through = reached + cost - p->u[at] - p->v[j];
                if (through < distance[j]) distance[j] = through, from[j] = at;
            }
            if (next == NOBODY || distance[j] < distance[next]) next = j;
        }
        if (next == NOBODY || fgi_lap_is_never(distance[next])) return 0;
        reached = distance[next];
        done[next] = 1;
        if (p->row_of[next] == NOBODY) end = next;
        else at = p->row_of[next];
    }
    p->u[row] += reached;
    for (int32_t j = 0; j < n; j++) {
        if (!done[j] || j == end) continue;
        p->u[p->row_of[j]] += reached - distance[j];
        p->v[j] -= reached - distance[j];
    }
    for (int32_t j = end, i = NOBODY; i != row;) {
        i = from[j];
        p->row_of[j] = i;
        const int32_t before = p->column_of[i];
        p->column_of[i] = j;
        j = before;
    }
    return 1;
}

int64_t fgi_lap_reduce(int64_t *w, int32_t n, int32_t *column) {
    lap p = {.w = w, .n = n};
    int64_t total = 0;
    for (int32_t i = 0; i < n; i++) p.column_of[i] = p.row_of[i] = NOBODY;
    for (int32_t i = 0; i < 2 * n; i++) {
        const int64_t least = i < n ? take_least(w + i * n, n, 1) : take_least(w + (i - n), n, n);
        if (least < 0) return -1;
        total += least;
    }
    take_what_is_free(&p);
    for (int32_t i = 0; i < n; i++)
        if (p.column_of[i] == NOBODY && !augment(&p, i)) return -1;
    for (int32_t i = 0; i < n; i++) {
        column[i] = p.column_of[i];
        total += p.u[i] + p.v[i];
        for (int32_t j = 0; j < n; j++)
            if (!fgi_lap_is_never(w[i * n + j])) w[i * n + j] -= p.u[i] + p.v[j];
    }
    return total;
}
