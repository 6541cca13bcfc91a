/* The search that learns from conflicts, with every allocation failing in turn: it answers rightly without, or says
 * that it has no memory, and says so again when it is asked to go on. Meant to be run under the sanitizers. */
#include <string.h>
#include "scarce.h"
#include "fginfer_rules.h"

enum { PAIRS = 12, FIRSTS = 5, PIGEONS = 7, HOLES = 6, EVERY = 60, SLICE = 3000 };

typedef struct search {
    fgi_conflicts *c;
    fgi_conflicts_state state;
    uint8_t values[PIGEONS * HOLES];
} search;

static fgi_rc step(search *s) {
    int64_t done;
    fgi_rc rc;
    do rc = fgi_conflicts_run(s->c, SLICE, &s->state, s->values, &done, NULL);
    while (!rc && s->state == FGI_CONFLICTS_RUNNING);
    return rc;
}

static fgi_rc end(search *s, fgi_rc rc) {
    if (rc == FGI_NO_MEMORY && s->c) CHECK(step(s) == FGI_NO_MEMORY);
    if (s->c) CHECK(fgi_conflicts_memory(s->c) > 0);
    fgi_conflicts_free(s->c);
    return rc;
}

/* One more pigeon than there are holes. */
static fgi_rc pigeons(void *given) {
    (void)given;
    search s = {0};
    int32_t own[PIGEONS];
    int64_t ones[PIGEONS];
    const int64_t begin[] = {0, HOLES};
    for (int p = 0; p < PIGEONS; p++) ones[p] = 1;
    fgi_rc rc = fgi_conflicts_create(PIGEONS * HOLES, &s.c, NULL);
    for (int32_t p = 0; p < PIGEONS && !rc; p++) {
        for (int32_t h = 0; h < HOLES; h++) own[h] = 2 * (p * HOLES + h);
        rc = fgi_conflicts_add(s.c, 1, begin, own, NULL);
    }
    for (int32_t h = 0; h < HOLES && !rc; h++) {
        int32_t number = -1;
        for (int32_t p = 0; p < PIGEONS; p++) own[p] = 2 * (p * HOLES + h);
        rc = fgi_conflicts_linear(s.c, PIGEONS, own, ones, 1, &number, NULL);
    }
    if (!rc) rc = step(&s);
    CHECK(rc || s.state == FGI_CONFLICTS_NONE);
    return end(&s, rc);
}

/* One of each pair must be true. The second costs 2 more than the first, but only some of the firsts may be true. The
 * cost is lowered, now by a limit and now by another constraint in its place, until nothing is left. */
static fgi_rc pairs(void *given) {
    (void)given;
    search s = {0};
    int32_t firsts[PAIRS], all[2 * PAIRS], number = -1, most = -1;
    int64_t ones[PAIRS], costs[2 * PAIRS], begin[PAIRS + 1] = {0}, least = 2 * (PAIRS - FIRSTS), last = -1;
    for (int32_t k = 0; k < PAIRS; k++) {
        firsts[k] = 4 * k;
        all[2 * k] = 4 * k;
        all[2 * k + 1] = 4 * k + 2;
        ones[k] = 1;
        costs[2 * k] = k + 1;
        costs[2 * k + 1] = k + 3;
        begin[k + 1] = 2 * (k + 1);
        least += k + 1;
    }
    fgi_rc rc = fgi_conflicts_create(2 * PAIRS, &s.c, NULL);
    if (!rc) rc = fgi_conflicts_add(s.c, PAIRS, begin, all, NULL);
    if (!rc) rc = fgi_conflicts_linear(s.c, PAIRS, firsts, ones, FIRSTS, &most, NULL);
    for (int round = 0; !rc && !(rc = step(&s)) && s.state == FGI_CONFLICTS_SATISFIED; round++) {
        last = 0;
        for (int k = 0; k < 2 * PAIRS; k++) last += s.values[k] ? costs[k] : 0;
        if (number >= 0 && round % 2) rc = fgi_conflicts_limit(s.c, number, last - 1, NULL);
        else rc = fgi_conflicts_linear(s.c, 2 * PAIRS, all, costs, last - 1, &number, NULL);
        if (!rc) rc = fgi_conflicts_prefer(s.c, s.values, NULL, NULL);
    }
    CHECK_SAYING(rc || last == least, "the least cost is %lld, not %lld\n", (long long)least, (long long)last);
    return end(&s, rc);
}

int main(void) {
    scarce_try("pigeons", pigeons, NULL, EVERY);
    scarce_try("pairs", pairs, NULL, EVERY);
    return failed();
}
