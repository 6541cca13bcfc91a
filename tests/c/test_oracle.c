/* Oracles against the dense scan, from several threads at once on one shared, lazily built order; updatable tables and
 * rankings against plain arrays. Meant to be run under the sanitizers, TSan above all. */
#include <stdio.h>
#include "beside.h"
#include "check.h"
#include "oracle/oracle.h"
#include "base/util.h"

enum { MAX_CARD = 60, THREADS = 4, ROUNDS = 300 };

/* ---- static tables, shared by threads ----------------------------------------------------------------------- */

static double draw(fgi_rng *rng, int kind) {
    if (kind >= 2 && fgi_rng_below(rng, 4) == 0) return -INFINITY;
    return kind % 2 ? (double)fgi_rng_below(rng, 7) / 3 - 1 : 4 * fgi_rng_unit(rng) - 2;
}

/* One pairwise factor, one transposed factor with the same table, one ternary, one of each implicit kind. */
static fgi_model *make_model(fgi_rng *rng, int kind) {
    static double values[MAX_CARD * MAX_CARD + 9 * 8 * 7];
    const int32_t cards[] = {MAX_CARD - 3, MAX_CARD, 9, 8, 7}, dims[] = {MAX_CARD - 3, MAX_CARD, 9, 8, 7};
    const int32_t kinds[] = {FGI_DENSE, FGI_DENSE, FGI_POTTS, FGI_ABSDIFF, FGI_SQDIFF}, arity[] = {2, 3, 2, 2, 2};
    const double params[] = {0, 0, 0, 0, 0.5, -0.25, 0.3, 4, 0.1, INFINITY}, weight[] = {1, 1.5, 1, 1, 0.7, 1};
    const uint8_t transposed[] = {0, 1, 0, 0, 0, 0};
    const int32_t tables[] = {0, 0, 1, 2, 3, 4}, vars[] = {0, 1, 1, 0, 2, 3, 4, 0, 1, 0, 1, 0, 1};
    const int64_t begin[] = {0, 2, 4, 7, 9, 11, 13};
    const int64_t n_values = (MAX_CARD - 3) * MAX_CARD + 9 * 8 * 7;
    for (int64_t k = 0; k < n_values; k++) values[k] = draw(rng, kind);
    fgi_model_spec spec = {.n_vars = 5,
        .cards = cards,
        .n_tables = 5,
        .table_kind = kinds,
        .table_arity = arity,
        .dims = dims,
        .params = params,
        .values = values,
        .n_values = n_values,
        .n_factors = 6,
        .factor_table = tables,
        .factor_weight = weight,
        .factor_transposed = transposed,
        .var_begin = begin,
        .vars = vars};
    fgi_model *m = NULL;
    return fgi_model_create(&spec, &m, NULL) == FGI_OK ? m : NULL;
}

typedef struct job {
    const fgi_model *model;
    const fgi_source *source;
    uint64_t seed;
    int failed;
} job;

static int32_t draw_message(fgi_rng *rng, int32_t card, int32_t *labels, double *values, int kind) {
    int32_t n = 0;
    const int64_t rare = 1 + fgi_rng_below(rng, 12);
    for (int32_t a = 0; a < card; a++)
        if (fgi_rng_below(rng, rare) == 0) {
            labels[n] = a;
            values[n++] = kind ? (double)fgi_rng_below(rng, 7) / 3 - 1 : 2 * fgi_rng_unit(rng) - 0.7;
        }
    return n;
}

