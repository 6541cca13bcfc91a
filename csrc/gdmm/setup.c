/* gdmm/setup.c - memory and preparation of Algorithm 8: propagation of hard constraints, sorted unaries, slots. */
#include <string.h>
#include "base/array.h"
#include "model/marginal.h"
#include "gdmm/gdmm.h"

/* The first penalty, in mean ranges of the tables, with sparse messages and with messages on all labels: between 0.01
 * and 0.1 every family of the UAI and OpenGM sets does well, and balancing does the rest. */
static const double FIRST_RHO[2] = {0.01, 0.05};
static const int32_t SMALL_CARD = 4;      /* such a variable's messages are always dense: nothing to save */
static const int64_t STEP_WORK = 500000;  /* operations between two looks at the clock: below a millisecond */
static const int64_t ORDER_WORK = 100000; /* table entries sorted between two looks at the clock */

static double magnitude_of_terms(const void *model, int64_t begin, int64_t end) {
    const fgi_model *m = model;
    double sum = 0;
    int64_t k = begin;
    for (; k < end && k < m->s->n_vars; k++) {
        double largest = 0;
        for (int32_t a = 0; a < m->s->cards[k]; a++)
            if (fgi_unary(m, k)[a] > -INFINITY) largest = fgi_larger(largest, fabs(fgi_unary(m, k)[a]));
        sum += largest;
    }
    for (; k < end; k++) {
        const int64_t f = k - m->s->n_vars;
        const fgi_table_facts *t = &m->t->facts[m->s->factor_table[f]];
        if (t->max > -INFINITY) sum += fgi_factor_weight(m->s, f) * fgi_larger(fabs(t->max), fabs(t->min_finite));
    }
    return sum;
}

static double added(double a, double b) { return a + b; }

double gdmm_magnitude(const fgi_model *m, fgi_pool *pool) {
    return fgi_pool_fold(
        pool, m->s->n_vars + m->s->n_factors, FGI_TERMS, magnitude_of_terms, m, added, fabs(m->s->constant));
}

int gdmm_in_range(const fgi_model *m, fgi_pool *pool) { /* forbidden: infeasible, and nothing is computed */
    const double most = atomic_load(&m->largest) * (double)(m->s->n_vars + m->s->n_factors + 1); /* 0: not known */
    if (m->s->constant == -INFINITY || (most > 0 && most <= GDMM_LARGEST)) return 1;
    return gdmm_magnitude(m, pool) <= GDMM_LARGEST;
}

/* ---- slots -------------------------------------------------------------------------------------------------- */

static int lists_all_labels(const gdmm_slot *slot) { return slot->capacity == 0 && slot->n > 0; }

int32_t gdmm_slot_find(const gdmm_slot *slot, int32_t label) {
    fgi_assert(label >= 0 && slot->n >= 0);
    if (lists_all_labels(slot)) return label;
    return (int32_t)fgi_place_of(slot->labels, slot->n, label);
}

/* One block of memory: mu, m, x, labels. */
static int grow(gdmm_slot *slot) {
    int32_t capacity = slot->capacity ? 2 * slot->capacity : 4;
    double *block = fgi_alloc((int64_t)capacity, 3 * sizeof(double) + sizeof(int32_t));
    if (!block) return 0;
    int32_t *labels = (int32_t *)(block + 3 * (int64_t)capacity);
    if (slot->n) {
        size_t bytes = (size_t)slot->n * sizeof(double);
        memcpy(block, slot->mu, bytes);
        memcpy(block + capacity, slot->m, bytes);
        memcpy(block + 2 * (int64_t)capacity, slot->x, bytes);
        memcpy(labels, slot->labels, (size_t)slot->n * sizeof(int32_t));
    }
    if (slot->capacity) free(slot->mu);
    slot->mu = block;
    slot->m = block + capacity;
    slot->x = block + 2 * (int64_t)capacity;
    slot->labels = labels;
    slot->capacity = capacity;
    return 1;
}

