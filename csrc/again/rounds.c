/* again/rounds.c - the work of a keeper: regions around what does not agree, see again/keeper.h. */
#include <string.h>
#include "again/keeper.h"
#include "base/exact_sum.h"
#include "base/util.h"

enum {
    DENSE_PART = 1024, /* where more than a part of all variables is active, they are listed by a pass over all */
    MOST_PART = 16,    /* where more than a part of all variables is dirty, those that agree are dropped at first */
    FEW = 32,          /* active variables that are put in order by insertion (chosen) */
    ROUNDS_A_STEP = 5, /* sweeps over a region before the neighbourhoods get wider */
    STEPS_A_SUM = 2    /* steps without a sum, while something does not agree (chosen) */
};

static const double ROUNDING = 1e-13; /* a gain below this share of all scores of a set may be rounding (chosen) */

/* ---- sums ---------------------------------------------------------------------------------------------------- */

/* All values once more, without rounding. */
static double exact_value(const fgi_keeper *s) {
    fgi_exact_sum sum = {{0}, 0};
    fgi_exact_sum_add(&sum, s->constant);
    for (int64_t k = 0; k < s->n_vars; k++) fgi_exact_sum_add(&sum, s->vars.at[k].value);
    for (int64_t k = 0; k < s->n_factors; k++) fgi_exact_sum_add(&sum, s->factors.at[k].value);
    return fgi_exact_sum_value(&sum);
}

/* Score, bound and unit of all terms go to info; returns their gap, and how large a proof allows it to be. */
static double sum_terms(fgi_keeper *s, double *allowed) {
    fgi_term_sums sums;
    fgi_term_sums_begin(&sums, s->constant);
    fgi_terms_add_up(&s->vars, &sums);
    fgi_terms_add_up(&s->factors, &sums);
    const double n = (double)(s->n_vars + s->n_factors + 1), error = n * 0x1p-50 * sums.lost;
    double score = fgi_sum_value(&sums.value), above = score;
    if (score > -INFINITY && sums.lost > 0) {
        if (!fgi_sum_rounds_right(&sums.value, error)) score = exact_value(s);
        above = score == 0 ? score : nextafter(score, INFINITY);
    }
    const double bound = fgi_sum_value(&sums.top);
    s->info.score = score;
    s->info.unit = sums.unit < INFINITY ? sums.unit : 0;
    s->info.bound = fgi_larger(bound + fgi_sum_error((int64_t)n, sums.magnitude), above);
    *allowed = score > -INFINITY ? fgi_proof_tolerance(score, s->info.unit) : 0;
    return score > -INFINITY ? s->info.bound - score : INFINITY;
}

/* ---- labels -------------------------------------------------------------------------------------------------- */

static void take_label(fgi_keeper *s, int32_t i) {
    s->labels[i] = s->trial[i];
    s->vars.at[i].value = fgi_unary(s->m, i)[s->labels[i]];
    fgi_terms_touch(&s->vars, i, FGI_TERM_VALUE);
}

/* What labels gain; forbidden: how many more terms are -INFINITY. */
typedef struct gain_of {
    double gain, magnitude;
    int64_t forbidden;
} gain_of;

static void add_gain(gain_of *g, double now, double before) {
    g->forbidden += (now == -INFINITY) - (before == -INFINITY);
    if (now > -INFINITY && before > -INFINITY) g->gain += now - before;
    g->magnitude += before > -INFINITY ? fabs(before) : 0;
}

/* One set of moved variables that factors join, from `list[0]` on: listed, and taken if that raises the score. */
static void settle_one(fgi_keeper *s, fgi_array *joined) {
    gain_of g = {0};
    for (int64_t at = 0; at < joined->n; at++) {
        const int32_t i = ((const int32_t *)joined->at)[at];
        const double *theta = fgi_unary(s->m, i);
        add_gain(&g, theta[s->trial[i]], theta[s->labels[i]]);
        fgi_keeper_walk w = fgi_keeper_walk_begin(s, i);
        for (int32_t f; (f = fgi_keeper_walk_next(s, i, &w)) >= 0;) {
            const fgi_view v = fgi_keeper_view(s, f);
            int first = 1; /* the first moved variable of a factor counts it */
            for (int32_t q = 0; q < v.arity; q++) {
                const int32_t j = v.vars[q];
                if (s->trial[j] == s->labels[j]) continue;
                first &= j >= i;
                if (s->is_active[j] != 1) continue;
                s->is_active[j] = 2; /* listed */
                fgi_array_push_i32(joined, j);
            }
            if (!first) continue;
            add_gain(&g, fgi_keeper_score(s, &v, s->trial), s->factors.at[f].value);
        }
    }
    const int better = g.forbidden < 0 || (g.forbidden == 0 && g.gain > ROUNDING * g.magnitude);
    for (int64_t at = 0; at < joined->n; at++) {
        const int32_t i = ((const int32_t *)joined->at)[at];
        s->is_active[i] = 1;
        if (better) take_label(s, i);
        else s->trial[i] = s->labels[i];
    }
    for (int64_t at = 0; better && at < joined->n; at++) {
        const int32_t i = ((const int32_t *)joined->at)[at];
        fgi_keeper_walk w = fgi_keeper_walk_begin(s, i);
        for (int32_t f; (f = fgi_keeper_walk_next(s, i, &w)) >= 0;) {
            const fgi_view v = fgi_keeper_view(s, f);
            s->factors.at[f].value = fgi_keeper_score(s, &v, s->labels);
            fgi_terms_touch(&s->factors, f, FGI_TERM_VALUE);
        }
    }
}

