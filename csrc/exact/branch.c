/* exact/branch.c - depth-first branch and bound (method "bnb"): exact, anytime, for what presolve and fixing have left.
 *
 * A node is a compact problem (exact/node.h). Dual ascent on it gives a bound, removes labels whose reduced cost shows
 * that they cannot beat the incumbent, and suggests a labeling. Then one variable is split into its best label (a
 * child, visited first) and the rest (the node itself, with that label removed). The bound of the whole search is the
 * largest bound on the stack. Time never decides anything: a run cut into slices visits the same nodes. */
#include <string.h>
#include "base/array.h"
#include "base/meter.h"
#include "base/work.h"
#include "exact/node.h"
#include "exact/speak.h"
#include "model/marginal.h"
#include "model/lattice.h"
#include "primal/labeling.h"
#include "solver.h"

enum {
    MAX_ENTRIES = 60000000,        /* entries in the tables of one node: half a gigabyte */
    ROOT_ITERATIONS = 300,         /* most iterations of dual ascent at the root; see worth_another */
    NODE_ITERATIONS = 25,          /* most iterations of dual ascent at any other node */
    DECODE_OPERATIONS = 2000000,   /* operations of coordinate ascent from a decoded labeling: far more than it takes */
    CONSTRUCT_OPERATIONS = 300000, /* operations of one attempt to make a labeling feasible */
    CONSTRUCT_COST = 30,           /* table entries that one such operation counts as */
    HUSH_WORK = 20000000,          /* work that a search which only a proof still needs may add to twice the run's */
    MOST_STUBBORN = 1000           /* nodes that are split because of rounding alone */
};

/* An iteration that closes less than this share of what is left is the last one (decision 0016). */
static const double ROOT_GAIN = 0.005;
static const double NODE_GAIN = 0.2; /* the same at other nodes than the root */
/* A better labeling must be better by this share of the tolerance, so that bounds may be off by the rest. */
static const double SHARE = 0.25;
/* A node must say before a sweep whether its error would hide the cutoff: the error may
 * grow by this factor (chosen). */
static const double GROWTH = 8;
/* Where a proof is written, labels go at the end of a node. If no more than this share is left then, the node is looked
 * at again before it is split (decision 0014). */
static const double STILL = 0.8;

typedef struct frame {
    fgi_node *problem;
    int32_t var; /* next variable of the sweep */
    int forward;
    int iterations;      /* iterations of dual ascent since the last change by hand */
    double bound_before; /* at the start of the current iteration */
    double best,
        cutoff;  /* the score to beat, and the bound that closes the node, in the sweep under way: see cutoff() */
    double part; /* the node's share of the tree; a split halves it */
    int decoded;
    fgi_speech speech; /* where somebody listens */
} frame;

typedef struct branch {
    frame *stack;
    int64_t depth, capacity;
    int32_t *current;         /* labels of the root model: the variables that the path has fixed */
    int32_t *labels;          /* labels of the problem at hand */
    fgi_labeling *local;      /* improves decoded labelings */
    fgi_construct *construct; /* makes them feasible; NULL: nothing is forbidden */
    double *preferences;      /* beliefs of the problem at hand, by label of the root model */
    int64_t constructing;     /* work spent on that */
    fgi_node_scratch scratch;
    double *weight;             /* per root variable: how often it closed a node */
    double *cost;               /* per variable of the problem at hand: what its factors cost on average */
    fgi_speaker speaker;        /* says what is done, to those who want a proof */
    fgi_node_builder root;      /* until it is complete, and pushed */
    fgi_lattice lattice;        /* scores that can occur */
    int64_t stubborn;           /* nodes split because rounding hides that they could be closed */
    double left;                /* no labeling outside the open nodes is above this, or the incumbent */
    double missed;              /* no labeling outside them that was not scored by itself is above this */
    int64_t nodes, work, total; /* work: of the step at hand; total: of all before it */
    fgi_meter meter;
    fgi_arena arena;
} branch;

