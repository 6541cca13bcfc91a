/* oracle/general.c - the sublinear oracle of a factor over three or more variables.
 *
 * A state without any message is found as in the pairwise oracle: slices of the first variable by descending maximum,
 * each walked past labels with messages. Every other state lies in the slice x_k = a of some message delta_k(a); that
 * slice is walked in descending order until
 *     (... (theta - least_1) ... - delta_k(a)) ... - least_n,      least_l = min(0, smallest message of variable l),
 * computed in the order of the variables and hence never below a value, falls behind the best. Walks end with -1 where
 * memory is short, and where a scan would be done sooner (fgi_oracle_is_spent). */
#include "oracle/internal.h"

typedef struct lookup {
    const fgi_table_source *t;
    const fgi_oracle_query *q;
    fgi_oracle_scratch *w;
    double *least; /* in w->bound: one per variable */
    fgi_argmax best;
} lookup;

static const fgi_message *message_of(const lookup *look, int32_t k) { return &look->q->messages[k]; }
static const double *dense_of(const lookup *look, int32_t k) { return look->w->by_label[k]; }
static int has_message(const lookup *look, int32_t k, int32_t label) {
    return look->w->mark[(int64_t)k * look->w->max_card + label] == look->w->epoch;
}

static double bound_of(const lookup *look, int32_t k, double delta, double theta) {
    double value = look->t->view.weight * theta;
    for (int32_t l = 0; l < look->t->view.arity; l++) value -= l == k ? delta : look->least[l];
    return value;
}

/* The value of a state; *messages says how many of its labels have one. */
static double value_of(const lookup *look, int64_t state, double theta, int *messages) {
    const fgi_axis *axes = look->t->order->axes;
    double value = look->t->view.weight * theta;
    *messages = 0;
    for (int32_t k = 0; k < look->t->view.arity; k++) {
        int32_t label = (int32_t)(state / axes[k].inner);
        state %= axes[k].inner;
        value -= dense_of(look, k)[label];
        *messages += has_message(look, k, label);
    }
    return value;
}

/* With an equal bound, only a lower index can win. */
static int hopeful(const lookup *look, double bound, int64_t lowest) {
    return bound > look->best.value || (bound == look->best.value && lowest < look->best.state);
}

/* The list position `at` of slice a, lengthened if need be: 1 there is one, 0 there is none, -1 out of memory. */
static int reach(lookup *look, int32_t k, int32_t a, int32_t at, const fgi_list **list) {
    while (!*list || at == (*list)->n) {
        if (*list && (*list)->complete) return 0;
        *list = fgi_sorted_extend(look->t->order, look->t->view.values, k, a, *list, &look->w->touched);
        if (!*list) return -1;
    }
    return 1;
}

static int walk_message(lookup *look, int32_t k, int32_t a, double delta) {
    const fgi_axis *axis = &look->t->order->axes[k];
    const fgi_list *list = atomic_load_explicit(&axis->lists[a], memory_order_acquire);
    int status, messages;
    for (int32_t at = 0; (status = reach(look, k, a, at, &list)) > 0; at++) {
        int64_t state = fgi_axis_flat(axis, a, list->at[at]);
        double theta = look->t->view.values[state];
        look->w->touched++;
        if (fgi_oracle_is_spent(look->w)) return -1;
        if (!hopeful(look, bound_of(look, k, delta, theta), a * axis->inner)) break;
        if (fgi_is_banned(look->w, state)) continue;
        double value = value_of(look, state, theta, &messages);
        if (value > -INFINITY) fgi_argmax_offer(&look->best, state, value);
    }
    return status;
}

