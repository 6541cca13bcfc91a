/* primal/tabu.c - tabu search on a region: single changes, the best one at every step, also where all of them make
 * things worse.
 *
 * A label that was given up may not come back for a while, except to a new best: so the labeling is carried out of
 * local maxima along the cheapest way. It pays where factors are many or large, and exact blocks (primal/thin.c) are
 * small: dense models, clauses, covers. Violations of hard constraints count first.
 *
 * A step costs what its change disturbs, not the region: every variable remembers its best allowed change until a
 * neighbour changes or one of its labels is set free, and a tree of winners has the best of all. */
#include <string.h>
#include "primal/search.h"
#include "base/assert.h"
#include "base/array.h"

enum {
    LONGEST = 20,                     /* steps beyond which a tenure does not grow with the region (decision 0016) */
    MOST_HELD = 2 * (2 + LONGEST) + 2 /* labels that are tabu at the same time: a tenure is less than twice as long */
};

/* The best change of one variable that is not tabu. */
typedef struct change {
    double gain;
    int32_t worse; /* violations that it adds; NONE: there is no change to make */
    int32_t label;
    int64_t ties; /* changes of this variable that are as good, itself included */
} change;

enum { NONE = INT32_MAX }; /* more violations than any change adds */

/* A node of the tree of winners: a place whose change no other below is better than, and how many changes are as good.
 */
typedef struct game {
    int64_t ties;
    int32_t winner;
} game;

/* A label that may not be taken. */
typedef struct ban {
    int32_t var, label;
} ban;

struct fgi_tabu {
    const fgi_model *model;
    fgi_labeling *local;
    fgi_trail trail;
    const int32_t *vars; /* the region, borrowed */
    int64_t n_vars;
    int32_t *place;     /* per variable of the model: where it is in the region, if vars says so, too */
    int64_t n_known;    /* variables of the region, from the first on, whose changes are known */
    change *changes;    /* per place */
    game *games;        /* a tree in the order of a heap; its leaves, from n_vars on, are the places */
    int64_t capacity;   /* places that both arrays have room for */
    int32_t *disturbed; /* places whose change has to be looked up again, each once */
    uint8_t *is_disturbed;
    int64_t n_disturbed;
    ban held[MOST_HELD]; /* the labels that are tabu, and some that no longer are */
    int32_t n_held;
    int64_t operations;
};

fgi_tabu *fgi_tabu_create(const fgi_model *m, fgi_labeling *local, fgi_arena *arena) {
    fgi_tabu *t = fgi_take_zero(arena, 1, fgi_tabu);
    if (!t) return NULL;
    t->model = m;
    t->local = local;
    fgi_trail_init(&t->trail, m, local, arena);
    t->place = fgi_take_zero(arena, m->s->n_vars, int32_t);
    return t;
}

void fgi_tabu_free(fgi_tabu *t) {
    if (!t) return;
    fgi_trail_free(&t->trail);
    free(t->changes);
    free(t->games);
    free(t->disturbed);
    free(t->is_disturbed);
}

int64_t fgi_tabu_operations(const fgi_tabu *t) { return t->operations; }

fgi_trail *fgi_tabu_trail(fgi_tabu *t) { return &t->trail; }

static int make_room(fgi_tabu *t, int64_t n) {
    if (n <= t->capacity) return 1;
    if (!fgi_resize(&t->changes, n, sizeof *t->changes) || !fgi_resize(&t->games, 2 * n, sizeof *t->games) ||
        !fgi_resize(&t->disturbed, n, sizeof *t->disturbed) ||
        !fgi_resize(&t->is_disturbed, n, sizeof *t->is_disturbed))
        return 0;
    t->capacity = n;
    return 1;
}

fgi_rc fgi_tabu_start(fgi_tabu *t, const int32_t *vars, int64_t n, int64_t patience) {
    fgi_assert(n >= 0 && patience >= 0);
    if (!fgi_trail_reserve(&t->trail, patience) || !make_room(t, n)) return FGI_NO_MEMORY;
    t->vars = vars;
    t->n_vars = n;
    t->n_known = 0;
    t->n_held = 0;
    t->n_disturbed = 0;
    memset(t->is_disturbed, 0, (size_t)n * sizeof *t->is_disturbed);
    for (int64_t k = 0; k < n; k++) t->place[vars[k]] = (int32_t)k;
    fgi_trail_begin(&t->trail, patience);
    return FGI_OK;
}

