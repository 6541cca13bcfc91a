/* base/sat.h - satisfiability of clauses and linear constraints by conflict-driven learning (Marques-Silva and Sakallah
 * 1999; Moskewicz et al. 2001; Een and Sorensson 2003; Chai and Kuehlmann 2003).
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
/* The weights (above 0) of the true ones of n literals, no variable twice, add up to no more than the limit; sums must
 * fit. Returns its number, or -1 without memory. Before the first step, or after fgi_sat_go_back. */
int32_t fgi_sat_add_linear(fgi_sat *s, const int32_t *literals, const int64_t *weights, int32_t n, int64_t limit);
/* Another one in its place, or another limit, which is no higher: both must hold for every solution that is still
 * wanted, since what was learnt stays. After fgi_sat_go_back. Returns 0 without memory. */
int fgi_sat_set_linear(
    fgi_sat *s, int32_t number, const int32_t *literals, const int64_t *weights, int32_t n, int64_t limit);
int fgi_sat_limit(fgi_sat *s, int32_t number, int64_t limit); /* 0: it is higher */
void fgi_sat_go_back(fgi_sat *s);                             /* takes back all decisions; values are gone */
void fgi_sat_set_phase(fgi_sat *s, int32_t var, int value);   /* the value that is tried first from here on */
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
