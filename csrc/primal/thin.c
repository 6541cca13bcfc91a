/* primal/thin.c - see primal/thin.h. */
#include "base/array.h"
#include "primal/thin.h"
#include <string.h>

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
    fgi_thin *s = fgi_calloc(1, sizeof *s);
    if (!s) return NULL;
    s->model = m;
    s->label_bits = fgi_alloc(n, sizeof(int32_t));
    s->one_bit = fgi_alloc(n, sizeof(int32_t));
    s->state = fgi_calloc(n, 1);
    s->adjacent = fgi_calloc(n, sizeof *s->adjacent);
    s->degree = fgi_calloc(n, sizeof(int32_t));
    s->room = fgi_calloc(n, sizeof(int32_t));
    s->size = fgi_alloc(n, sizeof(int32_t));
    s->next = fgi_alloc(n, sizeof(int32_t));
    s->previous = fgi_alloc(n, sizeof(int32_t));
    s->alive = fgi_alloc(n, sizeof(int32_t));
    s->alive_at = fgi_alloc(n, sizeof(int32_t));
    s->mark = fgi_calloc(n, sizeof(int32_t));
    s->met = fgi_calloc(n, 1);
    s->open = fgi_alloc(n, sizeof(int32_t));
    s->order = fgi_alloc(n, sizeof(int32_t));
    s->position = fgi_alloc(n, sizeof(int32_t));
    s->sep_begin = fgi_alloc(n + 1, sizeof(int64_t));
    if (!s->label_bits || !s->one_bit || !s->state || !s->adjacent || !s->degree || !s->room || !s->size || !s->next ||
        !s->previous || !s->alive || !s->alive_at || !s->mark || !s->met || !s->open || !s->order || !s->position ||
        !s->sep_begin) {
        fgi_thin_free(s);
        return NULL;
    }
    for (int64_t i = 0; i < n; i++) {
        s->one_bit[i] = FGI_LOG_UNIT;
        s->label_bits[i] = (int32_t)ceil(FGI_LOG_UNIT * log2((double)m->s->cards[i]));
        s->position[i] = -1;
    }
    return s;
}

void fgi_thin_free(fgi_thin *s) {
    if (!s) return;
    for (int64_t i = 0; s->adjacent && i < s->model->s->n_vars; i++) free(s->adjacent[i]);
    free(s->label_bits);
    free(s->one_bit);
    free(s->state);
    free(s->adjacent);
    free(s->degree);
    free(s->room);
    free(s->size);
    free(s->next);
    free(s->previous);
    free(s->alive);
    free(s->alive_at);
    free(s->mark);
    free(s->met);
    free(s->open);
    free(s->order);
    free(s->position);
    free(s->sep_begin);
    free(s->sep);
    free(s);
}

const fgi_elimination *fgi_thin_elimination(const fgi_thin *s) { return &s->out; }
int64_t fgi_thin_operations(const fgi_thin *s) { return s->operations; }
/* ---- lists by size ------------------------------------------------------------------------------------------ */

static void unlink_variable(fgi_thin *s, int32_t v) {
    if (s->size[v] > s->options.log_limit) return;
    int32_t p = s->previous[v], q = s->next[v];
    if (p >= 0) s->next[p] = q;
    else s->head[s->size[v]] = q;
    if (q >= 0) s->previous[q] = p;
    else s->tail[s->size[v]] = p;
}

static void link_variable(fgi_thin *s, int32_t v) {
    const int32_t size = s->size[v];
    if (size > s->options.log_limit) return;
    int first = fgi_rng_below(&s->rng, 100) < s->options.last_in_first;
    s->previous[v] = first ? -1 : s->tail[size];
    s->next[v] = first ? s->head[size] : -1;
    if (s->previous[v] >= 0) s->next[s->previous[v]] = v;
    else s->head[size] = v;
    if (s->next[v] >= 0) s->previous[s->next[v]] = v;
    else s->tail[size] = v;
    if (size < s->smallest) s->smallest = size;
}

