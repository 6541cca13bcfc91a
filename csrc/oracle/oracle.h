/* oracle/oracle.h - factorwise maximisation oracles (FMOs): the message-augmented argmax over one factor's states.
 *
 *     argmax over y of  theta_f(y) - sum_k delta_k(y_k)
 *
 * What is promised, the query and the answers are in fginfer_oracle.h; this is the interface for solvers: the same
 * query, answered on the caller's thread and without checks. Clients: gdmm (MAP), its certificate, Algorithm 9, and the
 * learning solvers, whose tables change between calls and whose messages carry the opposite sign. Max-marginals, which
 * gdmm's sweeps ask for: oracle/marginals.h. */
#ifndef FGI_ORACLE_H
#define FGI_ORACLE_H
#include "fginfer_oracle.h"
#include "model/model.h"
#include "model/sorted.h"
#include "oracle/sliced.h"
#include "oracle/source.h"

/* Working memory of one thread, and its counters. It grows with what it is asked. */
fgi_oracle_scratch *fgi_oracle_scratch_create(int32_t max_card, int32_t max_arity);
void fgi_oracle_scratch_free(fgi_oracle_scratch *w);
fgi_oracle_work fgi_oracle_scratch_work(const fgi_oracle_scratch *w);

/* The answer(s) to a query: max(1, n_best) of them. FGI_NO_MEMORY when a lazy sort could not allocate. */
fgi_rc fgi_oracle_answer(const fgi_oracle_query *q, fgi_oracle_scratch *w, fgi_argmax *out);

/* One factor's view of one static table as a source, for solvers that have the view at hand: fill it, ask, forget it.
 * `order` and `slices` may be NULL: without either a dense table is scanned. Slices are for messages on all labels. */
typedef struct fgi_table_source {
    fgi_source base; /* {&fgi_table_ops} */
    fgi_view view;
    const int32_t *cards; /* label counts of the factor's variables, in order; NULL is fine for pairwise factors */
    fgi_sorted *order;
    const fgi_sliced *slices;
    const double *most; /* the largest score, weight left out; NULL: not known */
} fgi_table_source;

extern const fgi_source_ops fgi_table_ops;

/* start + <w, x> of one label of an inner-product source, without messages: the bits of a scan. */
double fgi_products_score(const fgi_source *source, const fgi_features *x, int32_t label);
/* The same of all labels, by label, or of those that x lists, in their order. */
void fgi_products_scores(const fgi_products *p, const fgi_features *x, double *out);
/* Other dense weights of the same layout, from now on. */
void fgi_products_borrow(fgi_products *p, const double *weights);
/* Rows of weights that are kept elsewhere, instead of dense weights by feature: row f is begin[f] .. end[f] of label
 * and value, labels ascending. */
typedef struct fgi_weight_rows {
    const int64_t *begin, *end;
    const int32_t *label;
    const double *value;
} fgi_weight_rows;
void fgi_products_borrow_rows(fgi_products *p, const fgi_weight_rows *rows);

/* The order of a factor's table in this model, made on first use and shared; NULL with *!rc for tables that
 * are better scanned (small or implicit ones). Safe from several threads. The model (or a snapshot) keeps it alive. */
fgi_sorted *fgi_model_order(const fgi_model *m, int32_t table, fgi_rc *rc);
/* The same in parts, for callers that watch a clock: reads about `entries` more entries of the table and returns 1 when
 * the order is there (or not wanted, or *rc is set). *builder is NULL at first and afterwards; until then it holds the
 * state, and fgi_sorted_builder_free abandons it. */
int fgi_model_order_step(const fgi_model *m, int32_t table, int64_t entries, fgi_sorted_builder **builder, fgi_rc *rc);

#endif
