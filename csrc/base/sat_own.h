/* base/sat_own.h - what the files of the search for satisfying values share (base/sat.h). */
#ifndef FGI_SAT_OWN_H
#define FGI_SAT_OWN_H
#include "base/arena.h"
#include "base/assert.h"
#include "base/sat.h"

enum { FGI_SAT_HEADER = 2 /* words before a clause: its length, and for a learnt one its number of levels */ };

/* Invariants, between two steps (fgi_sat_check looks at them):
 *   1  The trail holds the literals that are true, each once, by levels; `limit` says where these begin, `where` where
 *      each literal stands.
 *   2  The reason of a fixed variable is -1 or says literals that are all false beside its own, which is true.
 *   3  `heap` and `place` say the same; once all variables have been queued, every open one is in the heap.
 *   4  Clauses have two literals or more and lie one after the other; a clause is watched by its first two.
 *   5  Nothing is marked as seen.
 *   6  The sum of a linear constraint is that of its literals which stand in the trail before `next`. */
typedef struct watch {
    int32_t clause;  /* its place */
    int32_t blocker; /* another literal of it: if that is true, the clause need not be read */
} watch;

typedef struct watches {
    watch *at;
    int32_t n, room;
} watches;

/* The true literals of a linear constraint weigh no more than its limit. */
typedef struct linear {
    int32_t *literals; /* by falling weight; no variable twice */
    int64_t *weights;  /* above 0 */
    int32_t n;
    int one;            /* no two of the literals can be true: nothing is summed, and the reason is the one that is */
    int64_t limit, sum; /* sum: of those true literals that have been propagated */
} linear;

typedef struct use { /* where a literal stands in a linear constraint */
    int32_t linear;
    int64_t weight;
} use;

typedef struct uses {
    use *at;
    int32_t n, room;
} uses;

struct fgi_sat {
    int32_t n_vars;
    int8_t *value;                   /* per variable: 1 true, 0 false, -1 open */
    uint8_t *phase;                  /* the value to try */
    int32_t *level;                  /* per fixed variable: decisions before it */
    int32_t *reason;                 /* what fixed it, see sat_linear.h; -1: a decision */
    int32_t *where;                  /* per fixed variable: its place in the trail */
    int32_t *trail;                  /* fixed literals, in order */
    int32_t *limit;                  /* per level: where it begins in the trail */
    int32_t n_trail, n_levels, next; /* next: literal of the trail to propagate */
    int32_t *clauses;                /* one after the other: header, literals */
    int64_t n_clauses, room;         /* numbers in use, and room for them */
    int64_t learnt_begin;            /* where learnt ones begin */
    int64_t n_learnt, most_learnt;
    watches *watch;     /* per literal: clauses to be looked at when it becomes false */
    int64_t watch_room; /* room of all watch lists */
    double *activity, growth;
    int32_t *heap, *place, n_heap; /* open variables by activity; place -1: not in it */
    uint8_t *seen;
    int32_t *stamp, stamps; /* per level: to count those of a clause */
    int32_t *learnt;        /* the clause being made */
    int64_t operations, since_restart, restarts;
    int32_t queued; /* variables that were considered for the heap before the first decision */
    const int32_t *assumed;
    int32_t n_assumed, n_core; /* the core is in `learnt` */
    int contradiction, failed, refuted;
    linear *linears;
    int64_t n_linears, linear_room, looked; /* looked: how many of them have been looked at since they were given */
    uses *used;                             /* per literal: NULL where there are no linear constraints */
    int64_t use_room;                       /* room of all of these */
    int32_t *why, pair[2];                  /* a reason that is made when it is asked for */
    fgi_arena memory;                       /* what is of one size; clauses and watches grow */
};

static inline int literal_value(const fgi_sat *s, int32_t literal) { /* 1, 0, or negative: open */
    const int8_t v = s->value[literal >> 1];
    return v < 0 ? v : v ^ (literal & 1);
}

static inline void fix(fgi_sat *s, int32_t literal, int32_t reason) {
    const int32_t var = literal >> 1;
    fgi_assert(var >= 0 && var < s->n_vars && s->value[var] < 0 && s->n_trail < s->n_vars);
    s->value[var] = (int8_t) !(literal & 1);
    s->level[var] = s->n_levels;
    s->reason[var] = reason;
    s->where[var] = s->n_trail;
    s->trail[s->n_trail++] = literal;
}

/* ---- the order of decisions: base/sat_order.c ---- */

void fgi_sat_enqueue(fgi_sat *s, int32_t var);
int32_t fgi_sat_dequeue(fgi_sat *s);
void fgi_sat_bump(fgi_sat *s, int32_t var); /* it took part in a conflict */

/* ---- linear constraints: base/sat_linear.c ---- */

/* A reason or a conflict is the place of a clause, or one of these, or what the functions below say. */
enum {
    FGI_SAT_NONE = -1,       /* nothing: a decision, or no conflict */
    FGI_SAT_PAIR = INT32_MIN /* two literals that cannot both be true; their negations are in `pair` */
};
static inline int32_t fgi_sat_of_literal(int32_t literal) { return -2 - literal; } /* this one is true */
static inline int32_t fgi_sat_of_linear(const fgi_sat *s, int64_t k) { return (int32_t)(-2 - 2 * s->n_vars - k); }

/* What a literal that has become true does to linear constraints; returns a conflict or FGI_SAT_NONE. */
int32_t fgi_sat_propagate_linear(fgi_sat *s, int32_t literal);
int32_t fgi_sat_look_at_new(fgi_sat *s); /* the same for constraints that are new, or have a new limit */
void fgi_sat_take_back_linear(fgi_sat *s, int32_t literal);
/* The clause behind a reason for `literal`, or behind a conflict (literal -1): *n literals, which are false but for
 * this one, which need not be among them. It stays until the next call. */
const int32_t *fgi_sat_why(fgi_sat *s, int32_t reason, int32_t literal, int32_t *n);
int fgi_sat_is_long(const fgi_sat *s, int32_t reason); /* would it take long to make? */
void fgi_sat_free_linear(fgi_sat *s);

#ifdef FGI_CHECKED
void fgi_sat_check(fgi_sat *s);
#endif

#endif
