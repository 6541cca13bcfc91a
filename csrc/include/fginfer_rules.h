/*
 * fginfer_rules.h - constraints: factors whose scores follow from what was said about them, in place of a table.
 *
 * A rule scores the joint labels (the state) of n variables, of which each occurs once. There are five kinds:
 *   count        a score by how many variables have a label that counts: at most k, exactly one, clauses, parity
 *   linear       a score by a sum of whole numbers that the labels add: budgets, weighted sums, conditions
 *   occurrences  how often each label may occur: all different, global cardinality, hard or at a price
 *   automaton    a weighted automaton that reads the labels in order
 *   sparse       listed states with their scores, and one score for all others
 * Count and linear are said alike (fgi_rule_sum). A rule takes memory in proportion to what was said, and is a source
 * of the oracle (fginfer_oracle.h). It answers four questions, and nothing else is asked of it:
 *   the best state under messages    fgi_oracle_ask
 *   max-marginals                    fgi_oracle_ask_marginals, fgi_rule_marginals
 *   labels without support           fgi_rule_propagate, and why: fgi_rule_reason
 *   the score after a move           fgi_tally_after
 *
 * Numbers per label stand one variable's after the other's: entry begin[k] + a is about label a of variable k.
 */
#ifndef FGINFER_RULES_H
#define FGINFER_RULES_H
#include "fginfer.h"
#include "fginfer_oracle.h"

typedef struct fgi_rule fgi_rule;

/* The score of a total from start on, up to the next piece: base + slope * (total - anchor). -INFINITY forbids. */
typedef struct fgi_piece {
    int64_t start;
    double base, slope;
    int64_t anchor;
} fgi_piece;

/* The total is the sum of `adds` (0 or more) of the labels, modulo `modulus` if that is above 0; pieces ascend, and the
 * first one starts at 0. */
fgi_rc fgi_rule_sum(int32_t n, const int32_t *cards, const int64_t *adds, int32_t n_pieces, const fgi_piece *pieces,
    int64_t modulus, fgi_rule **out, fgi_error *err);
/* Label a occurs between low[a] and high[a] times, or `price` is taken off for each time too few or too many;
 * INFINITY: that is forbidden. Variables have n_labels labels or fewer. */
fgi_rc fgi_rule_occurrences(int32_t n, const int32_t *cards, int32_t n_labels, const int64_t *low, const int64_t *high,
    double price, fgi_rule **out, fgi_error *err);

/* An arc is taken by its label, at its score. */
typedef struct fgi_arc {
    int32_t from, label, to;
    double score;
} fgi_arc;

/* Position p reads given[p], or the next variable where that is -1. Paths begin in state 0; end[s] is the score of
 * ending in state s. A sequence has the score of its best path. */
fgi_rc fgi_rule_automaton(int32_t n, const int32_t *cards, int32_t n_states, int64_t n_arcs, const fgi_arc *arcs,
    const double *end, int64_t n_positions, const int32_t *given, fgi_rule **out, fgi_error *err);
/* State j is states[j * n .. j * n + n) and scores scores[j]; every other one scores `otherwise`. */
fgi_rc fgi_rule_sparse(int32_t n, const int32_t *cards, int64_t n_states, const int32_t *states, const double *scores,
    double otherwise, fgi_rule **out, fgi_error *err);
/* Rules are shared: whoever keeps one takes a share, and the last one to free it ends it. */
const fgi_rule *fgi_rule_share(const fgi_rule *r);
void fgi_rule_free(const fgi_rule *r);

double fgi_rule_score(const fgi_rule *r, const int32_t *labels); /* labels in range; NAN: no memory */
int64_t fgi_rule_memory(const fgi_rule *r);                      /* in bytes */

/* The best state of  score + sum of gains; a label whose gain is -INFINITY is not allowed. *found 0: there is none.
 * Ties go to the lowest state, unless a sum has so many totals that it is not solved by dynamic programming. *above: no
 * state exceeds the value by more: rounding, and what the search for a large sum has left open. */
fgi_rc fgi_rule_best(const fgi_rule *r, const double *gains, int32_t *labels, int *found, double *above, int64_t *work);
/* What every label has at best, its own gain left out: see fgi_oracle_ask_marginals. FGI_UNSUPPORTED: a sum of too many
 * totals. */
fgi_rc fgi_rule_marginals(const fgi_rule *r, const double *gains, double *out, int64_t *work);

/* Labels that no allowed state has are taken out of `allowed` (a 0 or 1 for each label); *removed: how many. When no
 * state is left every label goes. Sums of many totals keep some: those that bounds on the sum alone do not rule out. */
