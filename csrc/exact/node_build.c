/* exact/node_build.c - problems from models and from their parents, see exact/node.h. */
#include "exact/node.h"
#include <string.h>
#include "model/marginal.h"

enum {
    FEW_ADDITIONS = 10, /* in one term, besides those of messages */
    FACTOR_WORK = 100   /* what to build a factor costs besides its entries, in entries */
};

void fgi_node_free(fgi_node *p) {
    if (!p) return;
    fgi_arena_free(&p->arena);
    free(p);
}

static fgi_node *problem_new(
    int64_t n, int64_t n_labels, int64_t n_factors, int64_t n_slots, int64_t n_messages, int64_t n_entries) {
    fgi_node *p = fgi_calloc(1, sizeof *p);
    if (!p) return NULL;
    fgi_arena *arena = &p->arena;
    p->kernels = fgi_kernels_get();
    p->n = (int32_t)n;
    p->n_factors = (int32_t)n_factors;
    p->n_slots = (int32_t)n_slots;
    p->card = fgi_take(arena, n, int32_t);
    p->alive = fgi_take(arena, n, int32_t);
    p->begin = fgi_take(arena, n + 1, int64_t);
    p->unary = fgi_take(arena, n_labels, double);
    p->belief = fgi_take(arena, n_labels, double);
    p->root_var = fgi_take(arena, n, int32_t);
    p->label = fgi_take(arena, n_labels, int32_t);
    p->slot_begin = fgi_take(arena, n_factors + 1, int32_t);
    p->slot_var = fgi_take(arena, n_slots, int32_t);
    p->slot_message = fgi_take(arena, n_slots, int64_t);
    p->message = fgi_take_zero(arena, n_messages, double);
    p->table = fgi_take(arena, n_factors, const double *);
    p->states = fgi_take(arena, n_factors, int64_t);
    p->owned = fgi_take(arena, n_entries, double);
    p->factor_max = fgi_take(arena, n_factors, double);
    p->link_begin = fgi_take_zero(arena, n + 1, int32_t);
    p->links = fgi_take(arena, n_slots, fgi_link);
    if (!arena->failed) return p;
    fgi_node_free(p);
    return NULL;
}

/* ---- once the parts are there ---------------------------------------------------------------------------------- */

static void begin_links(fgi_node *p) {
    int32_t *fill = p->link_begin;
    for (int32_t s = 0; s < p->n_slots; s++) fill[p->slot_var[s] + 1]++;
    for (int32_t i = 0; i < p->n; i++) fill[i + 1] += fill[i];
}

/* The links of every variable, by ascending factor. */
static void link_factor(fgi_node *p, int32_t f) {
    int32_t *fill = p->link_begin;
    const int32_t first = p->slot_begin[f], arity = p->slot_begin[f + 1] - first, *vars = p->slot_var + first;
    for (int32_t q = 0; q < arity; q++)
        p->links[fill[vars[q]]++] = fgi_link_make(f, vars, arity, q, p->card, p->slot_message[first]);
}

static void end_links(fgi_node *p) {
    for (int32_t i = p->n; i > 0; i--) p->link_begin[i] = p->link_begin[i - 1];
    p->link_begin[0] = 0;
}

/* bound = constant + all maxima; -INFINITY if a factor or variable has nothing left. */
static void take_variables(fgi_node *p, fgi_sum *bound) {
    for (int32_t i = 0; i < p->n; i++) {
        const double best = fgi_max_of(p->unary + p->begin[i], p->begin[i + 1] - p->begin[i]);
        fgi_sum_add(bound, best);
        for (int64_t k = p->begin[i]; best > -INFINITY && k < p->begin[i + 1]; k++) p->unary[k] -= best;
    }
}

static void take_factor(fgi_node *p, int32_t f, fgi_sum *bound) {
    p->factor_max[f] = fgi_max_of(p->table[f], p->states[f]);
    fgi_sum_add(bound, p->factor_max[f]);
}

/* Labels that are forbidden from the start are dead. */
static void end_bound(fgi_node *p, const fgi_sum *bound) {
    fgi_node_set_bound(p, bound);
    for (int32_t i = 0; i < p->n; i++)
        for (int32_t a = 0; a < p->card[i]; a++)
            if (p->unary[p->begin[i] + a] == -INFINITY && p->alive[i] > 0) fgi_node_remove(p, i, a);
    memcpy(p->belief, p->unary, (size_t)p->begin[p->n] * sizeof(double));
}

static void finish(fgi_node *p, fgi_sum *constant) {
    begin_links(p);
    for (int32_t f = 0; f < p->n_factors; f++) link_factor(p, f);
    end_links(p);
    take_variables(p, constant);
    for (int32_t f = 0; f < p->n_factors; f++) take_factor(p, f, constant);
    end_bound(p, constant);
}

