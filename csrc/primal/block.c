/* primal/block.c - see primal/block.h.
 *
 * A clique table has its own variable slowest and then the separator in the order of elimination, so that the next to
 * be eliminated is the slowest dimension of the message as well: a child's message is laid out like its parent's table
 * with some dimensions missing, and both the sums and the maximum run over long contiguous stretches. */
#include "primal/block.h"
#include <string.h>
#include "base/assert.h"

enum {
    SIZE_CLASSES = 40, /* buffers are kept by powers of two: so many classes of sizes */
    GATHER = 64,       /* entries whose places are looked up once and used for a whole run */
    MAX_ARITY = 64,    /* variables of a factor, at most */
    PER_BUCKET = 300,  /* operations counted for the bookkeeping of a bucket */
    PER_FACTOR = 20    /* operations counted for that of each of its factors */
};

typedef struct buffer {
    struct buffer *next;
    double values[];
} buffer;

struct fgi_block {
    const fgi_model *model;
    const fgi_elimination *e;
    const int32_t *labels, *alternatives;
    double penalty;
    uint64_t coins;
    int64_t place; /* next bucket */
    int finished;
    int64_t operations;
    buffer *spare[SIZE_CLASSES]; /* free buffers of 2^class values */
    /* per place, grown as needed */
    int64_t capacity;
    buffer **message;
    int32_t *first_child, *next_child;
    int64_t *choice_begin;
    int32_t *out;
    uint8_t *wide; /* argmax labels: 1 or 2 bytes each */
    int64_t wide_capacity;
    int bytes;               /* per argmax label */
    double *table, *reduced; /* clique table, one factor restricted to its free variables */
    int64_t table_capacity;
    double *line;   /* max_card: the unary part */
    uint16_t *best; /* argmax of the bucket at hand */
};

/* Part of a clique table: base[sum of label * stride] * weight. */
typedef struct part {
    const double *base;
    double weight;
    int64_t stride[FGI_BLOCK_DIMENSIONS];
} part;

typedef struct clique {
    int32_t dims;
    int32_t card[FGI_BLOCK_DIMENSIONS];
    int32_t place[FGI_BLOCK_DIMENSIONS];
    int64_t size, sep_size;
} clique;

fgi_block *fgi_block_create(const fgi_model *m) {
    fgi_block *t = fgi_calloc(1, sizeof *t);
    if (!t) return NULL;
    t->model = m;
    t->finished = 1;
    t->bytes = m->s->max_card <= 256 ? 1 : 2;
    t->line = fgi_alloc(m->s->max_card + 1, sizeof(double));
    if (t->line) return t;
    fgi_block_free(t);
    return NULL;
}

static void release(fgi_block *t, int64_t place, int64_t size) {
    int k = 0;
    fgi_assert(place >= 0 && place < t->capacity && t->message[place]);
    while (((int64_t)1 << k) < size) k++;
    fgi_assert(k < SIZE_CLASSES);
    t->message[place]->next = t->spare[k];
    t->spare[k] = t->message[place];
    t->message[place] = NULL;
}

static buffer *acquire(fgi_block *t, int64_t size) {
    int k = 0;
    while (((int64_t)1 << k) < size) k++;
    fgi_assert(size >= 1 && k < SIZE_CLASSES);
    buffer *b = t->spare[k];
    if (b) {
        t->spare[k] = b->next;
        return b;
    }
    return malloc(sizeof *b + ((size_t)1 << k) * sizeof(double));
}

static void free_places(fgi_block *t) {
    for (int64_t k = 0; k < t->capacity && t->message; k++) free(t->message[k]);
    free(t->message);
    free(t->first_child);
    free(t->next_child);
    free(t->choice_begin);
    free(t->out);
}

void fgi_block_free(fgi_block *t) {
    if (!t) return;
    for (int k = 0; k < SIZE_CLASSES; k++)
        while (t->spare[k]) {
            buffer *b = t->spare[k];
            t->spare[k] = b->next;
            free(b);
        }
    free_places(t);
    free(t->wide);
    free(t->table);
    free(t->reduced);
    free(t->best);
    free(t->line);
    free(t);
}

const int32_t *fgi_block_labels(const fgi_block *t) { return t->out; }
int64_t fgi_block_operations(const fgi_block *t) { return t->operations; }