/* Is there a next score that can occur, and is what lies between it and the best one no more than rounding? */
static int counts_in_steps(const fgi_solver *s) {
    const fgi_lattice *l = &((const branch *)s->state)->lattice;
    if (l->step == 0 || 2 * l->error > SHARE * fgi_solver_tolerance(s)) return 0;
    return s->info.score >= s->settings.cutoff || fgi_lattice_contains(l, s->settings.cutoff);
}

/* What a labeling must be better by, at least. Of a cutoff nothing is taken off, but for rounding, once too many nodes
 * have been split because of that: what is left then is neither above the cutoff for sure nor below. */
static double share_of(const fgi_solver *s, const fgi_node *p) {
    return fgi_solver_wanted(s) ? SHARE * fgi_solver_tolerance(s) : 2 * fgi_node_error(p);
}

/* What a labeling must have at least to be worth a search of the node: more than the incumbent by a part of the
 * tolerance, the rest being for the rounding of the bound; or by a whole step. Where rounding takes more than that, the
 * node stays open, until its labelings are so few that each of them is scored by itself; but not without limit. */
static double silent_cutoff(const fgi_solver *s, const fgi_node *p) {
    const branch *b = s->state;
    const double best = fgi_solver_best(s);
    if (best == -INFINITY) return -INFINITY;
    const double tolerance = fgi_solver_tolerance(s), error = fgi_node_error(p);
    const double least = fgi_lattice_least(&b->lattice, best);
    const int in_steps = counts_in_steps(s), wanted = fgi_solver_wanted(s);
    double step = in_steps ? fgi_lattice_next(&b->lattice, best) : best;
    if (in_steps && step == best) step = fgi_larger(best, least - 2 * error); /* its margin takes it all */
    if ((in_steps || wanted) && step + error < least) return fgi_larger(step, best + SHARE * tolerance);
    if (b->stubborn >= MOST_STUBBORN) return best + share_of(s, p);
    if (SHARE * tolerance + error <= tolerance) return best + SHARE * tolerance;
    if (!wanted) return best - GROWTH * error - 0x1p-50 * fabs(best);
    return best + tolerance - error;
}

/* The same; a proof stands on a labeling or a cutoff, and has its own opinion of what is better than that. */
static double cutoff(const fgi_solver *s, const fgi_node *p) {
    const double best = fgi_solver_best(s);
    if (!s->proof || best == -INFINITY) return silent_cutoff(s, p);
    return fgi_smaller(silent_cutoff(s, p), best + s->proof->lead / 2 - fgi_node_error(p));
}

/* A part of the node is done with: no labeling in it is above `bound`, up to the node's error. */
static void leave(fgi_solver *s, const fgi_node *p, double bound) {
    branch *b = s->state;
    bound += fgi_node_error(p) + 0x1p-52 * fabs(bound);
    const double best = fgi_solver_best(s);
    if (counts_in_steps(s) && bound < fgi_lattice_least(&b->lattice, best)) {
        const double off = b->lattice.error > 0 ? 2 * b->lattice.error + 0x1p-52 * fabs(best) : 0;
        bound = fgi_smaller(bound, fgi_larger(best, s->above) + off);
    }
    b->left = fgi_larger(b->left, bound);
    b->missed = fgi_larger(b->missed, bound);
}

/* `var`: what the child of the node on top has fixed. */
static fgi_rc push(fgi_solver *s, fgi_node *p, int32_t var) {
    branch *b = s->state;
    if (!fgi_grow(&b->stack, &b->capacity, b->depth + 1, sizeof *b->stack)) {
        fgi_node_free(p);
        return FGI_NO_MEMORY;
    }
    const double part = b->depth > 0 ? b->stack[b->depth - 1].part /= 2 : 1;
    b->stack[b->depth++] = (frame){.problem = p, .forward = 1, .bound_before = p->bound, .part = part};
    s->info.memory += p->arena.bytes;
    b->nodes++;
    p->keeps_labels = s->proof != NULL;
    const frame *of = b->depth > 1 ? &b->stack[b->depth - 2] : NULL;
    frame *f = &b->stack[b->depth - 1];
    return s->proof ? fgi_speech_begin(&f->speech, p, of ? of->problem : NULL, of ? &of->speech : NULL, var) : FGI_OK;
}

