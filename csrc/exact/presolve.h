/* exact/presolve.h - the working model of the presolve, shared by the presolve_*.c files.
 *
 * A working model is a model at any time: a label is removed by setting its unary score to -INFINITY, and only now and
 * then are such labels dropped from the tables ("compaction"). Tables of the original are referred to until a reduction
 * rewrites them. Arrays are never changed after a record refers to them: a rewritten factor, unary vector or label map
 * is a new array, and all of them live in one arena until the handle is freed. */
#ifndef FGI_PRESOLVE_H
#define FGI_PRESOLVE_H
#include "base/meter.h"
#include "exact/bucket.h"
#include "fginfer_exact.h"
#include "model/model.h"
#include "base/util.h"

typedef struct ps_factor {
    int32_t *vars;
    const double *values; /* last variable fastest (pairwise: the first, if transposed); NULL for implicit tables */
    double weight;
    int32_t table; /* table of the original model; -1: own values, weight 1, not transposed */
    int16_t arity; /* 0: dead */
    uint8_t kind, transposed;
    uint8_t forbidden; /* the table may have -INFINITY entries */
    uint8_t todo;      /* what the factor waits for, in bits */
    int32_t depth;     /* additions, one on top of the other, that made its values */
} ps_factor;

enum { PS_REVISE = 1, PS_SPLIT = 2, PS_MERGE = 4, PS_SUBSTITUTE = 8, PS_ALL = 15 }; /* what a factor waits for */
enum { PS_ELIMINATE = 1, PS_DOMINATE = 2, PS_FIX = 4 };                             /* what a variable waits for */

typedef struct ps_var {
    double *unary;      /* card values; -INFINITY: removed */
    int32_t *label;     /* the original label of each label; NULL: the same */
    int32_t *factors;   /* may list dead factors and factors that no longer contain it */
    int32_t card, live; /* live: labels not removed */
    int32_t n_factors, room;
    int32_t depth; /* as of factors */
    uint8_t gone, todo;
} ps_var;

/* A variable that was maximised out, and what its best label depends on. */
typedef struct ps_record {
    int32_t var, n_factors;
    const double *unary;
    const int32_t *label;
    int32_t card;
    struct ps_frozen *factors;
} ps_record;

typedef struct ps_frozen {
    ps_factor f;
    int32_t *cards;         /* label counts of its variables at that time */
    const int32_t **labels; /* label maps of its variables at that time */
} ps_frozen;

typedef struct ps_chunk {
    struct ps_chunk *next;
} ps_chunk;

typedef struct ps_work {
    const fgi_model *m;
    fgi_presolve_options options;
    fgi_presolve_info info;
    double work; /* steps done */
    fgi_meter meter;
    int stop;               /* limits reached: finish what is there */
    int limit_grows;        /* that of the work is our own, and is renewed when much has come of it: */
    int64_t factors_before; /* there were so many then */
    int hopeless;           /* dominance was given up */
    int dominance_passes, differ_passes;
    fgi_rc failure;
    int infeasible;
    fgi_sum constant;
    double magnitude; /* sum of the magnitudes of the scores of any labeling worth having: see ps_rounding */
    double error;     /* what comparisons and inexact splits may have lost */
    int32_t depth;    /* the largest */
    int32_t n_vars;
    ps_var *vars;
    ps_factor *factors;
    int64_t n_factors, factor_capacity;
    int32_t *uses;      /* per original table: live factors that refer to it */
    uint8_t *supported; /* per original table: every label has a finite state, if no label is removed */
    ps_record *records;
    int64_t n_records, record_capacity;
    ps_chunk *chunks;
    char *chunk_at;
    int64_t chunk_left;
    int64_t own_entries; /* values held in rewritten tables */
    fgi_bucket bucket;
    double *scratch; /* n doubles, see ps_scratch */
    int64_t scratch_capacity;
    int32_t *hash; /* finds factors by their scopes, for merging */
    int64_t hash_size;
    int32_t *fix_queue; /* variables with one label left, each once */
    int32_t n_fix;
    int touched; /* something was changed: a new model is needed */
} ps_work;

/* Memory from the arena, NULL (and failure set) when short. */
void *ps_alloc(ps_work *w, int64_t n, size_t size);
double *ps_scratch(ps_work *w, int64_t n);
/* Counts work; sets stop at the work limit or the deadline. */
void ps_spend(ps_work *w, double steps);

fgi_rc ps_open(ps_work *w, const fgi_model *m);
void ps_close(ps_work *w);

int64_t ps_states(const ps_work *w, const ps_factor *f);
void ps_strides(const ps_work *w, const ps_factor *f, int64_t *strides);   /* dense only */
int ps_slot(const ps_factor *f, int32_t var);                              /* index of var in f, or -1 */
double ps_at2(const ps_work *w, const ps_factor *f, int32_t a, int32_t b); /* pairwise, weighted */
fgi_view ps_view(const ps_work *w, const ps_factor *f);
/* Weighted dense values of f, in the order of its variables, into out. */
void ps_expand_table(const ps_work *w, const ps_factor *f, double *out);

/* Live factors of a variable, tidied: w->vars[i].factors[0 .. return value). */
int32_t ps_tidy(ps_work *w, int32_t var);
void ps_kill(ps_work *w, int64_t f);
/* A new factor over own values (in the arena); arity 0 and 1 go to the constant and the unaries. `vars` must be in the
 * arena. */
void ps_add_factor(ps_work *w, int32_t *vars, int32_t arity, const double *values, int32_t depth);
/* Puts new own values in place of a factor's table. */
void ps_replace_table(ps_work *w, int64_t f, const double *values, int32_t depth);
/* Adds scores to a variable's unary (they may forbid labels). */
void ps_add_unary(ps_work *w, int32_t var, const double *scores, int32_t depth);
/* Rounding so far. An addition is off by 2^-53 of its result. Those of one depth are about different scores of a
 * labeling, whose magnitudes add up to no more than what is positive, twice, and its own score: so each depth counts
 * once. */
double ps_rounding(const ps_work *w);
/* A comparison that may be wrong by `error`: is that little enough to go by it? It is counted then. */
int ps_accept(ps_work *w, double error);
void ps_remove_label(ps_work *w, int32_t var, int32_t label);
void ps_wake_var(ps_work *w, int32_t var); /* its factors and neighbours deserve another look */
int ps_record_var(ps_work *w, int32_t var, const int32_t *factors, int32_t n_factors);
/* Drops removed labels from tables where that is cheap. Returns how many variables shrank. */
int64_t ps_compact(ps_work *w);
/* Whether rewritten tables may hold so many entries more: in all, a small multiple of the model itself. */
int ps_affords(const ps_work *w, double entries);
fgi_rc ps_build(ps_work *w, fgi_model **out, int32_t **var_of, fgi_error *err);

/* The reductions; each returns how many times it reduced something. */
int64_t ps_harden(ps_work *w);
int64_t ps_fix(ps_work *w);
int64_t ps_propagate(ps_work *w);
int64_t ps_differ(ps_work *w);
int64_t ps_dominate(ps_work *w);
int64_t ps_merge(ps_work *w);
int64_t ps_split(ps_work *w);
int64_t ps_substitute(ps_work *w);
int64_t ps_eliminate(ps_work *w);
int64_t ps_roof(ps_work *w);

#endif
