/* again/visit.c - what happens at one variable: see again/keeper.h.
 *
 * Rounding. A computed maximum may be below the exact one; every top has the difference added to it. A sum of d + 1
 * numbers is off by d 2^-53 of their magnitudes at most, a difference by 2^-53 of itself; MARGIN is a few times that,
 * for products, shares and the sums of the margins themselves. */
#include "again/keeper.h"
#include <string.h>
#include "base/util.h"
#include "model/marginal.h"

static const double MARGIN = 0x1p-51; /* what a number may be off, as a share of it: four roundings */
/* A part of the wall, which is many times the largest score: only walls make numbers beyond it. */
static const double FAR = 0x1p-10;
/* A factor with a smaller share is not told about labels that are walled off. */
static const double LEAST_SHARE = 0x1p-8;

enum {
    OFFSETS = 6,  /* variables ahead whose offsets are fetched (chosen) */
    ROWS = 4,     /* those whose scores are, and the numbers of their factors (chosen) */
    FACTORS = 2,  /* those whose factors are (chosen) */
    MESSAGES = 1, /* and those whose messages are (chosen) */
    MOST = 8      /* factors of a variable that are fetched (chosen) */
};

int fgi_keeper_reserve(fgi_keeper *s, int64_t degree, int64_t states) {
    if (degree > s->links_room) {
        if (!fgi_resize(&s->links, 2 * degree, sizeof *s->links)) return 0;
        s->links_room = 2 * degree;
    }
    const int64_t need = 2 * states + 2 * (int64_t)s->m->s->max_card + 4;
    if (need > s->scratch_room) {
        if (!fgi_resize(&s->scratch, need, sizeof *s->scratch)) return 0;
        s->scratch_room = need;
    }
    return 1;
}

void fgi_keeper_fetch(const fgi_keeper *s, const int32_t *list, int64_t n, int64_t at) {
    const fgi_structure *st = s->m->s;
    if (at + OFFSETS < n) {
        const int32_t i = list[at + OFFSETS];
        __builtin_prefetch(st->adj_begin + i);
        __builtin_prefetch(st->unary_begin + i);
        __builtin_prefetch(s->labels + i);
        __builtin_prefetch(s->vars.at + i);
    }
    if (at + ROWS < n) {
        const int32_t i = list[at + ROWS];
        __builtin_prefetch(st->adj + st->adj_begin[i]);
        __builtin_prefetch(fgi_unary(s->m, i));
    }
    for (int ahead = MESSAGES; ahead <= FACTORS; ahead++) {
        if (at + ahead >= n) return;
        const int64_t begin = st->adj_begin[list[at + ahead]], end = st->adj_begin[list[at + ahead] + 1];
        for (int64_t k = begin; k < end && k < begin + MOST; k++) {
            const int32_t f = st->adj[k];
            if (ahead == MESSAGES) {
                __builtin_prefetch(s->mu + s->mu_begin[f]);
            } else {
                __builtin_prefetch(fgi_factor_vars(st, f));
                __builtin_prefetch(s->mu_begin + f);
                __builtin_prefetch(s->factors.at + f);
            }
        }
    }
}

/* ---- rows ---------------------------------------------------------------------------------------------------- */

enum { LANES = 4 }; /* chains of comparisons side by side, so that none waits for the one before */

static double max_of(const double *x, int32_t n) {
    double m[LANES] = {-INFINITY, -INFINITY, -INFINITY, -INFINITY};
    int32_t k = 0;
    for (; k + LANES <= n; k += LANES)
        for (int l = 0; l < LANES; l++) m[l] = fgi_larger(m[l], x[k + l]);
    for (; k < n; k++) m[0] = fgi_larger(m[0], x[k]);
    return fgi_larger(fgi_larger(m[0], m[1]), fgi_larger(m[2], m[3]));
}

/* The largest magnitude. */
static double size_of(const double *x, int32_t n) {
    double m[LANES] = {0};
    int32_t k = 0;
    for (; k + LANES <= n; k += LANES)
        for (int l = 0; l < LANES; l++) m[l] = fgi_larger(m[l], fabs(x[k + l]));
    for (; k < n; k++) m[0] = fgi_larger(m[0], fabs(x[k]));
    return fgi_larger(fgi_larger(m[0], m[1]), fgi_larger(m[2], m[3]));
}

