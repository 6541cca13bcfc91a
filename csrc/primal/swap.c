/* primal/swap.c - tabu search by exchanges, for variables that must differ: assignments, matchings, orders.
 *
 * Where a factor forbids one label of its second variable for each label of the first, as those of "all different" do,
 * neither variable can change alone once all labels are taken. So they change together: each takes the label that the
 * other's present one rules out. Of all such exchanges, and of the single changes that break nothing more, the best one
 * is made, even if it makes things worse; what was given up may not come back for a while (Taillard's robust tabu
 * search of 1991, for any pairwise model).
 *
 * An exchange is judged from the label scores of both variables and the factors between them, without being made. */
#include "primal/search.h"

enum {
    NOBODY = -1,          /* in place of a variable or a label */
    LEAST_PAIRS = 1,      /* per variable: with fewer, exchanges are a small part of what there is to do */
    MOST_PAIRS = 1 << 22, /* memory: 64 MB of them */
    PAIR_COST = 8,        /* operations to judge an exchange */
    STALE_ROUNDS = 60     /* steps per variable without a gain end a run (chosen) */
};

/* For each row the column that is forbidden with it, or NOBODY; then the same for each column. */
typedef struct partners {
    int32_t *of_row, *of_column;
} partners;

/* Two variables that can exchange labels, and all factors between them. */
typedef struct pair {
    int32_t u, v;
    int32_t rule;         /* the factor that forbids */
    int64_t first, after; /* places in `between` */
} pair;

struct fgi_swap {
    const fgi_model *model;
    fgi_labeling *local;
    partners *partners; /* per table; of_row NULL: not of this kind */
    pair *pairs;
    int64_t n_pairs;
    int32_t *between; /* factors */
    fgi_trail trail;
    int64_t operations;
};

/* ---- which pairs there are ---------------------------------------------------------------------------------- */

/* Fills the partners of a table, if it forbids a matching of rows and columns. */
static void look_at_table(fgi_swap *t, fgi_arena *arena, const fgi_view *v) {
    partners *p = &t->partners[v->table];
    const int64_t forbidden = t->model->t->facts[v->table].n_forbidden;
    const int32_t rows = v->transposed ? v->cols : v->rows, cols = v->transposed ? v->rows : v->cols;
    if (p->of_row || forbidden == 0 || forbidden > (rows < cols ? rows : cols)) return;
    int32_t *of_row = fgi_take(arena, (int64_t)rows + cols, int32_t), *of_column = of_row + rows;
    if (arena->failed) return;
    for (int32_t k = 0; k < rows + cols; k++) of_row[k] = NOBODY;
    fgi_view plain = *v;
    plain.transposed = 0;
    plain.rows = rows;
    plain.cols = cols;
    for (int32_t a = 0; a < rows; a++)
        for (int32_t b = 0; b < cols; b++) {
            if (fgi_view_at2(&plain, a, b) > -INFINITY) continue;
            if (of_row[a] != NOBODY || of_column[b] != NOBODY) return;
            of_row[a] = b;
            of_column[b] = a;
        }
    *p = (partners){of_row, of_column};
}

static int is_rule(const fgi_swap *t, int64_t f) {
    return fgi_factor_arity(t->model->s, f) == 2 && t->partners[t->model->s->factor_table[f]].of_row != NULL;
}

static int32_t other(const fgi_structure *s, int64_t f, int32_t var) {
    const int32_t *vars = fgi_factor_vars(s, f);
    return vars[0] == var ? vars[1] : vars[0];
}

/* The pairs of variable u with later ones; `place` has NOBODY for every variable, before and after. */
static void find_pairs(fgi_swap *t, int32_t u, int32_t *place, int64_t *n_between) {
    const fgi_structure *s = t->model->s;
    const int64_t begin = s->adj_begin[u], end = s->adj_begin[u + 1], first = t->n_pairs;
    for (int64_t k = begin; k < end; k++) {
        const int32_t f = s->adj[k], v = is_rule(t, f) ? other(s, f, u) : u;
        if (v <= u || place[v] != NOBODY) continue;
        place[v] = (int32_t)(t->n_pairs - first);
        t->pairs[t->n_pairs++] = (pair){.u = u, .v = v, .rule = f};
    }
    for (int pass = 0; pass < 2; pass++) { /* counts, then fills */
        for (int64_t k = begin; k < end; k++) {
            const int32_t f = s->adj[k];
            if (fgi_factor_arity(s, f) != 2) continue;
            const int32_t v = other(s, f, u);
            if (v <= u || place[v] == NOBODY) continue;
            pair *p = &t->pairs[first + place[v]];
            if (pass) t->between[p->after] = f;
            p->after++;
        }
        if (pass) break;
        for (int64_t k = first; k < t->n_pairs; k++) {
            const int64_t n = t->pairs[k].after;
            t->pairs[k].first = t->pairs[k].after = *n_between;
            *n_between += n;
        }
    }
    for (int64_t k = first; k < t->n_pairs; k++) place[t->pairs[k].v] = NOBODY;
}

