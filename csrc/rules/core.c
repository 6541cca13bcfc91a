/* rules/core.c - the best state of a sum with many totals: a budget over a hundred thousand literals, say.
 *
 * Pieces are solved one by one: the total must lie in [low, high], and the gains are linear there. A price per unit of
 * the total gives a bound, and for every variable the level that it chooses at that price and the loss of each other
 * level. What separates the bound from the best state is small where there are many variables, so that only those whose
 * losses fit into it are looked at, nearest to the price first: states are kept by their total with the least loss
 * (Pisinger's minknap, with several levels a variable and limits from both sides).
 *
 * The search is cut off after MOST_NODES states. The answer then says how much better another state may be. */
#include "rules/rule.h"

/* Some 50 MB and a tenth of a second: knapsacks that are hard for this method leave a gap of 1e-6 or so. */
enum {
    MOST_NODES = 2000000, /* states that the search makes (chosen) */
    MOST_STATES = 200000  /* states of a level that are kept (chosen) */
};

typedef struct level { /* what a variable may add, and the best gain with which it does */
    int64_t add;
    double gain;
    int32_t label;
} level;

typedef struct increment { /* from one level of the concave hull to the next one */
    double price;          /* gain per unit */
    int64_t more;
    int32_t variable, to;
} increment;

typedef struct node {
    int32_t before, variable, to; /* -1: the beginning */
} node;

typedef struct state {
    int64_t total;
    double loss;
    int32_t node;
} state;

typedef struct turn {   /* a variable of the core */
    double price;       /* the least loss per unit of its other levels */
    int64_t less, more; /* by how much it can still change the total */
    int32_t variable;
} turn;

typedef struct core {
    const fgi_sum_rule *rule;
    fgi_rule_room *room;
    level *levels;
    int64_t *begin; /* where the levels of a variable begin; they ascend by add */
    increment *steps;
    int64_t n_steps;
    int32_t *at; /* the level of each variable at the price */
    turn *turns;
    int32_t n_turns;
    fgi_array nodes;
    state *now, *next, *spare; /* lists of states by total */
    int32_t n_now;
    int64_t low, high, least; /* the limits of the piece; the total of all least levels */
    double slope, price, bound;
    double slack, dropped; /* the least cost found, and of what was dropped: costs are distances from the bound */
    int32_t best;
    int has_best;
    double value;    /* the best so far, which `labels` has, over all pieces */
    int32_t *labels; /* the caller's */
    double open;     /* what the value may be below the best */
} core;

static int by_add(const void *a, const void *b) {
    const level *x = a, *y = b;
    if (x->add != y->add) return x->add < y->add ? -1 : 1;
    if (x->gain != y->gain) return x->gain > y->gain ? -1 : 1;
    return x->label < y->label ? -1 : 1;
}

static int by_price(const void *a, const void *b) {
    const increment *x = a, *y = b;
    if (x->price != y->price) return x->price > y->price ? -1 : 1;
    if (x->variable != y->variable) return x->variable < y->variable ? -1 : 1;
    return x->to < y->to ? -1 : x->to > y->to;
}

static int by_distance(const void *a, const void *b) {
    const turn *x = a, *y = b;
    if (x->price != y->price) return x->price < y->price ? -1 : 1;
    return x->variable < y->variable ? -1 : 1;
}

/* ---- levels and their hulls ------------------------------------------------------------------------------------ */

static void fill_levels(core *c, const double *gains) {
    const fgi_rule *r = &c->rule->base;
    c->begin[0] = 0;
    for (int32_t k = 0; k < r->n; k++) {
        level *own = c->levels + c->begin[k];
        int32_t n = 0, kept = 0;
        for (int32_t a = 0; a < r->cards[k]; a++)
            if (gains[r->begin[k] + a] > -INFINITY)
                own[n++] = (level){c->rule->adds[r->begin[k] + a], gains[r->begin[k] + a], a};
        qsort(own, (size_t)n, sizeof *own, by_add);
        for (int32_t l = 0; l < n; l++)
            if (kept == 0 || own[l].add != own[kept - 1].add) own[kept++] = own[l];
        fgi_assert(kept > 0);
        c->begin[k + 1] = c->begin[k] + kept;
        c->least += own[0].add;
    }
}

static double slope_between(const level *a, const level *b) { return (b->gain - a->gain) / (double)(b->add - a->add); }