/* One row of per-place arrays; what they held before is not needed. */
static fgi_rc grow_places(fgi_block *t, int64_t n) {
    if (n < t->capacity) return FGI_OK;
    free_places(t);
    int64_t capacity = n + n / 2 + 1;
    t->message = fgi_calloc(capacity, sizeof *t->message);
    t->first_child = fgi_alloc(capacity, sizeof(int32_t));
    t->next_child = fgi_alloc(capacity, sizeof(int32_t));
    t->choice_begin = fgi_alloc(capacity + 1, sizeof(int64_t));
    t->out = fgi_alloc(capacity, sizeof(int32_t));
    t->capacity = 0;
    if (!t->message || !t->first_child || !t->next_child || !t->choice_begin || !t->out) return FGI_NO_MEMORY;
    t->capacity = capacity;
    return FGI_OK;
}

static fgi_rc grow_tables(fgi_block *t, int64_t table, int64_t choices) {
    if (table > t->table_capacity) {
        free(t->table);
        free(t->reduced);
        free(t->best);
        t->table = fgi_alloc(table, sizeof(double));
        t->reduced = fgi_alloc(table, sizeof(double));
        t->best = fgi_alloc(table, sizeof(uint16_t));
        t->table_capacity = t->table && t->reduced && t->best ? table : 0;
        if (!t->table_capacity) return FGI_NO_MEMORY;
    }
    if (choices > t->wide_capacity) {
        free(t->wide);
        t->wide = fgi_alloc(choices, (size_t)t->bytes);
        t->wide_capacity = t->wide ? choices : 0;
        if (!t->wide) return FGI_NO_MEMORY;
    }
    return FGI_OK;
}

/* States of a variable of the set, and the label that goes with a state. */
static int32_t states_of(const fgi_block *t, int32_t var) { return t->alternatives ? 2 : t->model->s->cards[var]; }
static int32_t label_of(const fgi_block *t, int32_t var, int32_t state) {
    if (!t->alternatives) return state;
    return state ? t->alternatives[var] : t->labels[var];
}

static clique clique_of(const fgi_block *t, int64_t place) {
    const fgi_elimination *e = t->e;
    fgi_assert(place >= 0 && place < e->n && e->sep_begin[place] <= e->sep_begin[place + 1]);
    clique c;
    c.dims = 1 + (int32_t)(e->sep_begin[place + 1] - e->sep_begin[place]);
    c.place[0] = (int32_t)place;
    c.card[0] = states_of(t, e->order[place]);
    c.sep_size = 1;
    for (int32_t d = 1; d < c.dims; d++) {
        c.place[d] = e->sep[e->sep_begin[place] + d - 1];
        fgi_assert(c.place[d] > place && c.place[d] < e->n);
        c.card[d] = states_of(t, e->order[c.place[d]]);
        c.sep_size *= c.card[d];
    }
    c.size = c.sep_size * c.card[0];
    return c;
}

fgi_rc fgi_block_start(fgi_block *t, const fgi_elimination *e, const int32_t *labels, const int32_t *alternatives,
    double penalty, uint64_t coins) {
    if (t->model->s->max_card > 65535 || t->model->s->max_arity > MAX_ARITY) return FGI_UNSUPPORTED;
    if (!t->finished) { /* messages of a run that was never finished */
        for (int64_t k = 0; k < t->capacity; k++) {
            free(t->message[k]);
            t->message[k] = NULL;
        }
    }
    fgi_rc rc = grow_places(t, e->n);
    if (rc) return rc;
    t->e = e;
    t->labels = labels;
    t->alternatives = alternatives;
    t->penalty = penalty;
    t->coins = coins;
    t->place = 0;
    t->finished = 0;
    int64_t choices = 0, table = 1;
    for (int64_t k = 0; k < e->n; k++) {
        if (e->sep_begin[k + 1] - e->sep_begin[k] >= FGI_BLOCK_DIMENSIONS) return FGI_UNSUPPORTED;
        clique c = clique_of(t, k);
        t->first_child[k] = -1;
        t->choice_begin[k] = choices;
        choices += c.sep_size;
        if (c.size > table) table = c.size;
    }
    t->choice_begin[e->n] = choices;
    return grow_tables(t, table, choices);
}

/* ---- sums --------------------------------------------------------------------------------------------------- */

static void add_constant(double *table, double x, int64_t n) {
    for (int64_t k = 0; k < n; k++) table[k] += x;
}

static void add_run(double *restrict table, const double *restrict x, double weight, int64_t n) {
    if (weight == 1.0) {
        for (int64_t k = 0; k < n; k++) table[k] += x[k];
    } else {
        for (int64_t k = 0; k < n; k++) table[k] += weight * x[k];
    }
}