fgi_rc fgi_rule_propagate(const fgi_rule *r, uint8_t *allowed, int64_t *removed);
/* Why a label of a variable goes: out[k] is 1 for the variables whose missing labels together remove it, and without
 * any of which it would stay. All 0 where it is removed whatever the others have; FGI_BAD_ARGUMENT if it is not. */
fgi_rc fgi_rule_reason(
    const fgi_rule *r, const uint8_t *allowed, int32_t variable, int32_t label, uint8_t *out, fgi_error *err);

/* A state that moves, with what makes its score after a move cheap: O(1) a variable moved for sums and occurrences. */
typedef struct fgi_tally fgi_tally;
fgi_rc fgi_tally_create(const fgi_rule *r, const int32_t *labels, fgi_tally **out, fgi_error *err);
void fgi_tally_free(fgi_tally *t);
double fgi_tally_score(const fgi_tally *t);
/* The score after variables[k], which differ, have got labels[k]; then it is done. */
double fgi_tally_after(fgi_tally *t, int32_t n, const int32_t *variables, const int32_t *labels);
void fgi_tally_move(fgi_tally *t, int32_t n, const int32_t *variables, const int32_t *labels);

/* The rule as a source of the oracle; it lives as long as the rule. A message of 2^599 or more forbids its label. */
fgi_rc fgi_rule_source_create(const fgi_rule *r, fgi_source **out, fgi_error *err);
void fgi_rule_source_free(fgi_source *s);

/* Labelings of tables and rules together (csrc/primal/mender.c). Rule k is over the variables that follow those of rule
 * k - 1 in `variables`. excess[k] measures by how much rule k is violated: its score is 0 for what rule k allows, and
 * less for the rest; NULL: a state is allowed or not. Model and rules are shared. */
typedef struct fgi_mender fgi_mender;
fgi_rc fgi_mender_create(const fgi_model *m, int32_t n, const fgi_rule *const *rules, const fgi_rule *const *excess,
    const int32_t *variables, fgi_mender **out, fgi_error *err);
/* A labeling near `labels` that no rule forbids, improved for some `work`. `prices` (one per label, or NULL) say beside
 * the scores which labels are changed first. *found 0: there was none; else it is in `out`. */
fgi_rc fgi_mender_run(fgi_mender *s, const int32_t *labels, const double *prices, int64_t work, uint64_t seed,
    int *found, int32_t *out, fgi_error *err);
void fgi_mender_free(fgi_mender *s);

/* Clauses and linear constraints over Booleans 0 .. n - 1, and a search for values that satisfy them all, which learns
 * from its conflicts (csrc/base/sat.h). Literal 2 v says that v is true, 2 v + 1 that it is false. */
typedef struct fgi_conflicts fgi_conflicts;
typedef enum fgi_conflicts_state {
    FGI_CONFLICTS_RUNNING,
    FGI_CONFLICTS_SATISFIED,
    FGI_CONFLICTS_NONE
} fgi_conflicts_state;
fgi_rc fgi_conflicts_create(int32_t n, fgi_conflicts **out, fgi_error *err);
void fgi_conflicts_free(fgi_conflicts *c);
/* Before the first run: clause k is literals[begin[k] .. begin[k + 1]), no variable twice. */
fgi_rc fgi_conflicts_add(fgi_conflicts *c, int64_t n, const int64_t *begin, const int32_t *literals, fgi_error *err);
/* At any time: the weights (above 0, their sum below 2^62) of the true literals, no variable twice, add up to the limit
 * or less. *number -1: a new one, which gets a number; else it takes the place of that one. Only solutions that obey
 * all that was ever said are looked for. */
fgi_rc fgi_conflicts_linear(fgi_conflicts *c, int32_t n, const int32_t *literals, const int64_t *weights, int64_t limit,
    int32_t *number, fgi_error *err);
fgi_rc fgi_conflicts_limit(fgi_conflicts *c, int32_t number, int64_t limit, fgi_error *err); /* no higher than before */
/* The value that each variable is tried with first, and how early it is chosen, before the first run; NULL: as is. */
fgi_rc fgi_conflicts_prefer(fgi_conflicts *c, const uint8_t *values, const double *activity, fgi_error *err);
/* Works for about so much; *state says what is known, `values` are filled if all is satisfied. *done: work so far. */
fgi_rc fgi_conflicts_run(
    fgi_conflicts *c, int64_t work, fgi_conflicts_state *state, uint8_t *values, int64_t *done, fgi_error *err);
int64_t fgi_conflicts_memory(const fgi_conflicts *c); /* in bytes */

#endif
