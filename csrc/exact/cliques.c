/* exact/cliques.c - the same model with "at most one of these" said in one place: see fginfer_exact.h.
 *
 * A literal is a variable and one of its labels. Pairwise factors forbid pairs of literals, or make them cost more than
 * what a labeling in hand leaves room for; several labels of one variable exclude each other by themselves. Where many
 * literals exclude each other pair by pair, relaxations see little of it: half of everything satisfies every pair. A
 * new variable that says which of them it is, if any, lets every relaxation see that they are at most one.
 *
 * Cliques are grown greedily over pairs that no clique has yet (an edge clique cover), from the literals with most
 * exclusions on. */
#include <string.h>
#include "base/array.h"
#include "base/util.h"
#include "fginfer_exact.h"
#include "model/draft.h"

enum {
    MOST_LITERALS = 8192, /* labels of all variables: their pairs take 8 MB of bits */
    MOST_MEMBERS = 63,    /* members of a clique: its factor has a state for each, and one for none */
    LEAST_VARIABLES = 3,  /* a clique has more variables than a pair */
    PAYS = 5,             /* cliques pay once they exclude PAYS pairs for every PAYS_OF members */
    PAYS_OF = 4           /* members of cliques, for the row above */
};
static const int64_t MOST_WORK = 100000000; /* words: some tenths of a second */

struct fgi_cliques {
    fgi_model *model;
    int32_t n;      /* variables of the original */
    int64_t count;  /* number of cliques */
    int64_t *begin; /* count + 1 offsets into what follows: literals, by clique */
    int32_t *var, *label;
};

typedef struct finder {
    const fgi_model *m;
    int64_t literals, words;
    int32_t *var;
    uint64_t *apart;  /* literals x words: pairs that exclude each other */
    uint64_t *open;   /* those of two variables that are in no clique */
    uint64_t *inside; /* those that are */
    uint64_t *candidates, *chosen;
    int32_t *order;
    int64_t *degree;
    int64_t *begin, count, begin_capacity;
    int32_t *members;
    int64_t n_members, member_capacity;
    int64_t work, covered;
    int failed;
} finder;

static uint64_t *row(const finder *f, uint64_t *set, int64_t u) { return set + u * f->words; }
static int has(const uint64_t *set, int64_t v) { return set[v >> 6] >> (v & 63) & 1; }
static void put(uint64_t *set, int64_t v) { set[v >> 6] |= (uint64_t)1 << (v & 63); }
static void drop(uint64_t *set, int64_t v) { set[v >> 6] &= ~((uint64_t)1 << (v & 63)); }

static int64_t count_bits(uint64_t x) {
    x -= x >> 1 & 0x5555555555555555u;
    x = (x & 0x3333333333333333u) + (x >> 2 & 0x3333333333333333u);
    return (int64_t)(((x + (x >> 4)) & 0x0F0F0F0F0F0F0F0Fu) * 0x0101010101010101u >> 56);
}

static int64_t common(const finder *f, const uint64_t *a, const uint64_t *b) {
    int64_t n = 0;
    for (int64_t w = 0; w < f->words; w++) n += count_bits(a[w] & b[w]);
    return n;
}

/* ---- who excludes whom ----------------------------------------------------------------------------------------- */

/* What a labeling better than `least` may lose in one factor at most. */
static double room_of(const fgi_model *m, double least) {
    fgi_sum sum = {0};
    double magnitude = fabs(m->s->constant) + fabs(least);
    if (!(least > -INFINITY)) return INFINITY;
    fgi_sum_add(&sum, m->s->constant);
    for (int64_t i = 0; i < m->s->n_vars; i++) {
        double best = -INFINITY;
        for (int32_t a = 0; a < m->s->cards[i]; a++) best = fgi_larger(best, fgi_unary(m, i)[a]);
        fgi_sum_add(&sum, best);
        magnitude += fabs(best);
    }
    for (int64_t k = 0; k < m->s->n_factors; k++) {
        const double best = fgi_factor_weight(m->s, k) * m->t->facts[m->s->factor_table[k]].max;
        fgi_sum_add(&sum, best);
        magnitude += fabs(best);
    }
    const double bound = fgi_sum_value(&sum);
    return bound > -INFINITY ? fgi_larger(bound - least, 0) + 1e-12 * magnitude : INFINITY;
}

static int excludes(double best, double score, double room) { return score == -INFINITY || best - score > room; }