/* ---- from a model ---------------------------------------------------------------------------------------------- */

static int borrowable(const fgi_view *v) { return v->kind == FGI_DENSE && v->weight == 1.0 && !v->transposed; }

/* Tables that are not borrowed are expanded. */
static void copy_factor(fgi_node_builder *b, int64_t f) {
    fgi_node *p = b->problem;
    const fgi_structure *s = b->m->s;
    const fgi_view v = fgi_factor_view(b->m, f);
    int32_t slot = (int32_t)fgi_factor_begin(s, f);
    p->slot_begin[f] = slot;
    p->states[f] = fgi_view_states(b->m, &v);
    p->table[f] = borrowable(&v) ? v.values : p->owned + b->entry_at;
    if (borrowable(&v)) {
        /* nothing to copy */
    } else if (v.arity == 2) {
        for (int32_t a = 0; a < v.rows; a++)
            for (int32_t c = 0; c < v.cols; c++) p->owned[b->entry_at++] = fgi_view_at2(&v, a, c);
    } else {
        for (int64_t k = 0; k < p->states[f]; k++) p->owned[b->entry_at++] = v.weight * v.values[k];
    }
    for (int32_t k = 0; k < v.arity; k++, slot++) {
        p->slot_var[slot] = v.vars[k];
        p->slot_message[slot] = b->message_at;
        b->message_at += s->cards[v.vars[k]];
    }
}

fgi_rc fgi_node_begin(const fgi_model *m, int64_t max_entries, fgi_node_builder *b) {
    const fgi_structure *s = m->s;
    const int64_t n_slots = fgi_factor_begin(s, s->n_factors);
    int64_t n_entries = 0;
    *b = (fgi_node_builder){.m = m};
    if (n_slots > INT32_MAX || s->max_arity > FGI_NODE_ARITY) return FGI_UNSUPPORTED;
    for (int64_t f = 0; f < s->n_factors; f++) {
        const fgi_view v = fgi_factor_view(m, f);
        if (borrowable(&v)) continue;
        const int64_t states = fgi_view_states(m, &v);
        if (states > max_entries - n_entries) return FGI_UNSUPPORTED;
        n_entries += states;
    }
    b->problem =
        problem_new(s->n_vars, s->unary_begin[s->n_vars], s->n_factors, n_slots, fgi_dual_message_size(m), n_entries);
    if (!b->problem) return FGI_NO_MEMORY;
    fgi_sum_add(&b->bound, s->constant);
    return FGI_OK;
}

static void copy_model_variables(fgi_node *p, const fgi_model *m) {
    const fgi_structure *s = m->s;
    for (int64_t i = 0; i < s->n_vars; i++) {
        p->card[i] = p->alive[i] = s->cards[i];
        p->root_var[i] = (int32_t)i;
        for (int32_t a = 0; a < s->cards[i]; a++) p->label[s->unary_begin[i] + a] = a;
    }
    memcpy(p->begin, s->unary_begin, (size_t)(s->n_vars + 1) * sizeof *p->begin);
    memcpy(p->unary, m->u->values, (size_t)s->unary_begin[s->n_vars] * sizeof(double));
    p->slot_begin[s->n_factors] = p->n_slots;
    p->max_card = s->max_card;
    p->magnitude = fgi_dual_magnitude(m, NULL);
    p->additions = (int32_t)(s->max_degree + s->max_arity) + FEW_ADDITIONS;
}

int fgi_node_build(fgi_node_builder *b, fgi_meter *meter) {
    enum { VARIABLES, COPY, LINK, BOUND, COMPLETE };
    fgi_node *p = b->problem;
    while (b->stage < COMPLETE) {
        if (b->at == 0 && b->stage == VARIABLES) copy_model_variables(p, b->m);
        if (b->at == 0 && b->stage == LINK) begin_links(p);
        if (b->at == 0 && b->stage == BOUND) take_variables(p, &b->bound);
        while (b->stage > VARIABLES && b->at < p->n_factors) {
            const int32_t f = (int32_t)b->at++;
            if (b->stage == COPY) copy_factor(b, f);
            else if (b->stage == LINK) link_factor(p, f);
            else take_factor(p, f, &b->bound);
            if (fgi_meter_spend(meter, (b->stage == LINK ? 0 : p->states[f]) + FACTOR_WORK)) return 0;
        }
        if (b->stage == LINK) end_links(p);
        if (b->stage == BOUND) {
            end_bound(p, &b->bound);
            fgi_audit(fgi_node_check(p));
        }
        b->stage++;
        b->at = 0;
        if (b->stage < COMPLETE && fgi_meter_over(meter)) return 0;
    }
    return 1;
}

