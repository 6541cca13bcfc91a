/* again/terms.c - see again/terms.h. */
#include "again/terms.h"
#include <string.h>

static int extend_level(fgi_term_level *of, int64_t room) {
    if (room <= of->room) return 1;
    if (!fgi_resize(&of->sums, room, sizeof *of->sums) || !fgi_resize(&of->stale, room, 1) ||
        !fgi_array_reserve(&of->changed, room - of->changed.n, sizeof(int64_t)))
        return 0;
    for (int64_t k = of->room; k < room; k++) of->sums[k] = (fgi_term_sums){.unit = INFINITY};
    memset(of->stale + of->room, 0, (size_t)(room - of->room));
    of->room = room;
    return 1;
}

int fgi_terms_extend(fgi_terms *t, int64_t n) {
    const int64_t all = FGI_TERM_BLOCK * FGI_TERM_GROUP;
    if (n > t->room) {
        int64_t groups = (n + all - 1) / all;
        if (t->room) groups += groups / 2;
        if (!extend_level(&t->groups, groups) || !extend_level(&t->blocks, groups * FGI_TERM_GROUP) ||
            !fgi_resize(&t->at, groups * all, sizeof *t->at))
            return 0;
        for (int64_t k = t->room; k < groups * all; k++) t->at[k] = (fgi_term){.unit = INFINITY};
        t->room = groups * all;
    }
    for (int64_t k = t->n; k < n; k++) fgi_terms_touch(t, k, FGI_TERM_TOP | FGI_TERM_VALUE);
    t->n = n;
    return 1;
}

static void free_level(fgi_term_level *of) {
    free(of->sums);
    free(of->stale);
    fgi_array_free(&of->changed);
}

void fgi_terms_free(fgi_terms *t) {
    free(t->at);
    free_level(&t->blocks);
    free_level(&t->groups);
    *t = (fgi_terms){0};
}

int64_t fgi_terms_memory(const fgi_terms *t) {
    const int64_t sums = sizeof(fgi_term_sums) + sizeof(int64_t) + 1;
    return t->room * (int64_t)sizeof(fgi_term) + (t->blocks.room + t->groups.room) * sums;
}

/* ---- sums ---------------------------------------------------------------------------------------------------- */

enum { LANES = 4 }; /* sums side by side, so that no addition waits for the one before */
_Static_assert(FGI_TERM_BLOCK % LANES == 0, "a block is summed in lanes");

typedef struct lanes {
    double sum[LANES], carry[LANES], lost[LANES]; /* lost: by how much carries have changed */
    int32_t forbidden;
} lanes;

/* As fgi_sum_add, without a branch on the numbers, which would be mispredicted (Knuth's sum, the same carry). */
static inline void add(lanes *restrict s, const double *restrict x) {
    for (int l = 0; l < LANES; l++) {
        const int is_forbidden = x[l] == -INFINITY;
        const double y = is_forbidden ? 0 : x[l], sum = s->sum[l], carry = s->carry[l];
        const double total = sum + y, of_y = total - sum, now = carry + ((sum - (total - of_y)) + (y - of_y));
        s->forbidden |= is_forbidden;
        s->lost[l] += fabs(now - carry);
        s->carry[l] = now;
        s->sum[l] = total;
    }
}

/* Adds the lanes to a sum. Returns what was lost. */
static double close(const lanes *s, fgi_sum *to) {
    double lost = 0;
    for (int l = 0; l < LANES; l++) {
        const double carry = to->carry;
        fgi_sum_add(to, s->sum[l]);
        lost += s->lost[l] + fabs(to->carry - carry);
        to->carry += s->carry[l];
    }
    to->forbidden |= s->forbidden;
    return lost;
}

void fgi_term_sums_begin(fgi_term_sums *s, double constant) {
    *s = (fgi_term_sums){.unit = INFINITY, .magnitude = fabs(constant)};
    fgi_sum_add(&s->value, constant);
    fgi_sum_add(&s->top, constant);
}