static void read_pairs(finder *f, double room) {
    const fgi_structure *s = f->m->s;
    for (int64_t k = 0; k < s->n_factors; k++) {
        const fgi_view v = fgi_factor_view(f->m, k);
        const fgi_table_facts *facts = &f->m->t->facts[s->factor_table[k]];
        const double best = v.weight * facts->max;
        if (v.arity != 2 || (facts->n_forbidden == 0 && !(best - v.weight * facts->min_finite > room))) continue;
        const int64_t from = s->unary_begin[v.vars[0]], to = s->unary_begin[v.vars[1]];
        for (int32_t a = 0; a < v.rows; a++)
            for (int32_t b = 0; b < v.cols; b++) {
                if (!excludes(best, fgi_view_at2(&v, a, b), room)) continue;
                put(row(f, f->apart, from + a), to + b);
                put(row(f, f->apart, to + b), from + a);
            }
    }
    memcpy(f->open, f->apart, (size_t)(f->literals * f->words) * sizeof *f->open);
    for (int64_t u = 0; u < f->literals; u++)
        for (int64_t v = s->unary_begin[f->var[u]]; v < s->unary_begin[f->var[u] + 1]; v++)
            if (u != v) put(row(f, f->apart, u), v);
}

/* ---- cliques --------------------------------------------------------------------------------------------------- */

/* The candidate with most pairs that are still open with those chosen; then with most candidates left after it. */
static int64_t best_candidate(finder *f) {
    int64_t best = -1, best_open = -1, best_left = -1;
    for (int64_t w = 0; w < f->words; w++)
        for (uint64_t bits = f->candidates[w]; bits; bits &= bits - 1) {
            int64_t u = 64 * w;
            for (uint64_t low = bits & -bits; low > 1; low >>= 1) u++;
            const int64_t open = common(f, row(f, f->open, u), f->chosen);
            const int64_t left = open >= best_open ? common(f, row(f, f->apart, u), f->candidates) : 0;
            f->work += 2 * f->words;
            if (open < best_open || (open == best_open && left <= best_left)) continue;
            best = u;
            best_open = open;
            best_left = left;
        }
    return best;
}

static void choose(finder *f, int64_t u) {
    if (!fgi_grow(&f->members, &f->member_capacity, f->n_members + 1, sizeof *f->members)) {
        f->failed = 1;
        return;
    }
    f->members[f->n_members++] = (int32_t)u;
    put(f->chosen, u);
    for (int64_t w = 0; w < f->words; w++) f->candidates[w] &= row(f, f->apart, u)[w];
    f->work += f->words;
}

/* Pairs of the clique are in it from now on. */
static void close_pairs(finder *f, int64_t first) {
    for (int64_t p = first; p < f->n_members; p++)
        for (int64_t q = first; q < f->n_members; q++) {
            const int64_t u = f->members[p], v = f->members[q];
            if (f->var[u] == f->var[v]) continue;
            f->covered += u < v && has(row(f, f->open, u), v);
            drop(row(f, f->open, u), v);
            put(row(f, f->inside, u), v);
        }
}

/* A clique around the open pair (u, v), if there is one. */
static void grow_clique(finder *f, int64_t u, int64_t v) {
    const int64_t first = f->n_members;
    memset(f->chosen, 0, (size_t)f->words * sizeof *f->chosen);
    memset(f->candidates, 0xFF, (size_t)f->words * sizeof *f->candidates);
    for (int64_t k = f->literals; k < 64 * f->words; k++) drop(f->candidates, k);
    choose(f, u);
    choose(f, v);
    int32_t variables = 2;
    for (int64_t next; !f->failed && f->n_members - first < MOST_MEMBERS && (next = best_candidate(f)) >= 0;) {
        int seen = 0;
        for (int64_t p = first; p < f->n_members; p++) seen |= f->var[f->members[p]] == f->var[next];
        variables += !seen;
        choose(f, next);
    }
    if (f->failed) return;
    drop(row(f, f->open, u), v); /* a pair in no clique is left as it is */
    drop(row(f, f->open, v), u);
    if (variables < LEAST_VARIABLES) {
        f->n_members = first;
        return;
    }
    f->covered++;
    close_pairs(f, first);
    if (!fgi_grow(&f->begin, &f->begin_capacity, f->count + 2, sizeof *f->begin)) f->failed = 1;
    else f->begin[++f->count] = f->n_members;
}

