/* base/barrier.h - a place where threads wait for each other, many times a millisecond.
 *
 * Whoever waits spins at first: on cores of their own threads are apart by less than waking one takes. After some
 * microseconds other processes get their turn, since whom we wait for may not have a core, and then it sleeps. */
#ifndef FGI_BARRIER_H
#define FGI_BARRIER_H
#include <stdatomic.h>
#include <stdint.h>
#include "base/threads.h"
#include "fginfer.h"

/* A count that one thread writes and others wait for, in a cache line of its own. */
typedef struct fgi_counter {
    atomic_llong done;
    char rest[64 - sizeof(atomic_llong)];
} fgi_counter;

/* A wait under way; all zero at its beginning. */
typedef struct fgi_wait {
    int turns;
    double since; /* when spinning had brought nothing */
} fgi_wait;

enum { FGI_SPINS = 500 }; /* some microseconds */

static inline void fgi_wait_a_little(fgi_wait *w) {
    enum { YIELDS = 3000 }; /* a millisecond or so, then naps */
    if (++w->turns == FGI_SPINS) w->since = fgi_clock();
    if (w->turns > FGI_SPINS + YIELDS) fgi_thread_nap();
    else if (w->turns > FGI_SPINS) fgi_thread_yield();
#if defined(__x86_64__) && defined(__GNUC__)
    else __builtin_ia32_pause();
#endif
}

/* After it: longer than what others do between two meetings, so that some of them have no core? */
static inline int fgi_wait_was_long(const fgi_wait *w) {
    const double seconds = 1e-3;
    return w->turns > FGI_SPINS && fgi_clock() - w->since > seconds;
}

/* The how many'th meeting this is, counted by each thread for itself; all counters begin at 0, meetings at 1. What a
 * thread has written before a meeting the others see after it. Returns 1 if it was a long wait. */
static inline int fgi_meet(fgi_counter *counters, int threads, int me, int64_t meeting) {
    fgi_wait waited = {0, 0};
    atomic_store_explicit(&counters[me].done, meeting, memory_order_release);
    for (int u = 0; u < threads; u++)
        while (atomic_load_explicit(&counters[u].done, memory_order_acquire) < meeting) fgi_wait_a_little(&waited);
    return fgi_wait_was_long(&waited);
}

/* When other programs keep the cores busy, each meeting can take as long as their turn on a core. One thread is quicker
 * then, so the work is left to it for a while before all threads try again. The result must not depend on that. */
typedef struct fgi_crowd {
    int64_t pause, left; /* times that one thread does it: in this pause, and still to come */
    int64_t meetings;    /* meetings of the attempt under way */
    atomic_llong waits;  /* long ones among them */
} fgi_crowd;

/* Before each piece of work: 1, all threads are to do it. */
static inline int fgi_crowd_begin(fgi_crowd *c, int64_t meetings) {
    if (c->left > 0) {
        c->left--;
        return 0;
    }
    c->meetings = meetings;
    atomic_store_explicit(&c->waits, 0, memory_order_relaxed);
    return 1;
}

/* Any thread, after a long wait: 1, there have been too many, and all should stop where they are. */
static inline int fgi_crowd_wait(fgi_crowd *c) {
    enum {
        SOME = 4, /* long waits that say nothing */
        PART = 64 /* one long wait in so many meetings says nothing, either */
    };
    return atomic_fetch_add_explicit(&c->waits, 1, memory_order_relaxed) >= SOME + c->meetings / PART;
}

/* After the piece of work, `crowded` if they have. */
static inline void fgi_crowd_end(fgi_crowd *c, int crowded) {
    enum {
        FIRST = 8,        /* pieces of work alone before the next try, doubled each time */
        LONGEST = 1 << 10 /* pieces, at most */
    };
    if (crowded) c->pause = c->pause < FIRST ? FIRST : c->pause < LONGEST ? 2 * c->pause : LONGEST;
    else c->pause = 0;
    c->left = c->pause;
}

#endif