int32_t gdmm_slot_at(gdmm_slot *slot, int32_t label) {
    fgi_assert(label >= 0 && (!lists_all_labels(slot) || label < slot->n));
    if (lists_all_labels(slot)) return label;
    int32_t at = slot->n;
    while (at > 0 && slot->labels[at - 1] > label) at--;
    if (at > 0 && slot->labels[at - 1] == label) return at - 1;
    if (slot->n == slot->capacity && !grow(slot)) return -1;
    size_t tail = (size_t)(slot->n - at);
    memmove(slot->labels + at + 1, slot->labels + at, tail * sizeof(int32_t));
    memmove(slot->mu + at + 1, slot->mu + at, tail * sizeof(double));
    memmove(slot->m + at + 1, slot->m + at, tail * sizeof(double));
    memmove(slot->x + at + 1, slot->x + at, tail * sizeof(double));
    slot->labels[at] = label;
    slot->mu[at] = slot->m[at] = slot->x[at] = 0;
    slot->n++;
    fgi_assert(slot->n <= slot->capacity && (at + 1 == slot->n || slot->labels[at + 1] > label));
    return at;
}

/* ---- memory ------------------------------------------------------------------------------------------------- */

static int variable_is_dense(const gdmm *g, int64_t i) {
    return g->dense || (g->model->s->cards[i] <= SMALL_CARD && !g->published);
}

static int worker_create(gdmm_worker *w, const fgi_structure *s, fgi_arena *arena) {
    int32_t card = s->max_card > 0 ? s->max_card : 1, arity = s->max_arity > 0 ? s->max_arity : 1;
    w->oracle = fgi_oracle_scratch_create(card, arity);
    w->messages = fgi_take(arena, arity, fgi_message);
    w->delta = fgi_take(arena, (int64_t)card * arity, double);
    w->cards = fgi_take(arena, arity, int32_t);
    w->sum = fgi_take(arena, card, double);
    w->size = fgi_take(arena, card, double);
    w->value = fgi_take(arena, card, double);
    w->candidate = fgi_take(arena, card, double);
    w->touched = fgi_take(arena, card, int32_t);
    w->mark = fgi_take_zero(arena, card, uint8_t);
    return w->oracle && !arena->failed;
}

static void worker_free(gdmm_worker *w) {
    fgi_oracle_scratch_free(w->oracle);
    free(w->gain);
}

/* Their memory. It is the system's until somebody writes to it, and that is for the passes of the set-up. */
static int create_slots(gdmm *g) {
    const fgi_structure *s = g->model->s;
    int64_t numbers = 0;
    for (int64_t i = 0; i < s->n_vars; i++)
        if (variable_is_dense(g, i)) numbers += 3 * gdmm_degree(g, i) * s->cards[i];
    g->numbers = fgi_take_blank(&g->arena, numbers, double); /* while there are sweeps, nobody uses them */
    g->number = fgi_take(&g->arena, gdmm_slot_blocks(g), int64_t);
    g->iota = fgi_take(&g->arena, s->max_card, int32_t);
    if (g->arena.failed) return 0;
    for (int32_t a = 0; a < s->max_card; a++) g->iota[a] = a;
    return 1;
}

/* What depends on how messages are kept. Room for sweeps alone that the system does not have is done without. */
static int make_room(gdmm *g) {
    const fgi_structure *s = g->model->s;
    const int64_t before = g->arena.bytes;
    if (g->numbers) return 1;
    if (!create_slots(g) && g->sweeps_only) {
        g->arena.failed = g->sweeps_only = g->dense = 0;
        if (!create_slots(g)) return 0;
    }
    g->sorted = g->dense ? NULL : fgi_take(&g->arena, s->unary_begin[s->n_vars], int32_t);
    gdmm_measure_pass(g);
    g->solver->info.memory += g->arena.bytes - before;
    return !g->arena.failed;
}

