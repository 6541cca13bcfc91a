/* model/lattice.h - models whose scores are counted in whole steps, such as the violated clauses of MAX-SAT. A better
 * labeling is better by a whole step there, and a bound may be rounded down to the next score that can occur. */
#ifndef FGI_LATTICE_H
#define FGI_LATTICE_H
#include "model/model.h"

typedef struct fgi_lattice {
    double step;   /* every score is origin - k * step, up to `error`; 0: there is no such step */
    double origin; /* the sum of all maxima */
    double error;  /* rounding of the tables: logarithms of potentials are seldom exact */
} fgi_lattice;

/* Two passes over the tables, cut short where they have no common step. There is no clock in them: the largest models
 * are not looked at. */
fgi_lattice fgi_lattice_find(const fgi_model *m);
/* What a labeling better than this score has at least, a margin for rounding taken off; the score itself without a
 * step. */
double fgi_lattice_next(const fgi_lattice *l, double score);
/* The same without the margin: labelings below it are better than the score by 2 * error at most. */
double fgi_lattice_least(const fgi_lattice *l, double score);
/* Whether this very number, which need not be the score of a labeling, is a whole number of steps below the origin. */
int fgi_lattice_contains(const fgi_lattice *l, double number);
/* The largest score that can occur up to this bound. */
double fgi_lattice_floor(const fgi_lattice *l, double bound);
/* The same without any margin, where steps are exact and so is the result; else the bound. */
double fgi_lattice_exact_floor(const fgi_lattice *l, double bound);

#endif
