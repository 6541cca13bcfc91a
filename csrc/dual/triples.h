/* dual/triples.h - a relaxation of pairwise models that sees three variables at a time (Sontag, Meltzer, Globerson,
 * Jaakkola and Weiss 2008: Tightening LP relaxations for MAP using message passing).
 *
 * The local relaxation asks that factors agree on single variables; here three variables with a factor for each of
 * their pairs may have to agree on pairs, too. Such a triple is a factor of zeros over its variables, and its messages
 * go to the scores of its pairs. With u the scores of nodes, t those of pairs, all after messages,
 *
 *     u_i = theta_i + sum of m_(e,i),      t_e = theta_e - m_(e,i) - m_(e,j) - sum of p_(q,e),
 *     bound = constant + sum_i max u_i + sum_e max t_e + sum_q max (p_(q,e) + p_(q,e') + p_(q,e''))
 *
 * for any messages m and p. A triple whose pairs disagree is worth
 *
 *     max t_e + max t_e' + max t_e'' - max (t_e + t_e' + t_e''),
 *
 * by which the bound falls at least once it is known: that is how triples are chosen. */
#ifndef FGI_TRIPLES_H
#define FGI_TRIPLES_H
#include "base/kernels.h"
#include "solver.h"

/* Two variables, the first of which has the lower number; all factors of both of them are one. */
typedef struct fgi_pair {
    int32_t vars[2];
    int64_t begin; /* where its entries begin; rows are labels of the first variable */
    int64_t terms; /* numbers that each of its entries is added up from */
    double lost;   /* at most so much is lost of an entry where several factors are added up */
} fgi_pair;

/* Invariants: variables ascend; pairs[0] is that of the first two, pairs[1] of the last two, pairs[2] of the outer. */
typedef struct fgi_triple {
    int32_t vars[3], pairs[3];
    double worth;
    double *p[3]; /* messages, as large as the pairs; NULL: it is only a candidate */
} fgi_triple;

/* Invariants: candidates triples[n_known ..], known ones before them; adj ascends by the other variable of a pair;
 * scores are finite: what is forbidden has a score that no labeling makes up for. */
typedef struct fgi_triples {
    const fgi_model *model;
    const fgi_kernels *k;
    int64_t n, n_pairs, n_triples, n_known, entries;
    int32_t max_card;
    fgi_pair *pairs;
    int64_t *adj_begin; /* n + 1 offsets into adj */
    int32_t *adj;       /* pairs of a variable */
    int64_t *at;        /* offsets of the unaries, those of the model */
    double *theta, *theta_node;
    double *t, *u;      /* scores after messages */
    double *low, *high; /* messages of a pair to its first and its second variable: max_card numbers a pair */
    double *size;       /* magnitudes that went into the entries of t */
    double *marginal[3], *line;
    fgi_sum others; /* the best of factors of three variables and more, about which nothing else is known here */
    double others_size;
    fgi_triple *triples;
    fgi_arena arena;
} fgi_triples;

/* FGI_UNSUPPORTED where the model is too large. */
fgi_rc fgi_triples_init(fgi_triples *s, const fgi_model *m, fgi_error *err);
void fgi_triples_free(fgi_triples *s);
/* A candidate is known from here on. 0: no memory. */
int fgi_triples_take(fgi_triples *s, fgi_triple *q);

static inline int64_t fgi_pair_entries(const fgi_triples *s, int32_t e) {
    const fgi_pair *pair = &s->pairs[e];
    return (int64_t)s->model->s->cards[pair->vars[0]] * s->model->s->cards[pair->vars[1]];
}

/* ---- steps (dual/triples_step.c) ------------------------------------------------------------------------------- */

/* What a triple is worth now. */
double fgi_triple_worth(const fgi_triples *s, const fgi_triple *q);
/* The scores of its pairs go into a known triple, and as much of them back as it can spare. */
void fgi_triple_update(const fgi_triples *s, const fgi_triple *q);
/* Scores of pairs go into node i, and on to the pairs with later nodes (earlier ones, if it goes back). */
void fgi_triples_visit(fgi_triples *s, int64_t i, int goes_back);
/* Entries of a table of three variables: the work of one look at a triple. */
int64_t fgi_triple_work(const fgi_triples *s, const fgi_triple *q);

/* The scores of pair e or node i, added up afresh except for what triples take; its magnitudes, too. */
void fgi_triples_resum_pair(fgi_triples *s, int32_t e);
void fgi_triples_resum_node(fgi_triples *s, int64_t i);
/* What a known triple takes from its pairs. */
void fgi_triples_resum_triple(fgi_triples *s, const fgi_triple *q);
/* The largest score of each, no smaller than the exact one. */
double fgi_triples_node_top(const fgi_triples *s, int64_t i);
double fgi_triples_pair_top(const fgi_triples *s, int32_t e);
double fgi_triples_triple_top(const fgi_triples *s, const fgi_triple *q);
/* The best label of node i beside the labels of earlier ones. */
int32_t fgi_triples_label(const fgi_triples *s, int64_t i, const int32_t *labels);

#endif