/* Sets that no factor joins gain or lose by themselves. Only variables of the region have moved. */
static void settle_labels(fgi_keeper *s) {
    fgi_array *joined = &s->joined;
    for (int64_t k = 0; k < s->moved.n; k++) {
        const int32_t i = ((const int32_t *)s->moved.at)[k];
        if (s->trial[i] == s->labels[i]) continue; /* it was in a set before */
        joined->n = 0;
        s->is_active[i] = 2;
        fgi_array_push_i32(joined, i);
        settle_one(s, joined);
    }
    s->moved.n = 0;
}

/* ---- regions ------------------------------------------------------------------------------------------------- */

static int ascending(const void *a, const void *b) {
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

static void activate(fgi_keeper *s, int32_t i) {
    if (s->is_active[i]) return;
    s->is_active[i] = 1;
    ((int32_t *)s->active.at)[s->active.n++] = i;
}

/* The active variables in their order: by insertion where there are few, by a pass over all marks where there are
 * many. */
static void order_active(fgi_keeper *s) {
    int32_t *list = s->active.at;
    if (s->active.n < FEW) {
        for (int64_t k = 1; k < s->active.n; k++) {
            const int32_t i = list[k];
            int64_t at = k;
            for (; at > 0 && list[at - 1] > i; at--) list[at] = list[at - 1];
            list[at] = i;
        }
        return;
    }
    if (s->active.n < s->n_vars / DENSE_PART) {
        qsort(list, (size_t)s->active.n, sizeof *list, ascending);
        return;
    }
    int64_t n = 0, i = 0;
    for (uint64_t eight; i + (int64_t)sizeof eight <= s->n_vars; i += sizeof eight) {
        memcpy(&eight, s->is_active + i, sizeof eight);
        for (int64_t k = i; eight && k < i + (int64_t)sizeof eight; k++)
            if (s->is_active[k]) list[n++] = (int32_t)k;
    }
    for (; i < s->n_vars; i++)
        if (s->is_active[i]) list[n++] = (int32_t)i;
}

/* All variables within the radius of those that are active become active, too. */
static void widen(fgi_keeper *s, int32_t radius) {
    const int32_t *list = s->active.at;
    int64_t begin = 0;
    for (int32_t r = 0; r < radius; r++) {
        const int64_t end = s->active.n;
        for (; begin < end; begin++) {
            const int32_t i = list[begin];
            fgi_keeper_walk w = fgi_keeper_walk_begin(s, i);
            for (int32_t f; (f = fgi_keeper_walk_next(s, i, &w)) >= 0;) {
                const fgi_view v = fgi_keeper_view(s, f);
                for (int32_t q = 0; q < v.arity; q++) activate(s, v.vars[q]);
            }
        }
    }
}

/* A variable that waits is one no longer, and becomes active. */
static void take_waiting(fgi_keeper *s, int32_t i) {
    s->is_dirty[i] = 0;
    activate(s, i);
}

/* Where variable i, which waits, and its factors agree with the labels it waits no longer: 0. Else it becomes active,
 * and with it the variables that wait beside it, and beside those. */
static int begin_region(fgi_keeper *s, int32_t i) {
    int agrees = fgi_keeper_variable_slack(s, i) <= s->slack;
    fgi_keeper_walk w = fgi_keeper_walk_begin(s, i);
    for (int32_t f; (f = fgi_keeper_walk_next(s, i, &w)) >= 0;) {
        const fgi_view v = fgi_keeper_view(s, f);
        if (fgi_keeper_factor_slack(s, f, &v) <= s->slack) continue;
        agrees = 0;
        for (int32_t q = 0; q < v.arity; q++) activate(s, v.vars[q]);
    }
    s->is_dirty[i] = 0;
    if (agrees) return 0;
    activate(s, i);
    for (int64_t at = 0; at < s->active.n; at++) {
        const int32_t j = ((const int32_t *)s->active.at)[at];
        if (s->is_dirty[j] == FGI_KEEPER_WAITS) s->is_dirty[j] = 0;
        fgi_keeper_walk next = fgi_keeper_walk_begin(s, j);
        for (int32_t f; (f = fgi_keeper_walk_next(s, j, &next)) >= 0;) {
            const fgi_view v = fgi_keeper_view(s, f);
            for (int32_t q = 0; q < v.arity; q++)
                if (s->is_dirty[v.vars[q]] == FGI_KEEPER_WAITS) take_waiting(s, v.vars[q]);
        }
    }
    return 1;
}

/* One sweep forwards and one back over the active variables and their neighbourhood, which are none afterwards. */
static int sweep_region(fgi_keeper *s, int32_t radius) {
    const int32_t *list = s->active.at;
    int alive = 1;
    widen(s, radius);
    order_active(s);
    const int64_t n = s->active.n;
    for (int64_t k = 0; alive && k < n; k++) alive = fgi_keeper_visit(s, list[k], 1);
    settle_labels(s);
    for (int64_t k = n; alive && k-- > 0;) alive = fgi_keeper_visit(s, list[k], 0);
    for (int64_t k = 0; k < n; k++) s->is_active[list[k]] = 0;
    s->active.n = 0;
    s->info.rounds++;
    return alive;
}

/* Sweeps over a region while some of it does not agree; what is left then is dirty. A region is worked on while its
 * numbers are in the cache. */
static int work_on_region(fgi_keeper *s, int32_t radius) {
    const int64_t others = s->dirty.n;
    for (int k = 0; k < ROUNDS_A_STEP; k++) {
        const int32_t *dirty = s->dirty.at;
        for (int64_t at = others; at < s->dirty.n; at++) take_waiting(s, dirty[at]);
        if (k > 0 && s->dirty.n == others) return 1;
        s->dirty.n = others;
        if (!sweep_region(s, radius)) return 0;
    }
    return 1;
}

/* Drops from `dirty` what agrees: where everything is dirty hardly anything need be worked on. */
static void look_at_dirty(fgi_keeper *s) {
    const int64_t n = s->dirty.n;
    int32_t *list = s->dirty.at;
    s->dirty.n = 0;
    for (int64_t k = 0; k < n; k++) {
        const int32_t i = list[k];
        fgi_keeper_walk w = fgi_keeper_walk_begin(s, i);
        int agrees = fgi_keeper_variable_slack(s, i) <= s->slack;
        for (int32_t f; agrees && (f = fgi_keeper_walk_next(s, i, &w)) >= 0;) {
            const fgi_view v = fgi_keeper_view(s, f);
            agrees = fgi_keeper_factor_slack(s, f, &v) <= s->slack;
        }
        if (agrees) s->is_dirty[i] = 0;
        else list[s->dirty.n++] = i;
    }
}

/* Every dirty variable has its turn; afterwards those are dirty that are left. 0: a variable has no label left. */
static int one_step(fgi_keeper *s, int32_t radius, int64_t end) {
    const fgi_array waiting = s->dirty;
    s->dirty = s->waiting;
    s->waiting = waiting;
    s->dirty.n = 0;
    const int32_t *list = waiting.at;
    int alive = 1;
    for (int64_t k = 0; k < waiting.n; k++) s->is_dirty[list[k]] = FGI_KEEPER_WAITS;
    for (int64_t k = 0; k < waiting.n; k++) {
        fgi_keeper_fetch(s, list, waiting.n, k);
        if (s->is_dirty[list[k]] != FGI_KEEPER_WAITS) continue;
        if (!alive || s->info.work >= end) {
            s->is_dirty[list[k]] = 0;
            fgi_keeper_put_dirty(s, list[k]);
        } else if (begin_region(s, list[k])) alive = work_on_region(s, radius);
    }
    s->waiting.n = 0;
    return alive;
}

fgi_rc fgi_keeper_run(fgi_keeper *s, double gap, int64_t work, fgi_keeper_info *info) {
    const int64_t end = s->info.work + work;
    double allowed = fgi_proof_tolerance(s->info.score, s->info.unit), distance = INFINITY;
    /* While terms do not agree the gap is not closed: sums of all terms would be made for nothing. */
    int looked = 0, is_due = s->info.rounds == 0 || s->dirty.n == 0 || gap > 0 || work <= 0;
    s->info.status = FGI_KEEPER_RUNNING;
    while (s->info.status == FGI_KEEPER_RUNNING) {
        if (is_due) distance = sum_terms(s, &allowed);
        const int has_score = s->info.score > -INFINITY;
        const double enough = has_score ? fgi_larger(allowed, gap * fgi_larger(fabs(s->info.score), s->info.unit)) : 0;
        s->slack = 0.25 * allowed / (double)(s->dirty.n + 1);
        if (is_due && distance <= enough) s->info.status = FGI_KEEPER_DONE;
        else if (is_due && (s->info.bound == -INFINITY || s->dirty.n == 0)) s->info.status = FGI_KEEPER_STUCK;
        else if (s->info.work >= end) break;
        else if (!looked && s->dirty.n > s->n_vars / MOST_PART) look_at_dirty(s), looked = 1, is_due = s->dirty.n == 0;
        else {
            if (!one_step(s, s->radius, end)) s->info.status = FGI_KEEPER_STUCK, sum_terms(s, &allowed);
            is_due = s->dirty.n == 0 || gap > 0 || s->info.work >= end || s->radius % STEPS_A_SUM == 0;
            s->radius++;
        }
    }
    if (info) *info = s->info;
    return FGI_OK;
}
