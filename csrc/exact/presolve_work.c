/* exact/presolve_work.c - the working model: memory, factors, labels, compaction, and the reduced model at the end. See
 * exact/presolve.h. */
#include <string.h>
#include "exact/presolve.h"
#include "model/draft.h"

/* ---- memory and limits -------------------------------------------------------------------------------------- */

enum { CHUNK = 1 << 18 }; /* bytes asked of the system at once: small tables come by the thousand */

void *ps_alloc(ps_work *w, int64_t n, size_t size) {
    if (n < 0 || (uint64_t)n > (uint64_t)(PTRDIFF_MAX - CHUNK) / size) {
        w->failure = FGI_NO_MEMORY;
        return NULL;
    }
    int64_t bytes = ((int64_t)((size_t)n * size) + 15) & ~(int64_t)15;
    if (bytes > w->chunk_left) {
        const int64_t head = 16, room = bytes > CHUNK ? bytes : CHUNK;
        ps_chunk *chunk = fgi_alloc(room + head, 1);
        if (!chunk) {
            w->failure = FGI_NO_MEMORY;
            return NULL;
        }
        chunk->next = w->chunks;
        w->chunks = chunk;
        if (bytes > CHUNK) return (char *)chunk + head; /* a large block of its own; the open chunk stays open */
        w->chunk_at = (char *)chunk + head;
        w->chunk_left = room;
    }
    void *p = w->chunk_at;
    w->chunk_at += bytes;
    w->chunk_left -= bytes;
    return p;
}

double *ps_scratch(ps_work *w, int64_t n) {
    if (fgi_grow(&w->scratch, &w->scratch_capacity, n, sizeof(double))) return w->scratch;
    w->failure = FGI_NO_MEMORY;
    return NULL;
}

void ps_spend(ps_work *w, double steps) {
    w->work += steps;
    if (w->work >= w->options.work || w->failure) w->stop = 1;
    if (fgi_meter_spend(&w->meter, (int64_t)steps)) w->stop = 1;
    if (w->options.cancelled && __atomic_load_n(w->options.cancelled, __ATOMIC_RELAXED)) w->stop = 1;
}

/* ---- opening and closing ------------------------------------------------------------------------------------ */

/* The magnitudes of all scores of a labeling above `least`: twice the positive ones and its own; without such a score,
 * of any labeling. */
static double magnitude_of(const fgi_model *m, double least) {
    const fgi_structure *s = m->s;
    double best = 0, all = 0;
    for (int64_t i = 0; i < s->n_vars; i++) {
        double high = 0, largest = 0;
        for (int32_t a = 0; a < s->cards[i]; a++) {
            const double u = fgi_unary(m, i)[a];
            high = fgi_larger(high, u);
            if (u > -INFINITY) largest = fgi_larger(largest, fabs(u));
        }
        best += high;
        all += largest;
    }
    for (int64_t f = 0; f < s->n_factors; f++) {
        const fgi_table_facts *t = &m->t->facts[s->factor_table[f]];
        if (t->max == -INFINITY) continue;
        best += fgi_factor_weight(s, f) * fgi_larger(t->max, 0);
        all += fgi_factor_weight(s, f) * fgi_larger(fabs(t->max), fabs(t->min_finite));
    }
    if (s->constant > -INFINITY) best += fabs(s->constant), all += fabs(s->constant);
    return least > -INFINITY ? fgi_smaller(all, 2 * best + fgi_larger(best, fabs(least))) : all;
}

static void open_vars(ps_work *w, const fgi_structure *s, double *unary, int32_t *adj) {
    for (int32_t i = 0; i < w->n_vars; i++) {
        ps_var *v = &w->vars[i];
        const int32_t degree = (int32_t)(s->adj_begin[i + 1] - s->adj_begin[i]);
        *v = (ps_var){.unary = unary + s->unary_begin[i],
            .factors = adj + s->adj_begin[i],
            .card = s->cards[i],
            .n_factors = degree,
            .room = degree,
            .todo = PS_ELIMINATE | PS_DOMINATE};
        for (int32_t a = 0; a < v->card; a++) v->live += v->unary[a] > -INFINITY;
        if (v->live == 1) w->fix_queue[w->n_fix++] = i;
        if (v->live == 0) w->infeasible = 1;
    }
}

