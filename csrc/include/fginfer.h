/*
 * fginfer.h - the public interface of the fginfer core, and its manual.
 *
 * A *score* is maximised everywhere; energy = -score. -INFINITY forbids a state; NaN and +INFINITY are refused.
 * Variable i has labels 0 .. cards[i]-1. A factor's table lists the product of its variables' labels with the
 * last variable fastest. Sizes are int64_t, labels int32_t, times seconds of fgi_clock().
 *
 * Every function that can fail returns an fgi_rc, and says more in *err unless that is NULL; *why a solver stopped* is
 * an fgi_status, never an error. Handles are opaque: who makes one frees it, every *_free(NULL) is fine, and a call
 * that failed leaves nothing to free and nothing to use in *out. Inputs are copied, unless a comment says that they
 * are borrowed. Nothing here prints, exits or keeps globals.
 *
 * cffi parses this file as it stands, apart from lines that start with '#'. Keep it plain C.
 */
#ifndef FGINFER_H
#define FGINFER_H
#include <stddef.h>
#include <stdint.h>

/* ---- call results ------------------------------------------------------------------------------------------- */

typedef enum fgi_rc {
    FGI_OK = 0,
    FGI_NO_MEMORY = 1,    /* an allocation failed, or a size does not fit in memory */
    FGI_BAD_ARGUMENT = 2, /* an argument is out of range; fgi_error says which */
    FGI_BAD_MODEL = 3,    /* the model is malformed (NaN, wrong table size, unknown variable ...) */
    FGI_BAD_FORMAT = 4,   /* a file does not parse; fgi_error has line and token */
    FGI_IO = 5,           /* a file cannot be read */
    FGI_UNSUPPORTED = 6   /* this solver cannot take this model (arity, size, memory limit) */
} fgi_rc;

/* Filled by a failing call. `line` is 1-based, 0 where there is none; `index` is the offending factor or entry, or -1.
 */
typedef struct fgi_error {
    int64_t line;
    int64_t index;
    char token[64];
    char message[256];
} fgi_error;

const char *fgi_version(void);  /* as in pyproject.toml */
const char *fgi_compiler(void); /* name and version of the compiler that built the core */
const char *fgi_cpu_path(void); /* "avx2", "scalar" ...: the kernels chosen at load time */
double fgi_clock(void);         /* monotonic seconds; the clock of all traces */

/* ---- model -------------------------------------------------------------------------------------------------- */

typedef enum fgi_table_kind {
    FGI_DENSE = 0,   /* explicit values */
    FGI_POTTS = 1,   /* a == b ? p0 : p1 */
    FGI_ABSDIFF = 2, /* -p0 * min(|a-b|, p1),   p0 >= 0, p1 > 0 (may be INFINITY) */
    FGI_SQDIFF = 3   /* -p0 * min((a-b)^2, p1), p0 >= 0, p1 > 0 (may be INFINITY) */
} fgi_table_kind;

/*
 * The bulk description of a model; every pointer is borrowed for the duration of the call.
 * A dense table t has table_arity[t] dimensions in `dims` (concatenated) and its values in `values` (concatenated).
 * Implicit tables are pairwise, fit any label counts and have no dims and no values.
 * Factor f is over vars[var_begin[f] .. var_begin[f+1]) and has the scores weight[f] * table(f); weights are > 0 and
 * finite. With transposed[f] (pairwise only) it reads its table as T[x_second][x_first]. Factors of arity 0 and 1 must
 * be folded into `constant` and `unary` by the caller (fginfer.graph does). What such a sum loses by rounding may
 * be given as leftovers: scores of labelings count them, so that they are those of the factors before folding.
 */
typedef struct fgi_model_spec {
    int64_t n_vars;
    const int32_t *cards;
    const double *unary; /* concatenated, sum(cards) values; NULL for zeros */
    double constant;
    int64_t n_tables;
    const int32_t *table_kind; /* NULL: all dense */
    const int32_t *table_arity;
    const int32_t *dims;
    const double *params; /* 2 per table (p0, p1); NULL when all are dense */
    const double *values;
    int64_t n_values; /* length of `values`, checked against dims */
    int64_t n_factors;
    const int32_t *factor_table;
    const double *factor_weight;      /* NULL: all 1 */
    const uint8_t *factor_transposed; /* NULL: none */
    const int64_t *var_begin;         /* n_factors + 1; NULL: all pairwise */
    const int32_t *vars;
    int64_t n_leftovers;         /* 0: no sum was rounded */
    const int32_t *leftover_var; /* ascending, one variable may have several; -1: of the constant */
    const double *leftover;      /* concatenated: a finite number for each label, one for the constant */
    int64_t n_leftover_values;   /* length of `leftover`, checked */
} fgi_model_spec;

