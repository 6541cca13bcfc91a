/* io/collected.c - see io/collected.h. */
#include "io/collected.h"
#include <math.h>
#include <string.h>
#include "base/util.h"

int fgi_collected_variable(fgi_collected *c, int32_t card) {
    return fgi_array_push_i32(&c->cards, card) && fgi_array_push_i32(&c->stamp, -1) &&
        fgi_array_push_i64(&c->unary_begin, -1);
}

int fgi_collected_factor(fgi_collected *c, const int32_t *vars, int64_t arity, int32_t table, int transposed) {
    const int64_t more = c->scope_used + arity - c->scope.n;
    if (more > 0 && !fgi_array_reserve(&c->scope, more, sizeof(int32_t))) return 0;
    if (c->scope_begin.n == 0 && !fgi_array_push_i64(&c->scope_begin, 0)) return 0;
    if (c->scope_begin.n == c->factor_table.n + 1 && !fgi_array_push_i64(&c->scope_begin, 0)) return 0;
    if (!fgi_array_reserve(&c->transposed, 1, 1) || !fgi_array_push_i32(&c->factor_table, table)) return 0;
    if (more > 0) c->scope.n += more;
    ((uint8_t *)c->transposed.at)[c->transposed.n++] = (uint8_t)transposed;
    c->any_transposed |= transposed;
    /* A scope that was read before moves to the front; what is overwritten belongs to factors already read. */
    memmove((int32_t *)c->scope.at + c->scope_used, vars, (size_t)arity * sizeof *vars);
    c->scope_used += arity;
    ((int64_t *)c->scope_begin.at)[c->factor_table.n] = c->scope_used;
    return 1;
}

int fgi_collected_unary(fgi_collected *c, int32_t var, const double *scores) {
    const int64_t n = ((const int32_t *)c->cards.at)[var];
    int64_t *begin = (int64_t *)c->unary_begin.at + var;
    if (*begin >= 0) return fgi_folding_add(&c->folding, var, n, scores);
    if (!fgi_array_reserve(&c->unary, n, sizeof(double))) return 0;
    *begin = c->unary.n;
    memcpy((double *)c->unary.at + c->unary.n, scores, (size_t)n * sizeof *scores);
    c->unary.n += n;
    return 1;
}

void fgi_collected_constant(fgi_collected *c, double score) { fgi_folding_add_constant(&c->folding, score); }

int64_t fgi_collected_held(const fgi_collected *c) {
    const fgi_distinct *d = &c->tables;
    const int64_t fours = c->cards.capacity + c->scope.capacity + c->stamp.capacity + c->factor_table.capacity +
        d->arity.capacity + d->dims.capacity + d->n_slots;
    const int64_t eights = c->scope_begin.capacity + c->unary.capacity + c->unary_begin.capacity + d->values.capacity +
        d->values_begin.capacity + d->dims_begin.capacity + d->hash.capacity;
    return c->transposed.capacity + 4 * fours + 8 * eights + fgi_folding_held(&c->folding);
}

void fgi_collected_clear(fgi_collected *c) {
    fgi_array *all[] = {
        &c->cards, &c->stamp, &c->factor_table, &c->transposed, &c->scope_begin, &c->scope, &c->unary, &c->unary_begin};
    for (size_t k = 0; k < sizeof all / sizeof all[0]; k++) free(all[k]->at);
    fgi_distinct_clear(&c->tables);
    fgi_folding_free(&c->folding);
    *c = (fgi_collected){0};
}

/* The unaries in the order of the variables. Usually they were given in that order and are ready as they are. */
static int order_unaries(fgi_collected *c) {
    const int32_t *cards = c->cards.at;
    const int64_t *begin = c->unary_begin.at;
    int64_t total = 0, ready = 1;
    for (int64_t i = 0; i < c->cards.n; i++) {
        ready &= begin[i] == total;
        total += cards[i]; /* no overflow: below 2^31 variables of below 2^31 labels */
    }
    if (ready) return 1;
    fgi_array sorted = {0};
    if (!fgi_array_reserve(&sorted, total, sizeof(double))) return 0;
    double *out = sorted.at;
    for (int64_t i = 0; i < c->cards.n; i++) {
        if (begin[i] >= 0) memcpy(out, (double *)c->unary.at + begin[i], (size_t)cards[i] * sizeof *out);
        else memset(out, 0, (size_t)cards[i] * sizeof *out);
        out += cards[i];
    }
    sorted.n = total;
    free(c->unary.at);
    c->unary = sorted;
    return 1;
}

fgi_rc fgi_collected_finish(fgi_collected *c, fgi_model **out, fgi_error *err) {
    fgi_rc rc = fgi_folding_finish(&c->folding, c->cards.at, c->unary_begin.at, c->unary.at, &c->constant, err);
    if (rc) return rc;
    if (!order_unaries(c)) return fgi_no_memory(err);
    fgi_distinct_shrink(&c->tables);
    int all_pairwise = c->scope_used == 2 * c->factor_table.n;
    for (int64_t t = 0; t < c->tables.arity.n; t++) all_pairwise &= ((const int32_t *)c->tables.arity.at)[t] == 2;
    fgi_model_spec spec = {
        .n_vars = c->cards.n,
        .cards = c->cards.at,
        .unary = c->unary.at,
        .constant = c->constant,
        .n_tables = c->tables.arity.n,
        .table_arity = c->tables.arity.at,
        .dims = c->tables.dims.at,
        .values = c->tables.values.at,
        .n_values = c->tables.values.n,
        .n_factors = c->factor_table.n,
        .factor_table = c->factor_table.at,
        .factor_transposed = c->any_transposed ? c->transposed.at : NULL,
        .var_begin = all_pairwise ? NULL : c->scope_begin.at,
        .vars = c->scope.at,
    };
    fgi_folding_put(&c->folding, &spec);
    rc = fgi_model_create_owning(&spec, c->tables.values.at, out, err);
    if (!rc) c->tables.values.at = NULL; /* the model's now */
    return rc;
}
