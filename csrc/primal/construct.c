/* primal/construct.c - feasible rounding: backtracking with generalised arc consistency, see primal/labeling.h.
 *
 * Domains only shrink along a branch and every removal is on a trail, so undoing is exact. A removal at level 0 follows
 * from the model alone and is kept for all later constructions. The search is complete: running out of labels at level
 * 0 proves that no labeling is feasible. */
#include <string.h>
#include "base/assert.h"
#include "primal/labeling.h"

enum {
    FILTER_STATES = 1 << 14,    /* a factor with more remaining states waits until its domains are smaller */
    LOOKAHEAD_STATES = 1 << 10, /* states of a factor that is not asked any more what a choice would leave */
    FIRST_RESTART = 32          /* backtracks before the first restart; grows by half each time (decision 0016) */
};

typedef struct decision {
    int32_t var, label;
    int64_t trail;
} decision;

struct fgi_construct {
    const fgi_model *model;
    uint8_t *alive;       /* per label, laid out as the unaries */
    int32_t *alive_count; /* per variable */
    int64_t *trail;       /* removed labels (indices into alive) and their variables */
    int32_t *trail_var;
    int64_t trail_size;
    decision *decisions;
    int64_t n_decisions;
    uint8_t *hard;    /* per factor: has forbidden entries */
    uint8_t *pending; /* per factor: on the queue */
    int32_t *queue;   /* circular, factors to be made consistent */
    int64_t head, count;
    double *weight; /* per variable: 1 + conflicts of its factors */
    double *preferences;
    double *value; /* scratch, max_card */
    int32_t *hint;
    int32_t *order; /* variables, clearest preference first */
    int32_t *place; /* per variable: where it is in `order` */
    double *margin;
    int32_t *heap, *heap_at; /* variables, the next one to decide on top; per variable: where it is in `heap` */
    int32_t *labels;
    int32_t *digits;    /* scratch, max_arity: state being enumerated */
    uint8_t *supported; /* scratch, max_arity * max_card */
    int64_t operations, backtracks, max_backtracks, restart_at, restart_every;
    int greedy, has_hint, rooted;
    fgi_construct_state state;
    fgi_arena arena;
};

fgi_construct *fgi_construct_create(const fgi_model *m) {
    const fgi_structure *s = m->s;
    const int64_t n = s->n_vars, total = s->unary_begin[n];
    fgi_construct *c = fgi_calloc(1, sizeof *c);
    if (!c) return NULL;
    c->model = m;
    c->alive = fgi_take(&c->arena, total, uint8_t);
    c->alive_count = fgi_take(&c->arena, n, int32_t);
    c->trail = fgi_take(&c->arena, total, int64_t);
    c->trail_var = fgi_take(&c->arena, total, int32_t);
    c->decisions = fgi_take(&c->arena, n, decision);
    c->hard = fgi_take(&c->arena, s->n_factors, uint8_t);
    c->pending = fgi_take_zero(&c->arena, s->n_factors, uint8_t);
    c->queue = fgi_take(&c->arena, s->n_factors, int32_t);
    c->weight = fgi_take(&c->arena, n, double);
    c->preferences = fgi_take(&c->arena, total, double);
    c->value = fgi_take(&c->arena, s->max_card, double);
    c->hint = fgi_take(&c->arena, n, int32_t);
    c->order = fgi_take(&c->arena, n, int32_t);
    c->place = fgi_take(&c->arena, n, int32_t);
    c->margin = fgi_take(&c->arena, n, double);
    c->heap = fgi_take(&c->arena, n, int32_t);
    c->heap_at = fgi_take(&c->arena, n, int32_t);
    c->labels = fgi_take_zero(&c->arena, n, int32_t);
    c->digits = fgi_take(&c->arena, s->max_arity, int32_t);
    c->supported = fgi_take(&c->arena, (int64_t)s->max_arity * s->max_card, uint8_t);
    if (!c->arena.failed) return c;
    fgi_construct_free(c);
    return NULL;
}

void fgi_construct_free(fgi_construct *c) {
    if (!c) return;
    fgi_arena_free(&c->arena);
    free(c);
}

int64_t fgi_construct_memory(const fgi_construct *c) { return (int64_t)sizeof *c + c->arena.bytes; }

