/* exact/costs.h - a model as a network of whole-number costs whose form changes while its costs do not: what the search
 * with soft arc consistency works on (method "edac").
 *
 * Every labeling x costs  lower + sum_i unary_i(x_i) + sum_f cost_f(x_f)  with terms that are never negative: `lower`
 * is a bound. Costs move between the terms: a factor's into the unaries of its variables (projection), unaries' into
 * a factor (extension). A factor keeps its table, and what has been moved in `shift`:
 * cost_f(x) = table_f(x) - sum_k shift_k(x_k). All changes are on a trail, and are undone by going back along it. Whole
 * numbers make all of it exact.
 *
 * Invariants, outside of the functions that change a network (fgi_costs_check looks at them):
 *   1  `domain` of a variable is a permutation of its labels, `place` the inverse; the first `size` are alive.
 *   2  The unary of a live label is from 0 to `most`. Unaries, shifts and `lower` of other labels mean nothing.
 *   3  Slots of a factor are consecutive; slot_factor, slot_other, slot_place and adj say the same of each other.
 *   4  A place in `adj` has its bit in `live` exactly where the factor there is not spent.
 *   5  What a factor that is not spent costs is never below 0 for live labels; both tables of a pair are the same.
 *   6  0 <= lower, and lower < upper <= FGI_COST_LARGEST unless there is a conflict.
 *   7  A queue's count is the number of its bits, all of variables, between its first and last word.
 *   8  Every entry of the trail says where; undone, the network is as it was, dropped variables included. */
#ifndef FGI_COSTS_H
#define FGI_COSTS_H
#include "model/model.h"
#include "base/assert.h"
#include "base/util.h"

#define FGI_COST_FORBIDDEN 0x4000000000000000 /* a table entry that no shifts bring down to a cost that matters */
#define FGI_COST_LARGEST 0x80000000000000     /* 2^55: no labeling that matters costs as much */

/* Propagation does not chase less than this share of the room between lower and upper bound. Whole steps are hardly
 * ever below. */
enum { FGI_COSTS_GRAIN_BITS = 12 };
enum {
    FGI_COSTS_ARITY = 16,  /* variables of a factor, at most */
    FGI_COSTS_CELLS = 4096 /* live states: a factor with more waits until it has fewer */
};

/* What has become of a factor: all of it is in unaries, no choice being left in it, or it is in a pairwise factor. */
enum { FGI_SPENT = 1, FGI_MOVED = 2 };

typedef struct fgi_costs_change {
    int64_t *where, before;
} fgi_costs_change;

/* Variables that wait for something, as bits: in and out in the order of their numbers. */
typedef struct fgi_costs_queue {
    uint64_t *words;
    int32_t count;
    int32_t first, last; /* no word before or after these has a bit, unless count is 0 */
} fgi_costs_queue;

/* A variable that the search need not decide: drop.c. */
typedef struct fgi_costs_drop {
    int32_t var, n_factors;
    int32_t factor[2];       /* that it had */
    int32_t made;            /* the pairwise factor that stands for them, -1: none was made */
    int64_t adj[2];          /* places that the made factor has taken in the lists of the neighbours */
    int32_t slot[2];         /* slots that had these places before */
    int64_t *table, entries; /* memory for a factor that is made, which stays */
} fgi_costs_drop;