fgi_rc gdmm_allocate(gdmm *g, fgi_error *err) {
    const fgi_structure *s = g->model->s;
    g->n_slots = fgi_factor_begin(s, s->n_factors);
    if (gdmm_choose_access(g)) return fgi_no_memory(err);
    const int64_t blocks = s->n_factors / GDMM_BLOCK + s->n_vars / GDMM_BLOCK + 2;
    g->theta = fgi_take_blank(&g->arena, s->unary_begin[s->n_vars], double); /* propagation fills it */
    g->adj_slot = fgi_take(&g->arena, g->n_slots, int64_t);
    g->slots = fgi_take_zero(&g->arena, g->n_slots, gdmm_slot);
    g->active = fgi_take_zero(&g->arena, s->n_factors, gdmm_active);
    g->is_pair = fgi_take_zero(&g->arena, s->n_factors, uint8_t);
    g->order = fgi_take_zero(&g->arena, s->n_tables, fgi_sorted *);
    g->partial = fgi_take_zero(&g->arena, 2 * blocks, double);
    g->partial_sum = fgi_take_zero(&g->arena, blocks, fgi_sum);
    g->rounded = fgi_take_zero(&g->arena, s->n_vars, int32_t);
    g->labels = fgi_take_zero(&g->arena, s->n_vars, int32_t);
    g->workers = fgi_take_zero(&g->arena, g->solver->settings.threads, gdmm_worker);
    if (!g->arena.failed) g->n_workers = g->solver->settings.threads;
    int ok = !g->arena.failed;
    for (int k = 0; ok && k < g->n_workers; k++) ok = worker_create(&g->workers[k], s, &g->arena);
    g->solver->info.memory += g->arena.bytes;
    if (!ok || (!g->looks && !make_room(g))) return fgi_no_memory(err);
    return FGI_OK;
}

void gdmm_release(gdmm *g) {
    const fgi_structure *st = g->model->s;
    for (int64_t s = 0; g->slots && s < g->n_slots; s++)
        if (g->slots[s].capacity) free(g->slots[s].mu);
    for (int64_t f = 0; g->active && f < st->n_factors; f++) free(g->active[f].theta);
    for (int k = 0; k < g->n_workers; k++) worker_free(&g->workers[k]);
    gdmm_propagation_free(g->propagation);
    fgi_sorted_builder_free(g->builder);
    gdmm_sweep_free(g->sweep);
    fgi_solver_free(g->search);
    fgi_labeling_free(g->local);
    gdmm_tables_free(g);
    free(g->given);
    fgi_arena_free(&g->arena);
    free(g);
}

/* ---- preparation -------------------------------------------------------------------------------------------- */

/* Labels by descending score, ties to the lowest: a merge sort, so that no comparison function needs a context. */
static void sort_labels(int32_t *labels, int32_t n, const double *score, int32_t *scratch) {
    for (int32_t width = 1; width < n; width *= 2) {
        for (int32_t begin = 0; begin < n; begin += 2 * width) {
            int32_t middle = begin + width < n ? begin + width : n, end = begin + 2 * width < n ? begin + 2 * width : n;
            int32_t left = begin, right = middle;
            for (int32_t k = begin; k < end; k++)
                if (right >= end || (left < middle && !(score[labels[right]] > score[labels[left]])))
                    scratch[k] = labels[left++];
                else scratch[k] = labels[right++];
        }
        memcpy(labels, scratch, (size_t)n * sizeof *labels);
        if (width > n / 2) break;
    }
}

/* How many numbers the dense slots of each block need, and, after that, which are whose. */
static void measure_slots(void *context, int64_t begin, int64_t end, int worker) {
    gdmm *g = context;
    const fgi_structure *st = g->model->s;
    (void)worker;
    for (int64_t block = begin; block < end; block++) {
        int64_t sum = 0;
        for (int64_t s = block * GDMM_SLOTS; s < (block + 1) * GDMM_SLOTS && s < g->n_slots; s++)
            if (variable_is_dense(g, st->vars[s])) sum += 3 * (int64_t)st->cards[st->vars[s]];
        g->number[block] = sum;
    }
}

