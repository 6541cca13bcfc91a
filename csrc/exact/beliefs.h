/* exact/beliefs.h - what exact/beliefs.c (orders, cut sets) and exact/beliefs_pass.c (the two passes) share. */
#ifndef FGI_BELIEFS_H
#define FGI_BELIEFS_H
#include "exact/eliminator.h"
#include "fginfer_exact.h"

typedef enum belief_phase { BELIEFS_UP, BELIEFS_SUMMED, BELIEFS_DOWN, BELIEFS_DONE } belief_phase;

struct fgi_beliefs {
    fgi_model *model;
    fgi_eliminator *e;
    const fgi_bags *bags;
    int32_t kind;
    int32_t *free_vars, *cut;
    int64_t n_free, n_cut;
    int32_t *labels; /* by variable: those of the cut set are held */
    uint8_t *is_cut;
    int64_t *at; /* by variable: where its beliefs begin */
    double *out;
    belief_phase phase;
    int32_t p;
    int64_t block; /* next block of the open bucket; < 0: it is not open */
    fgi_sum value;
    double *joint; /* a part of a bucket on the way up, all of it on the way down */
    int64_t *offsets, *steps;
    int32_t *digits;
    double *row;
    int64_t joint_capacity, offset_capacity, step_capacity, digit_capacity;
    fgi_beliefs_info info;
};

static inline int32_t belief_bag(const fgi_beliefs *b, int32_t p, const int32_t **bag) {
    *bag = b->bags->bag + b->bags->begin[p];
    return (int32_t)(b->bags->begin[p + 1] - b->bags->begin[p]);
}

/* Works in the phase at hand until the deadline. */
fgi_rc fgi_beliefs_up(fgi_beliefs *b, double deadline);
fgi_rc fgi_beliefs_down(fgi_beliefs *b, double deadline);

#endif
