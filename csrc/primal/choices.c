/* primal/choices.c - see primal/choices.h. */
#include "primal/choices.h"
#include "base/assert.h"
#include <stdlib.h>
#include "base/util.h"
#include "model/alike.h"

enum { LEAST_LABELS = 4 }; /* with fewer nearly all are in use */

fgi_choices *fgi_choices_create(const fgi_model *m) {
    if (m->s->n_vars == 0 || m->s->max_card < LEAST_LABELS || !fgi_labels_are_alike(m)) return NULL;
    fgi_choices *c = fgi_calloc(1, sizeof *c);
    if (!c) return NULL;
    c->n_labels = m->s->max_card;
    c->labels = fgi_take(&c->arena, c->n_labels, int32_t);
    c->place = fgi_take(&c->arena, c->n_labels, int32_t);
    c->users = fgi_take_zero(&c->arena, c->n_labels, int32_t);
    if (c->arena.failed) {
        fgi_choices_free(c);
        return NULL;
    }
    for (int32_t a = 0; a < c->n_labels; a++) c->labels[a] = c->place[a] = a;
    return c;
}

void fgi_choices_free(fgi_choices *c) {
    if (!c) return;
    fgi_arena_free(&c->arena);
    free(c);
}

static void move(fgi_choices *c, int32_t label, int32_t to) {
    fgi_assert(label >= 0 && label < c->n_labels && to >= 0 && to < c->n_labels);
    const int32_t other = c->labels[to], from = c->place[label];
    c->labels[from] = other;
    c->place[other] = from;
    c->labels[to] = label;
    c->place[label] = to;
}

static void take(fgi_choices *c, int32_t label) {
    if (c->users[label]++ == 0) move(c, label, c->n_used++);
}

void fgi_choices_count(fgi_choices *c, const int32_t *labels, int64_t n_vars) {
    c->n_used = 0;
    for (int32_t a = 0; a < c->n_labels; a++) {
        c->users[a] = 0;
        c->labels[a] = c->place[a] = a;
    }
    for (int64_t i = 0; i < n_vars; i++) take(c, labels[i]);
}

void fgi_choices_change(fgi_choices *c, int32_t from, int32_t to) {
    fgi_assert(from >= 0 && from < c->n_labels && to >= 0 && to < c->n_labels);
    fgi_assert(c->users[from] > 0);
    take(c, to);
    if (--c->users[from] == 0) move(c, from, --c->n_used);
}
