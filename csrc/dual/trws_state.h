/* dual/trws_state.h - the state of TRW-S: what dual/trws.c and its special case dual/trws_few.c share. The algorithm is
 * described in dual/trws.c. */
#ifndef FGI_TRWS_STATE_H
#define FGI_TRWS_STATE_H
#include "base/arena.h"
#include "base/meter.h"
#include "base/work.h"
#include "dual/progress.h"
#include "model/model.h"

enum {
    FGI_TRWS_FEW_DEGREE = 1 << 15, /* nodes with more edges may pause between them, and are not left to visit_few */
    FGI_FEW = 8,                   /* "few" labels: at most these */
    FGI_TRWS_COLD = 32,         /* nodes: so many visits, at a new place, does it take the hardware to foresee more */
    FGI_TRWS_BAND = 2 * FGI_FEW /* doubles of a band, one of them unused */
};

/* How the table of an edge is stored. All implicit tables depend on a - b alone and are symmetric, so for few labels a
 * band of 2 * FGI_FEW - 1 values holds them: entry (a, b) is band[b - a], for band the middle, and row a begins at band
 * - a. */
typedef enum fgi_trws_form {
    FGI_TRWS_DENSE,    /* values: the table */
    FGI_TRWS_NEAR,     /* the same, and it has a reach (fgi_table_facts), so that products need a few of its entries */
    FGI_TRWS_IMPLICIT, /* values: the middle of the band */
    FGI_TRWS_POTTS     /* the same, and equal labels are at least as good as different ones: one maximum is enough */
} fgi_trws_form;

/* Values are those of the table itself. */
static inline int fgi_trws_is_table(uint8_t form) { return form == FGI_TRWS_DENSE || form == FGI_TRWS_NEAR; }

typedef struct fgi_trws_edge {
    const double *values; /* without the factor's weight */
    int64_t message;      /* offset, see fgi_trws_message_size */
    int32_t lo, hi;       /* earlier and later end */
    int32_t factor;
    uint8_t form;    /* fgi_trws_form */
    uint8_t lo_rows; /* stored rows are labels of lo */
    uint8_t to_hi;   /* where the message points now */
} fgi_trws_edge;

/* What a message costs, in entries; see fgi_view_work. */
static inline int64_t fgi_trws_edge_work(const fgi_model *m, const fgi_trws_edge *e) {
    const int64_t n_lo = m->s->cards[e->lo], n_hi = m->s->cards[e->hi];
    if (e->form == FGI_TRWS_DENSE) return n_lo * n_hi;
    const int64_t reach = e->form == FGI_TRWS_NEAR ? m->t->facts[m->s->factor_table[e->factor]].reach : 0;
    return n_lo + n_hi + n_lo * reach / 2;
}

typedef enum fgi_trws_stage { COUNT, BUILD, LINK, SHARE, ROUND, FORWARD, BACKWARD } fgi_trws_stage;

/* What a sweep adds up is summed by blocks of nodes, so that several threads can do it in the order of one. */
enum { FGI_TRWS_BLOCK = 1 << 12 };
typedef struct fgi_trws_sums {
    fgi_sum bound, decoded;
    double magnitude;
} fgi_trws_sums;

typedef struct fgi_trws fgi_trws;
typedef struct fgi_trws_team fgi_trws_team;
typedef struct fgi_trws_shared fgi_trws_shared;
/* Visits nodes from self->node on for as long as self->few says so and the clock need not be looked at. Returns 0 if a
 * maximum was -INFINITY. */
typedef int fgi_trws_few_visits(const fgi_model *m, fgi_trws *self);

