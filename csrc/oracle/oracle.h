/* oracle/oracle.h - factorwise maximisation oracles (FMOs): the message-augmented argmax over one factor's states.
 *
 *     argmax over y of  theta_f(y) - sum_k delta_k(y_k),     theta_f = weight * table
 *
 * What is promised, and the types of messages and answers, are in fginfer.h; this is the interface for solvers.
 * Messages are sparse and signed. Clients: gdmm (MAP), the certificate (bound), and the learning solvers, whose tables
 * change between calls and whose messages carry the opposite sign. */
#ifndef FGI_ORACLE_H
#define FGI_ORACLE_H
#include "model/model.h"
#include "model/sorted.h"

/* What the oracle is asked about: one factor's view of one table. `order` may be NULL: then the table is scanned
 * (small tables: as fast as anything else). rows/cols/cards are as the factor sees them. */
typedef struct fgi_oracle_query {
    fgi_view view;
    const int32_t *cards; /* label counts of the factor's variables, in order; NULL is fine for pairwise factors */
    fgi_order *order;
    const fgi_message *messages; /* one per variable; NULL: all zero */
    int64_t excluded;            /* flat state that may not be returned; -1: none */
    int64_t hint;                /* a state expected to be good (say the best active one); any value is correct */
} fgi_oracle_query;

/* FGI_NO_MEMORY when a lazy sort could not allocate. */
fgi_rc fgi_oracle_argmax(const fgi_oracle_query *q, fgi_oracle_scratch *w, fgi_argmax *out);
/* The same by a dense scan; the reference. */
void fgi_oracle_scan(const fgi_oracle_query *q, fgi_argmax *out);

/* The order of a factor's table in this model, made on first use and shared; NULL with *rc == FGI_OK for tables that
 * are better scanned (small or implicit ones). Safe from several threads. The model (or a snapshot) keeps it alive. */
fgi_order *fgi_model_order(const fgi_model *m, int32_t table, fgi_rc *rc);
/* The same in parts, for callers that watch a clock: reads about `entries` more entries of the table and returns 1 when
 * the order is there (or not wanted, or *rc is set). *builder is NULL at first and afterwards; until then it holds the
 * state, and fgi_order_builder_free abandons it. */
int fgi_model_order_step(const fgi_model *m, int32_t table, int64_t entries, fgi_order_builder **builder, fgi_rc *rc);

#endif
