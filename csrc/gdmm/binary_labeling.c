/* gdmm/binary_labeling.c - labelings of Algorithm 9: round, then flip single variables while that gains. */
#include <string.h>
#include "gdmm/binary.h"

/* Where most factors of a variable are active, a flip looks at all of them, side by side: the list of the active ones
 * lies all over the memory and takes more than three times as long (decision 0016). */
enum {
    FLIP_WORK = 2,        /* work of looking at a factor in a list, in links of a pass */
    FLIP_WORK_IN_ROWS = 7 /* work of looking at a factor in a row, in factors of a sweep */
};

static int flip_work(const binary *b) { return b->rows.far ? FLIP_WORK_IN_ROWS : FLIP_WORK; }

static void flip_by_adjacency(binary *b, int32_t i, double sign) {
    const fgi_structure *s = b->model->s;
    for (int64_t k = s->adj_begin[i]; k < s->adj_begin[i + 1]; k++) {
        const int32_t f = s->adj[k];
        const fgi_view v = fgi_factor_view(b->model, f);
        if (b->active[f >> 3] >> (f & 7) & 1) b->worth[v.vars[v.vars[0] == i]] += sign * binary_interaction(&v);
    }
}

static void flip_by_list(binary *b, int32_t i, double sign) {
    for (int32_t k = b->first[i]; k >= 0;) {
        const binary_link *l = &b->links[k / 2];
        b->worth[k % 2 ? l->i : l->j] += sign * l->t;
        k = l->next[k % 2];
    }
}

/* Variable i changes sides: its neighbours' worth follows. */
static void flip(binary *b, int32_t i) {
    const fgi_structure *s = b->model->s;
    const double sign = b->labels[i] ? -1 : 1;
    if (2 * b->degree[i] > s->adj_begin[i + 1] - s->adj_begin[i]) flip_by_adjacency(b, i, sign);
    else flip_by_list(b, i, sign);
    b->labels[i] = !b->labels[i];
    b->changed = 1;
    b->work += b->degree[i];
    b->label_work += flip_work(b) * b->degree[i];
}

static int is_rounded_up(const binary *b, int64_t i) { return b->x[i] > fgi_larger(0.5, b->on_from); }

static int64_t n_weighed(const binary *b) { return b->rows.far ? b->model->s->n_factors : b->n_links; }

/* Rounds x, unless a sweep has decided the labels. A variable new to the labeling first gets its factors to the rest. A
 * piece of it, see activate_more. */
static int round_labels(binary *b, int *complete) {
    *complete = 0;
    for (b->work = 0; b->cursor < b->model->s->n_vars && !b->rows.decided; b->cursor++) {
        if (b->work++ > BINARY_CHUNK) return 1;
        b->labels[b->cursor] = is_rounded_up(b, b->cursor);
        if (b->labels[b->cursor] && !binary_turn_on(b, (int32_t)b->cursor)) return 0;
    }
    memcpy(b->worth, b->u, (size_t)b->model->s->n_vars * sizeof *b->worth);
    b->label_work += n_weighed(b);
    b->labeled = b->decoded;
    b->cursor = b->round = b->changed = 0;
    *complete = 1;
    return 1;
}

/* What a variable adds to the score when it is on. All factors between variables that are on are active. One pass over
 * the links in their order: variable by variable they lie all over the memory, and with 1.9 million of them a labeling
 * took ten times as long as an iteration. */
static void weigh_link(binary *b, int64_t k) {
    const binary_link *l = &b->links[k];
    if (b->labels[l->j]) b->worth[l->i] += l->t;
    if (b->labels[l->i]) b->worth[l->j] += l->t;
}

static void weigh_row(binary *b, int64_t i) {
    const binary_rows *r = &b->rows;
    for (int64_t k = r->begin[i]; k < r->begin[i + 1]; k++) {
        if (b->labels[r->far[k]]) b->worth[i] += r->t[k];
        if (b->labels[i]) b->worth[r->far[k]] += r->t[k];
    }
    b->work += r->begin[i + 1] - r->begin[i];
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
            if (b->labels[i] ? b->worth[i] >= 0 : b->worth[i] <= 0) continue;
            if (!b->is_on[i]) { /* its factors to those that are on weigh in now */
                if (!binary_turn_on(b, i)) return 0;
                if (b->worth[i] <= 0) continue;
            }
            flip(b, i);
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
        if (b->labels[i]) score += 0.5 * (b->u[i] + b->worth[i]); /* each pair is seen from both ends */
    if (b->best == -INFINITY || score > b->best + 1e-12 * fabs(b->best)) {
        b->best = score;
        fgi_solver_consider(solver, b->labels);
    }
}

/* No more than a third of the work goes into labelings. What the next one takes is a guess: all variables that are
 * rounded to other labels than the best ones are flipped back. */
int binary_label_is_due(const fgi_solver *solver, const binary *b) {
    if (b->settled > 1 || b->best == -INFINITY) return 1;
    if (b->rows.far && b->decoded == b->labeled) return 0;
    int64_t work = b->label_work + n_weighed(b);
    for (int64_t i = 0; i < b->model->s->n_vars; i++)
        if ((b->rows.far ? b->labels[i] : is_rounded_up(b, i)) != solver->best[i]) work += flip_work(b) * b->degree[i];
    return 2 * work <= b->pass_work;
}

int binary_label(fgi_solver *solver, binary *b) {
    int complete = 1;
    switch (b->stage) {
    case ROUND:
        if (!round_labels(b, &complete)) return 0;
        if (complete) b->stage = WEIGH;
        return 1;
    case WEIGH:
        if (b->rows.far ? binary_each(b, b->model->s->n_vars, weigh_row) : binary_each(b, b->n_links, weigh_link))
            b->stage = ASCEND;
        return 1;
    default:
        if (!ascend(b, &complete)) return 0;
        if (!complete) return 1;
    }
    consider(solver, b);
    if (b->settled > 1) solver->info.status = FGI_CONVERGED;
    if (b->rows.far) binary_begin_forward(b);
    else b->stage = solver->info.iterations == 0 ? FACTORS : ACTIVATE;
    return 1;
}
