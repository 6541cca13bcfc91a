/* model/alike.c - see model/alike.h. */
#include "model/alike.h"
#include <stdlib.h>
#include "base/util.h"

/* Labels 0 and 1 change places, or each goes one up: these two make all renamings. */
static int32_t renamed(int32_t a, int32_t k, int upwards) {
    if (upwards) return (a + 1) % k;
    return a < 2 ? 1 - a : a;
}

/* Is a table the same when all its labels are renamed? `state` has room for its arity. */
static int is_invariant(const double *values, int32_t arity, int32_t k, int upwards, int32_t *state) {
    int64_t states = 1;
    for (int32_t j = 0; j < arity; j++) {
        states *= k;
        state[j] = 0;
    }
    for (int64_t at = 0; at < states; at++) {
        int64_t other = 0;
        for (int32_t j = 0; j < arity; j++) other = other * k + renamed(state[j], k, upwards);
        if (values[other] != values[at]) return 0;
        for (int32_t j = arity - 1; j >= 0 && ++state[j] == k; j--) state[j] = 0;
    }
    return 1;
}

static int is_alike(const fgi_model *m, int64_t t, int32_t k, int32_t *state) {
    const fgi_structure *s = m->s;
    if (s->table_kind[t] == FGI_POTTS) return 1;
    if (s->table_kind[t] != FGI_DENSE) return k == 2 || s->params[2 * t + 1] <= 1; /* all distances count alike */
    const double *values = m->t->values + s->values_begin[t];
    const int32_t arity = s->table_arity[t];
    return is_invariant(values, arity, k, 0, state) && (k == 2 || is_invariant(values, arity, k, 1, state));
}

int fgi_labels_are_alike(const fgi_model *m) {
    const fgi_structure *s = m->s;
    const int32_t k = s->n_vars > 0 ? s->cards[0] : 0;
    if (k < 2 || s->min_card != s->max_card) return 0;
    for (int64_t i = 0; i < s->n_vars; i++) {
        const double *unary = fgi_unary(m, i);
        for (int32_t a = 1; a < k; a++)
            if (unary[a] != unary[0]) return 0;
    }
    int32_t *state = fgi_alloc(s->max_arity + 1, sizeof *state);
    int alike = state != NULL;
    for (int64_t t = 0; t < s->n_tables && alike; t++) alike = is_alike(m, t, k, state);
    free(state);
    return alike;
}