typedef struct fgi_model fgi_model;

/* Refused (FGI_BAD_MODEL, with the factor, table or variable) is what the spec above does not allow. */
fgi_rc fgi_model_create(const fgi_model_spec *spec, fgi_model **out, fgi_error *err);
/* Another handle on the same structure and the same version of the potentials; cheap. Safe from any thread. */
fgi_model *fgi_model_snapshot(const fgi_model *m);
void fgi_model_free(fgi_model *m);
/* A snapshot without leftovers, which is what solvers see and speak of: no labeling has a score in m that is above its
 * score there by more than fgi_model_leftover_bound(m), 0 where there are none. */
fgi_model *fgi_model_plain(const fgi_model *m);
double fgi_model_leftover_bound(const fgi_model *m);
int fgi_model_has_leftovers(const fgi_model *m);
/* Those of another model, whose variables must be the first ones of m. */
void fgi_model_take_leftovers(fgi_model *m, const fgi_model *from);

/* The model's own arrays, as a spec that would build it again. Borrowed: valid until the handle is freed or changed. */
void fgi_model_arrays(const fgi_model *m, fgi_model_spec *out);

/* Whether the two differ in their potentials at most: one is a snapshot of the other, changed or not. */
int fgi_model_same_structure(const fgi_model *a, const fgi_model *b);

/*
 * The model left when `n` variables are fixed; the free ones keep their order. The score of a labeling of the reduced
 * model is the score of the whole labeling in m: where scores are added up, what is rounded becomes leftovers. Evidence
 * against a hard constraint shows as a -INFINITY in its potentials.
 */
fgi_rc fgi_model_condition(
    const fgi_model *m, int64_t n, const int32_t *vars, const int32_t *labels, fgi_model **out, fgi_error *err);

/*
 * The model with at most `most` labels a variable (two or more): half of them score best beside `labels`, a labeling
 * of m, half by themselves, and those of the labeling are among them. kept: room for `most` numbers a variable, the
 * labels of m in ascending order, then -1. A labeling of the narrow model is one of m, with the same score.
 */
fgi_rc fgi_model_narrow(
    const fgi_model *m, const int32_t *labels, int32_t most, fgi_model **out, int32_t *kept, fgi_error *err);

/* New numbers, same structure. Snapshots and running solvers keep the version they hold (copy on write). Leftovers of
 * variables with new unaries are gone. */
fgi_rc fgi_model_set_unary(fgi_model *m, int32_t var, const double *scores, fgi_error *err);
/* Those of n variables, one after the other: all of them or none. */
fgi_rc fgi_model_set_some_unary(fgi_model *m, int64_t n, const int32_t *vars, const double *scores, fgi_error *err);
fgi_rc fgi_model_set_all_unary(fgi_model *m, const double *scores, fgi_error *err);
fgi_rc fgi_model_set_table(fgi_model *m, int32_t table, const double *values, fgi_error *err);
/* n tables at once, their values one after the other. One that is refused stays as it is, as do those behind it. */
fgi_rc fgi_model_set_tables(fgi_model *m, int64_t n, const int32_t *tables, const double *values, fgi_error *err);

/* Compensated sums over the tables; -INFINITY when a forbidden state is used. Labels must be in range (checked). The
 * second fills one score a factor. */
fgi_rc fgi_model_score(const fgi_model *m, const int32_t *labels, double *score, fgi_error *err);
fgi_rc fgi_model_factor_scores(const fgi_model *m, const int32_t *labels, double *factor_scores, fgi_error *err);
int64_t fgi_model_memory(const fgi_model *m); /* bytes held, shared parts included */
double fgi_model_constant(const fgi_model *m);
double fgi_model_states(const fgi_model *m);    /* states of all factors: the entries there would be without sharing */
double fgi_model_pass_work(const fgi_model *m); /* entries that a sweep reads: of an implicit table one per label */
void fgi_model_unary_labels(const fgi_model *m, int32_t *labels); /* the best labels by the unaries alone */
/* The bound that needs no messages: the sum of the maxima of all potentials, rounding included. */
double fgi_model_trivial_bound(const fgi_model *m);
/* The share of factors (in a sample, where there are very many) that are pairwise and binary and reward both labels
 * being 1 beyond what they do one by one. */
