/* base/meter.h - work counted, and a look at the clock now and then: how a slice of work notices that its time is over.
 *
 * What is done never depends on the meter, only how long it goes on: callers keep their place, and the next slice takes
 * it up there. */
#ifndef FGI_METER_H
#define FGI_METER_H
#include <math.h>
#include "fginfer.h"
#include "base/assert.h"

typedef struct fgi_meter {
    int64_t every;   /* work between two looks at the clock: as much as takes a tenth of a millisecond to one */
    int64_t spent;   /* work since the last look; kept from slice to slice, so that short slices look, too */
    double deadline; /* deadline of the slice under way; INFINITY: none */
} fgi_meter;

static inline int fgi_meter_over(const fgi_meter *m) { return m->deadline < INFINITY && fgi_clock() >= m->deadline; }

/* Counts work; 1: the clock was looked at, and the time is over. */
static inline int fgi_meter_spend(fgi_meter *m, int64_t work) {
    fgi_assert(work >= 0 && m->spent >= 0);
    m->spent += work;
    if (m->spent < m->every) return 0;
    m->spent = 0;
    return fgi_meter_over(m);
}

#endif
