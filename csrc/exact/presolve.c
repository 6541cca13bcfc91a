/* exact/presolve.c - the driver and the public handle; see fginfer_exact.h and exact/presolve.h. */
#include "exact/presolve.h"
#include <string.h>
#include "base/array.h"

enum { LOOK_STEPS = 100000 }; /* between two looks at the clock: a fraction of a millisecond */

struct fgi_presolve {
    ps_work w;
    fgi_model *original, *reduced;
    int32_t *var_of; /* original variable of each reduced one; NULL: nothing was changed */
    fgi_presolve_info info;
};

fgi_presolve_options fgi_presolve_options_default(void) {
    return (fgi_presolve_options){.reductions = FGI_REDUCE_ALL, .seconds = -1, .least = -INFINITY};
}

/* A few passes over a model of this size: its tables, its unaries, and what every factor costs. */
static double default_work(double size) { return fmin(4e6 + 8 * size, 4e7); }

static int64_t factors_left(const ps_work *w) {
    int64_t n = 0;
    for (int64_t f = 0; f < w->n_factors; f++) n += w->factors[f].arity > 0;
    return n;
}

/* Work is limited, since it may come to nothing. Once it has removed a fourth of the factors, what is left is a model
 * of its own, with a limit of its own: of 200,000 binary variables with 600,000 factors (bench/threads.py) the first
 * limit leaves 352,579 factors, and the second none. */
static int may_go_on(ps_work *w, double size) {
    const double much = 0.75;
    if (w->infeasible || w->failure) return 0;
    if (!w->stop) return 1;
    if (!w->limit_grows || w->work < w->options.work) return 0;
    if (w->options.reductions & FGI_REDUCE_FIX) ps_fix(w); /* cheap, and it may have been cut short */
    const int64_t left = factors_left(w);
    if ((double)left > much * (double)w->factors_before) return 0;
    w->factors_before = left;
    w->options.work = w->work + default_work(size * (double)left / (double)w->m->s->n_factors);
    w->stop = fgi_meter_over(&w->meter);
    ps_spend(w, 0); /* has it been cancelled? */
    return !w->stop;
}

/* Cheap reductions first; the others only when those have come to rest. */
static void reduce(ps_work *w, double size) {
    const int32_t want = w->options.reductions;
    int64_t progress = 1;
    w->factors_before = factors_left(w);
    if (!w->infeasible) ps_harden(w);
    while ((progress || w->stop) && may_go_on(w, size)) {
        progress = 0;
        if (want & FGI_REDUCE_FIX) progress += ps_fix(w);
        if (want & FGI_REDUCE_PROPAGATE && !w->stop) progress += ps_propagate(w);
        if (!progress && want & FGI_REDUCE_PROPAGATE && !w->stop && !w->infeasible) progress += ps_differ(w);
        if (progress) continue;
        progress += ps_compact(w);
        if (want & FGI_REDUCE_MERGE) progress += ps_merge(w);
        if (want & FGI_REDUCE_SPLIT) progress += ps_split(w);
        if (want & FGI_REDUCE_SUBSTITUTE) progress += ps_substitute(w);
        if (want & (FGI_REDUCE_LEAVES | FGI_REDUCE_CHAINS)) progress += ps_eliminate(w);
        if (progress) continue;
        if (want & FGI_REDUCE_DOMINATE) progress += ps_dominate(w);
        if (!progress && want & FGI_REDUCE_ROOF) progress += ps_roof(w);
    }
    w->info.complete = !w->stop && !w->failure;
    if (!w->infeasible && !w->failure && want & FGI_REDUCE_FIX) ps_fix(w); /* cheap, and it may have been cut short */
    ps_compact(w);
}

/* A large model is not rebuilt for next to nothing. */
static int ps_pays(const ps_work *w) {
    const double before = (double)w->m->s->values_begin[w->m->s->n_tables];
    double after = 0;
    if (before < 1e6 || w->n_records * 50 > w->n_vars) return 1;
    for (int64_t f = 0; f < w->n_factors; f++) {
        const ps_factor *x = &w->factors[f];
        if (x->arity && x->kind == FGI_DENSE)
            after += (double)ps_states(w, x) / (x->table >= 0 ? w->uses[x->table] : 1);
    }
    return after < 0.95 * before;
}

static void count_rest(fgi_presolve *p) {
    const fgi_structure *s = p->reduced->s;
    fgi_presolve_info *i = &p->info;
    if (p->var_of || p->w.infeasible) *i = p->w.info; /* else nothing of it is used */
    i->complete = p->w.info.complete;
    i->roof_bound = p->w.info.roof_bound;
    i->infeasible = p->w.infeasible;
    i->work = p->w.work;
    i->error = p->var_of ? ps_rounding(&p->w) : 0; /* as it was: nothing was rounded */
    i->variables = s->n_vars;
    i->factors = s->n_factors;
    for (int64_t k = 0; k < s->unary_begin[s->n_vars]; k++) i->labels += p->reduced->u->values[k] > -INFINITY;
}

