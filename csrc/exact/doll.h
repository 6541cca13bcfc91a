/* exact/doll.h - a depth-first search in a static order, over the last variables of it alone: what Russian doll search
 * (exact/dolls.c) solves again and again, with one variable more each time.
 *
 * Variables are named by their places in the order, labels by their places among those that are left. A doll is the
 * network of the variables from `start` on, without factors that have others. Its search gives labels to start,
 * start + 1, ...: factors with one variable left add to the costs of that one's labels (`extra`), and a branch costs
 * at least  what is decided + sum_p min_a extra_p(a) + the optimum of the doll of those that are not decided.
 * The sum is a bound: the last part knows no factor of which a variable is decided, and `extra` knows no other. */
#ifndef FGI_DOLL_H
#define FGI_DOLL_H
#include "base/arena.h"
#include "exact/costs.h"

/* A factor, once all its variables but the last are decided. */
typedef struct fgi_doll_factor {
    const int64_t *table;
    int64_t stride;               /* stride of the last variable in the table */
    int32_t first, last;          /* places */
    int32_t given_begin, n_given; /* the others, in `given` */
} fgi_doll_factor;

typedef struct fgi_doll_given {
    int32_t place;
    int64_t stride;
} fgi_doll_given;

typedef struct fgi_doll_frame {
    int64_t mark;       /* length of the trail before the variable was decided */
    int64_t cost, rest; /* labels as the network numbers them */
    int64_t key;        /* cost of the label it has, -1: none yet */
    int32_t chosen;     /* that label */
} fgi_doll_frame;

typedef struct fgi_doll {
    fgi_arena arena;
    int32_t n, start, at;
    int32_t *order;                     /* variables of the network */
    int64_t *begin;                     /* n + 1 offsets into what follows, by label */
    int32_t *label;                     /* per factor: its decided variables */
    int64_t *own, *extra;               /* costs */
    int64_t *least;                     /* per place: the least extra */
    int32_t *factor_begin;              /* n + 1: per place, the factors whose last but one variable is there */
    fgi_doll_factor *factor;            /* at a place, those whose first variable is the latest come first */
    int32_t *active;                    /* per place: so many of them are in the doll */
    int32_t *entering_begin, *entering; /* factors by their first variables */
    fgi_doll_given *given;              /* n + 1: optima of the dolls that are done */
    fgi_doll_frame *frame;              /* per place */
    int64_t *optimum;                   /* n + 1: of the dolls that are done */
    int32_t *found;                     /* the best labeling of the doll */
    int64_t upper;                      /* labelings that cost as much are not wanted */
    fgi_costs_change *trail;
    int64_t n_trail, trail_capacity;
    int64_t nodes, work;
    double waiting; /* fgi_doll_order */
    int failed;     /* no memory for the trail */
} fgi_doll;

typedef enum fgi_doll_state { FGI_DOLL_GOES_ON, FGI_DOLL_FOUND, FGI_DOLL_DONE } fgi_doll_state;

/* Borrows the tables. The doll begins with no variables: start = n. */
fgi_rc fgi_doll_create(const fgi_costs *c, fgi_doll *d);
void fgi_doll_free(fgi_doll *d);
/* One variable more. `found` is extended by the label that costs least there; returns the cost of all of it, or
 * FGI_COST_FORBIDDEN. The caller sets `upper`. */
int64_t fgi_doll_enlarge(fgi_doll *d, int64_t cost_found);
/* From the first label of the doll on. */
void fgi_doll_again(fgi_doll *d);
/* Until the work is done, or a labeling that costs less than `upper` (frame[].chosen; *cost) has been found. */
fgi_doll_state fgi_doll_search(fgi_doll *d, int64_t work_limit, int64_t *cost);
/* The label of place p that costs least with what `found` has for later ones, into `found`. */
int64_t fgi_doll_extend(fgi_doll *d, int32_t p);

#endif
