/* rules/rule.h - what a kind of rule is: a struct that begins with an fgi_rule, and the functions behind the questions
 * of fginfer_rules.h.
 *
 * rule.c answers them, with what all kinds share. rules/sums.c with count.c, totals.c and core.c, rules/occurrences.c
 * with assignment.c, rules/automaton.c and rules/sparse.c are the kinds. tests/oracles/test_rules.py compares each of
 * them with the table that it stands for. */
#ifndef FGI_RULE_H
#define FGI_RULE_H
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "base/arena.h"
#include "base/array.h"
#include "base/assert.h"
#include "base/util.h"
#include "fginfer_rules.h"

/* Memory of one question, freed at its end, and what is counted on the way. */
typedef struct fgi_rule_room {
    fgi_arena arena;
    int64_t work;
    double above;  /* best: what a search has left open, without rounding */
    int is_steady; /* best: rounding does not add up over the variables */
} fgi_rule_room;

typedef struct fgi_rule_ops {
    const char *kind;
    /* The best state; ties to the lowest one. The gains of a variable are never all -INFINITY. */
    fgi_rc (*best)(const fgi_rule *r, const double *gains, fgi_rule_room *room, int32_t *labels, int *found);
    fgi_rc (*marginals)(const fgi_rule *r, const double *gains, fgi_rule_room *room, double *out);
    /* Takes labels out of `allowed`. NULL: those whose max-marginal is -INFINITY. */
    fgi_rc (*propagate)(const fgi_rule *r, fgi_rule_room *room, uint8_t *allowed);
    double (*score)(const fgi_rule *r, const int32_t *labels);
    /* A tally is made (t->labels are there already); the score after a move. */
    void (*count)(fgi_tally *t);
    double (*after)(fgi_tally *t, int32_t n, const int32_t *variables, const int32_t *labels, int keep);
} fgi_rule_ops;

/* Invariants: begin[0] is 0, begin[k + 1] - begin[k] is cards[k] > 0; `states` is their product, or 0 if that is 2^62
 * or more; magnitude is no smaller than that of any finite score; the scores, and all that they are added up from, are
 * multiples of grain, a power of two, unless it is 0: nobody has looked. */
struct fgi_rule {
    const fgi_rule_ops *ops;
    atomic_int shares;
    int32_t n, max_card;
    int32_t *cards;
    int64_t *begin;
    int64_t states;
    double magnitude, grain;
    fgi_arena arena; /* all that a rule keeps, and the rule itself */
};

struct fgi_tally {
    const fgi_rule *rule;
    double score;
    int32_t *labels;
    int64_t total;   /* sums */
    int32_t *counts; /* occurrences */
    int64_t off;     /* times too many or too few */
    int32_t *other;  /* labels after a move, for kinds that start afresh */
    fgi_arena arena;
};

/* Makes the part that all kinds share; `size` is that of the kind's struct. NULL with *rc set: refused. */
void *fgi_rule_begin(const fgi_rule_ops *ops, size_t size, int32_t n, const int32_t *cards, fgi_rc *rc, fgi_error *err);
/* The rule is complete unless memory was short. */
fgi_rc fgi_rule_end(fgi_rule *r, fgi_rule **out, fgi_error *err);

/* The largest power of two that divides a score, too (-INFINITY is no score); `grain` is INFINITY before the first. */
double fgi_rule_grain(double grain, double score);

static inline const double *fgi_rule_gains(const fgi_rule *r, const double *gains, int32_t k) {
    fgi_assert(k >= 0 && k < r->n);
    return gains + r->begin[k];
}

/* Leaves the labels that some allowed state has, and no other ones. */
fgi_rc fgi_rule_propagate_by_marginals(const fgi_rule *r, fgi_rule_room *room, uint8_t *allowed);
/* The flat index of a state; INT64_MAX if there are too many. */
int64_t fgi_rule_number(const fgi_rule *r, const int32_t *labels);
void fgi_rule_labels(const fgi_rule *r, int64_t state, int32_t *labels);
/* Is a the lower state of the two? */
int fgi_rule_is_lower(const fgi_rule *r, const int32_t *a, const int32_t *b);

static inline fgi_rc fgi_room_rc(const fgi_rule_room *room) { return room->arena.failed ? FGI_NO_MEMORY : FGI_OK; }

/* ---- the kinds of sums, see rules/sums.c ----------------------------------------------------------------------- */

typedef struct fgi_sum_rule {
    fgi_rule base;
    int64_t *adds; /* by label */
    int64_t *most; /* per variable: the largest it can add */
    int64_t total; /* the sum of `most` */
    int32_t n_pieces;
    fgi_piece *pieces;
    int64_t modulus;
    int is_count;     /* nothing adds more than 1 */
    int64_t n_totals; /* states of the dynamic program: totals from the last piece on are one */
} fgi_sum_rule;

double fgi_sum_score(const fgi_sum_rule *r, int64_t total);

fgi_rc fgi_count_best(const fgi_sum_rule *r, const double *gains, fgi_rule_room *room, int32_t *labels, int *found);
fgi_rc fgi_count_marginals(const fgi_sum_rule *r, const double *gains, fgi_rule_room *room, double *out);
fgi_rc fgi_totals_best(const fgi_sum_rule *r, const double *gains, fgi_rule_room *room, int32_t *labels, int *found);
fgi_rc fgi_totals_marginals(const fgi_sum_rule *r, const double *gains, fgi_rule_room *room, double *out);
fgi_rc fgi_core_best(const fgi_sum_rule *r, const double *gains, fgi_rule_room *room, int32_t *labels, int *found);

#endif