const int32_t *fgi_construct_labels(const fgi_construct *c) { return c->labels; }
int64_t fgi_construct_operations(const fgi_construct *c) { return c->operations; }

/* ---- which variable is next
 * ------------------------------------------------------------------------------------------ */

/* Open variables before fixed ones, then the fewest labels per conflict weight, then the clearest preference. */
static int comes_before(const fgi_construct *c, int32_t i, int32_t j) {
    const int fixed_i = c->alive_count[i] < 2, fixed_j = c->alive_count[j] < 2;
    if (fixed_i != fixed_j) return fixed_j;
    const double a = c->alive_count[i] * c->weight[j], b = c->alive_count[j] * c->weight[i];
    return a != b ? a < b : c->place[i] < c->place[j];
}

static void put(fgi_construct *c, int64_t at, int32_t var) {
    fgi_assert(at >= 0 && at < c->model->s->n_vars && var >= 0 && var < c->model->s->n_vars);
    c->heap[at] = var;
    c->heap_at[var] = (int32_t)at;
}

/* Moves a variable from a place down to where it comes before those below. */
static void sink(fgi_construct *c, int64_t at, int32_t var) {
    const int64_t n = c->model->s->n_vars;
    for (;;) {
        int64_t child = 2 * at + 1;
        if (child >= n) break;
        if (child + 1 < n && comes_before(c, c->heap[child + 1], c->heap[child])) child++;
        if (!comes_before(c, c->heap[child], var)) break;
        put(c, at, c->heap[child]);
        at = child;
    }
    put(c, at, var);
}

/* Moves a variable to where it belongs after its labels or its weight have changed. */
static void sift(fgi_construct *c, int32_t var) {
    int64_t at = c->heap_at[var];
    for (; at > 0 && comes_before(c, var, c->heap[(at - 1) / 2]); at = (at - 1) / 2) put(c, at, c->heap[(at - 1) / 2]);
    sink(c, at, var);
}

static void make_heap(fgi_construct *c) {
    for (int64_t k = 0; k < c->model->s->n_vars; k++) {
        c->place[c->order[k]] = (int32_t)k;
        put(c, k, c->order[k]);
    }
    for (int64_t k = c->model->s->n_vars / 2 - 1; k >= 0; k--)
        sink(c, k, c->heap[k]); /* what is above is in no order yet */
}

/* -1 when all variables are fixed. */
static int32_t choose_variable(const fgi_construct *c) {
    return c->model->s->n_vars > 0 && c->alive_count[c->heap[0]] > 1 ? c->heap[0] : -1;
}

/* ---- propagation
 * ----------------------------------------------------------------------------------------------------- */

static void enqueue(fgi_construct *c, int32_t factor) {
    if (!c->hard[factor] || c->pending[factor]) return;
    const int64_t n = c->model->s->n_factors;
    int64_t at = c->head + c->count++;
    c->pending[factor] = 1;
    c->queue[at >= n ? at - n : at] = factor;
}

static int32_t dequeue(fgi_construct *c) {
    int32_t factor = c->queue[c->head];
    if (++c->head == c->model->s->n_factors) c->head = 0;
    c->count--;
    c->pending[factor] = 0;
    return factor;
}

/* Removes a label and wakes the variable's other hard factors. */
static void drop(fgi_construct *c, int32_t var, int32_t label, int32_t by_factor) {
    fgi_assert(var >= 0 && var < c->model->s->n_vars && label >= 0 && label < c->model->s->cards[var]);
    fgi_assert(c->alive_count[var] > 0);
    const fgi_structure *s = c->model->s;
    const int64_t at = s->unary_begin[var] + label;
    c->alive[at] = 0;
    c->alive_count[var]--;
    c->trail[c->trail_size] = at;
    c->trail_var[c->trail_size++] = var;
    sift(c, var);
    for (int64_t k = s->adj_begin[var]; k < s->adj_begin[var + 1]; k++)
        if (s->adj[k] != by_factor) enqueue(c, s->adj[k]);
}

static void undo(fgi_construct *c, int64_t trail) {
    while (c->trail_size > trail) {
        c->trail_size--;
        c->alive[c->trail[c->trail_size]] = 1;
        c->alive_count[c->trail_var[c->trail_size]]++;
        sift(c, c->trail_var[c->trail_size]);
    }
    while (c->count) dequeue(c);
}

