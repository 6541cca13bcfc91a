/* primal/labeling.c - see primal/labeling.h. */
#include "primal/labeling.h"
#include <string.h>
#include "primal/choices.h"
#include "primal/effects.h"
#include "base/kernels.h"
#include "base/assert.h"

/* After so many incremental updates a variable's label scores are summed afresh: rounding errors stay bounded. */
enum { REFRESH = 1 << 14 };

/* Invariants, between two calls (check looks at them):
 *   1  Labels are in range; `queued` says who is in the queue, each once.
 *   2  Where `fresh` is not 0, the label scores are those of the labels now, to rounding, and `forbidden` exactly.
 *   3  `score` is that of the labels, to rounding, and `violations` exactly, once there was a labeling.
 *   4  `changed` are the variables touched since the mark, each once, and `old` the labels they had. */
struct fgi_labeling {
    const fgi_model *model;
    int32_t *labels;
    double *scores;     /* label scores, laid out as the unaries; meaningful where fresh > 0 */
    int32_t *forbidden; /* forbidden entries met by each label; NULL when the model has none */
    uint16_t *fresh;    /* updates left before the variable's label scores must be summed afresh; 0: not known */
    int32_t *queue;     /* circular work list */
    uint8_t *queued;
    int64_t head, count;
    int64_t operations;
    int64_t violations;
    double score;
    double scale; /* largest finite potential in absolute value */
    int assigned;
    /* since the mark */
    int32_t *touched;       /* per variable: the mark's number if it has been recorded */
    int32_t *changed, *old; /* recorded variables and the labels they had */
    int64_t n_changed;
    int32_t mark;
    double mark_score;
    int64_t mark_violations;
    fgi_effects *effects; /* effects of labels used last; NULL: none are kept */
    fgi_choices *choices; /* NULL: all labels are */
    fgi_arena arena;
};

/* A factor seen from one of its variables, the others fixed: entry a of the line is base[a * stride], or closed form.
 */
typedef struct line {
    const double *base; /* dense; NULL: implicit */
    int64_t stride;
    double weight;
    int32_t kind, other; /* implicit: the label of the other variable */
    double p0, p1;
} line;

static line factor_line(const fgi_model *m, const fgi_view *v, const int32_t *labels, int32_t var) {
    line r = {0};
    r.weight = v->weight;
    r.kind = v->kind;
    if (v->kind != FGI_DENSE) {
        r.p0 = v->p0;
        r.p1 = v->p1;
        r.other = labels[v->vars[v->vars[0] == var]]; /* implicit tables are symmetric in their two labels */
        return r;
    }
    if (v->arity == 2) {
        int first = v->vars[0] == var;
        int64_t other = labels[v->vars[first]];
        int64_t row = v->transposed ? 1 : v->cols, col = v->transposed ? v->rows : 1;
        r.stride = first ? row : col;
        r.base = v->values + other * (first ? col : row);
        return r;
    }
    int64_t stride = 1, at = 0;
    for (int32_t k = v->arity - 1; k >= 0; k--) {
        if (v->vars[k] == var) r.stride = stride;
        else at += stride * labels[v->vars[k]];
        stride *= m->s->cards[v->vars[k]];
    }
    r.base = v->values + at;
    return r;
}

static inline double line_at(const line *r, int32_t a) {
    fgi_assert(a >= 0);
    return r->weight * (r->base ? r->base[a * r->stride] : fgi_implicit_at(r->kind, r->p0, r->p1, a, r->other));
}

static double largest_potential(const fgi_model *m, int *any_forbidden) {
    const fgi_extremes unaries = fgi_extremes_of(m->u->values, m->s->unary_begin[m->s->n_vars]);
    double scale = unaries.largest;
    *any_forbidden = unaries.forbids;
    for (int64_t f = 0; f < m->s->n_factors; f++) {
        const fgi_table_facts *facts = &m->t->facts[m->s->factor_table[f]];
        if (facts->n_forbidden) *any_forbidden = 1;
        if (facts->max == -INFINITY) continue;
        scale = fgi_larger(scale, fgi_factor_weight(m->s, f) * fgi_larger(fabs(facts->max), fabs(facts->min_finite)));
    }
    return scale;
}