fgi_rc fgi_presolve_create(const fgi_model *m, const fgi_presolve_options *o, fgi_presolve **out, fgi_error *err) {
    const double start = fgi_clock();
    if (o->reductions < 0 || o->reductions > FGI_REDUCE_ALL)
        return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "unknown reductions %d", o->reductions);
    if (!(o->least < INFINITY)) return fgi_fail(err, FGI_BAD_ARGUMENT, -1, "least must be finite or -inf");
    fgi_presolve *p = fgi_calloc(1, sizeof *p);
    if (!p) return fgi_no_memory(err);
    ps_work *w = &p->w;
    w->options = *o;
    const double size = (double)m->s->values_begin[m->s->n_tables] + (double)m->s->unary_begin[m->s->n_vars] +
        4.0 * (double)m->s->n_factors;
    w->limit_grows = !(w->options.work > 0);
    if (w->limit_grows) w->options.work = default_work(size);
    if (w->options.table_limit <= 0) w->options.table_limit = 4096;
    w->meter = (fgi_meter){LOOK_STEPS, 0, o->seconds < 0 ? INFINITY : start + o->seconds};
    w->info.roof_bound = INFINITY;
    p->original = fgi_model_snapshot(m);
    fgi_rc rc = p->original ? FGI_OK : FGI_NO_MEMORY;
    /* Opening takes a pass over the factors; where even that is too much, the model stays as it is. */
    const int opened = !rc && 8.0 * (double)m->s->n_factors <= w->options.work;
    if (opened) {
        if (!(rc = ps_open(w, p->original))) reduce(w, size);
        if (!rc) rc = w->failure;
    }
    if (!rc && opened && w->touched && !w->infeasible && ps_pays(w)) rc = ps_build(w, &p->reduced, &p->var_of, err);
    else if (!rc && !(p->reduced = fgi_model_snapshot(p->original))) rc = FGI_NO_MEMORY;
    if (rc) {
        fgi_presolve_free(p);
        return fgi_fail(err, rc, -1, rc == FGI_NO_MEMORY ? "out of memory" : "the reduced model is malformed");
    }
    count_rest(p);
    p->info.seconds = fgi_clock() - start;
    *out = p;
    return FGI_OK;
}

const fgi_model *fgi_presolve_model(const fgi_presolve *p) { return p->reduced; }

void fgi_presolve_info_get(const fgi_presolve *p, fgi_presolve_info *info) { *info = p->info; }

void fgi_presolve_free(fgi_presolve *p) {
    if (!p) return;
    ps_close(&p->w);
    fgi_model_free(p->original);
    fgi_model_free(p->reduced);
    free(p->var_of);
    free(p);
}

/* ---- the way back ------------------------------------------------------------------------------------------- */

/* Index of an original label in a label map; maps ascend. -1: that label was removed. */
static int32_t label_index(const int32_t *map, int32_t card, int32_t label) {
    return map ? (int32_t)fgi_place_of(map, card, label) : label;
}

/* Adds the row of a frozen factor at the labels of its other variables to the scores of the variable's labels. */
static void add_row(
    const fgi_model *m, const ps_frozen *z, int32_t var, int32_t card, const int32_t *labels, double *scores) {
    const ps_factor *f = &z->f;
    if (f->kind != FGI_DENSE) {
        const int slot = f->vars[1] == var;
        const int32_t other = label_index(z->labels[1 - slot], z->cards[1 - slot], labels[f->vars[1 - slot]]);
        for (int32_t a = 0; a < card; a++)
            scores[a] += f->weight *
                fgi_implicit_at(f->kind, m->s->params[2 * f->table], m->s->params[2 * f->table + 1], a, other);
        return;
    }
    int64_t base = 0, stride = 1, mine = 1;
    for (int32_t k = f->arity; k-- > 0;) {
        const int32_t l = f->transposed ? 1 - k : k;
        if (f->vars[l] == var) mine = stride;
        else base += stride * label_index(z->labels[l], z->cards[l], labels[f->vars[l]]);
        stride *= z->cards[l];
    }
    for (int32_t a = 0; a < card; a++) scores[a] += f->weight * f->values[base + a * mine];
}

fgi_rc fgi_presolve_expand(const fgi_presolve *p, const int32_t *reduced, int32_t *labels, fgi_error *err) {
    const ps_work *w = &p->w;
    const fgi_structure *s = p->reduced->s;
    for (int64_t i = 0; i < s->n_vars; i++)
        if (reduced[i] < 0 || reduced[i] >= s->cards[i])
            return fgi_fail(err, FGI_BAD_ARGUMENT, i, "label %d of variable %lld is not in 0..%d", reduced[i],
                (long long)i, s->cards[i] - 1);
    if (!p->var_of) {
        if (s->n_vars) memcpy(labels, reduced, (size_t)s->n_vars * sizeof *labels);
        return FGI_OK;
    }
    for (int64_t i = 0; i < s->n_vars; i++) {
        const ps_var *v = &w->vars[p->var_of[i]];
        labels[p->var_of[i]] = v->label ? v->label[reduced[i]] : reduced[i];
    }
    double *scores = fgi_alloc(p->original->s->max_card, sizeof(double));
    if (!scores) return fgi_no_memory(err);
    for (int64_t k = w->n_records; k-- > 0;) {
        const ps_record *r = &w->records[k];
        memcpy(scores, r->unary, (size_t)r->card * sizeof(double));
        for (int32_t f = 0; f < r->n_factors; f++)
            add_row(p->original, &r->factors[f], r->var, r->card, labels, scores);
        int32_t best = 0;
        for (int32_t a = 1; a < r->card; a++)
            if (scores[a] > scores[best]) best = a;
        labels[r->var] = r->label ? r->label[best] : best;
    }
    free(scores);
    return FGI_OK;
}

void fgi_presolve_restrict(const fgi_presolve *p, const int32_t *labels, int32_t *reduced) {
    for (int64_t i = 0; i < p->reduced->s->n_vars; i++) {
        const int32_t var = p->var_of ? p->var_of[i] : (int32_t)i, card = p->reduced->s->cards[i];
        const double *u = fgi_unary(p->reduced, i);
        reduced[i] = p->var_of ? label_index(p->w.vars[var].label, card, labels[var]) : labels[var];
        if (reduced[i] >= 0 && u[reduced[i]] > -INFINITY) continue;
        reduced[i] = 0;
        for (int32_t a = 1; a < card; a++)
            if (u[a] > u[reduced[i]]) reduced[i] = a;
    }
}