static int32_t next_alive(const uint8_t *alive, int32_t from, int32_t card) {
    while (from < card && !alive[from]) from++;
    return from;
}

/* Enumeration of a factor's remaining states: digits holds one label per variable. Returns 0 after the last. */
static int next_state(const fgi_construct *c, const fgi_view *v, int32_t *digits, int32_t skip) {
    const fgi_structure *s = c->model->s;
    for (int32_t k = v->arity - 1; k >= 0; k--) {
        if (k == skip) continue;
        const uint8_t *alive = c->alive + s->unary_begin[v->vars[k]];
        const int32_t card = s->cards[v->vars[k]];
        digits[k] = next_alive(alive, digits[k] + 1, card);
        if (digits[k] < card) return 1;
        digits[k] = next_alive(alive, 0, card);
    }
    return 0;
}

static void first_state(const fgi_construct *c, const fgi_view *v, int32_t *digits) {
    for (int32_t k = 0; k < v->arity; k++)
        digits[k] = next_alive(c->alive + c->model->s->unary_begin[v->vars[k]], 0, c->model->s->cards[v->vars[k]]);
}

static double state_score(const fgi_construct *c, const fgi_view *v, const int32_t *digits) {
    if (v->arity == 2) return fgi_view_at2(v, digits[0], digits[1]);
    int64_t at = 0;
    for (int32_t k = 0; k < v->arity; k++) at = at * c->model->s->cards[v->vars[k]] + digits[k];
    return v->weight * v->values[at];
}

static int64_t remaining_states(const fgi_construct *c, const fgi_view *v, int64_t limit) {
    int64_t states = 1;
    for (int32_t k = 0; k < v->arity && states <= limit; k++) states *= c->alive_count[v->vars[k]];
    return states;
}

/* Generalised arc consistency of one factor: labels without a finite state are removed. 0: no state is left.
 * It reads states one by one, though model/consistency.c does the same faster by rows: the count of states read steers
 * restarts and limits, and first labelings come later without it (decision 0016). */
static int filter(fgi_construct *c, int32_t factor) {
    const fgi_structure *s = c->model->s;
    const fgi_view v = fgi_factor_view(c->model, factor);
    const int64_t states = remaining_states(c, &v, FILTER_STATES);
    if (states == 0 || states > FILTER_STATES) return states != 0;
    int64_t wanted = 0;
    for (int32_t k = 0; k < v.arity; k++) {
        wanted += c->alive_count[v.vars[k]];
        memset(c->supported + (int64_t)k * s->max_card, 0, (size_t)s->cards[v.vars[k]]);
    }
    first_state(c, &v, c->digits);
    do {
        c->operations++;
        if (state_score(c, &v, c->digits) == -INFINITY) continue;
        for (int32_t k = 0; k < v.arity; k++) {
            uint8_t *mark = c->supported + (int64_t)k * s->max_card + c->digits[k];
            wanted -= !*mark;
            *mark = 1;
        }
    } while (wanted > 0 && next_state(c, &v, c->digits, -1));
    if (wanted == 0) return 1;
    for (int32_t k = 0; k < v.arity; k++) {
        const uint8_t *mark = c->supported + (int64_t)k * s->max_card;
        for (int32_t a = 0; a < s->cards[v.vars[k]]; a++)
            if (c->alive[s->unary_begin[v.vars[k]] + a] && !mark[a]) drop(c, v.vars[k], a, factor);
        if (c->alive_count[v.vars[k]] == 0) return 0;
    }
    return 1;
}

/* A dead end: takes back the last decision and forbids it, or restarts with the weights learned. */
static void conflict(fgi_construct *c, int32_t factor) {
    const int32_t *vars = fgi_factor_vars(c->model->s, factor);
    for (int32_t k = 0; k < fgi_factor_arity(c->model->s, factor); k++) {
        c->weight[vars[k]]++;
        sift(c, vars[k]);
    }
    for (;;) {
        c->backtracks++;
        if (c->n_decisions == 0) {
            c->state = FGI_CONSTRUCT_INFEASIBLE;
            return;
        }
        if (c->backtracks > c->max_backtracks) {
            c->state = FGI_CONSTRUCT_GAVE_UP;
            return;
        }
        decision last = c->decisions[--c->n_decisions];
        if (c->backtracks >= c->restart_at && c->n_decisions > 0) {
            c->restart_every += c->restart_every / 2;
            c->restart_at = c->backtracks + c->restart_every;
            undo(c, c->decisions[0].trail);
            c->n_decisions = 0;
            return;
        }
        undo(c, last.trail);
        drop(c, last.var, last.label, -1);
        if (c->alive_count[last.var] > 0) return;
    }
}

