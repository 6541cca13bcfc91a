/* search_parts.c - bandit and regions, see search.h. */
#include <string.h>
#include "search.h"

void fgi_bandit_init(fgi_bandit *b, int32_t n, double first_cost) {
    memset(b, 0, sizeof *b);
    b->n = n;
    for (int32_t k = 0; k < n; k++) b->cost[k] = first_cost;
}

/* Expected successes per operation; half a success for nothing keeps every option alive. */
static double rate(const fgi_bandit *b, int32_t k) { return (b->success[k] + 0.5) / (b->cost[k] + 1.0); }

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

void fgi_bandit_learn(fgi_bandit *b, int32_t arm, int success, double operations) {
    const double keep = 0.97; /* remembers some thirty trials */
    b->success[arm] = keep * b->success[arm] + (success ? 1 : 0);
    b->cost[arm] = keep * b->cost[arm] + operations;
}

struct fgi_region {
    const fgi_model *model;
    int32_t *vars;
    int32_t *mark;
    int32_t stamp;
};

fgi_region *fgi_region_create(const fgi_model *m) {
    fgi_region *r = fgi_calloc(1, sizeof *r);
    if (!r) return NULL;
    r->model = m;
    r->vars = fgi_alloc(m->s->n_vars, sizeof(int32_t));
    r->mark = fgi_calloc(m->s->n_vars, sizeof(int32_t));
    if (r->vars && r->mark) return r;
    fgi_region_free(r);
    return NULL;
}

void fgi_region_free(fgi_region *r) {
    if (!r) return;
    free(r->vars);
    free(r->mark);
    free(r);
}

int32_t *fgi_region_variables(fgi_region *r) { return r->vars; }

/* All variables, beginning somewhere. */
int64_t fgi_region_all(fgi_region *r, fgi_rng *rng) {
    const int64_t n = r->model->s->n_vars, from = n ? fgi_rng_below(rng, n) : 0;
    for (int64_t k = 0; k < n; k++) r->vars[k] = (int32_t)(from + k < n ? from + k : from + k - n);
    return n;
}

/* vars[0 .. done) have been expanded, vars[done .. seen) are the frontier. */
int64_t fgi_region_grow(fgi_region *r, int32_t from, int64_t n, int compact, fgi_rng *rng) {
    const fgi_structure *s = r->model->s;
    if (r->stamp == INT32_MAX) {
        memset(r->mark, 0, (size_t)s->n_vars * sizeof *r->mark);
        r->stamp = 0;
    }
    r->stamp++;
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
