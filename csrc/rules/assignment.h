/* rules/assignment.h - variables are assigned to labels, each of which takes so many of them at convex prices. */
#ifndef FGI_RULES_ASSIGNMENT_H
#define FGI_RULES_ASSIGNMENT_H
#include "rules/rule.h"

/* Hard limits come before prices: places below a lower limit are `needs`, which are filled first of all. */
typedef struct fgi_cost {
    int64_t needs; /* minus the needs that are filled */
    double cost;
} fgi_cost;

static inline fgi_cost fgi_cost_sum(fgi_cost a, fgi_cost b) { return (fgi_cost){a.needs + b.needs, a.cost + b.cost}; }
static inline fgi_cost fgi_cost_less(fgi_cost a, fgi_cost b) { return (fgi_cost){a.needs - b.needs, a.cost - b.cost}; }
static inline int fgi_cost_is_below(fgi_cost a, fgi_cost b) {
    return a.needs != b.needs ? a.needs < b.needs : a.cost < b.cost;
}
#define FGI_NO_WAY ((fgi_cost){INT64_MAX / 4, INFINITY})
static inline int fgi_cost_is_way(fgi_cost a) { return a.cost < INFINITY; }

/* The rule: see rules/occurrences.c. */
typedef struct fgi_occurrences {
    fgi_rule base;
    int32_t n_labels;
    int64_t *low, *high;
    double price; /* INFINITY: the limits are hard */
} fgi_occurrences;

/* An assignment under way. Invariants: count[l] is the number of variables whose label is l; -1: not assigned yet. */
typedef struct fgi_assignment {
    const fgi_occurrences *rule;
    const double *gains;
    int32_t *labels, *count;
    fgi_cost *price; /* potentials of labels: no residual edge has a negative reduced cost */
    int64_t work;
} fgi_assignment;

/* What one more costs where a label has `count` already. */
fgi_cost fgi_place_cost(const fgi_occurrences *r, int32_t label, int64_t count);
/* An optimal assignment in a->labels; 0: there is none (or, with arena->failed, no memory). */
int fgi_assign(fgi_assignment *a, const fgi_occurrences *r, const double *gains, int32_t *labels, fgi_arena *arena);

/* Shortest ways along which one more at label x can end as one fewer at label h, over labels in use and the sink. */
typedef struct fgi_ways {
    int32_t n;     /* labels in use, and the sink, which is the last node */
    int32_t *node; /* the node of each label; -1: nobody has it */
    fgi_cost *way; /* n * n */
} fgi_ways;

int fgi_find_ways(const fgi_assignment *a, fgi_ways *w, fgi_arena *arena); /* 0: no memory */

/* Every variable in turn takes the lowest label with which the assignment is as good, while those before it stay; 0: no
 * memory. */
int fgi_assign_lowest(fgi_assignment *a, fgi_arena *arena);

#endif
