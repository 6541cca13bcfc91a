/* primal/search.h - the parts of the primal search (primal/search.c): the current labeling, regions, and the choice
 * among moves. */
#ifndef FGI_PRIMAL_SEARCH_H
#define FGI_PRIMAL_SEARCH_H
#include "primal/join.h"
#include "primal/labeling.h"
#include "primal/trail.h"
#include "primal/thin.h"
#include "solver.h"
#include "primal/block.h"

extern const fgi_solver_ops fgi_search_ops;

/* A choice among few options by success per operation, seeded and independent of the clock. An option that has had no
 * success for long is chosen in inverse proportion to its cost: all get the same share of the work. */
enum { FGI_BANDIT_ARMS = 40 };
typedef struct fgi_bandit {
    int32_t n;
    double success[FGI_BANDIT_ARMS], cost[FGI_BANDIT_ARMS];
} fgi_bandit;
void fgi_bandit_init(fgi_bandit *b, int32_t n, double first_cost);
int32_t fgi_bandit_choose(const fgi_bandit *b, fgi_rng *rng);
void fgi_bandit_learn(fgi_bandit *b, int32_t arm, double success, double operations); /* success: about 1, 0 for none */

/* Connected sets of about n variables around a variable: compact (breadth first) or straggling (random growth). */
typedef struct fgi_region fgi_region;
fgi_region *fgi_region_create(const fgi_model *m, fgi_arena *arena); /* which remembers a failure */
int64_t fgi_region_grow(fgi_region *r, int32_t from, int64_t n, int compact, fgi_rng *rng);
int64_t fgi_region_all(fgi_region *r, fgi_rng *rng);
/* Where two labelings differ, one connected component after the other; the last variable v of each is written as ~v. */
int64_t fgi_region_components(fgi_region *r, const int32_t *a, const int32_t *b);
int32_t *fgi_region_variables(fgi_region *r); /* the last one grown */

/* Good labelings that differ from each other; the worst makes room for a better one. */
enum { FGI_ELITES = 32 };
typedef struct fgi_elites {
    int64_t n_vars;
    int32_t n, most; /* that there is memory for */
    int32_t *labels[FGI_ELITES];
    int64_t violations[FGI_ELITES];
    double score[FGI_ELITES];
} fgi_elites;
/* Returns 0 when memory is short (the labeling is then not kept). */
int fgi_elites_add(fgi_elites *e, const int32_t *labels, int64_t violations, double score);
void fgi_elites_init(fgi_elites *e, int64_t n_vars);
void fgi_elites_free(fgi_elites *e);

/* Towards a labeling without violations (primal/repair.c), by changes of `local`, which is borrowed. */
typedef struct fgi_repair fgi_repair;
fgi_repair *fgi_repair_create(const fgi_model *m, fgi_labeling *local); /* NULL: out of memory */
void fgi_repair_free(fgi_repair *r);
void fgi_repair_start(fgi_repair *r); /* from the present labeling; a pass over the factors */
int fgi_repair_step(fgi_repair *r, int64_t max_operations, fgi_rng *rng); /* 1: there are no violations any more */
void fgi_repair_end(fgi_repair *r); /* back to the labeling with the fewest violations */
int64_t fgi_repair_operations(const fgi_repair *r);

/* Tabu search over a region (primal/tabu.c), by changes of `local`, which is borrowed, as is the region. */
typedef struct fgi_tabu fgi_tabu;
/* In memory of the arena, which remembers a failure. */
fgi_tabu *fgi_tabu_create(const fgi_model *m, fgi_labeling *local, fgi_arena *arena);
void fgi_tabu_free(fgi_tabu *t);
/* Ends after `patience` changes without a new best labeling, which is then the present one again. */
fgi_rc fgi_tabu_start(fgi_tabu *t, const int32_t *vars, int64_t n, int64_t patience);
int fgi_tabu_run(fgi_tabu *t, int64_t max_operations, fgi_rng *rng); /* 1: it has ended */
fgi_trail *fgi_tabu_trail(fgi_tabu *t);                              /* the run under way */
int64_t fgi_tabu_operations(const fgi_tabu *t);

