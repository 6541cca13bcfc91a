/* dual/triples_pairs.c - the tables of a model as pairs, and the triples among them (dual/triples.h). */
#include <string.h>
#include "base/arena.h"
#include "dual/triples.h"
#include "model/marginal.h"

enum { MOST_FACTORS = 1 << 17 }; /* their set-up takes a tenth of a second, which nothing interrupts (chosen) */
enum { MOST_ENTRIES = 1 << 24 }; /* entries of all pairs: 128 MB for each of their three copies (chosen) */
enum { MOST_TRIPLES = 1 << 21 }; /* candidates: one look at all of them takes seconds where tables are small (chosen) */

static int is_pair(const fgi_model *m, int64_t f) { return fgi_factor_arity(m->s, f) == 2; }

static double least_of(double x, double found) { return x > -INFINITY ? fgi_smaller(found, x) : found; }

/* What stands for a forbidden score: so far below all others that no labeling makes up for one. */
static double forbidden_score(const fgi_model *m) {
    double range = 0, least = 0;
    for (int64_t i = 0; i < m->s->n_vars; i++) {
        const double *unary = fgi_unary(m, i), top = fgi_max_of(unary, m->s->cards[i]);
        double bottom = top;
        for (int32_t a = 0; a < m->s->cards[i]; a++) bottom = least_of(unary[a], bottom);
        if (top > -INFINITY) range += top - bottom;
        least = fgi_smaller(least, top > -INFINITY ? bottom : 0);
    }
    for (int64_t f = 0; f < m->s->n_factors; f++) {
        const fgi_table_facts *facts = &m->t->facts[m->s->factor_table[f]];
        const double w = fgi_factor_weight(m->s, f);
        if (facts->max == -INFINITY) continue;
        range += w * facts->max - w * facts->min_finite;
        least = fgi_smaller(least, w * facts->min_finite);
    }
    return least - (range > 0 ? 2 * range : 1);
}

/* ---- pairs ----------------------------------------------------------------------------------------------------- */

static int by_vars(const void *a, const void *b) {
    const fgi_pair *x = a, *y = b;
    if (x->vars[0] != y->vars[0]) return x->vars[0] < y->vars[0] ? -1 : 1;
    return x->vars[1] < y->vars[1] ? -1 : x->vars[1] > y->vars[1];
}

/* A pair for every two variables that meet, in order. */
static void list_pairs(fgi_triples *s) {
    const fgi_model *m = s->model;
    int64_t n = 0, n_listed = 0;
    for (int64_t f = 0; f < m->s->n_factors; f++) {
        const int32_t *v = fgi_factor_vars(m->s, f);
        if (is_pair(m, f)) s->pairs[n_listed++] = (fgi_pair){.vars = {v[v[0] > v[1]], v[v[0] < v[1]]}};
    }
    qsort(s->pairs, (size_t)n_listed, sizeof *s->pairs, by_vars);
    for (int64_t f = 0; f < n_listed; f++)
        if (n == 0 || by_vars(&s->pairs[n - 1], &s->pairs[f])) s->pairs[n++] = s->pairs[f];
    s->n_pairs = n;
    for (int64_t e = 0; e < n; e++) {
        s->pairs[e].begin = s->entries;
        s->entries += fgi_pair_entries(s, (int32_t)e);
    }
}

static void list_neighbours(fgi_triples *s) {
    for (int64_t e = 0; e < s->n_pairs; e++)
        for (int q = 0; q < 2; q++) s->adj_begin[s->pairs[e].vars[q] + 1]++;
    for (int64_t i = 0; i < s->n; i++) s->adj_begin[i + 1] += s->adj_begin[i];
    /* Pairs with lower neighbours come first: they are in order once those that end in i are, then those that begin. */
    int64_t *next = fgi_arena_copy(&s->arena, s->adj_begin, s->n, sizeof *next);
    if (s->arena.failed) return;
    for (int q = 1; q >= 0; q--)
        for (int64_t e = 0; e < s->n_pairs; e++) s->adj[next[s->pairs[e].vars[q]]++] = (int32_t)e;
}

/* The pair of i < j, or -1. */
static int32_t pair_of(const fgi_triples *s, int32_t i, int32_t j) {
    int64_t low = s->adj_begin[i], high = s->adj_begin[i + 1];
    while (low < high) {
        const int64_t mid = low + (high - low) / 2;
        const fgi_pair *pair = &s->pairs[s->adj[mid]];
        const int32_t other = pair->vars[0] == i ? pair->vars[1] : pair->vars[0];
        if (other == j) return s->adj[mid];
        if (other < j) low = mid + 1;
        else high = mid;
    }
    return -1;
}

static void read_scores(fgi_triples *s) {
    const fgi_model *m = s->model;
    const double forbidden = forbidden_score(m);
    for (int64_t a = 0; a < m->s->unary_begin[s->n]; a++)
        s->theta_node[a] = m->u->values[a] > -INFINITY ? m->u->values[a] : forbidden;
    for (int64_t f = 0; f < m->s->n_factors; f++) {
        const fgi_view v = fgi_factor_view(m, f);
        if (v.arity != 2) {
            const double best = fgi_best_of_term(m, s->n + f);
            fgi_sum_add(&s->others, best);
            s->others_size += best > -INFINITY ? fabs(best) : 0;
            continue;
        }
        const int is_turned = v.vars[0] > v.vars[1];
        fgi_pair *pair = &s->pairs[pair_of(s, v.vars[is_turned], v.vars[!is_turned])];
        double *theta = s->theta + pair->begin, largest = 0;
        pair->terms++;
        for (int32_t a = 0; a < v.rows; a++)
            for (int32_t b = 0; b < v.cols; b++) {
                const double score = fgi_view_at2(&v, a, b);
                double *entry = is_turned ? theta + (int64_t)b * v.rows + a : theta + (int64_t)a * v.cols + b;
                *entry += score > -INFINITY ? score : forbidden;
                largest = fgi_larger(largest, fabs(*entry));
            }
        if (pair->terms > 1) pair->lost += 0x1p-53 * largest;
    }
}