/* ---- one factor ---------------------------------------------------------------------------------------------- */

/* max over a of  w theta(a, b) + h(a)  for a Potts factor with more for equal labels. */
static void potts(double same, double different, const double *h, int32_t n_from, double *out, int32_t n_to) {
    const double top = max_of(h, n_from) + different;
    if (n_from == n_to) {
        for (int32_t b = 0; b < n_to; b++) out[b] = fgi_larger(h[b] + same, top);
        return;
    }
    for (int32_t b = 0; b < n_to; b++) out[b] = b < n_from ? fgi_larger(h[b] + same, top) : top;
}

/* out = max-marginals of the factor minus the messages of its other variables, and how far they may be off. They may
 * take the place of the messages to variable p. */
static double collect(const fgi_keeper *s, const fgi_view *v, const double *mu, int32_t p, double *out) {
    const int32_t *cards = s->m->s->cards;
    const double far = s->wall * FAR;
    double largest = 0, of_messages = 0;
    int32_t steps = 1;
    if (v->arity == 2) {
        const int32_t n_from = p ? v->rows : v->cols, n_to = p ? v->cols : v->rows;
        const double *other = p ? mu : mu + v->rows;
        for (int32_t a = 0; a < n_from; a++) s->h[a] = -other[a];
        if (v->kind == FGI_POTTS && v->p0 >= v->p1)
            potts(v->weight * v->p0, v->weight * v->p1, s->h, n_from, out, n_to);
        else fgi_view_maxplus(s->k, v, 1 - p, s->h, out, s->scratch);
        if (v->kind > FGI_POTTS) steps += n_from / 2; /* cones add up step by step */
    } else {
        const double *g[FGI_KEEPER_ARITY];
        double *at = s->h;
        for (int32_t q = 0; q < v->arity; q++) {
            const int32_t n = cards[v->vars[q]];
            double most = 0;
            for (int32_t a = 0; a < n; a++) {
                at[a] = -mu[a];
                if (fabs(mu[a]) < far) most = fgi_larger(most, fabs(mu[a]));
            }
            if (q != p) of_messages += most;
            g[q] = at;
            at += n;
            mu += n;
        }
        fgi_table_marginal(s->k, v->values, v->weight, v->arity, v->vars, cards, p, g, out, s->scratch);
        steps += v->arity;
    }
    const int32_t n = cards[v->vars[p]];
    largest = size_of(out, n);
    if (largest >= far) {
        largest = 0;
        for (int32_t b = 0; b < n; b++) {
            const double x = fabs(out[b]);
            if (x < far) largest = fgi_larger(largest, x);
            else if (out[b] == -INFINITY) out[b] = -s->wall;
        }
    }
    return MARGIN * steps * (largest + of_messages);
}

static void put_factor(fgi_keeper *s, int64_t f, double top) {
    s->factors.at[f].top = top;
    fgi_terms_touch(&s->factors, f, FGI_TERM_TOP);
}

void fgi_keeper_refresh_factor(fgi_keeper *s, int64_t f) {
    const fgi_view v = fgi_keeper_view(s, f);
    const double *mu = s->mu + s->mu_begin[f];
    const double margin = collect(s, &v, mu, 0, s->out);
    const int32_t n = s->m->s->cards[v.vars[0]];
    double top = -INFINITY;
    for (int32_t a = 0; a < n; a++) {
        const double x = s->out[a] - mu[a];
        top = fgi_larger(top, x + MARGIN * fabs(x));
    }
    s->factors.at[f].value = fgi_keeper_score(s, &v, s->labels);
    s->full_at[f] = 0;
    s->info.work += fgi_view_work(s->m, &v);
    fgi_terms_touch(&s->factors, f, FGI_TERM_VALUE);
    put_factor(s, f, top + margin);
}

double fgi_keeper_factor_slack(const fgi_keeper *s, int64_t f, const fgi_view *v) {
    const double *mu = s->mu + s->mu_begin[f];
    double x = s->factors.at[f].value;
    for (int32_t q = 0; q < v->arity; q++) {
        x -= mu[s->labels[v->vars[q]]];
        mu += s->m->s->cards[v->vars[q]];
    }
    return s->factors.at[f].top - x;
}

/* ---- one variable -------------------------------------------------------------------------------------------- */