/* What the factors of a variable can still give to each of its labels, added to `value`. */
static void look_ahead(fgi_construct *c, int32_t var, double *value) {
    fgi_assert(var >= 0 && var < c->model->s->n_vars);
    const fgi_structure *s = c->model->s;
    for (int64_t k = s->adj_begin[var]; k < s->adj_begin[var + 1]; k++) {
        const fgi_view v = fgi_factor_view(c->model, s->adj[k]);
        const int64_t states = remaining_states(c, &v, LOOKAHEAD_STATES);
        if (states == 0 || states > LOOKAHEAD_STATES)
            continue; /* 0: after giving up, a variable may have no label left */
        int32_t at = 0;
        while (v.vars[at] != var) at++;
        for (int32_t a = 0; a < s->cards[var]; a++) {
            if (!c->alive[s->unary_begin[var] + a]) continue;
            double best = -INFINITY;
            first_state(c, &v, c->digits);
            c->digits[at] = a;
            do {
                c->operations++;
                double x = state_score(c, &v, c->digits);
                if (x > best) best = x;
            } while (next_state(c, &v, c->digits, at));
            value[a] = best == -INFINITY ? best : value[a] + best;
        }
    }
}

static int32_t choose_label(fgi_construct *c, int32_t var) {
    fgi_assert(var >= 0 && var < c->model->s->n_vars && c->alive_count[var] > 0);
    const fgi_structure *s = c->model->s;
    const uint8_t *alive = c->alive + s->unary_begin[var];
    const int32_t card = s->cards[var];
    if (c->has_hint && alive[c->hint[var]]) return c->hint[var];
    if (c->alive_count[var] == 1) return next_alive(alive, 0, card);
    memcpy(c->value, c->preferences + s->unary_begin[var], (size_t)card * sizeof(double));
    if (c->greedy) look_ahead(c, var, c->value);
    int32_t best = next_alive(alive, 0, card);
    for (int32_t a = best + 1; a < card; a++)
        if (alive[a] && c->value[a] > c->value[best]) best = a;
    c->operations += card;
    return best;
}

static void fix(fgi_construct *c, int32_t var, int32_t label) {
    fgi_assert(label >= 0 && label < c->model->s->cards[var] && c->alive[c->model->s->unary_begin[var] + label]);
    const fgi_structure *s = c->model->s;
    for (int32_t a = 0; a < s->cards[var]; a++)
        if (a != label && c->alive[s->unary_begin[var] + a]) drop(c, var, a, -1);
}

/* Nothing removed, no conflicts. */
static void prepare(fgi_construct *c) {
    const fgi_structure *s = c->model->s;
    memset(c->alive, 1, (size_t)s->unary_begin[s->n_vars]);
    for (int64_t i = 0; i < s->n_vars; i++) {
        c->weight[i] = 1;
        c->alive_count[i] = s->cards[i];
    }
}

/* Level 0: labels with a forbidden unary go, all hard factors are to be looked at. */
static void root(fgi_construct *c) {
    const fgi_structure *s = c->model->s;
    for (int64_t f = 0; f < s->n_factors; f++) {
        c->hard[f] = c->model->t->facts[s->factor_table[f]].n_forbidden > 0;
        enqueue(c, (int32_t)f);
    }
    for (int64_t i = 0; i < s->n_vars; i++) {
        for (int32_t a = 0; a < s->cards[i]; a++)
            if (fgi_unary(c->model, i)[a] == -INFINITY) drop(c, (int32_t)i, a, -1);
        if (c->alive_count[i] == 0) c->state = FGI_CONSTRUCT_INFEASIBLE;
    }
    c->rooted = 1;
}