static void open_factors(ps_work *w, const fgi_model *m) {
    const fgi_structure *s = m->s;
    for (int64_t f = 0; f < s->n_factors; f++) {
        const int32_t t = s->factor_table[f];
        const fgi_view v = fgi_factor_view(m, f);
        w->factors[f] = (ps_factor){.vars = s->vars + fgi_factor_begin(s, f),
            .values = v.kind == FGI_DENSE ? v.values : NULL,
            .weight = v.weight,
            .table = t,
            .arity = (int16_t)v.arity,
            .kind = (uint8_t)v.kind,
            .transposed = (uint8_t)v.transposed,
            .forbidden = m->t->facts[t].n_forbidden > 0,
            .todo = PS_ALL};
        w->uses[t]++;
    }
    w->n_factors = s->n_factors;
}

fgi_rc ps_open(ps_work *w, const fgi_model *m) {
    const fgi_structure *s = m->s;
    w->m = m;
    w->n_vars = (int32_t)s->n_vars;
    fgi_sum_add(&w->constant, s->constant);
    if (s->constant == -INFINITY) w->infeasible = 1;
    w->vars = ps_alloc(w, s->n_vars, sizeof *w->vars);
    double *unary = ps_alloc(w, s->unary_begin[s->n_vars], sizeof(double));
    int32_t *adj = ps_alloc(w, s->adj_begin[s->n_vars], sizeof(int32_t));
    w->uses = ps_alloc(w, s->n_tables, sizeof(int32_t));
    w->supported = ps_alloc(w, s->n_tables, 1);
    w->fix_queue = ps_alloc(w, s->n_vars, sizeof(int32_t));
    if (!w->vars || !unary || !adj || !w->uses || !w->supported || !w->fix_queue ||
        !fgi_grow(&w->factors, &w->factor_capacity, s->n_factors, sizeof *w->factors))
        return FGI_NO_MEMORY;
    if (s->n_vars) memcpy(unary, m->u->values, (size_t)s->unary_begin[s->n_vars] * sizeof(double));
    if (s->n_factors) memcpy(adj, s->adj, (size_t)s->adj_begin[s->n_vars] * sizeof(int32_t));
    memset(w->uses, 0, (size_t)s->n_tables * sizeof(int32_t));
    memset(w->supported, 0, (size_t)s->n_tables);
    open_vars(w, s, unary, adj);
    open_factors(w, m);
    w->magnitude = magnitude_of(m, w->options.least);
    ps_spend(w, 8.0 * (double)s->n_factors + (double)s->unary_begin[s->n_vars]);
    return FGI_OK;
}

void ps_close(ps_work *w) {
    while (w->chunks) {
        ps_chunk *next = w->chunks->next;
        free(w->chunks);
        w->chunks = next;
    }
    fgi_bucket_free(&w->bucket);
    free(w->factors);
    free(w->records);
    free(w->scratch);
    free(w->hash);
}

/* ---- factors ------------------------------------------------------------------------------------------------ */

int64_t ps_states(const ps_work *w, const ps_factor *f) {
    int64_t n = 1;
    for (int32_t k = 0; k < f->arity; k++) n *= w->vars[f->vars[k]].card;
    return n;
}

void ps_strides(const ps_work *w, const ps_factor *f, int64_t *strides) {
    if (f->transposed) {
        strides[0] = 1;
        strides[1] = w->vars[f->vars[0]].card;
        return;
    }
    int64_t stride = 1;
    for (int32_t k = f->arity; k-- > 0; stride *= w->vars[f->vars[k]].card) strides[k] = stride;
}