/* How one variable of the parent appears in the child. */
typedef struct kept {
    int32_t child; /* index in the child, -1: fixed */
    int32_t first; /* offset of its live labels in `live` */
    int32_t count;
} kept;

/* Copies the part of factor f that is left, reparametrised, to `to`; the free variables keep their order. */
static void slice_factor(const fgi_node *p, int32_t f, const kept *keep, const int32_t *live, double *to) {
    int32_t first = p->slot_begin[f], arity = p->slot_begin[f + 1] - first;
    const double *table = p->table[f];
    if (arity == 2) {
        const kept *ki = &keep[p->slot_var[first]], *kj = &keep[p->slot_var[first + 1]];
        const double *mi = p->message + p->slot_message[first], *mj = p->message + p->slot_message[first + 1];
        int32_t cols = p->card[p->slot_var[first + 1]];
        for (int32_t x = 0; x < ki->count; x++) {
            int32_t a = live[ki->first + x];
            for (int32_t y = 0; y < kj->count; y++) {
                int32_t b = live[kj->first + y];
                *to++ = table[(int64_t)a * cols + b] - mi[a] - mj[b];
            }
        }
        return;
    }
    /* The variables with a choice left, fastest first. */
    int32_t index[FGI_NODE_ARITY] = {0}, proper[FGI_NODE_ARITY], n_proper = 0;
    int64_t strides[FGI_NODE_ARITY], base = 0, stride = 1;
    double offset = 0;
    for (int32_t k = arity - 1; k >= 0; k--) {
        int32_t i = p->slot_var[first + k];
        if (keep[i].count > 1) {
            strides[n_proper] = stride;
            proper[n_proper++] = k;
        } else {
            base += stride * live[keep[i].first];
            offset += p->message[p->slot_message[first + k] + live[keep[i].first]];
        }
        stride *= p->card[i];
    }
    for (;;) {
        int64_t at = base;
        double mu = offset;
        for (int32_t q = 0; q < n_proper; q++) {
            int32_t a = live[keep[p->slot_var[first + proper[q]]].first + index[q]];
            at += strides[q] * a;
            mu += p->message[p->slot_message[first + proper[q]] + a];
        }
        *to++ = table[at] - mu;
        int32_t q = 0;
        while (q < n_proper && ++index[q] == keep[p->slot_var[first + proper[q]]].count) index[q++] = 0;
        if (q == n_proper) return;
    }
}

typedef struct sizes {
    int64_t n, n_labels, n_factors, n_slots, n_messages, n_entries;
    int64_t largest; /* states of a factor, those that are folded away included */
} sizes;

/* A child that is being made from its parent. */
typedef struct birth {
    const fgi_node *parent;
    fgi_node *child;
    kept *keep;       /* per variable of the parent */
    int32_t *live;    /* its labels that are left */
    double *folded;   /* scores of a factor with fewer than two free variables */
    fgi_sum constant; /* the child's constant */
} birth;

static void keep_labels(birth *b, int32_t var, int32_t value, sizes *z) {
    const fgi_node *p = b->parent;
    int32_t at = 0;
    for (int32_t i = 0; i < p->n; i++) {
        kept *k = &b->keep[i];
        k->first = at;
        for (int32_t a = 0; a < p->card[i]; a++)
            if (i == var ? a == value : p->unary[p->begin[i] + a] > -INFINITY) b->live[at++] = a;
        k->count = at - k->first;
        fgi_assert(k->count >= 0 && at <= p->begin[p->n]);
        k->child = k->count > 1 ? (int32_t)z->n++ : -1;
        if (k->count > 1) z->n_labels += k->count;
    }
}

static fgi_rc count_factors(const birth *b, int64_t max_entries, sizes *z) {
    const fgi_node *p = b->parent;
    z->largest = 1;
    for (int32_t f = 0; f < p->n_factors; f++) {
        int64_t states = 1, free_vars = 0, messages = 0;
        for (int32_t s = p->slot_begin[f]; s < p->slot_begin[f + 1]; s++) {
            const kept *k = &b->keep[p->slot_var[s]];
            states *= k->count;
            if (k->count > 1) {
                free_vars++;
                messages += k->count;
            }
        }
        if (states > z->largest) z->largest = states;
        if (free_vars < 2) continue;
        if (states > max_entries - z->n_entries) return FGI_UNSUPPORTED;
        z->n_factors++;
        z->n_slots += free_vars;
        z->n_messages += messages;
        z->n_entries += states;
    }
    return FGI_OK;
}

