/*
 * fginfer_skipgram.h - one pass of negative sampling over a text: the start of word embeddings.
 *
 * Mikolov, Sutskever, Chen, Corrado, Dean, "Distributed representations of words and phrases and their
 * compositionality" (2013): for every word x and every word y in its window, log sigmoid(<u_x, v_y>) grows, and
 * log sigmoid(-<u_x, v_k>) of some drawn words k.
 */
#ifndef FGINFER_SKIPGRAM_H
#define FGINFER_SKIPGRAM_H
#include "fginfer.h"

typedef struct fgi_skipgram {
    int64_t n; /* words of the text, and the sentences they lie in: sentence[i] <= sentence[i + 1] */
    const int32_t *words;
    const int32_t *sentence;
    int32_t labels, d;
    int32_t window, negatives;
    int64_t n_drawn; /* words as they are drawn, say each as often as count^.75 says */
    const int32_t *drawn;
    double step; /* falls linearly from here, at the first word, to a tenth of a thousandth of it at the last */
    float *input, *output; /* labels x d */
} fgi_skipgram;

/* The words from `begin` to `end`, one after the other: the same bits for the same random state, which is kept. */
void fgi_skipgram_pass(const fgi_skipgram *w, int64_t begin, int64_t end, uint64_t *random);

#endif
