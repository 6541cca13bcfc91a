/* dual/triples.c - the method "triples": bounds of dense pairwise models by triples of variables (dual/triples.h).
 *
 * An iteration updates all known triples and sweeps over the nodes, forwards and backwards, some times over; then all
 * scores are added up afresh from the messages, which gives the bound, and a labeling is read from them. Now and then
 * all candidates are looked at, and those that are worth most become known. Sweeps alone come first. The messages of a
 * step only ever lower the bound; time decides nothing. Decision 0027 has what was measured. */
#include "base/meter.h"
#include "base/work.h"
#include "dual/triples.h"
#include "primal/first.h"
#include "primal/labeling.h"

enum { FIRST_SWEEPS = 30 };             /* over the nodes, forwards or backwards, before the first triple (chosen) */
enum { UPDATES = 4 };                   /* times all known triples are updated in an iteration (chosen) */
enum { LOOK_TIMES = 3 };                /* a look at all candidates comes after so many times its work (chosen) */
enum { ASCENT = 1 << 16 };              /* operations of coordinate ascent in one go */
enum { MOST_MESSAGES = 1 << 26 };       /* numbers in the messages of all triples: 512 MB (chosen) */
enum { STALL_ITERATIONS = 20 };         /* looked at together when it is asked whether the bound still falls */
static const double STALL_GAIN = 1e-11; /* share of the bound that an iteration must gain, or it is no progress */
static const double WORTH = 0.1;        /* share of the worth of the best candidate: others wait (chosen) */
static const double LEAST_WORTH = 1e-9; /* share of the bound: what is worth less is rounding (chosen) */

typedef enum stage { UPDATING, GOING, COMING, SUMMING, ADDING, TOPPING, READING, ASCENDING, LOOKING } stage;

typedef struct triples {
    fgi_triples s;
    stage stage;
    int64_t at;              /* where the stage is */
    int64_t updates;         /* made in this iteration */
    fgi_sum bound;           /* sum of the tops so far */
    double magnitude;        /* sum of their absolute values */
    int64_t messages, since; /* numbers in all messages of triples; work since the last look */
    int is_complete;         /* no candidate was worth anything at the last look, nor has been since */
    double stall_bound;
    int64_t stall_begin;
    int32_t *labels;
    fgi_labeling *local;
    int64_t counted; /* operations of `local` counted so far */
    fgi_first *first;
    fgi_meter meter;
    fgi_arena arena;
} triples;

static void triples_destroy(fgi_solver *solver) {
    triples *self = solver->state;
    fgi_triples_free(&self->s);
    fgi_labeling_free(self->local);
    fgi_first_free(self->first);
    fgi_arena_free(&self->arena);
    free(self);
}

static void set_memory(fgi_solver *solver) {
    const triples *self = solver->state;
    solver->info.memory = self->s.arena.bytes + self->arena.bytes + fgi_labeling_memory(self->local);
    solver->info.triples = self->s.n_known;
}

static fgi_rc triples_create(fgi_solver *solver, fgi_error *err) {
    triples *self = fgi_calloc(1, sizeof *self);
    solver->state = self;
    if (!self) return fgi_no_memory(err);
    fgi_rc rc = fgi_triples_init(&self->s, solver->model, err);
    if (rc) return rc;
    self->labels = fgi_take_zero(&self->arena, self->s.n, int32_t);
    self->local = fgi_labeling_create(solver->model);
    if (self->arena.failed || !self->local) return fgi_no_memory(err);
    self->meter.every = FGI_CLOCK_WORK;
    self->stall_bound = INFINITY;
    set_memory(solver);
    return FGI_OK;
}

/* ---- the stages ------------------------------------------------------------------------------------------------ */

static void spend(fgi_solver *solver, triples *self, int64_t work) {
    solver->info.entries_touched += work;
    self->since += work;
    self->meter.spent += work;
}

static void begin(triples *self, stage next) {
    self->stage = next;
    self->at = 0;
}

static int64_t entries_at(const triples *self, int64_t i) {
    const fgi_structure *s = self->s.model->s;
    int64_t n = s->cards[i];
    for (int64_t at = self->s.adj_begin[i]; at < self->s.adj_begin[i + 1]; at++)
        n += 2 * fgi_pair_entries(&self->s, self->s.adj[at]) + FGI_LINK_WORK;
    return n;
}

static void take_top(triples *self, double top) {
    fgi_sum_add(&self->bound, top);
    if (top > -INFINITY) self->magnitude += fabs(top);
}

/* One step of a stage that has `n` of them, or none at all; 1: that was the last one. */
static int is_last(triples *self, int64_t n) { return ++self->at >= n; }