/* The increments of one variable: prices descend along its hull. */
static void hull(core *c, int32_t k) {
    const level *own = c->levels + c->begin[k];
    const int32_t n = (int32_t)(c->begin[k + 1] - c->begin[k]);
    const int64_t first = c->n_steps;
    for (int32_t l = 1; l < n; l++) {
        int32_t from = c->n_steps > first ? c->steps[c->n_steps - 1].to : 0;
        while (c->n_steps > first && slope_between(&own[from], &own[l]) >= c->steps[c->n_steps - 1].price) {
            c->n_steps--;
            from = c->n_steps > first ? c->steps[c->n_steps - 1].to : 0;
        }
        c->steps[c->n_steps++] = (increment){slope_between(&own[from], &own[l]), own[l].add - own[from].add, k, l};
    }
}

/* ---- one piece: price and bound -------------------------------------------------------------------------------- */

static double gain_at(const core *c, int32_t k, int32_t l) {
    const level *own = c->levels + c->begin[k] + l;
    return own->gain + c->slope * (double)own->add;
}

/* What the bound counts beyond an allowed total. */
static double unused(const core *c, int64_t total) {
    return c->price >= 0 ? c->price * (double)(c->high - total) : -c->price * (double)(total - c->low);
}

/* Takes increments while they gain or are needed; 0: no total of this piece can be reached. */
static int find_price(core *c, int64_t *total) {
    int64_t k = 0;
    *total = c->least;
    c->price = 0;
    memset(c->at, 0, (size_t)c->rule->base.n * sizeof *c->at);
    if (c->least > c->high) return 0;
    for (; k < c->n_steps; k++) {
        const increment *s = &c->steps[k];
        const double price = s->price + c->slope;
        if (*total >= c->low && price <= 0) break;
        if (*total < c->low || *total + s->more > c->high) c->price = price;
        if (*total + s->more > c->high) break;
        *total += s->more;
        c->at[s->variable] = s->to;
        if (*total >= c->low && c->price > 0) c->price = 0; /* it was needed, but gains, too */
    }
    return *total >= c->low || k < c->n_steps;
}

static void find_bound(core *c) {
    double sum = 0;
    for (int32_t k = 0; k < c->rule->base.n; k++) {
        double best = -INFINITY;
        const int32_t n = (int32_t)(c->begin[k + 1] - c->begin[k]);
        int32_t at = c->at[k];
        for (int32_t l = 0; l < n; l++) {
            const double value = gain_at(c, k, l) - c->price * (double)c->levels[c->begin[k] + l].add;
            if (value > best) {
                best = value;
                at = l;
            }
        }
        /* The level of the walk stays where rounding alone speaks against it: totals then fit the limits. */
        const int32_t own = c->at[k];
        const double here = gain_at(c, k, own) - c->price * (double)c->levels[c->begin[k] + own].add;
        if (best - here > 1e-12 * (fabs(best) + fabs(here))) c->at[k] = at;
        sum += best;
    }
    c->bound = sum + c->price * (double)(c->price >= 0 ? c->high : c->low);
}

static double loss_of(const core *c, int32_t k, int32_t l) {
    const level *own = c->levels + c->begin[k];
    const double here = gain_at(c, k, c->at[k]) - c->price * (double)own[c->at[k]].add;
    return fgi_larger(0, here - (gain_at(c, k, l) - c->price * (double)own[l].add));
}

/* The variables by the price per unit at which they leave their level, and what those after each can change. */
static void fill_turns(core *c) {
    c->n_turns = 0;
    for (int32_t k = 0; k < c->rule->base.n; k++) {
        const level *own = c->levels + c->begin[k];
        turn t = {INFINITY, 0, 0, k};
        for (int32_t l = 0; l < (int32_t)(c->begin[k + 1] - c->begin[k]); l++) {
            const int64_t change = own[l].add - own[c->at[k]].add;
            if (change != 0) t.price = fgi_smaller(t.price, loss_of(c, k, l) / fabs((double)change));
        }
        if (t.price < INFINITY) c->turns[c->n_turns++] = t;
    }
    qsort(c->turns, (size_t)c->n_turns, sizeof *c->turns, by_distance);
    int64_t less = 0, more = 0;
    for (int32_t j = c->n_turns - 1; j >= 0; j--) {
        const int32_t k = c->turns[j].variable;
        const level *own = c->levels + c->begin[k];
        c->turns[j].less = less += own[c->at[k]].add - own[0].add;
        c->turns[j].more = more += own[c->begin[k + 1] - c->begin[k] - 1].add - own[c->at[k]].add;
    }
}

/* ---- the search ------------------------------------------------------------------------------------------------ */

