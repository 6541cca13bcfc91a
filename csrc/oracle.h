/* oracle.h - factorwise maximisation oracles (FMOs): the message-augmented argmax over one factor's states.
 *
 *     argmax over y of  theta_f(y) - sum_k delta_k(y_k),     theta_f = weight * table
 *
 * Exact; ties go to the lowest flat index (in the *factor's* variable order, last fastest); values are computed as
 * ((theta - delta_1) - delta_2) - ... so that a dense scan gives the same bits. -inf entries are never returned.
 * Messages are sparse and signed. Clients: gdmm (MAP), the certificate (bound), and the learning solvers, whose tables
 * change between calls and whose messages carry the opposite sign. */
#ifndef FGI_ORACLE_H
#define FGI_ORACLE_H
#include "model.h"
#include "order.h"

/* A sparse message: n labels, strictly ascending, with their finite values; a label that is not listed has message 0.
 * Listing zeros is allowed, but costs work. */
typedef struct fgi_message {
    int32_t n;
    const int32_t *labels;
    const double *values;
} fgi_message;

typedef struct fgi_argmax {
    int64_t state;    /* flat index in the factor's variable order; -1: every state is forbidden or excluded */
    double value;     /* -INFINITY when state is -1 */
} fgi_argmax;

/* Per-thread scratch and counters. */
typedef struct fgi_oracle_scratch fgi_oracle_scratch;
fgi_oracle_scratch *fgi_oracle_scratch_create(int32_t max_card, int32_t max_arity);
void fgi_oracle_scratch_free(fgi_oracle_scratch *w); /* NULL is fine */
int64_t fgi_oracle_touched(const fgi_oracle_scratch *w); /* entries read through this scratch: walks, bounds, sorts */
int64_t fgi_oracle_calls(const fgi_oracle_scratch *w);

/* What the oracle is asked about: one factor's view of one table. `order` may be NULL: then the table is scanned
 * (small tables: as fast as anything else). rows/cols/cards are as the factor sees them. */
typedef struct fgi_oracle_query {
    fgi_view view;
    const int32_t *cards;         /* label counts of the factor's variables, in order; NULL is fine for pairwise factors */
    fgi_order *order;
    const fgi_message *messages;  /* one per variable; NULL: all zero */
    int64_t excluded;             /* flat state that may not be returned; -1: none */
} fgi_oracle_query;

/* FGI_NO_MEMORY when a lazy sort could not allocate. */
fgi_rc fgi_oracle_argmax(const fgi_oracle_query *q, fgi_oracle_scratch *w, fgi_argmax *out);
/* The same by a dense scan; the reference. */
void fgi_oracle_scan(const fgi_oracle_query *q, fgi_argmax *out);

/* The order of a factor's table in this model, made on first use and shared; NULL with *rc == FGI_OK for tables that are
 * better scanned (small or implicit ones). Safe from several threads. The model (or a snapshot) keeps it alive. */
fgi_order *fgi_model_order(const fgi_model *m, int32_t table, fgi_rc *rc);

#endif
