/*
 * io/uai_write.c - a model as UAI text, produced on demand piece by piece: one factor for the constant, one for each
 * variable that has unary scores, those that hold what rounding took from these (model/leftovers.h), then the factors
 * over two or more variables in their order. Shared and implicit
 * tables are written out for each factor, since the format knows no sharing; a transposed factor is written with its
 * variables swapped.
 */
#include <stdio.h>
#include <string.h>
#include "base/decimal.h"
#include "model/model.h"
#include "base/util.h"

typedef enum stage { HEAD, CARDS, COUNT, SCOPES, TABLE_SIZE, ENTRIES, END } stage;

enum {
    MEMO_BITS = 10, /* 2^MEMO_BITS numbers that were written lately are kept with their text */
    ROOM = 256      /* bytes that a piece of text may take: a number takes less than a hundred */
};

typedef struct memo {
    uint64_t bits; /* the score's */
    int32_t length;
    char text[FGI_TEXT_SIZE];
} memo; /* what was written for a score */

struct fgi_uai_writer {
    fgi_model *m;
    int log_values, bayes;
    stage now;
    int64_t at, part; /* position in the stage: variable or item; place inside an item */
    int64_t n_items;
    int64_t *items; /* < n_factors: that factor; then unary scores of a variable; the constant; leftovers */
    memo memos[1 << MEMO_BITS];
};

/* An item as it is written. */
typedef struct item {
    int64_t arity, states, columns; /* columns: labels of the last variable */
    const int32_t *scope;           /* NULL: its variables are in vars */
    int32_t vars[2];
    const double *scores; /* NULL: a factor, seen through its view */
    fgi_view view;
} item;

static item item_of(const fgi_uai_writer *w, int64_t k) {
    const fgi_structure *s = w->m->s;
    int64_t id = w->items[k];
    item it = {.arity = 0, .states = 1, .columns = 1};
    if (id > s->n_factors + s->n_vars) {
        const fgi_leftovers *x = w->m->x;
        const int64_t row = id - s->n_factors - s->n_vars - 1;
        it.arity = x->var[row] >= 0;
        it.vars[0] = x->var[row];
        it.states = it.columns = x->begin[row + 1] - x->begin[row];
        it.scores = x->values + x->begin[row];
    } else if (id == s->n_factors + s->n_vars) {
        it.scores = &s->constant;
    } else if (id >= s->n_factors) {
        it.arity = 1;
        it.vars[0] = (int32_t)(id - s->n_factors);
        it.states = it.columns = s->cards[it.vars[0]];
        it.scores = fgi_unary(w->m, it.vars[0]);
    } else {
        it.view = fgi_factor_view(w->m, id);
        it.arity = it.view.arity;
        it.states = fgi_view_states(w->m, &it.view);
        it.scope = it.view.vars;
        if (it.view.transposed) it.vars[0] = it.view.vars[1], it.vars[1] = it.view.vars[0], it.scope = NULL;
        it.columns = s->cards[it.view.transposed ? it.vars[1] : it.scope[it.arity - 1]];
    }
    return it;
}

static int32_t item_var(const item *it, int64_t k) { return it->scope ? it->scope[k] : it->vars[k]; }

static double item_score(const item *it, int64_t k) {
    if (it->scores) return it->scores[k];
    const fgi_view *v = &it->view;
    if (v->kind == FGI_DENSE) return v->weight * v->values[k]; /* transposed: the swapped scope fits the storage */
    return v->weight * fgi_implicit_at(v->kind, v->p0, v->p1, (int32_t)(k / it->columns), (int32_t)(k % it->columns));
}

/* ---- what is written ---------------------------------------------------------------------------------------- */

static int is_something(double score) { return score != 0.0 || signbit(score); } /* -0.0 survives a round trip, too */

static int has_unary(const fgi_model *m, int64_t i) {
    for (int32_t a = 0; a < m->s->cards[i]; a++)
        if (is_something(fgi_unary(m, i)[a])) return 1;
    return 0;
}