/* No state made from this one by turns from j on costs less. */
static double cost_from(const core *c, const state *s, int32_t j) {
    const double per_unit = j < c->n_turns ? c->turns[j].price : INFINITY;
    const int64_t less = j < c->n_turns ? c->turns[j].less : 0, more = j < c->n_turns ? c->turns[j].more : 0;
    if (s->total - less > c->high || s->total + more < c->low) return INFINITY;
    if (s->total > c->high) return s->loss + per_unit * (double)(s->total - c->high);
    if (s->total < c->low) return s->loss + per_unit * (double)(c->low - s->total);
    const double price = fabs(c->price);
    return s->loss + (price <= per_unit ? unused(c, s->total) : per_unit / price * unused(c, s->total));
}

static void take_best(core *c) {
    for (int32_t k = 0; k < c->n_now; k++) {
        const state *s = &c->now[k];
        if (s->total < c->low || s->total > c->high) continue;
        const double cost = s->loss + unused(c, s->total);
        if (!(cost < c->slack)) continue;
        c->slack = cost;
        c->best = s->node;
        c->has_best = 1;
    }
}

/* Merges the states, and the same with one variable at another level, into c->next; 0: no memory. */
static int32_t merge(
    core *c, const state *list, int32_t n, const state *from, int32_t n_from, int32_t variable, int32_t to) {
    const level *own = c->levels + c->begin[variable];
    const int64_t change = own[to].add - own[c->at[variable]].add;
    const double loss = loss_of(c, variable, to);
    int32_t out = 0;
    for (int32_t i = 0, j = 0; i < n || j < n_from;) {
        const int64_t moved = j < n_from ? from[j].total + change : INT64_MAX;
        state s;
        if (i < n && list[i].total <= moved) {
            s = list[i++];
            if (j < n_from && moved == s.total && from[j].loss + loss >= s.loss) j++;
            else if (j < n_from && moved == s.total) continue; /* the moved one is better, and comes next */
        } else {
            s = (state){moved, from[j].loss + loss, 0};
            if (s.loss >= c->slack) { /* not worth a node */
                j++;
                continue;
            }
            node *made = (node *)c->nodes.at + c->nodes.n;
            *made = (node){from[j++].node, variable, to};
            s.node = (int32_t)c->nodes.n++;
        }
        c->next[out++] = s;
    }
    return out;
}