/* Best preference minus the second best; ranks[] by it, largest first, stable (a merge sort, bottom up). */
static void sort_by_margin(fgi_construct *c) {
    const fgi_structure *s = c->model->s;
    const int64_t n = s->n_vars;
    int32_t *from = c->order, *to = c->labels; /* labels serve as the second buffer; they are set later */
    for (int64_t i = 0; i < n; i++) {
        const double *p = c->preferences + s->unary_begin[i];
        double best = -INFINITY, second = -INFINITY;
        for (int32_t a = 0; a < s->cards[i]; a++) {
            if (p[a] > best) {
                second = best;
                best = p[a];
            } else if (p[a] > second) {
                second = p[a];
            }
        }
        c->margin[i] = second == -INFINITY ? INFINITY : best - second;
        from[i] = (int32_t)i;
    }
    for (int64_t width = 1; width < n; width *= 2) {
        for (int64_t begin = 0; begin < n; begin += 2 * width) {
            int64_t middle = begin + width < n ? begin + width : n, end = middle + width < n ? middle + width : n;
            int64_t a = begin, b = middle;
            for (int64_t k = begin; k < end; k++)
                to[k] = a < middle && (b >= end || c->margin[from[a]] >= c->margin[from[b]]) ? from[a++] : from[b++];
        }
        int32_t *swap = from;
        from = to;
        to = swap;
    }
    if (from != c->order) memcpy(c->order, from, (size_t)n * sizeof *from);
}

void fgi_construct_start(
    fgi_construct *c, const double *preferences, const int32_t *hint, int greedy, int64_t max_backtracks) {
    const fgi_structure *s = c->model->s;
    memcpy(c->preferences, preferences ? preferences : c->model->u->values,
        (size_t)s->unary_begin[s->n_vars] * sizeof(double));
    if (hint) memcpy(c->hint, hint, (size_t)s->n_vars * sizeof *hint);
    c->has_hint = hint != NULL;
    c->greedy = greedy;
    sort_by_margin(c);
    if (!c->rooted) prepare(c);
    make_heap(c);
    c->max_backtracks = max_backtracks;
    c->backtracks = 0;
    if (!c->rooted || c->state == FGI_CONSTRUCT_DONE) c->restart_every = FIRST_RESTART; /* else it goes on learning */
    c->restart_at = c->restart_every;
    if (!c->rooted) {
        root(c);
    } else if (c->n_decisions > 0) {
        undo(c, c->decisions[0].trail);
    }
    c->n_decisions = 0;
    if (c->state != FGI_CONSTRUCT_INFEASIBLE) c->state = FGI_CONSTRUCT_RUNNING;
}

static void read_labels(fgi_construct *c) {
    for (int64_t i = 0; i < c->model->s->n_vars; i++)
        c->labels[i] = c->alive_count[i] > 0 ? choose_label(c, (int32_t)i) : 0;
}

fgi_construct_state fgi_construct_step(fgi_construct *c, int64_t max_operations) {
    if (c->state != FGI_CONSTRUCT_RUNNING) {
        if (c->state == FGI_CONSTRUCT_INFEASIBLE) memset(c->labels, 0, (size_t)c->model->s->n_vars * sizeof *c->labels);
        return c->state;
    }
    const int64_t end = c->operations + max_operations;
    while (c->state == FGI_CONSTRUCT_RUNNING) {
        if (c->operations >= end) return c->state;
        c->operations++;
        if (c->count > 0) {
            int32_t factor = dequeue(c);
            if (!filter(c, factor)) conflict(c, factor);
            continue;
        }
        int32_t var = choose_variable(c);
        if (var < 0) {
            c->state = FGI_CONSTRUCT_DONE;
            break;
        }
        decision next = {var, choose_label(c, var), c->trail_size};
        c->decisions[c->n_decisions++] = next;
        fix(c, var, next.label);
    }
    read_labels(c);
    return c->state;
}

int fgi_labeling_construct(fgi_labeling *l, fgi_construct *c, const double *preferences, const int32_t *hint,
    int greedy, int64_t max_operations) {
    fgi_construct_start(c, preferences, hint, greedy, INT64_MAX - 1);
    fgi_construct_state state = fgi_construct_step(c, max_operations);
    if (state == FGI_CONSTRUCT_RUNNING) read_labels(c);
    fgi_labeling_assign(l, c->labels);
    return state == FGI_CONSTRUCT_DONE;
}
