/* primal/thin.c - see primal/thin.h. */
#include "base/array.h"
#include "primal/thin.h"
#include <string.h>
#include "base/assert.h"

enum { OUTSIDE, ALIVE, ELIMINATED, GIVEN_UP };
enum { LARGEST_LIMIT = 26 * FGI_LOG_UNIT }; /* logarithm of the states of a table: 2^26, 512 MB */

struct fgi_thin {
    const fgi_model *model;
    fgi_thin_options options;
    fgi_rng rng;
    const int32_t *region;
    int64_t n_region;
    int32_t *label_bits;     /* per variable: log2 of its labels in 1/FGI_LOG_UNIT */
    int32_t *one_bit, *bits; /* the same for two states each; what counts this time */
    uint8_t *state;
    int32_t **adjacent; /* per variable: neighbours in the region, with stale entries */
    int32_t *degree, *room;
    int32_t *size;            /* clique table, 1/FGI_LOG_UNIT bits */
    int32_t *next, *previous; /* lists of variables of equal size, -1 ends */
    int32_t head[LARGEST_LIMIT + 1], tail[LARGEST_LIMIT + 1];
    int32_t smallest;
    int32_t *alive, *alive_at; /* the variables still in play, and where each is in that list */
    int64_t n_alive;
    int32_t *mark;
    int32_t stamp;
    int64_t loaded; /* how much of the region has its neighbours */
    int64_t operations, cost;
    /* sweep */
    int32_t front[FGI_BLOCK_DIMENSIONS]; /* variables met but not yet eliminated */
    int32_t n_front, front_bits;
    uint8_t *met;
    int32_t *open; /* how many neighbours of a variable of the front have not been met */
    int64_t next_seed;
    /* result */
    int32_t *order, *position;
    int64_t *sep_begin;
    int32_t *sep;
    int64_t sep_room;
    fgi_elimination out;
};

fgi_thin *fgi_thin_create(const fgi_model *m) {
    const int64_t n = m->s->n_vars;
    fgi_thin *thin = fgi_calloc(1, sizeof *thin);
    if (!thin) return NULL;
    thin->model = m;
    thin->label_bits = fgi_alloc(n, sizeof(int32_t));
    thin->one_bit = fgi_alloc(n, sizeof(int32_t));
    thin->state = fgi_calloc(n, 1);
    thin->adjacent = fgi_calloc(n, sizeof *thin->adjacent);
    thin->degree = fgi_calloc(n, sizeof(int32_t));
    thin->room = fgi_calloc(n, sizeof(int32_t));
    thin->size = fgi_alloc(n, sizeof(int32_t));
    thin->next = fgi_alloc(n, sizeof(int32_t));
    thin->previous = fgi_alloc(n, sizeof(int32_t));
    thin->alive = fgi_alloc(n, sizeof(int32_t));
    thin->alive_at = fgi_alloc(n, sizeof(int32_t));
    thin->mark = fgi_calloc(n, sizeof(int32_t));
    thin->met = fgi_calloc(n, 1);
    thin->open = fgi_alloc(n, sizeof(int32_t));
    thin->order = fgi_alloc(n, sizeof(int32_t));
    thin->position = fgi_alloc(n, sizeof(int32_t));
    thin->sep_begin = fgi_alloc(n + 1, sizeof(int64_t));
    if (!thin->label_bits || !thin->one_bit || !thin->state || !thin->adjacent || !thin->degree || !thin->room ||
        !thin->size || !thin->next || !thin->previous || !thin->alive || !thin->alive_at || !thin->mark || !thin->met ||
        !thin->open || !thin->order || !thin->position || !thin->sep_begin) {
        fgi_thin_free(thin);
        return NULL;
    }
    for (int64_t i = 0; i < n; i++) {
        thin->one_bit[i] = FGI_LOG_UNIT;
        thin->label_bits[i] = (int32_t)ceil(FGI_LOG_UNIT * log2((double)m->s->cards[i]));
        thin->position[i] = -1;
    }
    return thin;
}

void fgi_thin_free(fgi_thin *thin) {
    if (!thin) return;
    for (int64_t i = 0; thin->adjacent && i < thin->model->s->n_vars; i++) free(thin->adjacent[i]);
    free(thin->label_bits);
    free(thin->one_bit);
    free(thin->state);
    free(thin->adjacent);
    free(thin->degree);
    free(thin->room);
    free(thin->size);
    free(thin->next);
    free(thin->previous);
    free(thin->alive);
    free(thin->alive_at);
    free(thin->mark);
    free(thin->met);
    free(thin->open);
    free(thin->order);
    free(thin->position);
    free(thin->sep_begin);
    free(thin->sep);
    free(thin);
}

