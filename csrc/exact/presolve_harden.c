/* exact/presolve_harden.c - penalties that cannot pay become hard constraints.
 *
 * With a labeling in hand whose score is `least`, no labeling worth having loses more than
 *
 *     room = (sum of the maxima of all factors) - least
 *
 * in one factor. A score that lies much further below the best of its factor is a way to write "forbidden", and a bad
 * one: sums with it lose the digits of everything else. Scores that lie a little further below stay: nothing is gained
 * by many more hard constraints, and searches are hampered by them. */
#include "exact/presolve.h"

static const double FAR = 1e3; /* times the room: a penalty costs three digits or more */

/* The best score of a factor as it is in the original; what has been removed since is no harm. */
static double factor_best(const ps_work *w, const ps_factor *f) {
    if (f->table >= 0) return f->weight * w->m->t->facts[f->table].max;
    return fgi_max_of(f->values, ps_states(w, f));
}

/* The most that any factor of a labeling worth having may lose; INFINITY where nothing is known. */
static double room_of(const ps_work *w) {
    fgi_sum sum = w->constant;
    double magnitude = fabs(w->options.least);
    for (int32_t i = 0; i < w->n_vars; i++) {
        if (w->vars[i].gone) continue;
        const double best = fgi_max_of(w->vars[i].unary, w->vars[i].card);
        fgi_sum_add(&sum, best);
        magnitude += fabs(best);
    }
    for (int64_t f = 0; f < w->n_factors; f++) {
        if (!w->factors[f].arity) continue;
        const double best = factor_best(w, &w->factors[f]);
        fgi_sum_add(&sum, best);
        magnitude += fabs(best);
    }
    const double bound = fgi_sum_value(&sum);
    if (!(w->options.least > -INFINITY) || !(bound > -INFINITY)) return INFINITY;
    return fgi_larger(bound - w->options.least, 0) + 1e-12 * magnitude;
}

/* Rewrites one factor; returns how many scores were made hard. */
static int64_t harden_factor(ps_work *w, int64_t at, double far) {
    ps_factor *f = &w->factors[at];
    const double best = factor_best(w, f);
    if (f->table >= 0) {
        const fgi_table_facts *facts = &w->m->t->facts[f->table];
        if (!(best - f->weight * facts->min_finite > far)) return 0;
    }
    const int64_t states = ps_states(w, f);
    const int unshared = f->table < 0 || (w->uses[f->table] == 1 && f->kind == FGI_DENSE);
    /* Entries of a shared table that may be copied for one factor, whatever others take: 32 KB, chosen by hand. */
    enum { SMALL = 4096 };
    if (!unshared && states > SMALL && (double)w->own_entries + (double)states > 1 << 22) return 0;
    double *values = ps_alloc(w, states, sizeof(double));
    if (!values) return 0;
    ps_expand_table(w, f, values);
    ps_spend(w, 2.0 * (double)states);
    int64_t count = 0;
    for (int64_t k = 0; k < states; k++)
        if (values[k] > -INFINITY && best - values[k] > far) {
            values[k] = -INFINITY;
            count++;
        }
    if (count) ps_replace_table(w, at, values, f->depth);
    return count;
}

int64_t ps_harden(ps_work *w) {
    const double far = FAR * room_of(w);
    int64_t count = 0;
    if (!(far < INFINITY)) return 0;
    ps_spend(w, 2.0 * (double)w->n_factors);
    for (int32_t i = 0; i < w->n_vars && !w->infeasible; i++) {
        const ps_var *v = &w->vars[i];
        const double best = fgi_max_of(v->unary, v->card);
        const int64_t before = count;
        for (int32_t a = 0; a < v->card; a++)
            if (v->unary[a] > -INFINITY && best - v->unary[a] > far) {
                ps_remove_label(w, i, a);
                count++;
            }
        if (count > before) ps_wake_var(w, i);
    }
    for (int64_t f = 0; f < w->n_factors && !w->stop && !w->infeasible; f++)
        if (w->factors[f].arity) count += harden_factor(w, f, far);
    w->info.penalties += count;
    return count;
}
