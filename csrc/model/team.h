/* model/team.h - several threads that share one sweep over the variables of a model, and compute what one thread does.
 *
 * In waves, visits that do not depend on each other happen at the same time (model/waves.h). In step, all threads work
 * on the same variable and meet after each piece of it: that is for graphs in which hardly two variables can be visited
 * at the same time, as chains and complete graphs, and whose variables have much to do. A method says what a visit is;
 * every number is made of the same terms in the same order as by one thread, and maxima do not depend on the order. */
#ifndef FGI_TEAM_H
#define FGI_TEAM_H
#include <stdatomic.h>
#include "base/barrier.h"
#include "base/pool.h"
#include "model/waves_maker.h"

/* What a thread has found in its labels of a variable or of a message. */
typedef struct fgi_found {
    double top;            /* the largest entry */
    double score, decoded; /* the label that decoding likes best there: by how much, and what it adds to the score */
    int32_t label;         /* -1: none */
    int some_forbidden;
    char rest[32]; /* fills a cache line */
} fgi_found;

typedef struct fgi_team {
    fgi_pool *pool;
    int threads;
    /* Waves. */
    fgi_waves_maker *maker; /* NULL: not asked yet, or done */
    fgi_waves *waves;
    int tried;     /* waves have been asked for */
    int under_way; /* a sweep in waves is */
    /* In step. */
    fgi_crowd crowd;
    fgi_counter *counters;
    fgi_found *found; /* three sets of one per thread */
    double **own;     /* per thread: as many numbers as a variable has labels, for its rows of a table */
} fgi_team;

int fgi_team_begin(fgi_team *t, fgi_pool *pool, int threads); /* 0: no memory; the end is to follow */
void fgi_team_end(fgi_team *t);

/* Asks for waves, once, if a sweep reads enough entries; what `work` is told must not change meanwhile. */
void fgi_team_ask(fgi_team *t, const fgi_structure *s, int64_t entries, fgi_visit_work *work, const void *context);
int fgi_team_has_waves(fgi_team *t);              /* they have come */
void fgi_team_rest(fgi_team *t);                  /* nobody asks for waves any more */
void fgi_team_drop_waves(fgi_team *t);            /* sweeps go on without */
void fgi_team_sweep(fgi_team *t, int is_forward); /* a sweep in waves begins */

/* ---- in step ------------------------------------------------------------------------------------------------- */

typedef struct fgi_walk {
    fgi_team *team;
    void (*go)(void *context, int me);
    void *context;
    atomic_llong stop_at; /* the meeting after which all leave */
    int crowded;          /* the machine is too busy: thread 0 says so */
} fgi_walk;

/* A thread on its way. */
typedef struct fgi_walker {
    fgi_walk *walk;
    int me;
    int64_t meeting;
} fgi_walker;

/* All threads go, with so many meetings at least. Returns 0 where one thread had better do it. */
int fgi_walk_run(fgi_walk *w, fgi_team *t, int64_t meetings, void (*go)(void *context, int me), void *context);

void fgi_walk_meet(fgi_walker *k);
void fgi_walk_stop(const fgi_walker *k); /* nobody goes on after the next meeting */
int fgi_walk_is_over(const fgi_walker *k);

/* Where the share of a thread begins: at whole cache lines. */
int32_t fgi_walk_cut(const fgi_walker *k, int32_t n, int thread);
/* Whether a table is shared out by rows, for a variable with so many messages; `least`: entries that are worth it where
 * these are few. */
int fgi_walk_is_parted(const fgi_walker *k, int64_t entries, int64_t least, int64_t messages);
/* The part of this thread in the largest of all threads' own numbers. */
void fgi_walk_join(const fgi_walker *k, int32_t n, double *out);

double fgi_found_top(const fgi_walker *k, const fgi_found *found);
const fgi_found *fgi_found_best(const fgi_walker *k, const fgi_found *found); /* NULL: no label */

/* Whole messages shared out so that each thread has about the same work, up to a millisecond of it: `work` of message j
 * is 0 where there is nothing to do, below 0 where these messages end; `make` makes one. Returns their number. */
typedef struct fgi_messages {
    int64_t (*work)(const void *context, int64_t j);
    void (*make)(void *context, int64_t j);
    void *context;
    int64_t n;     /* messages at most */
    int64_t total; /* the work of all: an answer */
} fgi_messages;
int64_t fgi_walk_share(const fgi_walker *k, fgi_messages *x);
int fgi_walk_is_long(int64_t work); /* time for a look at the clock */

#endif