static void put_variable(fgi_keeper *s, int32_t i, double top) {
    s->vars.at[i].top = top;
    fgi_terms_touch(&s->vars, i, FGI_TERM_TOP);
}

/* hat = the unary scores, weight_of = their magnitudes. */
static int32_t begin_sum(fgi_keeper *s, int32_t i) {
    const int32_t n = s->m->s->cards[i];
    const double *restrict theta = fgi_unary(s->m, i);
    double *restrict hat = s->hat, *restrict weight = s->weight_of;
    for (int32_t a = 0; a < n; a++) {
        hat[a] = theta[a];
        weight[a] = theta[a] == -INFINITY ? 0 : fabs(theta[a]);
    }
    return n;
}

static void add_message(fgi_keeper *s, const double *mu, int32_t n) {
    double *restrict hat = s->hat, *restrict weight = s->weight_of;
    for (int32_t a = 0; a < n; a++) {
        hat[a] += mu[a];
        weight[a] += fabs(mu[a]);
    }
}

void fgi_keeper_refresh_variable(fgi_keeper *s, int32_t i) {
    const int32_t n = begin_sum(s, i);
    fgi_keeper_walk w = fgi_keeper_walk_begin(s, i);
    int64_t degree = 0;
    for (int32_t f; (f = fgi_keeper_walk_next(s, i, &w)) >= 0; degree++) {
        const fgi_view v = fgi_keeper_view(s, f);
        int32_t p = 0;
        while (v.vars[p] != i) p++;
        add_message(s, fgi_keeper_mu(s, &v, f, p), n);
    }
    const double rounding = MARGIN * (double)(degree + 2);
    for (int32_t a = 0; a < n; a++) s->hat[a] += rounding * s->weight_of[a];
    s->vars.at[i].value = fgi_unary(s->m, i)[s->labels[i]];
    s->info.work += (degree + 1) * n;
    fgi_terms_touch(&s->vars, i, FGI_TERM_VALUE);
    put_variable(s, i, max_of(s->hat, n));
}

double fgi_keeper_variable_slack(const fgi_keeper *s, int32_t i) {
    const int32_t x = s->labels[i];
    fgi_keeper_walk w = fgi_keeper_walk_begin(s, i);
    double sum = fgi_unary(s->m, i)[x];
    for (int32_t f; (f = fgi_keeper_walk_next(s, i, &w)) >= 0;) {
        const fgi_view v = fgi_keeper_view(s, f);
        int32_t p = 0;
        while (v.vars[p] != i) p++;
        sum += fgi_keeper_mu(s, &v, f, p)[x];
    }
    return s->vars.at[i].top - sum;
}

/* ---- visits -------------------------------------------------------------------------------------------------- */

/* The factors of variable i: which of them go on to, or come from, variables of this round. Returns how many. */
static int64_t find_links(fgi_keeper *s, int32_t i, int forward) {
    fgi_keeper_walk w = fgi_keeper_walk_begin(s, i);
    int64_t n = 0;
    for (int32_t f; (f = fgi_keeper_walk_next(s, i, &w)) >= 0;) {
        fgi_keeper_link *l = &s->links[n++];
        l->factor = f;
        l->view = fgi_keeper_view(s, f);
        l->mu = s->mu + s->mu_begin[f];
        l->onwards = l->before = 0;
        double *at = l->mu;
        for (int32_t q = 0; q < l->view.arity; q++) {
            const int32_t j = l->view.vars[q];
            if (j == i) {
                l->position = q;
                l->own = at;
            } else if (s->is_active[j]) {
                if ((j > i) == forward) l->onwards = 1;
                else l->before = 1;
            }
            at += s->m->s->cards[j];
        }
    }
    return n;
}

/* given += the scores of the factor, its other variables at their trial labels. */
static void add_slice(const fgi_keeper *s, const fgi_keeper_link *l, int32_t n) {
    const fgi_view *v = &l->view;
    double *given = s->given;
    if (v->arity == 2 && v->kind == FGI_POTTS) {
        const int32_t b = s->trial[v->vars[1 - l->position]];
        const double different = v->weight * v->p1, same = v->weight * v->p0;
        const double kept = b < n ? given[b] : 0;
        for (int32_t a = 0; a < n; a++) given[a] += different;
        if (b < n) given[b] = kept + same;
        return;
    }
    const int32_t i = v->vars[l->position], now = s->trial[i];
    for (int32_t a = 0; a < n; a++) {
        s->trial[i] = a;
        given[a] += fgi_keeper_score(s, v, s->trial);
    }
    s->trial[i] = now;
}