/* Tabu search by exchanges of labels (primal/swap.c), by changes of `local`, which is borrowed. */
typedef struct fgi_swap fgi_swap;
/* NULL: the model has no place for exchanges, or memory is short (then the arena says so). */
fgi_swap *fgi_swap_create(const fgi_model *m, fgi_labeling *local, fgi_arena *arena);
void fgi_swap_free(fgi_swap *t);
void fgi_swap_start(fgi_swap *t);                                    /* from the present labeling */
int fgi_swap_run(fgi_swap *t, int64_t max_operations, fgi_rng *rng); /* 1: it has ended, at its best labeling */
fgi_trail *fgi_swap_trail(fgi_swap *t);                              /* the run under way */
int64_t fgi_swap_operations(const fgi_swap *t);

/* Simulated annealing of the whole labeling (primal/anneal.c), by changes of `local`, which is borrowed. */
typedef struct fgi_anneal fgi_anneal;
fgi_anneal *fgi_anneal_create(const fgi_model *m, fgi_labeling *local); /* NULL: out of memory */
void fgi_anneal_free(fgi_anneal *anneal);
void fgi_anneal_start(fgi_anneal *anneal, int64_t budget, fgi_rng *rng);      /* operations until it is cold */
int fgi_anneal_run(fgi_anneal *anneal, int64_t max_operations, fgi_rng *rng); /* 1: it has ended */
int64_t fgi_anneal_operations(const fgi_anneal *anneal);

/* ---- the solver's state ------------------------------------------------------------------------------------- */

/* How many of each a move chooses from. */
enum {
    FGI_TABU_SIZES = 4,    /* regions of tabu search */
    FGI_REGION_SIZES = 10, /* regions of blocks, at most */
    FGI_TABLE_SIZES = 4,   /* limits on clique tables */
    FGI_KICKS = 5          /* ways to begin */
};

typedef enum fgi_primal_stage {
    FGI_PRIMAL_EPOCH,      /* choose where to start */
    FGI_PRIMAL_COMPONENTS, /* crossing: take over differing components one by one */
    FGI_PRIMAL_JOIN,       /* a search among all that the elites can be put together to */
    FGI_PRIMAL_ANNEAL,
    FGI_PRIMAL_ASCENT,    /* coordinate ascent from the start */
    FGI_PRIMAL_CONSTRUCT, /* it ended infeasible: feasible rounding */
    FGI_PRIMAL_REPAIR,    /* that took too long: min-conflicts */
    FGI_PRIMAL_CHOOSE,    /* choose a move */
    FGI_PRIMAL_PROPOSE,   /* alternatives for a fusion */
    FGI_PRIMAL_TABU,
    FGI_PRIMAL_SWAP,
    FGI_PRIMAL_THIN,
    FGI_PRIMAL_BLOCK,
    FGI_PRIMAL_APPLY, /* the block's answer into the labeling */
    FGI_PRIMAL_FOLLOW,
    FGI_PRIMAL_JUDGE
} fgi_primal_stage;

/* How an epoch starts. */
typedef enum fgi_primal_kind {
    FGI_PRIMAL_FIRST = -1, /* best unaries */
    FGI_PRIMAL_FRESH,
    FGI_PRIMAL_PERTURBED,
    FGI_PRIMAL_CROSSED,
    FGI_PRIMAL_ANNEALED,
    FGI_PRIMAL_JOINED, /* after a few fresh ones: all elites put together */
    FGI_PRIMAL_KINDS
} fgi_primal_kind;

/* What the variables of a block may choose from: all labels, or the present one and an alternative (fusion). */
typedef enum fgi_primal_fusion {
    FGI_FUSE_NONE,
    FGI_FUSE_SECOND, /* the best other label, given the rest */
    FGI_FUSE_RANDOM,
    FGI_FUSE_CONSTANT,
    FGI_FUSE_SHIFT,
    FGI_FUSE_NEIGHBOUR,
    FGI_FUSE_ELITE,
    FGI_FUSIONS
} fgi_primal_fusion;

/* What a move is: an exact block, tabu search, or tabu search by exchanges where these have a place. */
typedef enum fgi_primal_style { FGI_STYLE_BLOCK, FGI_STYLE_TABU, FGI_STYLE_SWAP, FGI_STYLES } fgi_primal_style;

typedef struct fgi_move {
    int32_t style_arm; /* fgi_primal_style */
    int32_t tabu_arm;  /* region size of a tabu search */
    int32_t block_arm, kick_arm, shape_arm, fusion_arm;
    int64_t n_region;
    int64_t cursor, n_proposed; /* progress of PROPOSE and APPLY */
    int32_t parameter;          /* parameter of the fusion: label, direction or elite */
    int32_t n_kicked;           /* the first of the region, held at their new labels during the first block */
    fgi_thin_options options;
    double begun; /* work done before this move */
    double shown; /* work done before its best labeling was last reported */
} fgi_move;