static void update(fgi_solver *solver, triples *self) {
    enum { PRODUCTS = 7 }; /* six for the marginals, and a few passes over the pairs */
    if (self->at < self->s.n_known) {
        const fgi_triple *q = &self->s.triples[self->updates % 2 ? self->s.n_known - 1 - self->at : self->at];
        fgi_triple_update(&self->s, q);
        spend(solver, self, PRODUCTS * fgi_triple_work(&self->s, q) + FGI_FACTOR_WORK);
    }
    if (is_last(self, self->s.n_known)) begin(self, GOING);
}

static void visit(fgi_solver *solver, triples *self) {
    const int goes_back = self->stage == COMING;
    const int64_t i = goes_back ? self->s.n - 1 - self->at : self->at;
    if (self->at < self->s.n) {
        fgi_triples_visit(&self->s, i, goes_back);
        spend(solver, self, entries_at(self, i));
    }
    if (!is_last(self, self->s.n)) return;
    if (!goes_back) {
        begin(self, COMING);
        return;
    }
    const int64_t rounds = self->s.n_known > 0 || self->is_complete ? UPDATES : FIRST_SWEEPS / 2;
    begin(self, ++self->updates < rounds ? UPDATING : SUMMING);
}

/* Nodes and pairs without triples, and their tops; triples are taken from pairs before these have a top. */
static void sum(fgi_solver *solver, triples *self) {
    if (self->at == 0) {
        self->bound = (fgi_sum){0};
        self->magnitude = 0;
        take_top(self, solver->model->s->constant);
        take_top(self, fgi_sum_value(&self->s.others) + 0x1p-50 * self->s.others_size);
    }
    if (self->at < self->s.n) {
        fgi_triples_resum_node(&self->s, self->at);
        take_top(self, fgi_triples_node_top(&self->s, self->at));
        spend(solver, self, entries_at(self, self->at));
    } else if (self->at < self->s.n + self->s.n_pairs) {
        fgi_triples_resum_pair(&self->s, (int32_t)(self->at - self->s.n));
        spend(solver, self, 2 * fgi_pair_entries(&self->s, (int32_t)(self->at - self->s.n)));
    }
    if (is_last(self, self->s.n + self->s.n_pairs)) begin(self, self->s.n_known > 0 ? ADDING : TOPPING);
}

static void add(fgi_solver *solver, triples *self) {
    const fgi_triple *q = &self->s.triples[self->at];
    fgi_triples_resum_triple(&self->s, q);
    take_top(self, fgi_triples_triple_top(&self->s, q));
    spend(solver, self, 2 * fgi_triple_work(&self->s, q));
    if (is_last(self, self->s.n_known)) begin(self, TOPPING);
}

/* The tops are no smaller than they should be. A compensated sum is off by a rounding of itself, and by the square of
 * what a plain one may lose. */
static void take_bound(fgi_solver *solver, triples *self) {
    const double value = fgi_sum_value(&self->bound);
    const double terms = (double)(self->s.n + self->s.n_pairs + self->s.n_known + 1), part = 0x1p-53 * terms;
    fgi_solver_bound(
        solver, value > -INFINITY ? value + 0x1p-51 * fabs(value) + 2 * part * part * self->magnitude : -INFINITY);
    solver->info.iterations++;
    self->updates = 0;
    if (fgi_solver_done(solver) || solver->info.iterations - self->stall_begin < STALL_ITERATIONS) return;
    const double gain = self->stall_bound - value;
    self->stall_bound = value;
    self->stall_begin = solver->info.iterations;
    const int is_complete = self->is_complete || self->s.n_known == self->s.n_triples;
    if (is_complete && gain < STALL_GAIN * STALL_ITERATIONS * fgi_larger(fabs(value), solver->info.unit))
        solver->info.status = FGI_CONVERGED;
}

static void top(fgi_solver *solver, triples *self) {
    if (self->at < self->s.n_pairs) {
        take_top(self, fgi_triples_pair_top(&self->s, (int32_t)self->at));
        spend(solver, self, 2 * fgi_pair_entries(&self->s, (int32_t)self->at));
    }
    if (is_last(self, self->s.n_pairs)) begin(self, READING);
}

static void read_label(fgi_solver *solver, triples *self) {
    if (self->at < self->s.n) {
        self->labels[self->at] = fgi_triples_label(&self->s, self->at, self->labels);
        spend(solver, self, (self->s.adj_begin[self->at + 1] - self->s.adj_begin[self->at]) * self->s.max_card);
    }
    if (!is_last(self, self->s.n)) return;
    fgi_labeling_assign(self->local, self->labels);
    begin(self, ASCENDING);
}

