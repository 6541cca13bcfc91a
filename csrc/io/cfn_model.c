/* io/cfn_model.c - the model of a .cfn file: which costs forbid, which functions share a table. */
#include <math.h>
#include "base/util.h"
#include "io/cfn.h"

fgi_rc fgi_cfn_find_functions(fgi_cfn *r, fgi_error *err) {
    for (int64_t f = 0; f < r->factors.n; f++) {
        factor *x = (factor *)r->factors.at + f;
        if (x->name < 0) continue;
        const char *name = (const char *)r->shared_names.at + x->name;
        r->json.words.line = x->line;
        x->function = fgi_names_find(&r->names, OF_FUNCTIONS, name, x->name_length);
        if (x->function < 0)
            return fgi_words_fail(&r->json.words, err, name, x->name_length,
                "function %lld shares the costs of a function that is not there", fgi_ll(f));
        const function *g = (const function *)r->functions.at + x->function;
        if (g->twice)
            return fgi_words_fail(&r->json.words, err, name, x->name_length,
                "function %lld shares the costs of one of several functions of that name", fgi_ll(f));
        const int32_t *dims = (const int32_t *)r->table_dims.at + g->dims,
                      *scope = (const int32_t *)r->scopes.at + x->scope;
        int same = g->arity == x->arity;
        for (int64_t k = 0; same && k < g->arity; k++) same = dims[k] == ((const int32_t *)r->c.cards.at)[scope[k]];
        if (!same) {
            char shape[80];
            fgi_words_list(shape, sizeof shape, dims, g->arity);
            return fgi_words_fail(&r->json.words, err, name, x->name_length,
                "function %lld shares a table of another shape, %s", fgi_ll(f), shape);
        }
    }
    return FGI_OK;
}

/* Costs become scores: those of two variables or more tables, one after the other at the front of the values, which may
 * drop them again; the others go to `small`. */
static int store_functions(fgi_cfn *r, double paid, fgi_array *small) {
    fgi_distinct *d = &r->c.tables;
    d->values.n = 0;
    for (int64_t f = 0; f < r->functions.n; f++) {
        function *g = (function *)r->functions.at + f;
        const double *costs = (const double *)d->values.at + g->begin;
        const double forbids = r->bound - (paid - fgi_smaller(0, g->least));
        fgi_array *to = g->arity < 2 ? small : &d->values;
        if (to == small && !fgi_array_reserve(small, g->entries, sizeof(double))) return 0;
        double *out = (double *)to->at + to->n; /* never behind the costs */
        g->largest = -INFINITY;
        for (int64_t k = 0; k < g->entries; k++) {
            const double cost = costs[k];
            out[k] = cost >= forbids ? -INFINITY : 0.0 - cost;
            if (isfinite(out[k])) g->largest = fgi_larger(g->largest, 0.0 - out[k]);
        }
        if (g->largest == -INFINITY) g->largest = 0;
        g->begin = to->n;
        to->n += g->entries;
        if (g->arity < 2) continue;
        int turned = 0;
        const int32_t *dims = (const int32_t *)r->table_dims.at + g->dims;
        g->table = fgi_distinct_store(d, dims, g->arity, g->entries, &turned);
        if (g->table < 0) return 0;
        g->transposed = turned;
    }
    return 1;
}

static int all_multiples(const double *costs, int64_t n, double scale) {
    for (int64_t k = 0; k < n; k++)
        if (isfinite(costs[k]) && rint(costs[k] * scale) / scale != costs[k]) return 0;
    return 1;
}

/* The last digit of decimal costs and their bound, to nine places; 0 where sums are exact, or there are more places. */
static double last_digit(const fgi_cfn *r) {
    const double *costs = r->c.tables.values.at;
    const int64_t n = r->c.tables.values.n;
    double scale = 0x1p20;
    for (int places = 0; places <= 9; places++) {
        if (all_multiples(costs, n, scale) && all_multiples(&r->bound, 1, scale)) return places ? 1 / scale : 0;
        scale = places ? 10 * scale : 10;
    }
    return 0;
}

fgi_rc fgi_cfn_build(fgi_cfn *r, double *cutoff, fgi_error *err) {
    double paid = 0, most = 0, size = 0;
    fgi_array small = {0};
    for (int64_t f = 0; f < r->factors.n; f++) {
        const function *g = (const function *)r->functions.at + ((const factor *)r->factors.at)[f].function;
        paid += fgi_smaller(0, g->least);
        most += g->largest;
    }
    const double enough = r->bound - 1e-9 * fabs(r->bound);
    const double step = most >= enough ? last_digit(r) : 0;
    most = 0;
    int room = store_functions(r, paid, &small);
    for (int64_t f = 0; room && f < r->factors.n; f++) {
        const factor *x = (const factor *)r->factors.at + f;
        const function *g = (const function *)r->functions.at + x->function;
        const int32_t *vars = x->arity ? (const int32_t *)r->scopes.at + x->scope : NULL;
        const double *scores = g->arity < 2 ? (const double *)small.at + g->begin : NULL;
        most += g->largest;
        size = fgi_larger(size, fgi_larger(fabs(g->least), fabs(g->largest)));
        if (g->arity >= 2) room = fgi_collected_factor(&r->c, vars, g->arity, g->table, g->transposed);
        else if (g->arity == 1) room = fgi_collected_unary(&r->c, vars[0], scores);
        else fgi_collected_constant(&r->c, scores[0]);
    }
    free(small.at);
    if (!room) return fgi_no_memory(err);
    *cutoff = -INFINITY; /* no total gets to the bound */
    if (most < enough) return FGI_OK;
    size = fgi_larger(size, fgi_larger(fabs(most), fabs(paid)));
    /* Sums of decimals that are equal to the bound may be rounded to less: then half a digit below it. */
    const int rounded = 1e-15 * size * (double)r->factors.n < 0.25 * step;
    *cutoff = 0.0 - (rounded ? r->bound - 0.5 * step : r->bound);
    return FGI_OK;
}
