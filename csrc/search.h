/* search.h - the parts of the primal search (search.c): the current labeling, regions, and the choice among moves. */
#ifndef FGI_SEARCH_H
#define FGI_SEARCH_H
#include "local.h"
#include "search_thin.h"
#include "solver.h"
#include "treeblock.h"

/* A choice among few options by success per operation, seeded and independent of the clock. An option that has had no
 * success for long is chosen in inverse proportion to its cost: all get the same share of the work. */
enum { FGI_BANDIT_ARMS = 16 };
typedef struct fgi_bandit {
    int32_t n;
    double success[FGI_BANDIT_ARMS], cost[FGI_BANDIT_ARMS], tried[FGI_BANDIT_ARMS];
} fgi_bandit;
void fgi_bandit_init(fgi_bandit *b, int32_t n, double first_cost);
int32_t fgi_bandit_choose(const fgi_bandit *b, fgi_rng *rng);
void fgi_bandit_learn(fgi_bandit *b, int32_t arm, int success, double operations);

/* Connected sets of about n variables around a variable: compact (breadth first) or straggling (random growth). */
typedef struct fgi_region fgi_region;
fgi_region *fgi_region_create(const fgi_model *m);
void fgi_region_free(fgi_region *r);
int64_t fgi_region_grow(fgi_region *r, int32_t from, int64_t n, int compact, fgi_rng *rng);
int64_t fgi_region_all(fgi_region *r, fgi_rng *rng);
int32_t *fgi_region_variables(fgi_region *r); /* the last one grown */

/* Optional guidance: scores per label laid out as the unaries (e.g. reparametrised unaries of a relaxation), copied; the
 * next restarts of a search solver are rounded from them. FGI_BAD_ARGUMENT if the solver is of another kind. */
fgi_rc fgi_search_guide(fgi_solver *solver, const double *preferences);

#endif
