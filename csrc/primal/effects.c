/* primal/effects.c - see primal/effects.h. */
#include "primal/effects.h"
#include "base/assert.h"
#include <stdlib.h>
#include "base/util.h"

/* So many rows are kept for nodes of so many neighbours; time falls to about half where variables have many
 * (decision 0016). */
enum { ROWS = FGI_EFFECTS_ROWS, LEAST_DEGREE = 12 };
static const int64_t MOST_BYTES = INT64_C(256) << 20; /* else changes are as slow as they were */

struct fgi_effects_rows {
    double *numbers;
    int64_t asked;       /* how often rows of this variable have been asked for */
    int64_t last[ROWS];  /* when each was asked for last, by that count */
    int32_t label[ROWS]; /* whose row it is; -1: nobody's */
};

/* Room for a row of the variable. Many have less to write: their neighbours' label counts are not looked at beforehand,
 * which on large models would take as long as a sweep. */
static int64_t room(const fgi_structure *s, int64_t var) {
    return (s->adj_begin[var + 1] - s->adj_begin[var]) * s->max_card;
}

static int32_t rows_of(const fgi_structure *s, int64_t var) { return s->cards[var] < ROWS ? s->cards[var] : ROWS; }

/* A change of label that changes two labels of the neighbour, or a few more, is cheap without a row. */
static int is_kept(const fgi_view *v) {
    const int32_t card = v->rows < v->cols ? v->rows : v->cols;
    return v->arity == 2 && fgi_view_reach(v) > card / 8;
}

static int any_kept(const fgi_model *m) {
    for (int64_t t = 0; t < m->s->n_tables; t++)
        if (m->s->table_kind[t] != FGI_POTTS && !m->t->facts[t].reach) return 1;
    return 0;
}

/* Numbers of all rows; 0: too many to keep, or too few to be worth it. */
static int64_t count_numbers(const fgi_structure *s) {
    const int64_t most = MOST_BYTES / (int64_t)sizeof(double), entries = s->adj_begin[s->n_vars];
    int64_t numbers = 0;
    if (entries < LEAST_DEGREE * s->n_vars || entries > most / s->max_card) return 0;
    for (int64_t i = 0; i < s->n_vars; i++) numbers += rows_of(s, i) * room(s, i);
    return numbers <= most ? numbers : 0;
}

fgi_effects *fgi_effects_create(const fgi_model *m) {
    const fgi_structure *s = m->s;
    const int64_t numbers = s->n_vars > 0 && any_kept(m) ? count_numbers(s) : 0;
    fgi_effects *e = numbers > 0 ? fgi_calloc(1, sizeof *e) : NULL;
    if (!e) return NULL;
    e->model = m;
    e->neighbour = fgi_take(&e->arena, s->adj_begin[s->n_vars], int32_t);
    e->kept = fgi_take_zero(&e->arena, s->n_vars, struct fgi_effects_rows);
    e->numbers = fgi_take_blank(&e->arena, numbers, double);
    if (e->arena.failed) {
        fgi_effects_free(e);
        return NULL;
    }
    double *at = e->numbers;
    for (int64_t i = 0; i < s->n_vars; i++) {
        e->kept[i].numbers = at;
        at += rows_of(s, i) * room(s, i);
    }
    return e;
}

void fgi_effects_free(fgi_effects *e) {
    if (!e) return;
    fgi_arena_free(&e->arena);
    free(e);
}

static void find_neighbours(const fgi_effects *e, int32_t var) {
    const fgi_structure *s = e->model->s;
    for (int64_t k = s->adj_begin[var]; k < s->adj_begin[var + 1]; k++) {
        const fgi_view v = fgi_factor_view(e->model, s->adj[k]);
        e->neighbour[k] = is_kept(&v) ? v.vars[v.vars[0] == var] : -1;
    }
}

static void write_row(const fgi_effects *e, int32_t var, int32_t label, double *to) {
    const fgi_structure *s = e->model->s;
    for (int64_t k = s->adj_begin[var]; k < s->adj_begin[var + 1]; k++) {
        if (e->neighbour[k] < 0) continue;
        const fgi_view v = fgi_factor_view(e->model, s->adj[k]);
        const int first = v.vars[0] == var;
        const int32_t card = first ? v.cols : v.rows;
        if (v.kind == FGI_DENSE) {
            const int64_t down = v.transposed ? 1 : v.cols, right = v.transposed ? v.rows : 1; /* to the next entry */
            const int64_t stride = first ? right : down;
            const double *x = v.values + label * (first ? down : right);
            for (int32_t a = 0; a < card; a++) to[a] = v.weight * x[a * stride];
        } else {
            for (int32_t a = 0; a < card; a++) to[a] = v.weight * fgi_implicit_at(v.kind, v.p0, v.p1, a, label);
        }
        to += card;
    }
}

const double *fgi_effects_of(fgi_effects *e, int32_t var, int32_t label) {
    fgi_assert(var >= 0 && label >= 0);
    struct fgi_effects_rows *kept = &e->kept[var];
    const int32_t rows = rows_of(e->model->s, var);
    int32_t k = 0, oldest = 0;
    if (kept->asked++ == 0) {
        find_neighbours(e, var);
        for (int32_t r = 0; r < rows; r++) kept->label[r] = -1;
    }
    for (; k < rows && kept->label[k] != label; k++)
        if (kept->last[k] < kept->last[oldest]) oldest = k;
    const int is_new = k == rows;
    if (is_new) k = oldest;
    double *row = kept->numbers + k * room(e->model->s, var);
    if (is_new) write_row(e, var, label, row);
    kept->label[k] = label;
    kept->last[k] = kept->asked;
    return row;
}