static void resize(fgi_thin *s, int32_t v, int32_t size) {
    if (size == s->size[v]) return;
    unlink_variable(s, v);
    s->size[v] = size;
    link_variable(s, v);
}

/* ---- the graph ---------------------------------------------------------------------------------------------- */

static fgi_rc append(fgi_thin *s, int32_t v, int32_t neighbour) {
    if (s->degree[v] == s->room[v]) {
        int32_t room = s->room[v] ? 2 * s->room[v] : 8;
        if (!fgi_resize(&s->adjacent[v], room, sizeof *s->adjacent[v])) return FGI_NO_MEMORY;
        s->room[v] = room;
    }
    s->adjacent[v][s->degree[v]++] = neighbour;
    return FGI_OK;
}

static int32_t new_stamp(fgi_thin *s) {
    if (s->stamp == INT32_MAX) {
        memset(s->mark, 0, (size_t)s->model->s->n_vars * sizeof *s->mark);
        s->stamp = 0;
    }
    return ++s->stamp;
}

/* Neighbours of a variable within the region: those it shares a factor with. */
static fgi_rc load(fgi_thin *s, int32_t v) {
    const fgi_structure *st = s->model->s;
    const int32_t stamp = new_stamp(s);
    s->mark[v] = stamp;
    s->degree[v] = 0;
    int32_t size = s->bits[v];
    for (int64_t k = st->adj_begin[v]; k < st->adj_begin[v + 1]; k++) {
        const int32_t *vars = fgi_factor_vars(st, st->adj[k]);
        const int32_t arity = fgi_factor_arity(st, st->adj[k]);
        s->operations += arity;
        for (int32_t j = 0; j < arity; j++) {
            int32_t u = vars[j];
            if (s->state[u] != ALIVE || s->mark[u] == stamp) continue;
            s->mark[u] = stamp;
            fgi_rc rc = append(s, v, u);
            if (rc) return rc;
            size += s->bits[u];
        }
    }
    s->size[v] = size;
    link_variable(s, v);
    return FGI_OK;
}

/* Marks the neighbours still in play and forgets the others. */
static void compact(fgi_thin *s, int32_t v, int32_t stamp) {
    int32_t n = 0, *list = s->adjacent[v];
    s->operations += s->degree[v];
    for (int32_t k = 0; k < s->degree[v]; k++) {
        if (s->state[list[k]] != ALIVE) continue;
        s->mark[list[k]] = stamp;
        list[n++] = list[k];
    }
    s->degree[v] = n;
}

static void leave(fgi_thin *s, int32_t v, uint8_t state) {
    int32_t last = s->alive[--s->n_alive];
    unlink_variable(s, v);
    s->state[v] = state;
    s->alive[s->alive_at[v]] = last;
    s->alive_at[last] = s->alive_at[v];
}

static fgi_rc grow_separators(fgi_thin *s, int64_t need) {
    return fgi_grow(&s->sep, &s->sep_room, need, sizeof *s->sep) ? FGI_OK : FGI_NO_MEMORY;
}

/* Takes v out of the graph and makes its neighbours a clique. */
static fgi_rc eliminate(fgi_thin *s, int32_t v) {
    leave(s, v, ELIMINATED);
    compact(s, v, new_stamp(s));
    const int32_t *list = s->adjacent[v], n = s->degree[v];
    const int64_t begin = s->sep_begin[s->out.n];
    fgi_rc rc = grow_separators(s, begin + n);
    if (rc) return rc;
    if (n) memcpy(s->sep + begin, list, (size_t)n * sizeof *list);
    s->order[s->out.n] = v;
    s->position[v] = (int32_t)s->out.n++;
    s->sep_begin[s->out.n] = begin + n;
    s->cost += (int64_t)exp2((double)s->size[v] / FGI_LOG_UNIT);
    for (int32_t k = 0; k < n; k++) {
        const int32_t u = list[k];
        int32_t size = s->size[u] - s->bits[v];
        const int32_t stamp = new_stamp(s);
        compact(s, u, stamp);
        s->mark[u] = stamp;
        for (int32_t j = 0; j < n; j++) {
            if (s->mark[list[j]] == stamp) continue;
            rc = append(s, u, list[j]);
            if (rc) return rc;
            size += s->bits[list[j]];
        }
        s->operations += n;
        resize(s, u, size);
    }
    return FGI_OK;
}