static void pop(fgi_solver *s) {
    branch *b = s->state;
    fgi_node *p = b->stack[--b->depth].problem;
    s->info.explored += b->stack[b->depth].part;
    s->info.memory -= p->arena.bytes;
    fgi_speech_free(&b->stack[b->depth].speech);
    fgi_node_free(p);
}

/* The threshold is so far above the incumbent, or above the cutoff while there is none. */
static void raise_threshold(fgi_solver *s, double lead) {
    const int32_t *labels = fgi_solver_wanted(s) ? s->best : NULL;
    fgi_speak_threshold(&((branch *)s->state)->speaker, labels, s->model->s->n_vars, fgi_solver_best(s), lead);
}

/* The threshold of the proof follows the incumbent. */
static void tell_threshold(fgi_solver *s) {
    const branch *b = s->state;
    if (fgi_solver_best(s) > b->speaker.score) raise_threshold(s, s->proof->lead);
}

/* Says the node on top, to those who listen; labels up to the cutoff go. Returns 0 when a variable has none left. */
static int speak(fgi_solver *s, double least) {
    branch *b = s->state;
    frame *f = &b->stack[b->depth - 1];
    if (!s->proof) return 1;
    tell_threshold(s);
    const int left = fgi_speak_node(&b->speaker, &f->speech, f->problem, least);
    if (left && f->problem->removed > -INFINITY) {
        leave(s, f->problem, f->problem->removed);
        f->problem->removed = -INFINITY;
    }
    if (!left) f->problem->bound = -INFINITY; /* what its labels had is in `removed` */
    return left;
}

/* The same of a node that is done with. */
static void speak_last(fgi_solver *s) {
    branch *b = s->state;
    frame *f = &b->stack[b->depth - 1];
    if (!s->proof) return;
    tell_threshold(s);
    fgi_speak_close(&b->speaker, &f->speech, f->problem, cutoff(s, f->problem));
    fgi_speak_end(&b->speaker);
}

/* The node on top cannot beat the incumbent. */
static void close_top(fgi_solver *s) {
    branch *b = s->state;
    const fgi_node *p = b->stack[b->depth - 1].problem;
    const double bound = fgi_larger(p->bound, p->removed); /* labels that went in the update that closed it, too */
    speak_last(s);
    if (bound > -INFINITY) leave(s, p, bound);
    pop(s);
}

/* The largest bound of an open node; every labeling elsewhere has been visited or cannot beat the incumbent. */
static void report_bound(fgi_solver *s) {
    const branch *b = s->state;
    double bound = -INFINITY;
    for (int64_t d = 0; d < b->depth; d++) {
        const fgi_node *p = b->stack[d].problem;
        if (p->bound > -INFINITY) bound = fgi_larger(bound, p->bound + fgi_node_error(p));
    }
    bound = fgi_larger(fgi_lattice_floor(&b->lattice, bound), b->left);
    fgi_solver_bound(s, fgi_larger(bound, fgi_larger(fgi_solver_best(s), s->above)));
}

/* A feasible labeling near the beliefs of the problem, which decoding has missed, in the local search. Returns 1 if
 * there is one. */
static int construct(fgi_solver *s, const fgi_node *p) {
    branch *b = s->state;
    const fgi_structure *st = s->model->s;
    if (!b->construct || b->constructing > b->total / 4 + CONSTRUCT_OPERATIONS) return 0;
    for (int64_t k = 0; k < st->unary_begin[st->n_vars]; k++) b->preferences[k] = -INFINITY;
    for (int64_t i = 0; i < st->n_vars; i++)
        b->preferences[st->unary_begin[i] + b->current[i]] = 0; /* what the path has fixed */
    for (int32_t i = 0; i < p->n; i++) {
        double *of = b->preferences + st->unary_begin[p->root_var[i]];
        for (int32_t a = 0; a < st->cards[p->root_var[i]]; a++) of[a] = -INFINITY;
        for (int32_t a = 0; a < p->card[i]; a++) of[p->label[p->begin[i] + a]] = p->belief[p->begin[i] + a];
    }
    const int64_t before = fgi_construct_operations(b->construct);
    const int feasible = fgi_labeling_construct(b->local, b->construct, b->preferences, NULL, 0, CONSTRUCT_OPERATIONS);
    const int64_t used = CONSTRUCT_COST * (fgi_construct_operations(b->construct) - before);
    b->constructing += used;
    b->work += used;
    return feasible;
}

