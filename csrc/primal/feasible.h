/* primal/feasible.h - a labeling that meets all hard constraints, by learning from conflicts (base/sat.h).
 *
 * Where fgi_construct, which propagates more and forgets what it has found, does not get through: circuits, plans,
 * networks with deterministic tables. A variable with two labels left is a Boolean, one with more has a Boolean per
 * label; the forbidden states of each table become clauses, each as short as the table allows. */
#ifndef FGI_FEASIBLE_H
#define FGI_FEASIBLE_H
#include "base/sat.h"
#include "model/model.h"

typedef struct fgi_feasible fgi_feasible;

/* Scores that lie `dear` or more below the best of their factor or unary count as forbidden; INFINITY: those only that
 * are. NULL and *too_large = 0: out of memory. NULL and *too_large = 1: tables with forbidden entries have too many of
 * them to be written as clauses. The model must outlive the object. */
fgi_feasible *fgi_feasible_create(const fgi_model *m, double dear, int *too_large);
void fgi_feasible_free(fgi_feasible *f);
/* Encodes, then searches, for about max_operations. */
fgi_sat_state fgi_feasible_step(fgi_feasible *f, int64_t max_operations);
/* Once satisfied. Where several labels are left to choose from, the best by the unaries. */
void fgi_feasible_labels(const fgi_feasible *f, int32_t *labels);
int64_t fgi_feasible_operations(const fgi_feasible *f);
int64_t fgi_feasible_memory(const fgi_feasible *f);

#endif
