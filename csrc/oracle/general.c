/* oracle/general.c - the sublinear oracle of a factor over three or more variables.
 *
 * A state without any message is found as in the pairwise oracle: slices of the first variable by descending maximum,
 * each walked past labels with messages. Every other state lies in the slice x_k = a of some message delta_k(a); that
 * slice is walked in descending order until
 *     (... (theta - least_1) ... - delta_k(a)) ... - least_n,      least_l = min(0, smallest message of variable l),
 * computed in the order of the variables and hence never below a value, falls behind the best. Walks end with -1 where
 * memory is short, and where a scan would be done sooner (fgi_oracle_is_spent). */
#include "oracle/internal.h"

typedef struct search {
    const fgi_table_source *t;
    const fgi_oracle_query *q;
    fgi_oracle_scratch *w;
    double *least; /* in w->bound: one per variable */
    fgi_argmax best;
} search;

static const fgi_message *message_of(const search *s, int32_t k) { return &s->q->messages[k]; }
static const double *dense_of(const search *s, int32_t k) { return s->w->by_label[k]; }
static int has_message(const search *s, int32_t k, int32_t label) {
    return s->w->mark[(int64_t)k * s->w->max_card + label] == s->w->epoch;
}

static double bound_of(const search *s, int32_t k, double delta, double theta) {
    double value = s->t->view.weight * theta;
    for (int32_t l = 0; l < s->t->view.arity; l++) value -= l == k ? delta : s->least[l];
    return value;
}

/* The value of a state; *messages says how many of its labels have one. */
static double value_of(const search *s, int64_t state, double theta, int *messages) {
    const fgi_axis *axes = s->t->order->axes;
    double value = s->t->view.weight * theta;
    *messages = 0;
    for (int32_t k = 0; k < s->t->view.arity; k++) {
        int32_t label = (int32_t)(state / axes[k].inner);
        state %= axes[k].inner;
        value -= dense_of(s, k)[label];
        *messages += has_message(s, k, label);
    }
    return value;
}

/* With an equal bound, only a lower index can win. */
static int hopeful(const search *s, double bound, int64_t lowest) {
    return bound > s->best.value || (bound == s->best.value && lowest < s->best.state);
}

/* The list position `at` of slice a, lengthened if need be: 1 there is one, 0 there is none, -1 out of memory. */
static int reach(search *s, int32_t k, int32_t a, int32_t at, const fgi_list **list) {
    while (!*list || at == (*list)->n) {
        if (*list && (*list)->complete) return 0;
        *list = fgi_sorted_extend(s->t->order, s->t->view.values, k, a, *list, &s->w->touched);
        if (!*list) return -1;
    }
    return 1;
}

static int walk_message(search *s, int32_t k, int32_t a, double delta) {
    const fgi_axis *axis = &s->t->order->axes[k];
    const fgi_list *list = atomic_load_explicit(&axis->lists[a], memory_order_acquire);
    int status, messages;
    for (int32_t at = 0; (status = reach(s, k, a, at, &list)) > 0; at++) {
        int64_t state = fgi_axis_flat(axis, a, list->at[at]);
        double theta = s->t->view.values[state];
        s->w->touched++;
        if (fgi_oracle_is_spent(s->w)) return -1;
        if (!hopeful(s, bound_of(s, k, delta, theta), a * axis->inner)) break;
        if (fgi_is_banned(s->w, state)) continue;
        double value = value_of(s, state, theta, &messages);
        if (value > -INFINITY) fgi_argmax_offer(&s->best, state, value);
    }
    return status;
}

/* Returns 1 if an entry was worth offering, 0 if not, -1 if it cannot go on. */
static int walk_free(search *s, int32_t a) {
    const fgi_axis *axis = &s->t->order->axes[0];
    const fgi_list *list = atomic_load_explicit(&axis->lists[a], memory_order_acquire);
    int status, messages;
    for (int32_t at = 0; (status = reach(s, 0, a, at, &list)) > 0; at++) {
        int64_t state = fgi_axis_flat(axis, a, list->at[at]);
        double theta = s->t->view.values[state];
        s->w->touched++;
        if (fgi_oracle_is_spent(s->w)) return -1;
        double value = value_of(s, state, theta, &messages);
        if (!hopeful(s, s->t->view.weight * theta, a * axis->inner)) break;
        if (messages || fgi_is_banned(s->w, state)) continue;
        fgi_argmax_offer(&s->best, state, value);
        double below = fgi_sorted_below(s->t->order, s->t->view.values, 0, a, list, at, theta, &s->w->touched);
        if (s->t->view.weight * below < value) return 1;
    }
    return status;
}

static int no_message(search *s) {
    const fgi_axis *axis = &s->t->order->axes[0];
    for (int32_t k = 0; k < s->t->view.arity; k++)
        if (message_of(s, k)->n == s->t->cards[k]) return 0;
    for (int32_t r = 0; r < axis->n_live; r++) {
        const int32_t a = axis->rank[r];
        double bound = s->t->view.weight * axis->max[a];
        s->w->touched++;
        if (fgi_oracle_is_spent(s->w)) return -1;
        if (bound < s->best.value || bound == -INFINITY) return 0;
        if (!hopeful(s, bound, a * axis->inner)) {
            r = axis->run_end[r] - 1;
            continue;
        }
        if (!has_message(s, 0, a) && walk_free(s, a) < 0) return -1;
    }
    return 0;
}

static int some_message(search *s) {
    for (int32_t k = 0; k < s->t->view.arity; k++) {
        const fgi_message *m = message_of(s, k);
        const fgi_axis *axis = &s->t->order->axes[k];
        s->w->touched += m->n;
        for (int32_t l = 0; l < m->n; l++) {
            double bound = bound_of(s, k, m->values[l], axis->max[m->labels[l]]);
            if (bound > -INFINITY && hopeful(s, bound, m->labels[l] * axis->inner) &&
                walk_message(s, k, m->labels[l], m->values[l]) < 0)
                return -1;
        }
    }
    return 0;
}

static void try_hint(search *s) {
    const int64_t hint = s->q->hint;
    const fgi_axis *axis = &s->t->order->axes[0];
    int messages;
    if (hint < 0 || hint >= axis->n * axis->inner || fgi_is_banned(s->w, hint)) return;
    s->w->touched++;
    double value = value_of(s, hint, s->t->view.values[hint], &messages);
    if (value > -INFINITY) fgi_argmax_offer(&s->best, hint, value);
}

fgi_rc fgi_general_argmax(
    const fgi_table_source *t, const fgi_oracle_query *q, fgi_oracle_scratch *w, fgi_argmax *out) {
    search s = {.t = t, .q = q, .w = w, .least = w->bound, .best = {-1, -INFINITY}};
    fgi_oracle_epoch(w);
    fgi_oracle_spread(q, t->view.arity, t->cards, w);
    for (int32_t k = 0; k < t->view.arity; k++) {
        const fgi_message *m = message_of(&s, k);
        uint32_t *marks = w->mark + (int64_t)k * w->max_card;
        s.least[k] = 0.0;
        for (int32_t l = 0; l < m->n; l++) {
            marks[m->labels[l]] = w->epoch;
            if (m->values[l] < s.least[k]) s.least[k] = m->values[l];
        }
    }
    try_hint(&s);
    int status = some_message(&s);
    if (status >= 0) status = no_message(&s);
    fgi_oracle_gather(q, t->view.arity, w);
    *out = s.best;
    if (status >= 0) return FGI_OK;
    return fgi_oracle_is_spent(w) ? FGI_UNSUPPORTED : FGI_NO_MEMORY;
}