/* ---- what every variable would do --------------------------------------------------------------------------- */

/* Ties are thrown. */
static change best_change(fgi_tabu *t, int32_t var, fgi_rng *rng) {
    fgi_assert(var >= 0 && var < t->model->s->n_vars);
    const int32_t *bad, *choices, own = fgi_labeling_labels(t->local)[var],
                                  n = fgi_labeling_choices(t->local, var, &choices);
    const double *score = fgi_labeling_label_scores(t->local, var, &bad);
    const int64_t *until = t->trail.until + t->model->s->unary_begin[var];
    change best = {.gain = -INFINITY, .worse = NONE, .label = own, .ties = 1};
    for (int32_t k = 0; k < n; k++) {
        const int32_t a = choices ? choices[k] : k;
        const int32_t worse = bad ? bad[a] - bad[own] : 0;
        const double gain = score[a] - score[own];
        if (a == own || worse > best.worse || (worse == best.worse && gain < best.gain) || until[a] > t->trail.step)
            continue;
        best.ties = worse == best.worse && gain == best.gain ? best.ties + 1 : 1;
        if (best.ties > 1 && fgi_rng_below(rng, best.ties) > 0) continue;
        best.worse = worse;
        best.gain = gain;
        best.label = a;
    }
    t->operations += n + 2;
    return best;
}

/* Above 0: x is better than y; 0: a tie. */
static int compare(const change *x, const change *y) {
    if (x->worse != y->worse) return x->worse < y->worse ? 1 : -1;
    return (x->gain > y->gain) - (x->gain < y->gain);
}

static game play(const fgi_tabu *t, int64_t node) {
    const game x = t->games[2 * node], y = t->games[2 * node + 1];
    const int order = compare(&t->changes[x.winner], &t->changes[y.winner]);
    if (order == 0) return (game){x.ties + y.ties, x.winner};
    return order > 0 ? x : y;
}

static void play_all(fgi_tabu *t) {
    for (int64_t k = 0; k < t->n_vars; k++) t->games[t->n_vars + k] = (game){t->changes[k].ties, (int32_t)k};
    for (int64_t p = t->n_vars - 1; p > 0; p--) t->games[p] = play(t, p);
    t->operations += t->n_vars;
}

/* The games that one place takes part in. */
static void play_again(fgi_tabu *t, int32_t place) {
    t->games[t->n_vars + place].ties = t->changes[place].ties;
    for (int64_t p = (t->n_vars + place) / 2; p > 0; p /= 2) {
        const game before = t->games[p];
        t->games[p] = play(t, p);
        t->operations++;
        if (t->games[p].winner == before.winner && t->games[p].ties == before.ties && before.winner != place) return;
    }
}

/* The place of the best change of all; ties are thrown. */
static int32_t draw(const fgi_tabu *t, fgi_rng *rng) {
    int64_t p = 1;
    while (p < t->n_vars) {
        const game *x = &t->games[2 * p], *y = x + 1;
        const int order = compare(&t->changes[x->winner], &t->changes[y->winner]);
        const int second = order ? order < 0 : x->ties <= fgi_rng_below(rng, x->ties + y->ties);
        p = 2 * p + second;
    }
    return t->games[p].winner;
}

static void disturb(fgi_tabu *t, int32_t var) {
    fgi_assert(var >= 0 && var < t->model->s->n_vars);
    const int32_t place = t->place[var];
    if (place >= t->n_vars || t->vars[place] != var || t->is_disturbed[place]) return;
    t->is_disturbed[place] = 1;
    t->disturbed[t->n_disturbed++] = place;
}

/* Brings the tree up to date. */
static void settle(fgi_tabu *t, fgi_rng *rng) {
    const int64_t n = t->n_disturbed;
    for (int64_t k = 0; k < n; k++) {
        const int32_t place = t->disturbed[k];
        t->changes[place] = best_change(t, t->vars[place], rng);
        t->is_disturbed[place] = 0;
    }
    t->n_disturbed = 0;
    if (n > t->n_vars / 8) { /* paths to the top would meet in most nodes */
        play_all(t);
        return;
    }
    for (int64_t k = 0; k < n; k++) play_again(t, t->disturbed[k]);
}