double fgi_model_attraction(const fgi_model *m);
int32_t fgi_model_max_arity(const fgi_model *m); /* variables of the largest factor; 0: there is none */

/*
 * The model's own unit u: the smallest, over all factors (the unary scores of a variable are one) with two distinct
 * finite scores, of the best minus the next distinct one; 0 where no factor has two. Gaps and tolerances are relative
 * to max(|score|, u).
 */
double fgi_model_unit(const fgi_model *m);
/* The largest score that can occur up to this bound, where all scores are whole multiples of a step that doubles hold
 * exactly (whole numbers); else the bound. Two passes over the tables. */
double fgi_model_floor(const fgi_model *m, double bound);

/*
 * The same model with all scores times 2^-exponent, the tables shared: a snapshot and exponent 0 where the largest
 * score lies in [2^-128, 2^128], else the exponent that brings it near 1 (or as near as the others allow). Solvers
 * work on it, so that nothing depends on the unit that scores are counted in. Factors over more than 16 variables lose
 * those with one label (two variables stay at least), so that no method counts them. Refused (FGI_BAD_MODEL,
 * with the factor or variable) are models in which differences of sums could overflow, weighted scores underflow, or
 * magnitudes are more than 2^1900 apart.
 */
fgi_rc fgi_model_normalised(const fgi_model *m, fgi_model **out, int *exponent, fgi_error *err);

/* ---- UAI files ---------------------------------------------------------------------------------------------- */

/*
 * A push parser: feed the text of a file in pieces of any size, then finish. MARKOV and BAYES files; entries are
 * potentials, or natural logarithms of them with log_values. FGI_BAD_FORMAT comes with line, token and a sentence.
 * Tables in long pieces (a megabyte) are read by so many threads.
 */
typedef struct fgi_uai fgi_uai;

/* After a call that failed a reader is good for nothing but fgi_uai_free; so are the readers below. */
fgi_rc fgi_uai_create(int log_values, int threads, fgi_uai **out, fgi_error *err);
fgi_rc fgi_uai_feed(fgi_uai *r, const char *text, int64_t n, fgi_error *err);
/* End of the file: its model, which takes over the reader's tables. given_factors counts factors of every arity. */
fgi_rc fgi_uai_finish(fgi_uai *r, fgi_model **out, int64_t *given_factors, fgi_error *err);
int64_t fgi_uai_held(const fgi_uai *r); /* bytes: what a careful caller limits */
void fgi_uai_free(fgi_uai *r);

/*
 * The other way: pieces of text of up to `capacity` (>= 256) bytes until one is empty. Read back, every score is the
 * same, bit for bit. FGI_BAD_FORMAT names a score whose potential is not a double; FGI_BAD_MODEL, with bayes, what a
 * Bayesian network may not have.
 */
typedef struct fgi_uai_writer fgi_uai_writer;

fgi_rc fgi_uai_writer_create(const fgi_model *m, int log_values, int bayes, fgi_uai_writer **out, fgi_error *err);
fgi_rc fgi_uai_writer_next(fgi_uai_writer *w, char *text, int64_t capacity, int64_t *length, fgi_error *err);
void fgi_uai_writer_free(fgi_uai_writer *w);

/* ---- .wcsp files -------------------------------------------------------------------------------------------- */

/*
 * The same for toulbar2's .wcsp. `allowed`: bytes of tables that the file may ask for; where it asks for more, the call
 * fails with the words for what it asked, and fgi_wcsp_refused is how much there would have been in all (0: nothing was
 * refused). *cutoff: totals at or below it are infeasible; -INFINITY where none is.
 */
typedef struct fgi_wcsp fgi_wcsp;

fgi_rc fgi_wcsp_create(int64_t most_variables, double allowed, fgi_wcsp **out, fgi_error *err);
fgi_rc fgi_wcsp_feed(fgi_wcsp *r, const char *text, int64_t n, fgi_error *err);
fgi_rc fgi_wcsp_finish(fgi_wcsp *r, fgi_model **out, int64_t *given_factors, double *cutoff, fgi_error *err);
double fgi_wcsp_refused(const fgi_wcsp *r);
int64_t fgi_wcsp_held(const fgi_wcsp *r);
void fgi_wcsp_free(fgi_wcsp *r);

