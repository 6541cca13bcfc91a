/*
 * fginfer_optimise.h - minimising  f(w) = l1 |w|_1 + l2/2 |w|^2 + loss(w)  for a smooth loss that is expensive to
 * evaluate and a solution with few non-zeros.
 *
 * The optimiser never calls back. It asks, the caller answers, in whatever language and order of work suits it:
 *
 *     fgi_optimiser_ask(o, &q);              what do you need?
 *     FGI_ASK_VALUE:     fgi_optimiser_answer(o, loss at q.w)
 *     FGI_ASK_GRADIENT:  write d loss / d w[q.set[k]] into q.gradient[k], k < q.n (q.set NULL: all coordinates), then
 *                        fgi_optimiser_answer(o, 0)
 *     FGI_ASK_CURVATURE: the same with an estimate of d^2 loss / d w^2, only with settings.curvature; on entry
 *                        q.gradient[k] is the minimum-norm subgradient of f, for losses whose curvature is known to
 *                        change on the way to where that is zero
 *     FGI_ASK_NOTHING:   it is over, fgi_optimiser_get_info says why
 *
 * A gradient is always asked for at the point of the last value: what a forward pass left behind may be used. A value
 * of +INFINITY or NaN says that the point is out of the question, and a shorter step is taken (not at the start).
 *
 * Methods:
 *   PROXQN    proximal quasi-Newton with shrinking (Zhong, Yen, Dhillon, Ravikumar: Proximal Quasi-Newton for
 *             Computationally Intensive l1-regularized M-estimators, NIPS 2014). Most gradients are asked for on the
 *             working set only; the L-BFGS memory holds nothing else.
 *   OWLQN     Andrew and Gao, Scalable training of l1-regularized log-linear models, ICML 2007; with l1 = 0 this is
 *             L-BFGS. Always the whole gradient.
 *   PROXGRAD  accelerated proximal gradient (Beck and Teboulle 2009) with restarts (O'Donoghue and Candes 2015).
 *   BCD       blockwise coordinate descent with line search (Tseng and Yun 2009): a baseline, gradients of one of at
 *             most 32 blocks of consecutive coordinates at a time.
 */
#ifndef FGINFER_OPTIMISE_H
#define FGINFER_OPTIMISE_H
#include "fginfer.h"

typedef enum fgi_optimise_method { FGI_PROXQN = 0, FGI_OWLQN = 1, FGI_PROXGRAD = 2, FGI_BCD = 3 } fgi_optimise_method;

typedef enum fgi_ask { FGI_ASK_NOTHING = 0, FGI_ASK_VALUE = 1, FGI_ASK_GRADIENT = 2, FGI_ASK_CURVATURE = 3 } fgi_ask;

typedef struct fgi_optimise_settings {
    int32_t method;    /* fgi_optimise_method */
    int32_t memory;    /* pairs that L-BFGS keeps; 1 to 100, the paper has 10 */
    int32_t max_inner; /* proxqn: most passes over the working set, the paper has 10; bcd: steps in a block; >= 1 */
    int32_t shrink;    /* proxqn: 0 works on all coordinates always */
    int32_t
        curvature;  /* proxqn: 1 asks, once an epoch, for second derivatives to begin the model with; 0: all the same */
    double l1, l2;  /* >= 0 */
    double tol;     /* done when the largest |minimum-norm subgradient| is this fraction of what it was at w = start;
                       proxqn also waits until ten steps promise less than this fraction of the objective */
    double samples; /* proxqn: N of the shrinking rule, a coordinate at zero stays while |g| > l1 - M / N; >= 1 */
    uint64_t seed;  /* proxqn: order of the coordinates */
    int32_t forget; /* proxqn: 1 clears the memory of the model at the begin of every epoch; 0 keeps it */
} fgi_optimise_settings;

typedef struct fgi_optimise_info {
    int32_t status; /* FGI_RUNNING; FGI_OPTIMAL: tol reached; FGI_CONVERGED: no step lowers the objective any more */
    int32_t full;   /* violation is that of all coordinates, at the present point */
    int64_t iterations; /* steps taken */
    int64_t epochs;     /* proxqn: how often all coordinates were looked at */
    int64_t values, gradients;
    int64_t coordinates; /* partial derivatives asked for, in all */
    int64_t working_set; /* coordinates that the last iteration could move */
    int64_t nonzeros;
    double objective, loss; /* at the present point */
    double violation;       /* largest |minimum-norm subgradient| seen last */
    double first_violation; /* the one at the start */
    double step;            /* length of the last step, as a fraction of the direction */
} fgi_optimise_info;

typedef struct fgi_request {
    int32_t ask;        /* fgi_ask */
    int64_t n;          /* gradient: coordinates wanted; value: coordinates that may be non-zero */
    const int64_t *set; /* which, ascending; NULL: all, 0 .. n-1 */
    const double *w;    /* dimension doubles, valid until the answer */
    double *gradient;   /* n doubles, to be filled: with a gradient, or a curvature */
} fgi_request;

typedef struct fgi_optimiser fgi_optimiser;

/* start: `dimension` finite numbers, copied; NULL: zeros. */
fgi_rc fgi_optimiser_create(
    int64_t dimension, const fgi_optimise_settings *settings, const double *start, fgi_optimiser **out, fgi_error *err);
void fgi_optimiser_free(fgi_optimiser *o);
/* The same question until it is answered. */
void fgi_optimiser_ask(const fgi_optimiser *o, fgi_request *request);
/* Goes on to the next question. After a failure (out of memory, a start whose loss or gradient is not finite) the
 * optimiser can only be freed. */
fgi_rc fgi_optimiser_answer(fgi_optimiser *o, double value, fgi_error *err);
void fgi_optimiser_get_info(const fgi_optimiser *o, fgi_optimise_info *info);
/* The best point so far: of the last step taken, not one that a line search is trying. */
void fgi_optimiser_weights(const fgi_optimiser *o, double *w);

/* The whole state at any question, to go on later, with the same dimension and settings, as if nothing had happened. */
void fgi_optimiser_export_size(fgi_optimiser *o, int64_t *n_reals, int64_t *n_ints);
void fgi_optimiser_export(fgi_optimiser *o, double *reals, int64_t *ints);
fgi_rc fgi_optimiser_import(
    fgi_optimiser *o, const double *reals, int64_t n_reals, const int64_t *ints, int64_t n_ints, fgi_error *err);

#endif