typedef struct fgi_costs {
    int32_t n, n_factors, n_slots; /* variables, factors, (factor, variable) pairs */
    const int32_t *card;
    int64_t *begin;  /* n + 1 offsets into what follows, by label */
    int64_t *unary;  /* costs of labels; live ones are below upper - lower */
    int32_t *domain; /* a permutation of the labels, live ones first */
    int32_t *place;  /* where a label is in it */
    int64_t *size;   /* per variable: live labels */
    int64_t *most;   /* per variable: no live label's unary is above */
    int32_t *zero;   /* per variable: the label that last had everything for nothing (a hint) */
    int32_t *slot_begin;
    int32_t *slot_var, *slot_factor;
    int32_t *slot_other;  /* the other slot of a pairwise factor, -1 for others */
    int64_t *slot_shift;  /* offsets into shift and support */
    int64_t *slot_stride; /* strides of the slot's variable in the table */
    int8_t *slot_log;     /* with three variables or more: the stride's logarithm if it is a power of two; else -1 */
    int64_t *shift;
    int32_t *support; /* per label of a slot: the state (pairwise: the other's label) that last cost nothing (a hint) */
    int64_t **table;  /* per slot, the slot's variable being the rows: pairwise factors have two; others share one */
    int64_t *storage;
    int64_t *spent;           /* per factor: not 0 (FGI_SPENT, FGI_MOVED) when nothing is left in it */
    double *weight;           /* per factor: how often it ended a branch */
    int64_t *load;            /* per factor: the weights of those that are in it now */
    int32_t *adj_begin, *adj; /* slots of a variable */
    int64_t *live;            /* per place in `adj`, as bits: the factor there is not spent (fgi_costs_next) */
    int32_t *slot_place;      /* where a slot is in `adj`, unless another has taken its place (drop.c) */
    int64_t *meet_begin;      /* per factor of the model: offset into `meet`, if there are factors of three variables */
    int32_t *meet;            /* per two of its variables (fgi_costs_pair_at): the pairwise factor on them, -1: none */
    int32_t *met;             /* scratch: pairwise factors that costs have come to */
    int64_t lower, upper;     /* labelings that cost `upper` or more are not wanted */
    int64_t range;            /* no labeling that is not forbidden costs more */
    int64_t pruned_at;        /* upper - lower when labels were last compared with it */
    int64_t grain;            /* costs below it are not worth a step of propagation, unless no choice is left in them */
    /* What a cost means: the score is at most origin - quantum * cost, rounding apart. */
    fgi_sum origin;
    double quantum, error;
    int in_steps;     /* quantum is a step of the scores */
    int infeasible;   /* from the start */
    int32_t conflict; /* 0: none, 1: upper reached or a variable without labels */
    int32_t culprit;  /* the factor at work, -1: none */
    fgi_costs_change *trail;
    int64_t n_trail, trail_capacity;
    int recording;                         /* changes go to the trail */
    fgi_rc failure;                        /* no memory for the trail */
    fgi_costs_queue unsupported;           /* variables that lost labels: supports of their neighbours */
    fgi_costs_queue bare;                  /* variables that may have no label for nothing */
    fgi_costs_queue dearer, directed;      /* variables with a label that was for nothing: neighbours to look at */
    fgi_costs_queue existential;           /* variables to look at with all their factors */
    fgi_costs_queue decided;               /* variables with one label left: factors may be pairwise now */
    fgi_costs_queue loose;                 /* variables that have lost a factor */
    int may_drop;                          /* these may be dropped */
    fgi_costs_drop *drops;                 /* n of them */
    uint8_t *dropped;                      /* per variable */
    int64_t n_dropped;                     /* dropped variables as the trail has it */
    int64_t n_drops;                       /* dropped variables as the network is */
    int32_t n_made;                        /* how many factors may be made */
    int64_t made_entries;                  /* entries in the tables of made factors */
    int64_t *cells, *states;               /* scratch: live states of a factor */
    int64_t *pulled, *used, *total, *sums; /* scratch: by label */
    uint32_t *stamp, stamps;               /* per variable: its unary is spoken for */
    int32_t sweeps, sweep_at;              /* dual ascent (sweeps.c): sweeps done, and where the next one is */
    int64_t swept_from;                    /* `lower` when their gain was last looked at */
    int64_t work, bytes;
} fgi_costs;

/* Whether the model has no more than max_entries costs, tables counted twice, and no factors of too many variables. */
int fgi_costs_fit(const fgi_model *m, int64_t max_entries);
/* Costs of a model that fits, whose best known score is `best` (-INFINITY: none), to be told apart by `tolerance`. */
fgi_rc fgi_costs_create(const fgi_model *m, double best, double tolerance, fgi_costs **out);
void fgi_costs_free(fgi_costs *c);
#ifdef FGI_CHECKED
void fgi_costs_check(const fgi_costs *c);
#endif
/* No labeling that costs at least this has a higher score. */
double fgi_costs_score(const fgi_costs *c, int64_t cost);
/* The least cost whose labelings are no better than `score`. */
int64_t fgi_costs_least(const fgi_costs *c, double score);

/* ---- changes (costs_change.c) ---------------------------------------------------------------------------------- */

void fgi_costs_undo(fgi_costs *c, int64_t mark);
void fgi_costs_remove(fgi_costs *c, int32_t i, int32_t a);
void fgi_costs_raise(
    fgi_costs *c, int32_t i, int32_t a, int64_t cost); /* a unary; the label goes if that is too much */
void fgi_costs_count_drop(fgi_costs *c);
/* `cost` is taken from the factor of the slot and added to the label's unary; the label goes if that is too much. */
void fgi_costs_project(fgi_costs *c, int32_t slot, int32_t a, int64_t cost);
/* The other way. The unary must have it. */
void fgi_costs_extend(fgi_costs *c, int32_t slot, int32_t a, int64_t cost);
void fgi_costs_spend(fgi_costs *c, int32_t f, int how); /* nothing is left in the factor */
void fgi_costs_load(fgi_costs *c, int32_t f, int64_t weight);
/* Label a of a pairwise factor's first variable and label b of its second cost more together. */
void fgi_costs_add(fgi_costs *c, int32_t f, int32_t a, int32_t b, int64_t cost);
/* What all labels of a variable cost goes into `lower`; labels that cost too much go. */
void fgi_costs_settle(fgi_costs *c, int32_t i);
/* Another `upper`. */
void fgi_costs_limit(fgi_costs *c, int64_t upper);

