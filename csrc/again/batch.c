/* again/batch.c - many small models of one structure, without a caller per model.
 *
 * Items are taken in blocks, each by one thread with a model and a keeper of its own: within a block an item begins
 * from the messages and labels of the one before. So nothing depends on the number of threads. What a keeper does not
 * close is left to branch and bound. */
#include <string.h>
#include "again/keeper.h"
#include "base/pool.h"
#include "base/util.h"

enum {
    BLOCK = 64,        /* items (chosen) */
    KEEPER_PASSES = 8, /* passes whose work a keeper may spend (chosen) */
    FACTOR_WORK = 32   /* fixed cost of a factor in a pass, in table entries (chosen) */
};

typedef struct job {
    const fgi_model *m;
    const fgi_batch *b;
    double gap;
    int64_t work;          /* work that a keeper may spend */
    int64_t table_entries; /* entries in the tables of one item */
    fgi_rc *rc;            /* per block */
    fgi_error *err;        /* per block */
} job;

/* What works on a block. */
typedef struct worker {
    fgi_model *m;
    fgi_keeper *keeper;
} worker;

static fgi_rc put_numbers(const job *j, worker *w, int64_t item, fgi_error *err) {
    const fgi_structure *st = w->m->s;
    const fgi_batch *b = j->b;
    fgi_rc rc = b->unary ? fgi_model_set_all_unary(w->m, b->unary + item * st->unary_begin[st->n_vars], err) : FGI_OK;
    if (!rc && b->n_tables)
        rc = fgi_model_set_tables(w->m, b->n_tables, b->tables, b->values + item * j->table_entries, err);
    return rc;
}

/* The keeper, if any, takes the numbers too; where it cannot, a new one begins. */
static void follow(const job *j, worker *w, const int32_t *labels) {
    const fgi_batch *b = j->b;
    if (w->keeper && (!b->n_tables || !fgi_keeper_take_tables(w->keeper, w->m, b->n_tables, b->tables, NULL)) &&
        !fgi_keeper_take_unary(w->keeper, w->m, 0, NULL, NULL))
        return;
    fgi_keeper_free(w->keeper);
    w->keeper = NULL;
    if (fgi_keeper_create(w->m, NULL, labels, &w->keeper, NULL)) w->keeper = NULL;
}

static fgi_rc by_branch_and_bound(const job *j, worker *w, int64_t item, int has_labels, fgi_error *err) {
    fgi_settings settings = fgi_settings_default();
    fgi_solver *solver = NULL;
    fgi_info info;
    int32_t *labels = j->b->labels + item * w->m->s->n_vars;
    settings.method = FGI_BNB;
    settings.gap = j->gap;
    fgi_rc rc = fgi_solver_create(w->m, &settings, &solver, err);
    if (!rc && has_labels) rc = fgi_solver_offer(solver, labels, err);
    if (!rc && (rc = fgi_solver_run(solver, -1, -1, &info))) fgi_fail(err, rc, item, "branch and bound cannot go on");
    if (!rc) {
        fgi_solver_labels(solver, labels);
        j->b->scores[item] = info.score;
        j->b->bounds[item] = info.bound;
        j->b->statuses[item] = info.status;
    }
    fgi_solver_free(solver);
    return rc;
}

static fgi_rc solve_item(const job *j, worker *w, int64_t item, fgi_error *err) {
    fgi_keeper_info info;
    int32_t *labels = j->b->labels + item * w->m->s->n_vars;
    const fgi_rc rc = put_numbers(j, w, item, err);
    if (rc) return rc;
    memset(labels, 0, (size_t)w->m->s->n_vars * sizeof *labels);
    follow(j, w, labels);
    if (!w->keeper) return by_branch_and_bound(j, w, item, 0, err);
    fgi_keeper_run(w->keeper, j->gap, j->work, &info);
    if (info.score > -INFINITY) fgi_keeper_labels(w->keeper, labels);
    if (info.status != FGI_KEEPER_DONE) return by_branch_and_bound(j, w, item, info.score > -INFINITY, err);
    j->b->scores[item] = info.score;
    j->b->bounds[item] = info.bound;
    j->b->statuses[item] =
        info.bound - info.score <= fgi_proof_tolerance(info.score, info.unit) ? FGI_OPTIMAL : FGI_GAP_REACHED;
    return FGI_OK;
}

static void solve_blocks(void *of, int64_t begin, int64_t end, int thread) {
    const job *j = of;
    (void)thread;
    for (int64_t k = begin; k < end; k++) {
        worker w = {fgi_model_plain(j->m), NULL};
        const int64_t last = (k + 1) * BLOCK < j->b->n ? (k + 1) * BLOCK : j->b->n;
        j->rc[k] = w.m ? FGI_OK : fgi_no_memory(&j->err[k]);
        for (int64_t item = k * BLOCK; !j->rc[k] && item < last; item++) {
            j->rc[k] = solve_item(j, &w, item, &j->err[k]);
            if (j->rc[k]) j->err[k].index = item;
        }
        fgi_keeper_free(w.keeper);
        fgi_model_free(w.m);
    }
}

fgi_rc fgi_batch_solve(const fgi_model *m, const fgi_batch *b, double gap, int32_t threads, fgi_error *err) {
    const fgi_structure *st = m->s;
    const int64_t blocks = (b->n + BLOCK - 1) / BLOCK;
    job j = {m, b, gap, 0, 0, fgi_calloc(blocks, sizeof *j.rc), fgi_calloc(blocks, sizeof *j.err)};
    fgi_rc rc = j.rc && j.err ? FGI_OK : fgi_no_memory(err);
    for (int64_t k = 0; !rc && k < b->n_tables; k++) {
        const int32_t t = b->tables[k];
        if (t < 0 || t >= st->n_tables || st->table_kind[t] != FGI_DENSE)
            rc = fgi_fail(err, FGI_BAD_ARGUMENT, t, "there is no dense table %d", t);
        else j.table_entries += st->values_begin[t + 1] - st->values_begin[t];
    }
    j.work = (int64_t)(KEEPER_PASSES * (fgi_model_pass_work(m) + FACTOR_WORK * (double)st->n_factors));
    fgi_pool *pool = !rc && threads > 1 && blocks > 1 ? fgi_pool_create(threads) : NULL;
    if (!rc && pool) fgi_pool_run(pool, blocks, 1, solve_blocks, &j);
    else if (!rc) solve_blocks(&j, 0, blocks, 0);
    fgi_pool_free(pool);
    for (int64_t k = 0; !rc && k < blocks; k++) {
        rc = j.rc[k];
        if (rc && err) *err = j.err[k];
    }
    free(j.rc);
    free(j.err);
    return rc;
}
