/* oracle/updatable_check.c - the invariants of a table that changes, looked at in checked builds: see
 * oracle/updatable.h. */
#include "oracle/updatable.h"

#ifdef FGI_CHECKED

static int is_before(const fgi_updatable *u, int side, int32_t x, int32_t y) {
    const entry *e = &u->entries[x], *f = &u->entries[y];
    return e->value > f->value || (e->value == f->value && e->label[1 - side] < f->label[1 - side]);
}

static void check_dense(const fgi_updatable *u) {
    int64_t n = 0;
    for (int64_t k = 0; k < (int64_t)u->n[0] * u->n[1]; k++) {
        fgi_assert(u->dense[k] < INFINITY);
        n += u->dense[k] != 0.0;
    }
    fgi_assert(n == u->n_entries && !u->entries && !u->slots);
}

static void check_hash(const fgi_updatable *u) {
    int64_t n = 0;
    for (int64_t k = 0; k < u->n_slots; k++) n += u->slots[k] != 0;
    fgi_assert(n == u->n_entries && n < u->n_slots);
    for (int64_t id = 0; id < u->n_entries; id++) {
        int64_t at = updatable_home(u, u->entries[id].label[0], u->entries[id].label[1]);
        while (u->slots[at] && u->slots[at] != id + 1) at = (at + 1) & (u->n_slots - 1);
        fgi_assert(u->slots[at] == id + 1);
        fgi_assert(u->entries[id].value != 0.0 && u->entries[id].value < INFINITY);
    }
}

static void check_slice(const fgi_updatable *u, int side, int32_t a) {
    const slice *s = &u->slices[side][a];
    double max = s->n < u->n[1 - side] ? 0.0 : -INFINITY;
    int32_t before_zero = 0;
    fgi_assert(s->n >= 0 && s->n <= s->capacity && s->n <= u->n[1 - side]);
    for (int32_t k = 0; k < s->n; k++) {
        const entry *e = &u->entries[s->heap[k]];
        fgi_assert(e->label[side] == a && e->place[side] == k);
        fgi_assert(k == 0 || !is_before(u, side, s->heap[k], s->heap[(k - 1) / 2]));
        before_zero += e->label[1 - side] < s->first_zero;
        max = fgi_larger(max, e->value);
    }
    fgi_assert(before_zero == s->first_zero && max == u->max[side][a]);
}

static void check_tournament(const fgi_updatable *u, int side) {
    for (int32_t k = u->n_leaves[side] - 1; k > 0; k--) {
        const int32_t x = u->winner[side][2 * k], y = u->winner[side][2 * k + 1], best = u->winner[side][k];
        fgi_assert(best == x || best == y);
        fgi_assert(x < 0 || u->max[side][best] >= u->max[side][x]);
        fgi_assert(y < 0 || u->max[side][best] >= u->max[side][y]);
    }
}

void fgi_updatable_check(const fgi_updatable *u) {
    fgi_assert(u->n[0] > 0 && u->n[1] > 0 && u->n_entries >= 0);
    fgi_assert(u->scale > 0 && u->scale < INFINITY);
    if (u->dense) {
        check_dense(u);
        return;
    }
    check_hash(u);
    for (int side = 0; side < 2; side++) {
        for (int32_t a = 0; a < u->n[side]; a++) check_slice(u, side, a);
        check_tournament(u, side);
    }
}

#endif