/* Terms beyond the last one are 0. */
static void add_tops(fgi_term_sums *s, const fgi_term *at) {
    lanes top = {{0}, {0}, {0}, 0};
    double magnitude[LANES] = {0}, x[LANES];
    for (int k = 0; k < FGI_TERM_BLOCK; k += LANES) {
        for (int l = 0; l < LANES; l++) {
            x[l] = at[k + l].top;
            magnitude[l] += x[l] > -INFINITY ? fabs(x[l]) : 0;
        }
        add(&top, x);
    }
    s->top = (fgi_sum){0, 0, 0};
    s->magnitude = 0;
    close(&top, &s->top);
    for (int l = 0; l < LANES; l++) s->magnitude += magnitude[l];
}

static void add_values(fgi_term_sums *s, const fgi_term *at) {
    lanes value = {{0}, {0}, {0}, 0};
    double x[LANES];
    s->unit = INFINITY;
    for (int k = 0; k < FGI_TERM_BLOCK; k += LANES) {
        for (int l = 0; l < LANES; l++) {
            x[l] = at[k + l].value;
            s->unit = fgi_smaller(s->unit, at[k + l].unit);
        }
        add(&value, x);
    }
    s->value = (fgi_sum){0, 0, 0};
    s->lost = close(&value, &s->value);
}

/* Adds n sums, an even number. */
static void add_sums(const fgi_term_sums *of, int64_t n, fgi_term_sums *to) {
    lanes value = {{0}, {0}, {0}, 0}, top = value;
    for (int64_t k = 0; k < n; k += LANES / 2) {
        double x[LANES], y[LANES];
        for (int64_t l = 0; l < LANES / 2; l++) {
            const fgi_term_sums *s = &of[k + l];
            x[2 * l] = s->value.sum;
            x[2 * l + 1] = s->value.carry;
            y[2 * l] = s->top.sum;
            y[2 * l + 1] = s->top.carry;
            to->lost += s->lost;
            to->top.forbidden |= s->top.forbidden;
            to->value.forbidden |= s->value.forbidden;
            to->magnitude += s->magnitude;
            to->unit = fgi_smaller(to->unit, s->unit);
        }
        add(&value, x);
        add(&top, y);
    }
    to->lost += close(&value, &to->value);
    close(&top, &to->top);
}

void fgi_terms_add_up(fgi_terms *t, fgi_term_sums *to) {
    fgi_term_level *blocks = &t->blocks, *groups = &t->groups;
    for (int64_t at = 0; at < blocks->changed.n; at++) {
        const int64_t k = ((const int64_t *)blocks->changed.at)[at];
        if (blocks->stale[k] & FGI_TERM_TOP) add_tops(&blocks->sums[k], t->at + k * FGI_TERM_BLOCK);
        if (blocks->stale[k] & FGI_TERM_VALUE) add_values(&blocks->sums[k], t->at + k * FGI_TERM_BLOCK);
        blocks->stale[k] = 0;
        fgi_term_level_touch(groups, k / FGI_TERM_GROUP, 1);
    }
    blocks->changed.n = 0;
    for (int64_t at = 0; at < groups->changed.n; at++) {
        const int64_t k = ((const int64_t *)groups->changed.at)[at];
        groups->sums[k] = (fgi_term_sums){.unit = INFINITY};
        add_sums(blocks->sums + k * FGI_TERM_GROUP, FGI_TERM_GROUP, &groups->sums[k]);
        groups->stale[k] = 0;
    }
    groups->changed.n = 0;
    const int64_t all = FGI_TERM_BLOCK * FGI_TERM_GROUP, n = (t->n + all - 1) / all;
    add_sums(groups->sums, n & ~(int64_t)1, to);
    if (n % 2) {
        const fgi_term_sums last[2] = {groups->sums[n - 1], {.unit = INFINITY}};
        add_sums(last, 2, to);
    }
}