static int ask(const fgi_model *m, const fgi_source *source, fgi_rng *rng, fgi_oracle_scratch *w) {
    static _Thread_local int32_t labels[3][MAX_CARD];
    static _Thread_local double values[3][MAX_CARD];
    fgi_message messages[3];
    const int64_t f = fgi_rng_below(rng, m->s->n_factors);
    const int32_t arity = fgi_factor_arity(m->s, f);
    int64_t states = 1;
    for (int32_t k = 0; k < arity; k++) {
        const int32_t card = m->s->cards[fgi_factor_vars(m->s, f)[k]];
        messages[k] = (fgi_message){
            draw_message(rng, card, labels[k], values[k], (int)fgi_rng_below(rng, 2)), labels[k], values[k]};
        states *= card;
    }
    const int64_t excluded = fgi_rng_below(rng, states + 1) - 1, hint = fgi_rng_below(rng, states + 2) - 1;
    fgi_argmax found, expected;
    fgi_oracle_query q = {.source = source,
        .factor = f,
        .messages = messages,
        .excluded = &excluded,
        .n_excluded = excluded >= 0,
        .hint = hint};
    REQUIRE(fgi_oracle_answer(&q, w, &found) == FGI_OK);
    q.path = FGI_BY_SCAN;
    REQUIRE(fgi_oracle_answer(&q, w, &expected) == FGI_OK);
    REQUIRE(found.state == expected.state && found.value == expected.value);
    fgi_argmax several[2][5];
    q.n_best = 5;
    REQUIRE(fgi_oracle_answer(&q, w, several[0]) == FGI_OK);
    q.path = FGI_BY_SEARCH;
    REQUIRE(fgi_oracle_answer(&q, w, several[1]) == FGI_OK);
    REQUIRE(several[0][0].state == expected.state);
    for (int k = 0; k < 5; k++)
        REQUIRE(several[0][k].state == several[1][k].state && several[0][k].value == several[1][k].value);
    return 0;
}

static void *ask_often(void *argument) {
    job *j = argument;
    fgi_rng rng = {j->seed};
    fgi_oracle_scratch *w = fgi_oracle_scratch_create(1, 2); /* it grows */
    j->failed = !w;
    for (int round = 0; round < ROUNDS && !j->failed; round++) j->failed = ask(j->model, j->source, &rng, w);
    fgi_oracle_scratch_free(w);
    return NULL;
}

static int test_static(fgi_rng *rng, int kind) {
    fgi_model *m = make_model(rng, kind);
    fgi_source *source = NULL;
    REQUIRE(m && fgi_model_source_create(m, &source, NULL) == FGI_OK);
    beside threads[THREADS];
    job jobs[THREADS];
    for (int t = 0; t < THREADS; t++) {
        jobs[t] = (job){m, source, fgi_rng_next(rng), 0};
        REQUIRE(beside_begin(&threads[t], ask_often, &jobs[t]) == 0);
    }
    int failed = 0;
    for (int t = 0; t < THREADS; t++) {
        beside_end(&threads[t]);
        failed |= jobs[t].failed;
    }
    REQUIRE(fgi_model_memory(m) > 0);
    fgi_model_source_free(source);
    fgi_model_free(m);
    return failed;
}

/* In parts or at once, the linear pass gives the same order; an abandoned one leaks nothing. */
static int test_parts(fgi_rng *rng) {
    static double values[600 * 40]; /* columns long enough for short lists, rows not */
    const int32_t dims[2] = {600, 40};
    for (int k = 0; k < 600 * 40; k++) values[k] = draw(rng, 3);
    fgi_sorted_builder *once = fgi_sorted_builder_create(2, dims);
    REQUIRE(once && fgi_sorted_builder_step(once, values, 10 * 600 * 40));
    fgi_sorted *whole = fgi_sorted_builder_finish(once);
    fgi_sorted_builder *b = fgi_sorted_builder_create(2, dims), *abandoned = fgi_sorted_builder_create(2, dims);
    REQUIRE(whole && b && abandoned);
    while (!fgi_sorted_builder_step(b, values, 1)) continue;
    fgi_sorted_builder_step(abandoned, values, 100);
    fgi_sorted_builder_free(abandoned);
    fgi_sorted *parts = fgi_sorted_builder_finish(b);
    REQUIRE(parts);
    for (int k = 0; k < 2; k++) {
        const fgi_axis *x = &whole->axes[k], *y = &parts->axes[k];
        REQUIRE(x->n_live == y->n_live);
        for (int32_t r = 0; r < x->n_live; r++) REQUIRE(x->rank[r] == y->rank[r] && x->run_end[r] == y->run_end[r]);
        for (int32_t a = 0; a < x->n; a++) {
            int64_t work = 0;
            const fgi_list *list = x->lists[a], *other = y->lists[a];
            REQUIRE(!list == !other);
            while (!list || !list->complete) REQUIRE((list = fgi_sorted_extend(whole, values, k, a, list, &work)));
            for (int32_t j = 0; other && j < other->n; j++) REQUIRE(list->at[j] == other->at[j]);
            for (int32_t j = 1; j < list->n; j++) {
                double before = values[fgi_axis_flat(x, a, list->at[j - 1])],
                       here = values[fgi_axis_flat(x, a, list->at[j])];
                REQUIRE(before > here || (before == here && list->at[j - 1] < list->at[j]));
            }
        }
    }
    fgi_sorted_release(whole);
    fgi_sorted_release(parts);
    return 0;
}