static int64_t first_of(const finder *f, const uint64_t *set) {
    for (int64_t w = 0; w < f->words; w++)
        if (set[w]) {
            int64_t u = 64 * w;
            while (!has(set, u)) u++;
            return u;
        }
    return -1;
}

/* By exclusions, most first; a counting sort keeps it the same everywhere. */
static void sort_literals(finder *f) {
    int64_t most = 0, at = 0;
    for (int64_t u = 0; u < f->literals; u++) {
        f->degree[u] = common(f, row(f, f->open, u), row(f, f->open, u));
        if (f->degree[u] > most) most = f->degree[u];
    }
    for (int64_t d = most; d > 0; d--)
        for (int64_t u = 0; u < f->literals; u++)
            if (f->degree[u] == d) f->order[at++] = (int32_t)u;
    while (at < f->literals) f->order[at++] = -1;
}

static void find_cliques(finder *f) {
    sort_literals(f);
    f->begin[0] = 0;
    for (int64_t k = 0; k < f->literals && f->order[k] >= 0; k++)
        for (int64_t u = f->order[k], v; (v = first_of(f, row(f, f->open, u))) >= 0;) {
            grow_clique(f, u, v);
            f->work += f->words;
            if (f->failed || f->work > MOST_WORK) return;
        }
}

/* ---- the model ------------------------------------------------------------------------------------------------- */

/* Does the factor say nothing but what the cliques say? */
static int is_said(const finder *f, int64_t k) {
    const fgi_view v = fgi_factor_view(f->m, k);
    const fgi_table_facts *facts = &f->m->t->facts[f->m->s->factor_table[k]];
    if (v.arity != 2 || facts->max != 0 || facts->min_finite != 0) return 0;
    for (int32_t a = 0; a < v.rows; a++)
        for (int32_t b = 0; b < v.cols; b++)
            if (fgi_view_at2(&v, a, b) == -INFINITY &&
                !has(row(f, f->inside, f->m->s->unary_begin[v.vars[0]] + a), f->m->s->unary_begin[v.vars[1]] + b))
                return 0;
    return 1;
}

/* The table between variable i and the clique's own: label a of i is taken if and only if the other one says so. */
static void draft_star(fgi_draft *d, const finder *f, int64_t clique, int32_t i, int32_t own) {
    const int64_t first = f->begin[clique], size = f->begin[clique + 1] - first;
    const int32_t card = f->m->s->cards[i], dims[2] = {card, (int32_t)size + 1}, vars[2] = {i, own};
    double *values;
    const int32_t table = fgi_draft_dense(d, 2, dims, &values);
    if (table < 0) return;
    for (int32_t a = 0; a < card; a++) {
        const int64_t literal = f->m->s->unary_begin[i] + a;
        int member = 0;
        for (int64_t q = 0; q < size; q++) member |= f->members[first + q] == literal;
        values[a * (size + 1)] = member ? -INFINITY : 0;
        for (int64_t q = 0; q < size; q++) {
            const int64_t other = f->members[first + q];
            const int allowed = f->var[other] == i ? other == literal : !member;
            values[a * (size + 1) + q + 1] = allowed ? 0 : -INFINITY;
        }
    }
    fgi_draft_factor(d, table, 1, 0, 2, vars, NULL);
}

static fgi_rc draft_model(const finder *f, fgi_model **out, fgi_error *err) {
    const fgi_structure *s = f->m->s;
    static const double nothing[MOST_MEMBERS + 1] = {0};
    fgi_draft d;
    fgi_draft_begin(&d, f->m);
    for (int32_t i = 0; i < s->n_vars; i++) fgi_draft_variable(&d, s->cards[i], fgi_unary(f->m, i));
    for (int64_t c = 0; c < f->count; c++)
        fgi_draft_variable(&d, (int32_t)(f->begin[c + 1] - f->begin[c]) + 1, nothing);
    for (int64_t k = 0; k < s->n_factors; k++)
        if (!is_said(f, k)) fgi_draft_copy_factor(&d, k, NULL);
    for (int64_t c = 0; c < f->count; c++)
        for (int64_t p = f->begin[c]; p < f->begin[c + 1]; p++) {
            int seen = 0;
            for (int64_t q = f->begin[c]; q < p; q++) seen |= f->var[f->members[q]] == f->var[f->members[p]];
            if (!seen) draft_star(&d, f, c, f->var[f->members[p]], (int32_t)(s->n_vars + c));
        }
    const fgi_rc rc = fgi_draft_finish(&d, s->constant, out, err);
    fgi_draft_free(&d);
    return rc;
}