int ps_slot(const ps_factor *f, int32_t var) {
    for (int32_t k = 0; k < f->arity; k++)
        if (f->vars[k] == var) return k;
    return -1;
}

fgi_view ps_view(const ps_work *w, const ps_factor *f) {
    fgi_view v = {.kind = f->kind,
        .arity = f->arity,
        .table = f->table,
        .transposed = f->transposed,
        .vars = f->vars,
        .values = f->values,
        .weight = f->weight,
        .rows = w->vars[f->vars[0]].card,
        .cols = f->arity > 1 ? w->vars[f->vars[1]].card : 1};
    if (f->kind != FGI_DENSE) {
        v.p0 = w->m->s->params[2 * f->table];
        v.p1 = w->m->s->params[2 * f->table + 1];
    }
    return v;
}

double ps_at2(const ps_work *w, const ps_factor *f, int32_t a, int32_t b) {
    const fgi_view v = ps_view(w, f);
    return fgi_view_at2(&v, a, b);
}

void ps_expand_table(const ps_work *w, const ps_factor *f, double *out) {
    if (f->arity == 2) {
        const fgi_view v = ps_view(w, f);
        for (int32_t a = 0; a < v.rows; a++)
            for (int32_t b = 0; b < v.cols; b++) *out++ = fgi_view_at2(&v, a, b);
        return;
    }
    const int64_t n = ps_states(w, f);
    for (int64_t k = 0; k < n; k++) out[k] = f->weight * f->values[k];
}

int32_t ps_tidy(ps_work *w, int32_t var) {
    ps_var *v = &w->vars[var];
    int32_t n = 0;
    for (int32_t k = 0; k < v->n_factors; k++)
        if (ps_slot(&w->factors[v->factors[k]], var) >= 0) v->factors[n++] = v->factors[k];
    v->n_factors = n;
    return n;
}

static void drop_table(ps_work *w, ps_factor *f) {
    if (f->table >= 0) w->uses[f->table]--;
    f->table = -1;
}

void ps_kill(ps_work *w, int64_t f) {
    w->touched = 1;
    drop_table(w, &w->factors[f]);
    w->factors[f].arity = 0;
}

static int attach(ps_work *w, int32_t var, int32_t f) {
    ps_var *v = &w->vars[var];
    if (v->n_factors == v->room) ps_tidy(w, var);
    if (v->n_factors == v->room) {
        int32_t room = 2 * v->room + 4, *list = ps_alloc(w, room, sizeof(int32_t));
        if (!list) return 0;
        memcpy(list, v->factors, (size_t)v->n_factors * sizeof(int32_t));
        v->factors = list;
        v->room = room;
    }
    v->factors[v->n_factors++] = f;
    return 1;
}

static int any_forbidden(const double *values, int64_t n) {
    for (int64_t k = 0; k < n; k++)
        if (values[k] == -INFINITY) return 1;
    return 0;
}

static void forbid_all(ps_work *w) { w->infeasible = w->stop = 1; }

static int32_t deepened(ps_work *w, int32_t depth) {
    if (depth > w->depth) w->depth = depth;
    return depth;
}

double ps_rounding(const ps_work *w) {
    const double constant = fgi_sum_value(&w->constant);
    return w->error + 0x1p-53 * (w->depth * w->magnitude + (constant > -INFINITY ? 2 * fabs(constant) : 0));
}

int ps_accept(ps_work *w, double error) {
    enum { FEW = 64 }; /* rounding errors of the model's magnitude: 7e-15 of it */
    if (!(error <= FEW * 0x1p-53 * w->magnitude)) return 0;
    w->error += error;
    return 1;
}