fgi_labeling *fgi_labeling_create(const fgi_model *m) {
    const int64_t n = m->s->n_vars, total = m->s->unary_begin[n];
    int any_forbidden;
    fgi_labeling *l = fgi_calloc(1, sizeof *l);
    if (!l) return NULL;
    l->model = m;
    l->scale = largest_potential(m, &any_forbidden);
    l->labels = fgi_take_zero(&l->arena, n, int32_t);
    l->scores = fgi_take(&l->arena, total, double);
    l->fresh = fgi_take_zero(&l->arena, n, uint16_t);
    l->queue = fgi_take(&l->arena, n, int32_t);
    l->queued = fgi_take_zero(&l->arena, n, uint8_t);
    l->touched = fgi_take_zero(&l->arena, n, int32_t);
    l->changed = fgi_take(&l->arena, n, int32_t);
    l->old = fgi_take(&l->arena, n, int32_t);
    l->mark = 1;
    if (any_forbidden) l->forbidden = fgi_take(&l->arena, total, int32_t);
    if (!l->arena.failed) return l;
    fgi_labeling_free(l);
    return NULL;
}

void fgi_labeling_free(fgi_labeling *l) {
    if (!l) return;
    fgi_effects_free(l->effects);
    fgi_choices_free(l->choices);
    fgi_arena_free(&l->arena);
    free(l);
}

void fgi_labeling_keep_effects(fgi_labeling *l) { l->effects = fgi_effects_create(l->model); }

int64_t fgi_labeling_memory(const fgi_labeling *l) {
    return (int64_t)sizeof *l + l->arena.bytes + (l->effects ? l->effects->arena.bytes : 0) +
        (l->choices ? l->choices->arena.bytes : 0);
}

void fgi_labeling_narrow_choices(fgi_labeling *l) {
    l->choices = fgi_choices_create(l->model);
    if (l->choices) fgi_choices_count(l->choices, l->labels, l->model->s->n_vars);
}

int32_t fgi_labeling_choices(const fgi_labeling *l, int32_t var, const int32_t **labels) {
    *labels = l->choices ? l->choices->labels : NULL;
    return l->choices ? fgi_choices_number(l->choices) : l->model->s->cards[var];
}

const int32_t *fgi_labeling_labels(const fgi_labeling *l) { return l->labels; }
int64_t fgi_labeling_violations(const fgi_labeling *l) { return l->violations; }
double fgi_labeling_score(const fgi_labeling *l) { return l->score; }
int64_t fgi_labeling_operations(const fgi_labeling *l) { return l->operations; }
int fgi_labeling_has_forbidden(const fgi_labeling *l) { return l->forbidden != NULL; }
double fgi_labeling_tolerance(const fgi_labeling *l, double score) { return 1e-14 * l->scale + 1e-12 * fabs(score); }
double fgi_labeling_penalty(const fgi_labeling *l) {
    const double most = 2.5 * l->scale * (double)(l->model->s->n_vars + l->model->s->n_factors);
    return most > 0 ? most : 1;
}

void fgi_labeling_push(fgi_labeling *l, int32_t var) {
    fgi_assert(var >= 0 && var < l->model->s->n_vars);
    if (l->queued[var]) return;
    const int64_t n = l->model->s->n_vars;
    int64_t at = l->head + l->count++;
    l->queued[var] = 1;
    l->queue[at >= n ? at - n : at] = var;
}

void fgi_labeling_push_all(fgi_labeling *l) {
    for (int64_t i = 0; i < l->model->s->n_vars; i++) fgi_labeling_push(l, (int32_t)i);
}

static int32_t pop(fgi_labeling *l) {
    fgi_assert(l->count > 0 && l->head >= 0 && l->head < l->model->s->n_vars);
    int32_t var = l->queue[l->head];
    fgi_assert(l->queued[var]);
    if (++l->head == l->model->s->n_vars) l->head = 0;
    l->count--;
    l->queued[var] = 0;
    return var;
}

void fgi_labeling_clear(fgi_labeling *l) {
    while (l->count) pop(l);
}

static void record(fgi_labeling *l, int32_t var) {
    fgi_assert(var >= 0 && var < l->model->s->n_vars);
    if (l->touched[var] == l->mark) return;
    l->touched[var] = l->mark;
    fgi_assert(l->n_changed < l->model->s->n_vars);
    l->changed[l->n_changed] = var;
    l->old[l->n_changed++] = l->labels[var];
}

void fgi_labeling_mark(fgi_labeling *l) {
    if (l->mark == INT32_MAX) {
        memset(l->touched, 0, (size_t)l->model->s->n_vars * sizeof *l->touched);
        l->mark = 0;
    }
    l->mark++;
    l->n_changed = 0;
    l->mark_score = l->score;
    l->mark_violations = l->violations;
}