const fgi_elimination *fgi_thin_elimination(const fgi_thin *thin) { return &thin->out; }
int64_t fgi_thin_operations(const fgi_thin *thin) { return thin->operations; }
/* ---- lists by size ------------------------------------------------------------------------------------------ */

static void unlink_variable(fgi_thin *thin, int32_t v) {
    fgi_assert(thin->size[v] >= 0);
    if (thin->size[v] > thin->options.log_limit) return;
    int32_t p = thin->previous[v], q = thin->next[v];
    if (p >= 0) thin->next[p] = q;
    else thin->head[thin->size[v]] = q;
    if (q >= 0) thin->previous[q] = p;
    else thin->tail[thin->size[v]] = p;
}

static void link_variable(fgi_thin *thin, int32_t v) {
    const int32_t size = thin->size[v];
    fgi_assert(size >= 0);
    if (size > thin->options.log_limit) return;
    int first = fgi_rng_below(&thin->rng, 100) < thin->options.last_in_first;
    thin->previous[v] = first ? -1 : thin->tail[size];
    thin->next[v] = first ? thin->head[size] : -1;
    if (thin->previous[v] >= 0) thin->next[thin->previous[v]] = v;
    else thin->head[size] = v;
    if (thin->next[v] >= 0) thin->previous[thin->next[v]] = v;
    else thin->tail[size] = v;
    if (size < thin->smallest) thin->smallest = size;
}

static void resize(fgi_thin *thin, int32_t v, int32_t size) {
    if (size == thin->size[v]) return;
    unlink_variable(thin, v);
    thin->size[v] = size;
    link_variable(thin, v);
}

/* ---- the graph ---------------------------------------------------------------------------------------------- */

static fgi_rc append(fgi_thin *thin, int32_t v, int32_t neighbour) {
    if (thin->degree[v] == thin->room[v]) {
        int32_t room = thin->room[v] ? 2 * thin->room[v] : 8;
        if (!fgi_resize(&thin->adjacent[v], room, sizeof *thin->adjacent[v])) return FGI_NO_MEMORY;
        thin->room[v] = room;
    }
    thin->adjacent[v][thin->degree[v]++] = neighbour;
    return FGI_OK;
}

static int32_t new_stamp(fgi_thin *thin) {
    if (thin->stamp == INT32_MAX) {
        memset(thin->mark, 0, (size_t)thin->model->s->n_vars * sizeof *thin->mark);
        thin->stamp = 0;
    }
    return ++thin->stamp;
}

/* Neighbours of a variable within the region: those it shares a factor with. */
static fgi_rc load(fgi_thin *thin, int32_t v) {
    const fgi_structure *s = thin->model->s;
    const int32_t stamp = new_stamp(thin);
    thin->mark[v] = stamp;
    thin->degree[v] = 0;
    int32_t size = thin->bits[v];
    for (int64_t k = s->adj_begin[v]; k < s->adj_begin[v + 1]; k++) {
        const int32_t *vars = fgi_factor_vars(s, s->adj[k]);
        const int32_t arity = fgi_factor_arity(s, s->adj[k]);
        thin->operations += arity;
        for (int32_t j = 0; j < arity; j++) {
            int32_t u = vars[j];
            if (thin->state[u] != ALIVE || thin->mark[u] == stamp) continue;
            thin->mark[u] = stamp;
            fgi_rc rc = append(thin, v, u);
            if (rc) return rc;
            size += thin->bits[u];
        }
    }
    thin->size[v] = size;
    link_variable(thin, v);
    return FGI_OK;
}

/* Marks the neighbours still in play and forgets the others. */
static void compact(fgi_thin *thin, int32_t v, int32_t stamp) {
    int32_t n = 0, *list = thin->adjacent[v];
    thin->operations += thin->degree[v];
    for (int32_t k = 0; k < thin->degree[v]; k++) {
        if (thin->state[list[k]] != ALIVE) continue;
        thin->mark[list[k]] = stamp;
        list[n++] = list[k];
    }
    thin->degree[v] = n;
}

static void leave(fgi_thin *thin, int32_t v, uint8_t state) {
    fgi_assert(thin->n_alive > 0 && thin->state[v] == ALIVE && thin->alive[thin->alive_at[v]] == v);
    int32_t last = thin->alive[--thin->n_alive];
    unlink_variable(thin, v);
    thin->state[v] = state;
    thin->alive[thin->alive_at[v]] = last;
    thin->alive_at[last] = thin->alive_at[v];
}

