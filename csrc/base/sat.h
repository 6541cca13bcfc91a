/* base/sat.h - satisfiability of clauses by conflict-driven learning (Marques-Silva and Sakallah 1999; Moskewicz et al.
 * 2001; Een and Sorensson 2003).
 *
 * A search that fixes one variable after the other, propagates, and learns from each conflict a clause that rules out
 * its cause. What hard constraints rule out together, and not one by one, is found once and not again in every branch.
 * Literal 2 v says that variable v is true, 2 v + 1 that it is false. Everything is deterministic; work is counted in
 * literals read, so that limits on it do not depend on the clock. */
#ifndef FGI_SAT_H
#define FGI_SAT_H
#include "base/util.h"

typedef struct fgi_sat fgi_sat;

typedef enum fgi_sat_state {
    FGI_SAT_RUNNING,
    FGI_SAT_SATISFIED,
    FGI_SAT_CONTRADICTION,
    FGI_SAT_REFUTED, /* no solution has all that is assumed */
    FGI_SAT_NO_MEMORY
} fgi_sat_state;

fgi_sat *fgi_sat_create(int32_t n_vars); /* NULL: out of memory */
void fgi_sat_free(fgi_sat *s);
/* Only before the first step. A clause has no variable twice. Without memory the next step says so. */
void fgi_sat_add(fgi_sat *s, const int32_t *literals, int32_t n);
/* From here on solutions must have these literals, no variable twice, which stay with the caller; what was learnt stays
 * true. Before the first step, or after one that said something. */
void fgi_sat_assume(fgi_sat *s, const int32_t *literals, int32_t n);
/* Once refuted: those of the assumed literals that contradict the clauses together; returns how many. */
int32_t fgi_sat_core(const fgi_sat *s, const int32_t **literals);
/* The value that is tried first, and how early a variable is chosen at the start: the higher, the earlier. */
void fgi_sat_prefer(fgi_sat *s, int32_t var, int value, double activity);
/* Works for about max_operations more. */
fgi_sat_state fgi_sat_step(fgi_sat *s, int64_t max_operations);
int fgi_sat_value(const fgi_sat *s, int32_t var); /* once satisfied */
int64_t fgi_sat_operations(const fgi_sat *s);     /* since creation */
int64_t fgi_sat_memory(const fgi_sat *s);         /* bytes */

#endif
