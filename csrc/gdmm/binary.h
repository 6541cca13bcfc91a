/* gdmm/binary.h - what the files of Algorithm 9 share. gdmm/binary.c drives; gdmm/binary_setup.c folds the tables;
 * gdmm/binary_active.c decides which factors take part; gdmm/binary_pass.c is one iteration and the certificate;
 * gdmm/binary_labeling.c finds labelings; gdmm/binary_sweep.c has the sweeps over all factors. */
#ifndef FGI_GDMM_BINARY_H
#define FGI_GDMM_BINARY_H
#include "base/array.h"
#include "gdmm/gdmm.h"

enum {
    BINARY_CHUNK = 20000,  /* factors between two looks at the clock */
    BINARY_BOUND_EVERY = 8 /* iterations, as in gdmm/gdmm.c */
};

/* The relaxation leaves many variables near 1/2, where a negative factor between two of them asks for nothing: only
 * when all else has settled are the factors of variables below this made active, too. */
#define BINARY_SURELY_ON 0.75
#define BINARY_ON 1e-9 /* a variable counts as on above it in the end: rounding is below */

typedef struct binary_link { /* an active factor */
    int32_t i, j;
    int32_t next[2]; /* ends of links, twice the link plus 0 or 1: the list of the ends at a variable; -1 closes it */
    int64_t factor;
    double t, lambda[2], copy[2];
} binary_link;

typedef enum binary_stage {
    FOLD,
    COUNT,
    FILL,
    ACTIVATE,
    FACTORS,
    GATHER,
    VARIABLES,
    MULTIPLIERS,
    BOUND,
    ROUND,
    WEIGH,
    ASCEND,
    PACK,
    FORWARD,
    BACKWARD
} binary_stage;

typedef struct binary_rows { /* all factors, by their earlier ends: for sweeps */
    int64_t *begin;          /* per variable; the sizes of rows until sweeps begin */
    int32_t *far;            /* later end; NULL: sweeps have not begun */
    double *t, *lambda;      /* lambda: of the end whose turn was last */
    double *before, *after;  /* per variable: what its factors to nodes before and after it offer */
    double *share;           /* per variable: what each factor gets in a backward pass */
    double *start;           /* lambda of active factors at their later ends, until they are packed */
    double stall_bound;      /* some sweeps ago */
    int decided;             /* a forward pass has decided the labels */
} binary_rows;

typedef struct binary {
    const fgi_model *model;
    binary_stage stage;
    int64_t cursor; /* where the stage goes on after a look at the clock */
    int64_t work;   /* since then, in factors */
    fgi_sum constant;
    double magnitude;
    double *u, *charge, *x, *sum; /* per variable */
    int64_t *degree;              /* active factors of a variable */
    int32_t *on;                  /* variables that have been on, in that order */
    int64_t n_on;
    uint8_t *is_on, *ascending; /* ascending: the adjacency of the variable is sorted by neighbour */
    int32_t **by_neighbour;     /* for the others, sorted copies, made when first needed */
    int64_t *positive_begin;    /* where the factors with t > 0 of a variable begin */
    int32_t *positive;
    fgi_ranking **ranking;      /* by their t those that are not active; made when first needed */
    int32_t *positive_take;     /* how many were made active at once; 0: none yet */
    fgi_oracle_scratch *oracle; /* that is asked for the largest */
    uint8_t *active;            /* one bit per factor */
    binary_link *links;
    int64_t n_links, capacity, activated;
    double rho, scale, primal, dual, last_bound;
    double on_from; /* x above which a variable counts as on: first BINARY_SURELY_ON, in the end next to nothing */
    int64_t next_adapt, next_bound, next_activate;
    fgi_sum sum_of_bound;
    double size_of_bound; /* magnitudes of what went into it */
    int32_t *labels;
    double *worth;                 /* what a variable that is on is worth to the score of these labels */
    int64_t label_work, pass_work; /* links visited by labelings and by iterations */
    double best;                   /* best running score of the labelings found here */
    int32_t *first;                /* per variable: its list of ends of links, -1 when it is empty */
    int32_t round;                 /* round of the ascent, and whether it has changed anything */
    int changed;
    int settled;
    double window_bound; /* at the beginning of the window of certificates */
    int32_t window;      /* certificates in it */
    binary_rows rows;
    int sweeps_first;        /* most factors are expected to take part: there are no iterations */
    double decoded, labeled; /* score of the labels of the last forward pass; and when a labeling last began */
    fgi_arena arena;         /* what does not grow */
} binary;

static inline int32_t binary_neighbour(const fgi_structure *s, int32_t f, int32_t i) {
    fgi_assert(f >= 0 && f < s->n_factors);
    const int32_t *vars = fgi_factor_vars(s, f);
    return vars[0] == i ? vars[1] : vars[0];
}

/* t of a table: what it has beyond a constant and two unaries. */
static inline double binary_interaction(const fgi_view *v) {
    fgi_assert(v->arity == 2 && v->rows == 2 && v->cols == 2);
    return (fgi_view_at2(v, 1, 1) - fgi_view_at2(v, 1, 0)) - (fgi_view_at2(v, 0, 1) - fgi_view_at2(v, 0, 0));
}

/* A piece of a pass over n indices; returns 1 when it was the last. */
int binary_each(binary *b, int64_t n, void (*body)(binary *, int64_t));

/* gdmm/binary_setup.c: memory, and the one linear pass. Functions that return int: 0 when memory is short. */
fgi_rc binary_create(fgi_solver *solver, fgi_error *err);
void binary_destroy(fgi_solver *solver);
int binary_set_up(fgi_solver *solver, binary *b);

/* gdmm/binary_active.c: in pieces; *complete says whether it was the last. */
int binary_turn_on(binary *b, int32_t i); /* the factors between i and all variables that have been on */
int binary_activate_more(binary *b, int *complete);

/* gdmm/binary_pass.c */
void binary_pass(fgi_solver *solver, binary *b);   /* a piece of an iteration */
void binary_begin_bound(binary *b);                /* the bound is next */
int binary_certify(fgi_solver *solver, binary *b); /* a piece of it; returns 1 when it is there */

/* gdmm/binary_labeling.c: a piece of a labeling. */
int binary_label(fgi_solver *solver, binary *b);
int binary_label_is_due(const fgi_solver *solver, const binary *b);

/* gdmm/binary_sweep.c: whether to begin with sweeps, once tables are folded, and whether to go over to them; memory for
 * them (0: there is none); a piece of one; the next one. */
int binary_expects_most(const fgi_solver *solver, const binary *b);
int binary_is_stuck(const fgi_solver *solver, binary *b);
int binary_begin_sweeps(fgi_solver *solver, binary *b);
void binary_sweep(fgi_solver *solver, binary *b);
void binary_begin_forward(binary *b);

#endif