/* The variable keeps its label; the cliques around it shrink. */
static void give_up(fgi_thin *s, int32_t v) {
    leave(s, v, GIVEN_UP);
    compact(s, v, new_stamp(s));
    for (int32_t k = 0; k < s->degree[v]; k++) {
        int32_t u = s->adjacent[v][k];
        resize(s, u, s->size[u] - s->bits[v]);
    }
}

/* The largest clique among a few at random: giving it up frees the most. */
static void give_up_some(fgi_thin *s) {
    int32_t v = -1;
    for (int32_t k = 0; k < s->options.sample; k++) {
        int32_t u = s->alive[fgi_rng_below(&s->rng, s->n_alive)];
        if (v < 0 || s->size[u] > s->size[v]) v = u;
    }
    give_up(s, v);
}

/* ---- sweep -------------------------------------------------------------------------------------------------- */

/* A variable has been met or given up: its neighbours in the front wait for one less. */
static void close_variable(fgi_thin *s, int32_t v) {
    compact(s, v, new_stamp(s));
    for (int32_t k = 0; k < s->degree[v]; k++) s->open[s->adjacent[v][k]]--;
}

static void meet(fgi_thin *s, int32_t v) {
    close_variable(s, v);
    s->met[v] = 1;
    s->open[v] = 0;
    for (int32_t k = 0; k < s->degree[v]; k++) s->open[v] += !s->met[s->adjacent[v][k]];
    s->front[s->n_front++] = v;
    s->front_bits += s->bits[v];
}

/* An unmet neighbour of v, of a few the one with the fewest unmet neighbours itself. */
static int32_t unmet_neighbour(fgi_thin *s, int32_t v) {
    const int32_t degree = s->degree[v], from = (int32_t)fgi_rng_below(&s->rng, degree);
    int32_t best = -1, best_open = INT32_MAX, tried = 0;
    for (int32_t k = 0; k < degree && tried < 4; k++) {
        int32_t u = s->adjacent[v][from + k < degree ? from + k : from + k - degree], unmet = 0;
        s->operations++;
        if (s->state[u] != ALIVE || s->met[u]) continue;
        tried++;
        for (int32_t j = 0; j < s->degree[u]; j++)
            unmet += s->state[s->adjacent[u][j]] == ALIVE && !s->met[s->adjacent[u][j]];
        s->operations += s->degree[u];
        if (unmet >= best_open) continue;
        best_open = unmet;
        best = u;
    }
    return best;
}

/* One step of the front: eliminate a variable all of whose neighbours have been met, or meet (or give up) another. */
static fgi_rc sweep(fgi_thin *s) {
    if (s->n_front == 0) { /* somewhere new */
        while (s->state[s->region[s->next_seed]] != ALIVE) s->next_seed++;
        int32_t v = s->region[s->next_seed];
        if (s->bits[v] > s->options.log_limit) give_up(s, v);
        else meet(s, v);
        return FGI_OK;
    }
    int32_t at = 0;
    for (int32_t k = 1; k < s->n_front; k++)
        if (s->open[s->front[k]] < s->open[s->front[at]]) at = k;
    const int32_t v = s->front[at];
    s->operations += s->n_front;
    if (s->open[v] == 0) {
        memmove(s->front + at, s->front + at + 1, (size_t)(s->n_front - at - 1) * sizeof *s->front);
        s->n_front--;
        s->front_bits -= s->bits[v];
        s->met[v] = 0;
        return eliminate(s, v);
    }
    const int32_t u = unmet_neighbour(s, v);
    if (s->front_bits + s->bits[u] <= s->options.log_limit && s->n_front < FGI_BLOCK_DIMENSIONS - 1) {
        meet(s, u);
    } else {
        close_variable(s, u);
        give_up(s, u);
    }
    return FGI_OK;
}