static fgi_rc grow_separators(fgi_thin *thin, int64_t need) {
    return fgi_grow(&thin->sep, &thin->sep_room, need, sizeof *thin->sep) ? FGI_OK : FGI_NO_MEMORY;
}

/* Takes v out of the graph and makes its neighbours a clique. */
static fgi_rc eliminate(fgi_thin *thin, int32_t v) {
    leave(thin, v, ELIMINATED);
    compact(thin, v, new_stamp(thin));
    const int32_t *list = thin->adjacent[v], n = thin->degree[v];
    const int64_t begin = thin->sep_begin[thin->out.n];
    fgi_rc rc = grow_separators(thin, begin + n);
    if (rc) return rc;
    if (n) memcpy(thin->sep + begin, list, (size_t)n * sizeof *list);
    thin->order[thin->out.n] = v;
    thin->position[v] = (int32_t)thin->out.n++;
    thin->sep_begin[thin->out.n] = begin + n;
    thin->cost += (int64_t)exp2((double)thin->size[v] / FGI_LOG_UNIT);
    for (int32_t k = 0; k < n; k++) {
        const int32_t u = list[k];
        int32_t size = thin->size[u] - thin->bits[v];
        const int32_t stamp = new_stamp(thin);
        compact(thin, u, stamp);
        thin->mark[u] = stamp;
        for (int32_t j = 0; j < n; j++) {
            if (thin->mark[list[j]] == stamp) continue;
            rc = append(thin, u, list[j]);
            if (rc) return rc;
            size += thin->bits[list[j]];
        }
        thin->operations += n;
        resize(thin, u, size);
    }
    return FGI_OK;
}

/* The variable keeps its label; the cliques around it shrink. */
static void give_up(fgi_thin *thin, int32_t v) {
    leave(thin, v, GIVEN_UP);
    compact(thin, v, new_stamp(thin));
    for (int32_t k = 0; k < thin->degree[v]; k++) {
        int32_t u = thin->adjacent[v][k];
        resize(thin, u, thin->size[u] - thin->bits[v]);
    }
}

/* The largest clique among a few at random: giving it up frees the most. */
static void give_up_some(fgi_thin *thin) {
    int32_t v = -1;
    for (int32_t k = 0; k < thin->options.sample; k++) {
        int32_t u = thin->alive[fgi_rng_below(&thin->rng, thin->n_alive)];
        if (v < 0 || thin->size[u] > thin->size[v]) v = u;
    }
    give_up(thin, v);
}

/* ---- sweep -------------------------------------------------------------------------------------------------- */

/* A variable has been met or given up: its neighbours in the front wait for one less. */
static void close_variable(fgi_thin *thin, int32_t v) {
    compact(thin, v, new_stamp(thin));
    for (int32_t k = 0; k < thin->degree[v]; k++) thin->open[thin->adjacent[v][k]]--;
}

static void meet(fgi_thin *thin, int32_t v) {
    close_variable(thin, v);
    thin->met[v] = 1;
    thin->open[v] = 0;
    for (int32_t k = 0; k < thin->degree[v]; k++) thin->open[v] += !thin->met[thin->adjacent[v][k]];
    thin->front[thin->n_front++] = v;
    thin->front_bits += thin->bits[v];
}

/* An unmet neighbour of v, of a few the one with the fewest unmet neighbours itself. */
static int32_t unmet_neighbour(fgi_thin *thin, int32_t v) {
    const int32_t degree = thin->degree[v], from = (int32_t)fgi_rng_below(&thin->rng, degree);
    int32_t best = -1, best_open = INT32_MAX, tried = 0;
    for (int32_t k = 0; k < degree && tried < 4; k++) {
        int32_t u = thin->adjacent[v][from + k < degree ? from + k : from + k - degree], unmet = 0;
        thin->operations++;
        if (thin->state[u] != ALIVE || thin->met[u]) continue;
        tried++;
        for (int32_t j = 0; j < thin->degree[u]; j++)
            unmet += thin->state[thin->adjacent[u][j]] == ALIVE && !thin->met[thin->adjacent[u][j]];
        thin->operations += thin->degree[u];
        if (unmet >= best_open) continue;
        best_open = unmet;
        best = u;
    }
    return best;
}