void ps_add_factor(ps_work *w, int32_t *vars, int32_t arity, const double *values, int32_t depth) {
    w->touched = 1;
    if (arity == 0) {
        if (values[0] == -INFINITY) forbid_all(w);
        fgi_sum_add(&w->constant, values[0]);
        return;
    }
    if (arity == 1) {
        ps_add_unary(w, vars[0], values, depth);
        return;
    }
    const int64_t at = w->n_factors;
    if (at >= INT32_MAX || !fgi_grow(&w->factors, &w->factor_capacity, at + 1, sizeof *w->factors)) {
        w->failure = FGI_NO_MEMORY;
        w->stop = 1;
        return;
    }
    ps_factor *f = &w->factors[at];
    *f = (ps_factor){.vars = vars,
        .values = values,
        .weight = 1,
        .table = -1,
        .arity = (int16_t)arity,
        .kind = FGI_DENSE,
        .todo = PS_ALL,
        .depth = deepened(w, depth)};
    const int64_t n = ps_states(w, f);
    f->forbidden = (uint8_t)any_forbidden(values, n);
    w->own_entries += n;
    w->n_factors++;
    for (int32_t k = 0; k < arity; k++) {
        if (!attach(w, vars[k], (int32_t)at)) return;
        w->vars[vars[k]].todo |= PS_ELIMINATE | PS_DOMINATE;
    }
}

void ps_replace_table(ps_work *w, int64_t at, const double *values, int32_t depth) {
    ps_factor *f = &w->factors[at];
    f->depth = deepened(w, depth);
    w->touched = 1;
    drop_table(w, f);
    f->values = values;
    f->weight = 1;
    f->kind = FGI_DENSE;
    f->transposed = 0;
    const int64_t n = ps_states(w, f);
    f->forbidden = (uint8_t)any_forbidden(values, n);
    f->todo = PS_ALL;
    w->own_entries += n;
    for (int32_t k = 0; k < f->arity; k++) w->vars[f->vars[k]].todo |= PS_DOMINATE;
}

int ps_affords(const ps_work *w, double entries) {
    return (double)w->own_entries + entries <= fmax(1 << 22, 2.0 * (double)w->m->s->values_begin[w->m->s->n_tables]);
}

/* ---- labels ------------------------------------------------------------------------------------------------- */

void ps_wake_var(ps_work *w, int32_t var) {
    ps_var *v = &w->vars[var];
    v->todo |= PS_DOMINATE | PS_ELIMINATE;
    for (int32_t k = 0; k < v->n_factors; k++) {
        ps_factor *f = &w->factors[v->factors[k]];
        f->todo |= PS_REVISE | PS_SPLIT | PS_SUBSTITUTE;
        for (int32_t l = 0; l < f->arity; l++) w->vars[f->vars[l]].todo |= PS_DOMINATE;
    }
    ps_spend(w, 2.0 * v->n_factors);
}

void ps_remove_label(ps_work *w, int32_t var, int32_t label) {
    ps_var *v = &w->vars[var];
    if (v->unary[label] == -INFINITY) return;
    w->touched = 1;
    v->unary[label] = -INFINITY;
    v->live--;
    if (v->live == 0) forbid_all(w);
    if (v->live == 1) w->fix_queue[w->n_fix++] = var;
}

void ps_add_unary(ps_work *w, int32_t var, const double *scores, int32_t depth) {
    ps_var *v = &w->vars[var];
    v->depth = deepened(w, 1 + (v->depth > depth ? v->depth : depth));
    const int32_t before = v->live;
    w->touched = 1;
    for (int32_t a = 0; a < v->card; a++) {
        if (scores[a] == -INFINITY) ps_remove_label(w, var, a);
        else if (v->unary[a] > -INFINITY) v->unary[a] += scores[a];
    }
    v->todo |= PS_DOMINATE;
    if (v->live < before) ps_wake_var(w, var);
}

