/* io/formulas.h - toulbar2's cost functions of two variables that are given by a formula. */
#ifndef FGI_FORMULAS_H
#define FGI_FORMULAS_H
#include <stdint.h>

enum { FGI_FORMULA_MOST = 6 }; /* parameters */

typedef struct fgi_formula {
    const char *keyword;
    int n_parameters, first_cost; /* from which on the parameters are costs; n_parameters: none is */
} fgi_formula;

const fgi_formula *fgi_formula_find(const char *word, int64_t n); /* NULL: there is none of that name */

/* The costs of labels 0 .. dims[0]-1 and 0 .. dims[1]-1; `top` forbids. */
void fgi_formula_expand(const fgi_formula *f, const double *parameters, const int32_t *dims, double top, double *costs);

#endif