struct fgi_trws {
    const fgi_kernels *k;
    fgi_trws_edge *edges;   /* by earlier end: those of node i are later_begin[i] .. later_begin[i+1] */
    int64_t *later_begin;   /* n_vars + 1 */
    int64_t *earlier_begin; /* n_vars + 1, into earlier */
    int32_t *earlier;       /* edges by later end */
    int64_t entries;        /* that one sweep reads */
    /* While edges are built: per block of nodes, where its messages begin, and per factor, its edge; then NULL. */
    int64_t *block_message;
    int32_t *edge_of;
    double *messages;
    int64_t n_messages;                /* numbers in all of them */
    double *hat, *h, *given, *scratch; /* max_card each; scratch 2 * max_card + 1 */
    int32_t *list_rows;                /* max_card + 1: rows of a shared table that are read */
    int32_t *labels;
    struct fgi_first *first;
    double *bands;    /* differences of the implicit tables; NULL: there are none */
    int32_t *band_of; /* table: its band */
    int64_t n_bands;
    /* dual/trws_shared.c: tables that many factors share (NULL: there are none); per table, its number there, from 1
     * on. */
    fgi_trws_shared **shared;
    int32_t *shared_by;
    int64_t n_shared;
    int64_t *left_out;              /* entries of theirs that were not read, in the iteration under way */
    fgi_trws_few_visits *visit_few; /* NULL: this machine has no special case for few labels */
    uint8_t *few;   /* node: its number of labels if that is few and all its neighbours have as many, else 0 */
    int look_ahead; /* visit_few: more than a cache holds is read in an order that the hardware does not foresee */
    float *rounded; /* all table values in single precision; NULL before and after that phase */
    float *h_f32, *out_f32;                     /* max_card each */
    int single;                                 /* this sweep's products are in single precision */
    int64_t single_begin;                       /* iteration from which single precision is used; -1: never (again) */
    int64_t rounded_to;                         /* table values converted so far */
    double table_unit, weight_unit, score_unit; /* powers of two: of the float copies */
    double single_bound;                        /* last exact bound of the single-precision phase, and its iteration */
    int64_t single_iteration;
    /* Where the algorithm stands; a pause keeps it. */
    fgi_trws_stage stage;
    int64_t node;    /* next node of the stage, counted from its start; before the sweeps, next block of nodes */
    int64_t done;    /* edges of that node already sent; -1: its sums are not made yet */
    double tops;     /* maxima taken out of those edges */
    int is_between;  /* a sweep is about to begin: all messages point the same way */
    fgi_arena arena; /* all of the above but the single-precision copies, which go before the rest */
    fgi_meter meter;
    fgi_progress progress; /* sums of the block of nodes under way; of the sweep once that is complete */
    fgi_trws_sums sums;    /* sums of the blocks before */
    int64_t block;
    /* Several threads: dual/trws_threads.c. */
    int64_t end;         /* end of the places to visit */
    int64_t then, cold;  /* the place where this thread goes on after them, and so many visits there that have to be
                          * prepared: by as many of the last ones here, twice (see ask_for_next in dual/trws_few.c) */
    const int32_t *list; /* the node at each place of a forward sweep; NULL: their order */
    double *record;      /* two per node: what it adds to the bound, which is summed in the order of nodes; NULL: sum */
    double *decoded;     /* per node: what its label adds to the score */
    fgi_trws_team *team; /* NULL: one thread */
    double given_magnitude; /* magnitude of the model before unaries moved */
    int is_part;            /* unaries move between runs: labels are those of the sweeps alone */
};

/* The node at a place of the sweep under way. */
static inline int32_t fgi_trws_node(const fgi_model *m, const fgi_trws *self, int64_t place) {
    if (self->stage != FORWARD) place = m->s->n_vars - 1 - place;
    return self->list ? self->list[place] : (int32_t)place;
}

static inline void fgi_trws_add_sum(fgi_sum *to, const fgi_sum *from) {
    fgi_sum_add(to, from->sum);
    fgi_sum_add(to, from->carry);
    to->forbidden |= from->forbidden;
}

static inline void fgi_trws_add_block(fgi_trws_sums *to, const fgi_progress *from) {
    fgi_trws_add_sum(&to->bound, &from->bound);
    fgi_trws_add_sum(&to->decoded, &from->decoded);
    to->magnitude += from->magnitude;
}

/* To be called before a node is visited, unless visits are recorded. */
static inline void fgi_trws_enter(fgi_trws *self, int64_t node) {
    if (node / FGI_TRWS_BLOCK == self->block || self->record) return;
    fgi_trws_add_block(&self->sums, &self->progress);
    self->progress.bound = self->progress.decoded = (fgi_sum){0};
    self->progress.magnitude = 0;
    self->block = node / FGI_TRWS_BLOCK;
}