/* Keeps what is needed to choose the label of `var` later. Returns 0 when memory is short. */
int ps_record_var(ps_work *w, int32_t var, const int32_t *factors, int32_t n_factors) {
    ps_var *v = &w->vars[var];
    if (!fgi_grow(&w->records, &w->record_capacity, w->n_records + 1, sizeof *w->records)) {
        w->failure = FGI_NO_MEMORY;
        return 0;
    }
    ps_frozen *frozen = ps_alloc(w, n_factors, sizeof *frozen);
    if (!frozen) return 0;
    for (int32_t k = 0; k < n_factors; k++) {
        const ps_factor *f = &w->factors[factors[k]];
        frozen[k].f = *f;
        frozen[k].cards = ps_alloc(w, f->arity, sizeof(int32_t));
        frozen[k].labels = ps_alloc(w, f->arity, sizeof(int32_t *));
        if (!frozen[k].cards || !frozen[k].labels) return 0;
        for (int32_t l = 0; l < f->arity; l++) {
            frozen[k].cards[l] = w->vars[f->vars[l]].card;
            frozen[k].labels[l] = w->vars[f->vars[l]].label;
        }
    }
    w->records[w->n_records++] = (ps_record){
        .var = var, .n_factors = n_factors, .unary = v->unary, .label = v->label, .card = v->card, .factors = frozen};
    v->gone = 1;
    w->touched = 1;
    return 1;
}

/* ---- compaction --------------------------------------------------------------------------------------------- */

/* Whether the removed labels of a variable may be dropped: implicit tables are never expanded for that, shared ones
 * only while the copies stay within the budget (in entries), which is then charged. */
static int may_shrink(ps_work *w, int32_t var, double *budget) {
    const ps_var *v = &w->vars[var];
    double cost = 0;
    ps_tidy(w, var);
    for (int32_t k = 0; k < v->n_factors; k++) {
        const ps_factor *f = &w->factors[v->factors[k]];
        if (f->kind != FGI_DENSE) return 0;
        if (f->table >= 0 && w->uses[f->table] > 1) cost += (double)ps_states(w, f) / v->card * v->live;
    }
    if (cost > *budget) return 0;
    *budget -= cost;
    return 1;
}

/* The factor's values at the live labels of the variables marked in `shrinks`. */
static void slice_factor(ps_work *w, int64_t at, const uint8_t *shrinks) {
    ps_factor *f = &w->factors[at];
    const int32_t n = f->arity;
    int64_t strides[n], size = 1;
    int32_t digit[n];
    ps_strides(w, f, strides);
    for (int32_t k = 0; k < n; k++) {
        const ps_var *v = &w->vars[f->vars[k]];
        size *= shrinks[f->vars[k]] ? v->live : v->card;
        digit[k] = 0;
        while (shrinks[f->vars[k]] && v->unary[digit[k]] == -INFINITY) digit[k]++;
    }
    double *values = ps_alloc(w, size, sizeof(double)), *out = values;
    if (!values) return;
    ps_spend(w, (double)size);
    for (;;) {
        int64_t base = 0;
        for (int32_t k = 0; k + 1 < n; k++) base += digit[k] * strides[k];
        const ps_var *last = &w->vars[f->vars[n - 1]];
        for (int32_t a = 0; a < last->card; a++)
            if (!shrinks[f->vars[n - 1]] || last->unary[a] > -INFINITY)
                *out++ = f->weight * f->values[base + a * strides[n - 1]];
        int32_t k = n - 2;
        for (; k >= 0; k--) {
            const ps_var *v = &w->vars[f->vars[k]];
            do digit[k]++;
            while (shrinks[f->vars[k]] && digit[k] < v->card && v->unary[digit[k]] == -INFINITY);
            if (digit[k] < v->card) break;
            digit[k] = 0;
            while (shrinks[f->vars[k]] && v->unary[digit[k]] == -INFINITY) digit[k]++;
        }
        if (k < 0) break;
    }
    f->values = values; /* its size becomes right once the variables have shrunk */
}

static int shrink_var(ps_work *w, ps_var *v) {
    double *unary = ps_alloc(w, v->live, sizeof(double));
    int32_t *label = ps_alloc(w, v->live, sizeof(int32_t)), n = 0;
    if (!unary || !label) return 0;
    for (int32_t a = 0; a < v->card; a++)
        if (v->unary[a] > -INFINITY) {
            unary[n] = v->unary[a];
            label[n++] = v->label ? v->label[a] : a;
        }
    v->unary = unary;
    v->label = label;
    v->card = n;
    return 1;
}