/* ---- .cfn files --------------------------------------------------------------------------------------------- */

/*
 * The same for toulbar2's .cfn. `most`: bytes of one table whose entries are listed; `*listed`: that was refused. Where
 * the negative costs of other functions may pay for a cost above the bound, it does not forbid.
 */
typedef struct fgi_cfn fgi_cfn;

fgi_rc fgi_cfn_create(int64_t most_variables, double allowed, double most, fgi_cfn **out, fgi_error *err);
fgi_rc fgi_cfn_feed(fgi_cfn *r, const char *text, int64_t n, fgi_error *err);
fgi_rc fgi_cfn_finish(fgi_cfn *r, fgi_model **out, int64_t *given_factors, double *cutoff, fgi_error *err);
/*
 * The names in the file, from text[begin[k]] to text[begin[k + 1]]: of variable value[k] where the owner is -1, of a
 * function where it is -2, else of label value[k] of the variable owner[k]. Returns how many; with NULL for the three
 * arrays that is all.
 */
int64_t fgi_cfn_names(const fgi_cfn *r, const char **text, int64_t *begin, int32_t *owner, int32_t *value);
double fgi_cfn_refused(const fgi_cfn *r, int *listed);
int64_t fgi_cfn_held(const fgi_cfn *r);
void fgi_cfn_free(fgi_cfn *r);

/* ---- solvers ------------------------------------------------------------------------------------------------ */

/* Methods, their options and their counters are rows of fginfer_methods.def, which says what each is. */
typedef enum fgi_method {
#define FGI_METHOD(symbol, name, number, text, use) FGI_##symbol = number,
#include "fginfer_methods.def"
    FGI_NO_METHOD = -1
} fgi_method;

const char *fgi_method_name(int32_t method); /* NULL: this build has no such method */

/* The rows of the table, for callers that list them; lists of words have spaces between. */
typedef struct fgi_method_row {
    int32_t number; /* fgi_method; FGI_NO_METHOD: it is written in Python */
    const char *name, *text, *use;
} fgi_method_row;

typedef enum fgi_option_kind {
    FGI_OPTION_NUMBER = 0,
    FGI_OPTION_CHOICE = 1,
    FGI_OPTION_FLAG = 2,
    FGI_OPTION_NUMBERS = 3 /* by name */
} fgi_option_kind;

typedef struct fgi_option_row {
    int32_t kind; /* fgi_option_kind */
    int32_t is_native;
    double standard; /* the default */
    double least, below;
    const char *name, *methods, *choices, *text;
} fgi_option_row;

typedef struct fgi_counter_row {
    const char *name, *methods, *text;
} fgi_counter_row;

/* NULL: there are no more. */
const fgi_method_row *fgi_method_get(int32_t i);
const fgi_option_row *fgi_option_get(int32_t i);
const fgi_counter_row *fgi_counter_get(int32_t i);

typedef enum fgi_status {
    FGI_RUNNING = 0, /* the slice is over, there is more to do */
    FGI_OPTIMAL = 1, /* proven: no labeling is better by more than fgi_proof_tolerance */
    FGI_GAP_REACHED = 2,
    FGI_CONVERGED = 3,  /* the method has nothing more to gain, a gap remains */
    FGI_TIME_LIMIT = 4, /* set by the caller that owns the clock */
    FGI_ITERATION_LIMIT = 5,
    FGI_INTERRUPTED = 6, /* set by the caller */
    FGI_INFEASIBLE = 7   /* proven: no labeling has a finite score above the cutoff */
} fgi_status;

/* max(0, bound - score) / max(|score|, unit), 0/0 = 0; INFINITY while either is missing. unit: fgi_model_unit. */
double fgi_relative_gap(double score, double bound, double unit);
/* 1e-12 max(|score|, unit): how far a bound may lie above a score and still prove that there is nothing better. Sums of
 * a million scores are exact to less than that. */
double fgi_proof_tolerance(double score, double unit);

/* gdmm: what it keeps for a factor. */
typedef enum fgi_formulation {
    FGI_FORMULATION_AUTO = 0,   /* by model */
    FGI_FORMULATION_TABLES = 1, /* a distribution over the active states of its table: large domains */
    FGI_FORMULATION_BINARY = 2  /* one number, for very many binary pairwise factors of which few are ever touched */
} fgi_formulation;