typedef struct fgi_primal {
    const fgi_model *model;
    fgi_labeling *local;
    fgi_construct *construct;
    fgi_repair *repair; /* made when it is first needed */
    fgi_region *region;
    fgi_thin *thin;
    fgi_block *block;
    fgi_tabu *tabu;
    fgi_swap *swap; /* NULL: exchanges have no place in this model */
    fgi_anneal *anneal;
    int64_t annealing;  /* operations of one: the last, or the first to be */
    double annealed;    /* work of the last */
    double short_epoch; /* work that an epoch may take on dense models before one, and after a short one */
    int dense;          /* variables have many neighbours: blocks of small width are a small part of them */
    double changes;     /* operations of changing every label once */
    fgi_rng rng;
    fgi_primal_stage stage;
    fgi_move now;
    fgi_bandit styles, tabus, blocks, shapes, kicks, fusions, kinds; /* a block is a region size times a table size */
    double style_work[FGI_STYLES], kind_work[FGI_PRIMAL_KINDS];
    int32_t n_regions;
    int64_t region_size[FGI_REGION_SIZES];
    int64_t cost_limit;           /* states in all tables of a block, at most */
    int32_t warm_up, warm_up_arm; /* moves over all variables still to be made, and their block */
    int32_t *alternatives;        /* alternatives of a fusion */
    double overhead;              /* work of choosing, see fgi_primal_work */
    double gain_scale;            /* what a usual success gains */
    /* epoch */
    fgi_primal_kind kind;
    int64_t n_epochs;
    int constructed;               /* feasible rounding has been tried in this epoch */
    int64_t construct_pieces;      /* that may still be spent on it, or on repair */
    double epoch_begun, last_gain; /* work */
    double kind_begun;             /* the same of the first epoch of this kind */
    int64_t kind_violations;       /* violations of the best labeling at that time */
    double kind_score;
    int32_t *start;                            /* scratch labeling */
    int32_t *before;                           /* labels before the move under way, when they are reported */
    int32_t parent, first_parent, last_parent; /* a crossing's parents: at hand, the first, the last to come */
    int32_t *focus;                            /* variables the start has changed: moves begin there half of the time */
    int64_t n_focus, next_focus;
    fgi_elites elites;
    int32_t n_fresh;                    /* epochs still to come of a kind that has several */
    const int32_t *parents[FGI_ELITES]; /* the elites that are joined, the best first */
    fgi_join join;
    fgi_solver *joined; /* the search on it; NULL: none under way */
    int64_t joined_moves;
    double joined_work, joined_gain, joined_score; /* so far; when it last gained, and what it had then */
    /* the best labeling met, by running score; while `unreported`, it is the current one, or the move under way began
     * with it */
    int64_t best_violations;
    double best_score;
    int unreported;
    double reported; /* work when it was last told to the solver base */
    int offered;
    fgi_arena arena;
} fgi_primal;

/* Work done so far, in operations weighted by what they cost: about a nanosecond each. */
double fgi_primal_work(const fgi_primal *primal);
/* Whether the first labeling is better, beyond rounding. */
int fgi_primal_better(
    const fgi_primal *primal, int64_t violations, double score, int64_t than_violations, double than_score);

/* primal/move.c: stages CHOOSE and PROPOSE. */
void fgi_moves_init(fgi_primal *primal);
fgi_rc fgi_move_choose(fgi_primal *primal);
int fgi_move_propose(fgi_primal *primal, int64_t max_operations); /* alternatives of a fusion; 1 when done */
void fgi_move_start_block(fgi_primal *primal); /* begins a block of the region without what was kicked */

/* primal/epoch.c: stages EPOCH and COMPONENTS. best: the solver's incumbent, or NULL. */
void fgi_primal_begin_epoch(fgi_primal *primal, const int32_t *best);
int fgi_primal_has_gained(const fgi_primal *primal);                   /* since its kind was chosen */
int fgi_primal_components(fgi_primal *primal, int64_t max_operations); /* 1 when done with one parent */
int fgi_primal_next_parent(fgi_primal *primal);                        /* 0 when there is none left */
/* Stage JOIN: a piece of one move on the joined model; 1: it has ended, and its labeling is the present one. */
int fgi_primal_join(fgi_primal *primal);

#endif
