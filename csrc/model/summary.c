/* model/summary.c - what is told about a model: its sizes, and what one pass over its potentials shows. */
#include <stdlib.h>
#include <string.h>
#include "base/kernels.h"
#include "base/pool.h"
#include "base/util.h"
#include "fginfer_exact.h"
#include "model/model.h"
#include "model/sorted.h"

/* ---- sizes ----------------------------------------------------------------------------------------------------- */

int64_t fgi_model_variables(const fgi_model *m) { return m->s->n_vars; }
int64_t fgi_model_factors(const fgi_model *m) { return m->s->n_factors; }
double fgi_model_constant(const fgi_model *m) { return m->s->constant; }
int64_t fgi_model_entries(const fgi_model *m) { return m->s->values_begin[m->s->n_tables]; }

void fgi_model_cards(const fgi_model *m, int32_t *cards) {
    if (m->s->n_vars > 0) memcpy(cards, m->s->cards, (size_t)m->s->n_vars * sizeof(int32_t));
}

int64_t fgi_model_memory(const fgi_model *m) {
    const fgi_structure *s = m->s;
    int64_t bytes = (int64_t)sizeof *s + s->arena.bytes + 8 * s->unary_begin[s->n_vars] +
        8 * s->values_begin[s->n_tables] + s->n_tables * (int64_t)(sizeof(fgi_table_facts) + sizeof m->t->order[0]) +
        fgi_leftovers_memory(m->x);
    for (int64_t t = 0; t < s->n_tables; t++) bytes += fgi_sorted_memory(atomic_load(&m->t->order[t]));
    return bytes;
}

static double work_of(const fgi_model *m, int64_t f, int by_labels) {
    const fgi_view v = fgi_factor_view(m, f);
    return (double)(by_labels ? fgi_view_work(m, &v) : fgi_view_states(m, &v));
}

/* Factors that share a table have the same states, unless it is an implicit one and label counts differ: what lies
 * anywhere in memory, the variables of a factor, is looked at once for each table. */
static double sum_over_factors(const fgi_model *m, int by_labels) {
    const fgi_structure *s = m->s;
    double sum = 0, *of_table = fgi_calloc(s->n_tables, sizeof *of_table); /* NULL: it takes longer */
    for (int64_t f = 0; f < s->n_factors; f++) {
        const int32_t table = s->factor_table[f];
        if (!of_table || (s->table_kind[table] != FGI_DENSE && s->min_card < s->max_card)) {
            sum += work_of(m, f, by_labels);
            continue;
        }
        if (of_table[table] == 0) of_table[table] = work_of(m, f, by_labels); /* above 0 */
        sum += of_table[table];
    }
    free(of_table);
    return sum;
}

double fgi_model_states(const fgi_model *m) { return sum_over_factors(m, 0); }

double fgi_model_pass_work(const fgi_model *m) { return sum_over_factors(m, 1); }

int32_t fgi_model_max_arity(const fgi_model *m) { return m->s->max_arity; }

/* ---- one pass -------------------------------------------------------------------------------------------------- */

typedef struct labels_job {
    const fgi_model *m;
    int32_t *labels;
} labels_job;

static void unary_labels(void *of, int64_t begin, int64_t end, int worker) {
    const labels_job *j = of;
    (void)worker;
    for (int64_t i = begin; i < end; i++) {
        const double *u = fgi_unary(j->m, i);
        const int32_t card = j->m->s->cards[i];
        int32_t best = card < FGI_SHORT_ROW ? 0 : (int32_t)fgi_argmax_of(u, card);
        double top = u[0];
        for (int32_t a = 1; a < card && card < FGI_SHORT_ROW; a++) { /* branches on the data would be mispredicted */
            best = u[a] > top ? a : best;
            top = fgi_larger(top, u[a]);
        }
        j->labels[i] = best;
    }
}

void fgi_model_unary_labels_by(const fgi_model *m, fgi_pool *pool, int32_t *labels) {
    labels_job j = {m, labels};
    fgi_pool_run(pool, m->s->n_vars, FGI_TERMS, unary_labels, &j);
}

void fgi_model_unary_labels(const fgi_model *m, int32_t *labels) { fgi_model_unary_labels_by(m, NULL, labels); }

double fgi_model_attraction(const fgi_model *m) {
    enum { LOOKED_AT = 100000 }; /* factors, evenly spread: the share is right to a third of a percent */
    const fgi_structure *s = m->s;
    const int64_t step = s->n_factors / LOOKED_AT + 1;
    int64_t attracting = 0, n = 0;
    for (int64_t f = 0; f < s->n_factors; f += step, n++) {
        const fgi_view v = fgi_factor_view(m, f);
        if (v.arity != 2 || v.rows != 2 || v.cols != 2) continue;
        const double same = fgi_view_at2(&v, 1, 1) + fgi_view_at2(&v, 0, 0);
        attracting += same > fgi_view_at2(&v, 0, 1) + fgi_view_at2(&v, 1, 0);
    }
    return n ? (double)attracting / (double)n : 0;
}