/* How many factors forbid a matching; 0 if exchanges have no place in this model. */
static int64_t count_rules(fgi_swap *t, fgi_arena *arena) {
    const fgi_model *m = t->model;
    int64_t n = 0;
    for (int64_t f = 0; f < m->s->n_factors && !arena->failed; f++) {
        if (fgi_factor_arity(m->s, f) != 2) return 0; /* exchanges are judged by pairwise factors alone */
        const fgi_view v = fgi_factor_view(m, f);
        look_at_table(t, arena, &v);
        n += is_rule(t, f);
    }
    return n < LEAST_PAIRS * m->s->n_vars || n > MOST_PAIRS ? 0 : n;
}

fgi_swap *fgi_swap_create(const fgi_model *m, fgi_labeling *local, fgi_arena *arena) {
    if (!fgi_labeling_has_forbidden(local) || m->s->max_arity != 2) return NULL;
    fgi_swap *t = fgi_take_zero(arena, 1, fgi_swap);
    if (!t) return NULL;
    t->model = m;
    t->local = local;
    t->partners = fgi_take_zero(arena, m->s->n_tables, partners);
    if (arena->failed) return NULL;
    const int64_t most = count_rules(t, arena);
    if (most == 0) return NULL;
    t->pairs = fgi_take(arena, most, pair);
    t->between = fgi_take(arena, m->s->n_factors, int32_t);
    fgi_trail_init(&t->trail, m, local, arena);
    int32_t *place = fgi_take(arena, m->s->n_vars, int32_t);
    if (arena->failed) return NULL;
    for (int64_t i = 0; i < m->s->n_vars; i++) place[i] = NOBODY;
    int64_t n_between = 0;
    for (int64_t i = 0; i < m->s->n_vars; i++) find_pairs(t, (int32_t)i, place, &n_between);
    return t;
}

void fgi_swap_free(fgi_swap *t) {
    if (t) fgi_trail_free(&t->trail);
}

fgi_trail *fgi_swap_trail(fgi_swap *t) { return &t->trail; }

int64_t fgi_swap_operations(const fgi_swap *t) { return t->operations; }

/* ---- what there is to do ------------------------------------------------------------------------------------ */

/* A change of one variable, or of two (v is NOBODY in the first case). */
typedef struct exchange {
    int32_t u, p, v, q;
    int32_t worse; /* violations that it adds */
    double gain;
    int64_t ties;
} exchange;

/* A score, or a violation where it is forbidden: both with a sign. */
typedef struct tally {
    double score;
    int32_t bad;
} tally;

static void add(tally *sum, double score, int sign) {
    if (score == -INFINITY) sum->bad += sign;
    else sum->score += sign * score;
}

/* What the scores of single changes of both do not know: the factors between them at the new labels. */
static tally correction(const fgi_swap *t, const pair *x, int32_t a, int32_t p, int32_t b, int32_t q) {
    tally sum = {0, 0};
    for (int64_t k = x->first; k < x->after; k++) {
        const fgi_view f = fgi_factor_view(t->model, t->between[k]);
        const int same = f.vars[0] == x->u;
        add(&sum, same ? fgi_view_at2(&f, p, q) : fgi_view_at2(&f, q, p), 1);
        add(&sum, same ? fgi_view_at2(&f, p, b) : fgi_view_at2(&f, b, p), -1);
        add(&sum, same ? fgi_view_at2(&f, a, q) : fgi_view_at2(&f, q, a), -1);
        add(&sum, same ? fgi_view_at2(&f, a, b) : fgi_view_at2(&f, b, a), 1);
    }
    return sum;
}

