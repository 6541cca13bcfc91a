/* gdmm_decode.c - labelings from the iterates: round, then climb (local.h). Work is measured in operations, so that when
 * and how long the decoder runs does not depend on the clock. */
#include <string.h>
#include "gdmm.h"

static const int64_t PIECE = 200000;   /* operations between two looks at the clock */

/* Due when the rounding has changed, at geometrically spaced iterations and whenever less than a fifth of the work has gone into
 * labelings; and once more before the end. */
int gdmm_decode_due(gdmm *g) {
    int64_t t = g->solver->info.iterations;
    if (g->converged) return 1;
    if (t < g->next_decode && 4 * fgi_local_operations(g->local) > g->work) return 0;
    if (memcmp(g->rounded, g->labels, (size_t)g->model->s->n_vars * sizeof *g->labels) == 0) return 0;
    if (t >= g->next_decode) g->next_decode = t + t / 4 + 1;
    return 1;
}

int gdmm_decode_step(gdmm *g) {
    if (g->cursor == 0) {
        memcpy(g->labels, g->rounded, (size_t)g->model->s->n_vars * sizeof *g->labels);
        fgi_local_assign(g->local, g->labels);
        g->cursor = 1;
    }
    if (!fgi_local_ascend(g->local, PIECE)) return 0;
    if (fgi_local_violations(g->local) == 0) fgi_solver_consider(g->solver, fgi_local_labels(g->local));
    return 1;
}