/* ---- tables that change ------------------------------------------------------------------------------------- */

static int test_updatable(fgi_rng *rng) {
    enum { ROWS = 13, COLS = 17 };
    double dense[ROWS * COLS] = {0};
    int32_t labels[2][COLS];
    double values[2][COLS];
    fgi_updatable *u = NULL;
    fgi_oracle_scratch *w = fgi_oracle_scratch_create(COLS, 2);
    REQUIRE(w && fgi_updatable_create(ROWS, COLS, FGI_BY_SEARCH, NULL, &u, NULL) == FGI_OK);
    for (int round = 0; round < 2000; round++) {
        const int32_t a = (int32_t)fgi_rng_below(rng, ROWS), b = (int32_t)fgi_rng_below(rng, COLS);
        const double value = fgi_rng_below(rng, 3) ? draw(rng, 1) : 0.0;
        REQUIRE(fgi_updatable_set(u, 1, &a, &b, &value, NULL) == FGI_OK);
        dense[a * COLS + b] = value;
        fgi_message messages[2];
        double delta[2][COLS] = {{0}};
        for (int side = 0; side < 2; side++) {
            messages[side] = (fgi_message){
                draw_message(rng, side ? COLS : ROWS, labels[side], values[side], 1), labels[side], values[side]};
            for (int32_t k = 0; k < messages[side].n; k++) delta[side][labels[side][k]] = values[side][k];
        }
        const int64_t excluded = fgi_rng_below(rng, ROWS * COLS + 1) - 1;
        fgi_argmax expected = {-1, -INFINITY}, found;
        for (int64_t s = 0; s < ROWS * COLS; s++) {
            double here = (dense[s] - delta[0][s / COLS]) - delta[1][s % COLS];
            if (s != excluded && here > expected.value) expected = (fgi_argmax){s, here};
        }
        const fgi_oracle_query q = {.source = fgi_updatable_source(u),
            .messages = messages,
            .excluded = &excluded,
            .n_excluded = excluded >= 0,
            .hint = -1};
        REQUIRE(fgi_oracle_answer(&q, w, &found) == FGI_OK);
        REQUIRE(found.state == expected.state && found.value == expected.value);
    }
    fgi_updatable_free(u);
    fgi_oracle_scratch_free(w);
    return 0;
}

/* ---- messages on all labels: slices or not, the same state and the same bits ------------------------------------ */