double fgi_labeling_mark_score(const fgi_labeling *l) { return l->mark_score; }
int64_t fgi_labeling_mark_violations(const fgi_labeling *l) { return l->mark_violations; }

void fgi_labeling_mark_labels(const fgi_labeling *l, int32_t *labels) {
    memcpy(labels, l->labels, (size_t)l->model->s->n_vars * sizeof *labels);
    for (int64_t k = 0; k < l->n_changed; k++) labels[l->changed[k]] = l->old[k];
}

void fgi_labeling_rollback(fgi_labeling *l) {
    fgi_assert(l->n_changed >= 0 && l->n_changed <= l->model->s->n_vars);
    for (int64_t k = 0; k < l->n_changed; k++) fgi_labeling_flip(l, l->changed[k], l->old[k]);
    l->n_changed = 0;
    l->score = l->mark_score; /* without the rounding of the way there and back */
    l->violations = l->mark_violations;
    fgi_labeling_mark(l);
    fgi_labeling_clear(l);
}

/* scores[a] += line(a) for all labels; forbidden entries are counted instead. */
static void add_line(double *scores, int32_t *forbidden, int32_t card, const line *r) {
    fgi_assert(card > 0);
    if (!forbidden && r->base) {
        for (int32_t a = 0; a < card; a++) scores[a] += r->weight * r->base[a * r->stride];
        return;
    }
    for (int32_t a = 0; a < card; a++) {
        double x = line_at(r, a);
        if (x == -INFINITY) forbidden[a]++;
        else scores[a] += x;
    }
}

/* Label scores of a variable from scratch. */
static void refresh(fgi_labeling *l, int32_t var) {
    fgi_assert(var >= 0 && var < l->model->s->n_vars && !l->fresh[var]);
    const fgi_model *m = l->model;
    const int32_t card = m->s->cards[var];
    double *scores = l->scores + m->s->unary_begin[var];
    int32_t *forbidden = l->forbidden ? l->forbidden + m->s->unary_begin[var] : NULL;
    const double *unary = fgi_unary(m, var);
    for (int32_t a = 0; a < card; a++) {
        int bad = unary[a] == -INFINITY;
        scores[a] = bad ? 0 : unary[a];
        if (forbidden) forbidden[a] = bad;
    }
    for (int64_t k = m->s->adj_begin[var]; k < m->s->adj_begin[var + 1]; k++) {
        fgi_view v = fgi_factor_view(m, m->s->adj[k]);
        line r = factor_line(m, &v, l->labels, var);
        add_line(scores, forbidden, card, &r);
    }
    l->operations += card * (1 + m->s->adj_begin[var + 1] - m->s->adj_begin[var]);
    l->fresh[var] = REFRESH;
}

const double *fgi_labeling_label_scores(fgi_labeling *l, int32_t var, const int32_t **violations) {
    fgi_assert(var >= 0 && var < l->model->s->n_vars);
    if (!l->fresh[var]) refresh(l, var);
    *violations = l->forbidden ? l->forbidden + l->model->s->unary_begin[var] : NULL;
    return l->scores + l->model->s->unary_begin[var];
}

int32_t fgi_labeling_best_label(fgi_labeling *l, int32_t var) {
    fgi_assert(var >= 0 && var < l->model->s->n_vars);
    const int32_t *bad, *choices, n = fgi_labeling_choices(l, var, &choices), now = l->labels[var];
    const double *x = fgi_labeling_label_scores(l, var, &bad);
    int32_t best = choices ? choices[0] : 0;
    for (int32_t k = 1; k < n; k++) {
        const int32_t a = choices ? choices[k] : k;
        if (bad ? bad[a] < bad[best] || (bad[a] == bad[best] && x[a] > x[best]) : x[a] > x[best]) best = a;
    }
    if (bad && bad[best] < bad[now]) return best;
    l->operations += n;
    return x[best] > x[now] + fgi_labeling_tolerance(l, x[now]) ? best : now;
}

