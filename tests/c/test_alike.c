/* model/alike.c against the definition: all labelings of three variables, all renamings of three labels. */
#include "check.h"
#include "model/alike.h"
#include "base/util.h"

enum { LABELS = 3, VARS = 3, PAIR = LABELS * LABELS, TRIPLE = PAIR * LABELS };

static const int32_t renamings[][LABELS] = {{0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};

static int alike_by_definition(const fgi_model *m) {
    for (int32_t state = 0; state < TRIPLE; state++) {
        const int32_t labels[] = {state / PAIR, state / LABELS % LABELS, state % LABELS};
        double score, other;
        fgi_error err;
        fgi_model_score(m, labels, &score, &err);
        for (int k = 0; k < 5; k++) {
            const int32_t *to = renamings[k], renamed[] = {to[labels[0]], to[labels[1]], to[labels[2]]};
            fgi_model_score(m, renamed, &other, &err);
            if (other != score) return 0;
        }
    }
    return 1;
}

/* A pairwise and a ternary table, both invariant unless `spoil` is an entry of theirs, and an implicit one. */
static fgi_model *model(int64_t spoil, int32_t kind, double limit, double first_unary) {
    const int32_t cards[] = {LABELS, LABELS, LABELS}, kinds[] = {FGI_DENSE, FGI_DENSE, kind}, arity[] = {2, 3, 2};
    const int32_t dims[] = {LABELS, LABELS, LABELS, LABELS, LABELS}, tables[] = {0, 1, 2};
    const int32_t vars[] = {2, 0, 0, 1, 2, 1, 2};
    const int64_t var_begin[] = {0, 2, 5, 7};
    const double params[] = {0, 0, 0, 0, 0.25, limit}, weight[] = {1, 2, 0.5};
    double unary[VARS * LABELS] = {0}, values[PAIR + TRIPLE];
    for (int k = 0; k < LABELS; k++) unary[k] = 0.5;
    unary[0] = first_unary;
    for (int32_t a = 0; a < LABELS; a++)
        for (int32_t b = 0; b < LABELS; b++) {
            values[a * LABELS + b] = a == b ? 2 : -1;
            for (int32_t c = 0; c < LABELS; c++) /* not the same in its variables, but in all labels */
                values[PAIR + (a * LABELS + b) * LABELS + c] = (a == b) + 4 * (b == c);
        }
    if (spoil >= 0) values[spoil] += 1;
    const fgi_model_spec spec = {.n_vars = VARS,
        .cards = cards,
        .unary = unary,
        .n_tables = 3,
        .table_kind = kinds,
        .table_arity = arity,
        .dims = dims,
        .params = params,
        .values = values,
        .n_values = PAIR + TRIPLE,
        .n_factors = 3,
        .factor_table = tables,
        .factor_weight = weight,
        .var_begin = var_begin,
        .vars = vars};
    fgi_model *m = NULL;
    fgi_error err;
    if (fgi_model_create(&spec, &m, &err)) fprintf(stderr, "model: %s\n", err.message);
    return m;
}

static int agrees(int64_t spoil, int32_t kind, double limit, double first_unary, int expected) {
    fgi_model *m = model(spoil, kind, limit, first_unary);
    REQUIRE(m);
    REQUIRE(alike_by_definition(m) == expected);
    REQUIRE(fgi_labels_are_alike(m) == expected);
    fgi_model_free(m);
    return 0;
}

int main(void) {
    int failed = agrees(-1, FGI_POTTS, 1, 0.5, 1) || agrees(-1, FGI_POTTS, 1, 1, 0);
    failed = failed || agrees(-1, FGI_SQDIFF, 1, 0.5, 1) || agrees(-1, FGI_SQDIFF, 2, 0.5, 0);
    failed = failed || agrees(-1, FGI_ABSDIFF, 0.5, 0.5, 1) || agrees(-1, FGI_ABSDIFF, 1.5, 0.5, 0);
    for (int64_t k = 0; k < PAIR + TRIPLE && !failed; k++) failed = agrees(k, FGI_POTTS, 1, 0.5, 0);
    return failed;
}