static int shrinks_any(const ps_factor *f, const uint8_t *shrinks) {
    for (int32_t k = 0; k < f->arity; k++)
        if (shrinks[f->vars[k]]) return 1;
    return 0;
}

int64_t ps_compact(ps_work *w) {
    if (w->infeasible || w->failure) return 0;
    double budget = fmax(1 << 20, (double)w->m->s->values_begin[w->m->s->n_tables]) - (double)w->own_entries;
    uint8_t *shrinks = fgi_calloc(w->n_vars, 1);
    int64_t count = 0;
    if (!shrinks) {
        w->failure = FGI_NO_MEMORY;
        return 0;
    }
    for (int32_t i = 0; i < w->n_vars; i++) {
        const ps_var *v = &w->vars[i];
        if (v->gone || v->live == v->card || !may_shrink(w, i, &budget)) continue;
        shrinks[i] = 1;
        count++;
    }
    if (count > 0) {
        w->touched = 1;
        for (int64_t f = 0; f < w->n_factors && !w->failure; f++)
            if (shrinks_any(&w->factors[f], shrinks)) slice_factor(w, f, shrinks);
        for (int32_t i = 0; i < w->n_vars && !w->failure; i++)
            if (shrinks[i]) shrink_var(w, &w->vars[i]);
        for (int64_t f = 0; f < w->n_factors && !w->failure; f++)
            if (shrinks_any(&w->factors[f], shrinks)) ps_replace_table(w, f, w->factors[f].values, w->factors[f].depth);
    }
    free(shrinks);
    return w->failure ? 0 : count;
}

/* ---- the reduced model -------------------------------------------------------------------------------------- */

/* A live factor, over the variables of the reduced model. dims: scratch for its label counts. */
static void draft_factor(fgi_draft *d, const ps_work *w, const ps_factor *f, const int32_t *local, int32_t *dims) {
    int32_t table;
    if (f->table >= 0) {
        table = fgi_draft_shared(d, f->table);
    } else {
        double *values;
        for (int32_t l = 0; l < f->arity; l++) dims[l] = w->vars[f->vars[l]].card;
        table = fgi_draft_dense(d, f->arity, dims, &values);
        if (table >= 0) memcpy(values, f->values, (size_t)ps_states(w, f) * sizeof *values);
    }
    fgi_draft_factor(d, table, f->weight, f->transposed, f->arity, f->vars, local);
}

fgi_rc ps_build(ps_work *w, fgi_model **out, int32_t **var_of, fgi_error *err) {
    int32_t arity = 0;
    for (int64_t k = 0; k < w->n_factors; k++)
        if (w->factors[k].arity > arity) arity = w->factors[k].arity;
    int32_t *local = fgi_alloc(w->n_vars, sizeof *local), *dims = fgi_alloc(arity, sizeof *dims);
    *var_of = fgi_alloc(w->n_vars, sizeof **var_of);
    fgi_draft d;
    fgi_draft_begin(&d, w->m);
    const int ok = local && dims && *var_of;
    for (int32_t i = 0; ok && i < w->n_vars; i++) {
        if (w->vars[i].gone) continue;
        local[i] = fgi_draft_variable(&d, w->vars[i].card, w->vars[i].unary);
        if (local[i] >= 0) (*var_of)[local[i]] = i;
    }
    for (int64_t k = 0; ok && k < w->n_factors; k++)
        if (w->factors[k].arity) draft_factor(&d, w, &w->factors[k], local, dims);
    const fgi_rc rc = ok ? fgi_draft_finish(&d, fgi_sum_value(&w->constant), out, err) : fgi_no_memory(err);
    fgi_draft_free(&d);
    free(local);
    free(dims);
    return rc;
}