/* Drops from the separators what was given up later, turns variables into places and sorts them. */
static void finish(fgi_thin *s) {
    int64_t write = 0, begin = 0;
    for (int64_t k = 0; k < s->out.n; k++) {
        const int64_t end = s->sep_begin[k + 1], own = write;
        for (int64_t j = begin; j < end; j++) {
            int32_t place = s->position[s->sep[j]];
            if (place < 0) continue;
            int64_t at = write++;
            for (; at > own && s->sep[at - 1] > place; at--) s->sep[at] = s->sep[at - 1];
            s->sep[at] = place;
        }
        begin = end;
        s->sep_begin[k] = own;
    }
    s->sep_begin[s->out.n] = write;
}

void fgi_thin_start(fgi_thin *s, const int32_t *region, int64_t n, const fgi_thin_options *options, uint64_t seed) {
    for (int64_t k = 0; k < s->out.n; k++) s->position[s->order[k]] = -1;
    s->options = *options;
    s->bits = options->two_states ? s->one_bit : s->label_bits;
    if (s->options.log_limit > LARGEST_LIMIT) s->options.log_limit = LARGEST_LIMIT;
    s->rng.state = seed;
    s->region = region;
    s->n_region = n;
    s->loaded = 0;
    s->cost = 0;
    s->n_alive = 0;
    s->smallest = s->options.log_limit + 1;
    s->n_front = s->front_bits = 0;
    s->next_seed = 0;
    s->out.n = 0;
    s->sep_begin[0] = 0;
    for (int32_t k = 0; k <= s->options.log_limit; k++) s->head[k] = s->tail[k] = -1;
    for (int64_t k = 0; k < n; k++) {
        if (s->model->s->cards[region[k]] < 2) continue;
        s->state[region[k]] = ALIVE;
        s->alive_at[region[k]] = (int32_t)s->n_alive;
        s->alive[s->n_alive++] = region[k];
    }
    s->operations += n;
}

fgi_rc fgi_thin_step(fgi_thin *s, int64_t max_operations, int *done) {
    const int64_t end = s->operations + max_operations;
    *done = 0;
    while (s->loaded < s->n_region) {
        if (s->operations >= end) return FGI_OK;
        int32_t v = s->region[s->loaded++];
        if (s->state[v] != ALIVE) continue;
        fgi_rc rc = load(s, v);
        if (rc) return rc;
    }
    while (s->n_alive > 0 && s->cost < s->options.cost_limit) {
        if (s->operations >= end) return FGI_OK;
        if (s->options.sweep) {
            fgi_rc rc = sweep(s);
            if (rc) return rc;
            continue;
        }
        while (s->smallest <= s->options.log_limit && s->head[s->smallest] < 0) s->smallest++;
        s->operations++;
        if (s->smallest > s->options.log_limit) {
            give_up_some(s);
            continue;
        }
        fgi_rc rc = eliminate(s, s->head[s->smallest]);
        if (rc) return rc;
    }
    finish(s);
    for (int32_t k = 0; k < s->n_front; k++) s->met[s->front[k]] = 0;
    for (int64_t k = 0; k < s->n_region; k++) s->state[s->region[k]] = OUTSIDE;
    s->out = (fgi_elimination){
        .n = s->out.n, .order = s->order, .position = s->position, .sep_begin = s->sep_begin, .sep = s->sep};
    *done = 1;
    return FGI_OK;
}
