/* exact/costs_pairs.h - which factors of a model have two variables in common: for exact/costs_build.c. */
#ifndef FGI_COSTS_PAIRS_H
#define FGI_COSTS_PAIRS_H
#include "model/model.h"

enum { FGI_NO_PAIR = -1 }; /* in place of a factor */

typedef struct fgi_costs_pairs {
    int32_t *first; /* per factor: the first one of the same two variables; other arities: itself */
    int64_t *begin; /* per factor: offset into `meet` */
    int32_t *meet;  /* per two variables of a factor of three or more: a pairwise factor, n_factors + an added one, or
                        FGI_NO_PAIR */
    int32_t *added; /* two variables each */
    int32_t n_added;
    int64_t n_meet, entries; /* pairs in `meet`; entries of the added factors' tables */
} fgi_costs_pairs;

/* 0: no memory. */
int fgi_costs_pairs_find(const fgi_structure *s, fgi_costs_pairs *out);
void fgi_costs_pairs_free(fgi_costs_pairs *p);

#endif
