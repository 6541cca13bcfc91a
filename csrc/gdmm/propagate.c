/* gdmm/propagate.c - removal of labels that no feasible labeling can use, before anything else is done.
 *
 * Small tables: generalised arc consistency over the factors with forbidden entries, with a work list. Large ones: one
 * linear pass per *distinct* pairwise table finds the rows and columns that are forbidden throughout. */
#include <string.h>
#include "gdmm/gdmm.h"
#include "model/consistency.h"

static const int64_t LARGE_STATES = 1 << 18; /* states of a table that is looked at by itself */
static const int64_t STEP_WORK = 500000;     /* entries between two looks at the clock */

struct gdmm_propagation {
    int32_t *queue; /* circular work list of factors */
    uint8_t *queued;
    uint8_t *support;    /* max_arity * max_card */
    fgi_domain *domains; /* max_arity */
    int64_t head, count, table;
    int64_t variable, factor; /* the next to be made ready */
};

static void push(const gdmm *g, gdmm_propagation *p, int32_t f) {
    if (p->queued[f] || g->model->t->facts[g->model->s->factor_table[f]].n_forbidden == 0) return;
    p->queued[f] = 1;
    p->queue[(p->head + p->count++) % g->model->s->n_factors] = f;
}

static int remove_label(gdmm *g, gdmm_propagation *p, int32_t i, int32_t a) {
    const fgi_structure *s = g->model->s;
    double *theta = g->theta + s->unary_begin[i];
    if (theta[a] == -INFINITY) return 1;
    theta[a] = -INFINITY;
    for (int64_t k = s->adj_begin[i]; k < s->adj_begin[i + 1]; k++) push(g, p, s->adj[k]);
    for (int32_t b = 0; b < s->cards[i]; b++)
        if (theta[b] > -INFINITY) return 1;
    return 0; /* no label left */
}

/* Rows and columns of a large pairwise table without an allowed entry, removed from all its factors. */
static int prune_table(gdmm *g, gdmm_propagation *p, int32_t t) {
    const fgi_structure *s = g->model->s;
    const int32_t rows = s->dims[s->dims_begin[t]], cols = s->dims[s->dims_begin[t] + 1];
    const double *values = g->model->t->values + s->values_begin[t];
    uint8_t *row = p->support, *col = p->support + s->max_card;
    memset(p->support, 0, 2 * (size_t)s->max_card);
    for (int32_t a = 0; a < rows; a++)
        for (int32_t b = 0; b < cols; b++)
            if (values[(int64_t)a * cols + b] > -INFINITY) row[a] = col[b] = 1;
    for (int64_t f = 0; f < s->n_factors; f++) {
        if (s->factor_table[f] != t) continue;
        int flip = s->factor_transposed && s->factor_transposed[f];
        const int32_t *vars = fgi_factor_vars(s, f);
        for (int32_t a = 0; a < rows; a++)
            if (!row[a] && !remove_label(g, p, vars[flip], a)) return 0;
        for (int32_t b = 0; b < cols; b++)
            if (!col[b] && !remove_label(g, p, vars[!flip], b)) return 0;
    }
    return 1;
}

static int prune_factor(gdmm *g, gdmm_propagation *p, int64_t f, int64_t *work) {
    const fgi_structure *s = g->model->s;
    const fgi_view v = fgi_factor_view(g->model, f);
    for (int32_t k = 0; k < v.arity; k++) {
        const double *theta = g->theta + s->unary_begin[v.vars[k]];
        fgi_domain *d = &p->domains[k];
        *d = (fgi_domain){.scores = theta};
        for (int32_t a = 0; a < s->cards[v.vars[k]]; a++) d->live += theta[a] > -INFINITY;
    }
    if (fgi_view_supports(g->model, &v, p->domains, p->support, work) == 0) return 1;
    const uint8_t *seen = p->support;
    for (int32_t k = 0; k < v.arity; seen += s->cards[v.vars[k++]])
        for (int32_t a = 0; a < s->cards[v.vars[k]]; a++)
            if (!seen[a] && !remove_label(g, p, v.vars[k], a)) return 0;
    return 1;
}

void gdmm_propagation_free(gdmm_propagation *p) {
    if (!p) return;
    free(p->queue);
    free(p->queued);
    free(p->support);
    free(p->domains);
    free(p);
}

gdmm_propagation *gdmm_propagation_create(const gdmm *g) {
    const fgi_structure *s = g->model->s;
    gdmm_propagation *p = fgi_calloc(1, sizeof *p);
    if (!p) return NULL;
    p->queue = fgi_alloc(s->n_factors, sizeof *p->queue);
    p->queued = fgi_calloc(s->n_factors, 1);
    p->support = fgi_alloc((int64_t)(s->max_arity > 2 ? s->max_arity : 2) * s->max_card, 1);
    p->domains = fgi_alloc(s->max_arity, sizeof *p->domains);
    if (p->queue && p->queued && p->support && p->domains) return p;
    gdmm_propagation_free(p);
    return NULL;
}

static int is_large(const gdmm *g, int64_t f) {
    fgi_view v = fgi_factor_view(g->model, f);
    return v.kind == FGI_DENSE && v.arity == 2 && fgi_view_states(g->model, &v) > LARGE_STATES;
}

static int some_label(const gdmm *g, int64_t i) {
    for (int64_t a = g->model->s->unary_begin[i]; a < g->model->s->unary_begin[i + 1]; a++)
        if (g->theta[a] > -INFINITY) return 1;
    return 0;
}

/* Copies the unaries and fills the work list: on millions of pixels the copy alone takes a second. */
static int make_ready(gdmm *g, gdmm_propagation *p) {
    const fgi_structure *s = g->model->s;
    int64_t work = 0;
    for (; p->variable < s->n_vars && work < STEP_WORK; work += s->cards[p->variable++]) {
        const int64_t begin = s->unary_begin[p->variable];
        memcpy(g->theta + begin, g->model->u->values + begin, (size_t)s->cards[p->variable] * sizeof *g->theta);
        if (!some_label(g, p->variable)) return -1;
    }
    for (; p->variable == s->n_vars && p->factor < s->n_factors && work < STEP_WORK; work++, p->factor++) {
        if (g->model->t->facts[s->factor_table[p->factor]].max == -INFINITY) return -1;
        push(g, p, (int32_t)p->factor);
    }
    return p->variable == s->n_vars && p->factor == s->n_factors;
}

int gdmm_propagate_step(gdmm *g, gdmm_propagation *p) {
    const fgi_structure *s = g->model->s;
    if (p->variable < s->n_vars || p->factor < s->n_factors) {
        const int ready = make_ready(g, p);
        if (ready <= 0) return ready;
    }
    for (int64_t work = 0; p->table < s->n_tables; p->table++) {
        int64_t size = s->values_begin[p->table + 1] - s->values_begin[p->table];
        if (s->table_kind[p->table] != FGI_DENSE || s->table_arity[p->table] != 2 || size <= LARGE_STATES ||
            g->model->t->facts[p->table].n_forbidden == 0)
            continue;
        if (work > 0) return 0;
        work += size;
        if (!prune_table(g, p, (int32_t)p->table)) return -1;
    }
    for (int64_t work = 0; p->count > 0 && work < STEP_WORK;) {
        int32_t f = p->queue[p->head];
        p->head = (p->head + 1) % s->n_factors;
        p->count--;
        p->queued[f] = 0;
        if (is_large(g, f)) continue;
        work++;
        if (!prune_factor(g, p, f, &work)) return -1;
    }
    return p->count == 0;
}
