/* base/sat_linear.c - linear constraints in the search of base/sat.h: the weights of the true literals add up to no
 * more than a limit.
 *
 * A constraint keeps the sum of its true literals. What an open literal would add beyond the limit makes it false; the
 * reason is made only when a conflict asks for it, from the heaviest literals that were true before (Chai and Kuehlmann
 * 2003 propagate pseudo-Boolean constraints the same way). Where no two literals can be true the one that is true is
 * the reason. */
#include <string.h>
#include "base/array.h"
#include "base/sat_own.h"

enum { LONG_REASON = 64 /* literals of a constraint: longer reasons are not made to shorten clauses */ };

/* ---- memory ----------------------------------------------------------------------------------------------------- */

void fgi_sat_free_linear(fgi_sat *s) {
    for (int64_t c = 0; c < s->n_linears; c++) {
        free(s->linears[c].literals);
        free(s->linears[c].weights);
    }
    free(s->linears);
    for (int64_t k = 0; s->used && k < 2 * (int64_t)s->n_vars; k++) free(s->used[k].at);
    free(s->used);
}

static int add_use(fgi_sat *s, int32_t literal, int32_t number, int64_t weight) {
    uses *u = &s->used[literal];
    if (u->n == u->room) {
        const int32_t room = u->room ? 2 * u->room : 4;
        if (!fgi_resize(&u->at, room, sizeof *u->at)) return 0;
        s->use_room += room - u->room;
        u->room = room;
    }
    u->at[u->n++] = (use){number, weight};
    return 1;
}

/* Room for one more; returns 0 without memory. */
static int make_room(fgi_sat *s) {
    if (!s->used) s->used = fgi_calloc(2 * (int64_t)s->n_vars + 1, sizeof *s->used);
    return s->used && fgi_grow(&s->linears, &s->linear_room, s->n_linears + 1, sizeof *s->linears);
}

/* By falling weight, and by literal among equals: a heap sort, which needs no memory. */
static int goes_after(const linear *a, int32_t i, int32_t j) {
    if (a->weights[i] != a->weights[j]) return a->weights[i] < a->weights[j];
    return a->literals[i] > a->literals[j];
}

static void exchange(linear *a, int32_t i, int32_t j) {
    const int32_t literal = a->literals[i];
    const int64_t weight = a->weights[i];
    a->literals[i] = a->literals[j];
    a->weights[i] = a->weights[j];
    a->literals[j] = literal;
    a->weights[j] = weight;
}

static void sink(linear *a, int32_t at, int32_t n) {
    for (int32_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && goes_after(a, child + 1, child)) child++;
        if (!goes_after(a, child, at)) return;
        exchange(a, child, at);
    }
}

static void sort_terms(linear *a) {
    for (int32_t k = a->n / 2; k-- > 0;) sink(a, k, a->n);
    for (int32_t n = a->n; n-- > 1;) {
        exchange(a, 0, n);
        sink(a, 0, n);
    }
}

/* ---- propagating ------------------------------------------------------------------------------------------------ */

/* None of the others can be true. */
static int32_t exclude(fgi_sat *s, const linear *a, int32_t literal) {
    s->operations += a->n;
    for (int32_t k = 0; k < a->n; k++) {
        const int32_t other = a->literals[k];
        const int value = other == literal ? 0 : literal_value(s, other);
        if (value < 0) fix(s, other ^ 1, fgi_sat_of_literal(literal));
        if (value <= 0) continue;
        s->pair[0] = literal ^ 1;
        s->pair[1] = other ^ 1;
        return FGI_SAT_PAIR;
    }
    return FGI_SAT_NONE;
}

static int32_t look_at(fgi_sat *s, int64_t c) {
    const linear *a = &s->linears[c];
    const int64_t slack = a->limit - a->sum;
    if (slack < 0) return fgi_sat_of_linear(s, c);
    int32_t k = 0;
    for (; k < a->n && a->weights[k] > slack; k++)
        if (literal_value(s, a->literals[k]) < 0) fix(s, a->literals[k] ^ 1, fgi_sat_of_linear(s, c));
    s->operations += k;
    return FGI_SAT_NONE;
}

int32_t fgi_sat_propagate_linear(fgi_sat *s, int32_t literal) {
    const uses *u = &s->used[literal];
    int32_t conflict = FGI_SAT_NONE;
    s->operations += u->n;
    for (int32_t k = 0; k < u->n; k++) s->linears[u->at[k].linear].sum += u->at[k].weight;
    for (int32_t k = 0; k < u->n && conflict == FGI_SAT_NONE; k++) {
        const int32_t c = u->at[k].linear;
        conflict = s->linears[c].one ? exclude(s, &s->linears[c], literal) : look_at(s, c);
    }
    return conflict;
}

int32_t fgi_sat_look_at_new(fgi_sat *s) {
    fgi_assert(s->n_levels == 0);
    int32_t conflict = FGI_SAT_NONE;
    for (; s->looked < s->n_linears && conflict == FGI_SAT_NONE; s->looked++)
        if (!s->linears[s->looked].one) conflict = look_at(s, s->looked);
    return conflict;
}

void fgi_sat_take_back_linear(fgi_sat *s, int32_t literal) {
    const uses *u = &s->used[literal];
    for (int32_t k = 0; k < u->n; k++) s->linears[u->at[k].linear].sum -= u->at[k].weight;
}