/* ---- the interface --------------------------------------------------------------------------------------------- */

static int begin(finder *f, const fgi_model *m) {
    const int64_t n = m->s->n_vars;
    f->m = m;
    f->literals = m->s->unary_begin[n];
    f->words = f->literals / 64 + 1;
    const int64_t cells = f->literals * f->words;
    f->var = fgi_alloc(f->literals, sizeof *f->var);
    f->apart = fgi_calloc(cells, sizeof *f->apart);
    f->inside = fgi_calloc(cells, sizeof *f->inside);
    f->open = fgi_alloc(cells, sizeof *f->open);
    f->candidates = fgi_alloc(f->words, sizeof *f->candidates);
    f->chosen = fgi_alloc(f->words, sizeof *f->chosen);
    f->order = fgi_alloc(f->literals, sizeof *f->order);
    f->degree = fgi_alloc(f->literals, sizeof *f->degree);
    f->failed = !fgi_grow(&f->begin, &f->begin_capacity, 1, sizeof *f->begin);
    if (f->failed || !f->var || !f->apart || !f->inside || !f->open || !f->candidates || !f->chosen || !f->order ||
        !f->degree)
        return 0;
    for (int64_t i = 0; i < n; i++)
        for (int64_t u = m->s->unary_begin[i]; u < m->s->unary_begin[i + 1]; u++) f->var[u] = (int32_t)i;
    return 1;
}

static void end(finder *f) {
    void *const owned[] = {
        f->var, f->apart, f->inside, f->open, f->candidates, f->chosen, f->order, f->degree, f->begin, f->members};
    for (size_t k = 0; k < sizeof owned / sizeof owned[0]; k++) free(owned[k]);
}

/* The way from labels of the original. */
static int keep(fgi_cliques *c, finder *f) {
    c->n = (int32_t)f->m->s->n_vars;
    c->count = f->count;
    c->var = fgi_alloc(f->n_members, sizeof *c->var);
    c->label = fgi_alloc(f->n_members, sizeof *c->label);
    if (!c->var || !c->label) return 0;
    for (int64_t p = 0; p < f->n_members; p++) {
        c->var[p] = f->var[f->members[p]];
        c->label[p] = (int32_t)(f->members[p] - f->m->s->unary_begin[c->var[p]]);
    }
    c->begin = f->begin;
    f->begin = NULL;
    return 1;
}

fgi_rc fgi_cliques_create(const fgi_model *m, double least, fgi_cliques **out, fgi_error *err) {
    finder f = {0};
    fgi_rc rc = FGI_OK;
    *out = NULL;
    if (m->s->unary_begin[m->s->n_vars] > MOST_LITERALS || m->s->n_factors == 0) return FGI_OK;
    int ok = begin(&f, m);
    if (ok) {
        read_pairs(&f, room_of(m, least));
        find_cliques(&f);
        ok = !f.failed;
    }
    if (ok && f.work <= MOST_WORK && f.count > 0 && PAYS_OF * f.covered >= PAYS * f.n_members) {
        fgi_cliques *c = fgi_calloc(1, sizeof *c);
        if (c) rc = draft_model(&f, &c->model, err);
        ok = c && (rc || keep(c, &f));
        if (ok && !rc) *out = c;
        else fgi_cliques_free(c);
    }
    end(&f);
    return ok ? rc : fgi_no_memory(err);
}

const fgi_model *fgi_cliques_model(const fgi_cliques *c) { return c->model; }

void fgi_cliques_lift(const fgi_cliques *c, const int32_t *labels, int32_t *lifted) {
    memcpy(lifted, labels, (size_t)c->n * sizeof *lifted);
    for (int64_t k = 0; k < c->count; k++) {
        lifted[c->n + k] = 0;
        for (int64_t p = c->begin[k]; p < c->begin[k + 1]; p++)
            if (labels[c->var[p]] == c->label[p]) lifted[c->n + k] = (int32_t)(p - c->begin[k]) + 1;
    }
}

void fgi_cliques_free(fgi_cliques *c) {
    if (!c) return;
    fgi_model_free(c->model);
    free(c->begin);
    free(c->var);
    free(c->label);
    free(c);
}
