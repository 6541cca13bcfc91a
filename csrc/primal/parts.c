/* primal/parts.c - bandit, regions and elites, see primal/search.h. */
#include <string.h>
#include "primal/search.h"

void fgi_bandit_init(fgi_bandit *b, int32_t n, double first_cost) {
    memset(b, 0, sizeof *b);
    b->n = n;
    for (int32_t k = 0; k < n; k++) b->cost[k] = first_cost;
}

/* Expected successes per operation; a little success for nothing keeps every option alive. */
static double rate(const fgi_bandit *b, int32_t k) { return (b->success[k] + 0.1) / (b->cost[k] + 1.0); }

int32_t fgi_bandit_choose(const fgi_bandit *b, fgi_rng *rng) {
    double total = 0;
    for (int32_t k = 0; k < b->n; k++) total += rate(b, k);
    double at = fgi_rng_unit(rng) * total;
    for (int32_t k = 0; k < b->n - 1; k++) {
        at -= rate(b, k);
        if (at < 0) return k;
    }
    return b->n - 1;
}

void fgi_bandit_learn(fgi_bandit *b, int32_t arm, double success, double operations) {
    const double keep = 0.97; /* remembers some thirty trials */
    b->success[arm] = keep * b->success[arm] + success;
    b->cost[arm] = keep * b->cost[arm] + operations;
}

struct fgi_region {
    const fgi_model *model;
    int32_t *vars;
    int32_t *mark;
    int32_t stamp;
};

fgi_region *fgi_region_create(const fgi_model *m, fgi_arena *arena) {
    fgi_region *r = fgi_take_zero(arena, 1, fgi_region);
    if (!r) return NULL;
    r->model = m;
    r->vars = fgi_take(arena, m->s->n_vars, int32_t);
    r->mark = fgi_take_zero(arena, m->s->n_vars, int32_t);
    return r;
}

int32_t *fgi_region_variables(fgi_region *r) { return r->vars; }

/* All variables, beginning somewhere. */
int64_t fgi_region_all(fgi_region *r, fgi_rng *rng) {
    const int64_t n = r->model->s->n_vars, from = n ? fgi_rng_below(rng, n) : 0;
    for (int64_t k = 0; k < n; k++) r->vars[k] = (int32_t)(from + k < n ? from + k : from + k - n);
    return n;
}

static void next_stamp(fgi_region *r) {
    if (r->stamp == INT32_MAX) {
        memset(r->mark, 0, (size_t)r->model->s->n_vars * sizeof *r->mark);
        r->stamp = 0;
    }
    r->stamp++;
}

/* vars[0 .. done) have been expanded, vars[done .. seen) are the frontier. */
int64_t fgi_region_grow(fgi_region *r, int32_t from, int64_t n, int compact, fgi_rng *rng) {
    const fgi_structure *s = r->model->s;
    next_stamp(r);
    int64_t done = 0, seen = 1;
    r->vars[0] = from;
    r->mark[from] = r->stamp;
    while (done < seen && seen < (compact ? n : s->n_vars) && done < n) {
        if (!compact) {
            int64_t k = done + fgi_rng_below(rng, seen - done);
            int32_t swap = r->vars[done];
            r->vars[done] = r->vars[k];
            r->vars[k] = swap;
        }
        const int32_t v = r->vars[done++];
        const int64_t begin = s->adj_begin[v], degree = s->adj_begin[v + 1] - begin;
        const int64_t offset = degree ? fgi_rng_below(rng, degree) : 0;
        for (int64_t k = 0; k < degree && (!compact || seen < n); k++) {
            const int32_t f = s->adj[begin + (offset + k < degree ? offset + k : offset + k - degree)];
            const int32_t *vars = fgi_factor_vars(s, f);
            for (int32_t j = 0; j < fgi_factor_arity(s, f) && (!compact || seen < n); j++) {
                if (r->mark[vars[j]] == r->stamp) continue;
                r->mark[vars[j]] = r->stamp;
                r->vars[seen++] = vars[j];
            }
        }
    }
    return compact ? seen : done < n ? (seen < n ? seen : n) : n;
}

/* Where two labelings differ, one connected component after the other; the last variable v of each is written as ~v. */
int64_t fgi_region_components(fgi_region *r, const int32_t *a, const int32_t *b) {
    const fgi_structure *s = r->model->s;
    int64_t done = 0, seen = 0;
    next_stamp(r);
    for (int32_t from = 0; from < s->n_vars; from++) {
        if (a[from] == b[from] || r->mark[from] == r->stamp) continue;
        r->mark[from] = r->stamp;
        r->vars[seen++] = from;
        while (done < seen) {
            const int32_t v = r->vars[done++];
            for (int64_t k = s->adj_begin[v]; k < s->adj_begin[v + 1]; k++) {
                const int32_t *vars = fgi_factor_vars(s, s->adj[k]);
                for (int32_t j = 0; j < fgi_factor_arity(s, s->adj[k]); j++) {
                    if (a[vars[j]] == b[vars[j]] || r->mark[vars[j]] == r->stamp) continue;
                    r->mark[vars[j]] = r->stamp;
                    r->vars[seen++] = vars[j];
                }
            }
        }
        r->vars[seen - 1] = ~r->vars[seen - 1];
    }
    return seen;
}

/* ---- elites ------------------------------------------------------------------------------------------------- */

static int32_t worst_of(const fgi_elites *e) {
    int32_t worst = 0;
    for (int32_t k = 1; k < e->n; k++)
        if (e->violations[k] > e->violations[worst] ||
            (e->violations[k] == e->violations[worst] && e->score[k] < e->score[worst]))
            worst = k;
    return worst;
}

/* As many as take 64 MB, a few in any case. */
void fgi_elites_init(fgi_elites *e, int64_t n_vars) {
    const int64_t most = (1 << 24) / (n_vars + 1);
    e->n_vars = n_vars;
    e->most = (int32_t)(most > FGI_ELITES ? FGI_ELITES : most < 8 ? 8 : most);
}

int fgi_elites_add(fgi_elites *e, const int32_t *labels, int64_t violations, double score) {
    const size_t bytes = (size_t)e->n_vars * sizeof *labels;
    for (int32_t k = 0; k < e->n; k++) {
        int64_t distance = 0;
        for (int64_t i = 0; i < e->n_vars; i++) distance += labels[i] != e->labels[k][i];
        if (distance > e->n_vars / 20) continue;
        /* Almost the same labeling: the better of the two stays. */
        if (violations < e->violations[k] || (violations == e->violations[k] && score > e->score[k])) {
            memcpy(e->labels[k], labels, bytes);
            e->violations[k] = violations;
            e->score[k] = score;
        }
        return 1;
    }
    int32_t at = e->n;
    if (e->n < e->most) {
        e->labels[at] = fgi_alloc(e->n_vars, sizeof *labels);
        if (!e->labels[at]) return 0;
        e->n++;
    } else {
        at = worst_of(e);
        if (violations > e->violations[at] || (violations == e->violations[at] && score <= e->score[at])) return 1;
    }
    memcpy(e->labels[at], labels, bytes);
    e->violations[at] = violations;
    e->score[at] = score;
    return 1;
}

void fgi_elites_free(fgi_elites *e) {
    for (int32_t k = 0; k < e->n; k++) free(e->labels[k]);
    e->n = 0;
}