/* The best label given those of variables that were visited, or are not, and the messages from the others. */
static void decode(fgi_keeper *s, int32_t i, int32_t n, int64_t n_links) {
    memcpy(s->given, fgi_unary(s->m, i), (size_t)n * sizeof *s->given);
    for (int64_t k = 0; k < n_links; k++) {
        const fgi_keeper_link *l = &s->links[k];
        if (!l->onwards) add_slice(s, l, n);
        else
            for (int32_t a = 0; a < n; a++) s->given[a] += l->own[a];
    }
    int32_t best = s->trial[i];
    const double most = max_of(s->given, n);
    if (s->given[best] < most) {
        for (best = 0; s->given[best] < most;) best++;
        s->trial[i] = best;
        fgi_array_push_i32(&s->moved, i); /* it has room for all that are active */
    }
}

/* What the factors that go on get of hat minus its maximum; hat is what remains, and its top is returned. */
static double share(fgi_keeper *s, int32_t n, int64_t n_links, double top) {
    int64_t onwards = 0, before = 0;
    for (int64_t k = 0; k < n_links; k++) {
        onwards += s->links[k].onwards;
        before += s->links[k].before && !s->links[k].onwards;
    }
    const double part = onwards ? 1.0 / (double)(onwards > before ? onwards : before) : 0, low = -0.25 * s->wall,
                 rounding = MARGIN * (double)(n_links + 2), walled = part >= LEAST_SHARE ? low : 0;
    for (int32_t a = 0; a < n; a++) {
        double surplus = s->hat[a] - top;
        surplus = surplus < 2 * low ? walled : surplus;
        s->given[a] = part * surplus;
        s->hat[a] -= (double)onwards * s->given[a];
        s->weight_of[a] = s->hat[a] + rounding * (s->weight_of[a] - surplus);
    }
    for (int64_t k = 0; k < n_links; k++) {
        if (!s->links[k].onwards) continue;
        s->full_at[s->links[k].factor] = 0;
        double *restrict mu = s->links[k].own;
        const double *restrict given = s->given;
        for (int32_t a = 0; a < n; a++) mu[a] -= given[a];
    }
    return max_of(s->weight_of, n);
}

/* After the last visit of a round: what does not agree with the labels becomes dirty. A factor is looked at where it
 * was visited last. */
static void look_back(fgi_keeper *s, int32_t i, int64_t n_links) {
    if (s->vars.at[i].top - s->hat[s->labels[i]] > s->slack) fgi_keeper_put_dirty(s, i);
    for (int64_t k = 0; k < n_links; k++) {
        const fgi_keeper_link *l = &s->links[k];
        if (l->onwards || !(fgi_keeper_factor_slack(s, l->factor, &l->view) > s->slack)) continue;
        for (int32_t q = 0; q < l->view.arity; q++) fgi_keeper_put_dirty(s, l->view.vars[q]);
    }
}

/* The factor's max-marginals become its messages to the variable of the visit. */
static void fill(fgi_keeper *s, const fgi_keeper_link *l) {
    put_factor(s, l->factor, collect(s, &l->view, l->mu, l->position, l->own));
    s->full_at[l->factor] = (uint8_t)(l->position + 1);
    s->info.work += fgi_view_work(s->m, &l->view);
}

int fgi_keeper_visit(fgi_keeper *s, int32_t i, int forward) {
    enum { LINK_WORK = 16 }; /* entries: the fixed cost of a factor (chosen) */
    const int64_t n_links = find_links(s, i, forward);
    const int32_t n = begin_sum(s, i);
    for (int64_t k = 0; k < n_links; k++) {
        const fgi_keeper_link *l = &s->links[k];
        if (s->full_at[l->factor] != l->position + 1) fill(s, l);
        add_message(s, l->own, n);
        s->info.work += LINK_WORK;
    }
    if (forward) decode(s, i, n, n_links);
    const double top = max_of(s->hat, n);
    if (top < -0.5 * s->wall) return 0;
    put_variable(s, i, share(s, n, n_links, top));
    if (!forward) look_back(s, i, n_links);
    s->info.visits++;
    return 1;
}
