/* learn/losses/losses.h - what the losses' files share; see fginfer_losses.h. */
#ifndef FGI_LOSSES_H
#define FGI_LOSSES_H
#include <string.h>
#include "base/array.h"
#include "base/kernels.h"
#include "base/pool.h"
#include "base/util.h"
#include "fginfer_losses.h"

/* Some labels' scores, the positives first, and what stands for all others. */
typedef struct fgi_scored {
    int64_t n, n_positives, capacity;
    int32_t *labels;
    double *z, *g;
    double *weight; /* weights of the positives */
    double rest;    /* the score of `n_rest` labels that are not listed, all of them negative */
    int64_t n_rest;
    double rest_g; /* the gradient of each of these labels */
    double *work;  /* 2 x capacity */
} fgi_scored;

int fgi_scored_reserve(fgi_scored *scored, int64_t n); /* keeps what is there; 0: out of memory */
void fgi_scored_free(fgi_scored *scored);
static inline void fgi_scored_add(fgi_scored *scored, int32_t label, double z) {
    scored->labels[scored->n] = label;
    scored->z[scored->n++] = z;
}

/* The loss at these scores; scored->g gets its gradient. */
double fgi_loss_evaluate(int32_t loss, double mu, fgi_scored *scored);

/* A thread's working memory. */
typedef struct fgi_loss_scratch {
    fgi_scored scored, block;
    float *sum;     /* per label: sum of the blocks' scores found; 0 between samples */
    uint8_t *state; /* per label: what is known of it; 0 between samples */
    int32_t *found; /* labels with a state */
    int64_t n_found, found_capacity;
    double *part; /* union: scores by block */
    float *mix;   /* union: how far the messages have gone */
    int64_t part_capacity;
    uint32_t *keys; /* sort keys of the sums of labels without messages, see base/cutoff.h */
    /* gradients of the samples this thread has worked on */
    int32_t *labels;
    float *values;
    int64_t n, capacity;
    int64_t touched;
    int failed;   /* out of memory */
    int overflow; /* a score is not a finite number */
} fgi_loss_scratch;

struct fgi_losses {
    fgi_loss_settings s;
    const fgi_kernels *kernels;
    fgi_pool *pool;
    int32_t threads;
    fgi_loss_scratch *scratch;
    /* What follows is the answer to the last batch. */
    int64_t *begin;
    int32_t *labels;
    float *values;
    int64_t n, n_capacity, entries, entries_capacity;
    int32_t *owner; /* per sample: the thread, and where in its gradients */
    int64_t *at, *size;
    double *rest; /* gradients of labels that are not listed */
    /* searches */
    int32_t *found_labels;
    double *found_values;
    float *found_parts; /* together: by block, in place of found_values */
    uint8_t *proven;
    int64_t found_capacity;
    /* the sample */
    fgi_rng rng;
    int32_t *sample;
    float *sample_rows;
    int64_t sample_capacity, sample_floats;
    /* steps */
    uint32_t *mark; /* per label: the last epoch in which it was met */
    uint32_t epoch;
    int64_t label_capacity;
    int64_t touched;
};

/* A new epoch: no label is marked. */
static inline void fgi_loss_unmark(fgi_losses *l) {
    if (++l->epoch == 0) {
        memset(l->mark, 0, (size_t)l->label_capacity * sizeof *l->mark);
        l->epoch = 1;
    }
}

/* One sample by one of the methods: w->scored is left with scores and gradient; the value and its claim. */
typedef struct fgi_loss_answer {
    double value;
    int32_t claim;
} fgi_loss_answer;
/* w->scored begins with the positives; then one of the methods. */
void fgi_loss_positives(const fgi_losses *l, const fgi_loss_batch *b, int64_t i, fgi_loss_scratch *w);
fgi_loss_answer fgi_loss_exact(fgi_losses *l, const fgi_loss_batch *b, int64_t i, fgi_loss_scratch *w);
fgi_loss_answer fgi_loss_sampled(fgi_losses *l, const fgi_loss_batch *b, int64_t i, fgi_loss_scratch *w);
fgi_loss_answer fgi_loss_searched(fgi_losses *l, const fgi_loss_batch *b, int64_t i, fgi_loss_scratch *w);
/* The score that stands for all labels not in w->scored; `last`: the lowest found. */
void fgi_scored_rest(const fgi_losses *l, const fgi_loss_batch *b, int64_t i, double last, fgi_loss_scratch *w);
fgi_loss_answer fgi_loss_decomposed(fgi_losses *l, const fgi_loss_batch *b, int64_t i, fgi_loss_scratch *w);

#endif