/* The change when only two labels matter: no need for all of the variable's label scores. */
static double two_label_gain(fgi_labeling *l, int32_t var, int32_t from, int32_t to, int32_t *more_violations) {
    fgi_assert(from != to);
    const fgi_model *m = l->model;
    const double *unary = fgi_unary(m, var);
    double gain = 0;
    int32_t more = (unary[to] == -INFINITY) - (unary[from] == -INFINITY);
    if (unary[to] > -INFINITY) gain += unary[to];
    if (unary[from] > -INFINITY) gain -= unary[from];
    for (int64_t k = m->s->adj_begin[var]; k < m->s->adj_begin[var + 1]; k++) {
        fgi_view v = fgi_factor_view(m, m->s->adj[k]);
        line r = factor_line(m, &v, l->labels, var);
        double x = line_at(&r, to), y = line_at(&r, from);
        more += (x == -INFINITY) - (y == -INFINITY);
        if (x > -INFINITY) gain += x;
        if (y > -INFINITY) gain -= y;
    }
    l->operations += 2 * (1 + m->s->adj_begin[var + 1] - m->s->adj_begin[var]);
    *more_violations = more;
    return gain;
}

/* What the change would add to score and violations. */
static double gain_of(fgi_labeling *l, int32_t var, int32_t label, int32_t *more_violations) {
    const int32_t now = l->labels[var];
    fgi_assert(label != now);
    if (!l->fresh[var]) return two_label_gain(l, var, now, label, more_violations);
    const double *x = l->scores + l->model->s->unary_begin[var];
    const int32_t *bad = l->forbidden ? l->forbidden + l->model->s->unary_begin[var] : NULL;
    *more_violations = bad ? bad[label] - bad[now] : 0;
    return x[label] - x[now];
}

/* Labels from `begin` to below `end`. */
typedef struct span {
    int32_t begin, end;
} span;

/* The score of a label after one entry has gone and another has come, either of which may be forbidden. */
static inline void exchange(double *score, int32_t *forbidden, double new, double old) {
    if (new > -INFINITY && old > -INFINITY) {
        *score += new - old;
        return;
    }
    *forbidden += (new == -INFINITY) - (old == -INFINITY);
    if (new > -INFINITY) *score += new;
    if (old > -INFINITY) *score -= old;
}

/* The same of some labels in a line. */
static void change_lines(fgi_labeling *l, int32_t var, span of, const line *old, const line *new) {
    double *scores = l->scores + l->model->s->unary_begin[var];
    if (l->forbidden) {
        int32_t *forbidden = l->forbidden + l->model->s->unary_begin[var];
        for (int32_t a = of.begin; a < of.end; a++)
            exchange(&scores[a], &forbidden[a], line_at(new, a), line_at(old, a));
    } else if (old->base) {
        const double *x = new->base, *y = old->base, weight = old->weight;
        const int64_t stride = old->stride;
        for (int32_t a = of.begin; a < of.end; a++) /* unweighted, the difference may overflow */
            scores[a] += weight * x[a * stride] - weight * y[a * stride];
    } else {
        for (int32_t a = of.begin; a < of.end; a++) scores[a] += line_at(new, a) - line_at(old, a);
    }
}

/* The labels below `card` and from `from` on that are nearer than `reach` to a label. */
static span near_labels(int32_t label, int32_t reach, int32_t from, int32_t card) {
    fgi_assert(label >= 0 && reach > 0);
    const int32_t begin = label >= reach ? label - reach + 1 : 0, end = label < card - reach ? label + reach : card;
    return (span){begin < from ? from : begin, end};
}

/* A neighbour's label scores after `var` has gone from label `from` to `to` (labels still say `from`). Where scores
 * depend on the distance of labels, those far from both keep theirs. All are counted, though, unless labels are alike:
 * annealings that are longer for the same count gained nothing elsewhere (seven kinds of models, three seeds). */
static void update_neighbour(
    fgi_labeling *l, const fgi_view *v, int32_t neighbour, int32_t var, int32_t from, int32_t to) {
    const fgi_model *m = l->model;
    const int32_t card = m->s->cards[neighbour];
    fgi_assert(l->fresh[neighbour] > 0 && l->labels[var] == from && from != to);
    l->operations += l->choices ? 2 : card;
    l->fresh[neighbour]--;
    if (v->kind == FGI_POTTS && !l->forbidden) {
        double *scores = l->scores + m->s->unary_begin[neighbour];
        const double same = v->weight * v->p0, other = v->weight * v->p1;
        if (from < card) scores[from] += other - same;
        if (to < card) scores[to] += same - other;
        return;
    }
    line old = factor_line(m, v, l->labels, neighbour);
    l->labels[var] = to;
    line new = factor_line(m, v, l->labels, neighbour);
    l->labels[var] = from;
    const int32_t reach = v->arity == 2 ? fgi_view_reach(v) : INT32_MAX;
    const span low = near_labels(from < to ? from : to, reach, 0, card);
    change_lines(l, neighbour, low, &old, &new);
    if (low.end < card)
        change_lines(l, neighbour, near_labels(from < to ? to : from, reach, low.end, card), &old, &new);
}