/* Potentials cannot say what is less than their own rounding. */
static int is_shown(const fgi_uai_writer *w, int64_t row) {
    const fgi_leftovers *x = w->m->x;
    for (int64_t e = x->begin[row]; e < x->begin[row + 1]; e++)
        if (w->log_values || exp(x->values[e]) != 1) return 1;
    return 0;
}

static fgi_rc markov_items(fgi_uai_writer *w) {
    const fgi_structure *s = w->m->s;
    if (is_something(s->constant)) w->items[w->n_items++] = s->n_factors + s->n_vars;
    for (int64_t i = 0; i < s->n_vars; i++)
        if (has_unary(w->m, i)) w->items[w->n_items++] = s->n_factors + i;
    for (int64_t k = 0; w->m->x && k < w->m->x->n; k++)
        if (is_shown(w, k)) w->items[w->n_items++] = s->n_factors + s->n_vars + 1 + k;
    for (int64_t f = 0; f < s->n_factors; f++) w->items[w->n_items++] = f;
    return FGI_OK;
}

static fgi_rc not_bayes(fgi_error *err, int64_t variable, const char *why) {
    return fgi_fail(err, FGI_BAD_MODEL, variable, "not a Bayesian network: variable %lld %s; write it as MARKOV",
        (long long)variable, why);
}

/* A Bayesian network has one factor per variable, which is its last (the child), and the probabilities of the child sum
 * to 1. */
static fgi_rc bayes_items(fgi_uai_writer *w, fgi_error *err) {
    const fgi_structure *s = w->m->s;
    if (s->constant != 0.0)
        return fgi_fail(err, FGI_BAD_MODEL, -1, "not a Bayesian network: a factor has no variable; write it as MARKOV");
    w->n_items = s->n_vars;
    for (int64_t i = 0; i < s->n_vars; i++) w->items[i] = -1;
    for (int64_t f = 0; f < s->n_factors; f++) {
        fgi_view v = fgi_factor_view(w->m, f);
        int32_t child = v.transposed ? v.vars[0] : v.vars[v.arity - 1];
        if (w->items[child] >= 0) return not_bayes(err, child, "is the last of two factors");
        w->items[child] = f;
    }
    for (int64_t i = 0; i < s->n_vars; i++) {
        if (w->items[i] >= 0 && has_unary(w->m, i)) return not_bayes(err, i, "has a table and unary scores");
        if (w->items[i] < 0) w->items[i] = s->n_factors + i;
        item it = item_of(w, i);
        for (int64_t k = 0; k < it.states; k += it.columns) {
            double sum = 0.0;
            for (int64_t a = 0; a < it.columns; a++) sum += exp(item_score(&it, k + a));
            if (!(fabs(sum - 1.0) <= 1e-3)) return not_bayes(err, i, "has probabilities that do not sum to 1");
        }
    }
    return FGI_OK;
}

/* ---- numbers ------------------------------------------------------------------------------------------------ */

static fgi_rc fail_score(const fgi_uai_writer *w, double score, fgi_error *err) {
    item it = item_of(w, w->at);
    char scope[100];
    const char *what = it.arity == 0 ? "the constant" : it.arity == 1 ? "variable" : "the factor over variables";
    int n = snprintf(scope, sizeof scope, "%s", what);
    for (int64_t k = 0; k < it.arity && k < 6; k++)
        n += snprintf(scope + n, sizeof scope - (size_t)n, " %d", item_var(&it, k));
    return fgi_fail(err, FGI_BAD_FORMAT, w->at,
        "%s%s, entry %lld has the score %.17g, and exp of that is too %s for a double; write .LG or .npz instead",
        scope, it.arity > 6 ? " ..." : "", (long long)w->part, score, score > 0 ? "large" : "small");
}

static fgi_rc put_score(fgi_uai_writer *w, double score, char *text, int *length, fgi_error *err) {
    uint64_t bits;
    memcpy(&bits, &score, sizeof bits);
    memo *known = &w->memos[(bits * 0x9E3779B97F4A7C15u) >> (64 - MEMO_BITS)];
    if (!known->length || known->bits != bits) {
        int n;
        if (w->log_values && score == -INFINITY) memcpy(known->text, "-inf", 4), n = 4;
        else n = w->log_values ? fgi_text_of_double(score, known->text) : fgi_text_of_potential(score, known->text);
        known->length = n;
        known->bits = bits;
        if (!n) return fail_score(w, score, err);
    }
    memcpy(text, known->text, (size_t)known->length);
    *length = known->length;
    return FGI_OK;
}

