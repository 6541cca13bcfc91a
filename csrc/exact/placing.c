/* exact/placing.c - see exact/placing.h. The dual ascent of Hahn and Grant (1998): for thing i at place j the others
 * must be assigned, too; what that costs at least is moved to i at j, and what all things at their places cost at least
 * moves to the bound. What i at j costs beyond that is spread over its pairs before the next sweep, for the others to
 * use. A cost of two things is one number in two places, and moves freely between them. */
#include "exact/placing.h"
#include <string.h>

int fgi_placing_make(fgi_placing *p, int32_t m, fgi_arena *arena) {
    const int64_t square = (int64_t)m * m;
    p->m = m;
    p->at = p->backward = 0;
    p->alone = fgi_take(arena, square, int64_t);
    p->both = fgi_take(arena, square * square, int64_t);
    return !arena->failed;
}

static int64_t sum_of(int64_t a, int64_t b) {
    return fgi_lap_is_never(a) || fgi_lap_is_never(b) ? FGI_LAP_NEVER : a + b;
}

/* The costs of all others beside thing i at place j, both halves of each. What costs `room` or more is not wanted. */
static void collect(const fgi_placing *p, int32_t i, int32_t j, int64_t room, int64_t *w) {
    const int64_t m = p->m, own = (i * m + j) * m * m;
    for (int64_t k = 0; k < m; k++) {
        if (k == i) continue;
        for (int64_t l = 0; l < m; l++) {
            if (l == j) continue;
            const int64_t cost = sum_of(p->both[own + k * m + l], p->both[((k * m + l) * m + i) * m + j]);
            *w++ = fgi_lap_is_never(p->alone[k * m + l]) || cost >= room ? FGI_LAP_NEVER : cost;
        }
    }
}

/* What is left of these goes back, in two halves. */
static void give_back(fgi_placing *p, int32_t i, int32_t j, const int64_t *w) {
    const int64_t m = p->m, own = (i * m + j) * m * m;
    for (int64_t k = 0; k < m; k++) {
        if (k == i) continue;
        for (int64_t l = 0; l < m; l++) {
            if (l == j) continue;
            const int64_t cost = *w++, half = fgi_lap_is_never(cost) ? cost : cost / 2;
            p->both[own + k * m + l] = half;
            p->both[((k * m + l) * m + i) * m + j] = fgi_lap_is_never(cost) ? cost : cost - half;
        }
    }
}

/* Each thing at each place: what it costs alone goes to its pairs, as much to each of the other things. */
static void spread(fgi_placing *p, int64_t room) {
    const int64_t m = p->m;
    for (int64_t k = 0; k < m * m; k++) {
        if (p->alone[k] >= room) p->alone[k] = FGI_LAP_NEVER;
        if (fgi_lap_is_never(p->alone[k]) || m == 1) continue;
        const int64_t share = p->alone[k] / (m - 1), i = k / m, j = k % m;
        p->alone[k] -= share * (m - 1);
        for (int64_t a = 0; a < m; a++)
            for (int64_t b = 0; b < m; b++)
                if (a != i && b != j) p->both[(k * m + a) * m + b] = sum_of(p->both[(k * m + a) * m + b], share);
    }
}

static void ascend_pair(fgi_placing *p, int32_t i, int32_t j, int64_t room) {
    int64_t w[(FGI_LAP_MOST - 1) * (FGI_LAP_MOST - 1)], *alone = &p->alone[i * p->m + j];
    const int32_t others = p->m - 1;
    int32_t column[FGI_LAP_MOST];
    if (fgi_lap_is_never(*alone) || others == 0) return;
    collect(p, i, j, room, w);
    const int64_t least = fgi_lap_reduce(w, others, column);
    *alone = least < 0 ? FGI_LAP_NEVER : *alone + least;
    if (least >= 0) give_back(p, i, j, w);
}

int64_t fgi_placing_ascend(fgi_placing *p, int64_t room, int *swept, int *closed) {
    const int64_t m = p->m;
    if (p->at == 0) spread(p, room - p->lower);
    const int32_t pair = p->backward ? (int32_t)(m * m) - 1 - p->at : p->at;
    ascend_pair(p, pair / (int32_t)m, pair % (int32_t)m, room - p->lower);
    p->at = (int32_t)((p->at + 1) % (m * m));
    *swept = p->at == 0;
    *closed = 0;
    if (*swept) {
        p->backward = !p->backward;
        for (int64_t k = 0; k < m * m; k++)
            if (p->alone[k] >= room - p->lower) p->alone[k] = FGI_LAP_NEVER;
        const int64_t least = fgi_lap_reduce(p->alone, p->m, p->assigned);
        p->lower += least < 0 ? 0 : least;
        *closed = least < 0 || p->lower >= room;
    }
    return 4 * m * m;
}

void fgi_placing_restrict(const fgi_placing *p, int32_t i, int32_t j, fgi_placing *out) {
    const int64_t m = p->m, n = m - 1;
    out->m = (int32_t)n;
    out->at = 0;
    out->backward = 0;
    out->lower = sum_of(p->lower, p->alone[i * m + j]);
    for (int64_t k = 0; k < n; k++) {
        out->thing[k] = p->thing[k + (k >= i)];
        out->place[k] = p->place[k + (k >= j)];
    }
    for (int64_t k = 0; k < n; k++)
        for (int64_t l = 0; l < n; l++) {
            const int64_t row = k + (k >= i), column = l + (l >= j), from = row * m + column;
            const int64_t beside = sum_of(p->both[(i * m + j) * m * m + from], p->both[(from * m + i) * m + j]);
            out->alone[k * n + l] = sum_of(p->alone[from], beside);
            for (int64_t a = 0; a < n; a++) {
                const int64_t *line = p->both + (from * m + a + (a >= i)) * m;
                int64_t *to = out->both + ((k * n + l) * n + a) * n;
                memcpy(to, line, (size_t)j * sizeof *to);
                memcpy(to + j, line + j + 1, (size_t)(n - j) * sizeof *to);
            }
        }
}

int32_t fgi_placing_branch(const fgi_placing *p, int64_t room, int *is_thing) {
    const int64_t m = p->m, most = room - p->lower;
    int64_t best = -1;
    int32_t chosen = 0;
    for (int32_t line = 0; line < 2 * m; line++) {
        int64_t sum = 0;
        for (int64_t k = 0; k < m; k++) {
            const int64_t cost = line < m ? p->alone[line * m + k] : p->alone[k * m + line - m];
            sum += cost < most ? cost : most;
        }
        if (sum <= best) continue;
        best = sum;
        chosen = line;
    }
    *is_thing = chosen < m;
    return (int32_t)(chosen < m ? chosen : chosen - m);
}