static void ascend(fgi_solver *solver, triples *self) {
    const int is_done = fgi_labeling_ascend(self->local, ASCENT);
    spend(solver, self, fgi_labeling_operations(self->local) - self->counted);
    self->counted = fgi_labeling_operations(self->local);
    if (!is_done) return;
    if (fgi_labeling_violations(self->local) == 0) fgi_solver_consider(solver, fgi_labeling_labels(self->local));
    take_bound(solver, self);
    int64_t look = 0;
    for (int64_t k = self->s.n_known; k < self->s.n_triples && LOOK_TIMES * look <= self->since; k++)
        look += fgi_triple_work(&self->s, &self->s.triples[k]);
    const int is_due = self->s.n_known < self->s.n_triples && LOOK_TIMES * look <= self->since;
    begin(self, is_due || self->s.n_known == 0 ? LOOKING : UPDATING);
    if (self->stage == LOOKING) self->at = self->s.n_known;
}

/* ---- more triples ---------------------------------------------------------------------------------------------- */

static int by_worth(const void *a, const void *b) {
    const fgi_triple *x = a, *y = b;
    if (x->worth != y->worth) return x->worth > y->worth ? -1 : 1;
    if (x->pairs[0] != y->pairs[0]) return x->pairs[0] < y->pairs[0] ? -1 : 1;
    return x->pairs[1] < y->pairs[1] ? -1 : x->pairs[1] > y->pairs[1];
}

/* Those that are worth a part of what the best one is, and no more than there are pairs. */
static fgi_rc take_best(fgi_solver *solver, triples *self) {
    fgi_triples *s = &self->s;
    const double scale = fgi_larger(fabs(solver->info.bound), solver->info.unit);
    qsort(s->triples + s->n_known, (size_t)(s->n_triples - s->n_known), sizeof *s->triples, by_worth);
    const double best = s->n_known < s->n_triples ? s->triples[s->n_known].worth : 0;
    const double least = fgi_larger(WORTH * best, LEAST_WORTH * scale);
    self->is_complete = 1;
    for (int64_t k = 0; k < s->n_pairs && s->n_known < s->n_triples; k++) {
        fgi_triple *q = &s->triples[s->n_known];
        int64_t numbers = 0;
        for (int t = 0; t < 3; t++) numbers += fgi_pair_entries(s, q->pairs[t]);
        if (!(q->worth >= least) || self->messages + numbers > MOST_MESSAGES) break;
        if (!fgi_triples_take(s, q)) return FGI_NO_MEMORY;
        self->messages += numbers;
        self->is_complete = 0;
    }
    self->since = 0;
    set_memory(solver);
    return FGI_OK;
}

static fgi_rc look(fgi_solver *solver, triples *self) {
    if (self->at < self->s.n_triples) {
        fgi_triple *q = &self->s.triples[self->at++];
        q->worth = fgi_triple_worth(&self->s, q);
        spend(solver, self, fgi_triple_work(&self->s, q) + FGI_FACTOR_WORK);
        return FGI_OK;
    }
    begin(self, UPDATING);
    return take_best(solver, self);
}

/* ---- the run --------------------------------------------------------------------------------------------------- */

static fgi_rc advance(fgi_solver *solver, triples *self) {
    switch (self->stage) {
    case UPDATING: update(solver, self); break;
    case GOING:
    case COMING: visit(solver, self); break;
    case SUMMING: sum(solver, self); break;
    case ADDING: add(solver, self); break;
    case TOPPING: top(solver, self); break;
    case READING: read_label(solver, self); break;
    case ASCENDING: ascend(solver, self); break;
    case LOOKING: return look(solver, self);
    }
    return FGI_OK;
}

static fgi_rc triples_run(fgi_solver *solver, double deadline, int64_t iteration_limit) {
    triples *self = solver->state;
    fgi_rc rc = FGI_OK;
    self->meter.deadline = deadline;
    fgi_solver_trivial_bound(solver);
    do {
        if (self->stage == UPDATING && self->at == 0 && self->updates == 0) { /* between two iterations */
            if (!fgi_first_labeling(&self->first, solver, NULL, deadline)) break;
            if (solver->info.status != FGI_RUNNING || fgi_solver_done(solver)) break;
        }
        rc = advance(solver, self);
        solver->info.paused = solver->info.entries_touched >= solver->pause_at;
    } while (!rc && !solver->info.paused && solver->info.status == FGI_RUNNING &&
        solver->info.iterations < iteration_limit && !fgi_meter_spend(&self->meter, 0));
    return rc;
}

const fgi_solver_ops fgi_triples_ops = {
    .name = "triples", .create = triples_create, .run = triples_run, .destroy = triples_destroy};