static void add_gather(
    double *restrict table, const double *restrict x, const int64_t *restrict at, double weight, int64_t n) {
    for (int64_t k = 0; k < n; k++) table[k] += weight * x[at[k]];
}

static void add_strided(double *restrict table, const double *restrict x, int64_t stride, double weight, int64_t n) {
    for (int64_t k = 0; k < n; k++) table[k] += weight * x[k * stride];
}

/* Offsets of all labels of the last dimensions [from, dims), last fastest. */
static void offsets(const clique *c, const part *p, int32_t from, int64_t *at) {
    int64_t n = 1;
    at[0] = 0;
    for (int32_t d = from; d < c->dims; d++) { /* widen what is there by one faster dimension, back to front */
        for (int64_t k = n - 1; k >= 0; k--)
            for (int32_t a = c->card[d] - 1; a >= 0; a--) at[k * c->card[d] + a] = at[k] + a * p->stride[d];
        n *= c->card[d];
    }
}

/* table += part, over the whole clique. The fastest dimensions are taken as one run: constant, contiguous or gathered.
 */
static void add_part(const clique *c, double *table, const part *p) {
    int32_t split = c->dims;
    int64_t run = 1;
    int64_t at[GATHER];
    enum { CONSTANT, CONTIGUOUS, GATHERED, STRIDED } mode = CONSTANT;
    while (split > 0 && p->stride[split - 1] == 0) run *= c->card[--split];
    if (run == 1 || (run < 4 && split > 0)) {
        split = c->dims;
        run = 1;
        mode = CONTIGUOUS;
        while (split > 0 && p->stride[split - 1] == run) run *= c->card[--split];
        if (run < 4 && split > 0) {
            split = c->dims;
            run = 1;
            while (split > 0 && run * c->card[split - 1] <= GATHER) run *= c->card[--split];
            if (split < c->dims) {
                mode = GATHERED;
                offsets(c, p, split, at);
            } else {
                mode = STRIDED; /* one large dimension */
                run = c->card[--split];
            }
        }
    }
    int32_t digit[FGI_BLOCK_DIMENSIONS] = {0};
    const double *x = p->base;
    for (int64_t done = 0; done < c->size; done += run, table += run) {
        if (mode == CONSTANT) add_constant(table, p->weight * *x, run);
        else if (mode == CONTIGUOUS) add_run(table, x, p->weight, run);
        else if (mode == GATHERED) add_gather(table, x, at, p->weight, run);
        else add_strided(table, x, p->stride[c->dims - 1], p->weight, run);
        for (int32_t d = split - 1; d >= 0; d--) {
            x += p->stride[d];
            if (++digit[d] < c->card[d]) break;
            x -= p->stride[d] * c->card[d];
            digit[d] = 0;
        }
    }
}

static double soften(const fgi_block *t, double x) { return x == -INFINITY && t->penalty > 0 ? -t->penalty : x; }

/* Where in the clique each variable of a factor is: dimension, or -1 when fixed. Returns the number of free ones, or 0
 * when the factor belongs to an earlier bucket. */
static int32_t factor_dims(const fgi_block *t, const clique *c, const fgi_view *v, int32_t *dim) {
    int32_t n_free = 0;
    for (int32_t k = 0; k < v->arity; k++) {
        int32_t place = t->e->position[v->vars[k]];
        dim[k] = -1;
        if (place < 0) continue;
        if (place < c->place[0]) return 0;
        n_free++;
        for (int32_t d = 0; d < c->dims; d++)
            if (c->place[d] == place) dim[k] = d;
    }
    return n_free;
}

/* The same, softened or in closed form, written into t->reduced: the factor's free variables in clique order. */
static part written_part(fgi_block *t, const clique *c, const fgi_view *v, const int32_t *dim, const part *p) {
    part to = {.base = t->reduced, .weight = 1.0};
    int32_t dims[FGI_BLOCK_DIMENSIONS], digit[FGI_BLOCK_DIMENSIONS] = {0}, n = 0;
    int64_t size = 1;
    for (int32_t d = 0; d < c->dims; d++)
        for (int32_t k = 0; k < v->arity; k++)
            if (dim[k] == d) dims[n++] = d;
    for (int32_t k = n - 1; k >= 0; k--) {
        to.stride[dims[k]] = size;
        size *= c->card[dims[k]];
    }
    const double *x = p->base;
    for (int64_t y = 0; y < size; y++) {
        if (v->kind == FGI_DENSE) {
            t->reduced[y] = soften(t, v->weight * *x);
        } else { /* symmetric in its labels, both free */
            const int32_t a = label_of(t, t->e->order[c->place[dims[0]]], digit[0]);
            const int32_t b = label_of(t, t->e->order[c->place[dims[1]]], digit[1]);
            t->reduced[y] = soften(t, v->weight * fgi_implicit_at(v->kind, v->p0, v->p1, a, b));
        }
        for (int32_t k = n - 1; k >= 0; k--) {
            if (v->kind == FGI_DENSE) x += p->stride[dims[k]];
            if (++digit[k] < c->card[dims[k]]) break;
            if (v->kind == FGI_DENSE) x -= p->stride[dims[k]] * c->card[dims[k]];
            digit[k] = 0;
        }
    }
    return to;
}

