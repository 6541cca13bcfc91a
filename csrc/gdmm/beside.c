/* gdmm/beside.c - labelings that are looked for beside the factor pass of an iteration, or beside a sweep: on another
 * thread where there are several, before and after its pieces where there is one.
 *
 * An ascent from the rounding and the primal search (gdmm/decode.c) read nothing that the pass writes. Both have to be
 * over when the pass is, the ascent at its end, the search after work that was fixed when it began; only then is what
 * they have found handed on. So a run is the same whatever the number of threads and the pauses. */
#include <string.h>
#include "gdmm/gdmm.h"

/* Work of the search beside one pass, of that of an iteration: sweeps come before without any search, which has a share
 * of their work, too, and catches up at this pace. On a complete graph (150 x 30 labels) it takes as long as the pass.
 */
static const double CATCH_UP = 0.5;
/* And no less than that: a few tenths of a millisecond, to which the start of a piece is nothing. */
static const double LEAST_SEARCH = 1e5;

void gdmm_climb_beside(gdmm *g) {
    gdmm_take_rounding(g);
    g->beside.climbs = 1;
    g->beside.begun = g->beside.climbed = 0;
}

void gdmm_search_beside(gdmm *g) {
    const double least = fmax(LEAST_SEARCH, CATCH_UP * (double)g->pass_work);
    if ((g->solver->failure = gdmm_begin_search(g))) return;
    const double now = (double)g->search->info.entries_touched, due = gdmm_search_share(g);
    fgi_solver_pause_at(g->search, (int64_t)fmin(fmax(due, now + LEAST_SEARCH), now + least));
    g->beside.searches = 1;
    g->beside.searched = 0;
}

int gdmm_beside_is_over(const gdmm *g) {
    const gdmm_beside *b = &g->beside;
    return (!b->climbs || b->climbed) && (!b->searches || b->searched);
}

static void work_on(gdmm *g, double seconds) {
    gdmm_beside *b = &g->beside;
    if (b->climbs && !b->begun) {
        gdmm_begin_climb(g);
        b->begun = 1;
    } else if (b->climbs && !b->climbed) {
        b->climbed = gdmm_climb(g, seconds);
    } else if (b->searches && !b->searched) {
        b->rc = fgi_solver_run(g->search, seconds, -1, NULL);
        b->searched = b->rc || g->search->info.paused || g->search->info.status != FGI_RUNNING;
    }
}

int gdmm_beside_piece(void *of) {
    const double start = fgi_clock(), piece = 1e-3;
    gdmm *g = of;
    work_on(g, piece);
    g->solver->info.seconds_decode += (fgi_clock() - start) / (double)g->n_workers; /* its share of the time */
    return gdmm_beside_is_over(g);
}

typedef struct pass {
    gdmm *g;
    int64_t offset, first; /* places among the factors; the block before `first` is for labelings */
    double seconds, taken; /* allowed for labelings, and taken by them */
} pass;

static void run_block(void *context, int64_t begin, int64_t end, int worker) {
    pass *p = context;
    if (begin >= p->first) {
        gdmm_factor_pass(p->g, p->offset + begin - p->first, p->offset + end - p->first, worker);
        return;
    }
    const double start = fgi_clock();
    work_on(p->g, p->seconds);
    p->taken = fgi_clock() - start;
}

/* The labelings take the first block of a piece, and whoever is done with it goes on with factors. */
int gdmm_factors_step(gdmm *g) {
    fgi_info *info = &g->solver->info;
    if (g->cursor == 0) fgi_audit_rarely(gdmm_check(g));
    const int64_t left = g->model->s->n_factors - g->cursor,
                  piece = g->solver->pool ? GDMM_LONGER * g->piece : g->piece;
    const int64_t take = left < piece ? left : piece;
    pass p = {g, g->cursor, gdmm_beside_is_over(g) ? 0 : GDMM_BLOCK, g->solver->pool ? GDMM_LONGER * 1e-3 : 1e-3, 0};
    const double start = fgi_clock();
    fgi_pool_run(g->solver->pool, p.first + take, GDMM_BLOCK, run_block, &p);
    const double decoding = p.taken / (double)g->n_workers; /* its share of the time that has gone by */
    info->seconds_decode += decoding;
    info->seconds_oracle += fgi_clock() - start - decoding;
    g->cursor += take;
    if (g->cursor < g->model->s->n_factors || !gdmm_beside_is_over(g)) return 0;
    g->cursor = 0;
    return 1;
}

void gdmm_end_beside(gdmm *g) {
    const gdmm_beside done = g->beside;
    g->beside = (gdmm_beside){0};
    if (done.climbs) gdmm_end_climb(g);
    if (done.rc) g->solver->failure = done.rc;
    else if (done.searches) gdmm_end_search(g);
}