static int test_slices(fgi_rng *rng, int kind) {
    enum { SIDE = 300 };
    static double table[SIDE * SIDE], values[2][SIDE];
    static int32_t labels[SIDE];
    int64_t searched = 0;
    for (int32_t a = 0; a < SIDE; a++) labels[a] = a;
    fgi_oracle_scratch *w = fgi_oracle_scratch_create(SIDE, 2);
    REQUIRE(w);
    for (int round = 0; round < 60; round++) {
        const int32_t rows = 9 + (int32_t)fgi_rng_below(rng, SIDE - 9),
                      cols = 9 + (int32_t)fgi_rng_below(rng, SIDE - 9);
        const int transposed = (int)fgi_rng_below(rng, 2);
        double most = -INFINITY;
        for (int32_t k = 0; k < rows * cols; k++) {
            table[k] = draw(rng, kind);
            most = fgi_larger(most, table[k]);
        }
        fgi_sliced *slices = fgi_sliced_create(table, transposed ? cols : rows, transposed ? rows : cols, round % 2);
        REQUIRE(slices);
        while (!fgi_sliced_step(slices, 10000)) {}
        for (int k = 0; k < 2; k++)
            for (int32_t a = 0; a < SIDE; a++) {
                values[k][a] = draw(rng, kind % 2) * (double)(1 + fgi_rng_below(rng, 3));
                if (fgi_rng_below(rng, 5) == 0) values[k][a] = 0x1p600; /* ruled out, as by gdmm */
            }
        const fgi_message messages[2] = {{rows, labels, values[0]}, {cols, labels, values[1]}};
        fgi_table_source t = {.base = {&fgi_table_ops},
            .view = {.kind = FGI_DENSE,
                .arity = 2,
                .values = table,
                .weight = 0.5 + fgi_rng_unit(rng),
                .rows = rows,
                .cols = cols,
                .transposed = transposed}};
        const fgi_oracle_query q = {.source = &t.base, .messages = messages, .hint = -1};
        fgi_argmax expected = {-1, -INFINITY}, found;
        for (int32_t a = 0; a < rows; a++)
            for (int32_t b = 0; b < cols; b++) {
                const double value = (fgi_view_at2(&t.view, a, b) - values[0][a]) - values[1][b];
                if (value > expected.value) expected = (fgi_argmax){(int64_t)a * cols + b, value};
            }
        for (int way = 0; way < 4; way++) {
            t.most = way & 1 ? &most : NULL;
            t.slices = way & 2 ? slices : NULL;
            const int64_t scans = fgi_oracle_scratch_work(w).scans;
            REQUIRE(fgi_oracle_answer(&q, w, &found) == FGI_OK);
            REQUIRE(found.state == expected.state && found.value == expected.value);
            searched += fgi_oracle_scratch_work(w).scans == scans;
            REQUIRE(t.slices || fgi_oracle_scratch_work(w).scans == scans + 1);
        }
        fgi_sliced_free(slices);
    }
    REQUIRE(searched > 0);
    fgi_oracle_scratch_free(w);
    return 0;
}

static int test_ranking(fgi_rng *rng) {
    enum { N = 40 };
    double values[N], value;
    int there[N];
    for (int k = 0; k < N; k++) values[k] = draw(rng, 1);
    for (int k = 0; k < N; k++) there[k] = values[k] > 0;
    fgi_ranking *r = NULL;
    REQUIRE(fgi_ranking_create(N, values, 0.0, &r, NULL) == FGI_OK);
    for (int round = 0; round < 2000; round++) {
        const int32_t item = (int32_t)fgi_rng_below(rng, N);
        if (fgi_rng_below(rng, 2)) {
            REQUIRE(fgi_ranking_take(r, item) == there[item]);
            there[item] = 0;
        } else {
            values[item] = draw(rng, 1);
            there[item] = values[item] > 0;
            REQUIRE(fgi_ranking_set(r, item, values[item], NULL) == FGI_OK);
        }
        int32_t best = -1;
        for (int32_t k = 0; k < N; k++)
            if (there[k] && (best < 0 || values[k] > values[best])) best = k;
        REQUIRE(fgi_ranking_top(r, &value) == best);
        REQUIRE(best < 0 || value == values[best]);
    }
    fgi_ranking_free(r);
    return 0;
}

int main(void) {
    fgi_rng rng = {7};
    for (int kind = 0; kind < 4; kind++) REQUIRE(test_static(&rng, kind) == 0);
    for (int kind = 0; kind < 4; kind++) REQUIRE(test_slices(&rng, kind) == 0);
    REQUIRE(test_parts(&rng) == 0);
    REQUIRE(test_updatable(&rng) == 0);
    REQUIRE(test_ranking(&rng) == 0);
    return 0;
}
