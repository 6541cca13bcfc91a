/* exact/node.h - the compact problem of one node of the branch-and-bound tree, and dual ascent on it.
 *
 * A node owns dense copies of what is left of the model: live labels only, fixed variables folded away, the messages of
 * its parent folded into its tables (a reparametrisation). So a node costs what is left, and a child is cheaper than
 * its parent.
 *
 * Invariants of a problem that is complete (fgi_node_check looks at them):
 *   1  `begin` has the sums of `card`; `alive` counts the labels whose unary is not -INFINITY.
 *   2  Messages are numbers, and 0 at labels that are dead.
 *   3  A factor has two variables or more, all of the problem, and as many states as their labels have pairs.
 *   4  The links of a variable ascend by factor, and agree with the slots about variable and message.
 *   5  The bound is a number or -INFINITY, which says that a variable or a factor has nothing left. */
#ifndef FGI_NODE_H
#define FGI_NODE_H
#include "base/arena.h"
#include "base/assert.h"
#include "base/meter.h"
#include "base/util.h"
#include "model/model.h"
#include "model/reweight.h"

enum { FGI_NODE_ARITY = 64 }; /* variables of a factor: with two labels each there are more states than memory */

typedef struct fgi_node {
    const fgi_kernels *kernels;
    int32_t n, n_factors, n_slots; /* variables; factors; (factor, variable) pairs */
    int32_t max_card;              /* most labels of a variable in the root model; sizes the scratch memory */
    int32_t *card;                 /* live labels when the problem was made */
    int32_t *alive;                /* live labels now */
    int64_t *begin;                /* n + 1 offsets into unary, belief and label */
    double *unary;                 /* -INFINITY at dead labels; the maximum is moved into `constant` by every update */
    double *belief;                /* unary plus all incoming messages, maximum 0, as of the variable's last update */
    int32_t *root_var;             /* per variable: its index in the root model */
    int32_t *label;                /* per label: its number in the root model */
    int32_t *slot_begin;           /* n_factors + 1 offsets into the slots */
    int32_t *slot_var;
    int64_t *slot_message; /* n_slots offsets into messages */
    double *message;       /* mu: factor minus mu, unary plus mu; 0 at dead labels */
    const double **table;  /* per factor: its scores; the root borrows the model's where it can */
    int64_t *states;       /* per factor: how many */
    double *owned;         /* what `table` does not borrow */
    double *factor_max;    /* max of the reparametrised factor, as long as no update has moved it */
    int32_t *link_begin;   /* n + 1 offsets into links */
    fgi_link *links;       /* links of a variable, by ascending factor */
    double bound;          /* no labeling of this problem scores more, up to fgi_node_error: constant + all maxima */
    double carry;          /* what `bound` has lost to rounding so far */
    double removed;        /* largest bound of a label removed by updates, up to fgi_node_error; the caller resets it */
    /* What the rounding of the bound is made of: see fgi_node_error. */
    double error;              /* rounding of the tables, inherited from the parent */
    double magnitude;          /* sum of the magnitudes of the root's potentials */
    double largest[2];         /* largest multipliers of live labels, in this sweep and in the one before */
    int32_t additions, sweeps; /* that go into one term; since the problem was made */
    fgi_arena arena;           /* all of it */
    int64_t work;              /* entries read by updates; the caller takes it away */
    int keeps_labels;          /* updates remove labels only where nothing allows them: exact/speak.h does the rest */
} fgi_node;

/* What updates of a problem and of all its descendants work in. */
typedef struct fgi_node_scratch {
    double *nu;    /* max_card */
    double *minus; /* max_card for each variable of a factor */
    double *wide;  /* fgi_marginal_scratch */
} fgi_node_scratch;
void fgi_node_scratch_take(fgi_node_scratch *scratch, const fgi_model *m, fgi_arena *arena);

/* The whole model, which must outlive the problem. Weighted, transposed and implicit tables are expanded;
 * FGI_UNSUPPORTED when that would pass max_entries. To be gone on with until fgi_node_build says that the problem is
 * complete: nothing else may be done with it before, but to free it. */
typedef struct fgi_node_builder {
    const fgi_model *m;
    fgi_node *problem;
    int stage;
    int64_t at; /* the next variable or factor of the stage */
    int64_t message_at, entry_at;
    fgi_sum bound;
} fgi_node_builder;
fgi_rc fgi_node_begin(const fgi_model *m, int64_t max_entries, fgi_node_builder *b);
int fgi_node_build(fgi_node_builder *b, fgi_meter *meter); /* 1: complete; 0: the time is over */
/* What is left of `p` when variable `var` takes its label `a` (indices of p); dead labels and fixed variables are
 * dropped. FGI_UNSUPPORTED when more than max_entries are left. */
fgi_rc fgi_node_child(const fgi_node *p, int32_t var, int32_t a, int64_t max_entries, fgi_node **out);
/* Dual variables from elsewhere, in the layout of fgi_solver_messages; only for a problem made from the whole model. */
void fgi_node_set_messages(fgi_node *p, const double *mu, fgi_node_scratch *scratch);
void fgi_node_free(fgi_node *p);
#ifdef FGI_CHECKED
void fgi_node_check(const fgi_node *p);
#endif

/* One update of dual ascent at `var`: pull the max-marginals of all its factors, remove the labels that cannot beat
 * `cutoff`, push back to the factors that go on in the direction of the sweep. `fresh`: no sweep in the other direction
 * has come just before this one, so nothing may be reused. Returns the number of labels removed, -1 when the problem
 * cannot beat the cutoff any more. */
int32_t fgi_node_update(fgi_node *p, int32_t var, int forward, int fresh, double cutoff, fgi_node_scratch *scratch);
/* bound and carry from a sum of all terms. */
void fgi_node_set_bound(fgi_node *p, const fgi_sum *sum);
/* How far above `bound` a labeling can be because of rounding. Tables and unaries of a node carry what its ancestors
 * have rounded; the terms of the bound are sums of a few of them and of multipliers. As in fgi_safe_bound, scores far
 * below the best do not count. */
double fgi_node_error(const fgi_node *p);
/* Removes one label by hand; returns 0 when it was the last one. */
int fgi_node_remove(fgi_node *p, int32_t var, int32_t a);
/* Labels every variable in order, given the earlier ones and the messages of the later ones. labels: p's indices. */
void fgi_node_decode(const fgi_node *p, int32_t *labels, fgi_node_scratch *scratch);

#endif