static inline int fgi_costs_alive(const fgi_costs *c, int32_t i, int32_t a) {
    fgi_assert(i >= 0 && i < c->n && a >= 0 && a < c->card[i]);
    return c->place[c->begin[i] + a] < c->size[i];
}
static inline int32_t fgi_lowest_bit(uint64_t word) {
    fgi_assert(word != 0);
#if defined(__GNUC__)
    return __builtin_ctzll(word);
#else
    int32_t bit = 0;
    while (!(word >> bit & 1)) bit++;
    return bit;
#endif
}
/* The first place in `adj` from k on that has a factor of i that is not spent, -1: there is none. Deep in the tree most
 * are spent: of those looked at by propagation a fifth (factors of three) to three quarters (cliques). Bits are read
 * step by step, so that factors that are spent or come back on the way count. */
static inline int32_t fgi_costs_next(const fgi_costs *c, int32_t i, int32_t k) {
    const int32_t end = c->adj_begin[i + 1];
    fgi_assert(i >= 0 && i < c->n && k >= c->adj_begin[i] && k <= end);
    while (k < end) {
        const uint64_t rest = (uint64_t)c->live[k >> 6] >> (k & 63);
        if (rest) {
            k += fgi_lowest_bit(rest);
            return k < end ? k : -1;
        }
        k = (k | 63) + 1;
    }
    return -1;
}
static inline int32_t fgi_costs_first(const fgi_costs *c, int32_t i) { return fgi_costs_next(c, i, c->adj_begin[i]); }
static inline void fgi_costs_push(fgi_costs_queue *q, int32_t i) {
    fgi_assert(i >= 0 && q->count >= 0);
    const uint64_t bit = (uint64_t)1 << (i & 63);
    const int32_t w = i >> 6;
    if (!q->count || w < q->first) q->first = w;
    if (!q->count || w > q->last) q->last = w;
    q->count += !(q->words[w] & bit);
    q->words[w] |= bit;
}
int32_t fgi_costs_pop_first(fgi_costs_queue *q);
int32_t fgi_costs_pop_last(fgi_costs_queue *q);

/* ---- supports (support.c) -------------------------------------------------------------------------------------- */

/* Moves to the slot's variable what every state of its factor costs, label by label. `full`: with the unaries of the
 * factor's other variables. */
void fgi_costs_pull(fgi_costs *c, int32_t slot, int full);
/* Is there a label of i that costs nothing with all its factors and their variables' unaries? If not, `lower` rises. */
void fgi_costs_exist(fgi_costs *c, int32_t i);

/* ---- factors that have become pairwise (meet.c) ---------------------------------------------------------------- */

/* Where in `meet` the k-th variable of a factor and a later one are. Their pairwise factor is one of the model's, or
 * was added, spent from the start, because several factors have both variables (costs_pairs.h). Costs of different
 * factors are stronger in one table: x or y, and x or not y, is x. */
static inline int32_t fgi_costs_pair_at(int32_t k, int32_t later) {
    fgi_assert(k >= 0 && k < later);
    return later * (later - 1) / 2 + k;
}
/* j has one label left: factors with two variables that have more go into the pairwise factors on these. */
void fgi_costs_meet(fgi_costs *c, int32_t j);
/* The factors that are in a pairwise one now have ended a branch, too. */
void fgi_costs_blame_met(fgi_costs *c, int32_t pair);

/* ---- variables with few factors (drop.c) ------------------------------------------------------------------------ */

/* If i has at most two factors left, each with one other variable that has a choice, what is best for i goes into a
 * unary or a pairwise factor of these: i is not decided any more, but found when all others are. */
void fgi_costs_consider_drop(fgi_costs *c, int32_t i);
/* After going back along the trail. */
void fgi_costs_undrop(fgi_costs *c);
/* The labels of variables that were dropped, given all others. */
void fgi_costs_find_dropped(fgi_costs *c, int32_t *labels);

/* ---- symmetry (symmetry.c) -------------------------------------------------------------------------------------- */

/* Where labels can be renamed and nothing changes, as in colouring and maximum cuts: of labelings that are renamings of
 * each other one stays. Before anything has moved. */
void fgi_costs_break_symmetry(fgi_costs *c, const fgi_model *m);

/* ---- dual ascent (sweeps.c) ------------------------------------------------------------------------------------ */

/* Sweeps at the root, where nothing waits and nothing is on the trail, as long as they pay. Returns 0 when `work_limit`
 * has been passed, to be called again; else 1, with everything waiting for propagation. */
int fgi_costs_sweep(fgi_costs *c, int64_t work_limit);

/* ---- propagation (propagate.c) --------------------------------------------------------------------------------- */

/* Existential directional arc consistency, from what waits. Returns 0 when `work_limit` has been passed, to be called
 * again; else 1, with c->conflict. */
int fgi_costs_propagate(fgi_costs *c, int64_t work_limit);

#endif