/* A factor's table as a part of the clique's. Dense tables are used where they lie: a state of a fusion move is an
 * offset as good as a label. Others are written out first. */
static part factor_part(fgi_block *t, const clique *c, const fgi_view *v, const int32_t *dim) {
    part p = {.weight = v->weight};
    const int32_t *cards = t->model->s->cards;
    const int64_t stride[2] = {v->transposed ? 1 : v->cols, v->transposed ? v->rows : 1};
    const int dense = v->kind == FGI_DENSE;
    int64_t step = 1, at = 0;
    for (int32_t k = v->arity - 1; k >= 0; k--) {
        const int32_t var = v->vars[k];
        const int64_t s = !dense ? 0 : v->arity == 2 ? stride[k] : step;
        if (dim[k] < 0 || t->alternatives) at += s * t->labels[var];
        if (dim[k] >= 0) p.stride[dim[k]] = t->alternatives ? s * (t->alternatives[var] - t->labels[var]) : s;
        step *= cards[var];
    }
    p.base = dense ? v->values + at : NULL;
    if (dense && !(t->penalty > 0 && t->model->t->facts[v->table].n_forbidden > 0)) return p;
    return written_part(t, c, v, dim, &p);
}

/* line[a] += the factor at label a of the bucket's variable, all its other variables being fixed. */
static void add_line(fgi_block *t, const fgi_view *v, int32_t var) {
    const int32_t card = states_of(t, var);
    if (v->kind != FGI_DENSE) {
        int32_t other = t->labels[v->vars[v->vars[0] == var]];
        for (int32_t a = 0; a < card; a++)
            t->line[a] += soften(t, v->weight * fgi_implicit_at(v->kind, v->p0, v->p1, label_of(t, var, a), other));
        return;
    }
    int64_t at = 0, stride = 0, step = 1;
    if (v->arity == 2) {
        int first = v->vars[0] == var;
        int64_t row = v->transposed ? 1 : v->cols, col = v->transposed ? v->rows : 1;
        stride = first ? row : col;
        at = t->labels[v->vars[first]] * (first ? col : row);
    } else {
        for (int32_t k = v->arity - 1; k >= 0; k--) {
            if (v->vars[k] == var) stride = step;
            else at += step * t->labels[v->vars[k]];
            step *= t->model->s->cards[v->vars[k]];
        }
    }
    if (t->alternatives) {
        at += stride * t->labels[var];
        stride *= t->alternatives[var] - t->labels[var];
    }
    const double *x = v->values + at;
    if (t->penalty > 0) {
        for (int32_t a = 0; a < card; a++) t->line[a] += soften(t, v->weight * x[a * stride]);
    } else {
        for (int32_t a = 0; a < card; a++) t->line[a] += v->weight * x[a * stride];
    }
}

/* ---- one bucket --------------------------------------------------------------------------------------------- */

static part message_part(const fgi_block *t, const clique *c, int64_t child) {
    const fgi_elimination *e = t->e;
    part p = {.base = t->message[child]->values, .weight = 1.0};
    int64_t step = 1;
    int32_t d = c->dims - 1;
    for (int64_t k = e->sep_begin[child + 1] - 1; k >= e->sep_begin[child]; k--) {
        while (c->place[d] != e->sep[k]) d--;
        p.stride[d] = step;
        step *= c->card[d];
    }
    return p;
}