/* Offers the labeling that the problem's messages suggest, improved by coordinate ascent. */
static void offer(fgi_solver *s, const fgi_node *p) {
    branch *b = s->state;
    fgi_node_decode(p, b->labels, &b->scratch);
    for (int32_t i = 0; i < p->n; i++) b->current[p->root_var[i]] = p->label[p->begin[i] + b->labels[i]];
    int64_t before = fgi_labeling_operations(b->local);
    fgi_labeling_assign(b->local, b->current);
    fgi_labeling_ascend(b->local, DECODE_OPERATIONS);
    b->work += 2 * (fgi_labeling_operations(b->local) - before);
    if (fgi_labeling_violations(b->local) > 0 && construct(s, p)) fgi_labeling_ascend(b->local, DECODE_OPERATIONS);
    double score = fgi_labeling_score(b->local);
    if (fgi_labeling_violations(b->local) > 0 || score <= s->info.score - fgi_labeling_tolerance(b->local, score))
        return;
    fgi_solver_consider(s, fgi_labeling_labels(b->local));
}

/* What a factor costs on average, each state counting no more than what would close the node. */
static double mean_cost(const fgi_node *p, int32_t f, double left) {
    fgi_assert(f >= 0 && f < p->n_factors);
    const double *begin = p->table[f], *end = begin + p->states[f];
    double best = -INFINITY, sum = 0;
    for (const double *t = begin; t < end; t++) best = fgi_larger(best, *t);
    for (const double *t = begin; t < end; t++) sum += fgi_smaller(best - *t, left);
    return sum / (double)(end - begin);
}

/* The variable with few labels, costly factors, and a record of closing nodes. */
static int32_t choose(branch *b, const fgi_node *p, double left) {
    double most = 0;
    for (int32_t i = 0; i < p->n; i++) b->cost[i] = 0;
    for (int32_t f = 0; f < p->n_factors; f++) {
        const double cost = mean_cost(p, f, left);
        most = fgi_larger(most, cost);
        for (int32_t s = p->slot_begin[f]; s < p->slot_begin[f + 1]; s++) b->cost[p->slot_var[s]] += cost;
    }
    const double least = most > 0 ? 1e-12 * most : 1; /* without costs the record decides, in any unit of scores */
    int32_t best = -1;
    double best_value = INFINITY;
    for (int32_t i = 0; i < p->n; i++) {
        if (p->alive[i] < 2) continue;
        const double value = p->alive[i] / ((b->weight[p->root_var[i]] + 1) * (least + b->cost[i]));
        if (best < 0 || value < best_value) { /* subnormal costs may make this INFINITY, and yet there is a choice */
            best_value = value;
            best = i;
        }
    }
    return best;
}

static int32_t best_label(const fgi_node *p, int32_t var) {
    fgi_assert(var >= 0 && var < p->n);
    int32_t best = -1;
    for (int32_t a = 0; a < p->card[var]; a++)
        if (p->unary[p->begin[var] + a] > -INFINITY &&
            (best < 0 || p->belief[p->begin[var] + a] > p->belief[p->begin[var] + best]))
            best = a;
    return best;
}

static int64_t labels_left(const fgi_node *p) {
    int64_t n = 0;
    for (int32_t i = 0; i < p->n; i++) n += p->alive[i];
    return n;
}