/* The same in a pairwise factor, from the rows of both labels (primal/effects.h). */
static void update_by_effects(fgi_labeling *l, int32_t neighbour, const double *new, const double *old) {
    fgi_assert(l->fresh[neighbour] > 0);
    const int32_t card = l->model->s->cards[neighbour];
    double *scores = l->scores + l->model->s->unary_begin[neighbour];
    l->operations += card;
    l->fresh[neighbour]--;
    if (!l->forbidden) {
        for (int32_t a = 0; a < card; a++) scores[a] += new[a] - old[a];
        return;
    }
    int32_t *forbidden = l->forbidden + l->model->s->unary_begin[neighbour];
    for (int32_t a = 0; a < card; a++) exchange(&scores[a], &forbidden[a], new[a], old[a]);
}

void fgi_labeling_flip(fgi_labeling *l, int32_t var, int32_t label) {
    fgi_assert(var >= 0 && var < l->model->s->n_vars && label >= 0 && label < l->model->s->cards[var]);
    const fgi_structure *s = l->model->s;
    const fgi_effects *e = l->effects;
    const int32_t from = l->labels[var];
    if (from == label) return;
    record(l, var);
    int32_t more;
    l->score += gain_of(l, var, label, &more);
    l->violations += more;
    fgi_assert(l->violations >= 0 || !l->assigned);
    const double *new = e ? fgi_effects_of(l->effects, var, label) : NULL;
    const double *old = new ? fgi_effects_of(l->effects, var, from) : NULL;
    for (int64_t k = s->adj_begin[var]; k < s->adj_begin[var + 1]; k++) {
        if (new && e->neighbour[k] >= 0) {
            const int32_t neighbour = e->neighbour[k];
            if (l->fresh[neighbour]) update_by_effects(l, neighbour, new, old);
            fgi_labeling_push(l, neighbour);
            new += s->cards[neighbour];
            old += s->cards[neighbour];
            continue;
        }
        fgi_view v = fgi_factor_view(l->model, s->adj[k]);
        for (int32_t j = 0; j < v.arity; j++) {
            int32_t neighbour = v.vars[j];
            if (neighbour == var) continue;
            if (l->fresh[neighbour]) update_neighbour(l, &v, neighbour, var, from, label);
            fgi_labeling_push(l, neighbour);
        }
    }
    l->labels[var] = label;
    if (l->choices) fgi_choices_change(l->choices, from, label);
}

/* Score and violations of the whole labeling. */
static void recount(fgi_labeling *l) {
    const fgi_model *m = l->model;
    fgi_sum sum = {0};
    l->violations = 0;
    for (int64_t i = 0; i < m->s->n_vars; i++) {
        double x = fgi_unary(m, i)[l->labels[i]];
        if (x == -INFINITY) l->violations++;
        else fgi_sum_add(&sum, x);
    }
    for (int64_t f = 0; f < m->s->n_factors; f++) {
        double x = fgi_factor_score(m, f, l->labels);
        if (x == -INFINITY) l->violations++;
        else fgi_sum_add(&sum, x);
    }
    fgi_sum_add(&sum, m->s->constant);
    l->score = fgi_sum_value(&sum);
    l->operations += m->s->n_vars + m->s->n_factors;
}

void fgi_labeling_assign(fgi_labeling *l, const int32_t *labels) {
    const int64_t n = l->model->s->n_vars;
    for (int64_t i = 0; i < n; i++) fgi_assert(labels[i] >= 0 && labels[i] < l->model->s->cards[i]);
    int64_t changed = 0;
    for (int64_t i = 0; i < n; i++) changed += labels[i] != l->labels[i];
    if (l->assigned && changed <= n / 8) {
        for (int64_t i = 0; i < n; i++) {
            if (labels[i] == l->labels[i]) continue;
            fgi_labeling_flip(l, (int32_t)i, labels[i]);
            fgi_labeling_push(l, (int32_t)i);
        }
        return;
    }
    /* Much is new: forgetting the label scores is cheaper than following every change. */
    for (int64_t i = 0; i < n && l->assigned; i++) {
        if (labels[i] == l->labels[i]) continue;
        record(l, (int32_t)i);
        fgi_labeling_push(l, (int32_t)i);
        for (int64_t k = l->model->s->adj_begin[i]; k < l->model->s->adj_begin[i + 1]; k++) {
            const int32_t *vars = fgi_factor_vars(l->model->s, l->model->s->adj[k]);
            for (int32_t j = 0; j < fgi_factor_arity(l->model->s, l->model->s->adj[k]); j++) {
                l->fresh[vars[j]] = 0;
                fgi_labeling_push(l, vars[j]);
            }
        }
    }
    memcpy(l->labels, labels, (size_t)n * sizeof *labels);
    if (l->choices) fgi_choices_count(l->choices, labels, n);
    if (!l->assigned) {
        memset(l->fresh, 0, (size_t)n * sizeof *l->fresh);
        fgi_labeling_push_all(l);
    }
    recount(l);
    if (!l->assigned) fgi_labeling_mark(l);
    l->assigned = 1;
}

