/* exact/node_check.c - the invariants of a node's problem, looked at in checked builds: see exact/node.h. */
#include "exact/node.h"

#ifdef FGI_CHECKED

static void check_variable(const fgi_node *p, int32_t i) {
    int32_t alive = 0;
    fgi_assert(p->begin[i + 1] - p->begin[i] == p->card[i]);
    for (int32_t a = 0; a < p->card[i]; a++) {
        const double unary = p->unary[p->begin[i] + a];
        const int is_alive = unary > -INFINITY;
        fgi_assert(unary < INFINITY);
        alive += is_alive;
        fgi_assert(p->label[p->begin[i] + a] >= 0);
        for (int32_t k = p->link_begin[i]; k < p->link_begin[i + 1]; k++) {
            const double mu = p->message[p->links[k].mu + a];
            fgi_assert(mu == mu && (is_alive || mu == 0));
        }
    }
    fgi_assert(alive == p->alive[i] || (alive > 0 && p->alive[i] == 0) || p->bound == -INFINITY);
    for (int32_t k = p->link_begin[i]; k < p->link_begin[i + 1]; k++) {
        const fgi_link *l = &p->links[k];
        const int32_t slot = p->slot_begin[l->factor] + l->position;
        fgi_assert(p->slot_var[slot] == i && p->slot_message[slot] == l->mu);
        fgi_assert(k == p->link_begin[i] || p->links[k - 1].factor < l->factor);
    }
}

void fgi_node_check(const fgi_node *p) {
    fgi_assert(p->begin[0] == 0 && p->slot_begin[0] == 0 && p->slot_begin[p->n_factors] == p->n_slots);
    fgi_assert(p->link_begin[0] == 0 && p->link_begin[p->n] == p->n_slots);
    fgi_assert(p->bound == p->bound && p->carry == p->carry && p->magnitude >= 0 && p->error >= 0);
    for (int32_t f = 0; f < p->n_factors; f++) {
        int64_t states = 1;
        fgi_assert(p->slot_begin[f + 1] - p->slot_begin[f] >= 2);
        for (int32_t s = p->slot_begin[f]; s < p->slot_begin[f + 1]; s++) {
            fgi_assert(p->slot_var[s] >= 0 && p->slot_var[s] < p->n);
            states *= p->card[p->slot_var[s]];
        }
        fgi_assert(states == p->states[f]);
        fgi_assert(p->table[f] != NULL && p->factor_max[f] < INFINITY);
    }
    for (int32_t i = 0; i < p->n; i++) check_variable(p, i);
}

#endif