/* Splits the node on top of the stack, or closes it when nothing is left to choose. */
static fgi_rc split(fgi_solver *s) {
    branch *b = s->state;
    fgi_node *p = b->stack[b->depth - 1].problem, *child = NULL;
    const int64_t alive = s->proof ? labels_left(p) : 0;
    if (!speak(s, cutoff(s, p)) || p->bound <= cutoff(s, p)) {
        close_top(s);
        return FGI_OK;
    }
    if (s->proof && (double)labels_left(p) < STILL * (double)alive) { /* what has gone makes other sweeps worth it */
        frame *f = &b->stack[b->depth - 1];
        f->iterations = 0;
        f->bound_before = p->bound;
        return FGI_OK;
    }
    const double left = fgi_smaller(p->bound - cutoff(s, p), p->magnitude + fabs(p->bound)); /* finite at first, too */
    int32_t var = choose(b, p, fgi_larger(0, left)); /* below 0 where rounding alone keeps the node open */
    if (var < 0) {                                   /* one labeling left */
        offer(s, p);
        fgi_solver_consider(s, b->current); /* itself, whatever ascent has made of it */
        double score, above;                /* two labelings may have one score, and differ in what was rounded off */
        if (!fgi_model_score_above(s->model, b->current, &score, &above, NULL)) b->left = fgi_larger(b->left, above);
        speak_last(s);
        pop(s);
        return FGI_OK;
    }
    int32_t value = best_label(p, var);
    if (p->bound <= fgi_solver_best(s) + share_of(s, p)) b->stubborn++;
    fgi_rc rc = fgi_node_child(p, var, value, MAX_ENTRIES, &child);
    if (rc == FGI_UNSUPPORTED) { /* too large to branch on: what is known stays */
        s->info.status = FGI_CONVERGED;
        return FGI_OK;
    }
    if (rc) return rc;
    for (int32_t i = 0; i < p->n; i++) {
        if (i != var && p->alive[i] != 1) continue;
        int32_t a = value;
        for (a = i == var ? value : 0; i != var && p->unary[p->begin[i] + a] == -INFINITY;) a++;
        b->current[p->root_var[i]] = p->label[p->begin[i] + a];
    }
    if (s->proof) fgi_speak_branch(&b->speaker, &b->stack[b->depth - 1].speech, p, var, value);
    fgi_node_remove(p, var, value); /* cannot be the last label: the variable had two */
    frame *f = &b->stack[b->depth - 1];
    f->iterations = 0;
    f->var = 0;
    f->forward = 1;
    f->bound_before = p->bound;
    return push(s, child, var);
}

/* Is another iteration of dual ascent likely to close the node or to remove labels? */
static int worth_another(const fgi_solver *s, const frame *f, int root) {
    double gain = f->bound_before - f->problem->bound, left = f->problem->bound - cutoff(s, f->problem);
    if (f->iterations < 2) return 1;
    if (f->iterations >= (root ? ROOT_ITERATIONS : NODE_ITERATIONS)) return 0;
    if (left == INFINITY) return gain > 1e-4 * fabs(f->problem->bound) + 1e-9 * s->info.unit;
    return gain > (root ? ROOT_GAIN : NODE_GAIN) * left;
}

/* One variable of one sweep at the node on top; opens and closes nodes as they come. */
static fgi_rc step(fgi_solver *s) {
    branch *b = s->state;
    frame *f = &b->stack[b->depth - 1];
    fgi_node *p = f->problem;
    if (f->var == 0 || f->best != fgi_solver_best(s)) { /* an update costs little more than finding out */
        f->best = fgi_solver_best(s);
        f->cutoff = cutoff(s, p);
    }
    if (p->bound <= f->cutoff || p->bound == -INFINITY) {
        close_top(s);
        return FGI_OK;
    }
    if (p->n > 0) {
        int32_t var = f->forward ? f->var : p->n - 1 - f->var;
        if (fgi_node_update(p, var, f->forward, f->iterations == 0 && f->forward, f->cutoff, &b->scratch) < 0) {
            b->weight[p->root_var[var]] += 1;
            b->work += p->work;
            close_top(s);
            return FGI_OK;
        }
        if (p->removed > -INFINITY) leave(s, p, p->removed);
        p->removed = -INFINITY;
        b->work += p->work;
        p->work = 0;
        if (++f->var < p->n) return FGI_OK;
    }
    f->var = 0;
    f->forward = !f->forward;
    if (!f->forward && p->n > 0) return FGI_OK; /* the backward half is still to come */
    f->iterations++;
    s->info.iterations++;
    report_bound(s);
    if (p->n > 0 && worth_another(s, f, b->nodes == 1)) {
        f->bound_before = p->bound;
        /* The root takes long, so it offers labelings at iterations 1, 2, 4, 8 and so on. */
        if (b->nodes == 1 && (f->iterations & (f->iterations - 1)) == 0) {
            offer(s, p);
            if (!speak(s, cutoff(s, p))) close_top(s);
        }
        return FGI_OK;
    }
    if (!f->decoded) offer(s, p);
    f->decoded = 1;
    return split(s);
}