/* The first look at every variable; 1 when done. */
static int look_around(fgi_tabu *t, int64_t end, fgi_rng *rng) {
    for (; t->n_known < t->n_vars; t->n_known++) {
        if (t->operations + fgi_labeling_operations(t->local) >= end) return 0;
        t->changes[t->n_known] = best_change(t, t->vars[t->n_known], rng);
        if (t->n_known == t->n_vars - 1) play_all(t);
    }
    return 1;
}

/* ---- steps -------------------------------------------------------------------------------------------------- */

/* Labels whose time is over are set free. One that leads to a new best may be taken all the same: returns the best such
 * in *out, or 0. */
static int pass_bans(fgi_tabu *t, change *out, int32_t *var) {
    double best;
    const int64_t less = fgi_trail_best(&t->trail, &best) - fgi_labeling_violations(t->local);
    const double more = best - fgi_labeling_score(t->local) + fgi_labeling_tolerance(t->local, best);
    int found = 0;
    for (int32_t k = 0; k < t->n_held; k++) {
        const ban b = t->held[k];
        if (!fgi_trail_is_held(&t->trail, b.var, b.label)) {
            disturb(t, b.var);
            t->held[k--] = t->held[--t->n_held];
            continue;
        }
        const int32_t *bad, own = fgi_labeling_labels(t->local)[b.var];
        const double *score = fgi_labeling_label_scores(t->local, b.var, &bad);
        const change c = {
            .gain = score[b.label] - score[own], .worse = bad ? bad[b.label] - bad[own] : 0, .label = b.label};
        if (b.label == own || c.worse > less || (c.worse == less && c.gain <= more)) continue;
        if (found && compare(&c, out) <= 0) continue;
        found = 1;
        *out = c;
        *var = b.var;
    }
    t->operations += t->n_held;
    return found;
}

/* One change of one label; what it disturbs is noted. */
static void make(fgi_tabu *t, int32_t var, int32_t label) {
    fgi_assert(label >= 0 && label < t->model->s->cards[var]);
    const fgi_structure *s = t->model->s;
    fgi_labeling_flip(t->local, var, label);
    disturb(t, var);
    for (int64_t k = s->adj_begin[var]; k < s->adj_begin[var + 1]; k++) {
        const int32_t *vars = fgi_factor_vars(s, s->adj[k]), arity = fgi_factor_arity(s, s->adj[k]);
        for (int32_t j = 0; j < arity; j++) disturb(t, vars[j]);
    }
}

static void take_step(fgi_tabu *t, int64_t tenure, fgi_rng *rng) {
    change chosen;
    int32_t var;
    const int allowed_again = pass_bans(t, &chosen, &var);
    settle(t, rng);
    const int32_t place = draw(t, rng);
    if (!allowed_again || compare(&t->changes[place], &chosen) > 0) {
        chosen = t->changes[place];
        var = t->vars[place];
    }
    if (chosen.worse == NONE) return;
    const int32_t before = fgi_labeling_labels(t->local)[var];
    fgi_trail_give_up(&t->trail, var, tenure + fgi_rng_below(rng, tenure + 2));
    if (t->n_held < MOST_HELD) t->held[t->n_held++] = (ban){var, before};
    make(t, var, chosen.label);
}

int fgi_tabu_run(fgi_tabu *t, int64_t max_operations, fgi_rng *rng) {
    const int64_t end = t->operations + fgi_labeling_operations(t->local) + max_operations;
    const int64_t share = t->n_vars / 16, tenure = t->n_vars < 4 ? 0 : 2 + (share < LONGEST ? share : LONGEST);
    if (!look_around(t, end, rng)) return 0;
    while (fgi_trail_goes_on(&t->trail) && t->n_vars > 0) {
        if (t->operations + fgi_labeling_operations(t->local) >= end) return 0;
        fgi_trail_next(&t->trail);
        take_step(t, tenure, rng);
        fgi_trail_look(&t->trail);
    }
    fgi_trail_end(&t->trail);
    return 1;
}