static void order_blocks(gdmm *g) {
    int64_t at = 0;
    for (int64_t block = 0; block < gdmm_slot_blocks(g); block++) {
        const int64_t own = g->number[block];
        g->number[block] = at;
        at += own;
    }
}

static void fill_slots(void *context, int64_t begin, int64_t end, int worker) {
    gdmm *g = context;
    const fgi_structure *st = g->model->s;
    (void)worker;
    for (int64_t block = begin; block < end; block++) {
        double *at = g->numbers + g->number[block];
        for (int64_t s = block * GDMM_SLOTS; s < (block + 1) * GDMM_SLOTS && s < g->n_slots; s++) {
            const int64_t card = st->cards[st->vars[s]];
            if (!variable_is_dense(g, st->vars[s])) continue;
            g->slots[s] =
                (gdmm_slot){.n = (int32_t)card, .labels = g->iota, .mu = at, .m = at + card, .x = at + 2 * card};
            at += 3 * card;
        }
    }
}

static void list_slots(gdmm *g, int64_t i) {
    const fgi_structure *s = g->model->s;
    for (int64_t k = s->adj_begin[i]; k < s->adj_begin[i + 1]; k++) {
        int64_t slot = fgi_factor_begin(s, s->adj[k]);
        while (s->vars[slot] != i) slot++;
        fgi_assert(slot < fgi_factor_begin(s, s->adj[k] + 1));
        g->adj_slot[k] = slot;
    }
}

static void prepare_variable(gdmm *g, gdmm_worker *w, int64_t i) {
    const fgi_structure *s = g->model->s;
    const double *theta = g->theta + s->unary_begin[i];
    fgi_assert(i >= 0 && i < s->n_vars);
    int32_t best = 0, forbidden = 0;
    list_slots(g, i);
    for (int32_t a = 0; a < s->cards[i]; a++) {
        if (theta[a] > theta[best]) best = a;
        if (theta[a] == -INFINITY) forbidden++;
    }
    g->rounded[i] = best;
    w->forbidden += forbidden;
    if (g->sorted) {
        int32_t *labels = g->sorted + s->unary_begin[i];
        for (int32_t a = 0; a < s->cards[i]; a++) labels[a] = a;
        sort_labels(labels, s->cards[i], theta, w->touched);
    }
    for (int64_t k = s->adj_begin[i]; forbidden && k < s->adj_begin[i + 1]; k++)
        for (int32_t a = 0; a < s->cards[i]; a++) {
            if (theta[a] > -INFINITY) continue;
            int32_t at = gdmm_slot_at(&g->slots[g->adj_slot[k]], a);
            if (at < 0) w->rc = FGI_NO_MEMORY;
            else g->slots[g->adj_slot[k]].mu[at] = GDMM_FORBIDDEN;
        }
}

static void prepare_variables(void *context, int64_t begin, int64_t end, int worker) {
    gdmm *g = context;
    for (int64_t i = begin; i < end; i++) prepare_variable(g, &g->workers[worker], i);
}

/* Binary pairwise factors with finite scores get their closed form (gdmm/factor.c). A label that is forbidden is no
 * exception: its multiplier is so large that the clipping in the closed form, and the maxima elsewhere, leave it out.
 */
static int has_closed_form(const gdmm *g, const fgi_view *v) {
    return v->arity == 2 && v->rows == 2 && v->cols == 2 && g->model->t->facts[v->table].n_forbidden == 0;
}