static int by_cost(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Drops what cannot be better than the best; and if too many are left, those that promise least. */
static void prune(core *c, int32_t j, double *costs) {
    int32_t kept = 0;
    double limit = c->slack;
    for (int32_t k = 0; k < c->n_now; k++) {
        const double cost = cost_from(c, &c->now[k], j);
        if (!(cost < limit)) continue;
        costs[kept] = cost;
        c->now[kept++] = c->now[k];
    }
    c->n_now = kept;
    if (kept <= MOST_STATES) return;
    double *sorted = costs + kept;
    memcpy(sorted, costs, (size_t)kept * sizeof *costs);
    qsort(sorted, (size_t)kept, sizeof *sorted, by_cost);
    limit = sorted[MOST_STATES / 2];
    c->dropped = fgi_smaller(c->dropped, limit);
    kept = 0;
    for (int32_t k = 0; k < c->n_now && kept < MOST_STATES; k++)
        if (costs[k] < limit) c->now[kept++] = c->now[k];
    c->n_now = kept;
}

/* One variable: every level beside its own. */
static int turn_variable(core *c, int32_t j, double *costs) {
    const int32_t variable = c->turns[j].variable, n_old = c->n_now;
    const int32_t levels = (int32_t)(c->begin[variable + 1] - c->begin[variable]);
    state *old = c->now, *list = c->now;
    int32_t n = n_old;
    for (int32_t l = 0; l < levels; l++) {
        if (l == c->at[variable] || loss_of(c, variable, l) >= c->slack) continue;
        if ((int64_t)n + n_old > 2 * MOST_STATES) {
            for (int32_t k = 0; k < n_old; k++)
                c->dropped = fgi_smaller(c->dropped, old[k].loss + loss_of(c, variable, l));
            continue;
        }
        if (!fgi_array_reserve(&c->nodes, n_old, sizeof(node))) return 0;
        n = merge(c, list, n, old, n_old, variable, l);
        state *made = c->next;
        if (list == old) { /* `old` is still needed: the third list steps in */
            c->next = c->spare;
            c->spare = old;
        } else {
            c->next = list;
        }
        list = made;
    }
    if (list != old) {
        c->now = list;
        c->n_now = n;
        take_best(c);
    }
    prune(c, j + 1, costs);
    c->room->work += n;
    return 1;
}

/* Searches the piece; 0: no memory. */
static int search(core *c, int64_t total, double *costs) {
    c->nodes.n = 0;
    c->now[0] = (state){total, 0, -1};
    c->n_now = 1;
    take_best(c);
    fill_turns(c);
    for (int32_t j = 0; j < c->n_turns && c->n_now > 0; j++) {
        if (c->nodes.n > MOST_NODES) {
            for (int32_t k = 0; k < c->n_now; k++) c->dropped = fgi_smaller(c->dropped, cost_from(c, &c->now[k], j));
            break;
        }
        if (!turn_variable(c, j, costs)) return 0;
    }
    return 1;
}

static void write_labels(const core *c) {
    for (int32_t k = 0; k < c->rule->base.n; k++) c->labels[k] = c->levels[c->begin[k] + c->at[k]].label;
    const node *nodes = c->nodes.at;
    for (int32_t k = c->best; k >= 0; k = nodes[k].before)
        c->labels[nodes[k].variable] = c->levels[c->begin[nodes[k].variable] + nodes[k].to].label;
}

static int64_t total_at(const core *c) {
    int64_t total = 0;
    for (int32_t k = 0; k < c->rule->base.n; k++) total += c->levels[c->begin[k] + c->at[k]].add;
    return total;
}

/* The piece's part of the answer; 0: no memory. */
static int solve_piece(core *c, int32_t p, double *costs) {
    const fgi_sum_rule *r = c->rule;
    const fgi_piece *piece = &r->pieces[p];
    int64_t total;
    c->low = piece->start;
    c->high = p + 1 < r->n_pieces && r->pieces[p + 1].start <= r->total ? r->pieces[p + 1].start - 1 : r->total;
    c->slope = piece->slope;
    if (piece->base == -INFINITY || c->low > c->high || !find_price(c, &total)) return 1;
    find_bound(c);
    const double more = piece->base - (piece->slope != 0 ? piece->slope * (double)piece->anchor : 0);
    c->slack = c->bound + more - c->value; /* INFINITY: there is no value yet */
    c->dropped = INFINITY;
    c->has_best = 0;
    if (!(c->slack > 0)) return 1;
    if (!search(c, total_at(c), costs)) return 0;
    if (c->has_best) {
        write_labels(c);
        c->value = c->bound + more - c->slack;
    }
    if (c->dropped < c->slack) c->open = fgi_larger(c->open, c->bound + more - c->dropped);
    return 1;
}

/* The lists of one question. */
static int begin_core(core *c, const double *gains, double **costs) {
    const fgi_rule *r = &c->rule->base;
    fgi_arena *arena = &c->room->arena;
    c->levels = fgi_take(arena, r->begin[r->n], level);
    c->begin = fgi_take(arena, (int64_t)r->n + 1, int64_t);
    c->steps = fgi_take(arena, r->begin[r->n], increment);
    c->at = fgi_take(arena, r->n, int32_t);
    c->turns = fgi_take(arena, r->n, turn);
    c->now = fgi_take(arena, 2 * MOST_STATES + 1, state);
    c->next = fgi_take(arena, 2 * MOST_STATES + 1, state);
    c->spare = fgi_take(arena, 2 * MOST_STATES + 1, state);
    *costs = fgi_take(arena, 4 * (MOST_STATES + 1), double);
    if (arena->failed) return 0;
    fill_levels(c, gains);
    for (int32_t k = 0; k < r->n; k++) hull(c, k);
    qsort(c->steps, (size_t)c->n_steps, sizeof *c->steps, by_price);
    for (int64_t left = c->n_steps; left > 0; left /= 2) c->room->work += c->n_steps;
    return 1;
}

fgi_rc fgi_core_best(const fgi_sum_rule *r, const double *gains, fgi_rule_room *room, int32_t *labels, int *found) {
    core c = {.rule = r, .room = room, .labels = labels, .value = -INFINITY, .open = -INFINITY};
    double *costs;
    int complete = begin_core(&c, gains, &costs);
    for (int32_t p = 0; complete && p < r->n_pieces && r->pieces[p].start <= r->total; p++)
        complete = solve_piece(&c, p, costs);
    fgi_array_free(&c.nodes);
    if (!complete) return FGI_NO_MEMORY;
    *found = c.value > -INFINITY;
    if (!*found && c.open > -INFINITY) return FGI_UNSUPPORTED; /* cut off before any state was found */
    if (c.open > c.value) room->above = c.open - c.value;
    return FGI_OK;
}