/* gdmm: its algorithm. */
typedef enum fgi_variant {
    FGI_VARIANT_AUTO = 0,     /* ours, which is faster */
    FGI_VARIANT_PUBLISHED = 1 /* as printed */
} fgi_variant;

/* gdmm: how tables with many entries are read. */
typedef enum fgi_table_access {
    FGI_ACCESS_AUTO = 0,   /* table by table, by what it costs: see csrc/gdmm/tables.c */
    FGI_ACCESS_SORTED = 1, /* in sorted order, as far as needed; without sweeps messages stay sparse, too */
    FGI_ACCESS_DENSE = 2   /* whole, with messages on all labels */
} fgi_table_access;

typedef enum fgi_switch { FGI_CHOOSE = 0, FGI_ON = 1, FGI_OFF = 2 } fgi_switch;

typedef struct fgi_settings {
    int32_t method;  /* fgi_method */
    int32_t threads; /* >= 1; results do not depend on it */
    uint64_t seed;
    double gap;             /* stop when fgi_relative_gap is at most this */
    double cutoff;          /* only labelings with a score above it are wanted; -INFINITY: all with a finite score */
    int64_t max_iterations; /* < 0: no limit */
    double start_time;      /* fgi_clock() value that counts as second 0 of the trace; < 0: creation of the solver */
    /* Options: one that the method does not read must stay as fgi_settings_default has it. Choices are numbers: of
     * fgi_formulation, fgi_table_access, fgi_switch, or the place of the word in its row. */
#define FGI_NUMBER(name, methods, standard, least, below, text) double name;
#define FGI_CHOICE(name, methods, choices, text) int32_t name;
#include "fginfer_methods.def"
} fgi_settings;

fgi_settings fgi_settings_default(void);
/* FGI_BAD_ARGUMENT, with its name, for what is out of range; fgi_solver_create asks, too. */
fgi_rc fgi_settings_check(const fgi_settings *settings, fgi_error *err);

typedef struct fgi_info {
    int32_t status; /* fgi_status */
    int32_t paused; /* the last run has ended where fgi_solver_pause_at says */
    int64_t iterations;
    double score;         /* exact score of the best labeling, recomputed from the tables; -INFINITY: none yet */
    double bound;         /* no labeling has a higher score, rounding included; INFINITY: none yet */
    double unit;          /* fgi_model_unit of the model */
    double seconds;       /* spent inside create and run */
    double seconds_setup; /* before the first step */
    int32_t access;       /* gdmm: fgi_table_access that was chosen; 0 elsewhere */
    int32_t found_by;     /* fgi_finder of the best labeling */
    /* Counters: 0 where the method does not count them. */
#define FGI_COUNTER(type, name, methods, text) type name;
#include "fginfer_methods.def"
} fgi_info;

/* What found a labeling. */
typedef enum fgi_finder {
    FGI_FOUND_BY_METHOD = 0,   /* the method has one way only */
    FGI_FOUND_OUTSIDE = 1,     /* it was offered */
    FGI_FOUND_BY_SWEEP = 2,    /* rounding of a sweep, and local search */
    FGI_FOUND_BY_ROUNDING = 3, /* rounding of the iterates alone */
    FGI_FOUND_BY_LOCAL = 4,    /* local search from such a rounding */
    FGI_FOUND_BY_SEARCH = 5    /* primal search */
} fgi_finder;

/* One event per improvement of score or bound, at most one per iteration for the bound. */
typedef struct fgi_event {
    double seconds;
    double score;
    double bound;
    int64_t iteration; /* sweeps counted, too */
} fgi_event;

typedef struct fgi_solver fgi_solver;

/* The solver holds a snapshot of the model. Set-up beyond allocation happens inside the first slices. */
fgi_rc fgi_solver_create(const fgi_model *m, const fgi_settings *settings, fgi_solver **out, fgi_error *err);
/* Works for about `seconds` or `iterations` more iterations (< 0: no limit of that kind), whichever ends first. */
fgi_rc fgi_solver_run(fgi_solver *solver, double seconds, int64_t iterations, fgi_info *info);
/* Runs pause, in the middle of an iteration too, soon after info.entries_touched has come to this: at the same place in
 * every run, unlike pauses by the clock. For bnb, edac, dolls and search, whose iterations may take long;
 * others go on. */