/* The two maxima of a node (its own, and the sum of those of its edges) go to the bound, or wait for their turn. */
static inline void fgi_trws_take(fgi_progress *progress, double *record, int64_t node, int which, double top) {
    if (record && top > -INFINITY) record[2 * node + which] = top;
    else fgi_progress_take(progress, top);
}

/* Node i takes a label, which adds so much to the score. */
static inline void fgi_trws_decode(fgi_trws *self, int32_t i, int32_t label, double score) {
    self->labels[i] = label;
    if (self->decoded) self->decoded[i] = score;
    else fgi_sum_add(&self->progress.decoded, score);
}

/* Counts work done; 1: the clock was looked at, and the time is over. */
static inline int fgi_trws_out_of_time(fgi_trws *self, int64_t work) {
    return fgi_meter_spend(&self->meter, work + FGI_LINK_WORK);
}

/* dual/trws_build.c: stages COUNT, and BUILD and LINK. 0: the time is over. What they need, 0: no memory. */
int fgi_trws_take_for_building(const fgi_structure *s, fgi_trws *self);
void fgi_trws_end_building(fgi_trws *self);
int fgi_trws_count_edges(const fgi_model *m, fgi_trws *self);
int fgi_trws_build_edges(const fgi_model *m, fgi_trws *self);
int fgi_trws_set_units(const fgi_model *m, fgi_trws *self); /* 0: floats are not safe */

/* dual/trws_shared.c: stage SHARE, 0: the time is over. */
int fgi_trws_share_tables(const fgi_model *m, fgi_trws *self);
void fgi_trws_shared_free(fgi_trws *self);
/* What is known of a table that is shared; NULL: nothing, it is read whole. */
static inline const fgi_trws_shared *fgi_trws_shared_table(
    const fgi_model *m, const fgi_trws *self, const fgi_trws_edge *e) {
    if (!self->shared || self->single || e->form != FGI_TRWS_DENSE) return NULL;
    const int32_t number = self->shared_by[m->s->factor_table[e->factor]];
    return number ? self->shared[number - 1] : NULL;
}
/* The max-plus product from a side of the table (0: h is about its rows), by the part begin .. end of that side's
 * labels: all parts together, each at least that of the others, are the product. `list` has room for a label more than
 * there are. Returns how many entries of that part were not read. */
int64_t fgi_trws_product_shared(const fgi_kernels *k, const fgi_trws_shared *t, int side, double w, const double *h,
    double *out, int32_t begin, int32_t end, int32_t *list);

/* dual/trws_messages.c: what the solver's table of functions wants. */
int64_t fgi_trws_dual_size(const fgi_solver *solver);
fgi_rc fgi_trws_messages(const fgi_solver *solver, double *mu);
fgi_rc fgi_trws_warm_start(fgi_solver *solver, const double *mu, fgi_error *err);
int fgi_trws_takes(const fgi_solver *solver, const fgi_model *fresh);
fgi_rc fgi_trws_update(fgi_solver *solver);

/* dual/trws_part.c: the same, for a model that is a part of a larger one. */
void fgi_trws_ready(fgi_solver *solver, int moves);
void fgi_trws_moved(fgi_solver *solver, int32_t i);
void fgi_trws_belief(const fgi_solver *solver, int32_t i, double *out);
double *fgi_trws_own_state(fgi_solver *solver, int64_t *n);
fgi_rc fgi_trws_state_set(fgi_solver *solver, fgi_error *err);

/* dual/trws.c, for the messages: a max-plus product along an edge; all that comes before the first sweep; a new
 * iteration; the rest of a sweep of one that is under way, 0: none is. */
void fgi_trws_product(
    const fgi_model *m, const fgi_trws *self, const fgi_trws_edge *e, int to_hi, const double *h, double *out);
