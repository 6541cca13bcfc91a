/* optimise/optimise.h - inside of the optimisers: what the methods share, and how a state is written and read. */
#ifndef FGI_OPTIMISE_H
#define FGI_OPTIMISE_H
#include "base/arena.h"
#include "base/util.h"
#include "fginfer_optimise.h"

/* One walk over a state serves three purposes: to count it, to write it, to read it. Sizes are walked before the arrays
 * that have them, so that a reader can make room; a reader that meets nonsense sets `failed`. */
typedef struct fgi_record {
    enum { FGI_RECORD_COUNT, FGI_RECORD_WRITE, FGI_RECORD_READ } mode;
    double *reals;
    int64_t *ints;
    int64_t at_real, at_int, n_reals, n_ints;
    int failed;
} fgi_record;
#define FGI_RECORD_MOST (INT64_C(1) << 53) /* counts stay below this: more can be added to them without overflow */
void fgi_record_reals(fgi_record *v, double *a, int64_t n);
void fgi_record_ints(fgi_record *v, int64_t *a, int64_t n);
/* A size between 0 and limit. */
void fgi_record_size(fgi_record *v, int64_t *size, int64_t limit);

typedef struct fgi_optimise_ops {
    /* Both work from the answer that has just come to the next question (fgi_optimise_want_value and others) or the
     * end (fgi_optimise_finish). */
    fgi_rc (*create)(fgi_optimiser *o);
    fgi_rc (*answer)(fgi_optimiser *o, double value);
    void (*settled)(const fgi_optimiser *o, double *w); /* the last accepted point */
    fgi_rc (*walk)(fgi_optimiser *o, fgi_record *v);
    void (*free)(fgi_optimiser *o);
} fgi_optimise_ops;
extern const fgi_optimise_ops fgi_proxqn_ops, fgi_owlqn_ops, fgi_proxgrad_ops, fgi_bcd_ops;

struct fgi_optimiser {
    fgi_optimise_settings s;
    const fgi_optimise_ops *ops;
    int64_t d;
    double *w;     /* the point of the question */
    double *whole; /* a gradient on all coordinates */
    fgi_request request;
    int64_t phase; /* what the next answer is about, in the method's own numbering */
    fgi_optimise_info info;
    fgi_rng rng;
    void *method;
};

/* In all methods: the loss at a point from which nothing is known. */
#define FGI_FIRST_PHASE 1

/* The derivative of f nearest to zero at a coordinate with weight w and smooth gradient g. */
static inline double fgi_subgradient(double w, double g, double l1) {
    if (w > 0) return g + l1;
    if (w < 0) return g - l1;
    return fgi_soft(g, l1);
}

/* ---- searches along a direction: the rules are the same in all methods ---------------------------------------- */

#define FGI_SEARCH_SHARE 1e-4  /* Armijo: of the promised decrease, what a step must bring */
#define FGI_SEARCH_FACTOR 0.5  /* each shorter step, against the one before */
#define FGI_SEARCH_LEAST 1e-12 /* a step as short as this is the last one tried */
/* What rounding can do to a difference of two objectives, relative to their size: without this allowance the last
 * steps, which lower the gradient but no longer the printed objective, would all be refused. */
#define FGI_SEARCH_ROUNDING 4e-16
/* Curvature along a step that rounding alone could have made, relative to the lengths of both vectors, is none. */
#define FGI_LEAST_CURVATURE 1e-12

/* Does an objective of f keep enough of the decrease (negative) that was promised for this step? */
static inline int fgi_optimise_descends(const fgi_optimiser *o, double f, double promised) {
    const double before = o->info.objective;
    return isfinite(f) && f <= before + FGI_SEARCH_SHARE * promised + FGI_SEARCH_ROUNDING * fabs(before);
}

/* The step is taken; its gradient is not known yet. */
static inline void fgi_optimise_accept(fgi_optimiser *o, double f, double loss, double step) {
    o->info.objective = f;
    o->info.loss = loss;
    o->info.step = step;
    o->info.full = 0;
    o->info.iterations++;
}

void fgi_optimise_want_value(fgi_optimiser *o, int64_t phase);
void fgi_optimise_want_gradient(fgi_optimiser *o, int64_t phase, const int64_t *set, int64_t n, double *into);
void fgi_optimise_finish(fgi_optimiser *o, fgi_status status);
/* f at o->w from the loss there; +INFINITY when it is no number. */
double fgi_optimise_objective(const fgi_optimiser *o, double loss);
/* The first loss: objective and non-zeros at o->w. 0: it is no number. */
int fgi_optimise_begin(fgi_optimiser *o, double loss);
/* Adds l2 * w to the whole gradient, keeps the largest |minimum-norm subgradient| in info; 0 if it is no number. */
int fgi_optimise_look_at_all(fgi_optimiser *o);

#endif