#ifdef FGI_CHECKED
/* What may be lost to rounding on the way: far more than is, and nothing beside what a wrong update would do. */
static double allowed(const fgi_labeling *l, int64_t terms) { return 1e-6 * l->scale * (double)(terms + 1); }

static void check_scores(const fgi_labeling *l, int32_t var, int32_t a) {
    const fgi_structure *s = l->model->s;
    const double unary = fgi_unary(l->model, var)[a];
    double score = unary > -INFINITY ? unary : 0;
    int32_t forbidden = unary == -INFINITY;
    for (int64_t k = s->adj_begin[var]; k < s->adj_begin[var + 1]; k++) {
        const fgi_view v = fgi_factor_view(l->model, s->adj[k]);
        const line r = factor_line(l->model, &v, l->labels, var);
        const double x = line_at(&r, a);
        if (x == -INFINITY) forbidden++;
        else score += x;
    }
    const int64_t at = s->unary_begin[var] + a;
    fgi_assert(fabs(score - l->scores[at]) <= allowed(l, s->adj_begin[var + 1] - s->adj_begin[var]));
    fgi_assert(!l->forbidden || l->forbidden[at] == forbidden);
}

static void check_total(const fgi_labeling *l) {
    const fgi_model *m = l->model;
    int64_t violations = 0;
    fgi_sum sum = {0};
    for (int64_t k = 0; k < m->s->n_vars + m->s->n_factors; k++) {
        const int64_t f = k - m->s->n_vars;
        const double x = f < 0 ? fgi_unary(m, k)[l->labels[k]] : fgi_factor_score(m, f, l->labels);
        violations += x == -INFINITY;
        if (x > -INFINITY) fgi_sum_add(&sum, x);
    }
    if (m->s->constant > -INFINITY) fgi_sum_add(&sum, m->s->constant);
    fgi_assert(l->violations == violations);
    fgi_assert(m->s->constant == -INFINITY ||
        fabs(l->score - fgi_sum_value(&sum)) <= allowed(l, m->s->n_vars + m->s->n_factors) + 1e-9 * fabs(l->score));
}

static void check(const fgi_labeling *l) {
    const fgi_structure *s = l->model->s;
    int64_t queued = 0;
    for (int32_t i = 0; i < s->n_vars; i++) {
        fgi_assert(l->labels[i] >= 0 && l->labels[i] < s->cards[i]);
        queued += l->queued[i];
        for (int32_t a = 0; l->fresh[i] && a < s->cards[i]; a++) check_scores(l, i, a);
    }
    fgi_assert(queued == l->count && l->count <= s->n_vars);
    for (int64_t k = 0; k < l->count; k++) fgi_assert(l->queued[l->queue[(l->head + k) % s->n_vars]]);
    for (int64_t k = 0; k < l->n_changed; k++) {
        const int32_t var = l->changed[k];
        fgi_assert(l->touched[var] == l->mark && l->old[k] >= 0 && l->old[k] < s->cards[var]);
    }
    if (l->assigned) check_total(l);
}
#endif

int fgi_labeling_ascend(fgi_labeling *l, int64_t max_operations) {
    fgi_audit_rarely(check(l));
    const int64_t end = max_operations < INT64_MAX - l->operations ? l->operations + max_operations : INT64_MAX;
    while (l->count > 0) {
        if (l->operations >= end) return 0;
        int32_t var = pop(l);
        int32_t best = fgi_labeling_best_label(l, var);
        l->operations++;
        if (best != l->labels[var]) fgi_labeling_flip(l, var, best);
    }
    return 1;
}