/* Each takes what the present label of the other rules out; 0: one of them has no such label. */
static int judge(fgi_swap *t, const pair *x, exchange *out) {
    const int32_t *labels = fgi_labeling_labels(t->local), a = labels[x->u], b = labels[x->v], *bad_u, *bad_v;
    const fgi_structure *s = t->model->s;
    const partners *rule = &t->partners[s->factor_table[x->rule]];
    const int turned =
        (s->factor_transposed && s->factor_transposed[x->rule]) != (fgi_factor_vars(s, x->rule)[0] != x->u);
    const int32_t p = turned ? rule->of_row[b] : rule->of_column[b], q = turned ? rule->of_column[a] : rule->of_row[a];
    if (p == NOBODY || q == NOBODY || p == a || q == b) return 0;
    const double *score_u = fgi_labeling_label_scores(t->local, x->u, &bad_u);
    const double *score_v = fgi_labeling_label_scores(t->local, x->v, &bad_v);
    const tally more = correction(t, x, a, p, b, q);
    *out = (exchange){.u = x->u,
        .p = p,
        .v = x->v,
        .q = q,
        .ties = 1,
        .worse = bad_u[p] - bad_u[a] + bad_v[q] - bad_v[b] + more.bad,
        .gain = score_u[p] - score_u[a] + score_v[q] - score_v[b] + more.score};
    return 1;
}

/* Keeps the better one; ties are thrown. An exchange that is tabu counts only if it leads to a new best. */
static void offer(fgi_swap *t, exchange *best, const exchange *x, fgi_rng *rng) {
    if (x->worse > best->worse || (x->worse == best->worse && x->gain < best->gain)) return;
    const int is_held =
        fgi_trail_is_held(&t->trail, x->u, x->p) && (x->v == NOBODY || fgi_trail_is_held(&t->trail, x->v, x->q));
    if (is_held &&
        !fgi_trail_is_better(
            &t->trail, fgi_labeling_violations(t->local) + x->worse, fgi_labeling_score(t->local) + x->gain))
        return;
    const int tie = x->worse == best->worse && x->gain == best->gain;
    const int64_t ties = tie ? best->ties + 1 : 1;
    if (!tie || fgi_rng_below(rng, ties) == 0) *best = *x;
    best->ties = ties;
}

/* Single changes that break nothing more. */
static void offer_singles(fgi_swap *t, exchange *best, int32_t u, fgi_rng *rng) {
    const int32_t *bad, a = fgi_labeling_labels(t->local)[u], n = t->model->s->cards[u];
    const double *score = fgi_labeling_label_scores(t->local, u, &bad);
    for (int32_t p = 0; p < n; p++) {
        if (p == a || bad[p] > bad[a]) continue;
        const exchange x = {.u = u, .p = p, .v = NOBODY, .worse = bad[p] - bad[a], .gain = score[p] - score[a]};
        offer(t, best, &x, rng);
    }
    t->operations += n / 4 + 1;
}

static void change(fgi_swap *t, int32_t var, int32_t label, int64_t tenure, fgi_rng *rng) {
    fgi_trail_give_up(&t->trail, var, tenure + fgi_rng_below(rng, tenure / 4 + 2));
    if (!t->trail.failed) fgi_labeling_flip(t->local, var, label);
}

static void take_step(fgi_swap *t, fgi_rng *rng) {
    const int64_t n = t->model->s->n_vars;
    exchange best = {.u = NOBODY, .worse = INT32_MAX, .gain = -INFINITY}, x;
    for (int64_t k = 0; k < t->n_pairs; k++)
        if (judge(t, &t->pairs[k], &x)) offer(t, &best, &x, rng);
    t->operations += PAIR_COST * t->n_pairs;
    for (int64_t i = 0; i < n; i++) offer_singles(t, &best, (int32_t)i, rng);
    if (best.u == NOBODY) return;
    const int64_t tenure = n - n / 8;
    change(t, best.u, best.p, tenure, rng);
    if (best.v != NOBODY) change(t, best.v, best.q, tenure, rng);
}

/* ---- runs --------------------------------------------------------------------------------------------------- */

void fgi_swap_start(fgi_swap *t) { fgi_trail_begin(&t->trail, STALE_ROUNDS * t->model->s->n_vars); }

int fgi_swap_run(fgi_swap *t, int64_t max_operations, fgi_rng *rng) {
    const int64_t end = t->operations + fgi_labeling_operations(t->local) + max_operations;
    while (fgi_trail_goes_on(&t->trail)) {
        if (t->operations + fgi_labeling_operations(t->local) >= end) return 0;
        fgi_trail_next(&t->trail);
        take_step(t, rng);
        fgi_trail_look(&t->trail);
    }
    fgi_trail_end(&t->trail);
    return 1;
}