static void copy_variables(birth *b) {
    const fgi_node *p = b->parent;
    fgi_node *c = b->child;
    c->begin[0] = 0;
    for (int32_t i = 0; i < p->n; i++) {
        const kept *k = &b->keep[i];
        if (k->child < 0) {
            fgi_sum_add(&b->constant, p->unary[p->begin[i] + b->live[k->first]]);
            continue;
        }
        int32_t j = k->child;
        c->card[j] = c->alive[j] = k->count;
        c->root_var[j] = p->root_var[i];
        fgi_assert(j < c->n && k->count > 1);
        c->begin[j + 1] = c->begin[j] + k->count;
        for (int32_t x = 0; x < k->count; x++) {
            c->unary[c->begin[j] + x] = p->unary[p->begin[i] + b->live[k->first + x]];
            c->label[c->begin[j] + x] = p->label[p->begin[i] + b->live[k->first + x]];
        }
    }
}

/* Messages go into the unaries (plus) and, by slice_factor, into the tables (minus). */
static void fold_messages(birth *b) {
    const fgi_node *p = b->parent;
    fgi_node *c = b->child;
    for (int32_t s = 0; s < p->n_slots; s++) {
        const kept *k = &b->keep[p->slot_var[s]];
        const double *mu = p->message + p->slot_message[s];
        if (k->child < 0) fgi_sum_add(&b->constant, mu[b->live[k->first]]);
        else
            for (int32_t x = 0; x < k->count; x++) c->unary[c->begin[k->child] + x] += mu[b->live[k->first + x]];
    }
}

/* Factors with two free variables and more stay, others become unaries or constants. */
static void copy_factors(birth *b) {
    const fgi_node *p = b->parent;
    fgi_node *c = b->child;
    int64_t message_at = 0, entry_at = 0;
    int32_t slot = 0, factor = 0;
    for (int32_t f = 0; f < p->n_factors; f++) {
        int32_t free_vars = 0, only = -1;
        int64_t states = 1;
        for (int32_t s = p->slot_begin[f]; s < p->slot_begin[f + 1]; s++) {
            const kept *k = &b->keep[p->slot_var[s]];
            if (k->count < 2) continue;
            free_vars++;
            only = k->child;
            states *= k->count;
        }
        slice_factor(p, f, b->keep, b->live, free_vars < 2 ? b->folded : c->owned + entry_at);
        if (free_vars == 0) fgi_sum_add(&b->constant, b->folded[0]);
        if (free_vars == 1)
            for (int32_t x = 0; x < c->card[only]; x++) c->unary[c->begin[only] + x] += b->folded[x];
        if (free_vars < 2) continue;
        c->slot_begin[factor] = slot;
        c->table[factor] = c->owned + entry_at;
        c->states[factor++] = states;
        entry_at += states;
        for (int32_t s = p->slot_begin[f]; s < p->slot_begin[f + 1]; s++) {
            const kept *k = &b->keep[p->slot_var[s]];
            if (k->count < 2) continue;
            c->slot_var[slot] = k->child;
            c->slot_message[slot++] = message_at;
            message_at += k->count;
        }
    }
    c->slot_begin[factor] = slot;
    fgi_assert(factor == c->n_factors && slot == c->n_slots);
}

static void fill_child(birth *b) {
    const fgi_node *p = b->parent;
    fgi_node *c = b->child;
    /* The parent's bound minus its maxima is its constant; what is fixed below is added to it. */
    b->constant = (fgi_sum){p->bound, p->carry, 0};
    for (int32_t f = 0; f < p->n_factors; f++) fgi_sum_add(&b->constant, -p->factor_max[f]);
    copy_variables(b);
    fold_messages(b);
    copy_factors(b);
    c->max_card = p->max_card;
    c->magnitude = p->magnitude;
    c->additions = p->additions;
    c->error = fgi_node_error(p);
    finish(c, &b->constant);
    fgi_audit_rarely(fgi_node_check(c));
}

fgi_rc fgi_node_child(const fgi_node *p, int32_t var, int32_t value, int64_t max_entries, fgi_node **out) {
    fgi_assert(var >= 0 && var < p->n && value >= 0 && value < p->card[var]);
    sizes z = {0};
    birth b = {.parent = p, .keep = fgi_alloc(p->n, sizeof *b.keep), .live = fgi_alloc(p->begin[p->n], sizeof *b.live)};
    fgi_rc rc = b.keep && b.live ? FGI_OK : FGI_NO_MEMORY;
    if (!rc) {
        keep_labels(&b, var, value, &z);
        rc = count_factors(&b, max_entries, &z);
    }
    if (!rc) {
        b.child = problem_new(z.n, z.n_labels, z.n_factors, z.n_slots, z.n_messages, z.n_entries);
        b.folded = fgi_alloc(z.largest, sizeof *b.folded);
        if (!b.child || !b.folded) rc = FGI_NO_MEMORY;
    }
    if (!rc) fill_child(&b);
    else fgi_node_free(b.child);
    if (!rc) *out = b.child;
    free(b.folded);
    free(b.keep);
    free(b.live);
    return rc;
}