/* One step of the front: eliminate a variable all of whose neighbours have been met, or meet (or give up) another. */
static fgi_rc sweep(fgi_thin *thin) {
    if (thin->n_front == 0) { /* somewhere new */
        while (thin->state[thin->region[thin->next_seed]] != ALIVE) thin->next_seed++;
        int32_t v = thin->region[thin->next_seed];
        if (thin->bits[v] > thin->options.log_limit) give_up(thin, v);
        else meet(thin, v);
        return FGI_OK;
    }
    int32_t at = 0;
    for (int32_t k = 1; k < thin->n_front; k++)
        if (thin->open[thin->front[k]] < thin->open[thin->front[at]]) at = k;
    const int32_t v = thin->front[at];
    thin->operations += thin->n_front;
    if (thin->open[v] == 0) {
        memmove(thin->front + at, thin->front + at + 1, (size_t)(thin->n_front - at - 1) * sizeof *thin->front);
        thin->n_front--;
        thin->front_bits -= thin->bits[v];
        thin->met[v] = 0;
        return eliminate(thin, v);
    }
    const int32_t u = unmet_neighbour(thin, v);
    if (thin->front_bits + thin->bits[u] <= thin->options.log_limit && thin->n_front < FGI_BLOCK_DIMENSIONS - 1) {
        meet(thin, u);
    } else {
        close_variable(thin, u);
        give_up(thin, u);
    }
    return FGI_OK;
}

/* Drops from the separators what was given up later, turns variables into places and sorts them. */
static void finish(fgi_thin *thin) {
    int64_t write = 0, begin = 0;
    for (int64_t k = 0; k < thin->out.n; k++) {
        const int64_t end = thin->sep_begin[k + 1], own = write;
        for (int64_t j = begin; j < end; j++) {
            int32_t place = thin->position[thin->sep[j]];
            if (place < 0) continue;
            int64_t at = write++;
            for (; at > own && thin->sep[at - 1] > place; at--) thin->sep[at] = thin->sep[at - 1];
            thin->sep[at] = place;
        }
        begin = end;
        thin->sep_begin[k] = own;
    }
    thin->sep_begin[thin->out.n] = write;
}

void fgi_thin_start(fgi_thin *thin, const int32_t *region, int64_t n, const fgi_thin_options *options, uint64_t seed) {
    for (int64_t k = 0; k < thin->out.n; k++) thin->position[thin->order[k]] = -1;
    thin->options = *options;
    thin->bits = options->two_states ? thin->one_bit : thin->label_bits;
    if (thin->options.log_limit > LARGEST_LIMIT) thin->options.log_limit = LARGEST_LIMIT;
    thin->rng.state = seed;
    thin->region = region;
    thin->n_region = n;
    thin->loaded = 0;
    thin->cost = 0;
    thin->n_alive = 0;
    thin->smallest = thin->options.log_limit + 1;
    thin->n_front = thin->front_bits = 0;
    thin->next_seed = 0;
    thin->out.n = 0;
    thin->sep_begin[0] = 0;
    for (int32_t k = 0; k <= thin->options.log_limit; k++) thin->head[k] = thin->tail[k] = -1;
    for (int64_t k = 0; k < n; k++) {
        if (thin->model->s->cards[region[k]] < 2) continue;
        thin->state[region[k]] = ALIVE;
        thin->alive_at[region[k]] = (int32_t)thin->n_alive;
        thin->alive[thin->n_alive++] = region[k];
    }
    thin->operations += n;
}

fgi_rc fgi_thin_step(fgi_thin *thin, int64_t max_operations, int *done) {
    const int64_t end = thin->operations + max_operations;
    *done = 0;
    while (thin->loaded < thin->n_region) {
        if (thin->operations >= end) return FGI_OK;
        int32_t v = thin->region[thin->loaded++];
        if (thin->state[v] != ALIVE) continue;
        fgi_rc rc = load(thin, v);
        if (rc) return rc;
    }
    while (thin->n_alive > 0 && thin->cost < thin->options.cost_limit) {
        if (thin->operations >= end) return FGI_OK;
        if (thin->options.sweep) {
            fgi_rc rc = sweep(thin);
            if (rc) return rc;
            continue;
        }
        while (thin->smallest <= thin->options.log_limit && thin->head[thin->smallest] < 0) thin->smallest++;
        thin->operations++;
        if (thin->smallest > thin->options.log_limit) {
            give_up_some(thin);
            continue;
        }
        fgi_rc rc = eliminate(thin, thin->head[thin->smallest]);
        if (rc) return rc;
    }
    finish(thin);
    for (int32_t k = 0; k < thin->n_front; k++) thin->met[thin->front[k]] = 0;
    for (int64_t k = 0; k < thin->n_region; k++) thin->state[thin->region[k]] = OUTSIDE;
    thin->out = (fgi_elimination){.n = thin->out.n,
        .order = thin->order,
        .position = thin->position,
        .sep_begin = thin->sep_begin,
        .sep = thin->sep};
    *done = 1;
    return FGI_OK;
}