static void sum_bucket(fgi_block *t, const clique *c) {
    const fgi_structure *s = t->model->s;
    const int32_t var = t->e->order[c->place[0]];
    int32_t dim[MAX_ARITY];
    t->operations += PER_BUCKET + PER_FACTOR * (s->adj_begin[var + 1] - s->adj_begin[var]);
    for (int32_t a = 0; a < c->card[0]; a++) t->line[a] = soften(t, fgi_unary(t->model, var)[label_of(t, var, a)]);
    /* Factors with nothing else free go into the line first; then the line fills the table. */
    for (int64_t k = s->adj_begin[var]; k < s->adj_begin[var + 1]; k++) {
        const int32_t *vars = fgi_factor_vars(s, s->adj[k]);
        int n_free = 0;
        for (int32_t j = 0; j < fgi_factor_arity(s, s->adj[k]); j++) n_free += t->e->position[vars[j]] >= 0;
        if (n_free > 1) continue;
        fgi_view v = fgi_factor_view(t->model, s->adj[k]);
        add_line(t, &v, var);
        t->operations += c->card[0];
    }
    for (int32_t a = 0; a < c->card[0]; a++) {
        double *row = t->table + a * c->sep_size;
        for (int64_t y = 0; y < c->sep_size; y++) row[y] = t->line[a];
    }
    for (int64_t k = s->adj_begin[var]; k < s->adj_begin[var + 1]; k++) {
        fgi_view v = fgi_factor_view(t->model, s->adj[k]);
        if (factor_dims(t, c, &v, dim) < 2) continue;
        part p = factor_part(t, c, &v, dim);
        add_part(c, t->table, &p);
        t->operations += c->size;
    }
    for (int32_t child = t->first_child[c->place[0]]; child >= 0; child = t->next_child[child]) {
        part p = message_part(t, c, child);
        add_part(c, t->table, &p);
        release(t, child, t->choice_begin[child + 1] - t->choice_begin[child]);
        t->operations += c->size;
    }
}

/* message = max over the bucket's own labels; ties go to the first in the direction of the coin. */
static void maximise(fgi_block *t, const clique *c, double *message) {
    const int64_t n = c->sep_size, place = c->place[0];
    const uint64_t coin = (t->coins ^ (uint64_t)place) * 0x9E3779B97F4A7C15u;
    const int32_t last = c->card[0] - 1, down = (int32_t)(coin >> 63);
    const double *x = t->table + (down ? last : 0) * n;
    memcpy(message, x, (size_t)n * sizeof *x);
    for (int64_t y = 0; y < n; y++) t->best[y] = (uint16_t)(down ? last : 0);
    for (int32_t k = 1; k <= last; k++) {
        const int32_t a = down ? last - k : k;
        x = t->table + a * n;
        for (int64_t y = 0; y < n; y++) {
            int better = x[y] > message[y];
            message[y] = better ? x[y] : message[y];
            t->best[y] = better ? (uint16_t)a : t->best[y];
        }
    }
    uint8_t *narrow = t->wide + t->choice_begin[place];
    if (t->bytes == 1) {
        for (int64_t y = 0; y < n; y++) narrow[y] = (uint8_t)t->best[y];
    } else {
        memcpy(t->wide + 2 * t->choice_begin[place], t->best, (size_t)n * sizeof *t->best);
    }
    t->operations += c->size;
}

static fgi_rc bucket(fgi_block *t) {
    const clique c = clique_of(t, t->place);
    sum_bucket(t, &c);
    buffer *b = acquire(t, c.sep_size);
    if (!b) return FGI_NO_MEMORY;
    t->message[t->place] = b;
    maximise(t, &c, b->values);
    if (c.dims == 1) {
        release(t, t->place, 1);
    } else {
        t->next_child[t->place] = t->first_child[c.place[1]];
        t->first_child[c.place[1]] = (int32_t)t->place;
    }
    t->place++;
    return FGI_OK;
}

/* Labels from the last eliminated variable to the first. */
static void trace_back(fgi_block *t) {
    const fgi_elimination *e = t->e;
    for (int64_t k = e->n - 1; k >= 0; k--) {
        int64_t at = 0;
        for (int64_t j = e->sep_begin[k]; j < e->sep_begin[k + 1]; j++)
            at = at * states_of(t, e->order[e->sep[j]]) + t->out[e->sep[j]];
        at += t->choice_begin[k];
        uint16_t wide;
        if (t->bytes == 2) memcpy(&wide, t->wide + 2 * at, sizeof wide);
        else wide = t->wide[at];
        t->out[k] = wide;
    }
    for (int64_t k = 0; k < e->n; k++) t->out[k] = label_of(t, e->order[k], t->out[k]);
}

fgi_rc fgi_block_step(fgi_block *t, int64_t max_operations, int *done) {
    const int64_t end = t->operations + max_operations;
    *done = 0;
    while (t->place < t->e->n) {
        if (t->operations >= end) return FGI_OK;
        fgi_rc rc = bucket(t);
        if (rc) return rc;
    }
    trace_back(t);
    *done = t->finished = 1;
    return FGI_OK;
}