/* Returns 1 if an entry was worth offering, 0 if not, -1 if it cannot go on. */
static int walk_free(lookup *look, int32_t a) {
    const fgi_axis *axis = &look->t->order->axes[0];
    const fgi_list *list = atomic_load_explicit(&axis->lists[a], memory_order_acquire);
    int status, messages;
    for (int32_t at = 0; (status = reach(look, 0, a, at, &list)) > 0; at++) {
        int64_t state = fgi_axis_flat(axis, a, list->at[at]);
        double theta = look->t->view.values[state];
        look->w->touched++;
        if (fgi_oracle_is_spent(look->w)) return -1;
        double value = value_of(look, state, theta, &messages);
        if (!hopeful(look, look->t->view.weight * theta, a * axis->inner)) break;
        if (messages || fgi_is_banned(look->w, state)) continue;
        fgi_argmax_offer(&look->best, state, value);
        double below = fgi_sorted_below(look->t->order, look->t->view.values, 0, a, list, at, theta, &look->w->touched);
        if (look->t->view.weight * below < value) return 1;
    }
    return status;
}

static int no_message(lookup *look) {
    const fgi_axis *axis = &look->t->order->axes[0];
    for (int32_t k = 0; k < look->t->view.arity; k++)
        if (message_of(look, k)->n == look->t->cards[k]) return 0;
    for (int32_t r = 0; r < axis->n_live; r++) {
        const int32_t a = axis->rank[r];
        double bound = look->t->view.weight * axis->max[a];
        look->w->touched++;
        if (fgi_oracle_is_spent(look->w)) return -1;
        if (bound < look->best.value || bound == -INFINITY) return 0;
        if (!hopeful(look, bound, a * axis->inner)) {
            r = axis->run_end[r] - 1;
            continue;
        }
        if (!has_message(look, 0, a) && walk_free(look, a) < 0) return -1;
    }
    return 0;
}

static int some_message(lookup *look) {
    for (int32_t k = 0; k < look->t->view.arity; k++) {
        const fgi_message *m = message_of(look, k);
        const fgi_axis *axis = &look->t->order->axes[k];
        look->w->touched += m->n;
        for (int32_t l = 0; l < m->n; l++) {
            double bound = bound_of(look, k, m->values[l], axis->max[m->labels[l]]);
            if (bound > -INFINITY && hopeful(look, bound, m->labels[l] * axis->inner) &&
                walk_message(look, k, m->labels[l], m->values[l]) < 0)
                return -1;
        }
    }
    return 0;
}

static void try_hint(lookup *look) {
    const int64_t hint = look->q->hint;
    const fgi_axis *axis = &look->t->order->axes[0];
    int messages;
    if (hint < 0 || hint >= axis->n * axis->inner || fgi_is_banned(look->w, hint)) return;
    look->w->touched++;
    double value = value_of(look, hint, look->t->view.values[hint], &messages);
    if (value > -INFINITY) fgi_argmax_offer(&look->best, hint, value);
}

fgi_rc fgi_general_argmax(
    const fgi_table_source *t, const fgi_oracle_query *q, fgi_oracle_scratch *w, fgi_argmax *out) {
    lookup look = {.t = t, .q = q, .w = w, .least = w->bound, .best = {-1, -INFINITY}};
    fgi_oracle_epoch(w);
    fgi_oracle_spread(q, t->view.arity, t->cards, w);
    for (int32_t k = 0; k < t->view.arity; k++) {
        const fgi_message *m = message_of(&look, k);
        uint32_t *marks = w->mark + (int64_t)k * w->max_card;
        look.least[k] = 0.0;
        for (int32_t l = 0; l < m->n; l++) {
            marks[m->labels[l]] = w->epoch;
            if (m->values[l] < look.least[k]) look.least[k] = m->values[l];
        }
    }
    try_hint(&look);
    int status = some_message(&look);
    if (status >= 0) status = no_message(&look);
    fgi_oracle_gather(q, t->view.arity, w);
    *out = look.best;
    if (status >= 0) return FGI_OK;
    return fgi_oracle_is_spent(w) ? FGI_UNSUPPORTED : FGI_NO_MEMORY;
}