/* Memory for closed forms, if there are any. */
static int create_pairs(gdmm *g) {
    const fgi_structure *s = g->model->s;
    int64_t f = 0;
    for (; f < s->n_factors && !g->pairs; f++) {
        const fgi_view v = fgi_factor_view(g->model, f);
        if (has_closed_form(g, &v)) break;
    }
    if (g->pairs || g->published || f == s->n_factors) return 1;
    g->pairs = fgi_take(&g->arena, s->n_factors, gdmm_pair);
    g->solver->info.memory += s->n_factors * (int64_t)sizeof *g->pairs;
    return g->pairs != NULL;
}

static void prepare_factors(void *context, int64_t begin, int64_t end, int worker) {
    gdmm *g = context;
    (void)worker;
    for (int64_t f = begin; f < end; f++) {
        const fgi_view v = fgi_factor_view(g->model, f);
        if (!has_closed_form(g, &v)) continue;
        const double t00 = fgi_view_at2(&v, 0, 0), t01 = fgi_view_at2(&v, 0, 1), t10 = fgi_view_at2(&v, 1, 0),
                     t11 = fgi_view_at2(&v, 1, 1);
        g->pairs[f] = (gdmm_pair){{{t00, t01}, {t10, t11}}, t10 - t00, t01 - t00, (t11 - t10) - (t01 - t00)};
        g->is_pair[f] = 1;
    }
}

/* Mean range of the factors' finite scores; 1 if all are constant. */
static double mean_range(const fgi_model *m) {
    fgi_sum sum = {0};
    for (int64_t f = 0; f < m->s->n_factors; f++) {
        const fgi_table_facts *t = &m->t->facts[m->s->factor_table[f]];
        const double w =
            fgi_factor_weight(m->s, f); /* weighted first: the difference of unweighted scores may overflow */
        if (t->max > t->min_finite) fgi_sum_add(&sum, w * t->max - w * t->min_finite);
    }
    double mean = m->s->n_factors ? fgi_sum_value(&sum) / (double)m->s->n_factors : 0;
    return mean > 0 ? mean : fgi_mean_range(m);
}

void gdmm_restart(gdmm *g) {
    const fgi_structure *st = g->model->s;
    for (int64_t f = 0; f < st->n_factors; f++) g->active[f].n = 0;
    for (int64_t s = 0; s < g->n_slots; s++)
        if (g->slots[s].n) {
            memset(g->slots[s].m, 0, (size_t)g->slots[s].n * sizeof(double));
            memset(g->slots[s].x, 0, (size_t)g->slots[s].n * sizeof(double));
        }
    if (g->sweep) g->solver->info.memory -= gdmm_sweep_memory(g->sweep);
    fgi_labeling_free(g->local);
    fgi_solver_free(g->search);
    gdmm_sweep_free(g->sweep);
    fgi_sorted_builder_free(g->builder);
    g->local = NULL;
    g->builder = NULL;
    g->n_orders = 0; /* the tables may be new */
    g->search = NULL;
    g->sweep = NULL;
    g->swept = g->converged = g->looking = 0;
    g->beside = (gdmm_beside){0};
    g->last_bound = g->sweep_bound = INFINITY;
    g->work = 0;
    g->search_improved = 0;
    g->next_adapt = g->next_bound = g->next_decode = 0;
    g->stage = GDMM_PREPARE;
    g->pass = 0;
    g->cursor = 0;
}

/* Sorted access to the tables: one linear pass over each, in parts. Returns 1 when all are there. */
static int prepare_orders(gdmm *g) {
    if (g->dense) return gdmm_tables_step(g, ORDER_WORK);
    const int64_t *begin = g->model->s->values_begin;
    for (int64_t work = 0; g->n_orders < g->model->s->n_tables && !g->solver->failure; g->n_orders++) {
        const int32_t t = (int32_t)g->n_orders;
        if (work >= ORDER_WORK || !fgi_model_order_step(g->model, t, ORDER_WORK, &g->builder, &g->solver->failure))
            return 0;
        g->order[t] = fgi_model_order(g->model, t, &g->solver->failure);
        work += 100 + begin[t + 1] - begin[t];
    }
    return 1;
}

