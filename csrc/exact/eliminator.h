/* exact/eliminator.h - what exact/eliminator.c and exact/pose.c share: the problem at hand and where its run stands. */
#ifndef FGI_ELIMINATOR_H
#define FGI_ELIMINATOR_H
#include "exact/bucket.h"
#include "base/assert.h"

enum { SPARES = 4 }; /* freed tables that are kept: a bucket has few at a time */

typedef struct message {
    double *values; /* over bag(p); NULL: none */
    void *arg;      /* best labels, when the inputs were freed */
    int64_t size;
    int32_t next; /* next message of the same consumer; -1 ends the list */
    int normal;   /* its maximum has been moved into the value */
} message;

/* Invariants, once there is an order (check in exact/eliminator.c looks at them):
 *   1  `local` of a variable is its position, `var` the inverse; variables that are held have -1.
 *   2  The bag of a position has later ones only, descending; its last is who consumes the message.
 *   3  A factor's scope descends; the factor is in the list of the last position of its scope, and in no other.
 *   4  Messages in the list of a position come from earlier ones that it is to consume, and have values.
 *   5  Positions before `p` are done; a bucket that is open has blocks left. */
struct fgi_eliminator {
    const fgi_model *m;
    const int32_t *labels; /* labels of the variables that are held */
    double forbidden;
    int32_t n;
    int32_t *local;      /* per variable: index in the subset, after ordering its position; -1: held */
    int32_t *var, *card; /* per subset index, after ordering per position */
    int64_t *unary_at;
    double *unary;
    int64_t n_factors; /* with at least two free variables */
    int32_t *factor, *factor_next;
    int64_t *scope_begin;
    int32_t *scope;
    fgi_orderer *orderer;
    const fgi_bags *bags;
    int32_t *first_factor, *first_message;
    message *messages;
    int32_t *scratch; /* n: permutation */
    /* the run */
    fgi_bucket bucket;
    double *slices; /* dense copies of the present bucket's factors */
    int32_t *slice_dims;
    double *arena; /* messages of small problems */
    int64_t arena_used;
    int32_t p;
    int open;
    int64_t block; /* next block of the open bucket */
    double work_done;
    fgi_sum value;
    double error; /* rounding of `value` so far */
    double total; /* magnitudes of the best scores of all factors and variables */
    struct {
        double *values;
        int64_t size;
    } spare[SPARES];         /* freed tables, for reuse: fresh pages are not free */
    int32_t n_messages_held; /* messages[0 .. n) may own memory */
    int keep;
    int64_t var_capacity, card_capacity, unary_at_capacity, unary_capacity, factor_capacity, next_capacity,
        begin_capacity, scope_capacity, first_factor_capacity, first_message_capacity, message_capacity,
        scratch_capacity, slice_capacity, dims_capacity, arena_capacity;
};

/* Frees what the messages of the last run own. */
void fgi_eliminator_drop_messages(fgi_eliminator *e);

/* For runs of other kinds than fgi_eliminator_run. Bucket p's inputs into e->bucket; unary messages are added to its
 * unary scores unless that has been done (`again`). */
fgi_rc fgi_eliminator_collect(fgi_eliminator *e, int32_t p, int again);
/* The message of p joins the inputs of the bucket that consumes it. */
void fgi_eliminator_send(fgi_eliminator *e, int32_t p);
/* The sum of bucket p at every label of its variable, given the labels (by variable) of the later ones; returns its
 * maximum. Leaves the variable at another label. All messages must have been kept. */
double fgi_eliminator_row(const fgi_eliminator *e, int32_t p, int32_t *labels, double *row);

static inline double raise_score(const fgi_eliminator *e, double x) { return x > e->forbidden ? x : e->forbidden; }

#endif