/* What the last step has done is counted. */
static int is_to_pause(fgi_solver *s) {
    branch *b = s->state;
    const int64_t work = b->work;
    b->work = 0;
    b->total = s->info.entries_touched += work;
    s->info.paused = b->total >= s->pause_at;
    return fgi_meter_spend(&b->meter, work) || s->info.paused;
}

/* The root, in as many runs as it takes. */
static fgi_rc open_root(fgi_solver *s) {
    branch *b = s->state;
    fgi_node *root = b->root.problem;
    if (!root || !fgi_node_build(&b->root, &b->meter)) return FGI_OK;
    b->lattice = fgi_lattice_find(s->model);
    b->root.problem = NULL;
    s->info.memory -= root->arena.bytes; /* counted from the start, and now by push */
    return push(s, root, -1);
}

/* All is searched. Scores are rounded, bounds are on what they were before: all labelings may be at the cutoff, and the
 * bound a little above. Else rounding hides the rest. */
static fgi_status last_status(const fgi_solver *s) {
    const branch *b = s->state;
    return !fgi_solver_wanted(s) && b->missed <= s->settings.cutoff ? FGI_INFEASIBLE : FGI_CONVERGED;
}

static fgi_rc bnb_run(fgi_solver *s, double deadline, int64_t iteration_limit) {
    branch *b = s->state;
    b->meter.every = FGI_CLOCK_WORK, b->meter.deadline = deadline;
    fgi_rc built = open_root(s);
    if (built || b->root.problem) return built;
    while (b->depth > 0) {
        int64_t iterations = s->info.iterations;
        fgi_rc rc = step(s);
        if (rc) return rc;
        if (s->info.iterations > iterations && (s->info.iterations >= iteration_limit || fgi_solver_done(s))) break;
        if (is_to_pause(s)) break;
    }
    s->info.nodes = b->nodes;
    if (b->depth == 0) {
        report_bound(s);
        if (!fgi_solver_done(s)) s->info.status = last_status(s);
    }
    return FGI_OK;
}

static fgi_rc bnb_create(fgi_solver *s, fgi_error *err) {
    const fgi_structure *st = s->model->s;
    branch *b = fgi_calloc(1, sizeof *b);
    s->state = b;
    if (!b) return fgi_no_memory(err);
    fgi_rc rc = fgi_node_begin(s->model, MAX_ENTRIES, &b->root);
    if (rc)
        return fgi_fail(
            err, rc, -1, rc == FGI_NO_MEMORY ? "out of memory" : "the model is too large for branch and bound");
    b->current = fgi_take_zero(&b->arena, st->n_vars, int32_t);
    b->labels = fgi_take_zero(&b->arena, st->n_vars, int32_t);
    b->weight = fgi_take_zero(&b->arena, st->n_vars, double);
    b->cost = fgi_take(&b->arena, st->n_vars, double);
    fgi_node_scratch_take(&b->scratch, s->model, &b->arena);
    b->local = fgi_labeling_create(s->model);
    if (b->local && fgi_labeling_has_forbidden(b->local)) {
        b->preferences = fgi_take(&b->arena, st->unary_begin[st->n_vars], double);
        b->construct = fgi_construct_create(s->model);
        if (!b->construct) return fgi_no_memory(err);
    }
    if (!b->local || b->arena.failed) return fgi_no_memory(err);
    s->info.memory = b->arena.bytes + b->root.problem->arena.bytes;
    b->left = b->missed = -INFINITY;
    return FGI_OK;
}

static int is_at_start(const fgi_solver *s) {
    const branch *b = s->state;
    return b->root.problem || (s->info.iterations == 0 && b->nodes == 1 && b->depth == 1);
}