/* ---- triples --------------------------------------------------------------------------------------------------- */

/* Counts the triples, or lists them where there is room: those of i < j < k with a pair each. */
static int64_t list_triples(const fgi_triples *s, fgi_triple *out) {
    int64_t n = 0;
    for (int64_t e = 0; e < s->n_pairs && n <= MOST_TRIPLES; e++) {
        const int32_t i = s->pairs[e].vars[0], j = s->pairs[e].vars[1];
        for (int64_t at = s->adj_begin[j]; at < s->adj_begin[j + 1]; at++) {
            const fgi_pair *next = &s->pairs[s->adj[at]];
            if (next->vars[0] != j) continue;
            const int32_t outer = pair_of(s, i, next->vars[1]);
            if (outer < 0) continue;
            if (out) out[n] = (fgi_triple){{i, j, next->vars[1]}, {(int32_t)e, s->adj[at], outer}, 0, {0}};
            n++;
        }
    }
    return n;
}

int fgi_triples_take(fgi_triples *s, fgi_triple *q) {
    for (int k = 0; k < 3; k++) q->p[k] = fgi_take_zero(&s->arena, fgi_pair_entries(s, q->pairs[k]), double);
    if (s->arena.failed) return 0;
    for (int k = 0; k < 3; k++) s->pairs[q->pairs[k]].terms++;
    const fgi_triple taken = *q;
    *q = s->triples[s->n_known];
    s->triples[s->n_known++] = taken;
    return 1;
}

/* ---- the whole ------------------------------------------------------------------------------------------------- */

static fgi_rc check(const fgi_model *m, fgi_error *err) {
    int64_t entries = 0;
    if (m->s->n_factors > MOST_FACTORS)
        return fgi_fail(
            err, FGI_UNSUPPORTED, -1, "the model is too large for triples: more than %d factors", MOST_FACTORS);
    for (int64_t f = 0; f < m->s->n_factors; f++) {
        const int32_t *v = fgi_factor_vars(m->s, f);
        if (is_pair(m, f)) entries += (int64_t)m->s->cards[v[0]] * m->s->cards[v[1]];
        if (entries > MOST_ENTRIES)
            return fgi_fail(err, FGI_UNSUPPORTED, -1, "the model is too large for triples: more than %d table entries",
                MOST_ENTRIES);
    }
    return FGI_OK;
}

static void take_scores(fgi_triples *s) {
    const int64_t square = (int64_t)s->max_card * s->max_card, nodes = s->model->s->unary_begin[s->n];
    double **of_pairs[] = {&s->theta, &s->t, &s->size}, **of_nodes[] = {&s->theta_node, &s->u};
    for (int k = 0; k < 3; k++) *of_pairs[k] = fgi_take_zero(&s->arena, s->entries, double);
    for (int k = 0; k < 2; k++) *of_nodes[k] = fgi_take_zero(&s->arena, nodes, double);
    for (int k = 0; k < 3; k++) s->marginal[k] = fgi_take(&s->arena, square, double);
    s->low = fgi_take_zero(&s->arena, s->n_pairs * s->max_card, double);
    s->high = fgi_take_zero(&s->arena, s->n_pairs * s->max_card, double);
    s->line = fgi_take(&s->arena, 2 * (int64_t)s->max_card, double);
}

fgi_rc fgi_triples_init(fgi_triples *s, const fgi_model *m, fgi_error *err) {
    fgi_rc rc = check(m, err);
    if (rc) return rc;
    *s = (fgi_triples){.model = m, .k = fgi_kernels_get(), .n = m->s->n_vars, .max_card = m->s->max_card};
    s->at = m->s->unary_begin;
    s->pairs = fgi_take(&s->arena, m->s->n_factors, fgi_pair);
    s->adj_begin = fgi_take_zero(&s->arena, s->n + 1, int64_t);
    s->adj = fgi_take(&s->arena, 2 * m->s->n_factors, int32_t);
    if (s->arena.failed) return fgi_no_memory(err);
    list_pairs(s);
    list_neighbours(s);
    if (s->arena.failed) return fgi_no_memory(err);
    s->n_triples = list_triples(s, NULL);
    if (s->n_triples > MOST_TRIPLES)
        return fgi_fail(err, FGI_UNSUPPORTED, -1, "the model has too many triples: more than %d", MOST_TRIPLES);
    s->triples = fgi_take(&s->arena, s->n_triples, fgi_triple);
    take_scores(s);
    if (s->arena.failed) return fgi_no_memory(err);
    list_triples(s, s->triples);
    read_scores(s);
    for (int64_t i = 0; i < s->n; i++) fgi_triples_resum_node(s, i);
    for (int64_t e = 0; e < s->n_pairs; e++) fgi_triples_resum_pair(s, (int32_t)e);
    return FGI_OK;
}

void fgi_triples_free(fgi_triples *s) { fgi_arena_free(&s->arena); }
