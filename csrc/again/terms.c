/* again/terms.c - see again/terms.h. */
#include "again/terms.h"
#include <string.h>

int fgi_terms_extend(fgi_terms *t, int64_t n) {
    const int64_t n_blocks = (n + FGI_TERM_BLOCK - 1) / FGI_TERM_BLOCK, room = n_blocks * FGI_TERM_BLOCK;
    if (room > t->room) {
        const int64_t more = n_blocks + (t->room ? n_blocks / 2 : 0);
        if (!fgi_resize(&t->at, more * FGI_TERM_BLOCK, sizeof *t->at) ||
            !fgi_resize(&t->blocks, more, sizeof *t->blocks) || !fgi_resize(&t->stale, more, 1) ||
            !fgi_array_reserve(&t->changed, more - t->changed.n, sizeof(int64_t)))
            return 0;
        memset(t->at + t->room, 0, (size_t)(more * FGI_TERM_BLOCK - t->room) * sizeof *t->at);
        for (int64_t k = t->room; k < more * FGI_TERM_BLOCK; k++) t->at[k].unit = INFINITY;
        memset(t->stale + t->n_blocks_room, 0, (size_t)(more - t->n_blocks_room));
        t->n_blocks_room = more;
        t->room = more * FGI_TERM_BLOCK;
    }
    for (int64_t k = t->n; k < n; k++) fgi_terms_touch(t, k);
    t->n = n;
    return 1;
}

void fgi_terms_free(fgi_terms *t) {
    free(t->at);
    free(t->blocks);
    free(t->stale);
    fgi_array_free(&t->changed);
    *t = (fgi_terms){0};
}

/* As fgi_sum_add, without a branch on the numbers, which would be mispredicted (Knuth's sum, the same carry). Returns
 * by how much the carry has changed. */
static inline double add(fgi_sum *s, double x) {
    if (x == -INFINITY) {
        s->forbidden = 1;
        return 0;
    }
    const double total = s->sum + x, of_x = total - s->sum, carry = s->carry;
    s->carry += (s->sum - (total - of_x)) + (x - of_x);
    s->sum = total;
    return fabs(s->carry - carry);
}

static inline void add_value(fgi_term_sums *s, double x) { s->lost += add(&s->value, x); }

static inline void add_top(fgi_term_sums *s, double x) {
    add(&s->top, x);
    s->magnitude += fabs(x);
}

void fgi_term_sums_begin(fgi_term_sums *s, double constant) {
    *s = (fgi_term_sums){.unit = INFINITY};
    add_value(s, constant);
    add_top(s, constant);
}

static void add_block(fgi_terms *t, int64_t block) {
    fgi_term_sums s = {.unit = INFINITY};
    const int64_t begin = block * FGI_TERM_BLOCK, end = begin + FGI_TERM_BLOCK < t->n ? begin + FGI_TERM_BLOCK : t->n;
    for (int64_t k = begin; k < end; k++) {
        add_value(&s, t->at[k].value);
        add_top(&s, t->at[k].top);
        s.unit = fgi_smaller(s.unit, t->at[k].unit);
    }
    t->blocks[block] = s;
    t->stale[block] = 0;
}

void fgi_terms_add_up(fgi_terms *t, fgi_term_sums *to) {
    const int64_t *changed = t->changed.at;
    for (int64_t k = 0; k < t->changed.n; k++) add_block(t, changed[k]);
    t->changed.n = 0;
    for (int64_t k = 0; k * FGI_TERM_BLOCK < t->n; k++) {
        const fgi_term_sums *s = &t->blocks[k];
        add_value(to, s->value.sum);
        add_value(to, s->value.carry);
        to->lost += s->lost;
        fgi_sum_add(&to->top, s->top.sum);
        fgi_sum_add(&to->top, s->top.carry);
        to->top.forbidden |= s->top.forbidden;
        to->value.forbidden |= s->value.forbidden;
        to->magnitude += s->magnitude;
        to->unit = fgi_smaller(to->unit, s->unit);
    }
}
