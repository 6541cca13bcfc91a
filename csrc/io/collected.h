/*
 * io/collected.h - what readers of tables collect, and the model it becomes. Everything grows with what was read. Equal
 * tables are stored once; functions of one variable or none go to the unaries and the constant.
 */
#ifndef FGI_COLLECTED_H
#define FGI_COLLECTED_H
#include "model/distinct.h"
#include "model/model.h"

typedef struct fgi_collected {
    fgi_array cards;                    /* int32: label counts */
    fgi_array stamp;                    /* int32 per variable, for its reader: -1 until it is seen in a factor */
    fgi_distinct tables;                /* the table being read is at the end of its values */
    fgi_array factor_table, transposed; /* int32, uint8 per factor of arity >= 2 */
    int any_transposed;
    fgi_array scope_begin, scope; /* int64, int32: of the factors kept, and perhaps more behind them */
    int64_t scope_used;           /* variables of the factors kept */
    fgi_array unary, unary_begin; /* double; int64 per variable, -1 where none was given */
    fgi_folding folding;          /* what is more, and the constant */
    double constant;
} fgi_collected;

/* These return 0 when memory is short. */
int fgi_collected_variable(fgi_collected *c, int32_t card);
/* A factor of two variables or more. `vars` may lie in the scope, behind those of the factors kept. */
int fgi_collected_factor(fgi_collected *c, const int32_t *vars, int64_t arity, int32_t table, int transposed);
/* Scores of one variable, or of none; where given twice, they add up in the end. */
int fgi_collected_unary(fgi_collected *c, int32_t var, const double *scores);
void fgi_collected_constant(fgi_collected *c, double score);

int64_t fgi_collected_held(const fgi_collected *c); /* bytes */
/* The model, which takes over the tables. FGI_BAD_MODEL also where scores add up to more than a double holds. */
fgi_rc fgi_collected_finish(fgi_collected *c, fgi_model **out, fgi_error *err);
void fgi_collected_clear(fgi_collected *c);

#endif