void fgi_solver_pause_at(fgi_solver *solver, int64_t entries);
/* Other work of the caller needs the cores (1), or no longer does (0): meanwhile threads of this solver do not work in
 * step with each other, which takes long where one of them has no core. Results do not depend on it. Unlike all other
 * calls it may be made by any thread while the solver runs. */
void fgi_solver_rest(fgi_solver *solver, int32_t rests);
void fgi_solver_info(const fgi_solver *solver, fgi_info *info);
/* Best labeling so far; returns 0 and leaves `labels` alone when there is none. */
int fgi_solver_labels(const fgi_solver *solver, int32_t *labels);
int64_t fgi_solver_trace(
    const fgi_solver *solver, int64_t from, int64_t capacity, fgi_event *events); /* total number */
/* A labeling from elsewhere: kept if it is better than the incumbent, and used as a start where the method can. */
fgi_rc fgi_solver_offer(fgi_solver *solver, const int32_t *labels, fgi_error *err);
/* A bound proven elsewhere. */
void fgi_solver_offer_bound(fgi_solver *solver, double bound);
/*
 * Dual state as dense messages: for factor f in order, for each of its variables in order, cards[var] multipliers
 * mu_if(a) with the sign of docs/mathematics.md: factor scores minus mu, unary scores plus mu. Variables with one label
 * have none in factors over more than 16. Size: fgi_solver_message_size, or -1 where the method has none.
 */
int64_t fgi_solver_message_size(const fgi_solver *solver);
fgi_rc fgi_solver_messages(const fgi_solver *solver, double *mu);
/*
 * Proofs (docs/proofs.md). Before its first run a solver may be told to say every step: nodes are closed that cannot
 * be better than the incumbent by `lead`, messages are whole multiples of `quantum`, a power of two, down to -`reach`,
 * which is far below what closes a node. FGI_UNSUPPORTED: the method writes no proof. The steps are taken away between
 * runs; after the last one, hush closes what is open by the bound that is known, and says how far it is above the
 * incumbent: up to `lead` that is a proof, and -1 says that there is nothing that could be said. _spoken: bytes to be
 * taken; -1: memory or numbers have ended the proof. _speaks: whether the method can say anything.
 */
int fgi_solver_speaks(const fgi_solver *solver);
fgi_rc fgi_solver_speak(fgi_solver *solver, double lead, double quantum, double reach, fgi_error *err);
double fgi_solver_hush(fgi_solver *solver);
int64_t fgi_solver_spoken(const fgi_solver *solver);
void fgi_solver_take_spoken(fgi_solver *solver, uint8_t *out);
fgi_rc fgi_solver_warm_start(fgi_solver *solver, const double *mu, fgi_error *err);
/* The model's present potentials in place of those the solver was made with (same structure). The labels, rescored, and
 * the dual state stay as a start; score, bound, iterations and trace begin anew. FGI_UNSUPPORTED: make a new solver
 * instead. */
fgi_rc fgi_solver_update(fgi_solver *solver, const fgi_model *m, fgi_error *err);
/*
 * For a model that is a part of a larger one, whose other parts share some variables. New unary scores of these, one
 * variable after the other: the dual state stays, and what runs find from now on (labels, score, bound) is of the new
 * numbers. The model is the solver's own: the caller's does not change. And what the solver says of variables: the
 * scores theta_i + sum of mu_if of its present messages, laid out likewise. FGI_UNSUPPORTED where a method has neither.
 */
fgi_rc fgi_solver_move_unary(
    fgi_solver *solver, int64_t n, const int32_t *variables, const double *scores, fgi_error *err);
fgi_rc fgi_solver_beliefs(
    const fgi_solver *solver, int64_t n, const int32_t *variables, double *beliefs, fgi_error *err);
/*
 * The dual state as the method holds it, where it has a fgi_solver_beliefs: a solver of the same model that is given it
 * goes on as this one would, if this one is given it, too. fgi_solver_state brings an iteration under way to its end.
 * Size: -1 where the method has none.
 */
int64_t fgi_solver_state_size(const fgi_solver *solver);
fgi_rc fgi_solver_state(fgi_solver *solver, double *state, fgi_error *err);
fgi_rc fgi_solver_set_state(fgi_solver *solver, const double *state, fgi_error *err);
/* Relaxed variable marginals, laid out as the unaries; returns 0 where there are none. x == NULL only asks the method.
 */
int fgi_solver_marginals(const fgi_solver *solver, double *x);
void fgi_solver_free(fgi_solver *solver);

#endif