/* ---- the writer --------------------------------------------------------------------------------------------- */

fgi_rc fgi_uai_writer_create(const fgi_model *m, int log_values, int bayes, fgi_uai_writer **out, fgi_error *err) {
    fgi_uai_writer *w = fgi_calloc(1, sizeof *w);
    if (w) {
        w->m = fgi_model_snapshot(m);
        w->items = fgi_alloc(m->s->n_factors + m->s->n_vars + 1 + (m->x ? m->x->n : 0), sizeof *w->items);
    }
    if (!w || !w->m || !w->items) {
        fgi_uai_writer_free(w);
        return fgi_no_memory(err);
    }
    w->log_values = log_values;
    w->bayes = bayes;
    fgi_rc rc = bayes ? bayes_items(w, err) : markov_items(w);
    if (rc) fgi_uai_writer_free(w);
    else *out = w;
    return rc;
}

void fgi_uai_writer_free(fgi_uai_writer *w) {
    if (!w) return;
    fgi_model_free(w->m);
    free(w->items);
    free(w);
}

static void enter(fgi_uai_writer *w, stage next) {
    w->now = next;
    w->at = w->part = 0;
}

/* One small step: at most ROOM bytes of text. */
static fgi_rc step(fgi_uai_writer *w, char *text, int *length, fgi_error *err) {
    const fgi_structure *s = w->m->s;
    item it;
    int n;
    fgi_rc rc;
    *length = 0;
    switch (w->now) {
    case HEAD:
        *length = snprintf(text, ROOM, "%s\n%lld\n", w->bayes ? "BAYES" : "MARKOV", (long long)s->n_vars);
        enter(w, CARDS);
        break;
    case CARDS:
        if (w->at == s->n_vars) enter(w, COUNT);
        else *length = snprintf(text, ROOM, "%d%c", s->cards[w->at], w->at + 1 < s->n_vars ? ' ' : '\n'), w->at++;
        break;
    case COUNT:
        *length = snprintf(text, ROOM, "%lld\n", (long long)w->n_items);
        enter(w, SCOPES);
        break;
    case SCOPES:
        if (w->at == w->n_items) {
            enter(w, TABLE_SIZE);
            break;
        }
        it = item_of(w, w->at);
        n = w->part ? 0 : snprintf(text, ROOM, "%lld", (long long)it.arity);
        if (w->part < it.arity) n += snprintf(text + n, ROOM - (size_t)n, " %d", item_var(&it, w->part++));
        if (w->part == it.arity) text[n++] = '\n', w->at++, w->part = 0;
        *length = n;
        break;
    case TABLE_SIZE:
        if (w->at == w->n_items) {
            enter(w, END);
            break;
        }
        it = item_of(w, w->at);
        *length = snprintf(text, ROOM, "\n%lld\n", (long long)it.states);
        w->now = ENTRIES;
        break;
    case ENTRIES:
        it = item_of(w, w->at);
        for (n = 0; w->part < it.states && n + FGI_TEXT_SIZE + 1 <= ROOM; w->part++) {
            if ((rc = put_score(w, item_score(&it, w->part), text + n, length, err))) return rc;
            n += *length;
            text[n++] = (w->part + 1) % it.columns ? ' ' : '\n';
        }
        *length = n;
        if (w->part == it.states) w->now = TABLE_SIZE, w->at++, w->part = 0;
        break;
    case END: break;
    }
    return FGI_OK;
}

fgi_rc fgi_uai_writer_next(fgi_uai_writer *w, char *text, int64_t capacity, int64_t *length, fgi_error *err) {
    *length = 0;
    if (capacity < ROOM) return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "a piece must have room for %d bytes", (int)ROOM);
    while (w->now != END && capacity - *length >= ROOM) {
        int n;
        fgi_rc rc = step(w, text + *length, &n, err);
        if (rc) return rc;
        *length += n;
    }
    return FGI_OK;
}
