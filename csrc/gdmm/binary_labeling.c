/* gdmm/binary_labeling.c - labelings of Algorithm 9: round, then flip single variables while that gains. */
#include <string.h>
#include "gdmm/binary.h"

/* What variable i adds to the score when it is on. All factors between variables that are on are active. */
static double worth(binary *b, int32_t i) {
    double w = b->u[i];
    for (int32_t k = b->first[i]; k >= 0;) {
        const binary_link *l = &b->links[k / 2];
        if (b->labels[k % 2 ? l->i : l->j]) w += l->t;
        k = l->next[k % 2];
    }
    b->work += b->degree[i];
    return w;
}

/* Rounds x. A variable new to the labeling first gets its factors to the rest. A piece of it, see activate_more. */
static int round_labels(binary *b, int *complete) {
    *complete = 0;
    for (b->work = 0; b->cursor < b->model->s->n_vars; b->cursor++) {
        if (b->work++ > BINARY_CHUNK) return 1;
        b->labels[b->cursor] = b->x[b->cursor] > fgi_larger(0.5, b->on_from);
        if (b->labels[b->cursor] && !binary_turn_on(b, (int32_t)b->cursor)) return 0;
    }
    b->cursor = b->round = b->changed = 0;
    *complete = 1;
    return 1;
}

/* Flips single variables while that gains, a piece of it. */
static int ascend(binary *b, int *complete) {
    enum { MOST_ROUNDS = 50 }; /* over all variables: a handful is usual */
    const int64_t n = b->model->s->n_vars;
    *complete = 0;
    for (b->work = 0;;) {
        for (; b->cursor < n; b->cursor++) {
            const int32_t i = (int32_t)b->cursor;
            if (b->work++ > BINARY_CHUNK) return 1;
            double w = b->degree[i] || b->u[i] > 0 || b->labels[i] ? worth(b, i) : -1;
            if (b->labels[i] ? w >= 0 : w <= 0) continue;
            if (!b->is_on[i]) {
                if (!binary_turn_on(b, i)) return 0;
                if (worth(b, i) <= 0) continue;
            }
            b->labels[i] = !b->labels[i];
            b->changed = 1;
        }
        b->cursor = 0;
        if (!b->changed || ++b->round == MOST_ROUNDS) break;
        b->changed = 0;
    }
    *complete = 1;
    return 1;
}

static void consider(fgi_solver *solver, binary *b) {
    double score = 0;
    for (int32_t i = 0; i < b->model->s->n_vars; i++)
        if (b->labels[i]) score += 0.5 * (b->u[i] + worth(b, i)); /* each pair is seen from both ends */
    if (b->best == -INFINITY || score > b->best + 1e-12 * fabs(b->best)) {
        b->best = score;
        fgi_solver_consider(solver, b->labels);
    }
}

int binary_label(fgi_solver *solver, binary *b) {
    int complete;
    if (!(b->stage == ROUND ? round_labels(b, &complete) : ascend(b, &complete))) return 0;
    if (!complete) return 1;
    if (b->stage == ROUND) {
        b->stage = ASCEND;
        return 1;
    }
    consider(solver, b);
    if (b->settled > 1) solver->info.status = FGI_CONVERGED;
    b->stage = solver->info.iterations == 0 ? FACTORS : ACTIVATE;
    return 1;
}