/* Only before the first step: afterwards the root has changed. */
static fgi_rc bnb_warm_start(fgi_solver *s, const double *mu, fgi_error *err) {
    branch *b = s->state;
    if (!is_at_start(s)) return fgi_fail(err, FGI_UNSUPPORTED, -1, "bnb takes messages only before it starts");
    fgi_rc rc = fgi_check_multipliers(mu, fgi_dual_message_size(s->model), err);
    if (rc) return rc;
    b->meter.every = FGI_CLOCK_WORK, b->meter.deadline = INFINITY;
    rc = open_root(s);
    if (rc) return fgi_fail(err, rc, -1, "out of memory");
    fgi_node_set_messages(b->stack[0].problem, mu, &b->scratch);
    return FGI_OK;
}

static int64_t bnb_message_size(const fgi_solver *s) { return is_at_start(s) ? fgi_dual_message_size(s->model) : -1; }

static fgi_rc bnb_speak(fgi_solver *s) {
    branch *b = s->state;
    if (!is_at_start(s)) return FGI_UNSUPPORTED;
    fgi_rc rc = fgi_speaker_begin(&b->speaker, s->proof, s->model);
    if (rc || b->depth == 0) return rc;
    b->stack[0].problem->keeps_labels = 1;
    return fgi_speech_begin(&b->stack[0].speech, b->stack[0].problem, NULL, NULL, -1);
}

/* How far above the incumbent labelings of open nodes may be. */
static double excess(const fgi_solver *s) {
    const branch *b = s->state;
    double bound = -INFINITY;
    for (int64_t d = 0; d < b->depth; d++) {
        const fgi_node *p = b->stack[d].problem;
        bound = fgi_larger(bound, p->bound + 2 * fgi_node_error(p) + (double)p->n_slots * s->proof->quantum);
    }
    return bound == -INFINITY ? 0 : bound - fgi_solver_best(s); /* INFINITY where there is no labeling */
}

/* Open nodes are closed by a threshold that is raised to the largest of their bounds. What was proven by the steps of
 * scores, or within the tolerance of doubles, is searched to its end first: a checker may know less of either. */
static double bnb_hush(fgi_solver *s) {
    branch *b = s->state;
    b->meter.every = FGI_CLOCK_WORK, b->meter.deadline = INFINITY;
    if (open_root(s)) return -1;
    const int64_t end = 2 * b->total + HUSH_WORK;
    const int is_proven = s->info.status == FGI_OPTIMAL || s->info.status == FGI_INFEASIBLE;
    while (is_proven && b->depth > 0 && excess(s) > s->proof->lead && b->total < end) {
        if (step(s)) return -1;
        is_to_pause(s);
    }
    if (b->depth == 0) return b->speaker.lead;
    const double said = fgi_larger(b->speaker.lead, s->proof->lead), over = excess(s);
    const double lead = over <= said ? said : over + s->proof->lead;
    if (!(over < INFINITY)) return -1;
    if (fgi_solver_best(s) > -INFINITY) raise_threshold(s, lead);
    while (b->depth > 0) {
        fgi_node *p = b->stack[b->depth - 1].problem;
        fgi_speak_close(&b->speaker, &b->stack[b->depth - 1].speech, p, p->bound);
        fgi_speak_end(&b->speaker);
        pop(s);
    }
    return b->speaker.lead;
}

static void bnb_destroy(fgi_solver *s) {
    branch *b = s->state;
    while (b->depth > 0) pop(s);
    fgi_node_free(b->root.problem);
    free(b->stack);
    fgi_labeling_free(b->local);
    fgi_construct_free(b->construct);
    fgi_speaker_free(&b->speaker);
    fgi_arena_free(&b->arena);
    free(b);
}

const fgi_solver_ops fgi_bnb_ops = {.name = "bnb",
    .create = bnb_create,
    .run = bnb_run,
    .destroy = bnb_destroy,
    .warm_start = bnb_warm_start,
    .message_size = bnb_message_size,
    .speak = bnb_speak,
    .hush = bnb_hush};