void fgi_trws_set_up(const fgi_model *m, fgi_trws *self);
void fgi_trws_begin(const fgi_solver *solver, fgi_trws *self);
/* The sweep whose turn it is begins, with messages that are there. */
void fgi_trws_resume(const fgi_solver *solver, fgi_trws *self);
int fgi_trws_finish(fgi_solver *solver);

/* dual/trws.c: all that happens at a node in one sweep. Returns 0 if a maximum is -INFINITY. And parts of it: hat (and,
 * decoding, given, which is returned at the best label) of the labels begin .. end of a node; an edge, whose maximum is
 * returned; of a product, what comes of the labels begin .. end at the end of the edge that fgi_trws_parts_source says:
 * 1, where it comes from (parts are to be joined by their maxima), 0, where it goes to. */
int fgi_trws_visit(const fgi_model *m, fgi_trws *self, int32_t i);
int32_t fgi_trws_add_up(
    const fgi_model *m, fgi_trws *self, int32_t i, int decoding, int32_t begin, int32_t end, double *liked);
double fgi_trws_send(const fgi_model *m, fgi_trws *self, fgi_trws_edge *e, int to_hi, double weight);
void fgi_trws_product_part(const fgi_model *m, const fgi_trws *self, const fgi_trws_edge *e, int to_hi, const double *h,
    double *out, int32_t begin, int32_t end);

static inline int fgi_trws_parts_source(const fgi_model *m, const fgi_trws *self, const fgi_trws_edge *e, int to_hi) {
    return e->lo_rows == to_hi || fgi_trws_shared_table(m, self, e);
}

static inline fgi_trws_edge *fgi_trws_outgoing(const fgi_trws *self, int32_t i, int64_t k) {
    return &self->edges[self->stage == FORWARD ? self->later_begin[i] + k : self->earlier[self->earlier_begin[i] + k]];
}

/* How many messages node i sends in this sweep. */
static inline int64_t fgi_trws_sends(const fgi_trws *self, int32_t i) {
    const int64_t *begin = self->stage == FORWARD ? self->later_begin : self->earlier_begin;
    return begin[i + 1] - begin[i];
}

/* The part of hat that each of them gets. */
static inline double fgi_trws_weight(const fgi_trws *self, int32_t i) {
    const int64_t n_later = self->later_begin[i + 1] - self->later_begin[i],
                  n_earlier = self->earlier_begin[i + 1] - self->earlier_begin[i];
    return 1.0 / (double)(n_later > n_earlier ? n_later : n_earlier);
}

/* dual/trws_threads.c: sweeps by several threads, the same to the last bit. */
int fgi_trws_team_create(const fgi_solver *solver, fgi_trws *self); /* 0: no memory */
void fgi_trws_team_begin(const fgi_model *m, fgi_trws *self);       /* with what can be done beside the set-up */
void fgi_trws_team_free(fgi_trws_team *t);
/* The rest of a sweep by all threads, in waves where the graph has them wide enough, else node by node
 * (dual/trws_step.c). 1: complete, 0: the time is over, -1: one thread does it as well. */
int fgi_trws_sweep_together(const fgi_model *m, fgi_trws *self);
/* A new sweep begins, however far the last one has come. */
void fgi_trws_forget_sweep(fgi_trws *self);

/* Doubles kept for the message of an edge: whole registers of four where the special case may read and write it. */
static inline int64_t fgi_trws_message_size(int32_t card_a, int32_t card_b) {
    const int32_t most = card_a > card_b ? card_a : card_b;
    return most > 2 && most < FGI_FEW ? (most + 3) / 4 * 4 : most;
}

/* Makes the bands of all implicit tables; without memory, self->arena has failed. And the middle of one of them. */
void fgi_trws_build_bands(const fgi_structure *s, fgi_trws *self);
static inline double *fgi_trws_band(const fgi_trws *self, int64_t table) {
    return self->bands + FGI_TRWS_BAND * (int64_t)self->band_of[table] + FGI_FEW - 1;
}

int fgi_trws_needs_look_ahead(const fgi_structure *s, const fgi_trws *self);

/* The special case for these kernels, or NULL. */
fgi_trws_few_visits *fgi_trws_few(const fgi_kernels *k);

#endif