/* ---- reasons ---------------------------------------------------------------------------------------------------- */

/* The heaviest literals that were true before, as many as are needed. Those of level 0 count and are not named. */
static int32_t explain(fgi_sat *s, const linear *a, int32_t literal) {
    const int32_t before = literal < 0 ? s->n_trail : s->where[literal >> 1];
    int64_t over = -a->limit; /* what is true adds up to so much more than is allowed */
    int32_t n = 0;
    s->operations += a->n;
    for (int32_t k = 0; k < a->n; k++) {
        const int32_t x = a->literals[k];
        const int is_due = literal >= 0 && x == (literal ^ 1);
        if (is_due || (literal_value(s, x) == 1 && s->level[x >> 1] == 0)) over += a->weights[k];
    }
    for (int32_t k = 0; k < a->n && over <= 0; k++) {
        const int32_t x = a->literals[k], var = x >> 1;
        if (literal_value(s, x) != 1 || s->level[var] == 0 || s->where[var] >= before) continue;
        over += a->weights[k];
        s->why[n++] = x ^ 1;
    }
    fgi_assert(over > 0);
    return n;
}

const int32_t *fgi_sat_why(fgi_sat *s, int32_t reason, int32_t literal, int32_t *n) {
    if (reason >= 0) {
        *n = s->clauses[reason];
        return s->clauses + reason + FGI_SAT_HEADER;
    }
    *n = 2;
    if (reason == FGI_SAT_PAIR) return s->pair;
    fgi_assert(reason != FGI_SAT_NONE);
    const int32_t k = -2 - reason;
    if (k >= 2 * s->n_vars) {
        *n = explain(s, &s->linears[k - 2 * s->n_vars], literal);
        return s->why;
    }
    s->why[0] = k ^ 1;
    s->why[1] = literal;
    return s->why;
}

int fgi_sat_is_long(const fgi_sat *s, int32_t reason) {
    const int32_t k = -2 - reason;
    return reason < 0 && k >= 2 * s->n_vars && s->linears[k - 2 * s->n_vars].n > LONG_REASON;
}

/* ---- the interface ---------------------------------------------------------------------------------------------- */

/* Its literals are counted from here on: those that have been propagated at once. */
static void count(fgi_sat *s, int32_t number) {
    linear *a = &s->linears[number];
    a->sum = 0;
    for (int32_t k = 0; k < a->n; k++) {
        const int32_t x = a->literals[k];
        if (!add_use(s, x, number, a->weights[k])) s->failed = 1;
        if (literal_value(s, x) == 1 && s->where[x >> 1] < s->next) a->sum += a->weights[k];
    }
    a->one = a->n > 1 && a->limit >= a->weights[0] && a->limit < a->weights[a->n - 1] + a->weights[a->n - 2];
    if (a->one && a->sum > 0) a->one = 0; /* one is true already: the others are looked at once, by their weights */
    if (number < s->looked) s->looked = number;
}

static void forget_uses(fgi_sat *s, int32_t number) {
    const linear *a = &s->linears[number];
    for (int32_t k = 0; k < a->n; k++) {
        uses *u = &s->used[a->literals[k]];
        int32_t kept = 0;
        for (int32_t j = 0; j < u->n; j++)
            if (u->at[j].linear != number) u->at[kept++] = u->at[j];
        u->n = kept;
    }
}

int fgi_sat_set_linear(
    fgi_sat *s, int32_t number, const int32_t *literals, const int64_t *weights, int32_t n, int64_t limit) {
    fgi_assert(number >= 0 && number < s->n_linears && s->n_levels == 0);
    linear *a = &s->linears[number];
    int32_t *own = fgi_alloc(n, sizeof *own);
    int64_t *by = fgi_alloc(n, sizeof *by);
    if (!own || !by) {
        free(own);
        free(by);
        s->failed = 1;
        return 0;
    }
    forget_uses(s, number);
    free(a->literals);
    free(a->weights);
    memcpy(own, literals, (size_t)n * sizeof *own);
    memcpy(by, weights, (size_t)n * sizeof *by);
    *a = (linear){.literals = own, .weights = by, .n = n, .limit = limit};
    sort_terms(a);
    count(s, number);
    if (limit < 0) s->contradiction = 1;
    return !s->failed;
}

int32_t fgi_sat_add_linear(fgi_sat *s, const int32_t *literals, const int64_t *weights, int32_t n, int64_t limit) {
    if (s->n_linears >= INT32_MAX - 4 - 2 * (int64_t)s->n_vars || !make_room(s)) {
        s->failed = 1;
        return -1;
    }
    s->linears[s->n_linears] = (linear){0};
    const int32_t number = (int32_t)s->n_linears++;
    return fgi_sat_set_linear(s, number, literals, weights, n, limit) ? number : -1;
}

int fgi_sat_limit(fgi_sat *s, int32_t number, int64_t limit) {
    linear *a = &s->linears[number];
    fgi_assert(s->n_levels == 0);
    if (limit > a->limit) return 0;
    a->limit = limit;
    a->one = 0;
    if (limit < 0) s->contradiction = 1;
    if (number < s->looked) s->looked = number;
    return 1;
}