static void begin_preparation(gdmm *g) {
    g->scale = mean_range(g->model);
    g->local = fgi_labeling_create(g->model);
    if (!g->local || !create_pairs(g)) g->solver->failure = FGI_NO_MEMORY;
}

static void set_first_penalty(gdmm *g) {
    const double chosen = g->solver->settings.rho;
    if (g->rho == 0) g->rho = chosen > 0 ? chosen : fgi_solver_rho(g->solver, FIRST_RHO[g->dense != 0] * g->scale);
}

/* Variables between two looks at the clock. */
static int64_t variables_piece(const fgi_structure *s) {
    const int64_t n = s->n_vars, work = 1 + (20 * s->unary_begin[n] + 20 * s->adj_begin[n]) / (n ? n : 1);
    return STEP_WORK / work + 1;
}

static void begin_sweeps(gdmm *g) {
    if (g->given) {
        g->solver->failure = gdmm_apply_messages(g);
        g->warm = 1;
    }
    if (!g->dense || g->solver->settings.sweep == FGI_OFF || g->solver->failure) return;
    if (!(g->sweep = gdmm_sweep_create(g))) g->solver->failure = FGI_NO_MEMORY;
    else g->solver->info.memory += gdmm_sweep_memory(g->sweep);
}

int gdmm_prepare_step(gdmm *g) {
    enum { BEGIN, LOOK, ROOM, ORDERS, MEASURE, FILL, VARIABLES, FACTORS, SWEEPS, LINKS, LOAD, END };
    /* What a thread takes at a time, and what is done between two looks at the clock. */
    enum {
        VARIABLES_EACH = 64,               /* variables at a time */
        FACTORS_EACH = 1024,               /* factors at a time */
        FACTORS_PIECE = 16 * FACTORS_EACH, /* factors between two looks */
        SLOTS_PIECE = 16                   /* blocks of slots between two looks */
    };
    const fgi_structure *s = g->model->s;
    double seconds = 0; /* counted by the caller */
    int done = 1;
    switch (g->pass) {
    case BEGIN: begin_preparation(g); break;
    case LOOK:
        if (g->looks && !g->given && !g->warm) done = gdmm_look_step(g);
        g->looks &= !done;
        break;
    case ROOM:
        if (!make_room(g)) g->solver->failure = FGI_NO_MEMORY;
        set_first_penalty(g);
        break;
    case ORDERS: done = prepare_orders(g); break;
    case MEASURE:
        if (!g->has_slots) done = gdmm_advance(g, gdmm_slot_blocks(g), 1, SLOTS_PIECE, measure_slots, &seconds);
        if (!g->has_slots && done) order_blocks(g);
        break;
    case FILL:
        if (!g->has_slots) done = gdmm_advance(g, gdmm_slot_blocks(g), 1, SLOTS_PIECE, fill_slots, &seconds);
        g->has_slots |= done;
        break;
    case VARIABLES:
        done = gdmm_advance(g, s->n_vars, VARIABLES_EACH, variables_piece(s), prepare_variables, &seconds);
        break;
    case FACTORS:
        if (g->pairs) done = gdmm_advance(g, s->n_factors, FACTORS_EACH, FACTORS_PIECE, prepare_factors, &seconds);
        break;
    case SWEEPS: begin_sweeps(g); break;
    case LINKS:
        if (g->sweep) done = gdmm_sweep_link_step(g, &seconds);
        break;
    case LOAD:
        if (g->sweep) done = gdmm_sweep_load_step(g, &seconds);
        break;
    default: break; /* END: nothing is left to prepare */
    }
    g->pass += done;
    fgi_assert(g->pass <= END);
    if (g->pass == END && !g->solver->failure) fgi_audit(gdmm_check(g));
    return g->pass == END;
}
