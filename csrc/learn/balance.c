/* learn/balance.c - a penalty that fits the problem, for both kinds of gdmm.
 *
 * Messages must grow to the size of the scores, which no fixed rho foresees. As in alternating directions, rho rises
 * when factors and variables disagree more than the messages still move, and falls in the other case; both residuals
 * are relative to what they are residuals of, so that the rule has no scale (Wohlberg 2017). */
#include "learn/learn.h"
#include <string.h>

/* Decision 0016 has what other values of these do. */
enum { EVERY = 5 };               /* passes between two looks */
static const double FACTOR = 1.5; /* rho changes by it */
static const double RATIO = 2.0;  /* ratio of the residuals up to which rho stays */
static const double WORTH = 3.0;  /* what agreement is worth against still messages */

double fgi_residuals_balance(fgi_residuals *r) {
    if (++r->passes < EVERY) return 1.0;
    const double apart = WORTH * WORTH * r->apart * r->messages, moved = r->moved * r->marginals;
    *r = (fgi_residuals){0};
    if (!(apart > 0) || !(moved > 0)) return 1.0;
    return apart > RATIO * RATIO * moved ? FACTOR : moved > RATIO * RATIO * apart ? 1 / FACTOR : 1.0;
}

void fgi_penalty_export(double rho, const fgi_residuals *r, double C, double *state) {
    const double now[FGI_PENALTY_SIZE] = {rho, r->apart, r->marginals, r->moved, r->messages, r->passes, C};
    memcpy(state, now, sizeof now);
}

void fgi_penalty_import(const double *state, double *rho, fgi_residuals *r, double *C) {
    *rho = state[0];
    *r = (fgi_residuals){state[1], state[2], state[3], state[4], state[5]};
    *C = state[6];
}
